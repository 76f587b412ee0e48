//! Walks over many events of a log in one loop.

use kymo_model::{BlockQuery, Event, EventBlock, EventMark, EventOrder, EventVisitor, Fault};
use kymo_time::Timestamp;

use super::cursor::LogCursor;
use crate::entries::{ENTRY_SIZE, Entry};

/// Number of rows that are put in place at once.
const ROOM: usize = 128;

/// Where a wanted event lies.
#[derive(Clone, Copy, Default)]
struct Wanted {
    /// Its place in the order of time.
    place: usize,
    /// Its position in the section.
    position: usize,
    class: u32,
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
        let walked = loop {
            if left == 0 {
                break Ok(true);
            }
            let room = &mut room[..ROOM.min(left)];
            let mut filled = 0;
            let walked = self.fill(query, room, &mut filled, &mut block.at, visitor);
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
        let (entries, codes, log) = (self.entries, &self.of.definitions.event_at, self.log);
        let other = self.of.classes.len().saturating_sub(1);
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
            let class = codes.get(entry.code).map_or(other, |class| class as usize);
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
                place,
                position,
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
        let (entries, place) = (self.entries, self.log.place);
        let time = |of: &Wanted| entries.get(of.position).map_or(0, |entry| entry.time);
        let first = block.ticks.len();
        block.ticks.extend(wanted.iter().map(time));
        let ticks = &block.ticks[first..];
        let nanos = |&ticks: &u64| match place.timestamp(ticks) {
            Some(time) => time.as_nanos(),
            None => EventBlock::NO_TIME,
        };
        block.times.extend(ticks.iter().map(nanos));
        let number = |of: &Wanted| (of.place - self.first) as u64;
        block.classes.extend(wanted.iter().map(|of| of.class));
        block.numbers.extend(wanted.iter().map(number));
        let bases = wanted
            .iter()
            .map(|of| (of.position - self.first_position) * ENTRY_SIZE);
        block.bases.extend(bases);
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
                log.push(Entry { time: now, track, code, datum });
            }
            let mut bytes = Vec::new();
            log.write(&mut bytes).unwrap();
            let of = Recording::new(Path::new("x"), bytes.into(), &Default::default()).unwrap();
            let Some(chunk) = of.chunk(0, 0) else {
                return Ok(());
            };
            let interests: Vec<_> = (0..of.event_classes().len())
                .map(|class| kymo_model::Interest {
                    is_wanted: wanted[class % 4],
                    ..Default::default()
                })
                .collect();
            let query = BlockQuery { numbers, ..BlockQuery::all(&interests) };
            let mut cursor = of.cursor(&chunk);
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
            let mut cursor = of.cursor(&chunk);
            let mut data = Vec::new();
            loop {
                let before = block.len();
                let goes_on = cursor.walk_block(&query, most, &mut block, &mut Nothing).unwrap();
                prop_assert!(block.len() - before <= most);
                let offset = of.place(0, field::DATUM).unwrap().offset;
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
