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

/// What `print` shows of each event, and what it tells was lost: of each, how much and whether
/// events or packets.
fn shown(path: &Path, more: &[&str]) -> (Vec<String>, Vec<String>) {
    let output = kymo(&[&["print", text(path)], more].concat());
    let events = String::from_utf8(output.stdout).expect("UTF-8");
    let told = String::from_utf8(output.stderr).expect("UTF-8");
    let lost = told
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
fn packets_of_another_size_are_numbered_and_tell_what_was_lost() {
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
fn a_window_tells_what_was_lost_before_its_first_event() {
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
    let told = good(&[
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
        assert!(told.contains(&format!("`{name}`")), "{name}: {told}");
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
        let told = format!("{time} {payload}");
        *found.entry(place).or_default().entry(told).or_default() += 1;
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
