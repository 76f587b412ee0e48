//! Numbers as cairo writes them.

/// A number with up to 6 decimals, and 6 significant digits below 0.1.
pub(crate) struct Number(pub(crate) f64);

impl std::fmt::Display for Number {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let value = if self.0.is_finite() { self.0 } else { 0.0 };
        if value.trunc() == value && value.abs() < 1e9 {
            return (value as i64).fmt(out);
        }
        let magnitude = value.abs();
        let decimals = if !(1e-12..0.1).contains(&magnitude) {
            6
        } else {
            (5.0 - magnitude.log10().floor()) as usize
        };
        let text = format!("{value:.decimals$}");
        let text = text.trim_end_matches('0').trim_end_matches('.');
        out.write_str(if matches!(text, "-0" | "") { "0" } else { text })
    }
}

/// Bytes of a number that are written at once, and their count in the highest byte.
type Digits = u64;

/// The longest coordinate: a sign, 7 digits, the point and 6 digits, or 8 of what is less than a tenth.
const LONGEST: usize = 16;

/// The point and the digits behind it of each 256th, without zeros at the end.
static PARTS: [Digits; 256] = parts();
/// The numbers of up to 3 digits.
static WHOLES: [Digits; 1000] = wholes();
/// The digits behind `0.0` of each 256th that is less than a tenth: 6 of them are significant.
static SMALL: [Digits; 26] = small();

/// The decimal digits of a number in as many bytes as there are from one place to another.
const fn put(mut digits: Digits, at: u32, end: u32, mut number: u32) -> Digits {
    let mut place = end;
    while place > at {
        place -= 1;
        digits |= ((b'0' + (number % 10) as u8) as u64) << (8 * place);
        number /= 10;
    }
    digits
}

/// Leaves out zeros at the end and adds the count.
const fn counted(digits: Digits, mut length: u32) -> Digits {
    while length > 1 && (digits >> (8 * (length - 1))) as u8 == b'0' {
        length -= 1;
    }
    digits & ((1 << (8 * length)) - 1) | (length as u64) << 56
}

/// A quotient; the half of one is rounded to even, as `printf` does.
const fn rounded(number: u64, divisor: u64) -> u32 {
    let (mut quotient, rest) = (number / divisor, number % divisor);
    if 2 * rest > divisor || (2 * rest == divisor && quotient % 2 == 1) {
        quotient += 1;
    }
    quotient as u32
}

const fn parts() -> [Digits; 256] {
    let mut parts = [0; 256];
    let mut part = 1;
    while part < 256 {
        let digits = rounded(part as u64 * 1_000_000, 256);
        parts[part] = counted(put(b'.' as u64, 1, 7, digits), 7);
        part += 1;
    }
    parts
}

const fn small() -> [Digits; 26] {
    let mut small = [0; 26];
    let mut part = 1;
    while part < 26 {
        // 1/256 and 2/256 are less than a hundredth: another 0 comes first.
        small[part] = if part < 3 {
            let digits = rounded(part as u64 * 100_000_000, 256);
            counted(put(b'0' as u64, 1, 7, digits), 7)
        } else {
            counted(put(0, 0, 6, rounded(part as u64 * 10_000_000, 256)), 6)
        };
        part += 1;
    }
    small
}

const fn wholes() -> [Digits; 1000] {
    let mut wholes = [0; 1000];
    let mut number = 0;
    while number < 1000 {
        let length = match number {
            0..10 => 1,
            10..100 => 2,
            _ => 3,
        };
        wholes[number as usize] = put(0, 0, length, number) | (length as u64) << 56;
        number += 1;
    }
    wholes
}

/// What is collected before it is appended.
const SIZE: usize = 512;

/// Appends many short texts and numbers: pictures have tens of thousands of them. They are collected in memory of a
/// known size, where writing one is an instruction and not a call.
pub(crate) struct Collected<'a> {
    out: &'a mut Vec<u8>,
    bytes: [u8; SIZE],
    length: usize,
}

impl<'a> Collected<'a> {
    pub(crate) fn new(out: &'a mut Vec<u8>) -> Collected<'a> {
        Collected {
            out,
            bytes: [0; SIZE],
            length: 0,
        }
    }

    /// Appends what was collected; without this it is lost.
    pub(crate) fn finish(self) {
        self.out.extend_from_slice(&self.bytes[..self.length]);
    }

    #[inline]
    fn reserve(&mut self, length: usize) {
        if self.length + length > SIZE {
            self.out.extend_from_slice(&self.bytes[..self.length]);
            self.length = 0;
        }
    }

    /// Adds a text.
    #[inline]
    pub(crate) fn text<const N: usize>(&mut self, text: &[u8; N]) {
        self.reserve(N);
        if let Some(bytes) = self.bytes[self.length..].first_chunk_mut() {
            *bytes = *text;
            self.length += N;
        }
    }

    /// Adds digits; there is room.
    #[inline]
    fn digits(&mut self, digits: Digits) {
        if let Some(bytes) = self.bytes[self.length..].first_chunk_mut() {
            *bytes = digits.to_le_bytes();
            self.length += (digits >> 56) as usize;
        }
    }

    /// Adds a whole number; there is room.
    #[inline]
    fn whole(&mut self, number: u32) {
        match WHOLES.get(number as usize) {
            Some(digits) => self.digits(*digits),
            None => self.thousands(number),
        }
    }

    #[cold]
    fn thousands(&mut self, number: u32) {
        self.whole(number / 1000);
        self.digits(put(3 << 56, 0, 3, number % 1000));
    }

    /// Adds a count.
    pub(crate) fn count(&mut self, count: usize) {
        // Seven groups of three digits, and eight bytes are written at once.
        self.reserve(21 + 8);
        match u32::try_from(count) {
            Ok(count) => self.whole(count),
            Err(_) => count
                .to_string()
                .bytes()
                .for_each(|digit| self.text(&[digit])),
        }
    }

    /// Adds a coordinate in 256ths of a pixel, as [`Number`] writes it.
    #[inline]
    pub(crate) fn fixed(&mut self, value: i32) {
        self.reserve(LONGEST + 8);
        if value < 0 {
            self.text(b"-");
        }
        let magnitude = value.unsigned_abs();
        match SMALL.get(magnitude as usize) {
            Some(digits) if magnitude > 0 => {
                self.text(b"0.0");
                self.digits(*digits);
            }
            _ => {
                self.whole(magnitude / 256);
                self.digits(PARTS[(magnitude % 256) as usize]);
            }
        }
    }

    /// Adds a number as [`Number`] writes it; quickly, if it is one of 256ths.
    pub(crate) fn number(&mut self, value: f64) {
        let fixed = (value * 256.0) as i32;
        if f64::from(fixed) == value * 256.0 {
            self.fixed(fixed);
        } else {
            let text = Number(value).to_string();
            text.bytes().for_each(|byte| self.text(&[byte]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_are_numbers() {
        let far = [-1_000_000_000, -25_600_001, 8_388_607, i32::MAX, i32::MIN];
        for value in (-3000..3000).chain(far) {
            let mut text = Vec::new();
            let mut collected = Collected::new(&mut text);
            collected.fixed(value);
            collected.finish();
            let expected = Number(f64::from(value) / 256.0).to_string();
            assert_eq!(text, expected.as_bytes(), "{value}");
        }
    }

    #[test]
    fn what_is_collected_is_appended_in_order() {
        let (mut text, mut expected) = (Vec::new(), String::new());
        let mut collected = Collected::new(&mut text);
        for value in (-200_000..200_000).step_by(311) {
            collected.text(b" <");
            collected.fixed(value);
            collected.text(b">");
            collected.count(value.unsigned_abs() as usize);
            collected.number(f64::from(value) / 3.0);
            let fixed = Number(f64::from(value) / 256.0);
            let third = Number(f64::from(value) / 3.0);
            expected += &format!(" <{fixed}>{}{third}", value.unsigned_abs());
        }
        collected.finish();
        assert_eq!(text, expected.as_bytes());
    }
}
