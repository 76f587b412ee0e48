//! Reads JSON as it comes.

use std::borrow::Cow;

/// How deep values that nobody asks for may lie within each other.
const MOST_DEPTH: u32 = 64;

/// What is wrong, and where in the line, counted from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wrong {
    pub(super) at: usize,
    pub(super) message: String,
}

/// The text of a line, as far as it is not read.
pub(super) struct Reader<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(text: &'a [u8]) -> Self {
        Self { text, at: 0 }
    }

    /// That something else was expected here.
    pub(super) fn expected(&self, what: &str) -> Wrong {
        Wrong {
            at: self.at,
            message: format!("expected {what}"),
        }
    }

    /// The next byte that is no blank.
    fn peek(&mut self) -> Option<u8> {
        let rest = &self.text[self.at..];
        let blank = |byte: &&u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
        self.at += rest.iter().take_while(blank).count();
        self.text.get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    fn expect(&mut self, byte: u8) -> Result<(), Wrong> {
        match self.take(byte) {
            true => Ok(()),
            false => Err(self.expected(&format!("`{}`", char::from(byte)))),
        }
    }

    /// Nothing follows.
    pub(super) fn end(&mut self) -> Result<(), Wrong> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.expected("the end of the line")),
        }
    }

    /// An object: `value` reads the value of each member.
    pub(super) fn object(
        &mut self,
        mut value: impl FnMut(&mut Self, &[u8]) -> Result<(), Wrong>,
    ) -> Result<(), Wrong> {
        self.expect(b'{')?;
        if self.take(b'}') {
            return Ok(());
        }
        loop {
            let name = self.text()?;
            self.expect(b':')?;
            value(self, &name)?;
            if !self.take(b',') {
                return self.expect(b'}');
            }
        }
    }

    /// An array: `value` reads each element.
    pub(super) fn array(
        &mut self,
        mut value: impl FnMut(&mut Self) -> Result<(), Wrong>,
    ) -> Result<(), Wrong> {
        self.expect(b'[')?;
        if self.take(b']') {
            return Ok(());
        }
        loop {
            value(self)?;
            if !self.take(b',') {
                return self.expect(b']');
            }
        }
    }

    /// A number of 64 bits without a sign.
    pub(super) fn number(&mut self) -> Result<u64, Wrong> {
        self.peek();
        let rest = &self.text[self.at..];
        let len = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let fraction = matches!(rest.get(len), Some(b'.' | b'e' | b'E'));
        let digits = std::str::from_utf8(&rest[..len]).ok();
        let number = digits.and_then(|digits| digits.parse().ok());
        match number {
            Some(number) if !fraction => {
                self.at += len;
                Ok(number)
            }
            _ => Err(self.expected("a whole number from 0 to 18446744073709551615")),
        }
    }

    /// A number of 32 bits without a sign.
    pub(super) fn word(&mut self) -> Result<u32, Wrong> {
        let begin = self.at;
        let number = self.number()?;
        u32::try_from(number).map_err(|_| {
            self.at = begin;
            self.expected("a whole number from 0 to 4294967295")
        })
    }

    /// A string as bytes: `\udcNN` is a byte that is no part of a character.
    pub(super) fn text(&mut self) -> Result<Cow<'a, [u8]>, Wrong> {
        self.expect(b'"')?;
        let mut made: Option<Vec<u8>> = None;
        loop {
            let rest = &self.text[self.at..];
            let Some(len) = memchr::memchr2(b'"', b'\\', rest) else {
                self.at = self.text.len();
                return Err(self.expected("`\"`"));
            };
            let (plain, is_end) = (&rest[..len], rest[len] == b'"');
            self.at += len;
            if is_end {
                self.at += 1;
                return Ok(match made {
                    None => Cow::Borrowed(plain),
                    Some(mut text) => {
                        text.extend(plain);
                        Cow::Owned(text)
                    }
                });
            }
            let text = made.get_or_insert_default();
            text.extend(plain);
            self.escape(text)?;
        }
    }

    /// What stands after a backslash, which is here.
    fn escape(&mut self, text: &mut Vec<u8>) -> Result<(), Wrong> {
        let at = self.at;
        let wrong = || Wrong {
            at,
            message: "expected an escape of JSON".into(),
        };
        let letter = self.text.get(self.at + 1).ok_or_else(wrong)?;
        self.at += 2;
        text.push(match letter {
            b'"' | b'\\' | b'/' => *letter,
            b'b' => 8,
            b'f' => 0xc,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'u' => {
                let unit = self.unit().ok_or_else(wrong)?;
                let number = match unit {
                    // A byte of text that is not UTF-8.
                    0xdc80..=0xdcff => {
                        text.push(unit as u8);
                        return Ok(());
                    }
                    0xd800..=0xdbff => {
                        let low = self.low().ok_or_else(wrong)?;
                        0x1_0000 + ((unit - 0xd800) << 10) + (low - 0xdc00)
                    }
                    _ => unit,
                };
                let character = char::from_u32(number).ok_or_else(wrong)?;
                text.extend(character.encode_utf8(&mut [0; 4]).bytes());
                return Ok(());
            }
            _ => return Err(wrong()),
        });
        Ok(())
    }

    /// The four digits of a `\u`.
    fn unit(&mut self) -> Option<u32> {
        let digits = self.text.get(self.at..self.at + 4)?;
        let digit = |unit: u32, &byte: &u8| Some(unit << 4 | char::from(byte).to_digit(16)?);
        let unit = digits.iter().try_fold(0, digit)?;
        self.at += 4;
        Some(unit)
    }

    /// The second half of a pair.
    fn low(&mut self) -> Option<u32> {
        self.text[self.at..].strip_prefix(b"\\u")?;
        self.at += 2;
        self.unit().filter(|unit| (0xdc00..=0xdfff).contains(unit))
    }

    /// Bytes, as a string of hexadecimal digits.
    pub(super) fn bytes(&mut self) -> Result<Vec<u8>, Wrong> {
        let wrong = self.expected("pairs of hexadecimal digits");
        let digits = self.text()?;
        let (pairs, rest) = digits.as_chunks::<2>();
        let digit = |byte: u8| char::from(byte).to_digit(16);
        let pair = |&[high, low]: &[u8; 2]| Some((digit(high)? << 4 | digit(low)?) as u8);
        let bytes: Option<Vec<u8>> = pairs.iter().map(pair).collect();
        bytes.filter(|_| rest.is_empty()).ok_or(wrong)
    }

    /// Any value, which nobody asks for.
    pub(super) fn skip(&mut self) -> Result<(), Wrong> {
        self.skip_within(0)
    }

    fn skip_within(&mut self, depth: u32) -> Result<(), Wrong> {
        if depth > MOST_DEPTH {
            return Err(self.expected("values within fewer others"));
        }
        match self.peek() {
            Some(b'{') => self.object(|reader, _| reader.skip_within(depth + 1)),
            Some(b'[') => self.array(|reader| reader.skip_within(depth + 1)),
            Some(b'"') => self.text().map(drop),
            _ => {
                let rest = &self.text[self.at..];
                let part = |byte: &&u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
                let len = rest.iter().take_while(part).count();
                if len == 0 {
                    return Err(self.expected("a value"));
                }
                self.at += len;
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use kymo_text::Line;
    use proptest::prelude::*;

    use super::*;

    fn text(json: &str) -> Result<Vec<u8>, usize> {
        let text = Reader::new(json.as_bytes()).text();
        text.map(Cow::into_owned).map_err(|wrong| wrong.at)
    }

    #[test]
    fn escapes() {
        assert_eq!(
            text(r#" "a\"\\\/\b\f\n\r\t" "#).unwrap(),
            b"a\"\\/\x08\x0c\n\r\t"
        );
        let pair = "\u{e9}\u{1f600}".as_bytes();
        assert_eq!(text(r#""\u00e9\ud83d\ude00""#).unwrap(), pair);
        assert_eq!(text(r#""\udcff\u0000""#).unwrap(), b"\xff\0");
        for (json, at) in [
            (r#""a"#, 2),
            (r#""\x""#, 1),
            (r#""\ud83d""#, 1),
            (r#""\udc7f""#, 1),
            (r#""\u12"#, 1),
            ("5", 0),
        ] {
            assert_eq!(text(json), Err(at), "{json}");
        }
    }

    #[test]
    fn numbers() {
        let number = |json: &str| Reader::new(json.as_bytes()).number().ok();
        assert_eq!(number(" 18446744073709551615,"), Some(u64::MAX));
        for json in ["-1", "1.5", "1e3", "18446744073709551616", "", "null"] {
            assert_eq!(number(json), None, "{json}");
        }
        assert!(Reader::new(b"4294967296").word().is_err());
    }

    #[test]
    fn what_nobody_asks_for_is_skipped() {
        let skip = |json: &str| {
            let mut reader = Reader::new(json.as_bytes());
            reader.skip().and_then(|()| reader.end())
        };
        assert_eq!(
            skip(r#"{"a":[1,-2.5e-3,null,{}],"b":{"c":"]","d":[]}}"#),
            Ok(())
        );
        assert!(skip(&"[".repeat(100_000)).is_err());
        assert!(skip("[1 2]").is_err());
        assert!(skip("[1]]").is_err());
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(bytes: Vec<u8>) {
            let mut line = Line::new();
            line.json_string(&bytes);
            let json = std::str::from_utf8(line.as_bytes()).unwrap();
            prop_assert_eq!(text(json).unwrap(), bytes);
        }
    }
}
