//! From text to tokens (CTF 1.8.3 §C.1).

use std::ops::Range;

use kymo_text::diagnostic::Diagnostic;

/// A place in the text, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) start: usize,
    pub(super) end: usize,
}

impl Span {
    /// From the start of this place to the end of another, if that is further on.
    pub(super) fn to(self, last: Self) -> Self {
        Self {
            start: self.start,
            end: last.end.max(self.end),
        }
    }
}

impl From<Span> for Range<usize> {
    fn from(span: Span) -> Self {
        span.start..span.end
    }
}

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A name or a keyword: its position determines which.
    Word,
    /// An integer literal, without sign.
    Integer(u64),
    /// A string or character literal, quotes included.
    Quoted,
    /// A punctuation mark.
    Mark(Mark),
    /// The end of the text.
    End,
}

/// The punctuation marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    BraceOpen,
    BraceClose,
    ParenOpen,
    ParenClose,
    SquareOpen,
    SquareClose,
    Less,
    Greater,
    Semicolon,
    Colon,
    Comma,
    Dot,
    Ellipsis,
    Equal,
    Assign,
    Star,
    Plus,
    Minus,
    Arrow,
}

/// Longer ones come before those that they begin with.
const MARKS: [(&str, Mark); 19] = [
    ("...", Mark::Ellipsis),
    (":=", Mark::Assign),
    ("->", Mark::Arrow),
    ("{", Mark::BraceOpen),
    ("}", Mark::BraceClose),
    ("(", Mark::ParenOpen),
    (")", Mark::ParenClose),
    ("[", Mark::SquareOpen),
    ("]", Mark::SquareClose),
    ("<", Mark::Less),
    (">", Mark::Greater),
    (";", Mark::Semicolon),
    (":", Mark::Colon),
    (",", Mark::Comma),
    (".", Mark::Dot),
    ("=", Mark::Equal),
    ("*", Mark::Star),
    ("+", Mark::Plus),
    ("-", Mark::Minus),
];

impl Mark {
    /// The mark as it is written.
    pub(super) fn text(self) -> &'static str {
        MARKS
            .iter()
            .find(|(_, mark)| *mark == self)
            .map_or("", |(text, _)| text)
    }
}

/// A token and its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) span: Span,
}

/// Makes tokens of a text.
pub(super) struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Lexer<'a> {
    /// A lexer at the beginning of a text.
    pub(super) fn new(text: &'a str) -> Self {
        // A byte order mark, which editors on some machines add.
        let at = if text.starts_with('\u{feff}') { 3 } else { 0 };
        Self { text, at }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// The next token; after the last one, [`Kind::End`] for ever.
    pub(super) fn next(&mut self) -> Result<Token, Diagnostic> {
        self.skip_blanks()?;
        let start = self.at;
        let kind = self.token()?;
        Ok(Token {
            kind,
            span: Span {
                start,
                end: self.at,
            },
        })
    }

    /// Skips blanks, zero bytes (which packets and crashed tracers leave) and comments.
    fn skip_blanks(&mut self) -> Result<(), Diagnostic> {
        loop {
            let rest = self.rest();
            let blanks = rest
                .bytes()
                .take_while(|byte| matches!(byte, b' ' | b'\t'..=b'\r' | 0))
                .count();
            if blanks > 0 {
                self.at += blanks;
            } else if let Some(comment) = rest.strip_prefix("/*") {
                let Some(length) = comment.find("*/") else {
                    return Err(Diagnostic::error("comment without an end")
                        .at(self.at..self.at + 2, "expected `*/` after this"));
                };
                self.at += 2 + length + 2;
            } else if rest.starts_with("//") {
                self.at += rest.find('\n').unwrap_or(rest.len());
            } else {
                return Ok(());
            }
        }
    }

    fn token(&mut self) -> Result<Kind, Diagnostic> {
        let rest = self.rest();
        let Some(first) = rest.chars().next() else {
            return Ok(Kind::End);
        };
        if let Some(quoted) = rest
            .strip_prefix('L')
            .filter(|r| r.starts_with(['"', '\'']))
        {
            return self.quoted(quoted, 1);
        }
        if matches!(first, '"' | '\'') {
            return self.quoted(rest, 0);
        }
        if first.is_ascii_digit() {
            return self.integer();
        }
        let word = word_length(rest.as_bytes());
        if word > 0 {
            self.at += word;
            return Ok(Kind::Word);
        }
        for (text, mark) in MARKS {
            if rest.starts_with(text) {
                self.at += text.len();
                return Ok(Kind::Mark(mark));
            }
        }
        Err(
            Diagnostic::error(format!("unexpected character `{first}`")).at(
                self.at..self.at + first.len_utf8(),
                "no token begins with this",
            ),
        )
    }

    fn quoted(&mut self, quoted: &str, prefix: usize) -> Result<Kind, Diagnostic> {
        let bytes = quoted.as_bytes();
        let mut at = 1;
        while at < bytes.len() {
            match bytes[at] {
                b'\\' => at += 2,
                byte if byte == bytes[0] => {
                    self.at += prefix + at + 1;
                    return Ok(Kind::Quoted);
                }
                _ => at += 1,
            }
        }
        let quote = char::from(bytes[0]);
        Err(Diagnostic::error("quoted text without an end").at(
            self.at..self.at + prefix + 1,
            format!("expected another `{quote}` after this"),
        ))
    }

    fn integer(&mut self) -> Result<Kind, Diagnostic> {
        let start = self.at;
        let length = self
            .rest()
            .bytes()
            .take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
            .count();
        self.at += length;
        let written = &self.text[start..self.at];
        let fault = |label: &str| {
            Diagnostic::error(format!("`{written}` is not an integer"))
                .at(start..start + length, label)
        };
        let digits = written.trim_end_matches(['u', 'U', 'l', 'L']);
        let suffix = written[digits.len()..].to_ascii_lowercase();
        if !matches!(
            &*suffix,
            "" | "u" | "l" | "ul" | "lu" | "ll" | "ull" | "llu"
        ) {
            return Err(fault(
                "expected one of the suffixes `u`, `l`, `ll`, `ul`, `ull`",
            ));
        }
        let (radix, digits) = match digits.as_bytes() {
            [b'0', b'x' | b'X', ..] => (16, &digits[2..]),
            [b'0', b'b' | b'B', ..] => (2, &digits[2..]),
            [b'0', _, ..] => (8, &digits[1..]),
            _ => (10, digits),
        };
        if digits.is_empty() || !digits.chars().all(|digit| digit.is_digit(radix)) {
            return Err(fault(match radix {
                2 => "expected binary digits after `0b`",
                8 => "expected octal digits after `0`",
                16 => "expected hexadecimal digits after `0x`",
                _ => "expected decimal digits",
            }));
        }
        u64::from_str_radix(digits, radix)
            .map(Kind::Integer)
            .map_err(|_| {
                Diagnostic::error("integer too large").at(
                    start..start + length,
                    format!("expected at most {}", u64::MAX),
                )
            })
    }
}

/// Whether a text is an identifier or keyword.
pub(super) fn is_word(text: &str) -> bool {
    !text.is_empty() && word_length(text.as_bytes()) == text.len()
}

/// Length of the identifier or keyword that a text begins with.
fn word_length(bytes: &[u8]) -> usize {
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        at += match rest[0] {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => 1,
            b'0'..=b'9' if at > 0 => 1,
            // C's universal character names.
            b'\\' if is_hex(rest, b'u', 4) => 6,
            b'\\' if is_hex(rest, b'U', 8) => 10,
            _ => break,
        };
    }
    at
}

fn is_hex(bytes: &[u8], letter: u8, digits: usize) -> bool {
    bytes.get(1) == Some(&letter)
        && bytes
            .get(2..2 + digits)
            .is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
}

/// What a quoted literal stands for: without quotes, escapes replaced. A zero byte in the
/// metadata itself is a blank, here as elsewhere.
pub(super) fn unquote(literal: &str, span: Span) -> Result<String, Diagnostic> {
    let inner = literal.strip_prefix('L').unwrap_or(literal);
    let inner = &inner[1..inner.len() - 1];
    let first = span.start + literal.len() - inner.len() - 1;
    if !inner.contains(['\\', '\0']) {
        return Ok(inner.to_owned());
    }
    // Escapes may stand for single bytes of a multi-byte character.
    let mut value = Vec::with_capacity(inner.len());
    let mut at = 0;
    while let Some(offset) = inner[at..].find(['\\', '\0']) {
        value.extend_from_slice(&inner.as_bytes()[at..at + offset]);
        at += offset;
        if inner.as_bytes()[at] == 0 {
            value.push(b' ');
            at += 1;
            continue;
        }
        let escape = &inner[at + 1..];
        let (length, bytes) = match decode_escape(escape) {
            Some(decoded) => decoded,
            None => {
                let length = 1 + escape.chars().next().map_or(0, char::len_utf8);
                return Err(Diagnostic::error("unknown escape sequence").at(
                    first + at..first + at + length,
                    "expected one of C's: `\\n`, `\\t`, `\\\"`, `\\\\`, `\\x41`, `\\101`...",
                ));
            }
        };
        value.extend_from_slice(&bytes);
        at += 1 + length;
    }
    value.extend_from_slice(&inner.as_bytes()[at..]);
    // As in C, text ends at a zero byte.
    if let Some(end) = value.iter().position(|&byte| byte == 0) {
        value.truncate(end);
    }
    Ok(String::from_utf8(value)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
}

/// The length of an escape after its backslash, and the bytes that it stands for.
fn decode_escape(escape: &str) -> Option<(usize, Vec<u8>)> {
    let number = |skip: usize, radix: u32, most: usize| {
        let length = escape[skip..]
            .bytes()
            .take(most)
            .take_while(|&byte| char::from(byte).is_digit(radix))
            .count();
        let value = u32::from_str_radix(&escape[skip..skip + length], radix).ok()?;
        Some((skip + length, value))
    };
    let single = match escape.bytes().next()? {
        b'a' => 7,
        b'b' => 8,
        b't' => 9,
        b'n' => 10,
        b'v' => 11,
        b'f' => 12,
        b'r' => 13,
        b'e' => 27,
        byte @ (b'\\' | b'\'' | b'"' | b'?') => byte,
        b'0'..=b'7' => {
            let (length, value) = number(0, 8, 3)?;
            return Some((length, vec![u8::try_from(value).ok()?]));
        }
        b'x' => {
            // C takes all digits that follow; other readers three at most, and so do we
            // where they make a byte.
            let fits = |&(_, value): &(usize, u32)| value <= 0xff;
            let (length, value) = number(1, 16, 3).filter(fits).or_else(|| number(1, 16, 2))?;
            return Some((length, vec![u8::try_from(value).ok()?]));
        }
        letter @ (b'u' | b'U') => {
            let digits = if letter == b'u' { 4 } else { 8 };
            let (length, value) = number(1, 16, digits)?;
            let character = char::from_u32(value).filter(|_| length == 1 + digits)?;
            return Some((length, character.to_string().into_bytes()));
        }
        _ => return None,
    };
    Some((1, vec![single]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<Kind> {
        let mut lexer = Lexer::new(text);
        std::iter::from_fn(|| Some(lexer.next().unwrap().kind).filter(|kind| *kind != Kind::End))
            .collect()
    }

    fn fault(text: &str) -> String {
        let mut lexer = Lexer::new(text);
        loop {
            match lexer.next() {
                Ok(token) => assert_ne!(token.kind, Kind::End, "{text} is accepted"),
                Err(error) => return format!("{}: {}", error.message, error.spans[0].label),
            }
        }
    }

    fn value(literal: &str) -> Result<String, Diagnostic> {
        let end = literal.len();
        unquote(literal, Span { start: 0, end })
    }

    #[test]
    fn integers_of_every_base_and_suffix() {
        use Kind::Integer;
        assert_eq!(
            kinds("0 42 052 0x2A 0X2au 0b101010 42ull 42LU 18446744073709551615"),
            [
                Integer(0),
                Integer(42),
                Integer(42),
                Integer(42),
                Integer(42),
                Integer(42),
                Integer(42),
                Integer(42),
                Integer(u64::MAX)
            ]
        );
        for text in [
            "08",
            "0x",
            "0b2",
            "1z",
            "42lul",
            "0xg",
            "18446744073709551616",
        ] {
            fault(text);
        }
    }

    #[test]
    fn ranges_need_no_blanks() {
        use Kind::{Integer, Mark as M};
        assert_eq!(
            kinds("1...5-0"),
            [
                Integer(1),
                M(Mark::Ellipsis),
                Integer(5),
                M(Mark::Minus),
                Integer(0)
            ]
        );
    }

    #[test]
    fn blanks_and_comments_go_away() {
        assert_eq!(
            kinds("\u{feff}/* a * b */\0a\r\n// c\n\tb\0\0//"),
            [Kind::Word, Kind::Word]
        );
        assert_eq!(kinds("\\u00e9t\\U000000e9"), [Kind::Word]);
    }

    #[test]
    fn what_does_not_end_is_an_error() {
        assert_eq!(
            fault("a /* b"),
            "comment without an end: expected `*/` after this"
        );
        assert_eq!(
            fault("\"ab\\\""),
            "quoted text without an end: expected another `\"` after this"
        );
        assert_eq!(
            fault("L'\\"),
            "quoted text without an end: expected another `'` after this"
        );
        assert_eq!(
            fault("é"),
            "unexpected character `é`: no token begins with this"
        );
    }

    #[test]
    fn escapes_are_those_of_c() {
        assert_eq!(value("\"plain é\"").unwrap(), "plain é");
        assert_eq!(value("L\"wide\"").unwrap(), "wide");
        assert_eq!(value("'\\''").unwrap(), "'");
        assert_eq!(
            value(r#""\\\"\?\x41\101\n\u00e9\U0001F600\xc3\xa9\0x""#).unwrap(),
            "\\\"?AA\né😀é"
        );
        assert_eq!(value(r#""\x23 \x023 \x0231 \x234""#).unwrap(), "# # #1 #4");
        assert_eq!(value(r#""\43 \043 \0431""#).unwrap(), "# # #1");
        assert_eq!(value("\"a\0b\"").unwrap(), "a b");
        for literal in [
            r#""\o""#,
            r#""\xg""#,
            r#""\777""#,
            r#""\ud800""#,
            r#""\u12""#,
            "\"\\é\"",
        ] {
            let error = value(literal).unwrap_err();
            assert_eq!(error.spans[0].range.start, 1, "{literal}");
        }
    }
}
