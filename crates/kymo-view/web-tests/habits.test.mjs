// What people are used to from g2 (rows of its features are named `g2 N.M`), Perfetto, Trace Compass and KernelShark. The last
// test compares with the tables of docs/view.md: each row is in a test, or there with the reason.

import assert from "node:assert/strict";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { act, copy, look, open, press, root, run, serve, settled, work } from "./harness.mjs";

/** A log of VPP with two tracks; the data of the event `enqueue` are 100 to 108, and once 9,999. */
before(() => {
  copy("fuzz/corpus/cpel/le_basic", "log.cpel");
  run("convert", "--to", "elog", "--output", "log.elog", "log.cpel");
  copy("fuzz/corpus/gist/whole", "log.gist");
  copy("examples/lttng-small", "trace");
  const events = [
    { ph: "M", name: "thread_name", pid: 1, tid: 2, args: { name: "rx" } }, { ph: "M", name: "thread_name", pid: 1, tid: 3, args: { name: "worker" } },
    { ph: "M", name: "thread_name", pid: 1, tid: 4, args: { name: "tx" } },
  ];
  for (let at = 0; at < 60; at++) {
    events.push({ ph: "i", s: "t", pid: 1, tid: 2, ts: at * 100, name: "enqueue", args: { datum: at === 40 ? 9999 : 100 + (at % 9), message: at } });
    events.push({ ph: "i", s: "t", pid: 1, tid: 4, ts: at * 100 + 20, name: "send", args: { message: at } });
    events.push({ ph: "i", s: "t", pid: 1, tid: 3, ts: at * 100 + 50, name: at % 2 ? "dequeue" : "enqueue", args: { message: at } });
  }
  writeFileSync(join(work, "app.json"), JSON.stringify({ traceEvents: events }));
  writeFileSync(join(work, "one.json"), JSON.stringify({ traceEvents: [{ ph: "i", s: "t", pid: 1, tid: 1, ts: 5, name: "alone" }] }));
});

const view = (page) => look(page, () => ({ begin: Number(kymo.view.begin - kymo.scene.begin), span: kymo.view.span, scroll: kymo.view.scroll }));
const order = (page) => look(page, () => kymo.rows().filter((row) => row.track).map((row) => row.label));
const near = (a, b, room = 2) => assert.ok(Math.abs(a - b) <= room, `${a} is not about ${b}`);
/** Where a track is on the page, in the middle. */
const placeOf = (page, label) => look(page, (label) => {
  const row = kymo.rows().find((row) => row.label === label);
  const box = document.getElementById("tracks").getBoundingClientRect();
  return { y: box.top + row.top - kymo.view.scroll + row.height / 2, left: box.left, width: box.width };
}, label);

test("logs of VPP of all kinds are on one time line, as others are (g2 1.1, 1.2, 1.3, 1.9, 1.11, 7.3)", async () => {
  const page = await open(await serve("--clock", "1000000", "log.cpel", "log.elog", "log.gist", "app.json"));
  const shown = await look(page, () => ({ formats: kymo.scene.info.recordings.map((recording) => recording.format.split(" ")[0]), tracks: new Set(kymo.scene.tracks.map((track) => track.recording)).size, title: document.title }));
  assert.deepEqual(shown.formats, ["cpel", "elog", "gist", "chrome"]);
  assert.equal(shown.tracks, 4);
  assert.match(shown.title, /log\.cpel, log\.elog, log\.gist/);
  await page.close();
});

test("a clock is given when starting (g2 1.4)", async () => {
  const spans = [];
  for (const clock of ["1000000", "2000000"]) {
    const page = await open(await serve("--clock", clock, "log.gist"));
    spans.push(await look(page, () => Number(kymo.scene.end - kymo.scene.begin)));
    await page.close();
  }
  near(spans[0], spans[1] * 2, 2000);
});

test("events show the text of their definition, and their code where there is none (g2 1.6, 1.7, 1.8, 4.1, 4.3)", async () => {
  const page = await open(await serve("log.cpel"));
  await look(page, () => kymo.actions.selectEvent(kymo.keyOf(kymo.scene.tracks[0]), kymo.scene.begin));
  await settled(page);
  const [shown, printed] = [await page.textContent("#panel"), run("print", "--clock-gmt", "--format", "json", "log.cpel").stdout.split("\n")[0]];
  const event = JSON.parse(printed);
  for (const word of [event.name ?? event.event, String(event.timestamp)].filter(Boolean)) assert.ok(shown.includes(String(word)), `${word} in ${shown}`);
  await page.close();
});

test("times count from the first event (g2 1.10), in UTC or locally; the ruler has them (g2 2.3)", async () => {
  const page = await open(await serve("app.json", "trace"), { timezoneId: "Asia/Tokyo" });
  await page.selectOption("#zone", "utc");
  await press(page, "2");
  await settled(page);
  const times = [];
  for (const zone of ["relative", "utc", "local"]) {
    await page.selectOption("#zone", zone);
    await settled(page);
    times.push(await page.textContent("#panel tbody td"));
  }
  assert.match(times[0], /^\+0/);
  assert.notEqual(times[1], times[2]);
  await page.focus("#tracks");
  await press(page, "Shift+Z");
  assert.equal(await look(page, () => kymo.view.zone), "utc");
  await page.close();
});

test("what was arranged is there again (g2 1.12)", async () => {
  const cache = join(work, "cache/index");
  const page = await open(await serve("--cache", cache, "app.json"));
  await press(page, "ArrowDown", "ArrowDown", "p", "t", "Shift+L", "Shift+K");
  await settled(page);
  await page.close();
  const again = await open(await serve("--cache", cache, "app.json"));
  assert.deepEqual(await look(again, () => [kymo.view.pinned.length, kymo.view.scale, kymo.view.theme, kymo.view.colour]), [1, 1.25, "light", "track"]);
  await again.close();
});

test("tracks go down and time to the right; all is in view at first (g2 2.1, 2.4), however few events there are", async () => {
  const page = await open(await serve("app.json"));
  const { begin, span } = await view(page);
  assert.ok(begin <= 0 && begin + span >= 5950000, `${begin} ${span}`);
  const tops = await look(page, () => kymo.rows().map((row) => row.top));
  assert.ok(tops.every((top, at) => at === 0 || top > tops[at - 1]));
  await page.close();
  const one = await open(await serve("one.json"));
  assert.ok((await view(one)).span >= 1000);
  assert.equal(await look(one, () => kymo.drawn.bins), 1);
  await one.close();
});

test("low tracks have no names, and still their events (g2 2.2, 2.5, 2.6, 3.7)", async () => {
  const page = await open(await serve("app.json"));
  const high = await look(page, () => kymo.rows().find((row) => row.track).height);
  await press(page, ..."ggggggg");
  await settled(page);
  const low = await look(page, () => ({ height: kymo.rows().find((row) => row.track).height, bins: kymo.drawn.bins }));
  assert.ok(low.height < 12 && low.bins > 100 && high >= 24, JSON.stringify([low, high]));
  assert.equal(await page.locator(".row.track .name").first().evaluate((element) => getComputedStyle(element).visibility), "hidden");
  await press(page, ..."tttttttttttttttt");
  assert.ok((await look(page, () => kymo.rows().find((row) => row.track).height)) > high * 3);
  await page.close();
});

test("a window of another size shows more tracks (g2 2.8), and nothing is drawn where nothing changes (g2 2.9)", async () => {
  const page = await open(await serve("app.json"));
  await page.setViewportSize({ width: 700, height: 1200 });
  // The page hears of it with one of its next frames.
  await page.waitForFunction(() => { const canvas = document.getElementById("tracks"); return canvas.clientHeight > 600 && canvas.width === canvas.clientWidth; });
  await settled(page);
  const canvas = await look(page, () => { const tracks = document.getElementById("tracks"); return [tracks.width, tracks.clientWidth, tracks.clientHeight]; });
  assert.ok(canvas[0] === canvas[1] && canvas[2] > 600, canvas.join());
  await page.waitForFunction(() => kymo.scene.info.settled);
  const frames = await look(page, async () => {
    const before = kymo.drawn.frames;
    for (let frame = 0; frame < 30; frame++) await new Promise((done) => requestAnimationFrame(done));
    return kymo.drawn.frames - before;
  });
  // It asks now and then whether there is more.
  assert.ok(frames <= 2, String(frames));
  await page.close();
});

test("keys zoom and move by a sixth, to the beginning and to the end (g2 3.1, 3.2, 3.3)", async () => {
  const page = await open(await serve("app.json"));
  const all = await view(page);
  await press(page, "w");
  const zoomed = await view(page);
  near(zoomed.span, (all.span * 2) / 3);
  near(zoomed.begin, all.begin + all.span / 6);
  await press(page, "d");
  near((await view(page)).begin, zoomed.begin + zoomed.span / 6);
  await press(page, "a", "ArrowLeft", "ArrowRight");
  near((await view(page)).begin, zoomed.begin);
  await press(page, "s");
  near((await view(page)).span, all.span);
  await press(page, "w", "w", "End");
  const end = await view(page);
  near(end.begin + end.span * 0.95, 5950000 + 50000, 60000);
  await press(page, "Home");
  near((await view(page)).span, all.span);
  // The overview moves the view, too.
  await press(page, "w", "w", "w");
  const box = await page.locator("#overview").boundingBox();
  await page.mouse.click(box.x + box.width / 2, box.y + 20);
  const there = await view(page);
  near(there.begin + there.span / 2, 2975000, 40000);
  await page.mouse.dblclick(box.x + box.width / 2, box.y + 20);
  near((await view(page)).span, all.span, all.span / 50);
  await page.close();
});

test("tracks are scrolled by keys and wheel (g2 3.4, 3.5, 3.6)", async () => {
  const page = await open(await serve("app.json", "log.cpel", "trace"), { viewport: { width: 900, height: 480 } });
  await press(page, "Ctrl+End".replace("Ctrl", "Control"));
  const last = (await view(page)).scroll;
  assert.ok(last > 0);
  await press(page, "Control+Home");
  assert.equal((await view(page)).scroll, 0);
  await press(page, "PageDown");
  assert.ok((await view(page)).scroll > 0);
  await press(page, "PageUp");
  const { y, left } = await placeOf(page, "rx");
  await page.mouse.move(left + 200, y);
  await page.mouse.wheel(0, 30);
  await page.waitForFunction(() => kymo.view.scroll === 30);
  await act(page, "g2's keys (r and f move through tracks)");
  await press(page, "f", "f");
  assert.equal(await look(page, () => kymo.rows().findIndex((row) => row.key === kymo.selected.row)), 1);
  await press(page, "r");
  assert.equal(await look(page, () => kymo.rows().findIndex((row) => row.key === kymo.selected.row)), 0);
  await page.close();
});

test("a box that is dragged is zoomed to (g2 3.8), a track pad and a wheel zoom at the mouse and move", async () => {
  const page = await open(await serve("app.json"));
  const { y, left, width } = await placeOf(page, "worker");
  const all = await view(page);
  await page.mouse.move(left + width / 4, y);
  await page.mouse.down({ button: "right" });
  await page.mouse.move(left + width / 2, y, { steps: 3 });
  assert.ok(await look(page, () => kymo.drawn.frames > 0));
  await page.mouse.up({ button: "right" });
  const box = await view(page);
  near(box.begin, all.begin + all.span / 4, all.span / 200);
  near(box.span, all.span / 4, all.span / 200);
  // Pinching a track pad comes as a wheel with Ctrl.
  await page.mouse.move(left + width / 4, y);
  const fixed = box.begin + box.span / 4;
  await page.keyboard.down("Control");
  await page.mouse.wheel(0, -200);
  await page.waitForFunction((span) => kymo.view.span < span * 0.9, box.span);
  await page.keyboard.up("Control");
  const pinched = await view(page);
  near(pinched.begin + pinched.span / 4, fixed, pinched.span / 100);
  // Sideways it moves, as with Shift.
  await page.mouse.wheel(60, 0);
  await page.waitForFunction((begin) => Number(kymo.view.begin - kymo.scene.begin) > begin, pinched.begin);
  const moved = await view(page);
  await page.keyboard.down("Shift");
  await page.mouse.wheel(0, -60);
  await page.waitForFunction((begin) => Number(kymo.view.begin - kymo.scene.begin) < begin, moved.begin);
  // Shift and drag, or the middle button, move what is below the mouse with it.
  const before = await view(page);
  await page.mouse.down();
  await page.mouse.move(left + width / 4 + 100, y, { steps: 2 });
  await page.mouse.up();
  await page.keyboard.up("Shift");
  near((await view(page)).begin, before.begin - (before.span * 100) / width, before.span / 50);
  assert.equal(await look(page, () => kymo.view.area), null);
  await page.close();
});

test("a click selects the nearest event (g2 4.2), a double click zooms; F focuses it, and then shows all", async () => {
  const page = await open(await serve("app.json"));
  await look(page, () => kymo.actions.fit(kymo.scene.begin, kymo.scene.begin + 400000n));
  await settled(page);
  const { y } = await placeOf(page, "rx");
  const x = await look(page, () => {
    const box = document.getElementById("tracks").getBoundingClientRect();
    return box.left + (Number(kymo.scene.begin + 100000n - kymo.view.begin) / kymo.view.span) * box.width;
  });
  await page.mouse.click(x + 4, y);
  await page.waitForFunction(() => kymo.view.event?.time === kymo.scene.begin + 100000n);
  assert.match(await page.textContent("#panel"), /enqueue/);
  const wide = await view(page);
  await page.mouse.dblclick(x + 40, y);
  assert.ok((await view(page)).span < wide.span / 3);
  await settled(page);
  const zoomed = await view(page);
  await press(page, "f");
  assert.notEqual((await view(page)).span, zoomed.span);
  await press(page, "f");
  near((await view(page)).span, 5950000 * 1.04, 120000);
  const ruler = await page.locator("#ruler").boundingBox();
  await press(page, "w");
  await page.mouse.dblclick(ruler.x + 300, ruler.y + 10);
  near((await view(page)).span, 5950000 * 1.04, 120000);
  await page.close();
});

test("classes are ticked on and off (g2 4.4); what is hidden is still found (g2 4.5)", async () => {
  const page = await open(await serve("app.json"));
  await press(page, "9");
  assert.deepEqual(await page.locator(".checks label").allTextContents(), [" dequeue", " enqueue", " send"]);
  await page.getByRole("button", { name: "None", exact: true }).click();
  await page.waitForFunction(() => kymo.lens.done && kymo.drawn.bins === 0);
  await page.locator(".checks label", { hasText: "send" }).locator("input").check();
  await page.waitForFunction(() => kymo.lens.done && kymo.lens.count === 60 && kymo.drawn.bins > 0);
  await page.fill("#text", "dequeue");
  await page.press("#text", "Enter");
  await page.waitForFunction(() => kymo.search.done && kymo.search.count === 30);
  await page.close();
});

test("a search by code, name, text or value goes on from the last hit, in both directions, and says where none is left (g2 2.10, 5.1, 5.2, 5.3, 5.4, 5.5)", async () => {
  const page = await open(await serve("app.json"));
  for (const [mode, text, count] of [["name", "enq*", 90], ["text", "dequeue", 30], ["where", "message == 7", 3]]) {
    await page.selectOption("#mode", mode);
    await page.fill("#text", text);
    await page.press("#text", "Enter");
    await page.waitForFunction(([text, count]) => kymo.view.search === text && kymo.search.done && kymo.search.count === count && kymo.view.event, [text, count]);
  }
  const at = () => look(page, () => Number(kymo.view.event.time - kymo.scene.begin) / 1000);
  await page.waitForFunction(() => kymo.view.event.time - kymo.scene.begin === 700000n);
  const seen = [await at()];
  for (const key of ["Enter", "Enter", "Shift+Enter"]) {
    const before = await at();
    await page.press("#text", key);
    await page.waitForFunction((before) => Number(kymo.view.event.time - kymo.scene.begin) / 1000 !== before, before);
    seen.push(await at());
  }
  assert.deepEqual(seen, [700, 720, 750, 720]);
  await press(page, "Enter", "Enter");
  await page.waitForFunction(() => /No hit after/.test(document.getElementById("status").textContent));
  await page.close();
});

test("tracks are in the order of their names (g2 6.1), of an event (g2 6.2), of a value (g2 6.3), one first (g2 6.4), and as before (g2 6.5)", async () => {
  const page = await open(await serve("app.json"));
  assert.deepEqual(await order(page), ["rx", "worker", "tx"]);
  const select = (name, ns) => look(page, ([name, ns]) => kymo.actions.selectEvent(kymo.keyOf(kymo.scene.tracks.find((track) => track.name === name)), kymo.scene.begin + BigInt(ns)), [name, ns]);
  // `dequeue` is on the worker alone; `enqueue` is on the worker first, from here on.
  await select("worker", 150000);
  await press(page, "c");
  await page.waitForFunction(() => kymo.view.raised.length === 1);
  assert.deepEqual(await order(page), ["worker", "rx", "tx"]);
  await press(page, "Shift+C");
  assert.deepEqual(await order(page), ["rx", "worker", "tx"]);
  await select("tx", 720000);
  await settled(page);
  const row = page.locator("#panel tr", { has: page.locator("th", { hasText: /^message$/ }) });
  await row.locator("button", { hasText: "chase" }).click();
  await page.waitForFunction(() => kymo.view.raised.length === 2);
  assert.deepEqual(await order(page), ["tx", "worker", "rx"]);
  await press(page, "Shift+C");
  await select("tx", 720000);
  await press(page, "u");
  assert.deepEqual(await order(page), ["tx", "rx", "worker"]);
  await press(page, "Control+z");
  assert.deepEqual(await order(page), ["rx", "worker", "tx"]);
  await page.close();
});

test("a click with Ctrl buries a track, with Shift it raises it (g2 6.6); a click selects it (g2 6.7); tracks are hidden and folded (g2 6.9)", async () => {
  const page = await open(await serve("app.json"));
  const label = (name) => page.locator("#labels .name", { hasText: new RegExp(`^${name}$`) });
  await label("rx").click({ modifiers: ["Control"] });
  assert.deepEqual(await order(page), ["worker", "tx", "rx"]);
  await label("tx").click({ modifiers: ["Shift"] });
  assert.deepEqual(await order(page), ["tx", "worker", "rx"]);
  await press(page, "Control+ArrowDown");
  const { y, left } = await placeOf(page, "worker");
  await page.mouse.click(left + 10, y);
  assert.match(await look(page, () => kymo.selected.row), /3$/);
  await press(page, "h");
  assert.deepEqual(await order(page), ["tx", "rx"]);
  await press(page, "Shift+H");
  await press(page, "Shift+F");
  assert.deepEqual(await order(page), []);
  await press(page, "Shift+U");
  assert.equal((await order(page)).length, 3);
  await page.fill("#filter", "tx");
  assert.deepEqual(await order(page), ["tx"]);
  await page.close();
});

test("colours are of the names of tracks, the same in all recordings (g2 6.8)", async () => {
  const page = await open(await serve("app.json", "trace"));
  await act(page, "g2's keys (r and f move through tracks)");
  await press(page, "c");
  assert.equal(await look(page, () => kymo.view.colour), "track");
  await settled(page);
  const ink = (page) => look(page, () => {
    const canvas = document.getElementById("tracks");
    const row = kymo.rows().find((row) => row.label === "rx");
    const pixels = canvas.getContext("2d").getImageData(0, Math.round(row.top - kymo.view.scroll + row.height - 5), canvas.width, 1).data;
    for (let at = 0; at < pixels.length; at += 4) if (pixels[at + 3] > 200 && (pixels[at] !== pixels[at + 1] || pixels[at] !== pixels[at + 2])) return [...pixels.slice(at, at + 3)].join();
    return "";
  });
  const other = await open(await serve("app.json"));
  await press(other, "Shift+K");
  await settled(other);
  assert.equal(await ink(page), await ink(other));
  assert.notEqual(await ink(page), "");
  await page.close();
});

test("two marks measure (g2 7.1), and move a track by what they measure (g2 7.2)", async () => {
  const page = await open(await serve("app.json"));
  await look(page, () => kymo.actions.fit(kymo.scene.begin, kymo.scene.begin + 1000000n));
  const { y, left, width } = await placeOf(page, "worker");
  for (const part of [0.25, 0.5]) {
    await page.mouse.move(left + width * part, y);
    await press(page, "m");
  }
  const delta = await look(page, () => Number(kymo.view.marks[1] - kymo.view.marks[0]));
  near(delta, 275000, 3000);
  await page.waitForFunction(() => /Δ 27\d/.test(document.getElementById("status").textContent));
  await page.locator("#labels .name", { hasText: /^worker$/ }).click();
  await press(page, "i");
  assert.equal(await look(page, () => Number(kymo.rows().find((row) => row.label === "worker").shift)), delta);
  await press(page, "Shift+I");
  assert.equal(await look(page, () => kymo.view.slews.length), 0);
  await press(page, "e", "8");
  assert.match(await page.textContent("#panel"), /--offset \S*app\.json=0?\.?\d+/);
  await press(page, "r");
  assert.equal(await look(page, () => Number(kymo.view.area.end - kymo.view.area.begin)), delta);
  await page.close();
});

test("snapshots go round in a ring (g2 8.1), and are in a file (g2 8.2)", async () => {
  const notes = join(work, "notes.json");
  const page = await open(await serve("--notes", notes, "app.json"));
  await press(page, "x", "w", "w", "d");
  await page.waitForFunction(() => kymo.kept.snapshots.length === 1);
  await press(page, "x");
  await page.waitForFunction(() => kymo.kept.snapshots.length === 2);
  const spans = [];
  for (let turn = 0; turn < 3; turn++) {
    await press(page, "z");
    spans.push((await view(page)).span);
  }
  assert.ok(spans[0] === spans[2] && spans[0] > spans[1], spans.join());
  assert.equal(JSON.parse(readFileSync(notes, "utf8")).snapshots.length, 2);
  await page.close();
});

test("values far above the mean are found, forwards and backwards, for any factor (g2 9.1, 9.2), of every format (g2 9.3)", async () => {
  const page = await open(await serve("app.json"));
  await press(page, "3");
  await page.locator("tr", { hasText: "9 999" }).locator("[aria-label='Next anomaly: datum']").click();
  await page.waitForFunction(() => kymo.search.done && kymo.view.event?.time === kymo.scene.begin + 4000000n);
  await page.fill("#sigma", "50");
  await page.press("#sigma", "Enter");
  await page.locator("tr", { hasText: "9 999" }).locator("[aria-label='Next anomaly: datum']").click();
  await page.waitForFunction(() => kymo.search.done && kymo.search.count === 0);
  await page.close();
});

test("how much there is, is in the panel Health (g2 9.4); damage and what cannot be is said (g2 10.3)", async () => {
  const page = await open(await serve("app.json"));
  await press(page, "4");
  assert.match(await page.textContent("#panel"), /1 recording, 3 tracks/);
  await press(page, "Shift+C", "c");
  await page.waitForFunction(() => /Select an event first/.test(document.getElementById("status").textContent));
  await page.close();
});

test("the sheet of keys has all of them (g2 10.2)", async () => {
  const page = await open(await serve("app.json"));
  await press(page, "?");
  const text = await page.textContent("dialog");
  for (const words of await look(page, () => kymo.ACTIONS.filter((action) => action.keys.length).map((action) => action.name))) assert.ok(text.includes(words), words);
  for (const words of ["Right drag", "Ctrl + wheel", "Two fingers"]) assert.ok(text.includes(words), words);
  await press(page, "Escape");
  // The palette, by both keys; the track finder.
  for (const key of [">", "Control+Shift+P"]) {
    await press(page, key);
    await page.waitForSelector("dialog[open] [role=combobox]");
    await press(page, "Escape");
  }
  await press(page, "Control+p");
  await page.keyboard.type("work");
  await press(page, "Enter");
  assert.match(await look(page, () => kymo.selected.row), /3$/);
  await page.close();
});

test("every change of the view is undone and done again", async () => {
  const page = await open(await serve("app.json", "trace"));
  const state = () => look(page, () => decodeURIComponent(location.hash));
  await settled(page);
  const states = [await state()];
  for (const keys of [["w"], ["ArrowDown", "ArrowDown", "ArrowDown", "p"], ["h"], ["Shift+F"], ["t"], ["Shift+Z"], ["Shift+L"], ["m"], ["Shift+R"], ["Control+a"], ["Shift+K"], ["Shift+O"]]) {
    await press(page, ...keys);
    await settled(page);
    states.push(await state());
    assert.notEqual(states.at(-1), states.at(-2), keys.join());
  }
  for (let at = states.length - 2; at >= 0; at--) {
    await press(page, "Control+z");
    await settled(page);
    assert.equal(await state(), states[at]);
  }
  for (let at = 1; at < states.length; at++) {
    await press(page, "Control+y");
    await settled(page);
    assert.equal(await state(), states[at]);
  }
  await page.close();
});

test("panels open by Q, the area by drag with its statistics; Escape clears", async () => {
  const page = await open(await serve("app.json"));
  const height = () => page.locator("#panels").evaluate((element) => element.clientHeight);
  const high = await height();
  await press(page, "q");
  assert.ok((await height()) < high / 2);
  await press(page, "q");
  const ruler = await page.locator("#ruler").boundingBox();
  await page.mouse.move(ruler.x + 100, ruler.y + 10);
  await page.mouse.down();
  await page.mouse.move(ruler.x + 400, ruler.y + 10, { steps: 3 });
  await page.mouse.up();
  assert.ok(await look(page, () => kymo.view.area.end > kymo.view.area.begin));
  await press(page, "Escape");
  assert.equal(await look(page, () => kymo.view.area), null);
  const { y, left } = await placeOf(page, "rx");
  await page.mouse.move(left + 100, y);
  await page.mouse.down();
  await page.mouse.move(left + 400, y, { steps: 3 });
  await page.mouse.up();
  await page.waitForFunction(() => kymo.view.tab === "stats" && /enqueue/.test(document.getElementById("panel").textContent));
  await page.close();
});

test("a table is copied as CSV", async () => {
  const page = await open(await serve("app.json"), { permissions: ["clipboard-read", "clipboard-write"] });
  await press(page, "2");
  await settled(page);
  await page.getByRole("button", { name: "Copy as CSV" }).click();
  await page.waitForFunction(async () => /^time,recording,event/.test(await navigator.clipboard.readText().catch(() => "")));
  const lines = (await look(page, () => navigator.clipboard.readText())).split("\n");
  assert.ok(lines.length > 50 && lines.some((line) => line.includes("enqueue")), lines[1]);
  await page.close();
});

test("several pages at once show the same, each by itself", async () => {
  const address = await serve("app.json");
  const pages = await Promise.all(Array.from({ length: 6 }, () => open(address)));
  await Promise.all(pages.map((page, at) => press(page, ..."wwwwww".slice(at))));
  await Promise.all(pages.map(settled));
  const spans = await Promise.all(pages.map(async (page) => (await view(page)).span));
  assert.equal(new Set(spans).size, 6);
  for (const page of pages) await page.close();
});

test("thousands of tracks are scrolled, filtered and folded", async () => {
  const events = [];
  for (let tid = 1; tid <= 5000; tid++) events.push({ ph: "i", s: "t", pid: tid % 50, tid, ts: tid, name: "e" });
  writeFileSync(join(work, "wide.json"), JSON.stringify({ traceEvents: events }));
  const page = await open(await serve("wide.json"));
  assert.equal(await look(page, () => kymo.scene.tracks.length), 5000);
  assert.ok((await page.locator("#labels .row").count()) < 60);
  await press(page, "Control+End");
  await settled(page);
  assert.ok(await look(page, () => kymo.view.scroll > 100000 && kymo.drawn.tracks > 5 && kymo.drawn.bins > 0));
  await page.fill("#filter", "4999");
  await settled(page);
  assert.equal(await look(page, () => kymo.rows().filter((row) => row.track).length), 1);
  await page.close();
});

test("each feature of g2 is in a test, or in the guide with the reason", () => {
  const counts = [12, 11, 8, 5, 5, 9, 3, 2, 4, 4];
  const rows = counts.flatMap((count, at) => Array.from({ length: count }, (_, row) => `${at + 1}.${row + 1}`));
  assert.equal(rows.length, 63);
  const here = fileURLToPath(new URL(".", import.meta.url));
  const names = readdirSync(here).filter((name) => name.endsWith(".test.mjs")).map((name) => readFileSync(join(here, name), "utf8")).join("\n").match(/test\("[^\n]*/g).join("\n");
  const tested = new Set([...names.matchAll(/g2 ((?:\d+\.\d+(?:, )?)+)/g)].flatMap(([, list]) => list.split(", ")));
  const guide = readFileSync(join(root, "docs/view.md"), "utf8");
  const named = new Set([...guide.matchAll(/^\| (\d+\.\d+) \|/gm)].map(([, row]) => row));
  assert.deepEqual(rows.filter((row) => !tested.has(row) && !named.has(row)), []);
});
