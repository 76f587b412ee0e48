// Everything that a person can do, with its keys: the palette, the sheet of keys and the keyboard share this list.

import { actions, say, tell } from "./act.js";
import { sleep } from "./busy.js";
import { addSide, compareRecordings, slewBy, stack } from "./compare.js";
import { ask, forget } from "./data.js";
import { canvas, pointer, search, timeAt, viewEnd, xOf } from "./canvas.js";
import { overviewRange } from "./ruler.js";
import { chaseBy, clearFlows, loadFlows, otherFlow, quote, stepFlow } from "./flows.js";
import { applyTheme, arrange } from "./first.js";
import { FORMATS } from "./formats.js";
import { gaps, later, lengthOf, takeGaps } from "./fold.js";
import { addNote, addSnapshot, kept } from "./keep.js";
import { applyLens, lens } from "./lens.js";
import { command, convertCommand } from "./link.js";
import { eventAt, hitsIn, nextHitOf } from "./moves.js";
import { download, png, svg } from "./picture.js";
import { source } from "./source.js";
import { changed, fitAll, goToEnd, isSeries, isShifted, keyOf, layOut, read, remember, rows, scene, selected, setScroll, setView, slewOf, undo, view } from "./state.js";
import { dialogs, panels } from "./panels.js";
import { runSql, writeSql } from "./sql.js";
import { duration, format } from "./time.js";

const zoom = (/** @type {number} */ factor, /** @type {number|null} */ at = null) => {
  const width = canvas.clientWidth;
  const x = at ?? (pointer.x >= 0 ? pointer.x : width / 2);
  const fixed = timeAt(x);
  const span = Math.max(20, view.span * factor);
  setView(later(fixed, -(x / Math.max(1, width)) * span), span);
};
const pan = (/** @type {number} */ part) => setView(later(view.begin, part * view.span), view.span);

const rowOf = (/** @type {string} */ key) => rows.find((row) => row.key === key);
const plainKey = (/** @type {string} */ key) => key.replace(/^pin:/, "");
const relaid = () => {
  layOut();
  setScroll(view.scroll, canvas.clientHeight);
};
const toggle = (/** @type {string[]} */ list, /** @type {string} */ item) => (list.includes(item) ? list.filter((other) => other !== item) : [...list, item]);

/** Moves the selected row, and keeps it in sight. @param {number} step */
function moveRow(step) {
  if (!rows.length) return;
  const at = rows.findIndex((row) => row.key === selected.row);
  const next = rows[Math.min(rows.length - 1, Math.max(0, at + step))];
  select(next.key);
}

function select(/** @type {string} */ key) {
  const row = rowOf(key);
  if (!row) return;
  selected.row = key;
  const height = canvas.clientHeight;
  if (row.top < view.scroll) setScroll(row.top, height);
  else if (row.top + row.height > view.scroll + height) setScroll(row.top + row.height - height, height);
  say(`${row.label}, ${row.kind === "group" ? `${row.count} tracks${row.open ? "" : ", folded"}` : `${row.track?.rows} events`}`);
  changed();
}

/** Shows a time in the middle, unless it is in sight. @param {bigint} time */
function reveal(time) {
  const x = xOf(time);
  if (x < 8 || x > canvas.clientWidth - 8) setView(later(time, -view.span / 2), view.span);
  changed();
}

/** Opens what a track lies in, and scrolls to it. @param {string} key */
function revealTrack(key) {
  const track = scene.byKey.get(key);
  if (!track) return;
  if (!rowOf(key)) {
    view.hidden.delete(key);
    view.folded.delete(`g${track.recording}`);
    let group = `g${track.recording}`;
    for (const part of track.path) view.folded.delete((group += `\u0001${part}`));
    if (view.filter) actions.filter("");
    layOut();
  }
  select(key);
}

/** Selects an event. @param {string} key @param {bigint} time @param {number} step @param {number|null} nth */
async function selectEvent(key, time, step = 0, nth = null) {
  const track = scene.byKey.get(key);
  if (!track) return;
  try {
    const answer = await ask("event", { track: track.id, time: String(time), step, ...(nth === null ? {} : { nth }) });
    if (!answer.event) {
      tell(step < 0 ? "No event before this one on the track" : "No event after this one on the track");
      return;
    }
    view.event = { track: key, time: BigInt(answer.event.time), nth: answer.nth };
    revealTrack(key);
    const row = rowOf(key) ?? rows.find((other) => other.track && other.tracks.includes(track));
    reveal(view.event.time + (row?.shift ?? 0n));
    remember();
    panels.event(answer.event, track);
    loadFlows();
    say(`event at ${format(view.event.time, view.zone, scene.begin)}`);
  } catch (error) {
    tell(String(error instanceof Error ? error.message : error));
  }
}

let steps = Promise.resolve();
/** One step after the other, so that none is lost however quickly they are asked for. */
function step(/** @type {number} */ way) {
  steps = steps.then(() => takeStep(way)).then(() => {});
}

async function takeStep(/** @type {number} */ way) {
  const row = rowOf(selected.row);
  const key = view.event?.track ?? (row?.track ? keyOf(row.track) : "");
  if (!key) return tell("Select a track or an event first");
  if (view.event) return selectEvent(key, view.event.time, way, view.event.nth);
  return selectEvent(key, (way > 0 ? view.begin : viewEnd()) - (row?.shift ?? 0n), way);
}

/** How long an answer waits for the first hits of a search, in milliseconds. */
const FIRST_WAIT = 250;

let polls = 0;
async function startSearch(/** @type {string} */ text, /** @type {string} */ mode) {
  const hits = /** @type {HTMLElement} */ (document.getElementById("hits"));
  if (search.job) {
    forget(search.job);
    ask("stop", { job: search.job }).catch(() => {});
  }
  polls++;
  Object.assign(search, { key: searchKey(text, mode), job: 0, count: 0, done: true, density: [], strip: [], stripKey: "" });
  view.search = text;
  view.mode = mode;
  remember();
  hits.textContent = "";
  changed();
  if (!text) return;
  const poll = ++polls;
  try {
    const { job } = await ask("search", { text, mode, case: view.exact, begin: String(view.begin), end: String(viewEnd()) });
    search.job = job;
    search.done = false;
    let pause = 40;
    while (search.job === job && poll === polls) {
      const all = overviewRange();
      // The answer waits for the first hits, so that they are shown at once.
      const found = await hitsIn(job, all.begin, all.span, 400, search.count ? 0 : FIRST_WAIT);
      if (search.count !== found.count) forget(job);
      Object.assign(search, { count: found.count, density: found.density, done: found.done, cut: found.cut });
      hits.textContent = `${found.count.toLocaleString("en-US")} hits${found.cut ? " (limit)" : found.done ? "" : "…"}`;
      changed();
      if (found.done) break;
      // The number of all hits is shown now and then.
      if (found.count) {
        await sleep(pause);
        pause = Math.min(1000, pause * 1.5);
      }
    }
  } catch (error) {
    if (poll !== polls) return;
    hits.textContent = "";
    dialogs.message("The search cannot be read", String(error instanceof Error ? error.message : error));
  }
}

/** Goes to the next hit of the search, or to the one before: on a track, if one is given. */
function nextHit(/** @type {boolean} */ back, /** @type {number|null} */ track = null) {
  steps = steps.then(() => takeHit(back, track)).catch((error) => tell(String(error instanceof Error ? error.message : error)));
  return steps;
}

async function takeHit(/** @type {boolean} */ back, /** @type {number|null} */ trackId) {
  if (!search.job) return tell("Search first");
  const hit = await nextHitOf(search.job, eventAt() ?? (back ? viewEnd() : view.begin), back, trackId);
  if (!hit) return tell(back ? "No hit before" : "No hit after");
  const track = scene.byId.get(hit.track);
  if (track) await selectEvent(keyOf(track), hit.time);
}

/** Orders tracks by when they first have an event of the selected one's class, from the selected one on. */
async function chase() {
  const event = view.event;
  const track = event && scene.byKey.get(event.track);
  if (!event || !track) return tell("Select an event first");
  const { event: line } = await ask("event", { track: track.id, time: String(event.time), step: 0, nth: event.nth });
  const name = line && scene.info.recordings[line.recording].classes[line.class];
  if (typeof name !== "string") return tell("The event has no name");
  await chaseBy(`event.name == ${quote(name)}`);
}

let snapshot = 0;

/** Asks for the long times without events, and folds them or shows them again. */
async function toggleFold() {
  if (isShifted && !view.fold) return tell("Times are not folded while something is moved in time");
  if (!view.fold) await loadGaps();
  if (!view.fold && !gaps.list.length) return tell("There is no long time without events");
  view.fold = !view.fold;
  fitAll();
  tell(view.fold ? `${gaps.list.length === 1 ? "One gap is" : `${gaps.list.length} gaps are`} folded` : "All time is shown");
}

export async function loadGaps() {
  const answer = await ask("gaps", { tracks: scene.tracks.slice(0, 4096).map((track) => track.id), least: 50 });
  takeGaps(answer.gaps);
  changed();
}

/** By what events are coloured. @param {string} scheme */
function colourBy(scheme) {
  view.colour = scheme;
  remember();
  applyLens().catch((error) => tell(String(error.message ?? error)));
  changed();
  tell(`Colours: by ${scheme.replace("field:", "field ")}`);
}

const recordingKey = (/** @type {string} */ key) => `r${rowOf(key)?.recording ?? 0}`;
const trackKey = (/** @type {string} */ key) => {
  const track = rowOf(key)?.track;
  return track ? keyOf(track) : recordingKey(key);
};

/** Says what went wrong, if something does. @param {Promise<unknown>} work */
const told = (work) => work.catch((error) => tell(String(error instanceof Error ? error.message : error)));

/** Copies a text, or shows it where that is not allowed. @param {string} title @param {string} text @param {string} words */
async function copyOrShow(title, text, words) {
  try {
    await navigator.clipboard.writeText(text);
    tell(words);
  } catch {
    dialogs.message(title, text);
  }
}

/** A name for files that come from the page: that of what the command names first. */
const fileName = async () => {
  const { paths } = await ask("command", {});
  const name = (paths[0] ?? "").split("/").filter((/** @type {string} */ part) => !["", ".", ".."].includes(part)).at(-1);
  return (name ?? "kymo").replace(/[^\w.-]/g, "_");
};

/** What the page shows beside the drawing follows the view, which was another one before. */
export function showView() {
  arrange();
  showRest();
}

/** Shows of the view what is drawn over the tracks and below them. */
export function showRest() {
  told(applyLens());
  if (view.fold && !gaps.list.length) told(loadGaps());
  if (search.key !== searchKey(view.search, view.mode)) startSearch(view.search, view.mode);
  if (!view.event) clearFlows();
  else loadFlows();
  panels.refresh();
  changed();
}

const searchKey = (/** @type {string} */ text, /** @type {string} */ mode) => (text ? `${mode} ${view.exact} ${text}` : "");

/** Shows a view that was kept. @param {import("./keep.js").Snapshot} snapshot */
function showSnapshot(snapshot) {
  if (!read(snapshot.view)) return tell("This snapshot cannot be read");
  showView();
  tell(`Snapshot: ${snapshot.name}`);
}

const all = {
  zoom, pan, colour: colourBy, refreshPanels: () => panels.refresh(), showTrack: (/** @type {string} */ key) => revealTrack(key),
  fit(/** @type {bigint} */ begin, /** @type {bigint} */ end) {
    const span = Math.max(lengthOf(begin, end) * 1.1, 20);
    setView(later(begin, -span / 22), span);
  }, moveRow, select, selectEvent, startSearch, nextHit, relaid, reveal,
  /** @param {string} text */
  filter(text) {
    view.filter = text;
    const input = /** @type {HTMLInputElement} */ (document.getElementById("filter"));
    if (input.value !== text) input.value = text;
    relaid();
  },
  /** @param {string} key @param {MouseEvent} event */
  label(key, event) {
    const row = rowOf(key);
    if (!row) return;
    if (row.track && event.shiftKey) actions.raise(key);
    else if (row.track && (event.ctrlKey || event.metaKey)) actions.bury(key);
    else {
      select(key);
      if (row.kind === "group") actions.fold(key);
    }
    canvas.focus();
  },
  fold(/** @type {string} */ key) {
    if (key === "pinned") return;
    view.folded.has(key) ? view.folded.delete(key) : view.folded.add(key);
    relaid();
  },
  pin(/** @type {string} */ key) {
    view.pinned = toggle(view.pinned, plainKey(key));
    relaid();
  },
  hide(/** @type {string} */ key) {
    for (const track of rowOf(key)?.tracks ?? []) view.hidden.add(keyOf(track));
    relaid();
    tell("Hidden: Ctrl+Z brings it back");
  },
  raise(/** @type {string} */ key) {
    view.buried = view.buried.filter((other) => other !== plainKey(key));
    view.raised = [plainKey(key), ...view.raised.filter((other) => other !== plainKey(key))];
    relaid();
  },
  bury(/** @type {string} */ key) {
    view.raised = view.raised.filter((other) => other !== plainKey(key));
    view.buried = [plainKey(key), ...view.buried.filter((other) => other !== plainKey(key))];
    relaid();
  },
  height(/** @type {number} */ factor) {
    view.scale = Math.min(4, Math.max(0.25, view.scale * factor));
    relaid();
  },
  zone(/** @type {string} */ zone) {
    view.zone = zone;
    /** @type {HTMLSelectElement} */ (document.getElementById("zone")).value = zone;
    remember();
    changed();
    panels.refresh();
  },
  area(/** @type {bigint} */ begin, /** @type {bigint} */ end, isShown = false) {
    view.area = begin < end ? { begin, end } : { begin: end, end: begin };
    if (isShown) actions.fit(view.area.begin, view.area.end);
    remember();
    changed();
    panels.area();
  },
  /** @param {string} text */
  sql(text) {
    panels.show("sql");
    return runSql(text);
  },
  showSnapshot,
  snap() {
    const name = `${kept.snapshots.length + 1}: ${format(view.begin, view.zone, scene.begin, 3)}, ${duration(view.span)}`;
    told(addSnapshot(name).then(() => tell(`Snapshot ${name}`)));
  },
  note() {
    const time = pointer.x >= 0 ? timeAt(pointer.x) : eventAt() ?? view.marks.at(-1) ?? timeAt(canvas.clientWidth / 2);
    dialogs.ask(`Note at ${format(time, view.zone, scene.begin)}`, "", (text) => {
      if (text.trim()) told(addNote(time, text.trim()).then(() => tell("The note is kept")));
    });
  },
  goToEnd,
  follow() {
    view.follow = !view.follow;
    if (view.follow) actions.goToEnd();
    remember();
    tell(view.follow ? "The end is followed" : "The view stands still");
  },
  copyLink: () => copyOrShow("Link", location.href, source.isLive ? "The link is copied: it works while this server runs" : "The link is copied"),
  copyCommand: () => told(command().then((text) => copyOrShow("Command", text, "The command is copied: it opens this view at any time"))),
  /** Saves the area, or the view if there is none, in another format. */
  saveAs() {
    const { begin, end } = view.area ?? { begin: view.begin, end: view.begin + BigInt(Math.ceil(view.span)) };
    const isArchive = (/** @type {string} */ ending) => ending.endsWith(".tar");
    const save = async (/** @type {string} */ format, /** @type {string} */ ending) => {
      tell("Converting…");
      try {
        const file = `${await fileName()}.${ending}`;
        const request = { format, begin: String(begin), end: String(end), name: file.replace(/\.tar$/, ""), ...(lens.condition ? { condition: lens.condition } : {}) };
        download(await source.save(request), file);
        tell(`Saved: ${file}`);
      } catch (error) {
        dialogs.message("This cannot be saved", String(error instanceof Error ? error.message : error));
      }
    };
    const copyConvert = async (/** @type {string} */ format, /** @type {string} */ ending) => {
      const output = `${await fileName()}-part.${ending.replace(/\.tar$/, isArchive(ending) ? "/" : "")}`;
      copyOrShow("Command", await convertCommand(format, begin, end, output), "The command is copied");
    };
    // It is there at once: what is typed next is for it.
    dialogs.choose(`Save the ${view.area ? "area" : "view"} as`, [
      ...FORMATS.map(([format, ending, name]) => ({ name, hint: `.${ending}`, run: () => save(format, ending) })),
      ...FORMATS.map(([format, ending, name]) => ({ name: `Copy the command: ${name}`, hint: `--to ${format}`, run: () => told(copyConvert(format, ending)) })),
    ]);
  },
  add() {
    dialogs.ask("Path of a recording to add", "", (path) => {
      if (!path) return;
      tell("Opening…");
      told(ask("add", { path }).then(() => tell(`Added: ${path}`)));
    });
  },
  saveSvg: () => told(fileName().then((name) => download(new Blob([svg().text], { type: "image/svg+xml" }), `${name}.svg`))),
  savePng: () => told(png().then(async (blob) => download(blob, `${await fileName()}.png`))),
};
/** @typedef {typeof all} Actions */
Object.assign(actions, all);

/** What the keyboard acts on: the selected row. */
const withRow = (/** @type {(key: string) => void} */ act) => () => (selected.row ? act(selected.row) : tell("Select a track first: click it, or Arrow down"));

/**
 * Keys are as `KeyboardEvent.key` names them, `Ctrl+` and `Shift+` before them; letters are lower case.
 * @type {{name: string, keys: string[], g2?: string[], run: () => unknown}[]}
 */
export const ACTIONS = [
  { name: "Zoom in", keys: ["w", "+", "="], run: () => zoom(2 / 3) },
  { name: "Zoom out", keys: ["s", "-"], run: () => zoom(3 / 2) },
  { name: "Move left", keys: ["a", "ArrowLeft"], run: () => pan(-1 / 6) },
  { name: "Move right", keys: ["d", "ArrowRight"], run: () => pan(1 / 6) },
  { name: "Page left", keys: ["Shift+ArrowLeft", "Shift+A"], run: () => pan(-0.9) },
  { name: "Page right", keys: ["Shift+ArrowRight", "Shift+D"], run: () => pan(0.9) },
  { name: "Show all", keys: ["0", "Home"], run: fitAll },
  { name: "Go to the end", keys: ["End"], run: () => setView(later(scene.end, -view.span * 0.95), view.span) },
  { name: "Focus the area or event; again: show all", keys: ["f"], g2: [], run: focus },
  { name: "Track above", keys: ["ArrowUp"], g2: ["r", "ArrowUp"], run: () => moveRow(-1) },
  { name: "Track below", keys: ["ArrowDown"], g2: ["f", "ArrowDown"], run: () => moveRow(1) },
  { name: "Page up", keys: ["PageUp"], run: () => setScroll(view.scroll - canvas.clientHeight * 0.9, canvas.clientHeight) },
  { name: "Page down", keys: ["PageDown"], run: () => setScroll(view.scroll + canvas.clientHeight * 0.9, canvas.clientHeight) },
  { name: "First track", keys: ["Ctrl+Home"], run: () => setScroll(0, canvas.clientHeight) },
  { name: "Last track", keys: ["Ctrl+End"], run: () => setScroll(1e12, canvas.clientHeight) },
  { name: "Select the event in the middle, or fold the group", keys: ["Enter"], run: enter },
  { name: "Next event of the track", keys: ["."], run: () => step(1) },
  { name: "Event before on the track", keys: [","], run: () => step(-1) },
  { name: "Set a mark (two: Δ)", keys: ["m"], run: mark },
  { name: "Make the area of the marks", keys: ["r"], g2: [], run: () => view.marks.length === 2 && actions.area(view.marks[0], view.marks[1]) },
  { name: "Make everything the area", keys: ["Ctrl+a"], run: () => actions.area(scene.begin, scene.end) },
  { name: "Make the view the area", keys: ["Shift+R"], run: () => actions.area(view.begin, viewEnd()) },
  { name: "Search", keys: ["/"], run: () => /** @type {HTMLInputElement} */ (document.getElementById("text")).select() },
  { name: "Ask in SQL", keys: [":"], run: () => (panels.show("sql"), writeSql()) },
  { name: "Next hit", keys: ["n"], run: () => nextHit(false) },
  { name: "Hit before", keys: ["Shift+N"], run: () => nextHit(true) },
  { name: "Find a track", keys: ["Ctrl+p"], run: () => dialogs.finder() },
  { name: "Actions", keys: [">", "Ctrl+Shift+P"], run: () => dialogs.palette() },
  { name: "Keys", keys: ["?"], run: () => dialogs.help() },
  { name: "Undo", keys: ["Ctrl+z"], run: () => undoAll(false) },
  { name: "Redo", keys: ["Ctrl+y", "Ctrl+Shift+Z"], run: () => undoAll(true) },
  { name: "Pin or unpin the track", keys: ["p", "Shift+T"], g2: [], run: withRow((key) => actions.pin(key)) },
  { name: "Hide the track or group", keys: ["h", "Delete"], run: withRow((key) => actions.hide(key)) },
  { name: "Show what is hidden", keys: ["Shift+H"], run: () => (view.hidden.clear(), relaid()) },
  { name: "Fold or unfold the group", keys: ["Space"], run: withRow((key) => actions.fold(key)) },
  { name: "Fold all groups", keys: ["Shift+F"], run: () => (scene.info.recordings.forEach((/** @type {any} */ _, /** @type {number} */ at) => view.folded.add(`g${at}`)), relaid()) },
  { name: "Unfold all groups", keys: ["Shift+U"], run: () => (view.folded.clear(), relaid()) },
  { name: "Raise the track", keys: ["u"], run: withRow((key) => actions.raise(key)) },
  { name: "Bury the track", keys: ["b"], run: withRow((key) => actions.bury(key)) },
  { name: "Order tracks by when they have such an event next (chase)", keys: ["c"], g2: [], run: () => told(chase()) },
  { name: "Original order of tracks", keys: ["Shift+C"], run: () => ((view.raised = []), (view.buried = []), relaid()) },
  { name: "Higher tracks", keys: ["t"], run: () => actions.height(1.25) },
  { name: "Lower tracks", keys: ["g"], run: () => actions.height(0.8) },
  { name: "Snapshot of the view", keys: ["x"], run: () => actions.snap() },
  { name: "Next snapshot", keys: ["z"], run: nextSnapshot },
  { name: "Note at the mouse or the selected event", keys: ["Shift+M"], run: () => actions.note() },
  { name: "Snapshots and notes", keys: ["5"], run: () => panels.show("notes") },
  { name: "Copy the link", keys: ["l"], run: () => actions.copyLink() },
  { name: "Next event of the flow", keys: ["]"], run: () => stepFlow(1) },
  { name: "Event before in the flow", keys: ["["], run: () => stepFlow(-1) },
  { name: "Another flow of the event", keys: ["}"], run: otherFlow },
  { name: "Fold long times without events", keys: ["v"], run: () => told(toggleFold()) },
  { name: "Draw the series of the group in one chart", keys: ["o"], run: withRow((key) => chart(key)) },
  { name: "Archives of databases: by zoom, or each by itself", keys: ["Shift+O"], run: () => ((view.archives = !view.archives), relaid()) },
  { name: "Colour by class, track, recording", keys: ["Shift+K"], g2: ["c", "Shift+K"], run: () => colourBy({ class: "track", track: "group" }[view.colour] ?? "class") },
  { name: "Colour by a field…", keys: [], run: () => dialogs.ask("Colour by the field", view.colour.replace(/^.*:/, ""), (name) => name && colourBy(`field:${name}`)) },
  { name: "Search tells upper from lower case", keys: [], run: () => ((view.exact = !view.exact), tell(view.exact ? "Upper and lower case are different" : "Lower case finds both"), view.search && startSearch(view.search, view.mode)) },
  { name: "Move the recording later by A to B (slew)", keys: ["e"], run: withRow((key) => slewBy(recordingKey(key), 1)) },
  { name: "Move the recording earlier by A to B", keys: ["Shift+E"], run: withRow((key) => slewBy(recordingKey(key), -1)) },
  { name: "Move the track later by A to B (slew)", keys: ["i"], run: withRow((key) => slewBy(trackKey(key), 1)) },
  { name: "Move the track earlier by A to B", keys: ["Shift+I"], run: withRow((key) => slewBy(trackKey(key), -1)) },
  { name: "Move everything back", keys: [], run: () => ((view.slews = []), relaid(), panels.refresh()) },
  { name: "Compare: add the area", keys: ["j"], run: addSide },
  { name: "Compare the recordings", keys: [], run: compareRecordings },
  { name: "Compare: one below the other, or on one axis", keys: ["y"], run: stack },
  { name: "Move the row up", keys: ["Ctrl+ArrowUp"], run: withRow((key) => reorder(key, -1)) },
  { name: "Move the row down", keys: ["Ctrl+ArrowDown"], run: withRow((key) => reorder(key, 1)) },
  { name: "Copy the view as a command", keys: ["k"], run: () => actions.copyCommand() },
  { name: "Save the area or view as a recording or table", keys: ["Ctrl+s"], run: actions.saveAs },
  { name: "Add a recording", keys: ["Ctrl+o"], run: () => actions.add() },
  { name: "Save the view as SVG", keys: [], run: () => actions.saveSvg() },
  { name: "Save the view as PNG", keys: [], run: () => actions.savePng() },
  { name: "Follow the end, or stand still", keys: ["Shift+End"], run: () => actions.follow() },
  { name: "Details", keys: ["1"], run: () => panels.show("details") },
  { name: "Event table", keys: ["2"], run: () => panels.show("events") },
  { name: "Statistics of the area", keys: ["3"], run: () => panels.show("stats") },
  { name: "Latency and states", keys: ["6"], run: () => panels.show("latency") },
  { name: "Profile and flame graph", keys: ["7"], run: () => panels.show("profile") },
  { name: "Compare", keys: ["8"], run: () => panels.show("compare") },
  { name: "Event classes and colours", keys: ["9"], run: () => panels.show("classes") },
  { name: "Health of the recordings", keys: ["4"], run: () => panels.show("health") },
  { name: "Panels on or off", keys: ["q"], run: () => panels.toggle() },
  { name: "Times: local, UTC, relative", keys: ["Shift+Z"], run: () => actions.zone({ local: "utc", utc: "relative", relative: "local" }[view.zone] ?? "local") },
  { name: "Theme: auto, light, dark", keys: ["Shift+L"], run: theme },
  { name: "g2's keys (r and f move through tracks)", keys: [], run: () => ((view.g2 = !view.g2), remember(), tell(view.g2 ? "g2's keys are on" : "g2's keys are off")) },
  { name: "Clear the selection", keys: ["Escape"], run: clear },
];

/** Draws the series of the group that a row is, or lies in, in one chart, or each by itself again. @param {string} key */
function chart(key) {
  const at = rows.findIndex((row) => row.key === key);
  const group = key.endsWith("\u0002") ? key.slice(0, -1) : rows.slice(0, at + 1).findLast((row) => row.kind === "group" && (row.key === key || row.depth < rows[at].depth))?.key;
  if (!group || group === "pinned") return tell("Select a group of series first");
  if ((rowOf(group)?.tracks.filter(isSeries).length ?? 0) < 2) return tell("The group has no two series");
  view.charts.has(group) ? view.charts.delete(group) : view.charts.add(group);
  relaid();
  select(group);
}

/** Moves a track up or down among those of its recording. @param {string} key @param {number} way */
function reorder(key, way) {
  const row = rowOf(key);
  if (!row?.track) return tell("Select a track first");
  const track = row.track;
  // As they are ordered now.
  const order = [...new Set(rows.filter((other) => other.track && other.recording === row.recording && !other.key.startsWith("pin:")).flatMap((other) => other.tracks.map(keyOf)))];
  const at = order.indexOf(keyOf(track));
  const to = at + way;
  if (at < 0 || to < 0 || to >= order.length) return;
  [order[at], order[to]] = [order[to], order[at]];
  view.raised = [...order, ...view.raised.filter((other) => !order.includes(other))];
  view.buried = view.buried.filter((other) => !order.includes(other));
  relaid();
}

/** The view that was focused last: again, all is shown. */
let focused = "";

function focus() {
  let begin = scene.begin;
  let end = scene.end;
  if (view.area) ({ begin, end } = view.area);
  else if (view.event) {
    const room = BigInt(Math.max(500, Math.round(view.span / 20)));
    const at = eventAt() ?? view.event.time;
    begin = at - room;
    end = at + room;
  }
  const now = () => `${view.begin} ${view.span}`;
  if (focused === now()) return fitAll();
  const span = Math.max(lengthOf(begin, end) * 1.1, 20);
  setView(later(begin, -span / 22), span);
  focused = now();
}

function enter() {
  const row = rowOf(selected.row);
  if (row?.kind === "group") actions.fold(row.key);
  else if (row?.track) selectEvent(keyOf(row.track), timeAt(pointer.x >= 0 ? pointer.x : canvas.clientWidth / 2) - row.shift);
}

function mark() {
  const time = pointer.x >= 0 ? timeAt(pointer.x) : eventAt() ?? timeAt(canvas.clientWidth / 2);
  view.marks = view.marks.length >= 2 ? [time] : [...view.marks, time];
  remember();
  changed();
  if (view.marks.length === 2) tell(`Δ ${duration(Number(view.marks[1] - view.marks[0]))}`);
  else tell(`Mark A at ${format(time, view.zone, scene.begin)}`);
}

function undoAll(/** @type {boolean} */ isRedo) {
  if (!undo(isRedo)) return tell(isRedo ? "Nothing to do again" : "Nothing to undo");
  showView();
}

function nextSnapshot() {
  const list = kept.snapshots;
  if (!list.length) return tell("No snapshot: x takes one");
  showSnapshot(list[snapshot++ % list.length]);
}

function theme() {
  view.theme = { auto: "light", light: "dark", dark: "auto" }[view.theme] ?? "auto";
  applyTheme();
  remember();
  tell(`Theme: ${view.theme}`);
}

function clear() {
  view.area = null;
  view.event = null;
  view.marks = [];
  pointer.zoom = null;
  clearFlows();
  if (view.search) startSearch("", view.mode);
  /** @type {HTMLInputElement} */ (document.getElementById("text")).value = "";
  remember();
  changed();
  panels.refresh();
}
