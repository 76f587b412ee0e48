//! What was done with a stream.

use std::collections::BTreeMap;

use kymo_model::FaultReport;

use crate::Discarded;
use crate::report::MOST_FAULTS;

/// At most this many kinds of write failures are reported for a stream; there may be one for each event.
const MOST_REFUSED: usize = 100;

/// What was done with a stream.
#[derive(Debug, Default)]
pub(super) struct Done {
    pub(super) events: u64,
    /// Damage: at most [`MOST_FAULTS`], and how much there is beyond that.
    pub(super) faults: Vec<FaultReport>,
    pub(super) more_faults: u64,
    /// What could not be written: name of the event class and why, and how often.
    refused: BTreeMap<(String, String), u64>,
    /// Events before the zero of time, and events without a time, where the target gives times
    /// in nanoseconds.
    pub(super) early: u64,
    pub(super) untimed: u64,
    /// What the recorder discarded, of what was looked at.
    pub(super) discarded: Discarded,
    /// Packets that state other times or counts than those of the source.
    pub(super) mended: u64,
}

impl Done {
    /// Adds damage.
    pub(super) fn fault(&mut self, report: impl FnOnce() -> FaultReport) {
        match self.faults.len() < MOST_FAULTS {
            true => self.faults.push(report()),
            false => self.more_faults += 1,
        }
    }

    /// Keeps only the first `most` faults.
    pub(super) fn keep_faults(&mut self, most: usize) {
        self.more_faults += self.faults.len().saturating_sub(most) as u64;
        self.faults.truncate(most);
    }

    /// Counts what cannot be written, and why.
    pub(super) fn refuse(&mut self, what: &str, problem: String, count: u64) {
        let mut key = (what.to_owned(), problem);
        if self.refused.len() >= MOST_REFUSED && !self.refused.contains_key(&key) {
            key = ("(others)".to_owned(), "for other reasons".to_owned());
        }
        *self.refused.entry(key).or_default() += count;
    }

    /// What could not be written, a line each.
    pub(super) fn refused(&self) -> impl Iterator<Item = String> {
        self.refused.iter().map(|((event, problem), count)| {
            format!("events `{event}` that cannot be written ({problem}), left out: {count}")
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use kymo_model::FaultCode;

    use super::*;

    #[test]
    fn what_is_reported_has_a_bound() {
        let mut done = Done::default();
        for number in 0..MOST_FAULTS as u64 + 5 {
            done.fault(|| FaultReport {
                file: Arc::new("a".into()),
                offset: number,
                packet: None,
                event: None,
                field: None,
                code: FaultCode::NotMonotonic,
                message: "short".into(),
            });
        }
        assert_eq!((done.faults.len(), done.more_faults), (MOST_FAULTS, 5));
        done.keep_faults(2);
        assert_eq!(done.more_faults, MOST_FAULTS as u64 + 3);
        let offsets: Vec<_> = done.faults.iter().map(|fault| fault.offset).collect();
        assert_eq!(offsets, [0, 1]);

        for number in 0..MOST_REFUSED + 7 {
            done.refuse("a", format!("at {number:03}"), 2);
        }
        done.refuse("a", "at 005".into(), 1);
        let lines: Vec<_> = done.refused().collect();
        assert_eq!(lines.len(), MOST_REFUSED + 1);
        let others = "events `(others)` that cannot be written (for other reasons), left out: 14";
        assert_eq!(lines[0], others);
        let known = "events `a` that cannot be written (at 005), left out: 3";
        assert_eq!(lines[6], known);
    }
}
