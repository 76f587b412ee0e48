//! New databases.

use kymo_machine::Width;

use crate::fault::Error;
use crate::model::validate::LATEST;
use crate::model::{
    Archive, ArchiveKind, ArchiveLink, ArchiveState, DataSource, Database, Scratch, SourceState,
    State,
};
use crate::{Text, Time, Value};

/// The definition of a new database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    /// The version of the native form, 3 to 5.
    pub version: u8,
    /// The time before the first update.
    pub start: Time,
    /// Seconds between two primary data points.
    pub step: u64,
    /// What is measured.
    pub sources: Vec<DataSource>,
    /// How it is kept.
    pub archives: Vec<Archive>,
}

/// Where seasons are smoothed, so that not all files of a machine do it at the same time: a number
/// made of the name of the file.
#[derive(Clone, Copy, Debug)]
pub struct Smoothing<'a> {
    /// The name, as it was given.
    pub file_name: &'a [u8],
    /// The size of `long` on the machine, which changes the number.
    pub long: Width,
}

impl Default for Smoothing<'_> {
    /// That of a file without a name on a machine of 64 bits.
    fn default() -> Self {
        Self {
            file_name: b"",
            long: Width::W64,
        }
    }
}

impl Smoothing<'_> {
    /// The row of a season of `rows` rows at which it is smoothed; 0 if there are no rows.
    pub fn row(&self, rows: u64) -> u64 {
        let mask = u64::MAX >> (64 - self.long.bits());
        let hash = self.file_name.iter().fold(0x811c_9dc5, |hash: u64, &byte| {
            (hash.wrapping_mul(0x0100_0193) ^ u64::from(byte)) & mask
        });
        hash.checked_rem(rows).unwrap_or(0)
    }
}

/// Predictions with all that they need.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Season {
    /// Rows of predictions.
    pub rows: u64,
    /// Whether the season multiplies.
    pub multiplicative: bool,
    /// Adaption of the intercept and of the season, 0 to 1.
    pub alpha: Value,
    /// Adaption of the slope, 0 to 1.
    pub beta: Value,
    /// Rows of a season.
    pub period: u16,
}

impl Season {
    /// The archive of predictions, and those of seasons, deviations and failures that follow it;
    /// `index` is the place of the first.
    pub fn archives(&self, index: usize, smoothing: &Smoothing<'_>) -> [Archive; 5] {
        let link = |after: usize| ArchiveLink(index.saturating_add(after) as i64);
        let period = u64::from(self.period);
        let season = |deviation| {
            let kind = ArchiveKind::Seasonal {
                deviation,
                gamma: self.alpha,
                smoothing_window: Value::ZERO,
                smooth_row: smoothing.row(period),
                predictions: link(0),
            };
            (kind, period)
        };
        let predictions = ArchiveKind::HwPredict {
            multiplicative: self.multiplicative,
            alpha: self.alpha,
            beta: self.beta,
            period: Value::from(f64::from(self.period)),
            seasonal: link(1),
        };
        let deviations = ArchiveKind::DevPredict {
            deviations: link(2),
        };
        let failures = ArchiveKind::Failures {
            delta_positive: Value::from(2.0),
            delta_negative: Value::from(2.0),
            window: 9,
            threshold: 7,
            deviations: link(2),
        };
        [
            (predictions, self.rows),
            season(false),
            season(true),
            (deviations, self.rows),
            (failures, period),
        ]
        .map(|(kind, rows)| Archive {
            kind,
            rows,
            points_per_row: 1,
        })
    }
}

/// A database that has had no update. `current_row` returns the first row of each archive, given its row count:
/// rrdtool takes any, so that not all files go round at the same time.
///
/// # Errors
///
/// If there is no data source or archive, a number is zero that cannot be, or a row is not one
/// of its archive.
pub fn create(
    definition: &Definition,
    mut current_row: impl FnMut(usize, u64) -> u64,
) -> Result<Database, Error> {
    let step = definition.step;
    let start = definition.start.seconds();
    let at_least_one = |what: &str, number: u64| match number {
        0 => Err(Error::new(what, None, 0, "at least 1")),
        _ => Ok(number),
    };
    at_least_one("step", step)?;
    let start = match u64::try_from(start) {
        Ok(seconds) if start < LATEST => seconds,
        // Updates could not follow, and milliseconds are the usual cause.
        Ok(_) => {
            let expected = "seconds since 1970, before the year 2514";
            return Err(Error::new("start", None, start, expected));
        }
        Err(_) => return Err(Error::new("start", None, start, "a time after 1970")),
    };
    let unknown_seconds = start % step;
    let sources = definition.sources.iter().map(|_| SourceState {
        last_reading: Text::from("U"),
        unknown_seconds,
        value: Value::UNKNOWN,
    });
    let mut archives = Vec::with_capacity(definition.archives.len());
    for (index, archive) in definition.archives.iter().enumerate() {
        let points = at_least_one("points per row", archive.points_per_row)?;
        let unknown_points = (start - unknown_seconds) / step % points;
        let scratch = fresh(&archive.kind, unknown_points);
        archives.push(ArchiveState {
            current_row: current_row(index, archive.rows),
            scratch: vec![scratch; definition.sources.len()],
        });
    }
    let database = Database {
        version: definition.version,
        step,
        sources: definition.sources.clone(),
        archives: definition.archives.clone(),
        state: State {
            last_update: definition.start,
            stray_micros: None,
            sources: sources.collect(),
            archives,
        },
    };
    let shape = database.check_shape();
    shape.map_err(|shape| Error::new(shape.what, None, shape.found, shape.expected))?;
    super::Engine::new(&database)?;
    Ok(database)
}

/// What an archive remembers of a data source that it has seen nothing of.
pub(crate) fn fresh(kind: &ArchiveKind, unknown_points: u64) -> Scratch {
    let mut scratch = Scratch::default();
    let unknown: &[usize] = match kind {
        ArchiveKind::Consolidated { .. } | ArchiveKind::DevPredict { .. } => {
            scratch.0[Scratch::UNKNOWN_POINTS] = unknown_points;
            &[Scratch::VALUE]
        }
        ArchiveKind::HwPredict { .. } => {
            scratch.0[Scratch::NULL_COUNT] = 1;
            scratch.0[Scratch::LAST_NULL_COUNT] = 1;
            &[
                Scratch::INTERCEPT,
                Scratch::LAST_INTERCEPT,
                Scratch::SLOPE,
                Scratch::LAST_SLOPE,
            ]
        }
        ArchiveKind::Seasonal { .. } => {
            scratch.0[Scratch::BURN_IN] = 1;
            &[Scratch::SEASONAL, Scratch::LAST_SEASONAL]
        }
        ArchiveKind::Failures { .. } => &[],
    };
    for &slot in unknown {
        scratch.set_value(slot, Value::UNKNOWN);
    }
    scratch
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seasons_are_smoothed_at_a_row_of_the_name() {
        for (name, long, rows, row) in [
            ("hw.rrd", Width::W64, 96, 64),
            ("hw.rrd", Width::W32, 96, 32),
            ("mhw.rrd", Width::W64, 48, 15),
        ] {
            let file_name = name.as_bytes();
            assert_eq!(Smoothing { file_name, long }.row(rows), row);
        }
    }
}
