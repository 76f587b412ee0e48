// What is moved in time is asked for at its own times, and put together at those at which it is shown.

import { ask } from "./data.js";
import { scene, slewOf, view } from "./state.js";

/** @typedef {{at: bigint, group: number, skip: number}} Place a row of the table: when it is shown, and the order among those of a time */

const clamp = (/** @type {bigint} */ time) => String(time < -(2n ** 63n) ? -(2n ** 63n) : time >= 2n ** 63n ? 2n ** 63n - 1n : time);

/** @type {{slews: any, tracks: any, list: [bigint, number[]][]}} */
let byShifts = { slews: null, tracks: null, list: [] };

/** The tracks by how they are moved; empty if nothing is. @returns {[bigint, number[]][]} */
export function groups() {
  if (byShifts.slews === view.slews && byShifts.tracks === scene.tracks) return byShifts.list;
  /** @type {Map<bigint, number[]>} */
  const byShift = new Map();
  if (view.slews.length) for (const track of scene.tracks) {
    const shift = slewOf(track);
    const list = byShift.get(shift);
    if (list) list.push(track.id);
    else byShift.set(shift, [track.id]);
  }
  const isMoved = [...byShift.keys()].some((shift) => shift);
  byShifts = { slews: view.slews, tracks: scene.tracks, list: isMoved ? [...byShift] : [] };
  return byShifts.list;
}

/** When an event is shown that has a time on a track. @param {string} key the key of the track @param {bigint} time */
export function shownAt(key, time) {
  const track = view.slews.length ? scene.byKey.get(key) : undefined;
  return track ? time + slewOf(track) : time;
}

/** When the selected event is shown, if there is one. */
export const eventAt = () => (view.event ? shownAt(view.event.track, view.event.time) : null);

/**
 * Rows of the table behind a place, or before it: each has `place`, where it is shown.
 * @param {Place} from @param {boolean} back @param {number} limit @param {any} filter
 * @returns {Promise<{lines: any[], cut: boolean}>}
 */
export async function page(from, back, limit, filter) {
  const moved = groups();
  const parts = await Promise.all((moved.length ? moved : [[0n, null]]).map(async ([shift, tracks], group) => {
    const own = from.at - /** @type {bigint} */ (shift);
    // Those of the same time come in the order of the groups.
    const isBehind = group < from.group;
    const skip = group === from.group ? from.skip + (back ? 0 : 1) : 0;
    const answer = await ask("page", { time: clamp(isBehind ? own + 1n : own), skip, back, limit, ...(tracks ? { tracks } : {}), ...filter });
    for (const line of answer.lines) line.place = { at: BigInt(line.time) + /** @type {bigint} */ (shift), group, skip: line.skip };
    return answer;
  }));
  const lines = parts.flatMap((part) => part.lines);
  if (moved.length) lines.sort(({ place: a }, { place: b }) => (a.at !== b.at ? (a.at < b.at ? -1 : 1) : a.group - b.group || a.skip - b.skip));
  return { lines: back ? lines.slice(-limit) : lines.slice(0, limit), cut: parts.some((part) => part.cut) };
}

/** The next hit of a search behind a time, or the one before: on a track, or on any. @param {number} job @param {bigint} at @param {boolean} back @param {number|null} trackId */
export async function nextHitOf(job, at, back, trackId) {
  const track = trackId === null ? undefined : scene.byId.get(trackId);
  /** @type {[bigint, number[]|null][]} */
  const list = track ? [[slewOf(track), [track.id]]] : groups();
  const hits = await Promise.all((list.length ? list : [[0n, null]]).map(async ([shift, tracks]) => {
    const hit = await ask("next", { job, time: clamp(at - /** @type {bigint} */ (shift)), back, ...(tracks ? { tracks } : {}) });
    return hit.track === null ? [] : [{ track: hit.track, time: BigInt(hit.time), at: BigInt(hit.time) + /** @type {bigint} */ (shift) }];
  }));
  const found = hits.flat().sort((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : a.track - b.track));
  return (back ? found.at(-1) : found[0]) ?? null;
}

/** How many hits there are in parts of a range. @param {number} job @param {bigint} begin @param {number} span @param {number} width @param {number} wait how long to wait for the first one, in milliseconds @returns {Promise<any>} */
export async function hitsIn(job, begin, span, width, wait = 0) {
  const end = begin + BigInt(Math.max(0, Math.round(span)));
  const list = groups();
  const parts = await Promise.all((list.length ? list : [[0n, null]]).map(([shift, tracks]) =>
    ask("found", { job, begin: clamp(begin - /** @type {bigint} */ (shift)), end: clamp(end - /** @type {bigint} */ (shift)), width, ...(wait ? { wait } : {}), ...(tracks ? { tracks } : {}) })));
  const density = Array(width).fill(0);
  for (const part of parts) part.density.forEach((/** @type {number} */ count, /** @type {number} */ at) => (density[at] += count));
  return { ...parts[0], done: parts.every((part) => part.done), density };
}

/** The tracks on which a search has found something from a time on, in the order in which that is shown. @param {number} job @param {bigint} at */
export async function orderOf(job, at) {
  const list = groups();
  const parts = await Promise.all((list.length ? list : [[0n, null]]).map(async ([shift, tracks]) => {
    const answer = await ask("order", { job, time: clamp(at - /** @type {bigint} */ (shift)), ...(tracks ? { tracks } : {}) });
    return answer.tracks.map((/** @type {[number, string]} */ [track, time]) => ({ track, at: BigInt(time) + /** @type {bigint} */ (shift) }));
  }));
  return parts.flat().sort((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : a.track - b.track)).map((part) => part.track);
}
