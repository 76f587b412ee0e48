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
    /// What is drawn.
    pub content: Content,
    /// When events were lost or damage was skipped, in nanoseconds.
    pub losses: Vec<i64>,
}

/// What is drawn in the axes of a panel.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// Values over time: at most seven series.
    Series(Vec<Series>),
    /// How often which duration occurred, over time.
    Heat(Heat),
    /// What was in which state when.
    Lanes(Lanes),
}

impl Panel {
    /// The series; none if something else is drawn.
    pub fn series(&self) -> &[Series] {
        match &self.content {
            Content::Series(series) => series,
            _ => &[],
        }
    }
}

/// Durations over time: the number in each cell of a grid whose rows are [ranges of durations](Heat::bound).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Heat {
    /// The columns in the order of time.
    pub columns: Vec<HeatColumn>,
    /// The count of each row that has some, over all columns.
    pub totals: Vec<(u32, u64)>,
    /// Percentiles, and others that are marked: names, and nanoseconds.
    pub marks: Vec<(String, u64)>,
    /// Facts for the legend.
    pub facts: Vec<(String, String)>,
}

/// A column of a heat map.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HeatColumn {
    /// When it begins, in nanoseconds.
    pub begin: i64,
    /// When it ends.
    pub end: i64,
    /// The count of each row that has some.
    pub counts: Vec<(u32, u64)>,
}

impl Heat {
    /// The row of a duration in nanoseconds: four rows each time durations double.
    pub fn row(nanos: u64) -> u32 {
        let nanos = nanos.max(1);
        let power = nanos.ilog2();
        let quarter = (u128::from(nanos) << 2 >> power) & 3;
        4 * power + quarter as u32
    }

    /// The least duration of a row, in nanoseconds.
    pub fn bound(row: u32) -> f64 {
        f64::from(4 + row % 4) / 4.0 * 2f64.powi((row / 4) as i32)
    }
}

/// States over time, in lanes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lanes {
    /// The lanes from top to bottom.
    pub lanes: Vec<Lane>,
    /// The states that have a colour, each with the time in it in nanoseconds.
    pub states: Vec<(String, u64)>,
    /// Lanes that are left out.
    pub more: usize,
}

/// States that exclude each other.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lane {
    /// Its name.
    pub name: String,
    /// The time in states, in nanoseconds.
    pub total: u64,
    /// The states in the order of time.
    pub runs: Vec<Run>,
}

/// A state, or the state that took most of an interval too short to show each.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Run {
    /// When it begins, in nanoseconds.
    pub begin: i64,
    /// When it ends.
    pub end: i64,
    /// Position among [`Lanes::states`]; `None` for one without a colour of its own.
    pub state: Option<usize>,
    /// How much of the interval is spent in states, from 0 to 1.
    pub share: f64,
}

/// Maximum number of series in a panel: the number of colours that people can distinguish.
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
