//! The configuration of the daemon: a TOML file.
//!
//! ```toml
//! data = "/var/lib/kymo"
//!
//! [journal]
//! directory = "/var/lib/kymo-journal"
//!
//! [rrdcached]
//! listen = ["unix:/run/kymo/rrdcached.sock"]
//! ```
//!
//! What is not known is an error, with its line and column.

mod check;
mod collectd;
mod print;
mod read;
mod section;
mod taking;

use std::path::PathBuf;
use std::time::Duration;

use kymo_io::net::Address;
use kymo_machine::Machine;
use kymo_rrd::file::convert::Target;

use crate::expire::ExpireRule;
use crate::listen::Access;
use crate::log::{Level, LogFormat, LogOptions};
use crate::rrdcached::CommandSet;
use crate::store::Timing;
use crate::{journal, query, rrdcached};
pub(crate) use read::NO_TLS;
pub use read::ReadFile;
pub(crate) use section::Section;

/// The configuration of the daemon.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The directory that databases are in; relative paths of clients are below it.
    pub data: PathBuf,
    /// Whether clients may name files outside of it.
    pub anywhere: bool,
    /// The form of new databases.
    pub target: Target,
    /// A file with the number of the process.
    pub pid_file: Option<PathBuf>,
    /// How updates are written.
    pub write: Write,
    /// Where what is acknowledged is written at once.
    pub journal: Option<journal::Options>,
    /// rrdcached's protocol.
    pub rrdcached: Listen,
    /// The same at other sockets, where not all commands may be sent.
    pub rrdcached_sockets: Vec<RrdcachedSocket>,
    /// Whether its clients may replace databases by `CREATE`.
    pub rrdcached_overwrite: bool,
    /// Which messages are written, and how.
    pub log: LogOptions,
    /// The daemon's own metrics, by HTTP.
    pub metrics: Listen,
    /// Queries of Prometheus' HTTP API and Graphite's.
    pub query: query::Options,
    /// collectd's clients, if there are any.
    pub collectd: Option<crate::collectd::Options>,
    /// Metrics of others.
    pub taking: crate::taking::Options,
    /// When databases of series are removed that have stopped: the first rule that is for a series counts.
    pub expire: Vec<ExpireRule>,
}

/// How updates are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// How long they are kept in memory.
    pub timeout: Duration,
    /// Maximum additional time.
    pub jitter: Duration,
    /// How often everything is written, and a new journal is begun.
    pub flush: Duration,
    /// The number of threads.
    pub threads: usize,
    /// How many files each of them keeps open.
    pub open_files: usize,
    /// How many bytes of updates may be kept.
    pub most_pending: usize,
    /// Maximum time that updates may be ahead of this machine's clock; others are refused.
    pub future_limit: Duration,
    /// How long a client may suspend writing of a database.
    pub suspend_limit: Duration,
    /// No databases are created if their disk has fewer bytes free.
    pub least_free: u64,
}

impl Write {
    /// When updates are written.
    pub fn timing(&self) -> Timing {
        Timing {
            write_timeout: self.timeout,
            jitter: self.jitter,
            flush_interval: self.flush,
        }
    }
}

/// Where a protocol is spoken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listen {
    /// The addresses.
    pub addresses: Vec<Address>,
    /// Whether a configuration has said which they are, be it none.
    pub is_set: bool,
    /// Who may connect to sockets of this machine.
    pub access: Access,
    /// How many may be connected.
    pub connections: usize,
    /// Connections on which nothing has come for so long are closed.
    pub idle_timeout: Duration,
    /// A file with the tokens of clients of HTTP, if they must show one.
    pub token_file: Option<PathBuf>,
    /// How connections to ports are encrypted, if they are.
    pub tls: Option<TlsFiles>,
}

/// Files by which connections are encrypted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// Certificates of this side, in PEM; its own is the first.
    pub certificate: PathBuf,
    /// Its private key, in PEM.
    pub key: PathBuf,
    /// Certificates of whom the other side must have one of, in PEM; nobody is asked without.
    pub client_ca: Option<PathBuf>,
}

/// Sockets of rrdcached's protocol where not all commands may be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RrdcachedSocket {
    /// Where.
    pub listen: Listen,
    /// The commands.
    pub commands: CommandSet,
}

impl Listen {
    pub(crate) fn nowhere(mode: u32) -> Self {
        Self {
            addresses: Vec::new(),
            is_set: false,
            access: Access::mode(mode),
            connections: 1000,
            idle_timeout: Duration::from_secs(3600),
            token_file: None,
            tls: None,
        }
    }

    /// The same for HTTP.
    pub(crate) fn nowhere_http() -> Self {
        Self {
            idle_timeout: Duration::from_secs(60),
            ..Self::nowhere(0o660)
        }
    }
}

impl Default for Write {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(300),
            jitter: Duration::ZERO,
            flush: Duration::from_secs(3600),
            threads: 2,
            open_files: 256,
            most_pending: 256 << 20,
            future_limit: Duration::from_secs(86_400),
            suspend_limit: Duration::from_secs(3600),
            least_free: 256 * MIB,
        }
    }
}

const MIB: u64 = 1 << 20;

impl Config {
    /// One for databases in a directory, that listens nowhere.
    pub fn new(data: PathBuf) -> Self {
        Self {
            data,
            anywhere: false,
            target: Target::Native(Machine::native()),
            pid_file: None,
            write: Write::default(),
            journal: None,
            rrdcached: Listen::nowhere(0o660),
            rrdcached_sockets: Vec::new(),
            rrdcached_overwrite: true,
            log: LogOptions::default(),
            metrics: Listen::nowhere(0o660),
            query: query::Options::default(),
            collectd: None,
            taking: crate::taking::Options::default(),
            expire: Vec::new(),
        }
    }

    /// What is spoken at connections, and where.
    pub(crate) fn spoken(&self) -> Vec<(&'static str, &Listen)> {
        let mut spoken = vec![
            ("rrdcached", &self.rrdcached),
            ("metrics", &self.metrics),
            ("query", &self.query.listen),
        ];
        let sockets = self.rrdcached_sockets.iter();
        spoken.extend(sockets.map(|it| ("rrdcached", &it.listen)));
        spoken.extend(self.taking.streams());
        spoken.extend(self.collectd.iter().map(|it| ("unixsock", &it.unixsock)));
        spoken
    }

    /// Whether there is an address for clients, beside that of the metrics.
    pub(crate) fn serves(&self) -> bool {
        let is_asked =
            |(what, listen): (&str, &Listen)| what != "metrics" && !listen.addresses.is_empty();
        let collectd = self.collectd.as_ref();
        self.spoken().into_iter().any(is_asked)
            || collectd.is_some_and(|it| !it.network.listen.is_empty())
            || !self.taking.is_empty()
    }
}
