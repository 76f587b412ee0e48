// Folded time: long times without events take no room. Positions on the axis are times without what is folded.

import { view } from "./state.js";

/** The gaps that are folded, in order of time, and how long all before each are. @type {{list: {begin: bigint, end: bigint, before: bigint}[]}} */
export const gaps = { list: [] };

/** Takes the gaps that the server has found. @param {[string, string][]} found */
export function takeGaps(found) {
  let before = 0n;
  gaps.list = found.map(([begin, end]) => {
    const gap = { begin: BigInt(begin), end: BigInt(end), before };
    before += gap.end - gap.begin;
    return gap;
  });
}

const inUse = () => (view.fold ? gaps.list : []);

/** The position of a time: in a gap, that of its edge. @param {bigint} time */
function folded(time) {
  let position = time;
  for (const gap of inUse()) {
    if (time <= gap.begin) break;
    position = time < gap.end ? gap.begin - gap.before : time - gap.before - (gap.end - gap.begin);
  }
  return position;
}

/** The time at a position. @param {bigint} position */
function unfolded(position) {
  let time = position;
  for (const gap of inUse()) {
    if (position <= gap.begin - gap.before) break;
    time = position + gap.before + (gap.end - gap.begin);
  }
  return time;
}

/** The time that is so much later, without what is folded. @param {bigint} time @param {number} ns */
export const later = (time, ns) => {
  const step = BigInt(Math.round(ns));
  return inUse().length ? unfolded(folded(time) + step) : time + step;
};

/** How long it is from one time to another, without what is folded. @param {bigint} begin @param {bigint} end */
export const lengthOf = (begin, end) => (inUse().length ? Number(folded(end) - folded(begin)) : Number(end - begin));

/**
 * The parts of a range between gaps, each with its beginning, its length, where it lies from the range's beginning on,
 * and the number of the gap before it.
 * @param {bigint} begin @param {number} span
 */
export function parts(begin, span) {
  /** @type {{begin: bigint, at: number, length: number, gap: number}[]} */
  const list = [];
  let at = 0;
  let time = begin;
  let number = -1;
  for (const [position, gap] of inUse().entries()) {
    if (gap.end <= time) continue;
    const length = Math.min(Number(gap.begin - time), span - at);
    if (length > 0) {
      list.push({ begin: time, at, length, gap: number });
      at += length;
    }
    time = gap.end;
    number = position;
    if (at >= span) return list;
  }
  list.push({ begin: time, at, length: span - at, gap: number });
  return list;
}
