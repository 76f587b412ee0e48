//! Series of values from files and expressions: the part of rrdtool's language of graphs that does
//! not draw.
//!
//! [`words`] takes words such as `DEF:a=load.rrd:load:AVERAGE` apart, [`Script`] is what they say
//! together, and [`Script::compute`] does it.

pub(crate) mod colour;
mod compute;
pub(crate) mod elements;
pub(crate) mod format;
mod script;
mod words;

pub(crate) use compute::Known;
pub(crate) use script::Script;

use crate::Failure;
use crate::times::EARLIEST;

/// That an end comes before its start.
pub(crate) fn backwards(start: i64, end: i64) -> Failure {
    Failure::new(format!("start ({start}) should be less than end ({end})"))
}

/// From when to when, and how finely.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) start: i64,
    pub(crate) end: i64,
    /// The least number of seconds between two rows.
    pub(crate) step: i64,
}

impl Bounds {
    /// Checks the times, and makes the step so long that there are at most so many rows.
    ///
    /// # Errors
    ///
    /// Times that rrdtool does not take.
    pub(crate) fn new(start: i64, end: i64, step: i64, rows: i64) -> Result<Self, Failure> {
        check(start, end)?;
        let step = step.max((end - start) / rows.max(1));
        Ok(Self { start, end, step })
    }
}

/// Checks times.
fn check(start: i64, end: i64) -> Result<(), Failure> {
    if start < EARLIEST {
        let message = format!("the first entry to fetch should be after 1980 ({start})");
        return Err(Failure::new(message));
    }
    match end < start {
        true => Err(backwards(start, end)),
        false => Ok(()),
    }
}
