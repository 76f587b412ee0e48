//! Which option a selector selects, found without trying one after the other: there may be as many
//! ranges as the metadata has room for, and they are asked for every event.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::class::Selector;

/// Which option a selector selects.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Choice {
    /// Inclusive ranges and the option that each selects, in their order and apart from each other.
    ranges: Vec<(u64, u64, u32)>,
    /// Put over selectors to bring them into the order of the ranges: the sign bit of signed ones.
    flip: u64,
}

impl Choice {
    /// The choice between options that are each selected by what is given, all in the same type: of
    /// several that a selector selects the first.
    pub(crate) fn new<'s>(options: impl IntoIterator<Item = &'s Selector>) -> Self {
        const SIGN: u64 = 1 << 63;
        let mut choice = Self::default();
        let mut given = Vec::new();
        for (option, when) in (0..).zip(options) {
            match when {
                Selector::True => given.push((1, u64::MAX, option)),
                Selector::Unsigned(ranges) => {
                    given.extend(ranges.iter().map(|&(low, high)| (low, high, option)));
                }
                Selector::Signed(ranges) => {
                    choice.flip = SIGN;
                    let key = |value: i64| value as u64 ^ SIGN;
                    given.extend(
                        ranges
                            .iter()
                            .map(|&(low, high)| (key(low), key(high), option)),
                    );
                }
            }
        }
        given.retain(|(low, high, _)| low <= high);
        given.sort_unstable();
        choice.divide(&given);
        choice
    }

    /// Divides ranges that are sorted where options overlap.
    fn divide(&mut self, given: &[(u64, u64, u32)]) {
        // The options of ranges that have begun, and the ends of these; the first one on top.
        let mut open = BinaryHeap::new();
        let mut given = given.iter().peekable();
        let mut at = 0;
        loop {
            while open.peek().is_some_and(|&Reverse((_, high))| high < at) {
                open.pop();
            }
            if open.is_empty() {
                match given.peek() {
                    Some((low, ..)) => at = *low,
                    None => return,
                }
            }
            while let Some(&(_, high, option)) = given.next_if(|(low, ..)| *low <= at) {
                open.push(Reverse((option, high)));
            }
            let Some(&Reverse((option, high))) = open.peek() else {
                continue;
            };
            let end = match given.peek() {
                Some((low, ..)) => high.min(low - 1),
                None => high,
            };
            match self.ranges.last_mut() {
                Some((_, last, same)) if *same == option && last.checked_add(1) == Some(at) => {
                    *last = end;
                }
                _ => self.ranges.push((at, end, option)),
            }
            match end.checked_add(1) {
                Some(next) => at = next,
                None => return,
            }
        }
    }

    /// A selector that selects an option, or, for `None`, one that selects none.
    pub(crate) fn example(&self, option: Option<usize>) -> Option<u64> {
        match option {
            Some(option) => self
                .ranges()
                .find(|(.., selected)| *selected == option)
                .map(|(low, ..)| low),
            // 0 where it can be: false, or no bits at all.
            None => [0, 1]
                .into_iter()
                .chain(
                    self.ranges()
                        .flat_map(|(low, high, _)| [low.wrapping_sub(1), high.wrapping_add(1)]),
                )
                .find(|&selector| self.of(selector).is_none()),
        }
    }

    /// The inclusive ranges of selectors, and which option they select: apart from each other, those
    /// of signed selectors as bits.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = (u64, u64, usize)> {
        let flip = self.flip;
        self.ranges
            .iter()
            .map(move |&(low, high, option)| (low ^ flip, high ^ flip, option as usize))
    }

    /// Position of the option that a selector (of a signed one: its bits) selects.
    #[inline]
    pub(crate) fn of(&self, selector: u64) -> Option<usize> {
        let key = selector ^ self.flip;
        let after = self.ranges.partition_point(|(low, ..)| *low <= key);
        let (_, high, option) = self.ranges[after.checked_sub(1)?];
        (key <= high).then_some(option as usize)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Numbers that are often the same, and often at the limits.
    fn number() -> impl Strategy<Value = u64> {
        let near =
            |middle: u64| (0..8u64).prop_map(move |n| middle.wrapping_add(n).wrapping_sub(4));
        prop_oneof![4 => 0..40u64, 1 => near(0), 1 => near(1 << 63)]
    }

    proptest! {
        #[test]
        fn of_several_options_the_first_is_selected(
            options in prop::collection::vec(
                prop::collection::vec((number(), number()), 0..4), 0..6),
            signed: bool,
            selectors in prop::collection::vec(number(), 20),
        ) {
            let selector = |ranges: &Vec<(u64, u64)>| match signed {
                true => Selector::Signed(ranges.iter().map(|r| (r.0 as i64, r.1 as i64)).collect()),
                false => Selector::Unsigned(ranges.clone()),
            };
            let options: Vec<_> = options.iter().map(selector).collect();
            let choice = Choice::new(&options);
            for bits in selectors {
                let first = options.iter().position(|option| option.contains(bits));
                prop_assert_eq!(choice.of(bits), first);
            }
        }
    }

    #[test]
    fn a_boolean_selects_where_it_is_true() {
        let choice = Choice::new([&Selector::True]);
        assert_eq!(
            [0, 1, u64::MAX].map(|bits| choice.of(bits)),
            [None, Some(0), Some(0)]
        );
        assert_eq!(Choice::new([]).of(0), None);
    }
}
