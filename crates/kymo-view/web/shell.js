// Words of commands that the page shows.

/** A path as a word of a shell. @param {string} path */
export const shellWord = (path) => (/^[\w./+:@%=,-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`);

/** Nanoseconds as seconds, as options take them. @param {bigint} time */
export function seconds(time) {
  const size = time < 0n ? -time : time;
  return `${time < 0n ? "-" : ""}${size / 1000000000n}.${String(size % 1000000000n).padStart(9, "0")}`;
}
