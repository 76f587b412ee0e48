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

    /// What is known of a stretch of time: each row counts for as long as it is in it. `None` where
    /// the series does not cover all of it, or too little is known: no more than the part `xff`.
    /// (rrdtool takes it for the part that must be known, not for the one that may be unknown.)
    pub(super) fn stretch(
        &self,
        function: Consolidation,
        xff: f64,
        begin: i64,
        end: i64,
    ) -> Option<f64> {
        if begin < self.begin || end > self.end || begin >= end {
            return None;
        }
        let mut row = (begin - self.begin) / self.seconds;
        let mut known = 0;
        let mut all = None;
        loop {
            // All of it is within the series, so nothing overflows.
            let row_begin = self.begin + row * self.seconds;
            if row_begin >= end {
                break;
            }
            let overlap = end.min(row_begin + self.seconds) - begin.max(row_begin);
            let value = self.rows.value(self.archive, row as u64, self.source);
            row += 1;
            let Some(value) = value.and_then(Value::get) else {
                continue;
            };
            known += overlap;
            let weighed = match function {
                Consolidation::Average => value * overlap as f64,
                _ => value,
            };
            all = Some(match (function, all) {
                (_, None) | (Consolidation::Last, _) => weighed,
                (Consolidation::Average, Some(sum)) => sum + weighed,
                (Consolidation::Min, Some(least)) => f64::min(least, weighed),
                (Consolidation::Max, Some(greatest)) => f64::max(greatest, weighed),
            });
        }
        if known as f64 / (end - begin) as f64 <= xff {
            return None;
        }
        match function {
            Consolidation::Average => all.map(|sum| sum / known as f64),
            _ => all,
        }
    }
}
