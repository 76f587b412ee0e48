//! What rows an update has written.

use super::{Change, StoreError};
use crate::model::State;
use crate::{Database, Value};

/// The rows that the steps that ended in one update have written to an archive.
#[derive(Clone, Debug, PartialEq)]
pub struct Written {
    /// The place of the archive.
    pub archive: usize,
    /// The end of the last of the steps, in seconds since 1970, as rrdtool counts it.
    end: u64,
    /// The values of the first row.
    first: Vec<Value>,
    /// How many rows follow, and their values.
    rest: Option<(u64, Vec<Value>)>,
}

impl Written {
    /// The rows, each with the time that rrdtool reports: for those after the first it is a row too
    /// late, as `updatev` has always printed it.
    pub fn rows(&self, database: &Database) -> impl Iterator<Item = (u64, &[Value])> {
        let row = database.row_seconds(self.archive).unwrap_or(1).max(1);
        let last = self.end - self.end % row;
        let (more, values) = match &self.rest {
            Some((more, values)) => (*more, values.as_slice()),
            None => (0, &[][..]),
        };
        let first = last.saturating_sub(more.saturating_mul(row));
        let rest = (0..more).map(move |place| {
            let after = (place + 2).saturating_mul(row);
            (first.saturating_add(after), values)
        });
        std::iter::once((first, self.first.as_slice())).chain(rest)
    }
}

/// A change that is noted down.
pub(super) struct Noted<'a, C> {
    pub(super) change: &'a mut C,
    pub(super) written: &'a mut Vec<Written>,
    end: u64,
    /// How much was written when the steps ended.
    before: usize,
}

impl<'a, C> Noted<'a, C> {
    pub(super) fn new(change: &'a mut C, written: &'a mut Vec<Written>) -> Self {
        Self {
            change,
            before: written.len(),
            written,
            end: 0,
        }
    }
}

impl<C: Change> Change for Noted<'_, C> {
    fn state(&mut self) -> &mut State {
        self.change.state()
    }

    fn row(&mut self, archive: usize, row: u64, values: &mut Vec<Value>) -> Result<(), StoreError> {
        self.change.row(archive, row, values)
    }

    fn write_rows(
        &mut self,
        archive: usize,
        count: u64,
        values: &[Value],
    ) -> Result<(), StoreError> {
        match self.written[self.before..].last_mut() {
            // The first row comes alone, and then all others.
            Some(written) if written.archive == archive => {
                written.rest = Some((count, values.to_vec()));
            }
            _ => self.written.push(Written {
                archive,
                end: self.end,
                first: values.to_vec(),
                rest: None,
            }),
        }
        self.change.write_rows(archive, count, values)
    }

    fn prepared(&mut self, archive: usize, ended: bool) {
        self.change.prepared(archive, ended);
    }

    fn steps_end(&mut self, end: u64) {
        self.end = end;
        self.before = self.written.len();
    }

    fn values(&mut self, archive: usize) -> Result<Vec<Value>, StoreError> {
        self.change.values(archive)
    }

    fn rewrite(&mut self, archive: usize, values: Vec<Value>) -> Result<(), StoreError> {
        self.change.rewrite(archive, values)
    }
}
