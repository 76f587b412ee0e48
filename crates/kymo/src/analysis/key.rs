//! Values of fields as bytes that can be compared, and as text for people.

use kymo_model::Value;
use kymo_text::Line;

/// Bytes of a text that count; those behind them do not tell two values apart.
pub(super) const MOST_TEXT: usize = 1024;

// What kind of value follows.
const MISSING: u8 = 0;
const UINT: u8 = 1;
const NEGATIVE: u8 = 2;
const FLOAT: u8 = 3;
const BOOL: u8 = 4;
const TEXT: u8 = 5;

/// Appends a value. Integers of the same value are the same, with or without a sign.
#[inline]
pub(super) fn write(value: Value<'_>, to: &mut Line) {
    match value {
        Value::Uint(value) | Value::Bits(value) | Value::Array(value) => word(UINT, value, to),
        Value::Sint(value) => match u64::try_from(value) {
            Ok(value) => word(UINT, value, to),
            Err(_) => word(NEGATIVE, value as u64, to),
        },
        Value::Float(value) => word(FLOAT, value.to_bits(), to),
        Value::Bool(value) => word(BOOL, value.into(), to),
        Value::Text(text) | Value::Blob(text) => {
            let text = &text[..text.len().min(MOST_TEXT)];
            word(TEXT, text.len() as u64, to);
            to.push(text);
        }
        Value::Missing | Value::Compound => word(MISSING, 0, to),
    }
}

#[inline]
fn word(kind: u8, word: u64, to: &mut Line) {
    let mut bytes = [kind; 9];
    bytes[1..].copy_from_slice(&word.to_le_bytes());
    to.push(&bytes);
}

/// A value that was written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Part<'k> {
    Missing,
    Uint(u64),
    Sint(i64),
    Float(f64),
    Bool(bool),
    Text(&'k [u8]),
}

/// The first value, and what follows it.
fn split(key: &[u8]) -> Option<(Part<'_>, &[u8])> {
    let (&[kind, word @ ..], rest) = key.split_first_chunk::<9>()?;
    let word = u64::from_le_bytes(word);
    Some(match kind {
        UINT => (Part::Uint(word), rest),
        NEGATIVE => (Part::Sint(word as i64), rest),
        FLOAT => (Part::Float(f64::from_bits(word)), rest),
        BOOL => (Part::Bool(word != 0), rest),
        TEXT => {
            let (text, rest) = rest.split_at_checked(usize::try_from(word).ok()?)?;
            (Part::Text(text), rest)
        }
        _ => (Part::Missing, rest),
    })
}

/// The first `count` values, and what follows them.
#[inline]
pub(super) fn take(key: &[u8], count: usize) -> (&[u8], &[u8]) {
    let mut rest = key;
    for _ in 0..count {
        match split(rest) {
            Some((_, after)) => rest = after,
            None => break,
        }
    }
    key.split_at(key.len() - rest.len())
}

/// All values.
pub(super) fn parts(key: &[u8]) -> impl Iterator<Item = Part<'_>> {
    let mut rest = key;
    std::iter::from_fn(move || {
        let (part, after) = split(rest)?;
        rest = after;
        Some(part)
    })
}

/// Whether no value is there.
pub(super) fn is_missing(key: &[u8]) -> bool {
    parts(key).all(|part| part == Part::Missing)
}

/// The values as people read them; what is missing is a dash.
pub(super) fn text(key: &[u8]) -> String {
    let part = |part: Part<'_>| match part {
        Part::Missing => "-".to_string(),
        Part::Uint(value) => value.to_string(),
        Part::Sint(value) => value.to_string(),
        Part::Float(value) => value.to_string(),
        Part::Bool(value) => value.to_string(),
        Part::Text(text) => String::from_utf8_lossy(text).into_owned(),
    };
    parts(key).map(part).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// An integer as bytes.
    pub(in crate::analysis) fn uint(value: u64) -> Vec<u8> {
        let mut line = Line::new();
        write(Value::Uint(value), &mut line);
        line.as_bytes().to_vec()
    }

    #[test]
    fn values_come_back() {
        let long = [b'x'; MOST_TEXT + 1];
        let values = [
            Value::Uint(u64::MAX),
            Value::Sint(-5),
            Value::Sint(5),
            Value::Float(0.5),
            Value::Bool(true),
            Value::Text(b"a\0\xff"),
            Value::Missing,
            Value::Text(&long),
        ];
        let mut line = Line::new();
        values.iter().for_each(|&value| write(value, &mut line));
        let found: Vec<Part<'_>> = parts(line.as_bytes()).collect();
        assert_eq!(
            found,
            [
                Part::Uint(u64::MAX),
                Part::Sint(-5),
                Part::Uint(5),
                Part::Float(0.5),
                Part::Bool(true),
                Part::Text(b"a\0\xff"),
                Part::Missing,
                Part::Text(&long[..MOST_TEXT]),
            ]
        );
        let (first, rest) = take(line.as_bytes(), 3);
        assert_eq!(text(first), "18446744073709551615, -5, 5");
        assert_eq!(text(take(rest, 2).0), "0.5, true");
    }
}
