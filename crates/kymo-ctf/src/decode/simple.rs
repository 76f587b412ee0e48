//! What is needed of an event class to walk over its events, close together.
//!
//! Where the next event begins depends on the class of this one: the fewer places have to be read one after the
//! other, the faster is the walk.

use super::EventDecoder;

/// An event class. Positions and sizes are in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct SimpleClass {
    /// The size of the first fields, or of all; more than any packet has if it takes a program to find the end.
    pub bytes: usize,
    /// What they are aligned to, less one.
    pub mask: u32,
    /// The alignment of the origin of offsets, in the same form.
    pub base_mask: u32,
    /// The number of values of an event whose size is known.
    pub values: u32,
    /// Position of the class in the recording, and in its stream class.
    pub class: u32,
    pub position: u32,
    /// Whether [`End`](super::end::End) finds the end, since other fields follow the first ones.
    pub has_steps: bool,
}

/// No packet has as many bytes, and no sum of a position and these overflows.
const MOST_BYTES: usize = usize::MAX / 4;

impl SimpleClass {
    const UNKNOWN: Self = Self {
        bytes: MOST_BYTES,
        mask: 0,
        base_mask: 0,
        values: 0,
        class: 0,
        position: 0,
        has_steps: false,
    };

    fn of(position: usize, decoder: &EventDecoder) -> Option<Self> {
        let end = decoder.end.as_ref()?;
        let (mask, bytes, values) = end.first_fields();
        Some(Self {
            bytes: bytes.min(MOST_BYTES),
            mask: u32::try_from(mask).ok()?,
            base_mask: u32::try_from(decoder.places.mask / 8).ok()?,
            values: u32::try_from(values).ok()?,
            class: u32::try_from(decoder.class).ok()?,
            position: u32::try_from(position).ok()?,
            has_steps: !end.is_fixed(),
        })
    }
}

/// The event classes of a stream class.
#[derive(Debug, Default)]
pub(super) struct SimpleClasses {
    /// By number, if the numbers are not far apart.
    by_id: Vec<SimpleClass>,
    /// By position.
    by_position: Vec<SimpleClass>,
    /// Whether the fields of all events begin right behind their headers.
    pub(super) is_packed: bool,
}

impl SimpleClasses {
    /// `positions` are those of the numbers, each with one added; 0 stands for no class.
    pub(super) fn new(events: &[EventDecoder], positions: &[u32]) -> Self {
        let class_of = |(position, decoder)| {
            SimpleClass::of(position, decoder).unwrap_or(SimpleClass::UNKNOWN)
        };
        let by_position: Vec<_> = events.iter().enumerate().map(class_of).collect();
        let at = |&position: &u32| {
            let place = (position as usize).checked_sub(1)?;
            by_position.get(place).copied()
        };
        Self {
            by_id: positions
                .iter()
                .map(|position| at(position).unwrap_or(SimpleClass::UNKNOWN))
                .collect(),
            is_packed: by_position
                .iter()
                .all(|class| class.mask == 0 && class.base_mask == 0),
            by_position,
        }
    }

    /// Gives the classes other positions in the recording: those at their present ones.
    pub(super) fn set_classes(&mut self, positions: &[usize]) {
        for class in self.by_id.iter_mut().chain(&mut self.by_position) {
            let position = positions.get(class.class as usize).copied();
            if let Some(Ok(position)) = position.map(u32::try_from) {
                class.class = position;
            }
        }
    }

    /// The class with a number; `position` gives its position if the numbers are far apart.
    #[inline(always)]
    pub(super) fn get(
        &self,
        id: u64,
        position: impl FnOnce() -> Option<usize>,
    ) -> Option<&SimpleClass> {
        match self.by_id.get(id as usize) {
            Some(class) => Some(class),
            None if self.by_id.is_empty() => self.by_position.get(position()?),
            None => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_get_other_positions() {
        let class_at = |class| SimpleClass {
            class,
            ..SimpleClass::UNKNOWN
        };
        let mut classes = SimpleClasses {
            by_id: vec![class_at(0), SimpleClass::UNKNOWN, class_at(2)],
            by_position: vec![class_at(0), class_at(2)],
            is_packed: true,
        };
        classes.set_classes(&[0, 1, 3, 2]);
        let class = |id| classes.get(id, || None).map(|class| class.class);
        assert_eq!([0, 1, 2, 3].map(class), [Some(0), Some(0), Some(3), None]);
        let positions = classes.by_position.iter().map(|class| class.class);
        assert_eq!(positions.collect::<Vec<_>>(), [0, 3]);
    }
}
