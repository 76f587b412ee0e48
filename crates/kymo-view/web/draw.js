// Drawing the tracks: events, slices, losses, hits, and what is selected.

import { canvas, colours, drawn, eachTile, framesOf, hatching, note, pointer, prepare, search, setTargets, shiftOf, text, tileRange, xOf } from "./canvas.js";
import { MOST_FEW, fewOf, slicesOf, wantFew, wantSlices, wantTiles } from "./data.js";
import { drawFlows } from "./flows.js";
import { drawLabels } from "./labels.js";
import { inkOf, inkOfSlice, lens, textOn } from "./lens.js";
import { drawOverview, drawRuler } from "./ruler.js";
import { chosen, drawScale, drawSeries, rangeOf } from "./series.js";
import { keyOf, rows, scene, selected, view } from "./state.js";

/** @import { Frame } from "./canvas.js" */
/** @import { SvgContext } from "./svg.js" */

/** Draws into other contexts. @param {Map<HTMLCanvasElement, SvgContext>} contexts */
export function drawInto(contexts) {
  const at = { ...pointer };
  Object.assign(pointer, { x: -1, y: -1, zoom: null });
  setTargets(contexts);
  try {
    drawTracks();
    drawRuler();
    drawOverview();
  } finally {
    setTargets(null);
    Object.assign(pointer, at);
  }
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
  Object.assign(drawn, { bins: 0, slices: 0, labels: 0, hatched: 0, unknown: 0, tracks: 0, flows: 0, folds: 0, lines: 0, missing: false, scales: [] });
  const { visible, shift, frames, byShift } = askForVisible(width, height);
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
      if (scope) {
        drawScale(context, row, top, width, scope);
        drawn.scales.push([scope.low, scope.high]);
      }
    }
    context.fillStyle = colours.line;
    context.globalAlpha = 0.5;
    context.fillRect(0, top + row.height - 1, width, 1);
    context.globalAlpha = 1;
  }
  askForNames(byShift, frames);
  drawFolds(context, framesOf(0n, width), height);
  drawn.flows = drawFlows(context, width, colours);
  drawArea(context, width, height);
  if (!scene.tracks.length) {
    context.fillStyle = colours.soft;
    context.fillText(!scene.info.recordings.length ? "Nothing is there yet: recordings are shown as they appear." : scene.whole ? "The recordings have no events." : "Reading the recordings…", 12, 24);
  }
}

/** The rows in sight and their frames. What they need is asked for, unless it is there. */
export function askForVisible(width = canvas.clientWidth, height = canvas.clientHeight) {
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
  return { visible, shift, frames, byShift };
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
}

/** Asks for events one by one where those that were drawn are few enough that they may have room for their names. */
function askForNames(/** @type {Map<bigint, import("./state.js").Row[]>} */ byShift, /** @type {Map<bigint, Frame[]>} */ frames) {
  for (const [moved, list] of byShift) {
    const tracks = list.map((row) => /** @type {import("./state.js").Track} */ (row.track)).filter((track) => track.kind === "event" && !track.depths);
    const named = tracks.map((track) => track.id);
    if (named.length) for (const frame of frames.get(moved) ?? []) if (frame.events <= MOST_FEW) wantFew(frame.id, lens.condition, frame.begin, frame.span, named);
  }
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

/** The columns of pixels of a row: how high the bar of each is, and of which kind. They are reused, as frames have no time to collect garbage. */
const pixelColumns = { heights: new Uint8Array(0), kinds: new Uint16Array(0) };
/** The kind of bars of which it is not known what they are. */
const UNKNOWN = 256;
/** By kind, how many numbers of its list are those of bars now: left, height and width of each. @type {{used: number, list: number[]}[]} */
const barsByKind = [];

/** Puts a bar into columns: the highest of each is seen. */
function putBar(/** @type {number} */ left, /** @type {number} */ wide, /** @type {number} */ high, /** @type {number} */ kind, /** @type {number} */ count) {
  const { heights, kinds } = pixelColumns;
  const end = Math.min(count, left + wide);
  for (let column = Math.max(0, left); column < end; column++) {
    if (high < heights[column]) continue;
    heights[column] = high;
    kinds[column] = kind;
  }
  return end > 0 && left < count;
}

/** Makes bars of columns: neighbours that are alike are one. */
function makeBars(/** @type {number} */ count, /** @type {number} */ left) {
  const { heights, kinds } = pixelColumns;
  for (const bar of barsByKind) if (bar) bar.used = 0;
  for (let column = 0; column < count;) {
    const [high, kind, from] = [heights[column], kinds[column], column];
    while (++column < count && heights[column] === high && kinds[column] === kind);
    if (!high) continue;
    const bar = (barsByKind[kind] ??= { used: 0, list: [] });
    bar.list[bar.used++] = left + from;
    bar.list[bar.used++] = high;
    bar.list[bar.used++] = column - from;
  }
}

/** @param {CanvasRenderingContext2D} context @param {import("./state.js").Row} row @param {Frame} frame */
function drawInstants(context, row, /** @type {number} */ top, frame, /** @type {number} */ shift) {
  const track = /** @type {import("./state.js").Track} */ (row.track);
  const { scale } = frame;
  const bottom = top + row.height - 2;
  const room = Math.min(255, Math.max(2, row.height - 5));
  const left = Math.floor(frame.left);
  const count = Math.ceil(frame.right) - left + 1;
  if (pixelColumns.heights.length < count) Object.assign(pixelColumns, { heights: new Uint8Array(count), kinds: new Uint16Array(count) });
  pixelColumns.heights.fill(0, 0, count);
  const isExact = eachTile(lens.job, track.id, frame.begin, frame.span, shift, (tile, start, length) => {
    const [first, step, wide] = [frame.left - left + start * scale, length * scale, Math.max(1, Math.ceil(length * scale))];
    const isGuess = tile.estimate && !lens.job;
    for (let bin = 0; bin < tile.length; bin++) {
      const isSingle = tile.count[bin] === 1;
      const x = first + tile.position[bin] * step + (isSingle ? tile.offset[bin] * scale : 0);
      const high = Math.max(1, Math.round(room * tile.heights[bin]));
      if (putBar(Math.floor(x), isSingle ? 1 : wide, high, isGuess ? UNKNOWN : tile.kind[bin], count)) {
        drawn.bins++;
        frame.events += tile.count[bin];
      }
    }
  });
  drawn.missing ||= !isExact;
  makeBars(count, left);
  barsByKind.forEach(({ used, list }, kind) => {
    if (!used) return;
    context.fillStyle = kind === UNKNOWN ? colours.soft : inkOf(track, kind, colours.soft);
    for (let at = 0; at < used; at += 3) context.fillRect(list[at], bottom - list[at + 1], list[at + 2], list[at + 1]);
  });
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
    const ink = inkOfSlice(track, words, value ?? null, colours.soft);
    context.fillStyle = ink;
    context.fillRect(left, y, Math.max(1, right - left - (wide > 3 ? 1 : 0)), step - 2);
    if (isOpen) {
      context.fillStyle = hatching(context);
      context.fillRect(Math.max(left, right - 12), y, Math.min(12, right - left), step - 2);
    }
    if (right - left > 24) {
      context.fillStyle = textOn(ink);
      text(context, count > 1 ? `${count} × ${words}` : words, left + 3, y + step / 2 - 1, right - left - 6);
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
