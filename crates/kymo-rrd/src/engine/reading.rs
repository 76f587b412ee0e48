//! From readings to what they add to a data point.

use super::ReadingProblem;
use crate::file::native::structs::LAST_READING;
use crate::model::Reading;
use crate::text::numbers::{self, NumberError};

/// A reading as it is given to an update.
///
/// Numbers need not be made texts: what is computed of them is computed of the number itself, where a
/// reading is a rate (`GAUGE`) or what was counted since the last (`ABSOLUTE`). The others need the
/// reading before, of which files keep the text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Measurement<'a> {
    /// Nothing is known.
    Unknown,
    /// A text as `rrdtool update` takes it; it is unknown where it begins with `U`.
    Text(&'a [u8]),
    /// A number; it is unknown where it is a NaN.
    Float(f64),
    /// An integer.
    Unsigned(u64),
    /// An integer.
    Signed(i64),
}

impl Measurement<'_> {
    /// Puts the text as files keep it: without NULs, cut off where native files have no more room, and
    /// NULs behind it.
    #[inline(always)]
    pub(super) fn keep(&self, kept: &mut [u8; LAST_READING]) {
        match *self {
            Self::Float(number) if number.abs() < FRACTIONS => {
                let size = number.abs();
                // What is added leaves no room for a fraction.
                if size + FRACTIONS - FRACTIONS == size {
                    return keep_integer(kept, size as u64, number.is_sign_negative());
                }
                let mut buffer = zmij::Buffer::new();
                put(kept, buffer.format_finite(number).as_bytes());
            }
            _ => self.keep_any(kept),
        }
    }

    /// Puts any text.
    #[inline(never)]
    fn keep_any(&self, kept: &mut [u8; LAST_READING]) {
        match *self {
            Self::Text(text) => put(kept, until_nul(text)),
            number => number.with_text(|text| put(kept, text)),
        }
    }

    /// What a known reading adds: the rate times the seconds since the reading before, of which the text
    /// is given, with or without trailing NULs. NaN where it cannot be known.
    #[inline(always)]
    pub(super) fn amount<'b>(
        &self,
        reading: Reading,
        before: impl FnOnce() -> &'b [u8],
        interval: f64,
    ) -> Result<f64, ReadingProblem> {
        // The most usual first.
        if let (Self::Float(number), Reading::Gauge) = (self, reading) {
            return Ok(number * interval);
        }
        self.amount_of_any(reading, before(), interval)
    }

    /// What any reading adds.
    #[inline(never)]
    fn amount_of_any(
        &self,
        reading: Reading,
        before: &[u8],
        interval: f64,
    ) -> Result<f64, ReadingProblem> {
        let number = match *self {
            Self::Unknown => return Ok(f64::NAN),
            Self::Text([b'U', ..]) => return Ok(f64::NAN),
            Self::Text(text) => return amount(reading, text, before, interval),
            Self::Float(number) => number,
            Self::Unsigned(number) => number as f64,
            Self::Signed(number) => number as f64,
        };
        match reading {
            Reading::Gauge => Ok(number * interval),
            Reading::Absolute => Ok(number),
            _ if number.is_nan() => Ok(f64::NAN),
            _ => self.with_text(|text| amount(reading, text, before, interval)),
        }
    }

    /// Lends the text: for numbers, the shortest one that distinguishes them from others.
    pub(super) fn with_text<T>(self, lend: impl FnOnce(&[u8]) -> T) -> T {
        match self {
            Self::Unknown => lend(b"U"),
            Self::Text(text) => lend(text),
            Self::Float(number) if number.is_nan() => lend(b"U"),
            Self::Float(number) if number.is_infinite() => match number > 0.0 {
                true => lend(b"inf"),
                false => lend(b"-inf"),
            },
            Self::Float(number) if number as i64 as f64 == number && number.abs() < EXACT => {
                let minus = number.is_sign_negative();
                lend(Digits::of(number.abs() as u64, minus).text())
            }
            Self::Float(number) => {
                let mut buffer = zmij::Buffer::new();
                let text = buffer.format_finite(number).as_bytes();
                lend(text.strip_suffix(b".0").unwrap_or(text))
            }
            Self::Unsigned(number) => lend(Digits::of(number, false).text()),
            Self::Signed(number) => lend(Digits::of(number.unsigned_abs(), number < 0).text()),
        }
    }
}

/// Integers below this are numbers of their own, and their digits are their shortest text.
const EXACT: f64 = (1_u64 << 53) as f64;

/// From here on numbers have no fraction.
const FRACTIONS: f64 = (1_u64 << 52) as f64;

/// The text up to the first NUL.
fn until_nul(text: &[u8]) -> &[u8] {
    let length = text.iter().position(|&byte| byte == 0);
    &text[..length.unwrap_or(text.len())]
}

/// Puts as much of a text as there is room for, and NULs behind it.
#[inline]
fn put(kept: &mut [u8; LAST_READING], text: &[u8]) {
    let length = text.len().min(LAST_READING - 1);
    *kept = [0; LAST_READING];
    let text = &text[..length];
    // Two overlapping halves are copied at once, since their size is known at compile time.
    const HALF: usize = 16;
    match (text.first_chunk::<HALF>(), text.last_chunk::<HALF>()) {
        (Some(first), Some(last)) => {
            kept[..HALF].copy_from_slice(first);
            kept[length - HALF..length].copy_from_slice(last);
        }
        _ => kept[..length].copy_from_slice(text),
    }
}

/// Puts the digits of an integer.
#[inline(never)]
fn keep_integer(kept: &mut [u8; LAST_READING], number: u64, minus: bool) {
    *kept = *Digits::of(number, minus).kept();
}

/// The digits of an integer, behind a minus or not.
struct Digits {
    /// NULs are behind them, as files keep them.
    bytes: [u8; Self::MOST + LAST_READING],
    begin: usize,
}

impl Digits {
    /// Those of an integer of 64 bits; signed ones have a minus and 19 digits.
    const MOST: usize = 20;

    #[inline]
    fn of(mut number: u64, minus: bool) -> Self {
        let mut digits = Self {
            bytes: [0; Self::MOST + LAST_READING],
            begin: Self::MOST,
        };
        loop {
            digits.put(b'0' + (number % 10) as u8);
            number /= 10;
            if number == 0 {
                break;
            }
        }
        if minus {
            digits.put(b'-');
        }
        digits
    }

    /// Puts a byte before the others.
    #[inline]
    fn put(&mut self, byte: u8) {
        self.begin = self.begin.saturating_sub(1);
        self.bytes[self.begin] = byte;
    }

    fn text(&self) -> &[u8] {
        &self.bytes[self.begin..Self::MOST]
    }

    /// The text as files keep it.
    #[inline]
    fn kept(&self) -> &[u8; LAST_READING] {
        let kept = self.bytes[self.begin..].first_chunk();
        kept.unwrap_or(&[0; LAST_READING])
    }
}

/// What a counter of 32 bits that has gone round lacks: 2^32 - 1, by a mistake that is in all
/// files.
const ROUND_32: f64 = 4_294_967_295.0;
/// What one of 64 bits lacks beyond that.
const ROUND_64: f64 = 18_446_744_069_414_584_320.0;
/// Counters of more digits have no difference.
const MOST_DIGITS: usize = 30;

/// What a reading adds that is known.
fn amount(
    reading: Reading,
    text: &[u8],
    before: &[u8],
    interval: f64,
) -> Result<f64, ReadingProblem> {
    let before = until_nul(before);
    let known_before = !before.starts_with(b"U");
    match reading {
        Reading::Counter | Reading::Derive => {
            let signed = reading == Reading::Derive;
            check_integer(text, signed)?;
            if !known_before {
                return Ok(f64::NAN);
            }
            let mut difference = difference(text, before);
            if !signed {
                if difference < 0.0 {
                    difference += ROUND_32;
                }
                if difference < 0.0 {
                    difference += ROUND_64;
                }
            }
            Ok(difference)
        }
        Reading::Absolute => number(text),
        Reading::Gauge => Ok(number(text)? * interval),
        Reading::DCounter | Reading::DDerive => {
            let new = number(text)?;
            if !known_before {
                return Ok(f64::NAN);
            }
            // What comes after the heartbeat is not looked at, so the reading before may be anything.
            let old = number(before).unwrap_or(f64::NAN);
            // Counters move away from zero, on either side of it.
            let reset = (new > 0.0 && new < old) || (new < 0.0 && new > old);
            if reading == Reading::DCounter && reset {
                return Ok(f64::NAN);
            }
            Ok(new - old)
        }
    }
}

/// A number, and nothing after it. What begins as `nan`, `inf` or one of them with a minus is that,
/// whatever follows; behind blanks or a plus it is none.
fn number(text: &[u8]) -> Result<f64, ReadingProblem> {
    match numbers::prefix(text) {
        Ok((number, end)) if !number.is_finite() && !text[..end].iter().any(u8::is_ascii_digit) => {
            match text {
                [b'-' | b'n' | b'N' | b'i' | b'I', ..] => Ok(number),
                _ => Err(ReadingProblem::Number(NumberError::NoNumber)),
            }
        }
        Ok((number, end)) if end == text.len() => Ok(number),
        Ok((_, end)) => Err(ReadingProblem::Trailing { end }),
        Err(error) => Err(ReadingProblem::Number(error)),
    }
}

fn check_integer(text: &[u8], signed: bool) -> Result<(), ReadingProblem> {
    let digits = match text.strip_prefix(b"-") {
        Some(digits) if signed => digits,
        _ => text,
    };
    if !digits.is_empty() && digits.iter().all(u8::is_ascii_digit) {
        return Ok(());
    }
    Err(if signed {
        ReadingProblem::NotSigned
    } else {
        ReadingProblem::NotUnsigned
    })
}

/// The difference of two integers of any size, exact but for the conversion to a double at the end.
/// NaN where one has a minus and the other has none, or too many digits.
fn difference(new: &[u8], old: &[u8]) -> f64 {
    let negative = new.starts_with(b"-");
    if negative != old.starts_with(b"-") {
        return f64::NAN;
    }
    // What comes after the heartbeat is not looked at, so the old one may be anything: what begins
    // like an integer is taken for one.
    let (new, old) = (digits(new), digits(old));
    if [new, old]
        .iter()
        .any(|digits| digits.is_empty() || digits.len() > MOST_DIGITS)
    {
        return f64::NAN;
    }
    // 30 digits are less than 2^100.
    let difference = integer(new) - integer(old);
    let size = difference.unsigned_abs();
    let size = if size < 1 << 53 {
        size as f64
    } else {
        rounded_step_by_step(size)
    };
    let difference = if difference < 0 { -size } else { size };
    // Of equal ones with a minus, this is -0.
    if negative { -difference } else { difference }
}

/// The first digits in a text.
fn digits(text: &[u8]) -> &[u8] {
    let begin = text.iter().position(u8::is_ascii_digit);
    let digits = &text[begin.unwrap_or(text.len())..];
    let end = digits.iter().position(|byte| !byte.is_ascii_digit());
    &digits[..end.unwrap_or(digits.len())]
}

fn integer(digits: &[u8]) -> i128 {
    digits
        .iter()
        .fold(0, |number, digit| number * 10 + i128::from(digit - b'0'))
}

/// As [`numbers`] reads the digits.
fn rounded_step_by_step(number: u128) -> f64 {
    let text = number.to_string();
    numbers::prefix(text.as_bytes()).map_or(f64::NAN, |(number, _)| number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(reading: Reading, new: &str, old: &str) -> f64 {
        amount(reading, new.as_bytes(), old.as_bytes(), 10.0).unwrap()
    }

    /// Those of 64 bits as far as doubles can represent them.
    #[test]
    fn counters_go_round() {
        for (new, old, expected) in [
            ("10", "5", 5.0),
            ("007", "10", 4_294_967_292.0),
            ("3", "4294967290", 8.0),
            ("5", "18446744073709551610", 0.0),
            ("10000", "18446744073709541615", 22528.0),
            (
                "123456789012345678901234567895",
                "123456789012345678901234567890",
                5.0,
            ),
        ] {
            assert_eq!(of(Reading::Counter, new, old), expected, "{new} {old}");
        }
        for (new, old) in [
            ("1", "U"),
            ("1", "-1"),
            ("1234567890123456789012345678905", "1"),
        ] {
            assert!(of(Reading::Counter, new, old).is_nan());
        }
    }

    #[test]
    fn other_readings() {
        assert_eq!(of(Reading::Gauge, "1.5", "7"), 15.0);
        assert_eq!(of(Reading::Absolute, "1.5", "7"), 1.5);
        assert_eq!(of(Reading::Derive, "-7", "-5"), -2.0);
        assert_eq!(of(Reading::Derive, "3", "5"), -2.0);
        assert!(of(Reading::Derive, "-0", "1").is_nan());
        assert!(of(Reading::Derive, "-3", "-3").is_sign_negative());
        assert_eq!(of(Reading::Derive, "3", "1.5"), 2.0);
        assert!(of(Reading::Derive, "3", "inf").is_nan());
        assert_eq!(of(Reading::DDerive, "1.5", "7"), -5.5);
    }

    /// Whatever follows.
    #[test]
    fn numbers_may_be_words() {
        for reading in [Reading::Gauge, Reading::Absolute] {
            for (text, expected) in [
                ("inf", f64::INFINITY),
                ("Infinity", f64::INFINITY),
                ("inf ", f64::INFINITY),
                ("-infinity", f64::NEG_INFINITY),
            ] {
                assert_eq!(of(reading, text, "7"), expected, "{text}");
            }
            for text in ["nan", "NaN()", "nan(1)", "-nan ", "nancy"] {
                assert!(of(reading, text, "7").is_nan(), "{text}");
            }
        }
        assert_eq!(of(Reading::DDerive, "infinity", "7"), f64::INFINITY);
        assert_eq!(of(Reading::DDerive, "7", "infinity"), f64::NEG_INFINITY);
        assert!(of(Reading::DCounter, "nan(1)", "7").is_nan());
    }

    #[test]
    fn numbers_need_no_text() {
        use Measurement::{Float, Signed, Text as Written, Unknown, Unsigned};
        for (number, text) in [
            (Unknown, "U"),
            (Float(f64::NAN), "U"),
            (Float(f64::NEG_INFINITY), "-inf"),
            (Float(-0.0), "-0"),
            (Float(42.0), "42"),
            (Float(0.1), "0.1"),
            (Unsigned(0), "0"),
            (Unsigned(u64::MAX), "18446744073709551615"),
            (Signed(i64::MIN), "-9223372036854775808"),
            (Signed(7), "7"),
        ] {
            let mut kept = [b'x'; LAST_READING];
            number.keep(&mut kept);
            assert_eq!(until_nul(&kept), text.as_bytes());
            assert!(kept[text.len()..].iter().all(|&byte| byte == 0));
            if text.len() > 15 {
                // rrdtool's reading of texts rounds more than once.
                continue;
            }
            for (reading, before) in [
                (Reading::Gauge, "1"),
                (Reading::Absolute, "1"),
                (Reading::DCounter, "-5"),
                (Reading::DDerive, "5"),
            ] {
                let amount = |reading_of: Measurement<'_>| {
                    let amount = reading_of.amount(reading, || before.as_bytes(), 10.0);
                    crate::Value::from(amount.unwrap())
                };
                let written = amount(Written(text.as_bytes()));
                assert_eq!(amount(number), written, "{number:?} {reading:?}");
            }
        }
        assert_eq!(
            Unsigned(12).amount(Reading::Counter, || b"10", 1.0),
            Ok(2.0)
        );
        let fraction = Float(1.5).amount(Reading::Counter, || b"10", 1.0);
        assert_eq!(fraction, Err(ReadingProblem::NotUnsigned));
    }

    #[test]
    fn floating_point_counters_move_away_from_zero() {
        let difference = |new, old| of(Reading::DCounter, new, old);
        assert_eq!(difference("3", "1"), 2.0);
        assert_eq!(difference("-4", "-3"), -1.0);
        assert_eq!(difference("0", "-2"), 2.0);
        assert_eq!(difference("-3", "2"), -5.0);
        assert!(difference("2", "3").is_nan());
        assert!(difference("-3", "-4").is_nan());
    }

    #[test]
    fn what_is_no_reading_is_refused() {
        use ReadingProblem::*;
        let no_number = Number(NumberError::NoNumber);
        for (reading, text, problem) in [
            (Reading::Counter, "", NotUnsigned),
            (Reading::Counter, "-1", NotUnsigned),
            (Reading::Counter, "1.5", NotUnsigned),
            (Reading::Derive, "-", NotSigned),
            (Reading::Derive, "+1", NotSigned),
            (Reading::Gauge, "x", no_number),
            (Reading::Gauge, "+inf", no_number),
            (Reading::Absolute, " nan", no_number),
            (Reading::DCounter, "+Infinity", no_number),
            (Reading::DDerive, "1 ", Trailing { end: 1 }),
            (Reading::DCounter, "0x10", Trailing { end: 1 }),
        ] {
            assert_eq!(amount(reading, text.as_bytes(), b"U", 1.0), Err(problem));
        }
    }
}
