//! Counts of chunks, and what need not be read because of them.

use std::ops::ControlFlow;

use kymo_model::Recording;

use super::*;
use crate::timeline::{Query, RowHead};

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
