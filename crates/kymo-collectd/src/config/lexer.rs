//! Text to tokens.

use std::ops::Range;

use kymo_text::diagnostic::Diagnostic;

use super::Argument;

/// What a file consists of.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    /// `<`
    Open,
    /// `</`
    OpenEnd,
    /// `>`
    Close,
    /// The end of a line.
    Line,
    /// A key or an argument.
    Word(Argument),
}

pub(super) struct Lexer<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Lexer<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { text, at: 0 }
    }

    fn rest(&self) -> &'t [u8] {
        self.text.as_bytes().get(self.at..).unwrap_or_default()
    }

    fn take(&mut self, length: usize, token: Token) -> (Token, Range<usize>) {
        let begin = self.at;
        self.at += length;
        (token, begin..self.at)
    }

    /// The next token and its place; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<(Token, Range<usize>)>, Box<Diagnostic>> {
        loop {
            let rest = self.rest();
            let begin = self.at;
            match rest {
                [] => return Ok(None),
                [b' ' | b'\t' | b'\x08', ..] => self.at += 1,
                [b'\\', b'\n', ..] => self.at += 2,
                [b'\\', b'\r', b'\n', ..] => self.at += 3,
                [b'#', ..] => {
                    self.at += rest.iter().take_while(|byte| **byte != b'\n').count();
                }
                [b'\n', ..] => return Ok(Some(self.take(1, Token::Line))),
                [b'\r', b'\n', ..] => return Ok(Some(self.take(2, Token::Line))),
                [b'<', b'/', ..] => return Ok(Some(self.take(2, Token::OpenEnd))),
                [b'<', ..] => return Ok(Some(self.take(1, Token::Open))),
                [b'>', ..] => return Ok(Some(self.take(1, Token::Close))),
                [b'"', ..] => {
                    let text = self.quoted()?;
                    return Ok(Some((Token::Word(Argument::Text(text)), begin..self.at)));
                }
                _ => {
                    let (argument, length) = word(rest).ok_or_else(|| self.not_a_word(begin))?;
                    return Ok(Some(self.take(length, Token::Word(argument))));
                }
            }
        }
    }

    /// A text between quotation marks. A backslash at the end of a line joins it with the next
    /// one, whose leading blanks are dropped.
    fn quoted(&mut self) -> Result<String, Box<Diagnostic>> {
        let begin = self.at;
        let mut text = String::new();
        let mut chars = self.text[begin..].char_indices().skip(1).peekable();
        let unterminated = |end: usize| {
            let error = Diagnostic::error("a text without its closing quotation mark");
            Box::new(error.at(begin..begin + end, "it begins here"))
        };
        while let Some((at, char)) = chars.next() {
            match char {
                '"' => {
                    self.at = begin + at + 1;
                    return Ok(text);
                }
                '\n' => return Err(unterminated(at)),
                '\\' => {
                    let mut next = chars.next();
                    if matches!(next, Some((_, '\r'))) && chars.next_if(|c| c.1 == '\n').is_some() {
                        next = Some((at, '\n'));
                    }
                    match next {
                        Some((_, '\n')) => {
                            while chars.next_if(|(_, c)| matches!(c, ' ' | '\t')).is_some() {}
                        }
                        Some((_, char)) => text.push(char),
                        None => break,
                    }
                }
                char => text.push(char),
            }
        }
        Err(unterminated(self.text.len() - begin))
    }

    fn not_a_word(&self, begin: usize) -> Box<Diagnostic> {
        let rest = &self.text[begin..];
        let end = rest
            .find([' ', '\t', '\n', '\r', '>'])
            .unwrap_or(rest.len());
        let found = &rest[..end.max(rest.chars().next().map_or(0, char::len_utf8))];
        let message = format!("`{found}` needs quotation marks");
        let label = "only letters, digits and underscores do without, numbers and IP addresses";
        Box::new(Diagnostic::error(message).at(begin..begin + found.len(), label))
    }
}

/// The argument without quotation marks at the beginning of a text, and its length. It ends
/// where no such argument can go on.
fn word(rest: &[u8]) -> Option<(Argument, usize)> {
    let ends = |byte: &u8| {
        matches!(
            byte,
            b' ' | b'\t' | b'\x08' | b'\r' | b'\n' | b'>' | b'#' | b'"' | b'<'
        )
    };
    let length = rest.iter().take_while(|byte| !ends(byte)).count();
    let text = std::str::from_utf8(&rest[..length]).ok()?;
    let argument = match text {
        "true" | "yes" | "on" => Argument::Boolean(true),
        "false" | "no" | "off" => Argument::Boolean(false),
        _ => match number(text) {
            Some(number) => Argument::Number(number),
            None if is_plain(text) || is_address(text) => Argument::Text(text.to_string()),
            None => return None,
        },
    };
    Some((argument, length))
}

fn is_plain(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    !text.is_empty() && text.bytes().all(is_part)
}

/// An address of IPv4 or IPv6, or one with a port.
fn is_address(text: &str) -> bool {
    text.parse::<std::net::IpAddr>().is_ok() || text.parse::<std::net::SocketAddr>().is_ok()
}

/// A number: of base 10, also with a leading zero, or 16. What has an exponent needs a point and
/// the exponent's sign; without it is a text, as in collectd.
fn number(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let sign = if text.starts_with('-') { -1.0 } else { 1.0 };
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let is_number = match unsigned.split_once('.') {
        _ if unsigned.starts_with("0x") && text == unsigned => {
            return kymo_machine::Number::parse(unsigned)
                .ok()
                .filter(|_| unsigned[2..].bytes().all(|byte| byte.is_ascii_hexdigit()))
                .map(|number| number.value());
        }
        None => !unsigned.is_empty() && is_digits(unsigned),
        Some((whole, rest)) => {
            let (decimals, exponent) = rest.split_once(['e', 'E']).unwrap_or((rest, "+0"));
            let digits = exponent.strip_prefix(['+', '-'])?;
            !decimals.is_empty()
                && !digits.is_empty()
                && [whole, decimals, digits].into_iter().all(is_digits)
        }
    };
    if !is_number {
        return None;
    }
    unsigned.parse::<f64>().ok().map(|number| sign * number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_without_quotation_marks() {
        for (text, expected) in [
            ("10", Some(Argument::Number(10.0))),
            ("010", Some(Argument::Number(10.0))),
            ("0x10", Some(Argument::Number(16.0))),
            ("-1", Some(Argument::Number(-1.0))),
            (".5", Some(Argument::Number(0.5))),
            ("+1.5", Some(Argument::Number(1.5))),
            ("1.0e+2", Some(Argument::Number(100.0))),
            ("1.5E-1", Some(Argument::Number(0.15))),
            ("1e5", Some(Argument::Text("1e5".into()))),
            ("yes", Some(Argument::Boolean(true))),
            ("off", Some(Argument::Boolean(false))),
            ("True", Some(Argument::Text("True".into()))),
            ("my_host1", Some(Argument::Text("my_host1".into()))),
            ("192.168.0.1", Some(Argument::Text("192.168.0.1".into()))),
            (
                "192.168.0.1:80",
                Some(Argument::Text("192.168.0.1:80".into())),
            ),
            ("::1", Some(Argument::Text("::1".into()))),
            ("[::1]:80", Some(Argument::Text("[::1]:80".into()))),
            ("my-host", None),
            ("a.b", None),
            ("/x", None),
            ("1.0e2", None),
            ("1.", None),
            ("é", None),
        ] {
            let found = word(text.as_bytes());
            assert_eq!(found.map(|(argument, _)| argument), expected, "{text}");
        }
    }
}
