//! The values of one name.

use std::io;
use std::net::IpAddr;
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use kymo_collectd::{DataSource, Value};
use kymo_rrd::Time;
use kymo_time::CdTime;

use super::{Databases, Ingest, LONG, MOST_LINES, Problem, fit};
use crate::creation::MOST_OF_ONE;
use crate::csv::Lines;
use crate::store::{
    Database, Group, Readings, Refused, Store, Update, first_record, path_of, records,
};
use crate::sync::lock;

/// A database that cannot be opened or made is tried again after this.
const RETRY: Duration = Duration::from_secs(10);
/// Within this, a list is one of the last two intervals, however short the sender says that these are.
const LEAST_LIFE: Duration = Duration::from_secs(2);
/// A name is not forgotten sooner: whoever sends new ones all the time soon has no room for more.
const LEAST_MEMORY: Duration = Duration::from_secs(300);
/// Nor kept longer without a list, whatever the sender says.
const LONGEST_LIFE: Duration = Duration::from_secs(3600);

/// Values of one time.
pub(super) struct List<'a> {
    pub(super) time: CdTime,
    pub(super) interval: CdTime,
    pub(super) values: &'a [Value],
    /// When it has come.
    pub(super) arrived: Instant,
    /// Whether it may wait until its database is created.
    pub(super) defers: bool,
}

/// What has become of a list.
#[derive(Debug)]
pub(super) struct Taken {
    /// Whether it is after the last one.
    pub(super) is_new: bool,
    /// Whether it is kept, or why not.
    pub(super) kept: Result<(), Problem>,
}

/// What is known of a name.
#[derive(Debug)]
pub struct Series {
    /// As a path without suffix.
    name: String,
    sources: Vec<DataSource>,
    /// Who has sent its first list, if that was a datagram.
    sender: Option<IpAddr>,
    state: Mutex<State>,
    lines: Mutex<Lines>,
}

#[derive(Debug)]
struct State {
    /// The newest list.
    time: CdTime,
    interval: CdTime,
    values: Vec<Value>,
    rates: Vec<f64>,
    /// When a list has come.
    arrived: Instant,
    database: Option<Arc<Database>>,
    /// Why there is no database, and when this was found.
    failed: Option<(Instant, String)>,
    /// Records that wait until the database is created; if there are any, a thread is creating it.
    waiting: Vec<u8>,
    /// Whether it was forgotten: it no longer takes lists.
    is_gone: bool,
}

impl Series {
    pub(super) fn new(name: String, sources: Vec<DataSource>, sender: Option<IpAddr>) -> Self {
        let unknown = vec![f64::NAN; sources.len()];
        Self {
            name,
            sources,
            sender,
            state: Mutex::new(State {
                time: CdTime::ZERO,
                interval: CdTime::ZERO,
                values: Vec::new(),
                rates: unknown,
                arrived: Instant::now(),
                database: None,
                failed: None,
                waiting: Vec::new(),
                is_gone: false,
            }),
            lines: Mutex::default(),
        }
    }

    /// Its name as a path without suffix.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What its values are.
    pub fn sources(&self) -> &[DataSource] {
        &self.sources
    }

    pub(super) fn sender(&self) -> Option<IpAddr> {
        self.sender
    }

    /// The time of its newest list.
    pub fn time(&self) -> CdTime {
        lock(&self.state).time
    }

    /// Its newest values: levels as they are, of what is counted how much it was in a second.
    pub fn rates(&self) -> Vec<f64> {
        lock(&self.state).rates.clone()
    }

    pub(super) fn database(&self) -> Option<Arc<Database>> {
        lock(&self.state).database.clone()
    }

    pub(super) fn lines(&self) -> MutexGuard<'_, Lines> {
        lock(&self.lines)
    }

    /// Whether a list has come in the last two intervals.
    pub(super) fn is_live(&self, now: Instant) -> bool {
        lock(&self.state).is_within(LEAST_LIFE, now)
    }

    /// Whether it may be forgotten.
    pub(super) fn is_old(&self, now: Instant) -> bool {
        !lock(&self.state).is_within(LEAST_MEMORY, now)
    }

    /// Stops taking lists.
    pub(super) fn retire(&self) {
        lock(&self.state).is_gone = true;
    }

    /// Looks for its database again.
    pub(super) fn leave_database(&self) {
        let mut state = lock(&self.state);
        (state.database, state.failed) = (None, None);
    }

    /// Stops taking lists, if none wait to be written. Returns whether it has stopped.
    pub(super) fn end(&self) -> bool {
        let mut state = lock(&self.state);
        state.is_gone = lock(&self.lines).is_empty();
        state.is_gone
    }

    /// Takes a list. `None` where it has ended.
    pub(super) fn take(
        self: &Arc<Self>,
        ingest: &Ingest,
        list: &List<'_>,
        group: Option<&mut Group>,
    ) -> Option<Taken> {
        let &List { time, values, .. } = list;
        if let Err(problem) = fit(&self.sources, values) {
            return Some(Taken {
                is_new: false,
                kept: Err(Problem::Type(problem)),
            });
        }
        // What comes after it would not be new until then.
        let at = Time::from_cdtime(time.ticks());
        if let Err(refused) = ingest.store.check_time(self.name.as_bytes(), at) {
            return Some(Taken {
                is_new: false,
                kept: Err(Problem::Failed(refused.to_string())),
            });
        }
        let mut state = lock(&self.state);
        if state.is_gone {
            return None;
        }
        state.interval = list.interval;
        state.arrived = list.arrived;
        let is_past = time <= state.time;
        if is_past {
            ingest.counters.past.fetch_add(1, Relaxed);
        } else {
            state.know(&self.sources, time, values);
        }
        let mut taken = Taken {
            is_new: !is_past,
            kept: self.keep(ingest, &mut state, list, group),
        };
        let Some(csv) = &ingest.options.csv else {
            return Some(taken);
        };
        if csv.rates && is_past {
            // Of what is not after the last, no rate is known.
            return Some(taken);
        }
        let rates = csv.rates.then(|| state.rates.clone());
        let lines = lock(&self.lines);
        drop(state);
        let written = self.note(ingest, lines, time, values, rates.as_deref());
        taken.kept = taken.kept.and(written);
        Some(taken)
    }

    /// Adds a list to the lines.
    fn note<'s>(
        self: &'s Arc<Self>,
        ingest: &Ingest,
        mut lines: MutexGuard<'s, Lines>,
        time: CdTime,
        values: &[Value],
        rates: Option<&[f64]>,
    ) -> Result<(), Problem> {
        if !lines.fits(time) || lines.len() > LONG {
            drop(lines);
            if let Err(reason) = ingest.write_lines_of(self)
                && ingest.unwritten_bytes.load(Relaxed) > MOST_LINES
            {
                ingest.counters.lines_lost.fetch_add(1, Relaxed);
                return Err(Problem::Failed(reason));
            }
            lines = self.lines();
            if !lines.fits(time) {
                // Those of the day before are in the way: only one day is kept.
                ingest.counters.lines_lost.fetch_add(1, Relaxed);
                let problem = "the lines of another day cannot be written";
                return Err(Problem::Failed(problem.to_string()));
            }
        }
        // Only now: while the lock was not held, all may have been written. Then no other thread makes sure
        // that this is.
        let was_empty = lines.is_empty();
        let before = lines.len();
        lines.push(time, values, rates);
        let added = lines.len() - before;
        // Before they can be written, which subtracts it again.
        ingest.unwritten_bytes.fetch_add(added, Relaxed);
        drop(lines);
        if was_empty {
            lock(&ingest.unwritten).push(Arc::clone(self));
        }
        Ok(())
    }

    /// Gives a list to the database.
    fn keep(
        self: &Arc<Self>,
        ingest: &Ingest,
        state: &mut State,
        list: &List<'_>,
        mut group: Option<&mut Group>,
    ) -> Result<(), Problem> {
        if ingest.options.databases.is_none() {
            return Ok(());
        }
        let update = Update {
            time: Time::from_cdtime(list.time.ticks()),
            interval: Some(list.interval),
            readings: Readings::Values(list.values),
        };
        loop {
            let database = match &state.database {
                Some(database) => database,
                None if list.defers => match self.open_known(ingest, state)? {
                    Some(opened) => state.database.insert(opened),
                    None => return self.defer(ingest, state, &update),
                },
                None => {
                    let opened = self.open(ingest, state, list.time, list.interval)?;
                    state.database.insert(opened)
                }
            };
            match ingest.store.accept(database, &update, group.as_deref_mut()) {
                // What is not after the last is counted by the store.
                Ok(()) | Err(Refused::Past(_)) => return Ok(()),
                Err(Refused::Forgotten) => state.database = None,
                Err(refused @ (Refused::Full | Refused::Future(_))) => {
                    return Err(Problem::Failed(refused.to_string()));
                }
            }
        }
    }

    /// Opens the database, if there is one and nothing waits for it.
    fn open_known(
        &self,
        ingest: &Ingest,
        state: &mut State,
    ) -> Result<Option<Arc<Database>>, Problem> {
        if !state.waiting.is_empty() {
            return Ok(None);
        }
        state.check_failed()?;
        let options = ingest.options();
        let Some(databases) = &options.databases else {
            return Ok(None);
        };
        match ingest.store.database(&self.path(databases, &ingest.store)) {
            Ok(database) => Ok(Some(database)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.fail(ingest, state, &error)),
        }
    }

    /// Keeps an update until the database is created.
    fn defer(
        self: &Arc<Self>,
        ingest: &Ingest,
        state: &mut State,
        update: &Update<'_>,
    ) -> Result<(), Problem> {
        let before = state.waiting.len();
        update.encode(&mut state.waiting);
        let added = state.waiting.len() - before;
        if before >= MOST_OF_ONE || !ingest.creation.reserve(self.sender, added) {
            state.waiting.truncate(before);
            let problem = "too much of its sender waits until its databases are created";
            return Err(Problem::Failed(problem.to_string()));
        }
        if before == 0 {
            ingest.creation.push(self.sender, Arc::clone(self));
        }
        Ok(())
    }

    /// Creates the database, and gives it what waits for it.
    pub(super) fn create_database(&self, ingest: &Ingest) {
        let first = {
            let state = lock(&self.state);
            first_record(&state.waiting).map(|(record, _)| (record.time, record.interval))
        };
        let Some((time, interval)) = first else {
            return;
        };
        let time = CdTime::from_ticks(time.to_cdtime().unwrap_or_default());
        // Lists of this name are taken meanwhile.
        let made = self.find_or_make(ingest, time, interval.unwrap_or(ingest.options.interval));
        let mut state = lock(&self.state);
        let waiting = std::mem::take(&mut state.waiting);
        ingest.creation.release(self.sender, waiting.len());
        let mut dropped = 0;
        match made {
            Ok(database) => {
                state.failed = None;
                let mut group = Group::new();
                for record in records(&waiting) {
                    let taken = ingest
                        .store
                        .accept_record(&database, &record, Some(&mut group));
                    dropped += u64::from(!matches!(taken, Ok(()) | Err(Refused::Past(_))));
                }
                // The store has reported why, if it cannot.
                let _ = ingest.store.note(&mut group);
                state.database = Some(database);
            }
            Err(error) => {
                self.fail(ingest, &mut state, &error);
                dropped = records(&waiting).count() as u64;
            }
        }
        ingest.counters.dropped.fetch_add(dropped, Relaxed);
    }

    /// Records why there is no database.
    fn fail(&self, ingest: &Ingest, state: &mut State, error: &io::Error) -> Problem {
        let reason = error.to_string();
        ingest.complain(format_args!("{}: no database: {reason}", self.name));
        state.failed = Some((Instant::now(), reason.clone()));
        Problem::Failed(reason)
    }

    /// The path of its database.
    pub(super) fn path(&self, databases: &Databases, store: &Store) -> Vec<u8> {
        let path = databases.directory.join(format!("{}.rrd", self.name));
        store.path(path.as_os_str().as_bytes())
    }

    /// Opens the database, or makes it.
    fn open(
        &self,
        ingest: &Ingest,
        state: &mut State,
        time: CdTime,
        interval: CdTime,
    ) -> Result<Arc<Database>, Problem> {
        state.check_failed()?;
        match self.find_or_make(ingest, time, interval) {
            Ok(database) => {
                state.failed = None;
                Ok(database)
            }
            Err(error) => Err(self.fail(ingest, state, &error)),
        }
    }

    fn find_or_make(
        &self,
        ingest: &Ingest,
        time: CdTime,
        interval: CdTime,
    ) -> io::Result<Arc<Database>> {
        // A thread may not yet know of other options, and what is opened here is kept.
        let options = ingest.options();
        let Some(databases) = &options.databases else {
            return Err(io::ErrorKind::NotFound.into());
        };
        let store = &ingest.store;
        let path = self.path(databases, store);
        match store.database(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            found => return found,
        }
        // What the journal has for one that was there goes to this one.
        let since = store.waits_since(&path).and_then(Time::to_cdtime);
        let since = since.map_or(time, |since| time.min(CdTime::from_ticks(since)));
        let definition = databases
            .definitions
            .define(&self.sources, since, interval)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        if ingest.counters.created.load(Relaxed) >= options.most_series as u64 {
            return Err(io::Error::other("there are too many new databases"));
        }
        if let Some(sender) = self.sender
            && !lock(&ingest.senders).has_room(sender, options.most_bytes_per_sender)
        {
            let problem = "the databases of its sender have as many bytes as `collectd.most-mib-per-sender` allows";
            return Err(io::Error::other(problem));
        }
        match store.create_new(&path, &definition) {
            Ok(()) => ingest.counters.created.fetch_add(1, Relaxed),
            // Another thread or process was faster.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => 0,
            Err(error) => return Err(error),
        };
        if let (Some(_), Ok(file)) = (self.sender, path_of(&path).metadata()) {
            lock(&ingest.senders).add_database(&path, self.sender, file.len());
        }
        store.database(&path)
    }
}

impl State {
    /// Fails if opening or creating the database has failed just before.
    fn check_failed(&self) -> Result<(), Problem> {
        match &self.failed {
            Some((when, reason)) if when.elapsed() < RETRY => Err(Problem::Failed(reason.clone())),
            _ => Ok(()),
        }
    }

    /// Whether a list has come in the last two intervals, or at least in so long a time.
    fn is_within(&self, least: Duration, now: Instant) -> bool {
        let two = Duration::from_nanos(self.interval.to_nanos().saturating_mul(2));
        now.saturating_duration_since(self.arrived) <= two.clamp(least, LONGEST_LIFE)
    }

    /// Notes the newest values, and what they are in a second.
    fn know(&mut self, sources: &[DataSource], time: CdTime, values: &[Value]) {
        let seconds = match self.values.is_empty() {
            true => f64::NAN,
            false => time.checked_sub(self.time).map_or(f64::NAN, CdTime::to_f64),
        };
        for (place, value) in values.iter().enumerate() {
            let rate = match (value, self.values.get(place)) {
                (Value::Gauge(level), _) => *level,
                (Value::Absolute(count), _) => *count as f64 / seconds,
                (Value::Derive(count), Some(Value::Derive(before))) => {
                    (i128::from(*count) - i128::from(*before)) as f64 / seconds
                }
                (Value::Counter(count), Some(Value::Counter(before))) => {
                    grown(*count, *before) as f64 / seconds
                }
                _ => f64::NAN,
            };
            let source = &sources[place];
            let is_out = source.min.is_some_and(|min| rate < min)
                || source.max.is_some_and(|max| rate > max);
            self.rates[place] = if is_out { f64::NAN } else { rate };
        }
        self.time = time;
        self.values.clear();
        self.values.extend_from_slice(values);
    }
}

/// How much a counter has grown, which may have gone round at 32 or at 64 bits.
fn grown(count: u64, before: u64) -> u64 {
    match count.checked_sub(before) {
        Some(grown) => grown,
        None if before <= u64::from(u32::MAX) => (1 << 32) - before + count,
        None => count.wrapping_sub(before),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use kymo_collectd::Identifier;
    use kymo_collectd::network::{Packer, PackerOptions};

    use super::*;
    use crate::csv;
    use crate::ingest::{Options, Origin};
    use crate::log::kept_log;
    use crate::network::{self, Listen, Receiver};
    use crate::store::{self, Log, no_log};

    fn ingest(directory: &Path, databases: Option<Databases>, log: &Log) -> Arc<Ingest> {
        let hour = Duration::from_secs(3600);
        let store = store::Options {
            timing: store::Timing {
                write_timeout: hour,
                jitter: Duration::ZERO,
                flush_interval: hour,
            },
            writers: 1,
            open_files: 4,
            most_pending: 1 << 20,
            target: kymo_rrd::file::convert::Target::Portable,
            ..store::Options::new(directory.join("data"), Arc::clone(log))
        };
        let options = Options {
            types: None,
            interval: CdTime::from_seconds(10).unwrap(),
            host: "h".to_string(),
            databases,
            csv: Some(csv::Options {
                directory: directory.join("csv"),
                rates: false,
            }),
            most_series: 10,
            most_series_per_sender: 10,
            most_bytes_per_sender: u64::MAX,
            forwarder: None,
        };
        let store = crate::store::Store::open(store).unwrap();
        Ingest::start(options, store, Arc::clone(log)).unwrap()
    }

    /// Lines that come after all before them were written are written, too.
    #[test]
    fn no_lines_are_left_to_nobody() {
        let directory = tempfile::tempdir().unwrap();
        let ingest = ingest(directory.path(), None, &no_log());
        let mut session = ingest.session(Origin::Here);
        let id = Identifier {
            host: "h",
            plugin: "p",
            plugin_instance: "",
            type_name: "t",
            type_instance: "",
        };
        let mut seconds = 1_500_000_000;
        let mut take = || {
            seconds += 1;
            let time = CdTime::from_seconds(seconds).unwrap();
            let values = [Value::Gauge(0.1)];
            session
                .take(&id, time, CdTime::ZERO, &values, false)
                .unwrap();
        };
        take();
        // As the keeper does it before it writes them.
        let taken = std::mem::take(&mut *lock(&ingest.unwritten));
        let series = ingest.find(&id).unwrap();
        let mut most = 0;
        while series.lines().len() >= most {
            most = series.lines().len();
            take();
        }
        // These were written on the way, and one has come since.
        drop(taken);
        let end = Instant::now() + Duration::from_secs(60);
        while !series.lines().is_empty() {
            assert!(Instant::now() < end, "nobody writes them");
            std::thread::sleep(Duration::from_millis(10));
        }
        ingest.close();
        ingest.store().close();
    }

    #[test]
    fn lists_without_room_to_wait_for_a_database_are_reported() {
        let directory = tempfile::tempdir().unwrap();
        let (log, messages) = kept_log();
        let ingest = ingest(directory.path(), Some(Databases::default()), &log);
        // The directory was created.
        lock(&messages).clear();
        let sender = Some([127, 0, 0, 1].into());
        // As much of the sender waits as may.
        for bytes in [1 << 20, 1 << 10, 1] {
            while ingest.creation.reserve(sender, bytes) {}
        }
        let options = network::Options {
            listen: vec![Listen {
                port: 0,
                ..Listen::new("127.0.0.1")
            }],
            workers: 1,
            ..network::Options::default()
        };
        let receiver = Receiver::start(&options, &ingest, &no_log()).unwrap();
        let mut packer = Packer::new(PackerOptions::default()).unwrap();
        let id = Identifier::parse("h/p/gauge").unwrap();
        let time = CdTime::from_seconds(1_700_000_000).unwrap();
        let values = [Value::Gauge(0.5)];
        packer.values(&id, time, CdTime::ZERO, &values).unwrap();
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = receiver.addresses()[0];
        socket.send_to(&packer.flush().unwrap(), address).unwrap();
        let end = Instant::now() + Duration::from_secs(20);
        while lock(&messages).is_empty() {
            assert!(Instant::now() < end, "nothing is reported");
            std::thread::sleep(Duration::from_millis(2));
        }
        let expected = format!(
            "{}: h/p/gauge: too much of its sender waits until its databases are created",
            socket.local_addr().unwrap()
        );
        assert_eq!(*lock(&messages), [expected]);
        assert_eq!(ingest.counters.dropped.load(Relaxed), 1);
        receiver.stop();
        ingest.close();
        ingest.store().close();
    }

    #[test]
    fn counters_go_round() {
        assert_eq!(grown(5, 3), 2);
        assert_eq!(grown(1, u64::from(u32::MAX)), 2);
        assert_eq!(grown(1, u64::MAX), 2);
        assert_eq!(grown(0, 1 << 32), u64::MAX - (1 << 32) + 1);
    }
}
