//! How values that are decoded come to their columns.

use super::build::{Columns, Labeled};
use super::column::{Column, ColumnData};
use super::deep::{Part, Text};
use super::gather::Number;
use crate::{FieldId, Visitor, Wide};

/// Appends the labels of a value.
fn push_labels(column: &mut Column, labels: &Labeled, bits: u64) {
    if let ColumnData::List { items, .. } = &mut column.data {
        match labels {
            Labeled::Values(labels) => {
                for key in labels.positions(bits) {
                    items.push_key(key as u32);
                }
            }
            Labeled::Flags(flags) => {
                for (key, flag) in flags.iter().enumerate() {
                    if bits & flag != 0 {
                        items.push_key(key as u32);
                    }
                }
            }
        }
    }
    column.end_compound();
}

impl Visitor for Columns {
    #[inline]
    fn wants(&self, field: FieldId) -> bool {
        self.targets.has(field)
    }

    #[inline]
    fn uint(&mut self, field: FieldId, value: u64) {
        if let Some((column, _)) = self.direct(field) {
            return column.push_uint(value);
        }
        self.at(
            field,
            |column, labels| {
                match labels {
                    None => column.push_uint(value),
                    Some(labels) => push_labels(column, labels, value),
                }
                0
            },
            |text| text.line.decimal(value),
        );
    }

    #[inline]
    fn sint(&mut self, field: FieldId, value: i64) {
        if let Some((column, _)) = self.direct(field) {
            return column.push_sint(value);
        }
        self.at(
            field,
            |column, labels| {
                match labels {
                    None => column.push_sint(value),
                    Some(labels) => push_labels(column, labels, value as u64),
                }
                0
            },
            |text| text.line.signed(value),
        );
    }

    fn wide(&mut self, field: FieldId, value: Wide<'_>) {
        self.at(
            field,
            |column, _| {
                match column.data {
                    ColumnData::Text(_) => column.push_text(value.to_string().as_bytes()),
                    _ => {
                        column.push_bytes(value.bytes());
                        false
                    }
                }
                .into()
            },
            |text| text.string(value.to_string().as_bytes()),
        );
    }

    #[inline]
    fn float(&mut self, field: FieldId, value: f64) {
        self.at(
            field,
            |column, _| {
                column.push_float(value);
                0
            },
            |text| match value.is_finite() {
                true => text.line.shortest(value, 64),
                false => text.line.push(b"null"),
            },
        );
    }

    #[inline]
    fn float128(&mut self, field: FieldId, bits: u128) {
        self.float(field, crate::select::narrow_float128(bits));
    }

    #[inline]
    fn boolean(&mut self, field: FieldId, value: bool) {
        self.at(
            field,
            |column, _| {
                column.push_bool(value);
                0
            },
            |text| text.line.push(if value { b"true" } else { b"false" }),
        );
    }

    #[inline]
    fn bits(&mut self, field: FieldId, value: u64) {
        self.uint(field, value);
    }

    #[inline]
    fn text(&mut self, field: FieldId, text: &[u8]) {
        // Unwanted texts are decoded too, because their length is in them.
        if !self.targets.has(field) {
            return;
        }
        let raw = self.raw;
        self.at(
            field,
            |column, _| match raw {
                true => {
                    column.push_raw_text(text);
                    0
                }
                false => u64::from(column.push_text(text)),
            },
            |builder| builder.string(text),
        );
    }

    #[inline]
    fn blob(&mut self, field: FieldId, bytes: &[u8]) {
        self.at(
            field,
            |column, _| {
                column.push_bytes(bytes);
                0
            },
            |text| {
                let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
                text.string(digits.as_bytes());
            },
        );
    }

    // An array is counted where it begins; what it is becomes known where it ends.
    #[inline]
    fn begin_array(&mut self, field: FieldId, _length: u64) {
        self.begin(field, b"[");
    }

    #[inline]
    fn numbers(&mut self, field: FieldId, bytes: &[u8], number: Number) {
        if !self.targets.has(field) {
            return;
        }
        match self.items(field) {
            Some(column) => column.extend_from_bytes(bytes, number),
            None => number.visit(field, bytes, self),
        }
    }

    #[inline]
    fn begin_struct(&mut self, field: FieldId) {
        self.begin(field, b"{");
    }

    #[inline]
    fn begin_variant(&mut self, field: FieldId, _selected: u32, _selector: u64) {
        self.begin(field, b"");
    }

    fn begin_optional(&mut self, field: FieldId, present: bool, _selector: u64) {
        match present {
            true => self.begin(field, b""),
            false => {
                self.targets.count(field);
                let null = |text: &mut Text, part: &Part| text.begin(part, b"null");
                let push = |column: &mut Column, _: &Option<Labeled>| {
                    column.push_null();
                    0
                };
                self.act(field, push, null);
            }
        }
    }

    // What it holds has ended its column already, and an absent one was null.
    fn end_optional(&mut self, field: FieldId) {
        if !self.deep.is_empty() {
            self.end_text(field);
        }
    }

    fn end_struct(&mut self, field: FieldId) {
        self.end(field, b"}");
    }

    fn end_array(&mut self, field: FieldId) {
        self.end(field, b"]");
    }

    fn end_variant(&mut self, field: FieldId) {
        self.end(field, b"");
    }
}
