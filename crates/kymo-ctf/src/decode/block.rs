//! Walks over many events of a packet in one loop.

use std::ops::ControlFlow;

use kymo_model::{
    BlockQuery, Cursor, Event, EventBlock, EventCounts, EventHeaders, EventMark, EventOrder,
    EventVisitor, Fault, Interest, Nothing,
};
use kymo_time::{TickConverter, Ticks, Timestamp};

use super::cursor::{PacketCursor, UNKNOWN};
use super::end::{Extent, align};
use super::header::{HeaderReader, Packed};

/// Number of rows that are put in place at once.
const ROOM: usize = 128;

/// An event of which header and end are known without running a program.
struct SimpleEvent {
    /// Position of its class in the recording.
    class: usize,
    number: u64,
    /// Where it begins, in bits.
    begin: u64,
    /// The clock at it.
    clock: Ticks,
    /// The byte that its places count from.
    base: usize,
}

impl SimpleEvent {
    fn mark(&self) -> EventMark {
        EventMark {
            ticks: self.clock.0,
            number: self.number,
            class: self.class,
            bit: self.begin,
        }
    }
}

/// Gets simple events, one after the other.
trait SimpleVisitor {
    /// What it wants of the events of a class: nothing beside what [`event`](Self::event) gets, unless it says otherwise.
    #[inline(always)]
    fn interest(&self, _class: usize) -> Interest {
        Interest::default()
    }

    /// Where the ends of fields go, if they are wanted.
    fn ends(&mut self) -> &mut Vec<usize> {
        unreachable!("nobody wants them")
    }

    /// Of the events with a clock, the order, if it is asked for.
    #[inline]
    fn order(&mut self) -> Option<&mut EventOrder> {
        None
    }

    /// The next event, and the number of its values. `false` ends the walk behind it.
    fn event(&mut self, event: &SimpleEvent, interest: Interest, values: u64) -> bool;
}

impl PacketCursor<'_> {
    /// Walks on until an event is not simple, or is to be visited.
    fn walk_simple(&mut self, visitor: &mut impl SimpleVisitor) {
        let Some(header) = &self.stream.fast_header else {
            return;
        };
        let is_unaligned = header.is_unaligned() && self.stream.simple.is_packed;
        // A loop for each of the usual headers.
        match (header.is_packed(), header.is_compact(), is_unaligned) {
            (true, true, true) => self.walk_with(&Packed::<5, 27, false>(header), visitor),
            (true, true, false) => self.walk_with(&Packed::<5, 27, true>(header), visitor),
            (true, false, true) => self.walk_with(&Packed::<16, 32, false>(header), visitor),
            (true, false, false) => self.walk_with(&Packed::<16, 32, true>(header), visitor),
            (false, ..) => self.walk_with(header, visitor),
        }
    }

    #[inline(always)]
    fn walk_with<R: HeaderReader>(&mut self, reader: &R, visitor: &mut impl SimpleVisitor) {
        let stream = self.stream;
        let bytes = self.data.bytes().get(..self.whole_bytes);
        let content = Extent {
            bytes: bytes.unwrap_or_default(),
            slots: &self.slots,
        };
        let bytes = content.bytes;
        if self.next.get() == UNKNOWN {
            let current = self.current;
            let end = current.and_then(|event| event.find_end(&content, self.fields));
            let Some((end, _)) = end else {
                return;
            };
            self.next.set(end);
            self.next_order.set(self.fields_order);
        }
        if !self.next.get().is_multiple_of(8) {
            return;
        }
        let mut next = (self.next.get() / 8) as usize;
        let events_end = usize::try_from(self.events_end.div_ceil(8)).unwrap_or(usize::MAX);
        let (mut clock, mut number) = (self.clock, self.number);
        // Where the last event begins.
        let mut last = next;
        while next < events_end {
            let Some((id, at, fields)) = reader.read(bytes, next, clock) else {
                break;
            };
            let Some(simple) = stream.simple.get(id, || stream.by_id.get(id)) else {
                break;
            };
            let class = simple.class as usize;
            let interest = visitor.interest(class);
            if interest.is_visited {
                break;
            }
            let mask = if R::ALIGNED { simple.mask as usize } else { 0 };
            let mut end = align(fields, mask) + simple.bytes;
            if end > bytes.len() {
                break;
            }
            let mut values = u64::from(simple.values);
            if simple.has_steps {
                let steps = stream.events.get(simple.position as usize);
                let Some(steps) = steps.and_then(|decoder| decoder.end.as_ref()) else {
                    break;
                };
                let found = match interest.wants_ends {
                    false => steps.find_behind(&content, end),
                    true => steps.find_all_behind(&content, end, visitor.ends()),
                };
                let Some(found) = found else {
                    break;
                };
                (end, values) = found.into();
            } else if interest.wants_ends {
                // It has none.
                visitor.ends();
            }
            let base_mask = if R::ALIGNED {
                simple.base_mask as usize
            } else {
                0
            };
            let event = SimpleEvent {
                class,
                number,
                begin: next as u64 * 8,
                clock: at,
                base: align(fields, base_mask),
            };
            let is_first = number == self.number;
            if (at < clock || is_first)
                && let Some(order) = visitor.order()
            {
                if !is_first {
                    order.pass_to(clock.0);
                }
                order.meet(at.0, || event.mark());
            }
            (last, next, clock) = (next, end, at);
            number += 1;
            if !visitor.event(&event, interest, values) {
                break;
            }
        }
        if number == self.number {
            return;
        }
        if let Some(order) = visitor.order() {
            order.pass_to(clock.0);
        }
        if let Some((id, _, fields)) = reader.read(bytes, last, clock) {
            let position = stream.by_id.get(id);
            self.current = position.and_then(|position| stream.events.get(position));
            self.fields = fields as u64 * 8;
        }
        self.begin = last as u64 * 8;
        self.fields_order = None;
        self.clock = clock;
        self.number = number;
        self.next.set(next as u64 * 8);
        self.next_order.set(None);
    }

    /// What [`walk_block`](Cursor::walk_block) does.
    pub(super) fn walk_events<V: EventVisitor>(
        &mut self,
        query: &BlockQuery<'_>,
        most: usize,
        block: &mut EventBlock,
        visitor: &mut V,
    ) -> Result<bool, Fault> {
        let is_all =
            query.numbers == (0..u64::MAX) && query.window == (Timestamp::MIN, Timestamp::MAX);
        let is_row = |interest: &Interest| {
            interest.is_wanted && !interest.is_visited && !interest.wants_ends
        };
        let (interests, classes) = (query.interests, &self.stream.events);
        let is_every = is_all
            && interests.iter().all(is_row)
            && classes.iter().all(|class| class.class < interests.len());
        let is_plain = |interest: &Interest| !interest.is_visited && !interest.wants_ends;
        match (is_every, is_all && interests.iter().all(is_plain)) {
            (true, _) => self.walk_rows::<V, true, true>(query, is_all, most, block, visitor),
            (_, true) => self.walk_rows::<V, false, true>(query, is_all, most, block, visitor),
            _ => self.walk_rows::<V, false, false>(query, is_all, most, block, visitor),
        }
    }

    fn walk_rows<V: EventVisitor, const EVERY: bool, const PLAIN: bool>(
        &mut self,
        query: &BlockQuery<'_>,
        is_all: bool,
        most: usize,
        block: &mut EventBlock,
        visitor: &mut V,
    ) -> Result<bool, Fault> {
        block.begin_walk();
        let mut rows = BlockRows::<'_, EVERY, PLAIN> {
            query,
            clock: self.stream.clock.as_ref().map(|clock| clock.converter()),
            is_all,
            order: block.order,
            rows: RoomOfRows {
                ticks: [0; ROOM],
                numbers: [0; ROOM],
                bases: [0; ROOM],
                first_ends: [0; ROOM],
                classes: [0; ROOM],
            },
            filled: 0,
            room: 0,
            ends: std::mem::take(&mut block.ends),
            begin_ends: 0,
            is_visited: false,
            at: None,
        };
        let mut left = most;
        let walked = loop {
            rows.room = ROOM.min(left);
            if rows.room == 0 {
                break Ok(true);
            }
            let first = self.number;
            let walked = self.walk_room(&mut rows, visitor);
            left -= rows.filled;
            rows.move_to(block, first);
            if let Some(walked) = walked.transpose() {
                break walked;
            }
        };
        (block.order, block.ends, block.at) = (rows.order, rows.ends, rows.at);
        walked
    }

    /// Walks on until the rows are full, or until the walk ends: with whether there may be more events.
    fn walk_room<V: EventVisitor, const EVERY: bool, const PLAIN: bool>(
        &mut self,
        rows: &mut BlockRows<'_, EVERY, PLAIN>,
        visitor: &mut V,
    ) -> Result<Option<bool>, Fault> {
        while rows.has_room() {
            // Behind an event that was visited, there is likely another one.
            if !rows.is_visited {
                self.walk_simple(rows);
                if !rows.has_room() {
                    break;
                }
            }
            if let ControlFlow::Break(is_more) = self.walk_event(rows, visitor)? {
                return Ok(Some(is_more));
            }
        }
        Ok(None)
    }

    /// Goes to the next event, whatever it is, and adds it if it is wanted. Breaks if the walk ends, with whether there
    /// may be more.
    fn walk_event<V: EventVisitor, const EVERY: bool, const PLAIN: bool>(
        &mut self,
        rows: &mut BlockRows<'_, EVERY, PLAIN>,
        visitor: &mut V,
    ) -> Result<ControlFlow<bool>, Fault> {
        let Some(event) = self.next_event()? else {
            return Ok(ControlFlow::Break(false));
        };
        let interest = rows.interest_in(event.class_index());
        rows.is_visited = interest.is_visited;
        rows.begin_ends = rows.ends.len();
        if interest.wants_ends {
            event.find_all_ends(&mut rows.ends);
        }
        let mask = event.class.places.mask;
        let simple = SimpleEvent {
            class: event.class_index(),
            number: event.number(),
            begin: event.begin_bit(),
            clock: event.cursor.clock,
            base: ((event.cursor.fields.saturating_add(mask) & !mask) / 8) as usize,
        };
        if let Some(order) = rows.order() {
            order.meet(simple.clock.0, || simple.mark());
        }
        let done = match rows.add(&simple, interest) {
            true if interest.is_visited => visitor.event(&event),
            true if interest.is_decoded => event.visit(&mut Nothing).map(|()| true),
            _ => Ok(true),
        };
        match done {
            Ok(true) => Ok(ControlFlow::Continue(())),
            Ok(false) => Ok(ControlFlow::Break(true)),
            Err(fault) => {
                rows.filled -= 1;
                rows.at = Some((event.number(), event.class_index()));
                Err(fault)
            }
        }
    }

    /// What [`walk_headers`](Cursor::walk_headers) does.
    pub(super) fn walk_all_headers(&mut self, headers: &mut EventHeaders) -> Result<(), Fault> {
        let clock = self.stream.clock.as_ref().map(|clock| clock.converter());
        let mut rows = HeaderRows {
            ticks: [0; ROOM],
            begins: [0; ROOM],
            classes: [0; ROOM],
            filled: 0,
        };
        loop {
            rows.filled = 0;
            self.walk_simple(&mut rows);
            rows.append_to(headers, clock);
            if rows.filled < ROOM {
                let Some(event) = self.next_event()? else {
                    return Ok(());
                };
                headers.push(&event);
            }
        }
    }

    /// What [`count_events`](Cursor::count_events) does.
    pub(super) fn count(&mut self, counts: &mut EventCounts) -> Result<(), Fault> {
        loop {
            let mut simple = Counter {
                counts,
                has_clock: self.stream.clock.is_some(),
                values: 0,
            };
            let before = self.number;
            self.walk_simple(&mut simple);
            counts.values += simple.values;
            counts.events += self.number - before;
            counts.at = None;
            let Some(event) = self.next_event()? else {
                return Ok(());
            };
            counts.add(&event)?;
        }
    }
}

/// Wanted events as columns.
struct RoomOfRows {
    ticks: [u64; ROOM],
    numbers: [u64; ROOM],
    /// See [`EventBlock::bases`] and [`EventBlock::first_ends`].
    bases: [usize; ROOM],
    first_ends: [usize; ROOM],
    classes: [u32; ROOM],
}

/// The next rows of a block: events are written to fixed places, and all rows are appended to the block at once.
/// `PLAIN`: no event needs a visit or ends of fields, whenever it is; with `EVERY`, each is a row.
struct BlockRows<'b, const EVERY: bool, const PLAIN: bool> {
    query: &'b BlockQuery<'b>,
    clock: Option<TickConverter>,
    /// Whether all numbers and times are wanted.
    is_all: bool,
    order: EventOrder,
    rows: RoomOfRows,
    filled: usize,
    /// Number of rows that may be filled.
    room: usize,
    ends: Vec<usize>,
    /// Where the ends begin that were added for the event in hand.
    begin_ends: usize,
    /// Whether the last event was visited.
    is_visited: bool,
    /// The event whose fields contain a fault.
    at: Option<(u64, usize)>,
}

impl<const EVERY: bool, const PLAIN: bool> BlockRows<'_, EVERY, PLAIN> {
    fn interest_in(&self, class: usize) -> Interest {
        let interest = self.query.interests.get(class);
        interest.copied().unwrap_or_default()
    }

    #[inline(always)]
    fn has_room(&self) -> bool {
        self.filled < self.room
    }

    /// Adds an event if it is wanted. There is room for it.
    #[inline(always)]
    fn add(&mut self, event: &SimpleEvent, interest: Interest) -> bool {
        let (number, ticks) = (event.number, event.clock.0);
        let is_wanted = match PLAIN {
            true => EVERY || self.interest_in(event.class).is_wanted,
            false => interest.is_wanted && (self.is_all || self.is_asked_for(ticks, number)),
        };
        if !is_wanted {
            if interest.wants_ends {
                self.ends.truncate(self.begin_ends);
            }
            return false;
        }
        let (row, rows) = (self.filled, &mut self.rows);
        if row >= ROOM {
            // There always is room.
            return false;
        }
        rows.ticks[row] = ticks;
        rows.bases[row] = event.base;
        rows.classes[row] = event.class as u32;
        if !EVERY {
            rows.numbers[row] = number;
        }
        if !PLAIN {
            rows.first_ends[row] = self.begin_ends;
        }
        self.filled += 1;
        true
    }

    /// Whether the query asks for an event of these ticks and number.
    fn is_asked_for(&self, ticks: u64, number: u64) -> bool {
        let (begin, end) = self.query.window;
        let time = self.clock.and_then(|clock| clock.timestamp(ticks));
        time.is_none_or(|time| begin <= time && time <= end) && self.query.numbers.contains(&number)
    }

    /// Appends the rows to a block: none are left. The walk began at the event with the number `first`.
    fn move_to(&mut self, block: &mut EventBlock, first: u64) {
        let (rows, count) = (&self.rows, self.filled);
        match &self.clock {
            Some(clock) => {
                let ticks = &rows.ticks[..count];
                clock.append_nanos(ticks, EventBlock::NO_TIME, &mut block.times);
                block.ticks.extend_from_slice(ticks);
            }
            None => {
                let len = block.len() + count;
                block.times.resize(len, EventBlock::NO_TIME);
                block.ticks.resize(len, 0);
            }
        }
        block.classes.extend_from_slice(&rows.classes[..count]);
        block.bases.extend_from_slice(&rows.bases[..count]);
        if EVERY {
            block.numbers.extend(first..first + count as u64);
        } else {
            block.numbers.extend_from_slice(&rows.numbers[..count]);
        }
        if !PLAIN {
            let first_ends = &rows.first_ends[..count];
            block.first_ends.extend_from_slice(first_ends);
        }
        self.filled = 0;
    }
}

impl<const EVERY: bool, const PLAIN: bool> SimpleVisitor for BlockRows<'_, EVERY, PLAIN> {
    #[inline(always)]
    fn interest(&self, class: usize) -> Interest {
        match PLAIN {
            true => Interest::default(),
            false => self.interest_in(class),
        }
    }

    fn ends(&mut self) -> &mut Vec<usize> {
        self.begin_ends = self.ends.len();
        &mut self.ends
    }

    #[inline]
    fn order(&mut self) -> Option<&mut EventOrder> {
        self.clock.is_some().then_some(&mut self.order)
    }

    #[inline(always)]
    fn event(&mut self, event: &SimpleEvent, interest: Interest, _: u64) -> bool {
        self.add(event, interest);
        self.has_room()
    }
}

/// The next events of which headers count.
struct HeaderRows {
    ticks: [u64; ROOM],
    begins: [u64; ROOM],
    classes: [u32; ROOM],
    filled: usize,
}

impl HeaderRows {
    fn append_to(&self, headers: &mut EventHeaders, clock: Option<TickConverter>) {
        let count = self.filled;
        match clock {
            Some(clock) => {
                let ticks = &self.ticks[..count];
                clock.append_nanos(ticks, EventBlock::NO_TIME, &mut headers.times);
            }
            None => {
                let len = headers.len() + count;
                headers.times.resize(len, EventBlock::NO_TIME);
            }
        }
        headers.classes.extend_from_slice(&self.classes[..count]);
        headers.begins.extend_from_slice(&self.begins[..count]);
    }
}

impl SimpleVisitor for HeaderRows {
    #[inline(always)]
    fn event(&mut self, event: &SimpleEvent, _: Interest, _: u64) -> bool {
        let row = self.filled;
        if row >= ROOM {
            // There always is room.
            return false;
        }
        self.ticks[row] = event.clock.0;
        self.begins[row] = event.begin;
        self.classes[row] = event.class as u32;
        self.filled += 1;
        self.filled < ROOM
    }
}

/// Counts events and their values.
struct Counter<'c> {
    counts: &'c mut EventCounts,
    has_clock: bool,
    values: u64,
}

impl SimpleVisitor for Counter<'_> {
    #[inline]
    fn order(&mut self) -> Option<&mut EventOrder> {
        self.has_clock.then_some(&mut self.counts.order)
    }

    #[inline(always)]
    fn event(&mut self, _: &SimpleEvent, _: Interest, values: u64) -> bool {
        self.values += values;
        true
    }
}
