//! What is nested deeply, as JSON text: columns of columns end somewhere.

use std::borrow::Cow;
use std::sync::Arc;

use kymo_text::Line;

use crate::{FieldId, Kind, Schema};

/// Nesting depth from which on a compound is a single text.
pub(super) const MOST_LEVELS: usize = 32;

/// Whether a field is one text at a level.
pub(super) fn is_text(schema: &Schema, field: FieldId, level: usize) -> bool {
    let kind = &schema.field(field).kind;
    level >= MOST_LEVELS && matches!(kind, Kind::Struct | Kind::Variant | Kind::Array { .. })
}

/// A field within such a text, or the whole of it.
#[derive(Clone, Debug)]
pub(super) struct Part {
    /// Position of the text.
    pub(super) text: usize,
    /// Its name, as a member of a structure.
    key: Option<Arc<str>>,
}

/// A field and all that is in it, of which `text` is made.
pub(super) fn parts(schema: &Schema, root: FieldId, text: usize) -> Vec<(FieldId, Part)> {
    let mut parts = vec![(root, Part { text, key: None })];
    let mut next = 0;
    while let Some(&(field, _)) = parts.get(next) {
        next += 1;
        let info = schema.field(field);
        let is_struct = matches!(info.kind, Kind::Struct);
        for &child in &info.children {
            let name = schema.field(child).name.clone();
            let key = is_struct.then(|| name.unwrap_or_else(|| "".into()));
            parts.push((child, Part { text, key }));
        }
    }
    parts
}

/// A text that is being written.
#[derive(Clone, Debug, Default)]
pub(super) struct Text {
    pub(super) line: Line,
    /// Texts within it of which something was replaced that is not UTF-8.
    pub(super) replaced: u64,
    /// The compounds that are open.
    depth: usize,
}

impl Text {
    /// Forgets what there is.
    pub(super) fn clear(&mut self) {
        self.line.clear();
        self.replaced = 0;
        self.depth = 0;
    }

    /// Writes a value, which `write` appends.
    pub(super) fn value(&mut self, part: &Part, write: impl FnOnce(&mut Self)) {
        let last = self.line.as_bytes().last();
        if !matches!(last, None | Some(b'[' | b'{' | b':' | b',')) {
            self.line.push(b",");
        }
        if let Some(key) = &part.key {
            self.line.json_string(key.as_bytes());
            self.line.push(b":");
        }
        write(self);
    }

    /// Begins a compound: `[` or `{`; nothing for one that only wraps a value.
    pub(super) fn begin(&mut self, part: &Part, bracket: &[u8]) {
        self.value(part, |text| text.line.push(bracket));
        self.depth += 1;
    }

    /// Writes a text, as UTF-8.
    pub(super) fn string(&mut self, text: &[u8]) {
        let utf8 = String::from_utf8_lossy(text);
        self.replaced += u64::from(matches!(utf8, Cow::Owned(_)));
        self.line.json_string(utf8.as_bytes());
    }

    /// Ends a compound; whether all is whole now.
    pub(super) fn end(&mut self, bracket: &[u8]) -> bool {
        self.line.push(bracket);
        self.depth = self.depth.saturating_sub(1);
        self.depth == 0
    }
}
