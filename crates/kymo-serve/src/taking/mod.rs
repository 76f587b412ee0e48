//! Metrics of others than collectd and rrdcached: listeners, and rules by which series get paths and databases.
//!
//! * [`options`]: where what is taken; [`rules`] with [`template`]: paths, steps and archives of series;
//! * `series`: series that are known, and their databases; `session`: what one thread takes;
//! * `lines`, `datagrams`: connections and datagrams that bring lines; `statsd`: sums of those of StatsD;
//! * `requests`: requests of HTTP that bring samples; `scrape`: targets that are asked;
//! * [`counters`]: what has come at each listener.
//!
//! The parsers are those of [`kymo_metrics`].

pub mod counters;
mod datagrams;
mod lines;
pub mod options;
mod requests;
pub mod rules;
mod scrape;
mod series;
mod session;
mod statsd;
pub mod template;

use std::io;
use std::net::IpAddr;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use kymo_io::reason;
use kymo_metrics::influx::Precision;
use kymo_metrics::{Fault, Problem, Sink as _, graphite, influx};

use crate::activation::HandedDatagrams;
use crate::daemon;
use crate::expire::ExpiredPaths;
use crate::listen::{Server, Socket, Stream};
use crate::log_limiter::LogLimiter;
use crate::metrics::{MOST_SENDERS, Page};
use crate::per_listener::PerListener;
use crate::store::{Level, Log, LogOf, Store};
use crate::sync::{lock, wait_until};
use counters::Counters;
use datagrams::{Receiver, Receiving, Take};
use lines::Piece;
pub use options::{Endpoint, LineListen, Options, Protocol};
use scrape::Scraping;
use series::Table;
use session::Session;
use statsd::Statsd;

/// How often it is looked for series that are idle.
const FORGET_PERIOD: Duration = Duration::from_secs(60);

/// What all threads share.
#[derive(Debug)]
pub(crate) struct Shared {
    table: Table,
    counters: PerListener<(Protocol, String), Counters>,
    /// Bytes of names that sessions remember.
    remembered: AtomicUsize,
    latest: Mutex<Arc<Options>>,
    /// How many options there were before the latest.
    generation: AtomicUsize,
    ends: Mutex<bool>,
    changed: Condvar,
}

impl Shared {
    fn generation(&self) -> usize {
        self.generation.load(Relaxed)
    }

    /// The latest options, and how many there were before.
    fn options(&self) -> (Arc<Options>, usize) {
        let latest = lock(&self.latest);
        (Arc::clone(&latest), self.generation())
    }

    /// Forgets idle series from time to time, until the end.
    fn forget(&self) {
        let mut next = Instant::now() + FORGET_PERIOD;
        let mut ends = lock(&self.ends);
        while !*ends {
            ends = match wait_until(&self.changed, ends, next) {
                Some(again) => again,
                None => {
                    self.table.forget(false);
                    next = Instant::now() + FORGET_PERIOD;
                    lock(&self.ends)
                }
            };
        }
    }
}

/// Listeners of metrics.
pub struct Taking {
    shared: Arc<Shared>,
    statsd: Arc<Statsd>,
    servers: Vec<(&'static str, Server)>,
    receiving: Mutex<Vec<(Protocol, Receiving)>>,
    scraping: Mutex<Option<Scraping>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    log: LogOf,
    log_limiter: Arc<LogLimiter>,
}

/// What is to be as other options say. Nothing has changed as long as it is not [taken](Taking::take).
pub struct Plan {
    options: Options,
    /// Sockets that were not there before.
    receivers: Vec<(Protocol, Receiver)>,
}

impl Taking {
    /// Begins to take what the options say; `sockets` gives those for connections of a protocol.
    ///
    /// # Errors
    ///
    /// Why it cannot, as a message.
    pub fn start(
        options: &Options,
        sockets: &dyn Fn(&str) -> Vec<Arc<Socket>>,
        store: &Arc<Store>,
        log: &Log,
    ) -> Result<Self, String> {
        Self::start_with(options, sockets, Vec::new(), store, log)
    }

    /// The same, with sockets of datagrams that were there before.
    pub(crate) fn start_with(
        options: &Options,
        sockets: &dyn Fn(&str) -> Vec<Arc<Socket>>,
        handed: Vec<HandedDatagrams>,
        store: &Arc<Store>,
        log: &Log,
    ) -> Result<Self, String> {
        let reported = |error: io::Error| reason(&error);
        let shared = Arc::new(Shared {
            table: Table::new(store, log),
            counters: PerListener::default(),
            remembered: AtomicUsize::new(0),
            latest: Mutex::new(Arc::new(options.clone())),
            generation: AtomicUsize::new(0),
            ends: Mutex::new(false),
            changed: Condvar::new(),
        });
        let start = |name: &str, work: fn(&Arc<Shared>)| {
            let shared = Arc::clone(&shared);
            let thread = std::thread::Builder::new().name(name.into());
            thread.spawn(move || work(&shared)).map_err(reported)
        };
        let threads = vec![
            start("new databases", |shared| {
                shared.table.create_databases(|| shared.options().0);
            })?,
            start("idle series", |shared| shared.forget())?,
        ];
        let statsd = Statsd::start(&shared).map_err(reported)?;
        let mut taking = Self {
            shared,
            statsd,
            servers: Vec::new(),
            receiving: Mutex::default(),
            scraping: Mutex::default(),
            threads: Mutex::new(threads),
            log: LogOf(Arc::clone(log)),
            log_limiter: Arc::new(LogLimiter::new(Arc::clone(log))),
        };
        for (name, listen) in options.streams() {
            let (sockets, most) = (sockets(name), listen.connections);
            let server = match Protocol::from_name(name) {
                Some(protocol) if options.http(protocol).is_some() => {
                    let shared = Arc::clone(&taking.shared);
                    let serve = move |stream| requests::serve(&shared, protocol, stream);
                    Server::start(name, &sockets, most, log, serve)
                }
                protocol => {
                    let serve = taking.server(protocol.unwrap_or(Protocol::Influx));
                    Server::start(name, &sockets, most, log, serve)
                }
            };
            taking.servers.push((name, server.map_err(reported)?));
        }
        let mut plan = taking.plan(options)?;
        for handed in handed {
            plan.receivers.push(Receiver::handed(handed, options, log)?);
        }
        taking.take(plan)?;
        Ok(taking)
    }

    /// What serves connections of a protocol.
    fn server(&self, protocol: Protocol) -> impl Fn(Stream) + Send + Sync + 'static {
        let (shared, statsd) = (Arc::clone(&self.shared), Arc::clone(&self.statsd));
        move |mut stream: Stream| {
            let listener = stream.listener().to_owned();
            let mut session = Session::new(&shared, protocol, &listener, stream.peer());
            let options = Arc::clone(session.options());
            let idle_timeout = match protocol {
                Protocol::Statsd => options.statsd.listen.idle_timeout,
                Protocol::Influx => options.influx.lines.idle_timeout,
                _ => options.graphite.idle_timeout,
            };
            // Who is gone needs no answer.
            let _ = lines::read(&mut stream, idle_timeout, |piece| match piece {
                Piece::Lines(text) => take_lines(protocol, text, &mut session, &statsd),
                Piece::TooLong(begin) => {
                    session.begin(begin.len());
                    let problem = Problem::Syntax("a line of at most 65536 bytes");
                    session.fault(Fault::new(0, problem, begin));
                }
            });
        }
    }

    /// The servers of connections, and what is spoken there.
    pub fn servers(&self) -> impl Iterator<Item = (&'static str, &Server)> {
        let servers = self.servers.iter();
        servers.map(|(name, server)| (*name, server))
    }

    /// Prepares that it takes what other options say: sockets of datagrams are bound.
    ///
    /// # Errors
    ///
    /// Addresses that cannot be received at.
    pub fn plan(&self, options: &Options) -> Result<Plan, String> {
        let there = lock(&self.receiving);
        let mut receivers = Vec::new();
        for (protocol, listen) in options.line_listens() {
            for endpoint in &listen.datagrams {
                let is_there = |(known, it): &(Protocol, Receiving)| {
                    (*known, &it.endpoint) == (protocol, endpoint)
                };
                if there.iter().any(is_there) {
                    continue;
                }
                let (access, buffer) = (&listen.streams.access, listen.receive_buffer);
                let bound = Receiver::bind(endpoint, access, buffer, protocol.name(), &self.log.0)?;
                receivers.extend(bound.into_iter().map(|it| (protocol, it)));
            }
        }
        Ok(Plan {
            options: options.clone(),
            receivers,
        })
    }

    /// Takes what was planned. Series stay known if their rules and limits are the same.
    ///
    /// # Errors
    ///
    /// Those of starting threads.
    pub fn take(&self, plan: Plan) -> Result<(), String> {
        let options = Arc::new(plan.options);
        let has_other_targets;
        {
            let mut latest = lock(&self.shared.latest);
            let before = std::mem::replace(&mut *latest, Arc::clone(&options));
            self.shared.generation.fetch_add(1, Relaxed);
            drop(latest);
            has_other_targets = before.scrape != options.scrape || lock(&self.scraping).is_none();
            if !before.has_same_rules(&options) {
                self.shared.table.forget(true);
            }
        }
        self.statsd.change(&options);
        if has_other_targets {
            // The old one stops first, so that no target is scraped twice.
            let before = lock(&self.scraping).take();
            drop(before);
            let scraping = Scraping::start(&self.shared, &options.scrape);
            *lock(&self.scraping) = Some(scraping.map_err(|error| reason(&error))?);
        }
        let mut receiving = lock(&self.receiving);
        receiving.retain(|(protocol, it)| {
            let mut listens = options.line_listens().into_iter();
            it.is_handed
                || listens.any(|(known, listen)| {
                    known == *protocol && listen.datagrams.contains(&it.endpoint)
                })
        });
        for (spoken, it) in receiving.iter().filter(|(_, it)| !it.is_handed) {
            let mut listens = options.line_listens().into_iter();
            let listen = listens.find(|(protocol, _)| protocol == spoken);
            if let (Endpoint::Unixgram(path), Some((_, listen))) = (&it.endpoint, listen)
                && let Err(error) = listen.streams.access.give(path)
            {
                let text = format!("{}: {}", it.endpoint, reason(&error));
                (self.log.0)(Level::Warning, &text);
            }
        }
        for (protocol, receiver) in plan.receivers {
            let listener = receiver.endpoint.to_string();
            let counters = self.shared.counters.of((protocol, listener.clone()));
            let session = Session::new(&self.shared, protocol, &listener, None);
            let take = Datagrams {
                protocol,
                session,
                statsd: Arc::clone(&self.statsd),
            };
            let log_limiter = Arc::clone(&self.log_limiter);
            let started = receiver.start(protocol.name(), counters, log_limiter, take);
            receiving.push((protocol, started.map_err(|error| reason(&error))?));
        }
        Ok(())
    }
}

/// Takes whole lines of a protocol.
fn take_lines(protocol: Protocol, text: &[u8], session: &mut Session, statsd: &Statsd) {
    match protocol {
        Protocol::Statsd => statsd.add(text, session),
        _ => {
            session.begin(text.len());
            parse_lines(protocol, text, session);
            session.note();
        }
    }
}

fn parse_lines(protocol: Protocol, text: &[u8], session: &mut Session) {
    match protocol {
        // Texts are not numbers, which their senders know.
        Protocol::Influx => {
            influx::parse(text, Precision::Nanoseconds, "", session);
        }
        _ => graphite::parse(text, session),
    }
}

/// Takes datagrams of a protocol.
struct Datagrams {
    protocol: Protocol,
    session: Session,
    statsd: Arc<Statsd>,
}

impl Take for Datagrams {
    fn take(&mut self, sender: Option<IpAddr>, datagram: &[u8]) {
        self.session.set_sender(sender);
        match self.protocol {
            Protocol::Statsd => self.statsd.add(datagram, &mut self.session),
            _ => {
                self.session.begin(datagram.len());
                parse_lines(self.protocol, datagram, &mut self.session);
                self.session.count();
            }
        }
    }

    fn end_round(&mut self) {
        self.session.note();
    }
}

impl daemon::Source for Taking {
    fn metrics(&self, page: &mut Page) {
        let table = &self.shared.table;
        self.shared.counters.metrics(page);
        page.gauge("taken_series", "Series that are known.", table.known());
        page.gauge(
            "taken_databases_waiting",
            "Series whose databases are not yet created.",
            table.waiting(),
        );
        page.counter(
            "taken_databases_created_total",
            "Databases created for series.",
            table.created.count.load(Relaxed),
        );
        page.counter(
            "taken_database_failures_total",
            "Times a database of a series could not be opened or created.",
            table.created.failed.load(Relaxed),
        );
        page.counter(
            "taken_dropped_total",
            "Samples lost, as their database could not be created.",
            table.dropped.load(Relaxed),
        );
        page.senders("taken", &table.largest_senders(MOST_SENDERS));
        Shared::statsd_metrics(page, &self.statsd);
        for (name, server) in self.servers() {
            let name = name.replace('-', "_");
            page.connections(&name, server.connections());
        }
    }

    fn expired(&self, paths: &ExpiredPaths) {
        self.shared.table.expired(paths);
    }

    fn stop(&self) {
        for (_, server) in self.servers() {
            server.stop();
        }
        lock(&self.receiving).clear();
        drop(lock(&self.scraping).take());
        self.statsd.stop();
        // Nothing is added to the table from here on.
        self.shared.table.end();
        *lock(&self.shared.ends) = true;
        self.shared.changed.notify_all();
        for thread in std::mem::take(&mut *lock(&self.threads)) {
            // A thread that panicked has said so.
            let _ = thread.join();
        }
    }
}
