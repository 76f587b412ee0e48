//! Runs a filter over the captured values of an event.

use std::cmp::Ordering;

use kymo_model::{Selection, Value};

use super::expr::{Comparison, Function, Pattern};
use super::glob::Glob;
use super::surround::Surround;

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Source {
    /// It was written in the filter, or is the same for all events of a class.
    Constant(Constant),
    /// A slot of the event's selection.
    Event(usize),
    /// A slot of the packet's selection.
    Packet(usize),
    /// The event's time.
    Time,
    /// The stream's number.
    StreamId,
    /// The stream's name.
    StreamName,
}

impl Source {
    /// Whether all events of a class have the same value in a chunk.
    pub(crate) fn is_of_chunk(&self) -> bool {
        !matches!(self, Self::Event(_) | Self::Time)
    }
}

/// A value that does not change.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Constant {
    /// A number.
    Number(Number),
    /// True or false.
    Bool(bool),
    /// Text.
    Text(Vec<u8>),
}

/// A number, compared exactly whatever its kind.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Number {
    /// From -2^63 to 2^64 - 1.
    Integer(i128),
    /// A floating point number.
    Float(f64),
}

impl PartialEq for Number {
    fn eq(&self, other: &Self) -> bool {
        self.partial_cmp(other) == Some(Ordering::Equal)
    }
}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        match (*self, *other) {
            (Self::Integer(a), Self::Integer(b)) => Some(a.cmp(&b)),
            (Self::Float(a), Self::Float(b)) => a.partial_cmp(&b),
            (Self::Integer(a), Self::Float(b)) => compare_exactly(a, b),
            (Self::Float(a), Self::Integer(b)) => compare_exactly(b, a).map(Ordering::reverse),
        }
    }
}

/// Compares without rounding the integer, which has at most 64 bits and a sign.
fn compare_exactly(integer: i128, float: f64) -> Option<Ordering> {
    if float.is_nan() {
        return None;
    }
    // Casting saturates, far beyond what the integer can be.
    let whole = float.trunc() as i128;
    Some(integer.cmp(&whole).then_with(|| {
        0.0f64
            .partial_cmp(&float.fract())
            .unwrap_or(Ordering::Equal)
    }))
}

/// A set of ranges, ordered and apart.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Ranges<T>(Vec<(T, T)>);

impl<T> Default for Ranges<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: PartialOrd> Ranges<T> {
    /// A set of inclusive ranges in any order.
    pub(super) fn new(mut ranges: Vec<(T, T)>) -> Self {
        ranges.sort_by(|a, b| a.0.partial_cmp(&b.0).unwrap_or(Ordering::Equal));
        let mut merged: Vec<(T, T)> = Vec::with_capacity(ranges.len());
        for (low, high) in ranges {
            match merged.last_mut() {
                Some(last) if low <= last.1 => {
                    if high > last.1 {
                        last.1 = high;
                    }
                }
                _ => merged.push((low, high)),
            }
        }
        Self(merged)
    }

    /// Whether a value is in the set; `order` compares a bound with it.
    fn contains(&self, order: impl Fn(&T) -> Option<Ordering>) -> bool {
        let after = self
            .0
            .partition_point(|(low, _)| order(low).is_some_and(Ordering::is_le));
        after
            .checked_sub(1)
            .is_some_and(|at| order(&self.0[at].1).is_some_and(Ordering::is_ge))
    }
}

/// A set of values.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Set {
    /// Numbers.
    pub(super) numbers: Ranges<Number>,
    /// Texts, in the order of their bytes.
    pub(super) texts: Ranges<Vec<u8>>,
    /// Truth values.
    pub(super) bools: Vec<bool>,
}

/// What is asked of a value that is there; of one that is missing the answer is no.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Question {
    /// Whether it is true, or not zero.
    Truth,
    /// How it compares to another one.
    Compare(Comparison, Source),
    /// Whether it is in a set.
    Among(Set),
    /// Whether it is outside of a set.
    Outside(Set),
    /// Whether it matches.
    Like(Glob),
    /// Whether a regular expression matches a part of it.
    Matches(Pattern),
    /// Whether it contains this text.
    Contains(Vec<u8>),
    /// Whether any of these bits is set.
    Bits(u64),
}

/// A question about a value.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Test {
    /// Where the value comes from.
    pub(super) subject: Source,
    /// What is made of it first.
    pub(super) function: Option<Function>,
    /// What is asked.
    pub(super) question: Question,
}

/// What is known of an event when a filter is run over it.
pub(super) struct Facts<'a> {
    /// Fields of the event.
    pub(super) event: &'a Selection,
    /// Its time in nanoseconds.
    pub(super) time: Option<i64>,
    /// Its packet and its stream.
    pub(super) surround: &'a Surround,
}

impl<'a> Facts<'a> {
    #[inline]
    fn value(&self, source: &'a Source) -> Value<'a> {
        self.surround.value(source, Some(self.event), self.time)
    }
}

impl Test {
    /// The answer.
    pub(super) fn holds(&self, facts: &Facts<'_>) -> bool {
        let mut text = Vec::new();
        let value = facts.value(&self.subject);
        let value = match self.function {
            Some(function) => function.of(value, &mut text),
            None => value,
        };
        match &self.question {
            Question::Truth => match value {
                Value::Bool(value) => value,
                value => number(value).is_some_and(|value| value != Number::Integer(0)),
            },
            Question::Compare(comparison, other) => {
                compare(value, facts.value(other)).is_some_and(|order| comparison.holds(order))
            }
            Question::Among(set) => set.contains(value) == Some(true),
            Question::Outside(set) => set.contains(value) == Some(false),
            Question::Like(glob) => self::text(value).is_some_and(|text| glob.matches(text)),
            Question::Matches(pattern) => {
                self::text(value).is_some_and(|text| pattern.0.is_match(text))
            }
            Question::Contains(part) => self::text(value).is_some_and(|text| contains(text, part)),
            Question::Bits(mask) => matches!(value, Value::Bits(bits) if bits & mask != 0),
        }
    }
}

impl Function {
    /// What it makes of a value; `text` is memory for a text.
    fn of<'v>(self, value: Value<'v>, text: &'v mut Vec<u8>) -> Value<'v> {
        use std::io::Write as _;
        let digits = |bytes: &[u8], text: &mut Vec<u8>| {
            // Writing to memory does not fail.
            bytes.iter().for_each(|byte| _ = write!(text, "{byte:02x}"));
        };
        match (self, value) {
            (Self::Len, Value::Text(bytes) | Value::Blob(bytes)) => {
                return Value::Uint(bytes.len() as u64);
            }
            (Self::Len, Value::Array(length)) => return Value::Uint(length),
            (Self::Lower, Value::Text(bytes)) => match std::str::from_utf8(bytes) {
                Ok(valid) => text.extend_from_slice(valid.to_lowercase().as_bytes()),
                Err(_) => text.extend(bytes.iter().map(u8::to_ascii_lowercase)),
            },
            (Self::Hex, Value::Uint(value) | Value::Bits(value)) => _ = write!(text, "0x{value:x}"),
            (Self::Hex, Value::Sint(value)) => {
                let sign = if value < 0 { "-" } else { "" };
                _ = write!(text, "{sign}0x{:x}", value.unsigned_abs());
            }
            (Self::Hex, Value::Text(bytes) | Value::Blob(bytes)) => digits(bytes, text),
            _ => return Value::Missing,
        }
        Value::Text(text)
    }
}

impl Set {
    /// Whether all of its numbers lie outside limits.
    pub(super) fn is_beyond(&self, (low, high): (i128, i128)) -> bool {
        let (low, high) = (Number::Integer(low), Number::Integer(high));
        let mut numbers = self.numbers.0.iter();
        numbers.all(|range| range.1 < low || range.0 > high)
    }

    /// Whether a value is in the set; `None` where it is of a kind that cannot be.
    fn contains(&self, value: Value<'_>) -> Option<bool> {
        if let Value::Bool(value) = value {
            Some(self.bools.contains(&value))
        } else if let Some(text) = text(value) {
            Some(
                self.texts
                    .contains(|bound| Some(bound.as_slice().cmp(text))),
            )
        } else {
            let number = number(value)?;
            Some(self.numbers.contains(|bound| bound.partial_cmp(&number)))
        }
    }
}

/// The order of two values, `Some(None)` with a NaN; `None` where one is missing or they
/// are of kinds that have no order.
fn compare(a: Value<'_>, b: Value<'_>) -> Option<Option<Ordering>> {
    if let (Value::Bool(a), Value::Bool(b)) = (a, b) {
        return Some(Some(a.cmp(&b)));
    }
    if let (Some(a), Some(b)) = (text(a), text(b)) {
        return Some(Some(a.cmp(b)));
    }
    Some(number(a)?.partial_cmp(&number(b)?))
}

fn number(value: Value<'_>) -> Option<Number> {
    match value {
        Value::Uint(value) | Value::Bits(value) => Some(Number::Integer(value.into())),
        Value::Sint(value) => Some(Number::Integer(value.into())),
        Value::Float(value) => Some(Number::Float(value)),
        _ => None,
    }
}

fn text(value: Value<'_>) -> Option<&[u8]> {
    match value {
        Value::Text(text) | Value::Blob(text) => Some(text),
        _ => None,
    }
}

/// Whether `text` contains `part`.
pub(super) fn contains(text: &[u8], part: &[u8]) -> bool {
    let Some((first, rest)) = part.split_first() else {
        return true;
    };
    let mut text = text;
    while let Some(at) = text.iter().position(|byte| byte == first) {
        text = &text[at + 1..];
        if text.starts_with(rest) {
            return true;
        }
    }
    false
}

/// A condition whose tests are bound to one event class, without constants inside.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Condition {
    /// True or false.
    Const(bool),
    /// A test.
    Test(Test),
    /// Not so.
    Not(Box<Condition>),
    /// Any of them.
    Any(Vec<Condition>),
    /// All of the conditions.
    All(Vec<Condition>),
}

impl Condition {
    /// Any of the parts; false if there are none.
    pub(super) fn any(parts: impl IntoIterator<Item = Self>) -> Self {
        Self::join(parts, true, Self::Any)
    }

    /// All of the parts; true if there are none.
    pub(super) fn all(parts: impl IntoIterator<Item = Self>) -> Self {
        Self::join(parts, false, Self::All)
    }

    /// Joins parts, of which a constant `decisive` settles the whole.
    fn join(
        parts: impl IntoIterator<Item = Self>,
        decisive: bool,
        join: impl Fn(Vec<Self>) -> Self,
    ) -> Self {
        let mut open = Vec::new();
        for part in parts {
            match part {
                Self::Const(value) if value == decisive => return Self::Const(decisive),
                Self::Const(_) => {}
                part => open.push(part),
            }
        }
        match open.len() {
            0 => Self::Const(!decisive),
            1 => open.remove(0),
            _ => join(open),
        }
    }

    /// The contrary.
    pub(super) fn negate(self) -> Self {
        match self {
            Self::Const(value) => Self::Const(!value),
            Self::Not(inner) => *inner,
            other => Self::Not(Box::new(other)),
        }
    }
}

/// One step of a program: `answer` is its only register.
#[derive(Clone, Debug)]
enum Op {
    /// `answer` becomes the test's.
    Test(Test),
    /// `answer` becomes the contrary.
    Not,
    /// Goes on at `to` where `answer` is `when`.
    Jump { when: bool, to: usize },
}

/// A condition as a flat list of steps.
#[derive(Clone, Debug)]
pub(super) struct Program {
    initial: bool,
    ops: Vec<Op>,
}

impl Program {
    /// The program of a condition.
    pub(super) fn new(condition: Condition) -> Self {
        let mut program = Self {
            initial: condition == Condition::Const(true),
            ops: Vec::new(),
        };
        program.emit(condition);
        program
    }

    fn emit(&mut self, condition: Condition) {
        let (parts, settled) = match condition {
            Condition::Const(_) => return,
            Condition::Test(test) => return self.ops.push(Op::Test(test)),
            Condition::Not(inner) => {
                self.emit(*inner);
                return self.ops.push(Op::Not);
            }
            Condition::Any(parts) => (parts, true),
            Condition::All(parts) => (parts, false),
        };
        let mut jumps = Vec::new();
        let last = parts.len() - 1;
        for (position, part) in parts.into_iter().enumerate() {
            self.emit(part);
            if position < last {
                jumps.push(self.ops.len());
                self.ops.push(Op::Jump {
                    when: settled,
                    to: 0,
                });
            }
        }
        let end = self.ops.len();
        for jump in jumps {
            if let Op::Jump { to, .. } = &mut self.ops[jump] {
                *to = end;
            }
        }
    }

    /// The answer, where it is the same for all events.
    pub(super) fn constant(&self) -> Option<bool> {
        self.ops.is_empty().then_some(self.initial)
    }

    /// The answer for an event.
    pub(super) fn run(&self, facts: &Facts<'_>) -> bool {
        let mut answer = self.initial;
        let mut at = 0;
        while let Some(op) = self.ops.get(at) {
            at += 1;
            match op {
                Op::Test(test) => answer = test.holds(facts),
                Op::Not => answer = !answer,
                Op::Jump { when, to } if *when == answer => at = *to,
                Op::Jump { .. } => {}
            }
        }
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_and_floats_compare_exactly() {
        let order = |a: i128, b: f64| Number::Integer(a).partial_cmp(&Number::Float(b));
        assert_eq!(
            order(9_007_199_254_740_993, 9_007_199_254_740_992.0),
            Some(Ordering::Greater)
        );
        assert_eq!(
            order(u64::MAX.into(), u64::MAX as f64),
            Some(Ordering::Less)
        );
        assert_eq!(order(-1, -1.5), Some(Ordering::Greater));
        assert_eq!(order(-2, -1.5), Some(Ordering::Less));
        assert_eq!(order(3, 3.0), Some(Ordering::Equal));
        assert_eq!(order(0, -0.0), Some(Ordering::Equal));
        assert_eq!(order(0, f64::NAN), None);
        assert_eq!(
            order(i64::MIN.into(), f64::NEG_INFINITY),
            Some(Ordering::Greater)
        );
        assert_eq!(order(u64::MAX.into(), f64::INFINITY), Some(Ordering::Less));
    }

    #[test]
    fn ranges_are_merged_and_searched() {
        let ranges = Ranges::new(vec![(5, 9), (1, 2), (8, 12), (20, 20), (6, 7)]);
        assert_eq!(ranges.0, [(1, 2), (5, 12), (20, 20)]);
        for value in 0..30 {
            let expected = matches!(value, 1..=2 | 5..=12 | 20);
            assert_eq!(
                ranges.contains(|bound| bound.partial_cmp(&value)),
                expected,
                "{value}"
            );
        }
    }

    #[test]
    fn parts_of_texts() {
        assert!(contains(b"abc", b""));
        assert!(contains(b"aab", b"ab"));
        assert!(!contains(b"aab", b"abb"));
        assert!(!contains(b"", b"a"));
    }
}
