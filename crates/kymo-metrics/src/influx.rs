//! InfluxDB's line protocol: lines `MEASUREMENT,TAG=VALUE FIELD=VALUE TIME`.
//!
//! Each field is a series `MEASUREMENT_FIELD`, or `MEASUREMENT` if the field is `value`, with the tags as labels.

use memchr::{memchr, memchr2};

use crate::{Fault, Key, KeyError, Kind, LONGEST_KEY, Number, Problem, Sink, float, nanoseconds};

/// The unit of times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Precision {
    /// Nanoseconds.
    #[default]
    Nanoseconds,
    /// Microseconds.
    Microseconds,
    /// Milliseconds.
    Milliseconds,
    /// Seconds.
    Seconds,
    /// Minutes.
    Minutes,
    /// Hours.
    Hours,
}

impl Precision {
    /// The precision of a name, as requests have it.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "ns" | "n" | "" => Self::Nanoseconds,
            "us" | "u" | "µ" => Self::Microseconds,
            "ms" => Self::Milliseconds,
            "s" => Self::Seconds,
            "m" => Self::Minutes,
            "h" => Self::Hours,
            _ => return None,
        })
    }

    const fn nanoseconds(self) -> i64 {
        match self {
            Self::Nanoseconds => 1,
            Self::Microseconds => 1_000,
            Self::Milliseconds => 1_000_000,
            Self::Seconds => 1_000_000_000,
            Self::Minutes => 60_000_000_000,
            Self::Hours => 3_600_000_000_000,
        }
    }
}

/// Parses lines; the last one needs no end. A `database` that is not empty becomes the label `db`. Returns the number
/// of fields that are texts, which cannot be kept and are not faults.
pub fn parse(text: &[u8], precision: Precision, database: &str, sink: &mut impl Sink) -> u64 {
    let mut parser = Parser {
        precision,
        database,
        texts: 0,
        raw: Vec::new(),
        key: Key::new(),
        fields: Vec::new(),
    };
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        let length = line_end(rest);
        let line = &rest[..length];
        let line = line.strip_suffix(b"\r").unwrap_or(line).trim_ascii_start();
        if !line.is_empty()
            && line[0] != b'#'
            && let Err(problem) = parser.line(line, sink)
        {
            sink.fault(Fault::new(at, problem, line));
        }
        at += length + 1;
    }
    parser.texts
}

/// Where a line ends: line ends in quotes are part of texts.
fn line_end(text: &[u8]) -> usize {
    let mut at = 0;
    while let Some(found) = memchr2(b'\n', b'"', &text[at..]) {
        at += found;
        if text[at] == b'\n' {
            return at;
        }
        // Quotes in names are bytes like others: only the values of fields are quoted.
        let is_value = at > 0 && text[at - 1] == b'=';
        at += 1;
        if is_value {
            match quote_end(&text[at..]) {
                Some(length) => at += length + 1,
                // Without an end, it is the line that is wrong, and not all that follow.
                None => return memchr(b'\n', text).unwrap_or(text.len()),
            }
        }
    }
    text.len()
}

/// Where the text behind a quote ends.
fn quote_end(text: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        at += memchr2(b'"', b'\\', text.get(at..)?)?;
        if text[at] == b'"' {
            return Some(at);
        }
        at += 2;
    }
}

struct Parser<'p> {
    precision: Precision,
    database: &'p str,
    texts: u64,
    raw: Vec<u8>,
    key: Key,
    /// Names of the fields of a line, and their values.
    fields: Vec<(std::ops::Range<usize>, Number)>,
}

impl Parser<'_> {
    fn line(&mut self, line: &[u8], sink: &mut impl Sink) -> Result<(), Problem> {
        let expected = Problem::Syntax("`MEASUREMENT,TAG=VALUE FIELD=VALUE TIME`");
        let name_end = find(line, |byte| byte == b' ').ok_or(expected)?;
        let name = &line[..name_end];
        // Escaped, each byte may be two. Each field has the name again, so that one without end would cost as much as
        // a body many times as long.
        if name_end > 2 * LONGEST_KEY {
            return Err(Problem::Name(KeyError::TooLong));
        }
        let behind = line[name_end..].trim_ascii_start();
        let offset = line.len() - behind.len();
        let fields_end = self.read_fields(line, offset)?;
        let time = line[fields_end..].trim_ascii();
        let time = match time {
            b"" => None,
            time => {
                let nanos = nanoseconds(time, self.precision.nanoseconds());
                Some(
                    nanos
                        .filter(|_| !time.contains(&b'.'))
                        .ok_or(Problem::Time)?,
                )
            }
        };
        self.raw.clear();
        self.raw.extend_from_slice(name);
        self.raw.push(b' ');
        let field_begin = self.raw.len();
        for place in 0..self.fields.len() {
            let (field, number) = self.fields[place].clone();
            // What the series is called by this sender.
            self.raw.truncate(field_begin);
            self.raw.extend_from_slice(&line[field.clone()]);
            self.raw.push(b'\n');
            self.raw.extend_from_slice(self.database.as_bytes());
            let series = match sink.find(&self.raw) {
                Some(series) => series,
                None => {
                    self.read_key(name, &line[field])?;
                    sink.series(&self.raw, &self.key, Kind::Gauge)
                }
            };
            sink.sample(series, time, number);
        }
        Ok(())
    }

    /// Reads fields from an offset on, and returns where they end.
    fn read_fields(&mut self, line: &[u8], offset: usize) -> Result<usize, Problem> {
        let expected = Problem::Syntax("`FIELD=VALUE`");
        self.fields.clear();
        let mut at = offset;
        let mut has_texts = false;
        loop {
            let rest = &line[at..];
            let equal = find(rest, |byte| matches!(byte, b'=' | b',' | b' ')).ok_or(expected)?;
            if equal == 0 || rest[equal] != b'=' {
                return Err(expected);
            }
            let name = at..at + equal;
            at += equal + 1;
            let value = &line[at..];
            let length = match value.strip_prefix(b"\"") {
                Some(text) => {
                    let end = quote_end(text).ok_or(Problem::Syntax("`\"` behind a text"))?;
                    self.texts += 1;
                    has_texts = true;
                    end + 2
                }
                None => {
                    let end = value.iter().position(|byte| matches!(byte, b',' | b' '));
                    let end = end.unwrap_or(value.len());
                    self.fields.push((name, number(&value[..end])?));
                    end
                }
            };
            at += length;
            match line.get(at) {
                Some(b',') => at += 1,
                Some(b' ') | None if has_texts || !self.fields.is_empty() => return Ok(at),
                _ => return Err(expected),
            }
        }
    }

    fn read_key(&mut self, name: &[u8], field: &[u8]) -> Result<(), Problem> {
        let mut parts = split(name);
        let measurement = unescape(parts.next().unwrap_or_default());
        if measurement.is_empty() {
            return Err(Problem::Syntax("the name of a measurement"));
        }
        self.key.begin(&measurement);
        let field = unescape(field);
        if *field != *b"value" {
            self.key.append_to_name(b"_");
            self.key.append_to_name(&field);
        }
        self.key.label(b"db", self.database.as_bytes());
        for tag in parts {
            let equal = find(tag, |byte| byte == b'=');
            let equal = equal.ok_or(Problem::Syntax("`,TAG=VALUE`"))?;
            let value = unescape(&tag[equal + 1..]);
            self.key.sanitized_label(&unescape(&tag[..equal]), &value);
        }
        self.key.finish().map_err(Problem::Name)
    }
}

fn number(text: &[u8]) -> Result<Number, Problem> {
    let integer = |digits: &[u8]| std::str::from_utf8(digits).ok()?.parse().ok();
    let number = match text {
        b"t" | b"T" | b"true" | b"True" | b"TRUE" => Some(Number::Signed(1)),
        b"f" | b"F" | b"false" | b"False" | b"FALSE" => Some(Number::Signed(0)),
        [digits @ .., b'i'] => integer(digits).map(Number::Signed),
        [digits @ .., b'u'] => std::str::from_utf8(digits)
            .ok()
            .and_then(|digits| digits.parse().ok())
            .map(Number::Unsigned),
        text => float(text).map(Number::Float),
    };
    number.ok_or(Problem::Number)
}

/// The first byte that is meant and not escaped.
fn find(text: &[u8], is_meant: impl Fn(u8) -> bool) -> Option<usize> {
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        match byte {
            b'\\' => at += 2,
            byte if is_meant(byte) => return Some(at),
            _ => at += 1,
        }
    }
    None
}

/// The parts between commas that are not escaped.
fn split(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let comma = find(text, |byte| byte == b',');
        rest = comma.map(|at| &text[at + 1..]);
        Some(&text[..comma.unwrap_or(text.len())])
    })
}

/// A name without the escapes of what would end it.
fn unescape(text: &[u8]) -> std::borrow::Cow<'_, [u8]> {
    if !text.contains(&b'\\') {
        return text.into();
    }
    let mut plain = Vec::with_capacity(text.len());
    let mut bytes = text.iter().peekable();
    while let Some(byte) = bytes.next() {
        match (byte, bytes.peek()) {
            (b'\\', Some(next @ (b',' | b' ' | b'=' | b'\\'))) => {
                plain.push(**next);
                bytes.next();
            }
            _ => plain.push(*byte),
        }
    }
    plain.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_sink::Collected;

    #[test]
    fn lines_are_samples() {
        let text = b"# comment\ncpu,host=a,cpu=0 idle=99.5,busy=1i 1600000000123456789\n\
            mem value=5u\nt\\ x,a\\,b=c\\=d,e=f on=true,text=\"a\\\"b\nc d=1,\",n=-1e3 7\n\
            quo\"te x=1 2\r\n  y,z=1 a=t\n";
        let found = Collected::of(|sink| {
            assert_eq!(parse(text, Precision::Nanoseconds, "", sink), 1);
        });
        assert_eq!(
            found.samples,
            [
                r#"cpu_idle{cpu="0",host="a"} 99.5 @1600000000123456789"#,
                r#"cpu_busy{cpu="0",host="a"} 1i @1600000000123456789"#,
                "mem 5u",
                r#"t x_on{a_b="c=d",e="f"} 1i @7"#,
                r#"t x_n{a_b="c=d",e="f"} -1000 @7"#,
                r#"quo\"te_x 1 @2"#.replace("\\\"", "\"").as_str(),
                r#"y_a{z="1"} 1i"#,
            ]
        );
        assert!(found.faults.is_empty(), "{:?}", found.faults);
        let text = b"cpu\ncpu idle\ncpu idle=\ncpu idle=x\ncpu idle=1 x\ncpu idle=1 1.5\n\
            ,a=b c=1\ncpu,a c=1\ncpu s=\"x\ncpu a=1 5\ncpu =1\ncpu a=1,\ncpu a=1i2";
        let found = Collected::of(|sink| {
            parse(text, Precision::Seconds, "d", sink);
        });
        assert_eq!(found.samples, [r#"cpu_a{db="d"} 1 @5000000000"#]);
        assert_eq!(found.faults.len(), 12, "{:#?}", found.faults);
    }
}
