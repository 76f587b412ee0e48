//! The values of a row, as a decoder would give them.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Date64Type, Decimal32Type, Decimal64Type, Decimal128Type,
    Decimal256Type, DurationMicrosecondType, DurationMillisecondType, DurationNanosecondType,
    DurationSecondType, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, Time32MillisecondType, Time32SecondType, Time64MicrosecondType,
    Time64NanosecondType, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, TimeUnit};
use kymo_ctf::write::Encode;
use kymo_model::{FieldId, Visitor, Wide};

use crate::kinds::Form;

/// Values are known by their place.
const FIELD: FieldId = FieldId(0);

/// Why a row is not an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotGiven {
    /// It has no value where there must be one.
    Missing,
    /// A value is nested so deeply that it is a text of JSON.
    Nested,
}

/// Gives the value of a row.
pub(super) fn give(
    form: &Form,
    array: &ArrayRef,
    row: usize,
    to: &mut Encode<'_>,
) -> Result<(), NotGiven> {
    let is_null = array.is_null(row);
    if let Form::Optional(inner) = form {
        // Of an optional within another one, a column does not say which of both is empty; the selector does.
        let is_there =
            !is_null || (matches!(**inner, Form::Optional(_)) && to.selected() == Some(0));
        to.begin_optional(FIELD, is_there, u64::from(is_there));
        if is_there {
            give(inner, array, row, to)?;
        }
        to.end_optional(FIELD);
        return Ok(());
    }
    if is_null {
        return Err(NotGiven::Missing);
    }
    match form {
        Form::Uint => to.uint(FIELD, unsigned(array, row).ok_or(NotGiven::Missing)?),
        Form::Bits => to.bits(FIELD, unsigned(array, row).ok_or(NotGiven::Missing)?),
        Form::Sint => to.sint(FIELD, signed(array, row).ok_or(NotGiven::Missing)?),
        Form::Float => to.float(FIELD, float(array, row).ok_or(NotGiven::Missing)?),
        Form::Float128 => {
            let value = float(array, row).ok_or(NotGiven::Missing)?;
            to.float128(FIELD, widened(value));
        }
        Form::Bool => to.boolean(
            FIELD,
            array.as_boolean_opt().ok_or(NotGiven::Missing)?.value(row),
        ),
        &Form::Wide { bits, signed } => {
            let array = array.as_fixed_size_binary_opt().ok_or(NotGiven::Missing)?;
            to.wide(FIELD, Wide::new(array.value(row), bits, signed));
        }
        Form::Text => text(array, row, to)?,
        Form::Blob => to.blob(FIELD, blob(array, row).ok_or(NotGiven::Missing)?),
        Form::Struct(members) => {
            to.begin_struct(FIELD);
            if let Some(array) = array.as_struct_opt() {
                for (form, member) in members.iter().zip(array.columns()) {
                    if *form != Form::Nothing {
                        give(form, member, row, to)?;
                    }
                }
            }
            to.end_struct(FIELD);
        }
        Form::Variant(options) => {
            let array = array.as_struct_opt().ok_or(NotGiven::Missing)?;
            let all = options.iter().zip(array.columns());
            let mut all = all.filter(|(form, _)| **form != Form::Nothing);
            // An option that holds nothing is known by what selects it.
            let (option, form, column) = match all
                .clone()
                .enumerate()
                .find(|(_, (_, column))| column.is_valid(row))
            {
                Some((option, (form, column))) => (option, form, column),
                None => {
                    let option = to.selected().ok_or(NotGiven::Missing)?;
                    let (form, column) = all.nth(option).ok_or(NotGiven::Missing)?;
                    (option, form, column)
                }
            };
            to.begin_variant(FIELD, option as u32, option as u64);
            give(form, column, row, to)?;
            to.end_variant(FIELD);
        }
        Form::Array(form) => {
            let items = match array.data_type() {
                DataType::LargeList(_) => array
                    .as_list_opt::<i64>()
                    .ok_or(NotGiven::Missing)?
                    .value(row),
                _ => array
                    .as_list_opt::<i32>()
                    .ok_or(NotGiven::Missing)?
                    .value(row),
            };
            to.begin_array(FIELD, items.len() as u64);
            for item in 0..items.len() {
                give(form, &items, item, to)?;
            }
            to.end_array(FIELD);
        }
        Form::Json => return Err(NotGiven::Nested),
        Form::Optional(_) | Form::Nothing => {}
    }
    Ok(())
}

fn value<T: ArrowPrimitiveType>(array: &ArrayRef, row: usize) -> Option<T::Native> {
    Some(array.as_primitive_opt::<T>()?.value(row))
}

/// An unsigned integer.
pub(super) fn unsigned(array: &ArrayRef, row: usize) -> Option<u64> {
    match array.data_type() {
        DataType::UInt8 => value::<UInt8Type>(array, row).map(u64::from),
        DataType::UInt16 => value::<UInt16Type>(array, row).map(u64::from),
        DataType::UInt32 => value::<UInt32Type>(array, row).map(u64::from),
        DataType::UInt64 => value::<UInt64Type>(array, row),
        _ => None,
    }
}

/// A signed integer, or the count of what counts time.
pub(super) fn signed(array: &ArrayRef, row: usize) -> Option<i64> {
    match array.data_type() {
        DataType::Int8 => value::<Int8Type>(array, row).map(i64::from),
        DataType::Int16 => value::<Int16Type>(array, row).map(i64::from),
        DataType::Int32 => value::<Int32Type>(array, row).map(i64::from),
        DataType::Int64 => value::<Int64Type>(array, row),
        DataType::Date32 => value::<Date32Type>(array, row).map(i64::from),
        DataType::Date64 => value::<Date64Type>(array, row),
        DataType::Time32(TimeUnit::Second) => value::<Time32SecondType>(array, row).map(i64::from),
        DataType::Time32(_) => value::<Time32MillisecondType>(array, row).map(i64::from),
        DataType::Time64(TimeUnit::Microsecond) => value::<Time64MicrosecondType>(array, row),
        DataType::Time64(_) => value::<Time64NanosecondType>(array, row),
        DataType::Duration(TimeUnit::Second) => value::<DurationSecondType>(array, row),
        DataType::Duration(TimeUnit::Millisecond) => value::<DurationMillisecondType>(array, row),
        DataType::Duration(TimeUnit::Microsecond) => value::<DurationMicrosecondType>(array, row),
        DataType::Duration(TimeUnit::Nanosecond) => value::<DurationNanosecondType>(array, row),
        DataType::Timestamp(..) => nanos(array, row),
        _ => None,
    }
}

/// A time in nanoseconds, if that fits.
pub(super) fn nanos(array: &ArrayRef, row: usize) -> Option<i64> {
    if array.is_null(row) {
        return None;
    }
    match array.data_type() {
        DataType::Timestamp(TimeUnit::Second, _) => {
            value::<TimestampSecondType>(array, row)?.checked_mul(1_000_000_000)
        }
        DataType::Timestamp(TimeUnit::Millisecond, _) => {
            value::<TimestampMillisecondType>(array, row)?.checked_mul(1_000_000)
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            value::<TimestampMicrosecondType>(array, row)?.checked_mul(1_000)
        }
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            value::<TimestampNanosecondType>(array, row)
        }
        _ => None,
    }
}

fn float(array: &ArrayRef, row: usize) -> Option<f64> {
    match array.data_type() {
        DataType::Float16 => value::<Float16Type>(array, row).map(f64::from),
        DataType::Float32 => value::<Float32Type>(array, row).map(f64::from),
        DataType::Float64 => value::<Float64Type>(array, row),
        _ => None,
    }
}

fn text(array: &ArrayRef, row: usize, to: &mut Encode<'_>) -> Result<(), NotGiven> {
    let decimal = match array.data_type() {
        DataType::Utf8 => {
            let array = array.as_string_opt::<i32>().ok_or(NotGiven::Missing)?;
            to.text(FIELD, array.value(row).as_bytes());
            return Ok(());
        }
        DataType::LargeUtf8 => {
            let array = array.as_string_opt::<i64>().ok_or(NotGiven::Missing)?;
            to.text(FIELD, array.value(row).as_bytes());
            return Ok(());
        }
        DataType::Utf8View => {
            let array = array.as_string_view_opt().ok_or(NotGiven::Missing)?;
            to.text(FIELD, array.value(row).as_bytes());
            return Ok(());
        }
        DataType::Binary => {
            to.text(FIELD, blob(array, row).ok_or(NotGiven::Missing)?);
            return Ok(());
        }
        DataType::Decimal32(..) => array
            .as_primitive_opt::<Decimal32Type>()
            .map(|array| array.value_as_string(row)),
        DataType::Decimal64(..) => array
            .as_primitive_opt::<Decimal64Type>()
            .map(|array| array.value_as_string(row)),
        DataType::Decimal128(..) => array
            .as_primitive_opt::<Decimal128Type>()
            .map(|array| array.value_as_string(row)),
        _ => array
            .as_primitive_opt::<Decimal256Type>()
            .map(|array| array.value_as_string(row)),
    };
    to.text(FIELD, decimal.ok_or(NotGiven::Missing)?.as_bytes());
    Ok(())
}

fn blob(array: &ArrayRef, row: usize) -> Option<&[u8]> {
    Some(match array.data_type() {
        DataType::Binary => array.as_binary_opt::<i32>()?.value(row),
        DataType::LargeBinary => array.as_binary_opt::<i64>()?.value(row),
        DataType::BinaryView => array.as_binary_view_opt()?.value(row),
        _ => array.as_fixed_size_binary_opt()?.value(row),
    })
}

/// The bits of a number in 128 bits, which hold it exactly.
fn widened(value: f64) -> u128 {
    const MANTISSA: u32 = 52;
    const WIDE_MANTISSA: u32 = 112;
    const BIAS: i32 = 1023;
    const WIDE_BIAS: i32 = 16_383;
    let bits = value.to_bits();
    let sign = u128::from(bits >> 63) << 127;
    let mut mantissa = bits & ((1 << MANTISSA) - 1);
    let exponent = ((bits >> MANTISSA) & 0x7ff) as i32;
    let wide = match (exponent, mantissa) {
        (0, 0) => 0,
        (0x7ff, _) => 0x7fff,
        (0, _) => {
            // The first one is in front of the point there.
            let shift = mantissa.leading_zeros() - (63 - MANTISSA);
            mantissa = (mantissa << shift) & ((1 << MANTISSA) - 1);
            WIDE_BIAS - BIAS + 1 - shift as i32
        }
        (exponent, _) => exponent - BIAS + WIDE_BIAS,
    };
    let mantissa = u128::from(mantissa) << (WIDE_MANTISSA - MANTISSA);
    sign | (wide as u128) << WIDE_MANTISSA | mantissa
}

#[cfg(test)]
mod tests {
    use super::widened;

    #[test]
    fn numbers_are_widened_exactly() {
        for (value, expected) in [
            (0.0, 0),
            (-0.0, 1 << 127),
            (1.0, 0x3fff << 112),
            (-2.0, 0xc000 << 112),
            (1.5, 0x3_fff8 << 108),
            (f64::INFINITY, 0x7fff << 112),
            (f64::NEG_INFINITY, 0xffff << 112),
            // 2^-1022 and 2^-1074, the smallest normal and subnormal ones.
            (f64::MIN_POSITIVE, (16_383 - 1022) << 112),
            (f64::from_bits(1), (16_383 - 1074) << 112),
        ] {
            assert_eq!(widened(value), expected, "{value:e}");
        }
    }
}
