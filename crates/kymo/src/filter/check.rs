//! Whether a test fits the kinds of its values, and what becomes of it then.

use kymo_model::{FieldId, Flag, Kind, Labels, Schema};
use kymo_text::nearest;

use super::eval::{Constant, Number, Question, Ranges, Set, Source, Test, contains};
use super::expr::{Ask, Comparison, Function, Literal, Member};

/// What a value is, as far as a test must know.
#[derive(Clone, Copy, Debug)]
pub(super) enum Type<'a> {
    Integer(Option<&'a Labels>),
    /// An integer of more than 64 bits: its value is the text that shows it.
    Wide,
    Float,
    Bool,
    Bits(&'a [Flag]),
    Text,
    Blob,
    Array,
    Compound,
    /// What a function cannot take.
    NotFor(Function),
}

impl Type<'_> {
    fn describe(self) -> &'static str {
        match self {
            Self::Integer(Some(_)) => "an enumeration",
            Self::Integer(None) => "an integer",
            Self::Wide => "an integer of more than 64 bits",
            Self::Float => "a floating point number",
            Self::Bool => "a truth value",
            Self::Bits(_) => "a set of bits",
            Self::Text => "text",
            Self::Blob => "a BLOB",
            Self::Array => "an array",
            Self::Compound => "a structure",
            Self::NotFor(Function::Len) => "a value without a length",
            Self::NotFor(Function::Lower) => "not a text",
            Self::NotFor(Function::Hex) => "not a number, text or BLOB",
        }
    }
}

const FLAGS_HELP: &str =
    "compare it with a number, or ask for a flag, as in `bits contains \"FLAG\"`";
const WIDE_HELP: &str =
    "compare it by `==` or `!=` with the text that shows it, as in `field == \"0x1F\"`";
const BYTES_HELP: &str = "give its bytes, as in `blob == \"\\x00\\xff\"`";

/// A value that a test may use.
pub(super) struct Bound<'a> {
    pub(super) source: Source,
    pub(super) kind: Type<'a>,
    /// The least and the greatest number that it can be.
    pub(super) limits: Option<(i128, i128)>,
    /// Whether it stands in the condition itself; a property of a class is constant, too.
    pub(super) is_literal: bool,
    /// What is made of it first.
    pub(super) function: Option<Function>,
}

impl Bound<'_> {
    /// What a function makes of it.
    pub(super) fn call(self, function: Function) -> Self {
        let kind = match (function, self.kind) {
            (Function::Len, Type::Text | Type::Blob | Type::Array | Type::Wide) => {
                Type::Integer(None)
            }
            (Function::Lower, Type::Text) => Type::Text,
            (Function::Hex, Type::Integer(_) | Type::Bits(_) | Type::Text | Type::Blob) => {
                Type::Text
            }
            _ => Type::NotFor(function),
        };
        Self {
            kind,
            limits: None,
            function: Some(function),
            ..self
        }
    }
}

/// Why a test makes no sense for what it is asked of.
#[derive(Clone, Debug)]
pub(super) struct Mismatch {
    pub(super) label: String,
    pub(super) help: String,
    /// Whether it is of the right kind, and only never has this value.
    pub(super) is_of_value: bool,
    /// The test, where it succeeds all the same.
    pub(super) test: Option<Box<Test>>,
}

impl Mismatch {
    fn of_value(label: String, help: String) -> Self {
        Self {
            label,
            help,
            is_of_value: true,
            test: None,
        }
    }
}

pub(super) fn constant<'a>(literal: &Literal) -> Bound<'a> {
    let (constant, kind) = match literal {
        Literal::Integer(value) => (
            Constant::Number(Number::Integer(*value)),
            Type::Integer(None),
        ),
        Literal::Float(value) => (Constant::Number(Number::Float(*value)), Type::Float),
        Literal::Bool(value) => (Constant::Bool(*value), Type::Bool),
        Literal::Text(text) => (Constant::Text(text.clone()), Type::Text),
    };
    Bound {
        source: Source::Constant(constant),
        kind,
        limits: None,
        is_literal: true,
        function: None,
    }
}

pub(super) fn kind_of(schema: &Schema, field: FieldId) -> Type<'_> {
    match &schema.field(field).kind {
        Kind::Uint { labels, .. } | Kind::Sint { labels, .. } => Type::Integer(labels.as_deref()),
        Kind::Float { .. } => Type::Float,
        Kind::Bool { .. } => Type::Bool,
        Kind::BitArray { .. } => Type::Bits(&[]),
        Kind::BitMap { flags, .. } => Type::Bits(flags),
        Kind::Wide { .. } => Type::Wide,
        Kind::Text => Type::Text,
        Kind::Blob => Type::Blob,
        Kind::Array { .. } => Type::Array,
        Kind::Struct | Kind::Optional | Kind::Variant => Type::Compound,
    }
}

/// The numbers that a field can be: those that its bits hold.
pub(super) fn limits_of(schema: &Schema, field: FieldId) -> Option<(i128, i128)> {
    match schema.field(field).kind {
        Kind::Uint { bits, .. } | Kind::BitArray { bits } | Kind::BitMap { bits, .. } => {
            Some((0, 1i128.checked_shl(bits).filter(|end| *end > 0)? - 1))
        }
        Kind::Sint { bits, .. } => {
            let end = 1i128
                .checked_shl(bits.checked_sub(1)?)
                .filter(|end| *end > 0)?;
            Some((-end, end - 1))
        }
        _ => None,
    }
}

/// Whether a number within limits never compares so with another one.
fn is_beyond((low, high): (i128, i128), comparison: Comparison, other: Number) -> bool {
    use Comparison::{Equal, Greater, GreaterEqual, Less, LessEqual, NotEqual};
    let (low, high) = (Number::Integer(low), Number::Integer(high));
    match comparison {
        Equal => other < low || other > high,
        NotEqual => false,
        Less => other <= low,
        LessEqual => other < low,
        Greater => other >= high,
        GreaterEqual => other > high,
    }
}

fn beyond(kind: Type<'_>, (low, high): (i128, i128)) -> Mismatch {
    let label = format!("this is {} from {low} to {high}", kind.describe());
    Mismatch::of_value(
        label,
        format!("compare it with a number from {low} to {high}"),
    )
}

fn is_number(kind: Type<'_>) -> bool {
    matches!(kind, Type::Integer(_) | Type::Float | Type::Bits(_))
}

fn mismatch(kind: Type<'_>, help: &str) -> Mismatch {
    let help = match kind {
        Type::Array => "choose an element of it, as in `list[0]`",
        Type::Compound => "choose a member of it, as in `parent.member`",
        _ => help,
    };
    Mismatch {
        label: format!("this is {}", kind.describe()),
        help: help.to_string(),
        is_of_value: false,
        test: None,
    }
}

/// `a` compared with `b`.
pub(super) fn compare(
    a: &Bound<'_>,
    comparison: Comparison,
    b: &Bound<'_>,
) -> Result<Test, Mismatch> {
    use Comparison::{Equal, NotEqual};
    let is_equality = matches!(comparison, Equal | NotEqual);
    match (a.kind, b.kind) {
        (Type::Text, Type::Integer(Some(_))) if matches!(a.source, Source::Constant(_)) => {
            return compare(b, comparison.mirrored(), a);
        }
        (Type::Integer(Some(labels)), Type::Text) if is_equality => {
            if let Source::Constant(Constant::Text(text)) = &b.source {
                let numbers = label_ranges(labels, |label| label.as_bytes() == text);
                let is_unknown = numbers.is_empty();
                let set = Set {
                    numbers: Ranges::new(numbers),
                    ..Set::default()
                };
                let test = Test {
                    subject: a.source.clone(),
                    function: a.function,
                    question: if comparison == Equal {
                        Question::Among(set)
                    } else {
                        Question::Outside(set)
                    },
                };
                return match is_unknown {
                    true => Err(Mismatch {
                        test: (comparison == NotEqual).then(|| Box::new(test)),
                        ..no_label(labels, text)
                    }),
                    false => Ok(test),
                };
            }
        }
        _ => {}
    }
    let fits = match (a.kind, b.kind) {
        (Type::Text | Type::Blob, Type::Text | Type::Blob) => true,
        (Type::Wide, Type::Wide | Type::Text) | (Type::Text, Type::Wide) => is_equality,
        (Type::Bool, Type::Bool) => is_equality,
        (a, b) => is_number(a) && is_number(b),
    };
    if fits {
        for (limited, comparison, other) in [(a, comparison, b), (b, comparison.mirrored(), a)] {
            if let (Some(limits), Source::Constant(Constant::Number(number))) =
                (limited.limits, &other.source)
                && is_beyond(limits, comparison, *number)
            {
                return Err(beyond(limited.kind, limits));
            }
        }
        return Ok(Test {
            subject: a.source.clone(),
            function: a.function,
            question: Question::Compare(comparison, b.source.clone()),
        });
    }
    // The field is to blame, not the value it is compared with.
    let blamed = if a.is_literal { b.kind } else { a.kind };
    let help = match blamed {
        Type::Text => "compare it with a text in quotes",
        Type::Wide => WIDE_HELP,
        Type::Bool => "compare it with `true` or `false`, by `==` or `!=`",
        Type::Blob => BYTES_HELP,
        Type::Integer(Some(_)) => "compare it with a number, or by `==` or `!=` with a label",
        Type::Bits([_, ..]) => FLAGS_HELP,
        _ => "compare it with a number",
    };
    Err(mismatch(blamed, help))
}

fn no_label(labels: &Labels, text: &[u8]) -> Mismatch {
    let text = String::from_utf8_lossy(text);
    let known = labels.mappings().iter().map(|mapping| &*mapping.label);
    Mismatch::of_value(
        format!("no label of the enumeration is `{text}`"),
        match nearest(&text, known.clone()) {
            Some(label) => format!("there is a label `{label}`"),
            None => known_are("labels", known),
        },
    )
}

/// The first names of a list.
fn known_are<'a>(what: &str, names: impl Iterator<Item = &'a str>) -> String {
    const SHOWN: usize = 8;
    let mut names = names.peekable();
    if names.peek().is_none() {
        return format!("it has no {what}");
    }
    let shown: Vec<_> = names
        .by_ref()
        .take(SHOWN)
        .map(|n| format!("`{n}`"))
        .collect();
    let more = if names.next().is_some() { ", ..." } else { "" };
    format!("its {what} are {}{more}", shown.join(", "))
}

/// The numbers of all labels that are wanted.
fn label_ranges(labels: &Labels, wanted: impl Fn(&str) -> bool) -> Vec<(Number, Number)> {
    let number = |bits: u64| {
        Number::Integer(if labels.is_signed() {
            (bits as i64).into()
        } else {
            bits.into()
        })
    };
    labels
        .mappings()
        .iter()
        .filter(|mapping| wanted(&mapping.label))
        .flat_map(|mapping| &mapping.ranges)
        .map(|&(low, high)| (number(low), number(high)))
        .collect()
}

/// A question about one value.
pub(super) fn ask(subject: &Bound<'_>, question: &Ask) -> Result<Test, Mismatch> {
    let labelled = |wanted: &dyn Fn(&str) -> bool, labels: &Labels| {
        let ranges = label_ranges(labels, wanted);
        if ranges.is_empty() {
            let known = labels.mappings().iter().map(|mapping| &*mapping.label);
            let label = "no label of the enumeration is like that".to_string();
            return Err(Mismatch::of_value(label, known_are("labels", known)));
        }
        Ok(Question::Among(Set {
            numbers: Ranges::new(ranges),
            ..Set::default()
        }))
    };
    let question = match (question, subject.kind) {
        (Ask::Truth, Type::Bool) => Question::Truth,
        (Ask::Truth, kind) if is_number(kind) => Question::Truth,
        (Ask::Truth, kind @ Type::Wide) => return Err(mismatch(kind, WIDE_HELP)),
        (Ask::Truth, kind @ Type::Blob) => return Err(mismatch(kind, BYTES_HELP)),
        (Ask::Truth, kind) => {
            return Err(mismatch(
                kind,
                "compare it with something, as in `name == \"x\"`",
            ));
        }
        (Ask::Like(glob), Type::Text | Type::Blob | Type::Wide) => Question::Like(glob.clone()),
        (Ask::Like(glob), Type::Integer(Some(labels))) => {
            labelled(&|label| glob.matches(label.as_bytes()), labels)?
        }
        (Ask::Matches(pattern), Type::Text | Type::Blob | Type::Wide) => {
            Question::Matches(pattern.clone())
        }
        (Ask::Matches(pattern), Type::Integer(Some(labels))) => {
            labelled(&|label| pattern.0.is_match(label.as_bytes()), labels)?
        }
        (Ask::Contains(part), Type::Text | Type::Blob) => Question::Contains(part.clone()),
        (Ask::Contains(part), Type::Integer(Some(labels))) => {
            labelled(&|label| contains(label.as_bytes(), part), labels)?
        }
        (Ask::Contains(flag), Type::Bits(flags)) if !flags.is_empty() => {
            Question::Bits(flag_mask(flags, flag)?)
        }
        (Ask::Like(_) | Ask::Matches(_), kind @ Type::Bits([_, ..])) => {
            return Err(mismatch(kind, FLAGS_HELP));
        }
        (Ask::Like(_) | Ask::Matches(_) | Ask::Contains(_), kind) => {
            return Err(mismatch(
                kind,
                "compare it with `==`, `<`, `in` and similar operators",
            ));
        }
        (Ask::Among(members), kind) => {
            let set = set(members, kind)?;
            match subject.limits {
                Some(limits) if set.is_beyond(limits) => return Err(beyond(kind, limits)),
                _ => Question::Among(set),
            }
        }
    };
    Ok(Test {
        subject: subject.source.clone(),
        function: subject.function,
        question,
    })
}

fn flag_mask(flags: &[Flag], name: &[u8]) -> Result<u64, Mismatch> {
    let bit_range = |&(low, high): &(u64, u64)| {
        let bits = high.min(63).checked_sub(low)?;
        Some(u64::MAX >> (63 - bits) << low)
    };
    flags
        .iter()
        .find(|flag| flag.name.as_bytes() == name)
        .map(|flag| {
            flag.ranges
                .iter()
                .filter_map(bit_range)
                .fold(0, |mask, bits| mask | bits)
        })
        .ok_or_else(|| {
            let name = String::from_utf8_lossy(name);
            let known = flags.iter().map(|flag| &*flag.name);
            Mismatch::of_value(
                format!("no flag is called `{name}`"),
                match nearest(&name, known.clone()) {
                    Some(flag) => format!("there is a flag `{flag}`"),
                    None => known_are("flags", known),
                },
            )
        })
}

/// The members of a set that a value of this kind can be.
fn set(members: &[Member], kind: Type<'_>) -> Result<Set, Mismatch> {
    let mut numbers = Vec::new();
    let mut texts = Vec::new();
    let mut bools = Vec::new();
    // Other classes may have a label that this one has not.
    let mut unknown = None;
    for member in members {
        let (low, high) = match member {
            Member::One(one) => (one, one),
            Member::Range(low, high) => (low, high),
        };
        match (kind, as_number(low), as_number(high)) {
            (kind, Some(low), Some(high)) if is_number(kind) => numbers.push((low, high)),
            _ => match (kind, low, high) {
                (Type::Text | Type::Blob, Literal::Text(low), Literal::Text(high)) => {
                    texts.push((low.clone(), high.clone()));
                }
                (Type::Wide, Literal::Text(one), _) if matches!(member, Member::One(_)) => {
                    texts.push((one.clone(), one.clone()));
                }
                (Type::Integer(Some(labels)), Literal::Text(label), _)
                    if matches!(member, Member::One(_)) =>
                {
                    let ranges = label_ranges(labels, |l| l.as_bytes() == label);
                    if ranges.is_empty() {
                        unknown = unknown.or_else(|| Some(no_label(labels, label)));
                    }
                    numbers.extend(ranges);
                }
                (Type::Bool, Literal::Bool(value), _) => bools.push(*value),
                _ => {
                    let help = match kind {
                        Type::Text => "list texts in quotes",
                        Type::Wide => WIDE_HELP,
                        Type::Blob => BYTES_HELP,
                        Type::Bits([_, ..]) => FLAGS_HELP,
                        Type::Bool => "list `true` or `false`",
                        Type::Integer(Some(_)) => "list numbers, ranges of them, or labels",
                        _ => "list numbers, or ranges of them",
                    };
                    return Err(mismatch(kind, help));
                }
            },
        }
    }
    if let (true, Some(unknown)) = (numbers.is_empty(), unknown) {
        return Err(unknown);
    }
    Ok(Set {
        numbers: Ranges::new(numbers),
        texts: Ranges::new(texts),
        bools,
    })
}

fn as_number(literal: &Literal) -> Option<Number> {
    match literal {
        Literal::Integer(value) => Some(Number::Integer(*value)),
        Literal::Float(value) => Some(Number::Float(*value)),
        Literal::Text(_) | Literal::Bool(_) => None,
    }
}
