//! The tokens of PromQL.

use std::fmt;

use crate::ast::Millis;

/// The longest query, in bytes.
const LONGEST: usize = 64 << 10;
/// Milliseconds of the longest duration: as many as Prometheus has nanoseconds for, in 64 bits.
const LONGEST_DURATION: u64 = 9_223_372_036_854;

/// What is wrong with a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    /// The byte where it is.
    pub(crate) at: usize,
    pub(crate) text: String,
}

impl Problem {
    /// The problem with its line and column in the query.
    pub(crate) fn describe(&self, query: &str) -> String {
        let before = query.get(..self.at).unwrap_or(query);
        let line = before.matches('\n').count() + 1;
        let column = before.chars().rev().take_while(|char| *char != '\n');
        let column = column.count() + 1;
        format!("{line}:{column}: parse error: {}", self.text)
    }
}

/// A word, number, text or symbol of a query.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Token<'q> {
    Word(&'q str),
    Number(f64),
    Duration(Millis),
    Text(String),
    Symbol(&'static str),
    End,
}

impl fmt::Display for Token<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Word(word) => write!(out, "\"{word}\""),
            Self::Number(_) => out.write_str("number"),
            Self::Duration(_) => out.write_str("duration"),
            Self::Text(_) => out.write_str("string"),
            Self::Symbol(symbol) => write!(out, "\"{symbol}\""),
            Self::End => out.write_str("end of input"),
        }
    }
}

/// Symbols, longer ones before those that they begin with.
const SYMBOLS: [&str; 24] = [
    "==", "=~", "=", "!=", "!~", "<=", "<", ">=", ">", "+", "-", "*", "/", "%", "^", "@", ",", "(",
    ")", "{", "}", "[", "]", ":",
];

/// Cuts a query into tokens, each with the byte where it begins. The last is [`Token::End`].
///
/// # Errors
///
/// A part of the query that is not a token, or a query that is too long.
pub(crate) fn tokens(query: &str) -> Result<Vec<(Token<'_>, usize)>, Problem> {
    if query.len() > LONGEST {
        let text = format!("the query is longer than {LONGEST} bytes");
        return Err(Problem { at: 0, text });
    }
    let mut tokens = Vec::new();
    let mut at = 0;
    // A colon is part of a word, but not there.
    let mut in_brackets = false;
    loop {
        at = skip_blank(query, at);
        let (token, length) =
            token(&query[at..], in_brackets).map_err(|text| Problem { at, text })?;
        match token {
            Token::Symbol("[") => in_brackets = true,
            Token::Symbol("]") => in_brackets = false,
            _ => {}
        }
        let is_end = token == Token::End;
        tokens.push((token, at));
        if is_end {
            return Ok(tokens);
        }
        at += length;
    }
}

/// Where the next token begins, behind spaces and comments.
fn skip_blank(query: &str, mut at: usize) -> usize {
    loop {
        let rest = query[at..].trim_ascii_start();
        at = query.len() - rest.len();
        if !rest.starts_with('#') {
            return at;
        }
        at += rest.find('\n').unwrap_or(rest.len());
    }
}

/// The token that a text begins with, and its length.
fn token(rest: &str, in_brackets: bool) -> Result<(Token<'_>, usize), String> {
    let is_in_word =
        |char: char| char.is_ascii_alphanumeric() || char == '_' || (char == ':' && !in_brackets);
    let is_digit = |char: Option<char>| char.is_some_and(|char| char.is_ascii_digit());
    let Some(first) = rest.chars().next() else {
        return Ok((Token::End, 0));
    };
    if matches!(first, '"' | '\'') {
        let length = text_length(rest).ok_or("unterminated quoted string")?;
        let plain = unescape(&rest[1..length - 1]);
        let plain = plain.ok_or("invalid escape sequence in a string")?;
        Ok((Token::Text(plain), length))
    } else if first == '`' {
        let end = rest[1..].find('`').ok_or("unterminated raw string")?;
        Ok((Token::Text(rest[1..=end].to_owned()), end + 2))
    } else if is_digit(Some(first)) || (first == '.' && is_digit(rest.chars().nth(1))) {
        let length = number_length(rest.as_bytes());
        Ok((number(&rest[..length])?, length))
    } else if is_in_word(first) {
        let length = rest.find(|char| !is_in_word(char)).unwrap_or(rest.len());
        Ok((Token::Word(&rest[..length]), length))
    } else {
        let symbol = SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol));
        let symbol = symbol.ok_or_else(|| format!("unexpected character: {first:?}"))?;
        Ok((Token::Symbol(symbol), symbol.len()))
    }
}

/// The length of a text with its quotes.
fn text_length(text: &str) -> Option<usize> {
    let mut chars = text.char_indices();
    let (_, quote) = chars.next()?;
    while let Some((place, char)) = chars.next() {
        match char {
            '\\' => drop(chars.next()),
            '\n' => return None,
            _ if char == quote => return Some(place + 1),
            _ => {}
        }
    }
    None
}

/// The length of what a digit begins: `0x1f`, `1e-5`, `5m`.
fn number_length(text: &[u8]) -> usize {
    let is_hexadecimal = text.starts_with(b"0x") || text.starts_with(b"0X");
    let mut last = 0;
    let is_part = |byte: &&u8| {
        let follows_e = !is_hexadecimal && matches!(last, b'e' | b'E');
        last = **byte;
        byte.is_ascii_alphanumeric()
            || matches!(**byte, b'.' | b'_')
            || (follows_e && matches!(**byte, b'+' | b'-'))
    };
    text.iter().take_while(is_part).count()
}

/// A number, with 0x of hexadecimal and with 0 of octal digits, or a duration.
fn number(text: &str) -> Result<Token<'static>, String> {
    let lower = text.to_ascii_lowercase();
    let is_octal = text.len() > 1 && text.bytes().all(|byte| matches!(byte, b'0'..=b'7'));
    let whole = if let Some(digits) = lower.strip_prefix("0x") {
        i64::from_str_radix(digits, 16).ok()
    } else if is_octal && text.starts_with('0') {
        i64::from_str_radix(text, 8).ok()
    } else {
        None
    };
    if let Some(number) = whole
        .map(|whole| whole as f64)
        .or_else(|| text.parse().ok())
    {
        return match number.is_infinite() {
            true => Err(format!(
                "error parsing number: \"{text}\": value out of range"
            )),
            false => Ok(Token::Number(number)),
        };
    }
    match duration(text) {
        Ok((length, millis)) if length == text.len() => Ok(Token::Duration(millis as Millis)),
        Err(problem) if problem == TOO_LONG => Err(problem.to_owned()),
        _ => Err(format!("bad number or duration syntax: {text}")),
    }
}

const TOO_LONG: &str = "duration out of range";

/// The length and the milliseconds of the duration that a text begins with: numbers with units, the longest first, as
/// in `1h30m`.
///
/// # Errors
///
/// It does not begin with a duration, or with one that is too long.
pub(crate) fn duration(text: &str) -> Result<(usize, u64), &'static str> {
    let mut units = &[
        ("y", 31_536_000_000),
        ("w", 604_800_000),
        ("d", 86_400_000),
        ("h", 3_600_000),
        ("m", 60_000),
        ("s", 1000),
        ("ms", 1),
    ][..];
    let mut rest = text;
    let mut total: u64 = 0;
    while rest.starts_with(|char: char| char.is_ascii_digit()) {
        let letters = rest.trim_start_matches(|char: char| char.is_ascii_digit());
        let number: u64 = rest[..rest.len() - letters.len()]
            .parse()
            .unwrap_or(u64::MAX);
        let end = letters.find(|char: char| !char.is_ascii_lowercase());
        let (unit, behind) = letters.split_at(end.unwrap_or(letters.len()));
        let place = units.iter().position(|(name, _)| *name == unit);
        let place = place.ok_or("missing unit in a duration, such as 5m")?;
        total = total.saturating_add(number.saturating_mul(units[place].1));
        units = &units[place + 1..];
        rest = behind;
    }
    match text.len() - rest.len() {
        _ if total > LONGEST_DURATION => Err(TOO_LONG),
        0 => Err("expected a duration such as 5m"),
        length => Ok((length, total)),
    }
}

/// What a string between quotes means; `None` if an escape in it is not understood.
pub(crate) fn unescape(text: &str) -> Option<String> {
    let mut plain = Vec::with_capacity(text.len());
    let mut push = |char: char| {
        plain.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
    };
    let mut rest = text;
    while let Some(place) = rest.find('\\') {
        rest[..place].chars().for_each(&mut push);
        rest = &rest[place + 1..];
        let letter = rest.chars().next()?;
        let mut length = letter.len_utf8();
        let number = |digits: &str, radix| u32::from_str_radix(digits, radix).ok();
        match letter {
            'a' => push('\x07'),
            'b' => push('\x08'),
            'f' => push('\x0c'),
            'n' => push('\n'),
            'r' => push('\r'),
            't' => push('\t'),
            'v' => push('\x0b'),
            '\\' | '"' | '\'' => push(letter),
            // Bytes above 127 would be parts of characters, which come as themselves.
            '0'..='7' => {
                length = 3;
                push(char::from_u32(number(rest.get(..3)?, 8)?).filter(char::is_ascii)?);
            }
            'x' => {
                length = 3;
                push(char::from_u32(number(rest.get(1..3)?, 16)?).filter(char::is_ascii)?);
            }
            'u' | 'U' => {
                length = if letter == 'u' { 5 } else { 9 };
                push(char::from_u32(number(rest.get(1..length)?, 16)?)?);
            }
            _ => return None,
        }
        rest = &rest[length..];
    }
    rest.chars().for_each(&mut push);
    String::from_utf8(plain).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_have_places() {
        let query = "a:b{c=`\\.\"x`} # d\n[1h:]";
        let found: Vec<String> = tokens(query)
            .unwrap()
            .iter()
            .map(|(token, at)| format!("{at} {token}"))
            .collect();
        let expected = [
            "0 \"a:b\"",
            "3 \"{\"",
            "4 \"c\"",
            "5 \"=\"",
            "6 string",
            "12 \"}\"",
            "18 \"[\"",
            "19 duration",
            "21 \":\"",
            "22 \"]\"",
            "23 end of input",
        ];
        assert_eq!(found, expected);
        assert_eq!(
            tokens(query).unwrap()[4].0,
            Token::Text(r#"\."x"#.to_owned())
        );
    }

    #[test]
    fn what_is_no_token_is_refused_at_its_place() {
        for (query, problem) in [
            ("\"a", "1:1: parse error: unterminated quoted string"),
            (
                "x +\n'a\nb'",
                "2:1: parse error: unterminated quoted string",
            ),
            ("`a", "1:1: parse error: unterminated raw string"),
            (
                "x + 1e400",
                "1:5: parse error: error parsing number: \"1e400\": value out of range",
            ),
            ("x offset 300y", "1:10: parse error: duration out of range"),
            ("é$", "1:1: parse error: unexpected character: 'é'"),
            (
                r#"x{a=~"\q"}"#,
                "1:6: parse error: invalid escape sequence in a string",
            ),
        ] {
            assert_eq!(
                tokens(query).unwrap_err().describe(query),
                problem,
                "{query}"
            );
        }
        assert!(tokens(&"x".repeat(LONGEST + 1)).is_err());
    }

    #[test]
    fn escapes_are_those_of_go() {
        for (text, plain) in [
            (r"a\\.\n", Some("a\\.\n")),
            (r"\x41\101\u00e9\U0001F600", Some("AAé😀")),
            (r"\xff", None),
            (r"\q", None),
            (r"\x4", None),
            ("\\", None),
            (r"\ué", None),
        ] {
            assert_eq!(unescape(text).as_deref(), plain, "{text}");
        }
    }
}
