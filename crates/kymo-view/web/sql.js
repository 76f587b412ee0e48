// Questions in SQL: `kymo-query` answers them on the server. Rows that have a time lead there.

import { sleep } from "./busy.js";
import { actions } from "./act.js";
import { ask } from "./data.js";
import { button, copyTable, make, panel, readLine, words } from "./panels.js";
import { remember, scene, view } from "./state.js";
import { duration, format, number } from "./time.js";

/** Rows that are put into the table: the server sends no more. */
const MOST_ROWS = 1000;

/** Columns that hold a time, the best first. */
const TIMES = ["ts", "timestamp", "_timestamp", "time", "begin", "t"];

/** What was answered last. @type {{rows: Record<string, any>[], notes: string[], problem: string, time: number}|null} */
let answer = null;
/** The job that is running. */
let job = 0;
let runs = 0;

/** A time as SQL writes it: nanoseconds, or a date of RFC 3339. @param {any} value @returns {bigint|null} */
export function timeOf(value) {
  if (typeof value === "number" && Number.isSafeInteger(value)) return BigInt(value);
  if (typeof value !== "string") return null;
  if (/^-?\d{1,19}$/.test(value)) return BigInt(value);
  const parts = /^(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:?\d\d)?$/.exec(value);
  if (!parts) return null;
  const seconds = Date.parse(`${parts[1]}T${parts[2]}${parts[4] ?? "Z"}`);
  return Number.isNaN(seconds) ? null : BigInt(seconds) * 1000000n + BigInt((parts[3] ?? "").padEnd(9, "0"));
}

/** The column by which rows are found on the time line, if there is one. @param {Record<string, any>[]} rows @param {string[]} names */
function timeColumn(rows, names) {
  const isTime = (/** @type {string} */ name) => rows.some((row) => {
    const time = timeOf(row[name]);
    return time !== null && time >= scene.begin - 1000000000n && time <= scene.end + 1000000000n;
  });
  const isDate = (/** @type {string} */ name) => rows.some((row) => typeof row[name] === "string" && row[name].includes(":"));
  return TIMES.find((name) => names.includes(name) && isTime(name)) ?? names.find((name) => isDate(name) && isTime(name));
}

/** Answers a statement, and shows its rows. @param {string} text */
export async function runSql(text) {
  const run = ++runs;
  if (job) ask("stop", { job }).catch(() => {});
  job = 0;
  view.sql = text;
  remember();
  answer = null;
  if (!text.trim()) return showAnswer("");
  const from = performance.now();
  showAnswer("running…");
  try {
    let state = await ask("sql", { text });
    for (let pause = 30; !state.done; pause = Math.min(500, pause * 1.5)) {
      job = state.job;
      if (run !== runs) return;
      await sleep(pause);
      state = await ask("sql", { job: state.job });
    }
    answer = { rows: state.answer.lines.slice(0, MOST_ROWS).map(readLine), notes: state.answer.notes, problem: "", time: performance.now() - from };
  } catch (error) {
    if (run !== runs) return;
    answer = { rows: [], notes: [], problem: String(error instanceof Error ? error.message : error), time: 0 };
  }
  if (run !== runs) return;
  job = 0;
  showAnswer("");
}

/** Ends what is running. */
function stop() {
  runs++;
  if (job) ask("stop", { job }).catch(() => {});
  job = 0;
  showAnswer("stopped");
}

/** Shows the statement and its rows. */
export const showSql = () => showAnswer(job ? "running…" : "");

/** The table of an answer. @param {Record<string, any>[]} rows */
function tableOf(rows) {
  const names = Object.keys(rows[0] ?? {});
  const time = timeColumn(rows, names);
  const isNumber = names.map((name) => rows.every((row) => row[name] === null || typeof row[name] === "number" || /^-?\d+$/.test(row[name])));
  const head = names.map((name, at) => make("th", name, { scope: "col", class: isNumber[at] ? "number" : "", dir: "auto" }));
  const body = rows.map((row) => make("tr", names.map((name, at) => {
    const when = name === time ? timeOf(row[name]) : null;
    if (when === null) return make("td", name === "dur" && typeof row[name] === "number" && row[name] >= 0 ? duration(row[name]) : words(row[name]), { class: isNumber[at] ? "number" : "", dir: "auto" });
    const go = button(format(when, view.zone, scene.begin), () => {
      const long = timeOf(row.dur);
      if (long !== null && long > 0n) actions.area(when, when + long);
      view.tab = "sql";
      actions.reveal(when);
    });
    go.title = "Show this time";
    return make("td", go);
  })));
  return make("table", [make("thead", make("tr", head)), make("tbody", body)], { "aria-label": "Rows" });
}

/** @param {string} state */
function showAnswer(state) {
  if (view.tab !== "sql") return;
  const old = /** @type {HTMLTextAreaElement|null} */ (document.getElementById("sql"));
  const text = /** @type {HTMLTextAreaElement} */ (make("textarea", undefined, {
    id: "sql", rows: "3", "aria-label": "SQL", spellcheck: "false", autocomplete: "off", placeholder: "SELECT event, count(*) AS n FROM events GROUP BY event ORDER BY n DESC",
  }));
  text.value = old && old.value !== "" && document.activeElement === old ? old.value : view.sql;
  const isFocused = old !== null && document.activeElement === old;
  const [from, to] = [old?.selectionStart ?? 0, old?.selectionEnd ?? 0];
  text.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    runSql(text.value);
  });
  const rows = answer?.rows ?? [];
  const parts = [
    text,
    make("div", [
      button("Run", () => runSql(text.value)), state === "running…" ? button("Stop", stop) : null,
      button("Tables", () => runSql("SHOW TABLES")), rows.length ? button("Copy as CSV", copyTable) : null,
      make("span", state || (answer && !answer.problem ? `${number(rows.length)} ${rows.length === 1 ? "row" : "rows"} in ${duration(Math.round(answer.time) * 1e6)}` : "Ctrl+Enter runs it. A statement sees the recordings as the command opens them, not their filters or moves."), { class: "soft", role: "status" }),
    ], { class: "tools" }),
    ...(answer?.problem ? [make("pre", answer.problem, { class: "bad" })] : []),
    ...(answer?.notes ?? []).map((note) => make("div", note, { class: "bad" })),
    ...(rows.length ? [tableOf(rows)] : []),
  ];
  panel.replaceChildren(...parts.filter((part) => part !== null));
  if (isFocused) {
    text.focus();
    text.setSelectionRange(from, to);
  }
}

/** Shows the panel, ready to type. */
export function writeSql() {
  const text = document.getElementById("sql");
  if (text instanceof HTMLTextAreaElement) text.focus();
}
