//! Format strings: those of C's `printf`, of which each conversion shows the same number.
//!
//! `%s` is the string at that offset of a string table, `%k` the symbol that comes before that
//! value and the distance from it. The others are C's: `%d %i %u %o %x %X %c %f %e %g %%` with
//! flags, width, precision and length. What is no conversion stands for itself.

use std::fmt::Write as _;

use kymo_text::{Line, Stamp};

/// The longest string that is shown, in bytes.
pub const MOST_TEXT: usize = 64 << 10;
/// The largest width and precision that are followed.
const MOST_WIDTH: u16 = 4096;
/// Pieces of formats that are kept as programs.
const MOST_PIECES: usize = 6;
/// Digits of scientific notation that are told apart.
const MOST_DIGITS: usize = 15;

/// Where formats find strings and symbols.
pub trait Names {
    /// The string at an offset; `None` beyond the end of the table.
    fn string(&self, offset: u32) -> Option<&[u8]>;

    /// The name of the symbol at or before a value, and the distance from it; `None` before the
    /// first one.
    fn symbol(&self, value: u32) -> Option<(&[u8], u32)>;
}

/// The string that begins with some bytes: up to the next zero, and not longer than what is shown.
#[inline]
pub fn string_of(bytes: &[u8]) -> &[u8] {
    let bytes = &bytes[..bytes.len().min(MOST_TEXT)];
    &bytes[..memchr::memchr(0, bytes).unwrap_or(bytes.len())]
}

/// What a format makes of a number, as far as that is known before the number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// The format itself: it has no conversions.
    Constant,
    /// A string of the table, and nothing else.
    String,
    /// Something that [`write()`] has to make.
    Made {
        /// Whether it asks for strings of the table.
        strings: bool,
    },
}

impl Shape {
    /// The shape of a format.
    pub fn of(format: &[u8]) -> Self {
        if format == b"%s" {
            return Self::String;
        }
        if !format.contains(&b'%') {
            return Self::Constant;
        }
        let mut pieces = Pieces { format, at: 0 };
        let is_string = |piece: Piece| piece.spec.is_some_and(|spec| spec.conversion == b's');
        let strings = pieces.any(is_string);
        Self::Made { strings }
    }
}

/// Appends what a format makes of a number. Of more than `most` bytes the first ones are kept,
/// and what follows them says so.
pub fn write(format: &[u8], value: u32, names: &impl Names, out: &mut Line, most: usize) {
    let begin = out.len();
    for piece in (Pieces { format, at: 0 }) {
        out.push(format.get(piece.begin..piece.end).unwrap_or_default());
        if let Some(spec) = &piece.spec {
            spec.write(value, names, out);
        }
        if !has_room(begin, out, most) {
            return;
        }
    }
}

/// A short format that has been read.
#[derive(Clone, Debug)]
pub struct Program(Box<[Step]>);

/// A part of a format that has been read: text that stands for itself, and what comes after it.
#[derive(Clone, Debug)]
struct Step {
    text: Stamp,
    put: Put,
}

/// What a conversion writes: the usual ones apart, which are most.
#[derive(Clone, Copy, Debug)]
enum Put {
    Nothing,
    /// `%u`
    Unsigned,
    /// `%d`
    Signed,
    /// `%x`, `%08x`: at least so many digits.
    Hexadecimal(u8),
    /// `%s`
    String,
    Other(Spec),
}

impl Program {
    /// Reads a format; `None` of one that is long, which [`write()`] has to read each time: what is
    /// kept of a format has a bound.
    pub fn new(format: &[u8]) -> Option<Self> {
        let pieces: Vec<Piece> = Pieces { format, at: 0 }.take(MOST_PIECES + 1).collect();
        let step = |piece: &Piece| {
            let text = Stamp::new(format.get(piece.begin..piece.end)?);
            let put = piece.spec.map_or(Put::Nothing, Put::new);
            text.is_short().then_some(Step { text, put })
        };
        if pieces.len() > MOST_PIECES {
            return None;
        }
        let steps: Option<Vec<Step>> = pieces.iter().map(step).collect();
        steps.map(|steps| Self(steps.into()))
    }

    /// Does with the format that was read what [`write()`] does.
    #[inline]
    pub fn write(&self, value: u32, names: &impl Names, out: &mut Line, most: usize) {
        let begin = out.len();
        for step in &self.0 {
            step.write(value, names, out);
            if !has_room(begin, out, most) {
                return;
            }
        }
    }
}

impl Step {
    // In the loop of its caller, the compiler would make all digits that the value could have before
    // it looks at which are wanted.
    #[inline(never)]
    fn write(&self, value: u32, names: &impl Names, out: &mut Line) {
        let text = &self.text;
        match &self.put {
            Put::Nothing => out.stamp(text),
            Put::Unsigned => out.compose_after(text, |room| room.decimal(value.into())),
            Put::Signed => out.compose_after(text, |room| room.signed((value as i32).into())),
            Put::Hexadecimal(least) => {
                out.compose_after(text, |room| room.hex_digits(value, (*least).into()));
            }
            Put::String => {
                out.stamp(text);
                string(value, names, out);
            }
            Put::Other(spec) => {
                out.stamp(text);
                spec.write(value, names, out);
            }
        }
    }
}

impl Put {
    fn new(spec: Spec) -> Self {
        let Spec {
            left,
            plus,
            space,
            zero,
            alternate,
            width,
            precision,
            bits,
            conversion,
        } = spec;
        if left || plus || space || alternate || precision.is_some() || bits != 32 {
            return Self::Other(spec);
        }
        match (conversion, width) {
            (b'u', 0) => Self::Unsigned,
            (b'd' | b'i', 0) => Self::Signed,
            (b's', 0) => Self::String,
            (b'x', 0) => Self::Hexadecimal(1),
            (b'x', 1..=8) if zero => Self::Hexadecimal(width as u8),
            _ => Self::Other(spec),
        }
    }
}

/// Whether what was written from `begin` on is no longer than `most`; what is longer is cut.
#[inline]
fn has_room(begin: usize, out: &mut Line, most: usize) -> bool {
    if out.len() - begin <= most {
        return true;
    }
    out.truncate(begin + most);
    out.push(b"<more>");
    false
}

/// Appends the string at an offset.
fn string(offset: u32, names: &impl Names, out: &mut Line) {
    match names.string(offset) {
        Some(text) => out.push(text),
        None => bad_offset(offset, out),
    }
}

/// A part of a format: text that stands for itself, and a conversion after it.
#[derive(Clone, Copy, Debug)]
struct Piece {
    begin: usize,
    end: usize,
    spec: Option<Spec>,
}

/// The pieces of a format.
struct Pieces<'f> {
    format: &'f [u8],
    at: usize,
}

impl Iterator for Pieces<'_> {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        let begin = self.at;
        let rest = self.format.get(begin..).filter(|rest| !rest.is_empty())?;
        let Some(percent) = memchr::memchr(b'%', rest) else {
            self.at = self.format.len();
            return Some(Piece {
                begin,
                end: self.at,
                spec: None,
            });
        };
        let (spec, after) = Spec::parse(&rest[percent + 1..]);
        self.at = self.format.len() - after.len();
        Some(Piece {
            begin,
            end: match spec {
                Some(_) => begin + percent,
                None => self.at,
            },
            spec,
        })
    }
}

/// A conversion.
#[derive(Clone, Copy, Debug)]
struct Spec {
    left: bool,
    plus: bool,
    space: bool,
    zero: bool,
    alternate: bool,
    width: u16,
    precision: Option<u16>,
    /// Bits that the length modifier leaves.
    bits: u8,
    conversion: u8,
}

impl Spec {
    /// Reads what comes after a percent sign, and tells what follows it. Where that is no
    /// conversion, `None`.
    fn parse(text: &[u8]) -> (Option<Self>, &[u8]) {
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

    fn write(&self, value: u32, names: &impl Names, out: &mut Line) {
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
        let Some((name, distance)) = names.symbol(value) else {
            out.push(b"0x");
            return hexadecimal(value, 8, out);
        };
        let digits = hexadecimal_digits(distance);
        let len = name.len() + if distance > 0 { 3 + digits as usize } else { 0 };
        let pad = usize::from(self.width).saturating_sub(len);
        if !self.left {
            repeat(b' ', pad, out);
        }
        out.push(name);
        if distance > 0 {
            out.push(b"+0x");
            hexadecimal(distance, digits, out);
        }
        if self.left {
            repeat(b' ', pad, out);
        }
    }

    /// Nobody shows integers as these often: it may allocate.
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
                // As many digits as the precision says, none of them a zero at the end.
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

/// Reads a number, no larger than what is followed, and tells what follows it.
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
pub(crate) fn hexadecimal(value: u32, least: u32, out: &mut Line) {
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    struct Some3;

    impl Names for Some3 {
        fn string(&self, offset: u32) -> Option<&[u8]> {
            b"main\0worker\0".get(offset as usize..).map(string_of)
        }

        fn symbol(&self, value: u32) -> Option<(&[u8], u32)> {
            let name: &[u8] = b"main";
            value.checked_sub(0x1000).map(|distance| (name, distance))
        }
    }

    fn show(format: &str, value: u32) -> String {
        let mut line = Line::new();
        write(format.as_bytes(), value, &Some3, &mut line, MOST_TEXT);
        if let Some(program) = Program::new(format.as_bytes()) {
            let mut other = Line::new();
            program.write(value, &Some3, &mut other, MOST_TEXT);
            assert_eq!(other.as_bytes(), line.as_bytes(), "{format} of {value}");
        }
        String::from_utf8_lossy(line.as_bytes()).into_owned()
    }

    #[test]
    fn numbers_are_those_of_printf() {
        for (format, value, expected) in [
            ("%d", 5, "5"),
            ("%d", u32::MAX, "-1"),
            ("%i", 0x8000_0000, "-2147483648"),
            ("%u", u32::MAX, "4294967295"),
            ("%5d|%-5d|%05d|%+d|% d", 42, "   42|42   |00042|+42| 42"),
            (
                "%05d|%-05d|%.3d|%5.3d|%.0d",
                -7i32 as u32,
                "-0007|-7   |-007| -007|-7",
            ),
            ("%.0d|%.0x|%5.0u|", 0, "||     |"),
            ("%x %X %#x %#X %#o %o", 0xab, "ab AB 0xab 0XAB 0253 253"),
            ("%#x %#o %x", 0, "0 0 0"),
            ("0x%08x(%d)", 0x0040_16b7, "0x004016b7(4200119)"),
            (
                "%#010x|%#10x|%-#10x|",
                0x1f,
                "0x0000001f|      0x1f|0x1f      |",
            ),
            (
                "%hd %hhd %hu %hhx %ld %llu %Lx %zu",
                0x1_ffff,
                "-1 -1 65535 ff 131071 131071 1ffff 131071",
            ),
            ("%c%c|%3c|%-3c|", 65, "AA|  A|A  |"),
            (
                "%f %.2f %.0f %10.1f|%-10.1f|%010.1f",
                1000,
                "1000.000000 1000.00 1000     1000.0|1000.0    |00001000.0",
            ),
            (
                "%e %.2e %E",
                123_456_789,
                "1.234568e+08 1.23e+08 1.234568E+08",
            ),
            (
                "%g %G %.3g %.15g",
                u32::MAX,
                "4.29497e+09 4.29497E+09 4.29e+09 4294967295",
            ),
            ("%g %g", 999_999, "999999 999999"),
            ("%g", 1_000_000, "1e+06"),
            ("%g %e", 0, "0 0.000000e+00"),
            ("100%% of %u", 3, "100% of 3"),
        ] {
            assert_eq!(show(format, value), expected, "{format} of {value}");
        }
    }

    #[test]
    fn strings_and_symbols_are_looked_up() {
        for (format, value, expected) in [
            ("%s", 5, "worker"),
            ("<%-12s>%8s|%.2s", 0, "<main        >    main|ma"),
            ("at %s", 13, "at <bad strtab offset 0xd>"),
            ("%k", 0x1000, "main"),
            ("%k depth %d", 0x1010, "main+0x10 depth 4112"),
            ("%12k|%-12k|", 0x1001, "    main+0x1|main+0x1    |"),
            ("%k", 0xfff, "0x00000fff"),
        ] {
            assert_eq!(show(format, value), expected, "{format} of {value}");
        }
    }

    #[test]
    fn what_is_no_conversion_stands_for_itself() {
        for text in [
            "%",
            "%5",
            "%y",
            "50%",
            "%-",
            "a %5.2lQ b",
            "%*d",
            "%p",
            "%n",
            "%ll",
        ] {
            assert_eq!(show(text, 7), text);
        }
        assert_eq!(show("%y%d", 7), "%y7");
    }

    #[test]
    fn shapes() {
        assert_eq!(Shape::of(b""), Shape::Constant);
        assert_eq!(Shape::of(b"abc"), Shape::Constant);
        assert_eq!(Shape::of(b"%s"), Shape::String);
        assert_eq!(Shape::of(b"%d secs"), Shape::Made { strings: false });
        assert_eq!(Shape::of(b"%d %-5s"), Shape::Made { strings: true });
        assert_eq!(Shape::of(b"%%s"), Shape::Made { strings: false });
    }

    #[test]
    fn what_is_long_is_cut() {
        let long = "%999999999d".repeat(100);
        let mut line = Line::new();
        write(long.as_bytes(), 1, &Some3, &mut line, 5000);
        assert_eq!(line.len(), 5000 + "<more>".len());
        assert!(line.as_bytes().ends_with(b" <more>"));
    }

    proptest! {
        #[test]
        fn any_format_is_bounded(format in "[%a-z0-9.# +-]{0,40}", value: u32) {
            let mut line = Line::new();
            write(format.as_bytes(), value, &Some3, &mut line, 100);
            prop_assert!(line.len() <= 106);
            if let Some(program) = Program::new(format.as_bytes()) {
                let mut other = Line::new();
                program.write(value, &Some3, &mut other, 100);
                prop_assert_eq!(other.as_bytes(), line.as_bytes());
            }
            if let Shape::Constant = Shape::of(format.as_bytes()) {
                prop_assert_eq!(line.as_bytes(), format.as_bytes());
            }
        }
    }
}
