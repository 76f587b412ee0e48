// The ruler with marks and notes, and the overview of all time.

import { colours, drawn, framesOf, hatching, overview, pointer, prepare, ruler, search, timeAt, viewEnd, widthOf, xOf } from "./canvas.js";
import { density, wantDensity, wantStrip } from "./data.js";
import { later } from "./fold.js";
import { kept } from "./keep.js";
import { hitsIn } from "./moves.js";
import { bounds, scene, view } from "./state.js";
import { SvgContext } from "./svg.js";
import { duration, format, ticks } from "./time.js";

/** The height of the strip of hits. */
const STRIP = 5;

export function drawRuler() {
  const { context, width, height: whole } = prepare(ruler);
  const height = whole - STRIP - 1;
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
    const wide = widthOf(context, words);
    if (x < free || x + 3 + wide > width) continue;
    context.fillText(words, x + 3, height - 9);
    free = x + 8 + wide;
  }
  for (const { left } of frames.slice(1)) {
    context.fillStyle = colours.bar;
    context.fillRect(left - 3, height - 12, 6, 12);
  }
  context.fillStyle = colours.text;
  const facts = relative || isDays ? [] : [format(view.begin, view.zone, scene.begin, 0).slice(0, 10)];
  facts.push(`${duration(view.span)} in view`);
  if (view.area) facts.push(`area ${duration(Number(view.area.end - view.area.begin))}`);
  if (view.marks.length === 2) facts.push(`Δ ${duration(Number(view.marks[1] - view.marks[0]))}`);
  // What was asked for last stays where there is no room for all.
  const long = () => widthOf(context, facts.join("   ")) + 12;
  while (facts.length > 1 && long() > width) facts.shift();
  const at = pointer.x >= 0 ? format(timeAt(pointer.x, width), view.zone, scene.begin) : "";
  const isCrowded = at !== "" && long() + widthOf(context, at) + 12 > width;
  if (!isCrowded) context.fillText(facts.join("   "), 6, 8);
  if (at) {
    context.textAlign = isCrowded ? "left" : "right";
    context.fillStyle = colours.soft;
    context.fillText(at, isCrowded ? 6 : width - 6, 8);
    context.textAlign = "left";
  }
  drawStrip(context, frames, width, whole);
  for (const mark of view.marks) {
    context.fillStyle = colours.mark;
    context.fillRect(Math.round(xOf(mark, width)) - 2, height - 6, 5, 6);
  }
  drawNotes(context, width, height);
}

/** How many hits of the search there are where, on all tracks: a strip below the ruler. */
function drawStrip(/** @type {CanvasRenderingContext2D} */ context, /** @type {import("./canvas.js").Frame[]} */ frames, /** @type {number} */ width, /** @type {number} */ height) {
  drawn.strip = 0;
  if (!search.job || !search.count) return;
  wantStrip(search, frames, hitsIn, JSON.stringify(view.slews, (_, value) => (typeof value === "bigint" ? String(value) : value)));
  const most = Math.max(1, ...search.strip.map((part) => Math.max(...part.density)));
  context.fillStyle = colours.mark;
  for (const part of search.strip) {
    const length = part.span / part.density.length;
    part.density.forEach((count, at) => {
      if (!count) return;
      const left = xOf(later(part.begin, at * length), width);
      const right = xOf(later(part.begin, (at + 1) * length), width);
      if (right < 0 || left > width) return;
      context.globalAlpha = 0.35 + 0.65 * (Math.log2(1 + count) / Math.log2(1 + most));
      context.fillRect(left, height - STRIP, Math.max(2, right - left), STRIP);
      drawn.strip++;
    });
  }
  context.globalAlpha = 1;
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

/** How high bars of two pixels are, as parts of the highest. @param {bigint} begin @param {number} scale @param {number} count */
function barsOf(begin, scale, count) {
  const columns = new Float64Array(count);
  const start = Number(density.begin - begin);
  density.counts.forEach((rows, at) => {
    const column = Math.floor(((start + at * density.span) * scale) / 2);
    if (column >= 0 && column < count) columns[column] += rows;
  });
  const most = columns.reduce((most, rows) => Math.max(most, rows), 1);
  return columns.map((rows) => Math.log2(1 + rows) / Math.log2(1 + most));
}

/**
 * What of the overview stays while the view moves: it is drawn when something of it changes, and copied in each frame.
 * @type {{canvas: HTMLCanvasElement, madeOf: any[]}}
 */
const stillOverview = { canvas: document.createElement("canvas"), madeOf: [] };

/** Draws what of the overview stays while the view moves. */
function drawStill(/** @type {CanvasRenderingContext2D} */ context, /** @type {bigint} */ begin, /** @type {number} */ span, /** @type {number} */ width, /** @type {number} */ height) {
  const scale = width / span;
  context.fillStyle = scene.whole ? colours.accent : colours.soft;
  // Coarse: a bar of two pixels.
  barsOf(begin, scale, Math.ceil(width / 2) + 1).forEach((part, column) => {
    if (!part) return;
    const high = Math.max(2, part * (height - 8));
    context.fillRect(column * 2, height - 2 - high, 2, high);
  });
  const at = (/** @type {bigint} */ time) => Number(time - begin) * scale;
  context.fillStyle = hatching(context);
  for (const notice of scene.notices) context.fillRect(at(notice.begin), 2, Math.max(2, at(notice.end) - at(notice.begin)), 5);
  if (search.job && search.count) {
    context.fillStyle = colours.mark;
    search.density.forEach((rows, column) => rows && context.fillRect((column / search.density.length) * width, 1, 2, 5));
  }
}

export function drawOverview() {
  const { context, width, height } = prepare(overview);
  if (!scene.info || width < 1 || !scene.tracks.length) return;
  const { begin, span } = overviewRange();
  wantDensity(begin, begin + BigInt(Math.ceil(span)), Math.ceil(width / 2));
  const scale = width / span;
  if (context instanceof SvgContext) drawStill(context, begin, span, width, height);
  else {
    const { canvas, madeOf } = stillOverview;
    const now = [density.key, begin, span, overview.width, overview.height, scene.whole, colours.accent, scene.notices, search.job, search.density];
    if (!now.every((part, at) => part === madeOf[at])) {
      stillOverview.madeOf = now;
      [canvas.width, canvas.height] = [overview.width, overview.height];
      const still = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
      still.scale(overview.width / width, overview.height / height);
      drawStill(still, begin, span, width, height);
    }
    context.drawImage(canvas, 0, 0, width, height);
  }
  const at = (/** @type {bigint} */ time) => Number(time - begin) * scale;
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
  // Until all has been read, the bars are made of the sizes of packets: that is said where they are, too.
  drawn.estimate = !scene.whole;
  if (!scene.whole) {
    const words = "estimated from packets";
    const long = context.measureText(words).width + 8;
    context.fillStyle = colours.back;
    context.fillRect(width - long - 4, 3, long, 15);
    context.fillStyle = colours.text;
    context.fillText(words, width - long, 11);
  }
}
