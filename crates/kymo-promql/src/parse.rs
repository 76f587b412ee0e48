//! From the text of a query to an expression that can be evaluated.

use promql_parser::label::{MatchOp, Matcher};
use promql_parser::parser::value::ValueType;
use promql_parser::parser::{Expr, VectorSelector, parse};
use regex::Regex;

use crate::guard::{Guarded, duration, guard};
use crate::labels::NAME;
use crate::{Labels, QueryError, aggregate, functions, over_time};

/// Milliseconds of a duration such as `1h30m`; `None` if it is something else, or too long.
///
/// ```
/// use kymo_promql::parse_duration;
///
/// assert_eq!(parse_duration("1h30m"), Some(5_400_000));
/// assert_eq!(parse_duration("30m1h"), None);
/// ```
pub fn parse_duration(text: &str) -> Option<i64> {
    let (length, millis) = duration(text).ok()?;
    let millis = i64::try_from(millis).ok()?;
    (length == text.len()).then_some(millis)
}

/// A query that can be evaluated.
#[derive(Clone, Debug)]
pub struct Expression {
    pub(crate) root: Expr,
}

impl Expression {
    /// Reads a query.
    ///
    /// # Errors
    ///
    /// [`QueryError::Parse`] where it is not PromQL, or asks for what does not exist here, such as
    /// `histogram_quantile`.
    ///
    /// ```
    /// use kymo_promql::Expression;
    ///
    /// let expression = Expression::parse("sum by(host)(rate(x[5m]))").unwrap();
    /// assert_eq!(expression.pretty(), "sum by (host) (rate(x[5m]))");
    /// assert!(Expression::parse("histogram_quantile(0.9, x)").is_err());
    /// ```
    pub fn parse(query: &str) -> Result<Self, QueryError> {
        let Guarded { text, patterns } = guard(query).map_err(QueryError::Parse)?;
        if text.trim().is_empty() {
            let problem = "1:1: parse error: no expression found in input";
            return Err(QueryError::Parse(problem.to_owned()));
        }
        let mut root = parse(&text).map_err(parse_error)?;
        check(&root).map_err(QueryError::Parse)?;
        restore(&mut root, &mut patterns.into_iter());
        Ok(Self { root })
    }

    /// The expression in the usual form, in lines if it is long.
    pub fn pretty(&self) -> String {
        self.root.prettify()
    }

    /// What the expression is, if a range of times cannot be evaluated for it.
    pub fn is_range_vector(&self) -> bool {
        self.root.value_type() == ValueType::Matrix
    }

    /// Whether it is a text.
    pub fn is_text(&self) -> bool {
        self.root.value_type() == ValueType::String
    }
}

fn parse_error(problem: String) -> QueryError {
    QueryError::Parse(format!("parse error: {problem}"))
}

/// Gives matchers the regular expressions that were written, for those who show them; they go on to match as translated.
fn restore(expr: &mut Expr, patterns: &mut std::vec::IntoIter<String>) {
    let mut selector = |selector: &mut VectorSelector| {
        for matcher in &mut selector.matchers.matchers {
            if matches!(matcher.op, MatchOp::Re(_) | MatchOp::NotRe(_))
                && let Some(pattern) = patterns.next()
            {
                matcher.value = pattern;
            }
        }
    };
    match expr {
        Expr::VectorSelector(vector) => selector(vector),
        Expr::MatrixSelector(matrix) => selector(&mut matrix.vs),
        Expr::Aggregate(aggregate) => {
            if let Some(param) = &mut aggregate.param {
                restore(param, patterns);
            }
            restore(&mut aggregate.expr, patterns);
        }
        Expr::Unary(unary) => restore(&mut unary.expr, patterns),
        Expr::Binary(binary) => {
            restore(&mut binary.lhs, patterns);
            restore(&mut binary.rhs, patterns);
        }
        Expr::Paren(paren) => restore(&mut paren.expr, patterns),
        Expr::Subquery(subquery) => restore(&mut subquery.expr, patterns),
        Expr::Call(call) => {
            for arg in &mut call.args.args {
                restore(arg, patterns);
            }
        }
        Expr::NumberLiteral(_) | Expr::StringLiteral(_) | Expr::Extension(_) => {}
    }
}

/// Refuses what the parser takes and the evaluation does not know.
fn check(expr: &Expr) -> Result<(), String> {
    match expr {
        Expr::Aggregate(aggregate) => {
            aggregate::Operator::of(aggregate)?;
            aggregate.param.iter().try_for_each(|param| check(param))?;
            check(&aggregate.expr)
        }
        Expr::Unary(unary) => check(&unary.expr),
        Expr::Binary(binary) => {
            if let Some(modifier) = &binary.modifier {
                let fill = &modifier.fill_values;
                if fill.lhs.is_some() || fill.rhs.is_some() {
                    return Err("fill modifiers are not supported".to_owned());
                }
            }
            check(&binary.lhs)?;
            check(&binary.rhs)
        }
        Expr::Paren(paren) => check(&paren.expr),
        Expr::Subquery(subquery) => {
            if subquery.expr.value_type() != ValueType::Vector {
                return Err("subquery is only allowed on instant vector".to_owned());
            }
            if subquery.range.as_millis() == 0
                || subquery.step.is_some_and(|it| it.as_millis() == 0)
            {
                return Err("duration must be greater than 0".to_owned());
            }
            check(&subquery.expr)
        }
        Expr::NumberLiteral(_) | Expr::StringLiteral(_) => Ok(()),
        Expr::VectorSelector(selector) => check_selector(selector),
        Expr::MatrixSelector(matrix) => {
            if matrix.range.as_millis() == 0 {
                return Err("duration must be greater than 0".to_owned());
            }
            check_selector(&matrix.vs)
        }
        Expr::Call(call) => {
            let name = call.func.name;
            if !functions::is_known(name) && !over_time::is_known(name) {
                return Err(functions::refusal(name));
            }
            // The parser passes over the types of `ln(-1)` and the like.
            for (place, arg) in call.args.args.iter().enumerate() {
                let types = &call.func.arg_types;
                let expected = types.get(place).or(types.last());
                let found = arg.value_type();
                if expected.is_none_or(|expected| *expected != found) {
                    return Err(format!(
                        "unexpected type {found} in call to function '{name}'"
                    ));
                }
                check(arg)?;
            }
            Ok(())
        }
        Expr::Extension(_) => Err("extensions are not supported".to_owned()),
    }
}

fn check_selector(selector: &VectorSelector) -> Result<(), String> {
    match selector.matchers.or_matchers.is_empty() {
        true => Ok(()),
        false => Err("`or` between matchers is not supported".to_owned()),
    }
}

/// Which series a selector means.
#[derive(Clone, Debug)]
pub struct Matchers(Vec<Matcher>);

impl Matchers {
    pub(crate) fn of(selector: &VectorSelector) -> Self {
        let mut matchers = selector.matchers.matchers.clone();
        if let Some(name) = &selector.name {
            matchers.push(Matcher::new(MatchOp::Equal, NAME, name));
        }
        Self(matchers)
    }

    /// Reads a selector such as `up{job="a"}`.
    ///
    /// # Errors
    ///
    /// [`QueryError::Parse`] if it is something else.
    pub fn parse(text: &str) -> Result<Self, QueryError> {
        match Expression::parse(text)?.root {
            Expr::VectorSelector(selector)
                if selector.offset.is_none() && selector.at.is_none() =>
            {
                Ok(Self::of(&selector))
            }
            _ => Err(QueryError::Parse(format!(
                "{text:?} is not a series selector"
            ))),
        }
    }

    /// Whether a series of these labels is meant.
    pub fn matches(&self, labels: &Labels) -> bool {
        let mut matchers = self.0.iter();
        matchers.all(|matcher| matcher.is_match(labels.get(&matcher.name)))
    }

    /// The name of the metric, if only one can match.
    pub fn name(&self) -> Option<&str> {
        let mut equal = self.equal();
        equal
            .find(|(name, _)| *name == NAME)
            .map(|(_, value)| value)
    }

    /// Labels that must have one value, and these.
    pub fn equal(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().filter_map(|matcher| match matcher.op {
            MatchOp::Equal => Some((matcher.name.as_str(), matcher.value.as_str())),
            _ => None,
        })
    }

    /// The labels that `absent` gives: those of which a series without a doubt would have this value.
    pub(crate) fn certain_labels(&self) -> Labels {
        let names = |name: &str| self.0.iter().filter(|it| it.name == name).count();
        let certain = self.equal();
        Labels::new(certain.filter(|(name, _)| *name != NAME && names(name) == 1))
    }
}

/// A regular expression that has to match a whole text, of a bounded size when it is compiled.
///
/// # Errors
///
/// If it is not one, or larger than `size` bytes.
pub(crate) fn anchored(pattern: &str, size: usize) -> Result<Regex, regex::Error> {
    regex::RegexBuilder::new(&format!("^(?:{pattern})$"))
        .size_limit(size)
        .build()
}
