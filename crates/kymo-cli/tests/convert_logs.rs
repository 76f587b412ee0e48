//! `kymo convert`, from event logs to event logs.

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use kymo_cpel::entries::Entry;
use kymo_cpel::file::File;
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
        })
        .expect("it fits");
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
    let (code, _, reported) = kymo(dir, &args);
    assert_eq!((code, reported.as_str()), (0, ""), "{options:?}");
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
    let (code, _, reported) = kymo(&dir, &args);
    assert_eq!(code, 2);
    assert!(
        reported.contains("would be read as the ticks in a microsecond"),
        "{reported}"
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
    let (code, _, reported) = kymo(&dir, &args);
    let lost = "WARNING: events later than 64 bits of ticks can hold, set to the last tick: 5\n";
    assert!(
        code == 0 && reported.to_lowercase().ends_with(&lost.to_lowercase()),
        "{reported}"
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
        })
        .expect("it fits");
    }
    let dir = with(log);
    let members = &["event", "event_class", "datum"];
    let whole = lines(&dir, "a.cpel", members);
    converted(&dir, &["--where", "datum == 1"]);
    assert!(lines(&dir, "b.cpel", members) == whole);
    let args = [
        "convert", "a.cpel", "-o", "b.cpel", "-f", "--track", "track",
    ];
    let (code, _, reported) = kymo(&dir, &args);
    assert_eq!(code, 0);
    assert!(
        reported.contains("too many event codes without a definition: events of the rest, written with one code: 3"),
        "{reported}"
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

/// The files of event logs that are in the repository.
fn data() -> Vec<PathBuf> {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/../kymo-cpel/tests/data");
    let files = fs::read_dir(dir).expect("a directory");
    let files = files.map(|file| file.expect("a file").path());
    let mut files: Vec<_> = files.filter(|path| path.is_file()).collect();
    files.sort();
    assert!(files.len() > 20);
    files
}

/// All lines that `kymo print --format json` shows of a log, apart from its path.
fn json(dir: &TempDir, log: &str, options: &[&str]) -> Vec<String> {
    let args = [&["print", "--format", "json", log], options].concat();
    let (_, lines, _) = kymo(dir, &args);
    let path = format!("\"recording\":\"{log}\"");
    lines.lines().map(|line| line.replace(&path, "")).collect()
}

/// What a log says of itself: the header, the definitions, the symbols, other sections.
fn sections(bytes: &[u8]) -> Vec<(u32, Vec<u8>)> {
    let file = File::open(bytes).expect("a CPEL file");
    let others = file.sections.iter().filter(|section| section.kind != 5);
    let others = others.map(|section| (section.kind, file.data(section).to_vec()));
    std::iter::once((file.header.date, vec![file.header.unused]))
        .chain(others)
        .collect()
}

#[test]
fn a_part_of_a_log_answers_as_the_log_does() {
    let windows: [&[&str]; 6] = [
        &["--where", "datum >= 0"],
        &["--where", "datum > 5"],
        &["--where", "datum != 867"],
        &["--begin", "0.00000003"],
        &["--end", "2"],
        &["--event", "*T*"],
    ];
    for path in data() {
        let name = path.file_name().expect("a name").to_string_lossy();
        let dir = TempDir::new().expect("a directory for the test");
        fs::copy(&path, dir.path().join("a")).expect("a copy");
        let whole = json(&dir, "a", &[]);
        if whole.is_empty() {
            continue;
        }
        let cpeldump = |log| kymo(&dir, &["print", "--format", "cpeldump", log]).1;
        for options in windows {
            let wanted = json(&dir, "a", options);
            let args = [&["convert", "a", "-o", "b.cpel", "-f"], options].concat();
            let (code, _, reported) = kymo(&dir, &args);
            assert!(code < 2, "{name} {options:?}: {reported}");
            assert_eq!(json(&dir, "b.cpel", &[]), wanted, "{name} {options:?}");
            assert_eq!(json(&dir, "b.cpel", options), wanted, "{name} {options:?}");
            let is_gist = name.ends_with(".gist");
            if wanted.len() == whole.len() && !is_gist {
                assert_eq!(cpeldump("a"), cpeldump("b.cpel"), "{name} {options:?}");
            }
            if !is_gist {
                let (of_a, of_b) = (dir.path().join("a"), dir.path().join("b.cpel"));
                let [of_a, of_b] = [of_a, of_b].map(|path| fs::read(path).expect("a file"));
                assert_eq!(sections(&of_a), sections(&of_b), "{name} {options:?}");
            }
        }
    }
}

/// In the other byte order, with other times, on other tracks and merged, events stay what they are.
#[test]
fn a_log_in_another_form_has_the_same_events() {
    let all = &["event_class", "event", "datum", "text"][..];
    // Strings are in another table.
    let shown = &["event_class", "event", "text"][..];
    for path in data() {
        let name = path.file_name().expect("a name").to_string_lossy();
        let dir = TempDir::new().expect("a directory for the test");
        fs::copy(&path, dir.path().join("a")).expect("a copy");
        let is_gist = name.ends_with(".gist");
        for (options, members) in [
            (
                &["--byte-order", "little", "--where", "datum >= 0"][..],
                all,
            ),
            (&["--ticks", "1000000000"], all),
            (&["--clock-offset-ns", "7"], all),
            (&["--track", "track"], if is_gist { all } else { shown }),
            (&["empty.cpel"], if is_gist { all } else { shown }),
        ] {
            let mut empty = Vec::new();
            let log = Builder::new(Options::default());
            log.write(&mut empty).expect("memory takes all");
            fs::write(dir.path().join("empty.cpel"), empty).expect("a file");
            let wanted = lines(&dir, "a", members);
            if wanted.is_empty() {
                continue;
            }
            let args = [&["convert", "a", "-o", "b.cpel", "-f"], options].concat();
            let (code, _, reported) = kymo(&dir, &args);
            assert!(code < 2, "{name} {options:?}: {reported}");
            assert_eq!(lines(&dir, "b.cpel", members), wanted, "{name} {options:?}");
        }
    }
}

#[test]
fn numbers_stay_numbers_whatever_is_chosen() {
    let mut log = Builder::new(Options::default());
    log.symbol(0x1000, b"main").expect("it fits");
    let text = log.string(b"some text").expect("it fits");
    let formats: [(&[u8], u32); 8] = [
        (b"%d", -5i32 as u32),
        (b"0x%08x", 867),
        (b"<%-14k>", 0x1010),
        (b"<%14k>", 5),
        (b"%s", text),
        (b"name %20s", text),
        (b"%s of %d", text),
        (b"nothing", 867),
    ];
    for ((code, (format, datum)), time) in (10..).zip(formats).zip(0..) {
        log.event(code, Some(b"ev"), Some(format)).expect("it fits");
        log.push(Entry {
            time,
            track: 3,
            code,
            datum,
        })
        .expect("it fits");
    }
    // Without a format, and without a definition.
    log.event(20, Some(b"plain"), None).expect("it fits");
    for code in [20, 21] {
        log.push(Entry {
            time: 100,
            track: 3,
            code,
            datum: 867,
        })
        .expect("it fits");
    }
    let dir = with(log);
    let members = &["event_class", "event", "datum", "text", "track"];
    let texts = &["event", "text", "track"];
    let before = lines(&dir, "a.cpel", members);
    assert!(before[2].contains("<main+0x10     >"), "{}", before[2]);
    assert!(before[3].contains("<    0x00000005>"), "{}", before[3]);
    let (_, dump, _) = kymo(&dir, &["print", "--format", "cpeldump", "a.cpel"]);
    for text in ["<main+0x10     >", "<    0x00000005>"] {
        assert!(dump.contains(text), "{dump}");
    }
    for options in [
        &["--where", "datum >= 0"][..],
        &["--begin", "0"],
        &["--ticks", "500000000"],
        &["--offset", "a.cpel=1s"],
    ] {
        converted(&dir, options);
        assert_eq!(lines(&dir, "b.cpel", members), before, "{options:?}");
    }
    // With another log, strings are in another table, and numbers are what they were.
    let other = Builder::new(Options::default());
    let mut bytes = Vec::new();
    other.write(&mut bytes).expect("memory takes all");
    fs::write(dir.path().join("empty.cpel"), bytes).expect("a file");
    converted(&dir, &["empty.cpel"]);
    assert_eq!(lines(&dir, "b.cpel", texts), lines(&dir, "a.cpel", texts));
    let numbers = |log: &str| {
        let members = lines(&dir, log, &["event_class", "datum"]);
        [&members[..4], &members[7..]].concat()
    };
    assert_eq!(numbers("b.cpel"), numbers("a.cpel"));
}

#[test]
fn symbols_of_several_logs_do_not_mix() {
    let with_symbol = |name: &[u8], code| {
        let mut log = Builder::new(Options::default());
        log.symbol(16, name).expect("it fits");
        log.event(code, Some(b"ev"), Some(b"%k")).expect("it fits");
        log.push(Entry {
            time: code.into(),
            track: 0,
            code,
            datum: 17,
        })
        .expect("it fits");
        let mut bytes = Vec::new();
        log.write(&mut bytes).expect("memory takes all");
        bytes
    };
    let dir = with(log());
    for (file, name, code) in [("1.cpel", b"one", 1), ("2.cpel", b"two", 2)] {
        fs::write(dir.path().join(file), with_symbol(name, code)).expect("a file");
    }
    let args = ["convert", "1.cpel", "2.cpel", "-o", "b.cpel", "-f"];
    let (code, _, reported) = kymo(&dir, &args);
    assert_eq!(code, 0);
    let lost = "symbols of CPEL files, left out; datums that show them are written as text: 1";
    assert!(reported.contains(lost), "{reported}");
    assert_eq!(
        lines(&dir, "b.cpel", &["text"]),
        ["\"one+0x1\"", "\"two+0x1\""]
    );
    assert_eq!(lines(&dir, "b.cpel", &["datum"])[0], "17");
}

#[test]
fn traces_of_logs_have_their_codes() {
    let mut log = log();
    log.symbol(4096, b"main").expect("it fits");
    let dir = with(log);
    for to in ["ctf1.8", "ctf2", "ctf-rfc"] {
        let args = ["convert", "a.cpel", "-o", "trace", "-f", "--to", to];
        let (code, _, reported) = kymo(&dir, &args);
        assert_eq!(code, 0);
        assert!(reported.contains("symbols are dropped: 1"), "{reported}");
        assert!(
            reported.contains("formats of datums are dropped: 2"),
            "{reported}"
        );
        let members = &["event", "event_class"];
        assert_eq!(
            lines(&dir, "trace", members),
            lines(&dir, "a.cpel", members),
            "{to}"
        );
    }
}

#[test]
fn a_stray_time_that_makes_a_large_database_is_reported() {
    let mut log = Builder::new(Options::default());
    for time in [0, 1, 2_200_000] {
        log.push(Entry {
            time: time * 1_000_000_000,
            track: 0,
            code: 1,
            datum: 0,
        })
        .expect("it fits");
    }
    let dir = with(log);
    let args = [
        "convert", "a.cpel", "-o", "a.rrd", "--step", "1s", "--count",
    ];
    let (code, _, reported) = kymo(&dir, &[&args[..], &["--format", "portable"]].concat());
    let expected = "warning: the database takes 17 MB: 2200001 rows of 1 data source, in which 3 \
        values are of events\nhint: ";
    assert!(code == 0 && reported.starts_with(expected), "{reported}");
    let args = [&args[..], &["-f", "--rows", "10"]].concat();
    assert!(!kymo(&dir, &args).2.contains("the database takes"));
}

#[test]
fn an_output_is_not_the_next_input() {
    let dir = with(log());
    let whole = ["convert", ".", "-o", "all.cpel", "-f", "--event", "ev"];
    assert_eq!(kymo(&dir, &whole).0, 0);
    let before = fs::read(dir.path().join("all.cpel")).expect("a file");
    let (code, _, reported) = kymo(&dir, &whole);
    assert_eq!(code, 2);
    assert!(
        reported.starts_with("error: all.cpel: the input ")
            && reported.ends_with("choose another output\n"),
        "{reported}"
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
fn a_place_that_is_none_is_reported_at_once() {
    let dir = with(log());
    for output in ["a.cpel/b.cpel", "none/b.cpel"] {
        // Before anything is opened.
        let args = ["convert", "nothing.cpel", "-o", output];
        let (code, _, reported) = kymo(&dir, &args);
        assert_eq!(code, 2);
        let begin = format!(
            "error: cannot write `{}`: directory ",
            Path::new(output).display()
        );
        assert!(reported.starts_with(&begin), "{reported}");
    }
}
