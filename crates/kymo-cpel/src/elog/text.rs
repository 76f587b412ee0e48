//! Formats of elog events, which are those of VPP's own library and not quite those of C.
//!
//! A conversion is `%`, a side to which the text is put (`-` left, `+` right, `=` the middle),
//! a width, a precision, a length and a letter. What is wider than the width is cut. A width that
//! begins with 0 fills up with zeros. Each conversion shows the next argument.

use std::fmt::Write as _;

use kymo_text::Line;

use super::{Argument, ArgumentKind, EventType, Log, Reader, Value};
use crate::format::{MOST_TEXT, bad_offset};

/// The largest width and precision that are followed.
const MOST_WIDTH: usize = 4096;
/// The largest number of digits in scientific notation.
const MOST_DIGITS: usize = 15;

/// A conversion of a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Conversion {
    /// Where it begins and ends in the format.
    begin: usize,
    end: usize,
    side: u8,
    width: usize,
    precision: Option<usize>,
    zeros: bool,
    /// Its letter.
    pub(super) letter: u8,
}

/// The first conversion of a format from a position on.
pub(super) fn next_conversion(format: &[u8], from: usize) -> Option<Conversion> {
    let mut begin = from;
    loop {
        begin += memchr::memchr(b'%', format.get(begin..)?)?;
        match format.get(begin + 1) {
            // It stands for itself.
            Some(b'%') => begin += 2,
            _ => return conversion(format, begin),
        }
    }
}

fn conversion(format: &[u8], begin: usize) -> Option<Conversion> {
    let mut at = begin + 1;
    let byte = |at: usize| format.get(at).copied();
    let side = match byte(at) {
        Some(side @ (b'-' | b'+' | b'=')) => {
            at += 1;
            side
        }
        _ => b'+',
    };
    let zeros = byte(at) == Some(b'0');
    let number = |at: &mut usize| {
        let mut number = 0;
        while let Some(digit @ b'0'..=b'9') = byte(*at) {
            number = (number * 10 + usize::from(digit - b'0')).min(MOST_WIDTH);
            *at += 1;
        }
        number
    };
    let width = number(&mut at);
    let precision = (byte(at) == Some(b'.')).then(|| {
        at += 1;
        number(&mut at)
    });
    while let Some(b'w' | b'l' | b'L') = byte(at) {
        at += 1;
    }
    let letter = byte(at)?;
    Some(Conversion {
        begin,
        end: at + 1,
        side,
        width,
        precision,
        zeros,
        letter,
    })
}

/// The name that events of a format go by: what comes before the first blank, parenthesis or
/// conversion; where that is nothing, the whole format. And where in the text of an event
/// the rest begins.
pub fn event_name(format: &[u8]) -> (&[u8], usize) {
    let is_end = |byte: &u8| matches!(byte, b' ' | b'(' | b'%');
    let Some(end) = format.iter().position(is_end) else {
        return (format, format.len());
    };
    let rest = end + usize::from(format[end] != b'%');
    (&format[..end], rest)
}

/// Appends the text of an event. `arguments` is at its arguments, and moves behind them; `piece` is
/// room to work in. `None` where the file ends in them.
pub(crate) fn write(
    log: &Log,
    kind: &EventType,
    arguments: &mut Reader<'_>,
    out: &mut Line,
    piece: &mut Line,
) -> Option<()> {
    let format = &arguments.bytes[kind.format.clone()];
    let begin = out.len();
    let mut at = 0;
    for &argument in &kind.arguments {
        let value = arguments.value(argument)?;
        let Some(conversion) = next_conversion(format, at) else {
            continue;
        };
        literal(&format[at..conversion.begin], out);
        at = conversion.end;
        // Arguments that are many and long could make any amount of text.
        if out.len() - begin > MOST_TEXT {
            continue;
        }
        if conversion.width == 0 {
            conversion.value(log, kind, argument, value, arguments.bytes, out);
        } else {
            piece.clear();
            conversion.value(log, kind, argument, value, arguments.bytes, piece);
            conversion.justify(piece.as_bytes(), out);
        }
    }
    literal(&format[at..], out);
    Some(())
}

/// Appends what is between conversions: two percent signs are one.
fn literal(text: &[u8], out: &mut Line) {
    let mut rest = text;
    while let Some(at) = memchr::memmem::find(rest, b"%%") {
        out.push(&rest[..=at]);
        rest = &rest[at + 2..];
    }
    out.push(rest);
}

impl Conversion {
    /// Where it ends in the format.
    pub(super) const fn end(&self) -> usize {
        self.end
    }

    /// Appends a value, as long as it is.
    fn value(
        &self,
        log: &Log,
        kind: &EventType,
        argument: Argument,
        value: Value<'_>,
        bytes: &[u8],
        out: &mut Line,
    ) {
        match (argument.kind, value) {
            (ArgumentKind::Label, Value::Integer(number)) => {
                let label = usize::try_from(number).ok();
                match label.and_then(|label| kind.labels.get(label)) {
                    Some(label) => self.string(&bytes[label.clone()], out),
                    None => out.decimal(number),
                }
            }
            (ArgumentKind::Table, Value::Integer(offset)) => match log.string(bytes, offset) {
                Some(text) => self.string(text, out),
                None => bad_offset(u32::try_from(offset).unwrap_or(u32::MAX), out),
            },
            (_, Value::Integer(number)) => self.integer(number, argument.size, out),
            (_, Value::Float(number)) => self.float(number, out),
            (_, Value::Text(text)) => self.string(text, out),
        }
    }

    fn string(&self, text: &[u8], out: &mut Line) {
        let most = self.precision.unwrap_or(MOST_TEXT).min(MOST_TEXT);
        // Strings within events may have a zero at their end.
        let end = memchr::memchr(0, text).unwrap_or(text.len());
        out.push(&text[..end.min(most)]);
    }

    fn integer(&self, number: u64, size: u8, out: &mut Line) {
        match self.letter {
            b'd' | b'i' => out.signed(signed(number, size)),
            b'x' | b'X' => {
                let text = |out: &mut Line| match self.letter {
                    b'x' => write!(out, "{number:x}"),
                    _ => write!(out, "{number:X}"),
                };
                let _ = text(out);
            }
            b'o' => {
                let _ = write!(out, "{number:o}");
            }
            b'p' => {
                let _ = write!(out, "0x{number:x}");
            }
            b'c' => out.push_byte(number as u8),
            _ => out.decimal(number),
        }
    }

    fn float(&self, number: f64, out: &mut Line) {
        let digits = self.precision.unwrap_or(6);
        let is_huge = number != 0.0 && !(1e-10..1e10).contains(&number.abs());
        if !number.is_finite() || self.letter == b'e' || (self.letter == b'g' && is_huge) {
            return out.scientific(number, digits.min(MOST_DIGITS));
        }
        let _ = write!(out, "{number:.digits$}");
    }

    /// Appends a text at its side of as many bytes as the width says.
    fn justify(&self, text: &[u8], out: &mut Line) {
        if text.len() >= self.width {
            return out.push(&text[..self.width]);
        }
        let missing = self.width - text.len();
        let left = match self.side {
            b'-' => 0,
            b'+' => missing,
            _ => missing.div_ceil(2),
        };
        let pad = if self.zeros { b'0' } else { b' ' };
        (0..left).for_each(|_| out.push_byte(pad));
        out.push(text);
        (left..missing).for_each(|_| out.push_byte(pad));
    }
}

/// An integer of some bytes as a signed one. One and two bytes are never negative: VPP reads
/// them as unsigned.
pub(super) fn signed(number: u64, size: u8) -> i64 {
    match size {
        4 => i64::from(number as u32 as i32),
        _ => number as i64,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Log, Moment};
    use super::*;

    /// The text of an event whose type has this format and these arguments.
    fn show(format: &str, arguments: &str, data: &[u8]) -> String {
        let strings = b"one\0two\0";
        let labels = b"REDGREEN";
        let mut bytes = format.as_bytes().to_vec();
        let place = |bytes: &mut Vec<u8>, text: &[u8]| {
            let begin = bytes.len();
            bytes.extend(text);
            begin..bytes.len()
        };
        let strings = place(&mut bytes, strings);
        let labels = place(&mut bytes, labels).start;
        let kind = EventType {
            format: 0..format.len(),
            arguments: super::super::arguments(arguments.as_bytes()).unwrap(),
            labels: vec![labels..labels + 3, labels + 3..labels + 8],
        };
        let log = Log {
            ring_size: 0,
            saved: Moment::default(),
            begin: Moment::default(),
            types: Vec::new(),
            tracks: Vec::new(),
            strings,
            events: 1,
            offset: 0,
            passed_over: Vec::new(),
        };
        let at = bytes.len();
        bytes.extend(data);
        let (mut out, mut piece) = (Line::new(), Line::new());
        let mut reader = Reader::new(&bytes, at);
        write(&log, &kind, &mut reader, &mut out, &mut piece).unwrap();
        assert_eq!(reader.at, bytes.len());
        String::from_utf8_lossy(out.as_bytes()).into_owned()
    }

    #[test]
    fn each_conversion_shows_the_next_argument() {
        let two = [0, 0, 0, 1, 0xff, 0xff, 0xff, 0xfd];
        assert_eq!(show("rx(%d): %d", "i4i4", &two), "rx(1): -3");
        assert_eq!(show("%u %x", "i4i4", &two), "1 fffffffd");
        assert_eq!(
            show("%d%% %d %X", "i1i1i2", &[255, 7, 0xab, 0xcd]),
            "255% 7 ABCD"
        );
        assert_eq!(
            show(
                "%lld %Lu",
                "i8i8",
                &[0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 0]
            ),
            "8589934593 3"
        );
        assert_eq!(show("%s and %s", "t1T4", &[1, 0, 0, 0, 4]), "GREEN and two");
        assert_eq!(
            show("%s, %s", "t1T1", &[2, 8]),
            "2, <bad strtab offset 0x8>"
        );
        assert_eq!(show("%s!", "s", &[7, b'a', b'b', b'c']), "abc!");
        assert_eq!(show("%.2f", "f4", &0.25f32.to_be_bytes()), "0.25");
        let [low, high] = [
            &1.5f64.to_bits().to_be_bytes()[4..],
            &1.5f64.to_bits().to_be_bytes()[..4],
        ];
        assert_eq!(show("%f", "f8", &[low, high].concat()), "1.500000");
        assert_eq!(show("more %d", "i1i1", &[1, 2]), "more 1");
        assert_eq!(show("less %d %d", "i1", &[1]), "less 1 %d");
    }

    #[test]
    fn widths_are_exact() {
        let text = &[9, b'a', b'b', b'c', b'd'];
        assert_eq!(show("<%7s>", "s", text), "<   abcd>");
        assert_eq!(show("<%-7s>", "s", text), "<abcd   >");
        assert_eq!(show("<%=7s>", "s", text), "<  abcd >");
        assert_eq!(show("<%2s>", "s", text), "<ab>");
        assert_eq!(show("<%.3s>", "s", text), "<abc>");
        assert_eq!(show("%04x", "i2", &[0, 0xab]), "00ab");
    }

    #[test]
    fn names_end_where_the_text_begins() {
        assert_eq!(event_name(b"rx(%d): %d"), (&b"rx"[..], 3));
        assert_eq!(event_name(b"0: t%d"), (&b"0:"[..], 3));
        assert_eq!(event_name(b"a%d b"), (&b"a"[..], 1));
        assert_eq!(event_name(b"%s"), (&b""[..], 0));
        assert_eq!(event_name(b"plain"), (&b"plain"[..], 5));
    }
}
