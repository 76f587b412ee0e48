//! `kymo states`, `latency`, `profile` and `stats --by-track`, on traces and on event logs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// A real LTTng trace of the repository: two channels on two CPUs.
const TRACE: &str = "examples/lttng-small";
/// Logs of the same events in both byte orders.
const LOG: &str = "crates/kymo-cpel/tests/data/be_basic.cpel";
const LITTLE_LOG: &str = "crates/kymo-cpel/tests/data/le_basic.cpel";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Exit code, standard output, standard error; `columns` is how wide the terminal is.
fn all(columns: &str, args: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_kymo"))
        .args(args)
        .current_dir(root())
        .env("TZ", "UTC")
        .env("COLUMNS", columns)
        .stdin(Stdio::null())
        .output()
        .expect("kymo runs");
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8");
    (
        output.status.code().expect("not killed"),
        text(&output.stdout),
        text(&output.stderr),
    )
}

/// Standard output of a run that must be good and silent.
fn good(args: &[&str]) -> String {
    let (code, out, err) = all("100", args);
    assert_eq!((code, err.as_str()), (0, ""), "{args:?}");
    out
}

fn json(args: &[&str]) -> serde_json::Value {
    serde_json::from_str(&good(args)).expect("JSON")
}

/// A trace of one stream of events `begin` (0), `end` (1), `other` (2) with a time (in units of
/// 8 bits), a key and a name.
fn trace(names: [&str; 3], events: &[(u8, u8, u8, &str)]) -> TempDir {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let classes: String = names
        .iter()
        .enumerate()
        .map(|(id, name)| {
            format!(
                "event {{ name = \"{name}\"; id = {id}; fields := struct {{ u8 key; string who; }}; }};\n"
            )
        })
        .collect();
    let metadata = format!(
        "/* CTF 1.8 */
trace {{ major = 1; minor = 8; byte_order = le; }};
clock {{ name = c; freq = 1000000000; }};
typealias integer {{ size = 8; }} := u8;
typealias integer {{ size = 64; map = clock.c.value; }} := stamp;
stream {{ event.header := struct {{ u8 id; stamp timestamp; }}; }};
{classes}"
    );
    fs::write(directory.path().join("metadata"), metadata).expect("metadata written");
    let mut stream = Vec::new();
    for &(id, time, key, who) in events {
        stream.push(id);
        stream.extend(u64::from(time).to_le_bytes());
        stream.push(key);
        stream.extend(who.bytes());
        stream.push(0);
    }
    fs::write(directory.path().join("stream"), stream).expect("stream written");
    directory
}

#[test]
fn help_is_complete() {
    let mut pages = String::new();
    for command in ["states", "latency", "profile"] {
        pages += &format!("$ kymo help {command}\n{}\n", good(&["help", command]));
    }
    insta::assert_snapshot!(pages);
}

#[test]
fn analyses_of_a_trace_and_of_a_log() {
    let mut reports = String::new();
    for args in [
        &["stats", "--clock-gmt", "--by-track", TRACE][..],
        &[
            "stats",
            "--clock-gmt",
            "--track",
            "cpu_id",
            "--top",
            "1",
            "--event",
            "demo:i*",
            TRACE,
        ],
        &["stats", "--by-track", LOG],
        &["states", "--state-event", "THREAD/THRUNNING", LOG],
        &["states", "--state-event", "*", "--top", "1", LOG],
        &[
            "states",
            "--state-event",
            "1",
            "--sort",
            "name",
            "--filter",
            "cpu 0",
            LOG,
        ],
        &[
            "states",
            "--state-event",
            "demo:ints",
            "--track",
            "cpu_id",
            TRACE,
        ],
        &[
            "latency",
            "--clock-gmt",
            "--start",
            "demo:ints",
            "--end",
            "demo:empty",
            "--worst",
            "2",
            TRACE,
        ],
        &[
            "latency",
            "--clock-gmt",
            "--start",
            "FUNC/ENTER",
            "--end",
            "FUNC/EXIT",
            "--pair-by",
            "track,datum",
            LOG,
        ],
        &["profile", "--enter", "FUNC/ENTER", "--exit", "4", LOG],
        &[
            "profile",
            "--enter",
            "3",
            "--exit",
            "4",
            "--running",
            "--resolution",
            "us",
            LOG,
        ],
    ] {
        reports += &format!("$ kymo {}\n{}\n", args.join(" "), good(args));
    }
    insta::assert_snapshot!(reports);
}

#[test]
fn results_depend_neither_on_threads_nor_on_the_byte_order() {
    for args in [
        &["stats", "--by-track", "--json"][..],
        &["states", "--state-event", "1", "--json"],
        &["latency", "--start", "1", "--end", "2", "--json"],
        &[
            "profile", "--enter", "3", "--exit", "4", "--key", "text", "--json",
        ],
    ] {
        let output_of = |threads: &str, log: &str| {
            let all = [args, &["--threads", threads, log]].concat();
            good(&all).replace(log, "LOG")
        };
        let one = output_of("1", LOG);
        assert_eq!(output_of("3", LOG), one, "{args:?}");
        assert_eq!(output_of("2", LITTLE_LOG), one, "{args:?}");
    }
}

#[test]
fn several_recordings_are_one_time_line() {
    // Two traces whose states alternate: 0, 10, 20, ... and 3, 13, 23, ...
    let states = |first: u8| -> Vec<(u8, u8, u8, &'static str)> {
        (0..20)
            .map(|number| (0, first + 10 * number, 1, ""))
            .collect()
    };
    let names = ["state", "b", "c"];
    let (left, right) = (trace(names, &states(0)), trace(names, &states(3)));
    let (left, right) = (
        left.path().to_str().unwrap(),
        right.path().to_str().unwrap(),
    );
    for order in [[left, right], [right, left]] {
        let args = [&["states", "--state-event", "state", "--json"][..], &order].concat();
        let found = json(&args);
        assert_eq!((&found["count"], &found["open"]), (&39.into(), &1.into()));
        let tracks = found["tracks"].as_array().expect("tracks");
        let figures_of = |track: &serde_json::Value| {
            let path = track["recording"].as_str().expect("a path").to_string();
            (path, track["count"].clone(), track["mean"].clone())
        };
        // The last state of the right one has no end.
        assert_eq!(
            figures_of(&tracks[0]),
            (right.to_string(), 19.into(), 7.0.into())
        );
        assert_eq!(
            figures_of(&tracks[1]),
            (left.to_string(), 20.into(), 3.0.into())
        );
    }
    // The same fields are the same track, in whatever recording; --per keeps them apart.
    let args = [
        "states",
        "--state-event",
        "state",
        "--track",
        "key",
        "--json",
        left,
        right,
    ];
    assert_eq!(json(&args)["tracks"][0]["count"], 39);
    let per = ["--per", "stream.name"];
    assert_eq!(json(&[&args[..], &per].concat())["tracks"][0]["mean"], 10.0);
}

#[test]
fn latencies_pair_by_what_is_asked() {
    let made = trace(
        ["begin", "end", "other"],
        &[
            (0, 10, 1, "a"),
            (0, 20, 2, "b"),
            (2, 25, 9, "c"),
            (1, 30, 1, "b"),
            (1, 60, 2, "a"),
            (1, 70, 3, "a"),
            (0, 80, 4, "a"),
            (0, 90, 4, "a"),
            (1, 95, 4, "x"),
            (0, 99, 5, "a"),
        ],
    );
    let path = made.path().to_str().unwrap();
    let found = |pair_by: &str| {
        let args = [
            "latency",
            "--start",
            "begin",
            "--end",
            "end",
            "--json",
            "--pair-by",
        ];
        let found = json(&[&args[..], &[pair_by, path]].concat());
        let worst = found["worst"].as_array().expect("a list").iter();
        let worst: Vec<u64> = worst
            .map(|slow| slow["latency"].as_u64().unwrap())
            .collect();
        let number = |key: &str| found[key].as_u64().expect("a number");
        (worst, number("unmatched_starts"), number("unmatched_ends"))
    };
    assert_eq!(found("key"), (vec![40, 20, 5], 2, 1));
    assert_eq!(found("track"), (vec![10, 5], 3, 2));
    assert_eq!(found("who"), (vec![50, 10], 3, 2));
    assert_eq!(found("track,key,who"), (vec![], 5, 4));
    assert_eq!(found("payload.key"), found("key"));
    let (code, out, _) = all("60", &["latency", "--start", "begin", "--end", "end", path]);
    assert_eq!(code, 0);
    assert!(out.lines().all(|line| line.chars().count() <= 60), "{out}");
}

#[test]
fn filters_apply() {
    let all = [
        "latency",
        "--start",
        "demo:ints",
        "--end",
        "demo:empty",
        "--json",
        TRACE,
    ];
    let whole = json(&all)["starts"].as_u64().expect("a number");
    let some = json(&[&all[..], &["--where", "cpu_id == 1"]].concat());
    let some = some["starts"].as_u64().expect("a number");
    assert!(0 < some && some < whole);
    let later = [&all[..], &["--begin", "2030-01-01 00:00"]].concat();
    let (code, none, reported) = self::all("100", &later);
    assert_eq!(code, 0);
    assert!(
        reported.starts_with("warning: no event is in the given time range"),
        "{reported}"
    );
    let none: serde_json::Value = serde_json::from_str(&none).expect("JSON");
    assert_eq!(
        (&none["starts"], &none["p50"]),
        (&0.into(), &serde_json::Value::Null)
    );
    let ends = json(&[&all[..], &["--event", "demo:empty"]].concat());
    assert_eq!(ends["starts"], 0);
    assert_eq!(ends["unmatched_ends"], ends["ends"]);
}

#[test]
fn what_is_wrong_is_reported() {
    let mut reported = String::new();
    for args in [
        &["states", "--state-event", "demo:int", TRACE][..],
        &[
            "latency",
            "--start",
            "demo:ints",
            "--end",
            "no such event",
            TRACE,
        ],
        &[
            "profile",
            "--enter",
            "demo:*",
            "--exit",
            "demo:empty",
            TRACE,
        ],
        &[
            "profile",
            "--enter",
            "demo:ints",
            "--exit",
            "demo:empty",
            "--key",
            "u9",
            TRACE,
        ],
        &[
            "states",
            "--state-event",
            "demo:ints",
            "--track",
            "cpu",
            TRACE,
        ],
        &[
            "states",
            "--state-event",
            "demo:ints",
            "--track",
            "a b",
            TRACE,
        ],
        &[
            "states",
            "--state-event",
            "demo:ints",
            "--track",
            "a=b",
            TRACE,
        ],
        &[
            "latency",
            "--start",
            "1",
            "--end",
            "2",
            "--pair-by",
            "datum=datums",
            LOG,
        ],
        &["stats", "--track", "trak", LOG],
    ] {
        let (code, out, err) = all("100", args);
        assert_eq!((code, out.as_str()), (2, ""), "{args:?}");
        reported += &format!("$ kymo {}\n{err}\n", args.join(" "));
    }
    insta::assert_snapshot!(reported);
}

#[test]
fn a_clock_that_goes_back_is_damage_and_makes_no_negative_times() {
    let made = trace(
        ["begin", "end", "other"],
        &[
            (0, 50, 1, ""),
            (1, 40, 1, ""),
            (0, 60, 1, ""),
            (1, 70, 1, ""),
        ],
    );
    let path = made.path().to_str().unwrap();
    for (args, count) in [
        (&["states", "--state-event", "*"][..], "count"),
        (&["latency", "--start", "begin", "--end", "end"], "pairs"),
        (&["profile", "--enter", "begin", "--exit", "end"], "calls"),
    ] {
        let (code, out, _) = all("100", &[args, &["--json", path]].concat());
        let found: serde_json::Value = serde_json::from_str(&out).expect("JSON");
        assert_eq!(code, 1, "{args:?}");
        assert_eq!(found["backwards"], 1, "{args:?}");
        assert_eq!(found[count], if count == "count" { 2 } else { 1 });
        assert_eq!(found["faults"][0]["code"], "not-monotonic");
        let (code, out, _) = all("100", &[args, &["--strict", path]].concat());
        assert_eq!(code, 1);
        assert!(out.contains("[not-monotonic]"), "{out}");
        let (_, out, _) = all("100", &[args, &[path]].concat());
        assert!(out.contains("left out, time went back"), "{out}");
    }
}

#[test]
fn tracks_of_several_recordings_are_distinguished() {
    let names = ["begin", "end", "other"];
    let events = [(0, 10, 1, "a"), (1, 20, 1, "a")];
    let one = trace(names, &events);
    let other = trace(
        names,
        &events.map(|(id, time, key, who)| (id, time + 50, key, who)),
    );
    let paths = [one.path().to_str().unwrap(), other.path().to_str().unwrap()];
    for args in [
        &["states", "--state-event", "*", "--per", "stream.name"][..],
        &["latency", "--start", "begin", "--end", "end"],
        &["stats", "--by-track"],
    ] {
        let out = good(&[args, &paths].concat());
        for path in paths {
            assert!(out.contains(&format!("{path}: stream\n")), "{out}");
        }
        // Of one recording alone the name says enough.
        let out = good(&[args, &paths[..1]].concat());
        assert!(out.contains("  stream\n"), "{out}");
        // A track that several recordings have is one.
        let out = good(&[args, &["--track", "who"], &paths].concat());
        assert!(out.contains("  a\n") && !out.contains(paths[0]), "{out}");
    }
}

#[test]
fn names_with_control_characters_are_shown_harmlessly() {
    let who = "\x1b[2Jwho\n\u{9b}31m";
    let made = trace(
        ["be\\033[1mgin", "end", "other"],
        &[
            (0, 10, 1, who),
            (1, 20, 1, who),
            (0, 30, 1, who),
            (1, 31, 1, who),
        ],
    );
    let path = made.path().to_str().unwrap();
    for args in [
        &["states", "--state-event", "0", "--track", "who"][..],
        &[
            "latency",
            "--start",
            "0",
            "--end",
            "1",
            "--pair-by",
            "who",
            "--track",
            "who",
        ],
        &["profile", "--enter", "0", "--exit", "1"],
        &["profile", "--enter", "0", "--exit", "1", "--key", "who"],
        &["stats", "--by-track", "--track", "who"],
    ] {
        let out = good(&[args, &[path]].concat());
        let is_plain = |c: char| c == '\n' || !c.is_control();
        assert!(out.chars().all(is_plain), "{out:?}");
        assert!(out.contains("\\x1b["), "{out}");
        let json = good(&[args, &["--json", path]].concat());
        assert!(
            json.trim_end().chars().all(|c| !c.is_ascii_control()),
            "{json:?}"
        );
    }
}

#[test]
fn tables_fit_the_width() {
    let long = "x".repeat(300);
    let made = trace(
        ["begin", "end", "other"],
        &[
            (0, 10, 1, &long),
            (1, 20, 1, &long),
            (0, 30, 1, &long),
            (1, 31, 1, &long),
        ],
    );
    let path = made.path().to_str().unwrap();
    for args in [
        &["states", "--state-event", "begin", "--track", "who"][..],
        &[
            "latency", "--start", "begin", "--end", "end", "--track", "who",
        ],
        &[
            "profile", "--enter", "begin", "--exit", "end", "--key", "who",
        ],
        &["stats", "--by-track", "--track", "who"],
    ] {
        let args = [args, &["--clock-gmt", path]].concat();
        let (_, out, _) = all("110", &args);
        let widest = out.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(110), "{out}");
        assert!(out.contains("x…\n"), "{out}");
        let (_, out, _) = all("", &args);
        assert!(out.contains(&long), "without a width nothing is cut");
    }
}

/// Chrome's format says which events begin and end slices: they nest on each thread.
#[test]
fn recordings_say_what_begins_and_ends() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("trace.json");
    let events = [
        r#""ph":"B","name":"outer","tid":1,"ts":1"#,
        r#""ph":"X","name":"load","tid":1,"ts":2,"dur":3"#,
        r#""ph":"B","name":"outer","tid":1,"ts":6"#,
        r#""ph":"X","name":"load","tid":2,"ts":7,"dur":10"#,
        r#""ph":"E","tid":1,"ts":8"#,
        r#""ph":"X","name":"load","tid":2,"ts":9,"dur":2"#,
        r#""ph":"E","tid":1,"ts":10"#,
        r#""ph":"E","tid":1,"ts":11"#,
        r#""ph":"B","name":"open","tid":1,"ts":12"#,
        r#""ph":"i","name":"mark","tid":1,"ts":40"#,
    ];
    let events = events.map(|event| format!("{{\"pid\":1,{event}}}"));
    fs::write(&path, format!("[{}]", events.join(",\n"))).expect("a file is written");
    let path = path.to_str().expect("UTF-8");

    let found = json(&["latency", "--json", path]);
    let number = |key: &str| found[key].as_u64().expect("a number");
    assert_eq!(
        ["starts", "ends", "pairs", "open", "unmatched_ends"].map(number),
        [6, 6, 5, 1, 1]
    );
    let worst = found["worst"].as_array().expect("a list").iter();
    let worst: Vec<(u64, &str, &str)> = worst
        .map(|slow| {
            (
                slow["latency"].as_u64().expect("a number"),
                slow["key"].as_str().expect("a name"),
                slow["start_track"]["track_name"].as_str().expect("a name"),
            )
        })
        .collect();
    assert_eq!(
        worst,
        [
            (10_000, "load", "thread 2"),
            (9_000, "outer", "thread 1"),
            (3_000, "load", "thread 1"),
            (2_000, "outer", "thread 1"),
            (2_000, "load", "thread 2"),
        ]
    );

    // With two threads at a time, and the time of those that are within others taken away.
    let found = json(&["profile", "--json", path]);
    let counts_of = |name: &str| {
        let keys = found["keys"].as_array().expect("a list");
        let key = keys.iter().find(|key| key["key"] == name);
        let key = key.expect("it is there");
        ["calls", "self", "total"].map(|count| key[count].as_u64().expect("a number"))
    };
    assert_eq!(counts_of("load"), [3, 13_000, 13_000]);
    assert_eq!(counts_of("outer"), [2, 6_000, 9_000]);
    assert_eq!(
        (&found["span"], &found["unmatched_exits"]),
        (&16_000.into(), &1.into())
    );

    // Its own keys are asked for by name, as of other recordings.
    let named = json(&[
        "latency", "--start", "outer", "--end", "end", "--json", path,
    ]);
    assert_eq!(
        (&named["pairs"], &named["replaced"]),
        (&1.into(), &1.into())
    );
    let (code, out, err) = all("100", &["profile", TRACE]);
    assert_eq!((code, out.as_str()), (2, ""));
    assert!(
        err.contains("hint: specify them with --enter and --exit"),
        "{err}"
    );
}

#[test]
fn states_of_groups_come_in_the_order_that_is_asked_for() {
    let rows = |sort: &str| -> Vec<(String, f64, f64, f64)> {
        let states = [
            "states",
            "--state-event",
            "*",
            "--by",
            "name",
            "--json",
            "--sort",
        ];
        let report = json(&[&states[..], &[sort, TRACE]].concat());
        let groups = report["groups"].as_array().expect("groups").iter();
        let number = |value: &serde_json::Value, key: &str| value[key].as_f64().expect("a number");
        groups
            .map(|group| {
                let name = group["name"].as_str().or(group["by"]["name"].as_str());
                (
                    name.expect("a name").to_owned(),
                    number(group, "total"),
                    number(group, "count"),
                    number(group, "mean"),
                )
            })
            .collect()
    };
    type Row = (String, f64, f64, f64);
    type Order = fn(&Row, &Row) -> bool;
    let keys: [(&str, Order); 4] = [
        ("time", |a, b| a.1 >= b.1),
        ("count", |a, b| a.2 >= b.2),
        ("mean", |a, b| a.3 >= b.3),
        ("name", |a, b| a.0 <= b.0),
    ];
    for (sort, is_sorted) in keys {
        let rows = rows(sort);
        assert!(rows.len() > 3);
        assert!(rows.is_sorted_by(is_sorted), "{sort}: {rows:?}");
    }
}

/// Each key with what calls it and what it calls; every call with the fields of the events that it begins and ends with.
#[test]
fn calls_are_shown_by_caller_and_one_by_one() {
    let home = TempDir::new().unwrap();
    let file = home.path().join("calls.json");
    let events = [
        "1 B main",
        "2 B read",
        "3 B lock",
        "5 E",
        "9 E",
        "10 B lock",
        "11 E",
        "20 E",
    ];
    let events = events.map(|event| {
        let mut words = event.split(' ');
        let (time, kind) = (words.next().unwrap(), words.next().unwrap());
        let name = words
            .next()
            .map_or(String::new(), |name| format!(r#""name":"{name}","#));
        format!(r#"{{{name}"ph":"{kind}","ts":{time},"pid":1,"tid":1}}"#)
    });
    fs::write(&file, format!("[{}]", events.join(","))).unwrap();
    let file = file.to_str().unwrap();
    let text = good(&["profile", "--call-graph", file]);
    let (_, graph) = text
        .split_once("calls  self (us)  total (us)  callers")
        .unwrap();
    let graph: Vec<&str> = graph.lines().skip(1).collect();
    assert_eq!(
        graph,
        [
            "    1     11.000      19.000  main",
            "    1     11.000      19.000    <- (outermost)",
            "    1      5.000       7.000    -> read",
            "    1      1.000       1.000    -> lock",
            "    1      5.000       7.000  read",
            "    1      5.000       7.000    <- main",
            "    1      2.000       2.000    -> lock",
            "    2      3.000       3.000  lock",
            "    1      2.000       2.000    <- read",
            "    1      1.000       1.000    <- main",
        ]
    );
    let json = json(&["profile", "--call-graph", "--json", file]);
    let read = &json["keys"][1];
    assert_eq!((&read["p50"], &read["p99"]), (&5000.into(), &5000.into()));
    assert_eq!(read["callers"][0]["key"], "main");
    assert_eq!(
        json["keys"][0]["callers"][0]["key"],
        serde_json::Value::Null
    );
    assert_eq!(
        good(&["profile", "--all", file]),
        "begin,end,duration,track,begin.track,track_name,phase,end.track,end.track_name,end.phase\n\
         3000,5000,2000,thread 1,1,thread 1,begin,1,thread 1,end\n\
         2000,9000,5000,thread 1,1,thread 1,begin,1,thread 1,end\n\
         10000,11000,1000,thread 1,1,thread 1,begin,1,thread 1,end\n\
         1000,20000,11000,thread 1,1,thread 1,begin,1,thread 1,end\n"
    );
}

#[test]
fn options_that_would_be_ignored_are_refused() {
    let latency = ["latency", "--start", "demo:ints", "--end", "demo:ints"];
    let states = ["states", "--state-event", "demo:ints"];
    let profile = ["profile", "--enter", "demo:ints", "--exit", "demo:floats"];
    let values = ["values", "--field", "u8"];
    for (command, options, expected) in [
        (
            &latency[..],
            &["--every", "1s", "--worst", "3"][..],
            "`--worst <N>`",
        ),
        (&latency, &["--all", "--worst", "3"], "`--worst <N>`"),
        (
            &states,
            &["--every", "1s", "--sort", "name"],
            "`--sort <BY>`",
        ),
        (&["stats"], &["--every", "1s", "--by-track"], "`--by-track`"),
        (&["stats"], &["--by", "name", "--each"], "`--each`"),
        (&["stats"], &["--by-track", "--each"], "`--each`"),
        (
            &["stats"],
            &["--top", "0"],
            "expected a whole number from 1",
        ),
        (
            &["print"],
            &["--live-from", "now"],
            "is for sessions of LTTng live",
        ),
        (&["info"], &["--live-wait"], "is for sessions of LTTng live"),
        (&values, &["--worst", "3"], "--outliers"),
        (&values, &["--every", "1s", "--worst", "3"], "`--worst <N>`"),
        (
            &states,
            &["--critical-path", "3"],
            "`--critical-path <VALUE>`",
        ),
        (&values, &["--every", "1s", "--top", "3"], "`--top <N>`"),
        (&profile, &["--folded", "--follow"], "`--follow`"),
        (&profile, &["--folded", "--top", "3"], "`--top <N>`"),
        (&latency, &["--every", "-1s"], "`-1s` is not above 0"),
        (
            &latency,
            &["--every", "1s", "--format", "portable"],
            "round-robin databases",
        ),
        (
            &latency,
            &["--every", "1s", "--force"],
            "no file is written",
        ),
        (
            &latency,
            &["--every", "1s", "--json", "-o", "x.csv"],
            "ends in .csv",
        ),
        (
            &latency,
            &["--every", "1s", "--json", "-o", "x.rrd"],
            "ends in .rrd",
        ),
        (
            &latency,
            &["--every", "1s", "--format", "portable", "-o", "x.csv"],
            "round-robin databases",
        ),
    ] {
        let (code, _, reported) = all("100", &[command, options, &[TRACE]].concat());
        assert_eq!(code, 2, "{options:?}: {reported}");
        assert!(reported.contains(expected), "{options:?}: {reported}");
    }
}

#[test]
fn single_durations_have_the_fields_of_packets() {
    let args = [
        "latency",
        "--start",
        "demo:ints",
        "--end",
        "demo:ints",
        "--all",
        TRACE,
    ];
    let output = good(&args);
    let mut lines = output
        .lines()
        .map(|line| line.split(',').collect::<Vec<_>>());
    let header = lines.next().unwrap();
    let column = |name| header.iter().position(|&column| column == name).unwrap();
    let (track, begin, end) = (column("track"), column("cpu_id"), column("end.cpu_id"));
    for line in lines {
        // A stream of LTTng is of one processor, which its name ends with.
        assert!(
            line[track].ends_with(&format!("_{}", line[begin])),
            "{line:?}"
        );
        assert_eq!(line[begin], line[end]);
    }
    assert!(!header.contains(&"content_size") && !header.contains(&"packet_size"));
}
