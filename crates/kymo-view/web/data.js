// What the server sends: tiles, slices, events. One request of a kind is on its way at a time, and the newest is next.

import { sleep } from "./busy.js";
import { source } from "./source.js";
import { changed, scene } from "./state.js";
import { TILE, VALUES, decodeText, noBins } from "./wire.js";

/** Tiles of tracks that are kept. */
const MOST_TILES = 12000;

/** Asks about the recordings; throws what is complained of. @param {string} name @param {any} request @returns {Promise<any>} */
export const ask = (name, request) => source.ask(name, request);

/**
 * `heights` are those of the bars, as parts of the room that there is.
 * @typedef {{length: number, phase: number, position: Uint16Array, count: Float64Array, kind: Uint8Array, offset: Float64Array, heights: Float32Array,
 *   known: Float64Array, values: Float64Array, estimate: boolean, generation: number, isStale?: boolean}} Tile
 */

/** By search, shift and track, then by the number of the tile. @type {Map<string, Map<number, Tile>>} */
const tiles = new Map();
let keptTiles = 0;

/** @type {() => void} */
let tilesHaveCome = () => {};
/** The first tiles. @type {Promise<void>} */
export const firstTiles = new Promise((done) => (tilesHaveCome = done));

const name = (/** @type {number} */ job, /** @type {number} */ shift, /** @type {number} */ track) => `${job}:${shift}:${track}`;

/** The tiles of a track at a resolution. */
export const tilesOf = (/** @type {number} */ job, /** @type {number} */ shift, /** @type {number} */ track) => tiles.get(name(job, shift, track));

/** The length of a tile. @param {number} shift */
export const tileLength = (shift) => BigInt(TILE) << BigInt(shift);

/** The heights of bars by their counts, as far as they differ. */
const HEIGHTS = Array.from({ length: 33 }, (_, count) => Math.min(1, 0.55 + 0.09 * Math.log2(Math.max(1, count))));
const heightOfBar = (/** @type {number} */ count) => HEIGHTS[count < 32 ? count : 32];

/** Keeps tiles that were sent. @param {import("./wire.js").Tiles} sent @param {number} job @param {number[]} asked @param {number} first @param {number} count */
export function keepTiles(sent, job, asked, first, count) {
  const missing = new Set(asked);
  const put = (/** @type {import("./wire.js").TrackBins} */ bins) => {
    const key = name(job, sent.shift, bins.track);
    let own = tiles.get(key);
    if (!own) tiles.set(key, (own = new Map()));
    let from = 0;
    for (let tile = 0; tile < count; tile++) {
      let to = from;
      const end = tile === count - 1 ? Infinity : (tile + 1) * TILE;
      while (to < bins.position.length && bins.position[to] < end) to++;
      const position = new Uint16Array(to - from);
      const heights = new Float32Array(to - from);
      for (let bin = from; bin < to; bin++) {
        position[bin - from] = bins.position[bin] % TILE;
        heights[bin - from] = heightOfBar(bins.count[bin]);
      }
      const numbers = (/** @type {import("./wire.js").Numbers} */ list, size = 1) => {
        const part = list.slice(from * size, to * size);
        return part instanceof Float64Array ? part : new Float64Array(part);
      };
      if (!own.has(first + tile)) keptTiles++;
      own.set(first + tile, {
        length: to - from, phase: bins.phase, position, heights, kind: new Uint8Array(bins.kind.slice(from, to)), count: numbers(bins.count),
        offset: numbers(bins.offset), known: numbers(bins.known), values: numbers(bins.values, VALUES), estimate: bins.estimate, generation: sent.generation,
      });
      from = to;
    }
    missing.delete(bins.track);
  };
  sent.tracks.forEach(put);
  // Tracks without rows there.
  for (const track of missing) put(noBins(track));
  tilesHaveCome();
  if (keptTiles > MOST_TILES) {
    tiles.clear();
    keptTiles = 0;
  }
}

/** Keeps the tiles that the page has brought along. @param {{request: {first: string, count: number, tracks: number[]}, tiles: string}} sent */
export const keepFirstTiles = ({ request, tiles }) => keepTiles(decodeText(tiles), 0, request.tracks, Number(request.first), request.count);

/** @type {Map<string, {busy: boolean, next: (() => Promise<void>)|null}>} */
const lines = new Map();

/** Runs the newest request of a kind when the one before it is done. @param {string} kind @param {() => Promise<void>} work */
function queue(kind, work) {
  const line = lines.get(kind) ?? { busy: false, next: null };
  lines.set(kind, line);
  line.next = work;
  if (line.busy) return;
  line.busy = true;
  (async () => {
    // Sending takes time, which the frame that asks does not have.
    await sleep(0);
    while (line.next) {
      const next = line.next;
      line.next = null;
      try {
        await next();
        scene.is_lost = false;
      } catch (error) {
        // What is shown stays; the next look asks again.
        if (error instanceof TypeError) scene.is_lost = true;
        else console.warn(error);
        // Not at once: a server that is gone would be asked in each frame.
        await new Promise((done) => setTimeout(done, 500));
      }
      changed();
    }
    line.busy = false;
  })();
}

/** By line of requests, what is on its way. @type {Map<string, string>} */
const wanted = new Map();

/** What is known from a time on has changed: it is asked for again, and shown until the answer is there. @param {bigint} from */
export function outdate(from) {
  for (const [key, own] of tiles) {
    const [job, shift] = key.split(":").map(Number);
    if (job) continue;
    const length = tileLength(shift);
    for (const [at, tile] of own) if (BigInt(at + 1) * length + (1n << BigInt(shift)) >= from) tile.isStale = true;
  }
}

/**
 * Asks for tiles of some tracks that are missing.
 * @param {number} job @param {number} shift @param {number} first @param {number} count @param {number[]} tracks
 * @param {string} line requests of other lines go beside it
 */
export function wantTiles(job, shift, first, count, tracks, line = "") {
  const isFresh = (/** @type {Tile|undefined} */ tile) => tile !== undefined && !tile.isStale && (tile.generation === scene.generation || !tile.estimate);
  const lacking = tracks.filter((track) => {
    const own = tiles.get(name(job, shift, track));
    for (let tile = 0; tile < count; tile++) if (!isFresh(own?.get(first + tile))) return true;
    return false;
  });
  if (!lacking.length) return;
  const key = `${job} ${shift} ${first} ${count} ${scene.generation} ${lacking.join()}`;
  const queued = `tiles${job}${line}`;
  if (key === wanted.get(queued)) return;
  wanted.set(queued, key);
  queue(queued, async () => {
    try {
      const request = { shift, first: String(first), count, tracks: lacking.slice(0, 4096), ...(job ? { job } : {}) };
      keepTiles(await source.tiles(request), job, request.tracks, first, count);
    } finally {
      if (wanted.get(queued) === key) wanted.delete(queued);
    }
  });
}

/** Forgets the tiles of a search. @param {number} job */
export function forget(job) {
  for (const key of [...tiles.keys()]) {
    if (!key.startsWith(`${job}:`)) continue;
    keptTiles -= tiles.get(key)?.size ?? 0;
    tiles.delete(key);
  }
}

/** @typedef {{begin: bigint, key: string, tracks: Map<number, any[][]>, names: any}} Shown what was sent last for a part of the view */
/** @type {Map<string, Shown>} */
const slices = new Map();
/** @type {Map<string, Shown>} */
const few = new Map();
/** Parts of views of which slices and events are kept. */
const MOST_PARTS = 64;

/** @returns {Shown} */
const nothing = () => ({ begin: 0n, key: "", tracks: new Map(), names: {} });
const none = nothing();
export const slicesOf = (/** @type {string} */ part) => slices.get(part) ?? none;
export const fewOf = (/** @type {string} */ part) => few.get(part) ?? none;

/** Keeps what was sent for a part. @param {Map<string, Shown>} kept @param {string} part @param {Shown} shown */
function put(kept, part, shown) {
  kept.delete(part);
  kept.set(part, shown);
  if (kept.size > MOST_PARTS) kept.delete([...kept.keys()][0]);
}

/** How many rows of all tracks there are in each of some spans, the first of which begins at a time. */
export const density = { key: "", asked: "", begin: 0n, span: 1, /** @type {number[]} */ counts: [] };

/** Asks for the density of a range of time, unless it is there. @param {bigint} begin @param {bigint} end @param {number} width */
export function wantDensity(begin, end, width) {
  const key = `${begin} ${end} ${width} ${scene.generation} ${scene.epoch}`;
  if (key === density.key || key === density.asked) return;
  density.asked = key;
  queue("density", async () => {
    try {
      const answer = await source.ask("density", { begin: String(begin), end: String(end), width });
      Object.assign(density, { key, begin: BigInt(answer.begin), span: answer.span, counts: answer.counts });
    } finally {
      if (density.asked === key) density.asked = "";
    }
  });
}

/** How many columns of the strip of hits there are at most. */
const MOST_STRIP = 800;

/** Asks where hits of a search are in some parts of the view. @param {any} search @param {{begin: bigint, span: number}[]} parts @param {(job: number, begin: bigint, span: number, width: number) => Promise<any>} hitsIn @param {string} moved */
export function wantStrip(search, parts, hitsIn, moved) {
  const whole = parts.reduce((sum, part) => sum + part.span, 0);
  const key = `${search.job} ${search.count} ${moved} ${scene.generation} ${parts.map((part) => `${part.begin} ${part.span}`).join()}`;
  if (search.stripKey === key) return;
  queue("strip", async () => {
    if (search.stripKey === key) return;
    const { job } = search;
    if (!job) return;
    const strip = await Promise.all(parts.map(async ({ begin, span }) => {
      const width = Math.max(1, Math.round((MOST_STRIP * span) / whole));
      return { begin, span, density: (await hitsIn(job, begin, span, width)).density };
    }));
    if (search.job === job) Object.assign(search, { strip, stripKey: key });
  });
}

/** How many times as long as a view a range may be that is asked for. */
const MOST_RANGE = 1.5 * Math.SQRT2;

/**
 * What is asked for to show a range: that and some time on both sides, at most `MOST_RANGE` times as long together. It
 * stays the same while the view moves a little, so that not each frame asks.
 * @param {bigint} begin @param {number} span
 */
function around(begin, span) {
  const size = 2 ** (Math.ceil(2 * Math.log2(Math.max(8, span))) / 2);
  const step = BigInt(Math.ceil(size / 4));
  const before = ((begin % step) + step) % step;
  const from = begin - before - step;
  return { from, to: from + 6n * step };
}

/** Asks for slices. @param {string} part @param {{job: number, count: number}} lens @param {bigint} begin @param {number} span @param {number} width @param {number[]} tracks */
export function wantSlices(part, { job, count }, begin, span, width, tracks) {
  const { from, to } = around(begin, span);
  const columns = Math.min(4096, Math.max(1, Math.ceil(width * MOST_RANGE)));
  const key = `${job} ${count} ${from} ${to} ${columns} ${scene.generation} ${tracks.join()}`;
  const isKnown = () => slicesOf(part).key === key;
  if (isKnown() || !tracks.length) return;
  queue(`slices${part}`, async () => {
    if (isKnown()) return;
    const answer = await ask("slices", { begin: String(from), end: String(to), width: columns, tracks, ...(job ? { job } : {}) });
    const list = answer.tracks.map((/** @type {any} */ track) => [track.track, track.slices]);
    put(slices, part, { begin: from, key, tracks: new Map(list), names: answer.names });
  });
}

/** Events that may be drawn one by one, in the range that is asked for. */
export const MOST_FEW = 1000;

/** Asks for the events of a range one by one. @param {string} part @param {string} condition @param {bigint} begin @param {number} span @param {number[]} tracks */
export function wantFew(part, condition, begin, span, tracks) {
  const { from, to } = around(begin, span);
  const key = `${condition} ${from} ${to} ${scene.generation} ${tracks.join()}`;
  const isKnown = () => fewOf(part).key === key;
  if (isKnown()) return;
  queue(`few${part}`, async () => {
    if (isKnown()) return;
    const answer = await ask("few", { begin: String(from), end: String(to), limit: MOST_FEW, tracks, ...(condition ? { condition } : {}) });
    /** @type {Map<number, any[][]>} */
    const byTrack = new Map();
    for (const event of answer.events ?? []) {
      const list = byTrack.get(event[0]) ?? [];
      list.push(event);
      byTrack.set(event[0], list);
    }
    for (const list of byTrack.values()) list.sort((a, b) => a[1] - b[1]);
    put(few, part, { begin: from, key, tracks: byTrack, names: {} });
  });
}
