//! Numbers as cairo writes them.

use std::fmt::Write;

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

/// The 6 digits behind the point of each 256th.
static PARTS: &str = text(&PART_DIGITS);
const PART_DIGITS: [u8; 256 * 6] = parts();
/// How many of them are not zeros at the end.
static LENGTHS: [u8; 256] = lengths(&PART_DIGITS);
/// The numbers of 3 digits.
static WHOLES: &str = text(&WHOLE_DIGITS);
const WHOLE_DIGITS: [u8; 3000] = wholes();

const fn text(bytes: &[u8]) -> &str {
    match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(_) => "",
    }
}

const fn put(bytes: &mut [u8], at: usize, count: usize, mut number: u32) {
    let mut place = count;
    while place > 0 {
        place -= 1;
        bytes[at + place] = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

const fn parts() -> [u8; 256 * 6] {
    let mut bytes = [0; 256 * 6];
    let mut part = 0;
    while part < 256 {
        // In 100ths of the last digit. The half of one is rounded to even, as `printf` does.
        let exact = part as u32 * 390_625;
        let (mut digits, rest) = (exact / 100, exact % 100);
        if rest > 50 || (rest == 50 && digits % 2 == 1) {
            digits += 1;
        }
        put(&mut bytes, part * 6, 6, digits);
        part += 1;
    }
    bytes
}

const fn lengths(parts: &[u8; 256 * 6]) -> [u8; 256] {
    let mut lengths = [0; 256];
    let mut part = 0;
    while part < 256 {
        let mut length = 6;
        while length > 0 && parts[part * 6 + length - 1] == b'0' {
            length -= 1;
        }
        lengths[part] = length as u8;
        part += 1;
    }
    lengths
}

const fn wholes() -> [u8; 3000] {
    let mut bytes = [0; 3000];
    let mut number = 0;
    while number < 1000 {
        put(&mut bytes, number * 3, 3, number as u32);
        number += 1;
    }
    bytes
}

/// Appends a whole number.
fn push_whole(out: &mut String, number: u32) {
    let at = (number % 1000) as usize * 3;
    let zeros = match number {
        0..10 => 2,
        10..100 => 1,
        100..1000 => 0,
        _ => {
            push_whole(out, number / 1000);
            0
        }
    };
    out.push_str(&WHOLES[at + zeros..at + 3]);
}

/// Appends a count.
pub(crate) fn push_count(out: &mut String, count: usize) {
    match u32::try_from(count) {
        Ok(count) => push_whole(out, count),
        Err(_) => {
            let _ = write!(out, "{count}");
        }
    }
}

/// Appends a coordinate in 256ths of a pixel, as [`Number`] writes it. Pictures have tens of thousands of them.
pub(crate) fn push_fixed(out: &mut String, value: i32) {
    let magnitude = value.unsigned_abs();
    // A tenth; what is less has other digits.
    if (1..26).contains(&magnitude) {
        let _ = write!(out, "{}", Number(f64::from(value) / 256.0));
        return;
    }
    if value < 0 {
        out.push('-');
    }
    push_whole(out, magnitude / 256);
    let part = (magnitude % 256) as usize;
    let length = usize::from(LENGTHS[part]);
    if length > 0 {
        out.push('.');
        out.push_str(&PARTS[part * 6..part * 6 + length]);
    }
}

/// Appends a number as [`Number`] writes it; quickly, if it is one of 256ths.
pub(crate) fn push_number(out: &mut String, value: f64) {
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
            let mut text = String::new();
            push_fixed(&mut text, value);
            assert_eq!(
                text,
                Number(f64::from(value) / 256.0).to_string(),
                "{value}"
            );
        }
    }
}
