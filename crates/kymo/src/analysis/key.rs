//! Values of fields as bytes that can be compared, and as text for people.

use kymo_model::Value;
use kymo_text::Line;

use crate::carried::{self, Carried};

/// Bytes of a text that count; those behind them do not tell two values apart.
pub(super) const MOST_TEXT: usize = 1024;

/// Appends a value. A structure tells nothing, as if it were not there.
#[inline]
pub(super) fn write(value: Value<'_>, to: &mut Line) {
    match value {
        Value::Compound => carried::put(Value::Missing, MOST_TEXT, to),
        value => carried::put(value, MOST_TEXT, to),
    }
}

/// All values.
pub(super) fn values(key: &[u8]) -> impl Iterator<Item = Value<'_>> {
    let mut rest = Carried::new(key);
    std::iter::from_fn(move || (!rest.rest().is_empty()).then(|| rest.next()))
}

/// Whether no value is there.
pub(super) fn is_missing(key: &[u8]) -> bool {
    values(key).all(|value| value == Value::Missing)
}

/// The values as people read them: of an array its length, of a BLOB its digits; what is missing is
/// a dash.
pub(super) fn text(key: &[u8]) -> String {
    let text = |value: Value<'_>| match value {
        Value::Missing | Value::Compound => "-".to_string(),
        Value::Uint(value) | Value::Bits(value) | Value::Array(value) => value.to_string(),
        Value::Sint(value) => value.to_string(),
        Value::Float(value) => value.to_string(),
        Value::Bool(value) => value.to_string(),
        Value::Text(text) => String::from_utf8_lossy(text).into_owned(),
        Value::Blob(bytes) => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
    };
    values(key).map(text).collect::<Vec<_>>().join(", ")
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
        let written = [
            Value::Uint(u64::MAX),
            Value::Sint(-5),
            Value::Sint(5),
            Value::Float(0.5),
            Value::Bool(true),
            Value::Text(b"a\0\xff"),
            Value::Compound,
            Value::Blob(b"\x01\xff"),
            Value::Array(3),
            Value::Text(&long),
        ];
        let mut line = Line::new();
        written.iter().for_each(|&value| write(value, &mut line));
        let found: Vec<Value<'_>> = values(line.as_bytes()).collect();
        assert_eq!(
            found,
            [
                Value::Uint(u64::MAX),
                Value::Sint(-5),
                Value::Uint(5),
                Value::Float(0.5),
                Value::Bool(true),
                Value::Text(b"a\0\xff"),
                Value::Missing,
                Value::Blob(b"\x01\xff"),
                Value::Array(3),
                Value::Text(&long[..MOST_TEXT]),
            ]
        );
        let mut rest = Carried::new(line.as_bytes());
        assert_eq!(text(rest.several(3)), "18446744073709551615, -5, 5");
        assert_eq!(text(rest.several(2)), "0.5, true");
        assert_eq!(text(rest.several(4)), "a\0\u{fffd}, -, 01ff, 3");
        assert!(is_missing(&[]) && !is_missing(line.as_bytes()));
    }
}
