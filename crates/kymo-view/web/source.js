// Where what is shown comes from: the server, or the page itself if it was written by `kymo view --export`.

import { counted } from "./busy.js";
import { decode } from "./wire.js";

/**
 * `shift` is the finest resolution that there is, `isLive` whether what is known may change; `save` converts a range.
 * @typedef {{ask: (name: string, request: any) => Promise<any>, tiles: (request: any) => Promise<import("./wire.js").Tiles>, save: (request: any) => Promise<Blob>,
 *   shift: number, isLive: boolean}} Source
 */

/** @param {string} name @param {any} request */
async function post(name, request) {
  const answer = await fetch(`api/${name}`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(request),
  });
  if (!answer.ok && answer.status !== 422) throw new Error(`the server answers ${answer.status}`);
  return answer;
}

/** @param {string} name @param {any} request */
async function json(name, request) {
  const answer = await (await post(name, request)).json();
  if (answer.error) throw new Error(answer.error);
  return answer;
}

/** @template T @param {string} name @param {any} request @param {(answer: Response) => Promise<T>} read */
async function binary(name, request, read) {
  const answer = await post(name, request);
  if (!answer.ok) throw new Error((await answer.json()).error);
  return read(answer);
}

/** What is asked for again and again. */
const ALWAYS = ["scene", "alive"];

/** @type {Source} */
const server = {
  shift: 0,
  isLive: true,
  ask: (name, request) => (ALWAYS.includes(name) ? json(name, request) : counted(json(name, request))),
  save: (request) => counted(binary("save", request, (answer) => answer.blob())),
  tiles: (request) => counted(binary("tiles", request, async (answer) => decode(await answer.arrayBuffer()))),
};

/** @type {Source} */
export let source = server;
/** Takes what is shown from elsewhere. @param {Source} other */
export const useSource = (other) => (source = other);

/** What the page of a server brings along, so that it need not ask for it: the scene, what is kept, and tiles. @type {{scene: any, keep: any, tiles: any}|null} */
export let first = null;

/** Reads what the page has brought along. */
export function readFirst() {
  const element = document.getElementById("first");
  if (!element) return;
  const text = element.textContent ?? "";
  // It may be long, and is read once.
  element.remove();
  first = JSON.parse(text);
}
