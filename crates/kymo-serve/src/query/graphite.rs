//! Graphite's HTTP API: `/metrics/find`, `/metrics/expand`, `/metrics/index.json` and `/render`.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use kymo_graphite::{NAMES, Pattern, Series, SeriesSource, Target, TargetError, Window, render};
use kymo_promql::QueryError;
use kymo_text::json::Writer;

use super::archives::{self, WantedRows};
use super::catalog::SeriesEntry;
use super::databases::Databases;
use super::deadline::Deadline;
use super::{Queries, now};
use crate::http::{Client, HttpAnswer, HttpRequest};

/// The version of Graphite whose API this is.
const VERSION: &str = "1.1.10";
/// Patterns that one request expands.
const MOST_PATTERNS: usize = 100;
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
pub(super) fn answer(
    queries: &Queries,
    path: &str,
    request: &HttpRequest,
    client: &dyn Client,
) -> Option<HttpAnswer> {
    let answered = match path {
        "/metrics/find" | "/metrics" => find(queries, request),
        "/metrics/expand" => expand(queries, request),
        "/metrics/index.json" => Ok(index(queries)),
        "/render" => rendered(queries, request, client),
        "/version" => Ok(format!("\"{VERSION}\"").into_bytes()),
        "/functions" => Ok(functions()),
        // Series have no tags, and there are no events; clients ask for them nevertheless.
        "/tags"
        | "/tags/findSeries"
        | "/tags/autoComplete/tags"
        | "/tags/autoComplete/values"
        | "/events/get_data" => Ok(b"[]".to_vec()),
        _ => return None,
    };
    Some(match answered {
        Ok(body) => HttpAnswer::json(200, body),
        Err(Failure(status, text)) => HttpAnswer::text(status, &format!("{text}\n")),
    })
}

/// The functions that exist, as far as clients ask: their names.
fn functions() -> Vec<u8> {
    let mut json = Writer::default();
    json.begin_object();
    for name in NAMES {
        json.key(name);
        json.begin_object();
        json.entry("name", name);
        json.entry("function", format!("{name}(seriesList)").as_str());
        json.entry("description", "");
        json.entry("module", "");
        json.entry("group", "kymo");
        json.begin_list("params");
        json.end_list();
        json.end_object();
    }
    json.end_object();
    json.as_bytes().to_vec()
}

/// What there is at a level of paths.
#[derive(Clone, Copy, Default)]
struct Node {
    is_leaf: bool,
    has_children: bool,
}

/// What there is at the level of a pattern, by paths.
fn nodes(all: &[Arc<SeriesEntry>], query: &str) -> Result<BTreeMap<String, Node>, Failure> {
    let pattern = Pattern::parse(query)?;
    let mut nodes: BTreeMap<String, Node> = BTreeMap::new();
    for entry in all {
        let path = entry.graphite.as_str();
        let Some(rest) = pattern.matches_beginning(path) else {
            continue;
        };
        let id = match rest.is_empty() {
            true => path,
            // Without the point.
            false => &path[..path.len() - rest.len() - 1],
        };
        let node = match nodes.get_mut(id) {
            Some(node) => node,
            None => nodes.entry(id.to_owned()).or_default(),
        };
        match rest.is_empty() {
            true => node.is_leaf = true,
            false => node.has_children = true,
        }
    }
    Ok(nodes)
}

/// The last part of a path.
fn last_part(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or(path)
}

fn find(queries: &Queries, request: &HttpRequest) -> Result<Vec<u8>, Failure> {
    let query = request.get("query").filter(|query| !query.is_empty());
    let query = query.ok_or_else(|| Failure::bad("the parameter `query` is missing"))?;
    let series = queries.catalog.series();
    let nodes = nodes(series.all(), query)?;
    let mut json = Writer::default();
    match request.get("format").unwrap_or("treejson") {
        "treejson" => {
            // As in Graphite, names come once, below the pattern that was asked for: clients choose among names.
            let base = query.rfind('.').map_or("", |point| &query[..=point]);
            let mut names: BTreeMap<&str, Node> = BTreeMap::new();
            for (id, node) in &nodes {
                let name = names.entry(last_part(id)).or_default();
                name.is_leaf |= node.is_leaf;
                name.has_children |= node.has_children;
            }
            let mut listed: Vec<_> = names.into_iter().collect();
            listed.sort_by_key(|(_, node)| !node.has_children);
            if request.get("wildcards") == Some("1") && listed.len() > 1 {
                let has_children = listed.iter().any(|(_, node)| node.has_children);
                let is_leaf = !has_children;
                listed.insert(
                    0,
                    (
                        "*",
                        Node {
                            is_leaf,
                            has_children,
                        },
                    ),
                );
            }
            json.begin_array();
            for (name, node) in listed {
                let children = u64::from(node.has_children);
                json.begin_object();
                json.entry("text", name);
                json.entry("id", format!("{base}{name}").as_str());
                json.entry("allowChildren", children);
                json.entry("expandable", children);
                json.entry("leaf", u64::from(node.is_leaf));
                json.key("context");
                json.raw("{}");
                json.end_object();
            }
            json.end_list();
        }
        "completer" => {
            json.begin_object();
            json.begin_list("metrics");
            for (id, node) in &nodes {
                let ending = if node.is_leaf { "" } else { "." };
                json.begin_object();
                json.entry("path", format!("{id}{ending}").as_str());
                json.entry("name", last_part(id));
                json.entry("is_leaf", if node.is_leaf { "1" } else { "0" });
                json.end_object();
            }
            json.end_list();
            json.end_object();
        }
        "nodelist" => {
            let names: BTreeSet<&str> = nodes.keys().map(|id| last_part(id)).collect();
            json.begin_object();
            json.key("nodes");
            json.texts(names);
            json.end_object();
        }
        "json" => {
            json.begin_array();
            for (id, node) in &nodes {
                json.begin_object();
                json.entry("path", id.as_str());
                json.entry("is_leaf", node.is_leaf);
                json.end_object();
            }
            json.end_list();
        }
        other => {
            return Err(Failure::bad(format!(
                "format `{other}` is not supported, expected treejson, completer, nodelist or json"
            )));
        }
    }
    Ok(json.as_bytes().to_vec())
}

/// The paths that patterns mean.
fn expand(queries: &Queries, request: &HttpRequest) -> Result<Vec<u8>, Failure> {
    let is_set = |name: &str| request.get(name) == Some("1");
    if request.all("query").nth(MOST_PATTERNS).is_some() {
        return Err(Failure::bad(format!(
            "more than {MOST_PATTERNS} parameters `query`"
        )));
    }
    let series = queries.catalog.series();
    let mut groups: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for query in request.all("query") {
        let nodes = nodes(series.all(), query)?.into_iter();
        let nodes = nodes.filter(|(_, node)| node.is_leaf || !is_set("leavesOnly"));
        groups
            .entry(query)
            .or_default()
            .extend(nodes.map(|(id, _)| id));
    }
    if groups.is_empty() {
        return Err(Failure::bad("the parameter `query` is missing"));
    }
    let mut json = Writer::default();
    json.begin_object();
    json.key("results");
    if is_set("groupByExpr") {
        json.begin_object();
        for (query, paths) in &groups {
            json.key(query);
            json.texts(paths.iter().map(String::as_str));
        }
        json.end_object();
    } else {
        let paths: BTreeSet<&str> = groups.values().flatten().map(String::as_str).collect();
        json.texts(paths);
    }
    json.end_object();
    Ok(json.as_bytes().to_vec())
}

/// All paths.
fn index(queries: &Queries) -> Vec<u8> {
    let series = queries.catalog.series();
    let paths: BTreeSet<&str> = series.all().iter().map(|it| it.graphite.as_str()).collect();
    let mut json = Writer::default();
    json.texts(paths);
    json.as_bytes().to_vec()
}

fn rendered(
    queries: &Queries,
    request: &HttpRequest,
    client: &dyn Client,
) -> Result<Vec<u8>, Failure> {
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
    // As in Graphite, their order does not matter.
    let (from, until) = (from.min(until), from.max(until));
    if until == from {
        return Err(Failure::bad("`from` and `until` are the same time"));
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
    let deadline = Deadline::after(queries.options.timeout, client);
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
    let mut json = Writer::default();
    json.begin_array();
    for target in &targets {
        for series in render(target, &window, &source)? {
            let series = match points {
                Some(points) => series.consolidated(points),
                None => series,
            };
            if !write_series(&mut json, &series, most) {
                let most = most >> 20;
                return Err(Failure(
                    422,
                    format!("the answer is longer than {most} MiB (query.most-answer-mib)"),
                ));
            }
        }
    }
    json.end_list();
    Ok(json.as_bytes().to_vec())
}

/// Writes a series; `false` if the answer is longer than `most` bytes, which ends it.
fn write_series(json: &mut Writer, series: &Series, most: usize) -> bool {
    json.begin_object();
    json.entry("target", series.name.as_str());
    json.key("tags");
    json.begin_object();
    json.entry("name", series.path.as_str());
    json.end_object();
    json.begin_list("datapoints");
    let mut time = series.start;
    for value in &series.values {
        if json.as_bytes().len() > most {
            return false;
        }
        json.begin_array();
        match value.filter(|value| value.is_finite()) {
            Some(value) => json.raw(kymo_promql::number(value, true)),
            // JSON has no others.
            None => json.null(),
        }
        json.value(time);
        json.end_list();
        time = time.saturating_add(series.step);
    }
    json.end_list();
    json.end_object();
    json.as_bytes().len() <= most
}

/// Databases as a source of Graphite's series.
struct Fetched<'a> {
    queries: &'a Queries,
    databases: Databases<'a>,
    spent: Cell<u64>,
}

impl SeriesSource for Fetched<'_> {
    fn fetch(&self, pattern: &Pattern, window: &Window) -> Result<Vec<Series>, TargetError> {
        // Also of patterns that match nothing.
        self.spend(0)?;
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
        match self.databases.deadline.is_over() {
            true => Err(TargetError::Timeout),
            false => Ok(()),
        }
    }
}

/// A time: seconds since 1970, `now`, `today`, `-1h`, `noon-1d`, `YYYYMMDD` or `HH:MM_YYYYMMDD`, in UTC.
fn parse_time(text: &str, now: i64) -> Option<i64> {
    let text = text.trim();
    // Offsets may follow `now` and names of times, or stand alone; a date has none.
    let day = now.div_euclid(DAY) * DAY;
    let names = [
        ("now", now),
        ("today", day),
        ("midnight", day),
        ("yesterday", day - DAY),
        ("tomorrow", day + DAY),
        ("noon", day + DAY / 2),
        ("teatime", day + 16 * 3600),
        ("", now),
    ];
    for (name, time) in names {
        if let Some(offsets) = text.strip_prefix(name)
            && (offsets.is_empty() && !name.is_empty() || offsets.starts_with(['-', '+']))
        {
            let offset = match offsets {
                "" => 0,
                offsets => kymo_graphite::seconds(offsets)?,
            };
            return time.checked_add(offset);
        }
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
            ("now-1h30min", Some(994_600)),
            ("+10s", Some(1_000_010)),
            ("today", Some(950_400)),
            ("yesterday", Some(864_000)),
            ("noon-1d", Some(907_200)),
            ("-1parsec", None),
            ("-", None),
            ("-99999999999999999999h", None),
            ("-9223372036854775807y", None),
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
