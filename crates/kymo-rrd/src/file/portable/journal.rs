//! The rows that an update writes.

use kymo_io::{ReadAt, Storage};

use super::Error;
use super::layout::Layout;
use super::slot::Slot;
use crate::Value;

/// How many bytes of rows are written or compared at once, unless a row is larger.
const CHUNK: u64 = 1 << 16;

/// Rows of an archive that follow each other in the ring and have the same values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// The archive.
    pub(super) archive: usize,
    /// The first row, by its place in the file.
    pub(super) row: u32,
    /// How many rows, at least 1 and at most those of the archive.
    pub(super) count: u32,
    /// One value for each data source.
    pub(super) values: Vec<Value>,
}

impl Run {
    /// How far behind the first row a row is, going up the ring.
    fn distance(&self, row: u32, rows: u32) -> u32 {
        distance(self.row, row, rows)
    }

    /// The parts that do not go round the end of the ring: first rows and counts.
    pub(super) fn parts(&self, rows: u32) -> [(u32, u32); 2] {
        let first = self.count.min(rows - self.row);
        [(self.row, first), (0, self.count - first)]
    }
}

/// How far it is from a row up to another one in a ring.
fn distance(from: u32, to: u32, rows: u32) -> u32 {
    if to >= from {
        to - from
    } else {
        rows - from + to
    }
}

/// The row that is so far up the ring, where that is less than its number of rows.
fn up(row: u32, distance: u32, rows: u32) -> u32 {
    if distance < rows - row {
        row + distance
    } else {
        distance - (rows - row)
    }
}

/// The runs of an update. No row is in two of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Runs(Vec<Run>);

impl Runs {
    /// All runs.
    pub(super) fn as_slice(&self) -> &[Run] {
        &self.0
    }

    /// All runs, once nothing more is added.
    pub(super) fn into_vec(self) -> Vec<Run> {
        self.0
    }

    /// The values of a row, if the update writes it.
    pub(super) fn find(&self, archive: usize, row: u32, rows: u32) -> Option<&[Value]> {
        self.0
            .iter()
            .find(|run| run.archive == archive && run.distance(row, rows) < run.count)
            .map(|run| run.values.as_slice())
    }

    /// Forgets the rows of an archive.
    pub(super) fn remove(&mut self, archive: usize) {
        self.0.retain(|run| run.archive != archive);
    }

    /// Adds a run. Its rows are taken out of the runs before.
    pub(super) fn insert(&mut self, new: Run, rows: u32) {
        let mut kept = Vec::with_capacity(self.0.len() + 2);
        for old in self.0.drain(..) {
            if old.archive == new.archive {
                kept.extend(without(old, &new, rows));
            } else {
                kept.push(old);
            }
        }
        self.0 = kept;
        if let Some(last) = self.0.last_mut()
            && last.archive == new.archive
            && last.values == new.values
            && last.distance(new.row, rows) == last.count
        {
            last.count += new.count;
        } else {
            self.0.push(new);
        }
    }
}

/// What is left of a run without the rows of another: at most a part before and one behind.
fn without(old: Run, new: &Run, rows: u32) -> impl Iterator<Item = Run> {
    // Rows are counted from the first of `new`: it has those from 0 to its count, `old` those
    // from `begin` on, which may go round to 0.
    let begin = new.distance(old.row, rows);
    let to_end = old.count.min(rows - begin);
    let round = old.count - to_end;
    let behind = (begin.max(new.count), begin + to_end);
    let ahead = (new.count, round);
    let first = new.row;
    [behind, ahead]
        .into_iter()
        .filter(|(from, to)| from < to)
        .map(move |(from, to)| Run {
            row: up(first, from, rows),
            count: to - from,
            archive: old.archive,
            values: old.values.clone(),
        })
}

/// What is left of the runs of an update when the next one was made: what that one did not write
/// again, row by row or as a whole.
pub(super) fn left_of(before: Slot, next: &Slot, layout: &Layout) -> Vec<Run> {
    let rows = |archive: usize| layout.archives[archive].rows;
    let mut written: Vec<Vec<bool>> = vec![Vec::new(); layout.archives.len()];
    for run in &next.runs {
        let written = &mut written[run.archive];
        written.resize(rows(run.archive) as usize, false);
        for (row, count) in run.parts(rows(run.archive)) {
            written[row as usize..(row + count) as usize].fill(true);
        }
    }
    let mut left = Vec::new();
    for run in before.runs {
        let archive = run.archive;
        if before.places[archive] != next.places[archive] {
            continue;
        }
        if written[archive].is_empty() {
            left.push(run);
            continue;
        }
        for (first, count) in run.parts(rows(archive)) {
            let written = &written[archive][first as usize..(first + count) as usize];
            let mut row = first;
            for same in written.chunk_by(|one, other| one == other) {
                let count = same.len() as u32;
                if !same[0] {
                    let values = run.values.clone();
                    left.push(Run {
                        archive,
                        row,
                        count,
                        values,
                    });
                }
                row += count;
            }
        }
    }
    left
}

/// Rows as bytes: as many as fit in one chunk, at most `count`.
fn chunk(values: &[Value], count: u32) -> (Vec<u8>, u32) {
    let row = values
        .iter()
        .flat_map(|value| value.to_bits().to_le_bytes())
        .collect::<Vec<_>>();
    let rows = (CHUNK / (row.len() as u64).max(1)).clamp(1, count.into()) as u32;
    (row.repeat(rows as usize), rows)
}

/// Writes runs to where they belong.
pub(super) fn write<S: Storage + ?Sized>(
    storage: &mut S,
    layout: &Layout,
    places: &[u32],
    runs: &[Run],
) -> Result<(), Error> {
    for run in runs {
        let (bytes, rows) = chunk(&run.values, run.count);
        for (mut row, mut count) in run.parts(layout.archives[run.archive].rows) {
            while count > 0 {
                let part = rows.min(count);
                let offset = layout.row_offset(run.archive, places[run.archive], row);
                let size = u64::from(part) * layout.row_size();
                storage.write_at(offset, &bytes[..size as usize])?;
                row += part;
                count -= part;
            }
        }
    }
    Ok(())
}

/// Whether all rows of the runs are where they belong.
pub(super) fn is_written<S: ReadAt + ?Sized>(
    source: &S,
    layout: &Layout,
    places: &[u32],
    runs: &[Run],
) -> Result<bool, Error> {
    for run in runs {
        let (bytes, rows) = chunk(&run.values, run.count);
        let mut found = vec![0; bytes.len()];
        for (mut row, mut count) in run.parts(layout.archives[run.archive].rows) {
            while count > 0 {
                let part = rows.min(count);
                let offset = layout.row_offset(run.archive, places[run.archive], row);
                let size = (u64::from(part) * layout.row_size()) as usize;
                source.read_at(offset, &mut found[..size])?;
                if found[..size] != bytes[..size] {
                    return Ok(false);
                }
                row += part;
                count -= part;
            }
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Runs are what comes of writing them one after the other into a ring.
        #[test]
        fn runs_are_what_is_written_last(
            rows in 1_u32..12,
            written in prop::collection::vec((0_u32..12, 1_u32..13, 0_u8..3, 0_usize..2), 0..12),
        ) {
            let mut runs = Runs::default();
            let mut expected = vec![vec![None; rows as usize]; 2];
            for (row, count, value, archive) in written {
                let (row, count) = (row % rows, count.min(rows));
                let values = vec![Value::from(f64::from(value))];
                for distance in 0..count {
                    let row = (row + distance) % rows;
                    expected[archive][row as usize] = Some(values.clone());
                }
                runs.insert(Run { archive, row, count, values }, rows);
            }
            for (archive, expected) in expected.iter().enumerate() {
                for (row, expected) in expected.iter().enumerate() {
                    let found = runs.find(archive, row as u32, rows);
                    prop_assert_eq!(found, expected.as_deref());
                }
                let covered: u32 = runs.as_slice().iter()
                    .filter(|run| run.archive == archive)
                    .map(|run| run.count)
                    .sum();
                let count = expected.iter().flatten().count();
                prop_assert_eq!(covered as usize, count, "no row is in two runs");
            }
        }
    }
}
