//! What becomes of packets, their numbers and their counters: `kymo convert`, `kymo repair`.

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use tempfile::TempDir;

use common::{example, good, kymo, text};

/// Real traces of the repository: packets of 4096 bytes, a context with `cpu_id`.
const SMALL: &str = "lttng-small/ust/uid/0/64-bit";
const DISCARDED: &str = "lttng-discarded/ust/uid/0/64-bit";
const PACKET: usize = 4096;

fn home() -> TempDir {
    TempDir::new().expect("a directory")
}

/// What `print` shows of each event, and what it reports as lost: of each, how much and whether
/// events or packets.
fn shown(path: &Path, more: &[&str]) -> (Vec<String>, Vec<String>) {
    let output = kymo(&[&["print", text(path)], more].concat());
    let events = String::from_utf8(output.stdout).expect("UTF-8");
    let reported = String::from_utf8(output.stderr).expect("UTF-8");
    let lost = reported
        .lines()
        .filter_map(|line| line.split("discarded ").nth(1));
    (
        events.lines().map(str::to_owned).collect(),
        lost.filter_map(|rest| rest.split(" between").next())
            .map(str::to_owned)
            .collect(),
    )
}

/// A copy of an example's metadata and one of its streams, changed.
fn changed(to: &Path, name: &str, stream: &str, change: impl FnOnce(&mut Vec<u8>)) {
    fs::create_dir_all(to).expect("a directory");
    fs::copy(example(name).join("metadata"), to.join("metadata")).expect("metadata");
    let mut bytes = fs::read(example(name).join(stream)).expect("a stream");
    change(&mut bytes);
    fs::write(to.join(stream), bytes).expect("a stream");
}

/// Sizes of a trace's packets, without the metadata.
fn packets(path: &Path) -> u64 {
    let output = kymo(&["info", "--json", text(path)]);
    let info: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let found = info["recordings"][0]["packets"].as_u64();
    found.expect("a number of packets")
}

#[test]
fn packets_of_another_size_are_numbered_and_report_what_was_lost() {
    let home = home();
    let (source, there) = (home.path().join("source"), home.path().join("there"));
    changed(&source, DISCARDED, "tiny_0", |bytes| {
        bytes.drain(2 * PACKET..3 * PACKET);
    });
    let (events, lost) = shown(&source, &[]);
    assert_eq!(
        lost,
        ["15212 events", "1 packet", "11 events", "3862 events"]
    );
    for to in ["ctf1.8", "ctf2", "ctf-rfc"] {
        for size in ["4K", "8K", "16M"] {
            let (source, there) = (text(&source), text(&there));
            let to = ["--to", to, "--packet-size", size, "-f", "-o", there];
            good(&[&["convert", source][..], &to].concat());
            let (found, still) = shown(Path::new(there), &[]);
            assert_eq!(found.len(), events.len(), "{to:?}");
            assert_eq!(still, lost, "{to:?}");
        }
    }
}

#[test]
fn small_packets_become_one_where_their_contexts_agree() {
    let home = home();
    let there = home.path().join("there");
    let convert = |size| {
        let small = example(SMALL);
        let to = ["-f", "-o", text(&there), "--packet-size", size];
        good(&[&["convert", text(&small)][..], &to].concat());
        assert_eq!(shown(&there, &[]).1, <[String; 0]>::default(), "{size}");
        packets(&there)
    };
    // A stream for each of two CPUs.
    assert_eq!(convert("16M"), 2);
    assert!(convert("4K") > 20);
}

#[test]
fn a_window_reports_what_was_lost_before_its_first_event() {
    let home = home();
    let there = home.path().join("there");
    let window = ["--begin", "09:04:19.1", "--end", "09:04:19.14"];
    let source = example(DISCARDED);
    let (events, lost) = shown(&source, &window);
    assert_eq!(lost, ["1729 events", "15212 events"]);
    for more in [
        &[][..],
        &["--to", "ctf2"],
        &["--to", "ctf-rfc"],
        &["--packet-size", "64K"],
    ] {
        let to = ["convert", "-f", "-o", text(&there), text(&source)];
        good(&[&to, &window[..], more].concat());
        let (found, still) = shown(&there, &[]);
        assert_eq!(found.len(), events.len(), "{more:?}");
        assert_eq!(still, lost, "{more:?}");
    }
}

#[test]
fn several_traces_keep_what_they_agree_on() {
    let home = home();
    let there = home.path().join("there");
    let names = |path: &Path| {
        let output = kymo(&["info", text(path)]);
        let info = String::from_utf8(output.stdout).expect("UTF-8");
        let lines = info
            .lines()
            .filter(|line| line.trim().starts_with("environment"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let (small, discarded) = (example(SMALL), example(DISCARDED));
    let reported = good(&[
        "convert",
        text(&small),
        text(&discarded),
        "-o",
        text(&there),
    ]);
    let (small, discarded, merged) = (names(&small), names(&discarded), names(&there));
    assert!(!merged.is_empty() && merged.len() < small.len());
    for line in &merged {
        assert!(small.contains(line) && discarded.contains(line), "{line}");
    }
    for line in small.iter().filter(|line| !merged.contains(line)) {
        let name = line.trim().trim_start_matches("environment").trim();
        let name = name.split(" = ").next().expect("a name");
        assert!(
            reported.contains(&format!("`{name}`")),
            "{name}: {reported}"
        );
    }
}

/// Bytes, with all places of some replaced by others of the same length.
fn replaced(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let is_place = |at: &usize| bytes[*at..].starts_with(from);
    let places: Vec<usize> = (0..bytes.len()).filter(is_place).collect();
    for at in places {
        bytes[at..at + to.len()].copy_from_slice(to);
    }
    bytes
}

/// How often each event comes, by the directory of its trace.
fn events(path: &Path) -> BTreeMap<String, BTreeMap<String, u64>> {
    let output = kymo(&["print", "--format", "json", text(path)]);
    let lines = String::from_utf8(output.stdout).expect("UTF-8");
    let mut found: BTreeMap<String, BTreeMap<String, u64>> = BTreeMap::new();
    for line in lines.lines() {
        // Hundreds of thousands of lines: the keys that count lie around that of the recording.
        let (time, rest) = line.split_once(",\"recording\":\"").expect("a recording");
        let (place, _) = rest.split_once('"').expect("a path");
        let (_, payload) = rest.split_once("\"payload\":").expect("a payload");
        let place = place.rsplit('/').next().expect("a name").to_owned();
        let reported = format!("{time} {payload}");
        *found.entry(place).or_default().entry(reported).or_default() += 1;
    }
    found
}

#[test]
fn damage_of_a_packet_takes_nothing_from_the_others() {
    let home = home();
    let (broken, saved) = (home.path().join("broken"), home.path().join("saved"));
    let metadata = fs::read(example(DISCARDED).join("metadata")).expect("metadata");
    let stream = fs::read(example(DISCARDED).join("tiny_0")).expect("a stream");
    // The identity, as in packet headers and as text.
    let id: [u8; 16] = stream[4..20].try_into().expect("16 bytes");
    let hex = |id: &[u8]| {
        id.iter()
            .map(|byte| format!("{byte:02x}"))
            .collect::<String>()
    };
    let mut next = 0u16;
    let mut add = |name: &str, change: &dyn Fn(&mut Vec<u8>)| {
        // Traces of the same identity would be one.
        next += 1;
        let mut own = id;
        own[14..].copy_from_slice(&next.to_be_bytes());
        let tail = |id: &[u8; 16]| hex(&id[10..]).into_bytes();
        let to = broken.join(name);
        fs::create_dir_all(&to).expect("a directory");
        let metadata = replaced(&replaced(&metadata, &id, &own), &tail(&id), &tail(&own));
        fs::write(to.join("metadata"), metadata).expect("metadata");
        let mut bytes = replaced(&stream, &id, &own);
        change(&mut bytes);
        fs::write(to.join("tiny_0"), bytes).expect("a stream");
    };
    let packet = 4 * PACKET;
    add("others", &|bytes| {
        drop(bytes.drain(packet..packet + PACKET))
    });
    add("zeros", &|bytes| {
        bytes[packet + 1000..packet + 3000].fill(0)
    });
    // Header and context have 84 bytes.
    for bit in 0..84 * 8 {
        let flip = |bytes: &mut Vec<u8>| bytes[packet + bit / 8] ^= 1 << (bit % 8);
        add(&format!("bit{bit}"), &flip);
    }
    let output = kymo(&["repair", text(&broken), "-o", text(&saved)]);
    assert_eq!(output.status.code(), Some(1));
    good(&["check", text(&saved)]);
    let found = events(&saved);
    assert_eq!(found.len(), 2 + 84 * 8);
    for (name, found_here) in &found {
        for (event, count) in &found["others"] {
            assert!(found_here.get(event) >= Some(count), "{name}: {event}");
        }
    }
}

/// A copy of both streams of a trace with its index files, the first stream changed.
fn indexed(to: &Path, at: usize, flip: u8) {
    for stream in ["tiny_1", "tiny_0"] {
        changed(to, DISCARDED, stream, |_| {});
    }
    let _ = fs::remove_dir_all(to.join("index"));
    good(&["index", text(to)]);
    changed(to, DISCARDED, "tiny_0", |bytes| bytes[at] ^= flip);
}

/// Exit status and standard error of a command.
fn run(args: &[&str]) -> (Option<i32>, String) {
    let output = kymo(args);
    let reported = String::from_utf8(output.stderr).expect("UTF-8");
    (output.status.code(), reported)
}

#[test]
fn damage_of_a_packet_that_its_index_hides_is_reported_and_not_written() {
    let home = home();
    let whole = home.path().join("whole");
    indexed(&whole, 0, 0);
    good(&["check", text(&whole)]);
    let expected = shown(&whole, &[]);
    // In the second packet: time at the end, discarded events, size of the content, stream, magic
    // number, UUID; and the time at the end of the third one.
    let damage = [
        (46, 0x02, "timestamp_end"),
        (72, 0x80, "events_discarded"),
        (54, 0x01, "content_size"),
        (24, 0x02, "stream_instance_id"),
        (0, 0x01, "magic"),
        (11, 0x08, "uuid"),
        (PACKET + 46, 0x02, "timestamp_end"),
    ];
    for (number, (at, flip, field)) in damage.into_iter().enumerate() {
        let trace = home.path().join(format!("damaged{number}"));
        indexed(&trace, PACKET + at, flip);
        let output = kymo(&["check", text(&trace)]);
        assert_eq!(output.status.code(), Some(1), "{field}");
        let listed = String::from_utf8(output.stdout).expect("UTF-8");
        assert!(listed.contains(field), "{listed}");
        for command in [
            &["repair"][..],
            &["convert", "--to", "ctf1.8"],
            &["convert", "--to", "ctf1.8", "--packet-size", "1M"],
        ] {
            let output = home.path().join(format!("{}{number}", command.len()));
            let (code, reported) = run(&[command, &[text(&trace), "-o", text(&output)]].concat());
            assert_eq!(code, Some(1), "{command:?} {field}");
            assert!(reported.contains(field), "{command:?} {reported}");
            good(&["check", text(&output)]);
            assert_eq!(shown(&output, &[]), expected, "{command:?} {field}");
        }
        let output = home.path().join("never");
        let strict = ["convert", "--to", "ctf1.8", "--strict", text(&trace)];
        let (code, _) = run(&[&strict[..], &["-o", text(&output)]].concat());
        assert_eq!((code, output.exists()), (Some(1), false), "{field}");
    }
}

/// Lines that do not depend on the event before.
const NO_DELTA: &[&str] = &["--no-delta"];

/// One bit in the time of an event, of which there are 27, in the first packet and in the third one.
#[test]
fn a_wrong_time_takes_its_event_and_no_other() {
    let home = home();
    let source = home.path().join("source");
    changed(&source, DISCARDED, "tiny_0", |_| {});
    let (right, lost) = shown(&source, NO_DELTA);
    for (number, at) in [1821, 9457].into_iter().enumerate() {
        let broken = home.path().join(format!("broken{number}"));
        changed(&broken, DISCARDED, "tiny_0", |bytes| bytes[at] ^= 0x20);
        for (way, command) in [
            &["repair"][..],
            &["convert", "--to", "ctf1.8"],
            &["convert", "--to", "ctf2"],
            &["convert", "--to", "ctf1.8", "--packet-size", "4K"],
            &["convert", "--to", "ctf-rfc"],
        ]
        .into_iter()
        .enumerate()
        {
            let output = home.path().join(format!("{number}-{way}"));
            let (code, reported) = run(&[command, &[text(&broken), "-o", text(&output)]].concat());
            assert_eq!(code, Some(1), "{command:?}");
            let place = format!("tiny_0: offset {}, packet {}, event ", at - 3, number * 2);
            assert_eq!(
                reported.matches(&place).count(),
                1,
                "{command:?} {reported}"
            );
            assert!(reported.contains("left out: 1\n"), "{command:?} {reported}");
            good(&["check", text(&output)]);
            let found = shown(&output, NO_DELTA);
            if way < 2 {
                let kept = right.iter().filter(|event| found.0.contains(event));
                assert_eq!(kept.count(), right.len() - 1, "{command:?}");
            }
            assert_eq!(found.0.len(), right.len() - 1, "{command:?}");
            // Only repairing counts what damage has taken, in a first packet, too.
            let mut counted = lost.clone();
            if way == 0 {
                match number {
                    0 => counted.insert(0, "1 event".to_owned()),
                    _ => counted[0] = "15213 events".to_owned(),
                }
            }
            assert_eq!(found.1, counted, "{command:?}");
        }
        let output = home.path().join("never");
        let strict = ["convert", "--to", "ctf1.8", "--strict", text(&broken)];
        let (code, reported) = run(&[&strict[..], &["-o", text(&output)]].concat());
        assert_eq!((code, output.exists()), (Some(1), false), "{reported}");
    }
}

#[test]
fn metadata_of_ctf_2_that_is_cut_is_used_up_to_there_for_repairing() {
    let home = home();
    let (whole, cut) = (home.path().join("whole"), home.path().join("cut"));
    let source = example(SMALL);
    good(&["convert", "--to", "ctf2", text(&source), "-o", text(&whole)]);
    fs::create_dir(&cut).expect("a directory");
    for entry in fs::read_dir(&whole).expect("a directory") {
        let path = entry.expect("an entry").path();
        fs::copy(&path, cut.join(path.file_name().expect("a name"))).expect("a file");
    }
    let metadata = fs::read(whole.join("metadata")).expect("metadata");
    fs::write(cut.join("metadata"), &metadata[..metadata.len() - 20]).expect("metadata");
    let (code, _) = run(&["print", text(&cut)]);
    assert_eq!(code, Some(3));
    let saved = home.path().join("saved");
    let (code, reported) = run(&["repair", text(&cut), "-o", text(&saved)]);
    assert_eq!(code, Some(1), "{reported}");
    assert!(reported.contains("fragment"), "{reported}");
    good(&["check", text(&saved)]);
    let (right, _) = shown(&whole, NO_DELTA);
    let (found, _) = shown(&saved, NO_DELTA);
    assert!(!found.is_empty());
    assert!(found.iter().all(|event| right.contains(event)));
}
