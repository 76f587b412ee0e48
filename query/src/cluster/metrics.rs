//! Metrics of a scheduler by HTTP, as Prometheus reads them.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use super::pool::Pool;

/// A request is not longer.
const LONGEST_REQUEST: usize = 8 << 10;
/// Who asks has so long to do it, and to read the answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// What a scheduler counts.
#[derive(Debug, Default)]
pub(super) struct Metrics {
    pub(super) queries: AtomicU64,
    pub(super) failed_queries: AtomicU64,
    pub(super) query_micros: AtomicU64,
    pub(super) units_done: AtomicU64,
    /// Units whose worker disappeared, or could not read the recordings.
    pub(super) units_lost: AtomicU64,
    pub(super) units_failed: AtomicU64,
    pub(super) answer_bytes: AtomicU64,
    pub(super) refused: AtomicU64,
}

/// Counts one more.
pub(super) fn add(to: &AtomicU64, count: u64) {
    to.fetch_add(count, Relaxed);
}

/// All metrics as text.
fn page(pool: &Pool) -> String {
    let mut page = String::new();
    let metrics = &pool.metrics;
    let state = pool.state();
    let seconds = metrics.query_micros.load(Relaxed) as f64 / 1e6;
    let rows: [(&str, &str, &str, f64); 13] = [
        (
            "workers",
            "Workers that are connected.",
            "gauge",
            state.workers as f64,
        ),
        (
            "worker_threads",
            "Threads of workers that are connected.",
            "gauge",
            state.threads as f64,
        ),
        (
            "units_waiting",
            "Units of work that wait for a worker.",
            "gauge",
            state.waiting as f64,
        ),
        (
            "units_running",
            "Units of work that workers do.",
            "gauge",
            state.running as f64,
        ),
        (
            "queries_total",
            "Queries that ended.",
            "counter",
            metrics.queries.load(Relaxed) as f64,
        ),
        (
            "queries_failed_total",
            "Queries that failed.",
            "counter",
            metrics.failed_queries.load(Relaxed) as f64,
        ),
        (
            "query_seconds_total",
            "Time that queries took.",
            "counter",
            seconds,
        ),
        (
            "units_done_total",
            "Units of work that were done.",
            "counter",
            metrics.units_done.load(Relaxed) as f64,
        ),
        (
            "units_lost_total",
            "Units of work that were lost with a worker or that it could not read, and were given to another one.",
            "counter",
            metrics.units_lost.load(Relaxed) as f64,
        ),
        (
            "units_failed_total",
            "Units of work that failed for good.",
            "counter",
            metrics.units_failed.load(Relaxed) as f64,
        ),
        (
            "answer_bytes_total",
            "Bytes of answers of workers.",
            "counter",
            metrics.answer_bytes.load(Relaxed) as f64,
        ),
        (
            "connections_refused_total",
            "Connections without the token, or of another version.",
            "counter",
            metrics.refused.load(Relaxed) as f64,
        ),
        (
            "scheduler_cpu_seconds_total",
            "Processor time of the scheduler.",
            "counter",
            cpu_seconds(),
        ),
    ];
    for (name, help, kind, value) in rows {
        // Writing to a text cannot fail.
        let _ = writeln!(
            page,
            "# HELP kymo_cluster_{name} {help}\n# TYPE kymo_cluster_{name} {kind}\nkymo_cluster_{name} {value}"
        );
    }
    page
}

fn cpu_seconds() -> f64 {
    let (user, system) = kymo_io::cpu_times();
    (user + system).as_secs_f64()
}

/// Answers requests for `/metrics`, and for `/-/ready`, which is good as long as there is a worker.
pub(super) async fn serve(listener: TcpListener, pool: Arc<Pool>) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let pool = Arc::clone(&pool);
                // Whoever hinders an answer gets none.
                tokio::spawn(async move { timeout(PATIENCE, answer(stream, &pool)).await });
            }
            // Too many open files, for example: some will be closed.
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

async fn answer(mut stream: TcpStream, pool: &Pool) -> std::io::Result<()> {
    let mut request = Vec::new();
    while !request.windows(4).any(|window| window == b"\r\n\r\n") {
        let mut part = [0; 1024];
        let length = stream.read(&mut part).await?;
        if length == 0 || request.len() + length > LONGEST_REQUEST {
            return Ok(());
        }
        request.extend_from_slice(&part[..length]);
    }
    let line = request
        .split(|&byte| byte == b'\r')
        .next()
        .unwrap_or_default();
    let words: Vec<_> = line.split(|&byte| byte == b' ').collect();
    let (status, text) = match words[..] {
        [b"GET", b"/metrics", ..] => (200, page(pool)),
        [b"GET", b"/-/ready", ..] if pool.state().workers > 0 => (200, "ready\n".to_owned()),
        [b"GET", b"/-/ready", ..] => (503, "no worker is connected\n".to_owned()),
        [b"GET", ..] => (404, "only /metrics and /-/ready are here\n".to_owned()),
        _ => (405, "only GET is supported\n".to_owned()),
    };
    let kind = [("Content-Type", "text/plain; version=0.0.4")];
    let head = kymo_io::net::response_head(status, &kind, text.len(), false);
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(text.as_bytes()).await?;
    stream.shutdown().await
}
