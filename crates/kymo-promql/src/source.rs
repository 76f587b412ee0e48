//! Where series come from.

use crate::{Labels, Matchers, QueryError};

/// A value at a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Milliseconds since 1970.
    pub time: i64,
    /// The value; NaN is a value like others.
    pub value: f64,
}

/// A series as it is read.
#[derive(Clone, Debug)]
pub struct Series {
    /// Its labels, the name of the metric among them.
    pub labels: Labels,
    /// Milliseconds from one sample to the next, as far as that is known; 0 otherwise.
    pub step: i64,
    /// Whether its values are rates of a counter.
    pub is_rate: bool,
    /// Its samples, in order of time.
    pub samples: Vec<Sample>,
}

/// What a selector of a query asks a source for.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// Which series.
    pub matchers: &'a Matchers,
    /// The first time that is evaluated, in milliseconds since 1970.
    pub start: i64,
    /// The last time that is evaluated.
    pub end: i64,
    /// Milliseconds from one evaluated time to the next; 0 if there is one only.
    pub step: i64,
    /// Milliseconds of the window before each evaluated time; `None` for the last sample before it.
    pub range: Option<i64>,
    /// Milliseconds for which a sample counts, if there is no window.
    pub lookback: i64,
    /// The function that is applied to windows, such as `max_over_time`.
    pub function: Option<&'a str>,
}

impl Request<'_> {
    /// How long a sample counts, if the source has one every `step` milliseconds: two steps, if these are longer
    /// than the usual lookback, since the next sample may not be there yet.
    pub fn lookback(&self, step: i64) -> i64 {
        self.lookback.max(step.saturating_mul(2))
    }

    /// The first time of which samples are needed, if the source has one every `step` milliseconds.
    pub fn first(&self, step: i64) -> i64 {
        let before = self.range.unwrap_or_else(|| self.lookback(step));
        self.start.saturating_sub(before)
    }
}

/// Series that can be selected.
pub trait SeriesSource {
    /// Gives all series that match, in any order, one after the other. Samples before
    /// [`Request::first`] and after [`Request::end`] may be left out.
    ///
    /// # Errors
    ///
    /// Those of `take`, and why series cannot be read.
    fn select(
        &self,
        request: &Request<'_>,
        take: &mut dyn FnMut(Series) -> Result<(), QueryError>,
    ) -> Result<(), QueryError>;
}
