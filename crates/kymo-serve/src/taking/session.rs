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

/// Names that a session remembers beside those of series that are known.
const MOST_UNKNOWN: usize = 10_000;
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
    /// Whether somebody waits for an answer, and so for databases.
    pub(super) waits: bool,
    /// By the names that senders give them.
    met: SequenceCache<Met>,
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

enum Met {
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
            counters: shared.counters.of(protocol, listener),
            shared: Arc::clone(shared),
            options,
            generation,
            protocol,
            listener: listener.to_owned(),
            sender,
            waits: false,
            met: SequenceCache::new(),
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

    /// Begins with a request or a piece of a connection, of so many bytes, by the latest options.
    pub(super) fn begin(&mut self, bytes: usize) {
        self.now = now();
        self.seconds = self.shared.table.seconds();
        self.summary = Summary::default();
        self.counters.bytes.fetch_add(bytes as u64, Relaxed);
        self.counters.requests.fetch_add(1, Relaxed);
        if self.generation != self.shared.generation() {
            (self.options, self.generation) = self.shared.options();
            self.met.clear();
        }
        // There may be room by now for series that were not taken.
        if self
            .rejected_since
            .is_some_and(|since| self.seconds > since + RETRY_SECONDS)
        {
            self.met.clear();
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

    /// The same of what nobody waits for, if the journal is to have such.
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

    fn reject(&mut self, rejected: Rejected, key: Option<String>, reason: Option<String>) {
        self.counters.reject(rejected);
        if rejected.is_wanted() {
            return;
        }
        self.summary.is_temporary |= rejected.is_temporary();
        let text = || {
            let reason = reason.clone().unwrap_or_else(|| rejected.to_string());
            match &key {
                Some(key) => format!("{key}: {reason}"),
                None => reason,
            }
        };
        // Of databases that fail, the table has said why.
        if self.summary.rejected == 0 && rejected != Rejected::Failed {
            self.shared.table.log_limiter.tell(format_args!(
                "{} at {}: sample not taken: {}",
                self.protocol.name(),
                self.listener,
                text(),
            ));
        }
        self.summary.add(text);
    }
}

impl Sink for Session {
    fn find(&mut self, raw: &[u8]) -> Option<usize> {
        let next = self.met.next_if(|name| name == raw);
        next.or_else(|| self.met.find(raw))
    }

    fn series(&mut self, raw: &[u8], key: &Key, kind: Kind) -> usize {
        let found = self
            .shared
            .table
            .series(&self.options, self.protocol, key, kind, self.sender);
        let met = match found {
            Ok(series) => Met::Series(series, None),
            Err(rejected) => {
                self.rejected_since.get_or_insert(self.seconds);
                Met::Rejected(rejected)
            }
        };
        // Names that do not come again, or that were not taken, are not kept for ever.
        if self.met.len() > 2 * self.shared.table.known() + MOST_UNKNOWN {
            self.met.clear();
        }
        self.met.insert(raw, met)
    }

    fn sample(&mut self, series: usize, at: Option<i64>, number: Number) {
        let at = time(at.unwrap_or(self.now));
        let outcome = match self.met.at_mut(series) {
            Met::Rejected(rejected) => Outcome::Rejected(*rejected, None),
            Met::Series(series, opened) => {
                series.touch(self.seconds);
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
            Outcome::Rejected(rejected, reason) => {
                let key = match self.met.at(series) {
                    Met::Series(series, _) => Some(series.key().to_string()),
                    Met::Rejected(_) => None,
                };
                self.reject(rejected, key, reason);
            }
        }
    }

    fn fault(&mut self, fault: Fault) {
        self.counters.fault(fault.problem);
        self.summary.is_damaged |= matches!(fault.problem, Problem::Damaged(_));
        if self.summary.rejected == 0 {
            self.shared.table.log_limiter.tell(format_args!(
                "{} at {}: {fault}",
                self.protocol.name(),
                self.listener,
            ));
        }
        self.summary.add(|| fault.to_string());
    }
}
