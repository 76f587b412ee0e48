//! `kymo convert --to ctf1.8|ctf2|ctf-rfc`, `kymo repair`, `kymo index`.

mod common;
#[path = "ctf/draft.rs"]
mod draft;
#[path = "ctf/overwriting.rs"]
mod overwriting;
#[path = "ctf/repair.rs"]
mod repair;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use common::{example, good, kymo, text};

/// Events as JSON, without the members that say where they are from.
fn events(path: &Path, more: &[&str]) -> Vec<Value> {
    let output = kymo(&[&["print", "--format", "json", text(path)], more].concat());
    let lines = String::from_utf8(output.stdout).expect("text");
    lines
        .lines()
        .map(|line| {
            let mut value: Value = serde_json::from_str(line).expect("JSON");
            let keys = value.as_object_mut().expect("an object");
            keys.remove("recording");
            keys.remove("trace");
            value
        })
        .collect()
}

fn home() -> TempDir {
    TempDir::new().expect("a directory")
}

/// A copy of a stream of an example and its metadata, its bytes changed.
fn changed(home: &TempDir, name: &str, stream: &str, change: impl Fn(&mut Vec<u8>)) -> PathBuf {
    let (from, to) = (example(name), home.path().join("changed"));
    fs::create_dir_all(&to).expect("a directory");
    fs::copy(from.join("metadata"), to.join("metadata")).expect("metadata");
    let mut bytes = fs::read(from.join(stream)).expect("a stream");
    change(&mut bytes);
    fs::write(to.join(stream), bytes).expect("a stream");
    to
}

#[test]
fn traces_come_back_in_every_dialect_and_layout() {
    let home = home();
    for name in [
        "lttng-small/ust/uid/0/64-bit",
        "lttng-discarded/ust/uid/0/64-bit",
    ] {
        let trace = example(name);
        let expected = events(&trace, &[]);
        assert!(!expected.is_empty());
        for options in [
            &["--to", "ctf1.8"][..],
            &["--to", "ctf2"],
            &["--to", "ctf2", "--packed"],
            &["--to", "ctf1.8", "--byte-order", "be"],
            &["--to", "ctf1.8", "--byte-order", "be", "--packed"],
            &["--to", "ctf2", "--packet-size", "4K", "--threads", "1"],
        ] {
            let there = home.path().join("there");
            good(
                &[
                    &["convert", text(&trace), "-o", text(&there), "-f"],
                    options,
                ]
                .concat(),
            );
            assert_eq!(events(&there, &[]), expected, "{options:?}");
            // And back to what it was.
            let back = home.path().join("back");
            let order = [
                "convert",
                "-f",
                "--byte-order",
                "le",
                text(&there),
                "-o",
                text(&back),
            ];
            good(&order);
            assert_eq!(events(&back, &[]), expected, "{options:?}");
        }
    }
}

#[test]
fn whole_packets_stay_as_they_are() {
    let home = home();
    let trace = example("lttng-small/ust/uid/0/64-bit");
    let copy = home.path().join("copy");
    good(&["convert", text(&trace), "-o", text(&copy)]);
    for file in ["r_0", "r_1"] {
        let (before, after) = (fs::read(trace.join(file)), fs::read(copy.join(file)));
        assert!(
            before.expect("a stream") == after.expect("a stream"),
            "{file}"
        );
    }
    // Indexes are those that LTTng has written.
    good(&["index", text(&copy)]);
    for file in ["index/r_0.idx", "index/r_1.idx"] {
        let (before, after) = (fs::read(trace.join(file)), fs::read(copy.join(file)));
        assert_eq!(
            before.expect("an index"),
            after.expect("an index"),
            "{file}"
        );
    }
    let again = kymo(&["index", text(&copy)]);
    assert_eq!(again.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&again.stderr).contains("--force"));
    good(&["index", "--force", text(&copy)]);
}

/// With a summary, with one that is for other times, and without: counts are the same, and faults are reported.
#[test]
fn stats_and_faults_are_the_same_with_a_summary() {
    let home = home();
    let trace = home.path().join("trace");
    good(&["convert", text(&example("lttng-small")), "-o", text(&trace)]);
    let (cache, nowhere) = (home.path().join("cache"), home.path().join("nowhere"));
    let run = |args: &[&str]| {
        let run = kymo(&[args, &[text(&trace)]].concat());
        let lines = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (run.status.code(), lines(&run.stdout), lines(&run.stderr))
    };
    let shift = format!("{}=-3ms", text(&trace));
    let same = || {
        let end = ["--begin", "1970-01-01", "--clock-gmt"];
        for args in [&[][..], &["--json"], &["--offset", &shift], &end] {
            let with = |cache: &[&str]| run(&[&["stats"], args, cache].concat());
            let known = with(&["--cache", text(&cache)]);
            assert_eq!(known, with(&["--no-cache"]), "{args:?}");
            assert_eq!(known, with(&["--cache", text(&nowhere)]), "{args:?}");
        }
    };
    let number = |args: &[&str]| -> Option<u64> {
        let (_, out, _) = run(args);
        let value: Value = serde_json::from_str(&out).expect("JSON");
        let recording = value.pointer("/recordings/0").unwrap_or(&value);
        recording.get("events").and_then(Value::as_u64)
    };
    let cached = ["info", "--json", "--cache", text(&cache)];
    assert_eq!(number(&cached), None, "there is no summary");
    let index = ["index", "--cache", text(&cache)];
    let (code, line, _) = run(&[&index[..], &["--offset", &shift]].concat());
    assert!(code == Some(0) && !line.contains("unchanged"), "{line}");
    let (_, line, _) = run(&index);
    assert!(
        line.contains("unchanged"),
        "shifts are of no importance: {line}"
    );
    same();
    let counted = number(&["stats", "--json", "--no-cache"]);
    assert!(counted.is_some_and(|events| events > 1000));
    assert_eq!(number(&cached), counted);
    assert_eq!(number(&["info", "--json", "--no-cache"]), None);
    assert!(!nowhere.exists());
    // An event of an unknown class in the middle of a packet.
    let stream = trace.join("r_0");
    let mut bytes = fs::read(&stream).expect("a stream");
    let middle = bytes.len() / 2;
    bytes[middle..middle + 400].fill(0xff);
    fs::write(&stream, bytes).expect("written");
    let (code, _, errors) = run(&index);
    assert_eq!(code, Some(1));
    assert!(errors.contains("r_0"), "{errors}");
    let (code, line, errors) = run(&index);
    assert!(code == Some(1) && line.contains("unchanged"), "{line}");
    assert!(errors.contains("faults within packets: 1;"), "{errors}");
    same();
    assert_eq!(number(&cached), None, "not all events are known");
}

#[test]
fn summaries_are_kept_and_never_needed() {
    let home = home();
    let trace = example("lttng-small/ust/uid/0/64-bit");
    let cache = home.path().join("cache");
    let reported = |args: &[&str]| {
        let run = kymo(&[&["index"], args, &[text(&trace)]].concat());
        assert_eq!(run.status.code(), Some(0));
        String::from_utf8(run.stdout).expect("text")
    };
    let index = |cache: &Path| reported(&["--cache", text(cache)]);
    let first = index(&cache);
    assert!(first.contains("3,000 rows on 2 tracks"), "{first}");
    assert!(!first.contains("unchanged"), "{first}");
    let again = index(&cache);
    assert!(again.contains("unchanged"), "{again}");
    // The index, and a note of where packets are.
    let kept: Vec<_> = fs::read_dir(&cache).expect("a cache").collect();
    assert_eq!(kept.len(), 2);
    for file in kept {
        fs::write(file.expect("a file").path(), "damaged").expect("written");
    }
    assert!(!index(&cache).contains("unchanged"));
    // A file in the place of the directory.
    let file = home.path().join("file");
    fs::write(&file, "text").expect("written");
    let run = kymo(&["index", "--cache", text(&file), text(&trace)]);
    assert_eq!(run.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&run.stderr).contains("cannot write to"));
    assert!(reported(&["--no-cache"]).contains("3,000 rows"));
    // Recordings in its place: a path of the command line was taken for it.
    let (log, logs) = (example("vpp-small.cpel"), example(""));
    for (place, found) in [
        (&trace, "is a recording"),
        (&log, "is a recording"),
        (&logs, "holds"),
    ] {
        for command in ["index", "stats", "info", "view"] {
            let run = kymo(&[command, "--cache", text(place), text(&trace)]);
            assert_eq!(run.status.code(), Some(2), "{command}");
            let error = String::from_utf8_lossy(&run.stderr);
            assert!(error.contains(found) && error.contains("hint: "), "{error}");
        }
    }
}

#[test]
fn what_was_lost_is_still_reported() {
    let home = home();
    let trace = example("lttng-discarded/ust/uid/0/64-bit");
    let warnings = |path: &Path| {
        let output = kymo(&["print", "--clock-gmt", text(path)]);
        let err = String::from_utf8_lossy(&output.stderr).into_owned();
        let reported = err.lines().filter(|line| line.contains("discarded"));
        // Up to the name of the trace.
        reported
            .map(|line| line.split(" in trace").next().map(str::to_owned))
            .collect::<Vec<_>>()
    };
    let expected = warnings(&trace);
    assert!(!expected.is_empty());
    for options in [
        &["--to", "ctf2"][..],
        &["--packed"],
        &["--byte-order", "be"],
    ] {
        let there = home.path().join("there");
        good(
            &[
                &["convert", text(&trace), "-o", text(&there), "-f"],
                options,
            ]
            .concat(),
        );
        assert_eq!(warnings(&there), expected, "{options:?}");
    }
    let there = home.path().join("there");
    good(&[
        "convert",
        text(&trace),
        "-f",
        "-o",
        text(&there),
        "--packet-size",
        "1M",
    ]);
    assert_eq!(warnings(&there).len(), expected.len());
}

#[test]
fn chosen_events_are_written() {
    let home = home();
    let trace = example("lttng-small/ust/uid/0/64-bit");
    let all = events(&trace, &[]);
    let name = all[0]["event"].as_str().expect("a name").to_owned();
    let chosen = ["--event", name.as_str()];
    let expected = events(&trace, &chosen);
    assert!(!expected.is_empty() && expected.len() < all.len());
    let there = home.path().join("there");
    good(&[&["convert", text(&trace), "-o", text(&there)][..], &chosen].concat());
    assert_eq!(events(&there, &[]), expected);
}

#[test]
fn several_traces_become_one_or_stay_apart() {
    let home = home();
    let (one, two) = (example("lttng-small"), example("bitfield-be"));
    let merged = home.path().join("merged");
    good(&[
        "convert",
        text(&one),
        text(&two),
        "-o",
        text(&merged),
        "--to",
        "ctf2",
    ]);
    let count = |path: &Path| events(path, &[]).len();
    assert_eq!(count(&merged), count(&one) + count(&two));
    let apart = home.path().join("apart");
    good(&[
        "convert",
        text(&one),
        text(&two),
        "-o",
        text(&apart),
        "--separate",
    ]);
    assert_eq!(count(&apart), count(&one) + count(&two));
    assert!(apart.join("bitfield-be/metadata").is_file());
    assert!(
        apart
            .join("lttng-small/ust/uid/0/64-bit/metadata")
            .is_file()
    );
}

#[test]
fn clocks_that_cannot_be_compared_are_reported() {
    let home = home();
    let (absolute, relative) = (example("lttng-small"), example("rfc-small"));
    let there = home.path().join("there");
    let both = [
        "convert",
        text(&absolute),
        text(&relative),
        "-o",
        text(&there),
    ];
    let reported = good(&both);
    assert!(reported.contains("count from 1970"), "{reported}");
    assert!(reported.contains("--separate"), "{reported}");
    let apart = home.path().join("apart");
    let reported = good(&[
        "convert",
        "--separate",
        text(&absolute),
        text(&relative),
        "-o",
        text(&apart),
    ]);
    assert!(!reported.contains("count from 1970"), "{reported}");
}

#[test]
fn options_of_traces_are_for_traces() {
    let home = home();
    let trace = example("bitfield-le");
    let output = home.path().join("x.csv");
    for option in [&["--packed"][..], &["--packet-size", "4K"], &["--separate"]] {
        let run = kymo(&[&["convert", text(&trace), "-o", text(&output)], option].concat());
        assert_eq!(run.status.code(), Some(2), "{option:?}");
        let err = String::from_utf8_lossy(&run.stderr).into_owned();
        assert!(err.contains("ctf1.8"), "{err}");
    }
}

/// Every value in a part of an event, in order, except what only describes another one, and what a
/// number is called.
fn leaves(value: &Value, found: &mut Vec<Value>) {
    match value {
        Value::Null => {}
        Value::Object(members) => members
            .iter()
            .filter(|(name, _)| {
                let reports = ["_is_there", "_length", "_kind"];
                !reports.iter().any(|end| name.ends_with(end)) && *name != "labels"
            })
            .for_each(|(_, value)| leaves(value, found)),
        Value::Array(elements) => elements.iter().for_each(|value| leaves(value, found)),
        value => found.push(value.clone()),
    }
}

/// Times of events, and the values of their payloads.
fn values(path: &Path) -> Vec<(Value, Vec<Value>)> {
    let reported = |event: &Value| {
        let mut found = Vec::new();
        leaves(&event["payload"], &mut found);
        (event["timestamp"].clone(), found)
    };
    events(path, &[]).iter().map(reported).collect()
}

#[test]
fn other_formats_come_back_with_their_values() {
    let home = home();
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for (source, is_rows) in [
        // All values known, and some unknown.
        ("kymo-rrd/tests/data/amd64/dcount.rrd", true),
        ("kymo-rrd/tests/data/amd64/compute.rrd", true),
        ("kymo-rrd/tests/data/SYN-arm-fpa/hw.rrd", true),
        ("kymo-cpel/tests/data/be_basic.cpel", false),
        ("kymo-cpel/tests/data/symtab_k.cpel", false),
        ("kymo-collectd/tests/data/packets/plain-0000.bin", false),
    ] {
        let path = crates.join(source);
        let expected = values(&path);
        assert!(!expected.is_empty(), "{source}");
        let mut converted = Vec::new();
        for to in ["ctf1.8", "ctf2"] {
            let out = home.path().join(source.replace('/', "-")).join(to);
            fs::create_dir_all(out.parent().expect("a directory")).expect("made");
            good(&["convert", "--to", to, text(&path), "-o", text(&out)]);
            good(&["check", text(&out)]);
            let found = values(&out);
            assert_eq!(found.len(), expected.len(), "{source} to {to}");
            if is_rows {
                assert_eq!(found, expected, "{source} to {to}");
            }
            converted.push(found);
        }
        assert_eq!(converted[0], converted[1], "{source}");
        assert!(converted[0].iter().any(|(_, values)| !values.is_empty()));
        for layout in [&[][..], &["--packed", "--byte-order", "be"]] {
            let out = home
                .path()
                .join(source.replace('/', "-"))
                .join(format!("rfc{}", layout.len()));
            let to = ["convert", "--to", "ctf-rfc", text(&path), "-o", text(&out)];
            good(&[&to, layout].concat());
            good(&["check", text(&out)]);
            let found = values(&out);
            assert_eq!(found.len(), converted[1].len(), "{source} to ctf-rfc");
            let times = expected.iter().map(|(time, _)| time);
            assert!(found.iter().map(|(time, _)| time).eq(times), "{source}");
            for (found, expected) in found.iter().zip(&converted[1]) {
                let is_same = found.1.len() == expected.1.len()
                    && (found.1.iter().zip(&expected.1)).all(|(found, expected)| {
                        found == expected || found.as_u64() == expected.as_f64().map(f64::to_bits)
                    });
                assert!(is_same, "{source} to ctf-rfc: {found:?}, not {expected:?}");
            }
        }
    }
}
