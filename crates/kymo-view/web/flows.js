// Flows: arrows between events that belong together, as the recording says or since a field has the same value.

import { sleep } from "./busy.js";
import { actions, tell } from "./act.js";
import { ask } from "./data.js";
import { xOf } from "./canvas.js";
import { eventAt, orderOf } from "./moves.js";
import { changed, keyOf, rows, scene, slewOf, view } from "./state.js";

/** @typedef {[number, bigint]} Stop a track and a time */
/** The flows of the selected event. @type {{key: string, list: Stop[][], at: number, what: string}} */
export const flows = { key: "", list: [], at: 0, what: "" };

const stopsOf = (/** @type {[number, string][]} */ list) => list.map(([track, time]) => /** @type {Stop} */ ([track, BigInt(time)]));
const flowKey = () => (view.event ? `${view.event.track} ${view.event.time}` : "");

/** Whether the selected event is on the way of what is followed. */
const isOnWay = () => {
  const track = view.event && scene.byKey.get(view.event.track);
  return !!track && flows.list.some((list) => list.some(([id, time]) => id === track.id && time === view.event?.time));
};

/** Asks for the flows of the selected event, unless it is on the way already. */
export async function loadFlows() {
  const event = view.event;
  const track = event && scene.byKey.get(event.track);
  const key = flowKey();
  if (!event || !track) return clearFlows();
  if (flows.key === key || (flows.what && isOnWay())) return;
  const answer = await ask("flows", { track: track.id, time: String(event.time) }).catch(() => ({ flows: [] }));
  if (flowKey() !== key) return;
  Object.assign(flows, { key, list: answer.flows.map(stopsOf), at: 0, what: "" });
  changed();
}

export function clearFlows() {
  Object.assign(flows, { key: "", list: [], at: 0, what: "" });
}

/** The condition that a field has a value. @param {string} field @param {any} value */
export const conditionOf = (field, value) => `${field.split(".").map((part) => `\`${part.replaceAll("`", "")}\``).join(".")} == ${typeof value === "number" || typeof value === "boolean" || /^-?\d+$/.test(String(value)) && typeof value !== "string" ? value : quote(String(value))}`;
export const quote = (/** @type {string} */ text) => `"${text.replace(/["\\]/g, "\\$&")}"`;

/** Searches the events in which a field has a value, and waits until all are known. @param {string} condition */
async function find(condition) {
  const { job } = await ask("lens", { condition });
  for (let pause = 40; ; pause = Math.min(1000, pause * 1.5)) {
    const found = await ask("found", { job, begin: "0", end: "1", width: 1 });
    if (found.done) return { job, count: found.count };
    await sleep(pause);
  }
}

/** Draws arrows between the events with the same value of a field. @param {string} condition */
export async function follow(condition) {
  if (!view.event) return;
  const { job, count } = await find(condition);
  const answer = await ask("around", { job, time: String(view.event.time) });
  ask("stop", { job }).catch(() => {});
  // In the order in which they are shown.
  const at = (/** @type {Stop} */ [id, time]) => time + slewOf(/** @type {import("./state.js").Track} */ (scene.byId.get(id)));
  const stops = stopsOf(answer.stops).filter(([id]) => scene.byId.has(id)).sort((a, b) => (at(a) < at(b) ? -1 : at(a) > at(b) ? 1 : 0));
  Object.assign(flows, { key: flowKey(), list: [stops], at: 0, what: condition });
  tell(`${count.toLocaleString("en-US")} events with ${condition}: [ and ] step along them`);
  changed();
}

/** Orders tracks by when they first have a value from the selected event on. @param {string} condition */
export async function chaseBy(condition) {
  if (!view.event) return tell("Select an event first");
  const { job } = await find(condition);
  const tracks = await orderOf(job, eventAt() ?? view.event.time);
  ask("stop", { job }).catch(() => {});
  const keys = tracks.map((/** @type {number} */ id) => scene.byId.get(id)).filter((/** @type {any} */ track) => track).map((/** @type {any} */ track) => keyOf(track));
  view.raised = keys;
  view.buried = view.buried.filter((key) => !keys.includes(key));
  actions.relaid();
  tell(`${keys.length === 1 ? "1 track has" : `${keys.length} tracks in the order in which they have`} ${condition}`);
}

/** Goes to the next event of the flow, or to the one before. @param {number} way */
export async function stepFlow(way) {
  const event = view.event;
  const track = event && scene.byKey.get(event.track);
  if (!event || !track) return tell("Select an event first");
  await loadFlows();
  const list = flows.list[flows.at];
  if (!list?.length) return tell("No flow leads through this event: follow a field in Details");
  const at = list.findIndex(([id, time]) => id === track.id && time === event.time);
  const stop = list[at + way];
  if (at < 0 || !stop) return tell(way > 0 ? "The flow ends here" : "The flow begins here");
  const next = scene.byId.get(stop[0]);
  if (!next) return;
  const kept = { ...flows };
  await actions.selectEvent(keyOf(next), stop[1]);
  // The same flow goes on.
  Object.assign(flows, { ...kept, key: flowKey() });
  changed();
}

/** Chooses another of several flows. */
export function otherFlow() {
  if (flows.list.length < 2) return tell("There is one flow at most here");
  flows.at = (flows.at + 1) % flows.list.length;
  tell(`Flow ${flows.at + 1} of ${flows.list.length}`);
  changed();
}

/** Where a track is drawn: its row, or the group that it is folded in. @returns {Map<number, {y: number, shift: bigint}>} */
function places() {
  const map = new Map();
  for (const row of rows) {
    if (row.kind === "group" && row.open) continue;
    for (const track of row.tracks) {
      if (map.has(track.id)) continue;
      const y = row.top - view.scroll + (row.track?.depths ? 11 : row.height / 2);
      map.set(track.id, { y, shift: row.shift });
    }
  }
  return map;
}

/**
 * Draws the flows. Returns how many arrows are in sight.
 * @param {CanvasRenderingContext2D} context @param {number} width @param {{mark: string, soft: string}} colours
 */
export function drawFlows(context, width, colours) {
  if (!view.event || !flows.list.length) return 0;
  if (flows.key !== flowKey() && !isOnWay()) return 0;
  const where = places();
  let arrows = 0;
  flows.list.forEach((list, number) => {
    context.strokeStyle = context.fillStyle = number === flows.at ? colours.mark : colours.soft;
    context.lineWidth = number === flows.at ? 1.8 : 1.2;
    for (let at = 1; at < list.length; at++) {
      const [from, to] = [list[at - 1], list[at]];
      const [start, end] = [where.get(from[0]), where.get(to[0])];
      if (!start || !end) continue;
      const [x0, x1] = [xOf(from[1] + start.shift, width), xOf(to[1] + end.shift, width)];
      if (Math.max(x0, x1) < -50 || Math.min(x0, x1) > width + 50) continue;
      arrow(context, Math.max(-1e4, Math.min(1e4, x0)), start.y, Math.max(-1e4, Math.min(1e4, x1)), end.y);
      arrows++;
    }
  });
  return arrows;
}

/** A curve that leaves to the right and comes from the left. @param {CanvasRenderingContext2D} context */
function arrow(context, /** @type {number} */ x0, /** @type {number} */ y0, /** @type {number} */ x1, /** @type {number} */ y1) {
  const wide = x1 - x0;
  const isSteep = y0 !== y1 && Math.abs(wide) < 14;
  const down = Math.sign(y1 - y0);
  const bend = Math.max(6, Math.min(70, Math.abs(wide) / 2));
  context.beginPath();
  context.moveTo(x0, y0);
  if (isSteep) context.lineTo(x1, y1 - 6 * down);
  else if (y0 === y1) context.bezierCurveTo(x0 + bend / 2, y0 - 14, x1 - bend / 2, y1 - 14, x1, y1);
  else context.bezierCurveTo(x0 + bend, y0, x1 - bend, y1, x1 - 6, y1);
  context.stroke();
  context.beginPath();
  context.moveTo(x1, y1);
  if (isSteep) {
    context.lineTo(x1 - 4, y1 - 7 * down);
    context.lineTo(x1 + 4, y1 - 7 * down);
  } else {
    context.lineTo(x1 - 7, y1 - 4);
    context.lineTo(x1 - 7, y1 + 4);
  }
  context.closePath();
  context.fill();
}
