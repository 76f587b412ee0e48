//! A recording made of values, for tests.

use std::path::Path;
use std::sync::Arc;

use kymo_model::{
    Base, Chunk, Cursor, Event, EventClass, Fault, FaultCode, FaultReport, FieldId, Flag, Format,
    Kind, Labels, Mapping, Recording, Schema, Scope, Shift, ShiftError, StreamInfo, Visitor,
};
use kymo_time::Timestamp;

/// A value of a field.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Val {
    Uint(u64),
    Sint(i64),
    Float(f64),
    Bool(bool),
    Bits(u64),
    Text(Vec<u8>),
    Struct(Vec<Val>),
    Array(Vec<Val>),
    Optional(Option<Box<Val>>),
    Variant(u32, Box<Val>),
    /// Decoding stops here.
    Broken,
}

/// Hands a value of a field to a visitor.
pub(crate) fn visit<V: Visitor>(
    schema: &Schema,
    field: FieldId,
    value: &Val,
    visitor: &mut V,
) -> Result<(), Fault> {
    let child = |position: usize| schema.field(field).children[position];
    match value {
        Val::Uint(value) => visitor.uint(field, *value),
        Val::Sint(value) => visitor.sint(field, *value),
        Val::Float(value) => visitor.float(field, *value),
        Val::Bool(value) => visitor.boolean(field, *value),
        Val::Bits(value) => visitor.bits(field, *value),
        Val::Text(text) => visitor.text(field, text),
        Val::Struct(members) => {
            visitor.begin_struct(field);
            for (position, member) in members.iter().enumerate() {
                visit(schema, child(position), member, visitor)?;
            }
            visitor.end_struct(field);
        }
        Val::Array(elements) => {
            visitor.begin_array(field, elements.len() as u64);
            for element in elements {
                visit(schema, child(0), element, visitor)?;
            }
            visitor.end_array(field);
        }
        Val::Optional(content) => {
            visitor.begin_optional(field, content.is_some(), content.is_some().into());
            if let Some(content) = content {
                visit(schema, child(0), content, visitor)?;
            }
            visitor.end_optional(field);
        }
        Val::Variant(option, content) => {
            visitor.begin_variant(field, *option, u64::from(*option));
            visit(schema, child(*option as usize), content, visitor)?;
            visitor.end_variant(field);
        }
        Val::Broken => return Err(Fault::new(FaultCode::BeyondContent, 8, 0).at(field)),
    }
    Ok(())
}

pub(crate) fn uint() -> Kind {
    Kind::Uint {
        bits: 64,
        base: Base::Decimal,
        labels: None,
    }
}

pub(crate) fn sint() -> Kind {
    Kind::Sint {
        bits: 64,
        base: Base::Decimal,
        labels: None,
    }
}

/// A signed enumeration of `MINUS` (-2 to -1), `ZERO` (0), `FEW` (1 to 3), `LOW` (0 to 9).
pub(crate) fn enumeration() -> Kind {
    let mapping = |label: &str, low: i64, high: i64| Mapping {
        label: label.into(),
        ranges: vec![(low as u64, high as u64)],
    };
    Kind::Sint {
        bits: 64,
        base: Base::Decimal,
        labels: Some(Arc::new(Labels::new(
            true,
            vec![
                mapping("MINUS", -2, -1),
                mapping("ZERO", 0, 0),
                mapping("FEW", 1, 3),
                mapping("LOW", 0, 9),
            ],
        ))),
    }
}

/// A bit map of `READ` (bit 0), `WRITE` (bit 1), `HIGH` (bits 8 to 63).
pub(crate) fn bit_map() -> Kind {
    let flag = |name: &str, low, high| Flag {
        name: name.into(),
        ranges: vec![(low, high)],
    };
    Kind::BitMap {
        bits: 64,
        flags: [flag("READ", 0, 0), flag("WRITE", 1, 1), flag("HIGH", 8, 63)].into(),
    }
}

/// An event: class, time, payload.
pub(crate) type Record = (usize, Option<i64>, Val);

/// A recording of one class of streams, whose events have a payload only.
#[derive(Debug, Default)]
pub(crate) struct Fake {
    pub(crate) classes: Vec<EventClass>,
    pub(crate) streams: Vec<StreamInfo>,
    pub(crate) chunks: Vec<Vec<Chunk>>,
    /// By stream and chunk.
    pub(crate) records: Vec<Vec<Vec<Record>>>,
    /// What every packet's context holds.
    pub(crate) packet: Option<Val>,
    pub(crate) faults: Vec<FaultReport>,
}

impl Fake {
    /// Adds a class of events whose payload has these members.
    pub(crate) fn class(&mut self, name: &str, members: Vec<(&str, Kind)>) -> &mut EventClass {
        let mut schema = Schema::new();
        let root = schema.push_root(Scope::Payload, Kind::Struct);
        for (name, kind) in members {
            schema.push_child(root, Some(name.into()), kind);
        }
        let id = self.classes.len() as u64;
        self.classes.push(EventClass {
            id,
            stream_class: 0,
            name: Some(name.into()),
            log_level: None,
            emf_uri: None,
            schema,
        });
        self.classes.last_mut().expect("just pushed")
    }

    /// Adds a stream of chunks of records.
    pub(crate) fn stream(&mut self, name: &str, chunks: Vec<Vec<Record>>) {
        let mut packet = Schema::new();
        let root = packet.push_root(Scope::PacketContext, Kind::Struct);
        packet.push_child(root, Some("cpu_id".into()), uint());
        let stream = self.streams.len();
        self.streams.push(StreamInfo {
            class: 0,
            id: Some(stream as u64),
            name: name.into(),
            clock: None,
            packet_schema: Arc::new(packet),
        });
        let time = |record: Option<&Record>| Some(Timestamp::from_nanos(record?.1?));
        let infos = chunks.iter().enumerate().map(|(number, records)| Chunk {
            stream,
            number,
            bytes: 100,
            begin: None,
            end: None,
            begin_time: time(records.first()),
            end_time: time(records.last()),
            lost_events: None,
            lost_chunks: None,
        });
        self.chunks.push(infos.collect());
        self.records.push(chunks);
    }
}

pub(crate) struct FakeCursor<'a> {
    recording: &'a Fake,
    records: &'a [Record],
    next: usize,
}

pub(crate) struct FakeEvent<'a> {
    recording: &'a Fake,
    record: &'a Record,
    number: usize,
}

impl Cursor for FakeCursor<'_> {
    type Event<'a>
        = FakeEvent<'a>
    where
        Self: 'a;

    fn next_event(&mut self) -> Result<Option<FakeEvent<'_>>, Fault> {
        let number = self.next;
        self.next += 1;
        // As of a real one: where a broken event would end is not known.
        let before = number.checked_sub(1).and_then(|at| self.records.get(at));
        if let Some((class, _, payload)) = before {
            let schema = &self.recording.classes[*class].schema;
            let root = schema.root(Scope::Payload).expect("every class has one");
            if let Err(fault) = visit(schema, root, payload, &mut kymo_model::Nothing) {
                self.next = self.records.len() + 1;
                return Err(fault);
            }
        }
        Ok(self.records.get(number).map(|record| FakeEvent {
            recording: self.recording,
            record,
            number,
        }))
    }
}

impl Event for FakeEvent<'_> {
    fn class(&self) -> &EventClass {
        &self.recording.classes[self.record.0]
    }
    fn class_index(&self) -> usize {
        self.record.0
    }
    fn timestamp(&self) -> Option<Timestamp> {
        self.record.1.map(Timestamp::from_nanos)
    }
    fn ticks(&self) -> Option<u64> {
        self.record.1.map(|time| time as u64)
    }
    fn number(&self) -> u64 {
        self.number as u64
    }
    fn begin_bit(&self) -> u64 {
        self.number as u64 * 8
    }
    fn visit<V: Visitor>(&self, visitor: &mut V) -> Result<(), Fault> {
        let schema = &self.class().schema;
        match schema.root(Scope::Payload) {
            Some(root) => visit(schema, root, &self.record.2, visitor),
            None => Ok(()),
        }
    }
}

impl Recording for Fake {
    type Cursor<'a> = FakeCursor<'a>;

    fn path(&self) -> &Path {
        Path::new("fake")
    }
    fn format(&self) -> Format {
        Format {
            name: "fake",
            version: "1",
        }
    }
    fn name(&self) -> Option<&str> {
        Some("a fake")
    }
    fn uid(&self) -> Option<&str> {
        None
    }
    fn streams(&self) -> &[StreamInfo] {
        &self.streams
    }
    fn event_classes(&self) -> &[EventClass] {
        &self.classes
    }
    fn shift(&mut self, _shift: Shift) -> Result<(), ShiftError> {
        Err(ShiftError)
    }

    fn chunk_count(&self, stream: usize) -> usize {
        self.chunks[stream].len()
    }
    fn chunk(&self, stream: usize, number: usize) -> Option<Chunk> {
        self.chunks[stream].get(number).copied()
    }
    fn cursor(&self, chunk: &Chunk) -> FakeCursor<'_> {
        FakeCursor {
            recording: self,
            records: &self.records[chunk.stream][chunk.number],
            next: 0,
        }
    }
    fn visit_packet<V: Visitor>(&self, chunk: &Chunk, visitor: &mut V) -> Result<(), Fault> {
        let schema = &self.streams[chunk.stream].packet_schema;
        match (schema.root(Scope::PacketContext), &self.packet) {
            (Some(root), Some(value)) => visit(schema, root, value, visitor),
            _ => Ok(()),
        }
    }
    fn faults(&self) -> &[FaultReport] {
        &self.faults
    }
    fn report(&self, chunk: &Chunk, event: Option<(u64, usize)>, fault: Fault) -> FaultReport {
        let name = self.streams[chunk.stream].name.to_string();
        FaultReport {
            code: fault.code,
            file: Arc::new(name.into()),
            offset: chunk.number as u64 * 100 + fault.bit / 8,
            packet: Some(chunk.number as u64),
            event: event.map(|(number, _)| number),
            field: event.and_then(|(_, class)| {
                let schema = &self.classes[class].schema;
                Some(format!("payload.{}", schema.path(fault.field?)))
            }),
            message: fault.code.to_string(),
        }
    }
    fn is_packet_bookkeeping(&self, _stream: usize, _field: FieldId) -> bool {
        false
    }
}
