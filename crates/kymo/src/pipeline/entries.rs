//! Events of a chunk on their way to the merge, as columns.

use std::ops::Range;

use kymo_model::{EventBlock, EventOrder, FaultReport};
use kymo_text::Line;

use super::RowBuffers;

/// Stands for "no time" in an [`Entry`]: no event can be that early.
pub(crate) const NO_TIME: i64 = EventBlock::NO_TIME;

/// An event in a batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    /// Nanoseconds, or [`NO_TIME`].
    pub time: i64,
    /// Ticks; without meaning where the stream has no clock.
    pub ticks: u64,
    /// Where its text ends; it begins where that of the entry before ends.
    pub text_end: usize,
    pub class: u32,
}

/// Events in a batch, as columns.
#[derive(Debug, Default)]
pub(crate) struct Entries {
    pub(super) times: Vec<i64>,
    pub(super) ticks: Vec<u64>,
    /// Empty if there is no text.
    pub(super) text_ends: Vec<usize>,
    pub(super) classes: Vec<u32>,
}

impl Entries {
    #[inline]
    pub(super) fn push(&mut self, entry: Entry) {
        self.times.push(entry.time);
        self.ticks.push(entry.ticks);
        self.text_ends.push(entry.text_end);
        self.classes.push(entry.class);
    }

    pub(super) fn clear(&mut self) {
        self.times.clear();
        self.ticks.clear();
        self.text_ends.clear();
        self.classes.clear();
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.times.len()
    }

    #[inline]
    pub(crate) fn get(&self, position: usize) -> Option<Entry> {
        self.slice(0..self.len()).get(position)
    }

    pub(crate) fn last(&self) -> Option<Entry> {
        self.get(self.len().checked_sub(1)?)
    }

    #[inline]
    pub(super) fn times(&self) -> &[i64] {
        &self.times
    }

    /// Some of them.
    #[inline]
    pub(crate) fn slice(&self, range: Range<usize>) -> EntrySlice<'_> {
        EntrySlice {
            times: &self.times[range.clone()],
            ticks: &self.ticks[range.clone()],
            text_ends: self.text_ends.get(range.clone()).unwrap_or_default(),
            classes: &self.classes[range],
        }
    }
}

/// Some events of a batch, as columns of the same length.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EntrySlice<'a> {
    pub times: &'a [i64],
    pub ticks: &'a [u64],
    text_ends: &'a [usize],
    pub classes: &'a [u32],
}

impl EntrySlice<'_> {
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.times.len()
    }

    #[inline]
    pub(crate) fn get(&self, position: usize) -> Option<Entry> {
        Some(Entry {
            time: *self.times.get(position)?,
            ticks: *self.ticks.get(position)?,
            text_end: self.text_ends.get(position).copied().unwrap_or(0),
            class: *self.classes.get(position)?,
        })
    }
}

/// What a job has made of a chunk, or of a part of it.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub chunk: usize,
    pub entries: Entries,
    pub text: Line,
    /// The values of the entries, where they are asked for as columns.
    pub rows: RowBuffers,
    /// The order of all events that were met, wanted or not.
    pub order: EventOrder,
    /// What ended the chunk before its end.
    pub fault: Option<FaultReport>,
    /// Whether it begins the chunk.
    pub first: bool,
    /// Whether it ends the chunk.
    pub last: bool,
}

impl Batch {
    /// Lends a block the memory of the entries, of which there is none.
    pub(super) fn lend_to(&mut self, block: &mut EventBlock) {
        let entries = &mut self.entries;
        block.times = std::mem::take(&mut entries.times);
        block.ticks = std::mem::take(&mut entries.ticks);
        block.classes = std::mem::take(&mut entries.classes);
        block.numbers.clear();
        block.numbers.reserve(block.times.capacity());
        block.order = EventOrder::default();
    }

    /// Takes the events of a block, if it has met any.
    pub(super) fn take_block(&mut self, block: &mut EventBlock) {
        if block.times.capacity() > 0 {
            self.entries.times = std::mem::take(&mut block.times);
            self.entries.ticks = std::mem::take(&mut block.ticks);
            self.entries.classes = std::mem::take(&mut block.classes);
        }
        if block.order.last_ticks().is_some() {
            self.order = std::mem::take(&mut block.order);
        }
    }

    /// When what follows it is needed, roughly.
    pub(super) fn time(&self) -> i64 {
        self.entries.last().map_or(NO_TIME, |entry| entry.time)
    }
}
