//! Texts in other encodings than UTF-8.

use crate::class::Encoding;

/// Writes the text in an encoding to `out`, unless that is UTF-8, which it is already. `false`
/// where it is not UTF-8 and should become something else.
pub(super) fn encode(text: &[u8], encoding: Encoding, out: &mut Vec<u8>) -> bool {
    out.clear();
    if encoding == Encoding::Utf8 {
        return true;
    }
    let Ok(text) = std::str::from_utf8(text) else {
        return false;
    };
    let mut units = [0; 2];
    for c in text.chars() {
        let wide = u32::from(c);
        match encoding {
            Encoding::Utf8 => {}
            Encoding::Utf16Le => c
                .encode_utf16(&mut units)
                .iter()
                .for_each(|unit| out.extend(unit.to_le_bytes())),
            Encoding::Utf16Be => c
                .encode_utf16(&mut units)
                .iter()
                .for_each(|unit| out.extend(unit.to_be_bytes())),
            Encoding::Utf32Le => out.extend(wide.to_le_bytes()),
            Encoding::Utf32Be => out.extend(wide.to_be_bytes()),
        }
    }
    true
}
