//! A connection to a relay daemon, and the thread that keeps asking.

mod connection;
mod status;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::message::{ProtocolError, Session};
use crate::spool::{Spool, StreamName};
use crate::url::{Target, Url};
use crate::viewer::{Position, Viewer, ViewerEvent, ViewerOptions};
use connection::Connection;

pub use status::{Status, StreamStatus};

/// The pause of the thread where nothing is due, and how soon it sees that it is to end.
const NAP: Duration = Duration::from_millis(50);
/// The longest wait for a connection, and for the whole reply to a request.
const REPLY_PATIENCE: Duration = Duration::from_secs(60);
/// So long a relay daemon is looked for that was there and is not.
const RECONNECT_PATIENCE: Duration = Duration::from_secs(30);
/// The pause before another attempt.
const RECONNECT_PAUSE: Duration = Duration::from_millis(500);
/// So long detaching may take: the connection is closed then.
const DETACH_PATIENCE: Duration = Duration::from_secs(2);
/// How often a session is looked for that is not there yet.
const LOOK_PAUSE: Duration = Duration::from_secs(1);

/// Why sessions cannot be read.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The relay daemon cannot be reached.
    Connect {
        /// Where it is looked for.
        url: Url,
        /// Why.
        error: io::Error,
    },
    /// The connection was lost, and there is no other one.
    Lost {
        /// Where it was.
        url: Url,
        /// Why.
        error: io::Error,
    },
    /// It does not follow the protocol.
    Protocol {
        /// Where it is.
        url: Url,
        /// What it does.
        error: ProtocolError,
    },
    /// The relay daemon has no such session.
    NoSession {
        /// The session.
        url: Url,
        /// Those that it has.
        sessions: Vec<Session>,
    },
    /// The session cannot be attached.
    Refused {
        /// The session.
        url: Url,
        /// Why.
        reason: &'static str,
    },
    /// What has come cannot be written.
    Write(io::Error),
    /// There is no room for incoming data.
    Full {
        /// The session.
        url: Url,
        /// The bytes that there may be.
        limit: u64,
    },
    /// The session was not attached in the time that was set.
    Late {
        /// The session.
        url: Url,
    },
    /// The reading was interrupted before anything had come.
    Interrupted,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connect { url, error } => write!(f, "cannot connect to `{url}`: {error}"),
            Self::Lost { url, error } => write!(f, "lost the connection to `{url}`: {error}"),
            Self::Protocol { url, error } => write!(f, "{url}: {error}"),
            Self::NoSession { url, .. } => {
                write!(f, "the relay daemon has no session `{url}`")
            }
            Self::Refused { url, reason } => write!(f, "cannot attach to `{url}`: {reason}"),
            Self::Write(error) => write!(f, "cannot store what the relay daemon sends: {error}"),
            Self::Full { url, limit } => write!(
                f,
                "what `{url}` sends is larger than temporary files may be ({limit} bytes)"
            ),
            Self::Late { url } => {
                write!(
                    f,
                    "`{url}` was not attached before the time to read it ended"
                )
            }
            Self::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl std::error::Error for Error {}

/// How sessions are read.
#[derive(Clone, Debug)]
pub struct ReaderOptions {
    /// How the relay daemon is asked.
    pub viewer: ViewerOptions,
    /// Whether a session that is not there yet is waited for.
    pub waits: bool,
    /// Until when the session has to be attached; then the opening fails. If `None`, it may take any time.
    pub opens_until: Option<Instant>,
    /// Bytes that may have come and not be [consumed](Reader::consumed); then nothing is asked for.
    pub ahead: u64,
    /// Bytes of all files, those that were consumed included only where the caller does not
    /// [give them back](Reader::consumed).
    pub limit: u64,
}

/// The sessions that a relay daemon has.
///
/// # Errors
///
/// It cannot be reached, or does not follow the protocol.
pub fn list_sessions(url: &Url, stop: &AtomicBool) -> Result<Vec<Session>, Error> {
    let mut link = Link::new(url, Viewer::new(ViewerOptions::default()), stop)?;
    link.sessions(None, stop)
}

/// A connection and what is asked over it.
struct Link {
    url: Url,
    connection: Connection,
    viewer: Viewer,
    begun: Instant,
    /// When the request was sent that waits for its reply.
    asked: Instant,
}

/// What a step has brought.
enum Step {
    /// Something, or a request was sent.
    Busy,
    /// Nothing is due.
    Idle,
}

impl Link {
    fn new(url: &Url, viewer: Viewer, stop: &AtomicBool) -> Result<Self, Error> {
        let connection = Connection::new(url, stop).map_err(|error| Error::Connect {
            url: url.clone(),
            error,
        })?;
        Ok(Self {
            url: url.clone(),
            connection,
            viewer,
            begun: Instant::now(),
            asked: Instant::now(),
        })
    }

    /// Sends what is due, and takes what has come, waiting for a nap at most.
    fn step(&mut self) -> Result<Step, Error> {
        let lost = |url: &Url, error| Error::Lost {
            url: url.clone(),
            error,
        };
        if let Some(request) = self.viewer.next_request(self.begun.elapsed()) {
            self.connection
                .send(&request)
                .map_err(|error| lost(&self.url, error))?;
            self.asked = Instant::now();
        }
        if !self.viewer.is_waiting() {
            return Ok(Step::Idle);
        }
        match self.connection.receive(NAP) {
            Ok(Some(bytes)) => {
                let now = self.begun.elapsed();
                self.viewer
                    .receive(now, bytes)
                    .map_err(|error| Error::Protocol {
                        url: self.url.clone(),
                        error,
                    })?;
            }
            Ok(None) => {}
            Err(error) => return Err(lost(&self.url, error)),
        }
        if self.viewer.is_waiting() && self.asked.elapsed() > REPLY_PATIENCE {
            return Err(lost(&self.url, io::ErrorKind::TimedOut.into()));
        }
        Ok(Step::Busy)
    }

    /// Lists sessions.
    fn sessions(
        &mut self,
        until: Option<Instant>,
        stop: &AtomicBool,
    ) -> Result<Vec<Session>, Error> {
        self.viewer.list();
        loop {
            if stop.load(Ordering::Relaxed) {
                return Err(Error::Interrupted);
            }
            if until.is_some_and(|until| Instant::now() >= until) {
                return Err(Error::Late {
                    url: self.url.clone(),
                });
            }
            self.step()?;
            while let Some(event) = self.viewer.next_event() {
                if let ViewerEvent::Sessions(sessions) = event {
                    return Ok(sessions);
                }
            }
        }
    }

    /// Attaches the sessions of the URL; with `waits`, when they are there.
    fn attach(
        &mut self,
        waits: bool,
        until: Option<Instant>,
        stop: &AtomicBool,
    ) -> Result<(), Error> {
        loop {
            let sessions = self.sessions(until, stop)?;
            let is_wanted = |session: &&Session| match &self.url.target {
                Some(Target {
                    host,
                    session: name,
                }) => session.host == *host && session.name == *name,
                None => false,
            };
            let wanted: Vec<u64> = sessions.iter().filter(is_wanted).map(|it| it.id).collect();
            if !wanted.is_empty() {
                wanted.into_iter().for_each(|id| self.viewer.attach(id));
                return Ok(());
            }
            if !waits {
                return Err(Error::NoSession {
                    url: self.url.clone(),
                    sessions,
                });
            }
            nap(LOOK_PAUSE, stop);
        }
    }
}

/// Sleeps, unless that is to end.
fn nap(pause: Duration, stop: &AtomicBool) {
    let begun = Instant::now();
    while begun.elapsed() < pause && !stop.load(Ordering::Relaxed) {
        std::thread::sleep(NAP.min(pause));
    }
}

/// What the thread and its user share.
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    stop: Arc<AtomicBool>,
}

#[derive(Default)]
struct State {
    status: Status,
    /// Bytes that were consumed.
    consumed: u64,
    /// Bytes that were given back to the file system.
    freed: u64,
    /// Bytes that may have come and not be consumed.
    ahead: u64,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A session that is being read, into the files of a directory.
///
/// Dropping it detaches the session and ends the thread.
pub struct Reader {
    url: Url,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader")
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

impl Reader {
    /// Attaches the session of a URL and reads it into a directory, which exists and is empty, until the session
    /// ends or `stop` is set.
    ///
    /// # Errors
    ///
    /// There is no such session, or it cannot be attached. The [status](Self::status) reports later errors.
    pub fn open(
        url: &Url,
        directory: &Path,
        options: ReaderOptions,
        stop: Arc<AtomicBool>,
    ) -> Result<Self, Error> {
        let mut link = Link::new(url, Viewer::new(options.viewer.clone()), &stop)?;
        link.attach(options.waits, options.opens_until, &stop)?;
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                ahead: options.ahead,
                ..State::default()
            }),
            changed: Condvar::new(),
            stop,
        });
        let mut work = Work {
            shared: Arc::clone(&shared),
            spool: Spool::new(directory),
            known: options.viewer.known.clone(),
            options,
            streams: BTreeMap::new(),
            sessions: BTreeSet::new(),
            metadata_sent: BTreeMap::new(),
        };
        let name = "live".to_string();
        let thread = std::thread::Builder::new().name(name).spawn(move || {
            let result = work.run(link);
            let mut state = work.shared.lock();
            state.status.is_ended = true;
            state.status.error = result.err();
            state.status.generation += 1;
            drop(state);
            work.shared.changed.notify_all();
        });
        Ok(Self {
            url: url.clone(),
            shared,
            thread: Some(thread.map_err(Error::Write)?),
        })
    }

    /// What is read.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// How far it is.
    pub fn status(&self) -> Status {
        self.shared.lock().status.snapshot()
    }

    /// Waits until nothing more comes, or for a while.
    pub fn wait_for_end(&self, most: Duration) {
        let state = self.shared.lock();
        let is_going = |state: &mut State| !state.status.is_ended;
        drop(
            self.shared
                .changed
                .wait_timeout_while(state, most, is_going),
        );
    }

    /// Records that `bytes` bytes of the files were read, of which `freed` were given back to the file system.
    pub fn consumed(&self, bytes: u64, freed: u64) {
        let mut state = self.shared.lock();
        state.consumed += bytes;
        state.freed += freed;
        state.status.is_full = false;
        drop(state);
        self.shared.changed.notify_all();
    }

    /// Sets the bytes that may have come and not be consumed.
    pub fn set_ahead(&self, ahead: u64) {
        self.shared.lock().ahead = ahead;
    }

    /// Takes the messages that are to be shown to people.
    pub fn take_notes(&self) -> Vec<String> {
        std::mem::take(&mut self.shared.lock().status.notes)
    }

    /// Takes why the reading has ended before its end.
    pub fn take_error(&self) -> Option<Error> {
        self.shared.lock().status.error.take()
    }

    /// Detaches the session: nothing more comes.
    pub fn detach(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // It panics only where a limit was forgotten: what has come is there all the same.
            let _ = thread.join();
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.detach();
    }
}

/// What the thread works with.
struct Work {
    shared: Arc<Shared>,
    spool: Spool,
    options: ReaderOptions,
    /// The last packet of each stream that is stored.
    known: BTreeMap<StreamName, Position>,
    /// Streams of this connection, by number: their place in the status.
    streams: BTreeMap<u64, (usize, StreamName)>,
    /// Sessions that are attached.
    sessions: BTreeSet<u64>,
    /// Bytes of metadata that have come over this connection, by file.
    metadata_sent: BTreeMap<PathBuf, u64>,
}

impl Work {
    /// Reads until all sessions have ended.
    fn run(&mut self, mut link: Link) -> Result<(), Error> {
        let stop = Arc::clone(&self.shared.stop);
        let mut detaching: Option<Instant> = None;
        loop {
            if stop.load(Ordering::Relaxed) && detaching.is_none() {
                detaching = Some(Instant::now());
                link.viewer.detach();
            }
            if let Some(begun) = detaching
                && (self.sessions.is_empty() || begun.elapsed() > DETACH_PATIENCE)
            {
                return Ok(());
            }
            if detaching.is_none() && !self.has_room()? {
                continue;
            }
            let step = match link.step() {
                Ok(step) => step,
                Err(Error::Lost { error, .. }) if detaching.is_none() => {
                    link = self.reconnect(&link.url, error)?;
                    continue;
                }
                Err(Error::Lost { .. }) => return Ok(()),
                Err(error) => return Err(error),
            };
            let mut ended = false;
            while let Some(event) = link.viewer.next_event() {
                ended |= matches!(
                    event,
                    ViewerEvent::SessionEnded { .. } | ViewerEvent::Detached { .. }
                );
                self.event(&link.url, event)?;
            }
            if ended && self.sessions.is_empty() {
                return Ok(());
            }
            if matches!(step, Step::Idle) {
                let due = link.viewer.deadline();
                let wait = due.map_or(NAP, |due| due.saturating_sub(link.begun.elapsed()));
                std::thread::sleep(wait.clamp(Duration::from_millis(1), NAP));
            }
        }
    }

    /// Whether more may come; waits a while if not.
    fn has_room(&self) -> Result<bool, Error> {
        let mut state = self.shared.lock();
        if state.status.bytes - state.freed.min(state.status.bytes) > self.options.limit {
            let url = state.status.url.clone();
            let limit = self.options.limit;
            return Err(url.map_or(Error::Interrupted, |url| Error::Full { url, limit }));
        }
        let waiting = state.status.bytes.saturating_sub(state.consumed);
        if waiting <= state.ahead {
            return Ok(true);
        }
        if !state.status.is_full {
            state.status.is_full = true;
            state.status.generation += 1;
        }
        drop(self.shared.changed.wait_timeout(state, NAP));
        Ok(false)
    }

    /// Connects again, and goes on behind what is known.
    fn reconnect(&mut self, url: &Url, why: io::Error) -> Result<Link, Error> {
        self.note(format!(
            "lost the connection to `{url}` ({why}); connecting again"
        ));
        let begun = Instant::now();
        let stop = Arc::clone(&self.shared.stop);
        self.streams.clear();
        self.sessions.clear();
        self.metadata_sent.clear();
        loop {
            let options = ViewerOptions {
                known: self.known.clone(),
                // What has come meanwhile is not to be missed.
                seek: crate::Seek::Beginning,
                ..self.options.viewer.clone()
            };
            let connected = Link::new(url, Viewer::new(options), &stop)
                .and_then(|mut link| link.attach(false, None, &stop).map(|()| link));
            match connected {
                Ok(link) => return Ok(link),
                Err(Error::Connect { .. } | Error::Lost { .. })
                    if begun.elapsed() < RECONNECT_PATIENCE && !stop.load(Ordering::Relaxed) => {}
                Err(Error::Connect { error, .. }) => {
                    let url = url.clone();
                    return Err(Error::Lost { url, error });
                }
                Err(error) => return Err(error),
            }
            nap(RECONNECT_PAUSE, &stop);
        }
    }

    fn note(&self, note: String) {
        self.shared.lock().status.note(note);
    }

    fn event(&mut self, url: &Url, event: ViewerEvent) -> Result<(), Error> {
        match event {
            ViewerEvent::Stream(info) => {
                let file = self
                    .spool
                    .file(&info.name, info.is_metadata)
                    .map_err(Error::Write)?;
                let place = self.shared.lock().status.stream(&info, file);
                self.streams.insert(info.id, (place, info.name));
            }
            ViewerEvent::Metadata { stream, bytes } => self.metadata(stream, &bytes)?,
            ViewerEvent::Packet {
                stream,
                index,
                bytes,
            } => {
                let Some((place, name)) = self.streams.get(&stream) else {
                    return Ok(());
                };
                let path = self.shared.lock().status.streams[*place].file.path.clone();
                self.spool.append(&path, &bytes).map_err(Error::Write)?;
                let (begin, end) = (index.begin, index.end);
                self.known.insert(name.clone(), Position { begin, end });
                self.shared
                    .lock()
                    .status
                    .packet(*place, &index, bytes.len() as u64);
                self.shared.changed.notify_all();
            }
            ViewerEvent::Known { stream, index } => {
                self.frontier(stream, |of| of.reached(index.end));
            }
            ViewerEvent::Lost {
                stream,
                index,
                reason,
            } => {
                self.frontier(stream, |of| {
                    of.reached(index.end);
                    of.lost_packets += 1;
                });
                if let Some((_, name)) = self.streams.get(&stream) {
                    let mut state = self.shared.lock();
                    state.status.lost_packets += 1;
                    state.status.note(format!(
                        "a packet of `{}/{}` is lost: {reason}",
                        name.path, name.channel
                    ));
                }
            }
            ViewerEvent::Inactive { stream, until } => {
                self.frontier(stream, |of| {
                    of.reached(until);
                    of.is_idle = true;
                });
            }
            ViewerEvent::Waiting { stream } => {
                self.frontier(stream, |of| {
                    of.waiting_since.get_or_insert_with(Instant::now);
                    of.is_idle = true;
                });
            }
            ViewerEvent::Ended { stream, is_error } => {
                self.frontier(stream, |of| of.is_ended = true);
                if is_error && let Some((_, name)) = self.streams.get(&stream) {
                    self.note(format!(
                        "the relay daemon ends the stream `{}/{}` with an error",
                        name.path, name.channel
                    ));
                }
                self.shared.changed.notify_all();
            }
            ViewerEvent::Attached { session } => {
                self.sessions.insert(session);
                self.shared.lock().status.url = Some(url.clone());
            }
            ViewerEvent::Refused { reason, .. } => {
                return Err(Error::Refused {
                    url: url.clone(),
                    reason,
                });
            }
            ViewerEvent::SessionEnded { session } | ViewerEvent::Detached { session } => {
                self.sessions.remove(&session);
            }
            ViewerEvent::Connected { .. } | ViewerEvent::Sessions(_) => {}
        }
        Ok(())
    }

    /// Changes what is known of a stream.
    fn frontier(&self, stream: u64, change: impl FnOnce(&mut StreamStatus)) {
        if let Some((place, _)) = self.streams.get(&stream) {
            let mut state = self.shared.lock();
            state.status.generation += 1;
            change(&mut state.status.streams[*place]);
        }
    }

    /// Stores metadata. After a new connection all of it comes again, and so it does when the tracer has made it
    /// again.
    fn metadata(&mut self, stream: u64, bytes: &[u8]) -> Result<(), Error> {
        let Some((place, _)) = self.streams.get(&stream) else {
            return Ok(());
        };
        let path = self.shared.lock().status.streams[*place].file.path.clone();
        let sent = self.metadata_sent.entry(path.clone()).or_default();
        if begins_metadata(bytes) {
            *sent = 0;
        }
        let old = match std::fs::read(&path) {
            Ok(old) => old,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(Error::Write(error)),
        };
        let begin = usize::try_from(*sent).unwrap_or(usize::MAX).min(old.len());
        *sent += bytes.len() as u64;
        let rest = &old[begin..];
        let written = match bytes.strip_prefix(rest) {
            Some(new) => self.spool.append(&path, new),
            // It is there already.
            None if rest.starts_with(bytes) => Ok(()),
            None => {
                let whole = [&old[..begin], bytes].concat();
                self.spool.replace(&path, &whole)
            }
        };
        written.map_err(Error::Write)?;
        let mut state = self.shared.lock();
        state.status.generation += 1;
        state.status.metadata += 1;
        drop(state);
        self.shared.changed.notify_all();
        Ok(())
    }
}

/// The size of the head of a metadata packet.
const METADATA_HEAD: usize = 37;

/// Whether metadata begins here: of TSDL, in packets or as text, or of CTF 2.
fn begins_metadata(bytes: &[u8]) -> bool {
    let is_tsdl = |text: &[u8]| text.starts_with(b"/* CTF ");
    let behind_head = bytes.get(METADATA_HEAD..).unwrap_or_default();
    let begin = &bytes[..bytes.len().min(256)];
    let is_ctf2 =
        begin.first() == Some(&0x1e) && begin.windows(10).any(|part| part == b"\"preamble\"");
    is_tsdl(bytes) || is_tsdl(behind_head) || is_ctf2
}
