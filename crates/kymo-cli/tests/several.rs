//! Several traces: merged to one, and each in a place of its own.

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use common::{example, good, kymo, text};

fn home() -> TempDir {
    TempDir::new().expect("a directory")
}

/// The lines in which all events below a directory are shown, without what identifies their trace.
fn shown(paths: &[&Path]) -> Vec<String> {
    let paths = paths.iter().map(|path| text(path));
    let args: Vec<&str> = ["print", "--names=payload"]
        .into_iter()
        .chain(paths)
        .collect();
    let output = kymo(&args);
    let text = String::from_utf8(output.stdout).expect("text");
    // The prefix names the environment, which the traces may not have in common.
    let lines = text.lines().map(|line| match line.split_once(" { ") {
        Some((prefix, fields)) => {
            let time = prefix.split(' ').next().unwrap_or_default();
            let name = prefix.rsplit(' ').next().unwrap_or_default();
            format!("{time} {name} {{ {fields}")
        }
        None => line.to_owned(),
    });
    lines.collect()
}

/// A copy of some streams of an example's trace.
fn part(source: &str, streams: &[&str], to: &Path) {
    let from = example(source);
    fs::create_dir_all(to).expect("a directory");
    for name in [&["metadata"], streams].concat() {
        fs::copy(from.join(name), to.join(name)).expect("copied");
    }
}

/// The places of all traces below a directory.
fn traces(below: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut ahead = vec![below.to_path_buf()];
    while let Some(path) = ahead.pop() {
        if path.join("metadata").exists() {
            found.push(path.strip_prefix(below).expect("below").to_path_buf());
        }
        let entries = fs::read_dir(&path).expect("a directory");
        let entries = entries.map(|entry| entry.expect("an entry").path());
        ahead.extend(entries.filter(|path| path.is_dir()));
    }
    found.sort();
    found
}

/// A trace in two directories, and another one below the only one that these share.
fn rotated(at: &Path) {
    let small = "lttng-small/ust/uid/0/64-bit";
    part(small, &["r_0"], &at.join("a/1/x"));
    part(
        "lttng-discarded/ust/uid/0/64-bit",
        &["tiny_0"],
        &at.join("a/2"),
    );
    part(small, &["r_1"], &at.join("b/1/x"));
}

#[test]
fn each_trace_has_a_place_in_which_no_other_is() {
    let home = home();
    let sessions = home.path().join("sessions");
    rotated(&sessions.join("s"));
    part(
        "bitfield-be",
        &["stream"],
        &sessions.join("z/1/2/3/4/5/6/7/8/9"),
    );
    let alone = home.path().join("alone");
    rotated(&alone);
    for (from, expected) in [
        (&sessions, &["s/a/2", "s/trace", "z/1/2/3/4/5/6/7/8/9"][..]),
        // The trace of two directories is first, and what all are below.
        (&alone, &["a/2", "trace"]),
    ] {
        for command in [
            &["repair"][..],
            &["convert", "--separate"],
            &["convert", "--separate", "--to", "ctf2"],
        ] {
            let to = home.path().join("to");
            let all = [command, &[text(from), "-o", text(&to)]].concat();
            good(&all);
            let expected: Vec<PathBuf> = expected.iter().map(PathBuf::from).collect();
            assert_eq!(traces(&to), expected, "{command:?}");
            assert_eq!(shown(&[&to]), shown(&[from]), "{command:?}");
            // What was written may be overwritten.
            let again = kymo(&all);
            assert_eq!(again.status.code(), Some(2));
            for _ in 0..2 {
                good(&[&all[..], &["--force"]].concat());
            }
            assert_eq!(traces(&to), expected, "{command:?}");
            fs::remove_dir_all(&to).expect("removed");
        }
    }
}

#[test]
fn a_trace_without_events_is_overwritten() {
    let home = home();
    let (from, to) = (example("bitfield-be"), home.path().join("to"));
    let all = ["convert", text(&from), "-o", text(&to)];
    good(&[&all[..], &["--event", "nothing"]].concat());
    let stream = fs::metadata(to.join("stream")).expect("a stream");
    assert_eq!(stream.len(), 0);
    fs::write(to.join("empty"), "").expect("written");
    let again = kymo(&[&all[..], &["--force"]].concat());
    assert_eq!(again.status.code(), Some(2));
    fs::remove_file(to.join("empty")).expect("removed");
    good(&[&all[..], &["--force"]].concat());
    assert_eq!(shown(&[&to]), shown(&[&from]));
}

/// The beginning of metadata; `header` has the members of the packet header.
fn metadata(uuid: Option<&str>, header: &str, more: &str) -> String {
    let uuid = uuid.map_or_else(String::new, |uuid| format!("uuid = \"{uuid}\";"));
    format!(
        "/* CTF 1.8 */
        typealias integer {{ size = 8; align = 8; signed = false; }} := u8;
        trace {{ major = 1; minor = 8; byte_order = le; {uuid}
            packet.header := struct {{ {header} }}; }};
        clock {{ name = c; freq = 1000000000; }};
        typealias integer {{ size = 8; align = 8; signed = false; map = clock.c.value; }} := t8;
        {more}"
    )
}

fn write(trace: &Path, metadata: &str, streams: &[(&str, &[u8])]) {
    fs::create_dir_all(trace).expect("a directory");
    fs::write(trace.join("metadata"), metadata).expect("written");
    for (name, bytes) in streams {
        fs::write(trace.join(name), bytes).expect("written");
    }
}

#[test]
fn events_stay_in_packets_whose_sizes_have_few_bits() {
    let home = home();
    let narrow = |times: &str| {
        let of_packet = format!("u8 packet_size; u8 content_size; {times}");
        metadata(
            None,
            "u8 stream_id;",
            &format!(
                "stream {{ id = 0; packet.context := struct {{ {of_packet} }};
                    event.header := struct {{ u8 id; t8 timestamp; }}; }};
                event {{ stream_id = 0; id = 0; name = few; fields := struct {{ u8 a[20]; }}; }};"
            ),
        )
    };
    // 25 and 27 bytes, of 31 that such a packet may have: a header of 20 has no room.
    let event = [&[0, 7][..], &[5; 20]].concat();
    let untimed = [&[0, 200, 200][..], &event].concat();
    let timed = [&[0, 216, 216, 7, 8][..], &event].concat();
    let two = |packet: &[u8]| [packet, packet].concat();
    let [first, second, third] = ["first", "second", "third"].map(|name| home.path().join(name));
    write(&first, &narrow(""), &[("s", &two(&untimed))]);
    write(&second, &narrow(""), &[("s", &two(&untimed))]);
    let times = "t8 timestamp_begin; t8 timestamp_end;";
    write(&third, &narrow(times), &[("s", &two(&timed))]);
    let other = example("bitfield-be");
    for inputs in [
        &[&*first, &*second][..],
        &[&*first, &*third],
        &[&*second, &*other],
        // Alone, too, times get more bits.
        &[&*third],
    ] {
        for more in [
            &["--to", "ctf1.8"][..],
            &["--to", "ctf2"],
            &["--to", "ctf2", "--packed", "--byte-order", "be"],
            &["--to", "ctf1.8", "--packet-size", "4K"],
        ] {
            let to = home.path().join("to");
            let paths: Vec<&str> = inputs.iter().map(|path| text(path)).collect();
            let output = ["-f", "-o", text(&to)];
            good(&[&["convert"][..], &paths, &output, more].concat());
            good(&["check", text(&to)]);
            let sorted = |paths: &[&Path]| {
                let mut lines = shown(paths);
                lines.sort_unstable();
                lines
            };
            assert_eq!(sorted(&[&to]), sorted(inputs), "{inputs:?} {more:?}");
        }
    }
}

/// A trace of two stream classes with the same events at the same times, which its tag distinguishes
/// from those of others.
fn with_equal_times(at: &Path, uuid: Option<&str>, tag: u8) {
    let stream = |id: u8| {
        format!(
            "stream {{ id = {id}; packet.context := struct {{ u8 packet_size; u8 content_size; }};
                event.header := struct {{ u8 id; t8 timestamp; }}; }};
            event {{ stream_id = {id}; id = 0; name = of_{id}; fields := struct {{ u8 tag; }}; }};"
        )
    };
    // In the metadata the second class is first.
    let metadata = metadata(uuid, "u8 stream_id;", &(stream(1) + &stream(0)));
    let uuid = |id: u8| [id, 72, 72, 0, 1, tag, 0, 2, tag];
    write(at, &metadata, &[("a", &uuid(1)), ("b", &uuid(0))]);
}

#[test]
fn events_of_the_same_time_keep_their_order() {
    let home = home();
    let numbers =
        ["ccc", "aaa", "bbb"].map(|end| format!("2a6422d0-6cee-11e0-8c08-cb07d7b3a{end}"));
    for uuids in [
        numbers.each_ref().map(|uuid| Some(uuid.as_str())),
        [None, Some(&*numbers[0]), None],
        [None; 3],
    ] {
        let traces = home.path().join("traces");
        for (tag, uuid) in (0..).zip(uuids) {
            with_equal_times(&traces.join(format!("t{tag}")), uuid, tag);
        }
        let expected = shown(&[&traces]);
        assert_eq!(expected.len(), 12);
        let mut times = BTreeMap::<_, usize>::new();
        for line in &expected {
            *times.entry(line.split(' ').next()).or_default() += 1;
        }
        assert_eq!(times.into_values().collect::<Vec<_>>(), [6, 6]);
        for more in [&["--to", "ctf1.8"][..], &["--to", "ctf2", "--threads", "1"]] {
            let to = home.path().join("to");
            let all = ["convert", text(&traces), "-f", "-o", text(&to)];
            good(&[&all, more].concat());
            assert_eq!(shown(&[&to]), expected, "{uuids:?} {more:?}");
        }
    }
}
