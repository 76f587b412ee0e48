//! Statistics of fields, in bounded memory.

use std::collections::BTreeMap;

/// Values of which percentiles are exact.
const MOST_EXACT: usize = 4096;

/// Beyond these, a percentile is off by one part in a hundred at most.
const RATIO: f64 = 1.02;

/// Statistics of the values of a field.
#[derive(Clone, Debug, Default)]
pub(crate) struct Values {
    pub(crate) count: u64,
    pub(crate) min: f64,
    pub(crate) max: f64,
    pub(crate) sum: f64,
    mean: f64,
    /// The sum of squares of distances from the mean (Welford).
    squares: f64,
    exact: Vec<f64>,
    /// By the logarithm of the value: negative ones first.
    buckets: BTreeMap<(i8, i32), u64>,
}

impl Values {
    /// Adds a value that is a number.
    pub(crate) fn push(&mut self, value: f64) {
        if value.is_nan() {
            return;
        }
        self.min = if self.count == 0 {
            value
        } else {
            self.min.min(value)
        };
        self.max = if self.count == 0 {
            value
        } else {
            self.max.max(value)
        };
        self.count += 1;
        self.sum += value;
        let from_mean = value - self.mean;
        self.mean += from_mean / self.count as f64;
        self.squares += from_mean * (value - self.mean);
        if self.buckets.is_empty() && self.exact.len() < MOST_EXACT {
            self.exact.push(value);
            return;
        }
        for value in std::mem::take(&mut self.exact) {
            *self.buckets.entry(bucket(value)).or_default() += 1;
        }
        *self.buckets.entry(bucket(value)).or_default() += 1;
    }

    /// Whether percentiles are exact.
    pub(crate) fn is_exact(&self) -> bool {
        self.buckets.is_empty()
    }

    pub(crate) fn mean(&self) -> f64 {
        self.mean
    }

    /// The standard deviation of all values.
    pub(crate) fn deviation(&self) -> f64 {
        match self.count {
            0 => 0.0,
            count => (self.squares / count as f64).max(0.0).sqrt(),
        }
    }

    /// For each number of thousandths, the smallest value that this share of all values does not exceed.
    pub(crate) fn percentiles<const N: usize>(&self, thousandths: [u64; N]) -> [f64; N] {
        let mut exact = self.exact.clone();
        exact.sort_by(f64::total_cmp);
        thousandths.map(|thousandths| {
            let rank = (self.count.saturating_mul(thousandths))
                .div_ceil(1000)
                .max(1);
            if self.is_exact() {
                return exact.get(rank as usize - 1).copied().unwrap_or(f64::NAN);
            }
            let mut before = 0;
            for (&key, &count) in &self.buckets {
                before += count;
                if before >= rank {
                    return middle(key).clamp(self.min, self.max);
                }
            }
            self.max
        })
    }
}

fn bucket(value: f64) -> (i8, i32) {
    if value == 0.0 {
        return (0, 0);
    }
    let sign = if value > 0.0 { 1 } else { -1 };
    let power = (value.abs().ln() / RATIO.ln()).floor() as i32;
    (sign, i32::from(sign).saturating_mul(power))
}

fn middle((sign, power): (i8, i32)) -> f64 {
    let low = RATIO.powi(i32::from(sign).saturating_mul(power));
    f64::from(sign) * low * (1.0 + RATIO) / 2.0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn statistics_are_those_of_the_values(values in prop::collection::vec(-1e6f64..1e6, 1..9000)) {
            let mut stats = Values::default();
            values.iter().for_each(|&value| stats.push(value));
            let mut sorted = values.clone();
            sorted.sort_by(f64::total_cmp);
            prop_assert_eq!(stats.count, values.len() as u64);
            prop_assert_eq!(stats.min, sorted[0]);
            prop_assert_eq!(stats.max, sorted[sorted.len() - 1]);
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            prop_assert!((stats.mean() - mean).abs() <= 1e-6 * (1.0 + mean.abs()));
            for (thousandths, found) in [500, 950, 990].into_iter().zip(stats.percentiles([500, 950, 990])) {
                let rank = (values.len() * thousandths).div_ceil(1000).max(1);
                let exact = sorted[rank - 1];
                let off = if stats.is_exact() { 0.0 } else { 0.011 * exact.abs() };
                prop_assert!((found - exact).abs() <= off, "{found} {exact}");
            }
        }
    }
}
