//! Which archive of a database answers, and its rows.

use kymo_rrd::Source;
use kymo_rrd::model::{ArchiveKind, Database};

/// What is wanted of a database.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WantedRows<'a> {
    /// Of which function, if there is a choice: `AVERAGE`.
    pub(crate) function: &'a str,
    /// Seconds since 1970: from when on rows are wanted, and until when.
    pub(crate) start: i64,
    pub(crate) end: i64,
    /// Seconds from one row to the next that are fine enough; 0 for as fine as possible.
    pub(crate) step: i64,
}

/// An archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chosen {
    pub(crate) archive: usize,
    /// Seconds from one row to the next.
    pub(crate) step: i64,
}

/// The archive that serves best: of those that reach back to the start, or miss no more than a hundredth of the time or a
/// row, the one with the longest step that is not longer than the wanted one, else the one with the shortest. If
/// none reaches back, the one that reaches back most.
pub(crate) fn choose(database: &Database, wanted: &WantedRows<'_>) -> Option<Chosen> {
    let choice = |function: &str| choose_of(database, wanted, function);
    let others = ["AVERAGE", "LAST", "MAX", "MIN"];
    choice(wanted.function).or_else(|| others.into_iter().find_map(choice))
}

fn choose_of(database: &Database, wanted: &WantedRows<'_>, function: &str) -> Option<Chosen> {
    let spare = wanted.end.saturating_sub(wanted.start) / 100;
    let mut covering: Option<Chosen> = None;
    let mut longest: Option<(i64, Chosen)> = None;
    for (index, archive) in database.archives.iter().enumerate() {
        let is_of_points =
            archive.points_per_row == 1 && matches!(archive.kind, ArchiveKind::Consolidated { .. });
        if !is_of_points && archive.kind.name() != function {
            continue;
        }
        let (Some(step), Some(oldest)) = (database.row_seconds(index), database.row_time(index, 0))
        else {
            continue;
        };
        let Some(step) = i64::try_from(step).ok().filter(|step| *step > 0) else {
            continue;
        };
        let chosen = Chosen {
            archive: index,
            step,
        };
        if oldest.saturating_sub(step) <= wanted.start.saturating_add(spare.max(step)) {
            let is_better =
                covering.is_none_or(
                    |best| match (step <= wanted.step, best.step <= wanted.step) {
                        (true, true) => step > best.step,
                        (true, false) => true,
                        (false, true) => false,
                        (false, false) => step < best.step,
                    },
                );
            if is_better {
                covering = Some(chosen);
            }
        }
        let is_longer =
            |(time, best): (i64, Chosen)| oldest < time || (oldest == time && step < best.step);
        if longest.is_none_or(is_longer) {
            longest = Some((oldest, chosen));
        }
    }
    covering.or(longest.map(|(_, chosen)| chosen))
}

/// Times and values of the rows of a data source in which something is known, from a time to another.
pub(crate) fn known_rows<'s>(
    source: &'s Source<'_>,
    chosen: Chosen,
    place: usize,
    start: i64,
    end: i64,
) -> impl Iterator<Item = (i64, f64)> + 's {
    let Chosen { archive, step } = chosen;
    let rows = source.rows.grid(archive).map_or(0, |grid| grid.rows);
    let oldest = source.database.row_time(archive, 0).unwrap_or(i64::MAX);
    // The first row that is not before the start.
    let first = start.saturating_sub(oldest).max(0);
    let first = (first / step + i64::from(first % step > 0)) as u64;
    let last = end.saturating_sub(oldest);
    let behind = match last >= 0 {
        true => ((last / step) as u64).saturating_add(1).min(rows),
        false => 0,
    };
    (first..behind).filter_map(move |row| {
        let value = source.rows.value(archive, row, place)?.get()?;
        let time = oldest.checked_add(step.checked_mul(i64::try_from(row).ok()?)?)?;
        Some((time, value))
    })
}
