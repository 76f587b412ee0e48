//! Summaries: what happened on each track in each of some spans of time.
//!
//! Here is the definition: every row is looked at. The [index](super::TimelineIndex) answers the same.

use std::collections::BTreeMap;

use kymo_index::{Bin, Grid, Row};
use kymo_model::{Recording, StreamInfo, Track, TrackPath, TrackRule};
use kymo_time::Timestamp;

use super::Timeline;
use super::contributions::{ContributionSink, Contributions, own_begin};
use super::pass::run;
use crate::AnyRecording;
use crate::pipeline::{Everything, Predicate, Select, Window};

/// A track and its bins.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct TrackSummary {
    /// Position of the recording.
    pub recording: usize,
    /// The track.
    pub track: Track,
    /// When span 0 begins on the time line, in nanoseconds. In the recording's own time, from the zero of its clock
    /// on, that is a multiple of the spans' length: spans stay the same when the recording is shifted.
    pub begin: i64,
    /// The bins that have rows, by the positions of their spans, in order.
    pub bins: Vec<(u64, Bin)>,
    /// Whether this is guessed from the sizes of chunks, since nothing more is known yet.
    pub is_estimate: bool,
}

/// What happened on tracks in a range of time.
///
/// ```
/// use kymo::Timeline;
/// use kymo::pipeline::Window;
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/lttng-small");
///
/// let opened = kymo::open::open(&[path.into()], &Default::default());
/// let timeline = Timeline::new(opened.recordings);
/// let summary = timeline.summary(Window::ALL, None, 100);
/// assert!(summary.is_exact() && summary.span.is_power_of_two());
/// let bins = summary.tracks.iter().flat_map(|track| &track.bins);
/// let events: u64 = bins.map(|(_, bin)| bin.count).sum();
/// assert_eq!(events, 3000);
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Summary {
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
        self.tracks.iter().all(|track| !track.is_estimate)
    }

    /// Adds the bins of a track at its recording's own times, if there are any.
    pub(super) fn add(&mut self, grid: &OwnGrid, track: Track, bins: Bins, is_estimate: bool) {
        if bins.is_empty() {
            return;
        }
        let own_begin = grid.own_begin;
        let bins = bins.into_iter();
        let bins = bins.map(|(position, bin)| (position, bin.later(own_begin)));
        self.tracks.push(TrackSummary {
            recording: grid.recording,
            track,
            begin: grid.spans.begin().saturating_add(own_begin),
            bins: bins.collect(),
            is_estimate,
        });
    }

    fn sort(&mut self) {
        let key = |track: &TrackSummary| (track.recording, track.track.path.clone());
        self.tracks.sort_by_cached_key(key);
    }
}

/// Bins that have rows, by the positions of their spans, in order.
pub(super) type Bins = Vec<(u64, Bin)>;

/// The spans of a range in the own time of a recording.
#[derive(Clone, Copy)]
pub(super) struct OwnGrid {
    pub(super) recording: usize,
    pub(super) own_begin: i64,
    pub(super) spans: Grid,
}

impl OwnGrid {
    /// The same range on the time line.
    pub(super) fn window(&self, begin: i64, end: i64) -> Window {
        let at = |time: i64| Timestamp::from_nanos(time.saturating_add(self.own_begin));
        Window {
            // What is earlier than all is so wherever the own time begins.
            begin: if begin == i64::MIN {
                Timestamp::MIN
            } else {
                at(begin)
            },
            end: if end == i64::MAX {
                Timestamp::MAX
            } else {
                at(end)
            },
        }
    }
}

/// Wants what happened in a window, of streams from some chunk on.
#[derive(Clone)]
pub(super) struct Within {
    pub(super) window: Window,
    /// By stream; those that are not here are wanted from the beginning.
    pub(super) first_chunks: Vec<usize>,
}

impl Select for Within {
    fn inner(&self) -> &dyn Select {
        &Everything
    }

    fn predicate(&self) -> Predicate<'_> {
        Predicate::everything()
    }

    fn window(&self, _recording: usize) -> Window {
        self.window
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
            .any(|(asked, wanted)| *asked == recording && wanted == path)
    })
}

/// The first chunks of streams that are wanted: of a recording of series, streams without a wanted track are left out.
fn unwanted_streams(
    source: &AnyRecording,
    recording: usize,
    tracks: Option<&[(usize, TrackPath)]>,
) -> Vec<usize> {
    let is_wanted = |class: usize| match source.track_rule(class) {
        TrackRule::Series { first, values } => {
            let own = source.tracks().get(first..first + values.len());
            own.is_none_or(|own| {
                own.iter()
                    .any(|track| is_wanted(tracks, recording, &track.path))
            })
        }
        _ => true,
    };
    let classes = source.event_classes();
    let is_unwanted = |stream: &StreamInfo| {
        let mut own = (0..classes.len()).filter(|&at| classes[at].stream_class == stream.class);
        !own.any(is_wanted)
    };
    match tracks {
        None => Vec::new(),
        Some(_) => (source.streams().iter().map(is_unwanted))
            .map(|is_unwanted| if is_unwanted { usize::MAX } else { 0 })
            .collect(),
    }
}

/// Counts.
struct Counter<'g> {
    grid: &'g Grid,
    tracks: Vec<(Track, BTreeMap<u64, Bin>)>,
}

impl ContributionSink for Counter<'_> {
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
    /// What happened on tracks in a range of time that is shown in `width` columns, by looking at every row: in all
    /// spans that the range touches. The span is the smallest power of two, in nanoseconds, with which there are at
    /// most twice as many spans as columns.
    pub fn summary_of_rows(
        &self,
        range: Window,
        tracks: Option<&[(usize, TrackPath)]>,
        width: usize,
    ) -> Summary {
        let recordings = self.recordings_of(tracks);
        self.summarize(range, &recordings, width, |grid, summary| {
            self.count_rows(grid, tracks, summary);
        })
    }

    /// The recordings that have tracks which are asked for, in order.
    pub(super) fn recordings_of(&self, tracks: Option<&[(usize, TrackPath)]>) -> Vec<usize> {
        let all = 0..self.recordings().len();
        let Some(tracks) = tracks else {
            return all.collect();
        };
        let asked = tracks.iter().map(|(recording, _)| *recording);
        let mut recordings: Vec<usize> =
            asked.filter(|recording| all.contains(recording)).collect();
        recordings.sort_unstable();
        recordings.dedup();
        recordings
    }

    /// Puts the summaries of some recordings together.
    pub(super) fn summarize(
        &self,
        range: Window,
        recordings: &[usize],
        width: usize,
        mut one: impl FnMut(&OwnGrid, &mut Summary),
    ) -> Summary {
        let ranges: Vec<(i64, i64, i64)> = recordings
            .iter()
            .map(|&recording| {
                let own_begin = own_begin(&self.recordings()[recording]);
                let own = |time: Timestamp| time.as_nanos().saturating_sub(own_begin);
                (own_begin, own(range.begin), own(range.end))
            })
            .collect();
        let spans = ranges.iter();
        let spans = spans.map(|&(_, begin, end)| Grid::new(begin, end, width).span());
        let mut summary = Summary {
            span: spans.max().unwrap_or(1),
            tracks: Vec::new(),
            untimed: 0,
        };
        for (&recording, (own_begin, begin, end)) in recordings.iter().zip(ranges) {
            let grid = OwnGrid {
                recording,
                own_begin,
                spans: Grid::with_span(begin, end, summary.span),
            };
            one(&grid, &mut summary);
        }
        summary.sort();
        summary
    }

    /// Counts the rows of a recording.
    pub(super) fn count_rows(
        &self,
        grid: &OwnGrid,
        tracks: Option<&[(usize, TrackPath)]>,
        summary: &mut Summary,
    ) {
        let recording = &self.recordings()[grid.recording];
        let mut contributions = Contributions::new(recording);
        let mut counter = Counter {
            grid: &grid.spans,
            tracks: Vec::new(),
        };
        // What ends may have begun long before.
        let begin = match contributions.has_slices() {
            true => i64::MIN,
            false => grid.spans.begin(),
        };
        let within = Within {
            window: grid.window(begin, grid.spans.end()),
            first_chunks: unwanted_streams(recording, grid.recording, tracks),
        };
        run(recording, &mut contributions, &within, &mut counter);
        summary.untimed += contributions.untimed;
        for (track, bins) in counter.tracks {
            if is_wanted(tracks, grid.recording, &track.path) {
                summary.add(grid, track, bins.into_iter().collect(), false);
            }
        }
    }
}
