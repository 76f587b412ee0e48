//! Writers: threads that bring updates to the files, many of a file at once.

use std::any::Any;
use std::collections::{BinaryHeap, VecDeque};
use std::io;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use kymo_io::{Locking, Shared};
use kymo_rrd::Time;
use kymo_rrd::engine::{FileError, Files};
use kymo_rrd::engine::{Rrd, Sample, UpdateError, UpdateOptions};
use kymo_rrd::file::portable::Durability;

use super::accept::is_later;
use super::database::Place;
use super::update::records;
use super::{Database, Store};
use crate::log::Level;
use crate::sync::{lock, wait};

/// When a file is tried again that could not be written.
const RETRY: Duration = Duration::from_secs(5);
/// Minimum number of updates, given at once, for which a file is mapped.
const MANY: usize = 4;
/// Number of bytes of records that are written together: in the engine's form, readings are far larger.
const PIECE: usize = 1 << 16;
/// Memory of this size is kept for the next updates.
const SMALL: usize = 1 << 10;
/// At most this many refused updates are logged.
const TOLD: u64 = 100;

/// What a writer is to do.
#[derive(Debug, Default)]
pub(super) struct Queue {
    state: Mutex<Jobs>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Jobs {
    /// What is to be done now, in order.
    urgent: VecDeque<Job>,
    /// Databases that are written when their time has come.
    due: BinaryHeap<Due>,
    stops: bool,
}

#[derive(Debug)]
enum Job {
    /// Write a database, because its time has come.
    Due(Arc<Database>),
    /// Write a database on request.
    Write(Arc<Database>),
    /// Report that all jobs before this one are done.
    Report(Sender<()>),
}

/// A database and when it is written. The earliest is the greatest.
#[derive(Debug)]
struct Due(Instant, Arc<Database>);

impl Ord for Due {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        other.0.cmp(&self.0)
    }
}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Due {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Eq for Due {}

impl Queue {
    fn jobs(&self) -> MutexGuard<'_, Jobs> {
        lock(&self.state)
    }

    /// Has a database written at a time.
    pub(super) fn schedule(&self, database: &Arc<Database>, when: Instant) {
        let mut jobs = self.jobs();
        let is_first = jobs.due.peek().is_none_or(|first| when < first.0);
        jobs.due.push(Due(when, Arc::clone(database)));
        drop(jobs);
        if is_first {
            self.changed.notify_one();
        }
    }

    /// Has a database written now: before all others, or after those that are to be written now.
    pub(super) fn write(&self, database: &Arc<Database>, first: bool) {
        let job = Job::Write(Arc::clone(database));
        let mut jobs = self.jobs();
        match first {
            true => jobs.urgent.push_front(job),
            false => jobs.urgent.push_back(job),
        }
        drop(jobs);
        self.changed.notify_one();
    }

    /// Notifies `done` when all jobs that are to be done now are done.
    pub(super) fn report(&self, done: Sender<()>) {
        self.jobs().urgent.push_back(Job::Report(done));
        self.changed.notify_one();
    }

    /// The databases that wait to be written now.
    pub(super) fn waiting(&self) -> Vec<Arc<Database>> {
        let jobs = self.jobs();
        let databases = jobs.urgent.iter().filter_map(|job| match job {
            Job::Write(database) => Some(Arc::clone(database)),
            Job::Due(_) | Job::Report(_) => None,
        });
        databases.collect()
    }

    /// Ends the writer when it has done what is to be done now.
    pub(super) fn stop(&self) {
        self.jobs().stops = true;
        self.changed.notify_one();
    }

    /// Waits for something to do. `None` at the end.
    fn next(&self) -> Option<Job> {
        let mut jobs = self.jobs();
        loop {
            if let Some(job) = jobs.urgent.pop_front() {
                return Some(job);
            }
            if jobs.stops {
                return None;
            }
            let now = Instant::now();
            let rest = jobs.due.peek().map(|first| first.0.duration_since(now));
            jobs = match rest {
                Some(Duration::ZERO) => {
                    return jobs.due.pop().map(|Due(_, database)| Job::Due(database));
                }
                Some(rest) => match self.changed.wait_timeout(jobs, rest) {
                    Ok((jobs, _)) => jobs,
                    Err(poisoned) => poisoned.into_inner().0,
                },
                None => wait(&self.changed, jobs),
            };
        }
    }
}

/// What has become of updates.
enum Outcome {
    /// All were written or refused; the last update of the file is of this time now.
    Settled(Time),
    /// The file cannot be written now; `settled` bytes of the records were settled.
    Kept { settled: usize, reason: String },
    /// The file no longer exists.
    Gone,
}

/// Runs the jobs of a queue until it ends.
pub(super) fn run(store: &Store, index: usize) {
    let queue = &store.queues[index];
    let mut files = Files::new(store.options.open_files);
    while let Some(job) = queue.next() {
        match job {
            Job::Due(database) => {
                database.state().scheduled = false;
                write(store, &database, &mut files);
            }
            Job::Write(database) => {
                database.state().urgent = false;
                write(store, &database, &mut files);
            }
            // Whoever has stopped waiting does not need a notification.
            Job::Report(done) => drop(done.send(())),
        }
    }
}

/// Writes what is pending of a database.
fn write(store: &Store, database: &Arc<Database>, files: &mut Files) {
    let mut state = database.state();
    let wanted = state.wanted;
    let is_expired = |since: Instant| since.elapsed() >= store.options.suspend_limit;
    if state.suspended.is_some_and(is_expired) {
        let limit = store.options.suspend_limit.as_secs();
        let reason = format!("the limit of {limit} seconds is reached");
        store.end_suspension(database, &mut state, &reason);
    }
    if state.suspended.is_some() || state.count == 0 || state.place != Place::Known {
        state.served = wanted;
        database.served.notify_all();
        return;
    }
    let count = std::mem::take(&mut state.count);
    let since = state.since;
    let mut pending = std::mem::take(&mut state.pending);
    state.writing = true;
    drop(state);

    let taken = pending.len();
    // A fault of the program takes neither the updates with it nor those who wait for them, and this thread
    // serves other databases. To end the program would be worse: the journal brings back the same updates,
    // and so the same fault, and then no database is served.
    let mut overtaken = 0;
    let work = || write_records(store, database.path(), files, &pending, &mut overtaken);
    let begun = Instant::now();
    let outcome = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        // What is known of open files may be wrong now.
        files.clear();
        Outcome::Kept {
            settled: 0,
            reason: format!("a fault of this program: {}", message(panic.as_ref())),
        }
    });
    store.counters.write_times.add(begun.elapsed());
    let mut state = database.state();
    // That of those which have come meanwhile is near enough.
    state.since = (state.count > 0).then_some(begun);
    let path = String::from_utf8_lossy(database.path());
    if overtaken > 0 {
        store.counters.overtaken.fetch_add(overtaken, Relaxed);
        state.overtaken += overtaken;
        store.log_limiter.report(format_args!(
            "{path}: {overtaken} accepted updates are lost: another program has written later ones to the file"
        ));
    }
    match outcome {
        Outcome::Settled(last) => {
            if state.pending.is_empty() {
                // Not that of an update that was refused.
                state.last = last;
            }
            if state.failed.take().is_some() {
                (store.options.log)(Level::Info, &format!("{path}: is written again"));
            }
            pending.clear();
        }
        Outcome::Kept { settled, reason } => {
            pending.drain(..settled);
            if state.failed.as_ref() != Some(&reason) {
                (store.options.log)(
                    Level::Error,
                    &format!("{path}: is tried again later: {reason}"),
                );
            }
            state.failed = Some(reason);
            store.counters.write_errors.fetch_add(1, Relaxed);
        }
        Outcome::Gone => {
            // With those that have come since.
            let lost = count + std::mem::take(&mut state.count);
            let since = std::mem::take(&mut state.pending);
            store.pending_bytes.fetch_sub(since.len(), Relaxed);
            let text = "the file no longer exists";
            (store.options.log)(
                Level::Error,
                &format!("{path}: {text}, {lost} updates are lost"),
            );
            state.failed = Some(text.into());
            store.counters.dropped.fetch_add(lost as u64, Relaxed);
            pending.clear();
            state.place = Place::Forgotten;
        }
    }
    store
        .pending_bytes
        .fetch_sub(taken - pending.len(), Relaxed);
    if !pending.is_empty() {
        // What is kept comes before what has come since.
        state.since = since;
        state.count += records(&pending).count();
        pending.extend_from_slice(&state.pending);
        state.pending = pending;
        if !state.scheduled {
            store.schedule(database, &mut state, RETRY);
        }
    } else if state.pending.is_empty() && pending.capacity() <= SMALL {
        // The memory is used again, if it is not much.
        state.pending = pending;
    }
    state.writing = false;
    state.served = wanted;
    if state.place == Place::Forgotten {
        store.remove(database);
    }
    drop(state);
    database.served.notify_all();
}

/// What a panic says.
fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("unknown cause")
}

/// Writes records to a file, and counts those that another program has overtaken. A program that was killed leaves
/// none: what the files have already is not taken from the journal.
fn write_records(
    store: &Store,
    path: &[u8],
    files: &mut Files,
    pending: &[u8],
    overtaken: &mut u64,
) -> Outcome {
    store.counters.writes.fetch_add(1, Relaxed);
    let many = records(pending).nth(MANY - 1).is_some();
    // Who reads it, in this daemon or elsewhere, is soon done.
    let done = files.with(path, None, Locking::Briefly, |rrd| {
        if store.is_durable() {
            // Before the journal may lose them, they are on the disk.
            rrd.set_durability(Durability::Synced);
        }
        if many {
            // Where it cannot be mapped, it is written all the same.
            let _ = rrd.storage_mut().map_now();
        }
        let last = rrd.last_update();
        let past: Vec<_> = records(pending)
            .take_while(|record| !is_later(record.time, last))
            .map(|record| record.bytes.len())
            .collect();
        *overtaken = past.len() as u64;
        let mut settled = past.into_iter().sum();
        while settled < pending.len() {
            match write_piece(store, path, rrd, &pending[settled..]) {
                Ok(bytes) => settled += bytes,
                Err((bytes, reason)) => return Err((settled + bytes, reason)),
            }
        }
        Ok(rrd.last_update())
    });
    match done {
        Ok(Ok(last)) => Outcome::Settled(last),
        Ok(Err((settled, reason))) => Outcome::Kept { settled, reason },
        Err(FileError::Open(error)) if error.kind() == io::ErrorKind::NotFound => Outcome::Gone,
        Err(error) => Outcome::Kept {
            settled: 0,
            reason: error.to_string(),
        },
    }
}

/// Writes the first records, at least one, and returns the number of their bytes.
///
/// # Errors
///
/// How many bytes were settled before the file could not be written, and why it could not.
fn write_piece(
    store: &Store,
    path: &[u8],
    rrd: &mut Rrd<Shared>,
    pending: &[u8],
) -> Result<usize, (usize, String)> {
    let mut measured = Vec::new();
    let mut moments: Vec<(Time, Range<usize>)> = Vec::new();
    // Where each record ends.
    let mut ends = vec![0];
    let mut end = 0;
    for record in records(pending) {
        let first = measured.len();
        record.measure(&mut measured);
        moments.push((record.time, first..measured.len()));
        end += record.bytes.len();
        ends.push(end);
        if end >= PIECE {
            break;
        }
    }
    let samples = moments.into_iter().map(|(time, values)| Sample {
        time,
        values: &measured[values],
    });
    let samples: Vec<_> = samples.collect();
    match take_all(store, path, rrd, &samples) {
        Ok(()) => Ok(end),
        Err((place, reason)) => Err((ends[place], reason)),
    }
}

/// Gives samples to a database; what it refuses is passed over.
///
/// # Errors
///
/// How many were settled before the file could not be written, and why it could not.
fn take_all(
    store: &Store,
    path: &[u8],
    rrd: &mut Rrd<Shared>,
    samples: &[Sample<'_>],
) -> Result<(), (usize, String)> {
    let counters = &store.counters;
    let options = UpdateOptions::default();
    let mut settled = 0;
    while settled < samples.len() {
        match rrd.update_all(&samples[settled..], &options) {
            Ok(taken) => {
                counters.written.fetch_add(taken as u64, Relaxed);
                return Ok(());
            }
            Err((place, UpdateError::Store(error))) => {
                counters.written.fetch_add(place as u64, Relaxed);
                return Err((settled + place, error.to_string()));
            }
            Err((place, error)) => {
                counters.written.fetch_add(place as u64, Relaxed);
                // The first ones are logged; all would be too many for a source that errs each time.
                if counters.refused.fetch_add(1, Relaxed) < TOLD {
                    let path = String::from_utf8_lossy(path);
                    (store.options.log)(
                        Level::Error,
                        &format!("{path}: an update is refused: {error}"),
                    );
                }
                settled += place + 1;
            }
        }
    }
    Ok(())
}
