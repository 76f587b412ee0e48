//! Counting events without making them.

use kymo_model::{Chunk, Tally};

use super::{CHUNK, ENTRY_BITS, Recording};

/// What is known of a class within a chunk: how many events, and the positions of the first and
/// the last one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) events: u32,
    first: u32,
    last: u32,
}

/// The classes that were met in a chunk.
pub(super) type Counts = Box<[(u32, Seen)]>;

impl Seen {
    /// Adds an event.
    #[inline(always)]
    pub(super) fn add(&mut self, position: u32) {
        if self.events == 0 {
            self.first = position;
        }
        self.again(position);
    }

    /// Adds an event that is not the first one.
    #[inline(always)]
    pub(super) fn again(&mut self, position: u32) {
        self.events += 1;
        self.last = position;
    }
}

impl Recording {
    /// Counts the events of a chunk by their classes. `None` where they lie in another order than
    /// that of time, or their times do not fit.
    pub(super) fn count(&self, chunk: &Chunk) -> Option<Vec<Tally>> {
        let log = self.logs.get(chunk.stream)?;
        if log.order.is_some() {
            return None;
        }
        // Times only grow: where the last one fits, all do.
        chunk.end_time?;
        let entries = self.entries(log);
        let first = chunk.number.checked_mul(CHUNK)?;
        let time = |position: u32| {
            let entry = entries.get(first + position as usize)?;
            log.place.timestamp(entry.time)
        };
        let tally = |&(class, seen): &(u32, Seen)| Tally {
            class: class as usize,
            events: seen.events.into(),
            bits: u64::from(seen.events) * ENTRY_BITS,
            first: time(seen.first),
            last: time(seen.last),
        };
        match log.counts.get(chunk.number)? {
            Some(counts) => Some(counts.iter().map(tally).collect()),
            None => Some(self.count_large(chunk)?.iter().map(tally).collect()),
        }
    }

    /// The same of a chunk that was not counted when the file was opened.
    fn count_large(&self, chunk: &Chunk) -> Option<Counts> {
        let log = self.logs.get(chunk.stream)?;
        let first = chunk.number.checked_mul(CHUNK)?;
        let other = self.classes.len().checked_sub(1)?;
        let mut all = vec![Seen::default(); self.classes.len()];
        for (position, code) in (0..).zip(self.entries(log).slice(first, CHUNK).codes()) {
            let class = self.definitions.event_at.get(code);
            all[class.map_or(other, |class| class as usize)].add(position);
        }
        let met = (0..).zip(all).filter(|(_, seen)| seen.events > 0);
        Some(met.collect())
    }
}
