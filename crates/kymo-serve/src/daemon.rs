//! The daemon: from its configuration to its end.

mod reload;
pub(crate) mod sockets;

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io;
use std::net::UdpSocket;
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use kymo_io::most_open_files;
use kymo_io::net::Address;
use kymo_io::reason;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::unistd::{AccessFlags, access};
use sd_notify::NotifyState;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;

use crate::activation;
use crate::collectd::Collectd;
use crate::config::Config;
use crate::expire::{ExpiredPaths, Expiry};
use crate::instance::{PidFile, lock_data};
use crate::listen::{Server, Socket};
use crate::log::{Level, StandardError};
use crate::metrics::{self, Page};
use crate::query;
use crate::rrdcached::{self, ClientLimits, CommandSet, Rrdcached};
use crate::store::{Log, Options, Store};
use crate::sync::lock;
use crate::taking::Taking;

/// Where the configuration comes from when it is read again; or what is wrong with it.
pub type Configure<'a> = &'a dyn Fn() -> Result<Config, Vec<String>>;

/// Serves until a signal says that it is to end, and all is written.
///
/// SIGTERM and SIGINT end it, SIGHUP has it read its configuration again, SIGUSR1 has it write all
/// that is pending.
///
/// # Errors
///
/// Why it cannot begin, or that something was lost at the end, as a message.
pub fn run(
    config: Config,
    configure: Configure<'_>,
    messages: &StandardError,
) -> Result<(), String> {
    let log = &messages.log();
    let reported = |error: io::Error| reason(&error);
    raise_open_files();
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM, SIGUSR1]).map_err(reported)?;
    let (report, wishes) = channel();
    std::thread::spawn(move || {
        for signal in signals.forever() {
            if report.send(signal).is_err() {
                return;
            }
        }
    });
    let data_lock = lock_data(&config.data)?;
    warn_of_directory(&config.data, log);
    let store = Store::open(options(&config, log)).map_err(reported)?;
    let data_lock = match data_lock {
        None => lock_data(&config.data)?,
        lock => lock,
    };
    let mut daemon = Daemon {
        store,
        config,
        log: Arc::clone(log),
        messages: messages.clone(),
        handed: Vec::new(),
        handed_to_read: Vec::new(),
        handed_datagrams: Vec::new(),
        has_clients: false,
        bound: Bound::new(),
        sources: Arc::default(),
        collectd: None,
        rrdcached: None,
        metrics: None,
        query: None,
        taking: None,
        expiry: None,
        pid_file: None,
        _data_lock: data_lock,
    };
    if let Err(problem) = daemon.begin() {
        daemon.end();
        return Err(problem);
    }
    daemon.notify(&[NotifyState::Ready]);

    // If the daemon hangs, it does not answer systemd, which then restarts it.
    let patience = sd_notify::watchdog_enabled().map(|patience| patience / 3);
    loop {
        let wish = match patience {
            Some(patience) => wishes.recv_timeout(patience),
            None => wishes.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match wish {
            Err(RecvTimeoutError::Timeout) => daemon.notify(&[NotifyState::Watchdog]),
            Ok(SIGHUP) => daemon.reload(configure),
            Ok(SIGUSR1) => {
                lock(&daemon.sources).values().for_each(|it| it.flush());
                daemon.store.flush_all();
            }
            Ok(_) | Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    daemon.notify(&[NotifyState::Stopping]);
    match daemon.end() {
        true => Ok(()),
        false => Err("not all that was accepted could be written".into()),
    }
}

/// What brings updates to the store: sockets and their threads.
pub trait Source: Send + Sync {
    /// Adds what it has counted to a page.
    fn metrics(&self, page: &mut Page);

    /// Forgets what it knows of databases that were removed, since their series had stopped.
    fn expired(&self, _paths: &ExpiredPaths) {}

    /// Writes what it keeps beside the store.
    fn flush(&self) {}

    /// Takes nothing more, and ends when what was taken is answered.
    fn stop(&self);
}

/// By what is spoken there.
type Sources = BTreeMap<&'static str, Arc<dyn Source>>;
/// Sockets that the daemon has bound: what is spoken there, and at what address.
type Bound = Vec<(&'static str, Address, Arc<Socket>)>;

struct Daemon {
    config: Config,
    log: Log,
    /// Where messages go, whose options may change.
    messages: StandardError,
    store: Arc<Store>,
    /// Sockets that were there before the daemon, and what is spoken there.
    handed: Vec<(&'static str, Arc<Socket>)>,
    /// Those of them where rrdcached's clients may only read.
    handed_to_read: Vec<Arc<Socket>>,
    /// Those of datagrams of other metrics, and what is spoken there.
    handed_datagrams: Vec<activation::HandedDatagrams>,
    /// Whether some of those are for collectd's clients.
    has_clients: bool,
    bound: Bound,
    /// All that is there, for the metrics.
    sources: Arc<Mutex<Sources>>,
    collectd: Option<Arc<Collectd>>,
    rrdcached: Option<Arc<rrdcached::Source>>,
    metrics: Option<Server>,
    query: Option<Arc<query::Source>>,
    taking: Option<Arc<Taking>>,
    expiry: Option<Arc<Expiry>>,
    pid_file: Option<PidFile>,
    _data_lock: Option<File>,
}

impl Daemon {
    fn begin(&mut self) -> Result<(), String> {
        let activation::Handed {
            mut streams,
            to_read,
            datagrams,
            others,
        } = activation::handed()?;
        streams.extend(to_read.iter().map(|it| ("rrdcached", Arc::clone(it))));
        for (what, socket) in &streams {
            (self.log)(
                Level::Info,
                &format!("{what} at {}, from systemd", socket.name()),
            );
        }
        self.handed_to_read = to_read;
        self.handed_datagrams = others;
        let is_unixsock = |(what, _): &(&str, _)| *what == "unixsock";
        self.has_clients = !datagrams.is_empty() || streams.iter().any(is_unixsock);
        self.handed = streams;
        self.config = self.complete(self.config.clone());
        check_files(&self.config)?;
        self.bound = self.bind(&self.config)?;
        let is_served = self.config.serves()
            || self.handed.iter().any(|(what, _)| *what != "metrics")
            || !self.handed_datagrams.is_empty()
            || !datagrams.is_empty();
        if !is_served {
            return Err(NOT_SERVED.into());
        }
        // Who is answered finds it.
        self.pid_file = match &self.config.pid_file {
            Some(path) => Some(PidFile::write(path)?),
            None => None,
        };
        self.start_collectd(&self.config.clone(), &self.bound.clone(), datagrams)?;
        self.start_rrdcached()?;
        self.start_taking()?;
        self.start_query()?;
        self.start_expiry()?;
        self.start_metrics()
    }

    /// A configuration, with what the sockets need that were there before the daemon.
    fn complete(&self, mut config: Config) -> Config {
        if self.has_clients {
            config.collectd.get_or_insert_default();
        }
        config
    }

    fn start_collectd(
        &mut self,
        config: &Config,
        bound: &Bound,
        datagrams: Vec<UdpSocket>,
    ) -> Result<(), String> {
        if let Some(options) = &config.collectd {
            let sockets = self.sockets("unixsock", bound);
            let source = Collectd::start(options, &sockets, datagrams, &self.store, &self.log)?;
            let source = Arc::new(source);
            lock(&self.sources).insert("collectd", Arc::clone(&source) as _);
            self.collectd = Some(source);
        }
        Ok(())
    }

    fn stop_collectd(&mut self) {
        // Who asks for metrics does not wait until it has ended.
        lock(&self.sources).remove("collectd");
        if let Some(collectd) = self.collectd.take() {
            collectd.stop();
        }
    }

    fn start_rrdcached(&mut self) -> Result<(), String> {
        let sockets = self.sockets("rrdcached", &self.bound);
        let shared = Arc::new(Rrdcached::new(Arc::clone(&self.store)));
        // Clients may wait at the sockets already.
        shared.set_limits(self.client_limits(&self.config, &self.bound));
        let most = self.config.rrdcached.connections;
        let source = rrdcached::Source::start(&shared, &sockets, most);
        let source = Arc::new(source.map_err(|error| reason(&error))?);
        lock(&self.sources).insert("rrdcached", Arc::clone(&source) as _);
        self.rrdcached = Some(source);
        Ok(())
    }

    /// What rrdcached's clients are held to by a configuration and its sockets.
    fn client_limits(&self, config: &Config, bound: &Bound) -> ClientLimits {
        let mut commands = HashMap::new();
        for socket in &config.rrdcached_sockets {
            let addresses = &socket.listen.addresses;
            for (_, address, bound) in bound {
                if addresses.contains(address) {
                    commands.insert(bound.name(), socket.commands);
                }
            }
        }
        let read = CommandSet::from_name("read").unwrap_or_default();
        for socket in &self.handed_to_read {
            commands.insert(socket.name(), read);
        }
        ClientLimits {
            idle_timeout: config.rrdcached.idle_timeout,
            commands,
            overwrite: config.rrdcached_overwrite,
        }
    }

    fn start_taking(&mut self) -> Result<(), String> {
        let handed = std::mem::take(&mut self.handed_datagrams);
        let sockets = |what: &str| self.sockets(what, &self.bound);
        let options = &self.config.taking;
        let taking = Taking::start_with(options, &sockets, handed, &self.store, &self.log)?;
        let taking = Arc::new(taking);
        lock(&self.sources).insert("taking", Arc::clone(&taking) as _);
        self.taking = Some(taking);
        Ok(())
    }

    fn start_query(&mut self) -> Result<(), String> {
        let sockets = self.sockets("query", &self.bound);
        let source = query::Source::start(&self.store, &self.config.query, &sockets, &self.log);
        let source = Arc::new(source.map_err(|error| reason(&error))?);
        lock(&self.sources).insert("query", Arc::clone(&source) as _);
        self.query = Some(source);
        Ok(())
    }

    fn start_expiry(&mut self) -> Result<(), String> {
        let sources = Arc::downgrade(&self.sources);
        let expired = move |paths: &ExpiredPaths| {
            let Some(sources) = sources.upgrade() else {
                return;
            };
            // What some of them wait for, others do not.
            let sources: Vec<_> = lock(&sources).values().cloned().collect();
            sources.iter().for_each(|it| it.expired(paths));
        };
        let expiry = Expiry::start(&self.store, &self.config.expire, expired);
        let expiry = Arc::new(expiry.map_err(|error| reason(&error))?);
        lock(&self.sources).insert("expiry", Arc::clone(&expiry) as _);
        self.expiry = Some(expiry);
        Ok(())
    }

    fn start_metrics(&mut self) -> Result<(), String> {
        let (store, sources) = (Arc::clone(&self.store), Arc::clone(&self.sources));
        let begin = SystemTime::now();
        let page: Arc<dyn Fn() -> Page + Send + Sync> = Arc::new(move || {
            let mut page = Page::default();
            page.build();
            page.store(&store);
            // What some of them wait for, others do not.
            let sources: Vec<_> = lock(&sources).values().cloned().collect();
            sources.iter().for_each(|it| it.metrics(&mut page));
            page.process(begin);
            page
        });
        let sockets = self.sockets("metrics", &self.bound);
        let most = self.config.metrics.connections;
        let serve = move |stream| metrics::serve(stream, &page);
        let server = Server::start("metrics", &sockets, most, &self.log, serve);
        self.metrics = Some(server.map_err(|error| reason(&error))?);
        Ok(())
    }

    /// The servers of connections, and what is spoken there.
    fn servers(&self) -> Vec<(&'static str, &Server)> {
        let rrdcached = self.rrdcached.as_ref().map(|it| &it.server);
        let collectd = self.collectd.as_ref().map(|it| it.server());
        let metrics = self.metrics.as_ref();
        let query = self.query.as_ref().map(|it| &it.server);
        let all = [
            ("query", query),
            ("rrdcached", rrdcached),
            ("unixsock", collectd),
            ("metrics", metrics),
        ];
        let there = all.into_iter();
        let mut there: Vec<_> = there.filter_map(|(what, it)| Some((what, it?))).collect();
        there.extend(self.taking.iter().flat_map(|it| it.servers()));
        there
    }

    /// Notifies systemd, if it has started the daemon.
    fn notify(&self, state: &[NotifyState<'_>]) {
        if let Err(error) = sd_notify::notify(state) {
            (self.log)(
                Level::Warning,
                &format!("cannot notify systemd: {}", reason(&error)),
            );
        }
    }

    /// Answers what has come, writes all that is pending, and ends. Returns whether all is kept.
    fn end(&mut self) -> bool {
        if let Some(metrics) = self.metrics.take() {
            metrics.stop();
        }
        if let Some(query) = self.query.take() {
            query.stop();
        }
        if let Some(expiry) = self.expiry.take() {
            expiry.stop();
        }
        if let Some(rrdcached) = self.rrdcached.take() {
            rrdcached.stop();
        }
        if let Some(taking) = self.taking.take() {
            taking.stop();
        }
        self.stop_collectd();
        self.bound.clear();
        let kept = self.store.close();
        self.pid_file = None;
        kept
    }
}

/// Lets the process have as many files open as the system grants it: connections and databases are files.
fn raise_open_files() {
    if let Ok((_, most)) = getrlimit(Resource::RLIMIT_NOFILE) {
        // Where that is not allowed, fewer are served.
        let _ = setrlimit(Resource::RLIMIT_NOFILE, most, most);
    }
}

/// Warns if no new databases can be created.
fn warn_of_directory(data: &Path, log: &Log) {
    let needed = AccessFlags::W_OK | AccessFlags::X_OK;
    if data.is_dir()
        && let Err(errno) = access(data, needed)
    {
        let shown = data.display();
        log(
            Level::Warning,
            &format!(
                "`{shown}`: no databases can be created in this directory: {}",
                reason(&errno.into())
            ),
        );
    }
}

/// Looks at the files that are read for connections: what is wrong there is better known now.
fn check_files(config: &Config) -> Result<(), String> {
    match config.check_secrets().into_iter().next() {
        Some(problem) => Err(problem),
        None => Ok(()),
    }
}

/// What is said where nobody could connect.
pub(crate) const NOT_SERVED: &str = "no address to listen at\n\
    hint: set `rrdcached.listen`, `collectd.listen`, `collectd.unixsock.listen`, `graphite.listen`, \
    `statsd.listen`, `influx.listen`, `remote-write.listen`, `otlp.listen` or `query.listen`, or give --rrdcached, \
    --collectd, --unixsock, --graphite, --statsd, --influx, --remote-write, --otlp or --query";

/// What a configuration says of the store.
pub(crate) fn options(config: &Config, log: &Log) -> Options {
    let write = &config.write;
    Options {
        base: config.data.clone(),
        anywhere: config.anywhere,
        timing: write.timing(),
        writers: write.threads,
        // An eighth of what the process may have is for databases.
        open_files: write
            .open_files
            .min(most_open_files() / (8 * write.threads.max(1)))
            .max(1),
        most_pending: write.most_pending,
        future_limit: write.future_limit,
        suspend_limit: write.suspend_limit,
        least_free: write.least_free,
        target: config.target,
        journal: config.journal.clone(),
        log: Arc::clone(log),
    }
}
