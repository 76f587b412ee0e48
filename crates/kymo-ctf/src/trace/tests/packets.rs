//! Finding packets, and what is reported about them.

use super::*;

#[test]
fn packets_of_several_streams_in_one_file() {
    let packets = [
        Packet::new(7, 10, 20, &[(11, 1), (12, 2)]),
        Packet::new(9, 5, 25, &[(6, 3)]),
        Packet {
            padding: 4,
            ..Packet::new(7, 20, 30, &[])
        },
        Packet::new(9, 25, 30, &[(27, 4)]),
    ];
    let trace = usual(&[("file", bytes_of(&packets))]);
    assert_eq!(trace.faults(), []);
    let streams: Vec<_> = trace
        .streams()
        .iter()
        .map(|s| (s.class, s.id, &*s.name))
        .collect();
    assert_eq!(
        streams,
        [(3, Some(7), "/trace/file"), (3, Some(9), "/trace/file")]
    );
    assert_eq!(events(&trace, 0), [(11, 1), (12, 2)]);
    assert_eq!(events(&trace, 1), [(6, 3), (27, 4)]);

    let chunk = &trace.chunk(0, 1).unwrap();
    assert_eq!(
        (chunk.stream, chunk.number, chunk.begin, chunk.end),
        (0, 1, Some(20), Some(30))
    );
    assert_eq!(chunk.bytes as usize, HEAD_BYTES + 4);
    assert_eq!(chunk.begin_time.unwrap().as_nanos(), 100_000_000_020);
    assert_eq!(chunk.end_time.unwrap().as_nanos(), 100_000_000_030);
    let packet = trace.packet(0, 1).unwrap();
    assert_eq!((packet.file, packet.number), (0, 2));
    assert_eq!(packet.offset as usize, 2 * HEAD_BYTES + 9);
    assert_eq!(packet.total_bits - packet.content_bits, 32);
    assert_eq!(trace.format().version, "1.8");
    assert_eq!(trace.bytes() as usize, bytes_of(&packets).len());
}

#[test]
fn streams_come_in_the_order_of_their_files_and_get_numbers() {
    let metadata = "
        trace { major = 1; minor = 8; byte_order = le; };
        stream { event.header := struct { u8 id; }; };
        event { id = 0; fields := struct { u8 x; }; };
    ";
    let files = [
        ("b", vec![0, 1, 0, 2]),
        ("a", vec![0, 3]),
        ("empty", vec![]),
    ];
    let trace = trace(vec![directory("/trace", metadata, &files[..2])]);
    let streams: Vec<_> = trace.streams().iter().map(|s| (s.id, &*s.name)).collect();
    assert_eq!(streams, [(Some(0), "/trace/a"), (Some(1), "/trace/b")]);
    // Without sizes the packet is the file.
    assert_eq!(trace.packet(1, 0).unwrap().content_bits, 32);
    assert_eq!(events(&trace, 1), [(u64::MAX, 1), (u64::MAX, 2)]);
    assert_eq!(trace.chunk(1, 0).unwrap().begin, None);
    assert_eq!(trace.chunk(1, 0).unwrap().begin_time, None);
}

#[test]
fn packets_may_be_nothing_but_a_header() {
    let metadata =
        "trace { major = 1; minor = 8; byte_order = be; packet.header := struct { u32 magic; }; };";
    let trace = one_file(metadata, vec![0xC1, 0xFC, 0x1F, 0xC1]);
    assert_eq!(trace.faults(), []);
    assert_eq!(walk(&trace, 0, 0), (vec![], None));
    // More than that has no meaning.
    let trace = one_file(metadata, vec![0xC1, 0xFC, 0x1F, 0xC1, 5]);
    let (_, fault) = walk(&trace, 0, 0);
    assert_eq!(fault.unwrap().code, FaultCode::UnknownEventClass);
}

#[test]
fn each_size_stands_for_the_other() {
    let metadata = |size: &str| {
        format!(
            "trace {{ major = 1; minor = 8; byte_order = le; }};
             stream {{ packet.context := struct {{ u8 {size}; }}; event.header := struct {{ u8 id; }}; }};
             event {{ id = 0; fields := struct {{ u8 x; }}; }};"
        )
    };
    for size in ["packet_size", "content_size"] {
        let trace = one_file(&metadata(size), vec![24, 0, 1, 40, 0, 2, 0, 3]);
        assert_eq!(trace.faults(), []);
        let sizes: Vec<_> = trace
            .packets(0)
            .map(|p| (p.total_bits, p.content_bits))
            .collect();
        assert_eq!(sizes, [(24, 24), (40, 40)]);
        assert_eq!(
            events(&trace, 0),
            [(u64::MAX, 1), (u64::MAX, 2), (u64::MAX, 3)]
        );
    }
    // Content that ends within a byte: the packet ends with that byte.
    let trace = one_file(&metadata("content_size"), vec![20, 0, 1, 8]);
    assert_eq!(trace.packet(0, 0).unwrap().total_bits, 24);
    assert_eq!(trace.packet(0, 1).unwrap().offset, 3);
}

#[test]
fn what_packets_say_for_readers_only_is_distinguished() {
    let trace = usual(&[("file", Packet::new(0, 1, 2, &[]).bytes())]);
    let schema = &trace.streams()[0].packet_schema;
    let fields = (0..schema.fields().len() as u32).map(FieldId);
    let shown: Vec<_> = fields
        .filter(|&field| !trace.is_packet_bookkeeping(0, field))
        .filter_map(|field| schema.field(field).name.clone())
        .collect();
    assert_eq!(shown, ["cpu".into()]);
    assert!(!trace.is_packet_bookkeeping(0, FieldId(1000)));
    assert!(!trace.is_packet_bookkeeping(5, FieldId(0)));

    let mut numbers = Numbers::default();
    trace
        .visit_packet(&trace.chunk(0, 0).unwrap(), &mut numbers)
        .unwrap();
    assert_eq!(numbers.0.last(), Some(&0xCC));
}

#[test]
fn lost_events_and_packets_are_counted() {
    let packets = [
        Packet::new(0, 10, 20, &[]).counted(250, 254),
        Packet::new(0, 20, 30, &[]).counted(250, 255),
        Packet::new(0, 35, 40, &[]).counted(4, 2),
        Packet::new(0, 40, 50, &[]).counted(4, 2),
        Packet::new(0, 50, 60, &[]).counted(4, 200),
        Packet::new(0, 60, 70, &[]).counted(3, 100),
    ];
    let trace = usual(&[("file", bytes_of(&packets))]);
    let lost = |chunk: usize| {
        let chunk = &trace.chunk(0, chunk).unwrap();
        let tuple =
            |lost: kymo_model::Lost| (lost.count.unwrap(), lost.begin.unwrap(), lost.end.unwrap());
        (chunk.lost_events.map(tuple), chunk.lost_chunks.map(tuple))
    };
    // What was lost before the first packet is not known.
    assert_eq!(lost(0), (None, None));
    assert_eq!(lost(1), (None, None));
    assert_eq!(lost(2), (Some((10, 30, 40)), Some((2, 30, 35))));
    // A duplicate number is not a gap.
    assert_eq!(lost(3), (None, None));
    assert_eq!(lost(4), (None, Some((197, 50, 50))));
    assert_eq!(lost(5), (Some((255, 60, 70)), None));
}

#[test]
fn losses_without_times() {
    let metadata = "
        trace { major = 1; minor = 8; byte_order = le; };
        stream { packet.context := struct { u8 packet_size; u64 events_discarded; u64 packet_seq_num; }; };
        event { fields := struct { u8 x; }; };
    ";
    let packet = |discarded: u64, sequence: u64| {
        let mut bytes = vec![17 * 8];
        bytes.extend(discarded.to_le_bytes());
        bytes.extend(sequence.to_le_bytes());
        bytes
    };
    let trace = one_file(
        metadata,
        [packet(0, 5), packet(17, 8), packet(3, 2)].concat(),
    );
    let lost = |count| {
        Some(kymo_model::Lost {
            count,
            begin: None,
            end: None,
        })
    };
    let chunks: Vec<_> = trace.chunks(0).collect();
    assert_eq!((chunks[0].lost_events, chunks[0].lost_chunks), (None, None));
    assert_eq!(
        (chunks[1].lost_events, chunks[1].lost_chunks),
        (lost(Some(17)), lost(Some(2)))
    );
    // A counter of 64 bits does not go round.
    assert_eq!((chunks[2].lost_events, chunks[2].lost_chunks), (None, None));
}

#[test]
fn shifts_move_every_clock() {
    let files = [("file", Packet::new(0, 1, 2, &[]).bytes())];
    let options = Options::default();
    let mut trace = Trace::new(vec![directory("/trace", USUAL, &files)], &options).unwrap();
    // Shifts add up.
    for nanos in [-1_000_000_000, 1_500_000_000] {
        let from_unix_epoch = nanos < 0;
        let shift = Shift {
            nanos,
            from_unix_epoch,
        };
        trace.shift(shift).unwrap();
    }
    let clock = trace.streams()[0].clock.as_ref().unwrap();
    assert_eq!(clock.timestamp(1).unwrap().as_nanos(), 100_500_000_001);
    assert_eq!(clock.origin, kymo_time::Origin::UnixEpoch);
    assert_eq!(
        trace.chunk(0, 0).unwrap().begin_time.unwrap().as_nanos(),
        100_500_000_001
    );
}
