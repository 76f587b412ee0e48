//! What an RRD is, whatever the machine and the form of the file.
//!
//! A [`Database`] is small and owned: its definitions, and the [`State`] that each update
//! changes. The values of the archives are not in it: they stay where they lie, and are
//! looked at through [`Rows`](crate::Rows).
//!
//! Rows are numbered as they lie in the file: an archive is a ring, in which
//! [`ArchiveState::current_row`] was written last, and the row after it is the oldest.

pub mod rows;
pub mod validate;
pub mod value;

use std::fmt;

use crate::rpn::Program;
use crate::{Text, Time, Value};

/// A round-robin database without the values of its archives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Database {
    /// Version of the native form, 1 to 5: what a reader must understand.
    /// [`Database::needed_version`] returns the lowest that will do.
    pub version: u8,
    /// Seconds between two primary data points.
    pub step: u64,
    /// What is measured.
    pub sources: Vec<DataSource>,
    /// How it is kept.
    pub archives: Vec<Archive>,
    /// What updates change.
    pub state: State,
}

/// A data source: one series of measurements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataSource {
    /// Its name.
    pub name: Text,
    /// Where its values come from.
    pub kind: SourceKind,
}

impl DataSource {
    /// The lowest version of the native form that has such data sources, not below 3.
    pub const fn needed_version(&self) -> u8 {
        match self.kind {
            SourceKind::Measured {
                reading: Reading::DCounter | Reading::DDerive,
                ..
            } => 5,
            _ => 3,
        }
    }
}

/// Where the values of a data source come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceKind {
    /// They are measured.
    Measured {
        /// How readings become rates.
        reading: Reading,
        /// Seconds without a reading after which the value is unknown.
        heartbeat: u64,
        /// Rates below it are unknown.
        min: Value,
        /// Rates above it are unknown.
        max: Value,
    },
    /// They are computed from the data sources before.
    Compute(Program),
}

impl SourceKind {
    /// The name of the kind in files, such as `GAUGE`.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Measured { reading, .. } => reading.name(),
            Self::Compute(_) => "COMPUTE",
        }
    }
}

/// How readings become rates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reading {
    /// A reading is a rate.
    Gauge,
    /// Readings count up, and go round at 32 or 64 bits.
    Counter,
    /// Readings count up and down.
    Derive,
    /// Readings count what happened since the one before.
    Absolute,
    /// As [`Reading::Counter`], of floating-point readings. Since version 5.
    DCounter,
    /// As [`Reading::Derive`], of floating-point readings. Since version 5.
    DDerive,
}

impl Reading {
    /// All values of this type.
    pub const ALL: [Self; 6] = [
        Self::Gauge,
        Self::Counter,
        Self::Derive,
        Self::Absolute,
        Self::DCounter,
        Self::DDerive,
    ];

    /// The name in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gauge => "GAUGE",
            Self::Counter => "COUNTER",
            Self::Derive => "DERIVE",
            Self::Absolute => "ABSOLUTE",
            Self::DCounter => "DCOUNTER",
            Self::DDerive => "DDERIVE",
        }
    }

    /// The kind of a name in files.
    pub fn from_name(name: &[u8]) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|reading| reading.name().as_bytes() == name)
    }
}

/// An archive: a ring of rows, each of which has one value of each data source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Archive {
    /// What its values are, with the parameters of that.
    pub kind: ArchiveKind,
    /// Number of rows, at least 1.
    pub rows: u64,
    /// Primary data points that make one row, at least 1.
    pub points_per_row: u64,
}

/// What the values of an archive are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArchiveKind {
    /// The points of a row, made one.
    Consolidated {
        /// How they are made one.
        function: Consolidation,
        /// The part of a row that may be unknown while the row is known, 0 to 1.
        xff: Value,
    },
    /// Predictions of Holt and Winters.
    HwPredict {
        /// Whether the season multiplies, `MHWPREDICT`. Since version 4.
        multiplicative: bool,
        /// Adaption of the intercept, 0 to 1.
        alpha: Value,
        /// Adaption of the slope, 0 to 1.
        beta: Value,
        /// Rows of a season.
        period: Value,
        /// The archive of seasonal coefficients.
        seasonal: ArchiveLink,
    },
    /// Coefficients of the points of a season.
    Seasonal {
        /// Whether they are those of deviations, `DEVSEASONAL`.
        deviation: bool,
        /// Adaption, 0 to 1.
        gamma: Value,
        /// Part of the season over which coefficients are smoothed; not used before version 4.
        smoothing_window: Value,
        /// The row at which they are smoothed.
        smooth_row: u64,
        /// The archive of predictions.
        predictions: ArchiveLink,
    },
    /// Predicted deviations, `DEVPREDICT`.
    DevPredict {
        /// The archive of seasonal deviations.
        deviations: ArchiveLink,
    },
    /// Whether values were far from their predictions, `FAILURES`.
    Failures {
        /// Deviations above the prediction that are not failures.
        delta_positive: Value,
        /// Deviations below the prediction that are not failures.
        delta_negative: Value,
        /// Values that are looked at, 1 to 28.
        window: u64,
        /// Values out of bounds within the window that make a failure.
        threshold: u64,
        /// The archive of seasonal deviations.
        deviations: ArchiveLink,
    },
}

/// How the points of a row are made one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Consolidation {
    /// Their mean.
    Average,
    /// The least.
    Min,
    /// The greatest.
    Max,
    /// The last.
    Last,
}

impl Consolidation {
    /// All values of this type.
    pub const ALL: [Self; 4] = [Self::Average, Self::Min, Self::Max, Self::Last];

    /// The name in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Average => "AVERAGE",
            Self::Min => "MIN",
            Self::Max => "MAX",
            Self::Last => "LAST",
        }
    }
}

/// The place of another archive in the file, counted from 0, as files hold it.
///
/// If there is none, files hold -1 or, in some versions, 2147483647; both are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ArchiveLink(pub i64);

impl ArchiveLink {
    /// No archive.
    pub const NONE: Self = Self(-1);

    /// The place of the archive; `None` where the link is not set.
    pub fn index(self) -> Option<usize> {
        (self.0 != i64::from(i32::MAX))
            .then(|| usize::try_from(self.0).ok())
            .flatten()
    }
}

impl ArchiveKind {
    /// The names of all kinds.
    pub const NAMES: [&'static str; 10] = [
        "AVERAGE",
        "MIN",
        "MAX",
        "LAST",
        "HWPREDICT",
        "MHWPREDICT",
        "SEASONAL",
        "DEVSEASONAL",
        "DEVPREDICT",
        "FAILURES",
    ];

    /// The name of a kind, of some bytes that are it.
    pub fn known(name: &[u8]) -> Option<&'static str> {
        let found = Self::NAMES.iter().find(|known| known.as_bytes() == name);
        found.copied()
    }

    /// The name of the kind in files, such as `AVERAGE`.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Consolidated { function, .. } => function.name(),
            Self::HwPredict { multiplicative, .. } => {
                if *multiplicative {
                    "MHWPREDICT"
                } else {
                    "HWPREDICT"
                }
            }
            Self::Seasonal { deviation, .. } => {
                if *deviation {
                    "DEVSEASONAL"
                } else {
                    "SEASONAL"
                }
            }
            Self::DevPredict { .. } => "DEVPREDICT",
            Self::Failures { .. } => "FAILURES",
        }
    }

    /// What a slot of this kind's [`Scratch`] holds.
    pub const fn slot(&self, index: usize) -> Slot {
        match (self, index) {
            (_, Scratch::PRIMARY | Scratch::SECONDARY) => Slot::Value,
            (Self::Consolidated { .. } | Self::DevPredict { .. }, Scratch::VALUE) => Slot::Value,
            (Self::Consolidated { .. } | Self::DevPredict { .. }, Scratch::UNKNOWN_POINTS) => {
                Slot::Counter
            }
            (Self::HwPredict { .. }, Scratch::INTERCEPT..=Scratch::LAST_SLOPE) => Slot::Value,
            (Self::HwPredict { .. }, Scratch::NULL_COUNT | Scratch::LAST_NULL_COUNT) => {
                Slot::Counter
            }
            (Self::Seasonal { .. }, Scratch::SEASONAL | Scratch::LAST_SEASONAL) => Slot::Value,
            (Self::Seasonal { .. }, Scratch::BURN_IN) => Slot::Counter,
            (Self::Failures { .. }, 0..Scratch::HISTORY_SLOTS) => Slot::History,
            _ => Slot::Unused,
        }
    }
}

/// What a slot of a [`Scratch`] holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Slot {
    /// The bits of a [`Value`].
    Value,
    /// A count, in native files as wide as the machine's `unsigned long`.
    Counter,
    /// Eight bytes of the history of failures, the first in the lowest bits.
    History,
    /// Nothing; the bits of whatever number lies there are kept.
    Unused,
}

/// What updates change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// The time of the last update. Before version 3, whole seconds.
    pub last_update: Time,
    /// What a native file holds instead of microseconds where it holds none (then
    /// `last_update` is of whole seconds): 2147483647 where an `rrdtool` with 32-bit times
    /// was given a time after 2038.
    pub stray_micros: Option<i64>,
    /// One for each data source.
    pub sources: Vec<SourceState>,
    /// One for each archive.
    pub archives: Vec<ArchiveState>,
}

/// The primary data point of a data source, as far as it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceState {
    /// The last reading as it was given; `U` where it was unknown.
    pub last_reading: Text,
    /// Seconds of the current point of which nothing is known.
    pub unknown_seconds: u64,
    /// Rate times known seconds of the current point.
    pub value: Value,
}

/// Where an archive stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchiveState {
    /// The row that was written last, by its place in the file.
    pub current_row: u64,
    /// One for each data source.
    pub scratch: Vec<Scratch>,
}

/// What an archive remembers of a data source while it prepares rows: ten slots, the
/// meaning of which [`ArchiveKind::slot`] defines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scratch(pub [u64; Self::SLOTS]);

impl Scratch {
    /// Number of slots.
    pub const SLOTS: usize = 10;
    /// Slots that hold the history of failures.
    pub const HISTORY_SLOTS: usize = 4;
    /// Bytes of the history of failures that are used.
    pub const HISTORY: usize = 28;

    /// The value of the current row so far.
    pub const VALUE: usize = 0;
    /// Points of the current row that are unknown.
    pub const UNKNOWN_POINTS: usize = 1;
    /// Holt and Winters: the intercept.
    pub const INTERCEPT: usize = 2;
    /// Holt and Winters: the intercept before.
    pub const LAST_INTERCEPT: usize = 3;
    /// Holt and Winters: the slope.
    pub const SLOPE: usize = 4;
    /// Holt and Winters: the slope before.
    pub const LAST_SLOPE: usize = 5;
    /// Holt and Winters: points since the last known one.
    pub const NULL_COUNT: usize = 6;
    /// Holt and Winters: that number, before.
    pub const LAST_NULL_COUNT: usize = 7;
    /// Seasons: the coefficient of the next row.
    pub const SEASONAL: usize = 2;
    /// Seasons: the coefficient of the current row.
    pub const LAST_SEASONAL: usize = 3;
    /// Seasons: how often the ring went round while the coefficients are learnt.
    pub const BURN_IN: usize = 6;
    /// The value of the first row that an update writes.
    pub const PRIMARY: usize = 8;
    /// The value of the rows after it.
    pub const SECONDARY: usize = 9;

    /// A slot that holds a value.
    pub const fn value(&self, slot: usize) -> Value {
        Value::from_bits(self.0[slot])
    }

    /// Sets a slot that holds a value.
    pub const fn set_value(&mut self, slot: usize, value: Value) {
        self.0[slot] = value.to_bits();
    }

    /// A slot that holds a count.
    pub const fn counter(&self, slot: usize) -> u64 {
        self.0[slot]
    }

    /// The history of failures, the latest first.
    pub fn history(&self) -> [u8; Self::HISTORY] {
        let mut history = [0; Self::HISTORY];
        for (bytes, slot) in history.chunks_mut(8).zip(self.0) {
            bytes.copy_from_slice(&slot.to_le_bytes()[..bytes.len()]);
        }
        history
    }

    /// Sets the history of failures.
    pub fn set_history(&mut self, history: &[u8; Self::HISTORY]) {
        for (bytes, slot) in history.chunks(8).zip(&mut self.0) {
            let mut whole = slot.to_le_bytes();
            whole[..bytes.len()].copy_from_slice(bytes);
            *slot = u64::from_le_bytes(whole);
        }
    }
}

/// Why a [`Database`] cannot be one: what it consists of does not fit together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShapeError {
    /// What has the wrong number, such as `preparations of archive 3`.
    pub what: String,
    /// The number found.
    pub found: u64,
    /// What the number should be, such as `2, one for each data source`.
    pub expected: String,
}

impl fmt::Display for ShapeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: found {}, expected {}",
            self.what, self.found, self.expected
        )
    }
}

impl std::error::Error for ShapeError {}

impl Database {
    /// The lowest version of the native form that readers must understand, not below 3:
    /// 4 for multiplicative predictions and for smoothing windows, 5 for floating-point counters.
    ///
    /// A file of version 1 or 2 (whole seconds only) also does for what needs 3.
    pub fn needed_version(&self) -> u8 {
        let source = self.sources.iter().map(DataSource::needed_version);
        let archive = self.archives.iter().map(|archive| match &archive.kind {
            ArchiveKind::HwPredict {
                multiplicative: true,
                ..
            } => 4,
            ArchiveKind::Seasonal {
                smoothing_window, ..
            } if *smoothing_window != Value::ZERO => 4,
            _ => 3,
        });
        source.chain(archive).max().unwrap_or(3)
    }

    /// Checks that there is a state for each data source and archive, that no count is zero
    /// that cannot be, and that the rows written last are rows of their archives.
    ///
    /// # Errors
    ///
    /// The first thing that does not fit.
    pub fn check_shape(&self) -> Result<(), ShapeError> {
        let sources = self.sources.len();
        let archives = self.archives.len();
        let count = |what: fmt::Arguments<'_>, found: usize, expected: usize, each: &str| {
            if found == expected {
                return Ok(());
            }
            Err(ShapeError {
                what: what.to_string(),
                found: found as u64,
                expected: format!("{expected}, one for each {each}"),
            })
        };
        let at_least_one = |what: fmt::Arguments<'_>, found: u64| {
            if found >= 1 {
                return Ok(());
            }
            Err(ShapeError {
                what: what.to_string(),
                found,
                expected: "at least 1".to_owned(),
            })
        };
        at_least_one(format_args!("data sources"), sources as u64)?;
        at_least_one(format_args!("archives"), archives as u64)?;
        at_least_one(format_args!("step"), self.step)?;
        count(
            format_args!("states of data sources"),
            self.state.sources.len(),
            sources,
            "data source",
        )?;
        count(
            format_args!("states of archives"),
            self.state.archives.len(),
            archives,
            "archive",
        )?;
        for (index, (archive, state)) in self.archives.iter().zip(&self.state.archives).enumerate()
        {
            at_least_one(format_args!("rows of archive {index}"), archive.rows)?;
            at_least_one(
                format_args!("points per row of archive {index}"),
                archive.points_per_row,
            )?;
            count(
                format_args!("preparations of archive {index}"),
                state.scratch.len(),
                sources,
                "data source",
            )?;
            if state.current_row >= archive.rows {
                return Err(ShapeError {
                    what: format!("current row of archive {index}"),
                    found: state.current_row,
                    expected: format!("less than its {} rows", archive.rows),
                });
            }
        }
        Ok(())
    }

    /// The place of the data source of a name.
    pub fn source(&self, name: &str) -> Option<usize> {
        let mut sources = self.sources.iter();
        sources.position(|source| source.name.as_bytes() == name.as_bytes())
    }

    /// Seconds between two rows of an archive; `None` if the archive does not exist or the
    /// product is beyond 64 bits.
    pub fn row_seconds(&self, archive: usize) -> Option<u64> {
        self.archives
            .get(archive)?
            .points_per_row
            .checked_mul(self.step)
    }

    /// The time of a row of an archive, the end of the interval that it stands for, in
    /// seconds since 1970. Rows count from the oldest. `None` if the row does not exist or
    /// its time is beyond 64 bits.
    pub fn row_time(&self, archive: usize, row: u64) -> Option<i64> {
        let seconds = i64::try_from(self.row_seconds(archive)?).ok()?;
        let last = self.state.last_update.seconds();
        let newest = last.checked_sub(last.checked_rem_euclid(seconds)?)?;
        let age = self.archives[archive]
            .rows
            .checked_sub(1)?
            .checked_sub(row)?;
        newest.checked_sub(i64::try_from(age).ok()?.checked_mul(seconds)?)
    }
}
