// Latencies, states and profiles of a page that stands alone: from the events and slices in it, as `src/analyses.rs` makes them.

import { patternOf } from "./where.js";

/**
 * A track as analyses name it. @typedef {{recording: string|null, number: null, name: string, id?: number}} TrackName
 * @typedef {{begin: bigint, end: bigint, depth: number, name: string, track: TrackName, isOpen: boolean, group: string[]}} Span
 */

/** Where fields of an event are searched for, in this order. */
const SCOPES = ["payload", "specific_context", "common_context", "packet_context", "event_header", "packet_header"];

/** Groups at most, as the server has them; those with the longest time. */
const MOST_GROUPS = 1000;

/** Names between commas. @param {string|undefined} list */
const namesIn = (list) => (list ?? "").split(",").map((name) => name.trim()).filter((name) => name);

/** What JSON has for a value, as a text; numbers keep all of their digits. @param {string} json @returns {any} */
const exactly = (json) => JSON.parse(json, /** @type {any} */ ((/** @type {string} */ _key, /** @type {any} */ value, /** @type {any} */ context) =>
  typeof value === "number" && !Number.isSafeInteger(value) && context?.source ? context.source : value));

/** @param {any} value @returns {string} */
function textOf(value) {
  if (value === null || value === undefined) return "-";
  if (typeof value !== "object") return String(value);
  if (value.labels) return value.labels[0] ?? String(value.value);
  return JSON.stringify(value);
}

/** The value of a field of an event, by its name or path. @param {any} event @param {string} name */
function fieldOf(event, name) {
  const path = name.split(".");
  const within = (/** @type {any} */ root, /** @type {string[]} */ words) => words.reduce((value, word) => (value && typeof value === "object" && Object.hasOwn(value, word) ? value[word] : undefined), root);
  const plain = SCOPES.map((scope) => within(event[scope], path)).find((value) => value !== undefined);
  return plain ?? within(event, path);
}

/** Fields of a start and, in the same order, of its end: `a` or `a=b`. @param {string|undefined} list */
function pairsOf(list) {
  const all = namesIn(list).map((name) => name.split("=").map((part) => part.trim()));
  return { start: all.map(([name]) => name), end: all.map((pair) => pair[1] ?? pair[0]) };
}

/** Steps of 1, 2, 5, 10 and so on. */
function* roundSteps() {
  for (let power = 1; power < 1e19; power *= 10) for (const digit of [1, 2, 5]) yield power * digit;
}

/** A few ranges of round lengths that hold all durations. @param {number[]} sorted @returns {[number, number, number][]} */
export function rangesOf(sorted) {
  if (!sorted.length) return [];
  const [min, max] = [sorted[0], sorted[sorted.length - 1]];
  let starts = [];
  if (Math.floor(max / Math.max(1, min)) < 8) {
    let step = 1;
    for (step of roundSteps()) if (Math.floor((max - min) / step) < 16) break;
    for (let at = Math.floor(min / step) * step; at <= max; at += step) starts.push(at);
  } else {
    const all = [0, ...roundSteps()];
    const first = all.filter((start) => start <= min).at(-1) ?? 0;
    starts = all.filter((start) => start >= first && start <= max);
  }
  const counts = starts.map(() => 0);
  let at = 0;
  for (const value of sorted) {
    while (at + 1 < starts.length && starts[at + 1] <= value) at++;
    counts[at]++;
  }
  return starts.map((from, at) => [from, (starts[at + 1] ?? Infinity) - 1, counts[at]]);
}

/** Number, mean, deviation and percentiles. @param {number[]} sorted */
function figures(sorted) {
  const total = sorted.reduce((sum, value) => sum + value, 0);
  const count = sorted.length;
  const mean = count ? total / count : null;
  const at = (/** @type {number} */ thousandths) => (count ? sorted[Math.max(1, Math.ceil((count * thousandths) / 1000)) - 1] : null);
  const deviation = count > 1 ? Math.sqrt(sorted.reduce((sum, value) => sum + (value - (mean ?? 0)) ** 2, 0) / (count - 1)) : null;
  return { count, total, mean, deviation, min: sorted[0] ?? null, p50: at(500), p90: at(900), p95: at(950), p99: at(990), "p99.9": at(999), max: sorted.at(-1) ?? null };
}

/** Which of two times is earlier. @param {bigint} a @param {bigint} b */
const earlier = (a, b) => (a < b ? -1 : a > b ? 1 : 0);

/** How long something lasted. @param {{begin: bigint, end: bigint}} span */
const spanLength = (span) => Number(span.end - span.begin);

/** @param {{begin: bigint, end: bigint}[]} list */
const lengthsOf = (list) => list.map(spanLength).sort((a, b) => a - b);

/** The longest ones first; of equal ones the earlier. @template {{begin: bigint, end: bigint}} T @param {T[]} list @param {number} most */
const longest = (list, most) => [...list].sort((a, b) => spanLength(b) - spanLength(a) || earlier(a.begin, b.begin)).slice(0, most);

/** Before all times. */
const NEVER = -(2n ** 63n);

export class Analyses {
  /** @param {import("./embedded.js").Embedded} page @param {Map<number, import("./state.js").Track>} tracks */
  constructor(page, tracks) {
    this.page = page;
    this.tracks = tracks;
  }

  /** Answers a request. @param {any} request */
  answer(request) {
    const wanted = request.recordings ? new Set(request.recordings) : null;
    const isIn = (/** @type {number} */ recording) => !wanted || wanted.has(recording);
    const range = { begin: BigInt(request.begin), end: BigInt(request.end), isIn };
    switch (request.kind) {
      case "latency": return this.latency(request, range);
      case "states": return this.states(request, range);
      case "profile": return this.profile(request, range);
      default: throw this.page.absent();
    }
  }

  /** The events of a range that a pattern names. @param {string} pattern @param {any} range */
  events(pattern, range) {
    const { page } = this;
    if (range.end > page.until && !page.data.whole) throw new Error("This page does not hold all events of this range: choose an earlier one, or export with a larger --export-size");
    const nameOf = (/** @type {any} */ line) => page.recordings[line.recording].classes[line.class] ?? "";
    const all = page.lines.map((line, index) => ({ line, index, time: page.times[index] })).filter(({ line, time }) => time >= range.begin && time <= range.end && range.isIn(line.recording));
    const names = new Set(page.recordings.flatMap((recording) => recording.classes.map((name) => name ?? "")));
    const holds = names.has(pattern) ? (/** @type {string} */ name) => name === pattern : (/** @type {string} */ name) => patternOf(pattern).test(name);
    if (![...names].some(holds)) throw new Error(`no event is called \`${pattern}\``);
    return all.filter(({ line }) => holds(nameOf(line))).map(({ line, index, time }) => ({ line, index, time, name: nameOf(line), event: exactly(line.json) }));
  }

  /** The track of an event: its own, or the values of fields. @param {any} line @param {any} event @param {string[]} fields @returns {TrackName} */
  trackOf(line, event, fields) {
    if (fields.length) return { recording: null, number: null, name: fields.map((name) => textOf(fieldOf(event, name))).join(", ") };
    const own = line.tracks.map((/** @type {[number, string]} */ [id]) => this.tracks.get(id)).filter(Boolean);
    return this.named(own.find((/** @type {any} */ track) => track.kind === "event") ?? own[0], line.recording);
  }

  /** @param {import("./state.js").Track|undefined} track @param {number} recording @returns {TrackName} */
  named(track, recording) {
    const { path } = this.page.recordings[recording];
    // Streams are files of their recording.
    const name = track?.name ?? "-";
    const at = name.lastIndexOf(`${path}/`);
    return { recording: path, number: null, name: at < 0 ? name : name.slice(at + path.length + 1), id: track?.id };
  }

  /** What an event or slice is grouped by. @param {string[]} by @param {string} name @param {TrackName} track @param {any} event */
  groupOf(by, name, track, event) {
    return by.map((what) => {
      if (what === "name") return name;
      if (what === "track") return track.name;
      // Fields of what begins a slice are in no slice.
      if (!event) throw this.page.absent();
      return textOf(fieldOf(event, what));
    });
  }

  /** The slices that the recordings have themselves, where they touch a range. @param {any} range @param {string[]} by @returns {Span[]} */
  spans(range, by) {
    const { slices } = this.page.data;
    const origin = BigInt(this.page.data.begin);
    /** @type {Span[]} */ const spans = [];
    for (const entry of slices.tracks) {
      const track = this.tracks.get(entry.track);
      if (!track || !range.isIn(track.recording)) continue;
      const name = this.named(track, track.recording);
      for (const [depth, from, length, number, count, isOpen] of entry.slices) {
        const begin = origin + BigInt(Math.round(from));
        const end = begin + BigInt(Math.round(length));
        if (begin > range.end || end < range.begin) continue;
        // Narrow slices that share a pixel have lost their lengths.
        if (count > 1) throw this.page.absent();
        const text = slices.names[number];
        spans.push({ begin, end, depth, name: text, track: name, isOpen: Boolean(isOpen), group: this.groupOf(by, text, name, null) });
      }
    }
    if (!spans.length && !slices.tracks.length) throw new Error("no recording says which of its events begin and end something: set the start and the end event above");
    return spans.sort((a, b) => earlier(a.begin, b.begin) || a.depth - b.depth);
  }

  /** Whether a slice is one event with a duration, which is known when it begins. @param {Span} span */
  hasDuration(span) {
    const list = this.page.byTrack.get(span.track.id ?? -1) ?? [];
    return list.some((slice) => slice.at === span.begin && fieldOf(JSON.parse(slice.line.json), "duration") !== undefined);
  }

  /** @param {any} request @param {any} range */
  latency(request, range) {
    const by = namesIn(request.by);
    /** @type {{begin: bigint, end: bigint, from: TrackName, to: TrackName, key: string, group: string[]}[]} */ const pairs = [];
    const counts = { starts: 0, ends: 0, unmatched_starts: 0, unmatched_ends: 0, backwards: 0 };
    if (request.start || request.end_event) {
      if (!request.start || !request.end_event) throw new Error("set both the start and the end event, or neither of them");
      const fields = pairsOf(request.key);
      const isByTrack = !fields.start.length || fields.start.includes("track");
      const trackFields = namesIn(request.track);
      const point = (/** @type {string} */ pattern, /** @type {string[]} */ names, /** @type {boolean} */ isStart) => this.events(pattern, range).map(({ line, index, time, name, event }) => {
        const track = this.trackOf(line, event, trackFields);
        const key = names.filter((name) => name !== "track").map((name) => textOf(fieldOf(event, name))).join(", ");
        const shared = JSON.stringify([isByTrack ? track.id ?? track.name : "", isByTrack ? track.recording : "", key]);
        return { time, isStart, track, key, shared, index, group: isStart ? this.groupOf(by, name, track, event) : [] };
      });
      const ends = point(request.end_event, fields.end, false);
      const starts = point(request.start, fields.start, true);
      // An event that is both ends what began before it.
      const all = [...ends, ...starts].sort((a, b) => a.index - b.index);
      /** @type {Map<string, any>} */ const open = new Map();
      for (const end of all) {
        const before = open.get(end.shared);
        if (end.isStart) {
          counts.starts++;
          if (before) counts.unmatched_starts++;
          open.set(end.shared, end);
          continue;
        }
        counts.ends++;
        open.delete(end.shared);
        if (!before) counts.unmatched_ends++;
        else pairs.push({ begin: before.time, end: end.time, from: before.track, to: end.track, key: before.key, group: before.group });
      }
      counts.unmatched_starts += open.size;
    } else {
      for (const span of this.spans(range, by)) {
        const starts = span.begin >= range.begin;
        const ends = !span.isOpen && (span.end <= range.end || (starts && this.hasDuration(span)));
        counts.starts += Number(starts);
        counts.ends += Number(ends);
        if (starts && ends) pairs.push({ ...span, from: span.track, to: span.track, key: span.name });
        else if (starts) counts.unmatched_starts++;
        else if (ends) counts.unmatched_ends++;
      }
    }
    const lengths = lengthsOf(pairs);
    const { count, ...times } = figures(lengths);
    return {
      ...counts, pairs: count, ...times, histogram: rangesOf(lengths), groups: by.length ? groupsOf(pairs) : [],
      worst: longest(pairs, request.worst ?? 20).map((span) => ({ nanos: spanLength(span), start: String(span.begin), end: String(span.end), track: span.from, end_track: span.to, key: span.key })),
    };
  }

  /** @param {any} request @param {any} range */
  states(request, range) {
    if (!request.start) throw new Error("set the event that begins a state");
    const [per, trackFields] = [namesIn(request.key), namesIn(request.track)];
    /** @type {Map<string, {time: bigint, track: TrackName}>} */ const open = new Map();
    /** @type {{begin: bigint, end: bigint, track: TrackName, key: string}[]} */ const spans = [];
    for (const { line, time, event } of this.events(request.start, range)) {
      const key = per.map((name) => textOf(fieldOf(event, name))).join(", ");
      const before = open.get(key);
      if (before) spans.push({ begin: before.time, end: time, track: before.track, key });
      open.set(key, { time, track: this.trackOf(line, event, trackFields) });
    }
    /** @type {Map<string, {track: TrackName, lengths: number[]}>} */ const byTrack = new Map();
    for (const span of spans) {
      const id = JSON.stringify([span.track.recording, span.track.id ?? span.track.name]);
      const own = byTrack.get(id) ?? { track: span.track, lengths: [] };
      byTrack.set(id, own);
      own.lengths.push(spanLength(span));
    }
    const tracks = [...byTrack.values()].map(({ track, lengths }) => ({ track, ...figures(lengths.sort((a, b) => a - b)) }));
    tracks.sort((a, b) => b.total - a.total || (a.track.name < b.track.name ? -1 : 1));
    const lengths = lengthsOf(spans);
    const { count, total, mean } = figures(lengths);
    return {
      count, total, mean, open: open.size, dropped: 0, backwards: 0, histogram: rangesOf(lengths), tracks,
      worst: longest(spans, request.worst ?? 20).map((span) => ({ nanos: spanLength(span), start: String(span.begin), end: String(span.end), track: span.track, key: span.key })),
    };
  }

  /** @param {any} request @param {any} range */
  profile(request, range) {
    const spans = request.start || request.end_event ? this.calls(request, range) : { list: this.spans(range, []), open: 0, unmatched: 0 };
    const own = { ...spans, open: spans.open + (request.start ? 0 : spans.list.filter((span) => span.isOpen).length) };
    /** @type {TrackName[]} */ const tracks = [];
    /** @type {Map<string, number>} */ const known = new Map();
    /** @type {any[][]} */ const nodes = [];
    /** @type {Map<string, number>} */ const numbers = new Map();
    /** The calls that are open on each track, with the time in what they call. @type {{span: Span, node: number, inner: number}[][]} */ const stacks = [];
    const within = (/** @type {Span} */ { begin, end }) => Math.max(0, Number((end < range.end ? end : range.end) - (begin > range.begin ? begin : range.begin)));
    const leave = (/** @type {{span: Span, node: number, inner: number}[]} */ stack) => {
      const { span, node, inner } = /** @type {{span: Span, node: number, inner: number}} */ (stack.pop());
      const whole = within(span);
      const around = stack.at(-1);
      if (around) around.inner += whole;
      const entry = nodes[node];
      entry[3]++;
      entry[4] += whole;
      entry[5] += Math.max(0, whole - inner);
      if (whole > entry[6] || entry[3] === 1) [entry[6], entry[7]] = [whole, String(span.begin)];
    };
    for (const span of own.list) {
      const id = JSON.stringify([span.track.recording, span.track.id ?? span.track.name]);
      let track = known.get(id);
      if (track === undefined) {
        known.set(id, (track = tracks.push(span.track) - 1));
        stacks.push([]);
      }
      const stack = stacks[track];
      while (stack.length > span.depth) leave(stack);
      const caller = stack.at(-1)?.node ?? null;
      const way = `${caller ?? `t${track}`} ${span.name}`;
      let node = numbers.get(way);
      if (node === undefined) numbers.set(way, (node = nodes.push([caller, track, span.name, 0, 0, 0, 0, String(span.begin)]) - 1));
      stack.push({ span, node, inner: 0 });
    }
    for (const stack of stacks) while (stack.length) leave(stack);
    return { nodes, tracks, open: own.open, unmatched: own.unmatched, dropped: 0, events: this.page.lines.length };
  }

  /** Calls between events that enter and leave. @param {any} request @param {any} range */
  calls(request, range) {
    if (!request.start || !request.end_event) throw new Error("set both the start and the end event, or neither of them");
    const [keys, trackFields] = [namesIn(request.key), namesIn(request.track)];
    // What a range begins with may have been entered before it.
    const all = { ...range, begin: NEVER };
    const left = this.events(request.end_event, all);
    const exits = new Set(left.map(({ line }) => line));
    const enters = this.events(request.start, all);
    const both = enters.find(({ line }) => exits.has(line));
    if (both) throw new Error(`\`${both.name}\` both enters and leaves`);
    /** @type {Map<string, {begin: bigint, name: string, key: string, track: TrackName}[]>} */ const stacks = new Map();
    /** @type {Span[]} */ const list = [];
    const points = [...enters, ...left].sort((a, b) => a.index - b.index);
    let [unmatched, last] = [0, NEVER];
    const end = (/** @type {any[]} */ stack, /** @type {bigint} */ time, /** @type {boolean} */ isOpen) => {
      const { begin, name, track } = stack.pop();
      if (time >= range.begin) list.push({ begin, end: time, depth: stack.length, name, track, isOpen, group: [] });
    };
    for (const { line, time, name, event } of points) {
      if (time > last) last = time;
      const track = this.trackOf(line, event, trackFields);
      const id = JSON.stringify([track.recording, track.id ?? track.name]);
      const stack = stacks.get(id) ?? [];
      stacks.set(id, stack);
      const values = keys.map((name) => fieldOf(event, name));
      const key = values.map(textOf).join(", ");
      if (!exits.has(line)) {
        stack.push({ begin: time, name: keys.length ? key : name, key, track });
        continue;
      }
      const has = keys.length > 0 && values.some((value) => value !== undefined);
      const at = has ? stack.findLastIndex((frame) => frame.key === key) : stack.length - 1;
      if (at < 0) unmatched++;
      else {
        unmatched += stack.length - at - 1;
        while (stack.length > at) end(stack, time, false);
      }
    }
    const open = [...stacks.values()].reduce((sum, stack) => sum + stack.length, 0);
    for (const stack of stacks.values()) while (stack.length) end(stack, last, true);
    return { list: list.sort((a, b) => earlier(a.begin, b.begin) || a.depth - b.depth), open, unmatched };
  }
}

/** Latencies by group, those with the longest time first. @param {{begin: bigint, end: bigint, group: string[]}[]} pairs */
function groupsOf(pairs) {
  /** @type {Map<string, {by: string[], lengths: number[], max: number, at: bigint}>} */ const all = new Map();
  for (const { begin, end, group } of pairs) {
    const id = JSON.stringify(group);
    const own = all.get(id) ?? { by: group, lengths: [], max: -1, at: begin };
    all.set(id, own);
    const length = Number(end - begin);
    own.lengths.push(length);
    if (length > own.max) [own.max, own.at] = [length, begin];
  }
  const lines = [...all.values()].map(({ by, lengths, at }) => ({ by, ...figures(lengths.sort((a, b) => a - b)), max_at: String(at) }));
  return lines.sort((a, b) => b.total - a.total).slice(0, MOST_GROUPS);
}
