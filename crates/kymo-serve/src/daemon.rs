//! The daemon: from its configuration to its end.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{RecvTimeoutError, channel};

use kymo_rrdtool::reason;
use listenfd::ListenFd;
use sd_notify::NotifyState;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;

use crate::config::{Config, Listen};
use crate::listen::{Server, Socket};
use crate::metrics::{self, Page};
use crate::rrdcached::Rrdcached;
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
/// Why it cannot begin, as a message.
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
        servers: Vec::new(),
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
            Ok(SIGUSR1) => daemon.store.flush_all(),
            Ok(_) | Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    daemon.notify(&[NotifyState::Stopping]);
    daemon.end();
    Ok(())
}

struct Daemon {
    config: Config,
    log: Log,
    store: Arc<Store>,
    rrdcached: Arc<Rrdcached>,
    /// Sockets that were there before the daemon, and what is spoken there.
    handed: Vec<(String, Socket)>,
    servers: Vec<Server>,
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
        let mut connections = None;
        let sockets = self.sockets("rrdcached", &self.config.rrdcached)?;
        if !sockets.is_empty() {
            let shared = Arc::clone(&self.rrdcached);
            let most = self.config.rrdcached.connections;
            let serve = move |stream| shared.serve(stream);
            let server = Server::start("rrdcached", sockets, most, serve).map_err(told)?;
            connections = Some(Arc::clone(server.connections()));
            self.servers.push(server);
        }
        let sockets = self.sockets("metrics", &self.config.metrics)?;
        if !sockets.is_empty() {
            let rrdcached = Arc::clone(&self.rrdcached);
            let page = move || {
                let mut page = Page::default();
                page.store(rrdcached.store());
                page.counter(
                    "rrdcached_commands_total",
                    "Commands of rrdcached's protocol.",
                    rrdcached.commands.load(Relaxed),
                );
                if let Some(connections) = &connections {
                    page.connections("rrdcached", connections);
                }
                page.process();
                page
            };
            let page: Arc<dyn Fn() -> Page + Send + Sync> = Arc::new(page);
            let most = self.config.metrics.connections;
            let serve = move |stream| metrics::serve(stream, &page);
            let server = Server::start("metrics", sockets, most, serve).map_err(told)?;
            self.servers.push(server);
        }
        Ok(())
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
        if before.rrdcached != now.rrdcached || before.metrics != now.metrics {
            self.servers.drain(..).for_each(|mut server| server.stop());
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

    /// Answers what has come, writes all that is pending, and ends.
    fn end(&mut self) {
        self.servers.drain(..).for_each(|mut server| server.stop());
        self.store.close();
        if let Some(path) = &self.config.pid_file {
            // Somebody else may have removed it.
            let _ = std::fs::remove_file(path);
        }
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
