//! The engine: updates of databases, in place, in files of any form.
//!
//! It computes what rrdtool 1.7.2 computes on amd64, bit for bit: with IEEE doubles, in the same
//! order, whatever machine the file is of and whatever machine runs this. `docs/rrd-engine.md` lists where
//! it does otherwise. Nothing is global: each [`Rrd`] is a file that stays open for any number of
//! updates.
//!
//! ```
//! use kymo_rrd::engine::{Measurement, Rrd, Sample};
//! use kymo_rrd::engine::{Definition, Smoothing, create};
//! use kymo_rrd::{Time, file::portable};
//!
//! let start = Time::from_seconds(999_999_900);
//! let texts = ["DS:load:GAUGE:600:U:U", "RRA:AVERAGE:0.5:1:10"];
//! let definition = Definition::parse(start, 300, &texts, &Smoothing::default())?;
//! let database = create(&definition, |_, _| 0)?;
//! let file = portable::create(&database, None, &Default::default(), Vec::new())?;
//!
//! let mut rrd = Rrd::open(file.into_storage())?;
//! for (time, load) in [(1_000_000_200, "1.5"), (1_000_000_500, "2.5")] {
//!     rrd.update(&Sample {
//!         time: Time::from_seconds(time),
//!         values: &[Measurement::Text(load.as_bytes())],
//!     })?;
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`Engine`] is the same without a file: it works on whatever is a [`Change`].

mod change;
mod create;
mod define;
mod direct;
mod error;
mod fetch;
mod files;
mod kinds;
pub mod modify;
mod plan;
mod points;
mod reading;
mod rows;
mod rrd;
mod sample;
mod season;
mod smooth;
mod written;

pub use change::Change;
pub(crate) use create::fresh;
pub use create::{Definition, Season, Smoothing, create};
pub(crate) use define::is_name;
pub use define::{DefineError, Defined, Origin};
pub use error::{ReadingProblem, StoreError, UpdateError};
pub use fetch::{Fetched, Wanted, combine, fetch};
pub use files::{FileError, Files, no_update};
pub use kinds::Kinds;
pub use reading::Measurement;
pub(crate) use rows::fold;
pub use rrd::{Rrd, UpdateOptions};
pub use sample::{Sample, Template, TemplateError, seconds, time};
pub use written::Written;

use std::sync::Arc;

use crate::fault::Error;
use crate::model::validate::LATEST;
use crate::model::{Database, Scratch, State};
use crate::{Time, Value};
use plan::{Plan, Role};
use points::{Pass, Points, Span};
use rows::Cut;
use season::Observation;

/// What updates a database: its definitions, made ready, and memory that is kept between updates. Clones
/// share the definitions.
#[derive(Clone, Debug)]
pub struct Engine {
    plan: Arc<Plan>,
    points: Points,
    row: Vec<Value>,
    looked_up: Vec<Value>,
}

/// What an update has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// Whether a step has ended, so that archives have changed.
    pub archives: bool,
    /// Whether seasons are to be smoothed by [`Engine::smooth`], after the last sample that belongs
    /// to this one.
    pub smooth: bool,
}

impl Engine {
    /// Makes the definitions of a database ready.
    ///
    /// # Errors
    ///
    /// Definitions that cannot be followed: links to what is not there, counts that are zero.
    pub fn new(database: &Database) -> Result<Self, Error> {
        Ok(Self {
            plan: Arc::new(Plan::new(database)?),
            points: Points::default(),
            row: Vec::new(),
            looked_up: Vec::new(),
        })
    }

    /// A template: the data sources that readings are given for, in their order. Readings of all
    /// others are unknown. If a name is specified twice, the last reading counts; that of a data
    /// source that is computed is kept, but nothing is computed of it.
    ///
    /// # Errors
    ///
    /// A name that no data source has.
    pub fn template(&self, names: &[&str]) -> Result<Template, TemplateError> {
        let plan = &*self.plan;
        let name_of = |place: usize| plan.names[place].as_bytes();
        let places = names.iter().map(|&name| {
            let before = |place: &usize| name_of(*place) < name.as_bytes();
            let first = plan.by_name.partition_point(before);
            let place = plan.by_name.get(first).copied();
            place
                .filter(|&place| name_of(place) == name.as_bytes())
                .ok_or_else(|| TemplateError::Unknown(name.to_owned()))
        });
        let places = places.collect::<Result<_, _>>()?;
        Ok(Template::new(places, plan.sources.len()))
    }

    /// Applies a sample. `now` is what `NOW` means in expressions, in seconds since 1970.
    ///
    /// # Errors
    ///
    /// Why the sample is refused; then nothing was changed or written. Those of reading and
    /// writing, after which part of it may be.
    pub fn apply(
        &mut self,
        change: &mut impl Change,
        sample: &Sample<'_>,
        template: Option<&Template>,
        now: i64,
    ) -> Result<Applied, UpdateError> {
        let Self { plan, points, .. } = self;
        let template = template.unwrap_or(&plan.everything);
        let state = change.state();
        let last = state.last_update;
        let time = plan.time(sample.time)?;
        if time <= last {
            return Err(UpdateError::Past { time, last });
        }
        if last < Time::default() {
            return Err(UpdateError::OutOfRange { time: last });
        }
        template.check(sample.values.len())?;
        let span = Span::new(plan, last, time);
        let name = |source: usize| plan.names[source].clone();
        points.measure(plan, name, state, &span, template, sample.values)?;
        let passes = points.close(plan, name, state, &span, now as f64)?;

        // From here on nothing is refused.
        template.keep(state, sample.values, usize::MAX);
        points.store(state);
        state.last_update = time;
        state.stray_micros = None;
        let mut smooth = false;
        for number in 0..passes {
            smooth |= self.end_steps(change, number)?;
        }
        Ok(Applied {
            archives: passes > 0,
            smooth,
        })
    }

    /// What rrdtool leaves of a sample that it refuses for a reading: the readings before that one
    /// take the place of the last ones.
    pub(crate) fn keep_refused(
        &self,
        state: &mut State,
        sample: &Sample<'_>,
        template: Option<&Template>,
        refused: usize,
    ) {
        let template = template.unwrap_or(&self.plan.everything);
        template.keep(state, sample.values, refused);
    }

    /// Brings the points of a pass to the archives. Returns whether seasons are to be smoothed.
    fn end_steps(&mut self, change: &mut impl Change, pass: usize) -> Result<bool, UpdateError> {
        let plan = &self.plan;
        let pass = self.points.pass_of(pass);
        change.steps_end(pass.end);
        if !plan.predicts {
            consolidate(plan, pass, change, &mut self.row)?;
            return Ok(false);
        }
        let mut smooth = false;
        for (index, ring) in plan.archives.iter().enumerate() {
            let state = &mut change.state().archives[index];
            match ring.role {
                Role::Season { smooth_row, .. } => {
                    smooth |= season::smooths(ring.rows, smooth_row, state, pass.steps);
                }
                Role::Consolidate { function, xff } if ring.points > 1 => {
                    let cut = Cut::new(ring, pass.first_step, pass.steps);
                    for (scratch, &rate) in state.scratch.iter_mut().zip(&pass.rates) {
                        rows::consolidate(scratch, function, xff, ring.points, &cut, rate);
                    }
                }
                _ => {}
            }
        }
        match pass.steps {
            1 => observe(plan, pass, change, Scratch::PRIMARY, &mut self.looked_up)?,
            2 => {
                observe(plan, pass, change, Scratch::PRIMARY, &mut self.looked_up)?;
                observe(plan, pass, change, Scratch::SECONDARY, &mut self.looked_up)?;
            }
            _ => skip(plan, pass, change, &mut self.looked_up)?,
        }
        for (index, ring) in plan.archives.iter().enumerate() {
            let rows = Cut::new(ring, pass.first_step, pass.steps).rows;
            if rows > 1 && matches!(ring.role, Role::Season { .. }) {
                let state = &mut change.state().archives[index];
                state.current_row = (state.current_row + rows) % ring.rows;
                continue;
            }
            if rows > 0 {
                write_rows(index, Scratch::PRIMARY, 1, change, &mut self.row)?;
            }
            if rows > 1 {
                write_rows(index, Scratch::SECONDARY, rows - 1, change, &mut self.row)?;
            }
        }
        all_prepared(plan, change);
        Ok(smooth)
    }

    /// Smooths the seasons.
    ///
    /// # Errors
    ///
    /// Those of reading and writing.
    pub fn smooth(&self, change: &mut impl Change) -> Result<(), UpdateError> {
        smooth::smooth(&self.plan, change)?;
        all_prepared(&self.plan, change);
        Ok(())
    }
}

/// Announces that all archives have changed: where they look at each other, it is unknown which ones have.
fn all_prepared(plan: &Plan, change: &mut impl Change) {
    (0..plan.archives.len()).for_each(|index| change.prepared(index, true));
}

/// Brings the points of a pass to archives that consolidate, each of which is done with at once.
fn consolidate(
    plan: &Plan,
    pass: &Pass,
    change: &mut impl Change,
    row: &mut Vec<Value>,
) -> Result<(), UpdateError> {
    for (index, ring) in plan.archives.iter().enumerate() {
        let Role::Consolidate { function, xff } = ring.role else {
            continue;
        };
        let scratches = &mut change.state().archives[index].scratch;
        let pairs = scratches.iter_mut().zip(&pass.rates);
        let cut = Cut::new(ring, pass.first_step, pass.steps);
        if cut.rows == 0 {
            // Most points end no row.
            pairs.for_each(|(scratch, &rate)| rows::go_on(scratch, function, pass.steps, rate));
            change.prepared(index, false);
            continue;
        }
        if ring.points > 1 {
            pairs.for_each(|(scratch, &rate)| {
                rows::end(scratch, function, xff, ring.points, &cut, rate);
            });
        } else {
            for (scratch, &rate) in pairs {
                let value = Value::from(rate);
                scratch.set_value(Scratch::PRIMARY, value);
                if pass.steps > 1 {
                    scratch.set_value(Scratch::SECONDARY, value);
                }
            }
        }
        write_rows(index, Scratch::PRIMARY, 1, change, row)?;
        if cut.rows > 1 {
            write_rows(index, Scratch::SECONDARY, cut.rows - 1, change, row)?;
        }
        change.prepared(index, true);
    }
    Ok(())
}

/// Writes `count` rows of the values that are prepared in a slot.
#[inline]
fn write_rows(
    archive: usize,
    slot: usize,
    count: u64,
    change: &mut impl Change,
    row: &mut Vec<Value>,
) -> Result<(), UpdateError> {
    let scratches = &change.state().archives[archive].scratch;
    if let [scratch] = &scratches[..] {
        let value = scratch.value(slot);
        return Ok(change.write_rows(archive, count, &[value])?);
    }
    row.clear();
    row.extend(scratches.iter().map(|scratch| scratch.value(slot)));
    Ok(change.write_rows(archive, count, row)?)
}

/// Shows a point to each archive of single points, and keeps the values of the rows in a slot.
fn observe(
    plan: &Plan,
    pass: &Pass,
    change: &mut impl Change,
    slot: usize,
    looked_up: &mut Vec<Value>,
) -> Result<(), UpdateError> {
    let ahead = pass.steps + if slot == Scratch::PRIMARY { 1 } else { 2 };
    for (archive, ring) in plan.archives.iter().enumerate() {
        if ring.points > 1 {
            continue;
        }
        let season = matches!(ring.role, Role::Season { .. });
        if season {
            look_up(change, archive, ring.rows, ahead, looked_up)?;
        }
        let state = change.state();
        for (source, &rate) in pass.rates.iter().enumerate() {
            let observation = Observation {
                plan,
                archive,
                source,
                rate,
                looked_up: match season {
                    true => looked_up[source].to_f64(),
                    false => f64::NAN,
                },
            };
            let value = observation.make(state);
            let scratch = &mut state.archives[archive].scratch[source];
            scratch.set_value(slot, Value::from(value));
        }
    }
    Ok(())
}

/// Passes over more points than archives learn from.
fn skip(
    plan: &Plan,
    pass: &Pass,
    change: &mut impl Change,
    looked_up: &mut Vec<Value>,
) -> Result<(), UpdateError> {
    let mut next = Vec::new();
    for (archive, ring) in plan.archives.iter().enumerate() {
        if ring.points > 1 {
            continue;
        }
        if matches!(ring.role, Role::Season { .. }) {
            look_up(change, archive, ring.rows, pass.steps, looked_up)?;
            look_up(change, archive, ring.rows, pass.steps + 1, &mut next)?;
        }
        let scratches = &mut change.state().archives[archive].scratch;
        for (source, (scratch, &rate)) in scratches.iter_mut().zip(&pass.rates).enumerate() {
            let stored = |which: usize| [&*looked_up, &next][which][source];
            season::skip(&ring.role, scratch, pass.steps, rate, stored);
        }
    }
    Ok(())
}

/// The values of the row that is `ahead` rows after the current one.
fn look_up(
    change: &mut impl Change,
    archive: usize,
    rows: u64,
    ahead: u64,
    values: &mut Vec<Value>,
) -> Result<(), UpdateError> {
    let current = change.state().archives[archive].current_row;
    let row = (current % rows + ahead % rows) % rows;
    Ok(change.row(archive, row, values)?)
}

impl Plan {
    /// A time as files hold it.
    fn time(&self, time: Time) -> Result<Time, UpdateError> {
        let (seconds, micros) = time.to_micros();
        if !(0..LATEST).contains(&seconds) {
            return Err(UpdateError::OutOfRange { time });
        }
        let micros = if self.whole_seconds { 0 } else { micros };
        Ok(Time::from_micros(seconds, micros).unwrap_or(time))
    }
}
