// The event table: rows come as one scrolls; it follows the view and leads it.

import { actions } from "./act.js";
import { Delayed } from "./busy.js";
import { ask } from "./data.js";
import { viewEnd } from "./canvas.js";
import { button, copyTable, dialogs, make, nameOf, panel, panels, readLine, summary, words } from "./panels.js";
import { keyOf, onChange, remember, scene, shorten, view } from "./state.js";
import { lens } from "./lens.js";
import { eventAt, page } from "./moves.js";
import { format } from "./time.js";

/** Rows of a page, and rows that are kept. */
const PAGE = 100;
const MOST_LINES = 600;
const BASE = ["time", "recording", "event", "track", "fields"];

let tableRun = 0;
let onlyHits = false;
/** @type {any[]} */ let tableLines = [];
/** Where the table was scrolled to and what the view was when this module has moved them: it does not follow itself. */
const tablePlace = { top: -1, view: "" };
const viewKey = () => `${view.begin} ${view.span}`;
/** Scrolls the table. @param {number} top */
function scrollTo(top) {
  panel.scrollTop = top;
  tablePlace.top = panel.scrollTop;
}
/** Shows a time. @param {bigint} time */
function leadTo(time) {
  actions.reveal(time);
  tablePlace.view = viewKey();
}

/** The columns that are shown: fields after the usual ones, of which some may be off (`-`). */
const columns = () => [...BASE.filter((name) => !view.columns.includes(`-${name}`)), ...view.columns.filter((name) => !name.startsWith("-"))];

/** The value of a field of an event. @param {any} event @param {string} path */
function valueOf(event, path) {
  const scopes = [event.payload, event.specific_context, event.common_context, event.packet_context, event];
  for (const scope of scopes) {
    let value = scope;
    for (const part of path.split(".")) value = value?.[part];
    if (value !== undefined) return value && typeof value === "object" && "value" in value ? value.labels?.[0] ?? value.value : value;
  }
  return undefined;
}

/** Finds which of several events of a time on a track a line is. @param {any} line @param {import("./state.js").Track} track */
async function numberOf(line, track) {
  const event = view.event;
  const answer = await ask("describe", { time: line.time, skip: line.skip, track: track.id }).catch(() => ({ nth: null }));
  if (view.event !== event || !event || !answer.nth) return;
  event.nth = answer.nth;
  panels.take(line, track);
  remember();
}

/** The track that a line of the table is on. */
function trackOf(/** @type {any} */ line) {
  const [first] = line.tracks ?? [];
  return scene.byId.get(Array.isArray(first) ? first[0] : first);
}

/** The table from the view's beginning, or the selected event, on. @param {any} selected the line that is selected */
export async function showTable(selected, fromView = false) {
  const number = ++tableRun;
  const from = { at: (fromView ? null : eventAt()) ?? view.begin, group: -1, skip: 0 };
  const body = make("tbody");
  const filter = () => (onlyHits && view.search ? { text: view.search, mode: view.mode, case: view.exact } : lens.condition ? { text: lens.condition, mode: "where" } : {});
  const load = async (/** @type {import("./moves.js").Place} */ place, /** @type {boolean} */ back) => {
    const { lines, cut } = await page(place, back, PAGE, filter());
    if (cut) note.textContent = "Rows of some tracks are too far apart: some are left out";
    return lines;
  };
  const note = make("span", "", { class: "soft" });
  const titles = columns();
  const makeRow = (/** @type {any} */ line) => {
    const event = readLine(line.json);
    const isSelected = selected?.skip === line.skip && selected?.time === line.time;
    const cells = titles.map((title) => {
      if (title === "time") return make("td", format(line.place.at, view.zone, scene.begin));
      if (title === "recording") return make("td", scene.info.recordings[line.recording].path.split("/").at(-1), { class: "soft" });
      if (title === "event") return make("td", nameOf(event), { dir: "auto" });
      if (title === "track") return make("td", shorten(trackOf(line)?.name ?? event.track_name ?? event.stream ?? ""), { class: "soft", dir: "auto" });
      if (title === "fields") return make("td", summary(event), { dir: "auto" });
      const value = valueOf(event, title);
      return make("td", value === undefined ? "" : words(value), { class: typeof value === "number" ? "number" : "", dir: "auto" });
    });
    const row = make("tr", cells, { tabindex: "-1", "aria-selected": String(isSelected) });
    row.addEventListener("click", () => {
      body.querySelector("[aria-selected=true]")?.setAttribute("aria-selected", "false");
      row.setAttribute("aria-selected", "true");
      const track = trackOf(line);
      view.event = { track: track ? keyOf(track) : "", time: BigInt(line.time), nth: 0 };
      panels.take(line, track);
      leadTo(line.place.at);
      remember();
      if (track) numberOf(line, track);
    });
    row.addEventListener("keydown", (key) => {
      const other = key.key === "ArrowDown" ? row.nextElementSibling : key.key === "ArrowUp" ? row.previousElementSibling : null;
      if (other instanceof HTMLElement) {
        key.preventDefault();
        other.focus();
        other.click();
      }
    });
    row.addEventListener("dblclick", () => panels.show("details"));
    return row;
  };
  const box = (/** @type {string} */ id, /** @type {string} */ label, /** @type {boolean} */ on, /** @type {(on: boolean) => void} */ act) => {
    const input = /** @type {HTMLInputElement} */ (make("input", undefined, { type: "checkbox", id }));
    input.checked = on;
    input.addEventListener("change", () => act(input.checked));
    return make("span", [input, make("label", ` ${label}`, { for: id })]);
  };
  const head = titles.map((title) => make("th", title, { scope: "col", dir: "auto" }));
  try {
    const before = await load(from, true);
    const after = await load(from, false);
    if (number !== tableRun || view.tab !== "events") return;
    tableLines = [...before, ...after];
    body.append(...tableLines.map(makeRow));
    panel.replaceChildren(
      make("div", [
        box("only-hits", "only hits of the search", onlyHits, (on) => ((onlyHits = on), showTable(selected))),
        box("follow", "follow the view", view.tableFollows, (on) => ((view.tableFollows = on), remember())),
        button("Columns…", () => chooseColumns(selected)),
        button("From the view", () => ((view.event = null), showTable(null))), button("Copy as CSV", copyTable), note,
      ], { class: "tools" }),
      make("table", [make("thead", make("tr", head)), body], { "aria-label": "Events" }),
    );
    if (!tableLines.length) note.textContent = "No events here";
    const target = /** @type {HTMLElement|undefined} */ (body.children[before.length]);
    if (target) scrollTo(Math.max(0, target.offsetTop - (fromView ? 60 : panel.clientHeight / 3)));
  } catch (error) {
    panel.replaceChildren(make("p", String(error instanceof Error ? error.message : error), { class: "bad" }));
    return;
  }
  let isBusy = false;
  panel.onscroll = async () => {
    if (tableRun !== number || view.tab !== "events" || !tableLines.length) return;
    if (panel.scrollTop !== tablePlace.top && view.tableFollows) lead(body);
    tablePlace.top = -1;
    if (isBusy) return;
    const isTop = panel.scrollTop < 60;
    const isBottom = panel.scrollTop + panel.clientHeight > panel.scrollHeight - 60;
    if (!isTop && !isBottom) return;
    isBusy = true;
    const edge = isBottom ? tableLines.at(-1) : tableLines[0];
    const more = await load(edge.place, !isBottom).catch(() => []);
    if (tableRun === number && more.length) {
      const height = panel.scrollHeight;
      if (isBottom) {
        tableLines.push(...more);
        body.append(...more.map(makeRow));
        while (tableLines.length > MOST_LINES) {
          tableLines.shift();
          const first = /** @type {HTMLElement} */ (body.firstElementChild);
          scrollTo(panel.scrollTop - first.offsetHeight);
          first.remove();
        }
      } else {
        tableLines.unshift(...more);
        body.prepend(...more.map(makeRow));
        scrollTo(panel.scrollTop + panel.scrollHeight - height);
        while (tableLines.length > MOST_LINES) {
          tableLines.pop();
          body.lastElementChild?.remove();
        }
      }
    }
    isBusy = false;
  };
}

/** The first line that is in sight. @param {HTMLElement} body */
function topLine(body) {
  const top = panel.scrollTop + 40;
  const at = [...body.children].findIndex((row) => /** @type {HTMLElement} */ (row).offsetTop + /** @type {HTMLElement} */ (row).offsetHeight > top);
  return tableLines[at];
}

/** Shows what the table is scrolled to. @param {HTMLElement} body */
function lead(body) {
  const line = topLine(body);
  if (!line) return;
  const time = line.place.at;
  if (time >= view.begin && time <= viewEnd()) return;
  leadTo(time);
}

let seen = "";
const following = new Delayed(250, () => {
  const body = panel.querySelector("tbody");
  if (view.tab !== "events" || !(body instanceof HTMLElement)) return;
  const time = topLine(body)?.place.at;
  if (!isOtherLens && time && time >= view.begin && time <= viewEnd()) return;
  showTable(null, true);
});
let isOtherLens = false;
onChange(() => {
  const key = `${view.begin} ${view.span} ${lens.key}`;
  if (view.tab !== "events" || key === seen) return;
  const wasLens = seen.endsWith(` ${lens.key}`);
  seen = key;
  if (wasLens && (!view.tableFollows || tablePlace.view === viewKey())) return;
  isOtherLens = !wasLens;
  following.ask();
});

/** Lets a person choose the columns. @param {any} selected */
function chooseColumns(selected) {
  const found = new Set(view.columns.filter((name) => !name.startsWith("-")));
  for (const line of tableLines) {
    const event = readLine(line.json);
    const walk = (/** @type {any} */ content, /** @type {string} */ prefix) => {
      for (const [key, value] of Object.entries(content ?? {})) {
        if (found.size > 300) return;
        if (value && typeof value === "object" && !Array.isArray(value) && !("value" in value)) walk(value, `${prefix}${key}.`);
        else found.add(prefix + key);
      }
    };
    for (const scope of ["payload", "specific_context", "common_context"]) walk(event[scope], "");
  }
  const items = [...BASE, ...[...found].sort()].map((name) => ({ name, on: columns().includes(name) }));
  dialogs.checks("Columns of the table", items, (name, on) => {
    const off = BASE.includes(name);
    const word = off ? `-${name}` : name;
    const has = off ? !on : on;
    view.columns = has ? [...view.columns.filter((other) => other !== word), word] : view.columns.filter((other) => other !== word);
    remember();
    showTable(selected);
  });
}
