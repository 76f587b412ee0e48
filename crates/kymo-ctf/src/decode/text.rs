//! Texts in other encodings than UTF-8.

use crate::class::Encoding;

/// Bytes of a code unit.
pub(crate) fn unit(encoding: Encoding) -> usize {
    match encoding {
        Encoding::Utf8 => 1,
        Encoding::Utf16Le | Encoding::Utf16Be => 2,
        Encoding::Utf32Le | Encoding::Utf32Be => 4,
    }
}

/// Bytes before the first zero byte. Most texts are short: these are found without a call.
#[inline]
pub(crate) fn zero(bytes: &[u8]) -> Option<usize> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const SHORT: usize = 3;
    if let Some(words) = bytes.first_chunk::<{ SHORT * 8 }>() {
        for (place, word) in words.as_chunks::<8>().0.iter().enumerate() {
            let word = u64::from_le_bytes(*word);
            // The lowest bit that is set is the highest of the first byte that is zero.
            let zeros = word.wrapping_sub(ONES) & !word & (ONES << 7);
            if zeros != 0 {
                return Some(place * 8 + zeros.trailing_zeros() as usize / 8);
            }
        }
    }
    memchr::memchr(0, bytes)
}

/// Bytes before the first zero code unit.
pub(crate) fn terminator(bytes: &[u8], encoding: Encoding) -> Option<usize> {
    match unit(encoding) {
        1 => zero(bytes),
        unit => bytes
            .chunks_exact(unit)
            .position(|unit| unit.iter().all(|&byte| byte == 0))
            .map(|units| units * unit),
    }
}

/// The text in UTF-8. Invalid parts become U+FFFD.
pub(crate) fn to_utf8(bytes: &[u8], encoding: Encoding) -> Vec<u8> {
    let text: String = match encoding {
        Encoding::Utf8 => return bytes.to_vec(),
        Encoding::Utf16Le => utf16(bytes, u16::from_le_bytes),
        Encoding::Utf16Be => utf16(bytes, u16::from_be_bytes),
        Encoding::Utf32Le => utf32(bytes, u32::from_le_bytes),
        Encoding::Utf32Be => utf32(bytes, u32::from_be_bytes),
    };
    text.into_bytes()
}

fn utf16(bytes: &[u8], from: fn([u8; 2]) -> u16) -> String {
    let (units, rest) = bytes.as_chunks::<2>();
    let mut text: String = char::decode_utf16(units.iter().map(|&unit| from(unit)))
        .map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER))
        .collect();
    text.extend((!rest.is_empty()).then_some(char::REPLACEMENT_CHARACTER));
    text
}

fn utf32(bytes: &[u8], from: fn([u8; 4]) -> u32) -> String {
    let (units, rest) = bytes.as_chunks::<4>();
    let mut text: String = units
        .iter()
        .map(|&unit| char::from_u32(from(unit)).unwrap_or(char::REPLACEMENT_CHARACTER))
        .collect();
    text.extend((!rest.is_empty()).then_some(char::REPLACEMENT_CHARACTER));
    text
}
