//! Walks the events of one packet.

use std::borrow::Cow;
use std::cell::Cell;
use std::sync::Arc;

use kymo_machine::ByteOrder;
use kymo_model::{
    BlockQuery, Cursor, Event, EventBlock, EventClass, EventCounts, EventHeaders, EventVisitor,
    Fault, FaultCode, Nothing, ValueCounter, Visitor,
};
use kymo_time::{Ticks, Timestamp};

use super::end::Extent;
use super::header::Header;
use super::op::Program;
use super::run::{Content, Run};
use super::{Decoder, EventDecoder, NarrowPrograms, PacketHead, StreamDecoder};

/// The bit from which on no event begins, if nothing states how many bits of the last byte are content: those
/// before the place to which the next event would be aligned are not.
fn unreported_end(content_bits: u64, event_align: u64) -> u64 {
    let Some(last) = content_bits.checked_sub(1) else {
        return 0;
    };
    let aligned = last / event_align * event_align + 1;
    aligned.max(content_bits.saturating_sub(7))
}

/// Stands for "not known yet" in [`PacketCursor::next`].
pub(super) const UNKNOWN: u64 = u64::MAX;

/// The bytes of a packet as far as there are any. Both kinds have the same form in memory, so that
/// callers need not know which one it is.
#[derive(Debug)]
pub(super) enum Data<'a> {
    OfFile(&'a [u8]),
    /// What was made of a secured packet.
    Opened(Box<[u8]>),
}

impl Data<'_> {
    #[inline(always)]
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Self::OfFile(data) => data,
            Self::Opened(data) => data,
        }
    }
}

/// Walks the events of one packet.
#[derive(Debug)]
pub struct PacketCursor<'a> {
    decoder: &'a Decoder,
    pub(super) stream: &'a StreamDecoder,
    pub(super) data: Data<'a>,
    /// Whole bytes of the content, and its bits: it is not beyond the data.
    pub(super) whole_bytes: usize,
    pub(super) end: u64,
    /// From where on no event begins. The packet says where its content ends, which may be beyond the
    /// data; where it counts in bytes, the last one may have bits to spare.
    pub(super) events_end: u64,
    pub(super) slots: Vec<Cell<u64>>,
    pub(super) clock: Ticks,
    /// Number of the next event.
    pub(super) number: u64,
    /// The event lent last: where it begins, where its fields begin, and with which byte
    /// order of the bit field before them; what decodes them.
    pub(super) begin: u64,
    pub(super) fields: u64,
    pub(super) fields_order: Option<ByteOrder>,
    pub(super) current: Option<&'a EventDecoder>,
    /// Where the next event begins, in bits, once the one before it has been decoded.
    pub(super) next: Cell<u64>,
    /// Byte order of the bit field before it.
    pub(super) next_order: Cell<Option<ByteOrder>>,
    /// Elements without any bits so far, however often they were decoded.
    empty_elements: Cell<u64>,
    /// Where only some fields are wanted, what decodes them.
    narrow: Option<Arc<NarrowPrograms>>,
}

impl<'a> PacketCursor<'a> {
    pub(super) fn new(
        decoder: &'a Decoder,
        data: Cow<'a, [u8]>,
        head: &PacketHead,
        content_bits: u64,
        clock: u64,
    ) -> Self {
        let stream = &decoder.streams[head.stream_class];
        let slots = stream.new_slots();
        let content = Content::new(&data, content_bits);
        let (whole_bytes, end) = (content.bytes.len(), content.bits);
        let all_bytes = content.data.len();
        if !slots.is_empty() {
            // Lengths and selectors in the packet header and context, which events refer to.
            // A fault here was a fault of the packet's head already.
            let _ = Run::over(content, 0, &slots).run(&stream.packet, &mut Nothing);
        }
        Self {
            decoder,
            stream,
            data: match data {
                Cow::Borrowed(data) => Data::OfFile(&data[..all_bytes]),
                Cow::Owned(mut data) => {
                    data.truncate(all_bytes);
                    Data::Opened(data.into())
                }
            },
            whole_bytes,
            end,
            events_end: match head.content_bits {
                Some(_) => content_bits.saturating_sub(decoder.size_unit - 1),
                None => unreported_end(content_bits, stream.event_align),
            },
            slots,
            clock: Ticks(clock),
            number: 0,
            begin: UNKNOWN,
            fields: 0,
            fields_order: None,
            current: None,
            next: Cell::new(head.events_bit),
            next_order: Cell::new(None),
            empty_elements: Cell::new(0),
            narrow: None,
        }
    }

    /// Limits what events report to some fields.
    pub(crate) fn narrow(&mut self, programs: Arc<NarrowPrograms>) {
        self.narrow = Some(programs);
    }

    /// Full ticks of the default clock, as of the event lent last.
    pub fn clock(&self) -> u64 {
        self.clock.0
    }

    /// Lets the clock go on from other ticks than those at which the packet says that it begins.
    pub fn set_clock(&mut self, ticks: u64) {
        self.clock = Ticks(ticks);
    }

    #[inline]
    fn content(&self) -> Content<'_> {
        let data = self.data.bytes();
        Content {
            data,
            bytes: data.get(..self.whole_bytes).unwrap_or_default(),
            bits: self.end,
        }
    }

    #[inline]
    fn run(&self, at: u64, order: Option<ByteOrder>) -> Run<'_> {
        let mut run = Run::over(self.content(), at, &self.slots);
        run.order = order;
        run.empty_elements = self.empty_elements.get();
        run
    }

    /// Runs a program over the fields of the event lent last.
    #[inline]
    pub(super) fn visit<V: Visitor>(
        &self,
        program: &Program,
        visitor: &mut V,
    ) -> Result<(), Fault> {
        let (mut at, mut ops) = (self.fields, &program.ops[..]);
        if !V::POSITIONS && program.lead.ops > 0 {
            let bytes = self.content().bytes;
            if let Some(end) = program.lead.visit(bytes, self.end, at, visitor) {
                (at, ops) = (end, &ops[program.lead.ops..]);
            }
        }
        if ops.is_empty() {
            self.next.set(at);
            self.next_order.set(self.fields_order);
            return Ok(());
        }
        let mut run = self.run(at, self.fields_order);
        let result = run.ops(program, ops, visitor);
        self.empty_elements.set(run.empty_elements);
        if result.is_ok() {
            self.next.set(run.pos);
            self.next_order.set(run.order);
        }
        result
    }

    pub(super) fn extent(&self) -> Extent<'_> {
        Extent {
            bytes: self.content().bytes,
            slots: &self.slots,
        }
    }

    /// Finds the end of the event lent last, if that needs no program and is within the content; returns the number of
    /// its values.
    #[inline]
    fn end(&self, event: &EventDecoder) -> Option<u64> {
        let (end, values) = event.find_end(&self.extent(), self.fields)?;
        self.next.set(end);
        self.next_order.set(self.fields_order);
        Some(values)
    }

    /// Finds where the event lent last ends.
    #[inline]
    fn find_end(&self, event: &EventDecoder) -> Result<(), Fault> {
        match self.end(event) {
            Some(_) => Ok(()),
            None => self.visit(&event.short, &mut Nothing),
        }
    }

    /// Class and time of the event that begins at a bit.
    #[inline]
    fn header(
        &self,
        at: u64,
        order: Option<ByteOrder>,
        clock: Ticks,
    ) -> Result<(Header, Option<ByteOrder>), Fault> {
        if let Some(fast) = &self.stream.fast_header
            && let Some(header) = fast.read(self.content().bytes, at, clock)
        {
            return Ok((header, None));
        }
        self.slow_header(at, order, clock)
    }

    /// The same by the program.
    pub(super) fn slow_header(
        &self,
        at: u64,
        order: Option<ByteOrder>,
        clock: Ticks,
    ) -> Result<(Header, Option<ByteOrder>), Fault> {
        let mut run = self.run(at, order);
        run.clock = clock;
        run.run(&self.stream.short_header, &mut Nothing)?;
        let (event_class, clock, end) = (run.event_class, run.clock, run.pos);
        self.empty_elements.set(run.empty_elements);
        Ok((
            Header {
                event_class,
                clock,
                end,
            },
            run.order,
        ))
    }

    /// Goes to the next event; `false` at the end of the packet.
    #[inline]
    fn step(&mut self) -> Result<bool, Fault> {
        if self.next.get() == UNKNOWN
            && let Some(event) = self.current
        {
            self.find_end(event)?;
        }
        let begin = self.next.get();
        if begin >= self.events_end {
            return Ok(false);
        }
        if begin == self.begin {
            return Err(Fault::new(FaultCode::EmptyEvent, begin, self.number - 1));
        }
        let (header, order) = self.header(begin, self.next_order.get(), self.clock)?;
        let id = header.event_class;
        let Some(position) = self.stream.by_id.get(id) else {
            return Err(Fault::new(FaultCode::UnknownEventClass, begin, id));
        };
        self.clock = header.clock;
        self.begin = begin;
        self.fields = header.end;
        self.fields_order = order;
        self.current = self.stream.events.get(position);
        self.next.set(UNKNOWN);
        self.number += 1;
        Ok(true)
    }

    /// Ends the walk.
    #[cold]
    fn stop(&mut self) {
        self.current = None;
        self.events_end = 0;
        self.next.set(0);
    }
}

impl<'a> Cursor for PacketCursor<'a> {
    type Event<'e>
        = PacketEvent<'e>
    where
        Self: 'e;

    #[inline]
    fn next_event(&mut self) -> Result<Option<PacketEvent<'_>>, Fault> {
        match self.step() {
            Ok(true) => {}
            Ok(false) => {
                self.stop();
                return Ok(None);
            }
            Err(fault) => {
                self.stop();
                return Err(fault);
            }
        }
        Ok(self.current.map(|class| PacketEvent {
            cursor: self,
            class,
        }))
    }

    fn walk_block<V: EventVisitor>(
        &mut self,
        query: &BlockQuery<'_>,
        most: usize,
        block: &mut EventBlock,
        visitor: &mut V,
    ) -> Result<bool, Fault> {
        let walked = self.walk_events(query, most, block, visitor);
        if !matches!(walked, Ok(true)) {
            self.stop();
        }
        walked
    }

    fn walk_headers(&mut self, headers: &mut EventHeaders) -> Result<(), Fault> {
        let walked = self.walk_all_headers(headers);
        self.stop();
        walked
    }

    fn count_events(&mut self, counts: &mut EventCounts) -> Result<(), Fault> {
        let counted = self.count(counts);
        self.stop();
        counted
    }

    fn bytes(&self) -> &[u8] {
        self.data.bytes()
    }
}

/// An event in a packet.
#[derive(Debug)]
pub struct PacketEvent<'e> {
    pub(super) cursor: &'e PacketCursor<'e>,
    pub(super) class: &'e EventDecoder,
}

impl PacketEvent<'_> {
    /// The bytes of its packet up to the end of the content, as they are decoded: those of a secured packet
    /// are in no file. Bits of the event are places in them.
    pub fn packet_bytes(&self) -> &[u8] {
        self.cursor.data.bytes()
    }

    /// Decodes the event header once more, for a visitor.
    ///
    /// # Errors
    ///
    /// None that the cursor has not met already.
    pub fn visit_header<V: Visitor>(&self, visitor: &mut V) -> Result<(), Fault> {
        let mut run = self.cursor.run(self.cursor.begin, None);
        run.run(&self.cursor.stream.event_header, visitor)
    }
}

impl PacketEvent<'_> {
    /// Where its contexts and payload begin and end, in bits from the start of the packet.
    ///
    /// # Errors
    ///
    /// The fault at which decoding stopped.
    pub fn extent(&self) -> Result<(u64, u64), Fault> {
        self.cursor.find_end(self.class)?;
        Ok((self.cursor.fields, self.cursor.next.get()))
    }
}

impl PacketEvent<'_> {
    /// The ticks that it would have, had the event before it been at `clock`: its own number may be
    /// only the low bits of its time.
    pub fn ticks_from(&self, clock: u64) -> Option<u64> {
        self.ticks()?;
        let header = self.cursor.header(self.cursor.begin, None, Ticks(clock));
        header.ok().map(|(header, _)| header.clock.0)
    }
}

impl PacketEvent<'_> {
    /// Adds the byte offsets at which its fields of variable size end.
    pub(super) fn find_all_ends(&self, ends: &mut Vec<usize>) {
        if let Some(end) = &self.class.end {
            end.find_all(&self.cursor.extent(), self.cursor.fields, ends);
        }
    }

    /// Counts its values by running the program, which reports what is wrong with it.
    #[inline(never)]
    fn count_all(&self, count: &mut u64) -> Result<(), Fault> {
        let mut counter = ValueCounter(0);
        let result = self.visit(&mut counter);
        *count += counter.0;
        result
    }
}

impl Event for PacketEvent<'_> {
    #[inline]
    fn class(&self) -> &EventClass {
        &self.cursor.decoder.events[self.class.class]
    }

    #[inline]
    fn class_index(&self) -> usize {
        self.class.class
    }

    #[inline]
    fn timestamp(&self) -> Option<Timestamp> {
        self.cursor
            .stream
            .clock
            .as_ref()?
            .timestamp(self.cursor.clock.0)
    }

    #[inline]
    fn ticks(&self) -> Option<u64> {
        self.cursor
            .stream
            .clock
            .is_some()
            .then_some(self.cursor.clock.0)
    }

    fn number(&self) -> u64 {
        self.cursor.number - 1
    }

    fn begin_bit(&self) -> u64 {
        self.cursor.begin
    }

    #[inline]
    fn visit<V: Visitor>(&self, visitor: &mut V) -> Result<(), Fault> {
        let program = match &self.cursor.narrow {
            None => &self.class.fields,
            Some(programs) => &programs.0[self.class.class],
        };
        self.cursor.visit(program, visitor)
    }

    #[inline]
    fn count_values(&self, count: &mut u64) -> Result<(), Fault> {
        match self.cursor.end(self.class) {
            Some(values) => {
                *count += values;
                Ok(())
            }
            None => self.count_all(count),
        }
    }
}
