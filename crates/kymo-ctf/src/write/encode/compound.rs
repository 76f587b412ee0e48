//! Arrays, optionals, variants, and their lengths and selectors.

use kymo_model::{FieldId, Visitor};

use super::number::Fixed;
use super::{Encode, Expected, Frame, FrameKind, Slot};
use crate::decode::op::{Count, Op, Shown};

impl Encode<'_> {
    /// The number of elements or bytes that is there, against what it has to be.
    pub(super) fn check_count(
        &mut self,
        field: FieldId,
        count: Count,
        there: u64,
        unit: &str,
    ) -> bool {
        let expected = match count {
            Count::Static(expected) => expected,
            Count::Last => return true,
            Count::Slot(slot) => match self.slot(slot, there, field) {
                Some(expected) => expected,
                None => return false,
            },
        };
        if expected != there {
            let by = match count {
                Count::Static(_) => "its class has",
                _ => "the field of its length says",
            };
            self.fail(
                field,
                format!("{there} {unit} are given, and {by} {expected}"),
            );
        }
        expected == there
    }

    /// The value of a slot; one that is to be filled in becomes what is needed.
    pub(super) fn slot(&mut self, slot: u32, needed: u64, field: FieldId) -> Option<u64> {
        let Slot { value, filled } = self.scratch.slots[slot as usize];
        let fills = &mut self.scratch.fills;
        if !fills.searching || filled == 0 {
            return Some(value);
        }
        let fill = fills.values.get_mut(filled as usize - 1)?;
        match *fill {
            Some(other) if other != needed => {
                self.fail(
                    field,
                    format!("it needs {needed} in a field from which something else needs {other}"),
                );
                None
            }
            _ => {
                *fill = Some(needed);
                Some(needed)
            }
        }
    }

    /// Writes the length that lies before an array, text or blob.
    pub(super) fn inline_length(&mut self, length: u64) {
        if self.next < self.end
            && let Op::Bits(op) = self.program.ops[self.next]
            && op.shown == Shown::Count
        {
            let bits = u32::from(op.bits);
            if bits < 64 && length >> bits != 0 {
                return self.fail(
                    op.field,
                    format!("its length, {length}, does not fit {bits} bits"),
                );
            }
            if let Some(fixed) = Fixed::of(&self.program.ops[self.next]) {
                self.fixed(&fixed, length);
            }
        }
    }

    /// Writes the number that comes next, if it was made only to describe something that follows
    /// at once.
    pub(super) fn made_number(&mut self, value: u64) {
        let ops = &self.program.ops;
        let is_reported = |op: &Op| matches!(op, Op::Save { .. });
        if self.lenient
            && self.next < self.end
            && self.number_bits().is_some()
            && ops.get(self.next + 1).is_some_and(is_reported)
        {
            self.number(value, false);
        }
    }

    /// Begins a structure that was made only for what comes now, and its length or selector.
    pub(super) fn made_struct(&mut self) -> bool {
        let ops = &self.program.ops[self.next..self.end.max(self.next)];
        let [Op::BeginStruct { .. }, number, Op::Save { .. }, rest @ ..] = ops else {
            return false;
        };
        let is_number = matches!(number, Op::VarUint(_)) || Fixed::of(number).is_some();
        let after = rest.iter().find(|op| !matches!(op, Op::Save { .. }));
        let is_made = self.lenient
            && is_number
            && matches!(
                after,
                Some(Op::Array { .. } | Op::Blob { .. } | Op::Optional { .. } | Op::Variant { .. })
            );
        if is_made {
            self.begin_struct(FieldId(0));
        }
        is_made
    }

    pub(super) fn begin_elements(&mut self, length: u64) {
        let in_made_struct = self.made_struct();
        self.made_number(length);
        self.inline_length(length);
        if self.stop.is_some() {
            return;
        }
        let at = self.next;
        let Some(&Op::Array {
            field,
            align,
            count,
            body,
        }) = self.program.ops.get(at).filter(|_| at < self.end)
        else {
            return self.unexpected("an array");
        };
        if !self.check_count(field, count, length, "elements") || !self.align(align) {
            return;
        }
        self.scratch.frames.push(Frame {
            kind: FrameKind::Array {
                field,
                start: at + 1,
                remaining: length,
                begin: self.buffer.pos,
            },
            outer_end: self.end,
            after: at + 1 + body as usize,
            in_made_struct,
        });
        self.end = at + 1 + body as usize;
        if length == 0 {
            self.next = self.end;
        } else {
            self.next = at + 1;
            self.settle();
        }
    }

    pub(super) fn align(&mut self, align: u8) -> bool {
        let at = self.buffer.aligned(align);
        let is_room = self.room(at);
        if is_room {
            self.buffer.pos = at;
        }
        is_room
    }

    /// Leaves the current compound, whose instructions have been carried out.
    pub(super) fn leave(&mut self) {
        if let Some(frame) = self.scratch.frames.pop() {
            self.end = frame.outer_end;
            self.next = frame.after;
            self.settle();
            if frame.in_made_struct {
                self.end_struct(FieldId(0));
            }
        }
    }

    pub(super) fn begin_choice(&mut self, selected: Option<usize>) {
        if self.stop.is_some() {
            return;
        }
        let in_made_struct = self.made_choice(selected.map_or(0, |option| option as u64 + 1));
        self.choose(selected, in_made_struct);
    }

    /// Writes the selector of an optional or variant, where it was made only for that; whether a
    /// structure was begun for both.
    pub(super) fn made_choice(&mut self, selector: u64) -> bool {
        let in_made_struct = self.made_struct();
        self.made_number(selector);
        in_made_struct
    }

    /// Begins the next optional or variant, whose selector is written.
    pub(super) fn choose(&mut self, selected: Option<usize>, in_made_struct: bool) {
        if self.stop.is_some() {
            return;
        }
        let at = self.next;
        let (field, table, slot, body, is_variant) = match self.program.ops.get(at) {
            Some(&Op::Optional {
                field,
                table,
                slot,
                body,
            }) if at < self.end => (field, table, slot, body, false),
            Some(&Op::Variant {
                field,
                table,
                slot,
                body,
            }) if at < self.end => (field, table, slot, body, true),
            _ => return self.unexpected("something that may be one or another"),
        };
        let options = &self.program.tables[table as usize];
        let Slot { value, filled } = self.scratch.slots[slot as usize];
        let mut reported = options.choice.of(value);
        if filled != 0 && self.scratch.fills.searching {
            let Some(needed) = options.choice.example(selected) else {
                return self.fail(field, "no selector selects the option that is given");
            };
            if reported != selected && self.slot(slot, needed, field).is_none() {
                return;
            }
            if reported == selected && self.slot(slot, value, field).is_none() {
                return;
            }
            reported = selected;
        }
        if reported != selected {
            let name = |option: Option<usize>| match option {
                Some(option) => format!("option {option}"),
                None => "nothing".to_owned(),
            };
            return self.fail(
                field,
                format!(
                    "{} is given, and its selector, {value}, selects {}",
                    name(selected),
                    name(reported)
                ),
            );
        }
        let after = at + 1 + body as usize;
        let (start, end) = match (selected, is_variant) {
            (Some(option), true) => {
                let entry = options.entries[option];
                (at + 1 + entry.start as usize, at + 1 + entry.end as usize)
            }
            (Some(_), false) => (at + 1, after),
            (None, _) => (after, after),
        };
        self.scratch.frames.push(Frame {
            kind: FrameKind::Choice { field },
            outer_end: self.end,
            after,
            in_made_struct,
        });
        (self.next, self.end) = (start, end);
        if start < end {
            self.settle();
        }
    }

    /// Whether a structure comes next that takes the place of a variant, as RFC v1.1 has it: of
    /// sequences whose lengths are inline.
    pub(super) fn is_choice_of_sequences(&self) -> bool {
        let following = self.program.ops.get(self.next + 1..self.end);
        matches!(
            following,
            Some([Op::Bits(count), Op::Array { .. }, ..]) if count.shown == Shown::Count
        )
    }

    /// Begins such a structure, and the sequence of the option that is selected: those before it
    /// are empty.
    pub(super) fn begin_option(&mut self, selected: u32) {
        self.begin_struct(FieldId(0));
        for _ in 0..selected {
            if self.stop.is_some() {
                return;
            }
            self.no_elements();
        }
        self.begin_elements(1);
    }

    /// Ends the sequence of the option that is selected, and the structure.
    pub(super) fn end_option(&mut self) {
        self.end_elements();
        while self.stop.is_none() && matches!(self.expected(), Expected::BeginArray(_)) {
            self.no_elements();
        }
        self.end_struct(FieldId(0));
    }

    fn no_elements(&mut self) {
        self.begin_elements(0);
        self.end_elements();
    }

    pub(super) fn end_elements(&mut self) {
        if self.stop.is_some() {
            return;
        }
        match self.expected() {
            Expected::EndArray(_) => self.leave(),
            _ => self.unexpected("the end of an array"),
        }
    }
}
