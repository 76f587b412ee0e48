// Pictures of the view: SVG, and PNG made of it.

import { canvas, colours, overview, ruler } from "./canvas.js";
import { drawInto, visibleRows } from "./draw.js";
import { scene, view } from "./state.js";
import { SvgContext } from "./svg.js";

/** The view as SVG: the overview, the ruler, the labels and the tracks. */
export function svg() {
  const [tracks, above, all] = [canvas, ruler, overview].map((canvas) => new SvgContext(canvas.clientWidth, canvas.clientHeight));
  drawInto(new Map([[canvas, tracks], [ruler, above], [overview, all]]));
  const ink = colours;
  const left = canvas.getBoundingClientRect().left;
  const labels = new SvgContext(left, tracks.height);
  labels.font = "12px system-ui, sans-serif";
  for (const row of visibleRows(tracks.height)) {
    const top = row.top - view.scroll;
    if (row.kind === "group") {
      labels.fillStyle = ink.bar;
      labels.fillRect(0, top, left, row.height);
    }
    labels.fillStyle = ink.text;
    const arrow = row.kind === "group" ? (row.open ? "▾ " : "▸ ") : "";
    let words = arrow + row.label;
    const room = left - 10 - row.depth * 12;
    while (words.length > 2 && labels.measureText(words).width > room) words = words.slice(0, -2) + "…";
    labels.fillText(words, 6 + row.depth * 12, top + row.height / 2);
    labels.fillStyle = ink.line;
    labels.fillRect(0, top + row.height - 1, left, 1);
  }
  labels.fillRect(left - 1, 0, 1, tracks.height);
  const [width, height] = [Math.round(left + tracks.width), Math.round(all.height + above.height + tracks.height)];
  const parts = [all.group(0, 0), above.group(left, all.height), labels.group(0, all.height + above.height), tracks.group(left, all.height + above.height)];
  const title = scene.info.recordings.map((/** @type {any} */ recording) => recording.path.split("/").at(-1)).join(", ").replace(/[^\p{L}\p{N} ._-]/gu, "_");
  return {
    width, height,
    text: `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}"><title>${title}</title><rect width="100%" height="100%" fill="${ink.back}"/>${parts.join("\n")}</svg>\n`,
  };
}

/** The view as PNG, in the pixels of the screen. @returns {Promise<Blob>} */
export async function png() {
  const { width, height, text } = svg();
  const ratio = Math.max(1, window.devicePixelRatio || 1);
  const address = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
  try {
    const image = new Image();
    image.src = address;
    await image.decode();
    const paper = document.createElement("canvas");
    [paper.width, paper.height] = [Math.round(width * ratio), Math.round(height * ratio)];
    paper.getContext("2d")?.drawImage(image, 0, 0, paper.width, paper.height);
    return await new Promise((done, failed) => paper.toBlob((blob) => (blob ? done(blob) : failed(new Error("the picture is too large"))), "image/png"));
  } finally {
    URL.revokeObjectURL(address);
  }
}

/** Lets the browser save something. @param {Blob} blob @param {string} name */
export function download(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
