//! Series and where they come from.

use crate::{Pattern, TargetError};

/// A series with a value, or none, for each step.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// What it is called in the answer.
    pub name: String,
    /// The path that it was read from, of which functions take parts.
    pub path: String,
    /// Seconds since 1970 of the first value.
    pub start: i64,
    /// Seconds from one value to the next, at least 1.
    pub step: i64,
    /// The values.
    pub values: Vec<Option<f64>>,
}

impl Series {
    /// The time behind the last step.
    pub fn end(&self) -> i64 {
        let length = i64::try_from(self.values.len()).unwrap_or(i64::MAX);
        self.start.saturating_add(length.saturating_mul(self.step))
    }

    /// The same series with at most `most` values: means of several.
    #[must_use]
    pub fn consolidated(self, most: usize) -> Self {
        let most = most.max(1);
        if self.values.len() <= most {
            return self;
        }
        let each = self.values.len().div_ceil(most);
        let values = self
            .values
            .chunks(each)
            .map(|values| mean(values.iter().copied()));
        Self {
            values: values.collect(),
            step: self.step.saturating_mul(each as i64),
            ..self
        }
    }
}

/// The mean of the values that are known.
pub(crate) fn mean(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0.0);
    for value in values.flatten() {
        sum += value;
        count += 1.0;
    }
    (count > 0.0).then(|| sum / count)
}

/// The time that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Seconds since 1970.
    pub from: i64,
    /// The end.
    pub until: i64,
    /// How many values are enough.
    pub points: Option<usize>,
}

/// Series that can be read.
pub trait SeriesSource {
    /// All series whose paths match, ordered by path.
    ///
    /// # Errors
    ///
    /// Why they cannot be read.
    fn fetch(&self, pattern: &Pattern, window: &Window) -> Result<Vec<Series>, TargetError>;

    /// Accounts for a number of computed values.
    ///
    /// # Errors
    ///
    /// That they are too many, or take too long.
    fn spend(&self, values: usize) -> Result<(), TargetError>;
}
