//! Prometheus' remote write: the messages of versions 1 and 2, which were compressed by Snappy.

use crate::protobuf::{Damaged, Field, Message, integers};
use crate::{Fault, Key, Kind, LONGEST_KEY, MOST_LABELS, Number, Problem, Sink};

/// The version of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// `prometheus.WriteRequest`.
    V1,
    /// `io.prometheus.write.v2.Request`.
    V2,
}

impl Version {
    /// The version that a `Content-Type` says. `None` if it is another message.
    pub fn of_content_type(value: &str) -> Option<Self> {
        let mut parts = value.split(';').map(str::trim);
        if !parts.next()?.eq_ignore_ascii_case("application/x-protobuf") {
            return None;
        }
        match parts.find_map(|part| part.strip_prefix("proto=")) {
            None | Some("prometheus.WriteRequest") => Some(Self::V1),
            Some("io.prometheus.write.v2.Request") => Some(Self::V2),
            Some(_) => None,
        }
    }
}

/// What a message has beside samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Others {
    /// Native histograms, which cannot be kept.
    pub histograms: u64,
    /// Exemplars, which are not kept.
    pub exemplars: u64,
}

/// The largest table of symbols.
const MOST_SYMBOLS: usize = 1 << 22;

const DAMAGED: Problem = Problem::Damaged("the message is damaged");

/// Parses a message. A damaged one is a fault; what comes before that is taken.
pub fn parse(bytes: &[u8], version: Version, sink: &mut impl Sink) -> Others {
    let mut parser = Parser {
        key: Key::new(),
        others: Others::default(),
    };
    let parsed = match version {
        Version::V1 => parser.v1(bytes, sink),
        Version::V2 => parser.v2(bytes, sink),
    };
    if let Err((offset, Damaged)) = parsed {
        sink.fault(Fault::new(offset, DAMAGED, b""));
    }
    if parser.others.histograms > 0 {
        let problem = Problem::Unsupported("a native histogram");
        sink.fault(Fault::new(0, problem, b""));
    }
    parser.others
}

struct Parser {
    key: Key,
    others: Others,
}

type Parsed = Result<(), (usize, Damaged)>;

impl Parser {
    fn v1(&mut self, bytes: &[u8], sink: &mut impl Sink) -> Parsed {
        let mut message = Message::new(bytes);
        loop {
            let offset = message.position();
            let at = |damaged| (offset, damaged);
            let Some((number, field)) = message.next().map_err(at)? else {
                return Ok(());
            };
            if number == 1 {
                self.series_v1(field.bytes(), offset, sink).map_err(at)?;
            }
        }
    }

    /// A series with its samples. Its labels come first, so that their bytes are what the sender calls it.
    fn series_v1(
        &mut self,
        bytes: &[u8],
        offset: usize,
        sink: &mut impl Sink,
    ) -> Result<(), Damaged> {
        let mut message = Message::new(bytes);
        let mut labels_end = 0;
        let mut series = None;
        loop {
            let at = message.position();
            let Some((number, field)) = message.next()? else {
                return Ok(());
            };
            match number {
                1 if series.is_none() => labels_end = message.position(),
                // No sender puts labels after samples.
                1 => return Err(Damaged),
                2 => {
                    let series = match series {
                        Some(series) => series,
                        None => {
                            let raw = bytes.get(..labels_end.min(at)).unwrap_or_default();
                            let found = match sink.find(raw) {
                                Some(series) => Ok(series),
                                None => self.labels_v1(raw).map(|named| {
                                    named.map(|kind| sink.series(raw, &self.key, kind))
                                })?,
                            };
                            match found {
                                Ok(found) => *series.insert(found),
                                Err(problem) => {
                                    sink.fault(Fault::new(offset, problem, raw));
                                    return Ok(());
                                }
                            }
                        }
                    };
                    self.sample(field.bytes(), series, sink)?;
                }
                3 => self.others.exemplars += 1,
                4 => self.others.histograms += 1,
                _ => {}
            }
        }
    }

    /// Reads labels; the inner error says that they cannot be kept.
    fn labels_v1(&mut self, raw: &[u8]) -> Result<Result<Kind, Problem>, Damaged> {
        let each = |take: &mut dyn FnMut(&[u8], &[u8])| -> Result<(), Damaged> {
            let mut message = Message::new(raw);
            while let Some((number, field)) = message.next()? {
                if number != 1 {
                    continue;
                }
                let (mut name, mut value) = (&b""[..], &b""[..]);
                let mut label = Message::new(field.bytes());
                while let Some((number, field)) = label.next()? {
                    match number {
                        1 => name = field.bytes(),
                        2 => value = field.bytes(),
                        _ => {}
                    }
                }
                take(name, value);
            }
            Ok(())
        };
        let mut metric = Vec::new();
        each(&mut |name, value| {
            if name == b"__name__" {
                metric = value.to_vec();
            }
        })?;
        self.key.begin(&metric);
        each(&mut |name, value| {
            if name != b"__name__" {
                self.key.label(name, value);
            }
        })?;
        let finished = self.key.finish().map_err(Problem::Name);
        Ok(finished.map(|()| Kind::Gauge))
    }

    fn sample(&mut self, bytes: &[u8], series: usize, sink: &mut impl Sink) -> Result<(), Damaged> {
        let mut message = Message::new(bytes);
        let (mut value, mut millis) = (0.0, 0);
        while let Some((number, field)) = message.next()? {
            match number {
                1 => value = field.double(),
                2 => millis = field.integer() as i64,
                _ => {}
            }
        }
        match millis.checked_mul(1_000_000) {
            Some(nanos) => sink.sample(series, Some(nanos), Number::Float(value)),
            None => sink.fault(Fault::new(0, Problem::Time, millis.to_string().as_bytes())),
        }
        Ok(())
    }

    fn v2(&mut self, bytes: &[u8], sink: &mut impl Sink) -> Parsed {
        // Symbols may come behind what refers to them.
        let mut symbols: Vec<&[u8]> = Vec::new();
        let mut message = Message::new(bytes);
        loop {
            let offset = message.position();
            let Some((number, field)) = message.next().map_err(|damaged| (offset, damaged))? else {
                break;
            };
            if number == 4 {
                if symbols.len() >= MOST_SYMBOLS {
                    return Err((offset, Damaged));
                }
                // Of one that is too long for a key, as much as makes any key too long: many series may name it.
                let symbol = field.bytes();
                symbols.push(&symbol[..symbol.len().min(LONGEST_KEY + 1)]);
            }
        }
        let mut message = Message::new(bytes);
        loop {
            let offset = message.position();
            let at = |damaged| (offset, damaged);
            let Some((number, field)) = message.next().map_err(at)? else {
                return Ok(());
            };
            if number == 5 {
                self.series_v2(field.bytes(), &symbols, offset, sink)
                    .map_err(at)?;
            }
        }
    }

    fn series_v2(
        &mut self,
        bytes: &[u8],
        symbols: &[&[u8]],
        offset: usize,
        sink: &mut impl Sink,
    ) -> Result<(), Damaged> {
        // A name, as many labels as are kept, and one more, which is too many.
        const MOST_REFERENCES: usize = 2 * (MOST_LABELS + 2);
        let mut references = Vec::new();
        let mut kind = Kind::Gauge;
        let mut message = Message::new(bytes);
        while let Some((number, field)) = message.next()? {
            match number {
                1 => integers(field, |it| {
                    if references.len() < MOST_REFERENCES {
                        references.push(it);
                    }
                })?,
                3 => self.others.histograms += 1,
                4 => self.others.exemplars += 1,
                5 => {
                    let mut metadata = Message::new(field.bytes());
                    while let Some((number, field)) = metadata.next()? {
                        // A counter, a histogram, or a summary.
                        if number == 1 && matches!(field, Field::Varint(1 | 3 | 5)) {
                            kind = Kind::Counter;
                        }
                    }
                }
                _ => {}
            }
        }
        let symbol = |reference: &u64| {
            let place = usize::try_from(*reference).map_err(|_| Damaged)?;
            symbols.get(place).copied().ok_or(Damaged)
        };
        let mut metric = &b""[..];
        let mut pairs = Vec::with_capacity(references.len() / 2);
        for pair in references.chunks(2) {
            let [name, value] = pair else {
                return Err(Damaged);
            };
            match (symbol(name)?, symbol(value)?) {
                (b"__name__", value) => metric = value,
                pair => pairs.push(pair),
            }
        }
        self.key.begin(metric);
        pairs
            .iter()
            .for_each(|(name, value)| self.key.label(name, value));
        if let Err(error) = self.key.finish() {
            sink.fault(Fault::new(offset, Problem::Name(error), metric));
            return Ok(());
        }
        let series = match sink.find(self.key.bytes()) {
            Some(series) => series,
            None => sink.series(self.key.bytes(), &self.key, kind),
        };
        let mut message = Message::new(bytes);
        while let Some((number, field)) = message.next()? {
            if number == 2 {
                self.sample(field.bytes(), series, sink)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protobuf::write;
    use crate::test_sink::Collected;

    fn sample(value: f64, millis: i64) -> Vec<u8> {
        let mut out = Vec::new();
        write::fixed(&mut out, 1, value.to_bits());
        write::integer(&mut out, 2, millis as u64);
        out
    }

    #[test]
    fn messages_of_version_1_are_samples() {
        let mut series = Vec::new();
        for (name, value) in [("__name__", "up"), ("job", "a")] {
            let mut label = Vec::new();
            write::bytes(&mut label, 1, name.as_bytes());
            write::bytes(&mut label, 2, value.as_bytes());
            write::bytes(&mut series, 1, &label);
        }
        write::bytes(&mut series, 2, &sample(1.0, 1500));
        write::bytes(&mut series, 2, &sample(0.5, -1));
        write::bytes(&mut series, 4, b"");
        let mut request = Vec::new();
        write::bytes(&mut request, 1, &series);
        write::bytes(&mut request, 3, b"metadata");
        let mut nameless = Vec::new();
        write::bytes(&mut nameless, 2, &sample(1.0, 1));
        write::bytes(&mut request, 1, &nameless);
        let found = Collected::of(|sink| {
            let others = parse(&request, Version::V1, sink);
            assert_eq!(others.histograms, 1);
        });
        assert_eq!(
            found.samples,
            [
                r#"up{job="a"} 1 @1500000000"#,
                r#"up{job="a"} 0.5 @-1000000"#,
            ]
        );
        assert_eq!(found.faults.len(), 2, "{:?}", found.faults);
        for end in 0..request.len() {
            Collected::of(|sink| {
                parse(&request[..end], Version::V1, sink);
            });
        }
    }

    #[test]
    fn messages_of_version_2_are_samples() {
        let mut series = Vec::new();
        write::bytes(&mut series, 1, &[1, 2, 3, 4]);
        write::bytes(&mut series, 2, &sample(7.0, 1));
        let mut metadata = Vec::new();
        write::integer(&mut metadata, 1, 1);
        write::bytes(&mut series, 5, &metadata);
        let mut request = Vec::new();
        write::bytes(&mut request, 5, &series);
        for symbol in ["", "__name__", "hits", "job", "b"] {
            write::bytes(&mut request, 4, symbol.as_bytes());
        }
        let found = Collected::of(|sink| {
            parse(&request, Version::V2, sink);
        });
        assert_eq!(found.samples, [r#"hits{job="b"} 7 counter @1000000"#]);
        let mut bad = Vec::new();
        write::bytes(&mut bad, 5, &series);
        let found = Collected::of(|sink| {
            parse(&bad, Version::V2, sink);
        });
        assert_eq!(found.faults, ["at byte 0: the message is damaged"]);
    }

    #[test]
    fn series_with_too_many_labels_take_no_memory() {
        let mut series = Vec::new();
        write::bytes(&mut series, 1, &vec![1; 1 << 20]);
        write::bytes(&mut series, 2, &sample(7.0, 1));
        let mut long = Vec::new();
        write::bytes(&mut long, 1, &[2, 3]);
        write::bytes(&mut long, 2, &sample(7.0, 1));
        let mut request = Vec::new();
        for symbol in [&b""[..], b"a", b"__name__", &vec![b'n'; 1 << 20]] {
            write::bytes(&mut request, 4, symbol);
        }
        write::bytes(&mut request, 5, &series);
        write::bytes(&mut request, 5, &long);
        let found = Collected::of(|sink| {
            parse(&request, Version::V2, sink);
        });
        assert!(found.samples.is_empty());
        assert_eq!(found.faults.len(), 2, "{:?}", found.faults);
        assert!(found.faults[0].contains("more than 64 labels"));
        assert!(found.faults[1].contains("4096"));
    }

    #[test]
    fn content_types_say_the_version() {
        for (value, version) in [
            ("application/x-protobuf", Some(Version::V1)),
            (
                "application/x-protobuf;proto=prometheus.WriteRequest",
                Some(Version::V1),
            ),
            (
                "application/x-protobuf; proto=io.prometheus.write.v2.Request",
                Some(Version::V2),
            ),
            ("application/x-protobuf;proto=x", None),
            ("application/json", None),
        ] {
            assert_eq!(Version::of_content_type(value), version, "{value}");
        }
    }
}
