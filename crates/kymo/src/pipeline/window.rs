//! The order of many rows at once, for streams that take turns.
//!
//! Rows are merged by the greatest time that their stream has reached, and then by the rank of the stream: a row that
//! goes back in time comes right behind the one before it. So the rows of all streams that are in hand are sorted by
//! that, up to the time from which on not all rows are known.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use kymo_model::batch::{MergedRows, SourceRun};

use super::entries::NO_TIME;
use super::head::{Head, Key};

/// With more sources, few rows of each would be in a window.
const MOST_SOURCES: usize = 64;

/// Runs of as many rows are better appended one by one.
const LONG_RUN: usize = 8;

/// So many short runs in a row make it worth to look for a window.
const SHORT_RUNS: i32 = 4;

/// How many short runs more it takes behind a window of a few rows.
const PAUSE: i32 = 16;

/// Bits of the position of a row in a window; the others are enough for half a year.
const POSITION_BITS: u32 = MergedRows::MOST.ilog2();

/// Rows that come before all others, and their order.
#[derive(Debug)]
pub(super) struct MergeWindow {
    is_possible: bool,
    /// Short runs since the last long one.
    short_runs: i32,
    parts: Vec<SourceRun>,
    /// Of each row, the time by which it is merged, since the first of the window, and its position among the rows of
    /// all parts: in one number, which is its place in the order.
    keys: Vec<u64>,
    /// Room for as many.
    merged: Vec<u64>,
    order: Vec<u16>,
}

impl MergeWindow {
    /// For sources of these ranks.
    pub(super) fn new(ranks: &[u32], by_stream: bool) -> Self {
        let mut sorted = ranks.to_vec();
        sorted.sort_unstable();
        // Sources of the same rank are merged by the classes of their events.
        let are_distinct = sorted.windows(2).all(|pair| pair[0] != pair[1]);
        Self {
            is_possible: are_distinct && !by_stream && ranks.len() <= MOST_SOURCES,
            short_runs: 0,
            parts: Vec::new(),
            keys: Vec::new(),
            merged: Vec::new(),
            order: Vec::new(),
        }
    }

    /// A run of rows was taken by itself.
    #[inline]
    pub(super) fn run_taken(&mut self, rows: usize) {
        self.short_runs = match rows < LONG_RUN {
            true => self.short_runs.saturating_add(1),
            false => 0,
        };
    }

    /// Whether the streams take turns.
    #[inline]
    pub(super) fn is_due(&self) -> bool {
        self.is_possible && self.short_runs >= SHORT_RUNS
    }

    /// Finds the rows that come next, of the sources with these keys: at most `most`. `None` if none are known.
    pub(super) fn find<'k>(
        &mut self,
        heads: &[Head<'_>],
        keys: impl Iterator<Item = &'k Key> + Clone,
        most: usize,
    ) -> Option<MergedRows<'_>> {
        let sources = keys.clone().count();
        let most_of_source = (MergedRows::MOST / sources.max(1)).max(1);
        let left = |head: &'_ Head<'_>| head.batch.entries.len() - head.next;
        // Of a source, nothing is known beyond these rows.
        let known = keys.clone().map(|key| {
            let head = &heads[key.source];
            let rows = left(head).min(most_of_source);
            match head.is_at_event() {
                true => head.batch.entries.times()[head.next + rows - 1],
                false => key.time,
            }
        });
        let end = known.min()?;
        self.parts.clear();
        for key in keys {
            let head = &heads[key.source];
            if !head.is_at_event() {
                continue;
            }
            let times = &head.batch.entries.times()[head.next..][..left(head).min(most_of_source)];
            let rows = times.iter().position(|&time| time >= end);
            let rows = rows.unwrap_or(times.len());
            if rows > 0 {
                self.parts.push(SourceRun {
                    source: key.source,
                    first: head.next,
                    rows,
                });
            }
        }
        self.parts
            .sort_unstable_by_key(|part| heads[part.source].info.rank);
        self.keys.clear();
        let times =
            |part: &SourceRun| &heads[part.source].batch.entries.times()[part.first..][..part.rows];
        let begin = self
            .parts
            .iter()
            .map(|part| times(part)[0])
            .min()
            .unwrap_or(end);
        if end.abs_diff(begin) > u64::MAX >> POSITION_BITS {
            self.short_runs = SHORT_RUNS - PAUSE;
            return None;
        }
        for part in &self.parts {
            let mut greatest = NO_TIME;
            let positions = self.keys.len() as u64..;
            let keys = times(part).iter().zip(positions);
            self.keys.extend(keys.map(|(&time, position)| {
                greatest = greatest.max(time);
                greatest.wrapping_sub(begin).cast_unsigned() << POSITION_BITS | position
            }));
        }
        // Each source costs something, rows or not.
        if self.keys.len() < LONG_RUN.max(sources) {
            self.short_runs = SHORT_RUNS - PAUSE;
            if self.keys.is_empty() {
                return None;
            }
        }
        let lengths = self.parts.iter().map(|part| part.rows).collect();
        merge_parts(&mut self.keys, &mut self.merged, lengths);
        self.order.clear();
        let position = |&key: &u64| (key & ((1 << POSITION_BITS) - 1)) as u16;
        self.order.extend(self.keys.iter().map(position));
        self.order.truncate(most);
        Some(MergedRows {
            parts: &self.parts,
            order: &self.order,
        })
    }
}

/// Merges parts of these lengths, each of which is in order.
fn merge_parts(keys: &mut Vec<u64>, merged: &mut Vec<u64>, mut lengths: Vec<usize>) {
    merged.resize(keys.len(), 0);
    while lengths.len() > 1 {
        let (mut from, mut to) = (&keys[..], &mut merged[..]);
        let pairs = lengths.chunks(2).map(|pair| {
            let length = pair.iter().sum();
            let (parts, behind) = from.split_at(length);
            let (place, others) = std::mem::take(&mut to).split_at_mut(length);
            let (first, second) = parts.split_at(pair[0]);
            merge_two(first, second, place);
            (from, to) = (behind, others);
            length
        });
        lengths = pairs.collect();
        std::mem::swap(keys, merged);
    }
}

/// Merges two parts to a place that has room for both.
fn merge_two(first: &[u64], second: &[u64], to: &mut [u64]) {
    let (mut at_first, mut at_second) = (0, 0);
    // Which comes next is a number: a branch would be predicted wrongly where streams take turns.
    for place in to {
        let a = first.get(at_first).copied().unwrap_or(u64::MAX);
        let b = second.get(at_second).copied().unwrap_or(u64::MAX);
        *place = a.min(b);
        at_first += usize::from(a <= b);
        at_second += usize::from(a > b);
    }
}

/// The keys of all sources after their rows were taken.
pub(super) fn renew_keys(
    heap: BinaryHeap<Reverse<Key>>,
    heads: &[Head<'_>],
) -> BinaryHeap<Reverse<Key>> {
    let mut keys = heap.into_vec();
    for Reverse(key) in &mut keys {
        // A source of which no more is known keeps the key from which it is read.
        if let Some(next) = heads[key.source].key(key.source) {
            *key = next;
        }
    }
    keys.into()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Merged as they would be sorted, however many parts there are.
        #[test]
        fn parts_are_merged_in_order(
            parts in proptest::collection::vec(proptest::collection::vec(0u64..50, 0..20), 0..9),
        ) {
            let mut parts = parts;
            parts.iter_mut().for_each(|part| part.sort_unstable());
            let mut keys = parts.concat();
            let lengths = parts.iter().map(Vec::len).collect();
            let mut sorted = keys.clone();
            sorted.sort_unstable();
            merge_parts(&mut keys, &mut Vec::new(), lengths);
            prop_assert_eq!(keys, sorted);
        }
    }
}
