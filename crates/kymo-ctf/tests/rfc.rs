//! Traces of RFC v1.1 that a generator made which knows nothing of this crate: every value, time
//! and loss must come back.

use std::path::Path;

use kymo_ctf::trace::{Options, Trace};
use kymo_model::{
    Chunk, Cursor, Event, Fault, FaultCode, FaultReport, FieldId, Kind, Lost, Recording, Schema,
    Scope, Visitor,
};
use kymo_rfc_gen as rfc;
use rfc::{Expected, ExpectedEvent, ExpectedPacket, Value};
use tempfile::TempDir;

/// A trace that `seed` and `options` decide, in a directory, and what is in it.
fn written(trace: &rfc::Trace) -> (TempDir, Expected) {
    let dir = TempDir::new().expect("a temporary directory");
    let expected = rfc::write(trace, dir.path()).expect("the trace is written");
    (dir, expected)
}

fn open(dir: &Path) -> Trace {
    Trace::open(&[dir.to_owned()], &Options::default()).unwrap_or_else(|error| {
        let metadata = std::fs::read(dir.join("metadata")).unwrap_or_default();
        panic!("{error}\n{}", String::from_utf8_lossy(&metadata))
    })
}

/// A trace that a seed decides comes back whole.
fn check(seed: u64, options: &rfc::Options) {
    let generated = rfc::Trace::random(seed, options);
    let (dir, expected) = written(&generated);
    let place = format!("seed {seed}, {options:?}");
    let trace = open(dir.path());
    assert_eq!(trace.faults(), [], "{place}");
    compare(&trace, &expected, &place);
}

/// Everything expected is in the trace, and nothing else.
fn compare(trace: &Trace, expected: &Expected, place: &str) {
    let with_packets = expected.streams.iter().filter(|s| !s.packets.is_empty());
    assert_eq!(trace.streams().len(), with_packets.count(), "{place}");
    for stream in &expected.streams {
        let place = format!("{place}, {}", stream.file);
        if stream.packets.is_empty() {
            continue;
        }
        let chunks = chunks_of(trace, &stream.file);
        assert_eq!(chunks.len(), stream.packets.len(), "{place}");
        for (packet, chunk) in stream.packets.iter().zip(&chunks) {
            let place = format!("{place}, packet {}", chunk.number);
            compare_packet(trace, chunk, packet, &place);
        }
    }
}

/// The chunks of the stream of the file with this name.
fn chunks_of(trace: &Trace, file: &str) -> Vec<Chunk> {
    let mut named = trace.streams().iter().enumerate().filter(|(_, info)| {
        Path::new(&*info.name)
            .file_name()
            .and_then(|name| name.to_str())
            == Some(file)
    });
    let (stream, _) = named.next().unwrap_or_else(|| panic!("no stream {file}"));
    assert!(named.next().is_none(), "two streams {file}");
    trace.chunks(stream).collect()
}

fn compare_packet(trace: &Trace, chunk: &Chunk, expected: &ExpectedPacket, place: &str) {
    assert_eq!(chunk.bytes, expected.size as u64, "{place}");
    assert_eq!(
        trace.content_bits(chunk),
        expected.content_size as u64 * 8,
        "{place}"
    );
    assert_eq!(
        (chunk.begin, chunk.end),
        (Some(expected.begin), Some(expected.end)),
        "{place}"
    );
    let packet = trace.packet(chunk.stream, chunk.number).expect("a packet");
    assert_eq!(packet.offset, expected.offset as u64, "{place}");
    let count = |lost: Option<Lost>| {
        // Whatever was lost was lost before the packet began.
        assert!(lost.is_none_or(|lost| lost.end == chunk.begin), "{place}");
        lost.map_or(Some(0), |lost| lost.count)
    };
    assert_eq!(
        (count(chunk.lost_chunks), count(chunk.lost_events)),
        (
            Some(expected.packets_missing),
            Some(expected.events_discarded.into())
        ),
        "{place}"
    );
    let walk = Walk::of(trace, chunk);
    assert_eq!(walk.fault, None, "{place}");
    assert_eq!(walk.events.len(), expected.events.len(), "{place}");
    for (i, expected) in expected.events.iter().enumerate() {
        assert_eq!(walk.events[i], plain(expected), "{place}, event {i}");
        // It begins where the one before it ends, before the padding to its header.
        let padding = expected.offset.checked_sub(walk.begins[i]);
        assert!(
            padding.is_some_and(|padding| padding < 32),
            "{place}, event {i}: {padding:?}"
        );
    }
}

/// An event as both sides report it.
#[derive(Debug, PartialEq)]
struct Reported {
    ticks: Option<u64>,
    nanos: Option<i64>,
    id: u64,
    name: Option<String>,
    context: Option<Value>,
    payload: Option<Value>,
}

fn plain(event: &ExpectedEvent) -> Reported {
    Reported {
        ticks: Some(event.time),
        // The draft has no frequency: a cycle is a nanosecond.
        nanos: i64::try_from(event.time).ok(),
        id: event.id.into(),
        name: Some(event.name.clone()),
        context: event.context.clone(),
        payload: Some(event.payload.clone()),
    }
}

/// What is found in a chunk.
#[derive(Default)]
struct Walk {
    events: Vec<Reported>,
    /// Where the events begin, in bits.
    begins: Vec<u64>,
    /// What ended the chunk before its end.
    fault: Option<Fault>,
}

impl Walk {
    fn of(trace: &Trace, chunk: &Chunk) -> Self {
        let mut walk = Self::default();
        walk.fault = walk.go(&mut trace.cursor(chunk)).err();
        walk
    }

    fn go(&mut self, cursor: &mut impl Cursor) -> Result<(), Fault> {
        while let Some(event) = cursor.next_event()? {
            let class = event.class();
            let mut collector = Collector::new(&class.schema);
            event.visit(&mut collector)?;
            let mut reported = Reported {
                ticks: event.ticks(),
                nanos: event.timestamp().map(|time| time.as_nanos()),
                id: class.id,
                name: class.name.as_deref().map(str::to_owned),
                context: None,
                payload: None,
            };
            for (scope, value) in collector.roots {
                match scope {
                    Scope::CommonContext => reported.context = Some(value),
                    Scope::Payload => reported.payload = Some(value),
                    other => panic!("the draft knows no {}", other.name()),
                }
            }
            self.begins.push(event.begin_bit());
            self.events.push(reported);
        }
        Ok(())
    }
}

/// Assembles values as the generator reports them.
struct Collector<'s> {
    schema: &'s Schema,
    /// Parts of the structures and arrays that have begun.
    open: Vec<Vec<(String, Value)>>,
    roots: Vec<(Scope, Value)>,
}

impl<'s> Collector<'s> {
    fn new(schema: &'s Schema) -> Self {
        Self {
            schema,
            open: Vec::new(),
            roots: Vec::new(),
        }
    }

    fn add(&mut self, field: FieldId, value: Value) {
        match self.open.last_mut() {
            Some(parts) => {
                let name = self.schema.field(field).name.as_deref().unwrap_or_default();
                parts.push((name.to_owned(), value));
            }
            None => self.roots.push((self.schema.scope_of(field), value)),
        }
    }

    fn integer(&mut self, field: FieldId, bits: u64, plain: Value, number: i128) {
        let value = match &self.schema.field(field).kind {
            Kind::Uint {
                labels: Some(labels),
                ..
            }
            | Kind::Sint {
                labels: Some(labels),
                ..
            } => Value::Label {
                value: number,
                label: labels.of(bits).next().map(str::to_owned),
            },
            _ => plain,
        };
        self.add(field, value);
    }

    fn end(&mut self) -> Vec<(String, Value)> {
        self.open.pop().expect("what ends has begun")
    }
}

impl Visitor for Collector<'_> {
    fn uint(&mut self, field: FieldId, value: u64) {
        self.integer(field, value, Value::Unsigned(value), value.into());
    }

    fn sint(&mut self, field: FieldId, value: i64) {
        self.integer(
            field,
            value.cast_unsigned(),
            Value::Signed(value),
            value.into(),
        );
    }

    fn text(&mut self, field: FieldId, text: &[u8]) {
        self.add(field, Value::Text(text.to_vec()));
    }

    fn begin_struct(&mut self, _field: FieldId) {
        self.open.push(Vec::new());
    }

    fn end_struct(&mut self, field: FieldId) {
        let members = self.end();
        self.add(field, Value::Struct(members));
    }

    fn begin_array(&mut self, _field: FieldId, _length: u64) {
        self.open.push(Vec::new());
    }

    fn end_array(&mut self, field: FieldId) {
        let elements = self.end().into_iter().map(|(_, value)| value).collect();
        self.add(field, Value::Array(elements));
    }
}

/// Traces of a kind that are made up: fewer on big-endian machines, which are emulated and slow.
const SEEDS: u64 = if cfg!(target_endian = "big") { 20 } else { 300 };

#[test]
fn plain_metadata() {
    for seed in 0..SEEDS {
        check(seed, &rfc::Options::default());
    }
}

/// All liberties of the metadata text.
fn free_style(seed: u64) -> rfc::Style {
    rfc::Style {
        seed,
        varied: true,
        overrides: true,
        commas: true,
        semicolons: true,
        dots: true,
        brackets: true,
        packet_header: true,
    }
}

#[test]
fn metadata_that_takes_liberties() {
    for seed in 1000..1000 + SEEDS {
        let options = rfc::Options {
            style: Some(free_style(seed)),
            ..rfc::Options::default()
        };
        check(seed, &options);
    }
}

#[test]
fn every_machine_and_header() {
    use rfc::{Alignment, Endian, HeaderType};
    for order in [Endian::Little, Endian::Big] {
        for alignment in [
            Alignment::Packed,
            Alignment::Natural32,
            Alignment::Natural64,
        ] {
            for header in [HeaderType::Type1, HeaderType::Type2] {
                let options = rfc::Options {
                    order: Some(order),
                    alignment: Some(alignment),
                    header: Some(header),
                    ..rfc::Options::default()
                };
                for seed in 2000..2025 {
                    check(seed, &options);
                }
            }
        }
    }
}

#[test]
fn the_small_trace() {
    let (dir, expected) = written(&rfc::Trace::small());
    let trace = open(dir.path());
    assert_eq!(trace.faults(), []);
    compare(&trace, &expected, "small");
    let format = trace.format();
    assert_eq!((format.name, format.version), ("ctf", "1.1"));
}

/// A trace, open, after `damage` has changed its files, and what would be in it without.
fn damaged(
    generated: &rfc::Trace,
    damage: impl Fn(&str, &mut Vec<u8>),
) -> (TempDir, Trace, Expected) {
    let dir = TempDir::new().expect("a temporary directory");
    let (files, expected) = generated.files();
    for (name, mut bytes) in files {
        damage(&name, &mut bytes);
        std::fs::write(dir.path().join(name), bytes).expect("the file is written");
    }
    let trace = open(dir.path());
    (dir, trace, expected)
}

fn codes(trace: &Trace) -> Vec<FaultCode> {
    trace.faults().iter().map(|fault| fault.code).collect()
}

#[test]
fn the_example_is_the_small_trace() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/rfc-small");
    for (name, bytes) in rfc::Trace::small().files().0 {
        let found = std::fs::read(folder.join(&name)).expect("the example is there");
        assert_eq!(found, bytes, "{name}");
    }
}

/// Traces of seeds, each with the position of the first stream that has two packets.
fn with_two_packets(seeds: std::ops::Range<u64>) -> impl Iterator<Item = (rfc::Trace, usize)> {
    seeds.filter_map(|seed| {
        let trace = rfc::Trace::random(seed, &rfc::Options::default());
        let (_, expected) = trace.files();
        let stream = expected.streams.iter().position(|s| s.packets.len() > 1)?;
        Some((trace, stream))
    })
}

#[test]
fn a_truncated_file_keeps_what_is_whole() {
    for (generated, stream) in with_two_packets(3000..3040) {
        let (_, expected) = generated.files();
        let stream = &expected.streams[stream];
        let last = stream.packets.last().expect("two packets");
        // Somewhere in the last packet's content, or in its header.
        let places = [1, 47, 48, (48 + last.content_size) / 2, last.size - 1];
        for left in places.into_iter().filter(|&left| left < last.size) {
            let (_dir, trace, _) = damaged(&generated, |name, bytes| {
                if name == stream.file {
                    bytes.truncate(last.offset + left);
                }
            });
            let place = format!("{}, {left} bytes left", stream.file);
            let faults = trace.faults();
            assert_eq!(faults.len(), 1, "{place}: {faults:?}");
            assert!(faults[0].file.ends_with(&stream.file), "{place}");
            let chunks = chunks_of(&trace, &stream.file);
            let whole = stream.packets.len() - 1;
            for (packet, chunk) in stream.packets[..whole].iter().zip(&chunks) {
                compare_packet(&trace, chunk, packet, &place);
            }
            if left < rfc::PACKET_HEADER_SIZE {
                assert_eq!(chunks.len(), whole, "{place}");
                continue;
            }
            assert_eq!(codes(&trace), [FaultCode::Truncated], "{place}");
            // Of the last packet, every event that is there as a whole.
            let events = Walk::of(&trace, &chunks[whole]).events;
            let expected: Vec<_> = last.events.iter().map(plain).collect();
            assert_eq!(events, expected[..events.len()], "{place}");
            let next = last.events.get(events.len() + 1);
            assert!(
                next.is_none_or(|next| next.offset > left as u64 * 8),
                "{place}: an event is missing"
            );
        }
    }
}

#[test]
fn a_missing_packet_is_reported() {
    let mut reported = 0;
    for (generated, _) in with_two_packets(3100..3130) {
        for section in 0..generated.sections.len() {
            for stream in 0..generated.sections[section].streams.len() {
                let packets = generated.sections[section].streams[stream].packets.len();
                // The first packet stays: it shows how streams count.
                for i in 1..packets {
                    let mut without = generated.clone();
                    without.sections[section].streams[stream].packets[i].lost = true;
                    let (dir, expected) = written(&without);
                    let trace = open(dir.path());
                    assert_eq!(trace.faults(), []);
                    compare(&trace, &expected, &format!("{section}, {stream}, {i}"));
                    reported += u32::from(
                        (0..trace.streams().len())
                            .flat_map(|stream| trace.chunks(stream))
                            .any(|chunk| chunk.lost_chunks.is_some()),
                    );
                }
            }
        }
    }
    assert!(reported > 0, "no loss was told");
}

#[test]
fn a_packet_with_another_magic_is_reported() {
    for (mut generated, stream) in with_two_packets(3200..3240) {
        // Without packets the byte order of the metadata would be that of the first packet.
        generated.metadata = rfc::MetadataForm::Packets { strings: 5 };
        let (_, expected) = generated.files();
        let stream = &expected.streams[stream];
        for (i, packet) in stream.packets.iter().enumerate() {
            let (_dir, trace, _) = damaged(&generated, |name, bytes| {
                if name == stream.file {
                    bytes[packet.offset] ^= 0x10;
                }
            });
            assert_eq!(codes(&trace), [FaultCode::Magic], "{}, {i}", stream.file);
            let fault = &trace.faults()[0];
            assert_eq!(fault.offset, packet.offset as u64);
            assert_others_whole(&trace, stream, i);
        }
    }
}

/// All packets of a stream but one are as they should be.
fn assert_others_whole(trace: &Trace, stream: &rfc::ExpectedStream, damaged: usize) {
    let chunks = chunks_of(trace, &stream.file);
    for (i, packet) in stream.packets.iter().enumerate() {
        if i == damaged {
            continue;
        }
        let place = format!("{}, packet {i}, damaged {damaged}", stream.file);
        let chunk = chunks.iter().find(|chunk| {
            trace
                .packet(chunk.stream, chunk.number)
                .is_some_and(|found| found.offset == packet.offset as u64)
        });
        let chunk = chunk.unwrap_or_else(|| panic!("{place}: it is missing"));
        let walk = Walk::of(trace, chunk);
        assert_eq!(walk.fault, None, "{place}");
        assert_eq!(
            walk.events,
            packet.events.iter().map(plain).collect::<Vec<_>>(),
            "{place}"
        );
    }
}

#[test]
fn a_damaged_packet_harms_no_other() {
    for (generated, stream) in with_two_packets(3300..3302) {
        let (_, expected) = generated.files();
        let stream = &expected.streams[stream];
        for (i, packet) in stream.packets.iter().enumerate() {
            for byte in 0..packet.content_size.min(rfc::PACKET_HEADER_SIZE + 24) {
                let (_dir, trace, _) = damaged(&generated, |name, bytes| {
                    if name == stream.file {
                        bytes[packet.offset + byte] ^= 0xA5;
                    }
                });
                // Whatever the packet itself says now.
                for chunk in chunks_of(&trace, &stream.file) {
                    Walk::of(&trace, &chunk);
                }
                // Where its sizes are damaged, those after it may be lost.
                if !(8..16).contains(&byte) {
                    assert_others_whole(&trace, stream, i);
                }
            }
        }
    }
}

#[test]
fn damaged_metadata_is_refused_or_read() {
    let generated = rfc::Trace::small();
    let length = generated.files().0[0].1.len();
    let (mut refused, mut read) = (0, 0);
    for byte in (0..length).step_by(7) {
        let dir = TempDir::new().expect("a temporary directory");
        for (name, mut bytes) in generated.files().0 {
            if name == "metadata" {
                bytes[byte] ^= 0x15;
            }
            std::fs::write(dir.path().join(name), bytes).expect("the file is written");
        }
        match Trace::open(&[dir.path().to_owned()], &Options::default()) {
            Ok(trace) => {
                read += 1;
                for stream in 0..trace.streams().len() {
                    for chunk in trace.chunks(stream) {
                        Walk::of(&trace, &chunk);
                    }
                }
            }
            Err(error) => {
                refused += 1;
                assert!(error.to_string().contains("metadata"), "{error}");
            }
        }
    }
    assert!(refused > 0 && read > 0, "{refused}, {read}");
}

#[test]
fn packets_with_checksums_come_back() {
    let options = rfc::Options {
        checksum: rfc::Checksum::Crc32,
        ..rfc::Options::default()
    };
    for seed in 3400..3440 {
        let generated = rfc::Trace::random(seed, &options);
        let (dir, expected) = written(&generated);
        let trace = open(dir.path());
        // What is missing between packets with checksums is reported.
        let is_missing = |fault: &FaultReport| fault.code == FaultCode::MissingPacket;
        assert!(trace.faults().iter().all(is_missing), "{seed}");
        let missing = |packet: &ExpectedPacket| packet.packets_missing > 0;
        let packets = expected.streams.iter().flat_map(|stream| &stream.packets);
        let gaps = packets.filter(|packet| missing(packet)).count();
        assert_eq!(trace.faults().len(), gaps, "{seed}: {:?}", trace.faults());
        compare(&trace, &expected, &format!("seed {seed}"));
    }
}
