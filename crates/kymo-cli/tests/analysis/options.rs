//! What options choose, and which are refused.

use super::*;

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
