//! What SQL answers is what `kymo print --format json` and `kymo stats` say.

mod common;

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::process::{Command, Stdio};

use common::{file, number, rows, run};
use kymo::filter::Filter;
use kymo::pipeline::{self, Everything, Output};
use kymo::report::Stats;
use kymo::show::json::Json;
use kymo::show::{Times, WallOptions};
use kymo_model::FaultReport;
use serde_json::Value;

const TRACE: &str = "examples/lttng-small";
const INPUTS: &[&str] = &[
    TRACE,
    "examples/lttng-discarded",
    "examples/rfc-small",
    "examples/bitfield-le",
];

struct Text(Vec<u8>);

impl Output for Text {
    fn text(&mut self, text: &[u8]) -> io::Result<()> {
        self.0.extend_from_slice(text);
        Ok(())
    }

    fn warning(&mut self, _: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn fault(&mut self, _: &FaultReport) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// The events as `print --format json` shows them.
fn printed(input: &str) -> Vec<Value> {
    let opened = kymo::open::open(&[file(input)], &kymo::open::Options::default());
    let mut text = Text(Vec::new());
    let mut json = Json::with_times(Times::Number, WallOptions::default());
    pipeline::run(
        &opened.recordings,
        &Everything,
        &Default::default(),
        &mut json,
        &mut text,
    )
    .unwrap();
    let text = String::from_utf8(text.0).unwrap();
    let lines = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.filter(|line| line["kind"] == "event").collect()
}

#[test]
fn counts_are_those_of_print_and_stats() {
    for input in INPUTS {
        let mut counts: BTreeMap<String, i64> = BTreeMap::new();
        for event in printed(input) {
            *counts
                .entry(event["event"].as_str().unwrap_or("0").to_owned())
                .or_default() += 1;
        }
        let sql = "SELECT event, count(*) AS n FROM events GROUP BY event";
        let asked: BTreeMap<String, i64> = rows(sql, &[input], &[])
            .iter()
            .map(|row| {
                (
                    row["event"].as_str().unwrap().to_owned(),
                    row["n"].as_i64().unwrap(),
                )
            })
            .collect();
        assert_eq!(asked, counts, "{input}");
        let opened = kymo::open::open(&[file(input)], &kymo::open::Options::default());
        let filter = Filter::new(&Default::default(), &[], &opened.recordings).unwrap();
        let stats = Stats::new(&opened.recordings, &filter, &Default::default());
        let stats: Value = serde_json::from_slice(&stats.to_json()).unwrap();
        let sum: i64 = counts.values().sum();
        assert_eq!(stats["events"].as_i64(), Some(sum), "{input}: {stats}");
    }
}

#[test]
fn numbers_texts_and_lists_are_those_that_are_printed() {
    let events = printed(TRACE);
    for (table, columns) in [
        (
            "demo:ints",
            &[
                "u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64", "hs64", "n16",
            ][..],
        ),
        (
            "demo:sched",
            &[
                "prev_comm",
                "prev_tid",
                "prev_prio",
                "prev_state",
                "next_comm",
                "next_tid",
            ],
        ),
        ("demo:arrays", &["a4", "b6", "seq", "seqt"]),
        ("demo:strs", &["s1", "n", "s2"]),
    ] {
        let list: Vec<String> = columns.iter().map(|name| format!("\"{name}\"")).collect();
        let sql = format!(
            "SELECT timestamp::BIGINT AS time, {} FROM \"{table}\"",
            list.join(", ")
        );
        let mut asked: Vec<String> = Vec::new();
        for row in rows(&sql, &[TRACE], &[]) {
            let values: Vec<String> = columns.iter().map(|name| row[*name].to_string()).collect();
            asked.push(format!("{} {}", row["time"], values.join(" ")));
        }
        let mut shown: Vec<String> = Vec::new();
        for event in events.iter().filter(|event| event["event"] == table) {
            let values = columns
                .iter()
                .map(|name| event["payload"][*name].to_string());
            shown.push(format!(
                "{} {}",
                event["timestamp"],
                values.collect::<Vec<_>>().join(" ")
            ));
        }
        asked.sort();
        shown.sort();
        assert_eq!(asked.len(), 300 * if table == "demo:sched" { 2 } else { 1 });
        assert_eq!(asked, shown, "{table}");
    }
}

#[test]
fn conditions_that_are_pushed_down_choose_what_conditions_choose() {
    for condition in [
        "u8 > 200",
        "u8 <> 7",
        "u8 IN (1, 2, 3)",
        "u8 BETWEEN 10 AND 20",
        "s64 < -5",
        "u64 = 1",
    ] {
        let sql = format!("SELECT count(*) FROM \"demo:ints\" WHERE {condition}");
        // What is added to it hides the columns from the decoder.
        let hidden = condition
            .replace("u8", "(u8 + 0)")
            .replace("s64", "(s64 + 0)")
            .replace("u64 =", "(u64 + 0) =");
        let other = format!("SELECT count(*) FROM \"demo:ints\" WHERE {hidden}");
        assert_eq!(
            number(&sql, &[TRACE]),
            number(&other, &[TRACE]),
            "{condition}"
        );
    }
}

#[test]
fn plans_show_what_is_not_read() {
    let all = run(&["EXPLAIN SELECT count(*) FROM events", TRACE]);
    assert!(all.stdout.contains("packets=2 of 2"), "{}", all.stdout);
    let sql =
        "EXPLAIN SELECT u8 FROM \"demo:ints\" WHERE timestamp < '1999-01-01T00:00:00Z' AND u8 > 3";
    let none = run(&[sql, TRACE]);
    assert!(none.stdout.contains("packets=0 of 2"), "{}", none.stdout);
    assert!(none.stdout.contains("where=(`u8` > 3)"), "{}", none.stdout);
    assert!(none.stdout.contains("columns=[u8]"), "{}", none.stdout);
    let ordered = run(&[
        "EXPLAIN SELECT * FROM events ORDER BY timestamp",
        TRACE,
        "--threads",
        "2",
    ]);
    assert!(
        ordered.stdout.contains("SortPreservingMergeExec"),
        "{}",
        ordered.stdout
    );
    assert!(!ordered.stdout.contains("SortExec"), "{}", ordered.stdout);
}

#[test]
fn errors_show_their_place() {
    let run = run(&["SELECT prev_tidd FROM \"demo:sched\"", TRACE]);
    assert_eq!(run.code, 2);
    let expected = "\
error: column 'prev_tidd' not found
 --> SQL:1:8
  |
1 | SELECT prev_tidd FROM \"demo:sched\"
  |        ^^^^^^^^^
  |
  = help: there is a column `prev_tid`
";
    assert_eq!(run.stderr, expected);
    let run = common::run(&["SELECT * FORM events", TRACE]);
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains(" --> SQL:1:10\n"), "{}", run.stderr);
}

#[test]
fn parameters_are_values() {
    let sql = "SELECT count(*) FROM \"demo:ints\" WHERE u8 < $most";
    let rows = rows(sql, &[TRACE], &["-p", "most=10"]);
    assert_eq!(
        rows[0]
            .as_object()
            .unwrap()
            .values()
            .next()
            .unwrap()
            .as_i64(),
        Some(number(&sql.replace("$most", "10"), &[TRACE]))
    );
}

#[test]
fn outputs_have_the_same_rows() {
    let place = tempfile::tempdir().unwrap();
    let sql = "SELECT timestamp, u8, \"c.labels\", seq FROM events ORDER BY timestamp, stream";
    let rows = rows(sql, &[TRACE], &[]).len();
    for name in ["rows.csv", "rows.json", "rows.parquet"] {
        let path = place.path().join(name);
        let run = run(&[sql, TRACE, "-o", path.to_str().unwrap()]);
        assert_eq!((run.code, run.stdout.as_str()), (0, ""), "{}", run.stderr);
        assert!(path.is_file());
    }
    let csv = std::fs::read_to_string(place.path().join("rows.csv")).unwrap();
    assert_eq!(csv.lines().count(), rows + 1);
    assert!(csv.starts_with("timestamp,u8,c.labels,seq\n"));
    // Parquet files are inputs.
    let path = place.path().join("rows.parquet");
    let path = path.to_str().unwrap();
    assert_eq!(number("SELECT count(*) FROM rows", &[path]), rows as i64);
    let sum = "SELECT sum(u8) FROM rows";
    assert_eq!(
        number(sum, &[path]),
        number("SELECT sum(u8) FROM events", &[TRACE])
    );
    assert_eq!(
        std::fs::read_dir(place.path()).unwrap().count(),
        3,
        "nothing else is left"
    );
}

#[test]
fn memory_is_limited_and_sorting_spills() {
    let sql = "SELECT a.timestamp, b.u8, a.n FROM \"demo:strs\" a CROSS JOIN \"demo:ints\" b ORDER BY b.u8, a.n, a.timestamp LIMIT 200000";
    let small = run(&[sql, TRACE, "--memory", "16M", "--format", "csv"]);
    assert_eq!(small.code, 0, "{}", small.stderr);
    assert_eq!(small.stdout.lines().count(), 90_001);
    let large = run(&[sql, TRACE, "--format", "csv"]);
    assert!(small.stdout == large.stdout);
}

/// They make their result before its memory is counted.
#[test]
fn functions_with_results_of_any_size_are_bounded() {
    for call in [
        "length(repeat('xy', 2000000000))",
        "length(lpad('x', 2000000000))",
        "length(rpad('x', CAST(number AS INT) + 2000000000))",
        "cardinality(array_repeat(1, 2000000000))",
        "length(repeat(name, 1000000))",
    ] {
        let sql = format!(
            "SELECT {call} FROM (SELECT event AS name, row_number() OVER () AS number FROM events)"
        );
        let run = run(&[&sql, TRACE]);
        assert_ne!(run.code, 0, "{call}: {}", run.stdout);
        assert!(
            run.stderr.contains("at once: the most is"),
            "{call}: {}",
            run.stderr
        );
    }
    let sql =
        "SELECT repeat('ab', 3), lpad('7', 3, '0'), rpad('x', 2), cardinality(array_repeat(1, 5))";
    let run = run(&[sql, TRACE, "--format", "csv"]);
    assert_eq!(
        run.stdout.lines().last(),
        Some("ababab,007,x ,5"),
        "{}",
        run.stderr
    );
}

#[test]
fn directories_of_parquet_files_are_inputs() {
    let place = tempfile::tempdir().unwrap();
    let tables = place.path();
    let inputs = [
        file(TRACE),
        file("crates/kymo-rrd/tests/data/amd64/tiny.rrd"),
    ];
    let opened = kymo::open::open(&inputs, &kymo::open::Options::default());
    let timeline = kymo::Timeline::new(opened.recordings);
    let mut directory = kymo_arrow::Directory::new(tables, 2).unwrap();
    let mut take = |table: &kymo_arrow::Table, batch| directory.write(table, batch);
    kymo_arrow::tables(&timeline, &Default::default(), &mut take, &mut |_| ()).unwrap();
    directory.finish().unwrap();
    let tables = tables.to_str().unwrap();
    let both = [TRACE, "crates/kymo-rrd/tests/data/amd64/tiny.rrd"];
    for sql in [
        "SELECT event, count(*) AS n, sum(u8) AS u8, min(timestamp) AS t FROM events GROUP BY event ORDER BY event",
        "SELECT next_comm, next_tid FROM \"demo:sched\" ORDER BY timestamp, stream",
        "SELECT series, count(*) AS n, sum(value) AS v FROM samples_all GROUP BY series ORDER BY series",
        "SELECT count(*) AS n, sum(bytes) AS b FROM packets",
    ] {
        assert_eq!(rows(sql, &[tables], &[]), rows(sql, &both, &[]), "{sql}");
    }
    // Recordings and files together have the rows of both.
    let twice = number("SELECT count(*) FROM events", &[tables, TRACE]);
    assert_eq!(twice, 2 * number("SELECT count(*) FROM events", &[TRACE]));
}

#[test]
fn selections_are_those_of_print() {
    let count = "SELECT count(*) AS n FROM events";
    let printed = |options: &[&str]| rows(count, &[TRACE], options)[0]["n"].as_i64();
    assert_eq!(
        printed(&["--event", "demo:ints"]),
        Some(number("SELECT count(*) FROM \"demo:ints\"", &[TRACE]))
    );
    let where_ = number(
        "SELECT count(*) FROM \"demo:ints\" WHERE u8 > 200",
        &[TRACE],
    );
    assert!(where_ > 0);
    assert_eq!(printed(&["--where", "u8 > 200"]), Some(where_));
    // Tables whose events have no such field are empty.
    let other = rows(
        "SELECT count(*) AS n FROM \"demo:floats\"",
        &[TRACE],
        &["--where", "u8 > 200"],
    );
    assert_eq!(other[0]["n"], 0);
    let from = "2026-11-21T09:04:23.0758Z";
    let later = number(
        &format!("SELECT count(*) FROM events WHERE timestamp >= '{from}'"),
        &[TRACE],
    );
    let all = number("SELECT count(*) FROM events", &[TRACE]);
    assert!(0 < later && later < all);
    assert_eq!(printed(&["--begin", from]), Some(later));
    let wrong = run(&["--where", "nothing > 1", count, TRACE]);
    assert_eq!(wrong.code, 2, "{}", wrong.stderr);
    // Losses count only if that is asked for.
    let lossy = "examples/lttng-discarded";
    assert_eq!(run(&[count, lossy]).code, 0);
    assert_eq!(run(&["--strict", count, lossy]).code, 1);
}

#[test]
fn overlaps_and_leading_intervals_are_counted() {
    let spans = "SELECT * FROM (VALUES (0, 10), (5, 10), (20, -1)) AS t(ts, dur)";
    let found = rows(
        &format!("SELECT * FROM intervals_overlap_count('{spans}') ORDER BY ts"),
        &[TRACE],
        &[],
    );
    let pairs: Vec<_> = found
        .iter()
        .map(|row| (row["ts"].as_i64(), row["value"].as_i64()))
        .collect();
    let expected = [(0, 1), (5, 2), (10, 1), (15, 0), (20, 1)];
    assert_eq!(pairs, expected.map(|(ts, value)| (Some(ts), Some(value))));
    let values = "SELECT * FROM (VALUES (1, 0, 7, 1.0), (2, 5, 7, 1.0), (3, 8, 7, 4.0)) AS t(id, ts, track_id, value)";
    let found = rows(
        &format!("SELECT * FROM counter_leading_intervals('{values}') ORDER BY ts"),
        &[TRACE],
        &[],
    );
    assert_eq!(found.len(), 2);
    assert_eq!(found[0]["dur"], 8);
    assert_eq!(found[0]["delta_value"], 3.0);
    assert_eq!(found[1]["dur"], -1);
    assert!(found[1]["next_value"].is_null());
}

#[test]
fn intervals_are_cut_at_each_others_ends() {
    let spans = "SELECT * FROM (VALUES (''A'', 10, 20), (''B'', 20, 25)) AS t(id, ts, dur)";
    let found = rows(
        &format!("SELECT * FROM interval_self_intersect('{spans}') ORDER BY ts, id"),
        &[TRACE],
        &[],
    );
    let found: Vec<_> = found
        .iter()
        .map(|row| {
            let number = |name: &str| row[name].as_i64().unwrap();
            (
                (number("ts"), number("dur"), number("group_id")),
                row["id"].as_str().unwrap(),
                row["interval_ends_at_ts"].as_bool().unwrap(),
            )
        })
        .collect();
    let expected = [
        ((10, 10, 1), "A", false),
        ((20, 10, 2), "A", false),
        ((20, 10, 2), "B", false),
        ((30, 15, 3), "A", true),
        ((30, 15, 3), "B", false),
        ((45, 0, 4), "B", true),
    ];
    assert_eq!(found, expected);
}

#[test]
fn flattened_slices_are_the_innermost_ones() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("nested.json");
    // A has B and C, which touch; C has D, which ends with it. E follows A at once.
    let slices = [
        ("A", 0, 100),
        ("B", 10, 20),
        ("C", 30, 40),
        ("D", 50, 20),
        ("E", 100, 5),
        ("F", 200, 1),
    ];
    let slices = slices.map(|(name, begin, dur)| {
        format!(r#"{{"ph":"X","ts":{begin},"dur":{dur},"pid":7,"tid":8,"name":"{name}"}}"#)
    });
    std::fs::write(&path, format!("[{}]", slices.join(","))).unwrap();
    let found = rows(
        "SELECT f.name, f.ts - (SELECT min(ts) FROM slice) AS begin, f.dur, f.depth, s.name AS root, f.tid \
         FROM _slice_flattened f JOIN slice s ON s.id = f.root_id ORDER BY f.ts",
        &[path.to_str().unwrap()],
        &[],
    );
    let found: Vec<_> = found
        .iter()
        .map(|row| {
            let number = |name: &str| row[name].as_i64().unwrap();
            assert_eq!(number("tid"), 8);
            let (name, root) = (row["name"].as_str().unwrap(), row["root"].as_str().unwrap());
            (
                name,
                number("begin") / 1000,
                number("dur") / 1000,
                number("depth"),
                root,
            )
        })
        .collect();
    let expected = [
        ("A", 0, 10, 0, "A"),
        ("B", 10, 20, 1, "A"),
        ("C", 30, 20, 1, "A"),
        ("D", 50, 20, 2, "A"),
        ("A", 70, 30, 0, "A"),
        ("E", 100, 5, 0, "E"),
        ("F", 200, 1, 0, "F"),
    ];
    assert_eq!(found, expected);
}

#[test]
fn slices_have_arguments_and_flows() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("flows.json");
    let trace = r#"[
        {"ph":"X","ts":1,"dur":10,"pid":7,"tid":8,"name":"send","args":{"size":5,"to":{"host":"x"}}},
        {"ph":"s","ts":5,"pid":7,"tid":8,"id":3,"name":"message","cat":"net"},
        {"ph":"X","ts":20,"dur":10,"pid":7,"tid":9,"name":"receive"},
        {"ph":"f","ts":25,"pid":7,"tid":9,"id":3,"name":"message","cat":"net","bp":"e"}
    ]"#;
    std::fs::write(&path, trace).unwrap();
    let path = path.to_str().unwrap();
    let args = rows(
        "SELECT s.name, a.flat_key, a.key, a.int_value, a.string_value FROM slice s \
         JOIN args a USING (arg_set_id) WHERE a.key LIKE '%size' OR a.key LIKE '%to%' ORDER BY s.ts, a.key",
        &[path],
        &[],
    );
    assert_eq!(args.len(), 2, "{args:?}");
    assert!(args.iter().all(|arg| arg["name"] == "send"));
    assert_eq!(args[0]["int_value"], 5, "{args:?}");
    let flows = rows(
        "SELECT o.name AS from_name, i.name AS to_name FROM flow f \
         JOIN slice o ON f.slice_out = o.id JOIN slice i ON f.slice_in = i.id",
        &[path],
        &[],
    );
    assert_eq!(flows.len(), 1, "{flows:?}");
    assert_eq!(flows[0]["from_name"], "send");
    assert_eq!(flows[0]["to_name"], "receive");
}

#[test]
fn threads_are_runnable_from_the_wakeup_on() {
    let kernel = "examples/kernel-small";
    // Every sleep that is followed by a run ends with a wakeup; the model is a walk over all events.
    let events = printed(kernel);
    let mut states: std::collections::HashMap<i64, (&str, i64)> = std::collections::HashMap::new();
    let mut expected: Vec<(i64, i64)> = Vec::new();
    for event in &events {
        let time = event["timestamp"].as_i64().unwrap();
        let number = |name: &str| event["payload"][name].as_i64().unwrap();
        match event["event"].as_str() {
            Some("sched_switch") => {
                let prev = match number("prev_state") & 255 {
                    0 => "R",
                    _ => "sleeps",
                };
                states.insert(number("prev_tid"), (prev, time));
                if let Some((_, since)) = states
                    .get(&number("next_tid"))
                    .filter(|(state, _)| *state == "R")
                {
                    expected.push((number("next_tid"), time - since));
                }
                states.insert(number("next_tid"), ("runs", time));
            }
            Some("sched_wakeup") => {
                let state = states.entry(number("tid")).or_insert(("sleeps", 0));
                if state.0 == "sleeps" {
                    *state = ("R", time);
                }
            }
            _ => {}
        }
    }
    expected.retain(|(thread, _)| *thread != 0);
    expected.sort_unstable();
    let found = rows(
        "SELECT utid, latency_dur FROM sched_latency_for_running_interval ORDER BY utid, latency_dur",
        &[kernel],
        &[],
    );
    let found: Vec<_> = found
        .iter()
        .map(|row| {
            let number = |name: &str| row[name].as_i64().unwrap();
            (number("utid"), number("latency_dur"))
        })
        .collect();
    assert!(expected.len() > 20);
    assert_eq!(found, expected);
    // What a thread was before it ran.
    let before = rows(
        "SELECT r.id, p.id AS runnable, p.state, p.utid = t.utid AS is_same, w.ts <= p.ts AS is_earlier \
         FROM sched_previous_runnable_on_thread r JOIN thread_state t ON t.id = r.id \
         JOIN thread_state p ON p.id = r.prev_runnable_id LEFT JOIN thread_state w ON w.id = r.prev_wakeup_runnable_id",
        &[kernel],
        &[],
    );
    assert!(before.len() >= found.len());
    for row in before {
        assert_eq!(
            (&row["state"], &row["is_same"]),
            (&"R".into(), &true.into())
        );
        assert!(row["runnable"].as_i64() < row["id"].as_i64());
        assert_ne!(row["is_earlier"], false);
    }
}

#[test]
fn states_are_a_table_of_their_own() {
    let kernel = "fuzz/corpus/perfetto/kernel";
    let states = rows(
        "SELECT s.ts, s.dur, s.value, t.name AS track, a.int_value AS prio FROM state s JOIN state_track t ON t.id = s.track_id \
         JOIN args a ON a.arg_set_id = s.arg_set_id AND a.key = 'next_prio' ORDER BY s.ts",
        &[kernel],
        &[],
    );
    let found: Vec<_> = states
        .iter()
        .map(|state| {
            (
                state["ts"].as_i64(),
                state["dur"].as_i64(),
                state["value"].as_str(),
            )
        })
        .collect();
    let expected = [
        (Some(100), Some(100), Some("swapper/1")),
        (Some(200), Some(10), Some("worker")),
        (Some(210), Some(-1), Some("other")),
    ];
    assert_eq!(found, expected);
    assert!(states.iter().all(|state| state["track"] == "CPU 1"));
    assert_eq!(states[2]["prio"], 100);
    // Numbers are unique across both tables, and slices have no states.
    assert_eq!(number("SELECT count(*) FROM slice", &[kernel]), 1);
    let shared = "SELECT count(*) FROM slice JOIN state USING (id)";
    assert_eq!(number(shared, &[kernel]), 0);
}

#[test]
fn classes_do_not_get_into_tables_of_their_name() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("names.json");
    let slice = |name: &str| {
        format!(r#"{{"ph":"X","ts":1,"dur":10,"pid":7,"tid":8,"name":"{name}","args":{{"x":5}}}}"#)
    };
    let names = ["events", "slice", "track", "counter", "_counter", "state"];
    std::fs::write(&path, format!("[{}]", names.map(slice).join(","))).unwrap();
    let path = path.to_str().unwrap();
    for (sql, expected) in [
        ("SELECT count(*) FROM events", 6),
        ("SELECT count(*) FROM slice", 6),
        ("SELECT count(*) FROM track", 1),
        ("SELECT count(*) FROM counter", 0),
        ("SELECT count(*) FROM _events", 1),
        ("SELECT sum(x) FROM _slice", 5),
        ("SELECT count(*) FROM _counter", 1),
        ("SELECT count(*) FROM __counter", 1),
        ("SELECT count(*) FROM _state", 1),
        ("SELECT count(*) FROM thread_slice WHERE tid = 8", 6),
    ] {
        assert_eq!(number(sql, &[path]), expected, "{sql}");
    }
}

/// The lines of an error without its picture.
fn problem(sql: &str, inputs: &[&str]) -> String {
    let words: Vec<&str> = [sql].into_iter().chain(inputs.iter().copied()).collect();
    let run = run(&words);
    assert_eq!(run.code, 2, "{sql}: {}", run.stderr);
    run.stderr
}

#[test]
fn what_was_meant_is_suggested() {
    for (sql, remedy) in [
        (
            "SELECT * FROM \"demo:shed\"",
            "there is a table `\"demo:sched\"`",
        ),
        ("SELECT * FROM slcie", "there is a table `slice`"),
        ("SELECT * FROM demo:sched", "`\"demo:sched\"`"),
        (
            "SELECT lenght(event) FROM events",
            "there is a function `length`",
        ),
        (
            "SELECT event FROM events ORDER BY evnt",
            "there is a column `event`",
        ),
        (
            "SELECT event FROM events WHERE event = \"demo:x\"",
            "`'demo:x'`",
        ),
        ("SELECT $x", "`--param x=VALUE`"),
        (
            "SELECT * FROM interval_intersect('slcie', 'slice')",
            "no table `slcie`",
        ),
        (
            "SELECT * FROM self_dur('SELECT nope FROM slice')",
            "column 'nope' not found",
        ),
    ] {
        let stderr = problem(sql, &[TRACE]);
        assert!(stderr.contains(remedy), "{sql}: {stderr}");
        assert!(stderr.lines().all(|line| line.len() < 200), "{stderr}");
    }
    // What the engine calls its own steps helps nobody.
    let stderr = problem("SELECT 1 FROM events WHERE timestamp > 'soon'", &[TRACE]);
    assert!(
        stderr.contains("'soon'") && !stderr.contains("rule"),
        "{stderr}"
    );
    assert!(!stderr.contains("caused by"), "{stderr}");
    // An error that speaks of a pipe is one.
    problem("SELECT * FROM \"Broken pipe\"", &[TRACE]);
}

#[test]
fn buckets_have_a_width_and_may_be_early() {
    let sql = "SELECT time_bucket('1s', -1) AS a, time_bucket(3, -9223372036854775807) AS b, \
               time_bucket(NULL, 5) AS c, time_bucket('1s', NULL) AS d, time_bucket(3, -3) AS e, \
               time_bucket(CAST(3 AS INT), CAST(7 AS SMALLINT)) AS f";
    let row = &rows(sql, &[TRACE], &[])[0];
    assert_eq!(row["a"], -1_000_000_000);
    assert!(row["b"].as_i64().is_none_or(|begin| begin < 0), "{row}");
    assert!(row["c"].is_null() && row["d"].is_null());
    assert_eq!((&row["e"], &row["f"]), (&(-3).into(), &6.into()));
    for width in [
        "0",
        "-5",
        "'0s'",
        "'-1s'",
        "INTERVAL '-1 hour'",
        "1.5",
        "true",
    ] {
        for time in ["timestamp", "timestamp::BIGINT"] {
            let sql = format!("SELECT time_bucket({width}, {time}) FROM events");
            let stderr = problem(&sql, &[TRACE]);
            assert!(
                stderr.contains("the width of time_bucket"),
                "{sql}: {stderr}"
            );
        }
    }
}

#[test]
fn tables_that_functions_make_may_be_joined_again() {
    let once = "SELECT * FROM asof_join(''SELECT 1 ts, 2 a'', ''SELECT 1 ts, 3 a'')";
    let sql = format!("SELECT * FROM asof_join('{once}', 'SELECT 1 ts, 4 a')");
    let row = &rows(&sql, &[TRACE], &[])[0];
    let values: Vec<_> = ["a", "a_1", "a_2"].map(|name| row[name].as_i64()).into();
    assert_eq!(values, [Some(2), Some(3), Some(4)]);
    let sql = "SELECT * FROM interval_intersect('SELECT 1 ts, 2 dur, 3 x, 4 x_1', 'SELECT 1 ts, 2 dur, 5 x')";
    let row = &rows(sql, &[TRACE], &[])[0];
    let values: Vec<_> = ["x_0", "x_1", "x_2"].map(|name| row[name].as_i64()).into();
    assert_eq!(values, [Some(3), Some(4), Some(5)]);
}

/// Pairs are counted before they are made: these would take 20 GB.
#[test]
fn pairs_of_intervals_are_within_the_limit() {
    let open = "SELECT value AS ts, -1 AS dur FROM generate_series(1, 30000)";
    let sql = format!("SELECT count(*) FROM interval_intersect('{open}', '{open}')");
    let limited = "ulimit -v 4000000; exec \"$0\" \"$@\"";
    let run = std::process::Command::new("sh")
        .args(["-c", limited, env!("CARGO_BIN_EXE_kymo-query")])
        .args(["--memory", "100M", "--threads", "1", &sql, TRACE])
        .current_dir(file(""))
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&run.stderr);
    assert_eq!(run.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("needs more memory"), "{stderr}");
}

/// A link stays a link, and what is not a file stays what it is.
#[test]
#[cfg(unix)]
fn outputs_take_the_place_of_files_only() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let place = tempfile::tempdir().unwrap();
    let (real, link, pipe) = (
        place.path().join("real.csv"),
        place.path().join("link.csv"),
        place.path().join("pipe.csv"),
    );
    std::fs::write(&real, "old").unwrap();
    std::fs::set_permissions(&real, PermissionsExt::from_mode(0o600)).unwrap();
    symlink(&real, &link).unwrap();
    let to = |path: &std::path::Path| run(&["SELECT 1 AS a", TRACE, "-o", path.to_str().unwrap()]);
    assert_eq!(to(&link).code, 0);
    assert!(link.is_symlink());
    assert_eq!(std::fs::read_to_string(&real).unwrap(), "a\n1\n");
    assert_eq!(real.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let made = std::process::Command::new("mkfifo")
        .arg(&pipe)
        .status()
        .unwrap();
    assert!(made.success());
    let refused = to(&pipe);
    assert_eq!(refused.code, 1, "{}", refused.stderr);
    assert!(refused.stderr.contains("pipe.csv"), "{}", refused.stderr);
    assert!(!pipe.is_file());
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 3);
}

/// Names come from recordings: on a terminal they are shown, and do nothing.
#[test]
fn names_do_not_control_terminals() {
    let run = run(&["SELECT 1 AS \"\u{1b}[31mred\"", TRACE]);
    assert_eq!(run.code, 0);
    assert!(run.stdout.starts_with("\\x1b[31mred\n"), "{:?}", run.stdout);
}

#[test]
fn errors_in_texts_of_functions_show_their_place() {
    // Where the caret is, and under what.
    let place = |sql: &str| {
        let message = problem(sql, &[TRACE]);
        let (line, carets) = message
            .lines()
            .zip(message.lines().skip(1))
            .find(|(_, next)| next.contains('^'))
            .unwrap_or_else(|| panic!("{sql}: {message}"));
        let begin = carets.find('^').expect("a caret");
        let end = carets.rfind('^').expect("a caret");
        let first = message.lines().next().unwrap_or_default().to_owned();
        (first, line[begin..=end].to_owned())
    };
    for (sql, message, at) in [
        (
            "SELECT * FROM self_dur('SELECT ts, dur, nosuch FROM slice WHERE name <> ''a''')",
            "error: column 'nosuch' not found",
            "nosuch",
        ),
        (
            "SELECT * FROM interval_intersect('slice', 'SELECT ''a'', du r FRM slice')",
            "error: expected: end of statement, found: FRM",
            "FRM",
        ),
        (
            "SELECT * FROM interval_intersect('nosuch', 'slice')",
            "error: no table `nosuch`",
            "nosuch",
        ),
        (
            "SELECT * FROM interval_intersect('slice', 'slice', 'nokey')",
            "error: no column `nokey` in `slice`",
            "nokey",
        ),
        (
            "SELECT * FROM self_dur('SELECT 1 AS ts')",
            "error: no column `dur`",
            "SELECT 1 AS ts",
        ),
        (
            "SELECT * FROM intervals_overlap_count('SELECT 1 AS ts')",
            "error: no column `dur`",
            "SELECT 1 AS ts",
        ),
        (
            "SELECT * FROM intervals_overlap_count('SELECT x FROM slice')",
            "error: column 'x' not found",
            "x",
        ),
        (
            "SELECT * FROM intervals_overlap_count('slice', 'nokey')",
            "error: no column `nokey` in `slice`",
            "nokey",
        ),
        // A text in a text.
        (
            "SELECT * FROM self_dur('SELECT * FROM self_dur(''SELECT ts, dur, y FROM slice'')')",
            "error: column 'y' not found",
            "y",
        ),
    ] {
        assert_eq!(place(sql), (message.to_owned(), at.to_owned()), "{sql}");
    }
}

#[test]
fn long_statements_are_planned_or_rejected() {
    let run = |sql: &str| common::run(&["--format", "csv", sql, TRACE]);
    for sql in [
        format!("SELECT 1{}", "+1".repeat(400)),
        format!(
            "SELECT count(*) FROM events WHERE ticks = 0{}",
            " OR ticks = 1".repeat(900)
        ),
        format!(
            "SELECT count(*) FROM (SELECT 1{})",
            " UNION ALL SELECT 1".repeat(400)
        ),
    ] {
        let done = run(&sql);
        assert_eq!(done.code, 0, "{}", done.stderr);
    }
    let list: Vec<String> = (0..20_000).map(|number| number.to_string()).collect();
    let list = format!(
        "SELECT count(*) FROM events WHERE ticks IN ({})",
        list.join(",")
    );
    assert_eq!(run(&list).code, 0);
    for sql in [
        format!("SELECT 1{}", "+1".repeat(20_000)),
        format!("SELECT 1{}", " UNION ALL SELECT 1".repeat(3000)),
        format!(
            "SELECT * FROM self_dur('SELECT 1 AS ts, 1{} AS dur')",
            "+1".repeat(20_000)
        ),
    ] {
        let done = run(&sql);
        assert_eq!(done.code, 2, "{}", done.stderr);
        assert!(
            done.stderr.contains("more than 2000 operators"),
            "{}",
            done.stderr
        );
    }
    let nested = format!("SELECT {}1{}", "(".repeat(3000), ")".repeat(3000));
    assert!(problem(&nested, &[TRACE]).contains("more than 50 levels"));
}

#[test]
fn statements_without_columns_print_nothing() {
    let done = common::run(&["CREATE VIEW v AS SELECT 1; SELECT * FROM v", TRACE]);
    assert_eq!(done.stdout, "Int64(1)\n--------\n       1\n");
}

#[test]
fn an_interrupt_ends_a_statement_while_it_writes_rows() {
    let mut program = Command::new(env!("CARGO_BIN_EXE_kymo-query"))
        .args([
            "--format",
            "csv",
            "SELECT a.ticks FROM events a, events b, events c",
        ])
        .arg(file(TRACE))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program runs");
    let mut rows = program.stdout.take().expect("it has an output");
    // Once rows come, signals are heard; the output is read on, so that it is written all the time.
    let (begun, has_begun) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || {
        let mut buffer = vec![0; 1 << 20];
        while rows.read(&mut buffer).is_ok_and(|count| count > 0) {
            let _ = begun.send(());
        }
    });
    has_begun.recv().expect("rows come");
    let number = program.id().to_string();
    let sent = Command::new("kill").args(["-INT", &number]).status();
    assert!(sent.is_ok_and(|status| status.success()));
    let begin = std::time::Instant::now();
    while program.try_wait().expect("it can be asked").is_none() {
        if begin.elapsed() > std::time::Duration::from_secs(20) {
            program.kill().expect("it ends");
            panic!("it went on");
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    reader.join().expect("the output ends");
    let mut report = String::new();
    let mut stderr = program.stderr.take().expect("it has messages");
    stderr.read_to_string(&mut report).expect("text");
    assert_eq!(report, "error: interrupted\n");
}
