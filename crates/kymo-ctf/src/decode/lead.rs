//! The fields with which events begin that are always at the same place: they are read where they are, and the
//! rest of the program goes on behind them.

use kymo_model::Visitor;

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

    /// Tells a visitor of the numbers of an event whose fields begin at a bit, and gives where they end; `None`,
    /// with nothing told, where the content ends before. `bytes` are the whole bytes of the content.
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
                number(op, bytes.get(*place..)?, v);
            }
        }
        Some(end)
    }
}

/// Tells a visitor of the number at the beginning of some bytes.
#[inline(always)]
fn number<V: Visitor>(op: &Op, bytes: &[u8], v: &mut V) {
    macro_rules! tell {
        ($($op:ident $type:ident $from:ident $call:ident)*) => {
            match op {
                $(Op::$op(at) => {
                    let bytes = bytes.first_chunk().copied().unwrap_or_default();
                    v.$call(at.field, $type::$from(bytes).into());
                })*
                _ => {}
            }
        };
    }
    tell! {
        U8 u8 from_le_bytes uint
        U16Le u16 from_le_bytes uint
        U16Be u16 from_be_bytes uint
        U32Le u32 from_le_bytes uint
        U32Be u32 from_be_bytes uint
        U64Le u64 from_le_bytes uint
        U64Be u64 from_be_bytes uint
        S8 i8 from_le_bytes sint
        S16Le i16 from_le_bytes sint
        S16Be i16 from_be_bytes sint
        S32Le i32 from_le_bytes sint
        S32Be i32 from_be_bytes sint
        S64Le i64 from_le_bytes sint
        S64Be i64 from_be_bytes sint
        F32Le f32 from_le_bytes float
        F32Be f32 from_be_bytes float
        F64Le f64 from_le_bytes float
        F64Be f64 from_be_bytes float
    }
}
