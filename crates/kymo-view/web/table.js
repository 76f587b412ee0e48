// The event table: rows come as one scrolls; it follows the view and leads it.

import { actions } from "./actions.js";
import { ask } from "./data.js";
import { viewEnd } from "./draw.js";
import { button, copyTable, dialogs, make, nameOf, panel, panels, readLine, summary, words } from "./panels.js";
import { keyOf, onChange, remember, scene, view } from "./state.js";
import { lens } from "./lens.js";
import { format } from "./time.js";

/** Rows of a page, and rows that are kept. */
const PAGE = 100;
const MOST = 600;
const BASE = ["time", "recording", "event", "track", "fields"];

let run = 0;
let onlyHits = false;
/** @type {any[]} */ let lines = [];
/** When the table has moved the view last, so that it does not follow itself. */
let led = 0;

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

/** The track of a line of the table, as far as the line says it. */
function trackOf(/** @type {any} */ line, /** @type {any} */ event) {
  const own = scene.tracks.filter((track) => track.recording === line.recording);
  const found = own.find((track) => track.name === event.track_name)
    ?? own.find((track) => track.path[0] === `stream ${event.stream_class ?? 0}.${event.stream}`)
    ?? own.find((track) => track.name === event.id) ?? (own.length === 1 ? own[0] : undefined);
  return found ? keyOf(found) : "";
}

/** The table from the view's beginning, or the selected event, on. @param {any} selected the line that is selected */
export async function showTable(selected, fromView = false) {
  const own = ++run;
  const from = (!fromView && view.event?.time) || view.begin;
  const body = make("tbody");
  const filter = () => (onlyHits && view.search ? { text: view.search, mode: view.mode, case: view.exact } : lens.condition ? { text: lens.condition, mode: "where" } : {});
  const load = async (/** @type {string} */ time, /** @type {number} */ skip, /** @type {boolean} */ back) =>
    (await ask("page", { time, skip, back, limit: PAGE, ...filter() })).lines;
  const titles = columns();
  const makeRow = (/** @type {any} */ line) => {
    const event = readLine(line.json);
    const isSelected = selected?.skip === line.skip && selected?.time === line.time;
    const cells = titles.map((title) => {
      if (title === "time") return make("td", format(BigInt(line.time), view.zone, scene.begin));
      if (title === "recording") return make("td", scene.info.recordings[line.recording].path.split("/").at(-1), { class: "soft" });
      if (title === "event") return make("td", nameOf(event), { dir: "auto" });
      if (title === "track") return make("td", event.track_name ?? event.stream ?? "", { class: "soft", dir: "auto" });
      if (title === "fields") return make("td", summary(event), { dir: "auto" });
      const value = valueOf(event, title);
      return make("td", value === undefined ? "" : words(value), { class: typeof value === "number" ? "number" : "", dir: "auto" });
    });
    const row = make("tr", cells, { tabindex: "-1", "aria-selected": String(isSelected) });
    row.addEventListener("click", () => {
      body.querySelector("[aria-selected=true]")?.setAttribute("aria-selected", "false");
      row.setAttribute("aria-selected", "true");
      view.event = { track: trackOf(line, event), time: BigInt(line.time), nth: 0 };
      led = Date.now();
      panels.take(line, scene.byKey.get(view.event.track));
      actions.reveal(view.event.time);
      remember();
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
  const note = make("span", "", { class: "soft" });
  try {
    const before = await load(String(from), 0, true);
    const after = await load(String(from), 0, false);
    if (own !== run || view.tab !== "events") return;
    lines = [...before, ...after];
    body.append(...lines.map(makeRow));
    panel.replaceChildren(
      make("div", [
        box("only-hits", "only hits of the search", onlyHits, (on) => ((onlyHits = on), showTable(selected))),
        box("follow", "follow the view", view.tableFollows, (on) => ((view.tableFollows = on), remember())),
        button("Columns…", () => chooseColumns(selected)),
        button("From the view", () => ((view.event = null), showTable(null))), button("Copy as CSV", copyTable), note,
      ], { class: "tools" }),
      make("table", [make("thead", make("tr", head)), body], { "aria-label": "Events" }),
    );
    if (!lines.length) note.textContent = "No events here";
    const target = /** @type {HTMLElement|undefined} */ (body.children[before.length]);
    led = Date.now();
    if (target) panel.scrollTop = Math.max(0, target.offsetTop - (fromView ? 60 : panel.clientHeight / 3));
  } catch (error) {
    panel.replaceChildren(make("p", String(error instanceof Error ? error.message : error), { class: "bad" }));
    return;
  }
  let isBusy = false;
  panel.onscroll = async () => {
    if (run !== own || view.tab !== "events" || !lines.length) return;
    if (Date.now() - led > 400 && view.tableFollows) lead(body);
    if (isBusy) return;
    const isTop = panel.scrollTop < 60;
    const isBottom = panel.scrollTop + panel.clientHeight > panel.scrollHeight - 60;
    if (!isTop && !isBottom) return;
    isBusy = true;
    const edge = isBottom ? lines.at(-1) : lines[0];
    const more = await load(edge.time, edge.skip + (isBottom ? 1 : 0), !isBottom).catch(() => []);
    if (run === own && more.length) {
      const height = panel.scrollHeight;
      if (isBottom) {
        lines.push(...more);
        body.append(...more.map(makeRow));
        while (lines.length > MOST) {
          lines.shift();
          const first = /** @type {HTMLElement} */ (body.firstElementChild);
          panel.scrollTop -= first.offsetHeight;
          first.remove();
        }
      } else {
        lines.unshift(...more);
        body.prepend(...more.map(makeRow));
        panel.scrollTop += panel.scrollHeight - height;
        while (lines.length > MOST) {
          lines.pop();
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
  return lines[at];
}

/** Shows what the table is scrolled to. @param {HTMLElement} body */
function lead(body) {
  const line = topLine(body);
  if (!line) return;
  const time = BigInt(line.time);
  if (time >= view.begin && time <= viewEnd()) return;
  led = Date.now();
  actions.reveal(time);
}

/** @type {any} */ let timer = 0;
let seen = "";
onChange(() => {
  const key = `${view.begin} ${view.span} ${lens.key}`;
  if (view.tab !== "events" || key === seen) return;
  const wasLens = seen.endsWith(` ${lens.key}`);
  seen = key;
  if (!view.tableFollows && wasLens) return;
  clearTimeout(timer);
  timer = setTimeout(() => {
    const body = panel.querySelector("tbody");
    if (view.tab !== "events" || !(body instanceof HTMLElement) || Date.now() - led < 600) return;
    const line = topLine(body);
    const time = line && BigInt(line.time);
    if (wasLens && time && time >= view.begin && time <= viewEnd()) return;
    showTable(null, true);
  }, 250);
});

/** Lets a person choose the columns. @param {any} selected */
function chooseColumns(selected) {
  const found = new Set(view.columns.filter((name) => !name.startsWith("-")));
  for (const line of lines) {
    const event = readLine(line.json);
    const walk = (/** @type {any} */ of, /** @type {string} */ prefix) => {
      for (const [key, value] of Object.entries(of ?? {})) {
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
    view.columns = has ? [...view.columns.filter((of) => of !== word), word] : view.columns.filter((of) => of !== word);
    remember();
    showTable(selected);
  });
}
