// Counters and databases: the archive that fits the zoom, lines, bands, and what is not known.

import { colours, drawn, eachTile } from "./canvas.js";
import { colour, colourOf, inkOf } from "./lens.js";
import { stepOf, view } from "./state.js";
import { number } from "./time.js";
import { VALUES } from "./wire.js";

/**
 * The tracks of a line that a frame shows, and from when to when: of the archives of a database the coarsest of which a
 * pixel has a point, and where it has nothing yet, coarser ones. The last ones are the least and the greatest values.
 * @param {import("./state.js").Line} line @param {import("./canvas.js").Frame} frame
 * @returns {{tracks: import("./state.js").Track[], bands: import("./state.js").Track[], from: number, to: number}[]}
 */
export function chosen(line, frame) {
  if (line.averages.length + line.lows.length + line.highs.length === 1) return [{ tracks: line.averages, bands: [], from: -Infinity, to: Infinity }];
  const fits = (/** @type {import("./state.js").Track[]} */ list) => list.findLast((track) => stepOf(track) * frame.scale <= 2) ?? list[0];
  const list = [];
  let to = Infinity;
  for (let track = fits(line.averages); track;) {
    const from = Number(track.first - frame.begin);
    const step = stepOf(track);
    const near = (/** @type {import("./state.js").Track[]} */ tracks) => tracks.findLast((other) => stepOf(other) <= step * 1.01) ?? tracks[0];
    const bands = [near(line.lows), near(line.highs)].filter((band) => band !== undefined);
    const next = line.averages.slice(line.averages.indexOf(track) + 1).find((other) => other.first < track.first);
    list.push({ tracks: [track, ...bands], bands, from: next ? from : -Infinity, to });
    if (from <= 0 || !next) break;
    to = from;
    track = next;
  }
  return list;
}

/** @typedef {{x: number, wide: number, known: number, min: number, max: number, mean: number}} Point */

/** What was found for the picture that is drawn: the scale of a row needs the same points as its line. @type {WeakMap<import("./canvas.js").Frame, Map<string, Point[]>>} */
const foundPoints = new WeakMap();

/** The points of a track in a frame. @returns {Point[]} */
function pointsOf(/** @type {import("./state.js").Track} */ track, /** @type {import("./canvas.js").Frame} */ frame, /** @type {number} */ shift, from = -Infinity, to = Infinity) {
  const found = foundPoints.get(frame) ?? new Map();
  foundPoints.set(frame, found);
  const key = `${track.id} ${from} ${to}`;
  const known = found.get(key);
  if (known) return known;
  /** @type {Point[]} */
  const points = [];
  found.set(key, points);
  const isExact = eachTile(0, track.id, frame.begin, frame.span, shift, (tile, start, length) => {
    for (let bin = 0; bin < tile.length; bin++) {
      const isSingle = tile.count[bin] === 1;
      const at = start + tile.position[bin] * length + (isSingle ? tile.offset[bin] : 0);
      if (at < from || at >= to) continue;
      const first = bin * VALUES;
      const [min, max, mean] = [tile.values[first], tile.values[first + 1], tile.values[first + 2]];
      points.push({ x: frame.left + at * frame.scale, wide: isSingle ? 0 : length * frame.scale, known: tile.known[bin], min, max, mean });
    }
  });
  drawn.missing ||= !isExact;
  drawn.bins += points.length;
  return points;
}

/** The values that a row shows: the least and the greatest. @param {import("./state.js").Row} row @param {import("./canvas.js").Frame[]} frames */
export function rangeOf(row, frames, /** @type {number} */ shift) {
  let low = Infinity;
  let high = -Infinity;
  for (const frame of frames) for (const line of row.lines ?? []) for (const part of chosen(line, frame)) for (const track of part.tracks) {
    for (const point of pointsOf(track, frame, shift, part.from, part.to)) {
      if (!point.known || point.x < frame.left - 2 || point.x > frame.right + 2) continue;
      low = Math.min(low, point.min);
      high = Math.max(high, point.max);
    }
  }
  if (!(low <= high) && row.track?.values) [low, high] = row.track.values;
  if (low > 0 && low < high * 0.5) low = 0;
  return { low, high };
}

/** @param {CanvasRenderingContext2D} context @param {import("./state.js").Row} row @param {import("./canvas.js").Frame} frame */
export function drawSeries(context, row, /** @type {number} */ top, frame, /** @type {number} */ shift, /** @type {{low: number, high: number}} */ { low, high }) {
  const pad = high > low ? 0 : Math.abs(high) || 1;
  const bottom = top + row.height - 4;
  const room = row.height - 9;
  const y = (/** @type {number} */ value) => bottom - (Math.min(Math.max(value, low), high) - low + pad / 2) / (high - low + pad) * room;
  const lines = row.lines ?? [];
  lines.forEach((line, at) => {
    const ink = lines.length > 1 ? colour(at) : inkOfSeries(row, line);
    for (const part of chosen(line, frame)) {
      const [track] = part.tracks;
      const points = pointsOf(track, frame, shift, part.from, part.to);
      drawn.lines++;
      drawLine(context, points, part.bands.map((band) => pointsOf(band, frame, shift, part.from, part.to)), ink, y, top, row.height, frame, lines.length > 1);
    }
  });
}

const inkOfSeries = (/** @type {import("./state.js").Row} */ row, /** @type {import("./state.js").Line} */ line) =>
  view.colour === "track" || view.colour === "group" ? inkOf(/** @type {import("./state.js").Track} */ (row.track), 0, colours.soft) : colourOf(line.label);

/** At most so many parts of a series have bands of their own. */
const MOST_PARTS_OF_BANDS = 64;

/** From where to where points are known one after the other. @param {Point[]} points */
function knownParts(points) {
  /** @type {[number, number][]} */
  const parts = [];
  let from = NaN;
  points.forEach((point, at) => {
    const [before, behind] = [points[at - 1], points[at + 1]];
    if (point.known && !before?.known) from = point.x + point.wide / 2;
    if (point.known && !behind?.known) parts.push([from, point.x + point.wide / 2]);
  });
  return parts.length > MOST_PARTS_OF_BANDS ? [[parts[0][0], parts[parts.length - 1][1]]] : parts;
}

/** Draws a line of a series, its band, and where it is not known. */
function drawLine(/** @type {CanvasRenderingContext2D} */ context, /** @type {Point[]} */ points, /** @type {Point[][]} */ bands, /** @type {string} */ ink, /** @type {(value: number) => number} */ y, /** @type {number} */ top, /** @type {number} */ height, /** @type {import("./canvas.js").Frame} */ frame, /** @type {boolean} */ isOne) {
  // The usual distance of points: what is not known reaches back so far.
  const steps = points.slice(1).map((point, at) => point.x - points[at].x).sort((a, b) => a - b);
  const usual = Math.min(steps[Math.floor(steps.length / 2)] ?? 1, frame.right - frame.left);
  context.fillStyle = colours.soft;
  context.globalAlpha = isOne ? 0.12 : 0.28;
  for (const point of points) {
    if (point.known || point.x < frame.left || point.x - usual > frame.right) continue;
    const wide = Math.max(1, usual);
    context.fillRect(point.x + point.wide - wide, top + 3, wide, height - 6);
    drawn.unknown++;
  }
  context.globalAlpha = isOne ? 0.15 : 0.3;
  context.fillStyle = ink;
  if (bands.length) {
    // From the least values to the greatest, as far as both are known; else from one of them to the mean.
    const edge = (/** @type {Point[]} */ points, /** @type {"min"|"max"} */ key) => points.filter((point) => point.known).map((point) => [point.x + point.wide / 2, y(point[key])]);
    const under = edge(bands.length > 1 ? bands[0] : points, "min");
    const over = edge(bands.at(-1) ?? points, "max");
    const [first, ...rest] = [...over, ...under.reverse()];
    if (over.length > 1 && under.length > 1) for (const [from, to] of knownParts(points)) {
      context.save();
      context.beginPath();
      context.rect(from, top, to - from, height);
      context.clip();
      context.beginPath();
      context.moveTo(first[0], first[1]);
      for (const [x, y] of rest) context.lineTo(x, y);
      context.fill();
      context.restore();
    }
  }
  for (const point of points) {
    if (!point.known || point.x + point.wide < frame.left || point.x > frame.right || point.max === point.min) continue;
    context.fillRect(point.x, y(point.max), Math.max(1, point.wide), Math.max(1, y(point.min) - y(point.max)));
  }
  context.globalAlpha = 1;
  context.strokeStyle = ink;
  context.lineWidth = 1.3;
  context.beginPath();
  let isDown = false;
  for (const point of points) {
    if (!point.known) {
      isDown = false;
      continue;
    }
    const x = point.x + point.wide / 2;
    // A point alone is seen, too.
    if (!isDown) context.moveTo(x - 0.7, y(point.mean));
    context.lineTo(x, y(point.mean));
    isDown = true;
  }
  context.stroke();
  if (usual > 6) {
    context.fillStyle = ink;
    for (const point of points) if (point.known && !point.wide) context.fillRect(point.x - 1.5, y(point.mean) - 1.5, 3, 3);
  }
}

/** The greatest and the least value of a row of series, and the names of its lines. */
export function drawScale(/** @type {CanvasRenderingContext2D} */ context, /** @type {import("./state.js").Row} */ row, /** @type {number} */ top, /** @type {number} */ width, /** @type {{low: number, high: number}} */ { low, high }) {
  const chip = (/** @type {string} */ words, /** @type {number} */ right, /** @type {number} */ y, ink = colours.soft) => {
    const wide = context.measureText(words).width + 4;
    context.fillStyle = colours.back;
    context.globalAlpha = 0.75;
    context.fillRect(right - wide + 2, y - 7, wide, 14);
    context.globalAlpha = 1;
    context.fillStyle = ink;
    context.fillText(words, right, y);
    return wide;
  };
  context.textAlign = "right";
  if (row.height > 34 && Number.isFinite(high)) {
    const unit = row.track?.unit ? ` ${row.track.unit}` : "";
    chip(number(high, 4) + unit, width - 6, top + 9);
    if (low !== high) chip(number(low, 4) + unit, width - 6, top + row.height - 7);
  }
  const lines = row.lines ?? [];
  if (lines.length > 1 && row.height > 34) {
    let right = width - 90;
    lines.slice(0, 12).forEach((line, at) => {
      if (right > 120) right -= chip(`■ ${line.label.slice(0, 30)}`, right, top + 9, colour(at)) + 8;
    });
  }
  context.textAlign = "left";
}
