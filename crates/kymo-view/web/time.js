// Times are BigInt nanoseconds, durations numbers of nanoseconds.

/** @type {[number, string][]} */
const UNITS = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]];

/** A duration as people read it. @param {number} ns @returns {string} */
export function duration(ns) {
  const size = Math.abs(ns);
  if (size >= 365.25 * 86400e9 * 2) return `${trim(ns / (365.25 * 86400e9))} y`;
  if (size >= 86400e9 * 2) return `${trim(ns / 86400e9)} d`;
  if (size >= 3600e9 * 2) return `${trim(ns / 3600e9)} h`;
  if (size >= 120e9) return `${trim(ns / 60e9)} min`;
  const [length, unit] = UNITS.find(([length]) => size >= length) ?? UNITS[3];
  return `${trim(ns / length)} ${unit}`;
}

/** A number in at most so many significant digits. @param {number} value @returns {string} */
export function number(value, digits = 6) {
  if (value === null || value === undefined) return "–";
  if (Number.isInteger(value) && Math.abs(value) < 1e15) return value.toLocaleString("en-US").replaceAll(",", "\u202f");
  return String(Number(value.toPrecision(digits)));
}

const trim = (/** @type {number} */ value) => String(Number(value.toPrecision(6)));
const two = (/** @type {number} */ value) => String(value).padStart(2, "0");

/** The nanoseconds of a time behind its last second. @param {bigint} time */
const below = (time) => Number(((time % 1000000000n) + 1000000000n) % 1000000000n);

/**
 * A time in a zone: `local`, `utc`, or `relative` to an origin. `digits` of the second are shown.
 * @param {bigint} time @param {string} zone @param {bigint} origin
 */
export function format(time, zone, origin, digits = 9, date = true) {
  if (zone === "relative") {
    const from = time - origin;
    const size = from < 0n ? -from : from;
    const text = String(size).padStart(10, "0");
    const fraction = digits ? "." + text.slice(-9).slice(0, digits) : "";
    return `${from < 0n ? "−" : "+"}${text.slice(0, -9)}${fraction} s`;
  }
  const fraction = below(time);
  const seconds = Number((time - BigInt(fraction)) / 1000000000n);
  const at = new Date(seconds * 1000);
  if (Number.isNaN(at.getTime())) return `${time} ns`;
  const utc = zone === "utc";
  const parts = utc
    ? [at.getUTCFullYear(), at.getUTCMonth() + 1, at.getUTCDate(), at.getUTCHours(), at.getUTCMinutes(), at.getUTCSeconds()]
    : [at.getFullYear(), at.getMonth() + 1, at.getDate(), at.getHours(), at.getMinutes(), at.getSeconds()];
  const day = `${parts[0]}-${two(parts[1])}-${two(parts[2])}`;
  const clock = `${two(parts[3])}:${two(parts[4])}:${two(parts[5])}`;
  const rest = digits ? "." + String(fraction).padStart(9, "0").slice(0, digits) : "";
  return `${date ? day + " " : ""}${clock}${rest}`;
}

/** Steps of a calendar, in months, and about how long a month is, in nanoseconds. */
const MONTHS = [1, 3, 6, 12, 24, 60, 120, 240, 600, 1200, 6000, 12000];
const MONTH = 365.2425 / 12 * 86400e9;

/** The beginnings of months from a time on, in which zone. @param {bigint} begin @param {number} span @param {number} months @param {boolean} isUtc */
function monthsFrom(begin, span, months, isUtc) {
  const list = [];
  const from = new Date(Number(begin / 1000000n));
  const year = isUtc ? from.getUTCFullYear() : from.getFullYear();
  const own = year * 12 + (isUtc ? from.getUTCMonth() : from.getMonth());
  const end = begin + BigInt(Math.ceil(span));
  for (let month = Math.floor(own / months) * months; list.length < 200; month += months) {
    // Years below 100 would be those of the last century.
    const at = new Date(0);
    if (isUtc) at.setUTCFullYear(Math.floor(month / 12), month % 12, 1);
    else {
      at.setFullYear(Math.floor(month / 12), month % 12, 1);
      at.setHours(0, 0, 0, 0);
    }
    if (Number.isNaN(at.getTime())) break;
    const time = BigInt(at.getTime()) * 1000000n;
    if (time > end) break;
    if (time >= begin) list.push(time);
  }
  return list;
}

/**
 * Where the marks of a ruler are: at most so many, at round times.
 * @param {bigint} begin @param {number} span @param {number} most
 * @param {number} given the step, if it is known
 */
export function ticks(begin, span, most, zone = "utc", origin = 0n, given = 0) {
  const least = span / Math.max(1, most);
  let step = given || 1;
  const days = [1, 2, 5, 10, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800, 2592000, 7776000, 31536000, 157680000, 315360000, 630720000, 1576800000, 3153600000];
  if (given) step = given;
  else if (least > 1e9) step = (days.find((seconds) => seconds * 1e9 >= least) ?? days.at(-1) ?? 1) * 1e9;
  else {
    step = 10 ** Math.ceil(Math.log10(Math.max(1, least)));
    if (step / 5 >= least && step >= 5) step /= 5;
    else if (step / 2 >= least && step >= 2) step /= 2;
  }
  if (step > 20 * 86400e9 && zone !== "relative") {
    const months = MONTHS.find((months) => months * MONTH >= least) ?? 12000;
    const list = monthsFrom(begin, span, given ? Math.round(given / MONTH) || 1 : months, zone === "utc");
    return { list, step: given || months * MONTH, digits: 0 };
  }
  const length = BigInt(Math.max(1, Math.round(step)));
  let base = origin;
  if (zone !== "relative") base = zone === "local" && step >= 3600e9 ? BigInt(new Date(Number(begin / 1000000n)).getTimezoneOffset() || 0) * 60000000000n : 0n;
  const offset = begin - base;
  let at = base + (offset / length) * length;
  if (at < begin) at += length;
  const list = [];
  const end = begin + BigInt(Math.ceil(span));
  for (; at <= end && list.length < 200; at += length) list.push(at);
  const digits = step >= 1e9 ? 0 : Math.min(9, Math.ceil(9 - Math.log10(step)));
  return { list, step, digits };
}
