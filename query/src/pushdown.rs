//! What of a condition in SQL the decoder can judge: times, names of events, numbers and texts of fields.

use datafusion::common::ScalarValue;
use datafusion::logical_expr::{Between, BinaryExpr, Expr, Operator, TableProviderFilterPushDown};
use kymo::filter::Filter;
use kymo::pipeline::Window;
use kymo_time::Timestamp;

use crate::source::{EventColumn, EventTable, FieldKind, Own};

/// What was pushed down.
#[derive(Clone, Debug)]
pub(crate) struct Pushed {
    /// The time of which rows are wanted.
    pub(crate) window: Window,
    /// Whether rows without a time are not wanted.
    pub(crate) needs_time: bool,
    /// A condition in kymo's language that all wanted rows fulfil.
    pub(crate) condition: Option<String>,
}

impl Default for Pushed {
    fn default() -> Self {
        Self {
            window: Window::ALL,
            needs_time: false,
            condition: None,
        }
    }
}

/// What one condition becomes.
enum Part {
    Time(Window),
    /// A text of the filter language; whether it is true of no other rows.
    Condition(String, bool),
}

/// Whether conditions need not be judged again above the scan.
pub(crate) fn support(table: &EventTable, filters: &[&Expr]) -> Vec<TableProviderFilterPushDown> {
    let support = |filter: &&Expr| match part(table, filter) {
        Some(Part::Time(_)) => TableProviderFilterPushDown::Exact,
        Some(Part::Condition(text, is_exact)) if is_valid(table, &text) => match is_exact {
            true => TableProviderFilterPushDown::Exact,
            false => TableProviderFilterPushDown::Inexact,
        },
        _ => TableProviderFilterPushDown::Unsupported,
    };
    filters.iter().map(support).collect()
}

/// All that conditions push down.
pub(crate) fn pushed(table: &EventTable, filters: &[Expr]) -> Pushed {
    let mut pushed = Pushed::default();
    let mut conditions = Vec::new();
    for filter in filters {
        match part(table, filter) {
            Some(Part::Time(window)) => {
                pushed.window = pushed.window.and(window);
                pushed.needs_time = true;
            }
            Some(Part::Condition(text, _)) if is_valid(table, &text) => {
                conditions.push(format!("({text})"));
            }
            _ => {}
        }
    }
    pushed.condition = (!conditions.is_empty()).then(|| conditions.join(" and "));
    pushed
}

/// Whether a condition makes sense for these recordings.
fn is_valid(table: &EventTable, condition: &str) -> bool {
    let mut query = table.query(&[], &[]).filter;
    query.condition = Some(condition.to_owned());
    Filter::new(&query, &[], table.source.events.recordings()).is_ok()
}

fn part(table: &EventTable, filter: &Expr) -> Option<Part> {
    match filter {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => match op {
            Operator::And => match (part(table, left)?, part(table, right)?) {
                (Part::Time(left), Part::Time(right)) => Some(Part::Time(left.and(right))),
                (Part::Condition(left, a), Part::Condition(right, b)) => {
                    Some(Part::Condition(format!("({left}) and ({right})"), a && b))
                }
                _ => None,
            },
            Operator::Or => match (part(table, left)?, part(table, right)?) {
                (Part::Condition(left, a), Part::Condition(right, b)) => {
                    Some(Part::Condition(format!("({left}) or ({right})"), a && b))
                }
                _ => None,
            },
            _ => comparison(table, left, *op, right)
                .or_else(|| comparison(table, right, op.swap()?, left)),
        },
        Expr::Between(Between {
            expr,
            negated: false,
            low,
            high,
        }) => {
            let low = comparison(table, expr, Operator::GtEq, low)?;
            let high = comparison(table, expr, Operator::LtEq, high)?;
            match (low, high) {
                (Part::Time(low), Part::Time(high)) => Some(Part::Time(low.and(high))),
                (Part::Condition(low, _), Part::Condition(high, _)) => {
                    Some(Part::Condition(format!("({low}) and ({high})"), false))
                }
                _ => None,
            }
        }
        Expr::InList(list) if !list.negated => {
            let mut is_exact = true;
            let tests = list.list.iter().map(|item| {
                match comparison(table, &list.expr, Operator::Eq, item)? {
                    Part::Condition(text, exact) => {
                        is_exact &= exact;
                        Some(format!("({text})"))
                    }
                    Part::Time(_) => None,
                }
            });
            let tests: Option<Vec<_>> = tests.collect();
            Some(Part::Condition(tests?.join(" or "), is_exact))
        }
        _ => None,
    }
}

/// The column that an expression is, if it is one of this table; and whether it was made a number.
fn column<'t>(table: &'t EventTable, expression: &Expr) -> Option<(&'t EventColumn, bool)> {
    let (name, is_cast) = match expression {
        Expr::Column(column) => (&column.name, false),
        Expr::Cast(cast) => match &*cast.expr {
            Expr::Column(column) => (&column.name, true),
            _ => return None,
        },
        _ => return None,
    };
    let position = table.schema.index_of(name).ok()?;
    Some((&table.columns[position], is_cast))
}

fn comparison(table: &EventTable, left: &Expr, op: Operator, right: &Expr) -> Option<Part> {
    let (column, is_cast) = column(table, left)?;
    let Expr::Literal(value, _) = right else {
        return None;
    };
    match column {
        EventColumn::Own(Own::Timestamp) => {
            let nanos = match value {
                ScalarValue::TimestampNanosecond(Some(nanos), _) if !is_cast => *nanos,
                ScalarValue::Int64(Some(nanos)) if is_cast => *nanos,
                _ => return None,
            };
            window(op, nanos).map(Part::Time)
        }
        EventColumn::Own(Own::Event) if !table.has_nameless => {
            let text = quoted(text_of(value)?)?;
            (op == Operator::Eq).then(|| Part::Condition(format!("event.name == {text}"), true))
        }
        EventColumn::Field(name) if !is_cast && !name.contains(['`', '.']) => {
            let value = match table.kinds.get(name)? {
                FieldKind::Integer => integer(value)?,
                FieldKind::Text if op == Operator::Eq => quoted(text_of(value)?)?,
                _ => return None,
            };
            let op = match op {
                Operator::Eq => "==",
                Operator::NotEq => "!=",
                Operator::Lt => "<",
                Operator::LtEq => "<=",
                Operator::Gt => ">",
                Operator::GtEq => ">=",
                _ => return None,
            };
            Some(Part::Condition(format!("`{name}` {op} {value}"), false))
        }
        _ => None,
    }
}

/// The times that compare so with one.
fn window(op: Operator, nanos: i64) -> Option<Window> {
    // Before the first and after the last time is nothing.
    let (mut begin, mut end) = (i64::MIN, i64::MAX);
    match op {
        Operator::Eq => (begin, end) = (nanos, nanos),
        Operator::Lt => end = nanos.checked_sub(1)?,
        Operator::LtEq => end = nanos,
        Operator::Gt => begin = nanos.checked_add(1)?,
        Operator::GtEq => begin = nanos,
        _ => return None,
    }
    Some(Window {
        begin: Timestamp::from_nanos(begin),
        end: Timestamp::from_nanos(end),
    })
}

fn text_of(value: &ScalarValue) -> Option<&str> {
    match value {
        ScalarValue::Utf8(text) | ScalarValue::LargeUtf8(text) | ScalarValue::Utf8View(text) => {
            text.as_deref()
        }
        ScalarValue::Dictionary(_, value) => text_of(value),
        _ => None,
    }
}

/// A text as the filter language writes it. What stands for invalid bytes is not looked for.
fn quoted(text: &str) -> Option<String> {
    if text.contains(char::REPLACEMENT_CHARACTER) {
        return None;
    }
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            ' '..='~' => quoted.push(letter),
            _ => quoted.push_str(&format!("\\u{{{:x}}}", u32::from(letter))),
        }
    }
    quoted.push('"');
    Some(quoted)
}

fn integer(value: &ScalarValue) -> Option<String> {
    Some(match value {
        ScalarValue::Int8(Some(value)) => value.to_string(),
        ScalarValue::Int16(Some(value)) => value.to_string(),
        ScalarValue::Int32(Some(value)) => value.to_string(),
        ScalarValue::Int64(Some(value)) => value.to_string(),
        ScalarValue::UInt8(Some(value)) => value.to_string(),
        ScalarValue::UInt16(Some(value)) => value.to_string(),
        ScalarValue::UInt32(Some(value)) => value.to_string(),
        ScalarValue::UInt64(Some(value)) => value.to_string(),
        _ => return None,
    })
}

/// The times that a condition selects, if it is only about one column of times.
pub(crate) fn time(name: &str, filter: &Expr) -> Option<Window> {
    let compare = |left: &Expr, op: Operator, right: &Expr| match (left, right) {
        (
            Expr::Column(column),
            Expr::Literal(ScalarValue::TimestampNanosecond(Some(nanos), _), _),
        ) if column.name == name => window(op, *nanos),
        _ => None,
    };
    match filter {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => match op {
            Operator::And => Some(time(name, left)?.and(time(name, right)?)),
            _ => compare(left, *op, right).or_else(|| compare(right, op.swap()?, left)),
        },
        Expr::Between(Between {
            expr,
            negated: false,
            low,
            high,
        }) => {
            let low = compare(expr, Operator::GtEq, low)?;
            Some(low.and(compare(expr, Operator::LtEq, high)?))
        }
        _ => None,
    }
}
