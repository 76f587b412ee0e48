//! What identifies the rows of a batch.

use std::ops::Range;

use super::RowId;

/// What identifies each row. Rows are mostly one after the other in a chunk, or those of a few chunks in turn.
#[derive(Clone, Debug, Default)]
pub(super) struct Ids {
    segments: Vec<Segment>,
    /// The bytes that segments hold elsewhere.
    bytes: usize,
}

#[derive(Clone, Debug)]
struct Segment {
    /// Position of the first row.
    first: usize,
    rows: SegmentRows,
}

#[derive(Clone, Debug)]
enum SegmentRows {
    /// Rows that are one after the other in a chunk: what identifies the first of them.
    Run(RowId),
    /// Rows of several such runs in any order.
    Merged(Box<MergedIds>),
}

#[derive(Clone, Debug)]
struct MergedIds {
    /// The position of each row among those of all runs.
    order: Box<[u16]>,
    /// Where each run begins among them, and what identifies its first row.
    runs: Box<[(usize, RowId)]>,
}

impl MergedIds {
    /// What identifies a row, its position among those of all runs, and the end of its run there.
    fn get(&self, row: usize) -> (RowId, Range<usize>) {
        let position = usize::from(self.order[row]);
        let next = self.runs.partition_point(|&(begin, _)| begin <= position);
        let (begin, id) = self.runs[next - 1];
        let end = self.runs.get(next).map_or(usize::MAX, |&(begin, _)| begin);
        (id.plus(position - begin), position..end)
    }

    /// What identifies a row, and the number of rows from it on that are one after the other.
    fn run(&self, row: usize) -> (RowId, usize) {
        let (id, positions) = self.get(row);
        let follows = self.order[row..].iter().zip(positions);
        let rows = follows.take_while(|&(&at, wanted)| usize::from(at) == wanted);
        (id, rows.count())
    }
}

impl RowId {
    /// The row that comes `rows` behind it in its chunk.
    fn plus(self, rows: usize) -> Self {
        Self {
            number: self.number.wrapping_add(rows as u64),
            ..self
        }
    }
}

impl Ids {
    /// None, with room for as many.
    pub(super) fn empty_like(&self) -> Self {
        Self {
            segments: Vec::with_capacity(self.segments.len()),
            bytes: 0,
        }
    }

    /// Adds what identifies a row, which is the next one.
    #[inline]
    pub(super) fn push(&mut self, row: usize, id: RowId) {
        let follows = match self.segments.last() {
            Some(Segment {
                first,
                rows: SegmentRows::Run(begin),
            }) => begin.plus(row - first) == id,
            _ => false,
        };
        if !follows {
            self.segments.push(Segment {
                first: row,
                rows: SegmentRows::Run(id),
            });
        }
    }

    /// Adds what identifies the rows from `first` on: those of some runs, which begin at these positions, by their
    /// positions among the rows of all.
    pub(super) fn push_merged(&mut self, first: usize, runs: Box<[(usize, RowId)]>, order: &[u16]) {
        self.bytes += size_of_val(&runs[..]) + size_of_val(order);
        let order = order.into();
        self.segments.push(Segment {
            first,
            rows: SegmentRows::Merged(Box::new(MergedIds { order, runs })),
        });
    }

    /// What identifies a row that exists.
    pub(super) fn get(&self, row: usize) -> RowId {
        let next = self
            .segments
            .partition_point(|segment| segment.first <= row);
        let segment = &self.segments[next - 1];
        match &segment.rows {
            SegmentRows::Run(id) => id.plus(row - segment.first),
            SegmentRows::Merged(merged) => merged.get(row - segment.first).0,
        }
    }

    /// Rows that are one after the other in a chunk, and what identifies the first of them; there are `len` rows.
    pub(super) fn runs(&self, len: usize) -> impl Iterator<Item = (Range<usize>, RowId)> {
        self.segments
            .iter()
            .enumerate()
            .flat_map(move |(at, segment)| {
                let next = self.segments.get(at + 1);
                let end = next.map_or(len, |next| next.first);
                let (run, merged) = match &segment.rows {
                    SegmentRows::Run(id) => (Some((segment.first..end, *id)), None),
                    SegmentRows::Merged(merged) => (None, Some(merged)),
                };
                let runs = merged.into_iter().flat_map(move |merged| {
                    let mut next = segment.first;
                    std::iter::from_fn(move || {
                        let row = next;
                        if row == end {
                            return None;
                        }
                        let (id, rows) = merged.run(row - segment.first);
                        next = row + rows;
                        Some((row..next, id))
                    })
                });
                run.into_iter().chain(runs)
            })
    }

    /// The bytes that it holds.
    pub(super) fn byte_size(&self) -> usize {
        size_of_val(&self.segments[..]) + self.bytes
    }
}
