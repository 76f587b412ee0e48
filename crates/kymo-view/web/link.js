// Views as text that opens them again: `kymo view PATHS --at STATE`. The recordings are named by their fingerprints.

import { ask } from "./data.js";
import { read, scene, write } from "./state.js";

const MOST = 48 << 10;

/** Recordings that a view names; of more, those behind keep their positions. */
const MOST_NAMED = 500;

/** @returns {Promise<string[]>} */
const fingerprints = async () => (await ask("fingerprints", {})).fingerprints.slice(0, MOST_NAMED);

/** The view, with the recordings that it is of. Never the address of this server. */
export async function stateText() {
  const recordings = (await fingerprints()).map((fingerprint, at) => ({ name: scene.info.recordings[at]?.path.split("/").at(-1), fingerprint }));
  const bytes = new TextEncoder().encode(JSON.stringify({ version: 1, view: write(), recordings }));
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/** The recordings as a shell takes them. */
const paths = () => {
  const quoted = (/** @type {string} */ path) => (/^[\w./@%+=:,-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`);
  return scene.info.recordings.map((/** @type {any} */ of) => quoted(of.path)).join(" ");
};

/** The command that opens this view. */
export const command = async () => `kymo view ${paths()} --at ${await stateText()}`;

/** The command that converts a range. @param {string} format @param {bigint} begin @param {bigint} end @param {string} output */
export function convertCommand(format, begin, end, output) {
  const time = (/** @type {bigint} */ of) => {
    const digits = String(of < 0n ? -of : of).padStart(10, "0");
    return `${of < 0n ? "-" : ""}${digits.slice(0, -9)}.${digits.slice(-9)}`;
  };
  return `kymo convert --to ${format} --begin=${time(begin)} --end=${time(end)} --output ${output} ${paths()}`;
}

/**
 * Takes a view that `stateText` has made, and returns the names of recordings that are not those of the view; `null` if it
 * cannot be read. Recordings may stand in another order.
 * @param {string} text @returns {Promise<string[]|null>}
 */
export async function readState(text) {
  if (text.length > MOST * 2) return null;
  let state;
  try {
    const bytes = Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (char) => char.charCodeAt(0));
    state = JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    return null;
  }
  if (typeof state?.view !== "string" || !Array.isArray(state.recordings)) return null;
  const here = await fingerprints();
  /** @type {string[]} */ const others = [];
  const places = state.recordings.map((/** @type {any} */ of, /** @type {number} */ at) => {
    const place = here[at] === of?.fingerprint ? at : here.indexOf(of?.fingerprint);
    if (place >= 0) return place;
    others.push(String(of?.name ?? "?"));
    return at;
  });
  // Keys of tracks and groups begin with the number of their recording.
  const moved = (/** @type {string} */ key) => key.replace(/^(pin:)?(g?)(\d+)/, (_, pin = "", group, number) => `${pin}${group}${places[Number(number)] ?? number}`);
  const walk = (/** @type {any} */ of) => {
    for (const name of ["pinned", "raised", "buried"]) if (Array.isArray(of[name])) of[name] = of[name].filter((/** @type {any} */ key) => typeof key === "string").map(moved);
    for (const name of ["folded", "hidden"]) if (Array.isArray(of[name]?.s)) of[name].s = of[name].s.filter((/** @type {any} */ key) => typeof key === "string").map(moved);
    if (typeof of.event?.track === "string") of.event.track = moved(of.event.track);
    return of;
  };
  try {
    const inner = JSON.parse(state.view);
    return inner && typeof inner === "object" && read(JSON.stringify(walk(inner))) ? others : null;
  } catch {
    return null;
  }
}
