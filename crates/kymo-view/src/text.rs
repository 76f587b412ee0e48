//! The time line as text: a row per track, for terminals.

use std::fmt::Write;
use std::sync::Arc;

use kymo::report::Style;
use kymo_model::Recording;
use kymo_text::is_invisible;
use kymo_time::Timestamp;

use crate::scene::{Scene, TrackBins};

/// The width of names at most, and of what stands behind a row.
const MOST_NAME: usize = 32;
const TAIL: usize = 22;

/// The least width of a drawing.
const LEAST: usize = 10;

/// Tracks that are asked for at once.
const TRACKS: usize = 256;

const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// What is in a column.
#[derive(Clone, Copy, Debug, Default)]
struct Column {
    rows: u64,
    known: u64,
    sum: f64,
    min: f64,
    max: f64,
}

impl Scene {
    /// The timeline in `width` columns of text. Waits until everything is known.
    ///
    /// Events are drawn as the logarithm of their number, series as their mean between their least and greatest
    /// value. Below a recording with losses or damage, a row marks where they are.
    pub fn text(self: &Arc<Self>, width: usize, style: &Style) -> String {
        self.wait();
        let Some((begin, end)) = self.range() else {
            return "no events with a time\n".to_string();
        };
        let shown = self.state().shown.clone();
        let tracks: Vec<(u32, usize, String, Option<String>)> = shown
            .iter()
            .filter_map(|row| {
                let (recording, track) = self.tracks.get(row.number)?;
                let unit = track.unit.as_deref().map(printable);
                Some((
                    row.number,
                    recording,
                    printable(short_name(&track.name)),
                    unit,
                ))
            })
            .collect();
        let longest = tracks
            .iter()
            .map(|(_, _, name, _)| name.chars().count())
            .max();
        let name_width = (longest.unwrap_or(0) + 2).clamp(8, MOST_NAME.min((width / 3).max(8)));
        let columns = width.saturating_sub(name_width + 1 + TAIL).max(LEAST);
        let mut out = String::new();
        let (from, to) = (
            style.time(Timestamp::from_nanos(begin)),
            style.time(Timestamp::from_nanos(end)),
        );
        let room = columns.saturating_sub(from.chars().count() + to.chars().count());
        if room > 0 {
            let _ = writeln!(out, "{:name_width$} {from}{:room$}{to}", "", "");
        } else {
            let _ = writeln!(out, "{from} to {to}");
        }
        let mut last = None;
        for group in tracks.chunks(TRACKS) {
            let numbers: Vec<u32> = group.iter().map(|(number, ..)| *number).collect();
            let (grid, bins) = self.bins(None, &numbers, begin, end, columns);
            for (number, recording, name, unit) in group {
                if last != Some(*recording) {
                    self.end_of_recording(last, (begin, end), name_width, columns, &mut out);
                    let _ = writeln!(
                        out,
                        "{}",
                        printable(&self.recordings()[*recording].path().display().to_string())
                    );
                    last = Some(*recording);
                }
                let own = bins.iter().find(|bin| bin.track == *number);
                let drawn = own.map_or_else(Vec::new, |bins| {
                    resampled(bins, grid.span(), (begin, end), columns)
                });
                let name = fitted(&format!("  {name}"), name_width);
                let (picture, tail) = drawing(&drawn, columns, unit.as_deref());
                let _ = writeln!(out, "{}", format!("{name} {picture} {tail}").trim_end());
            }
        }
        self.end_of_recording(last, (begin, end), name_width, columns, &mut out);
        out
    }

    /// Marks the losses and the damage of a recording, if it has any.
    fn end_of_recording(
        &self,
        recording: Option<usize>,
        range: (i64, i64),
        name_width: usize,
        columns: usize,
        out: &mut String,
    ) {
        let Some(recording) = recording else { return };
        let state = self.state();
        let own: Vec<_> = state
            .notices
            .iter()
            .filter(|notice| notice.recording == recording)
            .collect();
        if own.is_empty() {
            return;
        }
        let mut marks = vec![' '; columns];
        for notice in &own {
            let (from, to) = (
                column(notice.begin, range, columns),
                column(notice.end, range, columns),
            );
            marks[from..=to.max(from)].fill('╳');
        }
        let damage = own.iter().filter(|notice| notice.is_damage).count();
        let tail = match (damage, own.len() - damage) {
            (0, losses) => format!("{losses} losses"),
            (damage, 0) => format!("{damage} damaged"),
            (damage, losses) => format!("{damage} damaged, {losses} losses"),
        };
        let name = fitted("  losses", name_width);
        let _ = writeln!(out, "{name} {} {tail}", String::from_iter(marks));
    }
}

/// The column of a time.
fn column(time: i64, (begin, end): (i64, i64), columns: usize) -> usize {
    let time = time.clamp(begin, end);
    let length = u128::from(end.abs_diff(begin)) + 1;
    (u128::from(time.abs_diff(begin)) * columns as u128 / length) as usize
}

/// The bins of a track in columns: a bin lies in the column of its first row.
fn resampled(bins: &TrackBins, span: u64, range: (i64, i64), columns: usize) -> Vec<Column> {
    let mut drawn = vec![Column::default(); columns];
    for (position, bin) in &bins.bins {
        let begins = i128::from(bins.begin) + i128::from(*position) * i128::from(span);
        let begins = begins.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
        // That of what is in several recordings' grids is known to a span only.
        let time = if bin.first <= bin.last {
            bin.first
        } else {
            begins
        };
        if time > range.1 || bin.last < range.0 {
            continue;
        }
        let into = &mut drawn[column(time, range, columns)];
        into.rows = into.rows.saturating_add(bin.count);
        let Some(values) = bin.values.as_deref().filter(|values| values.count > 0) else {
            continue;
        };
        let is_first = into.known == 0;
        into.min = if is_first {
            values.min
        } else {
            into.min.min(values.min)
        };
        into.max = if is_first {
            values.max
        } else {
            into.max.max(values.max)
        };
        into.known += values.count;
        into.sum += values.sum;
    }
    drawn
}

/// A row of blocks, and what it says in numbers.
fn drawing(drawn: &[Column], columns: usize, unit: Option<&str>) -> (String, String) {
    let known = || drawn.iter().filter(|column| column.known > 0);
    let min = known()
        .map(|column| column.min)
        .fold(f64::INFINITY, f64::min);
    let max = known()
        .map(|column| column.max)
        .fold(f64::NEG_INFINITY, f64::max);
    let block = |part: f64| BLOCKS[((part * 8.0) as usize).min(7)];
    if min <= max {
        let low = if min > 0.0 && min < max / 2.0 {
            0.0
        } else {
            min
        };
        let picture = drawn
            .iter()
            .map(|column| match (column.rows, column.known) {
                (0, _) => ' ',
                (_, 0) => '·',
                _ if max > low => block((column.sum / column.known as f64 - low) / (max - low)),
                _ => BLOCKS[3],
            });
        let unit = unit.map_or_else(String::new, |unit| format!(" {unit}"));
        return (
            picture.collect(),
            format!("{} to {}{unit}", short(min), short(max)),
        );
    }
    let rows: u64 = drawn
        .iter()
        .map(|column| column.rows)
        .fold(0, u64::saturating_add);
    let most = drawn.iter().map(|column| column.rows).max().unwrap_or(0);
    let height = |rows: u64| ((rows + 1) as f64).log2() / ((most.max(1) + 1) as f64).log2();
    let mut picture: String = drawn
        .iter()
        .map(|column| match column.rows {
            0 => ' ',
            rows => block(height(rows) - 0.001),
        })
        .collect();
    if picture.is_empty() {
        picture = " ".repeat(columns);
    }
    let events = if rows == 1 { "event" } else { "events" };
    (picture, format!("{rows} {events}"))
}

/// A number in few characters.
fn short(value: f64) -> String {
    let size = value.abs();
    let (scaled, unit) = match size {
        _ if size >= 1e15 || (size > 0.0 && size < 1e-3) => return format!("{value:.2e}"),
        _ if size >= 1e12 => (value / 1e12, "T"),
        _ if size >= 1e9 => (value / 1e9, "G"),
        _ if size >= 1e6 => (value / 1e6, "M"),
        _ if size >= 1e4 => (value / 1e3, "k"),
        _ => (value, ""),
    };
    let text = format!("{scaled:.3}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    format!("{text}{unit}")
}

/// The last part of a name that is a path.
fn short_name(name: &str) -> &str {
    match name.starts_with('/') {
        true => name
            .rsplit('/')
            .find(|part| !part.is_empty())
            .unwrap_or(name),
        false => name,
    }
}

/// A name without what moves the cursor or turns the direction of text.
fn printable(name: &str) -> String {
    name.replace(is_invisible, "\u{fffd}")
}

/// Returns a text of exactly `width` characters; a longer one is cut in the middle.
fn fitted(text: &str, width: usize) -> String {
    let chars: Vec<char> = text.chars().collect();
    if chars.len() <= width {
        return format!("{text:width$}");
    }
    let head = width / 2;
    let tail = width.saturating_sub(head + 1);
    chars[..head]
        .iter()
        .chain(&['…'])
        .chain(&chars[chars.len() - tail..])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit() {
        assert_eq!(fitted("abc", 5), "abc  ");
        assert_eq!(fitted("abcdefgh", 5), "ab…gh");
        assert_eq!(
            printable("a\u{1b}[31m\u{202e}\u{e0041}"),
            "a\u{fffd}[31m\u{fffd}\u{fffd}"
        );
    }

    #[test]
    fn numbers_are_short() {
        for (value, text) in [
            (0.0, "0"),
            (1.5, "1.5"),
            (-20.0, "-20"),
            (65536.0, "65.536k"),
            (1e-9, "1.00e-9"),
            (3e9, "3G"),
        ] {
            assert_eq!(short(value), text);
        }
    }

    #[test]
    fn times_lie_in_columns() {
        let all = (i64::MIN, i64::MAX);
        assert_eq!(column(i64::MIN, all, 80), 0);
        assert_eq!(column(i64::MAX, all, 80), 79);
        assert_eq!(column(5, (5, 5), 80), 0);
    }
}
