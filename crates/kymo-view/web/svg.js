// A canvas that writes SVG: the same code draws the page and its picture.

const escape = (/** @type {string} */ text) =>
  text.replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, "\ufffd").replace(/[&<>"]/g, (char) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[char] ?? char);
const short = (/** @type {number} */ value) => String(Math.round(value * 100) / 100);

let patterns = 0;

/** The part of CanvasRenderingContext2D that the page draws with. */
export class SvgContext {
  fillStyle = "#000";
  strokeStyle = "#000";
  lineWidth = 1;
  globalAlpha = 1;
  font = "11px system-ui, sans-serif";
  textAlign = "left";
  textBaseline = "middle";
  lineCap = "butt";
  lineJoin = "miter";
  /** @type {string[]} */ parts = [];
  /** @type {string[]} */ definitions = [];
  /** @type {string[]} */ path = [];
  /** @type {any[]} */ saved = [];
  /** @type {number[]} */ dash = [];
  clipping = "";
  /** @type {Map<string, string>} */ hatches = new Map();

  /** @param {number} width @param {number} height */
  constructor(width, height) {
    this.width = width;
    this.height = height;
    this.measure = /** @type {CanvasRenderingContext2D} */ (document.createElement("canvas").getContext("2d"));
  }

  /** Diagonal lines. @param {string} ink */
  hatching(ink) {
    let name = this.hatches.get(ink);
    if (!name) {
      name = `hatch${++patterns}`;
      this.hatches.set(ink, name);
      this.definitions.push(`<pattern id="${name}" width="8" height="8" patternUnits="userSpaceOnUse"><path d="M-8 8l8-8M0 8l8-8M8 8l8-8" stroke="${escape(ink)}" stroke-width="1.5"/></pattern>`);
    }
    return `url(#${name})`;
  }

  /** @param {string} element */
  add(element) {
    const alpha = this.globalAlpha < 1 ? ` opacity="${short(this.globalAlpha)}"` : "";
    const clip = this.clipping ? ` clip-path="url(#${this.clipping})"` : "";
    this.parts.push(alpha || clip ? `<g${alpha}${clip}>${element}</g>` : element);
  }

  stroking() {
    const dash = this.dash.length ? ` stroke-dasharray="${this.dash.map(short).join(" ")}"` : "";
    return `fill="none" stroke="${escape(String(this.strokeStyle))}" stroke-width="${short(this.lineWidth)}"${dash}`;
  }

  fillRect(/** @type {number} */ x, /** @type {number} */ y, /** @type {number} */ width, /** @type {number} */ height) {
    if (width < 0) [x, width] = [x + width, -width];
    // What lies outside is left out, so that numbers stay small.
    const left = Math.max(x, -10);
    const right = Math.min(x + width, this.width + 10);
    if (right <= left || y > this.height || y + height < 0) return;
    this.add(`<rect x="${short(left)}" y="${short(y)}" width="${short(right - left)}" height="${short(height)}" fill="${escape(String(this.fillStyle))}"/>`);
  }
  strokeRect(/** @type {number} */ x, /** @type {number} */ y, /** @type {number} */ width, /** @type {number} */ height) {
    this.add(`<rect x="${short(x)}" y="${short(y)}" width="${short(width)}" height="${short(height)}" ${this.stroking()}/>`);
  }
  clearRect() {}
  setTransform() {}
  setLineDash(/** @type {number[]} */ dash) { this.dash = dash; }
  fillText(/** @type {string} */ words, /** @type {number} */ x, /** @type {number} */ y) {
    const anchor = { right: "end", end: "end", center: "middle" }[this.textAlign] ?? "start";
    const baseline = this.textBaseline === "middle" ? ' dominant-baseline="central"' : "";
    this.add(`<text x="${short(x)}" y="${short(y)}" fill="${escape(String(this.fillStyle))}" style="font:${escape(this.font)}" text-anchor="${anchor}"${baseline} xml:space="preserve">${escape(words)}</text>`);
  }
  measureText(/** @type {string} */ words) {
    this.measure.font = this.font;
    return this.measure.measureText(words);
  }
  beginPath() { this.path = []; }
  closePath() { this.path.push("Z"); }
  moveTo(/** @type {number} */ x, /** @type {number} */ y) { this.path.push(`M${short(x)} ${short(y)}`); }
  lineTo(/** @type {number} */ x, /** @type {number} */ y) { this.path.push(`L${short(x)} ${short(y)}`); }
  bezierCurveTo(/** @type {number[]} */ ...at) { this.path.push(`C${at.map(short).join(" ")}`); }
  quadraticCurveTo(/** @type {number[]} */ ...at) { this.path.push(`Q${at.map(short).join(" ")}`); }
  rect(/** @type {number} */ x, /** @type {number} */ y, /** @type {number} */ width, /** @type {number} */ height) {
    this.path.push(`M${short(x)} ${short(y)}h${short(width)}v${short(height)}h${short(-width)}Z`);
  }
  arc(/** @type {number} */ x, /** @type {number} */ y, /** @type {number} */ radius, /** @type {number} */ from, /** @type {number} */ to) {
    const end = Math.abs(to - from) >= 2 * Math.PI ? from + 2 * Math.PI - 1e-4 : to;
    const at = (/** @type {number} */ angle) => `${short(x + radius * Math.cos(angle))} ${short(y + radius * Math.sin(angle))}`;
    const isLarge = Math.abs(end - from) > Math.PI ? 1 : 0;
    this.path.push(`${this.path.length ? "L" : "M"}${at(from)}A${short(radius)} ${short(radius)} 0 ${isLarge} 1 ${at(end)}`);
  }
  stroke() { if (this.path.length) this.add(`<path d="${this.path.join("")}" ${this.stroking()}/>`); }
  fill() { if (this.path.length) this.add(`<path d="${this.path.join("")}" fill="${escape(String(this.fillStyle))}"/>`); }
  clip() {
    this.clipping = `clip${++patterns}`;
    this.definitions.push(`<clipPath id="${this.clipping}"><path d="${this.path.join("")}"/></clipPath>`);
  }
  save() {
    const { fillStyle, strokeStyle, lineWidth, globalAlpha, font, textAlign, textBaseline, clipping, dash } = this;
    this.saved.push({ fillStyle, strokeStyle, lineWidth, globalAlpha, font, textAlign, textBaseline, clipping, dash });
  }
  restore() { Object.assign(this, this.saved.pop()); }

  /** What was drawn, at a place. @param {number} x @param {number} y */
  group(x, y) {
    return `<svg x="${short(x)}" y="${short(y)}" width="${short(this.width)}" height="${short(this.height)}"><defs>${this.definitions.join("")}</defs>${this.parts.join("\n")}</svg>`;
  }
}
