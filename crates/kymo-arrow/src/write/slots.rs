//! Definition and repetition levels of nested columns, computed from the offsets and validities of arrays, as
//! [the specification](https://github.com/apache/parquet-format#nested-encoding) describes them.

use std::ops::Range;

use arrow_buffer::{NullBuffer, OffsetBuffer};

/// Stands for the level of slots that go on: it is known at the end.
const ALIVE: u8 = u8::MAX;

/// The slots of a column on the way from a row to its values: elements of an array, and what ended above them.
#[derive(Clone, Debug)]
pub(super) struct Slots {
    /// Number of slots.
    len: usize,
    /// The definition level of slots that go on.
    level: u8,
    /// The repetition level of elements of a list.
    repeated: u8,
    /// The level of each slot that ended. If there is none, all go on.
    definitions: Option<Vec<u8>>,
    /// The repetition level of each slot, if there are lists.
    repetitions: Vec<u8>,
    /// The elements of the array that go on, in order.
    elements: Vec<Range<usize>>,
}

impl Slots {
    /// Rows of an array.
    pub(super) fn new(rows: usize) -> Self {
        Self {
            len: rows,
            level: 0,
            repeated: 0,
            definitions: None,
            repetitions: Vec::new(),
            elements: std::iter::once(0..rows).collect(),
        }
    }

    /// Whether an element that goes on is null.
    pub(super) fn has_null(&self, nulls: &NullBuffer) -> bool {
        let mut elements = self.elements.iter();
        elements.any(|range| nulls.slice(range.start, range.len()).null_count() > 0)
    }

    /// Steps from an element to its value, which may be null.
    pub(super) fn enter_nullable(&mut self, nulls: Option<&NullBuffer>) {
        let missing = self.level;
        self.level += 1;
        let Some(nulls) = nulls.filter(|nulls| nulls.null_count() > 0) else {
            return;
        };
        let all = std::mem::take(&mut self.elements);
        match &mut self.definitions {
            None => {
                let mut definitions = vec![missing; self.len];
                let mut slot = 0;
                for range in all {
                    for (begin, end) in nulls.slice(range.start, range.len()).valid_slices() {
                        definitions[slot + begin..slot + end].fill(ALIVE);
                        add(&mut self.elements, range.start + begin..range.start + end);
                    }
                    slot += range.len();
                }
                self.definitions = Some(definitions);
            }
            Some(definitions) => {
                let alive = definitions.iter_mut().filter(|level| **level == ALIVE);
                for (level, element) in alive.zip(all.into_iter().flatten()) {
                    match nulls.is_valid(element) {
                        true => add(&mut self.elements, element..element + 1),
                        false => *level = missing,
                    }
                }
            }
        }
    }

    /// Steps from lists to their elements.
    pub(super) fn enter_lists(&mut self, offsets: &OffsetBuffer<i32>) {
        let empty = self.level;
        self.level += 1;
        self.repeated += 1;
        let lists = std::mem::take(&mut self.elements);
        let bounds =
            |lists: &Range<usize>| offsets[lists.start] as usize..offsets[lists.end] as usize;
        let items: usize = lists.iter().map(|lists| bounds(lists).len()).sum();
        let before = std::mem::take(&mut self.repetitions);
        let before = |slot: usize| before.get(slot).copied().unwrap_or(0);
        let ended = self.definitions.take();
        let alive: usize = lists.iter().map(Range::len).sum();
        let has_empty = lists.iter().any(|lists| {
            let ends = offsets[lists.start..=lists.end].windows(2);
            ends.fold(false, |any, ends| any | (ends[0] == ends[1]))
        });
        if alive == self.len && !has_empty {
            self.repetitions = vec![self.repeated; items];
            let (mut slot, mut behind) = (0, 0);
            for lists in &lists {
                let items = bounds(lists);
                for &begin in &offsets[lists.clone()] {
                    self.repetitions[begin as usize - items.start + behind] = before(slot);
                    slot += 1;
                }
                behind += items.len();
                add(&mut self.elements, items);
            }
            self.len = items;
            return;
        }
        // Slots that ended, empty lists, and elements.
        let most = self.len + items;
        let mut repetitions = vec![self.repeated; most];
        let mut definitions = vec![ALIVE; most];
        let mut next = lists.into_iter().flatten();
        let mut at = 0;
        for slot in 0..self.len {
            let level = ended.as_ref().map_or(ALIVE, |levels| levels[slot]);
            let items = match level == ALIVE {
                true => next.next().map_or(0..0, |list| bounds(&(list..list + 1))),
                false => 0..0,
            };
            repetitions[at] = before(slot);
            if items.is_empty() {
                definitions[at] = if level == ALIVE { empty } else { level };
                at += 1;
            } else {
                at += items.len();
                add(&mut self.elements, items);
            }
        }
        repetitions.truncate(at);
        definitions.truncate(at);
        self.len = at;
        self.repetitions = repetitions;
        self.definitions = Some(definitions);
    }

    /// Number of slots: values and what stands for missing ones.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The definition level of values.
    pub(super) fn level(&self) -> u8 {
        self.level
    }

    /// The definition level of each slot, if they are not all those of values.
    pub(super) fn definitions(&mut self) -> Option<&[u8]> {
        let level = self.level;
        let definitions = self.definitions.as_mut()?;
        let alive = definitions.iter_mut().filter(|found| **found == ALIVE);
        alive.for_each(|found| *found = level);
        Some(definitions)
    }

    /// The repetition level of each slot; none if there are no lists.
    pub(super) fn repetitions(&self) -> &[u8] {
        &self.repetitions
    }

    /// The elements of the array that are values.
    pub(super) fn elements(&self) -> &[Range<usize>] {
        &self.elements
    }
}

/// Appends elements to those before them.
fn add(elements: &mut Vec<Range<usize>>, more: Range<usize>) {
    match elements.last_mut() {
        Some(last) if last.end == more.start => last.end = more.end,
        _ => elements.push(more),
    }
}
