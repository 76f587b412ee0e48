//! `kymo states`, `latency`, `profile` and `stats --by-track`, on traces and on event logs.

#[path = "analysis/options.rs"]
mod options;
#[path = "analysis/recordings.rs"]
mod recordings;

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
