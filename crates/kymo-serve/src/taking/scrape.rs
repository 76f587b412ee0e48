//! Targets of Prometheus, which are asked from time to time.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use kymo_io::reason;
use kymo_metrics::exposition::{self, Format, TargetLabels};
use kymo_metrics::{Key, Kind, Number, Sink as _};

use super::options::{ScrapeOptions, Target};
use super::session::{Session, now};
use super::{Protocol, Shared};
use crate::http::{Limits, dechunk};
use crate::log::Level;
use crate::sync::{lock, wait_until};

/// The largest head of an answer.
const MOST_HEAD: usize = 64 << 10;
/// Bytes that are read at once.
const PIECE: usize = 1 << 16;
/// The formats that are understood.
const ACCEPT: &str =
    "application/openmetrics-text;version=1.0.0;q=0.8,text/plain;version=0.0.4;q=0.5,*/*;q=0.1";

/// A thread for each target.
#[derive(Debug)]
pub(super) struct Scraping {
    ends: Arc<(Mutex<bool>, Condvar)>,
    threads: Vec<JoinHandle<()>>,
}

impl Scraping {
    /// Begins to ask all targets.
    pub(super) fn start(shared: &Arc<Shared>, jobs: &[ScrapeOptions]) -> io::Result<Self> {
        let mut scraping = Self {
            ends: Arc::default(),
            threads: Vec::new(),
        };
        for job in jobs {
            for target in &job.targets {
                let (shared, ends) = (Arc::clone(shared), Arc::clone(&scraping.ends));
                let (job, target) = (job.clone(), target.clone());
                let thread = std::thread::Builder::new().name("scrape".into());
                let thread = thread.spawn(move || run(&shared, &job, &target, &ends))?;
                scraping.threads.push(thread);
            }
        }
        Ok(scraping)
    }
}

impl Drop for Scraping {
    fn drop(&mut self) {
        *lock(&self.ends.0) = true;
        self.ends.1.notify_all();
        for thread in self.threads.drain(..) {
            // A thread that panicked has said so.
            let _ = thread.join();
        }
    }
}

/// Asks a target until the end.
fn run(shared: &Arc<Shared>, job: &ScrapeOptions, target: &Target, ends: &(Mutex<bool>, Condvar)) {
    let mut session = Session::new(shared, Protocol::Scrape, &target.url(), None);
    let instance = format!("{}:{}", target.host, target.port);
    let mut labels = vec![
        ("job".to_owned(), job.job.clone()),
        ("instance".to_owned(), instance),
    ];
    labels.extend(job.labels.iter().cloned());
    let labels = TargetLabels {
        labels,
        honor: job.honor_labels,
        honor_timestamps: job.honor_timestamps,
    };
    // Targets that are gone are logged once, and `up` shows them.
    let mut was_up = true;
    loop {
        // Targets are not all asked at the same time, and each at multiples of its interval.
        let end = Instant::now() + until_next(job.interval, &target.url());
        let mut has_ended = lock(&ends.0);
        loop {
            if *has_ended {
                return;
            }
            match wait_until(&ends.1, has_ended, end) {
                Some(again) => has_ended = again,
                None => break,
            }
        }
        let (begun, time) = (Instant::now(), now());
        let answer = fetch(target, job);
        let samples = match &answer {
            Ok((format, text)) => {
                session.begin(text.len());
                session.set_now(time);
                exposition::parse(text, *format, &labels, &mut session)
            }
            Err(problem) => {
                session.begin(0);
                session.set_now(time);
                if was_up {
                    let log_limiter = &shared.table.log_limiter;
                    log_limiter.report(format_args!("scrape of {}: {problem}", target.shown()));
                }
                0
            }
        };
        if answer.is_ok() && !was_up {
            let log = &shared.table.store.options().log;
            log(
                Level::Info,
                &format!("scrape of {}: it answers again", target.shown()),
            );
        }
        was_up = answer.is_ok();
        for (name, value) in [
            ("up", f64::from(u8::from(answer.is_ok()))),
            ("scrape_duration_seconds", begun.elapsed().as_secs_f64()),
            ("scrape_samples_scraped", samples as f64),
        ] {
            put(&mut session, name, &labels, value);
        }
        session.note();
    }
}

/// Adds a sample about the target itself.
fn put(session: &mut Session, name: &str, labels: &TargetLabels, value: f64) {
    let mut key = Key::new();
    key.begin(name.as_bytes());
    for (label, value) in &labels.labels {
        key.label(label.as_bytes(), value.as_bytes());
    }
    if key.finish().is_err() {
        return;
    }
    let series = match session.find(key.bytes()) {
        Some(series) => series,
        None => session.series(key.bytes(), &key, Kind::Gauge),
    };
    session.sample(series, None, Number::Float(value));
}

/// Until a target is asked next: at a multiple of the interval, and a share of it that its name gives.
fn until_next(interval: Duration, name: &str) -> Duration {
    let interval = interval.as_nanos().max(1);
    let hash = name.bytes().fold(0_u32, |hash, byte| {
        hash.wrapping_mul(31).wrapping_add(byte.into())
    });
    let offset = interval * u128::from(hash % 1000) / 1000;
    let past = (now().max(0) as u128 + interval - offset) % interval;
    Duration::from_nanos(u64::try_from(interval - past).unwrap_or(u64::MAX))
}

/// A connection to a target.
trait Connection: Read + Write {
    /// What is below the encryption, if there is one.
    fn socket(&self) -> &TcpStream;
}

impl Connection for TcpStream {
    fn socket(&self) -> &TcpStream {
        self
    }
}

#[cfg(feature = "tls")]
impl Connection for rustls::StreamOwned<rustls::ClientConnection, TcpStream> {
    fn socket(&self) -> &TcpStream {
        &self.sock
    }
}

/// Encrypts the connection to a target.
#[cfg(feature = "tls")]
fn encrypt(
    target: &Target,
    job: &ScrapeOptions,
    stream: TcpStream,
) -> Result<Box<dyn Connection>, String> {
    use crate::listen::tls::Connector;
    let own = job.tls.certificate.as_deref().zip(job.tls.key.as_deref());
    // The files are read each time: certificates are renewed.
    let connector = Connector::read(job.tls.ca.as_deref(), own)?;
    Ok(Box::new(connector.connect(&target.host, stream)?))
}

#[cfg(not(feature = "tls"))]
fn encrypt(_: &Target, _: &ScrapeOptions, _: TcpStream) -> Result<Box<dyn Connection>, String> {
    Err(crate::config::NO_TLS.to_owned())
}

/// Connects to a target, and says what to do if that fails.
fn connect(target: &Target, job: &ScrapeOptions) -> Result<Box<dyn Connection>, String> {
    let addresses = (target.host.as_str(), target.port).to_socket_addrs();
    let addresses = addresses.map_err(|error| {
        let reason = reason(&error);
        format!("{reason}; check the name of the target")
    })?;
    let mut failed = "the name has no address; check the name of the target".to_owned();
    for address in addresses {
        match TcpStream::connect_timeout(&address, job.timeout) {
            Ok(stream) if target.is_encrypted => return encrypt(target, job, stream),
            Ok(stream) => return Ok(Box::new(stream)),
            Err(error) => {
                let remedy = match error.kind() {
                    io::ErrorKind::ConnectionRefused => {
                        "nothing listens there: is the exporter running, and is the port right?"
                    }
                    io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => {
                        "nothing answers: check the address and firewalls, or set `scrape.timeout`"
                    }
                    _ => "check the address and the network",
                };
                failed = format!("{}; {remedy}", reason(&error));
            }
        }
    }
    Err(failed)
}

/// What is said if an answer takes too long.
fn too_slow(job: &ScrapeOptions) -> String {
    format!(
        "no whole answer within {} s; set a longer `scrape.timeout`, or have the target show less",
        job.timeout.as_secs_f64()
    )
}

/// Asks a target once: the format of its answer, and the text.
fn fetch(target: &Target, job: &ScrapeOptions) -> Result<(Format, Vec<u8>), String> {
    let end = Instant::now() + job.timeout;
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => too_slow(job),
        io::ErrorKind::InvalidData => format!(
            "{}; check that the target speaks TLS, and `scrape.ca` and the name in its certificate",
            reason(&error)
        ),
        _ => format!(
            "{} while it was asked; see the target's own log",
            reason(&error)
        ),
    };
    let mut stream = connect(target, job)?;
    let socket = stream.socket();
    socket
        .set_write_timeout(Some(job.timeout))
        .and_then(|()| socket.set_read_timeout(Some(job.timeout)))
        .map_err(failed)?;
    let authorization = match &job.token_file {
        None => String::new(),
        Some(path) => {
            let token = kymo_io::read_small_text(path)
                .map_err(|error| format!("`{}`: {}", path.display(), reason(&error)))?;
            let token = token.trim();
            if token.is_empty() || token.contains(|char: char| char.is_control()) {
                return Err(format!(
                    "`{}` has no token, expected one line",
                    path.display()
                ));
            }
            format!("Authorization: Bearer {token}\r\n")
        }
    };
    let request = format!(
        "GET {} HTTP/1.1\r\nHost: {}:{}\r\nUser-Agent: kymo/{}\r\nAccept: {ACCEPT}\r\n{authorization}\
         X-Prometheus-Scrape-Timeout-Seconds: {}\r\nConnection: close\r\n\r\n",
        target.path,
        target.host,
        target.port,
        env!("CARGO_PKG_VERSION"),
        job.timeout.as_secs_f64(),
    );
    stream.write_all(request.as_bytes()).map_err(failed)?;
    stream.flush().map_err(failed)?;
    let mut bytes = Vec::new();
    loop {
        let rest = end.saturating_duration_since(Instant::now());
        if rest.is_zero() {
            return Err(too_slow(job));
        }
        stream
            .socket()
            .set_read_timeout(Some(rest))
            .map_err(failed)?;
        let length = bytes.len();
        bytes.resize(length + PIECE, 0);
        let count = stream.read(&mut bytes[length..]);
        bytes.truncate(length + *count.as_ref().unwrap_or(&0));
        match count {
            Ok(0) => break,
            // The end of a connection that was encrypted, and not closed first: lengths show whether all is there.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => break,
            Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(failed(error)),
            _ => {}
        }
        if bytes.len() > 2 * job.most_answer + MOST_HEAD {
            return Err(too_long(job));
        }
    }
    read_answer(&bytes, job)
}

fn too_long(job: &ScrapeOptions) -> String {
    format!(
        "the answer is longer than `scrape.most-answer-mib`, {} MiB; set more, or have the target show less",
        job.most_answer >> 20
    )
}

/// Takes a whole answer apart.
fn read_answer(bytes: &[u8], job: &ScrapeOptions) -> Result<(Format, Vec<u8>), String> {
    let mut headers = [httparse::EMPTY_HEADER; 100];
    let mut response = httparse::Response::new(&mut headers);
    let length = match response.parse(&bytes[..bytes.len().min(MOST_HEAD)]) {
        Ok(httparse::Status::Complete(length)) => length,
        // What TLS answers to a request that is not encrypted.
        _ if matches!(bytes, [0x15, 3, ..]) => {
            return Err("the target speaks TLS; write it as https://HOST:PORT/PATH".to_owned());
        }
        _ if bytes.is_empty() => {
            let text = "the target closed the connection without an answer; does it speak HTTP there, or TLS?";
            return Err(text.to_owned());
        }
        _ => {
            return Err("the answer is not one of HTTP/1; check the port of the target".to_owned());
        }
    };
    if response.code != Some(200) {
        let status = response.code.unwrap_or_default();
        let remedy = match status {
            301 | 302 | 307 | 308 => "it leads elsewhere: write that address as the target",
            400 => "if the target speaks TLS, write it as https://HOST:PORT/PATH",
            401 | 403 => "set `scrape.token-file`, or a certificate that the target knows",
            404 => "check the path of the target",
            _ => "see the target's own log",
        };
        return Err(format!(
            "the answer has the status {status}, expected 200; {remedy}"
        ));
    }
    let header = |name: &str| {
        let mut all = response.headers.iter();
        let found = all.find(|it| it.name.eq_ignore_ascii_case(name));
        found.map_or(String::new(), |it| {
            String::from_utf8_lossy(it.value).trim().to_owned()
        })
    };
    let body = &bytes[length..];
    let format = Format::of_content_type(&header("Content-Type"));
    let body = match header("Transfer-Encoding").eq_ignore_ascii_case("chunked") {
        true => {
            let limits = Limits {
                body: job.most_answer,
                ..Limits::default()
            };
            let whole = dechunk(body, &limits).map_err(|status| match status {
                413 => too_long(job),
                _ => "the parts of the answer are damaged".to_owned(),
            })?;
            whole.ok_or("the answer is cut off")?.0
        }
        false => {
            if let Ok(length) = header("Content-Length").parse::<usize>()
                && body.len() < length
            {
                return Err("the answer is cut off".to_owned());
            }
            if body.len() > job.most_answer {
                return Err(too_long(job));
            }
            body.to_vec()
        }
    };
    Ok((format, body))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_whole_or_not_at_all() {
        let job = ScrapeOptions {
            most_answer: 10,
            ..ScrapeOptions::default()
        };
        for (bytes, found) in [
            (
                &b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\na 1"[..],
                Ok((Format::Prometheus, b"a 1".to_vec())),
            ),
            (
                b"HTTP/1.1 200 OK\r\nContent-Type: application/openmetrics-text; version=1.0.0\r\n\
                  Transfer-Encoding: chunked\r\n\r\n3\r\na 1\r\n0\r\n\r\n",
                Ok((Format::OpenMetrics, b"a 1".to_vec())),
            ),
            (
                b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\na 1",
                Err("the answer is cut off"),
            ),
            (
                b"HTTP/1.1 200 OK\r\n\r\n0123456789a",
                Err(
                    "the answer is longer than `scrape.most-answer-mib`, 0 MiB; set more, or have the target show less",
                ),
            ),
            (
                b"HTTP/1.1 500 No\r\n\r\n",
                Err("the answer has the status 500, expected 200; see the target's own log"),
            ),
            (
                b"HTTP/1.1 404 No\r\n\r\n",
                Err("the answer has the status 404, expected 200; check the path of the target"),
            ),
            (
                b"SSH-2.0",
                Err("the answer is not one of HTTP/1; check the port of the target"),
            ),
            (
                b"\x15\x03\x03\x00\x02\x02\x46",
                Err("the target speaks TLS; write it as https://HOST:PORT/PATH"),
            ),
        ] {
            assert_eq!(read_answer(bytes, &job), found.map_err(str::to_owned));
        }
    }
}
