//! The server: sockets, connections, limits, and how long it runs.

mod connections;

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use kymo_io::net::response_head;
use kymo_text::base64;

use crate::api::Api;
use crate::assets;
use crate::bundle::{self, Page, data_element};
use crate::guard::{Guard, HEADERS, POLICY, policy_with};
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

/// How long a page waits for its first picture before it is drawn without.
const PAGE_PATIENCE: Duration = Duration::from_millis(60);

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
            Self::Listen(address, error) => write!(
                f,
                "cannot listen on `{address}`: {}",
                kymo_io::reason(error)
            ),
            Self::Random(error) => write!(f, "cannot make a random token: {error}"),
        }
    }
}

impl std::error::Error for ServerError {}

/// A server that listens.
#[derive(Debug)]
pub struct Server {
    port: u16,
    /// Those on which nobody is served yet.
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
    /// What is shown, as soon as it is open.
    current: OnceLock<Arc<Current>>,
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
        let address = listeners
            .first()
            .and_then(|listener| listener.local_addr().ok());
        Ok(Self {
            port: address.map_or(0, |address| address.port()),
            listeners,
            stay: options.stay,
            reopen: None,
            shared: Arc::new(Shared {
                guard: Guard::new(token, options.hosts.clone()),
                assets: options.assets.clone(),
                connections: Arc::default(),
                pages: Mutex::default(),
                current: OnceLock::new(),
            }),
        })
    }

    /// The address of the page, with the token.
    pub fn address(&self) -> String {
        let port = self.port;
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

    /// Sends the files of the page to those who ask, while recordings are opened: browsers read them meanwhile. What
    /// asks about recordings waits until the server [runs](Self::run). Returns whether there were threads for it.
    pub fn start(&mut self) -> bool {
        let mut are_all = true;
        for listener in self.listeners.drain(..) {
            let shared = Arc::clone(&self.shared);
            let accept = move || {
                for stream in listener.incoming() {
                    match stream {
                        Ok(stream) => serve(stream, &shared),
                        // Out of file descriptors, for instance: others may close some.
                        Err(_) => std::thread::sleep(Duration::from_millis(100)),
                    }
                }
            };
            are_all &= std::thread::Builder::new().spawn(accept).is_ok();
        }
        are_all
    }

    /// Serves until the last page is gone, unless it is to stay.
    pub fn run(mut self, api: Api) {
        let is_followed = self.reopen.is_some();
        let current = Arc::new(Current::new(api, self.reopen.take()));
        if is_followed {
            let current = Arc::clone(&current);
            // Without a thread, what is shown stays as it is.
            let _ = std::thread::Builder::new().spawn(move || current.follow());
        }
        // Nothing else sets it.
        let _ = self.shared.current.set(current);
        if !self.start() {
            return;
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

    /// What is shown. Waits until the recordings are open.
    fn current(&self) -> &Current {
        self.current.wait()
    }

    /// Whether the recordings are open before a time has passed.
    fn is_open_within(&self, time: Duration) -> bool {
        let end = Instant::now() + time;
        while self.current.get().is_none() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(1));
        }
        self.current.get().is_some()
    }

    /// Whether a request is one for the page itself.
    fn is_page(&self, head: &Head) -> bool {
        head.method == Method::Get && self.guard.check(head).is_ok_and(assets::is_index)
    }
}

/// Serves a connection in a thread of its own.
fn serve(mut stream: TcpStream, shared: &Arc<Shared>) {
    let _ = stream.set_nodelay(true);
    let _ = stream.set_write_timeout(Some(REQUEST_TIME));
    let Some(place) = Connections::enter(&shared.connections, &stream) else {
        // The few bytes fit into any socket; whoever does not take them gets nothing.
        let _ = Answer::status(503).write(&mut stream, false);
        return;
    };
    let shared = Arc::clone(shared);
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
            if shared.is_page(&head) {
                // Its length is not known before the recordings are open: the connection ends with it.
                let _ = send_page(&shared, &mut connection.stream);
                break;
            }
            let answer = answer(&shared, &head, &body);
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
    /// Of a page that has its script and its style in it.
    nonce: Option<String>,
    body: Cow<'static, [u8]>,
}

impl Answer {
    /// A status, and nothing else.
    pub(crate) fn status(status: u16) -> Self {
        Self {
            status,
            content_type: "text/plain; charset=utf-8",
            etag: None,
            nonce: None,
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

    /// The head, with the length of the body if it is known: else the connection ends with it.
    fn head(&self, length: Option<usize>, keep_alive: bool) -> String {
        let mut headers = HEADERS.to_vec();
        let policy = self.nonce.as_deref().map(policy_with);
        if let Some(policy) = &policy {
            headers.retain(|(name, _)| *name != POLICY);
            headers.push((POLICY, policy));
        }
        headers.push(("Content-Type", self.content_type));
        match &self.etag {
            Some(etag) => headers.extend([("ETag", etag.as_str()), ("Cache-Control", "no-cache")]),
            None => headers.push(("Cache-Control", "no-store")),
        }
        response_head(self.status, &headers, length, keep_alive)
    }

    fn write(&self, stream: &mut impl Write, keep_alive: bool) -> io::Result<()> {
        let head = self.head(Some(self.body.len()), keep_alive);
        let mut bytes = head.into_bytes();
        bytes.extend_from_slice(&self.body);
        stream.write_all(&bytes)
    }
}

fn answer(shared: &Shared, head: &Head, body: &[u8]) -> Answer {
    let path = match shared.guard.check(head) {
        Ok(path) => path,
        Err(refused) => return Answer::status(refused.0),
    };
    match (head.method, path.strip_prefix("api/")) {
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
            match shared.current().add(&request) {
                Ok(value) => Answer::json(&value),
                Err(error) => Answer::problem(&error),
            }
        }
        (Method::Post, Some(name)) => shared.current().get().answer(name, body),
        (Method::Post, None) => Answer::status(404),
    }
}

/// Sends the page, and what it shows first as soon as that is known.
fn send_page(shared: &Shared, stream: &mut impl Write) -> io::Result<()> {
    // Files of a directory are sent one by one, as those built in are where the system has no random numbers.
    let nonce = shared.assets.is_none().then(kymo_io::random::<16>);
    let nonce = nonce
        .and_then(Result::ok)
        .map(|nonce| base64::encode(&nonce));
    let page = match &nonce {
        Some(nonce) => Page::served(nonce),
        None => match assets::find(assets::INDEX, shared.assets.as_deref()) {
            Some((_, bytes)) => Page::of_files(&String::from_utf8_lossy(&bytes)),
            None => return Answer::status(404).write(stream, false),
        },
    };
    let answer = Answer {
        content_type: assets::content_type(assets::INDEX),
        nonce,
        ..Answer::status(200)
    };
    // A browser prepares for the page meanwhile. What it would draw without a picture it draws only if that takes long.
    stream.write_all((answer.head(None, false) + &page.head).as_bytes())?;
    let is_slow = !shared.is_open_within(PAGE_PATIENCE);
    if is_slow {
        stream.write_all(page.body.as_bytes())?;
    }
    let first = data_element("first", &shared.current().get().first());
    let body = if is_slow { "" } else { &page.body };
    stream.write_all([body, &first, &page.end].concat().as_bytes())
}

/// A file of the page.
fn asset(shared: &Shared, head: &Head, path: &str) -> Answer {
    let found = match path {
        bundle::REST if shared.assets.is_none() => {
            Some((bundle::REST, Cow::Borrowed(bundle::rest().as_bytes())))
        }
        _ => assets::find(path, shared.assets.as_deref()),
    };
    let Some((name, bytes)) = found else {
        return Answer::status(404);
    };
    let etag = format!("\"{:016x}\"", fingerprint(&bytes));
    let is_known = head.if_none_match.as_deref() == Some(etag.as_str());
    Answer {
        status: if is_known { 304 } else { 200 },
        content_type: assets::content_type(name),
        etag: Some(etag),
        body: if is_known { Cow::Borrowed(b"") } else { bytes },
        nonce: None,
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
