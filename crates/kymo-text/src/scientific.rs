//! Numbers with an exponent: as C's `%e` prints them, and as rrdtool's own routine does.
//!
//! rrdtool dumps numbers with a routine of its own, which scales them by repeated
//! multiplication and division by ten. It is not correctly rounded: a few numbers in ten
//! thousand differ in their last digit, and near powers of ten the first digit may come out
//! as 0 or 10. Who wants the same text has to follow the same steps.

use std::fmt::Write;
use std::ops::RangeInclusive;

use crate::{Line, float, integer};

/// The smallest exponent that rrdtool's routine gives: below, the first digit is 0.
const LEAST: i32 = -308;
const GREATEST: i32 = 308;

/// How many digits after the point it can print here.
const DIGITS: RangeInclusive<usize> = 1..=15;

/// A power of ten, as the routine makes it.
#[derive(Clone, Copy)]
struct Power {
    /// The smallest number that the routine scales by it, or by a greater one.
    begin: f64,
    /// What numbers are divided by.
    ten: f64,
}

/// The powers of ten from [`LEAST`] to [`GREATEST`].
///
/// The routine finds the exponent by multiplying (below 1) or dividing (from 10 on) until
/// one digit is left before the point. Each step is rounded, so the bounds between exponents
/// are not quite the powers of ten. Since rounding keeps the order of numbers, each exponent
/// has one range of numbers, whose bounds are found here, one from the other.
static POWERS: [Power; (GREATEST - LEAST + 1) as usize] = {
    const ZERO: usize = -LEAST as usize;
    let one = Power {
        begin: 1.0,
        ten: 1.0,
    };
    let mut powers = [one; (GREATEST - LEAST + 1) as usize];
    let mut place = ZERO;
    while place + 1 < powers.len() {
        // The smallest number that, divided by ten, is not below the bound before it.
        let bound = powers[place].begin;
        let mut begin = bound * 10.0;
        while begin.next_down() / 10.0 >= bound {
            begin = begin.next_down();
        }
        while begin / 10.0 < bound {
            begin = begin.next_up();
        }
        powers[place + 1] = Power {
            begin,
            ten: powers[place].ten * 10.0,
        };
        place += 1;
    }
    place = ZERO;
    while place > 0 {
        // The smallest number that, times ten, is not below the bound after it.
        let bound = powers[place].begin;
        let mut begin = bound / 10.0;
        while begin.next_down() * 10.0 >= bound {
            begin = begin.next_down();
        }
        while begin * 10.0 < bound {
            begin = begin.next_up();
        }
        powers[place - 1] = Power {
            begin,
            ten: powers[place].ten / 10.0,
        };
        place -= 1;
    }
    // All that is smaller is scaled by the last one.
    powers[0].begin = 0.0;
    powers
};

/// The exponent by which rrdtool's routine scales a positive, finite number.
#[inline]
fn exponent(value: f64) -> i32 {
    let binary = (value.to_bits() >> 52) as i32 - 1023;
    // 78,913 / 2^18 is about the logarithm of 2 to the base of 10: the exponent is this or
    // one more.
    let guess = ((binary * 78_913) >> 18).max(LEAST);
    let next = POWERS.get((guess + 1 - LEAST) as usize);
    guess + i32::from(next.is_some_and(|power| value >= power.begin))
}

impl Line {
    /// Appends a number as rrdtool's dump does: `digits` digits after the point, of which
    /// the last may not be the nearest. rrdtool prints 10 where C's `long` has 64 bits, and
    /// 9 elsewhere. Numbers that are none are `NaN`, `inf` and `-inf`; the sign of a zero is
    /// not shown.
    ///
    /// # Panics
    ///
    /// If `digits` is 0 or more than 15.
    #[inline]
    pub fn rrdtool(&mut self, value: f64, digits: usize) {
        assert!(DIGITS.contains(&digits), "no {digits} digits");
        if value.is_nan() {
            return self.push(b"NaN");
        }
        if value < 0.0 {
            self.push_byte(b'-');
        }
        let value = value.abs();
        if value.is_infinite() {
            return self.push(b"inf");
        }
        let (mut first, mut rest, mut exponent) = (0, 0, 0);
        if value > 0.0 {
            exponent = self::exponent(value);
            let scaled = value / POWERS[(exponent - LEAST) as usize].ten;
            let limit = 10u64.pow(digits as u32);
            first = scaled as u64;
            let fraction = limit as f64 * (scaled - first as f64);
            let floor = fraction.floor();
            rest = floor as u64 + u64::from(fraction - floor >= 0.5);
            if rest >= limit {
                (first, rest) = (first + 1, 0);
                if first == 10 {
                    (first, exponent) = (1, exponent + 1);
                }
            }
        }
        let room = self.window::<24>();
        let mut len = 0;
        if first > 9 {
            room[0] = b'1';
            first -= 10;
            len = 1;
        }
        room[len] = b'0' + first as u8;
        room[len + 1] = b'.';
        integer::fill(&mut room[len + 2..len + 2 + digits], rest);
        len += 2 + digits;
        room[len] = b'e';
        room[len + 1] = if exponent < 0 { b'-' } else { b'+' };
        self.advance(len + 2);
        self.padded(exponent.unsigned_abs().into(), 2);
    }

    /// Appends a number as C's `%.DIGITSe` does: correctly rounded, ties to even, at least
    /// two digits of exponent; NaNs and infinities are `nan`, `inf` and `-inf`.
    pub fn scientific(&mut self, value: f64, digits: usize) {
        if !value.is_finite() {
            return self.fixed(value);
        }
        // What rrdtool prints all the time.
        if digits == 10
            && let Some((eleven, exponent)) = float::by_power::<11>(value.abs())
        {
            return self.eleven(value.is_sign_negative(), eleven, exponent);
        }
        let begin = self.len();
        // Writing to a line cannot fail.
        let _ = write!(self, "{value:.digits$e}");
        let text = &self.as_bytes()[begin..];
        let Some(mark) = text.iter().position(|&byte| byte == b'e') else {
            return;
        };
        let (negative, exponent) = match &text[mark + 1..] {
            [b'-', digits @ ..] => (true, digits),
            digits => (false, digits),
        };
        let exponent = exponent
            .iter()
            .fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0'));
        self.truncate(begin + mark);
        self.push(if negative { b"e-" } else { b"e+" });
        self.padded(exponent, 2);
    }

    /// Appends eleven digits with the point behind the first, and an exponent of two digits.
    fn eleven(&mut self, negative: bool, digits: u64, exponent: i32) {
        let room = self.window::<17>();
        room[0] = b'-';
        let first = usize::from(negative);
        integer::fill(&mut room[first + 1..first + 12], digits);
        room[first] = room[first + 1];
        room[first + 1] = b'.';
        room[first + 12] = b'e';
        room[first + 13] = if exponent < 0 { b'-' } else { b'+' };
        integer::fill(
            &mut room[first + 14..first + 16],
            exponent.unsigned_abs().into(),
        );
        self.advance(first + 16);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(write: impl FnOnce(&mut Line)) -> String {
        let mut line = Line::new();
        write(&mut line);
        String::from_utf8(line.as_bytes().to_vec()).unwrap()
    }

    /// The routine, step by step.
    fn model(value: f64, digits: usize) -> String {
        let sign = if value < 0.0 { "-" } else { "" };
        let value = value.abs();
        let (mut exponent, mut scaled) = (0, value);
        while scaled < 1.0 && scaled > 0.0 {
            exponent -= 1;
            if exponent == LEAST {
                break;
            }
            scaled *= 10.0;
        }
        while scaled >= 10.0 {
            exponent += 1;
            scaled /= 10.0;
        }
        let mut power = 1.0;
        for _ in 0..exponent.abs() {
            if exponent > 0 {
                power *= 10.0;
            } else {
                power /= 10.0;
            }
        }
        let mantissa = value / power;
        let mut whole = mantissa.trunc();
        let fraction = 10f64.powi(digits as i32) * (mantissa - whole);
        let mut rest = fraction.floor();
        if fraction - rest >= 0.5 {
            rest += 1.0;
        }
        if rest >= 10f64.powi(digits as i32) {
            rest = 0.0;
            whole += 1.0;
            if whole == 10.0 {
                whole = 1.0;
                exponent += 1;
            }
        }
        let mark = if exponent < 0 { '-' } else { '+' };
        let exponent = exponent.abs();
        format!("{sign}{whole}.{rest:0digits$}e{mark}{exponent:02}")
    }

    #[test]
    fn as_rrdtool_prints_them() {
        for (value, expected) in [
            (0.0, "0.0000000000e+00"),
            (-0.0, "0.0000000000e+00"),
            (1.0, "1.0000000000e+00"),
            (-99.63, "-9.9630000000e+01"),
            (1e-14, "10.0000000000e-15"),
            (1e-310, "0.0100000000e-308"),
            (5e-324, "0.0000000000e-308"),
            (f64::MAX, "1.7976931349e+308"),
            (99_999_999_999.96, "1.0000000000e+11"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
            (f64::NAN, "NaN"),
            (-f64::NAN, "NaN"),
        ] {
            assert_eq!(text(|l| l.rrdtool(value, 10)), expected, "{value:e}");
        }
        assert_eq!(text(|l| l.rrdtool(-19555.366626, 9)), "-1.955536663e+04");
    }

    #[test]
    fn near_powers_of_ten() {
        for exponent in -323..=308 {
            let power: f64 = format!("1e{exponent}").parse().unwrap();
            let bits = power.to_bits();
            for bits in bits.saturating_sub(20)..=bits + 20 {
                let value = f64::from_bits(bits);
                assert_eq!(
                    text(|l| l.rrdtool(value, 10)),
                    model(value, 10),
                    "{value:e}"
                );
            }
        }
    }

    #[test]
    fn as_c_prints_them() {
        for (value, expected) in [
            (0.0, "0.0000000000e+00"),
            (-0.0, "-0.0000000000e+00"),
            (1e-14, "1.0000000000e-14"),
            (123.0, "1.2300000000e+02"),
            (-5e-324, "-4.9406564584e-324"),
            (f64::MAX, "1.7976931349e+308"),
            // Ties, exactly in the middle.
            (1_048_576.000_015_258_8, "1.0485760000e+06"),
            (100_000_000_005.0, "1.0000000000e+11"),
            (100_000_000_015.0, "1.0000000002e+11"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
            (f64::NAN, "nan"),
            (-f64::NAN, "-nan"),
        ] {
            assert_eq!(text(|l| l.scientific(value, 10)), expected, "{value:e}");
        }
        assert_eq!(text(|l| l.scientific(1234.5, 0)), "1e+03");
    }

    /// `%.10e` made from the standard library's exact `{:.10e}`.
    fn exact(value: f64) -> String {
        let text = format!("{value:.10e}");
        let (mantissa, exponent) = text.split_once('e').unwrap();
        let exponent: i32 = exponent.parse().unwrap();
        let mark = if exponent < 0 { '-' } else { '+' };
        format!("{mantissa}e{mark}{:02}", exponent.abs())
    }

    #[test]
    fn ties_of_eleven_digits() {
        for digits in [10_000_000_000u64, 12_345_678_901, 99_999_999_999] {
            for power in -30..30 {
                let tie: f64 = format!("{digits}5e{power}").parse().unwrap();
                for value in [tie, tie.next_up(), tie.next_down(), -tie] {
                    assert_eq!(text(|l| l.scientific(value, 10)), exact(value), "{value:e}");
                }
            }
        }
    }

    proptest! {
        #[test]
        fn eleven_digits_of_any_bits(bits: u64) {
            let value = f64::from_bits(bits);
            prop_assume!(value.is_finite());
            prop_assert_eq!(text(|l| l.scientific(value, 10)), exact(value));
        }

        #[test]
        fn eleven_digits_of_usual_numbers(value in -1e12f64..1e12, scale in -25i32..15) {
            let value = value * 10f64.powi(scale);
            prop_assert_eq!(text(|l| l.scientific(value, 10)), exact(value));
            let whole = value.trunc();
            prop_assert_eq!(text(|l| l.scientific(whole, 10)), exact(whole));
        }

        #[test]
        fn any_bits(bits: u64, digits in 1usize..=15) {
            let value = f64::from_bits(bits);
            prop_assume!(value.is_finite());
            prop_assert_eq!(text(|l| l.rrdtool(value, digits)), model(value, digits));
        }

        #[test]
        fn usual_numbers(value in -1e12f64..1e12, scale in -15i32..15) {
            let value = value * 10f64.powi(scale);
            prop_assert_eq!(text(|l| l.rrdtool(value, 10)), model(value, 10));
            prop_assert_eq!(text(|l| l.rrdtool(value, 9)), model(value, 9));
        }
    }
}
