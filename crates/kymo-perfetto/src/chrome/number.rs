//! Numbers of JSON.

use crate::row::Value;

/// Digits of a time that count; more than any time has.
const MOST_DIGITS: u32 = 30;

/// The value that a number stands for, exactly: a text where it is an integer of more than 64 bits.
pub(super) fn value(word: &[u8]) -> Option<Value<'_>> {
    let text = str::from_utf8(word).ok()?;
    if let Ok(value) = text.parse() {
        return Some(Value::Uint(value));
    }
    if let Ok(value) = text.parse() {
        return Some(Value::Sint(value));
    }
    let is_integer = !text.bytes().any(|byte| matches!(byte, b'.' | b'e' | b'E'))
        && text.bytes().any(|byte| byte.is_ascii_digit());
    match is_integer {
        true => Some(Value::Text(word)),
        false => text.parse().ok().map(Value::Float),
    }
}

/// A number of microseconds as nanoseconds, to the nearest one, in whatever form it is written;
/// `None` if it is not a number, or does not fit in 64 bits.
pub(super) fn nanos(word: &[u8]) -> Option<i64> {
    let (negative, digits) = match word.split_first()? {
        (b'-', rest) => (true, rest),
        (b'+', rest) => (false, rest),
        _ => (false, word),
    };
    let mut mantissa = 0_i128;
    // The power of ten of the last digit that counts.
    let mut power = 0_i64;
    let (mut is_fraction, mut any, mut count) = (false, false, 0);
    let mut rest = digits;
    while let Some((&byte, after)) = rest.split_first() {
        match byte {
            b'0'..=b'9' => {
                any = true;
                if count < MOST_DIGITS {
                    mantissa = mantissa * 10 + i128::from(byte - b'0');
                    count += u32::from(mantissa > 0);
                    power -= i64::from(is_fraction);
                } else {
                    power += i64::from(!is_fraction);
                }
            }
            b'.' if !is_fraction => is_fraction = true,
            b'e' | b'E' => {
                let exponent: i64 = str::from_utf8(after).ok()?.parse().ok()?;
                power = power.checked_add(exponent)?;
                rest = &[];
                continue;
            }
            _ => return None,
        }
        rest = after;
    }
    if !any {
        return None;
    }
    let power = power.checked_add(3)?;
    let scale = |power: i64| 10_i128.checked_pow(u32::try_from(power).ok()?);
    let nanos = match (mantissa, power) {
        (0, _) => 0,
        (_, 0..) => mantissa.checked_mul(scale(power)?)?,
        // Of more than thirty digits, nothing is left of less than 10^-38.
        _ => scale(-power).map_or(0, |scale| (mantissa + scale / 2) / scale),
    };
    i64::try_from(if negative { -nanos } else { nanos }).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn times_are_exact_in_any_form() {
        for (word, expected) in [
            ("0", Some(0)),
            ("-0.0", Some(0)),
            ("1", Some(1000)),
            ("1.5", Some(1500)),
            ("-1.001", Some(-1001)),
            ("1e3", Some(1_000_000)),
            ("1.25E-2", Some(13)),
            ("0.0004", Some(0)),
            ("0.0005", Some(1)),
            ("-0.0005", Some(-1)),
            ("1754000000000000.123", Some(1_754_000_000_000_000_123)),
            ("9223372036854775.807", Some(i64::MAX)),
            ("9223372036854775.808", None),
            ("00000000000000000000000000000000000001", Some(1000)),
            ("1000000000000000000000000000000000000e-35", Some(10_000)),
            ("0e999999999999999999", Some(0)),
            ("1e999999999999999999", None),
            ("1e-999999999999999999", Some(0)),
            ("1e-99999999999999999999", None),
            ("", None),
            ("-", None),
            (".", None),
            ("x", None),
            ("1.2.3", None),
        ] {
            assert_eq!(nanos(word.as_bytes()), expected, "{word}");
        }
    }

    proptest! {
        #[test]
        fn nanoseconds_come_back(time: i64) {
            let sign = if time < 0 { "-" } else { "" };
            let (whole, rest) = (time.unsigned_abs() / 1000, time.unsigned_abs() % 1000);
            let word = format!("{sign}{whole}.{rest:03}");
            // The lowest one has no opposite.
            prop_assert_eq!(nanos(word.as_bytes()), Some(time));
        }
    }
}
