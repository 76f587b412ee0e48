//! Numbers, times and tables for people.

use std::borrow::Cow;
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
    /// Whether times count from the zero of clocks without an origin.
    is_relative: bool,
    /// How wide tables may be, in characters.
    width: Option<usize>,
    /// Whether there are colours.
    is_colored: bool,
}

impl Style {
    /// Times in UTC with `gmt`, and local without.
    pub fn new(gmt: bool) -> Self {
        Self {
            zone: crate::filter::zone(gmt),
            is_relative: false,
            width: None,
            is_colored: false,
        }
    }

    /// With `relative`, times of events as seconds since the zero of their clocks, which have no origin.
    #[must_use]
    pub fn with_relative(mut self, relative: bool) -> Self {
        self.is_relative = relative;
        self
    }

    /// Tables of analyses are at most so wide, as far as names can be cut for it.
    #[must_use]
    pub fn with_width(mut self, width: Option<usize>) -> Self {
        self.width = width;
        self
    }

    /// With `colored`, what matters is coloured.
    #[must_use]
    pub fn with_color(mut self, colored: bool) -> Self {
        self.is_colored = colored;
        self
    }

    /// A text in green: all is good.
    pub fn good(&self, text: &str) -> String {
        self.colored(text, "32")
    }

    /// A text in yellow: something is lost.
    pub fn odd(&self, text: &str) -> String {
        self.colored(text, "33")
    }

    /// A text in red: something is damaged.
    pub fn bad(&self, text: &str) -> String {
        self.colored(text, "31")
    }

    fn colored(&self, text: &str, color: &str) -> String {
        match self.is_colored {
            true => format!("\x1b[1;{color}m{text}\x1b[0m"),
            false => text.to_string(),
        }
    }

    /// How wide a line may be, in characters.
    pub fn width(&self) -> Option<usize> {
        self.width
    }

    /// A count, its digits in groups of three.
    pub fn count(&self, number: u64) -> String {
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

    /// The time of an event: a date and time to the nanosecond, or seconds if there is no date.
    pub fn time(&self, time: Timestamp) -> String {
        if self.is_relative {
            let sign = if time.as_nanos() < 0 { "-" } else { "" };
            return format!("{sign}{}", self.duration(time.as_nanos().unsigned_abs()));
        }
        self.date(time)
    }

    /// A date and time to the nanosecond.
    pub(crate) fn date(&self, time: Timestamp) -> String {
        match jiff::Timestamp::from_nanosecond(time.as_nanos().into()) {
            Ok(time) => format!("{:.9}", self.zone.to_datetime(time)).replace('T', " "),
            Err(_) => format!("{} ns", time.as_nanos()),
        }
    }

    /// A time, or what stands for none.
    pub(crate) fn optional_time(&self, time: Option<Timestamp>) -> String {
        time.map_or_else(|| "-".to_string(), |time| self.time(time))
    }

    /// The time between two timestamps, in seconds.
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

/// Rows of cells in aligned columns. There may be as many rows as a recording has
/// tracks: of each cell there is its text and where it ends.
#[derive(Debug, Default)]
pub(crate) struct Table {
    text: String,
    /// Where cells end in the text.
    ends: Vec<usize>,
    /// Where rows end among the cells.
    rows: Vec<usize>,
    /// The widths of the columns.
    widths: Vec<usize>,
}

impl Table {
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        // Names in recordings may hold anything.
        let cells = cells.into_iter();
        self.push(cells.map(|cell| visible(&cell).into_owned().into()));
    }

    pub(crate) fn header(&mut self, cells: &[impl ToString]) {
        self.push(cells.iter().map(|cell| cell.to_string().into()));
    }

    fn push<'c>(&mut self, cells: impl Iterator<Item = Cow<'c, str>>) {
        for (column, cell) in cells.enumerate() {
            self.text += &cell;
            self.ends.push(self.text.len());
            let width = cell.chars().count().min(WIDEST);
            match self.widths.get_mut(column) {
                Some(widest) => *widest = width.max(*widest),
                None => self.widths.push(width),
            }
        }
        self.rows.push(self.ends.len());
    }

    /// As [`align`](Self::align) does, with the last column cut where a line would be wider than
    /// the style allows; a little of it is always shown.
    pub(crate) fn fit(&self, to_the_right: &[bool], style: &Style) -> String {
        const LEAST: usize = 8;
        let before = to_the_right.len().saturating_sub(1);
        let room = style.width.map(|width| {
            let taken: usize = self.widths.iter().take(before).map(|width| width + 2).sum();
            width.saturating_sub(taken).max(LEAST)
        });
        self.lines(to_the_right, room.map(|room| (before, room)))
    }

    /// As [`fit`](Self::fit) does. Where lines are short, names matter more than the `spare` columns, of which as many
    /// are left out as necessary, the first of the list first.
    pub(crate) fn fit_without(
        &self,
        spare: &[usize],
        to_the_right: &[bool],
        style: &Style,
    ) -> String {
        /// How much of the last column is shown at least before another column is left out; half of a line, if that
        /// is more.
        const NAME: usize = 24;
        let last = to_the_right.len().saturating_sub(1);
        let Some(width) = style.width else {
            return self.fit(to_the_right, style);
        };
        let name = NAME.max(width / 2);
        let mut left_out = Vec::new();
        let taken = |left_out: &[usize]| {
            let columns = self.widths.iter().enumerate();
            let shown = columns.filter(|(column, _)| !left_out.contains(column));
            let widths = shown.map(|(column, &width)| match column == last {
                true => width.min(name),
                false => width + 2,
            });
            widths.sum::<usize>()
        };
        for &column in spare {
            if taken(&left_out) <= width {
                break;
            }
            left_out.push(column);
        }
        match left_out.is_empty() {
            true => self.fit(to_the_right, style),
            false => {
                let shown = |column: &usize| !left_out.contains(column);
                let right = (0..to_the_right.len()).filter(shown);
                let right: Vec<bool> = right.map(|column| to_the_right[column]).collect();
                self.without(&left_out).fit(&right, style)
            }
        }
    }

    /// The table without some columns.
    fn without(&self, left_out: &[usize]) -> Self {
        let mut table = Self::default();
        let (mut begin, mut ends) = (0, self.ends.iter());
        let mut first = 0;
        for &row in &self.rows {
            let mut cells = Vec::new();
            for (column, &end) in ends.by_ref().take(row - first).enumerate() {
                if !left_out.contains(&column) {
                    cells.push(Cow::Borrowed(&self.text[begin..end]));
                }
                begin = end;
            }
            first = row;
            table.push(cells.into_iter());
        }
        table
    }

    /// The rows as lines, columns two blanks apart, those marked aligned to the right.
    pub(crate) fn align(&self, to_the_right: &[bool]) -> String {
        self.lines(to_the_right, None)
    }

    /// The same, optionally with one column cut to a number of characters.
    fn lines(&self, to_the_right: &[bool], cut: Option<(usize, usize)>) -> String {
        let widest = self.widths.iter().sum::<usize>() + 2 * self.widths.len();
        let mut text = String::with_capacity(self.rows.len().saturating_mul(widest / 2));
        let (mut begin, mut cells) = (0, self.ends.iter());
        let mut first = 0;
        for &row in &self.rows {
            let line = text.len();
            for (column, &end) in cells.by_ref().take(row - first).enumerate() {
                let mut cell = &self.text[begin..end];
                begin = end;
                let (mut mark, mut widest) = ("", self.widths[column]);
                if let Some((_, room)) = cut.filter(|(it, _)| *it == column) {
                    widest = widest.min(room);
                    if let Some((cut, _)) = cell.char_indices().nth(room - 1)
                        && cell[cut..].chars().count() > 1
                    {
                        cell = &cell[..cut];
                        mark = "…";
                    }
                }
                if column > 0 {
                    text += "  ";
                }
                let width = cell.chars().count() + mark.chars().count();
                let blanks = widest.saturating_sub(width);
                let is_right = to_the_right.get(column) == Some(&true);
                if is_right {
                    text.extend(std::iter::repeat_n(' ', blanks));
                }
                text += cell;
                text += mark;
                if !is_right {
                    text.extend(std::iter::repeat_n(' ', blanks));
                }
            }
            first = row;
            text.truncate(line + text[line..].trim_end().len());
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_cells() {
        let mut table = Table::default();
        table.header(&["n", "name", "last"]);
        table.row([
            "1".into(),
            "é".into(),
            "a long name, longer than that".into(),
        ]);
        table.row(["100".into(), "a\n".into(), String::new()]);
        assert_eq!(
            table.align(&[true, false, false]),
            "  n  name   last\n  1  é      a long name, longer than that\n100  a\\x0a\n"
        );
        let style = Style::new(true).with_width(Some(22));
        assert_eq!(
            table.fit(&[true, false, false], &style),
            "  n  name   last\n  1  é      a long na…\n100  a\\x0a\n"
        );
        assert_eq!(Table::default().align(&[true]), "");
    }

    #[test]
    fn names_matter_more_than_spare_columns() {
        let mut table = Table::default();
        table.header(&["n", "begins", "ends", "name"]);
        table.row(["1", "10:00:00", "11:00:00", "a name"].map(str::to_string));
        let shown = |width| {
            let style = Style::new(true).with_width(width);
            table.fit_without(&[2, 1], &[true, false, false, false], &style)
        };
        let whole = "n  begins    ends      name\n1  10:00:00  11:00:00  a name\n";
        assert_eq!(shown(None), whole);
        assert_eq!(shown(Some(29)), whole);
        assert_eq!(shown(Some(28)), "n  begins    name\n1  10:00:00  a name\n");
        assert_eq!(shown(Some(10)), "n  name\n1  a name\n");
        assert_eq!(shown(Some(3)), "n  name\n1  a name\n");
    }
}
