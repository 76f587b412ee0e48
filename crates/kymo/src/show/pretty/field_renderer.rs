//! Writes values as they are visited.

use kymo_model::{FieldId, Visitor, Wide};
use kymo_text::{Binary128, Line, Stamp};

use crate::show::json::wide;

use super::plan::{Based, Element, FieldPlan, Plan, Value};

/// Writes the fields of one class.
pub(super) struct FieldRenderer<'a> {
    pub(super) line: &'a mut Line,
    pub(super) plan: &'a Plan,
    /// Of each array that is open, how many elements were written; of each optional, how
    /// many things it holds.
    pub(super) stack: &'a mut Vec<u64>,
    /// What comes before the first elements of an array with names.
    pub(super) indexes: &'a [Stamp],
    /// Ends the colour of a value.
    pub(super) reset: &'static str,
}

/// What comes before the first elements of an array with names, for [`FieldRenderer::indexes`].
pub(super) fn indexes() -> Box<[Stamp]> {
    let prepared = (0..256).map(|index| {
        let mut line = Line::new();
        write_index(index, &mut line);
        Stamp::new(line.as_bytes())
    });
    prepared.collect()
}

fn write_index(index: u64, line: &mut Line) {
    line.push(if index == 0 { b" [" } else { b", [" });
    line.decimal(index);
    line.push(b"] = ");
}

impl<'a> FieldRenderer<'a> {
    /// How a field is written, and what comes right before its value: all else that comes
    /// before it has been written.
    // It is a third of the work on a number: a call for each is felt.
    #[inline(always)]
    fn plan(&mut self, field: FieldId) -> (&'a FieldPlan, &'a Stamp) {
        let plan = &self.plan.fields[field.index()];
        if plan.element == Element::No {
            (plan, &plan.before)
        } else {
            (plan, self.element(plan))
        }
    }

    /// Writes what comes before a field.
    #[inline(always)]
    fn start(&mut self, field: FieldId) -> &'a FieldPlan {
        let (plan, before) = self.plan(field);
        self.line.stamp(before);
        plan
    }

    /// The same as [`FieldRenderer::plan`] for an element of an array, or what an optional holds.
    #[inline(never)]
    fn element(&mut self, plan: &'a FieldPlan) -> &'a Stamp {
        let Some(count) = self.stack.last_mut() else {
            return &plan.before;
        };
        let index = *count;
        *count += 1;
        let prepared = self.indexes.get(index as usize);
        match (plan.element, prepared) {
            (Element::Bare, _) => self.line.push(if index == 0 { b" " } else { b", " }),
            (_, Some(prepared)) if plan.before.is_empty() => return prepared,
            (_, Some(prepared)) => self.line.stamp(prepared),
            (_, None) => write_index(index, self.line),
        }
        &plan.before
    }

    #[inline]
    fn end(&mut self) {
        if !self.reset.is_empty() {
            self.line.push(self.reset.as_bytes());
        }
    }

    /// Writes an integer that has labels or another base than 10: see [`Visitor::uint`].
    #[inline(never)]
    fn special(&mut self, plan: &FieldPlan, bits: u64, decimal: impl FnOnce(&mut Line)) {
        match &plan.value {
            Value::Usual | Value::Flags(_) => decimal(self.line),
            Value::Based(based) => based.write(bits, self.line),
            Value::Labeled(labels, based) | Value::LabeledBits(labels, based, _) => {
                let is_written = match &plan.value {
                    Value::LabeledBits(_, _, of_bits) => of_bits.write(bits, self.line),
                    _ => false,
                };
                if !is_written {
                    labels.write(bits, self.line);
                }
                match based {
                    Some(based) => based.write(bits, self.line),
                    None => decimal(self.line),
                }
                self.end();
                return self.line.push(b" )");
            }
        }
        self.end();
    }
}

impl Visitor for FieldRenderer<'_> {
    #[inline]
    fn uint(&mut self, field: FieldId, value: u64) {
        let (plan, before) = self.plan(field);
        if let Value::Usual = plan.value {
            self.line.compose_after(before, |room| room.decimal(value));
            self.end();
        } else if let Value::Based(Based::Hexadecimal(bits)) = plan.value {
            self.line
                .compose_after(before, |room| room.hexadecimal(value & bits));
            self.end();
        } else {
            self.line.stamp(before);
            self.special(plan, value, |line| line.decimal(value));
        }
    }

    #[inline]
    fn sint(&mut self, field: FieldId, value: i64) {
        let (plan, before) = self.plan(field);
        if let Value::Usual = plan.value {
            self.line.compose_after(before, |room| room.signed(value));
            self.end();
        } else if let Value::Based(Based::Hexadecimal(bits)) = plan.value {
            self.line
                .compose_after(before, |room| room.hexadecimal(value as u64 & bits));
            self.end();
        } else {
            self.line.stamp(before);
            self.special(plan, value as u64, |line| line.signed(value));
        }
    }

    fn wide(&mut self, field: FieldId, value: Wide<'_>) {
        self.start(field);
        wide(value, self.line);
        self.end();
    }

    #[inline]
    fn float(&mut self, field: FieldId, value: f64) {
        self.start(field);
        self.line.general(value);
        self.end();
    }

    fn float128(&mut self, field: FieldId, bits: u128) {
        self.start(field);
        self.line.general128(Binary128::from_bits(bits));
        self.end();
    }

    #[inline]
    fn boolean(&mut self, field: FieldId, value: bool) {
        self.start(field);
        self.line.push(if value { b"true" } else { b"false" });
        self.end();
    }

    #[inline]
    fn bits(&mut self, field: FieldId, value: u64) {
        let plan = self.start(field);
        self.line.hexadecimal(value);
        self.end();
        let Value::Flags(flags) = &plan.value else {
            return;
        };
        let mut before: &[u8] = b" { ";
        for (_, name) in flags.iter().filter(|(bits, _)| value & bits != 0) {
            self.line.push(before);
            self.line.stamp(name);
            before = b", ";
        }
        if before == b", " {
            self.line.push(b" }");
        }
    }

    #[inline]
    fn text(&mut self, field: FieldId, text: &[u8]) {
        self.start(field);
        self.line.c_string(text);
        self.end();
    }

    fn blob(&mut self, field: FieldId, bytes: &[u8]) {
        self.start(field);
        for &byte in bytes {
            self.line.hex_byte(byte);
            self.line.push_byte(b' ');
        }
        self.line.push_byte(b'}');
    }

    #[inline]
    fn begin_struct(&mut self, field: FieldId) {
        self.start(field);
    }

    #[inline]
    fn end_struct(&mut self, _field: FieldId) {
        self.line.push(b" }");
    }

    #[inline]
    fn begin_array(&mut self, field: FieldId, _length: u64) {
        self.start(field);
        self.stack.push(0);
    }

    #[inline]
    fn end_array(&mut self, _field: FieldId) {
        self.stack.pop();
        self.line.push(b" ]");
    }

    #[inline]
    fn begin_optional(&mut self, field: FieldId, present: bool, _selector: u64) {
        self.start(field);
        self.line.push(if present { b"{ " } else { b"<none>" });
        self.stack.push(present.into());
    }

    #[inline]
    fn end_optional(&mut self, _field: FieldId) {
        if self.stack.pop() == Some(1) {
            self.line.push(b" }");
        }
    }

    #[inline]
    fn begin_variant(&mut self, field: FieldId, _selected: u32, _selector: u64) {
        self.start(field);
    }

    #[inline]
    fn end_variant(&mut self, _field: FieldId) {
        self.line.push(b" }");
    }
}
