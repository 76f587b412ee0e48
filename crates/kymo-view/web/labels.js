// The labels of the rows: real elements, only those in sight.

import { actions } from "./act.js";
import { canvas } from "./canvas.js";
import { visibleRows } from "./draw.js";
import { keyOf, rows, scene, selected, titleOf, view } from "./state.js";

const labels = /** @type {HTMLElement} */ (document.getElementById("labels"));

/** @type {Map<string, HTMLElement>} */
const shownLabels = new Map();

/** What the labels were made of the last time: nothing of it changes while time moves. @type {any[]} */
let madeOf = [];

/** The labels: real elements, only those in sight. */
export function drawLabels() {
  const height = canvas.clientHeight;
  const now = [rows, view.scroll, height, selected.row, view.pinned, view.slews, scene.generation, scene.epoch, scene.info, document.activeElement];
  if (now.length === madeOf.length && now.every((row, at) => row === madeOf[at])) return;
  madeOf = now;
  const visible = visibleRows(height);
  const keys = new Set(visible.map((row) => row.key));
  for (const [key, element] of shownLabels) {
    if (keys.has(key) || element.contains(document.activeElement)) continue;
    element.remove();
    shownLabels.delete(key);
  }
  for (const row of visible) {
    let element = shownLabels.get(row.key);
    if (!element) {
      element = makeLabel(row);
      shownLabels.set(row.key, element);
      labels.append(element);
    }
    element.style.top = `${row.top - view.scroll}px`;
    element.style.height = `${row.height}px`;
    element.style.paddingLeft = `${4 + row.depth * 12}px`;
    element.classList.toggle("selected", row.key === selected.row);
    const [name, ...tools] = /** @type {HTMLElement[]} */ ([...element.children]);
    const arrow = row.kind === "group" ? (row.open ? "▾ " : "▸ ") : "";
    const count = row.kind === "group" && !row.open ? ` (${row.count})` : "";
    const words = arrow + row.label + count;
    if (name.textContent !== words) name.textContent = words;
    // Names that would be cut off are left out; the tip has them.
    name.style.visibility = row.height < 12 ? "hidden" : "";
    name.title = titleOf(row);
    element.setAttribute("aria-level", String(row.depth + 1));
    if (row.kind === "group") element.setAttribute("aria-expanded", String(row.open));
    if (row.track) {
      const isPinned = view.pinned.includes(keyOf(row.track));
      tools[0]?.classList.toggle("on", isPinned);
      tools[0]?.setAttribute("aria-pressed", String(isPinned));
    }
  }
}

function makeLabel(/** @type {import("./state.js").Row} */ row) {
  const element = document.createElement("div");
  element.className = `row ${row.kind}`;
  element.setAttribute("role", "treeitem");
  const name = document.createElement("button");
  name.className = "name";
  name.dir = "auto";
  name.tabIndex = -1;
  name.addEventListener("click", (event) => actions.label(row.key, event));
  element.append(name);
  const tool = (/** @type {string} */ sign, /** @type {string} */ title, /** @type {() => void} */ act) => {
    const button = document.createElement("button");
    button.className = "tool";
    button.textContent = sign;
    button.title = title;
    button.tabIndex = -1;
    button.setAttribute("aria-label", title);
    button.addEventListener("click", act);
    element.append(button);
  };
  if (row.kind === "track") tool("★", "Pin (P)", () => actions.pin(row.key));
  if (row.key !== "pinned") tool("✕", "Hide (H)", () => actions.hide(row.key));
  return element;
}
