//! What the engine asks of a file.

use crate::Value;
use crate::engine::StoreError;
use crate::model::State;

/// A file that an update changes: its state, and the rows of its archives.
///
/// Rows are numbered as they lie in the file. What was written is read again: a row that the
/// update has written has its new values.
pub trait Change {
    /// The state, to be looked at and changed.
    fn state(&mut self) -> &mut State;

    /// The values of a row, one for each data source.
    ///
    /// # Errors
    ///
    /// Those of reading.
    fn row(&mut self, archive: usize, row: u64, values: &mut Vec<Value>) -> Result<(), StoreError>;

    /// Writes a number of rows after the current one of an archive, all with the same values, and moves
    /// the current row to the last of them. The archive has at least that many rows.
    ///
    /// # Errors
    ///
    /// Those of writing.
    fn write_rows(
        &mut self,
        archive: usize,
        count: u64,
        values: &[Value],
    ) -> Result<(), StoreError>;

    /// Announces that the rows that follow are of points up to this time, in seconds since 1970: the end
    /// of a step, as rrdtool counts it.
    fn steps_end(&mut self, _end: u64) {}

    /// Announces that what an archive prepares has changed in the state: all of it where a row has ended,
    /// or only the row under way ([`VALUE`](crate::model::Scratch::VALUE) and
    /// [`UNKNOWN_POINTS`](crate::model::Scratch::UNKNOWN_POINTS)). The current row counts as part of it.
    fn prepared(&mut self, _archive: usize, _ended: bool) {}

    /// All values of an archive, row by row.
    ///
    /// # Errors
    ///
    /// Those of reading.
    fn values(&mut self, archive: usize) -> Result<Vec<Value>, StoreError>;

    /// Writes all values of an archive, row by row. The current row stays.
    ///
    /// # Errors
    ///
    /// Those of writing.
    fn rewrite(&mut self, archive: usize, values: Vec<Value>) -> Result<(), StoreError>;
}
