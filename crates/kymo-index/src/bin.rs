//! What happened in a span of time.

use kymo_model::batch::RowId;

/// What happened in a span of time. Bins of any spans [add up](Self::add) to the bin of all these spans, in any
/// grouping; of sums of floating point numbers the last digits depend on it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Bin {
    /// Number of rows.
    pub count: u64,
    /// When the first one was, in nanoseconds.
    pub first: i64,
    /// When the last one was.
    pub last: i64,
    /// The event classes that were met: class `n` is bit `n`, and classes from 63 on share bit 63.
    pub classes: u64,
    /// The known values of a series; `None` where there was none.
    pub values: Option<Box<Values>>,
    /// The slices and states that ended here; `None` where there was none.
    pub slices: Option<Box<Slices>>,
}

/// Known values of a series.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Values {
    /// How many; NaNs do not count.
    pub count: u64,
    /// The least.
    pub min: f64,
    /// The greatest.
    pub max: f64,
    /// The last.
    pub last: f64,
    /// When the last one was.
    pub last_time: i64,
    /// Their sum.
    pub sum: f64,
}

/// Slices and states, in the span in which they ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Slices {
    /// How many ended.
    pub count: u64,
    /// How many rows end a slice of which no beginning is known.
    pub unpaired: u64,
    /// How long they took together, in nanoseconds.
    pub busy: u64,
    /// How long the longest one took.
    pub longest: u64,
    /// The row that began the longest one; of several the first in the recording.
    pub longest_row: RowId,
}

/// What a row adds to the bin of its track and time.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// When it was.
    pub time: i64,
    /// Its value of a series; NaN if it is missing or not known.
    pub(crate) value: f64,
    /// What it ends.
    pub(crate) slices: Option<Box<Slices>>,
    /// The bit of its class.
    pub(crate) class: u8,
}

impl Row {
    /// A row of an event class.
    #[inline]
    pub fn new(time: i64, class: usize) -> Self {
        Self {
            time,
            value: f64::NAN,
            slices: None,
            class: class.min(63) as u8,
        }
    }

    /// The same with a value of a series, if it is known.
    #[inline]
    pub fn with_value(mut self, value: Option<f64>) -> Self {
        self.value = value.unwrap_or(f64::NAN);
        self
    }

    /// The same with what it ends.
    #[inline]
    pub fn with_slices(mut self, slices: Option<Slices>) -> Self {
        self.slices = slices.map(Box::new);
        self
    }
}

impl Slices {
    /// A slice that ended.
    pub fn ended(duration: u64, began: RowId) -> Self {
        Self {
            count: 1,
            unpaired: 0,
            busy: duration,
            longest: duration,
            longest_row: began,
        }
    }

    /// A row that ends a slice that never began.
    pub fn unpaired() -> Self {
        Self {
            count: 0,
            unpaired: 1,
            busy: 0,
            longest: 0,
            longest_row: NO_ROW,
        }
    }

    fn add(&mut self, other: &Self) {
        self.count = self.count.saturating_add(other.count);
        self.unpaired = self.unpaired.saturating_add(other.unpaired);
        self.busy = self.busy.saturating_add(other.busy);
        let rank = |slices: &Self| (slices.longest, std::cmp::Reverse(slices.longest_row));
        if rank(other) > rank(self) {
            self.longest = other.longest;
            self.longest_row = other.longest_row;
        }
    }
}

/// Behind all rows.
pub(crate) const NO_ROW: RowId = RowId {
    recording: 0,
    stream: u32::MAX,
    chunk: u64::MAX,
    number: u64::MAX,
};

impl Values {
    fn add(&mut self, later: &Self) {
        self.count = self.count.saturating_add(later.count);
        self.min = self.min.min(later.min);
        self.max = self.max.max(later.max);
        self.sum += later.sum;
        if later.last_time >= self.last_time {
            self.last = later.last;
            self.last_time = later.last_time;
        }
    }
}

impl Default for Bin {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl Bin {
    /// Nothing happened.
    pub const EMPTY: Self = Self {
        count: 0,
        first: i64::MAX,
        last: i64::MIN,
        classes: 0,
        values: None,
        slices: None,
    };

    /// Adds a row. Of rows of the same time the last one is to be added last.
    #[inline]
    pub fn push(&mut self, row: &Row) {
        self.count = self.count.saturating_add(1);
        self.first = self.first.min(row.time);
        self.last = self.last.max(row.time);
        self.classes |= 1 << row.class;
        if !row.value.is_nan() {
            let value = row.value;
            let one = Values {
                count: 1,
                min: value,
                max: value,
                last: value,
                last_time: row.time,
                sum: value,
            };
            match &mut self.values {
                Some(values) => values.add(&one),
                None => self.values = Some(Box::new(one)),
            }
        }
        if let Some(slices) = &row.slices {
            self.add_slices(slices);
        }
    }

    /// Adds rows of which only times and classes count, in order of time; there is a class for each time. `are_few`: no
    /// class is beyond 63.
    pub(crate) fn push_all(&mut self, times: &[i64], classes: &[u32], are_few: bool) {
        let (Some(&first), Some(&last)) = (times.first(), times.last()) else {
            return;
        };
        self.count = self.count.saturating_add(times.len() as u64);
        self.first = self.first.min(first);
        self.last = self.last.max(last);
        let classes = classes.iter();
        self.classes |= match are_few {
            true => classes.fold(0, |all, class| all | 1 << (class & 63)),
            false => classes.fold(0, |all, &class| all | 1 << class.min(63)),
        };
    }

    fn add_slices(&mut self, other: &Slices) {
        match &mut self.slices {
            Some(slices) => slices.add(other),
            None => self.slices = Some(Box::new(*other)),
        }
    }

    /// The same bin, `nanos` nanoseconds later. Times that do not fit are clamped to their limits.
    #[must_use]
    pub fn later(mut self, nanos: i64) -> Self {
        self.first = self.first.saturating_add(nanos);
        self.last = self.last.saturating_add(nanos);
        if let Some(values) = &mut self.values {
            values.last_time = values.last_time.saturating_add(nanos);
        }
        self
    }

    /// Adds another bin. Where both have rows of the same time, the other's are the later ones.
    #[inline]
    pub fn add(&mut self, other: &Self) {
        self.count = self.count.saturating_add(other.count);
        self.first = self.first.min(other.first);
        self.last = self.last.max(other.last);
        self.classes |= other.classes;
        if let Some(later) = &other.values {
            match &mut self.values {
                Some(values) => values.add(later),
                None => self.values = Some(later.clone()),
            }
        }
        if let Some(slices) = &other.slices {
            self.add_slices(slices);
        }
    }
}
