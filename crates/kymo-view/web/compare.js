// Comparing ranges and recordings: stacked with their marks below each other, and their figures side by side. Moves in time.

import { sleep } from "./busy.js";
import { actions, tell } from "./act.js";
import { analyse, bars, pairFields, problem, requestOf, scope } from "./analyses.js";
import { ask } from "./data.js";
import { seconds, shellWord } from "./shell.js";
import { byName, flameGraph, grow, treeOf } from "./flame.js";
import { button, copy, copyTable, make, panel } from "./panels.js";
import { changed, fitAll, keyOf, remember, scene, view } from "./state.js";
import { duration, format, number } from "./time.js";

const letter = (/** @type {number} */ at) => String.fromCharCode(65 + at);
const same = (/** @type {number[]} */ a, /** @type {number[]} */ b) => a.length === b.length && a.every((element) => b.includes(element));

/** Adds the area (or view) of all recordings to what is compared. */
export function addSide() {
  if (view.sides.length >= 8) return tell("At most 8 are compared");
  const { begin, end } = scope();
  const mark = view.marks.find((other) => other >= begin && other <= end) ?? begin;
  view.sides = [...view.sides, { begin, end, mark, recordings: scene.info.recordings.map((/** @type {any} */ _, /** @type {number} */ at) => at) }];
  view.tab = "compare";
  remember();
  actions.refreshPanels();
  tell(view.sides.length === 1 ? "A is kept: select another area, and add it as B" : `${letter(view.sides.length - 1)} is added`);
}

/** Compares the recordings, each as a whole, with their beginnings below each other. */
export function compareRecordings() {
  const sides = scene.info.recordings.map((/** @type {any} */ _, /** @type {number} */ at) => {
    const own = scene.tracks.filter((track) => track.recording === at && track.rows);
    const begin = own.map((track) => track.first).reduce((a, b) => (a < b ? a : b), scene.end);
    const end = own.map((track) => track.last).reduce((a, b) => (a > b ? a : b), scene.begin);
    return { begin, end, mark: begin, recordings: [at] };
  }).filter((/** @type {any} */ side) => side.begin <= side.end);
  if (sides.length < 2) return tell("There is one recording: compare areas of it");
  view.sides = sides.slice(0, 8);
  view.stacked = true;
  view.tab = "compare";
  actions.relaid();
  fitAll();
  actions.refreshPanels();
}

/** Draws the sides one below the other, or as usual again. */
export function stack() {
  if (view.sides.length < 2) return tell("Add two areas first");
  view.stacked = !view.stacked;
  actions.relaid();
  if (view.stacked) {
    const before = view.sides.map((side) => side.begin - side.mark).reduce((a, b) => (a < b ? a : b));
    const after = view.sides.map((side) => side.end - side.mark).reduce((a, b) => (a > b ? a : b));
    actions.fit(view.sides[0].mark + before, view.sides[0].mark + after);
  }
  actions.refreshPanels();
}

/** Moves a track or recording in time, as g2's slew does. @param {string} key @param {number} way */
export function slewBy(key, way) {
  const delta = view.marks.length === 2 ? view.marks[1] - view.marks[0] : view.area ? view.area.end - view.area.begin : 0n;
  if (!delta) return tell("Set the marks A and B first (M): their distance is the move");
  const before = view.slews.find(([other]) => other === key)?.[1] ?? 0n;
  const moved = before + (way > 0 ? delta : -delta);
  view.slews = [...view.slews.filter(([other]) => other !== key), ...(moved ? [/** @type {[string, bigint]} */ ([key, moved])] : [])];
  actions.relaid();
  remember();
  if (view.tab === "compare") actions.refreshPanels();
  tell(moved ? `Moved by ${signedTime(Number(moved))}${key.startsWith("r") ? `: ${offsetOf(key, moved)}` : ""}` : "At its own time again");
}

const signedTime = (/** @type {number} */ ns) => (ns < 0 ? `−${duration(-ns)}` : `+${duration(ns)}`);
const offsetOf = (/** @type {string} */ key, /** @type {bigint} */ moved) => `--offset ${shellWord(`${scene.info.recordings[Number(key.slice(1))]?.path ?? ""}=${seconds(moved)}s`)}`;

/** What is moved, with what moves it for good. */
function moves() {
  if (!view.slews.length) return null;
  const list = view.slews.map(([key, moved]) => {
    const isRecording = /^r\d+$/.test(key);
    const name = isRecording ? scene.info.recordings[Number(key.slice(1))]?.path ?? "?" : scene.byKey.get(key)?.name ?? "?";
    const words = isRecording ? offsetOf(key, moved) : "a track, here only";
    return make("div", [make("span", `${name} ${signedTime(Number(moved))}  `, { dir: "auto" }), make("code", words), isRecording ? button("Copy", () => copy(words)) : null,
      button("Back", () => ((view.slews = view.slews.filter(([other]) => other !== key)), actions.relaid(), remember(), showCompare()))], { class: "tools" });
  });
  return make("div", [make("h3", "Moved in time"), ...list]);
}

let compareRun = 0;

export async function showCompare() {
  const own = ++compareRun;
  const result = make("div");
  const what = view.asked.compare ?? "stats";
  const choice = /** @type {HTMLSelectElement} */ (make("select", [["stats", "statistics"], ["latency", "latency"], ["profile", "profile"]].map(([value, title]) => make("option", title, { value })), { "aria-label": "What to compare", id: "compare-what" }));
  choice.value = what;
  choice.addEventListener("change", () => ((view.asked = { ...view.asked, compare: choice.value }), remember(), showCompare()));
  const head = ["", "from", "length", "mark", "recordings", ""].map((title) => make("th", title, { scope: "col" }));
  const lines = view.sides.map((side, at) => {
    const boxes = scene.info.recordings.slice(0, 40).map((/** @type {any} */ recording, /** @type {number} */ number) => {
      const box = /** @type {HTMLInputElement} */ (make("input", undefined, { type: "checkbox" }));
      box.checked = side.recordings.includes(number);
      box.addEventListener("change", () => {
        side.recordings = box.checked ? [...side.recordings, number] : side.recordings.filter((other) => other !== number);
        actions.relaid();
        remember();
        showCompare();
      });
      return make("label", [box, make("span", ` ${recording.path.split("/").at(-1)}  `, { dir: "auto" })]);
    });
    const here = button("set here", () => {
      const mark = view.marks[0] ?? view.event?.time;
      if (mark === undefined) return tell("Set mark A (M) or select an event first");
      side.mark = mark;
      actions.relaid();
      remember();
      showCompare();
    });
    return make("tr", [
      make("td", make("strong", letter(at))), make("td", button(format(side.begin, view.zone, scene.begin), () => actions.area(side.begin, side.end, true))), make("td", duration(Number(side.end - side.begin)), { class: "number" }),
      make("td", [make("span", `${format(side.mark, view.zone, scene.begin)} `), here]), make("td", boxes),
      make("td", button("Remove", () => ((view.sides = view.sides.filter((other) => other !== side)), (view.stacked &&= view.sides.length > 1), actions.relaid(), remember(), showCompare()))),
    ]);
  });
  panel.replaceChildren(
    make("div", [
      button("Add the area", addSide), button("All recordings", compareRecordings),
      view.sides.length > 1 ? button(view.stacked ? "On one axis" : "Stack", stack) : null, choice, ...(what === "stats" ? [] : pairFields(() => showCompare())), button("Copy as CSV", copyTable),
    ], { class: "tools" }),
    view.sides.length ? make("table", [make("thead", make("tr", head)), make("tbody", lines)], { id: "sides" }) : make("p", "Drag an area and add it, then another one: before and after, or the same time of two recordings.", { class: "soft" }),
    ...[moves()].filter((part) => part !== null), result,
  );
  if (view.sides.length < 2) return;
  result.append(make("p", "…", { class: "soft" }));
  try {
    const isWanted = () => own === compareRun && view.tab === "compare";
    if (what === "stats") await statistics(result, isWanted);
    else {
      const answers = [];
      for (const side of view.sides) {
        const answer = await analyse(requestOf(what, side, side.recordings), isWanted, (share) => (result.textContent = `${letter(answers.length)}: ${Math.min(99, Math.round(share * 100))} % read…`));
        if (!answer) return;
        answers.push(answer);
      }
      if (what === "latency") latencies(result, answers);
      else profiles(result, answers);
    }
  } catch (error) {
    if (own === compareRun) problem(result, error);
  }
}

/** The change from one number to another, in words. @param {number|null|undefined} a @param {number|null|undefined} b @param {(value: number) => string} show */
function change(a, b, show) {
  if (typeof a !== "number" || typeof b !== "number") return "–";
  const share = a ? `  ${b >= a ? "+" : "−"}${Math.abs((100 * (b - a)) / a).toFixed(1)} %` : "";
  return `${b > a ? "+" : b < a ? "−" : "±"}${show(Math.abs(b - a))}${share}`;
}

const cell = (/** @type {string} */ text, isNumber = true) => make("td", text, { class: isNumber ? "number" : "", dir: "auto" });
const header = (/** @type {string[]} */ titles, texts = 1) => make("thead", make("tr", titles.map((title, at) => make("th", title, { scope: "col", class: at >= texts ? "number" : "" }))));

/** The statistics of a range of some recordings, by event (or slice) and field. @returns {Promise<Map<string, any>|null>} */
async function statsOf(/** @type {import("./state.js").Side} */ side, /** @type {() => boolean} */ isWanted) {
  const tracks = scene.tracks.filter((track) => side.recordings.includes(track.recording)).slice(0, 4096).map((track) => track.id);
  let answer = await ask("stats", { begin: String(side.begin), end: String(side.end), tracks });
  for (let pause = 40; !answer.done; pause = Math.min(800, pause * 1.5)) {
    if (!isWanted()) return ask("stop", { job: answer.job }).then(() => null);
    await sleep(pause);
    answer = await ask("stats", { job: answer.job });
  }
  const all = new Map();
  const seconds = Math.max(1e-9, Number(side.end - side.begin) / 1e9);
  const add = (/** @type {string} */ key, /** @type {any} */ what) => {
    const sums = all.get(key) ?? { ...what, count: 0, sum: 0, min: Infinity, max: -Infinity };
    all.set(key, sums);
    sums.count += what.count;
    sums.sum += what.sum ?? 0;
    sums.min = Math.min(sums.min, what.min ?? Infinity);
    sums.max = Math.max(sums.max, what.max ?? -Infinity);
    sums.rate = sums.count / seconds;
  };
  for (const line of answer.lines) {
    const name = line.name ?? "?";
    add(`${name}\u0001`, { name, field: "", count: line.count });
    for (const field of line.fields) add(`${name}\u0001${field.name}`, { name, field: field.name, isTime: line.slice, count: field.count, sum: field.sum, min: field.min, max: field.max });
  }
  return all;
}

async function statistics(/** @type {HTMLElement} */ into, /** @type {() => boolean} */ isWanted) {
  /** @type {Map<string, any>[]} */
  const all = [];
  for (const side of view.sides) {
    const stats = await statsOf(side, isWanted);
    if (!stats) return;
    all.push(stats);
  }
  const last = all.length - 1;
  const keys = [...new Set(all.flatMap((stats) => [...stats.keys()]))].sort();
  const lines = keys.slice(0, 2000).flatMap((key) => {
    const sides = all.map((stats) => stats.get(key));
    const { name, field, isTime } = sides.find((one) => one);
    const show = (/** @type {number} */ value) => (isTime && field ? duration(value) : number(value, 5));
    const rates = sides.map((one) => one?.rate ?? 0);
    if (!field) return [make("tr", [cell(name, false), cell("rate /s", false), ...sides.map((one, at) => cell(one ? `${number(rates[at], 4)}  (${number(one.count)})` : "–")), cell(change(rates[0], rates[last], (value) => number(value, 4)))])];
    const means = sides.map((one) => (one?.count ? one.sum / one.count : null));
    return [
      make("tr", [cell("", false), cell(`${field}: mean`, false), ...means.map((mean) => cell(mean === null ? "–" : show(mean))), cell(change(means[0], means[last], show))]),
      make("tr", [cell("", false), cell(`${field}: max`, false), ...sides.map((one) => cell(one?.count ? show(one.max) : "–")), cell(change(sides[0]?.max, sides[last]?.max, show))]),
    ];
  });
  into.replaceChildren(make("table", [header(["event or slice", "what", ...all.map((_, at) => letter(at)), `A → ${letter(last)}`], 2), make("tbody", lines)], { id: "differences" }));
}

/** @param {HTMLElement} into @param {any[]} answers */
function latencies(into, answers) {
  const last = answers.at(-1);
  const lines = ["pairs", "mean", "deviation", "min", "p50", "p90", "p99", "p99.9", "max"].map((key) => {
    const show = (/** @type {number} */ value) => (key === "pairs" ? number(value) : duration(value));
    return make("tr", [cell(key, false), ...answers.map((answer) => cell(answer[key] === null ? "–" : show(answer[key]))), cell(change(answers[0][key], last[key], show))]);
  });
  into.replaceChildren(
    make("table", [header(["latency", ...answers.map((_, at) => letter(at)), `A → ${letter(answers.length - 1)}`]), make("tbody", lines)], { id: "differences" }),
    make("div", answers.map((answer, at) => make("div", [make("h3", letter(at)), bars(answer.histogram)])), { class: "columns" }),
  );
}

/** @param {HTMLElement} into @param {any[]} answers */
function profiles(into, answers) {
  const isCounted = answers[0].stacks !== undefined;
  const amount = isCounted ? number : duration;
  const trees = answers.map(treeOf);
  const last = answers.length - 1;
  const both = grow(answers[0], treeOf(answers[last]), true);
  const names = new Map(trees.map((tree, at) => [at, new Map(byName(tree).map((line) => [line.name, line]))]));
  const lines = byName(both).slice(0, 1000).map((line) => {
    const own = trees.map((_, at) => names.get(at)?.get(line.name)?.own ?? 0);
    return make("tr", [cell(line.name, false), ...own.map((value) => cell(amount(value))), cell(change(own[0], own[last], amount))]);
  });
  into.replaceChildren(
    make("p", `Flame graph of A → ${letter(last)}: orange is more, blue is less; as wide as the greater of both.`, { class: "soft" }), flameGraph(both, { isDifference: true, isCounted }).element,
    make("table", [header([isCounted ? "ends in it" : "time in itself", ...answers.map((_, at) => letter(at)), `A → ${letter(last)}`]), make("tbody", lines)], { id: "differences" }),
  );
}
