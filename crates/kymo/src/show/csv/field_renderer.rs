//! Writes values into cells as they are visited.

use kymo_model::{FieldId, Visitor, Wide};
use kymo_text::Line;

use super::plan::{Part, Plan};
use crate::show::json::{self, float, float128, wide};

/// Where values are, and what stands around them.
pub(crate) trait CellFrame {
    /// Whether the members of a structure have cells of their own.
    fn is_spread(&self, field: FieldId) -> bool;

    /// A field that is not within a value begins. `false` if it is left out.
    fn begin(&mut self, _field: FieldId, _line: &mut Line) -> bool {
        true
    }

    /// A field ends that may be a cell.
    fn end(&mut self, _field: FieldId, _line: &Line) {}
}

/// Writes values as they are, and compound ones as JSON.
pub(crate) struct FieldRenderer<'a, C> {
    pub(crate) cells: C,
    pub(crate) json: json::FieldRenderer<'a>,
    /// How many compound values are open in the cell.
    pub(crate) depth: u32,
}

/// The cells of one class, one after the other.
pub(crate) struct CellEnds<'a> {
    parts: &'a [Part],
    /// Where each cell ends.
    ends: &'a mut Vec<usize>,
}

impl CellFrame for CellEnds<'_> {
    #[inline]
    fn is_spread(&self, field: FieldId) -> bool {
        self.parts[field.index()] == Part::Spread
    }

    #[inline]
    fn end(&mut self, field: FieldId, line: &Line) {
        if self.parts[field.index()] == Part::Column {
            self.ends.push(line.len());
        }
    }
}

/// Writes the cells of one class.
pub(crate) type CellRenderer<'a> = FieldRenderer<'a, CellEnds<'a>>;

impl<'a> CellRenderer<'a> {
    pub(crate) fn new(
        plan: &'a Plan,
        line: &'a mut Line,
        stack: &'a mut Vec<bool>,
        ends: &'a mut Vec<usize>,
    ) -> Self {
        Self {
            cells: CellEnds {
                parts: &plan.parts,
                ends,
            },
            json: json::FieldRenderer {
                line,
                plan: &plan.json,
                stack,
            },
            depth: 0,
        }
    }
}

impl<'a, C: CellFrame> FieldRenderer<'a, C> {
    #[inline]
    fn begin(&mut self, field: FieldId) -> bool {
        self.cells.begin(field, self.json.line)
    }

    #[inline]
    fn end(&mut self, field: FieldId) {
        self.cells.end(field, self.json.line);
    }

    fn open(&mut self, field: FieldId, begin: impl FnOnce(&mut json::FieldRenderer<'a>)) {
        if !self.cells.is_spread(field) {
            if self.depth == 0 {
                self.begin(field);
            }
            self.depth += 1;
            begin(&mut self.json);
        }
    }

    fn close(&mut self, field: FieldId, end: impl FnOnce(&mut json::FieldRenderer<'a>)) {
        if !self.cells.is_spread(field) {
            self.depth -= 1;
            end(&mut self.json);
            self.end(field);
        }
    }
}

/// A value: as it is alone, as JSON within a compound one.
macro_rules! value {
    ($name:ident($argument:ident: $kind:ty), $line:ident => $alone:expr) => {
        #[inline]
        fn $name(&mut self, field: FieldId, $argument: $kind) {
            if self.depth > 0 {
                return self.json.$name(field, $argument);
            }
            if self.begin(field) {
                let $line = &mut *self.json.line;
                $alone;
                self.end(field);
            }
        }
    };
}

impl<C: CellFrame> Visitor for FieldRenderer<'_, C> {
    value!(uint(value: u64), line => line.decimal(value));
    value!(sint(value: i64), line => line.signed(value));
    value!(wide(value: Wide<'_>), line => wide(value, line));
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
        if self.begin(field) {
            let bits = self.json.plan.float_bits(field);
            float(value, bits, false, self.json.line);
            self.end(field);
        }
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
        match self.depth {
            0 => drop(self.begin(field)),
            _ => self.json.begin_optional(field, present, selector),
        }
    }

    fn end_optional(&mut self, field: FieldId) {
        self.end(field);
    }

    fn begin_variant(&mut self, field: FieldId, selected: u32, selector: u64) {
        match self.depth {
            0 => drop(self.begin(field)),
            _ => self.json.begin_variant(field, selected, selector),
        }
    }

    fn end_variant(&mut self, field: FieldId) {
        self.end(field);
    }
}
