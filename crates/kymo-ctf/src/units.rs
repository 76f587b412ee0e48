//! Where the parts of a structure lie, as far as their classes determine it.
//!
//! No bit field crosses a boundary between units of its type (CTF 1.8.3 §4.1.6), and these are counted
//! from the beginning of its structure, as in C.

use std::borrow::Cow;

use crate::class::{FieldClass, Length, Member};

/// Where a field lies, as far as its class determines it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    /// [`FieldClass::align`].
    pub(crate) all: u32,
    /// [`FieldClass::begin_align`].
    pub(crate) begin: u32,
    /// Its bits, from a place that is as aligned.
    pub(crate) size: Option<u64>,
}

impl Extent {
    /// That of a class.
    pub(crate) fn of(class: &FieldClass) -> Self {
        match class {
            FieldClass::Struct { members, min_align } => {
                let mut before = Members::new(members, *min_align);
                for member in members {
                    match before.padding(&member.class) {
                        Some(padding) => before.pass_bits(&member.class, padding),
                        None => before.pass(Self::of(&member.class)),
                    }
                }
                before.extent()
            }
            FieldClass::Array {
                element,
                length,
                min_align,
                ..
            } => Self::of(element).repeated(length, *min_align),
            leaf => Self::of_leaf(leaf, leaf.align()),
        }
    }

    /// The value for a class without parts that is aligned to `align` bits.
    pub(crate) fn of_leaf(class: &FieldClass, align: u32) -> Self {
        let size = match class {
            FieldClass::SizedText { length, .. } | FieldClass::Blob { length, .. } => {
                match length {
                    Length::Static(length) => length.checked_mul(8),
                    _ => None,
                }
            }
            // Where there is a unit, the place of the field decides.
            class => (class.layout())
                .filter(|layout| layout.unit.is_none())
                .map(|layout| layout.bits.into()),
        };
        Self {
            all: align,
            begin: align,
            size,
        }
    }

    /// That of an array of elements that have this one.
    pub(crate) fn repeated(self, length: &Length, min_align: u32) -> Self {
        let all = self.all.max(min_align);
        let begin = self.begin.max(min_align);
        match length {
            Length::Inline(length) => Self {
                all: all.max(length.align()),
                begin: length.align(),
                size: None,
            },
            Length::Dynamic(_) => Self {
                all,
                begin,
                size: None,
            },
            // What has a known size begins as aligned as anything in it: all elements have the same
            // size, and there may be more of them than could be gone through.
            Length::Static(length) => Self {
                all,
                begin,
                size: match length.checked_sub(1) {
                    Some(steps) => self.size.and_then(|size| {
                        let stride = size.checked_next_multiple_of(self.all.into())?;
                        steps.checked_mul(stride)?.checked_add(size)
                    }),
                    None => Some(0),
                },
            },
        }
    }
}

/// The members of a structure so far.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Members {
    /// What the structure is aligned to, in bits; where no member has a unit, as far as that is
    /// known.
    align: u32,
    /// Bits since the structure's beginning, or since the last member of which the size or the place
    /// depends on the packet.
    offset: u64,
    /// Whether they count from the structure's beginning.
    is_whole: bool,
}

impl Members {
    /// None yet of those that there are.
    pub(crate) fn new(members: &[Member], min_align: u32) -> Self {
        let has_units = members.iter().any(|member| {
            let layout = member.class.layout();
            layout.is_some_and(|layout| layout.unit.is_some())
        });
        let of_members = members.iter().filter(|_| has_units);
        let aligns = of_members.map(|member| member.class.align());
        Self {
            align: aligns.fold(min_align, u32::max),
            offset: 0,
            is_whole: true,
        }
    }

    /// The padding in front of a bit field that comes next, in bits behind its own alignment. `None`
    /// of other members, and where its place in the packet decides: boundaries of a structure that
    /// is as aligned as the unit are boundaries of the packet, whatever lies before.
    pub(crate) fn padding(&self, class: &FieldClass) -> Option<u64> {
        let layout = class.layout()?;
        let unit = layout.unit?;
        let Some(start) = self.start(layout.align) else {
            return (unit > self.align).then_some(0);
        };
        if !self.is_whole && unit <= self.align {
            return None;
        }
        let used = start % u64::from(unit);
        let is_across = used + u64::from(layout.bits) > unit.into();
        Some(if is_across { u64::from(unit) - used } else { 0 })
    }

    /// Whether a multiple of a unit from the structure's beginning is one in the packet.
    pub(crate) fn is_aligned_to(&self, unit: u32) -> bool {
        self.is_whole && unit <= self.align
    }

    /// Goes on behind a member.
    pub(crate) fn pass(&mut self, part: Extent) {
        let end = self.start(part.begin).and_then(|start| {
            let size = part.size?;
            start.checked_add(size)
        });
        self.align = self.align.max(part.all);
        self.is_whole &= end.is_some();
        self.offset = end.unwrap_or(0);
    }

    /// Goes on behind a bit field and the padding in front of it.
    pub(crate) fn pass_bits(&mut self, class: &FieldClass, padding: u64) {
        let align = class.align();
        let bits = class.layout().map_or(0, |layout| u64::from(layout.bits));
        self.pass(Extent {
            all: align,
            begin: align,
            size: padding.checked_add(bits),
        });
    }

    /// That of the whole.
    pub(crate) fn extent(&self) -> Extent {
        Extent {
            all: self.align,
            begin: self.align,
            size: self.is_whole.then_some(self.offset),
        }
    }

    fn start(&self, align: u32) -> Option<u64> {
        match self.is_whole || align == 1 {
            true => self.offset.checked_next_multiple_of(align.into()),
            false => None,
        }
    }
}

/// What is an option or content: as a bit field, at the beginning of its unit.
pub(crate) fn at_beginning(class: &FieldClass) -> Cow<'_, FieldClass> {
    match class.layout().and_then(|layout| layout.unit) {
        Some(_) => Cow::Owned(without_unit(class, class.align())),
        None => Cow::Borrowed(class),
    }
}

/// A bit field without its unit and with another alignment.
pub(crate) fn without_unit(class: &FieldClass, align: u32) -> FieldClass {
    let mut class = class.clone();
    if let Some(layout) = class.layout_mut() {
        (layout.unit, layout.align) = (None, align);
    }
    class
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::any::any_class;

    fn array(element: FieldClass, length: u64) -> FieldClass {
        FieldClass::Array {
            element: Box::new(element),
            length: Length::Static(length),
            min_align: 1,
            roles: Vec::new(),
        }
    }

    /// Where a field ends that may begin at a place, in bits from one that is as aligned as
    /// anything in it.
    fn end(class: &FieldClass, start: u64) -> Option<u64> {
        let extent = Extent::of(class);
        let begin = start.checked_next_multiple_of(extent.begin.into())?;
        begin.checked_add(extent.size?)
    }

    proptest! {
        #[test]
        fn an_array_ends_where_its_elements_one_by_one_do(
            element in any_class(),
            length in 0u64..40,
            start in 0u64..300,
        ) {
            let class = array(element.clone(), length);
            let begin = start.next_multiple_of(class.begin_align().into());
            let stepped = (0..length).try_fold(begin, |at, _| end(&element, at));
            prop_assert_eq!(end(&class, start), stepped);
        }
    }

    #[test]
    fn arrays_of_arrays_end_without_being_gone_through() {
        let byte = || {
            FieldClass::unsigned(
                crate::class::BitLayout::new(8, 8, kymo_machine::ByteOrder::Little),
                &[],
            )
        };
        let nested = |levels, length| (0..levels).fold(byte(), |class, _| array(class, length));
        assert_eq!(end(&nested(12, 20), 1), Some(8 + 8 * 20u64.pow(12)));
        assert_eq!(
            end(&nested(1, u32::MAX.into()), 0),
            Some(8 * u64::from(u32::MAX))
        );
        assert_eq!(end(&nested(4, u32::MAX.into()), 0), None);
    }
}
