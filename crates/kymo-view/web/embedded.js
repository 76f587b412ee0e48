// A page that stands alone: what the server would answer comes from what was written into the page.

import { Contents } from "./contents.js";
import { Analyses } from "./embedded-analyses.js";
import { Searches, isOn } from "./embedded-search.js";
import { statisticsOf } from "./embedded-stats.js";
import { shellWord } from "./shell.js";
import { TILE, VALUES, decodeText, noBins } from "./wire.js";

/**
 * An event or a sample: `slice` if it is counted as a slice; on each of its tracks what it is called there (samples: nothing) and its value.
 * @typedef {{time: string, skip: number, recording: number, class: number, json: string, slice?: boolean, tracks: [number, string|null, (number|null)?][]}} Line
 * @typedef {{at: bigint, line: Line, label: string|null, index: number}} OnTrack
 */

/** The first position of a sorted list at which a condition holds. @param {number} length @param {(at: number) => boolean} holds */
function firstOf(length, holds) {
  let [from, to] = [0, length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if (holds(middle)) to = middle;
    else from = middle + 1;
  }
  return from;
}

/** Gaps at most, and the resolution in which they are looked for, as `src/gaps.rs` has them. */
const MOST_GAPS = 64;
const GAP_COLUMNS = 4096;

/** Stops of a flow on either side of an event, and flows through it at most. */
const MOST_STOPS = 100;
const MOST_FLOWS = 64;

export class Embedded {
  isLive = false;
  searches = new Searches(this);

  /** @param {any} data */
  constructor(data) {
    this.data = data;
    const contents = new Contents();
    contents.take(data.scene);
    this.recordings = contents.recordings;
    this.tracks = new Map(contents.tracks.map((track) => [track.id, track]));
    this.analyses = new Analyses(this, this.tracks);
    this.finest = decodeText(data.tiles);
    this.shift = this.finest.shift;
    this.bins = new Map(this.finest.tracks.map((track) => [track.track, track]));
    /** @type {Line[]} */ this.lines = data.events;
    this.times = this.lines.map((line) => BigInt(line.time));
    /** Until when the page holds events. */
    this.until = data.whole ? BigInt(data.end) : this.times.at(-1) ?? BigInt(data.begin) - 1n;
    /** @type {Map<number, OnTrack[]>} */ this.byTrack = new Map();
    this.lines.forEach((line, index) => {
      for (const [track, label] of line.tracks) {
        const list = this.byTrack.get(track) ?? [];
        list.push({ at: this.times[index], line, label, index });
        this.byTrack.set(track, list);
      }
    });
  }

  /** @param {string} name @param {any} request @returns {Promise<any>} */
  async ask(name, request) {
    switch (name) {
      case "scene": {
        const { scene } = this.data;
        return request.generation === scene.generation ? { generation: scene.generation, same: true } : scene;
      }
      case "command": return { input: [], selection: [], symbols: [], paths: this.recordings.slice(0, 20).map((recording) => recording.path) };
      case "describe": return this.describe(request);
      case "fingerprints": return { fingerprints: this.data.fingerprints };
      case "density": return this.density(request);
      case "slices": return this.slices(request);
      case "few": return this.few(request);
      case "event": return this.event(request);
      case "page": return this.page(request);
      case "search": return this.searches.start(request);
      case "lens": return this.searches.lens(request);
      case "found": return this.searches.hits(request);
      case "next": return this.searches.next(request);
      case "around": return this.searches.around(request);
      case "order": return this.searches.order(request);
      case "stop": return this.searches.stop(request);
      case "flows": return this.flows(request);
      case "gaps": return this.gaps(request);
      case "stats": return statisticsOf(this, request);
      case "analysis": return { job: 0, done: true, answer: this.analyses.answer(request) };
      case "keep": return this.keep(request);
      case "alive": case "close": return {};
      default: throw this.absent();
    }
  }

  /** Why something cannot be answered, and what can. */
  absent() {
    const paths = this.recordings.slice(0, 20).map((recording) => shellWord(recording.path));
    return new Error(`An exported page does not hold what this needs. Run: kymo view ${paths.join(" ")}`);
  }

  /** @param {any} _request @returns {Promise<Blob>} */
  async save(_request) {
    throw this.absent();
  }

  /** Snapshots and notes, as long as the page is open. */
  keep(/** @type {any} */ { save }) {
    if (save) this.data.kept = save;
    return { version: 0, kept: this.data.kept ?? {}, path: null };
  }

  /** How many rows of all tracks there are in each of some spans. @param {any} request */
  density({ begin, end, width }) {
    const [from, length] = [BigInt(begin), Number(BigInt(end) - BigInt(begin)) + 1];
    const span = Math.max(1, length / width);
    const counts = Array(width).fill(0);
    const fine = 2 ** this.finest.shift;
    const start = Number(this.finest.begin - from);
    for (const track of this.bins.values()) for (let bin = 0; bin < track.position.length; bin++) {
      const at = Math.floor((start + track.position[bin] * fine) / span);
      if (at >= 0 && at < width) counts[at] += track.count[bin];
    }
    return { begin, span, counts };
  }

  /** Tiles of any resolution, from the finest ones. @param {any} request @returns {Promise<import("./wire.js").Tiles>} */
  async tiles({ shift, first, count, tracks, job }) {
    const length = 2 ** shift;
    const begin = (BigInt(first) * BigInt(TILE)) << BigInt(shift);
    const spans = count * TILE;
    const answer = tracks.map((/** @type {number} */ track) => {
      if (job) return this.searches.bins(job, track, begin, length, spans);
      const bins = this.bins.get(track);
      if (!bins) return noBins(track);
      const fine = 2 ** this.finest.shift;
      const from = Number(this.finest.begin - begin);
      const at = (/** @type {number} */ bin) => from + bins.position[bin] * fine;
      const out = noBins(track, bins.phase, bins.estimate);
      for (let bin = firstOf(bins.position.length, (bin) => at(bin) >= 0); bin < bins.position.length; bin++) {
        const position = Math.floor(at(bin) / length);
        if (position >= spans) break;
        const values = Array.from(bins.values.slice(bin * VALUES, (bin + 1) * VALUES));
        if (out.position.at(-1) !== position) {
          out.position.push(position);
          out.count.push(bins.count[bin]);
          out.kind.push(bins.kind[bin]);
          out.offset.push(at(bin) - position * length + bins.offset[bin]);
          out.known.push(bins.known[bin]);
          out.values.push(...values);
          continue;
        }
        const last = out.position.length - 1;
        out.count[last] += bins.count[bin];
        out.kind[last] = Math.min(out.kind[last], bins.kind[bin]);
        out.offset[last] = 0;
        if (!bins.known[bin]) continue;
        const known = out.known[last];
        const [min, max, mean] = out.values.slice(last * VALUES, (last + 1) * VALUES);
        const all = known + bins.known[bin];
        const merged = known
          ? [Math.min(min, values[0]), Math.max(max, values[1]), (mean * known + values[2] * bins.known[bin]) / all]
          : values;
        out.known[last] = all;
        out.values.splice(last * VALUES, VALUES, ...merged);
      }
      return out;
    });
    return { generation: this.finest.generation, shift, begin, spans, tracks: answer };
  }

  slices(/** @type {any} */ { begin, end, width, tracks, job }) {
    const { slices } = this.data;
    const move = Number(BigInt(this.data.begin) - BigInt(begin));
    const span = Number(BigInt(end) - BigInt(begin));
    const pixel = span / Math.max(1, width);
    const wanted = new Set(tracks);
    const answer = [];
    for (const entry of slices.tracks) {
      if (!wanted.has(entry.track)) continue;
      /** @type {any[][]} */ const drawn = [];
      /** @type {any[]|null} */ let last = null;
      for (const [depth, from, length, name, count, isOpen] of entry.slices) {
        const at = from + move;
        if (at + length < 0 || at > span) continue;
        const kind = job ? this.searches.kindAt(job, entry.track, BigInt(this.data.begin) + BigInt(from)) : null;
        // A search shows those that begin with an event that it has found.
        if (kind === undefined) continue;
        // Narrow ones share a pixel.
        if (last && last[0] === depth && length < pixel && at < last[1] + pixel && last[2] < pixel) {
          last[2] = at + length - last[1];
          last[4] += count;
        } else drawn.push((last = [depth, at, length, name, count, isOpen, kind]));
      }
      if (drawn.length) answer.push({ track: entry.track, slices: drawn });
    }
    return { names: slices.names, tracks: answer };
  }

  few(/** @type {any} */ request) {
    const [begin, end] = [BigInt(request.begin), BigInt(request.end)];
    const kept = request.condition ? new Set(this.searches.where(request.condition, this.lines)) : null;
    const events = [];
    for (const track of request.tracks) {
      const list = this.byTrack.get(track) ?? [];
      for (let at = firstOf(list.length, (at) => list[at].at >= begin); at < list.length && list[at].at <= end; at++) {
        const { line, label } = list[at];
        if (label === null || (kept && !kept.has(line))) continue;
        if (events.push([track, Number(list[at].at - begin), line.recording, line.class, label]) > request.limit) return { events: null };
      }
    }
    return { events };
  }

  event(/** @type {any} */ request) {
    const list = this.byTrack.get(request.track) ?? [];
    const time = BigInt(request.time);
    const step = request.step ?? 0;
    const from = firstOf(list.length, (at) => list[at].at >= time);
    let at = from + (request.nth ?? 0) + step;
    if (request.nth === undefined && step > 0) at = firstOf(list.length, (at) => list[at].at > time);
    const found = list[at];
    if (!found) return { event: null };
    return { track: request.track, nth: at - firstOf(list.length, (at) => list[at].at >= found.at), event: found.line };
  }

  /** Which of the events of a time on a track a line is. The page does not hold where it lies in the file. @param {any} request */
  describe({ time, skip, track }) {
    const list = this.byTrack.get(track) ?? [];
    const first = firstOf(list.length, (at) => list[at].at >= BigInt(time));
    const at = list.findIndex((entry, at) => at >= first && entry.line.time === time && entry.line.skip === skip);
    return { event: null, nth: at < 0 ? null : at - first };
  }

  /** The name of an event. @param {Line} line */
  nameOf(line) {
    return this.recordings[line.recording].classes[line.class] ?? "";
  }

  /** The flows that lead through an event. @param {any} request */
  flows({ track, time }) {
    const { list, cut } = this.data.flows;
    const through = [];
    for (const flow of list) {
      const at = flow.findIndex((/** @type {[number, string]} */ stop) => stop[0] === track && stop[1] === time);
      if (at >= 0 && flow.length > 1) through.push(flow.slice(Math.max(0, at - MOST_STOPS), at + MOST_STOPS + 1));
      if (through.length === MOST_FLOWS) break;
    }
    return { flows: through, count: list.length, cut };
  }

  /** The longest times in which nothing happens. @param {any} request */
  gaps({ tracks, least }) {
    const [begin, end] = [BigInt(this.data.begin), BigInt(this.data.end)];
    const span = Number(end - begin);
    const fine = 2 ** this.finest.shift;
    /** @type {[number, number][]} from and to, counted from where the page begins */ const busy = [];
    const wanted = new Set(tracks);
    const start = Number(this.finest.begin - begin);
    for (const track of this.bins.values()) {
      if (!wanted.has(track.track)) continue;
      for (let bin = 0; bin < track.position.length; bin++) {
        const from = start + track.position[bin] * fine;
        busy.push(track.count[bin] === 1 ? [from + track.offset[bin], from + track.offset[bin]] : [from, from + Math.max(fine, span / GAP_COLUMNS)]);
      }
    }
    for (const entry of this.data.slices.tracks) if (wanted.has(entry.track)) for (const [, from, length] of entry.slices) busy.push([from, from + length]);
    busy.sort((a, b) => a[0] - b[0]);
    /** @type {[number, number][]} */ const gaps = [];
    let last = NaN;
    for (const [from, to] of busy) {
      const length = from - last;
      // So that what happens at the edges keeps some room.
      if (length >= Math.max(100, span / Math.max(2, least))) gaps.push([last + Math.floor(length / 50), from - Math.floor(length / 50)]);
      last = last > to ? last : to;
    }
    const longest = gaps.sort((a, b) => b[1] - b[0] - (a[1] - a[0])).slice(0, MOST_GAPS).sort((a, b) => a[0] - b[0]);
    return { gaps: longest.map((gap) => gap.map((at) => String(begin + BigInt(Math.round(at))))), whole: true };
  }

  page(/** @type {any} */ request) {
    const time = BigInt(request.time);
    const to = firstOf(this.lines.length, (at) => this.times[at] >= time) + (request.skip ?? 0);
    const part = request.back ? this.lines.slice(0, to) : this.lines.slice(to);
    const lines = request.text === undefined ? part : this.searches.matching(request, part);
    const on = lines.filter(isOn(request));
    return { lines: request.back ? on.slice(-request.limit) : on.slice(0, request.limit) };
  }
}
