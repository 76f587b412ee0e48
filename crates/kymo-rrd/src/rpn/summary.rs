//! One value of a whole series: what rrdtool's VDEF knows.

use super::evaluate::sort;
use super::series::Series;

/// A function that makes one value of a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Summary {
    /// The mean of the finite values.
    Average,
    /// The greatest value.
    Maximum,
    /// The least value.
    Minimum,
    /// The first known value.
    First,
    /// The last known value.
    Last,
    /// The sum of the finite values, each times the step.
    Total,
    /// The standard deviation of the finite values, which are all there are.
    StandardDeviation,
    /// The value that this percentage of the values does not exceed, where unknown is the least.
    Percentile(f64),
    /// The same of the known values.
    PercentileKnown(f64),
    /// How much the line of least squares rises from row to row.
    Slope,
    /// Where it begins.
    Intercept,
    /// How well it fits, from -1 to 1.
    Correlation,
}

impl Summary {
    /// The function of a name, such as `MAXIMUM`. Those of [a percentile](Self::needs_percentile)
    /// take this one.
    pub fn from_name(name: &str, percentile: f64) -> Option<Self> {
        Some(match name {
            "AVERAGE" => Self::Average,
            "MAXIMUM" => Self::Maximum,
            "MINIMUM" => Self::Minimum,
            "FIRST" => Self::First,
            "LAST" => Self::Last,
            "TOTAL" => Self::Total,
            "STDEV" => Self::StandardDeviation,
            "PERCENT" => Self::Percentile(percentile),
            "PERCENTNAN" => Self::PercentileKnown(percentile),
            "LSLSLOPE" => Self::Slope,
            "LSLINT" => Self::Intercept,
            "LSLCORREL" => Self::Correlation,
            _ => return None,
        })
    }

    /// Whether it is a percentile.
    pub const fn needs_percentile(&self) -> bool {
        matches!(self, Self::Percentile(_) | Self::PercentileKnown(_))
    }

    /// The value of a series; NaN where nothing is known.
    pub fn of(&self, series: &Series) -> f64 {
        let values = series.values();
        let known = || values.iter().copied().filter(|value| !value.is_nan());
        let finite = || values.iter().copied().filter(|value| value.is_finite());
        let sum = || finite().fold(0.0, |sum, value| sum + value);
        let count = finite().count() as f64;
        match *self {
            Self::First => known().next().unwrap_or(f64::NAN),
            Self::Last => known().next_back().unwrap_or(f64::NAN),
            Self::Maximum => extreme(known(), |value, most| value > most),
            Self::Minimum => extreme(known(), |value, least| value < least),
            Self::Percentile(percentile) => at_percentile(values.to_vec(), percentile),
            Self::PercentileKnown(percentile) => at_percentile(known().collect(), percentile),
            _ if count == 0.0 => f64::NAN,
            Self::Average => sum() / count,
            Self::Total => sum() * series.step() as f64,
            Self::StandardDeviation => {
                let mean = sum() / count;
                let squares = finite().fold(0.0, |sum, value| sum + (value - mean).powf(2.0));
                (squares / count).powf(0.5)
            }
            Self::Slope => Line::of(values).slope(),
            Self::Intercept => Line::of(values).intercept(),
            Self::Correlation => Line::of(values).correlation(),
        }
    }
}

impl Summary {
    /// The time of the value, in seconds since 1970: the end of its row, with [`Self::First`] its
    /// beginning. `None` for functions of all values together, and if nothing is known.
    pub fn time_in(&self, series: &Series) -> Option<i64> {
        let values = series.values();
        let row = match self {
            Self::First => values.iter().position(|value| !value.is_nan())?,
            Self::Last => values.iter().rposition(|value| !value.is_nan())? + 1,
            Self::Maximum | Self::Minimum => {
                let value = self.of(series);
                values.iter().position(|other| *other == value)? + 1
            }
            _ => return None,
        };
        // The end of the series does not overflow, and no row ends later.
        Some(series.start() + series.step() * row as i64)
    }
}

/// The first known value, or the finite one that is beyond it and all others.
fn extreme(mut known: impl Iterator<Item = f64>, beyond: impl Fn(f64, f64) -> bool) -> f64 {
    let Some(first) = known.next() else {
        return f64::NAN;
    };
    known.fold(first, |most, value| {
        if value.is_finite() && beyond(value, most) {
            value
        } else {
            most
        }
    })
}

fn at_percentile(mut values: Vec<f64>, percentile: f64) -> f64 {
    let Some(last) = values.len().checked_sub(1) else {
        return f64::NAN;
    };
    sort(&mut values);
    let place = (percentile * last as f64 / 100.0).round() as usize;
    values[place.min(last)]
}

/// The sums that a line of least squares is made of; rows count from 0, and so do infinite values
/// and unknown ones, which have no part in it.
#[derive(Default)]
struct Line {
    count: f64,
    x: f64,
    y: f64,
    xx: f64,
    xy: f64,
    yy: f64,
}

impl Line {
    fn of(values: &[f64]) -> Self {
        let mut sums = Self::default();
        for (row, &y) in values.iter().enumerate() {
            if !y.is_finite() {
                continue;
            }
            let x = row as f64;
            sums.count += 1.0;
            sums.x += x;
            sums.xx += x * x;
            sums.xy += x * y;
            sums.y += y;
            sums.yy += y * y;
        }
        sums
    }

    fn slope(&self) -> f64 {
        (self.x * self.y - self.count * self.xy) / (self.x * self.x - self.count * self.xx)
    }

    fn intercept(&self) -> f64 {
        (self.y - self.slope() * self.x) / self.count
    }

    fn correlation(&self) -> f64 {
        let spread = |square: f64, sum: f64| square - sum * sum / self.count;
        (self.xy - self.x * self.y / self.count)
            / (spread(self.xx, self.x) * spread(self.yy, self.y)).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const U: f64 = f64::NAN;

    fn of(name: &str, percentile: f64, values: &[f64]) -> f64 {
        let series = Series::new(0, 300, values.to_vec()).unwrap();
        Summary::from_name(name, percentile).unwrap().of(&series)
    }

    #[test]
    fn functions_do_what_the_manual_says() {
        let values = [U, 2.0, 4.0, U, 9.0, f64::INFINITY, 1.0, U];
        for (name, expected) in [
            ("AVERAGE", 4.0),
            // Infinite values count only where they come first.
            ("MAXIMUM", 9.0),
            ("MINIMUM", 1.0),
            ("FIRST", 2.0),
            ("LAST", 1.0),
            ("TOTAL", 4800.0),
            ("STDEV", (38.0f64 / 4.0).powf(0.5)),
        ] {
            assert_eq!(of(name, 0.0, &values), expected, "{name}");
        }
        assert_eq!(of("MAXIMUM", 0.0, &[f64::INFINITY, 1.0]), f64::INFINITY);
        assert_eq!(of("MINIMUM", 0.0, &[f64::INFINITY, 1.0]), 1.0);
    }

    #[test]
    fn some_values_have_a_time() {
        let series = Series::new(600, 300, vec![U, 4.0, 9.0, 9.0, 1.0, U]).unwrap();
        for (name, expected) in [
            ("MAXIMUM", Some(1500)),
            ("MINIMUM", Some(2100)),
            ("FIRST", Some(900)),
            ("LAST", Some(2100)),
            ("AVERAGE", None),
        ] {
            let summary = Summary::from_name(name, 0.0).unwrap();
            assert_eq!(summary.time_in(&series), expected, "{name}");
            let unknown = Series::new(600, 300, vec![U, U]).unwrap();
            assert_eq!(summary.time_in(&unknown), None, "{name}");
        }
    }

    #[test]
    fn percentiles_count_from_the_least() {
        let values = [40.0, U, 10.0, 30.0, 20.0];
        for (percentile, all, known) in [
            (0.0, U, 10.0),
            (25.0, 10.0, 20.0),
            (50.0, 20.0, 30.0),
            (100.0, 40.0, 40.0),
        ] {
            let found = of("PERCENT", percentile, &values);
            assert!(
                found == all || found.is_nan() && all.is_nan(),
                "{percentile}"
            );
            assert_eq!(of("PERCENTNAN", percentile, &values), known);
        }
    }

    #[test]
    fn lines_of_least_squares() {
        let values = [1.0, U, 5.0, 7.0];
        assert_eq!(of("LSLSLOPE", 0.0, &values), 2.0);
        assert_eq!(of("LSLINT", 0.0, &values), 1.0);
        assert_eq!(of("LSLCORREL", 0.0, &values), 1.0);
    }

    #[test]
    fn of_nothing_nothing_is_known() {
        let names = [
            "AVERAGE",
            "MAXIMUM",
            "MINIMUM",
            "FIRST",
            "LAST",
            "TOTAL",
            "STDEV",
            "PERCENT",
            "PERCENTNAN",
            "LSLSLOPE",
            "LSLINT",
            "LSLCORREL",
        ];
        for name in names {
            assert!(of(name, 50.0, &[]).is_nan(), "{name}");
            assert!(of(name, 50.0, &[U, U]).is_nan(), "{name}");
        }
        assert_eq!(Summary::from_name("MEDIAN", 0.0), None);
    }
}
