//! A filter as a tree.

use std::ops::Range;

use super::glob::Glob;

/// A condition.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Expr {
    /// Any of them.
    Or(Vec<Expr>),
    /// All of the expressions.
    And(Vec<Expr>),
    /// Not so.
    Not(Box<Expr>),
    /// True or false.
    Const(bool),
    /// A test, numbered by its position in the text.
    Test(Test),
}

/// A test of one or two values.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Test {
    /// Where it stands.
    pub(super) range: Range<usize>,
    /// What is tested.
    pub(super) subject: Operand,
    /// How.
    pub(super) check: Check,
}

/// How a value is tested.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Check {
    /// How it compares with another one.
    Compare(Comparison, Operand),
    /// By a question about it alone.
    Ask(Ask),
}

/// A question about one value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Ask {
    /// Whether it is true, or a number that is not zero.
    Truth,
    /// Whether it is one of these.
    Among(Vec<Member>),
    /// Whether its text matches.
    Like(Glob),
    /// Whether a regular expression matches a part of its text.
    Matches(Pattern),
    /// Whether its text holds this text, or its flags this flag.
    Contains(Vec<u8>),
}

/// A regular expression.
#[derive(Clone, Debug)]
pub(super) struct Pattern(pub(super) regex::bytes::Regex);

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

/// What is made of a value before it is tested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function {
    /// The bytes of a text or BLOB, the elements of an array.
    Len,
    /// A text in lower case.
    Lower,
    /// A number, BLOB or text in hexadecimal digits.
    Hex,
}

impl Function {
    pub(super) const ALL: [(&'static str, Self); 3] = [
        ("len", Self::Len),
        ("lower", Self::Lower),
        ("hex", Self::Hex),
    ];
}

/// A comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    /// Equal.
    Equal,
    /// There, and not equal.
    NotEqual,
    /// Less.
    Less,
    /// Less or equal.
    LessEqual,
    /// Greater.
    Greater,
    /// Greater or equal.
    GreaterEqual,
}

impl Comparison {
    /// The comparison with its sides exchanged.
    pub(super) fn mirrored(self) -> Self {
        match self {
            Self::Less => Self::Greater,
            Self::LessEqual => Self::GreaterEqual,
            Self::Greater => Self::Less,
            Self::GreaterEqual => Self::LessEqual,
            same => same,
        }
    }

    /// Whether values in this order satisfy it; `None` is the order of a NaN.
    pub(super) fn holds(self, order: Option<std::cmp::Ordering>) -> bool {
        match (self, order) {
            (Self::NotEqual, None) => true,
            (_, None) => false,
            (Self::Equal, Some(order)) => order.is_eq(),
            (Self::NotEqual, Some(order)) => order.is_ne(),
            (Self::Less, Some(order)) => order.is_lt(),
            (Self::LessEqual, Some(order)) => order.is_le(),
            (Self::Greater, Some(order)) => order.is_gt(),
            (Self::GreaterEqual, Some(order)) => order.is_ge(),
        }
    }
}

/// A value written down.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Literal {
    /// From -2^63 to 2^64 - 1.
    Integer(i128),
    /// A floating point number.
    Float(f64),
    /// Text.
    Text(Vec<u8>),
    /// True or false.
    Bool(bool),
}

/// A member of a set.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Member {
    /// One value.
    One(Literal),
    /// All from one to the other, both included.
    Range(Literal, Literal),
}

/// A value of a test.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Operand {
    /// Written down.
    Literal(Literal, Range<usize>),
    /// Found in the event.
    Field(FieldName),
    /// What a function makes of a field.
    Call(Function, FieldName),
}

/// The name of a field.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct FieldName {
    /// Its parts: at least one, of which the first is a name.
    pub(super) steps: Vec<Step>,
    /// Where it stands.
    pub(super) range: Range<usize>,
}

/// A part of a field's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The member or option of this name.
    Name(String),
    /// The element at this position.
    Element(u64),
}
