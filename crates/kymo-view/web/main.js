// What the page does behind its first picture: keys, panels, searches.

import { actions } from "./act.js";
import { ACTIONS, showRest, showView } from "./actions.js";
import { analyse } from "./analyses.js";
import { drawn, search } from "./canvas.js";
import { ask } from "./data.js";
import { Embedded } from "./embedded.js";
import { applyHeight, begun, loadView, start } from "./first.js";
import { flame } from "./flame.js";
import { flows } from "./flows.js";
import { gaps } from "./fold.js";
import { kept } from "./keep.js";
import { lens } from "./lens.js";
import { command } from "./link.js";
import { listen, shownRows } from "./input.js";
import { dialogs } from "./panels.js";
import { source, useSource } from "./source.js";
import { changed, idle, keyOf, scene, selected, view } from "./state.js";

const get = (/** @type {string} */ id) => /** @type {any} */ (document.getElementById(id));
const pageNumber = Math.floor(Math.random() * 2 ** 48);

window.addEventListener("resize", () => (applyHeight(), changed()));
window.addEventListener("hashchange", async () => {
  if (await loadView()) showView();
});

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

listen();
begun.then(() => {
  showRest();
  if (view.event) actions.selectEvent(view.event.track, view.event.time, 0, view.event.nth);
});
const embedded = get("embedded");
if (embedded) useSource(new Embedded(JSON.parse(embedded.textContent)));
start();

const alive = () => source.isLive && ask("alive", { page: pageNumber }).catch(() => {});
setInterval(alive, 20000);
window.addEventListener("pagehide", () => {
  if (!source.isLive) return;
  // The page may be kept and shown again: then it says that it lives.
  navigator.sendBeacon("api/close", new Blob([JSON.stringify({ page: pageNumber })], { type: "application/json" }));
});
// Behind the first frame, which has no time for it.
const soonAlive = () => setTimeout(alive, 200);
window.addEventListener("pageshow", soonAlive);
if (document.readyState === "complete") soonAlive();

// What tests look at.
Object.assign(window, { kymo: { view, scene, drawn, search, selected, lens, flows, flame, gaps, idle, rows: shownRows, actions, ACTIONS, keyOf, kept, command, analyse, ask } });
