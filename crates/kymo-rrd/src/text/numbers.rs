//! Numbers as rrdtool reads them from text.
//!
//! rrdtool has a routine of its own, which is not correctly rounded: of the values in a
//! dump one in ten comes back as another number than the C library's `strtod` would give.
//! Whoever wants the same bits has to take the same steps.

use std::fmt;

/// Why a text is not a number, or is followed by too much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberError {
    /// It does not begin with a number.
    NoNumber,
    /// Its exponent, less the digits after the point, is below -1021 or above 1024.
    OutOfRange,
}

impl fmt::Display for NumberError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoNumber => "not a number",
            Self::OutOfRange => "the exponent is out of range",
        })
    }
}

impl std::error::Error for NumberError {}

/// The exponents it takes.
const EXPONENTS: std::ops::RangeInclusive<i64> = -1021..=1024;

/// Reads the number at the beginning of a text, and returns how many bytes it takes.
///
/// Taken are blanks, a sign, digits with or without a point, an exponent (of which the digits
/// may be missing); or in any case of letters `nan`, `inf` and `infinity`. A number too large for the
/// format becomes infinite, one too small becomes zero.
///
/// # Errors
///
/// If there is no number, or its exponent is out of range.
#[inline]
pub fn prefix(text: &[u8]) -> Result<(f64, usize), NumberError> {
    match plain(text) {
        Some(number) => Ok((number, text.len())),
        None => any_prefix(text),
    }
}

/// The number of a text that is few digits, with a point or without: nearly all numbers are.
#[inline]
fn plain(text: &[u8]) -> Option<f64> {
    let (number, after_point) = plain_digits(text)?;
    Some(scaled(number as f64, -(after_point as i64)))
}

/// A text of few digits with a point or without, as an integer, and how many digits are behind the
/// point. `None` for any other text.
#[inline]
fn plain_digits(text: &[u8]) -> Option<(u64, usize)> {
    if text.len() > EXACT + 1 {
        return None;
    }
    let mut number = 0;
    let mut point = None;
    for (at, byte) in text.iter().enumerate() {
        let digit = byte.wrapping_sub(b'0');
        if digit <= 9 {
            number = number * 10 + u64::from(digit);
        } else if *byte == b'.' && point.is_none() {
            point = Some(at);
        } else {
            return None;
        }
    }
    let (digits, after_point) = match point {
        Some(at) => (text.len() - 1, text.len() - 1 - at),
        None => (text.len(), 0),
    };
    (1..=EXACT)
        .contains(&digits)
        .then_some((number, after_point))
}

/// The integer of a text that is at most 15 digits, as of nearly all times, and a point or none.
/// `None` for any other text, which may be a number all the same: see [`whole`].
#[inline]
pub fn plain_integer(text: &[u8]) -> Option<u64> {
    match plain_digits(text)? {
        (number, 0) => Some(number),
        _ => None,
    }
}

/// As [`prefix`], of any text.
#[inline(never)]
fn any_prefix(text: &[u8]) -> Result<(f64, usize), NumberError> {
    let mut at = text
        .iter()
        .take_while(|byte| byte.is_ascii_whitespace() || **byte == 0x0b)
        .count();
    let negative = match text.get(at) {
        Some(b'-') => {
            at += 1;
            true
        }
        Some(b'+') => {
            at += 1;
            false
        }
        _ => false,
    };
    let sign = if negative { -1.0 } else { 1.0 };
    let mut digits = Digits::default();
    at += digits.take(&text[at..]);
    let mut exponent = 0;
    if text.get(at) == Some(&b'.') {
        let taken = digits.take(&text[at + 1..]);
        at += 1 + taken;
        exponent = -(taken as i64);
    }
    if digits.count == 0 {
        let word = |word: &[u8]| {
            let found = text.get(at..at + word.len())?;
            found.eq_ignore_ascii_case(word).then_some(at + word.len())
        };
        if let Some(end) = word(b"nan") {
            return Ok((f64::NAN, end));
        }
        let end = word(b"infinity").or_else(|| word(b"inf"));
        return match end {
            Some(end) => Ok((sign * f64::INFINITY, end)),
            None => Err(NumberError::NoNumber),
        };
    }
    if let Some(b'e' | b'E') = text.get(at) {
        at += 1;
        let less = text.get(at) == Some(&b'-');
        at += usize::from(matches!(text.get(at), Some(b'-' | b'+')));
        let mut given = 0i64;
        while let Some(digit @ b'0'..=b'9') = text.get(at) {
            given = (given * 10 + i64::from(digit - b'0')).min(1 << 32);
            at += 1;
        }
        exponent += if less { -given } else { given };
    }
    if !EXPONENTS.contains(&exponent) {
        return Err(NumberError::OutOfRange);
    }
    Ok((scaled(sign * digits.value(), exponent), at))
}

/// A value times a power of ten, in rrdtool's steps.
#[inline]
fn scaled(mut value: f64, exponent: i64) -> f64 {
    let mut power = 10.0;
    let mut places = exponent.unsigned_abs();
    while places > 0 {
        if places & 1 == 1 {
            value = if exponent < 0 {
                value / power
            } else {
                value * power
            };
        }
        places >>= 1;
        power *= power;
    }
    value
}

/// Reads a text that is a number and nothing else.
///
/// # Errors
///
/// As [`prefix`]; what follows the number makes it none.
pub fn whole(text: &[u8]) -> Result<f64, NumberError> {
    match prefix(text)? {
        (value, end) if end == text.len() => Ok(value),
        _ => Err(NumberError::NoNumber),
    }
}

/// The digits of a number: each step is `x * 10 + digit` in double precision.
#[derive(Default)]
struct Digits {
    count: usize,
    /// The first digits: as many as an integer holds without rounding.
    first: u64,
    /// All digits, once there are more.
    all: f64,
}

/// Maximum number of digits that are always less than 2^53.
const EXACT: usize = 15;

impl Digits {
    /// Takes the digits at the beginning of a text, and returns how many there are.
    fn take(&mut self, text: &[u8]) -> usize {
        let mut taken = 0;
        for digit in text {
            let digit = digit.wrapping_sub(b'0');
            if digit > 9 {
                break;
            }
            if self.count < EXACT {
                self.first = self.first * 10 + u64::from(digit);
            } else {
                self.all = self.value() * 10.0 + f64::from(digit);
            }
            self.count += 1;
            taken += 1;
        }
        taken
    }

    fn value(&self) -> f64 {
        if self.count <= EXACT {
            self.first as f64
        } else {
            self.all
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The routine in its plainest form, for unsigned numbers.
    fn model(digits: &str, after_point: usize, exponent: i32) -> f64 {
        let mut value = 0.0;
        for digit in digits.bytes() {
            value = value * 10.0 + f64::from(digit - b'0');
        }
        let exponent = exponent - after_point as i32;
        let (mut power, mut places) = (10.0, exponent.unsigned_abs());
        while places > 0 {
            if places % 2 == 1 {
                value = if exponent < 0 {
                    value / power
                } else {
                    value * power
                };
            }
            places /= 2;
            power *= power;
        }
        value
    }

    #[test]
    fn as_rrdtool_reads_them() {
        for (text, value, end) in [
            ("42", 42.0, 2),
            (" \t+4.5x", 4.5, 6),
            ("-0.0", -0.0, 4),
            ("5.", 5.0, 2),
            (".5", 0.5, 2),
            ("1e", 1.0, 2),
            ("1e+", 1.0, 3),
            ("2E3,", 2000.0, 3),
            ("0x10", 0.0, 1),
            ("1e-300", 9.999999999999994e-301, 6),
            ("1.7976931349e+308", f64::INFINITY, 17),
            ("1e-1000", 0.0, 7),
            ("-inf", f64::NEG_INFINITY, 4),
            ("Infinity", f64::INFINITY, 8),
            ("infinit", f64::INFINITY, 3),
        ] {
            let (found, at) = prefix(text.as_bytes()).unwrap();
            assert_eq!(found.to_bits(), value.to_bits(), "{text}: {found:e}");
            assert_eq!(at, end, "{text}");
        }
        assert!(prefix(b"nancy").unwrap().0.is_nan());
        assert!(prefix(b"-NaN").unwrap().0.is_nan());
        for text in ["", "-", ".", "+.e5", "U", "in", "e5", "1 x"] {
            assert_eq!(whole(text.as_bytes()), Err(NumberError::NoNumber), "{text}");
        }
        for text in ["1e2000", "1e-1022", "1.0e-1021", "1e99999999999999999999"] {
            assert_eq!(
                whole(text.as_bytes()),
                Err(NumberError::OutOfRange),
                "{text}"
            );
        }
    }

    proptest! {
        #[test]
        fn each_step_is_rounded(
            digits in "[0-9]{1,40}",
            point in 0usize..41,
            exponent in -700i32..700,
        ) {
            let before = point.min(digits.len());
            let text = format!("{}.{}e{exponent}", &digits[..before], &digits[before..]);
            let expected = model(&digits, digits.len() - before, exponent);
            prop_assert_eq!(whole(text.as_bytes()).unwrap().to_bits(), expected.to_bits());
        }

        /// What is plain is read as it is where it is not looked for.
        #[test]
        fn plain_numbers_are_as_any(
            text in prop_oneof!["[0-9]{0,17}", "[0-9]{0,10}\\.[0-9]{0,10}", "[-+ 0-9.eU]{0,8}"],
        ) {
            let text = text.as_bytes();
            let slow = any_prefix(text);
            let bits = |(number, end): (f64, usize)| (number.to_bits(), end);
            prop_assert_eq!(prefix(text).map(bits), slow.map(bits));
            if let Some(integer) = plain_integer(text) {
                prop_assert_eq!(slow, Ok((integer as f64, text.len())));
            }
            let few = text.len() <= EXACT && !text.is_empty();
            let digits = few && text.iter().all(u8::is_ascii_digit);
            prop_assert!(!digits || plain_integer(text).is_some());
        }

        #[test]
        fn any_text(text: Vec<u8>) {
            if let Ok((_, end)) = prefix(&text) {
                prop_assert!(end <= text.len());
            }
        }
    }
}
