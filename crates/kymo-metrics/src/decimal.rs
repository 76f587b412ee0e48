//! Times as decimal numbers, exactly.

/// The nanoseconds that a decimal number of units means, where a unit has `unit` nanoseconds. Digits below a nanosecond
/// are cut off. `None` if it is not a number, or the result does not fit in 64 bits.
///
/// ```
/// use kymo_metrics::nanoseconds;
///
/// assert_eq!(nanoseconds(b"1600000000.123456789", 1_000_000_000), Some(1_600_000_000_123_456_789));
/// assert_eq!(nanoseconds(b"-1.5", 1_000), Some(-1_500));
/// assert_eq!(nanoseconds(b"1.6e9", 1_000_000_000), Some(1_600_000_000_000_000_000));
/// assert_eq!(nanoseconds(b"1x", 1), None);
/// ```
pub fn nanoseconds(text: &[u8], unit: i64) -> Option<i64> {
    let (is_negative, digits) = match text.split_first()? {
        (b'-', rest) => (true, rest),
        (b'+', rest) => (false, rest),
        _ => (false, text),
    };
    if digits.iter().any(|byte| matches!(byte, b'e' | b'E')) {
        // Few write times so, and no more digits than a double has.
        let number = super::float(text)? * unit as f64;
        let fits = number.abs() < i64::MAX as f64;
        return fits.then_some(number as i64);
    }
    let point = digits.iter().position(|byte| *byte == b'.');
    let (whole, fraction) = match point {
        Some(at) => (&digits[..at], &digits[at + 1..]),
        None => (digits, &b""[..]),
    };
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut nanos: i64 = 0;
    for byte in whole {
        nanos = nanos.checked_mul(10)?.checked_add(digit(*byte)?)?;
    }
    nanos = nanos.checked_mul(unit)?;
    let mut unit = unit;
    for byte in fraction {
        let digit = digit(*byte)?;
        unit /= 10;
        nanos = nanos.checked_add(digit * unit)?;
    }
    Some(if is_negative { -nanos } else { nanos })
}

fn digit(byte: u8) -> Option<i64> {
    byte.is_ascii_digit().then(|| i64::from(byte - b'0'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn times_are_exact_or_refused() {
        for (text, nanos) in [
            ("0", Some(0)),
            ("1.", Some(1_000_000_000)),
            (".5", Some(500_000_000)),
            ("1600000000.0000000019", Some(1_600_000_000_000_000_001)),
            ("9223372036.854775807", Some(i64::MAX)),
            ("9223372036.854775808", None),
            ("99999999999999999999", None),
            ("", None),
            ("-", None),
            (".", None),
            ("1e400", None),
            ("nan", None),
            ("1.5.5", None),
            ("1 ", None),
        ] {
            assert_eq!(nanoseconds(text.as_bytes(), 1_000_000_000), nanos, "{text}");
        }
    }

    proptest! {
        #[test]
        fn nanoseconds_come_back(nanos in 0..i64::MAX) {
            let text = format!("{}.{:09}", nanos / 1_000_000_000, nanos % 1_000_000_000);
            prop_assert_eq!(nanoseconds(text.as_bytes(), 1_000_000_000), Some(nanos));
        }
    }
}
