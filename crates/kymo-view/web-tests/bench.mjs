// Measures the page in Chromium: `cargo xtask bench view` runs it and makes its inputs.
// node bench.mjs TRACE CACHE [TREE]; KYMO is the program.

import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
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

/** Starts the program and a page, and measures until the page itself has drawn something: whoever asks it, holds it up. */
async function start(inputs, height = 1200) {
  const { context, page, drawn } = await open(height);
  const [from, begin] = [now(), performance.timeOrigin + now()];
  const server = spawn(kymo, ["view", "--no-open", "--clock-gmt", "--cache", cache, ...inputs], { stdio: ["ignore", "pipe", "inherit"] });
  const address = await new Promise((done) => server.stdout.once("data", (data) => done(String(data).trim())));
  const listening = now() - from;
  await page.goto(address, { waitUntil: "commit" });
  const painted = (await drawn) - begin;
  return { page, server, from, listening, painted, close: async () => {
    await context.close();
    server.kill();
    await new Promise((done) => server.once("exit", done));
  } };
}

/** Waits until the browser rests: it prepares for each window that it opens, some of it later. */
async function atRest() {
  const used = async () => {
    const { processInfo } = await (browserSession ??= await browser.newBrowserCDPSession()).send("SystemInfo.getProcessInfo");
    return processInfo.reduce((sum, { cpuTime }) => sum + cpuTime, 0);
  };
  for (let last = -1, tries = 0; tries < 50; tries++) {
    const now = await used();
    if (now - last < 0.02) break;
    last = now;
    await new Promise((done) => setTimeout(done, 200));
  }
}
let browserSession;

/** Opens an empty page, which says when something is drawn in it: in the frame behind the one that the page marks. */
async function open(height) {
  const context = await browser.newContext({ viewport: { width: 1900, height } });
  const page = await context.newPage();
  page.on("pageerror", (error) => console.error(error));
  await page.addInitScript(() => {
    const frame = () => (performance.getEntriesByName("drawn").length ? console.log("drawn", performance.timeOrigin + performance.now()) : requestAnimationFrame(frame));
    requestAnimationFrame(frame);
  });
  const drawn = new Promise((done) => page.on("console", (said) => said.text().startsWith("drawn ") && done(Number(said.text().split(" ")[1]))));
  await atRest();
  return { context, page, drawn };
}

/** How long the browser takes for a page that has nothing but a rectangle. */
async function rectangle() {
  const content = "<!doctype html><canvas></canvas><script>document.querySelector('canvas').getContext('2d').fillRect(0, 0, 9, 9); performance.mark('drawn');</script>";
  const server = createServer((_, answer) => answer.writeHead(200, { "Content-Type": "text/html" }).end(content)).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { context, page, drawn } = await open(1200);
  const begin = performance.timeOrigin + now();
  await page.goto(`http://127.0.0.1:${server.address().port}/`, { waitUntil: "commit" });
  const painted = (await drawn) - begin;
  await context.close();
  server.closeAllConnections();
  server.close();
  return painted;
}

const settle = (page) => page.waitForFunction(() => globalThis.kymo?.scene.whole && !kymo.drawn.missing, undefined, { polling: "raf", timeout: 600000 });

/** Changes the view, and waits until it is drawn. */
const change = async (page, work, ...words) => {
  const frames = await page.evaluate(() => kymo.drawn.frames);
  await page.evaluate(work, ...words);
  await page.waitForFunction((frames) => kymo.drawn.frames > frames && !kymo.drawn.missing, frames, { polling: "raf", timeout: 600000 });
};

/** User and system time of a program that runs to its end, and all of its time, in milliseconds. */
const timed = (...words) => {
  const from = now();
  // Without summaries that other commands have left in the user's cache: `kymo check` takes numbers from them.
  const env = { ...process.env, XDG_CACHE_HOME: join(cache, "none") };
  const done = spawnSync("/bin/sh", ["-c", 'times; "$@" > /dev/null 2>&1; times', "sh", kymo, ...words], { encoding: "utf8", env });
  const own = done.stdout.trim().split("\n").at(-1).split(" ").map((word) => {
    const [minutes, rest] = word.replace("s", "").split("m").map(Number);
    return (minutes * 60 + rest) * 1000;
  });
  return { cpu: own[0] + own[1], time: now() - from };
};

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

/** Sends a request to a server. @param {string} address @param {string} name @param {any} request */
const post = (address, name, request) => fetch(`${address}api/${name}`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(request) });

/** Has a server read everything, without a page: how long that takes, and its CPU time. Both use all processors, as `kymo check` does. */
async function indexed() {
  const from = now();
  const server = spawn(kymo, ["view", "--no-open", "--no-cache", trace], { stdio: ["ignore", "pipe", "inherit"] });
  const address = await new Promise((done) => server.stdout.once("data", (data) => done(String(data).trim())));
  // As a page does that has drawn something: reading begins then.
  await (await post(address, "tiles", { shift: 40, first: "0", count: 1, tracks: [0] })).arrayBuffer();
  for (let scene = { generation: 1 }; !scene.whole; await new Promise((done) => setTimeout(done, 10))) {
    const answer = await (await post(address, "scene", { generation: scene.generation })).json();
    scene = answer.same ? scene : answer;
  }
  const done = { cpu: cpu(server.pid), time: now() - from };
  server.kill();
  await new Promise((ended) => server.once("exit", ended));
  return done;
}

const median = (list) => [...list].sort((a, b) => a - b)[list.length >> 1];

rmSync(cache, { recursive: true, force: true });
// Its files are in memory from here on, for both. They take turns, so that what else the machine does is in both.
timed("check", trace);
const [checks, passes] = [[], []];
for (let turn = 0; turn < 5; turn++) {
  checks.push(timed("check", trace));
  passes.push(await indexed());
}
say("first paint of a page with one rectangle, for comparison", seconds(await rectangle()));
const cold = await start([trace]);
say("first paint without the index", seconds(cold.painted), "0.5 s for 100 M events");
say("  of these until the server listens", seconds(cold.listening));
await settle(cold.page);
say("everything is exact after", seconds(now() - cold.from));
const [check, pass] = [checks, passes].map((list) => ({ cpu: median(list.map((cost) => cost.cpu)), time: median(list.map((cost) => cost.time)) }));
say("CPU of the pass and of kymo check, medians of 5 in turns", `${seconds(pass.cpu)}, ${seconds(check.cpu)}`);
say("  speed beside kymo check: time, CPU", `${(check.time / pass.time).toFixed(2)}, ${(check.cpu / pass.cpu).toFixed(2)}`, "0.8");
await cold.close();

const paints = [];
let warm;
for (let turn = 0; turn < 5; turn++) {
  await warm?.close();
  warm = await start([trace]);
  paints.push(warm.painted);
  await settle(warm.page);
}
say("first paint with the index, median of 5", seconds(median(paints)), "0.15 s");
const { page, server } = warm;
const pid = server.pid;
let bytes = 0;
let posts = 0;
const count = async (answer) => {
  if (!answer.url().includes("/api/")) return;
  posts++;
  bytes += (await answer.body().catch(() => Buffer.alloc(0))).length;
};
page.on("response", count);
await page.waitForFunction(() => kymo.idle(), undefined, { timeout: 600000 });
const tracks = await page.evaluate(() => kymo.drawn.tracks);
bytes = posts = 0;
const before = cpu(pid);
const views = 20;
for (let view = 0; view < views; view++) {
  await change(page, (view) => {
    const span = Number(kymo.scene.end - kymo.scene.begin) / 10 / (1 + (view % 5));
    kymo.view.begin = kymo.scene.begin + BigInt(Math.round(span * 0.37 * view));
    kymo.view.span = span;
    kymo.actions.pan(0);
  }, view);
}
say(`a new view of ${tracks} tracks x ${await page.evaluate(() => document.getElementById("tracks").clientWidth)} pixels: bytes`, `${Math.round(bytes / views / 1024)} KiB`, "60 KB for 64 x 1,600");
say("  CPU of the server", `${((cpu(pid) - before) / views).toFixed(1)} ms`, "20 ms");
// Bodies that are fetched here would hold up what is measured next.
page.off("response", count);
await page.evaluate(() => kymo.ACTIONS.find((action) => action.name === "Show all").run());
await settle(page);
for (const kind of ["pan", "zoom"]) {
  if (kind === "pan") await page.evaluate(() => kymo.actions.zoom(0.2, 700));
  await settle(page);
  const { frames, scripts } = await play(page, kind);
  say(`${kind}: frames`, spread(frames), "p99 33 ms on an idle machine");
  say(`${kind}: script`, spread(scripts), "p99 6 ms");
}
const search = now();
// Not its end: an evaluation waits for what it returns.
await page.evaluate(() => void kymo.actions.startSearch("*sched*", "name"));
await page.waitForFunction(() => kymo.search.count > 0, undefined, { polling: "raf", timeout: 120000 });
say("first hits of a search after", seconds(now() - search));
const { scripts } = await play(page, "pan");
say("pan while searching: script", spread(scripts));
const heap = await (await page.context().newCDPSession(page)).send("Runtime.getHeapUsage");
say("memory of the server", `${memory(pid).toFixed(0)} MiB`, "250 MB");
say("heap of the page", `${(heap.usedSize / 2 ** 20).toFixed(0)} MiB`, "100 MB");
await warm.close();

if (tree) {
  // So high that a hundred are in sight.
  const many = await start([tree], 7200);
  await settle(many.page);
  say(`${await many.page.evaluate(() => kymo.scene.info.recordings.length)} databases are listed after`, seconds(many.painted), "1 s for 20,000");
  say("  of these until the server listens", seconds(many.listening));
  await settle(many.page);
  const again = now();
  await change(many.page, () => {
    kymo.view.scroll = Math.round(kymo.rows().at(-1).top / 2);
    kymo.actions.zoom(0.4, 400);
  });
  say(`others are drawn: ${await many.page.evaluate(() => kymo.drawn.tracks)}, after`, seconds(now() - again), "0.2 s for 100");
  const size = await many.page.evaluate(async () => {
    const post = async (request) => (await (await fetch("api/scene", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(request) })).text()).length;
    return [await post({}), await post({ generation: kymo.scene.generation })];
  });
  say("bytes that describe them: at first, and when nothing changes", `${(size[0] / 2 ** 20).toFixed(1)} MiB, ${size[1]} B`);
  say("memory of the server", `${memory(many.server.pid).toFixed(0)} MiB`, "250 MB");
  const used = await (await many.page.context().newCDPSession(many.page)).send("Runtime.getHeapUsage");
  say("heap of the page", `${(used.usedSize / 2 ** 20).toFixed(0)} MiB`, "100 MB");
  await many.close();
}
await browser.close();

console.log(`
The peers, as their sources and users have it:
  g2 (25 M events)        walks all events in sight for each repaint: 1.0 s of CPU; 1.4 GiB
  Perfetto (its page)     imports everything first, memory is 2 to 4 times the file, ends at some 2 GB;
                          WebGL took a frame from 45 to 10 ms on an M1; a pyramid of 100 M slices would be 4.4 GB`);
