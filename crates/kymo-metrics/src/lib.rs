//! Protocols of metrics, as functions over bytes: Graphite's lines, StatsD, InfluxDB's line protocol, Prometheus'
//! remote write and text formats, OpenTelemetry's OTLP.
//!
//! Each parser gives what it finds to a [`Sink`]: series with their names and labels, samples, and faults. A
//! series is described once: a parser first asks the sink for the bytes by which the sender names it
//! ([`Sink::find`]), and takes them apart only if the sink does not know them.
//!
//! ```
//! use kymo_metrics::{Fault, Key, Kind, Number, Sink, graphite};
//!
//! #[derive(Default)]
//! struct Printer(Vec<String>);
//!
//! impl Sink for Printer {
//!     fn find(&mut self, _: &[u8]) -> Option<usize> {
//!         None
//!     }
//!     fn series(&mut self, _: &[u8], key: &Key, _: Kind) -> usize {
//!         self.0.push(key.to_string());
//!         self.0.len() - 1
//!     }
//!     fn sample(&mut self, series: usize, time: Option<i64>, value: Number) {
//!         self.0[series] += &format!(" {} {time:?}", value.to_f64());
//!     }
//!     fn fault(&mut self, fault: Fault<'_>) {
//!         panic!("{fault}");
//!     }
//! }
//!
//! let mut printer = Printer::default();
//! graphite::parse(b"web1.load;dc=east 0.5 1600000000\n", &mut printer);
//! assert_eq!(printer.0, [r#"web1.load{dc="east"} 0.5 Some(1600000000000000000)"#]);
//! ```

mod decimal;
mod key;

pub mod exposition;
pub mod graphite;
pub mod influx;
pub mod otlp;
mod protobuf;
pub mod remote_write;
pub mod statsd;

use std::fmt;

pub use decimal::nanoseconds;
pub use key::{Key, KeyError, LONGEST_KEY, MOST_LABELS};

/// A value as it was sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// With a fraction, or without; NaN if it is not known.
    Float(f64),
    /// An integer.
    Signed(i64),
    /// An integer that is not negative.
    Unsigned(u64),
}

impl Number {
    /// The nearest double.
    pub fn to_f64(self) -> f64 {
        match self {
            Self::Float(number) => number,
            Self::Signed(number) => number as f64,
            Self::Unsigned(number) => number as f64,
        }
    }
}

/// What the values of a series are, as far as the protocol says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Levels, or nothing is known of them.
    Gauge,
    /// Counts since some beginning.
    Counter,
    /// Counts since the sample before.
    Delta,
}

/// What takes samples.
pub trait Sink {
    /// The series that the sender names by these bytes, if it is known by them.
    fn find(&mut self, raw: &[u8]) -> Option<usize>;

    /// The series of a name and labels, to be found by these bytes from now on.
    fn series(&mut self, raw: &[u8], key: &Key, kind: Kind) -> usize;

    /// Takes a sample of a series that was returned before, with its time in nanoseconds since 1970; without one it
    /// is of now.
    fn sample(&mut self, series: usize, time: Option<i64>, value: Number);

    /// Something cannot be taken.
    fn fault(&mut self, fault: Fault<'_>);
}

/// Something that cannot be taken, and where it is. To make one costs nothing: its text is made where it is shown, since
/// a body may have millions of faults, of which a sender gets a few.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault<'f> {
    /// The offset in bytes, from the beginning of what was parsed.
    pub offset: usize,
    /// What is wrong.
    pub problem: Problem,
    /// What was found there.
    pub found: &'f [u8],
}

/// Bytes of what was found that a fault shows.
const SHOWN: usize = 80;

impl<'f> Fault<'f> {
    /// A fault at an offset, where these bytes are.
    pub const fn new(offset: usize, problem: Problem, found: &'f [u8]) -> Self {
        Self {
            offset,
            problem,
            found,
        }
    }
}

impl Fault<'_> {
    /// What is wrong and what was found, without its place.
    pub fn text(&self) -> impl fmt::Display + '_ {
        fmt::from_fn(|f| self.write(f))
    }

    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.problem, f)?;
        if self.found.is_empty() {
            return Ok(());
        }
        let begin = &self.found[..self.found.len().min(SHOWN)];
        let begin = String::from_utf8_lossy(begin);
        let more = if self.found.len() > SHOWN { "..." } else { "" };
        write!(f, ", found `{}{more}`", kymo_text::visible(&begin))
    }
}

impl fmt::Display for Fault<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at byte {}: ", self.offset)?;
        self.write(f)
    }
}

/// What is wrong with something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Problem {
    /// The syntax: what was expected.
    Syntax(&'static str),
    /// A name or labels that cannot be kept.
    Name(KeyError),
    /// A number.
    Number,
    /// A time: it is not a number, or outside of the years 1677 to 2262.
    Time,
    /// Something that the protocol has and databases cannot keep: what it is.
    Unsupported(&'static str),
    /// Compressed or structured data that ends too early, or has lengths that cannot be.
    Damaged(&'static str),
}

impl Problem {
    /// A short name of its kind, for metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Syntax(_) => "syntax",
            Self::Name(_) => "name",
            Self::Number => "number",
            Self::Time => "time",
            Self::Unsupported(_) => "unsupported",
            Self::Damaged(_) => "damaged",
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syntax(expected) => write!(f, "expected {expected}"),
            Self::Name(error) => error.fmt(f),
            Self::Number => f.write_str("expected a number"),
            Self::Time => f.write_str("expected a time since 1970"),
            Self::Unsupported(what) => write!(f, "{what} cannot be kept"),
            Self::Damaged(what) => f.write_str(what),
        }
    }
}

/// A number as it is written in text: `inf`, `nan` and exponents included.
fn float(text: &[u8]) -> Option<f64> {
    // Whoever writes more digits does not mean a number.
    let text = text.get(..text.len().min(400))?;
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// The lines of a text with their offsets, without their ends; empty ones are left out.
fn lines(text: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let mut at = 0;
    std::iter::from_fn(move || {
        while at < text.len() {
            let rest = &text[at..];
            let length = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
            let (offset, line) = (at, &rest[..length]);
            at += length + 1;
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if !line.is_empty() {
                return Some((offset, line));
            }
        }
        None
    })
}

/// A sink that keeps what it gets as text.
#[cfg(test)]
pub(crate) mod test_sink {
    use super::*;

    #[derive(Debug, Default)]
    pub(crate) struct Collected {
        keys: Vec<(Vec<u8>, Key, Kind)>,
        pub(crate) samples: Vec<String>,
        pub(crate) faults: Vec<String>,
    }

    impl Collected {
        pub(crate) fn of(parse: impl FnOnce(&mut Self)) -> Self {
            let mut sink = Self::default();
            parse(&mut sink);
            sink
        }
    }

    impl Sink for Collected {
        fn find(&mut self, raw: &[u8]) -> Option<usize> {
            self.keys.iter().position(|(known, ..)| known == raw)
        }

        fn series(&mut self, raw: &[u8], key: &Key, kind: Kind) -> usize {
            self.keys.push((raw.to_vec(), key.clone(), kind));
            self.keys.len() - 1
        }

        fn sample(&mut self, series: usize, time: Option<i64>, value: Number) {
            let (_, key, kind) = &self.keys[series];
            let time = time.map_or(String::new(), |time| format!(" @{time}"));
            let kind = match kind {
                Kind::Gauge => "",
                Kind::Counter => " counter",
                Kind::Delta => " delta",
            };
            let value = match value {
                Number::Float(value) => value.to_string(),
                Number::Signed(value) => format!("{value}i"),
                Number::Unsigned(value) => format!("{value}u"),
            };
            self.samples.push(format!("{key} {value}{kind}{time}"));
        }

        fn fault(&mut self, fault: Fault<'_>) {
            self.faults.push(fault.to_string());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_their_offsets() {
        let found: Vec<_> = lines(b"a\r\n\nbc\nd").collect();
        assert_eq!(found, [(0, &b"a"[..]), (4, b"bc"), (7, b"d")]);
    }
}
