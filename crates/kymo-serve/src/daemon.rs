//! The daemon: from its configuration to its end.

use std::io;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kymo_rrdtool::reason;
use listenfd::ListenFd;
use sd_notify::NotifyState;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;

use crate::collectd::Collectd;
use crate::config::{Config, Listen};
use crate::listen::{Server, Socket};
use crate::metrics::{self, Page};
use crate::rrdcached::{self, Rrdcached};
use crate::store::{Log, Options, Store, Timing};

/// Where the configuration comes from; it is asked again at a reload.
pub type Configure<'a> = &'a dyn Fn() -> Result<Config, String>;

/// Serves until a signal says that it is to end, and all is written.
///
/// SIGTERM and SIGINT end it, SIGHUP has it read its configuration again, SIGUSR1 has it write all
/// that is pending.
///
/// # Errors
///
/// Why it cannot begin, or that something was lost at the end, as a message.
pub fn run(configure: Configure<'_>, log: &Log) -> Result<(), String> {
    let told = |error: io::Error| reason(&error);
    let config = configure()?;
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM, SIGUSR1]).map_err(told)?;
    let (tell, wishes) = channel();
    std::thread::spawn(move || {
        for signal in signals.forever() {
            if tell.send(signal).is_err() {
                return;
            }
        }
    });
    let store = Store::open(options(&config, log)).map_err(told)?;
    let mut daemon = Daemon {
        rrdcached: Arc::new(Rrdcached::new(Arc::clone(&store))),
        store,
        config,
        log: Arc::clone(log),
        handed: handed(),
        sources: Sources::default(),
        metrics: None,
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
                lock(&daemon.sources).iter().for_each(|it| it.flush());
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
pub trait Source: Send {
    /// Adds what it has counted to a page.
    fn metrics(&self, page: &mut Page);

    /// Reads again what lies in files.
    ///
    /// # Errors
    ///
    /// What is wrong with it, as a message; what was there before holds on.
    fn reload(&self) -> Result<(), String> {
        Ok(())
    }

    /// Writes what it keeps beside the store.
    fn flush(&self) {}

    /// Takes nothing any more, and ends when what was taken is answered.
    fn stop(&mut self);
}

type Sources = Arc<Mutex<Vec<Box<dyn Source>>>>;

struct Daemon {
    config: Config,
    log: Log,
    store: Arc<Store>,
    rrdcached: Arc<Rrdcached>,
    /// Sockets that were there before the daemon, and what is spoken there.
    handed: Vec<(String, Socket)>,
    sources: Sources,
    metrics: Option<Server>,
}

impl Daemon {
    fn begin(&mut self) -> Result<(), String> {
        if let Some(path) = &self.config.pid_file {
            let written = std::fs::write(path, format!("{}\n", std::process::id()));
            written.map_err(|error| format!("'{}': {}", path.display(), reason(&error)))?;
        }
        self.listen()
    }

    /// Begins to listen.
    fn listen(&mut self) -> Result<(), String> {
        let told = |error: io::Error| reason(&error);
        let sockets = self.sockets("rrdcached", &self.config.rrdcached)?;
        if !sockets.is_empty() {
            let most = self.config.rrdcached.connections;
            let source = rrdcached::Source::start(&self.rrdcached, sockets, most).map_err(told)?;
            lock(&self.sources).push(Box::new(source));
        }
        if let Some(options) = &self.config.collectd {
            let sockets = self.sockets("unixsock", &options.unixsock)?;
            let source = Collectd::start(options, sockets, &self.store, &self.log)?;
            lock(&self.sources).push(Box::new(source));
        }
        let sockets = self.sockets("metrics", &self.config.metrics)?;
        if !sockets.is_empty() {
            let (store, sources) = (Arc::clone(&self.store), Arc::clone(&self.sources));
            let page: Arc<dyn Fn() -> Page + Send + Sync> = Arc::new(move || {
                let mut page = Page::default();
                page.store(&store);
                let sources = lock(&sources);
                sources.iter().for_each(|source| source.metrics(&mut page));
                page.process();
                page
            });
            let most = self.config.metrics.connections;
            let serve = move |stream| metrics::serve(stream, &page);
            self.metrics = Some(Server::start("metrics", sockets, most, serve).map_err(told)?);
        }
        Ok(())
    }

    /// Listens no more.
    fn stop(&mut self) {
        if let Some(mut metrics) = self.metrics.take() {
            metrics.stop();
        }
        let sources = std::mem::take(&mut *lock(&self.sources));
        sources.into_iter().for_each(|mut source| source.stop());
    }

    /// The sockets where something is spoken.
    fn sockets(&self, what: &str, listen: &Listen) -> Result<Vec<Socket>, String> {
        let mut sockets = Vec::new();
        for (name, socket) in &self.handed {
            if name == what {
                let again = socket.try_clone().map_err(|error| reason(&error))?;
                (self.log)(&format!("{what} at {}, from systemd", socket.name()));
                sockets.push(again);
            }
        }
        for address in &listen.addresses {
            let socket = Socket::bind(address, listen.mode)
                .map_err(|error| format!("{address}: {}", reason(&error)))?;
            (self.log)(&format!("{what} at {}", socket.name()));
            if !address.is_local() {
                (self.log)(&format!(
                    "warning: other machines may reach {address}, where nobody is asked who they \
                     are and nothing is encrypted"
                ));
            }
            sockets.push(socket);
        }
        Ok(sockets)
    }

    /// Reads the configuration again, and does what has changed.
    fn reload(&mut self, configure: Configure<'_>) {
        self.notify(&[
            NotifyState::Reloading,
            NotifyState::monotonic_usec_now().unwrap_or(NotifyState::Status("reloading")),
        ]);
        match configure() {
            Err(problem) => (self.log)(&format!("{problem}; all stays as it was")),
            Ok(config) => self.take(config),
        }
        self.notify(&[NotifyState::Ready]);
    }

    fn take(&mut self, config: Config) {
        let before = std::mem::replace(&mut self.config, config);
        let now = &self.config;
        let write = &now.write;
        self.store.set_timing(Timing {
            write_timeout: write.timeout,
            jitter: write.jitter,
            flush_interval: write.flush,
        });
        let stays = before.data == now.data
            && before.anywhere == now.anywhere
            && before.target == now.target
            && before.journal == now.journal
            && before.pid_file == now.pid_file
            && before.write.threads == write.threads
            && before.write.open_files == write.open_files
            && before.write.most_pending == write.most_pending;
        if !stays {
            let text = "other directories, forms, threads and sizes are taken when it starts again";
            (self.log)(text);
        }
        for source in lock(&self.sources).iter() {
            if let Err(problem) = source.reload() {
                (self.log)(&problem);
            }
        }
        if before.rrdcached != now.rrdcached
            || before.metrics != now.metrics
            || before.collectd != now.collectd
        {
            self.stop();
            if let Err(problem) = self.listen() {
                (self.log)(&problem);
            }
        }
        (self.log)("the configuration was read again");
    }

    /// Tells systemd, if it has started the daemon.
    fn notify(&self, state: &[NotifyState<'_>]) {
        if let Err(error) = sd_notify::notify(state) {
            (self.log)(&format!("systemd cannot be told: {}", reason(&error)));
        }
    }

    /// Answers what has come, writes all that is pending, and ends. Tells whether all is kept.
    fn end(&mut self) -> bool {
        self.stop();
        let kept = self.store.close();
        if let Some(path) = &self.config.pid_file {
            // Somebody else may have removed it.
            let _ = std::fs::remove_file(path);
        }
        kept
    }
}

/// The sockets that systemd hands over, with their names (`FileDescriptorName=`).
fn handed() -> Vec<(String, Socket)> {
    let names = std::env::var("LISTEN_FDNAMES").unwrap_or_default();
    let mut names = names.split(':');
    let mut handed = ListenFd::from_env();
    let mut sockets = Vec::new();
    for index in 0..handed.len() {
        // systemd calls those without a name after the unit, such as `kymo.socket`.
        let name = match names.next() {
            Some("metrics") => "metrics",
            Some("unixsock") => "unixsock",
            _ => "rrdcached",
        };
        if let Ok(Some(listener)) = handed.take_unix_listener(index) {
            sockets.push((name.to_owned(), Socket::Unix(listener, None)));
        } else if let Ok(Some(listener)) = handed.take_tcp_listener(index) {
            sockets.push((name.to_owned(), Socket::Tcp(listener)));
        }
    }
    sockets
}

fn options(config: &Config, log: &Log) -> Options {
    let write = &config.write;
    Options {
        base: config.data.clone(),
        anywhere: config.anywhere,
        timing: Timing {
            write_timeout: write.timeout,
            jitter: write.jitter,
            flush_interval: write.flush,
        },
        writers: write.threads,
        open_files: write.open_files,
        most_pending: write.most_pending,
        target: config.target,
        journal: config.journal.clone(),
        log: Arc::clone(log),
    }
}

fn lock(sources: &Sources) -> MutexGuard<'_, Vec<Box<dyn Source>>> {
    sources.lock().unwrap_or_else(PoisonError::into_inner)
}
