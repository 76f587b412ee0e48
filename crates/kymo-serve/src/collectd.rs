//! All that collectd's clients can reach: datagrams, the text protocol, and what becomes of values.

use std::io;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kymo_collectd::TypesDb;
use kymo_io::reason;
use kymo_time::CdTime;

use crate::config;
use crate::daemon::Source;
use crate::expire::ExpiredPaths;
use crate::forward::{self, Forwarder};
use crate::ingest::{self, Databases, Ingest};
use crate::listen::{Server, Socket};
use crate::log::Level;
use crate::metrics::{MOST_SENDERS, Page};
use crate::network::{self, Receiver};
use crate::store::{Log, LogOf, Store};
use crate::{csv, plain};

/// The default path of collectd's types.
pub const TYPES_DB: &str = "/usr/share/collectd/types.db";
/// The time from one list to the next, if neither sender nor configuration specifies it.
pub const INTERVAL: u64 = 10;

/// What collectd's clients are offered, and what becomes of their values.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Files with the types of values. By default, that of collectd if there is one; where there is none,
    /// the types on the wire decide.
    pub types_db: Vec<PathBuf>,
    /// The time from one list to the next, if senders do not specify it.
    pub interval: CdTime,
    /// The name of this machine, for lists without a host; by default, that of the system.
    pub host: Option<String>,
    /// How many names may be known at a time.
    pub most_series: usize,
    /// How many of them may have come from one sender of datagrams.
    pub most_series_per_sender: usize,
    /// How many bytes the new databases of one sender may have.
    pub most_bytes_per_sender: u64,
    /// Databases, if there are any.
    pub databases: Option<Databases>,
    /// Files of comma-separated values, if there are any.
    pub csv: Option<csv::Options>,
    /// Datagrams.
    pub network: network::Options,
    /// The text protocol.
    pub unixsock: config::Listen,
    /// What is sent on.
    pub forward: forward::Options,
    /// What a `collectd.conf` says that is not followed, to be reported.
    pub ignored: Vec<String>,
}

impl Default for Options {
    /// Databases below the directory of the store, and no senders.
    fn default() -> Self {
        Self {
            types_db: Vec::new(),
            interval: CdTime::from_ticks(INTERVAL * CdTime::TICKS_PER_SECOND),
            host: None,
            most_series: 1_000_000,
            most_series_per_sender: 100_000,
            most_bytes_per_sender: 64 << 30,
            databases: Some(Databases::default()),
            csv: None,
            network: network::Options::default(),
            unixsock: config::Listen::nowhere(0o770),
            forward: forward::Options::default(),
            ignored: Vec::new(),
        }
    }
}

/// What serves collectd's clients.
#[derive(Debug)]
pub struct Collectd {
    options: Mutex<Options>,
    ingest: Arc<Ingest>,
    receiver: Receiver,
    server: Server,
    counters: Arc<plain::AllCounters>,
    log: LogOf,
}

/// What is to be as other options say. Nothing has changed as long as it is not [taken](Collectd::take).
#[derive(Debug)]
pub struct Plan {
    options: Options,
    ingest: ingest::Options,
    receiver: network::Plan,
}

impl Collectd {
    /// Begins to serve, also clients at sockets for the text protocol, and what comes at sockets for datagrams
    /// that were bound elsewhere.
    ///
    /// # Errors
    ///
    /// Why it cannot, as a message.
    pub fn start(
        options: &Options,
        sockets: &[Arc<Socket>],
        handed: Vec<UdpSocket>,
        store: &Arc<Store>,
        log: &Log,
    ) -> Result<Self, String> {
        let reported = |error: io::Error| error.to_string();
        let forwarder = Forwarder::start(&options.forward, log).map_err(reported)?;
        let ingest = lists(options, types(&options.types_db)?, forwarder);
        report(options, &ingest, log);
        let ingest = Ingest::start(ingest, Arc::clone(store), Arc::clone(log)).map_err(reported)?;
        ingest.set_idle_timeout(options.unixsock.idle_timeout);
        let counters = Arc::default();
        let most = options.unixsock.connections;
        let begun = Receiver::start_with(&options.network, handed, &ingest, log)
            .map_err(reported)
            .and_then(|receiver| {
                let server = plain::serve(sockets, most, &ingest, &counters);
                Ok((receiver, server.map_err(|error| reason(&error))?))
            });
        let (receiver, server) = begun.inspect_err(|_| ingest.close())?;
        Ok(Self {
            options: Mutex::new(options.clone()),
            ingest,
            receiver,
            server,
            counters,
            log: LogOf(Arc::clone(log)),
        })
    }

    /// Where clients of the text protocol come.
    pub fn server(&self) -> &Server {
        &self.server
    }

    fn options(&self) -> MutexGuard<'_, Options> {
        self.options.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Prepares that it serves as other options say. Types are read again; where their files are the same
    /// and now wrong, that is reported, and the types before hold on.
    ///
    /// # Errors
    ///
    /// Why it cannot, as a message.
    pub fn plan(&self, options: &Options) -> Result<Plan, String> {
        let reported = |error: io::Error| error.to_string();
        let (before, log) = (self.options(), &self.log.0);
        let now = self.ingest.options();
        let types = match types(&options.types_db) {
            Err(problem) if before.types_db == options.types_db => {
                log(
                    Level::Warning,
                    &format!("{problem}; the types before hold on"),
                );
                now.types.clone()
            }
            types => types?,
        };
        let forwarder = match &now.forwarder {
            Some(forwarder) if before.forward == options.forward => Arc::clone(forwarder),
            Some(forwarder) => forwarder
                .successor(&options.forward, log)
                .map_err(reported)?,
            None => Forwarder::start(&options.forward, log).map_err(reported)?,
        };
        let ingest = lists(options, types, forwarder);
        ingest.check(self.ingest.store()).map_err(reported)?;
        let receiver = self
            .receiver
            .plan(&options.network, log)
            .map_err(reported)?;
        Ok(Plan {
            options: options.clone(),
            ingest,
            receiver,
        })
    }

    /// Serves as was planned: what is known and what has come stays, and so do connections.
    pub fn take(&self, plan: Plan) {
        let mut options = self.options();
        if *options != plan.options {
            report(&plan.options, &plan.ingest, &self.log.0);
        }
        let before = self.ingest.options();
        let is_followed = |it: &Arc<Forwarder>| {
            let now = plan.ingest.forwarder.as_ref();
            !now.is_some_and(|now| Arc::ptr_eq(it, now))
        };
        let followed = before.forwarder.as_ref().filter(|it| is_followed(it));
        let followed = followed.cloned();
        self.ingest
            .set_idle_timeout(plan.options.unixsock.idle_timeout);
        self.ingest.change(plan.ingest);
        if let Some(forwarder) = followed {
            forwarder.close();
        }
        self.receiver.take(plan.receiver);
        if let Err(problem) = self.receiver.reload() {
            (self.log.0)(
                Level::Warning,
                &format!("{problem}; the passwords before hold on"),
            );
        }
        *options = plan.options;
    }
}

/// What becomes of lists.
fn lists(options: &Options, types: Option<TypesDb>, forwarder: Arc<Forwarder>) -> ingest::Options {
    ingest::Options {
        types,
        interval: options.interval,
        host: options.host.clone().unwrap_or_else(host),
        databases: options.databases.clone(),
        csv: options.csv.clone(),
        most_series: options.most_series,
        most_series_per_sender: options.most_series_per_sender,
        most_bytes_per_sender: options.most_bytes_per_sender,
        forwarder: Some(forwarder),
    }
}

/// Warns of settings that may not be as intended.
fn report(options: &Options, ingest: &ingest::Options, log: &Log) {
    let ignored = options.ignored.iter();
    ignored.for_each(|line| log(Level::Warning, line));
    let sends_on = !options.forward.servers.is_empty();
    if ingest.databases.is_none() && ingest.csv.is_none() && !sends_on {
        log(
            Level::Warning,
            "values are kept nowhere: there are neither databases nor files of CSV",
        );
    }
    if ingest.types.is_none() {
        log(
            Level::Info,
            "there is no types.db: the types on the wire decide, and PUTVAL knows no type",
        );
    }
}

impl Source for Collectd {
    fn metrics(&self, page: &mut Page) {
        count(page, &self.ingest);
        self.receiver.metrics(page);
        if let Some(forwarder) = &self.ingest.options().forwarder {
            forwarder.metrics(page);
        }
        let counters = &self.counters.0;
        self.server.each_listener(|listener| {
            counters.of(listener);
        });
        let help = "Lines of collectd's text protocol.";
        counters.counter(page, "unixsock_commands_total", help, |it| &it.commands);
        let help = "Lines replied to with an error.";
        counters.counter(page, "unixsock_errors_total", help, |it| &it.errors);
        page.connections("unixsock", self.server.connections());
    }

    fn expired(&self, paths: &ExpiredPaths) {
        self.ingest.expired(paths);
    }

    fn flush(&self) {
        // It reports what it cannot write.
        let _ = self.ingest.flush(None);
    }

    fn stop(&self) {
        self.receiver.stop();
        self.server.stop();
        // Nothing is handed to it any longer.
        if let Some(forwarder) = &self.ingest.options().forwarder {
            forwarder.close();
        }
        self.ingest.close();
    }
}

fn count(page: &mut Page, ingest: &Ingest) {
    let counters = &ingest.counters;
    for (name, help, counter) in [
        ("lists_total", "Lists of values taken.", &counters.lists),
        ("values_total", "Values in them.", &counters.values),
        (
            "lists_wrong_type_total",
            "Lists not of their type.",
            &counters.wrong_type,
        ),
        (
            "lists_dropped_total",
            "Lists that could not be kept.",
            &counters.dropped,
        ),
        (
            "lists_past_total",
            "Lists not after the last of their name.",
            &counters.past,
        ),
        (
            "databases_created_total",
            "Databases made.",
            &counters.created,
        ),
        (
            "csv_lost_total",
            "Times lines of comma-separated values were lost.",
            &counters.lines_lost,
        ),
        (
            "notifications_total",
            "Messages of collectd.",
            &counters.notifications,
        ),
    ] {
        page.counter(name, help, counter.load(Relaxed));
    }
    page.gauge("series", "Names that are known.", ingest.known());
    page.senders("collectd", &ingest.largest_senders(MOST_SENDERS));
    page.gauge(
        "databases_waiting",
        "Names whose databases are not yet created.",
        ingest.waiting_for_databases(),
    );
}

/// The types of all files; later ones replace those of the same name.
pub(crate) fn types(paths: &[PathBuf]) -> Result<Option<TypesDb>, String> {
    let usual = [PathBuf::from(TYPES_DB)];
    let paths = match paths.is_empty() {
        true if Path::new(TYPES_DB).exists() => &usual[..],
        true => return Ok(None),
        false => paths,
    };
    let mut types = TypesDb::default();
    for path in paths {
        let shown = path.display();
        let text = kymo_io::read_small_text(path);
        let text = text.map_err(|error| format!("`{shown}`: {}", reason(&error)))?;
        types
            .add(&text)
            .map_err(|error| format!("`{shown}`: {error}"))?;
    }
    Ok(Some(types))
}

/// The name of this machine.
fn host() -> String {
    let name = nix::unistd::gethostname().ok();
    let name = name.and_then(|name| name.into_string().ok());
    name.filter(|name| !name.is_empty())
        .unwrap_or_else(|| "localhost".to_string())
}
