//! Datagrams as recordings: what a capture of them holds, in the order of time.

use std::path::Path;

use kymo_collectd::network::{Keys, PORT};
use kymo_collectd::recording::{MESSAGES, OpenError, Options, Recording, VALUES};
use kymo_model::{Cursor, Event, FaultCode, FieldId, Recording as _, Shift, Visitor};

fn packet(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/packets");
    std::fs::read(folder.join(name)).unwrap()
}

/// A capture of plain IP.
fn pcap(datagrams: &[Vec<u8>]) -> Vec<u8> {
    let mut file: Vec<u8> = [0xa1b2_c3d4u32, 0x0002_0004, 0, 0, 65_535, 101]
        .iter()
        .flat_map(|number| number.to_be_bytes())
        .collect();
    for datagram in datagrams {
        let mut packet = vec![0; 28];
        packet[0] = 0x45;
        packet[9] = 17;
        packet[22..24].copy_from_slice(&PORT.to_be_bytes());
        packet[24..26].copy_from_slice(&(datagram.len() as u16 + 8).to_be_bytes());
        packet.extend_from_slice(datagram);
        let length = packet.len() as u32;
        for number in [0, 0, length, length] {
            file.extend_from_slice(&number.to_be_bytes());
        }
        file.extend_from_slice(&packet);
    }
    file
}

fn keys() -> Option<Keys> {
    Some(Keys::parse(b"alice: s3cret pass\nbob: hunter2\n").unwrap())
}

fn open(bytes: &[u8], keys: Option<Keys>) -> Recording {
    let options = Options { keys };
    Recording::new(Path::new("dir/file.pcap"), bytes, &options).unwrap()
}

/// Gets the texts and the number of values of an event.
#[derive(Default)]
struct Texts(Vec<String>, usize);

impl Visitor for Texts {
    fn text(&mut self, _field: FieldId, text: &[u8]) {
        self.0.push(String::from_utf8(text.to_vec()).unwrap());
    }

    fn begin_variant(&mut self, _field: FieldId, _selected: u32, _selector: u64) {
        self.1 += 1;
    }
}

/// Times, ticks, texts and numbers of values of a stream.
fn entries(recording: &Recording, stream: usize) -> Vec<(i64, u64, Vec<String>, usize)> {
    let mut entries = Vec::new();
    for chunk in recording.chunks(stream) {
        let mut cursor = recording.cursor(&chunk);
        let mut last_bit = 0;
        while let Some(event) = cursor.next_event().unwrap() {
            let mut texts = Texts::default();
            event.visit(&mut texts).unwrap();
            let nanos = event.timestamp().unwrap().as_nanos();
            assert_eq!(event.number(), entries.len() as u64 % 4096);
            assert!(event.begin_bit() >= last_bit && event.begin_bit() < chunk.bytes * 8);
            last_bit = event.begin_bit();
            entries.push((nanos, event.ticks().unwrap(), texts.0, texts.1));
        }
        let times = [chunk.begin_time, chunk.end_time].map(|time| time.unwrap().as_nanos());
        assert!(entries.last().unwrap().0 == times[1] && entries[0].0 <= times[0]);
    }
    entries
}

#[test]
fn a_capture_is_in_the_order_of_time() {
    // The later ones first.
    let names = [3, 2, 1, 0].map(|number| format!("encrypted-000{number}.bin"));
    let bytes = pcap(&names.map(|name| packet(&name)));
    let recording = open(&bytes, keys());
    assert_eq!(
        (recording.format().name, recording.format().version),
        ("collectd", "pcap")
    );
    assert_eq!(
        (
            recording.name(),
            recording.datagrams(),
            recording.messages()
        ),
        (Some("file"), 4, 1)
    );
    assert!(recording.faults().is_empty());
    let lists = entries(&recording, VALUES);
    assert_eq!(lists.len() as u64, recording.lists());
    assert!(lists.is_sorted_by_key(|list| list.1));
    assert_eq!(lists[0].1, 1_927_637_038_649_001_053);
    assert_eq!(lists[0].0, 1_795_251_889_758_744_326);
    assert_eq!(lists[0].2, ["host.example/memory/memory-used", "encrypt"]);
    let load = lists
        .iter()
        .find(|list| list.2[0].ends_with("/load"))
        .unwrap();
    assert_eq!(load.3, 3);
    let messages = entries(&recording, MESSAGES);
    let expected = ["WARNING", "host.example/exec/", "note number 0", "encrypt"];
    assert_eq!(messages[0].2, expected);
}

#[test]
fn shifts_move_times_and_not_ticks() {
    let datagram = packet("plain-0000.bin");
    let [before, after] = [0, -1_500_000_001].map(|offset| {
        let mut recording = open(&datagram, None);
        let shift = Shift {
            nanos: offset,
            from_unix_epoch: false,
        };
        recording.shift(shift).unwrap();
        assert_eq!(recording.format().version, "datagram");
        entries(&recording, VALUES).swap_remove(0)
    });
    assert_eq!(after.0, before.0 - 1_500_000_001);
    assert_eq!(after.1, before.1);
}

#[test]
fn what_cannot_be_verified_is_reported() {
    let names = [
        "plain-0000.bin",
        "signed-0000.bin",
        "encrypted-0000.bin",
        "encrypted-0001.bin",
    ];
    let bytes = pcap(&names.map(packet));
    let recording = open(&bytes, None);
    assert_eq!(recording.lists(), 52);
    assert_eq!(recording.notes().len(), 1);
    assert!(recording.notes()[0].starts_with("1 signatures were not verified"));
    let [fault] = recording.faults() else {
        panic!("{:?}", recording.faults());
    };
    assert_eq!((fault.code, fault.packet), (FaultCode::Datagram, Some(2)));
    assert!(fault.message.starts_with("2 encrypted parts"), "{fault}");
    // The security is what could be verified.
    assert!(
        entries(&recording, VALUES)
            .iter()
            .all(|list| list.2[1] == "none")
    );

    let other = Keys::parse(b"alice: another\n").unwrap();
    let recording = open(&bytes, Some(other));
    let faults: Vec<_> = recording
        .faults()
        .iter()
        .map(|fault| fault.to_string())
        .collect();
    assert_eq!(faults.len(), 3);
    assert!(faults[0].contains("wrong-signature: it was not signed with the password of `alice`"));
    assert!(faults[1].contains("unknown-user: no user `bob` is known"));
}

#[test]
fn damage_has_its_place() {
    let datagram = packet("plain-0000.bin");
    let cut = &datagram[..datagram.len() - 1];
    let recording = open(cut, None);
    assert_eq!((recording.lists(), recording.faults().len()), (25, 1));
    assert_eq!(recording.faults()[0].code, FaultCode::Truncated);
    // In a capture, behind its header, that of the packet, those of IP and UDP.
    let in_capture = open(&pcap(&[cut.to_vec()]), None);
    let [plain, in_capture] = [recording, in_capture].map(|recording| recording.faults()[0].offset);
    assert_eq!(in_capture, plain + 24 + 16 + 28);
}

#[test]
fn faults_without_end_are_counted() {
    let bytes = pcap(&vec![vec![0xff; 3]; 1500]);
    let recording = open(&bytes, None);
    assert_eq!(recording.faults().len(), 1001);
    assert!(
        recording.faults()[1000]
            .message
            .starts_with("500 more faults")
    );
}

#[test]
fn other_files_are_no_datagrams() {
    for bytes in [
        &b""[..],
        b"PUTVAL h/p/t N:1\n",
        b"\0\0\0\x10no end\xff",
        &[0; 100],
    ] {
        let result = Recording::new(Path::new("x"), bytes, &Options::default());
        assert!(
            matches!(result, Err(OpenError::NoDatagram { .. })),
            "{bytes:?}"
        );
    }
}
