//! Index files: used if right, otherwise reported and ignored.

use super::*;

fn packets() -> [Packet; 3] {
    [
        Packet::new(2, 10, 20, &[(11, 1)]).counted(0, 7),
        Packet {
            padding: 9,
            ..Packet::new(2, 20, 30, &[(21, 2), (22, 3)]).counted(0, 8)
        },
        Packet::new(2, 30, 40, &[(31, 4)]).counted(5, 10),
    ]
}

/// The index of packets; of version 1.`minor`, with `extra` bytes at the end of each record.
fn index(packets: &[Packet], minor: u32, extra: usize) -> Vec<u8> {
    let record_bytes = if minor == 0 { 56 } else { 72 } + extra;
    let header = [0xC1F1_DCC1, 1, minor, record_bytes as u32];
    let mut bytes: Vec<u8> = header
        .iter()
        .flat_map(|word: &u32| word.to_be_bytes())
        .collect();
    let mut offset = 0;
    for packet in packets {
        let size = packet.bytes().len();
        let words = [
            offset as u64,
            size as u64 * 8,
            (size - packet.padding) as u64 * 8,
            packet.begin,
            packet.end,
            packet.discarded.into(),
            packet.class.into(),
            packet.stream.into(),
            packet.sequence.into(),
        ];
        let words = &words[..if minor == 0 { 7 } else { 9 }];
        bytes.extend(words.iter().flat_map(|word| word.to_be_bytes()));
        bytes.extend(std::iter::repeat_n(0xEE, extra));
        offset += size;
    }
    bytes
}

fn indexed(metadata: &str, data: Vec<u8>, index: Vec<u8>) -> Trace {
    indexed_with(metadata, data, index, &Options::default())
}

fn indexed_with(metadata: &str, data: Vec<u8>, index: Vec<u8>, options: &Options) -> Trace {
    let mut directory = directory("/trace", metadata, &[("file", data)]);
    directory.files[0].index = Some((Arc::new("/trace/index/file.idx".into()), Bytes::from(index)));
    Trace::new(vec![directory], options).unwrap_or_else(|error| panic!("{error}"))
}

/// What a trace says of its packets.
fn reported(trace: &Trace) -> String {
    let packets: Vec<_> = trace.packets(0).collect();
    let chunks: Vec<_> = trace.chunks(0).collect();
    format!("{packets:?} {chunks:?}")
}

#[test]
fn an_index_says_what_the_packets_say() {
    let data = bytes_of(&packets());
    let scanned = reported(&usual(&[("file", data.clone())]));
    for (minor, extra) in [(1, 0), (1, 8), (2, 16), (0, 0)] {
        let trace = indexed(USUAL, data.clone(), index(&packets(), minor, extra));
        assert_eq!(trace.faults(), []);
        assert_eq!(reported(&trace), scanned, "version 1.{minor}");
    }
}

#[test]
fn with_an_index_packets_are_not_touched() {
    let mut data = bytes_of(&packets());
    let second = packets()[0].bytes().len();
    data[second + 20] = 99;
    // The stream class of the second packet is unknown: it was not checked while opening...
    let trace = indexed(USUAL, data.clone(), index(&packets(), 1, 0));
    assert_eq!(trace.faults(), []);
    assert_eq!(trace.chunk_count(0), 3);
    // ... and when it is read, the others are not lost.
    let (events, fault) = walk(&trace, 0, 1);
    assert_eq!(
        (events.len(), fault.unwrap().code),
        (0, FaultCode::UnknownStreamClass)
    );
    let report = trace.report(&trace.chunk(0, 1).unwrap(), None, fault.unwrap());
    assert_eq!((report.packet, report.event), (Some(1), None));
    assert_eq!(walk(&trace, 0, 2).0.len(), 1);

    // Version 1.0 has no packet numbers; where there is a field for them, packets are looked at.
    let trace = indexed(USUAL, data.clone(), index(&packets(), 0, 0));
    assert_eq!(codes(&trace), [FaultCode::UnknownStreamClass]);
    let without = USUAL.replace("packet_seq_num", "other");
    let trace = indexed(&without, data, index(&packets(), 0, 0));
    assert_eq!(trace.faults(), []);
    assert_eq!(trace.streams()[0].id, Some(2));
}

#[test]
fn an_index_of_an_unknown_format_is_ignored() {
    let data = bytes_of(&packets());
    let scanned = reported(&usual(&[("file", data.clone())]));
    let right = index(&packets(), 1, 0);
    let mut later = right.clone();
    later[7] = 2;
    let other = b"another format, of any length".to_vec();
    for (index, why) in [(later, "version 2.1"), (other, "begins with 0x616e6f74")] {
        let trace = indexed(USUAL, data.clone(), index);
        assert_eq!(trace.faults(), []);
        assert_eq!(reported(&trace), scanned);
        assert!(trace.files()[0].index.is_none());
        let [note] = trace.notes() else {
            panic!("{:?}", trace.notes());
        };
        assert!(note.contains(why), "{note}");
        assert!(note.starts_with("`index/file.idx` is ignored: "), "{note}");
    }
}

#[test]
fn a_wrong_index_is_reported_and_done_without() {
    let data = bytes_of(&packets());
    let scanned = reported(&usual(&[("file", data.clone())]));
    let right = index(&packets(), 1, 0);
    let changed = |at: usize, byte: u8| {
        let mut index = right.clone();
        index[at] = byte;
        index
    };
    let record = |number: usize, word: usize| 16 + 72 * number + 8 * word + 7;
    let wrong = [
        (vec![], "0 bytes"),
        (right[..2].to_vec(), "2 bytes"),
        (right[..15].to_vec(), "15 bytes"),
        (changed(15, 56), "records of 56 bytes"),
        (changed(15, 0), "records of 0 bytes"),
        (right[..100].to_vec(), "84 bytes of records"),
        (right[..16 + 72].to_vec(), "end at byte"),
        (right[..16].to_vec(), "end at byte 0"),
        (
            changed(record(1, 0), 0),
            "record 1 of the index has its packet at byte",
        ),
        (changed(record(0, 3), 11), "time at the beginning"),
        (changed(record(2, 4), 41), "time at the end"),
        (changed(record(2, 5), 6), "discarded"),
        (changed(record(0, 6), 1), "stream class 1"),
        (changed(record(2, 7), 1), "stream number"),
        (changed(record(0, 8), 1), "packet number"),
        (changed(record(1, 1), 1), "record 1 of the index"),
        (changed(record(1, 2) - 4, 1), "record 1 of the index"),
    ];
    for (index, message) in wrong {
        let trace = indexed(USUAL, data.clone(), index);
        assert_eq!(codes(&trace), [FaultCode::Index], "{message}");
        let fault = &trace.faults()[0];
        assert!(
            fault.message.contains(message),
            "{} has no {message}",
            fault.message
        );
        assert!(fault.file.ends_with("file.idx") && fault.code.is_warning());
        assert_eq!(reported(&trace), scanned);
    }
}

#[test]
fn truncated_data_does_not_make_its_index_wrong() {
    let data = bytes_of(&packets());
    let trace = indexed(
        USUAL,
        data[..data.len() - 1].to_vec(),
        index(&packets(), 1, 0),
    );
    assert_eq!(codes(&trace), [FaultCode::Truncated]);
    assert_eq!(trace.chunk_count(0), 3);
}

#[test]
fn an_index_that_is_wrong_in_the_middle_is_reported_where_it_matters() {
    let data = bytes_of(&packets());
    let right = index(&packets(), 1, 0);
    // The content size and the time at the beginning of the second packet.
    for (word, change) in [(2, 24), (3, 1)] {
        let mut index = right.clone();
        let at = 16 + 72 + 8 * word + 7;
        index[at] = index[at].wrapping_sub(change);
        let trace = indexed(USUAL, data.clone(), index);
        assert_eq!(trace.faults(), []);
        let (events, fault) = walk(&trace, 0, 1);
        assert_eq!((events.len(), fault.unwrap().code), (0, FaultCode::Index));
        assert_eq!(walk(&trace, 0, 0).0.len(), 1);
        assert_eq!(walk(&trace, 0, 2).0.len(), 1);
    }
}

#[test]
fn a_record_of_another_stream_is_compared_with_its_packet() {
    let data = bytes_of(&packets());
    // Stream 1 of the second packet, which the first one and the last one are not of.
    let mut index = index(&packets(), 1, 0);
    let at = 16 + 72 + 8 * 7 + 7;
    index[at] = index[at].wrapping_add(1);
    let trace = indexed(USUAL, data, index);
    let [fault] = trace.faults() else {
        panic!("{:?}", trace.faults());
    };
    assert!(fault.message.contains("is the stream number"), "{fault:?}");
    assert_eq!(
        (0..3)
            .map(|number| walk(&trace, 0, number).0.len())
            .sum::<usize>(),
        4
    );
}

/// A trace of which each packet is asked, the second one changed at a byte, or its record.
fn compared(at: usize, flip: u8, is_index: bool) -> Trace {
    let (mut data, mut index) = (bytes_of(&packets()), index(&packets(), 1, 0));
    match is_index {
        true => index[16 + 72 + at] ^= flip,
        false => data[packets()[0].bytes().len() + at] ^= flip,
    }
    let options = Options {
        compares_indexes: true,
        ..Options::default()
    };
    indexed_with(USUAL, data, index, &options)
}

#[test]
fn what_packets_say_otherwise_than_a_right_index_is_reported_if_asked_for() {
    let right = reported(&indexed(
        USUAL,
        bytes_of(&packets()),
        index(&packets(), 1, 0),
    ));
    let changes = [
        (0, 1, FaultCode::Magic, "packet_header.magic"),
        (7, 8, FaultCode::TraceId, "packet_header.uuid"),
        (21, 2, FaultCode::Index, "packet_header.stream_instance_id"),
        (25, 0x80, FaultCode::Index, "packet_context.content_size"),
        (34, 0x40, FaultCode::Index, "packet_context.timestamp_end"),
        (
            42,
            0x80,
            FaultCode::Index,
            "packet_context.events_discarded",
        ),
        (43, 0x02, FaultCode::Index, "packet_context.packet_seq_num"),
    ];
    for (at, flip, code, field) in changes {
        let trace = compared(at, flip, false);
        let [fault] = trace.faults() else {
            panic!("{at}: {:?}", trace.faults());
        };
        let second = packets()[0].bytes().len() as u64;
        assert_eq!((fault.code, fault.field.as_deref()), (code, Some(field)));
        assert_eq!((fault.offset, fault.packet), (second, Some(1)));
        // What is read, and believed, is what the index says.
        assert_eq!(reported(&trace), right, "{field}");
        let (head, is_other) = trace.head(0, 1).unwrap();
        assert_eq!(is_other, code == FaultCode::Index, "{field}");
        let expected = (Some(2), Some((30, 64)), Some((0, 8)), Some((8, 8)));
        let found = (head.stream_id, head.end, head.discarded, head.sequence);
        assert_eq!(found, expected, "{field}");
        assert_eq!(
            head.content_bits,
            Some(trace.packet(0, 1).unwrap().content_bits)
        );
        let (events, fault) = walk(&trace, 0, 1);
        assert_eq!((events.len(), fault), (2, None), "{field}");
    }
    assert_eq!(
        compared(44, 1, false).faults(),
        [],
        "no index knows the processor"
    );
}

#[test]
fn of_an_index_and_a_packet_that_one_is_believed_which_fits_the_others() {
    // The time at the end, discarded events, the packet's number.
    for (word, flip) in [(4, 0x40), (5, 0x80), (8, 0x40)] {
        let trace = compared(8 * word + 7, flip, true);
        assert_eq!(codes(&trace), [FaultCode::Index], "{word}");
        let (head, is_other) = trace.head(0, 1).unwrap();
        assert!(!is_other, "{word}");
        let found = (head.end, head.discarded, head.sequence);
        assert_eq!(found, (Some((30, 64)), Some((0, 8)), Some((8, 8))));
        assert_eq!(trace.chunk(0, 1).unwrap().end, Some(30));
    }
    // A fault that reading the packet reports is not reported twice.
    assert_eq!(compared(8 * 3 + 7, 1, true).faults(), []);
}
