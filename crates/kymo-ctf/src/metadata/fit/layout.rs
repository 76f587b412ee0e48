//! Where fields lie, and how other classes make them lie in the same place.

use crate::class::{Dialect, FieldClass, Length};
use crate::units::{Extent, Members, without_unit};

/// A bit field that must not cross a unit, at a known place in a structure: it lies where it did, whatever
/// is known of units.
pub(super) fn at_its_unit(class: &FieldClass, before: &Members) -> Option<FieldClass> {
    let layout = class.layout()?;
    let unit = layout.unit?;
    match before.padding(class)? {
        0 => Some(without_unit(class, layout.align)),
        _ if before.is_aligned_to(unit) => Some(without_unit(class, layout.align.max(unit))),
        _ => None,
    }
}

/// Aligns the elements of an array to what the array is aligned to, where they lie there anyway;
/// else returns `false`.
pub(super) fn raise(element: &mut FieldClass, align: u32, to: Dialect) -> bool {
    let size = Extent::of(element).size;
    if size.is_none_or(|size| size % u64::from(align) != 0) {
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
