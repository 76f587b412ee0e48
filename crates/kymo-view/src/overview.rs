//! What is known of all rows of each track, as far as recordings have been read.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use kymo::timeline::Bin;

use crate::notices::Notice;
use crate::scene::Scene;
use crate::slices::Slices;

/// A track and what is known of all its rows.
#[derive(Clone, Debug)]
pub(crate) struct Shown {
    pub(crate) number: u32,
    pub(crate) recording: usize,
    pub(crate) bin: Bin,
    pub(crate) is_estimate: bool,
    /// The generation from which on it is so.
    pub(crate) since: u64,
}

#[derive(Debug, Default)]
pub(crate) struct State {
    /// Grows whenever the rest changes.
    pub(crate) generation: u64,
    pub(crate) is_whole: bool,
    /// In the order of recordings and paths.
    pub(crate) shown: Vec<Shown>,
    /// Since when these tracks are shown in this order.
    pub(crate) order_since: u64,
    /// By recording, whether no more becomes known of its tracks, and its rows without a time.
    settled: Vec<Option<u64>>,
    pub(crate) untimed: u64,
    pub(crate) slices: Arc<Slices>,
    /// Since when there are these slices.
    pub(crate) slices_since: u64,
    pub(crate) notices: Vec<Notice>,
    /// Faults that were met, as people read them.
    pub(crate) faults: Vec<(usize, String)>,
    /// Whether damage was looked for in all recordings.
    pub(crate) is_checked: bool,
    pub(crate) bytes_read: u64,
    /// Whether nothing more becomes known.
    pub(crate) is_settled: bool,
}

impl State {
    /// What is shown at first: as long as nothing else is known, what was known of the recordings before.
    pub(crate) fn after(before: &Self) -> Self {
        Self {
            generation: before.generation,
            shown: before.shown.clone(),
            order_since: before.order_since,
            ..Self::default()
        }
    }

    /// What is shown at first after recordings that were others: nothing, under a later generation.
    pub(crate) fn behind(before: &Self) -> Self {
        let generation = before.generation + 1;
        Self {
            generation,
            order_since: generation,
            ..Self::default()
        }
    }

    /// From the first to the last row of all tracks.
    pub(crate) fn range(&self) -> Option<(i64, i64)> {
        let bins = self.shown.iter().map(|track| &track.bin);
        let timed = bins.filter(|bin| bin.count > 0 && bin.first <= bin.last);
        let range = timed.fold((i64::MAX, i64::MIN), |(begin, end), bin| {
            (begin.min(bin.first), end.max(bin.last))
        });
        (range.0 <= range.1).then_some(range)
    }

    /// The tracks of a recording.
    fn of_recording(&self, recording: usize) -> &[Shown] {
        let from = self
            .shown
            .partition_point(|track| track.recording < recording);
        let to = self
            .shown
            .partition_point(|track| track.recording <= recording);
        &self.shown[from..to]
    }

    /// Takes what is known now. What has not changed keeps its generation.
    fn take(&mut self, mut shown: Vec<Shown>, is_whole: bool) {
        let generation = self.generation + 1;
        let before: HashMap<u32, &Shown> = self
            .shown
            .iter()
            .map(|track| (track.number, track))
            .collect();
        for track in &mut shown {
            let old = before.get(&track.number).filter(|old| {
                old.bin == track.bin
                    && old.is_estimate == track.is_estimate
                    && old.recording == track.recording
            });
            track.since = old.map_or(generation, |old| old.since);
        }
        let numbers = |all: &[Shown]| all.iter().map(|track| track.number).collect::<Vec<_>>();
        if numbers(&shown) != numbers(&self.shown) {
            self.order_since = generation;
        }
        let is_new = |track: &Shown| track.since == generation;
        if is_whole != self.is_whole || self.order_since == generation || shown.iter().any(is_new) {
            self.generation = generation;
        }
        self.shown = shown;
        self.is_whole = is_whole;
    }
}

impl Scene {
    /// Looks at the tracks of which more may be known. Returns whether all is known.
    pub(crate) fn publish(&self) -> bool {
        match &self.wanted {
            Some(_) => self.publish_matches(),
            None => self.publish_overviews(),
        }
    }

    /// The rows that were found of a filter.
    fn publish_matches(&self) -> bool {
        let Some(found) = &self.wanted else {
            return true;
        };
        let mut found = found.lock();
        let numbers: Vec<u32> = found.tracks().collect();
        let is_estimate = !found.is_done || found.is_cut;
        let mut shown: Vec<Shown> = numbers
            .into_iter()
            .filter_map(|number| {
                let mut bin = Bin::default();
                for (_, found_bin) in found.bins(number, i64::MIN, 1 << 63, i64::MAX) {
                    bin.add(&found_bin);
                }
                Some(Shown {
                    number,
                    recording: self.tracks.get(number)?.0,
                    bin,
                    is_estimate,
                    since: 0,
                })
            })
            .collect();
        let is_whole = found.is_done;
        drop(found);
        shown.sort_by_cached_key(|row| {
            self.tracks
                .get(row.number)
                .map(|(at, track)| (at, track.path))
        });
        let mut state = self.state();
        state.take(shown, is_whole);
        is_whole
    }

    fn publish_overviews(&self) -> bool {
        let is_whole = self.index.wait_for(Duration::ZERO);
        let mut settled = std::mem::take(&mut self.state().settled);
        let count = self.recordings().len();
        settled.resize(count, None);
        let mut looked_at = Vec::new();
        for (recording, settled) in settled.iter_mut().enumerate() {
            if settled.is_some() {
                continue;
            }
            let overview = self.index.overview(recording);
            let shown = overview.tracks.into_iter().filter_map(|(track, bin)| {
                Some(Shown {
                    number: self.tracks.number(recording, &track)?,
                    recording,
                    bin,
                    is_estimate: overview.is_estimate,
                    since: 0,
                })
            });
            looked_at.push((recording, shown.collect::<Vec<_>>()));
            *settled = (!overview.is_estimate).then_some(overview.untimed);
        }
        let mut state = self.state();
        let mut shown = Vec::new();
        let mut looked_at = looked_at.into_iter().peekable();
        for recording in 0..count {
            match looked_at.next_if(|looked_at| looked_at.0 == recording) {
                Some((_, own)) => shown.extend(own),
                None => shown.extend_from_slice(state.of_recording(recording)),
            }
        }
        state.take(shown, is_whole);
        state.untimed = settled.iter().flatten().sum();
        state.settled = settled;
        state.bytes_read = self.index.bytes_read();
        is_whole
    }
}
