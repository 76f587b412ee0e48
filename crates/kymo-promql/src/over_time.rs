//! Functions of the samples in a window.

use crate::ast::{Call, Kind};
use crate::eval::{ABSENT, Column, Evaluator, Grid, Value, is_absent, merge};
use crate::functions::{Signature, absent_labels};
use crate::select::Window;
use crate::{QueryError, Sample, Series};

/// The name that `holt_winters` has in Prometheus 3.
pub(crate) const SMOOTHING: &str = "double_exponential_smoothing";

const NAMES: [&str; 23] = [
    "absent_over_time",
    "avg_over_time",
    "changes",
    "count_over_time",
    "delta",
    "deriv",
    SMOOTHING,
    "first_over_time",
    "idelta",
    "increase",
    "irate",
    "last_over_time",
    "mad_over_time",
    "max_over_time",
    "min_over_time",
    "predict_linear",
    "present_over_time",
    "quantile_over_time",
    "rate",
    "resets",
    "stddev_over_time",
    "stdvar_over_time",
    "sum_over_time",
];

/// Whether there is such a function.
pub(crate) fn is_known(name: &str) -> bool {
    NAMES.binary_search(&name).is_ok()
}

/// How a function is called, if there is such a one.
pub(crate) fn signature(name: &str) -> Option<Signature> {
    use Kind::{Matrix, Scalar};
    let name = NAMES[NAMES.binary_search(&name).ok()?];
    let args: &[Kind] = match name {
        "predict_linear" => &[Matrix, Scalar],
        "quantile_over_time" => &[Scalar, Matrix],
        SMOOTHING => &[Matrix, Scalar, Scalar],
        _ => &[Matrix],
    };
    Some(Signature::new(name, args))
}

/// Functions of counters.
const OF_COUNTERS: [&str; 4] = ["rate", "increase", "irate", "resets"];

impl Evaluator<'_> {
    pub(crate) fn over_time(&self, call: &Call, grid: &Grid) -> Result<Value, QueryError> {
        let name = call.name;
        let args = &call.args;
        let missing = || QueryError::execution("an argument is missing");
        // The range vector comes second in one function, and so does a parameter in another.
        let (ranges, parameter) = match name {
            "quantile_over_time" => (args.get(1), args.first()),
            _ => (args.first(), args.get(1)),
        };
        let ranges = ranges.ok_or_else(missing)?;
        let parameters = match parameter {
            Some(parameter) => self.scalars(parameter, grid)?,
            None => Vec::new(),
        };
        let trends = match args.get(2) {
            Some(trend) => self.scalars(trend, grid)?,
            None => Vec::new(),
        };
        if name == SMOOTHING {
            check_factors(&parameters, "smoothing", "sf")?;
            check_factors(&trends, "trend", "tf")?;
        }
        let met = |series: &Series| {
            if series.is_rate && OF_COUNTERS.contains(&name) {
                let metric = series.labels.name();
                self.warn(|| {
                    format!(
                        "{name}() of {metric}: the values are rates per second already, since the database stores \
                         rates of the counter; use avg_over_time() instead"
                    )
                });
            }
        };
        let parameter =
            |window: &Window<'_>| parameters.get(window.step).copied().unwrap_or(f64::NAN);
        let compute = |window: &Window<'_>| {
            let samples = window.samples;
            let values = || samples.iter().map(|sample| sample.value);
            match name {
                "rate" => extrapolated(window, true, true),
                "increase" => extrapolated(window, true, false),
                "delta" => extrapolated(window, false, false),
                "irate" => of_last_two(samples, true),
                "idelta" => of_last_two(samples, false),
                "avg_over_time" => Some(average(samples)),
                "sum_over_time" => Some(sum(samples)),
                "count_over_time" => Some(samples.len() as f64),
                "min_over_time" => values().reduce(|least, value| {
                    if value < least || least.is_nan() {
                        value
                    } else {
                        least
                    }
                }),
                "max_over_time" => values().reduce(|most, value| {
                    if value > most || most.is_nan() {
                        value
                    } else {
                        most
                    }
                }),
                "first_over_time" => values().next(),
                "last_over_time" => values().next_back(),
                "present_over_time" | "absent_over_time" => Some(1.0),
                "stddev_over_time" => Some(variance(samples).sqrt()),
                "stdvar_over_time" => Some(variance(samples)),
                "quantile_over_time" => Some(quantile(
                    parameter(window),
                    &mut values().collect::<Vec<_>>(),
                )),
                "mad_over_time" => {
                    let median = quantile(0.5, &mut values().collect::<Vec<_>>());
                    let mut deviations: Vec<_> = values().map(|it| (it - median).abs()).collect();
                    Some(quantile(0.5, &mut deviations))
                }
                "changes" => Some(count_pairs(samples, |before, value| {
                    before != value && !(before.is_nan() && value.is_nan())
                })),
                "resets" => Some(count_pairs(samples, |before, value| value < before)),
                SMOOTHING => {
                    let trend = trends.get(window.step).copied().unwrap_or(f64::NAN);
                    smoothed(samples, parameter(window), trend)
                }
                "deriv" => (samples.len() >= 2).then(|| regression(samples, samples[0].time).0),
                "predict_linear" => (samples.len() >= 2).then(|| {
                    let (slope, intercept) = regression(samples, window.time);
                    slope * parameter(window) + intercept
                }),
                _ => None,
            }
        };
        let mut columns = self.over_windows(ranges, grid, name, compute, met)?;
        if name == "absent_over_time" {
            self.spend(grid.count)?;
            let mut values = vec![1.0; grid.count];
            for column in &columns {
                for (absent, value) in values.iter_mut().zip(&column.values) {
                    if !is_absent(*value) {
                        *absent = ABSENT;
                    }
                }
            }
            let labels = absent_labels(ranges);
            return Ok(Value::Vector(vec![Column { labels, values }]));
        }
        if name != "last_over_time" && name != "first_over_time" {
            for column in &mut columns {
                column.labels = column.labels.without_name();
            }
        }
        Ok(Value::Vector(merge(columns)?))
    }
}

/// The growth over the window, extrapolated to its ends where samples come near enough to these.
fn extrapolated(window: &Window<'_>, is_counter: bool, is_rate: bool) -> Option<f64> {
    let [first, .., last] = window.samples else {
        return None;
    };
    let mut growth = last.value - first.value;
    if is_counter {
        let pairs = window.samples.windows(2);
        // A counter that falls has begun at 0 again.
        growth += pairs
            .filter(|pair| pair[1].value < pair[0].value)
            .fold(0.0, |lost, pair| lost + pair[0].value);
    }
    let seconds = |from: i64, to: i64| to.saturating_sub(from) as f64 / 1000.0;
    let mut to_start = seconds(window.start, first.time);
    let to_end = seconds(last.time, window.end);
    let sampled = seconds(first.time, last.time);
    let interval = sampled / (window.samples.len() - 1) as f64;
    if is_counter && growth > 0.0 && first.value >= 0.0 {
        // No counter was below 0.
        to_start = to_start.min(sampled * (first.value / growth));
    }
    let near = interval * 1.1;
    let extend = |gap: f64| if gap < near { gap } else { interval / 2.0 };
    let whole = sampled + extend(to_start) + extend(to_end);
    let mut factor = whole / sampled;
    if is_rate {
        factor /= seconds(window.start, window.end);
    }
    Some(growth * factor)
}

/// The difference of the last two samples; if they are of a counter, for each second.
fn of_last_two(samples: &[Sample], is_rate: bool) -> Option<f64> {
    let [.., before, last] = samples else {
        return None;
    };
    let millis = last.time.saturating_sub(before.time);
    if millis == 0 {
        return None;
    }
    if !is_rate {
        return Some(last.value - before.value);
    }
    let growth = match last.value < before.value {
        true => last.value,
        false => last.value - before.value,
    };
    Some(growth / (millis as f64 / 1000.0))
}

/// A sum that keeps what each addition rounds away, as Neumaier does.
#[derive(Clone, Copy, Default)]
struct Compensated {
    sum: f64,
    lost: f64,
}

impl Compensated {
    fn add(&mut self, value: f64) {
        let sum = self.sum + value;
        if sum.is_infinite() {
            self.lost = 0.0;
        } else if self.sum.abs() >= value.abs() {
            self.lost += (self.sum - sum) + value;
        } else {
            self.lost += (value - sum) + self.sum;
        }
        self.sum = sum;
    }

    fn total(self) -> f64 {
        match self.sum.is_infinite() {
            true => self.sum,
            false => self.sum + self.lost,
        }
    }
}

fn sum(samples: &[Sample]) -> f64 {
    let mut sum = Compensated::default();
    samples.iter().for_each(|sample| sum.add(sample.value));
    sum.total()
}

fn average(samples: &[Sample]) -> f64 {
    let total = sum(samples);
    let count = samples.len() as f64;
    let is_finite = || samples.iter().all(|sample| sample.value.is_finite());
    if total.is_infinite() && is_finite() {
        // The sum is too large, but the mean is not.
        return samples.iter().map(|sample| sample.value / count).sum();
    }
    total / count
}

fn variance(samples: &[Sample]) -> f64 {
    let (mut count, mut mean, mut squares) = (0.0, Compensated::default(), Compensated::default());
    for sample in samples {
        count += 1.0;
        let delta = sample.value - mean.total();
        mean.add(delta / count);
        squares.add(delta * (sample.value - mean.total()));
    }
    squares.total() / count
}

/// The value below which this part of all values is, between two of them by their distance.
pub(crate) fn quantile(part: f64, values: &mut [f64]) -> f64 {
    if values.is_empty() || part.is_nan() {
        return f64::NAN;
    }
    if part < 0.0 {
        return f64::NEG_INFINITY;
    }
    if part > 1.0 {
        return f64::INFINITY;
    }
    // NaN comes first.
    values.sort_by(|a, b| {
        let by_nan = b.is_nan().cmp(&a.is_nan());
        by_nan.then_with(|| a.total_cmp(b))
    });
    let rank = part * (values.len() - 1) as f64;
    let below = rank.floor();
    let place = below as usize;
    let next = (place + 1).min(values.len() - 1);
    let weight = rank - below;
    values[place] * (1.0 - weight) + values[next] * weight
}

/// Refuses factors that do not lie between 0 and 1.
fn check_factors(factors: &[f64], what: &str, short: &str) -> Result<(), QueryError> {
    match factors
        .iter()
        .find(|factor| **factor <= 0.0 || **factor >= 1.0)
    {
        Some(wrong) => Err(QueryError::execution(format!(
            "invalid {what} factor. Expected: 0 < {short} < 1, got: {wrong:.6}"
        ))),
        None => Ok(()),
    }
}

/// The level after the last sample, with double exponential smoothing: each sample moves the level by the first factor,
/// each change of the level the trend by the second one.
fn smoothed(samples: &[Sample], level_factor: f64, trend_factor: f64) -> Option<f64> {
    let [first, second, ..] = samples else {
        return None;
    };
    let (mut before, mut level) = (0.0, first.value);
    let mut trend = second.value - first.value;
    for (place, sample) in samples.iter().enumerate().skip(1) {
        if place > 1 {
            trend = trend_factor * (level - before) + (1.0 - trend_factor) * trend;
        }
        let next = level_factor * sample.value + (1.0 - level_factor) * (level + trend);
        before = level;
        level = next;
    }
    Some(level)
}

fn count_pairs(samples: &[Sample], counts: impl Fn(f64, f64) -> bool) -> f64 {
    let pairs = samples.windows(2);
    pairs
        .filter(|pair| counts(pair[0].value, pair[1].value))
        .count() as f64
}

/// The slope for each second, and the value at a time, of the line through samples.
fn regression(samples: &[Sample], at: i64) -> (f64, f64) {
    let first = samples.first().map_or(f64::NAN, |sample| sample.value);
    if samples.iter().all(|sample| sample.value == first) {
        return match first.is_infinite() {
            true => (f64::NAN, f64::NAN),
            false => (0.0, first),
        };
    }
    let [mut x, mut y, mut xy, mut xx] = [Compensated::default(); 4];
    for sample in samples {
        let time = sample.time.saturating_sub(at) as f64 / 1000.0;
        x.add(time);
        y.add(sample.value);
        xy.add(time * sample.value);
        xx.add(time * time);
    }
    let count = samples.len() as f64;
    let covariance = xy.total() - x.total() * y.total() / count;
    let slope = covariance / (xx.total() - x.total() * x.total() / count);
    (slope, y.total() / count - slope * x.total() / count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted() {
        assert!(NAMES.is_sorted());
    }

    #[test]
    fn sums_keep_small_values() {
        let samples = [1e100, 1.0, -1e100].map(|value| Sample { time: 0, value });
        assert_eq!(sum(&samples), 1.0);
        assert_eq!(
            average(&[f64::MAX; 2].map(|value| Sample { time: 0, value })),
            f64::MAX
        );
    }

    #[test]
    fn quantiles_lie_between_values() {
        assert_eq!(quantile(0.5, &mut [3.0, 1.0, 2.0, 4.0]), 2.5);
        assert_eq!(quantile(1.0, &mut [3.0, f64::NAN]), 3.0);
        assert!(quantile(0.0, &mut [3.0, f64::NAN]).is_nan());
        assert_eq!(quantile(1.5, &mut [3.0]), f64::INFINITY);
    }
}
