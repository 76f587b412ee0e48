//! Databases by their paths, each with the updates that are not yet in its file.
//!
//! Sources [accept](Store::accept) updates: what comes in order is kept in memory, where it waits for
//! [`Timing::write_timeout`], and then written with all that has come meanwhile. Each database has one
//! of several writers, which keeps its file open.
//!
//! Sources that acknowledge put what was accepted into a [`Group`] and [commit](Store::commit) it before
//! they answer: then the journal has it, and a program that is killed at any time finds it
//! there when it starts again.

mod accept;
mod create;
mod database;
mod displace;
mod flush;
mod options;
mod recover;
mod snapshot;
mod update;
mod upkeep;
mod writer;

use std::io;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use foldhash::fast::FixedState;
use foldhash::{HashMap, HashMapExt, HashSet, HashSetExt};
use kymo_io::{Shared, create_directories, reason};
use kymo_rrd::engine::Rrd;
use kymo_rrd::model::SourceKind;

use crate::journal::{Journal, at};
use crate::log_limiter::LogLimiter;
use crate::metrics::Histogram;
use crate::series_index::{self, SeriesIndex};
use crate::sync::lock;
pub use accept::{Group, Refused};
pub use database::Database;
use database::{Place, State};
pub use options::{Options, Timing};
pub(crate) use options::{bytes_of, path_of};
pub(crate) use recover::nothing_there;
pub(crate) use update::first_record;
pub(crate) use update::records;
pub use update::{Readings, Record, Update};
use upkeep::{Upkeep, Wish};
use writer::Queue;

pub use crate::log::{Level, Log, no_log};

/// The same, for what is shown while programs are debugged.
pub(crate) struct LogOf(pub(crate) Log);

impl std::fmt::Debug for LogOf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Log")
    }
}

/// What a store has done since it was opened.
#[derive(Debug, Default)]
pub struct Counters {
    /// Updates that were accepted.
    pub accepted: AtomicU64,
    /// Updates that were not: their times are not after the last.
    pub past: AtomicU64,
    /// Updates that were lost: there was no room for them, or their file is gone or could not be written
    /// until the end.
    pub dropped: AtomicU64,
    /// How often files were written, or were to be.
    pub writes: AtomicU64,
    /// Updates that were written.
    pub written: AtomicU64,
    /// Updates that their databases have refused.
    pub refused: AtomicU64,
    /// Updates that were accepted and then lost, since another program had written later ones to their files.
    pub overtaken: AtomicU64,
    /// Updates that were not accepted: their times are too far ahead.
    pub future: AtomicU64,
    /// How long writes of files took.
    pub write_times: Histogram,
    /// How often a suspended database was resumed because of a limit.
    pub suspensions_ended: AtomicU64,
    /// How often files could not be written.
    pub write_errors: AtomicU64,
    /// Requests to write a file.
    pub flushes: AtomicU64,
}

impl Counters {
    /// How often files were written, and that did not fail.
    pub fn successful_writes(&self) -> u64 {
        let errors = self.write_errors.load(Relaxed);
        self.writes.load(Relaxed).saturating_sub(errors)
    }
}

/// What has become of a request to write a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Flushed {
    /// The file has all that was accepted before.
    Written,
    /// There was nothing to write, or it is kept in memory for now.
    Nothing,
    /// It cannot be written, for this reason; the updates are kept.
    Failed(String),
}

type Shard = Mutex<HashMap<Box<[u8]>, Arc<Database>>>;

/// Databases and the updates that are not yet in their files.
#[derive(Debug)]
pub struct Store {
    options: Options,
    timing: RwLock<Timing>,
    shards: [Shard; SHARDS],
    queues: Vec<Queue>,
    journal: Option<Journal>,
    index: SeriesIndex,
    /// Records that the journal has for databases that could not be opened yet, by their paths.
    /// Held while something is carried over to a new journal, so that nothing is forgotten meanwhile.
    unopened: Mutex<HashMap<Box<[u8]>, Vec<u8>>>,
    /// Paths that somebody is [alone](displace::PathLock) with, and what signals that one was released.
    busy: Mutex<HashSet<Box<[u8]>>>,
    free: Condvar,
    pending_bytes: AtomicUsize,
    /// What it has done.
    pub counters: Counters,
    upkeep: Upkeep,
    /// Seconds since 1970 that no update is after unless the clock was looked at again.
    latest: AtomicI64,
    log_limiter: LogLimiter,
    threads: Mutex<Threads>,
}

#[derive(Debug, Default)]
struct Threads {
    writers: Vec<JoinHandle<()>>,
    upkeep: Option<JoinHandle<()>>,
}

/// A suspended database may take such a part of the memory for updates.
const SUSPENDED_SHARE: usize = 8;
/// Parts of the table of databases, which threads look into at the same time.
const SHARDS: usize = 32;

impl Store {
    /// Opens a store: what the journal has and the files have not is pending again.
    ///
    /// # Errors
    ///
    /// Where the directories cannot be made, another program uses the journal, or it cannot be read.
    /// `NotFound` where the base is empty and the journal has updates of databases in it: what they are on may
    /// not be mounted. Then nothing has changed.
    pub fn open(mut options: Options) -> io::Result<Arc<Self>> {
        let is_durable = options.journal.as_ref().is_some_and(|it| it.durable);
        let is_new = !options.base.is_dir();
        if is_new {
            create_directories(&options.base, is_durable).map_err(|error| {
                let base = options.base.display();
                let problem = format!(
                    "cannot create `{base}`: {}\nhint: `--data` names the directory of the databases: choose one that exists or can be created",
                    reason(&error)
                );
                io::Error::new(error.kind(), problem)
            })?;
            // It may be mistyped, or on a disk that is not mounted.
            let base = options.base.display();
            (options.log)(Level::Warning, &format!("`{base}` did not exist: created"));
        }
        // Clients on this machine specify paths without links.
        options.base = options.base.canonicalize().map_err(at(&options.base))?;
        let index = SeriesIndex::open(&options.base, is_durable)
            .map_err(at(&options.base.join(series_index::FILE)))?;
        let opened = options.journal.clone().map(Journal::open).transpose()?;
        let (journal, left) = match opened {
            Some((journal, left)) => (Some(journal), left),
            None => (None, Vec::new()),
        };
        let writers = options.writers.max(1);
        let store = Arc::new(Self {
            log_limiter: LogLimiter::new(Arc::clone(&options.log)),
            timing: RwLock::new(options.timing),
            options,
            shards: std::array::from_fn(|_| Mutex::new(HashMap::new())),
            queues: (0..writers).map(|_| Queue::default()).collect(),
            journal,
            index,
            unopened: Mutex::new(HashMap::new()),
            busy: Mutex::new(HashSet::new()),
            free: Condvar::new(),
            pending_bytes: AtomicUsize::new(0),
            counters: Counters::default(),
            upkeep: Upkeep::default(),
            latest: AtomicI64::new(i64::MIN),
            threads: Mutex::default(),
        });
        if let Err(error) = recover::recover(&store, &left) {
            if is_new {
                // If nothing came of it.
                let _ = std::fs::remove_dir(&store.options.base);
            }
            return Err(error);
        }
        if let Some(journal) = &store.journal {
            let (count, directory) = (journal.damaged(), journal.options().directory.display());
            if count > 0 {
                (store.options.log)(
                    Level::Warning,
                    &format!(
                        "`{directory}` has {count} damaged files of the journal (*.damaged): updates in them may be \
                     lost; remove the files when you have looked at them"
                    ),
                );
            }
        }
        for index in 0..writers {
            let writing = Arc::clone(&store);
            let thread = std::thread::Builder::new().name(format!("writer {index}"));
            let thread = thread.spawn(move || writer::run(&writing, index))?;
            lock(&store.threads).writers.push(thread);
        }
        let kept = Arc::clone(&store);
        let thread = std::thread::Builder::new().name("upkeep".into());
        let thread = thread.spawn(move || upkeep::run(&kept))?;
        lock(&store.threads).upkeep = Some(thread);
        Ok(store)
    }

    /// Writes everything, and ends the threads. What cannot be written stays in the journal; where there is
    /// none it is lost, and the loss is logged. Returns whether everything is kept.
    pub fn close(&self) -> bool {
        let threads = std::mem::take(&mut *lock(&self.threads));
        // It may wait for the writers, so it ends before them. A thread that panicked has already reported it.
        self.upkeep.press(Wish::Stop);
        let _ = threads.upkeep.map(JoinHandle::join);
        self.resume_all();
        self.flush_all_and_wait();
        self.queues.iter().for_each(Queue::stop);
        for writer in threads.writers {
            let _ = writer.join();
        }
        if let Err(error) = upkeep::end(self) {
            (self.options.log)(
                Level::Error,
                &format!("the journal cannot be ended: {}", reason(&error)),
            );
            return false;
        }
        self.journal.is_some() || self.report_lost() == 0
    }

    /// Reports the updates that are still pending, which are lost, and returns their number.
    fn report_lost(&self) -> usize {
        let mut lost = 0;
        for database in self.databases() {
            let state = database.state();
            if state.count > 0 {
                let (path, count) = (String::from_utf8_lossy(database.path()), state.count);
                let reason = state.failed.as_deref().unwrap_or("it was not written");
                (self.options.log)(
                    Level::Error,
                    &format!("{path}: {count} updates are lost: {reason}"),
                );
                lost += count;
            }
        }
        self.counters.dropped.fetch_add(lost as u64, Relaxed);
        lost
    }

    /// Has updates that come from now on written at other times.
    pub fn set_timing(&self, timing: Timing) {
        *self.timing.write().unwrap_or_else(PoisonError::into_inner) = timing;
        // What was to be written in an hour may be due now.
        self.upkeep.press(Wish::Write);
    }

    /// When updates are written.
    pub fn timing(&self) -> Timing {
        *self.timing.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its options.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Whether what is acknowledged survives that the machine stops.
    pub(crate) fn is_durable(&self) -> bool {
        let journal = self.journal.as_ref();
        journal.is_some_and(|journal| journal.options().durable)
    }

    /// The absolute path that a word means: see [`Options::path`].
    pub fn path(&self, word: &[u8]) -> Vec<u8> {
        self.options.path(word)
    }

    /// Whether a path may be used: see [`Options::allows`].
    pub fn allows(&self, path: &[u8]) -> bool {
        self.options.allows(path)
    }

    /// Whether a path is below the base and has no `..`.
    fn is_below(&self, path: &[u8]) -> bool {
        self.options.is_below(path)
    }

    /// The database at an absolute path, if it is known.
    pub fn known(&self, path: &[u8]) -> Option<Arc<Database>> {
        self.shard(path).get(path).map(Arc::clone)
    }

    /// The database at an absolute path. The first time, its file is looked at.
    ///
    /// # Errors
    ///
    /// `PermissionDenied` if the path may not be used, `NotFound` if there is no file,
    /// `InvalidInput` if it is not a regular one, `InvalidData` if it is not a database; those of opening
    /// it.
    pub fn database(&self, path: &[u8]) -> io::Result<Arc<Database>> {
        if let Some(database) = self.known(path) {
            return Ok(database);
        }
        if !self.allows(path) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let _alone = self.lock_path(path);
        if let Some(database) = self.known(path) {
            return Ok(database);
        }
        let file = path_of(path);
        if !file.metadata()?.is_file() {
            let error = io::Error::new(io::ErrorKind::InvalidInput, "not a regular file");
            return Err(error);
        }
        let mut rrd = Rrd::open(Shared::open(file)?)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.to_string()))?;
        let reading = match &rrd.database().sources[..] {
            [source] => match source.kind {
                SourceKind::Measured { reading, .. } => Some(reading),
                SourceKind::Compute(_) => None,
            },
            _ => None,
        };
        let writer = (hash(path) >> 8) as usize % self.queues.len();
        let database = Arc::new(Database::new(path, writer, rrd.last_update(), reading));
        let mut unopened = lock(&self.unopened);
        if let Some(waiting) = unopened.remove(path) {
            self.adopt(&database, &waiting);
        }
        self.shard(path).insert(path.into(), Arc::clone(&database));
        Ok(database)
    }

    /// All databases that are known.
    pub fn databases(&self) -> Vec<Arc<Database>> {
        let mut all = Vec::new();
        for shard in &self.shards {
            all.extend(lock(shard).values().cloned());
        }
        all
    }

    /// The databases, at most `most`, with the most accepted updates that were [overtaken](Counters::overtaken): their
    /// paths, and how many updates.
    pub fn overtaken(&self, most: usize) -> Vec<(String, u64)> {
        if self.counters.overtaken.load(Relaxed) == 0 {
            return Vec::new();
        }
        let mut all: Vec<_> = self
            .databases()
            .iter()
            .map(|database| {
                let path = String::from_utf8_lossy(database.path()).into_owned();
                (path, database.overtaken())
            })
            .filter(|(_, count)| *count > 0)
            .collect();
        all.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        all.truncate(most);
        all
    }

    /// How long the oldest update has been in memory.
    pub fn oldest_pending(&self) -> Duration {
        let databases = self.databases();
        let oldest = databases.iter().filter_map(|it| it.pending_since()).min();
        oldest.map_or(Duration::ZERO, |oldest| oldest.elapsed())
    }

    /// The bytes that the disk of the base has free, if the system says that.
    pub fn free_bytes(&self) -> Option<u64> {
        create::free_bytes(&self.options.base)
    }

    /// How many are known.
    pub fn count(&self) -> usize {
        self.shards.iter().map(|shard| lock(shard).len()).sum()
    }

    /// The databases that wait to be written now.
    pub fn queue(&self) -> Vec<Arc<Database>> {
        self.queues.iter().flat_map(Queue::waiting).collect()
    }

    /// Bytes of updates that are not yet written.
    pub fn pending_bytes(&self) -> usize {
        self.pending_bytes.load(Relaxed)
    }

    /// Whether more than half of the memory for updates is taken.
    fn is_short(&self) -> bool {
        self.pending_bytes() > self.options.most_pending / 2
    }

    /// The journal, if there is one.
    pub fn journal(&self) -> Option<&Journal> {
        self.journal.as_ref()
    }

    /// The names and labels of databases whose paths do not contain them.
    pub fn index(&self) -> &SeriesIndex {
        &self.index
    }

    /// Removes a database that was forgotten from the table, if it is still there.
    fn remove(&self, database: &Arc<Database>) {
        let mut shard = self.shard(database.path());
        let there = shard.get(database.path());
        if there.is_some_and(|there| Arc::ptr_eq(there, database)) {
            shard.remove(database.path());
        }
    }

    /// How long the updates of a database are kept.
    fn timeout(&self, database: &Database) -> Duration {
        let timing = self.timing();
        let jitter = timing.jitter.as_millis() as u64;
        let share = hash(database.path()).checked_rem(jitter).unwrap_or(0);
        timing.write_timeout + Duration::from_millis(share)
    }

    fn schedule(&self, database: &Arc<Database>, state: &mut State, after: Duration) {
        state.scheduled = true;
        self.queues[database.writer].schedule(database, Instant::now() + after);
    }

    fn shard(&self, path: &[u8]) -> MutexGuard<'_, HashMap<Box<[u8]>, Arc<Database>>> {
        lock(&self.shards[hash(path) as usize % SHARDS])
    }
}

fn hash(path: &[u8]) -> u64 {
    use std::hash::BuildHasher;
    FixedState::default().hash_one(path)
}

#[cfg(test)]
mod tests;
