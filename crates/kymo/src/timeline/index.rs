//! The index of a timeline: built once, asked for summaries at any resolution.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use kymo_index::{
    Answer, Bin, Cache, Cached, Damaged, FileState, Grid, Index, Key, Meta, Missing, Row, Writer,
};
use kymo_io::Spool;
use kymo_model::{Chunk, Recording, Track, TrackPath, TrackRule};
use kymo_time::Timestamp;

use super::Timeline;
use super::contributions::{ContributionSink, Contributions, run, run_plain, stream_part};
use super::summary::{Summary, TrackSummary, Within, grid, is_wanted};
use crate::AnyRecording;
use crate::pipeline::Window;

/// A recording of which more rows are earlier than one before them has no index.
const MOST_LATE: usize = 1 << 20;

/// Where rows are missing in more ranges, near ones are read together.
const MOST_RANGES: i128 = 64;

/// What a row takes, as long as nothing is known: for estimates.
const USUAL_ROW: u64 = 32;

/// How a timeline is indexed.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct IndexOptions {
    /// Where indexes are kept; without, they are built anew.
    pub cache: Option<Cache>,
    /// How the recordings were [opened](crate::open::Options::index_key).
    pub opened: Vec<u8>,
}

/// What became of the index of a recording.
#[derive(Clone, Debug)]
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
    /// By recording; in order.
    done: Mutex<Vec<Arc<Done>>>,
    changed: Condvar,
    stop: AtomicBool,
    /// Rows and bytes that have been read so far.
    rows: AtomicU64,
    bytes: AtomicU64,
}

/// A recording that was gone through.
#[derive(Debug)]
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
            options,
            done: Mutex::default(),
            changed: Condvar::new(),
            stop: AtomicBool::new(false),
            rows: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
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

    /// What happened on tracks in a range of time that is shown in so many columns: in all spans that the range
    /// touches. The spans are the shortest that are a power of two nanoseconds and of which there are at most
    /// twice as many as columns.
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
    /// Waits until it is whole. What became of the recordings, in their order.
    pub fn wait(&self) -> Vec<IndexState> {
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
            // Who ends without having done all tells nobody.
            let step = left.min(Duration::from_millis(50));
            let waited = shared.changed.wait_timeout(done, step);
            done = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn is_ended(&self) -> bool {
        self.worker.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// How many bytes of the recordings have been read.
    pub fn bytes_read(&self) -> u64 {
        self.shared.bytes.load(Ordering::Relaxed)
    }

    /// The same as [`Timeline::summary`] at once: of recordings that have not been gone through yet, it is
    /// guessed from the sizes of chunks, which is [said](TrackSummary::is_estimate). Asked again, more is known.
    pub fn summary(
        &self,
        range: Window,
        tracks: Option<&[(usize, TrackPath)]>,
        width: usize,
    ) -> Summary {
        let grid = grid(range, width);
        let mut summary = Summary::new(&grid);
        let shared = &*self.shared;
        let done = shared.lock().clone();
        for (recording, of) in shared.timeline.recordings.iter().enumerate() {
            let Some(done) = done.get(recording) else {
                if self.is_ended() {
                    shared
                        .timeline
                        .count_rows(recording, tracks, &grid, &mut summary);
                } else {
                    shared.estimate(recording, tracks, &grid, &mut summary);
                }
                continue;
            };
            let known = done.index.as_ref().map(|index| {
                let index = (index, &done.numbers);
                let mut found = Vec::new();
                answer(index, (recording, of), tracks, &grid, &mut found).map(|()| found)
            });
            match (known, &done.index) {
                (Some(Ok(found)), Some(index)) => {
                    summary.tracks.extend(found);
                    summary.untimed += index.meta().untimed;
                }
                // A block that was damaged later is found only now.
                _ => shared
                    .timeline
                    .count_rows(recording, tracks, &grid, &mut summary),
            }
        }
        summary.sort();
        summary
    }
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Arc<Done>>> {
        self.done.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        for of in self.timeline.recordings.iter() {
            let Some(done) = self.prepare(of) else {
                return;
            };
            self.lock().push(Arc::new(done));
            self.changed.notify_all();
        }
    }

    /// Takes the index of a recording from the cache, or makes it; `None` where nobody waits for it any more.
    fn prepare(&self, of: &AnyRecording) -> Option<Done> {
        let key = key(of, &self.options.opened);
        let cache = self.options.cache.as_ref().zip(key.as_ref());
        let cached = cache.and_then(|(cache, key)| cache.get(key));
        let mut done = match cached {
            Some(Cached::Whole(index)) if reaches(of, &index) == Some(true) => {
                let path = cache.map(|(cache, key)| cache.path(key));
                return Some(Done::new(index, 0, path, None));
            }
            Some(Cached::Older(index)) if reaches(of, &index).is_some() => {
                self.build(of, key.as_ref(), Some(&index))
            }
            _ => Ok(None),
        };
        if matches!(done, Ok(None)) {
            done = self.build(of, key.as_ref(), None);
        }
        if self.stop.load(Ordering::Relaxed) {
            return None;
        }
        let (index, read) = match done {
            Ok(Some(built)) => built,
            Ok(None) => {
                return Some(Done::none(
                    "too many of its rows are not in the order of time",
                ));
            }
            Err(error) => return Some(Done::none(&error.to_string())),
        };
        let kept = match (cache, &self.options.cache) {
            (Some((cache, key)), _) => cache.put(key, index.bytes()).map_err(|error| {
                format!("cannot write to `{}`: {error}", cache.directory().display())
            }),
            (None, Some(_)) => Err("only recordings in plain files have one that is kept".into()),
            (None, None) => Err(String::new()),
        };
        let (kept, problem) = match kept {
            Ok(path) => (Some(path), None),
            Err(problem) => (None, Some(problem).filter(|problem| !problem.is_empty())),
        };
        Some(Done::new(index, read, kept, problem))
    }

    /// Reads a recording, or what is new of it, and makes its index. `None` where that cannot be.
    fn build(
        &self,
        of: &AnyRecording,
        key: Option<&Key>,
        older: Option<&Index>,
    ) -> io::Result<Option<(Index, u64)>> {
        let mut late = Late::default();
        // Where rows are not in order, those that are late are known when it is read once more.
        for is_last in [false, true] {
            let mut contributions = Contributions::new(of);
            if older.is_some() && (contributions.has_slices() || !contributions.is_by_stream()) {
                return Ok(None);
            }
            let spool = Spool::within(u64::MAX);
            let mut building = Building {
                shared: self,
                writer: match older {
                    Some(index) => Writer::extend(spool, index)?,
                    None => Writer::new(spool)?,
                },
                late: std::mem::take(&mut late),
                is_last,
                chunks: vec![None; of.streams().len()],
                sizes: (0..of.streams().len())
                    .map(|stream| of.chunk(stream, 0).map_or(0, |chunk| chunk.bytes))
                    .collect(),
            };
            let mut meta = Meta {
                key: key.map(Key::to_bytes).unwrap_or_default(),
                ..Meta::default()
            };
            let mut within = Within {
                window: Window::ALL,
                first_chunks: Vec::new(),
            };
            if let Some(older) = older {
                contributions.know(older.tracks());
                meta.rows = older.meta().rows;
                meta.untimed = older.meta().untimed;
                let chunks = older.meta().chunks.chunks(2);
                within.first_chunks = chunks.map(|of| of[0] as usize).collect();
            }
            match contributions.is_plain() {
                true => run_plain(of, &mut contributions, &within.first_chunks, &mut building),
                false => run(of, &mut contributions, &within, &mut building),
            }
            if self.stop.load(Ordering::Relaxed) || building.late.count > MOST_LATE {
                return Ok(None);
            }
            if building.late.count > 0 && !is_last {
                if older.is_some() {
                    return Ok(None);
                }
                late = building.late;
                late.sort();
                continue;
            }
            for (track, rows) in &mut building.late.rows {
                for row in rows.drain(..) {
                    building.writer.push(*track, row);
                }
            }
            meta.rows += contributions.rows;
            meta.untimed += contributions.untimed;
            meta.chunks = chunk_key(of, None);
            let spool = building.writer.finish(&meta)?;
            let index = Index::open(spool.finish()?).map_err(io::Error::other)?;
            return Ok(Some((index, contributions.rows)));
        }
        Ok(None)
    }

    /// Guesses what happened from the sizes of chunks and their times.
    fn estimate(
        &self,
        recording: usize,
        tracks: Option<&[(usize, TrackPath)]>,
        grid: &Grid,
        summary: &mut Summary,
    ) {
        let of = &self.timeline.recordings[recording];
        let (rows, bytes) = (
            self.rows.load(Ordering::Relaxed),
            self.bytes.load(Ordering::Relaxed),
        );
        let row = (bytes.checked_div(rows))
            .filter(|&row| row > 0)
            .unwrap_or(USUAL_ROW);
        for (stream, info) in of.streams().iter().enumerate() {
            let path = TrackPath::new([stream_part(of, stream)]);
            if !is_wanted(tracks, recording, &path) {
                continue;
            }
            let mut bins: BTreeMap<u64, Bin> = BTreeMap::new();
            for chunk in of.chunks(stream) {
                estimate_chunk(&chunk, row, grid, &mut bins);
            }
            if !bins.is_empty() {
                summary.tracks.push(TrackSummary {
                    recording,
                    track: Track::new(path, Arc::clone(&info.name), of.entry_kind(stream)),
                    bins: bins.into_iter().collect(),
                    is_estimate: true,
                });
            }
        }
    }
}

/// Spreads the rows that a chunk may have over its time.
fn estimate_chunk(chunk: &Chunk, row: u64, grid: &Grid, bins: &mut BTreeMap<u64, Bin>) {
    let (Some(begin), Some(end)) = (chunk.begin_time, chunk.end_time) else {
        return;
    };
    let (begin, end) = (begin.as_nanos(), end.as_nanos().max(begin.as_nanos()));
    let (from, to) = (begin.max(grid.begin()), end.min(grid.end()));
    let (Some(first), Some(last)) = (grid.position(from), grid.position(to)) else {
        return;
    };
    let rows = (chunk.bytes / row).max(1) as f64;
    let length = end.abs_diff(begin).max(1) as f64;
    for position in first..=last {
        let span_begin = grid.begin() as i128 + position as i128 * i128::from(grid.span());
        let span_end = span_begin + i128::from(grid.span()) - 1;
        let mut bin = Bin::EMPTY;
        bin.first = span_begin.max(from.into()) as i64;
        bin.last = span_end.min(to.into()) as i64;
        let share = bin.last.abs_diff(bin.first).max(1) as f64 / length;
        bin.count = ((rows * share.min(1.0)).round() as u64).max(1);
        bins.entry(position as u64).or_default().add(&bin);
    }
}

impl Done {
    fn new(index: Index, read: u64, kept: Option<PathBuf>, problem: Option<String>) -> Self {
        let numbers = index.tracks().enumerate();
        let numbers = numbers.map(|(number, track)| (track.path.clone(), number as u32));
        let numbers: HashMap<_, _> = numbers.collect();
        let state = IndexState {
            rows: index.meta().rows,
            tracks: numbers.len(),
            bytes: index.bytes().len() as u64,
            read,
            kept,
            problem,
        };
        Self {
            numbers,
            state,
            index: Some(index),
        }
    }

    fn none(problem: &str) -> Self {
        Self {
            index: None,
            numbers: HashMap::new(),
            state: IndexState {
                rows: 0,
                tracks: 0,
                bytes: 0,
                read: 0,
                kept: None,
                problem: Some(problem.to_string()),
            },
        }
    }
}

/// Rows that are earlier than one before them on their track.
#[derive(Default)]
struct Late {
    rows: HashMap<u32, VecDeque<Row>>,
    count: usize,
}

impl Late {
    fn add(&mut self, track: u32, row: Row) {
        self.count += 1;
        if self.count <= MOST_LATE {
            self.rows.entry(track).or_default().push_back(row);
        }
    }

    fn sort(&mut self) {
        self.count = 0;
        for rows in self.rows.values_mut() {
            rows.make_contiguous().sort_by_key(|row| row.time);
        }
    }
}

/// An index in the making.
struct Building<'a> {
    shared: &'a Shared,
    writer: Writer<Spool>,
    /// Those that were met, or that are known from the time before.
    late: Late,
    is_last: bool,
    /// The chunk of each stream that was met last.
    chunks: Vec<Option<usize>>,
    /// The size of a chunk of each stream, roughly: finding each takes longer than it is worth.
    sizes: Vec<u64>,
}

impl ContributionSink for Building<'_> {
    fn track(&mut self, track: &Track) {
        self.writer.add_track(track.clone());
    }

    #[inline(always)]
    fn row(&mut self, track: u32, row: Row) {
        if self.is_last
            && let Some(known) = self.late.rows.get_mut(&track)
        {
            // Of rows of the same time, those that are in order came first.
            while known.front().is_some_and(|late| late.time < row.time)
                && let Some(late) = known.pop_front()
            {
                self.writer.push(track, late);
            }
        }
        if self.is_last || self.writer.is_next(track, row.time) {
            self.writer.push(track, row);
        } else {
            self.late.add(track, row);
        }
    }

    fn goes_on(&self) -> bool {
        let stop = self.shared.stop.load(Ordering::Relaxed);
        !stop && self.late.count <= MOST_LATE
    }

    fn run(&mut self, stream: usize, chunk: usize, rows: usize) {
        self.shared.rows.fetch_add(rows as u64, Ordering::Relaxed);
        if self.chunks[stream] != Some(chunk) {
            self.chunks[stream] = Some(chunk);
            self.shared
                .bytes
                .fetch_add(self.sizes[stream], Ordering::Relaxed);
        }
    }
}

/// For each stream the number of its chunks, and what tells them from others: of the first ones, if that many are
/// known.
fn chunk_key(of: &AnyRecording, known: Option<&[u64]>) -> Vec<u64> {
    let mut key = Vec::new();
    for stream in 0..of.streams().len() {
        let all = of.chunk_count(stream);
        let count = known.and_then(|known| known.get(2 * stream));
        let count = count.map_or(all, |&count| {
            usize::try_from(count).unwrap_or(usize::MAX).min(all)
        });
        let mut hasher = DefaultHasher::new();
        for chunk in of.chunks(stream).take(count) {
            let times =
                [chunk.begin_time, chunk.end_time].map(|time| time.map(Timestamp::as_nanos));
            (chunk.bytes, chunk.begin, chunk.end, times).hash(&mut hasher);
        }
        key.extend([count as u64, hasher.finish()]);
    }
    key
}

/// Whether an index has all of a recording; `None` where it is of something else.
fn reaches(of: &AnyRecording, index: &Index) -> Option<bool> {
    let known = &index.meta().chunks;
    let same = *known == chunk_key(of, Some(known));
    let all = 0..of.streams().len();
    let mut counts = all.map(|stream| of.chunk_count(stream) as u64);
    same.then(|| counts.by_ref().eq(known.chunks(2).map(|of| of[0])))
}

/// What tells the index of a recording from others; `None` where it is not in plain files.
fn key(of: &AnyRecording, opened: &[u8]) -> Option<Key> {
    let files: Option<Vec<FileState>> = match of {
        AnyRecording::Ctf(trace) => {
            let metadata = trace.metadata_files().iter().map(|(path, _)| path);
            let streams = trace.files().iter().map(|file| &*file.path);
            let indexes = trace.files().iter().filter_map(|file| file.index.as_ref());
            let paths = metadata
                .chain(streams)
                .chain(indexes.map(|(path, _)| &**path));
            paths.map(|path| FileState::of(path)).collect()
        }
        _ => [of.path()].into_iter().map(FileState::of).collect(),
    };
    let mut hasher = DefaultHasher::new();
    for (stream, info) in of.streams().iter().enumerate() {
        (info.class, info.id, &info.name).hash(&mut hasher);
        if let Some(clock) = &info.clock {
            format!("{clock:?}").hash(&mut hasher);
        }
        let first = of.chunk(stream, 0).and_then(|chunk| chunk.begin_time);
        first.map(Timestamp::as_nanos).hash(&mut hasher);
    }
    for class in of.event_classes() {
        (class.id, class.stream_class, &class.name).hash(&mut hasher);
    }
    let mut options = opened.to_vec();
    options.extend(hasher.finish().to_le_bytes());
    Some(Key {
        files: files?,
        options,
    })
}

/// A track of which rows are missing.
struct Partial {
    number: u32,
    known: Vec<(u64, Bin)>,
    missing: Missing,
}

/// The bins of tracks from the index of their recording; rows that it does not tell apart are read again.
fn answer(
    (index, numbers): (&Index, &HashMap<TrackPath, u32>),
    (recording, of): (usize, &AnyRecording),
    tracks: Option<&[(usize, TrackPath)]>,
    grid: &Grid,
    found: &mut Vec<TrackSummary>,
) -> Result<(), Damaged> {
    let all: Vec<&Track> = index.tracks().collect();
    let wanted: Vec<u32> = match tracks {
        None => (0..all.len() as u32).collect(),
        Some(tracks) => {
            let of_recording = tracks.iter().filter(|(of, _)| *of == recording);
            let numbers = of_recording.filter_map(|(_, path)| numbers.get(path).copied());
            numbers
                .collect::<std::collections::BTreeSet<_>>()
                .into_iter()
                .collect()
        }
    };
    let mut summarize = |number: u32, bins: Vec<(u64, Bin)>| {
        if !bins.is_empty() {
            found.push(TrackSummary {
                recording,
                track: all[number as usize].clone(),
                bins,
                is_estimate: false,
            });
        }
    };
    let mut answer = Answer::new(grid);
    let mut partial = Vec::new();
    for number in wanted {
        index.fill(number, grid, &mut answer)?;
        let (known, missing) = answer.take();
        match missing {
            None => summarize(number, known),
            Some(missing) => partial.push(Partial {
                number,
                known,
                missing,
            }),
        }
    }
    read_missing(of, (&all, numbers), grid, &mut partial);
    for Partial {
        number,
        known,
        missing,
    } in partial
    {
        summarize(number, missing.complete(known));
    }
    Ok(())
}

/// Reads the rows that are missing.
fn read_missing(
    of: &AnyRecording,
    (all, numbers): (&[&Track], &HashMap<TrackPath, u32>),
    grid: &Grid,
    partial: &mut [Partial],
) {
    let ranges = partial.iter().flat_map(|of| of.missing.ranges());
    let mut ranges: Vec<(i64, i64)> = ranges
        .map(|&(begin, end)| (begin.max(grid.begin()), end.min(grid.end())))
        .collect();
    ranges.sort_unstable();
    let near = (i128::from(grid.end()) - i128::from(grid.begin())) / MOST_RANGES;
    ranges.dedup_by(|next, before| {
        let is_near = i128::from(next.0) - i128::from(before.1) <= near;
        if is_near {
            before.1 = before.1.max(next.1);
        }
        is_near
    });
    let has_slices = Contributions::new(of).has_slices();
    if has_slices && let Some(&(_, end)) = ranges.last() {
        // What ends may have begun long before.
        ranges = vec![(i64::MIN, end)];
    }
    // Where each stream is a track, only theirs are read.
    let streams = 0..of.streams().len();
    let classes = 0..of.event_classes().len();
    let rules = classes
        .clone()
        .all(|class| of.track_rule(class) == TrackRule::Stream);
    let is_missing = |stream: usize| {
        let path = TrackPath::new([stream_part(of, stream)]);
        let is_of = |track: &Track| track.path.parts().first() == path.parts().first();
        partial.iter().any(|of| is_of(all[of.number as usize]))
    };
    let first = |stream| {
        if !rules || is_missing(stream) {
            0
        } else {
            usize::MAX
        }
    };
    let first_chunks: Vec<usize> = streams.map(first).collect();
    let mut places = vec![None; all.len()];
    for (place, of) in partial.iter().enumerate() {
        places[of.number as usize] = Some(place);
    }
    for (begin, end) in ranges {
        let within = Within {
            window: Window {
                begin: Timestamp::from_nanos(begin),
                end: Timestamp::from_nanos(end),
            },
            first_chunks: first_chunks.clone(),
        };
        let mut reread = Reread {
            numbers,
            places: &places,
            partial,
            tracks: Vec::new(),
        };
        run(of, &mut Contributions::new(of), &within, &mut reread);
    }
}

/// Adds rows where they are missing.
struct Reread<'a> {
    numbers: &'a HashMap<TrackPath, u32>,
    places: &'a [Option<usize>],
    partial: &'a mut [Partial],
    /// Of tracks as they are met.
    tracks: Vec<Option<usize>>,
}

impl ContributionSink for Reread<'_> {
    fn track(&mut self, track: &Track) {
        let other = || TrackPath::new([kymo_model::TrackPart::Name("other".into())]);
        let number = self
            .numbers
            .get(&track.path)
            .or_else(|| self.numbers.get(&other()));
        let place = number.and_then(|&number| self.places[number as usize]);
        self.tracks.push(place);
    }

    fn row(&mut self, track: u32, row: Row) {
        if let Some(place) = self.tracks[track as usize] {
            self.partial[place].missing.push(&row);
        }
    }
}
