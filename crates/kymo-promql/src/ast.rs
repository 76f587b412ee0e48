//! Expressions of PromQL, what they are, and how they are written.

use std::fmt;

use regex::Regex;

use crate::aggregate::Operator;
use crate::binary::BinaryOperator;
use crate::functions::is_label;

/// Milliseconds.
pub(crate) type Millis = i64;

/// What an expression is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Scalar,
    Vector,
    Matrix,
    Text,
}

impl fmt::Display for Kind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Scalar => "scalar",
            Self::Vector => "vector",
            Self::Matrix => "matrix",
            Self::Text => "string",
        })
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Expr {
    Number(f64),
    Text(String),
    Selector(Selector),
    Range(Range),
    Subquery(Box<Subquery>),
    Paren(Box<Expr>),
    Negated(Box<Expr>),
    Binary(Box<Binary>),
    Aggregate(Box<Aggregate>),
    Call(Call),
}

/// Series by their labels.
#[derive(Clone, Debug)]
pub(crate) struct Selector {
    pub(crate) name: Option<String>,
    pub(crate) matchers: Vec<Matcher>,
    pub(crate) when: When,
}

/// A selector with a range: `x[5m]`.
#[derive(Clone, Debug)]
pub(crate) struct Range {
    pub(crate) selector: Selector,
    pub(crate) range: Millis,
}

/// An expression with a range: `x[1h:5m]`.
#[derive(Clone, Debug)]
pub(crate) struct Subquery {
    pub(crate) expr: Expr,
    pub(crate) range: Millis,
    pub(crate) step: Option<Millis>,
    pub(crate) when: When,
}

/// At which time something is evaluated.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct When {
    pub(crate) at: Option<At>,
    /// How long before.
    pub(crate) offset: Option<Millis>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum At {
    Start,
    End,
    /// Since 1970.
    Time(Millis),
}

/// What a label has to be.
#[derive(Clone, Debug)]
pub(crate) struct Matcher {
    pub(crate) name: String,
    pub(crate) comparison: Comparison,
    /// The value, or the regular expression as it was written.
    pub(crate) value: String,
}

#[derive(Clone, Debug)]
pub(crate) enum Comparison {
    Equal,
    NotEqual,
    Matches(Regex),
    Differs(Regex),
}

impl Matcher {
    pub(crate) fn equal(name: &str, value: &str) -> Self {
        Self {
            name: name.to_owned(),
            comparison: Comparison::Equal,
            value: value.to_owned(),
        }
    }

    pub(crate) fn matches(&self, value: &str) -> bool {
        match &self.comparison {
            Comparison::Equal => self.value == value,
            Comparison::NotEqual => self.value != value,
            Comparison::Matches(regex) => regex.is_match(value),
            Comparison::Differs(regex) => !regex.is_match(value),
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Binary {
    pub(crate) operator: &'static BinaryOperator,
    /// What the operation gives.
    pub(crate) returns: Kind,
    pub(crate) left: Expr,
    pub(crate) right: Expr,
    pub(crate) modifier: Modifier,
}

/// How series of both sides find each other, and what a comparison returns.
#[derive(Clone, Debug, Default)]
pub(crate) struct Modifier {
    pub(crate) returns_bool: bool,
    pub(crate) matching: Option<Grouping>,
    pub(crate) cardinality: Cardinality,
}

/// Labels that count, or all others.
#[derive(Clone, Debug)]
pub(crate) enum Grouping {
    Only(Vec<String>),
    Without(Vec<String>),
}

impl Grouping {
    pub(crate) fn names(&self) -> &[String] {
        match self {
            Self::Only(names) | Self::Without(names) => names,
        }
    }
}

/// How many series of each side match; the labels are those that the "one" side gives.
#[derive(Clone, Debug, Default)]
pub(crate) enum Cardinality {
    #[default]
    OneToOne,
    ManyToOne(Vec<String>),
    OneToMany(Vec<String>),
    ManyToMany,
}

impl Cardinality {
    pub(crate) fn included(&self) -> &[String] {
        match self {
            Self::ManyToOne(names) | Self::OneToMany(names) => names,
            Self::OneToOne | Self::ManyToMany => &[],
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Aggregate {
    pub(crate) operator: Operator,
    pub(crate) parameter: Option<Expr>,
    pub(crate) expr: Expr,
    pub(crate) grouping: Option<Grouping>,
}

#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) name: &'static str,
    pub(crate) args: Vec<Expr>,
    pub(crate) returns: Kind,
}

impl Expr {
    pub(crate) fn kind(&self) -> Kind {
        match self {
            Self::Number(_) => Kind::Scalar,
            Self::Text(_) => Kind::Text,
            Self::Selector(_) | Self::Aggregate(_) => Kind::Vector,
            Self::Range(_) | Self::Subquery(_) => Kind::Matrix,
            Self::Paren(inner) | Self::Negated(inner) => inner.kind(),
            Self::Binary(binary) => binary.returns,
            Self::Call(call) => call.returns,
        }
    }

    /// The text at a level of indentation, in lines if it is long.
    pub(crate) fn pretty(&self, level: usize) -> String {
        let indent = "  ".repeat(level);
        // These are never split.
        let is_short = || self.to_string().len() <= LONGEST_LINE;
        match self {
            Self::Negated(inner) => format!("{indent}-{}", inner.pretty(level).trim_start()),
            Self::Subquery(subquery) => {
                format!("{}{}", subquery.expr.pretty(level), subquery.suffix())
            }
            Self::Number(_) | Self::Text(_) | Self::Selector(_) | Self::Range(_) => {
                format!("{indent}{self}")
            }
            _ if is_short() => format!("{indent}{self}"),
            Self::Paren(inner) => format!("{indent}(\n{}\n{indent})", inner.pretty(level + 1)),
            Self::Binary(binary) => format!(
                "{}\n{indent}{}{}\n{}",
                binary.left.pretty(level + 1),
                binary.operator.name,
                binary.modifier,
                binary.right.pretty(level + 1)
            ),
            Self::Aggregate(aggregate) => {
                let args = aggregate.parameter.iter().chain([&aggregate.expr]);
                format!(
                    "{indent}{}(\n{}\n{indent})",
                    aggregate.head(),
                    pretty_list(args, level + 1)
                )
            }
            Self::Call(call) => format!(
                "{indent}{}(\n{}\n{indent})",
                call.name,
                pretty_list(&call.args, level + 1)
            ),
        }
    }
}

/// Longer expressions are split.
const LONGEST_LINE: usize = 100;

fn pretty_list<'e>(list: impl IntoIterator<Item = &'e Expr>, level: usize) -> String {
    let lines = list.into_iter().map(|expr| expr.pretty(level));
    lines.collect::<Vec<_>>().join(",\n")
}

fn list<T: ToString>(items: impl IntoIterator<Item = T>, separator: &str) -> String {
    let texts = items.into_iter().map(|item| item.to_string());
    texts.collect::<Vec<_>>().join(separator)
}

impl fmt::Display for Expr {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) if number.is_infinite() => {
                out.write_str(if *number > 0.0 { "Inf" } else { "-Inf" })
            }
            Self::Number(number) => write!(out, "{number}"),
            Self::Text(text) => out.write_str(&quoted(text)),
            Self::Selector(selector) => write!(out, "{}{}", selector.series(), selector.when),
            Self::Range(range) => {
                let series = range.selector.series();
                let length = duration_text(range.range);
                write!(out, "{series}[{length}]{}", range.selector.when)
            }
            Self::Subquery(subquery) => write!(out, "{}{}", subquery.expr, subquery.suffix()),
            Self::Paren(inner) => write!(out, "({inner})"),
            Self::Negated(inner) => write!(out, "-{inner}"),
            Self::Binary(binary) => {
                let (operator, modifier) = (binary.operator.name, &binary.modifier);
                write!(out, "{} {operator}{modifier} {}", binary.left, binary.right)
            }
            Self::Aggregate(aggregate) => {
                let args = aggregate.parameter.iter().chain([&aggregate.expr]);
                write!(out, "{}({})", aggregate.head(), list(args, ", "))
            }
            Self::Call(call) => write!(out, "{}({})", call.name, list(&call.args, ", ")),
        }
    }
}

impl Selector {
    fn series(&self) -> String {
        let name = self.name.as_deref().unwrap_or_default();
        match self.matchers.is_empty() {
            true => name.to_owned(),
            false => {
                let mut matchers: Vec<_> = self.matchers.iter().map(Matcher::to_string).collect();
                matchers.sort();
                format!("{name}{{{}}}", matchers.join(","))
            }
        }
    }
}

impl Subquery {
    fn suffix(&self) -> String {
        let range = duration_text(self.range);
        let step = self.step.map(duration_text).unwrap_or_default();
        format!("[{range}:{step}]{}", self.when)
    }
}

impl Aggregate {
    /// What comes before the arguments.
    fn head(&self) -> String {
        let operator = self.operator.name();
        match &self.grouping {
            Some(Grouping::Without(names)) => format!("{operator} without ({}) ", labels(names)),
            Some(Grouping::Only(names)) if !names.is_empty() => {
                format!("{operator} by ({}) ", labels(names))
            }
            _ => operator.to_owned(),
        }
    }
}

impl fmt::Display for When {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.at {
            None => {}
            Some(At::Start) => out.write_str(" @ start()")?,
            Some(At::End) => out.write_str(" @ end()")?,
            Some(At::Time(time)) => write!(out, " @ {:.3}", time as f64 / 1000.0)?,
        }
        match self.offset {
            None => Ok(()),
            Some(offset) if offset < 0 => write!(out, " offset -{}", duration_text(-offset)),
            Some(offset) => write!(out, " offset {}", duration_text(offset)),
        }
    }
}

impl fmt::Display for Matcher {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operator = match self.comparison {
            Comparison::Equal => "=",
            Comparison::NotEqual => "!=",
            Comparison::Matches(_) => "=~",
            Comparison::Differs(_) => "!~",
        };
        write!(
            out,
            "{}{operator}{}",
            label(&self.name),
            quoted(&self.value)
        )
    }
}

impl fmt::Display for Modifier {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.returns_bool {
            out.write_str(" bool")?;
        }
        match &self.matching {
            Some(Grouping::Only(names)) => write!(out, " on ({})", labels(names))?,
            Some(Grouping::Without(names)) if !names.is_empty() => {
                write!(out, " ignoring ({})", labels(names))?;
            }
            _ => {}
        }
        match &self.cardinality {
            Cardinality::ManyToOne(names) => write!(out, " group_left ({})", labels(names)),
            Cardinality::OneToMany(names) => write!(out, " group_right ({})", labels(names)),
            Cardinality::OneToOne | Cardinality::ManyToMany => Ok(()),
        }
    }
}

fn labels(names: &[String]) -> String {
    list(names.iter().map(|name| label(name)), ", ")
}

/// The name of a label, between quotes where it is not a word.
fn label(name: &str) -> String {
    match is_label(name) {
        true => name.to_owned(),
        false => quoted(name),
    }
}

/// A text between quotes.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for char in text.chars() {
        match char {
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            other => out.push(other),
        }
    }
    out.push('"');
    out
}

/// A duration, in years and weeks only if nothing is left: `90d` is easier to read than `12w6d`.
fn duration_text(millis: Millis) -> String {
    let mut rest = millis;
    let mut text = String::new();
    for (unit, length, is_exact) in [
        ("y", 31_536_000_000, true),
        ("w", 604_800_000, true),
        ("d", 86_400_000, false),
        ("h", 3_600_000, false),
        ("m", 60_000, false),
        ("s", 1000, false),
        ("ms", 1, false),
    ] {
        if rest >= length && (!is_exact || rest % length == 0) {
            text.push_str(&format!("{}{unit}", rest / length));
            rest %= length;
        }
    }
    match text.is_empty() {
        true => "0s".to_owned(),
        false => text,
    }
}
