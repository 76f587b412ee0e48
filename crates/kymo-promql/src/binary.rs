//! Operators between two expressions.

use foldhash::{HashMap, HashMapExt};

use crate::ast::{Binary, Cardinality, Grouping, Modifier};
use crate::eval::{ABSENT, Column, Evaluator, Grid, Value, is_absent, merge};
use crate::{Labels, QueryError};

/// A binary operator.
#[derive(Debug)]
pub(crate) struct BinaryOperator {
    pub(crate) name: &'static str,
    /// How tightly it binds.
    pub(crate) level: u8,
    pub(crate) operation: Operation,
}

/// What a binary operator does.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Operation {
    /// It selects series by those of the other side.
    Set(Set),
    /// It computes of two values.
    Compute(Computation),
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Set {
    Or,
    And,
    Unless,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Computation {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    Power,
    Atan2,
    Compare(Comparison),
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// The level of the operator that binds most tightly.
pub(crate) const POWER: u8 = 6;

/// All binary operators.
pub(crate) static OPERATORS: [BinaryOperator; 16] = {
    use Comparison::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual, NotEqual};
    use Computation::{Add, Atan2, Compare, Divide, Modulo, Multiply, Power, Subtract};
    const fn set(name: &'static str, level: u8, set: Set) -> BinaryOperator {
        let operation = Operation::Set(set);
        BinaryOperator {
            name,
            level,
            operation,
        }
    }
    const fn compute(name: &'static str, level: u8, computation: Computation) -> BinaryOperator {
        let operation = Operation::Compute(computation);
        BinaryOperator {
            name,
            level,
            operation,
        }
    }
    [
        set("or", 1, Set::Or),
        set("and", 2, Set::And),
        set("unless", 2, Set::Unless),
        compute("==", 3, Compare(Equal)),
        compute("!=", 3, Compare(NotEqual)),
        compute("<", 3, Compare(Less)),
        compute("<=", 3, Compare(LessOrEqual)),
        compute(">", 3, Compare(Greater)),
        compute(">=", 3, Compare(GreaterOrEqual)),
        compute("+", 4, Add),
        compute("-", 4, Subtract),
        compute("*", 5, Multiply),
        compute("/", 5, Divide),
        compute("%", 5, Modulo),
        compute("atan2", 5, Atan2),
        compute("^", POWER, Power),
    ]
};

impl Computation {
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
        let name = binary.operator.name;
        let computation = match binary.operator.operation {
            Operation::Compute(computation) => computation,
            Operation::Set(set) => {
                let (Value::Vector(left), Value::Vector(right)) = (left, right) else {
                    let text = format!("{name} is of two instant vectors");
                    return Err(QueryError::execution(text));
                };
                let combined = self.set(set, left, right, matching, grid)?;
                return Ok(Value::Vector(combined));
            }
        };
        let returns_bool = matching.returns_bool;
        self.spend(grid.count)?;
        match (left, right) {
            (Value::Scalar(left), Value::Scalar(right)) => {
                let both = left.into_iter().zip(right);
                let values = both.map(|(left, right)| computation.compute(left, right));
                Ok(Value::Scalar(values.collect()))
            }
            (Value::Vector(columns), Value::Scalar(right)) => {
                let compute = |step: usize, value: f64| computation.compute(value, right[step]);
                with_scalar(columns, computation, returns_bool, compute)
            }
            (Value::Scalar(left), Value::Vector(columns)) => {
                let compute = |step: usize, value: f64| computation.compute(left[step], value);
                with_scalar(columns, computation, returns_bool, compute)
            }
            (Value::Vector(left), Value::Vector(right)) => Ok(Value::Vector(self.of_vectors(
                computation,
                &left,
                &right,
                matching,
                grid,
            )?)),
            _ => Err(QueryError::execution(
                "a string is not part of an operation",
            )),
        }
    }

    fn of_vectors(
        &self,
        computation: Computation,
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
        let is_filter = computation.is_comparison() && !returns_bool;
        let drops_name = computation.drops_name(returns_bool);
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
                    let value = computation.compute(left, right);
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
        set: Set,
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
        match set {
            Set::And => restrict(&mut left, &steps_of(&right)?, true),
            Set::Unless => restrict(&mut left, &steps_of(&right)?, false),
            Set::Or => {
                restrict(&mut right, &steps_of(&left)?, false);
                left.append(&mut right);
            }
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
    computation: Computation,
    returns_bool: bool,
    compute: impl Fn(usize, f64) -> f64,
) -> Result<Value, QueryError> {
    let is_filter = computation.is_comparison() && !returns_bool;
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
        if computation.drops_name(returns_bool) {
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
        let less = Computation::Compare(Comparison::Less);
        assert_eq!(less.compute(1.0, 2.0), 1.0);
        assert_eq!(less.compute(f64::NAN, 2.0), 0.0);
        assert_eq!(Computation::Modulo.compute(-5.0, 3.0), -2.0);
    }
}
