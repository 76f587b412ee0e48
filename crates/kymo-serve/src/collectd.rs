//! All that collectd's clients can reach: datagrams, the text protocol, and what becomes of values.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use kymo_collectd::TypesDb;
use kymo_rrdtool::reason;
use kymo_time::CdTime;

use crate::config;
use crate::daemon::Source;
use crate::ingest::{self, Databases, Ingest};
use crate::listen::{Server, Socket};
use crate::metrics::Page;
use crate::network::{self, Receiver};
use crate::store::{Log, Store};
use crate::{csv, plain};

/// Where collectd's types are unless told otherwise.
pub const TYPES_DB: &str = "/usr/share/collectd/types.db";
/// From one list to the next, where neither sender nor configuration tells.
pub const INTERVAL: u64 = 10;

/// What collectd's clients are offered, and what becomes of their values.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Files with the types of values. Unless told, that of collectd if there is one; where there is none,
    /// the types on the wire decide.
    pub types_db: Vec<PathBuf>,
    /// From one list to the next, where senders do not tell.
    pub interval: CdTime,
    /// The name of this machine, for lists without a host; that of the system unless told.
    pub host: Option<String>,
    /// How many names may be known at a time.
    pub most_series: usize,
    /// Databases, if there are any.
    pub databases: Option<Databases>,
    /// Files of comma-separated values, if there are any.
    pub csv: Option<csv::Options>,
    /// Datagrams.
    pub network: network::Options,
    /// The text protocol.
    pub unixsock: config::Listen,
    /// What a `collectd.conf` says that is not followed, to be told.
    pub ignored: Vec<String>,
}

impl Default for Options {
    /// Databases below the directory of the store, and nobody who could send anything.
    fn default() -> Self {
        Self {
            types_db: Vec::new(),
            interval: CdTime::from_ticks(INTERVAL * CdTime::TICKS_PER_SECOND),
            host: None,
            most_series: 1_000_000,
            databases: Some(Databases::default()),
            csv: None,
            network: network::Options::default(),
            unixsock: config::Listen::nowhere(0o770),
            ignored: Vec::new(),
        }
    }
}

/// What serves collectd's clients.
#[derive(Debug)]
pub struct Collectd {
    ingest: Arc<Ingest>,
    receiver: Receiver,
    server: Option<Server>,
    counters: Arc<plain::Counters>,
}

impl Collectd {
    /// Begins to serve, also clients at sockets for the text protocol.
    ///
    /// # Errors
    ///
    /// Why it cannot, as a message.
    pub fn start(
        options: &Options,
        sockets: Vec<Socket>,
        store: &Arc<Store>,
        log: &Log,
    ) -> Result<Self, String> {
        let told = |error: io::Error| reason(&error);
        let ingest = ingest::Options {
            types: types(&options.types_db)?,
            interval: options.interval,
            host: options.host.clone().unwrap_or_else(host),
            databases: options.databases.clone(),
            csv: options.csv.clone(),
            most_series: options.most_series,
        };
        options
            .ignored
            .iter()
            .for_each(|line| log(&format!("warning: {line}")));
        if ingest.databases.is_none() && ingest.csv.is_none() {
            log("warning: values are kept nowhere: there are neither databases nor files of CSV");
        }
        if ingest.types.is_none() {
            log("there is no types.db: the types on the wire decide, and PUTVAL knows no type");
        }
        let ingest = Ingest::start(ingest, Arc::clone(store), Arc::clone(log));
        let ingest = ingest.map_err(|error| error.to_string())?;
        let receiver = Receiver::start(&options.network, &ingest, log);
        let receiver = receiver.map_err(|error| {
            ingest.close();
            error.to_string()
        })?;
        for address in receiver.addresses() {
            log(&format!("collectd's datagrams at {address}"));
        }
        let counters = Arc::<plain::Counters>::default();
        let server = match sockets.is_empty() {
            true => None,
            false => {
                let most = options.unixsock.connections;
                Some(plain::serve(sockets, most, &ingest, &counters).map_err(told)?)
            }
        };
        Ok(Self {
            ingest,
            receiver,
            server,
            counters,
        })
    }
}

impl Source for Collectd {
    fn metrics(&self, page: &mut Page) {
        lists(page, &self.ingest);
        self.receiver.metrics(page);
        let counters = &self.counters;
        for (name, help, counter) in [
            (
                "commands",
                "Lines of collectd's text protocol.",
                &counters.commands,
            ),
            (
                "errors",
                "Lines replied to with an error.",
                &counters.errors,
            ),
        ] {
            let name = format!("unixsock_{name}_total");
            page.counter(&name, help, counter.load(Relaxed));
        }
        if let Some(server) = &self.server {
            page.connections("unixsock", server.connections());
        }
    }

    fn reload(&self) -> Result<(), String> {
        self.receiver.reload()
    }

    fn flush(&self) {
        // It tells what it cannot write.
        let _ = self.ingest.flush(None);
    }

    fn stop(&mut self) {
        self.receiver.stop();
        if let Some(server) = &mut self.server {
            server.stop();
        }
        self.ingest.close();
    }
}

fn lists(page: &mut Page, ingest: &Ingest) {
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
}

/// The types of all files; later ones replace those of the same name.
fn types(paths: &[PathBuf]) -> Result<Option<TypesDb>, String> {
    let usual = [PathBuf::from(TYPES_DB)];
    let paths = match paths.is_empty() {
        true if Path::new(TYPES_DB).exists() => &usual[..],
        true => return Ok(None),
        false => paths,
    };
    let mut types = TypesDb::default();
    for path in paths {
        let shown = path.display();
        let text = std::fs::read_to_string(path);
        let text = text.map_err(|error| format!("'{shown}': {}", reason(&error)))?;
        types
            .add(&text)
            .map_err(|error| format!("'{shown}': {error}"))?;
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
