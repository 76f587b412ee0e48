//! What to draw of a round-robin database.

use kymo::pipeline::Window;
use kymo_model::Recording as _;
use kymo_rrd::model::{ArchiveKind, Consolidation, DataSource, Database, Reading, SourceKind};
use kymo_rrd::recording::Recording;

use crate::panel::{Content, MOST_SERIES, Panel, Series, Sum};
use crate::units;

/// Ranges that people look at, in seconds: a day, a week, 31 days, 366 days.
const RANGES: [i64; 4] = [86_400, 604_800, 2_678_400, 31_622_400];
const DAY: i64 = RANGES[0];
const NANOS: i64 = 1_000_000_000;

/// When a database was last updated, in seconds since 1970.
pub(crate) fn last_update(recording: &Recording) -> i64 {
    recording.database().state.last_update.seconds()
}

/// Rows of an archive.
struct Rows {
    archive: usize,
    /// Seconds of a row.
    seconds: i64,
    first: u64,
    count: u64,
}

/// The panels of a database: its sources, those with different units apart. The range is that which is given, else the
/// last day, week, month or year that has a known value. It ends with the newest database, if that is less than a day
/// away.
pub(crate) fn panels(
    recording: &Recording,
    range: Window,
    newest: Option<i64>,
    width: usize,
) -> Vec<Panel> {
    let width = width.clamp(2, 32_767);
    let is_set = |time: i64| time != i64::MIN && time != i64::MAX;
    let given = |time: kymo_time::Timestamp| Some(time.as_nanos()).filter(|time| is_set(*time));
    let last = last_update(recording);
    let end = newest.filter(|newest| newest.saturating_sub(last) < DAY);
    // Times are shifted by what the clocks of the command line say.
    let shift = shift_of(recording);
    let end = match given(range.end) {
        Some(end) => end.saturating_sub(shift).div_euclid(NANOS),
        None => end.unwrap_or(last),
    };
    let ranges: Vec<(i64, i64)> = match given(range.begin) {
        Some(begin) => vec![(begin.saturating_sub(shift).div_euclid(NANOS), end)],
        None => RANGES
            .map(|length| (end.saturating_sub(length), end))
            .into(),
    };
    let mut found = None;
    for range in ranges {
        let series = series(recording, range, width, shift);
        let is_known = series.iter().any(|(series, _)| series.stats.is_some());
        if is_known || found.is_none() {
            found = Some((range, series));
        }
        if is_known {
            break;
        }
    }
    let Some(((begin, end), series)) = found else {
        return Vec::new();
    };
    let time = |seconds: i64| seconds.saturating_mul(NANOS).saturating_add(shift);
    let name = recording
        .name()
        .map_or_else(|| recording.path().display().to_string(), String::from);
    let mut panels: Vec<(Panel, Vec<Series>)> = Vec::new();
    for (series, unit) in series {
        let place = panels
            .iter()
            .rposition(|(panel, series)| panel.unit == unit && series.len() < MOST_SERIES);
        let place = place.unwrap_or_else(|| {
            let panel = Panel {
                title: name.clone(),
                unit: unit.into(),
                range: (time(begin), time(end).max(time(begin).saturating_add(1))),
                is_relative: false,
                content: Content::Series(Vec::new()),
                losses: Vec::new(),
            };
            panels.push((panel, Vec::new()));
            panels.len() - 1
        });
        panels[place].1.push(series);
    }
    let filled = |(panel, series)| Panel {
        content: Content::Series(series),
        ..panel
    };
    panels.into_iter().map(filled).collect()
}

/// What the times of a recording are shifted by, in nanoseconds.
fn shift_of(recording: &Recording) -> i64 {
    let clock = recording
        .streams()
        .first()
        .and_then(|stream| stream.clock.clone());
    let zero = clock.and_then(|clock| clock.timestamp(0));
    zero.map_or(0, |time| time.as_nanos())
}

/// The series of a range in seconds, and their units.
fn series(
    recording: &Recording,
    range: (i64, i64),
    width: usize,
    shift: i64,
) -> Vec<(Series, &'static str)> {
    let database = recording.database();
    let Some(rows) = rows(database, range, width) else {
        return Vec::new();
    };
    let sources = database.sources.iter().enumerate();
    sources
        .map(|(position, source)| one(recording, position, source, &rows, width, shift))
        .collect()
}

/// The rows of the archive that fits a range best: of those that reach back to its beginning the one with the longest
/// rows that still has one for each pixel; if there is none, the finest. Averages are preferred.
fn rows(database: &Database, (begin, end): (i64, i64), width: usize) -> Option<Rows> {
    let length = end.saturating_sub(begin).max(1);
    let pixel = length / i64::try_from(width).unwrap_or(i64::MAX).max(1);
    let mut best: Option<((u8, bool, i64), Rows)> = None;
    for (archive, info) in database.archives.iter().enumerate() {
        let order = match info.kind {
            ArchiveKind::Consolidated { function, .. } => match function {
                Consolidation::Average => 0,
                Consolidation::Last => 1,
                Consolidation::Max => 2,
                Consolidation::Min => 3,
            },
            _ => continue,
        };
        let seconds = database
            .row_seconds(archive)
            .and_then(|seconds| i64::try_from(seconds).ok());
        let Some(seconds) = seconds.filter(|seconds| *seconds > 0) else {
            continue;
        };
        let Some((oldest, newest)) = (info.rows.checked_sub(1)).and_then(|last| {
            database
                .row_time(archive, 0)
                .zip(database.row_time(archive, last))
        }) else {
            continue;
        };
        // A row ends at its time.
        let reaches = oldest.saturating_sub(seconds) <= begin;
        let distance = match (reaches, seconds <= pixel.max(1)) {
            // Not finer than what can be shown.
            (true, true) => pixel - seconds,
            (true, false) => seconds,
            // Further back is better.
            (false, _) => oldest.saturating_sub(begin),
        };
        let after = |time: i64| -> u64 {
            let rows = time
                .saturating_sub(oldest)
                .div_euclid(seconds)
                .saturating_add(1);
            u64::try_from(rows).unwrap_or(0).min(info.rows)
        };
        let (first, until) = (after(begin), after(end.min(newest)));
        let rows = Rows {
            archive,
            seconds,
            first,
            count: until.saturating_sub(first),
        };
        let rank = (order, !reaches, distance);
        if best.as_ref().is_none_or(|(than, _)| rank < *than) {
            best = Some((rank, rows));
        }
    }
    best.map(|(_, rows)| rows)
}

fn one(
    recording: &Recording,
    position: usize,
    source: &DataSource,
    rows: &Rows,
    width: usize,
    shift: i64,
) -> (Series, &'static str) {
    let database = recording.database();
    let values = recording.rows();
    let each = rows.count.div_ceil(width as u64).max(1);
    let mut points = Vec::new();
    let mut all = Sum::default();
    let mut from = rows.first;
    let end = rows.first + rows.count;
    let time = |seconds: i64| seconds.saturating_mul(NANOS).saturating_add(shift);
    while from < end {
        let to = (from + each).min(end);
        let mut sum = Sum::default();
        for row in from..to {
            if let Some(value) = values.value(rows.archive, row, position) {
                sum.add(value.to_f64());
                all.add(value.to_f64());
            }
        }
        if let (Some(begin), Some(end)) = (
            database.row_time(rows.archive, from),
            database.row_time(rows.archive, to - 1),
        ) {
            let begin = begin.saturating_sub(rows.seconds);
            points.extend(sum.point(time(begin), time(end)));
        }
        from = to;
    }
    let name = source.name.to_string();
    let is_rate = match source.kind {
        SourceKind::Measured { reading, .. } => reading != Reading::Gauge,
        SourceKind::Compute(_) => false,
    };
    let hint = format!("{} {name}", recording.name().unwrap_or_default());
    let unit = match is_rate {
        true => units::of_name(&hint, true),
        false => units::of_name(&name, false),
    };
    let series = Series {
        name,
        points,
        gap: 0,
        stats: all.stats(),
    };
    (series, unit)
}
