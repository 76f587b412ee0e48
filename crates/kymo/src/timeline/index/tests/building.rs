//! When an index is built, what of it is read again, and what is known before.

use kymo_model::EntryKind;

use super::*;

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
fn packets_are_known_when_a_trace_is_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace");
    std::fs::create_dir(&trace).unwrap();
    let events: Vec<_> = (0..100).map(|time| (1000 * time, 1)).collect();
    write(&trace, &[vec![events.clone(), Vec::new()], vec![events]], 0);
    let cache = Cache::new(folder.path().join("cache"));
    let open = || {
        let options = crate::open::Options {
            cache: Some(cache.clone()),
            ..crate::open::Options::default()
        };
        crate::open::open(std::slice::from_ref(&trace), &options).recordings
    };
    let index = |recordings: Vec<AnyRecording>| {
        let options = IndexOptions {
            cache: Some(cache.clone()),
            ..IndexOptions::default()
        };
        // It is dropped when its worker has ended.
        Timeline::new(recordings).index(options).wait().remove(0)
    };
    // Of what was scanned there is a table.
    let is_scanned =
        |recordings: &[AnyRecording]| recordings[0].as_ctf().unwrap().packet_table().is_some();
    let chunks = |recordings: &[AnyRecording]| {
        let streams = 0..recordings[0].streams().len();
        let chunks = streams.map(|stream| recordings[0].chunks(stream).collect());
        chunks.collect::<Vec<Vec<_>>>()
    };
    let scanned = open();
    let expected = chunks(&scanned);
    assert!(is_scanned(&scanned) && is_scanned(&open()));
    assert_eq!(index(scanned).rows, 200);
    let known = open();
    assert!(!is_scanned(&known));
    assert_eq!(chunks(&known), expected);
    let state = index(known);
    assert_eq!((state.rows, state.read), (200, 0));
    // What is damaged in the cache is as good as absent, and made again.
    let entries = std::fs::read_dir(cache.directory()).unwrap().flatten();
    let mut paths = entries.map(|entry| entry.path());
    let note = paths.find(|path| path.extension().is_some_and(|ending| ending == "kymonote"));
    let note = note.unwrap();
    let good = std::fs::read(&note).unwrap();
    std::fs::write(&note, &good[..good.len() - 5]).unwrap();
    let scanned = open();
    assert!(is_scanned(&scanned));
    index(scanned);
    assert_eq!(std::fs::read(&note).unwrap(), good);
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
