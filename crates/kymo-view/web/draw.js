// Drawing: the overview, the ruler, the labels and the tracks.

import { few, slices, tileLength, tilesOf, wantFew, wantSlices, wantTiles } from "./data.js";
import { kept } from "./keep.js";
import { source } from "./source.js";
import { keyOf, rows, scene, selected, view } from "./state.js";
import { SvgContext } from "./svg.js";
import { duration, format, number, ticks } from "./time.js";
import { actions } from "./actions.js";

const get = (/** @type {string} */ id) => /** @type {HTMLElement} */ (document.getElementById(id));
export const canvas = /** @type {HTMLCanvasElement} */ (get("tracks"));
export const overview = /** @type {HTMLCanvasElement} */ (get("overview"));
export const ruler = /** @type {HTMLCanvasElement} */ (get("ruler"));
const labels = get("labels");

// Okabe and Ito's colours, which people with any colour vision tell apart, and lighter and darker ones of them.
const COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b8860b", "#56b4e9", "#7a52a3", "#8c6d31", "#3d7d8a", "#a64d4d", "#5b8c2a", "#7f7f7f"];
export const colour = (/** @type {number} */ number) => COLOURS[number % COLOURS.length];

/** The colour of a name: the same in every recording. @param {string} name */
export function colourOf(name) {
  let hash = 0;
  for (let at = 0; at < name.length; at++) hash = (hash * 31 + name.charCodeAt(at)) | 0;
  return colour(Math.abs(hash));
}

/** What the last frame has drawn, for tests. */
export const drawn = { frames: 0, bins: 0, slices: 0, labels: 0, hatched: 0, unknown: 0, tracks: 0, notes: 0, milliseconds: 0, missing: false };

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

export const xOf = (/** @type {bigint} */ time, width = canvas.clientWidth) => (Number(time - view.begin) / view.span) * width;
export const timeAt = (/** @type {number} */ x, width = canvas.clientWidth) => view.begin + BigInt(Math.round((x / Math.max(1, width)) * view.span));

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
  Object.assign(drawn, { bins: 0, slices: 0, labels: 0, hatched: 0, unknown: 0, tracks: 0, missing: false });
  const visible = visibleRows(height);
  const tracks = visible.filter((row) => row.kind === "track");
  const ids = [...new Set(tracks.map((row) => row.track?.id ?? 0))];
  const shift = shiftOf(view.span, width);
  const { first, count } = tileRange(view.begin, view.span, shift);
  wantTiles(0, shift, first, count, ids);
  if (search.job) wantTiles(search.job, shift, first, count, ids);
  const sliced = tracks.filter((row) => row.track?.depths).map((row) => row.track?.id ?? 0);
  wantSlices(view.begin, view.span, Math.round(width), sliced);
  // Few enough that they may have room for their names.
  const events = tracks.filter((row) => row.track?.kind === "event" && !row.track.depths);
  if (events.length) wantFew(view.begin, view.span, events.map((row) => row.track?.id ?? 0));
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
      if (row.track.depths) drawSlices(context, row, top, width, shift);
      else if (row.track.values) drawSeries(context, row, top, width, shift);
      else drawInstants(context, row, top, width, shift);
      if (search.job) drawHits(context, row, top, width, shift);
    }
    context.fillStyle = colours.line;
    context.globalAlpha = 0.5;
    context.fillRect(0, top + row.height - 1, width, 1);
    context.globalAlpha = 1;
  }
  drawNotices(context, visible, width);
  drawArea(context, width, height);
  if (!scene.tracks.length) {
    context.fillStyle = colours.soft;
    context.fillText(scene.whole ? "The recordings have no events." : "Reading the recordings…", 12, 24);
  }
}

/** @param {CanvasRenderingContext2D} context @param {import("./state.js").Row} row */
function drawInstants(context, row, /** @type {number} */ top, /** @type {number} */ width, /** @type {number} */ shift) {
  const track = /** @type {import("./state.js").Track} */ (row.track);
  const scale = width / view.span;
  const bottom = top + row.height - 2;
  const room = Math.max(2, row.height - 5);
  /** @type {Map<string, number[]>} by colour, so that it is set seldom */
  const bars = new Map();
  const isExact = eachTile(0, track.id, view.begin, view.span, shift, (tile, start, length) => {
    for (let bin = 0; bin < tile.length; bin++) {
      const isSingle = tile.count[bin] === 1;
      const x = (start + tile.position[bin] * length + (isSingle ? tile.offset[bin] : 0)) * scale;
      const wide = isSingle ? 1 : Math.max(1, length * scale);
      if (x + wide < 0 || x > width) continue;
      const high = isSingle ? room * 0.55 : Math.min(room, room * (0.55 + 0.09 * Math.log2(tile.count[bin])));
      const key = tile.estimate ? colours.soft : track.kind === "sample" ? colours.accent : colour(tile.kind[bin] + track.recording);
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
  if (track.estimate) note(context, "estimate", top, width);
  drawNames(context, track, top, row.height, width);
}

/** The names of events beside them, where they have room. */
function drawNames(/** @type {CanvasRenderingContext2D} */ context, /** @type {import("./state.js").Track} */ track, /** @type {number} */ top, /** @type {number} */ height, /** @type {number} */ width) {
  const events = few.tracks.get(track.id);
  if (!events || height < 14) return;
  const scale = width / view.span;
  const shift = Number(few.begin - view.begin);
  const places = events.map((event) => (event[1] + shift) * scale);
  context.fillStyle = colours.text;
  for (let at = 0; at < events.length; at++) {
    const x = places[at];
    if (x < -2 || x > width) continue;
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

/** @param {CanvasRenderingContext2D} context @param {import("./state.js").Row} row */
function drawSeries(context, row, /** @type {number} */ top, /** @type {number} */ width, /** @type {number} */ shift) {
  const track = /** @type {import("./state.js").Track} */ (row.track);
  const scale = width / view.span;
  /** @type {{x: number, wide: number, known: number, count: number, min: number, max: number, mean: number, last: number}[]} */
  const points = [];
  let low = Infinity;
  let high = -Infinity;
  const isExact = eachTile(0, track.id, view.begin, view.span, shift, (tile, start, length) => {
    for (let bin = 0; bin < tile.length; bin++) {
      const isSingle = tile.count[bin] === 1;
      const x = (start + tile.position[bin] * length + (isSingle ? tile.offset[bin] : 0)) * scale;
      const [min, max, mean, last] = tile.values.subarray(bin * 4, bin * 4 + 4);
      points.push({ x, wide: isSingle ? 0 : length * scale, known: tile.known[bin], count: tile.count[bin], min, max, mean, last });
      if (x >= -2 && x <= width + 2 && tile.known[bin]) {
        low = Math.min(low, min);
        high = Math.max(high, max);
      }
    }
  });
  drawn.missing ||= !isExact;
  drawn.bins += points.length;
  if (!(low <= high) && track.values) [low, high] = track.values;
  if (low > 0 && low < high * 0.5) low = 0;
  const pad = high > low ? 0 : Math.abs(high) || 1;
  const bottom = top + row.height - 4;
  const room = row.height - 9;
  const y = (/** @type {number} */ value) => bottom - (Math.min(Math.max(value, low), high) - low + pad / 2) / (high - low + pad) * room;
  const ink = colourOf(track.path.slice(track.path.at(-1) === "value" ? -2 : -1).join(" "));
  // The usual distance of points: what is not known reaches back so far.
  const steps = points.slice(1).map((point, at) => point.x - points[at].x).sort((a, b) => a - b);
  const usual = Math.min(steps[Math.floor(steps.length / 2)] ?? 1, width);
  context.fillStyle = colours.soft;
  context.globalAlpha = 0.28;
  for (const point of points) {
    if (point.known || point.x < 0 || point.x - usual > width) continue;
    const wide = Math.max(1, usual);
    context.fillRect(point.x + point.wide - wide, top + 3, wide, row.height - 6);
    drawn.unknown++;
  }
  context.globalAlpha = 0.3;
  context.fillStyle = ink;
  for (const point of points) {
    if (!point.known || point.x + point.wide < 0 || point.x > width || point.max === point.min) continue;
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
  if (row.height > 34 && Number.isFinite(high)) {
    const unit = track.unit ? ` ${track.unit}` : "";
    context.textAlign = "right";
    for (const [value, y] of [[high, top + 9], [low, bottom - 3]]) {
      const words = number(value, 4) + unit;
      context.fillStyle = colours.back;
      context.globalAlpha = 0.75;
      const wide = context.measureText(words).width + 4;
      context.fillRect(width - 4 - wide, y - 7, wide, 14);
      context.globalAlpha = 1;
      context.fillStyle = colours.soft;
      context.fillText(words, width - 6, y);
    }
    context.textAlign = "left";
  }
}

/** @param {CanvasRenderingContext2D} context @param {import("./state.js").Row} row */
function drawSlices(context, row, /** @type {number} */ top, /** @type {number} */ width, /** @type {number} */ shift) {
  const track = /** @type {import("./state.js").Track} */ (row.track);
  const list = slices.tracks.get(track.id) ?? [];
  const scale = width / view.span;
  const from = Number(slices.begin - view.begin);
  const step = 16 * Math.max(1, view.scale);
  for (const [depth, begin, length, name, count, isOpen] of list) {
    const x = (begin + from) * scale;
    const wide = Math.max(1, length * scale);
    if (x + wide < 0 || x > width || depth >= 32) continue;
    const words = String(slices.names[name] ?? "");
    const left = Math.max(x, -2);
    const right = Math.min(x + wide, width + 2);
    const y = top + 3 + depth * step;
    context.fillStyle = colourOf(words);
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
  const isExact = eachTile(0, track.id, view.begin, view.span, shift, (tile, start, length) => {
    for (let bin = 0; bin < tile.length; bin++) {
      const isSingle = tile.count[bin] === 1;
      const x = (start + tile.position[bin] * length + (isSingle ? tile.offset[bin] : 0)) * scale;
      context.fillRect(Math.floor(x), top + row.height - 6, isSingle ? 1 : Math.max(1, length * scale), 4);
    }
    drawn.bins += tile.length;
  });
  drawn.missing ||= !isExact;
}

/** Marks where the search has found something. */
function drawHits(/** @type {CanvasRenderingContext2D} */ context, /** @type {import("./state.js").Row} */ row, /** @type {number} */ top, /** @type {number} */ width, /** @type {number} */ shift) {
  const scale = width / view.span;
  context.fillStyle = colours.mark;
  eachTile(search.job, row.track?.id ?? 0, view.begin, view.span, shift, (tile, start, length) => {
    for (let bin = 0; bin < tile.length; bin++) {
      const x = (start + tile.position[bin] * length + (tile.count[bin] === 1 ? tile.offset[bin] : 0)) * scale;
      context.fillRect(Math.floor(x), top + row.height - 5, Math.max(2, length * scale), 4);
    }
  });
}

/** Losses and damage, hatched. */
function drawNotices(/** @type {CanvasRenderingContext2D} */ context, /** @type {import("./state.js").Row[]} */ visible, /** @type {number} */ width) {
  if (!scene.notices.length) return;
  context.fillStyle = hatching(context);
  for (const row of visible) {
    if (row.kind !== "track" || !row.track) continue;
    const own = scene.noticesOf.get(`${row.recording}/${row.track.name}`) ?? [];
    for (const notice of own.concat(scene.noticesOf.get(String(row.recording)) ?? [])) {
      const left = Math.max(-4, xOf(notice.begin, width));
      const right = Math.min(width + 4, xOf(notice.end, width));
      if (right < 0 || left > width) continue;
      context.fillRect(left, row.top - view.scroll + 1, Math.max(3, right - left), row.height - 3);
      drawn.hatched++;
    }
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
    const x = xOf(view.event.time, width);
    line(context, x, height, colours.text, "");
    const key = view.event.track;
    for (const row of rows) {
      if (!row.track || keyOf(row.track) !== key) continue;
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
  const { list, step, digits } = ticks(view.begin, view.span, Math.max(2, width / 130), view.zone, scene.begin);
  context.fillStyle = colours.soft;
  // The date is said once; then days are enough where they are the step.
  const isDays = step >= 86400e9 && !relative;
  for (const at of list) {
    const x = xOf(at, width);
    context.fillRect(Math.round(x), height - 8, 1, 8);
    const words = isDays ? format(at, view.zone, scene.begin, 0).slice(0, 10) : format(at, view.zone, scene.begin, digits, false);
    context.fillText(words, x + 3, height - 9);
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
  const span = Math.max(Number(scene.end - scene.begin), 1000);
  const room = span * 0.02;
  return { begin: scene.begin - BigInt(Math.round(room)), span: span + 2 * room };
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
  const wide = Math.max(2, view.span * scale);
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
