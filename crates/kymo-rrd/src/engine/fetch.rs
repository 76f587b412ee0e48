//! The rows of a stretch of time.

use crate::Rows;
use crate::model::rows::Row;
use crate::model::{Archive, ArchiveKind, Database};
use crate::rpn::{MAX_ROWS, Series};

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
        // As rrdtool counts it: the greatest step there is wraps to one below 0.
        let distance = (wanted.step.wrapping_sub(reach.step as u64) as i64).unsigned_abs();
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
    /// How many rows there are, whether the archive has them or not.
    pub fn count(&self) -> u64 {
        self.end.abs_diff(self.start) / self.step.max(1)
    }

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

    /// The values of a data source, in rows of `step` seconds at least: as many rows as are less
    /// than that are made one, as an archive of kind `function` would. The step becomes a multiple
    /// of the archive's, and the stretch is made larger to whole rows of it; what is made larger is
    /// unknown, even if a part of it is known. `None` where there are more than [`MAX_ROWS`].
    pub fn series(&self, source: usize, function: &str, step: u64) -> Option<Series> {
        let each = i64::try_from(self.step.checked_mul(step.div_ceil(self.step).max(1))?).ok()?;
        let start = self
            .start
            .checked_sub(self.start.checked_rem_euclid(each)?)?;
        let rest = self.end.checked_rem_euclid(each)?;
        let end = match rest {
            0 => self.end,
            rest => self.end.checked_add(each - rest)?,
        };
        let rows = usize::try_from(end.checked_sub(start)? / each).ok()?;
        if rows > MAX_ROWS {
            return None;
        }
        let combine = Combine::of(function);
        let newest = self.newest();
        let mut values = vec![f64::NAN; rows];
        let mut end = start;
        for value in &mut values {
            let begin = end;
            end += each;
            if begin >= self.start && end <= self.end && begin < newest && end >= self.oldest {
                *value = match each == self.step as i64 {
                    // Rows stay as they are.
                    true => {
                        let row = (end - self.oldest) / each;
                        let value = self.rows.value(self.archive, row as u64, source);
                        value.and_then(|value| value.get()).unwrap_or(f64::NAN)
                    }
                    false => combine.values(self.values(begin, end, source)),
                };
            }
        }
        Series::new(start, each, values)
    }

    /// The time of the newest row of the archive.
    fn newest(&self) -> i64 {
        let rows = self.rows.grid(self.archive).map_or(0, |grid| grid.rows);
        let length = (rows as i64)
            .saturating_sub(1)
            .saturating_mul(self.step as i64);
        self.oldest.saturating_add(length)
    }

    /// The values of the rows after a time, up to another, as far as the archive has them.
    fn values(&self, begin: i64, end: i64, source: usize) -> impl Iterator<Item = f64> + '_ {
        let step = self.step as i64;
        let row = |time: i64| (time - self.oldest) / step;
        // A row that ends at the beginning is not included.
        let first = row((begin + step).max(self.oldest));
        let last = row(end.min(self.newest()));
        (first..=last).filter_map(move |row| {
            let value = self.rows.value(self.archive, row as u64, source)?;
            value.get()
        })
    }
}

/// One value of those that are known, as an archive of a kind such as `AVERAGE` makes it; NaN of none.
pub fn combine(function: &str, known: impl Iterator<Item = f64>) -> f64 {
    Combine::of(function).values(known)
}

/// How several rows become one.
#[derive(Clone, Copy)]
enum Combine {
    Mean,
    Least,
    Greatest,
    Last,
}

impl Combine {
    fn of(function: &str) -> Self {
        match function {
            "MIN" => Self::Least,
            // A failure in a part of the time is one.
            "MAX" | "FAILURES" => Self::Greatest,
            "LAST" => Self::Last,
            _ => Self::Mean,
        }
    }

    /// One value of those that are known; NaN of none.
    fn values(self, mut known: impl Iterator<Item = f64>) -> f64 {
        let Some(first) = known.next() else {
            return f64::NAN;
        };
        match self {
            Self::Least => known.fold(
                first,
                |least, value| if least < value { least } else { value },
            ),
            Self::Greatest => {
                known.fold(first, |most, value| if most > value { most } else { value })
            }
            Self::Last => known.fold(first, |_, value| value),
            Self::Mean => {
                let mut count = 1.0;
                let sum = known.fold(first, |sum, value| {
                    count += 1.0;
                    sum + value
                });
                sum / count
            }
        }
    }
}
