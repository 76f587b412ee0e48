//! JSON (RFC 8259) that knows the place of everything, so that errors can point there.
//!
//! Integers are exact, the members of objects stay in their order and have different
//! names, nesting and the number of values are bounded, and the time it takes grows
//! with the text and no faster.

use std::borrow::Cow;
use std::ops::Range;

use kymo_text::diagnostic::Diagnostic;

use crate::deep::{MAX_LEVELS, has_room};

/// How many values may lie within each other for each field class that does: one takes up to three.
const LEVELS_OF_CLASS: usize = 4;

/// How many values a fragment may have: in memory they are larger than their text.
const MAX_VALUES: usize = 1 << 21;

/// How much of the text an error repeats, in characters.
const LONGEST_FOUND: usize = 40;

/// A place in the text, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) start: usize,
    pub(super) end: usize,
}

impl From<Span> for Range<usize> {
    fn from(span: Span) -> Self {
        span.start..span.end
    }
}

/// A value and its place.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Value<'t> {
    pub(super) kind: Kind<'t>,
    pub(super) span: Span,
    /// The value as it is written.
    pub(super) text: &'t str,
}

/// The kinds of values.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind<'t> {
    Null,
    Bool,
    /// A number without fraction and exponent.
    Integer(i128),
    /// Any other number.
    Number,
    Text(Cow<'t, str>),
    Array(Vec<Value<'t>>),
    Object(Vec<Member<'t>>),
}

/// A member of an object.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Member<'t> {
    pub(super) name: Cow<'t, str>,
    /// Place of the name.
    pub(super) span: Span,
    pub(super) value: Value<'t>,
}

/// Reads the value that begins in `range` of a text; also returns where the blanks after it end.
pub(super) fn parse(text: &str, range: Range<usize>) -> Result<(Value<'_>, usize), Diagnostic> {
    let mut parser = Parser {
        text: &text[..range.end],
        at: range.start,
        values: 0,
    };
    parser.blanks();
    let value = parser.value(0)?;
    parser.blanks();
    Ok((value, parser.at))
}

/// What may stand between values. Zero bytes are what a tracer has not written yet.
pub(super) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0)
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
    /// Values so far.
    values: usize,
}

impl<'t> Parser<'t> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Moves on if this byte is next.
    fn take(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    fn blanks(&mut self) {
        while self.peek().is_some_and(is_blank) {
            self.at += 1;
        }
    }

    fn span(&self, start: usize) -> Span {
        Span {
            start,
            end: self.at,
        }
    }

    /// That something else was expected here.
    fn expected<T>(&self, what: &str) -> Result<T, Diagnostic> {
        let found = match self.text[self.at..].chars().next() {
            Some(found) => format!("`{found}`"),
            None => "the end".to_owned(),
        };
        let end = self.text[self.at..]
            .chars()
            .next()
            .map_or(0, char::len_utf8);
        Err(Diagnostic::error(format!("expected {what}, found {found}"))
            .at(self.at..self.at + end, format!("expected {what}")))
    }

    /// The value that begins here, which is within `depth` others.
    fn value(&mut self, depth: usize) -> Result<Value<'t>, Diagnostic> {
        let start = self.at;
        self.values += 1;
        if self.values > MAX_VALUES {
            return Err(Diagnostic::error("more values than a fragment may have")
                .at(start..start + 1, "this one is too much"));
        }
        if !has_room(depth / LEVELS_OF_CLASS) {
            return Err(
                Diagnostic::error("values lie too deep within each other").at(
                    start..start + 1,
                    format!("expected at most {} levels", LEVELS_OF_CLASS * MAX_LEVELS),
                ),
            );
        }
        let kind = match self.peek() {
            Some(b'{') => self.object(depth)?,
            Some(b'[') => self.array(depth)?,
            Some(b'"') => Kind::Text(self.string()?),
            Some(b'-' | b'0'..=b'9') => self.number()?,
            _ => self.word()?,
        };
        Ok(Value {
            kind,
            span: self.span(start),
            text: &self.text[start..self.at],
        })
    }

    fn word(&mut self) -> Result<Kind<'t>, Diagnostic> {
        let rest = &self.text[self.at..];
        let (word, kind) = if rest.starts_with("null") {
            ("null", Kind::Null)
        } else if rest.starts_with("true") {
            ("true", Kind::Bool)
        } else if rest.starts_with("false") {
            ("false", Kind::Bool)
        } else {
            return self.expected("a JSON value");
        };
        self.at += word.len();
        Ok(kind)
    }

    fn object(&mut self, depth: usize) -> Result<Kind<'t>, Diagnostic> {
        self.at += 1;
        let mut members = Vec::new();
        self.blanks();
        if !self.take(b'}') {
            loop {
                self.blanks();
                if self.peek() != Some(b'"') {
                    return self.expected("the name of a property in quotes");
                }
                let start = self.at;
                let name = self.string()?;
                let span = self.span(start);
                self.blanks();
                if !self.take(b':') {
                    return self.expected("`:`");
                }
                self.blanks();
                let value = self.value(depth + 1)?;
                members.push(Member { name, span, value });
                self.blanks();
                if self.take(b'}') {
                    break;
                }
                if !self.take(b',') {
                    return self.expected("`,` or `}`");
                }
            }
        }
        different_names(&members)?;
        Ok(Kind::Object(members))
    }

    fn array(&mut self, depth: usize) -> Result<Kind<'t>, Diagnostic> {
        self.at += 1;
        let mut values = Vec::new();
        self.blanks();
        if !self.take(b']') {
            loop {
                self.blanks();
                values.push(self.value(depth + 1)?);
                self.blanks();
                if self.take(b']') {
                    break;
                }
                if !self.take(b',') {
                    return self.expected("`,` or `]`");
                }
            }
        }
        Ok(Kind::Array(values))
    }

    fn number(&mut self) -> Result<Kind<'t>, Diagnostic> {
        let start = self.at;
        self.take(b'-');
        // A number does not begin with a zero that changes nothing.
        if !self.take(b'0') {
            self.digits()?;
        }
        let mut is_integer = true;
        if self.take(b'.') {
            is_integer = false;
            self.digits()?;
        }
        if self.take(b'e') || self.take(b'E') {
            is_integer = false;
            let _ = self.take(b'+') || self.take(b'-');
            self.digits()?;
        }
        let number = self.text[start..self.at].parse();
        Ok(match number {
            Ok(number) if is_integer => Kind::Integer(number),
            _ => Kind::Number,
        })
    }

    fn digits(&mut self) -> Result<(), Diagnostic> {
        if !self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            return self.expected("a digit");
        }
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        Ok(())
    }

    /// A text in quotes, at the first of which the parser is.
    fn string(&mut self) -> Result<Cow<'t, str>, Diagnostic> {
        self.at += 1;
        let mut start = self.at;
        let mut unescaped = String::new();
        loop {
            match self.peek() {
                Some(b'"') => {
                    let rest = &self.text[start..self.at];
                    self.at += 1;
                    return Ok(if unescaped.is_empty() {
                        Cow::Borrowed(rest)
                    } else {
                        Cow::Owned(unescaped + rest)
                    });
                }
                Some(b'\\') => {
                    unescaped += &self.text[start..self.at];
                    unescaped.push(self.escape()?);
                    start = self.at;
                }
                None | Some(0..0x20) => return self.expected("`\"` at the end of the text"),
                Some(_) => self.at += 1,
            }
        }
    }

    fn escape(&mut self) -> Result<char, Diagnostic> {
        let start = self.at;
        self.at += 1;
        let plain = match self.peek() {
            Some(byte @ (b'"' | b'\\' | b'/')) => byte.into(),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                let first = self.code_unit()?;
                let is_first_half = (0xd800..0xdc00).contains(&first);
                let second = match is_first_half && self.text[self.at..].starts_with("\\u") {
                    true => {
                        self.at += 1;
                        Some(self.code_unit()?)
                    }
                    false => None,
                };
                let units = [Some(first), second].into_iter().flatten();
                let mut characters = char::decode_utf16(units);
                return match (characters.next(), characters.next()) {
                    (Some(Ok(character)), None) => Ok(character),
                    _ => Err(Diagnostic::error("half of a surrogate pair")
                        .at(self.span(start), "expected both halves of a character")),
                };
            }
            _ => return self.expected("an escape such as `\\n` or `\\u00e9`"),
        };
        self.at += 1;
        Ok(plain)
    }

    /// The four digits after `u`, at which the parser is.
    fn code_unit(&mut self) -> Result<u16, Diagnostic> {
        self.at += 1;
        let mut unit = 0;
        for _ in 0..4 {
            let digit = self.peek().and_then(|byte| char::from(byte).to_digit(16));
            let Some(digit) = digit else {
                return self.expected("four hexadecimal digits after `\\u`");
            };
            unit = unit << 4 | digit as u16;
            self.at += 1;
        }
        Ok(unit)
    }
}

fn different_names(members: &[Member<'_>]) -> Result<(), Diagnostic> {
    let mut order: Vec<_> = members.iter().collect();
    order.sort_by_key(|member| &*member.name);
    match order.windows(2).find(|pair| pair[0].name == pair[1].name) {
        Some(pair) => Err(
            Diagnostic::error(format!("`{}` is given twice", pair[1].name))
                .at(pair[1].span, "given again")
                .because(pair[0].span, "first given here"),
        ),
        None => Ok(()),
    }
}

impl<'t> Value<'t> {
    /// That something else was expected here.
    pub(super) fn expected<T>(&self, what: &str) -> Result<T, Diagnostic> {
        let cut = self.text.char_indices().nth(LONGEST_FOUND);
        let found = match (&self.kind, cut) {
            (Kind::Array(elements), Some(_)) => format!("an array of {}", elements.len()),
            (Kind::Object(_), Some(_)) => "an object".to_owned(),
            (_, Some((end, _))) => format!("`{}...`", &self.text[..end]),
            // A value of several lines is better seen in its place.
            (Kind::Array(_), None) if self.text.contains('\n') => "an array".to_owned(),
            (Kind::Object(_), None) if self.text.contains('\n') => "an object".to_owned(),
            (_, None) => format!("`{}`", self.text),
        };
        Err(Diagnostic::error(format!("expected {what}, found {found}"))
            .at(self.span, format!("expected {what}")))
    }

    /// An integer without sign.
    pub(super) fn unsigned(&self) -> Result<u64, Diagnostic> {
        match self.kind {
            Kind::Integer(number) if u64::try_from(number).is_ok() => Ok(number as u64),
            _ => self.expected("an unsigned integer of 64 bits"),
        }
    }

    /// An integer with or without sign.
    pub(super) fn signed(&self) -> Result<i64, Diagnostic> {
        match self.kind {
            Kind::Integer(number) if i64::try_from(number).is_ok() => Ok(number as i64),
            _ => self.expected("a signed integer of 64 bits"),
        }
    }

    /// Any integer that has a place in a field.
    pub(super) fn integer(&self) -> Result<i128, Diagnostic> {
        match self.kind {
            Kind::Integer(number) if i64::MIN as i128 <= number && number <= u64::MAX as i128 => {
                Ok(number)
            }
            _ => self.expected("an integer of 64 bits"),
        }
    }

    /// Text.
    pub(super) fn text(&self) -> Result<&str, Diagnostic> {
        match &self.kind {
            Kind::Text(text) => Ok(text),
            _ => self.expected("text in quotes"),
        }
    }

    /// Text that is to be kept.
    pub(super) fn string(&self) -> Result<String, Diagnostic> {
        self.text().map(str::to_owned)
    }

    /// The elements of an array; `what` says what it is one of.
    pub(super) fn array(&self, what: &str) -> Result<&[Value<'t>], Diagnostic> {
        match &self.kind {
            Kind::Array(values) => Ok(values),
            _ => self.expected(what),
        }
    }

    /// The members of an object; `what` says what it is.
    pub(super) fn object(&self, what: &str) -> Result<&[Member<'t>], Diagnostic> {
        match &self.kind {
            Kind::Object(members) => Ok(members),
            _ => self.expected(what),
        }
    }

    /// What a word stands for.
    pub(super) fn one_of<T: Copy>(&self, words: &[(&str, T)]) -> Result<T, Diagnostic> {
        let found = match &self.kind {
            Kind::Text(text) => words.iter().find(|(word, _)| word == text),
            _ => None,
        };
        match found {
            Some((_, meaning)) => Ok(*meaning),
            None => self.expected(&alternatives(words.iter().map(|(word, _)| *word))),
        }
    }
}

/// `"a"`, `"b"` or `"c"`
pub(super) fn alternatives<'w>(words: impl Iterator<Item = &'w str>) -> String {
    let quoted: Vec<_> = words.map(|word| format!("`\"{word}\"`")).collect();
    match &*quoted {
        [] => "nothing".to_owned(),
        [word] => word.clone(),
        [words @ .., last] => format!("{} or {last}", words.join(", ")),
    }
}
