//! Prometheus' HTTP API.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
use kymo_promql::{
    Answer, Evaluated, Expression, Labels, Limits, Matchers, QueryError, QueryTime, Sample,
    evaluate, number, parse_duration as parse_units,
};
use kymo_text::Line;
use kymo_text::json::{Value, Writer};

use super::catalog::SeriesEntry;
use super::databases::Databases;
use super::deadline::Deadline;
use super::{Queries, now, status};
use crate::http::{Client, HttpAnswer, HttpRequest};

/// Parameters `match[]` of a request: each may be as large as a query.
const MOST_MATCHES: usize = 100;

/// Why a request has no answer.
#[derive(Debug)]
struct Failure {
    status: u16,
    kind: &'static str,
    message: String,
}

impl Failure {
    fn bad(message: impl Into<String>) -> Self {
        Self {
            status: 400,
            kind: "bad_data",
            message: message.into(),
        }
    }

    fn parameter(name: &str, problem: impl std::fmt::Display) -> Self {
        Self::bad(format!("invalid parameter \"{name}\": {problem}"))
    }

    fn timeout(message: &str) -> Self {
        Self {
            status: 503,
            kind: "timeout",
            message: message.into(),
        }
    }

    fn answer(&self) -> HttpAnswer {
        let mut json = Writer::default();
        json.begin_object();
        json.entry("status", "error");
        json.entry("errorType", self.kind);
        json.entry("error", self.message.as_str());
        json.end_object();
        HttpAnswer::json(self.status, json.as_bytes().to_vec())
    }
}

impl From<QueryError> for Failure {
    fn from(error: QueryError) -> Self {
        let message = error.to_string();
        match error {
            QueryError::Parse(_) => Self::bad(message),
            QueryError::Timeout => Self::timeout(&message),
            QueryError::Execution(_) | QueryError::TooManySamples(_) => Self {
                status: 422,
                kind: "execution",
                message,
            },
        }
    }
}

/// What an answer says, in JSON, and what users should know about it.
type Answered = Result<(Vec<u8>, Vec<String>), Failure>;

/// Answers what is asked below `/api/v1/`.
pub(super) fn answer(
    queries: &Queries,
    name: &str,
    request: &HttpRequest,
    client: &dyn Client,
) -> HttpAnswer {
    let api = Api {
        queries,
        request,
        client,
    };
    let plain = |data: &[u8]| Ok((data.to_vec(), Vec::new()));
    let answered = match name {
        "query" => api.query(),
        "query_range" => api.query_range(),
        "series" => api.series(),
        "labels" => api.labels(),
        "metadata" => api.metadata(),
        "format_query" => api.format_query(),
        "query_exemplars" => api.exemplars(),
        "status/buildinfo" => Ok((status::build_info(), Vec::new())),
        "status/flags" => Ok((status::flags(&queries.options), Vec::new())),
        "status/tsdb" => Ok((status::series(queries.catalog.series().all()), Vec::new())),
        "rules" => api.rules(),
        // There are none.
        "alerts" => plain(b"{\"alerts\":[]}"),
        "alertmanagers" => plain(b"{\"activeAlertmanagers\":[],\"droppedAlertmanagers\":[]}"),
        _ => match name
            .strip_prefix("label/")
            .and_then(|it| it.strip_suffix("/values"))
        {
            Some(label) => api.label_values(label),
            None => Err(Failure {
                status: 404,
                kind: "not_found",
                message: format!("there is no /api/v1/{name}"),
            }),
        },
    };
    let (data, warnings) = match answered {
        Ok(answered) => answered,
        Err(failure) => return failure.answer(),
    };
    let mut json = Writer::default();
    json.begin_object();
    json.entry("status", "success");
    json.key("data");
    json.raw(data);
    if !warnings.is_empty() {
        json.key("warnings");
        json.texts(warnings.iter().map(String::as_str));
    }
    json.end_object();
    HttpAnswer::json(200, json.as_bytes().to_vec())
}

/// A request and what it is answered from.
struct Api<'a> {
    queries: &'a Queries,
    request: &'a HttpRequest,
    client: &'a dyn Client,
}

impl Api<'_> {
    fn expression(&self) -> Result<Expression, Failure> {
        let query = self.request.get("query").unwrap_or_default();
        Expression::parse(query).map_err(|error| Failure::parameter("query", error))
    }

    /// The same where Prometheus does not name the parameter.
    fn unnamed_expression(&self) -> Result<Expression, Failure> {
        let query = self.request.get("query").unwrap_or_default();
        Ok(Expression::parse(query)?)
    }

    /// A time, if it is specified.
    fn time(&self, name: &str) -> Result<Option<i64>, Failure> {
        let text = self.request.get(name).filter(|it| !it.is_empty());
        text.map(|text| {
            parse_time(text).map_err(|problem| {
                Failure::parameter(name, format!("Invalid time value for '{name}': {problem}"))
            })
        })
        .transpose()
    }

    /// Nothing has exemplars, but questions may be wrong.
    fn exemplars(&self) -> Answered {
        let (start, end) = (self.time("start")?, self.time("end")?);
        if start.zip(end).is_some_and(|(start, end)| end < start) {
            return Err(Failure::bad(
                "end timestamp must not be before start timestamp",
            ));
        }
        self.unnamed_expression()?;
        Ok((b"[]".to_vec(), Vec::new()))
    }

    /// There are none, of either kind.
    fn rules(&self) -> Answered {
        match self.request.get("type").unwrap_or_default() {
            "" | "alert" | "record" => Ok((b"{\"groups\":[]}".to_vec(), Vec::new())),
            other => Err(Failure::parameter(
                "type",
                format!("not supported value {other:?}"),
            )),
        }
    }

    fn query(&self) -> Answered {
        let time = self.time("time")?.unwrap_or_else(now);
        let deadline = self.deadline()?;
        let expression = self.expression()?;
        let time = QueryTime {
            start: time,
            end: time,
            step: None,
        };
        self.evaluate(&expression, time, deadline)
    }

    fn query_range(&self) -> Answered {
        let time = |name: &str| {
            let text = self.request.get(name).unwrap_or_default();
            parse_time(text).map_err(|problem| Failure::parameter(name, problem))
        };
        let (start, end) = (time("start")?, time("end")?);
        if end < start {
            return Err(Failure::parameter(
                "end",
                "end timestamp must not be before start time",
            ));
        }
        let step = parse_duration(self.request.get("step").unwrap_or_default())
            .map_err(|problem| Failure::parameter("step", problem))?;
        if step <= 0 {
            return Err(Failure::parameter(
                "step",
                "zero or negative query resolution step widths are not accepted. Try a positive integer",
            ));
        }
        let most = self.queries.options.most_points;
        // As in Prometheus, this is the number of steps, and so there may be one more point.
        if (end - start) / step > i64::try_from(most).unwrap_or(i64::MAX) {
            return Err(Failure::bad(format!(
                "exceeded maximum resolution of {} points per timeseries. Try decreasing the query \
                 resolution (?step=XX)",
                with_commas(most)
            )));
        }
        let deadline = self.deadline()?;
        let expression = self.unnamed_expression()?;
        let kind = match (expression.is_range_vector(), expression.is_text()) {
            (true, _) => Some("range vector"),
            (_, true) => Some("string"),
            _ => None,
        };
        if let Some(kind) = kind {
            return Err(Failure::bad(format!(
                "invalid expression type \"{kind}\" for range query, must be Scalar or instant Vector"
            )));
        }
        let time = QueryTime {
            start,
            end,
            step: Some(step),
        };
        self.evaluate(&expression, time, deadline)
    }

    /// When the answer has to be there: after the time that the configuration says, or the request, if that is less.
    fn deadline(&self) -> Result<Deadline<'_>, Failure> {
        let mut timeout = self.queries.options.timeout;
        if let Some(text) = self.request.get("timeout").filter(|it| !it.is_empty()) {
            let millis = parse_duration(text).map_err(|it| Failure::parameter("timeout", it))?;
            let millis = u64::try_from(millis).unwrap_or(0);
            timeout = timeout.min(Duration::from_millis(millis));
        }
        Ok(Deadline::after(timeout, self.client))
    }

    fn evaluate(
        &self,
        expression: &Expression,
        time: QueryTime,
        deadline: Deadline<'_>,
    ) -> Answered {
        let Some(_turn) = self.queries.turn(deadline) else {
            return Err(Failure::timeout("query timed out in query queue"));
        };
        let source = Databases::new(&self.queries.store, &self.queries.catalog, deadline);
        let limits = Limits {
            samples: self.queries.options.most_samples as u64,
            deadline: Some(deadline.end),
        };
        let Evaluated {
            answer,
            mut warnings,
        } = evaluate(expression, time, &source, limits)?;
        warnings.extend(source.problems());
        Ok((self.write(&answer)?, warnings))
    }

    /// The answer in JSON.
    fn write(&self, answer: &Answer) -> Result<Vec<u8>, Failure> {
        let most = self.queries.options.most_answer;
        let mut json = Writer::default();
        let check = |json: &Writer| match json.as_bytes().len() > most {
            true => Err(Failure {
                status: 422,
                kind: "execution",
                message: format!(
                    "the answer is longer than {} MiB (query.most-answer-mib)",
                    most >> 20
                ),
            }),
            false => Ok(()),
        };
        let kind = match answer {
            Answer::Scalar(_) => "scalar",
            Answer::Text(..) => "string",
            Answer::Vector(_) => "vector",
            Answer::Matrix(_) => "matrix",
        };
        json.begin_object();
        json.entry("resultType", kind);
        json.key("result");
        match answer {
            Answer::Scalar(sample) => write_sample(&mut json, sample),
            Answer::Text(time, text) => {
                json.begin_array();
                json.value(Millis(*time));
                json.value(text.as_str());
                json.end_list();
            }
            Answer::Vector(samples) => {
                json.begin_array();
                for (labels, sample) in samples {
                    json.begin_object();
                    json.key("metric");
                    write_labels(&mut json, labels);
                    json.key("value");
                    write_sample(&mut json, sample);
                    json.end_object();
                    check(&json)?;
                }
                json.end_list();
            }
            Answer::Matrix(series) => {
                json.begin_array();
                for (labels, samples) in series {
                    json.begin_object();
                    json.key("metric");
                    write_labels(&mut json, labels);
                    json.begin_list("values");
                    for sample in samples {
                        write_sample(&mut json, sample);
                    }
                    json.end_list();
                    json.end_object();
                    check(&json)?;
                }
                json.end_list();
            }
        }
        json.end_object();
        Ok(json.as_bytes().to_vec())
    }

    /// The series that `match[]` selects, of those that were written since `start`; all, if there is no `match[]`.
    fn selected(&self, needs_match: bool) -> Result<Vec<Arc<SeriesEntry>>, Failure> {
        let (start, end) = (self.time("start")?, self.time("end")?);
        let start = start.unwrap_or(i64::MIN);
        let end = end.unwrap_or(i64::MAX);
        if self.request.all("match[]").nth(MOST_MATCHES).is_some() {
            return Err(Failure::bad(format!(
                "more than {MOST_MATCHES} parameters match[]"
            )));
        }
        let Some(_turn) = self.queries.turn(self.deadline()?) else {
            return Err(Failure::timeout("query timed out in query queue"));
        };
        let matchers = self.request.all("match[]").map(Matchers::parse);
        let matchers: Vec<_> = matchers
            .collect::<Result<_, _>>()
            .map_err(|problem| Failure::parameter("match[]", problem))?;
        if needs_match && matchers.is_empty() {
            return Err(Failure::bad("no match[] parameter provided"));
        }
        let series = self.queries.catalog.series();
        let is_current = |entry: &&Arc<SeriesEntry>| {
            let written = entry.modified.map_or(i64::MAX, millis_of);
            // Archives reach back so far from the last update.
            let oldest = written.saturating_sub(entry.span.saturating_mul(1000));
            if oldest > end {
                return false;
            }
            // What waits in memory is not yet in the file.
            written >= start
                || self.queries.store.known(&entry.path).is_some_and(|it| {
                    it.pending_count() > 0 && it.last().seconds().saturating_mul(1000) >= start
                })
        };
        if matchers.is_empty() {
            return Ok(series.all().iter().filter(is_current).cloned().collect());
        }
        let mut selected: Vec<Arc<SeriesEntry>> = Vec::new();
        for matchers in &matchers {
            selected.extend(series.matching(matchers).filter(is_current).cloned());
        }
        if matchers.len() > 1 {
            selected.sort_by(|a, b| a.labels.cmp(&b.labels));
            selected.dedup_by(|a, b| Arc::ptr_eq(a, b));
        }
        Ok(selected)
    }

    /// How many entries of a list are wanted.
    fn limit(&self) -> Result<usize, Failure> {
        match self.request.get("limit").filter(|it| !it.is_empty()) {
            None => Ok(usize::MAX),
            Some(text) => match text.parse() {
                Ok(0) => Ok(usize::MAX),
                Ok(limit) => Ok(limit),
                Err(_) => Err(Failure::parameter(
                    "limit",
                    format!("{text:?} is not a number"),
                )),
            },
        }
    }

    fn series(&self) -> Answered {
        let limit = self.limit()?;
        let mut json = Writer::default();
        json.begin_array();
        for entry in self.selected(true)?.iter().take(limit) {
            write_labels(&mut json, &entry.labels);
        }
        json.end_list();
        Ok((json.as_bytes().to_vec(), Vec::new()))
    }

    fn labels(&self) -> Answered {
        let selected = self.selected(false)?;
        let names = selected.iter().flat_map(|entry| entry.labels.iter());
        let names: BTreeSet<&str> = names.map(|(name, _)| name).collect();
        self.list(names)
    }

    fn label_values(&self, label: &str) -> Answered {
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        if label.is_empty() || !label.bytes().all(is_name) || label.as_bytes()[0].is_ascii_digit() {
            return Err(Failure::bad(format!("invalid label name: {label:?}")));
        }
        let selected = self.selected(false)?;
        let values = selected.iter().map(|entry| entry.labels.get(label));
        self.list(values.filter(|value| !value.is_empty()).collect())
    }

    fn list(&self, names: BTreeSet<&str>) -> Answered {
        let mut json = Writer::default();
        json.texts(names.into_iter().take(self.limit()?));
        Ok((json.as_bytes().to_vec(), Vec::new()))
    }

    fn metadata(&self) -> Answered {
        // Here 0 is none, and less are all.
        let limit = match self.request.get("limit").filter(|it| !it.is_empty()) {
            None => usize::MAX,
            Some(text) => match text.parse::<i64>() {
                Ok(limit) => usize::try_from(limit).unwrap_or(usize::MAX),
                Err(_) => return Err(Failure::bad("limit must be a number")),
            },
        };
        let metric = self.request.get("metric").filter(|it| !it.is_empty());
        let series = self.queries.catalog.series();
        let mut metrics: BTreeMap<&str, bool> = BTreeMap::new();
        for entry in series.all() {
            let name = entry.labels.name();
            if metric.is_none_or(|metric| metric == name) {
                metrics.insert(name, entry.is_rate);
            }
        }
        let mut json = Writer::default();
        json.begin_object();
        for (name, is_rate) in metrics.into_iter().take(limit) {
            let help = match is_rate {
                true => "Rate per second of a counter, consolidated by a round-robin database.",
                false => "Values, consolidated by a round-robin database.",
            };
            json.begin_list(name);
            json.begin_object();
            json.entry("type", "gauge");
            json.entry("help", help);
            json.entry("unit", "");
            json.end_object();
            json.end_list();
        }
        json.end_object();
        Ok((json.as_bytes().to_vec(), Vec::new()))
    }

    fn format_query(&self) -> Answered {
        let mut json = Writer::default();
        json.value(self.expression()?.pretty().as_str());
        Ok((json.as_bytes().to_vec(), Vec::new()))
    }
}

/// Milliseconds since 1970.
fn millis_of(time: SystemTime) -> i64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// A number with commas between thousands, as in `11,000`.
fn with_commas(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn write_labels(json: &mut Writer, labels: &Labels) {
    json.begin_object();
    for (name, value) in labels.iter() {
        json.entry(name, value);
    }
    json.end_object();
}

/// Milliseconds as seconds, with three digits behind the point if they are not whole.
struct Millis(i64);

impl Value for Millis {
    fn write(self, out: &mut Line) {
        if self.0 < 0 {
            out.push_byte(b'-');
        }
        let size = self.0.unsigned_abs();
        out.decimal(size / 1000);
        if !size.is_multiple_of(1000) {
            out.push_byte(b'.');
            out.padded(size % 1000, 3);
        }
    }
}

fn write_sample(json: &mut Writer, sample: &Sample) {
    json.begin_array();
    json.value(Millis(sample.time));
    json.value(number(sample.value, true).as_str());
    json.end_list();
}

/// A time: seconds since 1970, with a fraction or without, or as RFC 3339 has it; in milliseconds.
fn parse_time(text: &str) -> Result<i64, String> {
    let wrong = || format!("cannot parse {text:?} to a valid timestamp");
    if let Ok(seconds) = text.parse::<f64>() {
        // Numbers beyond any date wrap around in Prometheus.
        if seconds.is_nan() || seconds.abs() >= 1e13 {
            return Err(wrong());
        }
        // The fraction is rounded to milliseconds, made nanoseconds and cut, which loses some milliseconds.
        let fraction = (seconds.fract() * 1000.0).round() / 1000.0;
        let nanos = (fraction * 1e9) as i64;
        return Ok(seconds as i64 * 1000 + nanos.div_euclid(1_000_000));
    }
    text.parse::<Timestamp>()
        .map(|time| time.as_millisecond())
        .map_err(|_| wrong())
}

/// A duration: seconds, with a fraction or without, or as in queries, such as `1h30m`; in milliseconds.
fn parse_duration(text: &str) -> Result<i64, String> {
    let wrong = || format!("cannot parse {text:?} to a valid duration");
    let too_long = || format!("cannot parse {text:?} to a valid duration. It overflows int64");
    if let Ok(seconds) = text.parse::<f64>() {
        if seconds.abs() * 1e9 > i64::MAX as f64 {
            return Err(too_long());
        }
        // NaN is 0, which is refused where it matters.
        return Ok((seconds * 1000.0) as i64);
    }
    parse_units(text).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_durations() {
        assert_eq!(parse_time("1600000000.5"), Ok(1_600_000_000_500));
        assert_eq!(parse_time("2020-09-13T12:26:40Z"), Ok(1_600_000_000_000));
        // Prometheus cuts where it does not round.
        for (text, millis) in [
            ("1.0005", 1000),
            ("-0.0015", -2),
            ("1.057", 1057),
            ("-1.5", -1500),
        ] {
            assert_eq!(parse_time(text), Ok(millis), "{text}");
        }
        for wrong in ["", "x", "NaN", "inf", "1e300", "2020-09-13"] {
            assert!(parse_time(wrong).is_err(), "{wrong}");
        }
        for wrong in ["", "x", "inf", "1e300", "30m1h", "1h1h", "1x", "5"] {
            assert_eq!(parse_duration(wrong).is_err(), wrong != "5", "{wrong}");
        }
        assert_eq!(parse_duration("NaN"), Ok(0));
        assert_eq!(
            [999, 11_000, 1_234_567].map(with_commas),
            ["999", "11,000", "1,234,567"]
        );
        assert_eq!(parse_duration("1h30m"), Ok(5_400_000));
        assert_eq!(parse_duration("0.5"), Ok(500));
        assert_eq!(parse_duration("15ms"), Ok(15));
        assert!(parse_duration("99999999999999999y").is_err());
    }

    #[test]
    fn times_have_milliseconds_where_they_need_them() {
        let text = |millis| {
            let mut out = Line::new();
            Millis(millis).write(&mut out);
            String::from_utf8_lossy(out.as_bytes()).into_owned()
        };
        assert_eq!(
            [text(1_000), text(1_050), text(-1)],
            ["1", "1.050", "-0.001"]
        );
    }
}
