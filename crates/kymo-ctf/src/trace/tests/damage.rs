//! Damage is reported once, with its place, and does not hide what is whole.

use proptest::prelude::*;

use super::*;

fn good(begin: u64) -> Packet {
    Packet::new(
        0,
        begin,
        begin + 10,
        &[(begin as u8 + 1, 1), (begin as u8 + 2, 2)],
    )
}

const GOOD_BYTES: usize = HEAD_BYTES + 6;

#[test]
fn packets_of_sizes_that_cannot_be_are_left_out() {
    let head_bits = (HEAD_BYTES * 8) as u16;
    let bad = [
        (
            Packet {
                total: Some(head_bits),
                content: Some(head_bits + 8),
                ..good(20)
            },
            "packet_context.content_size",
        ),
        (
            Packet {
                total: Some(head_bits + 12),
                content: Some(head_bits),
                ..good(20)
            },
            "packet_context.packet_size",
        ),
        (
            Packet {
                total: Some(head_bits - 8),
                content: Some(head_bits),
                ..good(20)
            },
            "packet_context.packet_size",
        ),
        (
            Packet {
                total: Some(0),
                ..good(20)
            },
            "packet_context.packet_size",
        ),
        (
            Packet {
                content: Some(head_bits - 1),
                ..good(20)
            },
            "packet_context.content_size",
        ),
    ];
    for (packet, field) in bad {
        let trace = usual(&[
            ("file", bytes_of(&[good(0), packet, good(40)])),
            ("other", good(60).bytes()),
        ]);
        assert_eq!(codes(&trace), [FaultCode::PacketSize]);
        let fault = &trace.faults()[0];
        assert_eq!(fault.field.as_deref(), Some(field));
        assert_eq!((fault.offset as usize, fault.packet), (GOOD_BYTES, Some(1)));
        assert_eq!(**fault.file, *std::path::Path::new("/trace/file"));
        assert!(fault.message.ends_with(&format!(
            "{GOOD_BYTES} bytes are left out, up to the next packet"
        )));
        // The packets around it, and the other file.
        let found: Vec<_> = trace
            .packets(0)
            .map(|p| (p.file, p.number, p.offset as usize))
            .collect();
        assert_eq!(
            found,
            [(0, 0, 0), (0, 2, 2 * GOOD_BYTES), (1, 0, 0)],
            "{fault}"
        );
        assert_eq!(events(&trace, 0).len(), 6);
    }
}

#[test]
fn the_whole_events_of_a_truncated_packet_are_kept() {
    let whole = bytes_of(&[good(0), good(20)]);
    for cut in 1..GOOD_BYTES {
        let trace = usual(&[("file", whole[..whole.len() - cut].to_vec())]);
        assert_eq!(codes(&trace), [FaultCode::Truncated]);
        let fault = &trace.faults()[0];
        assert_eq!((fault.offset as usize, fault.packet), (GOOD_BYTES, Some(1)));
        if GOOD_BYTES - cut < HEAD_BYTES {
            assert_eq!(trace.chunk_count(0), 1);
        } else {
            // Cut off means: no more events, and no second fault.
            let (events, fault) = walk(&trace, 0, 1);
            assert_eq!((events.len(), fault), ((6 - cut) / 3, None));
            assert_eq!(trace.chunk(0, 1).unwrap().bytes as usize, GOOD_BYTES - cut);
        }
    }
    // Padding that is missing costs nothing.
    let packet = Packet {
        padding: 5,
        ..good(0)
    };
    let bytes = packet.bytes();
    let trace = usual(&[("file", bytes[..bytes.len() - 2].to_vec())]);
    assert_eq!(codes(&trace), [FaultCode::Truncated]);
    assert_eq!(events(&trace, 0).len(), 2);
}

#[test]
fn zeros_after_the_last_packet_are_one_warning() {
    let bytes = [good(0).bytes(), vec![0; 4096]].concat();
    let trace = usual(&[("file", bytes)]);
    assert_eq!(codes(&trace), [FaultCode::TrailingData]);
    let fault = &trace.faults()[0];
    assert_eq!((fault.offset as usize, fault.packet), (GOOD_BYTES, None));
    assert!(fault.message.contains("4096"));
    assert_eq!(events(&trace, 0).len(), 2);

    let trace = usual(&[("file", vec![0; 10])]);
    assert_eq!(codes(&trace), [FaultCode::TrailingData]);
    assert_eq!(trace.streams().len(), 0);
}

#[test]
fn another_magic_number_or_trace_is_reported_and_decoded() {
    let packets = [
        good(0),
        Packet {
            magic: 0xDEAD_BEEF,
            ..good(20)
        },
        Packet {
            magic: 0xDEAD_BEEF,
            uuid: 2,
            ..good(40)
        },
    ];
    let trace = usual(&[("file", bytes_of(&packets))]);
    assert_eq!(codes(&trace), [FaultCode::Magic, FaultCode::TraceId]);
    let [magic, uuid] = trace.faults() else {
        panic!()
    };
    assert_eq!(
        (magic.packet, magic.field.as_deref()),
        (Some(1), Some("packet_header.magic"))
    );
    assert!(magic.message.contains("0xdeadbeef") && magic.message.contains("0xc1fc1fc1"));
    assert_eq!(
        (uuid.packet, uuid.field.as_deref()),
        (Some(2), Some("packet_header.uuid"))
    );
    assert!(uuid.message.contains("02020202-0202-"));
    assert_eq!(events(&trace, 0).len(), 6);
    assert!(trace.faults().iter().all(|fault| fault.code.is_warning()));
}

#[test]
fn a_packet_of_an_unknown_stream_class_is_left_out() {
    let trace = usual(&[(
        "file",
        bytes_of(&[
            good(0),
            Packet {
                class: 4,
                ..good(20)
            },
            good(40),
        ]),
    )]);
    assert_eq!(codes(&trace), [FaultCode::UnknownStreamClass]);
    assert!(trace.faults()[0].message.contains("stream class 4"));
    assert_eq!(events(&trace, 0), [(1, 1), (2, 2), (41, 1), (42, 2)]);
}

#[test]
fn the_next_packet_is_one_of_the_trace_with_possible_sizes() {
    let bad = Packet {
        total: Some(0),
        ..good(20)
    };
    let not_these = [
        Packet {
            uuid: 9,
            ..good(20)
        },
        Packet {
            content: Some(1),
            ..good(20)
        },
        Packet {
            total: Some(0xFFF8),
            ..good(20)
        },
        Packet {
            class: 9,
            ..good(20)
        },
    ];
    let packets = [&[good(0), bad][..], &not_these, &[good(60)]].concat();
    let trace = usual(&[("file", bytes_of(&packets))]);
    assert_eq!(codes(&trace), [FaultCode::PacketSize]);
    assert_eq!(events(&trace, 0), [(1, 1), (2, 2), (61, 1), (62, 2)]);

    // Without a magic number, packets cannot be distinguished from other bytes.
    let plain = USUAL.replace("u32 magic", "u32 other");
    let trace = one_file(&plain, bytes_of(&packets));
    assert_eq!(codes(&trace), [FaultCode::PacketSize]);
    assert!(
        trace.faults()[0]
            .message
            .ends_with("what follows in the file is left out")
    );
    assert_eq!(trace.chunk_count(0), 1);
}

#[test]
fn a_packet_that_another_one_cuts_off() {
    let whole = bytes_of(&[good(0), good(20)]);
    let bytes = [&whole[..whole.len() - 2], &good(40).bytes()].concat();
    // It says it has more bytes than follow.
    let mut bytes = bytes;
    bytes[GOOD_BYTES + 22..GOOD_BYTES + 26].fill(0xF8);
    let trace = usual(&[("file", bytes)]);
    assert_eq!(codes(&trace), [FaultCode::Truncated]);
    assert!(
        trace.faults()[0]
            .message
            .contains("another one begins after 49 of them")
    );
    assert_eq!(
        events(&trace, 0),
        [(1, 1), (2, 2), (21, 1), (41, 1), (42, 2)]
    );
    assert_eq!(trace.chunk(0, 1).unwrap().bytes, 49);
}

#[test]
fn faults_in_events_are_reported_with_their_place() {
    let mut bytes = good(0).bytes();
    // The second event is of the class `text`, with more bytes than there are.
    bytes[HEAD_BYTES + 3] = 1;
    let trace = usual(&[("file", bytes.clone())]);
    let (events, fault) = walk(&trace, 0, 0);
    assert_eq!(events.len(), 1);
    let chunk = &trace.chunk(0, 0).unwrap();
    let report = trace.report(chunk, Some((1, 1)), fault.unwrap());
    assert_eq!(
        (report.packet, report.event, report.field.as_deref()),
        (Some(0), Some(1), Some("payload.bytes[]"))
    );
    assert_eq!(report.offset as usize, HEAD_BYTES + 6);
    // The same with an unknown event.
    assert_eq!(trace.report(chunk, None, fault.unwrap()), report);
    assert_eq!(
        report.to_string(),
        "/trace/file: offset 51, packet 0, event 1, field `payload.bytes[]`: what begins at bit 408 of the packet \
         goes beyond the packet's content, which ends at bit 408"
    );

    bytes[HEAD_BYTES + 3] = 9;
    let trace = usual(&[("file", bytes)]);
    let (events, fault) = walk(&trace, 0, 0);
    let report = trace.report(&trace.chunk(0, 0).unwrap(), None, fault.unwrap());
    assert_eq!(
        (events.len(), report.code),
        (1, FaultCode::UnknownEventClass)
    );
    assert_eq!(
        (report.event, report.offset as usize),
        (Some(1), HEAD_BYTES + 3)
    );
    assert!(report.message.contains("class 9"));
}

#[test]
fn a_chunk_of_another_trace_is_empty() {
    let trace = usual(&[("file", good(0).bytes())]);
    let chunk = kymo_model::Chunk {
        stream: 7,
        ..trace.chunk(0, 0).unwrap()
    };
    assert!(matches!(trace.cursor(&chunk).next_event(), Ok(None)));
    assert!(trace.visit_packet(&chunk, &mut Numbers::default()).is_ok());
    assert_eq!(trace.chunk_count(7) + trace.packets(7).count(), 0);
}

#[test]
fn no_number_of_tiny_packets_is_too_large() {
    let metadata = "
        trace { major = 1; minor = 8; byte_order = le; };
        stream { packet.context := struct { u8 packet_size; }; };
        event { fields := struct { u8 x; }; };
    ";
    let count = 300_000;
    let packets = (0..count).flat_map(|number| [16, number as u8]);
    let trace = one_file(metadata, packets.collect());
    assert_eq!(trace.faults(), []);
    assert_eq!(trace.chunk_count(0), count);
    for number in [0, 1 << 17, count - 1] {
        let value = u64::from(number as u8);
        assert_eq!(
            walk(&trace, 0, number),
            (vec![(u64::MAX, vec![value])], None)
        );
    }
}

/// A packet of one byte can hardly be stored in less; but all that it says fits in few bits.
#[test]
fn the_smallest_packets_take_little_more_memory_than_their_file() {
    let metadata = "
        trace { major = 1; minor = 8; byte_order = le; };
        typealias integer { size = 1; align = 1; map = clock.c.value; } := t1;
        typealias integer { size = 1; align = 1; } := u1;
        stream {
            packet.context := struct {
                integer { size = 4; align = 1; } packet_size;
                t1 timestamp_begin; t1 timestamp_end; u1 events_discarded; u1 packet_seq_num;
            };
        };
        event { fields := struct { u8 x; }; };
    ";
    let count = 200_000;
    let mut random: u32 = 1;
    let packets = (0..count).map(|_| {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        8 | (random >> 24) as u8 & 0xf0
    });
    let trace = one_file(metadata, packets.collect());
    assert_eq!(trace.chunk_count(0), count);
    let memory = trace.streams[0].packets.memory();
    assert!(memory < 10 * count, "{memory}");
}

#[test]
fn more_streams_than_anybody_has() {
    let metadata = "
        trace {
            major = 1; minor = 8; byte_order = le;
            packet.header := struct { u32 stream_instance_id; };
        };
        stream { packet.context := struct { u8 packet_size; t8 timestamp_begin; }; };
        event { fields := struct { u8 x; }; };
    ";
    let packets = (0..70_000u32).flat_map(|id| [&id.to_le_bytes()[..], &[48, 0]].concat());
    let trace = one_file(metadata, packets.collect());
    assert_eq!(codes(&trace), [FaultCode::LengthLimit]);
    assert_eq!(trace.faults()[0].packet, Some(65_537));
    assert_eq!(trace.streams().len(), 65_537);
}

#[test]
fn of_very_many_faults_some_are_reported() {
    let bad = Packet {
        total: Some(0),
        ..good(20)
    };
    let count = 1500;
    let packets: Vec<_> = (0..2 * count)
        .map(|number| match number % 2 {
            0 => good(0),
            _ => bad.clone(),
        })
        .collect();
    let trace = usual(&[("file", bytes_of(&packets))]);
    assert_eq!(trace.chunk_count(0), count);
    assert_eq!(trace.faults().len(), 1001);
    let last = trace.faults().last().unwrap();
    assert_eq!(last.packet, Some(2 * count as u64 - 1));
    assert!(
        last.message
            .ends_with("; 499 faults of the file before it are not listed")
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn no_bytes_make_it_panic(
        changes in prop::collection::vec((0..600usize, any::<u8>()), 1..8),
        keep in 0..600usize,
        tracer in prop::sample::select(vec!["lttng-ust", "barectf", "none"]),
    ) {
        let mut bytes = bytes_of(&[good(0), Packet { padding: 3, ..good(20) }, good(40), good(60), good(80)]);
        for (at, byte) in changes {
            let len = bytes.len();
            bytes[at % len] = byte;
        }
        bytes.truncate(keep);
        let env = format!("{USUAL} env {{ tracer_name = \"{tracer}\"; tracer_major = 1; }};");
        let trace = one_file(&env, bytes);
        for stream in 0..trace.streams().len() {
            for chunk in 0..trace.chunk_count(stream) {
                if let (_, Some(fault)) = walk(&trace, stream, chunk) {
                    trace.report(&trace.chunk(stream, chunk).unwrap(), None, fault);
                }
            }
        }
    }
}
