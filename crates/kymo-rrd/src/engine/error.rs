//! Why an update does not happen.

use std::fmt;
use std::io;

use crate::fault;
use crate::rpn::EvaluateError;
use crate::text::numbers::NumberError;
use crate::{Text, Time, file::portable};

/// Why a file cannot be read or written.
#[derive(Debug)]
pub enum StoreError {
    /// Reading or writing failed.
    Io(io::Error),
    /// A portable file is damaged, or cannot hold the new content.
    Portable(portable::Error),
    /// A native file is damaged, or cannot hold the new content.
    Native(fault::Error),
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => f.write_str(&kymo_io::reason(error)),
            Self::Portable(error) => error.fmt(f),
            Self::Native(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for StoreError {}

impl From<io::Error> for StoreError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<portable::Error> for StoreError {
    fn from(error: portable::Error) -> Self {
        Self::Portable(error)
    }
}

impl From<fault::Error> for StoreError {
    fn from(error: fault::Error) -> Self {
        Self::Native(error)
    }
}

/// Why an update is refused.
#[derive(Debug)]
pub enum UpdateError {
    /// Its time is not after that of the last update.
    Past {
        /// The time of the update.
        time: Time,
        /// The time of the last update.
        last: Time,
    },
    /// Its time is before 1970 or after the year 2514.
    OutOfRange {
        /// The time of the update.
        time: Time,
    },
    /// There is not one reading for each data source that is measured, or for each of the
    /// template.
    Count {
        /// The number of readings.
        found: usize,
        /// The number of data sources.
        expected: usize,
    },
    /// A reading cannot be one of its data source.
    Reading {
        /// The place of the data source.
        source: usize,
        /// Its name.
        name: Text,
        /// The reading.
        text: Vec<u8>,
        /// What is wrong with it.
        problem: ReadingProblem,
    },
    /// A data source cannot be computed.
    Computed {
        /// The place of the data source.
        source: usize,
        /// Its name.
        name: Text,
        /// Why.
        error: EvaluateError,
    },
    /// The file cannot be read or written.
    Store(StoreError),
}

/// What is wrong with a reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadingProblem {
    /// Not digits alone, where readings count up.
    NotUnsigned,
    /// Not digits alone after an optional minus, where readings count up and down.
    NotSigned,
    /// No number.
    Number(NumberError),
    /// Something follows the number.
    Trailing {
        /// Where the number ends, in bytes.
        end: usize,
    },
}

impl fmt::Display for UpdateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Past { time, last } => {
                let (time, last) = (time.to_micros(), last.to_micros());
                write!(
                    f,
                    "the update is of {}.{:06}, expected a time after the last update at {}.{:06}",
                    time.0, time.1, last.0, last.1
                )
            }
            Self::OutOfRange { time } => {
                // To the microsecond, as it would be kept: that of the last is too late.
                write!(f, "found a time {} s after 1970", time.to_micros().0)?;
                f.write_str(", expected 0 to less than 2^34")
            }
            Self::Count { found, expected } => {
                write!(f, "found {found} readings, expected {expected}")
            }
            Self::Reading {
                name,
                text,
                problem,
                ..
            } => {
                let text = text.escape_ascii();
                write!(f, "data source `{name}`: found reading `{text}`, expected ")?;
                match problem {
                    ReadingProblem::NotUnsigned => f.write_str("digits only"),
                    ReadingProblem::NotSigned => f.write_str("digits, after a minus or not"),
                    ReadingProblem::Number(NumberError::NoNumber) => f.write_str("a number"),
                    ReadingProblem::Number(NumberError::OutOfRange) => {
                        f.write_str("an exponent of -1021 to 1024")
                    }
                    ReadingProblem::Trailing { end } => {
                        write!(f, "nothing after the number's {end} bytes")
                    }
                }
            }
            Self::Computed { name, error, .. } => write!(f, "data source `{name}`: {error}"),
            Self::Store(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for UpdateError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Computed { error, .. } => Some(error),
            Self::Store(error) => Some(error),
            _ => None,
        }
    }
}

impl<E: Into<StoreError>> From<E> for UpdateError {
    fn from(error: E) -> Self {
        Self::Store(error.into())
    }
}
