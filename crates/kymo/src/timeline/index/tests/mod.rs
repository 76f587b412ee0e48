//! Answers of indexes beside counted rows.

mod building;
mod counts;
mod summaries;

use std::path::Path;

use kymo_index::{Bin, Cache};
use kymo_model::Shift;
use kymo_time::Timestamp;
use proptest::prelude::*;

use super::*;
use crate::report::{Options as ReportOptions, Stats};
use crate::timeline::contributions::own_begin;

fn open(path: &Path) -> Timeline {
    let opened = crate::open::open(&[path.to_path_buf()], &crate::open::Options::default());
    assert!(opened.errors.is_empty(), "{:?}", opened.errors);
    Timeline::new(opened.recordings)
}

/// The same recordings, `nanos` nanoseconds later.
fn shifted(path: &Path, nanos: i64) -> Timeline {
    let opened = crate::open::open(&[path.to_path_buf()], &crate::open::Options::default());
    let mut recordings = opened.recordings;
    let shift = Shift {
        nanos: nanos.into(),
        from_unix_epoch: false,
    };
    for recording in &mut recordings {
        recording.shift(shift).unwrap();
    }
    Timeline::new(recordings)
}

fn window(begin: i64, end: i64) -> Window {
    Window {
        begin: Timestamp::from_nanos(begin),
        end: Timestamp::from_nanos(end),
    }
}

/// Sums follow the tree; all else is the same.
fn assert_same(mut found: Summary, mut expected: Summary) {
    let bins = |summary: &Summary| -> Vec<Bin> {
        let tracks = summary.tracks.iter();
        tracks
            .flat_map(|track| track.bins.iter().map(|(_, bin)| bin.clone()))
            .collect()
    };
    for (found, expected) in bins(&found).iter().zip(bins(&expected)) {
        if let (Some(found), Some(expected)) = (&found.values, &expected.values) {
            let size = expected.count as f64 * expected.max.abs().max(expected.min.abs());
            let is_near = (found.sum - expected.sum).abs() <= 1e-12 * size;
            let is_same = found.sum.to_bits() == expected.sum.to_bits();
            assert!(
                is_near || is_same || !size.is_finite(),
                "{found:?} {expected:?}"
            );
        }
    }
    for track in found.tracks.iter_mut().chain(&mut expected.tracks) {
        for values in track
            .bins
            .iter_mut()
            .filter_map(|(_, bin)| bin.values.as_mut())
        {
            values.sum = 0.0;
        }
    }
    let names = |summary: &Summary| -> Vec<String> {
        let tracks = summary.tracks.iter();
        tracks
            .map(|track| format!("{} {}", track.recording, track.track.path))
            .collect()
    };
    assert_eq!(names(&found), names(&expected));
    for (found, expected) in found.tracks.iter().zip(&expected.tracks) {
        assert_eq!(found, expected);
    }
    assert_eq!(found, expected);
}

/// Events of a stream of a trace: time and class, in packets.
type Packets = Vec<Vec<(u64, u8)>>;

fn metadata() -> String {
    let mut text = String::from(
        "/* CTF 1.8 */
        typealias integer { size = 64; align = 8; signed = false; } := u64;
        trace { major = 1; minor = 8; byte_order = le; };
        clock { name = c; freq = 1000000000; };
        typealias integer { size = 64; align = 8; signed = false; map = clock.c.value; } := tick;
        stream {
            packet.context := struct { u64 content_size; u64 packet_size; };
            event.header := struct { integer { size = 8; align = 8; signed = false; } id; tick timestamp; };
        };\n",
    );
    for class in 0..100 {
        text += &format!("event {{ name = e{class}; id = {class}; fields := struct {{ }}; }};\n");
    }
    text
}

fn packet(events: &[(u64, u8)]) -> Vec<u8> {
    let bits = (16 + 9 * events.len() as u64) * 8;
    let mut bytes = [bits.to_le_bytes(), bits.to_le_bytes()].concat();
    for (time, class) in events {
        bytes.push(*class);
        bytes.extend(time.to_le_bytes());
    }
    bytes
}

/// Streams of packets, in which time goes back here and there.
fn packets() -> impl Strategy<Value = Vec<Packets>> {
    let step =
        prop_oneof![6 => 0..50_i64, 3 => 0..100_000_i64, 1 => -300..0_i64, 1 => 0..1_i64 << 40];
    let packets = prop::collection::vec(
        (
            prop::collection::vec((step, 0..100_u8), 1..150),
            any::<bool>(),
        ),
        1..8,
    );
    let back = any::<bool>();
    prop::collection::vec((packets, back), 1..4).prop_map(|streams| {
        let streams = streams.into_iter().map(|(packets, goes_back)| {
            let mut time = 1_000_000_i64;
            let packets = packets.into_iter().map(|(events, _)| {
                let events = events.into_iter().map(|(step, class)| {
                    time += if goes_back { step } else { step.max(0) };
                    (time as u64, class)
                });
                events.collect()
            });
            packets.collect()
        });
        streams.collect()
    })
}

fn write(folder: &Path, streams: &[Packets], skip: usize) {
    use std::io::Write;
    if skip == 0 {
        std::fs::write(folder.join("metadata"), metadata()).unwrap();
    }
    for (number, packets) in streams.iter().enumerate() {
        let path = folder.join(format!("stream{number}"));
        let mut file = std::fs::File::options()
            .create(true)
            .append(true)
            .open(path)
            .unwrap();
        for events in packets.iter().skip(skip) {
            file.write_all(&packet(events)).unwrap();
        }
    }
}

/// Counts with and without the index.
fn same_stats(timeline: &Timeline, options: IndexOptions) {
    use crate::filter::{Filter, Query};
    let recordings = timeline.recordings();
    let known = KnownCounts::new(recordings, &options);
    let all = Stats::new(
        recordings,
        &Filter::new(&Query::default(), &[Window::ALL], recordings).unwrap(),
        &ReportOptions::default(),
    );
    let middle = all.total.first.zip(all.total.last).map(|(first, last)| {
        let middle = first.as_nanos() / 2 + last.as_nanos() / 2;
        window(middle, last.as_nanos())
    });
    for window in [Some(Window::ALL), middle].into_iter().flatten() {
        let filter = Filter::new(&Query::default(), &[window], recordings).unwrap();
        let options = ReportOptions::default();
        assert_eq!(
            Stats::with_counts(recordings, &filter, &options, &known),
            Stats::new(recordings, &filter, &options)
        );
    }
}
