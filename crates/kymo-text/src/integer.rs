//! Integers as text.

use crate::Line;

/// The numbers 00 to 99.
const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[0; 2]; 100];
    let mut number = 0;
    while number < 100 {
        pairs[number] = [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8];
        number += 1;
    }
    pairs
};

const POWERS: [u64; 20] = {
    let mut powers = [1; 20];
    let mut exponent = 1;
    while exponent < 20 {
        powers[exponent] = powers[exponent - 1] * 10;
        exponent += 1;
    }
    powers
};

/// The four digits of a number below 10,000, the first one in the lowest byte.
#[inline]
pub(crate) fn four(value: u32) -> u32 {
    // Two digits in each half, then one in each byte: multiplications stand for divisions.
    let high = (value * 10_486) >> 20;
    let pairs = high | (value - 100 * high) << 16;
    let tens = ((pairs * 103) >> 10) & 0x000f_000f;
    (tens | (pairs - 10 * tens) << 8) + 0x3030_3030
}

/// The eight digits of a number below 100,000,000, the first one in the lowest byte.
#[inline]
pub(crate) fn eight(value: u32) -> u64 {
    // As with four digits, in twice as many places.
    let fours = u64::from(value / 10_000) | u64::from(value % 10_000) << 32;
    let high = ((fours * 10_486) >> 20) & 0x0000_007f_0000_007f;
    let pairs = high | (fours - 100 * high) << 16;
    let tens = ((pairs * 103) >> 10) & 0x000f_000f_000f_000f;
    (tens | (pairs - 10 * tens) << 8) + 0x3030_3030_3030_3030
}

/// The digits of a number of more than eight digits, and how many there are.
#[inline(never)]
pub(crate) fn long_decimal(value: u64) -> ([u8; 24], usize) {
    const EIGHT: u64 = 100_000_000;
    let mut text = [0; 24];
    let (above, low) = (value / EIGHT, (value % EIGHT) as u32);
    let (first, middle) = (above / EIGHT, (above % EIGHT) as u32);
    let mut len;
    if first == 0 {
        len = digits(above);
        text[..8].copy_from_slice(&(eight(middle) >> (8 * (8 - len))).to_le_bytes());
    } else {
        len = digits(first);
        text[..8].copy_from_slice(&(eight(first as u32) >> (8 * (8 - len))).to_le_bytes());
        text[len..len + 8].copy_from_slice(&eight(middle).to_le_bytes());
        len += 8;
    }
    text[len..len + 8].copy_from_slice(&eight(low).to_le_bytes());
    (text, len + 8)
}

/// The eight hexadecimal digits of a number, the first one in the highest byte; `ten` is the
/// letter that stands for ten.
#[inline]
pub(crate) fn eight_hex(value: u32, ten: u8) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    // One digit in each byte.
    let mut digits = u64::from(value);
    digits = (digits | digits << 16) & 0x0000_ffff_0000_ffff;
    digits = (digits | digits << 8) & 0x00ff_00ff_00ff_00ff;
    digits = (digits | digits << 4) & 0x0f0f_0f0f_0f0f_0f0f;
    // Those from 10 on carry into the fifth bit when 6 is added.
    let letters = ((digits + 6 * ONES) >> 4) & ONES;
    digits + u64::from(b'0') * ONES + letters * u64::from(ten - b'0' - 10)
}

/// Number of decimal digits of a value.
#[inline]
pub(crate) fn digits(value: u64) -> usize {
    // 1233 / 4096 is a little less than the logarithm of 2 to the base of 10.
    let value = value | 1;
    let guess = ((64 - value.leading_zeros() as usize) * 1233) >> 12;
    guess + usize::from(value >= POWERS[guess])
}

/// Fills `room` with the last digits of a value.
#[inline]
pub(crate) fn fill(room: &mut [u8], mut value: u64) {
    // Eight digits at a time: their pairs do not wait for each other.
    let (room, eights) = room.as_rchunks_mut::<8>();
    for eight in eights.iter_mut().rev() {
        let low = (value % 100_000_000) as u32;
        value /= 100_000_000;
        let (high, low) = (low / 10_000, low % 10_000);
        let pairs = [high / 100, high % 100, low / 100, low % 100];
        for (to, pair) in eight.as_chunks_mut::<2>().0.iter_mut().zip(pairs) {
            *to = PAIRS[pair as usize];
        }
    }
    let mut value = (value % 100_000_000) as u32;
    let (first, pairs) = room.as_rchunks_mut::<2>();
    for pair in pairs.iter_mut().rev() {
        *pair = PAIRS[(value % 100) as usize];
        value /= 100;
    }
    if let [first] = first {
        *first = b'0' + (value % 10) as u8;
    }
}

impl Line {
    /// Appends an unsigned number.
    // Shown recordings are mostly numbers: a call for each is felt.
    #[inline(always)]
    pub fn decimal(&mut self, value: u64) {
        self.compose(|room| room.decimal(value));
    }

    /// Appends a signed number.
    #[inline(always)]
    pub fn signed(&mut self, value: i64) {
        self.compose(|room| room.signed(value));
    }

    /// Appends nine digits: the part of a second in nanoseconds. The number is less than a
    /// thousand million.
    #[inline]
    pub fn nanos(&mut self, value: u32) {
        self.compose(|room| room.nanos(value));
    }

    /// Appends an unsigned number with at least `width` digits, as C's `%0WIDTHu` does.
    /// A width of more than 20 counts as 20.
    #[inline]
    pub fn padded(&mut self, value: u64, width: usize) {
        let count = digits(value).max(width.min(20));
        fill(&mut self.window::<20>()[..count], value);
        self.advance(count);
    }

    /// Appends an unsigned number with a comma before each group of three digits,
    /// from 10,000 on.
    pub fn grouped(&mut self, value: u64) {
        if value < 10_000 {
            return self.decimal(value);
        }
        let mut room = [0; 20];
        let count = digits(value);
        fill(&mut room[..count], value);
        self.groups(&room[..count], 3, b',');
    }

    /// Appends digits in groups of `size`, counted from the right.
    pub(crate) fn groups(&mut self, digits: &[u8], size: usize, separator: u8) {
        let (first, rest) = digits.split_at(digits.len() % size);
        self.push(first);
        for (number, group) in rest.chunks(size).enumerate() {
            if number > 0 || !first.is_empty() {
                self.push_byte(separator);
            }
            self.push(group);
        }
    }

    /// Appends a number in upper-case hexadecimal, with `0x` before it.
    #[inline]
    pub fn hexadecimal(&mut self, value: u64) {
        self.compose(|room| room.hexadecimal(value));
    }

    /// Appends a number in octal, with `0` before it (so zero is `00`).
    #[inline]
    pub fn octal(&mut self, value: u64) {
        self.push_byte(b'0');
        let count = (66 - (value | 1).leading_zeros() as usize) / 3;
        let room = self.window::<22>();
        for (place, byte) in room[..count].iter_mut().rev().enumerate() {
            *byte = b'0' + ((value >> (3 * place)) & 7) as u8;
        }
        self.advance(count);
    }

    /// Appends the lowest `bits` bits of a number, at most 64, with `0b` before them.
    #[inline]
    pub fn binary(&mut self, value: u64, bits: u32) {
        let count = bits.min(64) as usize;
        self.push(b"0b");
        let room = self.window::<64>();
        for (place, byte) in room[..count].iter_mut().rev().enumerate() {
            *byte = b'0' + ((value >> place) & 1) as u8;
        }
        self.advance(count);
    }

    /// Appends a number in lower-case hexadecimal, with `0x` before it and a colon before
    /// each group of four digits.
    pub fn grouped_hexadecimal(&mut self, value: u64) {
        self.push(b"0x");
        self.groups(format!("{value:x}").as_bytes(), 4, b':');
    }

    /// Appends a number in octal, with `0` before it and a colon before each group of
    /// three digits.
    pub fn grouped_octal(&mut self, value: u64) {
        self.push(b"0");
        self.groups(format!("{value:o}").as_bytes(), 3, b':');
    }

    /// Appends a byte as two lower-case hexadecimal digits.
    #[inline]
    pub fn hex_byte(&mut self, byte: u8) {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let pair = [
            DIGITS[usize::from(byte >> 4)],
            DIGITS[usize::from(byte & 15)],
        ];
        self.push(&pair);
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

    #[test]
    fn numbers_around_powers_of_ten() {
        for power in POWERS {
            for value in [power - 1, power, power + 1] {
                assert_eq!(text(|l| l.decimal(value)), value.to_string());
                assert_eq!(digits(value), value.to_string().len(), "{value}");
            }
        }
        assert_eq!(text(|l| l.decimal(u64::MAX)), u64::MAX.to_string());
        assert_eq!(text(|l| l.signed(i64::MIN)), i64::MIN.to_string());
        assert_eq!(text(|l| l.padded(u64::MAX, 25)), u64::MAX.to_string());
        assert_eq!(text(|l| l.padded(7, 12)), "000000000007");
    }

    #[test]
    fn groups() {
        assert_eq!(text(|l| l.grouped(9999)), "9999");
        assert_eq!(text(|l| l.grouped(10_000)), "10,000");
        assert_eq!(text(|l| l.grouped(u64::MAX)), "18,446,744,073,709,551,615");
        assert_eq!(text(|l| l.grouped_hexadecimal(0xe9ab)), "0xe9ab");
        assert_eq!(text(|l| l.grouped_hexadecimal(0xe47_9cb8)), "0xe47:9cb8");
        assert_eq!(text(|l| l.grouped_octal(0o103)), "0103");
        assert_eq!(text(|l| l.grouped_octal(0o1103)), "01:103");
    }

    #[test]
    fn zero_in_other_bases() {
        assert_eq!(text(|l| l.hexadecimal(0)), "0x0");
        assert_eq!(text(|l| l.octal(0)), "00");
        assert_eq!(text(|l| l.binary(5, 5)), "0b00101");
        assert_eq!(text(|l| l.hex_byte(0xf)), "0f");
    }

    #[test]
    fn all_numbers_of_four_digits() {
        for value in 0..10_000 {
            let text = format!("{value:04}");
            assert_eq!(four(value).to_le_bytes(), text.as_bytes());
            assert_eq!(eight(value).to_le_bytes(), format!("0000{text}").as_bytes());
            assert_eq!(
                eight(value * 10_000).to_le_bytes(),
                format!("{text}0000").as_bytes()
            );
        }
    }

    proptest! {
        #[test]
        fn like_the_standard_library(value: u64, shift in 0u32..64, width in 0usize..20) {
            let value = value >> shift;
            prop_assert_eq!(text(|l| l.decimal(value)), value.to_string());
            prop_assert_eq!(text(|l| l.signed(value as i64)), (value as i64).to_string());
            prop_assert_eq!(text(|l| l.padded(value, width)), format!("{value:0width$}"));
            let nanos = (value % 1_000_000_000) as u32;
            prop_assert_eq!(text(|l| l.nanos(nanos)), format!("{nanos:09}"));
            prop_assert_eq!(text(|l| l.hexadecimal(value)), format!("0x{value:X}"));
            prop_assert_eq!(text(|l| l.octal(value)), format!("0{value:o}"));
            prop_assert_eq!(text(|l| l.binary(value, 64)), format!("0b{value:064b}"));
            prop_assert_eq!(text(|l| l.grouped(value)).replace(',', ""), value.to_string());
        }
    }
}
