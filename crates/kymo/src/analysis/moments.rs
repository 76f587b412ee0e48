//! Number, sum, mean, deviation, extremes and drift of durations, one after the other.

/// What is known of a sequence of durations, without keeping them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moments {
    count: u64,
    /// Nanoseconds.
    sum: u128,
    min: u64,
    max: u64,
    mean: f64,
    /// Sum of the squares of the distances from the mean.
    squares: f64,
    /// Sum of the products of the distances from the mean and from the mean position.
    products: f64,
}

impl Moments {
    /// Adds a duration in nanoseconds.
    #[inline]
    pub fn add(&mut self, nanos: u64) {
        // Welford's way: no sum of squares that would drown small differences.
        let value = nanos as f64;
        self.count += 1;
        // A conversion from signed numbers is one instruction, and there are never so many.
        let count = self.count.cast_signed() as f64;
        self.sum += u128::from(nanos);
        self.min = if self.count == 1 {
            nanos
        } else {
            self.min.min(nanos)
        };
        self.max = self.max.max(nanos);
        let distance = value - self.mean;
        self.mean += distance / count;
        let rest = value - self.mean;
        self.squares += distance * rest;
        // How far this position is from the mean of the positions 0, 1, ... before it.
        self.products += count / 2.0 * rest;
    }

    /// Adds those of another one, as if they came after these.
    pub fn merge(&mut self, later: &Self) {
        if self.count == 0 || later.count == 0 {
            if self.count == 0 {
                *self = *later;
            }
            return;
        }
        let (n, m) = (self.count as f64, later.count as f64);
        let weight = n * m / (n + m);
        let (distance, shift) = (later.mean - self.mean, (n + m) / 2.0);
        self.squares += later.squares + distance * distance * weight;
        self.products += later.products + shift * distance * weight;
        self.mean += distance * m / (n + m);
        self.min = self.min.min(later.min);
        self.max = self.max.max(later.max);
        self.sum += later.sum;
        self.count += later.count;
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Their sum in nanoseconds; at most what 64 bits hold.
    pub fn total(&self) -> u64 {
        u64::try_from(self.sum).unwrap_or(u64::MAX)
    }

    /// The shortest one, in nanoseconds; 0 if there are none.
    pub fn min(&self) -> u64 {
        self.min
    }

    /// The longest one, in nanoseconds; 0 if there are none.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// Their mean in nanoseconds; `None` if there are none.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// Their standard deviation in nanoseconds, as that of a sample (n - 1); `None` of fewer
    /// than two.
    pub fn deviation(&self) -> Option<f64> {
        (self.count > 1).then(|| (self.squares / (self.count - 1) as f64).sqrt())
    }

    /// The straight line that fits them best in the order they came: by least squares of the
    /// durations over their positions 0, 1, 2, ...; `None` of fewer than two.
    pub fn drift(&self) -> Option<Drift> {
        let mean = self.mean().filter(|_| self.count > 1)?;
        let count = self.count as f64;
        let positions = count * (count * count - 1.0) / 12.0;
        let slope = self.products / positions;
        // Where all are alike, no line explains more than another.
        let correlation = (self.squares > 0.0)
            .then(|| (self.products / (positions * self.squares).sqrt()).clamp(-1.0, 1.0));
        Some(Drift {
            offset: mean - slope * (count - 1.0) / 2.0,
            slope,
            correlation,
        })
    }
}

/// A straight line through durations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drift {
    /// The line's duration at the first one, in nanoseconds.
    pub offset: f64,
    /// By how much it grows from one to the next, in nanoseconds.
    pub slope: f64,
    /// Pearson's correlation of durations and positions; `None` where all durations are equal.
    pub correlation: Option<f64>,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// All of it the plain way, in two passes.
    fn plainly(values: &[u64]) -> (f64, f64, f64, f64, f64) {
        let n = values.len() as f64;
        let mean = values.iter().map(|&v| v as f64).sum::<f64>() / n;
        let middle = (n - 1.0) / 2.0;
        let (mut xx, mut xy, mut yy) = (0.0, 0.0, 0.0);
        for (x, &y) in values.iter().enumerate() {
            let (x, y) = (x as f64 - middle, y as f64 - mean);
            (xx, xy, yy) = (xx + x * x, xy + x * y, yy + y * y);
        }
        let slope = xy / xx;
        (
            mean,
            (yy / (n - 1.0)).sqrt(),
            mean - slope * middle,
            slope,
            xy / (xx * yy).sqrt(),
        )
    }

    fn near(a: f64, b: f64, scale: f64) -> bool {
        (a - b).abs() <= 1e-9 * scale.max(1.0)
    }

    proptest! {
        #[test]
        fn one_pass_finds_what_two_do(values in prop::collection::vec(0u64..1 << 40, 2..200)) {
            let mut moments = Moments::default();
            values.iter().for_each(|&value| moments.add(value));
            let (mean, deviation, offset, slope, correlation) = plainly(&values);
            let most = *values.iter().max().unwrap() as f64;
            let drift = moments.drift().unwrap();
            prop_assert!(near(moments.mean().unwrap(), mean, most));
            prop_assert!(near(moments.deviation().unwrap(), deviation, most));
            prop_assert!(near(drift.offset, offset, most));
            prop_assert!(near(drift.slope, slope, most));
            if let Some(found) = drift.correlation {
                prop_assert!(near(found, correlation, 1.0));
            }
            prop_assert_eq!(moments.total(), values.iter().sum::<u64>());
            prop_assert_eq!(moments.min(), *values.iter().min().unwrap());
            prop_assert_eq!(moments.max() as f64, most);
        }
    }

    proptest! {
        #[test]
        fn merged_ones_are_as_if_all_came_in_a_row(
            a in prop::collection::vec(0u64..1 << 40, 0..100),
            b in prop::collection::vec(0u64..1 << 40, 0..100),
        ) {
            let moments_of = |values: &[u64]| {
                let mut moments = Moments::default();
                values.iter().for_each(|&value| moments.add(value));
                moments
            };
            let mut merged = moments_of(&a);
            merged.merge(&moments_of(&b));
            let all = moments_of(&[a, b].concat());
            let key = |moments: &Moments| (moments.count(), moments.total(), moments.min(), moments.max());
            prop_assert_eq!(key(&merged), key(&all));
            let scale = all.max() as f64;
            let deviation = |moments: &Moments| moments.deviation().unwrap_or_default();
            prop_assert!(near(deviation(&merged), deviation(&all), scale));
            let slope = |moments: &Moments| moments.drift().map_or(0.0, |drift| drift.slope);
            prop_assert!(near(slope(&merged), slope(&all), scale));
        }
    }

    #[test]
    fn few_durations_have_no_deviation_and_equal_ones_no_correlation() {
        let mut moments = Moments::default();
        assert_eq!((moments.mean(), moments.deviation()), (None, None));
        moments.add(5);
        assert_eq!((moments.mean(), moments.deviation()), (Some(5.0), None));
        assert_eq!(moments.drift(), None);
        moments.add(5);
        assert_eq!(moments.deviation(), Some(0.0));
        let drift = moments.drift().unwrap();
        assert_eq!(
            (drift.offset, drift.slope, drift.correlation),
            (5.0, 0.0, None)
        );
        for _ in 0..3 {
            moments.add(u64::MAX);
        }
        assert_eq!(moments.total(), u64::MAX, "held at what fits");
    }
}
