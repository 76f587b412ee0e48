//! Builds the index of a recording, or takes it from the cache.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use kymo_ctf::trace::Trace;
use kymo_index::{Cached, Index, Key, Meta, Row, Writer};
use kymo_io::Spool;
use kymo_model::{FaultReport, Recording, Track};

use super::cached::{chunk_key, key, reaches};
use super::estimate::Seen;
use super::{Done, IndexState, Shared};
use crate::AnyRecording;
use crate::open::packet_key;
use crate::pipeline::Window;
use crate::timeline::contributions::{ContributionSink, Contributions, own_begin};
use crate::timeline::pass::{Chunks, count_chunks, run, run_plain};
use crate::timeline::summary::Within;

/// A recording of which more rows are earlier than one before them has no index.
const MOST_LATE: usize = 1 << 20;

/// An index that was built.
struct Built {
    index: Index,
    /// Rows that were read for it, and faults that were met.
    read: u64,
    faults: Vec<FaultReport>,
}

impl Shared {
    pub(super) fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Arc<Done>>> {
        self.done.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn seen(&self) -> std::sync::MutexGuard<'_, Option<Arc<Seen>>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn work(&self) {
        for (recording, is_unindexed) in self.timeline.recordings.iter().zip(&self.is_unindexed) {
            let done = match is_unindexed {
                true => Some(Done::default()),
                false => self.prepare(recording),
            };
            let Some(done) = done else {
                return;
            };
            self.lock().push(Arc::new(done));
            self.changed.notify_all();
            self.keep_packets(recording);
        }
    }

    /// Takes the index of a recording from the cache, or builds it; `None` if nothing waits for it any more.
    fn prepare(&self, recording: &AnyRecording) -> Option<Done> {
        let key = key(recording, &self.options.opened);
        let cache = self.options.cache.as_ref().zip(key.as_ref());
        let cached = cache.and_then(|(cache, key)| cache.get(key));
        let mut built = match cached {
            Some(Cached::Whole(index)) if reaches(recording, &index) == Some(true) => {
                let kept = cache.map(|(cache, key)| cache.path(key));
                let state = IndexState {
                    kept,
                    ..IndexState::default()
                };
                return Some(Done::new(index, state));
            }
            Some(Cached::Older(index)) if reaches(recording, &index).is_some() => {
                self.build(recording, key.as_ref(), Some(&index))
            }
            _ => Ok(None),
        };
        if matches!(built, Ok(None)) {
            self.await_beginning();
            built = self.build(recording, key.as_ref(), None);
        }
        if self.stop.load(Ordering::Relaxed) {
            return None;
        }
        let Built {
            index,
            read,
            faults,
        } = match built {
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
                let directory = cache.directory().display();
                format!("cannot write to `{directory}`: {}", kymo_io::reason(&error))
            }),
            (None, Some(_)) => Err("only recordings in plain files have one that is kept".into()),
            (None, None) => Err(String::new()),
        };
        let (kept, problem) = match kept {
            Ok(path) => (Some(path), None),
            Err(problem) => (None, Some(problem).filter(|problem| !problem.is_empty())),
        };
        let state = IndexState {
            read,
            kept,
            problem,
            faults,
            ..IndexState::default()
        };
        Some(Done::new(index, state))
    }

    /// Keeps the packets that were found when a trace was opened, so that it is opened without looking for them.
    fn keep_packets(&self, recording: &AnyRecording) {
        let cache = self.options.cache.as_ref();
        let table = recording.as_ctf().and_then(Trace::packet_table);
        if let Some((cache, (source, table))) = cache.zip(table) {
            // If it cannot be written, they are found again.
            let _ = cache.put_note(&packet_key(source), &table);
        }
    }

    /// Waits until building may begin.
    fn await_beginning(&self) {
        /// Who lets it begin, or stops it, does not hold the lock.
        const STEP: Duration = Duration::from_millis(20);
        let may_wait =
            || !self.is_begun.load(Ordering::Acquire) && !self.stop.load(Ordering::Relaxed);
        let mut done = self.lock();
        while may_wait() {
            let left = self
                .begins
                .map(|at| at.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return;
            }
            let step = left.map_or(STEP, |left| left.min(STEP));
            let waited = self.changed.wait_timeout(done, step);
            done = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Reads a recording, or what is new of it, and makes its index. `None` where that cannot be.
    fn build(
        &self,
        source: &AnyRecording,
        key: Option<&Key>,
        older: Option<&Index>,
    ) -> io::Result<Option<Built>> {
        let mut late = Late::default();
        let mut recordings = self.timeline.recordings.iter();
        let recording = recordings.position(|other| std::ptr::eq(other, source));
        let seen = recording.filter(|_| older.is_none());
        let seen = seen.map(|recording| Arc::new(Seen::new(recording, source)));
        self.seen().clone_from(&seen);
        // Where rows are not in order, those that are late are known when it is read once more.
        for is_last in [false, true] {
            let mut contributions = Contributions::new(source);
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
                seen: seen.as_deref().filter(|_| !is_last),
                chunks: vec![None; source.streams().len()],
                sizes: (0..source.streams().len())
                    .map(|stream| source.chunk(stream, 0).map_or(0, |chunk| chunk.bytes))
                    .collect(),
            };
            let mut meta = older.map_or_else(Meta::default, |older| older.meta().clone());
            meta.key = key.map(Key::to_bytes).unwrap_or_default();
            let mut within = Within {
                window: Window::ALL,
                first_chunks: Vec::new(),
            };
            if let Some(older) = older {
                contributions.know(older.tracks());
                let chunks = meta.chunks.chunks(2);
                within.first_chunks = chunks.map(|pair| pair[0] as usize).collect();
            }
            let chunks = Chunks::new(source, &within.first_chunks);
            let is_plain = contributions.is_plain() && chunks.are_small();
            let result = match is_plain {
                true => run_plain(source, &mut contributions, &chunks, &mut building),
                false => run(source, &mut contributions, &within, &mut building),
            };
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
            if contributions.may_be_timed {
                meta.only_at = Some(own_begin(source));
            }
            meta.faults += result.faults.len() as u64 + result.more_faults;
            meta.counts.extend(match is_plain {
                true => result.counts,
                false => count_chunks(source, &chunks, &self.stop),
            });
            meta.counts
                .sort_by_key(|counts| (counts.stream, counts.first));
            meta.open = contributions.open_at.take().unwrap_or_default();
            meta.chunks = chunk_key(source, None);
            let spool = building.writer.finish(&meta)?;
            let index = Index::open(spool.finish()?).map_err(io::Error::other)?;
            return Ok(Some(Built {
                index,
                read: contributions.rows,
                faults: result.faults,
            }));
        }
        Ok(None)
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
    /// What estimates use.
    seen: Option<&'a Seen>,
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

    fn rows(&mut self, track: u32, times: &[i64], classes: &[u32]) -> bool {
        let has_late = self.is_last && self.late.rows.contains_key(&track);
        !has_late && self.writer.push_all(track, times, classes)
    }

    fn goes_on(&self) -> bool {
        let stop = self.shared.stop.load(Ordering::Relaxed);
        !stop && self.late.count <= MOST_LATE
    }

    fn run(&mut self, stream: usize, chunk: usize, rows: usize) {
        self.shared.rows.fetch_add(rows as u64, Ordering::Relaxed);
        let is_new = self.chunks[stream] != Some(chunk);
        if let Some(seen) = self.seen {
            seen.add(stream, chunk, rows, is_new.then(|| self.sizes[stream]));
        }
        if is_new {
            self.chunks[stream] = Some(chunk);
            self.shared
                .bytes
                .fetch_add(self.sizes[stream], Ordering::Relaxed);
        }
    }
}
