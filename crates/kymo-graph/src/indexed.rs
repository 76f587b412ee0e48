//! Events over time, counted from an index instead of reading them.

use std::collections::BTreeMap;

use kymo::pipeline::Window;
use kymo::timeline::{Direction, TimelineIndex};
use kymo::{AnyRecording, Timeline};
use kymo_model::Recording as _;
use kymo_time::Timestamp;

use crate::as_database;
use crate::bins::busiest;
use crate::panel::{Content, Panel, Series, Sum};

/// The panels of recordings that are not databases, if an index that is whole has all that is needed: traces without
/// series of values. `None` if rows have to be read.
pub(crate) fn panels(
    timeline: &Timeline,
    index: &TimelineIndex,
    range: Window,
    width: usize,
) -> Option<Vec<Panel>> {
    let edge = |from: Timestamp, direction| index.nearest(from, direction, None);
    let first = edge(range.begin, Direction::Forwards)?;
    let last = edge(range.end, Direction::Backwards)?;
    let is_set = |time: Timestamp| time != Timestamp::MIN && time != Timestamp::MAX;
    let begin = if is_set(range.begin) {
        range.begin
    } else {
        first
    };
    let end = if is_set(range.end) { range.end } else { last };
    if begin >= end {
        return None;
    }
    let summary = index.summary(Window { begin, end }, None, width);
    if !summary.is_exact() {
        return None;
    }
    let (begin, end) = (begin.as_nanos(), end.as_nanos());
    let span = i64::try_from(summary.span).ok()?;
    let is_relative = kymo::open::are_relative(timeline.recordings());
    let mut panels = Vec::new();
    for (number, recording) in timeline.recordings().iter().enumerate() {
        if as_database(recording).is_some() {
            continue;
        }
        let tracks = summary
            .tracks
            .iter()
            .filter(|track| track.recording == number);
        // By name: counts by the beginnings of spans.
        let mut counts: BTreeMap<String, (u64, BTreeMap<i64, u64>)> = BTreeMap::new();
        for track in tracks {
            if track.bins.iter().any(|(_, bin)| bin.values.is_some()) {
                return None;
            }
            let name = crate::stream_of(recording, &track.track.name);
            let (total, bins) = counts.entry(name.to_owned()).or_default();
            for (position, bin) in &track.bins {
                let offset = i64::try_from(*position).ok()?.checked_mul(span)?;
                let at = track.begin.checked_add(offset)?;
                *bins.entry(at).or_default() += bin.count;
                *total += bin.count;
            }
        }
        let first = counts.values().filter_map(|(_, bins)| bins.keys().next());
        let Some(first) = first.min().copied() else {
            continue;
        };
        // Spans of a recording begin at multiples of their length, counted from its own zero.
        let first = first.saturating_sub(first.saturating_sub(begin) / span * span);
        let counts = counts
            .into_iter()
            .map(|(name, (total, bins))| (name, total, bins));
        let merge = |into: &mut BTreeMap<i64, u64>, from: BTreeMap<i64, u64>| {
            for (at, count) in from {
                *into.entry(at).or_default() += count;
            }
        };
        let series = busiest(counts.collect(), merge).into_iter();
        let series = series.map(|(name, bins)| rates(name, &bins, (first, span), (begin, end)));
        panels.push(Panel {
            title: format!("{}: events", crate::title_of(recording)),
            unit: "/s".into(),
            range: (begin, end.max(begin.saturating_add(1))),
            is_relative,
            content: Content::Series(series.collect()),
            losses: losses(recording),
        });
    }
    Some(panels)
}

/// Rates of all spans of a range, those without events included.
fn rates(
    name: String,
    counts: &BTreeMap<i64, u64>,
    (first, span): (i64, i64),
    (begin, end): (i64, i64),
) -> Series {
    let mut points = Vec::new();
    let mut all = Sum::default();
    let mut at = first;
    while at <= end {
        let next = at.saturating_add(span);
        // The first and the last span count for as much of them as lies in the range.
        let (from, to) = (at.max(begin), next.min(end.saturating_add(1)));
        if to > from {
            let seconds = to.saturating_sub(from) as f64 / 1e9;
            let mut rate = Sum::default();
            rate.add(counts.get(&at).copied().unwrap_or(0) as f64 / seconds);
            all.append(&rate);
            points.extend(rate.point(from, to));
        }
        if next == at || points.len() > 100_000 {
            break;
        }
        at = next;
    }
    Series {
        name,
        points,
        gap: 0,
        stats: all.stats(),
    }
}

/// When events or chunks were lost, as far as chunks record it.
fn losses(recording: &AnyRecording) -> Vec<i64> {
    /// Places of losses that are kept.
    const MOST: usize = 10_000;
    let mut losses: Vec<i64> = (0..recording.streams().len())
        .flat_map(|stream| recording.chunks(stream))
        .filter(|chunk| chunk.lost_events.is_some() || chunk.lost_chunks.is_some())
        .filter_map(|chunk| chunk.begin_time)
        .map(|time| time.as_nanos())
        .take(MOST)
        .collect();
    losses.sort_unstable();
    losses
}
