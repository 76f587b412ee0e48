//! A part of a trace: the text of the file without that of some events.

use std::io::{self, Write};
use std::ops::Range;

/// Writes all of a file but some of its events.
pub(super) struct Cut<'a, 'o> {
    bytes: &'a [u8],
    out: &'o mut dyn Write,
    /// Where what was written or left out ends.
    end: usize,
    /// Whether no event of the array in hand was written.
    is_first: bool,
    /// Whether all of them were, so far.
    is_same: bool,
}

impl<'a, 'o> Cut<'a, 'o> {
    pub(super) fn new(bytes: &'a [u8], out: &'o mut dyn Write) -> Self {
        Self {
            bytes,
            out,
            end: 0,
            is_first: true,
            is_same: true,
        }
    }

    /// What lies between what was written or left out and another place.
    fn take(&mut self, to: usize) -> &'a [u8] {
        let between = self.bytes.get(self.end..to).unwrap_or_default();
        self.end = to.max(self.end);
        between
    }

    /// The events of an array begin.
    pub(super) fn begin(&mut self, at: usize) -> io::Result<()> {
        (self.is_first, self.is_same) = (true, true);
        let before = self.take(at);
        self.out.write_all(before)
    }

    /// The next event of an array, which stays or not. Damage before it does not stay.
    pub(super) fn event(&mut self, at: Range<usize>, stays: bool) -> io::Result<()> {
        let between = self.take(at.start);
        let event = self.take(at.end);
        if !stays {
            self.is_same = false;
            return Ok(());
        }
        let is_plain = between.iter().all(is_between);
        match (std::mem::take(&mut self.is_first), is_plain) {
            (true, true) if !self.is_same => self.blanks(between)?,
            (_, true) => self.out.write_all(between)?,
            (false, false) => self.out.write_all(b",\n")?,
            (true, false) => {}
        }
        self.out.write_all(event)
    }

    /// The events of an array end.
    pub(super) fn end(&mut self, at: usize) -> io::Result<()> {
        let after = self.take(at);
        match (after.iter().all(is_between), self.is_same) {
            (true, true) => self.out.write_all(after),
            (true, false) => self.blanks(after),
            (false, _) => Ok(()),
        }
    }

    /// All that follows.
    pub(super) fn finish(mut self) -> io::Result<()> {
        let rest = self.take(self.bytes.len());
        self.out.write_all(rest)
    }

    /// What is there beside commas.
    fn blanks(&mut self, text: &[u8]) -> io::Result<()> {
        let mut parts = text.split(|&byte| byte == b',');
        parts.try_for_each(|part| self.out.write_all(part))
    }
}

/// Whether a byte may stand between events.
fn is_between(byte: &u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | b',')
}
