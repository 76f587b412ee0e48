//! Where the numbers and texts of events of a class are: known without running a program.

use kymo_model::FieldId;
use kymo_model::batch::{Layout, Place};

use super::end::{End, mask, number};
use super::op::{Count, Op, Program};
use super::skip::{Fixed, fixed};
use crate::class::Encoding;

/// Where the values of fields are in the events of a class.
#[derive(Clone, Debug, Default)]
pub(crate) struct Places {
    /// What the first of the fields is aligned to, in bits, less one.
    pub mask: u64,
    /// By field.
    places: Vec<(FieldId, Place)>,
}

impl Places {
    /// The places of the fields that a program decodes. Without an `end`, those alone that count from where the fields
    /// begin.
    pub(super) fn of(program: &Program, end: Option<&End>) -> Self {
        let mut places = Self::default();
        // What is counted from, its alignment if that is known, and the bits from there.
        let (mut base, mut aligned, mut bits) = (0, None, Some(0u64));
        let mut ops = &program.ops[..];
        while let Some((op, rest)) = ops.split_first() {
            let (body, behind) = rest.split_at(op.body().min(rest.len()));
            ops = behind;
            if matches!(
                op,
                Op::EndStruct { .. } | Op::Save { .. } | Op::Clear { .. }
            ) {
                continue;
            }
            let (layout, size) = match (op, fixed_or_array(op, body)) {
                (_, Some(fixed)) => (Some(fixed.align), Some(fixed.bits)),
                (Op::Text(at), None) => (Some(at.align()), None),
                (
                    Op::Array {
                        count: Count::Slot(_),
                        ..
                    }
                    | Op::Blob { .. }
                    | Op::SizedText { .. },
                    None,
                ) => (None, None),
                _ => break,
            };
            let mask_of = layout.map(mask);
            if let (None, Some(own)) = (aligned, mask_of) {
                aligned = Some(own);
                if base == 0 {
                    places.mask = own;
                }
            }
            let begin = match (mask_of, aligned, bits) {
                (Some(mask), Some(aligned), Some(bits)) if mask <= aligned => {
                    bits.checked_next_multiple_of(mask + 1)
                }
                _ => None,
            };
            if let (Some(begin), Some(aligned)) = (begin, aligned)
                && let Some((field, layout)) = layout_of(op)
                && let Ok(offset) = usize::try_from(begin / 8)
                // What is aligned to less than a byte has no place in bytes.
                && aligned >= 7
            {
                let mask = (aligned / 8) as usize;
                let place = Place {
                    base,
                    mask,
                    offset,
                    layout,
                };
                places.places.push((field, place));
            }
            match size {
                Some(size) => bits = begin.and_then(|begin| begin.checked_add(size)),
                None => {
                    base += 1;
                    (aligned, bits) = (None, Some(0));
                }
            }
        }
        if end.is_none_or(|end| end.varying() != base) {
            places.places.retain(|(_, place)| place.base == 0);
        }
        places
    }

    /// The place of a field.
    pub(crate) fn get(&self, field: FieldId) -> Option<Place> {
        let mut places = self.places.iter();
        places
            .find(|(known, _)| *known == field)
            .map(|&(_, place)| place)
    }
}

/// Alignment and size of what an instruction reads, if both are always the same; `body` are those within it.
fn fixed_or_array(op: &Op, body: &[Op]) -> Option<Fixed> {
    let &Op::Array {
        align,
        count: Count::Static(count),
        ..
    } = op
    else {
        return fixed(op);
    };
    let mut element = Fixed { align: 0, bits: 0 };
    for (position, op) in body.iter().enumerate() {
        if matches!(op, Op::EndStruct { .. }) {
            continue;
        }
        let part = fixed(op)?;
        if position == 0 {
            element.align = part.align;
        }
        if part.align > element.align {
            return None;
        }
        let begin = element.bits.checked_next_multiple_of(1 << part.align)?;
        element.bits = begin.checked_add(part.bits)?;
    }
    let stride = element.bits.checked_next_multiple_of(1 << element.align)?;
    let bits = match count.checked_sub(1) {
        None => 0,
        // The first element may be aligned to more than the array.
        Some(_) if element.align > align => return None,
        Some(steps) => steps.checked_mul(stride)?.checked_add(element.bits)?,
    };
    Some(Fixed { align, bits })
}

/// The field of which an instruction reads the value, and how it lies there.
fn layout_of(op: &Op) -> Option<(FieldId, Layout)> {
    match *op {
        Op::Text(at) => Some((at.field, Layout::Text)),
        Op::SizedText {
            at,
            encoding: Encoding::Utf8,
            length: Count::Static(length),
        } => Some((at.field, Layout::SizedText(usize::try_from(length).ok()?))),
        ref op => number(op).map(|(at, number)| (at.field, Layout::Number(number))),
    }
}
