//! From the text of C declarations to tokens.

use std::ops::Range;

use super::ParseError;

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A name or a keyword.
    Word,
    /// An integer literal.
    Integer(u64),
    /// A punctuation mark: one character, also where C puts several together.
    Mark(char),
    /// The end of a line that began with `#`.
    EndOfLine,
    /// The end of the text.
    End,
}

/// A token and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) range: Range<usize>,
}

/// Makes tokens of a text.
pub(super) struct Lexer<'a> {
    text: &'a str,
    at: usize,
    /// Whether this line began with `#`, so that its end matters.
    in_directive: bool,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self {
            text,
            at: 0,
            in_directive: false,
        }
    }

    /// The next token; after the last one, [`Kind::End`] for ever.
    pub(super) fn next(&mut self) -> Result<Token, ParseError> {
        self.skip_blanks()?;
        let start = self.at;
        let rest = &self.text[start..];
        let kind = match rest.chars().next() {
            // A directive on the last line ends with the text.
            None | Some('\n') if self.in_directive => {
                self.in_directive = false;
                Kind::EndOfLine
            }
            None => Kind::End,
            Some(first) if first.is_ascii_digit() => self.integer(rest)?,
            Some(first) if is_word(first) => {
                self.at += rest.find(|c| !is_word(c)).unwrap_or(rest.len());
                Kind::Word
            }
            Some(first) if first.is_ascii_punctuation() => {
                self.in_directive |= first == '#';
                self.at += 1;
                Kind::Mark(first)
            }
            Some(first) => {
                let range = start..start + first.len_utf8();
                return Err(ParseError::new(
                    range,
                    format!("unexpected character {first:?}"),
                    "no part of a declaration",
                ));
            }
        };
        Ok(Token {
            kind,
            range: start..self.at,
        })
    }

    /// Skips blanks and comments; the end of a line too, unless it ends a directive.
    fn skip_blanks(&mut self) -> Result<(), ParseError> {
        loop {
            let rest = &self.text[self.at..];
            let is_blank = |c: char| c.is_ascii_whitespace() && !(self.in_directive && c == '\n');
            let blanks = rest.find(|c| !is_blank(c)).unwrap_or(rest.len());
            if blanks > 0 {
                self.at += blanks;
            } else if rest.starts_with("//") {
                self.at += rest.find('\n').unwrap_or(rest.len());
            } else if let Some(comment) = rest.strip_prefix("/*") {
                let Some(length) = comment.find("*/") else {
                    return Err(ParseError::new(
                        self.at..self.at + 2,
                        "this comment does not end",
                        "expected `*/` somewhere after it",
                    ));
                };
                self.at += length + 4;
            } else {
                return Ok(());
            }
        }
    }

    /// An integer literal: decimal, octal or hexadecimal, with suffixes.
    fn integer(&mut self, rest: &str) -> Result<Kind, ParseError> {
        let literal = &rest[..rest.find(|c| !is_word(c)).unwrap_or(rest.len())];
        let range = self.at..self.at + literal.len();
        self.at = range.end;
        let digits = literal.trim_end_matches(['u', 'U', 'l', 'L']);
        let (digits, radix) = match digits.as_bytes() {
            [b'0', b'x' | b'X', ..] => (&digits[2..], 16),
            [b'0', _, ..] => (&digits[1..], 8),
            _ => (digits, 10),
        };
        match u64::from_str_radix(digits, radix) {
            Ok(value) => Ok(Kind::Integer(value)),
            Err(_) => Err(ParseError::new(
                range,
                format!("`{literal}` is not an integer"),
                "expected a decimal, octal or hexadecimal integer of at most 64 bits",
            )),
        }
    }
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}
