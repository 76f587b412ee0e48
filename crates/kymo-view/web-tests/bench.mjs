// Measures the page in Chromium: `cargo xtask bench view` runs it and makes its inputs.
// node bench.mjs TRACE CACHE [TREE]; KYMO is the program.

import { spawn } from "node:child_process";
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const root = fileURLToPath(new URL("../../..", import.meta.url));
const kymo = process.env.KYMO ?? join(root, "target/release/kymo");
const [trace, cache, tree] = process.argv.slice(2);

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--enable-precise-memory-info"],
});

const now = () => performance.now();
const seconds = (milliseconds) => `${(milliseconds / 1000).toFixed(2)} s`;
const say = (name, value, bound = "") => console.log(`${name.padEnd(58)} ${value.padStart(24)}${bound ? `   (${bound})` : ""}`);
const at = (sorted, part) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? NaN;
const spread = (list) => {
  const sorted = [...list].sort((a, b) => a - b);
  return `p50 ${at(sorted, 0.5).toFixed(1)}, p99 ${at(sorted, 0.99).toFixed(1)} ms`;
};

/** User and system time of a process, in milliseconds. */
const cpu = (pid) => {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1].split(" ");
  return (Number(fields[11]) + Number(fields[12])) * 10;
};
/** Memory that is no page of a mapped file, in MiB. */
const memory = (pid) => Number(readFileSync(`/proc/${pid}/status`, "utf8").match(/RssAnon:\s+(\d+)/)[1]) / 1024;

/** Starts the program and a page, and measures until something is drawn. */
async function start(inputs) {
  const context = await browser.newContext({ viewport: { width: 1900, height: 1200 } });
  const page = await context.newPage();
  page.on("pageerror", (error) => console.error(error));
  const from = now();
  const server = spawn(kymo, ["view", "--no-open", "--clock-gmt", "--cache", cache, ...inputs], { stdio: ["ignore", "pipe", "inherit"] });
  const address = await new Promise((done) => server.stdout.once("data", (data) => done(String(data).trim())));
  const listening = now() - from;
  await page.goto(address);
  await page.waitForFunction(() => globalThis.kymo?.drawn.bins > 0, undefined, { polling: "raf", timeout: 120000 });
  const painted = now() - from;
  return { page, server, from, listening, painted, close: async () => {
    await context.close();
    server.kill();
    await new Promise((done) => server.once("exit", done));
  } };
}
const settle = (page) => page.waitForFunction(() => kymo.scene.whole && !kymo.drawn.missing, undefined, { polling: "raf", timeout: 600000 });

/** Moves for some seconds in each frame, and returns how long frames took and the script in them. */
const play = (page, kind) => page.evaluate((kind) => new Promise((done) => {
  const [frames, scripts] = [[], []];
  let [last, step, seen] = [performance.now(), 0, kymo.drawn.frames];
  const frame = (time) => {
    if (step > 5) frames.push(time - last);
    last = time;
    if (kymo.drawn.frames !== seen) scripts.push(kymo.drawn.milliseconds);
    seen = kymo.drawn.frames;
    if (++step > 240) return done({ frames, scripts });
    if (kind === "pan") kymo.actions.pan(step % 120 < 60 ? 0.03 : -0.03);
    else kymo.actions.zoom(step % 120 < 60 ? 0.93 : 1 / 0.93, 700);
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
}), kind);

rmSync(cache, { recursive: true, force: true });
const cold = await start([trace]);
say("first paint without the index", seconds(cold.painted), "0.5 s for 100 M events");
say("  of these until the server listens", seconds(cold.listening));
await settle(cold.page);
say("everything is exact after", seconds(now() - cold.from));
say("CPU of the server until then", seconds(cpu(cold.server.pid)));
await cold.close();

const warm = await start([trace]);
say("first paint with the index", seconds(warm.painted), "0.15 s");
await settle(warm.page);
const { page, server } = warm;
const pid = server.pid;
let bytes = 0;
let posts = 0;
page.on("response", async (answer) => {
  if (!answer.url().includes("/api/")) return;
  posts++;
  bytes += (await answer.body().catch(() => Buffer.alloc(0))).length;
});
await page.waitForTimeout(6000);
const tracks = await page.evaluate(() => kymo.drawn.tracks);
bytes = posts = 0;
const before = cpu(pid);
const views = 20;
for (let view = 0; view < views; view++) {
  await page.evaluate((view) => {
    const span = Number(kymo.scene.end - kymo.scene.begin) / 10 / (1 + (view % 5));
    kymo.view.begin = kymo.scene.begin + BigInt(Math.round(span * 0.37 * view));
    kymo.view.span = span;
    kymo.actions.pan(0);
  }, view);
  await page.waitForTimeout(30);
  await settle(page);
}
say(`a new view of ${tracks} tracks x ${await page.evaluate(() => document.getElementById("tracks").clientWidth)} pixels: bytes`, `${Math.round(bytes / views / 1024)} KiB`, "60 KB for 64 x 1,600");
say("  CPU of the server", `${((cpu(pid) - before) / views).toFixed(1)} ms`, "20 ms");
await page.evaluate(() => kymo.ACTIONS.find((of) => of.name === "Show all").run());
await settle(page);
for (const kind of ["pan", "zoom"]) {
  if (kind === "pan") await page.evaluate(() => kymo.actions.zoom(0.2, 700));
  await settle(page);
  const { frames, scripts } = await play(page, kind);
  say(`${kind}: frames`, spread(frames), "p99 33 ms on an idle machine");
  say(`${kind}: script`, spread(scripts), "p99 6 ms");
}
const search = now();
await page.evaluate(() => kymo.actions.startSearch("*sched*", "name"));
await page.waitForFunction(() => kymo.search.count > 0, undefined, { polling: "raf", timeout: 120000 });
say("first hits of a search after", seconds(now() - search));
const { scripts } = await play(page, "pan");
say("pan while searching: script", spread(scripts));
const heap = await (await page.context().newCDPSession(page)).send("Runtime.getHeapUsage");
say("memory of the server", `${memory(pid).toFixed(0)} MiB`, "250 MB");
say("heap of the page", `${(heap.usedSize / 2 ** 20).toFixed(0)} MiB`, "100 MB");
await warm.close();

if (tree) {
  const many = await start([tree]);
  await settle(many.page);
  say("all databases are listed and drawn after", seconds(now() - many.from));
  say("  first paint", seconds(many.painted), "1 s for 20,000");
  const again = now();
  await many.page.evaluate(() => {
    kymo.view.scroll = kymo.rows().at(-1).top / 2;
    kymo.actions.zoom(0.4, 400);
  });
  await many.page.waitForTimeout(20);
  await settle(many.page);
  say(`others of ${await many.page.evaluate(() => kymo.scene.tracks.length)} tracks are drawn after`, seconds(now() - again), "0.2 s for 100");
  await many.close();
}
await browser.close();
