// Words of commands that the page shows.

/** A path as a word of a shell. @param {string} path */
export const shellWord = (path) => (/^[\w./+:@%=-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`);
