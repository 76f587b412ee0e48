//! Rows and columns: the events of recordings as tables.
//!
//! A [`Batch`] is a number of rows: for each, what identifies it, when it was, what it is, and the
//! values of chosen fields as columns. Buffers are in Apache Arrow's layout (columnar format 1.5), and can be
//! moved out without a copy. [`Columns`] are filled while events are decoded.
//!
//! * An enumeration is two columns, or members of a structure: `f` with the number, `f.labels` with the list of its
//!   labels. An array of them has a list of such lists beside it.
//! * Structures are structures; of a variant each option is a member, of which one has a value; arrays
//!   are lists; an optional is what it holds, or null.
//! * Texts are UTF-8; what is invalid in them is replaced by U+FFFD and counted.
//! * Floating point numbers of 128 bits are rounded to 64.

mod append;
mod bitmap;
mod build;
mod column;
mod deep;
mod gather;
mod ids;
mod visit;
mod wanted;

#[cfg(test)]
mod tests;

use std::ops::Range;
use std::sync::Arc;

use kymo_time::Timestamp;

pub use self::append::{MergedRows, SourceRows, SourceRun};
pub use self::bitmap::Bitmap;
pub use self::build::{Columns, Table};
pub use self::column::{Column, ColumnData, ColumnType, DataType, Strings};
pub use self::gather::{Layout, Number, Place};
use self::ids::Ids;
pub use self::wanted::{
    ColumnSource, Member, WantedColumn, all_columns, column_type, labels_type, members,
};
use crate::Lost;

/// Identifies a row, independent of the query and its options: stable while the recording is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RowId {
    /// Position of the recording.
    pub recording: u32,
    /// Position of the stream in its recording.
    pub stream: u32,
    /// Position of the chunk in its stream.
    pub chunk: u64,
    /// Position in the chunk.
    pub number: u64,
}

/// A row without its columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowHead {
    /// What identifies it.
    pub id: RowId,
    /// Position of its event class in its recording.
    pub class: u32,
    /// When it was, on the common line.
    pub time: Option<Timestamp>,
    /// When it was, in ticks of its stream's clock.
    pub ticks: Option<u64>,
}

/// Something that is not an event, and its position among the rows.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Notice {
    /// The number of rows of the batch before it.
    pub before: usize,
    /// Position of the recording.
    pub recording: u32,
    /// Position of the stream.
    pub stream: u32,
    /// What it is.
    pub kind: NoticeKind,
}

/// Something that is not an event.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum NoticeKind {
    /// Events were lost.
    LostEvents(Lost),
    /// Chunks were lost.
    LostChunks(Lost),
    /// Damage was met and skipped.
    Fault(Arc<crate::FaultReport>),
}

/// Rows in the order of a query: heads, and columns of one schema.
///
/// Column `n` is described by `schema()[n]`.
///
/// ```
/// use kymo_model::batch::{Batch, RowHead, RowId};
///
/// let mut batch = Batch::new([].into());
/// let id = RowId { recording: 0, stream: 1, chunk: 2, number: 3 };
/// batch.push_head(RowHead { id, class: 4, time: None, ticks: Some(5) });
/// assert_eq!(batch.len(), 1);
/// assert_eq!(batch.head(0).id, id);
/// ```
#[derive(Clone, Debug)]
pub struct Batch {
    schema: Arc<[ColumnType]>,
    ids: Ids,
    classes: Vec<u32>,
    times: Column,
    ticks: Column,
    columns: Vec<Column>,
    notices: Vec<Notice>,
    replaced: u64,
}

impl Batch {
    /// No rows, of a schema.
    pub fn new(schema: Arc<[ColumnType]>) -> Self {
        let columns = schema
            .iter()
            .map(|column| Column::new(&column.data_type))
            .collect();
        Self {
            schema,
            ids: Ids::default(),
            classes: Vec::new(),
            times: Column::new(&DataType::Int64),
            ticks: Column::new(&DataType::Uint64),
            columns,
            notices: Vec::new(),
            replaced: 0,
        }
    }

    /// No rows, of the same schema, with room for as many.
    #[must_use]
    pub fn empty_like(&self) -> Self {
        Self {
            schema: Arc::clone(&self.schema),
            classes: Vec::with_capacity(self.len() + append::SHORT),
            ids: self.ids.empty_like(),
            times: self.times.empty_like(),
            ticks: self.ticks.empty_like(),
            columns: self.columns.iter().map(Column::empty_like).collect(),
            ..Self::new(Arc::default())
        }
    }

    /// What the columns are.
    pub fn schema(&self) -> &Arc<[ColumnType]> {
        &self.schema
    }

    /// Number of rows.
    #[inline]
    pub fn len(&self) -> usize {
        self.classes.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.classes.is_empty()
    }

    /// What identifies a row.
    ///
    /// # Panics
    ///
    /// If the row does not exist.
    pub fn id(&self, row: usize) -> RowId {
        assert!(row < self.len(), "there is no row {row}");
        self.ids.get(row)
    }

    /// Rows that are one after the other in a chunk, and what identifies the first of them.
    pub fn runs(&self) -> impl Iterator<Item = (Range<usize>, RowId)> {
        self.ids.runs(self.len())
    }

    /// The position of each row's event class in its recording.
    pub fn classes(&self) -> &[u32] {
        &self.classes
    }

    /// When each row was: nanoseconds on the common line, null where no time is known or it does not fit.
    pub fn times(&self) -> &Column {
        &self.times
    }

    /// When each row was, in ticks of its stream's clock; null where the stream has no clock.
    pub fn ticks(&self) -> &Column {
        &self.ticks
    }

    /// The columns.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The column with a name.
    pub fn column(&self, name: &str) -> Option<&Column> {
        let position = self
            .schema
            .iter()
            .position(|column| *column.name == *name)?;
        self.columns.get(position)
    }

    /// What came between the rows and is not an event.
    pub fn notices(&self) -> &[Notice] {
        &self.notices
    }

    /// How many texts had something that is not UTF-8, which was replaced by U+FFFD.
    pub fn replaced(&self) -> u64 {
        self.replaced
    }

    /// The head of a row.
    ///
    /// # Panics
    ///
    /// If the row does not exist.
    pub fn head(&self, row: usize) -> RowHead {
        let time = match self.times.value(row) {
            crate::Value::Sint(nanos) => Some(Timestamp::from_nanos(nanos)),
            _ => None,
        };
        let ticks = match self.ticks.value(row) {
            crate::Value::Uint(ticks) => Some(ticks),
            _ => None,
        };
        RowHead {
            id: self.id(row),
            class: self.classes[row],
            time,
            ticks,
        }
    }

    /// Appends the head of a row. Its columns are to be [appended](Self::append_columns), before the batch is
    /// read.
    pub fn push_head(&mut self, head: RowHead) {
        self.ids.push(self.len(), head.id);
        self.classes.push(head.class);
        match head.time {
            Some(time) => self.times.push_sint(time.as_nanos()),
            None => self.times.push_null(),
        }
        match head.ticks {
            Some(ticks) => self.ticks.push_uint(ticks),
            None => self.ticks.push_null(),
        }
    }

    /// The same for rows of one class: what identifies them, their times in nanoseconds, and ticks where they have any.
    /// `no_time` stands for no time.
    ///
    /// # Panics
    ///
    /// If there are not as many of each.
    pub fn push_heads(
        &mut self,
        class: u32,
        ids: impl ExactSizeIterator<Item = RowId>,
        (times, no_time): (&[i64], i64),
        ticks: Option<&[u64]>,
    ) {
        let (begin, rows) = (self.len(), ids.len());
        assert!(times.len() == rows && ticks.is_none_or(|ticks| ticks.len() == rows));
        (begin..)
            .zip(ids)
            .for_each(|(row, id)| self.ids.push(row, id));
        self.classes.resize(begin + rows, class);
        self.times.extend_times(times, no_time);
        self.ticks.extend_ticks(ticks, rows);
    }

    /// Appends rows of columns of the same schema.
    ///
    /// # Panics
    ///
    /// If the columns are of another schema, or have not all of these rows.
    pub fn append_columns(&mut self, columns: &[Column], rows: Range<usize>) {
        for (to, from) in self.columns.iter_mut().zip(columns) {
            to.append(from, rows.clone());
        }
    }

    /// Adds a notice behind the last row.
    pub fn push_notice(&mut self, recording: u32, stream: u32, kind: NoticeKind) {
        self.notices.push(Notice {
            before: self.len(),
            recording,
            stream,
            kind,
        });
    }

    /// The same rows and notices from the last to the first.
    #[must_use]
    pub fn reversed(&self) -> Self {
        let mut reversed = Self::new(Arc::clone(&self.schema));
        let rows = self.len();
        for row in (0..rows).rev() {
            reversed.push_head(self.head(row));
            reversed.append_columns(&self.columns, row..row + 1);
        }
        let notices = self.notices.iter().rev().map(|notice| Notice {
            before: rows - notice.before.min(rows),
            ..notice.clone()
        });
        reversed.notices.extend(notices);
        reversed.replaced = self.replaced;
        reversed
    }

    /// Counts texts that had something replaced.
    pub fn add_replaced(&mut self, texts: u64) {
        self.replaced += texts;
    }

    /// The columns of times, ticks and values, without a copy.
    pub fn into_columns(self) -> (Column, Column, Vec<Column>) {
        (self.times, self.ticks, self.columns)
    }

    /// The bytes that the columns hold.
    pub fn byte_size(&self) -> usize {
        let head = size_of::<u32>() + 2 * size_of::<u64>();
        let heads = self.len() * head + self.ids.byte_size();
        heads + self.columns.iter().map(Column::byte_size).sum::<usize>()
    }
}
