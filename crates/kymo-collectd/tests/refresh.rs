//! Captures that grow while they are open.

use std::path::Path;

use kymo_collectd::network::PORT;
use kymo_collectd::recording::{Options, Recording};
use kymo_model::{Change, Cursor, Event, FaultCode, Recording as _, RowPlace};

/// A datagram of one list of a host, at a time in seconds.
fn datagram(host: &str, seconds: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut part = |kind: u16, payload: &[u8]| {
        bytes.extend(kind.to_be_bytes());
        bytes.extend((payload.len() as u16 + 4).to_be_bytes());
        bytes.extend(payload);
    };
    part(0, format!("{host}\0").as_bytes());
    part(1, &seconds.to_be_bytes());
    part(2, b"load\0");
    part(4, b"load\0");
    let mut values = vec![0, 1, 1];
    values.extend(1.5f64.to_le_bytes());
    part(6, &values);
    bytes
}

fn header() -> Vec<u8> {
    let words = [0xa1b2_c3d4u32, 0x0002_0004, 0, 0, 65_535, 101];
    words
        .iter()
        .flat_map(|number| number.to_be_bytes())
        .collect()
}

fn packet(datagram: &[u8]) -> Vec<u8> {
    let mut packet = vec![0; 28];
    packet[0] = 0x45;
    packet[9] = 17;
    packet[22..24].copy_from_slice(&PORT.to_be_bytes());
    packet[24..26].copy_from_slice(&(datagram.len() as u16 + 8).to_be_bytes());
    packet.extend_from_slice(datagram);
    let length = packet.len() as u32;
    let words = [0, 0, length, length];
    let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
    bytes.extend(packet);
    bytes
}

fn times(recording: &Recording) -> Vec<i64> {
    let mut times = Vec::new();
    for chunk in recording.chunks(0) {
        let mut cursor = recording.cursor(&chunk);
        let mut of_chunk = Vec::new();
        while let Some(event) = cursor.next_event().unwrap() {
            of_chunk.push(event.timestamp().unwrap());
        }
        assert_eq!(chunk.begin_time, of_chunk.iter().min().copied());
        assert_eq!(chunk.end_time, of_chunk.iter().max().copied());
        times.extend(of_chunk.iter().map(|time| time.as_nanos() / 1_000_000_000));
    }
    times
}

#[test]
fn packets_that_are_appended_are_read_and_what_was_there_stays() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("net.pcap");
    let mut bytes = header();
    bytes.extend(packet(&datagram("b", 20)));
    bytes.extend(packet(&datagram("a", 10)));
    let third = packet(&datagram("c", 15));
    bytes.extend(&third[..third.len() / 2]);
    std::fs::write(&path, &bytes).unwrap();
    let mut recording = Recording::open(&path, &Options::default()).unwrap();
    assert_eq!(times(&recording), [10, 20]);
    assert_eq!(recording.faults()[0].code, FaultCode::Truncated);
    assert!(recording.refresh().unwrap().is_empty());
    bytes.extend(&third[third.len() / 2..]);
    bytes.extend(packet(&datagram("a", 30)));
    std::fs::write(&path, &bytes).unwrap();
    let from = RowPlace {
        chunk: 0,
        number: 2,
    };
    let refreshed = recording.refresh().unwrap();
    assert_eq!(refreshed.changes.len(), 1);
    assert_eq!(refreshed.changes[0].change, Change::Appended { from });
    assert_eq!(times(&recording), [10, 20, 15, 30]);
    assert!(recording.faults().is_empty());
    assert_eq!(
        (recording.datagrams(), recording.size()),
        (4, bytes.len() as u64)
    );
    // Another file at the same path.
    std::fs::write(&path, [header(), packet(&datagram("z", 5))].concat()).unwrap();
    let from = RowPlace::default();
    let refreshed = recording.refresh().unwrap();
    assert_eq!(refreshed.changes[0].change, Change::Replaced { from });
    assert_eq!(times(&recording), [5]);
    std::fs::remove_file(Path::new(&path)).unwrap();
    assert!(recording.refresh().is_err());
    assert_eq!(times(&recording), [5]);
}
