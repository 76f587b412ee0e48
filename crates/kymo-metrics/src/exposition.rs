//! Prometheus' text format (0.0.4) and OpenMetrics, as targets show them.

use memchr::memchr;

use crate::{Fault, Key, Kind, Number, Problem, Sink, float, lines, nanoseconds};

/// Which of the formats a text has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Prometheus' own, with times in milliseconds.
    Prometheus,
    /// OpenMetrics, with times in seconds.
    OpenMetrics,
}

impl Format {
    /// The format that a `Content-Type` says.
    pub fn of_content_type(value: &str) -> Self {
        match value
            .trim_start()
            .starts_with("application/openmetrics-text")
        {
            true => Self::OpenMetrics,
            false => Self::Prometheus,
        }
    }
}

/// What is done with labels beside those of the text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TargetLabels {
    /// Labels that all series get, such as `job` and `instance`.
    pub labels: Vec<(String, String)>,
    /// Whether labels of the text with the same names stay; otherwise they are renamed `exported_...`.
    pub honor: bool,
    /// Whether times of the text are taken.
    pub honor_timestamps: bool,
}

/// Parses a text. Returns the number of samples.
pub fn parse(text: &[u8], format: Format, target: &TargetLabels, sink: &mut impl Sink) -> usize {
    let mut kinds = foldhash::HashMap::<&[u8], Kind>::default();
    let mut samples = 0;
    let mut parser = Parser {
        format,
        target,
        key: Key::new(),
        labels: Vec::new(),
    };
    for (offset, line) in lines(text) {
        let line = trim(line);
        if let Some(comment) = line.strip_prefix(b"#") {
            let mut words = comment.split(|byte| matches!(byte, b' ' | b'\t'));
            let mut words = words.by_ref().filter(|word| !word.is_empty());
            match words.next() {
                Some(b"TYPE") => {
                    if let (Some(name), Some(kind)) = (words.next(), words.next()) {
                        let kind = match kind {
                            b"counter" | b"histogram" | b"summary" => Kind::Counter,
                            _ => Kind::Gauge,
                        };
                        kinds.insert(name, kind);
                    }
                }
                Some(b"EOF") if format == Format::OpenMetrics => break,
                _ => {}
            }
            continue;
        }
        if line.is_empty() {
            continue;
        }
        match parser.line(line, &kinds, sink) {
            Ok(()) => samples += 1,
            Err(problem) => sink.fault(Fault::new(offset, problem, line)),
        }
    }
    samples
}

struct Parser<'p> {
    format: Format,
    target: &'p TargetLabels,
    key: Key,
    labels: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Parser<'_> {
    fn line(
        &mut self,
        line: &[u8],
        kinds: &foldhash::HashMap<&[u8], Kind>,
        sink: &mut impl Sink,
    ) -> Result<(), Problem> {
        let end = series_end(line)?;
        let (raw, rest) = line.split_at(end);
        let mut words = rest
            .split(|byte| matches!(byte, b' ' | b'\t'))
            .filter(|word| !word.is_empty());
        let value = words.next().ok_or(Problem::Number)?;
        let value = float(value).ok_or(Problem::Number)?;
        let unit = match self.format {
            Format::Prometheus => 1_000_000,
            Format::OpenMetrics => 1_000_000_000,
        };
        let time = match words.next() {
            // What follows is an exemplar.
            None => None,
            Some(word) if word.starts_with(b"#") => None,
            Some(word) => Some(nanoseconds(word, unit).ok_or(Problem::Time)?),
        };
        if let Some(more) = words.next()
            && !more.starts_with(b"#")
            && time.is_some()
        {
            return Err(Problem::Syntax("`NAME{LABELS} VALUE [TIME]`"));
        }
        let series = match sink.find(raw) {
            Some(series) => series,
            None => {
                let name = self.read(raw)?;
                let kind = kind_of(name, kinds);
                sink.series(raw, &self.key, kind)
            }
        };
        let time = time.filter(|_| self.target.honor_timestamps);
        sink.sample(series, time, Number::Float(value));
        Ok(())
    }

    /// Puts the key of a series together, with the labels of the target, and returns its name.
    fn read<'r>(&mut self, raw: &'r [u8]) -> Result<&'r [u8], Problem> {
        self.labels.clear();
        let name = read_series(raw, &mut self.labels)?;
        // Of quoted names, no types are known.
        let plain = memchr(b'{', raw).map_or(raw, |at| &raw[..at]);
        self.key.begin(&name);
        for (label, value) in &self.target.labels {
            let has = self.labels.iter().any(|(it, _)| it == label.as_bytes());
            if !(has && self.target.honor) {
                self.key.label(label.as_bytes(), value.as_bytes());
            }
        }
        for (label, value) in &self.labels {
            let mut targets = self.target.labels.iter();
            let clashes = targets.any(|(it, _)| it.as_bytes() == label);
            match clashes && !self.target.honor {
                true => self.key.label(&[b"exported_", &label[..]].concat(), value),
                false => self.key.label(label, value),
            }
        }
        self.key.finish().map_err(Problem::Name)?;
        Ok(trim(plain))
    }
}

/// What a series is, by the type of its family: `x_count` and similar are of the family `x`.
fn kind_of(name: &[u8], kinds: &foldhash::HashMap<&[u8], Kind>) -> Kind {
    if let Some(kind) = kinds.get(name) {
        // Quantiles of a summary have its name, and are levels.
        return match name.ends_with(b"_total") {
            true => Kind::Counter,
            false => *kind,
        };
    }
    let suffixes: [&[u8]; 4] = [b"_total", b"_count", b"_sum", b"_bucket"];
    let mut families = suffixes.iter().filter_map(|it| name.strip_suffix(*it));
    let kind = families.find_map(|family| kinds.get(family));
    kind.copied().unwrap_or(Kind::Gauge)
}

/// Where the name and labels of a line end.
fn series_end(line: &[u8]) -> Result<usize, Problem> {
    let blank = line
        .iter()
        .position(|byte| matches!(byte, b' ' | b'\t' | b'{'));
    let at = blank.ok_or(Problem::Syntax("`NAME{LABELS} VALUE [TIME]`"))?;
    // Blanks may stand before labels.
    let open = at + line[at..].len() - trim_start(&line[at..]).len();
    if line.get(open) != Some(&b'{') {
        return Ok(at);
    }
    let mut is_quoted = false;
    let mut bytes = line.iter().enumerate().skip(open);
    while let Some((place, byte)) = bytes.next() {
        match byte {
            b'\\' if is_quoted => {
                bytes.next();
            }
            b'"' => is_quoted = !is_quoted,
            b'}' if !is_quoted => return Ok(place + 1),
            _ => {}
        }
    }
    Err(Problem::Syntax("`}` after labels"))
}

/// Takes `NAME{LABEL="VALUE",...}` apart: returns the name, which may also stand in quotes among the labels.
pub(crate) fn read_series(
    text: &[u8],
    labels: &mut Vec<(Vec<u8>, Vec<u8>)>,
) -> Result<Vec<u8>, Problem> {
    let Some(open) = memchr(b'{', text) else {
        return Ok(trim(text).to_vec());
    };
    let mut name = trim(&text[..open]).to_vec();
    let inner = trim(&text[open + 1..]);
    let mut rest = inner
        .strip_suffix(b"}")
        .ok_or(Problem::Syntax("`}` after labels"))?;
    loop {
        rest = trim_start(rest);
        if rest.is_empty() {
            return Ok(name);
        }
        let expected = Problem::Syntax("`LABEL=\"VALUE\"`");
        let (label, after) = match rest.first() {
            Some(b'"') => quoted(rest)?,
            _ => {
                let end = rest
                    .iter()
                    .position(|byte| matches!(byte, b'=' | b',' | b' ' | b'\t' | b'"'))
                    .ok_or(expected)?;
                (rest[..end].to_vec(), &rest[end..])
            }
        };
        let after = trim_start(after);
        rest = match after.strip_prefix(b"=") {
            Some(value) => {
                let (value, after) = quoted(trim_start(value))?;
                labels.push((label, value));
                after
            }
            None if name.is_empty() && rest.starts_with(b"\"") => {
                name = label;
                after
            }
            None => return Err(expected),
        };
        rest = trim_start(rest);
        rest = match rest.strip_prefix(b",") {
            Some(after) => after,
            None if rest.is_empty() => rest,
            None => return Err(Problem::Syntax("`,` between labels")),
        };
    }
}

/// A text in quotes, and what follows it.
fn quoted(text: &[u8]) -> Result<(Vec<u8>, &[u8]), Problem> {
    let unquoted = Problem::Syntax("a text in double quotes");
    let text = text.strip_prefix(b"\"").ok_or(unquoted)?;
    let mut value = Vec::new();
    let mut bytes = text.iter().enumerate();
    while let Some((place, byte)) = bytes.next() {
        match byte {
            b'"' => return Ok((value, &text[place + 1..])),
            b'\\' => match bytes.next() {
                Some((_, b'n')) => value.push(b'\n'),
                Some((_, other @ (b'\\' | b'"'))) => value.push(*other),
                // As Prometheus reads it.
                Some((_, other)) => value.extend([b'\\', *other]),
                None => return Err(unquoted),
            },
            other => value.push(*other),
        }
    }
    Err(unquoted)
}

fn trim(text: &[u8]) -> &[u8] {
    text.trim_ascii()
}

fn trim_start(text: &[u8]) -> &[u8] {
    text.trim_ascii_start()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_sink::Collected;

    #[test]
    fn texts_are_samples() {
        let text = br#"# HELP http_requests_total Requests.
# TYPE http_requests_total counter
http_requests_total{method="post",code="200"} 1027 1395066363000
http_requests_total{method="a\"b\\c",} 3e1

# TYPE rpc summary
rpc{quantile="0.5"} NaN
rpc_sum 17
  temperature  {a = "x" , b="y"} -Inf
{"odd.name", c="}"} 1
bad
bad{a="x" 1
bad{a=x} 1
bad x
bad 1 x
bad 1 2 3
"#;
        let found = Collected::of(|sink| {
            let target = TargetLabels {
                honor_timestamps: true,
                ..TargetLabels::default()
            };
            assert_eq!(parse(text, Format::Prometheus, &target, sink), 6);
        });
        assert_eq!(
            found.samples,
            [
                r#"http_requests_total{code="200",method="post"} 1027 counter @1395066363000000000"#,
                r#"http_requests_total{method="a\"b\\c"} 30 counter"#,
                r#"rpc{quantile="0.5"} NaN counter"#,
                "rpc_sum 17 counter",
                r#"temperature{a="x",b="y"} -inf"#,
                r#"odd.name{c="}"} 1"#,
            ]
        );
        assert_eq!(found.faults.len(), 6, "{:#?}", found.faults);
    }

    #[test]
    fn open_metrics_has_seconds_and_an_end() {
        let text = b"# TYPE a counter\na_total{le=\"1\"} 5 1.5 # {trace=\"x\"} 0.1\na_total 6 # {x=\"y\"} 1 2\n# EOF\nb 1\n";
        let target = TargetLabels {
            labels: vec![("job".into(), "j".into()), ("le".into(), "x".into())],
            honor: false,
            honor_timestamps: true,
        };
        let found = Collected::of(|sink| {
            parse(text, Format::OpenMetrics, &target, sink);
        });
        assert_eq!(
            found.samples,
            [
                r#"a_total{exported_le="1",job="j",le="x"} 5 counter @1500000000"#,
                r#"a_total{job="j",le="x"} 6 counter"#,
            ]
        );
        let honored = TargetLabels {
            honor: true,
            honor_timestamps: false,
            ..target
        };
        let found = Collected::of(|sink| {
            parse(text, Format::OpenMetrics, &honored, sink);
        });
        assert_eq!(found.samples[0], r#"a_total{job="j",le="1"} 5 counter"#);
        assert!(found.faults.is_empty());
    }
}
