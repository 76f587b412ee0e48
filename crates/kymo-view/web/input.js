// Keyboard, mouse and touch.

import { actions } from "./act.js";
import { ACTIONS } from "./actions.js";
import { canvas, framesOf, overview, pointer, ruler, timeAt, xOf } from "./canvas.js";
import { visibleRows } from "./draw.js";
import { overviewRange } from "./ruler.js";
import { ask, slicesOf } from "./data.js";
import { later, lengthOf } from "./fold.js";
import { changed, fitAll, keyOf, remember, rows, scene, setScroll, setView, titleOf, view } from "./state.js";
import { applyHeight } from "./first.js";
import { panels } from "./panels.js";
import { duration, format } from "./time.js";

const hover = /** @type {HTMLElement} */ (document.getElementById("hover"));

/** The name of a key with what is held. @param {KeyboardEvent} event */
function keyName(event) {
  const ctrl = event.ctrlKey || event.metaKey ? "Ctrl+" : "";
  const key = event.key === " " ? "Space" : event.key;
  const isSign = key.length === 1 && key.toLowerCase() === key.toUpperCase();
  const shift = event.shiftKey && !isSign ? "Shift+" : "";
  return ctrl + shift + (key.length === 1 && !event.shiftKey ? key.toLowerCase() : key);
}

const isTyping = (/** @type {EventTarget|null} */ target) =>
  target instanceof HTMLInputElement || target instanceof HTMLSelectElement || target instanceof HTMLTextAreaElement;

export function listen() {
  window.addEventListener("keydown", (event) => {
    const name = keyName(event);
    const dialog = /** @type {HTMLDialogElement} */ (document.getElementById("dialog"));
    if (dialog.open || event.altKey) return;
    if (isTyping(event.target)) {
      if (event.key === "Escape") canvas.focus();
      if (!name.startsWith("Ctrl+") || name === "Ctrl+z" || name === "Ctrl+y") return;
    }
    // Buttons, tabs and panels have keys of their own.
    const isOwn = event.target instanceof Element && event.target.closest("button, [role=tablist], #panel, #divider");
    if (isOwn && ["Enter", "Space", "ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight", "PageUp", "PageDown", "Home", "End"].includes(name)) return;
    const action = ACTIONS.find((action) => (view.g2 && action.g2 ? action.g2 : action.keys).includes(name));
    if (!action) return;
    event.preventDefault();
    hover.hidden = true;
    action.run();
  });
  canvas.addEventListener("wheel", wheel, { passive: false });
  ruler.addEventListener("wheel", wheel, { passive: false });
  document.getElementById("labels")?.addEventListener("wheel", wheel, { passive: false });
  listenTracks();
  listenOverview();
  ruler.addEventListener("dblclick", fitAll);
  drag(ruler, (from) => {
    const begin = timeAt(from.x);
    return (to) => actions.area(begin, timeAt(to.x));
  });
  const divider = /** @type {HTMLElement} */ (document.getElementById("divider"));
  drag(divider, (from) => {
    const height = view.panel;
    return (to) => {
      view.panel = Math.max(0, height - (to.pageY - from.pageY));
      applyHeight();
      remember();
      changed();
    };
  });
  divider.addEventListener("keydown", (event) => {
    if (event.key !== "ArrowUp" && event.key !== "ArrowDown") return;
    view.panel = Math.max(0, view.panel + (event.key === "ArrowUp" ? 40 : -40));
    applyHeight();
    remember();
    changed();
  });
  const tabs = [...document.querySelectorAll("[role=tab]")];
  tabs.forEach((tab, at) => {
    tab.addEventListener("click", () => panels.show(tab.id.slice(4)));
    tab.addEventListener("keydown", (event) => {
      const key = /** @type {KeyboardEvent} */ (event).key;
      const step = key === "ArrowRight" ? 1 : key === "ArrowLeft" ? -1 : 0;
      if (!step) return;
      const next = /** @type {HTMLElement} */ (tabs[(at + step + tabs.length) % tabs.length]);
      panels.show(next.id.slice(4));
      next.focus();
    });
  });
}

/** @param {WheelEvent} event */
function wheel(event) {
  event.preventDefault();
  const lines = event.deltaMode === 1 ? 16 : event.deltaMode === 2 ? 300 : 1;
  const [x, y] = [event.deltaX * lines, event.deltaY * lines];
  if (event.ctrlKey || event.metaKey) {
    const at = event.target === canvas || event.target === ruler ? event.offsetX : canvas.clientWidth / 2;
    actions.zoom(1.0018 ** Math.max(-400, Math.min(400, y)), at);
  } else if (event.shiftKey || Math.abs(x) > Math.abs(y)) actions.pan((event.shiftKey && !x ? y : x) / canvas.clientWidth);
  else setScroll(view.scroll + y, canvas.clientHeight);
}

/** @typedef {{x: number, y: number, pageY: number}} Point */
/**
 * Follows a pointer from where it goes down. @param {HTMLElement} element
 * @param {(from: Point, event: PointerEvent) => ((to: Point) => void)|null} begin
 */
function drag(element, begin) {
  element.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    const point = (/** @type {PointerEvent} */ event) => ({ x: event.clientX - element.getBoundingClientRect().left, y: event.clientY - element.getBoundingClientRect().top, pageY: event.clientY });
    const move = begin(point(event), event);
    if (!move) return;
    element.setPointerCapture(event.pointerId);
    let isMoved = false;
    const follow = (/** @type {PointerEvent} */ moved) => {
      isMoved ||= Math.hypot(moved.clientX - event.clientX, moved.clientY - event.clientY) > 3;
      if (isMoved) move(point(moved));
    };
    element.addEventListener("pointermove", follow);
    const end = () => element.removeEventListener("pointermove", follow);
    element.addEventListener("pointerup", end, { once: true });
    element.addEventListener("pointercancel", end, { once: true });
  });
}

function listenOverview() {
  const to = (/** @type {Point} */ at) => {
    const all = overviewRange();
    const middle = all.begin + BigInt(Math.round((at.x / overview.clientWidth) * all.span));
    setView(later(middle, -view.span / 2), view.span);
  };
  drag(overview, (from) => {
    to(from);
    return to;
  });
  overview.addEventListener("dblclick", fitAll);
}

/** The row at a height. @param {number} y */
const rowAt = (y) => visibleRows(canvas.clientHeight).find((row) => row.top - view.scroll <= y && y < row.top + row.height - view.scroll);

function listenTracks() {
  /** @type {Map<number, {x: number, y: number}>} */
  const fingers = new Map();
  /** @type {{kind: string, x: number, y: number, moved: boolean, begin: bigint, view: bigint, scroll: number}|null} */
  let held = null;
  canvas.addEventListener("contextmenu", (event) => event.preventDefault());
  canvas.addEventListener("pointerdown", (event) => {
    canvas.focus();
    canvas.setPointerCapture(event.pointerId);
    fingers.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
    hover.hidden = true;
    const isPan = event.button === 1 || event.shiftKey || event.pointerType === "touch";
    const kind = event.button === 2 ? "zoom" : isPan ? "pan" : "area";
    held = { kind, x: event.offsetX, y: event.offsetY, moved: false, begin: timeAt(event.offsetX), view: view.begin, scroll: view.scroll };
    if (event.button === 1) event.preventDefault();
  });
  canvas.addEventListener("pointermove", (event) => {
    const { offsetX: x, offsetY: y } = event;
    const before = fingers.get(event.pointerId);
    if (before && fingers.size === 2) {
      const other = [...fingers.entries()].find(([id]) => id !== event.pointerId)?.[1] ?? before;
      const from = Math.max(8, Math.abs(before.x - other.x));
      const to = Math.max(8, Math.abs(x - other.x));
      actions.zoom(from / to, (x + other.x) / 2);
      actions.pan(-(x - before.x) / 2 / canvas.clientWidth);
      fingers.set(event.pointerId, { x, y });
      if (held) held.kind = "pinch";
      return;
    }
    if (before) fingers.set(event.pointerId, { x, y });
    pointer.x = event.pointerType === "touch" ? -1 : x;
    pointer.y = y;
    if (held) {
      held.moved ||= Math.hypot(x - held.x, y - held.y) > 4;
      if (held.moved) dragTo(held, x, y);
    } else tip(event);
    changed();
  });
  const end = (/** @type {PointerEvent} */ event) => {
    fingers.delete(event.pointerId);
    const was = held;
    held = null;
    if (!was) return;
    if (was.kind === "zoom" && pointer.zoom) {
      const { from, to } = pointer.zoom;
      pointer.zoom = null;
      const begin = timeAt(Math.min(from, to));
      if (Math.abs(to - from) > 3) setView(begin, lengthOf(begin, timeAt(Math.max(from, to))));
    } else if (was.kind === "area" && was.moved) panels.area();
    else if (!was.moved && event.type === "pointerup" && event.button === 0) click(event);
    changed();
  };
  canvas.addEventListener("pointerup", end);
  canvas.addEventListener("pointercancel", end);
  canvas.addEventListener("pointerleave", () => {
    pointer.x = -1;
    hover.hidden = true;
    changed();
  });
  canvas.addEventListener("dblclick", (event) => {
    const slice = sliceAt(event.offsetX, event.offsetY);
    if (slice) setView(slice.begin + slice.shift - BigInt(Math.round(slice.length * 0.1)), Math.max(20, slice.length * 1.2));
    else actions.zoom(1 / 4, event.offsetX);
  });
}

function dragTo(/** @type {any} */ held, /** @type {number} */ x, /** @type {number} */ y) {
  if (held.kind === "pan") {
    setView(later(held.view, -((x - held.x) / canvas.clientWidth) * view.span), view.span);
    setScroll(held.scroll - (y - held.y), canvas.clientHeight);
  } else if (held.kind === "zoom") pointer.zoom = { from: held.x, to: x };
  else if (held.kind === "area") {
    const end = timeAt(Math.min(Math.max(x, 0), canvas.clientWidth));
    view.area = held.begin < end ? { begin: held.begin, end } : { begin: end, end: held.begin };
    remember();
  }
}

/** The slice at a place. @param {number} x @param {number} y */
function sliceAt(x, y) {
  const row = rowAt(y);
  if (!row?.track?.depths) return null;
  const depth = Math.floor((y - (row.top - view.scroll) - 3) / (16 * Math.max(1, view.scale)));
  const frame = framesOf(row.shift, canvas.clientWidth).find((frame) => x < frame.right);
  if (!frame) return null;
  const slices = slicesOf(frame.id);
  const time = Number(timeAt(x) - row.shift - slices.begin);
  const slack = 2 / frame.scale;
  const own = (slices.tracks.get(row.track.id) ?? []).filter((slice) => slice[0] === depth && slice[1] - slack <= time && time <= slice[1] + slice[2] + slack);
  const found = own.sort((a, b) => a[2] - b[2])[0];
  return found ? { begin: slices.begin + BigInt(found[1]), length: found[2], name: String(slices.names[found[3]] ?? ""), count: found[4], track: row.track, shift: row.shift } : null;
}

/** @param {PointerEvent} event */
function click(event) {
  const row = rowAt(event.offsetY);
  if (!row) return;
  if (row.kind === "group") return actions.label(row.key, event);
  actions.select(row.key);
  if (!row.track) return;
  const slice = sliceAt(event.offsetX, event.offsetY);
  if (slice) return actions.selectEvent(keyOf(row.track), slice.begin);
  nearest(row, event.offsetX);
}

/** Selects the event that is nearest to a place. */
async function nearest(/** @type {import("./state.js").Row} */ row, /** @type {number} */ x) {
  const track = /** @type {import("./state.js").Track} */ (row.track);
  const time = timeAt(x) - row.shift;
  const [after, before] = await Promise.all([ask("event", { track: track.id, time: String(time), step: 0 }), ask("event", { track: track.id, time: String(time), step: -1 })]);
  const distance = (/** @type {any} */ hit) => (hit.event ? Math.abs(xOf(BigInt(hit.event.time) + row.shift) - x) : Infinity);
  const best = distance(after) <= distance(before) ? after : before;
  if (distance(best) > 12) return;
  actions.selectEvent(keyOf(track), BigInt(best.event.time), 0, best.nth);
}

/** Shows what the mouse is over. @param {PointerEvent} event */
function tip(event) {
  const row = rowAt(event.offsetY);
  const slice = sliceAt(event.offsetX, event.offsetY);
  const notice = row?.track && scene.notices.find((notice) => notice.recording === row.recording && xOf(notice.begin + row.shift) - 3 <= event.offsetX && event.offsetX <= xOf(notice.end + row.shift) + 3);
  let words = "";
  if (slice) words = `${slice.count > 1 ? `${slice.count} × ` : ""}${slice.name}\n${duration(slice.length)} from ${format(slice.begin, view.zone, scene.begin)}`;
  else if (notice) words = notice.text;
  else if (row?.track) words = `${titleOf(row)}${row.track.estimate ? "\n(estimated from the sizes of packets)" : ""}`;
  hover.hidden = !words;
  if (!words) return;
  hover.textContent = words;
  hover.style.left = `${Math.min(event.clientX + 14, window.innerWidth - hover.offsetWidth - 8)}px`;
  hover.style.top = `${Math.min(event.clientY + 18, window.innerHeight - hover.offsetHeight - 8)}px`;
}

/** The rows, for tests. */
export const shownRows = () => rows;
