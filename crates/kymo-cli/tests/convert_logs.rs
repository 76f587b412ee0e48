//! `kymo convert`, from event logs to event logs.

mod common;

use std::fs;
use std::path::Path;

use kymo_cpel::entries::Entry;
use kymo_cpel::file::File;
use kymo_cpel::rewrite::rewrite;
use kymo_cpel::write::{Builder, Options};
use tempfile::TempDir;

use common::kymo_in;

/// Events of two codes that have one name, on tracks of any number.
fn log() -> Builder {
    let mut log = Builder::new(Options::default());
    log.event(5, Some(b"ev"), Some(b"a%d")).expect("it fits");
    log.event(6, Some(b"ev"), Some(b"b%d")).expect("it fits");
    let tracks = [0, 0, u32::MAX, 3_000_000_000, 1];
    for ((number, code), track) in (1u32..).zip([5, 6, 5, 6, 5]).zip(tracks) {
        log.push(Entry {
            time: u64::from(number) * 10,
            track,
            code,
            datum: number,
        });
    }
    log
}

/// A directory with a log.
fn with(log: Builder) -> TempDir {
    let dir = TempDir::new().expect("a directory for the test");
    let mut bytes = Vec::new();
    log.write(&mut bytes).expect("memory takes all");
    fs::write(dir.path().join("a.cpel"), bytes).expect("a file");
    dir
}

fn kymo(dir: &TempDir, args: &[&str]) -> (i32, String, String) {
    kymo_in(dir.path(), args)
}

/// The good, silent conversion of the log with some options.
fn converted(dir: &TempDir, options: &[&str]) -> Vec<u8> {
    let args = [&["convert", "a.cpel", "-o", "b.cpel", "-f"], options].concat();
    let (code, _, told) = kymo(dir, &args);
    assert_eq!((code, told.as_str()), (0, ""), "{options:?}");
    fs::read(dir.path().join("b.cpel")).expect("a file")
}

/// Members of the lines of a log.
fn lines(dir: &TempDir, log: &str, members: &[&str]) -> Vec<String> {
    let (_, lines, _) = kymo(dir, &["print", "--format", "json", log]);
    let line = |line: &str| {
        let line: serde_json::Value = serde_json::from_str(line).expect("JSON");
        let members = members.iter().map(|member| line[member].to_string());
        members.collect::<Vec<_>>().join(" ")
    };
    lines.lines().map(line).collect()
}

#[test]
fn a_log_that_is_placed_is_no_copy() {
    let dir = with(log());
    let whole = fs::read(dir.path().join("a.cpel")).expect("a file");
    assert!(converted(&dir, &[]) == whole);
    for (options, first, last) in [
        (&["--offset", "a.cpel=1s"][..], 1_000_000_010, 1_000_000_050),
        (
            &["--align", "a.cpel=1970-01-01 00:00:02"],
            2_000_000_000,
            2_000_000_040,
        ),
        (&["--clock-offset-ns", "7"], 17, 57),
        (&["--clock", "1000"], 10_000_000, 50_000_000),
        (&["--clock", "100000000"], 100, 500),
    ] {
        converted(&dir, options);
        let times = lines(&dir, "b.cpel", &["timestamp"]);
        assert_eq!(times.len(), 5);
        assert_eq!(times[0], first.to_string(), "{options:?}");
        assert_eq!(times[4], last.to_string(), "{options:?}");
    }
    // What the file says itself changes nothing.
    assert!(converted(&dir, &["--clock", "per-second"]) == whole);
    assert!(converted(&dir, &["--clock", "1000000000"]) == whole);
}

#[test]
fn ticks_are_as_readers_take_them() {
    let dir = with(log());
    let args = ["convert", "a.cpel", "-o", "b.cpel", "--ticks", "99999"];
    let (code, _, told) = kymo(&dir, &args);
    assert_eq!(code, 2);
    assert!(
        told.contains("would be read as the ticks in a microsecond"),
        "{told}"
    );
    assert!(!dir.path().join("b.cpel").exists());
    // 2^62 ns are more than 2^64 of the shortest ticks.
    let late = "--clock-offset-ns=4611686018427387904";
    let args = [
        "convert",
        "a.cpel",
        "-o",
        "b.cpel",
        "--ticks",
        "4294967295",
        late,
    ];
    let (code, _, told) = kymo(&dir, &args);
    let lost = "WARNING: events later than 64 bits of ticks can tell, set to the last tick: 5\n";
    assert!(
        code == 0 && told.to_lowercase().ends_with(&lost.to_lowercase()),
        "{told}"
    );
}

#[test]
fn what_is_chosen_keeps_its_numbers() {
    let dir = with(log());
    converted(&dir, &["--where", "datum < 100"]);
    let members = &["timestamp", "track", "event", "event_class", "text"];
    assert_eq!(
        lines(&dir, "b.cpel", members),
        lines(&dir, "a.cpel", members)
    );
}

#[test]
fn codes_without_a_definition_stay_so() {
    let mut log = Builder::new(Options::default());
    log.event(0, Some(b"ev"), Some(b"%d")).expect("it fits");
    // More than have classes of their own.
    for code in 0..65_540 {
        log.push(Entry {
            time: code.into(),
            track: 0,
            code,
            datum: 1,
        });
    }
    let dir = with(log);
    let args = ["convert", "a.cpel", "-o", "b.cpel", "--where", "datum == 1"];
    let (code, _, told) = kymo(&dir, &args);
    assert_eq!(code, 0);
    assert!(
        told.contains("than are told apart, written with one code: 3"),
        "{told}"
    );
    let (code, report, _) = kymo(&dir, &["check", "b.cpel"]);
    assert_eq!(code, 0, "{report}");
    let members = &["event", "event_class"];
    let (before, after) = (
        lines(&dir, "a.cpel", members),
        lines(&dir, "b.cpel", members),
    );
    assert_eq!(before.len(), after.len());
    assert!(before[..65_537] == after[..65_537]);
}

#[test]
fn what_a_filter_drops_is_told() {
    let mut log = log();
    log.symbol(4096, b"main").expect("it fits");
    let dir = with(log);
    // A section that nobody knows.
    let path = dir.path().join("a.cpel");
    let mut bytes = fs::read(&path).expect("a file");
    bytes[3] += 1;
    bytes.extend([0, 0, 0, 99, 0, 0, 0, 4, 1, 2, 3, 4]);
    fs::write(&path, &bytes).expect("a file");
    let file = File::open(&bytes).expect("a CPEL file");
    let mut copy = Vec::new();
    rewrite(&file, file.header.order, &mut copy).expect("memory takes all");
    assert!(converted(&dir, &[]) == copy);
    let args = ["convert", "a.cpel", "-o", "b.cpel", "-f", "--event", "ev"];
    let (code, _, told) = kymo(&dir, &args);
    assert_eq!(code, 0);
    assert!(
        told.contains("symbols of CPEL files, left out: 1"),
        "{told}"
    );
    assert!(
        told.contains("sections of CPEL files whose type is not known, left out: 1"),
        "{told}"
    );
}

#[test]
fn an_output_is_not_the_next_input() {
    let dir = with(log());
    let whole = ["convert", ".", "-o", "all.cpel", "-f", "--event", "ev"];
    assert_eq!(kymo(&dir, &whole).0, 0);
    let before = fs::read(dir.path().join("all.cpel")).expect("a file");
    let (code, _, told) = kymo(&dir, &whole);
    assert_eq!(code, 2);
    assert!(
        told.starts_with("error: all.cpel: the input ") && told.ends_with("give another output\n"),
        "{told}"
    );
    assert!(before == fs::read(dir.path().join("all.cpel")).expect("a file"));
    // What is named is replaced.
    let named = [
        "convert",
        "all.cpel",
        "-o",
        "all.cpel",
        "-f",
        "--where",
        "text == \"a5\"",
    ];
    assert_eq!(kymo(&dir, &named).0, 0);
    assert_eq!(lines(&dir, "all.cpel", &["text"]), ["\"a5\""]);
}

#[test]
fn a_place_that_is_none_is_told_at_once() {
    let dir = with(log());
    for output in ["a.cpel/b.cpel", "none/b.cpel"] {
        // Before anything is opened.
        let args = ["convert", "nothing.cpel", "-o", output];
        let (code, _, told) = kymo(&dir, &args);
        assert_eq!(code, 2);
        let path = Path::new(output).display();
        assert_eq!(
            told,
            format!("error: {path}: it cannot be written where there is no directory\n")
        );
    }
}
