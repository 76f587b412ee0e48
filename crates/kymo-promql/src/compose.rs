//! Expressions of their parts, and which parts do not fit together.

use crate::ast::{Binary, Cardinality, Expr, Grouping, Kind, Matcher, Modifier, Selector, When};
use crate::binary::{BinaryOperator, Computation, Operation};
use crate::labels::NAME;

pub(crate) fn selector(name: Option<&str>, matchers: Vec<Matcher>) -> Result<Expr, String> {
    match name {
        Some(name) => {
            if let Some(other) = matchers.iter().find(|matcher| matcher.name == NAME) {
                let other = &other.value;
                return Err(format!(
                    "metric name must not be set twice: '{name}' or '{other}'"
                ));
            }
        }
        // All series are rarely meant.
        None if matchers.iter().all(|matcher| matcher.matches("")) => {
            return Err("vector selector must contain at least one non-empty matcher".to_owned());
        }
        None => {}
    }
    Ok(Expr::Selector(Selector {
        name: name.map(str::to_owned),
        matchers,
        when: When::default(),
    }))
}

pub(crate) fn when(expr: &mut Expr) -> Option<&mut When> {
    match expr {
        Expr::Selector(selector) => Some(&mut selector.when),
        Expr::Range(range) => Some(&mut range.selector.when),
        Expr::Subquery(subquery) => Some(&mut subquery.when),
        _ => None,
    }
}

pub(crate) fn misplaced(modifier: &str) -> String {
    format!(
        "{modifier} modifier must be preceded by an instant vector selector or range vector selector or a subquery"
    )
}

pub(crate) fn negated(expr: Expr) -> Result<Expr, String> {
    match (expr.kind(), expr) {
        (_, Expr::Number(number)) => Ok(Expr::Number(-number)),
        (Kind::Scalar | Kind::Vector, expr) => Ok(Expr::Negated(Box::new(expr))),
        (kind, _) => Err(format!(
            "unary expression only allowed on expressions of type scalar or vector, got: {kind}"
        )),
    }
}

pub(crate) fn binary(
    left: Expr,
    operator: &'static BinaryOperator,
    mut modifier: Modifier,
    right: Expr,
) -> Result<Expr, String> {
    let BinaryOperator {
        name, operation, ..
    } = operator;
    let kinds = [left.kind(), right.kind()];
    let has_scalar = kinds.contains(&Kind::Scalar);
    let names = modifier.matching.as_ref().map_or(&[][..], Grouping::names);
    let is_grouped = matches!(
        modifier.cardinality,
        Cardinality::ManyToOne(_) | Cardinality::OneToMany(_)
    );
    let is_comparison = matches!(operation, Operation::Compute(Computation::Compare(_)));
    if modifier.returns_bool && !is_comparison {
        return Err("bool modifier can only be used on comparison operators".to_owned());
    }
    if is_comparison && kinds == [Kind::Scalar; 2] && !modifier.returns_bool {
        return Err("comparisons between scalars must use BOOL modifier".to_owned());
    }
    if let Some(Grouping::Only(names)) = &modifier.matching
        && let Some(label) = names
            .iter()
            .find(|name| modifier.cardinality.included().contains(name))
    {
        return Err(format!(
            "label '{label}' must not occur in ON and GROUP clause at once"
        ));
    }
    if matches!(operation, Operation::Set(_)) {
        if has_scalar {
            return Err(format!(
                "set operator '{name}' not allowed in binary scalar expression"
            ));
        }
        if is_grouped {
            return Err(format!("no grouping allowed for '{name}' operation"));
        }
        modifier.cardinality = Cardinality::ManyToMany;
    } else if has_scalar && !names.is_empty() {
        return Err("vector matching only allowed between vectors".to_owned());
    }
    if kinds
        .iter()
        .any(|kind| !matches!(kind, Kind::Scalar | Kind::Vector))
    {
        return Err(
            "binary expression must contain only scalar and instant vector types".to_owned(),
        );
    }
    let returns = match kinds {
        [Kind::Scalar, Kind::Scalar] => Kind::Scalar,
        _ => Kind::Vector,
    };
    Ok(Expr::Binary(Box::new(Binary {
        operator,
        returns,
        left,
        right,
        modifier,
    })))
}
