//! Tables of comma-separated values (RFC 4180), and the times in them.

use std::borrow::Cow;

use jiff::Timestamp;
use kymo_rrd::Time;

/// The rows of a table, one after the other, each with the number of its first line.
pub(crate) struct Table<'a> {
    rest: &'a [u8],
    line: u64,
}

/// Fields of a row, which take memory.
const MOST_FIELDS: usize = 1 << 16;
/// Bytes of a field between quotes, which take memory.
const LONGEST_QUOTED: usize = 1 << 20;

/// Why a table cannot be read on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BadRow {
    /// The line where the row or the field begins.
    pub(crate) line: u64,
    /// What was found and expected.
    pub(crate) problem: &'static str,
}

impl<'a> Table<'a> {
    pub(crate) fn new(text: &'a [u8]) -> Self {
        let rest = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
        Self { rest, line: 1 }
    }

    /// Reads the fields of the next row that is not empty, and returns its line. `None` at the end.
    pub(crate) fn next(&mut self, fields: &mut Vec<Cow<'a, [u8]>>) -> Result<Option<u64>, BadRow> {
        loop {
            fields.clear();
            if self.rest.is_empty() {
                return Ok(None);
            }
            let line = self.line;
            let mut more = true;
            while more {
                more = self.field(fields)?;
                if fields.len() > MOST_FIELDS {
                    let problem = "found another field, expected 65,536 at most";
                    return Err(BadRow { line, problem });
                }
            }
            self.line += 1;
            if !matches!(&fields[..], [only] if only.is_empty()) {
                return Ok(Some(line));
            }
        }
    }

    /// Reads a field, and returns whether another follows in the row.
    fn field(&mut self, fields: &mut Vec<Cow<'a, [u8]>>) -> Result<bool, BadRow> {
        let mut quoted = None;
        if let Some(mut rest) = self.rest.strip_prefix(b"\"") {
            let mut text = Vec::new();
            let line = self.line;
            loop {
                let quote = rest.iter().position(|byte| *byte == b'"');
                let problem = "found a quote, expected another after it";
                let quote = quote.ok_or(BadRow { line, problem })?;
                if text.len() + quote > LONGEST_QUOTED {
                    let problem = "found a field between quotes of more than 1 MiB, expected less";
                    return Err(BadRow { line, problem });
                }
                let lines = rest[..quote].iter().filter(|byte| **byte == b'\n');
                self.line += lines.count() as u64;
                text.extend_from_slice(&rest[..quote]);
                rest = &rest[quote + 1..];
                let Some(after) = rest.strip_prefix(b"\"") else {
                    break;
                };
                text.push(b'"');
                rest = after;
            }
            quoted = Some(text);
            self.rest = rest;
        }
        let ends = |byte: &u8| matches!(byte, b',' | b'\n');
        let end = self.rest.iter().position(ends).unwrap_or(self.rest.len());
        let (plain, rest) = self.rest.split_at(end);
        let more = rest.first() == Some(&b',');
        self.rest = rest.get(1..).unwrap_or_default();
        let plain = match more {
            true => plain,
            false => plain.strip_suffix(b"\r").unwrap_or(plain),
        };
        fields.push(match quoted {
            Some(mut text) => {
                text.extend_from_slice(plain);
                Cow::Owned(text)
            }
            None => Cow::Borrowed(plain),
        });
        // A comma at the very end has an empty field behind it.
        if more && self.rest.is_empty() {
            fields.push(Cow::Borrowed(b""));
            return Ok(false);
        }
        Ok(more)
    }
}

/// Numbers above this are nanoseconds, not seconds.
const MOST_SECONDS: u64 = 100_000_000_000_000;

/// The time that a field specifies: seconds since 1970 with or without a fraction, nanoseconds since
/// 1970, or a date and time of RFC 3339.
pub(crate) fn time(field: &[u8]) -> Option<Time> {
    let text = std::str::from_utf8(field).ok()?.trim();
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(fraction) {
        let time: Timestamp = text.parse().ok()?;
        let micros = u32::try_from(time.subsec_microsecond()).ok()?;
        return Time::from_micros(time.as_second(), micros);
    }
    let number: u64 = whole.parse().ok()?;
    if number >= MOST_SECONDS {
        let micros = u32::try_from(number % 1_000_000_000 / 1000).ok()?;
        return Time::from_micros(i64::try_from(number / 1_000_000_000).ok()?, micros);
    }
    let mut micros = 0;
    for place in 0..6 {
        let digit = fraction
            .as_bytes()
            .get(place)
            .map_or(0, |digit| digit - b'0');
        micros = micros * 10 + u32::from(digit);
    }
    Time::from_micros(i64::try_from(number).ok()?, micros)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &[u8]) -> Result<Vec<(u64, Vec<String>)>, BadRow> {
        let mut table = Table::new(text);
        let (mut rows, mut fields) = (Vec::new(), Vec::new());
        while let Some(line) = table.next(&mut fields)? {
            let texts = fields
                .iter()
                .map(|it| String::from_utf8_lossy(it).into_owned());
            rows.push((line, texts.collect()));
        }
        Ok(rows)
    }

    #[test]
    fn rows_and_fields() {
        let text = b"\xef\xbb\xbfa,b\r\n\n1,\"x \"\"y\"\",\n2\"\n,\nlast,";
        let row = |line, fields: [&str; 2]| (line, fields.map(str::to_owned).to_vec());
        let rows = [
            row(1, ["a", "b"]),
            row(3, ["1", "x \"y\",\n2"]),
            row(5, ["", ""]),
            row(6, ["last", ""]),
        ];
        assert_eq!(read(text).unwrap(), rows);
        let line_of = |text: &[u8]| read(text).map_err(|row| row.line);
        assert_eq!(line_of(b"a\n\"b"), Err(2));
        let many = |count: usize| format!("a\n{}", ",".repeat(count - 1));
        assert_eq!(line_of(many(MOST_FIELDS + 1).as_bytes()), Err(2));
        assert!(read(many(MOST_FIELDS).as_bytes()).is_ok());
        let quoted = format!("\"{}\"", "x".repeat(LONGEST_QUOTED + 1));
        assert_eq!(line_of(quoted.as_bytes()), Err(1));
    }

    #[test]
    fn times() {
        let micros = |seconds, micros| Time::from_micros(seconds, micros);
        for (text, time) in [
            ("1600000000", micros(1_600_000_000, 0)),
            (" 1600000000.25 ", micros(1_600_000_000, 250_000)),
            ("1600000000.1234567", micros(1_600_000_000, 123_456)),
            ("1600000000000000500", micros(1_600_000_000, 0)),
            ("1600000000000007000", micros(1_600_000_000, 7)),
            ("2020-09-13T12:26:40Z", micros(1_600_000_000, 0)),
            (
                "2020-09-13T14:26:40.5+02:00",
                micros(1_600_000_000, 500_000),
            ),
            ("", None),
            ("-5", None),
            ("yesterday", None),
            ("1.x", None),
        ] {
            assert_eq!(super::time(text.as_bytes()), time, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text(text: Vec<u8>) {
            let _ = read(&text);
            let _ = time(&text);
        }
    }
}
