//! What is shown: recordings, their index, their tracks, and which of their rows are wanted.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use kymo::pipeline::Window;
use kymo::timeline::{
    Batch, Bin, Grid, IndexOptions, Query, QueryError, Slice, Summary, Timeline, TimelineIndex,
};
use kymo::{AnyRecording, filter};
use kymo_model::{Recording, TrackPath};
use kymo_time::Timestamp;

use crate::ahead::Ahead;
use crate::contents::Described;
use crate::matches::{Match, Matches};
use crate::notices::MOST_NOTICES;
use crate::outwards::outwards;
use crate::overview::State;
use crate::slices::{Nesting, Slices};
use crate::tracks::{Classifier, Tracks};

/// A recording of more bytes is not checked for damage in the background.
const MOST_CHECKED: u64 = 4 << 30;

/// For how long work in the background waits until a page has asked for its first picture, if there is much to read: the
/// picture has the processors to itself.
const PATIENCE: Duration = Duration::from_secs(1);

/// Smaller recordings are read at once: it takes no longer than the picture.
const LEAST_PATIENT: u64 = 32 << 20;

/// What is to be shown.
#[derive(Debug, Default)]
pub struct SceneOptions {
    /// Which events, by name and condition.
    pub filter: filter::Query,
    /// From when to when, by recording; if empty, all.
    pub windows: Vec<Window>,
    /// How the index is made and kept.
    pub index: IndexOptions,
    /// Threads that decode.
    pub threads: usize,
    /// Whether times are shown in UTC at first.
    pub gmt: bool,
    /// Whether the recordings may grow.
    pub is_live: bool,
    /// Whether the clocks of the recordings have no origin, so that times count from their zero.
    pub is_relative: bool,
}

/// Recordings that are shown.
#[derive(Debug)]
pub struct Scene {
    pub(crate) timeline: Timeline,
    pub(crate) options: SceneOptions,
    pub(crate) index: TimelineIndex,
    pub(crate) tracks: Arc<Tracks>,
    pub(crate) described: Described,
    /// From when on it differs from the scene before it, of recordings that have grown.
    pub(crate) changed: Option<i64>,
    /// How many there were before it.
    pub(crate) epoch: u64,
    /// The rows that are wanted, where not all are.
    pub(crate) wanted: Option<Matches>,
    state: Mutex<State>,
    pub(crate) bytes: u64,
    /// Rows that background work has looked at.
    pub(crate) looked_at: AtomicU64,
    pub(crate) ahead: Ahead,
    /// Until when background work waits for the first picture.
    quiet: Mutex<Option<Instant>>,
    /// Whether a page has got what its first picture shows.
    pub(crate) is_seen: AtomicBool,
}

/// One track's bins.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TrackBins {
    pub(crate) track: u32,
    pub(crate) is_estimate: bool,
    /// When span 0 begins: each recording has its own grid, which is that of its clock.
    pub(crate) begin: i64,
    pub(crate) bins: Vec<(u64, Bin)>,
}

impl Scene {
    /// Shows recordings, and begins to index them in the background.
    pub fn new(recordings: Vec<AnyRecording>, options: SceneOptions) -> Arc<Self> {
        Self::make(recordings, options, None)
    }

    /// Shows the recordings of a scene as they are now. Their tracks keep their numbers.
    pub(crate) fn after(
        before: &Self,
        recordings: Vec<AnyRecording>,
        options: SceneOptions,
    ) -> Arc<Self> {
        Self::make(recordings, options, Some(before))
    }

    fn make(
        recordings: Vec<AnyRecording>,
        mut options: SceneOptions,
        before: Option<&Self>,
    ) -> Arc<Self> {
        let changed = before.map(|before| changed_from(before.recordings(), &recordings));
        // Others at the same positions have tracks of their own.
        let is_same = |before: &&Self| {
            let mut pairs = before.recordings().iter().zip(&recordings);
            before.recordings().len() <= recordings.len()
                && pairs.all(|(old, new)| old.path() == new.path())
        };
        let same = before.filter(is_same);
        let tracks = same.map(|before| Arc::clone(&before.tracks));
        // Generations go on, so that a page asks for what has changed.
        let state = match (same, before) {
            (Some(before), _) => State::after(&before.state()),
            (None, Some(before)) => State::behind(&before.state()),
            (None, None) => State::behind(&State::default()),
        };
        let described = Described::new(
            &recordings,
            same.map(|scene| &scene.described),
            state.generation,
        );
        let timeline = Timeline::new(recordings);
        let is_all = options.filter.events.is_empty()
            && options.filter.condition.is_none()
            && options.windows.iter().all(|window| *window == Window::ALL);
        let bytes = timeline.recordings().iter().map(total_bytes).sum();
        // What follows another scene is drawn when everything is known.
        let is_patient = bytes > LEAST_PATIENT && before.is_none();
        options.index.patience = if is_patient { PATIENCE } else { Duration::ZERO };
        let scene = Arc::new(Self {
            is_seen: AtomicBool::new(false),
            quiet: Mutex::new(is_patient.then(|| Instant::now() + PATIENCE)),
            index: timeline.index(options.index.clone()),
            described,
            wanted: (!is_all).then(Matches::default),
            tracks: tracks.unwrap_or_default(),
            changed,
            epoch: before.map_or(0, |before| before.epoch + 1),
            state: Mutex::new(state),
            looked_at: AtomicU64::new(0),
            ahead: Ahead::default(),
            timeline,
            options,
            bytes,
        });
        scene.state().notices = scene.losses();
        let opening = scene.timeline.recordings().iter().enumerate();
        let opening = opening.flat_map(|(at, recording)| {
            recording
                .faults()
                .iter()
                .map(move |fault| (at, fault.to_string()))
        });
        scene.state().faults = opening.take(MOST_NOTICES).collect();
        scene.publish();
        let worker = {
            let scene = Arc::clone(&scene);
            move || scene.work()
        };
        // Without a thread, what is known stays an estimate.
        let _ = std::thread::Builder::new().spawn(worker);
        scene
    }

    /// Waits until everything is known.
    pub fn wait(&self) {
        self.begin();
        while !self.state().is_settled {
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Lets background work begin: a page has its first picture, or nobody waits for one.
    pub(crate) fn begin(&self) {
        *self.quiet.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.index.begin();
    }

    /// Waits until background work may begin.
    fn await_beginning(&self) {
        let left = || {
            let quiet = *self.quiet.lock().unwrap_or_else(PoisonError::into_inner);
            quiet.is_some_and(|until| Instant::now() < until)
        };
        while left() {
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// From the first row to the last one, within what was asked for; `None` if there is none.
    pub(crate) fn range(&self) -> Option<(i64, i64)> {
        let (begin, end) = self.state().range()?;
        let windows = self.options.windows.iter();
        let (begin, end) = match windows.clone().map(|window| window.begin.as_nanos()).min() {
            Some(from) => {
                let to = windows.map(|window| window.end.as_nanos()).max();
                (begin.max(from), end.min(to.unwrap_or(i64::MAX)))
            }
            None => (begin, end),
        };
        (begin <= end).then_some((begin, end))
    }

    pub(crate) fn recordings(&self) -> &[AnyRecording] {
        self.timeline.recordings()
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A query for the rows that are wanted, of which another condition holds, too.
    pub(crate) fn query(&self, condition: Option<&str>) -> Query {
        let mut query = Query::default();
        query.filter = self.options.filter.clone();
        query.threads = self.options.threads.max(1);
        query.filter.condition = match (&query.filter.condition, condition) {
            (Some(base), Some(other)) => Some(format!("({base}) and ({other})")),
            (base, other) => base.clone().or(other.map(str::to_string)),
        };
        let windows = &self.options.windows;
        let begin = windows.iter().map(|window| window.begin).min();
        let end = windows.iter().map(|window| window.end).max();
        if let (Some(begin), Some(end)) = (begin, end) {
            query.range = Window { begin, end };
        }
        query
    }

    /// Whether a time of a recording is in its window.
    pub(crate) fn is_wanted(&self, recording: usize, time: i64) -> bool {
        let window = self.options.windows.get(recording);
        window
            .is_none_or(|window| (window.begin.as_nanos()..=window.end.as_nanos()).contains(&time))
    }

    /// Adds the rows of a query to what was found, those of a view first, until it is full or to be stopped.
    ///
    /// # Errors
    ///
    /// The condition is wrong.
    pub(crate) fn find(
        &self,
        mut query: Query,
        found: &Matches,
        view: Option<(i64, i64)>,
        stop: &Arc<AtomicBool>,
    ) -> Result<(), QueryError> {
        query.batch_rows = 1 << 12;
        // Chunks without an event of a wanted class are not read, as far as the index has come.
        query.known = Some(Arc::new(self.index.known_counts()));
        let mut classifier = Classifier::new(self, &mut query)?;
        self.for_each_part(query, view, stop, |batch| {
            let mut rows = Vec::new();
            for row in 0..batch.len() {
                let head = batch.head(row);
                let Some(time) = head.time.map(Timestamp::as_nanos) else {
                    continue;
                };
                if !self.is_wanted(head.id.recording as usize, time) {
                    continue;
                }
                for part in classifier.parts(&batch, row) {
                    let value = part.value.unwrap_or(f64::NAN);
                    let class = head.class;
                    rows.push((part.track, Match { time, value, class }));
                }
            }
            self.looked_at
                .fetch_add(batch.len() as u64, Ordering::Relaxed);
            match found.lock().add(rows.into_iter()) && !stop.load(Ordering::Relaxed) {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            }
        })?;
        found.lock().is_done = true;
        Ok(())
    }

    /// Hands over the rows of a query, those of a view first: not in the order of time, but each soon.
    ///
    /// # Errors
    ///
    /// The condition is wrong.
    pub(crate) fn for_each_part(
        &self,
        mut query: Query,
        view: Option<(i64, i64)>,
        stop: &Arc<AtomicBool>,
        mut take: impl FnMut(Batch) -> ControlFlow<()>,
    ) -> Result<(), QueryError> {
        query.stop = Some(Arc::clone(stop));
        let all = self.range().unwrap_or((i64::MIN, i64::MAX));
        let range = query.range;
        let mut goes_on = ControlFlow::Continue(());
        for (begin, end) in outwards(all, self.bytes, view) {
            query.range = range.and(window(begin, end));
            if goes_on.is_break() || stop.load(Ordering::Relaxed) {
                break;
            }
            if query.range.begin <= query.range.end {
                self.timeline.for_each_batch(&query, |batch| {
                    goes_on = take(batch);
                    goes_on
                })?;
            }
        }
        Ok(())
    }

    /// What happened on some tracks.
    pub(crate) fn bins(
        self: &Arc<Self>,
        found: Option<&Matches>,
        tracks: &[u32],
        begin: i64,
        end: i64,
        columns: usize,
    ) -> (Grid, Vec<TrackBins>) {
        if let Some(found) = found.or(self.wanted.as_ref()) {
            let mut answer = Vec::new();
            let grid = Grid::new(begin, end, columns);
            let mut found = found.lock();
            for &track in tracks {
                answer.push(TrackBins {
                    track,
                    is_estimate: !found.is_done || found.is_cut,
                    begin: grid.begin(),
                    bins: found.bins(track, grid.begin(), grid.span(), grid.end()),
                });
            }
            return (grid, answer);
        }
        let asked = self.paths(tracks);
        let range = window(begin, end);
        // On the grid of another clock a range may touch one span more.
        let mut summary = self.index.summary(range, Some(&asked), columns + 1);
        self.look_ahead((range, columns + 1, asked), &mut summary);
        self.bins_of(summary, (begin, end))
    }

    /// What the index knows of some tracks now: no packet in view is decoded for it.
    pub(crate) fn known_bins(
        &self,
        tracks: &[u32],
        (begin, end): (i64, i64),
        columns: usize,
    ) -> (Grid, Vec<TrackBins>) {
        let asked = self.paths(tracks);
        let summary = self
            .index
            .summary(window(begin, end), Some(&asked), columns + 1);
        self.bins_of(summary, (begin, end))
    }

    /// The recordings of tracks, and their paths.
    fn paths(&self, tracks: &[u32]) -> Vec<(usize, TrackPath)> {
        let asked = tracks.iter().filter_map(|&number| {
            let (recording, track) = self.tracks.get(number)?;
            Some((recording, track.path))
        });
        asked.collect()
    }

    /// The bins of a summary by the numbers of their tracks.
    fn bins_of(&self, summary: Summary, (begin, end): (i64, i64)) -> (Grid, Vec<TrackBins>) {
        let grid = Grid::with_span(begin, end, summary.span);
        let bins = summary.tracks.into_iter().filter_map(|bins| {
            Some(TrackBins {
                track: self.tracks.number(bins.recording, &bins.track)?,
                is_estimate: bins.is_estimate,
                begin: bins.begin,
                bins: bins.bins,
            })
        });
        let bins = bins.collect();
        (grid, bins)
    }

    /// Finds what is not known yet.
    fn work(self: Arc<Self>) {
        let finder = {
            let scene = Arc::clone(&self);
            move || {
                if let Some(found) = &scene.wanted {
                    scene.await_beginning();
                    // The condition was checked before.
                    let _ = scene.find(scene.query(None), found, None, &Arc::default());
                    found.lock().is_done = true;
                }
            }
        };
        let finder = std::thread::Builder::new().spawn(finder);
        let mut pause = Duration::from_millis(50);
        loop {
            if self.wanted.is_none() {
                self.index.wait_for(pause);
            } else {
                std::thread::sleep(pause);
            }
            if self.publish() {
                break;
            }
            pause = (pause * 2).min(Duration::from_secs(2));
        }
        if let Ok(finder) = finder {
            let _ = finder.join();
        }
        self.await_beginning();
        let slices = Arc::new(self.slices());
        if slices.tracks().next().is_some() {
            let mut state = self.state();
            state.slices = slices;
            state.generation += 1;
            state.slices_since = state.generation;
        }
        if self.bytes <= MOST_CHECKED {
            self.check();
        }
        self.state().is_settled = true;
    }

    /// The slices and states of recordings that have some.
    fn slices(&self) -> Slices {
        let mut nesting = Nesting::default();
        for recording in 0..self.recordings().len() {
            let mut numbers: Vec<Option<u32>> = Vec::new();
            let take = |slice: Slice<'_>| {
                let (at, track) = slice.track;
                let at = at as usize;
                if at >= numbers.len() {
                    numbers.resize(at + 1, None);
                }
                let known = numbers[at].or_else(|| self.tracks.number(recording, track));
                numbers[at] = known;
                let end = slice.end.map(Timestamp::as_nanos);
                let times = (slice.begin.as_nanos(), end);
                let goes_on = known.is_none_or(|number| {
                    nesting.push(number, times, &slice.name, slice.class as u32)
                });
                match goes_on {
                    true => ControlFlow::Continue(()),
                    false => ControlFlow::Break(()),
                }
            };
            let threads = self.options.threads;
            let missing = self.timeline.for_each_slice(recording, threads, take);
            if missing.dropped > 0 {
                nesting.cut();
            }
        }
        nesting.finish()
    }
}

/// When the first chunk begins that was added to recordings, or has become longer.
fn changed_from(before: &[AnyRecording], now: &[AnyRecording]) -> i64 {
    let mut first = i64::MAX;
    for (at, recording) in now.iter().enumerate() {
        let old = before.get(at).filter(|old| old.path() == recording.path());
        for stream in 0..recording.streams().len() {
            let mut known = old
                .filter(|old| stream < old.streams().len())
                .map(|old| old.chunks(stream));
            for chunk in recording.chunks(stream) {
                let is_known = known.as_mut().and_then(Iterator::next);
                if is_known
                    .is_some_and(|old| old.bytes == chunk.bytes && old.end_time == chunk.end_time)
                {
                    continue;
                }
                first = first.min(chunk.begin_time.map_or(i64::MIN, Timestamp::as_nanos));
            }
        }
    }
    first
}

/// The size of all chunks of a recording.
fn total_bytes(recording: &AnyRecording) -> u64 {
    let streams = 0..recording.streams().len();
    streams
        .flat_map(|stream| recording.chunks(stream))
        .fold(0, |sum, chunk| sum.saturating_add(chunk.bytes))
}

/// A range of time, both ends included.
pub(crate) fn window(begin: i64, end: i64) -> Window {
    Window {
        begin: Timestamp::from_nanos(begin),
        end: Timestamp::from_nanos(end),
    }
}
