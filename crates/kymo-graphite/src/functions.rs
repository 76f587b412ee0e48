//! Functions of series.

mod combine;

use crate::series::mean;
use crate::{Argument, Series, SeriesSource, Target, TargetError, Window, seconds};

/// The functions that exist here.
pub const NAMES: [&str; 37] = [
    "absolute",
    "alias",
    "aliasByMetric",
    "aliasByNode",
    "averageSeries",
    "avg",
    "countSeries",
    "derivative",
    "diffSeries",
    "divideSeries",
    "group",
    "groupByNode",
    "groupByNodes",
    "highestAverage",
    "highestCurrent",
    "highestMax",
    "integral",
    "keepLastValue",
    "limit",
    "lowestAverage",
    "max",
    "maxSeries",
    "min",
    "minSeries",
    "movingAverage",
    "multiplySeries",
    "nonNegativeDerivative",
    "offset",
    "perSecond",
    "rangeOfSeries",
    "scale",
    "scaleToSeconds",
    "sortByName",
    "stddevSeries",
    "sum",
    "sumSeries",
    "summarize",
];

/// Computes the series of a target.
///
/// # Errors
///
/// A function that does not exist here or gets what it does not take; those of the source.
pub fn render(
    target: &Target,
    window: &Window,
    source: &dyn SeriesSource,
) -> Result<Vec<Series>, TargetError> {
    match target {
        Target::Pattern(pattern) => source.fetch(pattern, window),
        Target::Call(name, arguments) => {
            if NAMES.binary_search(&name.as_str()).is_err() {
                return Err(TargetError::Target(format!(
                    "the function `{name}` is not supported"
                )));
            }
            // Also of series that have no values, so that the deadline holds.
            source.spend(0)?;
            let call = Call {
                name,
                arguments,
                window,
                source,
            };
            let series = call.compute()?;
            let count = series.iter().map(|series| series.values.len()).sum();
            source.spend(count)?;
            Ok(series)
        }
    }
}

/// Parts of paths that one function takes.
const MOST_NODES: usize = 64;
/// Bytes of names that count as one value.
const NAME_BYTES: usize = 16;
/// Values that are computed between two looks at the clock.
const VALUES_PER_CHECK: usize = 1 << 16;

struct Call<'a> {
    name: &'a str,
    arguments: &'a [Argument],
    window: &'a Window,
    source: &'a dyn SeriesSource,
}

type Computed = Result<Vec<Series>, TargetError>;

impl Call<'_> {
    fn wrong(&self, place: usize, expected: &str) -> TargetError {
        let found = self.arguments.get(place);
        let found = found.map_or_else(|| "nothing".to_owned(), |found| format!("`{found}`"));
        TargetError::Target(format!(
            "{}(): argument {}: found {found}, expected {expected}",
            self.name,
            place + 1
        ))
    }

    /// Accounts for names before they are made.
    fn spend_names(&self, count: usize, length: usize) -> Result<(), TargetError> {
        self.source
            .spend(count.saturating_mul(length.div_ceil(NAME_BYTES)))
    }

    fn series(&self, place: usize) -> Computed {
        self.series_of(place, self.window)
    }

    fn series_of(&self, place: usize, window: &Window) -> Computed {
        match self.arguments.get(place) {
            Some(Argument::Target(target)) => render(target, window, self.source),
            _ => Err(self.wrong(place, "series")),
        }
    }

    /// The series of all arguments.
    fn all_series(&self) -> Computed {
        let mut all = Vec::new();
        for place in 0..self.arguments.len().max(1) {
            all.append(&mut self.series(place)?);
        }
        Ok(all)
    }

    fn number(&self, place: usize) -> Result<f64, TargetError> {
        match self.arguments.get(place) {
            Some(Argument::Number(number)) => Ok(*number),
            _ => Err(self.wrong(place, "a number")),
        }
    }

    fn count(&self, place: usize) -> Result<usize, TargetError> {
        let number = self.number(place)?;
        let is_count = (0.0..=1e9).contains(&number) && number.fract() == 0.0;
        is_count
            .then_some(number as usize)
            .ok_or_else(|| self.wrong(place, "a whole number"))
    }

    fn text(&self, place: usize) -> Result<&str, TargetError> {
        match self.arguments.get(place) {
            Some(Argument::Text(text)) => Ok(text),
            _ => Err(self.wrong(place, "a text")),
        }
    }

    /// Places of parts of paths, those below 0 from the end.
    fn nodes(&self, first: usize) -> Result<Vec<i64>, TargetError> {
        // Each series gets a name of this many parts.
        if self.arguments.len().saturating_sub(first) > MOST_NODES {
            return Err(self.wrong(first + MOST_NODES, &format!("at most {MOST_NODES} parts")));
        }
        let node = |place: usize| {
            let number = self.number(place)?;
            let is_node = number.abs() <= 1000.0 && number.fract() == 0.0;
            is_node
                .then_some(number as i64)
                .ok_or_else(|| self.wrong(place, "the place of a part"))
        };
        (first..self.arguments.len()).map(node).collect()
    }

    fn compute(&self) -> Computed {
        let all_arguments: Vec<_> = self.arguments.iter().map(ToString::to_string).collect();
        let expression = all_arguments.join(",");
        let name = self.name;
        Ok(match name {
            "group" => self.all_series()?,
            "sumSeries" | "sum" | "averageSeries" | "avg" | "maxSeries" | "max" | "minSeries"
            | "min" | "countSeries" | "multiplySeries" | "rangeOfSeries" | "stddevSeries"
            | "diffSeries" => {
                let series = self.all_series()?;
                let name = format!("{name}({expression})");
                self.combine(self.name, series, name)?.into_iter().collect()
            }
            "divideSeries" => self.divide()?,
            "alias" => {
                let alias = self.text(1)?;
                let series = self.series(0)?;
                self.spend_names(series.len(), alias.len())?;
                each(series, |series| alias.clone_into(&mut series.name))
            }
            "aliasByNode" => {
                let nodes = self.nodes(1)?;
                each(self.series(0)?, |series| {
                    series.name = parts(&series.path, &nodes)
                })
            }
            "aliasByMetric" => each(self.series(0)?, |series| {
                series.name = parts(&series.path, &[-1]);
            }),
            "groupByNode" | "groupByNodes" => self.group_by_nodes()?,
            "scale" => {
                let factor = self.number(1)?;
                self.map(format_args!(",{factor}"), |_, value| Some(value * factor))?
            }
            "scaleToSeconds" => {
                let seconds = self.number(1)?;
                self.map(format_args!(",{seconds}"), |step, value| {
                    Some(value * seconds / step as f64)
                })?
            }
            "offset" => {
                let added = self.number(1)?;
                self.map(format_args!(",{added}"), |_, value| Some(value + added))?
            }
            "absolute" => self.map(format_args!(""), |_, value| Some(value.abs()))?,
            "integral" => {
                let mut series = self.series(0)?;
                for series in &mut series {
                    let mut sum = 0.0;
                    for value in series.values.iter_mut().flatten() {
                        sum += *value;
                        *value = sum;
                    }
                    series.name = format!("integral({})", series.name);
                }
                series
            }
            "derivative" => self.differences(|before, value, _| Some(value - before))?,
            "nonNegativeDerivative" => {
                let most = self.most()?;
                self.differences(|before, value, _| growth(before, value, most))?
            }
            "perSecond" => {
                let most = self.most()?;
                self.differences(|before, value, step| {
                    growth(before, value, most).map(|growth| growth / step as f64)
                })?
            }
            "keepLastValue" => {
                let limit = match self.arguments.len() {
                    0 | 1 => usize::MAX,
                    _ => self.count(1)?,
                };
                each(self.series(0)?, |series| {
                    keep_last(&mut series.values, limit);
                    series.name = format!("keepLastValue({})", series.name);
                })
            }
            "limit" => {
                let count = self.count(1)?;
                let mut series = self.series(0)?;
                series.truncate(count);
                series
            }
            "sortByName" => {
                let mut series = self.series(0)?;
                series.sort_by(|a, b| a.name.cmp(&b.name));
                series
            }
            "highestAverage" => self.best(|series| mean(series.values.iter().copied()), false)?,
            "lowestAverage" => self.best(|series| mean(series.values.iter().copied()), true)?,
            "highestMax" => self.best(
                |series| series.values.iter().flatten().copied().reduce(f64::max),
                false,
            )?,
            "highestCurrent" => self.best(
                |series| series.values.iter().flatten().copied().next_back(),
                false,
            )?,
            "movingAverage" => self.moving_average()?,
            "summarize" => self.summarize()?,
            _ => {
                return Err(TargetError::Target(format!(
                    "the function `{name}` is not supported"
                )));
            }
        })
    }

    fn map(
        &self,
        parameters: std::fmt::Arguments<'_>,
        compute: impl Fn(i64, f64) -> Option<f64>,
    ) -> Computed {
        Ok(each(self.series(0)?, |series| {
            for value in &mut series.values {
                *value = value.and_then(|value| compute(series.step, value));
            }
            series.name = format!("{}({}{parameters})", self.name, series.name);
        }))
    }

    /// A second argument that is the greatest value of a counter.
    fn most(&self) -> Result<Option<f64>, TargetError> {
        match self.arguments.len() {
            0 | 1 => Ok(None),
            _ => self.number(1).map(Some),
        }
    }

    fn differences(&self, compute: impl Fn(f64, f64, i64) -> Option<f64>) -> Computed {
        Ok(each(self.series(0)?, |series| {
            let mut before = None;
            for value in &mut series.values {
                let now = *value;
                let both = before.zip(now);
                *value = both.and_then(|(before, now)| compute(before, now, series.step));
                before = now;
            }
            series.name = format!("{}({})", self.name, series.name);
        }))
    }

    /// The best series, in order, up to a given number; those without values are the worst.
    fn best(&self, judge: impl Fn(&Series) -> Option<f64>, lowest: bool) -> Computed {
        let count = match self.arguments.len() {
            0 | 1 => 1,
            _ => self.count(1)?,
        };
        let series = self.series(0)?;
        let mut judged: Vec<_> = series.into_iter().map(|it| (judge(&it), it)).collect();
        judged.sort_by(|(a, _), (b, _)| match (a, b) {
            (Some(a), Some(b)) if lowest => a.total_cmp(b),
            (Some(a), Some(b)) => b.total_cmp(a),
            (a, b) => b.is_some().cmp(&a.is_some()),
        });
        judged.truncate(count);
        Ok(judged.into_iter().map(|(_, series)| series).collect())
    }

    /// The mean of the values before each; those before the window are read, too.
    fn moving_average(&self) -> Computed {
        let seconds = match self.arguments.get(1) {
            Some(Argument::Text(text)) => Some(
                seconds(text)
                    .filter(|it| *it >= 0)
                    .ok_or_else(|| self.wrong(1, "a duration such as '5min'"))?,
            ),
            _ => None,
        };
        let shown = self
            .arguments
            .get(1)
            .map(ToString::to_string)
            .unwrap_or_default();
        let before = match seconds {
            Some(seconds) => seconds,
            None => {
                let count = self.count(1)?;
                let step = self.series(0)?.iter().map(|series| series.step).max();
                step.unwrap_or(0).saturating_mul(count as i64)
            }
        };
        let window = Window {
            from: self.window.from.saturating_sub(before),
            ..*self.window
        };
        let mut averages = Vec::new();
        let all = self.series_of(0, &window)?;
        self.spend_names(all.len(), shown.len())?;
        for series in all {
            self.source.spend(0)?;
            let step = series.step.max(1);
            let count = match seconds {
                Some(seconds) => usize::try_from(seconds / step).unwrap_or(0),
                None => self.count(1)?,
            };
            let count = count.max(1);
            let skipped = self.window.from.saturating_sub(series.start).max(0);
            let skipped = usize::try_from(skipped / step).unwrap_or(usize::MAX);
            let skipped = skipped.min(series.values.len());
            let (mut sum, mut known) = (0.0, 0_usize);
            let mut values = Vec::with_capacity(series.values.len() - skipped);
            for (place, value) in series.values.iter().enumerate() {
                if let Some(value) = value {
                    sum += value;
                    known += 1;
                }
                if let Some(Some(old)) = place.checked_sub(count).map(|old| series.values[old]) {
                    sum -= old;
                    known -= 1;
                }
                if place >= skipped {
                    values.push((known > 0).then(|| sum / known as f64));
                }
            }
            averages.push(Series {
                name: format!("movingAverage({},{shown})", series.name),
                start: series
                    .start
                    .saturating_add(step.saturating_mul(skipped as i64)),
                values,
                ..series
            });
        }
        Ok(averages)
    }

    fn summarize(&self) -> Computed {
        let text = self.text(1)?;
        let step = seconds(text).filter(|step| *step > 0);
        let step = step.ok_or_else(|| self.wrong(1, "a duration such as '1h'"))?;
        let function = match self.arguments.len() {
            0..=2 => "sum",
            _ => self.text(2)?,
        };
        let from_start = matches!(self.arguments.get(3), Some(Argument::Truth(true)));
        let fold: fn(&[Option<f64>]) -> Option<f64> = match function {
            "sum" | "total" => |values| {
                let mut known = values.iter().flatten().copied();
                known
                    .next()
                    .map(|first| known.fold(first, |sum, value| sum + value))
            },
            "avg" | "average" => mean_of,
            "max" => |values| values.iter().flatten().copied().reduce(f64::max),
            "min" => |values| values.iter().flatten().copied().reduce(f64::min),
            "last" | "current" => |values| values.iter().flatten().copied().next_back(),
            "count" => |values| Some(values.iter().flatten().count() as f64),
            _ => {
                let problem = format!("summarize(): the function `{function}` is not supported");
                return Err(TargetError::Target(problem));
            }
        };
        let mut summarized = Vec::new();
        let all = self.series(0)?;
        self.spend_names(all.len(), text.len())?;
        for series in all {
            let start = match from_start {
                true => series.start,
                false => series.start.div_euclid(step).saturating_mul(step),
            };
            let mut summary = self.resample(&series, start, step, fold)?;
            let ending = if from_start { ", true" } else { "" };
            summary.name = format!(
                "summarize({}, \"{text}\", \"{function}\"{ending})",
                series.name
            );
            summarized.push(summary);
        }
        Ok(summarized)
    }

    /// Values in other steps: each of those that begin in it. They are accounted for before they are computed, since a
    /// short step makes many of few.
    fn resample(
        &self,
        series: &Series,
        start: i64,
        step: i64,
        fold: fn(&[Option<f64>]) -> Option<f64>,
    ) -> Result<Series, TargetError> {
        let before = series.step.max(1);
        let length = i64::try_from(series.values.len()).unwrap_or(i64::MAX);
        // The last value belongs to the step that it begins in.
        let last = series
            .start
            .saturating_add((length - 1).max(0).saturating_mul(before));
        let most = match length {
            0 => 0,
            _ => last.saturating_sub(start).max(0) / step.max(1) + 1,
        };
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        self.source.spend(most)?;
        let mut values = Vec::with_capacity(most);
        let mut rest = &series.values[..];
        let mut time = series.start;
        let mut begin = start;
        while !rest.is_empty() {
            if values.len() % VALUES_PER_CHECK == VALUES_PER_CHECK - 1 {
                self.source.spend(0)?;
            }
            let end = begin.saturating_add(step);
            let inside = end.saturating_sub(time).max(0);
            let inside = inside / before + i64::from(inside % before > 0);
            let count = usize::try_from(inside).unwrap_or(0).min(rest.len());
            values.push(fold(&rest[..count]));
            time = time.saturating_add((count as i64).saturating_mul(before));
            rest = &rest[count..];
            if end == begin {
                break;
            }
            begin = end;
        }
        Ok(Series {
            name: series.name.clone(),
            path: series.path.clone(),
            start,
            step,
            values,
        })
    }
}

fn each(mut series: Vec<Series>, change: impl Fn(&mut Series)) -> Vec<Series> {
    series.iter_mut().for_each(change);
    series
}

/// Parts of a path, those below 0 from the end; what does not exist is left out.
fn parts(path: &str, nodes: &[i64]) -> String {
    let all: Vec<_> = path.split('.').collect();
    let count = all.len() as i64;
    let wanted = nodes.iter().filter_map(|node| {
        let place = if *node < 0 { count + node } else { *node };
        usize::try_from(place).ok().and_then(|place| all.get(place))
    });
    wanted.copied().collect::<Vec<_>>().join(".")
}

fn mean_of(values: &[Option<f64>]) -> Option<f64> {
    mean(values.iter().copied())
}

/// The growth of a counter; of one that fell, what it grew if it went round at a known value.
fn growth(before: f64, value: f64, most: Option<f64>) -> Option<f64> {
    match most {
        _ if value >= before => Some(value - before),
        Some(most) if most >= before => Some(most - before + value + 1.0),
        _ => None,
    }
}

/// Fills gaps of at most `limit` values.
fn keep_last(values: &mut [Option<f64>], limit: usize) {
    let (mut last, mut gap) = (None, 0);
    for place in 0..values.len() {
        match values[place] {
            None => gap += 1,
            known => {
                if let Some(last) = last.filter(|_| gap > 0 && gap <= limit) {
                    values[place - gap..place].fill(Some(last));
                }
                (last, gap) = (known, 0);
            }
        }
    }
    if let Some(last) = last.filter(|_| gap > 0 && gap <= limit) {
        let begin = values.len() - gap;
        values[begin..].fill(Some(last));
    }
}

#[cfg(test)]
mod tests;
