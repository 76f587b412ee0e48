// Views as text that opens them again: `kymo view PATHS --at STATE`. The recordings are named by their fingerprints.

import { ask } from "./data.js";
import { seconds, shellWord } from "./shell.js";
import { read, scene, write } from "./state.js";

const MOST_STATE = 48 << 10;

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

/** The words of a command, as a shell takes them. @param {string[]} words */
const commandLine = (words) => words.map(shellWord).join(" ");

/** What commands on what is shown need: options of the command that has started the page, and the paths. */
const given = () => ask("command", {});

/** The command that opens this view. */
export async function command() {
  const { input, symbols, selection, paths } = await given();
  const at = ["--at", await stateText()];
  const options = [...input, ...selection, ...symbols];
  return `kymo view ${commandLine(behind(paths) === paths ? [...options, ...paths, ...at] : [...options, ...at, ...behind(paths)])}`;
}

/** Paths behind options: a sign divides them if one looks like an option. @param {string[]} paths */
const behind = (paths) => (paths.some((path) => path.startsWith("-")) ? ["--", ...paths] : paths);

/** The command that prints the events of a recording at a time. @param {string} path @param {string} time */
export async function printCommand(path, time) {
  const { input, symbols, paths } = await given();
  // What places recordings names others of them.
  const own = input.some((/** @type {string} */ word) => /^--(offset|align)/.test(word)) ? paths : [path];
  const words = [`--begin=${time}`, `--end=${time}`, "--format=json", ...input, ...symbols];
  return `kymo print ${commandLine([...words, ...behind(own)])}`;
}

/** The command that converts a range. @param {string} format @param {bigint} begin @param {bigint} end @param {string} output */
export async function convertCommand(format, begin, end, output) {
  const { input, selection, paths } = await given();
  const words = [`--to=${format}`, `--begin=${seconds(begin)}`, `--end=${seconds(end)}`, `--output=${output}`, ...input, ...selection];
  return `kymo convert ${commandLine([...words, ...behind(paths)])}`;
}

/**
 * Takes a view that `stateText` has made, and returns the names of recordings that are not those of the view; `null` if it
 * cannot be read. Recordings may stand in another order.
 * @param {string} text @returns {Promise<string[]|null>}
 */
export async function readState(text) {
  if (text.length > MOST_STATE * 2) return null;
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
  const places = state.recordings.map((/** @type {any} */ recording, /** @type {number} */ at) => {
    const place = here[at] === recording?.fingerprint ? at : here.indexOf(recording?.fingerprint);
    if (place >= 0) return place;
    others.push(String(recording?.name ?? "?"));
    return at;
  });
  // Keys of tracks and groups begin with the number of their recording.
  const moved = (/** @type {string} */ key) => key.replace(/^(pin:)?(g?)(\d+)/, (_, pin = "", group, number) => `${pin}${group}${places[Number(number)] ?? number}`);
  const walk = (/** @type {any} */ state) => {
    for (const name of ["pinned", "raised", "buried"]) if (Array.isArray(state[name])) state[name] = state[name].filter((/** @type {any} */ key) => typeof key === "string").map(moved);
    for (const name of ["folded", "hidden"]) if (Array.isArray(state[name]?.s)) state[name].s = state[name].s.filter((/** @type {any} */ key) => typeof key === "string").map(moved);
    if (typeof state.event?.track === "string") state.event.track = moved(state.event.track);
    return state;
  };
  try {
    const inner = JSON.parse(state.view);
    return inner && typeof inner === "object" && read(JSON.stringify(walk(inner))) ? others : null;
  } catch {
    return null;
  }
}
