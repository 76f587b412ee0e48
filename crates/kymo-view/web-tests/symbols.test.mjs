// Names of functions in the viewer: fields of an event, a profile of calls, and call stacks.

import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { before, test } from "node:test";
import { look, open, root, serve, settled, work } from "./harness.mjs";

const BASE = 0x7f0000000000n;
// Within the functions `measure` and `area` of the library.
const MEASURE = BASE + 0x26dn;
const AREA = BASE + 0x27cn;

/** A trace of a process that maps a library, calls its functions, and has call stacks. @param {string} name */
function trace(name) {
  const mapped = "uint64_hex baddr; uint64_t memsz; string path; uint8_t is_pic;";
  const events = {
    "lttng_ust_statedump:start": "", "lttng_ust_statedump:bin_info": mapped,
    "lttng_ust_statedump:build_id": "uint64_hex baddr; uint32_t length; uint8_t build_id[length];",
    "lttng_ust_cyg_profile:func_entry": "uint64_hex addr;", "lttng_ust_cyg_profile:func_exit": "uint64_hex addr;",
    "app:here": "uint32_t depth; uint64_t callstack_user[depth];",
  };
  const integer = (bits, more = "") => `integer { size = ${bits}; align = 8; signed = false; ${more} }`;
  const text = `/* CTF 1.8 */
typealias ${integer(8)} := uint8_t; typealias ${integer(16)} := uint16_t; typealias ${integer(32)} := uint32_t;
typealias ${integer(64)} := uint64_t; typealias ${integer(64, "base = 16;")} := uint64_hex;
typealias integer { size = 32; align = 8; signed = true; } := int32_t;
trace { major = 1; minor = 8; byte_order = le; packet.header := struct { uint32_t magic; }; };
env { tracer_name = "lttng-ust"; tracer_major = 2; tracer_minor = 13; domain = "ust"; };
clock { name = monotonic; freq = 1000000000; offset = 0; };
typealias integer { size = 64; align = 8; signed = false; map = clock.monotonic.value; } := time_t;
stream { event.header := struct { uint16_t id; time_t timestamp; }; event.context := struct { uint64_hex ip; int32_t vpid; }; };
${Object.entries(events).map(([name, fields], id) => `event { name = "${name}"; id = ${id}; fields := struct { ${fields} }; };`).join("\n")}
`;
  const parts = [];
  const put = (size, value) => {
    const bytes = Buffer.alloc(size);
    if (size === 8) bytes.writeBigUInt64LE(BigInt(value));
    else bytes.writeUIntLE(Number(value), 0, size);
    parts.push(bytes);
  };
  put(4, 0xc1fc1fc1);
  let now = 1790000000000000000n;
  const event = (name, ip, ...fields) => {
    put(2, Object.keys(events).indexOf(name));
    put(8, (now += 1000n));
    put(8, ip);
    put(4, 1);
    for (const [size, value] of fields) typeof value === "string" ? parts.push(Buffer.from(value)) : put(size, value);
  };
  event("lttng_ust_statedump:start", 0);
  event("lttng_ust_statedump:bin_info", 0, [8, BASE], [8, 0x1000], [0, "/shape.so\0"], [1, 1]);
  event("lttng_ust_statedump:build_id", 0, [8, BASE], [4, 20], [0, "kymo\0\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f"]);
  for (let at = 0; at < 3; at++) {
    event("lttng_ust_cyg_profile:func_entry", MEASURE, [8, MEASURE]);
    event("lttng_ust_cyg_profile:func_entry", AREA, [8, AREA]);
    event("app:here", AREA, [4, 2], [8, AREA], [8, MEASURE]);
    event("lttng_ust_cyg_profile:func_exit", AREA, [8, AREA]);
    event("lttng_ust_cyg_profile:func_exit", MEASURE, [8, MEASURE]);
  }
  mkdirSync(join(work, name));
  writeFileSync(join(work, name, "metadata"), text);
  writeFileSync(join(work, name, "stream"), Buffer.concat(parts));
}

before(() => trace("calls"));

const started = () => serve("--debug-root", join(root, "crates/kymo-symbols/tests/data"), "calls");

test("an event has the function, the file and the line of its address", async () => {
  const page = await open(await started());
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  for (let at = 0; at < 4; at++) await page.keyboard.press(".");
  await page.waitForFunction(() => /cyg_profile:func_entry/.test(document.getElementById("panel")?.textContent ?? ""));
  const text = await page.textContent("#panel");
  assert.match(text, /addr_symbol\s*measure/);
  assert.match(text, /debug_info\.func\s*measure/);
  assert.match(text, /debug_info\.src\s*shape\.\w+:\d+/);
  await page.waitForFunction(() => /^byte \d+/.test(document.getElementById("place")?.textContent ?? ""));
  // Conditions know the names, and so do the commands that the page copies.
  await page.fill("#text", "addr_symbol == \"measure\"");
  await page.selectOption("#mode", "where");
  await page.press("#text", "Enter");
  await page.waitForFunction(() => kymo.search.done && kymo.search.count === 6);
  assert.match(await look(page, () => kymo.command()), /^kymo view --clock-gmt --debug-root=\S+ calls --at /);
  await page.close();
});

test("a profile of calls is of functions, and so are call stacks", async () => {
  const page = await open(await started());
  await page.keyboard.press("7");
  const fill = async (label, text) => {
    await page.fill(`input[aria-label='${label}']`, text);
    await page.press(`input[aria-label='${label}']`, "Enter");
  };
  await fill("start", "lttng_ust_cyg_profile:func_entry");
  await fill("end", "lttng_ust_cyg_profile:func_exit");
  await fill("names by", "addr");
  await page.waitForFunction(() => /measure/.test(document.querySelector("table[aria-label=Profile]")?.textContent ?? ""));
  assert.equal(await look(page, () => kymo.flame.boxes), 3);
  assert.match(await page.textContent("table[aria-label=Profile]"), /measure36 µs50.0 %12 µs.*area\(int\) const36 µs50.0 %6 µs/);
  await fill("stacks in", "callstack_user");
  await page.waitForFunction(() => /ends in it/.test(document.querySelector("table[aria-label=Profile]")?.textContent ?? ""));
  assert.match(await page.textContent("table[aria-label=Profile]"), /area\(int\) const3100.0 %3measure00.0 %3/);
  assert.equal(await look(page, () => kymo.flame.boxes), 3);
  await fill("stacks in", "nothing");
  await page.waitForSelector("#panel .bad");
  await settled(page);
  await page.close();
});
