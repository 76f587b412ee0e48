// Statistics of a page that stands alone, from the events, slices and readings in it, as `src/jobs.rs` makes them.

/** @import { Embedded } from "./embedded.js" */

/** The numbers of an event by the names that columns have: those that stand at the top of its scopes. @param {any} event @returns {[string, number][]} */
function numbersOf(event) {
  /** @type {[string, number][]} */ const all = [];
  for (const scope of ["common_context", "specific_context", "payload"]) for (const [name, content] of Object.entries(event[scope] ?? {})) {
    const isNamed = content && typeof content === "object" && ("labels" in content || "flags" in content);
    const value = isNamed ? content.value : content;
    if (typeof value === "number" || typeof value === "bigint") all.push([name, Number(value)]);
  }
  if ("datum" in event) all.push(["datum", Number(event.datum)]);
  return all;
}

/** Figures of some values. @param {string} name @param {number[]} values */
function fieldFigures(name, values) {
  values.sort((a, b) => a - b);
  const sum = values.reduce((sum, value) => sum + value, 0);
  const mean = sum / values.length;
  const deviation = Math.sqrt(values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / values.length);
  const at = (/** @type {number} */ thousandths) => values[Math.max(1, Math.ceil((values.length * thousandths) / 1000)) - 1];
  return { name, count: values.length, min: values[0], mean, deviation, p50: at(500), p95: at(950), p99: at(990), max: values.at(-1), sum, exact: true };
}

/** Counts and figures of the fields of each class on some tracks, and of the durations of slices by their names. @param {Embedded} page @param {any} request */
export function statisticsOf(page, { begin, end, tracks }) {
  const [from, to] = [BigInt(begin), BigInt(end)];
  if (from > page.until) throw new Error("This page does not hold the events of this range: choose an earlier one, or export with a larger --export-size");
  const wanted = new Set(tracks);
  /** @type {Map<string, {recording: number, slice: boolean, name: string, track: number, values: Map<string, number[]>, count: number}>} */
  const lines = new Map();
  // Several classes may have one name.
  const lineOf = (/** @type {number} */ recording, /** @type {boolean} */ slice, /** @type {string} */ name, /** @type {number} */ track, /** @type {number|string} */ kind = name) => {
    const key = `${recording} ${slice} ${track} ${kind}`;
    let own = lines.get(key);
    if (!own) lines.set(key, (own = { recording, slice, name, track, values: new Map(), count: 0 }));
    return own;
  };
  const push = (/** @type {Map<string, number[]>} */ values, /** @type {string} */ name, /** @type {number} */ value) => {
    const list = values.get(name);
    if (list) list.push(value);
    else values.set(name, [value]);
  };
  let rows = 0;
  page.lines.forEach((line, at) => {
    if (page.times[at] < from || page.times[at] > to) return;
    rows++;
    const event = page.searches.eventOf(line);
    const numbers = event.kind === "sample" ? [] : numbersOf(event);
    for (const [track, , value] of line.tracks) {
      // Slices are counted below.
      if (!wanted.has(track) || line.slice) continue;
      const own = lineOf(line.recording, false, page.nameOf(line), track, line.class);
      own.count++;
      if (event.kind === "sample") {
        if (typeof value === "number") push(own.values, "value", value);
      } else for (const [name, value] of numbers) push(own.values, name, value);
    }
  });
  const { slices } = page.data;
  const start = Number(BigInt(page.data.begin) - from);
  const span = Number(to - from);
  for (const entry of slices.tracks) {
    if (!wanted.has(entry.track)) continue;
    const recording = page.tracks.get(entry.track)?.recording ?? 0;
    for (const [, at, length, name, count, isOpen] of entry.slices) {
      if (start + at < 0 || start + at > span || isOpen) continue;
      const own = lineOf(recording, true, slices.names[name], entry.track);
      own.count += count;
      if (count === 1) push(own.values, "duration", length);
    }
  }
  const fields = (/** @type {Map<string, number[]>} */ all) => [...all].sort((a, b) => (a[0] < b[0] ? -1 : 1)).map(([name, values]) => fieldFigures(name, values));
  return {
    job: 0, done: true, rows, cut: to > page.until,
    lines: [...lines.values()].map(({ values, ...line }) => ({ ...line, fields: fields(values) })),
  };
}
