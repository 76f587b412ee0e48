// The page for everybody: axe-core finds nothing serious, the keyboard reaches everything, every size of screen will do.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { copy, open as openAt, serve, settled } from "./harness.mjs";

const axe = readFileSync(fileURLToPath(import.meta.resolve("axe-core/axe.min.js")), "utf8");
let address;

before(async () => {
  copy("examples/lttng-discarded", "trace");
  copy("fuzz/corpus/cpel/le_basic", "log.cpel");
  address = await serve("--stay", "trace", "log.cpel");
});

// The tool itself is a script that the page's policy would refuse.
const open = (options = {}) => openAt(address, { bypassCSP: true, ...options });

/** What axe-core complains of: serious things and worse. */
async function complaints(page) {
  await page.evaluate((axe) => globalThis.axe ?? (0, eval)(axe), axe);
  return page.evaluate(async () => {
    const { violations } = await axe.run(document, { resultTypes: ["violations"] });
    return violations
      .filter((violation) => ["serious", "critical"].includes(violation.impact))
      .map((violation) => `${violation.id}: ${violation.nodes.slice(0, 3).map((node) => `${node.target} ${node.any[0]?.message ?? node.all[0]?.message ?? ""}`).join(" | ")}`);
  });
}

for (const colorScheme of ["light", "dark"]) {
  test(`nothing serious is wrong in ${colorScheme} colours`, async () => {
    const page = await open({ colorScheme });
    await page.focus("#tracks");
    for (const key of ["ArrowDown", "ArrowDown", "."]) await page.keyboard.press(key);
    await page.waitForFunction(() => kymo.view.event);
    await page.keyboard.press("x");
    for (const tab of await page.locator("[role=tab]").all()) {
      await tab.click();
      await settled(page);
      assert.deepEqual(await complaints(page), [], await tab.textContent());
    }
    for (const key of ["?", ">", "Control+p", "Shift+M"]) {
      await page.focus("#tracks");
      await page.keyboard.press(key);
      await page.waitForSelector("dialog[open]");
      assert.deepEqual(await complaints(page), [], key);
      await page.keyboard.press("Escape");
    }
    await page.close();
  });
}

test("the keyboard alone reaches everything", async () => {
  const page = await open();
  const reached = new Set();
  await page.evaluate(() => document.body.focus());
  for (let step = 0; step < 60; step++) {
    await page.keyboard.press("Tab");
    reached.add(await page.evaluate(() => document.activeElement?.id || document.activeElement?.textContent));
  }
  const wanted = await page.evaluate(() => [...document.querySelectorAll("input, select, header button, canvas[tabindex], #divider, #panel, [role=tab][aria-selected=true]")].filter((element) => element.checkVisibility()).map((element) => element.id).filter(Boolean));
  for (const id of wanted) assert.ok(reached.has(id), `${id} of ${[...reached]}`);
  // Every action is in the palette, also those that have no key.
  await page.focus("#tracks");
  await page.keyboard.press(">");
  await page.waitForSelector("dialog li");
  const names = await page.locator("dialog li span").allTextContents();
  const actions = await page.evaluate(() => kymo.ACTIONS.map((action) => action.name));
  assert.deepEqual(names, actions);
  await page.keyboard.press("Escape");
  assert.equal(await page.evaluate(() => document.activeElement.id), "tracks");
  // No key means two things.
  for (const g2 of [false, true]) {
    const keys = await page.evaluate((g2) => kymo.ACTIONS.flatMap((action) => (g2 && action.g2 ? action.g2 : action.keys)), g2);
    assert.equal(new Set(keys).size, keys.length, keys.filter((key, at) => keys.indexOf(key) !== at).join());
  }
  await page.close();
});

test("every size of screen will do", async () => {
  for (const [width, height, deviceScaleFactor] of [[360, 640, 3], [768, 1024, 2], [1920, 1080, 1], [3840, 2160, 1]]) {
    const page = await open({ viewport: { width, height }, deviceScaleFactor });
    const wrong = await page.evaluate(() => {
      const wide = [...document.querySelectorAll("header *, #panels [role=tab], canvas")].filter((element) => {
        const { left, right } = element.getBoundingClientRect();
        return element.checkVisibility() && (left < -1 || right > innerWidth + 1);
      });
      const canvas = document.getElementById("tracks");
      return {
        wide: wide.map((element) => element.id || element.outerHTML.slice(0, 60)), bins: kymo.drawn.bins, page: document.documentElement.scrollWidth > innerWidth,
        sharp: canvas.width === Math.round(canvas.clientWidth * devicePixelRatio), high: canvas.clientHeight,
      };
    });
    assert.deepEqual([wrong.wide, wrong.page, wrong.sharp, wrong.bins > 0, wrong.high >= 100], [[], false, true, true, true], `${width}x${height}: ${JSON.stringify(wrong)}`);
    await page.close();
  }
});

test("a touch screen moves and zooms", async () => {
  const page = await open({ hasTouch: true });
  const span = await page.evaluate(() => kymo.view.span);
  const box = await page.locator("#tracks").boundingBox();
  const client = await page.context().newCDPSession(page);
  const touch = (type, ...points) => client.send("Input.dispatchTouchEvent", { type, touchPoints: points.map(([x, y], id) => ({ x: box.x + x, y: box.y + y, id })) });
  await touch("touchStart", [300, 60], [400, 60]);
  for (let step = 1; step <= 5; step++) await touch("touchMove", [300 - step * 20, 60], [400 + step * 20, 60]);
  await touch("touchEnd");
  assert.ok((await page.evaluate(() => kymo.view.span)) < span / 2);
  const begin = await page.evaluate(() => String(kymo.view.begin));
  await touch("touchStart", [500, 60]);
  for (let step = 1; step <= 5; step++) await touch("touchMove", [500 - step * 30, 60]);
  await touch("touchEnd");
  assert.notEqual(await page.evaluate(() => String(kymo.view.begin)), begin);
  await page.close();
});
