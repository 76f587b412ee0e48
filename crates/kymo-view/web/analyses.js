// Latencies and states of the area: how often which length, percentiles, the worst cases.

import { sleep } from "./busy.js";
import { actions, tell } from "./act.js";
import { ask } from "./data.js";
import { viewEnd } from "./canvas.js";
import { classNames } from "./lens.js";
import { button, copyTable, make, panel } from "./panels.js";
import { changed, keyOf, remember, rows, scene, setView, slewOf, view } from "./state.js";
import { duration, format, number } from "./time.js";

/** The range that panels look at: the area, or else the view. */
export const scope = () => view.area ?? { begin: view.begin, end: viewEnd() };

/** The recordings of which something is shown. */
export const shownRecordings = () => [...new Set(rows.flatMap((row) => row.tracks.map((track) => track.recording)))].sort((a, b) => a - b);

/**
 * Runs an analysis on the server. `isWanted` says whether somebody waits for it still.
 * @param {any} request @param {() => boolean} isWanted @param {(share: number) => void} [progress]
 */
export async function analyse(request, isWanted, progress) {
  let answer = await ask("analysis", request);
  for (let pause = 40; !answer.done; pause = Math.min(800, pause * 1.5)) {
    if (!isWanted()) {
      ask("stop", { job: answer.job }).catch(() => {});
      return null;
    }
    progress?.(answer.bytes / Math.max(1, scene.info.bytes));
    await sleep(pause);
    answer = await ask("analysis", { job: answer.job });
  }
  return isWanted() ? answer.answer : null;
}

/** A request with what a form asks for. @param {string} kind @param {{begin: bigint, end: bigint}} range @param {number[]} recordings */
export function requestOf(kind, range, recordings) {
  const { start = "", end = "", key = "", track = "", by = "", stack = "" } = view.asked;
  if (kind === "profile" && stack) return { kind: "stacks", begin: String(range.begin), end: String(range.end), recordings, key: stack, track };
  const events = kind === "states" ? { start: view.asked.state ?? "" } : { start, end_event: end };
  return { kind, begin: String(range.begin), end: String(range.end), recordings, ...events, key: kind === "states" ? view.asked.per ?? "" : key, track, worst: 50, ...(kind === "latency" ? { by } : {}) };
}

let lists = 0;
/**
 * A text field of a form, which the view keeps. @param {string} name @param {string} label @param {string} hint
 * @param {() => void} act @param {string[]} [choices]
 */
export function field(name, label, hint, act, choices) {
  const input = /** @type {HTMLInputElement} */ (make("input", undefined, { placeholder: hint, "aria-label": label, autocomplete: "off", spellcheck: "false", size: "16" }));
  input.value = view.asked[name] ?? "";
  input.addEventListener("change", () => {
    view.asked = { ...view.asked, [name]: input.value };
    remember();
    act();
  });
  const parts = [make("span", `${label} `, { class: "soft" }), input];
  if (choices) {
    const list = make("datalist", choices.slice(0, 500).map((choice) => make("option", undefined, { value: choice })), { id: `choices-${++lists}` });
    input.setAttribute("list", list.id);
    parts.push(list);
  }
  return make("label", parts);
}

/** The names of fields. */
export const pairFields = (/** @type {() => void} */ act) => [
  field("start", "start", "own slices", act, classNames()), field("end", "end", "own slices", act, classNames()),
  field("key", "pair by", "track", act), field("track", "tracks by", "recording's own", act),
];

/** What is analysed, in words. */
export const about = (/** @type {{begin: bigint, end: bigint}} */ range) =>
  make("span", [
    make("strong", view.area ? "Area " : "View "), make("span", `${duration(Number(range.end - range.begin))} from ${format(range.begin, view.zone, scene.begin)}`, { class: "soft" }),
    view.slews.length ? make("span", " Moves do not apply here: the events are those at the recordings' own times. Start with --offset to analyse moved recordings.", { class: "bad" }) : null,
  ]);

/** Shows a problem in place of a result. @param {HTMLElement} into @param {unknown} error */
export const problem = (into, error) => into.replaceChildren(make("p", String(error instanceof Error ? error.message : error), { class: "bad" }));

/** The track that an analysis names; a page that stands alone knows it. @param {{recording: string|null, number: number|null, name: string, id?: number}} named */
export function trackBy(named) {
  if (named.id !== undefined) return scene.tracks.find((track) => track.id === named.id) ?? null;
  const own = scene.tracks.filter((track) => named.recording === null || scene.info.recordings[track.recording].path === named.recording);
  return own.find((track) => track.name === named.name) ?? own.find((track) => named.number !== null && track.path[0] === String(named.number))
    ?? own.find((track) => track.name.endsWith(named.name) && named.name) ?? null;
}

/** Shows a case in the time line. @param {bigint} begin @param {bigint} end @param {import("./state.js").Track|null} track */
export function jump(begin, end, track) {
  const moved = track ? slewOf(track) : 0n;
  const span = Math.max(Number(end - begin) * 1.6, 100);
  setView(begin + moved - BigInt(Math.round(span * 0.18)), span);
  view.marks = [begin + moved, end + moved];
  if (track) actions.selectEvent(keyOf(track), begin);
  changed();
}

let latencyRun = 0;

export async function showLatency() {
  const own = ++latencyRun;
  const isStates = view.asked.what === "states";
  const range = scope();
  const result = make("div", make("p", "…", { class: "soft" }));
  const kind = /** @type {HTMLSelectElement} */ (make("select", [["latency", "latency"], ["states", "states"]].map(([value, title]) => make("option", title, { value })), { "aria-label": "What to measure" }));
  kind.value = isStates ? "states" : "latency";
  kind.addEventListener("change", () => ((view.asked = { ...view.asked, what: kind.value }), remember(), showLatency()));
  const again = () => showLatency();
  const fields = isStates
    ? [field("state", "state begins with", "event name", again, classNames()), field("per", "per", "all together", again), field("track", "tracks by", "recording's own", again)]
    : [...pairFields(again), field("by", "groups by", "none", again)];
  panel.replaceChildren(make("div", [kind, ...fields, about(range), button("Again", again), button("Copy as CSV", copyTable)], { class: "tools" }), result);
  if (isStates && !view.asked.state) return result.replaceChildren(make("p", "Name the event that begins a state: the one before ends there.", { class: "soft" }));
  try {
    const isWanted = () => own === latencyRun && view.tab === "latency";
    const answer = await analyse(requestOf(isStates ? "states" : "latency", range, shownRecordings()), isWanted, (share) => (result.textContent = `${Math.min(99, Math.round(share * 100))} % read…`));
    if (answer) isStates ? states(result, answer) : latency(result, answer);
  } catch (error) {
    if (own === latencyRun) problem(result, error);
  }
}

/** A cell of a table; `raw` is what a table of numbers has there. */
const analysisCell = (/** @type {string} */ text, isNumber = true, /** @type {any} */ raw = undefined) =>
  make("td", text, { class: isNumber ? "number" : "", dir: "auto", ...(raw === undefined || raw === null ? {} : { "data-csv": String(raw) }) });
/** A cell with a duration. @param {number|null} ns */
const timeCell = (ns) => analysisCell(time(ns), true, ns ?? "");
const time = (/** @type {number|null} */ ns) => (ns === null || ns === undefined ? "–" : duration(ns));

/** Bars of a histogram. @param {[number, number, number][]} ranges from, to and count */
export function bars(ranges) {
  const most = Math.max(1, ...ranges.map((range) => range[2]));
  const total = ranges.reduce((sum, range) => sum + range[2], 0);
  const rows = ranges.map(([from, , count]) => {
    const bar = make("div", undefined, { class: "bar" });
    bar.style.width = `${count ? Math.max(0.5, (count / most) * 100) : 0}%`;
    return make("tr", [analysisCell(`≥ ${duration(from)}`), make("td", bar, { class: "bars" }), analysisCell(number(count)), analysisCell(`${((100 * count) / Math.max(1, total)).toFixed(1)} %`)]);
  });
  return make("table", make("tbody", rows), { class: "histogram", "aria-label": "Histogram" });
}

/** @param {HTMLElement} into @param {any} answer */
function latency(into, answer) {
  const facts = make("dl");
  const add = (/** @type {string} */ name, /** @type {string} */ value) => facts.append(make("dt", name), make("dd", value));
  add("pairs", number(answer.pairs));
  if (answer.unmatched_starts) add("starts without an end", number(answer.unmatched_starts));
  if (answer.unmatched_ends) add("ends without a start", number(answer.unmatched_ends));
  if (answer.backwards) add("left out, time went back", number(answer.backwards));
  if (answer.pairs) for (const key of ["mean", "deviation", "min", "p50", "p90", "p99", "p99.9", "max"]) add(key, time(answer[key]));
  into.replaceChildren(...[
    make("div", [
      make("div", [make("h3", "Latency"), facts]), make("div", [make("h3", "How often"), bars(answer.histogram)]),
      make("div", [make("h3", "Worst"), worstTable(answer.worst, "latency")]),
    ], { class: "columns" }),
    answer.groups.length ? groupTable(answer.groups) : null,
  ].filter((part) => part !== null));
  if (!answer.pairs) into.prepend(make("p", "No start has its end in the area.", { class: "soft" }));
}

const heads = (/** @type {string[]} */ titles, /** @type {(at: number) => boolean} */ isNumber) =>
  make("thead", make("tr", titles.map((title, at) => make("th", title, { scope: "col", class: isNumber(at) ? "number" : "" }))));

/** The longest ones, each with a way to its place. @param {any[]} list @param {string} what */
function worstTable(list, what) {
  const lines = list.map((slow) => {
    const [begin, end] = [BigInt(slow.start), BigInt(slow.end)];
    const last = slow.end_track ?? slow.track;
    const where = slow.track.name === last.name ? slow.track.name : `${slow.track.name} → ${last.name}`;
    const go = button(format(begin, view.zone, scene.begin), () => jump(begin, end, trackBy(slow.track)));
    return make("tr", [timeCell(slow.nanos), make("td", go, { "data-csv": slow.start }), analysisCell(format(end, view.zone, scene.begin), false, slow.end), analysisCell(where, false), analysisCell(slow.key ?? "", false)]);
  });
  return make("table", [heads([what, "start", "end", "track", "what"], (at) => at === 0), make("tbody", lines)], { id: "worst" });
}

/** Latencies by group. @param {any[]} list */
function groupTable(list) {
  const total = list.reduce((sum, group) => sum + group.total, 0);
  const lines = list.map((group) => make("tr", [
    analysisCell(group.by.join(", ") || "–", false), analysisCell(number(group.count)), timeCell(group.total), analysisCell(`${((100 * group.total) / Math.max(1, total)).toFixed(1)} %`),
    timeCell(group.mean), timeCell(group.p50), timeCell(group.p95), timeCell(group.p99),
    make("td", button(time(group.max), () => jump(BigInt(group.max_at), BigInt(group.max_at) + BigInt(group.max), null)), { class: "number", "data-csv": String(group.max) }),
  ]));
  return make("div", [make("h3", "By group"), make("table", [heads([view.asked.by ?? "", "count", "total", "share", "mean", "p50", "p95", "p99", "max"], (at) => at > 0), make("tbody", lines)], { id: "groups" })]);
}

/** @param {HTMLElement} into @param {any} answer */
function states(into, answer) {
  const total = answer.tracks.reduce((/** @type {number} */ sum, /** @type {any} */ track) => sum + track.total, 0);
  const titles = ["track", "states", "total", "share", "mean", "deviation", "min", "p50", "p95", "p99", "max"];
  const lines = answer.tracks.slice(0, 2000).map((/** @type {any} */ line) => {
    const track = trackBy(line.track);
    const name = track ? make("td", button(line.track.name || "–", () => actions.showTrack(keyOf(track)))) : analysisCell(line.track.name || "–", false);
    const times = [line.mean, line.deviation, line.min, line.p50, line.p95, line.p99, line.max].map(timeCell);
    return make("tr", [name, analysisCell(number(line.count)), timeCell(line.total), analysisCell(`${((100 * line.total) / Math.max(1, total)).toFixed(1)} %`), ...times]);
  });
  into.replaceChildren(
    make("p", `${number(answer.count)} states, ${time(answer.total)} together; ${number(answer.open)} open at the end`, { class: "soft" }),
    make("table", [heads(titles, (at) => at > 0), make("tbody", lines)], { "aria-label": "States" }),
    make("div", [make("div", [make("h3", "How often"), bars(answer.histogram)]), make("div", [make("h3", "Longest"), worstTable(answer.worst, "state")])], { class: "columns" }),
  );
  if (!answer.tracks.length) tell("No state ends in the area");
}
