//! Bytes to lines.

/// Cuts what arrives in pieces into lines, however they were cut.
///
/// A line that is too long is reported once and left out to its end, so that its rest is
/// never taken for a command.
#[derive(Clone, Debug)]
pub struct Lines {
    longest: usize,
    /// What has arrived of lines that are not complete, and complete ones from `begin` on.
    bytes: Vec<u8>,
    begin: usize,
    /// Number of bytes from there on that are known to have no end of line.
    looked_at: usize,
    /// Whether what arrives is of a line that is too long.
    is_skipping: bool,
}

/// Why a line cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineError {
    /// It is longer than can be.
    TooLong,
    /// It is not UTF-8, or has a NUL in it.
    NotText,
}

impl Lines {
    /// Lines of at most `longest` bytes, without their ends.
    pub fn new(longest: usize) -> Self {
        Self {
            longest,
            bytes: Vec::new(),
            begin: 0,
            looked_at: 0,
            is_skipping: false,
        }
    }

    /// More has arrived. Take all lines with [`next_line`](Self::next_line) before the next piece:
    /// then no more is kept than a line and a piece.
    pub fn push(&mut self, piece: &[u8]) {
        self.bytes.drain(..self.begin);
        self.begin = 0;
        self.bytes.extend_from_slice(piece);
    }

    /// Nothing more arrives: what there is of a line is the last one.
    pub fn end(&mut self) {
        if self.begin < self.bytes.len() && !self.is_skipping {
            self.bytes.push(b'\n');
        }
    }

    /// The next line without its end; `None` where none is complete.
    pub fn next_line(&mut self) -> Option<Result<&str, LineError>> {
        loop {
            let rest = &self.bytes[self.begin..];
            // A long line may come byte by byte.
            let new = &rest[self.looked_at..];
            let Some(length) = new.iter().position(|byte| *byte == b'\n') else {
                self.looked_at = rest.len();
                if self.is_skipping || rest.len() > self.longest {
                    self.bytes.truncate(self.begin);
                    self.looked_at = 0;
                    return (!std::mem::replace(&mut self.is_skipping, true))
                        .then_some(Err(LineError::TooLong));
                }
                return None;
            };
            let begin = self.begin;
            let length = std::mem::take(&mut self.looked_at) + length;
            self.begin += length + 1;
            if std::mem::take(&mut self.is_skipping) {
                continue;
            }
            if length > self.longest {
                return Some(Err(LineError::TooLong));
            }
            let line = &self.bytes[begin..begin + length];
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            return Some(match std::str::from_utf8(line) {
                Ok(line) if !line.contains('\0') => Ok(line),
                _ => Err(LineError::NotText),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(pieces: &[&[u8]]) -> Vec<Result<String, LineError>> {
        let mut lines = Lines::new(5);
        let mut found = Vec::new();
        for piece in pieces {
            lines.push(piece);
            while let Some(line) = lines.next_line() {
                found.push(line.map(str::to_string));
            }
            assert!(lines.bytes.len() <= lines.begin + 5);
        }
        found
    }

    #[test]
    fn lines_however_they_arrive() {
        let expected = [
            Ok("ab".to_string()),
            Ok(String::new()),
            Err(LineError::TooLong),
            Ok("cdefg".to_string()),
            Err(LineError::NotText),
            Err(LineError::NotText),
            Ok("x".to_string()),
        ];
        let bytes = b"ab\r\n\n123456789012\ncdefg\n\xff\n\0\nx\nrest";
        assert_eq!(cut(&[bytes]), expected);
        for size in 1..8 {
            let pieces: Vec<_> = bytes.chunks(size).collect();
            assert_eq!(cut(&pieces), expected, "{size}");
        }
    }

    #[test]
    fn the_last_line_needs_no_end() {
        let last = |text: &[u8]| {
            let mut lines = Lines::new(5);
            lines.push(text);
            while lines.next_line().is_some() {}
            lines.end();
            let last = lines.next_line().map(|line| line.map(str::to_string));
            assert_eq!(lines.next_line(), None);
            last
        };
        assert_eq!(last(b"ab\nrest"), Some(Ok("rest".to_string())));
        assert_eq!(last(b"ab\n"), None);
        assert_eq!(last(b""), None);
        // It was reported when it became too long.
        assert_eq!(last(b"1234567"), None);
    }
}
