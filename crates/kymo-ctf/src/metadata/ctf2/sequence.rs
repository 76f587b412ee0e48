//! A JSON text sequence (RFC 7464): the fragments of metadata, each after a record
//! separator.

use kymo_text::diagnostic::Diagnostic;

use super::json::{self, Value, is_blank};
use crate::metadata::limits::Warnings;

/// What each fragment begins with.
const SEPARATOR: char = '\u{1e}';

/// Hands the fragments of a text on, one after the other: only one at a time is in memory.
pub(super) fn each<'t>(
    text: &'t str,
    warnings: &mut Warnings,
    mut read: impl FnMut(&Value<'t>, &mut Warnings) -> Result<(), Diagnostic>,
) -> Result<(), Diagnostic> {
    let mut at = text.len() - text.trim_start_matches('\u{feff}').len();
    let is_separated = text.contains(SEPARATOR);
    if !is_separated {
        warnings.push(
            Diagnostic::warning("the fragments are not separated")
                .with_help("expected a record separator (U+001E) before each of them"),
        );
    }
    while at < text.len() {
        let separator = is_separated.then(|| text[at..].find(SEPARATOR)).flatten();
        let end = separator.map_or(text.len(), |distance| at + distance);
        let is_empty = text[at..end].bytes().all(is_blank);
        if !is_empty {
            let (value, after) = json::parse(text, at..end)?;
            if is_separated && after < end {
                return Err(Diagnostic::error("two values in one fragment")
                    .at(value.span, "the fragment ends with this value")
                    .because(
                        after..after + 1,
                        "expected a record separator (U+001E) before this",
                    ));
            }
            read(&value, warnings)?;
            if after < end {
                at = after;
                continue;
            }
        }
        at = end + SEPARATOR.len_utf8();
    }
    Ok(())
}
