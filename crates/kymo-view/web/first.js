// The page begins here: it asks for the scene until all is known, and draws. What else it does comes behind the first picture
// (`main.js`): a browser reads less before it draws.

import { actions, tell } from "./act.js";
import { canvas, drawn, readColours } from "./canvas.js";
import { ask, firstTiles, keepFirstTiles, outdate } from "./data.js";
import { askForVisible, draw } from "./draw.js";
import { applyRules, kept, loadKept, watchRules } from "./keep.js";
import { readState } from "./link.js";
import { first, readFirst, source } from "./source.js";
import { changed, fitAll, goToEnd, holdFrames, known, layOut, onChange, onSettled, read, scene, setScroll, setView, takeScene, view } from "./state.js";

const elementById = (/** @type {string} */ id) => /** @type {any} */ (document.getElementById(id));

/** Shows how much is known. */
function status() {
  const element = elementById("status");
  if (Number(element.dataset.until ?? 0) > Date.now()) return;
  const info = scene.info;
  let words = "";
  if (scene.is_lost) words = "The server does not answer: what is shown stays";
  else if (info && !info.recordings.length) words = "Waiting for recordings";
  else if (info && !scene.whole) words = `estimate: ${Math.floor((100 * info.bytes_read) / Math.max(1, info.bytes))} % read`;
  else if (info?.filtered) words = `${info.filtered.rows.toLocaleString("en-US")} rows of the filter${info.filtered.cut ? ` (the limit: narrow it)` : ""}`;
  else if (info?.slices_cut) words = "too many slices: some are left out";
  if (element.textContent !== words) element.textContent = words;
}

async function poll() {
  let pause = 100;
  for (let isFirst = true; ; isFirst = false) {
    try {
      const info = (isFirst && first?.scene) || (await ask("scene", known()));
      const wasLost = scene.is_lost;
      scene.is_lost = false;
      if (info.same) Object.assign(scene.info, { filtered: info.filtered, bytes_read: info.bytes_read, settled: info.settled });
      else {
        // Until there is a recording, the page waits.
        const begins = !hasBegun && info.recordings.count > 0;
        const had = scene.tracks.some((track) => track.rows);
        const end = scene.end;
        takeScene(info, begins);
        if (hasBegun && scene.epoch !== (info.epoch ?? 0)) {
          // Of those between that were missed, it is not known what they changed.
          const isNext = info.epoch === scene.epoch + 1 && info.changed !== null;
          outdate(isNext ? BigInt(info.changed) : -(2n ** 63n));
        }
        scene.epoch = info.epoch ?? 0;
        if (hasBegun && view.follow && scene.end > end) goToEnd();
        if (begins) {
          hasBegun = true;
          await begin();
        } else if (hasBegun) fitUnlessMoved();
        if (view.tab === "health" && had) actions.refreshPanels?.();
        pause = 100;
      }
      if (wasLost) tell("The server answers again");
      if (!source.isLive) {
        status();
        return changed();
      }
      pause = info.settled && info.same ? (scene.info.live ? 500 : 5000) : Math.min(pause * 1.3, 1500);
    } catch {
      scene.is_lost = true;
      pause = 3000;
    }
    status();
    changed();
    await new Promise((done) => setTimeout(done, pause));
  }
}

/** How long the first frame waits for the first tiles, in milliseconds. */
const FIRST_PATIENCE = 60;

/** Whether there is something to show. */
let hasBegun = false;
/** Whether the page was opened with a view in its address, where the page itself keeps the view later. */
const hasAddress = location.hash.length > 1;
let isMoved = false;
let fitted = "";
/** Shows all as more becomes known, until somebody moves. */
function fitUnlessMoved() {
  // Streams may be there before their first event.
  if (!scene.tracks.some((track) => track.rows)) return;
  if (fitted && fitted !== `${view.begin} ${view.span}`) isMoved = true;
  if (isMoved) return;
  fitAll();
  fitted = `${view.begin} ${view.span}`;
}

/** @type {() => void} */
let somethingIsShown = () => {};
/** Resolved when the view is known and laid out. @type {Promise<void>} */
export const begun = new Promise((done) => (somethingIsShown = done));

async function begin() {
  await isKeptKnown;
  const isInSight = () => view.begin <= scene.end && view.begin + BigInt(Math.ceil(view.span)) >= scene.begin;
  if (hasAddress && (await loadView()) && isInSight()) isMoved = true;
  else {
    if (!hasAddress) applyRules();
    if (!hasAddress && !kept.rules.zone) view.zone = scene.info.relative ? "relative" : scene.info.gmt ? "utc" : "local";
    fitUnlessMoved();
  }
  arrange();
  // The first frame shows events: drawn before they are there, it would hold them up.
  askForVisible();
  holdFrames(firstTiles, FIRST_PATIENCE);
  document.title = `${scene.info.recordings.map((/** @type {any} */ recording) => recording.path.split("/").at(-1)).slice(0, 3).join(", ")} – kymo`;
  somethingIsShown();
}

/** Lays the view out. */
export function arrange() {
  applyTheme();
  applyHeight();
  elementById("zone").value = view.zone;
  elementById("filter").value = view.filter;
  elementById("text").value = view.search;
  elementById("mode").value = view.mode;
  layOut();
  setView(view.begin, view.span);
  setScroll(view.scroll, canvas.clientHeight);
}

/** Shows the theme of the view. */
export function applyTheme() {
  if (view.theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = view.theme;
  window.dispatchEvent(new Event("kymo-theme"));
}

export function applyHeight() {
  const section = /** @type {HTMLElement} */ (document.getElementById("panels"));
  const height = Math.min(view.panel, Math.max(0, window.innerHeight - 260));
  section.style.height = `${Math.max(0, height)}px`;
  document.getElementById("divider")?.setAttribute("aria-valuenow", String(Math.round(Math.max(0, height))));
  section.hidden = height < 40;
  section.style.display = height < 40 ? "none" : "";
}

/** Takes the view from the address. */
export async function loadView() {
  const hash = location.hash.slice(1);
  try {
    if (!hash.startsWith("at=")) return read(decodeURIComponent(hash));
    const others = await readState(hash.slice(3));
    if (others === null) tell("The view of the address cannot be read");
    else if (others.length) tell(`The view is of other recordings: ${others.join(", ")}`);
    return others !== null;
  } catch {
    return false;
  }
}

let isFirstFrame = true;
/** @type {() => void} */
let isDrawn = () => {};
/** Resolved behind the first frame with events. @type {Promise<void>} */
const firstFrame = new Promise((done) => (isDrawn = done));

onChange(() => {
  draw();
  status();
  if (!isFirstFrame || !drawn.bins) return;
  isFirstFrame = false;
  // What the bench looks for.
  performance.mark("drawn");
  requestAnimationFrame(() => isDrawn());
});
onSettled(() => hasBegun && watchRules());
window.addEventListener("kymo-theme", () => (readColours(), changed()));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => (readColours(), changed()));
readColours();

/** How long the rest of the page waits for the first frame, in milliseconds: a page that is hidden draws none. */
const REST_PATIENCE = 1000;

/** @type {Promise<void>} */
let isKeptKnown;
let isStarted = false;
/** Begins, and loads the rest of the page behind the first picture, if the page has brought along what that shows. @param {() => Promise<unknown>} [rest] */
export function start(rest) {
  if (isStarted) return;
  isStarted = true;
  readFirst();
  if (first?.tiles) keepFirstTiles(first.tiles);
  // Beside the first look at the scene.
  isKeptKnown = loadKept().catch((error) => tell(`Snapshots and notes: ${error.message}`));
  poll();
  if (!rest) return;
  const patience = new Promise((done) => setTimeout(done, REST_PATIENCE));
  const isTime = first?.tiles ? Promise.race([firstFrame, patience]) : Promise.resolve();
  isTime.then(rest).catch((error) => tell(`The page is not complete: reload it (${error.message})`));
}
