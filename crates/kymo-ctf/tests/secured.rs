//! Secured traces of RFC v1.1: the packets of generated traces are sealed, and everything must come
//! back as it does from the plain ones; damage must be reported for its packet, and harm no other.

use std::path::Path;

use kymo_ctf::metadata::byte_order_of_packets;
use kymo_ctf::secure::{Checksum, Compression, Key, PAGE, Protection, seal};
use kymo_ctf::trace::{Options, Trace};
use kymo_machine::ByteOrder;
use kymo_model::{Cursor, Event, FaultCode, FaultReport, FieldId, Recording, Visitor};
use kymo_rfc_gen as rfc;
use tempfile::TempDir;

/// All events of all streams: streams by name, events as text.
type Events = Vec<(String, Vec<String>)>;

/// The number at a byte of a packet's header.
fn number(packet: &[u8], at: usize, order: ByteOrder) -> u32 {
    let bytes = packet[at..at + 4].try_into().expect("four bytes");
    match order {
        ByteOrder::Little => u32::from_le_bytes(bytes),
        ByteOrder::Big => u32::from_be_bytes(bytes),
    }
}

/// The packets of a file; none where it is text.
fn packets(mut file: &[u8]) -> (Option<ByteOrder>, Vec<&[u8]>) {
    let order = byte_order_of_packets(file);
    let mut packets = Vec::new();
    while let Some(order) = order.filter(|_| !file.is_empty()) {
        let (packet, rest) = file.split_at(number(file, 12, order) as usize);
        packets.push(packet);
        file = rest;
    }
    (order, packets)
}

/// A file with all of its packets sealed; nonces are counted from the file's name on.
fn sealed(name: &str, file: &[u8], protection: &Protection) -> Vec<u8> {
    let (order, packets) = packets(file);
    let Some(order) = order else {
        return file.to_vec();
    };
    let mut nonce = [0; 12];
    for (to, from) in nonce.iter_mut().zip(name.bytes()) {
        *to = from;
    }
    let seal = |(at, packet): (usize, &&[u8])| {
        nonce[11] = at as u8;
        seal(packet, order, protection, || nonce).expect("a plain packet")
    };
    packets.iter().enumerate().flat_map(seal).collect()
}

/// The trace with its packets sealed, in a directory.
fn written(generated: &rfc::Trace, protection: &Protection) -> TempDir {
    let dir = TempDir::new().expect("a temporary directory");
    for (name, bytes) in generated.files().0 {
        let bytes = sealed(&name, &bytes, protection);
        std::fs::write(dir.path().join(name), bytes).expect("the file is written");
    }
    dir
}

fn open(dir: &Path, keys: &[Key]) -> Trace {
    let options = Options {
        keys: keys.to_vec(),
        ..Options::default()
    };
    Trace::open(&[dir.to_owned()], &options).unwrap_or_else(|error| panic!("{error}"))
}

/// Every value as text.
#[derive(Default)]
struct Values(String);

impl Visitor for Values {
    fn uint(&mut self, field: FieldId, value: u64) {
        self.0 += &format!(" {field:?}={value}");
    }
    fn sint(&mut self, field: FieldId, value: i64) {
        self.0 += &format!(" {field:?}={value}");
    }
    fn text(&mut self, field: FieldId, value: &[u8]) {
        self.0 += &format!(" {field:?}={value:?}");
    }
}

/// All events, and what is wrong with which packets.
fn read(trace: &Trace) -> (Events, Vec<FaultReport>) {
    let mut faults = trace.faults().to_vec();
    let mut all = Vec::new();
    for (stream, info) in trace.streams().iter().enumerate() {
        let mut events = Vec::new();
        for chunk in trace.chunks(stream) {
            let mut cursor = trace.cursor(&chunk);
            loop {
                match cursor.next_event() {
                    Ok(Some(event)) => {
                        let mut values = Values::default();
                        event.visit(&mut values).expect("its fields are whole");
                        let begin = event.begin_bit();
                        let bytes = &event.packet_bytes()[48..];
                        assert!(begin / 8 < 48 + bytes.len() as u64);
                        values.0 += &format!(" in {bytes:?}");
                        events.push(format!("{begin} {:?} {}", event.ticks(), values.0));
                    }
                    Ok(None) => break,
                    Err(fault) => {
                        faults.push(trace.report(&chunk, None, fault));
                        break;
                    }
                }
            }
        }
        let name = Path::new(&*info.name).file_name().expect("it has a name");
        all.push((name.to_string_lossy().into_owned(), events));
    }
    (all, faults)
}

fn damage(faults: &[FaultReport]) -> Vec<FaultCode> {
    let codes = faults.iter().map(|fault| fault.code);
    codes
        .filter(|code| *code != FaultCode::MissingPacket)
        .collect()
}

fn protections() -> impl Iterator<Item = Protection> {
    let compressions = [Compression::None, Compression::Bzip2, Compression::Gzip];
    let keys = [None, Some(16), Some(24), Some(32)];
    let checksums = [
        Checksum::None,
        Checksum::Md5,
        Checksum::Sha1,
        Checksum::Crc32,
    ];
    compressions.into_iter().flat_map(move |compression| {
        keys.into_iter().flat_map(move |size| {
            checksums.into_iter().map(move |checksum| Protection {
                compression,
                key: size.map(key),
                checksum,
            })
        })
    })
}

fn key(size: usize) -> Key {
    let bytes: Vec<u8> = (0..size as u8).collect();
    Key::new(&bytes).expect("a size that keys have")
}

#[test]
fn whatever_is_sealed_comes_back() {
    for (seed, protection) in (5000..).zip(protections()) {
        let generated = rfc::Trace::random(seed, &rfc::Options::default());
        let plain = TempDir::new().expect("a temporary directory");
        rfc::write(&generated, plain.path()).expect("the trace is written");
        let (expected, _) = read(&open(plain.path(), &[]));

        let dir = written(&generated, &protection);
        let keys: Vec<Key> = protection.key.iter().cloned().collect();
        let trace = open(dir.path(), &keys);
        let (events, faults) = read(&trace);
        assert_eq!(damage(&faults), [], "seed {seed}, {protection:?}");
        assert_eq!(events, expected, "seed {seed}, {protection:?}");
        for file in trace.files() {
            assert_eq!(file.bytes.len() % PAGE, 0);
        }
    }
}

/// A trace with metadata that can be read without a key, and a stream of several packets.
fn generated() -> rfc::Trace {
    let mut generated = rfc::Trace::small();
    generated.metadata = rfc::MetadataForm::Text;
    generated
}

/// The file with most packets, and where they are in its sealed form.
fn largest(dir: &Path) -> (String, Vec<std::ops::Range<usize>>) {
    let names = std::fs::read_dir(dir).expect("the directory");
    let ranges_of = |name: String| {
        let file = std::fs::read(dir.join(&name)).expect("the file");
        let mut at = 0;
        let mut ranges = Vec::new();
        for packet in packets(&file).1 {
            ranges.push(at..at + packet.len());
            at += packet.len();
        }
        (name, ranges)
    };
    names
        .map(|entry| {
            ranges_of(
                entry
                    .expect("an entry")
                    .file_name()
                    .into_string()
                    .expect("text"),
            )
        })
        .max_by_key(|(name, ranges)| (ranges.len(), name.clone()))
        .expect("there is a file")
}

#[test]
fn a_flipped_bit_costs_its_packet_and_no_other() {
    for protection in protections() {
        let expected = match (&protection.key, protection.checksum) {
            (None, Checksum::None) => continue,
            (Some(_), Checksum::None) => FaultCode::Encryption,
            _ => FaultCode::Checksum,
        };
        let dir = written(&generated(), &protection);
        let keys: Vec<Key> = protection.key.iter().cloned().collect();
        let (whole, _) = read(&open(dir.path(), &keys));
        let (name, ranges) = largest(dir.path());
        let path = dir.path().join(&name);
        let mut file = std::fs::read(&path).expect("the file");
        let packet = ranges.len() - 1;
        file[ranges[packet].start + 48] ^= 0x10;
        std::fs::write(&path, file).expect("the file is written");

        let (events, faults) = read(&open(dir.path(), &keys));
        assert_eq!(damage(&faults), [expected], "{protection:?}");
        let reported = faults.last().expect("it is told");
        assert_eq!(
            (reported.offset, reported.packet, reported.file.as_path()),
            (ranges[packet].start as u64, Some(packet as u64), &*path)
        );
        for ((stream, events), (_, whole)) in events.iter().zip(&whole) {
            match *stream == name {
                true => assert!(whole.starts_with(events) && events.len() < whole.len()),
                false => assert_eq!(events, whole),
            }
        }
    }
}

#[test]
fn without_its_key_every_packet_is_reported() {
    let protection = Protection {
        key: Some(key(16)),
        ..Protection::default()
    };
    let dir = written(&generated(), &protection);
    let count = |trace: &Trace| -> usize {
        (0..trace.streams().len())
            .map(|stream| trace.chunk_count(stream))
            .sum()
    };
    for (keys, expected, said) in [
        (vec![], FaultCode::KeyNeeded, "--key-file"),
        (vec![key(24), key(32)], FaultCode::Encryption, "another one"),
    ] {
        let trace = open(dir.path(), &keys);
        let (events, faults) = read(&trace);
        assert!(events.iter().all(|(_, events)| events.is_empty()));
        assert_eq!(damage(&faults), vec![expected; count(&trace)]);
        let last = faults.last().expect("there are packets");
        assert!(last.message.contains(said), "{last}");
    }
    let both = open(dir.path(), &[key(24), key(16)]);
    assert_eq!(damage(&read(&both).1), []);
}

#[test]
fn encrypted_metadata_asks_for_its_key() {
    let mut generated = rfc::Trace::small();
    generated.metadata = rfc::MetadataForm::Packets { strings: 3 };
    let protection = Protection {
        compression: Compression::Gzip,
        key: Some(key(32)),
        checksum: Checksum::Sha1,
    };
    let dir = written(&generated, &protection);
    let fails = |keys: Vec<Key>| {
        let options = Options {
            keys,
            ..Options::default()
        };
        let error = Trace::open(&[dir.path().to_owned()], &options).expect_err("it is encrypted");
        error.to_string()
    };
    assert!(fails(vec![]).contains("`--key-file FILE`"));
    assert!(fails(vec![key(16)]).contains("another key, or altered"));
    assert_eq!(damage(&read(&open(dir.path(), &[key(32)])).1), []);
}

/// A trace with a stream of five numbered packets, and the name of its file.
fn five_packets() -> (rfc::Trace, String) {
    let mut generated = generated();
    let section = &mut generated.sections[0];
    let stream = &mut section.streams[0];
    let packet = stream.packets[0].clone();
    stream.packets = (0..5).map(|_| packet.clone()).collect();
    let length = packet.end - packet.begin + 1;
    for (number, packet) in (0..).zip(&mut stream.packets) {
        packet.sequence = number;
        packet.lost = false;
        packet.begin += number * length;
        packet.end += number * length;
        for event in &mut packet.events {
            event.time += number * length;
        }
    }
    section.streams.truncate(1);
    let file = format!("{}_{}", section.name, section.streams[0].cpu);
    (generated, file)
}

/// Flips every bit of an encrypted packet, its header included: each time that packet is reported, and the others
/// are read.
#[test]
fn every_flipped_bit_of_an_encrypted_packet_is_reported() {
    for checksum in [Checksum::None, Checksum::Crc32] {
        let protection = Protection {
            key: Some(key(16)),
            checksum,
            ..Protection::default()
        };
        let keys = [key(16)];
        let (generated, file) = five_packets();
        let dir = written(&generated, &protection);
        let path = dir.path().join(&file);
        let whole = std::fs::read(&path).expect("the file");
        let events_of = |all: &Events| {
            let stream = all.iter().find(|(name, _)| *name == file);
            stream.map_or_else(Vec::new, |(_, events)| events.clone())
        };
        let expected = events_of(&read(&open(dir.path(), &keys)).0);
        let (size, each) = (whole.len() / 5, expected.len() / 5);
        assert!(each > 0 && size == PAGE);
        let begin = 2 * size;
        let order = byte_order_of_packets(&whole).expect("packets");
        let content = number(&whole[begin..], 8, order) as usize;
        // Each bit of the header, and one of each byte behind it.
        let header = (0..48 * 8).map(|bit| (bit / 8, bit % 8));
        for (at, bit) in header.chain((48..content).map(|at| (at, at % 8))) {
            let mut flipped = whole.clone();
            flipped[begin + at] ^= 1 << bit;
            std::fs::write(&path, flipped).expect("the file is written");
            let (events, faults) = read(&open(dir.path(), &keys));
            let is_reported = faults.iter().any(|fault| {
                *fault.file == path
                    && (fault.offset as usize) / size == 2
                    && fault.packet == Some(2)
            });
            assert!(is_reported, "byte {at}, bit {bit}: {faults:?}");
            let events = events_of(&events);
            for (number, of_packet) in expected.chunks(each).enumerate() {
                let is_there = of_packet.iter().all(|event| events.contains(event));
                assert!(
                    is_there || number == 2,
                    "byte {at}, bit {bit}: packet {number}"
                );
            }
        }
    }
}

#[test]
fn a_packet_that_is_not_encrypted_among_others_is_reported() {
    let protection = Protection {
        key: Some(key(16)),
        ..Protection::default()
    };
    let (generated, file) = five_packets();
    let dir = written(&generated, &protection);
    let path = dir.path().join(&file);
    let mut bytes = std::fs::read(&path).expect("the file");
    let files = generated.files().0;
    let (_, plain) = files
        .iter()
        .find(|(name, _)| *name == file)
        .expect("the file");
    let plain = sealed(&file, plain, &Protection::default());
    let at = PAGE..2 * PAGE;
    bytes[at.clone()].copy_from_slice(&plain[at]);
    std::fs::write(&path, bytes).expect("the file is written");
    let (_, faults) = read(&open(dir.path(), &[key(16)]));
    assert_eq!(damage(&faults), [FaultCode::Scheme]);
    assert_eq!((faults[0].offset, faults[0].packet), (PAGE as u64, Some(1)));
}

/// Packets of few bytes that each ask for very many: together they get no more than a bound.
#[test]
fn small_packets_do_not_become_large_together() {
    let bomb = {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        std::io::Write::write_all(&mut encoder, &vec![0; 3 << 20]).expect("memory");
        encoder.finish().expect("memory")
    };
    let (generated, file) = five_packets();
    let dir = written(&generated, &Protection::default());
    let path = dir.path().join(&file);
    let whole = std::fs::read(&path).expect("the file");
    let order = byte_order_of_packets(&whole).expect("packets");
    let size = 48 + bomb.len() as u32;
    let bytes = match order {
        ByteOrder::Little => size.to_le_bytes(),
        ByteOrder::Big => size.to_be_bytes(),
    };
    let mut packet = whole[..48].to_vec();
    packet[8..12].copy_from_slice(&bytes);
    packet[12..16].copy_from_slice(&bytes);
    packet[45] = 2;
    packet.extend(&bomb);
    let refused = |count: usize| {
        std::fs::write(&path, packet.repeat(count)).expect("the file is written");
        let trace = open(dir.path(), &[]);
        let streams = 0..trace.streams().len();
        let chunks = streams.flat_map(|stream| trace.chunks(stream));
        let faults = chunks.filter_map(|chunk| trace.cursor(&chunk).take_fault());
        faults
            .filter(|fault| fault.code == FaultCode::PacketLimit)
            .count()
    };
    assert_eq!(refused(1), 0);
    assert_eq!(refused(100), 100);
}

#[test]
fn a_packet_that_was_taken_away_is_reported() {
    let protection = Protection {
        checksum: Checksum::Md5,
        ..Protection::default()
    };
    let (generated, file) = five_packets();
    let dir = written(&generated, &protection);
    let path = dir.path().join(&file);
    let whole = std::fs::read(&path).expect("the file");
    let size = whole.len() / 5;
    for (missing, said) in [
        (
            1..2,
            "packet 1 of the section, which comes before this one, is missing",
        ),
        (
            1..4,
            "packets 1 to 3 of the section, which come before this one, are missing",
        ),
    ] {
        let mut rest = whole.clone();
        rest.drain(missing.start * size..missing.end * size);
        std::fs::write(&path, rest).expect("the file is written");
        let (_, faults) = read(&open(dir.path(), &[]));
        assert_eq!(faults.len(), 1);
        assert_eq!(
            faults[0].to_string(),
            format!("{}: offset {size}, packet 1: {said}", path.display())
        );
    }
}

#[test]
fn a_secured_packet_that_is_cut_is_reported() {
    let protection = Protection {
        key: Some(key(24)),
        checksum: Checksum::Crc32,
        ..Protection::default()
    };
    let dir = written(&generated(), &protection);
    let (name, ranges) = largest(dir.path());
    let path = dir.path().join(&name);
    let file = std::fs::read(&path).expect("the file");
    let last = ranges.last().expect("it has packets");
    let order = byte_order_of_packets(&file).expect("packets");
    let content = number(&file[last.start..], 8, order) as usize;
    // Only padding is cut, then content, then the header.
    for (kept, expected) in [
        (content, vec![FaultCode::Truncated]),
        (content - 1, vec![FaultCode::Truncated]),
        (30, vec![FaultCode::Truncated]),
    ] {
        std::fs::write(&path, &file[..last.start + kept]).expect("the file is written");
        let trace = open(dir.path(), &[key(24)]);
        let (_, faults) = read(&trace);
        assert_eq!(damage(&faults), expected, "{kept}: {faults:?}");
        let stream = trace
            .streams()
            .iter()
            .position(|info| info.name.ends_with(&name));
        let count = stream.map_or(0, |stream| trace.chunk_count(stream));
        assert_eq!(count, ranges.len() - usize::from(kept < content));
    }
}
