//! What is given to an update.

use std::fmt;

use super::{Measurement, UpdateError};
use crate::Time;
use crate::file::native::structs::LAST_READING;
use crate::model::State;
use crate::text::numbers::{self, NumberError};

/// What was measured at a time.
#[derive(Clone, Copy, Debug)]
pub struct Sample<'a> {
    /// When. Microseconds count; of version 1 and 2, whole seconds.
    pub time: Time,
    /// A reading for each data source that is measured, or for each of a template.
    pub values: &'a [Measurement<'a>],
}

/// The time that a text specifies in seconds since 1970, as rrdtool reads it: what is less than a
/// microsecond is cut off.
///
/// # Errors
///
/// If the text is not a number, or something follows the number.
pub fn time(text: &[u8]) -> Result<Time, NumberError> {
    seconds(numbers::whole(text)?).ok_or(NumberError::OutOfRange)
}

/// A number of seconds since 1970 as a time, truncated to microseconds. `None` if
/// it is out of range.
pub fn seconds(seconds: f64) -> Option<Time> {
    let whole = seconds.floor();
    let micros = (seconds - whole) * 1e6;
    // Below this, microseconds are a part of the number at all.
    if whole.is_nan() || whole.abs() > 9e15 {
        return None;
    }
    Time::from_micros(whole as i64, micros as u32)
}

/// Which data sources readings are given for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    /// Number of readings.
    count: usize,
    /// Of each data source the place of its reading.
    readings: Vec<Option<usize>>,
    /// Whether each data source has the reading in its own place.
    in_order: bool,
}

impl Template {
    /// The template of readings for the data sources at these places, of `sources` in total.
    pub(super) fn new(places: Vec<usize>, sources: usize) -> Self {
        let mut readings = vec![None; sources];
        for (reading, &place) in places.iter().enumerate() {
            readings[place] = Some(reading);
        }
        Self {
            count: places.len(),
            in_order: places.iter().copied().eq(0..sources),
            readings,
        }
    }

    /// The number of readings.
    pub fn readings(&self) -> usize {
        self.count
    }

    /// Whether each data source has the reading in its own place.
    #[inline]
    pub(super) fn is_in_order(&self) -> bool {
        self.in_order
    }

    /// Checks the number of readings.
    pub(super) fn check(&self, found: usize) -> Result<(), UpdateError> {
        match found == self.count {
            true => Ok(()),
            false => Err(UpdateError::Count {
                found,
                expected: self.count,
            }),
        }
    }

    /// Stores the readings of the first data sources, at most `count`, as their last readings.
    pub(super) fn keep(&self, state: &mut State, values: &[Measurement<'_>], count: usize) {
        let mut kept = [0; LAST_READING];
        let count = count.min(state.sources.len());
        for (index, source) in state.sources[..count].iter_mut().enumerate() {
            self.of(index, values).keep(&mut kept);
            source.last_reading.set_padded(&kept);
        }
    }

    /// The reading of a data source.
    #[inline]
    pub(super) fn of<'v, 'a>(
        &self,
        source: usize,
        values: &'v [Measurement<'a>],
    ) -> &'v Measurement<'a> {
        let reading = match self.in_order {
            true => Some(source),
            false => self.readings.get(source).copied().flatten(),
        };
        let given = reading.and_then(|reading| values.get(reading));
        given.unwrap_or(&Measurement::Unknown)
    }
}

/// Why a template is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TemplateError {
    /// No data source has this name.
    Unknown(String),
}

impl fmt::Display for TemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(name) => write!(f, "found `{name}`, expected a data source"),
        }
    }
}

impl std::error::Error for TemplateError {}
