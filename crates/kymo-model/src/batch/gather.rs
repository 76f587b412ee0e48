//! Numbers and texts that are always at the same place of an event: read where they are, for many events at once.

use super::bitmap::Bitmap;
use super::build::{Columns, Table};
use super::column::{Column, ColumnData};
use crate::{FieldId, Visitor};

/// How a number lies in the bytes of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[expect(
    missing_docs,
    reason = "each says its kind, its size in bits and its byte order"
)]
pub enum Number {
    U8,
    U16Le,
    U16Be,
    U32Le,
    U32Be,
    U64Le,
    U64Be,
    S8,
    S16Le,
    S16Be,
    S32Le,
    S32Be,
    S64Le,
    S64Be,
    F32Le,
    F32Be,
    F64Le,
    F64Be,
}

/// How a value lies in the bytes of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Layout {
    /// A number.
    Number(Number),
    /// A text up to a zero byte.
    Text,
    /// A text of this many bytes, or up to the first zero byte in them.
    SizedText(usize),
}

/// Where a value is in all events of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// What it is counted from: 0 stands for where the fields of the event begin, and `n` for where the `n`-th of those
    /// of variable size ends.
    pub base: usize,
    /// What that is aligned to, in bytes, less one.
    pub mask: usize,
    /// Bytes from there.
    pub offset: usize,
    /// How it lies there.
    pub layout: Layout,
}

/// How the bits of a number that was read are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Uint,
    Sint,
    Float,
}

impl Number {
    /// Its bytes.
    #[inline]
    pub const fn size(self) -> usize {
        match self {
            Self::U8 | Self::S8 => 1,
            Self::U16Le | Self::U16Be | Self::S16Le | Self::S16Be => 2,
            Self::U32Le | Self::U32Be | Self::S32Le | Self::S32Be | Self::F32Le | Self::F32Be => 4,
            Self::U64Le | Self::U64Be | Self::S64Le | Self::S64Be | Self::F64Le | Self::F64Be => 8,
        }
    }

    /// Gives a visitor the numbers that lie one behind the other, one by one.
    #[inline]
    pub fn visit<V: Visitor + ?Sized>(self, field: FieldId, bytes: &[u8], visitor: &mut V) {
        macro_rules! visit {
            ($($kind:ident $type:ident $from:ident $call:ident,)*) => {
                match self {
                    $(Self::$kind => for bytes in bytes.as_chunks().0 {
                        visitor.$call(field, $type::$from(*bytes).into());
                    })*
                }
            };
        }
        visit! {
            U8 u8 from_le_bytes uint, U16Le u16 from_le_bytes uint, U16Be u16 from_be_bytes uint,
            U32Le u32 from_le_bytes uint, U32Be u32 from_be_bytes uint,
            U64Le u64 from_le_bytes uint, U64Be u64 from_be_bytes uint,
            S8 i8 from_le_bytes sint, S16Le i16 from_le_bytes sint, S16Be i16 from_be_bytes sint,
            S32Le i32 from_le_bytes sint, S32Be i32 from_be_bytes sint,
            S64Le i64 from_le_bytes sint, S64Be i64 from_be_bytes sint,
            F32Le f32 from_le_bytes float, F32Be f32 from_be_bytes float,
            F64Le f64 from_le_bytes float, F64Be f64 from_be_bytes float,
        }
    }

    fn kind(self) -> Kind {
        match self {
            Self::U8
            | Self::U16Le
            | Self::U16Be
            | Self::U32Le
            | Self::U32Be
            | Self::U64Le
            | Self::U64Be => Kind::Uint,
            Self::S8
            | Self::S16Le
            | Self::S16Be
            | Self::S32Le
            | Self::S32Be
            | Self::S64Le
            | Self::S64Be => Kind::Sint,
            Self::F32Le | Self::F32Be | Self::F64Le | Self::F64Be => Kind::Float,
        }
    }
}

/// Does the same for a number of each kind: `read` gives it as 64 bits.
macro_rules! each_number {
    ($number:expr, $read:ident => $do:expr) => {
        each_number! { $number, $read => $do,
            U8 u8 from_le_bytes u64, U16Le u16 from_le_bytes u64, U16Be u16 from_be_bytes u64,
            U32Le u32 from_le_bytes u64, U32Be u32 from_be_bytes u64, U64Le u64 from_le_bytes u64,
            U64Be u64 from_be_bytes u64, S8 i8 from_le_bytes i64, S16Le i16 from_le_bytes i64,
            S16Be i16 from_be_bytes i64, S32Le i32 from_le_bytes i64, S32Be i32 from_be_bytes i64,
            S64Le i64 from_le_bytes i64, S64Be i64 from_be_bytes i64;
            F32Le f32 from_le_bytes, F32Be f32 from_be_bytes, F64Le f64 from_le_bytes, F64Be f64 from_be_bytes
        }
    };
    ($number:expr, $read:ident => $do:expr, $($kind:ident $type:ident $from:ident $wide:ident),*;
        $($float:ident $float_type:ident $float_from:ident),*) => {
        match $number {
            $(Number::$kind => {
                let $read = |bytes: &[u8]| {
                    bytes.first_chunk().map(|bytes| $wide::from($type::$from(*bytes)) as u64)
                };
                $do
            })*
            $(Number::$float => {
                let $read = |bytes: &[u8]| {
                    bytes.first_chunk().map(|bytes| f64::from($float_type::$float_from(*bytes)).to_bits())
                };
                $do
            })*
        }
    };
}

/// The text at the beginning of some bytes.
#[inline]
fn text(bytes: &[u8], layout: Layout) -> Option<&[u8]> {
    match layout {
        Layout::Number(_) => None,
        Layout::Text => bytes.get(..memchr::memchr(0, bytes)?),
        Layout::SizedText(size) => {
            let bytes = bytes.get(..size)?;
            bytes.get(..memchr::memchr(0, bytes).unwrap_or(size))
        }
    }
}

impl Columns {
    /// Appends a row for each of some events to a column that is [gathered](super::ColumnSource::Gathered): the value
    /// at this place. `bases` are the bytes that the place counts from; events that do not have the value get none.
    ///
    /// # Panics
    ///
    /// If the column does not exist.
    pub fn gather(&mut self, column: usize, bytes: &[u8], bases: &[usize], place: Place) {
        match place.layout {
            Layout::Number(number) => {
                let column = &mut self.table.columns[column];
                column.gather(bytes, bases, place.offset, number);
            }
            _ => {
                let each = bases.iter().map(|&base| (base, Some(place)));
                self.gather_each(column, bytes, each);
            }
        }
    }

    /// The same for events that have the value at different places, or not at all.
    ///
    /// # Panics
    ///
    /// If the column does not exist.
    pub fn gather_each(
        &mut self,
        column: usize,
        bytes: &[u8],
        places: impl Iterator<Item = (usize, Option<Place>)>,
    ) {
        let Table {
            columns, replaced, ..
        } = &mut *self.table;
        let column = &mut columns[column];
        for (base, place) in places {
            let at = place
                .and_then(|place| Some((bytes.get(base.checked_add(place.offset)?..)?, place)));
            let Some((bytes, place)) = at else {
                column.push_null();
                continue;
            };
            match place.layout {
                Layout::Number(number) => column.push_number(bytes, number),
                layout => match text(bytes, layout) {
                    Some(text) if self.raw => column.push_raw_text(text),
                    Some(text) => *replaced += u64::from(column.push_text(text)),
                    None => column.push_null(),
                },
            }
        }
    }
}

impl Column {
    /// Appends a row for each of some events: the number `offset` bytes after its base. Events that do not have it get
    /// no value.
    fn gather(&mut self, bytes: &[u8], bases: &[usize], offset: usize, number: Number) {
        let mut values = [0; 64];
        for bases in bases.chunks(values.len()) {
            let values = &mut values[..bases.len()];
            let mut is_whole = true;
            each_number!(number, read => {
                for (value, &base) in values.iter_mut().zip(bases) {
                    match bytes.get(base.wrapping_add(offset)..).and_then(read) {
                        Some(number) => *value = number,
                        None => is_whole = false,
                    }
                }
            });
            if is_whole && self.extend_numbers(values, number.kind()) {
                continue;
            }
            for &base in bases {
                let bytes = bytes.get(base.wrapping_add(offset)..);
                self.push_number(bytes.unwrap_or_default(), number);
            }
        }
    }

    /// Appends the numbers that lie one behind the other in some bytes.
    pub(super) fn extend_from_bytes(&mut self, bytes: &[u8], number: Number) {
        let (mut values, size) = ([0; 32], number.size());
        for bytes in bytes.chunks(values.len() * size) {
            let values = &mut values[..bytes.len() / size];
            let each = values.iter_mut().zip(bytes.chunks_exact(size));
            each_number!(number, read => each.for_each(|(value, bytes)| *value = read(bytes).unwrap_or(0)));
            if !self.extend_numbers(values, number.kind()) {
                let each = bytes.chunks_exact(size);
                each.for_each(|bytes| self.push_number(bytes, number));
            }
        }
    }

    /// Appends the number at the beginning of some bytes, or no value.
    #[inline]
    fn push_number(&mut self, bytes: &[u8], number: Number) {
        let value = each_number!(number, read => read(bytes));
        match value.map(|value| (value, number.kind())) {
            Some((value, Kind::Uint)) => self.push_uint(value),
            Some((value, Kind::Sint)) => self.push_sint(value as i64),
            Some((value, Kind::Float)) => self.push_float(f64::from_bits(value)),
            None => self.push_null(),
        }
    }

    /// Appends numbers, converted to the type of the column; `false`, with nothing done, if they have to be converted
    /// one by one.
    fn extend_numbers(&mut self, values: &[u64], kind: Kind) -> bool {
        macro_rules! extend {
            ($to:expr, $type:ident) => {
                $to.extend(values.iter().map(|&value| value as $type))
            };
        }
        match (&mut self.data, kind) {
            (ColumnData::Uint8(to), Kind::Uint) => extend!(to, u8),
            (ColumnData::Uint16(to), Kind::Uint) => extend!(to, u16),
            (ColumnData::Uint32(to), Kind::Uint) => extend!(to, u32),
            (ColumnData::Uint64(to), Kind::Uint) => to.extend_from_slice(values),
            (ColumnData::Int8(to), Kind::Sint) => extend!(to, i8),
            (ColumnData::Int16(to), Kind::Uint | Kind::Sint) => extend!(to, i16),
            (ColumnData::Int32(to), Kind::Uint | Kind::Sint) => extend!(to, i32),
            (ColumnData::Int64(to), Kind::Uint | Kind::Sint) => extend!(to, i64),
            (ColumnData::Float64(to), Kind::Float) => {
                to.extend(values.iter().map(|&value| f64::from_bits(value)));
            }
            (ColumnData::Float32(to), Kind::Float) => {
                to.extend(values.iter().map(|&value| f64::from_bits(value) as f32));
            }
            _ => return false,
        }
        if let Some(validity) = &mut self.validity {
            validity.append(&Bitmap::repeat(true, values.len()), 0..values.len());
        }
        true
    }

    /// Appends rows without a value.
    pub fn push_nulls(&mut self, rows: usize) {
        (0..rows).for_each(|_| self.push_null());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::DataType;

    #[test]
    fn numbers_are_read_as_they_lie() {
        let bytes: Vec<u8> = (0..200).map(|n| (n * 89 + 131) as u8).collect();
        let bases: Vec<usize> = (0..150).collect();
        let numbers = [
            Number::U8,
            Number::U16Le,
            Number::U16Be,
            Number::U32Le,
            Number::U32Be,
            Number::U64Le,
            Number::U64Be,
            Number::S8,
            Number::S16Le,
            Number::S16Be,
            Number::S32Le,
            Number::S32Be,
            Number::S64Le,
            Number::S64Be,
            Number::F32Le,
            Number::F32Be,
            Number::F64Le,
            Number::F64Be,
        ];
        let types = [
            DataType::Uint8,
            DataType::Uint16,
            DataType::Uint32,
            DataType::Uint64,
            DataType::Int8,
            DataType::Int16,
            DataType::Int32,
            DataType::Int64,
            DataType::Float32,
            DataType::Float64,
            DataType::Text,
            DataType::Bool,
        ];
        let push = |column: &mut Column, number, base: usize| {
            let all = &bytes[base + 3..];
            let first = |size: usize| &all[..size];
            let array = |size: usize| -> [u8; 8] {
                let mut array = [0; 8];
                array[..size].copy_from_slice(first(size));
                array
            };
            let little = |size: usize| u64::from_le_bytes(array(size));
            let big = |size: usize| u64::from_be_bytes(array(size)) >> (64 - 8 * size);
            let signed =
                |value: u64, size: usize| (value << (64 - 8 * size)) as i64 >> (64 - 8 * size);
            match number {
                Number::U8 => column.push_uint(little(1)),
                Number::U16Le => column.push_uint(little(2)),
                Number::U16Be => column.push_uint(big(2)),
                Number::U32Le => column.push_uint(little(4)),
                Number::U32Be => column.push_uint(big(4)),
                Number::U64Le => column.push_uint(little(8)),
                Number::U64Be => column.push_uint(big(8)),
                Number::S8 => column.push_sint(signed(little(1), 1)),
                Number::S16Le => column.push_sint(signed(little(2), 2)),
                Number::S16Be => column.push_sint(signed(big(2), 2)),
                Number::S32Le => column.push_sint(signed(little(4), 4)),
                Number::S32Be => column.push_sint(signed(big(4), 4)),
                Number::S64Le => column.push_sint(signed(little(8), 8)),
                Number::S64Be => column.push_sint(signed(big(8), 8)),
                Number::F32Le => column.push_float(f32::from_bits(little(4) as u32).into()),
                Number::F32Be => column.push_float(f32::from_bits(big(4) as u32).into()),
                Number::F64Le => column.push_float(f64::from_bits(little(8))),
                Number::F64Be => column.push_float(f64::from_bits(big(8))),
            }
        };
        for number in numbers {
            for data_type in &types {
                let (mut gathered, mut pushed) = (Column::new(data_type), Column::new(data_type));
                gathered.gather(&bytes, &bases, 3, number);
                gathered.push_null();
                gathered.gather(&bytes, &bases[..3], 3, number);
                bases
                    .iter()
                    .for_each(|&base| push(&mut pushed, number, base));
                pushed.push_null();
                bases[..3]
                    .iter()
                    .for_each(|&base| push(&mut pushed, number, base));
                // NaNs are compared by their bits.
                assert_eq!(gathered.len(), pushed.len());
                assert_eq!(gathered.null_count(), pushed.null_count());
                assert_eq!(format!("{gathered:?}"), format!("{pushed:?}"), "{number:?}");
                let size = number.size();
                let (mut extended, mut pushed) = (Column::new(data_type), Column::new(data_type));
                let all = bases.len() / size;
                extended.extend_from_bytes(&bytes[3..3 + all * size], number);
                (0..all).for_each(|at| push(&mut pushed, number, at * size));
                assert_eq!(format!("{extended:?}"), format!("{pushed:?}"), "{number:?}");
            }
        }
        // Events that end before the number.
        let mut column = Column::new(&DataType::Uint32);
        column.gather(&bytes, &[0, 195, 196, usize::MAX], 1, Number::U32Le);
        let valid: Vec<bool> = (0..4).map(|row| column.is_valid(row)).collect();
        assert_eq!(valid, [true, true, false, true]);
    }
}
