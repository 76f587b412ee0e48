// Panels below the time line, and dialogs. Text from recordings goes to textContent only.

import { sleep } from "./busy.js";
import { ask } from "./data.js";
import { actions, tell } from "./act.js";
import { ACTIONS } from "./actions.js";
import { scope, showLatency } from "./analyses.js";
import { showCompare } from "./compare.js";
import { showDetails } from "./details.js";
import { canvas, search } from "./canvas.js";
import { applyHeight } from "./first.js";
import { showProfile } from "./flame.js";
import { keep, kept } from "./keep.js";
import { applyLens, classNames, colour, colourOf, colourOfValue, fieldOfColour, lens } from "./lens.js";
import { source } from "./source.js";
import { changed, keyOf, onChange, remember, rows, scene, shorten, slew, view } from "./state.js";
import { showSql } from "./sql.js";
import { showTable } from "./table.js";
import { duration, format, number } from "./time.js";

export const panel = /** @type {HTMLElement} */ (document.getElementById("panel"));
const TABS = ["details", "events", "stats", "latency", "profile", "compare", "classes", "health", "sql", "notes"];

/**
 * An element with a text or children.
 * @param {string} name @param {any} [content] @param {Record<string, string>} [attributes]
 */
export function make(name, content, attributes = {}) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (Array.isArray(content)) element.append(...content.filter((part) => part !== null));
  else if (content instanceof Node) element.append(content);
  else if (content !== undefined) element.textContent = String(content);
  return element;
}

export const button = (/** @type {string} */ words, /** @type {() => void} */ act) => {
  const element = make("button", words, { type: "button" });
  element.addEventListener("click", act);
  return element;
};

/** Reads a line of JSON: integers beyond 2^53 stay as they are written. @param {string} line */
export function readLine(line) {
  return JSON.parse(line, /** @type {any} */ ((/** @type {string} */ _key, /** @type {any} */ value, /** @type {any} */ context) =>
    typeof value === "number" && !Number.isSafeInteger(value) && context?.source && /^-?\d+$/.test(context.source) ? context.source : value));
}

export const words = (/** @type {any} */ value) => (value === null ? "–" : typeof value === "object" ? JSON.stringify(value) : String(value));

/** What an event says, in a line. @param {any} event */
export function summary(event) {
  const skipped = new Set(["timestamp", "recording", "kind", "schema", "trace", "stream_class", "stream", "event", "event_class", "archive", "archive_index", "track", "track_name", "packet_context"]);
  const parts = [];
  const text = event.text ? [["", event.text]] : Object.entries(event.payload ?? event);
  for (const [key, value] of text) {
    if (skipped.has(key)) continue;
    parts.push(key ? `${key}=${words(value?.labels?.[0] ?? value)}` : words(value));
    if (parts.length > 12) break;
  }
  return parts.join("  ");
}

export const nameOf = (/** @type {any} */ event) => words(event.event ?? event.archive ?? event.id ?? event.message ?? event.kind);

/** @type {any} */ let lastEvent = null;
/** @type {any} */ let lastTrack = null;
/** Which event these are. */
let lastKey = "";
const eventKey = () => (view.event ? `${view.event.track} ${view.event.time} ${view.event.nth}` : "");

export const panels = {
  show(/** @type {string} */ tab) {
    view.tab = TABS.includes(tab) ? tab : "details";
    if (view.panel < 40) view.panel = 240;
    applyHeight();
    remember();
    panels.refresh();
  },
  toggle() {
    view.panel = view.panel < 40 ? 240 : 0;
    applyHeight();
    remember();
    changed();
  },
  event(/** @type {any} */ line, /** @type {any} */ track) {
    panels.take(line, track);
    if (view.tab === "details" || view.tab === "events") panels.refresh();
  },
  /** Takes an event of the table as the selected one. */
  take(/** @type {any} */ line, /** @type {any} */ track) {
    lastEvent = line;
    lastTrack = track;
    lastKey = eventKey();
  },
  area() {
    if (!["events", "latency", "profile", "compare", "sql"].includes(view.tab)) view.tab = "stats";
    panels.refresh();
  },
  refresh() {
    for (const tab of TABS) {
      const element = document.getElementById(`tab-${tab}`);
      element?.setAttribute("aria-selected", String(tab === view.tab));
      if (element) element.tabIndex = tab === view.tab ? 0 : -1;
    }
    panel.setAttribute("aria-labelledby", `tab-${view.tab}`);
    panel.onscroll = null;
    if (!scene.info) return;
    /** @type {Record<string, () => unknown>} */ ({ details, events: () => showTable(lastEvent), stats, latency: showLatency, profile: showProfile, compare: showCompare, classes, health, sql: showSql, notes })[view.tab]?.();
  },
};

async function details() {
  const { event } = view;
  const track = event && scene.byKey.get(event.track);
  if (event && track && lastKey !== eventKey()) {
    // Another one was selected by undoing, a snapshot or a link.
    const key = eventKey();
    const answer = await ask("event", { track: track.id, time: String(event.time), step: 0, nth: event.nth }).catch(() => ({ event: null }));
    if (key !== eventKey() || view.tab !== "details") return;
    panels.take(answer.event, track);
  }
  if (!lastEvent || !view.event || lastKey !== eventKey()) {
    panel.replaceChildren(make("p", "Click an event, or select a track and press . to see its first event here.", { class: "soft" }));
    return;
  }
  showDetails(lastEvent, lastTrack);
}

/** Copies a text, or shows it where that is not allowed. @param {string} text */
export const copy = (text) => navigator.clipboard?.writeText(text).then(() => tell("Copied"), () => dialogs.message("Copy", text)) ?? dialogs.message("Copy", text);

/** Copies the table of the panel: numbers as they are, without units and grouping. */
export function copyTable() {
  const cell = (/** @type {Element} */ cell) => `"${(cell.getAttribute("data-csv") ?? cell.textContent ?? "").replaceAll("\u202f", "").replaceAll('"', '""')}"`;
  const lines = [...panel.querySelectorAll("tr")].map((row) => [...row.children].filter((cell) => !cell.classList.contains("acts")).map(cell).join(","));
  copy(lines.join("\n"));
}

let statsRun = 0;
let statsJob = 0;

async function stats() {
  const run = ++statsRun;
  const area = scope();
  const span = Number(area.end - area.begin);
  // Tracks that are moved have been elsewhere at that time.
  /** @type {Map<bigint, Set<number>>} */
  const byShift = new Map();
  for (const row of rows) for (const track of row.tracks) {
    if (row.kind === "group" && row.open) continue;
    const shift = row.kind === "group" ? rows.find((other) => other.track === track)?.shift ?? 0n : row.shift;
    const list = byShift.get(shift);
    if (list) list.add(track.id);
    else byShift.set(shift, new Set([track.id]));
  }
  if (statsJob) ask("stop", { job: statsJob }).catch(() => {});
  const before = { rows: 0, cut: false, lines: /** @type {any[]} */ ([]) };
  const groups = [...byShift];
  try {
    for (const [at, [shift, ids]] of groups.entries()) {
      let answer = await ask("stats", { begin: String(area.begin - shift), end: String(area.end - shift), tracks: [...ids].slice(0, 4096) });
      statsJob = answer.job;
      for (let pause = 50; ; pause = Math.min(1000, pause * 1.6)) {
        if (run !== statsRun || view.tab !== "stats") return;
        const sum = { rows: before.rows + answer.rows, cut: before.cut || answer.cut, lines: [...before.lines, ...answer.lines] };
        if (answer.done) Object.assign(before, sum);
        showStats({ ...sum, done: answer.done && at === groups.length - 1 }, span, area);
        if (answer.done) break;
        await sleep(pause);
        answer = await ask("stats", { job: answer.job });
      }
    }
    if (!groups.length) showStats({ ...before, done: true }, span, area);
  } catch (error) {
    if (run !== statsRun) return;
    panel.replaceChildren(make("p", String(error instanceof Error ? error.message : error), { class: "bad" }));
  }
}

/** Goes to the next value of a field that is beyond the mean and some deviations, as g2's anomaly search does. */
async function anomaly(/** @type {any} */ line, /** @type {any} */ field, /** @type {boolean} */ back) {
  const path = field.name.split(".").map((/** @type {string} */ part) => `\`${part}\``).join(".");
  const condition = `event.name == ${JSON.stringify(line.name)} and ${path} > ${field.mean + view.sigma * field.deviation}`;
  if (view.search !== condition || view.mode !== "where" || !search.job) {
    /** @type {HTMLSelectElement} */ (document.getElementById("mode")).value = "where";
    /** @type {HTMLInputElement} */ (document.getElementById("text")).value = condition;
    await actions.startSearch(condition, "where");
  }
  await actions.nextHit(back, line.track);
}

function showStats(/** @type {any} */ answer, /** @type {number} */ span, /** @type {any} */ area) {
  const titles = ["event or slice", "track", "count", "rate /s", "field", "min", "mean", "p50", "p95", "p99", "max", "sum", `> mean + ${view.sigma} σ`];
  const head = titles.map((title, at) => make("th", title, { scope: "col", class: at > 1 && at !== 4 && at < 12 ? "number" : at === 12 ? "acts" : "" }));
  const body = make("tbody");
  const lines = [...answer.lines].sort((a, b) => b.count - a.count);
  let shown = 0;
  for (const line of lines) {
    const track = scene.byId.get(line.track);
    const fields = line.fields.length ? line.fields : [null];
    fields.forEach((/** @type {any} */ field, /** @type {number} */ at) => {
      if (++shown > 2000) return;
      const isTime = line.slice;
      const value = (/** @type {number} */ value) => (isTime ? duration(value) : number(value, 5));
      const raw = field ? [field.min, field.mean, field.p50, field.p95, field.p99, field.max, field.sum].map(String) : [];
      const about = field && !field.exact ? "≈" : "";
      const first = at === 0 ? [line.name ?? "?", track ? shorten(track.name) : "", number(line.count), number(line.count / (span / 1e9), 4)] : ["", "", "", ""];
      const rest = field ? [field.name, value(field.min), value(field.mean), about + value(field.p50), about + value(field.p95), about + value(field.p99), value(field.max), value(field.sum)] : Array(8).fill("");
      const row = make("tr", [...first, ...rest].map((text, column) => make("td", text, { class: column > 1 && column !== 4 ? "number" : "", dir: "auto" })));
      const last = make("td");
      if (field && !isTime && field.deviation > 0 && track?.kind === "event" && line.name !== null) {
        const back = button("◂", () => anomaly(line, field, true));
        const next = button("▸", () => anomaly(line, field, false));
        back.setAttribute("aria-label", `Anomaly before: ${field.name}`);
        next.setAttribute("aria-label", `Next anomaly: ${field.name}`);
        next.title = `${field.name} > ${number(field.mean + view.sigma * field.deviation, 5)}`;
        last.append(back, " ", next);
      }
      row.append(last);
      body.append(row);
    });
  }
  const state = answer.done ? "" : ` – ${number(answer.rows)} events so far…`;
  const what = view.area ? "Area" : "View";
  const sigma = /** @type {HTMLInputElement} */ (make("input", undefined, { type: "number", min: "0", max: "100", step: "0.5", id: "sigma" }));
  sigma.value = String(view.sigma);
  sigma.addEventListener("change", () => {
    view.sigma = Math.min(1000, Math.max(0, Number(sigma.value) || 0));
    remember();
    showStats(answer, span, area);
  });
  panel.replaceChildren(
    make("div", [
      make("strong", `${what}: ${duration(span)}`), make("span", `from ${format(area.begin, view.zone, scene.begin)}${state}${answer.cut ? " (too many lines: some are left out)" : ""}`, { class: "soft" }),
      button("Copy as CSV", copyTable), button("Again", stats), make("label", [make("span", "anomalies: σ × ", { class: "soft" }), sigma]),
    ], { class: "tools" }),
    make("table", [make("thead", make("tr", head)), body], { "aria-label": "Statistics" }),
  );
}

/** The event classes, which may be off, and what colours stand for. */
function classes() {
  const names = classNames();
  const off = new Set(view.off);
  const set = (/** @type {string[]} */ list) => {
    view.off = list;
    remember();
    run();
    classes();
  };
  const run = () => applyLens().catch((error) => tell(String(error.message ?? error)));
  const scheme = /** @type {HTMLSelectElement} */ (make("select", undefined, { "aria-label": "Colour by" }));
  const fields = /** @type {string[]} */ ([...new Set([fieldOfColour(), ...scene.info.recordings.flatMap((/** @type {any} */ recording) => recording.fields ?? [])])].filter((name) => name)).sort();
  for (const [value, title] of [["class", "event class"], ["track", "track"], ["group", "recording"], ...fields.map((name) => [`field:${name}`, `field ${name}`])]) scheme.append(make("option", title, { value }));
  scheme.value = view.colour;
  scheme.addEventListener("change", () => (actions.colour(scheme.value), classes()));
  const filter = /** @type {HTMLInputElement} */ (make("input", undefined, { type: "search", placeholder: "Filter classes", "aria-label": "Filter classes" }));
  const shown = () => names.filter((name) => name.toLowerCase().includes(filter.value.toLowerCase()));
  const note = lens.key ? `${number(lens.count)} events${lens.cut ? " (the limit: some are left out)" : lens.done ? "" : "…"}` : "all events";
  const list = make("div", undefined, { class: "checks" });
  const fill = () => list.replaceChildren(...shown().slice(0, 2000).map((name) => {
    const box = /** @type {HTMLInputElement} */ (make("input", undefined, { type: "checkbox" }));
    box.checked = !off.has(name);
    box.addEventListener("change", () => set(box.checked ? view.off.filter((other) => other !== name) : [...view.off, name]));
    return make("label", [box, make("span", ` ${name}`, { dir: "auto" })]);
  }));
  filter.addEventListener("input", fill);
  const legend = make("div", undefined, { class: "tools" });
  const chip = (/** @type {string} */ name, /** @type {string} */ ink) => {
    const square = make("span", "■");
    square.style.color = ink;
    legend.append(make("span", [square, make("span", ` ${name}`, { dir: "auto" })]));
  };
  if (fieldOfColour()) lens.values.forEach((name, at) => chip(name, colourOfValue(at, "")));
  else if (view.colour === "group") scene.info.recordings.slice(0, 60).forEach((/** @type {any} */ recording, /** @type {number} */ at) => chip(recording.path.split("/").at(-1), colour(at)));
  else if (view.colour === "track") [...new Set(scene.tracks.map((track) => track.name.split("(")[0]))].slice(0, 60).forEach((name) => chip(name.split("/").at(-1) ?? name, colourOf(name)));
  panel.replaceChildren(
    make("div", [
      filter, button("All", () => set(view.off.filter((name) => !shown().includes(name)))), button("None", () => set([...new Set([...view.off, ...shown()])])),
      make("label", [make("span", "colour by ", { class: "soft" }), scheme]), make("span", note, { class: "soft", id: "lens" }),
    ], { class: "tools" }),
    legend, list,
  );
  fill();
}

let lensSeen = "";
onChange(() => {
  const key = `${lens.job} ${lens.count} ${lens.done} ${lens.values.length}`;
  if (key === lensSeen) return;
  lensSeen = key;
  // Not while somebody types there.
  if (view.tab === "classes" && !(panel.contains(document.activeElement) && document.activeElement instanceof HTMLInputElement && document.activeElement.type === "search")) panels.refresh();
});

/** A number of things. @param {number} count @param {string} one @param {string} many */
const amountOf = (count, one, many) => `${number(count)} ${count === 1 ? one : many}`;

function health() {
  const parts = [];
  const info = scene.info;
  const checked = info.checked ? "" : " Damage inside of packets is still being looked for, or the recordings are too large to be read for it.";
  parts.push(make("p", `${number(info.bytes)} bytes, ${amountOf(info.recordings.length, "recording", "recordings")}, ${amountOf(scene.tracks.length, "track", "tracks")}, ${number(info.untimed)} events without a time.${checked}`, { class: "soft" }));
  info.recordings.slice(0, 500).forEach((/** @type {any} */ recording, /** @type {number} */ at) => {
    const own = scene.notices.filter((notice) => notice.recording === at);
    parts.push(make("h3", recording.path), make("div", `${recording.what}, ${recording.format.trim()}, ${amountOf(recording.streams, "stream", "streams")}, ${amountOf(recording.classes.length, "event class", "event classes")}`, { class: "soft" }));
    for (const text of recording.notes) parts.push(make("div", text));
    for (const text of recording.faults) parts.push(make("div", text, { class: "bad" }));
    if (recording.fault_count > recording.faults.length) parts.push(make("div", `and ${recording.fault_count - recording.faults.length} more`, { class: "bad" }));
    for (const notice of own.slice(0, 200)) {
      const go = button(`${format(notice.begin, view.zone, scene.begin)}  ${shorten(notice.stream)}: ${notice.text}`, () => {
        const moved = slew(`r${notice.recording}`);
        actions.area(notice.begin + moved, notice.end + moved);
        actions.reveal(notice.begin + moved);
      });
      parts.push(make("div", go));
    }
    if (!recording.faults.length && !own.length) parts.push(make("div", "No damage, no losses known.", { class: "soft" }));
    parts.push(schema(at, recording.classes.length));
  });
  panel.replaceChildren(...parts);
}

/** Recordings of which the schema is open. @type {Set<number>} */
const openSchemas = new Set();

/** The event classes of a recording with their fields, which are asked for when they are opened. @param {number} recording @param {number} classes */
function schema(recording, classes) {
  const body = make("div", "…", { class: "schema" });
  const element = /** @type {HTMLDetailsElement} */ (make("details", [make("summary", `Schema: ${amountOf(classes, "event class", "event classes")}`), body]));
  const fill = async () => {
    try {
      const answer = await ask("schema", { recording });
      const head = () => make("thead", make("tr", ["field", "scope", "type"].map((title) => make("th", title, { scope: "col" }))));
      // What an event says comes first, and how it is stored last.
      const order = ["payload", "specific context", "common context", "header"];
      const sorted = (/** @type {string[][]} */ fields) => fields.sort((a, b) => order.indexOf(a[1]) - order.indexOf(b[1]));
      body.replaceChildren(...answer.classes.map((/** @type {any} */ eventClass) => make("div", [
        make("h4", [make("span", eventClass.name ?? "(no name)", { dir: "auto" }), make("span", `  ${[eventClass.id === null || eventClass.id === undefined ? "" : `id ${eventClass.id}`, eventClass.level ? `level ${eventClass.level}` : ""].filter((text) => text).join(", ")}`, { class: "soft" })]),
        eventClass.fields.length
          ? make("table", [head(), make("tbody", sorted(eventClass.fields).map((field) => make("tr", field.map((text) => make("td", text, { dir: "auto" })))))])
          : make("div", "no fields", { class: "soft" }),
      ])));
      if (answer.cut) body.append(make("p", "There are more: `kymo info --schema` lists all.", { class: "soft" }));
    } catch (error) {
      body.replaceChildren(make("p", String(error instanceof Error ? error.message : error), { class: "bad" }));
    }
  };
  element.addEventListener("toggle", () => {
    if (element.open === openSchemas.has(recording)) return;
    if (!element.open) openSchemas.delete(recording);
    else {
      openSchemas.add(recording);
      fill();
    }
  });
  if (openSchemas.has(recording)) {
    element.open = true;
    fill();
  }
  return element;
}

/** Snapshots and notes: to go to, and to remove. */
function notes() {
  const failed = (/** @type {any} */ error) => dialogs.message("This cannot be kept", error.message);
  const change = (/** @type {() => void} */ act) => keep(act).catch(failed).then(() => view.tab === "notes" && notes());
  const line = (/** @type {string} */ words, /** @type {() => void} */ go, /** @type {() => void} */ rename, /** @type {() => void} */ drop) =>
    make("li", [Object.assign(button(words, go), { dir: "auto", className: "go" }), button("Edit", rename), button("Remove", () => change(drop))]);
  const ofNotes = kept.notes.map((note) => line(
    `${format(BigInt(note.time), view.zone, scene.begin)}  ${note.text}`,
    () => actions.reveal(BigInt(note.time)),
    () => dialogs.ask("Note", note.text, (text) => change(() => {
      const own = kept.notes.find((other) => other.time === note.time);
      if (own) own.text = text.slice(0, 1000);
    })),
    () => (kept.notes = kept.notes.filter((other) => other.time !== note.time || other.text !== note.text)),
  ));
  const ofSnapshots = kept.snapshots.map((snapshot) => line(
    snapshot.name, () => actions.showSnapshot(snapshot),
    () => dialogs.ask("Name of the snapshot", snapshot.name, (text) => change(() => {
      const own = kept.snapshots.find((other) => other.name === snapshot.name && other.view === snapshot.view);
      if (own) own.name = text.slice(0, 200);
    })),
    () => (kept.snapshots = kept.snapshots.filter((other) => other.name !== snapshot.name || other.view !== snapshot.view)),
  ));
  const none = (/** @type {string} */ words) => make("li", words, { class: "soft" });
  panel.replaceChildren(
    make("div", [
      button("Snapshot (x)", () => actions.snap()), button("Note (Shift+M)", () => actions.note()),
      make("span", kept.path ? `kept in ${kept.path}` : source.isLive ? "kept as long as the server runs" : "kept as long as the page is open", { class: "soft" }),
    ], { class: "tools" }),
    make("h3", "Snapshots"), make("ul", ofSnapshots.length ? ofSnapshots : [none("none: x takes one, z shows the next")], { class: "kept" }),
    make("h3", "Notes"), make("ul", ofNotes.length ? ofNotes : [none("none: Shift+M writes one at the mouse")], { class: "kept" }),
  );
}
let shownKept = "";
onChange(() => {
  const now = `${kept.notes.length} ${kept.snapshots.length}`;
  if (now !== shownKept && view.tab === "notes" && scene.info) notes();
  shownKept = now;
});

const dialog = /** @type {HTMLDialogElement} */ (document.getElementById("dialog"));
dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
dialog.addEventListener("close", () => {
  dialog.classList.remove("wide");
  canvas.focus();
});

/** Lets a person choose from a list. @param {string} title @param {{name: string, hint: string, run: () => unknown}[]} items */
function choose(title, items) {
  const input = /** @type {HTMLInputElement} */ (make("input", undefined, { type: "search", placeholder: title, "aria-label": title, role: "combobox", "aria-controls": "choices", "aria-expanded": "true", autocomplete: "off" }));
  const list = make("ul", undefined, { id: "choices", role: "listbox", "aria-label": title });
  let at = 0;
  /** @type {typeof items} */ let found = [];
  const show = () => {
    const parts = input.value.toLowerCase().split(/\s+/);
    found = items.filter((item) => parts.every((part) => item.name.toLowerCase().includes(part))).slice(0, 200);
    at = Math.min(at, Math.max(0, found.length - 1));
    list.replaceChildren(...found.map((item, index) => {
      const element = make("li", [make("span", item.name), make("kbd", item.hint)], { role: "option", "aria-selected": String(index === at) });
      element.addEventListener("click", () => run(index));
      return element;
    }));
    list.children[at]?.scrollIntoView({ block: "nearest" });
  };
  const run = (/** @type {number} */ index) => {
    dialog.close();
    found[index]?.run();
  };
  input.addEventListener("input", () => ((at = 0), show()));
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter") {
      event.preventDefault();
      run(at);
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      at = Math.max(0, Math.min(found.length - 1, at + (event.key === "ArrowDown" ? 1 : -1)));
      show();
    }
  });
  dialog.setAttribute("aria-label", title);
  dialog.replaceChildren(input, list);
  show();
  dialog.showModal();
  input.focus();
}

/** The keys of an action as people write them. @param {{keys: string[], g2?: string[]}} action */
const keysOf = (action) => (view.g2 && action.g2 ? action.g2 : action.keys).join("  ")
  .replaceAll("ArrowLeft", "←").replaceAll("ArrowRight", "→").replaceAll("ArrowUp", "↑").replaceAll("ArrowDown", "↓");

export const dialogs = {
  choose,
  palette: () => choose("Actions", ACTIONS.map((action) => ({ name: action.name, hint: keysOf(action), run: action.run }))),
  finder: () => choose("Find a track", scene.tracks.map((track) => ({
    name: track.name, hint: scene.info.recordings[track.recording].path.split("/").at(-1),
    run: () => {
      const key = keyOf(track);
      view.folded.delete(`g${track.recording}`);
      let group = `g${track.recording}`;
      for (const part of track.path) view.folded.delete((group += `\u0001${part}`));
      view.hidden.delete(key);
      actions.filter("");
      actions.select(key);
    },
  }))),
  help() {
    const rows = ACTIONS.filter((action) => action.keys.length).map((action) => make("li", [make("span", action.name), make("kbd", keysOf(action))]));
    const mouse = [
      ["Wheel", "scroll tracks"], ["Ctrl + wheel", "zoom at the mouse"], ["Shift + wheel, or sideways", "move in time"],
      ["Drag", "area: statistics"], ["Shift + drag, or middle button", "move"], ["Right drag", "zoom to a box"], ["Click", "select an event"],
      ["Double click", "zoom to an event; on the ruler: show all"], ["Shift + click on a name", "raise the track"], ["Ctrl + click on a name", "bury the track"],
      ["Two fingers", "zoom and move"],
    ].map(([keys, name]) => make("li", [make("span", name), make("kbd", keys)]));
    dialog.setAttribute("aria-label", "Keys");
    dialog.replaceChildren(make("h3", "Keys"), make("ul", rows), make("h3", "Mouse and touch"), make("ul", mouse), button("Close", () => dialog.close()));
    dialog.classList.add("wide");
    dialog.showModal();
    // The button below has the focus now.
    dialog.scrollTop = 0;
  },
  /** Lets a person tick some of a list. @param {string} title @param {{name: string, on: boolean}[]} items @param {(name: string, on: boolean) => void} set */
  checks(title, items, set) {
    const list = make("div", items.slice(0, 1000).map((item) => {
      const box = /** @type {HTMLInputElement} */ (make("input", undefined, { type: "checkbox" }));
      box.checked = item.on;
      box.addEventListener("change", () => set(item.name, box.checked));
      return make("label", [box, make("span", ` ${item.name}`, { dir: "auto" })]);
    }), { class: "checks" });
    dialog.setAttribute("aria-label", title);
    dialog.replaceChildren(make("h3", title), list, button("Close", () => dialog.close()));
    dialog.showModal();
  },
  /** Asks for a text. @param {string} title @param {string} text @param {(text: string) => void} done */
  ask(title, text, done) {
    const input = /** @type {HTMLInputElement} */ (make("input", undefined, { type: "text", "aria-label": title, maxlength: "1000", autocomplete: "off" }));
    input.value = text;
    const end = () => {
      dialog.close();
      done(input.value);
    };
    input.addEventListener("keydown", (event) => {
      if (event.key !== "Enter") return;
      event.preventDefault();
      end();
    });
    dialog.setAttribute("aria-label", title);
    dialog.replaceChildren(make("h3", title), input, make("div", [button("OK", end), button("Cancel", () => dialog.close())], { class: "tools" }));
    dialog.showModal();
    input.select();
  },
  message(/** @type {string} */ title, /** @type {string} */ text) {
    dialog.setAttribute("aria-label", title);
    const box = make("pre", text);
    box.style.whiteSpace = "pre-wrap";
    box.style.overflowWrap = "anywhere";
    dialog.replaceChildren(make("h3", title), box, button("Close", () => dialog.close()));
    dialog.showModal();
  },
};
