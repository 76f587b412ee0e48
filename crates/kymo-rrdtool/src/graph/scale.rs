//! The values of each pixel, and the range of the y axis.

use super::compute::Known;
use super::elements::{Kind, Shown};
use super::options::{GraphOptions, YGrid};
use super::script::Script;

/// What lines, areas and ticks show: a value for each pixel.
#[derive(Debug)]
pub(crate) struct Columns {
    /// For each element; empty for other ones.
    pub(crate) values: Vec<Vec<f64>>,
    /// The range of the axis.
    pub(crate) range: Range,
}

/// The least and the greatest value of an axis, and its unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Range {
    pub(crate) min: f64,
    pub(crate) max: f64,
    /// The power of the base that fits the values.
    pub(crate) factor: f64,
    /// What labels are multiplied by after they are divided by that.
    pub(crate) view: f64,
    /// The prefix of the unit.
    pub(crate) symbol: char,
}

/// Whether two numbers differ by as little as `float` can distinguish, or four times that.
pub(crate) fn nearly_equal(a: f64, b: f64) -> bool {
    let order = |value: f64| {
        let bits = (value as f32).to_bits() as i32;
        match bits < 0 {
            true => i64::from(i32::MIN) - i64::from(bits),
            false => i64::from(bits),
        }
    };
    order(a).abs_diff(order(b)) <= 4
}

impl Columns {
    /// Finds the value of each pixel of an axis that is `width` pixels wide.
    pub(crate) fn new(
        script: &Script,
        known: &[Known],
        options: &GraphOptions,
        (start, end): (i64, i64),
        width: u32,
    ) -> Self {
        let step = (end - start) as f64 / f64::from(width);
        let pixels = width as usize;
        let mut values: Vec<Vec<f64>> = Vec::with_capacity(script.elements.len());
        let (mut min, mut max) = (f64::NAN, f64::NAN);
        // What the next element stands on.
        let mut sums = vec![0.0; pixels];
        for element in &script.elements {
            let Some(curve) = element.kind.curve() else {
                values.push(Vec::new());
                continue;
            };
            let is_tick = matches!(element.kind, Kind::Tick { .. });
            let source = match curve.shown {
                Shown::Number(value) => Ok(value),
                Shown::Variable(variable) => match &known[variable] {
                    Known::Value { value, .. } => Ok(*value),
                    Known::Series(series) => Err(series),
                },
            };
            let mut column = Vec::with_capacity(pixels);
            for (pixel, sum) in sums.iter_mut().enumerate() {
                if !curve.stack {
                    *sum = 0.0;
                }
                let value = match source {
                    Ok(value) => value,
                    Err(series) => {
                        // Times are whole seconds.
                        let time = (start as f64 + step * pixel as f64) as i64;
                        series.value_from(time)
                    }
                };
                if value.is_nan() {
                    column.push(f64::NAN);
                    continue;
                }
                *sum += value;
                column.push(*sum);
                if !sum.is_finite() || is_tick || curve.skip_scale {
                    continue;
                }
                if (min.is_nan() || *sum < min) && !(options.logarithmic && *sum <= 0.0) {
                    min = *sum;
                }
                if max.is_nan() || *sum > max {
                    max = *sum;
                }
            }
            values.push(column);
        }
        Self {
            values,
            range: Range::new(options, min, max),
        }
    }
}

impl Range {
    /// The range of an axis whose values are from `min` to `max`; NaN if there are none.
    fn new(options: &GraphOptions, mut min: f64, mut max: f64) -> Self {
        if options.logarithmic {
            if min.is_nan() || max.is_nan() || max <= 0.0 {
                (min, max) = (0.0, 5.1);
            }
            if min <= 0.0 {
                min = max / 1e9;
            }
        } else if min.is_nan() || max.is_nan() {
            (min, max) = (0.0, 1.0);
        }
        let (below, above) = if options.logarithmic {
            (0.5, 2.0)
        } else {
            (1.0, 1.0)
        };
        let (lower, upper) = (options.lower, options.upper);
        let (rigid, shrinks) = (options.rigid, options.rigid && options.allow_shrink);
        let keeps_lower = !lower.is_nan() && (rigid || lower <= min) && !(shrinks && lower < min);
        let keeps_upper = !upper.is_nan() && (rigid || upper >= max) && !(shrinks && upper > max);
        let mut least = if keeps_lower { lower } else { min * below };
        let mut most = if keeps_upper { upper } else { max * above };
        if least > most {
            least = match least > 0.0 {
                true => 0.99 * most,
                false => 1.01 * most,
            };
        }
        if nearly_equal(least, most) {
            most *= if most > 0.0 { 1.01 } else { 0.99 };
            if nearly_equal(most, 0.0) {
                most = 1.0;
            }
        }
        let mut range = Self {
            min: least,
            max: most,
            factor: 1.0,
            view: 1.0,
            symbol: ' ',
        };
        if !options.logarithmic {
            range.find_unit(options);
            if !rigid || options.allow_shrink {
                range.expand(options);
            }
        }
        range
    }

    fn find_unit(&mut self, options: &GraphOptions) {
        const SYMBOLS: [char; 17] = [
            'y', 'z', 'a', 'f', 'p', 'n', 'u', 'm', ' ', 'k', 'M', 'G', 'T', 'P', 'E', 'Z', 'Y',
        ];
        let greatest = self.min.abs().max(self.max.abs());
        let digits = (greatest.ln() / options.base.ln()).floor();
        let shown = match options.units_exponent {
            Some(exponent) => f64::from(exponent / 3),
            None => digits,
        };
        self.factor = options.base.powf(digits);
        // rrdtool keeps it as a `float`.
        self.view = f64::from((self.factor / options.base.powf(shown)) as f32);
        let place = shown + 8.0;
        self.symbol = match (0.0..SYMBOLS.len() as f64).contains(&place) {
            true => SYMBOLS[place as usize],
            false => '?',
        };
    }

    /// Makes the range larger, so that it ends with round numbers or a bit beyond the values.
    fn expand(&mut self, options: &GraphOptions) {
        if let YGrid::Lines { step, label } = options.y_grid {
            let step = f64::from(label) * step;
            self.min = step * (self.min / step).floor();
            self.max = step * (self.max / step).ceil();
            return;
        }
        let tenth = (self.max - self.min) * 0.1;
        if options.alt_autoscale {
            let height = self.max - self.min;
            let greatest = self.min.abs().max(self.max.abs());
            let least = 2.0 * 10f64.powf((greatest / self.factor).log10().floor() - 2.0);
            let more = match height < least {
                true => (least - height) * 0.55,
                false => tenth,
            };
            self.min -= more;
            self.max += more;
        } else if options.alt_autoscale_min {
            self.min -= tenth;
        } else if options.alt_autoscale_max {
            self.max += tenth;
        } else {
            // Ends that are not found stay exactly as they are: rules may lie there.
            let (min, max) = (self.min / self.factor, self.max / self.factor);
            let found = match min < 0.0 {
                true => round_up(-min).map(|end| -end),
                false => round_down(min),
            };
            self.min = found.map_or(self.min, |end| end * self.factor);
            let found = match max < 0.0 {
                true => round_down(-max).map(|end| -end),
                false => round_up(max),
            };
            self.max = found.map_or(self.max, |end| end * self.factor);
        }
    }
}

/// Ends of an axis that look well, in falling order.
const ROUND: [f64; 46] = [
    1000.0, 900.0, 800.0, 750.0, 700.0, 600.0, 500.0, 400.0, 300.0, 250.0, 200.0, 125.0, 100.0,
    90.0, 80.0, 75.0, 70.0, 60.0, 50.0, 40.0, 30.0, 25.0, 20.0, 10.0, 9.0, 8.0, 7.0, 6.0, 5.0, 4.0,
    3.5, 3.0, 2.5, 2.0, 1.8, 1.5, 1.2, 1.0, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1,
];

/// The next of them that is not greater; `None` outside of the table.
fn round_down(value: f64) -> Option<f64> {
    let found = ROUND
        .windows(2)
        .rfind(|pair| pair[0] >= value && pair[1] <= value);
    found.map(|pair| pair[1])
}

/// The next of them that is not less.
fn round_up(value: f64) -> Option<f64> {
    let found = ROUND
        .windows(2)
        .rfind(|pair| pair[0] >= value && pair[1] <= value);
    found.map(|pair| pair[0])
}

/// Where values lie between the bottom and the top of the graph.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transform {
    min: f64,
    bottom: f64,
    pixels: f64,
    logarithmic: bool,
}

impl Transform {
    pub(crate) fn new(range: &Range, logarithmic: bool, bottom: f64, height: f64) -> Self {
        let (min, max) = match logarithmic {
            true => (range.min.log10(), range.max.log10()),
            false => (range.min, range.max),
        };
        Self {
            min,
            bottom,
            pixels: height / (max - min),
            logarithmic,
        }
    }

    /// The y coordinate of a value, which grows downwards.
    pub(crate) fn y(&self, value: f64) -> f64 {
        let value = match self.logarithmic {
            true => {
                let log = value.log10();
                // Below the axis, or without a logarithm.
                if log.is_nan() || log < self.min {
                    return self.bottom;
                }
                log
            }
            false => value,
        };
        self.bottom - self.pixels * (value - self.min)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(options: &GraphOptions, min: f64, max: f64) -> (f64, f64) {
        let range = Range::new(options, min, max);
        (range.min, range.max)
    }

    #[test]
    fn ends_are_round() {
        let options = GraphOptions::default();
        assert_eq!(range(&options, 0.35, 3.2), (0.3, 3.5));
        assert_eq!(range(&options, -1234.0, 98_000.0), (-1500.0, 100_000.0));
        assert_eq!(range(&options, f64::NAN, f64::NAN), (0.0, 1.0));
        assert_eq!(range(&options, 0.0, 0.0), (0.0, 1.0));
    }

    #[test]
    fn rigid_limits_stay() {
        let mut options = GraphOptions::default();
        (options.lower, options.upper, options.rigid) = (-5.0, 30.0, true);
        assert_eq!(range(&options, 0.0, 3.2), (-5.0, 30.0));
        options.allow_shrink = true;
        assert_eq!(range(&options, 0.0, 3.2), (0.0, 3.5));
    }

    #[test]
    fn ends_without_a_round_number_stay() {
        // A rule at the least value is drawn.
        let least = 1.930_774_462_365_593;
        let found = range(&GraphOptions::default(), least, 6.9e6);
        assert_eq!(found, (least, 7e6));
    }

    #[test]
    fn almost_equal_is_of_float() {
        assert!(nearly_equal(1.0, 1.0 + 2e-7));
        assert!(!nearly_equal(1.0, 1.0 + 1e-6));
        assert!(nearly_equal(0.0, -0.0));
        assert!(!nearly_equal(-1.0, 1.0));
    }
}
