// Keeping, sharing, following: pages without a server, links, notes, pictures, recordings that grow.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, readdirSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { act, copy, kymo, look, open, press, root, run, serve, servers, settled, theBrowser, work } from "./harness.mjs";

before(() => {
  copy("examples/lttng-small", "trace");
  copy("fuzz/corpus/cpel/le_basic", "log.cpel");
  const events = [{ ph: "M", name: "thread_name", pid: 1, tid: 2, args: { name: "</script><img src=x onerror=alert(1)>" } }];
  for (let at = 0; at < 50; at++) {
    events.push({ ph: "X", pid: 1, tid: 2, ts: at * 100, dur: 80, name: "outer" }, { ph: "X", pid: 1, tid: 2, ts: at * 100 + 10, dur: 20, name: "inner" });
    events.push({ ph: "C", pid: 1, name: "memory", ts: at * 100, args: { used: at % 7 } });
  }
  writeFileSync(join(work, "app.json"), JSON.stringify({ traceEvents: events }));
  run("rrd", "create", "load.rrd", "--start", "999999960", "--step", "60", "DS:v:GAUGE:120:U:U", "RRA:AVERAGE:0.5:1:100");
  run("rrd", "update", "load.rrd", "1000000020:1", "1000000080:2", "1000000140:5", "1000000200:U", "1000000260:4");
});

const painted = () => {
  const canvas = document.getElementById("tracks");
  const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  let count = 0;
  for (let at = 3; at < pixels.length; at += 4) count += pixels[at] > 200 ? 1 : 0;
  return count;
};

test("an exported page shows the same without a server", async () => {
  for (const inputs of [["trace"], ["app.json", "load.rrd", "log.cpel"]]) {
    run("view", "--no-cache", "--clock-gmt", "--force", "--export", "page.html", ...inputs);
    const served = await open(await serve("--no-cache", ...inputs));
    const page = await open(pathToFileURL(join(work, "page.html")).href);
    const asked = [];
    page.on("request", (request) => asked.push(request.url()));
    const view = () => ({
      begin: String(kymo.view.begin), span: kymo.view.span, bins: kymo.drawn.bins, slices: kymo.drawn.slices, unknown: kymo.drawn.unknown,
      rows: kymo.rows().map((row) => row.label),
    });
    assert.ok((await look(page, () => kymo.drawn.bins)) > 0);
    for (const keys of ["", "ww", "wwww", "0"]) {
      for (const key of keys) await Promise.all([page.keyboard.press(key), served.keyboard.press(key)]);
      await Promise.all([settled(page), settled(served)]);
      const [own, other] = [await look(page, view), await look(served, view)];
      assert.deepEqual([own.begin, own.span, own.rows, own.slices], [other.begin, other.span, other.rows, other.slices]);
      // The grids of coarse bins may begin elsewhere.
      assert.ok(Math.abs(own.bins - other.bins) <= Math.max(4, other.bins * 0.1), JSON.stringify([own.bins, other.bins, keys]));
      const [ink, expected] = [await look(page, painted), await look(served, painted)];
      assert.ok(Math.abs(ink - expected) <= expected * 0.02 + 40, `${ink} ${expected}`);
    }
    assert.deepEqual(asked.filter((url) => !url.startsWith("data:") && !url.startsWith("blob:")), []);
    assert.equal(await page.locator("img").count(), 0);
  }
});

test("an exported page searches, selects, lists and counts", async () => {
  run("view", "--no-cache", "--clock-gmt", "--force", "--export", "page.html", "trace");
  const page = await open(pathToFileURL(join(work, "page.html")).href);
  await page.keyboard.press("/");
  await page.keyboard.type("sched");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => kymo.search.done && kymo.view.event);
  assert.equal(await look(page, () => kymo.search.count), 600);
  const first = await look(page, () => String(kymo.view.event.time));
  await page.focus("#tracks");
  await page.keyboard.press(".");
  await page.waitForFunction((first) => String(kymo.view.event.time) !== first, first);
  assert.match(await page.textContent("#panel"), /timestamp/);
  await page.keyboard.press("2");
  await page.waitForSelector("#panel tbody tr td");
  assert.ok((await page.locator("#panel tbody tr").count()) >= 50);
  await page.keyboard.press("3");
  await page.waitForFunction(() => /sched/.test(document.getElementById("panel").textContent));
  await page.selectOption("#mode", "where");
  await page.fill("#text", "pid > 1");
  await page.press("#text", "Enter");
  await page.waitForSelector("dialog[open]");
});

test("an exported page is as large as asked for, and says what is missing", async () => {
  const done = run("view", "--no-cache", "--force", "--export", "small.html", "--export-size", "128K", "trace");
  assert.match(done.stderr, /holds the first \d+ events/);
  // The page's own files are not counted; what it holds is about as large as asked for.
  const web = join(root, "crates/kymo-view/web");
  const own = readdirSync(web).reduce((sum, name) => sum + statSync(join(web, name)).size, 0);
  const held = statSync(join(work, "small.html")).size - own;
  assert.ok(held > 0 && held < 160 << 10, String(held));
  const page = await open(pathToFileURL(join(work, "small.html")).href);
  assert.ok((await look(page, () => kymo.drawn.bins)) > 0);
});

test("snapshots and notes stay", async () => {
  const cache = join(work, "cache/index");
  const page = await open(await serve("--cache", cache, "trace"));
  for (const key of ["w", "w", "x"]) await page.keyboard.press(key);
  await page.waitForFunction(() => kymo.kept.snapshots.length === 1);
  const view = await look(page, () => [String(kymo.view.begin), kymo.view.span]);
  await page.keyboard.press("Shift+M");
  await page.fill("dialog input", "<b>here</b> it begins");
  await page.press("dialog input", "Enter");
  await page.waitForFunction(() => kymo.kept.notes.length === 1 && kymo.drawn.notes === 1);
  await page.focus("#tracks");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("p");
  await settled(page);
  const again = await open(await serve("--cache", cache, "trace"));
  assert.deepEqual(await look(again, () => [kymo.kept.snapshots.length, kymo.kept.notes[0].text, kymo.drawn.notes, kymo.view.pinned.length]), [1, "<b>here</b> it begins", 1, 1]);
  await again.keyboard.press("z");
  await settled(again);
  assert.deepEqual(await look(again, () => [String(kymo.view.begin), kymo.view.span]), view);
  await again.keyboard.press("5");
  assert.match(await again.textContent("#panel"), /<b>here<\/b> it begins/);
  await again.click("#panel .kept li button:text('Remove')");
  await again.waitForFunction(() => kymo.kept.snapshots.length + kymo.kept.notes.length === 1);
  // The other page, which does not know, loses nothing.
  await page.keyboard.press("x");
  await page.waitForFunction(() => kymo.kept.snapshots.length >= 1);
});

test("a view is a command that opens it, in any order of the recordings", async () => {
  const page = await open(await serve("--no-cache", "trace", "log.cpel"));
  for (const key of ["w", "w", "d"]) await page.keyboard.press(key);
  await page.focus("#tracks");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("p");
  await settled(page);
  const text = await page.evaluate(() => kymo.command());
  assert.ok(!text.includes(new URL(page.url()).pathname.split("/")[1]), "the token stays here");
  const state = text.match(/^kymo view .*trace\S* \S*log.cpel --at ([\w-]+)$/)?.[1];
  assert.ok(state, text);
  const view = () => [String(kymo.view.begin), kymo.view.span, kymo.view.pinned.map((key) => kymo.scene.byKey.get(key)?.name)];
  const other = await open(await serve("--no-cache", "--at", state, "log.cpel", "trace"));
  assert.deepEqual(await look(other, view), await look(page, view));
  const wrong = await open(await serve("--no-cache", "--at", state, "app.json"));
  assert.match(await wrong.textContent("#status"), /other recordings/);
});

test("the view is a picture", async () => {
  const page = await open(await serve("--no-cache", "trace", "app.json", "load.rrd"));
  const saved = async (name) => {
    const [file] = await Promise.all([page.waitForEvent("download"), act(page, name)]);
    return readFileSync(await file.path());
  };
  const text = (await saved("Save the view as SVG")).toString();
  const blank = await theBrowser().newPage();
  const shapes = await look(blank, (text) => {
    const picture = new DOMParser().parseFromString(text, "image/svg+xml");
    const numbers = [...picture.querySelectorAll("svg svg rect")].map((rect) => Number(rect.getAttribute("width")));
    return { root: picture.documentElement.nodeName, rects: numbers.length, right: numbers.every((number) => number >= 0), words: picture.documentElement.textContent };
  }, text);
  assert.ok(shapes.root === "svg" && shapes.rects > 40 && shapes.right, JSON.stringify(shapes).slice(0, 300));
  assert.match(shapes.words, /r_0/);
  const png = await saved("Save the view as PNG");
  assert.equal(png.subarray(1, 4).toString(), "PNG");
  assert.ok(png.length > 5000 && png.readUInt32BE(16) === 1200);
});

test("a range is saved in another format", async () => {
  const page = await open(await serve("--no-cache", "trace"));
  const all = await look(page, () => kymo.scene.tracks.reduce((sum, track) => sum + track.rows, 0));
  await page.keyboard.press("w");
  await page.keyboard.press("Control+s");
  await page.waitForSelector("dialog[open]");
  await page.keyboard.type("json lines");
  const [file] = await Promise.all([page.waitForEvent("download"), page.keyboard.press("Enter")]);
  const lines = [...readFileSync(await file.path(), "utf8").matchAll(/^\{"timestamp":(-?\d+)/gm)].map(([, time]) => BigInt(time));
  const [begin, end] = await look(page, () => [String(kymo.view.begin), String(kymo.view.begin + BigInt(Math.ceil(kymo.view.span)))]);
  assert.ok(lines.length > 0 && lines.length < all && lines.every((time) => time >= BigInt(begin) && time <= BigInt(end)), `${lines.length} of ${all}`);
  await page.keyboard.press("Control+s");
  await page.keyboard.type("perfetto");
  const [trace] = await Promise.all([page.waitForEvent("download"), page.keyboard.press("Enter")]);
  cpSync(await trace.path(), join(work, "saved.pftrace"));
  assert.match(run("info", "saved.pftrace").stdout, /Perfetto/i);
  // A trace is a directory: it is saved in an archive, which kymo opens.
  const save = async (words, name) => {
    await page.keyboard.press("Control+s");
    await page.waitForSelector("dialog[open]");
    await page.keyboard.type(words);
    const [file] = await Promise.all([page.waitForEvent("download"), page.keyboard.press("Enter")]);
    cpSync(await file.path(), join(work, name));
    return file.suggestedFilename();
  };
  assert.equal(await save("ctf 2)", "saved.tar"), "trace.ctf.tar");
  assert.equal(run("print", "saved.tar").stdout.trim().split("\n").length, lines.length);
  await save("vpp (cpel)", "saved.cpel");
  assert.equal(run("print", "saved.cpel").stdout.trim().split("\n").length, lines.length);
  await save("round-robin", "saved.rrd");
  assert.match(run("rrd", "info", "saved.rrd").stdout, /step = 1/);
  // What is hidden is not saved.
  await page.keyboard.press("9");
  await page.locator(".checks input").first().uncheck();
  await page.waitForFunction(() => kymo.lens.done && kymo.lens.job);
  await page.focus("#tracks");
  await save("json lines", "few.jsonl");
  const off = await look(page, () => kymo.view.off[0]);
  const few = readFileSync(join(work, "few.jsonl"), "utf8");
  assert.ok(few.length > 0 && !few.includes(`"event":"${off}"`), off);
  // The command is there, too, for what is too large for a browser.
  await page.keyboard.press("Control+s");
  await page.keyboard.type("command elog");
  await page.keyboard.press("Enter");
  await page.waitForSelector("dialog[open] pre, #status:has-text('command')");
  // What cannot be is said.
  await page.keyboard.press("Escape");
  await look(page, () => kymo.actions.area(kymo.scene.begin, kymo.scene.begin + 1n));
  await page.close();
});

test("commands that are copied open recordings as they are open", async () => {
  const page = await open(await serve("--no-cache", "--offset", "trace=2s", "--where", "cpu_id == 0", "trace", "log.cpel"));
  const text = await look(page, () => kymo.command());
  assert.match(text, /^kymo view --offset=trace=2s --clock-gmt '--where=cpu_id == 0' trace log.cpel --at [\w-]+$/);
  await page.keyboard.press("2");
  await page.locator("#panel tbody tr").nth(3).click();
  await page.keyboard.press("Escape");
  await page.evaluate(() => Object.defineProperty(navigator, "clipboard", { value: { writeText: async (text) => (window.copied = text) } }));
  await look(page, async () => {
    const track = kymo.scene.tracks.find((candidate) => candidate.recording === 0);
    await kymo.actions.selectEvent(kymo.keyOf(track), track.first);
  });
  await page.focus("#tracks");
  await page.keyboard.press("1");
  await page.getByRole("button", { name: "Copy as command" }).click();
  await page.waitForFunction(() => window.copied);
  const words = (await look(page, () => window.copied)).split(" ").slice(1);
  assert.ok(words.includes("--offset=trace=2s"), words.join(" "));
  const printed = run(...words).stdout;
  assert.match(printed, new RegExp(`"timestamp":${await look(page, () => String(kymo.view.event.time))}`));
  await page.close();
});

test("recordings are added only below the directories of --add", async () => {
  const closed = await open(await serve("--no-cache", "trace"));
  const add = (page, path) => look(page, (path) => fetch("api/add", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ path }) }).then((answer) => answer.json()), path);
  assert.match((await add(closed, "log.cpel")).error, /--add DIR/);
  mkdirSync(join(work, "more"));
  cpSync(join(work, "log.cpel"), join(work, "more/own.cpel"));
  symlinkSync("../app.json", join(work, "more/link.json"));
  const page = await open(await serve("--no-cache", "--add", "more", "trace"));
  for (const path of ["log.cpel", "more/../log.cpel", "more/link.json", "/etc/passwd", "more/absent", "\0", ""]) {
    assert.match((await add(page, path)).error, /is not (below a directory|a path)/, path);
  }
  await page.keyboard.press("Control+o");
  await page.fill("dialog input", "more/own.cpel");
  await page.press("dialog input", "Enter");
  await page.waitForFunction(() => kymo.scene.info.recordings.length === 2);
  await settled(page);
  assert.ok(await look(page, () => kymo.scene.tracks.some((track) => track.recording === 1)));
  assert.match((await add(page, "more/own.cpel")).error, /shown already/);
});

test("what is added to a recording is shown", async () => {
  const address = await serve("--no-cache", "load.rrd");
  const [page, still, following] = [await open(address), await open(address), await open(address)];
  const end = await look(page, () => String(kymo.scene.end));
  for (const key of ["w", "w"]) await still.keyboard.press(key);
  for (const key of ["w", "w", "Shift+End"]) await following.keyboard.press(key);
  const before = await look(still, () => [String(kymo.view.begin), kymo.view.span]);
  run("rrd", "update", "load.rrd", "1000000320:7", "1000000380:9", "1000000440:9");
  for (const shown of [page, still, following]) {
    await shown.waitForFunction((end) => String(kymo.scene.end) !== end, end, { timeout: 15000 });
    await settled(shown);
  }
  assert.equal(await look(page, () => kymo.drawn.scales[0][1]), 9);
  // One shows all, one stands still, one follows.
  assert.ok(await look(page, () => kymo.view.begin <= kymo.scene.begin && kymo.view.begin + BigInt(Math.ceil(kymo.view.span)) >= kymo.scene.end));
  assert.deepEqual(await look(still, () => [String(kymo.view.begin), kymo.view.span]), before);
  assert.ok(await look(following, () => kymo.view.begin + BigInt(Math.ceil(kymo.view.span)) >= kymo.scene.end));
});

test("a server that does not answer is waited for", async () => {
  const address = await serve("--no-cache", "trace");
  const server = servers.at(-1);
  const page = await open(address);
  await page.route("**/api/**", (route) => route.abort());
  await page.keyboard.press("w");
  await page.waitForFunction(() => kymo.scene.is_lost);
  await page.waitForFunction(() => /does not answer/.test(document.getElementById("status").textContent));
  assert.ok((await look(page, painted)) > 0);
  await page.unroute("**/api/**");
  await page.waitForFunction(() => !kymo.scene.is_lost);
  await page.keyboard.press("w");
  await settled(page);
  assert.equal(server.exitCode, null);
});

test("the terminal shows the same", () => {
  const text = run("view", "--text", "--width", "100", "--no-cache", "--clock-gmt", "trace", "load.rrd").stdout;
  assert.match(text, /r_0.*1500 events/);
  assert.match(text, /█/);
  assert.ok(text.split("\n").every((line) => [...line].length <= 100), text);
});

test("an exported page measures what a server does", async () => {
  const inputs = ["app.json", "calls.json", "trace"];
  const call = (ph, ts, name, args = {}) => ({ ph, ts, name, args, pid: 7, tid: 1 });
  writeFileSync(join(work, "calls.json"), JSON.stringify({ traceEvents: [
    call("B", 10, "a"), call("B", 20, "b"), call("E", 50, "b"), call("B", 60, "b"), call("E", 61, "b"), call("E", 100, "a"), call("E", 110, "a"),
    call("i", 200, "go", { job: 1 }), call("i", 210, "go", { job: 2 }), call("i", 250, "done", { job: 2 }), call("i", 300, "done", { job: 1 }),
    call("i", 310, "done", { job: 3 }), call("B", 400, "a"),
  ] }));
  run("view", "--no-cache", "--clock-gmt", "--force", "--export", "page.html", ...inputs);
  const served = await open(await serve("--no-cache", ...inputs));
  const page = await open(pathToFileURL(join(work, "page.html")).href);
  const answer = (shown, request) => look(shown, async (request) => {
    const index = (path) => kymo.scene.info.recordings.findIndex((recording) => recording.path.includes(path));
    const own = kymo.scene.tracks.filter((track) => track.recording === index(request.file) && track.rows);
    const [begin, end] = [own.map((track) => track.first).reduce((a, b) => (a < b ? a : b)), own.map((track) => track.last).reduce((a, b) => (a > b ? a : b))];
    const range = { begin: String(begin + BigInt(request.skip ?? 0)), end: String(end - BigInt(request.skip ?? 0)) };
    return kymo.analyse({ worst: 7, ...request, ...range, recordings: [index(request.file)] }, () => true);
  }, request);
  // Percentiles and bars of the server are a hundredth off at most.
  const near = (a, b) => a === b || Math.abs(a - b) <= Math.abs(b) * 0.01;
  const compare = (own, other, way) => {
    if (typeof other === "number") return assert.ok(near(own, other), `${way}: ${own} ${other}`);
    if (other === null || typeof other !== "object") return assert.equal(own, other, way);
    if (Array.isArray(other)) assert.equal(own.length, other.length, way);
    for (const key of Object.keys(other)) compare(own[key], other[key], `${way}.${key}`);
  };
  const requests = [
    { kind: "latency", file: "calls" }, { kind: "latency", file: "app", by: "name" }, { kind: "latency", file: "calls", start: "go", end_event: "done", key: "job" },
    { kind: "latency", file: "calls", start: "go", end_event: "done" }, { kind: "latency", file: "64-bit", start: "demo:ints", end_event: "demo:fl*", by: "cpu_id" },
    { kind: "latency", file: "64-bit", start: "demo:ints", end_event: "demo:enums", key: "cpu_id", track: "cpu_id", skip: 3000000 },
    { kind: "states", file: "64-bit", start: "demo:sched", key: "cpu_id", track: "next_comm" }, { kind: "states", file: "64-bit", start: "demo:sched" },
    { kind: "profile", file: "app" }, { kind: "profile", file: "calls" }, { kind: "profile", file: "app", skip: 1111000 },
    { kind: "profile", file: "64-bit", start: "demo:ints", end_event: "demo:sched" },
  ];
  const keys = {
    latency: ["pairs", "mean", "deviation", "min", "p50", "p90", "p99", "p99.9", "max", "unmatched_starts", "unmatched_ends", "backwards", "groups"],
    states: ["count", "total", "mean", "open"], profile: ["open", "unmatched", "dropped"],
  };
  for (const request of requests) {
    const [own, other] = [await answer(page, request), await answer(served, request)];
    const way = JSON.stringify(request);
    // The slices in the page are those that begin: ends without a beginning are in none.
    const isKnown = (key) => request.start || !key.startsWith("unmatched");
    const only = (answer) => Object.fromEntries(keys[request.kind].filter(isKnown).map((key) => [key, answer[key]]));
    assert.ok(other.pairs > 0 || other.count > 0 || other.nodes?.length > 0, way);
    compare(only(own), only(other), way);
    if (request.kind === "profile") {
      const sorted = (answer) => answer.nodes.map(([caller, track, ...rest]) => [caller === null, answer.tracks[track].name, ...rest].join()).sort();
      assert.deepEqual(sorted(own), sorted(other), way);
      continue;
    }
    const worst = (answer) => answer.worst.map((slow) => [slow.nanos, slow.start, slow.track.name, slow.key ?? ""].join());
    assert.deepEqual(worst(own), worst(other), way);
    const bars = (answer) => answer.histogram.map(([from]) => from);
    assert.deepEqual(bars(own), bars(other), way);
    const tracks = (answer) => (answer.tracks ?? []).map((line) => [line.track.name, line.count, line.total, line.min, line.max].join());
    assert.deepEqual(tracks(own), tracks(other), way);
  }
  // The panels draw the answers.
  await page.locator("#tab-profile").click();
  await page.waitForFunction(() => kymo.flame.boxes > 3);
  await page.locator("#tab-latency").click();
  await page.waitForSelector("#worst tbody tr");
});

test("an exported page names the command for what it does not hold", async () => {
  run("view", "--no-cache", "--force", "--export", "page.html", "app.json");
  const page = await open(pathToFileURL(join(work, "page.html")).href);
  await page.locator("#tab-profile").click();
  await page.fill('#panel input[aria-label="stacks in"]', "callstack");
  await page.press('#panel input[aria-label="stacks in"]', "Enter");
  await page.waitForFunction(() => /Run: kymo view app\.json$/.test(document.querySelector("#panel .bad")?.textContent ?? ""));
  run("view", "--no-cache", "--force", "--export", "small.html", "--export-size", "32K", "trace");
  const small = await open(pathToFileURL(join(work, "small.html")).href);
  await small.locator("#tab-latency").click();
  for (const [name, text] of [["start", "demo:ints"], ["end", "demo:floats"]]) {
    await small.fill(`#panel input[aria-label="${name}"]`, text);
    await small.press(`#panel input[aria-label="${name}"]`, "Enter");
  }
  await small.waitForFunction(() => /does not hold all events/.test(document.querySelector("#panel .bad")?.textContent ?? ""));
});

test("what a daemon holds in memory is shown", async () => {
  const data = join(work, "data");
  const socket = join(work, "serve.sock");
  const daemon = spawn(kymo, ["serve", "--data", data, "--rrdcached", `unix:${socket}`, "--write-timeout", "3600"], { cwd: work, stdio: ["ignore", "ignore", "pipe"] });
  servers.push(daemon);
  const ask = async (...lines) => {
    for (let tries = 0; ; tries++) {
      try {
        return await new Promise((done, failed) => {
          const client = connect(socket, () => client.end(lines.map((line) => `${line}\n`).join("")));
          let text = "";
          client.on("data", (part) => (text += part));
          client.on("end", () => done(text));
          client.on("error", failed);
        });
      } catch (error) {
        if (tries > 1200) throw error;
        await new Promise((done) => setTimeout(done, 50));
      }
    }
  };
  const created = await ask("CREATE cpu.rrd -b 1000000000 -s 1 DS:v:GAUGE:600:U:U RRA:AVERAGE:0.5:1:1000", "UPDATE cpu.rrd 1000000001:1 1000000002:2 1000000003:3");
  assert.match(created, /^0 .*\n0 /);
  await ask("FLUSH cpu.rrd");
  const page = await open(await serve("--no-cache", "--daemon", `unix:${socket}`, data));
  assert.equal(await look(page, () => kymo.drawn.scales[0][1]), 3);
  assert.match(await ask("UPDATE cpu.rrd 1000000004:41 1000000005:42"), /^0 /);
  await page.waitForFunction(() => kymo.drawn.scales[0]?.[1] === 42);
});

test("any number and any text is shown as it is", async () => {
  const wild = "\u202egnp.exe\u202c <img src=x onerror=alert(1)> \u05e9\u05dc\u05d5\u05dd & \\\" \u0000";
  const json = JSON.stringify({ traceEvents: [
    { ph: "i", s: "t", pid: 1, tid: 1, ts: 1, name: wild, args: { big: 0, text: wild, [wild]: 1 } },
    { ph: "C", pid: 1, name: wild, ts: 2, args: { [wild]: 5e-324 } }, { ph: "C", pid: 1, name: wild, ts: 3, args: { [wild]: 1.7e308 } },
    { ph: "C", pid: 1, name: wild, ts: 4, args: { [wild]: -1.7e308 } },
  ] });
  writeFileSync(join(work, "wild.json"), json.replace('"big":0', '"big":18446744073709551615'));
  const page = await open(await serve("--no-cache", "wild.json"));
  assert.equal(await page.locator("img").count(), 0);
  await look(page, async () => {
    const track = kymo.scene.tracks.find((candidate) => candidate.kind === "event");
    await kymo.actions.selectEvent(kymo.keyOf(track), kymo.scene.begin - 1n, 1);
  });
  for (const tab of ["details", "events", "stats", "classes", "health", "compare"]) {
    await page.locator(`#tab-${tab}`).click();
    await settled(page);
    assert.equal(await page.locator("img").count(), 0, tab);
    if (tab === "details") assert.match(await page.textContent("#panel"), /18446744073709551615/);
    if (tab === "events") assert.ok((await page.textContent("#panel")).includes("<img src=x onerror=alert(1)>"));
  }
  assert.ok((await look(page, () => kymo.drawn.lines)) > 0);
  // The direction of a name ends with it.
  assert.ok(await look(page, () => [...document.querySelectorAll("#labels .name")].every((name) => name.dir === "auto" && getComputedStyle(name).unicodeBidi === "isolate")));
});
