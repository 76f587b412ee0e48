//! The connections that are open, and which of them closes where there is no room for another one.
//!
//! Whoever reaches the server can open connections without knowing the token, and browsers keep some that they do not use.
//! So a new connection takes the place of one that has asked nothing yet, else of one that waits for the next request.

use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Connections that are served at once.
pub(super) const MOST_CONNECTIONS: usize = 32;

/// Connections, in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Connections {
    list: Mutex<Vec<Open>>,
    /// Grows with each change.
    clock: AtomicU64,
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
    /// It has not shown the token yet, since this moment of the clock.
    New(u64),
    /// It waits for the next request, since this moment of the clock.
    Idle(u64),
    /// It is waiting for an answer.
    Busy,
}

/// The place of a connection, as long as it is open.
#[derive(Debug)]
pub(super) struct Place {
    of: Arc<Connections>,
    number: u64,
    is_known: bool,
}

impl Connections {
    fn lock(&self) -> MutexGuard<'_, Vec<Open>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::Relaxed)
    }

    /// Takes a connection, in the place of another one if there are too many; `None` if all of them wait for answers.
    pub(super) fn enter(of: &Arc<Self>, stream: &TcpStream) -> Option<Place> {
        let stream = stream.try_clone().ok()?;
        let number = of.now();
        let mut list = of.lock();
        if list.len() >= MOST_CONNECTIONS {
            let waiting = list
                .iter()
                .enumerate()
                .filter(|(_, open)| open.state != State::Busy);
            let (at, _) = waiting.min_by_key(|(_, open)| open.state)?;
            // Its thread sees the end.
            let _ = list.remove(at).stream.shutdown(Shutdown::Both);
        }
        list.push(Open {
            number,
            stream,
            state: State::New(number),
        });
        drop(list);
        Some(Place {
            of: Arc::clone(of),
            number,
            is_known: false,
        })
    }
}

impl Place {
    fn set(&self, state: State) {
        let mut list = self.of.lock();
        if let Some(open) = list.iter_mut().find(|open| open.number == self.number) {
            open.state = state;
        }
    }

    /// Whether a request has had an answer, so that the other side knows the token.
    pub(super) fn is_known(&self) -> bool {
        self.is_known
    }

    /// A request has begun.
    pub(super) fn asked(&self) {
        self.set(match self.is_known {
            true => State::Busy,
            false => State::New(self.of.now()),
        });
    }

    /// A request was answered; `is_known` says whether it had the token.
    pub(super) fn answered(&mut self, is_known: bool) {
        self.is_known |= is_known;
        if self.is_known {
            self.set(State::Idle(self.of.now()));
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.of.lock().retain(|open| open.number != self.number);
    }
}
