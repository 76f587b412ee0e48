"use strict";
// Charts of a page: hover, zoom and pan, series that can be hidden. All data is in the page; nothing is loaded.
(() => {
  const NS = 1e9;
  const charts = [];
  /** The part of time that all charts show, as nanoseconds from 1970 or a clock's zero; null for all of it. */
  let view = null;
  let frame = 0;

  const element = (name, text, parent) => {
    const made = document.createElement(name);
    if (text !== undefined) made.textContent = text;
    if (parent) parent.append(made);
    return made;
  };
  const colours = () => {
    const style = getComputedStyle(document.documentElement);
    const property = (name) => style.getPropertyValue(name).trim();
    return { text: property("--text"), faint: property("--faint"), soft: property("--soft"), loss: property("--loss"), unknown: property("--unknown") };
  };

  const PREFIXES = ["a", "f", "p", "n", "µ", "m", "", "k", "M", "G", "T", "P", "E"];
  const short = (value, base = 1000) => {
    if (value === 0) return "0";
    if (!Number.isFinite(value)) return "unknown";
    let power = Math.floor(Math.log(Math.abs(value)) / Math.log(base) + 1e-9);
    power = Math.max(-6, Math.min(6, power));
    const scaled = value / base ** power;
    if (Math.abs(scaled) >= 1e6) return value.toExponential(2);
    return String(Number(scaled.toPrecision(4))) + (PREFIXES[power + 6] ? " " + PREFIXES[power + 6] : "");
  };

  /** Seconds that local time is ahead at a time. */
  const offset = (chart, seconds) => {
    let found = 0;
    for (const [from, ahead] of chart.data.offsets) if (from === null || seconds >= from) found = ahead;
    return found;
  };
  const pad = (number, digits = 2) => String(number).padStart(digits, "0");
  /** A time in words, as exactly as a step asks. */
  const time = (chart, nanos, step, short) => {
    if (chart.data.relative) {
      const digits = Math.max(0, Math.min(9, Math.ceil(9 - Math.log10(Math.max(step, 1)) - 1e-9)));
      return (nanos / NS).toFixed(digits) + " s";
    }
    const whole = chart.origin / 1000000000n;
    let seconds = Number(whole) + Math.floor((Number(chart.origin % 1000000000n) + nanos) / NS);
    const rest = (((Number(chart.origin % 1000000000n) + nanos) % NS) + NS) % NS;
    const date = new Date((seconds + offset(chart, seconds)) * 1000);
    if (Number.isNaN(date.getTime())) return "";
    const day = `${date.getUTCFullYear()}-${pad(date.getUTCMonth() + 1)}-${pad(date.getUTCDate())}`;
    const clock = `${pad(date.getUTCHours())}:${pad(date.getUTCMinutes())}`;
    const second = `:${pad(date.getUTCSeconds())}`;
    const digits = Math.max(1, Math.min(9, Math.ceil(9 - Math.log10(Math.max(step, 1)) - 1e-9)));
    const part = step < NS ? "." + pad(Math.floor(rest), 9).slice(0, digits) : "";
    if (!short) return `${day} ${clock}${step < 60 * NS ? second : ""}${part}`;
    if (step >= 28 * 86400 * NS) return day.slice(0, 7);
    if (step >= 86400 * NS || (clock === "00:00" && step >= 60 * NS)) return day.slice(5);
    return step < 60 * NS ? clock.slice(3) + second + part : clock;
  };
  const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800,
    1209600, 2678400, 8035200, 16070400, 32140800];
  const niceStep = (wanted) => {
    const power = 10 ** Math.floor(Math.log10(wanted));
    return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= wanted * 0.999999);
  };
  const timeTicks = (chart, begin, end, most) => {
    const wanted = (end - begin) / Math.max(most, 2);
    const isFine = chart.data.relative || wanted < NS / 2;
    const step = isFine ? Math.max(niceStep(wanted), 1) : (STEPS.find((step) => step * NS >= wanted) ?? 32140800) * NS;
    const base = Number(chart.origin % BigInt(86400 * NS));
    const seconds = Number(chart.origin / 1000000000n) + begin / NS;
    const shift = chart.data.relative ? Number(chart.origin) : base + offset(chart, seconds) * NS;
    const ticks = [];
    for (let at = Math.ceil((begin + shift) / step) * step; at <= end + shift && ticks.length < 200; at += step) {
      ticks.push([at - shift, time(chart, chart.data.relative ? at : at - shift, step, true)]);
    }
    return ticks;
  };

  /** Curves come with equal steps, or with a time for each value. */
  const unpack = (data) => {
    for (const curve of data.curves) {
      const { first, step, tick } = curve;
      if (step !== undefined) curve.x = curve.y.map((_, at) => first + at * step);
      curve.x = curve.x.map((x) => x * tick);
      const width = curve.w ?? step ?? 0;
      curve.w = Array.isArray(width) ? width.map((length) => length * tick) : width * tick;
      if (curve.isConnected) {
        const known = curve.y.map((y, at) => (y === null ? -1 : at)).filter((at) => at >= 0);
        for (const key of ["x", "y", "low", "high"]) if (curve[key]) curve[key] = known.map((at) => curve[key][at]);
        if (Array.isArray(curve.w)) curve.w = known.map((at) => curve.w[at]);
      }
      curve.isShown = true;
    }
  };
  const widthAt = (curve, at) => (Array.isArray(curve.w) ? curve.w[at] : curve.w);
  /** Position of the last value at a time or before. */
  const before = (curve, at) => {
    let [low, high] = [0, curve.x.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (curve.x[middle] <= at) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  };
  /** What is known at a time: the position of a value, or -1. */
  const at = (curve, when, reach) => {
    const place = before(curve, when);
    const candidates = [place, place + 1].filter((at) => at >= 0 && at < curve.x.length);
    for (const at of candidates) if (when >= curve.x[at] && when < curve.x[at] + widthAt(curve, at)) return curve.y[at] === null ? -1 : at;
    let best = -1;
    for (const at of candidates) {
      if (curve.y[at] === null || widthAt(curve, at) > 0) continue;
      const far = Math.abs(curve.x[at] - when);
      if (far <= reach && (best < 0 || far < Math.abs(curve.x[best] - when))) best = at;
    }
    return best;
  };

  /** Values as they are drawn: what is stacked stands on what is below. */
  const stack = (chart) => {
    let sums = [];
    for (const curve of chart.data.curves) {
      curve.top = curve.y;
      curve.base = null;
      if (curve.kind === "tick") continue;
      if (!curve.stack) sums = [];
      const base = curve.stack ? sums.slice() : null;
      if (curve.isShown) {
        for (let at = 0; at < curve.y.length; at++) if (curve.y[at] !== null) sums[at] = (sums[at] ?? 0) + curve.y[at];
      }
      if (!curve.stack || !curve.isShown) continue;
      curve.base = base;
      curve.top = curve.y.map((y, at) => (y === null ? null : (base[at] ?? 0) + y));
    }
  };

  const range = (chart) => {
    const [begin, end] = [0, chart.data.length];
    if (!view) return [begin, end];
    const from = Number(view[0] - chart.origin);
    const to = Number(view[1] - chart.origin);
    return to > from ? [from, to] : [begin, end];
  };
  const setView = (chart, begin, end) => {
    const least = Math.max(chart.data.length * 1e-9, 10);
    if (!(end - begin >= least)) [begin, end] = [(begin + end - least) / 2, (begin + end + least) / 2];
    const most = chart.data.length * 4;
    if (end - begin > most) return;
    view = [chart.origin + BigInt(Math.round(begin)), chart.origin + BigInt(Math.round(end))];
    redraw();
  };
  const reset = () => {
    view = null;
    redraw();
  };

  const scale = (chart, begin, end) => {
    const { data } = chart;
    let [low, high] = [Infinity, -Infinity];
    const take = (value) => {
      if (!Number.isFinite(value) || (data.log && value <= 0)) return;
      low = Math.min(low, value);
      high = Math.max(high, value);
    };
    for (const curve of data.curves) {
      if (!curve.isShown || curve.kind === "tick" || curve.isUnscaled) continue;
      const from = Math.max(0, before(curve, begin));
      for (let at = from; at < curve.x.length && curve.x[at] <= end; at++) {
        if (curve.top[at] === null) continue;
        take(curve.low ? curve.low[at] : curve.top[at]);
        take(curve.high ? curve.high[at] : curve.top[at]);
      }
    }
    if (low > high) [low, high] = data.log ? [1, 10] : [0, 1];
    else if (!data.log && data.curves.some((curve) => curve.isShown && curve.kind === "area")) take(0);
    if (low === 0 && high === 0) high = 1;
    if (!data.log) {
      const isFar = high - low < 0.2 * Math.max(Math.abs(low), Math.abs(high)) && high > low;
      const room = (high - low) * (isFar ? 0.1 : 0.05);
      [low, high] = isFar ? [low - room, high + room] : [Math.min(low, 0) * 1.05, Math.max(high, 0) * 1.05];
      if (low === high) [low, high] = [low - (Math.abs(low) || 1) * 0.1, high + (Math.abs(high) || 1) * 0.1];
    }
    if (data.low !== null && !(data.log && data.low <= 0)) low = data.isRigid ? data.low : Math.min(low, data.low);
    if (data.high !== null) high = data.isRigid ? data.high : Math.max(high, data.high);
    return low < high ? [low, high] : [low, low + 1];
  };

  const draw = (chart) => {
    const { canvas, data } = chart;
    const ratio = window.devicePixelRatio || 1;
    const [width, height] = [canvas.clientWidth, canvas.clientHeight];
    if (!width || !height) return;
    if (canvas.width !== Math.round(width * ratio)) canvas.width = Math.round(width * ratio);
    if (canvas.height !== Math.round(height * ratio)) canvas.height = Math.round(height * ratio);
    const pen = canvas.getContext("2d");
    const theme = colours();
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    pen.font = "11px system-ui, sans-serif";
    const area = { left: 58, right: width - 10, top: 8, bottom: height - 22 };
    const [begin, end] = range(chart);
    const [low, high] = scale(chart, begin, end);
    const log = (value) => (data.log ? Math.log10(Math.max(value, 1e-300)) : value);
    const x = (when) => area.left + ((when - begin) / (end - begin)) * (area.right - area.left);
    const y = (value) => {
      const part = (log(value) - log(low)) / (log(high) - log(low));
      return area.bottom - Math.max(-1, Math.min(2, part)) * (area.bottom - area.top);
    };
    Object.assign(chart, { area, begin, end, x, y });

    pen.strokeStyle = theme.faint;
    pen.fillStyle = theme.soft;
    pen.lineWidth = 1;
    pen.textBaseline = "middle";
    pen.textAlign = "right";
    const values = [];
    if (data.log) {
      const each = Math.max(1, Math.ceil((log(high) - log(low)) / 8));
      for (let power = Math.ceil(log(low)); power <= log(high); power += each) values.push(10 ** power);
    } else {
      const step = niceStep((high - low) / Math.max(2, (area.bottom - area.top) / 34));
      for (let at = Math.ceil(low / step - 1e-9); at * step <= high && values.length < 60; at++) values.push(at * step);
    }
    for (const value of values) {
      const line = Math.round(y(value)) + 0.5;
      pen.beginPath();
      pen.moveTo(area.left, line);
      pen.lineTo(area.right, line);
      pen.stroke();
      pen.fillText(short(value, data.base), area.left - 5, line);
    }
    pen.textAlign = "center";
    let free = 0;
    for (const [when, text] of timeTicks(chart, begin, end, (area.right - area.left) / 90)) {
      const line = Math.round(x(when)) + 0.5;
      pen.beginPath();
      pen.moveTo(line, area.top);
      pen.lineTo(line, area.bottom);
      pen.stroke();
      const half = pen.measureText(text).width / 2;
      if (line - half < free || line + half > width) continue;
      pen.fillText(text, line, height - 9);
      free = line + half + 8;
    }

    pen.save();
    pen.beginPath();
    pen.rect(area.left, area.top, area.right - area.left, area.bottom - area.top);
    pen.clip();
    for (const curve of data.curves) if (curve.isShown) drawCurve(chart, pen, curve);
    for (const when of data.losses) {
      pen.fillStyle = theme.loss;
      const line = x(when);
      pen.globalAlpha = 0.25;
      pen.fillRect(line - 0.5, area.top, 1, area.bottom - area.top);
      pen.globalAlpha = 1;
      pen.fillRect(line - 3, area.top, 6, 4);
    }
    for (const rule of data.rules) {
      pen.strokeStyle = rule.colour;
      pen.lineWidth = 1;
      pen.beginPath();
      if (rule.value !== undefined) {
        pen.moveTo(area.left, y(rule.value));
        pen.lineTo(area.right, y(rule.value));
      } else {
        pen.moveTo(x(rule.time), area.top);
        pen.lineTo(x(rule.time), area.bottom);
      }
      pen.stroke();
    }
    if (chart.drag) {
      const [from, to] = chart.drag;
      pen.fillStyle = "#2f7de133";
      pen.fillRect(Math.min(from, to), area.top, Math.abs(to - from), area.bottom - area.top);
    }
    if (chart.hover !== null && chart.hover >= begin && chart.hover <= end) {
      pen.strokeStyle = theme.text;
      pen.lineWidth = 1;
      pen.setLineDash([3, 3]);
      const line = Math.round(x(chart.hover)) + 0.5;
      pen.beginPath();
      pen.moveTo(line, area.top);
      pen.lineTo(line, area.bottom);
      pen.stroke();
      pen.setLineDash([]);
      for (const [curve, place] of hovered(chart)) {
        if (curve.kind === "tick") continue;
        pen.fillStyle = curve.colour;
        pen.beginPath();
        pen.arc(line, y(curve.top[place]), 3, 0, 2 * Math.PI);
        pen.fill();
      }
    }
    pen.restore();
    if (!data.curves.some((curve) => curve.y.some((y) => y !== null))) {
      pen.fillStyle = theme.soft;
      pen.fillText("no data in this range", (area.left + area.right) / 2, (area.top + area.bottom) / 2);
    }
  };

  const drawCurve = (chart, pen, curve) => {
    const { x, y, area, begin, end } = chart;
    const from = Math.max(0, before(curve, begin) - 1);
    let to = before(curve, end) + 2;
    to = Math.min(to, curve.x.length);
    pen.globalAlpha = curve.alpha;
    pen.strokeStyle = pen.fillStyle = curve.colour;
    pen.lineWidth = Math.max(curve.width, 0.5);
    pen.lineJoin = "round";
    if (curve.kind === "tick") {
      const part = curve.fraction * (area.bottom - area.top);
      for (let at = from; at < to; at++) {
        if (!curve.y[at]) continue;
        const left = x(curve.x[at]);
        const wide = Math.max(1, x(curve.x[at] + widthAt(curve, at)) - left);
        pen.fillRect(left, part < 0 ? area.top : area.bottom - part, wide, Math.abs(part));
      }
      pen.globalAlpha = 1;
      return;
    }
    if (curve.low) {
      pen.globalAlpha = curve.alpha * 0.3;
      for (let at = from; at < to; at++) {
        if (curve.y[at] === null) continue;
        const left = x(curve.x[at]);
        const wide = Math.max(1, x(curve.x[at] + widthAt(curve, at)) - left);
        pen.fillRect(left, y(curve.high[at]), wide, Math.max(0, y(curve.low[at]) - y(curve.high[at])));
      }
      pen.globalAlpha = curve.alpha;
    }
    // Runs of known values; each is a line, or an area above what is below it.
    let run = [];
    const finish = () => {
      if (!run.length) return;
      const points = [];
      for (const at of run) {
        const [left, right] = [curve.x[at], curve.x[at] + widthAt(curve, at)];
        if (curve.isSlope || left === right) points.push([curve.isSlope ? right : left, curve.top[at], at]);
        else points.push([left, curve.top[at], at], [right, curve.top[at], at]);
      }
      pen.beginPath();
      points.forEach(([when, value], place) => (place ? pen.lineTo(x(when), y(value)) : pen.moveTo(x(when), y(value))));
      if (curve.kind === "area") {
        for (const [when, , at] of points.reverse()) pen.lineTo(x(when), y(curve.base ? (curve.base[at] ?? 0) : 0));
        pen.fill();
      } else if (points.length === 1) {
        pen.fillRect(x(points[0][0]) - 1.5, y(points[0][1]) - 1.5, 3, 3);
      } else {
        pen.stroke();
      }
      run = [];
    };
    for (let at = from; at < to; at++) {
      const last = run[run.length - 1];
      const isApart = last !== undefined && curve.gap !== null && curve.x[at] - curve.x[last] - widthAt(curve, last) > curve.gap;
      if (curve.y[at] === null || isApart) finish();
      if (curve.y[at] !== null) run.push(at);
    }
    finish();
    pen.globalAlpha = 1;
  };

  /** The curves that have a value under the cross, with its position. */
  const hovered = (chart) => {
    if (chart.hover === null) return [];
    const reach = (chart.end - chart.begin) / 40;
    const found = [];
    for (const curve of chart.data.curves) {
      const place = curve.isShown && curve.alpha ? at(curve, chart.hover, reach) : -1;
      if (place >= 0) found.push([curve, place]);
    }
    return found;
  };
  const tell = (chart, isSpoken) => {
    const { tip, data } = chart;
    tip.hidden = chart.hover === null;
    if (chart.hover === null) return;
    const step = (chart.end - chart.begin) / 1000;
    tip.replaceChildren();
    const shift = data.relative ? Number(chart.origin) : 0;
    const lines = [time(chart, chart.hover + shift, step, false)];
    element("div", lines[0], tip);
    for (const [curve, place] of hovered(chart)) {
      let text = `${curve.name || "series"}: ${short(curve.y[place], data.base)}`;
      if (curve.low && curve.low[place] < curve.high[place]) {
        text += ` (${short(curve.low[place], data.base)} to ${short(curve.high[place], data.base)})`;
      }
      if (data.unit) text += /[ ]\S$/.test(text) ? data.unit : ` ${data.unit}`;
      const line = element("div", undefined, tip);
      element("i", undefined, line).style.background = curve.colour;
      line.append(text);
      lines.push(text);
    }
    if (lines.length === 1) element("div", "nothing known", tip);
    const left = chart.canvas.offsetLeft + chart.x(chart.hover);
    const isRight = chart.x(chart.hover) > chart.canvas.clientWidth / 2;
    tip.style.top = `${chart.canvas.offsetTop + 12}px`;
    tip.style.left = isRight ? "" : `${left + 12}px`;
    tip.style.right = isRight ? `${chart.figure.clientWidth - left + 12}px` : "";
    if (isSpoken) chart.spoken.textContent = lines.join(", ");
  };

  const statistics = (chart) => {
    const [begin, end] = range(chart);
    chart.rows.forEach(({ row, cells, curve }) => {
      let [low, high, sum, weight, last] = [Infinity, -Infinity, 0, 0, NaN];
      for (let at = Math.max(0, before(curve, begin)); at < curve.x.length && curve.x[at] < end; at++) {
        const value = curve.y[at];
        const wide = widthAt(curve, at);
        if (value === null || curve.x[at] + wide < begin || (wide > 0 && curve.x[at] + wide <= begin)) continue;
        low = Math.min(low, curve.low ? curve.low[at] : value);
        high = Math.max(high, curve.high ? curve.high[at] : value);
        sum += value;
        weight += 1;
        last = value;
      }
      const shown = weight ? [low, sum / weight, high, last] : [NaN, NaN, NaN, NaN];
      shown.forEach((value, place) => (cells[place].textContent = Number.isFinite(value) ? short(value, chart.data.base) : "–"));
      row.classList.toggle("off", !curve.isShown);
      row.querySelector("button").setAttribute("aria-pressed", String(curve.isShown));
    });
  };

  function redraw() {
    if (frame) return;
    frame = requestAnimationFrame(() => {
      frame = 0;
      for (const chart of charts) {
        if (!chart.isVisible) continue;
        draw(chart);
        tell(chart, false);
        if (chart.seen !== String(view)) statistics(chart);
        chart.seen = String(view);
      }
    });
  }

  const pan = (chart, part) => {
    const [begin, end] = range(chart);
    setView(chart, begin + (end - begin) * part, end + (end - begin) * part);
  };
  const zoom = (chart, factor, around) => {
    const [begin, end] = range(chart);
    const middle = around ?? chart.hover ?? (begin + end) / 2;
    setView(chart, middle - (middle - begin) * factor, middle + (end - middle) * factor);
  };
  const hover = (chart, when, isSpoken) => {
    for (const other of charts) {
      other.hover = other === chart ? when : null;
      if (other !== chart) other.tip.hidden = true;
    }
    redraw();
    if (isSpoken) requestAnimationFrame(() => tell(chart, true));
  };
  const stepHover = (chart, by) => {
    const [begin, end] = range(chart);
    const times = new Set();
    for (const curve of chart.data.curves) {
      if (!curve.isShown) continue;
      curve.x.forEach((x, at) => x >= begin && x < end && curve.y[at] !== null && times.add(x + widthAt(curve, at) / 2));
    }
    const sorted = [...times].sort((a, b) => a - b);
    if (!sorted.length) return;
    const now = chart.hover ?? (by > 0 ? -Infinity : Infinity);
    const next = by > 0 ? sorted.find((at) => at > now + 0.5) : sorted.findLast((at) => at < now - 0.5);
    if (next !== undefined) hover(chart, next, true);
  };

  const listen = (chart) => {
    const { canvas } = chart;
    const when = (event) => {
      const [begin, end] = range(chart);
      const { left, right } = chart.area;
      return begin + ((event.offsetX - left) / (right - left)) * (end - begin);
    };
    canvas.addEventListener("pointermove", (event) => {
      if (!chart.area) return;
      if (chart.pan) {
        const { begin, end, x } = chart.pan;
        const by = ((x - event.offsetX) / (chart.area.right - chart.area.left)) * (end - begin);
        setView(chart, begin + by, end + by);
        return;
      }
      if (chart.drag) chart.drag[1] = event.offsetX;
      const [begin, end] = range(chart);
      hover(chart, Math.max(begin, Math.min(end, when(event))), false);
    });
    canvas.addEventListener("pointerleave", () => hover(chart, null, false));
    canvas.addEventListener("pointerdown", (event) => {
      if (event.button > 1 || !chart.area) return;
      canvas.setPointerCapture(event.pointerId);
      const [begin, end] = range(chart);
      if (event.shiftKey || event.button === 1) chart.pan = { x: event.offsetX, begin, end };
      else chart.drag = [event.offsetX, event.offsetX];
    });
    const drop = () => {
      const { drag } = chart;
      chart.drag = chart.pan = null;
      if (drag && Math.abs(drag[1] - drag[0]) > 4) {
        const times = drag.map((x) => when({ offsetX: x })).sort((a, b) => a - b);
        setView(chart, times[0], times[1]);
      }
      redraw();
    };
    canvas.addEventListener("pointerup", drop);
    canvas.addEventListener("pointercancel", () => {
      chart.drag = chart.pan = null;
      redraw();
    });
    canvas.addEventListener("dblclick", reset);
    canvas.addEventListener("wheel", (event) => {
      if (!chart.area) return;
      if (event.ctrlKey || event.metaKey) {
        event.preventDefault();
        zoom(chart, event.deltaY > 0 ? 1.25 : 0.8, when(event));
      } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        event.preventDefault();
        pan(chart, Math.sign(event.deltaX || event.deltaY) * 0.1);
      }
    }, { passive: false });
    canvas.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const keys = {
        ArrowLeft: () => (event.shiftKey ? stepHover(chart, -1) : pan(chart, -0.2)),
        ArrowRight: () => (event.shiftKey ? stepHover(chart, 1) : pan(chart, 0.2)),
        a: () => pan(chart, -0.2), d: () => pan(chart, 0.2),
        w: () => zoom(chart, 0.7), s: () => zoom(chart, 1.4),
        "+": () => zoom(chart, 0.7), "=": () => zoom(chart, 0.7), "-": () => zoom(chart, 1.4),
        ",": () => stepHover(chart, -1), ".": () => stepHover(chart, 1),
        0: reset, f: reset, Home: reset,
        Escape: () => hover(chart, null, false),
      };
      const action = keys[event.key];
      if (!action) return;
      event.preventDefault();
      action();
    });
  };

  const build = (figure) => {
    const source = figure.querySelector("script");
    const data = JSON.parse(source.textContent);
    unpack(data);
    const chart = { figure, data, origin: BigInt(data.origin), hover: null, drag: null, pan: null, isVisible: false };
    const canvas = element("canvas");
    chart.canvas = canvas;
    canvas.tabIndex = 0;
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", `Graph of ${data.title}. Keys: arrows pan, plus and minus zoom, comma and period read values, 0 shows all.`);
    chart.tip = element("div");
    chart.tip.className = "tip";
    chart.tip.hidden = true;
    chart.spoken = element("div");
    chart.spoken.setAttribute("aria-live", "polite");
    Object.assign(chart.spoken.style, { position: "absolute", width: "1px", height: "1px", overflow: "hidden" });
    const table = element("table");
    const head = element("tr", undefined, table);
    for (const name of ["", "min", "avg", "max", "last"]) element("th", name, head);
    chart.rows = data.curves.filter((curve) => curve.name).map((curve) => {
      const row = element("tr", undefined, table);
      const button = element("button", undefined, element("td", undefined, row));
      element("i", undefined, button).style.background = curve.colour;
      button.append(curve.name);
      button.title = curve.name;
      button.addEventListener("click", () => {
        curve.isShown = !curve.isShown;
        chart.seen = undefined;
        stack(chart);
        redraw();
      });
      return { row, curve, cells: [0, 1, 2, 3].map(() => element("td", "", row)) };
    });
    figure.querySelector("figcaption").after(canvas, table);
    figure.append(chart.tip, chart.spoken);
    figure.classList.add("live");
    stack(chart);
    listen(chart);
    charts.push(chart);
    return chart;
  };

  const figures = [...document.querySelectorAll("figure[data-chart]")];
  // Only what is near the window is built and drawn: pages may have thousands of charts.
  const built = new Map();
  const watcher = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      if (isIntersecting && !built.has(target)) built.set(target, build(target));
      const chart = built.get(target);
      if (chart) {
        chart.isVisible = isIntersecting;
        chart.seen = undefined;
      }
    }
    redraw();
  }, { rootMargin: "300px" });
  for (const figure of figures) watcher.observe(figure);
  window.addEventListener("resize", redraw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  document.getElementById("theme").addEventListener("click", () => {
    const root = document.documentElement;
    const isDark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = isDark ? "light" : "dark";
    redraw();
  });
  document.getElementById("all").addEventListener("click", reset);
})();
