//! Rows in their usual form, read without a parser.
//!
//! Nearly all of a dump is rows of numbers. The parser spends some 60 ns on each tag and each
//! text; here, a value takes a third of one such step. What is written in another way than
//! rrdtool's is left to the parser, and so is whatever is wrong.

use crate::{Value, text::numbers};

/// Reads the row that `text` begins with, after blanks and comments. Its values are appended
/// to `values`; returns how many there are, and where the row ends. `None` (and nothing is
/// appended) where it is not in the usual form.
#[inline]
pub(super) fn row(text: &str, exact: bool, values: &mut Vec<u8>) -> Option<(usize, usize)> {
    let before = values.len();
    let found = usual_row(text, exact, values);
    if found.is_none() {
        values.truncate(before);
    }
    found
}

fn usual_row(text: &str, exact: bool, values: &mut Vec<u8>) -> Option<(usize, usize)> {
    let mut rest = text.trim_ascii_start();
    while let Some(comment) = rest.strip_prefix("<!--") {
        let (_, after) = comment.split_once("-->")?;
        rest = after.trim_ascii_start();
    }
    rest = rest.strip_prefix("<row>")?;
    let mut count = 0;
    loop {
        rest = rest.trim_ascii_start();
        if let Some(after) = rest.strip_prefix("</row>") {
            return Some((count, text.len() - after.len()));
        }
        rest = rest.strip_prefix("<v>")?;
        let (value, end) = if exact {
            let end = rest.bytes().position(|byte| byte == b'<')?;
            (rest[..end].trim_ascii().parse().ok()?, end)
        } else {
            numbers::prefix(rest.as_bytes()).ok()?
        };
        rest = rest.get(end..)?.trim_ascii_start().strip_prefix("</v>")?;
        let bits = Value::from(value).to_bits();
        values.extend_from_slice(&bits.to_le_bytes());
        count += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<(Vec<f64>, &str)> {
        let mut values = vec![7];
        let found = row(text, false, &mut values);
        let (values, rest) = values[1..].as_chunks();
        assert!(rest.is_empty());
        let values: Vec<f64> = values
            .iter()
            .map(|bytes| f64::from_le_bytes(*bytes))
            .collect();
        let (count, end) = found?;
        assert_eq!(values.len(), count);
        Some((values, &text[end..]))
    }

    #[test]
    fn usual_rows_are_read() {
        let text = "\n\t<!-- a --><!-- <row> --> <row><v> 1.5e+00 </v>\n<v>2</v></row>\n</a>";
        assert_eq!(read(text), Some((vec![1.5, 2.0], "\n</a>")));
        assert_eq!(read("<row></row>"), Some((vec![], "")));
        let (values, _) = read("<row><v>NaN</v><v>-inf</v></row>").unwrap();
        assert!(values[0].is_nan());
        assert_eq!(values[1], f64::NEG_INFINITY);
    }

    #[test]
    fn all_others_are_left_alone() {
        for text in [
            "",
            "<!-- ",
            "</database>",
            "<row >",
            "<row><v>1</v>",
            "<row><v>1</v><v>",
            "<row><v>1",
            "<row><v>1x</v></row>",
            "<row><v>1<!-- --></v></row>",
            "<row><v/></row>",
            "<row><v>&#49;</v></row>",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
