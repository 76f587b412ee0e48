//! Walks over many events of a packet in one loop.

use kymo_model::{
    BlockQuery, Event, EventBlock, EventMark, EventVisitor, Fault, FaultCode, Nothing,
};
use kymo_time::Timestamp;

use super::cursor::{PacketCursor, PacketEvent, UNKNOWN};
use super::end::Extent;

impl PacketCursor<'_> {
    /// What [`walk_block`](kymo_model::Cursor::walk_block) does, which is ended by a fault, and by the end of the
    /// packet.
    pub(super) fn walk_events<V: EventVisitor>(
        &mut self,
        query: &BlockQuery<'_>,
        most: usize,
        block: &mut EventBlock,
        visitor: &mut V,
    ) -> Result<bool, Fault> {
        block.bases.clear();
        let converter = self.stream.clock.as_ref().map(|clock| clock.converter());
        let (begin_time, end_time) = query.window;
        let content = Extent {
            bytes: self
                .data
                .bytes()
                .get(..self.whole_bytes)
                .unwrap_or_default(),
            bits: self.end,
        };
        let fast_header = self.stream.fast_header.as_ref();
        while block.bases.len() < most {
            block.at = None;
            if self.next.get() == UNKNOWN
                && let Some(event) = self.current
            {
                match event.find_end(content, &self.slots, self.fields) {
                    Some((end, _)) => {
                        self.next.set(end);
                        self.next_order.set(self.fields_order);
                    }
                    None => self.visit(&event.short, &mut Nothing)?,
                }
            }
            let begin = self.next.get();
            if begin >= self.events_end {
                return Ok(false);
            }
            if begin == self.begin {
                return Err(Fault::new(FaultCode::EmptyEvent, begin, self.number - 1));
            }
            let fast = fast_header.and_then(|fast| fast.read(content.bytes, begin, self.clock));
            let (header, order) = match fast {
                Some(header) => (header, None),
                None => self.slow_header(begin, self.next_order.get(), self.clock)?,
            };
            let id = header.event_class;
            let position = self.stream.by_id.get(id);
            let Some(event) = position.and_then(|position| self.stream.events.get(position)) else {
                return Err(Fault::new(FaultCode::UnknownEventClass, begin, id));
            };
            let (number, class) = (self.number, event.class);
            self.clock = header.clock;
            self.begin = begin;
            self.fields = header.end;
            self.fields_order = order;
            self.current = Some(event);
            self.next.set(UNKNOWN);
            self.number += 1;

            let mut ticks = 0;
            let mut time = EventBlock::NO_TIME;
            if let Some(converter) = &converter {
                ticks = header.clock.0;
                block.order.meet(ticks, || EventMark {
                    ticks,
                    number,
                    class,
                    bit: begin,
                });
                if let Some(at) = converter.timestamp(ticks) {
                    if at < begin_time || end_time < at {
                        continue;
                    }
                    time = Timestamp::as_nanos(at);
                }
            }
            let Some(interest) = query.interests.get(class).filter(|of| of.is_wanted) else {
                continue;
            };
            if !query.numbers.contains(&number) {
                continue;
            }
            let base = (header.end.saturating_add(event.places.mask) & !event.places.mask) / 8;
            block.push(time, ticks, class as u32, number, base as usize);
            if interest.is_visited {
                block.at = Some((number, class));
                let visited = visitor.event(&PacketEvent {
                    cursor: self,
                    class: event,
                });
                match visited {
                    Ok(true) => {}
                    Ok(false) => return Ok(true),
                    Err(fault) => {
                        block.pop();
                        return Err(fault);
                    }
                }
            } else if interest.is_decoded {
                if let Some((end, _)) = event.find_end(content, &self.slots, header.end) {
                    self.next.set(end);
                    self.next_order.set(order);
                    continue;
                }
                block.at = Some((number, class));
                let event = PacketEvent {
                    cursor: self,
                    class: event,
                };
                if let Err(fault) = event.visit(&mut Nothing) {
                    block.pop();
                    return Err(fault);
                }
            }
        }
        Ok(true)
    }
}
