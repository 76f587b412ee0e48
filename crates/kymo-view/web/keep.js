// What stays of a view: snapshots, notes, and how tracks are arranged. The server keeps it for these recordings.

import { Delayed } from "./busy.js";
import { ask } from "./data.js";
import { first } from "./source.js";
import { changed, read, view, write } from "./state.js";

/**
 * @typedef {{name: string, view: string}} Snapshot
 * @typedef {{time: string, text: string}} Note
 */
export const kept = {
  /** @type {Snapshot[]} */ snapshots: [],
  /** @type {Note[]} */ notes: [],
  /** @type {Record<string, any>} */ rules: {},
  /** @type {string|null} */ path: null,
};

const MOST_KEPT = 500;
let version = 0;

/** @param {any} answer */
function take(answer) {
  version = answer.version;
  if (answer.path !== undefined) kept.path = answer.path;
  const own = answer.kept ?? {};
  const list = (/** @type {any} */ value) => (Array.isArray(value) ? value : []);
  kept.snapshots = list(own.snapshots).filter((snapshot) => typeof snapshot?.name === "string" && typeof snapshot?.view === "string").slice(-MOST_KEPT);
  kept.notes = list(own.notes).filter((note) => typeof note?.text === "string" && /^-?\d{1,19}$/.test(note?.time)).slice(-MOST_KEPT);
  kept.rules = own.rules && typeof own.rules === "object" ? own.rules : {};
}

/** Looks what is kept. */
export async function loadKept() {
  take(first?.keep ?? (await ask("keep", {})));
  changed();
}

let saving = Promise.resolve();
/** Changes what is kept: after what another page has saved, if it has. @param {() => void} change */
export function keep(change) {
  const save = async () => {
    for (let attempt = 0; attempt < 4; attempt++) {
      change();
      const answer = await ask("keep", { version, save: { snapshots: kept.snapshots, notes: kept.notes, rules: kept.rules } });
      take(answer.is_old ? answer : { ...answer, path: kept.path });
      if (!answer.is_old) break;
    }
    changed();
  };
  const next = saving.then(save);
  saving = next.catch(() => {});
  return next;
}

/** What is arranged once for some recordings: it is there again the next time. */
const RULES = /** @type {const} */ (["pinned", "raised", "buried", "hidden", "scale", "zone", "theme", "g2"]);
const rules = () => {
  const all = JSON.parse(write());
  return Object.fromEntries(Object.entries(all).filter(([key]) => /** @type {readonly string[]} */ (RULES).includes(key) || key.startsWith("colour")));
};
let last = "";

/** Takes the arrangement of tracks that was kept, for a view that is to be shown. */
export function applyRules() {
  if (Object.keys(kept.rules).length) read(JSON.stringify(kept.rules));
  last = JSON.stringify(rules());
}

const keeping = new Delayed(1000, () => keep(() => (kept.rules = rules())).catch(() => {}));
/** Keeps the arrangement if it has changed. */
export function watchRules() {
  const now = JSON.stringify(rules());
  if (now === last || !last) return;
  last = now;
  keeping.ask();
}

/** Where a note of a time lies among all. @param {bigint} time @param {string} text */
export const addNote = (time, text) => keep(() => {
  kept.notes = [...kept.notes.filter((note) => note.time !== String(time)), { time: String(time), text: text.slice(0, 1000) }]
    .sort((a, b) => (BigInt(a.time) < BigInt(b.time) ? -1 : 1))
    .slice(0, MOST_KEPT);
});

/** Keeps the view. @param {string} name */
export const addSnapshot = (name) => {
  const text = write();
  return keep(() => (kept.snapshots = [...kept.snapshots, { name: name.slice(0, 200), view: text }].slice(-MOST_KEPT)));
};

