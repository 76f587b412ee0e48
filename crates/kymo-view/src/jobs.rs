//! What takes longer than a request: searches, statistics and analyses, in threads of their own.

use std::collections::{BTreeMap, HashSet};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use kymo::timeline::Columns;
use kymo_model::{EntryKind, Recording, SliceRole};
use kymo_time::Timestamp;
use serde_json::Value;

use crate::matches::{MOST_MATCHES, Matches};
use crate::scene::{Scene, window};
use crate::stats::Values;
use crate::tracks::Classifier;

/// Searches that are kept, each with its rows; the oldest one ends for a new one.
const MOST_SEARCHES: usize = 8;

/// Rows of all searches that are kept when another one begins.
const MOST_ROWS: usize = 2 * MOST_MATCHES;

/// Other jobs that are kept.
const MOST_OTHERS: usize = 16;

/// Lines of statistics at most.
const MOST_LINES: usize = 20_000;

/// A search, statistics, or an analysis.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) number: u64,
    pub(crate) matches: Option<Matches>,
    pub(crate) stats: Option<Mutex<Stats>>,
    /// What came of an analysis.
    pub(crate) answer: OnceLock<Result<Value, String>>,
    /// Values of a field, by the numbers that rows have as their classes.
    pub(crate) values: Mutex<Vec<String>>,
    /// Bytes that were read so far.
    pub(crate) bytes: AtomicU64,
    pub(crate) stop: Arc<AtomicBool>,
    done: AtomicBool,
}

impl Job {
    pub(crate) fn is_done(&self) -> bool {
        self.done.load(Ordering::Relaxed)
    }

    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    pub(crate) fn stats(&self) -> Option<MutexGuard<'_, Stats>> {
        let stats = self.stats.as_ref()?;
        Some(stats.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Statistics of an area.
#[derive(Debug, Default)]
pub(crate) struct Stats {
    pub(crate) rows: u64,
    pub(crate) is_cut: bool,
    /// By recording, class (`None` for slices) and track.
    pub(crate) lines: BTreeMap<(usize, Option<u32>, u32, u32), StatsLine>,
}

/// Statistics of the rows of a class on a track.
#[derive(Debug, Default)]
pub(crate) struct StatsLine {
    pub(crate) count: u64,
    pub(crate) fields: BTreeMap<Arc<str>, Values>,
}

/// All jobs.
#[derive(Debug, Default)]
pub(crate) struct Jobs {
    list: Mutex<(u64, Vec<Arc<Job>>)>,
}

impl Jobs {
    fn lock(&self) -> MutexGuard<'_, (u64, Vec<Arc<Job>>)> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn get(&self, number: u64) -> Option<Arc<Job>> {
        self.lock()
            .1
            .iter()
            .find(|job| job.number == number)
            .cloned()
    }

    /// Ends a job and forgets what it has found.
    pub(crate) fn stop(&self, number: u64) {
        let mut list = self.lock();
        if let Some(at) = list.1.iter().position(|job| job.number == number) {
            list.1.remove(at).stop();
        }
    }

    pub(crate) fn start(
        &self,
        matches: Option<Matches>,
        stats: Option<Stats>,
        work: impl FnOnce(&Job) + Send + 'static,
    ) -> Arc<Job> {
        let mut list = self.lock();
        list.0 += 1;
        let job = Arc::new(Job {
            number: list.0,
            matches,
            stats: stats.map(Mutex::new),
            answer: OnceLock::new(),
            values: Mutex::default(),
            bytes: AtomicU64::new(0),
            stop: Arc::default(),
            done: AtomicBool::new(false),
        });
        let is_search = job.matches.is_some();
        let most = if is_search {
            MOST_SEARCHES
        } else {
            MOST_OTHERS
        };
        let alike = |job: &Arc<Job>| job.matches.is_some() == is_search;
        if list.1.iter().filter(|job| alike(job)).count() >= most
            && let Some(oldest) = list.1.iter().position(alike)
        {
            list.1.remove(oldest).stop();
        }
        // However many pages search at once.
        let rows = |job: &Arc<Job>| {
            job.matches
                .as_ref()
                .map_or(0, |matches| matches.lock().count)
        };
        while list.1.iter().map(rows).sum::<usize>() > MOST_ROWS
            && let Some(oldest) = list.1.iter().position(|job| rows(job) > 0)
        {
            list.1.remove(oldest).stop();
        }
        list.1.push(Arc::clone(&job));
        let own = Arc::clone(&job);
        let run = move || {
            work(&own);
            own.done.store(true, Ordering::Relaxed);
        };
        if std::thread::Builder::new().spawn(run).is_err() {
            job.done.store(true, Ordering::Relaxed);
        }
        job
    }

    /// Searches the rows that a condition holds for, from a view outwards.
    pub(crate) fn search(
        &self,
        scene: &Arc<Scene>,
        condition: String,
        view: Option<(i64, i64)>,
    ) -> Arc<Job> {
        let scene = Arc::clone(scene);
        self.start(Some(Matches::default()), None, move |job| {
            if let Some(found) = &job.matches {
                // The condition was checked before.
                let mut query = scene.query(Some(&condition));
                // Panning goes on beside it.
                query.threads = query.threads.saturating_sub(1).max(1);
                let _ = scene.find(query, found, view, &job.stop);
            }
        })
    }

    /// Computes the statistics of a range of time on some tracks.
    pub(crate) fn stats(
        &self,
        scene: &Arc<Scene>,
        (begin, end): (i64, i64),
        tracks: Vec<u32>,
    ) -> Arc<Job> {
        let scene = Arc::clone(scene);
        self.start(None, Some(Stats::default()), move |job| {
            let tracks: HashSet<u32> = tracks.into_iter().collect();
            rows_stats(&scene, job, (begin, end), &tracks);
            slices_stats(&scene, job, (begin, end), &tracks);
        })
    }
}

impl Stats {
    fn line(&mut self, key: (usize, Option<u32>, u32, u32)) -> Option<&mut StatsLine> {
        if self.lines.len() >= MOST_LINES && !self.lines.contains_key(&key) {
            self.is_cut = true;
            return None;
        }
        Some(self.lines.entry(key).or_default())
    }
}

fn rows_stats(scene: &Scene, job: &Job, (begin, end): (i64, i64), tracks: &HashSet<u32>) {
    let mut query = scene.query(None);
    query.range = query.range.and(window(begin, end));
    query.columns = Columns::All;
    query.batch_rows = 1 << 12;
    query.stop = Some(Arc::clone(&job.stop));
    let recordings = scene.recordings();
    // The condition was checked before.
    let Ok(mut classifier) = Classifier::new(scene, &mut query) else {
        return;
    };
    let _ = scene.timeline.for_each_batch(&query, |batch| {
        let Some(mut stats) = job.stats() else {
            return ControlFlow::Break(());
        };
        for row in 0..batch.len() {
            let head = batch.head(row);
            let recording = head.id.recording as usize;
            let time = head.time.map(Timestamp::as_nanos);
            if !time.is_some_and(|time| scene.is_wanted(recording, time)) {
                continue;
            }
            stats.rows += 1;
            let role = recordings[recording].roles(head.class as usize).slice;
            if matches!(role, SliceRole::Whole(_)) {
                // It is counted as a slice.
                continue;
            }
            let kind = recordings[recording].entry_kind(head.id.stream as usize);
            for part in classifier.parts(&batch, row) {
                if !tracks.contains(&part.track) {
                    continue;
                }
                let key = (recording, Some(head.class), part.track, 0);
                let Some(line) = stats.line(key) else {
                    continue;
                };
                line.count += 1;
                if kind == EntryKind::Sample {
                    if let Some(value) = part.value {
                        line.fields.entry("value".into()).or_default().push(value);
                    }
                    continue;
                }
                for (column, info) in batch.columns().iter().zip(batch.schema().iter()) {
                    if &*info.name == "track" {
                        continue;
                    }
                    if let Some(value) = column.value(row).to_f64() {
                        match line.fields.get_mut(&info.name) {
                            Some(values) => values.push(value),
                            None => {
                                let values = line.fields.entry(Arc::clone(&info.name));
                                values.or_default().push(value);
                            }
                        }
                    }
                }
            }
        }
        match job.stop.load(Ordering::Relaxed) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    });
}

/// Adds the durations of the slices that begin in a range of time, by their names.
fn slices_stats(scene: &Scene, job: &Job, (begin, end): (i64, i64), tracks: &HashSet<u32>) {
    let slices = Arc::clone(&scene.state().slices);
    for track in slices.tracks().filter(|track| tracks.contains(track)) {
        let recording = scene
            .tracks
            .get(track)
            .map_or(0, |(recording, _)| recording);
        let Some(mut stats) = job.stats() else { return };
        for drawn in slices.draw(track, (begin, end), 0, |_| true) {
            let slice = drawn.slice;
            if slice.begin < begin || slice.is_open {
                continue;
            }
            let Some(line) = stats.line((recording, None, track, slice.name)) else {
                continue;
            };
            line.count += 1;
            let duration = slice.end.abs_diff(slice.begin) as f64;
            line.fields
                .entry("duration".into())
                .or_default()
                .push(duration);
        }
    }
}
