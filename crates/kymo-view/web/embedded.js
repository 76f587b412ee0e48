// A page that stands alone: what the server would answer comes from what was written into the page.

import { Contents } from "./contents.js";
import { Analyses } from "./embedded-analyses.js";
import { shellWord } from "./shell.js";
import { TILE, VALUES, decode, noBins } from "./wire.js";

/**
 * @typedef {{time: string, skip: number, recording: number, class: number, json: string, tracks: [number, string][]}} Line
 * @typedef {{at: bigint, line: Line, label: string, index: number}} OnTrack
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

/** Whether a track is one of those that a request names, if it names some. @param {any} request @returns {(track: number) => boolean} */
function isOnAny({ tracks }) {
  const wanted = tracks && new Set(tracks);
  return (track) => !wanted || wanted.has(track);
}

/** Whether a line is on one of the tracks that a request names. @param {any} request @returns {(line: Line) => boolean} */
function isOn(request) {
  const wanted = isOnAny(request);
  return (line) => !request.tracks || line.tracks.some(([track]) => wanted(track));
}

export class Embedded {
  isLive = false;
  /** @type {Line[][]} */ found = [];

  /** @param {any} data */
  constructor(data) {
    this.data = data;
    const contents = new Contents();
    contents.take(data.scene);
    this.recordings = contents.recordings;
    this.analyses = new Analyses(this, new Map(contents.tracks.map((of) => [of.id, of])));
    const bytes = Uint8Array.from(atob(data.tiles), (char) => char.charCodeAt(0));
    this.finest = decode(bytes.buffer);
    this.shift = this.finest.shift;
    this.bins = new Map(this.finest.tracks.map((of) => [of.track, of]));
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
      case "command": return { input: [], selection: [], symbols: [], paths: this.recordings.slice(0, 20).map((of) => of.path) };
      case "describe": return this.describe(request);
      case "fingerprints": return { fingerprints: this.data.fingerprints };
      case "density": return this.density(request);
      case "slices": return this.slices(request);
      case "few": return this.few(request);
      case "event": return this.event(request);
      case "page": return this.page(request);
      case "search": return this.search(request);
      case "found": return this.hits(request);
      case "next": return this.next(request);
      case "stats": return this.stats(request);
      case "analysis": return { job: 0, done: true, answer: this.analyses.answer(request) };
      case "keep": return this.keep(request);
      case "alive": case "close": case "stop": return {};
      default: throw this.absent();
    }
  }

  /** Why something cannot be answered, and what can. */
  absent() {
    const paths = this.recordings.slice(0, 20).map((of) => shellWord(of.path));
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
    for (const of of this.bins.values()) for (let bin = 0; bin < of.position.length; bin++) {
      const at = Math.floor((start + of.position[bin] * fine) / span);
      if (at >= 0 && at < width) counts[at] += of.count[bin];
    }
    return { begin, span, counts };
  }

  /** Tiles of any resolution, from the finest ones. @param {any} request @returns {Promise<import("./wire.js").Tiles>} */
  async tiles({ shift, first, count, tracks, job }) {
    const length = 2 ** shift;
    const begin = (BigInt(first) * BigInt(TILE)) << BigInt(shift);
    const spans = count * TILE;
    const answer = tracks.map((/** @type {number} */ track) => {
      if (job) return this.hitBins(job, track, begin, length, spans);
      const of = this.bins.get(track);
      if (!of) return noBins(track);
      const fine = 2 ** this.finest.shift;
      const from = Number(this.finest.begin - begin);
      const at = (/** @type {number} */ bin) => from + of.position[bin] * fine;
      const out = noBins(track, of.phase, of.estimate);
      for (let bin = firstOf(of.position.length, (bin) => at(bin) >= 0); bin < of.position.length; bin++) {
        const position = Math.floor(at(bin) / length);
        if (position >= spans) break;
        const values = of.values.slice(bin * VALUES, (bin + 1) * VALUES);
        if (out.position.at(-1) !== position) {
          out.position.push(position);
          out.count.push(of.count[bin]);
          out.kind.push(of.kind[bin]);
          out.offset.push(at(bin) - position * length + of.offset[bin]);
          out.known.push(of.known[bin]);
          out.values.push(...values);
          continue;
        }
        const last = out.position.length - 1;
        out.count[last] += of.count[bin];
        out.kind[last] = Math.min(out.kind[last], of.kind[bin]);
        out.offset[last] = 0;
        if (!of.known[bin]) continue;
        const known = out.known[last];
        const [min, max, mean] = out.values.slice(last * VALUES, (last + 1) * VALUES);
        const all = known + of.known[bin];
        const merged = known
          ? [Math.min(min, values[0]), Math.max(max, values[1]), (mean * known + values[2] * of.known[bin]) / all]
          : values;
        out.known[last] = all;
        out.values.splice(last * VALUES, VALUES, ...merged);
      }
      return out;
    });
    return { generation: this.finest.generation, shift, begin, spans, tracks: answer };
  }

  /** @param {number} job @param {number} track @param {bigint} begin @param {number} length @param {number} spans */
  hitBins(job, track, begin, length, spans) {
    const out = noBins(track);
    for (const line of this.found[job - 1] ?? []) {
      if (!line.tracks.some(([of]) => of === track)) continue;
      const from = Number(BigInt(line.time) - begin);
      const position = Math.floor(from / length);
      if (position < 0 || position >= spans) continue;
      if (out.position.at(-1) === position) out.count[out.count.length - 1]++;
      else {
        out.position.push(position);
        out.count.push(1);
        out.kind.push(0);
        out.offset.push(from - position * length);
        out.known.push(0);
        out.values.push(NaN, NaN, NaN);
      }
    }
    return out;
  }

  slices(/** @type {any} */ { begin, end, width, tracks }) {
    const { slices } = this.data;
    const move = Number(BigInt(this.data.begin) - BigInt(begin));
    const span = Number(BigInt(end) - BigInt(begin));
    const pixel = span / Math.max(1, width);
    const wanted = new Set(tracks);
    const answer = [];
    for (const of of slices.tracks) {
      if (!wanted.has(of.track)) continue;
      /** @type {any[][]} */ const drawn = [];
      /** @type {any[]|null} */ let last = null;
      for (const [depth, from, length, name, count, isOpen] of of.slices) {
        const at = from + move;
        if (at + length < 0 || at > span) continue;
        // Narrow ones share a pixel.
        if (last && last[0] === depth && length < pixel && at < last[1] + pixel && last[2] < pixel) {
          last[2] = at + length - last[1];
          last[4] += count;
        } else drawn.push((last = [depth, at, length, name, count, isOpen]));
      }
      if (drawn.length) answer.push({ track: of.track, slices: drawn });
    }
    return { names: slices.names, tracks: answer };
  }

  few(/** @type {any} */ request) {
    const [begin, end] = [BigInt(request.begin), BigInt(request.end)];
    const events = [];
    for (const track of request.tracks) {
      const list = this.byTrack.get(track) ?? [];
      for (let at = firstOf(list.length, (at) => list[at].at >= begin); at < list.length && list[at].at <= end; at++) {
        const { line, label } = list[at];
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
    const at = list.findIndex((of, at) => at >= first && of.line.time === time && of.line.skip === skip);
    return { event: null, nth: at < 0 ? null : at - first };
  }

  /** Whether a pattern with `*` and `?` is that of a name. @param {string} text @returns {(name: string) => boolean} */
  named(text) {
    const pattern = new RegExp(`^${text.replace(/[.+^${}()|[\]\\]/g, "\\$&").replaceAll("*", ".*").replaceAll("?", ".")}$`, "s");
    return (name) => pattern.test(name);
  }

  /** Which lines are searched for. @param {any} request @returns {(line: Line) => boolean} */
  condition({ text, mode, case: isExact }) {
    if (mode === "where") throw this.absent();
    const nameOf = (/** @type {Line} */ line) => this.recordings[line.recording].classes[line.class] ?? "";
    if (mode === "name") {
      const holds = this.named(text);
      return (line) => holds(nameOf(line));
    }
    // Lower case finds upper case, too.
    const fold = isExact || text !== text.toLowerCase() ? (/** @type {string} */ of) => of : (/** @type {string} */ of) => of.toLowerCase();
    return (line) => fold(nameOf(line)).includes(text) || fold(line.json).includes(text);
  }

  page(/** @type {any} */ request) {
    const time = BigInt(request.time);
    const to = firstOf(this.lines.length, (at) => this.times[at] >= time) + (request.skip ?? 0);
    const part = request.back ? this.lines.slice(0, to) : this.lines.slice(to);
    const lines = request.text === undefined ? part : part.filter(this.condition(request));
    const on = lines.filter(isOn(request));
    return { lines: request.back ? on.slice(-request.limit) : on.slice(0, request.limit) };
  }

  search(/** @type {any} */ request) {
    const holds = this.condition(request);
    this.found.push(this.lines.filter(holds));
    return { job: this.found.length };
  }

  hits(/** @type {any} */ { job, begin, end, width, ...request }) {
    const all = this.found[job - 1] ?? [];
    const lines = all.filter(isOn(request));
    const density = Array(width).fill(0);
    const length = Number(BigInt(end) - BigInt(begin)) / width || 1;
    for (const line of lines) {
      const column = Math.floor(Number(BigInt(line.time) - BigInt(begin)) / length);
      if (column >= 0 && column < width) density[column]++;
    }
    return { done: true, count: all.length, cut: !this.data.whole, density };
  }

  next(/** @type {any} */ { job, time, back, ...request }) {
    const lines = (this.found[job - 1] ?? []).filter(isOn(request));
    const from = BigInt(time);
    const at = back ? firstOf(lines.length, (at) => BigInt(lines[at].time) >= from) - 1 : firstOf(lines.length, (at) => BigInt(lines[at].time) > from);
    const line = lines[at];
    const wanted = isOnAny(request);
    const track = line?.tracks.find(([of]) => wanted(of));
    return track ? { track: track[0], time: line.time } : { track: null, done: true };
  }

  stats(/** @type {any} */ { begin, end, tracks }) {
    if (BigInt(begin) > this.until) throw new Error("this page does not hold the events of this range");
    const wanted = new Set(tracks);
    /** @type {Map<string, {recording: number, name: string, track: number, values: Map<string, number[]>, count: number}>} */
    const lines = new Map();
    let count = 0;
    const from = firstOf(this.lines.length, (at) => this.times[at] >= BigInt(begin));
    for (let at = from; at < this.lines.length && this.times[at] <= BigInt(end); at++) {
      const line = this.lines[at];
      count++;
      const event = JSON.parse(line.json);
      for (const [track] of line.tracks) {
        if (!wanted.has(track)) continue;
        const key = `${line.recording} ${line.class} ${track}`;
        let own = lines.get(key);
        if (!own) {
          const name = this.recordings[line.recording].classes[line.class] ?? "";
          lines.set(key, (own = { recording: line.recording, name, track, values: new Map(), count: 0 }));
        }
        own.count++;
        for (const [name, value] of Object.entries(event.payload ?? {})) {
          if (typeof value !== "number") continue;
          const values = own.values.get(name) ?? [];
          values.push(value);
          own.values.set(name, values);
        }
      }
    }
    const fields = (/** @type {Map<string, number[]>} */ all) => [...all].map(([name, values]) => {
      values.sort((a, b) => a - b);
      const sum = values.reduce((sum, value) => sum + value, 0);
      const mean = sum / values.length;
      const deviation = Math.sqrt(values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / values.length);
      const at = (/** @type {number} */ thousandths) => values[Math.max(1, Math.ceil((values.length * thousandths) / 1000)) - 1];
      return { name, count: values.length, min: values[0], mean, deviation, p50: at(500), p95: at(950), p99: at(990), max: values.at(-1), sum, exact: true };
    });
    return {
      job: 0, done: true, rows: count, cut: BigInt(end) > this.until,
      lines: [...lines.values()].map(({ values, ...line }) => ({ ...line, slice: false, fields: fields(values) })),
    };
  }
}
