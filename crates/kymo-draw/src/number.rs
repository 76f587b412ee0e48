//! Numbers as cairo writes them.

use std::io::Write;

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

/// The point and the digits behind it of each 256th, and how many bytes these are, without zeros at the end. All have
/// a size that is known when kymo is built, so that copying them is one instruction.
static PARTS: [([u8; 8], u8); 256] = parts();
/// The numbers of up to 3 digits, and how many these are.
static WHOLES: [([u8; 4], u8); 1000] = wholes();

const fn put<const N: usize>(
    mut bytes: [u8; N],
    at: usize,
    end: usize,
    mut number: u32,
) -> [u8; N] {
    let mut place = end;
    while place > at {
        place -= 1;
        bytes[place] = b'0' + (number % 10) as u8;
        number /= 10;
    }
    bytes
}

const fn parts() -> [([u8; 8], u8); 256] {
    let mut parts = [([b'.'; 8], 0); 256];
    let mut part = 0;
    while part < 256 {
        // In 100ths of the last digit. The half of one is rounded to even, as `printf` does.
        let exact = part as u32 * 390_625;
        let (mut digits, rest) = (exact / 100, exact % 100);
        if rest > 50 || (rest == 50 && digits % 2 == 1) {
            digits += 1;
        }
        let bytes = put([b'.'; 8], 1, 7, digits);
        let mut length = 7;
        while length > 1 && bytes[length - 1] == b'0' {
            length -= 1;
        }
        parts[part] = (bytes, if length == 1 { 0 } else { length as u8 });
        part += 1;
    }
    parts
}

const fn wholes() -> [([u8; 4], u8); 1000] {
    let mut wholes = [([b'0'; 4], 0); 1000];
    let mut number = 0;
    while number < 1000 {
        let length = match number {
            0..10 => 1,
            10..100 => 2,
            _ => 3,
        };
        wholes[number] = (put([b'0'; 4], 0, length, number as u32), length as u8);
        number += 1;
    }
    wholes
}

/// Appends the first bytes of some.
#[inline]
fn push_first<const N: usize>(out: &mut Vec<u8>, (bytes, length): &([u8; N], u8)) {
    let end = out.len() + usize::from(*length);
    out.extend_from_slice(bytes);
    out.truncate(end);
}

/// Appends a whole number.
fn push_whole(out: &mut Vec<u8>, number: u32) {
    match WHOLES.get(number as usize) {
        Some(digits) => push_first(out, digits),
        None => {
            push_whole(out, number / 1000);
            out.extend_from_slice(&put([b'0'; 3], 0, 3, number % 1000));
        }
    }
}

/// Appends a count.
pub(crate) fn push_count(out: &mut Vec<u8>, count: usize) {
    match u32::try_from(count) {
        Ok(count) => push_whole(out, count),
        Err(_) => {
            let _ = write!(out, "{count}");
        }
    }
}

/// Appends a coordinate in 256ths of a pixel, as [`Number`] writes it. Pictures have tens of thousands of them.
pub(crate) fn push_fixed(out: &mut Vec<u8>, value: i32) {
    let magnitude = value.unsigned_abs();
    // A tenth; what is less has other digits.
    if (1..26).contains(&magnitude) {
        let _ = write!(out, "{}", Number(f64::from(value) / 256.0));
        return;
    }
    if value < 0 {
        out.push(b'-');
    }
    push_whole(out, magnitude / 256);
    push_first(out, &PARTS[(magnitude % 256) as usize]);
}

/// Appends a number as [`Number`] writes it; quickly, if it is one of 256ths.
pub(crate) fn push_number(out: &mut Vec<u8>, value: f64) {
    let fixed = (value * 256.0) as i32;
    if f64::from(fixed) == value * 256.0 {
        push_fixed(out, fixed);
    } else {
        let _ = write!(out, "{}", Number(value));
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
            push_fixed(&mut text, value);
            let expected = Number(f64::from(value) / 256.0).to_string();
            assert_eq!(text, expected.as_bytes(), "{value}");
        }
    }
}
