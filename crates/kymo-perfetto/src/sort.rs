//! Rows in the order of time, in bounded memory.

use std::io::{self, BufWriter, Write};

use kymo_io::{Bytes, Spool};

use crate::row::{self, NO_TIME, Order};

/// Rows of a chunk, at most.
const CHUNK_ROWS: u32 = 1 << 14;
/// Bytes of a chunk, more or less.
const CHUNK_BYTES: u64 = 1 << 20;

/// Rows that lie behind each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// Where it begins among all rows.
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
    pub(crate) bytes: Bytes,
    pub(crate) parts: Vec<Part>,
    pub(crate) rows: u64,
}

/// Takes rows in any order. Rows of the same time and rank keep the order in which they came.
#[derive(Debug)]
pub(crate) struct Sorter(kymo_io::Sorter<Order>);

impl Sorter {
    pub(crate) fn new() -> Self {
        Self(kymo_io::Sorter::new(|bytes| {
            row::split(bytes).map(|(order, row)| (order, row.len()))
        }))
    }

    /// Adds a row; `write` writes its body.
    pub(crate) fn push(
        &mut self,
        order: Order,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> io::Result<()> {
        self.0.push(|rows| {
            let begin = rows.len();
            row::begin(order, rows);
            write(rows);
            row::end(begin, rows);
        })
    }

    /// Bytes of all rows so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.0.bytes()
    }

    /// The rows in the order of time.
    pub(crate) fn finish(self) -> io::Result<Sorted> {
        let mut parts = Parts::default();
        let mut sorted = BufWriter::with_capacity(1 << 18, Spool::within(u64::MAX));
        self.0.finish(|order, row| {
            parts.add(order, row.len());
            sorted.write_all(row)
        })?;
        let sorted = sorted.into_inner().map_err(io::Error::from)?;
        Ok(Sorted {
            bytes: sorted.finish()?,
            parts: parts.parts,
            rows: parts.all_rows,
        })
    }
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_bounded_and_follow_each_other() {
        let mut sorter = Sorter::new();
        for time in (0..40_000).rev() {
            let order = Order::new(Some(time), None);
            sorter.push(order, |_| {}).unwrap();
        }
        let sorted = sorter.finish().unwrap();
        assert_eq!((sorted.rows, sorted.parts.len()), (40_000, 3));
        assert!(row::each(&sorted.bytes).is_sorted_by_key(|(order, _)| order));
        let mut offset = 0;
        for part in &sorted.parts {
            assert_eq!(part.offset, offset);
            assert!(part.begin <= part.end);
            offset += part.bytes;
        }
        assert_eq!(offset, sorted.bytes.len() as u64);
    }
}
