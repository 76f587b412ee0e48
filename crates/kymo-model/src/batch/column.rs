//! Columns: the values of one field in many rows, in Arrow's layout.

use std::sync::Arc;

use super::bitmap::Bitmap;
use crate::Value;

/// The type of a column. It follows from the metadata of a recording alone, never from its data.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DataType {
    /// Truth values, packed.
    Bool,
    /// Unsigned integers of 8 bits.
    Uint8,
    /// Unsigned integers of 16 bits.
    Uint16,
    /// Unsigned integers of 32 bits.
    Uint32,
    /// Unsigned integers of 64 bits.
    Uint64,
    /// Signed integers of 8 bits.
    Int8,
    /// Signed integers of 16 bits.
    Int16,
    /// Signed integers of 32 bits.
    Int32,
    /// Signed integers of 64 bits.
    Int64,
    /// Floating point numbers of 32 bits.
    Float32,
    /// Floating point numbers of 64 bits.
    Float64,
    /// UTF-8. What is invalid in a recording is replaced by U+FFFD and [counted](super::Columns::replaced).
    Text,
    /// Bytes.
    Binary,
    /// This many bytes each: integers over 64 bits, big-endian.
    FixedBinary(usize),
    /// One of some texts that the metadata has: positions in them.
    Dictionary(Arc<[Arc<str>]>),
    /// Any number of values.
    List(Arc<ColumnType>),
    /// Several values, each with a name.
    Struct(Arc<[ColumnType]>),
}

/// A column as a schema describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnType {
    /// Its name.
    pub name: Arc<str>,
    /// The type of its values. A row may always have none.
    pub data_type: DataType,
}

impl DataType {
    /// The integer type of `bits` bits; `None` above 64.
    pub const fn integer(bits: u32, signed: bool) -> Option<Self> {
        Some(match (bits, signed) {
            (0..=8, false) => Self::Uint8,
            (9..=16, false) => Self::Uint16,
            (17..=32, false) => Self::Uint32,
            (33..=64, false) => Self::Uint64,
            (0..=8, true) => Self::Int8,
            (9..=16, true) => Self::Int16,
            (17..=32, true) => Self::Int32,
            (33..=64, true) => Self::Int64,
            _ => return None,
        })
    }

    /// The type that holds the values of both: the wider integer, else 64-bit floating point, else
    /// text.
    pub fn widest(&self, other: &Self) -> Self {
        let number = |data_type: &Self| {
            Some(match data_type {
                Self::Bool => (1, false, false),
                Self::Uint8 => (8, false, false),
                Self::Uint16 => (16, false, false),
                Self::Uint32 => (32, false, false),
                Self::Uint64 => (64, false, false),
                Self::Int8 => (8, true, false),
                Self::Int16 => (16, true, false),
                Self::Int32 => (32, true, false),
                Self::Int64 => (64, true, false),
                Self::Float32 | Self::Float64 => (64, true, true),
                _ => return None,
            })
        };
        if self == other {
            return self.clone();
        }
        let (Some(left), Some(right)) = (number(self), number(other)) else {
            return Self::Text;
        };
        if left.2 || right.2 {
            return Self::Float64;
        }
        let signed = left.1 || right.1;
        // An unsigned one takes one bit more where there is a sign.
        let bits = |class: (u32, bool, bool)| class.0 + u32::from(signed && !class.1);
        Self::integer(bits(left).max(bits(right)), signed).unwrap_or(Self::Float64)
    }
}

/// Byte strings one after the other, and where they end: Arrow's variable-size binary layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Strings {
    /// Where each begins, and at the end where the last one ends.
    pub offsets: Vec<i32>,
    /// All strings without a gap.
    pub bytes: Vec<u8>,
}

impl Default for Strings {
    fn default() -> Self {
        Self {
            offsets: vec![0],
            bytes: Vec::new(),
        }
    }
}

impl Strings {
    /// The string of a row.
    ///
    /// # Panics
    ///
    /// If the row does not exist.
    #[inline]
    pub fn get(&self, row: usize) -> &[u8] {
        &self.bytes[self.offsets[row] as usize..self.offsets[row + 1] as usize]
    }

    #[inline]
    pub(super) fn end(&mut self) {
        self.offsets.push(self.bytes.len() as i32);
    }
}

/// The values of a column: Arrow's buffers, in the byte order of the machine. A row that is null holds zeros, or
/// nothing.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each is named as its type in `DataType`")]
pub enum ColumnData {
    Bool(Bitmap),
    Uint8(Vec<u8>),
    Uint16(Vec<u16>),
    Uint32(Vec<u32>),
    Uint64(Vec<u64>),
    Int8(Vec<i8>),
    Int16(Vec<i16>),
    Int32(Vec<i32>),
    Int64(Vec<i64>),
    Float32(Vec<f32>),
    Float64(Vec<f64>),
    Text(Strings),
    Binary(Strings),
    FixedBinary {
        size: usize,
        bytes: Vec<u8>,
    },
    Dictionary {
        keys: Vec<u32>,
        texts: Arc<[Arc<str>]>,
    },
    List {
        offsets: Vec<i32>,
        items: Box<Column>,
    },
    Struct {
        len: usize,
        members: Vec<Column>,
    },
}

/// The values of one field in many rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// The values.
    pub data: ColumnData,
    /// Which rows hold a value; `None` where all do.
    pub validity: Option<Bitmap>,
}

/// Does the same with the vector of numbers of a column.
macro_rules! numbers {
    ($data:expr, $values:ident => $numbers:expr, $($other:tt)*) => {
        match $data {
            ColumnData::Uint8($values) => $numbers,
            ColumnData::Uint16($values) => $numbers,
            ColumnData::Uint32($values) => $numbers,
            ColumnData::Uint64($values) => $numbers,
            ColumnData::Int8($values) => $numbers,
            ColumnData::Int16($values) => $numbers,
            ColumnData::Int32($values) => $numbers,
            ColumnData::Int64($values) => $numbers,
            ColumnData::Float32($values) => $numbers,
            ColumnData::Float64($values) => $numbers,
            $($other)*
        }
    };
}

impl Column {
    /// A column of a type, without rows.
    pub fn new(data_type: &DataType) -> Self {
        let data = match data_type {
            DataType::Bool => ColumnData::Bool(Bitmap::default()),
            DataType::Uint8 => ColumnData::Uint8(Vec::new()),
            DataType::Uint16 => ColumnData::Uint16(Vec::new()),
            DataType::Uint32 => ColumnData::Uint32(Vec::new()),
            DataType::Uint64 => ColumnData::Uint64(Vec::new()),
            DataType::Int8 => ColumnData::Int8(Vec::new()),
            DataType::Int16 => ColumnData::Int16(Vec::new()),
            DataType::Int32 => ColumnData::Int32(Vec::new()),
            DataType::Int64 => ColumnData::Int64(Vec::new()),
            DataType::Float32 => ColumnData::Float32(Vec::new()),
            DataType::Float64 => ColumnData::Float64(Vec::new()),
            DataType::Text => ColumnData::Text(Strings::default()),
            DataType::Binary => ColumnData::Binary(Strings::default()),
            &DataType::FixedBinary(size) => ColumnData::FixedBinary {
                size,
                bytes: Vec::new(),
            },
            DataType::Dictionary(texts) => ColumnData::Dictionary {
                keys: Vec::new(),
                texts: Arc::clone(texts),
            },
            DataType::List(item) => ColumnData::List {
                offsets: vec![0],
                items: Box::new(Self::new(&item.data_type)),
            },
            DataType::Struct(members) => ColumnData::Struct {
                len: 0,
                members: members
                    .iter()
                    .map(|member| Self::new(&member.data_type))
                    .collect(),
            },
        };
        Self {
            data,
            validity: None,
        }
    }

    /// Number of rows.
    #[inline]
    pub fn len(&self) -> usize {
        numbers!(&self.data, values => values.len(),
            ColumnData::Bool(bits) => bits.len(),
            ColumnData::Text(strings) | ColumnData::Binary(strings) => strings.offsets.len() - 1,
            ColumnData::FixedBinary { size, bytes } => bytes.len() / (*size).max(1),
            ColumnData::Dictionary { keys, .. } => keys.len(),
            ColumnData::List { offsets, .. } => offsets.len() - 1,
            ColumnData::Struct { len, .. } => *len,
        )
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether a row holds a value; rows beyond the end do not.
    #[inline]
    pub fn is_valid(&self, row: usize) -> bool {
        match &self.validity {
            None => row < self.len(),
            Some(validity) => validity.get(row),
        }
    }

    /// Number of rows without a value.
    pub fn null_count(&self) -> usize {
        self.validity
            .as_ref()
            .map_or(0, |validity| validity.len() - validity.ones())
    }

    /// The bytes that its buffers hold.
    pub fn byte_size(&self) -> usize {
        let data = numbers!(&self.data, values => size_of_val(values.as_slice()),
            ColumnData::Bool(bits) => bits.as_bytes().len(),
            ColumnData::Text(strings) | ColumnData::Binary(strings) => {
                size_of_val(strings.offsets.as_slice()) + strings.bytes.len()
            }
            ColumnData::FixedBinary { bytes, .. } => bytes.len(),
            ColumnData::Dictionary { keys, .. } => size_of_val(keys.as_slice()),
            ColumnData::List { offsets, items } => {
                size_of_val(offsets.as_slice()) + items.byte_size()
            }
            ColumnData::Struct { members, .. } => members.iter().map(Self::byte_size).sum(),
        );
        data + self
            .validity
            .as_ref()
            .map_or(0, |bits| bits.as_bytes().len())
    }

    /// Calls a function with the integer in a row, or with all of a list or a structure, as 64 bits.
    pub fn each_number(&self, row: usize, each: &mut dyn FnMut(u64)) {
        match &self.data {
            ColumnData::List { offsets, items } => {
                for item in offsets[row] as usize..offsets[row + 1] as usize {
                    items.each_number(item, each);
                }
            }
            ColumnData::Struct { members, .. } => {
                members
                    .iter()
                    .for_each(|member| member.each_number(row, each));
            }
            _ => match self.value(row) {
                Value::Uint(number) => each(number),
                Value::Sint(number) => each(number as u64),
                _ => {}
            },
        }
    }

    /// The value of a row. For a list it gives the length, for a structure that it is present.
    #[inline]
    pub fn value(&self, row: usize) -> Value<'_> {
        if let Some(validity) = &self.validity
            && !validity.get(row)
        {
            return Value::Missing;
        }
        macro_rules! at {
            ($values:expr, $kind:ident) => {
                $values
                    .get(row)
                    .map_or(Value::Missing, |&value| Value::$kind(value.into()))
            };
        }
        match &self.data {
            ColumnData::Uint8(values) => at!(values, Uint),
            ColumnData::Uint16(values) => at!(values, Uint),
            ColumnData::Uint32(values) => at!(values, Uint),
            ColumnData::Uint64(values) => at!(values, Uint),
            ColumnData::Int8(values) => at!(values, Sint),
            ColumnData::Int16(values) => at!(values, Sint),
            ColumnData::Int32(values) => at!(values, Sint),
            ColumnData::Int64(values) => at!(values, Sint),
            ColumnData::Float32(values) => at!(values, Float),
            ColumnData::Float64(values) => at!(values, Float),
            _ if row >= self.len() => Value::Missing,
            ColumnData::Bool(bits) => Value::Bool(bits.get(row)),
            ColumnData::Text(strings) => Value::Text(strings.get(row)),
            ColumnData::Binary(strings) => Value::Blob(strings.get(row)),
            ColumnData::FixedBinary { size, bytes } => {
                Value::Blob(&bytes[row * size..(row + 1) * size])
            }
            ColumnData::Dictionary { keys, texts } => {
                Value::Text(texts[keys[row] as usize].as_bytes())
            }
            ColumnData::List { offsets, .. } => {
                Value::Array((offsets[row + 1] - offsets[row]) as u64)
            }
            ColumnData::Struct { .. } => Value::Compound,
        }
    }

    /// Appends a row without a value.
    pub fn push_null(&mut self) {
        let len = self.len();
        self.validity
            .get_or_insert_with(|| Bitmap::repeat(true, len))
            .push(false);
        numbers!(&mut self.data, values => values.push(Default::default()),
            ColumnData::Bool(bits) => bits.push(false),
            ColumnData::Text(strings) | ColumnData::Binary(strings) => strings.end(),
            ColumnData::FixedBinary { size, bytes } => bytes.resize(bytes.len() + *size, 0),
            ColumnData::Dictionary { keys, .. } => keys.push(0),
            ColumnData::List { offsets, items } => offsets.push(items.len() as i32),
            ColumnData::Struct { len, members } => {
                *len += 1;
                pad(members, *len);
            }
        );
    }

    #[inline]
    fn valid(&mut self) {
        if let Some(validity) = &mut self.validity {
            validity.push(true);
        }
    }

    /// Appends an unsigned integer, converted to the type of the column.
    #[inline]
    pub(super) fn push_uint(&mut self, value: u64) {
        match &mut self.data {
            ColumnData::Uint8(values) => values.push(value as u8),
            ColumnData::Uint16(values) => values.push(value as u16),
            ColumnData::Uint32(values) => values.push(value as u32),
            ColumnData::Uint64(values) => values.push(value),
            ColumnData::Int16(values) => values.push(value as i16),
            ColumnData::Int32(values) => values.push(value as i32),
            ColumnData::Int64(values) => values.push(value as i64),
            ColumnData::Float64(values) => values.push(value as f64),
            ColumnData::Text(_) => return self.push_display(value),
            _ => return self.push_null(),
        }
        self.valid();
    }

    /// Appends a signed integer, converted to the type of the column.
    #[inline]
    pub(super) fn push_sint(&mut self, value: i64) {
        match &mut self.data {
            ColumnData::Int8(values) => values.push(value as i8),
            ColumnData::Int16(values) => values.push(value as i16),
            ColumnData::Int32(values) => values.push(value as i32),
            ColumnData::Int64(values) => values.push(value),
            ColumnData::Float64(values) => values.push(value as f64),
            ColumnData::Text(_) => return self.push_display(value),
            _ => return self.push_null(),
        }
        self.valid();
    }

    /// Appends a floating point number, converted to the type of the column.
    #[inline]
    pub(super) fn push_float(&mut self, value: f64) {
        match &mut self.data {
            ColumnData::Float32(values) => values.push(value as f32),
            ColumnData::Float64(values) => values.push(value),
            ColumnData::Text(_) => return self.push_display(value),
            _ => return self.push_null(),
        }
        self.valid();
    }

    /// Appends a truth value, converted to the type of the column.
    pub(super) fn push_bool(&mut self, value: bool) {
        match &mut self.data {
            ColumnData::Bool(bits) => {
                bits.push(value);
                self.valid();
            }
            ColumnData::Text(_) => self.push_display(value),
            _ => self.push_uint(value.into()),
        }
    }

    /// Appends the bytes of a text as they are.
    #[inline]
    pub(super) fn push_raw_text(&mut self, text: &[u8]) {
        match &mut self.data {
            ColumnData::Text(strings) => {
                strings.bytes.extend_from_slice(text);
                strings.end();
                self.valid();
            }
            ColumnData::Binary(_) => self.push_bytes(text),
            _ => self.push_null(),
        }
    }

    /// Appends a text; returns whether something in it was not UTF-8 and was replaced.
    #[inline]
    pub(super) fn push_text(&mut self, text: &[u8]) -> bool {
        match &mut self.data {
            ColumnData::Text(strings) => {
                let replaced = match std::str::from_utf8(text) {
                    Ok(_) => {
                        strings.bytes.extend_from_slice(text);
                        false
                    }
                    Err(_) => {
                        let text = String::from_utf8_lossy(text);
                        strings.bytes.extend_from_slice(text.as_bytes());
                        true
                    }
                };
                strings.end();
                self.valid();
                replaced
            }
            ColumnData::Binary(_) => {
                self.push_bytes(text);
                false
            }
            _ => {
                self.push_null();
                false
            }
        }
    }

    /// Appends bytes.
    pub(super) fn push_bytes(&mut self, value: &[u8]) {
        match &mut self.data {
            ColumnData::Binary(strings) => {
                strings.bytes.extend_from_slice(value);
                strings.end();
            }
            ColumnData::FixedBinary { size, bytes } if value.len() == *size => {
                bytes.extend_from_slice(value);
            }
            ColumnData::Text(strings) => {
                for byte in value {
                    let digits =
                        [byte >> 4, byte & 15].map(|digit| b"0123456789abcdef"[digit as usize]);
                    strings.bytes.extend_from_slice(&digits);
                }
                strings.end();
            }
            _ => return self.push_null(),
        }
        self.valid();
    }

    /// Appends the position of a text in a dictionary.
    pub(super) fn push_key(&mut self, key: u32) {
        if let ColumnData::Dictionary { keys, .. } = &mut self.data {
            keys.push(key);
            self.valid();
        }
    }

    #[cold]
    fn push_display(&mut self, value: impl std::fmt::Display) {
        self.push_text(value.to_string().as_bytes());
    }

    /// Repeats the only value, so that there are `rows` rows.
    pub(super) fn repeat(&mut self, rows: usize) {
        if self.validity.is_some() {
            self.validity = Some(Bitmap::repeat(self.value(0) != Value::Missing, rows));
        }
        numbers!(&mut self.data, values => values.resize(rows, values[0]),
            _ => {
                let one = Self { data: self.data.clone(), validity: None };
                let validity = self.validity.take();
                (1..rows).for_each(|_| self.append(&one, 0..1));
                self.validity = validity;
            }
        );
    }

    /// Ends a list or a structure after its parts have been appended to its items or members.
    pub(super) fn end_compound(&mut self) {
        match &mut self.data {
            ColumnData::List { offsets, items } => offsets.push(items.len() as i32),
            ColumnData::Struct { len, members } => {
                *len += 1;
                pad(members, *len);
            }
            _ => return,
        }
        self.valid();
    }

    /// Keeps the first rows only.
    pub fn truncate(&mut self, rows: usize) {
        numbers!(&mut self.data, values => values.truncate(rows),
            ColumnData::Bool(bits) => bits.truncate(rows),
            ColumnData::Text(strings) | ColumnData::Binary(strings) => {
                strings.offsets.truncate(rows + 1);
                let end = strings.offsets.last().map_or(0, |&end| end as usize);
                strings.bytes.truncate(end);
            }
            ColumnData::FixedBinary { size, bytes } => bytes.truncate(rows * *size),
            ColumnData::Dictionary { keys, .. } => keys.truncate(rows),
            ColumnData::List { offsets, items } => {
                offsets.truncate(rows + 1);
                items.truncate(offsets.last().map_or(0, |&end| end as usize));
            }
            ColumnData::Struct { len, members } => {
                *len = (*len).min(rows);
                members.iter_mut().for_each(|member| member.truncate(rows));
            }
        );
        if let Some(validity) = &mut self.validity {
            validity.truncate(rows);
        }
    }
}

/// Gives columns that are shorter rows without a value.
pub(super) fn pad(columns: &mut [Column], rows: usize) {
    for column in columns {
        while column.len() < rows {
            column.push_null();
        }
    }
}
