//! Functions that make one series of several.

use std::collections::BTreeMap;

use super::{Call, Computed, VALUES_PER_CHECK, mean_of, parts};
use crate::{Argument, Series, Target, TargetError};

impl Call<'_> {
    /// One series of several, after they have the same steps.
    pub(super) fn combine(
        &self,
        function: &str,
        series: Vec<Series>,
        name: String,
    ) -> Result<Option<Series>, TargetError> {
        let function = function.strip_suffix("Series").unwrap_or(function);
        let Some((series, start, step)) = self.normalize(series)? else {
            return Ok(None);
        };
        let length = series
            .iter()
            .map(|series| series.values.len())
            .max()
            .unwrap_or(0);
        let mut values = Vec::with_capacity(length);
        let mut known = Vec::with_capacity(series.len());
        self.source.spend(0)?;
        for place in 0..length {
            if place % VALUES_PER_CHECK == VALUES_PER_CHECK - 1 {
                self.source.spend(0)?;
            }
            let all = series
                .iter()
                .map(|series| series.values.get(place).copied().flatten());
            if function == "diff" {
                // The first one less all others.
                let mut all = all;
                let first = all.next().flatten();
                values.push(first.map(|first| first - all.flatten().sum::<f64>()));
                continue;
            }
            known.clear();
            known.extend(all.flatten());
            values.push(fold(function, &known));
        }
        let path = match self.arguments.first() {
            Some(Argument::Target(Target::Pattern(pattern))) => pattern.to_string(),
            _ => series[0].path.clone(),
        };
        Ok(Some(Series {
            name,
            path,
            start,
            step,
            values,
        }))
    }

    /// Gives all series the same start and step, which is a multiple of all: of several values the mean.
    fn normalize(
        &self,
        mut series: Vec<Series>,
    ) -> Result<Option<(Vec<Series>, i64, i64)>, TargetError> {
        let Some(first) = series.first() else {
            return Ok(None);
        };
        let (mut start, mut step) = (first.start, first.step.max(1));
        for other in &series {
            let longer = other.step.max(1);
            step = (step / greatest_divisor(step, longer)).saturating_mul(longer);
            start = start.min(other.start);
        }
        let start = start.div_euclid(step).saturating_mul(step);
        let is_same = |it: &Series| it.start == start && it.step == step;
        if !series.iter().all(is_same) {
            for series in &mut series {
                *series = self.resample(series, start, step, mean_of)?;
            }
        }
        Ok(Some((series, start, step)))
    }

    pub(super) fn divide(&self) -> Computed {
        let dividends = self.series(0)?;
        let divisors = self.series(1)?;
        let [divisor] = &divisors[..] else {
            return Err(self.wrong(1, &format!("one series, not {}", divisors.len())));
        };
        let mut quotients = Vec::with_capacity(dividends.len());
        for dividend in dividends {
            self.source.spend(divisor.values.len())?;
            let name = format!("divideSeries({},{})", dividend.name, divisor.name);
            let path = dividend.path.clone();
            let Some((both, start, step)) = self.normalize(vec![dividend, divisor.clone()])? else {
                continue;
            };
            let pairs = both[0].values.iter().zip(&both[1].values);
            let values = pairs.map(|(a, b)| Some((*a)? / b.filter(|b| *b != 0.0)?));
            quotients.push(Series {
                name,
                path,
                start,
                step,
                values: values.collect(),
            });
        }
        Ok(quotients)
    }

    pub(super) fn group_by_nodes(&self) -> Computed {
        let series = self.series(0)?;
        // groupByNode(series, node, function), groupByNodes(series, function, node...).
        let (function, nodes) = if self.name == "groupByNode" {
            let function = match self.arguments.len() {
                0..=2 => "average",
                _ => self.text(2)?,
            };
            let node = self.number(1)?;
            (function, vec![node.clamp(-1000.0, 1000.0) as i64])
        } else {
            (self.text(1)?, self.nodes(2)?)
        };
        let plain = function.strip_suffix("Series").unwrap_or(function);
        let known = [
            "sum", "average", "avg", "max", "min", "count", "multiply", "rangeOf", "stddev", "diff",
        ];
        if !known.contains(&plain) {
            let problem = format!(
                "{}(): the function `{function}` is not supported",
                self.name
            );
            return Err(TargetError::Target(problem));
        }
        let mut groups: BTreeMap<String, Vec<Series>> = BTreeMap::new();
        for series in series {
            groups
                .entry(parts(&series.path, &nodes))
                .or_default()
                .push(series);
        }
        let mut combined = Vec::with_capacity(groups.len());
        for (name, members) in groups {
            combined.extend(self.combine(plain, members, name)?);
        }
        Ok(combined)
    }
}

fn fold(function: &str, known: &[f64]) -> Option<f64> {
    let values = || known.iter().copied();
    let count = known.len() as f64;
    if function == "count" {
        return Some(count);
    }
    if known.is_empty() {
        return None;
    }
    let sum = || values().fold(0.0, |sum, value| sum + value);
    Some(match function {
        "sum" => sum(),
        "max" => values().fold(f64::NEG_INFINITY, f64::max),
        "min" => values().fold(f64::INFINITY, f64::min),
        "multiply" => values().product(),
        "rangeOf" => {
            values().fold(f64::NEG_INFINITY, f64::max) - values().fold(f64::INFINITY, f64::min)
        }
        "stddev" => {
            let mean = sum() / count;
            (values().map(|value| (value - mean).powi(2)).sum::<f64>() / count).sqrt()
        }
        _ => sum() / count,
    })
}

fn greatest_divisor(mut a: i64, mut b: i64) -> i64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a.max(1)
}
