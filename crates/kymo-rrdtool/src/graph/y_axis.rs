//! The value axis: where its lines are, and what is written beside them.

use super::format::{date, duration, scale};
use super::options::{AxisForm, GraphOptions, TextKind, YGrid};
use super::scale::{Range, Transform};
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
    /// Each so many lines has a label.
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
        let label = labels.iter().find(|label| pixels(*step) * **label as f64 >= room);
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
            true => ((decimals - fractionals + 1.0) as usize, -fractionals as usize),
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
            AxisForm::Timestamp(format) => date(format, value as i64, self.zone),
            AxisForm::Duration(format) => duration(format, value),
            AxisForm::Number(_) => String::new(),
        }
    }

    fn logarithmic(&self) -> Vec<YLine> {
        /// Which of a decade have lines.
        const DECADES: [&[f64]; 5] = [
            &[1.0],
            &[1.0, 5.0],
            &[1.0, 2.0, 5.0, 7.0],
            &[1.0, 2.0, 4.0, 6.0, 8.0],
            &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0],
        ];
        let size = self.options.font(TextKind::Legend).size;
        let decades = self.range.max.log10() - self.range.min.log10();
        let decade = self.height / decades;
        if !decade.is_finite() || decade <= 0.0 {
            return Vec::new();
        }
        // As many lines with labels as have room.
        let room = |values: &[f64]| {
            let ends = values.iter().copied().chain([10.0]);
            let ends: Vec<f64> = ends.map(f64::log10).collect();
            let least = ends.windows(2).map(|pair| pair[1] - pair[0]).fold(f64::INFINITY, f64::min);
            least * decade >= 2.0 * size
        };
        let major = DECADES.iter().rposition(|values| room(values)).unwrap_or(0);
        let every = [1, 3, 6, 9];
        let every = every.into_iter().find(|every| decade * f64::from(*every) >= 3.0 * size);
        let every = match major {
            0 => every.unwrap_or(9),
            _ => 1,
        };
        let minor = DECADES[(major + 2).min(DECADES.len() - 1)];
        let first = self.range.min.log10().floor() as i32;
        let last = self.range.max.log10().ceil() as i32;
        let mut lines = Vec::new();
        for exponent in first..=last.min(first.saturating_add(1300)) {
            for value in minor {
                let exact = value * 10f64.powi(exponent);
                if exact < self.range.min || exact > self.range.max {
                    continue;
                }
                let y = self.transform.y(exact);
                let is_major = DECADES[major].contains(value) && exponent.rem_euclid(every) == 0;
                let labels = is_major.then(|| self.logarithmic_labels(exact));
                lines.push(YLine { y, labels });
            }
        }
        lines
    }

    fn logarithmic_labels(&self, value: f64) -> Labels {
        let label = |value: f64| match self.options.si {
            true => {
                let (factor, symbol) = scale(value, self.options.base);
                format!("{:3.0} {symbol}", value / factor)
            }
            false => super::format::number("%3.0le", value),
        };
        let left = match &self.options.left_form {
            AxisForm::Number(_) => label(value),
            form => self.other(form, value),
        };
        let right = self.options.right_axis.map(|(factor, shift)| {
            let value = value * factor + shift;
            match &self.options.right_form {
                AxisForm::Number(None) => label(value),
                AxisForm::Number(Some(format)) => format.format(value, ""),
                form => self.other(form, value),
            }
        });
        Labels { left, right }
    }
}
