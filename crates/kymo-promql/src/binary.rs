//! Operators between two expressions.

use foldhash::{HashMap, HashMapExt};

use crate::ast::{Binary, Cardinality, Grouping, Modifier};
use crate::eval::{ABSENT, Column, Evaluator, Grid, Value, is_absent, merge};
use crate::{Labels, QueryError};

/// An operator that computes of two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    Power,
    Atan2,
    Compare(Comparison),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Operator {
    fn of(name: &str) -> Option<Self> {
        Some(match name {
            "+" => Self::Add,
            "-" => Self::Subtract,
            "*" => Self::Multiply,
            "/" => Self::Divide,
            "%" => Self::Modulo,
            "^" => Self::Power,
            "atan2" => Self::Atan2,
            "==" => Self::Compare(Comparison::Equal),
            "!=" => Self::Compare(Comparison::NotEqual),
            "<" => Self::Compare(Comparison::Less),
            "<=" => Self::Compare(Comparison::LessOrEqual),
            ">" => Self::Compare(Comparison::Greater),
            ">=" => Self::Compare(Comparison::GreaterOrEqual),
            _ => return None,
        })
    }

    const fn is_comparison(self) -> bool {
        matches!(self, Self::Compare(_))
    }

    /// Whether results are without the name of the metric: those of comparisons that filter keep it, and so do those
    /// of `atan2`, which Prometheus has overlooked.
    const fn drops_name(self, returns_bool: bool) -> bool {
        match self {
            Self::Compare(_) => returns_bool,
            Self::Atan2 => false,
            _ => true,
        }
    }

    /// The value of the operation: of comparisons 1 or 0.
    fn compute(self, left: f64, right: f64) -> f64 {
        let truth = |is_true| if is_true { 1.0 } else { 0.0 };
        match self {
            Self::Add => left + right,
            Self::Subtract => left - right,
            Self::Multiply => left * right,
            Self::Divide => left / right,
            Self::Modulo => left % right,
            Self::Power => left.powf(right),
            Self::Atan2 => left.atan2(right),
            Self::Compare(comparison) => truth(match comparison {
                Comparison::Equal => left == right,
                Comparison::NotEqual => left != right,
                Comparison::Less => left < right,
                Comparison::LessOrEqual => left <= right,
                Comparison::Greater => left > right,
                Comparison::GreaterOrEqual => left >= right,
            }),
        }
    }
}

impl Modifier {
    fn signature(&self, labels: &Labels) -> Labels {
        match &self.matching {
            Some(Grouping::Only(names)) => labels.only(names),
            Some(Grouping::Without(names)) => labels.without(names),
            None => labels.without_name(),
        }
    }

    /// The labels of a result: those of the side that may have many series; in a one-to-one match, only
    /// those that matched.
    fn result(&self, many: &Labels, one: &Labels, drops_name: bool) -> Labels {
        let mut labels = match drops_name {
            true => many.without_name(),
            false => many.clone(),
        };
        match (&self.cardinality, &self.matching) {
            (Cardinality::OneToOne, Some(Grouping::Only(names))) => labels = labels.only(names),
            (Cardinality::OneToOne, Some(Grouping::Without(names))) => {
                labels = labels.removed(names);
            }
            (Cardinality::OneToOne, None) => {}
            (cardinality, _) => {
                for name in cardinality.included() {
                    labels = labels.with(name, one.get(name));
                }
            }
        }
        labels
    }

    const fn is_one_to_one(&self) -> bool {
        matches!(self.cardinality, Cardinality::OneToOne)
    }

    const fn is_one_to_many(&self) -> bool {
        matches!(self.cardinality, Cardinality::OneToMany(_))
    }
}

impl Evaluator<'_> {
    pub(crate) fn binary(&self, binary: &Binary, grid: &Grid) -> Result<Value, QueryError> {
        let left = self.eval(&binary.left, grid)?;
        let right = self.eval(&binary.right, grid)?;
        let matching = &binary.modifier;
        let name = binary.operator;
        let Some(operator) = Operator::of(name) else {
            return match (left, right) {
                (Value::Vector(left), Value::Vector(right)) => {
                    let combined = self.set(name, left, right, matching, grid)?;
                    Ok(Value::Vector(combined))
                }
                _ => Err(QueryError::execution(format!(
                    "{name} is of two instant vectors"
                ))),
            };
        };
        let returns_bool = matching.returns_bool;
        self.spend(grid.count)?;
        match (left, right) {
            (Value::Scalar(left), Value::Scalar(right)) => {
                let both = left.into_iter().zip(right);
                let values = both.map(|(left, right)| operator.compute(left, right));
                Ok(Value::Scalar(values.collect()))
            }
            (Value::Vector(columns), Value::Scalar(right)) => {
                let compute = |step: usize, value: f64| operator.compute(value, right[step]);
                with_scalar(columns, operator, returns_bool, compute)
            }
            (Value::Scalar(left), Value::Vector(columns)) => {
                let compute = |step: usize, value: f64| operator.compute(left[step], value);
                with_scalar(columns, operator, returns_bool, compute)
            }
            (Value::Vector(left), Value::Vector(right)) => Ok(Value::Vector(
                self.of_vectors(operator, &left, &right, matching, grid)?,
            )),
            _ => Err(QueryError::execution(
                "a string is not part of an operation",
            )),
        }
    }

    fn of_vectors(
        &self,
        operator: Operator,
        left: &[Column],
        right: &[Column],
        matching: &Modifier,
        grid: &Grid,
    ) -> Result<Vec<Column>, QueryError> {
        let is_swapped = matching.is_one_to_many();
        let (many, one) = match is_swapped {
            true => (right, left),
            false => (left, right),
        };
        let returns_bool = matching.returns_bool;
        let is_filter = operator.is_comparison() && !returns_bool;
        let drops_name = operator.drops_name(returns_bool);
        // Columns of the side that has one series, by their signatures.
        let mut groups: HashMap<Labels, Vec<usize>> = HashMap::with_capacity(one.len());
        for (place, column) in one.iter().enumerate() {
            groups
                .entry(matching.signature(&column.labels))
                .or_default()
                .push(place);
        }
        // At a step at which one side has nothing, there is nothing to match.
        let has_many = |step: usize| many.iter().any(|it| !is_absent(it.values[step]));
        let is_matched: Vec<bool> = (0..grid.count).map(has_many).collect();
        for (signature, members) in &groups {
            check_unique(one, members, signature, is_swapped, &is_matched)?;
        }
        let mut results = Vec::new();
        // The steps at which a group has had a match already.
        let mut matched: HashMap<Labels, Vec<bool>> = HashMap::new();
        for column in many {
            let signature = matching.signature(&column.labels);
            let Some(members) = groups.get(&signature) else {
                continue;
            };
            for member in members {
                self.spend(grid.count)?;
                let other = &one[*member];
                let mut values = vec![ABSENT; grid.count];
                let mut is_empty = true;
                for (step, to) in values.iter_mut().enumerate() {
                    let (a, b) = (column.values[step], other.values[step]);
                    if is_absent(a) || is_absent(b) {
                        continue;
                    }
                    let (left, right) = if is_swapped { (b, a) } else { (a, b) };
                    let value = operator.compute(left, right);
                    if is_filter && value == 0.0 {
                        continue;
                    }
                    *to = if is_filter { left } else { value };
                    is_empty = false;
                    if matching.is_one_to_one() {
                        let steps = matched
                            .entry(signature.clone())
                            .or_insert_with(|| vec![false; grid.count]);
                        if std::mem::replace(&mut steps[step], true) {
                            return Err(QueryError::execution(
                                "multiple matches for labels: many-to-one matching must be explicit \
                                 (group_left/group_right)",
                            ));
                        }
                    }
                }
                if !is_empty {
                    let labels = matching.result(&column.labels, &other.labels, drops_name);
                    results.push(Column { labels, values });
                }
            }
        }
        merge(results).map_err(|_| {
            QueryError::execution(
                "multiple matches for labels: grouping labels must ensure unique matches",
            )
        })
    }

    /// `and`, `or`, `unless`.
    fn set(
        &self,
        name: &str,
        mut left: Vec<Column>,
        mut right: Vec<Column>,
        matching: &Modifier,
        grid: &Grid,
    ) -> Result<Vec<Column>, QueryError> {
        // At which steps a signature is there.
        let steps_of = |columns: &[Column]| {
            let mut steps: HashMap<Labels, Vec<bool>> = HashMap::new();
            for column in columns {
                self.spend(grid.count)?;
                let there = steps
                    .entry(matching.signature(&column.labels))
                    .or_insert_with(|| vec![false; grid.count]);
                for (there, value) in there.iter_mut().zip(&column.values) {
                    *there |= !is_absent(*value);
                }
            }
            Ok::<_, QueryError>(steps)
        };
        let restrict =
            |columns: &mut Vec<Column>, to: &HashMap<Labels, Vec<bool>>, wanted: bool| {
                for column in columns.iter_mut() {
                    let there = to.get(&matching.signature(&column.labels));
                    for (step, value) in column.values.iter_mut().enumerate() {
                        if there.is_some_and(|there| there[step]) != wanted {
                            *value = ABSENT;
                        }
                    }
                }
                columns.retain(Column::present);
            };
        match name {
            "and" => restrict(&mut left, &steps_of(&right)?, true),
            "unless" => restrict(&mut left, &steps_of(&right)?, false),
            "or" => {
                restrict(&mut right, &steps_of(&left)?, false);
                left.append(&mut right);
            }
            _ => return Err(QueryError::execution(format!("unknown operator {name}"))),
        }
        merge(left)
    }
}

/// Refuses two series of a group that are there at the same step, if it has something to match.
fn check_unique(
    columns: &[Column],
    members: &[usize],
    signature: &Labels,
    is_left: bool,
    is_matched: &[bool],
) -> Result<(), QueryError> {
    if members.len() < 2 {
        return Ok(());
    }
    let steps = is_matched.iter().enumerate();
    for (step, _) in steps.filter(|(_, is_matched)| **is_matched) {
        let mut present = members
            .iter()
            .filter(|member| !is_absent(columns[**member].values[step]));
        if let (Some(first), Some(second)) = (present.next(), present.next()) {
            let side = if is_left { "left" } else { "right" };
            let (first, second) = (&columns[*first].labels, &columns[*second].labels);
            return Err(QueryError::execution(format!(
                "found duplicate series for the match group {signature} on the {side} hand-side of the \
                 operation: [{first}, {second}];many-to-many matching not allowed: matching labels must be \
                 unique on one side"
            )));
        }
    }
    Ok(())
}

fn with_scalar(
    mut columns: Vec<Column>,
    operator: Operator,
    returns_bool: bool,
    compute: impl Fn(usize, f64) -> f64,
) -> Result<Value, QueryError> {
    let is_filter = operator.is_comparison() && !returns_bool;
    for column in &mut columns {
        for (step, value) in column.values.iter_mut().enumerate() {
            if is_absent(*value) {
                continue;
            }
            let result = compute(step, *value);
            if !is_filter {
                *value = result;
            } else if result == 0.0 {
                *value = ABSENT;
            }
        }
        if operator.drops_name(returns_bool) {
            column.labels = column.labels.without_name();
        }
    }
    columns.retain(Column::present);
    Ok(Value::Vector(merge(columns)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comparisons_are_numbers() {
        let less = Operator::of("<").unwrap();
        assert_eq!(less.compute(1.0, 2.0), 1.0);
        assert_eq!(less.compute(f64::NAN, 2.0), 0.0);
        assert_eq!(Operator::of("%").unwrap().compute(-5.0, 3.0), -2.0);
        assert_eq!(Operator::of("and"), None);
    }
}
