// Flows, folded times, lenses, charts, the panels of an area, comparing and moving in time.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { before, test } from "node:test";
import { act, copy, look, open, pick, press, run, serve, settled, work } from "./harness.mjs";

const HOSTILE = "<b onmouseover=alert(1)>\u202e`\"'\\\n";

/** Frames on one thread that post jobs to another one, and a pause of two seconds in the middle. */
function app(name, factor) {
  const events = [
    { ph: "M", name: "thread_name", pid: 1, tid: 2, args: { name: "main" } },
    { ph: "M", name: "thread_name", pid: 1, tid: 3, args: { name: "worker" } },
  ];
  for (let at = 0; at < 100; at++) {
    const ts = at * 200 + (at < 50 ? 0 : 2e6);
    events.push({ ph: "X", pid: 1, tid: 2, ts, dur: 100 * factor, name: "frame" }, { ph: "X", pid: 1, tid: 2, ts: ts + 5, dur: 40, name: "layout" });
    events.push({ ph: "X", pid: 1, tid: 3, ts: ts + 30, dur: 50, name: `job ${at % 3}` });
    events.push({ ph: "s", pid: 1, tid: 2, ts: ts + 6, id: at, name: "post", cat: "f" }, { ph: "f", bp: "e", pid: 1, tid: 3, ts: ts + 31, id: at, name: "post", cat: "f" });
    events.push({ ph: "i", pid: 1, tid: at % 2 ? 2 : 3, ts: ts + 3, name: "tick", s: "t", args: { round: at % 5, size: at === 70 ? 9999 : 100 + (at % 9), text: at ? "Plain" : HOSTILE } });
    events.push({ ph: "C", pid: 1, name: "memory", ts, args: { used: 50 + (at % 9), free: 30 } });
  }
  writeFileSync(join(work, name), JSON.stringify({ traceEvents: events }));
}

before(() => {
  copy("examples/lttng-small", "trace");
  copy("fuzz/corpus/cpel/le_basic", "log.cpel");
  app("app.json", 1);
  app("slow.json", 1.5);
  const updates = Array.from({ length: 1000 }, (_, at) => `${1000000020 + at * 60}:${at % 50}:${at}`);
  const archives = ["RRA:AVERAGE:0.5:1:200", "RRA:AVERAGE:0.5:10:200", "RRA:MIN:0.5:10:200", "RRA:MAX:0.5:10:200"];
  run("rrd", "create", "load.rrd", "--start", "999999960", "--step", "60", "DS:v:GAUGE:120:U:U", "DS:w:GAUGE:120:U:U", ...archives);
  run("rrd", "update", "load.rrd", ...updates);
});

test("flows are arrows that brackets follow", async () => {
  const page = await open(await serve("app.json"));
  await look(page, () => kymo.actions.fit(kymo.scene.begin, kymo.scene.begin + 1000000n));
  await pick(page, "main", 206000);
  await page.waitForFunction(() => kymo.drawn.flows === 1);
  await page.keyboard.press("]");
  await page.waitForFunction(() => kymo.view.event.time === kymo.scene.begin + 231000n);
  assert.match(await look(page, () => kymo.scene.byKey.get(kymo.view.event.track).name), /worker/);
  await page.keyboard.press("[");
  await page.waitForFunction(() => kymo.view.event.time === kymo.scene.begin + 206000n);
  await page.close();
});

test("the value of a field is followed and chased", async () => {
  const page = await open(await serve("app.json"));
  await look(page, () => kymo.actions.fit(kymo.scene.begin, kymo.scene.begin + 4000000n));
  await pick(page, "main", 203000);
  await page.waitForSelector("#panel .details");
  const row = page.locator("#panel tr", { has: page.locator("th", { hasText: /^round$/ }) });
  await row.getByRole("button", { name: "follow" }).or(row.locator("button", { hasText: "follow" })).first().click();
  await page.waitForFunction(() => kymo.drawn.flows > 2);
  // Odd and even rounds are on different threads: of five values, each comes to both.
  const stops = await look(page, () => kymo.flows.list[0].map(([track, time]) => [track, Number(time - kymo.scene.begin) % 1000000]));
  assert.ok(stops.length === 20 && new Set(stops.map((stop) => stop[0])).size === 2, JSON.stringify(stops));
  await row.locator("button", { hasText: "chase" }).click();
  await page.waitForFunction(() => kymo.view.raised.length === 2);
  await page.keyboard.press("Shift+C");
  assert.deepEqual(await look(page, () => kymo.view.raised), []);
  await page.close();
});

test("times without events are folded, and found again", async () => {
  const page = await open(await serve("app.json"));
  const wide = await look(page, () => kymo.view.span);
  await page.keyboard.press("v");
  await page.waitForFunction(() => kymo.view.fold && kymo.drawn.folds === 1);
  await settled(page);
  const folded = await look(page, () => ({ span: kymo.view.span, slices: kymo.drawn.slices }));
  assert.ok(folded.span < wide / 5 && folded.slices > 100, JSON.stringify(folded));
  // Both halves are drawn: left and right of the fold.
  const painted = await look(page, () => {
    const canvas = document.getElementById("tracks");
    const row = kymo.rows().find((row) => row.track?.name === "main");
    const ratio = canvas.width / canvas.clientWidth;
    const pixels = canvas.getContext("2d").getImageData(0, Math.round((row.top + 8) * ratio), canvas.width, 1).data;
    const halves = [0, 0];
    for (let x = 0; x < canvas.width; x++) if (pixels[x * 4 + 3] > 200 && Math.abs(pixels[x * 4] - pixels[x * 4 + 2]) > 60) halves[x < canvas.width / 2 ? 0 : 1]++;
    return halves;
  });
  assert.ok(painted[0] > 20 && painted[1] > 20, painted.join());
  await settled(page);
  await page.keyboard.press("Control+z");
  assert.equal(await look(page, () => kymo.view.fold), false);
  await page.close();
});

test("classes are hidden, and colours follow a field", async () => {
  const page = await open(await serve("app.json"));
  await look(page, () => kymo.actions.fit(kymo.scene.begin, kymo.scene.begin + 1000000n));
  await settled(page);
  const all = await look(page, () => kymo.drawn.slices);
  await page.keyboard.press("9");
  await page.locator(".checks label", { hasText: "frame" }).locator("input").uncheck();
  await page.waitForFunction((all) => kymo.lens.done && kymo.lens.job && kymo.drawn.slices > 0 && kymo.drawn.slices < all, all);
  assert.equal(await look(page, () => kymo.lens.count > 0 && kymo.view.off.join()), "frame");
  await page.selectOption("select[aria-label='Colour by']", "field:round");
  await page.waitForFunction(() => kymo.lens.done && kymo.lens.values.length === 5);
  await page.getByRole("button", { name: "All", exact: true }).click();
  await page.selectOption("select[aria-label='Colour by']", "class");
  await page.waitForFunction((all) => !kymo.lens.job && kymo.drawn.slices === all, all);
  await page.close();
});

test("a database has a line for each source, in the resolution of the view, or all in one chart", async () => {
  const page = await open(await serve("load.rrd"));
  const names = () => look(page, () => kymo.rows().filter((row) => row.track).map((row) => row.label));
  assert.deepEqual(await names(), ["v", "w"]);
  const coarse = await look(page, () => kymo.drawn.bins);
  // The fine archive begins later: what is before it is of the coarse one.
  assert.ok((await look(page, () => kymo.drawn.lines)) === 4);
  await page.keyboard.press("Shift+O");
  await page.waitForFunction(() => kymo.rows().filter((row) => row.track).length === 8);
  await page.keyboard.press("Shift+O");
  await look(page, () => kymo.actions.select(kymo.rows()[0].key));
  await page.keyboard.press("o");
  await settled(page);
  assert.deepEqual(await names(), ["2 series"]);
  assert.ok((await look(page, () => kymo.drawn.lines)) === 4 && coarse > 0);
  await page.close();
});

test("latencies have percentiles, a histogram, and worst cases that show their place", async () => {
  const page = await open(await serve("app.json"));
  await page.keyboard.press("6");
  await page.waitForSelector("#worst button");
  const text = await page.textContent("#panel");
  assert.match(text, /p99.9/);
  assert.match(text, /≥ 50 µs/);
  const span = await look(page, () => kymo.view.span);
  await page.locator("#worst button").first().click();
  await page.waitForFunction((span) => kymo.view.span < span / 100 && kymo.view.event, span);
  await page.fill("input[aria-label='start']", "post");
  await page.press("input[aria-label='start']", "Enter");
  await page.waitForSelector("#panel .bad");
  assert.match(await page.textContent("#panel .bad"), /both the start and the end/);
  await page.selectOption("select[aria-label='What to measure']", "states");
  await page.fill("input[aria-label='state begins with']", "tick");
  await page.press("input[aria-label='state begins with']", "Enter");
  await page.waitForFunction(() => /states/.test(document.getElementById("panel").textContent));
  await page.close();
});

test("latencies are grouped, and each group shows its longest case", async () => {
  const page = await open(await serve("app.json"));
  await page.keyboard.press("6");
  await page.waitForSelector("#worst button");
  await page.fill("input[aria-label='groups by']", "name");
  await page.press("input[aria-label='groups by']", "Enter");
  await page.waitForSelector("#groups tbody tr");
  const lines = await look(page, () => [...document.querySelectorAll("#groups tbody tr")].map((row) => [...row.children].slice(0, 3).map((cell) => cell.textContent)));
  assert.deepEqual(lines, [["frame", "100", "10 ms"], ["layout", "100", "4 ms"], ["job 0", "34", "1.7 ms"], ["job 1", "33", "1.65 ms"], ["job 2", "33", "1.65 ms"]]);
  const span = await look(page, () => kymo.view.span);
  await page.locator("#groups button").last().click();
  await page.waitForFunction((span) => kymo.view.span < span / 100, span);
  await page.close();
});

test("states have percentiles, a histogram, and longest ones that show their place", async () => {
  const page = await open(await serve("app.json"));
  await page.keyboard.press("6");
  await page.selectOption("select[aria-label='What to measure']", "states");
  await page.fill("input[aria-label='state begins with']", "tick");
  await page.press("input[aria-label='state begins with']", "Enter");
  await page.waitForSelector("#worst tbody tr");
  // 99 states between 100 ticks: 200 µs each, but one over the pause.
  const first = await look(page, () => [...document.querySelector("#worst tbody tr").children].map((cell) => cell.textContent));
  assert.equal(first[0], "2.0002 s");
  const heads = await look(page, () => [...document.querySelectorAll("table[aria-label=States] th")].map((cell) => cell.textContent).join());
  assert.equal(heads, "track,states,total,share,mean,deviation,min,p50,p95,p99,max");
  const lines = await look(page, () => [...document.querySelectorAll("table[aria-label=States] tbody tr")].map((row) => [row.children[1].textContent, row.children[7].textContent]));
  assert.deepEqual(lines.map(([count]) => Number(count)).sort(), [49, 50]);
  // Percentiles are of a histogram: within 0.4 %.
  assert.ok(lines.every(([, p50]) => /^200(\.\d+)? µs$/.test(p50)), JSON.stringify(lines));
  assert.equal(await look(page, () => [...document.querySelectorAll(".histogram tr")].reduce((sum, row) => sum + Number(row.children[2].textContent), 0)), 99);
  await page.locator("#worst button").first().click();
  await page.waitForFunction(() => kymo.view.marks.length === 2 && Number(kymo.view.marks[1] - kymo.view.marks[0]) === 2000200000);
  await page.close();
});

test("a profile is a flame graph that the keyboard zooms", async () => {
  const page = await open(await serve("app.json"));
  await page.keyboard.press("7");
  await page.waitForFunction(() => kymo.flame.boxes === 6);
  assert.match(await page.textContent("table[aria-label=Profile]"), /frame1006 ms/);
  await page.focus("canvas.flame");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => kymo.flame.zoomed === "frame" && kymo.flame.boxes === 3);
  await page.keyboard.press("Escape");
  await page.waitForFunction(() => kymo.flame.boxes === 6);
  await page.close();
});

test("anomalies are found per track, for any k", async () => {
  const page = await open(await serve("app.json"));
  await page.keyboard.press("3");
  await page.waitForSelector("#sigma");
  await page.waitForSelector("[aria-label='Next anomaly: size']");
  await page.fill("#sigma", "3");
  await page.press("#sigma", "Enter");
  // The one of 9,999 is on the other thread than the first line's.
  await page.locator("tr", { hasText: "9 999" }).locator("[aria-label='Next anomaly: size']").click();
  await page.waitForFunction(() => kymo.search.done && kymo.view.event);
  assert.equal(await look(page, () => Number(kymo.view.event.time - kymo.scene.begin)), (70 * 200 + 2e6 + 3) * 1000);
  assert.equal(await look(page, () => kymo.search.count), 1);
  await page.close();
});

test("the table has columns of choice, follows the view, and leads it", async () => {
  const page = await open(await serve("app.json"));
  await page.keyboard.press("2");
  await page.waitForSelector("#panel tbody tr");
  await page.getByRole("button", { name: "Columns…" }).click();
  await page.locator("dialog label", { hasText: "size" }).locator("input").check();
  await page.keyboard.press("Escape");
  await page.waitForFunction(() => [...document.querySelectorAll("#panel th")].some((cell) => cell.textContent === "size"));
  await settled(page);
  await look(page, () => kymo.actions.fit(kymo.scene.end - 2000000n, kymo.scene.end));
  await page.waitForFunction(() => {
    const first = document.querySelector("#panel tbody tr:nth-child(105) td")?.textContent ?? "";
    return first.startsWith("+2.0");
  });
  await settled(page);
  const begin = await look(page, () => String(kymo.view.begin));
  await page.evaluate(() => (document.getElementById("panel").scrollTop = 0));
  await page.waitForFunction((begin) => String(kymo.view.begin) !== begin, begin);
  await page.close();
});

test("details have types and places", async () => {
  const page = await open(await serve("trace"));
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press(".");
  await page.waitForFunction(() => /^byte \d+/.test(document.getElementById("place")?.textContent ?? ""));
  assert.match(await page.textContent("#panel"), /(unsigned|signed) integer, \d+ bits/);
  await page.close();
});

test("the schema of each recording lists its classes with their fields", async () => {
  const page = await open(await serve("trace", "app.json"));
  await page.keyboard.press("4");
  const schemas = page.locator("#panel details");
  assert.equal(await schemas.count(), 2);
  await schemas.first().locator("summary").click();
  await page.waitForSelector("#panel details table");
  const text = await schemas.first().textContent();
  assert.match(text, /unsigned integer, \d+ bits/);
  const names = await look(page, () => [...document.querySelectorAll("#panel details[open] h4 span:first-child")].map((title) => title.textContent));
  assert.deepEqual(names, await look(page, () => kymo.scene.info.recordings[0].classes));
  await page.close();
});

test("an event of the table is the selected one among those of its time", async () => {
  const twins = { traceEvents: [1, 2, 3].map((round) => ({ ph: "i", pid: 1, tid: 2, ts: 5, name: `twin ${round}`, s: "t" })) };
  writeFileSync(join(work, "twins.json"), JSON.stringify(twins));
  const page = await open(await serve("twins.json"));
  await page.keyboard.press("2");
  await page.locator("#panel tbody tr").nth(1).click();
  await page.waitForFunction(() => kymo.view.event?.nth === 1);
  await page.focus("#tracks");
  await page.keyboard.press("1");
  await page.waitForFunction(() => document.querySelector("#panel strong")?.textContent === "twin 2");
  await page.keyboard.press(".");
  await page.waitForFunction(() => document.querySelector("#panel strong")?.textContent === "twin 3");
  await page.close();
});

test("recordings are compared, stacked and as differences", async () => {
  const page = await open(await serve("app.json", "slow.json"));
  await act(page, "Compare the recordings");
  await settled(page);
  const labels = await look(page, () => kymo.rows().filter((row) => row.depth === 0).map((row) => row.label));
  assert.deepEqual(labels, ["A  app.json", "B  slow.json"]);
  await page.selectOption("#compare-what", "latency");
  await page.waitForSelector("#differences");
  assert.match(await page.textContent("#differences"), /max100 µs150 µs\+50 µs\s+\+50.0 %/);
  await page.selectOption("#compare-what", "profile");
  await page.waitForFunction(() => kymo.flame.boxes > 4 && document.querySelector("#differences"));
  assert.match(await page.textContent("#differences"), /frame5.945 ms10.895 ms\+4.95 ms/);
  await page.selectOption("#compare-what", "stats");
  await page.waitForFunction(() => /duration: mean/.test(document.querySelector("#differences")?.textContent ?? ""));
  await page.focus("#tracks");
  await page.keyboard.press("y");
  assert.equal(await look(page, () => kymo.view.stacked), false);
  await page.close();
});

test("two areas of a recording are drawn below each other at their marks", async () => {
  const page = await open(await serve("app.json"));
  for (const from of [0n, 2010000000n]) {
    await look(page, (from) => kymo.actions.area(kymo.scene.begin + BigInt(from), kymo.scene.begin + BigInt(from) + 5000000n), String(from));
    await page.focus("#tracks");
    await page.keyboard.press("j");
  }
  assert.equal(await look(page, () => kymo.view.sides.length), 2);
  await page.focus("#tracks");
  await page.keyboard.press("y");
  await settled(page);
  const shifts = await look(page, () => [...new Set(kymo.rows().filter((row) => row.track).map((row) => String(row.shift)))]);
  assert.deepEqual(shifts, ["0", "-2010000000"]);
  assert.ok((await look(page, () => kymo.drawn.slices)) > 100);
  await page.close();
});

test("a recording is moved by the marks, and back", async () => {
  const page = await open(await serve("app.json", "slow.json"));
  await look(page, () => {
    kymo.view.marks = [kymo.scene.begin, kymo.scene.begin + 1500000000n];
    kymo.actions.select(kymo.rows().find((row) => row.label.includes("slow")).key);
  });
  await page.keyboard.press("e");
  await page.waitForFunction(() => kymo.rows().some((row) => row.shift === 1500000000n));
  assert.match(await page.textContent("#status"), /--offset slow.json=1.500000000s/);
  await settled(page);
  await page.keyboard.press("Control+z");
  assert.ok(await look(page, () => kymo.rows().every((row) => row.shift === 0n)));
  await page.close();
  // It is what the option does.
  run("print", "--offset", "slow.json=1.500000000s", "slow.json");
});

test("lower case finds upper case, unless case is exact", async () => {
  const page = await open(await serve("app.json"));
  const count = async (text) => {
    await page.fill("#text", text);
    await page.press("#text", "Enter");
    await page.waitForFunction((text) => kymo.view.search === text && kymo.search.done && kymo.search.job, text);
    return look(page, () => kymo.search.count);
  };
  assert.equal(await count("plain"), 99);
  assert.equal(await count("Plain"), 99);
  assert.equal(await count("PLAIN"), 0);
  await act(page, "Search tells upper from lower case");
  assert.equal(await count("plain "), 0);
  await page.close();
});

test("hostile values change nothing but their label", async () => {
  const page = await open(await serve("app.json"));
  await pick(page, "worker", 3000);
  await page.waitForSelector("#panel .details");
  const row = page.locator("#panel tr", { has: page.locator("th", { hasText: /^text$/ }) });
  await row.locator("button", { hasText: "follow" }).click();
  await page.waitForFunction(() => /1 events/.test(document.getElementById("status").textContent));
  assert.equal(await page.locator("#panel b").count(), 0);
  await page.close();
});

test("a view of a link that is not right is no harm", async () => {
  const address = await serve("app.json");
  const state = { sides: [1, { begin: "x" }], slews: [["a", 1]], off: [1, "frame"], asked: { start: 5 }, colour: "field:`", columns: [{}], sigma: 1e99, stacked: true, fold: true };
  const page = await open(`${address}#${encodeURIComponent(JSON.stringify(state))}`);
  assert.deepEqual(await look(page, () => [kymo.view.sides.length, kymo.view.slews.length, kymo.view.off.join(), kymo.view.columns.length]), [0, 0, "frame", 0]);
  for (const key of ["6", "7", "8", "9", "2", "3"]) {
    await page.keyboard.press(key);
    await settled(page);
  }
  await page.close();
});

test("what is moved is moved in the table, the search and the details, too", async () => {
  const page = await open(await serve("app.json", "slow.json"));
  const times = () => page.locator("#panel tbody tr td:first-child").allTextContents();
  await look(page, () => kymo.actions.zone("relative"));
  // All of one recording comes after the other one.
  const far = await look(page, () => {
    const far = kymo.scene.end - kymo.scene.begin + 1000000000n;
    kymo.view.slews = [["r0", far]];
    kymo.actions.relaid();
    kymo.ACTIONS.find((action) => action.name === "Show all").run();
    return String(far);
  });
  await page.keyboard.press("2");
  await page.waitForSelector("#panel tbody tr td");
  const count = await look(page, () => kymo.scene.tracks.reduce((sum, track) => sum + (track.recording === 0 ? 0 : track.rows), 0));
  const names = await page.locator("#panel tbody tr td:nth-child(2)").allTextContents();
  assert.ok(names.slice(0, Math.min(count, 50)).every((name) => name === "slow.json"), names.slice(0, 60).join());
  const sorted = (await times()).map(parseFloat);
  assert.ok(sorted.length > 50 && sorted.every((time, at) => !at || time >= sorted[at - 1]), sorted.slice(0, 20).join());
  // From the end of what is not moved, the next hit is the first one of what is.
  await page.fill("#text", "frame");
  await page.press("#text", "Enter");
  await page.waitForFunction(() => kymo.search.done && kymo.search.count && kymo.drawn.strip > 0 && kymo.view.event);
  await settled(page);
  const hit = await look(page, async (far) => {
    kymo.view.event = null;
    const at = kymo.scene.begin + BigInt(far) - 500000000n;
    kymo.view.begin = at;
    await kymo.actions.nextHit(false);
    const track = kymo.scene.byKey.get(kymo.view.event.track);
    return [track.recording, kymo.view.event.time < at, kymo.view.begin <= kymo.view.event.time + BigInt(far)];
  }, far);
  assert.deepEqual(hit, [0, true, true]);
  await page.keyboard.press("Escape");
  await page.locator("#tab-details").click();
  await page.waitForSelector("#panel .details");
  assert.match(await page.textContent("#panel .details"), /shown at.*moved by \+/s);
  // The strip has hits where they are shown: none in the part before.
  await look(page, () => kymo.ACTIONS.find((action) => action.name === "Show all").run());
  await page.locator("#tab-latency").click();
  await page.waitForFunction(() => /--offset/.test(document.getElementById("panel").textContent));
  await page.close();
});

test("a strip shows how many hits there are where", async () => {
  const page = await open(await serve("app.json"));
  await page.fill("#text", "frame");
  await page.press("#text", "Enter");
  await page.waitForFunction(() => kymo.search.done && kymo.drawn.strip > 0);
  await page.waitForFunction(() => kymo.search.strip[0].density.reduce((sum, count) => sum + count, 0) === kymo.search.count);
  const ink = () => look(page, () => {
    const canvas = document.getElementById("ruler");
    const { data } = canvas.getContext("2d").getImageData(0, canvas.height - 3, canvas.width, 1);
    return Array.from({ length: canvas.width }, (_, at) => data[at * 4 + 3]).filter((alpha) => alpha > 60).length;
  });
  assert.ok((await ink()) > 0);
  await page.focus("#tracks");
  await page.keyboard.press("Escape");
  await page.waitForFunction(() => kymo.drawn.strip === 0);
  assert.equal(await ink(), 0);
  await page.close();
});
