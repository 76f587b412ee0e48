//! From the text of a query to an expression that can be evaluated.

use crate::ast::{Comparison, Expr, Kind, Matcher, Selector};
use crate::grammar;
use crate::labels::NAME;
use crate::tokens::duration;
use crate::{Labels, QueryError};

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
        let root = grammar::parse(query).map_err(QueryError::Parse)?;
        Ok(Self { root })
    }

    /// The expression in the usual form, in lines if it is long.
    pub fn pretty(&self) -> String {
        self.root.pretty(0)
    }

    /// What the expression is, if a range of times cannot be evaluated for it.
    pub fn is_range_vector(&self) -> bool {
        self.root.kind() == Kind::Matrix
    }

    /// Whether it is a text.
    pub fn is_text(&self) -> bool {
        self.root.kind() == Kind::Text
    }
}

/// Which series a selector means.
#[derive(Clone, Debug)]
pub struct Matchers(Vec<Matcher>);

impl Matchers {
    pub(crate) fn of(selector: &Selector) -> Self {
        let mut matchers = selector.matchers.clone();
        if let Some(name) = &selector.name {
            matchers.push(Matcher::equal(NAME, name));
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
            Expr::Selector(selector)
                if selector.when.offset.is_none() && selector.when.at.is_none() =>
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
        matchers.all(|matcher| matcher.matches(labels.get(&matcher.name)))
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
        self.0
            .iter()
            .filter_map(|matcher| match matcher.comparison {
                Comparison::Equal => Some((matcher.name.as_str(), matcher.value.as_str())),
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
