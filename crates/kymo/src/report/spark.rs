//! Small pictures of how something goes over time: a character for each stretch of it.

use kymo_model::{Chunk, Recording};
use kymo_time::Timestamp;

const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Counts in stretches of time of equal length.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spread {
    begin: i64,
    /// Nanoseconds of a stretch; 0 if nothing is counted.
    step: u64,
    /// The counts.
    pub counts: Vec<u64>,
}

impl Spread {
    /// From the first to the last of some times. Without any, nothing is counted.
    pub(super) fn new(span: Option<(Timestamp, Timestamp)>, stretches: usize) -> Self {
        let Some((begin, end)) = span.filter(|_| stretches > 0) else {
            return Self::default();
        };
        let nanos = end.as_nanos().abs_diff(begin.as_nanos());
        Self {
            begin: begin.as_nanos(),
            step: nanos / stretches as u64 + 1,
            counts: vec![0; stretches],
        }
    }

    /// The stretch that a time is in; times beyond both ends are in the outermost ones.
    fn stretch(&self, time: Timestamp) -> Option<usize> {
        let after = time
            .as_nanos()
            .saturating_sub(self.begin)
            .max(0)
            .unsigned_abs();
        let last = self.counts.len().checked_sub(1)?;
        Some(usize::try_from(after / self.step).map_or(last, |at| at.min(last)))
    }

    /// Counts an event.
    #[inline]
    pub(super) fn add(&mut self, time: Option<Timestamp>) {
        if self.step > 0
            && let Some(at) = time.and_then(|time| self.stretch(time))
        {
            self.counts[at] += 1;
        }
    }

    /// Counts events of which only the first and the last time are known: as many in each stretch between.
    pub(super) fn add_many(
        &mut self,
        events: u64,
        first: Option<Timestamp>,
        last: Option<Timestamp>,
    ) {
        let ends = first
            .and_then(|first| self.stretch(first))
            .zip(last.and_then(|last| self.stretch(last)));
        let Some((first, last)) = ends.filter(|_| self.step > 0) else {
            return;
        };
        let stretches = (last.max(first) - first + 1) as u64;
        for at in 0..stretches {
            // Together they are all events.
            let part =
                |at: u64| (u128::from(events) * u128::from(at) / u128::from(stretches)) as u64;
            self.counts[first + at as usize] += part(at + 1) - part(at);
        }
    }

    /// Adds the events that were discarded before the end of a chunk, as far as their number is known, between the
    /// times that are known of them.
    pub(super) fn add_losses<R: Recording>(&mut self, recording: &R, chunk: &Chunk) {
        let Some((lost, count)) = chunk.lost_events.and_then(|lost| Some((lost, lost.count?)))
        else {
            return;
        };
        let clock = recording.streams()[chunk.stream].clock.as_ref();
        let time = |ticks: Option<u64>| clock?.timestamp(ticks?);
        let end = time(lost.end).or(chunk.end_time);
        let begin = time(lost.begin).or(chunk.begin_time).or(end);
        self.add_many(count, begin, end.or(begin));
    }

    /// Whether anything is counted.
    pub(super) fn is_empty(&self) -> bool {
        self.counts.iter().all(|&count| count == 0)
    }

    /// Adds the counts of another one of the same stretches.
    pub(super) fn merge(&mut self, other: &Self) {
        for (count, other) in self.counts.iter_mut().zip(&other.counts) {
            *count += other;
        }
    }

    /// Events a second where they are most.
    pub(super) fn peak(&self) -> Option<f64> {
        let most = *self.counts.iter().max()?;
        Some(most as f64 / (self.step as f64 / 1e9))
    }

    /// A character for each stretch.
    pub(super) fn line(&self) -> String {
        sparkline(
            self.counts.iter().map(|&count| Some(count as f64)),
            Some(0.0),
        )
    }
}

/// A character for each value, as high as it is between the least (or `from`) and the greatest; a blank where none
/// is known. What is above `from` is seen.
pub(super) fn sparkline(values: impl Iterator<Item = Option<f64>>, from: Option<f64>) -> String {
    let values: Vec<Option<f64>> = values
        .map(|value| value.filter(|value| value.is_finite()))
        .collect();
    let known = || values.iter().copied().flatten();
    let least = from.unwrap_or_else(|| known().fold(f64::INFINITY, f64::min));
    let most = known().fold(f64::NEG_INFINITY, f64::max);
    let bar = |value: &Option<f64>| match value {
        None => ' ',
        Some(value) if Some(*value) == from => ' ',
        Some(value) if most > least => {
            let height = (value - least) / (most - least) * (BARS.len() - 1) as f64;
            BARS[(height.round() as usize).min(BARS.len() - 1)]
        }
        Some(_) => BARS[3],
    };
    values.iter().map(bar).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heights() {
        let line = |values: &[f64], from| sparkline(values.iter().map(|&value| Some(value)), from);
        assert_eq!(line(&[0.0, 1.0, 7.0], None), "▁▂█");
        assert_eq!(line(&[5.0, 5.0], None), "▄▄");
        assert_eq!(line(&[0.0, 1.0, 1000.0], Some(0.0)), " ▁█");
        assert_eq!(line(&[1.0, f64::NAN, 2.0], None), "▁ █");
        assert_eq!(line(&[], None), "");
    }

    #[test]
    fn events_are_in_their_stretches() {
        let at = Timestamp::from_nanos;
        let mut spread = Spread::new(Some((at(0), at(99))), 10);
        for time in [-5, 0, 9, 10, 99, 500] {
            spread.add(Some(at(time)));
        }
        spread.add(None);
        assert_eq!(spread.counts, [3, 1, 0, 0, 0, 0, 0, 0, 0, 2]);
        spread.add_many(7, Some(at(20)), Some(at(49)));
        assert_eq!(spread.counts[2..5].iter().sum::<u64>(), 7);
        let mut none = Spread::new(None, 10);
        none.add(Some(at(1)));
        none.add_many(3, Some(at(1)), Some(at(2)));
        assert!(none.counts.is_empty() && none.line().is_empty());
        let whole = Spread::new(Some((at(i64::MIN), at(i64::MAX))), 3);
        assert_eq!(
            whole.stretch(at(i64::MAX)),
            Some(1),
            "i64 reaches so far from its least"
        );
    }
}
