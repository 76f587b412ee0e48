//! The characters of a document.

use std::borrow::Cow;

use super::RestoreError;
use super::pull::place;

/// The text of a document in UTF-8, UTF-16 (where it begins with a byte order mark or
/// without doubt) or ISO-8859-1.
///
/// # Errors
///
/// Another encoding, and bytes that are not valid in this one.
pub(super) fn decode(bytes: &[u8]) -> Result<Cow<'_, str>, RestoreError> {
    let error = |offset: usize, message: String| {
        let (line, column) = place(bytes, offset);
        RestoreError {
            line,
            column,
            element: None,
            message,
        }
    };
    match bytes {
        [0xff, 0xfe, rest @ ..] => return utf16(rest, u16::from_le_bytes).map(Cow::Owned),
        [0xfe, 0xff, rest @ ..] => return utf16(rest, u16::from_be_bytes).map(Cow::Owned),
        [b'<', 0, ..] => return utf16(bytes, u16::from_le_bytes).map(Cow::Owned),
        [0, b'<', ..] => return utf16(bytes, u16::from_be_bytes).map(Cow::Owned),
        _ => {}
    }
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let named = encoding(bytes);
    let is = |name: &str| named.is_some_and(|named| named.eq_ignore_ascii_case(name.as_bytes()));
    if named.is_none() || is("utf-8") || is("utf8") || bytes.is_ascii() {
        return match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Cow::Borrowed(text)),
            Err(wrong) => Err(error(
                wrong.valid_up_to(),
                "found bytes that are not a character of UTF-8".to_owned(),
            )),
        };
    }
    if is("iso-8859-1") || is("latin1") || is("latin-1") {
        return Ok(Cow::Owned(bytes.iter().copied().map(char::from).collect()));
    }
    let named = String::from_utf8_lossy(named.unwrap_or_default());
    Err(error(
        0,
        format!("found encoding `{named}`, expected UTF-8, UTF-16 or ISO-8859-1"),
    ))
}

/// The encoding that the declaration of a document names.
fn encoding(bytes: &[u8]) -> Option<&[u8]> {
    const KEY: &[u8] = b"encoding";
    let declaration = bytes.strip_prefix(b"<?xml")?;
    let end = declaration.iter().position(|&byte| byte == b'>')?;
    let declaration = &declaration[..end];
    let key = declaration
        .windows(KEY.len())
        .position(|found| found == KEY)?;
    let value = declaration[key + KEY.len()..].trim_ascii_start();
    let value = value.strip_prefix(b"=")?.trim_ascii_start();
    let (&quote, value) = value.split_first()?;
    let end = value.iter().position(|&byte| byte == quote)?;
    matches!(quote, b'"' | b'\'').then_some(&value[..end])
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Result<String, RestoreError> {
    let (pairs, rest) = bytes.as_chunks();
    let units = pairs.iter().map(|pair| unit(*pair));
    let text: Result<String, _> = char::decode_utf16(units).collect();
    match text {
        Ok(text) if rest.is_empty() => Ok(text),
        _ => Err(RestoreError {
            line: 1,
            column: 1,
            element: None,
            message: "found bytes that are not characters of UTF-16".to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings_are_found() {
        let text = "<?xml version='1.0' encoding = 'ISO-8859-1'?><a>\u{e4}</a>";
        let latin: Vec<u8> = text.chars().map(|c| c as u8).collect();
        assert_eq!(decode(&latin).unwrap(), text);
        let utf8 = "\u{feff}<a>\u{20ac}</a>";
        assert_eq!(decode(utf8.as_bytes()).unwrap(), "<a>\u{20ac}</a>");
        for order in [u16::to_le_bytes, u16::to_be_bytes] {
            for text in [utf8, &utf8[3..]] {
                let bytes: Vec<u8> = text.encode_utf16().flat_map(order).collect();
                assert_eq!(decode(&bytes).unwrap(), "<a>\u{20ac}</a>");
            }
        }
        // What is ASCII is so in most encodings.
        let odd = b"<?xml version=\"1.0\" encoding=\"koi8-r\"?><a/>";
        assert!(decode(odd).is_ok());
    }

    #[test]
    fn what_is_not_known_is_reported() {
        let odd = b"<?xml version=\"1.0\" encoding=\"koi8-r\"?><a>\xc1</a>";
        let message = decode(odd).unwrap_err().to_string();
        assert!(message.contains("koi8-r"), "{message}");
        let error = decode(b"<a>\n\xc3\xa4\xff</a>").unwrap_err();
        assert_eq!((error.line, error.column), (2, 2));
        assert!(decode(b"<\0a").is_err());
        assert!(decode(b"<\0\x00\xd8").is_err());
    }
}
