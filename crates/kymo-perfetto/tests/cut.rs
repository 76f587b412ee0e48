//! Parts of traces: what stays is shown as it was shown before.

#[allow(dead_code)]
mod common;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use common::{open, text};
use flate2::write::ZlibEncoder;
use kymo_model::{Cursor, Event, Recording as _};
use kymo_perfetto::Recording;
use kymo_perfetto::message::{
    clocks, compact, counter, event, ftrace, interned, packet, process_tree, thread, trace, track,
};
use kymo_perfetto::proto::write::{bytes as put_bytes, int as put_int, uint as put_uint, varint};
use kymo_text::Line;
use proptest::prelude::*;

/// Each row, without what depends on other rows: the number of its track, of what type its fields are, and in what
/// order they come, fields that are empty.
fn rows(recording: &Recording) -> Vec<String> {
    let text = text(recording);
    let heads = ["TRACK ", "CLOCK ", "FAULT ", "NOTE "];
    let rows = text
        .lines()
        .filter(|line| !heads.iter().any(|head| line.starts_with(head)));
    let row = |row: &str| {
        let (time, rest) = row.split_once(' ').expect("a time");
        let words = rest.replace('"', "");
        let roles = ["[0]", ":", "flow:", "ended-flow:", "flow+ended-flow:"];
        let words = words.split(' ').filter(|word| {
            let depends = word.starts_with("track=") || word.contains("FieldId");
            !(depends || roles.contains(word) || word.ends_with('='))
        });
        let mut words: Vec<_> = words
            .map(|word| word.trim_end_matches(['i', 'u', 'x', 'f', 'b']))
            .collect();
        words.sort_unstable();
        format!("{time} {}", words.join(" "))
    };
    rows.map(row).collect()
}

/// The chunk, the number and the time of each row.
fn places(recording: &Recording) -> Vec<(usize, u64, Option<i64>)> {
    let mut places = Vec::new();
    for chunk in recording.chunks(0) {
        let mut cursor = recording.cursor(&chunk);
        while let Some(event) = cursor.next_event().expect("no fault") {
            let time = event.timestamp().map(|time| time.as_nanos());
            places.push((chunk.number, event.number(), time));
        }
    }
    places
}

/// A part of a file, by the positions of rows.
fn cut(recording: &Recording, bytes: &[u8], stays: impl Fn(usize) -> bool) -> Vec<u8> {
    let places = places(recording);
    let position = |chunk, number| {
        let found =
            places.binary_search_by_key(&(chunk, number), |&(chunk, number, _)| (chunk, number));
        found.expect("a row")
    };
    let mut part = Vec::new();
    recording
        .write_cut(
            bytes,
            |chunk, number| stays(position(chunk, number)),
            &mut part,
        )
        .expect("memory takes all");
    part
}

fn form_name(recording: &Recording) -> &'static str {
    match recording.form() {
        kymo_perfetto::Form::Perfetto => "x.pftrace",
        kymo_perfetto::Form::Chrome => "x.json",
    }
}

/// All of the rows of a window stay, and none else.
fn window(recording: &Recording, bytes: &[u8], begin: i64, end: i64) {
    let places = places(recording);
    let stays = |position: usize| {
        let (_, _, time) = places[position];
        time.is_some_and(|time| (begin..=end).contains(&time))
    };
    let part = cut(recording, bytes, stays);
    let all = rows(recording);
    let expected: Vec<_> = (0..all.len())
        .filter(|&row| stays(row))
        .map(|row| all[row].clone())
        .collect();
    let found = Recording::from_form(Path::new(form_name(recording)), &part, recording.form())
        .expect("a trace");
    assert_eq!(rows(&found), expected, "{begin}..={end}");
}

/// Rows that are chosen stay; of others those that share a packet or an event with them.
fn choice(recording: &Recording, bytes: &[u8], stays: impl Fn(usize) -> bool) {
    let part = cut(recording, bytes, &stays);
    let found = Recording::from_form(Path::new(form_name(recording)), &part, recording.form())
        .expect("a trace");
    let (all, found) = (rows(recording), rows(&found));
    let mut counts = BTreeMap::new();
    let mut rest = found.iter().peekable();
    for (position, row) in all.iter().enumerate() {
        let count: &mut i64 = counts.entry(row).or_default();
        *count += i64::from(rest.next_if(|next| *next == row).is_some());
        *count -= i64::from(stays(position));
    }
    assert_eq!(rest.next(), None, "all that is found was there before");
    let lacking = counts.iter().find(|(_, count)| **count < 0);
    assert_eq!(lacking, None, "what was chosen is there");
}

/// The same of several windows and choices of a file.
fn check(recording: &Recording, bytes: &[u8]) {
    if recording.faults().is_empty() {
        assert_eq!(
            cut(recording, bytes, |_| true),
            bytes,
            "all of a file is the file"
        );
    }
    let mut times: Vec<i64> = places(recording)
        .iter()
        .filter_map(|place| place.2)
        .collect();
    times.dedup();
    let step = times.len() / 6 + 1;
    for (number, begin) in times.iter().enumerate().step_by(step) {
        for end in times[number..].iter().step_by(step) {
            window(recording, bytes, *begin, *end);
        }
    }
    window(recording, bytes, i64::MAX - 1, i64::MAX);
    choice(recording, bytes, |row| row % 2 == 0);
    choice(recording, bytes, |row| row % 3 == 1);
    let rows = recording.events() as usize;
    for row in (0..rows).step_by(rows / 16 + 1) {
        choice(recording, bytes, |other| other == row);
    }
}

#[test]
fn parts_of_files() {
    let home = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut seen = 0;
    for (directory, ending) in [
        ("tests/traces", None),
        ("../../fuzz/corpus/perfetto", Some("pftrace")),
        ("../../fuzz/corpus/chrome", Some("json")),
    ] {
        for entry in fs::read_dir(home.join(directory)).expect("traces") {
            let path = entry.expect("an entry").path();
            let bytes = fs::read(&path).expect("a file");
            let form = match ending.or(path.extension().and_then(|ending| ending.to_str())) {
                Some("json") => kymo_perfetto::Form::Chrome,
                _ => kymo_perfetto::Form::Perfetto,
            };
            println!("{}", path.display());
            let recording = Recording::from_form(&path, &bytes, form).expect("a trace");
            check(&recording, &bytes);
            seen += 1;
        }
    }
    assert!(seen >= 20, "{seen}");
}

#[test]
fn text_of_events_stays() {
    let json = r#"{"a": 1, "traceEvents": [
  {"ph":"M","name":"process_name","pid":7,"args":{"name":"daemon"}},
  {"ph":"X", "ts":1, "dur":1.50, "pid":7, "name":"a"} ,
  damage {"ph":"i","ts":2,"name":"lost"},
  {"ph":"i","ts":2,"name":"\u0062"},
  {"ph":"i","ts":3,"name":"c"}
], "b": [2]}"#;
    let recording = open("x.json", json.as_bytes());
    let part = cut(&recording, json.as_bytes(), |row| row == 1);
    let part = String::from_utf8(part).expect("text");
    insta::assert_snapshot!(part);
}

/// A packet of a trace.
#[derive(Clone, Debug)]
enum Packet {
    /// An event of a sequence whose clock counts on, with a delta, a name, and a value that is added to a counter.
    Event(u64, u64, Option<i64>),
    /// A value that is added to the counter, and one of another counter.
    Added(u64, i64),
    /// An event of a thread whose times are deltas, too.
    Old(i64),
    /// Switches and wakings of a CPU in the compact form: deltas, and who runs next.
    Compact(u32, Vec<(u64, u64)>, Vec<(u64, u64)>),
    /// A full switch, and a print of a process.
    Full(u32, u64, u64),
    /// The clock of the sequence is set.
    Snapshot(u64),
    /// Names are forgotten.
    Clear,
}

fn packets() -> impl Strategy<Value = Vec<(Packet, bool)>> {
    let pairs = || prop::collection::vec((0..30_u64, 0..3_u64), 0..5);
    let packet = prop_oneof![
        4 => (0..20_u64, 1..4_u64, prop::option::of(-9..9_i64))
            .prop_map(|(delta, name, value)| Packet::Event(delta, name, value)),
        3 => (0..20_u64, -9..9_i64).prop_map(|(delta, value)| Packet::Added(delta, value)),
        3 => (0..20_i64).prop_map(Packet::Old),
        3 => (0..2_u32, pairs(), pairs()).prop_map(|(cpu, a, b)| Packet::Compact(cpu, a, b)),
        2 => (0..2_u32, 0..300_u64, 0..3_u64).prop_map(|(cpu, at, next)| Packet::Full(cpu, at, next)),
        1 => (0..100_u64).prop_map(Packet::Snapshot),
        1 => Just(Packet::Clear),
    ];
    prop::collection::vec((packet, prop::bool::weighted(0.2)), 1..30)
}

const ADDED: u64 = 50;
const EXTRA: u64 = 51;

fn message(write: impl FnOnce(&mut Line)) -> Line {
    let mut content = Line::new();
    write(&mut content);
    content
}

fn put(field: u32, content: &Line, out: &mut Line) {
    put_bytes(field, content.as_bytes(), out);
}

/// The bytes of a trace.
fn file(packets: &[(Packet, bool)]) -> Vec<u8> {
    let mut out = Line::new();
    let mut add = |packet: &Line, is_compressed: bool| {
        let whole = message(|out| put(trace::PACKET, packet, out));
        if !is_compressed {
            return out.push(whole.as_bytes());
        }
        let mut inner = ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut inner, whole.as_bytes()).expect("memory");
        let inner = inner.finish().expect("memory");
        let packet = message(|out| put_bytes(packet::COMPRESSED_PACKETS, &inner, out));
        put(trace::PACKET, &packet, &mut out);
    };
    for uuid in [ADDED, EXTRA] {
        let counter = message(|out| put_uint(counter::IS_INCREMENTAL, 1, out));
        let described = message(|out| {
            put_uint(track::UUID, uuid, out);
            put_bytes(track::NAME, format!("counter {uuid}").as_bytes(), out);
            put(track::COUNTER, &counter, out);
        });
        add(
            &message(|out| put(packet::TRACK_DESCRIPTOR, &described, out)),
            false,
        );
    }
    let snapshot = |value: u64| {
        let clock = |id: u64, value: u64, is_incremental: u64| {
            message(|out| {
                put_uint(clocks::ID, id, out);
                put_uint(clocks::TIMESTAMP, value, out);
                put_uint(clocks::IS_INCREMENTAL, is_incremental, out);
            })
        };
        let snapshot = message(|out| {
            put(
                clocks::CLOCKS,
                &clock(clocks::BOOTTIME, value + 1000, 0),
                out,
            );
            put(clocks::CLOCKS, &clock(64, value, 1), out);
            put(clocks::CLOCKS, &clock(3, value, 0), out);
        });
        message(|out| {
            put_uint(packet::SEQUENCE, 1, out);
            put(packet::CLOCK_SNAPSHOT, &snapshot, out);
        })
    };
    add(&snapshot(0), false);
    let described = message(|out| {
        put_int(thread::PID, 7, out);
        put_int(thread::TID, 8, out);
        put_int(thread::REFERENCE_TIMESTAMP_US, 5, out);
    });
    add(
        &message(|out| {
            put_uint(packet::SEQUENCE, 2, out);
            put_uint(packet::SEQUENCE_FLAGS, packet::CLEARED, out);
            put(packet::THREAD_DESCRIPTOR, &described, out);
        }),
        false,
    );
    let mut known = Vec::new();
    let mut is_cleared = true;
    for (packet, is_compressed) in packets {
        let mut flags = packet::NEEDS_STATE;
        let mut sequenced = |timed: Option<u64>, event: &Line, names: &Line| {
            if std::mem::take(&mut is_cleared) {
                flags |= packet::CLEARED;
            }
            message(|out| {
                if let Some(delta) = timed {
                    put_uint(packet::TIMESTAMP, delta, out);
                    put_uint(packet::TIMESTAMP_CLOCK_ID, 64, out);
                }
                put_uint(packet::SEQUENCE, 1, out);
                put_uint(packet::SEQUENCE_FLAGS, flags, out);
                put(packet::TRACK_EVENT, event, out);
                if !names.is_empty() {
                    put(packet::INTERNED_DATA, names, out);
                }
            })
        };
        let extra = |value: i64, out: &mut Line| {
            put_uint(event::EXTRA_COUNTER_TRACKS, EXTRA, out);
            put_int(event::EXTRA_COUNTER_VALUES, value, out);
        };
        let whole = match packet {
            Packet::Event(delta, name, value) => {
                let names = match known.contains(name) {
                    true => Line::new(),
                    false => message(|out| {
                        known.push(*name);
                        let entry = message(|out| {
                            put_uint(interned::IID, *name, out);
                            put_bytes(interned::TEXT, format!("event {name}").as_bytes(), out);
                        });
                        put(interned::EVENT_NAMES, &entry, out);
                    }),
                };
                let event = message(|out| {
                    put_uint(event::TYPE, event::INSTANT, out);
                    put_uint(event::NAME_IID, *name, out);
                    put_uint(event::TRACK_UUID, 9, out);
                    if let Some(value) = *value {
                        extra(value, out);
                    }
                });
                sequenced(Some(*delta), &event, &names)
            }
            Packet::Added(delta, value) => {
                let event = message(|out| {
                    put_uint(event::TYPE, event::COUNT, out);
                    put_uint(event::TRACK_UUID, ADDED, out);
                    put_int(event::COUNTER_VALUE, *value, out);
                    if value % 2 == 0 {
                        extra(*value, out);
                    }
                });
                sequenced(Some(*delta), &event, &Line::new())
            }
            Packet::Old(delta) => {
                let event = message(|out| {
                    put_int(event::TIMESTAMP_DELTA_US, *delta, out);
                    put_uint(event::TYPE, event::INSTANT, out);
                    put_bytes(event::NAME, b"old", out);
                });
                message(|out| {
                    put_uint(packet::SEQUENCE, 2, out);
                    put(packet::TRACK_EVENT, &event, out);
                })
            }
            Packet::Compact(cpu, switches, wakings) => {
                let column = |number, values: Vec<u64>, out: &mut Line| {
                    let packed = message(|out| values.iter().for_each(|&value| varint(value, out)));
                    put(number, &packed, out);
                };
                let content = message(|out| {
                    let deltas = |pairs: &[(u64, u64)]| pairs.iter().map(|pair| pair.0).collect();
                    let numbers = |pairs: &[(u64, u64)]| -> Vec<u64> {
                        pairs.iter().map(|pair| pair.1).collect()
                    };
                    for name in ["idle", "worker", "other"] {
                        put_bytes(compact::INTERN_TABLE, name.as_bytes(), out);
                    }
                    column(compact::SWITCH_TIMESTAMP, deltas(switches), out);
                    column(compact::SWITCH_PREV_STATE, numbers(switches), out);
                    column(compact::SWITCH_NEXT_PID, numbers(switches), out);
                    column(compact::SWITCH_NEXT_PRIO, vec![120; switches.len()], out);
                    column(compact::SWITCH_NEXT_COMM, numbers(switches), out);
                    column(compact::WAKING_TIMESTAMP, deltas(wakings), out);
                    column(compact::WAKING_PID, numbers(wakings), out);
                    column(compact::WAKING_TARGET_CPU, vec![1; wakings.len()], out);
                    column(compact::WAKING_PRIO, vec![120; wakings.len()], out);
                    column(compact::WAKING_COMM, numbers(wakings), out);
                });
                let bundle = message(|out| {
                    put_uint(ftrace::CPU, (*cpu).into(), out);
                    put(ftrace::COMPACT_SCHED, &content, out);
                });
                message(|out| put(packet::FTRACE_EVENTS, &bundle, out))
            }
            Packet::Full(cpu, at, next) => {
                let switch = message(|out| {
                    put_bytes(5, b"next", out);
                    put_uint(6, *next, out);
                });
                let print = message(|out| put_bytes(ftrace::BUF, b"B|7|drawing\n", out));
                let event = |number, content: &Line| {
                    message(|out| {
                        put_uint(ftrace::TIMESTAMP, *at, out);
                        put_uint(ftrace::PID, *next, out);
                        put(number, content, out);
                    })
                };
                let bundle = message(|out| {
                    put_uint(ftrace::CPU, (*cpu).into(), out);
                    put(ftrace::EVENT, &event(ftrace::SCHED_SWITCH, &switch), out);
                    put(ftrace::EVENT, &event(ftrace::PRINT, &print), out);
                });
                message(|out| put(packet::FTRACE_EVENTS, &bundle, out))
            }
            Packet::Snapshot(value) => snapshot(*value),
            Packet::Clear => {
                known.clear();
                is_cleared = true;
                continue;
            }
        };
        add(&whole, *is_compressed);
    }
    let process = message(|out| put_int(process_tree::PID, 7, out));
    let tree = message(|out| put(process_tree::PROCESSES, &process, out));
    add(&message(|out| put(packet::PROCESS_TREE, &tree, out)), false);
    out.as_bytes().to_vec()
}

proptest! {
    #[test]
    fn what_counts_on_is_carried(packets in packets(), begin in 0..1300_i64, length in 0..400_i64, mask: u64) {
        let bytes = file(&packets);
        let recording = open("x.pftrace", &bytes);
        prop_assert!(recording.faults().is_empty());
        prop_assert_eq!(&cut(&recording, &bytes, |_| true), &bytes);
        window(&recording, &bytes, begin, begin + length);
        choice(&recording, &bytes, |row| mask & 1 << (row % 64) != 0);
    }
}
