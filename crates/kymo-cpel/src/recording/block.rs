//! Walks over many events of a log in one loop.

use kymo_model::{
    BlockQuery, Event, EventBlock, EventMark, EventOrder, EventVisitor, Fault, Interest,
};
use kymo_time::Timestamp;

use super::cursor::LogCursor;
use crate::entries::{ENTRY_SIZE, Entry};

/// Number of rows that are put in place at once.
const ROOM: usize = 128;

/// Codes below it are looked up in an array that knows what is wanted.
const SMALL: usize = 256;
/// Stands for a class that is not wanted.
const UNWANTED: u32 = u32::MAX;

/// Where a wanted event lies.
#[derive(Clone, Copy, Default)]
struct Wanted {
    ticks: u64,
    /// Its number in the chunk.
    number: u32,
    /// Its position from the byte on that places count from.
    position: u32,
    class: u32,
}

/// The classes of events that are wanted.
struct Codes<'q> {
    query: &'q BlockQuery<'q>,
    /// By code, its class or [`UNWANTED`].
    small: [u32; SMALL],
}

impl<'a> LogCursor<'a> {
    /// What [`walk_block`](kymo_model::Cursor::walk_block) does.
    pub(super) fn walk<V: EventVisitor>(
        &mut self,
        query: &BlockQuery<'_>,
        most: usize,
        block: &mut EventBlock,
        visitor: &mut V,
    ) -> Result<bool, Fault> {
        block.begin_walk();
        let begin = self.next;
        let mut room = [Wanted::default(); ROOM];
        let mut left = most;
        let is_visited = |interest: &Interest| interest.is_wanted && interest.is_visited;
        // In the order of the file and without a look at times and fields, codes are all that has to be looked at.
        let is_simple = self.log.order.is_none()
            && query.numbers == (0..u64::MAX)
            && query.window == (Timestamp::MIN, Timestamp::MAX)
            && !query.interests.iter().any(is_visited);
        let codes = is_simple.then(|| self.codes(query));
        let walked = loop {
            if left == 0 {
                break Ok(true);
            }
            let room = &mut room[..ROOM.min(left)];
            let mut filled = 0;
            let walked = match &codes {
                Some(codes) => Ok(self.fill_simply(codes, room, &mut filled)),
                None => self.fill(query, room, &mut filled, &mut block.at, visitor),
            };
            left -= filled;
            self.append(&room[..filled], block);
            match walked {
                Ok(None) => {}
                Ok(Some(is_more)) => break Ok(is_more),
                Err(fault) => break Err(fault),
            }
        };
        self.note_order(begin, &mut block.order);
        walked
    }

    /// What is wanted of small codes.
    fn codes<'q>(&self, query: &'q BlockQuery<'q>) -> Codes<'q> {
        let mut codes = Codes {
            query,
            small: [UNWANTED; SMALL],
        };
        for (small, code) in codes.small.iter_mut().zip(0..) {
            *small = self.wanted_class(query, code);
        }
        codes
    }

    /// The class of a code, or [`UNWANTED`].
    fn wanted_class(&self, query: &BlockQuery<'_>, code: u32) -> u32 {
        let class = self.class_of(code);
        match query.interests.get(class) {
            Some(interest) if interest.is_wanted => class as u32,
            _ => UNWANTED,
        }
    }

    /// The same as [`fill`](Self::fill), where nothing but the codes of events decides which are wanted.
    #[inline]
    fn fill_simply(
        &mut self,
        codes: &Codes<'_>,
        room: &mut [Wanted],
        filled: &mut usize,
    ) -> Option<bool> {
        let (first, next) = (self.first, self.next);
        let entries = self.entries.slice(next, self.end.saturating_sub(next));
        let mut met = 0;
        let mut room = room.iter_mut();
        let mut free = room.next();
        for entry in entries.iter() {
            let Some(to) = &mut free else {
                break;
            };
            met += 1;
            let class = match codes.small.get(entry.code as usize) {
                Some(&class) => class,
                None => self.wanted_class(codes.query, entry.code),
            };
            if class == UNWANTED {
                continue;
            }
            // A chunk has fewer events than 32 bits count.
            let number = (next - first + met - 1) as u32;
            **to = Wanted {
                ticks: entry.time,
                number,
                position: number,
                class,
            };
            *filled += 1;
            free = room.next();
        }
        self.next = next + met;
        // Where nothing is left free, there may be more events.
        free.map(|_| false)
    }

    /// Finds wanted events until there is no room, or the walk ends: with whether there may be more events.
    #[inline]
    fn fill<V: EventVisitor>(
        &mut self,
        query: &BlockQuery<'_>,
        room: &mut [Wanted],
        filled: &mut usize,
        at: &mut Option<(u64, usize)>,
        visitor: &mut V,
    ) -> Result<Option<bool>, Fault> {
        let is_all =
            query.numbers == (0..u64::MAX) && query.window == (Timestamp::MIN, Timestamp::MAX);
        let (entries, log) = (self.entries, self.log);
        let (first, end) = (self.first, self.end);
        let mut next = self.next;
        let result = loop {
            if *filled == room.len() {
                break Ok(None);
            }
            if next >= end {
                break Ok(Some(false));
            }
            let place = next;
            next += 1;
            let found = log.position(place);
            let Some((position, entry)) = found.and_then(|at| Some((at, entries.get(at)?))) else {
                break Ok(Some(false));
            };
            let class = self.class_of(entry.code);
            let interest = query.interests.get(class);
            let Some(interest) = interest.filter(|interest| interest.is_wanted) else {
                continue;
            };
            if !is_all && !self.is_asked_for(query, (place - first) as u64, entry) {
                continue;
            }
            // Any bytes are an event: none has to be decoded to know that.
            let goes_on = match interest.is_visited {
                true => visitor.event(&self.event(place, entry)),
                false => Ok(true),
            };
            let goes_on = match goes_on {
                Ok(goes_on) => goes_on,
                Err(fault) => {
                    *at = Some(((place - first) as u64, class));
                    break Err(fault);
                }
            };
            room[*filled] = Wanted {
                ticks: entry.time,
                number: (place - first) as u32,
                // Files count their events with 32 bits.
                position: (position - self.first_position) as u32,
                class: class as u32,
            };
            *filled += 1;
            if !goes_on {
                break Ok(Some(true));
            }
        };
        self.next = next;
        result
    }

    fn is_asked_for(&self, query: &BlockQuery<'_>, number: u64, entry: Entry) -> bool {
        let (begin, end) = query.window;
        let time = self.log.place.timestamp(entry.time);
        time.is_none_or(|time| begin <= time && time <= end) && query.numbers.contains(&number)
    }

    /// Appends events to a block.
    fn append(&self, wanted: &[Wanted], block: &mut EventBlock) {
        let place = self.log.place;
        let nanos = |wanted: &Wanted| match place.timestamp(wanted.ticks) {
            Some(time) => time.as_nanos(),
            None => EventBlock::NO_TIME,
        };
        block.ticks.extend(wanted.iter().map(|wanted| wanted.ticks));
        block.times.extend(wanted.iter().map(nanos));
        block
            .classes
            .extend(wanted.iter().map(|wanted| wanted.class));
        let number = |wanted: &Wanted| u64::from(wanted.number);
        block.numbers.extend(wanted.iter().map(number));
        let base = |wanted: &Wanted| wanted.position as usize * ENTRY_SIZE;
        block.bases.extend(wanted.iter().map(base));
    }

    /// Adds the events from a place on that were met. They are in the order of time, so that the first and the last of
    /// them show it.
    fn note_order(&self, begin: usize, order: &mut EventOrder) {
        let Some(last) = self.next.checked_sub(1).filter(|&last| last >= begin) else {
            return;
        };
        for place in [begin, last] {
            let Some(entry) = self.log.entry(self.entries, place) else {
                return;
            };
            let event = self.event(place, entry);
            order.meet(entry.time, || EventMark {
                ticks: entry.time,
                number: event.number(),
                class: event.class_index(),
                bit: event.begin_bit(),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use kymo_model::{Cursor, Nothing, Recording as _};
    use proptest::prelude::*;

    use super::*;
    use crate::recording::Recording;
    use crate::recording::classes::field;
    use crate::write::{Builder, Options};

    /// What a block has of an event: time, ticks, class, number.
    type Row = (i64, u64, u32, u64);

    fn number(bytes: &[u8], at: usize) -> u32 {
        u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap())
    }

    proptest! {
        #[test]
        fn blocks_have_the_events_that_come_one_by_one(
            entries in prop::collection::vec((0u64..50, 0u32..3, 0u32..4, any::<u32>()), 0..600),
            sorted: bool,
            wanted: [bool; 4],
            numbers in prop_oneof![Just(0..u64::MAX), (0u64..300, 0u64..700).prop_map(|(a, b)| a..b)],
            most in 1usize..400,
        ) {
            let mut log = Builder::new(Options::default());
            let mut now = 0;
            for (time, track, code, datum) in entries {
                now = if sorted { now + time } else { time };
                log.push(Entry { time: now, track, code, datum }).unwrap();
            }
            let mut bytes = Vec::new();
            log.write(&mut bytes).unwrap();
            let recording = Recording::new(Path::new("x"), bytes.into(), &Default::default()).unwrap();
            let Some(chunk) = recording.chunk(0, 0) else {
                return Ok(());
            };
            let interests: Vec<_> = (0..recording.event_classes().len())
                .map(|class| kymo_model::Interest {
                    is_wanted: wanted[class % 4],
                    ..Default::default()
                })
                .collect();
            let query = BlockQuery { numbers, ..BlockQuery::all(&interests) };
            let mut cursor = recording.cursor(&chunk);
            let mut plain: Vec<(Row, u32)> = Vec::new();
            while let Some(event) = cursor.next_event().unwrap() {
                let class = event.class_index();
                if interests[class].is_wanted && query.numbers.contains(&event.number()) {
                    let time = event.timestamp().map_or(EventBlock::NO_TIME, Timestamp::as_nanos);
                    let row = (time, event.ticks().unwrap(), class as u32, event.number());
                    plain.push((row, event.entry().datum));
                }
            }
            let mut block = EventBlock::default();
            let mut cursor = recording.cursor(&chunk);
            let mut data = Vec::new();
            loop {
                let before = block.len();
                let goes_on = cursor.walk_block(&query, most, &mut block, &mut Nothing).unwrap();
                prop_assert!(block.len() - before <= most);
                let offset = recording.place(0, field::DATUM).unwrap().offset;
                let bases = block.bases.iter();
                data.extend(bases.map(|base| number(cursor.bytes(), base + offset)));
                if !goes_on {
                    break;
                }
            }
            let rows = (0..block.len()).map(|row| {
                let (time, ticks) = (block.times[row], block.ticks[row]);
                ((time, ticks, block.classes[row], block.numbers[row]), data[row])
            });
            prop_assert_eq!(rows.collect::<Vec<_>>(), plain);
            prop_assert_eq!(block.order.last_ticks(), chunk.end);
            prop_assert_eq!(block.order.backwards(None), None);
        }
    }
}
