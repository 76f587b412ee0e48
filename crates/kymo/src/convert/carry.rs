//! Values of events on their way from the thread that decodes them to the one that puts the
//! output together: bytes at the beginning of an event's text.

use kymo_model::Value;
use kymo_text::Line;

const MISSING: u8 = 0;
const UINT: u8 = 1;
const SINT: u8 = 2;
const FLOAT: u8 = 3;
const BOOL: u8 = 4;
const TEXT: u8 = 5;
const BLOB: u8 = 6;
const COMPOUND: u8 = 7;

/// Appends a value. Values that are the same number have the same bytes; of compound ones
/// only that they are there.
pub(super) fn put(value: Value<'_>, line: &mut Line) {
    match value {
        Value::Uint(value) | Value::Bits(value) => number(UINT, value, line),
        Value::Sint(value) => match u64::try_from(value) {
            Ok(value) => number(UINT, value, line),
            Err(_) => number(SINT, value as u64, line),
        },
        Value::Float(value) => number(FLOAT, value.to_bits(), line),
        Value::Bool(value) => line.push(&[BOOL, value.into()]),
        Value::Text(text) => bytes(TEXT, text, line),
        Value::Blob(blob) => bytes(BLOB, blob, line),
        Value::Missing => line.push_byte(MISSING),
        Value::Array(_) | Value::Compound => line.push_byte(COMPOUND),
    }
}

/// Whether a value is there that tells something: a number, a text or bytes.
pub(super) fn is_plain(value: Value<'_>) -> bool {
    !matches!(value, Value::Missing | Value::Array(_) | Value::Compound)
}

fn number(tag: u8, value: u64, line: &mut Line) {
    let mut bytes = [tag; 9];
    bytes[1..].copy_from_slice(&value.to_le_bytes());
    line.push(&bytes);
}

fn bytes(tag: u8, bytes: &[u8], line: &mut Line) {
    number(tag, bytes.len() as u64, line);
    line.push(bytes);
}

/// Values that are taken out again, in the order in which they were put in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Carried<'a>(&'a [u8]);

impl<'a> Carried<'a> {
    /// The values at the beginning of a text.
    pub(super) fn new(text: &'a [u8]) -> Self {
        Self(text)
    }

    /// The next value.
    pub(super) fn next(&mut self) -> Value<'a> {
        self.next_with_bytes().0
    }

    /// The next value, and the bytes that stand for it, as a key.
    pub(super) fn next_with_bytes(&mut self) -> (Value<'a>, &'a [u8]) {
        let whole = self.0;
        let value = self.take(1).map_or(Value::Missing, |tag| match tag[0] {
            UINT => Value::Uint(self.number()),
            SINT => Value::Sint(self.number() as i64),
            FLOAT => Value::Float(f64::from_bits(self.number())),
            BOOL => Value::Bool(self.take(1) == Some(&[1])),
            TEXT => Value::Text(self.bytes()),
            BLOB => Value::Blob(self.bytes()),
            COMPOUND => Value::Compound,
            _ => Value::Missing,
        });
        (value, &whole[..whole.len() - self.0.len()])
    }

    /// What follows the values.
    pub(super) fn rest(self) -> &'a [u8] {
        self.0
    }

    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> u64 {
        let bytes = self.take(8).and_then(|bytes| bytes.try_into().ok());
        u64::from_le_bytes(bytes.unwrap_or_default())
    }

    fn bytes(&mut self) -> &'a [u8] {
        let length = usize::try_from(self.number()).unwrap_or(usize::MAX);
        self.take(length).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_out_as_they_went_in() {
        let values = [
            Value::Uint(u64::MAX),
            Value::Sint(-1),
            Value::Float(-0.5),
            Value::Bool(true),
            Value::Missing,
            Value::Text(b"\xff\0"),
            Value::Blob(b""),
            Value::Bool(false),
            Value::Compound,
        ];
        let mut line = Line::new();
        for value in values {
            put(value, &mut line);
        }
        line.push(b"rest");
        let mut carried = Carried::new(line.as_bytes());
        for value in values {
            assert_eq!(carried.next(), value);
        }
        assert_eq!(carried.rest(), b"rest");
    }

    #[test]
    fn the_same_numbers_have_the_same_bytes() {
        let mut line = Line::new();
        for value in [Value::Uint(5), Value::Sint(5), Value::Bits(5)] {
            put(value, &mut line);
        }
        let mut carried = Carried::new(line.as_bytes());
        let keys: Vec<_> = (0..3).map(|_| carried.next_with_bytes()).collect();
        assert!(keys.iter().all(|key| *key == keys[0]));
        put(Value::Array(3), &mut line);
        assert_eq!(Carried::new(&[]).next(), Value::Missing);
    }
}
