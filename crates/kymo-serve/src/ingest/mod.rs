//! Lists of collectd values, however they arrive: what is known of each name, its database,
//! and its file of comma-separated values.
//!
//! Each thread that receives has a [`Session`], which remembers the names it has met. A list takes the
//! lock of its series and that of its database, and no other.

mod change;
mod series;
mod session;

use std::fmt;
use std::hash::BuildHasher;
use std::io;
use std::net::IpAddr;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use foldhash::fast::FixedState;
use foldhash::{HashMap, HashMapExt};
use kymo_collectd::{DataSource, Identifier, Kind, TypesDb, TypesMismatch, Value};
use kymo_time::CdTime;

use crate::creation::Creation;
use crate::csv;
use crate::definitions::Definitions;
use crate::forward::Forwarder;
use crate::log_limiter::LogLimiter;
use crate::senders::Senders;
use crate::store::{Flushed, Log, Store};
use crate::sync::lock;
pub use series::Series;
pub use session::{Origin, Session};

/// Parts of the table of names, which threads look into at the same time.
const SHARDS: usize = 32;
/// How often lines are written and names looked at that are gone.
const PERIOD: Duration = Duration::from_secs(1);
/// Lines of one name that are written at once.
const LONG: usize = 1 << 16;
/// Lines that are kept in all.
const MOST_LINES: usize = 64 << 20;

/// Values of one list where no `types.db` specifies their number: a database has room for a year of each.
const MOST_VALUES: usize = 64;

/// What becomes of values.
#[derive(Clone, Debug)]
pub struct Options {
    /// The types of values; those on the wire decide if there are none.
    pub types: Option<TypesDb>,
    /// The time from one list to the next, if senders do not specify it.
    pub interval: CdTime,
    /// The name of this machine, for lists without a host.
    pub host: String,
    /// Databases, if there are any.
    pub databases: Option<Databases>,
    /// Files of comma-separated values, if there are any.
    pub csv: Option<csv::Options>,
    /// How many names may be known at a time.
    pub most_series: usize,
    /// How many of them may have come from one sender of datagrams.
    pub most_series_per_sender: usize,
    /// How many bytes the new databases of one sender may have.
    pub most_bytes_per_sender: u64,
    /// The forwarder of lists, if there is one.
    pub forwarder: Option<Arc<Forwarder>>,
}

/// Databases of values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Databases {
    /// Their directory (`DataDir`): a word for the store, which may be empty.
    pub directory: PathBuf,
    /// What new ones are like.
    pub definitions: Definitions,
}

/// What has come of lists of values.
#[derive(Debug, Default)]
pub struct Counters {
    /// Lists that were taken.
    pub lists: AtomicU64,
    /// Values in them.
    pub values: AtomicU64,
    /// Lists that were not: no such type, or other values than it has.
    pub wrong_type: AtomicU64,
    /// Lists that were not: there was no room, or they could not be kept.
    pub dropped: AtomicU64,
    /// Lists whose time was not after that of the last one of their name: no database accepts them.
    pub past: AtomicU64,
    /// Databases that were made.
    pub created: AtomicU64,
    /// Times lines could not be written, and were lost.
    pub lines_lost: AtomicU64,
    /// Messages.
    pub notifications: AtomicU64,
}

/// Why a list is not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// It is not of its type.
    Type(TypesMismatch),
    /// Its name cannot be kept.
    Name(kymo_collectd::NameError),
    /// It has more values than are taken of a type that is not known: the number there is.
    TooLong(usize),
    /// There are as many names as may be known.
    TooMany,
    /// Its sender has reached the limit.
    TooManyOfSender,
    /// It cannot be kept, for this reason.
    Failed(String),
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Type(problem) => problem.fmt(f),
            Self::Name(problem) => problem.fmt(f),
            Self::TooLong(found) => write!(
                f,
                "found {found} values, expected {MOST_VALUES} at most for a type that no types.db has"
            ),
            Self::TooMany => f.write_str("there are too many names"),
            Self::TooManyOfSender => f.write_str(
                "the sender has brought as many names as `collectd.most-series-per-sender` allows",
            ),
            Self::Failed(reason) => f.write_str(reason),
        }
    }
}

impl std::error::Error for Problem {}

type Shard = Mutex<HashMap<Box<[u8]>, Arc<Series>>>;

/// Where lists of values go, according to the options at some time.
#[derive(Debug)]
pub struct Ingest {
    options: Arc<Options>,
    /// How many options there were before these.
    generation: usize,
    state: Arc<IngestState>,
}

/// What is there whatever the options say.
#[derive(Debug)]
pub struct IngestState {
    latest: Mutex<Arc<Options>>,
    /// How many options there were before the latest.
    generation: AtomicUsize,
    store: Arc<Store>,
    shards: [Shard; SHARDS],
    known: AtomicUsize,
    /// Series with lines that are not yet in their files.
    unwritten: Mutex<Vec<Arc<Series>>>,
    unwritten_bytes: AtomicUsize,
    log_limiter: LogLimiter,
    /// What has come.
    pub counters: Counters,
    ends: AtomicBool,
    creation: Creation<Arc<Series>>,
    senders: Mutex<Senders>,
    /// Seconds after which connections end on which nothing has come.
    idle_seconds: AtomicU64,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Deref for Ingest {
    type Target = IngestState;

    fn deref(&self) -> &IngestState {
        &self.state
    }
}

impl Ingest {
    /// Begins to take values.
    ///
    /// # Errors
    ///
    /// A directory of databases that the store does not allow; those of starting a thread.
    pub fn start(options: Options, store: Arc<Store>, log: Log) -> io::Result<Arc<Self>> {
        options.check(&store)?;
        let options = Arc::new(options);
        let state = Arc::new(IngestState {
            latest: Mutex::new(Arc::clone(&options)),
            generation: AtomicUsize::new(0),
            store,
            shards: std::array::from_fn(|_| Mutex::new(HashMap::new())),
            known: AtomicUsize::new(0),
            unwritten: Mutex::default(),
            unwritten_bytes: AtomicUsize::new(0),
            log_limiter: LogLimiter::new(log),
            counters: Counters::default(),
            ends: AtomicBool::new(false),
            creation: Creation::default(),
            senders: Mutex::default(),
            idle_seconds: AtomicU64::new(3600),
            threads: Mutex::default(),
        });
        let start = |name: &str, work: fn(&Arc<IngestState>)| {
            let state = Arc::clone(&state);
            let thread = std::thread::Builder::new().name(name.into());
            thread.spawn(move || work(&state))
        };
        let threads = vec![
            start("lists", IngestState::keep)?,
            start("databases", IngestState::create_databases)?,
        ];
        *lock(&state.threads) = threads;
        Ok(Arc::new(Self {
            options,
            generation: 0,
            state,
        }))
    }

    /// Writes all lines, creates the databases that are waited for, and ends its threads. The store is closed by who
    /// has opened it.
    pub fn close(&self) {
        self.ends.store(true, Relaxed);
        let threads = std::mem::take(&mut *lock(&self.threads));
        for thread in threads {
            thread.thread().unpark();
            // A thread that panicked has reported it.
            let _ = thread.join();
        }
        self.state.latest().write_lines();
    }

    /// What becomes of values, as the latest options say it.
    pub fn options(&self) -> Arc<Options> {
        self.state.latest().options
    }

    /// Where databases are.
    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// How many names wait for their databases.
    pub fn waiting_for_databases(&self) -> usize {
        self.creation.len()
    }

    /// Senders with the most names, and how many names and bytes of databases each has brought.
    pub(crate) fn largest_senders(&self, most: usize) -> Vec<(IpAddr, usize, u64)> {
        lock(&self.senders).largest(most)
    }

    /// How long nothing may come of a connection.
    pub(crate) fn idle_timeout(&self) -> Duration {
        Duration::from_secs(self.idle_seconds.load(Relaxed))
    }

    /// Holds connections that come from now on to another time.
    pub(crate) fn set_idle_timeout(&self, timeout: Duration) {
        self.idle_seconds.store(timeout.as_secs().max(1), Relaxed);
    }

    /// How many names are known.
    pub fn known(&self) -> usize {
        self.known.load(Relaxed)
    }

    /// All series that have had a list in the last two of their intervals, by name.
    pub fn live(&self) -> Vec<Arc<Series>> {
        let now = Instant::now();
        let mut live = Vec::new();
        for shard in &self.shards {
            let shard = lock(shard);
            live.extend(shard.values().filter(|series| series.is_live(now)).cloned());
        }
        live.sort_by(|a, b| a.name().cmp(b.name()));
        live
    }

    /// The series of a name, if it has had a list in the last two of its intervals.
    pub fn find(&self, id: &Identifier<'_>) -> Option<Arc<Series>> {
        let mut key = Vec::new();
        key_of(id, &mut key);
        let found = self.shard(&key).get(&*key).map(Arc::clone)?;
        found.is_live(Instant::now()).then_some(found)
    }

    /// Writes what waits of a name, or of all, to the files, and waits for it. Returns why it could not
    /// be done.
    ///
    /// # Errors
    ///
    /// The reason why a file could not be written.
    pub fn flush(&self, id: Option<&Identifier<'_>>) -> Result<(), String> {
        let latest = self.state.latest();
        let Some(id) = id else {
            latest.write_lines();
            self.store.flush_all();
            return Ok(());
        };
        // As in collectd, there may be nothing to write.
        let Some(series) = self.find(id) else {
            return Ok(());
        };
        latest.write_lines_of(&series)?;
        match series.database() {
            Some(database) => match self.store.flush(&database) {
                Flushed::Failed(reason) => Err(reason),
                Flushed::Written | Flushed::Nothing => Ok(()),
            },
            None => Ok(()),
        }
    }

    /// Counts a message, and logs it.
    fn notify(&self, message: fmt::Arguments<'_>) {
        self.counters.notifications.fetch_add(1, Relaxed);
        self.log_limiter.report(message);
    }

    /// Logs a message that anybody can cause.
    pub(crate) fn complain(&self, message: fmt::Arguments<'_>) {
        self.log_limiter.report(message);
    }

    fn shard(&self, key: &[u8]) -> MutexGuard<'_, HashMap<Box<[u8]>, Arc<Series>>> {
        let hash = FixedState::default().hash_one(key);
        lock(&self.shards[hash as usize % SHARDS])
    }

    /// The series of a name, which is made the first time.
    fn series(
        &self,
        key: &[u8],
        id: &Identifier<'_>,
        values: &[Value],
        sender: Option<IpAddr>,
    ) -> Result<Arc<Series>, Problem> {
        let mut shard = self.shard(key);
        if let Some(series) = shard.get(key) {
            return Ok(Arc::clone(series));
        }
        if self.known.load(Relaxed) >= self.options.most_series {
            return Err(Problem::TooMany);
        }
        let sources = self.sources(id.type_name, values)?;
        let path = id.path().map_err(Problem::Name)?;
        if let Some(sender) = sender
            && !lock(&self.senders).add_series(sender, 1, self.options.most_series_per_sender)
        {
            return Err(Problem::TooManyOfSender);
        }
        let series = Arc::new(Series::new(path, sources, sender));
        shard.insert(key.into(), Arc::clone(&series));
        self.known.fetch_add(1, Relaxed);
        Ok(series)
    }

    /// What the values of a type are.
    fn sources(&self, name: &str, values: &[Value]) -> Result<Vec<DataSource>, Problem> {
        // A thread may not yet know of other options, and what is made here is kept.
        if let Some(types) = &self.options().types {
            types
                .check(name, values.iter().map(|value| value.kind()))
                .map_err(Problem::Type)?;
            return Ok(types.get(name).unwrap_or_default().to_vec());
        }
        if values.len() > MOST_VALUES {
            return Err(Problem::TooLong(values.len()));
        }
        let name = |place: usize| match values.len() {
            1 => "value".to_string(),
            _ => format!("value{place}"),
        };
        let source = |(place, value): (usize, &Value)| DataSource {
            name: name(place),
            kind: value.kind(),
            min: None,
            max: None,
        };
        Ok(values.iter().enumerate().map(source).collect())
    }

    /// Writes all lines.
    fn write_lines(&self) {
        // The lock is not held while they are written: those that cannot be come back.
        let unwritten = std::mem::take(&mut *lock(&self.unwritten));
        for series in unwritten {
            if let Err(reason) = self.write_lines_of(&series) {
                self.log_limiter
                    .report(format_args!("{}: {reason}", series.name()));
                lock(&self.unwritten).push(series);
            }
        }
    }

    /// Writes the lines of a name.
    fn write_lines_of(&self, series: &Series) -> Result<(), String> {
        let mut lines = series.lines();
        let before = lines.len();
        let Some(options) = &self.options.csv else {
            if before > 0 {
                // There were files when they came.
                lines.clear();
                self.counters.lines_lost.fetch_add(1, Relaxed);
                self.unwritten_bytes.fetch_sub(before, Relaxed);
            }
            return Ok(());
        };
        let path = options.directory.join(series.name());
        let written = lines.write(&path, series.sources().iter().map(|it| it.name.as_str()));
        if written.is_err() && self.unwritten_bytes.load(Relaxed) > MOST_LINES {
            lines.clear();
            self.counters.lines_lost.fetch_add(1, Relaxed);
        }
        self.unwritten_bytes
            .fetch_sub(before - lines.len(), Relaxed);
        written.map_err(|error| error.to_string())
    }
}

impl IngestState {
    /// What the latest options say.
    fn latest(self: &Arc<Self>) -> Ingest {
        let options = lock(&self.latest);
        Ingest {
            options: Arc::clone(&options),
            generation: self.generation.load(Relaxed),
            state: Arc::clone(self),
        }
    }

    /// Creates databases until nothing more comes.
    fn create_databases(self: &Arc<Self>) {
        loop {
            match self.creation.next() {
                Some(series) => series.create_database(&self.latest()),
                None if self.ends.load(Relaxed) => return,
                None => {}
            }
        }
    }

    /// Does what has to be done from time to time.
    fn keep(self: &Arc<Self>) {
        while !self.ends.load(Relaxed) {
            std::thread::park_timeout(PERIOD);
            self.latest().write_lines();
            self.forget();
        }
    }

    /// Forgets names of which nothing has come for long.
    fn forget(&self) {
        let now = Instant::now();
        self.forget_those(|series| series.is_old(now) && series.end());
    }

    /// Forgets names for which `leaves` is true, which ends them.
    fn forget_those(&self, leaves: impl Fn(&Series) -> bool) {
        for shard in &self.shards {
            let mut shard = lock(shard);
            let before = shard.len();
            shard.retain(|_, series| {
                let stays = !leaves(series);
                if !stays {
                    self.forget_of_sender(series);
                }
                stays
            });
            self.known.fetch_sub(before - shard.len(), Relaxed);
        }
    }
}

impl IngestState {
    /// Forgets that a name has come from its sender.
    fn forget_of_sender(&self, series: &Series) {
        if let Some(sender) = series.sender() {
            lock(&self.senders).remove_series(sender, 1);
        }
    }
}

/// Writes the bytes of a name; none of its five parts contains a NUL.
fn key_of(id: &Identifier<'_>, key: &mut Vec<u8>) {
    key.clear();
    for name in [
        id.host,
        id.plugin,
        id.plugin_instance,
        id.type_name,
        id.type_instance,
    ] {
        key.extend_from_slice(name.as_bytes());
        key.push(0);
    }
}

/// The current time; 1970 if the clock is before that.
pub fn now() -> CdTime {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    CdTime::from_timespec(now.as_secs(), now.subsec_nanos()).unwrap_or(CdTime::MAX)
}

/// Whether values are of these kinds.
fn fit(sources: &[DataSource], values: &[Value]) -> Result<(), TypesMismatch> {
    if sources.len() != values.len() {
        return Err(TypesMismatch::Count {
            expected: sources.len(),
            found: values.len(),
        });
    }
    let kinds = values.iter().map(|value| value.kind());
    let wrong = |(expected, found): &(Kind, Kind)| expected != found;
    let both = sources.iter().map(|source| source.kind).zip(kinds);
    match both.into_iter().find(wrong) {
        Some((expected, found)) => Err(TypesMismatch::Kind { expected, found }),
        None => Ok(()),
    }
}
