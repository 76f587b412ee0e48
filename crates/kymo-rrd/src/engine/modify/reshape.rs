//! Data sources and archives that come and go, and other steps, as operands of `rrdtool tune`.

use super::fill::{Giver, Needed, Order, fill_rows, prepare};
use super::resize::copy;
use super::{Changed, ModifyError};
use crate::engine::{Defined, Definition, Engine, Smoothing, fold, fresh};
use crate::model::{
    ArchiveKind, ArchiveLink, ArchiveState, Consolidation, Database, Scratch, SourceKind,
    SourceState,
};
use crate::rpn::Node;
use crate::{Rows, Text, Value};

/// What becomes of a database. Places and names are those that it has before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reshaping {
    /// The step in seconds, if it changes; the one before is a multiple of it.
    pub step: Option<u64>,
    /// Names of data sources that go.
    pub remove_sources: Vec<String>,
    /// Places of archives that go.
    pub remove_archives: Vec<usize>,
    /// Archives of which the number of rows changes, one change after the other.
    pub lengths: Vec<(usize, Length)>,
    /// Definitions of data sources and archives that come, such as `DS:load:GAUGE:600:0:U`.
    pub add: Vec<String>,
}

/// A change of the number of rows. An archive without rows goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// Adds this number of rows.
    More(u64),
    /// Removes this number of rows.
    Less(u64),
    /// Sets this number of rows.
    Exactly(u64),
}

impl Reshaping {
    /// Makes the new database. All rows are rewritten, the oldest first. New rows are taken from
    /// other archives where these know them.
    ///
    /// # Errors
    ///
    /// Where a definition is none, a data source is needed to compute another, an archive for
    /// another, or nothing is left; where the step does not divide the previous one; where the memory
    /// does not suffice.
    pub fn apply(
        &self,
        database: &Database,
        rows: &Rows<'_>,
        smoothing: &Smoothing<'_>,
    ) -> Result<Changed, ModifyError> {
        let mut before = database.clone();
        if let Some(step) = self.step {
            divide_step(&mut before, step)?;
        }
        let sources = self.sources(&before);
        let archives = self.archives(&before)?;
        let mut definition = Definition {
            version: before.version.max(3),
            start: before.state.last_update,
            step: before.step,
            sources: sources
                .iter()
                .map(|&at| before.sources[at].clone())
                .collect(),
            archives: before.archives.clone(),
        };
        for source in &mut definition.sources {
            renumber(&mut source.kind, &source.name, &before, &sources)?;
        }
        for text in &self.add {
            if let Defined::Source(Some(_)) =
                definition.add(text, smoothing).map_err(ModifyError::new)?
            {
                let problem = "only `create --source` takes values of other files";
                return Err(ModifyError::new(format_args!("{text}: {problem}")));
            }
        }
        if definition.sources.is_empty() {
            let problem = "you must define at least one Data Source";
            return Err(ModifyError::new(problem));
        }
        // Where archives come to be, by where they were; new ones follow.
        let added = before.archives.len()..definition.archives.len();
        let kept: Vec<(usize, u64)> = archives
            .into_iter()
            .chain(added.map(|at| (at, definition.archives[at].rows)))
            .collect();
        if kept.is_empty() {
            let problem = "you must define at least one Round Robin Archive";
            return Err(ModifyError::new(problem));
        }
        let mut definitions = Vec::with_capacity(kept.len());
        for &(at, count) in &kept {
            let mut archive = definition.archives[at].clone();
            archive.rows = count;
            relink(&mut archive.kind, |link| {
                kept.iter().position(|(at, _)| *at == link)
            });
            definitions.push(archive);
        }
        definition.archives = definitions;

        let new = state(&before, definition, &sources, &kept);
        Engine::new(&new).map_err(ModifyError::new)?;
        let mut changed = Changed::new(new)?;
        let giver = Giver {
            database: &before,
            rows,
        };
        for (archive, &(at, count)) in kept.iter().enumerate() {
            let old = before.archives.get(at).map_or(0, |archive| archive.rows);
            let stay = old.min(count);
            let columns = |source: usize| sources.get(source).copied();
            copy_columns(
                &mut changed,
                rows,
                (at, archive),
                old - stay,
                count - stay,
                columns,
            );
            for (source, &place) in sources.iter().enumerate() {
                let places = [(&giver, place)];
                // rrdtool looks at the xff only where `create` takes values of other files.
                let (rows, needed) = (0..count - stay, Needed::Anything);
                fill_rows(
                    &mut changed,
                    archive,
                    source,
                    rows,
                    &places,
                    (needed, Order::Files),
                );
                if old == 0 {
                    prepare(&mut changed, archive, source, &places, Order::Files);
                }
            }
        }
        Ok(changed)
    }

    /// Places of the data sources that stay.
    fn sources(&self, database: &Database) -> Vec<usize> {
        let goes = |name: &Text| {
            self.remove_sources
                .iter()
                .any(|gone| gone.as_bytes() == name.as_bytes())
        };
        let sources = database.sources.iter().enumerate();
        sources
            .filter(|(_, source)| !goes(&source.name))
            .map(|(place, _)| place)
            .collect()
    }

    /// Places of the archives that stay, and their numbers of rows.
    fn archives(&self, database: &Database) -> Result<Vec<(usize, u64)>, ModifyError> {
        let mut kept = Vec::new();
        for (place, archive) in database.archives.iter().enumerate() {
            if self.remove_archives.contains(&place) {
                continue;
            }
            let mut rows = archive.rows;
            for (_, length) in self.lengths.iter().filter(|(at, _)| *at == place) {
                rows = match *length {
                    Length::More(more) => rows
                        .checked_add(more)
                        .ok_or_else(|| ModifyError::new("cannot allocate memory"))?,
                    Length::Less(less) => rows.saturating_sub(less),
                    Length::Exactly(rows) => rows,
                };
            }
            if rows > 0 {
                kept.push((place, rows));
            }
        }
        Ok(kept)
    }
}

/// The new database, in which every ring begins with its oldest row.
fn state(
    before: &Database,
    definition: Definition,
    sources: &[usize],
    kept: &[(usize, u64)],
) -> Database {
    let mut new = Database {
        version: definition.version,
        step: definition.step,
        sources: definition.sources,
        archives: definition.archives,
        state: before.state.clone(),
    };
    let last = u64::try_from(before.state.last_update.seconds()).unwrap_or(0);
    let unknown_seconds = last % new.step;
    // As rrdtool has it; nothing of it is known.
    let fresh_source = || SourceState {
        last_reading: Text::from("U"),
        unknown_seconds,
        value: Value::ZERO,
    };
    let count = new.sources.len();
    let states = sources.iter().map(|&at| before.state.sources[at].clone());
    new.state.sources = states.collect();
    new.state.sources.resize_with(count, fresh_source);
    new.state.archives = kept
        .iter()
        .zip(&new.archives)
        .map(|(&(at, rows), archive)| {
            let unknown = (last - unknown_seconds) / new.step % archive.points_per_row;
            let fresh = fresh(&archive.kind, unknown);
            let old = before.state.archives.get(at);
            let scratch = (0..count).map(|source| {
                let old = old.zip(sources.get(source));
                old.map_or(fresh, |(state, &place)| state.scratch[place])
            });
            ArchiveState {
                current_row: rows - 1,
                scratch: scratch.collect(),
            }
        })
        .collect();
    new
}

/// Copies rows of an archive, of each data source what is in another one's column.
fn copy_columns(
    changed: &mut Changed,
    rows: &Rows<'_>,
    (from, to): (usize, usize),
    skipped: u64,
    later: u64,
    columns: impl Fn(usize) -> Option<usize>,
) {
    let sources = changed.database.sources.len();
    copy(changed, rows, (from, to), skipped, later, |source| {
        (0..sources)
            .filter(|&new| columns(new) == Some(source))
            .min()
    });
}

/// Has an expression refer to data sources where they come to be.
fn renumber(
    kind: &mut SourceKind,
    name: &Text,
    before: &Database,
    sources: &[usize],
) -> Result<(), ModifyError> {
    let SourceKind::Compute(program) = kind else {
        return Ok(());
    };
    for node in &mut program.nodes {
        let (Node::Variable(place) | Node::PreviousOf(place)) = node else {
            continue;
        };
        let new = sources
            .iter()
            .position(|&at| usize::try_from(*place) == Ok(at));
        let Some(new) = new.and_then(|new| u32::try_from(new).ok()) else {
            let gone = usize::try_from(*place)
                .ok()
                .and_then(|at| before.sources.get(at));
            let gone = gone.map_or_else(|| place.to_string(), |gone| gone.name.to_string());
            return Err(ModifyError::new(format_args!(
                "data source '{gone}' is needed to compute '{name}'"
            )));
        };
        *place = new;
    }
    Ok(())
}

/// Has an archive refer to others where they come to be; to none, if they go.
fn relink(kind: &mut ArchiveKind, place: impl Fn(usize) -> Option<usize>) {
    let link = match kind {
        ArchiveKind::Consolidated { .. } => return,
        ArchiveKind::HwPredict { seasonal, .. } => seasonal,
        ArchiveKind::Seasonal { predictions, .. } => predictions,
        ArchiveKind::DevPredict { deviations } | ArchiveKind::Failures { deviations, .. } => {
            deviations
        }
    };
    if let Some(old) = link.index() {
        let new = place(old).and_then(|new| i64::try_from(new).ok());
        *link = new.map_or(ArchiveLink::NONE, ArchiveLink);
    }
}

/// Makes the step shorter. Rows stay as long as they are, so they have more points. What is known of
/// the point under way becomes as many points as have ended since it began.
fn divide_step(database: &mut Database, step: u64) -> Result<(), ModifyError> {
    let old = database.step;
    if step == old {
        return Ok(());
    }
    if old.checked_rem(step) != Some(0) {
        return Err(ModifyError::new(
            "invalid 'newstep' parameter. The newsize must divide the old step parameter without \
             a remainder.",
        ));
    }
    let last = u64::try_from(database.state.last_update.seconds()).unwrap_or(0);
    let (since, parts) = (last % old, old / step);
    let first = (last - since) / step;
    for (archive, state) in database
        .archives
        .iter_mut()
        .zip(&mut database.state.archives)
    {
        let ArchiveKind::Consolidated { function, xff } = archive.kind else {
            let problem = "the step of a database with Holt-Winters RRAs cannot change";
            return Err(ModifyError::new(problem));
        };
        let points = archive.points_per_row;
        let too_many = || ModifyError::new("the rows have too many points of the new step");
        archive.points_per_row = points.checked_mul(parts).ok_or_else(too_many)?;
        for (source, scratch) in database.state.sources.iter().zip(&mut state.scratch) {
            divide_row(scratch, function, points, parts);
            let rate = rate_of(source, since);
            for number in 0..since / step {
                let xff = xff.to_f64();
                fold(
                    scratch,
                    function,
                    xff,
                    archive.points_per_row,
                    first + number,
                    rate,
                );
            }
        }
    }
    for source in &mut database.state.sources {
        let rate = rate_of(source, since);
        let rest = since % step;
        source.unknown_seconds = if rate.is_nan() { rest } else { 0 };
        source.value = Value::from(rate * rest as f64);
    }
    database.step = step;
    Ok(())
}

/// Adapts a row under way to smaller points, of which `parts` times as many make a row.
fn divide_row(scratch: &mut Scratch, function: Consolidation, points: u64, parts: u64) {
    if points == 1 {
        // Nothing is under way; what is there was never used.
        scratch.set_value(Scratch::VALUE, Value::UNKNOWN);
        scratch.0[Scratch::UNKNOWN_POINTS] = 0;
        return;
    }
    let unknown = &mut scratch.0[Scratch::UNKNOWN_POINTS];
    *unknown = unknown.saturating_mul(parts);
    if let (Consolidation::Average, Some(sum)) = (function, scratch.value(Scratch::VALUE).get()) {
        scratch.set_value(Scratch::VALUE, Value::from(sum * parts as f64));
    }
}

/// The rate since a data point began; unknown where that is not known of half the time.
fn rate_of(state: &SourceState, since: u64) -> f64 {
    let known = since.saturating_sub(state.unknown_seconds);
    match state.value.get() {
        Some(value) if known > 0 && known >= state.unknown_seconds => value / known as f64,
        _ => f64::NAN,
    }
}
