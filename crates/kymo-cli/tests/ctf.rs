//! `kymo convert --to ctf1.8|ctf2|ctf-rfc`, `kymo repair`, `kymo index`.

mod common;

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
    let [kept] = &fs::read_dir(&cache).expect("a cache").collect::<Vec<_>>()[..] else {
        panic!("one file");
    };
    fs::write(kept.as_ref().expect("a file").path(), "damaged").expect("written");
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

/// Class and number of each stream.
fn stream_numbers(path: &Path) -> Vec<(u64, u64)> {
    let output = kymo(&["print", "--format", "details", text(path)]);
    let shown = String::from_utf8(output.stdout).expect("UTF-8");
    let number = |line: &str, label: &str| {
        let rest = line.split(label).nth(1).expect("a number");
        let digits = rest.split(|c: char| !c.is_ascii_digit()).next();
        digits
            .and_then(|digits| digits.parse().ok())
            .expect("a number")
    };
    let lines = shown.lines().filter(|line| line.starts_with("{Trace"));
    let found = lines.map(|line| (number(line, "Stream class ID "), number(line, "Stream ID ")));
    found
        .collect::<std::collections::BTreeSet<_>>()
        .into_iter()
        .collect()
}

#[test]
fn the_draft_of_2010_becomes_a_trace_of_today_and_back() {
    let home = home();
    let trace = example("rfc-small");
    let expected = events(&trace, &[]);
    for to in ["ctf1.8", "ctf2"] {
        let there = home.path().join(to);
        good(&["convert", text(&trace), "-o", text(&there), "--to", to]);
        assert_eq!(events(&there, &[]).len(), expected.len());
        assert_eq!(stream_numbers(&there), stream_numbers(&trace));
    }
    let back = home.path().join("back");
    good(&[
        "convert",
        text(&trace),
        "-o",
        text(&back),
        "--to",
        "ctf-rfc",
    ]);
    assert_eq!(events(&back, &[]), expected);
}

#[test]
fn several_recordings_become_one_trace_of_the_draft() {
    let home = home();
    let log = home.path().join("log.cpel");
    let small = example("lttng-small");
    good(&["convert", text(&small), "-o", text(&log), "--text"]);
    // Two traces with sections of the same names, and two whose names fit each other's files.
    let sections = [("first", "irq"), ("second", "irq"), ("third", "irq_1")];
    let [irq, again, numbered] = sections.map(|(trace, section)| {
        let trace = home.path().join(trace);
        fs::create_dir(&trace).expect("a directory");
        for file in fs::read_dir(example("rfc-small")).expect("a trace") {
            let file = file.expect("a file");
            let name = file.file_name().into_string().expect("text");
            let name = name.replace("kernel", section);
            let mut bytes = fs::read(file.path()).expect("a file");
            if name == "metadata" {
                // Packets keep their sizes.
                let metadata: String = bytes.iter().copied().map(char::from).collect();
                let metadata = metadata.replace("kernel", &format!("{section:6}"));
                bytes = metadata.chars().map(|char| char as u8).collect();
            }
            fs::write(trace.join(name), bytes).expect("a file");
        }
        trace
    });
    let rfc = example("rfc-small");
    for inputs in [
        &[&small, &example("lttng-discarded")][..],
        &[&irq, &again],
        &[&irq, &numbered],
        &[&numbered, &irq],
        &[&log, &small, &rfc],
    ] {
        let there = home.path().join("there");
        let paths: Vec<&str> = inputs.iter().map(|path| text(path)).collect();
        let to = ["-f", "--to", "ctf-rfc", "-o", text(&there)];
        good(&[&["convert"][..], &paths, &to].concat());
        let payloads = |path: &Path| {
            let events = events(path, &[]).into_iter();
            let mut shown: Vec<String> = events.map(|event| event["event"].to_string()).collect();
            shown.sort_unstable();
            shown
        };
        let mut expected: Vec<String> = inputs.iter().flat_map(|path| payloads(path)).collect();
        expected.sort_unstable();
        assert_eq!(payloads(&there), expected, "{paths:?}");
        good(&["check", text(&there)]);
    }
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
fn damaged_traces_are_repaired() {
    let home = home();
    let trace = example("lttng-small/ust/uid/0/64-bit");
    let broken = home.path().join("broken");
    fs::create_dir(&broken).expect("a directory");
    fs::copy(trace.join("metadata"), broken.join("metadata")).expect("metadata");
    let stream = fs::read(trace.join("r_0")).expect("a stream");
    fs::write(broken.join("r_0"), &stream[..stream.len() / 3]).expect("a stream");
    let kept = events(&broken, &[]);
    assert!(!kept.is_empty());
    assert_eq!(kymo(&["check", text(&broken)]).status.code(), Some(1));
    let saved = home.path().join("saved");
    let output = kymo(&["repair", text(&broken), "-o", text(&saved)]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(events(&saved, &[]), kept);
    good(&["check", text(&saved)]);
    // Stopping at the damage is not what it is for.
    let strict = kymo(&[
        "repair",
        "--strict",
        text(&broken),
        "-o",
        text(&saved),
        "-f",
    ]);
    assert_eq!(strict.status.code(), Some(2));
    // What is whole stays as it is.
    let whole = home.path().join("whole");
    good(&["repair", text(&trace), "-o", text(&whole)]);
    assert_eq!(events(&whole, &[]), events(&trace, &[]));
}

#[test]
fn nothing_else_is_overwritten() {
    let home = home();
    let trace = example("bitfield-le");
    let output = home.path().join("output");
    fs::create_dir(&output).expect("a directory");
    fs::write(output.join("precious"), "x").expect("a file");
    for force in [&[][..], &["--force"]] {
        let run = kymo(&[&["convert", text(&trace), "-o", text(&output)], force].concat());
        assert_eq!(run.status.code(), Some(2));
    }
    assert!(output.join("precious").is_file());
    fs::remove_file(output.join("precious")).expect("a file");
    good(&["convert", text(&trace), "-o", text(&output)]);
    let run = kymo(&["convert", text(&trace), "-o", text(&output)]);
    assert_eq!(run.status.code(), Some(2));
    good(&["convert", text(&trace), "-o", text(&output), "--force"]);
    let entries = fs::read_dir(home.path()).expect("a directory").count();
    assert_eq!(entries, 1, "nothing is left beside the output");
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
fn a_packet_whose_padding_is_cut_is_written_anew() {
    let home = home();
    let name = "lttng-discarded/ust/uid/0/64-bit";
    let cut = changed(&home, name, "tiny_0", |bytes| {
        bytes.pop();
    });
    assert_eq!(kymo(&["check", text(&cut)]).status.code(), Some(1));
    let kept = events(&cut, &[]);
    assert!(!kept.is_empty());
    let saved = home.path().join("saved");
    kymo(&["repair", text(&cut), "-o", text(&saved)]);
    good(&["check", text(&saved)]);
    assert_eq!(events(&saved, &[]).len(), kept.len());
}

/// A packet in the middle and its index disagree: whichever is damaged, repairing saves
/// all of its events.
#[test]
fn a_packet_that_contradicts_its_index_is_saved() {
    let home = home();
    let name = "lttng-discarded/ust/uid/0/64-bit";
    let stream = fs::read(example(name).join("tiny_0")).expect("a stream");
    let is_magic = |at: &usize| stream[*at..].starts_with(&[0xc1, 0x1f, 0xfc, 0xc1]);
    let second = (1..stream.len()).find(is_magic).expect("a second packet");
    // Behind magic number, UUID and numbers of the stream: times, size of the content.
    let (begin, content) = (second + 32, second + 48);
    // The second record, behind the header: place, size, size of the content, time.
    let (of_content, of_begin) = (16 + 72 + 16, 16 + 72 + 24);
    let damage: [(&str, usize, u8); 6] = [
        ("tiny_0", content, 0x40),
        ("tiny_0", content + 1, 0x04),
        ("tiny_0", begin + 5, 0x10),
        ("index/tiny_0.idx", of_content + 7, 0x40),
        ("index/tiny_0.idx", of_content + 6, 0x04),
        ("index/tiny_0.idx", of_begin + 2, 0x10),
    ];
    for (number, (file, at, bits)) in damage.into_iter().enumerate() {
        let trace = changed(&home, name, "tiny_0", |_| {});
        let _ = fs::remove_dir_all(trace.join("index"));
        good(&["index", text(&trace)]);
        let expected = events(&trace, &[]);
        let mut bytes = fs::read(trace.join(file)).expect("a file");
        bytes[at] ^= bits;
        fs::write(trace.join(file), bytes).expect("a file");
        let output = kymo(&["check", text(&trace)]);
        assert_eq!(output.status.code(), Some(1), "{file} {at}");
        assert!(events(&trace, &[]).len() < expected.len(), "{file} {at}");
        let saved = home.path().join(format!("saved{number}"));
        let output = kymo(&["repair", text(&trace), "-o", text(&saved)]);
        assert_eq!(output.status.code(), Some(1), "{file} {at}");
        let err = String::from_utf8_lossy(&output.stderr);
        assert!(err.contains("index"), "{err}");
        good(&["check", text(&saved)]);
        let found = events(&saved, &[]);
        assert_eq!(found.len(), expected.len(), "{file} {at}");
        for (found, expected) in found.iter().zip(&expected) {
            assert_eq!(found["timestamp"], expected["timestamp"], "{file} {at}");
            assert_eq!(found["payload"], expected["payload"], "{file} {at}");
        }
    }
}

/// The streams of a section of RFC v1.1 count their packets and discarded events together: what one
/// that is damaged should contain follows from the others.
#[test]
fn counters_of_a_section_are_mended_by_all_its_streams() {
    let home = home();
    let trace = home.path().join("trace");
    fs::create_dir(&trace).expect("a directory");
    let metadata = example("rfc-small").join("metadata");
    fs::copy(metadata, trace.join("metadata")).expect("metadata");
    let packet = |(number, discarded): (u32, u32)| {
        // A damaged number has another time nowhere.
        let begin = 1000 + 10 * u64::from(number & 0x3f);
        let words: [u32; 6] = [0xc1fc_1fc1, 1, 48, 64, 0, number];
        let mut packet = words.map(u32::to_be_bytes).concat();
        packet.extend([begin, begin + 5].map(u64::to_be_bytes).concat());
        packet.extend([discarded, 32 << 24].map(u32::to_be_bytes).concat());
        packet.resize(64, 0);
        packet
    };
    let numbers = |file: &[u32]| file.iter().map(|&n| (n, 2 * n)).collect::<Vec<_>>();
    let mut files = [numbers(&[0, 2, 4, 5, 8]), numbers(&[1, 3, 6, 7, 9])];
    let good_files = files.clone();
    let write = |files: &[Vec<(u32, u32)>; 2]| {
        for (cpu, file) in files.iter().enumerate() {
            let bytes: Vec<u8> = file.iter().copied().flat_map(packet).collect();
            fs::write(trace.join(format!("kernel_{cpu}")), bytes).expect("a stream");
        }
    };
    let read = |trace: &Path| {
        [0, 1].map(|cpu| {
            let bytes = fs::read(trace.join(format!("kernel_{cpu}"))).expect("a stream");
            let word = |at: usize| {
                let word = bytes[at..].first_chunk::<4>().expect("a number");
                u32::from_be_bytes(*word)
            };
            let mut found = Vec::new();
            let mut at = 0;
            while at < bytes.len() {
                found.push((word(at + 20), word(at + 40)));
                at += word(at + 12) as usize;
            }
            found
        })
    };
    write(&files);
    let whole = home.path().join("whole");
    good(&["repair", text(&trace), "-o", text(&whole)]);
    assert_eq!(read(&whole), good_files);
    // A number, and what was discarded before another packet.
    files[0][2].0 ^= 0x40;
    files[1][2].1 ^= 0x100;
    write(&files);
    let saved = home.path().join("saved");
    kymo(&["repair", text(&trace), "-o", text(&saved)]);
    let mut expected = good_files;
    // Only as many as the packet before it states: no others are known.
    expected[1][2].1 = 10;
    assert_eq!(read(&saved), expected);
}

#[test]
fn damaged_files_get_no_index() {
    let home = home();
    let name = "lttng-discarded/ust/uid/0/64-bit";
    let cuts: [fn(&mut Vec<u8>); 2] = [
        |bytes| bytes.truncate(bytes.len() - 1000),
        // The magic number of the second packet.
        |bytes| {
            let is_magic = |at: &usize| bytes[*at..].starts_with(&[0xc1, 0x1f, 0xfc, 0xc1]);
            let second = (1..bytes.len()).find(is_magic).expect("a second packet");
            bytes[second] ^= 1;
        },
    ];
    for cut in cuts {
        let trace = changed(&home, name, "tiny_0", cut);
        assert_eq!(kymo(&["check", text(&trace)]).status.code(), Some(1));
        let output = kymo(&["index", text(&trace)]);
        let err = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{err}");
        assert!(err.contains("tiny_0: it is damaged, so no index"), "{err}");
        assert!(!trace.join("index/tiny_0.idx").exists());
    }
}

#[cfg(unix)]
#[test]
fn only_traces_are_overwritten_and_no_inputs() {
    let home = home();
    let small = example("rfc-small");
    let place = home.path().join("p");
    fs::create_dir_all(place.join("src")).expect("made");
    fs::write(place.join("src/precious"), "x").expect("written");
    let refused = |output: &Path, input: &Path, found: &str| {
        let run = kymo(&[
            "convert",
            text(input),
            "-o",
            text(output),
            "--to",
            "ctf-rfc",
            "--force",
        ]);
        assert_eq!(run.status.code(), Some(2));
        let err = String::from_utf8_lossy(&run.stderr).into_owned();
        assert!(err.contains(found), "{err}");
    };
    fs::write(place.join("metadata"), "hi\n").expect("written");
    refused(&place, &small, "metadata is not metadata of a trace");
    fs::copy(small.join("metadata"), place.join("metadata")).expect("copied");
    refused(&place, &small, "src is not a part of one");
    assert!(place.join("src/precious").exists());

    let traces = home.path().join("t");
    for name in ["a", "b"] {
        good(&[
            "convert",
            text(&small),
            "-o",
            text(&traces.join(name)),
            "--to",
            "ctf-rfc",
        ]);
    }
    let input = traces.join("a");
    refused(&traces, &input, "the input");
    refused(&input, &input, "the input");
    assert!(input.join("metadata").exists() && traces.join("b/metadata").exists());
    // What holds nothing but other traces may go.
    good(&[
        "convert",
        text(&small),
        "-o",
        text(&traces),
        "--to",
        "ctf-rfc",
        "--force",
    ]);
    assert!(traces.join("metadata").exists());
    assert_eq!(fs::read_dir(home.path()).expect("read").count(), 2);
}

#[cfg(unix)]
#[test]
fn indexes_are_not_written_where_links_lead() {
    let home = home();
    let name = "lttng-discarded/ust/uid/0/64-bit";
    let trace = changed(&home, name, "tiny_0", |_| {});
    let (elsewhere, mine) = (home.path().join("elsewhere"), home.path().join("mine"));
    fs::create_dir(&elsewhere).expect("made");
    fs::write(&mine, "mine").expect("written");
    let index = trace.join("index");
    let link = |to: &Path, at: &Path| std::os::unix::fs::symlink(to, at).expect("a link");
    link(&elsewhere, &index);
    for force in [&[][..], &["--force"]] {
        let run = kymo(&[&["index", text(&trace)], force].concat());
        let err = String::from_utf8_lossy(&run.stderr).into_owned();
        assert_eq!(run.status.code(), Some(2), "{err}");
        assert!(err.contains("index: it is not a directory"), "{err}");
    }
    assert_eq!(fs::read_dir(&elsewhere).expect("read").count(), 0);
    fs::remove_file(&index).expect("removed");
    // A link in the place of an index is replaced when that is asked for, and not followed.
    fs::create_dir(&index).expect("made");
    link(&mine, &index.join("tiny_0.idx"));
    assert_eq!(kymo(&["index", text(&trace)]).status.code(), Some(2));
    let reported = good(&["index", "--force", text(&trace)]);
    assert!(
        reported.contains("`index/tiny_0.idx` is ignored"),
        "{reported}"
    );
    assert_eq!(fs::read_to_string(&mine).expect("read"), "mine");
    let there = fs::symlink_metadata(index.join("tiny_0.idx")).expect("an index");
    assert!(there.is_file());
}

#[test]
fn a_trace_is_not_overwritten_with_what_lies_beside_it() {
    let home = home();
    // With magic numbers, without them, of sections.
    for (number, (input, to)) in [
        ("lttng-small/ust/uid/0/64-bit", "ctf1.8"),
        ("lttng-small/ust/uid/0/64-bit", "ctf2"),
        ("bitfield-le", "ctf1.8"),
        ("rfc-small", "ctf-rfc"),
    ]
    .into_iter()
    .enumerate()
    {
        let (input, output) = (example(input), home.path().join(format!("t{number}")));
        let convert = ["convert", text(&input), "-o", text(&output), "--to", to];
        good(&convert);
        let jpeg = [&b"\xff\xd8\xff\xe0\0\x10JFIF\0"[..], &[0x5A; 5000]].concat();
        for (name, bytes) in [
            ("notes.txt", &b"remember the milk\n"[..]),
            ("photo.jpg", &jpeg),
            (".hidden", b"x"),
            (".kept_0", b""),
            ("empty.txt", b""),
            ("index.tar", b"x"),
        ] {
            let path = output.join(name);
            fs::write(&path, bytes).expect("written");
            let run = kymo(&[&convert[..], &["--force"]].concat());
            let err = String::from_utf8_lossy(&run.stderr).into_owned();
            assert_eq!(run.status.code(), Some(2), "{name}: {err}");
            assert!(
                err.contains(&format!("{name} is not a part of one")),
                "{err}"
            );
            assert_eq!(fs::read(&path).expect("it is there"), bytes);
            fs::remove_file(&path).expect("removed");
        }
        fs::write(output.join("stream_7"), "").expect("written");
        good(&[&convert[..], &["--force"]].concat());
    }
}

#[cfg(unix)]
#[test]
fn what_is_no_file_is_reported_and_not_opened() {
    let home = home();
    let name = "lttng-small/ust/uid/0/64-bit";
    let trace = changed(&home, name, "r_0", |_| {});
    let expected = events(&trace, &[]);
    std::os::unix::fs::symlink("/dev/zero", trace.join("zero")).expect("a link");
    let pipe = Command::new("mkfifo").arg(trace.join("pipe")).status();
    assert!(pipe.expect("mkfifo runs").success());
    let to = home.path().join("to");
    let output = kymo(&["convert", "--to", "ctf2", text(&trace), "-o", text(&to)]);
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{err}");
    for name in ["zero", "pipe"] {
        assert!(err.contains(&format!("{name}: ")), "{err}");
    }
    assert!(err.contains("not a regular file"), "{err}");
    assert_eq!(events(&to, &[]), expected);
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

#[cfg(unix)]
#[test]
fn what_a_killed_run_left_is_not_read_and_removed_by_the_next() {
    let home = home();
    let small = example("rfc-small");
    let output = home.path().join("x");
    let left = home.path().join(".x.0.new");
    let written = home.path().join(".x.1.new");
    let other = home.path().join(".x.y.0.new");
    for path in [&output, &left, &written, &other] {
        good(&["convert", text(&small), "-o", text(path), "--to", "ctf-rfc"]);
    }
    assert_eq!(events(home.path(), &[]), events(&output, &[]));
    let again = || {
        good(&[
            "convert",
            text(&small),
            "-o",
            text(&output),
            "--to",
            "ctf-rfc",
            "--force",
        ])
    };
    // Another process is writing this one.
    let file = fs::File::open(&written).expect("opened");
    file.try_lock().expect("locked");
    again();
    assert!(!left.exists() && written.exists() && other.exists());
    drop(file);
    again();
    assert!(!written.exists() && other.exists());
    assert_eq!(events(&output, &[]), events(&small, &[]));
}

/// The numbers of the sessions that the packets of the files of a trace belong to, each once.
fn sessions(trace: &Path, is_big: bool) -> Vec<u32> {
    let mut sessions = Vec::new();
    for entry in fs::read_dir(trace).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.ends_with("metadata") {
            continue;
        }
        let bytes = fs::read(&path).expect("a stream");
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let number = |at: usize| {
                let bytes = rest[at..at + 4].try_into().expect("four bytes");
                match is_big {
                    true => u32::from_be_bytes(bytes),
                    false => u32::from_le_bytes(bytes),
                }
            };
            sessions.push(number(4));
            rest = &rest[number(12) as usize..];
        }
    }
    sessions.sort_unstable();
    sessions.dedup();
    sessions
}

#[test]
fn packets_of_the_draft_of_2010_keep_their_session() {
    let home = home();
    let small = example("rfc-small");
    assert_eq!(sessions(&small, true), [1]);
    let to = home.path().join("t");
    for options in [
        &[][..],
        &["--packet-size", "4K"],
        &["--packed"],
        &["--byte-order", "le"],
        &["--checksum", "crc32"],
    ] {
        let convert = ["convert", text(&small), "-fo", text(&to), "--to", "ctf-rfc"];
        kymo(&[&convert[..], options].concat());
        let found = sessions(&to, !options.contains(&"le"));
        assert_eq!(found, [1], "{options:?}");
    }
    // Traces of other dialects have no session; of two traces that have one, it is that of the first.
    let lttng = example("lttng-small/ust/uid/0/64-bit");
    let zero = home.path().join("zero");
    good(&[
        "convert",
        text(&lttng),
        "-o",
        text(&zero),
        "--to",
        "ctf-rfc",
    ]);
    assert_eq!(sessions(&zero, false), [0]);
    for (inputs, expected) in [([&zero, &small], 0), ([&small, &zero], 1)] {
        let [first, second] = inputs.map(|path| text(path));
        let convert = [
            "convert",
            first,
            second,
            "-fo",
            text(&to),
            "--to",
            "ctf-rfc",
        ];
        kymo(&[&convert[..], &["--byte-order", "le"]].concat());
        assert_eq!(sessions(&to, false), [expected]);
    }
}

#[test]
fn indexes_are_written_as_afterwards() {
    let home = home();
    let trace = example("lttng-small/ust/uid/0/64-bit");
    for options in [
        &["--to", "ctf1.8"][..],
        &["--to", "ctf2", "--packet-size", "4K"],
    ] {
        let (with, without) = (home.path().join("with"), home.path().join("without"));
        let convert = |to: &Path, more: &[&str]| {
            let args = ["convert", text(&trace), "-f", "-o", text(to)];
            good(&[&args[..], options, more].concat());
        };
        convert(&with, &["--index"]);
        convert(&without, &[]);
        good(&["index", text(&without)]);
        let indexes = |trace: &Path| {
            let files = fs::read_dir(trace.join("index")).expect("indexes");
            let mut files: Vec<_> = files
                .map(|file| file.expect("a file").path())
                .map(|path| {
                    (
                        path.file_name().map(ToOwned::to_owned),
                        fs::read(path).expect("bytes"),
                    )
                })
                .collect();
            files.sort();
            files
        };
        assert!(!indexes(&with).is_empty());
        assert!(indexes(&with) == indexes(&without), "{options:?}");
        good(&["check", text(&with)]);
    }
    let refused = kymo(&[
        "convert",
        text(&trace),
        "-o",
        "x",
        "--to",
        "ctf-rfc",
        "--index",
    ]);
    assert_eq!(refused.status.code(), Some(2));
}
