//! Traces described in a few lines: names and kinds, all else as it usually is.
//!
//! ```
//! use kymo_ctf::class::Dialect;
//! use kymo_ctf::describe::Description;
//! use kymo_machine::ByteOrder;
//!
//! let class = Description::new(ByteOrder::Little)
//!     .event("open", |fields| fields.text("path").signed("result", 32))
//!     .event("read", |fields| fields.unsigned("offset", 64).bytes("data"))
//!     .class(Dialect::Ctf18)?;
//! let metadata = kymo_ctf::metadata::write::write(&class)?;
//! assert!(metadata.starts_with("/* CTF 1.8 */"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::sync::Arc;

use kymo_machine::ByteOrder;
use kymo_model::{Base, Labels, Mapping, Scope};
use kymo_time::{Clock, Origin};

use crate::class::{
    BitLayout, Dialect, Encoding, EnvironmentValue, EventRecordClass, FieldClass, FieldPath,
    FieldRef, IntegerStyle, Length, Member, Role, Step, StreamClass, TraceClass,
};
use crate::metadata::fit::{FitError, fit};

/// A trace of one stream class, whose packets and events contain all that readers look for: sizes,
/// times, discarded events, the numbers of packets, the class and the full time of each event.
///
/// Integers of whole bytes are aligned to bytes, others to bits.
#[derive(Clone, Debug)]
pub struct Description {
    order: ByteOrder,
    class: TraceClass,
    stream: StreamClass,
}

impl Description {
    /// A trace without event classes, whose clock counts nanoseconds since 1970. All numbers have
    /// one byte order.
    pub fn new(order: ByteOrder) -> Self {
        let number = |name: &str, bits, role| {
            let mut fields = Fields::new(order, Scope::PacketHeader);
            fields.number(name, bits, false, Base::Decimal, &[role]);
            fields.members
        };
        let header = [
            number("magic", 32, Role::PacketMagic),
            number("stream_id", 32, Role::StreamClassId),
        ];
        let context = [
            number("packet_size", 64, Role::PacketTotalLength),
            number("content_size", 64, Role::PacketContentLength),
            number("timestamp_begin", 64, Role::DefaultClockTimestamp),
            number("timestamp_end", 64, Role::PacketEndTimestamp),
            number("events_discarded", 64, Role::DiscardedEvents),
            number("packet_seq_num", 64, Role::PacketSequenceNumber),
        ];
        let event_header = [
            number("id", 32, Role::EventClassId),
            number("timestamp", 64, Role::DefaultClockTimestamp),
        ];
        let clock = Clock {
            name: Some("monotonic".to_owned()),
            origin: Origin::UnixEpoch,
            ..Clock::default()
        };
        Self {
            order,
            class: TraceClass {
                packet_header: Some(FieldClass::structure(header.concat())),
                clocks: vec![Arc::new(clock)],
                ..TraceClass::new(Dialect::Ctf2)
            },
            stream: StreamClass {
                clock: Some(0),
                packet_context: Some(FieldClass::structure(context.concat())),
                event_header: Some(FieldClass::structure(event_header.concat())),
                ..StreamClass::default()
            },
        }
    }

    /// Another clock.
    #[must_use]
    pub fn clock(mut self, clock: Clock) -> Self {
        self.class.clocks = vec![Arc::new(clock)];
        self
    }

    /// An entry of the environment.
    #[must_use]
    pub fn environment(mut self, name: &str, value: EnvironmentValue) -> Self {
        self.class.environment.push((name.to_owned(), value));
        self
    }

    /// Fields that each packet has beside the usual ones.
    #[must_use]
    pub fn packet_context(mut self, describe: impl FnOnce(Fields) -> Fields) -> Self {
        let members = match self.stream.packet_context.take() {
            Some(FieldClass::Struct { members, .. }) => members,
            _ => Vec::new(),
        };
        let fields = Fields {
            members,
            ..Fields::new(self.order, Scope::PacketContext)
        };
        self.stream.packet_context = Some(describe(fields).structure());
        self
    }

    /// Fields that every event has.
    #[must_use]
    pub fn common_context(mut self, describe: impl FnOnce(Fields) -> Fields) -> Self {
        let fields = Fields::new(self.order, Scope::CommonContext);
        self.stream.common_context = Some(describe(fields).structure());
        self
    }

    /// An event class and its fields. Classes are numbered from 0 in this order.
    #[must_use]
    pub fn event(mut self, name: &str, describe: impl FnOnce(Fields) -> Fields) -> Self {
        let fields = Fields::new(self.order, Scope::Payload);
        let id = self.stream.events.len() as u64;
        self.stream.events.push(EventRecordClass {
            payload: Some(describe(fields).structure()),
            ..EventRecordClass::new(id, Some(name.into()))
        });
        self
    }

    /// The class model, [fitted](fit) to a dialect.
    ///
    /// # Errors
    ///
    /// Where the dialect has no equal for a field.
    pub fn class(mut self, dialect: Dialect) -> Result<TraceClass, FitError> {
        self.class.streams = vec![self.stream];
        Ok(fit(&self.class, dialect)?.model)
    }
}

/// The members of a scope's structure, in the order in which they are added. Each needs a name of
/// its own.
#[derive(Clone, Debug)]
pub struct Fields {
    order: ByteOrder,
    scope: Scope,
    members: Vec<Member>,
}

impl Fields {
    fn new(order: ByteOrder, scope: Scope) -> Self {
        Self {
            order,
            scope,
            members: Vec::new(),
        }
    }

    /// An unsigned integer of 1 to 64 bits.
    #[must_use]
    pub fn unsigned(mut self, name: &str, bits: u32) -> Self {
        self.number(name, bits, false, Base::Decimal, &[]);
        self
    }

    /// An unsigned integer of 1 to 64 bits that is shown in hexadecimal.
    #[must_use]
    pub fn hexadecimal(mut self, name: &str, bits: u32) -> Self {
        self.number(name, bits, false, Base::Hexadecimal, &[]);
        self
    }

    /// A signed integer of 1 to 64 bits.
    #[must_use]
    pub fn signed(mut self, name: &str, bits: u32) -> Self {
        self.number(name, bits, true, Base::Decimal, &[]);
        self
    }

    /// An unsigned integer of 1 to 64 bits with labels, each of one value.
    #[must_use]
    pub fn enumeration(mut self, name: &str, bits: u32, labels: &[(&str, u64)]) -> Self {
        self.number(name, bits, false, Base::Decimal, &[]);
        let mappings = labels.iter().map(|&(label, value)| Mapping {
            label: label.into(),
            ranges: vec![(value, value)],
        });
        let labels = Labels::new(false, mappings.collect());
        if let Some(FieldClass::Integer { style, .. }) =
            self.members.last_mut().map(|member| &mut member.class)
        {
            style.labels = Some(Arc::new(labels));
        }
        self
    }

    /// A floating point number of 32 or 64 bits.
    #[must_use]
    pub fn float(self, name: &str, bits: u32) -> Self {
        let class = FieldClass::Float(self.layout(bits));
        self.field(name, class)
    }

    /// A truth value of 8 bits.
    #[must_use]
    pub fn boolean(self, name: &str) -> Self {
        let class = FieldClass::Bool(self.layout(8));
        self.field(name, class)
    }

    /// Text in UTF-8 without zero characters.
    #[must_use]
    pub fn text(self, name: &str) -> Self {
        let encoding = Encoding::Utf8;
        self.field(name, FieldClass::Text { encoding, align: 8 })
    }

    /// Bytes whose number is in a 32-bit field `NAME_length`, which is added before them.
    #[must_use]
    pub fn bytes(self, name: &str) -> Self {
        self.counted(name, |length| FieldClass::Blob {
            length,
            media_type: "application/octet-stream".to_owned(),
            roles: Vec::new(),
        })
    }

    /// Elements of a class whose number is in a 32-bit field `NAME_length`, which is added before
    /// them.
    #[must_use]
    pub fn sequence(self, name: &str, element: FieldClass) -> Self {
        self.counted(name, |length| FieldClass::Array {
            element: Box::new(element),
            length,
            min_align: 1,
            roles: Vec::new(),
        })
    }

    /// A field of any class.
    #[must_use]
    pub fn field(mut self, name: &str, class: FieldClass) -> Self {
        self.members.push(Member::new(name, class));
        self
    }

    fn counted(mut self, name: &str, class: impl FnOnce(Length) -> FieldClass) -> Self {
        let step = Step::Child(self.members.len());
        let target = FieldPath {
            scope: self.scope,
            steps: vec![step],
        };
        self.number(&format!("{name}_length"), 32, false, Base::Decimal, &[]);
        let targets = vec![target];
        self.field(name, class(Length::Dynamic(FieldRef { targets })))
    }

    fn number(&mut self, name: &str, bits: u32, signed: bool, base: Base, roles: &[Role]) {
        let class = FieldClass::Integer {
            layout: self.layout(bits),
            style: IntegerStyle {
                signed,
                base,
                labels: None,
                roles: roles.to_vec(),
            },
        };
        self.members.push(Member::new(name, class));
    }

    fn layout(&self, bits: u32) -> BitLayout {
        let align = if bits.is_multiple_of(8) { 8 } else { 1 };
        BitLayout::new(bits, align, self.order)
    }

    fn structure(self) -> FieldClass {
        FieldClass::structure(self.members)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::parse_with;
    use crate::metadata::write::write;

    #[test]
    fn a_description_is_of_every_dialect() {
        let described = |order| {
            Description::new(order)
                .environment("host", EnvironmentValue::Text("drum".to_owned()))
                .packet_context(|fields| fields.unsigned("cpu_id", 32))
                .common_context(|fields| fields.signed("tid", 32))
                .event("open", |fields| {
                    fields
                        .text("path")
                        .hexadecimal("flags", 12)
                        .enumeration("mode", 4, &[("read", 0), ("write", 1)])
                        .boolean("created")
                })
                .event("read", |fields| {
                    let byte = Fields::new(ByteOrder::Little, Scope::Payload).unsigned("x", 8);
                    let byte = byte.members[0].class.clone();
                    fields
                        .float("took", 64)
                        .bytes("data")
                        .sequence("marks", byte)
                })
        };
        for order in [ByteOrder::Little, ByteOrder::Big] {
            for dialect in [Dialect::Ctf18, Dialect::Ctf2, Dialect::Rfc11] {
                let class = described(order).class(dialect).unwrap();
                let text = write(&class).unwrap();
                let read = parse_with(text.as_bytes(), "metadata", || Some(order)).unwrap();
                assert_eq!(read.class, class);
                assert!(read.warnings.is_empty(), "{:?}", read.warnings);
                assert!(crate::decode::Decoder::new(&class).is_ok());
                assert_eq!(class.streams[0].events.len(), 2);
                assert_eq!(class.streams[0].clock, Some(0));
            }
        }
    }

    #[test]
    fn what_a_description_cannot_be_is_reported() {
        let class = |bits| {
            let described = Description::new(ByteOrder::Little);
            described
                .event("e", |fields| fields.float("f", bits))
                .class(Dialect::Ctf18)
        };
        assert!(class(128).unwrap_err().to_string().contains("`payload.f`"));
        let class = class(24).unwrap();
        assert!(write(&class).is_err());
    }
}
