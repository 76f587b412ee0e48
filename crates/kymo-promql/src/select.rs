//! Selectors: the last sample before each step, and windows before each step.

use crate::answer::Matrix;
use crate::ast::{At, Expr, Range, Selector, Subquery, When};
use crate::eval::{ABSENT, Column, Evaluator, Grid, is_absent, merge};
use crate::{Matchers, QueryError, Request, Sample, Series};

/// Milliseconds of a subquery's step that is not given: the evaluation interval that Prometheus has by default.
const SUBQUERY_STEP: i64 = 60_000;
/// Number of window samples that are processed between two checks of the clock.
const MOST_SEEN: usize = 1 << 20;

/// Samples before a step.
pub(crate) struct Window<'a> {
    pub(crate) samples: &'a [Sample],
    /// Where it begins and ends, in milliseconds since 1970.
    pub(crate) start: i64,
    pub(crate) end: i64,
    /// The place of the step.
    pub(crate) step: usize,
    /// The time of the step.
    pub(crate) time: i64,
}

impl Evaluator<'_> {
    /// The time that `@` says.
    const fn at(&self, at: At) -> i64 {
        match at {
            At::Start => self.start,
            At::End => self.end,
            At::Time(time) => time,
        }
    }

    /// The times that a selector looks at when it is evaluated at a grid: all the same, if it has `@`.
    fn references(&self, when: When, grid: &Grid) -> Grid {
        let offset = when.offset.unwrap_or_default();
        match when.at {
            None => Grid {
                start: grid.start.saturating_sub(offset),
                ..*grid
            },
            Some(at) => Grid {
                start: self.at(at).saturating_sub(offset),
                step: 0,
                count: grid.count,
            },
        }
    }

    /// The last sample before each step that is not too old; its time in seconds, if times are wanted.
    pub(crate) fn latest(
        &self,
        selector: &Selector,
        grid: &Grid,
        times: bool,
    ) -> Result<Vec<Column>, QueryError> {
        let matchers = Matchers::of(selector);
        let references = self.references(selector.when, grid);
        let request = Request {
            matchers: &matchers,
            start: references.start,
            end: references.end(),
            step: references.step,
            range: None,
            lookback: Self::lookback(),
            function: None,
        };
        let mut columns = Vec::new();
        self.source.select(&request, &mut |series| {
            self.spend(series.samples.len().saturating_add(grid.count))?;
            let lookback = request.lookback(series.step);
            let mut next = 0;
            let values = references.times().map(|time| {
                let rest = &series.samples[next..];
                next += rest.iter().take_while(|sample| sample.time <= time).count();
                let last = next.checked_sub(1).map(|place| series.samples[place]);
                match last {
                    Some(last) if last.time >= time.saturating_sub(lookback) => match times {
                        true => last.time as f64 / 1000.0,
                        false => canonical(last.value),
                    },
                    _ => ABSENT,
                }
            });
            let values = values.collect();
            let labels = series.labels;
            let column = Column { labels, values };
            if column.present() {
                columns.push(column);
            }
            Ok(())
        })?;
        columns.sort_by(|a, b| a.labels.cmp(&b.labels));
        merge(columns)
    }

    /// Computes a value of the window before each step, for each series of a range vector. `compute` gets the
    /// series' name for its warnings; a window without samples has no value.
    pub(crate) fn over_windows(
        &self,
        expr: &Expr,
        grid: &Grid,
        function: &str,
        mut compute: impl FnMut(&Window<'_>) -> Option<f64>,
        mut met: impl FnMut(&Series),
    ) -> Result<Vec<Column>, QueryError> {
        let mut columns = Vec::new();
        let mut one = |series: &Series, references: &Grid, range: i64| {
            met(series);
            self.spend(grid.count)?;
            let (mut first, mut behind) = (0, 0);
            let samples = &series.samples;
            let mut values = Vec::with_capacity(grid.count);
            let mut seen = 0;
            for (step, end) in references.times().enumerate() {
                let start = end.saturating_sub(range);
                while behind < samples.len() && samples[behind].time <= end {
                    behind += 1;
                }
                while first < behind && samples[first].time < start {
                    first += 1;
                }
                let window = Window {
                    samples: &samples[first..behind],
                    start,
                    end,
                    step,
                    time: grid.time(step),
                };
                seen += window.samples.len();
                let value = match window.samples.is_empty() {
                    true => None,
                    false => compute(&window),
                };
                values.push(value.map_or(ABSENT, canonical));
                if seen > MOST_SEEN {
                    // Windows may overlap by far, which takes time.
                    self.spend(0)?;
                    seen = 0;
                }
            }
            let labels = series.labels.clone();
            let column = Column { labels, values };
            if column.present() {
                columns.push(column);
            }
            Ok(())
        };
        match expr {
            Expr::Paren(inner) => {
                return self.over_windows(inner, grid, function, compute, met);
            }
            Expr::Range(matrix) => {
                let (references, range) = self.windows_of(matrix, grid);
                self.samples(matrix, &references, Some(function), &mut |series| {
                    one(&series, &references, range)
                })?;
            }
            Expr::Subquery(subquery) => {
                let references = self.references(subquery.when, grid);
                let range = subquery.range;
                for series in self.subquery(subquery, &references)? {
                    one(&series, &references, range)?;
                }
            }
            _ => return Err(QueryError::execution("expected a range vector")),
        }
        columns.sort_by(|a, b| a.labels.cmp(&b.labels));
        Ok(columns)
    }

    fn windows_of(&self, matrix: &Range, grid: &Grid) -> (Grid, i64) {
        (self.references(matrix.selector.when, grid), matrix.range)
    }

    /// The series of a selector with a range, with all samples of all windows.
    fn samples(
        &self,
        matrix: &Range,
        references: &Grid,
        function: Option<&str>,
        take: &mut dyn FnMut(Series) -> Result<(), QueryError>,
    ) -> Result<(), QueryError> {
        let matchers = Matchers::of(&matrix.selector);
        let request = Request {
            matchers: &matchers,
            start: references.start,
            end: references.end(),
            step: references.step,
            range: Some(matrix.range),
            lookback: Self::lookback(),
            function,
        };
        self.source.select(&request, &mut |series| {
            self.spend(series.samples.len())?;
            take(series)
        })
    }

    /// The series of a subquery, with a sample for each of its steps in any window.
    fn subquery(&self, subquery: &Subquery, references: &Grid) -> Result<Vec<Series>, QueryError> {
        let step = subquery.step.unwrap_or(SUBQUERY_STEP).max(1);
        let first = references.start.saturating_sub(subquery.range);
        // Its times are multiples of its step.
        let start = first.saturating_add((step - first.rem_euclid(step)) % step);
        let span = references.end().saturating_sub(start);
        if span < 0 {
            return Ok(Vec::new());
        }
        let count = usize::try_from(span / step).unwrap_or(usize::MAX);
        let count = count.saturating_add(1);
        // Before a column of this many values exists.
        self.spend(count)?;
        let inner = Grid { start, step, count };
        let columns = self.columns(&subquery.expr, &inner)?;
        let series = columns.into_iter().map(|column| {
            let values = inner.times().zip(column.values);
            let values = values.filter(|(_, value)| !is_absent(*value));
            Series {
                labels: column.labels,
                step: 0,
                is_rate: false,
                samples: values.map(|(time, value)| Sample { time, value }).collect(),
            }
        });
        Ok(series.collect())
    }

    /// The samples of an expression that is a range vector and the whole query; `None` if it is not one.
    pub(crate) fn raw_ranges(
        &self,
        expr: &Expr,
        grid: &Grid,
    ) -> Result<Option<Matrix>, QueryError> {
        let mut matrix = Vec::new();
        let mut take = |series: Series, references: &Grid, range: i64| {
            let (start, end) = (references.start.saturating_sub(range), references.start);
            let samples = series.samples.into_iter();
            let samples = samples.filter(|sample| (start..=end).contains(&sample.time));
            let samples: Vec<_> = samples.collect();
            if !samples.is_empty() {
                matrix.push((series.labels, samples));
            }
        };
        match expr {
            Expr::Paren(inner) => return self.raw_ranges(inner, grid),
            Expr::Range(selector) => {
                let (references, range) = self.windows_of(selector, grid);
                self.samples(selector, &references, None, &mut |series| {
                    take(series, &references, range);
                    Ok(())
                })?;
            }
            Expr::Subquery(subquery) => {
                let references = self.references(subquery.when, grid);
                for series in self.subquery(subquery, &references)? {
                    take(series, &references, subquery.range);
                }
            }
            _ => return Ok(None),
        }
        matrix.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(Some(matrix))
    }
}

/// A value that is not taken for one that is absent.
fn canonical(value: f64) -> f64 {
    match value.is_nan() {
        true => f64::NAN,
        false => value,
    }
}
