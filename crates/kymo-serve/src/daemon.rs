//! The daemon: from its configuration to its end.

use std::collections::BTreeMap;
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
use crate::instance::{PidFile, lock_data};
use crate::listen::{Server, Socket};
use crate::metrics::{self, Page};
use crate::query;
use crate::rrdcached::{self, Rrdcached};
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
    let told = |error: io::Error| reason(&error);
    raise_open_files();
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM, SIGUSR1]).map_err(told)?;
    let (tell, wishes) = channel();
    std::thread::spawn(move || {
        for signal in signals.forever() {
            if tell.send(signal).is_err() {
                return;
            }
        }
    });
    let data_lock = lock_data(&config.data)?;
    warn_of_directory(&config.data, log);
    let store = Store::open(options(&config, log)).map_err(told)?;
    let data_lock = match data_lock {
        None => lock_data(&config.data)?,
        lock => lock,
    };
    let mut daemon = Daemon {
        store,
        config,
        log: Arc::clone(log),
        handed: Vec::new(),
        has_clients: false,
        bound: Bound::new(),
        sources: Arc::default(),
        collectd: None,
        rrdcached: None,
        metrics: None,
        query: None,
        taking: None,
        pid_file: None,
        _data_lock: data_lock,
    };
    if let Err(problem) = daemon.begin() {
        daemon.end();
        return Err(problem);
    }
    daemon.notify(&[NotifyState::Ready]);

    // A daemon that hangs does not answer systemd, which then starts it anew.
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
    pid_file: Option<PidFile>,
    _data_lock: Option<File>,
}

impl Daemon {
    fn begin(&mut self) -> Result<(), String> {
        let (streams, datagrams) = activation::handed()?;
        for (what, socket) in &streams {
            (self.log)(&format!("{what} at {}, from systemd", socket.name()));
        }
        let is_unixsock = |(what, _): &(&str, _)| *what == "unixsock";
        self.has_clients = !datagrams.is_empty() || streams.iter().any(is_unixsock);
        self.handed = streams;
        self.config = self.complete(self.config.clone());
        self.bound = self.bind(&self.config)?;
        let collectd = self.config.collectd.as_ref();
        let is_served = ["rrdcached", "unixsock", "query"]
            .iter()
            .any(|what| !self.sockets(what, &self.bound).is_empty())
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
                    None => Arc::new(self.bind_at(what, address, listen.mode)?),
                };
                bound.push((what, address.clone(), socket));
            }
        }
        if !config.metrics.is_set && config.metrics.addresses.is_empty() {
            bound.extend(self.bind_own_metrics(config.metrics.mode));
        }
        Ok(bound)
    }

    /// Binds a socket of this machine for metrics, where the system has a directory for such. Another daemon may have
    /// it already: that is no reason not to begin.
    fn bind_own_metrics(&self, mode: u32) -> Option<(&'static str, Address, Arc<Socket>)> {
        let address = Address::Unix(runtime_directory()?.join(METRICS_SOCKET));
        let there = self.bound.iter().find(|(_, taken, _)| *taken == address);
        if let Some((.., socket)) = there {
            return Some(("metrics", address, Arc::clone(socket)));
        }
        match self.bind_at("metrics", &address, mode) {
            Ok(socket) => Some(("metrics", address, Arc::new(socket))),
            Err(problem) => {
                (self.log)(&format!("warning: no metrics: {problem}"));
                None
            }
        }
    }

    fn bind_at(&self, what: &str, address: &Address, mode: u32) -> Result<Socket, String> {
        let socket = Socket::bind(address, mode)
            .map_err(|error| format!("{address}: {}", reason(&error)))?;
        (self.log)(&format!("{what} at {}", socket.name()));
        if !address.is_local() {
            (self.log)(&format!(
                "warning: other machines may reach {address}, where nobody is asked who they are \
                 and nothing is encrypted"
            ));
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
        let most = self.config.rrdcached.connections;
        let source = rrdcached::Source::start(&shared, &sockets, most);
        let source = Arc::new(source.map_err(|error| reason(&error))?);
        lock(&self.sources).insert("rrdcached", Arc::clone(&source) as _);
        self.rrdcached = Some(source);
        Ok(())
    }

    fn start_taking(&mut self) -> Result<(), String> {
        let sockets = |what: &str| self.sockets(what, &self.bound);
        let options = &self.config.taking;
        let taking = Taking::start(options, &sockets, &self.store, &self.log)?;
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
            Err(problem) => (self.log)(&format!("{problem}; all stays as it was")),
            Ok(()) => (self.log)("the configuration was read again"),
        }
        self.notify(&[NotifyState::Ready]);
    }

    /// Does what a configuration says, or tells why that is not possible, and goes on with the one before.
    fn take(&mut self, config: Config) -> Result<(), String> {
        let config = self.complete(config);
        // All that may be impossible comes first.
        let bound = self.bind(&config)?;
        let plan = match (&self.collectd, &config.collectd) {
            (Some(collectd), Some(options)) => Some(collectd.plan(options)?),
            _ => None,
        };
        let taking = self.taking.as_ref();
        let taking_plan = taking.map(|it| it.plan(&config.taking)).transpose()?;
        let mut begun = self.add(&bound);
        if begun.is_ok() && self.collectd.is_none() {
            begun = self.start_collectd(&config, &bound, Vec::new());
        }
        if begun.is_err() {
            self.retain();
            return begun;
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
            (self.log)(&problem);
        }
        self.retain();
        // The files of sockets where nobody listens any more are removed.
        drop(bound_before);
        let now = &self.config;
        let write = &now.write;
        self.store.set_timing(write.timing());
        let stays = before.data == now.data
            && before.anywhere == now.anywhere
            && before.target == now.target
            && before.journal == now.journal
            && before.pid_file == now.pid_file
            && before.write.threads == write.threads
            && before.write.open_files == write.open_files
            && before.write.future_limit == write.future_limit
            && before.write.suspend_limit == write.suspend_limit
            && before.write.least_free == write.least_free
            && before.write.most_pending == write.most_pending
            && before.query.has_same_limits(&now.query);
        if !stays {
            let text = "other directories, forms, threads and sizes are taken when it starts again";
            (self.log)(text);
        }
        for (what, listen) in spoken(now) {
            let sockets = self.bound.iter().filter(|(name, ..)| *name == what);
            for (_, address, socket) in sockets {
                if let Err(error) = socket.set_mode(listen.mode) {
                    (self.log)(&format!("{address}: {}", reason(&error)));
                }
            }
        }
        Ok(())
    }

    /// Tells systemd, if it has started the daemon.
    fn notify(&self, state: &[NotifyState<'_>]) {
        if let Err(error) = sd_notify::notify(state) {
            (self.log)(&format!("cannot notify systemd: {}", reason(&error)));
        }
    }

    /// Answers what has come, writes all that is pending, and ends. Tells whether all is kept.
    fn end(&mut self) -> bool {
        if let Some(metrics) = self.metrics.take() {
            metrics.stop();
        }
        if let Some(query) = self.query.take() {
            query.stop();
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
        log(&format!(
            "warning: '{shown}': no databases can be created in this directory: {}",
            reason(&errno.into())
        ));
    }
}

/// What is spoken at connections, and where.
fn spoken(config: &Config) -> Vec<(&'static str, &Listen)> {
    let mut spoken = vec![
        ("rrdcached", &config.rrdcached),
        ("metrics", &config.metrics),
        ("query", &config.query.listen),
    ];
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
