//! Summaries: what happened on each track in each of some spans of time.
//!
//! Here is the definition: every row is looked at. The [index](super::TimelineIndex) answers the same.

use std::collections::BTreeMap;

use kymo_index::{Bin, Grid, Row};
use kymo_model::{Track, TrackPath};
use kymo_time::Timestamp;

use super::Timeline;
use super::contributions::{ContributionSink, Contributions, run};
use crate::pipeline::{Everything, Select, Window};

/// A track and its bins.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct TrackSummary {
    /// Position of the recording.
    pub recording: usize,
    /// The track.
    pub track: Track,
    /// The bins that have rows, by the positions of their spans, in order.
    pub bins: Vec<(u64, Bin)>,
    /// Whether this is guessed from the sizes of chunks, since nothing more is known yet.
    pub is_estimate: bool,
}

/// What happened on tracks in a range of time.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Summary {
    /// When span 0 begins, in nanoseconds: a multiple of the spans' length.
    pub begin: i64,
    /// The length of each span in nanoseconds, a power of two.
    pub span: u64,
    /// The tracks that have rows in these spans, in the order of recordings and of their paths.
    pub tracks: Vec<TrackSummary>,
    /// Rows without a time, which are in no span, as far as they have been counted.
    pub untimed: u64,
}

impl Summary {
    /// Whether all is counted, and nothing guessed.
    pub fn is_exact(&self) -> bool {
        self.tracks.iter().all(|of| !of.is_estimate)
    }

    pub(super) fn new(grid: &Grid) -> Self {
        Self {
            begin: grid.begin(),
            span: grid.span(),
            tracks: Vec::new(),
            untimed: 0,
        }
    }

    pub(super) fn sort(&mut self) {
        let key = |of: &TrackSummary| (of.recording, of.track.path.clone());
        self.tracks.sort_by_cached_key(key);
    }
}

/// The spans of a range that is shown in so many columns.
pub(super) fn grid(range: Window, width: usize) -> Grid {
    Grid::new(range.begin.as_nanos(), range.end.as_nanos(), width)
}

/// Wants what happened in a window, of streams from some chunk on.
#[derive(Clone)]
pub(super) struct Within {
    pub(super) window: Window,
    /// By stream; those that are not here are wanted from the beginning.
    pub(super) first_chunks: Vec<usize>,
}

impl Select for Within {
    type Predicate = Everything;

    fn predicate(&self) -> Everything {
        Everything
    }

    fn window(&self, _recording: usize) -> Window {
        self.window
    }

    fn looks_at(&self, _: usize, _: usize, _: kymo_model::FieldId) -> bool {
        false
    }

    fn first_chunk(&self, _recording: usize, stream: usize) -> usize {
        self.first_chunks.get(stream).copied().unwrap_or(0)
    }
}

/// Whether a track is asked for.
pub(super) fn is_wanted(
    tracks: Option<&[(usize, TrackPath)]>,
    recording: usize,
    path: &TrackPath,
) -> bool {
    tracks.is_none_or(|tracks| {
        tracks
            .iter()
            .any(|(of, wanted)| *of == recording && wanted == path)
    })
}

/// Counts.
struct Bins<'g> {
    grid: &'g Grid,
    tracks: Vec<(Track, BTreeMap<u64, Bin>)>,
}

impl ContributionSink for Bins<'_> {
    fn track(&mut self, track: &Track) {
        self.tracks.push((track.clone(), BTreeMap::new()));
    }

    fn row(&mut self, track: u32, row: Row) {
        if let Some(position) = self.grid.position(row.time) {
            let (_, bins) = &mut self.tracks[track as usize];
            bins.entry(position as u64).or_default().push(&row);
        }
    }
}

impl Timeline {
    /// What happened on tracks in a range of time that is shown in so many columns, by looking at every row: in all
    /// spans that the range touches. The spans are the shortest that are a power of two nanoseconds and of which
    /// there are at most twice as many as columns.
    pub fn summary_of_rows(
        &self,
        range: Window,
        tracks: Option<&[(usize, TrackPath)]>,
        width: usize,
    ) -> Summary {
        let grid = grid(range, width);
        let mut summary = Summary::new(&grid);
        for recording in 0..self.recordings().len() {
            self.count_rows(recording, tracks, &grid, &mut summary);
        }
        summary.sort();
        summary
    }

    /// The same of one recording.
    pub(super) fn count_rows(
        &self,
        recording: usize,
        tracks: Option<&[(usize, TrackPath)]>,
        grid: &Grid,
        summary: &mut Summary,
    ) {
        let of = &self.recordings()[recording];
        let mut contributions = Contributions::new(of);
        let mut sink = Bins {
            grid,
            tracks: Vec::new(),
        };
        // What ends may have begun long before.
        let begin = match contributions.has_slices() {
            true => i64::MIN,
            false => grid.begin(),
        };
        let within = Within {
            window: Window {
                begin: Timestamp::from_nanos(begin),
                end: Timestamp::from_nanos(grid.end()),
            },
            first_chunks: Vec::new(),
        };
        run(of, &mut contributions, &within, &mut sink);
        summary.untimed += contributions.untimed;
        for (track, bins) in sink.tracks {
            if !bins.is_empty() && is_wanted(tracks, recording, &track.path) {
                summary.tracks.push(TrackSummary {
                    recording,
                    track,
                    bins: bins.into_iter().collect(),
                    is_estimate: false,
                });
            }
        }
    }
}
