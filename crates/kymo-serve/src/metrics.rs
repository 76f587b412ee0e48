//! What the daemon reports about itself: the text format of Prometheus, by HTTP.

use std::fmt::{Display, Write as _};
use std::io::{self, Read, Write};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use kymo_io::net::response_head;
use kymo_text::visible;
use nix::sys::resource::{Resource, UsageWho, getrlimit, getrusage};
use nix::sys::time::TimeVal;

use crate::listen::{ConnectionCounters, Connections, Stream, TimedStream};
use crate::store::Store;

/// A request is not longer than this.
const LONGEST_REQUEST: usize = 8 << 10;
/// Who asks has so long to do it, and to read the answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// No metric has values for more paths.
const MOST_LABELS: usize = 100;

/// Of so many senders, those that have brought the most.
pub(crate) const MOST_SENDERS: usize = 100;

/// Counts durations by their length.
#[derive(Debug, Default)]
pub struct Histogram {
    /// Of each [bound](BOUNDS), how many are at most so long, and longer than the bound before; then those beyond.
    counts: [AtomicU64; BOUNDS.len() + 1],
    nanos: AtomicU64,
}

/// Bounds of durations, in seconds.
const BOUNDS: [f64; 8] = [0.000_1, 0.001, 0.01, 0.1, 0.5, 1.0, 5.0, 30.0];

impl Histogram {
    /// Counts a duration.
    pub fn add(&self, duration: Duration) {
        let seconds = duration.as_secs_f64();
        let place = BOUNDS.partition_point(|bound| *bound < seconds);
        self.counts[place].fetch_add(1, Relaxed);
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        self.nanos.fetch_add(nanos, Relaxed);
    }
}

/// Labels with their values.
pub(crate) type Labels = Vec<(&'static str, String)>;

/// Metrics in the making.
#[derive(Debug, Default)]
pub struct Page(String);

impl Page {
    /// Adds what only grows; the name ends in `_total`.
    pub fn counter(&mut self, name: &str, help: &str, value: impl Display) {
        self.add(&format!("kymo_{name}"), help, "counter", value);
    }

    /// Adds what may also shrink.
    pub fn gauge(&mut self, name: &str, help: &str, value: impl Display) {
        self.add(&format!("kymo_{name}"), help, "gauge", value);
    }

    /// Adds a histogram of seconds.
    pub fn histogram(&mut self, name: &str, help: &str, histogram: &Histogram) {
        // Writing to a text cannot fail.
        let _ = writeln!(
            self.0,
            "# HELP kymo_{name} {help}\n# TYPE kymo_{name} histogram"
        );
        let mut sum = 0;
        for (place, count) in histogram.counts.iter().enumerate() {
            sum += count.load(Relaxed);
            let bound = BOUNDS.get(place).map_or("+Inf".to_owned(), f64::to_string);
            let _ = writeln!(self.0, "kymo_{name}_bucket{{le=\"{bound}\"}} {sum}");
        }
        let seconds = histogram.nanos.load(Relaxed) as f64 / 1e9;
        let _ = writeln!(self.0, "kymo_{name}_sum {seconds}\nkymo_{name}_count {sum}");
    }

    /// Adds what only grows, with labels for each value.
    pub fn labelled(
        &mut self,
        name: &str,
        help: &str,
        values: &[(Vec<(&'static str, String)>, u64)],
    ) {
        self.add_labelled(name, help, "counter", values);
    }

    /// Adds what may also shrink, with labels for each value.
    pub(crate) fn labelled_gauge(&mut self, name: &str, help: &str, values: &[(Labels, u64)]) {
        self.add_labelled(name, help, "gauge", values);
    }

    /// Adds what each sender has brought; `prefix` begins the names.
    pub(crate) fn senders(&mut self, prefix: &str, senders: &[(IpAddr, usize, u64)]) {
        if senders.is_empty() {
            return;
        }
        let label = |sender: &IpAddr| vec![("sender", sender.to_string())];
        let each = |value: fn(&(IpAddr, usize, u64)) -> u64| -> Vec<_> {
            let senders = senders.iter();
            senders.map(|it| (label(&it.0), value(it))).collect()
        };
        self.labelled_gauge(
            &format!("{prefix}_sender_series"),
            "Series that are known, of the senders with the most.",
            &each(|it| it.1 as u64),
        );
        self.labelled_gauge(
            &format!("{prefix}_sender_database_bytes"),
            "Bytes of the databases created for these senders.",
            &each(|it| it.2),
        );
    }

    fn add_labelled(&mut self, name: &str, help: &str, kind: &str, values: &[(Labels, u64)]) {
        // Writing to a text cannot fail.
        let _ = writeln!(
            self.0,
            "# HELP kymo_{name} {help}\n# TYPE kymo_{name} {kind}"
        );
        for (labels, value) in values {
            let _ = write!(self.0, "kymo_{name}");
            let mut separator = '{';
            for (label, content) in labels {
                let content = visible(content).replace('\\', "\\\\").replace('"', "\\\"");
                let _ = write!(self.0, "{separator}{label}=\"{content}\"");
                separator = ',';
            }
            let _ = writeln!(self.0, "}} {value}");
        }
    }

    fn add(&mut self, name: &str, help: &str, kind: &str, value: impl Display) {
        // Writing to a text cannot fail.
        let _ = writeln!(
            self.0,
            "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}"
        );
    }

    /// Adds what a store has counted.
    pub fn store(&mut self, store: &Store) {
        let counters = &store.counters;
        for (name, help, counter) in [
            (
                "updates_accepted_total",
                "Updates taken.",
                &counters.accepted,
            ),
            (
                "updates_past_total",
                "Updates not taken, as not after the last.",
                &counters.past,
            ),
            (
                "updates_dropped_total",
                "Updates lost: no room, or no file.",
                &counters.dropped,
            ),
            (
                "updates_written_total",
                "Updates written to databases.",
                &counters.written,
            ),
            (
                "updates_refused_total",
                "Updates that databases refused.",
                &counters.refused,
            ),
            (
                "updates_overtaken_total",
                "Updates lost: another program had written later ones.",
                &counters.overtaken,
            ),
            (
                "updates_future_total",
                "Updates not taken, as too far ahead of the clock.",
                &counters.future,
            ),
            (
                "suspensions_ended_total",
                "Times a suspended database was resumed because of a limit.",
                &counters.suspensions_ended,
            ),
            (
                "file_writes_total",
                "Times a database was written.",
                &counters.writes,
            ),
            (
                "file_errors_total",
                "Times a database could not be written.",
                &counters.write_errors,
            ),
            (
                "flushes_total",
                "Requests to write a database.",
                &counters.flushes,
            ),
        ] {
            self.counter(name, help, counter.load(Relaxed));
        }
        let overtaken = store.overtaken(MOST_LABELS).into_iter();
        let overtaken: Vec<_> = overtaken
            .map(|(path, count)| (vec![("path", path)], count))
            .collect();
        self.labelled(
            "database_updates_overtaken_total",
            "The same, of the databases with the most.",
            &overtaken,
        );
        self.gauge("databases", "Databases that are known.", store.count());
        self.gauge(
            "pending_bytes",
            "Bytes of updates in memory.",
            store.pending_bytes(),
        );
        self.gauge(
            "queue_length",
            "Databases that wait to be written now.",
            store.queue().len(),
        );
        self.gauge(
            "oldest_pending_seconds",
            "How long the oldest update has been in memory.",
            store.oldest_pending().as_secs_f64(),
        );
        self.histogram(
            "file_write_seconds",
            "How long writes of databases took.",
            &counters.write_times,
        );
        if let Some(free) = store.free_bytes() {
            self.gauge(
                "data_free_bytes",
                "Bytes free on the disk of the data directory.",
                free,
            );
        }
        if let Some(journal) = store.journal() {
            self.gauge(
                "journal_bytes",
                "Bytes of the journal's file.",
                journal.size(),
            );
            for (name, help, counter) in [
                (
                    "journal_bytes_total",
                    "Bytes written to the journal.",
                    &journal.bytes,
                ),
                (
                    "journal_rotations_total",
                    "Times a new journal was begun.",
                    &journal.rotations,
                ),
                (
                    "journal_errors_total",
                    "Times the journal could not be written.",
                    &journal.errors,
                ),
            ] {
                self.counter(name, help, counter.load(Relaxed));
            }
            self.gauge(
                "journal_damaged_files",
                "Damaged files of the journal that are kept.",
                journal.damaged(),
            );
        }
    }

    /// Adds the connections of each listener of a server; the server's name stands in those of the metrics.
    pub(crate) fn connections(&mut self, server: &str, connections: &Connections) {
        type Field = fn(&ConnectionCounters) -> &AtomicU64;
        let listeners = &connections.listeners;
        let name = format!("{server}_connections");
        listeners.gauge(self, &name, "Open connections.", |it| &it.open);
        let counters: [(&str, &str, Field); 3] = [
            ("accepted", "Connections so far.", |it| &it.accepted),
            (
                "refused",
                "Connections turned away, as there were too many.",
                |it| &it.refused,
            ),
            (
                "evicted",
                "Connections closed to make room for others.",
                |it| &it.evicted,
            ),
        ];
        for (kind, help, value) in counters {
            listeners.counter(self, &format!("{name}_{kind}_total"), help, value);
        }
    }

    /// Adds which version this is.
    pub fn build(&mut self) {
        let version = vec![("version", env!("CARGO_PKG_VERSION").to_owned())];
        let help = "The version of kymo; always 1.";
        self.labelled_gauge("build_info", help, &[(version, 1)]);
    }

    /// Adds what the process has used since it began. Names are those that Prometheus' own clients use, as far as they
    /// have one.
    pub fn process(&mut self, begin: SystemTime) {
        if let Ok(usage) = getrusage(UsageWho::RUSAGE_SELF) {
            let seconds = |time: TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
            let cpu = seconds(usage.user_time()) + seconds(usage.system_time());
            let help = "CPU time used, in seconds.";
            self.add("process_cpu_seconds_total", help, "counter", cpu);
            // Linux reports kilobytes.
            let most = usage.max_rss().saturating_mul(1024);
            self.gauge("most_resident_bytes", "The most memory used so far.", most);
        }
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let bytes = |field: &str| {
            let rest = status.lines().find_map(|line| line.strip_prefix(field))?;
            let kib: u64 = rest.trim().strip_suffix(" kB")?.parse().ok()?;
            kib.checked_mul(1024)
        };
        let begin = begin.duration_since(UNIX_EPOCH).ok();
        let limit = getrlimit(Resource::RLIMIT_NOFILE).ok();
        let open = std::fs::read_dir("/proc/self/fd").ok();
        for (name, help, value) in [
            (
                "process_resident_memory_bytes",
                "Memory in use.",
                bytes("VmRSS:"),
            ),
            (
                "process_virtual_memory_bytes",
                "Addresses in use, in bytes.",
                bytes("VmSize:"),
            ),
            (
                "process_open_fds",
                "Open files, sockets included.",
                open.map(|it| it.count() as u64),
            ),
            (
                "process_max_fds",
                "Files that may be open.",
                limit.map(|(now, _)| now),
            ),
            (
                "process_start_time_seconds",
                "When the process began, in seconds since 1970.",
                begin.map(|it| it.as_secs()),
            ),
        ] {
            if let Some(value) = value {
                self.add(name, help, "gauge", value);
            }
        }
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.0
    }
}

/// Answers one request: a page for `GET /metrics`.
pub fn serve(mut stream: Stream, page: &Arc<dyn Fn() -> Page + Send + Sync>) {
    let mut timed = TimedStream {
        stream: &mut stream,
        end: Instant::now() + PATIENCE,
    };
    // Who is gone needs no answer.
    if matches!(answer(&mut timed, page.as_ref()), Ok(400 | 405)) {
        // A part of the request may be on its way.
        stream.close_after_answer();
    }
}

/// Answers a request, and returns with which status.
fn answer(stream: &mut TimedStream<'_>, page: &dyn Fn() -> Page) -> io::Result<u16> {
    let mut request = vec![0; LONGEST_REQUEST];
    let mut length = 0;
    // The head ends with an empty line.
    while !request[..length].windows(4).any(|end| end == b"\r\n\r\n") {
        let count = stream.read(&mut request[length..])?;
        length += count;
        if count == 0 || length == request.len() {
            return respond(stream, 400, "the request is cut off or too long\n");
        }
    }
    let line = request[..length].split(|byte| *byte == b'\r').next();
    let mut words = line.unwrap_or_default().split(|byte| *byte == b' ');
    let method = words.next();
    // A query selects nothing.
    let path = words
        .next()
        .and_then(|it| it.split(|byte| *byte == b'?').next());
    match (method, path) {
        (Some(b"GET"), Some(b"/metrics")) => respond(stream, 200, page().text()),
        // What answers has begun, and serves.
        (Some(b"GET"), Some(b"/-/ready" | b"/-/healthy")) => {
            respond(stream, 200, "kymo serve is ready\n")
        }
        (Some(b"GET"), _) => respond(
            stream,
            404,
            "only /metrics, /-/ready and /-/healthy exist\n",
        ),
        _ => respond(stream, 405, "only GET is supported\n"),
    }
}

fn respond(stream: &mut TimedStream<'_>, status: u16, text: &str) -> io::Result<u16> {
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    let head = response_head(status, &[("Content-Type", kind)], text.len(), false);
    stream.write_all(head.as_bytes())?;
    stream.write_all(text.as_bytes())?;
    Ok(status)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histograms_add_up() {
        let histogram = Histogram::default();
        for millis in [0, 1, 2, 400, 100_000] {
            histogram.add(Duration::from_millis(millis));
        }
        let mut page = Page::default();
        page.histogram("x", "X.", &histogram);
        let counts: Vec<_> = page
            .text()
            .lines()
            .filter_map(|line| line.strip_prefix("kymo_x_bucket"))
            .filter_map(|line| line.split(' ').next_back()?.parse::<u64>().ok())
            .collect();
        assert_eq!(counts, [1, 2, 3, 3, 4, 4, 4, 4, 5]);
        assert!(
            page.text()
                .ends_with("kymo_x_sum 100.403\nkymo_x_count 5\n")
        );
    }

    /// Who sends a byte now and then holds a connection no longer than who sends none.
    #[test]
    fn a_request_has_one_end() {
        let (mut stream, mut client) = Stream::pair().unwrap();
        let slow = std::thread::spawn(move || {
            // Until the other end stops reading.
            while client.write_all(b"x").is_ok() {
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        let mut hurried = TimedStream {
            stream: &mut stream,
            end: Instant::now() + Duration::from_millis(100),
        };
        let error = answer(&mut hurried, &Page::default).unwrap_err();
        let kinds = [io::ErrorKind::TimedOut, io::ErrorKind::WouldBlock];
        assert!(kinds.contains(&error.kind()), "{error}");
        drop(stream);
        slow.join().unwrap();
    }
}
