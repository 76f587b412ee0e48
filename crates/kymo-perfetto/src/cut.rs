//! A part of a trace, in the form of its file.
//!
//! What stays is chosen by the rows of an open [`Recording`], which are sorted and do not say where they come
//! from. So the file is read twice again: first to number the rows in the order of the file, then to write
//! the packets or events of those that stay.

use std::io::{self, Write};

use crate::builder::{Builder, Taking};
use crate::recording::{Recording, read};
use crate::row::{self, Body, NO_TIME};
use crate::{Form, chrome, perfetto};

impl Recording {
    /// Writes the file again, whose bytes these are, with what some of the rows come from: `stays` gets a chunk
    /// and the number of a row in it. A packet or an event of which one row stays stays as a whole; in bundles of
    /// the kernel's events each counts for itself. What is not shown as a row stays where it has no time, or one
    /// between the rows that stay: clocks, names, descriptions of tracks, packets that are not read.
    ///
    /// # Errors
    ///
    /// Those of the output, and of temporary files.
    pub fn write_cut(
        &self,
        bytes: &[u8],
        stays: impl Fn(usize, u64) -> bool,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let kept = self.kept(bytes, stays)?;
        let mut builder = self.builder(bytes, Taking::Cut(kept));
        match self.form() {
            Form::Perfetto => perfetto::cut(bytes, &mut builder, out),
            Form::Chrome => chrome::cut(bytes, &mut builder, out),
        }
    }

    fn builder(&self, bytes: &[u8], taking: Taking) -> Builder {
        let path = kymo_model::Recording::path(self).to_path_buf();
        let mut builder = Builder::new(path, bytes.len() as u64);
        builder.taking = taking;
        builder
    }

    fn kept(&self, bytes: &[u8], stays: impl Fn(usize, u64) -> bool) -> io::Result<Kept> {
        let numbers = Taking::Numbers {
            next: 0,
            most: self.events(),
        };
        let mut builder = self.builder(bytes, numbers);
        read(bytes, self.form(), &mut builder)?;
        let sorted = builder.sorter.finish()?;
        // Rows of the same time have the same order in both.
        let mut numbers = row::each(&sorted.bytes);
        let mut kept = Kept::default();
        let mut are_all = true;
        for chunk in 0..kymo_model::Recording::chunk_count(self, 0) {
            for (place, (order, _)) in (0..).zip(row::each(self.rows(chunk))) {
                let number = numbers.next().and_then(|(_, row)| Body::new(row).varint());
                match number.filter(|_| stays(chunk, place)) {
                    Some(number) => kept.insert(number, order.time),
                    None => are_all = false,
                }
            }
        }
        if are_all {
            kept.span = Some((i64::MIN, i64::MAX));
        }
        Ok(kept)
    }
}

/// Which rows of a file stay, by their numbers in the order of the file.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    /// A bit for each.
    rows: Vec<u64>,
    /// The times of the first and the last of them.
    span: Option<(i64, i64)>,
    /// The number of the next row.
    next: u64,
    /// Of the rows since [`stays`](Self::stays) was called last, whether they stay.
    since: Vec<bool>,
    /// Whether `since` was handed out.
    is_seen: bool,
}

impl Kept {
    fn insert(&mut self, number: u64, time: i64) {
        let word = (number / 64) as usize;
        if word >= self.rows.len() {
            self.rows.resize(word + 1, 0);
        }
        self.rows[word] |= 1 << (number % 64);
        if time != NO_TIME {
            let (begin, end) = self.span.unwrap_or((time, time));
            self.span = Some((begin.min(time), end.max(time)));
        }
    }

    /// Notes that reading has found the next row.
    pub(crate) fn next_row(&mut self) {
        if std::mem::take(&mut self.is_seen) {
            self.since.clear();
        }
        let word = self.rows.get((self.next / 64) as usize);
        let stays = word.is_some_and(|word| word & 1 << (self.next % 64) != 0);
        self.since.push(stays);
        self.next += 1;
    }

    pub(crate) fn stays(&mut self) -> Stays<'_> {
        if std::mem::replace(&mut self.is_seen, true) {
            self.since.clear();
        }
        Stays {
            rows: &self.since,
            span: self.span,
        }
    }
}

/// Which of some rows stay.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stays<'a> {
    /// In the order of the file.
    pub(crate) rows: &'a [bool],
    span: Option<(i64, i64)>,
}

impl Stays<'_> {
    /// Whether what the rows come from stays: one of them does, or there are none and its time, if it has one, is
    /// not out of those of all that stay.
    pub(crate) fn any(&self, time: Option<i64>) -> bool {
        match (self.rows, time, self.span) {
            ([], None, _) => true,
            ([], Some(time), Some((begin, end))) => (begin..=end).contains(&time),
            (rows, ..) => rows.contains(&true),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_is_asked_for_once() {
        let mut kept = Kept::default();
        for (number, time) in [(1, 10), (70, 5), (3, NO_TIME)] {
            kept.insert(number, time);
        }
        kept.next_row();
        kept.next_row();
        assert_eq!(kept.stays().rows, [false, true]);
        assert!(kept.stays().rows.is_empty());
        for (time, expected) in [(None, true), (Some(5), true), (Some(11), false)] {
            assert_eq!(kept.stays().any(time), expected);
        }
        kept.next_row();
        assert_eq!(kept.stays().rows, [false]);
        (3..=70).for_each(|_| kept.next_row());
        let stays = kept.stays();
        assert_eq!(stays.rows.iter().filter(|stays| **stays).count(), 2);
        assert!(stays.rows[67] && stays.any(None));
    }
}
