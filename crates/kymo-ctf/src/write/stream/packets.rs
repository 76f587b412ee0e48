//! The packets of a stream: how they begin and end.

use std::sync::Arc;

use kymo_time::Ticks;

use super::options::PacketStart;
use super::{MOST_BITS, Open, StreamWriter, Whole};
use crate::class::Dialect;
use crate::write::encode::{Encode, Slot, Stop};
use crate::write::error::WriteError;
use crate::write::head::{self, Head};
use crate::write::sink::{PacketInfo, PacketSink};

/// RFC v1.1 §5 aligns packets to pages.
const PAGE_BYTES: u64 = 4096;

impl<S: PacketSink> StreamWriter<S> {
    /// Begins a packet; the one in hand ends.
    ///
    /// # Errors
    ///
    /// Where a member of its header or context is missing, its time cannot be expressed, or it would be
    /// a second packet and packets do not contain their sizes; those of
    /// [`end_packet`](Self::end_packet).
    pub fn begin_packet(&mut self, start: PacketStart) -> Result<(), WriteError> {
        self.end_packet(None)?;
        let begin = start.begin.or(self.last).unwrap_or(0);
        if let Some(last) = self.last
            && begin < last
            && !self.options.any_order
        {
            return WriteError::misuse(format!(
                "the packet begins at {begin} ticks, before {last}, where the last event is"
            ));
        }
        self.open_packet(start, begin)
    }

    /// Ends the packet in hand, if there is one, and hands it on. `end` are the ticks at its end:
    /// by default, those of its last event.
    ///
    /// # Errors
    ///
    /// Where it cannot be handed on: nothing more can be written then. Where readers could not determine
    /// where its last events end: then these are left out, [as is reported](WriteError::LeftOut), or the
    /// packet is, if it had no others.
    pub fn end_packet(&mut self, end: Option<u64>) -> Result<(), WriteError> {
        let Some(mut open) = self.open.take() else {
            return Ok(());
        };
        let left_out = self.end_whole(&mut open)?;
        let has_clock = self.compiled().clock.is_some();
        let encoder = Arc::clone(&self.encoder);
        let class = &encoder.streams[self.stream_class];
        let end = end.unwrap_or(match open.events {
            0 => open.begin,
            _ => open.now,
        });
        let discarded = match (open.start.discarded, encoder.class.dialect) {
            (Some(reported), _) => reported,
            (None, Dialect::Rfc11) => open.discarded,
            (None, _) => self.discarded,
        };
        if open.events == 0 && has_clock {
            // What follows is not earlier.
            self.last = Some(open.begin);
        }
        let content_bits = self.buffer.pos;
        let least = open.start.least_bytes.saturating_mul(8).min(MOST_BITS);
        let page = match encoder.class.dialect {
            Dialect::Rfc11 => PAGE_BYTES * 8,
            _ => 8,
        };
        let mut total_bits = content_bits.next_multiple_of(8);
        if class.has_total && class.has_content {
            let padded = total_bits.max(least).next_multiple_of(page);
            if padded <= class.most_bits {
                total_bits = padded;
            }
        }
        let unit = encoder.class.dialect.size_unit();
        let head = Head {
            total: total_bits / unit,
            content: content_bits.div_ceil(unit),
            begin: open.begin,
            end,
            discarded,
            ..self.head()
        };
        self.buffer.reserve(total_bits);
        let events_end = self.buffer.mark();
        self.buffer.pos = 0;
        self.buffer.order = None;
        let written = self.write_head(&head);
        self.buffer.resume(events_end);
        if let Err(stop) = written {
            self.broken = true;
            return Err(self.refused(stop));
        }
        let bytes = self.buffer.bytes((total_bits / 8) as usize);
        let said = encoder.decoder.packet_head(bytes).unwrap_or_default();
        let clock = Ticks(open.clock);
        self.carried = match (said.end, said.begin) {
            (Some((ticks, bits)), _) => Some(clock.advance(ticks, bits).0),
            (None, _) if class.narrow_events => Some(open.now),
            (None, begin) => begin.map(|_| open.clock),
        };
        let info = PacketInfo {
            stream_class_id: encoder.class.streams[self.stream_class].id,
            stream_id: self.options.stream_id,
            total_bits,
            content_bits,
            begin: has_clock.then_some(open.begin),
            end: has_clock.then_some(end),
            discarded,
            sequence: self.sequence,
            events: open.events,
        };
        let taken = self.sink.packet(bytes, &info);
        self.buffer.pos = total_bits;
        self.buffer.clear();
        self.packets += 1;
        self.sequence = self.sequence.wrapping_add(1);
        if taken.is_err() {
            self.broken = true;
        }
        taken?;
        match left_out {
            0 => Ok(()),
            events => Err(WriteError::LeftOut { events }),
        }
    }

    /// Takes back the events behind the last place at which the packet can end; how many these are.
    fn end_whole(&mut self, open: &mut Open) -> Result<u64, WriteError> {
        let events = open.events;
        match open.whole {
            _ if self.can_end() => Ok(0),
            Some(Whole { end, events, now }) => {
                self.buffer.rewind(end);
                let left_out = open.events - events;
                (open.events, open.now) = (events, now);
                Ok(left_out)
            }
            None => {
                self.buffer.clear();
                match events {
                    0 => WriteError::misuse(
                        "the packet has no events, its context ends within a byte, and packets do not \
                         have the size of their content: readers would look for an event behind it",
                    ),
                    events => Err(WriteError::LeftOut { events }),
                }
            }
        }
    }

    /// Hands on a packet that is whole, as it is; the packet in hand ends before it. The writer
    /// goes on with what the packet says of itself.
    ///
    /// # Errors
    ///
    /// If it is not a packet of this stream; those of [`end_packet`](Self::end_packet).
    pub fn whole_packet(&mut self, bytes: &[u8], info: &PacketInfo) -> Result<(), WriteError> {
        self.end_packet(None)?;
        self.check_usable()?;
        self.carried = info.end.or(info.begin);
        self.last = info.end.or(self.last);
        self.discarded = info.discarded;
        self.sequence = info.sequence.wrapping_add(1);
        self.packets += 1;
        let taken = self.sink.packet(bytes, info);
        self.broken = taken.is_err();
        Ok(taken?)
    }

    /// Begins a packet whose first event is not before `begin`.
    pub(super) fn open_packet(&mut self, start: PacketStart, begin: u64) -> Result<(), WriteError> {
        self.check_usable()?;
        let is_one = !self.of().has_total && !self.of().has_content;
        if is_one && self.packets > 0 {
            return WriteError::misuse(
                "packets of this stream class do not have their sizes, so that a stream can have \
                 only one",
            );
        }
        if let Some(sequence) = start.sequence {
            self.sequence = sequence;
        }
        if let Some(discarded) = start.discarded {
            self.discarded = discarded;
        }
        self.scratch.slots.fill(Slot::default());
        self.scratch.empty_elements = 0;
        let head = Head {
            begin,
            end: begin,
            discarded: self.discarded,
            ..self.head()
        };
        let written = self.write_head(&head);
        let clock = match written {
            Ok(()) => self.begin_clock(begin),
            Err(stop) => Err(self.refused(stop)),
        };
        match clock {
            Ok(clock) => {
                let end = self.can_end().then(|| self.buffer.mark());
                self.open = Some(Open {
                    start,
                    begin,
                    clock,
                    now: clock,
                    events: 0,
                    discarded: self.discarded,
                    whole: end.map(|end| Whole {
                        end,
                        events: 0,
                        now: clock,
                    }),
                });
                Ok(())
            }
            Err(error) => {
                self.buffer.clear();
                Err(error)
            }
        }
    }

    /// Begins the packet in hand, which has no events yet, at another time.
    pub(super) fn begin_again(&mut self, open: &Open, begin: u64) -> Result<(), WriteError> {
        let mut again = |begin| {
            self.open = None;
            self.buffer.clear();
            let start = PacketStart {
                begin: Some(begin),
                ..open.start
            };
            self.open_packet(start, begin)
        };
        let begun = again(begin);
        if begun.is_err() {
            // It cannot express that time either, and stays as it was.
            again(open.begin)?;
        }
        begun
    }

    /// The clock in ticks, as a reader sees it, at the start of the packet whose head was just written.
    fn begin_clock(&self, begin: u64) -> Result<u64, WriteError> {
        let encoder = &self.encoder;
        let bytes = self.buffer.bytes(self.buffer.pos.div_ceil(8) as usize);
        let said = encoder.decoder.packet_head(bytes).map_err(|fault| {
            WriteError::Misuse(format!(
                "the header of the packet cannot be read back ({})",
                fault.code.as_str()
            ))
        })?;
        // In RFC v1.1, the name of the file identifies the section.
        if said.stream_class != self.stream_class && encoder.class.dialect != Dialect::Rfc11 {
            return WriteError::misuse(
                "packets do not have the number of their stream class, and the trace has several",
            );
        }
        if self.compiled().clock.is_none() {
            return Ok(0);
        }
        let carried = self.carried.filter(|_| encoder.carries_clock());
        let clock = match said.begin {
            Some((ticks, 64..)) => ticks,
            Some((ticks, bits)) => {
                carried.map_or(ticks, |clock| Ticks(clock).advance(ticks, bits).0)
            }
            None if self.of().narrow_events => return Ok(carried.unwrap_or(0)),
            None => return Ok(0),
        };
        match clock == begin {
            true => Ok(clock),
            false => WriteError::misuse(format!(
                "the packet begins at {begin} ticks, which its field of {} bits cannot hold: a \
                 reader would read {clock}",
                said.begin.map_or(0, |(_, bits)| bits)
            )),
        }
    }

    fn head(&self) -> Head {
        let class = &self.encoder.class;
        Head {
            uuid: class.uuid,
            stream_class_id: class.streams[self.stream_class].id,
            stream_id: self.options.stream_id.unwrap_or(0),
            sequence: self.sequence,
            ..Head::default()
        }
    }

    /// Writes header and context at the beginning of the buffer.
    fn write_head(&mut self, head: &Head) -> Result<(), Stop> {
        let encoder = Arc::clone(&self.encoder);
        let compiled = &encoder.decoder.streams[self.stream_class];
        let mut encode = Encode::new(
            &compiled.packet,
            &compiled.packet_schema,
            &mut self.buffer,
            &mut self.scratch,
            MOST_BITS,
            self.options.lenient,
        );
        head::packet(&mut encode, head, &self.packet_members);
        encode.finish()
    }
}
