//! Traces of Perfetto. `make.py` makes those in `traces`, with Perfetto's own schema.

#[allow(dead_code)]
mod common;

use common::{open, text};
use kymo_model::{FaultCode, Recording as _};

macro_rules! trace {
    ($name:literal) => {
        include_bytes!(concat!("traces/", $name, ".pftrace"))
    };
}

macro_rules! traces {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            let bytes = include_bytes!(concat!("traces/", stringify!($name), ".pftrace"));
            insta::assert_snapshot!(text(&open(concat!(stringify!($name), ".pftrace"), bytes)));
        })*
    };
}

traces!(slices counters clocks legacy kernel);

#[test]
fn compressed_packets_are_those_they_hold() {
    let compressed = text(&open("compressed.pftrace", trace!("compressed")));
    assert_eq!(compressed, text(&open("kernel.pftrace", trace!("kernel"))));
}

/// `kymo convert` wrote both of the same recordings: a log with slices, counters and flows, and a
/// database.
#[test]
fn what_kymo_writes_comes_back() {
    let perfetto = open("kymo-log.pftrace", trace!("kymo-log"));
    let chrome = open("kymo-log.json", include_bytes!("traces/kymo-log.json"));
    assert_eq!(perfetto.events(), chrome.events());
    for recording in [&perfetto, &chrome] {
        assert_eq!((recording.faults(), recording.notes()), (&[][..], &[][..]));
    }
    // Times, names, roles and arguments are the same; tracks have other numbers.
    let rows = |recording| -> Vec<String> {
        let text = text(recording);
        let rows = text.lines().filter(|line| !line.starts_with("TRACK"));
        rows.map(|row| match (row.find(" track="), row.find(" phase=")) {
            (Some(begin), Some(end)) => format!("{}{}", &row[..begin], &row[end..]),
            _ => row.to_string(),
        })
        // JSON has no signed numbers that are positive; the order of fields is the writer's.
        .map(|row| {
            let mut words: Vec<_> = row.trim_end_matches(['i', 'u']).split(' ').collect();
            words.sort_unstable();
            words.join(" ")
        })
        .collect()
    };
    let (perfetto_rows, chrome_rows) = (rows(&perfetto), rows(&chrome));
    for (one, other) in perfetto_rows.iter().zip(&chrome_rows) {
        assert_eq!(one, other);
    }
    insta::assert_snapshot!(text(&perfetto));
}

/// The bytes of a field that is a message.
fn message(number: u8, content: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0xfa, 0x01];
    if number < 16 {
        bytes = vec![number << 3 | 2];
    }
    let mut length = content.len();
    while length >= 0x80 {
        bytes.push(length as u8 | 0x80);
        length >>= 7;
    }
    bytes.push(length as u8);
    bytes.extend_from_slice(content);
    bytes
}

/// A packet with a time, on a sequence.
fn packet(content: &[u8]) -> Vec<u8> {
    message(1, &[b"\x40\x05\x50\x01\x68\x01", content].concat())
}

#[test]
fn damage_costs_a_packet() {
    let event = packet(&message(11, b"\x48\x03\xba\x01\x01x"));
    let damaged = packet(b"\x5a\x7fxy");
    let recording = open("x.pftrace", &[&event[..], &damaged, &event].concat());
    assert_eq!(recording.events(), 2);
    let [fault] = recording.faults() else {
        panic!("{:?}", recording.faults());
    };
    assert_eq!(
        (fault.code, fault.offset),
        (FaultCode::BeyondContent, event.len() as u64)
    );
    for cut in 1..event.len() {
        let recording = open("x.pftrace", &[&event[..], &event[..cut]].concat());
        let codes: Vec<_> = recording.faults().iter().map(|fault| fault.code).collect();
        assert_eq!(
            (recording.events(), &codes[..]),
            (1, &[FaultCode::Truncated][..]),
            "{cut}"
        );
    }
    let recording = open("x.pftrace", &[&event[..], b"\x0f\0"].concat());
    assert_eq!(
        (recording.events(), recording.faults()[0].code),
        (1, FaultCode::Magic)
    );
}

#[test]
fn annotations_may_nest_as_deep_as_they_like() {
    let mut annotation = message(6, b"x");
    for _ in 0..10_000 {
        annotation = message(12, &annotation);
    }
    let annotation = [&b"\x52\x01a"[..], &annotation].concat();
    let event = [&b"\x48\x03\xba\x01\x01x"[..], &message(4, &annotation)].concat();
    let recording = open("x.pftrace", &packet(&message(11, &event)));
    assert_eq!(
        (recording.events(), recording.notes().len()),
        (1, 1),
        "{:?}",
        recording.notes()
    );
    assert!(text(&recording).contains(&"[".repeat(32)));
}

#[test]
fn what_is_compressed_to_nothing_is_bounded() {
    use std::io::Write;
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    // An unknown packet of 200 MiB.
    let head = b"\x0a\x85\x80\x80\x64\xa2\x06\x80\x80\x80\x64";
    encoder.write_all(head).unwrap();
    for _ in 0..200 {
        encoder.write_all(&[0; 1 << 20]).unwrap();
    }
    let compressed = encoder.finish().unwrap();
    let mut content = vec![0x92, 0x03];
    content.extend_from_slice(&message(1, &compressed)[1..]);
    let event = packet(&message(11, b"\x48\x03\xba\x01\x01x"));
    let recording = open("x.pftrace", &[message(1, &content), event].concat());
    assert_eq!(
        (recording.events(), recording.faults()[0].code),
        (1, FaultCode::PacketLimit)
    );
}
