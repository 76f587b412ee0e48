//! What one thread takes: series it has met, and samples that are not yet in the journal.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{SystemTime, UNIX_EPOCH};

use kymo_metrics::{Fault, Key, Kind, Number, Problem, Sink};

use super::counters::{Counters, Rejected};
use super::series::{Opened, Outcome, Series, accept, time};
use super::{Options, Protocol, Shared};
use crate::sequence_cache::SequenceCache;
use crate::store::Group;

/// Messages of one request that a sender gets.
const MOST_MESSAGES: usize = 5;

/// The first time that databases have, 1980, in nanoseconds since 1970. What is before was meant in another unit.
const EARLIEST: i64 = 315_532_800 * 1_000_000_000;
/// Names that a session remembers beside those of series that are known.
const MOST_UNKNOWN: usize = 10_000;
/// Bytes of names that all sessions together remember for each series that may be known, and what one may always
/// remember. Names that are not remembered are looked up in the common table.
const REMEMBERED_PER_SERIES: usize = 512;
const ALWAYS_REMEMBERED: usize = 1 << 16;
/// What a name takes that is remembered, beside its bytes.
const REMEMBERED_NAME: usize = 160;
/// For so long, series that were not taken are not looked at again.
const RETRY_SECONDS: u64 = 10;

/// Takes samples for one thread.
pub(super) struct Session {
    shared: Arc<Shared>,
    options: Arc<Options>,
    generation: usize,
    protocol: Protocol,
    listener: String,
    sender: Option<IpAddr>,
    counters: Arc<Counters>,
    /// Whether a client waits for an answer, and so for databases.
    pub(super) waits: bool,
    /// By the names that senders give them.
    cache: SequenceCache<CachedSeries>,
    /// Bytes that the names take.
    remembered: usize,
    group: Group,
    /// Nanoseconds since 1970.
    now: i64,
    seconds: u64,
    /// When a series was not taken that is remembered as such.
    rejected_since: Option<u64>,
    /// Of the request at hand.
    pub(super) summary: Summary,
}

/// What has become of a request.
#[derive(Debug, Default)]
pub(super) struct Summary {
    /// Samples that were taken.
    pub(super) taken: u64,
    /// Those that were not, and faults.
    pub(super) rejected: u64,
    /// Whether the sender may try again.
    pub(super) is_temporary: bool,
    /// Whether the request itself is damaged.
    pub(super) is_damaged: bool,
    /// What the first ones were.
    pub(super) messages: Vec<String>,
}

impl Summary {
    fn add(&mut self, message: impl FnOnce() -> String) {
        self.rejected += 1;
        if self.messages.len() < MOST_MESSAGES {
            self.messages.push(message());
        }
    }

    /// The messages, and how many more there are.
    pub(super) fn text(&self) -> String {
        let mut text = self.messages.join("; ");
        let more = self.rejected.saturating_sub(self.messages.len() as u64);
        if more > 0 {
            text.push_str(&format!("; and {more} more"));
        }
        text
    }
}

/// What a name means to the common table.
enum CachedSeries {
    Series(Arc<Series>, Option<Opened>),
    Rejected(Rejected),
}

/// Nanoseconds of this machine's clock since 1970.
pub(super) fn now() -> i64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

impl Session {
    pub(super) fn new(
        shared: &Arc<Shared>,
        protocol: Protocol,
        listener: &str,
        sender: Option<IpAddr>,
    ) -> Self {
        let (options, generation) = shared.options();
        Self {
            counters: shared.counters.of((protocol, listener.to_owned())),
            shared: Arc::clone(shared),
            options,
            generation,
            protocol,
            listener: listener.to_owned(),
            sender,
            waits: false,
            cache: SequenceCache::new(),
            remembered: 0,
            group: Group::new(),
            now: now(),
            seconds: 0,
            rejected_since: None,
            summary: Summary::default(),
        }
    }

    /// The options at the beginning of the request.
    pub(super) fn options(&self) -> &Arc<Options> {
        &self.options
    }

    /// Begins a request, or a piece of a connection, of `bytes` bytes with the latest options.
    pub(super) fn begin(&mut self, bytes: usize) {
        self.now = now();
        self.seconds = self.shared.table.seconds();
        self.summary = Summary::default();
        self.counters.bytes.fetch_add(bytes as u64, Relaxed);
        self.counters.requests.fetch_add(1, Relaxed);
        if self.generation != self.shared.generation() {
            (self.options, self.generation) = self.shared.options();
            self.forget_names();
        }
        // There may be room by now for series that were not taken.
        if self
            .rejected_since
            .is_some_and(|since| self.seconds > since + RETRY_SECONDS)
        {
            self.forget_names();
            self.rejected_since = None;
        }
    }

    /// Samples without a time have this one, in nanoseconds since 1970.
    pub(super) fn set_now(&mut self, now: i64) {
        self.now = now;
    }

    /// Says who has sent what is taken after this.
    pub(super) fn set_sender(&mut self, sender: Option<IpAddr>) {
        if self.sender != sender {
            self.sender = sender;
        }
    }

    /// Sees that the journal has what was taken, before it is acknowledged.
    ///
    /// # Errors
    ///
    /// Why that cannot be promised.
    pub(super) fn commit(&mut self) -> std::io::Result<()> {
        self.count();
        self.shared.table.store.commit(&mut self.group)
    }

    /// Does the same for data whose sender does not wait, if the journal is to include such data.
    pub(super) fn note(&mut self) {
        self.count();
        let store = &self.shared.table.store;
        if store.journal().is_some_and(|it| it.options().datagrams) {
            // The store has logged why, if it cannot.
            let _ = store.note(&mut self.group);
        } else {
            self.group = Group::new();
        }
    }

    /// Counts what was taken of the request at hand.
    pub(super) fn count(&mut self) {
        let taken = std::mem::take(&mut self.summary.taken);
        self.counters.samples.fetch_add(taken, Relaxed);
    }

    /// Counts a sample that was not taken, and says why to those who can be told. A body may have millions of such, so
    /// texts are made of the first ones only.
    fn reject(&mut self, rejected: Rejected, series: usize, reason: Option<String>) {
        self.counters.reject(rejected);
        if rejected.is_wanted() {
            return;
        }
        self.summary.is_temporary |= rejected.is_temporary();
        // Of databases that fail, the table has said why.
        let is_logged = self.summary.rejected == 0 && rejected != Rejected::Failed;
        let cache = &self.cache;
        let text = || {
            let reason = reason.unwrap_or_else(|| rejected.to_string());
            match cache.at(series) {
                CachedSeries::Series(series, _) => format!("{}: {reason}", series.key()),
                CachedSeries::Rejected(_) => reason,
            }
        };
        self.summary.add(text);
        if is_logged && let Some(text) = self.summary.messages.last() {
            self.shared.table.log_limiter.report(format_args!(
                "{} at {}: sample not taken: {text}",
                self.protocol.name(),
                self.listener,
            ));
        }
    }

    /// What a name means to the common table.
    fn look_up(&mut self, key: &Key, kind: Kind) -> CachedSeries {
        let table = &self.shared.table;
        match table.series(&self.options, self.protocol, key, kind, self.sender) {
            Ok(series) => CachedSeries::Series(series, None),
            Err(rejected) => {
                self.rejected_since.get_or_insert(self.seconds);
                CachedSeries::Rejected(rejected)
            }
        }
    }

    /// Forgets the names that are cached.
    fn forget_names(&mut self) {
        self.cache.clear();
        let remembered = std::mem::take(&mut self.remembered);
        self.shared.remembered.fetch_sub(remembered, Relaxed);
    }

    /// Remembers what a name means.
    fn remember(&mut self, raw: &[u8], series: CachedSeries) -> usize {
        let bytes = raw.len() + REMEMBERED_NAME;
        let most = self.options.limits.most_series;
        let most = most.saturating_mul(REMEMBERED_PER_SERIES);
        let is_full = self.shared.remembered.load(Relaxed).saturating_add(bytes) > most
            && self.remembered > ALWAYS_REMEMBERED;
        // Names that do not come again, or that were not taken, are not kept for ever.
        if is_full || self.cache.len() > 2 * self.shared.table.known() + MOST_UNKNOWN {
            self.forget_names();
        }
        self.remembered += bytes;
        self.shared.remembered.fetch_add(bytes, Relaxed);
        self.cache.insert(raw, series)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.forget_names();
    }
}

impl Sink for Session {
    fn find(&mut self, raw: &[u8]) -> Option<usize> {
        let next = self.cache.next_if(|name| name == raw);
        next.or_else(|| self.cache.find(raw))
    }

    fn series(&mut self, raw: &[u8], key: &Key, kind: Kind) -> usize {
        let found = self.look_up(key, kind);
        self.remember(raw, found)
    }

    fn sample(&mut self, series: usize, at: Option<i64>, number: Number) {
        let nanos = at.unwrap_or(self.now);
        if nanos < EARLIEST {
            let is_shown = self.summary.messages.len() < MOST_MESSAGES;
            let reason = is_shown.then(|| {
                let seconds = nanos as f64 / 1e9;
                format!("found {seconds} s after 1970; {}", Rejected::Ancient)
            });
            return self.reject(Rejected::Ancient, series, reason);
        }
        let at = time(nanos);
        if let CachedSeries::Series(known, _) = self.cache.at(series)
            && !known.touch(self.seconds)
        {
            // It was idle, or its database has expired.
            let known = Arc::clone(known);
            *self.cache.at_mut(series) = self.look_up(known.key(), known.kind());
        }
        let outcome = match self.cache.at_mut(series) {
            CachedSeries::Rejected(rejected) => Outcome::Rejected(*rejected, None),
            CachedSeries::Series(series, opened) => {
                let table = &self.shared.table;
                let taken = opened
                    .as_ref()
                    .map(|opened| accept(&table.store, opened, at, number, &mut self.group));
                match taken {
                    Some(Ok(())) => {
                        self.summary.taken += 1;
                        return;
                    }
                    Some(Err(rejected)) if rejected != Rejected::Forgotten => {
                        Outcome::Rejected(rejected, None)
                    }
                    _ => {
                        let outcome = series.take(
                            table,
                            &self.options,
                            at,
                            number,
                            &mut self.group,
                            self.waits,
                        );
                        *opened = match &outcome {
                            Outcome::Taken(found) => Some(found.clone()),
                            _ => None,
                        };
                        outcome
                    }
                }
            }
        };
        match outcome {
            Outcome::Taken(_) | Outcome::Waits => self.summary.taken += 1,
            Outcome::Rejected(rejected, reason) => self.reject(rejected, series, reason),
        }
    }

    fn fault(&mut self, fault: Fault<'_>) {
        self.counters.fault(fault.problem);
        self.summary.is_damaged |= matches!(fault.problem, Problem::Damaged(_));
        if self.summary.rejected == 0 {
            self.shared.table.log_limiter.report(format_args!(
                "{} at {}: {fault}",
                self.protocol.name(),
                self.listener,
            ));
        }
        self.summary.add(|| fault.to_string());
    }
}
