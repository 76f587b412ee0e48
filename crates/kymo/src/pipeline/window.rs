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

/// Rows that come before all others, and their order.
#[derive(Debug)]
pub(super) struct MergeWindow {
    is_possible: bool,
    /// Short runs since the last long one.
    short_runs: i32,
    parts: Vec<SourceRun>,
    /// Of each row the time by which it is merged, and its position among the rows of all parts.
    keys: Vec<(i64, u16)>,
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
        for part in &self.parts {
            let times = heads[part.source].batch.entries.times();
            let mut greatest = NO_TIME;
            let positions = self.keys.len() as u16..;
            let keys = times[part.first..part.first + part.rows]
                .iter()
                .zip(positions);
            self.keys.extend(keys.map(|(&time, position)| {
                greatest = greatest.max(time);
                (greatest, position)
            }));
        }
        // Each source costs something, rows or not.
        if self.keys.len() < LONG_RUN.max(sources) {
            self.short_runs = SHORT_RUNS - PAUSE;
            if self.keys.is_empty() {
                return None;
            }
        }
        self.keys.sort_by_key(|&(time, _)| time);
        self.order.clear();
        self.order
            .extend(self.keys.iter().map(|&(_, position)| position));
        self.order.truncate(most);
        Some(MergedRows {
            parts: &self.parts,
            order: &self.order,
        })
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
