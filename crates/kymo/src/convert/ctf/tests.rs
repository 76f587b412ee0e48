//! Events of a recording, and what of them is left out, keep their times.

use std::fmt::Write as _;
use std::path::Path;

use kymo_ctf::class::Dialect;
use kymo_model::{Cursor, Event, FieldId, Recording, Visitor};
use proptest::prelude::*;
use proptest::sample::select;

use super::{CtfOptions, Written, write};
use crate::filter::{Filter, Glob, Query};
use crate::pipeline::Window;
use crate::{AnyRecording, open};

const TYPES: &str = "/* CTF 1.8 */
    typealias integer { size = 8; align = 8; } := u8;
    typealias integer { size = 16; align = 8; } := u16;
    typealias integer { size = 32; align = 8; } := u32;
    typealias integer { size = 64; align = 8; } := u64;
    clock { name = c; freq = 1000000000; };
    typealias integer { size = 8; align = 8; map = clock.c.value; } := t8;
    typealias integer { size = 16; align = 8; map = clock.c.value; } := t16;
    typealias integer { size = 32; align = 8; map = clock.c.value; } := t32;
    typealias integer { size = 64; align = 8; map = clock.c.value; } := t64;
";

/// Which members packets and events have, and of how many bits; 0 is none.
#[derive(Clone, Copy, Debug)]
struct Layout {
    begin: u32,
    end: u32,
    sequence: bool,
    discarded: bool,
    sizes: bool,
    content: bool,
    event: u32,
}

impl Layout {
    fn metadata(&self) -> String {
        let mut context = String::new();
        let mut member = |is_there: bool, text: String| {
            if is_there {
                let _ = write!(context, "{text} ");
            }
        };
        member(self.sizes, "u32 packet_size;".to_owned());
        member(self.sizes && self.content, "u32 content_size;".to_owned());
        member(self.begin > 0, format!("t{} timestamp_begin;", self.begin));
        member(self.end > 0, format!("t{} timestamp_end;", self.end));
        member(self.discarded, "u8 events_discarded;".to_owned());
        member(self.sequence, "u8 packet_seq_num;".to_owned());
        format!(
            "{TYPES} trace {{ major = 1; minor = 8; byte_order = le; packet.header := struct {{ u32 magic; }}; }};
             stream {{ packet.context := struct {{ {context} }};
                event.header := struct {{ u8 id; t{} timestamp; }}; }};
             event {{ id = 0; name = often; fields := struct {{ u32 n; }}; }};
             event {{ id = 1; name = rare; fields := struct {{ u8 n; }}; }};",
            self.event
        )
    }

    /// A stream of packets, each of events: what class they have, and what time after the one before.
    fn stream(&self, packets: &[Vec<(bool, u64)>]) -> Vec<Vec<u8>> {
        let mut stream = Vec::new();
        let (mut now, mut number) = (0u64, 0u32);
        // Without sizes there is one packet.
        let packets = match self.sizes {
            true => packets.to_vec(),
            false => vec![packets.concat()],
        };
        for (sequence, packet) in packets.iter().enumerate() {
            let begin = now;
            let mut events = Vec::new();
            for &(is_rare, step) in packet {
                // A reader of few bits takes a longer step for a shorter one.
                now += step % (1 << self.event.min(40)).min(self.most_step());
                events.push(u8::from(is_rare));
                events.extend(&now.to_le_bytes()[..self.event as usize / 8]);
                match is_rare {
                    false => events.extend(number.to_le_bytes()),
                    true => events.push(number as u8),
                }
                number += 1;
            }
            let mut head = 0xC1FC_1FC1u32.to_le_bytes().to_vec();
            let context = [
                (4 * usize::from(self.sizes), 0),
                (4 * usize::from(self.sizes && self.content), 0),
                (self.begin as usize / 8, begin),
                (self.end as usize / 8, now),
                (usize::from(self.discarded), 0),
                (usize::from(self.sequence), sequence as u64),
            ];
            for (length, value) in context {
                head.extend(&value.to_le_bytes()[..length]);
            }
            let bits = (8 * (head.len() + events.len())) as u32;
            for at in (0..2).filter(|&at| self.sizes && (at == 0 || self.content)) {
                head[4 + 4 * at..][..4].copy_from_slice(&bits.to_le_bytes());
            }
            head.extend(events);
            stream.push(head);
        }
        stream
    }

    /// Steps are shorter than this: all of a packet together are less than its own times can express.
    fn most_step(&self) -> u64 {
        let bits = [self.begin, self.end].into_iter().filter(|&bits| bits > 0);
        let bits = bits.min().unwrap_or(64).min(40);
        (1 << bits) / 256
    }
}

fn open(path: &Path) -> Vec<AnyRecording> {
    open_with(path, &open::Options::default())
}

fn open_with(path: &Path, options: &open::Options) -> Vec<AnyRecording> {
    let opened = open::open(&[path.into()], options);
    assert!(opened.errors.is_empty(), "{:?}", opened.errors);
    opened.recordings
}

/// Repairs a trace of some packets; what was written, and the events that the result has.
fn repaired(layout: &Layout, packets: &[Vec<u8>]) -> (Written, Vec<(String, i64, u64)>) {
    let home = tempfile::tempdir().unwrap();
    let (source, made) = (home.path().join("source"), home.path().join("made"));
    std::fs::create_dir(&source).unwrap();
    std::fs::write(source.join("metadata"), layout.metadata()).unwrap();
    std::fs::write(source.join("stream"), packets.concat()).unwrap();
    let sorting = open::Options {
        trace: open::TraceOptions {
            sorts_packets: true,
            ..open::TraceOptions::default()
        },
        ..open::Options::default()
    };
    let recordings = open_with(&source, &sorting);
    let filter = Filter::new(&Query::default(), &[], &recordings).unwrap();
    let (written, found) = converted(
        &recordings,
        &filter,
        &options(Dialect::Ctf18, None, true),
        &made,
    );
    let found = events(&found);
    (written, found)
}

/// Packets that each contain all of their time.
const WHOLE: Layout = Layout {
    begin: 64,
    end: 64,
    sequence: true,
    discarded: true,
    sizes: true,
    content: true,
    event: 16,
};

/// Where such a packet says when it begins.
const BEGIN: usize = 12;

/// The last number of an event.
#[derive(Default)]
struct Last(u64);

impl Visitor for Last {
    fn uint(&mut self, _: FieldId, value: u64) {
        self.0 = value;
    }
}

/// Name, time in nanoseconds, and number of each event.
fn events(recordings: &[AnyRecording]) -> Vec<(String, i64, u64)> {
    let mut events = Vec::new();
    for recording in recordings {
        assert_eq!(recording.faults(), []);
        for stream in 0..recording.streams().len() {
            for chunk in recording.chunks(stream) {
                let mut cursor = recording.cursor(&chunk);
                while let Some(event) = cursor.next_event().unwrap() {
                    let mut last = Last::default();
                    event.visit(&mut last).unwrap();
                    let name = event.class().name.as_deref().unwrap_or_default().to_owned();
                    let time = event.timestamp().unwrap().as_nanos();
                    events.push((name, time, last.0));
                }
            }
        }
    }
    events
}

fn options(dialect: Dialect, packet_bytes: Option<u64>, repairs: bool) -> CtfOptions {
    CtfOptions {
        dialect,
        order: None,
        packed: false,
        packet_bytes,
        protection: None,
        kept_protection: None,
        metadata_protection: None,
        index: false,
        repairs,
        threads: 1,
        strict: false,
    }
}

/// Writes what a filter leaves of some recordings to a directory, and opens it.
fn converted(
    recordings: &[AnyRecording],
    filter: &Filter,
    options: &CtfOptions,
    to: &Path,
) -> (Written, Vec<AnyRecording>) {
    let written = write(recordings, &[0], filter, options, to, &|_| ()).unwrap();
    (written, open(to))
}

prop_compose! {
    fn layouts()(
        begin in select(vec![0, 16, 32, 64, 64]),
        end in select(vec![0, 16, 32, 64, 64]),
        event in select(vec![8, 16, 32, 64]),
        (sequence, discarded, sizes, content) in any::<(bool, bool, bool, bool)>(),
    ) -> Layout {
        Layout { begin, end, sequence, discarded, sizes, content, event }
    }
}

fn packets() -> impl Strategy<Value = Vec<Vec<(bool, u64)>>> {
    let event = (prop::bool::weighted(0.1), any::<u64>());
    prop::collection::vec(prop::collection::vec(event, 0..16), 1..12)
}

/// Packets whose events take some time, with gaps between them.
fn long_packets() -> impl Strategy<Value = Vec<Vec<(bool, u64)>>> {
    let event = (any::<bool>(), 1..60_000u64);
    prop::collection::vec(prop::collection::vec(event, 1..8), 2..12)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn packets_in_any_order_are_repaired(
        (packets, order) in long_packets().prop_flat_map(|packets| {
            let order: Vec<usize> = (0..packets.len()).collect();
            (Just(packets), Just(order).prop_shuffle())
        }),
        copied in prop::option::of(any::<prop::sample::Index>()),
        sequence in any::<bool>(),
    ) {
        let layout = Layout { sequence, ..WHOLE };
        let right = layout.stream(&packets);
        let mut wrong: Vec<_> = order.iter().map(|&at| right[at].clone()).collect();
        if let Some(copied) = copied {
            let at = copied.index(wrong.len());
            wrong.push(wrong[at].clone());
        }
        let (written, found) = repaired(&layout, &wrong);
        let (_, expected) = repaired(&layout, &right);
        prop_assert_eq!(&written.refused, &Vec::<String>::new());
        prop_assert_eq!(written.mended, 0);
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn a_damaged_beginning_among_others_out_of_order_gives_no_event_another_time(
        (packets, order) in long_packets().prop_flat_map(|packets| {
            let order: Vec<usize> = (0..packets.len()).collect();
            (Just(packets), Just(order).prop_shuffle())
        }),
        damaged in any::<prop::sample::Index>(),
        at in BEGIN..BEGIN + 8,
        byte in 1..=255u8,
    ) {
        // A turn of fewer bits would be as long as some packets are: then there are several ways to
        // put events between the times of a packet.
        let layout = Layout { event: 32, ..WHOLE };
        let right = layout.stream(&packets);
        let mut wrong: Vec<_> = order.iter().map(|&at| right[at].clone()).collect();
        let damaged = damaged.index(wrong.len());
        wrong[damaged][at] ^= byte;
        let (_, found) = repaired(&layout, &wrong);
        let (_, expected) = repaired(&layout, &right);
        for event in &found {
            prop_assert!(expected.contains(event), "{:?} {:?}", event, expected);
        }
        prop_assert!(found.is_sorted_by_key(|event| event.1));
    }

    #[test]
    fn what_is_left_out_changes_no_time(
        layout in layouts(),
        packets in packets(),
        dialect in select(vec![Dialect::Ctf18, Dialect::Ctf2, Dialect::Rfc11]),
        packet_bytes in select(vec![None, Some(4096)]),
        name in select(vec!["rare", "often", "*"]),
        window in (0.0..1.0f64, 0.0..1.0f64),
        has_window in any::<bool>(),
    ) {
        let home = tempfile::tempdir().unwrap();
        let source = home.path().join("source");
        std::fs::create_dir(&source).unwrap();
        std::fs::write(source.join("metadata"), layout.metadata()).unwrap();
        std::fs::write(source.join("stream"), layout.stream(&packets).concat()).unwrap();
        let recordings = open(&source);
        let all = events(&recordings);
        let last = all.last().map_or(0, |event| event.1);
        let at = |part: f64| kymo_time::Timestamp::from_nanos((last as f64 * part) as i64);
        let window = match has_window {
            true => Window { begin: at(window.0.min(window.1)), end: at(window.0.max(window.1)) },
            false => Window::ALL,
        };
        let query = Query { events: vec![Glob::new(name)], condition: None };
        let filter = Filter::new(&query, &[window], &recordings).unwrap();
        let wanted: Vec<_> = all
            .into_iter()
            .filter(|(event, time, _)| {
                let is_within = (window.begin.as_nanos()..=window.end.as_nanos()).contains(time);
                (name == "*" || name == event) && (!has_window || is_within)
            })
            .collect();
        let options = options(dialect, packet_bytes, false);
        let (written, found) = converted(&recordings, &filter, &options, &home.path().join("made"));
        prop_assert_eq!(&written.refused, &Vec::<String>::new());
        prop_assert_eq!(written.events, wanted.len() as u64);
        prop_assert_eq!(events(&found), wanted);
    }
}
