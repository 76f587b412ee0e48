//! Lines that clients send.

use std::io::{self, Read};

use memchr::memchr;

/// Reads lines of a bounded length. One that is longer is skipped, and reported as such.
#[derive(Debug)]
pub struct Lines {
    buffer: Vec<u8>,
    /// Where the bytes begin that were read and not yet returned.
    begin: usize,
    end: usize,
    /// Whether the line at hand is too long.
    passes_over: bool,
}

/// What a client has sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadLine<'a> {
    /// A line, without its end.
    Line(&'a [u8]),
    /// A line that is too long.
    TooLong,
}

impl Lines {
    /// Reads lines of less than `most` bytes.
    pub fn new(most: usize) -> Self {
        Self {
            buffer: vec![0; most],
            begin: 0,
            end: 0,
            passes_over: false,
        }
    }

    /// The next line of what was read; `None` where more must be [read](Lines::read).
    pub fn next_line(&mut self) -> Option<ReadLine<'_>> {
        let Some(length) = memchr(b'\n', &self.buffer[self.begin..self.end]) else {
            if self.begin == 0 && self.end == self.buffer.len() {
                self.passes_over = true;
            }
            if self.passes_over {
                self.begin = self.end;
            }
            return None;
        };
        let line = self.begin..self.begin + length;
        self.begin = line.end + 1;
        if std::mem::take(&mut self.passes_over) {
            return Some(ReadLine::TooLong);
        }
        let line = &self.buffer[line];
        Some(ReadLine::Line(line.strip_suffix(b"\r").unwrap_or(line)))
    }

    /// Reads more, and returns whether there was more.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub fn read(&mut self, from: &mut impl Read) -> io::Result<bool> {
        self.buffer.copy_within(self.begin..self.end, 0);
        self.end -= self.begin;
        self.begin = 0;
        loop {
            match from.read(&mut self.buffer[self.end..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
                Ok(count) => {
                    self.end += count;
                    return Ok(count > 0);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_in_pieces() {
        let text = b"one\ntwo\r\n\n0123456789abcdef\nlast\nnot ended".as_slice();
        for piece in 1..text.len() {
            let mut lines = Lines::new(12);
            let mut reported = Vec::new();
            for mut from in text.chunks(piece) {
                while !from.is_empty() {
                    assert!(lines.read(&mut from).unwrap());
                    while let Some(line) = lines.next_line() {
                        reported.push(match line {
                            ReadLine::Line(line) => String::from_utf8_lossy(line).into_owned(),
                            ReadLine::TooLong => "too long".into(),
                        });
                    }
                }
            }
            assert_eq!(reported, ["one", "two", "", "too long", "last"], "{piece}");
            assert!(!lines.read(&mut b"".as_slice()).unwrap());
        }
    }
}
