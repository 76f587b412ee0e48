//! RFC v1.1: sections identified by names of files, fixed headers.

use kymo_machine::ByteOrder;
use kymo_time::Timestamp;

use super::*;

/// A packet of RFC v1.1, of session 42.
#[derive(Clone, Debug)]
pub(super) struct Rfc {
    pub(super) order: ByteOrder,
    pub(super) session: u32,
    pub(super) count: u32,
    pub(super) count_bits: u8,
    pub(super) begin: u64,
    pub(super) end: u64,
    pub(super) discarded: u32,
    /// Compression, encryption, checksum.
    pub(super) schemes: [u8; 3],
    pub(super) content: Vec<u8>,
    pub(super) padding: usize,
}

impl Rfc {
    fn new(count: u32, begin: u64, end: u64, content: &[u8]) -> Self {
        Self {
            order: ByteOrder::Little,
            session: 42,
            count,
            count_bits: 32,
            begin,
            end,
            discarded: 0,
            schemes: [0; 3],
            content: content.to_vec(),
            padding: 0,
        }
    }

    /// A packet with nothing in it.
    pub(super) fn empty(count: u32, begin: u64, end: u64, discarded: u32) -> Self {
        Self {
            discarded,
            ..Self::new(count, begin, end, &[])
        }
    }

    fn bytes(&self) -> Vec<u8> {
        let u32 = |number: u32| match self.order {
            ByteOrder::Little => number.to_le_bytes(),
            ByteOrder::Big => number.to_be_bytes(),
        };
        let u64 = |number: u64| match self.order {
            ByteOrder::Little => number.to_le_bytes(),
            ByteOrder::Big => number.to_be_bytes(),
        };
        let content = 48 + self.content.len();
        let mut bytes = u32(0xC1FC_1FC1).to_vec();
        bytes.extend(u32(self.session));
        bytes.extend(u32(content as u32));
        bytes.extend(u32((content + self.padding) as u32));
        bytes.extend(u32(0x1234_5678));
        bytes.extend(u32(self.count));
        bytes.extend(u64(self.begin));
        bytes.extend(u64(self.end));
        bytes.extend(u32(self.discarded));
        bytes.push(self.count_bits);
        bytes.extend(self.schemes);
        bytes.extend(&self.content);
        bytes.extend(std::iter::repeat_n(0xEE, self.padding));
        bytes
    }
}

pub(super) fn bytes_of(packets: &[Rfc]) -> Vec<u8> {
    packets.iter().flat_map(Rfc::bytes).collect()
}

const NATURAL: &str = "type uint32_t { parent = integer; size = 32; align = 32; }";
const SECTIONS: &str = "trace { major = 1; minor = 1; }
    section { name = few; event { header_type = type1; } }
    section { name = many; event { header_type = type2; } }
    section { name = many_1; event { header_type = type2; } }
    type x { parent = struct; fields = { { uint8_t, x } }; }
    event { name = a; id = 3; section = few; fields = x; }
    event { name = b; id = 300; section = few; fields = x; }
    event { name = c; id = 3; section = many; fields = x; }
    event { name = d; id = 65535; section = many; fields = x; }
    event { name = e; id = 3; section = many_1; fields = x; }
";

/// A trace with plain metadata, whose byte order is determined by the first file.
pub(super) fn rfc(declarations: &str, files: &[(&str, Vec<u8>)]) -> Trace {
    let text = format!("{SECTIONS}{declarations}");
    let native = || {
        files
            .iter()
            .find_map(|(_, bytes)| metadata::byte_order_of_packets(bytes))
    };
    let metadata = metadata::parse_with(text.as_bytes(), "metadata", native)
        .unwrap_or_else(|error| panic!("{error}"));
    assert!(metadata.warnings.is_empty());
    let path = PathBuf::from("/trace");
    let files = files.iter().map(|(name, bytes)| StreamFile {
        path: Arc::new(path.join(name)),
        bytes: Bytes::from(bytes.clone()),
        index: None,
        section: None,
    });
    trace(vec![Directory {
        metadata,
        metadata_file: (path.join("metadata"), Bytes::from(Vec::new())),
        files: files.collect(),
        path,
        faults: Vec::new(),
        is_whole: true,
    }])
}

/// Names and times of the events of a stream, and the value of each.
fn named_events(trace: &Trace, stream: usize) -> Vec<(String, u64, u64)> {
    let mut events = Vec::new();
    for chunk in trace.chunks(stream) {
        let mut cursor = trace.cursor(&chunk);
        while let Some(event) = cursor.next_event().unwrap() {
            let mut numbers = Numbers::default();
            event.visit(&mut numbers).unwrap();
            let name = event.class().name.as_deref().unwrap().to_owned();
            events.push((name, event.ticks().unwrap(), numbers.0[0]));
        }
    }
    events
}

#[test]
fn headers_of_type_1() {
    // Number 3 in 5 bits, time 0x0abcdef in 27; the number 31 and then number 300 in 32 bits and
    // the time in 64; number 3 again, with the clock's low bits gone round.
    let begin = 0x0000_0001_0000_0000;
    let little = [
        &[0xE3, 0xBD, 0x79, 0x15, 7][..],
        &[
            0x1F, 0, 0, 0, 0x2C, 1, 0, 0, 0x00, 0xF0, 0xCD, 0x0F, 1, 0, 0, 0, 8,
        ],
        &[0x23, 0, 0, 0, 9],
    ];
    let big = [
        &[0x18, 0xAB, 0xCD, 0xEF, 7][..],
        &[
            0xF8, 0, 0, 0, 0, 0, 1, 0x2C, 0, 0, 0, 1, 0x0F, 0xCD, 0xF0, 0x00, 8,
        ],
        &[0x18, 0, 0, 1, 9],
    ];
    let expected = [
        ("a".to_owned(), begin + 0x0abcdef, 7),
        ("b".to_owned(), 0x0000_0001_0FCD_F000, 8),
        ("a".to_owned(), 0x0000_0001_1000_0001, 9),
    ];
    for (order, events) in [(ByteOrder::Little, little), (ByteOrder::Big, big)] {
        let packed = Rfc {
            order,
            ..Rfc::new(0, begin, begin + (1 << 32), &events.concat())
        };
        let packed = rfc("", &[("few_0", packed.bytes())]);
        assert_eq!(named_events(&packed, 0), expected, "{order:?}");
        assert_eq!(codes(&packed), []);

        // Aligned: the second event begins at byte 56, its header ends at 72, which is a multiple
        // of 8, and the third begins at 76.
        let [first, second, third] = events;
        let aligned = Rfc {
            order,
            ..Rfc::new(
                0,
                begin,
                begin + (1 << 32),
                &[first, &[0; 3], second, &[0; 3], third].concat(),
            )
        };
        let aligned = rfc(NATURAL, &[("few_0", aligned.bytes())]);
        assert_eq!(named_events(&aligned, 0), expected, "{order:?}");
    }
}

#[test]
fn the_end_of_an_extended_header_of_type_1_is_aligned() {
    // Without an event before it, the header begins at byte 48 and ends at 64; after one of five
    // bytes and three of padding at 56 + 16 = 72; after one whose header begins at byte 52...
    let event = [0x23, 0, 0, 0, 9];
    let content = [
        &[0x1F, 0, 0, 0, 0x2C, 1, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0][..],
        &[1, 0, 0, 0],
        // From byte 68 to 84; the payload at 88.
        &[0x1F, 0, 0, 0, 0x2C, 1, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0],
        &[0, 0, 0, 0, 2, 0, 0, 0],
        &event,
    ]
    .concat();
    let packet = Rfc::new(0, 0, 100, &content);
    let natural = rfc(NATURAL, &[("few_0", packet.bytes())]);
    let expected = |last| {
        [
            ("b".to_owned(), 5, 1),
            ("b".to_owned(), 6, 2),
            ("a".to_owned(), last, 9),
        ]
    };
    let turn = 1 << 27;
    assert_eq!(named_events(&natural, 0), expected(turn + 1));
    // With words of 32 bits, there is nothing to align.
    let word32 = format!("{NATURAL} type uint64_t {{ parent = integer; size = 64; align = 32; }}");
    let content = [&content[..36], &content[40..]].concat();
    let packet = Rfc::new(0, 0, 100, &content);
    let word32 = rfc(&word32, &[("few_0", packet.bytes())]);
    assert_eq!(named_events(&word32, 0), expected(turn + 1));
}

#[test]
fn headers_of_type_2() {
    let begin = 0x0000_0005_8000_0000;
    let expected = [
        ("c".to_owned(), 0x0000_0005_9000_0000, 7),
        ("d".to_owned(), 0x0000_0006_1000_0000, 8),
        ("c".to_owned(), 0x0000_0007_0000_0001, 9),
    ];
    let little = [
        &[0, 0, 0, 0x90, 3, 0, 7][..],
        &[0xAA, 0xAA, 0xAA, 0xAA, 0xFF, 0xFF],
        &[0, 0, 0, 0x10, 6, 0, 0, 0, 0xFF, 0xFF, 0, 0, 8],
        &[1, 0, 0, 0, 3, 0, 9],
    ];
    let big = [
        &[0x90, 0, 0, 0, 0, 3, 7][..],
        &[0xAA, 0xAA, 0xAA, 0xAA, 0xFF, 0xFF],
        &[0, 0, 0, 6, 0x10, 0, 0, 0, 0, 0, 0xFF, 0xFF, 8],
        &[0, 0, 0, 1, 0, 3, 9],
    ];
    for (order, [first, short, extended, last]) in
        [(ByteOrder::Little, little), (ByteOrder::Big, big)]
    {
        let packet = |content: &[&[u8]]| Rfc {
            order,
            ..Rfc::new(0, begin, begin + (1 << 33), &content.concat())
        };
        let packed = packet(&[first, short, extended, last]);
        let packed = rfc("", &[("many_0", packed.bytes())]);
        assert_eq!(named_events(&packed, 0), expected, "{order:?}");
        // From byte 48: an event of 7, one of padding; 6 of the header, 2 of padding.
        let aligned = packet(&[first, &[0], short, &[0; 2], extended, &[0; 3], last]);
        let aligned = rfc(NATURAL, &[("many_0", aligned.bytes())]);
        assert_eq!(named_events(&aligned, 0), expected, "{order:?}");
    }
}

#[test]
fn names_of_files_report_sections_and_cpus() {
    let packet = |id| Rfc::new(id, 0, 0, &[0, 0, 0, 0, 3, 0, 9]).bytes();
    let files = [
        "many", "many_0", "many_00", "many_1", "many_1_5", "many_2", "many_x", "man_1", "many_",
        "many_-1", "many_+1",
    ];
    let files: Vec<_> = files
        .iter()
        .zip(0..)
        .map(|(name, id)| (*name, packet(id)))
        .collect();
    let trace = rfc("", &files);
    let streams: Vec<_> = trace
        .streams()
        .iter()
        .map(|stream| {
            (
                stream.name.rsplit('/').next().unwrap(),
                stream.class,
                stream.id,
            )
        })
        .collect();
    assert_eq!(
        streams,
        [
            ("many", 1, Some(0)),
            // The file `many_00` is of the same CPU.
            ("many_0", 1, Some(0)),
            ("many_1", 2, Some(1)),
            ("many_1_5", 2, Some(5)),
            ("many_2", 1, Some(2)),
        ]
    );
    assert_eq!(trace.chunk_count(1), 2);
    assert_eq!(codes(&trace), [FaultCode::UnknownStreamClass; 5]);
    assert_eq!(
        trace.faults()[0].to_string(),
        "/trace/many_x: offset 0: the file belongs to no section of the metadata: \
         expected a section's name, `_` and the number of a CPU; it is left out"
    );
}

#[test]
fn sizes_are_bytes_and_padding_is_none_of_the_content() {
    let event = [0x03, 0, 0, 0, 7];
    let packets = [
        Rfc {
            padding: 11,
            ..Rfc::new(0, 10, 20, &event)
        },
        Rfc::new(1, 30, 40, &event),
    ];
    let trace = rfc("", &[("few_0", bytes_of(&packets))]);
    let chunks: Vec<_> = trace.chunks(0).collect();
    assert_eq!([chunks[0].bytes, chunks[1].bytes], [64, 53]);
    assert_eq!(trace.content_bits(&chunks[0]), 53 * 8);
    assert_eq!((chunks[0].begin, chunks[0].end), (Some(10), Some(20)));
    assert_eq!(chunks[1].begin_time, Some(Timestamp::from_nanos(30)));
    assert_eq!(codes(&trace), []);
    // All fields of the header only matter to readers, but for three numbers.
    let mut numbers = Numbers::default();
    trace.visit_packet(&chunks[1], &mut numbers).unwrap();
    assert_eq!(
        numbers.0,
        [
            0xC1FC_1FC1,
            42,
            53,
            53,
            0x1234_5678,
            1,
            30,
            40,
            0,
            32,
            0,
            0,
            0
        ]
    );
}

#[test]
fn bits_that_are_left_of_the_last_byte_are_no_event() {
    const BITS: &str = "event { name = f; id = 4; section = few;
        fields = type { parent = struct; fields = { { uint3_t, x } }; }; }";
    let event = [0x04, 0, 0, 0, 5];
    let natural = format!("{NATURAL}{BITS}");
    for (declarations, content) in [
        (BITS, [event, event].concat()),
        (&*natural, [&event[..], &[0; 3], &event].concat()),
    ] {
        let packet = Rfc::new(0, 0, 0, &content);
        let trace = rfc(declarations, &[("few_0", packet.bytes())]);
        let expected = ("f".to_owned(), 0, 5);
        assert_eq!(named_events(&trace, 0), [expected.clone(), expected]);
    }
}

#[test]
fn packets_of_other_sessions_are_reported_and_decoded() {
    let event = [0x03, 0, 0, 0, 7];
    let other = |count| Rfc {
        session: 43,
        ..Rfc::new(count, 0, 0, &event)
    };
    let first = Rfc::new(0, 0, 0, &event);
    let trace = rfc("", &[("few_0", bytes_of(&[first, other(1), other(2)]))]);
    assert_eq!(trace.chunk_count(0), 3);
    assert_eq!(codes(&trace), [FaultCode::TraceId]);
    assert_eq!(
        trace.faults()[0].to_string(),
        "/trace/few_0: offset 53, packet 1, field `packet_header.session_id`: \
         the packet belongs to session 43, the trace to 42"
    );
}

#[test]
fn packets_with_unknown_schemes_are_left_out() {
    let event = [0x03, 0, 0, 0, 7];
    for (scheme, expected) in [
        (
            0,
            "offset 98, packet 1, field `packet_header.compression_scheme`: the packet has compression scheme 4",
        ),
        (
            1,
            "offset 99, packet 1, field `packet_header.encryption_scheme`: the packet has encryption scheme 4",
        ),
        (
            2,
            "offset 100, packet 1, field `packet_header.checksum_scheme`: the packet has checksum scheme 4",
        ),
    ] {
        let mut packets: Vec<_> = (0..3).map(|count| Rfc::new(count, 0, 0, &event)).collect();
        packets[1].schemes[scheme] = 4;
        let trace = rfc("", &[("few_0", bytes_of(&packets))]);
        assert_eq!(trace.chunk_count(0), 2);
        assert_eq!(trace.packet(0, 1).unwrap().number, 2);
        assert_eq!(codes(&trace), [FaultCode::Scheme]);
        assert_eq!(
            trace.faults()[0].to_string(),
            format!("/trace/few_0: {expected}, which kymo does not read; it is left out")
        );
    }
}

#[test]
fn damage_is_skipped_up_to_the_next_packet() {
    let event = [0x03, 0, 0, 0, 7];
    for order in [ByteOrder::Little, ByteOrder::Big] {
        let packet = |count| Rfc {
            order,
            ..Rfc::new(count, 0, 0, &event)
        };
        let mut bytes = bytes_of(&[packet(0), packet(1), packet(2)]);
        // Cut within the last one's event.
        let cut = bytes[..bytes.len() - 1].to_vec();
        let trace = rfc("", &[("few_0", cut)]);
        assert_eq!(codes(&trace), [FaultCode::Truncated]);
        assert_eq!(trace.chunk_count(0), 3);
        // The second one's size is that of its content less one.
        let at = match order {
            ByteOrder::Little => 53 + 12,
            ByteOrder::Big => 53 + 15,
        };
        bytes[at] -= 1;
        let trace = rfc("", &[("few_0", bytes)]);
        assert_eq!(codes(&trace), [FaultCode::PacketSize]);
        assert_eq!(trace.chunk_count(0), 2);
    }
}

#[test]
fn a_directory_may_have_its_metadata_by_cpu() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| std::fs::write(directory.path().join(name), bytes);
    assert!(!Directory::is_trace(directory.path()));
    write("metadata_x", b"").unwrap();
    write("metadata_", b"").unwrap();
    assert!(!Directory::is_trace(directory.path()));
    let text = format!("{SECTIONS}\0");
    let (first, second) = text.split_at(100);
    let packets = [first, second].map(|text| {
        Rfc {
            order: ByteOrder::Big,
            session: 7,
            ..Rfc::new(0, 0, 0, text.as_bytes())
        }
        .bytes()
    });
    write("metadata_0", &packets.concat()).unwrap();
    let packet = Rfc {
        order: ByteOrder::Big,
        ..Rfc::new(0, 0, 9, &[0x18, 0, 0, 1, 9])
    };
    write("few_3", &packet.bytes()).unwrap();
    // What LTTng would know of the file is not asked.
    std::fs::create_dir(directory.path().join("index")).unwrap();
    write("index/few_3.idx", b"nonsense").unwrap();
    std::fs::remove_file(directory.path().join("metadata_x")).unwrap();
    std::fs::remove_file(directory.path().join("metadata_")).unwrap();

    let trace = Trace::open(&[directory.path().to_path_buf()], &Options::default()).unwrap();
    assert_eq!(trace.format().version, "1.1");
    assert_eq!(trace.metadata().packetized, Some(ByteOrder::Big));
    assert_eq!(trace.metadata().session_id, Some(7));
    assert_eq!(named_events(&trace, 0), [("a".to_owned(), 1, 9)]);
    assert_eq!(codes(&trace), [FaultCode::TraceId]);

    // Plain text: the first data stream file determines the byte order.
    write("metadata", SECTIONS.as_bytes()).unwrap();
    std::fs::remove_file(directory.path().join("metadata_0")).unwrap();
    let trace = Trace::open(&[directory.path().to_path_buf()], &Options::default()).unwrap();
    assert_eq!(trace.class().byte_order, Some(ByteOrder::Big));
    assert!(trace.metadata().warnings.is_empty());
    std::fs::remove_file(directory.path().join("few_3")).unwrap();
    let trace = Trace::open(&[directory.path().to_path_buf()], &Options::default()).unwrap();
    assert_eq!(trace.class().byte_order, Some(ByteOrder::Little));
    assert_eq!(trace.metadata().warnings.len(), 1);
}
