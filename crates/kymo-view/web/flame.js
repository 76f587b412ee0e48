// The profile of the area: a table, and a flame graph (icicle) that can be zoomed. Of two profiles, their difference.

import { about, analyse, field, jump, pairFields, problem, requestOf, scope, shownRecordings, trackBy } from "./analyses.js";
import { text, widthOf } from "./canvas.js";
import { colourOf, textOn } from "./lens.js";
import { button, copyTable, make, panel } from "./panels.js";
import { rows, scene, view } from "./state.js";
import { duration, number } from "./time.js";

const ROW = 19;

/**
 * Calls with the same names around them. @typedef {{name: string, calls: number, total: number, own: number, longest: number,
 *   begin: bigint, track: any, children: Map<string, Node>, before: number, beforeOwn: number}} Node
 */

/** @param {string} name @returns {Node} */
const node = (name) => ({ name, calls: 0, total: 0, own: 0, longest: -1, begin: 0n, track: null, children: new Map(), before: 0, beforeOwn: 0 });

/** Adds what the server found to a tree: all tracks that are shown together. @param {any} answer @param {Node} root @param {boolean} isBefore */
export function grow(answer, root, isBefore = false) {
  const shown = new Set(rows.flatMap((row) => row.tracks));
  const isShown = answer.tracks.map((/** @type {any} */ named) => {
    const track = trackBy(named);
    return !track || shown.has(track);
  });
  /** @type {(Node|null)[]} */
  const nodes = [];
  for (const [caller, track, name, calls, total, own, longest, begin] of answer.nodes) {
    const around = caller === null ? (isShown[track] ? root : null) : nodes[caller];
    if (!around) {
      nodes.push(null);
      continue;
    }
    let child = around.children.get(name);
    if (!child) around.children.set(name, (child = node(name)));
    nodes.push(child);
    if (isBefore) {
      child.before += total;
      child.beforeOwn += own;
      if (caller === null) root.before += total;
      continue;
    }
    child.calls += calls;
    child.total += total;
    child.own += own;
    if (longest > child.longest) Object.assign(child, { longest, begin: BigInt(begin), track: answer.tracks[track] });
    if (caller === null) root.total += total;
  }
  return root;
}

export const treeOf = (/** @type {any} */ answer) => grow(answer, node("all"));

/** The calls of each name, wherever they are. @param {Node} root */
export function byName(root) {
  /** @type {Map<string, Node>} */
  const all = new Map();
  const walk = (/** @type {Node} */ parent, /** @type {Set<string>} */ around) => {
    for (const child of parent.children.values()) {
      let line = all.get(child.name);
      if (!line) all.set(child.name, (line = node(child.name)));
      line.calls += child.calls;
      line.own += child.own;
      line.beforeOwn += child.beforeOwn;
      // A call within one of the same name is part of it.
      if (!around.has(child.name)) {
        line.total += child.total;
        line.before += child.before;
      }
      if (child.longest > line.longest) Object.assign(line, { longest: child.longest, begin: child.begin, track: child.track });
      walk(child, new Set([...around, child.name]));
    }
  };
  walk(root, new Set());
  return [...all.values()].sort((a, b) => b.own + b.beforeOwn - (a.own + a.beforeOwn));
}

/** What the last flame graph has drawn, for tests. */
export const flame = { boxes: 0, depth: 0, zoomed: "" };

/** Numbers of call stacks. @param {number} count */
const stacks = (count) => `${number(count)} ${count === 1 ? "stack" : "stacks"}`;

/**
 * A flame graph. @param {Node} root @param {{isDifference?: boolean, isCounted?: boolean, pick?: (node: Node) => void}} options
 */
export function flameGraph(root, { isDifference = false, isCounted = false, pick } = {}) {
  const amount = isCounted ? stacks : duration;
  const signed = (/** @type {number} */ difference) => (difference > 0 ? `+${amount(difference)}` : difference < 0 ? `−${amount(-difference)}` : "±0");
  /** @type {(node: Node) => number} */
  const depthOf = (node) => 1 + Math.max(0, ...[...node.children.values()].map(depthOf));
  const depth = Math.min(64, depthOf(root));
  const canvas = /** @type {HTMLCanvasElement} */ (make("canvas", undefined, { class: "flame", tabindex: "0", role: "img", "aria-label": "Flame graph: the table has the same figures. Arrow keys move, Enter zooms, Escape shows all" }));
  const tip = make("div", "", { class: "soft", id: "flame-tip", "aria-live": "polite" });
  canvas.style.height = `${depth * ROW}px`;
  /** @type {Node[]} */ let path = [root];
  /** @type {{x: number, wide: number, level: number, node: Node}[]} */ let boxes = [];
  let chosen = 0;
  const size = (/** @type {Node} */ node) => (isDifference ? Math.max(node.total, node.before) : node.total);
  /** @type {(node: Node) => number} */
  const sum = (node) => Math.max(size(node), [...node.children.values()].reduce((all, child) => all + sum(child), 0));
  const draw = () => {
    const ratio = window.devicePixelRatio || 1;
    const width = canvas.clientWidth;
    if (!width) return;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(depth * ROW * ratio);
    const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    pen.scale(ratio, ratio);
    pen.font = "11px system-ui, sans-serif";
    pen.textBaseline = "middle";
    const style = getComputedStyle(canvas);
    boxes = [];
    const box = (/** @type {Node} */ node, /** @type {number} */ x, /** @type {number} */ wide, /** @type {number} */ level) => {
      if (wide < 0.4 || level >= depth) return;
      boxes.push({ x, wide, level, node: node });
      if (path.at(-1) !== node && path.includes(node)) return box(path[path.indexOf(node) + 1], x, wide, level + 1);
      const all = Math.max(1, sum(node));
      let at = x;
      for (const child of [...node.children.values()].sort((a, b) => sum(b) - sum(a))) {
        const part = (sum(child) / all) * wide;
        box(child, at, part, level + 1);
        at += part;
      }
    };
    box(root, 0, width, 0);
    boxes.forEach(({ x, wide, level, node: node }, at) => {
      const ink = node === root ? "#667079" : isDifference ? difference(node) : colourOf(node.name);
      pen.fillStyle = ink;
      pen.globalAlpha = path.includes(node) && node !== path.at(-1) ? 0.55 : 1;
      pen.fillRect(x, level * ROW, Math.max(0.5, wide - (wide > 2 ? 1 : 0)), ROW - 1);
      pen.globalAlpha = 1;
      if (at === chosen && document.activeElement === canvas) {
        pen.strokeStyle = style.color;
        pen.lineWidth = 2;
        pen.strokeRect(x + 1, level * ROW + 1, Math.max(1, wide - 3), ROW - 3);
      }
      if (wide < 26) return;
      pen.fillStyle = textOn(ink);
      // The figure goes before the name is cut.
      const words = `${node.name}  ${isDifference ? signed(node.total - node.before) : amount(node.total)}`;
      text(pen, widthOf(pen, words) <= wide - 8 ? words : node.name, x + 4, level * ROW + ROW / 2, wide - 8);
    });
    Object.assign(flame, { boxes: boxes.length, depth, zoomed: path.at(-1)?.name ?? "" });
  };
  const say = (/** @type {Node|undefined} */ node) => {
    if (!node) return;
    const share = `${((100 * node.total) / Math.max(1, root.total)).toFixed(1)} %`;
    tip.textContent = isDifference
      ? `${node.name}: ${amount(node.before)} → ${amount(node.total)} (${signed(node.total - node.before)})`
      : isCounted ? `${node.name}: ${stacks(node.total)} (${share}), ends in it: ${number(node.own)}`
      : `${node.name}: ${number(node.calls)} calls, ${duration(node.total)} (${share}), itself ${duration(node.own)}${node.longest >= 0 ? `, longest ${duration(node.longest)}` : ""}`;
  };
  /** The calls around one, and it. @type {(wanted: Node, node?: Node) => Node[]|null} */
  const pathTo = (wanted, node = root) => {
    if (node === wanted) return [node];
    for (const child of node.children.values()) {
      const found = pathTo(wanted, child);
      if (found) return [node, ...found];
    }
    return null;
  };
  const zoom = (/** @type {Node} */ node) => {
    path = pathTo(node) ?? [root];
    draw();
    chosen = Math.max(0, boxes.findIndex((box) => box.node === node));
    draw();
    say(node);
  };
  const at = (/** @type {MouseEvent} */ event) => boxes.find((box) => box.level === Math.floor(event.offsetY / ROW) && box.x <= event.offsetX && event.offsetX < box.x + box.wide);
  canvas.addEventListener("mousemove", (event) => say(at(event)?.node));
  canvas.addEventListener("click", (event) => {
    const box = at(event);
    if (box) zoom(box.node);
  });
  canvas.addEventListener("dblclick", (event) => {
    const box = at(event);
    if (box && box.node !== root) pick?.(box.node);
  });
  canvas.addEventListener("keydown", (event) => {
    const box = boxes[chosen];
    const near = (/** @type {number} */ level, /** @type {number} */ way) => {
      const middle = box.x + box.wide / 2;
      const own = boxes.filter((other) => other.level === level && (way === 0 || (other.x - box.x) * way > 0));
      return own.sort((a, b) => Math.abs(a.x + a.wide / 2 - middle) - Math.abs(b.x + b.wide / 2 - middle))[0];
    };
    const [level, way] = /** @type {Record<string, [number, number]>} */ ({ ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] })[event.key] ?? [0, 0];
    const next = box && (level || way) ? near(box.level + level, way) : undefined;
    if (event.key === "Enter" && box) zoom(box.node);
    else if (event.key === "Escape") zoom(root);
    else if (!event.key.startsWith("Arrow")) return;
    event.preventDefault();
    event.stopPropagation();
    if (next) {
      chosen = boxes.indexOf(next);
      say(next.node);
    }
    draw();
  });
  canvas.addEventListener("focus", draw);
  canvas.addEventListener("blur", draw);
  new ResizeObserver(draw).observe(canvas);
  return { element: make("div", [tip, canvas]), zoom };
}

/** More is orange, less is blue, and the stronger the more. @param {Node} node */
function difference(node) {
  const change = node.total - node.before;
  const share = Math.min(1, Math.abs(change) / Math.max(1, Math.max(node.total, node.before)));
  const grey = [96, 103, 110];
  const full = change > 0 ? [190, 74, 0] : [0, 98, 165];
  return `rgb(${grey.map((from, at) => Math.round(from + (full[at] - from) * Math.sqrt(share))).join(" ")})`;
}

let profileRun = 0;

export async function showProfile() {
  const own = ++profileRun;
  const range = scope();
  const result = make("div", make("p", "…", { class: "soft" }));
  const again = () => showProfile();
  const fields = pairFields(again);
  fields[2] = field("key", "names by", "event", again);
  fields.push(field("stack", "stacks in", "slices, calls", again));
  panel.replaceChildren(make("div", [...fields, about(range), button("Again", again), button("Copy as CSV", copyTable)], { class: "tools" }), result);
  try {
    const isWanted = () => own === profileRun && view.tab === "profile";
    const answer = await analyse(requestOf("profile", range, shownRecordings()), isWanted, (share) => (result.textContent = `${Math.min(99, Math.round(share * 100))} % read…`));
    if (answer) drawProfile(result, answer);
  } catch (error) {
    if (own === profileRun) problem(result, error);
  }
}

/** @param {HTMLElement} into @param {any} answer */
function drawProfile(into, answer) {
  const root = treeOf(answer);
  const isCounted = answer.stacks !== undefined;
  const go = (/** @type {Node} */ node) => jump(node.begin, node.begin + BigInt(Math.max(0, node.longest)), node.track && trackBy(node.track));
  const graph = flameGraph(root, isCounted ? { isCounted } : { pick: go });
  const whole = byName(root);
  const itself = whole.reduce((sum, line) => sum + line.own, 0);
  const titles = isCounted ? ["name", "ends in it", "share", "stacks"] : ["name", "calls", "itself", "share", "total", "mean", "longest"];
  const head = titles.map((title, at) => make("th", title, { scope: "col", class: at ? "number" : "" }));
  const cell = (/** @type {string} */ text, /** @type {any} */ raw = undefined) => make("td", text, { class: "number", ...(raw === undefined ? {} : { "data-csv": String(raw) }) });
  const lines = whole.slice(0, 1000).map((line) => {
    const name = make("td", line.name, { dir: "auto" });
    const share = cell(`${((100 * line.own) / Math.max(1, itself)).toFixed(1)} %`);
    if (isCounted) return make("tr", [name, cell(number(line.own)), share, cell(number(line.total))]);
    const mean = line.total / Math.max(1, line.calls);
    const longest = make("td", button(duration(Math.max(0, line.longest)), () => go(line)), { class: "number", "data-csv": String(Math.max(0, line.longest)) });
    return make("tr", [name, cell(number(line.calls)), cell(duration(line.own), line.own), share, cell(duration(line.total), line.total), cell(duration(mean), mean), longest]);
  });
  const notes = [answer.open && `${number(answer.open)} calls are open at the end of the area`, answer.unmatched && `${number(answer.unmatched)} ends without a beginning`, answer.dropped && `${number(answer.dropped)} calls left out: too many at once`, answer.cut && `${number(answer.cut)} stacks are cut off: too many or too deep`].filter(Boolean);
  const help = isCounted ? "Events by their call stacks. Click: zoom." : "Click: zoom. Double click: go to the longest call.";
  into.replaceChildren(
    make("p", whole.length ? help : "No calls in the area on the tracks that are shown.", { class: "soft" }),
    graph.element, ...notes.map((note) => make("p", /** @type {string} */ (note), { class: "soft" })),
    make("table", [make("thead", make("tr", head)), make("tbody", lines)], { "aria-label": "Profile" }),
  );
}
