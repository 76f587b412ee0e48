//! Archives of more or fewer rows, as `rrdtool resize` makes them.

use super::{Changed, ModifyError};
use crate::Rows;
use crate::model::Database;

/// How the number of rows changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resize {
    /// Adds this number of unknown rows before the oldest.
    Grow(u64),
    /// Drops this number of the oldest rows.
    Shrink(u64),
}

/// Makes an archive longer or shorter. All other rows stay where they are; the rows that come or go
/// lie behind the one written last.
///
/// # Errors
///
/// If the archive does not exist, or it has no more rows than are to be dropped; if the memory
/// does not suffice.
pub fn resize(
    database: &Database,
    rows: &Rows<'_>,
    archive: usize,
    how: Resize,
) -> Result<Changed, ModifyError> {
    let (Resize::Grow(count) | Resize::Shrink(count)) = how;
    if count == 0 {
        let problem = "Please grow or shrink with at least 1 row";
        return Err(ModifyError::new(problem));
    }
    let mut new = database.clone();
    let no_archive = || ModifyError::new("no such RRA in this RRD");
    let definition = new.archives.get_mut(archive).ok_or_else(no_archive)?;
    let state = new.state.archives.get_mut(archive).ok_or_else(no_archive)?;
    let before = definition.rows;
    // Of the rows that are dropped, those at the beginning of the ring.
    let mut dropped = 0;
    match how {
        Resize::Grow(_) => {
            let after = before.checked_add(count);
            definition.rows = after.ok_or_else(|| ModifyError::new("cannot allocate memory"))?;
        }
        Resize::Shrink(_) => {
            let after = before.checked_sub(count).filter(|after| *after > 0);
            let too_many = || ModifyError::new("This RRA is not that big");
            definition.rows = after.ok_or_else(too_many)?;
            let behind = before.saturating_sub(1).saturating_sub(state.current_row);
            state.current_row -= count.saturating_sub(behind);
            dropped = count;
        }
    }
    let mut changed = Changed::new(new)?;
    for index in 0..database.archives.len() {
        // The newest rows are the same, whatever the number of the older ones.
        let (skipped, later) = match (index == archive, how) {
            (false, _) => (0, 0),
            (true, Resize::Grow(count)) => (0, count),
            (true, Resize::Shrink(_)) => (dropped, 0),
        };
        copy(&mut changed, rows, (index, index), skipped, later, Some);
    }
    Ok(changed)
}

/// Copies rows of an archive to one of the new archives, but the oldest so many, to where that has so
/// many before; of each data source to a place, if it has one.
pub(super) fn copy(
    changed: &mut Changed,
    rows: &Rows<'_>,
    (from, to): (usize, usize),
    skipped: u64,
    later: u64,
    place: impl Fn(usize) -> Option<usize>,
) {
    let skip = usize::try_from(skipped).unwrap_or(usize::MAX);
    let places: Vec<_> = (0..rows.sources()).map(place).collect();
    for (row, number) in rows.iter(from).skip(skip).zip(later..) {
        for (value, place) in row.values().zip(&places) {
            if let Some(source) = place {
                changed.set(to, number, *source, value);
            }
        }
    }
}
