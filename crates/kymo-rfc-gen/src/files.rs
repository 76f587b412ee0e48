//! From a trace to its files, and to what a reader must find in them (sections 5 to 7).

use std::io;
use std::path::Path;

use crate::bits::BitWriter;
use crate::metadata;
use crate::trace::{
    Checksum, Context, Counters, Event, HeaderType, MetadataForm, Packet, Section, Stream, Trace,
};
use crate::types::{Field, Type, Value, write_value};

/// Size of the packet header in bytes.
pub const PACKET_HEADER_SIZE: usize = 48;

const MAGIC: u32 = 0xC1FC_1FC1;

/// What a reader must find.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected {
    /// One for each stream file.
    pub streams: Vec<ExpectedStream>,
}

/// What a reader must find in a stream file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpectedStream {
    /// Name of the file.
    pub file: String,
    /// Section the stream belongs to.
    pub section: String,
    /// Number of its processor.
    pub cpu: u32,
    /// Packets that are in the file.
    pub packets: Vec<ExpectedPacket>,
}

/// What a reader must find in a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpectedPacket {
    /// Place in the file, in bytes.
    pub offset: usize,
    /// Size with padding, in bytes.
    pub size: usize,
    /// Size of header and content, in bytes.
    pub content_size: usize,
    /// Time of its beginning.
    pub begin: u64,
    /// Time of its end.
    pub end: u64,
    /// Packets that are missing just before it; 0 for the first that was counted, for which no counter
    /// knows how many.
    pub packets_missing: u64,
    /// Events discarded between the packet counted before it and its first event, as far as 32
    /// bits can count; 0 for the first that was counted, for the counter runs freely and has no known
    /// beginning.
    pub events_discarded: u32,
    /// Events.
    pub events: Vec<ExpectedEvent>,
}

/// What a reader must find of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpectedEvent {
    /// Place of its header, in bits from the beginning of the packet.
    pub offset: u64,
    /// Whether an extended header follows.
    pub extended: bool,
    /// Time in cycles.
    pub time: u64,
    /// Number of its class within the section.
    pub id: u32,
    /// Name of its class.
    pub name: String,
    /// Context, a structure.
    pub context: Option<Value>,
    /// Payload, a structure.
    pub payload: Value,
}

/// A file: its name and its bytes.
pub type File = (String, Vec<u8>);

impl Trace {
    /// The files of the trace, `metadata` first, and what is in them.
    ///
    /// # Panics
    ///
    /// If the trace contradicts itself: values that do not fit their types, times that go back, a
    /// field of another byte order inside a byte.
    #[must_use]
    pub fn files(&self) -> (Vec<File>, Expected) {
        let mut files = vec![("metadata".to_owned(), self.metadata_file())];
        let mut streams = Vec::new();
        for section in &self.sections {
            for stream in &section.streams {
                let file = format!("{}_{}", section.name, stream.cpu);
                let (bytes, packets) = self.stream_file(section, stream);
                files.push((file.clone(), bytes));
                streams.push(ExpectedStream {
                    file,
                    section: section.name.clone(),
                    cpu: stream.cpu,
                    packets,
                });
            }
        }
        (files, Expected { streams })
    }

    fn metadata_file(&self) -> Vec<u8> {
        let items = metadata::items(self);
        match self.metadata {
            MetadataForm::Text => items.join("\n").into_bytes(),
            MetadataForm::Packets { strings } => {
                // A string may end between any two words.
                let entries: Vec<&str> = if self.style.varied {
                    items.iter().flat_map(|item| item.lines()).collect()
                } else {
                    items.iter().map(String::as_str).collect()
                };
                let mut file = Vec::new();
                for (sequence, entries) in entries.chunks(strings).enumerate() {
                    let content = entries
                        .iter()
                        .flat_map(|entry| entry.bytes().chain([0]))
                        .collect();
                    let header = Header {
                        sequence: u64::try_from(sequence).expect("usize is at most 64 bits"),
                        sequence_bits: 32,
                        ..Header::default()
                    };
                    file.extend(self.packet(&header, content, 8));
                }
                file
            }
        }
    }

    fn stream_file(&self, section: &Section, stream: &Stream) -> (Vec<u8>, Vec<ExpectedPacket>) {
        let mut file = Vec::new();
        let mut packets = Vec::new();
        for packet in stream.packets.iter().filter(|packet| !packet.lost) {
            let (content, events) = self.content(section, packet);
            let content_size = PACKET_HEADER_SIZE + content.len();
            let header = Header {
                sequence: packet.sequence,
                sequence_bits: section.packet_count_bits,
                begin: packet.begin,
                end: packet.end,
                discarded: packet.discarded,
            };
            let bytes = self.packet(&header, content, packet.size_unit);
            let before = counted_before(section, stream, packet);
            let discarded = before.map_or(0, |before| packet.discarded - before.discarded);
            packets.push(ExpectedPacket {
                offset: file.len(),
                size: bytes.len(),
                content_size,
                begin: packet.begin,
                end: packet.end,
                packets_missing: before.map_or(0, |before| packet.sequence - before.sequence - 1),
                events_discarded: low_32(discarded),
                events,
            });
            file.extend(bytes);
        }
        (file, packets)
    }

    /// A whole packet of `content`, padded to a multiple of `size_unit` bytes.
    fn packet(&self, header: &Header, content: Vec<u8>, size_unit: usize) -> Vec<u8> {
        let content_size = PACKET_HEADER_SIZE + content.len();
        let packet_size = content_size.next_multiple_of(size_unit);
        let (checksum, checksum_scheme) = match self.checksum {
            Checksum::None => (0, 0),
            Checksum::Crc32 => (crc32(&content), 3),
        };
        let sequence = low_32(header.sequence & ((1 << header.sequence_bits) - 1));
        let in_bytes = |size: usize| u32::try_from(size).expect("a packet is below 4 GiB");

        let mut bits = BitWriter::new(self.filler);
        for value in [
            MAGIC,
            self.session_id,
            in_bytes(content_size),
            in_bytes(packet_size),
            checksum,
            sequence,
        ] {
            bits.write(u64::from(value), 32, self.order);
        }
        bits.write(header.begin, 64, self.order);
        bits.write(header.end, 64, self.order);
        bits.write(u64::from(low_32(header.discarded)), 32, self.order);
        let (compression_scheme, encryption_scheme) = (0, 0);
        for value in [
            header.sequence_bits,
            compression_scheme,
            encryption_scheme,
            checksum_scheme,
        ] {
            bits.write(u64::from(value), 8, self.order);
        }
        let mut bytes = bits.finish();
        bytes.extend(content);
        bytes.resize(packet_size, self.filler);
        bytes
    }

    /// What follows the header of a packet.
    fn content(&self, section: &Section, packet: &Packet) -> (Vec<u8>, Vec<ExpectedEvent>) {
        // The header is a number of 64-bit words, but places count from the beginning of the
        // packet.
        let mut bits = BitWriter::new(self.filler);
        bits.write_bytes(&[0; PACKET_HEADER_SIZE]);
        let mut clock = packet.begin;
        let mut events = Vec::new();
        for event in &packet.events {
            assert!(
                event.time >= clock && event.time <= packet.end,
                "events are in order and within their packet"
            );
            events.push(self.event(&mut bits, section, event, clock));
            clock = event.time;
        }
        (bits.finish().split_off(PACKET_HEADER_SIZE), events)
    }

    /// Writes an event; `clock` is the time of the one before it, or of the packet's beginning.
    fn event(
        &self,
        bits: &mut BitWriter,
        section: &Section,
        event: &Event,
        clock: u64,
    ) -> ExpectedEvent {
        let class = &section.events[event.class];
        let kind = section.header;
        let extended = event.extended
            || class.id >= kind.escape()
            || (event.time - clock) >> kind.time_bits() != 0;
        bits.align(self.word(32));
        let offset = bits.position();
        self.event_header(bits, kind, class.id, event.time, extended);

        let mut context = event.context.clone();
        let mut size_place = None;
        if let Some(ty) = section.context.ty(self.alignment) {
            bits.align(ty.alignment());
            if section.context == Context::EventSize {
                size_place = Some(bits.position());
                context = Some(payload_size(0));
            }
            let value = context.as_ref().expect("values for the context");
            write_value(bits, &ty, value, self.order);
        }

        let payload = structure(&class.fields);
        bits.align(payload.alignment());
        let start = bits.position();
        write_value(bits, &payload, &event.payload, self.order);
        if let Some(place) = size_place {
            let size = (bits.position() - start).div_ceil(8);
            assert!(size < 1 << 16, "a payload's size fits 16 bits");
            bits.put(place, size, 16, self.order);
            context = Some(payload_size(size));
        }
        ExpectedEvent {
            offset,
            extended,
            time: event.time,
            id: class.id,
            name: class.name.clone(),
            context,
            payload: event.payload.clone(),
        }
    }

    /// Writes a header of section 6.1 and, if `extended`, the one that follows it.
    fn event_header(
        &self,
        bits: &mut BitWriter,
        kind: HeaderType,
        id: u32,
        time: u64,
        extended: bool,
    ) {
        let order = self.order;
        let short_id = u64::from(if extended { kind.escape() } else { id });
        let short_time = time & ((1 << kind.time_bits()) - 1);
        match kind {
            HeaderType::Type1 => {
                bits.write(short_id, 5, order);
                bits.write(short_time, 27, order);
                if extended {
                    // 96 bits from a 32-bit boundary, nothing between the two fields.
                    bits.write(u64::from(id), 32, order);
                    bits.write(time, 64, order);
                    bits.align(self.word(64));
                }
            }
            HeaderType::Type2 => {
                bits.write(short_time, 32, order);
                bits.write(short_id, 16, order);
                if extended {
                    bits.align(self.word(64));
                    bits.write(time, 64, order);
                    bits.write(u64::from(id), 32, order);
                }
            }
        }
    }

    /// Alignment of an integer of `size` bits in the event headers.
    fn word(&self, size: u32) -> u32 {
        self.alignment.of(size)
    }
}

/// The packet that was counted last before `packet` and is not lost.
fn counted_before<'s>(
    section: &'s Section,
    stream: &'s Stream,
    packet: &Packet,
) -> Option<&'s Packet> {
    let streams = match section.counters {
        Counters::OfStream => std::slice::from_ref(stream),
        Counters::OfSection => &section.streams,
    };
    streams
        .iter()
        .flat_map(|stream| &stream.packets)
        .filter(|other| !other.lost && other.sequence < packet.sequence)
        .max_by_key(|other| other.sequence)
}

/// What differs between the packet headers of a trace.
#[derive(Default)]
struct Header {
    sequence: u64,
    sequence_bits: u8,
    begin: u64,
    end: u64,
    discarded: u64,
}

/// The structure of `fields`.
fn structure(fields: &[Field]) -> Type {
    Type::Struct(fields.to_vec())
}

fn payload_size(bytes: u64) -> Value {
    Value::Struct(vec![("payload_size".to_owned(), Value::Unsigned(bytes))])
}

fn low_32(value: u64) -> u32 {
    u32::try_from(value & 0xFFFF_FFFF).expect("32 bits")
}

fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for &byte in bytes {
        crc ^= u32::from(byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ (0xEDB8_8320 * (crc & 1));
        }
    }
    !crc
}

/// Writes the files of `trace` to the directory `dir`, which is made if it is not there.
///
/// # Errors
///
/// Those of writing files.
///
/// # Panics
///
/// As [`Trace::files`].
pub fn write(trace: &Trace, dir: &Path) -> io::Result<Expected> {
    let (files, expected) = trace.files();
    std::fs::create_dir_all(dir)?;
    for (name, bytes) in files {
        std::fs::write(dir.join(name), bytes)?;
    }
    Ok(expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crc32_check_value() {
        assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
    }
}
