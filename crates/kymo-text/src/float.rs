//! Floating point numbers as text.

use std::fmt::Write;

use crate::exact::{self, Digits, Wanted};
use crate::integer;
use crate::{Binary128, Line};

/// Six decimal digits, correctly rounded: 100,000 to 999,999, and the power of ten of the
/// first digit.
type Six = (u32, i32);

/// The largest power of five that fits in 64 bits.
const MAX_FIVES: i32 = 27;

/// The number as six digits, ties to even. The value is positive and finite.
#[inline]
fn six(value: f64) -> Six {
    six_of_integer(value)
        .or_else(|| six_by_power(value))
        .unwrap_or_else(|| six_exact(value))
}

/// Of whole numbers that fit in 64 bits.
#[inline]
fn six_of_integer(value: f64) -> Option<Six> {
    let whole = value as u64;
    if whole as f64 != value || whole == 0 || whole == u64::MAX {
        return None;
    }
    let count = integer::digits(whole) as u32;
    let exponent = count as i32 - 1;
    if count <= 6 {
        return Some((whole as u32 * 10u32.pow(6 - count), exponent));
    }
    let unit = 10u64.pow(count - 6);
    let (digits, rest) = ((whole / unit) as u32, whole % unit);
    Some(rounded(
        digits,
        exponent,
        rest > unit / 2 || rest == unit / 2 && digits % 2 == 1,
    ))
}

fn rounded(digits: u32, exponent: i32, up: bool) -> Six {
    match digits + u32::from(up) {
        1_000_000 => (100_000, exponent + 1),
        digits => (digits, exponent),
    }
}

/// Of numbers from about 1e-22 to 1e32.
#[inline]
fn six_by_power(value: f64) -> Option<Six> {
    let (digits, exponent) = by_power::<6>(value)?;
    Some((digits as u32, exponent))
}

/// The first `COUNT` decimal digits (at most 16) of a positive number, ties to even, and the power of ten of
/// the first one. The mantissa is multiplied by a power of ten in 128 bits. `None` where what is cut
/// off leaves the last digit open, or where the power is not in [`FIVES`].
#[inline]
pub(crate) fn by_power<const COUNT: u32>(value: f64) -> Option<(u64, i32)> {
    let (least, limit) = const { (10u64.pow(COUNT - 1), 10u64.pow(COUNT)) };
    let bits = value.to_bits();
    let mantissa = (bits & ((1 << 52) - 1)) | 1 << 52;
    let binary = (bits >> 52) as i32 - 1075;
    // The logarithm of the largest power of two below: right or one too small.
    let mut exponent = ((binary + 52) * 1_262_611) >> 22;
    // Twice at most: the second time with the exponent made right.
    for _ in 0..2 {
        let power = COUNT as i32 - 1 - exponent;
        let (fives, error, shift) = match *FIVES.get((power + MAX_FIVES) as usize)? {
            Fives::Exact(fives) => (fives, 0, -(binary + power)),
            Fives::Inverse { fives, bits } => (fives, mantissa, bits - binary - power),
        };
        if !(1..128).contains(&shift) {
            return None;
        }
        let product = u128::from(mantissa) * u128::from(fives);
        let digits = (product >> shift) as u64;
        if digits >= limit {
            exponent += 1;
            continue;
        }
        if digits < least {
            return None;
        }
        let rest = product & ((1 << shift) - 1);
        let half = 1 << (shift - 1);
        // With the inverse of a power of five the true rest is up to `error` larger.
        let up = if rest > half {
            true
        } else if rest + u128::from(error) < half {
            false
        } else if error == 0 {
            digits % 2 == 1
        } else {
            return None;
        };
        return Some(match digits + u64::from(up) {
            digits if digits == limit => (least, exponent + 1),
            digits => (digits, exponent),
        });
    }
    None
}

/// A power of five, or one over it.
#[derive(Clone, Copy)]
enum Fives {
    /// Five to the power.
    Exact(u64),
    /// Two to the power of `bits` over a power of five, rounded down to 64 bits.
    Inverse { fives: u64, bits: i32 },
}

/// Powers from minus to plus [`MAX_FIVES`].
const FIVES: [Fives; 2 * MAX_FIVES as usize + 1] = {
    let mut powers = [Fives::Exact(1); 2 * MAX_FIVES as usize + 1];
    let mut power = 1;
    while power <= MAX_FIVES {
        let fives = 5u64.pow(power as u32);
        let bits = 127 - fives.leading_zeros() as i32;
        powers[(MAX_FIVES + power) as usize] = Fives::Exact(fives);
        powers[(MAX_FIVES - power) as usize] = Fives::Inverse {
            fives: ((1u128 << bits) / fives as u128) as u64,
            bits,
        };
        power += 1;
    }
    powers
};

/// Of any number.
#[cold]
fn six_exact(value: f64) -> Six {
    let bits = value.to_bits();
    let fraction = u128::from(bits & ((1 << 52) - 1));
    let found = match (bits >> 52) as i32 {
        0 => exact::digits(fraction, -1074, Wanted::Count(6)),
        exponent => exact::digits(fraction | 1 << 52, exponent - 1075, Wanted::Count(6)),
    };
    six_of_digits(&found)
}

fn six_of_digits(found: &Digits) -> Six {
    let digits = found
        .digits
        .iter()
        .fold(0, |sum, &digit| sum * 10 + u32::from(digit));
    (digits, found.point - 1)
}

impl Line {
    /// Appends a number as C's `%g` does: six digits, correctly rounded, ties to even.
    #[inline]
    pub fn general(&mut self, value: f64) {
        if value.is_sign_negative() {
            self.push_byte(b'-');
        }
        let value = value.abs();
        if value == 0.0 {
            self.push_byte(b'0');
        } else if value.is_finite() {
            self.six(six(value));
        } else {
            self.push(if value.is_nan() { b"nan" } else { b"inf" });
        }
    }

    /// Appends a number of 128 bits as C's `%Lg` does.
    pub fn general128(&mut self, value: Binary128) {
        if value.negative {
            self.push_byte(b'-');
        }
        if value.is_nan() {
            self.push(b"nan");
        } else if value.is_infinite() {
            self.push(b"inf");
        } else if value.mantissa == 0 {
            self.push_byte(b'0');
        } else {
            self.six(six_of_digits(&value.digits(Wanted::Count(6))));
        }
    }

    #[inline]
    fn six(&mut self, (digits, exponent): Six) {
        let mut text = [0; 6];
        integer::fill(&mut text, digits.into());
        let count = text.iter().rposition(|&digit| digit != b'0').unwrap_or(0) + 1;
        self.scientific_or_not(&text[..count], exponent, 6);
    }

    /// Appends digits (the last is not 0) of which the first has the place `exponent`:
    /// with an exponent where that is less than -4 or not less than `limit`.
    fn scientific_or_not(&mut self, digits: &[u8], exponent: i32, limit: i32) {
        if exponent < -4 || exponent >= limit {
            let (first, rest) = digits.split_at(1);
            self.push(first);
            if !rest.is_empty() {
                self.push_byte(b'.');
                self.push(rest);
            }
            self.push(if exponent < 0 { b"e-" } else { b"e+" });
            self.padded(exponent.unsigned_abs().into(), 2);
        } else if exponent < 0 {
            self.push(&b"0.000"[..(1 - exponent) as usize]);
            self.push(digits);
        } else {
            let whole = exponent as usize + 1;
            if digits.len() > whole {
                self.push(&digits[..whole]);
                self.push_byte(b'.');
                self.push(&digits[whole..]);
            } else {
                self.push(digits);
                for _ in digits.len()..whole {
                    self.push_byte(b'0');
                }
            }
        }
    }

    /// Appends a number as C's `%f` does: six digits after the point.
    pub fn fixed(&mut self, value: f64) {
        // Writing to a line cannot fail.
        let _ = if value.is_nan() {
            self.write_str(if value.is_sign_negative() {
                "-nan"
            } else {
                "nan"
            })
        } else {
            write!(self, "{value:.6}")
        };
    }

    /// Appends a finite number with as few digits as distinguish it from its neighbours, in a
    /// form that JSON takes. `bits` is the size it was recorded with: its neighbours are
    /// those of 16, 32 or 64 bits.
    #[inline]
    pub fn shortest(&mut self, value: f64, bits: u32) {
        debug_assert!(value.is_finite());
        // Writing to a line cannot fail.
        let _ = match bits {
            64 => write!(self, "{value:?}"),
            32 => write!(self, "{:?}", value as f32),
            _ => {
                self.shortest16(value);
                Ok(())
            }
        };
    }

    fn shortest16(&mut self, value: f64) {
        if value.is_sign_negative() {
            self.push_byte(b'-');
        }
        let value = value.abs();
        if value == 0.0 {
            return self.push(b"0.0");
        }
        // 2^-24 is the unit of the smallest numbers, 2^10 the first of eleven bits.
        let mut exponent = -24;
        let mut mantissa = value * f64::from(1 << 24);
        while mantissa >= 2048.0 {
            mantissa /= 2.0;
            exponent += 1;
        }
        let narrow = mantissa == 1024.0 && exponent > -24;
        let wanted = Wanted::Shortest { narrow };
        self.shortest_digits(&exact::digits(mantissa as u128, exponent, wanted));
    }

    /// Appends a finite number of 128 bits with as few digits as distinguish it from its
    /// neighbours, in a form that JSON takes.
    pub fn shortest128(&mut self, value: Binary128) {
        if value.negative {
            self.push_byte(b'-');
        }
        if value.mantissa == 0 {
            return self.push(b"0.0");
        }
        let narrow = value.mantissa == 1 << 112 && value.exponent > Binary128::MIN_EXPONENT;
        self.shortest_digits(&value.digits(Wanted::Shortest { narrow }));
    }

    fn shortest_digits(&mut self, found: &Digits) {
        let mut digits: Vec<u8> = found.digits.iter().map(|digit| b'0' + digit).collect();
        let significant = digits.iter().rposition(|&d| d != b'0').unwrap_or(0) + 1;
        digits.truncate(significant);
        self.scientific_or_not(&digits, found.point - 1, 16);
        if (0..16).contains(&(found.point - 1)) && digits.len() as i32 <= found.point {
            self.push(b".0");
        }
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

    /// `%g` made from the standard library's exact `{:.5e}`.
    fn model(value: f64) -> String {
        let scientific = format!("{value:.5e}");
        let (mantissa, exponent) = scientific.split_once('e').unwrap();
        let exponent: i32 = exponent.parse().unwrap();
        let trim = |text: &str| text.trim_end_matches('0').trim_end_matches('.').to_string();
        if (-4..6).contains(&exponent) {
            let fixed = format!("{value:.*}", (5 - exponent) as usize);
            if fixed.contains('.') {
                trim(&fixed)
            } else {
                fixed
            }
        } else {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{}e{sign}{:02}", trim(mantissa), exponent.abs())
        }
    }

    #[test]
    fn as_recorded_from_the_c_library() {
        for (value, expected) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.0, "1"),
            (-99.63, "-99.63"),
            (f64::from(-99.63f32), "-99.63"),
            (1e30, "1e+30"),
            (f64::from(1e30f32), "1e+30"),
            (123_456.5, "123456"),
            (123_457.5, "123458"),
            (1_234_565.0, "1.23456e+06"),
            (1_234_575.0, "1.23458e+06"),
            (999_999.5, "1e+06"),
            (999_999.4, "999999"),
            (0.000_099_999_949, "9.99999e-05"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (5e-324, "4.94066e-324"),
            (2.225_073_858_507_201e-308, "2.22507e-308"),
            (f64::MAX, "1.79769e+308"),
            (1e22, "1e+22"),
            (1e23, "1e+23"),
            (18_446_744_073_709_551_615.0, "1.84467e+19"),
            (0.5, "0.5"),
            (100_000.0, "100000"),
            (1e100, "1e+100"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
            (f64::NAN, "nan"),
            (-f64::NAN, "-nan"),
        ] {
            assert_eq!(text(|l| l.general(value)), expected, "{value:e}");
        }
    }

    #[test]
    fn fixed_point() {
        assert_eq!(text(|l| l.fixed(-1.5)), "-1.500000");
        assert_eq!(text(|l| l.fixed(f64::INFINITY)), "inf");
        let large = f64::from(1e30f32);
        assert_eq!(
            text(|l| l.fixed(large)),
            "1000000015047466219876688855040.000000"
        );
    }

    #[test]
    fn shortest_by_size() {
        assert_eq!(text(|l| l.shortest(0.1, 64)), "0.1");
        assert_eq!(text(|l| l.shortest(f64::from(0.1f32), 32)), "0.1");
        assert_eq!(text(|l| l.shortest(0.099_975_585_937_5, 16)), "0.1");
        assert_eq!(text(|l| l.shortest(65504.0, 16)), "65500.0");
        assert_eq!(text(|l| l.shortest(-1.0, 16)), "-1.0");
        assert_eq!(text(|l| l.shortest(1e300, 64)), "1e300");
    }

    #[test]
    fn ties_and_their_neighbours() {
        for digits in 100_000..100_400u32 {
            for power in -25..25 {
                let tie: f64 = format!("{digits}5e{power}").parse().unwrap();
                for value in [tie, tie.next_up(), tie.next_down()] {
                    assert_eq!(text(|l| l.general(value)), model(value), "{value:e}");
                }
            }
        }
    }

    proptest! {
        #[test]
        fn general_of_any_bits(bits: u64) {
            let value = f64::from_bits(bits & !(1 << 63));
            prop_assume!(value.is_finite() && value != 0.0);
            prop_assert_eq!(text(|l| l.general(value)), model(value));
        }

        #[test]
        fn general_of_usual_numbers(value in -1e12f64..1e12, scale in -15i32..15) {
            let value = value * 10f64.powi(scale);
            prop_assume!(value != 0.0);
            prop_assert_eq!(text(|l| l.general(value)), model(value));
            let single = value as f32;
            prop_assert_eq!(text(|l| l.general(single.into())), model(single.into()));
        }

        #[test]
        fn usual_numbers_take_the_fast_way(value in 1e-20f64..1e30) {
            prop_assert!(six_of_integer(value).or_else(|| six_by_power(value)).is_some());
        }

        #[test]
        fn shortest_reads_back(bits: u64) {
            let value = f64::from_bits(bits);
            prop_assume!(value.is_finite());
            let back: f64 = serde_json::from_str(&text(|l| l.shortest(value, 64))).unwrap();
            prop_assert!((back / value - 1.0).abs() < 1e-15 || back == value);
            prop_assert_eq!(text(|l| l.shortest(value, 64)).parse::<f64>().unwrap(), value);
        }
    }
}
