//! Tables of comma-separated values (RFC 4180), and the times in them.

use std::borrow::Cow;

use jiff::Timestamp;
use kymo_rrd::Time;

/// The rows of a table, one after the other, each with the number of its first line.
pub(crate) struct Table<'a> {
    rest: &'a [u8],
    line: u64,
}

/// Why a table cannot be read on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OpenQuote {
    /// The line of the field that has no second quote.
    pub(crate) line: u64,
}

impl<'a> Table<'a> {
    pub(crate) fn new(text: &'a [u8]) -> Self {
        let rest = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
        Self { rest, line: 1 }
    }

    /// Reads the fields of the next row that is not empty, and returns its line. `None` at the end.
    pub(crate) fn next(
        &mut self,
        fields: &mut Vec<Cow<'a, [u8]>>,
    ) -> Result<Option<u64>, OpenQuote> {
        loop {
            fields.clear();
            if self.rest.is_empty() {
                return Ok(None);
            }
            let line = self.line;
            while self.field(fields)? {}
            self.line += 1;
            if !matches!(&fields[..], [only] if only.is_empty()) {
                return Ok(Some(line));
            }
        }
    }

    /// Reads a field, and returns whether another follows in the row.
    fn field(&mut self, fields: &mut Vec<Cow<'a, [u8]>>) -> Result<bool, OpenQuote> {
        let mut quoted = None;
        if let Some(mut rest) = self.rest.strip_prefix(b"\"") {
            let mut text = Vec::new();
            let line = self.line;
            loop {
                let quote = rest.iter().position(|byte| *byte == b'"');
                let quote = quote.ok_or(OpenQuote { line })?;
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

    fn read(text: &[u8]) -> Result<Vec<(u64, Vec<String>)>, OpenQuote> {
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
        assert_eq!(read(b"a\n\"b"), Err(OpenQuote { line: 2 }));
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
