//! The values of a row, as a decoder would give them.

use arrow_buffer::i256;
use kymo_ctf::write::Encode;
use kymo_model::{FieldId, Visitor, Wide};

use super::column::Column;
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
    column: &Column,
    row: usize,
    to: &mut Encode<'_>,
) -> Result<(), NotGiven> {
    let is_null = column.is_null(row);
    if let Form::Optional(inner) = form {
        // Of an optional within another one, a column does not say which of both is empty; the selector does.
        let is_there =
            !is_null || (matches!(**inner, Form::Optional(_)) && to.selected() == Some(0));
        to.begin_optional(FIELD, is_there, u64::from(is_there));
        if is_there {
            give(inner, column, row, to)?;
        }
        to.end_optional(FIELD);
        return Ok(());
    }
    if is_null {
        return Err(NotGiven::Missing);
    }
    let missing = NotGiven::Missing;
    match form {
        Form::Uint => to.uint(FIELD, column.unsigned(row).ok_or(missing)?),
        Form::Bits => to.bits(FIELD, column.unsigned(row).ok_or(missing)?),
        Form::Sint => to.sint(FIELD, column.signed(row).ok_or(missing)?),
        Form::Float => to.float(FIELD, column.float(row).ok_or(missing)?),
        Form::Float128 => to.float128(FIELD, widened(column.float(row).ok_or(missing)?)),
        Form::Bool => to.boolean(FIELD, column.bit(row).ok_or(missing)?),
        &Form::Wide { bits, signed } => {
            let bytes = column.bytes(row).ok_or(missing)?;
            to.wide(FIELD, Wide::new(bytes, bits, signed));
        }
        Form::Text => match column.scale() {
            None => to.text(FIELD, column.bytes(row).ok_or(missing)?),
            Some(scale) => {
                let text = decimal(column, row, scale.into()).ok_or(missing)?;
                to.text(FIELD, text.as_bytes());
            }
        },
        Form::Blob => to.blob(FIELD, column.bytes(row).ok_or(missing)?),
        Form::Struct(members) => {
            to.begin_struct(FIELD);
            for (form, member) in members.iter().zip(column.members()) {
                if *form != Form::Nothing {
                    give(form, member, row, to)?;
                }
            }
            to.end_struct(FIELD);
        }
        Form::Variant(options) => {
            let all = options.iter().zip(column.members());
            let mut all = all.filter(|(form, _)| **form != Form::Nothing);
            // An option that holds nothing is known by what selects it.
            let (option, form, column) = match all
                .clone()
                .enumerate()
                .find(|(_, (_, column))| !column.is_null(row))
            {
                Some((option, (form, column))) => (option, form, column),
                None => {
                    let option = to.selected().ok_or(missing)?;
                    let (form, column) = all.nth(option).ok_or(missing)?;
                    (option, form, column)
                }
            };
            to.begin_variant(FIELD, option as u32, option as u64);
            give(form, column, row, to)?;
            to.end_variant(FIELD);
        }
        Form::Array(form) => {
            let (items, column) = column.list(row).ok_or(missing)?;
            to.begin_array(FIELD, items.len() as u64);
            for item in items {
                give(form, column, item, to)?;
            }
            to.end_array(FIELD);
        }
        Form::Json => return Err(NotGiven::Nested),
        Form::Optional(_) | Form::Nothing => {}
    }
    Ok(())
}

/// A decimal number: an integer, as bytes with the highest one first where it is not a number, and where its point is.
pub(super) fn decimal(column: &Column, row: usize, scale: usize) -> Option<String> {
    let mut text = match column.bytes(row) {
        None => column.signed(row)?.to_string(),
        Some(bytes) => {
            let sign = bytes.first().map_or(0, |&first| ((first as i8) >> 7) as u8);
            let mut wide = [sign; 32];
            wide[32_usize.checked_sub(bytes.len())?..].copy_from_slice(bytes);
            match wide.last_chunk().filter(|_| bytes.len() <= 16) {
                Some(few) => i128::from_be_bytes(*few).to_string(),
                None => i256::from_be_bytes(wide).to_string(),
            }
        }
    };
    if scale > 0 {
        // With a digit in front of the point.
        let sign = usize::from(text.starts_with('-'));
        let missing = (scale + 1).saturating_sub(text.len() - sign);
        text.insert_str(sign, &"0".repeat(missing));
        text.insert(text.len() - scale, '.');
    }
    Some(text)
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
