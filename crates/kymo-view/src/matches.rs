//! Rows that a condition holds for, found in the background: what a search or a filter shows.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use kymo::timeline::Bin;
use kymo_index::Row;

/// Rows that are kept at most.
pub(crate) const MOST_MATCHES: usize = 8 << 20;

/// A row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Match {
    pub(crate) time: i64,
    /// Of a series; NaN of none.
    pub(crate) value: f64,
    pub(crate) class: u32,
}

/// The rows of each track.
#[derive(Debug, Default)]
pub(crate) struct Matches(Mutex<Found>);

#[derive(Debug, Default)]
pub(crate) struct Found {
    tracks: HashMap<u32, Sorted>,
    /// How many there are.
    pub(crate) count: usize,
    /// Whether some are missing, since there are too many.
    pub(crate) is_cut: bool,
    /// Whether all rows were looked at.
    pub(crate) is_done: bool,
}

#[derive(Debug, Default)]
struct Sorted {
    rows: Vec<Match>,
    is_dirty: bool,
}

impl Sorted {
    fn rows(&mut self) -> &[Match] {
        if std::mem::take(&mut self.is_dirty) {
            // Stable: rows of the same time stay in their order.
            self.rows.sort_by_key(|row| row.time);
        }
        &self.rows
    }
}

impl Matches {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Found> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Found {
    /// Adds rows. Returns whether there is room for more.
    pub(crate) fn add(&mut self, rows: impl Iterator<Item = (u32, Match)>) -> bool {
        for (track, row) in rows {
            if self.count >= MOST_MATCHES {
                self.is_cut = true;
                return false;
            }
            let matches = self.tracks.entry(track).or_default();
            matches.is_dirty |= matches.rows.last().is_some_and(|last| last.time > row.time);
            matches.rows.push(row);
            self.count += 1;
        }
        true
    }

    /// The tracks that have rows.
    pub(crate) fn tracks(&self) -> impl Iterator<Item = u32> {
        self.tracks.keys().copied()
    }

    /// The bins of a track that have rows, in spans of which the first begins and the last ends at a time.
    pub(crate) fn bins(&mut self, track: u32, begin: i64, span: u64, end: i64) -> Vec<(u64, Bin)> {
        let mut bins: Vec<(u64, Bin)> = Vec::new();
        for row in self.between(track, begin, end) {
            let position = row.time.abs_diff(begin) / span;
            let value = Some(row.value).filter(|value| !value.is_nan());
            let added = Row::new(row.time, row.class as usize).with_value(value);
            match bins.last_mut() {
                Some((last, bin)) if *last == position => bin.push(&added),
                _ => {
                    let mut bin = Bin::default();
                    bin.push(&added);
                    bins.push((position, bin));
                }
            }
        }
        bins
    }

    /// The rows of a track from one time to another, both included.
    pub(crate) fn between(&mut self, track: u32, begin: i64, end: i64) -> &[Match] {
        let rows = self.tracks.get_mut(&track).map_or(&[][..], Sorted::rows);
        let from = rows.partition_point(|row| row.time < begin);
        let to = rows.partition_point(|row| row.time <= end);
        rows.get(from..to).unwrap_or_default()
    }

    /// Adds how many rows of a track there are in each of some spans, of which the first begins when the range does.
    pub(crate) fn add_density(
        &mut self,
        track: u32,
        (begin, end): (i64, i64),
        span: u64,
        density: &mut [u64],
    ) {
        let rows = self.between(track, begin, end);
        let column = |row: &Match| (row.time.abs_diff(begin) / span) as usize;
        let mut rest = rows;
        while let Some(first) = rest.first() {
            let at = column(first);
            // Where many share a span, its end is looked up.
            let count = match rest.get(16) {
                Some(other) if column(other) == at => rest.partition_point(|row| column(row) <= at),
                _ => rest.iter().take_while(|row| column(row) == at).count(),
            };
            if let Some(sum) = density.get_mut(at) {
                *sum += count as u64;
            }
            rest = rest.get(count..).unwrap_or_default();
        }
    }

    /// The rows of all tracks around a time, in order of time: at most `most` before it, and as many from it on.
    pub(crate) fn around(&mut self, time: i64, most: usize) -> Vec<(u32, Match)> {
        let numbers: Vec<u32> = self.tracks().collect();
        let (mut before, mut after) = (Vec::new(), Vec::new());
        for number in numbers {
            let rows = self.tracks.get_mut(&number).map_or(&[][..], Sorted::rows);
            let at = rows.partition_point(|row| row.time < time);
            let (past, rest) = rows.split_at(at);
            before.extend(past.iter().rev().take(most).map(|row| (number, *row)));
            after.extend(rest.iter().take(most).map(|row| (number, *row)));
        }
        before.sort_by_key(|(number, row)| (std::cmp::Reverse(row.time), *number));
        after.sort_by_key(|(number, row)| (row.time, *number));
        before.truncate(most);
        after.truncate(most);
        before.reverse();
        before.extend(after);
        before
    }

    /// The first row after a time, or the last one before it, of some tracks or all.
    pub(crate) fn next(
        &mut self,
        time: i64,
        is_back: bool,
        tracks: Option<&[u32]>,
    ) -> Option<(u32, Match)> {
        let numbers: Vec<u32> = match tracks {
            Some(tracks) => tracks.to_vec(),
            None => self.tracks().collect(),
        };
        let found = numbers.into_iter().filter_map(|number| {
            let rows = self.tracks.get_mut(&number)?.rows();
            let row = match is_back {
                true => rows.partition_point(|row| row.time < time).checked_sub(1)?,
                false => rows.partition_point(|row| row.time <= time),
            };
            rows.get(row).map(|row| (number, *row))
        });
        match is_back {
            true => found.max_by_key(|(number, row)| (row.time, *number)),
            false => found.min_by_key(|(number, row)| (row.time, *number)),
        }
    }
}
