// Searches of a page that stands alone: by text, by name, by condition; what a lens shows, and where values go.

import { patternOf, readCondition, readEvent } from "./where.js";
import { noBins } from "./wire.js";

/** @import { Line } from "./embedded.js" */

/** Rows around an event that arrows lead through, on each side. */
const MOST_AROUND = 100;

/** Values that have a colour of their own, the colour of others, and of events without a value: as `src/lens.rs` has them. */
const MOST_VALUES = 62;
const OTHER_VALUE = 62;
const NO_VALUE = 63;

/** @param {any} value */
function textOfValue(value) {
  if (value === null || value === undefined) return "";
  if (typeof value !== "object") return String(value);
  if (value.labels) return value.labels[0] ?? String(value.value);
  return value.flags ? String(value.value) : JSON.stringify(value);
}

/** What a search has found: the rows of each track in order, with the kinds by which they are coloured, and the values that kinds stand for. */
class Found {
  /** @param {Line[]} lines @param {(line: Line) => number} kindOf @param {string[]} values */
  constructor(lines, kindOf, values = []) {
    this.values = values;
    /** Rows: an event is one on each of its tracks. */
    this.count = 0;
    /** By track: times and kinds. @type {Map<number, {time: bigint, kind: number}[]>} */
    this.byTrack = new Map();
    for (const line of lines) for (const [track] of line.tracks) {
      const list = this.byTrack.get(track) ?? [];
      if (!list.length) this.byTrack.set(track, list);
      this.count++;
      list.push({ time: BigInt(line.time), kind: kindOf(line) });
    }
  }
}

/** Whether a track is one of those that a request names, if it names some. @param {any} request @returns {(track: number) => boolean} */
export function isOnAny({ tracks }) {
  const wanted = tracks && new Set(tracks);
  return (track) => !wanted || wanted.has(track);
}

/** Whether a line is on one of the tracks that a request names. @param {any} request @returns {(line: Line) => boolean} */
export function isOn(request) {
  const wanted = isOnAny(request);
  return (line) => !request.tracks || line.tracks.some(([track]) => wanted(track));
}

export class Searches {
  /** @type {(Found|null)[]} */ found = [];
  /** @type {WeakMap<Line, any>} */ events = new WeakMap();

  /** @param {import("./embedded.js").Embedded} page */
  constructor(page) {
    this.page = page;
  }

  /** What the JSON of a line says. @param {Line} line */
  eventOf(line) {
    let event = this.events.get(line);
    // The JSON has times as texts.
    if (!event) this.events.set(line, (event = { ...readEvent(line.json), timestamp: BigInt(line.time) }));
    return event;
  }

  /** The lines for which a condition holds. @param {string} source @param {Line[]} lines */
  where(source, lines) {
    const { holds, check } = readCondition(source);
    check(this.page.lines.map((line) => this.eventOf(line)));
    return lines.filter((line) => holds(this.eventOf(line)));
  }

  /** The lines among some that a request asks for. @param {any} request @param {Line[]} lines */
  matching({ text, mode, case: isExact }, lines) {
    if (mode === "where") return this.where(text, lines);
    const nameOf = (/** @type {Line} */ line) => this.page.nameOf(line);
    if (mode === "name") {
      const pattern = patternOf(text);
      return lines.filter((line) => pattern.test(nameOf(line)));
    }
    // Lower case finds upper case, too.
    const fold = isExact || text !== text.toLowerCase() ? (/** @type {string} */ text) => text : (/** @type {string} */ text) => text.toLowerCase();
    return lines.filter((line) => fold(nameOf(line)).includes(text) || fold(line.json).includes(text));
  }

  /** @param {Found} found */
  add(found) {
    return { job: this.found.push(found) };
  }

  /** @param {number} job */
  get(job) {
    const found = this.found[job - 1];
    if (!found) throw new Error("this search has ended: search again");
    return found;
  }

  start(/** @type {any} */ request) {
    return this.add(new Found(this.matching(request, this.page.lines), (line) => line.class));
  }

  stop(/** @type {any} */ { job }) {
    this.found[job - 1] = null;
    return {};
  }

  /** Events of which a condition holds, with the values of a field as their colours. @param {any} request */
  lens({ condition, field }) {
    const lines = condition ? this.where(condition, this.page.lines) : this.page.lines;
    if (!field) return this.add(new Found(lines, (line) => line.class));
    const read = (/** @type {any} */ event) => ["payload", "specific_context", "common_context", "packet_context"].map((scope) => event[scope]?.[field]).find((value) => value !== undefined) ?? event[field];
    /** @type {Map<string, number>} */ const numbers = new Map();
    const kindOf = (/** @type {Line} */ line) => {
      const text = textOfValue(read(this.eventOf(line)));
      if (text === "") return NO_VALUE;
      const known = numbers.get(text);
      if (known !== undefined) return known;
      if (numbers.size >= MOST_VALUES) return OTHER_VALUE;
      numbers.set(text, numbers.size);
      return numbers.size - 1;
    };
    const found = new Found(lines, kindOf);
    found.values = [...numbers.keys()];
    return this.add(found);
  }

  /** The rows of some tracks, in order of time. @param {Found} found @param {any} request @returns {[number, bigint][]} */
  rows(found, request) {
    const wanted = isOnAny(request);
    const rows = [...found.byTrack].flatMap(([track, list]) => (wanted(track) ? list.map(({ time }) => /** @type {[number, bigint]} */ ([track, time])) : []));
    return rows.sort((a, b) => (a[1] < b[1] ? -1 : a[1] > b[1] ? 1 : a[0] - b[0]));
  }

  /** The rows of a search around a time. @param {any} request */
  around({ job, time }) {
    const rows = this.rows(this.get(job), {});
    const from = rows.findIndex((row) => row[1] >= BigInt(time));
    const at = from < 0 ? rows.length : from;
    return { done: true, stops: rows.slice(Math.max(0, at - MOST_AROUND), at + MOST_AROUND).map(([track, time]) => [track, String(time)]) };
  }

  /** The tracks of a search in the order of their first rows from a time on. @param {any} request */
  order({ job, time, ...request }) {
    const first = new Map();
    for (const [track, at] of this.rows(this.get(job), request)) if (at >= BigInt(time) && !first.has(track)) first.set(track, String(at));
    return { done: true, tracks: [...first] };
  }

  /** @param {number} job @param {number} track @param {bigint} begin @param {number} length @param {number} spans */
  bins(job, track, begin, length, spans) {
    const out = noBins(track);
    for (const { time, kind } of this.found[job - 1]?.byTrack.get(track) ?? []) {
      const from = Number(time - begin);
      const position = Math.floor(from / length);
      if (position < 0 || position >= spans) continue;
      if (out.position.at(-1) === position) {
        out.count[out.count.length - 1]++;
        continue;
      }
      out.position.push(position);
      out.count.push(1);
      out.kind.push(kind % (NO_VALUE + 1));
      out.offset.push(from - position * length);
      out.known.push(0);
      out.values.push(NaN, NaN, NaN);
    }
    return out;
  }

  /** How the rows of a track at a time are coloured; `undefined` if a search has none there. @param {number} job @param {number} track @param {bigint} time */
  kindAt(job, track, time) {
    return this.found[job - 1]?.byTrack.get(track)?.find((row) => row.time === time)?.kind;
  }

  hits(/** @type {any} */ { job, begin, end, width, ...request }) {
    const found = this.get(job);
    const density = Array(width).fill(0);
    const from = BigInt(begin);
    const length = (BigInt(end) - from) / BigInt(width) + 1n;
    for (const [, time] of this.rows(found, request)) {
      const column = Number((time - from) / length);
      if (time >= from && column < width) density[column]++;
    }
    return { done: true, count: found.count, cut: !this.page.data.whole, density, values: found.values };
  }

  next(/** @type {any} */ { job, time, back, ...request }) {
    const rows = this.rows(this.get(job), request);
    const from = BigInt(time);
    const found = back ? rows.findLast((row) => row[1] < from) : rows.find((row) => row[1] > from);
    return found ? { track: found[0], time: String(found[1]) } : { track: null, done: true };
  }
}
