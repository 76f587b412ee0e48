//! What collectd sends, to a daemon that runs: datagrams, lines, databases and files.
#![cfg(unix)]

mod bounds;
mod forward;
mod malformed;
mod packets;
mod reload;
mod unixsock;

use std::net::{SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use kymo_collectd::TypesDb;
use kymo_collectd::network::Security;
use kymo_serve::definitions::Definitions;
use kymo_serve::forward::Forwarder;
use kymo_serve::ingest::{Databases, Ingest, Options};
use kymo_serve::network::{self, Listen, Receiver};
use kymo_serve::store::{self, Log, Store, Timing};
use kymo_serve::{csv, journal};
use kymo_time::CdTime;
use tempfile::TempDir;

/// A daemon without its configuration.
struct Daemon {
    directory: TempDir,
    ingest: Arc<Ingest>,
}

fn silent() -> Log {
    Arc::new(|_, _| {})
}

impl Daemon {
    fn new(types: Option<&str>) -> Self {
        let directory = TempDir::new().unwrap();
        let ingest = start(directory.path(), types);
        Self { directory, ingest }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.directory.path().join(path)
    }

    /// Receives datagrams at a port of its own.
    fn receive(&self, level: Security, auth: bool) -> (Receiver, SocketAddr) {
        let auth_file = auth.then(|| self.path("auth"));
        std::fs::write(self.path("auth"), "alice: s3cret pass\nbob: hunter2\n").unwrap();
        let options = network::Options {
            listen: vec![Listen {
                host: "127.0.0.1".to_string(),
                port: 0,
                level,
                auth_file,
                interface: None,
                replay_window: None,
            }],
            workers: 2,
            ..network::Options::default()
        };
        let receiver = Receiver::start(&options, &self.ingest, &silent()).unwrap();
        let address = receiver.addresses()[0];
        (receiver, address)
    }

    /// Ends it: all is in files then.
    fn close(&self) {
        self.ingest.close();
        self.ingest.store().close();
    }
}

fn start(directory: &Path, types: Option<&str>) -> Arc<Ingest> {
    start_with(directory, types, None)
}

fn start_with(
    directory: &Path,
    types: Option<&str>,
    forwarder: Option<Arc<Forwarder>>,
) -> Arc<Ingest> {
    let log = silent();
    let store = Store::open(store::Options {
        timing: Timing {
            write_timeout: Duration::from_secs(3600),
            jitter: Duration::ZERO,
            flush_interval: Duration::from_secs(3600),
        },
        writers: 2,
        open_files: 100,
        most_pending: 1 << 24,
        // Times of any year are decoded here.
        future_limit: Duration::MAX,
        journal: Some(journal::Options {
            most_bytes: 1 << 24,
            ..journal::Options::new(directory.join("journal"))
        }),
        ..store::Options::new(directory.join("data"), Arc::clone(&log))
    })
    .unwrap();
    let options = Options {
        types: types.map(|text| TypesDb::parse(text).unwrap()),
        interval: CdTime::from_seconds(10).unwrap(),
        host: "host.example".to_string(),
        databases: Some(Databases {
            directory: "rrd".into(),
            definitions: Definitions::default(),
        }),
        csv: Some(csv::Options {
            directory: directory.join("csv"),
            rates: false,
        }),
        most_series: 1000,
        most_series_per_sender: 1000,
        most_bytes_per_sender: u64::MAX,
        forwarder,
    };
    Ingest::start(options, store, log).unwrap()
}

fn data(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../kymo-collectd/tests/data")
        .join(path)
}

fn documentation(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs")
        .join(path);
    std::fs::read_to_string(path).unwrap()
}

fn send(to: SocketAddr, datagram: &[u8]) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.send_to(datagram, to).unwrap();
}

/// Waits until something has been counted.
fn await_count(counter: &AtomicU64, expected: u64) {
    await_number(|| counter.load(Relaxed), expected);
}

/// Waits until a receiver has counted something at all of its addresses together.
fn await_received(receiver: &Receiver, count: fn(&network::Counters) -> u64, expected: u64) {
    await_number(|| receiver.count(count), expected);
}

fn await_number(found: impl Fn() -> u64, expected: u64) {
    let end = Instant::now() + Duration::from_secs(20);
    while found() < expected {
        assert!(Instant::now() < end, "{} of {expected}", found());
        std::thread::sleep(Duration::from_millis(2));
    }
}
