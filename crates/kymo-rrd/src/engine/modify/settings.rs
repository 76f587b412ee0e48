//! Parameters that change while everything stays where it is, as by options of `rrdtool tune`.

use super::ModifyError;
use crate::engine::{fresh, is_name};
use crate::model::{ArchiveKind, Database, Reading, Scratch, SourceKind};
use crate::{Text, Value};

/// A change of parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Setting {
    /// The heartbeat of a data source in seconds.
    Heartbeat {
        /// The data source.
        name: String,
        /// Seconds.
        seconds: u64,
    },
    /// The least rate of a data source that is known.
    Minimum {
        /// The data source.
        name: String,
        /// The rate; unknown if there is no limit.
        rate: Value,
    },
    /// The greatest rate of a data source that is known.
    Maximum {
        /// The data source.
        name: String,
        /// The rate; unknown if there is no limit.
        rate: Value,
    },
    /// How readings of a data source become rates. Its last reading is forgotten.
    Kind {
        /// The data source.
        name: String,
        /// The kind.
        reading: Reading,
    },
    /// Another name of a data source.
    Rename {
        /// The data source.
        name: String,
        /// The name that it gets.
        to: String,
    },
    /// A parameter of the first archive that has it.
    Archive(Parameter, Value),
    /// Values out of bounds that make a failure, 1 to 28; the history is forgotten.
    FailureThreshold(u64),
    /// Values that are looked at for failures, 1 to 28; the history is forgotten.
    WindowLength(u64),
    /// What predictions, seasons and failures have learnt of a data source is forgotten.
    Reset {
        /// The data source.
        name: String,
    },
}

/// A parameter of archives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parameter {
    /// Deviations above the prediction that are not failures.
    DeltaPositive,
    /// Deviations below the prediction that are not failures.
    DeltaNegative,
    /// Adaption of the intercept.
    Alpha,
    /// Adaption of the slope.
    Beta,
    /// Adaption of the season.
    Gamma,
    /// Adaption of the deviations.
    GammaDeviation,
    /// The part of the season over which it is smoothed.
    SmoothingWindow,
    /// The part of the season over which deviations are smoothed.
    SmoothingWindowDeviation,
}

impl Setting {
    /// Changes a database. Returns the data source whose rows of seasons are to become unknown,
    /// which the caller does.
    ///
    /// # Errors
    ///
    /// If the data source or the archive does not exist, or it cannot be that; then nothing has
    /// changed.
    pub fn apply(&self, database: &mut Database) -> Result<Option<usize>, ModifyError> {
        match self {
            Self::Heartbeat { name, seconds } => {
                let (heartbeat, ..) = measured(database, name)?;
                *heartbeat = *seconds;
            }
            Self::Minimum { name, rate } => *measured(database, name)?.1 = *rate,
            Self::Maximum { name, rate } => *measured(database, name)?.2 = *rate,
            Self::Kind { name, reading } => set_kind(database, name, *reading)?,
            Self::Rename { name, to } => rename(database, name, to)?,
            Self::Archive(parameter, value) => set_parameter(database, *parameter, *value)?,
            Self::FailureThreshold(count) => *failures(database)?.1 = *count,
            Self::WindowLength(count) => *failures(database)?.0 = *count,
            Self::Reset { name } => return reset(database, name).map(Some),
        }
        Ok(None)
    }
}

/// The place of a data source.
fn place(database: &Database, name: &str) -> Result<usize, ModifyError> {
    database
        .source(name)
        .ok_or_else(|| ModifyError::new(format_args!("unknown data source name '{name}'")))
}

/// Heartbeat, minimum and maximum of a data source.
fn measured<'a>(
    database: &'a mut Database,
    name: &str,
) -> Result<(&'a mut u64, &'a mut Value, &'a mut Value), ModifyError> {
    let place = place(database, name)?;
    match &mut database.sources[place].kind {
        SourceKind::Measured {
            heartbeat,
            min,
            max,
            ..
        } => Ok((heartbeat, min, max)),
        SourceKind::Compute(_) => Err(ModifyError::new(format_args!(
            "data source '{name}' is computed: it has neither heartbeat nor limits"
        ))),
    }
}

fn set_kind(database: &mut Database, name: &str, reading: Reading) -> Result<(), ModifyError> {
    let place = place(database, name)?;
    let step = database.step;
    let kind = &mut database.sources[place].kind;
    match kind {
        SourceKind::Measured { reading: now, .. } if *now == reading => return Ok(()),
        SourceKind::Measured { reading: now, .. } => *now = reading,
        SourceKind::Compute(_) => {
            *kind = SourceKind::Measured {
                reading,
                heartbeat: step.saturating_mul(2),
                min: Value::UNKNOWN,
                max: Value::UNKNOWN,
            };
        }
    }
    database.state.sources[place].last_reading = Text::from("UNKN");
    database.version = database
        .version
        .max(database.sources[place].needed_version());
    Ok(())
}

fn rename(database: &mut Database, name: &str, to: &str) -> Result<(), ModifyError> {
    let place = place(database, name)?;
    if !is_name(to) {
        return Err(ModifyError::new(format_args!(
            "'{to}' cannot name a data source: expected 1 to 19 letters, digits, '_' and '-'"
        )));
    }
    if database.source(to).is_some_and(|other| other != place) {
        return Err(ModifyError::new(format_args!("Duplicate DS name: {to}")));
    }
    database.sources[place].name = Text::from(to);
    Ok(())
}

fn set_parameter(
    database: &mut Database,
    parameter: Parameter,
    value: Value,
) -> Result<(), ModifyError> {
    use Parameter::{
        Alpha, Beta, DeltaNegative, DeltaPositive, Gamma, GammaDeviation, SmoothingWindow,
        SmoothingWindowDeviation,
    };
    // Multiplicative predictions are changed only if there are no additive ones.
    let adds = database.archives.iter().any(|archive| {
        let kind = &archive.kind;
        matches!(
            kind,
            ArchiveKind::HwPredict {
                multiplicative: false,
                ..
            }
        )
    });
    let mut kinds = database
        .archives
        .iter_mut()
        .map(|archive| &mut archive.kind);
    let found = kinds.find_map(|kind| match (parameter, kind) {
        (DeltaPositive, ArchiveKind::Failures { delta_positive, .. }) => Some(delta_positive),
        (DeltaNegative, ArchiveKind::Failures { delta_negative, .. }) => Some(delta_negative),
        (
            Alpha,
            ArchiveKind::HwPredict {
                multiplicative,
                alpha,
                ..
            },
        ) => (*multiplicative != adds).then_some(alpha),
        (
            Beta,
            ArchiveKind::HwPredict {
                multiplicative,
                beta,
                ..
            },
        ) => (*multiplicative != adds).then_some(beta),
        (
            Gamma,
            ArchiveKind::Seasonal {
                deviation: false,
                gamma,
                ..
            },
        )
        | (
            GammaDeviation,
            ArchiveKind::Seasonal {
                deviation: true,
                gamma,
                ..
            },
        ) => Some(gamma),
        (
            SmoothingWindow,
            ArchiveKind::Seasonal {
                deviation: false,
                smoothing_window,
                ..
            },
        )
        | (
            SmoothingWindowDeviation,
            ArchiveKind::Seasonal {
                deviation: true,
                smoothing_window,
                ..
            },
        ) => Some(smoothing_window),
        _ => None,
    });
    let missing = match parameter {
        DeltaPositive | DeltaNegative => "Failures",
        _ => "Holt-Winters",
    };
    let problem = || ModifyError::new(format_args!("{missing} RRA does not exist in this RRD"));
    *found.ok_or_else(problem)? = value;
    if matches!(parameter, SmoothingWindow | SmoothingWindowDeviation) {
        database.version = database.version.max(4);
    }
    Ok(())
}

/// Window and threshold of the first archive of failures, the history of which is forgotten.
fn failures(database: &mut Database) -> Result<(&mut u64, &mut u64), ModifyError> {
    let archives = database.archives.iter_mut();
    for (archive, state) in archives.zip(&mut database.state.archives) {
        if let ArchiveKind::Failures {
            window, threshold, ..
        } = &mut archive.kind
        {
            for scratch in &mut state.scratch {
                scratch.set_history(&[0; Scratch::HISTORY]);
            }
            return Ok((window, threshold));
        }
    }
    Err(ModifyError::new("Failures RRA does not exist in this RRD"))
}

fn reset(database: &mut Database, name: &str) -> Result<usize, ModifyError> {
    let place = place(database, name)?;
    let archives = database.archives.iter();
    for (archive, state) in archives.zip(&mut database.state.archives) {
        let Some(scratch) = state.scratch.get_mut(place) else {
            continue;
        };
        let fresh = fresh(&archive.kind, 0);
        let slots: &[usize] = match archive.kind {
            ArchiveKind::HwPredict { .. } => &[
                Scratch::INTERCEPT,
                Scratch::LAST_INTERCEPT,
                Scratch::SLOPE,
                Scratch::LAST_SLOPE,
                Scratch::NULL_COUNT,
                Scratch::LAST_NULL_COUNT,
            ],
            // How often the season went round stays.
            ArchiveKind::Seasonal { .. } => &[Scratch::SEASONAL, Scratch::LAST_SEASONAL],
            ArchiveKind::Failures { .. } => {
                scratch.set_history(&[0; Scratch::HISTORY]);
                &[]
            }
            ArchiveKind::Consolidated { .. } | ArchiveKind::DevPredict { .. } => &[],
        };
        for &slot in slots {
            scratch.0[slot] = fresh.0[slot];
        }
    }
    Ok(place)
}
