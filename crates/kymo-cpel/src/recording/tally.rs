//! Counting events without making them.

use kymo_model::{Chunk, Tally};

use super::{CHUNK, ENTRY_BITS, Recording};

/// What is known of a class within a chunk: how many events, and the positions of the first and
/// the last one.
#[derive(Clone, Copy, Default)]
struct Seen {
    events: u32,
    first: u32,
    last: u32,
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
        let chunk_entries = entries.slice(first, CHUNK);
        let mut seen = vec![Seen::default(); self.classes.len()];
        let other = self.classes.len().checked_sub(1)?;
        for (position, code) in (0..).zip(chunk_entries.codes()) {
            let class = self.definitions.event_at.get(code);
            let seen = &mut seen[class.map_or(other, |class| class as usize)];
            if seen.events == 0 {
                seen.first = position;
            }
            seen.events += 1;
            seen.last = position;
        }
        let time = |position: u32| {
            let entry = chunk_entries.get(position as usize)?;
            log.place.timestamp(entry.time)
        };
        let tally = |(class, seen): (usize, &Seen)| Tally {
            class,
            events: seen.events.into(),
            bits: u64::from(seen.events) * ENTRY_BITS,
            first: time(seen.first),
            last: time(seen.last),
        };
        let met = seen.iter().enumerate().filter(|(_, seen)| seen.events > 0);
        Some(met.map(tally).collect())
    }
}
