//! Values of fields as keys: what distinguishes slices and tracks.

use std::hash::{BuildHasher, Hash, Hasher};
use std::ops::Range;

use kymo_model::Value;

use crate::pipeline::Values;

/// Bytes of a text that count; those behind them do not distinguish two values.
const MOST_TEXT: usize = 1024;

/// The values of some fields of a row, owned. Integers that are the same are equal, with or without a sign; of
/// an array its length counts, and a structure counts as missing.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    /// No field.
    #[default]
    None,
    /// A field that is not there.
    Missing,
    Uint(u64),
    /// A negative integer.
    Sint(i64),
    /// The bits of a floating point number.
    Float(u64),
    Bool(bool),
    Text(Box<[u8]>),
    Blob(Box<[u8]>),
    Array(u64),
    /// Several fields.
    Several(Box<[Key]>),
}

impl Hash for Key {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Self::Uint(value) | Self::Float(value) | Self::Array(value) => state.write_u64(*value),
            Self::Sint(value) => state.write_i64(*value),
            Self::Bool(value) => state.write_u8((*value).into()),
            Self::Text(bytes) | Self::Blob(bytes) => bytes.hash(state),
            Self::None | Self::Missing => state.write_u8(2),
            Self::Several(parts) => parts.hash(state),
        }
    }
}

/// A value as it is compared.
fn normal(value: Value<'_>) -> Value<'_> {
    let cut = |bytes| <[u8]>::get(bytes, ..MOST_TEXT).unwrap_or(bytes);
    match value {
        Value::Bits(value) => Value::Uint(value),
        Value::Sint(value) => u64::try_from(value).map_or(Value::Sint(value), Value::Uint),
        Value::Text(text) => Value::Text(cut(text)),
        Value::Blob(bytes) => Value::Blob(cut(bytes)),
        Value::Compound => Value::Missing,
        other => other,
    }
}

impl Key {
    /// The key of one value.
    pub(crate) fn of(value: Value<'_>) -> Self {
        match normal(value) {
            Value::Uint(value) | Value::Bits(value) => Self::Uint(value),
            Value::Sint(value) => Self::Sint(value),
            Value::Float(value) => Self::Float(value.to_bits()),
            Value::Bool(value) => Self::Bool(value),
            Value::Text(text) => Self::Text(text.into()),
            Value::Blob(bytes) => Self::Blob(bytes.into()),
            Value::Array(length) => Self::Array(length),
            Value::Missing | Value::Compound => Self::Missing,
        }
    }

    /// Whether it is the key of a value.
    #[inline]
    fn is_of(&self, value: Value<'_>) -> bool {
        match (self, value) {
            (Self::Uint(key), Value::Uint(value)) => *key == value,
            (Self::Uint(key), Value::Sint(value)) => u64::try_from(value) == Ok(*key),
            (key, value) => key.is_of_other(normal(value)),
        }
    }

    fn is_of_other(&self, value: Value<'_>) -> bool {
        match (self, value) {
            (Self::Uint(key), Value::Uint(value)) | (Self::Array(key), Value::Array(value)) => {
                *key == value
            }
            (Self::Sint(key), Value::Sint(value)) => *key == value,
            (Self::Float(key), Value::Float(value)) => *key == value.to_bits(),
            (Self::Bool(key), Value::Bool(value)) => *key == value,
            (Self::Text(key), Value::Text(value)) | (Self::Blob(key), Value::Blob(value)) => {
                **key == *value
            }
            (Self::Missing, Value::Missing) => true,
            _ => false,
        }
    }

    /// The key of each field.
    pub(crate) fn parts(&self) -> &[Self] {
        match self {
            Self::None => &[],
            Self::Several(parts) => parts,
            one => std::slice::from_ref(one),
        }
    }

    /// About the bytes that it takes.
    pub(crate) fn byte_size(&self) -> usize {
        let size = |part: &Self| match part {
            Self::Text(bytes) | Self::Blob(bytes) => 9 + bytes.len(),
            Self::None | Self::Missing => 1,
            _ => 9,
        };
        self.parts().iter().map(size).sum()
    }

    /// The values as people read them: of an array its length, of a BLOB its digits; what is missing is
    /// a dash.
    pub(crate) fn text(&self) -> String {
        let text = |part: &Self| match part {
            Self::Uint(value) | Self::Array(value) => value.to_string(),
            Self::Sint(value) => value.to_string(),
            Self::Float(bits) => f64::from_bits(*bits).to_string(),
            Self::Bool(value) => value.to_string(),
            Self::Text(text) => String::from_utf8_lossy(text).into_owned(),
            Self::Blob(bytes) => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
            Self::None | Self::Missing | Self::Several(_) => "-".to_string(),
        };
        self.parts().iter().map(text).collect::<Vec<_>>().join(", ")
    }
}

/// The values of some fields of a row, where they are.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RowKey<'a> {
    pub(crate) values: Values<'a>,
    /// Of each field the columns that may have its value.
    pub(crate) fields: &'a [Range<usize>],
}

impl<'a> RowKey<'a> {
    fn each(self) -> impl Iterator<Item = Value<'a>> {
        let values = self.values;
        self.fields.iter().map(move |field| values.first(field))
    }

    /// The value of the first field.
    pub(crate) fn first(self) -> Value<'a> {
        self.each().next().unwrap_or(Value::Missing)
    }

    /// Whether there are no fields.
    #[inline]
    pub(crate) fn is_empty(self) -> bool {
        self.fields.is_empty()
    }

    /// Whether no value is there.
    pub(crate) fn is_missing(self) -> bool {
        self.each().all(|value| normal(value) == Value::Missing)
    }

    /// The same, owned.
    #[inline]
    pub(crate) fn key(self) -> Key {
        match self.fields {
            [] => Key::None,
            [field] => match self.values.first(field) {
                Value::Uint(value) => Key::Uint(value),
                Value::Sint(value) if value >= 0 => Key::Uint(value.unsigned_abs()),
                value => Key::of(value),
            },
            _ => Key::Several(self.each().map(Key::of).collect()),
        }
    }

    /// Whether its values are those of a key.
    #[inline]
    pub(crate) fn is(self, key: &Key) -> bool {
        match self.fields {
            [field] => key.is_of(self.values.first(field)),
            fields => {
                let parts = key.parts();
                parts.len() == fields.len()
                    && parts
                        .iter()
                        .zip(self.each())
                        .all(|(part, value)| part.is_of(value))
            }
        }
    }

    /// A hash of the values, and of `scope`, within which they are the same.
    #[inline]
    pub(crate) fn hash(self, scope: u64, state: &impl BuildHasher) -> u64 {
        let mut hasher = state.build_hasher();
        hasher.write_u64(scope);
        for value in self.each() {
            match normal(value) {
                Value::Uint(value) | Value::Bits(value) | Value::Array(value) => {
                    hasher.write_u64(value);
                }
                Value::Sint(value) => hasher.write_i64(value),
                Value::Float(value) => hasher.write_u64(value.to_bits()),
                Value::Bool(value) => hasher.write_u8(value.into()),
                Value::Text(bytes) | Value::Blob(bytes) => bytes.hash(&mut hasher),
                Value::Missing | Value::Compound => hasher.write_u8(2),
            }
        }
        hasher.finish()
    }
}

#[cfg(test)]
mod tests {
    use foldhash::fast::RandomState;
    use kymo_model::batch::{Column, ColumnData, Strings};

    use super::*;

    fn text(bytes: &[u8]) -> Column {
        column(ColumnData::Text(Strings {
            offsets: vec![0, bytes.len() as i32],
            bytes: bytes.to_vec(),
        }))
    }

    fn column(data: ColumnData) -> Column {
        Column {
            data,
            validity: None,
        }
    }

    #[test]
    fn keys_are_what_values_say() {
        let long = [b'x'; MOST_TEXT + 1];
        let columns = [
            column(ColumnData::Uint64(vec![u64::MAX])),
            column(ColumnData::Int64(vec![-5])),
            column(ColumnData::Int8(vec![5])),
            column(ColumnData::Float64(vec![0.5])),
            text(b"a\0\xff"),
            column(ColumnData::Struct {
                len: 1,
                members: Vec::new(),
            }),
            column(ColumnData::FixedBinary {
                size: 2,
                bytes: b"\x01\xff".to_vec(),
            }),
            text(&long),
            // The same five without a sign.
            column(ColumnData::Uint8(vec![5])),
        ];
        let fields: Vec<Range<usize>> = (0..columns.len()).map(|at| at..at + 1).collect();
        let row = |fields| RowKey {
            values: Values::new(&columns, 0),
            fields,
        };
        let key = row(&fields[..7]).key();
        assert_eq!(
            key.text(),
            "18446744073709551615, -5, 5, 0.5, a\0\u{fffd}, -, 01ff"
        );
        assert!(row(&fields[..7]).is(&key) && !row(&fields[..6]).is(&key));
        assert_eq!(key.parts().len(), 7);
        assert_eq!(
            row(&fields[7..8]).key(),
            Key::Text(long[..MOST_TEXT].into())
        );
        let state = RandomState::default();
        let five = |at: usize| {
            let row = row(&fields[at..at + 1]);
            (row.key(), row.hash(1, &state))
        };
        assert_eq!(five(2), five(8));
        assert_ne!(row(&fields[2..3]).hash(2, &state), five(2).1);
        assert_eq!(row(&fields[2..3]).key().text(), "5");
        assert!(row(&fields[5..6]).is_missing() && !row(&fields[..1]).is_missing());
        assert_eq!(row(&[]).key(), Key::None);
        assert!(row(&[]).is(&Key::None) && row(&[]).is_missing());
        // The first column that has a value counts; a field without columns has none.
        let several = [5..5, 5..7];
        assert_eq!(row(&several).key().text(), "-, -");
    }
}
