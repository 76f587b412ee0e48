//! Bins of equal length, which grow with the range of time that they cover.

use std::collections::BTreeMap;

use crate::panel::{MOST_SERIES, Point, Sum};

/// The bins of all series: how long a bin is, as a power of two nanoseconds.
///
/// Bins begin short and become twice as long until those of the range are few enough, so that rows are read once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Length {
    bits: u32,
    most: i64,
    range: Option<(i64, i64)>,
}

impl Length {
    /// At most about this number of bins.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            bits: 0,
            most: i64::try_from(most.max(2)).unwrap_or(i64::MAX),
            range: None,
        }
    }

    /// Covers a time; whether bins became longer.
    pub(crate) fn cover(&mut self, time: i64) -> bool {
        let (begin, end) = self.range.unwrap_or((time, time));
        let (begin, end) = (begin.min(time), end.max(time));
        self.range = Some((begin, end));
        let before = self.bits;
        while i128::from(end >> self.bits) - i128::from(begin >> self.bits) >= i128::from(self.most)
        {
            self.bits += 1;
        }
        self.bits > before
    }

    /// The number of the bin of a time.
    pub(crate) fn bin(&self, time: i64) -> i64 {
        time >> self.bits
    }

    /// When a bin begins and ends, in nanoseconds.
    pub(crate) fn times(&self, bin: i64) -> (i64, i64) {
        let begin = i128::from(bin) << self.bits;
        let end = begin + (1i128 << self.bits);
        let fit = |time: i128| i64::try_from(time).unwrap_or(i64::MAX);
        (fit(begin), fit(end))
    }

    /// The first and the last time.
    pub(crate) fn range(&self) -> Option<(i64, i64)> {
        self.range
    }

    /// The same, of at least one nanosecond.
    pub(crate) fn whole_range(&self) -> (i64, i64) {
        let (begin, end) = self.range.unwrap_or((0, 0));
        (begin, end.max(begin.saturating_add(1)))
    }

    /// How much longer bins are than those of a length before.
    pub(crate) fn since(&self, before: &Self) -> u32 {
        self.bits - before.bits
    }
}

/// The bins of one series of values.
#[derive(Debug)]
pub(crate) struct Bins {
    length: Length,
    bins: BTreeMap<i64, Sum>,
}

impl Bins {
    pub(crate) fn new(length: Length) -> Self {
        Self {
            length,
            bins: BTreeMap::new(),
        }
    }

    /// Takes bins of another length, which is at least the one before.
    fn lengthen(&mut self, length: &Length) {
        let bits = length.since(&self.length);
        self.length = *length;
        if bits == 0 {
            return;
        }
        for (bin, sum) in std::mem::take(&mut self.bins) {
            self.bins.entry(bin >> bits).or_default().append(&sum);
        }
    }

    /// Adds a value of a time that the length covers.
    pub(crate) fn add(&mut self, length: &Length, time: i64, value: f64) {
        self.lengthen(length);
        self.bins.entry(length.bin(time)).or_default().add(value);
    }

    /// Adds the values of another series.
    pub(crate) fn append(&mut self, mut other: Self, length: &Length) {
        self.lengthen(length);
        other.lengthen(length);
        for (bin, sum) in other.bins {
            self.bins.entry(bin).or_default().append(&sum);
        }
    }

    /// The points of all bins that have values, each in the middle of its bin, and their sum.
    pub(crate) fn points(mut self, length: &Length) -> (Vec<Point>, Sum) {
        self.lengthen(length);
        let mut all = Sum::default();
        let point = |(bin, sum): (&i64, &Sum)| {
            all.append(sum);
            let (begin, end) = length.times(*bin);
            let middle = begin + (end - begin) / 2;
            sum.point(middle, middle)
        };
        (self.bins.iter().filter_map(point).collect(), all)
    }
}

/// The name of what is not counted apart.
pub(crate) const OTHER: &str = "other";

/// The busiest of some series by their totals; the rest is merged into one.
pub(crate) fn busiest<T>(
    mut counted: Vec<(String, u64, T)>,
    mut merge: impl FnMut(&mut T, T),
) -> Vec<(String, T)> {
    let is_rest = |name: &str| name == OTHER;
    counted.sort_by(|(a_name, a, _), (b_name, b, _)| {
        (is_rest(a_name), b, a_name).cmp(&(is_rest(b_name), a, b_name))
    });
    let all = counted.len();
    let mut series: Vec<(String, T)> = Vec::new();
    for (position, (name, _, content)) in counted.into_iter().enumerate() {
        if all <= MOST_SERIES || position < MOST_SERIES - 1 {
            series.push((name, content));
        } else if position == MOST_SERIES - 1 {
            series.push((format!("{} others", all - position), content));
        } else if let Some((_, rest)) = series.last_mut() {
            merge(rest, content);
        }
    }
    series
}

/// The numbers of events of one series.
#[derive(Debug)]
pub(crate) struct Counts {
    length: Length,
    bins: BTreeMap<i64, u64>,
    /// The total of all bins.
    pub(crate) total: u64,
}

impl Counts {
    pub(crate) fn new(length: Length) -> Self {
        Self {
            length,
            bins: BTreeMap::new(),
            total: 0,
        }
    }

    fn lengthen(&mut self, length: &Length) {
        let bits = length.since(&self.length);
        self.length = *length;
        if bits == 0 {
            return;
        }
        for (bin, count) in std::mem::take(&mut self.bins) {
            *self.bins.entry(bin >> bits).or_default() += count;
        }
    }

    /// Counts an event of a time that the length covers.
    pub(crate) fn add(&mut self, length: &Length, time: i64) {
        self.lengthen(length);
        *self.bins.entry(length.bin(time)).or_default() += 1;
        self.total += 1;
    }

    /// Adds the events of another series.
    pub(crate) fn append(&mut self, mut other: Self, length: &Length) {
        self.lengthen(length);
        other.lengthen(length);
        for (bin, count) in other.bins {
            *self.bins.entry(bin).or_default() += count;
        }
        self.total += other.total;
    }

    /// The rates per second in all bins of the range, those without events included. The first and the last
    /// bin count for as much of them as lies in the range.
    pub(crate) fn rates(mut self, length: &Length) -> (Vec<Point>, Sum) {
        self.lengthen(length);
        let Some((begin, end)) = length.range() else {
            return (Vec::new(), Sum::default());
        };
        let mut all = Sum::default();
        let mut points = Vec::new();
        for bin in length.bin(begin)..=length.bin(end) {
            let (from, to) = length.times(bin);
            let (from, to) = (from.max(begin), to.min(end.saturating_add(1)));
            let count = self.bins.get(&bin).copied().unwrap_or(0);
            let seconds = to.saturating_sub(from).max(1) as f64 / 1e9;
            let mut rate = Sum::default();
            rate.add(count as f64 / seconds);
            all.append(&rate);
            points.extend(rate.point(from, to));
        }
        (points, all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_busiest_are_kept_apart() {
        let counted = |count: u64| (0..count).map(|n| (format!("{n}"), n, n)).collect();
        let merge = |into: &mut u64, from| *into += from;
        assert_eq!(busiest(counted(7), merge).len(), 7);
        let series = busiest(counted(10), merge);
        assert_eq!(series.len(), 7);
        assert_eq!(series[0], ("9".into(), 9));
        assert_eq!(series[6], ("4 others".into(), 6));
    }

    #[test]
    fn bins_become_longer_and_keep_what_they_have() {
        let mut length = Length::new(4);
        let mut counts = Counts::new(length);
        let mut bins = Bins::new(length);
        for time in -50..50 {
            length.cover(time);
            counts.add(&length, time);
            bins.add(&length, time, time as f64);
        }
        let (rates, _) = counts.rates(&length);
        assert!(rates.len() <= 5, "{rates:?}");
        let events: f64 = rates
            .iter()
            .map(|point| point.mean * (point.end - point.begin) as f64 / 1e9)
            .sum();
        assert!((events - 100.0).abs() < 1e-6, "{events}");
        let (points, all) = bins.points(&length);
        assert!(points.len() <= 5);
        let stats = all.stats().unwrap();
        assert_eq!((stats.min, stats.max, stats.last), (-50.0, 49.0, 49.0));
        assert!((stats.mean + 0.5).abs() < 1e-9);
    }

    #[test]
    fn all_of_time_is_covered() {
        let mut length = Length::new(2);
        length.cover(i64::MIN);
        length.cover(i64::MAX);
        let mut counts = Counts::new(length);
        counts.add(&length, i64::MAX);
        let (rates, _) = counts.rates(&length);
        assert_eq!(rates.len(), 2);
    }
}
