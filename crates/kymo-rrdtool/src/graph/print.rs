//! What PRINT and GPRINT say.

use super::compute::Known;
use super::dates::{date, is_date, universal_date};
use super::elements::{Form, Kind, Text};
use super::format::{self, Symbol};
use super::script::Script;
use crate::LocalZone;

/// The texts of PRINT and GPRINT.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    /// Those of PRINT, in order.
    pub(crate) printed: Vec<String>,
    /// That of each element that is a GPRINT.
    pub(crate) below: Vec<Option<String>>,
}

/// The unit of the first value that had one, for `%S`.
struct Unit {
    factor: Option<f64>,
    symbol: &'static str,
}

impl Texts {
    /// Computes and formats the values.
    pub(crate) fn new(script: &Script, known: &[Known], base: f64, zone: &LocalZone) -> Self {
        let mut texts = Self::default();
        let mut unit = Unit {
            factor: None,
            symbol: "",
        };
        for element in &script.elements {
            let mut below = None;
            if let Kind::Print { text, graphic } = &element.kind {
                let (value, time) = text.value(known);
                // rrdtool's unknown value has a sign, which `printf` shows.
                let value = if value.is_nan() {
                    value.copysign(-1.0)
                } else {
                    value
                };
                let shown = match &text.form {
                    Form::Number(format) => {
                        let (value, symbol) = unit.scale(format.symbol(), value, base);
                        format.format(value, symbol)
                    }
                    Form::Date(format) => match time {
                        Some(time) => date(format, time, zone),
                        None => format::no_date(format),
                    },
                    Form::Timestamp(format) if is_date(value) => {
                        universal_date(format, value as i64, zone)
                    }
                    Form::Timestamp(_) => format::number("%.0lf", value),
                    Form::Duration(format) => format::duration(format, value),
                };
                match graphic {
                    true => below = Some(shown),
                    false => texts.printed.push(shown),
                }
            }
            texts.below.push(below);
        }
        texts
    }
}

impl Unit {
    /// The value in its unit, and the symbol of that.
    fn scale(&mut self, symbol: Option<Symbol>, value: f64, base: f64) -> (f64, &'static str) {
        match (symbol, self.factor) {
            (None, _) => return (value, self.symbol),
            (Some(Symbol::Shared), Some(factor)) => return (value / factor, self.symbol),
            _ => {}
        }
        let (factor, name) = format::scale(value, base);
        self.symbol = name;
        // The first value that is not 0 decides.
        let is_shared_zero = symbol == Some(Symbol::Shared) && value == 0.0;
        self.factor = (!is_shared_zero).then_some(factor);
        (value / factor, name)
    }
}

impl Text {
    /// The value, and the time of it.
    fn value(&self, known: &[Known]) -> (f64, Option<i64>) {
        let series = match &known[self.variable] {
            Known::Value { value, time } => return (*value, *time),
            Known::Series(series) => series,
        };
        let finite = || {
            series
                .values()
                .iter()
                .copied()
                .filter(|value| value.is_finite())
        };
        let value = match self.function {
            Some("MIN") => finite().reduce(f64::min),
            Some("MAX" | "FAILURES") => finite().reduce(f64::max),
            Some("LAST") => finite().next_back(),
            _ => finite()
                .reduce(|sum, value| sum + value)
                .map(|sum| sum / finite().count() as f64),
        };
        (value.unwrap_or(f64::NAN), None)
    }
}
