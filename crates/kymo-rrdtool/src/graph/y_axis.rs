//! The value axis: where its lines are, and what is written beside them.

use super::dates::universal_date;
use super::format::{duration, scale};
use super::options::{AxisForm, GraphOptions, TextKind, YGrid};
use super::scale::{Range, Transform, nearly_equal};
use crate::LocalZone;

/// Lines at most: more than pixels that any picture has.
const MAX_LINES: f64 = (1 << 16) as f64;

/// A line across the graph.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct YLine {
    pub(crate) y: f64,
    /// What is beside it; `None` with minor lines.
    pub(crate) labels: Option<Labels>,
}

/// The labels of a line.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Labels {
    pub(crate) left: String,
    pub(crate) right: Option<String>,
}

/// What an axis is made of.
pub(crate) struct YAxis<'a> {
    pub(crate) options: &'a GraphOptions,
    pub(crate) range: &'a Range,
    pub(crate) transform: &'a Transform,
    /// The bottom of the graph, and its height.
    pub(crate) bottom: f64,
    pub(crate) height: f64,
    pub(crate) zone: &'a LocalZone,
}

/// Distances of lines, and how labels are written.
struct Grid {
    step: f64,
    /// Number of lines from one label to the next.
    label: i64,
    /// The width and the decimals of labels; `None` if the greatest label decides.
    digits: Option<(usize, usize)>,
}

impl YAxis<'_> {
    /// The lines, from the bottom to the top. `None` if values have no range.
    pub(crate) fn lines(&self) -> Option<Vec<YLine>> {
        match self.options.logarithmic {
            true => Some(self.logarithmic()),
            false => Some(self.linear(&self.grid()?)),
        }
    }

    fn grid(&self) -> Option<Grid> {
        let range = self.range.max - self.range.min;
        let scaled = range / self.range.factor;
        if scaled.is_nan() {
            return None;
        }
        if let YGrid::Lines { step, label } = self.options.y_grid {
            let label = i64::from(label);
            let digits = None;
            return Some(Grid {
                step,
                label,
                digits,
            });
        }
        match self.options.alt_y_grid {
            true => Some(self.fitting(range)),
            false => Some(self.classic(scaled)),
        }
    }

    /// Steps of 1, 2 and 5, as near to each other as can be seen.
    fn classic(&self, scaled: f64) -> Grid {
        const STEPS: [(f64, [i64; 4]); 12] = [
            (0.1, [1, 2, 5, 10]),
            (0.2, [1, 5, 10, 20]),
            (0.5, [1, 2, 4, 10]),
            (1.0, [1, 2, 5, 10]),
            (2.0, [1, 5, 10, 20]),
            (5.0, [1, 2, 4, 10]),
            (10.0, [1, 2, 5, 10]),
            (20.0, [1, 5, 10, 20]),
            (50.0, [1, 2, 4, 10]),
            (100.0, [1, 2, 5, 10]),
            (200.0, [1, 5, 10, 20]),
            (500.0, [1, 2, 4, 10]),
        ];
        let pixels = |step: f64| (self.height / (scaled / step)).trunc();
        let found = STEPS.iter().find(|(step, _)| pixels(*step) >= 5.0);
        let (step, labels) = found.unwrap_or(&STEPS[STEPS.len() - 1]);
        let room = 1.8 * self.options.font(TextKind::Axis).size;
        let label = labels
            .iter()
            .find(|label| pixels(*step) * **label as f64 >= room);
        Grid {
            step: step * self.range.factor,
            label: label.copied().unwrap_or(2),
            digits: None,
        }
    }

    /// Powers of ten and fifths of them, with the decimals that they need.
    fn fitting(&self, range: f64) -> Grid {
        let unit = self.range.view / self.range.factor;
        let greatest = self.range.max.abs().max(self.range.min.abs());
        let decimals = (greatest * unit).log10().ceil().max(1.0);
        let mut step = 10f64.powf((range * unit).log10().floor()) / unit;
        if step == 0.0 {
            step = 0.1;
        }
        if range / step < 5.0 && step >= 30.0 {
            step /= 10.0;
        }
        if range / step > 15.0 {
            step *= 10.0;
        }
        let label = if range / step > 5.0 {
            let size = self.options.font(TextKind::Axis).size;
            match range / step > 8.0 || step < 1.8 * size {
                true => 2,
                false => 1,
            }
        } else {
            step /= 5.0;
            5
        };
        let fractionals = (step * label as f64 * unit).log10().floor();
        let digits = match fractionals < 0.0 {
            true => (
                (decimals - fractionals + 1.0) as usize,
                -fractionals as usize,
            ),
            false => ((decimals + 1.0) as usize, 0),
        };
        let digits = Some((digits.0.min(400), digits.1.min(400)));
        Grid {
            step,
            label,
            digits,
        }
    }

    /// Whether a line is inside of the graph.
    fn is_inside(&self, y: f64) -> bool {
        (self.bottom - self.height..=self.bottom).contains(&y)
    }

    fn linear(&self, grid: &Grid) -> Vec<YLine> {
        let first = (self.range.min / grid.step - 1.0).trunc();
        let last = (self.range.max / grid.step + 1.0).trunc();
        // Lines that are too near to be seen, or numbers that cannot count them.
        if !(last - first).is_finite() || last - first > MAX_LINES || last.abs() > 1e15 {
            return Vec::new();
        }
        let (first, last) = (first as i64, last as i64);
        let scaled = grid.step / self.range.factor * self.range.view;
        let greatest = scaled * last as f64;
        let (decimals, width) = match grid.digits {
            Some((width, decimals)) => (decimals, width),
            None => (usize::from(greatest < 10.0), 4),
        };
        let mut labels = 0;
        let mut lines = Vec::new();
        // The unit of the right axis is that of its middle.
        let right_unit = self.options.right_axis.map(|(factor, shift)| {
            let middle = grid.step * (first + last) as f64 / 2.0;
            scale(middle * factor + shift, self.options.base)
        });
        for line in first..=last {
            let y = self.transform.y(grid.step * line as f64);
            let next = self.transform.y(grid.step * (line + 1) as f64);
            if !self.is_inside((y + 0.5).floor()) {
                continue;
            }
            let is_only = labels == 1 && !self.is_inside(next);
            if line % grid.label != 0 && !is_only {
                lines.push(YLine { y, labels: None });
                continue;
            }
            labels += 1;
            let value = scaled * line as f64;
            let exact = grid.step * line as f64;
            let symbol = if line == 0 { ' ' } else { self.range.symbol };
            let left = match &self.options.left_form {
                AxisForm::Number(None) => match self.range.symbol {
                    ' ' => format!("{value:width$.decimals$}"),
                    _ => format!("{value:width$.decimals$} {symbol}"),
                },
                AxisForm::Number(Some(format)) => format.format(value, &symbol.to_string()),
                form => self.other(form, exact),
            };
            let right = self.options.right_axis.map(|(factor, shift)| {
                let value = exact * factor + shift;
                match &self.options.right_form {
                    AxisForm::Number(None) => {
                        let (unit, symbol) = right_unit.unwrap_or((1.0, ""));
                        let value = value / unit;
                        let decimals = usize::from(greatest < 10.0);
                        format!("{value:5.decimals$} {symbol}")
                    }
                    AxisForm::Number(Some(format)) => format.format(value, ""),
                    form => self.other(form, value),
                }
            });
            let labels = Some(Labels { left, right });
            lines.push(YLine { y, labels });
        }
        lines
    }

    /// A value as a time or a duration.
    fn other(&self, form: &AxisForm, value: f64) -> String {
        match form {
            AxisForm::Timestamp(format) => universal_date(format, value as i64, self.zone),
            AxisForm::Duration(format) => duration(format, value),
            AxisForm::Number(_) => String::new(),
        }
    }

    fn logarithmic(&self) -> Vec<YLine> {
        /// Which of a decade have labels.
        const DECADES: [&[u8]; 5] = [
            &[1],
            &[1, 5],
            &[1, 2, 5, 7],
            &[1, 2, 4, 6, 8],
            &[1, 2, 3, 4, 5, 6, 7, 8, 9],
        ];
        let size = self.options.font(TextKind::Legend).size;
        let decade = self.height / (self.range.max / self.range.min).log10();
        if !decade.is_finite() || decade <= 0.0 {
            return Vec::new();
        }
        // Decades are left out where they are too near to each other,
        let mut every = 1;
        while decade * f64::from(every) < 3.0 * size {
            every += if every == 1 { 2 } else { 3 };
            if every > 600 {
                break;
            }
        }
        // and have as many labels as there is room for below the next one.
        let has_room = |values: &&&[u8]| {
            let last = values.last().copied().unwrap_or(1);
            decade * (10.0 / f64::from(last)).log10() > 2.0 * size
        };
        let rows = DECADES.iter().take_while(has_room).count();
        let row = rows.saturating_sub(1);
        let values = DECADES[row];
        let mut exponent = self.range.min.log10().floor() as i32;
        let first = self.range.min / 10f64.powi(exponent);
        let mut at = values.iter().position(|value| f64::from(*value) >= first);
        if at.is_none() {
            exponent += 1;
        }
        exponent += (exponent % every).abs();
        let mut lines = Vec::new();
        let top = self.bottom - self.height;
        let is_below_top = |y: f64| (y + 0.5).floor() > top;
        let mut before = f64::NAN;
        loop {
            let place = at.take().unwrap_or(0);
            let value = f64::from(values[place]) * 10f64.powi(exponent);
            let y = self.transform.y(value);
            let is_visible = is_below_top(y) && !nearly_equal(value, before);
            before = value;
            if is_visible {
                let labels = self.logarithmic_labels(value, values[place], exponent);
                lines.push(YLine {
                    y,
                    labels: Some(labels),
                });
            }
            // The minor lines between the label before and this one.
            let minor: Vec<f64> = match (every, place) {
                (1, _) if row == DECADES.len() - 1 => Vec::new(),
                (1, 0) => {
                    let last = values.last().copied().unwrap_or(1);
                    (last + 1..10)
                        .map(|value| f64::from(value) * 10f64.powi(exponent - 1))
                        .collect()
                }
                (1, place) => {
                    let between = values[place - 1] + 1..values[place];
                    between
                        .map(|value| f64::from(value) * 10f64.powi(exponent))
                        .collect()
                }
                (every, _) => [2, 1]
                    .map(|thirds| 10f64.powi(exponent - every / 3 * thirds))
                    .to_vec(),
            };
            for value in minor {
                let y = self.transform.y(value);
                if value >= self.range.min && is_below_top(y) {
                    lines.push(YLine { y, labels: None });
                }
            }
            if !is_visible || lines.len() as f64 > MAX_LINES {
                return lines;
            }
            match values.get(place + 1) {
                Some(_) => at = Some(place + 1),
                None => exponent += every,
            }
        }
    }

    fn logarithmic_labels(&self, value: f64, digit: u8, exponent: i32) -> Labels {
        let left = match &self.options.left_form {
            AxisForm::Number(_) if self.options.si => {
                const SYMBOLS: [char; 17] = [
                    'y', 'z', 'a', 'f', 'p', 'n', 'u', 'm', ' ', 'k', 'M', 'G', 'T', 'P', 'E', 'Z',
                    'Y',
                ];
                let power = 10f64.powi(exponent.rem_euclid(3)) * f64::from(digit);
                let symbol = usize::try_from(exponent.div_euclid(3) + 8).ok();
                let symbol = symbol.and_then(|place| SYMBOLS.get(place)).unwrap_or(&'?');
                format!("{power:3.0} {symbol}")
            }
            AxisForm::Number(_) => super::format::number("%3.0le", value),
            form => self.other(form, value),
        };
        let right = self.options.right_axis.map(|(factor, shift)| {
            let value = value * factor + shift;
            match &self.options.right_form {
                AxisForm::Number(None) if self.options.si => {
                    let (factor, symbol) = scale(value, self.options.base);
                    format!("{:4.0} {symbol}", value / factor)
                }
                AxisForm::Number(None) => super::format::number("%3.0le", value),
                AxisForm::Number(Some(format)) => format.format(value, ""),
                form => self.other(form, value),
            }
        });
        Labels { left, right }
    }
}
