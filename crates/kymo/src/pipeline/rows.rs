//! Rows on their way through the merge: their values as columns, beside their text.

use std::ops::Range;

use kymo_model::batch::RowId;
use kymo_model::{Column, Value};
use kymo_time::Timestamp;

use super::{EntrySlice, NO_TIME, Window};
use crate::show::{Message, MessageKind};

/// Which events are wanted in blocks.
#[derive(Clone, Debug)]
pub struct BlockWish<'w> {
    /// For each event class whether its events are.
    pub(crate) classes: &'w [bool],
    /// Their positions in the chunk.
    pub(crate) numbers: Range<u64>,
    /// When they are.
    pub(crate) window: Window,
}

/// The values of the events of a batch as columns.
#[derive(Debug, Default)]
pub struct RowBuffers {
    /// Positions of the events in their chunk.
    pub(crate) numbers: Vec<u64>,
    /// Columns of all events; or, of each event class by its position, those of its events.
    pub(crate) columns: Vec<(usize, Vec<Column>)>,
    /// Number of texts of which something was replaced that is not UTF-8.
    pub(crate) replaced: u64,
}

/// Where the rows of an event class are in the buffers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ClassRows {
    /// Position of its columns, plus one; 0 if it has none.
    columns: usize,
    /// Number of its rows that were handed over.
    pub(crate) taken: usize,
}

impl ClassRows {
    /// Those of all classes, of which no row was handed over.
    pub(super) fn begin(classes: &mut [Self], buffers: &RowBuffers) {
        classes.fill(Self::default());
        for (position, (class, _)) in buffers.columns.iter().enumerate() {
            if let Some(rows) = classes.get_mut(*class) {
                rows.columns = position + 1;
            }
        }
    }
}

/// Rows of one stream that come one after the other in the order of time. As an iterator it takes them one by
/// one; rows are for those who make columns by event class.
#[derive(Debug)]
pub struct RowRun<'a> {
    pub(crate) recording: usize,
    pub(crate) stream: usize,
    pub(crate) chunk: usize,
    /// Whether ticks mean something.
    pub(crate) has_clock: bool,
    /// The rows.
    pub(crate) entries: EntrySlice<'a>,
    /// Those of them that were taken one by one.
    pub(crate) taken: usize,
    /// Position of the first of all in the buffers.
    pub(crate) first: usize,
    /// The text of the batch, and where that of the first row begins.
    pub(crate) text: &'a [u8],
    pub(crate) text_begin: usize,
    pub(crate) buffers: &'a RowBuffers,
    pub(crate) classes: &'a mut [ClassRows],
}

/// A row: what it is, its text and its values.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    /// What it is and where it is from.
    pub message: Message,
    /// What the renderer made of it.
    pub text: &'a [u8],
    /// Its values.
    pub values: Values<'a>,
}

/// The values of a row, by the positions of the columns of its class.
#[derive(Clone, Copy, Debug, Default)]
pub struct Values<'a> {
    columns: &'a [Column],
    row: usize,
}

impl<'a> Values<'a> {
    /// A row of some columns.
    pub(crate) fn new(columns: &'a [Column], row: usize) -> Self {
        Self { columns, row }
    }

    /// The value of the first of some columns that has one.
    #[inline]
    pub(crate) fn first(&self, columns: &Range<usize>) -> Value<'a> {
        match columns.len() {
            0 => Value::Missing,
            1 => self.get(columns.start),
            _ => self.first_of_several(columns.clone()),
        }
    }

    #[inline(never)]
    fn first_of_several(&self, columns: Range<usize>) -> Value<'a> {
        let mut values = columns.map(|column| self.get(column));
        let found = values.find(|value| *value != Value::Missing);
        found.unwrap_or(Value::Missing)
    }

    /// The value of a column, or a missing value if the column does not exist.
    #[inline]
    pub fn get(&self, column: usize) -> Value<'a> {
        let column = self.columns.get(column);
        column.map_or(Value::Missing, |column| column.value(self.row))
    }

    /// The columns, and the position of the row in each.
    #[inline]
    pub fn columns(&self) -> (&'a [Column], usize) {
        (self.columns, self.row)
    }
}

impl<'a> RowRun<'a> {
    /// The columns of an event class; none if it has none.
    #[inline]
    pub(crate) fn columns(&self, class: usize) -> &'a [Column] {
        let buffers = self.buffers;
        match self.classes[class].columns.checked_sub(1) {
            Some(position) => &buffers.columns[position].1,
            None => &[],
        }
    }

    /// The rows with what identifies them, as if there were no other recording.
    #[inline]
    pub(crate) fn with_ids(self) -> impl Iterator<Item = (Row<'a>, RowId)> {
        let (stream, chunk) = (self.stream as u32, self.chunk as u64);
        let buffers = self.buffers;
        let numbers = buffers.numbers[self.first..].iter();
        self.zip(numbers).map(move |(row, &number)| {
            let id = RowId {
                recording: 0,
                stream,
                chunk,
                number,
            };
            (row, id)
        })
    }
}

impl<'a> Iterator for RowRun<'a> {
    type Item = Row<'a>;

    #[inline]
    fn next(&mut self) -> Option<Row<'a>> {
        let entry = self.entries.get(self.taken)?;
        self.taken += 1;
        let class = entry.class as usize;
        let rows = &mut self.classes[class];
        let row = rows.taken;
        rows.taken += 1;
        let columns = self.columns(class);
        let begin = std::mem::replace(&mut self.text_begin, entry.text_end);
        Some(Row {
            message: Message {
                kind: MessageKind::Event,
                recording: self.recording,
                stream: self.stream,
                chunk: self.chunk,
                class,
                time: (entry.time != NO_TIME).then_some(Timestamp::from_nanos(entry.time)),
                ticks: self.has_clock.then_some(entry.ticks),
            },
            text: &self.text[begin..entry.text_end],
            values: Values { columns, row },
        })
    }
}
