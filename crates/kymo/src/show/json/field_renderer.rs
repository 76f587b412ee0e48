//! Writes values as they are visited.

use kymo_model::{FieldId, Visitor, Wide};
use kymo_text::{Binary128, Line, Room};

use super::plan::{FieldPlan, Plan, Value};

/// Writes the fields of one class.
pub(crate) struct FieldRenderer<'a> {
    pub(crate) line: &'a mut Line,
    pub(crate) plan: &'a Plan,
    /// Of each array that is open, whether an element was written.
    pub(crate) stack: &'a mut Vec<bool>,
}

impl<'a> FieldRenderer<'a> {
    /// Writes what comes before a field.
    #[inline(always)]
    fn start(&mut self, field: FieldId) -> &'a FieldPlan {
        let plan = self.separate(field);
        self.line.stamp(&plan.before);
        plan
    }

    /// Writes what comes before a field, and a short value.
    #[inline(always)]
    fn short(&mut self, field: FieldId, write: impl FnOnce(&mut Room<'_>)) -> &'a FieldPlan {
        let plan = self.separate(field);
        self.line.compose_after(&plan.before, write);
        plan
    }

    /// Writes what comes between elements of an array.
    #[inline(always)]
    fn separate(&mut self, field: FieldId) -> &'a FieldPlan {
        let plan = &self.plan.fields[field.index()];
        if plan.element
            && let Some(some) = self.stack.last_mut()
            && std::mem::replace(some, true)
        {
            self.line.push_byte(b',');
        }
        plan
    }

    #[inline]
    fn end(&mut self, plan: &FieldPlan, bits: u64) {
        if let Value::Labeled(labels) = &plan.value {
            labels.write(bits, self.line);
        }
    }
}

/// Writes an integer of more than 64 bits.
pub(crate) fn wide(value: Wide<'_>, line: &mut Line) {
    line.push(b"0x");
    value.digits().for_each(|digit| line.push_byte(digit));
}

/// Writes a number of `bits` bits; where it is none, its name, which `quoted` puts between
/// quotation marks.
#[inline]
pub(crate) fn float(value: f64, bits: u32, quoted: bool, line: &mut Line) {
    if value.is_finite() {
        line.shortest(value, bits);
    } else {
        not_finite(value.is_nan(), value < 0.0, quoted, line);
    }
}

/// The same for a number of 128 bits.
pub(crate) fn float128(bits: u128, quoted: bool, line: &mut Line) {
    let value = Binary128::from_bits(bits);
    if value.is_nan() || value.is_infinite() {
        not_finite(value.is_nan(), value.is_negative(), quoted, line);
    } else {
        line.shortest128(value);
    }
}

fn not_finite(nan: bool, negative: bool, quoted: bool, line: &mut Line) {
    let name: &[u8] = match (nan, negative) {
        (true, _) => b"NaN",
        (false, false) => b"Infinity",
        (false, true) => b"-Infinity",
    };
    if quoted {
        line.json_string(name);
    } else {
        line.push(name);
    }
}

impl Visitor for FieldRenderer<'_> {
    #[inline]
    fn uint(&mut self, field: FieldId, value: u64) {
        let plan = self.short(field, |room| room.decimal(value));
        self.end(plan, value);
    }

    #[inline]
    fn sint(&mut self, field: FieldId, value: i64) {
        let plan = self.short(field, |room| room.signed(value));
        self.end(plan, value as u64);
    }

    fn wide(&mut self, field: FieldId, value: Wide<'_>) {
        self.start(field);
        self.line.push_byte(b'"');
        wide(value, self.line);
        self.line.push_byte(b'"');
    }

    #[inline]
    fn float(&mut self, field: FieldId, value: f64) {
        self.start(field);
        let bits = self.plan.float_bits(field);
        float(value, bits, true, self.line);
    }

    fn float128(&mut self, field: FieldId, bits: u128) {
        self.start(field);
        float128(bits, true, self.line);
    }

    #[inline]
    fn boolean(&mut self, field: FieldId, value: bool) {
        self.start(field);
        self.line.push(if value { b"true" } else { b"false" });
    }

    #[inline]
    fn bits(&mut self, field: FieldId, value: u64) {
        let plan = self.short(field, |room| room.decimal(value));
        let Value::Flags(flags) = &plan.value else {
            return;
        };
        self.line.push(b",\"flags\":[");
        let set = flags.iter().filter(|(bits, _)| value & bits != 0);
        for (position, (_, name)) in set.enumerate() {
            if position > 0 {
                self.line.push_byte(b',');
            }
            self.line.stamp(name);
        }
        self.line.push(b"]}");
    }

    #[inline]
    fn text(&mut self, field: FieldId, text: &[u8]) {
        self.start(field);
        self.line.json_string(text);
    }

    fn blob(&mut self, field: FieldId, bytes: &[u8]) {
        self.start(field);
        self.line.push_byte(b'"');
        for &byte in bytes {
            self.line.hex_byte(byte);
        }
        self.line.push_byte(b'"');
    }

    #[inline]
    fn begin_struct(&mut self, field: FieldId) {
        self.start(field);
    }

    #[inline]
    fn end_struct(&mut self, _field: FieldId) {
        self.line.push_byte(b'}');
    }

    #[inline]
    fn begin_array(&mut self, field: FieldId, _length: u64) {
        self.start(field);
        self.stack.push(false);
    }

    #[inline]
    fn end_array(&mut self, _field: FieldId) {
        self.stack.pop();
        self.line.push_byte(b']');
    }

    #[inline]
    fn begin_optional(&mut self, field: FieldId, present: bool, _selector: u64) {
        self.start(field);
        if !present {
            self.line.push(b"null");
        }
    }

    #[inline]
    fn begin_variant(&mut self, field: FieldId, _selected: u32, _selector: u64) {
        self.start(field);
    }
}

/// Writes the fields of events without scopes around them: numbers, texts, arrays, variants.
pub(crate) struct FlatFieldRenderer<'a>(pub(crate) FieldRenderer<'a>);

impl Visitor for FlatFieldRenderer<'_> {
    #[inline]
    fn uint(&mut self, field: FieldId, value: u64) {
        self.0.uint(field, value);
    }

    #[inline]
    fn sint(&mut self, field: FieldId, value: i64) {
        self.0.sint(field, value);
    }

    #[inline]
    fn float(&mut self, field: FieldId, value: f64) {
        self.0.float(field, value);
    }

    #[inline]
    fn text(&mut self, field: FieldId, text: &[u8]) {
        self.0.text(field, text);
    }

    #[inline]
    fn begin_struct(&mut self, field: FieldId) {
        self.0.begin_struct(field);
    }

    #[inline]
    fn begin_array(&mut self, field: FieldId, length: u64) {
        self.0.begin_array(field, length);
    }

    #[inline]
    fn end_array(&mut self, field: FieldId) {
        self.0.end_array(field);
    }

    #[inline]
    fn begin_variant(&mut self, field: FieldId, selected: u32, selector: u64) {
        self.0.begin_variant(field, selected, selector);
    }

    /// The end of the pair.
    #[inline]
    fn end_variant(&mut self, _field: FieldId) {
        self.0.line.push_byte(b']');
    }
}
