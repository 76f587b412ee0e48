//! JSON as it comes: nothing is built. Values are asked for, or [written](Writer), one after the other.
//!
//! ```
//! use kymo_text::json::Reader;
//!
//! let mut reader = Reader::new(br#"{"name": "x", "list": [1, 2]}"#);
//! let mut list = None;
//! reader
//!     .object(|reader, name| {
//!         match name {
//!             b"list" => list = Some(reader.raw()?.text),
//!             _ => drop(reader.raw()?),
//!         }
//!         Ok(())
//!     })
//!     .unwrap();
//! assert_eq!(list, Some(&b"[1, 2]"[..]));
//! ```

mod writer;

use std::borrow::Cow;

pub use writer::{Value, Writer};

/// How deep arrays and objects may lie within each other.
const MOST_DEPTH: usize = 1 << 16;

/// JSON in which the characters of strings that `is_unsafe` holds for are escaped as `\uNNNN`. It must not hold for any
/// that stand outside of strings.
///
/// ```
/// use kymo_text::json::escape;
///
/// assert_eq!(escape("[\"</script>\"]", |char| char == '<'), "[\"\\u003c/script>\"]");
/// ```
pub fn escape(json: &str, is_unsafe: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !json.contains(&is_unsafe) {
        return Cow::Borrowed(json);
    }
    let mut safe = String::with_capacity(json.len() + 16);
    for char in json.chars() {
        match is_unsafe(char) {
            true => {
                for unit in char.encode_utf16(&mut [0; 2]) {
                    safe += &format!("\\u{unit:04x}");
                }
            }
            false => safe.push(char),
        }
    }
    Cow::Owned(safe)
}

/// What is wrong, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// Byte of the text.
    pub at: usize,
    /// What would have been right.
    pub expected: &'static str,
}

/// The text of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Raw<'a> {
    /// From its first to its last byte.
    pub text: &'a [u8],
    /// How many arrays and objects lie within each other there.
    pub depth: usize,
}

/// A text, as far as it is not read.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    text: &'a [u8],
    at: usize,
    /// Whether half of a pair of `\u` without the other one is wrong.
    refuses_halves: bool,
    /// What is kept of a string with escapes, in bytes.
    most_kept: usize,
}

impl<'a> Reader<'a> {
    /// Reads a text.
    pub fn new(text: &'a [u8]) -> Self {
        Self {
            text,
            at: 0,
            refuses_halves: false,
            most_kept: usize::MAX,
        }
    }

    /// Cuts strings with escapes behind this many bytes, since they take memory.
    #[must_use]
    pub fn with_most_kept(self, most_kept: usize) -> Self {
        Self { most_kept, ..self }
    }

    /// Reads a text in which half of a pair of `\u` without the other one is wrong.
    pub fn strict(text: &'a [u8]) -> Self {
        Self {
            refuses_halves: true,
            ..Self::new(text)
        }
    }

    /// Where the next byte is.
    pub fn position(&self) -> usize {
        self.at
    }

    /// Goes to another place.
    pub fn seek(&mut self, at: usize) {
        self.at = at.min(self.text.len());
    }

    /// That something else was expected here.
    pub fn wrong<T>(&self, expected: &'static str) -> Result<T, Wrong> {
        let at = self.at;
        Err(Wrong { at, expected })
    }

    fn rest(&self) -> &'a [u8] {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// The next byte that is not a blank; `None` at the end.
    #[inline]
    pub fn peek(&mut self) -> Option<u8> {
        loop {
            let byte = self.text.get(self.at).copied()?;
            if !matches!(byte, b' ' | b'\t' | b'\r' | b'\n') {
                return Some(byte);
            }
            self.at += 1;
        }
    }

    /// Takes a byte if it is the next one.
    #[inline]
    pub fn take(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    fn expect(&mut self, byte: u8, expected: &'static str) -> Result<(), Wrong> {
        match self.take(byte) {
            true => Ok(()),
            false => self.wrong(expected),
        }
    }

    /// An object: `value` reads the value of each member.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong.
    pub fn object(
        &mut self,
        mut value: impl FnMut(&mut Self, &[u8]) -> Result<(), Wrong>,
    ) -> Result<(), Wrong> {
        self.expect(b'{', "`{`")?;
        if self.take(b'}') {
            return Ok(());
        }
        loop {
            let name = self.string()?;
            self.expect(b':', "`:`")?;
            value(self, &name)?;
            if !self.take(b',') {
                return self.expect(b'}', "`,` or `}`");
            }
        }
    }

    /// An array: `value` reads each element.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong.
    pub fn array(
        &mut self,
        mut value: impl FnMut(&mut Self) -> Result<(), Wrong>,
    ) -> Result<(), Wrong> {
        self.expect(b'[', "`[`")?;
        if self.take(b']') {
            return Ok(());
        }
        loop {
            value(self)?;
            if !self.take(b',') {
                return self.expect(b']', "`,` or `]`");
            }
        }
    }

    /// Nothing but blanks follows.
    ///
    /// # Errors
    ///
    /// When something follows; `expected` says what should have been here.
    pub fn end(&mut self, expected: &'static str) -> Result<(), Wrong> {
        match self.peek() {
            None => Ok(()),
            Some(_) => self.wrong(expected),
        }
    }

    /// A string as bytes: `\udcNN` is a byte that is not part of a character, another half of a pair without the
    /// other one U+FFFD, unless the reader is [strict](Self::strict).
    ///
    /// # Errors
    ///
    /// The first thing that is wrong.
    pub fn string(&mut self) -> Result<Cow<'a, [u8]>, Wrong> {
        self.expect(b'"', "a string")?;
        let mut made: Option<Vec<u8>> = None;
        loop {
            let rest = self.rest();
            let Some(len) = memchr::memchr2(b'"', b'\\', rest) else {
                self.at = self.text.len();
                return self.wrong("`\"`");
            };
            let plain = &rest[..len];
            self.at += len + 1;
            if rest[len] == b'"' {
                return Ok(match made {
                    None => Cow::Borrowed(plain),
                    Some(mut text) => {
                        text.extend_from_slice(self.kept(plain, &text));
                        Cow::Owned(text)
                    }
                });
            }
            let text = made.get_or_insert_default();
            text.extend_from_slice(self.kept(plain, text));
            self.escape(text)?;
            text.truncate(self.most_kept);
        }
    }

    /// What is kept of the next part of a string.
    fn kept<'t>(&self, part: &'t [u8], before: &[u8]) -> &'t [u8] {
        &part[..part.len().min(self.most_kept.saturating_sub(before.len()))]
    }

    /// What stands behind a backslash.
    fn escape(&mut self, text: &mut Vec<u8>) -> Result<(), Wrong> {
        let Some(&letter) = self.rest().first() else {
            return self.wrong("an escape of JSON");
        };
        let byte = match letter {
            b'"' | b'\\' | b'/' => letter,
            b'b' => 8,
            b'f' => 0xc,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'u' => {
                self.at += 1;
                return self.unicode(text);
            }
            _ => return self.wrong("an escape of JSON"),
        };
        self.at += 1;
        text.push(byte);
        Ok(())
    }

    fn unicode(&mut self, text: &mut Vec<u8>) -> Result<(), Wrong> {
        let Some(unit) = self.unit() else {
            return self.wrong("four hexadecimal digits");
        };
        let number = match unit {
            0xdc80..=0xdcff => {
                text.push(unit as u8);
                return Ok(());
            }
            0xd800..=0xdbff => {
                let at = self.at;
                let is_pair = self.rest().starts_with(b"\\u");
                self.at += if is_pair { 2 } else { 0 };
                let low = is_pair.then(|| self.unit()).flatten();
                match low.filter(|low| (0xdc00..=0xdfff).contains(low)) {
                    Some(low) => 0x1_0000 + ((unit - 0xd800) << 10) + (low - 0xdc00),
                    None => {
                        self.at = at;
                        unit
                    }
                }
            }
            _ => unit,
        };
        let character = char::from_u32(number);
        if self.refuses_halves && character.is_none() {
            return self.wrong("the other half of a pair");
        }
        let character = character.unwrap_or(char::REPLACEMENT_CHARACTER);
        text.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        Ok(())
    }

    /// The four digits of a `\u`.
    fn unit(&mut self) -> Option<u32> {
        let digits = self.rest().first_chunk::<4>()?;
        let digit = |unit: u32, &byte: &u8| Some(unit << 4 | char::from(byte).to_digit(16)?);
        let unit = digits.iter().try_fold(0, digit)?;
        self.at += 4;
        Some(unit)
    }

    /// A number, `true`, `false`, `null`, or what is written for numbers that are not finite.
    ///
    /// # Errors
    ///
    /// When something else is here.
    pub fn word(&mut self) -> Result<&'a [u8], Wrong> {
        self.peek();
        let rest = self.rest();
        let part = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
        let len = rest.iter().take_while(part).count();
        let word = &rest[..len];
        let is_number = || str::from_utf8(word).is_ok_and(|word| word.parse::<f64>().is_ok());
        if !matches!(word, b"true" | b"false" | b"null") && !is_number() {
            return self.wrong("a value");
        }
        self.at += len;
        Ok(word)
    }

    /// Any value, as it is written.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong; also where arrays and objects lie too deep.
    pub fn raw(&mut self) -> Result<Raw<'a>, Wrong> {
        self.peek();
        let begin = self.at;
        // The brackets that end what is open.
        let mut open: Vec<u8> = Vec::new();
        let mut depth = 0;
        loop {
            match self.peek() {
                Some(bracket @ (b'{' | b'[')) => {
                    if open.len() >= MOST_DEPTH {
                        return self.wrong("values within fewer others");
                    }
                    let end = if bracket == b'{' { b'}' } else { b']' };
                    self.at += 1;
                    open.push(end);
                    depth = depth.max(open.len());
                    if !self.take(end) {
                        self.name(end)?;
                        continue;
                    }
                    open.pop();
                }
                Some(b'"') => self.skip_string()?,
                _ => drop(self.word()?),
            }
            // A value has ended: what it is in may end, too, or go on.
            loop {
                let Some(&end) = open.last() else {
                    let text = &self.text[begin..self.at];
                    return Ok(Raw { text, depth });
                };
                if self.take(b',') {
                    self.name(end)?;
                    break;
                }
                self.expect(end, "`,` or a bracket")?;
                open.pop();
            }
        }
    }

    /// The name of a member, if what ends with `end` is an object.
    fn name(&mut self, end: u8) -> Result<(), Wrong> {
        if end == b'}' {
            self.peek();
            self.skip_string()?;
            self.expect(b':', "`:`")?;
        }
        Ok(())
    }

    fn skip_string(&mut self) -> Result<(), Wrong> {
        // Only escapes cost something, and these have to be right.
        self.string().map(drop)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Line;

    fn string(json: &str) -> Result<Vec<u8>, usize> {
        let text = Reader::new(json.as_bytes()).string();
        text.map(Cow::into_owned).map_err(|wrong| wrong.at)
    }

    #[test]
    fn escapes() {
        let escaped = string(r#" "a\"\\\/\b\f\n\r\t" "#).unwrap();
        assert_eq!(escaped, b"a\"\\/\x08\x0c\n\r\t");
        let pair = "\u{e9}\u{1f600}".as_bytes();
        assert_eq!(string(r#""\u00e9\ud83d\ude00""#).unwrap(), pair);
        assert_eq!(string(r#""\udcff\u0000""#).unwrap(), b"\xff\0");
        assert_eq!(string(r#""\ud83d\n""#).unwrap(), "\u{fffd}\n".as_bytes());
        for half in [&br#""\ud83d\n""#[..], br#""\udc7f""#] {
            assert_eq!(Reader::strict(half).string().unwrap_err().at, 7);
        }
        for (json, at) in [
            (r#""a"#, 2),
            (r#""\x""#, 2),
            (r#""\u12"#, 3),
            ("5", 0),
            (r#""\"#, 2),
        ] {
            assert_eq!(string(json), Err(at), "{json}");
        }
    }

    #[test]
    fn values_as_they_are_written() {
        let raw = |json: &str| {
            let mut reader = Reader::new(json.as_bytes());
            let raw = reader.raw().map_err(|wrong| wrong.at)?;
            Ok((
                str::from_utf8(raw.text).unwrap().to_string(),
                raw.depth,
                reader.position(),
            ))
        };
        for (json, depth) in [
            ("[]", 1),
            ("{}", 1),
            ("-1.5e3", 0),
            ("null", 0),
            ("NaN", 0),
            (r#"{"a":[1,-2.5e-3,null,{}],"b":{"c":"]\"","d":[]}}"#, 3),
        ] {
            assert_eq!(raw(json), Ok((json.to_string(), depth, json.len())));
            let padded = format!(" {json} ,");
            assert_eq!(raw(&padded), Ok((json.to_string(), depth, json.len() + 1)));
        }
        for (json, at) in [
            ("[1 2]", 3),
            ("[1,]", 3),
            ("[1}", 2),
            ("{\"a\"}", 4),
            ("{1:2}", 1),
            ("maybe", 0),
            ("", 0),
            ("[", 1),
            ("\"a", 2),
        ] {
            assert_eq!(raw(json), Err(at), "{json}");
        }
        let deep = "[".repeat(100_000);
        assert_eq!(raw(&deep), Err(MOST_DEPTH));
        let deep = "[".repeat(10_000) + &"]".repeat(10_000);
        assert_eq!(raw(&deep), Ok((deep.clone(), 10_000, deep.len())));
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(bytes: Vec<u8>) {
            let mut line = Line::new();
            line.json_string(&bytes);
            let json = str::from_utf8(line.as_bytes()).unwrap();
            prop_assert_eq!(string(json).unwrap(), bytes);
        }

        #[test]
        fn what_is_accepted_is_json(text in r#"[\[\]{},:"a1\\ ]{0,12}"#) {
            let mut reader = Reader::new(text.as_bytes());
            if let Ok(raw) = reader.raw() {
                // Names that come twice are as good as others.
                let value = serde_json::from_slice::<serde_json::Value>(raw.text);
                let is_word = raw.depth == 0 && !raw.text.starts_with(b"\"");
                prop_assert!(value.is_ok() || is_word || text.contains(['1', '\\']), "{}", text);
            }
        }
    }
}
