// What all drawing shares: the canvases, colours, frames of time, tiles and texts.

import { tileLength, tilesOf } from "./data.js";
import { later, lengthOf, parts } from "./fold.js";
import { source } from "./source.js";
import { view } from "./state.js";
import { SvgContext } from "./svg.js";

const elementOf = (/** @type {string} */ id) => /** @type {HTMLElement} */ (document.getElementById(id));
export const canvas = /** @type {HTMLCanvasElement} */ (elementOf("tracks"));
export const overview = /** @type {HTMLCanvasElement} */ (elementOf("overview"));
export const ruler = /** @type {HTMLCanvasElement} */ (elementOf("ruler"));

/** What the last frame has drawn, for tests. */
export const drawn = { frames: 0, bins: 0, slices: 0, labels: 0, strip: 0, hatched: 0, unknown: 0, tracks: 0, flows: 0, folds: 0, lines: 0, notes: 0, milliseconds: 0, estimate: false, missing: false, scales: /** @type {number[][]} */ ([]) };

/** The search whose hits are drawn; 0 for none. */
export const search = { /** what is searched, and how */ key: "", job: 0, stripKey: "", /** hits in the view, by columns */ strip: /** @type {{begin: bigint, span: number, density: number[]}[]} */ ([]), count: 0, done: true, density: /** @type {number[]} */ ([]), cut: false };

/** What the mouse is over, and what it drags. @type {{x: number, y: number, zoom: {from: number, to: number}|null}} */
export const pointer = { x: -1, y: -1, zoom: null };

export const colours = { back: "", bar: "", line: "", text: "", soft: "", accent: "", mark: "", area: "" };

/** Reads the colours of the theme. */
export function readColours() {
  const names = /** @type {(keyof typeof colours)[]} */ (Object.keys(colours));
  // All are there before the first is read, so that styles are computed once.
  const probes = names.map((name) => {
    const probe = document.createElement("span");
    probe.style.color = `var(--${name})`;
    return probe;
  });
  document.body.append(...probes);
  names.forEach((name, at) => (colours[name] = getComputedStyle(probes[at]).color));
  for (const probe of probes) probe.remove();
  hatch = null;
}

/** @type {CanvasPattern|null} */
let hatch = null;
/** @param {CanvasRenderingContext2D} context */
export function hatching(context) {
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

/** Draws into other contexts until `null` is given. @param {Map<HTMLCanvasElement, SvgContext>|null} contexts */
export const setTargets = (contexts) => (targets = contexts);

/** Prepares a canvas for its size on the screen. @param {HTMLCanvasElement} canvas */
export function prepare(canvas) {
  const target = targets?.get(canvas);
  if (target) return { context: /** @type {CanvasRenderingContext2D} */ (/** @type {unknown} */ (target)), width: target.width, height: target.height };
  const ratio = window.devicePixelRatio || 1;
  const width = canvas.clientWidth;
  const height = canvas.clientHeight;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
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
 * `events` is how many were drawn in it so far.
 * @typedef {{id: string, begin: bigint, span: number, left: number, right: number, scale: number, events: number}} Frame
 */

/** The frames of rows that are moved by some time: several where times are folded. @param {bigint} shift @param {number} width @returns {Frame[]} */
export function framesOf(shift, width) {
  const scale = width / view.span;
  const list = shift ? [{ begin: view.begin - shift, at: 0, length: view.span, gap: -1 }] : parts(view.begin, view.span);
  return list.slice(0, 100).map((part) => ({
    id: `${shift}/${part.gap}`, begin: part.begin, span: part.length, left: part.at * scale, right: (part.at + part.length) * scale, scale, events: 0,
  }));
}

/** The resolution of a range: spans of 2^shift nanoseconds, of which each pixel has one at least. */
export const shiftOf = (/** @type {number} */ span, /** @type {number} */ width) => Math.max(source.shift, Math.min(53, Math.floor(Math.log2(span / Math.max(1, width)))));

const floorDiv = (/** @type {bigint} */ a, /** @type {bigint} */ b) => Number(a >= 0n ? a / b : -((-a + b - 1n) / b));

/** Tiles of a range. @param {bigint} begin @param {number} span @param {number} shift */
export function tileRange(begin, span, shift) {
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
export function eachTile(job, track, begin, span, shift, each) {
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

/** @type {Map<string, number>} */
const widths = new Map();

/** The width of a text in the usual font. */
export function widthOf(/** @type {CanvasRenderingContext2D} */ context, /** @type {string} */ words) {
  let width = widths.get(words);
  if (width === undefined) {
    if (widths.size > 20000) widths.clear();
    widths.set(words, (width = context.measureText(words).width));
  }
  return width;
}

/** Writes a text in some room: as much as fits, with an ellipsis if that is not all, nothing if that says nothing. @param {CanvasRenderingContext2D} context */
export function text(context, /** @type {string} */ words, /** @type {number} */ x, /** @type {number} */ y, /** @type {number} */ room) {
  if (room < 12) return;
  const list = [...words.slice(0, 400)];
  let shown = list.join("");
  let width = widthOf(context, shown);
  if (width > room) {
    let most = Math.floor(((room - widthOf(context, "…")) * list.length) / width);
    do {
      if (most < 3) return;
      shown = list.slice(0, most--).join("") + "…";
      width = widthOf(context, shown);
    } while (width > room);
  }
  context.fillText(shown, x, y);
  drawn.labels++;
}

export function note(/** @type {CanvasRenderingContext2D} */ context, /** @type {string} */ words, /** @type {number} */ top, /** @type {number} */ width) {
  context.fillStyle = colours.soft;
  context.textAlign = "right";
  context.fillText(words, width - 6, top + 9);
  context.textAlign = "left";
}
