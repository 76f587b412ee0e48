// Pages without a server answer what a server does: conditions, statistics, flows, colours by a field, folded times.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { copy, look, open, run, serve, settled, work } from "./harness.mjs";

const INPUTS = ["trace", "app.json", "log.cpel", "load.rrd"];
/** @type {import("playwright-core").Page} */ let served;
/** @type {import("playwright-core").Page} */ let page;

before(() => {
  copy("examples/lttng-small", "trace");
  copy("examples/vpp-small.cpel", "log.cpel");
  const events = [];
  for (let at = 0; at < 20; at++) {
    const common = { pid: 1, tid: 1 + (at % 3), cat: "c" };
    events.push({ ph: "X", ...common, ts: at * 1000, dur: 400, name: `job ${at % 4}`, args: { user: { id: at }, list: [at, -at], note: at % 2 ? "Straße" : "q\"uote" } });
    events.push({ ph: "s", ...common, ts: at * 1000 + 10, id: at, name: "to" }, { ph: "f", bp: "e", ...common, tid: 1 + ((at + 1) % 3), ts: at * 1000 + 1100, id: at, name: "to" });
  }
  writeFileSync(join(work, "app.json"), JSON.stringify({ traceEvents: events }));
  run("rrd", "create", "load.rrd", "--start", "999999960", "--step", "60", "DS:v:GAUGE:120:U:U", "RRA:AVERAGE:0.5:1:100");
  run("rrd", "update", "load.rrd", "1000000020:1", "1000000080:2", "1000000140:5", "1000000200:U", "1000000260:4");
  run("view", "--no-cache", "--clock-gmt", "--export", "page.html", ...INPUTS);
});

/** Opens both pages, which all tests look at. */
async function bothPages() {
  served ??= await open(await serve("--no-cache", ...INPUTS));
  page ??= await open(pathToFileURL(join(work, "page.html")).href);
}

/** Asks a page as its panels do. @param {import("playwright-core").Page} of @param {string} name @param {any} request */
const ask = (shown, name, request) => look(shown, ([name, request]) => kymo.ask(name, request).catch((error) => ({ error: String(error.message) })), [name, request]);

/** Waits until a search has found everything. */
async function found(shown, request) {
  const started = await ask(shown, "search", request);
  if (started.error) return started;
  const whole = await look(shown, () => ({ begin: String(kymo.scene.begin - 1n), end: String(kymo.scene.end + 1n) }));
  for (;;) {
    const answer = await ask(shown, "found", { job: started.job, ...whole, width: 50 });
    if (answer.done) return { count: answer.count, density: answer.density, next: await ask(shown, "next", { job: started.job, time: whole.begin, back: false }), job: started.job };
    await new Promise((done) => setTimeout(done, 20));
  }
}

const CONDITIONS = [
  "u8 == 1", "u8 in [1, 4..7, 0x20]", "u8 not in [1..200]", "u64 > 0x8000_0000_0000_0000", "u64 >= 11400714819323198485 and u64 < 11400714819323198486", "s64 < 0", "-1 == s8",
  "f < -99.5 and d > -100", "d >= 1e1 or d < -1.5e0", "u8", "not u8", "u8 != 1", "not u8 == 1", "s32 == s64",
  'event.name == "demo:sched"', 'event.name ~ "demo:s*"', 'event ~ "demo:[a-f]*"', 'event.name !~ "*[!s]"', 'event.name =~ "^demo:(ints|floats)$"', 'event =~ "(?i)SCHED"', 'event contains "sch"',
  'next_comm contains "a"', 'next_comm ~ "*"', 'lower(next_comm) == next_comm', "len(next_comm) > 3", 'hex(u8) == "0x1f"', "payload.u8 == 3 && cpu_id = 1", "packet_context.cpu_id == 0", "stream.packet.context.cpu_id == 1", "event.fields.u8 < 3",
  "stream.id == 1", "event.id in (0, 2)", 'kind == "sample"', 'event.kind == "event" and track == 1', "timestamp >= 1795251863_075614193 and timestamp < 1795251863500000000", 'recording.path ~ "*log.cpel"', 'trace.name contains "ust"',
  'track_name == "cpu 0"', "datum > 100", 'text contains "pid"', "true", "false or u8 == 2", "(u8 == 1 or (u8 == 2))", "`u8` == 2", "v > 1", "v",
];

test("conditions find in a page of its own what they find with a server", async () => {
  await bothPages();
  let some = 0;
  for (const text of CONDITIONS) {
    const [own, other] = [await found(page, { text, mode: "where" }), await found(served, { text, mode: "where" })];
    if (other.error) {
      assert.ok(own.error, `${text}: ${JSON.stringify(own).slice(0, 200)}, and with a server: ${other.error}`);
      continue;
    }
    assert.ok(!own.error, `${text}: ${own.error}`);
    assert.equal(own.count, other.count, text);
    assert.deepEqual(own.density, other.density, text);
    assert.equal(own.next.time, other.next.time, text);
    if (own.count) some++;
  }
  assert.ok(some > CONDITIONS.length * 0.7, String(some));
});

test("conditions that are wrong say where, in a page of its own, too", async () => {
  await bothPages();
  for (const [text, message] of [["u8 ==", /expected a field or a value, found the end/], ["(u8", /expected `\)`/], ["nowhere == 1", /no event of this page has a field `nowhere`/], ["u8 in [5..2]", /holds nothing/], ["u8 = 010", /does not begin with 0/], ['event =~ "("', /regular expression/], ["event.level > 3", /does not hold `event.level`/], ["u8 == 99999999999999999999", /too large/], ["(".repeat(70) + "u8", /levels of parentheses/]]) {
    assert.match((await found(page, { text, mode: "where" })).error, message);
  }
  await page.selectOption("#mode", "where");
  await page.fill("#text", "nowhere == 1");
  await page.press("#text", "Enter");
  await page.waitForFunction(() => document.querySelector("dialog[open]")?.textContent.includes("no event of this page has a field"));
  await page.keyboard.press("Escape");
});

test("statistics of a page of its own are those of a server", async () => {
  await bothPages();
  const range = await look(page, () => ({ begin: String(kymo.scene.begin), end: String(kymo.scene.end) }));
  const lines = async (shown) => {
    const tracks = await look(shown, () => kymo.scene.tracks.map((track) => track.id));
    const names = await look(shown, () => Object.fromEntries(kymo.scene.tracks.map((track) => [track.id, kymo.keyOf(track)])));
    let answer = await ask(shown, "stats", { ...range, tracks });
    while (!answer.done) answer = await ask(shown, "stats", { ...range, tracks, job: answer.job });
    // Lengths of sequences are not in the JSON of events.
    const round = (value) => (typeof value === "number" ? Number(value.toPrecision(9)) : value);
    const figures = ({ name, count, min, mean, p50, p99, max, sum }) => [name, count, ...[min, mean, p50, p99, max, sum].map(round)].join(" ");
    const fields = (line) => line.fields.filter((field) => field.count && !field.name.startsWith("_")).map(figures).sort();
    return answer.lines.map((line) => [`${names[line.track]} ${line.slice} ${line.name}`, line.count, fields(line)]).sort((a, b) => (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : a[1] - b[1]));
  };
  const [own, other] = [await lines(page), await lines(served)];
  assert.ok(other.some(([name]) => name.includes(" true job")), "there are slices");
  assert.deepEqual(own.map(([name, count]) => [name, count]), other.map(([name, count]) => [name, count]));
  // Numbers that were 32 bits wide have the fewest digits in the JSON.
  for (const [at, [name, , fields]] of own.entries()) if (!name.includes("float")) assert.deepEqual(fields.filter((field) => other[at][2].some((one) => one.split(" ")[0] === field.split(" ")[0])), other[at][2].filter((field) => fields.some((other) => other.split(" ")[0] === field.split(" ")[0])), name);
  assert.ok(own.some(([name, , fields]) => name.includes("demo:ints") && fields.length > 10));
  assert.ok(own.some(([name, , fields]) => name.includes("sample") || fields.some((field) => field.startsWith("value "))));
});

test("arrows of flows, chases and colours by a field are drawn in a page of its own", async () => {
  await bothPages();
  const select = (shown) => look(shown, async () => {
    const list = kymo.scene.tracks.filter((track) => kymo.scene.info.recordings[track.recording].path.endsWith("app.json") && track.rows);
    await kymo.actions.selectEvent(kymo.keyOf(list[0]), list[0].first, 0, 1);
    return kymo.flows.list.map((flow) => flow.map(([, time]) => String(time)));
  });
  const flowsOf = async (shown) => {
    const stops = await look(shown, () => kymo.scene.tracks.filter((track) => track.rows && kymo.scene.info.recordings[track.recording].path.endsWith("app.json")).map((track) => [track.id, String(track.first)]));
    const all = [];
    for (const [track, time] of stops) for (const plus of [0n, 10000n]) all.push((await ask(shown, "flows", { track, time: String(BigInt(time) + plus) })).flows.map((flow) => flow.map(([, time]) => time)));
    return all;
  };
  const [own, other] = [await flowsOf(page), await flowsOf(served)];
  assert.deepEqual(own, other);
  assert.ok(own.flat().length > 0, "there are flows");
  await select(page);
  for (const shown of [page, served]) {
    await look(shown, () => ((kymo.view.colour = "field:cpu_id"), kymo.actions.colour("field:next_tid")));
    await shown.waitForFunction(() => kymo.lens.done && kymo.lens.values.length > 0);
    await settled(shown);
  }
  assert.deepEqual(await look(page, () => [kymo.lens.count, kymo.lens.values]), await look(served, () => [kymo.lens.count, kymo.lens.values]));
  const gaps = { least: 50, tracks: await look(page, () => kymo.scene.tracks.map((track) => track.id)) };
  const [folded, expected] = [(await ask(page, "gaps", gaps)).gaps, (await ask(served, "gaps", { ...gaps, tracks: await look(served, () => kymo.scene.tracks.map((track) => track.id)) })).gaps];
  assert.equal(folded.length, expected.length);
});
