//! Slices that have begun and not ended, in bounded memory.

use kymo_model::SliceRole;

use super::OTHERS;

/// What has begun and not ended, on each track the innermost last.
#[derive(Debug)]
pub(crate) struct OpenSlices<T> {
    /// By number of the track.
    tracks: Vec<OpenTrack<T>>,
    /// Those of all tracks beyond the limits.
    others: OpenTrack<T>,
    /// How many are open on all tracks.
    open: usize,
    most: usize,
    most_on_track: usize,
}

/// The open slices of a track.
#[derive(Debug)]
struct OpenTrack<T> {
    open: Vec<T>,
    /// Those within the innermost that were dropped.
    dropped: u64,
}

impl<T> Default for OpenTrack<T> {
    fn default() -> Self {
        Self {
            open: Vec::new(),
            dropped: 0,
        }
    }
}

/// What an end ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended<T> {
    /// The innermost slice.
    Slice(T),
    /// One that was dropped, since too many were open.
    Dropped,
    /// Nothing has begun.
    Nothing,
}

impl<T> OpenSlices<T> {
    /// Keeps at most `most` open slices on all tracks together, and at most `most_on_track` on each.
    pub(crate) fn new(most: usize, most_on_track: usize) -> Self {
        Self {
            tracks: Vec::new(),
            others: OpenTrack::default(),
            open: 0,
            most,
            most_on_track,
        }
    }

    #[inline]
    fn track(&mut self, track: u32) -> &mut OpenTrack<T> {
        if track == OTHERS {
            return &mut self.others;
        }
        let place = track as usize;
        if place >= self.tracks.len() {
            self.tracks.resize_with(place + 1, OpenTrack::default);
        }
        &mut self.tracks[place]
    }

    /// Begins a slice. Returns whether it is kept: not if too many are open, or the one around it was dropped.
    #[inline]
    pub(crate) fn begin(&mut self, track: u32, slice: T) -> bool {
        let (is_full, most) = (self.open >= self.most, self.most_on_track);
        let track = self.track(track);
        if is_full || track.dropped > 0 || track.open.len() >= most {
            track.dropped += 1;
            return false;
        }
        track.open.push(slice);
        self.open += 1;
        true
    }

    /// Ends the innermost slice.
    pub(crate) fn end(&mut self, track: u32) -> Ended<T> {
        if self.end_dropped(track) {
            return Ended::Dropped;
        }
        self.pop(track).map_or(Ended::Nothing, Ended::Slice)
    }

    /// Does what a row does to the slices of its track. Returns what it ends, if it ends something.
    pub(crate) fn step(
        &mut self,
        role: SliceRole,
        track: u32,
        slice: impl FnOnce() -> T,
    ) -> Option<Ended<T>> {
        let ended = match role {
            SliceRole::Begin => None,
            SliceRole::State | SliceRole::End => Some(self.end(track)),
            _ => return None,
        };
        if role != SliceRole::End {
            self.begin(track, slice());
        }
        ended
    }

    /// Ends the innermost slice if it was dropped. Returns whether it was.
    #[inline]
    pub(crate) fn end_dropped(&mut self, track: u32) -> bool {
        let dropped = &mut self.track(track).dropped;
        let is_dropped = *dropped > 0;
        *dropped -= u64::from(is_dropped);
        is_dropped
    }

    /// Takes the innermost of the slices that were kept.
    #[inline]
    pub(crate) fn pop(&mut self, track: u32) -> Option<T> {
        let slice = self.track(track).open.pop();
        self.open -= usize::from(slice.is_some());
        slice
    }

    /// The slices of a track that were kept, outermost first.
    #[inline]
    pub(crate) fn on(&mut self, track: u32) -> &mut [T] {
        &mut self.track(track).open
    }

    /// How many are open and kept.
    pub(crate) fn len(&self) -> usize {
        self.open
    }

    /// Tracks that may have open slices: their numbers, these slices, and how many within them were dropped.
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = (u32, &[T], u64)> {
        let numbers = 0..self.tracks.len() + 1;
        numbers.map(|number| {
            let (number, track) = match self.tracks.get(number) {
                Some(track) => (number as u32, track),
                None => (OTHERS, &self.others),
            };
            (number, &*track.open, track.dropped)
        })
    }

    /// Counts slices of a track as begun and dropped.
    pub(crate) fn add_dropped(&mut self, track: u32, slices: u64) {
        let dropped = &mut self.track(track).dropped;
        *dropped = dropped.saturating_add(slices);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn ends_find_their_beginnings(
            steps in prop::collection::vec((any::<bool>(), 0..3_u32), 0..200),
            most in 0..6_usize,
            most_on_track in 0..4_usize,
        ) {
            let mut slices = OpenSlices::new(most, most_on_track);
            // Of each track what began, and whether it is kept.
            let mut model = [const { Vec::<(usize, bool)>::new() }; 3];
            for (number, (begins, place)) in steps.into_iter().enumerate() {
                let track = if place == 2 { OTHERS } else { place };
                let kept = model.iter().flatten().filter(|(_, is_kept)| *is_kept).count();
                let on_track = &mut model[place as usize];
                if begins {
                    let is_within = on_track.last().is_some_and(|(_, is_kept)| !is_kept);
                    let is_kept = !is_within && kept < most && on_track.len() < most_on_track;
                    on_track.push((number, is_kept));
                    prop_assert_eq!(slices.begin(track, number), is_kept);
                } else {
                    let expected = match on_track.pop() {
                        None => Ended::Nothing,
                        Some((_, false)) => Ended::Dropped,
                        Some((began, true)) => Ended::Slice(began),
                    };
                    prop_assert_eq!(slices.end(track), expected);
                }
                let mut all = slices.iter();
                let is_same = all.all(|(track, open, dropped)| {
                    let expected = &model[if track == OTHERS { 2 } else { track as usize }];
                    expected.len() as u64 == open.len() as u64 + dropped
                });
                prop_assert!(is_same);
            }
        }
    }
}
