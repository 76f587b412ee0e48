//! Summaries of an index are those of the rows.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use kymo_index::Row;
use kymo_model::Recording;

use super::*;
use crate::AnyRecording;
use crate::timeline::{Columns, Query, RowTracks};

/// All of each track: tracks of rows in batches, and whole slices, are those of a summary.
fn compare_rows(timeline: &Timeline, all: &Summary, columns: Columns) {
    let mut query = Query {
        columns,
        batch_rows: 7,
        ..Query::default()
    };
    let mut tracks = RowTracks::new(timeline, &mut query).unwrap();
    let mut rows: BTreeMap<(usize, u32), Vec<Row>> = BTreeMap::new();
    for batch in timeline.rows(&query).unwrap() {
        for row in 0..batch.len() {
            let head = batch.head(row);
            let Some(time) = head.time else { continue };
            for entry in tracks.of(&batch, row) {
                let row = Row::new(time.as_nanos(), head.class as usize).with_value(entry.value());
                let key = (head.id.recording as usize, entry.track());
                rows.entry(key).or_default().push(row);
            }
        }
    }
    let times = rows.values().flatten().map(|row| row.time);
    compare_nearest(timeline, times.collect());
    // Batches of several classes do not keep the order of rows of the same time.
    let facts = |bin: &Bin| {
        let values = bin.values.as_deref();
        let values =
            values.map(|values| (values.count, values.min.to_bits(), values.max.to_bits()));
        (bin.count, bin.first, bin.last, bin.classes, values)
    };
    let mut found: Vec<_> = rows
        .into_iter()
        .map(|((recording, track), mut rows)| {
            rows.sort_by_key(|row| row.time);
            let mut bin = Bin::default();
            rows.iter().for_each(|row| bin.push(row));
            let track = tracks.tracks(recording)[track as usize].clone();
            (recording, track, facts(&bin))
        })
        .collect();
    found.sort_by_key(|(recording, track, _)| (*recording, track.path.clone()));
    let expected: Vec<_> = all
        .tracks
        .iter()
        .map(|track| {
            let mut bin = Bin::default();
            track.bins.iter().for_each(|(_, other)| bin.add(other));
            (track.recording, track.track.clone(), facts(&bin))
        })
        .collect();
    assert_eq!(found, expected);

    let mut slices: BTreeMap<(usize, TrackPath), (u64, u64)> = BTreeMap::new();
    for recording in 0..timeline.recordings().len() {
        timeline.for_each_slice(recording, 1, |slice| {
            if let Some(end) = slice.end {
                let key = (recording, slice.track.1.path.clone());
                let (count, busy) = slices.entry(key).or_default();
                *count += 1;
                let duration = i128::from(end.as_nanos()) - i128::from(slice.begin.as_nanos());
                *busy += u64::try_from(duration).unwrap_or(0);
            }
            ControlFlow::Continue(())
        });
    }
    let of_tracks = all.tracks.iter().map(|track| {
        let slices = track.bins.iter().filter_map(|(_, bin)| bin.slices.as_ref());
        let sum = slices.fold((0, 0), |(count, busy), slice| {
            (count + slice.count, busy + slice.busy)
        });
        ((track.recording, track.track.path.clone()), sum)
    });
    let expected: BTreeMap<_, _> = of_tracks.filter(|(_, sum)| sum.0 > 0).collect();
    assert_eq!(slices, expected);
}

/// Rows near some times, with the index and without.
fn compare_nearest(timeline: &Timeline, mut times: Vec<i64>) {
    times.sort_unstable();
    timeline.summary(Window::ALL, None, 1);
    let index = timeline.index.get().unwrap();
    assert!(index.is_whole());
    let step = (times.len() / 8).max(1);
    let some = times.iter().step_by(step).chain(times.last());
    let near = some.flat_map(|&time| [time.saturating_sub(1), time, time.saturating_add(1)]);
    let without = Timeline {
        index: Arc::default(),
        ..timeline.clone()
    };
    for time in near.chain([i64::MIN, i64::MAX]) {
        let at = Timestamp::from_nanos(time);
        let nearest = |direction| index.nearest(at, direction, None).map(Timestamp::as_nanos);
        let after = times.partition_point(|&other| other < time);
        assert_eq!(nearest(Direction::Forwards), times.get(after).copied());
        let before = times[..times.partition_point(|&other| other <= time)].last();
        assert_eq!(nearest(Direction::Backwards), before.copied());
        assert_eq!(timeline.seek(at), without.seek(at));
    }
}

/// Asks the same of the index and of the rows, for the whole and for parts, coarse and fine.
fn compare(timeline: &Timeline, parts: &[(f64, f64, usize)]) {
    let all = timeline.summary_of_rows(Window::ALL, None, 1);
    assert!(all.is_exact());
    assert_same(timeline.summary(Window::ALL, None, 1), all.clone());
    compare_rows(timeline, &all, Columns::None);
    compare_rows(timeline, &all, Columns::All);
    let bins = || all.tracks.iter().flat_map(|track| &track.bins);
    let (Some(first), Some(last)) = (
        bins().map(|(_, bin)| bin.first).min(),
        bins().map(|(_, bin)| bin.last).max(),
    ) else {
        return;
    };
    for &(begin, end, width) in parts {
        let length = last.abs_diff(first) as f64;
        let at = |part: f64| first.saturating_add((length * part) as i64);
        let range = window(at(begin).min(at(end)), at(begin).max(at(end)));
        assert_same(
            timeline.summary(range, None, width),
            timeline.summary_of_rows(range, None, width),
        );
        let some: Vec<(usize, TrackPath)> = all
            .tracks
            .iter()
            .skip(1)
            .step_by(2)
            .map(|track| (track.recording, track.track.path.clone()))
            .collect();
        assert_same(
            timeline.summary(range, Some(&some), width),
            timeline.summary_of_rows(range, Some(&some), width),
        );
    }
}

const PARTS: [(f64, f64, usize); 6] = [
    (0.0, 1.0, 1),
    (0.0, 1.0, 300),
    (-0.5, 2.0, 37),
    (0.3, 0.6, 1000),
    (0.5, 0.5001, 100),
    (0.9, 1.0, 5000),
];

#[test]
fn recordings_of_all_formats_have_the_summaries_of_their_rows() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut looked_at = 0;
    for folder in [
        "../../examples/lttng-small",
        "../../examples/lttng-discarded",
        "../../examples/rfc-small",
        "../kymo-cpel/tests/data",
        "../kymo-rrd/tests/data/SYN-arm-fpa",
        "../kymo-perfetto/tests/traces",
    ] {
        let folder = root.join(folder);
        let cache = tempfile::tempdir().unwrap();
        let options = IndexOptions {
            cache: Some(Cache::new(cache.path().join("cache"))),
            ..IndexOptions::default()
        };
        for recording in shifted(&folder, 0).recordings() {
            looked_at += 1;
            println!("{}", recording.path().display());
        }
        let timeline = shifted(&folder, 0);
        timeline.index(options.clone()).wait();
        compare(&timeline, &PARTS);
        // Clocks may not be able to show a part of a microsecond.
        for nanos in [-1, 123_456_789, -9_876_543_210_123] {
            let timeline = shifted(&folder, nanos);
            let index = timeline.index(options.clone());
            for (state, recording) in index.wait().iter().zip(timeline.recordings()) {
                assert_eq!(state.read, 0, "{}: {nanos}", recording.path().display());
            }
            let all = timeline.summary_of_rows(Window::ALL, None, 1);
            let bins = || all.tracks.iter().flat_map(|track| &track.bins);
            let first = bins().map(|(_, bin)| bin.first).min().unwrap();
            let last = bins().map(|(_, bin)| bin.last).max().unwrap();
            for (range, width) in [(Window::ALL, 1), (window(first, last), 1000)] {
                assert_same(
                    index.summary(range, None, width),
                    timeline.summary_of_rows(range, None, width),
                );
            }
        }
    }
    assert!(looked_at > 10, "{looked_at}");
}

#[test]
fn several_recordings_are_distinguished() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let paths = ["lttng-small", "lttng-discarded"].map(|name| root.join(name));
    let opened = crate::open::open(&paths, &crate::open::Options::default());
    compare(&Timeline::new(opened.recordings), &PARTS);
}

/// A trace of Chrome: slices within slices, whole ones, counters.
fn chrome() -> impl Strategy<Value = String> {
    let event = (0..6_u8, 0..4_u32, 0..3000_u64, 0..500_u64, -50..50_i32);
    prop::collection::vec(event, 0..400).prop_map(|events| {
        let mut time = 0;
        let lines = events.into_iter().map(|(kind, thread, step, long, value)| {
            // Now and then several at once.
            time += step.saturating_sub(1000);
            let head = format!(
                "\"pid\":1,\"tid\":{thread},\"ts\":{}.{:03}",
                time / 1000,
                time % 1000
            );
            match kind {
                0 | 1 => format!("{{\"ph\":\"B\",\"name\":\"a{long}\",{head}}}"),
                2 => format!("{{\"ph\":\"E\",{head}}}"),
                3 => format!("{{\"ph\":\"X\",\"name\":\"x\",\"dur\":{long},{head}}}"),
                4 => format!(
                    "{{\"ph\":\"C\",\"name\":\"c\",\"args\":{{\"v\":{value}.25,\"w\":1}},{head}}}"
                ),
                _ => format!("{{\"ph\":\"i\",\"name\":\"i\",{head}}}"),
            }
        });
        format!("[{}]", lines.collect::<Vec<_>>().join(",\n"))
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn slices_and_counters(text in chrome(), begin in 0.0..1.0, end in 0.0..1.0, width in 1..400_usize) {
        let path = Path::new("x.json");
        let recording = kymo_perfetto::Recording::from_bytes(path, text.as_bytes());
        if let Ok(recording) = recording {
            let timeline = Timeline::new(vec![AnyRecording::Perfetto(recording)]);
            compare(&timeline, &[(0.0, 1.0, width), (begin, end, width), (0.0, 1.0, 2)]);
        }
    }

    #[test]
    fn traces_that_go_back_and_grow(
        streams in packets(),
        begin in 0.0..1.0,
        end in 0.0..1.0,
        width in 1..400_usize,
        keep in 1..8_usize,
        shift in prop_oneof![-1_000_000..1_000_000_i64, -(1_i64 << 60)..1 << 60],
    ) {
        let folder = tempfile::tempdir().unwrap();
        let trace = folder.path().join("trace");
        std::fs::create_dir(&trace).unwrap();
        let parts = [(0.0, 1.0, width), (begin, end, width), (begin, begin + 0.01, width)];
        let options = || IndexOptions {
            cache: Some(Cache::new(folder.path().join("cache"))),
            ..IndexOptions::default()
        };
        let first: Vec<Packets> = streams.iter().map(|stream| stream[..keep.min(stream.len())].to_vec()).collect();
        write(&trace, &first, 0);
        compare(&open(&trace), &parts);
        let built = open(&trace).index(options());
        let [state] = &built.wait()[..] else { panic!() };
        prop_assert!(state.kept.is_some(), "{:?}", state);
        let again = open(&trace).index(options()).wait();
        prop_assert_eq!(again[0].read, 0);
        // The one index serves every shift.
        let later = shifted(&trace, shift);
        let index = later.index(options());
        prop_assert_eq!(index.wait()[0].read, 0);
        for (begin, end, width) in [(0, i64::MAX, width), (1_000_000, 1_040_000, width)] {
            let range = window(shift + begin, end.saturating_add(shift));
            assert_same(index.summary(range, None, width), later.summary_of_rows(range, None, width));
        }
        prop_assert_eq!(
            std::fs::read_dir(folder.path().join("cache")).unwrap().count(),
            1
        );
        same_stats(&later, options());
        prop_assert_eq!(again[0].rows, state.rows);
        write(&trace, &streams, keep);
        let grown = open(&trace);
        same_stats(&grown, options());
        let index = grown.index(options());
        index.wait();
        for (begin, end, width) in [(0, i64::MAX, 1), (0, i64::MAX, width), (1_000_000, 1_040_000, width)] {
            let range = window(begin, end);
            assert_same(index.summary(range, None, width), grown.summary_of_rows(range, None, width));
        }
    }
}

/// Long ago something began, and much happened since: what is open is known on the way.
#[test]
fn slices_are_read_again_from_near() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("long.json");
    let mut text = String::from("[");
    for number in 0..100_000_u64 {
        let (phase, thread) = match number % 5 {
            0 | 3 => ("B", number % 7 % 2),
            1 | 4 => ("E", number % 3 % 2),
            _ => ("i", 1),
        };
        // Many at once, and then nothing for long.
        let time = number / 10 * 50;
        text += &format!(
            "{{\"ph\":\"{phase}\",\"name\":\"n\",\"pid\":1,\"tid\":{thread},\"ts\":{time}}},\n"
        );
    }
    text += "{\"ph\":\"i\",\"name\":\"end\",\"pid\":1,\"tid\":1,\"ts\":9999999}]";
    std::fs::write(&path, text).unwrap();
    let options = IndexOptions {
        cache: Some(Cache::new(folder.path().join("cache"))),
        ..IndexOptions::default()
    };
    for shift in [0, 77_777] {
        let timeline = shifted(&path, shift);
        let index = timeline.index(options.clone());
        let state = index.wait().remove(0);
        assert_eq!(state.read > 0, shift == 0);
        let known = index.shared.lock()[0]
            .index
            .as_ref()
            .unwrap()
            .meta()
            .clone();
        assert!(known.open.iter().any(|at| !at.slices.is_empty()));
        let at = known.open[0].time + own_begin(&timeline.recordings()[0]);
        for (begin, end, width) in [
            (at, at + 40_000, 400),
            (at - 60_000, at + 70_000, 3000),
            (at + 50_000_000, at + 50_100_000, 2000),
        ] {
            let range = window(begin, end);
            assert_same(
                index.summary(range, None, width),
                timeline.summary_of_rows(range, None, width),
            );
        }
    }
}
