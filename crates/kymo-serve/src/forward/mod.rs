//! Lists of values that are sent on to other servers, as collectd's network plugin does it.
//!
//! What clients of this machine give is sent on, and what has come as datagrams only where
//! [`Options::received`] says so. A list that is not after the last one of its name is not: one that comes
//! back, on whatever way, goes no further.
//!
//! Each thread that takes lists has an `Outbox`, which packs them into large plain datagrams. Each server has
//! a thread that reads these, and packs and protects what is in them as that server wants it.

mod server_sender;

use std::io;
use std::net::IpAddr;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use kymo_collectd::network::{
    DATAGRAM, PORT, Packer, PackerOptions, Protection, Repeats, Security,
};
use kymo_collectd::{Identifier, Notification, Value};
use kymo_io::random;
use kymo_time::CdTime;

use crate::log_limiter::LogLimiter;
use crate::metrics::Page;
use crate::store::Log;
use crate::sync::lock;
use server_sender::ServerSender;

/// The size of the datagrams between threads.
const LARGE: usize = 65_507;
/// Maximum number of these that wait for a server.
const WAITING: usize = 256;
/// Number of messages that are remembered, so that none is sent on twice.
const REMEMBERED: usize = 4096;

/// What is sent on, and to which servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The servers that it is sent to.
    pub servers: Vec<Server>,
    /// Whether what has come as datagrams is sent on, too.
    pub received: bool,
    /// No datagram is larger.
    pub packet_size: usize,
    /// Maximum number of routers that datagrams pass; the system's default if not set.
    pub time_to_live: Option<u8>,
}

impl Default for Options {
    /// Sends nothing on.
    fn default() -> Self {
        Self {
            servers: Vec::new(),
            received: false,
            packet_size: DATAGRAM,
            time_to_live: None,
        }
    }
}

/// A server that lists are sent to.
#[derive(Clone, PartialEq, Eq)]
pub struct Server {
    /// A name, an address, or a group.
    pub host: String,
    /// The port.
    pub port: u16,
    /// How datagrams are protected.
    pub level: Security,
    /// Who sends, where they are protected, and the password.
    pub user: Option<(String, String)>,
    /// The interface that datagrams leave by.
    pub interface: Option<String>,
    /// The address that they come from.
    pub bind_address: Option<String>,
    /// How often the name is resolved again; by default, never.
    pub resolve_interval: Option<Duration>,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Passwords are never shown.
        f.debug_struct("Server")
            .field("host", &self.host)
            .field("port", &self.port)
            .field("level", &self.level)
            .finish_non_exhaustive()
    }
}

impl Server {
    /// At a host, which gets datagrams that are not protected.
    pub fn new(host: &str) -> Self {
        Self {
            host: host.to_string(),
            port: PORT,
            level: Security::None,
            user: None,
            interface: None,
            bind_address: None,
            resolve_interval: None,
        }
    }

    fn protection(&self) -> io::Result<Protection> {
        let Some((user, password)) = self.user.clone().filter(|_| self.level > Security::None)
        else {
            return match self.level {
                Security::None => Ok(Protection::None),
                _ => Err(self.wrong("its level of security needs a user and a password")),
            };
        };
        let password = password.into_bytes();
        Ok(match self.level {
            Security::Encrypt => Protection::Encrypt {
                user,
                password,
                random: kymo_collectd::network::initial_vectors(random()?),
            },
            _ => Protection::Sign { user, password },
        })
    }

    /// The address that datagrams come from, unless any may be.
    fn source(&self) -> Option<&str> {
        let from = self.bind_address.as_deref()?;
        let is_any = from.parse().is_ok_and(|from: IpAddr| from.is_unspecified());
        (!is_any).then_some(from)
    }

    /// Refuses a source from which no datagram ever comes to the host.
    fn check_source(&self) -> io::Result<()> {
        let Some(from) = self.source() else {
            return Ok(());
        };
        match (self.host.parse::<IpAddr>(), from.parse::<IpAddr>()) {
            (Ok(host), Ok(source)) if host.is_ipv4() != source.is_ipv4() => {
                let family = if host.is_ipv4() { "IPv4" } else { "IPv6" };
                Err(self.wrong(format_args!(
                    "found bind-address `{from}`, expected an address of {family} as the host's is"
                )))
            }
            _ => Ok(()),
        }
    }

    /// Where it is, for messages.
    fn place(&self) -> String {
        format!("{}, port {}", self.host, self.port)
    }

    fn wrong(&self, problem: impl std::fmt::Display) -> io::Error {
        let problem = format!("{}: {problem}", self.place());
        io::Error::new(io::ErrorKind::InvalidInput, problem)
    }
}

/// What was sent on; with several servers, once for each.
#[derive(Debug, Default)]
pub struct Counters {
    /// Lists.
    pub lists: AtomicU64,
    /// Messages.
    pub notifications: AtomicU64,
    /// Datagrams that had them.
    pub datagrams: AtomicU64,
    /// Lists and messages that could not be sent, or for which there was no room.
    pub lost: AtomicU64,
}

/// Sends on.
#[derive(Debug)]
pub struct Forwarder {
    received: bool,
    queues: Vec<Queue>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    notified: Arc<Mutex<Repeats>>,
    log_limiter: Arc<LogLimiter>,
    /// What was sent on.
    pub counters: Arc<Counters>,
}

/// What waits for the thread of a server.
#[derive(Debug)]
struct Queue {
    /// The server, for messages.
    server: String,
    /// `None` when no more will come.
    parcels: Mutex<Option<SyncSender<Parcel>>>,
}

/// A plain datagram on its way to the thread of a server, and how many lists and messages it has.
#[derive(Clone, Debug)]
struct Parcel {
    datagram: Arc<[u8]>,
    count: u64,
}

impl Forwarder {
    /// Begins to send on. A host name that cannot be resolved yet is looked up again later.
    ///
    /// # Errors
    ///
    /// What is wrong with a server; those of starting a thread.
    pub fn start(options: &Options, log: &Log) -> io::Result<Arc<Self>> {
        let notified = Arc::new(Mutex::new(Repeats::new(REMEMBERED)));
        Self::start_with(options, log, Arc::default(), notified)
    }

    /// Another one that is to follow this, goes on with its counts, and knows which messages were sent on.
    ///
    /// # Errors
    ///
    /// Those of [`start`](Self::start).
    pub fn successor(&self, options: &Options, log: &Log) -> io::Result<Arc<Self>> {
        let (counters, notified) = (Arc::clone(&self.counters), Arc::clone(&self.notified));
        Self::start_with(options, log, counters, notified)
    }

    fn start_with(
        options: &Options,
        log: &Log,
        counters: Arc<Counters>,
        notified: Arc<Mutex<Repeats>>,
    ) -> io::Result<Arc<Self>> {
        let log_limiter = Arc::new(LogLimiter::new(Arc::clone(log)));
        let (mut queues, mut threads) = (Vec::new(), Vec::new());
        for server in &options.servers {
            server.check_source()?;
            let packer = Packer::new(PackerOptions {
                size: options.packet_size,
                protection: server.protection()?,
            });
            let packer = packer.map_err(|error| server.wrong(error))?;
            let server_sender = ServerSender {
                server: server.clone(),
                time_to_live: options.time_to_live,
                counters: Arc::clone(&counters),
                log_limiter: Arc::clone(&log_limiter),
            };
            let (give, take) = sync_channel(WAITING);
            let thread = std::thread::Builder::new().name("forward".into());
            threads.push(thread.spawn(move || server_sender.run(packer, &take))?);
            queues.push(Queue {
                server: server.place(),
                parcels: Mutex::new(Some(give)),
            });
        }
        Ok(Arc::new(Self {
            received: options.received,
            queues,
            threads: Mutex::new(threads),
            notified,
            log_limiter,
            counters,
        }))
    }

    /// Sends what waits, and ends its threads.
    pub fn close(&self) {
        for queue in &self.queues {
            lock(&queue.parcels).take();
        }
        let threads = std::mem::take(&mut *lock(&self.threads));
        for thread in threads {
            // A thread that panicked has reported it.
            let _ = thread.join();
        }
    }

    /// An outbox for a thread that takes lists; `received` specifies whether these come as datagrams.
    /// `None` if lists from there are not sent on.
    pub(crate) fn outbox(self: &Arc<Self>, received: bool) -> Option<Outbox> {
        if self.queues.is_empty() || (received && !self.received) {
            return None;
        }
        let packer = Packer::new(PackerOptions {
            size: LARGE,
            protection: Protection::None,
        });
        Some(Outbox {
            forwarder: Arc::clone(self),
            packer: packer.ok()?,
            count: 0,
        })
    }

    fn push(&self, datagram: Vec<u8>, count: u64) {
        let parcel = Parcel {
            datagram: datagram.into(),
            count,
        };
        for queue in &self.queues {
            let sent = match &*lock(&queue.parcels) {
                Some(parcels) => parcels.try_send(parcel.clone()),
                None => Err(TrySendError::Disconnected(parcel.clone())),
            };
            let reason = match sent {
                Ok(()) => continue,
                Err(TrySendError::Full(_)) => format!("{WAITING} datagrams wait for it"),
                Err(TrySendError::Disconnected(_)) => "its thread has ended".to_owned(),
            };
            self.counters.lost.fetch_add(count, Relaxed);
            self.log_limiter.report(format_args!(
                "{}: {count} lists or messages are not sent on: {reason}",
                queue.server
            ));
        }
    }

    /// Notes what cannot be packed.
    fn lose(&self, id: &Identifier<'_>, problem: impl std::fmt::Display) {
        let servers = self.queues.len() as u64;
        self.counters.lost.fetch_add(servers, Relaxed);
        let id = id.canonical();
        self.log_limiter
            .report(format_args!("{id}: not sent on: {problem}"));
    }

    /// Adds what was sent on to a page of metrics.
    pub fn metrics(&self, page: &mut Page) {
        let counters = &self.counters;
        for (name, help, counter) in [
            ("lists_total", "Lists sent on.", &counters.lists),
            (
                "notifications_total",
                "Messages sent on.",
                &counters.notifications,
            ),
            ("datagrams_total", "Datagrams sent on.", &counters.datagrams),
            (
                "lost_total",
                "Lists and messages that could not be sent on.",
                &counters.lost,
            ),
        ] {
            page.counter(&format!("forwarded_{name}"), help, counter.load(Relaxed));
        }
    }
}

/// What one thread gives to a [`Forwarder`].
pub(crate) struct Outbox {
    forwarder: Arc<Forwarder>,
    packer: Packer,
    /// Lists that are packed.
    count: u64,
}

impl std::fmt::Debug for Outbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Outbox").finish_non_exhaustive()
    }
}

impl Outbox {
    /// Adds a list.
    pub(crate) fn add(
        &mut self,
        id: &Identifier<'_>,
        time: CdTime,
        interval: CdTime,
        values: &[Value],
    ) {
        match self.packer.values(id, time, interval, values) {
            Ok(full) => {
                if let Some(full) = full {
                    self.forwarder.push(full, self.count);
                    self.count = 0;
                }
                self.count += 1;
            }
            Err(problem) => self.forwarder.lose(id, problem),
        }
    }

    /// Sends a message on, unless it was before.
    pub(crate) fn notify(&mut self, notification: &Notification<'_>) {
        let mut notified = lock(&self.forwarder.notified);
        if notified.is_first(&notification.id, notification.time) {
            drop(notified);
            match self.packer.notification(notification) {
                Ok(datagram) => self.forwarder.push(datagram, 1),
                Err(problem) => self.forwarder.lose(&notification.id, problem),
            }
        }
    }

    /// Hands over the pending content of another outbox, which this one replaces.
    pub(crate) fn take_over(&mut self, other: &mut Self) {
        if let Some(datagram) = other.packer.flush() {
            self.forwarder.push(datagram, other.count);
            other.count = 0;
        }
    }

    /// Hands over what there is.
    pub(crate) fn flush(&mut self) {
        if let Some(datagram) = self.packer.flush() {
            self.forwarder.push(datagram, self.count);
            self.count = 0;
        }
    }
}

impl Drop for Outbox {
    fn drop(&mut self) {
        self.flush();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::kept_log;

    /// What has no room in a queue is counted and reported, and so is what comes after the end.
    #[test]
    fn full_queues_are_reported() {
        let (log, messages) = kept_log();
        let (give, take) = sync_channel(1);
        let forwarder = Arc::new(Forwarder {
            received: false,
            queues: vec![Queue {
                server: Server::new("host").place(),
                parcels: Mutex::new(Some(give)),
            }],
            threads: Mutex::default(),
            notified: Arc::new(Mutex::new(Repeats::new(1))),
            log_limiter: Arc::new(LogLimiter::new(log)),
            counters: Arc::default(),
        });
        let mut outbox = forwarder.outbox(false).unwrap();
        let id = Identifier::parse("h/p/gauge").unwrap();
        let time = CdTime::from_seconds(1_700_000_000).unwrap();
        let mut send = |lists| {
            for _ in 0..lists {
                outbox.add(&id, time, CdTime::ZERO, &[Value::Gauge(0.5)]);
            }
            outbox.flush();
        };
        send(1);
        send(2);
        assert_eq!(forwarder.counters.lost.load(Relaxed), 2);
        drop(take);
        send(3);
        assert_eq!(forwarder.counters.lost.load(Relaxed), 5);
        let expected = [
            "host, port 25826: 2 lists or messages are not sent on: 256 datagrams wait for it",
            "host, port 25826: 3 lists or messages are not sent on: its thread has ended",
        ];
        assert_eq!(*lock(&messages), expected);
    }
}
