//! Lists of one thread, which remembers the names it has met.

use std::net::IpAddr;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Weak};
use std::time::Instant;

use kymo_collectd::{Identifier, Notification, Value};
use kymo_time::CdTime;

use super::series::{List, Taken};
use super::{Ingest, Problem, SHARDS, Series, key_of};
use crate::forward::Outbox;
use crate::sequence_cache::SequenceCache;
use crate::store::Group;

/// Where lists come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Clients on this machine.
    Here,
    /// Datagrams.
    Datagrams,
}

/// What one thread gives to an [`Ingest`].
#[derive(Debug)]
pub struct Session {
    ingest: Arc<Ingest>,
    /// The outbox for lists that are sent on, if any are.
    outbox: Option<Outbox>,
    origin: Origin,
    /// Who has sent the datagram at hand.
    sender: Option<IpAddr>,
    /// Whether lists are written to the journal although nothing waits for that.
    is_journalled: bool,
    /// Names that were met, so that only the first list of each looks into the common table.
    /// Those that were forgotten are not kept.
    met: SequenceCache<Weak<Series>>,
    /// When the lists at hand have come.
    arrived: Instant,
    /// Those that are not counted yet.
    taken: Tally,
    key: Vec<u8>,
    /// Series with lines that are not acknowledged.
    touched: Vec<Arc<Series>>,
    group: Group,
}

/// Lists that were taken, and values in them.
#[derive(Debug, Default)]
struct Tally {
    lists: u64,
    values: u64,
}

impl Ingest {
    /// A session for one thread, whose lists come from `origin`.
    pub fn session(self: &Arc<Self>, origin: Origin) -> Session {
        let forwarder = self.options.forwarder.as_ref();
        Session {
            outbox: forwarder.and_then(|it| it.outbox(origin == Origin::Datagrams)),
            origin,
            sender: None,
            is_journalled: origin == Origin::Datagrams
                && self
                    .store
                    .journal()
                    .is_some_and(|journal| journal.options().datagrams),
            ingest: Arc::clone(self),
            met: SequenceCache::new(),
            arrived: Instant::now(),
            taken: Tally::default(),
            key: Vec::new(),
            touched: Vec::new(),
            group: Group::new(),
        }
    }
}

impl Session {
    /// Marks the lists that are taken after this as having arrived now.
    pub fn begin(&mut self) {
        self.arrived = Instant::now();
    }

    /// Says who has sent the lists which are taken after this.
    pub fn set_sender(&mut self, sender: IpAddr) {
        self.sender = Some(sender);
    }

    /// Takes a list. Without an interval the daemon's own is meant. One that is to be acknowledged is safe
    /// after [`commit`](Self::commit). It is counted then, or when all is [sent on](Self::send_on).
    ///
    /// # Errors
    ///
    /// Why it is not taken.
    pub fn take(
        &mut self,
        id: &Identifier<'_>,
        time: CdTime,
        interval: CdTime,
        values: &[Value],
        acknowledged: bool,
    ) -> Result<(), Problem> {
        self.renew();
        let taken = self.try_take(id, time, interval, values, acknowledged);
        let counters = &self.ingest.counters;
        match &taken {
            Ok(()) => {
                self.taken.lists += 1;
                self.taken.values += values.len() as u64;
            }
            Err(Problem::Type(_)) => {
                counters.wrong_type.fetch_add(1, Relaxed);
            }
            Err(_) => {
                counters.dropped.fetch_add(1, Relaxed);
            }
        }
        taken
    }

    fn try_take(
        &mut self,
        id: &Identifier<'_>,
        time: CdTime,
        interval: CdTime,
        values: &[Value],
        acknowledged: bool,
    ) -> Result<(), Problem> {
        let ingest = &*self.ingest;
        let arrived = self.arrived;
        let interval = match interval {
            CdTime::ZERO => ingest.options.interval,
            interval => interval,
        };
        let mut sent_on = |taken: &Taken| {
            if let Some(outbox) = self.outbox.as_mut().filter(|_| taken.is_new) {
                outbox.add(id, time, interval, values);
            }
        };
        let list = List {
            time,
            interval,
            values,
            arrived,
            // Who waits for an answer waits for the database, too.
            defers: self.origin == Origin::Datagrams,
        };
        let mut place = self.met.next_if(|key| is_key(id, key));
        if place.is_none() {
            key_of(id, &mut self.key);
            place = self.met.find(&self.key);
        }
        let is_journalled = acknowledged || self.is_journalled;
        let group = is_journalled.then_some(&mut self.group);
        if let Some(series) = place.and_then(|place| self.met.at(place).upgrade())
            && let Some(taken) = series.take(ingest, &list, group)
        {
            if acknowledged && ingest.options.csv.is_some() {
                self.touched.push(series);
            }
            sent_on(&taken);
            return taken.kept;
        }
        // It was not met, or has ended meanwhile.
        key_of(id, &mut self.key);
        loop {
            let series = ingest.series(&self.key, id, values, self.sender)?;
            let group = is_journalled.then_some(&mut self.group);
            let Some(taken) = series.take(ingest, &list, group) else {
                continue;
            };
            if acknowledged && ingest.options.csv.is_some() {
                self.touched.push(Arc::clone(&series));
            }
            if self.met.len() > 2 * ingest.known() + SHARDS {
                // Most of them have ended.
                self.met.clear();
            }
            let series = Arc::downgrade(&series);
            self.met.insert(&self.key, series);
            sent_on(&taken);
            return taken.kept;
        }
    }

    /// Goes by the latest options.
    fn renew(&mut self) {
        if self.ingest.generation == self.ingest.state.generation.load(Relaxed) {
            return;
        }
        // What is acknowledged after this may have no other file to be in.
        for series in &self.touched {
            let _ = self.ingest.write_lines_of(series);
        }
        // Some of these may have ended, since their type is another.
        self.met.clear();
        let latest = Arc::new(self.ingest.state.latest());
        let before = std::mem::replace(&mut self.ingest, latest);
        let [before, now] = [&before, &self.ingest].map(|it| it.options.forwarder.as_ref());
        if before.map(Arc::as_ptr) == now.map(Arc::as_ptr) {
            return;
        }
        let mut outbox = now.and_then(|it| it.outbox(self.origin == Origin::Datagrams));
        if let (Some(before), Some(now)) = (&mut self.outbox, &mut outbox) {
            now.take_over(before);
        }
        self.outbox = outbox;
    }

    /// Sees that all that is to be acknowledged survives that the program is killed.
    ///
    /// # Errors
    ///
    /// Why that cannot be promised.
    pub fn commit(&mut self) -> Result<(), String> {
        let committed = self.ingest.store.commit(&mut self.group);
        let written = self
            .touched
            .drain(..)
            .try_for_each(|series| self.ingest.write_lines_of(&series));
        self.send_on();
        committed.map_err(|error| error.to_string())?;
        written
    }

    /// Sees that the journal has the lists of datagrams, if it is to have them. What cannot be written there is in
    /// memory all the same, and reported.
    pub fn note(&mut self) {
        // The store has reported why.
        let _ = self.ingest.store.note(&mut self.group);
        self.send_on();
    }

    /// Hands over what is to be sent on, where more may come much later, and counts what was taken.
    pub fn send_on(&mut self) {
        self.renew();
        let (counters, taken) = (&self.ingest.counters, std::mem::take(&mut self.taken));
        counters.lists.fetch_add(taken.lists, Relaxed);
        counters.values.fetch_add(taken.values, Relaxed);
        if let Some(outbox) = &mut self.outbox {
            outbox.flush();
        }
    }

    /// Counts a message, logs it, and sends it on if messages are sent on.
    pub fn notify(&mut self, notification: &Notification<'_>) {
        self.renew();
        let (severity, id) = (notification.severity, notification.id.canonical());
        let message = kymo_text::visible(notification.message);
        self.ingest
            .notify(format_args!("{severity}: {id}: {message}"));
        if let Some(outbox) = &mut self.outbox {
            outbox.notify(notification);
        }
    }
}

/// Whether these are the [bytes](key_of) of a name.
fn is_key(id: &Identifier<'_>, mut key: &[u8]) -> bool {
    // Those that differ most often come first.
    let names = [
        id.type_instance,
        id.type_name,
        id.plugin_instance,
        id.plugin,
        id.host,
    ];
    names.into_iter().all(|name| {
        let before = key.strip_suffix(b"\0");
        let before = before.and_then(|key| key.strip_suffix(name.as_bytes()));
        before.inspect(|before| key = before).is_some()
    }) && key.is_empty()
}
