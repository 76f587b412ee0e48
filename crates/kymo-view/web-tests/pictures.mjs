// Makes the pictures of docs/view.md: `cargo xtask view-pictures` runs it. node pictures.mjs DIRECTORY; KYMO is the program.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const root = fileURLToPath(new URL("../../..", import.meta.url));
const kymo = process.env.KYMO ?? join(root, "target/debug/kymo");
const out = process.argv[2] ?? join(root, "docs/pictures");
const work = mkdtempSync(join(tmpdir(), "kymo-pictures-"));

/** Numbers that look random and are the same each time. */
let seed = 7;
const random = () => (seed = (seed * 16807) % 2147483647) / 2147483647;

// A program that answers requests, the load of its machine, and an event log, all of the same two minutes.
const BEGIN = 1763719200;
const events = [{ ph: "M", name: "process_name", pid: 1, args: { name: "server" } }];
for (const tid of [1, 2, 3]) events.push({ ph: "M", name: "thread_name", pid: 1, tid, args: { name: `worker ${tid}` } });
for (const tid of [1, 2, 3]) {
  for (let at = random() * 2; at < 118; ) {
    const length = 0.4 + 3 * random() ** 3;
    const ts = (BEGIN + at) * 1e6;
    const add = (name, from, dur) => events.push({ ph: "X", pid: 1, tid, ts: ts + from * 1e6, dur: dur * 1e6, name });
    add(["GET /orders", "GET /search", "POST /orders"][Math.floor(random() * 3)], 0, length);
    add("parse", 0.02 * length, 0.15 * length);
    add("query", 0.2 * length, 0.6 * length);
    add("index scan", 0.25 * length, 0.3 * length);
    add("render", 0.82 * length, 0.15 * length);
    at += length + random() * 1.5;
  }
}
for (let at = 0; at < 120; at += 0.5) events.push({ ph: "C", pid: 1, name: "memory", ts: (BEGIN + at) * 1e6, args: { MiB: 120 + 60 * Math.sin(at / 17) + 20 * random() } });
writeFileSync(join(work, "server.json"), JSON.stringify({ traceEvents: events }));
const database = join(work, "load.rrd");
const readings = Array.from({ length: 120 }, (_, at) => `${BEGIN + at + 1}:${at > 70 && at < 78 ? "U" : (1.5 + Math.sin(at / 9) + random()).toFixed(3)}`);
for (const words of [["create", database, "--start", String(BEGIN), "--step", "1", "DS:load:GAUGE:2:U:U", "RRA:AVERAGE:0.5:1:120"], ["update", database, ...readings]]) {
  assert.equal(spawnSync(kymo, ["rrd", ...words], { cwd: work }).status, 0);
}
cpSync(join(root, "examples/lttng-discarded"), join(work, "trace"), { recursive: true });

const servers = [];
function serve(...args) {
  const server = spawn(kymo, ["view", "--no-open", "--no-cache", "--clock-gmt", ...args], { cwd: work, stdio: ["ignore", "pipe", "ignore"] });
  servers.push(server);
  return new Promise((done) => server.stdout.once("data", (data) => done(String(data).trim())));
}

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--headless", "--no-sandbox", "--disable-gpu"] });

async function picture(name, address, colorScheme, act) {
  const page = await browser.newPage({ viewport: { width: 1200, height: 640 }, colorScheme });
  const settled = async () => {
    await page.waitForFunction(() => globalThis.kymo?.scene.whole && kymo.drawn.frames > 0 && !kymo.drawn.missing);
    await page.waitForTimeout(900);
  };
  await page.goto(address);
  await settled();
  await act(page);
  await settled();
  // What was said a moment ago is not part of the picture.
  await page.waitForTimeout(4200);
  const path = join(out, `${name}.png`);
  await page.screenshot({ path });
  assert.ok(statSync(path).size < 150 << 10, `${name}: ${statSync(path).size} bytes`);
  await page.close();
}

try {
  const address = await serve("--stay", "server.json", "load.rrd");
  const area = async (page, from, to) => {
    const box = await page.locator("#tracks").boundingBox();
    await page.mouse.move(box.x + from, box.y + 60);
    await page.mouse.down();
    await page.mouse.move(box.x + to, box.y + 90, { steps: 4 });
    await page.mouse.up();
    await page.mouse.move(box.x + to, 2);
  };
  await picture("view", address, "light", async (page) => {
    await page.keyboard.press("q");
  });
  await picture("view-area", address, "light", async (page) => {
    for (const key of ["w", "w", "w", "w"]) await page.keyboard.press(key);
    await area(page, 200, 620);
  });
  await picture("view-search", address, "light", async (page) => {
    for (const key of ["w", "w", "w"]) await page.keyboard.press(key);
    await page.fill("#text", "search");
    await page.press("#text", "Enter");
    await page.waitForFunction(() => kymo.view.event && kymo.drawn.strip);
    await page.locator("#tab-details").click();
  });
  await picture("view-profile", address, "light", async (page) => {
    await page.locator("#tab-profile").click();
    await page.waitForSelector("#panel .flame");
  });
  await picture("view-dark", await serve("--stay", "trace"), "dark", async (page) => {
    await page.keyboard.press("4");
  });
} finally {
  await browser.close();
  for (const server of servers) server.kill();
  rmSync(work, { recursive: true });
}
