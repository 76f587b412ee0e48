//! The tokens of PromQL.

use std::fmt;

use crate::ast::Millis;
use crate::guard::{duration, unescape};

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

/// Cuts a query into tokens, the last of which is [`Token::End`].
///
/// # Errors
///
/// What is no token.
pub(crate) fn tokens(text: &str) -> Result<Vec<Token<'_>>, String> {
    let mut tokens = Vec::new();
    let mut rest = text;
    // A colon is part of a word, but not there.
    let mut in_brackets = false;
    loop {
        rest = rest.trim_ascii_start();
        let Some(first) = rest.chars().next() else {
            tokens.push(Token::End);
            return Ok(tokens);
        };
        let is_in_word = |char: char| {
            char.is_ascii_alphanumeric() || char == '_' || (char == ':' && !in_brackets)
        };
        let is_digit = |char: Option<char>| char.is_some_and(|char| char.is_ascii_digit());
        let length = if matches!(first, '"' | '\'') {
            let length = text_length(rest).ok_or("unterminated quoted string")?;
            let plain = unescape(&rest[1..length - 1]);
            tokens.push(Token::Text(
                plain.ok_or("invalid escape sequence in a string")?,
            ));
            length
        } else if is_digit(Some(first)) || (first == '.' && is_digit(rest.chars().nth(1))) {
            let length = number_length(rest.as_bytes());
            tokens.push(number(&rest[..length])?);
            length
        } else if is_in_word(first) {
            let length = rest.find(|char| !is_in_word(char)).unwrap_or(rest.len());
            let word = &rest[..length];
            tokens.push(Token::Word(word));
            length
        } else {
            let symbol = SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol));
            let symbol = symbol.ok_or_else(|| format!("unexpected character: {first:?}"))?;
            match *symbol {
                "[" => in_brackets = true,
                "]" => in_brackets = false,
                _ => {}
            }
            tokens.push(Token::Symbol(symbol));
            symbol.len()
        };
        rest = &rest[length..];
    }
}

/// The length of a text with its quotes.
fn text_length(text: &str) -> Option<usize> {
    let mut chars = text.char_indices();
    let (_, quote) = chars.next()?;
    while let Some((place, char)) = chars.next() {
        match char {
            '\\' => drop(chars.next()),
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
        return Ok(Token::Number(number));
    }
    match duration(text) {
        Ok((length, millis)) if length == text.len() => Ok(Token::Duration(millis as Millis)),
        _ => Err(format!("bad number or duration syntax: {text}")),
    }
}
