// Everything that a view holds is undone and done again, and what is beside the time line follows.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { before, test } from "node:test";
import { act, copy, look, open, pick, press, serve, settled, work } from "./harness.mjs";

before(() => {
  copy("examples/lttng-small", "trace");
  const events = [{ ph: "M", name: "thread_name", pid: 1, tid: 2, args: { name: "main" } }, { ph: "M", name: "thread_name", pid: 1, tid: 3, args: { name: "worker" } }];
  for (let at = 0; at < 60; at++) {
    events.push({ ph: "X", pid: 1, tid: 2, ts: at * 200 + (at < 30 ? 0 : 2e6), dur: 90, name: "frame" });
    events.push({ ph: "i", pid: 1, tid: 3, ts: at * 200 + 3 + (at < 30 ? 0 : 2e6), name: at % 2 ? "odd" : "even", s: "t", args: { round: at % 5 } });
  }
  writeFileSync(join(work, "app.json"), JSON.stringify({ traceEvents: events }));
});

/** Waits until a change is among what can be undone: nothing is idle as long as one waits for that. */
const kept = settled;

/** What is shown beside what the view says. */
const beside = (page) => look(page, () => ({
  tab: document.querySelector("[role=tab][aria-selected=true]").id, height: document.getElementById("panels").style.height, zone: document.getElementById("zone").value,
  theme: document.documentElement.dataset.theme ?? "auto", filter: document.getElementById("filter").value, text: document.getElementById("text").value,
  hits: kymo.search.count, lens: kymo.lens.key, rows: kymo.rows().map((row) => row.label).join(),
  details: kymo.view.tab === "details" ? document.querySelector("#panel strong")?.textContent ?? "" : "", raised: kymo.view.raised.join(), area: String(kymo.view.area?.begin ?? ""), marks: kymo.view.marks.join(),
}));

test("each change is undone and done again, and the panels, boxes and colours follow", async () => {
  const page = await open(await serve("app.json"));
  const focus = () => page.focus("#tracks");
  /** @type {[string, () => Promise<unknown>][]} */
  const changes = [
    ["zoom", () => press(page, "w")],
    ["panel", () => press(page, "3")],
    ["panel off", () => press(page, "q")],
    ["panel on", () => press(page, "q")],
    ["zone", () => press(page, "Shift+Z")],
    ["theme", () => press(page, "Shift+L")],
    ["filter", async () => (await page.fill("#filter", "work"), focus())],
    ["no filter", async () => (await page.fill("#filter", ""), focus())],
    ["search", async () => (await page.fill("#text", "odd"), await page.press("#text", "Enter"), await page.waitForFunction(() => kymo.search.done && kymo.search.count === 30), focus())],
    ["class off", async () => (await press(page, "9"), await page.locator(".checks label", { hasText: "even" }).locator("input").uncheck(), focus())],
    ["colour", () => act(page, "Colour by class, track, recording")],
    ["details", () => press(page, "1")],
    ["event", () => pick(page, "worker", 203000)],
    ["another event", () => press(page, ".")],
    ["raise", () => press(page, "u")],
    ["pin", () => press(page, "p")],
    ["hide", () => press(page, "h")],
    ["area", () => press(page, "Control+a")],
    ["marks", () => press(page, "m", "m")],
    ["height", () => press(page, "t")],
  ];
  await kept(page);
  const states = [[await look(page, () => JSON.stringify({ ...kymo.view }, (_, value) => (typeof value === "bigint" ? String(value) : value instanceof Set ? [...value] : value))), await beside(page)]];
  const state = () => look(page, () => JSON.stringify({ ...kymo.view }, (_, value) => (typeof value === "bigint" ? String(value) : value instanceof Set ? [...value] : value)));
  for (const [name, change] of changes) {
    await change();
    await kept(page);
    const now = await state();
    assert.notEqual(now, states.at(-1)[0], `${name} changes nothing`);
    states.push([now, await beside(page)]);
  }
  await focus();
  // Some changes are several steps.
  const go = async (key, target, at) => {
    for (let steps = 0; steps < 6; steps++) {
      await page.keyboard.press(key);
      await settled(page);
      if ((await state()) === target[0]) break;
    }
    assert.equal(await state(), target[0], `${key}: the view of step ${at}`);
    await page.waitForFunction(([hits, details]) => kymo.search.count === hits && (!details || document.querySelector("#panel strong")?.textContent === details), [target[1].hits, target[1].details]);
    assert.deepEqual(await beside(page), target[1], `${key}: what is beside it, step ${at}`);
  };
  for (let at = states.length - 2; at >= 0; at--) await go("Control+z", states[at], at);
  for (let at = 1; at < states.length; at++) await go("Control+y", states[at], at);
  await page.close();
});

test("a snapshot brings back search, event and panel", async () => {
  const page = await open(await serve("app.json"));
  await page.fill("#text", "odd");
  await page.press("#text", "Enter");
  await page.waitForFunction(() => kymo.search.done && kymo.search.count === 30 && kymo.view.event);
  await page.focus("#tracks");
  await press(page, "1", "x");
  await page.waitForFunction(() => kymo.kept.snapshots.length === 1);
  const before = await page.textContent("#panel strong");
  await press(page, "Escape", "0", "4");
  await page.waitForFunction(() => kymo.search.count === 0 && !kymo.view.event);
  await press(page, "z");
  await page.waitForFunction((before) => kymo.search.count === 30 && document.querySelector("#panel strong")?.textContent === before, before);
  assert.equal(await page.inputValue("#text"), "odd");
  await page.close();
});
