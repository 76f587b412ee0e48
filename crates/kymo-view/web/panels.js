// Panels below the time line, and dialogs. Text from recordings goes to textContent only.

import { ask } from "./data.js";
import { ACTIONS, actions } from "./actions.js";
import { canvas } from "./draw.js";
import { keep, kept } from "./keep.js";
import { source } from "./source.js";
import { changed, keyOf, onChange, remember, rows, scene, view } from "./state.js";
import { duration, format, number } from "./time.js";

const panel = /** @type {HTMLElement} */ (document.getElementById("panel"));
const TABS = ["details", "events", "stats", "health", "notes"];

/**
 * An element with a text or children.
 * @param {string} name @param {any} [content] @param {Record<string, string>} [attributes]
 */
function make(name, content, attributes = {}) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (Array.isArray(content)) element.append(...content.filter((of) => of !== null));
  else if (content instanceof Node) element.append(content);
  else if (content !== undefined) element.textContent = String(content);
  return element;
}

const button = (/** @type {string} */ words, /** @type {() => void} */ act) => {
  const element = make("button", words, { type: "button" });
  element.addEventListener("click", act);
  return element;
};

/** Reads a line of JSON: integers beyond 2^53 stay as they are written. @param {string} line */
export function readLine(line) {
  return JSON.parse(line, /** @type {any} */ ((/** @type {string} */ _key, /** @type {any} */ value, /** @type {any} */ context) =>
    typeof value === "number" && !Number.isSafeInteger(value) && context?.source && /^-?\d+$/.test(context.source) ? context.source : value));
}

const words = (/** @type {any} */ value) => (value === null ? "–" : typeof value === "object" ? JSON.stringify(value) : String(value));

/** What an event says, in a line. @param {any} event */
function summary(event) {
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

const nameOf = (/** @type {any} */ event) => words(event.event ?? event.archive ?? event.id ?? event.message ?? event.kind);

/** @type {any} */ let lastEvent = null;
/** @type {any} */ let lastTrack = null;

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
    lastEvent = line;
    lastTrack = track;
    if (view.tab === "details" || view.tab === "events") panels.refresh();
  },
  area() {
    if (view.tab !== "events" && view.tab !== "health") view.tab = "stats";
    panels.refresh();
  },
  refresh() {
    for (const tab of TABS) {
      const element = document.getElementById(`tab-${tab}`);
      element?.setAttribute("aria-selected", String(tab === view.tab));
      if (element) element.tabIndex = tab === view.tab ? 0 : -1;
    }
    panel.setAttribute("aria-labelledby", `tab-${view.tab}`);
    if (!scene.info) return;
    /** @type {Record<string, () => unknown>} */ ({ details, events, stats, health, notes })[view.tab]?.();
  },
};

export function applyHeight() {
  const section = /** @type {HTMLElement} */ (document.getElementById("panels"));
  const height = Math.min(view.panel, Math.max(0, window.innerHeight - 260));
  section.style.height = `${Math.max(0, height)}px`;
  document.getElementById("divider")?.setAttribute("aria-valuenow", String(Math.round(Math.max(0, height))));
  section.hidden = height < 40;
  section.style.display = height < 40 ? "none" : "";
}

function details() {
  if (!lastEvent || !view.event) {
    panel.replaceChildren(make("p", "Click an event, or select a track and press . to see its first event here.", { class: "soft" }));
    return;
  }
  const event = readLine(lastEvent.json);
  const list = make("dl");
  const add = (/** @type {string} */ name, /** @type {any} */ value) => list.append(make("dt", name), make("dd", words(value)));
  const walk = (/** @type {any} */ of, /** @type {string} */ prefix) => {
    for (const [key, value] of Object.entries(of)) {
      if (value && typeof value === "object" && !Array.isArray(value) && !("value" in value)) walk(value, `${prefix}${key}.`);
      else if (value && typeof value === "object" && "value" in value) add(prefix + key, `${value.value}  ${(value.labels ?? value.flags ?? []).join(" | ")}`);
      else if (key === "timestamp") add("timestamp", `${format(BigInt(value), view.zone, scene.begin)}   (${value} ns)`);
      else add(prefix + key, value);
    }
  };
  walk(event, "");
  const copy = (/** @type {string} */ text) => navigator.clipboard?.writeText(text).catch(() => dialogs.message("Copy", text));
  const path = String(event.recording);
  const quoted = `'${path.replaceAll("'", "'\\''")}'`;
  const time = `${BigInt(lastEvent.time) / 1000000000n}.${String(BigInt(lastEvent.time) % 1000000000n).padStart(9, "0")}`;
  const command = `kymo print --begin ${time} --end ${time} --format json ${quoted}`;
  panel.replaceChildren(
    make("div", [
      make("strong", nameOf(event)), make("span", `on ${lastTrack?.name ?? ""}`, { class: "soft" }),
      button("◂ ,", () => actions.selectEvent(view.event?.track ?? "", view.event?.time ?? 0n, -1, view.event?.nth ?? 0)),
      button(". ▸", () => actions.selectEvent(view.event?.track ?? "", view.event?.time ?? 0n, 1, view.event?.nth ?? 0)),
      button("Copy as JSON", () => copy(lastEvent.json)),
      button("Copy as command", () => copy(command)),
    ], { class: "tools" }),
    list,
  );
}

let tableRun = 0;
let onlyHits = false;
/** @type {any[]} */ let tableLines = [];

/** The table of events from the view's beginning on; more comes at both ends. */
async function events() {
  const run = ++tableRun;
  const from = view.event?.time ?? view.begin;
  const body = make("tbody");
  const filter = () => (onlyHits && view.search ? { text: view.search, mode: view.mode } : {});
  const load = async (/** @type {string} */ time, /** @type {number} */ skip, /** @type {boolean} */ back) =>
    (await ask("page", { time, skip, back, limit: 100, ...filter() })).lines;
  const makeRow = (/** @type {any} */ line) => {
    const event = readLine(line.json);
    const isSelected = view.event?.time === BigInt(line.time) && lastEvent?.skip === line.skip && lastEvent?.time === line.time;
    const row = make("tr", [
      make("td", format(BigInt(line.time), view.zone, scene.begin)),
      make("td", scene.info.recordings[line.recording].path.split("/").at(-1), { class: "soft" }),
      make("td", nameOf(event)), make("td", event.track_name ?? event.stream ?? "", { class: "soft" }), make("td", summary(event)),
    ], { tabindex: "-1", "aria-selected": String(isSelected) });
    row.addEventListener("click", () => {
      body.querySelector("[aria-selected=true]")?.setAttribute("aria-selected", "false");
      row.setAttribute("aria-selected", "true");
      lastEvent = line;
      view.event = { track: trackOf(line, event), time: BigInt(line.time), nth: 0 };
      lastTrack = scene.byKey.get(view.event.track);
      actions.reveal(view.event.time);
      remember();
    });
    row.addEventListener("dblclick", () => panels.show("details"));
    return row;
  };
  const box = /** @type {HTMLInputElement} */ (make("input", undefined, { type: "checkbox", id: "only-hits" }));
  box.checked = onlyHits;
  box.addEventListener("change", () => ((onlyHits = box.checked), events()));
  const head = ["time", "recording", "event", "track or stream", "fields"].map((title) => make("th", title, { scope: "col" }));
  const note = make("span", "", { class: "soft" });
  try {
    const before = await load(String(from), 0, true);
    const after = await load(String(from), 0, false);
    if (run !== tableRun || view.tab !== "events") return;
    tableLines = [...before, ...after];
    body.append(...tableLines.map(makeRow));
    panel.replaceChildren(
      make("div", [box, make("label", "only hits of the search", { for: "only-hits" }), button("From the view", () => ((view.event = null), events())), button("Copy as CSV", copyTable), note], { class: "tools" }),
      make("table", [make("thead", make("tr", head)), body]),
    );
    if (!tableLines.length) note.textContent = "No events here";
    const target = /** @type {HTMLElement|undefined} */ (body.children[before.length]);
    if (target) panel.scrollTop = Math.max(0, target.offsetTop - panel.clientHeight / 3);
  } catch (error) {
    panel.replaceChildren(make("p", String(error instanceof Error ? error.message : error), { class: "bad" }));
    return;
  }
  let isBusy = false;
  panel.onscroll = async () => {
    if (isBusy || run !== tableRun || view.tab !== "events" || !tableLines.length) return;
    const isTop = panel.scrollTop < 60;
    const isBottom = panel.scrollTop + panel.clientHeight > panel.scrollHeight - 60;
    if (!isTop && !isBottom) return;
    isBusy = true;
    const edge = isBottom ? tableLines.at(-1) : tableLines[0];
    const more = await load(edge.time, edge.skip + (isBottom ? 1 : 0), !isBottom).catch(() => []);
    if (run === tableRun && more.length) {
      const height = panel.scrollHeight;
      // A window of at most 600 rows.
      if (isBottom) {
        tableLines.push(...more);
        body.append(...more.map(makeRow));
        while (tableLines.length > 600) {
          tableLines.shift();
          const first = /** @type {HTMLElement} */ (body.firstElementChild);
          panel.scrollTop -= first.offsetHeight;
          first.remove();
        }
      } else {
        tableLines.unshift(...more);
        body.prepend(...more.map(makeRow));
        panel.scrollTop += panel.scrollHeight - height;
        while (tableLines.length > 600) {
          tableLines.pop();
          body.lastElementChild?.remove();
        }
      }
    }
    isBusy = false;
  };
}

/** The track of a line of the table, as far as the line says it. */
function trackOf(/** @type {any} */ line, /** @type {any} */ event) {
  const own = scene.tracks.filter((track) => track.recording === line.recording);
  const found = own.find((track) => track.name === event.track_name)
    ?? own.find((track) => track.path[0] === `stream ${event.stream_class ?? 0}.${event.stream}`)
    ?? own.find((track) => track.name === event.id) ?? (own.length === 1 ? own[0] : undefined);
  return found ? keyOf(found) : "";
}

function copyTable() {
  const cell = (/** @type {string|null} */ text) => `"${(text ?? "").replaceAll('"', '""')}"`;
  const lines = [...panel.querySelectorAll("tr")].map((row) => [...row.children].map((of) => cell(of.textContent)).join(","));
  const text = lines.join("\n");
  navigator.clipboard?.writeText(text).then(() => actions.filter(view.filter), () => dialogs.message("Table", text));
}

let statsRun = 0;
let statsJob = 0;

async function stats() {
  const run = ++statsRun;
  const area = view.area ?? { begin: view.begin, end: view.begin + BigInt(Math.ceil(view.span)) };
  const span = Number(area.end - area.begin);
  const ids = [...new Set(rows.flatMap((row) => row.tracks.map((track) => track.id)))].slice(0, 4096);
  if (statsJob) ask("stop", { job: statsJob }).catch(() => {});
  try {
    let answer = await ask("stats", { begin: String(area.begin), end: String(area.end), tracks: ids });
    statsJob = answer.job;
    for (let pause = 50; ; pause = Math.min(1000, pause * 1.6)) {
      if (run !== statsRun || view.tab !== "stats") return;
      showStats(answer, span, area);
      if (answer.done) return;
      await new Promise((done) => setTimeout(done, pause));
      answer = await ask("stats", { job: answer.job });
    }
  } catch (error) {
    panel.replaceChildren(make("p", String(error instanceof Error ? error.message : error), { class: "bad" }));
  }
}

function showStats(/** @type {any} */ answer, /** @type {number} */ span, /** @type {any} */ area) {
  const titles = ["event or slice", "track", "count", "rate /s", "field", "min", "mean", "p50", "p95", "p99", "max", "sum", ""];
  const head = titles.map((title, at) => make("th", title, { scope: "col", class: at > 1 && at !== 4 && at < 12 ? "number" : "" }));
  const body = make("tbody");
  const lines = [...answer.lines].sort((a, b) => b.count - a.count);
  let shown = 0;
  for (const line of lines) {
    const track = scene.byId.get(line.track);
    const fields = line.fields.length ? line.fields : [null];
    fields.forEach((/** @type {any} */ field, /** @type {number} */ at) => {
      if (++shown > 2000) return;
      const isTime = line.slice;
      const value = (/** @type {number} */ of) => (isTime ? duration(of) : number(of, 5));
      const about = field && !field.exact ? "≈" : "";
      const first = at === 0 ? [line.name ?? "?", track?.name.split("/").at(-1) ?? "", number(line.count), number(line.count / (span / 1e9), 4)] : ["", "", "", ""];
      const rest = field ? [field.name, value(field.min), value(field.mean), about + value(field.p50), about + value(field.p95), about + value(field.p99), value(field.max), value(field.sum)] : Array(8).fill("");
      const row = make("tr", [...first, ...rest].map((text, column) => make("td", text, { class: column > 1 && column !== 4 ? "number" : "" })));
      const last = make("td");
      // g2's anomaly search: what lies beyond the mean and 2.5 deviations.
      if (field && !isTime && field.deviation > 0 && track?.kind === "event") {
        const limit = field.mean + 2.5 * field.deviation;
        const find = button("> mean + 2.5 σ", () => {
          const condition = `event.name == ${JSON.stringify(line.name)} and ${field.name} > ${limit}`;
          /** @type {HTMLSelectElement} */ (document.getElementById("mode")).value = "where";
          /** @type {HTMLInputElement} */ (document.getElementById("text")).value = condition;
          actions.startSearch(condition, "where");
        });
        last.append(find);
      }
      row.append(last);
      body.append(row);
    });
  }
  const state = answer.done ? "" : ` – ${number(answer.rows)} events so far…`;
  const what = view.area ? "Area" : "View";
  panel.replaceChildren(
    make("div", [make("strong", `${what}: ${duration(span)}`), make("span", `from ${format(area.begin, view.zone, scene.begin)}${state}${answer.cut ? " (too many lines: some are left out)" : ""}`, { class: "soft" }), button("Copy as CSV", copyTable), button("Again", stats)], { class: "tools" }),
    make("table", [make("thead", make("tr", head)), body]),
  );
}

function health() {
  const parts = [];
  const info = scene.info;
  const checked = info.checked ? "" : " Damage inside of packets is still being looked for, or the recordings are too large to be read for it.";
  parts.push(make("p", `${number(info.bytes)} bytes, ${number(info.recordings.length)} recordings, ${number(scene.tracks.length)} tracks, ${number(info.untimed)} events without a time.${checked}`, { class: "soft" }));
  info.recordings.slice(0, 500).forEach((/** @type {any} */ of, /** @type {number} */ at) => {
    const own = scene.notices.filter((notice) => notice.recording === at);
    parts.push(make("h3", of.path), make("div", `${of.what}, ${of.format}, ${of.streams} streams, ${of.classes.length} event classes`, { class: "soft" }));
    for (const text of of.notes) parts.push(make("div", text));
    for (const text of of.faults) parts.push(make("div", text, { class: "bad" }));
    if (of.fault_count > of.faults.length) parts.push(make("div", `and ${of.fault_count - of.faults.length} more`, { class: "bad" }));
    for (const notice of own.slice(0, 200)) {
      const go = button(`${format(notice.begin, view.zone, scene.begin)}: ${notice.text}`, () => {
        actions.area(notice.begin, notice.end);
        actions.reveal(notice.begin);
      });
      parts.push(make("div", go));
    }
    if (!of.faults.length && !own.length) parts.push(make("div", "No damage, no losses known.", { class: "soft" }));
  });
  panel.replaceChildren(...parts);
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
      const own = kept.notes.find((of) => of.time === note.time);
      if (own) own.text = text.slice(0, 1000);
    })),
    () => (kept.notes = kept.notes.filter((of) => of.time !== note.time || of.text !== note.text)),
  ));
  const ofSnapshots = kept.snapshots.map((of) => line(
    of.name, () => actions.showSnapshot(of),
    () => dialogs.ask("Name of the snapshot", of.name, (text) => change(() => {
      const own = kept.snapshots.find((other) => other.name === of.name && other.view === of.view);
      if (own) own.name = text.slice(0, 200);
    })),
    () => (kept.snapshots = kept.snapshots.filter((other) => other.name !== of.name || other.view !== of.view)),
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
dialog.addEventListener("close", () => canvas.focus());

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

export const dialogs = {
  choose,
  palette: () => choose("Actions", ACTIONS.map((action) => ({ name: action.name, hint: (view.g2 && action.g2 ? action.g2 : action.keys).join("  "), run: action.run }))),
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
    const rows = ACTIONS.filter((action) => action.keys.length).map((action) => make("li", [make("span", action.name), make("kbd", (view.g2 && action.g2 ? action.g2 : action.keys).join("  "))]));
    const mouse = [
      ["Wheel", "scroll tracks"], ["Ctrl + wheel", "zoom at the mouse"], ["Shift + wheel, or sideways", "move in time"],
      ["Drag", "area: statistics"], ["Shift + drag, or middle button", "move"], ["Right drag", "zoom to a box"], ["Click", "select an event"],
      ["Double click", "zoom to an event; on the ruler: show all"], ["Shift + click on a name", "raise the track"], ["Ctrl + click on a name", "bury the track"],
      ["Two fingers", "zoom and move"],
    ].map(([keys, name]) => make("li", [make("span", name), make("kbd", keys)]));
    dialog.setAttribute("aria-label", "Keys");
    dialog.replaceChildren(make("h3", "Keys"), make("ul", rows), make("h3", "Mouse and touch"), make("ul", mouse), button("Close", () => dialog.close()));
    dialog.showModal();
    // The button below has the focus now.
    dialog.scrollTop = 0;
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
