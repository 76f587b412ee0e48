//! The fields with which events begin that are always at the same place: they are read where they are, and the
//! rest of the program goes on behind them.

use kymo_model::{FieldId, Visitor};

use super::op::Op;
use super::skip::fixed;

/// The fields at fixed places with which a program begins.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Lead {
    /// What they begin at is aligned to, in bits, less one.
    mask: u64,
    /// The bits from there to their end.
    bits: u64,
    /// The numbers that are read, and the byte at which each one is.
    numbers: Vec<(usize, Op)>,
    /// The number of instructions that they are.
    pub ops: usize,
}

impl Lead {
    /// The lead of a list of instructions.
    pub(super) fn of(ops: &[Op]) -> Self {
        let mut lead = Self::default();
        for (position, op) in ops.iter().enumerate() {
            let is_noted = matches!(
                ops.get(position + 1),
                Some(
                    Op::Save { .. }
                        | Op::EventClassId
                        | Op::Clock { .. }
                        | Op::Role { .. }
                        | Op::Uuid
                )
            );
            let is_plain = matches!(op, Op::Skip { .. }) || op.is_number();
            let Some(fixed) = fixed(op).filter(|_| is_plain && !is_noted) else {
                break;
            };
            let mask = (1 << fixed.align) - 1;
            if position == 0 {
                lead.mask = mask;
            }
            let place = lead.bits.checked_next_multiple_of(mask + 1);
            let end = place.and_then(|place| place.checked_add(fixed.bits));
            let (Some(place), Some(end), true) = (place, end, mask <= lead.mask) else {
                break;
            };
            if op.is_number() {
                lead.numbers.push(((place / 8) as usize, *op));
            }
            lead.bits = end;
            lead.ops = position + 1;
        }
        lead
    }

    /// Passes the numbers of an event whose fields begin at a bit to a visitor, and returns where they end; `None`,
    /// with nothing passed, if the content ends before. `bytes` are the whole bytes of the content.
    #[inline]
    pub(super) fn visit<V: Visitor>(
        &self,
        bytes: &[u8],
        content_bits: u64,
        at: u64,
        v: &mut V,
    ) -> Option<u64> {
        let begin = (at + self.mask) & !self.mask;
        let end = begin
            .checked_add(self.bits)
            .filter(|&end| end <= content_bits)?;
        if !self.numbers.is_empty() {
            let bytes = bytes.get((begin / 8) as usize..(end / 8) as usize)?;
            for (place, op) in &self.numbers {
                // One call of each kind, so that it is worth compiling into here.
                match number(op, bytes.get(*place..)?)? {
                    (field, Number::Uint(value)) => v.uint(field, value),
                    (field, Number::Sint(value)) => v.sint(field, value),
                    (field, Number::Float(value)) => v.float(field, value),
                }
            }
        }
        Some(end)
    }
}

/// A number of any kind.
enum Number {
    Uint(u64),
    Sint(i64),
    Float(f64),
}

/// The number at the beginning of some bytes, and its field.
#[inline(always)]
fn number(op: &Op, bytes: &[u8]) -> Option<(FieldId, Number)> {
    macro_rules! numbers {
        ($($op:ident $type:ident $from:ident $kind:ident)*) => {
            match op {
                $(Op::$op(at) => {
                    let value = $type::$from(*bytes.first_chunk()?);
                    Some((at.field, Number::$kind(value.into())))
                })*
                _ => None,
            }
        };
    }
    numbers! {
        U8 u8 from_le_bytes Uint
        U16Le u16 from_le_bytes Uint
        U16Be u16 from_be_bytes Uint
        U32Le u32 from_le_bytes Uint
        U32Be u32 from_be_bytes Uint
        U64Le u64 from_le_bytes Uint
        U64Be u64 from_be_bytes Uint
        S8 i8 from_le_bytes Sint
        S16Le i16 from_le_bytes Sint
        S16Be i16 from_be_bytes Sint
        S32Le i32 from_le_bytes Sint
        S32Be i32 from_be_bytes Sint
        S64Le i64 from_le_bytes Sint
        S64Be i64 from_be_bytes Sint
        F32Le f32 from_le_bytes Float
        F32Be f32 from_be_bytes Float
        F64Le f64 from_le_bytes Float
        F64Be f64 from_be_bytes Float
    }
}
