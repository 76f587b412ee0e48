//! Slices and states, nested by depth.

use std::collections::HashMap;
use std::sync::Arc;

/// Slices that are kept at most.
const MOST_SLICES: usize = 4 << 20;

/// A slice or state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slice {
    pub(crate) begin: i64,
    pub(crate) end: i64,
    pub(crate) name: u32,
    pub(crate) class: u32,
    pub(crate) depth: u32,
    /// Whether its end is not in the recording.
    pub(crate) is_open: bool,
}

/// What is drawn of a track at some resolution: a slice, or several that share a pixel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Drawn {
    pub(crate) slice: Slice,
    /// How many begin here; of several, the end is that of the last one.
    pub(crate) count: usize,
}

/// The slices of all tracks.
#[derive(Debug, Default)]
pub(crate) struct Slices {
    tracks: HashMap<u32, Vec<Slice>>,
    pub(crate) names: Vec<Arc<str>>,
    /// Whether some are missing, since there are too many.
    pub(crate) is_cut: bool,
}

/// Puts the slices of tracks together.
#[derive(Debug, Default)]
pub(crate) struct Nesting {
    slices: Slices,
    count: usize,
    numbers: HashMap<Arc<str>, u32>,
    last: i64,
}

impl Nesting {
    fn name(&mut self, name: &str) -> u32 {
        if let Some(&number) = self.numbers.get(name) {
            return number;
        }
        let number = self.slices.names.len() as u32;
        let name: Arc<str> = name.into();
        self.numbers.insert(Arc::clone(&name), number);
        self.slices.names.push(name);
        number
    }

    /// Adds a slice; without an end it lasts as long as anything. Returns whether there is room for more.
    pub(crate) fn push(
        &mut self,
        track: u32,
        (begin, end): (i64, Option<i64>),
        name: &str,
        class: u32,
    ) -> bool {
        let known_end = end.unwrap_or(begin).max(begin);
        self.last = self.last.max(known_end);
        if self.count >= MOST_SLICES {
            self.slices.is_cut = true;
            return false;
        }
        self.count += 1;
        let slice = Slice {
            begin,
            end: known_end,
            name: self.name(name),
            class,
            depth: 0,
            is_open: end.is_none(),
        };
        self.slices.tracks.entry(track).or_default().push(slice);
        true
    }

    /// Some slices are not known.
    pub(crate) fn cut(&mut self) {
        self.slices.is_cut = true;
    }

    /// Ends what is open, and finds the depths.
    pub(crate) fn finish(mut self) -> Slices {
        let last = self.last;
        for slices in self.slices.tracks.values_mut() {
            let open = slices.iter_mut().filter(|slice| slice.is_open);
            open.for_each(|slice| slice.end = last.max(slice.begin));
            slices.sort_by_key(|slice| (slice.begin, std::cmp::Reverse(slice.end)));
            // The ends of those that the next one may lie in.
            let mut around: Vec<i64> = Vec::new();
            for slice in slices.iter_mut() {
                while around.last().is_some_and(|&end| end <= slice.begin) {
                    around.pop();
                }
                slice.depth = around.len() as u32;
                around.push(slice.end);
            }
            slices.sort_by_key(|slice| (slice.depth, slice.begin));
        }
        self.slices
    }
}

impl Slices {
    /// The depths of a track: how many rows it is drawn on.
    pub(crate) fn depths(&self, track: u32) -> usize {
        let last = self.tracks.get(&track).and_then(|slices| slices.last());
        last.map_or(0, |last| last.depth as usize + 1)
    }

    /// The tracks that have slices.
    pub(crate) fn tracks(&self) -> impl Iterator<Item = u32> {
        self.tracks.keys().copied()
    }

    /// What is drawn of a track at `pixel` nanoseconds per pixel. Only slices for which `wants` is true.
    pub(crate) fn draw(
        &self,
        track: u32,
        (begin, end): (i64, i64),
        pixel: u64,
        mut wants: impl FnMut(&Slice) -> bool,
    ) -> Vec<Drawn> {
        let mut drawn: Vec<Drawn> = Vec::new();
        let mut rest = self.tracks.get(&track).map_or(&[][..], Vec::as_slice);
        while let Some(first) = rest.first() {
            let depth = first.depth;
            let (row, others) = rest.split_at(rest.partition_point(|slice| slice.depth <= depth));
            rest = others;
            // On a depth, none begins before the one before it has ended.
            let from = row.partition_point(|slice| slice.end < begin);
            let to = row.partition_point(|slice| slice.begin <= end);
            let row = row.get(from..to).unwrap_or_default();
            let mut next = 0;
            while let Some(slice) = row.get(next) {
                let is_narrow = slice.end.abs_diff(slice.begin) < pixel;
                let edge = slice.begin.saturating_add_unsigned(pixel);
                let count = match is_narrow {
                    true => row[next..]
                        .partition_point(|slice| slice.begin < edge)
                        .max(1),
                    false => 1,
                };
                let group = &row[next..next + count];
                next += count;
                let mut wanted = group.iter().filter(|slice| wants(slice));
                if let Some(first) = wanted.next() {
                    let (more, last) =
                        wanted.fold((0, first.end), |(count, _), slice| (count + 1, slice.end));
                    drawn.push(Drawn {
                        slice: Slice {
                            end: last,
                            ..*first
                        },
                        count: 1 + more,
                    });
                }
            }
        }
        drawn
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn slices_nest() {
        let mut nesting = Nesting::default();
        nesting.push(0, (20, Some(30)), "inner", 2);
        nesting.push(0, (10, Some(40)), "outer", 1);
        nesting.push(0, (60, Some(65)), "whole", 3);
        nesting.push(0, (50, None), "never ends", 1);
        let slices = nesting.finish();
        let drawn = slices.draw(0, (0, 100), 1, |_| true);
        let shown: Vec<_> = drawn
            .iter()
            .map(|drawn| {
                let name = &*slices.names[drawn.slice.name as usize];
                (
                    name,
                    drawn.slice.begin,
                    drawn.slice.end,
                    drawn.slice.depth,
                    drawn.slice.is_open,
                )
            })
            .collect();
        assert_eq!(
            shown,
            [
                ("outer", 10, 40, 0, false),
                ("never ends", 50, 65, 0, true),
                ("inner", 20, 30, 1, false),
                ("whole", 60, 65, 1, false),
            ]
        );
    }

    proptest! {
        /// Slices of a depth do not overlap, and drawing loses none.
        #[test]
        fn all_slices_are_counted(
            slices in prop::collection::vec((0i64..1000, 0u64..200), 0..60),
            pixel in 1u64..100,
        ) {
            let mut nesting = Nesting::default();
            for &(begin, duration) in &slices {
                nesting.push(7, (begin, Some(begin.saturating_add_unsigned(duration))), "", 0);
            }
            let all = nesting.finish();
            let exact = all.draw(7, (i64::MIN, i64::MAX), 1, |_| true);
            for pair in exact.windows(2) {
                let (a, b) = (pair[0].slice, pair[1].slice);
                prop_assert!(a.depth < b.depth || a.end <= b.begin);
            }
            let drawn = all.draw(7, (i64::MIN, i64::MAX), pixel, |_| true);
            let count: usize = drawn.iter().map(|drawn| drawn.count).sum();
            prop_assert_eq!(count, slices.len());
        }
    }
}
