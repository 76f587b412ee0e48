//! The values of one data source in one archive, by time.

use crate::model::{Consolidation, Database};
use crate::{Rows, Value};

/// The values of one data source in one archive, by time.
pub(super) struct Series<'a> {
    rows: &'a Rows<'a>,
    archive: usize,
    source: usize,
    /// Seconds of a row.
    seconds: i64,
    /// Where the oldest row begins.
    begin: i64,
    /// Where the newest one ends.
    end: i64,
}

impl<'a> Series<'a> {
    /// `None` where times are beyond 64 bits.
    pub(super) fn new(
        database: &Database,
        rows: &'a Rows<'a>,
        archive: usize,
        source: usize,
    ) -> Option<Self> {
        let seconds = i64::try_from(database.row_seconds(archive)?).ok()?;
        let newest = database.archives[archive].rows.checked_sub(1)?;
        Some(Self {
            rows,
            archive,
            source,
            seconds,
            begin: database.row_time(archive, 0)?.checked_sub(seconds)?,
            end: database.row_time(archive, newest)?,
        })
    }

    pub(super) fn seconds(&self) -> i64 {
        self.seconds
    }

    /// Where the row ends that a time is in, or where one would if the series had rows there.
    pub(super) fn next_row(&self, time: i64) -> i64 {
        let into = (time.saturating_sub(self.begin)).rem_euclid(self.seconds);
        time.saturating_add(self.seconds - into)
    }

    /// Whether all of a stretch of time is in the series.
    fn covers(&self, begin: i64, end: i64) -> bool {
        begin >= self.begin && end <= self.end
    }

    /// Adds what is known of a stretch of time, which the series covers; gives `gap` each part of it that
    /// is not, if anything else is. Returns whether anything is known.
    fn add(
        &self,
        begin: i64,
        end: i64,
        known: &mut Known,
        mut gap: impl FnMut(&mut Known, i64, i64),
    ) -> bool {
        let first = (begin - self.begin) / self.seconds;
        // All of it is within the series, so nothing overflows.
        let parts = (first..).map(|row| {
            let row_begin = self.begin + row * self.seconds;
            let row_end = row_begin + self.seconds;
            (row, begin.max(row_begin), end.min(row_end))
        });
        let parts = parts.take_while(|(_, from, to)| from < to);
        let value = |row: i64| {
            let value = self.rows.value(self.archive, row as u64, self.source);
            value.and_then(Value::get)
        };
        if parts.clone().all(|(row, ..)| value(row).is_none()) {
            return false;
        }
        for (row, from, to) in parts {
            match value(row) {
                Some(value) => known.add(value, to - from),
                None => gap(known, from, to),
            }
        }
        true
    }
}

/// What becomes of the values of a stretch of time.
#[derive(Clone, Copy)]
pub(super) struct Rule {
    /// How they are made one.
    pub(super) function: Consolidation,
    /// More than this part of the time has to be known. (It is the xff, which rrdtool takes so here;
    /// everywhere else it is the part that may be unknown.)
    pub(super) xff: f64,
    /// Seconds of a data point: values count for each second that they are of, in this unit.
    pub(super) step: i64,
    /// Whether all data points of a stretch are looked at together: it takes time by the rows that know them then.
    pub(super) is_whole: bool,
}

impl Rule {
    /// What is known of a stretch of time by those series that cover all of it: of each data point in
    /// it, what the first of them says that says anything, and for the parts of which that one says nothing,
    /// as where it begins within the data point, what those behind it say.
    pub(super) fn stretch(&self, series: &[Series<'_>], begin: i64, end: i64) -> Option<f64> {
        let series = series.iter().filter(|series| series.covers(begin, end));
        let series: Vec<_> = series.collect();
        if series.is_empty() {
            return None;
        }
        let mut known = Known {
            rule: *self,
            steps: 0.0,
            value: None,
        };
        let length = end.checked_sub(begin).filter(|length| *length > 0)?;
        // If there are too many points to look at each in a reasonable time, they are treated as one.
        let at_once = if self.is_whole || length / self.step > MOST_POINTS {
            length
        } else {
            self.step
        };
        let mut point = begin;
        while point < end {
            let next = point.saturating_add(at_once).min(end);
            fill(&series, (point, next), 0, &mut known);
            point = next;
        }
        if known.steps / (length as f64 / self.step as f64) <= self.xff {
            return None;
        }
        match self.function {
            Consolidation::Average => known.value.map(|sum| sum / known.steps),
            _ => known.value,
        }
    }
}

/// Maximum nesting of gaps that are filled, more than real databases have.
const DEEPEST_GAP: u32 = 64;

/// Adds what is known of a stretch of time by the first series that knows anything of it, and of the gaps
/// that it leaves by those behind it; `depth` counts the gaps in which it is.
fn fill(series: &[&Series<'_>], (begin, end): (i64, i64), depth: u32, known: &mut Known) {
    if depth > DEEPEST_GAP {
        return;
    }
    let mut behind = series;
    while let [first, others @ ..] = behind {
        behind = others;
        let gap = |known: &mut Known, from, to| fill(others, (from, to), depth + 1, known);
        if first.add(begin, end, known, gap) {
            return;
        }
    }
}

/// Rows of more points are not put together point by point.
pub(super) const MOST_POINTS: i64 = 1_000_000;

/// What is known of a stretch of time.
struct Known {
    rule: Rule,
    /// How much of it, in steps.
    steps: f64,
    /// The values: their sum, each by its time, or the one that counts.
    value: Option<f64>,
}

impl Known {
    fn add(&mut self, value: f64, seconds: i64) {
        // In rrdtool's order, which decides on the last bit.
        let steps = seconds as f64 / self.rule.step as f64;
        let value = match self.rule.function {
            Consolidation::Average => value * steps,
            _ => value,
        };
        self.steps += steps;
        self.value = Some(match (self.rule.function, self.value) {
            (_, None) | (Consolidation::Last, _) => value,
            (Consolidation::Average, Some(sum)) => sum + value,
            (Consolidation::Min, Some(least)) => f64::min(least, value),
            (Consolidation::Max, Some(greatest)) => f64::max(greatest, value),
        });
    }
}
