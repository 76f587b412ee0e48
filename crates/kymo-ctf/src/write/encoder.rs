//! A class model, compiled to be written.

use std::sync::Arc;

use super::error::WriteError;
use super::head::Forms;
use crate::class::{Dialect, FieldClass, Role, TraceClass};
use crate::decode::Decoder;
use crate::trace::report;

/// What encodes the packets of a trace: what decodes them, and what else is needed to write them.
#[derive(Debug)]
pub struct Encoder {
    pub(super) class: TraceClass,
    pub(super) decoder: Decoder,
    pub(super) streams: Vec<StreamEncoder>,
}

/// What encodes the packets of one stream class.
#[derive(Debug)]
pub(super) struct StreamEncoder {
    pub(super) forms: Forms,
    /// Whether the time of an event depends on what came before.
    pub(super) narrow_events: bool,
    /// Whether packets state their sizes: without that, there can be only one.
    pub(super) has_total: bool,
    pub(super) has_content: bool,
    /// Whether packets state the time at which they begin.
    pub(super) has_begin: bool,
    /// The largest size that packets can state, in bits.
    pub(super) most_bits: u64,
    /// Bits of the time at the packet's end, where these are not all.
    pub(super) end_bits: Option<u32>,
}

/// An event class of an [`Encoder`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EventId {
    /// Position of its stream class in [`TraceClass::streams`].
    pub stream_class: usize,
    /// Position in [`StreamClass::events`](crate::class::StreamClass::events).
    pub event: usize,
}

impl Encoder {
    /// Compiles the classes of a trace.
    ///
    /// # Errors
    ///
    /// Where they cannot be decoded either.
    pub fn new(class: &TraceClass) -> Result<Arc<Self>, WriteError> {
        use crate::class::Role::{
            DefaultClockTimestamp, PacketContentLength, PacketEndTimestamp, PacketTotalLength,
        };
        let decoder = Decoder::new(class)?;
        let streams = class.streams.iter().zip(&decoder.streams);
        let streams = streams
            .map(|(stream, compiled)| {
                let header = stream.event_header.as_ref();
                let scopes = [&class.packet_header, &stream.packet_context];
                let bits = |role| {
                    let scopes = scopes.into_iter().flatten();
                    scopes.filter_map(|class| role_bits(class, role)).min()
                };
                let (total, content) = (bits(PacketTotalLength), bits(PacketContentLength));
                let most = [total, content].into_iter().flatten().min();
                StreamEncoder {
                    forms: Forms::new(&compiled.event_header),
                    narrow_events: header.is_some_and(report::has_narrow_event_clock),
                    has_total: total.is_some(),
                    has_content: content.is_some(),
                    has_begin: bits(DefaultClockTimestamp).is_some(),
                    most_bits: match most {
                        Some(bits @ ..64) => ((1u64 << bits) - 1) * class.dialect.size_unit(),
                        _ => u64::MAX,
                    },
                    end_bits: bits(PacketEndTimestamp).filter(|&bits| bits < 64),
                }
            })
            .collect();
        Ok(Arc::new(Self {
            class: class.clone(),
            decoder,
            streams,
        }))
    }

    /// The class model.
    pub fn class(&self) -> &TraceClass {
        &self.class
    }

    /// What decodes what is written.
    pub fn decoder(&self) -> &Decoder {
        &self.decoder
    }

    /// The event class with a name, in the stream class at a position.
    pub fn event(&self, stream_class: usize, name: &str) -> Option<EventId> {
        let events = &self.class.streams.get(stream_class)?.events;
        let event = events
            .iter()
            .position(|event| event.name.as_deref() == Some(name))?;
        Some(EventId {
            stream_class,
            event,
        })
    }

    /// Whether the clock of a packet goes on from the one before it, where it does not contain all
    /// of it.
    pub(super) fn carries_clock(&self) -> bool {
        self.class.dialect != Dialect::Ctf2
    }
}

/// The bits of the smallest field that has a role: of a variable-length integer, all of 64.
fn role_bits(class: &FieldClass, role: Role) -> Option<u32> {
    let bits = |class: &FieldClass| match class {
        FieldClass::Integer { layout, .. } => layout.bits,
        _ => 64,
    };
    let having = (class.walk()).filter(|(_, class)| class.roles().contains(&role));
    having.map(|(_, class)| bits(class)).min()
}
