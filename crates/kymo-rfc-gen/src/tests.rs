//! Bytes checked by hand from the RFC, and what holds of every trace.

mod layout;

use crate::*;

fn integer(size: u32, signed: bool, align: u32) -> Type {
    Type::Integer(Integer {
        size,
        signed,
        order: Order::Native,
        align: Some(align),
    })
}

fn structure(types: Vec<Type>) -> Type {
    Type::Struct(named(types))
}

fn named(types: Vec<Type>) -> Vec<Field> {
    let names = ["a", "b", "c", "d", "e"];
    types
        .into_iter()
        .zip(names)
        .map(|(ty, name)| Field {
            name: name.to_owned(),
            ty,
        })
        .collect()
}

fn members(values: Vec<Value>) -> Value {
    let names = ["a", "b", "c", "d", "e"];
    let members = values.into_iter().zip(names);
    Value::Struct(
        members
            .map(|(value, name)| (name.to_owned(), value))
            .collect(),
    )
}

fn uint(value: u64) -> Value {
    Value::Unsigned(value)
}

/// A trace of one section, stream and packet that begins at time 0, of events without fields.
fn headers(
    order: Endian,
    alignment: Alignment,
    header: HeaderType,
    events: &[(u32, u64)],
) -> Trace {
    let classes = events.iter().map(|&(id, _)| EventClass {
        name: format!("event{id}"),
        id,
        fields: Vec::new(),
    });
    let records = events.iter().enumerate().map(|(class, &(_, time))| Event {
        class,
        time,
        extended: false,
        context: None,
        payload: members(Vec::new()),
    });
    let packet = Packet {
        sequence: 0x0102_0304,
        discarded: 0x0506_0708,
        begin: 0,
        end: 0x0A0B_0C0D_0E0F_1011,
        size_unit: 64,
        events: records.collect(),
        lost: false,
    };
    Trace {
        order,
        alignment,
        session_id: 0x1112_1314,
        metadata: MetadataForm::Text,
        style: Style::default(),
        types: Vec::new(),
        sections: vec![Section {
            name: "s".to_owned(),
            header,
            context: Context::None,
            packet_count_bits: 20,
            counters: Counters::OfStream,
            events: classes.collect(),
            streams: vec![Stream {
                cpu: 5,
                packets: vec![packet],
            }],
        }],
        checksum: Checksum::None,
        filler: 0,
    }
}

/// The stream file of such a trace without the packet's header and padding.
fn content(trace: &Trace) -> Vec<u8> {
    let (files, expected) = trace.files();
    files[1].1[PACKET_HEADER_SIZE..expected.streams[0].packets[0].content_size].to_vec()
}

fn hex(text: &str) -> Vec<u8> {
    text.split_whitespace()
        .map(|byte| u8::from_str_radix(byte, 16).unwrap())
        .collect()
}

#[test]
fn packet_header() {
    let trace = |order| headers(order, Alignment::Packed, HeaderType::Type2, &[(2, 1)]);
    let (files, expected) = trace(Endian::Big).files();
    assert_eq!(files[1].0, "s_5");
    let big = "C1 FC 1F C1  11 12 13 14  00 00 00 36  00 00 00 40  00 00 00 00  00 02 03 04 \
               00 00 00 00 00 00 00 00  0A 0B 0C 0D 0E 0F 10 11  05 06 07 08  14 00 00 00 \
               00 00 00 01  00 02   00 00 00 00 00 00 00 00 00 00";
    assert_eq!(files[1].1, hex(big));
    let packet = &expected.streams[0].packets[0];
    assert_eq!((packet.content_size, packet.size), (54, 64));
    assert_eq!(packet.events[0].offset, 384);

    let (files, _) = trace(Endian::Little).files();
    let little = "C1 1F FC C1  14 13 12 11  36 00 00 00  40 00 00 00  00 00 00 00  04 03 02 00 \
                  00 00 00 00 00 00 00 00  11 10 0F 0E 0D 0C 0B 0A  08 07 06 05  14 00 00 00 \
                  01 00 00 00  02 00   00 00 00 00 00 00 00 00 00 00";
    assert_eq!(files[1].1, hex(little));
}

#[test]
fn checksum_excludes_the_header() {
    let mut trace = headers(
        Endian::Big,
        Alignment::Packed,
        HeaderType::Type1,
        &[(6, 0x31_3233)],
    );
    trace.checksum = Checksum::Crc32;
    let (files, _) = trace.files();
    assert_eq!(files[1].1[PACKET_HEADER_SIZE..][..4], *b"0123");
    // The CRC-32 of "0123".
    assert_eq!(files[1].1[16..20], [0xA6, 0x66, 0x9D, 0x7D]);
    assert_eq!(files[1].1[47], 3);
}

#[test]
fn type_1_headers() {
    let events = [(30, 0x123_4567)];
    let short = |order| {
        content(&headers(
            order,
            Alignment::Natural64,
            HeaderType::Type1,
            &events,
        ))
    };
    // 30 << 27 | 0x1234567, and 0x1234567 << 5 | 30.
    assert_eq!(short(Endian::Big), hex("F1 23 45 67"));
    assert_eq!(short(Endian::Little), hex("FE AC 68 24"));
}

#[test]
fn type_1_extended_headers() {
    // Id 31 is reserved, and the time after it is 2^27 later than the one before it.
    let events = [(31, 1), (0, 0x800_0001)];
    let extended =
        |order, alignment| content(&headers(order, alignment, HeaderType::Type1, &events));
    assert_eq!(
        extended(Endian::Big, Alignment::Packed),
        hex("F8 00 00 01  00 00 00 1F  00 00 00 00 00 00 00 01 \
             F8 00 00 01  00 00 00 00  00 00 00 00 08 00 00 01")
    );
    assert_eq!(
        extended(Endian::Little, Alignment::Packed),
        hex("3F 00 00 00  1F 00 00 00  01 00 00 00 00 00 00 00 \
             3F 00 00 00  00 00 00 00  01 00 00 08 00 00 00 00")
    );
    // A short header first: the end of the extended one is aligned on 64 bits where those are a
    // word, and not where 32 are.
    let events = [(1, 1), (31, 2)];
    let after_short =
        |alignment| content(&headers(Endian::Big, alignment, HeaderType::Type1, &events));
    let unpadded = hex("08 00 00 01  F8 00 00 02  00 00 00 1F  00 00 00 00 00 00 00 02");
    assert_eq!(after_short(Alignment::Packed), unpadded);
    assert_eq!(after_short(Alignment::Natural32), unpadded);
    assert_eq!(
        after_short(Alignment::Natural64),
        [unpadded, hex("00 00 00 00")].concat()
    );
}

#[test]
fn type_2_headers() {
    let events = [(0xABC, 0x8765_4321), (0xFFFE, 0x8765_4322)];
    let short = |order, alignment| content(&headers(order, alignment, HeaderType::Type2, &events));
    assert_eq!(
        short(Endian::Big, Alignment::Packed),
        hex("87 65 43 21 0A BC  87 65 43 22 FF FE")
    );
    assert_eq!(
        short(Endian::Little, Alignment::Natural32),
        hex("21 43 65 87 BC 0A  00 00  22 43 65 87 FE FF")
    );
}

#[test]
fn type_2_extended_headers() {
    let events = [(65535, 9), (1, 10)];
    let extended =
        |alignment| content(&headers(Endian::Big, alignment, HeaderType::Type2, &events));
    assert_eq!(
        extended(Alignment::Packed),
        hex("00 00 00 09 FF FF  00 00 00 00 00 00 00 09  00 00 FF FF  00 00 00 0A 00 01")
    );
    // From byte 6 to byte 8, a boundary of 64 bits and of 32.
    let natural =
        hex("00 00 00 09 FF FF 00 00  00 00 00 00 00 00 00 09  00 00 FF FF  00 00 00 0A 00 01");
    assert_eq!(extended(Alignment::Natural64), natural);
    assert_eq!(extended(Alignment::Natural32), natural);
    // One more begins at byte 20, so that its short part ends at 26.
    let events = [(65535, 9), (65536, 10)];
    let twice =
        |alignment| content(&headers(Endian::Big, alignment, HeaderType::Type2, &events)).len();
    assert_eq!(twice(Alignment::Packed), 2 * 18);
    assert_eq!(twice(Alignment::Natural32), 28 + 12);
    assert_eq!(twice(Alignment::Natural64), 32 + 12);
}

#[test]
fn headers_are_extended_when_time_needs_it() {
    let extended = |header, times: [u64; 3]| {
        let events = [(0, times[0]), (1, times[1]), (2, times[2])];
        let (_, expected) = headers(Endian::Big, Alignment::Packed, header, &events).files();
        let events = &expected.streams[0].packets[0].events;
        [events[0].extended, events[1].extended, events[2].extended]
    };
    let wrap = 1 << 27;
    assert_eq!(
        extended(HeaderType::Type1, [wrap - 1, 2 * wrap - 2, 3 * wrap - 2]),
        [false, false, true]
    );
    let wrap = 1 << 32;
    assert_eq!(
        extended(HeaderType::Type2, [wrap, 2 * wrap - 1, 2 * wrap - 1]),
        [true, false, false]
    );
}

#[test]
fn event_size_is_that_of_the_payload() {
    let mut trace = headers(
        Endian::Big,
        Alignment::Natural32,
        HeaderType::Type1,
        &[(1, 2)],
    );
    let section = &mut trace.sections[0];
    section.context = Context::EventSize;
    section.events[0].fields = named(vec![integer(32, false, 32), integer(3, false, 1)]);
    section.streams[0].packets[0].events[0].payload = members(vec![uint(1), uint(7)]);
    assert_eq!(
        content(&trace),
        hex("08 00 00 02  00 05 00 00  00 00 00 01 E0")
    );
    let (_, expected) = trace.files();
    let size = ("payload_size".to_owned(), uint(5));
    assert_eq!(
        expected.streams[0].packets[0].events[0].context,
        Some(Value::Struct(vec![size]))
    );
}

#[test]
fn losses_are_counted_between_packets() {
    let mut trace = headers(Endian::Big, Alignment::Packed, HeaderType::Type1, &[]);
    let section = &mut trace.sections[0];
    section.packet_count_bits = 2;
    let packet = |sequence, discarded, lost| Packet {
        sequence,
        discarded,
        begin: 0,
        end: 0,
        size_unit: 1,
        events: Vec::new(),
        lost,
    };
    section.streams[0].packets = vec![
        packet(2, 3, false),
        packet(3, 4, true),
        packet(4, 5, true),
        packet(5, (1 << 32) + 2, false),
        packet(6, (1 << 32) + 2, false),
    ];
    let (files, expected) = trace.files();
    let header = |i: usize, at: usize| files[1].1[i * PACKET_HEADER_SIZE + at];
    assert_eq!([header(0, 23), header(1, 23), header(2, 23)], [2, 1, 2]);
    assert_eq!([header(0, 43), header(1, 43), header(2, 43)], [3, 2, 2]);
    let packets = &expected.streams[0].packets;
    let losses: Vec<_> = packets
        .iter()
        .map(|packet| (packet.packets_missing, packet.events_discarded))
        .collect();
    assert_eq!(losses, [(0, 0), (2, u32::MAX), (0, 0)]);
}

#[test]
fn streams_may_count_together() {
    let mut trace = headers(Endian::Big, Alignment::Packed, HeaderType::Type1, &[]);
    let section = &mut trace.sections[0];
    section.counters = Counters::OfSection;
    let packet = |sequence, discarded, lost| Packet {
        sequence,
        discarded,
        begin: 0,
        end: 0,
        size_unit: 1,
        events: Vec::new(),
        lost,
    };
    section.streams[0].packets = vec![packet(7, 0, false), packet(10, 8, false)];
    section.streams.push(Stream {
        cpu: 6,
        packets: vec![packet(8, 2, false), packet(9, 4, true)],
    });
    let (_, expected) = trace.files();
    let losses: Vec<_> = expected
        .streams
        .iter()
        .flat_map(|stream| &stream.packets)
        .map(|packet| (packet.packets_missing, packet.events_discarded))
        .collect();
    assert_eq!(losses, [(0, 0), (1, 6), (0, 2)]);
}

const SMALL_TEXT: &str = "\
trace {
    major = 1;
    minor = 1;
}

type five_t {
    parent = integer;
    size = 5;
    signed = true;
    align = 1;
}

section {
    name = s;
    event {
        header_type = type1;
        context {
            type {
                parent = struct;
                fields = {
                    { uint32_t, a },
                };
            }
        }
    }
}

event {
    name = event3;
    id = 3;
    section = s;
    fields = type {
        parent = struct;
        fields = {
            { five_t, a },
            { type {
                parent = sequence;
                length_type = uint7_t;
                elem_type = type {
                    parent = string;
                    encoding = ASCII;
                };
            }, b },
            { type {
                parent = enum;
                size = 8;
                signed = false;
                byte_order = le;
                map = {
                    { 1, \"one\" },
                };
            }, c },
        };
    };
}
";

/// The trace that [`SMALL_TEXT`] describes.
fn described() -> Trace {
    let mut trace = headers(Endian::Big, Alignment::Packed, HeaderType::Type1, &[(3, 1)]);
    trace.types = vec![Declaration {
        name: "five_t".to_owned(),
        ty: integer(5, true, 1),
        ancestors: 0,
    }];
    let section = &mut trace.sections[0];
    section.context = Context::Fields(named(vec![integer(32, false, 8)]));
    section.events[0].fields = named(vec![
        integer(5, true, 1),
        Type::Sequence {
            length: Integer::predefined(7, false, Alignment::Packed),
            element: Box::new(Type::Text(Encoding::Ascii)),
        },
        Type::Enumeration {
            integer: Integer {
                size: 8,
                signed: false,
                order: Order::Le,
                align: None,
            },
            map: vec![(1, "one".to_owned())],
        },
    ]);
    section.streams[0].packets.clear();
    trace
}

#[test]
fn metadata_text() {
    let (files, _) = described().files();
    assert_eq!(files[0].0, "metadata");
    assert_eq!(str::from_utf8(&files[0].1), Ok(SMALL_TEXT));
}

#[test]
fn metadata_packets_hold_strings() {
    let mut trace = described();
    trace.metadata = MetadataForm::Packets { strings: 3 };
    let file = &trace.files().0[0].1;
    // Four items: two packets.
    let size = |at: usize| usize::from(file[at]) << 8 | usize::from(file[at + 1]);
    let (content, packet) = (size(10), size(14));
    assert_eq!(packet, content.next_multiple_of(8));
    let second = &file[packet..];
    assert_eq!(second[..4], [0xC1, 0xFC, 0x1F, 0xC1]);
    assert_eq!(second[20..24], [0, 0, 0, 1]);
    let strings = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let first = strings(&file[PACKET_HEADER_SIZE..content]);
    assert_eq!(first.matches('\0').count(), 3);
    let second_content = usize::from(second[10]) << 8 | usize::from(second[11]);
    let rest = strings(&second[PACKET_HEADER_SIZE..second_content]);
    assert!(rest.starts_with("event {\n    name = event3;") && rest.ends_with("}\n\0"));
    assert_eq!(
        (first + &rest).replace('\0', "\n"),
        format!("{SMALL_TEXT}\n")
    );
}

#[test]
fn attributes_are_spread_over_ancestors() {
    let mut trace = described();
    trace.types[0].ancestors = 2;
    trace.style.overrides = true;
    let mut kinds = Vec::new();
    for seed in 0..50 {
        trace.style.seed = seed;
        let text = String::from_utf8(trace.files().0[0].1.clone()).unwrap();
        assert!(
            text.contains("abstract_type five_t_base0 {") || text.contains("type five_t_base0 {")
        );
        assert!(text.contains("parent = five_t_base0;"));
        assert!(text.contains("\ntype five_t {\n    parent = five_t_base1;"));
        kinds.push((
            text.contains("\ntype five_t_base1"),
            text.matches("align = ").count() > 1,
        ));
    }
    for kind in [(true, true), (true, false), (false, true), (false, false)] {
        assert!(kinds.contains(&kind), "{kind:?}");
    }
}

/// All liberties.
fn free_style(seed: u64) -> Style {
    Style {
        seed,
        varied: true,
        overrides: true,
        commas: true,
        semicolons: true,
        dots: true,
        brackets: false,
        packet_header: true,
    }
}

#[test]
fn random_traces_are_whole() {
    let (mut extended, mut missing, mut discarded) = (0, 0, 0);
    for seed in 0..300 {
        let options = Options {
            style: (seed % 2 == 1).then(|| free_style(seed)),
            ..Options::default()
        };
        let trace = Trace::random(seed, &options);
        let (files, expected) = trace.files();
        assert_eq!(
            files,
            Trace::random(seed, &options).files().0,
            "seed {seed}"
        );
        for ((_, bytes), stream) in files[1..].iter().zip(&expected.streams) {
            let mut offset = 0;
            let mut clock = 0;
            for packet in &stream.packets {
                assert_eq!(packet.offset, offset);
                offset += packet.size;
                assert!(clock <= packet.begin && packet.begin <= packet.end);
                clock = packet.begin;
                for event in &packet.events {
                    assert!(clock <= event.time && event.time <= packet.end);
                    assert!(usize::try_from(event.offset / 8).unwrap() < packet.content_size);
                    clock = event.time;
                    extended += usize::from(event.extended);
                }
                missing += packet.packets_missing;
                discarded += u64::from(packet.events_discarded);
            }
            assert_eq!(bytes.len(), offset);
        }
        if trace.metadata == MetadataForm::Text {
            let text = str::from_utf8(&files[0].1).unwrap();
            assert_eq!(text.matches('{').count(), text.matches('}').count());
        }
    }
    assert!(extended > 0 && missing > 0 && discarded > 0);
}

#[test]
fn small_trace() {
    let (files, expected) = Trace::small().files();
    let names: Vec<_> = files.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["metadata", "kernel_0", "kernel_1", "network_0"]);
    let losses: Vec<_> = expected.streams[0]
        .packets
        .iter()
        .map(|packet| (packet.packets_missing, packet.events_discarded))
        .collect();
    assert_eq!(losses, [(0, 0), (1, 17)]);
    let events = &expected.streams[0].packets[0].events;
    let extended: Vec<_> = events.iter().map(|event| event.extended).collect();
    assert_eq!(extended, [false, false, true, false]);
}
