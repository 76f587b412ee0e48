//! Distributions of numbers of any size and sign.

use std::collections::{BTreeMap, HashMap};

use foldhash::fast::RandomState;

/// Maximum count of numbers that are kept as they are.
const FEW: usize = 64;
/// Bits of the fraction that distinguish buckets: a bucket is narrower than 1/256 of the numbers in it.
const FINE: u32 = 8;
/// Buckets of a distribution; numbers for which there is none leave it without percentiles.
const MOST_BUCKETS: usize = 1 << 16;

/// What is known of numbers, without keeping them all.
#[derive(Clone, Debug, Default)]
pub struct Numbers {
    count: u64,
    mean: f64,
    squares: f64,
    min: f64,
    max: f64,
    has_fractions: bool,
    few: Vec<f64>,
    buckets: HashMap<i64, u64, RandomState>,
    /// Numbers that are in no bucket.
    uncounted: u64,
}

/// Numbers of a range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NumberRange {
    /// Where it begins.
    pub from: f64,
    /// Where it ends; the next one begins there.
    pub to: f64,
    /// How many there are.
    pub count: u64,
}

/// The bucket of a number; buckets are in the order of their numbers.
fn bucket_of(value: f64) -> i64 {
    // 0 and -0 are the same.
    let magnitude = (value.abs().to_bits() >> (52 - FINE)) as i64;
    if value < 0.0 { -magnitude } else { magnitude }
}

/// The number in the middle of a bucket.
fn middle(bucket: i64, whole: bool) -> f64 {
    let bits = bucket.unsigned_abs() << (52 - FINE);
    let half = 1 << (51 - FINE);
    let middle = match bucket {
        0 => 0.0,
        _ => f64::from_bits(bits | half),
    };
    // The integers of a small bucket are one.
    let middle = if whole { middle.floor() } else { middle };
    if bucket < 0 { -middle } else { middle }
}

impl Numbers {
    /// Adds a finite number.
    pub fn add(&mut self, value: f64) {
        let is_first = self.count == 0;
        self.count += 1;
        self.min = if is_first { value } else { self.min.min(value) };
        self.max = if is_first { value } else { self.max.max(value) };
        self.has_fractions |= value.fract() != 0.0;
        let distance = value - self.mean;
        self.mean += distance / self.count as f64;
        self.squares += distance * (value - self.mean);
        if self.count <= FEW as u64 {
            self.few.push(value);
            return;
        }
        for known in std::mem::take(&mut self.few) {
            self.put(known);
        }
        self.put(value);
    }

    fn put(&mut self, value: f64) {
        let bucket = bucket_of(value);
        if self.buckets.len() < MOST_BUCKETS || self.buckets.contains_key(&bucket) {
            *self.buckets.entry(bucket).or_default() += 1;
        } else {
            self.uncounted += 1;
        }
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The least.
    pub fn min(&self) -> Option<f64> {
        (self.count > 0).then_some(self.min)
    }

    /// The greatest.
    pub fn max(&self) -> Option<f64> {
        (self.count > 0).then_some(self.max)
    }

    /// Their mean.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then_some(self.mean)
    }

    /// Their standard deviation, as that of a sample (n - 1).
    pub fn deviation(&self) -> Option<f64> {
        (self.count > 1).then(|| (self.squares / (self.count - 1) as f64).sqrt())
    }

    /// About each number and how often it comes, in order.
    pub(super) fn sorted(&self) -> Vec<(f64, u64)> {
        if !self.few.is_empty() {
            let mut few: Vec<(f64, u64)> = self.few.iter().map(|&value| (value, 1)).collect();
            few.sort_by(|a, b| a.0.total_cmp(&b.0));
            return few;
        }
        let mut buckets: Vec<(i64, u64)> = self
            .buckets
            .iter()
            .map(|(&at, &count)| (at, count))
            .collect();
        buckets.sort_unstable();
        let whole = !self.has_fractions;
        let numbers = buckets.into_iter();
        numbers
            .map(|(bucket, count)| (middle(bucket, whole).clamp(self.min, self.max), count))
            .collect()
    }

    /// The middle of each bucket and how many numbers it has, in order; no matter how few they are.
    pub(super) fn buckets(&self) -> Vec<(f64, u64)> {
        let mut buckets: BTreeMap<i64, u64> = self
            .buckets
            .iter()
            .map(|(&at, &count)| (at, count))
            .collect();
        for &value in &self.few {
            *buckets.entry(bucket_of(value)).or_default() += 1;
        }
        let all = buckets.into_iter();
        all.map(|(bucket, count)| (middle(bucket, false), count))
            .collect()
    }

    /// The number that `thousandths` of all do not exceed, to within 0.4 %.
    pub fn percentile(&self, thousandths: u32) -> Option<f64> {
        if self.uncounted > 0 {
            return None;
        }
        let share = u128::from(self.count) * u128::from(thousandths);
        let place = (share.div_ceil(1000) as u64).max(1);
        let mut before = 0;
        let sorted = self.sorted();
        let found = sorted.iter().find(|(_, count)| {
            before += count;
            before >= place
        })?;
        Some(found.0)
    }

    /// A few ranges of equal width that cover all numbers.
    pub fn ranges(&self) -> Vec<NumberRange> {
        const RANGES: f64 = 16.0;
        if self.count == 0 {
            return Vec::new();
        }
        let step = round_step((self.max - self.min) / RANGES, self.has_fractions);
        let first = (self.min / step).floor();
        let number =
            |value: f64| ((value / step).floor() - first).clamp(0.0, 2.0 * RANGES) as usize;
        let ranges = 0..=number(self.max);
        let mut ranges: Vec<NumberRange> = ranges
            .map(|at| NumberRange {
                from: (first + at as f64) * step,
                to: (first + at as f64 + 1.0) * step,
                count: 0,
            })
            .collect();
        for (value, count) in self.sorted() {
            if let Some(range) = ranges.get_mut(number(value)) {
                range.count += count;
            }
        }
        ranges
    }
}

/// 1, 2 or 5 times a power of ten that is not less than a width.
fn round_step(width: f64, has_fractions: bool) -> f64 {
    let least = if has_fractions {
        f64::MIN_POSITIVE
    } else {
        1.0
    };
    if !(width > least && width.is_finite()) {
        return if width.is_finite() { 1.0 } else { 1e307 };
    }
    let power = 10f64.powf(width.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|digit| digit * power);
    steps
        .into_iter()
        .find(|step| *step >= width)
        .unwrap_or(width)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn they_are_what_the_list_says(
            values in prop::collection::vec(prop_oneof![
                (-1e6f64..1e6), (-300i64..300).prop_map(|value| value as f64), Just(0.0),
            ], 1..300),
            thousandths in 0u32..=1000,
        ) {
            let mut numbers = Numbers::default();
            values.iter().for_each(|&value| numbers.add(value));
            let n = values.len() as f64;
            let mean = values.iter().sum::<f64>() / n;
            let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
            prop_assert!((numbers.mean().unwrap() - mean).abs() < 1e-6);
            if values.len() > 1 {
                prop_assert!((numbers.deviation().unwrap() - (squares / (n - 1.0)).sqrt()).abs() < 1e-5);
            }
            let mut sorted = values.clone();
            sorted.sort_by(f64::total_cmp);
            let place = (values.len() * thousandths as usize).div_ceil(1000).max(1);
            let (exact, found) = (sorted[place - 1], numbers.percentile(thousandths).unwrap());
            prop_assert!((exact - found).abs() <= exact.abs() * 0.004, "{} {}", exact, found);
            prop_assert_eq!((numbers.min(), numbers.max()), (sorted.first().copied(), sorted.last().copied()));
            prop_assert_eq!(numbers.ranges().iter().map(|range| range.count).sum::<u64>(), values.len() as u64);
        }
    }

    #[test]
    fn small_integers_are_exact() {
        let mut numbers = Numbers::default();
        (0..1000).for_each(|value| numbers.add(f64::from(value % 500) - 200.0));
        for thousandths in [1_u32, 250, 500, 999] {
            let exact = f64::from((500 * thousandths).div_ceil(1000)) - 201.0;
            assert_eq!(numbers.percentile(thousandths), Some(exact));
        }
        assert_eq!(Numbers::default().percentile(500), None);
        let mut one = Numbers::default();
        one.add(f64::MAX);
        one.add(f64::MIN);
        assert_eq!(one.ranges().iter().map(|range| range.count).sum::<u64>(), 2);
    }
}
