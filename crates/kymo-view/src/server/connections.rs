//! The open connections, and which of them closes when there is no room for another one.
//!
//! Whoever reaches the server can open connections without knowing the token, and browsers keep some that they do not use.
//! So a new connection takes the place of one that waits for the next request; or, if many have asked nothing yet, of one of
//! these. It waits only if all of them wait for answers, which needs the token.

use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Connections that are served at once.
///
/// Browsers open six for each page.
pub(super) const MOST_CONNECTIONS: usize = 64;

/// How long a connection keeps its place though others wait: a request may be on its way.
const GRACE: Duration = Duration::from_millis(250);

/// How long another one waits for a place at most.
const PATIENCE: Duration = Duration::from_secs(2);

/// Connections, in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Connections {
    list: Mutex<List>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct List {
    open: Vec<Open>,
    /// How many have come.
    count: u64,
}

#[derive(Debug)]
struct Open {
    number: u64,
    stream: TcpStream,
    state: State,
}

/// What a connection is doing. Those that are needed least come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum State {
    /// It has not shown the token, since then.
    New(Instant),
    /// It waits for the next request, since then.
    Idle(Instant),
    /// It is waiting for an answer.
    Busy,
}

/// The place of a connection, as long as it is open.
#[derive(Debug)]
pub(super) struct Place {
    connections: Arc<Connections>,
    number: u64,
    is_known: bool,
}

impl State {
    fn is_new(self) -> bool {
        matches!(self, Self::New(_))
    }

    /// Whether it gives way to others now: those without the token if they are many, else those that wait for the next
    /// request. Browsers open some without need, and use them later: closing these would fail a request.
    fn gives_way(self, are_many_new: bool, is_last: bool) -> bool {
        match self {
            Self::New(since) => is_last || (are_many_new && since.elapsed() >= GRACE),
            Self::Idle(since) => is_last || (!are_many_new && since.elapsed() >= GRACE),
            Self::Busy => false,
        }
    }
}

impl Connections {
    fn lock(&self) -> MutexGuard<'_, List> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Accepts a connection, in place of another one if there are too many; `None` if all of them wait for answers.
    pub(super) fn enter(connections: &Arc<Self>, stream: &TcpStream) -> Option<Place> {
        let stream = stream.try_clone().ok()?;
        let from = Instant::now();
        let mut list = connections.lock();
        while list.open.len() >= MOST_CONNECTIONS {
            let is_last = from.elapsed() >= PATIENCE;
            let new = list.open.iter().filter(|open| open.state.is_new()).count();
            let are_many_new = new > MOST_CONNECTIONS / 2;
            let waiting = list.open.iter().enumerate();
            let waiting = waiting.filter(|(_, open)| open.state.gives_way(are_many_new, is_last));
            match waiting.min_by_key(|(_, open)| open.state) {
                Some((at, _)) => {
                    // Its thread sees the end.
                    let _ = list.open.remove(at).stream.shutdown(Shutdown::Both);
                }
                None if is_last => return None,
                None => {
                    let waited = connections.changed.wait_timeout(list, GRACE / 4);
                    list = waited.unwrap_or_else(PoisonError::into_inner).0;
                }
            }
        }
        list.count += 1;
        let number = list.count;
        list.open.push(Open {
            number,
            stream,
            state: State::New(Instant::now()),
        });
        drop(list);
        Some(Place {
            connections: Arc::clone(connections),
            number,
            is_known: false,
        })
    }
}

impl Place {
    fn set(&self, state: State) {
        let mut list = self.connections.lock();
        let mut open = list.open.iter_mut();
        if let Some(open) = open.find(|open| open.number == self.number) {
            open.state = state;
        }
        drop(list);
        self.connections.changed.notify_all();
    }

    /// Whether a request has shown the token.
    pub(super) fn is_known(&self) -> bool {
        self.is_known
    }

    /// Whether others may soon need this place. Whoever hears so with the answer opens another connection for the next
    /// request, where a connection that just ends could fail it.
    pub(super) fn is_crowded(&self) -> bool {
        self.connections.lock().open.len() > MOST_CONNECTIONS / 2
    }

    /// A request has come that has the token, and gets an answer.
    pub(super) fn asked(&mut self) {
        self.is_known = true;
        self.set(State::Busy);
    }

    /// The answer was sent.
    pub(super) fn answered(&self) {
        if self.is_known {
            self.set(State::Idle(Instant::now()));
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.connections
            .lock()
            .open
            .retain(|open| open.number != self.number);
        self.connections.changed.notify_all();
    }
}
