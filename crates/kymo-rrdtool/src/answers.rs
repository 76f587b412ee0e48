//! What commands answer, as values instead of text: for programs that do something else with them.
//!
//! Each function takes the words behind the name of its command, options among them.

use kymo_rrd::rpn::MAX_ROWS;
pub use kymo_rrd::text::info::{Fact, FactValue};

use crate::commands::fetch::{Head, Rows};
use crate::commands::{fetch, graph, info, last, list, update, with_words, xport};
use crate::graph::backwards;
use crate::{Failure, Session};

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// Of what.
    pub name: &'a [u8],
    /// The kind of archive, such as `AVERAGE`.
    pub function: &'a str,
    /// From when, in seconds since 1970.
    pub start: i64,
    /// Until when.
    pub end: i64,
    /// Seconds between two rows, as far as there is a choice.
    pub step: u64,
}

/// Readings for a file.
#[derive(Clone, Copy, Debug)]
pub struct Update<'a> {
    /// The file.
    pub file: &'a [u8],
    /// The names of the data sources that values are given for; all that are measured if there is none.
    pub template: Option<&'a [u8]>,
    /// Whether readings that are not after the last update are passed over.
    pub skip_past: bool,
    /// The readings, at least one.
    pub readings: &'a [&'a [u8]],
}

/// Rows of values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fetched {
    /// The beginning of the first row: the time before its own.
    pub start: i64,
    /// The time of the last row.
    pub end: i64,
    /// Seconds between two rows.
    pub step: u64,
    /// What the columns are called.
    pub names: Vec<Vec<u8>>,
    /// The values, row by row.
    pub values: Vec<f64>,
}

impl Fetched {
    /// The rows with their times; no rows if there are no columns.
    pub fn rows(&self) -> impl Iterator<Item = (i64, &[f64])> {
        let times = (1i64..).map(|row| {
            let after = (self.step as i64).saturating_mul(row);
            self.start.saturating_add(after)
        });
        times.zip(self.values.chunks_exact(self.names.len().max(1)))
    }

    /// Makes rows of at least `step` seconds: shorter ones are combined into one, as an archive of
    /// kind `function` would make it. What is made larger to whole rows is unknown.
    ///
    /// # Errors
    ///
    /// Times that cannot be, and too many rows.
    pub fn reduce(&mut self, function: &str, step: u64) -> Result<(), Failure> {
        let broken = || Failure::new("the times of the rows are out of range");
        let own = i64::try_from(self.step).ok().filter(|step| *step > 0);
        let own = own.ok_or_else(broken)?;
        let factor = step.div_ceil(self.step).max(1);
        if factor == 1 {
            return Ok(());
        }
        let each = i64::try_from(factor)
            .ok()
            .and_then(|factor| own.checked_mul(factor));
        let each = each.ok_or_else(broken)?;
        let start = self.start.checked_sub(self.start.rem_euclid(each));
        let start = start.ok_or_else(broken)?;
        let end = match self.end.rem_euclid(each) {
            0 => Some(self.end),
            rest => self.end.checked_add(each - rest),
        };
        let end = end.ok_or_else(broken)?;
        let length = end.checked_sub(start).ok_or_else(broken)?;
        let rows = usize::try_from(length / each).map_err(|_| broken())?;
        let columns = self.names.len();
        if rows
            .checked_mul(columns.max(1))
            .is_none_or(|values| values > MAX_ROWS)
        {
            return Err(Failure::new(format!("more than {MAX_ROWS} values")));
        }
        let mut values = vec![f64::NAN; rows * columns];
        for row in 0..rows {
            let begin = start + row as i64 * each;
            // A row of which a part is not there is unknown.
            if begin < self.start || begin + each > self.end {
                continue;
            }
            let first = ((begin - self.start) / own) as usize;
            for column in 0..columns {
                let known = (first..first + factor as usize)
                    .filter_map(|row| self.values.get(row * columns + column))
                    .copied()
                    .filter(|value| !value.is_nan());
                values[row * columns + column] = kymo_rrd::engine::combine(function, known);
            }
        }
        (self.start, self.end, self.step, self.values) = (start, end, each as u64, values);
        Ok(())
    }
}

/// The last update of a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastUpdate {
    /// When it was, in seconds since 1970.
    pub time: i64,
    /// The names of the data sources, and the text of their last readings.
    pub readings: Vec<(Vec<u8>, Vec<u8>)>,
}

/// The rows that `fetch` prints.
///
/// # Errors
///
/// Those of the command.
pub fn fetch(session: &mut Session<'_>, words: &[&[u8]]) -> Result<Fetched, Failure> {
    with_words(session, &fetch::COMMAND, words, |session, words| {
        fetch::with_rows(session, words, Collect)
    })
}

/// The rows of a file, or of what the program around has.
///
/// # Errors
///
/// Those of `fetch`.
pub fn fetch_rows(session: &mut Session<'_>, wanted: &Wanted<'_>) -> Result<Fetched, Failure> {
    if wanted.end < wanted.start {
        return Err(backwards(wanted.start, wanted.end));
    }
    fetch::find(session, wanted, None, Collect)
}

/// Keeps rows.
struct Collect;

impl Rows for Collect {
    type Answer = Fetched;

    fn take<B: Fn(usize) -> u64>(
        self,
        _: &mut Session<'_>,
        head: &Head<'_>,
        rows: impl Iterator<Item = (i64, B)>,
    ) -> Result<Fetched, Failure> {
        let columns = head.names.len();
        let mut values = Vec::new();
        for (_, bits) in rows {
            values.extend((0..columns).map(|column| f64::from_bits(bits(column))));
        }
        Ok(Fetched {
            start: head.start,
            end: head.end,
            step: head.step,
            names: head.names.iter().map(|name| name.to_vec()).collect(),
            values,
        })
    }
}

/// The table that `xport` prints, and prints it too if asked for.
///
/// # Errors
///
/// Those of the command.
pub fn xport(session: &mut Session<'_>, words: &[&[u8]], print: bool) -> Result<Fetched, Failure> {
    with_words(session, &xport::COMMAND, words, |session, words| {
        xport::with_table(session, words, |session, table, grid| {
            if print {
                xport::print(session, words, table, grid)?;
            }
            let mut values = Vec::new();
            for time in grid.rows() {
                let row = table.columns.iter();
                values.extend(row.map(|(series, _)| series.value_from(time)));
            }
            Ok(Fetched {
                start: grid.start,
                end: grid.end,
                step: grid.step as u64,
                names: table
                    .columns
                    .iter()
                    .map(|(_, name)| name.to_vec())
                    .collect(),
                values,
            })
        })
    })
}

/// The facts that `info` prints.
///
/// # Errors
///
/// Those of the command.
pub fn info(session: &mut Session<'_>, words: &[&[u8]]) -> Result<Vec<Fact>, Failure> {
    with_words(session, &info::COMMAND, words, info::facts)
}

/// Stores readings in a file, as `update` without a daemon does.
///
/// # Errors
///
/// Those of the command.
pub fn update(session: &mut Session<'_>, update: &Update<'_>) -> Result<(), Failure> {
    update::update_file(session, update)
}

/// Stores readings as `updatev` does. Gives the facts that it prints, and how it went: those before a
/// reading that is refused are stored.
///
/// # Errors
///
/// Those in the words.
pub fn updatev(
    session: &mut Session<'_>,
    words: &[&[u8]],
) -> Result<(Vec<Fact>, Result<(), Failure>), Failure> {
    with_words(session, &update::UPDATEV, words, update::update_facts)
}

/// Draws as `graphv` does, and gives the facts that it prints.
///
/// # Errors
///
/// Those of the command.
pub fn graph(session: &mut Session<'_>, words: &[&[u8]]) -> Result<Vec<Fact>, Failure> {
    with_words(session, &graph::GRAPHV, words, graph::facts)
}

/// The time that `first` prints. If the daemon does not answer, the time is the file's, and why it does not
/// comes with it.
///
/// # Errors
///
/// Those of the command.
pub fn first(
    session: &mut Session<'_>,
    words: &[&[u8]],
) -> Result<(i64, Option<Failure>), Failure> {
    with_words(session, &last::FIRST, words, last::first)
}

/// The time that `last` prints, as [`first`].
///
/// # Errors
///
/// Those of the command.
pub fn last(session: &mut Session<'_>, words: &[&[u8]]) -> Result<(i64, Option<Failure>), Failure> {
    with_words(session, &last::LAST, words, last::last)
}

/// What `lastupdate` prints.
///
/// # Errors
///
/// Those of the command.
pub fn lastupdate(session: &mut Session<'_>, words: &[&[u8]]) -> Result<LastUpdate, Failure> {
    with_words(session, &last::LASTUPDATE, words, last::last_update)
}

/// The names that `list` prints, a line each.
///
/// # Errors
///
/// Those of the command.
pub fn list(session: &mut Session<'_>, words: &[&[u8]]) -> Result<Vec<u8>, Failure> {
    with_words(session, &list::COMMAND, words, list::names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_become_longer_ones() {
        let unknown = f64::NAN;
        let mut fetched = Fetched {
            start: 999_999_900,
            end: 1_000_001_400,
            step: 300,
            names: vec![b"a".to_vec(), b"b".to_vec()],
            values: vec![unknown, unknown, 1.0, unknown, 2.0, 1.0, 3.0, 2.0, 9.0, 4.0],
        };
        let all = fetched.clone();
        fetched.reduce("AVERAGE", 100).unwrap();
        assert_eq!(fetched.start, all.start);
        fetched.reduce("AVERAGE", 800).unwrap();
        assert_eq!(
            (fetched.start, fetched.end, fetched.step),
            (999_999_900, 1_000_001_700, 900)
        );
        let rows: Vec<_> = fetched.rows().collect();
        assert_eq!(rows[0], (1_000_000_800, [1.5, 1.0].as_slice()));
        // A part of it is not there.
        assert!(rows[1].1.iter().all(|value| value.is_nan()));
        let mut greatest = all.clone();
        greatest.reduce("MAX", 600).unwrap();
        assert_eq!(greatest.start, 999_999_600);
        assert_eq!(greatest.values[2..4], [2.0, 1.0]);
        assert!(all.clone().reduce("LAST", u64::MAX).is_err());
        assert!(Fetched::default().reduce("LAST", 1).is_err());
    }
}
