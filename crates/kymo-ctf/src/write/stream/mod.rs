//! Events in, packets out.

mod options;
mod packets;
mod place;

use std::sync::Arc;

use kymo_machine::ByteOrder;
use kymo_time::Ticks;

pub use self::options::{PacketStart, RawEvent, StreamOptions};
use self::place::{Keep, Place, Write};
use super::buffer::{Buffer, Mark};
use super::encode::{Encode, Scratch, Stop};
use super::encoder::{Encoder, EventId, StreamEncoder};
use super::error::WriteError;
use super::fields::Fields;
use super::head::{Members, Reported};
use super::sink::PacketSink;
use crate::class::Dialect;
use crate::decode::StreamDecoder;

/// The largest packet that is written, in bits: readers hold packets in memory.
const MOST_BITS: u64 = 1 << 32;

/// The least size of packets that are ended by themselves, in bytes.
pub(super) const LEAST_PACKET_BYTES: u64 = 4096;

/// The packet that is being written.
#[derive(Clone, Copy, Debug)]
struct Open {
    start: PacketStart,
    begin: u64,
    /// Ticks as a reader has them at the beginning.
    clock: u64,
    /// Ticks as a reader has them after the last event.
    now: u64,
    events: u64,
    discarded: u64,
    /// The last place at which the packet could end, if there is one.
    whole: Option<Whole>,
}

/// A place at which a packet can end.
#[derive(Clone, Copy, Debug)]
struct Whole {
    end: Mark,
    /// Events before it, and ticks after them.
    events: u64,
    now: u64,
}

/// Writes the packets of one stream.
///
/// What was handed over is not yet written before [`end_packet`](Self::end_packet) or
/// [`finish`](Self::finish): dropping the writer loses the packet in hand.
#[derive(Debug)]
#[must_use = "the last packet is written by `finish`"]
pub struct StreamWriter<S> {
    encoder: Arc<Encoder>,
    stream_class: usize,
    options: StreamOptions,
    sink: S,
    buffer: Buffer,
    scratch: Scratch,
    packet_members: Members,
    header_members: Members,
    open: Option<Open>,
    /// Ticks that a reader goes on from at the next packet, where that does not contain all of them.
    carried: Option<u64>,
    /// Ticks of the event before.
    last: Option<u64>,
    discarded: u64,
    sequence: u64,
    packets: u64,
    /// Why nothing more can be written.
    broken: bool,
}

impl<S: PacketSink> StreamWriter<S> {
    /// A stream of the class at a position in
    /// [`TraceClass::streams`](crate::class::TraceClass::streams).
    ///
    /// # Errors
    ///
    /// If the class does not exist.
    pub fn new(
        encoder: &Arc<Encoder>,
        stream_class: usize,
        options: StreamOptions,
        sink: S,
    ) -> Result<Self, WriteError> {
        let Some(compiled) = encoder.decoder.streams.get(stream_class) else {
            let count = encoder.streams.len();
            return WriteError::misuse(format!(
                "the trace has {count} stream classes, and none at position {stream_class}"
            ));
        };
        let mut packet_members = Members::default();
        if encoder.class.dialect == Dialect::Rfc11 {
            // All bits of the packets' numbers count; packets are as they are.
            for (name, value) in [
                ("session_id", 0),
                ("checksum", 0),
                ("section_packet_count_bits", 32),
                ("compression_scheme", 0),
                ("encryption_scheme", 0),
                ("checksum_scheme", 0),
            ] {
                packet_members.set(name, super::Token::Uint(value));
            }
        }
        Ok(Self {
            scratch: Scratch::new(compiled.slots),
            encoder: Arc::clone(encoder),
            stream_class,
            options,
            sink,
            buffer: Buffer::default(),
            packet_members,
            header_members: Members::default(),
            open: None,
            carried: None,
            last: None,
            discarded: 0,
            sequence: 0,
            packets: 0,
            broken: false,
        })
    }

    /// Members of packet header and packet context that have no role, such as `cpu_id`: what is
    /// set here goes into the packets that begin after it.
    pub fn packet_members(&mut self) -> &mut Members {
        &mut self.packet_members
    }

    /// Members of event headers that have no role.
    pub fn header_members(&mut self) -> &mut Members {
        &mut self.header_members
    }

    /// Where packets go.
    pub fn sink(&mut self) -> &mut S {
        &mut self.sink
    }

    /// Counts events that were lost: readers report them as lost within the packet in hand, or
    /// before it; of RFC v1.1 before the next one.
    pub fn discard(&mut self, events: u64) {
        self.discarded = self.discarded.wrapping_add(events);
        if self.encoder.class.dialect != Dialect::Rfc11
            && let Some(Open { start, .. }) = &mut self.open
            && let Some(discarded) = &mut start.discarded
        {
            *discarded = discarded.wrapping_add(events);
        }
    }

    /// The number of the packet in hand, or of the next one.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Whether there are events in the packet in hand.
    pub fn has_events(&self) -> bool {
        self.open.is_some_and(|open| open.events > 0)
    }

    /// Writes an event: `ticks` are the full ticks of the stream's clock, where it has one. Its
    /// values are taken in the order of its class. It begins a new packet where it needs one, and
    /// `fields` may then be asked twice: where packets end by themselves and this one is full, and
    /// where the header of the event has too few bits for its time, but that of a packet has not. A
    /// packet without events then begins later instead.
    ///
    /// # Errors
    ///
    /// Where a value does not fit, is missing or of another kind, the time goes back, or the event
    /// class does not exist: the event is then not written, and others can be. Where a packet
    /// cannot be handed on.
    pub fn event(
        &mut self,
        class: EventId,
        ticks: impl Into<Option<u64>>,
        mut fields: impl FnMut(&mut Fields<'_, '_>),
    ) -> Result<(), WriteError> {
        let Ok(()) = self.visited(class, ticks.into(), |encode| {
            let mut taker = Fields::new(encode);
            fields(&mut taker);
            taker.settle();
            Ok::<_, std::convert::Infallible>(())
        })?;
        Ok(())
    }

    /// Writes an event whose values are passed as a reader passes them to a
    /// [`Visitor`](kymo_model::Visitor); where that fails, the event is not written, and its error
    /// is the inner one.
    ///
    /// # Errors
    ///
    /// Those of [`event`](Self::event).
    pub fn visited<E>(
        &mut self,
        class: EventId,
        ticks: Option<u64>,
        mut visit: impl FnMut(&mut Encode<'_>) -> Result<(), E>,
    ) -> Result<Result<(), E>, WriteError> {
        let lenient = self.options.lenient;
        let mut searching = true;
        loop {
            let mut any = false;
            let done = self.place(class, ticks, &mut |at: Place<'_>| {
                at.scratch.fills.begin(searching);
                let program = &at.event.fields;
                let schema = &at.encoder.decoder.events[at.event.class].schema;
                let mut encode =
                    Encode::new(program, schema, at.buffer, at.scratch, at.limit, lenient);
                let visited = visit(&mut encode);
                if visited.is_ok() {
                    encode.finish()?;
                }
                any = at.scratch.fills.any();
                match (visited, searching && any) {
                    // Now they are known, or it is another event that is written.
                    (visited, true) => Ok((visited, Keep::No)),
                    (Ok(()), false) => Ok((Ok(()), Keep::Yes)),
                    (Err(error), false) => Ok((Err(error), Keep::No)),
                }
            })?;
            if done.is_err() || !(searching && any) {
                return Ok(done);
            }
            searching = false;
        }
    }

    /// Copies the bits of an event of the same layout; `false`, with nothing done, where it would
    /// lie otherwise here, so that it has to be written by its values.
    ///
    /// # Errors
    ///
    /// Those of [`event`](Self::event).
    pub fn copied(
        &mut self,
        class: EventId,
        ticks: Option<u64>,
        raw: &RawEvent<'_>,
    ) -> Result<bool, WriteError> {
        self.place(class, ticks, &mut |at: Place<'_>| {
            let pos = at.buffer.pos;
            let is_within = |bit: u64| !bit.is_multiple_of(8);
            let is_mixed = is_within(pos)
                && at
                    .buffer
                    .order
                    .is_some_and(|order| Some(order) != raw.order);
            let is_unordered =
                raw.order.is_none() && [pos, raw.fields, raw.end].into_iter().any(is_within);
            if !pos.abs_diff(raw.fields).is_multiple_of(raw.align) || is_mixed || is_unordered {
                return Ok((false, Keep::No));
            }
            if pos.saturating_add(raw.end.saturating_sub(raw.fields)) > at.limit {
                return Err(Stop::Full);
            }
            let order = raw.order.unwrap_or(ByteOrder::Little);
            let copied = at.buffer.copy(raw.data, raw.fields, raw.end, order);
            if copied.is_none() {
                let problem = "the event to copy does not lie within the data given";
                return Err(Stop::Error(WriteError::Misuse(problem.to_owned())));
            }
            at.buffer.order = raw.order;
            Ok((true, Keep::Yes))
        })
    }

    /// Ends the last packet, and gives back where packets went.
    ///
    /// # Errors
    ///
    /// Those of [`end_packet`](Self::end_packet).
    pub fn finish(mut self) -> Result<S, WriteError> {
        self.end_packet(None)?;
        Ok(self.sink)
    }

    fn compiled(&self) -> &StreamDecoder {
        &self.encoder.decoder.streams[self.stream_class]
    }

    fn of(&self) -> &StreamEncoder {
        &self.encoder.streams[self.stream_class]
    }

    fn check_usable(&self) -> Result<(), WriteError> {
        match self.broken {
            true => WriteError::misuse(
                "a packet of this stream could not be written before, so nothing can follow it",
            ),
            false => Ok(()),
        }
    }

    fn refused(&self, stop: Stop) -> WriteError {
        match stop {
            Stop::Error(error) => error,
            Stop::Full => WriteError::Misuse("the event is larger than a packet may be".to_owned()),
        }
    }

    /// Finds a place for an event, writes its header, and lets its fields be written.
    fn place<R>(
        &mut self,
        class: EventId,
        ticks: Option<u64>,
        write: &mut Write<'_, R>,
    ) -> Result<R, WriteError> {
        let ticks = self.check(class, ticks)?;
        loop {
            if self.open.is_none() {
                let begin = ticks.or(self.last).unwrap_or(0);
                self.open_packet(PacketStart::default(), begin)?;
            }
            let Some(open) = self.open else {
                return self
                    .check_usable()
                    .and_then(|()| WriteError::misuse("no packet"));
            };
            let limit = self.limit(&open);
            let before = self.buffer.mark();
            let is_late = open.events > 0 && self.is_beyond_end(&open, ticks);
            let mut is_unreported = is_late;
            let encoder = &*self.encoder;
            let reported = Reported {
                id: encoder.class.streams[self.stream_class].events[class.event].id,
                ticks,
                clock: open.now,
            };
            let mut place = Place {
                encoder,
                event: &encoder.decoder.streams[self.stream_class].events[class.event],
                buffer: &mut self.buffer,
                scratch: &mut self.scratch,
                limit,
            };
            let lenient = self.options.lenient;
            let done = match is_late {
                true => Err(Stop::Full),
                false => place
                    .header(self.stream_class, &reported, &self.header_members, lenient)
                    .inspect_err(|stop| is_unreported = matches!(stop, Stop::Error(_)))
                    .and_then(|()| write(place)),
            };
            let done = done.and_then(|(value, keep)| {
                if let Keep::Yes = keep {
                    self.check_end(before)?;
                }
                Ok((value, keep))
            });
            match done {
                Ok((value, Keep::Yes)) => {
                    let whole = self.can_end().then(|| self.buffer.mark());
                    if let Some(open) = &mut self.open {
                        open.events += 1;
                        open.now = ticks.unwrap_or(open.now);
                        let (events, now) = (open.events, open.now);
                        let whole = whole.map(|end| Whole { end, events, now });
                        open.whole = whole.or(open.whole);
                    }
                    self.last = ticks.or(self.last);
                    return Ok(value);
                }
                Ok((value, Keep::No)) => {
                    self.buffer.rewind(before);
                    return Ok(value);
                }
                Err(stop) => {
                    self.buffer.rewind(before);
                    let is_full = matches!(stop, Stop::Full) && self.ends_packets();
                    match ticks.filter(|&ticks| is_unreported && self.can_begin_at(&open, ticks)) {
                        Some(ticks) if open.events == 0 => self.begin_again(&open, ticks)?,
                        None if !is_full || open.events == 0 => return Err(self.refused(stop)),
                        _ => self.end_packet(None)?,
                    }
                }
            }
        }
    }

    /// Whether packets end by themselves.
    fn ends_packets(&self) -> bool {
        let class = self.of();
        self.options.packet_bytes.is_some() && (class.has_total || class.has_content)
    }

    /// Whether another packet that begins with an event could hold its time, which does not fit in
    /// the one in hand.
    fn can_begin_at(&self, open: &Open, ticks: u64) -> bool {
        let class = self.of();
        class.has_begin
            && match open.events {
                0 => ticks != open.begin,
                _ => ticks != open.now && (class.has_total || class.has_content) && self.can_end(),
            }
    }

    /// Where the packet must end, in bits.
    fn limit(&self, open: &Open) -> u64 {
        let most = self.of().most_bits.min(MOST_BITS);
        match self.options.packet_bytes {
            Some(bytes) if open.events > 0 && self.ends_packets() => {
                most.min(bytes.max(LEAST_PACKET_BYTES).saturating_mul(8))
            }
            _ => most,
        }
    }

    /// Whether the packet could not state that it ends with an event of this time.
    fn is_beyond_end(&self, open: &Open, ticks: Option<u64>) -> bool {
        let Some((bits, ticks)) = self.of().end_bits.zip(ticks) else {
            return false;
        };
        Ticks(open.clock).advance(ticks, bits).0 != ticks && !self.options.any_order
    }

    /// Checks that an event can be written here at all; gives its ticks, where it has some.
    fn check(&self, class: EventId, ticks: Option<u64>) -> Result<Option<u64>, WriteError> {
        self.check_usable()?;
        let stream = &self.encoder.class.streams[self.stream_class];
        if class.stream_class != self.stream_class || class.event >= stream.events.len() {
            return WriteError::misuse("the event is of a class that this stream does not have");
        }
        if self.compiled().clock.is_none() {
            return Ok(None);
        }
        let Some(ticks) = ticks else {
            return WriteError::misuse("the event has no time, and its stream has a clock");
        };
        let begin = self.open.and_then(|open| open.start.begin);
        if let Some(before) = self.last.max(begin)
            && ticks < before
            && !self.options.any_order
        {
            return WriteError::misuse(format!(
                "the event is at {ticks} ticks, before {before}, where the one before it is"
            ));
        }
        Ok(Some(ticks))
    }

    /// Whether a reader takes the packet to end here: one that does not know the size of the content
    /// goes on as long as another event could begin.
    fn can_end(&self) -> bool {
        let pos = self.buffer.pos;
        let next = pos.next_multiple_of(self.compiled().event_align);
        self.of().has_content || next >= pos.next_multiple_of(8)
    }

    /// What has no bits has no place; and where packets end by themselves, each event may be the last
    /// one.
    fn check_end(&self, before: Mark) -> Result<(), Stop> {
        let pos = self.buffer.pos;
        let problem = if pos == before.pos() {
            "the event takes no space: readers cannot count such events"
        } else if self.ends_packets() && !self.can_end() {
            "the event ends within a byte, and packets do not have the size of their content"
        } else {
            return Ok(());
        };
        Err(Stop::Error(WriteError::Misuse(problem.to_owned())))
    }
}
