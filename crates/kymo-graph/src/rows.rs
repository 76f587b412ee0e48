//! What to draw of recordings that are not databases: values of metrics and counters, and rates of events.

use std::collections::HashMap;
use std::ops::ControlFlow;

use kymo::filter::Glob;
use kymo::timeline::{Columns, Notice, Query, QueryError, RowTracks, Shape, TrackEntry};
use kymo::{AnyRecording, Timeline};
use kymo_model::Value;
use kymo_model::batch::{Batch, Column, ColumnData};

use crate::bins::{Bins, Counts, Length, OTHER, busiest};
use crate::panel::{Content, MOST_SERIES, Panel, Series};
use crate::{Choice, ValueOf, as_database, stream_of, title_of, units};

/// Different values and tracks of a recording that are counted apart; the rest are counted as `other`.
const MOST_COUNTED: usize = 10_000;
/// Series of values that are drawn.
const MOST_VALUES: usize = 10_000;
/// Places of losses that are kept.
const MOST_LOSSES: usize = 10_000;

/// A series of values while it is read.
struct Values {
    bins: Bins,
    /// The last value and its time, of what counts up.
    before: Option<(i64, f64)>,
    is_rate: bool,
    /// The shortest time between two values, in nanoseconds.
    interval: i64,
    last: Option<i64>,
}

/// What is read of a timeline.
struct Reader<'t> {
    timeline: &'t Timeline,
    length: Length,
    /// By recording and number of the track.
    values: HashMap<(usize, u32), Values>,
    /// By recording, those of each name.
    counts: Vec<HashMap<String, Counts>>,
    losses: Vec<(usize, i64)>,
}

/// The panels of recordings that are not databases: of all events that the choice wants, or else only the rates of
/// those of some patterns.
pub(crate) fn panels(
    timeline: &Timeline,
    choice: &Choice,
    counted: Option<&[Glob]>,
    notice: &mut dyn FnMut(&Notice),
) -> Result<Vec<Panel>, QueryError> {
    let mut query = query_of(choice);
    let what = match counted {
        Some(patterns) => {
            query.filter.events = patterns.to_vec();
            let names: Vec<_> = patterns.iter().map(Glob::pattern).collect();
            names.join(", ")
        }
        None => "events".to_string(),
    };
    let mut reader = Reader {
        timeline,
        length: choice.length(),
        values: HashMap::new(),
        counts: timeline
            .recordings()
            .iter()
            .map(|_| HashMap::new())
            .collect(),
        losses: Vec::new(),
    };
    if let Some(per) = &choice.per {
        query.columns = Columns::Named(per.clone());
        let per = &per.to_string();
        query.shape = Shape::Mixed;
        timeline.for_each_batch(&query, |batch| {
            reader.count_per(&batch, per);
            reader.notice(&batch, notice);
            ControlFlow::Continue(())
        })?;
        return Ok(reader.finish(&[], &what, Some(per)));
    }
    let has_metrics = counted.is_none()
        && timeline
            .recordings()
            .iter()
            .any(|recording| matches!(recording, AnyRecording::Metrics(_)));
    if has_metrics {
        query.columns = Columns::named("values")?;
    }
    let mut tracks = RowTracks::new(timeline, &mut query)?;
    timeline.for_each_batch(&query, |batch| {
        reader.take(&batch, &mut tracks);
        reader.notice(&batch, notice);
        ControlFlow::Continue(())
    })?;
    let names: Vec<Vec<(String, String)>> = (0..timeline.recordings().len())
        .map(|recording| {
            let tracks = tracks.tracks(recording).iter();
            tracks
                .map(|track| {
                    let parent = track.path.parent().map(|path| path.to_string());
                    let last = track.path.parts().last().map(ToString::to_string);
                    match parent {
                        Some(parent) => (parent, last.unwrap_or_default()),
                        None => (String::new(), track.name.to_string()),
                    }
                })
                .collect()
        })
        .collect();
    Ok(reader.finish(&names, &what, None))
}

/// The rows that a choice wants.
fn query_of(choice: &Choice) -> Query {
    let mut query = Query::default();
    query.filter = choice.filter.clone();
    query.range = choice.range;
    query.threads = choice.threads.max(1);
    query.read.clone_from(&choice.read);
    query
}

/// The values of columns in a row; `None` if an event has no value in any column.
fn key(columns: &[Column], row: usize) -> Option<String> {
    let texts: Vec<Option<String>> = columns
        .iter()
        .map(|column| text(column.value(row)))
        .collect();
    let is_known = texts.iter().any(Option::is_some);
    let texts = texts
        .into_iter()
        .map(|text| text.unwrap_or_else(|| "-".into()));
    is_known.then(|| texts.collect::<Vec<_>>().join(", "))
}

/// A panel of the values of a field, of all recordings together: a series, or one for each of the values by which they
/// are kept apart.
pub(crate) fn values(
    timeline: &Timeline,
    choice: &Choice,
    values: &ValueOf,
    notice: &mut dyn FnMut(&Notice),
) -> Result<Panel, QueryError> {
    let mut query = query_of(choice);
    query.filter.events = vec![values.event.clone()];
    query.shape = Shape::Mixed;
    query.columns = match &choice.per {
        Some(per) => Columns::named(&format!("{}, {per}", values.field))?,
        None => Columns::Named(values.field.clone()),
    };
    let mut length = choice.length();
    let mut bins: HashMap<String, (u64, Bins)> = HashMap::new();
    let mut losses = Vec::new();
    let name = format!("{}:{}", values.event.pattern(), values.field);
    timeline.for_each_batch(&query, |batch| {
        let columns = batch.columns();
        for row in 0..batch.len() {
            let time = batch.head(row).time;
            let value = columns.first().and_then(|column| number(column.value(row)));
            let (Some(time), Some(value)) = (time, value) else {
                continue;
            };
            let series = match columns.get(1..).unwrap_or_default() {
                [] => Some(String::new()),
                per => key(per, row),
            };
            let Some(mut series) = series else { continue };
            if bins.len() >= MOST_COUNTED && !bins.contains_key(&series) {
                series = OTHER.into();
            }
            length.cover(time.as_nanos());
            let (count, bins) = bins.entry(series).or_insert_with(|| (0, Bins::new(length)));
            *count += 1;
            bins.add(&length, time.as_nanos(), value);
        }
        for met in batch.notices() {
            notice(met);
            let row = met.before.min(batch.len().saturating_sub(1));
            let time = (row < batch.len()).then(|| batch.head(row).time).flatten();
            losses.extend(
                time.filter(|_| losses.len() < MOST_LOSSES)
                    .map(|time| time.as_nanos()),
            );
        }
        ControlFlow::Continue(())
    })?;
    let of_name = |(series, (count, bins)): (String, (u64, Bins))| {
        let series = match &choice.per {
            Some(per) => format!("{per}={series}"),
            None => name.clone(),
        };
        (series, count, bins)
    };
    let all = bins.into_iter().map(of_name).collect();
    let series = busiest(all, |into: &mut Bins, from| into.append(from, &length));
    let series = series.into_iter().map(|(name, bins)| {
        let (points, all) = bins.points(&length);
        Series {
            name,
            points,
            // A field keeps its value until the next event.
            gap: i64::MAX,
            stats: all.stats(),
        }
    });
    let series = series.collect();
    Ok(Panel {
        title: name,
        unit: units::of_name(&values.field.to_string(), false).into(),
        range: length.whole_range(),
        is_relative: kymo::open::are_relative(timeline.recordings()),
        content: Content::Series(series),
        losses,
    })
}

impl Reader<'_> {
    fn is_drawn(&self, recording: usize) -> bool {
        as_database(&self.timeline.recordings()[recording]).is_none()
    }

    fn count(&mut self, recording: usize, name: &str, time: i64) {
        self.length.cover(time);
        let length = self.length;
        let counts = &mut self.counts[recording];
        if let Some(counts) = counts.get_mut(name) {
            counts.add(&length, time);
            return;
        }
        let name = match counts.len() < MOST_COUNTED {
            true => name,
            false => OTHER,
        };
        let counts = counts.entry(name.to_owned());
        counts
            .or_insert_with(|| Counts::new(length))
            .add(&length, time);
    }

    fn count_per(&mut self, batch: &Batch, per: &str) {
        let columns = batch.columns();
        for row in 0..batch.len() {
            let head = batch.head(row);
            let recording = head.id.recording as usize;
            let (Some(time), true) = (head.time, self.is_drawn(recording)) else {
                continue;
            };
            if let Some(values) = key(columns, row) {
                let name = match columns.len() {
                    1 => format!("{per}={values}"),
                    _ => values,
                };
                self.count(recording, &name, time.as_nanos());
            }
        }
    }

    fn take(&mut self, batch: &Batch, tracks: &mut RowTracks<'_>) {
        let mut entries = Vec::new();
        for row in 0..batch.len() {
            let head = batch.head(row);
            let recording = head.id.recording as usize;
            let (Some(time), true) = (head.time, self.is_drawn(recording)) else {
                continue;
            };
            let time = time.as_nanos();
            let rates = match self.timeline.recordings()[recording] {
                AnyRecording::Metrics(_) => batch.column("values"),
                _ => None,
            };
            let mut element = 0;
            entries.clear();
            entries.extend_from_slice(tracks.of(batch, row));
            for &entry in &entries {
                match entry {
                    TrackEntry::Row(track) => {
                        let name = &tracks.tracks(recording)[track as usize].name;
                        self.count(recording, name, time);
                    }
                    TrackEntry::Value(track, value) => {
                        let is_rate = rates.is_some_and(|rates| counts_up(rates, row, element));
                        element += 1;
                        self.value((recording, track), time, value, is_rate);
                    }
                }
            }
        }
    }

    fn value(&mut self, key: (usize, u32), time: i64, value: Option<f64>, is_rate: bool) {
        if self.values.len() >= MOST_VALUES && !self.values.contains_key(&key) {
            return;
        }
        self.length.cover(time);
        let length = self.length;
        let values = self.values.entry(key).or_insert_with(|| Values {
            bins: Bins::new(length),
            before: None,
            is_rate,
            interval: i64::MAX,
            last: None,
        });
        if let Some(last) = values.last.replace(time) {
            let interval = time.saturating_sub(last);
            if interval > 0 {
                values.interval = values.interval.min(interval);
            }
        }
        let Some(value) = value else {
            values.before = None;
            return;
        };
        if !values.is_rate {
            values.bins.add(&length, time, value);
            return;
        }
        if let Some((before, than)) = values.before {
            let seconds = time.saturating_sub(before) as f64 / 1e9;
            // What goes back was set to zero or went round: the rate between is not known.
            if seconds > 0.0 && value >= than {
                values.bins.add(&length, time, (value - than) / seconds);
            }
        }
        values.before = Some((time, value));
    }

    /// Keeps where something was lost: at the row behind it, or else before it.
    fn notice(&mut self, batch: &Batch, take: &mut dyn FnMut(&Notice)) {
        for notice in batch.notices() {
            take(notice);
            let recording = notice.recording as usize;
            if !self.is_drawn(recording) || batch.is_empty() || self.losses.len() >= MOST_LOSSES {
                continue;
            }
            let row = notice.before.min(batch.len() - 1);
            if let Some(time) = batch.head(row).time {
                self.losses.push((recording, time.as_nanos()));
            }
        }
    }

    fn finish(self, names: &[Vec<(String, String)>], what: &str, per: Option<&str>) -> Vec<Panel> {
        let Self {
            timeline,
            length,
            values,
            counts,
            mut losses,
        } = self;
        let range = length.whole_range();
        let is_relative = kymo::open::are_relative(timeline.recordings());
        losses.dedup();
        let panel = |recording: usize, title: &str, unit: String, series: Vec<Series>| {
            let name = title_of(&timeline.recordings()[recording]);
            let at = losses.iter().filter(|(place, _)| *place == recording);
            Panel {
                title: match title {
                    "" => name,
                    title => format!("{name}: {title}"),
                },
                unit,
                range,
                is_relative,
                content: Content::Series(series),
                losses: at.map(|(_, time)| *time).collect(),
            }
        };
        let mut panels = Vec::new();
        let mut values: Vec<_> = values.into_iter().collect();
        values.sort_by_key(|((recording, track), _)| (*recording, *track));
        let mut before: Option<(usize, String, String)> = None;
        for ((recording, track), values) in values {
            let (group, name) = names[recording][track as usize].clone();
            let title = if group.is_empty() { &name } else { &group };
            let hint = format!("{group} {name}");
            let unit = units::of_name(&hint.replace(['/', '-'], " "), values.is_rate).to_string();
            let (points, all) = values.bins.points(&length);
            let (bin, bin_end) = length.times(0);
            let bin = bin_end.saturating_sub(bin);
            let is_metric = matches!(timeline.recordings()[recording], AnyRecording::Metrics(_));
            let series = Series {
                name: name.clone(),
                points,
                // A metric that misses two of its intervals is not known between; a counter stays what it was.
                gap: match is_metric {
                    true => values
                        .interval
                        .saturating_mul(5)
                        .saturating_div(2)
                        .max(bin.saturating_mul(2)),
                    false => i64::MAX,
                },
                stats: all.stats(),
            };
            let key = (recording, title.clone(), unit.clone());
            match panels.last_mut() {
                Some(Panel {
                    content: Content::Series(all),
                    ..
                }) if before.as_ref() == Some(&key) && all.len() < MOST_SERIES => {
                    all.push(series);
                }
                _ => panels.push(panel(recording, title, unit, vec![series])),
            }
            before = Some(key);
        }
        for (recording, counts) in counts.into_iter().enumerate() {
            let is_empty = counts.is_empty();
            let recordings = timeline.recordings();
            let counts = counts
                .into_iter()
                .map(|(name, counts)| {
                    let name = match per {
                        None => stream_of(&recordings[recording], &name).to_owned(),
                        Some(_) => name,
                    };
                    (name, counts.total, counts)
                })
                .collect();
            let merge = |into: &mut Counts, from| into.append(from, &length);
            let series = busiest(counts, merge)
                .into_iter()
                .map(|(name, counts)| rates(name, counts, &length))
                .collect();
            let has_values = panels
                .iter()
                .any(|panel: &Panel| !panel.series().is_empty());
            let is_drawn = as_database(&timeline.recordings()[recording]).is_none();
            if is_drawn && (!is_empty || !has_values) {
                let title = match per {
                    Some(per) => format!("{what} by {per}"),
                    None => what.to_string(),
                };
                panels.push(panel(recording, &title, "/s".into(), series));
            }
        }
        panels
    }
}

fn rates(name: String, counts: Counts, length: &Length) -> Series {
    let (points, all) = counts.rates(length);
    Series {
        name,
        points,
        gap: 0,
        stats: all.stats(),
    }
}

/// Whether an element of a list of collectd's values is a count that goes up.
fn counts_up(values: &Column, row: usize, element: usize) -> bool {
    let ColumnData::List { offsets, items } = &values.data else {
        return false;
    };
    let item = offsets[row] as usize + element;
    let ColumnData::Struct { members, .. } = &items.data else {
        return false;
    };
    // In the order of their numbers on the wire: COUNTER, GAUGE, DERIVE, ABSOLUTE.
    [0, 2].into_iter().any(|kind| {
        let member = members.get(kind);
        member.is_some_and(|member| item < member.len() && member.is_valid(item))
    })
}

/// A value as a number.
fn number(value: Value<'_>) -> Option<f64> {
    Some(match value {
        Value::Uint(value) | Value::Bits(value) => value as f64,
        Value::Sint(value) => value as f64,
        Value::Float(value) => value,
        Value::Bool(value) => f64::from(u8::from(value)),
        _ => return None,
    })
}

/// A value as the name of a series.
fn text(value: Value<'_>) -> Option<String> {
    Some(match value {
        Value::Uint(value) | Value::Bits(value) | Value::Array(value) => value.to_string(),
        Value::Sint(value) => value.to_string(),
        Value::Float(value) => value.to_string(),
        Value::Bool(value) => value.to_string(),
        Value::Text(value) | Value::Blob(value) => String::from_utf8_lossy(value).into_owned(),
        _ => return None,
    })
}
