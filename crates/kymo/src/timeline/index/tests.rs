//! Answers of indexes beside counted rows.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;

use kymo_index::{Bin, Cache, Row};
use kymo_model::{EntryKind, Recording, Shift};
use kymo_time::Timestamp;
use proptest::prelude::*;

use super::*;
use crate::AnyRecording;
use crate::report::{Options as ReportOptions, Stats};
use crate::timeline::contributions::own_begin;
use crate::timeline::{Columns, Query, RowHead, RowTracks};

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

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn what_counts_leave_out_has_no_wanted_rows(
        streams in packets(), pattern in "e[0-9*]{1,2}", is_back in any::<bool>(), end in 0..200_000_u64,
    ) {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), &streams, 0);
        let timeline = open(folder.path());
        let index = timeline.index(IndexOptions::default());
        index.wait();
        let mut query = events_named(&pattern);
        if is_back {
            query.direction = Direction::Backwards;
        }
        query.range = window(0, 1_000_000 + end as i64);
        let expected = rows_and_bytes(&timeline, &query).0;
        query.known = Some(Arc::new(index.known_counts()));
        prop_assert_eq!(rows_and_bytes(&timeline, &query).0, expected);
    }

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

#[test]
fn recordings_of_all_formats_have_counts() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    let folder = tempfile::tempdir().unwrap();
    let options = || IndexOptions {
        cache: Some(Cache::new(folder.path().join("cache"))),
        ..IndexOptions::default()
    };
    for name in [
        "cpel/le_basic",
        "../../crates/kymo-rrd/tests/data/armhf/tiny.rrd",
        "collectd_capture/pcapng",
        "chrome/all-phases",
        "perfetto/counters",
    ] {
        let timeline = open(&root.join(name));
        timeline.index(options()).wait();
        let known = KnownCounts::new(timeline.recordings(), &options());
        for stream in 0..timeline.recordings()[0].streams().len() {
            for chunk in timeline.recordings()[0].chunks(stream) {
                assert!(known.of_chunk(0, stream, chunk.number).is_some(), "{name}");
            }
        }
        same_stats(&timeline, options());
        same_stats(&shifted(&root.join(name), 7_000_000_001), options());
    }
}

#[test]
fn counts_are_taken_from_the_index() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let folder = tempfile::tempdir().unwrap();
    let options = || IndexOptions {
        cache: Some(Cache::new(folder.path().join("cache"))),
        ..IndexOptions::default()
    };
    for name in ["lttng-small", "lttng-discarded", "rfc-small"] {
        let timeline = open(&root.join(name));
        timeline.index(options()).wait();
        let known = KnownCounts::new(timeline.recordings(), &options());
        for (number, recording) in timeline.recordings().iter().enumerate() {
            let mut events = 0;
            for stream in 0..recording.streams().len() {
                for chunk in recording.chunks(stream) {
                    let counts = known.of_chunk(number, stream, chunk.number).unwrap();
                    if counts.first == chunk.number as u64 {
                        events += counts.events();
                    }
                }
            }
            let all = timeline.summary_of_rows(Window::ALL, None, 1);
            let of_recording = all.tracks.iter().filter(|track| track.recording == number);
            let bins = of_recording.flat_map(|track| &track.bins);
            assert_eq!(events, bins.map(|(_, bin)| bin.count).sum::<u64>());
        }
        same_stats(&timeline, options());
        same_stats(&shifted(&root.join(name), -5_000_000_001), options());
    }
}

/// The rows of a query, and how many bytes of chunks were read for them.
fn rows_and_bytes(timeline: &Timeline, query: &Query) -> (Vec<RowHead>, u64) {
    let bytes = Arc::new(AtomicU64::new(0));
    let mut query = query.clone();
    // Of chunks that begin out of order, not all are counted.
    query.threads = 1;
    query.read = Some(Arc::clone(&bytes));
    let mut rows = Vec::new();
    timeline
        .for_each_batch(&query, |batch| {
            rows.extend((0..batch.len()).map(|row| batch.head(row)));
            ControlFlow::Continue(())
        })
        .unwrap();
    (rows, bytes.load(Ordering::Relaxed))
}

fn events_named(pattern: &str) -> Query {
    let mut query = Query::default();
    query.filter.condition = Some(format!("event.name ~ \"{pattern}\""));
    query
}

#[test]
fn chunks_without_wanted_classes_are_not_read() {
    let folder = tempfile::tempdir().unwrap();
    // So many that each packet is counted by itself.
    const EVENTS: u64 = 17_000;
    let events = |from: u64, class: u8| -> Vec<(u64, u8)> {
        let times = from * EVENTS..(from + 1) * EVENTS;
        times
            .map(|time| (1000 * time, if time % EVENTS == 5 { class } else { 1 }))
            .collect()
    };
    let streams = [
        vec![events(0, 1), events(1, 2), events(2, 1)],
        vec![events(0, 1), events(1, 1), events(2, 3)],
    ];
    write(folder.path(), &streams, 0);
    let timeline = open(folder.path());
    let index = timeline.index(IndexOptions::default());
    index.wait();
    let known = Arc::new(index.known_counts());
    let chunk = packet(&events(0, 1)).len() as u64;
    for (pattern, packets) in [
        ("e2", 1),
        ("e3", 1),
        ("e[23]", 2),
        ("e9", 0),
        ("e1", 6),
        ("*", 6),
    ] {
        let mut query = events_named(pattern);
        let (expected, all) = rows_and_bytes(&timeline, &query);
        assert_eq!(all, 6 * chunk, "{pattern}");
        query.known = Some(Arc::clone(&known));
        let (found, read) = rows_and_bytes(&timeline, &query);
        assert_eq!(read, packets * chunk, "{pattern}");
        assert_eq!(found, expected, "{pattern}");
    }
}

/// A packet is cut off in the middle of an event.
#[test]
fn faults_are_kept_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace");
    std::fs::create_dir(&trace).unwrap();
    write(
        &trace,
        &[vec![vec![(1000, 1), (2000, 2)], vec![(3000, 3)]]],
        0,
    );
    let stream = trace.join("stream0");
    let mut bytes = std::fs::read(&stream).unwrap();
    // An event class that does not exist.
    bytes[16 + 9] = 200;
    std::fs::write(&stream, bytes).unwrap();
    let options = || IndexOptions {
        cache: Some(Cache::new(folder.path().join("cache"))),
        ..IndexOptions::default()
    };
    let state = |options| open(&trace).index(options).wait().remove(0);
    let built = state(options());
    assert_eq!(
        (built.rows, built.faults.len(), built.more_faults),
        (2, 1, 0)
    );
    let again = state(options());
    assert_eq!(
        (again.read, again.faults.len(), again.more_faults),
        (0, 0, 1)
    );
    let timeline = open(&trace);
    let known = KnownCounts::new(timeline.recordings(), &options());
    assert!(known.of_chunk(0, 0, 0).is_none() && known.of_chunk(0, 0, 1).is_some());
    same_stats(&timeline, options());
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

#[test]
fn only_what_is_new_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace");
    std::fs::create_dir(&trace).unwrap();
    let events = |from: u64| {
        (from..from + 100)
            .map(|time| (1000 * time, 1))
            .collect::<Vec<_>>()
    };
    write(&trace, &[vec![events(0), events(100)]], 0);
    let options = || IndexOptions {
        cache: Some(Cache::new(folder.path().join("cache"))),
        ..IndexOptions::default()
    };
    let state = |options: IndexOptions| open(&trace).index(options).wait().remove(0);
    assert_eq!((state(options()).read, state(options()).read), (200, 0));
    write(&trace, &[vec![events(0), events(100), events(200)]], 2);
    let timeline = open(&trace);
    let known = KnownCounts::new(timeline.recordings(), &options());
    assert!(known.of_chunk(0, 0, 1).is_some() && known.of_chunk(0, 0, 2).is_none());
    let grown = state(options());
    assert_eq!((grown.rows, grown.read), (300, 100));
    // Opened in another way, it is another index.
    let other = IndexOptions {
        opened: b"other".to_vec(),
        ..options()
    };
    assert_eq!(state(other).read, 300);
    // A damaged one is rebuilt.
    let kept = grown.kept.unwrap();
    let mut bytes = std::fs::read(&kept).unwrap();
    let end = bytes.len() - 40;
    bytes[end] ^= 1;
    std::fs::write(&kept, bytes).unwrap();
    assert_eq!(state(options()).read, 300);
    // Where nothing can be kept, all else works.
    let nowhere = IndexOptions {
        cache: Some(Cache::new(trace.join("metadata/cache"))),
        ..IndexOptions::default()
    };
    let state = state(nowhere);
    assert!(state.kept.is_none() && state.problem.is_some());
    assert_eq!(state.rows, 300);
}

#[test]
fn building_waits_until_it_may_begin() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/lttng-small");
    let timeline = open(&root);
    let index = timeline.index(IndexOptions {
        patience: Duration::from_secs(3600),
        ..IndexOptions::default()
    });
    assert!(!index.wait_for(Duration::ZERO));
    assert!(index.overview(0).is_estimate);
    assert_eq!(index.bytes_read(), 0);
    index.begin();
    while !index.wait_for(Duration::from_secs(1)) {}
    assert!(!index.overview(0).is_estimate);
    // One that never began ends when nobody needs it.
    drop(timeline.index(IndexOptions {
        patience: Duration::from_secs(3600),
        ..IndexOptions::default()
    }));
}

#[test]
fn estimates_are_marked_and_end() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/lttng-small");
    let timeline = open(&root);
    let shared = Shared {
        begins: None,
        is_begun: AtomicBool::new(true),
        timeline: timeline.clone(),
        options: IndexOptions::default(),
        is_unindexed: vec![false; 1],
        done: Mutex::default(),
        changed: Condvar::new(),
        stop: AtomicBool::new(false),
        rows: AtomicU64::new(0),
        bytes: AtomicU64::new(0),
        seen: Mutex::default(),
    };
    let summary = timeline.summarize(
        Window::ALL,
        &timeline.recordings_of(None),
        1,
        |grid, summary| {
            shared.estimate(grid, None, summary);
        },
    );
    assert!(!summary.is_exact());
    assert_eq!(summary.tracks.len(), 2);
    let exact = timeline.summary(Window::ALL, None, 1);
    assert!(exact.is_exact());
    for (guess, exact) in summary.tracks.iter().zip(&exact.tracks) {
        assert_eq!(guess.track, exact.track);
        assert_eq!(guess.track.kind, EntryKind::Event);
        let (guess, exact) = (guess.bins[0].1.count, exact.bins[0].1.count);
        assert!(exact / 3 < guess && guess < exact * 3, "{guess} {exact}");
    }
}

#[test]
fn estimates_are_exact_where_chunks_were_read() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/lttng-small");
    let timeline = open(&root);
    let recording = &timeline.recordings[0];
    let seen = Seen::new(0, recording);
    // A chunk in two parts; then the next one begins.
    seen.add(0, 0, 1000, Some(61_440));
    seen.add(0, 0, 234, None);
    seen.add(0, 1, 0, Some(0));
    let shared = Shared {
        begins: None,
        is_begun: AtomicBool::new(true),
        timeline: timeline.clone(),
        options: IndexOptions::default(),
        is_unindexed: vec![false; 1],
        done: Mutex::default(),
        changed: Condvar::new(),
        stop: AtomicBool::new(false),
        rows: AtomicU64::new(1),
        bytes: AtomicU64::new(61_440),
        seen: Mutex::new(Some(Arc::new(seen))),
    };
    let all = timeline.recordings_of(None);
    let estimate = |grid: &_, summary: &mut _| shared.estimate(grid, None, summary);
    let summary = timeline.summarize(Window::ALL, &all, 1, estimate);
    let counts = summary.tracks.iter().map(|track| track.bins[0].1.count);
    // Of the other stream nothing is known but the size of all rows so far.
    assert_eq!(counts.collect::<Vec<_>>(), [1234, 1]);
}

#[test]
fn small_databases_need_no_index() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let database = root.join("../kymo-rrd/tests/data/dump/holt-winters.amd64.rrd");
    let folder = tempfile::tempdir().unwrap();
    for name in ["a.rrd", "b.rrd"] {
        std::fs::copy(&database, folder.path().join(name)).unwrap();
    }
    let timeline = open(folder.path());
    let options = IndexOptions {
        unindexed_bytes: 1 << 20,
        ..IndexOptions::default()
    };
    let index = timeline.index(options);
    assert!(index.wait().iter().all(|state| state.rows == 0));
    let all = timeline.summary_of_rows(Window::ALL, None, 1);
    for recording in 0..2 {
        let overview = index.overview(recording);
        assert!(!overview.is_estimate);
        let own = all
            .tracks
            .iter()
            .filter(|track| track.recording == recording);
        let own: Vec<_> = own.collect();
        assert_eq!(overview.tracks.len(), own.len());
        for (track, bin) in &overview.tracks {
            let same = own
                .iter()
                .find(|candidate| candidate.track == *track)
                .unwrap();
            let expected = &same.bins[0].1;
            assert_eq!(
                (bin.count, bin.first, bin.last, bin.classes),
                (
                    expected.count,
                    expected.first,
                    expected.last,
                    expected.classes
                )
            );
        }
    }
    let paths: Vec<_> = all
        .tracks
        .iter()
        .map(|track| (track.recording, track.track.path.clone()))
        .collect();
    let end = all
        .tracks
        .iter()
        .map(|track| track.bins[0].1.last)
        .max()
        .unwrap();
    for range in [Window::ALL, window(end - 1_000_000_000_000, end)] {
        for asked in [&paths[..], &paths[..1], &paths[paths.len() - 2..]] {
            let found = index.summary(range, Some(asked), 100);
            let mut expected = timeline.summary_of_rows(range, None, 100);
            expected
                .tracks
                .retain(|track| asked.contains(&(track.recording, track.track.path.clone())));
            assert_same(found, expected);
        }
    }
}

#[test]
fn streams_without_rows_are_tracks() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/lttng-small");
    let timeline = open(&root);
    let recording = &timeline.recordings[0];
    let all = empty_streams(recording, &[]);
    let names: Vec<&str> = all.iter().map(|(track, _)| &*track.name).collect();
    assert!(
        names[0].ends_with("r_0") && names[1].ends_with("r_1"),
        "{names:?}"
    );
    assert!(all.iter().all(|(_, bin)| *bin == Bin::EMPTY));
    assert_eq!(empty_streams(recording, &all[..1]), all[1..]);
    assert!(empty_streams(recording, &all).is_empty());
    // Where events say their tracks themselves, those are shown.
    let part = kymo_model::TrackPart::Thread(7);
    let own = kymo_model::Track::new(TrackPath::new([part]), "a", EntryKind::Event);
    assert!(empty_streams(recording, &[(own, Bin::EMPTY)]).is_empty());
}
