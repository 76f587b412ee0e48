// What is drawn, and how it is coloured: event classes that are off, and colours by class, track, group or field.

import { sleep } from "./busy.js";
import { ask, forget } from "./data.js";
import { changed, scene, view } from "./state.js";

// Okabe and Ito's colours, which people with any colour vision tell apart, and lighter and darker ones of them.
const COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b8860b", "#56b4e9", "#7a52a3", "#8c6d31", "#3d7d8a", "#a64d4d", "#5b8c2a", "#c2477f"];
export const colour = (/** @type {number} */ number) => COLOURS[number % COLOURS.length];

const luminance = (/** @type {string} */ ink) => {
  const parts = ink.startsWith("#") ? [1, 3, 5].map((at) => parseInt(ink.slice(at, at + 2), 16)) : (ink.match(/[\d.]+/g) ?? []).map(Number);
  const [red = 0, green = 0, blue = 0] = parts.map((part) => (part / 255) ** 2.2);
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
};
/** The colour of text on a colour: what differs more. @param {string} ink */
export const textOn = (ink) => (luminance(ink) < 0.22 ? "#fff" : "#101418");

/** The colour of a name: the same in every recording. @param {string} name */
export function colourOf(name) {
  let hash = 0;
  for (let at = 0; at < name.length; at++) hash = (hash * 31 + name.charCodeAt(at)) | 0;
  return colour(Math.abs(hash));
}

/** The rows that are drawn: 0 for all; else a search. */
export const lens = { job: 0, key: "", condition: "", count: 0, done: true, cut: false, /** @type {string[]} */ values: [] };

const quoted = (/** @type {string} */ text) => `"${text.replace(/["\\]/g, "\\$&")}"`;
export const fieldOfColour = () => (view.colour.startsWith("field:") ? view.colour.slice(6) : "");

/** All names of event classes. */
export const classNames = () => [...new Set(/** @type {any[]} */ (scene.info?.recordings ?? []).flatMap((recording) => recording.classes).filter((name) => name !== null))].sort();

/** Asks for what the view shows, if that has changed. */
export async function applyLens() {
  const off = view.off.filter((name) => classNames().includes(name));
  const condition = off.length ? `not event.name in [${off.map(quoted).join(", ")}]` : "";
  const field = fieldOfColour();
  const key = condition || field ? JSON.stringify([condition, field]) : "";
  if (key === lens.key) return;
  if (lens.job) {
    forget(lens.job);
    ask("stop", { job: lens.job }).catch(() => {});
  }
  Object.assign(lens, { job: 0, key, condition, count: 0, done: true, cut: false, values: [] });
  changed();
  if (!key) return;
  try {
    const { job } = await ask("lens", { ...(condition ? { condition } : {}), ...(field ? { field } : {}) });
    if (lens.key !== key) return;
    Object.assign(lens, { job, done: false });
    for (let pause = 40; lens.job === job; pause = Math.min(1000, pause * 1.5)) {
      const found = await ask("found", { job, begin: "0", end: "1", width: 1 });
      if (lens.job !== job) return;
      if (lens.count !== found.count || found.done) forget(job);
      Object.assign(lens, { count: found.count, done: found.done, cut: found.cut, values: found.values });
      changed();
      if (found.done) return;
      await sleep(pause);
    }
  } catch (error) {
    if (lens.key !== key) return;
    Object.assign(lens, { job: 0 });
    throw error;
  }
}

/** The colour of the value of a field, by its number. @param {number} number @param {string} soft */
export const colourOfValue = (number, soft) => (number >= 62 ? soft : colour(number));

/** The colour of what a track shows. @param {import("./state.js").Track} track @param {number} kind @param {string} soft */
export function inkOf(track, kind, soft) {
  if (view.colour === "track") return colourOf(track.name.split("(")[0]);
  if (view.colour === "group") return colour(track.recording);
  if (view.colour.startsWith("field:")) return colourOfValue(lens.job ? kind : 63, soft);
  return track.kind === "sample" ? colour(0) : colour(kind + track.recording);
}

/** The colour of a slice. @param {import("./state.js").Track} track @param {string} name @param {number|null} value @param {string} soft */
export function inkOfSlice(track, name, value, soft) {
  if (view.colour === "class") return colourOf(name);
  return inkOf(track, value ?? 63, soft);
}
