//! Conversions: read from a format, and carried out.

use std::fmt::Write as _;

use kymo_text::Line;

use super::Names;

/// The largest width and precision that are followed.
const MOST_WIDTH: u16 = 4096;
/// The largest number of digits in scientific notation.
const MOST_DIGITS: usize = 15;

/// A conversion.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spec {
    pub(super) left: bool,
    pub(super) plus: bool,
    pub(super) space: bool,
    pub(super) zero: bool,
    pub(super) alternate: bool,
    pub(super) width: u16,
    pub(super) precision: Option<u16>,
    /// Bits that the length modifier leaves.
    pub(super) bits: u8,
    pub(super) conversion: u8,
}

impl Spec {
    /// Reads what comes after a percent sign, and returns it and what follows it. If that is not a
    /// conversion, `None`.
    pub(super) fn parse(text: &[u8]) -> (Option<Self>, &[u8]) {
        let mut spec = Self {
            left: false,
            plus: false,
            space: false,
            zero: false,
            alternate: false,
            width: 0,
            precision: None,
            bits: 32,
            conversion: 0,
        };
        let mut rest = text;
        while let Some((flag, after)) = rest.split_first() {
            match flag {
                b'-' => spec.left = true,
                b'+' => spec.plus = true,
                b' ' => spec.space = true,
                b'0' => spec.zero = true,
                b'#' => spec.alternate = true,
                _ => break,
            }
            rest = after;
        }
        (spec.width, rest) = number(rest);
        if let Some(after) = rest.strip_prefix(b".") {
            let (precision, after) = number(after);
            spec.precision = Some(precision);
            rest = after;
        }
        while let Some((length, after)) = rest.split_first() {
            match length {
                b'h' => spec.bits = if spec.bits == 32 { 16 } else { 8 },
                b'l' | b'L' | b'w' | b'q' | b'j' | b'z' | b't' => {}
                _ => break,
            }
            rest = after;
        }
        match rest.split_first() {
            Some((&conversion, after))
                if matches!(
                    conversion,
                    b'd' | b'i'
                        | b'o'
                        | b'u'
                        | b'x'
                        | b'X'
                        | b'c'
                        | b's'
                        | b'k'
                        | b'%'
                        | b'f'
                        | b'F'
                        | b'e'
                        | b'E'
                        | b'g'
                        | b'G'
                ) =>
            {
                spec.conversion = conversion;
                (Some(spec), after)
            }
            _ => (None, rest),
        }
    }

    pub(super) fn write(&self, value: u32, names: &impl Names, out: &mut Line) {
        let plain = self.width == 0 && self.precision.is_none() && self.bits == 32;
        match self.conversion {
            b'%' => out.push_byte(b'%'),
            b'u' if plain => out.decimal(value.into()),
            b'd' | b'i' => {
                let shift = 32 - self.bits;
                let value = (value << shift) as i32 >> shift;
                let sign = match () {
                    () if value < 0 => &b"-"[..],
                    () if self.plus => b"+",
                    () if self.space => b" ",
                    () => b"",
                };
                if plain {
                    out.push(sign);
                    return out.decimal(value.unsigned_abs().into());
                }
                self.integer(sign, value.unsigned_abs(), 10, out);
            }
            b'u' => self.integer(b"", self.cut(value), 10, out),
            b'o' => self.integer(b"", self.cut(value), 8, out),
            b'x' | b'X' => {
                let value = self.cut(value);
                let prefix = match self.conversion {
                    _ if !self.alternate || value == 0 => &b""[..],
                    b'x' => b"0x",
                    _ => b"0X",
                };
                self.integer(prefix, value, 16, out);
            }
            b'c' => self.padded(&[value as u8], out),
            b's' => match names.string(value) {
                Some(text) => self.text(text, out),
                None => bad_offset(value, out),
            },
            b'k' => self.symbol(value, names, out),
            _ => self.float(value, out),
        }
    }

    /// The part of a number that the length modifier leaves.
    fn cut(&self, value: u32) -> u32 {
        value & (u32::MAX >> (32 - self.bits))
    }

    fn integer(&self, prefix: &[u8], value: u32, base: u32, out: &mut Line) {
        let mut room = [0; 11];
        let digits = match base {
            // The compiler divides by what it knows.
            8 => digits(value, 8, LOWER, &mut room),
            10 => digits(value, 10, LOWER, &mut room),
            _ if self.conversion == b'X' => digits(value, 16, UPPER, &mut room),
            _ => digits(value, 16, LOWER, &mut room),
        };
        if prefix.is_empty() && self.is_simple() {
            return self.simple(digits, out);
        }
        let width = usize::from(self.width);
        let mut least = self.precision.map_or(1, usize::from);
        if base == 8 && self.alternate {
            least = least.max(digits.len() + 1);
        }
        let mut zeros = least.saturating_sub(digits.len());
        let len = prefix.len() + zeros + digits.len();
        if self.zero && !self.left && self.precision.is_none() {
            zeros += width.saturating_sub(len);
        }
        let len = prefix.len() + zeros + digits.len();
        let pad = width.saturating_sub(len);
        if !self.left {
            repeat(b' ', pad, out);
        }
        out.push(prefix);
        repeat(b'0', zeros, out);
        out.push(digits);
        if self.left {
            repeat(b' ', pad, out);
        }
    }

    /// Whether an integer is digits and what fills them up to a short width on the left.
    fn is_simple(&self) -> bool {
        self.precision.is_none() && !self.alternate && !self.left && self.width <= 16
    }

    fn simple(&self, digits: &[u8], out: &mut Line) {
        let mut room = [if self.zero { b'0' } else { b' ' }; 16];
        room[15] = b'0';
        let begin = room.len() - digits.len();
        room[begin..].copy_from_slice(digits);
        let len = digits.len().max(usize::from(self.width)).max(1);
        out.push(&room[room.len() - len..]);
    }

    fn padded(&self, text: &[u8], out: &mut Line) {
        let pad = usize::from(self.width).saturating_sub(text.len());
        if !self.left {
            repeat(b' ', pad, out);
        }
        out.push(text);
        if self.left {
            repeat(b' ', pad, out);
        }
    }

    fn text(&self, text: &[u8], out: &mut Line) {
        let most = self.precision.map_or(usize::MAX, usize::from);
        self.padded(&text[..text.len().min(most)], out);
    }

    fn symbol(&self, value: u32, names: &impl Names, out: &mut Line) {
        let found = names.symbol(value);
        let (name, distance, digits) = match found {
            Some((name, 0)) => (name, 0, 0),
            Some((name, distance)) => (name, distance, hexadecimal_digits(distance)),
            None => (&b""[..], value, 8),
        };
        let prefix: &[u8] = match (found, digits) {
            (_, 0) => b"",
            (Some(_), _) => b"+0x",
            (None, _) => b"0x",
        };
        let len = name.len() + prefix.len() + digits as usize;
        let pad = usize::from(self.width).saturating_sub(len);
        if !self.left {
            repeat(b' ', pad, out);
        }
        out.push(name);
        out.push(prefix);
        if digits > 0 {
            hexadecimal(distance, digits, out);
        }
        if self.left {
            repeat(b' ', pad, out);
        }
    }

    /// Integers are rarely shown in these formats: this may allocate.
    fn float(&self, value: u32, out: &mut Line) {
        let number = f64::from(value);
        let precision = self.precision.map_or(6, usize::from);
        let mut text = Line::new();
        if self.plus {
            text.push_byte(b'+');
        } else if self.space {
            text.push_byte(b' ');
        }
        match self.conversion.to_ascii_lowercase() {
            b'f' => {
                let _ = write!(text, "{value}");
                if precision > 0 {
                    text.push_byte(b'.');
                    repeat(b'0', precision, &mut text);
                } else if self.alternate {
                    text.push_byte(b'.');
                }
            }
            b'e' => text.scientific(number, precision.min(MOST_DIGITS)),
            _ => {
                // As many digits as the precision specifies, without trailing zeros.
                let most = precision.clamp(1, MOST_DIGITS);
                if value == 0 || (value.ilog10() as usize) < most {
                    let _ = write!(text, "{value}");
                } else {
                    let mut long = Line::new();
                    long.scientific(number, most - 1);
                    let (mantissa, exponent) = match memchr::memchr(b'e', long.as_bytes()) {
                        Some(at) => long.as_bytes().split_at(at),
                        None => (long.as_bytes(), &b""[..]),
                    };
                    let mut mantissa = mantissa;
                    if mantissa.contains(&b'.') {
                        while let Some(short) = mantissa.strip_suffix(b"0") {
                            mantissa = short;
                        }
                        mantissa = mantissa.strip_suffix(b".").unwrap_or(mantissa);
                    }
                    text.push(mantissa);
                    text.push(exponent);
                }
            }
        }
        let mut text = text.as_bytes().to_vec();
        if self.conversion.is_ascii_uppercase() {
            text.make_ascii_uppercase();
        }
        if self.zero && !self.left {
            let signs = usize::from(self.plus || self.space);
            let zeros = usize::from(self.width).saturating_sub(text.len());
            text.splice(signs..signs, std::iter::repeat_n(b'0', zeros));
        }
        self.padded(&text, out);
    }
}

/// Reads a number, limited to `MOST_WIDTH`, and returns it and what follows it.
fn number(text: &[u8]) -> (u16, &[u8]) {
    let count = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, rest) = text.split_at(count);
    let number = digits.iter().fold(0, |number: u16, digit| {
        (number * 10 + u16::from(digit - b'0')).min(MOST_WIDTH)
    });
    (number, rest)
}

const LOWER: &[u8; 16] = b"0123456789abcdef";
const UPPER: &[u8; 16] = b"0123456789ABCDEF";

/// The digits of a number, of zero none.
#[inline(always)]
fn digits<'r>(value: u32, base: u32, letters: &[u8; 16], room: &'r mut [u8; 11]) -> &'r [u8] {
    let mut begin = room.len();
    let mut rest = value;
    while rest > 0 {
        begin -= 1;
        room[begin] = letters[(rest % base) as usize];
        rest /= base;
    }
    &room[begin..]
}

/// Appends a byte some times.
fn repeat(byte: u8, count: usize, out: &mut Line) {
    for _ in 0..count {
        out.push_byte(byte);
    }
}

/// Appends a number with at least `least` digits of base 16.
fn hexadecimal(value: u32, least: u32, out: &mut Line) {
    let digits = hexadecimal_digits(value).max(least);
    for digit in (0..digits).rev() {
        out.push_byte(LOWER[(value >> (4 * digit) & 15) as usize]);
    }
}

/// How many digits of base 16 a number has.
const fn hexadecimal_digits(value: u32) -> u32 {
    (32 - value.leading_zeros()).div_ceil(4)
}

/// Appends what stands for a string that does not exist.
#[cold]
pub(crate) fn bad_offset(offset: u32, out: &mut Line) {
    out.push(b"<bad strtab offset 0x");
    hexadecimal(offset, 1, out);
    out.push_byte(b'>');
}
