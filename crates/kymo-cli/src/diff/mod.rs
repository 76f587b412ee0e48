//! `kymo diff`.

mod align;
mod events;
mod flame;
pub(crate) mod limit;

use std::path::{Path, PathBuf};

use kymo::analysis::compare::{Change, Measured, Sample, Side, compare};
use kymo::analysis::{
    Coverage, EventPattern, GroupBy, LatencyQuery, Options, ProfileQuery, SideQuery, has_slices,
};
use kymo::filter::Moment;
use serde_json::{Value, json};

use crate::analysis::selected;
use crate::args::diff::Diff;
use crate::args::{Input, Selection};
use crate::open::{Inputs, inputs, threads};
use crate::terminal::{Failure, Outcome, Terminal};

/// One of the two recordings.
struct Source {
    inputs: Inputs,
    selection: Selection,
}

/// Compares two recordings.
pub(crate) fn run(args: &Diff, terminal: &Terminal) -> Result<Outcome, Failure> {
    let Some(paths) = args.sides() else {
        let problem = "error: expected two recordings or ranges to compare\n\
                       hint: `kymo diff A B`, or `kymo diff A@BEGIN..END A@BEGIN..END`; of a recording with several files, specify the directory";
        return Err(Failure::Usage(problem.to_string()));
    };
    let [a, b] = paths.map(|path| source(args, path, terminal));
    let (a, b) = (a?, b?);
    if args.events {
        return events::run(args, [&a, &b], terminal);
    }
    if let Some(file) = &args.flame {
        if file.exists() && !args.force {
            return Err(crate::outputs::exists(file));
        }
        let svg = flame::svg(args, [&a, &b], terminal)?;
        crate::outputs::write_file(file, args.force, |out| {
            std::io::Write::write_all(out, svg.as_bytes())
        })?;
    }
    let ((first, of_first), (second, of_second)) =
        (measure(args, &a, terminal)?, measure(args, &b, terminal)?);
    let changes = compare(&first, &second, args.alpha, args.least);
    let mut crossed = Vec::new();
    for limit in &args.fail_if {
        match limit.crossed(&changes, &first, &second) {
            Some(messages) => crossed.extend(messages),
            None => return Err(Failure::Usage(limit.no_group(&changes))),
        }
    }
    let report = match args.json {
        true => to_json(&changes, [&first, &second], &crossed),
        false => to_text(args, &changes, [&first, &second]),
    };
    terminal.write(report.as_bytes())?;
    for message in &crossed {
        terminal.error(message);
    }
    let mut outcome = match crossed.is_empty() {
        true => Outcome::Good,
        false => Outcome::Damage,
    };
    for (source, coverage) in [(&a, of_first), (&b, of_second)] {
        coverage
            .faults
            .iter()
            .for_each(|fault| terminal.fault(fault));
        let is_lost = args.work.strict && !coverage.discarded.is_empty();
        if source.inputs.outcome != Outcome::Good || !coverage.is_good() || is_lost {
            outcome = Outcome::Damage;
        }
    }
    Ok(outcome)
}

/// Opens one of the two, of which there may be a range behind `@`.
fn source(args: &Diff, path: &Path, terminal: &Terminal) -> Result<Source, Failure> {
    let mut selection = args.selection.clone();
    let mut path = path.to_path_buf();
    if let Some((file, range)) = split_range(&path) {
        let (begin, end) = range
            .map_err(|error| Failure::Usage(format!(
                "error: `{}`: {error}\nhint: a range is written PATH@BEGIN..END, such as `trace@10:15..10:16`",
                path.display()
            )))?;
        path = file;
        selection.timerange = None;
        (selection.begin, selection.end) = (begin, end);
    }
    let input = Input {
        paths: vec![path],
        ..args.input.clone()
    };
    let mut inputs = inputs(&input, args.work.strict, terminal)?;
    if args.symbols.is_given() {
        // Of single events, addresses stay what they are beside their names.
        inputs = args.symbols.apply(inputs, !args.events, terminal)?;
    }
    Ok(Source { inputs, selection })
}

type Range = Result<(Option<Moment>, Option<Moment>), kymo::filter::TimeError>;

/// Splits `PATH@BEGIN..END`, of which either time may be left out; a path that exists has no range.
fn split_range(path: &Path) -> Option<(PathBuf, Range)> {
    if path.exists() {
        return None;
    }
    let (file, range) = path.to_str()?.rsplit_once('@')?;
    let (begin, end) = range.split_once("..")?;
    let moment = |text: &str| match text {
        "" => Ok(None),
        text => text.parse().map(Some),
    };
    let range = moment(begin).and_then(|begin| Ok((begin, moment(end)?)));
    Some((PathBuf::from(file), range))
}

fn measure(args: &Diff, source: &Source, terminal: &Terminal) -> Result<(Side, Coverage), Failure> {
    let recordings = &source.inputs.recordings;
    let both =
        |begin: &Option<EventPattern>, end: &Option<EventPattern>| begin.clone().zip(end.clone());
    let (latency, profile) = (both(&args.start, &args.end), both(&args.enter, &args.exit));
    // Slices that recordings have of their own are measured both ways.
    let own = latency.is_none() && profile.is_none() && has_slices(recordings);
    let tracks = args.tracks.by();
    let name = || GroupBy::parse("name").unwrap_or_default();
    let query = SideQuery {
        by: args.by.clone().unwrap_or_else(name),
        latency: (own || latency.is_some()).then(|| LatencyQuery {
            events: latency,
            pair_by: args.pair_by.clone().unwrap_or_default(),
            tracks: tracks.clone(),
            worst: 0,
        }),
        profile: (own || profile.is_some()).then(|| ProfileQuery {
            events: profile,
            key: args.key.clone(),
            tracks: tracks.clone(),
            running: false,
            call_graph: false,
        }),
        tracks,
        fields: args.field.clone(),
    };
    let options = Options {
        threads: threads(&args.work),
        strict: args.work.strict,
        ..Options::default()
    };
    selected(&source.inputs, &source.selection, terminal, |select| {
        Side::new(recordings, select, &query, &options)
    })
}

/// The figures of a sample, with their names.
fn figures(sample: &Sample) -> [(&'static str, f64); 8] {
    let (min, max) = sample.extremes();
    [
        ("total", sample.total()),
        ("mean", sample.mean()),
        ("min", min),
        ("p50", sample.percentile(500)),
        ("p90", sample.percentile(900)),
        ("p95", sample.percentile(950)),
        ("p99", sample.percentile(990)),
        ("max", max),
    ]
}

fn to_json(changes: &[Change], sides: [&Side; 2], crossed: &[String]) -> String {
    let side = |measured: &Option<Measured>, side: &Side| match measured {
        None => Value::Null,
        Some(Measured::Events(rate)) => {
            json!({"count": rate.count(), "rate": rate.count() as f64 / side.seconds().max(1e-9)})
        }
        Some(Measured::Numbers(sample)) => {
            let mut all = serde_json::Map::new();
            all.insert("count".into(), sample.count().into());
            for (name, value) in figures(sample) {
                all.insert(name.into(), value.into());
            }
            Value::Object(all)
        }
    };
    let changes = changes.iter().map(|change| {
        json!({
            "kind": change.kind,
            "group": change.group,
            "changed": change.is_change,
            "a": side(&change.a, sides[0]),
            "b": side(&change.b, sides[1]),
            "p": change.verdict.map(|verdict| verdict.p),
            "q": change.verdict.map(|_| change.q),
            "effect": change.verdict.map(|verdict| verdict.effect),
            "weight": change.weight,
        })
    });
    let changes: Vec<Value> = changes.collect();
    let seconds = sides.map(Side::seconds);
    let report = json!({
        "schema": 1,
        "seconds": {"a": seconds[0], "b": seconds[1]},
        "changes": changes,
        "crossed": crossed,
    });
    format!("{report}\n")
}

/// A number with its unit.
fn shown(kind: &str, value: f64) -> String {
    if kind.starts_with("values.") {
        return format!("{value:.6}")
            .trim_end_matches('0')
            .trim_end_matches('.')
            .to_string();
    }
    let units = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];
    let (unit, size) = units
        .into_iter()
        .rfind(|(_, size)| value.abs() >= *size)
        .unwrap_or(units[0]);
    format!("{:.3} {unit}", value / size)
}

fn share(a: f64, b: f64) -> String {
    match a {
        0.0 => "-".to_string(),
        _ => format!("{:+.1} %", (b / a - 1.0) * 100.0),
    }
}

fn to_text(args: &Diff, changes: &[Change], sides: [&Side; 2]) -> String {
    let mut text = String::new();
    let mut kinds: Vec<&str> = changes.iter().map(|change| change.kind.as_str()).collect();
    kinds.dedup();
    for kind in kinds {
        let of_kind = changes.iter().filter(|change| change.kind == kind);
        let count = of_kind.clone().count();
        let changed = of_kind.clone().filter(|change| change.is_change).count();
        text += &format!("{kind}: {changed} of {count} groups changed\n");
        let is_shown = |change: &&Change| args.all || change.is_change;
        let top = args.top.unwrap_or(usize::MAX);
        let mut rows: Vec<Vec<String>> = Vec::new();
        for change in of_kind.filter(is_shown).take(top) {
            rows.push(row(change, sides));
        }
        if rows.is_empty() {
            continue;
        }
        let header = match kind {
            "events" => [
                "events",
                "",
                "rate (1/s)",
                "",
                "change",
                "",
                "chance",
                "group",
            ],
            _ => ["count", "", "p50", "", "change", "p99", "chance", "group"],
        };
        rows.insert(0, header.map(str::to_string).to_vec());
        text += &aligned(&rows);
    }
    text
}

fn row(change: &Change, sides: [&Side; 2]) -> Vec<String> {
    let count = |measured: &Option<Measured>| match measured {
        None => "-".to_string(),
        Some(Measured::Events(rate)) => rate.count().to_string(),
        Some(Measured::Numbers(sample)) => sample.count().to_string(),
    };
    let figure = |measured: &Option<Measured>, side: &Side| match measured {
        None => "-".to_string(),
        Some(Measured::Events(rate)) => {
            format!("{:.3}", rate.count() as f64 / side.seconds().max(1e-9))
        }
        Some(Measured::Numbers(sample)) => shown(&change.kind, sample.percentile(500)),
    };
    let (median, tail) = match (&change.a, &change.b) {
        (None, _) => ("only in the second".to_string(), String::new()),
        (_, None) => ("only in the first".to_string(), String::new()),
        (Some(Measured::Numbers(a)), Some(Measured::Numbers(b))) => (
            share(a.percentile(500), b.percentile(500)),
            share(a.percentile(990), b.percentile(990)),
        ),
        (Some(Measured::Events(a)), Some(Measured::Events(b))) => {
            let rate = |count: u64, side: &Side| count as f64 / side.seconds().max(1e-9);
            (
                share(rate(a.count(), sides[0]), rate(b.count(), sides[1])),
                String::new(),
            )
        }
        _ => (String::new(), String::new()),
    };
    let chance = match change.verdict {
        Some(_) if change.q < 1e-4 => "<0.0001".to_string(),
        Some(_) => format!("{:.4}", change.q),
        None => "-".to_string(),
    };
    let group = kymo_text::visible(&change.group).into_owned();
    vec![
        count(&change.a),
        count(&change.b),
        figure(&change.a, sides[0]),
        figure(&change.b, sides[1]),
        median,
        tail,
        chance,
        group,
    ]
}

/// Rows of cells, all but the last to the right.
fn aligned(rows: &[Vec<String>]) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| {
        rows.iter()
            .map(|row| row[column].chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        for (column, cell) in row.iter().enumerate() {
            if column + 1 == columns {
                text += cell;
            } else {
                let blanks = widths[column] - cell.chars().count();
                text.extend(std::iter::repeat_n(' ', blanks));
                text += cell;
                text += "  ";
            }
        }
        text.push('\n');
    }
    text
}
