//! Sorting of rows by time in bounded memory.
//!
//! Rows are gathered until they take [`MOST_MEMORY`]; these are sorted and written to a temporary
//! file as a run. In the end the runs are merged. Rows of the same time and rank keep the order in
//! which they came. What fits in memory never becomes a file.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::ops::Range;

use crate::row::{self, NO_TIME, Order};
use crate::spool::{Spool, SpoolWriter};

/// Memory for the rows that are sorted at once, in bytes.
#[cfg(not(target_family = "wasm"))]
const MOST_MEMORY: usize = 64 << 20;
/// Without temporary files, memory is all there is.
#[cfg(target_family = "wasm")]
const MOST_MEMORY: usize = 1 << 30;
/// Rows of a chunk, at most.
const CHUNK_ROWS: u32 = 1 << 14;
/// Bytes of a chunk, more or less.
const CHUNK_BYTES: u64 = 1 << 20;

/// Rows that lie behind each other in the spool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// Where it begins in the spool.
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
    /// Time of its first row; `None` where that has none.
    pub(crate) begin: Option<i64>,
    /// Time of its last row.
    pub(crate) end: Option<i64>,
}

/// Rows in the order of time.
#[derive(Debug)]
pub(crate) struct Sorted {
    pub(crate) spool: Spool,
    pub(crate) parts: Vec<Part>,
    pub(crate) rows: u64,
}

/// Takes rows in any order.
#[derive(Debug)]
pub(crate) struct Sorter {
    rows: Vec<u8>,
    /// The order of the rows, and where they begin.
    order: Vec<(Order, u32)>,
    spilled: Option<SpoolWriter>,
    runs: Vec<Range<u64>>,
    most_memory: usize,
}

impl Sorter {
    pub(crate) fn new() -> Self {
        Self::with_memory(MOST_MEMORY)
    }

    fn with_memory(most_memory: usize) -> Self {
        Self {
            rows: Vec::new(),
            order: Vec::new(),
            spilled: None,
            runs: Vec::new(),
            most_memory,
        }
    }

    /// Adds a row; `write` writes its body.
    pub(crate) fn push(
        &mut self,
        order: Order,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> io::Result<()> {
        let begin = self.rows.len();
        row::begin(order, &mut self.rows);
        write(&mut self.rows);
        row::end(begin, &mut self.rows);
        self.order.push((order, begin as u32));
        let memory = self.rows.len() + self.order.len() * size_of::<(Order, u32)>();
        if memory >= self.most_memory {
            self.spill()?;
        }
        Ok(())
    }

    /// Bytes of all rows so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.rows.len() as u64 + self.spilled.as_ref().map_or(0, SpoolWriter::len)
    }

    fn sort(&mut self) {
        // Where rows begin is in the key, so that equal ones keep their order.
        if !self.order.is_sorted() {
            self.order.sort_unstable();
        }
    }

    /// Writes the rows in memory as a run.
    fn spill(&mut self) -> io::Result<()> {
        self.sort();
        let spilled = match &mut self.spilled {
            Some(spilled) => spilled,
            none => none.insert(SpoolWriter::new()?),
        };
        let begin = spilled.len();
        for &(_, at) in &self.order {
            let row = row::split(&self.rows[at as usize..]);
            spilled.write(row.map_or(&[][..], |(_, row)| row))?;
        }
        self.runs.push(begin..spilled.len());
        self.rows.clear();
        self.order.clear();
        Ok(())
    }

    /// The rows in the order of time.
    pub(crate) fn finish(mut self) -> io::Result<Sorted> {
        let mut parts = Parts::default();
        if self.spilled.is_none() {
            self.sort();
            let mut sorted = Vec::with_capacity(self.rows.len());
            for &(order, at) in &self.order {
                if let Some((_, row)) = row::split(&self.rows[at as usize..]) {
                    parts.add(order, row.len());
                    sorted.extend_from_slice(row);
                }
            }
            return Ok(parts.finish(Spool::memory(sorted)));
        }
        if !self.order.is_empty() {
            self.spill()?;
        }
        let Some(spilled) = self.spilled.take() else {
            return Ok(parts.finish(Spool::memory(Vec::new())));
        };
        self.rows = Vec::new();
        self.order = Vec::new();
        let spilled = spilled.finish()?;
        let mut merged = SpoolWriter::new()?;
        merge(spilled.bytes(), &self.runs, |order, row| {
            parts.add(order, row.len());
            merged.write(row)
        })?;
        Ok(parts.finish(merged.finish()?))
    }
}

/// Calls `take` for each row of the runs, in order.
fn merge(
    bytes: &[u8],
    runs: &[Range<u64>],
    mut take: impl FnMut(Order, &[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let mut rests: Vec<&[u8]> = runs
        .iter()
        .map(|run| {
            bytes
                .get(run.start as usize..run.end as usize)
                .unwrap_or_default()
        })
        .collect();
    let next = |rest: &[u8]| row::split(rest).map(|(order, _)| order);
    // Of rows of the same order, those of the first run came first.
    let first = |(run, rest): (usize, &&[u8])| next(rest).map(|order| Reverse((order, run)));
    let mut heap: BinaryHeap<_> = rests.iter().enumerate().filter_map(first).collect();
    while let Some(mut top) = heap.peek_mut() {
        let Reverse((_, run)) = *top;
        let Some((order, row)) = row::split(rests[run]) else {
            std::collections::binary_heap::PeekMut::pop(top);
            continue;
        };
        take(order, row)?;
        rests[run] = &rests[run][row.len()..];
        match next(rests[run]) {
            Some(order) => *top = Reverse((order, run)),
            None => {
                std::collections::binary_heap::PeekMut::pop(top);
            }
        }
    }
    Ok(())
}

/// Cuts rows into parts.
#[derive(Debug, Default)]
struct Parts {
    parts: Vec<Part>,
    /// Rows of the last part.
    rows: u32,
    all_rows: u64,
}

impl Parts {
    fn add(&mut self, order: Order, bytes: usize) {
        let time = (order.time != NO_TIME).then_some(order.time);
        let last = self.parts.last_mut();
        let is_full = |part: &Part| self.rows >= CHUNK_ROWS || part.bytes >= CHUNK_BYTES;
        match last {
            Some(part) if !is_full(part) => {
                part.bytes += bytes as u64;
                part.end = time;
                self.rows += 1;
            }
            last => {
                let offset = last.map_or(0, |part| part.offset + part.bytes);
                self.rows = 1;
                self.parts.push(Part {
                    offset,
                    bytes: bytes as u64,
                    begin: time,
                    end: time,
                });
            }
        }
        self.all_rows += 1;
    }

    fn finish(self, spool: Spool) -> Sorted {
        Sorted {
            spool,
            parts: self.parts,
            rows: self.all_rows,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::row::{Body, push_varint};

    fn sorted(times: &[i64], memory: usize) -> (Sorted, Vec<(i64, u64)>) {
        let mut sorter = Sorter::with_memory(memory);
        for (number, &time) in times.iter().enumerate() {
            let order = Order::new(Some(time), None);
            let push = sorter.push(order, |out| push_varint(number as u64, out));
            push.unwrap();
        }
        let sorted = sorter.finish().unwrap();
        let mut rest = sorted.spool.bytes();
        let mut found = Vec::new();
        while let Some((order, row)) = row::split(rest) {
            found.push((order.time, Body::new(row).varint().unwrap()));
            rest = &rest[row.len()..];
        }
        assert!(rest.is_empty());
        (sorted, found)
    }

    proptest! {
        #[test]
        fn runs_are_merged_as_memory_is_sorted(
            times in proptest::collection::vec(0i64..20, 0..200),
            memory in 1usize..3000,
        ) {
            let mut expected: Vec<_> = times.iter().copied().zip(0..).collect();
            expected.sort();
            for memory in [memory, usize::MAX] {
                let (sorter, found) = sorted(&times, memory);
                prop_assert_eq!(&found, &expected);
                prop_assert_eq!(sorter.rows, times.len() as u64);
            }
        }
    }

    #[test]
    fn parts_are_bounded_and_follow_each_other() {
        let times: Vec<i64> = (0..40_000).rev().collect();
        let (sorter, found) = sorted(&times, 1 << 18);
        assert_eq!(found.len(), 40_000);
        assert_eq!(sorter.parts.len(), 3);
        let mut offset = 0;
        for part in &sorter.parts {
            assert_eq!(part.offset, offset);
            assert!(part.begin <= part.end);
            offset += part.bytes;
        }
        assert_eq!(offset, sorter.spool.bytes().len() as u64);
    }
}
