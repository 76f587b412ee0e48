//! StatsD: lines `NAME:VALUE|TYPE`, with sample rates (`|@0.1`) and tags (`|#tag:value`), and their sums over an
//! interval.

mod aggregate;

use crate::{Fault, Key, Problem, float, lines};

pub use aggregate::{Aggregator, AggregatorOptions};

/// What is done with a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Metric {
    /// It is added.
    Counter,
    /// It replaces the one before.
    Gauge,
    /// It is added to the one before.
    GaugeChange,
    /// It is one of a distribution.
    Timer,
    /// It is one of a set.
    Set,
}

/// A value of a line.
#[derive(Clone, Debug, PartialEq)]
pub struct Value<'a> {
    /// What is done with it.
    pub metric: Metric,
    /// The number; 0 of sets.
    pub number: f64,
    /// The text, as it was written.
    pub text: &'a [u8],
    /// The part of all that was sent, above 0 and at most 1.
    pub rate: f64,
}

/// Parses the lines of a datagram, or of a connection; the last one needs no end. `take` gets each value with its name
/// and tags.
pub fn parse(
    text: &[u8],
    take: &mut impl FnMut(&Key, &Value<'_>),
    fault: &mut impl FnMut(Fault<'_>),
) {
    let mut key = Key::new();
    for (offset, line) in lines(text) {
        if let Err(problem) = parse_line(line, &mut key, take) {
            fault(Fault::new(offset, problem, line));
        }
    }
}

/// Parses a line without its end.
///
/// # Errors
///
/// What is wrong with it; values before it are taken.
pub fn parse_line(
    line: &[u8],
    key: &mut Key,
    take: &mut impl FnMut(&Key, &Value<'_>),
) -> Result<(), Problem> {
    if line.starts_with(b"_e{") {
        return Err(Problem::Unsupported("an event"));
    }
    if line.starts_with(b"_sc|") {
        return Err(Problem::Unsupported("a service check"));
    }
    let expected = Problem::Syntax("`NAME:VALUE|TYPE`");
    let mut sections = line.split(|byte| *byte == b'|');
    let head = sections.next().unwrap_or_default();
    // Names may have colons in tags only.
    let colon = memchr::memchr(b':', head).ok_or(expected)?;
    let (name, values) = (&head[..colon], &head[colon + 1..]);
    let kind = sections.next().ok_or(expected)?;
    let mut rate = 1.0;
    let mut tags = &b""[..];
    for section in sections {
        match section.split_first() {
            Some((b'@', number)) => {
                let number = float(number).filter(|rate| *rate > 0.0 && *rate <= 1.0);
                rate = number.ok_or(Problem::Syntax("a sample rate above 0 and at most 1"))?;
            }
            Some((b'#', list)) => tags = list,
            // Identifiers of containers, and times: those of the flush are kept.
            Some((b'c' | b'T' | b'e', _)) | None => {}
            _ => return Err(Problem::Syntax("`@RATE` or `#TAG:VALUE`")),
        }
    }
    crate::graphite::read_path(name, key)?;
    for tag in tags.split(|byte| *byte == b',').filter(|it| !it.is_empty()) {
        let (name, value) = match memchr::memchr(b':', tag) {
            Some(at) => (&tag[..at], &tag[at + 1..]),
            None => (tag, &b"true"[..]),
        };
        key.sanitized_label(name, value);
    }
    key.finish().map_err(Problem::Name)?;
    if kind == b"s" {
        let value = Value {
            metric: Metric::Set,
            number: 0.0,
            text: values,
            rate,
        };
        take(key, &value);
        return Ok(());
    }
    for text in values.split(|byte| *byte == b':') {
        let is_signed = matches!(text.first(), Some(b'+' | b'-'));
        let metric = match kind {
            b"c" | b"m" => Metric::Counter,
            b"g" if is_signed => Metric::GaugeChange,
            b"g" => Metric::Gauge,
            b"ms" | b"h" | b"d" => Metric::Timer,
            _ => return Err(Problem::Syntax("a type c, g, ms, h, d or s")),
        };
        let number = float(text).filter(|number| number.is_finite());
        let value = Value {
            metric,
            number: number.ok_or(Problem::Number)?,
            text,
            rate,
        };
        take(key, &value);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_values() {
        let text = b"a.b:1|c\na:-2.5|g\na:3|g\nt:1:2|ms|@0.5|#host:x,flag\nu:me|s\n\
            x\nx:1\nx:y|c\nx:1|q\nx:1|c|@2\n_e{1,1}:a|b\n:1|c";
        let (mut values, mut faults) = (Vec::new(), Vec::new());
        parse(
            text,
            &mut |key, value| {
                let Value {
                    metric,
                    number,
                    rate,
                    ..
                } = value;
                values.push(format!("{key} {metric:?} {number} {rate}"));
            },
            &mut |fault| faults.push(fault.problem),
        );
        assert_eq!(
            values,
            [
                "a.b Counter 1 1",
                "a GaugeChange -2.5 1",
                "a Gauge 3 1",
                r#"t{flag="true",host="x"} Timer 1 0.5"#,
                r#"t{flag="true",host="x"} Timer 2 0.5"#,
                "u Set 0 1",
            ]
        );
        let names: Vec<_> = faults.iter().map(|problem| problem.name()).collect();
        assert_eq!(
            names,
            [
                "syntax",
                "syntax",
                "number",
                "syntax",
                "syntax",
                "unsupported",
                "name"
            ]
        );
    }
}
