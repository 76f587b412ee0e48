//! Words of the filter language.

use std::ops::Range;

use super::error::FilterError;

/// A word.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    /// A name, or a word like `and`.
    Name(String),
    /// A name between back quotes: never a word of the language.
    Quoted(String),
    /// An integer without its sign; at most 2^64 - 1.
    Integer(u64),
    /// A floating point number without its sign.
    Float(f64),
    /// Text.
    Text(Vec<u8>),
    /// A sign such as `==`.
    Sign(&'static str),
    /// The end.
    End,
}

impl Token {
    /// What it is, for messages.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Name(name) | Self::Quoted(name) => format!("`{name}`"),
            Self::Integer(_) | Self::Float(_) => "a number".to_string(),
            Self::Text(_) => "a text".to_string(),
            Self::Sign(sign) => format!("`{sign}`"),
            Self::End => "the end".to_string(),
        }
    }
}

/// The signs, longer ones before those they begin with.
const SIGNS: [&str; 20] = [
    "...", "..", "==", "!=", "!~", "<=", ">=", "&&", "||", "=~", "(", ")", "[", "]", ",", ".", "=",
    "<", ">", "~",
];

/// All words of an expression and where each stands.
pub(super) fn words(source: &str) -> Result<Vec<(Token, Range<usize>)>, FilterError> {
    let mut words = Vec::new();
    let mut lexer = Lexer { source, at: 0 };
    loop {
        lexer.take_while(char::is_whitespace);
        let begin = lexer.at;
        let token = lexer.word()?;
        let is_end = token == Token::End;
        words.push((token, begin..lexer.at));
        if is_end {
            return Ok(words);
        }
    }
}

struct Lexer<'a> {
    source: &'a str,
    at: usize,
}

impl<'a> Lexer<'a> {
    fn rest(&self) -> &'a str {
        &self.source[self.at..]
    }

    fn take_while(&mut self, wanted: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let length = rest.find(|c| !wanted(c)).unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }

    fn error(&self, range: Range<usize>, message: impl Into<String>) -> FilterError {
        FilterError::new(self.source, range, message)
    }

    fn word(&mut self) -> Result<Token, FilterError> {
        let rest = self.rest();
        let Some(first) = rest.chars().next() else {
            return Ok(Token::End);
        };
        if first.is_alphabetic() || first == '_' {
            let name = self.take_while(|c| c.is_alphanumeric() || c == '_');
            return Ok(Token::Name(name.to_string()));
        }
        if first.is_ascii_digit() {
            return self.number();
        }
        if first == '`' {
            let Some(length) = rest[1..].find('`') else {
                return Err(self
                    .error(self.at..self.source.len(), "this name has no end")
                    .label("a second back quote is missing"));
            };
            self.at += length + 2;
            return Ok(Token::Quoted(rest[1..=length].to_string()));
        }
        if first == '"' || first == '\'' {
            return self.text(first);
        }
        // `!` and `-` are not in the list, since they begin longer signs or numbers only
        // where the parser expects them.
        let sign = SIGNS
            .into_iter()
            .chain(["!", "-"])
            .find(|sign| rest.starts_with(sign));
        match sign {
            Some(sign) => {
                self.at += sign.len();
                Ok(Token::Sign(sign))
            }
            None => Err(self
                .error(
                    self.at..self.at + first.len_utf8(),
                    format!("`{first}` has no meaning here"),
                )
                .label("unknown sign")
                .help("texts and labels are written in quotes, such as `event.name == \"a:b\"`")),
        }
    }

    fn number(&mut self) -> Result<Token, FilterError> {
        let begin = self.at;
        let radix = match self.rest().as_bytes() {
            [b'0', b'x' | b'X', ..] => 16,
            [b'0', b'o' | b'O', ..] => 8,
            [b'0', b'b' | b'B', ..] => 2,
            _ => 10,
        };
        if radix != 10 {
            self.at += 2;
        }
        let mut text = self
            .take_while(|c| c.is_ascii_alphanumeric() || c == '_')
            .to_string();
        let mut is_float = false;
        // A single dot is a decimal point: two are a range.
        let rest = self.rest().as_bytes();
        if radix == 10 && rest.first() == Some(&b'.') && rest.get(1).is_some_and(u8::is_ascii_digit)
        {
            is_float = true;
            self.at += 1;
            text.push('.');
            text += self.take_while(|c| c.is_ascii_alphanumeric() || c == '_');
        }
        if radix == 10 && text.ends_with(['e', 'E']) && self.rest().starts_with(['+', '-']) {
            text += &self.rest()[..1];
            self.at += 1;
            text += self.take_while(|c| c.is_ascii_digit());
        }
        let range = begin..self.at;
        text.retain(|c| c != '_');
        if radix == 10 && (is_float || text.contains(['e', 'E'])) {
            return match text.parse::<f64>() {
                Ok(value) => Ok(Token::Float(value)),
                Err(_) => Err(self
                    .error(range, "this is not a number")
                    .label("expected digits")),
            };
        }
        if radix == 10 && text.len() > 1 && text.starts_with('0') {
            return Err(self
                .error(range, "a decimal number does not begin with 0")
                .label("octal or decimal?")
                .help(format!(
                    "write `0o{0}` for an octal number, `{0}` for a decimal one",
                    text.trim_start_matches('0')
                )));
        }
        match u64::from_str_radix(&text, radix) {
            Ok(value) => Ok(Token::Integer(value)),
            Err(error) if *error.kind() == std::num::IntErrorKind::PosOverflow => Err(self
                .error(range, "this number is too large")
                .label("does not fit in 64 bits")),
            Err(_) => Err(self
                .error(range, "this is not a number")
                .label(format!("expected digits of base {radix}"))),
        }
    }

    fn text(&mut self, quote: char) -> Result<Token, FilterError> {
        let begin = self.at;
        self.at += 1;
        let mut text = Vec::new();
        loop {
            let plain = self.take_while(|c| c != quote && c != '\\');
            text.extend_from_slice(plain.as_bytes());
            let mut rest = self.rest().chars();
            match (rest.next(), rest.next()) {
                (Some('\\'), Some(escaped)) => {
                    let from = self.at;
                    self.at += 1 + escaped.len_utf8();
                    self.escape(from, escaped, &mut text)?;
                }
                (Some(c), _) if c == quote => {
                    self.at += 1;
                    return Ok(Token::Text(text));
                }
                _ => {
                    return Err(self
                        .error(begin..self.source.len(), "this text has no end")
                        .label(format!("a second `{quote}` is missing")));
                }
            }
        }
    }

    /// Adds what an escape that begins at `from` stands for.
    fn escape(&mut self, from: usize, c: char, text: &mut Vec<u8>) -> Result<(), FilterError> {
        match c {
            'n' => text.push(b'\n'),
            't' => text.push(b'\t'),
            'r' => text.push(b'\r'),
            '0' => text.push(0),
            '\\' | '"' | '\'' => text.push(c as u8),
            'x' => {
                let digits = self.rest().get(..2).unwrap_or_default();
                let Some(byte) = hex(digits) else {
                    return Err(self.bad_escape(from, "expected two digits of base 16"));
                };
                self.at += 2;
                text.push(byte as u8);
            }
            'u' => {
                let rest = self.rest();
                let inner = rest
                    .strip_prefix('{')
                    .and_then(|rest| rest.split_once('}'))
                    .filter(|(digits, _)| digits.len() <= 6);
                let c = inner
                    .and_then(|(digits, _)| hex(digits))
                    .and_then(char::from_u32);
                let (Some((digits, _)), Some(c)) = (inner, c) else {
                    return Err(self.bad_escape(from, "expected `{`, a character's number, `}`"));
                };
                self.at += digits.len() + 2;
                text.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            }
            _ => {
                return Err(self
                    .bad_escape(from, "unknown escape")
                    .help("there are \\n \\t \\r \\0 \\\\ \\\" \\' \\xHH and \\u{HHHH}"));
            }
        }
        Ok(())
    }

    fn bad_escape(&self, from: usize, label: &str) -> FilterError {
        self.error(from..self.at, "this escape stands for nothing")
            .label(label)
    }
}

/// The value of digits of base 16; `None` where they are none.
fn hex(digits: &str) -> Option<u32> {
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    u32::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(source: &str) -> Vec<Token> {
        words(source)
            .expect(source)
            .into_iter()
            .map(|(token, _)| token)
            .collect()
    }

    #[test]
    fn numbers_of_all_kinds() {
        let Token::Float(float) = read("1.5e-3")[0] else {
            panic!("a float")
        };
        assert_eq!(float, 1.5e-3);
        assert_eq!(
            read("0x_ff 0o17 0b101 1_000 0 2..5 2e3"),
            [
                Token::Integer(255),
                Token::Integer(15),
                Token::Integer(5),
                Token::Integer(1000),
                Token::Integer(0),
                Token::Integer(2),
                Token::Sign(".."),
                Token::Integer(5),
                Token::Float(2000.0),
                Token::End,
            ]
        );
    }

    #[test]
    fn texts_and_escapes() {
        assert_eq!(
            read(r#""a\n\x41\u{e9}\"'" 'b"'"#),
            [
                Token::Text("a\nA\u{e9}\"'".into()),
                Token::Text("b\"".into()),
                Token::End,
            ]
        );
        assert_eq!(read(r"'\xff'")[0], Token::Text(vec![0xff]));
    }

    #[test]
    fn signs_and_names() {
        assert_eq!(
            read("a.`b c`!=!~x"),
            [
                Token::Name("a".into()),
                Token::Sign("."),
                Token::Quoted("b c".into()),
                Token::Sign("!="),
                Token::Sign("!~"),
                Token::Name("x".into()),
                Token::End,
            ]
        );
    }

    #[test]
    fn nonsense_is_refused() {
        for source in [
            "017",
            "0x",
            "0b2",
            "18446744073709551616",
            "1e",
            "\"",
            "'\\",
            "'\\q'",
            "'\\x4'",
            "'\\x+1'",
            "'\\u{110000}'",
            "'\\u41'",
            "`a",
            "#",
            "é#",
            "1.2.3x",
        ] {
            assert!(words(source).is_err(), "{source}");
        }
    }
}
