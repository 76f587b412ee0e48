//! Traces whose packets are known from before.

use std::cell::RefCell;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;

use proptest::prelude::*;

use super::super::PacketSource;
use super::*;

/// Packet `number` of a stream: ten ticks with two events.
fn packet(stream: u8, number: u8) -> Packet {
    let begin = 10 * u64::from(number);
    let events = [(begin as u8 + 1, number), (begin as u8 + 2, number + 100)];
    Packet::new(stream, begin, begin + 9, &events).counted(number / 3, number)
}

fn packets(stream: u8, numbers: std::ops::Range<u8>) -> Vec<u8> {
    let packets: Vec<_> = numbers.map(|number| packet(stream, number)).collect();
    bytes_of(&packets)
}

/// A trace of two files, of which one has packets of two streams.
fn make(directory: &Path) {
    let write = |name: &str, bytes: &[u8]| fs::write(directory.join(name), bytes).unwrap();
    write("metadata", format!("{TYPES}{USUAL}").as_bytes());
    write("one", &packets(7, 0..20));
    write("two", &[packets(8, 0..3), packets(9, 0..12)].concat());
}

/// Adds packets to its first file.
fn append(directory: &Path) {
    let file = OpenOptions::new().append(true).open(directory.join("one"));
    file.unwrap().write_all(&packets(7, 20..25)).unwrap();
}

/// Opens it with a table. What the table was asked of comes with it.
fn open(directory: &Path, table: Option<Vec<u8>>) -> (Trace, PacketSource) {
    open_with(directory, table, &Options::default())
}

fn open_with(directory: &Path, table: Option<Vec<u8>>, options: &Options) -> (Trace, PacketSource) {
    let directories = vec![Directory::open_with(directory, options).unwrap()];
    let asked = RefCell::new(None);
    let known = |source: &PacketSource| {
        asked.replace(Some(source.clone()));
        table.clone().map(Bytes::from)
    };
    let trace = Trace::new_with_packets(directories, options, Some(&known)).unwrap();
    let nothing = PacketSource {
        files: Vec::new(),
        how: Vec::new(),
    };
    (trace, asked.take().unwrap_or(nothing))
}

fn table(trace: &Trace) -> Option<Vec<u8>> {
    trace.packet_table().map(|(_, table)| table)
}

/// All that a trace says of its streams.
fn said(trace: &Trace) -> Vec<String> {
    let streams = 0..trace.streams().len();
    let of_stream = streams.map(|stream| {
        let info = &trace.streams()[stream];
        let chunks: Vec<_> = trace.chunks(stream).collect();
        let packets: Vec<_> = trace.packets(stream).collect();
        let events = events(trace, stream);
        format!(
            "{:?} {} {chunks:?} {packets:?} {events:?}",
            info.id, info.name
        )
    });
    of_stream.collect()
}

#[test]
fn a_table_is_what_a_scan_finds() {
    let directory = tempfile::tempdir().unwrap();
    make(directory.path());
    let (scanned, source) = open(directory.path(), None);
    let (found_in, known) = scanned.packet_table().unwrap();
    assert_eq!(*found_in, source);
    assert_eq!(source.files.len(), 3);
    let (opened, again) = open(directory.path(), Some(known.clone()));
    assert_eq!(again, source);
    assert_eq!(said(&opened), said(&scanned));
    assert_eq!(said(&scanned).len(), 3);
    assert_eq!(table(&opened), None, "it is known already");
    // Packets are not touched: what is wrong with one is reported when it is read.
    let path = directory.path().join("one");
    let mut bytes = fs::read(&path).unwrap();
    bytes[0] ^= 1;
    fs::write(&path, bytes).unwrap();
    assert_eq!(codes(&open(directory.path(), Some(known)).0), []);
    let (damaged, _) = open(directory.path(), None);
    assert_eq!(codes(&damaged), [FaultCode::Magic]);
    assert_eq!(table(&damaged), None, "a scan has more to report");
}

#[test]
fn what_changes_has_another_source() {
    let directory = tempfile::tempdir().unwrap();
    make(directory.path());
    let (mut scanned, source) = open(directory.path(), None);
    let known = table(&scanned);
    let (mut opened, _) = open(directory.path(), known);
    let options = Options {
        sorts_packets: true,
        ..Options::default()
    };
    assert_ne!(open_with(directory.path(), None, &options).1, source);
    append(directory.path());
    assert_ne!(open(directory.path(), None).1, source);
    // Both go on from where they are.
    let refreshed = opened.refresh().unwrap();
    assert_eq!(refreshed, scanned.refresh().unwrap());
    assert_eq!(refreshed.changes.len(), 1);
    assert_eq!(said(&opened), said(&scanned));
    assert_eq!(said(&opened), said(&open(directory.path(), None).0));
    assert_eq!(table(&scanned), None, "its files have changed");
    let only_one = directory.path().join("two");
    fs::remove_file(only_one).unwrap();
    assert_eq!(open(directory.path(), None).1.files.len(), 2);
}

#[test]
fn packets_that_need_more_than_files_are_not_kept() {
    let directory = tempfile::tempdir().unwrap();
    make(directory.path());
    let compares = Options {
        compares_indexes: true,
        ..Options::default()
    };
    let (trace, source) = open_with(directory.path(), None, &compares);
    assert_eq!((table(&trace), source.files.len()), (None, 0));
    assert_eq!(table(&usual(&[("file", packets(7, 0..3))])), None);
}

proptest! {
    #[test]
    fn whatever_a_table_says_nothing_fails(
        changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..4),
        cut in proptest::option::of(any::<proptest::sample::Index>()),
    ) {
        let directory = tempfile::tempdir().unwrap();
        make(directory.path());
        let mut known = table(&open(directory.path(), None).0).unwrap();
        for (at, byte) in changes {
            let at = at.index(known.len());
            known[at] = byte;
        }
        if let Some(cut) = cut {
            known.truncate(cut.index(known.len()));
        }
        let (mut trace, _) = open(directory.path(), Some(known));
        for stream in 0..trace.streams().len() {
            for chunk in trace.chunks(stream).map(|chunk| chunk.number) {
                walk(&trace, stream, chunk);
            }
        }
        append(directory.path());
        trace.refresh().unwrap();
    }
}
