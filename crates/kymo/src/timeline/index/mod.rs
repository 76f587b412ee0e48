//! The index of a timeline: built once, asked for summaries at any resolution.

mod answer;
mod build;
mod cached;
mod estimate;
mod series;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use kymo_index::{Bin, Cache, Index};
use kymo_model::{FaultReport, Recording as _, Track, TrackPart, TrackPath};
use kymo_time::Timestamp;

use self::estimate::Seen;
use super::summary::{OwnGrid, Summary};
use super::tracks::stream_track;
use super::{Direction, Timeline};
use crate::AnyRecording;
use crate::pipeline::Window;

pub use cached::KnownCounts;

/// How a timeline is indexed.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct IndexOptions {
    /// Where indexes are kept; by default, they are rebuilt each time.
    pub cache: Option<Cache>,
    /// How the recordings were [opened](crate::open::Options::index_key).
    pub opened: Vec<u8>,
    /// A recording of series alone that has at most this number of bytes gets no index: its rows are read when they
    /// are asked for. There may be tens of thousands of such recordings.
    pub unindexed_bytes: u64,
    /// How long building waits for [`TimelineIndex::begin`]: whoever draws a first picture, from an estimate, has the
    /// processors for it. What is in the cache is taken at once. By default, building begins at once.
    pub patience: Duration,
}

/// What is known of all rows of a recording.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Overview {
    /// Its tracks, a bin for each. Of a recording without an index, bins have no values. If the streams of a trace are
    /// its tracks, those without rows are the last ones, with empty bins.
    pub tracks: Vec<(Track, Bin)>,
    /// Rows without a time.
    pub untimed: u64,
    /// Whether this is guessed from the sizes of chunks.
    pub is_estimate: bool,
}

/// What became of the index of a recording.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct IndexState {
    /// Rows that are in it.
    pub rows: u64,
    /// Tracks that are in it.
    pub tracks: usize,
    /// Its size in bytes.
    pub bytes: u64,
    /// How many of its rows were read now; of an index that was in the cache, none.
    pub read: u64,
    /// Where it is kept.
    pub kept: Option<PathBuf>,
    /// Why it is not kept or not made.
    pub problem: Option<String>,
    /// Damage met within chunks as it was made; at most [`MOST_FAULTS`](crate::report::MOST_FAULTS).
    pub faults: Vec<FaultReport>,
    /// How many faults there are beyond those: of what was not read now, all.
    pub more_faults: u64,
}

/// The index of a timeline, which is being built by a thread of its own until it is whole, or this is dropped.
#[derive(Debug)]
pub struct TimelineIndex {
    shared: Arc<Shared>,
    worker: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    timeline: Timeline,
    options: IndexOptions,
    /// By recording, whether its rows are read when they are asked for.
    is_unindexed: Vec<bool>,
    /// By recording; in order.
    done: Mutex<Vec<Arc<Done>>>,
    changed: Condvar,
    stop: AtomicBool,
    /// Whether building may begin, and when it does in any case.
    is_begun: AtomicBool,
    begins: Option<Instant>,
    /// Rows and bytes that have been read so far.
    rows: AtomicU64,
    bytes: AtomicU64,
    /// What is known of the recording that is being read.
    seen: Mutex<Option<Arc<Seen>>>,
}

/// A recording that was gone through.
#[derive(Debug, Default)]
struct Done {
    /// `None` where it has no index: then its rows are counted.
    index: Option<Index>,
    /// The number of each track.
    numbers: HashMap<TrackPath, u32>,
    state: IndexState,
}

impl Timeline {
    /// Begins to build the index, or takes it from the cache.
    pub fn index(&self, options: IndexOptions) -> TimelineIndex {
        let shared = Arc::new(Shared {
            // Not with the index that it may have: the two would never end.
            timeline: Self {
                recordings: Arc::clone(&self.recordings),
                watched: None,
                index: Arc::default(),
            },
            is_unindexed: self
                .recordings()
                .iter()
                .map(|recording| series::is_small(recording, options.unindexed_bytes))
                .collect(),
            begins: Instant::now().checked_add(options.patience),
            is_begun: AtomicBool::new(options.patience.is_zero()),
            options,
            done: Mutex::default(),
            changed: Condvar::new(),
            stop: AtomicBool::new(false),
            rows: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            seen: Mutex::default(),
        });
        let work = {
            let shared = Arc::clone(&shared);
            move || shared.work()
        };
        let worker = std::thread::Builder::new().spawn(work);
        if worker.is_err() {
            shared.work();
        }
        TimelineIndex {
            shared,
            worker: worker.ok(),
        }
    }

    /// What happened on tracks in a range of time that is shown in `width` columns: in all spans that the range
    /// touches. The span is the smallest power of two, in nanoseconds, with which there are at most twice as many spans
    /// as columns.
    ///
    /// The first summary builds an index in temporary storage, and waits for it. Who does not want to wait, or to
    /// keep the index, asks [`TimelineIndex::summary`].
    pub fn summary(
        &self,
        range: Window,
        tracks: Option<&[(usize, TrackPath)]>,
        width: usize,
    ) -> Summary {
        let index = self
            .index
            .get_or_init(|| self.index(IndexOptions::default()));
        index.wait();
        index.summary(range, tracks, width)
    }
}

impl Drop for TimelineIndex {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(worker) = self.worker.take() {
            // What it panicked with was shown.
            let _ = worker.join();
        }
    }
}

impl TimelineIndex {
    /// Lets building begin, if it [waits](IndexOptions::patience) for this.
    pub fn begin(&self) {
        self.shared.is_begun.store(true, Ordering::Release);
        self.shared.changed.notify_all();
    }

    /// Waits until it is whole. What became of the recordings, in their order.
    pub fn wait(&self) -> Vec<IndexState> {
        self.begin();
        while !self.wait_for(Duration::from_secs(1)) {}
        let done = self.shared.lock();
        done.iter().map(|done| done.state.clone()).collect()
    }

    /// Waits until it is whole, or so long. Whether it is.
    pub fn wait_for(&self, time: Duration) -> bool {
        let shared = &*self.shared;
        let begin = Instant::now();
        let mut done = shared.lock();
        loop {
            let is_whole = done.len() == shared.timeline.recordings.len() || self.is_ended();
            let left = time.saturating_sub(begin.elapsed());
            if is_whole || left.is_zero() {
                return is_whole;
            }
            // A worker that ends without having done everything notifies nobody.
            let step = left.min(Duration::from_millis(50));
            let waited = shared.changed.wait_timeout(done, step);
            done = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn is_ended(&self) -> bool {
        self.worker.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// How many events the chunks of those recordings have that have been gone through.
    pub fn known_counts(&self) -> KnownCounts {
        KnownCounts::of_index(&self.shared.lock())
    }

    /// How many bytes of the recordings have been read.
    pub fn bytes_read(&self) -> u64 {
        self.shared.bytes.load(Ordering::Relaxed)
    }

    /// The same as [`Timeline::summary`] at once: of recordings that have not been gone through yet, it is
    /// guessed from the sizes of chunks, which is [said](crate::timeline::TrackSummary::is_estimate). Asked again, more is known.
    pub fn summary(
        &self,
        range: Window,
        tracks: Option<&[(usize, TrackPath)]>,
        width: usize,
    ) -> Summary {
        let timeline = &self.shared.timeline;
        let recordings = timeline.recordings_of(tracks);
        timeline.summarize(range, &recordings, width, |grid, summary| {
            self.summarize_one(grid, tracks, summary);
        })
    }

    /// Adds what is known of a recording.
    fn summarize_one(
        &self,
        grid: &OwnGrid,
        tracks: Option<&[(usize, TrackPath)]>,
        summary: &mut Summary,
    ) {
        let shared = &*self.shared;
        let timeline = &shared.timeline;
        let recording = grid.recording;
        if shared.is_unindexed[recording] {
            return timeline.count_rows(grid, tracks, summary);
        }
        let done = shared.lock().get(recording).cloned();
        let Some(done) = done else {
            return match self.is_ended() {
                true => timeline.count_rows(grid, tracks, summary),
                false => shared.estimate(grid, tracks, summary),
            };
        };
        let recording = &timeline.recordings[recording];
        let known = answer::answer(&done, recording, tracks, grid);
        let Some((found, index)) = known.zip(done.index.as_ref()) else {
            // It has no index, or a block was damaged later, which is found only now.
            return timeline.count_rows(grid, tracks, summary);
        };
        for (track, bins) in found {
            summary.add(grid, track, bins, false);
        }
        summary.untimed += index.meta().untimed;
    }

    /// What is known of all rows of a recording, without waiting. It no longer changes once it is not an estimate.
    pub fn overview(&self, recording: usize) -> Overview {
        let shared = &*self.shared;
        let Some(source) = shared.timeline.recordings.get(recording) else {
            return Overview::default();
        };
        if shared.is_unindexed[recording] {
            return series::overview(source);
        }
        let is_estimate = shared.lock().len() <= recording && !self.is_ended();
        let one = |grid: &OwnGrid, summary: &mut Summary| self.summarize_one(grid, None, summary);
        let summary = shared.timeline.summarize(Window::ALL, &[recording], 1, one);
        let tracks = summary.tracks.into_iter().map(|track| {
            let mut all = Bin::default();
            track.bins.iter().for_each(|(_, bin)| all.add(bin));
            (track.track, all)
        });
        let mut tracks: Vec<(Track, Bin)> = tracks.collect();
        tracks.extend(empty_streams(source, &tracks));
        Overview {
            tracks,
            untimed: summary.untimed,
            is_estimate,
        }
    }
}

/// The streams of a trace that have no rows, unless other tracks than streams are shown.
fn empty_streams(recording: &AnyRecording, known: &[(Track, Bin)]) -> Vec<(Track, Bin)> {
    let is_stream =
        |(track, _): &(Track, Bin)| matches!(track.path.parts(), [TrackPart::Stream { .. }]);
    if recording.as_ctf().is_none() || !known.iter().all(is_stream) {
        return Vec::new();
    }
    let known: HashSet<&TrackPath> = known.iter().map(|(track, _)| &track.path).collect();
    let streams = (0..recording.streams().len()).map(|stream| stream_track(recording, stream));
    let empty = streams.filter(|track| !known.contains(&track.path));
    empty.map(|track| (track, Bin::EMPTY)).collect()
}

impl TimelineIndex {
    /// The time of the first row of some tracks at a time or later; [backwards](Direction::Backwards), of the last one
    /// at a time or earlier. It is exact when the index is whole.
    pub fn nearest(
        &self,
        time: Timestamp,
        direction: Direction,
        tracks: Option<&[(usize, TrackPath)]>,
    ) -> Option<Timestamp> {
        // Backwards, times are looked at in a mirror.
        let is_back = direction == Direction::Backwards;
        let mirror = |time: i64| if is_back { !time } else { time };
        let bins = |begin: i64, end: i64, width| {
            let (begin, end) = (mirror(begin), mirror(end));
            let range = Window {
                begin: Timestamp::from_nanos(begin.min(end)),
                end: Timestamp::from_nanos(begin.max(end)),
            };
            let found = self.summary(range, tracks, width).tracks.into_iter();
            let bins = found.flat_map(|track| track.bins).map(move |(_, bin)| {
                let (first, last) = (mirror(bin.first), mirror(bin.last));
                (first.min(last), first.max(last))
            });
            bins.collect::<Vec<_>>()
        };
        let all = bins(i64::MIN, i64::MAX, 1);
        let first = all.iter().map(|bin| bin.0).min()?;
        let begin = mirror(time.as_nanos()).max(first);
        let mut end = all.iter().map(|bin| bin.1).max()?;
        while begin <= end {
            // A bin that begins before the range has rows in it, but where is not known: then these are looked at more
            // closely. Each time, spans are at most 1/128 as long as the range.
            let near = bins(begin, end, 256);
            let within = near.iter().map(|bin| bin.0).filter(|&first| first >= begin);
            let across = near.iter().filter(|bin| bin.0 < begin && bin.1 >= begin);
            let within = within.min();
            match across.map(|bin| bin.1).max() {
                None => return within.map(mirror).map(Timestamp::from_nanos),
                Some(last) => end = within.map_or(last, |first| first.min(last)),
            }
        }
        None
    }

    /// Whether all recordings have an index that is whole, so that no rows have to be counted.
    pub(super) fn is_whole(&self) -> bool {
        let done = self.shared.lock();
        done.len() == self.shared.timeline.recordings.len()
            && done.iter().all(|done| done.index.is_some())
    }
}

impl Done {
    /// A recording with an index.
    fn new(index: Index, state: IndexState) -> Self {
        let numbers = index.tracks().enumerate();
        let numbers = numbers.map(|(number, track)| (track.path.clone(), number as u32));
        let numbers: HashMap<_, _> = numbers.collect();
        let state = IndexState {
            rows: index.meta().rows,
            tracks: numbers.len(),
            bytes: index.bytes().len() as u64,
            more_faults: (index.meta().faults).saturating_sub(state.faults.len() as u64),
            ..state
        };
        Self {
            numbers,
            state,
            index: Some(index),
        }
    }

    /// A recording without one.
    fn none(problem: &str) -> Self {
        let problem = Some(problem.to_string());
        Self {
            index: None,
            numbers: HashMap::new(),
            state: IndexState {
                problem,
                ..IndexState::default()
            },
        }
    }
}
