//! Series that are known, and their databases.

use std::io;
use std::net::IpAddr;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use foldhash::fast::FixedState;
use foldhash::{HashMap, HashMapExt};
use kymo_collectd::Value;
use kymo_metrics::{Key, Kind, Number};
use kymo_rrd::Time;
use kymo_rrd::model::Reading;

use super::counters::{Created, Rejected};
use super::options::SeriesLimits;
use super::rules::Rules;
use super::{Options, Protocol};
use crate::creation::{Creation, MOST_OF_ONE};
use crate::expire::ExpiredPaths;
use crate::log_limiter::LogLimiter;
use crate::senders::Senders;
use crate::series_index::Claim;
use crate::store::{
    Database, Group, Log, Readings, Refused, Store, Update, first_record, path_of, records,
};
use crate::sync::lock;

/// A database that cannot be opened or created is tried again after this.
const RETRY: Duration = Duration::from_secs(10);
/// Number of seconds without a sample after which a series is forgotten.
const IDLE_SECONDS: u64 = 3600;
/// How long databases are created after the end was asked for: who asks does not wait for ever.
const LAST_CREATIONS: Duration = Duration::from_secs(10);
/// Parts of the table of series, which threads look into at the same time.
const SHARDS: usize = 32;

/// That a series is no longer in the table.
const GONE: u64 = u64::MAX;

/// What is known of a series.
#[derive(Debug)]
pub(super) struct Series {
    key: Key,
    /// Relative to the data directory.
    path: String,
    profile: super::rules::Profile,
    kind: Kind,
    sender: Option<IpAddr>,
    /// How many series it counts as.
    weight: usize,
    /// When the last sample came, in seconds since the table was made; [`GONE`] if the table no longer has it.
    touched: AtomicU64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    opened: Option<Opened>,
    /// When the database could not be opened or created, and why.
    failed: Option<(Instant, String)>,
    /// Records that wait until the database is created; if there are any, some thread is creating it.
    waiting: Vec<u8>,
}

/// A database that samples of a series go to.
#[derive(Clone, Debug)]
pub(super) struct Opened {
    pub(super) database: Arc<Database>,
    reading: Reading,
}

impl Opened {
    /// The value as the database takes it, or `None` if it is not an integer and the database takes only integers.
    pub(super) fn value(&self, number: Number) -> Option<Value> {
        Some(match (self.reading, number) {
            (Reading::Counter | Reading::Derive, Number::Signed(count)) => Value::Derive(count),
            (Reading::Counter | Reading::Derive, Number::Unsigned(count)) => Value::Counter(count),
            (Reading::Counter | Reading::Derive, Number::Float(float)) => {
                let is_exact = float.fract() == 0.0 && float.abs() < 9.2e18;
                match (float.is_nan(), is_exact) {
                    (true, _) => Value::Gauge(float),
                    (_, true) => Value::Derive(float as i64),
                    _ => return None,
                }
            }
            (_, number) => Value::Gauge(number.to_f64()),
        })
    }
}

/// A series whose name and path take more counts as several: so many bytes as one.
const BYTES_OF_SERIES: usize = 1 << 10;

/// How many series one counts as, of which the bytes of the key are kept twice.
fn weight(key: &Key, path: &str) -> usize {
    1 + (2 * key.bytes().len() + path.len()) / BYTES_OF_SERIES
}

type Shard = Mutex<HashMap<Box<[u8]>, Arc<Series>>>;

/// All series.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) store: Arc<Store>,
    begun: Instant,
    shards: [Shard; SHARDS],
    known: AtomicUsize,
    /// How many series they count as together.
    weight: AtomicUsize,
    senders: Mutex<Senders>,
    pub(super) created: Created,
    creation: Creation<Arc<Series>>,
    /// Of databases that could not be created for those who do not wait.
    pub(super) dropped: AtomicU64,
    ends: AtomicBool,
    pub(super) log_limiter: LogLimiter,
}

/// Nanoseconds since 1970 as the store has them.
pub(super) fn time(nanos: i64) -> Time {
    const SECOND: i64 = 1_000_000_000;
    let rest = nanos.rem_euclid(SECOND) as u64;
    let units = ((rest << 30) + SECOND as u64 / 2) / SECOND as u64;
    let whole = Time::from_seconds(nanos.div_euclid(SECOND));
    Time::new(whole.seconds(), units as u32).unwrap_or(whole)
}

impl Table {
    pub(super) fn new(store: &Arc<Store>, log: &Log) -> Self {
        Self {
            store: Arc::clone(store),
            begun: Instant::now(),
            shards: std::array::from_fn(|_| Mutex::new(HashMap::new())),
            known: AtomicUsize::new(0),
            weight: AtomicUsize::new(0),
            senders: Mutex::default(),
            created: Created::default(),
            creation: Creation::default(),
            dropped: AtomicU64::new(0),
            ends: AtomicBool::new(false),
            log_limiter: LogLimiter::new(Arc::clone(log)),
        }
    }

    /// How many series are known.
    pub(super) fn known(&self) -> usize {
        self.known.load(Relaxed)
    }

    /// Senders with the most series, and how many series and bytes of databases each has brought.
    pub(super) fn largest_senders(&self, most: usize) -> Vec<(IpAddr, usize, u64)> {
        lock(&self.senders).largest(most)
    }

    /// How many wait for their databases.
    pub(super) fn waiting(&self) -> usize {
        self.creation.len()
    }

    /// Seconds since it was made.
    pub(super) fn seconds(&self) -> u64 {
        self.begun.elapsed().as_secs()
    }

    /// The series of a key that comes by a protocol; it is made the first time.
    pub(super) fn series(
        &self,
        options: &Options,
        protocol: Protocol,
        key: &Key,
        kind: Kind,
        sender: Option<IpAddr>,
    ) -> Result<Arc<Series>, Rejected> {
        use std::hash::BuildHasher;
        let mut name = Vec::with_capacity(key.bytes().len() + 1);
        name.push(protocol as u8);
        name.extend_from_slice(key.bytes());
        let hash = FixedState::default().hash_one(&name);
        let mut shard = lock(&self.shards[hash as usize % SHARDS]);
        if let Some(series) = shard.get(name.as_slice()) {
            return Ok(Arc::clone(series));
        }
        let SeriesLimits {
            most_series,
            most_series_per_sender,
            ..
        } = options.limits;
        if self.weight.load(Relaxed) >= most_series {
            return Err(Rejected::TooMany);
        }
        let verdict = options.rules.verdict(protocol, key);
        let path = verdict.path.ok_or(Rejected::ByRule)?;
        let weight = weight(key, &path);
        if let Some(sender) = sender
            && !lock(&self.senders).add_series(sender, weight, most_series_per_sender)
        {
            return Err(Rejected::TooManyOfSender);
        }
        let series = Arc::new(Series {
            key: key.clone(),
            path,
            profile: verdict.profile,
            kind,
            sender,
            weight,
            touched: AtomicU64::new(self.seconds()),
            state: Mutex::default(),
        });
        shard.insert(name.into(), Arc::clone(&series));
        self.known.fetch_add(1, Relaxed);
        self.weight.fetch_add(weight, Relaxed);
        Ok(series)
    }

    /// Forgets series of which nothing has come for long, or all, so that other rules hold for them.
    pub(super) fn forget(&self, all: bool) {
        let now = self.seconds();
        self.forget_those(|series| {
            if all {
                series.touched.store(GONE, Relaxed);
                return true;
            }
            let touched = series.touched.load(Relaxed);
            let exchanged = || {
                // A sample may have come at this very time.
                let cell = &series.touched;
                cell.compare_exchange(touched, GONE, Relaxed, Relaxed)
            };
            now.saturating_sub(touched) >= IDLE_SECONDS && exchanged().is_ok()
        });
    }

    /// Forgets series for which `leaves` is true, which marks them as gone.
    fn forget_those(&self, leaves: impl Fn(&Series) -> bool) {
        for shard in &self.shards {
            let mut shard = lock(shard);
            let (before, mut gone) = (shard.len(), 0);
            shard.retain(|_, series| {
                let stays = !leaves(series);
                gone += if stays { 0 } else { series.weight };
                if let Some(sender) = series.sender.filter(|_| !stays) {
                    lock(&self.senders).remove_series(sender, series.weight);
                }
                stays
            });
            self.known.fetch_sub(before - shard.len(), Relaxed);
            self.weight.fetch_sub(gone, Relaxed);
        }
    }

    /// Gives back what databases count that were removed, and forgets their series.
    pub(super) fn expired(&self, paths: &ExpiredPaths) {
        // One that was created again meanwhile counts.
        let is_gone = |path: &[u8]| !path_of(path).exists();
        {
            let mut senders = lock(&self.senders);
            for path in paths.iter().filter(|path| is_gone(path)) {
                senders.remove_database(path);
            }
        }
        self.forget_those(|series| {
            let path = self.store.path(series.path.as_bytes());
            paths.contains(path.as_slice()) && is_gone(&path) && {
                series.touched.store(GONE, Relaxed);
                true
            }
        });
    }

    /// Creates databases of those who do not wait, until nothing more comes, or it takes too long to end.
    pub(super) fn create_databases(&self, options: impl Fn() -> Arc<Options>) {
        let mut deadline = None;
        loop {
            let ends = self.ends.load(Relaxed);
            let series = match self.creation.next() {
                Some(series) => series,
                None if ends => return,
                None => continue,
            };
            let now = Instant::now();
            if ends && now > *deadline.get_or_insert(now + LAST_CREATIONS) {
                return self.give_up(&series);
            }
            series.create_database(self, &options());
        }
    }

    /// Drops what waits for a database and for those behind it, since the daemon ends.
    fn give_up(&self, series: &Series) {
        let mut dropped = series.drop_waiting(self);
        let mut names = 1;
        while self.creation.len() > 0 {
            let Some(series) = self.creation.next() else {
                break;
            };
            dropped += series.drop_waiting(self);
            names += 1;
        }
        self.dropped.fetch_add(dropped, Relaxed);
        self.log_limiter.report(format_args!(
            "{dropped} samples are lost: the databases of {names} series were not created before the end"
        ));
    }

    /// Marks the end: nothing more is added to the table.
    pub(super) fn end(&self) {
        self.ends.store(true, Relaxed);
    }

    /// Opens the database of a series, or creates it for a first value of a time.
    fn find_or_create(
        &self,
        series: &Series,
        options: &Options,
        first: Time,
    ) -> io::Result<Opened> {
        if let Some(opened) = self.find(series)? {
            return Ok(opened);
        }
        {
            let mut senders = lock(&self.senders);
            if senders.databases() >= options.limits.most_series {
                return Err(io::Error::other(
                    "as many databases were created as `series.most-series` allows",
                ));
            }
            if let Some(sender) = series.sender
                && !senders.has_room(sender, options.limits.most_bytes_per_sender)
            {
                return Err(io::Error::other(
                    "the databases of its sender have as many bytes as `series.most-mib-per-sender` allows",
                ));
            }
        }
        let store = &self.store;
        let path = store.path(series.path.as_bytes());
        // What the journal has for one that was there goes to this one.
        let first = store.waits_since(&path).map_or(first, |it| it.min(first));
        let reading = series.profile.reading(series.kind);
        let definition = series.profile.define(reading, first);
        let definition =
            definition.map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        match store.create_new(&path, &definition) {
            Ok(()) => {
                self.created.count.fetch_add(1, Relaxed);
                if let Ok(file) = path_of(&path).metadata() {
                    lock(&self.senders).add_database(&path, series.sender, file.len());
                }
            }
            // Another thread or process was faster.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
        self.find(series)?
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Opens the database of a series, if there is one. The path is the series' own from now on.
    fn find(&self, series: &Series) -> io::Result<Option<Opened>> {
        let store = &self.store;
        let path = store.path(series.path.as_bytes());
        let claim = store
            .index()
            .claim(series.path.as_bytes(), &series.key, || {
                !path_of(&path).exists()
            })?;
        if let Claim::Taken(other) = claim {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!(
                    "the rules give it the database of {other}; add labels to the path of the rule"
                ),
            ));
        }
        let database = match store.database(&path) {
            Ok(database) => database,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        match database.reading() {
            Some(reading) => Ok(Some(Opened { database, reading })),
            None => Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "the database does not have one data source alone",
            )),
        }
    }
}

/// What has become of a sample.
#[derive(Debug)]
pub(super) enum Outcome {
    /// It is in the database that was opened.
    Taken(Opened),
    /// It waits until its database is created.
    Waits,
    /// It is not taken.
    Rejected(Rejected, Option<String>),
}

impl Series {
    /// What it is called.
    pub(super) fn key(&self) -> &Key {
        &self.key
    }

    /// What its values are.
    pub(super) fn kind(&self) -> Kind {
        self.kind
    }

    /// Notes that a sample has come. Returns whether the table still has the series: if not, it is to be looked up
    /// again, so that it counts.
    pub(super) fn touch(&self, seconds: u64) -> bool {
        let before = self.touched.load(Relaxed);
        let exchange = || {
            let touched = &self.touched;
            touched.compare_exchange(before, seconds, Relaxed, Relaxed)
        };
        // Where another thread was faster, it has noted the same, or that the series is gone.
        before == seconds || (before != GONE && exchange().map_or_else(|it| it != GONE, |_| true))
    }

    /// Takes a sample if its database is not known to who has it. With `waits`, the database is created before this
    /// returns.
    pub(super) fn take(
        self: &Arc<Self>,
        table: &Table,
        options: &Options,
        at: Time,
        number: Number,
        group: &mut Group,
        waits: bool,
    ) -> Outcome {
        let mut state = lock(&self.state);
        loop {
            if let Some((when, reason)) = &state.failed
                && when.elapsed() < RETRY
            {
                return Outcome::Rejected(Rejected::Failed, Some(reason.clone()));
            }
            if state.opened.is_none() && state.waiting.is_empty() {
                // No database is created for a time that it would refuse.
                if table.store.check_time(self.path.as_bytes(), at).is_err() {
                    return Outcome::Rejected(Rejected::Future, None);
                }
                let found = match waits {
                    true => table.find_or_create(self, options, at).map(Some),
                    false => table.find(self),
                };
                match found {
                    Ok(found) => state.opened = found,
                    Err(error) => return self.fail(table, &mut state, &error),
                }
            }
            let Some(opened) = &state.opened else {
                return self.defer(table, &mut state, at, number);
            };
            match accept(&table.store, opened, at, number, group) {
                Ok(()) => return Outcome::Taken(opened.clone()),
                Err(Rejected::Forgotten) => state.opened = None,
                Err(rejected) => return Outcome::Rejected(rejected, None),
            }
        }
    }

    fn fail(&self, table: &Table, state: &mut State, error: &io::Error) -> Outcome {
        let reason = error.to_string();
        table.created.failed.fetch_add(1, Relaxed);
        table.log_limiter.report(format_args!(
            "{}: no database `{}`: {reason}",
            self.key, self.path
        ));
        state.failed = Some((Instant::now(), reason.clone()));
        Outcome::Rejected(Rejected::Failed, Some(reason))
    }

    /// Keeps a sample until the database is created.
    fn defer(
        self: &Arc<Self>,
        table: &Table,
        state: &mut State,
        at: Time,
        number: Number,
    ) -> Outcome {
        let before = state.waiting.len();
        // Of which kind the database takes them, is known when it is there.
        let value = match number {
            Number::Float(float) => Value::Gauge(float),
            Number::Signed(count) => Value::Derive(count),
            Number::Unsigned(count) => Value::Counter(count),
        };
        let update = Update {
            time: at,
            interval: None,
            readings: Readings::Values(&[value]),
        };
        update.encode(&mut state.waiting);
        let added = state.waiting.len() - before;
        if before >= MOST_OF_ONE || !table.creation.reserve(self.sender, added) {
            state.waiting.truncate(before);
            return Outcome::Rejected(Rejected::Waiting, None);
        }
        if before == 0 {
            table.creation.push(self.sender, Arc::clone(self));
        }
        Outcome::Waits
    }

    /// Drops what waits for the database; how many samples that are.
    fn drop_waiting(&self, table: &Table) -> u64 {
        let waiting = std::mem::take(&mut lock(&self.state).waiting);
        table.creation.release(self.sender, waiting.len());
        records(&waiting).count() as u64
    }

    /// Creates the database, and gives it what waits for it.
    fn create_database(&self, table: &Table, options: &Options) {
        let first = {
            let state = lock(&self.state);
            first_record(&state.waiting).map(|(record, _)| record.time)
        };
        let Some(first) = first else {
            return;
        };
        // Samples of this series are taken meanwhile.
        let made = table.find_or_create(self, options, first);
        let mut state = lock(&self.state);
        let waiting = std::mem::take(&mut state.waiting);
        table.creation.release(self.sender, waiting.len());
        let mut dropped = 0;
        match made {
            Ok(opened) => {
                state.failed = None;
                let mut group = Group::new();
                for record in records(&waiting) {
                    let number = match record.values().next() {
                        Some(Value::Gauge(float)) => Number::Float(float),
                        Some(Value::Derive(count)) => Number::Signed(count),
                        Some(Value::Counter(count) | Value::Absolute(count)) => {
                            Number::Unsigned(count)
                        }
                        None => continue,
                    };
                    let taken = accept(&table.store, &opened, record.time, number, &mut group);
                    dropped += u64::from(taken.is_err());
                }
                // The store has logged why, if it cannot.
                let _ = table.store.note(&mut group);
                state.opened = Some(opened);
            }
            Err(error) => {
                self.fail(table, &mut state, &error);
                dropped = records(&waiting).count() as u64;
            }
        }
        table.dropped.fetch_add(dropped, Relaxed);
    }
}

/// Gives a sample to a database.
pub(super) fn accept(
    store: &Store,
    opened: &Opened,
    at: Time,
    number: Number,
    group: &mut Group,
) -> Result<(), Rejected> {
    let value = opened.value(number).ok_or(Rejected::NotInteger)?;
    let update = Update {
        time: at,
        interval: None,
        readings: Readings::Values(&[value]),
    };
    match store.accept(&opened.database, &update, Some(group)) {
        Ok(()) => Ok(()),
        Err(Refused::Past(last)) if last.to_micros() == at.to_micros() => Err(Rejected::Repeated),
        Err(Refused::Past(_)) => Err(Rejected::Past),
        Err(Refused::Future(_)) => Err(Rejected::Future),
        Err(Refused::Full) => Err(Rejected::Full),
        Err(Refused::Forgotten) => Err(Rejected::Forgotten),
    }
}

impl super::Options {
    /// Whether series have the same paths and databases as by other options.
    pub(super) fn has_same_rules(&self, other: &Self) -> bool {
        let rules: (&Rules, &SeriesLimits) = (&self.rules, &self.limits);
        rules == (&other.rules, &other.limits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_their_nanoseconds() {
        for nanos in [0, 1, 999_999_999, 1_600_000_000_123_456_789, -1] {
            let found = time(nanos);
            let units = i128::from(found.seconds()) << 30 | i128::from(found.fraction());
            // 2^-30 s are a little less than a nanosecond.
            let back = (units * 1_000_000_000 + (1 << 29)) >> 30;
            assert_eq!(back, i128::from(nanos));
        }
    }
}
