// What the tests of the page share: recordings in a directory of their own, the program, the browser. Tests wait for states of the
// page, never for a time: `kymo.idle` says when nothing is under way.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before } from "node:test";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

export const root = fileURLToPath(new URL("../../..", import.meta.url));
export const kymo = process.env.KYMO ?? join(root, "target/debug/kymo");
export const work = mkdtempSync(join(tmpdir(), "kymo-view-"));

/** @type {import("node:child_process").ChildProcess[]} */
export const servers = [];
/** @type {import("playwright-core").Browser} */
let browser;
export const theBrowser = () => browser;

export const launch = () => chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage"],
});

before(async () => {
  browser = await launch();
});
after(async () => {
  await browser?.close();
  for (const server of servers) server.kill();
  rmSync(work, { recursive: true });
});

/** Copies a recording of the repository into the directory. @param {string} from @param {string} name */
export const copy = (from, name) => cpSync(join(root, from), join(work, name), { recursive: true });

/** Runs the program to its end. @param {string[]} words */
export function run(...words) {
  const done = spawnSync(kymo, words, { cwd: work, encoding: "utf8" });
  assert.equal(done.status, 0, `${words.join(" ")}: ${done.stderr}`);
  return done;
}

/** Starts the server, and returns the address that it prints. @param {string[]} words @returns {Promise<string>} */
export function serve(...words) {
  const cached = words.includes("--cache") || words.includes("--no-cache") ? [] : ["--no-cache"];
  // To develop the page without building the program.
  const assets = process.env.KYMO_ASSETS ? ["--assets", process.env.KYMO_ASSETS] : [];
  const server = spawn(kymo, ["view", "--no-open", "--clock-gmt", ...assets, ...cached, ...words], { cwd: work, stdio: ["ignore", "pipe", "pipe"] });
  servers.push(server);
  return new Promise((done, failed) => {
    let text = "";
    let problems = "";
    server.stderr.on("data", (data) => (problems += data));
    server.stdout.on("data", (data) => {
      text += data;
      if (text.includes("\n")) done(text.trim());
    });
    server.on("exit", (code) => failed(new Error(`kymo ended with ${code}: ${problems}`)));
  });
}

/** Waits until all is known and drawn, and nothing under way. @param {import("playwright-core").Page} page */
export const settled = async (page) => {
  await page.waitForFunction(() => globalThis.kymo?.idle() && kymo.drawn.frames > 0 && !kymo.drawn.missing);
};

/** How long a state of the page is waited for, in milliseconds. */
export const PATIENCE = 120000;

/** Opens a page in a context of its own. @param {string} address @param {import("playwright-core").BrowserContextOptions} options */
export async function open(address, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1200, height: 800 }, ...options });
  // What is waited for comes late on a machine that is busy.
  context.setDefaultTimeout(PATIENCE);
  const page = await context.newPage();
  page.on("pageerror", (error) => assert.fail(error));
  await page.goto(address);
  await settled(page);
  await page.focus("#tracks");
  return page;
}

/** @template T @param {import("playwright-core").Page} page @param {(...args: any[]) => T} work @param {any[]} args */
export const look = (page, work, ...args) => page.evaluate(work, ...args);

/** Does what an action of the palette does. @param {import("playwright-core").Page} page @param {string} name */
export const act = (page, name) => look(page, (name) => kymo.ACTIONS.find((action) => action.name === name).run(), name);

/** Presses keys one after the other. @param {import("playwright-core").Page} page @param {string[]} keys */
export const press = async (page, ...keys) => {
  for (const key of keys) await page.keyboard.press(key);
};

/** Selects an event of a track of the first recording. @param {import("playwright-core").Page} page @param {string} track @param {number} ns */
export const pick = async (page, track, ns) => {
  await look(page, async ([track, ns]) => {
    const found = kymo.scene.tracks.find((candidate) => candidate.name === track);
    await kymo.actions.selectEvent(kymo.keyOf(found), kymo.scene.begin + BigInt(ns));
  }, [track, ns]);
  await page.waitForFunction((ns) => kymo.view.event?.time === kymo.scene.begin + BigInt(ns), ns);
};
