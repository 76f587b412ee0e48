// The page begins here: it asks for the scene until all is known, and draws.

import { ask, firstTiles, keepFirstTiles, outdate } from "./data.js";
import { applyRules, kept, loadKept, watchRules } from "./keep.js";
import { command, readState } from "./link.js";
import { first, source } from "./source.js";
import { ACTIONS, actions, showView, tell } from "./actions.js";
import { analyse } from "./analyses.js";
import { drawn, readColours, search } from "./canvas.js";
import { askForVisible, draw } from "./draw.js";
import { flame } from "./flame.js";
import { flows } from "./flows.js";
import { gaps } from "./fold.js";
import { lens } from "./lens.js";
import { listen, shownRows } from "./input.js";
import { applyHeight, dialogs, panels } from "./panels.js";
import { changed, fitAll, holdFrames, idle, keyOf, known, onChange, onSettled, read, scene, selected, takeScene, view } from "./state.js";

const get = (/** @type {string} */ id) => /** @type {any} */ (document.getElementById(id));
const pageNumber = Math.floor(Math.random() * 2 ** 48);

/** Shows how much is known. */
function status() {
  const element = get("status");
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
        if (hasBegun && view.follow && scene.end > end) actions.goToEnd();
        if (begins) {
          hasBegun = true;
          await begin();
        } else if (hasBegun) fitUnlessMoved();
        if (view.tab === "health" && had) panels.refresh();
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

async function begin() {
  await isKeptKnown;
  const isInSight = () => view.begin <= scene.end && view.begin + BigInt(Math.ceil(view.span)) >= scene.begin;
  if (hasAddress && (await loadView()) && isInSight()) isMoved = true;
  else {
    if (!hasAddress) applyRules();
    if (!hasAddress && !kept.rules.zone) view.zone = scene.info.relative ? "relative" : scene.info.gmt ? "utc" : "local";
    fitUnlessMoved();
  }
  showView();
  // The first frame shows events: drawn before they are there, it would hold them up.
  askForVisible();
  holdFrames(firstTiles, FIRST_PATIENCE);
  if (view.event) actions.selectEvent(view.event.track, view.event.time, 0, view.event.nth);
  document.title = `${scene.info.recordings.map((/** @type {any} */ recording) => recording.path.split("/").at(-1)).slice(0, 3).join(", ")} – kymo`;
}

/** Takes the view from the address. */
async function loadView() {
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

onChange(() => {
  draw();
  status();
});
onSettled(() => hasBegun && watchRules());
window.addEventListener("resize", () => (applyHeight(), changed()));
window.addEventListener("hashchange", async () => {
  if (await loadView()) showView();
});
window.addEventListener("kymo-theme", () => (readColours(), changed()));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => (readColours(), changed()));

get("filter").addEventListener("input", () => actions.filter(get("filter").value));
get("zone").addEventListener("change", () => actions.zone(get("zone").value));
get("palette-button").addEventListener("click", () => dialogs.palette());
get("help-button").addEventListener("click", () => dialogs.help());
get("previous").addEventListener("click", () => actions.nextHit(true));
get("search").addEventListener("submit", async (/** @type {Event} */ event) => {
  event.preventDefault();
  const [text, mode] = [get("text").value, get("mode").value];
  if (mode === "sql") return actions.sql(text.trim());
  if (text === view.search && mode === view.mode && search.job) return actions.nextHit(false);
  await actions.startSearch(text, mode);
  if (search.count) actions.nextHit(false);
});
get("text").addEventListener("input", () => {
  // As in other viewers, a colon makes it SQL.
  if (!get("text").value.startsWith(":")) return;
  get("mode").value = "sql";
  get("text").value = get("text").value.slice(1).trimStart();
});
get("text").addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
  if (event.key === "Enter" && event.shiftKey) {
    event.preventDefault();
    actions.nextHit(true);
  }
});

readColours();
listen();
if (first?.tiles) keepFirstTiles(first.tiles);
// Beside the first look at the scene.
const isKeptKnown = loadKept().catch((error) => tell(`Snapshots and notes: ${error.message}`));
poll();

const alive = () => source.isLive && ask("alive", { page: pageNumber }).catch(() => {});
setInterval(alive, 20000);
window.addEventListener("pagehide", () => {
  if (!source.isLive) return;
  // The page may be kept and shown again: then it says that it lives.
  navigator.sendBeacon("api/close", new Blob([JSON.stringify({ page: pageNumber })], { type: "application/json" }));
});
// Behind the first frame, which has no time for it.
window.addEventListener("pageshow", () => setTimeout(alive, 200));

// What tests look at.
Object.assign(window, { kymo: { view, scene, drawn, search, selected, lens, flows, flame, gaps, idle, rows: shownRows, actions, ACTIONS, keyOf, kept, command, analyse, ask } });
