//! `kymo diff`, and events around those that are wanted.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

fn all(args: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_kymo"))
        .args(args)
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
        .env("TZ", "UTC")
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

fn good(args: &[&str]) -> String {
    let (code, out, err) = all(args);
    assert_eq!((code, err.as_str()), (0, ""), "{args:?}");
    out
}

/// A trace of slices in Chrome's format: 400 of each of 20 names, of varying duration; those of some are longer by
/// `factor`. It begins at a second.
fn slices(path: &Path, second: u64, seed: u64, slower: &[usize], factor: f64, extra: &str) {
    let mut random = seed;
    let mut next = || {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) as f64 / f64::from(1 << 31)
    };
    let mut events = Vec::new();
    let mut now = second as f64 * 1e6;
    for round in 0..400 {
        for name in 0..20 {
            now += 100.0 + 20.0 * next();
            // The sum of several is nearly normal.
            let spread: f64 = (0..6).map(|_| next()).sum::<f64>() / 6.0;
            let mut duration = 30.0 + 20.0 * spread;
            if slower.contains(&name) {
                duration *= factor;
            }
            events.push(format!(
                r#"{{"ph":"X","pid":1,"tid":1,"ts":{now:.3},"dur":{duration:.3},"name":"f{name:02}","args":{{"round":{round}}}}}"#
            ));
        }
    }
    if !extra.is_empty() {
        events.push(format!(
            r#"{{"ph":"i","pid":1,"tid":1,"ts":{now:.3},"name":"{extra}"}}"#
        ));
    }
    fs::write(path, format!("[{}]", events.join(",\n"))).expect("written");
}

fn changed(report: &Value, kind: &str) -> Vec<String> {
    let changes = report["changes"].as_array().expect("changes").iter();
    let found = changes.filter(|change| change["kind"] == kind && change["changed"] == true);
    let mut names: Vec<String> = found
        .map(|change| change["group"].as_str().unwrap().to_string())
        .collect();
    names.sort();
    names
}

#[test]
fn what_became_slower_is_reported_and_limits_are_kept() {
    let directory = tempfile::tempdir().expect("a directory");
    let at = |name: &str| -> PathBuf { directory.path().join(name) };
    slices(&at("a.json"), 10, 1, &[], 1.0, "old");
    slices(&at("b.json"), 10, 2, &[3, 7], 1.05, "new");
    slices(&at("c.json"), 10, 3, &[], 1.0, "old");
    let (a, b, c) = (at("a.json"), at("b.json"), at("c.json"));
    let [a, b, c] = [&a, &b, &c].map(|path| path.to_str().expect("UTF-8"));

    let report: Value = serde_json::from_str(&good(&["diff", "--json", a, b])).expect("JSON");
    assert_eq!(changed(&report, "latency"), ["f03", "f07"]);
    assert_eq!(changed(&report, "self"), ["f03", "f07"]);
    assert_eq!(changed(&report, "events"), ["new", "old"]);
    let of_f03 = report["changes"].as_array().unwrap().iter();
    let of_f03 = of_f03
        .clone()
        .find(|change| change["kind"] == "latency" && change["group"] == "f03")
        .unwrap();
    let median = |side: &str| of_f03[side]["p50"].as_f64().unwrap();
    assert!((1.03..1.07).contains(&(median("b") / median("a"))));
    let number = |key: &str| of_f03[key].as_f64().unwrap();
    assert!(number("q") < 0.001 && number("effect") > 0.1, "{of_f03}");

    let report: Value = serde_json::from_str(&good(&["diff", "--json", a, c])).expect("JSON");
    assert_eq!(changed(&report, "latency"), [""; 0]);
    assert_eq!(changed(&report, "events"), [""; 0]);

    let text = good(&["diff", a, b]);
    assert!(text.contains("latency: 2 of 20 groups changed"), "{text}");
    assert!(
        text.contains("only in the second") && text.contains("only in the first"),
        "{text}"
    );

    let limit = |condition: &str| all(&["diff", "--fail-if", condition, a, b]);
    let (code, _, err) = limit("p50(latency.f03) > +3 %");
    assert_eq!(code, 1);
    assert!(err.contains("latency.f03 was"), "{err}");
    assert_eq!(limit("p50(latency.f03) > +10 %").0, 0);
    assert_eq!(limit("p50(latency.f0[0-2]) > +3 %").0, 0);
    assert_eq!(limit("max(latency) > 1ms").0, 0);
    assert_eq!(limit("count(events.new) > +0").0, 1);
    let (code, _, err) = limit("p50(latency.nosuch) > 1");
    assert_eq!(code, 2, "{err}");
    assert!(
        err.contains("no group of latency matches `nosuch`\nhint: groups of latency are `f"),
        "{err}"
    );
    assert_eq!(limit("nonsense").0, 2);
    assert_eq!(all(&["diff", a]).0, 2);
}

#[test]
fn ranges_of_one_recording_are_compared() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("a.json");
    slices(&path, 10, 1, &[], 1.0, "");
    // 8,000 slices at some 110 us: 0.88 s.
    let side = |range: &str| format!("{}@{range}", path.display());
    let (first, second) = (side("+0s..+300ms"), side("+400ms..+700ms"));
    let report: Value =
        serde_json::from_str(&good(&["diff", "--json", &first, &second])).expect("JSON");
    assert_eq!(changed(&report, "latency"), [""; 0]);
    let seconds = report["seconds"]["a"].as_f64().unwrap();
    assert!((0.29..0.3).contains(&seconds), "{seconds}");
    let (code, _, err) = all(&["diff", &side("x..y"), &second]);
    assert_eq!(code, 2, "{err}");
    assert!(err.contains("@x..y`: `x` is not a time"), "{err}");
    // Without a begin or an end, a range is all up to the other one.
    let (before, after) = (side("..+300ms"), side("+400ms.."));
    let report: Value =
        serde_json::from_str(&good(&["diff", "--json", &before, &after])).expect("JSON");
    let seconds = report["seconds"]["a"].as_f64().unwrap();
    assert!((0.29..0.3).contains(&seconds), "{seconds}");
    let seconds = report["seconds"]["b"].as_f64().unwrap();
    assert!(seconds > 0.31, "{seconds}");
    // Fields.
    let args = [
        "diff", "--json", "--field", "round", "--by", "track", &first, &second,
    ];
    let report: Value = serde_json::from_str(&good(&args)).expect("JSON");
    assert_eq!(
        changed(&report, "values.round").len(),
        1,
        "the rounds went on"
    );
}

#[test]
fn events_are_aligned() {
    let directory = tempfile::tempdir().expect("a directory");
    let at = |name: &str| directory.path().join(name);
    let write = |name: &str, names: &[&str], start: u64| {
        let events = names.iter().enumerate().map(|(at, name)| {
            let time = start + at as u64;
            format!(
                r#"{{"ph":"i","pid":1,"tid":1,"ts":{time},"name":"{name}","args":{{"n":{}}}}}"#,
                name.len()
            )
        });
        let events: Vec<String> = events.collect();
        fs::write(at(name), format!("[{}]", events.join(","))).expect("written");
        at(name).to_str().expect("UTF-8").to_string()
    };
    let a = write(
        "a.json",
        &["one", "two", "three", "four", "five", "six", "seven"],
        100,
    );
    let b = write(
        "b.json",
        &["one", "two", "three", "new", "four", "five", "seven"],
        900,
    );
    assert_eq!(
        good(&["diff", "--events", &a, &a]),
        "0 differences: 0 events only in the first, 0 only in the second, 7 in both\n"
    );
    let (code, out, err) = all(&["diff", "--events", &a, &b]);
    assert_eq!((code, err.as_str()), (1, ""));
    assert!(out.contains("@@ -3,0 +3,1 @@\n+ ["), "{out}");
    assert!(out.contains("@@ -5,1 +6,0 @@\n- ["), "{out}");
    assert!(
        out.ends_with(
            "2 differences: 1 events only in the first, 1 only in the second, 6 in both\n"
        ),
        "{out}"
    );
    let (_, out, _) = all(&["diff", "--events", "--json", &a, &b]);
    assert_eq!(out.lines().count(), 2);
    let first: Value = serde_json::from_str(out.lines().next().unwrap()).expect("JSON");
    assert_eq!(first["b"][0]["event"]["event"], "new");
    let (_, out, _) = all(&["diff", "--events", "--limit", "1", &a, &b]);
    assert_eq!(out.matches("@@ -").count(), 1);
}

#[test]
fn events_around_hits_are_shown() {
    const TRACE: &str = "examples/lttng-small";
    let lines = |args: &[&str]| -> Vec<String> {
        let args = [&["print", "--no-delta"], args, &[TRACE]].concat();
        good(&args).lines().map(str::to_string).collect()
    };
    let all = lines(&[]);
    let hit = |line: &String| line.contains("u8 = 7,") || line.contains("u8 = 8,");
    let (before, after) = (3, 2);
    let mut expected: Vec<String> = Vec::new();
    let mut last = None;
    for (at, line) in all.iter().enumerate() {
        let is_near =
            (at.saturating_sub(after)..=at + before).any(|at| all.get(at).is_some_and(hit));
        if !is_near {
            continue;
        }
        if last.is_some_and(|last| last + 1 < at) {
            expected.push("--".to_string());
        }
        last = Some(at);
        expected.push(line.clone());
    }
    let condition = ["--where", "u8 in [7, 8]"];
    let around = ["--before", "3", "--after", "2"];
    assert_eq!(lines(&[&condition[..], &around[..]].concat()), expected);
    let one = lines(&[&condition[..], &around[..], &["--threads", "1"]].concat());
    assert_eq!(one, expected);
    let hits: Vec<String> = all.iter().filter(|line| hit(line)).cloned().collect();
    let mut none = lines(&[&condition[..], &["--before", "0"]].concat());
    assert_eq!(none, hits);
    // No events: nothing around.
    none = lines(&[
        "--event",
        "demo:empty",
        "--where",
        "event.time == 1",
        "--after",
        "3",
    ]);
    assert_eq!(none, [""; 0]);
}

#[test]
fn times_count_from_the_first_event() {
    const TRACE: &str = "examples/lttng-small";
    let first = good(&["print", "--relative", "--limit", "1", TRACE]);
    assert!(first.starts_with("[0.000000000]"), "{first}");
    let all = good(&["print", "--clock-seconds", "--no-delta", TRACE]);
    let later = good(&[
        "print",
        "--clock-seconds",
        "--no-delta",
        "--begin",
        "+5ms",
        TRACE,
    ]);
    let time = |line: &str| -> u64 {
        let digits: String = line
            .split(']')
            .next()
            .unwrap()
            .chars()
            .filter(char::is_ascii_digit)
            .collect();
        digits.parse().expect("a time")
    };
    let begin = time(all.lines().next().unwrap()) + 5_000_000;
    let expected: Vec<&str> = all.lines().filter(|line| time(line) >= begin).collect();
    assert!(expected.len() > 100 && expected.len() < all.lines().count());
    assert_eq!(later.lines().collect::<Vec<_>>(), expected);
    assert_eq!(
        good(&["print", "--tail", "3", TRACE]),
        good(&["print", "--last", "3", TRACE])
    );

    let table = good(&[
        "print",
        "--columns",
        "time,name,u8,s1",
        "--relative",
        "--limit",
        "3",
        TRACE,
    ]);
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines.len(), 4);
    assert!(
        lines[0].starts_with("time")
            && lines[0].contains("name")
            && lines[1].starts_with("0.000000000 ")
    );
    let (code, _, err) = self::all(&["print", "--columns", "nosuch", TRACE]);
    assert_eq!(code, 2);
    assert!(err.contains("--columns"), "{err}");
}

#[test]
fn conditions_have_regular_expressions_and_functions() {
    const TRACE: &str = "examples/lttng-small";
    let count = |condition: &str| {
        good(&["print", "--where", condition, TRACE])
            .lines()
            .count()
    };
    let all = count("s1 ~ \"*\"");
    assert_eq!(
        count("s1 =~ \"^[^a-z]*$\"") + count("not s1 =~ \"^[^a-z]*$\" and len(s1) >= 0"),
        all
    );
    assert_eq!(
        count("s1 =~ \"(?i)NEWLINE\""),
        count("lower(s1) contains \"newline\"")
    );
    assert_eq!(count("hex(u8) == \"0xff\""), count("u8 == 255"));
    assert_eq!(count("3 < len(s1)") + count("len(s1) <= 3"), all);
    assert_eq!(
        count("event.name =~ \"ints$\""),
        count("event.name == \"demo:ints\"")
    );
    for wrong in [
        "s1 =~ \"(\"",
        "lower(u8) == \"x\"",
        "len(u8) > 1",
        "len(s1) == len(s2)",
        "s1 =~ \"(a{1000}){1000}\"",
    ] {
        let (code, _, err) = self::all(&["print", "--where", wrong, TRACE]);
        assert_eq!(code, 2, "{wrong}");
        assert!(err.contains("--where"), "{wrong}: {err}");
    }
}

#[test]
fn a_part_of_a_recording_stays_as_it_was() {
    let directory = tempfile::tempdir().expect("a directory");
    let at = |name: &str| {
        directory
            .path()
            .join(name)
            .to_str()
            .expect("UTF-8")
            .to_string()
    };
    let events = |path: &str, options: &[&str]| -> Vec<Value> {
        let out = good(&[&["print", "--format", "json"], options, &[path]].concat());
        let lines = out
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        let without_path = lines.map(|mut event| {
            let members = event.as_object_mut().expect("an object");
            members.remove("recording");
            members.remove("trace");
            event
        });
        without_path.collect()
    };
    for (trace, name, part) in [
        (
            "examples/lttng-small",
            "trace",
            &["--begin", "+5ms", "--end", "+9ms"][..],
        ),
        ("examples/lttng-small", "cpu", &["--where", "cpu_id == 1"]),
        (
            "crates/kymo-cpel/tests/data/be_basic.cpel",
            "log.cpel",
            &["--where", "track == 1"],
        ),
        (
            "crates/kymo-cpel/tests/data/le_basic.cpel",
            "log2.cpel",
            &["--event", "*"],
        ),
    ] {
        let output = at(name);
        good(&[&["cut", trace, "-o", &output], part].concat());
        let expected = events(trace, part);
        assert!(!expected.is_empty(), "{trace}");
        assert_eq!(events(&output, &[]), expected, "{trace}");
    }
    let (path, output) = (at("x.json"), at("y.json"));
    slices(Path::new(&path), 1, 1, &[], 1.0, "");
    good(&["cut", &path, "-o", &output]);
    assert_eq!(events(&output, &[]), events(&path, &[]));
}

#[test]
fn a_flame_graph_shows_what_changed() {
    let home = tempfile::TempDir::new().expect("a directory");
    let path = |name: &str| home.path().join(name);
    let text = |name: &str| path(name).to_str().expect("text").to_owned();
    slices(&path("a.json"), 1, 1, &[], 1.0, "");
    slices(&path("b.json"), 1, 2, &[3], 1.5, "");
    let (a, b, svg) = (text("a.json"), text("b.json"), text("change.svg"));
    let out = good(&["diff", "--flame", &svg, &a, &b]);
    assert!(out.contains("f03"), "{out}");
    let drawn = fs::read_to_string(&svg).expect("a picture");
    let title = |name: &str| {
        let begin = drawn.find(&format!("<title>{name}\n")).expect("a bar");
        drawn[begin..]
            .split("</title>")
            .next()
            .expect("a title")
            .to_owned()
    };
    let change = |name: &str| -> f64 {
        let title = title(name);
        let share = title
            .rsplit("second: ")
            .next()
            .expect("a change")
            .to_owned();
        share.trim_end_matches(" %").parse().expect("a number")
    };
    assert!((45.0..55.0).contains(&change("f03")), "{}", title("f03"));
    assert!(change("f04").abs() < 3.0, "{}", title("f04"));
    // What is there is kept.
    assert_eq!(all(&["diff", "--flame", &svg, &a, &b]).0, 2);
    assert_eq!(all(&["diff", "--force", "--flame", &svg, &a, &b]).0, 0);
}
