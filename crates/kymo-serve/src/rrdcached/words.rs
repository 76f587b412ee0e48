//! The words of a line: one blank between two, and whatever stands behind a backslash as it is.

use std::borrow::Cow;

use memchr::memchr2;

/// The words of a line that are left.
#[derive(Clone, Debug)]
pub(super) struct Words<'a> {
    /// None behind the last.
    rest: Option<&'a [u8]>,
}

impl<'a> Words<'a> {
    pub(super) fn of(line: &'a [u8]) -> Self {
        Self { rest: Some(line) }
    }

    /// The first word of what is left, which has a backslash there.
    #[cold]
    fn escaped(&mut self, rest: &'a [u8], place: usize) -> Option<Vec<u8>> {
        let mut word = rest[..place].to_vec();
        let mut bytes = rest[place..].iter().enumerate();
        while let Some((at, &byte)) = bytes.next() {
            match byte {
                b' ' => {
                    self.rest = Some(&rest[place + at + 1..]);
                    break;
                }
                b'\\' => word.push(*bytes.next()?.1),
                byte => word.push(byte),
            }
        }
        Some(word)
    }
}

impl<'a> Iterator for Words<'a> {
    type Item = Cow<'a, [u8]>;

    /// The next word. A backslash that ends the line ends the words, too.
    #[inline]
    fn next(&mut self) -> Option<Cow<'a, [u8]>> {
        let rest = self.rest.take()?;
        let Some(place) = memchr2(b' ', b'\\', rest) else {
            return Some(Cow::Borrowed(rest));
        };
        if rest[place] == b' ' {
            self.rest = Some(&rest[place + 1..]);
            return Some(Cow::Borrowed(&rest[..place]));
        }
        self.escaped(rest, place).map(Cow::Owned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_and_backslashes() {
        for (line, words) in [
            ("", &[""][..]),
            ("PING", &["PING"]),
            (" PING ", &["", "PING", ""]),
            ("a  b", &["a", "", "b"]),
            ("a\\ b c\\\\d\\e f", &["a b", "c\\de", "f"]),
            ("a b\\", &["a"]),
            ("a\\  b", &["a ", "b"]),
        ] {
            let found: Vec<_> = Words::of(line.as_bytes()).collect();
            let expected: Vec<_> = words.iter().map(|word| word.as_bytes()).collect();
            assert_eq!(found, expected, "{line}");
        }
    }
}
