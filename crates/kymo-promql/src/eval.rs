//! Evaluation of expressions, for all steps together.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::time::Instant;

use foldhash::{HashMap, HashMapExt};

use crate::ast::Expr;
use crate::{Answer, Evaluated, Expression, Labels, QueryError, Sample, SeriesSource};

/// How long a sample counts: five minutes, in milliseconds.
const LOOKBACK: i64 = 300_000;
/// Warnings of one query.
const MOST_WARNINGS: usize = 10;

/// The times at which a query is evaluated, in milliseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueryTime {
    /// The first.
    pub start: i64,
    /// No time is after it.
    pub end: i64,
    /// From one to the next; `None` if only the start is evaluated, which is an instant query.
    pub step: Option<i64>,
}

/// What one query may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Samples that are read, and values that are computed of them.
    pub samples: u64,
    /// When it has to be done.
    pub deadline: Option<Instant>,
}

/// Computes the answer to a query.
///
/// # Errors
///
/// What cannot be computed, takes too long or too many samples.
pub fn evaluate(
    expression: &Expression,
    time: QueryTime,
    source: &dyn SeriesSource,
    limits: Limits,
) -> Result<Evaluated, QueryError> {
    let grid = match time.step {
        None => Grid::at(time.start),
        Some(step) => {
            let span = time.end.checked_sub(time.start).filter(|span| *span >= 0);
            let count = span.and_then(|span| span.checked_div(step).filter(|_| step > 0));
            let count = count.and_then(|count| usize::try_from(count).ok());
            let count =
                count.ok_or_else(|| QueryError::execution("the range of times is empty"))?;
            Grid {
                start: time.start,
                step,
                count: count.saturating_add(1),
            }
        }
    };
    let evaluator = Evaluator {
        source,
        start: time.start,
        end: time.step.map_or(time.start, |_| time.end),
        limits,
        spent: Cell::new(0),
        warnings: RefCell::default(),
    };
    let answer = match time.step {
        None => evaluator.instant(&expression.root, &grid)?,
        Some(_) => evaluator.range(&expression.root, &grid)?,
    };
    Ok(Evaluated {
        answer,
        warnings: evaluator.warnings.take().into_iter().collect(),
    })
}

/// Times at the same distance.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grid {
    pub(crate) start: i64,
    pub(crate) step: i64,
    pub(crate) count: usize,
}

impl Grid {
    fn at(time: i64) -> Self {
        Self {
            start: time,
            step: 0,
            count: 1,
        }
    }

    pub(crate) fn time(&self, place: usize) -> i64 {
        self.start
            .saturating_add(self.step.saturating_mul(place as i64))
    }

    pub(crate) fn times(&self) -> impl Iterator<Item = i64> + use<> {
        let grid = *self;
        (0..grid.count).map(move |place| grid.time(place))
    }

    pub(crate) fn end(&self) -> i64 {
        self.time(self.count.saturating_sub(1))
    }
}

/// Bits of what stands where a column has no value: a NaN that no computation gives.
const ABSENT_BITS: u64 = 0x7ff8_0000_6b79_6d6f;
/// No value.
pub(crate) const ABSENT: f64 = f64::from_bits(ABSENT_BITS);

/// Whether the value is absent.
#[inline]
pub(crate) fn is_absent(value: f64) -> bool {
    value.to_bits() == ABSENT_BITS
}

/// A series with a value, or none, for each step.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub(crate) labels: Labels,
    pub(crate) values: Vec<f64>,
}

impl Column {
    pub(crate) fn present(&self) -> bool {
        !self.values.iter().copied().all(is_absent)
    }
}

/// What an expression gives.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    /// A number for each step.
    Scalar(Vec<f64>),
    Text(String),
    Vector(Vec<Column>),
}

pub(crate) struct Evaluator<'s> {
    pub(crate) source: &'s dyn SeriesSource,
    /// The times of the whole query.
    pub(crate) start: i64,
    pub(crate) end: i64,
    limits: Limits,
    spent: Cell<u64>,
    warnings: RefCell<BTreeSet<String>>,
}

impl Evaluator<'_> {
    /// Accounts for `count` samples or values.
    pub(crate) fn spend(&self, count: usize) -> Result<(), QueryError> {
        let spent = self.spent.get().saturating_add(count as u64);
        self.spent.set(spent);
        if spent > self.limits.samples {
            return Err(QueryError::TooManySamples(self.limits.samples));
        }
        match self.limits.deadline {
            Some(deadline) if Instant::now() >= deadline => Err(QueryError::Timeout),
            _ => Ok(()),
        }
    }

    pub(crate) fn warn(&self, text: impl FnOnce() -> String) {
        let mut warnings = self.warnings.borrow_mut();
        if warnings.len() < MOST_WARNINGS {
            warnings.insert(text());
        }
    }

    pub(crate) const fn lookback() -> i64 {
        LOOKBACK
    }

    fn instant(&self, root: &Expr, grid: &Grid) -> Result<Answer, QueryError> {
        let time = grid.start;
        if let Some(matrix) = self.raw_ranges(root, grid)? {
            return Ok(Answer::Matrix(matrix));
        }
        Ok(match self.eval(root, grid)? {
            Value::Scalar(values) => Answer::Scalar(Sample {
                time,
                value: values.first().copied().unwrap_or(f64::NAN),
            }),
            Value::Text(text) => Answer::Text(time, text),
            Value::Vector(columns) => {
                let columns = columns.into_iter();
                let present = columns.filter_map(|column| {
                    let value = column.values.first().copied()?;
                    (!is_absent(value)).then_some((column.labels, Sample { time, value }))
                });
                Answer::Vector(present.collect())
            }
        })
    }

    fn range(&self, root: &Expr, grid: &Grid) -> Result<Answer, QueryError> {
        let columns = match self.eval(root, grid)? {
            Value::Scalar(values) => vec![Column {
                labels: Labels::default(),
                values,
            }],
            Value::Text(_) => {
                return Err(QueryError::execution(
                    "invalid expression type \"string\" for range query, must be Scalar or instant Vector",
                ));
            }
            Value::Vector(columns) => columns,
        };
        let mut matrix: Vec<(Labels, Vec<Sample>)> = columns
            .into_iter()
            .map(|column| {
                let values = grid.times().zip(column.values);
                let values = values.filter(|(_, value)| !is_absent(*value));
                let samples = values.map(|(time, value)| Sample { time, value });
                (column.labels, samples.collect::<Vec<_>>())
            })
            .filter(|(_, samples)| !samples.is_empty())
            .collect();
        matrix.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(Answer::Matrix(matrix))
    }

    pub(crate) fn eval(&self, expr: &Expr, grid: &Grid) -> Result<Value, QueryError> {
        match expr {
            Expr::Paren(inner) => self.eval(inner, grid),
            Expr::Number(number) => {
                self.spend(grid.count)?;
                Ok(Value::Scalar(vec![*number; grid.count]))
            }
            Expr::Text(text) => Ok(Value::Text(text.clone())),
            Expr::Negated(inner) => self.negate(inner, grid),
            Expr::Binary(binary) => self.binary(binary, grid),
            Expr::Aggregate(aggregate) => self.aggregate(aggregate, grid),
            Expr::Call(call) => self.call(call, grid),
            Expr::Selector(selector) => Ok(Value::Vector(self.latest(selector, grid, false)?)),
            Expr::Range(_) | Expr::Subquery(_) => {
                Err(QueryError::execution("a range vector is not expected here"))
            }
        }
    }

    /// The columns of an expression that is a vector.
    pub(crate) fn columns(&self, expr: &Expr, grid: &Grid) -> Result<Vec<Column>, QueryError> {
        match self.eval(expr, grid)? {
            Value::Vector(columns) => Ok(columns),
            _ => Err(QueryError::execution("expected an instant vector")),
        }
    }

    /// The values of an expression that is a scalar.
    pub(crate) fn scalars(&self, expr: &Expr, grid: &Grid) -> Result<Vec<f64>, QueryError> {
        match self.eval(expr, grid)? {
            Value::Scalar(values) => Ok(values),
            _ => Err(QueryError::execution("expected a scalar")),
        }
    }

    /// The text of an expression that is one.
    pub(crate) fn text(&self, expr: &Expr, grid: &Grid) -> Result<String, QueryError> {
        match self.eval(expr, grid)? {
            Value::Text(text) => Ok(text),
            _ => Err(QueryError::execution("expected a string")),
        }
    }

    fn negate(&self, inner: &Expr, grid: &Grid) -> Result<Value, QueryError> {
        Ok(match self.eval(inner, grid)? {
            Value::Scalar(values) => Value::Scalar(values.into_iter().map(|it| -it).collect()),
            Value::Vector(columns) => Value::Vector(map(columns, |value| -value)?),
            Value::Text(_) => return Err(QueryError::execution("a string has no sign")),
        })
    }
}

/// Applies a function to all values that are there; the name of the metric is dropped.
pub(crate) fn map(
    mut columns: Vec<Column>,
    compute: impl Fn(f64) -> f64,
) -> Result<Vec<Column>, QueryError> {
    for column in &mut columns {
        column.labels = column.labels.without_name();
        for value in &mut column.values {
            if !is_absent(*value) {
                *value = compute(*value);
            }
        }
    }
    merge(columns)
}

/// Makes one column of those with the same labels; their values have to be at different steps.
pub(crate) fn merge(columns: Vec<Column>) -> Result<Vec<Column>, QueryError> {
    let mut places: HashMap<Labels, usize> = HashMap::with_capacity(columns.len());
    let mut merged: Vec<Column> = Vec::with_capacity(columns.len());
    for column in columns {
        let Some(place) = places.get(&column.labels) else {
            places.insert(column.labels.clone(), merged.len());
            merged.push(column);
            continue;
        };
        for (to, value) in merged[*place].values.iter_mut().zip(column.values) {
            if is_absent(value) {
                continue;
            }
            if !is_absent(*to) {
                return Err(QueryError::execution(
                    "vector cannot contain metrics with the same labelset",
                ));
            }
            *to = value;
        }
    }
    Ok(merged)
}
