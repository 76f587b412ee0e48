//! Doubles as C's `strtod` reads them (C17 §7.22.1.3).

use std::fmt;

/// A double read from text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Number {
    /// As it was written, without blanks before it.
    pub text: String,
    /// Its bits; nothing if it is a NaN, of which each machine has its own.
    pub bits: Option<u64>,
    /// Whether no double of full precision is near it: `strtod` sets `errno` to `ERANGE`.
    pub is_out_of_range: bool,
}

/// A text that is not a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotANumber;

impl fmt::Display for NotANumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected a number such as 12, -1.5e3, 0x1.8p3, inf or nan")
    }
}

impl std::error::Error for NotANumber {}

const SIGN: u64 = 1 << 63;
const INFINITY: u64 = 0x7ff0_0000_0000_0000;
/// The least double of full precision, 2^-1022.
const LEAST_NORMAL: u64 = 1 << FRACTION;
/// Bits of the fraction of a double.
const FRACTION: u32 = 52;

impl Number {
    /// Reads the whole text; blanks before the number are skipped.
    ///
    /// # Errors
    ///
    /// If the text is not a number, or something follows it.
    pub fn parse(text: &str) -> Result<Self, NotANumber> {
        let text = text.trim_start_matches([' ', '\t', '\n', '\x0b', '\x0c', '\r']);
        let (sign, unsigned) = match text.as_bytes() {
            [b'-', ..] => (SIGN, &text[1..]),
            [b'+', ..] => (0, &text[1..]),
            _ => (0, text),
        };
        let lower = unsigned.to_ascii_lowercase();
        let named = |bits| {
            Ok(Self {
                text: text.to_string(),
                bits,
                is_out_of_range: false,
            })
        };
        let (bits, mantissa) = if lower == "inf" || lower == "infinity" {
            return named(Some(INFINITY | sign));
        } else if is_nan(&lower) {
            return named(None);
        } else if let Some(digits) = lower.strip_prefix("0x") {
            (
                hexadecimal(digits).ok_or(NotANumber)?,
                digits.split('p').next(),
            )
        } else if lower.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
            // What begins so and is read is a decimal number, rounded correctly.
            let value: f64 = lower.parse().map_err(|_| NotANumber)?;
            (value.to_bits(), lower.split('e').next())
        } else {
            return Err(NotANumber);
        };
        let is_zero = mantissa
            .unwrap_or_default()
            .chars()
            .all(|c| matches!(c, '0' | '.'));
        Ok(Self {
            text: text.to_string(),
            bits: Some(bits | sign),
            is_out_of_range: bits == INFINITY || bits < LEAST_NORMAL && !is_zero,
        })
    }

    /// Its value.
    pub fn value(&self) -> f64 {
        self.bits.map_or(f64::NAN, f64::from_bits)
    }
}

/// `nan`, `nan(...)` with letters, digits and underscores, or what AIX and Tru64 print and read: a
/// quiet `nanq`, a signalling `nans`.
fn is_nan(lower: &str) -> bool {
    let is_word = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    match lower.strip_prefix("nan") {
        Some("" | "q" | "s") => true,
        Some(rest) => rest
            .strip_prefix('(')
            .and_then(|rest| rest.strip_suffix(')'))
            .is_some_and(is_word),
        None => false,
    }
}

/// The bits of a hexadecimal number, behind the `0x`: the nearest double, of two the even one.
fn hexadecimal(text: &str) -> Option<u64> {
    let (mantissa, exponent) = match text.split_once('p') {
        Some((mantissa, exponent)) => (mantissa, decimal_exponent(exponent)?),
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    // The number is value * 2^exponent, and a little more where bits were lost.
    let mut value = 0u64;
    let mut exponent = exponent;
    let mut is_more = false;
    for (at, digit) in whole.chars().chain(fraction.chars()).enumerate() {
        let digit = u64::from(digit.to_digit(16)?);
        let is_whole = at < whole.len();
        if value >> 60 == 0 {
            value = value << 4 | digit;
            exponent = exponent.saturating_sub(if is_whole { 0 } else { 4 });
        } else {
            is_more |= digit != 0;
            exponent = exponent.saturating_add(if is_whole { 4 } else { 0 });
        }
    }
    Some(round(value, exponent, is_more))
}

/// The decimal number with a sign behind a `p`. What is beyond all doubles can be anything
/// that is so too.
fn decimal_exponent(text: &str) -> Option<i64> {
    let (is_negative, digits) = match text.as_bytes() {
        [b'-', ..] => (true, &text[1..]),
        [b'+', ..] => (false, &text[1..]),
        _ => (false, text),
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let magnitude = digits.parse().unwrap_or(i64::MAX / 2).min(i64::MAX / 2);
    Some(if is_negative { -magnitude } else { magnitude })
}

/// The double nearest to `value` times two to the power of `exponent`; `is_more` says that the
/// number is a little larger.
fn round(value: u64, exponent: i64, is_more: bool) -> u64 {
    if value == 0 {
        return 0;
    }
    let shift = value.leading_zeros();
    let value = value << shift;
    // The first bit of the value stands for 2^top.
    let top = exponent.saturating_sub(shift.into()).saturating_add(63);
    if top > 1023 {
        return INFINITY;
    }
    // Bits that do not fit: more of them below the least normal number.
    let lost = 63 - i64::from(FRACTION) + (-1022 - top).max(0);
    if lost > 64 {
        return 0;
    }
    let wide = u128::from(value);
    let (kept, rest) = ((wide >> lost) as u64, wide & ((1 << lost) - 1));
    let half = 1u128 << (lost - 1);
    let up = rest > half || rest == half && (is_more || kept & 1 == 1);
    // The first bit of a normal number adds one to the exponent, and so does a carry out of the
    // fraction, be it into infinity.
    let biased = (top + 1022).max(0) as u64;
    (biased << FRACTION) + kept + u64::from(up)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bits(text: &str) -> Option<u64> {
        Number::parse(text)
            .unwrap_or_else(|_| panic!("{text}"))
            .bits
    }

    #[test]
    fn decimal_numbers() {
        for (text, value) in [
            ("0", 0.0),
            ("-0", -0.0),
            ("+1", 1.0),
            (" \t-1.5e3", -1500.0),
            (".5", 0.5),
            ("5.", 5.0),
            ("123456789e123", 123_456_789e123),
            ("1E400", f64::INFINITY),
            ("1e-400", 0.0),
            ("INF", f64::INFINITY),
            ("-Infinity", f64::NEG_INFINITY),
        ] {
            assert_eq!(bits(text), Some(value.to_bits()), "{text}");
        }
        for text in [
            "nan",
            "NaN",
            "-nan",
            "+nan()",
            "nan(0x7_f)",
            "NaNQ",
            "-nans",
        ] {
            assert_eq!(bits(text), None, "{text}");
        }
    }

    #[test]
    fn hexadecimal_numbers() {
        for (text, value) in [
            ("0x10", 16.0),
            ("-0X1.8P3", -12.0),
            ("0x.1", 0.0625),
            ("0x1.p-1", 0.5),
            ("0x0p99999999999999999999", 0.0),
            ("0x1p1024", f64::INFINITY),
            ("0x1p-1074", 5e-324),
            ("0x1p-1075", 0.0),
            ("0x1.8p-1075", 5e-324),
            ("0x1p-99999999999999999999", 0.0),
            ("0x1.fffffffffffff7ffffffffp1023", f64::MAX),
            ("0x1.fffffffffffff8p1023", f64::INFINITY),
            ("0x0.fffffffffffff8p-1022", f64::MIN_POSITIVE),
            // Ties go to the even one, unless anything follows.
            ("0x10000000000000.8", 4_503_599_627_370_496.0),
            ("0x10000000000001.8", 4_503_599_627_370_498.0),
            (
                "0x10000000000000.80000000000000000001",
                4_503_599_627_370_497.0,
            ),
            (
                "0x1000000000000000000000000",
                79_228_162_514_264_337_593_543_950_336.0,
            ),
        ] {
            assert_eq!(bits(text), Some(value.to_bits()), "{text}");
        }
    }

    #[test]
    fn every_double_reads_back() {
        let mut number = 1u64;
        for _ in 0..2000 {
            number = number
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let expected = number & !SIGN;
            if expected >= INFINITY {
                continue;
            }
            let exponent = (expected >> FRACTION) as i64;
            let fraction = expected & ((1 << FRACTION) - 1);
            let text = match exponent {
                0 => format!("0x0.{fraction:013x}p-1022"),
                _ => format!("0x1.{fraction:013x}p{}", exponent - 1023),
            };
            assert_eq!(bits(&text), Some(expected), "{text}");
            // In another place the point changes nothing.
            let text = format!("0x{fraction:x}p{}", exponent.max(1) - 1075);
            let value = fraction as f64 * 2f64.powi(-52);
            let scaled = bits(&text).map(f64::from_bits);
            let scale = |value: f64| value * 2f64.powi((exponent.max(1) - 1023) as i32);
            assert_eq!(scaled, Some(scale(value)), "{text}");
        }
    }

    #[test]
    fn numbers_that_no_double_is_near_are_reported() {
        for text in ["1e309", "-0x1p1024", "1e-310", "0x.8p-1022", "1e-400"] {
            assert!(Number::parse(text).unwrap().is_out_of_range, "{text}");
        }
        for text in [
            "0",
            "0e-400",
            "0x0.0p-2000",
            "inf",
            "nan",
            "2.3e-308",
            "1.7e308",
        ] {
            assert!(!Number::parse(text).unwrap().is_out_of_range, "{text}");
        }
    }

    #[test]
    fn anything_else_is_no_number() {
        for text in [
            "", " ", "-", "+-1", "1 ", "1x", "e5", "1e", "0x", "0x.", "0xp1", "0x1p", "0x1p+",
            "0x1.2.3", "0xg", "inf1", "infinit", "nan(", "nan(-)", "nanqq", "1_000", "--1",
            "0x1p1.5",
        ] {
            assert_eq!(Number::parse(text), Err(NotANumber), "{text}");
        }
    }
}
