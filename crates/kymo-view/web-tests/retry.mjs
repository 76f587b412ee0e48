// Tests in a browser: on a loaded machine one loses a race with the page now and then. A test that fails is run again,
// twice at most, and says so.
import { test as once } from "node:test";

export { after, before } from "node:test";

/**
 * @param {string} name
 * @param {(context: import("node:test").TestContext) => void | Promise<void>} run
 */
export const test = (name, run) =>
  once(name, async (context) => {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await run(context);
      } catch (error) {
        if (attempt === 3) throw error;
        context.diagnostic(`attempt ${attempt} failed: ${error instanceof Error ? error.message : error}`);
      }
    }
  });
