//! Values for new archives from others, as rrdtool 1.7.2 takes them.
//!
//! A row is put together of data points; each is taken from the first archive that knows it, of those
//! that cover all of the row, and the rest from later ones. Files come in the given order; in each the archives of
//! the same kind with as long rows, then those of AVERAGE, then others of the same kind, the shortest
//! rows first.

use std::ops::Range;

use super::series::{MOST_POINTS, Rule, Series};
use super::{Changed, ModifyError};
use crate::engine::{Definition, Origin, fold};
use crate::model::{Archive, ArchiveKind, Consolidation, Database, Scratch};
use crate::{Rows, Value};

/// A database that gives values.
pub struct Giver<'a> {
    /// What it is.
    pub database: &'a Database,
    /// Its values.
    pub rows: &'a Rows<'a>,
}

/// What a new database is to be, and where its values come from.
pub struct Filling<'a> {
    /// The definitions.
    pub definition: &'a Definition,
    /// Of each data source, what it is filled with: that of the same name in any file, if nothing
    /// is specified.
    pub origins: &'a [Option<Origin>],
    /// The files.
    pub givers: &'a [Giver<'a>],
}

impl Filling<'_> {
    /// Makes the database. `current_row` returns the first row of each archive, given its number of rows.
    ///
    /// # Errors
    ///
    /// Those of [`create`](crate::engine::create), and where the memory does not suffice.
    pub fn create(
        &self,
        current_row: impl FnMut(usize, u64) -> u64,
    ) -> Result<Changed, ModifyError> {
        self.create_by(Order::Files, current_row)
    }

    /// Makes the database in another order than rrdtool's: a row comes from archives whose rows are as short or
    /// shorter, whichever file they are in, and only what none of these knows from longer rows, the shortest first.
    /// Archives that are equal by this come in the order of [`create`](Self::create). It takes time by the rows that
    /// there are and those that are made, and not by the data points that these are of.
    ///
    /// # Errors
    ///
    /// Those of [`create`](Self::create).
    pub fn create_finest_first(
        &self,
        current_row: impl FnMut(usize, u64) -> u64,
    ) -> Result<Changed, ModifyError> {
        self.create_by(Order::Finest, current_row)
    }

    /// The same in the order of the files; like [`create_finest_first`](Self::create_finest_first), it does not take
    /// time by data points.
    ///
    /// # Errors
    ///
    /// Those of [`create`](Self::create).
    pub fn create_by_rows(
        &self,
        current_row: impl FnMut(usize, u64) -> u64,
    ) -> Result<Changed, ModifyError> {
        self.create_by(Order::Rows, current_row)
    }

    fn create_by(
        &self,
        order: Order,
        current_row: impl FnMut(usize, u64) -> u64,
    ) -> Result<Changed, ModifyError> {
        let database = crate::engine::create(self.definition, current_row);
        let mut changed = Changed::new(database.map_err(ModifyError::new)?)?;
        if self.givers.is_empty() {
            return Ok(changed);
        }
        for source in 0..self.definition.sources.len() {
            self.fill_state(&mut changed.database, source);
            for archive in 0..self.definition.archives.len() {
                let places = self.places(source);
                let rows = 0..self.definition.archives[archive].rows;
                let how = (Needed::ByXff, order);
                fill_rows(&mut changed, archive, source, rows, &places, how);
                prepare(&mut changed, archive, source, &places, order);
            }
        }
        Ok(changed)
    }

    /// Where a data source is in the files.
    fn places(&self, source: usize) -> Vec<(&Giver<'_>, usize)> {
        let origin = self.origins.get(source).and_then(Option::as_ref);
        let name = match origin {
            Some(origin) => &origin.name,
            None => &self.definition.sources[source].name,
        };
        let file = origin.and_then(|origin| origin.file);
        let givers = self.givers.iter().zip(1u64..);
        givers
            .filter(|(_, number)| file.is_none_or(|file| file == *number))
            .filter_map(|(giver, _)| {
                let mut sources = giver.database.sources.iter();
                let place = sources.position(|source| source.name == *name)?;
                Some((giver, place))
            })
            .collect()
    }

    /// Takes the data point that is under way from the first file in which one of the same kind
    /// ends within the new one.
    fn fill_state(&self, database: &mut Database, source: usize) {
        let kind = |database: &Database, source: usize| database.sources[source].kind.name();
        let found = self.places(source).into_iter().find(|(giver, place)| {
            ends_within(giver.database, database)
                && kind(giver.database, *place) == kind(database, source)
        });
        if let Some((giver, place)) = found {
            database.state.sources[source] = giver.database.state.sources[place].clone();
        }
    }
}

/// How much of a row others have to know.
#[derive(Clone, Copy)]
pub(super) enum Needed {
    /// More than the part that the xff of the archive specifies.
    ByXff,
    /// Anything.
    Anything,
}

/// Which archives are asked first, and how rows are put together of theirs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// By files, and data point by data point: as rrdtool does it.
    Files,
    /// By files, and a row at once.
    Rows,
    /// By the lengths of their rows, and a row at once.
    Finest,
}

/// Fills rows of an archive for a data source that others know; rows count from the oldest.
pub(super) fn fill_rows(
    changed: &mut Changed,
    archive: usize,
    source: usize,
    rows: Range<u64>,
    places: &[(&Giver<'_>, usize)],
    (needed, order): (Needed, Order),
) {
    let seconds = row_seconds(&changed.database, archive);
    let (Some(seconds), Ok(step)) = (seconds, i64::try_from(changed.database.step)) else {
        return;
    };
    let (series, function, xff) = match changed.database.archives[archive].kind {
        ArchiveKind::Consolidated { function, xff } => (
            candidates(function, seconds, places, order),
            function,
            match needed {
                Needed::ByXff => xff.to_f64(),
                Needed::Anything => 0.0,
            },
        ),
        _ => {
            let same = same_archive(&changed.database, archive, places);
            let series = same.and_then(|(giver, place, theirs)| {
                Series::new(giver.database, giver.rows, theirs, place)
            });
            (series.into_iter().collect(), Consolidation::Last, 0.0)
        }
    };
    let rule = Rule {
        function,
        xff,
        step,
        is_whole: order != Order::Files,
    };
    for row in rows {
        let end = changed.database.row_time(archive, row);
        let value = end.and_then(|end| {
            let begin = end.checked_sub(seconds)?;
            rule.stretch(&series, begin, end)
        });
        if let Some(value) = value {
            changed.set(archive, row, source, Value::from(value));
        }
    }
}

/// The first archive of the kind and size of one that predicts, in a file of the same step, with the
/// place of the data source in that file.
fn same_archive<'a>(
    database: &Database,
    archive: usize,
    places: &[(&'a Giver<'a>, usize)],
) -> Option<(&'a Giver<'a>, usize, usize)> {
    let wanted = &database.archives[archive];
    places.iter().find_map(|&(giver, place)| {
        let is_as_large = |theirs: &Archive| theirs.rows == wanted.rows;
        let theirs = alike(giver.database, database, archive, is_as_large)?;
        Some((giver, place, theirs))
    })
}

fn row_seconds(database: &Database, archive: usize) -> Option<i64> {
    i64::try_from(database.row_seconds(archive)?).ok()
}

/// The archives that can provide rows of `seconds` seconds, the best first.
fn candidates<'a>(
    function: Consolidation,
    seconds: i64,
    places: &[(&'a Giver<'a>, usize)],
    order: Order,
) -> Vec<Series<'a>> {
    let mut all = Vec::new();
    for (giver, source) in places {
        let archives = giver.database.archives.iter().enumerate();
        let mut series: Vec<_> = archives
            .filter_map(|(index, archive)| {
                let ArchiveKind::Consolidated {
                    function: theirs, ..
                } = archive.kind
                else {
                    return None;
                };
                let series = Series::new(giver.database, giver.rows, index, *source)?;
                let rank = match theirs {
                    _ if theirs == function && series.seconds() == seconds => 0,
                    Consolidation::Average => 1,
                    _ if theirs == function => 2,
                    _ => return None,
                };
                Some((rank, series))
            })
            .collect();
        series.sort_by_key(|(rank, series)| (*rank, series.seconds()));
        all.extend(series.into_iter().map(|(_, series)| series));
    }
    if order == Order::Finest {
        // Those that are equal stay in their order.
        all.sort_by_key(|series| Some(series.seconds()).filter(|it| *it > seconds));
    }
    all
}

/// Whether the data point that is under way in a file ends within the one of another.
fn ends_within(theirs: &Database, ours: &Database) -> bool {
    let begin_and_end = |database: &Database| {
        let step = i64::try_from(database.step).ok()?;
        let last = database.state.last_update.seconds();
        let begin = last.checked_sub(last.checked_rem_euclid(step)?)?;
        Some((begin, begin.checked_add(step)?))
    };
    match (begin_and_end(ours), begin_and_end(theirs)) {
        (Some((begin, end)), Some((_, their_end))) => begin < their_end && their_end <= end,
        _ => false,
    }
}

/// What the first archive of the same function and rows as long keeps of a data source, in a file of the
/// same step and time.
fn same_scratch(
    database: &Database,
    archive: usize,
    places: &[(&Giver<'_>, usize)],
) -> Option<Scratch> {
    places.iter().find_map(|&(giver, place)| {
        let theirs = giver.database;
        let same = alike(theirs, database, archive, |_| ends_within(theirs, database))?;
        Some(theirs.state.archives[same].scratch[place])
    })
}

/// The first archive of a database whose function and row length equal those of an archive of another, and
/// which is also what is wanted beyond that.
fn alike(
    theirs: &Database,
    ours: &Database,
    archive: usize,
    is_wanted: impl Fn(&Archive) -> bool,
) -> Option<usize> {
    let wanted = &ours.archives[archive];
    let mut archives = theirs.archives.iter();
    let same = archives.position(|archive| {
        archive.kind.name() == wanted.kind.name()
            && archive.points_per_row == wanted.points_per_row
            && is_wanted(archive)
    });
    same.filter(|_| theirs.step == ours.step)
}

/// Prepares the row under way of an archive for a data source, and what is kept of the one before: as
/// in an archive with the same rows, or from the data points of AVERAGE archives.
/// Archives that predict go on as one of the same kind, size and time.
pub(super) fn prepare(
    changed: &mut Changed,
    archive: usize,
    source: usize,
    places: &[(&Giver<'_>, usize)],
    order: Order,
) {
    let ArchiveKind::Consolidated { function, xff } = changed.database.archives[archive].kind
    else {
        let same = same_archive(&changed.database, archive, places);
        let state = &mut changed.database.state;
        if let Some((giver, place, theirs)) = same
            && giver.database.state.last_update == state.last_update
        {
            let scratch = giver.database.state.archives[theirs].scratch[place];
            state.archives[archive].scratch[source] = scratch;
        }
        return;
    };
    if let Some(scratch) = same_scratch(&changed.database, archive, places) {
        changed.database.state.archives[archive].scratch[source] = scratch;
        return;
    }
    let xff = xff.to_f64();
    let database = &mut changed.database;
    let points = database.archives[archive].points_per_row;
    let last = u64::try_from(database.state.last_update.seconds());
    let step = i64::try_from(database.step);
    let (Ok(last), Ok(step)) = (last, step) else {
        return;
    };
    let steps = last / database.step;
    if points > MOST_POINTS.unsigned_abs() {
        // They begin with nothing known of them.
        return;
    }
    let series: Vec<_> = candidates(Consolidation::Average, step, places, order);
    let rule = Rule {
        function: Consolidation::Average,
        xff,
        step,
        is_whole: false,
    };
    let point = |number: u64| {
        let end = i64::try_from(number).ok()?.checked_mul(step)?;
        rule.stretch(&series, end.checked_sub(step)?, end)
    };
    let mut scratch = Scratch::default();
    scratch.set_value(Scratch::VALUE, Value::UNKNOWN);
    if points == 1 {
        let value = point(steps).unwrap_or(f64::NAN);
        scratch.set_value(Scratch::PRIMARY, Value::from(value));
    } else {
        let first = (steps - steps % points).saturating_sub(points);
        // All data points up to where the next row of any archive begins have the same value.
        let (mut rate, mut same_until) = (f64::NAN, first);
        for number in first..steps {
            if number >= same_until {
                rate = point(number + 1).unwrap_or(f64::NAN);
                let begin = i64::try_from(number)
                    .ok()
                    .and_then(|it| it.checked_mul(step));
                let next = begin.map(|begin| series.iter().map(|it| it.next_row(begin)).min());
                same_until = match next {
                    Some(Some(next)) => u64::try_from(next / step).unwrap_or(0),
                    Some(None) => steps,
                    None => 0,
                };
            }
            fold(&mut scratch, function, xff, points, number, rate);
        }
    }
    database.state.archives[archive].scratch[source] = scratch;
}
