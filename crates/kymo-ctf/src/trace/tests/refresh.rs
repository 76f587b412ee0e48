//! Traces that grow while they are open.

use std::fs;
use std::path::Path;

use kymo_model::{Change, EventHeaders, Refreshed, RowPlace};

use super::*;

const METADATA: &str = "metadata";

fn write(directory: &Path, name: &str, bytes: &[u8]) {
    fs::create_dir_all(directory).unwrap();
    fs::write(directory.join(name), bytes).unwrap();
}

fn begin(directory: &Path, metadata: &str, files: &[(&str, Vec<u8>)]) -> Trace {
    write(directory, METADATA, format!("{TYPES}{metadata}").as_bytes());
    for (name, bytes) in files {
        write(directory, name, bytes);
    }
    Trace::open(&[directory.to_path_buf()], &Options::default()).unwrap()
}

fn changes(refreshed: &Refreshed) -> Vec<(usize, Change)> {
    let changes = refreshed.changes.iter();
    changes
        .map(|change| (change.stream, change.change))
        .collect()
}

fn at(chunk: usize, number: u64) -> RowPlace {
    RowPlace { chunk, number }
}

fn appended(chunk: usize, number: u64) -> Change {
    Change::Appended {
        from: at(chunk, number),
    }
}

/// Packet `number` of a stream: ten ticks with two events.
fn packet(stream: u8, number: u8) -> Vec<u8> {
    let begin = 10 * u64::from(number);
    let events = [(begin as u8 + 1, number), (begin as u8 + 2, number + 100)];
    Packet::new(stream, begin, begin + 9, &events)
        .counted(0, number)
        .bytes()
}

fn packets(stream: u8, numbers: std::ops::Range<u8>) -> Vec<u8> {
    numbers.flat_map(|number| packet(stream, number)).collect()
}

fn values(trace: &Trace, stream: usize) -> Vec<u64> {
    let chunks = trace.chunks(stream).map(|chunk| chunk.number);
    let events = chunks.flat_map(|chunk| {
        let (events, fault) = walk(trace, stream, chunk);
        assert_eq!(fault, None);
        events
    });
    events.map(|(_, numbers)| numbers[0]).collect()
}

/// What a trace that is opened now says of its streams.
fn is_as_opened(trace: &Trace, directories: &[PathBuf]) {
    let anew = Trace::open(directories, &Options::default()).unwrap();
    let reported = |trace: &Trace| -> Vec<_> {
        let streams = 0..trace.streams().len();
        let reported = streams.map(|stream| {
            let chunks = trace.chunks(stream);
            let chunks = chunks.map(|chunk| {
                let times = (chunk.begin, chunk.end, chunk.begin_time, chunk.end_time);
                (times, chunk.bytes, chunk.lost_events, chunk.lost_chunks)
            });
            (
                trace.streams()[stream].id,
                chunks.collect::<Vec<_>>(),
                values(trace, stream),
            )
        });
        let mut reported: Vec<_> = reported.filter(|reported| !reported.1.is_empty()).collect();
        reported.sort_by_key(|reported| reported.0);
        reported
    };
    assert_eq!(reported(trace), reported(&anew));
    let codes = |trace: &Trace| {
        let faults = trace.faults().iter();
        faults
            .map(|fault| (fault.code, fault.offset))
            .collect::<Vec<_>>()
    };
    assert_eq!(codes(trace), codes(&anew));
}

#[test]
fn packets_that_are_appended_are_found_from_the_last_one_on() {
    let directory = tempfile::tempdir().unwrap();
    let dir = directory.path().join("trace");
    let mut trace = begin(
        &dir,
        USUAL,
        &[("a", packets(0, 0..2)), ("b", packets(1, 0..3))],
    );
    assert!(trace.refresh().unwrap().is_empty());
    write(&dir, "b", &packets(1, 0..5));
    let refreshed = trace.refresh().unwrap();
    assert_eq!(changes(&refreshed), [(1, appended(3, 0))]);
    assert!(!refreshed.has_other_classes);
    assert_eq!(values(&trace, 1), [0, 100, 1, 101, 2, 102, 3, 103, 4, 104]);
    is_as_opened(&trace, std::slice::from_ref(&dir));
    assert!(trace.refresh().unwrap().is_empty());
    write(&dir, "c", &packets(2, 0..1));
    assert_eq!(changes(&trace.refresh().unwrap()), [(2, appended(0, 0))]);
    is_as_opened(&trace, &[dir]);
}

#[test]
fn a_packet_that_was_not_whole_grows() {
    let directory = tempfile::tempdir().unwrap();
    let dir = directory.path().join("trace");
    let whole = packets(0, 0..4);
    for cut in packets(0, 0..2).len()..whole.len() {
        let mut trace = begin(&dir, USUAL, &[("a", whole[..cut].to_vec())]);
        let before = values(&trace, 0);
        write(&dir, "a", &whole);
        let refreshed = trace.refresh().unwrap();
        let [(0, Change::Appended { from })] = changes(&refreshed)[..] else {
            panic!("{cut}: {refreshed:?}");
        };
        assert_eq!(
            (from.chunk as u64 * 2 + from.number) as usize,
            before.len(),
            "{cut}"
        );
        assert_eq!(values(&trace, 0)[..before.len()], before);
        is_as_opened(&trace, std::slice::from_ref(&dir));
    }
}

#[test]
fn a_stream_goes_on_in_another_file_and_the_oldest_vanish() {
    let directory = tempfile::tempdir().unwrap();
    let dir = directory.path().join("trace");
    let mut trace = begin(
        &dir,
        USUAL,
        &[("a_0", packets(0, 0..2)), ("a_1", packets(0, 2..4))],
    );
    assert_eq!(trace.streams().len(), 1);
    write(&dir, "a_2", &packets(0, 4..6));
    assert_eq!(changes(&trace.refresh().unwrap()), [(0, appended(4, 0))]);
    // Written over by others: a new file under the old name.
    fs::remove_file(dir.join("a_0")).unwrap();
    write(&dir, "new", &packets(0, 6..7));
    fs::rename(dir.join("new"), dir.join("a_0")).unwrap();
    let vanished = Change::Vanished { before: at(2, 0) };
    assert_eq!(
        changes(&trace.refresh().unwrap()),
        [(0, vanished), (0, appended(6, 0))]
    );
    assert_eq!((trace.first_chunk(0), trace.chunk_count(0)), (2, 7));
    assert_eq!((trace.chunk(0, 1), trace.packet(0, 1)), (None, None));
    assert_eq!(trace.chunk(0, 2).unwrap().begin, Some(20));
    assert_eq!(values(&trace, 0), [2, 102, 3, 103, 4, 104, 5, 105, 6, 106]);
    is_as_opened(&trace, std::slice::from_ref(&dir));
    // Truncated in place, and rewritten.
    write(&dir, "a_1", &packets(0, 7..8));
    let vanished = Change::Vanished { before: at(4, 0) };
    assert_eq!(
        changes(&trace.refresh().unwrap()),
        [(0, vanished), (0, appended(7, 0))]
    );
    is_as_opened(&trace, &[dir]);
}

#[test]
fn a_session_is_rotated() {
    let directory = tempfile::tempdir().unwrap();
    let (dir, archive) = (
        directory.path().join("trace"),
        directory.path().join("archive"),
    );
    let mut trace = begin(&dir, USUAL, &[("a", packets(0, 0..2))]);
    fs::rename(&dir, &archive).unwrap();
    begin(&dir, USUAL, &[("a", packets(0, 2..3))]);
    let rotated = Directory::open(&archive).unwrap();
    assert!(trace.has_identity_of(&rotated));
    let refreshed = trace.refresh_with(vec![rotated]).unwrap();
    assert_eq!(changes(&refreshed), [(0, appended(2, 0))]);
    is_as_opened(&trace, &[dir.clone(), archive.clone()]);
    // A snapshot has packets that are known.
    let snapshot = directory.path().join("snapshot");
    begin(&snapshot, USUAL, &[("a", packets(0, 1..4))]);
    let snapshot = Directory::open(&snapshot).unwrap();
    let refreshed = trace.refresh_with(vec![snapshot]).unwrap();
    assert_eq!(changes(&refreshed), [(0, appended(3, 0))]);
    assert_eq!(values(&trace, 0), [0, 100, 1, 101, 2, 102, 3, 103]);
}

#[test]
fn classes_that_are_appended_come_behind_the_others() {
    let other = "stream { id = 4; packet.context := struct { u16 packet_size; u16 content_size; };
        event.header := struct { u8 id; }; };
        event { id = 0; stream_id = 4; name = \"other\"; fields := struct { u8 x; }; };";
    let directory = tempfile::tempdir().unwrap();
    let dir = directory.path().join("trace");
    let metadata = format!("{USUAL}{other}");
    let mut trace = begin(&dir, &metadata, &[("a", packets(0, 0..1))]);
    let names = |trace: &Trace| -> Vec<String> {
        let classes = trace.event_classes().iter();
        classes
            .map(|class| class.name.as_deref().unwrap().to_string())
            .collect()
    };
    assert_eq!(names(&trace), ["number", "text", "other"]);
    let more = "event { id = 7; stream_id = 3; name = \"late\"; fields := struct { u16 x; }; };";
    write(
        &dir,
        METADATA,
        format!("{TYPES}{metadata}{more}").as_bytes(),
    );
    let mut late = Packet::new(0, 10, 19, &[(12, 5)]).counted(0, 1).bytes();
    let id = late.len() - 3;
    late[id] = 7;
    late.push(1);
    let bits = (late.len() * 8) as u16;
    late[22..24].copy_from_slice(&bits.to_le_bytes());
    late[24..26].copy_from_slice(&bits.to_le_bytes());
    write(&dir, "a", &[packets(0, 0..1), late].concat());
    let refreshed = trace.refresh().unwrap();
    assert!(refreshed.has_other_classes);
    assert_eq!(changes(&refreshed), [(0, appended(1, 0))]);
    assert_eq!(names(&trace), ["number", "text", "other", "late"]);
    assert_eq!(values(&trace, 0), [0, 100, 261]);
    let chunk = trace.chunk(0, 1).unwrap();
    let mut cursor = trace.cursor(&chunk);
    assert_eq!(cursor.next_event().unwrap().unwrap().class_index(), 3);
    drop(cursor);
    // Of many at once, too.
    let mut headers = EventHeaders::default();
    trace.cursor(&chunk).walk_headers(&mut headers).unwrap();
    assert_eq!(headers.classes, [3]);
    // Metadata that cannot be read yet changes nothing.
    write(
        &dir,
        METADATA,
        format!("{TYPES}{metadata}{more}event {{").as_bytes(),
    );
    assert!(trace.refresh().is_err());
    assert_eq!(values(&trace, 0), [0, 100, 261]);
}
