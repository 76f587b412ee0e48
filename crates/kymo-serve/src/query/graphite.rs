//! Graphite's HTTP API: `/metrics/find` and `/render`.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::time::Instant;

use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use kymo_graphite::{NAMES, Pattern, Series, SeriesSource, Target, TargetError, Window, render};
use kymo_promql::QueryError;
use kymo_text::Line;

use super::archives::{self, WantedRows};
use super::databases::Databases;
use super::{Queries, now};
use crate::http::{HttpAnswer, HttpRequest};

/// The version of Graphite whose API this is.
const VERSION: &str = "1.1.10";
/// The seconds of a day.
const DAY: i64 = 86_400;

/// Why a request has no answer.
struct Failure(u16, String);

impl Failure {
    fn bad(text: impl Into<String>) -> Self {
        Self(400, text.into())
    }
}

impl From<TargetError> for Failure {
    fn from(error: TargetError) -> Self {
        match error {
            TargetError::Target(_) => Self(400, error.to_string()),
            TargetError::TooManyValues(_) => Self(422, error.to_string()),
            TargetError::Timeout => Self(503, error.to_string()),
        }
    }
}

/// Answers a path of Graphite; `None` for others.
pub(super) fn answer(queries: &Queries, path: &str, request: &HttpRequest) -> Option<HttpAnswer> {
    let answered = match path {
        "/metrics/find" => find(queries, request),
        "/render" => rendered(queries, request),
        "/version" => Ok(format!("\"{VERSION}\"").into_bytes()),
        "/functions" => Ok(functions()),
        _ => return None,
    };
    Some(match answered {
        Ok(body) => HttpAnswer::json(200, body),
        Err(Failure(status, text)) => HttpAnswer::text(status, &format!("{text}\n")),
    })
}

/// The functions that exist, as far as clients ask: their names.
fn functions() -> Vec<u8> {
    let mut out = Line::new();
    out.push_byte(b'{');
    for (place, name) in NAMES.iter().enumerate() {
        if place > 0 {
            out.push_byte(b',');
        }
        out.json_string(name.as_bytes());
        out.push(b":{\"name\":");
        out.json_string(name.as_bytes());
        out.push(b",\"function\":");
        out.json_string(format!("{name}(seriesList)").as_bytes());
        out.push(b",\"description\":\"\",\"module\":\"\",\"group\":\"kymo\",\"params\":[]}");
    }
    out.push_byte(b'}');
    out.as_bytes().to_vec()
}

/// What there is at a level of paths.
#[derive(Clone, Copy, Default)]
struct Node {
    is_leaf: bool,
    has_children: bool,
}

fn find(queries: &Queries, request: &HttpRequest) -> Result<Vec<u8>, Failure> {
    let query = request.get("query").filter(|query| !query.is_empty());
    let query = query.ok_or_else(|| Failure::bad("the parameter `query` is missing"))?;
    let pattern = Pattern::parse(query)?;
    let series = queries.catalog.series();
    let mut nodes: BTreeMap<&str, Node> = BTreeMap::new();
    for entry in series.all() {
        let path = entry.graphite.as_str();
        let Some(rest) = pattern.matches_beginning(path) else {
            continue;
        };
        let id = match rest.is_empty() {
            true => path,
            // Without the point.
            false => &path[..path.len() - rest.len() - 1],
        };
        let node = nodes.entry(id).or_default();
        match rest.is_empty() {
            true => node.is_leaf = true,
            false => node.has_children = true,
        }
    }
    let mut out = Line::new();
    match request.get("format").unwrap_or("treejson") {
        "treejson" => {
            out.push_byte(b'[');
            for (place, (id, node)) in nodes.into_iter().enumerate() {
                if place > 0 {
                    out.push_byte(b',');
                }
                let text = id.rsplit('.').next().unwrap_or(id);
                let children = u8::from(node.has_children);
                out.push(b"{\"text\":");
                out.json_string(text.as_bytes());
                out.push(b",\"id\":");
                out.json_string(id.as_bytes());
                let leaf = u8::from(node.is_leaf);
                let rest = format!(
                    ",\"allowChildren\":{children},\"expandable\":{children},\"leaf\":{leaf},\"context\":{{}}}}"
                );
                out.push(rest.as_bytes());
            }
            out.push_byte(b']');
        }
        "completer" => {
            out.push(b"{\"metrics\":[");
            for (place, (id, node)) in nodes.into_iter().enumerate() {
                if place > 0 {
                    out.push_byte(b',');
                }
                let text = id.rsplit('.').next().unwrap_or(id);
                let ending = if node.is_leaf { "" } else { "." };
                out.push(b"{\"path\":");
                out.json_string(format!("{id}{ending}").as_bytes());
                out.push(b",\"name\":");
                out.json_string(text.as_bytes());
                out.push(format!(",\"is_leaf\":\"{}\"}}", u8::from(node.is_leaf)).as_bytes());
            }
            out.push(b"]}");
        }
        other => {
            return Err(Failure::bad(format!(
                "format `{other}` is not supported, expected treejson or completer"
            )));
        }
    }
    Ok(out.as_bytes().to_vec())
}

fn rendered(queries: &Queries, request: &HttpRequest) -> Result<Vec<u8>, Failure> {
    let format = request.get("format").unwrap_or("json");
    if format != "json" {
        return Err(Failure::bad(format!(
            "format `{format}` is not supported, expected json"
        )));
    }
    let now = now() / 1000;
    let time = |name: &str, default: i64| match request.get(name).filter(|it| !it.is_empty()) {
        None => Ok(default),
        Some(text) => parse_time(text, now).ok_or_else(|| {
            Failure::bad(format!(
                "`{name}`: found `{text}`, expected a time such as -1h"
            ))
        }),
    };
    let (from, until) = (time("from", now - DAY)?, time("until", now)?);
    if until <= from {
        return Err(Failure::bad("`until` has to be after `from`"));
    }
    let points = match request.get("maxDataPoints").filter(|it| !it.is_empty()) {
        None => None,
        Some(text) => match text.parse::<f64>() {
            Ok(count) if (1.0..1e9).contains(&count) => Some(count as usize),
            _ => {
                return Err(Failure::bad(format!(
                    "`maxDataPoints`: found `{text}`, expected a number"
                )));
            }
        },
    };
    let targets: Vec<_> = request
        .all("target")
        .map(Target::parse)
        .collect::<Result<_, _>>()?;
    if targets.is_empty() {
        return Err(Failure::bad("the parameter `target` is missing"));
    }
    let deadline = Instant::now() + queries.options.timeout;
    let Some(_turn) = queries.turn(deadline) else {
        return Err(TargetError::Timeout.into());
    };
    let source = Fetched {
        queries,
        databases: Databases::new(&queries.store, &queries.catalog, deadline),
        spent: Cell::new(0),
    };
    let window = Window {
        from,
        until,
        points,
    };
    let most = queries.options.most_answer;
    let mut out = Line::new();
    out.push_byte(b'[');
    let mut count = 0;
    for target in &targets {
        for series in render(target, &window, &source)? {
            let series = match points {
                Some(points) => series.consolidated(points),
                None => series,
            };
            if count > 0 {
                out.push_byte(b',');
            }
            count += 1;
            write_series(&mut out, &series);
            if out.as_bytes().len() > most {
                let most = most >> 20;
                return Err(Failure(
                    422,
                    format!("the answer is longer than {most} MiB (query.most-answer-mib)"),
                ));
            }
        }
    }
    out.push_byte(b']');
    Ok(out.as_bytes().to_vec())
}

fn write_series(out: &mut Line, series: &Series) {
    out.push(b"{\"target\":");
    out.json_string(series.name.as_bytes());
    out.push(b",\"tags\":{\"name\":");
    out.json_string(series.path.as_bytes());
    out.push(b"},\"datapoints\":[");
    let mut time = series.start;
    for (place, value) in series.values.iter().enumerate() {
        if place > 0 {
            out.push_byte(b',');
        }
        out.push_byte(b'[');
        match value.filter(|value| value.is_finite()) {
            Some(value) => out.push(kymo_promql::number(value, true).as_bytes()),
            // JSON has no others.
            None => out.push(b"null"),
        }
        out.push_byte(b',');
        out.signed(time);
        out.push_byte(b']');
        time = time.saturating_add(series.step);
    }
    out.push(b"]}");
}

/// Databases as a source of Graphite's series.
struct Fetched<'a> {
    queries: &'a Queries,
    databases: Databases<'a>,
    spent: Cell<u64>,
}

impl SeriesSource for Fetched<'_> {
    fn fetch(&self, pattern: &Pattern, window: &Window) -> Result<Vec<Series>, TargetError> {
        let all = self.queries.catalog.series();
        let entries = all
            .all()
            .iter()
            .filter(|entry| pattern.matches(&entry.graphite));
        let span = window.until.saturating_sub(window.from);
        let points = window.points.map_or(i64::MAX, |points| points as i64);
        let wanted = WantedRows {
            function: "AVERAGE",
            start: window.from,
            end: window.until,
            step: span / points.max(1),
        };
        let mut fetched = Vec::new();
        let read = self.databases.read(entries, |source, entry, place| {
            let Some(chosen) = archives::choose(&source.database, &wanted) else {
                return Ok(());
            };
            // Values stand at the beginning of their rows, which have their end's time.
            let step = chosen.step;
            let start = window.from.div_euclid(step).saturating_mul(step);
            let start = if start < window.from {
                start.saturating_add(step)
            } else {
                start
            };
            let count = window.until.saturating_sub(start).max(0) / step
                + i64::from(window.until.saturating_sub(start).max(0) % step > 0);
            let count = usize::try_from(count).unwrap_or(usize::MAX);
            self.spend(count).map_err(|error| match error {
                TargetError::Timeout => QueryError::Timeout,
                _ => QueryError::TooManySamples(self.queries.options.most_samples as u64),
            })?;
            let mut values = vec![None; count];
            let first = start.saturating_add(step);
            for (time, value) in archives::known_rows(
                source,
                chosen,
                place,
                first,
                window.until.saturating_add(step),
            ) {
                let place = usize::try_from(time.saturating_sub(first) / step).ok();
                if let Some(to) = place.and_then(|place| values.get_mut(place)) {
                    *to = Some(value);
                }
            }
            fetched.push(Series {
                name: entry.graphite.clone(),
                path: entry.graphite.clone(),
                start,
                step,
                values,
            });
            Ok(())
        });
        read.map_err(|error| match error {
            QueryError::Timeout => TargetError::Timeout,
            QueryError::TooManySamples(limit) => TargetError::TooManyValues(limit),
            other => TargetError::Target(other.to_string()),
        })?;
        fetched.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(fetched)
    }

    fn spend(&self, values: usize) -> Result<(), TargetError> {
        let spent = self.spent.get().saturating_add(values as u64);
        self.spent.set(spent);
        let limit = self.queries.options.most_samples as u64;
        if spent > limit {
            return Err(TargetError::TooManyValues(limit));
        }
        match Instant::now() >= self.databases.deadline {
            true => Err(TargetError::Timeout),
            false => Ok(()),
        }
    }
}

/// A time: seconds since 1970, `now`, `-1h`, `YYYYMMDD` or `HH:MM_YYYYMMDD`, in UTC.
fn parse_time(text: &str, now: i64) -> Option<i64> {
    let text = text.trim();
    if text == "now" {
        return Some(now);
    }
    let text = text.strip_prefix("now").unwrap_or(text);
    if let Some(rest) = text.strip_prefix('-') {
        let digits = rest.find(|char: char| !char.is_ascii_digit())?;
        let count: i64 = rest[..digits].parse().ok()?;
        let unit = match &rest[digits..] {
            "s" | "sec" | "secs" | "second" | "seconds" => 1,
            "min" | "mins" | "minute" | "minutes" | "m" => 60,
            "h" | "hour" | "hours" => 3600,
            "d" | "day" | "days" => DAY,
            "w" | "week" | "weeks" => 7 * DAY,
            "mon" | "month" | "months" => 30 * DAY,
            "y" | "year" | "years" => 365 * DAY,
            _ => return None,
        };
        return now.checked_sub(count.checked_mul(unit)?);
    }
    let date = |text: &str| {
        let part = |begin, end| text.get(begin..end)?.parse().ok();
        let (year, month, day): (i16, i8, i8) =
            (text.get(..4)?.parse().ok()?, part(4, 6)?, part(6, 8)?);
        (text.len() == 8)
            .then(|| Date::new(year, month, day).ok())
            .flatten()
    };
    let seconds = |time: DateTime| Some(time.to_zoned(TimeZone::UTC).ok()?.timestamp().as_second());
    if let Some((clock, day)) = text.split_once('_') {
        let (hour, minute) = clock.split_once(':')?;
        let clock = jiff::civil::Time::new(hour.parse().ok()?, minute.parse().ok()?, 0, 0).ok()?;
        return seconds(date(day)?.to_datetime(clock));
    }
    if let Some(day) = date(text).filter(|day| day.year() >= 1970) {
        return seconds(day.to_datetime(jiff::civil::Time::midnight()));
    }
    let number: f64 = text.parse().ok()?;
    (number.abs() < 1e12).then_some(number as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_graphite() {
        for (text, time) in [
            ("now", Some(1_000_000)),
            ("-1h", Some(996_400)),
            ("now-5min", Some(999_700)),
            ("1600000000", Some(1_600_000_000)),
            ("20200913", Some(1_599_955_200)),
            ("12:26_20200913", Some(1_599_999_960)),
            ("-1parsec", None),
            ("99:99_20200913", None),
            ("x", None),
        ] {
            assert_eq!(parse_time(text, 1_000_000), time, "{text}");
        }
    }

    #[test]
    fn functions_are_json() {
        let value: serde_json::Value = serde_json::from_slice(&functions()).unwrap();
        assert_eq!(value["scale"]["name"], "scale");
    }
}
