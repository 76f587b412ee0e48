//! Sorting of rows of bytes in bounded memory.
//!
//! Rows are gathered until they take [`MOST_MEMORY`]; these are sorted and written to temporary storage
//! as a run. In the end the runs are merged. What comes in order is one run, however much it is.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::io::{self, BufWriter, Write};
use std::ops::Range;

use crate::Spool;

/// Memory for the rows that are sorted at once, in bytes; their order takes about as much.
const MOST_MEMORY: usize = 32 << 20;

/// The order of the row that some bytes begin with, and its length.
pub type Split<O> = fn(&[u8]) -> Option<(O, usize)>;

/// Takes rows in any order and hands them over sorted. Rows of the same order stay in the order in which they came.
#[derive(Debug)]
pub struct Sorter<O> {
    split: Split<O>,
    /// Rows behind each other.
    rows: Vec<u8>,
    /// The order of the last one.
    last: Option<O>,
    is_sorted: bool,
    spilled: Option<BufWriter<Spool>>,
    spilled_bytes: u64,
    runs: Vec<Run<O>>,
    most_memory: usize,
}

/// Sorted rows in the spool.
#[derive(Debug)]
struct Run<O> {
    bytes: Range<u64>,
    last: O,
}

impl<O: Copy + Ord> Sorter<O> {
    /// Without rows.
    pub fn new(split: Split<O>) -> Self {
        Self {
            split,
            rows: Vec::new(),
            last: None,
            is_sorted: true,
            spilled: None,
            spilled_bytes: 0,
            runs: Vec::new(),
            most_memory: MOST_MEMORY,
        }
    }

    /// The same, which gathers less or more bytes before it writes a run.
    pub fn with_memory(self, most_memory: usize) -> Self {
        Self {
            most_memory,
            ..self
        }
    }

    /// Adds the row that `write` appends.
    ///
    /// # Errors
    ///
    /// Those of temporary storage.
    #[inline]
    pub fn push(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        let begin = self.rows.len();
        write(&mut self.rows);
        if let Some((order, _)) = (self.split)(&self.rows[begin..]) {
            self.is_sorted &= self.last.is_none_or(|last| last <= order);
            self.last = Some(order);
        }
        match self.rows.len() >= self.most_memory {
            true => self.spill(),
            false => Ok(()),
        }
    }

    /// Bytes of all rows so far.
    pub fn bytes(&self) -> u64 {
        self.rows.len() as u64 + self.spilled_bytes
    }

    /// Hands over the rows in memory, sorted.
    fn each(&mut self, mut take: impl FnMut(O, &[u8]) -> io::Result<()>) -> io::Result<()> {
        let mut rest = &self.rows[..];
        let mut next = || {
            let (order, length) = (self.split)(rest)?;
            let (row, behind) = rest.split_at_checked(length)?;
            rest = behind;
            Some((order, row))
        };
        if self.is_sorted {
            while let Some((order, row)) = next() {
                take(order, row)?;
            }
        } else {
            let mut at = 0;
            let mut rows: Vec<(O, u32)> = Vec::new();
            while let Some((order, row)) = next() {
                rows.push((order, at));
                at += row.len() as u32;
            }
            // Where rows begin is in the key, so that equal ones keep their order.
            rows.sort_unstable();
            for (order, at) in rows {
                let row = &self.rows[at as usize..];
                if let Some((_, length)) = (self.split)(row) {
                    take(order, &row[..length])?;
                }
            }
        }
        self.rows.clear();
        self.last = None;
        self.is_sorted = true;
        Ok(())
    }

    /// Writes the rows in memory as a run.
    fn spill(&mut self) -> io::Result<()> {
        let new = || BufWriter::with_capacity(1 << 18, Spool::within(u64::MAX));
        let mut spilled = self.spilled.take().unwrap_or_else(new);
        let begin = self.spilled_bytes;
        self.spilled_bytes += self.rows.len() as u64;
        let (mut first, mut last) = (None, None);
        self.each(|order, row| {
            first.get_or_insert(order);
            last = Some(order);
            spilled.write_all(row)
        })?;
        self.spilled = Some(spilled);
        let (Some(first), Some(last)) = (first, last) else {
            return Ok(());
        };
        match self.runs.last_mut() {
            Some(run) if run.last <= first => {
                run.bytes.end = self.spilled_bytes;
                run.last = last;
            }
            _ => self.runs.push(Run {
                bytes: begin..self.spilled_bytes,
                last,
            }),
        }
        Ok(())
    }

    /// Hands over all rows, sorted.
    ///
    /// # Errors
    ///
    /// Those of temporary storage and of `take`.
    pub fn finish(mut self, take: impl FnMut(O, &[u8]) -> io::Result<()>) -> io::Result<()> {
        if self.spilled.is_none() {
            return self.each(take);
        }
        self.spill()?;
        self.rows = Vec::new();
        let Some(spilled) = self.spilled else {
            return Ok(());
        };
        let spilled = spilled.into_inner().map_err(io::Error::from)?.finish()?;
        merge(&spilled, &self.runs, self.split, take)
    }
}

/// Calls `take` for each row of the runs, in order.
fn merge<O: Copy + Ord>(
    bytes: &[u8],
    runs: &[Run<O>],
    split: Split<O>,
    mut take: impl FnMut(O, &[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let of_run = |run: &Run<O>| bytes.get(run.bytes.start as usize..run.bytes.end as usize);
    let mut rests: Vec<&[u8]> = runs.iter().filter_map(of_run).collect();
    // Of rows of the same order, those of the first run came first.
    let first = |(run, rest): (usize, &&[u8])| split(rest).map(|(order, _)| Reverse((order, run)));
    let mut heap: BinaryHeap<_> = rests.iter().enumerate().filter_map(first).collect();
    while let Some(mut top) = heap.peek_mut() {
        let Reverse((order, run)) = *top;
        let length = split(rests[run]).map_or(0, |(_, length)| length);
        let (row, rest) = rests[run].split_at(length);
        take(order, row)?;
        rests[run] = rest;
        match split(rest) {
            Some((order, _)) => *top = Reverse((order, run)),
            None => drop(PeekMut::pop(top)),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(row: &[u8]) -> Option<u64> {
        Some(u64::from_le_bytes(*row.first_chunk()?))
    }

    /// Rows of a key and a number, each of 8 bytes.
    fn sorted(keys: &[u64], memory: usize) -> (Vec<(u64, u64)>, usize) {
        let mut sorter = Sorter::new(|row| Some((number(row)?, 16))).with_memory(memory);
        for (place, key) in (0_u64..).zip(keys) {
            let row = [key.to_le_bytes(), place.to_le_bytes()].concat();
            sorter.push(|out| out.extend(row)).unwrap();
        }
        assert_eq!(sorter.bytes(), keys.len() as u64 * 16);
        let runs = sorter.runs.len();
        let mut found = Vec::new();
        let take = |key, row: &[u8]| {
            found.push((key, number(&row[8..]).unwrap()));
            Ok(())
        };
        sorter.finish(take).unwrap();
        (found, runs)
    }

    #[test]
    fn runs_are_merged_as_memory_is_sorted() {
        let mut state = 1_u64;
        let keys: Vec<u64> = (0..2000)
            .map(|_| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                state >> 58
            })
            .collect();
        let mut expected: Vec<_> = keys.iter().copied().zip(0..).collect();
        expected.sort_unstable();
        for memory in [1, 16, 100, 3000, usize::MAX] {
            assert!(sorted(&keys, memory).0 == expected, "{memory}");
        }
        assert!(sorted(&[], 1).0.is_empty());
    }

    #[test]
    fn sorted_rows_are_one_run() {
        let keys: Vec<u64> = (0..1000).map(|key| key / 3).collect();
        let (found, runs) = sorted(&keys, 160);
        assert_eq!((found.len(), runs), (1000, 1));
        assert!(found.is_sorted());
    }
}
