//! The rows of a stretch of time.

use crate::Rows;
use crate::model::{Archive, ArchiveKind, Database};
use crate::rows::Row;

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted<'a> {
    /// The kind of archive, such as `AVERAGE`.
    pub function: &'a str,
    /// From when, in seconds since 1970.
    pub start: i64,
    /// Until when.
    pub end: i64,
    /// Seconds between two rows, as far as there is a choice.
    pub step: u64,
}

/// The rows of the archive that serves best.
#[derive(Clone)]
pub struct Fetched<'a> {
    /// The archive.
    pub archive: usize,
    /// Seconds between two rows.
    pub step: u64,
    /// The beginning of the first row: the time before its own.
    pub start: i64,
    /// The time of the last row.
    pub end: i64,
    /// The time of the archive's oldest row.
    oldest: i64,
    rows: Rows<'a>,
}

/// Where the rows of an archive lie in time.
struct Reach {
    step: i64,
    /// The beginning of the oldest row.
    begin: i64,
}

impl Reach {
    fn of(database: &Database, index: usize, archive: &Archive) -> Option<Self> {
        let step = i64::try_from(database.row_seconds(index)?).ok()?;
        let last = database.state.last_update.seconds();
        let end = last.checked_sub(last.checked_rem_euclid(step)?)?;
        let length = i64::try_from(archive.rows).ok()?.checked_mul(step)?;
        Some(Self {
            step,
            begin: end.checked_sub(length)?,
        })
    }
}

/// Finds the archive that rrdtool takes, and its rows. `None` where no archive is of this kind, or
/// the times are not.
///
/// Archives of single points serve as any of `AVERAGE`, `MIN`, `MAX` and `LAST`. Of those that reach
/// back to the start, the one with the step nearest to the wanted one is taken; if none does, the
/// one that covers most. The stretch is made larger to whole rows, and by one where it ends with a
/// row.
pub fn fetch<'a>(database: &Database, rows: &Rows<'a>, wanted: &Wanted<'_>) -> Option<Fetched<'a>> {
    let length = wanted.end.checked_sub(wanted.start)?;
    if length < 0 {
        return None;
    }
    let mut whole: Option<(u64, usize)> = None;
    let mut part: Option<(i64, u64, usize)> = None;
    for (index, archive) in database.archives.iter().enumerate() {
        if !serves(archive, wanted.function) {
            continue;
        }
        let Some(reach) = Reach::of(database, index, archive) else {
            continue;
        };
        let distance = wanted.step.abs_diff(reach.step as u64);
        if reach.begin <= wanted.start {
            if whole.is_none_or(|(best, _)| distance < best) {
                whole = Some((distance, index));
            }
            continue;
        }
        let covered = length.saturating_sub(reach.begin.saturating_sub(wanted.start));
        let better = |(most, best, _): (i64, u64, usize)| {
            covered > most || (covered == most && distance < best)
        };
        if part.is_none_or(better) {
            part = Some((covered, distance, index));
        }
    }
    let archive = match (whole, part) {
        (Some((_, index)), _) | (None, Some((_, _, index))) => index,
        (None, None) => return None,
    };
    let step = Reach::of(database, archive, &database.archives[archive])?.step;
    let rest = wanted.end.checked_rem_euclid(step)?;
    Some(Fetched {
        archive,
        step: step as u64,
        start: wanted
            .start
            .checked_sub(wanted.start.checked_rem_euclid(step)?)?,
        end: wanted.end.checked_add(step - rest)?,
        oldest: database.row_time(archive, 0)?,
        rows: rows.clone(),
    })
}

/// Whether an archive has values of a kind.
fn serves(archive: &Archive, function: &str) -> bool {
    let of_points = archive.points_per_row == 1
        && matches!(archive.kind, ArchiveKind::Consolidated { .. })
        && ["AVERAGE", "MIN", "MAX", "LAST"].contains(&function);
    of_points || archive.kind.name() == function
}

impl<'a> Fetched<'a> {
    /// The times of the rows, and the rows; `None` outside of the archive, where nothing is known.
    pub fn iter(&self) -> impl Iterator<Item = (i64, Option<Row<'a>>)> + '_ {
        let step = self.step as i64;
        let first = self.start.checked_add(step);
        let times = std::iter::successors(first, move |time| time.checked_add(step));
        times.take_while(|time| *time <= self.end).map(move |time| {
            // Both are multiples of the step.
            let row = time.checked_sub(self.oldest).map(|after| after / step);
            let row = row.and_then(|row| u64::try_from(row).ok());
            (time, row.and_then(|row| self.rows.row(self.archive, row)))
        })
    }
}
