//! Updates that are accepted, and what is acknowledged together.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use kymo_rrd::Time;

use super::upkeep::Wish;
use super::{Database, Place, Record, SUSPENDED_SHARE, Store, Update};
use crate::journal::{self, Journal};

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

impl Store {
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
                "the journal cannot be written: {}; updates are not safe, and none are acknowledged", kymo_io::reason(error)));
        }
        if journal.is_long() {
            self.upkeep.press(Wish::Rotate);
        }
        done
    }
}

/// Whether a time is after another for files, which hold microseconds.
pub(super) fn is_later(time: Time, last: Time) -> bool {
    // Rounding adds no more than the next second begins with.
    let (seconds, before) = (time.seconds(), last.seconds());
    seconds > before.saturating_add(1) || (seconds >= before && time.to_micros() > last.to_micros())
}
