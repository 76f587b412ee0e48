//! Numbers, times and tables for people.

use std::path::Path;

use jiff::tz::TimeZone;
use kymo_text::visible;
use kymo_time::Timestamp;

/// The widest a column is made, in characters; what is longer stands out.
const WIDEST: usize = 200;

/// How numbers and times are written in reports.
#[derive(Clone, Debug)]
pub struct Style {
    zone: TimeZone,
    /// How wide tables may be, in characters.
    width: Option<usize>,
}

impl Style {
    /// Times in UTC with `gmt`, and local without.
    pub fn new(gmt: bool) -> Self {
        Self {
            zone: crate::filter::zone(gmt),
            width: None,
        }
    }

    /// Tables of analyses are at most so wide, as far as names can be cut for it.
    #[must_use]
    pub fn with_width(mut self, width: Option<usize>) -> Self {
        self.width = width;
        self
    }

    /// How wide a line may be, in characters.
    pub(crate) fn width(&self) -> Option<usize> {
        self.width
    }

    /// A count, its digits in groups of three.
    pub(crate) fn count(&self, number: u64) -> String {
        let digits = number.to_string();
        let mut text = String::new();
        for (position, digit) in digits.chars().enumerate() {
            if position > 0 && (digits.len() - position).is_multiple_of(3) {
                text.push(',');
            }
            text.push(digit);
        }
        text
    }

    /// A date and time to the nanosecond.
    pub(crate) fn time(&self, time: Timestamp) -> String {
        match jiff::Timestamp::from_nanosecond(time.as_nanos().into()) {
            Ok(time) => format!("{:.9}", self.zone.to_datetime(time)).replace('T', " "),
            Err(_) => format!("{} ns", time.as_nanos()),
        }
    }

    /// A time, or what stands for none.
    pub(crate) fn optional_time(&self, time: Option<Timestamp>) -> String {
        time.map_or_else(|| "-".to_string(), |time| self.time(time))
    }

    /// The time between two moments, in seconds.
    pub(crate) fn duration(&self, nanos: u64) -> String {
        format!("{}.{:09} s", nanos / 1_000_000_000, nanos % 1_000_000_000)
    }

    /// A number per second.
    pub(crate) fn rate(&self, rate: Option<f64>) -> String {
        match rate {
            Some(rate) if rate >= 100.0 => self.count(rate.round() as u64),
            Some(rate) => format!("{rate:.3}"),
            None => "-".to_string(),
        }
    }
}

/// The name of a stream without the path of its recording.
pub(crate) fn within(recording: &Path, name: &str) -> String {
    let path = Path::new(name);
    path.strip_prefix(recording)
        .or_else(|_| path.strip_prefix(kymo_io::absolute(recording)))
        .unwrap_or(path)
        .display()
        .to_string()
}

/// Rows of cells, whose columns are made equally wide.
#[derive(Debug, Default)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn row<const N: usize>(&mut self, cells: [String; N]) {
        // Names in recordings may hold anything.
        let cells = cells.iter().map(|cell| visible(cell).into_owned());
        self.rows.push(cells.collect());
    }

    pub(crate) fn header(&mut self, cells: &[impl ToString]) {
        self.rows
            .push(cells.iter().map(ToString::to_string).collect());
    }

    /// As [`align`](Self::align) does, with the last column cut where a line would be wider than
    /// the style allows; a little of it is always shown.
    pub(crate) fn fit(mut self, to_the_right: &[bool], style: &Style) -> String {
        const LEAST: usize = 8;
        if let (Some(width), Some((_, before))) = (style.width, to_the_right.split_last()) {
            let taken: usize = (0..before.len()).map(|column| self.width(column) + 2).sum();
            let room = width.saturating_sub(taken).max(LEAST);
            for last in self
                .rows
                .iter_mut()
                .filter_map(|row| row.get_mut(before.len()))
            {
                if let Some((cut, _)) = last.char_indices().nth(room - 1)
                    && last[cut..].chars().count() > 1
                {
                    last.truncate(cut);
                    last.push('…');
                }
            }
        }
        self.align(to_the_right)
    }

    /// The width of a column.
    fn width(&self, column: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(column));
        let widest = cells.map(|cell| cell.chars().count()).max().unwrap_or(0);
        widest.min(WIDEST)
    }

    /// The rows as lines, columns two blanks apart, those marked aligned to the right.
    pub(crate) fn align(&self, to_the_right: &[bool]) -> String {
        let columns = 0..to_the_right.len();
        let widths: Vec<usize> = columns.map(|column| self.width(column)).collect();
        let mut text = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for (column, cell) in row.iter().enumerate() {
                let width = widths.get(column).copied().unwrap_or(0);
                if column > 0 {
                    line += "  ";
                }
                line += &match to_the_right.get(column) {
                    Some(true) => format!("{cell:>width$}"),
                    _ => format!("{cell:width$}"),
                };
            }
            text += line.trim_end();
            text.push('\n');
        }
        text
    }
}
