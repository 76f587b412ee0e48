//! Reading: Prometheus' HTTP API and Graphite's, over all databases and what waits in memory.
//!
//! * `prometheus`, `graphite`: what requests ask; `status`: what the server says of itself;
//! * [`naming`]: what series are called; `catalog`: which there are;
//! * `databases`: their samples, of the archive that `archives` chooses; `deadline`: until when;
//! * `files`: databases as files, for `kymo view` on other machines.
//!
//! Nothing here changes a database, no writer waits for it, and what updates need of the processors they have first.

mod archives;
pub(crate) mod catalog;
mod databases;
mod deadline;
mod files;
mod graphite;
pub mod naming;
mod prometheus;
mod status;

use std::io;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::config::Listen;
use crate::daemon;
use crate::http::{self, Client, HttpAnswer, HttpRequest, Limits, Method};
use crate::listen::{Server, Socket};
use crate::metrics::Page;
use crate::store::{Log, Store};
use crate::sync::{lock, wait_until};
use catalog::Catalog;
use deadline::Deadline;

/// How much lower the priority of queries is than that of updates, of 19 at most.
#[cfg(target_os = "linux")]
const NICE: i32 = 10;

/// Where queries are answered, and what they may take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Where.
    pub listen: Listen,
    /// How long a query may take.
    pub timeout: Duration,
    /// How many are computed at the same time; others wait. With 0, as many as this machine has processors, but two at
    /// least, so that a slow one does not hold up all others.
    pub concurrent: usize,
    /// How many samples one may read, and values compute.
    pub most_samples: usize,
    /// How many values of a series an answer may have.
    pub most_points: usize,
    /// How long an answer may be, in bytes.
    pub most_answer: usize,
    /// How often databases are looked for.
    pub refresh: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            listen: Listen::nowhere_http(),
            timeout: Duration::from_secs(120),
            concurrent: 0,
            most_samples: 10_000_000,
            most_points: 11_000,
            most_answer: 64 << 20,
            refresh: Duration::from_secs(10),
        }
    }
}

impl Options {
    /// How many queries are computed at the same time.
    pub(crate) fn computed_at_once(&self) -> usize {
        match self.concurrent {
            0 => std::thread::available_parallelism().map_or(2, |count| count.get().max(2)),
            count => count,
        }
    }

    /// Whether queries may take the same as others.
    pub(crate) fn has_same_limits(&self, other: &Self) -> bool {
        let listen = other.listen.clone();
        let same = Self {
            listen,
            ..self.clone()
        };
        same == *other
    }
}

/// What queries are answered from.
pub(crate) struct Queries {
    pub(crate) store: Arc<Store>,
    pub(crate) catalog: Catalog,
    pub(crate) options: Options,
    /// How many more may be computed now.
    free: Mutex<usize>,
    changed: Condvar,
    counters: Counters,
}

/// What has been done.
#[derive(Debug, Default)]
struct Counters {
    requests: AtomicU64,
    failed: AtomicU64,
    times: crate::metrics::Histogram,
}

impl Queries {
    pub(crate) fn new(store: &Arc<Store>, options: Options) -> Self {
        Self {
            catalog: Catalog::new(store, options.refresh),
            store: Arc::clone(store),
            free: Mutex::new(options.computed_at_once()),
            options,
            changed: Condvar::new(),
            counters: Counters::default(),
        }
    }

    /// Answers a request.
    pub(crate) fn answer(&self, mut request: HttpRequest, client: &dyn Client) -> HttpAnswer {
        self.counters.requests.fetch_add(1, Relaxed);
        let begun = Instant::now();
        let answer = match (request.method, request.read_form()) {
            (Method::Other, _) => HttpAnswer::text(405, "only GET, HEAD and POST are supported\n"),
            (_, Ok(())) => self.route(&request, client),
            (_, Err(status)) => HttpAnswer::text(status, "the body is not a form\n"),
        };
        self.counters.times.add(begun.elapsed());
        if answer.status >= 400 {
            self.counters.failed.fetch_add(1, Relaxed);
        }
        answer
    }

    fn route(&self, request: &HttpRequest, client: &dyn Client) -> HttpAnswer {
        let path = request.path.trim_end_matches('/');
        if let Some(name) = path.strip_prefix("/api/v1/") {
            return prometheus::answer(self, name, request, client);
        }
        match path {
            "/-/ready" | "/-/healthy" => HttpAnswer::text(200, "kymo serve is ready\n"),
            _ => files::answer(self, path, request, client)
                .or_else(|| graphite::answer(self, path, request, client))
                .unwrap_or_else(|| {
                    HttpAnswer::text(
                        404,
                        "expected /api/v1/... of Prometheus, /metrics/find or /render of Graphite, or /databases\n",
                    )
                }),
        }
    }

    /// Waits until a query can be computed. `None` if its time is over or its client is gone by then.
    pub(crate) fn turn(&self, deadline: Deadline<'_>) -> Option<Turn<'_>> {
        let mut free = lock(&self.free);
        while *free == 0 {
            free = wait_until(&self.changed, free, deadline.end)?;
        }
        *free -= 1;
        drop(free);
        let turn = Turn(self);
        (!deadline.is_over()).then_some(turn)
    }
}

/// That a query is computed.
pub(crate) struct Turn<'q>(&'q Queries);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        *lock(&self.0.free) += 1;
        self.0.changed.notify_one();
    }
}

/// Has the calling thread run where others of this machine need no processor. Elsewhere than on Linux, priorities are
/// those of whole processes.
fn lower_priority() {
    // Without it, queries are as fast and updates slower.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::nice(NICE);
}

/// Seconds and milliseconds of this machine's clock: milliseconds since 1970.
pub(crate) fn now() -> i64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// The sockets of queries and their connections.
pub struct Source {
    queries: Arc<Queries>,
    /// How clients are held to tokens and time-outs, by the latest configuration.
    listen: Arc<Mutex<Listen>>,
    pub(crate) server: Server,
}

impl Source {
    /// Answers at these sockets.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub fn start(
        store: &Arc<Store>,
        options: &Options,
        sockets: &[Arc<Socket>],
        log: &Log,
    ) -> io::Result<Self> {
        let queries = Arc::new(Queries::new(store, options.clone()));
        let answering = Arc::clone(&queries);
        let most = options.listen.connections;
        let listen = Arc::new(Mutex::new(options.listen.clone()));
        let latest = Arc::clone(&listen);
        let server = Server::start("query", sockets, most, log, move |stream| {
            let limits = Limits {
                idle: lock(&latest).idle_timeout,
                ..Limits::default()
            };
            let token_file = || lock(&latest).token_file.clone();
            // Updates come first.
            lower_priority();
            http::serve(stream, &limits, &token_file, &mut |request, client| {
                answering.answer(request, client)
            });
        })?;
        Ok(Self {
            queries,
            listen,
            server,
        })
    }

    /// Holds clients to the tokens and the time-outs of another configuration from now on.
    pub(crate) fn set_listen(&self, listen: &Listen) {
        *lock(&self.listen) = listen.clone();
    }
}

impl daemon::Source for Source {
    fn metrics(&self, page: &mut Page) {
        let counters = &self.queries.counters;
        let requests = counters.requests.load(Relaxed);
        page.counter("query_requests_total", "Requests of queries.", requests);
        let failed = counters.failed.load(Relaxed);
        page.counter("query_failures_total", "Requests that failed.", failed);
        let help = "How long requests of queries took.";
        page.histogram("query_seconds", help, &counters.times);
        page.connections("query", self.server.connections());
        if let Some(series) = self.queries.catalog.known() {
            page.gauge("query_series", "Series that are known.", series.all().len());
            page.gauge(
                "query_unreadable_files",
                "Databases that cannot be read, such as damaged ones.",
                series.unreadable,
            );
        }
    }

    fn stop(&self) {
        self.server.stop();
    }
}
