// The interactive page of `kymo rrd graph -a HTML`: it loads nothing, shows values, zooms, hides series.

import assert from "node:assert/strict";
import { join } from "node:path";
import { before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { look, run, theBrowser, work } from "./harness.mjs";

const HOSTILE = "</script><img src=x onerror=alert(1)>";

before(() => {
  run("rrd", "create", "load.rrd", "--start", "999999960", "--step", "60", "DS:v:GAUGE:120:U:U", "RRA:AVERAGE:0.5:1:100");
  const readings = Array.from({ length: 60 }, (_, at) => `${1000000020 + at * 60}:${at === 30 ? "U" : at}`);
  run("rrd", "update", "load.rrd", ...readings);
  run("rrd", "graph", "load.html", "-a", "HTML", "--start", "1000000020", "--end", "1000003560", "DEF:v=load.rrd:v:AVERAGE",
    "CDEF:w=v,2,*", "AREA:v#7fbf7f:load", `LINE2:w#0000ff:${HOSTILE}`);
});

/** What the table of a chart shows. */
const rows = () => [...document.querySelectorAll("figure table tr")].slice(1).map((row) => ({
  name: row.querySelector("button").textContent,
  isShown: row.querySelector("button").getAttribute("aria-pressed"),
  values: [...row.querySelectorAll("td")].slice(1).map((cell) => cell.textContent),
}));

test("the page of a graph works without a network", async () => {
  const context = await theBrowser().newContext({ viewport: { width: 900, height: 600 } });
  const page = await context.newPage();
  const problems = [];
  const asked = [];
  page.on("pageerror", (error) => problems.push(String(error)));
  page.on("console", (message) => message.type() === "error" && problems.push(message.text()));
  page.on("request", (request) => asked.push(request.url()));
  const address = pathToFileURL(join(work, "load.html")).href;
  await page.goto(address);
  await page.waitForFunction(() => document.querySelector("figure.live table tr td:nth-child(2)")?.textContent);

  const all = await look(page, rows);
  assert.deepEqual(all.map((row) => row.name), ["load", HOSTILE]);
  assert.equal(all[0].values[2], "59");
  assert.equal(all[1].values[2], "118");

  // Values under the pointer.
  const box = await page.locator("figure canvas").boundingBox();
  await page.mouse.move(box.x + box.width * 0.75, box.y + box.height / 2);
  await page.waitForFunction(() => document.querySelector("figure .tip")?.textContent.includes("load: "));
  const [first, second] = await look(page, () => [...document.querySelectorAll("figure .tip div")].slice(1).map((line) => Number(line.textContent.split(": ").at(-1))));
  assert.equal(second, 2 * first);

  // A closer look has other extremes, and all of it has the first ones.
  await page.focus("figure canvas");
  for (let times = 0; times < 3; times++) await page.keyboard.press("+");
  await page.waitForFunction(() => document.querySelector("figure table tr:nth-child(2) td:nth-child(2)").textContent !== "0");
  await page.keyboard.press("0");
  await page.waitForFunction((value) => document.querySelector("figure table tr:nth-child(2) td:nth-child(2)").textContent === value, all[0].values[0]);

  // A series that is hidden is not read any longer.
  await page.click("figure table tr:nth-child(3) button");
  await page.waitForFunction(() => document.querySelector("figure table tr:nth-child(3) button").getAttribute("aria-pressed") === "false");
  await page.mouse.move(box.x + box.width * 0.7, box.y + box.height / 2);
  await page.waitForFunction(() => document.querySelectorAll("figure .tip div").length === 2);

  assert.deepEqual(problems, []);
  assert.deepEqual(asked, [address]);
  await context.close();
});
