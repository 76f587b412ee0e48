//! Writes the values of fields, one a line.

use crate::show::color::Palette;
use crate::show::json::wide;
use kymo_model::{Base, FieldId, Kind, Schema, Scope, Visitor, Wide};
use kymo_text::{Binary128, Line, Stamp};

/// How the fields of a schema are written, by [`FieldId`].
#[derive(Debug)]
pub(super) struct Plan {
    fields: Vec<FieldPlan>,
    palette: Palette,
    /// What comes before a value.
    open: Stamp,
}

#[derive(Debug)]
struct FieldPlan {
    /// What comes before the value: newline, indentation, name.
    before: Stamp,
    /// Whether it is an element, whose index comes after that.
    element: bool,
    root: bool,
    base: Base,
    /// Whether it is a structure without visible members.
    empty: bool,
    /// Newline and the indentation of lines below it.
    below: Stamp,
}

impl Plan {
    /// Plans all fields; `hidden` ones are never visited.
    pub(super) fn new(schema: &Schema, hidden: &[bool], palette: Palette) -> Self {
        let is_hidden = |id: &FieldId| hidden.get(id.index()).copied().unwrap_or(false);
        let mut indents: Vec<usize> = Vec::with_capacity(schema.fields().len());
        let plan = |(position, field): (usize, &kymo_model::Field)| {
            let mut before = Line::new();
            let mut element = false;
            let mut indent = 2;
            match field.parent {
                None => {
                    let scope = schema.scope_of(FieldId(position as u32));
                    before.push(b"  ");
                    before.push(palette.details.property.as_bytes());
                    before.push(scope_name(scope).as_bytes());
                    before.push(palette.reset.as_bytes());
                    before.push(b":");
                }
                Some(parent) => {
                    indent = indents[parent.index()];
                    let above = &schema.field(parent).kind;
                    if let Kind::Struct | Kind::Array { .. } = above {
                        indent += 2;
                        before.push(&newline(indent));
                    }
                    if let Kind::Struct = above {
                        before.push(palette.field.as_bytes());
                        before.push(field.name.as_deref().unwrap_or_default().as_bytes());
                        before.push(palette.reset.as_bytes());
                        before.push(b":");
                    }
                    element = matches!(above, Kind::Array { .. });
                }
            }
            indents.push(indent);
            FieldPlan {
                before: Stamp::new(before.as_bytes()),
                element,
                root: field.parent.is_none(),
                base: match field.kind {
                    Kind::Uint { base, .. } | Kind::Sint { base, .. } => base,
                    _ => Base::Decimal,
                },
                empty: matches!(field.kind, Kind::Struct) && field.children.iter().all(is_hidden),
                below: Stamp::new(&newline(indent + 2)),
            }
        };
        Self {
            fields: schema.fields().iter().enumerate().map(plan).collect(),
            palette,
            open: Stamp::new(format!(" {}", palette.value).as_bytes()),
        }
    }
}

fn newline(indent: usize) -> Vec<u8> {
    let mut text = vec![b' '; indent + 1];
    text[0] = b'\n';
    text
}

const fn scope_name(scope: Scope) -> &'static str {
    match scope {
        Scope::PacketHeader => "Header",
        Scope::PacketContext => "Context",
        Scope::EventHeader => "Event header",
        Scope::CommonContext => "Common context",
        Scope::SpecificContext => "Specific context",
        Scope::Payload => "Payload",
    }
}

/// Writes the fields of one class.
pub(super) struct FieldRenderer<'a> {
    pub(super) line: &'a mut Line,
    pub(super) plan: &'a Plan,
    /// Of each array that is open, how many elements were written.
    pub(super) counters: &'a mut Vec<u64>,
}

impl<'a> FieldRenderer<'a> {
    fn start(&mut self, field: FieldId) -> &'a FieldPlan {
        let plan = &self.plan.fields[field.index()];
        self.line.stamp(&plan.before);
        if plan.element
            && let Some(count) = self.counters.last_mut()
        {
            self.line.push(self.plan.palette.field.as_bytes());
            self.line.push_byte(b'[');
            self.line.grouped(*count);
            self.line.push_byte(b']');
            self.line.push(self.plan.palette.reset.as_bytes());
            self.line.push_byte(b':');
            *count += 1;
        }
        plan
    }

    /// Writes a value, or a part of it, behind a blank.
    #[inline]
    fn value(&mut self, write: impl FnOnce(&mut Line)) {
        self.line.stamp(&self.plan.open);
        write(self.line);
        self.line.push(self.plan.palette.reset.as_bytes());
    }

    /// Writes a word that stands for a value, behind a blank.
    fn word(&mut self, color: &str, word: &str) {
        self.line.push_byte(b' ');
        for part in [color, word, self.plan.palette.reset] {
            self.line.push(part.as_bytes());
        }
    }

    fn empty(&mut self) {
        self.word(self.plan.palette.event, "Empty");
    }

    fn length(&mut self, length: u64) {
        self.line.push(b" Length");
        self.value(|line| line.grouped(length));
        self.line.push_byte(b':');
    }

    fn number(&mut self, base: Base, is_negative: bool, value: u64) {
        self.value(|line| {
            if is_negative {
                line.push_byte(b'-');
            }
            match base {
                Base::Decimal => line.grouped(value),
                Base::Octal => line.grouped_octal(value),
                Base::Binary | Base::Hexadecimal => line.grouped_hexadecimal(value),
            }
        });
    }

    fn end(&mut self, field: FieldId) {
        if self.plan.fields[field.index()].root {
            self.line.push_byte(b'\n');
        }
    }
}

impl Visitor for FieldRenderer<'_> {
    fn uint(&mut self, field: FieldId, value: u64) {
        let plan = self.start(field);
        self.number(plan.base, false, value);
    }

    fn sint(&mut self, field: FieldId, value: i64) {
        let plan = self.start(field);
        self.number(plan.base, value < 0, value.unsigned_abs());
    }

    fn wide(&mut self, field: FieldId, value: Wide<'_>) {
        self.start(field);
        self.value(|line| wide(value, line));
    }

    fn float(&mut self, field: FieldId, value: f64) {
        self.start(field);
        self.value(|line| line.fixed(value));
    }

    fn float128(&mut self, field: FieldId, bits: u128) {
        self.start(field);
        self.value(|line| line.general128(Binary128::from_bits(bits)));
    }

    fn boolean(&mut self, field: FieldId, value: bool) {
        self.start(field);
        let palette = &self.plan.palette;
        match value {
            true => self.word(palette.details.yes, "Yes"),
            false => self.word(palette.unknown, "No"),
        }
    }

    fn bits(&mut self, field: FieldId, value: u64) {
        self.start(field);
        self.value(|line| line.grouped_hexadecimal(value));
    }

    fn text(&mut self, field: FieldId, text: &[u8]) {
        self.start(field);
        self.value(|line| line.push(text));
    }

    fn blob(&mut self, field: FieldId, bytes: &[u8]) {
        let plan = self.start(field);
        if bytes.is_empty() {
            return self.empty();
        }
        self.length(bytes.len() as u64);
        for row in bytes.chunks(16) {
            self.line.stamp(&plan.below);
            self.line.push(self.plan.palette.value.as_bytes());
            for (position, &byte) in row.iter().enumerate() {
                if position > 0 {
                    self.line.push_byte(b' ');
                }
                self.line.hex_byte(byte);
            }
            self.line.push(self.plan.palette.reset.as_bytes());
        }
    }

    fn begin_struct(&mut self, field: FieldId) {
        if self.start(field).empty {
            self.empty();
        }
    }

    fn end_struct(&mut self, field: FieldId) {
        self.end(field);
    }

    fn begin_array(&mut self, field: FieldId, length: u64) {
        self.start(field);
        self.counters.push(0);
        match length {
            0 => self.empty(),
            length => self.length(length),
        }
    }

    fn end_array(&mut self, _field: FieldId) {
        self.counters.pop();
    }

    fn begin_optional(&mut self, field: FieldId, present: bool, _selector: u64) {
        self.start(field);
        if !present {
            self.word(self.plan.palette.event, "None");
        }
    }

    fn begin_variant(&mut self, field: FieldId, _selected: u32, _selector: u64) {
        self.start(field);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::show::testing;

    #[test]
    fn every_kind_of_field() {
        let event = testing::every_kind();
        let mut line = Line::new();
        let mut field_renderer = FieldRenderer {
            line: &mut line,
            plan: &Plan::new(&event.class.schema, &[], Palette::NONE),
            counters: &mut Vec::new(),
        };
        testing::play(&event.calls, &mut field_renderer);
        let expected = "  Common context:\n    vpid: -7\n  Payload:\n    hex: -0x1\n    oct: -01\n    \
            bin: 0x5\n    f: -99.629997\n    q: 1\n    b: Yes\n    bits: 0xe9ab\n    map: 0x11\n    \
            s: a\"b\n\n    blob: Length 2:\n      00 ff\n    empty: Empty\n    one: 0\n    two: 0x0\n    \
            none: 9\n    arr: Length 2:\n      [0]: Length 1:\n        [0]: 1\n      [1]: Length 1:\n        \
            [0]: 2\n    no: Empty\n    var:\n      in: 4\n    some: x\n    nothing: None\n    \
            hollow: Empty\n";
        assert_eq!(String::from_utf8_lossy(line.as_bytes()), expected);
    }
}
