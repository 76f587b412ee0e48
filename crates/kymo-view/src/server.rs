//! The server: sockets, connections, limits, and how long it runs.

mod connections;

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use kymo_io::net::response_head;

use crate::api::Api;
use crate::assets;
use crate::export::{SCRIPT, script_json};
use crate::guard::{Guard, HEADERS};
use crate::live::{Current, Reopen};
use crate::request::{BadRequest, Head, MOST_HEAD, Method, parse};
use connections::{Connections, Place};

/// How long a request may take to arrive, and how long a connection stays open without one.
const REQUEST_TIME: Duration = Duration::from_secs(10);
const IDLE_TIME: Duration = Duration::from_secs(60);

/// How long a connection may take for its first request: a client without the token holds none of the few
/// connections for long.
const FIRST_TIME: Duration = Duration::from_secs(3);

/// After how long without a sign of life a page counts as gone. Browsers let hidden pages run once a minute.
const PAGE_TIME: Duration = Duration::from_secs(180);

/// How long the server waits for the next page when the last one has said that it closes.
const CLOSED_TIME: Duration = Duration::from_secs(5);

/// At most this many pages are distinguished.
const MOST_PAGES: usize = 64;

/// How the server is reached, and how long it runs.
#[derive(Clone, Debug, Default)]
pub struct ServerOptions {
    /// The port; 0 for any that is free.
    pub port: u16,
    /// The addresses or names of this host: the first one is listened on, and requests must use one of them. If empty,
    /// only this machine reaches the server.
    pub hosts: Vec<String>,
    /// Whether the server stays after the last page was closed.
    pub stay: bool,
    /// A directory from which the files of the page are read, instead of those built in.
    pub assets: Option<PathBuf>,
}

/// Why the server cannot run.
#[derive(Debug)]
#[non_exhaustive]
pub enum ServerError {
    /// An address cannot be listened on.
    Listen(String, io::Error),
    /// A random token could not be created.
    Random(io::Error),
}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Listen(address, error) => write!(f, "cannot listen on `{address}`: {error}"),
            Self::Random(error) => write!(f, "cannot make a random token: {error}"),
        }
    }
}

impl std::error::Error for ServerError {}

/// A server that listens.
#[derive(Debug)]
pub struct Server {
    listeners: Vec<TcpListener>,
    shared: Arc<Shared>,
    stay: bool,
    reopen: Option<Reopen>,
}

#[derive(Debug)]
struct Shared {
    guard: Guard,
    assets: Option<PathBuf>,
    connections: Arc<Connections>,
    pages: Mutex<Pages>,
}

/// The pages that are open.
#[derive(Debug, Default)]
struct Pages {
    seen: HashMap<u64, Instant>,
    /// When the last one was closed, if none is open.
    closed: Option<Instant>,
}

impl Pages {
    fn alive(&mut self, page: u64) {
        if self.seen.len() < MOST_PAGES || self.seen.contains_key(&page) {
            self.seen.insert(page, Instant::now());
            self.closed = None;
        }
    }

    fn close(&mut self, page: u64) {
        if self.seen.remove(&page).is_some() && self.seen.is_empty() {
            self.closed = Some(Instant::now());
        }
    }

    /// Whether there were pages, and all of them are gone.
    fn are_gone(&mut self) -> bool {
        let before = self.seen.len();
        self.seen.retain(|_, seen| seen.elapsed() < PAGE_TIME);
        if before > 0 && self.seen.is_empty() {
            return true;
        }
        self.closed
            .is_some_and(|closed| closed.elapsed() >= CLOSED_TIME)
    }
}

impl Server {
    /// Listens.
    ///
    /// # Errors
    ///
    /// The address cannot be listened on, or the system has no random numbers.
    pub fn bind(options: &ServerOptions) -> Result<Self, ServerError> {
        let token = kymo_io::random::<16>().map_err(ServerError::Random)?;
        let token = token.iter().map(|byte| format!("{byte:02x}")).collect();
        let mut listeners = Vec::new();
        match options.hosts.first() {
            Some(host) => {
                let host = host.trim_start_matches('[').trim_end_matches(']');
                let failed = |error| ServerError::Listen(format!("{host}:{}", options.port), error);
                let addresses = (host, options.port).to_socket_addrs().map_err(failed)?;
                let addresses: Vec<SocketAddr> = addresses.collect();
                listeners.push(TcpListener::bind(&addresses[..]).map_err(failed)?);
            }
            None => {
                let address = format!("127.0.0.1:{}", options.port);
                let failed = |error| ServerError::Listen(address.clone(), error);
                let listener = TcpListener::bind(&address).map_err(failed)?;
                let port = listener.local_addr().map_err(failed)?.port();
                listeners.push(listener);
                // Where there is no IPv6, or the port is taken there, one address is enough.
                listeners.extend(TcpListener::bind(("::1", port)));
            }
        }
        Ok(Self {
            listeners,
            stay: options.stay,
            reopen: None,
            shared: Arc::new(Shared {
                guard: Guard::new(token, options.hosts.clone()),
                assets: options.assets.clone(),
                connections: Arc::default(),
                pages: Mutex::default(),
            }),
        })
    }

    /// The address of the page, with the token.
    pub fn address(&self) -> String {
        let address = self.listeners.first().and_then(|of| of.local_addr().ok());
        let port = address.map_or(0, |address| address.port());
        let token = self.shared.guard.token();
        match self.shared.guard.first_host() {
            Some(host) => format!("http://{host}:{port}/{token}/"),
            None => format!("http://127.0.0.1:{port}/{token}/"),
        }
    }

    /// The same, which shows what is added to the recordings.
    #[must_use]
    pub fn following(self, reopen: Reopen) -> Self {
        Self {
            reopen: Some(reopen),
            ..self
        }
    }

    /// Serves until the last page is gone, unless it is to stay.
    pub fn run(self, api: Api) {
        let is_followed = self.reopen.is_some();
        let api = Arc::new(Current::new(api, self.reopen));
        if is_followed {
            let current = Arc::clone(&api);
            // Without a thread, what is shown stays as it is.
            let _ = std::thread::Builder::new().spawn(move || current.follow());
        }
        for listener in self.listeners {
            let (shared, api) = (Arc::clone(&self.shared), Arc::clone(&api));
            let accept = move || {
                for stream in listener.incoming() {
                    match stream {
                        Ok(stream) => serve(stream, &shared, &api),
                        // Out of file descriptors, for instance: others may close some.
                        Err(_) => std::thread::sleep(Duration::from_millis(100)),
                    }
                }
            };
            if std::thread::Builder::new().spawn(accept).is_err() {
                return;
            }
        }
        loop {
            std::thread::sleep(Duration::from_millis(500));
            if !self.stay && self.shared.pages().are_gone() {
                return;
            }
        }
    }
}

impl Shared {
    fn pages(&self) -> std::sync::MutexGuard<'_, Pages> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Serves a connection in a thread of its own.
fn serve(mut stream: TcpStream, shared: &Arc<Shared>, api: &Arc<Current>) {
    let _ = stream.set_nodelay(true);
    let _ = stream.set_write_timeout(Some(REQUEST_TIME));
    let Some(place) = Connections::enter(&shared.connections, &stream) else {
        // The few bytes fit into any socket; whoever does not take them gets nothing.
        let _ = Answer::status(503).write(&mut stream, false);
        return;
    };
    let (shared, api) = (Arc::clone(shared), Arc::clone(api));
    let work = move || {
        let mut connection = Connection {
            stream,
            place,
            bytes: Vec::new(),
        };
        while let Some((head, body)) = connection.request() {
            if shared.guard.check(&head).is_ok() {
                connection.place.asked();
            }
            let answer = answer(&shared, &api, &head, &body);
            let stays = head.keep_alive && !connection.place.is_crowded();
            let sent = answer.write(&mut connection.stream, stays);
            connection.place.answered();
            if sent.is_err() || !stays {
                break;
            }
        }
    };
    // Without a thread for it, the connection closes.
    let _ = std::thread::Builder::new().spawn(work);
}

struct Connection {
    stream: TcpStream,
    place: Place,
    /// Bytes that have arrived and belong to no request yet.
    bytes: Vec<u8>,
}

impl Connection {
    /// The next request; `None` where the connection ends.
    fn request(&mut self) -> Option<(Head, Vec<u8>)> {
        let mut deadline = (!self.place.is_known()).then(|| Instant::now() + FIRST_TIME);
        let (head, length) = loop {
            match parse(&self.bytes) {
                Ok(Some(found)) => break found,
                Ok(None) => {}
                Err(bad) => {
                    let _ = Answer::refused(bad).write(&mut self.stream, false);
                    return None;
                }
            }
            if !self.bytes.is_empty() && deadline.is_none() {
                deadline = Some(Instant::now() + REQUEST_TIME);
            }
            self.read(deadline, MOST_HEAD)?;
        };
        self.bytes.drain(..length);
        let deadline = Some(Instant::now() + REQUEST_TIME);
        // It fits, since the head was accepted.
        let body = usize::try_from(head.length).ok()?;
        while self.bytes.len() < body {
            self.read(deadline, body)?;
        }
        let rest = self.bytes.split_off(body);
        Some((head, std::mem::replace(&mut self.bytes, rest)))
    }

    /// Reads some bytes, so that there are at most so many.
    fn read(&mut self, deadline: Option<Instant>, most: usize) -> Option<()> {
        let end = deadline.unwrap_or_else(|| Instant::now() + IDLE_TIME);
        let mut buffer = [0; 4096];
        let room = most.saturating_sub(self.bytes.len()).clamp(1, buffer.len());
        loop {
            let left = end.checked_duration_since(Instant::now())?;
            let time = left.max(Duration::from_millis(1));
            self.stream.set_read_timeout(Some(time)).ok()?;
            match self.stream.read(&mut buffer[..room]) {
                Ok(0) => return None,
                Ok(count) => {
                    self.bytes.extend_from_slice(&buffer[..count]);
                    return Some(());
                }
                Err(error) if is_pause(&error) => {}
                Err(_) => return None,
            }
        }
    }
}

/// Whether nothing has come for a while.
fn is_pause(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), WouldBlock | TimedOut | Interrupted)
}

/// What a request is answered with.
#[derive(Debug)]
pub(crate) struct Answer {
    status: u16,
    content_type: &'static str,
    etag: Option<String>,
    body: Cow<'static, [u8]>,
}

impl Answer {
    /// A status, and nothing else.
    pub(crate) fn status(status: u16) -> Self {
        Self {
            status,
            content_type: "text/plain; charset=utf-8",
            etag: None,
            body: Cow::Borrowed(b""),
        }
    }

    /// What is wrong with a request that is not understood.
    fn refused(bad: BadRequest) -> Self {
        Self {
            body: bad.reason().into_bytes().into(),
            ..Self::status(bad.0)
        }
    }

    /// JSON.
    pub(crate) fn json(value: &serde_json::Value) -> Self {
        Self {
            content_type: "application/json",
            body: value.to_string().into_bytes().into(),
            ..Self::status(200)
        }
    }

    /// Why a request cannot be answered, as JSON with the key `error`.
    pub(crate) fn problem(message: &str) -> Self {
        Self {
            status: 422,
            ..Self::json(&serde_json::json!({ "error": message }))
        }
    }

    /// Binary data.
    pub(crate) fn binary(body: Vec<u8>) -> Self {
        Self {
            content_type: "application/octet-stream",
            body: body.into(),
            ..Self::status(200)
        }
    }

    fn write(&self, stream: &mut impl Write, keep_alive: bool) -> io::Result<()> {
        let mut headers = HEADERS.to_vec();
        headers.push(("Content-Type", self.content_type));
        match &self.etag {
            Some(etag) => headers.extend([("ETag", etag.as_str()), ("Cache-Control", "no-cache")]),
            None => headers.push(("Cache-Control", "no-store")),
        }
        let head = response_head(self.status, &headers, self.body.len(), keep_alive);
        let mut bytes = head.into_bytes();
        bytes.extend_from_slice(&self.body);
        stream.write_all(&bytes)
    }
}

fn answer(shared: &Shared, current: &Current, head: &Head, body: &[u8]) -> Answer {
    let path = match shared.guard.check(head) {
        Ok(path) => path,
        Err(refused) => return Answer::status(refused.0),
    };
    match (head.method, path.strip_prefix("api/")) {
        (Method::Get, _) if assets::is_index(path) => index(shared, &current.get()),
        (Method::Get, _) => asset(shared, head, path),
        (Method::Post, Some(name @ ("alive" | "close"))) => {
            let request = serde_json::from_slice(body).unwrap_or(serde_json::Value::Null);
            let Some(page) = request["page"].as_u64() else {
                return Answer::problem("`page` is not a number");
            };
            match name {
                "alive" => shared.pages().alive(page),
                _ => shared.pages().close(page),
            }
            Answer::json(&serde_json::json!({}))
        }
        (Method::Post, Some("add")) => {
            let request = serde_json::from_slice(body).unwrap_or(serde_json::Value::Null);
            match current.add(&request) {
                Ok(value) => Answer::json(&value),
                Err(error) => Answer::problem(&error),
            }
        }
        (Method::Post, Some(name)) => current.get().answer(name, body),
        (Method::Post, None) => Answer::status(404),
    }
}

/// The page, with what it shows first.
fn index(shared: &Shared, api: &Api) -> Answer {
    let Some((name, bytes)) = assets::find("", shared.assets.as_deref()) else {
        return Answer::status(404);
    };
    let first = script_json(&api.first());
    let data = format!("<script type=\"application/json\" id=\"first\">{first}</script>\n{SCRIPT}");
    let page = String::from_utf8_lossy(&bytes).replacen(SCRIPT, &data, 1);
    Answer {
        content_type: assets::content_type(name),
        body: page.into_bytes().into(),
        ..Answer::status(200)
    }
}

/// A file of the page.
fn asset(shared: &Shared, head: &Head, path: &str) -> Answer {
    let Some((name, bytes)) = assets::find(path, shared.assets.as_deref()) else {
        return Answer::status(404);
    };
    let etag = format!("\"{:016x}\"", fingerprint(&bytes));
    let is_known = head.if_none_match.as_deref() == Some(etag.as_str());
    Answer {
        status: if is_known { 304 } else { 200 },
        content_type: assets::content_type(name),
        etag: Some(etag),
        body: if is_known { Cow::Borrowed(b"") } else { bytes },
    }
}

/// FNV-1a: distinguishes versions of a file.
fn fingerprint(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests;
