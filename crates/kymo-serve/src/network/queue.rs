//! Datagrams that wait to be decoded.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::listener::Listener;

/// Datagrams of a listener that were received together.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) listener: Arc<Listener>,
    bytes: Vec<u8>,
    /// Of each the sender, and where it ends.
    ends: Vec<(SocketAddr, usize)>,
}

impl Batch {
    pub(super) fn new(listener: &Arc<Listener>) -> Self {
        Self {
            listener: Arc::clone(listener),
            bytes: Vec::new(),
            ends: Vec::new(),
        }
    }

    pub(super) fn push(&mut self, sender: SocketAddr, datagram: &[u8]) {
        self.bytes.extend_from_slice(datagram);
        self.ends.push((sender, self.bytes.len()));
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The memory it takes.
    pub(super) fn size(&self) -> usize {
        self.bytes.len() + self.ends.len() * size_of::<(SocketAddr, usize)>()
    }

    pub(super) fn datagrams(&self) -> impl Iterator<Item = (SocketAddr, &[u8])> {
        let mut begin = 0;
        self.ends.iter().map(move |(sender, end)| {
            let datagram = &self.bytes[begin..*end];
            begin = *end;
            (*sender, datagram)
        })
    }
}

/// A bounded queue of batches for a worker.
#[derive(Debug)]
pub(super) struct Queue {
    room: usize,
    bytes: AtomicUsize,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    batches: VecDeque<Batch>,
    has_ended: bool,
}

impl Queue {
    pub(super) fn new(room: usize) -> Self {
        Self {
            room,
            bytes: AtomicUsize::new(0),
            state: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes that wait.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Relaxed)
    }

    /// Adds a batch. Returns whether there was room for it.
    pub(super) fn push(&self, batch: Batch) -> bool {
        let size = batch.size();
        let mut state = self.state();
        if !state.batches.is_empty() && self.bytes.load(Relaxed) + size > self.room {
            return false;
        }
        self.bytes.fetch_add(size, Relaxed);
        state.batches.push_back(batch);
        drop(state);
        self.changed.notify_one();
        true
    }

    /// The next batch, which is waited for; `None` when all have been taken and no more will come.
    pub(super) fn take(&self) -> Option<Batch> {
        let mut state = self.state();
        loop {
            if let Some(batch) = state.batches.pop_front() {
                self.bytes.fetch_sub(batch.size(), Relaxed);
                return Some(batch);
            }
            if state.has_ended {
                return None;
            }
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// No more will come.
    pub(super) fn end(&self) {
        self.state().has_ended = true;
        self.changed.notify_all();
    }
}
