//! Databases by their paths, each with the updates that are not yet in its file.
//!
//! Sources [accept](Store::accept) updates: what comes in order is kept in memory, where it waits for
//! [`Timing::write_timeout`], and then written with all that has come meanwhile. Each database has one
//! of several writers, which keeps its file open.
//!
//! Sources that acknowledge put what was accepted into a [`Group`] and [commit](Store::commit) it before
//! they answer: then the journal has it, and a program that is killed at any time finds it
//! there when it starts again.

mod create;
mod database;
mod displace;
mod flush;
mod recover;
mod snapshot;
mod update;
mod upkeep;
mod writer;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use foldhash::fast::FixedState;
use foldhash::{HashMap, HashMapExt, HashSet, HashSetExt};
use kymo_io::{Shared, create_directories};
use kymo_machine::Machine;
use kymo_rrd::Time;
use kymo_rrd::engine::Rrd;
use kymo_rrd::file::convert::Target;
use kymo_rrd::model::SourceKind;

use crate::journal::{self, Journal};
use crate::log_limiter::LogLimiter;
use crate::metrics::Histogram;
use crate::series_index::SeriesIndex;
use crate::sync::lock;
pub use database::Database;
use database::{Place, State};
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

/// The options of a store.
#[derive(Clone)]
pub struct Options {
    /// The directory that paths are relative to.
    pub base: PathBuf,
    /// Whether paths may lead outside of it.
    pub anywhere: bool,
    /// When updates are written.
    pub timing: Timing,
    /// The number of threads that write, at least one.
    pub writers: usize,
    /// How many files a writer keeps open.
    pub open_files: usize,
    /// How many bytes of updates may be kept.
    pub most_pending: usize,
    /// Maximum time that updates may be ahead of this machine's clock: a database that took a later one would take
    /// none until then.
    pub future_limit: Duration,
    /// How long a database may be [suspended](Store::suspend).
    pub suspend_limit: Duration,
    /// No databases are created if their disk has fewer bytes free.
    pub least_free: u64,
    /// The form of new databases.
    pub target: Target,
    /// Where what is acknowledged is written at once; nowhere, if there is none.
    pub journal: Option<journal::Options>,
    /// Where messages go.
    pub log: Log,
}

/// When updates are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// How long they are kept before.
    pub write_timeout: Duration,
    /// Maximum additional time, so that not all files are written at the same time.
    pub jitter: Duration,
    /// How often everything is written, and a new journal is begun.
    pub flush_interval: Duration,
}

impl Options {
    /// One with the usual limits, for databases in a directory, without a journal.
    pub fn new(base: PathBuf, log: Log) -> Self {
        let write = crate::config::Write::default();
        Self {
            base,
            anywhere: false,
            timing: write.timing(),
            writers: write.threads,
            open_files: write.open_files,
            most_pending: write.most_pending,
            future_limit: write.future_limit,
            suspend_limit: write.suspend_limit,
            least_free: write.least_free,
            target: Target::Native(Machine::native()),
            journal: None,
            log,
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("base", &self.base)
            .field("journal", &self.journal)
            .finish_non_exhaustive()
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

/// Why an update is not accepted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Refused {
    /// Its time is not after the last one, which this is.
    Past(Time),
    /// Its time is further ahead of the clock than the limit, which this is.
    Future(Duration),
    /// There is no room for it.
    Full,
    /// The database was forgotten, and is to be looked for again.
    Forgotten,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Past(last) => {
                let (seconds, micros) = last.to_micros();
                write!(f, "the last update is of {seconds}.{micros:06}")
            }
            Self::Future(limit) => write!(
                f,
                "the time is more than {} seconds ahead of the clock of this machine",
                limit.as_secs()
            ),
            Self::Full => f.write_str("there is no room for more updates"),
            Self::Forgotten => f.write_str("the database was forgotten"),
        }
    }
}

impl std::error::Error for Refused {}

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

/// What is acknowledged together.
#[derive(Debug, Default)]
pub struct Group {
    pub(crate) bytes: Vec<u8>,
}

impl Group {
    /// Nothing.
    pub const fn new() -> Self {
        Self { bytes: Vec::new() }
    }

    /// Whether there is nothing to commit.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The bytes it has.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }
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
            create_directories(&options.base, is_durable)?;
            // It may be mistyped, or on a disk that is not mounted.
            let base = options.base.display();
            (options.log)(Level::Warning, &format!("'{base}' did not exist: created"));
        }
        // Clients on this machine specify paths without links.
        options.base = options.base.canonicalize()?;
        let index = SeriesIndex::open(&options.base, is_durable)?;
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
                        "'{directory}' has {count} damaged files of the journal (*.damaged): updates in them may be \
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
                &format!("the journal cannot be ended: {error}"),
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

    /// The absolute path that a word means: one that is not absolute is below the base. Where it can be
    /// written in several ways, by `//` and `/./`, this is the shortest.
    pub fn path(&self, word: &[u8]) -> Vec<u8> {
        let base = match word {
            [b'/', ..] => b"",
            _ => self.base(),
        };
        let mut path = Vec::with_capacity(base.len() + 1 + word.len());
        path.extend_from_slice(base);
        for name in word.split(|byte| *byte == b'/') {
            if !name.is_empty() && name != b"." {
                path.push(b'/');
                path.extend_from_slice(name);
            }
        }
        path
    }

    /// What paths in the base begin with, before a `/`.
    fn base(&self) -> &[u8] {
        let base = bytes_of(&self.options.base);
        base.strip_suffix(b"/").unwrap_or(base)
    }

    /// Whether a path may be used: below the base and without `..`, or any.
    pub fn allows(&self, path: &[u8]) -> bool {
        !path.contains(&0) && (self.options.anywhere || self.is_below(path))
    }

    /// Whether a path is below the base and has no `..`.
    fn is_below(&self, path: &[u8]) -> bool {
        let rest = path.strip_prefix(self.base());
        rest.is_some_and(|rest| {
            let mut names = rest.split(|byte| *byte == b'/');
            (rest.is_empty() || rest.starts_with(b"/")) && !names.any(|name| name == b"..")
        })
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

    /// Takes an update. One that will be acknowledged is put in a group beside.
    ///
    /// # Errors
    ///
    /// Why it is not taken.
    pub fn accept(
        &self,
        database: &Arc<Database>,
        update: &Update<'_>,
        group: Option<&mut Group>,
    ) -> Result<(), Refused> {
        let mut state = database.state();
        if state.place != Place::Known {
            return Err(Refused::Forgotten);
        }
        if !is_later(update.time, state.last) {
            self.counters.past.fetch_add(1, Relaxed);
            return Err(Refused::Past(state.last));
        }
        self.check_time(database.path(), update.time)?;
        let before = state.pending.len();
        if self.pending_bytes.load(Relaxed) >= self.options.most_pending {
            self.counters.dropped.fetch_add(1, Relaxed);
            self.upkeep.press(Wish::Write);
            self.log_limiter.report(format_args!(
                "{}: update refused: the updates in memory have reached the limit of {} bytes",
                String::from_utf8_lossy(database.path()),
                self.options.most_pending,
            ));
            return Err(Refused::Full);
        }
        update.encode(&mut state.pending);
        if state.count == 0 && !state.writing {
            state.since = Some(Instant::now());
        }
        state.count += 1;
        state.last = update.time;
        state.interval = update.interval.or(state.interval);
        let added = state.pending.len() - before;
        if let Some(group) = group
            && self.journal.is_some()
        {
            journal::update(database.path(), &state.pending[before..], &mut group.bytes);
        }
        if state.suspended.is_some()
            && state.pending.len() > self.options.most_pending / SUSPENDED_SHARE
        {
            self.end_suspension(database, &mut state, "it has its share of the memory");
        }
        if !state.scheduled && state.suspended.is_none() {
            self.schedule(database, &mut state, self.timeout(database));
        }
        // Before a writer can take it, who subtracts it again.
        let pending = self.pending_bytes.fetch_add(added, Relaxed) + added;
        drop(state);
        self.counters.accepted.fetch_add(1, Relaxed);
        if pending > self.options.most_pending / 2
            && pending - added <= self.options.most_pending / 2
        {
            self.upkeep.press(Wish::Write);
        }
        Ok(())
    }

    /// Takes an update as a record.
    ///
    /// # Errors
    ///
    /// Why it is not taken.
    pub(crate) fn accept_record(
        &self,
        database: &Arc<Database>,
        record: &Record<'_>,
        group: Option<&mut Group>,
    ) -> Result<(), Refused> {
        let values: Vec<_> = record.values().collect();
        let update = Update {
            time: record.time,
            interval: record.interval,
            readings: record.readings(&values),
        };
        self.accept(database, &update, group)
    }

    /// Refuses a time that is too far ahead of the clock, of what has that name.
    pub(crate) fn check_time(&self, name: &[u8], time: Time) -> Result<(), Refused> {
        if !self.is_future(time) {
            return Ok(());
        }
        self.counters.future.fetch_add(1, Relaxed);
        let refused = Refused::Future(self.options.future_limit);
        self.log_limiter.report(format_args!(
            "{}: update of time {} refused: {refused}",
            String::from_utf8_lossy(name),
            time.seconds(),
        ));
        Err(refused)
    }

    /// Whether a time is further ahead of the clock than allowed. The clock is looked at only if the time is after
    /// all that were allowed when it was looked at last.
    fn is_future(&self, time: Time) -> bool {
        if time.seconds() <= self.latest.load(Relaxed) {
            return false;
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let latest = now
            .unwrap_or_default()
            .saturating_add(self.options.future_limit);
        let latest = i64::try_from(latest.as_secs()).unwrap_or(i64::MAX);
        self.latest.store(latest, Relaxed);
        time.seconds() > latest
    }

    /// Sees that the journal has a group, which is then empty: its updates may be acknowledged.
    ///
    /// # Errors
    ///
    /// Where it cannot be written: they may not.
    pub fn commit(&self, group: &mut Group) -> io::Result<()> {
        self.append(group, Journal::append)
    }

    /// The same for updates that are not acknowledged, without waiting for the disk.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn note(&self, group: &mut Group) -> io::Result<()> {
        self.append(group, Journal::append_unacknowledged)
    }

    fn append(
        &self,
        group: &mut Group,
        append: impl FnOnce(&Journal, &mut [u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        let Some(journal) = self.journal.as_ref().filter(|_| !group.is_empty()) else {
            group.bytes.clear();
            return Ok(());
        };
        let done = append(journal, &mut group.bytes);
        group.bytes.clear();
        if let Err(error) = &done {
            self.log_limiter.report(format_args!(
                "the journal cannot be written: {error}; updates are not safe, and none are acknowledged"
            ));
        }
        if journal.is_long() {
            self.upkeep.press(Wish::Rotate);
        }
        done
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

/// Whether a time is after another for files, which hold microseconds.
fn is_later(time: Time, last: Time) -> bool {
    // Rounding adds no more than the next second begins with.
    let (seconds, before) = (time.seconds(), last.seconds());
    seconds > before.saturating_add(1) || (seconds >= before && time.to_micros() > last.to_micros())
}

fn hash(path: &[u8]) -> u64 {
    use std::hash::BuildHasher;
    FixedState::default().hash_one(path)
}

pub(crate) fn bytes_of(path: &Path) -> &[u8] {
    use std::os::unix::ffi::OsStrExt;
    path.as_os_str().as_bytes()
}

pub(crate) fn path_of(path: &[u8]) -> &Path {
    use std::os::unix::ffi::OsStrExt;
    Path::new(std::ffi::OsStr::from_bytes(path))
}

#[cfg(test)]
mod tests;
