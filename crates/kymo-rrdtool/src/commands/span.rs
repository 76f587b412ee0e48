//! From when to when: the options `--start` and `--end`.

use crate::Failure;
use crate::options::Opt;
use crate::times::{Clock, TimeError, TimeSpec};

pub(super) const START: Opt = Opt::with(
    Some('s'),
    "start",
    "TIME",
    "From when, such as `-6h` or `end-1week`; [default: a day before the end].",
);

pub(super) const END: Opt = Opt::with(
    Some('e'),
    "end",
    "TIME",
    "Until when, such as `noon yesterday` or `start+1h`; [default: now].",
);

/// A start and an end as they are written.
pub(super) struct Span {
    start: TimeSpec,
    end: TimeSpec,
}

impl Span {
    /// The day before now.
    pub(super) const DAY: Self = Self {
        start: TimeSpec::DAY_BEFORE_END,
        end: TimeSpec::NOW,
    };

    /// All times.
    pub(super) const ALL: Self = Self {
        start: TimeSpec::at(0),
        end: TimeSpec::at(i64::MAX),
    };

    /// Takes the value of [`START`].
    pub(super) fn set_start(&mut self, value: &[u8]) -> Result<(), Failure> {
        self.start = TimeSpec::parse(value).map_err(|error| reported("start", &error))?;
        Ok(())
    }

    /// Takes the value of [`END`].
    pub(super) fn set_end(&mut self, value: &[u8]) -> Result<(), Failure> {
        self.end = TimeSpec::parse(value).map_err(|error| reported("end", &error))?;
        Ok(())
    }

    /// The times, in seconds since 1970.
    pub(super) fn resolve(&self, clock: &Clock<'_>) -> Result<(i64, i64), Failure> {
        let times = TimeSpec::span(&self.start, &self.end, clock);
        times.map_err(|error| Failure::new(error.to_string()))
    }
}

fn reported(which: &str, error: &TimeError) -> Failure {
    Failure::new(format!("{which} time: {error}"))
}
