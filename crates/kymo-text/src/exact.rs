//! Digits of binary floating point numbers of any size, computed exactly.
//!
//! After Steele and White, "How to print floating-point numbers accurately" (1990):
//! the number is a fraction of two integers, of which digits are taken one by one.

use std::cmp::Ordering;

/// Decimal digits of a positive number: `0.DIGITS` times ten to the power of `point`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Digits {
    /// Values 0 to 9; the first one is not 0.
    pub(crate) digits: Vec<u8>,
    /// Where the decimal point is: after that many digits.
    pub(crate) point: i32,
}

/// How many digits are wanted.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wanted {
    /// As few as distinguish the number from those next to it. `narrow` says that the next lower
    /// one is only half as far as the next higher one.
    Shortest { narrow: bool },
    /// That many, correctly rounded, ties to even.
    Count(usize),
}

/// A non-negative integer of any size: 64 bits each, the lowest first, no zeros at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Natural(Vec<u64>);

impl Natural {
    fn new(value: u128) -> Self {
        let mut number = Self(vec![value as u64, (value >> 64) as u64]);
        number.trim();
        number
    }

    fn trim(&mut self) {
        while self.0.last() == Some(&0) {
            self.0.pop();
        }
    }

    fn times(&mut self, factor: u64) {
        let mut carry = 0;
        for limb in &mut self.0 {
            let product = u128::from(*limb) * u128::from(factor) + carry;
            *limb = product as u64;
            carry = product >> 64;
        }
        if carry > 0 {
            self.0.push(carry as u64);
        }
    }

    fn times_power_of_ten(&mut self, exponent: u32) {
        const FIVE_27: u64 = 5u64.pow(27);
        for _ in 0..exponent / 27 {
            self.times(FIVE_27);
        }
        self.times(5u64.pow(exponent % 27));
        self.shift(exponent);
    }

    fn shift(&mut self, bits: u32) {
        self.times(1 << (bits % 64));
        if !self.0.is_empty() {
            self.0.splice(0..0, vec![0; bits as usize / 64]);
        }
    }

    fn plus(&self, other: &Self) -> Self {
        let mut sum = Vec::with_capacity(self.0.len().max(other.0.len()) + 1);
        let mut carry = 0;
        for place in 0..self.0.len().max(other.0.len()) {
            let at = |n: &Self| u128::from(n.0.get(place).copied().unwrap_or(0));
            let total = at(self) + at(other) + carry;
            sum.push(total as u64);
            carry = total >> 64;
        }
        sum.push(carry as u64);
        let mut sum = Self(sum);
        sum.trim();
        sum
    }

    /// Subtracts a number that is not larger.
    fn minus(&mut self, other: &Self) {
        let mut borrow = false;
        for (place, limb) in self.0.iter_mut().enumerate() {
            let (less, first) = limb.overflowing_sub(other.0.get(place).copied().unwrap_or(0));
            let (less, second) = less.overflowing_sub(u64::from(borrow));
            *limb = less;
            borrow = first || second;
        }
        self.trim();
    }

    fn compare(&self, other: &Self) -> Ordering {
        self.0
            .len()
            .cmp(&other.0.len())
            .then_with(|| self.0.iter().rev().cmp(other.0.iter().rev()))
    }
}

/// Digits of `mantissa` times two to the power of `exponent`. The mantissa is not zero,
/// and has at most 113 bits.
pub(crate) fn digits(mantissa: u128, exponent: i32, wanted: Wanted) -> Digits {
    let even = mantissa.is_multiple_of(2);
    // The number is value / scale; low and high are how far it may be off, on the same
    // scale. All are taken four times, so that halves of a half are integers.
    let mut value = Natural::new(mantissa << 2);
    let mut scale = Natural::new(4);
    let (mut low, mut high) = match wanted {
        Wanted::Shortest { narrow } => (Natural::new(2 >> u32::from(narrow)), Natural::new(2)),
        Wanted::Count(_) => (Natural::new(0), Natural::new(0)),
    };
    if exponent >= 0 {
        for number in [&mut value, &mut low, &mut high] {
            number.shift(exponent.unsigned_abs());
        }
    } else {
        scale.shift(exponent.unsigned_abs());
    }

    // An estimate of the decimal exponent that is right or one too small.
    let top = i64::from(exponent) + i64::from(127 - mantissa.leading_zeros());
    let mut point = ((top * 1_292_913_986) >> 32) as i32;
    if point >= 0 {
        scale.times_power_of_ten(point.unsigned_abs());
    } else {
        for number in [&mut value, &mut low, &mut high] {
            number.times_power_of_ten(point.unsigned_abs());
        }
    }
    let reaches = |sum: &Natural, scale: &Natural| match sum.compare(scale) {
        Ordering::Greater => true,
        Ordering::Equal => even || matches!(wanted, Wanted::Count(_)),
        Ordering::Less => false,
    };
    while reaches(&value.plus(&high), &scale) {
        scale.times(10);
        point += 1;
    }

    let mut digits = Vec::new();
    loop {
        for number in [&mut value, &mut low, &mut high] {
            number.times(10);
        }
        let mut digit = 0;
        while value.compare(&scale) != Ordering::Less {
            value.minus(&scale);
            digit += 1;
        }
        digits.push(digit);
        let (down, up) = match wanted {
            Wanted::Count(count) => (digits.len() >= count, digits.len() >= count),
            Wanted::Shortest { .. } => {
                let near = match value.compare(&low) {
                    Ordering::Less => true,
                    Ordering::Equal => even,
                    Ordering::Greater => false,
                };
                (near, reaches(&value.plus(&high), &scale))
            }
        };
        if down || up {
            let up = match value.plus(&value).compare(&scale) {
                _ if !down => true,
                _ if !up => false,
                Ordering::Less => false,
                Ordering::Equal => matches!(wanted, Wanted::Shortest { .. }) || digit % 2 == 1,
                Ordering::Greater => true,
            };
            if up {
                round_up(&mut digits, &mut point);
            }
            return Digits { digits, point };
        }
    }
}

fn round_up(digits: &mut [u8], point: &mut i32) {
    for digit in digits.iter_mut().rev() {
        if *digit < 9 {
            *digit += 1;
            return;
        }
        *digit = 0;
    }
    digits[0] = 1;
    *point += 1;
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Mantissa, exponent and whether the lower neighbour is nearer, of a positive number.
    fn parts(value: f64) -> (u128, i32, bool) {
        let bits = value.to_bits();
        let (exponent, fraction) = ((bits >> 52) as i32 & 0x7ff, bits & ((1 << 52) - 1));
        if exponent == 0 {
            (fraction.into(), -1074, false)
        } else {
            let narrow = fraction == 0 && exponent > 1;
            ((fraction | 1 << 52).into(), exponent - 1075, narrow)
        }
    }

    fn scientific(found: &Digits) -> String {
        let mut text: String = found.digits.iter().map(|&d| char::from(b'0' + d)).collect();
        if text.len() > 1 {
            text.insert(1, '.');
        }
        format!("{text}e{}", found.point - 1)
    }

    fn check(value: f64) {
        let (mantissa, exponent, narrow) = parts(value);
        let shortest = digits(mantissa, exponent, Wanted::Shortest { narrow });
        assert_eq!(scientific(&shortest), format!("{value:e}"));
        let six = digits(mantissa, exponent, Wanted::Count(6));
        assert_eq!(scientific(&six), format!("{value:.5e}"));
    }

    #[test]
    fn extremes_and_powers() {
        for value in [
            f64::MIN_POSITIVE,
            f64::MAX,
            5e-324,
            9.5,
            0.1,
            999_999.5,
            2.5,
            1e23,
        ] {
            check(value);
        }
        for exponent in -1074..1024 {
            let bits = match exponent {
                ..-1022 => 1 << (exponent + 1074),
                _ => ((exponent + 1023) as u64) << 52,
            };
            check(f64::from_bits(bits));
        }
    }

    proptest! {
        #[test]
        fn like_the_standard_library(bits in 1u64..0x7ff0_0000_0000_0000) {
            check(f64::from_bits(bits));
        }
    }
}
