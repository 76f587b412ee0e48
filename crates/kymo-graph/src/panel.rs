//! What is drawn in one pair of axes.

/// Series that share axes.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    /// What it shows.
    pub title: String,
    /// Unit of the values; empty if it is not known.
    pub unit: String,
    /// From when to when, in nanoseconds on the common time line.
    pub range: (i64, i64),
    /// Whether times count from the zero of a clock without an origin.
    pub is_relative: bool,
    /// The series, at most seven.
    pub series: Vec<Series>,
    /// When events were lost or damage was skipped, in nanoseconds.
    pub losses: Vec<i64>,
}

/// A panel has at most this number of series: the colours that people tell apart.
pub(crate) const MOST_SERIES: usize = 7;

/// Values over time.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Its name.
    pub name: String,
    /// Known values in the order of time.
    pub points: Vec<Point>,
    /// Points further apart than this, in nanoseconds, are not connected: nothing is known between them.
    pub gap: i64,
    /// Least, mean, greatest and last value; `None` if no value is known.
    pub stats: Option<Stats>,
}

/// A value, or the values of an interval that is too short to show each of them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// When the interval begins, in nanoseconds.
    pub begin: i64,
    /// When it ends; the same as `begin` for a value of one time.
    pub end: i64,
    /// The least value.
    pub min: f64,
    /// The mean of the values.
    pub mean: f64,
    /// The greatest value.
    pub max: f64,
}

/// What the legend shows of a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stats {
    /// The least value.
    pub min: f64,
    /// The mean of all values.
    pub mean: f64,
    /// The greatest value.
    pub max: f64,
    /// The last known value.
    pub last: f64,
}

/// Adds values up.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sum {
    count: u64,
    sum: f64,
    min: f64,
    max: f64,
    last: f64,
}

impl Sum {
    /// Adds a value; what is not finite is not known.
    pub(crate) fn add(&mut self, value: f64) {
        if !value.is_finite() {
            return;
        }
        (self.min, self.max) = match self.count {
            0 => (value, value),
            _ => (self.min.min(value), self.max.max(value)),
        };
        // A running mean does not overflow.
        self.count += 1;
        self.sum += (value - self.sum) / self.count as f64;
        self.last = value;
    }

    /// The values of an interval, if there is one.
    pub(crate) fn point(&self, begin: i64, end: i64) -> Option<Point> {
        (self.count > 0).then_some(Point {
            begin,
            end,
            min: self.min,
            mean: self.sum.clamp(self.min, self.max),
            max: self.max,
        })
    }

    /// The values of a legend.
    pub(crate) fn stats(&self) -> Option<Stats> {
        (self.count > 0).then_some(Stats {
            min: self.min,
            mean: self.sum.clamp(self.min, self.max),
            max: self.max,
            last: self.last,
        })
    }

    /// Appends later values.
    pub(crate) fn append(&mut self, later: &Self) {
        if later.count == 0 {
            return;
        }
        if self.count == 0 {
            *self = *later;
            return;
        }
        let count = self.count + later.count;
        self.sum += (later.sum - self.sum) * (later.count as f64 / count as f64);
        self.count = count;
        self.min = self.min.min(later.min);
        self.max = self.max.max(later.max);
        self.last = later.last;
    }
}
