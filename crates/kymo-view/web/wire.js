// The binary form of tiles (`src/wire.rs` describes it).

export const TILE = 512;

/** Values of a bin: the least, the greatest, the mean. */
export const VALUES = 3;

/**
 * A track's bins: positions count from where the answer begins, `VALUES` values belong to each bin.
 * @typedef {{track: number, estimate: boolean, phase: number, position: number[], count: number[], kind: number[], offset: number[],
 *   known: number[], values: number[]}} TrackBins
 * @typedef {{generation: number, shift: number, begin: bigint, spans: number, tracks: TrackBins[]}} Tiles
 */

/** @returns {TrackBins} */
export const noBins = (/** @type {number} */ track, phase = 0, estimate = false) =>
  ({ track, estimate, phase, position: [], count: [], kind: [], offset: [], known: [], values: [] });

/** Reads tiles. @param {ArrayBuffer} buffer @returns {Tiles} */
export function decode(buffer) {
  const data = new DataView(buffer);
  if (data.getUint32(0) !== 0x4b595431) throw new Error("the answer is not tiles");
  const shift = data.getUint32(8, true);
  let at = 28;
  const varint = () => {
    let value = 0;
    let factor = 1;
    for (;;) {
      const byte = data.getUint8(at++);
      value += (byte & 127) * factor;
      if (byte < 128) return value;
      factor *= 128;
    }
  };
  const tracks = [];
  for (let count = data.getUint32(16, true); count > 0; count--) {
    const of = noBins(data.getUint32(at, true), 0, (data.getUint8(at + 4) & 1) === 1);
    at += 5;
    of.phase = varint();
    let position = 0;
    for (let bins = varint(); bins > 0; bins--) {
      const flags = varint();
      position += Math.floor(flags / 4);
      const isSingle = (flags & 1) === 1;
      of.position.push(position);
      of.count.push(isSingle ? 1 : varint());
      of.kind.push(data.getUint8(at++));
      of.offset.push(isSingle && shift > 0 ? varint() : 0);
      if (flags & 2) {
        of.known.push(isSingle ? 1 : varint());
        for (let value = 0; value < VALUES; value++) {
          of.values.push(data.getFloat64(at, true));
          if (!isSingle || value === VALUES - 1) at += 8;
        }
      } else {
        of.known.push(0);
        of.values.push(NaN, NaN, NaN);
      }
    }
    tracks.push(of);
  }
  return { generation: data.getUint32(4, true), shift, begin: data.getBigInt64(20, true), spans: data.getUint32(12, true), tracks };
}
