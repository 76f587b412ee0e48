//! The daemon: from its configuration to its end.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};

use kymo_io::most_open_files;
use kymo_io::net::Address;
use kymo_io::reason;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::unistd::{AccessFlags, access, geteuid};
use sd_notify::NotifyState;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;

use crate::activation;
use crate::collectd::Collectd;
use crate::config::{Config, Listen};
use crate::expire::Expiry;
use crate::instance::{PidFile, lock_data};
#[cfg(feature = "tls")]
use crate::listen::tls;
use crate::listen::{Server, Socket};
use crate::log::Level;
use crate::metrics::{self, Page};
use crate::query;
use crate::rrdcached::{self, ClientLimits, CommandSet, Rrdcached};
use crate::store::{Log, Options, Store};
use crate::sync::lock;
use crate::taking::Taking;

/// Where the configuration comes from when it is read again.
pub type Configure<'a> = &'a dyn Fn() -> Result<Config, String>;

/// Serves until a signal says that it is to end, and all is written.
///
/// SIGTERM and SIGINT end it, SIGHUP has it read its configuration again, SIGUSR1 has it write all
/// that is pending.
///
/// # Errors
///
/// Why it cannot begin, or that something was lost at the end, as a message.
pub fn run(config: Config, configure: Configure<'_>, log: &Log) -> Result<(), String> {
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

    /// Writes what it keeps beside the store.
    fn flush(&self) {}

    /// Takes nothing any more, and ends when what was taken is answered.
    fn stop(&self);
}

/// By what is spoken there.
type Sources = BTreeMap<&'static str, Arc<dyn Source>>;
/// Sockets that the daemon has bound: what is spoken there, and at what address.
type Bound = Vec<(&'static str, Address, Arc<Socket>)>;

struct Daemon {
    config: Config,
    log: Log,
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
        let collectd = self.config.collectd.as_ref();
        let is_served = spoken(&self.config)
            .iter()
            .map(|(what, _)| what)
            .filter(|what| **what != "metrics")
            .any(|what| !self.sockets(what, &self.bound).is_empty())
            || self.handed.iter().any(|(what, _)| *what != "metrics")
            || !self.handed_datagrams.is_empty()
            || !datagrams.is_empty()
            || collectd.is_some_and(|collectd| !collectd.network.listen.is_empty())
            || !self.config.taking.is_empty();
        if !is_served {
            return Err(
                "no address to listen at: set `rrdcached.listen`, `collectd.listen`, \
                        `collectd.unixsock.listen`, `graphite.listen`, `statsd.listen`, `influx.listen`, \
                        `remote-write.listen`, `otlp.listen` or `query.listen`, or give --rrdcached, \
                        --collectd, --unixsock, --graphite, --statsd, --influx, --remote-write, --otlp or --query"
                    .into(),
            );
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

    /// Binds the sockets of a configuration; those that are bound already are taken as they are.
    fn bind(&self, config: &Config) -> Result<Bound, String> {
        let mut bound = Bound::new();
        for (what, listen) in spoken(config) {
            for address in &listen.addresses {
                if bound.iter().any(|(_, taken, _)| taken == address) {
                    return Err(format!("{address}: it is specified twice"));
                }
                let there = self.bound.iter().find(|(_, taken, _)| taken == address);
                let socket = match there {
                    Some((.., socket)) => Arc::clone(socket),
                    None => Arc::new(self.bind_at(what, address, listen)?),
                };
                bound.push((what, address.clone(), socket));
            }
        }
        if !config.metrics.is_set && config.metrics.addresses.is_empty() {
            bound.extend(self.bind_own_metrics(&config.metrics));
        }
        Ok(bound)
    }

    /// Binds a socket of this machine for metrics, where the system has a directory for such. Another daemon may have
    /// it already: then this one starts without it.
    fn bind_own_metrics(&self, listen: &Listen) -> Option<(&'static str, Address, Arc<Socket>)> {
        let address = Address::Unix(runtime_directory()?.join(METRICS_SOCKET));
        let there = self.bound.iter().find(|(_, taken, _)| *taken == address);
        if let Some((.., socket)) = there {
            return Some(("metrics", address, Arc::clone(socket)));
        }
        match self.bind_at("metrics", &address, listen) {
            Ok(socket) => Some(("metrics", address, Arc::new(socket))),
            Err(problem) => {
                (self.log)(Level::Warning, &format!("no metrics: {problem}"));
                None
            }
        }
    }

    fn bind_at(&self, what: &str, address: &Address, listen: &Listen) -> Result<Socket, String> {
        let socket = Socket::bind(address, &listen.access)
            .map_err(|error| format!("{address}: {}", reason(&error)))?;
        encrypt(&socket, listen).map_err(|problem| format!("{address}: {problem}"))?;
        (self.log)(Level::Info, &format!("{what} at {}", socket.name()));
        let asks = listen.token_file.is_some()
            || listen.tls.as_ref().is_some_and(|it| it.client_ca.is_some());
        let lack = match (asks, listen.tls.is_some()) {
            (true, true) => None,
            (true, false) => Some("tokens can be read on the way: nothing is encrypted"),
            (false, true) => Some("nobody is asked who they are"),
            (false, false) => Some("nobody is asked who they are and nothing is encrypted"),
        };
        if let Some(lack) = lack.filter(|_| !address.is_local()) {
            (self.log)(
                Level::Warning,
                &format!("other machines may reach {address}, where {lack}"),
            );
        }
        Ok(socket)
    }

    /// The sockets where something is spoken, those before the daemon among them.
    fn sockets(&self, what: &str, bound: &Bound) -> Vec<Arc<Socket>> {
        let handed = self.handed.iter().filter(|(name, _)| *name == what);
        let bound = bound.iter().filter(|(name, ..)| *name == what);
        let handed = handed.map(|(_, socket)| socket);
        handed
            .chain(bound.map(|(.., socket)| socket))
            .cloned()
            .collect()
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

    /// Holds rrdcached's clients to these limits.
    fn limit_clients(&self, config: &Config, bound: &Bound) {
        if let Some(source) = &self.rrdcached {
            source.shared.set_limits(self.client_limits(config, bound));
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
        let expiry = Expiry::start(&self.store, &self.config.expire);
        let expiry = Arc::new(expiry.map_err(|error| reason(&error))?);
        lock(&self.sources).insert("expiry", Arc::clone(&expiry) as _);
        self.expiry = Some(expiry);
        Ok(())
    }

    fn start_metrics(&mut self) -> Result<(), String> {
        let (store, sources) = (Arc::clone(&self.store), Arc::clone(&self.sources));
        let page: Arc<dyn Fn() -> Page + Send + Sync> = Arc::new(move || {
            let mut page = Page::default();
            page.store(&store);
            // What some of them wait for, others do not.
            let sources: Vec<_> = lock(&sources).values().cloned().collect();
            sources.iter().for_each(|it| it.metrics(&mut page));
            page.process();
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

    /// Also waits for connections at these sockets.
    fn add(&self, bound: &Bound) -> Result<(), String> {
        self.servers().iter().try_for_each(|(what, server)| {
            let added = server.add(&self.sockets(what, bound));
            added.map_err(|error| reason(&error))
        })
    }

    /// Waits for connections at the sockets of the configuration only.
    fn retain(&self) {
        let spoken = spoken(&self.config);
        for (what, server) in self.servers() {
            let listen = spoken.iter().find(|(name, _)| *name == what);
            let most = listen.map_or(0, |(_, listen)| listen.connections);
            server.retain(&self.sockets(what, &self.bound), most);
        }
    }

    /// Reads the configuration again, and does what has changed.
    fn reload(&mut self, configure: Configure<'_>) {
        self.notify(&[
            NotifyState::Reloading,
            NotifyState::monotonic_usec_now().unwrap_or(NotifyState::Status("reloading")),
        ]);
        match configure().and_then(|config| self.take(config)) {
            Err(problem) => (self.log)(Level::Error, &format!("{problem}; all stays as it was")),
            Ok(()) => (self.log)(Level::Info, "the configuration was read again"),
        }
        self.notify(&[NotifyState::Ready]);
    }

    /// Applies a configuration, or returns why that is not possible and keeps the one before.
    fn take(&mut self, config: Config) -> Result<(), String> {
        let config = self.complete(config);
        // All that may be impossible comes first.
        check_files(&config)?;
        let bound = self.bind(&config)?;
        let plan = match (&self.collectd, &config.collectd) {
            (Some(collectd), Some(options)) => Some(collectd.plan(options)?),
            _ => None,
        };
        let taking = self.taking.as_ref();
        let taking_plan = taking.map(|it| it.plan(&config.taking)).transpose()?;
        // Before anybody comes to sockets that are new.
        self.limit_clients(&config, &bound);
        let mut begun = self.add(&bound);
        if begun.is_ok() && self.collectd.is_none() {
            begun = self.start_collectd(&config, &bound, Vec::new());
        }
        if begun.is_err() {
            self.limit_clients(&self.config, &self.bound);
            self.retain();
            return begun;
        }
        for (_, listen) in spoken(&config) {
            let addresses = &listen.addresses;
            let sockets = bound.iter().filter(|(_, it, _)| addresses.contains(it));
            for (_, address, socket) in sockets {
                // It was tried before.
                if let Err(problem) = encrypt(socket, listen) {
                    (self.log)(Level::Warning, &format!("{address}: {problem}"));
                }
            }
        }
        let before = std::mem::replace(&mut self.config, config);
        let bound_before = std::mem::replace(&mut self.bound, bound);
        match (&self.collectd, plan) {
            (Some(collectd), Some(plan)) => collectd.take(plan),
            _ if self.config.collectd.is_none() => self.stop_collectd(),
            _ => {}
        }
        if let (Some(taking), Some(plan)) = (&self.taking, taking_plan)
            && let Err(problem) = taking.take(plan)
        {
            (self.log)(Level::Warning, &problem);
        }
        if let Some(expiry) = &self.expiry {
            expiry.change(&self.config.expire);
        }
        self.retain();
        // Removes the files of sockets that nothing listens on.
        drop(bound_before);
        let now = &self.config;
        let write = &now.write;
        self.store.set_timing(write.timing());
        let stays = before.data == now.data
            && before.anywhere == now.anywhere
            && before.target == now.target
            && before.journal == now.journal
            && before.pid_file == now.pid_file
            && before.log == now.log
            && before.write.threads == write.threads
            && before.write.open_files == write.open_files
            && before.write.future_limit == write.future_limit
            && before.write.suspend_limit == write.suspend_limit
            && before.write.least_free == write.least_free
            && before.write.most_pending == write.most_pending
            && before.query.has_same_limits(&now.query);
        if !stays {
            let text = "other directories, forms, threads and sizes are taken when it starts again";
            (self.log)(Level::Warning, text);
        }
        for (_, listen) in spoken(now) {
            let addresses = &listen.addresses;
            let sockets = self
                .bound
                .iter()
                .filter(|(_, it, _)| addresses.contains(it));
            for (_, address, socket) in sockets {
                if let Err(error) = socket.set_access(&listen.access) {
                    (self.log)(Level::Warning, &format!("{address}: {}", reason(&error)));
                }
            }
        }
        Ok(())
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

/// The name of the socket for metrics.
const METRICS_SOCKET: &str = "metrics.sock";

/// Where sockets of this daemon may be by default: the directory that systemd has made for it, that of the user, or that
/// of the system.
fn runtime_directory() -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    if let Some(directories) = variable("RUNTIME_DIRECTORY") {
        return std::env::split_paths(&directories).next();
    }
    let parent = match variable("XDG_RUNTIME_DIR") {
        Some(directory) => PathBuf::from(directory),
        None if geteuid().is_root() => PathBuf::from("/run"),
        None => return None,
    };
    let directory = parent.join("kymo");
    // If it cannot be created, the socket in it cannot be bound either.
    let _ = std::fs::create_dir(&directory);
    Some(directory)
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
                "'{shown}': no databases can be created in this directory: {}",
                reason(&errno.into())
            ),
        );
    }
}

/// Has the connections of a port encrypted as the configuration says it.
#[cfg(feature = "tls")]
fn encrypt(socket: &Socket, listen: &Listen) -> Result<(), String> {
    if let Socket::Tcp(_, encryption) = socket {
        let acceptor = listen.tls.as_ref().map(tls::Acceptor::read);
        encryption.set(acceptor.transpose()?);
    }
    Ok(())
}

/// There is no such key of the configuration then.
#[cfg(not(feature = "tls"))]
#[allow(clippy::unnecessary_wraps, reason = "with TLS it may fail")]
fn encrypt(_: &Socket, _: &Listen) -> Result<(), String> {
    Ok(())
}

/// Looks at the files that are read for connections: what is wrong there is better known now.
fn check_files(config: &Config) -> Result<(), String> {
    match config.check_secrets().into_iter().next() {
        Some(problem) => Err(problem),
        None => Ok(()),
    }
}

/// What is spoken at connections, and where.
fn spoken(config: &Config) -> Vec<(&'static str, &Listen)> {
    let mut spoken = vec![
        ("rrdcached", &config.rrdcached),
        ("metrics", &config.metrics),
        ("query", &config.query.listen),
    ];
    let sockets = config.rrdcached_sockets.iter();
    spoken.extend(sockets.map(|it| ("rrdcached", &it.listen)));
    spoken.extend(config.taking.streams());
    spoken.extend(config.collectd.iter().map(|it| ("unixsock", &it.unixsock)));
    spoken
}

fn options(config: &Config, log: &Log) -> Options {
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
