//! What is asked in tests of equality, and of what.

pub(crate) const TRACE: &str = "examples/lttng-small";
pub(crate) const LOSSES: &str = "examples/lttng-discarded";
const RFC: &str = "examples/rfc-small";
const RRD: &str = "crates/kymo-rrd/tests/data/amd64/tiny.rrd";
const LOG: &str = "crates/kymo-cpel/tests/data/le_basic.cpel";
const CHROME: &str = "fuzz/corpus/chrome/all-phases";
const KERNEL: &str = "fuzz/corpus/perfetto/kernel";
const SLICES: &str = "fuzz/corpus/perfetto/slices";
const COUNTERS: &str = "fuzz/corpus/perfetto/counters";

/// Statements and their inputs. The order of rows counts where it is asked for.
pub(crate) const QUERIES: &[(&str, &[&str])] = &[
    // All, and parts of it.
    ("SELECT * FROM events", &[TRACE]),
    ("SELECT * FROM events", &[TRACE, LOSSES, RFC]),
    ("SELECT * FROM \"demo:ints\"", &[TRACE]),
    ("SELECT * FROM \"demo:arrays\"", &[TRACE]),
    ("SELECT * FROM \"demo:enums\"", &[TRACE, LOSSES]),
    (
        "SELECT timestamp, event FROM events ORDER BY timestamp, stream, ticks",
        &[TRACE, LOSSES],
    ),
    (
        "SELECT timestamp FROM events ORDER BY timestamp DESC LIMIT 7",
        &[TRACE, LOSSES],
    ),
    (
        "SELECT timestamp FROM events ORDER BY timestamp LIMIT 7",
        &[TRACE, LOSSES],
    ),
    (
        "SELECT timestamp FROM events ORDER BY timestamp LIMIT 5 OFFSET 100",
        &[TRACE],
    ),
    (
        "SELECT count(*) FROM (SELECT * FROM events LIMIT 50)",
        &[TRACE, LOSSES],
    ),
    ("SELECT DISTINCT event FROM events", &[TRACE, LOSSES, RFC]),
    (
        "SELECT DISTINCT track, recording FROM events",
        &[TRACE, LOG, CHROME],
    ),
    // Ranges.
    (
        "SELECT count(*) FROM events WHERE timestamp > '2026-11-21T09:04:23.0758Z'",
        &[TRACE],
    ),
    (
        "SELECT count(*) FROM events WHERE timestamp BETWEEN '2026-11-21T09:04:23.0758Z' AND '2026-11-21T09:04:23.0768Z'",
        &[TRACE],
    ),
    (
        "SELECT count(*) FROM events WHERE timestamp < '1999-01-01T00:00:00Z'",
        &[TRACE],
    ),
    (
        "SELECT min(timestamp), max(timestamp), count(ticks) FROM events",
        &[TRACE, LOSSES],
    ),
    (
        "SELECT count(*) FROM events WHERE timestamp::BIGINT >= 1795251863075800000",
        &[TRACE],
    ),
    (
        "SELECT count(*) FROM events WHERE timestamp IS NULL",
        &[TRACE, RFC, LOG],
    ),
    // Filters.
    (
        "SELECT * FROM events WHERE event = 'demo:ints' AND u8 > 200",
        &[TRACE],
    ),
    (
        "SELECT count(*) FROM events WHERE event IN ('demo:ints', 'demo:floats')",
        &[TRACE, LOSSES],
    ),
    (
        "SELECT count(*) FROM events WHERE event LIKE 'demo:s%'",
        &[TRACE],
    ),
    (
        "SELECT u64 FROM \"demo:ints\" WHERE u64 > 9223372036854775807 ORDER BY u64 LIMIT 4",
        &[TRACE],
    ),
    (
        "SELECT count(*) FROM \"demo:ints\" WHERE s8 < 0 OR u8 = 5",
        &[TRACE],
    ),
    (
        "SELECT count(*) FROM \"demo:ints\" WHERE NOT (u8 = 5)",
        &[TRACE],
    ),
    (
        "SELECT count(*) FROM events WHERE u8 <> 1",
        &[TRACE, LOSSES],
    ),
    ("SELECT count(*) FROM events WHERE cpu_id = 1", &[TRACE]),
    (
        "SELECT count(*) FROM \"demo:sched\" WHERE prev_comm = next_comm",
        &[TRACE],
    ),
    (
        "SELECT count(*) FROM \"demo:sched\" WHERE next_comm = 'swapper/0' OR next_comm LIKE 'k%'",
        &[TRACE],
    ),
    ("SELECT count(*) FROM \"demo:floats\" WHERE d > 0", &[TRACE]),
    // Groups.
    (
        "SELECT event, count(*) FROM events GROUP BY event",
        &[TRACE, LOSSES, RFC],
    ),
    (
        "SELECT recording, stream, count(*) FROM events GROUP BY recording, stream",
        &[TRACE, LOSSES, RFC],
    ),
    (
        "SELECT cpu_id, count(*), sum(u8) FROM events GROUP BY cpu_id",
        &[TRACE],
    ),
    (
        "SELECT c, count(*), min(c8) FROM \"demo:enums\" GROUP BY c",
        &[TRACE],
    ),
    (
        "SELECT next_comm, count(*) AS n FROM \"demo:sched\" GROUP BY next_comm HAVING count(*) > 2 ORDER BY n DESC, next_comm",
        &[TRACE],
    ),
    (
        "SELECT time_bucket('100us', timestamp) AS t, count(*) FROM events GROUP BY t ORDER BY t",
        &[TRACE],
    ),
    (
        "SELECT time_bucket(INTERVAL '1 millisecond', timestamp) AS t, event, count(*) FROM events GROUP BY t, event ORDER BY t, event",
        &[TRACE],
    ),
    (
        "SELECT percentile(u8, 50), percentile(u8, 99) FROM \"demo:ints\"",
        &[TRACE],
    ),
    (
        "SELECT count(DISTINCT next_tid), count(DISTINCT prev_tid) FROM \"demo:sched\"",
        &[TRACE],
    ),
    (
        "SELECT sum(s32), sum(u16), avg(s64) FROM \"demo:ints\"",
        &[TRACE],
    ),
    (
        "SELECT seq[1], count(*) FROM \"demo:arrays\" GROUP BY seq[1]",
        &[TRACE],
    ),
    // Joins.
    (
        "SELECT count(*) FROM \"demo:ints\" a JOIN \"demo:floats\" b ON a.timestamp < b.timestamp AND a.u8 = 3 AND b.f < 0",
        &[TRACE],
    ),
    (
        "SELECT a.u8, count(*) FROM \"demo:ints\" a JOIN \"demo:ints\" b ON a.u8 = b.u8 + 1 AND a.stream <> b.stream GROUP BY a.u8 ORDER BY a.u8 LIMIT 20",
        &[TRACE],
    ),
    (
        "SELECT count(*) FROM \"demo:sched\" WHERE next_tid IN (SELECT prev_tid FROM \"demo:sched\")",
        &[TRACE],
    ),
    (
        "SELECT count(*) FROM \"demo:ints\" FULL JOIN \"demo:enums\" USING (timestamp)",
        &[TRACE],
    ),
    // Windows.
    (
        "SELECT timestamp, timestamp::BIGINT - lag(timestamp::BIGINT) OVER (PARTITION BY stream ORDER BY timestamp) AS d FROM \"demo:inst1\" ORDER BY timestamp, stream",
        &[TRACE],
    ),
    (
        "SELECT stream, max(n) FROM (SELECT stream, row_number() OVER (PARTITION BY stream ORDER BY timestamp, ticks) AS n FROM events) GROUP BY stream",
        &[TRACE],
    ),
    (
        "SELECT u8, sum(u8) OVER (ORDER BY timestamp, stream) AS s FROM \"demo:ints\" ORDER BY timestamp, stream LIMIT 10",
        &[TRACE],
    ),
    // Intervals and as-of.
    ("SELECT * FROM slice ORDER BY id", &[CHROME]),
    (
        "SELECT * FROM self_dur('slice', 'track_id') ORDER BY id",
        &[CHROME, SLICES],
    ),
    (
        "SELECT * FROM interval_intersect('slice', 'slice', 'track_id') ORDER BY ts, id_0, id_1",
        &[CHROME, SLICES],
    ),
    (
        "SELECT a.timestamp, a.next_tid, u8 FROM asof_join('SELECT * FROM \"demo:sched\"', 'SELECT timestamp, u8 FROM \"demo:ints\"') a ORDER BY a.timestamp, a.next_tid LIMIT 40",
        &[TRACE],
    ),
    (
        "SELECT count(*), count(value) FROM asof_join('SELECT timestamp, event FROM events', 'SELECT timestamp, value FROM samples')",
        &[TRACE, RRD],
    ),
    ("SELECT * FROM sched ORDER BY ts, cpu", &[KERNEL]),
    ("SELECT * FROM thread_state ORDER BY ts, utid", &[KERNEL]),
    (
        "SELECT s.*, t.name FROM state s JOIN state_track t ON s.track_id = t.id ORDER BY s.id",
        &[KERNEL, SLICES],
    ),
    (
        "SELECT * FROM interval_intersect('SELECT ts, dur, utid, cpu FROM sched', 'SELECT ts, dur, utid, state FROM thread_state', 'utid') ORDER BY ts, utid, state",
        &[KERNEL],
    ),
    (
        "SELECT * FROM intervals_overlap_count('slice', 'track_id') ORDER BY track_id, ts",
        &[CHROME, SLICES],
    ),
    (
        "SELECT * FROM counter_leading_intervals('counter') ORDER BY id",
        &[COUNTERS, CHROME],
    ),
    (
        "SELECT * FROM metadata ORDER BY recording, name",
        &[TRACE, RRD],
    ),
    (
        "SELECT * FROM clock_snapshot ORDER BY recording, clock_id",
        &[TRACE],
    ),
    ("SELECT * FROM stats ORDER BY name", &[LOSSES]),
    // Samples, losses, packets.
    (
        "SELECT * FROM samples ORDER BY timestamp, series, \"function\", step",
        &[RRD],
    ),
    (
        "SELECT series, count(*), count(value), sum(value) FROM samples_all GROUP BY series",
        &[RRD],
    ),
    ("SELECT * FROM losses ORDER BY \"begin\", stream", &[LOSSES]),
    (
        "SELECT * FROM packets ORDER BY stream, packet",
        &[TRACE, LOSSES, RFC],
    ),
    (
        "SELECT t.name, count(*), max(value) FROM counter c JOIN counter_track t ON c.track_id = t.id GROUP BY t.name",
        &[COUNTERS, CHROME],
    ),
    // Empty results.
    (
        "SELECT * FROM events WHERE event = 'there is none'",
        &[TRACE],
    ),
    ("SELECT count(*) FROM samples", &[TRACE]),
    ("SELECT max(dur) FROM slice", &[TRACE]),
    ("SELECT count(*) FROM state", &[TRACE]),
    // Logs.
    ("SELECT * FROM events", &[LOG]),
    ("SELECT track, count(*) FROM events GROUP BY track", &[LOG]),
];
