//! Functions of instant vectors and scalars.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::ast::{Call, Expr, Kind};
use crate::eval::{ABSENT, Column, Evaluator, Grid, Value, is_absent, map, merge};
use crate::{Labels, Matchers, QueryError, over_time, regexes};

type OfValue = fn(f64) -> f64;
type OfDate = fn(&jiff::Zoned) -> i32;

/// Functions of one value.
const OF_VALUES: [(&str, OfValue); 23] = [
    ("abs", f64::abs),
    ("acos", f64::acos),
    ("acosh", f64::acosh),
    ("asin", f64::asin),
    ("asinh", f64::asinh),
    ("atan", f64::atan),
    ("atanh", f64::atanh),
    ("ceil", f64::ceil),
    ("cos", f64::cos),
    ("cosh", f64::cosh),
    ("deg", f64::to_degrees),
    ("exp", f64::exp),
    ("floor", f64::floor),
    ("ln", f64::ln),
    ("log10", f64::log10),
    ("log2", f64::log2),
    ("rad", f64::to_radians),
    ("sgn", sign),
    ("sin", f64::sin),
    ("sinh", f64::sinh),
    ("sqrt", f64::sqrt),
    ("tan", f64::tan),
    ("tanh", f64::tanh),
];

/// Parts of a date, of seconds since 1970.
const OF_TIMES: [(&str, OfDate); 8] = [
    ("day_of_month", |date| i32::from(date.day())),
    ("day_of_week", |date| {
        i32::from(date.weekday().to_sunday_zero_offset())
    }),
    ("day_of_year", |date| i32::from(date.day_of_year())),
    ("days_in_month", |date| i32::from(date.days_in_month())),
    ("hour", |date| i32::from(date.hour())),
    ("minute", |date| i32::from(date.minute())),
    ("month", |date| i32::from(date.month())),
    ("year", |date| i32::from(date.year())),
];

/// How a function is called.
pub(crate) struct Signature {
    pub(crate) name: &'static str,
    /// What its arguments are; the last one stands for all that follow.
    pub(crate) args: &'static [Kind],
    pub(crate) least: usize,
    /// `None` if there may be any number.
    pub(crate) most: Option<usize>,
    pub(crate) returns: Kind,
}

impl Signature {
    pub(crate) const fn new(name: &'static str, args: &'static [Kind]) -> Self {
        Self {
            name,
            args,
            least: args.len(),
            most: Some(args.len()),
            returns: Kind::Vector,
        }
    }
}

/// How a function is called, if there is such a one.
pub(crate) fn signature(name: &str) -> Option<Signature> {
    use Kind::{Scalar, Text, Vector};
    if let Some((name, _)) = OF_VALUES.iter().find(|(known, _)| *known == name) {
        return Some(Signature::new(name, &[Vector]));
    }
    if let Some((name, _)) = OF_TIMES.iter().find(|(known, _)| *known == name) {
        return Some(Signature {
            least: 0,
            ..Signature::new(name, &[Vector])
        });
    }
    let returns_scalar = |signature| Signature {
        returns: Scalar,
        ..signature
    };
    Some(match name {
        "absent" => Signature::new("absent", &[Vector]),
        "clamp" => Signature::new("clamp", &[Vector, Scalar, Scalar]),
        "clamp_max" => Signature::new("clamp_max", &[Vector, Scalar]),
        "clamp_min" => Signature::new("clamp_min", &[Vector, Scalar]),
        "label_join" => Signature {
            most: None,
            ..Signature::new("label_join", &[Vector, Text, Text])
        },
        "label_replace" => Signature::new("label_replace", &[Vector, Text, Text, Text, Text]),
        "pi" => returns_scalar(Signature::new("pi", &[])),
        "round" => Signature {
            least: 1,
            ..Signature::new("round", &[Vector, Scalar])
        },
        "scalar" => returns_scalar(Signature::new("scalar", &[Vector])),
        "sort" => Signature::new("sort", &[Vector]),
        "sort_desc" => Signature::new("sort_desc", &[Vector]),
        "time" => returns_scalar(Signature::new("time", &[])),
        "timestamp" => Signature::new("timestamp", &[Vector]),
        "vector" => Signature::new("vector", &[Scalar]),
        _ => return over_time::signature(name),
    })
}

/// Explains why a function is not supported.
pub(crate) fn refusal(name: &str) -> String {
    match name.starts_with("histogram_") {
        true => format!(
            "{name}() is not supported: databases hold no histograms, since each of their series is \
             consolidated by itself; quantile() and quantile_over_time() are computed of the values"
        ),
        false => format!("unknown function with name \"{name}\""),
    }
}

/// The longest label that a function makes, in bytes.
const LONGEST_LABEL: usize = 4096;

fn sign(value: f64) -> f64 {
    match value {
        value if value > 0.0 => 1.0,
        value if value < 0.0 => -1.0,
        // Zeros and NaN.
        value => value,
    }
}

impl Evaluator<'_> {
    pub(crate) fn call(&self, call: &Call, grid: &Grid) -> Result<Value, QueryError> {
        let name = call.name;
        if over_time::is_known(name) {
            return self.over_time(call, grid);
        }
        let args = &call.args;
        let arg = |place: usize| {
            let arg = args.get(place);
            arg.ok_or_else(|| QueryError::execution(format!("{name}() lacks an argument")))
        };
        if let Some((_, part)) = OF_TIMES.iter().find(|(known, _)| *known == name) {
            let columns = match args.is_empty() {
                false => self.columns(arg(0)?, grid)?,
                true => vec![self.time_column(grid)?],
            };
            let columns = map(columns, |seconds| part_of_date(seconds, *part))?;
            return Ok(Value::Vector(columns));
        }
        match name {
            "sort" | "sort_desc" => {
                return self.sorted(arg(0)?, grid, name == "sort_desc");
            }
            "time" => return Ok(Value::Scalar(self.time_column(grid)?.values)),
            "pi" => {
                self.spend(grid.count)?;
                return Ok(Value::Scalar(vec![std::f64::consts::PI; grid.count]));
            }
            "vector" => {
                let values = self.scalars(arg(0)?, grid)?;
                let labels = Labels::default();
                return Ok(Value::Vector(vec![Column { labels, values }]));
            }
            "scalar" => {
                let columns = self.columns(arg(0)?, grid)?;
                self.spend(grid.count)?;
                return Ok(Value::Scalar(only_values(&columns, grid)));
            }
            "absent" => {
                let columns = self.columns(arg(0)?, grid)?;
                self.spend(grid.count)?;
                let is_there = |place: usize| {
                    let mut values = columns.iter().map(|column| column.values[place]);
                    values.any(|value| !is_absent(value))
                };
                let values = (0..grid.count).map(|place| match is_there(place) {
                    true => ABSENT,
                    false => 1.0,
                });
                let values = values.collect();
                let labels = absent_labels(arg(0)?);
                return Ok(Value::Vector(vec![Column { labels, values }]));
            }
            "label_replace" => return self.label_replace(call, grid),
            "label_join" => return self.label_join(call, grid),
            "timestamp" => {
                let mut inner = arg(0)?;
                while let Expr::Paren(next) = inner {
                    inner = next;
                }
                let columns = match inner {
                    Expr::Selector(selector) => {
                        map(self.latest(selector, grid, true)?, |seconds| seconds)?
                    }
                    other => {
                        let mut columns = map(self.columns(other, grid)?, |value| value)?;
                        for column in &mut columns {
                            for (time, value) in grid.times().zip(&mut column.values) {
                                if !is_absent(*value) {
                                    *value = time as f64 / 1000.0;
                                }
                            }
                        }
                        columns
                    }
                };
                return Ok(Value::Vector(columns));
            }
            _ => {}
        }
        let columns = self.columns(arg(0)?, grid)?;
        let parameters = args.iter().skip(1);
        let parameters: Vec<Vec<f64>> = parameters
            .map(|parameter| self.scalars(parameter, grid))
            .collect::<Result<_, _>>()?;
        let columns = match name {
            "round" => {
                let nearest = parameters.first();
                map_steps(columns, |step, value| {
                    // As Prometheus does it, so that 0.1 serves.
                    let inverse = nearest.map_or(1.0, |nearest| 1.0 / nearest[step]);
                    Some((value * inverse + 0.5).floor() / inverse)
                })?
            }
            "clamp_min" => map_steps(columns, |step, value| {
                Some(greater(value, parameters[0][step]))
            })?,
            "clamp_max" => map_steps(columns, |step, value| {
                Some(less(value, parameters[0][step]))
            })?,
            "clamp" => map_steps(columns, |step, value| {
                let (least, most) = (parameters[0][step], parameters[1][step]);
                // An empty range has no values.
                (least <= most || least.is_nan() || most.is_nan())
                    .then(|| greater(least, less(most, value)))
            })?,
            _ => match OF_VALUES.iter().find(|(known, _)| *known == name) {
                Some((_, compute)) => map(columns, compute)?,
                None => return Err(QueryError::execution(refusal(name))),
            },
        };
        Ok(Value::Vector(columns))
    }

    /// The time of each step in seconds.
    fn time_column(&self, grid: &Grid) -> Result<Column, QueryError> {
        self.spend(grid.count)?;
        Ok(Column {
            labels: Labels::default(),
            values: grid.times().map(|time| time as f64 / 1000.0).collect(),
        })
    }

    /// Columns in the order of their values, which shows if there is one step only.
    fn sorted(&self, expr: &Expr, grid: &Grid, descending: bool) -> Result<Value, QueryError> {
        let mut columns = self.columns(expr, grid)?;
        if grid.count == 1 {
            columns.sort_by(|a, b| {
                let (a, b) = (a.values[0], b.values[0]);
                // NaN comes last.
                let order = if descending {
                    b.total_cmp(&a)
                } else {
                    a.total_cmp(&b)
                };
                a.is_nan().cmp(&b.is_nan()).then(order)
            });
        }
        Ok(Value::Vector(columns))
    }

    fn label_replace(&self, call: &Call, grid: &Grid) -> Result<Value, QueryError> {
        let args = &call.args;
        let [vector, to, replacement, from, pattern] = &args[..] else {
            return Err(QueryError::execution(
                "label_replace() takes five arguments",
            ));
        };
        let to = self.text(to, grid)?;
        let replacement = self.text(replacement, grid)?;
        let from = self.text(from, grid)?;
        let pattern = self.text(pattern, grid)?;
        let regex = regexes::compile(&pattern, 8).map_err(|_| {
            QueryError::execution(format!(
                "invalid regular expression in label_replace(): {pattern}"
            ))
        })?;
        check_label(&to, "label_replace")?;
        let mut columns = self.columns(vector, grid)?;
        for column in &mut columns {
            let Some(found) = regex.captures(column.labels.get(&from)) else {
                continue;
            };
            // A reference gives a label, or a part of it.
            let references = replacement.matches('$').count();
            let label = column.labels.get(&from).len();
            check_length(replacement.len() + references * label, "label_replace")?;
            let mut value = String::new();
            found.expand(&replacement, &mut value);
            column.labels = column.labels.with(&to, &value);
        }
        Ok(Value::Vector(merge(columns)?))
    }

    fn label_join(&self, call: &Call, grid: &Grid) -> Result<Value, QueryError> {
        let args = &call.args;
        let [vector, to, separator, from @ ..] = &args[..] else {
            return Err(QueryError::execution(
                "label_join() takes three arguments at least",
            ));
        };
        let to = self.text(to, grid)?;
        let separator = self.text(separator, grid)?;
        let from = from.iter().map(|name| self.text(name, grid));
        let from: Vec<_> = from.collect::<Result<_, _>>()?;
        check_label(&to, "label_join")?;
        if let Some(wrong) = from.iter().find(|name| !is_label(name)) {
            return Err(QueryError::execution(format!(
                "invalid source label name in label_join(): {wrong}"
            )));
        }
        let mut columns = self.columns(vector, grid)?;
        for column in &mut columns {
            let values = from.iter().map(|name| column.labels.get(name));
            let length: usize = values
                .clone()
                .map(|value| value.len() + separator.len())
                .sum();
            check_length(length, "label_join")?;
            let joined = values.collect::<Vec<_>>().join(&separator);
            column.labels = column.labels.with(&to, &joined);
        }
        Ok(Value::Vector(merge(columns)?))
    }
}

/// Labels that grow from call to call would fill the memory.
fn check_length(length: usize, function: &str) -> Result<(), QueryError> {
    match length > LONGEST_LABEL {
        true => Err(QueryError::execution(format!(
            "{function}() makes a label of up to {length} bytes; the limit is {LONGEST_LABEL}"
        ))),
        false => Ok(()),
    }
}

/// Go's order of zeros and NaN: whatever is none makes none.
fn greater(a: f64, b: f64) -> f64 {
    match a.is_nan() || b.is_nan() {
        true => f64::NAN,
        false => a.max(b),
    }
}

fn less(a: f64, b: f64) -> f64 {
    match a.is_nan() || b.is_nan() {
        true => f64::NAN,
        false => a.min(b),
    }
}

/// Whether a text can be the name of a label.
pub(crate) fn is_label(name: &str) -> bool {
    let is_begin = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_';
    let mut bytes = name.bytes();
    bytes.next().is_some_and(is_begin) && bytes.all(|byte| is_begin(byte) || byte.is_ascii_digit())
}

fn check_label(name: &str, function: &str) -> Result<(), QueryError> {
    match is_label(name) {
        true => Ok(()),
        false => Err(QueryError::execution(format!(
            "invalid destination label name in {function}(): {name}"
        ))),
    }
}

/// Applies a function to the step and the value where there is one; the name of the metric is dropped.
fn map_steps(
    mut columns: Vec<Column>,
    compute: impl Fn(usize, f64) -> Option<f64>,
) -> Result<Vec<Column>, QueryError> {
    for column in &mut columns {
        column.labels = column.labels.without_name();
        for (step, value) in column.values.iter_mut().enumerate() {
            if !is_absent(*value) {
                *value = compute(step, *value).unwrap_or(ABSENT);
            }
        }
    }
    merge(columns)
}

/// At each step the value of the only column that has one, or NaN.
fn only_values(columns: &[Column], grid: &Grid) -> Vec<f64> {
    let only = |step: usize| {
        let values = columns.iter().map(|column| column.values[step]);
        let mut values = values.filter(|value| !is_absent(*value));
        match (values.next(), values.next()) {
            (Some(value), None) => value,
            _ => f64::NAN,
        }
    };
    (0..grid.count).map(only).collect()
}

fn part_of_date(seconds: f64, part: OfDate) -> f64 {
    // A number beyond any date saturates, and is refused.
    match Timestamp::from_second(seconds as i64) {
        Ok(time) if !seconds.is_nan() => f64::from(part(&time.to_zoned(TimeZone::UTC))),
        _ => f64::NAN,
    }
}

/// The labels of what `absent` gives for an expression.
pub(crate) fn absent_labels(expr: &Expr) -> Labels {
    match expr {
        Expr::Paren(inner) => absent_labels(inner),
        Expr::Selector(selector) => Matchers::of(selector).certain_labels(),
        Expr::Range(range) => Matchers::of(&range.selector).certain_labels(),
        _ => Labels::default(),
    }
}
