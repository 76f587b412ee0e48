//! The rows of a chunk, one after the other.

use kymo_model::{Cursor, Event, EventClass, Fault, FieldId, Visitor};
use kymo_time::Timestamp;

use super::{Recording, VALUE_BITS};
use crate::Rows;
use crate::model::rows::Row;

/// Walks the rows of a chunk.
pub struct RowCursor<'a> {
    pub(super) recording: &'a Recording,
    pub(super) rows: Rows<'a>,
    pub(super) archive: usize,
    /// The first row of the chunk; rows are counted through their stream.
    pub(super) first: u64,
    pub(super) next: u64,
    pub(super) end: u64,
}

impl<'c> Cursor for RowCursor<'c> {
    type Event<'a>
        = RowEvent<'c>
    where
        Self: 'a;

    fn next_event(&mut self) -> Result<Option<RowEvent<'c>>, Fault> {
        if self.next >= self.end {
            return Ok(None);
        }
        let number = self.next;
        self.next += 1;
        let place = number - self.recording.vanished(self.archive);
        let Some(row) = self.rows.row(self.archive, place) else {
            return Ok(None);
        };
        Ok(Some(RowEvent {
            recording: self.recording,
            class: &self.recording.contents.layout.classes[self.archive],
            row,
            archive: self.archive,
            number: number - self.first,
            ticks: self.recording.ticks(self.archive, place),
        }))
    }
}

/// A row as an event.
pub struct RowEvent<'a> {
    recording: &'a Recording,
    class: &'a EventClass,
    row: Row<'a>,
    archive: usize,
    number: u64,
    ticks: Option<u64>,
}

impl Event for RowEvent<'_> {
    fn class(&self) -> &EventClass {
        self.class
    }

    fn class_index(&self) -> usize {
        self.archive
    }

    fn timestamp(&self) -> Option<Timestamp> {
        self.recording.clock().timestamp(self.ticks?)
    }

    fn ticks(&self) -> Option<u64> {
        self.ticks
    }

    fn number(&self) -> u64 {
        self.number
    }

    fn begin_bit(&self) -> u64 {
        self.number * self.recording.contents.database.sources.len() as u64 * VALUE_BITS
    }

    fn visit<V: Visitor>(&self, visitor: &mut V) -> Result<(), Fault> {
        let root = FieldId(0);
        let mut bit = self.begin_bit();
        visitor.at(bit);
        visitor.begin_struct(root);
        // Each data source has two fields in the schema: the optional, and what it holds.
        for (value, field) in self.row.values().zip((1..).step_by(2)) {
            visitor.at(bit);
            let known = !value.is_unknown();
            visitor.begin_optional(FieldId(field), known, known.into());
            if let Some(number) = value.get() {
                visitor.at(bit);
                visitor.float(FieldId(field + 1), number);
                visitor.after(bit + VALUE_BITS);
            }
            bit += VALUE_BITS;
            visitor.at(bit);
            visitor.end_optional(FieldId(field));
        }
        visitor.at(bit);
        visitor.end_struct(root);
        Ok(())
    }
}
