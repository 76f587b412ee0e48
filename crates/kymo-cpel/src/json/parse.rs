//! Values of lines, as JSON.

use kymo_text::json::{Reader, Wrong};

/// A number of 64 bits without a sign.
pub(super) fn number(reader: &mut Reader<'_>) -> Result<u64, Wrong> {
    whole(
        reader,
        "a whole number from 0 to 18446744073709551615",
        Some,
    )
}

/// A number of 32 bits without a sign.
pub(super) fn word(reader: &mut Reader<'_>) -> Result<u32, Wrong> {
    let narrow = |number| u32::try_from(number).ok();
    whole(reader, "a whole number from 0 to 4294967295", narrow)
}

/// A number of 8 bits without a sign.
pub(super) fn byte(reader: &mut Reader<'_>) -> Result<u8, Wrong> {
    let narrow = |number| u8::try_from(number).ok();
    whole(reader, "a whole number from 0 to 255", narrow)
}

fn whole<T>(
    reader: &mut Reader<'_>,
    expected: &'static str,
    narrow: impl FnOnce(u64) -> Option<T>,
) -> Result<T, Wrong> {
    reader.peek();
    let at = reader.position();
    let word = reader.word().unwrap_or_default();
    let is_whole = word.iter().all(u8::is_ascii_digit);
    let digits = str::from_utf8(word).ok().filter(|_| is_whole);
    let number = digits.and_then(|digits| digits.parse().ok());
    let number = number.and_then(narrow);
    number.ok_or(Wrong { at, expected })
}

/// Bytes, as a string of hexadecimal digits.
pub(super) fn bytes(reader: &mut Reader<'_>) -> Result<Vec<u8>, Wrong> {
    reader.peek();
    let wrong = Wrong {
        at: reader.position(),
        expected: "pairs of hexadecimal digits",
    };
    let digits = reader.string()?;
    let (pairs, rest) = digits.as_chunks::<2>();
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let pair = |&[high, low]: &[u8; 2]| Some((digit(high)? << 4 | digit(low)?) as u8);
    let bytes: Option<Vec<u8>> = pairs.iter().map(pair).collect();
    bytes.filter(|_| rest.is_empty()).ok_or(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        let parsed = |json: &str| number(&mut Reader::new(json.as_bytes())).ok();
        assert_eq!(parsed(" 18446744073709551615,"), Some(u64::MAX));
        for json in ["-1", "+1", "1.5", "1e3", "18446744073709551616", "", "null"] {
            assert_eq!(parsed(json), None, "{json}");
        }
        let wrong = word(&mut Reader::new(b" 4294967296")).unwrap_err();
        assert_eq!(wrong.at, 1);
        assert!(byte(&mut Reader::new(b"256")).is_err());
    }
}
