// Recordings that are written while they are shown: what `kymo receive` writes, several at once, one of many.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, readdirSync, statSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { before, test } from "node:test";
import { copy, kymo, look, open, run, serve, servers, settled, theBrowser, work } from "./harness.mjs";

/** Starts a program that ends with the tests, and returns it with what it writes to standard error. @param {string[]} words */
function start(...words) {
  const program = spawn(kymo, words, { cwd: work, stdio: ["ignore", "ignore", "pipe"] });
  servers.push(program);
  const started = { program, text: "" };
  program.stderr.on("data", (data) => (started.text += data));
  return started;
}

/** Waits for something outside of the page. @param {() => any} isThere */
async function until(isThere) {
  for (let tries = 0; !isThere(); tries++) {
    assert.ok(tries < 2400, `not there after 2 minutes: ${isThere}`);
    await new Promise((done) => setTimeout(done, 50));
  }
}

/** Bytes of the first packets of a stream, beside metadata. */
const FIRST = 16 << 10;

/** Bytes of the files in a directory. @param {string} name */
const sizeOf = (name) => readdirSync(join(work, name)).reduce((sum, file) => sum + statSync(join(work, name, file)).size, 0);

/** The events of all tracks of a recording. */
const eventsOf = (page, recording) => look(page, (recording) => kymo.scene.tracks.filter((track) => track.recording === recording).reduce((sum, track) => sum + track.rows, 0), recording);

before(() => {
  copy("examples/lttng-small", "trace");
  // In small packets, which come one after the other.
  run("convert", "trace", "--to", "ctf1.8", "--packet-size", "4K", "-o", "packets");
  const words = ["--start", "999999900", "--step", "60", "DS:load:GAUGE:120:U:U", "RRA:AVERAGE:0.5:1:20"];
  run("rrd", "create", "one.rrd", ...words);
  for (let at = 0; at < 5; at++) run("rrd", "update", "one.rrd", `${1000000000 + at * 60}:${at}`);
  copyFileSync(join(work, "one.rrd"), join(work, "two.rrd"));
});

test("what kymo receive writes is shown as it comes, beside databases that grow at the same time", async () => {
  const { length } = run("print", "packets").stdout.trim().split("\n");
  const receive = start("receive", "ctf+udp://127.0.0.1:0", "-o", "received", "--idle", "60s");
  await until(() => /127\.0\.0\.1:\d+/.test(receive.text));
  const [place] = /127\.0\.0\.1:\d+/.exec(receive.text);
  const send = start("send", "packets", `ctf+udp://${place}`, "--rate", "25000");
  await until(() => existsSync(join(work, "received/metadata")) && statSync(join(work, "received/metadata")).size > 0);
  await until(() => statSync(join(work, "received")).isDirectory() && sizeOf("received") > FIRST);
  // The rest comes when the page is there, however long that takes.
  send.program.kill("SIGSTOP");
  await until(() => spawnSync(kymo, ["check", "received"], { cwd: work, encoding: "utf8" }).stdout.match(/^events\s+[1-9]/m));
  const page = await open(await serve("--no-cache", "received", "one.rrd", "two.rrd"));
  const seen = new Set([await eventsOf(page, 0)]);
  send.program.kill("SIGCONT");
  const before = await look(page, () => String(kymo.scene.end));
  run("rrd", "update", "one.rrd", "1000000320:70");
  run("rrd", "update", "two.rrd", "1000000320:80");
  for (let tries = 0; tries < 1200 && ![...seen].includes(length); tries++) {
    await new Promise((done) => setTimeout(done, 100));
    seen.add(await eventsOf(page, 0));
  }
  assert.ok([...seen].includes(length), `${[...seen]} of ${length}: ${receive.text}${send.text}`);
  assert.ok(seen.size > 1, "it was there at once");
  await settled(page);
  const last = await look(page, () => kymo.scene.tracks.filter((track) => track.recording > 0).map((track) => [track.recording, String(track.last)]));
  assert.deepEqual(last.map(([, time]) => time), ["1000000320000000000", "1000000320000000000"]);
  assert.ok(before.length > 0);
});

test("of many databases, the page learns of the one that changes, and of nothing else", async () => {
  mkdirSync(join(work, "tree"));
  for (let at = 0; at < 200; at++) copyFileSync(join(work, "one.rrd"), join(work, `tree/load-${at}.rrd`));
  const page = await open(await serve("--no-cache", "tree"));
  assert.equal(await look(page, () => kymo.scene.info.recordings.length), 200);
  const changed = await look(page, () => {
    const post = globalThis.fetch;
    const seen = (globalThis.seen = []);
    globalThis.fetch = async (url, ...words) => {
      const answer = await post(url, ...words);
      if (String(url).endsWith("/scene")) seen.push(await answer.clone().json());
      return answer;
    };
    return kymo.scene.info.recordings.findIndex((recording) => recording.path.endsWith("load-7.rrd"));
  });
  run("rrd", "update", "tree/load-7.rrd", "1000000380:9");
  await page.waitForFunction(() => kymo.scene.tracks.some((track) => track.last === 1000000380000000000n));
  await settled(page);
  const { rows, recordings, ids } = await look(page, () => ({
    rows: seen.filter((sent) => !sent.same).flatMap((sent) => sent.rows.filter((_, at) => at % 2 === 0)),
    recordings: seen.filter((sent) => !sent.same).flatMap((sent) => sent.recordings.list),
    ids: kymo.scene.tracks.filter((track) => track.path && track.last === 1000000380000000000n).map((track) => track.id),
  }));
  assert.deepEqual([...new Set(rows)], ids);
  assert.deepEqual(recordings, []);
  assert.equal(await look(page, (at) => kymo.scene.tracks.find((track) => track.last === 1000000380000000000n).recording === at, changed), true);
});

test("databases of a kymo serve on another machine are shown, with updates that wait in its memory", async () => {
  const port = await new Promise((done) => {
    const socket = createServer();
    socket.listen(0, "127.0.0.1", () => {
      const { port } = socket.address();
      socket.close(() => done(port));
    });
  });
  mkdirSync(join(work, "served/web-1"), { recursive: true });
  mkdirSync(join(work, "served/web-2"));
  for (const host of ["web-1", "web-2"]) copyFileSync(join(work, "one.rrd"), join(work, `served/${host}/load.rrd`));
  const daemon = start("serve", "--data", "served", "--query", `127.0.0.1:${port}`, "--rrdcached", `unix:${join(work, "served.sock")}`);
  await until(() => existsSync(join(work, "served.sock")) || daemon.program.exitCode !== null);
  assert.equal(daemon.program.exitCode, null, daemon.text);
  const page = await open(await serve("--no-cache", `http://127.0.0.1:${port}`));
  const paths = await look(page, () => kymo.scene.info.recordings.map((recording) => recording.path));
  assert.deepEqual(paths, ["web-1", "web-2"].map((host) => `http://127.0.0.1:${port}/${host}/load.rrd`));
  const time = 1000000000 + 620;
  run("rrd", "update", "--daemon", `unix:${join(work, "served.sock")}`, join(work, "served/web-2/load.rrd"), `${time}:9`);
  await page.waitForFunction((time) => kymo.scene.tracks.some((track) => track.recording === 1 && track.last === BigInt(time) * 1000000000n), time);
  assert.notEqual(run("rrd", "last", "served/web-2/load.rrd").stdout.trim(), String(time), "it was written already");
  // A server that is gone: what is shown stays.
  daemon.program.kill("SIGKILL");
  await new Promise((done) => setTimeout(done, 1500));
  assert.equal(await look(page, () => kymo.scene.tracks.filter((track) => track.rows).length), 2);
  await page.close();
});

test("a viewer that is started before kymo receive waits, and shows what comes", async () => {
  const { length } = run("print", "packets").stdout.trim().split("\n");
  mkdirSync(join(work, "later"));
  const page = await open(await serve("--no-cache", "later"));
  assert.equal(await page.textContent("#status"), "Waiting for recordings");
  assert.equal(await look(page, () => kymo.rows().length), 0);
  const receive = start("receive", "ctf+udp://127.0.0.1:0", "-o", "later/received", "--idle", "60s");
  await until(() => /127\.0\.0\.1:\d+/.test(receive.text));
  const [place] = /127\.0\.0\.1:\d+/.exec(receive.text);
  const send = start("send", "packets", `ctf+udp://${place}`, "--rate", "25000");
  const seen = new Set();
  for (let tries = 0; tries < 1200 && ![...seen].includes(length); tries++) {
    await new Promise((done) => setTimeout(done, 100));
    seen.add(await eventsOf(page, 0));
  }
  assert.ok([...seen].includes(length), `${[...seen]} of ${length}: ${receive.text}${send.text}`);
  await settled(page);
  assert.match(await page.title(), /received|later/);
  // All is in view, as of a recording that was there at the start.
  assert.ok(await look(page, () => kymo.view.begin <= kymo.scene.begin && kymo.view.begin + BigInt(Math.ceil(kymo.view.span)) >= kymo.scene.end));
  await page.keyboard.press("4");
  assert.doesNotMatch(await page.textContent("#panel"), /metadata/);
  await page.close();
});

test("until all has been read, the page says that it shows estimates, everywhere", async () => {
  const address = await serve("--no-cache", "trace");
  // The server as if it were still reading: the example is read at once.
  let isReading = true;
  const page = await (await theBrowser().newContext()).newPage();
  await page.route("**/api/scene", async (route) => {
    const answer = await route.fetch();
    const scene = await answer.json();
    if (isReading) Object.assign(scene, { settled: false, generation: 0, ...(scene.same ? {} : { whole: false, bytes_read: 0.4 * scene.bytes, states: scene.states.map((state) => [...state.slice(0, 5), true]) }) });
    await route.fulfill({ json: scene });
  });
  // The page brings along what the server knows.
  await page.route(address, async (route) => {
    const answer = await route.fetch();
    await route.fulfill({ response: answer, body: (await answer.text()).replace('id="first"', 'id="known"') });
  });
  await page.goto(address);
  await page.waitForFunction(() => globalThis.kymo?.drawn.estimate && kymo.scene.tracks.every((track) => track.estimate));
  assert.match(await page.textContent("#status"), /^estimate: \d+ % read$/);
  isReading = false;
  await page.waitForFunction(() => !kymo.drawn.estimate && kymo.scene.whole && kymo.scene.tracks.every((track) => !track.estimate));
  await page.waitForFunction(() => document.getElementById("status").textContent === "");
  // An answer that is on its way is not one that is missing.
  await page.unrouteAll({ behavior: "wait" });
  await page.context().close();
});
