//! Recordings of several kinds, and several at once.

use super::*;

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
