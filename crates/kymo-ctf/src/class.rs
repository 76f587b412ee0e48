//! The class model: what the metadata of a trace says, in one form for all three
//! metadata languages (RFC v1.1, TSDL 1.8, CTF 2 JSON).
//!
//! Names are as people see them (of a TSDL name one leading underscore is removed),
//! references to lengths and selectors are resolved, defaults are filled in, and what
//! TSDL expresses by member names and clock maps is expressed by [roles](Role).

mod field;

use std::sync::Arc;

use kymo_machine::ByteOrder;
use kymo_time::Clock;

pub use field::{
    BitLayout, Encoding, FieldClass, FieldPath, FieldRef, IntegerStyle, Length, Member, Role,
    Selector, Step, VariantOption,
};

/// The language in which the metadata was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// RFC v1.1 of November 2010.
    Rfc11,
    /// TSDL of CTF 1.8.
    Ctf18,
    /// JSON of CTF 2.
    Ctf2,
}

impl Dialect {
    /// What packets count their sizes in, in bits: RFC v1.1 has bytes, all others bits.
    pub fn size_unit(self) -> u64 {
        match self {
            Self::Rfc11 => 8,
            Self::Ctf18 | Self::Ctf2 => 1,
        }
    }
}

/// Everything the metadata of a trace says.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceClass {
    /// The metadata language.
    pub dialect: Dialect,
    /// Name space of the trace's name.
    pub namespace: Option<String>,
    /// Name of the trace.
    pub name: Option<String>,
    /// Unique identifier of the trace: in CTF 1.8 its UUID as text.
    pub uid: Option<String>,
    /// UUID that the packet headers repeat.
    pub uuid: Option<[u8; 16]>,
    /// Native byte order, where the metadata says (CTF 2 says it field by field).
    pub byte_order: Option<ByteOrder>,
    /// What the tracer states about its environment, in the order it was declared.
    pub environment: Vec<(String, EnvironmentValue)>,
    /// Fields at the beginning of each packet: a structure.
    pub packet_header: Option<FieldClass>,
    /// The clocks, in the order they were declared.
    pub clocks: Vec<Arc<Clock>>,
    /// The stream classes, in the order they were declared.
    pub streams: Vec<StreamClass>,
    /// Attributes as `(name space, JSON text)`, which decoding ignores.
    pub attributes: Vec<(String, String)>,
}

impl TraceClass {
    /// The default clock of a stream class, by its position.
    pub(crate) fn stream_clock(&self, stream: usize) -> Option<Arc<Clock>> {
        let clock = self.streams.get(stream)?.clock?;
        self.clocks.get(clock).cloned()
    }

    /// A trace without streams, names or attributes.
    pub fn new(dialect: Dialect) -> Self {
        Self {
            dialect,
            namespace: None,
            name: None,
            uid: None,
            uuid: None,
            byte_order: None,
            environment: Vec::new(),
            packet_header: None,
            clocks: Vec::new(),
            streams: Vec::new(),
            attributes: Vec::new(),
        }
    }

    /// The native byte order; where the metadata does not say, the one that most fields have, of
    /// equally many little endian.
    pub fn native_order(&self) -> ByteOrder {
        if let Some(order) = self.byte_order {
            return order;
        }
        let mut counts = [0; 2];
        for (_, class) in self.structures().flat_map(FieldClass::walk) {
            if let Some(layout) = class.layout() {
                counts[usize::from(layout.order == ByteOrder::Big)] += 1;
            }
        }
        match counts {
            [little, big] if big > little => ByteOrder::Big,
            _ => ByteOrder::Little,
        }
    }

    /// The structures of all scopes.
    pub(crate) fn structures(&self) -> impl Iterator<Item = &FieldClass> {
        let of_streams = self.streams.iter().flat_map(|stream| {
            let events = stream.events.iter();
            let events = events.flat_map(|event| [&event.specific_context, &event.payload]);
            let [context, header] = [&stream.packet_context, &stream.event_header];
            [context, header, &stream.common_context]
                .into_iter()
                .chain(events)
        });
        of_streams.chain([&self.packet_header]).flatten()
    }

    /// An environment entry.
    pub fn environment(&self, name: &str) -> Option<&EnvironmentValue> {
        self.environment
            .iter()
            .find(|(n, _)| n == name)
            .map(|(_, value)| value)
    }
}

/// A value of the environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EnvironmentValue {
    /// A number.
    Integer(i64),
    /// Text.
    Text(String),
}

/// A class of streams.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StreamClass {
    /// Number of the class.
    pub id: u64,
    /// Name space of its name.
    pub namespace: Option<String>,
    /// Name.
    pub name: Option<String>,
    /// Unique identifier.
    pub uid: Option<String>,
    /// Position of its default clock in [`TraceClass::clocks`].
    pub clock: Option<usize>,
    /// Fields after the packet header: a structure.
    pub packet_context: Option<FieldClass>,
    /// Fields at the beginning of each event: a structure.
    pub event_header: Option<FieldClass>,
    /// Fields between an event's header and its specific context: a structure.
    pub common_context: Option<FieldClass>,
    /// Its event classes, in the order they were declared.
    pub events: Vec<EventRecordClass>,
    /// Attributes as `(name space, JSON text)`, which decoding ignores.
    pub attributes: Vec<(String, String)>,
}

/// A class of events.
#[derive(Clone, Debug, PartialEq)]
pub struct EventRecordClass {
    /// Number of the class within its stream class.
    pub id: u64,
    /// Name space of its name.
    pub namespace: Option<String>,
    /// Name.
    pub name: Option<Arc<str>>,
    /// Unique identifier.
    pub uid: Option<String>,
    /// Log level, as a number of the tracer's scale.
    pub log_level: Option<i64>,
    /// Identifier of the model element behind it (Eclipse Modeling Framework).
    pub emf_uri: Option<Arc<str>>,
    /// Context of this class alone: a structure.
    pub specific_context: Option<FieldClass>,
    /// Payload: a structure.
    pub payload: Option<FieldClass>,
    /// Attributes as `(name space, JSON text)`, which decoding ignores.
    pub attributes: Vec<(String, String)>,
}

impl EventRecordClass {
    /// A class with a number and a name, without fields.
    pub fn new(id: u64, name: Option<Arc<str>>) -> Self {
        Self {
            id,
            namespace: None,
            name,
            uid: None,
            log_level: None,
            emf_uri: None,
            specific_context: None,
            payload: None,
            attributes: Vec::new(),
        }
    }
}
