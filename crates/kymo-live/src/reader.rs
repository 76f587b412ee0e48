//! A connection to a relay daemon, and the thread that keeps asking.

mod connection;
mod link;
mod status;
mod work;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::message::{ProtocolError, Session};
use crate::spool::Spool;
use crate::url::Url;
use crate::viewer::{Viewer, ViewerOptions};

pub use status::{Status, StreamStatus};

use link::Link;
use work::Work;

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
            Self::Connect { url, error } => {
                write!(f, "cannot connect to `{url}`: {}", kymo_io::reason(error))
            }
            Self::Lost { url, error } => write!(
                f,
                "lost the connection to `{url}`: {}",
                kymo_io::reason(error)
            ),
            Self::Protocol { url, error } => write!(f, "{url}: {error}"),
            Self::NoSession { url, .. } => {
                write!(f, "the relay daemon has no session `{url}`")
            }
            Self::Refused { url, reason } => write!(f, "cannot attach to `{url}`: {reason}"),
            Self::Write(error) => write!(
                f,
                "cannot store what the relay daemon sends: {}",
                kymo_io::reason(error)
            ),
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
    /// The session does not exist, or it cannot be attached. The [status](Self::status) reports later errors.
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
