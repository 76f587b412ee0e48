//! OpenTelemetry's metrics (OTLP), as protocol buffers or JSON.
//!
//! Names and labels are those that Prometheus gives them: characters that it does not have become `_`, units and
//! `_total` are appended, `service.name` and `service.namespace` are the label `job`, `service.instance.id` is
//! `instance`. Sums of differences keep their kind ([`Kind::Delta`]).

mod binary;
mod json;

use crate::{Fault, Key, Kind, MOST_LABELS, Number, Problem, Sink};

/// How a message is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// As protocol buffers.
    Protobuf,
    /// As JSON.
    Json,
}

impl Encoding {
    /// The encoding that a `Content-Type` says.
    pub fn of_content_type(value: &str) -> Option<Self> {
        match value.split(';').next()?.trim() {
            "application/x-protobuf" => Some(Self::Protobuf),
            "application/json" => Some(Self::Json),
            _ => None,
        }
    }
}

/// Parses the message of an export; a damaged one is a fault, what comes before that is taken. Resource attributes of
/// these names become labels, too.
pub fn parse(bytes: &[u8], encoding: Encoding, promoted: &[String], sink: &mut impl Sink) {
    let mut output = Output {
        sink,
        promoted,
        resource: Vec::new(),
        key: Key::new(),
    };
    let parsed = match encoding {
        Encoding::Protobuf => {
            binary::parse(bytes, &mut output).map_err(|offset| (offset, "the message is damaged"))
        }
        Encoding::Json => json::parse(bytes, &mut output),
    };
    if let Err((offset, problem)) = parsed {
        let found = bytes.get(offset..).unwrap_or_default();
        let found = if encoding == Encoding::Json {
            found
        } else {
            b""
        };
        output
            .sink
            .fault(Fault::new(offset, Problem::Damaged(problem), found));
    }
}

/// An attribute: its name, and its value as text.
type Attribute = (Vec<u8>, Vec<u8>);

/// What a metric is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Shape {
    #[default]
    Gauge,
    Sum,
    Histogram,
    Exponential,
    Summary,
}

/// A metric without its points.
#[derive(Clone, Debug, Default)]
struct Metric {
    name: Vec<u8>,
    unit: Vec<u8>,
    shape: Shape,
    is_delta: bool,
    is_monotonic: bool,
}

/// A point of any shape.
#[derive(Clone, Debug, Default)]
struct Point {
    attributes: Vec<Attribute>,
    /// Nanoseconds since 1970; 0 if there is none.
    time: u64,
    /// Whether it is marked as having no value.
    is_empty: bool,
    number: Option<Number>,
    count: u64,
    sum: Option<f64>,
    min: Option<f64>,
    max: Option<f64>,
    counts: Vec<u64>,
    bounds: Vec<f64>,
    /// Quantiles and values.
    quantiles: Vec<(f64, f64)>,
}

/// Attributes of a resource or a point that are read. More than a key has labels, so that a point with too many is one
/// with too many labels.
const MOST_ATTRIBUTES: usize = 2 * MOST_LABELS;
/// Buckets or quantiles of a point: each is a series.
const MOST_BUCKETS: usize = 512;

/// Adds a bucket or quantile, or the one that makes them too many.
fn push<T>(list: &mut Vec<T>, item: T) {
    if list.len() <= MOST_BUCKETS {
        list.push(item);
    }
}

struct Output<'a, S> {
    sink: &'a mut S,
    promoted: &'a [String],
    /// Labels of the resource.
    resource: Vec<Attribute>,
    key: Key,
}

impl<S: Sink> Output<'_, S> {
    /// Begins with the points of a resource.
    fn set_resource(&mut self, attributes: &[Attribute]) {
        let get = |name: &str| {
            let mut all = attributes.iter();
            let found = all.find(|(it, _)| it == name.as_bytes());
            found.map_or(&b""[..], |(_, value)| value)
        };
        let mut job = get("service.namespace").to_vec();
        if !job.is_empty() {
            job.push(b'/');
        }
        job.extend_from_slice(get("service.name"));
        self.resource.clear();
        self.resource.push((b"job".to_vec(), job));
        let instance = get("service.instance.id").to_vec();
        self.resource.push((b"instance".to_vec(), instance));
        for name in self.promoted {
            let value = get(name).to_vec();
            self.resource.push((name.clone().into_bytes(), value));
        }
    }

    fn point(&mut self, metric: &Metric, point: &Point) {
        let time = match point.time {
            0 => None,
            time => match i64::try_from(time) {
                Ok(time) => Some(time),
                Err(_) => return self.fault(Problem::Time, metric),
            },
        };
        if point.counts.len() > MOST_BUCKETS || point.quantiles.len() > MOST_BUCKETS {
            return self.fault(
                Problem::Unsupported("a point of more than 512 buckets or quantiles"),
                metric,
            );
        }
        let kind = match metric.is_delta {
            true => Kind::Delta,
            false => Kind::Counter,
        };
        if metric.shape == Shape::Exponential {
            self.fault(
                Problem::Unsupported("the buckets of an exponential histogram"),
                metric,
            );
        }
        let unknown = point.is_empty.then_some(Number::Float(f64::NAN));
        let count = |count: u64| unknown.unwrap_or(Number::Unsigned(count));
        let float = |value: f64| unknown.unwrap_or(Number::Float(value));
        match metric.shape {
            Shape::Gauge | Shape::Sum => {
                let kind = match metric.shape {
                    Shape::Sum if metric.is_monotonic || metric.is_delta => kind,
                    _ => Kind::Gauge,
                };
                match unknown.or(point.number) {
                    Some(number) => self.put(metric, point, "", None, kind, time, number),
                    None => self.fault(Problem::Number, metric),
                }
            }
            Shape::Histogram | Shape::Exponential => {
                let mut sum = 0_u64;
                for (place, bucket) in point.counts.iter().enumerate() {
                    sum = sum.saturating_add(*bucket);
                    let bound = match point.bounds.get(place) {
                        Some(bound) => bound.to_string(),
                        None => "+Inf".to_owned(),
                    };
                    let le = Some(("le", bound.as_str()));
                    self.put(metric, point, "_bucket", le, kind, time, count(sum));
                }
                self.put(
                    metric,
                    point,
                    "_count",
                    None,
                    kind,
                    time,
                    count(point.count),
                );
                for (suffix, value, kind) in [
                    ("_sum", point.sum, kind),
                    ("_min", point.min, Kind::Gauge),
                    ("_max", point.max, Kind::Gauge),
                ] {
                    if let Some(value) = value {
                        self.put(metric, point, suffix, None, kind, time, float(value));
                    }
                }
            }
            Shape::Summary => {
                self.put(
                    metric,
                    point,
                    "_count",
                    None,
                    kind,
                    time,
                    count(point.count),
                );
                if let Some(sum) = point.sum {
                    self.put(metric, point, "_sum", None, kind, time, float(sum));
                }
                for (quantile, value) in &point.quantiles {
                    let quantile = quantile.to_string();
                    let label = Some(("quantile", quantile.as_str()));
                    self.put(metric, point, "", label, Kind::Gauge, time, float(*value));
                }
            }
        }
    }

    fn fault(&mut self, problem: Problem, metric: &Metric) {
        self.sink.fault(Fault::new(0, problem, &metric.name));
    }

    #[allow(
        clippy::too_many_arguments,
        reason = "each is a part of one sample, and there is one caller for each shape"
    )]
    fn put(
        &mut self,
        metric: &Metric,
        point: &Point,
        suffix: &str,
        label: Option<(&str, &str)>,
        kind: Kind,
        time: Option<i64>,
        number: Number,
    ) {
        let is_counter = metric.shape == Shape::Sum && metric.is_monotonic;
        let is_ratio = metric.shape == Shape::Gauge;
        let mut name = metric_name(&metric.name, &metric.unit, is_counter, is_ratio);
        name.push_str(suffix);
        self.key.begin(name.as_bytes());
        for (name, value) in &self.resource {
            let mut own = point.attributes.iter();
            if !own.any(|(it, _)| it == name) {
                self.key.sanitized_label(name, value);
            }
        }
        for (name, value) in &point.attributes {
            self.key.sanitized_label(name, value);
        }
        if let Some((name, value)) = label {
            self.key.label(name.as_bytes(), value.as_bytes());
        }
        if let Err(error) = self.key.finish() {
            return self.fault(Problem::Name(error), metric);
        }
        let series = match self.sink.find(self.key.bytes()) {
            Some(series) => series,
            None => self.sink.series(self.key.bytes(), &self.key, kind),
        };
        self.sink.sample(series, time, number);
    }
}

/// Units as Prometheus names them.
const UNITS: [(&str, &str); 22] = [
    ("d", "days"),
    ("h", "hours"),
    ("min", "minutes"),
    ("s", "seconds"),
    ("ms", "milliseconds"),
    ("us", "microseconds"),
    ("ns", "nanoseconds"),
    ("By", "bytes"),
    ("KiBy", "kibibytes"),
    ("MiBy", "mebibytes"),
    ("GiBy", "gibibytes"),
    ("KBy", "kilobytes"),
    ("MBy", "megabytes"),
    ("GBy", "gigabytes"),
    ("m", "meters"),
    ("V", "volts"),
    ("A", "amperes"),
    ("J", "joules"),
    ("W", "watts"),
    ("g", "grams"),
    ("Cel", "celsius"),
    ("Hz", "hertz"),
];

/// The name of a metric as Prometheus has it.
fn metric_name(name: &[u8], unit: &[u8], is_counter: bool, is_ratio: bool) -> String {
    let clean = |text: &str| {
        let mut cleaned = String::with_capacity(text.len());
        for char in text.chars() {
            match char.is_ascii_alphanumeric() || char == ':' {
                true => cleaned.push(char),
                // Several in a row are one.
                false if cleaned.ends_with('_') => {}
                false => cleaned.push('_'),
            }
        }
        cleaned
    };
    let mut result = clean(&String::from_utf8_lossy(name));
    if result.starts_with(|char: char| char.is_ascii_digit()) {
        result.insert(0, '_');
    }
    let mut append = |word: &str| {
        let has = result.split('_').any(|part| part == word);
        if !word.is_empty() && !has {
            result.push('_');
            result.push_str(word);
        }
    };
    let unit = String::from_utf8_lossy(unit);
    let named = |unit: &str| {
        // Annotations in braces say nothing of the unit.
        let unit = unit.split('{').next().unwrap_or_default().trim();
        match UNITS.iter().find(|(it, _)| *it == unit) {
            Some((_, name)) => (*name).to_owned(),
            None if unit == "%" => "percent".to_owned(),
            None => clean(unit).trim_matches('_').to_owned(),
        }
    };
    let (main, per) = match unit.split_once('/') {
        Some((main, per)) => (main, Some(per)),
        None => (&*unit, None),
    };
    if main.trim() == "1" {
        if is_ratio {
            append("ratio");
        }
    } else {
        append(&named(main));
    }
    if let Some(per) = per.map(|per| match per {
        "s" => "second".to_owned(),
        "m" => "minute".to_owned(),
        "h" => "hour".to_owned(),
        "d" => "day".to_owned(),
        per => named(per),
    }) && !per.is_empty()
    {
        append(&format!("per_{per}"));
    }
    if is_counter {
        let total = result.strip_suffix("_total").map(str::to_owned);
        result = total.unwrap_or(result) + "_total";
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protobuf::write::{bytes, fixed, integer};
    use crate::test_sink::Collected;

    #[test]
    fn names_are_those_of_prometheus() {
        for (name, unit, is_counter, is_ratio, found) in [
            (
                "http.server.duration",
                "s",
                false,
                false,
                "http_server_duration_seconds",
            ),
            ("requests", "{request}", true, false, "requests_total"),
            ("io", "By", true, false, "io_bytes_total"),
            ("x_total", "1", true, false, "x_total"),
            ("load", "1", false, true, "load_ratio"),
            ("speed", "m/s", false, true, "speed_meters_per_second"),
            ("a..b/c", "", false, true, "a_b_c"),
            ("9x", "%", false, true, "_9x_percent"),
            ("mem_bytes", "By", false, true, "mem_bytes"),
        ] {
            let name = metric_name(name.as_bytes(), unit.as_bytes(), is_counter, is_ratio);
            assert_eq!(name, found);
        }
    }

    fn nested(number: u32, inner: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        bytes(&mut out, number, inner);
        out
    }

    fn attribute(number: u32, name: &str, value: &str) -> Vec<u8> {
        let mut pair = nested(1, name.as_bytes());
        pair.extend(nested(2, &nested(1, value.as_bytes())));
        nested(number, &pair)
    }

    #[test]
    fn points_of_many_buckets_or_labels_are_refused() {
        let packed: Vec<u8> = (0..1000_u64).flat_map(u64::to_le_bytes).collect();
        let mut many = Vec::new();
        bytes(&mut many, 6, &packed);
        let mut labels = Vec::new();
        for number in 0..1000 {
            labels.extend(attribute(9, &format!("l{number}"), "x"));
        }
        for (point, problem) in [
            (many, "more than 512 buckets"),
            (labels, "more than 64 labels"),
        ] {
            let mut metric = nested(1, b"time");
            metric.extend(nested(9, &nested(1, &point)));
            let message = nested(1, &nested(2, &nested(2, &metric)));
            let found = Collected::of(|sink| parse(&message, Encoding::Protobuf, &[], sink));
            assert!(found.samples.is_empty(), "{:?}", found.samples);
            assert!(found.faults[0].contains(problem), "{:?}", found.faults);
        }
    }

    #[test]
    fn messages_are_samples() {
        let mut number = attribute(7, "code", "200");
        fixed(&mut number, 3, 1_600_000_000_123_456_789);
        fixed(&mut number, 6, (-5_i64) as u64);
        let mut sum = nested(1, &number);
        integer(&mut sum, 2, 1);
        integer(&mut sum, 3, 1);
        let mut metric = nested(1, b"hits");
        metric.extend(nested(7, &sum));

        let mut point = Vec::new();
        fixed(&mut point, 3, 7);
        fixed(&mut point, 4, 3);
        fixed(&mut point, 5, 2.5_f64.to_bits());
        let packed: Vec<u8> = [1_u64, 2].iter().flat_map(|it| it.to_le_bytes()).collect();
        bytes(&mut point, 6, &packed);
        fixed(&mut point, 7, 0.5_f64.to_bits());
        let mut histogram = nested(1, &point);
        integer(&mut histogram, 2, 2);
        let mut other = nested(1, b"time");
        bytes(&mut other, 3, b"s");
        other.extend(nested(9, &histogram));

        let mut scope = nested(2, &metric);
        scope.extend(nested(2, &other));
        let mut resource = nested(2, &scope);
        let mut attributes = attribute(1, "service.name", "shop");
        attributes.extend(attribute(1, "host.name", "h"));
        attributes.extend(attribute(1, "process.pid", "5"));
        // The resource may come behind its metrics.
        resource.extend(nested(1, &attributes));
        let message = nested(1, &resource);
        let promoted = ["host.name".to_owned()];
        let found = Collected::of(|sink| parse(&message, Encoding::Protobuf, &promoted, sink));
        let json = br#"{"resourceMetrics": [{"scopeMetrics": [{"metrics": [
            {"name": "hits", "sum": {"dataPoints": [{"attributes": [{"key": "code", "value": {"stringValue": "200"}}],
                "timeUnixNano": "1600000000123456789", "asInt": "-5"}], "aggregationTemporality": 1, "isMonotonic": true}},
            {"name": "time", "unit": "s", "description": "x", "histogram": {"aggregationTemporality": 2, "dataPoints": [
                {"timeUnixNano": 7, "count": "3", "sum": 2.5, "bucketCounts": ["1", 2], "explicitBounds": [0.5]}]}}]}],
            "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "shop"}},
                {"key": "host.name", "value": {"stringValue": "h"}}, {"key": "process.pid", "value": {"intValue": "5"}}]}}]}"#;
        let same = Collected::of(|sink| parse(json, Encoding::Json, &promoted, sink));
        assert_eq!(
            found.samples,
            [
                r#"hits_total{code="200",host_name="h",job="shop"} -5i delta @1600000000123456789"#,
                r#"time_seconds_bucket{host_name="h",job="shop",le="0.5"} 1u counter @7"#,
                r#"time_seconds_bucket{host_name="h",job="shop",le="+Inf"} 3u counter @7"#,
                r#"time_seconds_count{host_name="h",job="shop"} 3u counter @7"#,
                r#"time_seconds_sum{host_name="h",job="shop"} 2.5 counter @7"#,
            ]
        );
        assert_eq!(same.samples, found.samples);
        assert_eq!((found.faults.len(), same.faults), (0, Vec::new()));
        for end in 0..message.len() {
            Collected::of(|sink| parse(&message[..end], Encoding::Protobuf, &[], sink));
        }
        for end in 0..json.len() {
            let cut = Collected::of(|sink| parse(&json[..end], Encoding::Json, &[], sink));
            assert_eq!(cut.faults.len(), 1);
        }
    }

    #[test]
    fn summaries_and_missing_values() {
        let json = br#"{"resourceMetrics": [{"scopeMetrics": [{"metrics": [
            {"name": "s", "summary": {"dataPoints": [{"count": 2, "sum": 3, "quantileValues": [{"quantile": 0.5, "value": 1}]}]}},
            {"name": "g", "gauge": {"dataPoints": [{"asDouble": "NaN"}, {"asDouble": 1.5, "flags": 1}, {}]}},
            {"name": "e", "exponentialHistogram": {"dataPoints": [{"count": 2, "sum": 3, "scale": 1}]}}]}]}]}"#;
        let found = Collected::of(|sink| parse(json, Encoding::Json, &[], sink));
        assert_eq!(
            found.samples,
            [
                "s_count 2u counter",
                "s_sum 3 counter",
                r#"s{quantile="0.5"} 1"#,
                "g NaN",
                "g NaN",
                "e_count 2u counter",
                "e_sum 3 counter",
            ]
        );
        assert_eq!(found.faults.len(), 2, "{:?}", found.faults);
    }
}
