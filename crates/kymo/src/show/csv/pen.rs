//! Writes values into cells as they are visited.

use kymo_model::{FieldId, Visitor};

use super::plan::{Part, Plan};
use crate::show::json::{self, float, float128};

/// Writes the cells of one class, one after the other.
pub(crate) struct Pen<'a> {
    pub(crate) parts: &'a [Part],
    pub(crate) json: json::Pen<'a>,
    /// Where each cell ends.
    pub(crate) ends: &'a mut Vec<usize>,
    /// How many compound values are open in the cell.
    pub(crate) depth: u32,
}

impl<'a> Pen<'a> {
    pub(crate) fn new(
        plan: &'a Plan,
        line: &'a mut kymo_text::Line,
        stack: &'a mut Vec<bool>,
        ends: &'a mut Vec<usize>,
    ) -> Self {
        Self {
            parts: &plan.parts,
            json: json::Pen {
                line,
                plan: &plan.json,
                stack,
            },
            ends,
            depth: 0,
        }
    }

    /// Ends the cell where it is this field's.
    #[inline]
    fn end(&mut self, field: FieldId) {
        if self.parts[field.index()] == Part::Column {
            self.ends.push(self.json.line.len());
        }
    }

    fn open(&mut self, field: FieldId, begin: impl FnOnce(&mut json::Pen<'a>)) {
        if self.parts[field.index()] != Part::Spread {
            self.depth += 1;
            begin(&mut self.json);
        }
    }

    fn close(&mut self, field: FieldId, end: impl FnOnce(&mut json::Pen<'a>)) {
        if self.parts[field.index()] != Part::Spread {
            self.depth -= 1;
            end(&mut self.json);
            self.end(field);
        }
    }
}

/// A value: as it is where it fills a cell alone, as JSON within a compound one.
macro_rules! value {
    ($name:ident($argument:ident: $kind:ty), $line:ident => $alone:expr) => {
        #[inline]
        fn $name(&mut self, field: FieldId, $argument: $kind) {
            if self.depth > 0 {
                return self.json.$name(field, $argument);
            }
            let $line = &mut *self.json.line;
            $alone;
            self.end(field);
        }
    };
}

impl Visitor for Pen<'_> {
    value!(uint(value: u64), line => line.decimal(value));
    value!(sint(value: i64), line => line.signed(value));
    value!(float128(bits: u128), line => float128(bits, false, line));
    value!(boolean(value: bool), line => line.push(if value { b"true" } else { b"false" }));
    value!(bits(value: u64), line => line.decimal(value));
    value!(text(text: &[u8]), line => line.push(text));
    value!(blob(bytes: &[u8]), line => bytes.iter().for_each(|&byte| line.hex_byte(byte)));

    #[inline]
    fn float(&mut self, field: FieldId, value: f64) {
        if self.depth > 0 {
            return self.json.float(field, value);
        }
        let bits = self.json.plan.float_bits(field);
        float(value, bits, false, self.json.line);
        self.end(field);
    }

    fn begin_struct(&mut self, field: FieldId) {
        self.open(field, |json| json.begin_struct(field));
    }

    fn end_struct(&mut self, field: FieldId) {
        self.close(field, |json| json.end_struct(field));
    }

    fn begin_array(&mut self, field: FieldId, length: u64) {
        self.open(field, |json| json.begin_array(field, length));
    }

    fn end_array(&mut self, field: FieldId) {
        self.close(field, |json| json.end_array(field));
    }

    fn begin_optional(&mut self, field: FieldId, present: bool, selector: u64) {
        // What it holds is the cell, which is empty where that is nothing.
        if self.depth > 0 {
            self.json.begin_optional(field, present, selector);
        }
    }

    fn end_optional(&mut self, field: FieldId) {
        self.end(field);
    }

    fn begin_variant(&mut self, field: FieldId, selected: u32, selector: u64) {
        if self.depth > 0 {
            self.json.begin_variant(field, selected, selector);
        }
    }

    fn end_variant(&mut self, field: FieldId) {
        self.end(field);
    }
}
