//! Values of events on their way from the thread that decodes them to the one that puts the
//! output together, or counts: bytes at the beginning of an event's text, which serve as keys, too.

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
const ARRAY: u8 = 8;

/// Appends a value. Integers that are the same have the same bytes, with or without a sign. Of texts
/// and BLOBs there are so many bytes at most; of arrays their length, and of other compound values
/// only that they are there.
#[inline]
pub(crate) fn put(value: Value<'_>, most_text: usize, line: &mut Line) {
    match value {
        Value::Uint(value) | Value::Bits(value) => number(UINT, value, line),
        Value::Sint(value) => match u64::try_from(value) {
            Ok(value) => number(UINT, value, line),
            Err(_) => number(SINT, value as u64, line),
        },
        Value::Float(value) => number(FLOAT, value.to_bits(), line),
        Value::Bool(value) => line.push(&[BOOL, value.into()]),
        Value::Text(text) => bytes(TEXT, &text[..text.len().min(most_text)], line),
        Value::Blob(blob) => bytes(BLOB, &blob[..blob.len().min(most_text)], line),
        Value::Missing => line.push_byte(MISSING),
        Value::Array(length) => number(ARRAY, length, line),
        Value::Compound => line.push_byte(COMPOUND),
    }
}

/// Whether a value is there that tells something: a number, a text or bytes.
pub(crate) fn is_plain(value: Value<'_>) -> bool {
    !matches!(value, Value::Missing | Value::Array(_) | Value::Compound)
}

#[inline]
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
pub(crate) struct Carried<'a>(&'a [u8]);

impl<'a> Carried<'a> {
    /// The values at the beginning of a text.
    pub(crate) fn new(text: &'a [u8]) -> Self {
        Self(text)
    }

    /// The next value; a missing one where there are no more.
    #[inline]
    pub(crate) fn next(&mut self) -> Value<'a> {
        self.next_with_bytes().0
    }

    /// The next value, and the bytes that stand for it, as a key.
    #[inline]
    pub(crate) fn next_with_bytes(&mut self) -> (Value<'a>, &'a [u8]) {
        let whole = self.0;
        let value = self.take(1).map_or(Value::Missing, |tag| match tag[0] {
            UINT => Value::Uint(self.number()),
            SINT => Value::Sint(self.number() as i64),
            FLOAT => Value::Float(f64::from_bits(self.number())),
            BOOL => Value::Bool(self.take(1) == Some(&[1])),
            TEXT => Value::Text(self.bytes()),
            BLOB => Value::Blob(self.bytes()),
            ARRAY => Value::Array(self.number()),
            COMPOUND => Value::Compound,
            _ => Value::Missing,
        });
        (value, &whole[..whole.len() - self.0.len()])
    }

    /// The bytes of so many values that are next.
    #[inline]
    pub(crate) fn several(&mut self, count: usize) -> &'a [u8] {
        let mut length = 0;
        for _ in 0..count {
            length += size_of_next(&self.0[length..]);
        }
        let (several, rest) = self.0.split_at(length);
        self.0 = rest;
        several
    }

    /// What follows the values.
    pub(crate) fn rest(self) -> &'a [u8] {
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

/// How many bytes the first value takes of those that there are.
#[inline]
fn size_of_next(bytes: &[u8]) -> usize {
    let size = match bytes.split_first() {
        None => 0,
        Some((&(MISSING | COMPOUND), _)) => 1,
        Some((&BOOL, _)) => 2,
        Some((&(TEXT | BLOB), rest)) => {
            let length = rest
                .first_chunk()
                .map_or(0, |word| u64::from_le_bytes(*word));
            usize::try_from(length)
                .unwrap_or(usize::MAX)
                .saturating_add(9)
        }
        Some(_) => 9,
    };
    size.min(bytes.len())
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
            Value::Array(3),
        ];
        let mut line = Line::new();
        for value in values {
            put(value, usize::MAX, &mut line);
        }
        line.push(b"rest");
        let mut carried = Carried::new(line.as_bytes());
        for value in values {
            assert_eq!(carried.next(), value);
        }
        assert_eq!(carried.rest(), b"rest");
        let (mut some, mut all) = (Carried::new(line.as_bytes()), Carried::new(line.as_bytes()));
        assert_eq!(some.several(0), b"");
        let first = some.several(4);
        assert_eq!(some.next(), Value::Missing);
        assert!(line.as_bytes().starts_with(first));
        for _ in values {
            let mut next = all;
            assert_eq!(all.several(1), next.next_with_bytes().1);
            assert_eq!(all.rest(), next.rest());
        }
        assert_eq!(all.rest(), b"rest");
        // What is cut is all there is.
        let cut = &line.as_bytes()[..line.len() - 9 - 4 - 1];
        assert_eq!(Carried::new(cut).several(values.len() + 1), cut);
    }

    #[test]
    fn long_texts_are_cut() {
        let mut line = Line::new();
        for value in [
            Value::Text(b"abcd"),
            Value::Blob(b"ab"),
            Value::Blob(b"abcd"),
        ] {
            put(value, 3, &mut line);
        }
        let mut carried = Carried::new(line.as_bytes());
        let found = [(); 3].map(|()| carried.next());
        let expected = [Value::Text(b"abc"), Value::Blob(b"ab"), Value::Blob(b"abc")];
        assert_eq!(found, expected);
        assert!(carried.rest().is_empty());
    }

    #[test]
    fn the_same_numbers_have_the_same_bytes() {
        let mut line = Line::new();
        for value in [Value::Uint(5), Value::Sint(5), Value::Bits(5)] {
            put(value, usize::MAX, &mut line);
        }
        let mut carried = Carried::new(line.as_bytes());
        let keys: Vec<_> = (0..3).map(|_| carried.next_with_bytes()).collect();
        assert!(keys.iter().all(|key| *key == keys[0]));
        assert_eq!(Carried::new(&[]).next(), Value::Missing);
    }
}
