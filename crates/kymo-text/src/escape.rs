//! Text with what cannot stand for itself replaced.

use std::borrow::Cow;

use crate::Line;

/// Whether a character is obeyed or hidden instead of shown, which can make a name look like another one: a control
/// character, an end of a line or paragraph, one that sets the direction of text, one without width, or a tag.
pub fn is_invisible(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{ad}'
                | '\u{61c}'
                | '\u{180e}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

/// A name, or a text that holds names, for a terminal: [invisible characters](is_invisible), which could move its
/// cursor, change its colours or exchange letters, become `\x` and two digits (of the character's number), or
/// `\u{...}`.
///
/// ```
/// # use kymo_text::visible;
/// assert_eq!(visible("caf\u{e9}"), "caf\u{e9}");
/// assert_eq!(visible("a\x1b[2J\nb\u{9b}"), r"a\x1b[2J\x0ab\x9b");
/// assert_eq!(visible("a\u{202e}lru.ogla"), r"a\u{202e}lru.ogla");
/// ```
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.contains(is_invisible) {
        return Cow::Borrowed(text);
    }
    let mut result = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match (is_invisible(c), u32::from(c)) {
            (false, _) => result.push(c),
            (true, number @ 0..=0xff) => result += &format!("\\x{number:02x}"),
            (true, number) => result += &format!("\\u{{{number:x}}}"),
        }
    }
    Cow::Owned(result)
}

/// A text as content, or as the value of an attribute, of HTML and XML. What neither can hold, and
/// [invisible characters](is_invisible) other than the end of a line, become U+FFFD.
///
/// ```
/// # use kymo_text::markup;
/// assert_eq!(markup("a < 'b' & \"c\""), "a &lt; &#39;b&#39; &amp; &quot;c&quot;");
/// assert_eq!(markup("a\nb\x1b\u{202e}\u{ffff}"), "a\nb\u{fffd}\u{fffd}\u{fffd}");
/// ```
pub fn markup(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' => out.push('\n'),
            c if is_invisible(c) || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// A byte in each of eight.
const fn each(byte: u8) -> u64 {
    byte as u64 * 0x0101_0101_0101_0101
}

/// Sets the highest bit of each byte that is less than `limit` (at most 128); where
/// such a byte comes first, bytes above it may be set wrongly, so only whether there is
/// one is certain.
const fn less(word: u64, limit: u8) -> u64 {
    word.wrapping_sub(each(limit)) & !word & each(0x80)
}

const fn equal(word: u64, byte: u8) -> u64 {
    less(word ^ each(byte), 1)
}

/// Length of the longest beginning, in steps of eight bytes, without anything for which
/// `special` says so of a word, and then byte by byte of a byte.
#[inline]
fn plain(text: &[u8], word: impl Fn(u64) -> bool, byte: impl Fn(u8) -> bool) -> usize {
    let (chunks, _) = text.as_chunks::<8>();
    let clean = chunks
        .iter()
        .take_while(|&&chunk| !word(u64::from_le_bytes(chunk)))
        .count()
        * 8;
    // The rest of a text without anything special: its last eight bytes are checked, or for a
    // shorter one its first four and its last four.
    let last = match (
        text.last_chunk::<8>(),
        text.first_chunk::<4>(),
        text.last_chunk::<4>(),
    ) {
        (Some(last), _, _) => Some(u64::from_le_bytes(*last)),
        (None, Some(first), Some(last)) => {
            let (first, last) = (u32::from_le_bytes(*first), u32::from_le_bytes(*last));
            Some(u64::from(last) << 32 | u64::from(first))
        }
        _ => None,
    };
    if clean == chunks.len() * 8 && last.is_some_and(|last| !word(last)) {
        return text.len();
    }
    clean + text[clean..].iter().take_while(|&&b| !byte(b)).count()
}

/// Length of the beginning that a C string literal holds as it is.
#[inline]
fn plain_c(text: &[u8]) -> usize {
    plain(
        text,
        |w| {
            less(w, 0x20)
                | equal(w, 0x7f)
                | equal(w, b'\\')
                | equal(w, b'\'')
                | equal(w, b'"')
                | equal(w, b'?')
                != 0
        },
        |b| b < 0x20 || matches!(b, 0x7f | b'\\' | b'\'' | b'"' | b'?'),
    )
}

impl Line {
    /// Appends text between quotation marks, with escapes as in a C string literal:
    /// `\\`, `\'`, `\"` and `\?`, `\n` and its like, `\e`, and other control characters
    /// as `\x` and two digits. Bytes from 128 on stay as they are.
    #[inline]
    pub fn c_string(&mut self, text: &[u8]) {
        let clean = plain_c(text);
        if clean == text.len() && (8..=32).contains(&clean) {
            return self.compose(|room| {
                room.text(b"\"");
                room.short_text(text);
                room.text(b"\"");
            });
        }
        self.push_byte(b'"');
        let (mut rest, mut clean) = (text, clean);
        loop {
            self.push(&rest[..clean]);
            let Some(&byte) = rest.get(clean) else { break };
            self.c_escape(byte);
            rest = &rest[clean + 1..];
            clean = plain_c(rest);
        }
        self.push_byte(b'"');
    }

    #[cold]
    fn c_escape(&mut self, byte: u8) {
        let letter = match byte {
            b'\\' | b'\'' | b'"' | b'?' => byte,
            0 => b'0',
            7 => b'a',
            8 => b'b',
            0x1b => b'e',
            0xc => b'f',
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            0xb => b'v',
            _ => {
                self.push(b"\\x");
                return self.hex_byte(byte);
            }
        };
        self.push(&[b'\\', letter]);
    }

    /// Appends text as a JSON string. Of text that is not UTF-8, each byte NN that is no
    /// part of a character becomes `\udcNN`: a lone low surrogate, which no correct text
    /// has, so nothing is lost (Python reads it back with `surrogateescape`).
    #[inline]
    pub fn json_string(&mut self, text: &[u8]) {
        self.push_byte(b'"');
        self.json_text(text);
        self.push_byte(b'"');
    }

    /// Appends what is between the quotes of a [JSON string](Self::json_string). Parts of a text can
    /// follow each other where none begins within a character.
    #[inline]
    pub fn json_text(&mut self, text: &[u8]) {
        let clean = plain(
            text,
            |w| less(w, 0x20) | equal(w, b'"') | equal(w, b'\\') | (w & each(0x80)) != 0,
            |b| !(0x20..0x80).contains(&b) || matches!(b, b'"' | b'\\'),
        );
        self.push(&text[..clean]);
        if clean < text.len() {
            self.json_rest(&text[clean..]);
        }
    }

    fn json_rest(&mut self, text: &[u8]) {
        for chunk in text.utf8_chunks() {
            let mut rest = chunk.valid().as_bytes();
            loop {
                let clean = plain(
                    rest,
                    |w| less(w, 0x20) | equal(w, b'"') | equal(w, b'\\') != 0,
                    |b| b < 0x20 || matches!(b, b'"' | b'\\'),
                );
                self.push(&rest[..clean]);
                let Some(&byte) = rest.get(clean) else { break };
                self.json_escape(byte);
                rest = &rest[clean + 1..];
            }
            for &byte in chunk.invalid() {
                self.push(b"\\udc");
                self.hex_byte(byte);
            }
        }
    }

    fn json_escape(&mut self, byte: u8) {
        let letter = match byte {
            b'"' | b'\\' => byte,
            8 => b'b',
            0xc => b'f',
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            _ => {
                self.push(b"\\u00");
                return self.hex_byte(byte);
            }
        };
        self.push(&[b'\\', letter]);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_obeyed_or_hidden_is_invisible() {
        for c in "\0\t\n\x1b\x7f\u{9b}\u{ad}\u{61c}\u{180e}\u{200b}\u{200d}\u{200f}\u{2028}\u{2029}\u{202e}\u{2060}\
            \u{2066}\u{2069}\u{206f}\u{feff}\u{fff9}\u{fffb}\u{e0001}\u{e007f}"
            .chars()
        {
            assert!(is_invisible(c), "{c:?}");
        }
        let shown =
            " a~\u{a0}\u{e9}\u{5d0}\u{627}\u{2010}\u{2027}\u{202f}\u{3042}\u{fffd}\u{1f600}";
        assert_eq!(visible(shown), shown);
        assert_eq!(visible("a\u{200b}\u{e0041}"), r"a\u{200b}\u{e0041}");
    }

    fn c(text: &[u8]) -> Vec<u8> {
        let mut line = Line::new();
        line.c_string(text);
        line.as_bytes().to_vec()
    }

    fn json(text: &[u8]) -> String {
        let mut line = Line::new();
        line.json_string(text);
        String::from_utf8(line.as_bytes().to_vec()).unwrap()
    }

    /// What [`Line::c_string`] does, a byte at a time.
    fn slow(text: &[u8]) -> Vec<u8> {
        let mut out = vec![b'"'];
        for &byte in text {
            match byte {
                b'\\' | b'\'' | b'"' | b'?' => out.extend([b'\\', byte]),
                0 => out.extend(b"\\0"),
                7 => out.extend(b"\\a"),
                8 => out.extend(b"\\b"),
                9 => out.extend(b"\\t"),
                10 => out.extend(b"\\n"),
                11 => out.extend(b"\\v"),
                12 => out.extend(b"\\f"),
                13 => out.extend(b"\\r"),
                27 => out.extend(b"\\e"),
                1..32 | 127 => out.extend(format!("\\x{byte:02x}").bytes()),
                _ => out.push(byte),
            }
        }
        out.push(b'"');
        out
    }

    #[test]
    fn quotes_and_control_characters() {
        assert_eq!(c(b""), b"\"\"");
        assert_eq!(c(b"q'\"\\?\t"), br#""q\'\"\\\?\t""#);
        assert_eq!(
            c("h\u{e9}llo\x01\x7f".as_bytes()),
            "\"h\u{e9}llo\\x01\\x7f\"".as_bytes()
        );
    }

    #[test]
    fn json_keeps_every_byte() {
        assert_eq!(
            json(b"plain text of some length"),
            "\"plain text of some length\""
        );
        assert_eq!(json(b"a\"b\\c\n\x01"), r#""a\"b\\c\n\u0001""#);
        assert_eq!(json("\u{e9}\u{1f600}".as_bytes()), "\"\u{e9}\u{1f600}\"");
        assert_eq!(json(b"ok\xffno\xc3"), r#""ok\udcffno\udcc3""#);
    }

    proptest! {
        #[test]
        fn every_place_in_a_word(text: Vec<u8>, ascii in "[ -~\t]{0,40}") {
            prop_assert_eq!(c(&text), slow(&text));
            prop_assert_eq!(c(ascii.as_bytes()), slow(ascii.as_bytes()));
        }

        #[test]
        fn json_reads_back(text in ".{0,40}") {
            let back: String = serde_json::from_str(&json(text.as_bytes())).unwrap();
            prop_assert_eq!(back, text);
        }
    }
}
