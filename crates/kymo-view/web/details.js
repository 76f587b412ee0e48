// The selected event: its fields with their types, where it lies in its file, and what can be done with a value.

import { actions, tell } from "./act.js";
import { ask } from "./data.js";
import { chaseBy, conditionOf, follow } from "./flows.js";
import { button, copy, make, nameOf, panel, readLine, words } from "./panels.js";
import { printCommand } from "./link.js";
import { seconds } from "./shell.js";
import { changed, remember, scene, shorten, slewOf, view } from "./state.js";
import { duration, format } from "./time.js";

let detailsRun = 0;

const attempt = (/** @type {() => Promise<unknown>} */ work) => () => work().catch((error) => tell(String(error.message ?? error)));

/** @param {any} line @param {import("./state.js").Track|undefined} track */
export async function showDetails(line, track) {
  const own = ++detailsRun;
  const event = readLine(line.json);
  const body = make("tbody");
  /** @type {Map<string, HTMLElement>} */
  const types = new Map();
  const add = (/** @type {string} */ name, /** @type {any} */ value, /** @type {any} */ raw = undefined, path = name) => {
    const type = make("td", "", { class: "soft" });
    types.set(path, type);
    const tools = make("td", undefined, { class: "fields" });
    if (raw !== undefined && raw !== null && typeof raw !== "object") {
      const condition = conditionOf(path, raw);
      const tool = (/** @type {string} */ sign, /** @type {string} */ title, /** @type {() => void} */ act) => {
        const element = button(sign, act);
        element.title = title;
        element.setAttribute("aria-label", `${sign}: ${title}`);
        tools.append(element);
      };
      tool("follow", `Arrows along ${condition}`, attempt(() => follow(condition)));
      tool("chase", `Order tracks by ${condition}`, attempt(() => chaseBy(condition)));
      tool("colour", `Colour events by ${path}`, () => actions.colour(`field:${path.split(".")[0]}`));
      tool("column", `Show ${path} as a column of the event table`, () => {
        view.columns = view.columns.includes(path) ? view.columns.filter((other) => other !== path) : [...view.columns, path];
        remember();
        tell(view.columns.includes(path) ? `${path} is a column of the table` : `${path} is no column any more`);
      });
    }
    const shown = make("td", words(value), { class: "value", dir: "auto" });
    body.append(make("tr", [make("th", name, { scope: "row", dir: "auto" }), shown, type, tools]));
  };
  const HEAD = new Set(["timestamp", "recording", "kind", "schema", "trace", "stream_class", "stream", "event", "event_class", "archive", "archive_index"]);
  const walk = (/** @type {any} */ content, /** @type {string} */ prefix, isField = false) => {
    for (const [key, value] of Object.entries(content)) {
      const isObject = value && typeof value === "object" && !Array.isArray(value);
      const path = isField ? prefix.replace(/^(common_context|specific_context|packet_context)\./, "") + key : key;
      if (isObject && !("value" in value)) walk(value, `${prefix}${key}.`, true);
      else if (isObject) add(prefix + key, `${value.value}  ${(value.labels ?? value.flags ?? []).join(" | ")}`, value.value, path);
      else if (!isField && key === "timestamp") {
        add("timestamp", `${format(BigInt(value), view.zone, scene.begin)}   (${value} ns)`);
        const moved = track ? slewOf(track) : 0n;
        if (moved) add("shown at", `${format(BigInt(value) + moved, view.zone, scene.begin)}   (moved by ${moved < 0n ? "−" : "+"}${duration(Math.abs(Number(moved)))})`);
      }
      else add(prefix + key, value, isField || !HEAD.has(key) ? value : undefined, path);
    }
  };
  // What the event says comes first.
  const { payload, specific_context, common_context, packet_context, ...rest } = event;
  const { timestamp, ...head } = rest;
  walk({ timestamp }, "");
  for (const [name, scope] of Object.entries({ payload, specific_context, common_context, packet_context })) if (scope && typeof scope === "object") walk(scope, name === "payload" ? "" : `${name}.`, true);
  walk(head, "");
  const path = scene.info.recordings[line.recording]?.path ?? "";
  const time = seconds(BigInt(line.time));
  const step = (/** @type {number} */ way) => actions.selectEvent(view.event?.track ?? "", view.event?.time ?? 0n, way, view.event?.nth ?? 0);
  const place = make("div", "", { class: "soft", id: "place" });
  panel.replaceChildren(
    make("div", [
      make("strong", nameOf(event), { dir: "auto" }), make("span", track ? `on ${shorten(track.name)}` : "", { class: "soft", dir: "auto", title: track?.name ?? "" }),
      button("◂ ,", () => step(-1)), button(". ▸", () => step(1)),
      button("Copy as JSON", () => copy(line.json)), button("Copy as command", attempt(async () => copy(await printCommand(path, time)))),
    ], { class: "tools" }),
    place, make("table", body, { class: "details" }),
  );
  const answer = await ask("describe", { time: line.time, skip: line.skip }).catch(() => ({ event: null }));
  if (own !== detailsRun || !answer.event || view.tab !== "details") return;
  const { place: at, fields, stream, chunk, number } = answer.event;
  if (at) {
    const size = at.bits % 8 ? `${at.bits} bits` : `${at.bits / 8} bytes`;
    place.textContent = `byte ${at.offset}${at.bit ? ` bit ${at.bit}` : ""} of ${at.file}, ${size}; packet ${at.packet ?? chunk}, event ${number}${at.ticks === null ? "" : `; ${at.ticks} ticks`}; stream ${shorten(stream ?? "")}`;
  }
  for (const field of fields) {
    const type = types.get(field.path);
    if (type && !type.textContent) type.textContent = field.type;
  }
}
