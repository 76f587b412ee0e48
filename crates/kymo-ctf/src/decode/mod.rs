//! Class model to flat programs, and what runs them.
//!
//! A [`Decoder`] is compiled once for a trace. It holds, for each scope, a list of
//! instructions, and a shorter list for those who only want to know where the scope ends.
//! [`Decoder::packet_head`] reads what a packet says of itself, [`Decoder::cursor`] walks
//! its events.

mod block;
pub(crate) mod choice;
mod compile;
mod cursor;
mod end;
pub(crate) mod header;
pub(crate) mod lead;
pub(crate) mod leb128;
pub(crate) mod op;
#[cfg(test)]
pub(crate) mod oracle;
mod places;
mod run;
mod simple;
mod skip;
mod slots;
pub(crate) mod text;
pub(crate) mod wide;

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Arc;

use kymo_model::batch::Place;
use kymo_model::{EventClass, Fault, FaultCode, FieldId, Nothing, Schema, Scope, Visitor};
use kymo_time::{Clock, Ticks};

use self::compile::Budget;
use self::end::End;
use self::header::FastHeader;
use self::op::Program;
use self::places::Places;
use self::run::{Notes, Run};
use self::simple::SimpleClasses;
use self::slots::{Slots, leads_to_headers};
use crate::class::{EventRecordClass, FieldClass, Role, StreamClass, TraceClass};
use crate::deep;

pub use self::compile::CompileError;
pub use self::cursor::{PacketCursor, PacketEvent};
pub(crate) use self::run::FREE_EMPTY_ELEMENTS;

/// The number that packets begin with, of all dialects, where they have one (CTF 1.8.3 §5.1).
pub const PACKET_MAGIC: u64 = 0xC1FC_1FC1;

/// What the header and context of a packet say, as found: nothing of it is checked yet
/// against the file. Numbers of a counter or clock come with the bits they have: they are
/// the low ones of the full number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PacketHead {
    /// The magic number, where there is one.
    pub magic: Option<u64>,
    /// UUID of the metadata, where there is one.
    pub uuid: Option<[u8; 16]>,
    /// Position of the stream class in [`TraceClass::streams`].
    pub stream_class: usize,
    /// Which stream of the class, where it says.
    pub stream_id: Option<u64>,
    /// Size in bits, where it says.
    pub total_bits: Option<u64>,
    /// Size without the padding at the end in bits, where it says.
    pub content_bits: Option<u64>,
    /// Ticks of the default clock at the beginning, where it says, and their bits.
    pub begin: Option<(u64, u32)>,
    /// Ticks of the default clock at the end, where it says, and their bits.
    pub end: Option<(u64, u32)>,
    /// Events discarded so far, and the bits of that counter.
    pub discarded: Option<(u64, u32)>,
    /// Number of the packet in its stream, and the bits of that counter.
    pub sequence: Option<(u64, u32)>,
    /// Where header and context end and events begin, in bits from the start of the packet.
    pub events_bit: u64,
}

/// What decodes the packets of a trace.
#[derive(Debug)]
pub struct Decoder {
    /// The packet header, as far as needed to know the stream class.
    header: Program,
    /// What the packets count their sizes in, in bits.
    pub(crate) size_unit: u64,
    pub(crate) streams: Vec<StreamDecoder>,
    by_id: HashMap<u64, usize>,
    pub(crate) events: Vec<EventClass>,
}

/// What decodes the packets of one stream class.
#[derive(Debug)]
pub(crate) struct StreamDecoder {
    /// Packet header and context.
    pub(crate) packet: Program,
    pub(crate) packet_schema: Arc<Schema>,
    pub(crate) event_header: Program,
    pub(crate) header_schema: Arc<Schema>,
    /// The same, only for what it says of class and time.
    pub(crate) short_header: Program,
    /// A faster way to the same, where the header has a shape that is known, and no length
    /// or selector elsewhere depends on it.
    pub(crate) fast_header: Option<FastHeader>,
    pub(crate) events: Vec<EventDecoder>,
    /// What every event is aligned to where it begins, in bits.
    pub(crate) event_align: u64,
    by_id: EventTable,
    simple: SimpleClasses,
    pub(crate) clock: Option<Arc<Clock>>,
    pub(crate) slots: usize,
}

/// What decodes the contexts and the payload of one event class.
#[derive(Debug)]
pub(crate) struct EventDecoder {
    /// Position in [`Decoder::events`].
    pub(crate) class: usize,
    pub(crate) fields: Program,
    /// The same, only to find the end.
    short: Program,
    /// A faster way to the end, if the fields are simple enough.
    end: Option<End>,
    /// The numbers that are at the same place in all events.
    places: Places,
}

/// What decodes some fields of events, by position of the event class.
#[derive(Debug)]
pub(crate) struct NarrowPrograms(pub(crate) Vec<Program>);

/// From the number of an event class to its position.
#[derive(Debug)]
enum EventTable {
    /// The position plus one for each number; 0 if the class does not exist.
    Dense(Vec<u32>),
    Sparse(HashMap<u64, u32>),
}

impl EventTable {
    /// How many numbers a table may have in vain for each class: every stream class has a table,
    /// so that it must not be much larger than its classes.
    const SPARE_NUMBERS: u64 = 64;

    fn new(ids: impl Iterator<Item = u64> + Clone) -> Self {
        let largest = ids.clone().max().unwrap_or(0);
        let classes = ids.clone().count() as u64;
        if largest < classes.saturating_mul(Self::SPARE_NUMBERS).min(1 << 16) {
            let mut table = vec![0; largest as usize + 1];
            for (position, id) in ids.enumerate() {
                table[id as usize] = position as u32 + 1;
            }
            Self::Dense(table)
        } else {
            Self::Sparse(
                ids.enumerate()
                    .map(|(position, id)| (id, position as u32))
                    .collect(),
            )
        }
    }

    #[inline]
    fn get(&self, id: u64) -> Option<usize> {
        match self {
            Self::Dense(table) => match table.get(usize::try_from(id).ok()?)? {
                0 => None,
                position => Some(*position as usize - 1),
            },
            Self::Sparse(table) => table.get(&id).map(|&position| position as usize),
        }
    }
}

impl Decoder {
    /// Compiles the classes of a trace.
    ///
    /// # Errors
    ///
    /// Where the classes are too many or too deep, or have what cannot be decoded.
    pub fn new(trace: &TraceClass) -> Result<Self, CompileError> {
        deep::with_room(&[trace], || Self::compile(trace))
            .unwrap_or_else(|| Err(CompileError::too_deep()))
    }

    fn compile(trace: &TraceClass) -> Result<Self, CompileError> {
        let mut decoder = Self {
            header: Program::default(),
            size_unit: trace.dialect.size_unit(),
            streams: Vec::new(),
            by_id: HashMap::new(),
            events: Vec::new(),
        };
        let mut budget = Budget::default();
        if let Some(header) = &trace.packet_header {
            let mut slots = Slots::default();
            slots.collect(header, &|_| true);
            // Its slots are not read by others: each stream class saves its own.
            let mut schema = Schema::new();
            compile::scope(
                Scope::PacketHeader,
                header,
                &slots,
                &mut schema,
                &mut decoder.header,
                &mut budget,
            )?;
        }
        for (position, stream) in trace.streams.iter().enumerate() {
            let clock = trace.stream_clock(position);
            let compiled =
                StreamDecoder::new(trace, stream, clock, &mut decoder.events, &mut budget)?;
            decoder.streams.push(compiled);
            decoder.by_id.insert(stream.id, position);
        }
        Ok(decoder)
    }

    /// The event classes of all stream classes, in the order of the class model.
    pub fn event_classes(&self) -> &[EventClass] {
        &self.events
    }

    /// The fields of the packet header and context of a stream class.
    ///
    /// # Panics
    ///
    /// If the trace does not have this stream class.
    pub fn packet_schema(&self, stream_class: usize) -> &Arc<Schema> {
        &self.streams[stream_class].packet_schema
    }

    /// The fields of the event headers of a stream class: those with which the schemas of its event
    /// classes begin.
    ///
    /// # Panics
    ///
    /// If the trace does not have this stream class.
    pub fn header_schema(&self, stream_class: usize) -> &Arc<Schema> {
        &self.streams[stream_class].header_schema
    }

    /// Programs for the fields that are wanted of the event classes, by their positions.
    pub(crate) fn narrow(&self, wanted: &dyn Fn(usize, FieldId) -> bool) -> NarrowPrograms {
        let mut programs = vec![Program::default(); self.events.len()];
        for event in self.streams.iter().flat_map(|stream| &stream.events) {
            let wanted = |field| wanted(event.class, field);
            programs[event.class] = skip::narrow(&event.fields, &wanted);
        }
        NarrowPrograms(programs)
    }

    /// Where the number that a field holds is in the events of a class.
    pub(crate) fn place(&self, class: usize, field: FieldId) -> Option<Place> {
        let mut events = self.streams.iter().flat_map(|stream| &stream.events);
        events.find(|event| event.class == class)?.places.get(field)
    }

    /// Reads the header and context of the packet that begins with `data` and may end
    /// before it does.
    ///
    /// # Errors
    ///
    /// The fault at which decoding stopped; [`FaultCode::UnknownStreamClass`] where the
    /// metadata does not have this class.
    pub fn packet_head(&self, data: &[u8]) -> Result<PacketHead, Fault> {
        self.visit_packet(data, &mut Nothing)
    }

    /// The same, passing all values to a visitor, with the fields of the stream
    /// class's [`packet_schema`](Self::packet_schema).
    ///
    /// # Errors
    ///
    /// As [`packet_head`](Self::packet_head). Where the stream class is not known, the
    /// visitor has seen nothing.
    pub fn visit_packet<V: Visitor>(
        &self,
        data: &[u8],
        visitor: &mut V,
    ) -> Result<PacketHead, Fault> {
        let stream_class = self.stream_class(data)?;
        let stream = &self.streams[stream_class];
        let slots = stream.new_slots();
        let mut notes = Notes::default();
        let mut run = Run::noting(data, &slots, &mut notes);
        run.run(&stream.packet, visitor)?;
        let events_bit = run.pos;
        Ok(head(stream_class, events_bit, self.size_unit, &notes))
    }

    /// Position of the stream class with a number in [`TraceClass::streams`].
    pub(crate) fn stream_class_with(&self, id: u64) -> Option<usize> {
        self.by_id.get(&id).copied()
    }

    /// Gives event classes other positions: for each one, in the order of the class model, which.
    pub(crate) fn set_positions(&mut self, positions: &[usize]) {
        let mut events: Vec<_> = std::mem::take(&mut self.events)
            .into_iter()
            .zip(positions)
            .collect();
        events.sort_by_key(|(_, position)| **position);
        self.events = events.into_iter().map(|(event, _)| event).collect();
        for stream in &mut self.streams {
            for event in &mut stream.events {
                event.class = positions[event.class];
            }
            stream.simple.set_classes(positions);
        }
    }

    /// Updates the clocks from the class.
    pub(crate) fn set_clocks(&mut self, trace: &TraceClass) {
        for (position, stream) in self.streams.iter_mut().enumerate() {
            stream.clock = trace.stream_clock(position);
        }
    }

    /// Whether the events of a stream class have times.
    pub(crate) fn has_clock(&self, stream_class: usize) -> bool {
        self.streams[stream_class].clock.is_some()
    }

    /// Position of the stream class of a packet.
    fn stream_class(&self, data: &[u8]) -> Result<usize, Fault> {
        if self.streams.len() == 1 && !self.header.ops.iter().any(op::Op::names_stream_class) {
            return Ok(0);
        }
        let slots = vec![Cell::new(0); self.header.ops.len()];
        let mut notes = Notes::default();
        let mut run = Run::noting(data, &slots, &mut notes);
        run.run(&self.header, &mut Nothing)?;
        let end = run.pos;
        let id = notes
            .roles
            .iter()
            .rev()
            .find(|(role, ..)| *role == Role::StreamClassId)
            .map_or(0, |&(_, id, _)| id);
        self.by_id
            .get(&id)
            .copied()
            .ok_or_else(|| Fault::new(FaultCode::UnknownStreamClass, end, id))
    }

    /// Walks the events of a packet: `data` is the packet's bytes as far as there are any, which the
    /// cursor owns where they are in no file;
    /// `head` what [`packet_head`](Self::packet_head) said of it, `content_bits` where its
    /// events end, `clock` the full ticks of the default clock at its beginning.
    pub fn cursor<'a>(
        &'a self,
        data: impl Into<Cow<'a, [u8]>>,
        head: &PacketHead,
        content_bits: u64,
        clock: u64,
    ) -> PacketCursor<'a> {
        PacketCursor::new(self, data.into(), head, content_bits, clock)
    }
}

/// What all events of a stream class are aligned to where they begin, in bits.
fn event_align(stream: &StreamClass) -> u32 {
    let of_all = stream
        .event_header
        .as_ref()
        .or(stream.common_context.as_ref());
    match of_all {
        Some(class) => class.align(),
        None => {
            let events = stream.events.iter();
            let firsts =
                events.map(|event| event.specific_context.as_ref().or(event.payload.as_ref()));
            let aligns = firsts.map(|class| class.map_or(1, FieldClass::align));
            aligns.min().unwrap_or(1)
        }
    }
}

impl EventDecoder {
    /// The end of the event whose fields begin at a bit, and the number of its values; `None` if it requires a program,
    /// or is beyond the content.
    #[inline]
    fn find_end(&self, content: &end::Extent<'_>, at: u64) -> Option<(u64, u64)> {
        self.end.as_ref()?.find(content, at)
    }
}

impl StreamDecoder {
    fn new(
        trace: &TraceClass,
        stream: &StreamClass,
        clock: Option<Arc<Clock>>,
        classes: &mut Vec<EventClass>,
        budget: &mut Budget,
    ) -> Result<Self, CompileError> {
        let packet_scopes = [
            (Scope::PacketHeader, trace.packet_header.as_ref()),
            (Scope::PacketContext, stream.packet_context.as_ref()),
        ];
        let header_scope = [(Scope::EventHeader, stream.event_header.as_ref())];
        let event_scopes = |event: &EventRecordClass| {
            [
                (Scope::CommonContext, stream.common_context.clone()),
                (Scope::SpecificContext, event.specific_context.clone()),
                (Scope::Payload, event.payload.clone()),
            ]
        };
        // Slots that outlive an event come first, then those of each event class.
        let mut slots = Slots::default();
        for (_, class) in packet_scopes.iter().chain(&header_scope) {
            if let Some(class) = class {
                slots.collect(class, &|_| true);
            }
        }
        let of_events = stream
            .events
            .iter()
            .flat_map(|event| [&event.specific_context, &event.payload]);
        for class in of_events.chain([&stream.common_context]).flatten() {
            slots.collect(class, &leads_to_headers);
        }

        let mut packet = Program::default();
        let mut packet_schema = Schema::new();
        add_scopes(
            packet_scopes,
            &slots,
            &mut packet_schema,
            &mut packet,
            budget,
        )?;

        let mut decoder = Self {
            packet,
            packet_schema: Arc::new(packet_schema),
            event_header: Program::default(),
            header_schema: Arc::default(),
            short_header: Program::default(),
            fast_header: stream
                .event_header
                .as_ref()
                .and_then(FastHeader::of)
                .filter(|_| slots.targets_in(Scope::EventHeader) == 1),
            events: Vec::with_capacity(stream.events.len()),
            event_align: event_align(stream).into(),
            by_id: EventTable::new(stream.events.iter().map(|event| event.id)),
            simple: SimpleClasses::default(),
            clock,
            slots: slots.len(),
        };
        // Even without an event class, the header is worth compiling, to report its errors.
        let mut header_schema = Schema::new();
        add_scopes(
            header_scope,
            &slots,
            &mut header_schema,
            &mut decoder.event_header,
            budget,
        )?;
        decoder.short_header = skip::shorten(&decoder.event_header);
        decoder.header_schema = Arc::new(header_schema.clone());
        for event in &stream.events {
            budget.headers(header_schema.fields().len() + slots.len())?;
            let mut schema = header_schema.clone();
            let mut slots = slots.clone();
            let scopes = event_scopes(event);
            for (_, class) in &scopes {
                if let Some(class) = class {
                    slots.collect(class, &|_| true);
                }
            }
            decoder.slots = decoder.slots.max(slots.len());
            let mut fields = Program::default();
            let scopes = scopes.iter().map(|(scope, class)| (*scope, class.as_ref()));
            add_scopes(scopes, &slots, &mut schema, &mut fields, budget)?;
            let short = skip::shorten(&fields);
            let end = End::of(&fields, &short);
            decoder.events.push(EventDecoder {
                class: classes.len(),
                places: Places::of(&fields, end.as_ref()),
                end,
                fields,
                short,
            });
            classes.push(EventClass {
                id: event.id,
                stream_class: stream.id,
                name: event.name.clone(),
                log_level: event.log_level,
                emf_uri: event.emf_uri.clone(),
                schema,
            });
        }
        let positions = match &decoder.by_id {
            EventTable::Dense(positions) => &positions[..],
            EventTable::Sparse(_) => &[],
        };
        decoder.simple = SimpleClasses::new(&decoder.events, positions);
        Ok(decoder)
    }

    fn new_slots(&self) -> Vec<Cell<u64>> {
        vec![Cell::new(0); self.slots]
    }
}

fn add_scopes<'c>(
    scopes: impl IntoIterator<Item = (Scope, Option<&'c FieldClass>)>,
    slots: &Slots,
    schema: &mut Schema,
    program: &mut Program,
    budget: &mut Budget,
) -> Result<(), CompileError> {
    for (scope, class) in scopes {
        if let Some(class) = class {
            compile::scope(scope, class, slots, schema, program, budget)?;
        }
    }
    Ok(())
}

/// What a run over a packet's header and context noted.
fn head(stream_class: usize, events_bit: u64, size_unit: u64, notes: &Notes) -> PacketHead {
    let mut head = PacketHead {
        stream_class,
        uuid: notes.uuid,
        events_bit,
        ..PacketHead::default()
    };
    for &(role, value, bits) in &notes.roles {
        match role {
            Role::PacketMagic => head.magic = Some(value),
            Role::StreamId => head.stream_id = Some(value),
            Role::PacketTotalLength => head.total_bits = Some(value.saturating_mul(size_unit)),
            Role::PacketContentLength => {
                head.content_bits = Some(value.saturating_mul(size_unit));
            }
            // Each of several brings the clock forward.
            Role::DefaultClockTimestamp => {
                head.begin = Some(match head.begin {
                    None => (value, bits),
                    Some((clock, most)) => (Ticks(clock).advance(value, bits).0, bits.max(most)),
                });
            }
            Role::PacketEndTimestamp => head.end = Some((value, bits)),
            Role::DiscardedEvents => head.discarded = Some((value, bits)),
            Role::PacketSequenceNumber => head.sequence = Some((value, bits)),
            Role::StreamClassId | Role::MetadataUuid | Role::EventClassId => {}
        }
    }
    head
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_of_event_classes_is_as_large_as_their_number() {
        let get = |ids: &[u64], id| EventTable::new(ids.iter().copied()).get(id);
        for ids in [&[3, 0, 1][..], &[3, 65_535, 1], &[u64::MAX, 3]] {
            for (position, &id) in ids.iter().enumerate() {
                assert_eq!(get(ids, id), Some(position));
            }
            assert_eq!(get(ids, 2), None);
        }
        assert_eq!(get(&[], 0), None);
        // A class for each stream is cheap, whatever its number.
        let few = EventTable::new([65_535].into_iter());
        assert!(matches!(few, EventTable::Sparse(table) if table.len() == 1));
        let many = EventTable::new(0..2000);
        assert!(matches!(many, EventTable::Dense(table) if table.len() == 2000));
    }
}
