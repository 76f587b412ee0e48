//! Long times in which nothing happens, which the page may fold.

use std::sync::Arc;

use crate::scene::Scene;

/// Gaps at most.
const MOST_GAPS: usize = 64;

/// Resolution in which gaps are looked for.
const COLUMNS: usize = 4096;

impl Scene {
    /// The longest times without an event or slice on any of some tracks, each at least one part in `least` of all
    /// time. They end a little before something happens, and begin a little after.
    pub(crate) fn gaps(self: &Arc<Self>, tracks: &[u32], least: u64) -> Vec<(i64, i64)> {
        let Some((begin, end)) = self.state().range() else {
            return Vec::new();
        };
        let (_, bins) = self.bins(None, tracks, begin, end, COLUMNS);
        let bins = bins.iter().flat_map(|bin| &bin.bins);
        let mut busy: Vec<(i64, i64)> = bins.map(|(_, bin)| (bin.first, bin.last)).collect();
        let slices = Arc::clone(&self.state().slices);
        let pixel = (end.abs_diff(begin) / COLUMNS as u64).max(1);
        for &track in tracks {
            let drawn = slices.draw(track, (begin, end), pixel, |_| true);
            busy.extend(
                drawn
                    .iter()
                    .map(|slice| (slice.slice.begin, slice.slice.end)),
            );
        }
        between(busy, end.abs_diff(begin) / least.max(2))
    }
}

/// The longest gaps between ranges, in order of time.
fn between(mut busy: Vec<(i64, i64)>, least: u64) -> Vec<(i64, i64)> {
    busy.sort_unstable();
    let mut gaps = Vec::new();
    let mut last: Option<i64> = None;
    for (begin, end) in busy {
        if let Some(last) = last.filter(|&last| last < begin) {
            let length = begin.abs_diff(last);
            // So that what happens at the edges keeps some room.
            let room = i64::try_from(length / 50).unwrap_or(i64::MAX);
            if length >= least.max(100) {
                gaps.push((last + room, begin - room));
            }
        }
        last = Some(last.map_or(end, |last| last.max(end)));
    }
    gaps.sort_by_key(|(begin, end)| std::cmp::Reverse(end.abs_diff(*begin)));
    gaps.truncate(MOST_GAPS);
    gaps.sort_unstable();
    gaps
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn nothing_happens_in_a_gap(
            busy in prop::collection::vec((any::<i64>(), 0u64..1 << 40), 1..40),
            least in 1u64..1 << 50,
        ) {
            let busy: Vec<_> = busy.into_iter().map(|(at, length)| (at, at.saturating_add_unsigned(length))).collect();
            let gaps = between(busy.clone(), least);
            prop_assert!(gaps.len() <= MOST_GAPS);
            prop_assert!(gaps.windows(2).all(|pair| pair[0].1 < pair[1].0));
            for &(begin, end) in &gaps {
                prop_assert!(begin < end);
                prop_assert!(busy.iter().all(|slice| slice.1 < begin || slice.0 > end));
                prop_assert!(busy.iter().any(|slice| slice.1 < begin) && busy.iter().any(|slice| slice.0 > end));
            }
        }
    }
}
