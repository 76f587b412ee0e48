//! What a trace is: sections, streams, packets, events (sections 2, 3, 5, 6).

use crate::types::{Alignment, Endian, Field, Integer, Type, Value};

/// A trace with everything in it.
#[derive(Clone, Debug)]
pub struct Trace {
    /// Byte order of the machine.
    pub order: Endian,
    /// Its alignment of basic types.
    pub alignment: Alignment,
    /// Session that all packets belong to.
    pub session_id: u32,
    /// How the metadata is stored.
    pub metadata: MetadataForm,
    /// How the metadata is written.
    pub style: Style,
    /// Types the metadata declares, each before it is used.
    pub types: Vec<Declaration>,
    /// Sections.
    pub sections: Vec<Section>,
    /// Checksum of the packets.
    pub checksum: Checksum,
    /// What padding is made of.
    pub filler: u8,
}

/// How the file `metadata` holds the metadata (section 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetadataForm {
    /// The text alone.
    Text,
    /// In packets of NUL-terminated strings, as the RFC has it.
    Packets {
        /// Strings in each packet, at least 1.
        strings: usize,
    },
}

/// Liberties of the metadata text. The default takes none and chooses nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// Decides where the liberties are taken.
    pub seed: u64,
    /// Types are nameless or named, attributes in any order and left out where they say the
    /// default, comments anywhere, labels quoted or not, blocks in any order, each line a string of its
    /// own.
    pub varied: bool,
    /// Attributes of declared types are spread over their ancestors at random, and some say
    /// something else before.
    pub overrides: bool,
    /// Commas between the entries of lists are forgotten, or one follows the last name.
    pub commas: bool,
    /// A semicolon follows blocks that need none.
    pub semicolons: bool,
    /// A dot precedes attributes.
    pub dots: bool,
    /// A list entry begins with `[` at times.
    pub brackets: bool,
    /// The packet header is declared too, two fields of it called `checksum`, as in section 5.
    pub packet_header: bool,
}

/// A named type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declaration {
    /// Name.
    pub name: String,
    /// What it comes to.
    pub ty: Type,
    /// Named types between it and the abstract type of the language. Attributes are spread over
    /// them.
    pub ancestors: usize,
}

/// Checksum scheme.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Checksum {
    /// None, 0.
    #[default]
    None,
    /// CRC-32 as in Ethernet, 3.
    Crc32,
}

/// A section: event classes, and a stream for each processor.
#[derive(Clone, Debug)]
pub struct Section {
    /// Name.
    pub name: String,
    /// Kind of event header.
    pub header: HeaderType,
    /// What lies between header and payload.
    pub context: Context,
    /// Significant bits of the packet count, 1 to 32.
    pub packet_count_bits: u8,
    /// What the counters of its packets count.
    pub counters: Counters,
    /// Classes.
    pub events: Vec<EventClass>,
    /// Streams, one file each.
    pub streams: Vec<Stream>,
}

/// What the counters in packet headers count, which the draft calls "per-section": it also calls a
/// section what a single processor wrote of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counters {
    /// Packets and events of the stream.
    OfStream,
    /// Those of all streams together: each packet number is there once.
    OfSection,
}

/// Kind of event header (section 6.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderType {
    /// 5-bit ids, 27-bit times.
    Type1,
    /// 16-bit ids, 32-bit times.
    Type2,
}

impl HeaderType {
    /// Bits of the time in a header that is not extended.
    #[must_use]
    pub fn time_bits(self) -> u32 {
        match self {
            Self::Type1 => 27,
            Self::Type2 => 32,
        }
    }

    /// The id that announces an extended header.
    #[must_use]
    pub fn escape(self) -> u32 {
        match self {
            Self::Type1 => 31,
            Self::Type2 => 65535,
        }
    }
}

/// Event context of a section (section 6.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Context {
    /// Nothing.
    None,
    /// `event_size = true`: a `uint16_t` named `payload_size`, in bytes.
    EventSize,
    /// A structure of its own.
    Fields(Vec<Field>),
}

impl Context {
    /// The structure that lies in each event, if any.
    #[must_use]
    pub fn ty(&self, alignment: Alignment) -> Option<Type> {
        match self {
            Self::None => None,
            Self::EventSize => Some(Type::Struct(vec![Field {
                name: "payload_size".to_owned(),
                ty: Type::Integer(Integer::predefined(16, false, alignment)),
            }])),
            Self::Fields(fields) => Some(Type::Struct(fields.clone())),
        }
    }
}

/// A class of events.
#[derive(Clone, Debug)]
pub struct EventClass {
    /// Name.
    pub name: String,
    /// Number within the section.
    pub id: u32,
    /// Payload.
    pub fields: Vec<Field>,
}

/// What one processor wrote of a section: the file `SECTION_CPU`.
#[derive(Clone, Debug)]
pub struct Stream {
    /// Number of the processor.
    pub cpu: u32,
    /// Packets in order, lost ones too.
    pub packets: Vec<Packet>,
}

/// A packet (section 5).
#[derive(Clone, Debug)]
pub struct Packet {
    /// Packets counted before it; the header has the low bits.
    pub sequence: u64,
    /// Events discarded before its first event, since the beginning; the header has 32 bits.
    pub discarded: u64,
    /// Time of its beginning.
    pub begin: u64,
    /// Time of its end.
    pub end: u64,
    /// The packet is padded to a multiple of this number of bytes.
    pub size_unit: usize,
    /// Events in order of time, none before `begin` or after `end`.
    pub events: Vec<Event>,
    /// The packet did not reach the file.
    pub lost: bool,
}

/// An event.
#[derive(Clone, Debug)]
pub struct Event {
    /// Index of its class in the section.
    pub class: usize,
    /// Time in cycles.
    pub time: u64,
    /// An extended header even where a short one would do.
    pub extended: bool,
    /// Values of [`Context::Fields`].
    pub context: Option<Value>,
    /// Payload, a structure.
    pub payload: Value,
}
