// SQL on the page. The program that answers is another one: here a script stands for it, which notes what it is asked.

import assert from "node:assert/strict";
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { before, test } from "node:test";
import { copy, look, open, press, serve, work } from "./harness.mjs";

const PATH = process.env.PATH;

before(() => {
  copy("examples/lttng-small", "trace");
  mkdirSync(join(work, "bin"));
  writeFileSync(join(work, "bin/kymo-query"), `#!/bin/sh
cat > "${work}/asked"
echo "$*" > "${work}/words"
case "$(cat "${work}/asked")" in
  *wrong*) echo "error: there is no table \\\`wrong\\\`" >&2; exit 2;;
  *slow*) exec sleep 600;;
  *many*) i=0; while [ $i -lt 1200 ]; do echo "{\\"n\\":$i,\\"big\\":18446744073709551615}"; i=$((i + 1)); done;;
  *none*) ;;
  *) echo '{"timestamp":"2026-11-21T09:04:23.080000001Z","event":"<b>bold</b>","dur":2000000}';;
esac
`);
  chmodSync(join(work, "bin/kymo-query"), 0o755);
  process.env.PATH = `${join(work, "bin")}:${PATH}`;
});

const panel = (page) => look(page, () => document.getElementById("panel").innerText);
const answered = (page, pattern) => page.waitForFunction((pattern) => new RegExp(pattern).test(document.getElementById("panel").innerText), pattern);

test("a statement has rows, and a time in them is shown", async () => {
  const page = await open(await serve("--no-cache", "--offset", "trace=0s", "--event", "*", "trace"));
  await press(page, ":");
  await page.keyboard.type("SELECT 1 > 0");
  await page.keyboard.press("Control+Enter");
  await page.waitForSelector("#panel td button");
  assert.equal(readFileSync(join(work, "asked"), "utf8"), "SELECT 1 > 0");
  // Only what opens recordings is handed on, before the paths, and nothing may be written.
  assert.match(readFileSync(join(work, "words"), "utf8"), /^--file=- --format=json --read-only --memory=512M --threads=\d+ --offset=trace=0s --clock-gmt -- trace\n$/);
  assert.equal(await page.locator("#panel b").count(), 0);
  assert.match(await panel(page), /<b>bold<\/b>[^]*2 ms/);
  await page.click("#panel td button");
  const time = 1795251863080000001n;
  const area = await look(page, () => [String(kymo.view.area.begin), String(kymo.view.area.end), kymo.view.tab]);
  assert.deepEqual(area, [String(time), String(time + 2000000n), "sql"]);
  await page.keyboard.press("Escape");
  assert.ok(await look(page, (time) => { const at = BigInt(time); return kymo.view.begin <= at && at <= kymo.view.begin + BigInt(Math.ceil(kymo.view.span)); }, String(time)));
  // It is in the address, and does not run by itself when that is opened.
  await page.waitForFunction(() => decodeURIComponent(location.hash).includes("SELECT 1"));
  const other = await open(page.url());
  assert.equal(await look(other, () => document.getElementById("sql").value), "SELECT 1 > 0");
  assert.equal(await other.locator("#panel td").count(), 0);
});

test("a colon in the search box is SQL; rows are bounded, numbers exact", async () => {
  const page = await open(await serve("--no-cache", "trace"));
  await press(page, "/");
  await page.keyboard.type(": many");
  assert.equal(await look(page, () => document.getElementById("mode").value), "sql");
  await page.keyboard.press("Enter");
  await answered(page, "only the first 1000 rows are shown");
  assert.match(await panel(page), /1\s000 rows[^]*999\s+18446744073709551615/);
});

test("what is wrong is said; what takes long is stopped; without the program the page says how to install it", async () => {
  const page = await open(await serve("--no-cache", "trace"));
  await press(page, ":");
  const ask = async (text) => {
    await page.fill("#sql", text);
    await page.click("#panel >> text=Run");
  };
  await ask("SELECT * FROM wrong");
  await answered(page, "there is no table `wrong`");
  await ask("slow");
  await page.click("#panel >> text=Stop");
  await answered(page, "stopped");
  // The program is gone, too: the next statement is answered.
  await page.waitForFunction(async () => {
    const post = async (request) => (await fetch("api/sql", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(request) })).json();
    const { job } = await post({ text: "none" });
    return (await post({ job })).error !== "another query is running: try again when it is done";
  });
  await ask("none");
  await answered(page, "0 rows");
  process.env.PATH = PATH;
  const without = await open(await serve("--no-cache", "trace"));
  await press(without, ":");
  await without.fill("#sql", "SELECT 1");
  await without.click("#panel >> text=Run");
  await answered(without, "`kymo-query` is not installed[^]*cargo install --path query");
});
