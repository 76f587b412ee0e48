// Drawing: the overview, the ruler, the labels and the tracks.

import { fewOf, slicesOf, tileLength, tilesOf, wantFew, wantSlices, wantTiles } from "./data.js";
import { later, lengthOf, parts } from "./fold.js";
import { drawFlows } from "./flows.js";
import { kept } from "./keep.js";
import { colour, colourOf, inkOf, inkOfSlice, lens } from "./lens.js";
import { source } from "./source.js";
import { bounds, keyOf, rows, scene, selected, stepOf, view } from "./state.js";
import { SvgContext } from "./svg.js";
import { duration, format, number, ticks } from "./time.js";
import { actions } from "./actions.js";

const get = (/** @type {string} */ id) => /** @type {HTMLElement} */ (document.getElementById(id));
export const canvas = /** @type {HTMLCanvasElement} */ (get("tracks"));
export const overview = /** @type {HTMLCanvasElement} */ (get("overview"));
export const ruler = /** @type {HTMLCanvasElement} */ (get("ruler"));
const labels = get("labels");

/** What the last frame has drawn, for tests. */
export const drawn = { frames: 0, bins: 0, slices: 0, labels: 0, hatched: 0, unknown: 0, tracks: 0, flows: 0, folds: 0, lines: 0, notes: 0, milliseconds: 0, missing: false };

/** The search whose hits are drawn; 0 for none. */
export const search = { job: 0, count: 0, done: true, density: /** @type {number[]} */ ([]), cut: false };

/** What the mouse is over, and what it drags. @type {{x: number, y: number, zoom: {from: number, to: number}|null}} */
export const pointer = { x: -1, y: -1, zoom: null };

let colours = { back: "", bar: "", line: "", text: "", soft: "", accent: "", mark: "", area: "" };

/** Reads the colours of the theme. */
export function readColours() {
  const probe = document.createElement("span");
  document.body.append(probe);
  const read = (/** @type {string} */ name) => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  };
  colours = { back: read("back"), bar: read("bar"), line: read("line"), text: read("text"), soft: read("soft"), accent: read("accent"), mark: read("mark"), area: read("area") };
  probe.remove();
  hatch = null;
}

/** @type {CanvasPattern|null} */
let hatch = null;
/** @param {CanvasRenderingContext2D} context */
function hatching(context) {
  if (context instanceof SvgContext) return context.hatching(colours.mark);
  if (hatch) return hatch;
  const tile = document.createElement("canvas");
  tile.width = tile.height = 8;
  const pen = tile.getContext("2d");
  if (!pen) return colours.mark;
  pen.strokeStyle = colours.mark;
  pen.lineWidth = 1.5;
  pen.beginPath();
  for (const from of [-8, 0, 8]) {
    pen.moveTo(from, 8);
    pen.lineTo(from + 8, 0);
  }
  pen.stroke();
  hatch = context.createPattern(tile, "repeat");
  return hatch ?? colours.mark;
}

/** Where a picture is drawn instead of the canvases. @type {Map<HTMLCanvasElement, SvgContext>|null} */
let targets = null;

/** Draws into other contexts. @param {Map<HTMLCanvasElement, SvgContext>} contexts */
export function drawInto(contexts) {
  const at = { ...pointer };
  Object.assign(pointer, { x: -1, y: -1, zoom: null });
  targets = contexts;
  try {
    drawTracks();
    drawRuler();
    drawOverview();
  } finally {
    targets = null;
    Object.assign(pointer, at);
  }
}

/** The colours of the theme. */
export const shownColours = () => colours;

/** Prepares a canvas for its size on the screen. @param {HTMLCanvasElement} of */
function prepare(of) {
  const target = targets?.get(of);
  if (target) return { context: /** @type {CanvasRenderingContext2D} */ (/** @type {unknown} */ (target)), width: target.width, height: target.height };
  const ratio = window.devicePixelRatio || 1;
  const width = of.clientWidth;
  const height = of.clientHeight;
  if (of.width !== Math.round(width * ratio) || of.height !== Math.round(height * ratio)) {
    of.width = Math.round(width * ratio);
    of.height = Math.round(height * ratio);
  }
  const context = /** @type {CanvasRenderingContext2D} */ (of.getContext("2d"));
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.font = "11px system-ui, sans-serif";
  context.textBaseline = "middle";
  return { context, width, height };
}

export const xOf = (/** @type {bigint} */ time, width = canvas.clientWidth) => (lengthOf(view.begin, time) / view.span) * width;
export const timeAt = (/** @type {number} */ x, width = canvas.clientWidth) => later(view.begin, (x / Math.max(1, width)) * view.span);
export const viewEnd = () => later(view.begin, view.span);

/**
 * A part of the canvas in which time runs evenly: from a time of the recordings on, from one pixel to another.
 * @typedef {{id: string, begin: bigint, span: number, left: number, right: number, scale: number}} Frame
 */

/** The frames of rows that are moved by some time: several where times are folded. @param {bigint} shift @param {number} width @returns {Frame[]} */
export function framesOf(shift, width) {
  const scale = width / view.span;
  const list = shift ? [{ begin: view.begin - shift, at: 0, length: view.span, gap: -1 }] : parts(view.begin, view.span);
  return list.slice(0, 100).map((part) => ({
    id: `${shift}/${part.gap}`, begin: part.begin, span: part.length, left: part.at * scale, right: (part.at + part.length) * scale, scale,
  }));
}

/** The resolution of a range: spans of 2^shift nanoseconds, of which each pixel has one at least. */
const shiftOf = (/** @type {number} */ span, /** @type {number} */ width) => Math.max(source.shift, Math.min(53, Math.floor(Math.log2(span / Math.max(1, width)))));

const floorDiv = (/** @type {bigint} */ a, /** @type {bigint} */ b) => Number(a >= 0n ? a / b : -((-a + b - 1n) / b));

/** Tiles of a range. @param {bigint} begin @param {number} span @param {number} shift */
function tileRange(begin, span, shift) {
  const length = tileLength(shift);
  // A span belongs to the tile before if it begins there.
  const first = floorDiv(begin - (1n << BigInt(shift)), length);
  const last = floorDiv(begin + BigInt(Math.ceil(span)), length);
  return { first, count: Math.min(16, last - first + 1) };
}

/**
 * Calls `each` for every tile of a track that covers a range, at the resolution wanted or else the nearest that is there.
 * @param {number} job @param {number} track @param {bigint} begin @param {number} span @param {number} shift
 * @param {(tile: import("./data.js").Tile, start: number, length: number) => void} each
 */
function eachTile(job, track, begin, span, shift, each) {
  const at = (/** @type {number} */ other, needsAll = false) => {
    const own = tilesOf(job, other, track);
    if (!own) return false;
    const { first, count } = tileRange(begin, span, other);
    const found = [];
    for (let tile = first; tile < first + count; tile++) {
      const known = own.get(tile);
      if (known) found.push({ known, tile });
    }
    if (!found.length || (needsAll && found.length < count)) return false;
    for (const { known, tile } of found) each(known, Number(BigInt(tile) * tileLength(other) - begin) + known.phase, 2 ** other);
    return true;
  };
  if (at(shift, true)) return true;
  for (let step = 1; step < 16; step++) if (at(shift + step, true)) return false;
  for (let step = 1; step < 5; step++) if (shift >= step && at(shift - step)) return false;
  at(shift);
  return false;
}

/** The rows that are in sight. @param {number} height */
export function visibleRows(height) {
  const top = view.scroll;
  return rows.filter((row) => row.top + row.height > top && row.top < top + height);
}

/** Draws everything. */
export function draw() {
  const from = performance.now();
  drawTracks();
  drawRuler();
  drawOverview();
  drawLabels();
  drawn.frames++;
  drawn.milliseconds = performance.now() - from;
}

function drawTracks() {
  const { context, width, height } = prepare(canvas);
  if (!scene.info || width < 1) return;
  Object.assign(drawn, { bins: 0, slices: 0, labels: 0, hatched: 0, unknown: 0, tracks: 0, flows: 0, folds: 0, lines: 0, missing: false });
  const visible = visibleRows(height);
  const shift = shiftOf(view.span, width);
  /** @type {Map<bigint, Frame[]>} */
  const frames = new Map();
  /** @type {Map<bigint, import("./state.js").Row[]>} */
  const byShift = new Map();
  for (const row of visible) {
    if (row.kind !== "track") continue;
    const list = byShift.get(row.shift);
    if (list) list.push(row);
    else byShift.set(row.shift, [row]);
  }
  for (const [moved, list] of byShift) {
    frames.set(moved, framesOf(moved, width));
    for (const frame of frames.get(moved) ?? []) request(list, frame, shift);
  }
  for (const row of visible) {
    const top = row.top - view.scroll;
    if (row.kind === "group") {
      context.fillStyle = colours.bar;
      context.fillRect(0, top, width, row.height);
    } else if (row.track) {
      drawn.tracks++;
      if (selected.row === row.key) {
        context.fillStyle = colours.area;
        context.fillRect(0, top, width, row.height);
      }
      const list = frames.get(row.shift) ?? [];
      const scope = row.lines ? rangeOf(row, list, shift) : null;
      for (const frame of list) {
        if (list.length > 1) {
          context.save();
          context.beginPath();
          context.rect(frame.left, top, frame.right - frame.left, row.height);
          context.clip();
        }
        if (row.track.depths) drawSlices(context, row, top, frame, shift);
        else if (row.lines && scope) drawSeries(context, row, top, frame, shift, scope);
        else drawInstants(context, row, top, frame, shift);
        if (search.job) drawHits(context, row, top, frame, shift);
        drawNotices(context, row, frame);
        if (list.length > 1) context.restore();
      }
      if (row.track.estimate) note(context, "estimate", top, width);
      if (scope) drawScale(context, row, top, width, scope);
    }
    context.fillStyle = colours.line;
    context.globalAlpha = 0.5;
    context.fillRect(0, top + row.height - 1, width, 1);
    context.globalAlpha = 1;
  }
  drawFolds(context, framesOf(0n, width), height);
  drawn.flows = drawFlows(context, width, colours);
  drawArea(context, width, height);
  if (!scene.tracks.length) {
    context.fillStyle = colours.soft;
    context.fillText(scene.whole ? "The recordings have no events." : "Reading the recordings…", 12, 24);
  }
}

/** Asks for what some rows need. */
function request(/** @type {import("./state.js").Row[]} */ list, /** @type {Frame} */ frame, /** @type {number} */ shift) {
  const { first, count } = tileRange(frame.begin, frame.span, shift);
  const width = frame.right - frame.left;
  const tracks = list.map((row) => /** @type {import("./state.js").Track} */ (row.track));
  const series = list.flatMap((row) => (row.lines ?? []).flatMap((line) => chosen(line, frame).flatMap((part) => part.tracks)));
  const events = [...new Set([...list.filter((row) => !row.lines).map((row) => row.track?.id ?? 0)])];
  const all = [...new Set([...events, ...series.map((track) => track.id)])];
  // Series are not events: a lens leaves them as they are.
  if (lens.job) {
    wantTiles(0, shift, first, count, [...new Set(series.map((track) => track.id))], frame.id);
    wantTiles(lens.job, shift, first, count, events, frame.id);
  } else wantTiles(0, shift, first, count, all, frame.id);
  if (search.job) wantTiles(search.job, shift, first, count, all, frame.id);
  const sliced = tracks.filter((track) => track.depths).map((track) => track.id);
  wantSlices(frame.id, lens, frame.begin, frame.span, Math.round(width), sliced);
  // Few enough that they may have room for their names.
  const named = tracks.filter((track) => track.kind === "event" && !track.depths).map((track) => track.id);
  if (named.length) wantFew(frame.id, lens.condition, frame.begin, frame.span, named);
}

/** Where times are folded. */
function drawFolds(/** @type {CanvasRenderingContext2D} */ context, /** @type {Frame[]} */ frames, /** @type {number} */ height) {
  for (const { left } of frames.slice(1)) {
    context.fillStyle = colours.bar;
    context.fillRect(left - 3, 0, 6, height);
    context.strokeStyle = colours.soft;
    context.lineWidth = 1;
    context.beginPath();
    context.moveTo(left - 2, 0);
    for (let y = 6; y <= height + 5; y += 6) context.lineTo(left + ((y / 6) % 2 ? 2 : -2), y);
    context.stroke();
    drawn.folds++;
  }
}

/** @param {CanvasRenderingContext2D} context @param {import("./state.js").Row} row @param {Frame} frame */
function drawInstants(context, row, /** @type {number} */ top, frame, /** @type {number} */ shift) {
  const track = /** @type {import("./state.js").Track} */ (row.track);
  const { scale, left, right } = frame;
  const bottom = top + row.height - 2;
  const room = Math.max(2, row.height - 5);
  /** @type {Map<string, number[]>} by colour, so that it is set seldom */
  const bars = new Map();
  const isExact = eachTile(lens.job, track.id, frame.begin, frame.span, shift, (tile, start, length) => {
    for (let bin = 0; bin < tile.length; bin++) {
      const isSingle = tile.count[bin] === 1;
      const x = left + (start + tile.position[bin] * length + (isSingle ? tile.offset[bin] : 0)) * scale;
      const wide = isSingle ? 1 : Math.max(1, length * scale);
      if (x + wide < left || x > right) continue;
      const high = isSingle ? room * 0.55 : Math.min(room, room * (0.55 + 0.09 * Math.log2(tile.count[bin])));
      const key = tile.estimate && !lens.job ? colours.soft : inkOf(track, tile.kind[bin], colours.soft);
      let list = bars.get(key);
      if (!list) bars.set(key, (list = []));
      list.push(Math.floor(x), bottom - high, wide <= 1 ? 1 : Math.ceil(wide), high);
      drawn.bins++;
    }
  });
  drawn.missing ||= !isExact;
  for (const [key, list] of bars) {
    context.fillStyle = key;
    for (let at = 0; at < list.length; at += 4) context.fillRect(list[at], list[at + 1], list[at + 2], list[at + 3]);
  }
  drawNames(context, track, top, row.height, frame);
}

/** The names of events beside them, where they have room. */
function drawNames(/** @type {CanvasRenderingContext2D} */ context, /** @type {import("./state.js").Track} */ track, /** @type {number} */ top, /** @type {number} */ height, /** @type {Frame} */ frame) {
  const few = fewOf(frame.id);
  const events = few.tracks.get(track.id);
  if (!events || height < 14) return;
  const shift = Number(few.begin - frame.begin);
  const places = events.map((event) => frame.left + (event[1] + shift) * frame.scale);
  context.fillStyle = colours.text;
  for (let at = 0; at < events.length; at++) {
    const x = places[at];
    if (x < frame.left - 2 || x > frame.right) continue;
    const room = (places[at + 1] ?? x + 400) - x - 8;
    if (room < 28) continue;
    text(context, events[at][4], x + 4, top + 8, Math.min(room, 400));
  }
}

/** Writes a text in some room, cut at its end. @param {CanvasRenderingContext2D} context */
function text(context, /** @type {string} */ words, /** @type {number} */ x, /** @type {number} */ y, /** @type {number} */ room) {
  const each = 6.1;
  if (room < each * 3) return;
  const most = Math.floor(room / each);
  const list = [...words.slice(0, 400)];
  let shown = list.length <= most ? words : list.slice(0, most - 1).join("") + "…";
  if (list.length > most && context.measureText(words).width <= room) shown = words;
  context.save();
  context.beginPath();
  context.rect(x, y - 9, room, 18);
  context.clip();
  context.fillText(shown, x, y);
  context.restore();
  drawn.labels++;
}

function note(/** @type {CanvasRenderingContext2D} */ context, /** @type {string} */ words, /** @type {number} */ top, /** @type {number} */ width) {
  context.fillStyle = colours.soft;
  context.textAlign = "right";
  context.fillText(words, width - 6, top + 9);
  context.textAlign = "left";
}

/**
 * The tracks of a line that a frame shows, and from when to when: of the archives of a database the coarsest of which a
 * pixel has a point, and where it has nothing yet, coarser ones. The last ones are the least and the greatest values.
 * @param {import("./state.js").Line} line @param {Frame} frame
 * @returns {{tracks: import("./state.js").Track[], bands: import("./state.js").Track[], from: number, to: number}[]}
 */
function chosen(line, frame) {
  if (line.averages.length + line.lows.length + line.highs.length === 1) return [{ tracks: line.averages, bands: [], from: -Infinity, to: Infinity }];
  const fits = (/** @type {import("./state.js").Track[]} */ list) => list.findLast((track) => stepOf(track) * frame.scale <= 2) ?? list[0];
  const list = [];
  let to = Infinity;
  for (let track = fits(line.averages); track;) {
    const from = Number(BigInt(track.first) - frame.begin);
    const step = stepOf(track);
    const near = (/** @type {import("./state.js").Track[]} */ of) => of.findLast((other) => stepOf(other) <= step * 1.01) ?? of[0];
    const bands = [near(line.lows), near(line.highs)].filter((of) => of !== undefined);
    const next = line.averages.slice(line.averages.indexOf(track) + 1).find((of) => BigInt(of.first) < BigInt(track.first));
    list.push({ tracks: [track, ...bands], bands, from: next ? from : -Infinity, to });
    if (from <= 0 || !next) break;
    to = from;
    track = next;
  }
  return list;
}

/** @typedef {{x: number, wide: number, known: number, min: number, max: number, mean: number}} Point */

/** The points of a track in a frame. @returns {Point[]} */
function pointsOf(/** @type {import("./state.js").Track} */ track, /** @type {Frame} */ frame, /** @type {number} */ shift, from = -Infinity, to = Infinity) {
  /** @type {Point[]} */
  const points = [];
  const isExact = eachTile(0, track.id, frame.begin, frame.span, shift, (tile, start, length) => {
    for (let bin = 0; bin < tile.length; bin++) {
      const isSingle = tile.count[bin] === 1;
      const at = start + tile.position[bin] * length + (isSingle ? tile.offset[bin] : 0);
      if (at < from || at >= to) continue;
      const [min, max, mean] = tile.values.subarray(bin * 4, bin * 4 + 3);
      points.push({ x: frame.left + at * frame.scale, wide: isSingle ? 0 : length * frame.scale, known: tile.known[bin], min, max, mean });
    }
  });
  drawn.missing ||= !isExact;
  drawn.bins += points.length;
  return points;
}

/** The values that a row shows: the least and the greatest. @param {import("./state.js").Row} row @param {Frame[]} frames */
function rangeOf(row, frames, /** @type {number} */ shift) {
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

/** @param {CanvasRenderingContext2D} context @param {import("./state.js").Row} row @param {Frame} frame */
function drawSeries(context, row, /** @type {number} */ top, frame, /** @type {number} */ shift, /** @type {{low: number, high: number}} */ { low, high }) {
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

/** Draws a line of a series, its band, and where it is not known. */
function drawLine(/** @type {CanvasRenderingContext2D} */ context, /** @type {Point[]} */ points, /** @type {Point[][]} */ bands, /** @type {string} */ ink, /** @type {(value: number) => number} */ y, /** @type {number} */ top, /** @type {number} */ height, /** @type {Frame} */ frame, /** @type {boolean} */ isOne) {
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
    const edge = (/** @type {Point[]} */ of, /** @type {"min"|"max"} */ key) => of.filter((point) => point.known).map((point) => [point.x + point.wide / 2, y(point[key])]);
    const under = edge(bands.length > 1 ? bands[0] : points, "min");
    const over = edge(bands.at(-1) ?? points, "max");
    const [first, ...rest] = [...over, ...under.reverse()];
    context.beginPath();
    if (first) context.moveTo(first[0], first[1]);
    for (const [x, y] of rest) context.lineTo(x, y);
    context.fill();
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
function drawScale(/** @type {CanvasRenderingContext2D} */ context, /** @type {import("./state.js").Row} */ row, /** @type {number} */ top, /** @type {number} */ width, /** @type {{low: number, high: number}} */ { low, high }) {
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
    chip(number(low, 4) + unit, width - 6, top + row.height - 7);
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

/** @param {CanvasRenderingContext2D} context @param {import("./state.js").Row} row @param {Frame} frame */
function drawSlices(context, row, /** @type {number} */ top, frame, /** @type {number} */ shift) {
  const track = /** @type {import("./state.js").Track} */ (row.track);
  const slices = slicesOf(frame.id);
  const list = slices.tracks.get(track.id) ?? [];
  const { scale } = frame;
  const from = Number(slices.begin - frame.begin);
  const step = 16 * Math.max(1, view.scale);
  for (const [depth, begin, length, name, count, isOpen, value] of list) {
    const x = frame.left + (begin + from) * scale;
    const wide = Math.max(1, length * scale);
    if (x + wide < frame.left || x > frame.right || depth >= 32) continue;
    const words = String(slices.names[name] ?? "");
    const left = Math.max(x, frame.left - 2);
    const right = Math.min(x + wide, frame.right + 2);
    const y = top + 3 + depth * step;
    context.fillStyle = inkOfSlice(track, words, value ?? null, colours.soft);
    context.fillRect(left, y, Math.max(1, right - left - (wide > 3 ? 1 : 0)), step - 2);
    if (isOpen) {
      context.fillStyle = hatching(context);
      context.fillRect(Math.max(left, right - 12), y, Math.min(12, right - left), step - 2);
    }
    if (right - left > 24) {
      context.fillStyle = "#fff";
      text(context, count > 1 ? `${count} × ${words}` : words, left + 4, y + step / 2 - 1, right - left - 8);
    }
    drawn.slices++;
  }
  // Below them every event, so that instants among slices are seen, too.
  context.fillStyle = colours.soft;
  const isExact = eachTile(lens.job, track.id, frame.begin, frame.span, shift, (tile, start, length) => {
    for (let bin = 0; bin < tile.length; bin++) {
      const isSingle = tile.count[bin] === 1;
      const x = frame.left + (start + tile.position[bin] * length + (isSingle ? tile.offset[bin] : 0)) * scale;
      context.fillRect(Math.floor(x), top + row.height - 6, isSingle ? 1 : Math.max(1, length * scale), 4);
    }
    drawn.bins += tile.length;
  });
  drawn.missing ||= !isExact;
}

/** Marks where the search has found something. */
function drawHits(/** @type {CanvasRenderingContext2D} */ context, /** @type {import("./state.js").Row} */ row, /** @type {number} */ top, /** @type {Frame} */ frame, /** @type {number} */ shift) {
  context.fillStyle = colours.mark;
  eachTile(search.job, row.track?.id ?? 0, frame.begin, frame.span, shift, (tile, start, length) => {
    for (let bin = 0; bin < tile.length; bin++) {
      const x = frame.left + (start + tile.position[bin] * length + (tile.count[bin] === 1 ? tile.offset[bin] : 0)) * frame.scale;
      context.fillRect(Math.floor(x), top + row.height - 5, Math.max(2, length * frame.scale), 4);
    }
  });
}

/** Losses and damage, hatched. */
function drawNotices(/** @type {CanvasRenderingContext2D} */ context, /** @type {import("./state.js").Row} */ row, /** @type {Frame} */ frame) {
  if (!scene.notices.length || !row.track) return;
  context.fillStyle = hatching(context);
  const own = scene.noticesOf.get(`${row.recording}/${row.track.name}`) ?? [];
  for (const notice of own.concat(scene.noticesOf.get(String(row.recording)) ?? [])) {
    const at = (/** @type {bigint} */ time) => frame.left + Number(time - frame.begin) * frame.scale;
    const left = Math.max(frame.left - 4, at(notice.begin));
    const right = Math.min(frame.right + 4, at(notice.end));
    if (right < frame.left || left > frame.right) continue;
    context.fillRect(left, row.top - view.scroll + 1, Math.max(3, right - left), row.height - 3);
    drawn.hatched++;
  }
}

/** The area, the marks, the selected event, and what is dragged. */
function drawArea(/** @type {CanvasRenderingContext2D} */ context, /** @type {number} */ width, /** @type {number} */ height) {
  const band = (/** @type {number} */ left, /** @type {number} */ right, /** @type {string} */ ink) => {
    context.fillStyle = colours.area;
    context.fillRect(left, 0, right - left, height);
    context.fillStyle = ink;
    context.fillRect(left, 0, 1, height);
    context.fillRect(right, 0, 1, height);
  };
  if (view.area) band(xOf(view.area.begin, width), xOf(view.area.end, width), colours.accent);
  if (pointer.zoom) band(Math.min(pointer.zoom.from, pointer.zoom.to), Math.max(pointer.zoom.from, pointer.zoom.to), colours.mark);
  view.marks.forEach((mark, at) => line(context, xOf(mark, width), height, colours.mark, "AB"[at]));
  if (view.event) {
    const key = view.event.track;
    const own = rows.filter((row) => row.track && (keyOf(row.track) === key || row.tracks.some((track) => keyOf(track) === key)));
    for (const moved of new Set(own.length ? own.map((row) => row.shift) : [0n])) line(context, xOf(view.event.time + moved, width), height, colours.text, "");
    for (const row of own) {
      const x = xOf(view.event.time + row.shift, width);
      context.strokeStyle = colours.text;
      context.lineWidth = 1.5;
      context.strokeRect(x - 4, row.top - view.scroll + 1, 9, row.height - 4);
    }
  }
  if (pointer.x >= 0 && !pointer.zoom) {
    context.fillStyle = colours.soft;
    context.globalAlpha = 0.5;
    context.fillRect(pointer.x, 0, 1, height);
    context.globalAlpha = 1;
  }
}

function line(/** @type {CanvasRenderingContext2D} */ context, /** @type {number} */ x, /** @type {number} */ height, /** @type {string} */ ink, /** @type {string} */ name) {
  context.fillStyle = ink;
  context.fillRect(Math.round(x), 0, 1, height);
  if (name) context.fillText(name, x + 3, height - 8);
}

function drawRuler() {
  const { context, width, height } = prepare(ruler);
  if (!scene.info || width < 1) return;
  const relative = view.zone === "relative";
  const frames = framesOf(0n, width);
  const most = Math.max(2, width / 130);
  const { step, digits } = ticks(view.begin, view.span, most, view.zone, scene.begin);
  const list = frames.flatMap((frame) => ticks(frame.begin, frame.span, (most * frame.span) / view.span, view.zone, scene.begin, step).list);
  let free = -Infinity;
  context.fillStyle = colours.soft;
  // The date is said once; then days are enough where they are the step.
  const isDays = step >= 86400e9 && !relative;
  for (const at of list) {
    const x = xOf(at, width);
    context.fillRect(Math.round(x), height - 8, 1, 8);
    const words = isDays ? format(at, view.zone, scene.begin, 0).slice(0, 10) : format(at, view.zone, scene.begin, digits, false);
    if (x < free) continue;
    context.fillText(words, x + 3, height - 9);
    free = x + 8 + context.measureText(words).width;
  }
  for (const { left } of frames.slice(1)) {
    context.fillStyle = colours.bar;
    context.fillRect(left - 3, height - 12, 6, 12);
  }
  context.fillStyle = colours.text;
  const from = relative || isDays ? "" : format(view.begin, view.zone, scene.begin, 0).slice(0, 10) + "   ";
  let words = `${from}${duration(view.span)} in view`;
  if (view.area) words += `   area ${duration(Number(view.area.end - view.area.begin))}`;
  if (view.marks.length === 2) words += `   Δ ${duration(Number(view.marks[1] - view.marks[0]))}`;
  context.fillText(words, 6, 8);
  if (pointer.x >= 0) {
    context.textAlign = "right";
    context.fillStyle = colours.soft;
    context.fillText(format(timeAt(pointer.x, width), view.zone, scene.begin), width - 6, 8);
    context.textAlign = "left";
  }
  for (const mark of view.marks) {
    context.fillStyle = colours.mark;
    context.fillRect(Math.round(xOf(mark, width)) - 2, height - 6, 5, 6);
  }
  drawNotes(context, width, height);
}

/** Notes on the ruler: a flag, and as much of the text as there is room until the next one. */
function drawNotes(/** @type {CanvasRenderingContext2D} */ context, /** @type {number} */ width, /** @type {number} */ height) {
  const places = kept.notes.map((note) => xOf(BigInt(note.time), width));
  drawn.notes = 0;
  kept.notes.forEach((note, at) => {
    const x = Math.round(places[at]);
    if (x < -200 || x > width) return;
    const room = Math.min(200, (places[at + 1] ?? Infinity) - x - 6);
    context.fillStyle = colours.accent;
    context.fillRect(x, height - 15, 2, 15);
    if (room > 24) {
      const words = [...note.text.split("\n")[0]].slice(0, Math.floor(room / 6.2)).join("");
      context.fillStyle = colours.back;
      context.fillRect(x + 2, height - 15, context.measureText(words).width + 5, 14);
      context.fillStyle = colours.accent;
      context.fillText(words, x + 4, height - 8);
    } else context.fillRect(x, height - 15, 5, 4);
    drawn.notes++;
  });
}

/** The range that the overview shows. */
export function overviewRange() {
  const { begin, end } = bounds();
  const span = Math.max(Number(end - begin), 1000);
  const room = span * 0.02;
  return { begin: begin - BigInt(Math.round(room)), span: span + 2 * room };
}

function drawOverview() {
  const { context, width, height } = prepare(overview);
  if (!scene.info || width < 1 || !scene.tracks.length) return;
  const { begin, span } = overviewRange();
  // Coarse: a bar of two pixels.
  const shift = shiftOf(span, width / 2);
  const { first, count } = tileRange(begin, span, shift);
  const shown = scene.tracks.slice(0, 512);
  wantTiles(0, shift, first, count, shown.map((track) => track.id));
  const columns = new Float64Array(Math.ceil(width / 2) + 1);
  const scale = width / span;
  for (const track of shown) {
    const own = tilesOf(0, shift, track.id);
    if (!own) continue;
    for (let tile = first; tile < first + count; tile++) {
      const known = own.get(tile);
      if (!known) continue;
      const start = Number(BigInt(tile) * tileLength(shift) - begin) + known.phase;
      for (let bin = 0; bin < known.length; bin++) {
        const x = (start + known.position[bin] * 2 ** shift) * scale;
        const column = Math.floor(x / 2);
        if (column >= 0 && column < columns.length) columns[column] += known.count[bin];
      }
    }
  }
  const most = Math.max(1, ...columns);
  context.fillStyle = scene.whole ? colours.accent : colours.soft;
  columns.forEach((rows, column) => {
    if (!rows) return;
    const high = Math.max(2, (Math.log2(1 + rows) / Math.log2(1 + most)) * (height - 8));
    context.fillRect(column * 2, height - 2 - high, 2, high);
  });
  const at = (/** @type {bigint} */ time) => Number(time - begin) * scale;
  context.fillStyle = hatching(context);
  for (const notice of scene.notices) context.fillRect(at(notice.begin), 2, Math.max(2, at(notice.end) - at(notice.begin)), 5);
  if (search.job && search.count) {
    context.fillStyle = colours.mark;
    search.density.forEach((rows, column) => rows && context.fillRect((column / search.density.length) * width, 1, 2, 5));
  }
  const left = at(view.begin);
  const wide = Math.max(2, Number(viewEnd() - view.begin) * scale);
  context.fillStyle = colours.back;
  context.globalAlpha = 0.55;
  context.fillRect(0, 0, left, height);
  context.fillRect(left + wide, 0, width, height);
  context.globalAlpha = 1;
  context.strokeStyle = colours.text;
  context.lineWidth = 1;
  context.strokeRect(left + 0.5, 0.5, Math.max(1, wide - 1), height - 1);
}

/** @type {Map<string, HTMLElement>} */
const shownLabels = new Map();

/** The labels: real elements, only those in sight. */
function drawLabels() {
  const visible = visibleRows(canvas.clientHeight);
  const keys = new Set(visible.map((row) => row.key));
  for (const [key, element] of shownLabels) {
    if (keys.has(key) || element.contains(document.activeElement)) continue;
    element.remove();
    shownLabels.delete(key);
  }
  for (const row of visible) {
    let element = shownLabels.get(row.key);
    if (!element) {
      element = makeLabel(row);
      shownLabels.set(row.key, element);
      labels.append(element);
    }
    element.style.top = `${row.top - view.scroll}px`;
    element.style.height = `${row.height}px`;
    element.style.paddingLeft = `${4 + row.depth * 12}px`;
    element.classList.toggle("selected", row.key === selected.row);
    const [name, ...tools] = /** @type {HTMLElement[]} */ ([...element.children]);
    const arrow = row.kind === "group" ? (row.open ? "▾ " : "▸ ") : "";
    const count = row.kind === "group" && !row.open ? ` (${row.count})` : "";
    const words = arrow + row.label + count;
    if (name.textContent !== words) name.textContent = words;
    name.title = row.title;
    element.setAttribute("aria-level", String(row.depth + 1));
    if (row.kind === "group") element.setAttribute("aria-expanded", String(row.open));
    if (row.track) {
      const isPinned = view.pinned.includes(keyOf(row.track));
      tools[0]?.classList.toggle("on", isPinned);
      tools[0]?.setAttribute("aria-pressed", String(isPinned));
    }
  }
}

function makeLabel(/** @type {import("./state.js").Row} */ row) {
  const element = document.createElement("div");
  element.className = `row ${row.kind}`;
  element.setAttribute("role", "treeitem");
  const name = document.createElement("button");
  name.className = "name";
  name.dir = "auto";
  name.tabIndex = -1;
  name.addEventListener("click", (event) => actions.label(row.key, event));
  element.append(name);
  const tool = (/** @type {string} */ sign, /** @type {string} */ title, /** @type {() => void} */ act) => {
    const button = document.createElement("button");
    button.className = "tool";
    button.textContent = sign;
    button.title = title;
    button.tabIndex = -1;
    button.setAttribute("aria-label", title);
    button.addEventListener("click", act);
    element.append(button);
  };
  if (row.kind === "track") tool("★", "Pin (P)", () => actions.pin(row.key));
  if (row.key !== "pinned") tool("✕", "Hide (H)", () => actions.hide(row.key));
  return element;
}
