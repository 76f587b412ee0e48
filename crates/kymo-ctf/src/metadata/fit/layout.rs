//! Where fields lie, and how other classes make them lie in the same place.

use crate::class::{Dialect, FieldClass, Length};

/// A bit field that must not cross a unit, at a known place in a structure that begins at one:
/// aligned to the unit where it would cross it, it lies where it did, whatever is known of units.
pub(super) fn at_its_unit(
    class: &FieldClass,
    offset: Option<u64>,
    min_align: u32,
) -> Option<FieldClass> {
    let unit = class.layout()?.unit.filter(|unit| *unit <= min_align)?;
    let mut placed = class.clone();
    let layout = placed.layout_mut()?;
    let start = offset?.checked_next_multiple_of(layout.align.into())?;
    if start % u64::from(unit) + u64::from(layout.bits) > unit.into() {
        layout.align = layout.align.max(unit);
    }
    layout.unit = None;
    Some(placed)
}

/// Where a field ends that begins at a place, where that is known: in bits from a place that is
/// as aligned as anything in the field.
pub(super) fn end(class: &FieldClass, start: u64) -> Option<u64> {
    /// More elements than these are not worth the time.
    const MOST: u64 = 1000;
    let aligned = |align: u32| start.checked_next_multiple_of(align.into());
    if let Some(layout) = class.layout() {
        return match layout.unit {
            Some(_) => None,
            None => aligned(layout.align)?.checked_add(layout.bits.into()),
        };
    }
    match class {
        FieldClass::Struct { members, .. } => {
            let start = aligned(class.align())?;
            members
                .iter()
                .try_fold(start, |at, member| end(&member.class, at))
        }
        FieldClass::Array {
            element,
            length: Length::Static(length @ 0..=MOST),
            ..
        } => {
            let start = aligned(class.begin_align())?;
            (0..*length).try_fold(start, |at, _| end(element, at))
        }
        FieldClass::SizedText {
            length: Length::Static(length),
            ..
        }
        | FieldClass::Blob {
            length: Length::Static(length),
            ..
        } => aligned(class.align())?.checked_add(length.checked_mul(8)?),
        _ => None,
    }
}

/// Aligns the elements of an array to what the array is aligned to, where they lie there anyway;
/// else returns `false`.
pub(super) fn raise(element: &mut FieldClass, align: u32, to: Dialect) -> bool {
    if end(element, 0).is_none_or(|size| size % u64::from(align) != 0) {
        return false;
    }
    match element {
        FieldClass::Struct { .. } if to == Dialect::Rfc11 => return raise_first(element, align),
        FieldClass::Struct { min_align, .. } => *min_align = align,
        _ => match element.layout_mut() {
            Some(layout) => layout.align = align,
            None => return false,
        },
    }
    true
}

/// Aligns the first bit of a structure or array as the whole is aligned, where that does not move
/// what follows, as RFC v1.1 has it; else returns `false`.
pub(super) fn raise_first(class: &mut FieldClass, align: u32) -> bool {
    match class {
        FieldClass::Struct { members, .. } => match members.first_mut() {
            Some(first) => raise_first(&mut first.class, align),
            None => false,
        },
        FieldClass::Array {
            length: Length::Inline(length),
            ..
        } => raise_first(length, align),
        FieldClass::Array { element, .. } => raise(element, align, Dialect::Rfc11),
        _ => match class.layout_mut() {
            Some(layout) => {
                layout.align = layout.align.max(align);
                true
            }
            None => false,
        },
    }
}

/// The unit to which a structure is aligned in RFC v1.1 by a member: that of a bit field, or of an
/// array of them.
pub(super) fn unit(class: &FieldClass) -> u32 {
    match class {
        FieldClass::Array { element, .. } => unit(element),
        _ => class.layout().and_then(|layout| layout.unit).unwrap_or(1),
    }
}
