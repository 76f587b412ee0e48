//! Shortens a program for those who want some fields, or only to know where it ends: other fields of a fixed
//! size on whose values nothing depends become one move.

use kymo_model::FieldId;

use super::lead::Lead;
use super::op::{BytesOp, Count, Op, OptionEntry, Program};

/// The program that ends where `program` ends, and saves what `program` saves.
pub(super) fn shorten(program: &Program) -> Program {
    narrow(program, &|_| false)
}

/// The same, which reports to a visitor what `program` reports of wanted fields. It may report others, too.
pub(super) fn narrow(program: &Program, wanted: &dyn Fn(FieldId) -> bool) -> Program {
    let mut short = Program {
        tables: program.tables.clone(),
        ..Program::default()
    };
    Shortener {
        program,
        wanted,
        short: &mut short,
    }
    .ops(&program.ops);
    short.lead = Lead::of(&short.ops);
    short
}

/// Fixed bits not yet emitted.
#[derive(Clone, Copy)]
pub(super) struct Fixed {
    pub align: u8,
    pub bits: u64,
}

struct Shortener<'p> {
    program: &'p Program,
    wanted: &'p dyn Fn(FieldId) -> bool,
    short: &'p mut Program,
}

impl Shortener<'_> {
    fn ops(&mut self, ops: &[Op]) {
        let mut pending: Option<Fixed> = None;
        let mut next = 0;
        while let Some(op) = ops.get(next) {
            next += 1;
            if matches!(op, Op::Deep) {
                // What follows is copied: shortening it would recurse.
                self.flush(&mut pending);
                let end = next + Op::whole(&ops[next..]);
                self.short.ops.extend(&ops[next - 1..end]);
                next = end;
                continue;
            }
            let needed = matches!(
                ops.get(next),
                Some(
                    Op::Save { .. }
                        | Op::EventClassId
                        | Op::Clock { .. }
                        | Op::Role { .. }
                        | Op::Uuid
                )
            );
            let is_wanted = field(op).is_some_and(self.wanted);
            if let Some(fixed) = fixed(op).filter(|_| !needed && !is_wanted) {
                self.append(&mut pending, fixed);
                continue;
            }
            if matches!(op, Op::EndStruct { .. }) && !is_wanted {
                continue;
            }
            let body = op.body();
            let inner = &ops[next..next + body];
            next += body;
            let at = self.short.ops.len();
            self.compound(op, inner);
            match self.elements(at).filter(|_| !is_wanted) {
                // Elements of a known size in a known number: fixed bits once more.
                Some(Elements::Fixed(fixed)) => {
                    self.short.ops.truncate(at);
                    self.append(&mut pending, fixed);
                    continue;
                }
                Some(Elements::Counted(op)) => {
                    self.short.ops.truncate(at);
                    self.short.ops.push(op);
                }
                None => {}
            }
            if let Some(fixed) = pending.take() {
                self.short.ops.insert(
                    at,
                    Op::Skip {
                        align: fixed.align,
                        bits: fixed.bits,
                    },
                );
            }
        }
        self.flush(&mut pending);
    }

    /// Copies an instruction and shortens those within it.
    fn compound(&mut self, op: &Op, inner: &[Op]) {
        let at = self.short.ops.len();
        self.short.ops.push(*op);
        match *op {
            Op::Variant { table, .. } => {
                let options = &self.program.tables[table as usize].entries;
                let mut entries = Vec::with_capacity(options.len());
                for option in options {
                    let start = (self.short.ops.len() - at - 1) as u32;
                    self.ops(&inner[option.start as usize..option.end as usize]);
                    let end = (self.short.ops.len() - at - 1) as u32;
                    entries.push(OptionEntry { start, end });
                }
                self.short.tables[table as usize].entries = entries;
            }
            _ => self.ops(inner),
        }
        let length = (self.short.ops.len() - at - 1) as u32;
        match &mut self.short.ops[at] {
            Op::Array { body, .. } | Op::Optional { body, .. } | Op::Variant { body, .. } => {
                *body = length
            }
            _ => {}
        }
    }

    /// What the array at the end of the result amounts to when its elements are one move.
    fn elements(&self, at: usize) -> Option<Elements> {
        let (
            &Op::Array { align, count, .. },
            &[
                Op::Skip {
                    align: element_align,
                    bits,
                },
            ],
        ) = (self.short.ops.get(at)?, self.short.ops.get(at + 1..)?)
        else {
            return None;
        };
        if bits == 0 {
            return None;
        }
        let stride = bits.checked_next_multiple_of(1 << element_align)?;
        match count {
            Count::Static(0) => Some(Elements::Fixed(Fixed { align, bits: 0 })),
            Count::Static(count) => {
                let bits = (count - 1).checked_mul(stride)?.checked_add(bits)?;
                Some(Elements::Fixed(Fixed { align, bits }))
            }
            count => {
                let (bits, stride) = (bits.try_into().ok()?, stride.try_into().ok()?);
                Some(Elements::Counted(Op::SkipArray {
                    align,
                    count,
                    bits,
                    stride,
                }))
            }
        }
    }

    /// Adds fixed bits to those pending where their distance is known.
    fn append(&mut self, pending: &mut Option<Fixed>, fixed: Fixed) {
        if let Some(before) = pending
            && fixed.align <= before.align
            && let Some(bits) = before
                .bits
                .checked_next_multiple_of(1 << fixed.align)
                .and_then(|bits| bits.checked_add(fixed.bits))
        {
            before.bits = bits;
            return;
        }
        self.flush(pending);
        *pending = Some(fixed);
    }

    fn flush(&mut self, pending: &mut Option<Fixed>) {
        if let Some(Fixed { align, bits }) = pending.take()
            && (align > 0 || bits > 0)
        {
            self.short.ops.push(Op::Skip { align, bits });
        }
    }
}

/// What an array amounts to.
enum Elements {
    Fixed(Fixed),
    Counted(Op),
}

/// The field that an instruction reports.
fn field(op: &Op) -> Option<FieldId> {
    match *op {
        Op::U8(at)
        | Op::U16Le(at)
        | Op::U16Be(at)
        | Op::U32Le(at)
        | Op::U32Be(at)
        | Op::U64Le(at)
        | Op::U64Be(at)
        | Op::S8(at)
        | Op::S16Le(at)
        | Op::S16Be(at)
        | Op::S32Le(at)
        | Op::S32Be(at)
        | Op::S64Le(at)
        | Op::S64Be(at)
        | Op::F32Le(at)
        | Op::F32Be(at)
        | Op::F64Le(at)
        | Op::F64Be(at)
        | Op::VarUint(at)
        | Op::VarSint(at)
        | Op::Text(at)
        | Op::WideText { at, .. }
        | Op::SizedText { at, .. }
        | Op::Blob { at, .. } => Some(at.field),
        Op::Bits(at) | Op::F128(at) => Some(at.field),
        Op::Wide(at) => Some(at.field),
        Op::BeginStruct { field, .. }
        | Op::EndStruct { field }
        | Op::Array { field, .. }
        | Op::Optional { field, .. }
        | Op::Variant { field, .. } => Some(field),
        Op::Save { .. }
        | Op::Clear { .. }
        | Op::EventClassId
        | Op::Clock { .. }
        | Op::Role { .. }
        | Op::Uuid
        | Op::Deep
        | Op::Skip { .. }
        | Op::SkipArray { .. } => None,
    }
}

/// Alignment and size of an instruction that reads whole bytes in a fixed number.
pub(super) fn fixed(op: &Op) -> Option<Fixed> {
    match op {
        Op::U8(at) | Op::S8(at) => bytes(at, 8),
        Op::U16Le(at) | Op::U16Be(at) | Op::S16Le(at) | Op::S16Be(at) => bytes(at, 16),
        Op::U32Le(at)
        | Op::U32Be(at)
        | Op::S32Le(at)
        | Op::S32Be(at)
        | Op::F32Le(at)
        | Op::F32Be(at) => bytes(at, 32),
        Op::U64Le(at)
        | Op::U64Be(at)
        | Op::S64Le(at)
        | Op::S64Be(at)
        | Op::F64Le(at)
        | Op::F64Be(at) => bytes(at, 64),
        &Op::BeginStruct { align, .. } => Some(Fixed { align, bits: 0 }),
        &Op::Skip { align, bits } => Some(Fixed { align, bits }),
        Op::SizedText { at, length, .. } | Op::Blob { at, length } => match length {
            Count::Static(count) => count.checked_mul(8).and_then(|bits| bytes(at, bits)),
            _ => None,
        },
        _ => None,
    }
}

fn bytes(at: &BytesOp, bits: u64) -> Option<Fixed> {
    let align = at.align();
    Some(Fixed { align, bits })
}
