//! What recorders discarded.

use std::fmt;

use kymo_model::{Chunk, Lost};

/// What recorders discarded, as recordings report: a loss, but no damage of what there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Discarded {
    /// Events, as far as their number is known.
    pub events: u64,
    /// Packets, as far as their number is known.
    pub packets: u64,
    /// How often something was lost.
    pub times: u64,
}

impl Discarded {
    /// Whether nothing was lost.
    pub fn is_empty(&self) -> bool {
        self.times == 0
    }

    /// Adds events that were lost.
    pub fn add_events(&mut self, lost: &Lost) {
        self.events = self.events.saturating_add(lost.count.unwrap_or(0));
        self.times += 1;
    }

    /// Adds packets that were lost.
    pub fn add_packets(&mut self, lost: &Lost) {
        self.packets = self.packets.saturating_add(lost.count.unwrap_or(0));
        self.times += 1;
    }

    /// Adds what was lost before the end of a chunk.
    pub(crate) fn add_chunk(&mut self, chunk: &Chunk) {
        chunk
            .lost_events
            .iter()
            .for_each(|lost| self.add_events(lost));
        chunk
            .lost_chunks
            .iter()
            .for_each(|lost| self.add_packets(lost));
    }

    /// Adds what else was lost.
    pub fn add(&mut self, other: &Self) {
        self.events = self.events.saturating_add(other.events);
        self.packets = self.packets.saturating_add(other.packets);
        self.times += other.times;
    }

    /// As [`Display`](fmt::Display) does, with numbers shown by `count`.
    pub(crate) fn text(&self, count: impl Fn(u64) -> String) -> String {
        let part = |number: u64, what: &str| match number {
            0 => None,
            1 => Some(format!("{} {what}", count(1))),
            number => Some(format!("{} {what}s", count(number))),
        };
        match (part(self.events, "event"), part(self.packets, "packet")) {
            (Some(events), Some(packets)) => format!("{events} and {packets}"),
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) if self.is_empty() => "nothing".to_owned(),
            (None, None) => "an unknown number of events".to_owned(),
        }
    }
}

impl fmt::Display for Discarded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text(|number| number.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_reads_as_a_sentence_goes_on() {
        let lost = |events, packets, times| Discarded {
            events,
            packets,
            times,
        };
        let lines = [
            lost(0, 0, 0),
            lost(1, 0, 1),
            lost(5, 1, 2),
            lost(0, 3, 1),
            lost(0, 0, 1),
        ];
        let lines = lines.map(|discarded| discarded.to_string());
        let expected = [
            "nothing",
            "1 event",
            "5 events and 1 packet",
            "3 packets",
            "an unknown number of events",
        ];
        assert_eq!(lines, expected);
    }
}
