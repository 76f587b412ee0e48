// What the page shows: the scene that the server describes, and the view, which is in the address and can be undone.

import { Delayed, isIdle, sleep } from "./busy.js";
import { Contents } from "./contents.js";
import { later, lengthOf } from "./fold.js";
import { duration } from "./time.js";

/**
 * @typedef {{id: number, recording: number, path: string[], name: string, kind: string, unit: string|null, rows: number,
 *   values: number[]|null, depths: number, estimate: boolean, first: bigint, last: bigint}} Track
 * A line of a chart: of a database the archives of a source, of which the zoom chooses.
 * @typedef {{label: string, averages: Track[], lows: Track[], highs: Track[]}} Line
 * @typedef {{begin: bigint, end: bigint, mark: bigint, recordings: number[]}} Side a range of some recordings that is compared
 * @typedef {{kind: "group"|"track", key: string, label: string, depth: number, height: number, top: number,
 *   track?: Track, tracks: Track[], open?: boolean, recording: number, count?: number, shift: bigint, lines?: Line[]}} Row
 */

/** The view: everything that a link holds. */
export const view = {
  begin: 0n,
  span: 1e9,
  scroll: 0,
  /** @type {Set<string>} */ folded: new Set(),
  /** @type {Set<string>} */ hidden: new Set(),
  /** @type {string[]} */ pinned: [],
  /** @type {string[]} tracks that were raised (first) and buried (last) */ raised: [],
  /** @type {string[]} */ buried: [],
  filter: "",
  scale: 1,
  zone: "local",
  theme: "auto",
  tab: "details",
  panel: 240,
  search: "",
  mode: "text",
  /** @type {{begin: bigint, end: bigint}|null} */ area: null,
  /** @type {bigint[]} */ marks: [],
  /** @type {{track: string, time: bigint, nth: number}|null} */ event: null,
  g2: false,
  /** `class`, `track`, `group`, or `field:` and a name */ colour: "class",
  /** @type {string[]} names of event classes that are not drawn */ off: [],
  /** whether long times without events are folded */ fold: false,
  /** @type {Set<string>} groups whose series are drawn in one chart */ charts: new Set(),
  /** whether a database has a track for each archive */ archives: false,
  /** @type {[string, bigint][]} by how much tracks (their keys) and recordings (`r` and the number) are moved */ slews: [],
  /** @type {Side[]} */ sides: [],
  /** whether the sides are drawn one below the other */ stacked: false,
  /** deviations above the mean from which on a value is an anomaly */ sigma: 2.5,
  /** whether a search tells upper from lower case */ exact: false,
  /** @type {string[]} columns of the event table */ columns: [],
  /** whether the event table follows the view */ tableFollows: true,
  /** @type {Record<string, string>} what the analyses ask for */ asked: {},
  /** the statement of the panel SQL */ sql: "",
  follow: false,
};

/** @typedef {{recording: number, stream: string, begin: bigint, end: bigint, text: string, damage: boolean}} Notice */

/** @type {Map<string, Track>|null} */
let byKey = null;

/** What is known of the recordings. */
export const scene = {
  generation: 0,
  whole: false,
  begin: 0n,
  end: 0n,
  /** @type {any} */ info: null,
  /** @type {Track[]} */ tracks: [],
  /** @type {Map<number, Track>} */ byId: new Map(),
  /** Tracks by their names in the view: thousands of names are made when one is looked up. */
  get byKey() {
    return (byKey ??= new Map(scene.tracks.map((track) => [keyOf(track), track])));
  },
  /** @type {Notice[]} */ notices: [],
  /** @type {Map<string, Notice[]>} those of a track; of a stream that is not a track, those of its recording */ noticesOf: new Map(),
  is_lost: false,
  /** How often the recordings have grown. */ epoch: 0,
};

/** @type {Row[]} */
export let rows = [];
/** The row that the keyboard acts on. */
export const selected = { row: "" };

/** @type {(() => void)[]} */
const listeners = [];
export const onChange = (/** @type {() => void} */ listener) => listeners.push(listener);

let isQueued = false;
let isHeld = false;
/** Whether a frame was to be drawn meanwhile. */
let isLate = false;
/** Draws again, once a frame. */
export function changed() {
  if (isQueued) return;
  isQueued = true;
  requestAnimationFrame(showFrame);
}

function showFrame() {
  isLate = isHeld;
  if (isHeld) return;
  isQueued = false;
  for (const listener of listeners) listener();
}

/** Draws nothing until something is there, or a time in milliseconds has passed. @param {Promise<unknown>} work @param {number} most */
export async function holdFrames(work, most) {
  isHeld = true;
  await Promise.race([work, sleep(most)]);
  isHeld = false;
  if (isLate) requestAnimationFrame(showFrame);
  isLate = false;
}

/** Whether all is known and drawn, and nothing under way, for tests. */
export const idle = () => Boolean(scene.info?.settled) && !isQueued && isIdle();

/** @type {WeakMap<Track, string>} */
const keys = new WeakMap();

/** The name of a track in the view. @param {Track} track */
export function keyOf(track) {
  let key = keys.get(track);
  if (key === undefined) keys.set(track, (key = `${track.recording}/${track.path.join("\u0001")}`));
  return key;
}

const contents = new Contents();
/** What a request for the scene says about what is known. */
export const known = () => contents.known();

/** Takes a scene that the server has sent. @param {any} answer @param {boolean} isFirst whether the view, which is to come, lays it out */
export function takeScene(answer, isFirst) {
  const [oldTracks, oldNotices] = [contents.tracks, contents.notices];
  const isOther = contents.take(answer);
  const { recordings, tracks, notices } = contents;
  scene.info = { ...answer, recordings, tracks: null, notices: null };
  scene.generation = answer.generation;
  scene.whole = answer.whole;
  scene.begin = BigInt(answer.begin);
  scene.end = BigInt(answer.end);
  scene.tracks = tracks;
  scene.notices = notices;
  if (tracks !== oldTracks) {
    scene.byId = new Map(tracks.map((track) => [track.id, track]));
    byKey = null;
  }
  if (tracks !== oldTracks || notices !== oldNotices) sortNotices();
  if (!isOther) return;
  trees.clear();
  if (isFirst) return;
  layOut();
}

/** Finds which notices are of which tracks. */
function sortNotices() {
  scene.noticesOf = new Map();
  if (!scene.notices.length) return;
  const names = new Set(scene.tracks.map((track) => `${track.recording}/${track.name}`));
  for (const notice of scene.notices) {
    const name = `${notice.recording}/${notice.stream}`;
    const key = names.has(name) ? name : String(notice.recording);
    const list = scene.noticesOf.get(key) ?? [];
    list.push(notice);
    scene.noticesOf.set(key, list);
  }
}

function basename(/** @type {string} */ path) {
  const whole = path.endsWith("/") ? path.replace(/\/+$/, "") : path;
  return whole.slice(whole.lastIndexOf("/") + 1) || path;
}
/** The name of a track; of a path, its last part. */
export const shorten = (/** @type {string} */ name) => (name.startsWith("/") ? basename(name) : name);

/** Whether a track is drawn as a series. @param {Track} track */
export const isSeries = (track) => track.kind === "sample" && !track.depths;

/** The height of a track. @param {Track} track */
function heightOf(track) {
  if (track.depths) return Math.round((Math.min(track.depths, 32) * 16 + 10) * Math.max(1, view.scale));
  return Math.max(4, Math.round((isSeries(track) ? 46 : 24) * view.scale));
}

/** @type {WeakMap<any[], string[]>} */
const recordingLabels = new WeakMap();

/** What recordings are called: by the last part of their paths, and by where they differ if others are called so, too. @param {any[]} recordings */
export function labelsOfRecordings(recordings) {
  const known = recordingLabels.get(recordings);
  if (known) return known;
  const labels = recordings.map((recording) => shorten(recording.path) || recording.path);
  /** @type {Map<string, number[]>} */ const byName = new Map();
  labels.forEach((label, at) => {
    const group = byName.get(label);
    if (group) group.push(at);
    else byName.set(label, [at]);
  });
  for (const [name, group] of byName) {
    if (group.length < 2 || group.length > 1000) continue;
    const paths = group.map((at) => recordings[at].path.split("/"));
    const isAlike = (/** @type {number} */ at) => paths.every((parts) => parts.at(at) === paths[0].at(at));
    const least = Math.min(...paths.map((parts) => parts.length));
    let [from, to] = [0, 1];
    while (from < least - 1 && isAlike(from)) from++;
    while (to < least - from && isAlike(-to - 1)) to++;
    group.forEach((at, own) => {
      const rest = paths[own].slice(from, paths[own].length - to).join("/");
      labels[at] = rest ? `${name} (${rest})` : name;
    });
  }
  recordingLabels.set(recordings, labels);
  return labels;
}

/** Computes the rows from the tracks, what is folded, hidden, pinned and filtered. */
export function layOut() {
  const filter = view.filter.toLowerCase();
  const matches = (/** @type {Track} */ track) =>
    !filter || `${scene.info.recordings[track.recording].path} ${track.name} ${track.path.join(" ")}`.toLowerCase().includes(filter);
  /** @type {Row[]} */
  const list = [];
  const add = (/** @type {any} */ row) => {
    row.tracks ??= [];
    row.shift ??= 0n;
    list.push(row);
  };
  let lane = "";
  let laneShift = 0n;
  const addTrack = (/** @type {Track} */ track, /** @type {number} */ depth, prefix = "", label = "") =>
    list.push({
      kind: "track", key: lane + prefix + keyOf(track), label: label || (prefix ? shorten(track.name) : leafName(track)),
      depth, height: heightOf(track), top: 0, track, tracks: [track], recording: track.recording, shift: laneShift + slewOf(track),
      lines: isSeries(track) ? [lineOf(track)] : undefined,
    });
  const addChart = (/** @type {Line[]} */ lines, /** @type {number} */ depth, /** @type {string} */ key, /** @type {string} */ label) => {
    const tracks = lines.flatMap((line) => [...line.averages, ...line.lows, ...line.highs]);
    const track = lines[0].averages[0] ?? tracks[0];
    add({
      kind: "track", key: lane + key, label, depth, height: Math.max(24, Math.round((lines.length > 1 ? 90 : 46) * view.scale)), track, tracks, recording: track.recording,
      shift: laneShift + slewOf(track), lines,
    });
  };
  const pinned = view.pinned.map((key) => scene.byKey.get(key)).filter((track) => track !== undefined);
  if (pinned.length) {
    add({ kind: "group", key: "pinned", label: "Pinned", depth: 0, height: 22, open: true, recording: -1, count: pinned.length });
    for (const track of pinned) addTrack(track, 1, "pin:");
  }
  // Order: as the server has it, then what was raised and buried.
  const [raised, buried] = [view.raised, view.buried].map((list) => new Map(list.map((key, at) => [key, at])));
  const rank = (/** @type {Track} */ track) => {
    const key = keyOf(track);
    const up = raised.get(key);
    const down = buried.get(key);
    return up !== undefined ? up - 1e6 : down !== undefined ? 1e6 - down : 0;
  };
  const isEach = !filter && !view.hidden.size;
  const tracks = isEach ? scene.tracks : scene.tracks.filter((track) => matches(track) && !view.hidden.has(keyOf(track)));
  const isMoved = view.raised.length + view.buried.length > 0;
  /** @type {Map<number, Track[]>} */
  const byRecording = new Map();
  for (const track of tracks) {
    const own = byRecording.get(track.recording);
    if (own) own.push(track);
    else byRecording.set(track.recording, [track]);
  }
  if (isMoved) for (const own of byRecording.values()) {
    const ranks = new Map(own.map((track) => [track, rank(track)]));
    own.sort((a, b) => (ranks.get(a) ?? 0) - (ranks.get(b) ?? 0));
  }
  const labels = labelsOfRecordings(scene.info?.recordings ?? []);
  /** @type {(Side|null)[]} */
  const sides = view.stacked && view.sides.length > 1 ? view.sides : [null];
  sides.forEach((side, at) => {
    const name = side ? `${String.fromCharCode(65 + at)}  ` : "";
    lane = side ? `${at}:` : "";
    // Of what is compared, the marks are below each other.
    laneShift = side ? view.sides[0].mark - side.mark : 0n;
    for (let recording = 0; recording < (scene.info?.recordings.length ?? 0); recording++) {
      if (side && !side.recordings.includes(recording)) continue;
      const own = byRecording.get(recording) ?? [];
      if (filter && !own.length) continue;
      const key = `${lane}g${recording}`;
      const open = !view.folded.has(key);
      const moved = view.slews.length ? slew(`r${recording}`) : 0n;
      const label = name + labels[recording] + (moved ? `  ${moved > 0n ? "+" : "−"}${duration(Math.abs(Number(moved)))}` : "");
      add({ kind: "group", key, label, depth: 0, height: 24, open, recording, tracks: own, count: own.length });
      if (!open) continue;
      const lines = linesOf(own);
      if (view.charts.has(key) && lines.length > 1) addChart(lines, 1, `${key}\u0002`, `${lines.length} series`);
      else if (!view.archives && own.length && own.every((track) => track.path.length > 1 && track.path[0].startsWith("archive"))) {
        for (const line of lines) addChart([line], 1, keyOf(line.averages[0] ?? line.highs[0] ?? line.lows[0]), line.label);
      } else addTree(own, `${lane}g${recording}`, recording, add, addTrack, addChart);
    }
  });
  const [first] = list;
  isShifted = list.some((row) => row.shift !== first.shift);
  let top = 0;
  for (const row of list) {
    row.top = top;
    top += row.height;
  }
  rows = list;
}

/** What a row is, at length. @param {Row} row */
export function titleOf(row) {
  const info = scene.info.recordings[row.recording];
  if (row.kind === "track") return `${info?.path}: ${row.tracks.map((track) => track.name).join(", ")}`.slice(0, 500);
  return row.depth === 0 && info ? `${info.path}: ${info.what}` : row.label;
}

const leafName = (/** @type {Track} */ track) => {
  const inner = track.path.length > 1;
  return inner && track.kind === "sample" ? track.path.at(-1) ?? track.name : shorten(track.name);
};

/** Whether some rows are moved in time against others. */
export let isShifted = false;

/** By how much a track or recording is moved. @param {string} key */
export const slew = (key) => view.slews.find(([slew]) => slew === key)?.[1] ?? 0n;
/** By how much a track is moved, with its recording. @param {Track} track */
export const slewOf = (track) => (view.slews.length ? slew(keyOf(track)) + slew(`r${track.recording}`) : 0n);

const lineOf = (/** @type {Track} */ track) => ({ label: track.path.at(-1) === "value" ? track.path.at(-2) ?? track.name : track.path.at(-1) ?? track.name, averages: [track], lows: [], highs: [] });

/**
 * The lines of some tracks as places among them, by the path of the first: recordings that are alike have the same paths.
 * @typedef {{label: string, averages: number[], lows: number[], highs: number[]}} Places
 * @type {WeakMap<string[], {paths: string[][], lines: Places[]}>}
 */
const alike = new WeakMap();

/** @param {Track[]} tracks @returns {Places[]} */
function placesOf(tracks) {
  const known = tracks.length ? alike.get(tracks[0].path) : undefined;
  if (known?.paths.length === tracks.length && tracks.every((track, at) => track.path === known.paths[at] && !track.depths)) return known.lines;
  /** @type {Map<string, Places>} */
  const lines = new Map();
  tracks.forEach((track, at) => {
    if (!isSeries(track)) return;
    const isArchive = track.path[0].startsWith("archive");
    const key = isArchive ? track.path.slice(1).join("\u0001") : keyOf(track);
    let line = lines.get(key);
    if (!line) lines.set(key, (line = { label: lineOf(track).label, averages: [], lows: [], highs: [] }));
    const rest = track.name.slice(track.path.at(-1)?.length ?? 0);
    const list = !isArchive ? line.averages : /\bMIN\b/.test(rest) ? line.lows : /\bMAX\b/.test(rest) ? line.highs : line.averages;
    list.push(at);
  });
  for (const line of lines.values()) {
    if (!line.averages.length) [line.averages, line.highs] = [line.highs.length ? line.highs : line.lows, []];
  }
  const list = [...lines.values()];
  if (tracks.length && tracks.every(isSeries)) alike.set(tracks[0].path, { paths: tracks.map((track) => track.path), lines: list });
  return list;
}

/** The series of some tracks: of a database one for each source, the finest archive first. @param {Track[]} tracks @returns {Line[]} */
function linesOf(tracks) {
  const finest = (/** @type {number[]} */ places) => places.map((at) => tracks[at]).sort((a, b) => stepOf(a) - stepOf(b));
  return placesOf(tracks).map(({ label, averages, lows, highs }) => ({ label, averages: finest(averages), lows: finest(lows), highs: finest(highs) }));
}

/** How far apart the points of a series are, on average. @param {Track} track */
export const stepOf = (track) => (track.rows > 1 ? Number(track.last - track.first) / (track.rows - 1) : Infinity);

/** The trees of recordings, and what they were made of. @type {Map<string, {own: Track[], root: any}>} */
const trees = new Map();

/** Adds the tracks of a recording, nested as their paths are. */
function addTree(/** @type {Track[]} */ own, /** @type {string} */ base, /** @type {number} */ recording, /** @type {(row: any) => void} */ add, /** @type {(track: Track, depth: number, prefix?: string, label?: string) => void} */ addTrack, /** @type {(lines: Line[], depth: number, key: string, label: string) => void} */ addChart) {
  /** @typedef {{key: string, part: string, track: Track|null, children: Map<string, any>, all: Track[]}} Node */
  const make = (/** @type {string} */ key, /** @type {string} */ part) => ({ key, part, track: null, children: new Map(), all: [] });
  // The same tracks in the same order have the same tree.
  const cached = trees.get(base);
  const isSame = cached?.own.length === own.length && cached.own.every((track, at) => track === own[at]);
  const root = isSame ? cached.root : /** @type {any} */ (make(base, ""));
  if (!isSame) trees.set(base, { own, root });
  for (const track of isSame ? [] : own) {
    let node = root;
    for (const part of track.path) {
      let next = node.children.get(part);
      if (!next) node.children.set(part, (next = make(`${node.key}\u0001${part}`, part)));
      next.all.push(track);
      node = next;
    }
    node.track = track;
  }
  const walk = (/** @type {any} */ node, /** @type {number} */ depth) => {
    for (const child of node.children.values()) {
      if (!child.children.size) {
        if (child.track) addTrack(child.track, depth);
        continue;
      }
      const only = child.children.size === 1 && !child.track ? [...child.children.values()][0] : null;
      if (only && only.track && !only.children.size && !child.part.startsWith("archive")) {
        const own = leafName(only.track);
        addTrack(only.track, depth, "", only.part === "value" ? child.part : own === only.part ? `${child.part} ${only.part}` : own);
        continue;
      }
      const open = !view.folded.has(child.key);
      const first = child.all[0];
      // Archives are named after their class by the titles of their tracks.
      const tail = first && first.path.at(-1) && first.name.startsWith(first.path.at(-1) + " ") ? first.name.slice(first.path.at(-1).length + 1) : "";
      const label = child.track ? shorten(child.track.name) : tail && child.part.startsWith("archive") ? tail : child.part;
      add({ kind: "group", key: child.key, label, depth, height: 22, open, recording, tracks: child.all, count: child.all.length });
      if (!open) continue;
      const lines = view.charts.has(child.key) ? linesOf(child.all) : [];
      if (lines.length > 1) {
        addChart(lines, depth + 1, `${child.key}\u0002`, `${lines.length} series`);
        continue;
      }
      if (child.track) addTrack(child.track, depth + 1);
      walk(child, depth + 1);
    }
  };
  walk(root, 1);
}

/** From the first to the last event of all rows, wherever they are moved. */
export function bounds() {
  let { begin, end } = scene;
  if (isShifted) for (const row of rows) {
    if (!row.track?.rows || !row.shift) continue;
    const [first, last] = [row.track.first + row.shift, row.track.last + row.shift];
    if (first < begin) begin = first;
    if (last > end) end = last;
  }
  return { begin, end };
}

/** Shows all of the recordings. */
export function fitAll() {
  const { begin, end } = bounds();
  const span = lengthOf(begin, end);
  const room = Math.max(span * 0.02, 500);
  setView(begin - BigInt(Math.round(room)), span + 2 * room);
}

/** Shows the end of the recordings: not a step of its own among those that can be undone. */
export function goToEnd() {
  view.begin = scene.end - BigInt(Math.round(view.span * 0.95));
  changed();
}

/** Shows a range of time. @param {bigint} begin @param {number} span */
export function setView(begin, span) {
  const all = bounds();
  const most = Math.max(Number(all.end - all.begin) * 1.5, 1e6);
  span = Math.min(Math.max(span, 20), most);
  const low = all.begin - BigInt(Math.round(span * 0.9));
  const high = later(all.end, -span * 0.1);
  view.begin = begin < low ? low : begin > high ? (high < low ? low : high) : begin;
  view.span = span;
  remember();
  changed();
}

/** Keeps a scroll position within the rows. @param {number} scroll @param {number} height */
export function setScroll(scroll, height) {
  const last = rows.at(-1);
  const most = last ? Math.max(0, last.top + last.height + 40 - height) : 0;
  view.scroll = Math.round(Math.min(Math.max(0, scroll), most));
  remember();
  changed();
}

const REPLACER = (/** @type {string} */ _key, /** @type {any} */ value) =>
  typeof value === "bigint" ? { n: String(value) } : value instanceof Set ? { s: [...value] } : value;
const REVIVER = (/** @type {string} */ _key, /** @type {any} */ value) => {
  if (value && typeof value === "object" && typeof value.n === "string" && /^-?\d{1,19}$/.test(value.n)) return BigInt(value.n);
  return value && typeof value === "object" && Array.isArray(value.s) ? new Set(value.s) : value;
};

/** The view as text, for `read`. */
export const write = () => JSON.stringify(view, REPLACER);

/** Takes a view that was written. What is not of the right type is left out. @param {string} text */
export function read(text) {
  let other;
  try {
    other = JSON.parse(text, REVIVER);
  } catch {
    return false;
  }
  if (!other || typeof other !== "object") return false;
  const isAsked = (/** @type {any} */ value) => value && typeof value === "object" && !Array.isArray(value) && !(value instanceof Set);
  const like = (/** @type {any} */ a, /** @type {any} */ b) =>
    typeof a === typeof b && Array.isArray(a) === Array.isArray(b) && a instanceof Set === b instanceof Set && a !== null;
  const isArea = (/** @type {any} */ value) => value === null || (value && typeof value.begin === "bigint" && typeof value.end === "bigint");
  const isEvent = (/** @type {any} */ value) => value === null || (value && typeof value.time === "bigint" && typeof value.track === "string");
  for (const key of /** @type {(keyof typeof view)[]} */ (Object.keys(view))) {
    const value = other[key];
    const fits = key === "area" ? isArea(value) : key === "event" ? isEvent(value) : key === "asked" ? isAsked(value) : value !== undefined && like(value, view[key]);
    if (fits && !(typeof value === "number" && !Number.isFinite(value))) /** @type {any} */ (view)[key] = value;
  }
  view.slews = view.slews.filter((slew) => Array.isArray(slew) && typeof slew[0] === "string" && typeof slew[1] === "bigint").slice(0, 1000);
  view.sides = view.sides.filter((side) => side && [side.begin, side.end, side.mark].every((time) => typeof time === "bigint") && Array.isArray(side.recordings)).slice(0, 8);
  for (const list of /** @type {string[][]} */ ([view.off, view.columns, view.pinned, view.raised, view.buried])) list.splice(0, list.length, ...list.filter((key) => typeof key === "string"));
  view.asked = Object.fromEntries(Object.entries(view.asked).filter((entry) => typeof entry[1] === "string"));
  view.sigma = Math.min(Math.max(view.sigma, 0), 1000);
  view.marks = view.marks.filter((mark) => typeof mark === "bigint").slice(-2);
  view.span = Math.max(view.span, 20);
  view.scale = Math.min(Math.max(view.scale, 0.25), 4);
  return true;
}

/** @type {(() => void)[]} */
const settledListeners = [];
/** Calls a listener when the view has changed and stands still: not in each frame of a movement. */
export const onSettled = (/** @type {() => void} */ listener) => settledListeners.push(listener);

/** @type {string[]} */ let past = [];
/** @type {string[]} */ let future = [];
let present = "";

/** Puts the view into the address, and what it was before among what can be undone, when it has stood for a while. */
export const remember = () => settling.ask();

const settling = new Delayed(250, settle);

function settle() {
  settling.cancel();
  const text = write();
  if (text === present) return;
  if (present) past.push(present);
  if (past.length > 200) past.shift();
  future = [];
  present = text;
  history.replaceState(null, "", "#" + encodeURIComponent(text));
  for (const listener of settledListeners) listener();
}

/** Goes back to the view before, or forwards again; returns whether there is one. @param {boolean} isRedo */
export function undo(isRedo) {
  settle();
  const from = isRedo ? future : past;
  const to = isRedo ? past : future;
  const text = from.pop();
  if (text === undefined) return false;
  to.push(present);
  present = text;
  read(text);
  history.replaceState(null, "", "#" + encodeURIComponent(text));
  for (const listener of settledListeners) listener();
  return true;
}
