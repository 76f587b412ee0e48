//! Aggregations: values of several series become one.

use foldhash::{HashMap, HashMapExt};

use crate::ast::{Aggregate, Grouping, Kind};
use crate::eval::{ABSENT, Column, Evaluator, Grid, Value, is_absent, merge};
use crate::functions::is_label;
use crate::over_time::quantile;
use crate::{Labels, QueryError, number};

/// How values become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operator {
    Sum,
    Average,
    Count,
    Min,
    Max,
    Group,
    Deviation,
    Variance,
    TopK,
    BottomK,
    Quantile,
    CountValues,
}

impl Operator {
    const NAMES: [(&str, Self); 12] = [
        ("sum", Self::Sum),
        ("avg", Self::Average),
        ("count", Self::Count),
        ("min", Self::Min),
        ("max", Self::Max),
        ("group", Self::Group),
        ("stddev", Self::Deviation),
        ("stdvar", Self::Variance),
        ("topk", Self::TopK),
        ("bottomk", Self::BottomK),
        ("quantile", Self::Quantile),
        ("count_values", Self::CountValues),
    ];

    pub(crate) fn named(name: &str) -> Option<Self> {
        let mut names = Self::NAMES.iter();
        names.find(|(known, _)| *known == name).map(|it| it.1)
    }

    pub(crate) fn name(self) -> &'static str {
        let mut names = Self::NAMES.iter();
        names
            .find(|(_, operator)| *operator == self)
            .map_or("", |it| it.0)
    }

    /// What the parameter is, of those that have one.
    pub(crate) const fn parameter(self) -> Option<Kind> {
        match self {
            Self::TopK | Self::BottomK | Self::Quantile => Some(Kind::Scalar),
            Self::CountValues => Some(Kind::Text),
            _ => None,
        }
    }
}

/// Series with the same labels in the aggregation.
struct Group {
    labels: Labels,
    members: Vec<usize>,
}

impl Evaluator<'_> {
    pub(crate) fn aggregate(
        &self,
        aggregate: &Aggregate,
        grid: &Grid,
    ) -> Result<Value, QueryError> {
        let operator = aggregate.operator;
        let parameter = aggregate.parameter.as_ref();
        let columns = self.columns(&aggregate.expr, grid)?;
        let groups = group(&columns, aggregate.grouping.as_ref());
        let missing = || QueryError::execution("the aggregation lacks its parameter");
        let aggregated = match operator {
            Operator::TopK | Operator::BottomK => {
                let counts = self.scalars(parameter.ok_or_else(missing)?, grid)?;
                let is_top = operator == Operator::TopK;
                select_extremes(columns, &groups, &counts, is_top, grid)?
            }
            Operator::CountValues => {
                let label = self.text(parameter.ok_or_else(missing)?, grid)?;
                if !is_label(&label) {
                    return Err(QueryError::execution(format!(
                        "invalid label name {label:?}"
                    )));
                }
                self.count_values(&columns, &groups, &label, grid)?
            }
            Operator::Quantile => {
                let parts = self.scalars(parameter.ok_or_else(missing)?, grid)?;
                self.fold_groups(&columns, &groups, grid, |step, values| {
                    quantile(parts[step], values)
                })?
            }
            _ => self.fold_groups(&columns, &groups, grid, |_, values| fold(operator, values))?,
        };
        Ok(Value::Vector(aggregated))
    }

    fn fold_groups(
        &self,
        columns: &[Column],
        groups: &[Group],
        grid: &Grid,
        fold: impl Fn(usize, &mut [f64]) -> f64,
    ) -> Result<Vec<Column>, QueryError> {
        let mut present = Vec::new();
        let mut folded = Vec::with_capacity(groups.len());
        for group in groups {
            self.spend(grid.count)?;
            let mut values = Vec::with_capacity(grid.count);
            for step in 0..grid.count {
                let members = group
                    .members
                    .iter()
                    .map(|member| columns[*member].values[step]);
                present.clear();
                present.extend(members.filter(|value| !is_absent(*value)));
                values.push(match present.is_empty() {
                    true => ABSENT,
                    false => fold(step, &mut present),
                });
            }
            let labels = group.labels.clone();
            folded.push(Column { labels, values });
        }
        Ok(folded)
    }

    /// How often each value comes, which is a label.
    fn count_values(
        &self,
        columns: &[Column],
        groups: &[Group],
        label: &str,
        grid: &Grid,
    ) -> Result<Vec<Column>, QueryError> {
        let mut counted = Vec::new();
        for group in groups {
            let mut places: HashMap<String, usize> = HashMap::new();
            for step in 0..grid.count {
                for member in &group.members {
                    let value = columns[*member].values[step];
                    if is_absent(value) {
                        continue;
                    }
                    let text = number(value, false);
                    let place = match places.get(&text) {
                        Some(place) => *place,
                        None => {
                            self.spend(grid.count)?;
                            counted.push(Column {
                                labels: group.labels.with(label, &text),
                                values: vec![ABSENT; grid.count],
                            });
                            places.insert(text, counted.len() - 1);
                            counted.len() - 1
                        }
                    };
                    let count = &mut counted[place].values[step];
                    *count = if is_absent(*count) { 1.0 } else { *count + 1.0 };
                }
            }
        }
        merge(counted)
    }
}

/// Which columns belong together.
fn group(columns: &[Column], modifier: Option<&Grouping>) -> Vec<Group> {
    let mut places: HashMap<Labels, usize> = HashMap::new();
    let mut groups: Vec<Group> = Vec::new();
    for (member, column) in columns.iter().enumerate() {
        let labels = match modifier {
            None => Labels::default(),
            Some(Grouping::Only(names)) => column.labels.only(names),
            Some(Grouping::Without(names)) => column.labels.without(names),
        };
        match places.get(&labels) {
            Some(place) => groups[*place].members.push(member),
            None => {
                places.insert(labels.clone(), groups.len());
                let members = vec![member];
                groups.push(Group { labels, members });
            }
        }
    }
    groups
}

fn fold(operator: Operator, values: &[f64]) -> f64 {
    let known = || values.iter().copied();
    let count = values.len() as f64;
    match operator {
        Operator::Sum => known().sum(),
        Operator::Average => average(values),
        Operator::Count => count,
        Operator::Min => known()
            .reduce(|least, value| {
                if value < least || least.is_nan() {
                    value
                } else {
                    least
                }
            })
            .unwrap_or(f64::NAN),
        Operator::Max => known()
            .reduce(|most, value| {
                if value > most || most.is_nan() {
                    value
                } else {
                    most
                }
            })
            .unwrap_or(f64::NAN),
        Operator::Deviation => variance(values).sqrt(),
        Operator::Variance => variance(values),
        _ => 1.0,
    }
}

fn average(values: &[f64]) -> f64 {
    let sum: f64 = values.iter().sum();
    let count = values.len() as f64;
    match sum.is_infinite() && values.iter().all(|value| value.is_finite()) {
        // The sum is too large, but the mean is not.
        true => values.iter().map(|value| value / count).sum(),
        false => sum / count,
    }
}

fn variance(values: &[f64]) -> f64 {
    // A single value has none, even if it is not a number.
    let [first, rest @ ..] = values else {
        return f64::NAN;
    };
    let (mut count, mut mean, mut squares) = (1.0, *first, 0.0);
    for value in rest {
        count += 1.0;
        let delta = value - mean;
        mean += delta / count;
        squares += delta * (value - mean);
    }
    squares / count
}

/// Keeps a number of the greatest or least values of each group; the best come first, if there is one
/// step only.
fn select_extremes(
    mut columns: Vec<Column>,
    groups: &[Group],
    counts: &[f64],
    is_top: bool,
    grid: &Grid,
) -> Result<Vec<Column>, QueryError> {
    // NaN is worse than all others.
    let order = |a: f64, b: f64| {
        let better = if is_top {
            b.total_cmp(&a)
        } else {
            a.total_cmp(&b)
        };
        let is_equal = a == b;
        let better = if is_equal {
            std::cmp::Ordering::Equal
        } else {
            better
        };
        a.is_nan().cmp(&b.is_nan()).then(better)
    };
    let mut order_of_first = Vec::new();
    for group in groups {
        for (step, count) in counts.iter().copied().enumerate() {
            if count.is_nan() || count.abs() >= 9.2e18 {
                let count = number(count, true);
                return Err(QueryError::execution(format!(
                    "Scalar value {count} overflows int64"
                )));
            }
            let members = group.members.iter().copied();
            let mut present: Vec<_> = members
                .map(|member| (member, columns[member].values[step]))
                .filter(|(_, value)| !is_absent(*value))
                .collect();
            // Among equal ones, those that come first stay.
            present.sort_by(|a, b| order(a.1, b.1));
            let kept = present.len().min(count.max(0.0) as usize);
            for (member, _) in &present[kept..] {
                columns[*member].values[step] = ABSENT;
            }
            if grid.count == 1 {
                order_of_first.extend(present[..kept].iter().map(|(member, _)| *member));
            }
        }
    }
    if grid.count == 1 {
        let ordered = order_of_first.iter().map(|member| columns[*member].clone());
        return Ok(ordered.collect());
    }
    columns.retain(Column::present);
    Ok(columns)
}
