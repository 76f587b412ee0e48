// The page in Chromium, on recordings of all kinds. `cargo xtask view-tests` runs it; KYMO is the program.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { before, test } from "node:test";
import { format, ticks } from "../web/time.js";
import { act, copy, look, open, press, run, serve, servers, settled, theBrowser, work } from "./harness.mjs";

before(() => {
  copy("examples/lttng-small", "trace");
  copy("examples/lttng-discarded", "lossy");
  copy("fuzz/corpus/cpel/le_basic", "log.cpel");
  copy("fuzz/corpus/collectd_capture/pcapng", "metrics.pcap");
  const events = [{ ph: "M", name: "thread_name", pid: 1, tid: 2, args: { name: "<img src=x onerror=alert(1)>\u202e" } }];
  for (let at = 0; at < 50; at++) {
    events.push({ ph: "X", pid: 1, tid: 2, ts: at * 100, dur: 80, name: "outer" }, { ph: "X", pid: 1, tid: 2, ts: at * 100 + 10, dur: 20, name: "inner" });
    events.push({ ph: "C", pid: 1, name: "memory", ts: at * 100, args: { used: at % 7 } });
  }
  writeFileSync(join(work, "app.json"), JSON.stringify({ traceEvents: events }));
  run("rrd", "create", "load.rrd", "--start", "999999960", "--step", "60", "DS:v:GAUGE:120:U:U", "RRA:AVERAGE:0.5:1:100", "RRA:MAX:0.5:10:20");
  run("rrd", "update", "load.rrd", "1000000020:1", "1000000080:2", "1000000140:5", "1000000200:U", "1000000260:4", "1000000320:2");
});

test("all kinds of recordings are on one time line", async () => {
  const page = await open(await serve("trace", "log.cpel", "load.rrd", "metrics.pcap", "app.json"));
  const shown = await look(page, () => ({ tracks: kymo.scene.tracks.length, recordings: kymo.scene.info.recordings.length, rows: kymo.rows().length, bins: kymo.drawn.bins }));
  assert.equal(shown.recordings, 5);
  assert.ok(shown.tracks > 5 && shown.rows > shown.tracks && shown.bins > 0, JSON.stringify(shown));
  // They lie years apart: each is shown in turn, and has painted something on a track of its own.
  for (const [recording, kind] of [[0, "ctf"], [1, "cpel"], [2, "rrd"], [3, "collectd"], [4, "chrome"]]) {
    await look(page, (recording) => {
      const own = kymo.scene.tracks.filter((track) => track.recording === recording && track.rows);
      const [first, last] = [own.map((track) => track.first).sort()[0], own.map((track) => track.last).sort().at(-1)];
      kymo.actions.fit(first, last > first ? last : first + 1000000n);
      kymo.view.scroll = Math.max(0, kymo.rows().find((row) => row.recording === recording).top);
    }, recording);
    await settled(page);
    const painted = await look(page, (recording) => {
      const canvas = document.getElementById("tracks");
      const ratio = canvas.width / canvas.clientWidth;
      const pen = canvas.getContext("2d");
      const rows = kymo.rows().filter((row) => row.track && row.recording === recording && row.track.rows);
      return rows.map((row) => {
        // Without the line below the row, and the scale at the right.
        const top = Math.round((row.top - kymo.view.scroll + 2) * ratio);
        const pixels = pen.getImageData(0, top, canvas.width * 0.8, Math.max(1, Math.round((row.height - 4) * ratio))).data;
        let count = 0;
        for (let at = 3; at < pixels.length; at += 4) count += pixels[at] > 60 ? 1 : 0;
        return count;
      });
    }, recording);
    assert.ok(painted.length > 0 && painted.some((count) => count > 0), `${kind}: ${painted}`);
  }
  await page.close();
});

test("instants are drawn where they are, at any zoom", async () => {
  const page = await open(await serve("trace"));
  for (const keys of [[], ["w", "w", "w"], ["w", "w", "w", "w", "w", "w"]]) {
    for (const key of keys) await page.keyboard.press(key);
    await settled(page);
    const wrong = await look(page, () => {
      const canvas = document.getElementById("tracks");
      const ratio = canvas.width / canvas.clientWidth;
      const pen = canvas.getContext("2d");
      let painted = 0;
      for (const row of kymo.rows().filter((row) => row.track)) {
        const y = Math.round((row.top - kymo.view.scroll + row.height - 5) * ratio);
        const pixels = pen.getImageData(0, y, canvas.width, 1).data;
        for (let at = 3; at < pixels.length; at += 4) painted += pixels[at] > 200 ? 1 : 0;
      }
      return { painted, bins: kymo.drawn.bins };
    });
    assert.equal(wrong.painted > 0, wrong.bins > 0, JSON.stringify(wrong));
  }
  await page.close();
});

test("the keyboard moves, zooms, selects, and undoes", async () => {
  const page = await open(await serve("trace"));
  await page.focus("#tracks");
  const all = await look(page, () => ({ begin: String(kymo.view.begin), span: kymo.view.span }));
  await page.keyboard.press("w");
  assert.ok((await look(page, () => kymo.view.span)) < all.span);
  await settled(page);
  await page.keyboard.press("Control+z");
  assert.equal(await look(page, () => kymo.view.span), all.span);
  await page.keyboard.press("Control+y");
  assert.ok((await look(page, () => kymo.view.span)) < all.span);
  await page.keyboard.press("0");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  const times = [];
  for (let step = 0; step < 5; step++) {
    await page.keyboard.press(".");
    await page.waitForFunction((before) => `${kymo.view.event?.time} ${kymo.view.event?.nth}` !== before, times.at(-1) ?? "undefined undefined");
    times.push(await look(page, () => `${kymo.view.event?.time} ${kymo.view.event?.nth}`));
  }
  assert.equal(new Set(times).size, 5, times.join());
  await page.keyboard.press(",");
  await page.waitForFunction((wanted) => `${kymo.view.event?.time} ${kymo.view.event?.nth}` === wanted, times[3]);
  assert.match(await page.textContent("#panel"), /timestamp/);
  await page.keyboard.press("m");
  await page.keyboard.press("d");
  await page.keyboard.press("?");
  assert.match(await page.textContent("dialog"), /Zoom in/);
  await page.keyboard.press("Escape");
  await page.keyboard.press(">");
  await page.keyboard.type("health");
  await page.keyboard.press("Enter");
  assert.equal(await look(page, () => kymo.view.tab), "health");
  await page.keyboard.press("Control+p");
  assert.equal(await page.locator("dialog li").count(), 2);
  await page.close();
});

test("a ruler of years has marks where years begin", () => {
  const begin = BigInt(Date.parse("1968-11-11T00:00:00Z")) * 1000000n;
  const years = (/** @type {number} */ span) => {
    const { list, step } = ticks(begin, span, 8, "utc");
    const again = ticks(begin, span, 8, "utc", 0n, step).list;
    assert.deepEqual(again, list);
    return list.map((at) => format(at, "utc", 0n, 0).slice(0, 10));
  };
  assert.deepEqual(years(59 * 365.25 * 86400e9), ["1970-01-01", "1980-01-01", "1990-01-01", "2000-01-01", "2010-01-01", "2020-01-01"]);
  assert.deepEqual(years(200 * 86400e9), ["1968-12-01", "1969-01-01", "1969-02-01", "1969-03-01", "1969-04-01", "1969-05-01"]);
});

test("a search counts, marks and walks its hits", async () => {
  const page = await open(await serve("trace"));
  await page.keyboard.press("/");
  await page.keyboard.type("sched");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => kymo.search.done && kymo.view.event);
  assert.equal(await look(page, () => kymo.search.count), 600);
  assert.match(await page.textContent("#hits"), /600 hits/);
  const first = await look(page, () => String(kymo.view.event.time));
  await page.keyboard.press("Enter");
  await page.waitForFunction((first) => String(kymo.view.event.time) !== first, first);
  await page.selectOption("#mode", "where");
  await page.fill("#text", "no_such_field > 1");
  await page.press("#text", "Enter");
  await page.waitForSelector("dialog[open]");
  assert.match(await page.textContent("dialog"), /no_such_field/);
  await page.close();
});

test("an area has statistics, and events are a table", async () => {
  const page = await open(await serve("app.json"));
  assert.equal(await look(page, () => kymo.drawn.slices), 100);
  await page.mouse.move(400, 420);
  await page.mouse.down();
  await page.mouse.move(1100, 430, { steps: 4 });
  await page.mouse.up();
  await page.waitForSelector("#panel tbody tr");
  const table = await page.textContent("#panel");
  assert.match(table, /outer/);
  assert.match(table, /80 µs/);
  await page.click("#tab-events");
  // The table of statistics is there until the events are.
  await page.waitForFunction(() => document.querySelectorAll("#panel tbody tr").length >= 50);
  await page.close();
});

test("a database is drawn with what is unknown", async () => {
  const page = await open(await serve("load.rrd"));
  const shown = await look(page, () => ({ tracks: kymo.scene.tracks.map((track) => track.path.at(-1)), unknown: kymo.drawn.unknown, scales: kymo.drawn.scales }));
  assert.equal(shown.tracks[0], "v");
  assert.deepEqual(shown.scales[0], [0, 5]);
  assert.ok(shown.unknown > 0);
  await page.close();
});

test("names of recordings are text, whatever is in them", async () => {
  const page = await open(await serve("app.json"));
  assert.equal(await page.locator("img").count(), 0);
  assert.ok((await page.textContent("#labels")).includes("<img src=x onerror=alert(1)>"));
  await page.close();
});

test("losses are hatched", async () => {
  const page = await open(await serve("lossy"));
  const shown = await look(page, () => ({ notices: kymo.scene.notices.length, hatched: kymo.drawn.hatched }));
  assert.ok(shown.notices > 0 && shown.hatched > 0, JSON.stringify(shown));
  await page.close();
});

test("a link holds the view", async () => {
  const page = await open(await serve("trace"));
  for (const key of ["w", "w", "d"]) await page.keyboard.press(key);
  await page.fill("#filter", "r_1");
  await settled(page);
  const view = await look(page, () => [String(kymo.view.begin), kymo.view.span, kymo.view.filter, kymo.rows().length]);
  const other = await open(page.url());
  assert.deepEqual(await look(other, () => [String(kymo.view.begin), kymo.view.span, kymo.view.filter, kymo.rows().length]), view);
  const broken = await open(page.url().replace(/#.*/, "#%7B%22span%22%3A%22x%22%2C%22marks%22%3A%5B1%5D%7D"));
  assert.ok((await look(broken, () => kymo.drawn.bins)) > 0);
});

test("small and large, light and dark", async () => {
  const address = await serve("trace", "log.cpel", "app.json");
  for (const [width, height, colorScheme] of [[360, 640, "light"], [3840, 2160, "dark"]]) {
    const page = await open(address, { viewport: { width, height }, colorScheme });
    assert.ok(await look(page, () => document.documentElement.scrollWidth <= innerWidth && kymo.drawn.bins > 0));
    await page.close();
  }
});

test("another site gets nothing, and the server ends with its last page", async () => {
  const address = await serve("trace");
  const server = servers.at(-1);
  const page = await open(address);
  const other = await theBrowser().newPage();
  await other.goto("data:text/html,<p>other</p>");
  const answer = await other.evaluate((address) => fetch(address).then(() => "read", (error) => error.name), address);
  assert.equal(answer, "TypeError");
  await other.close();
  const ended = new Promise((done) => server.once("exit", done));
  await page.close({ runBeforeUnload: true });
  const late = new Promise((done) => setTimeout(() => done("late"), 120000).unref());
  assert.equal(await Promise.race([ended, late]), 0);
});
