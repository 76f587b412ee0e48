//! Databases of names that came without anybody waiting for an answer, created by a thread of its own: to create one takes a thousand times
//! as long as to decode a list, and a sender of many new names would hold up all others.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use crate::sync::lock;

/// Bytes of updates that wait for databases of one name, and of all.
pub(crate) const MOST_OF_ONE: usize = 1 << 14;
pub(crate) const MOST_OF_ALL: usize = 32 << 20;
/// How often it is looked whether to end.
const PATIENCE: Duration = Duration::from_millis(500);

/// Names that wait for their databases.
#[derive(Debug)]
pub(crate) struct Creation<T> {
    waiting: Mutex<VecDeque<T>>,
    changed: Condvar,
}

impl<T> Default for Creation<T> {
    fn default() -> Self {
        Self {
            waiting: Mutex::default(),
            changed: Condvar::new(),
        }
    }
}

impl<T> Creation<T> {
    /// Has the database of a name created.
    pub(crate) fn push(&self, series: T) {
        lock(&self.waiting).push_back(series);
        self.changed.notify_one();
    }

    /// How many wait.
    pub(crate) fn len(&self) -> usize {
        lock(&self.waiting).len()
    }

    /// The next name. `None` if there is none for a while.
    pub(crate) fn next(&self) -> Option<T> {
        let waiting = lock(&self.waiting);
        let waited = self
            .changed
            .wait_timeout_while(waiting, PATIENCE, |waiting| waiting.is_empty());
        let mut waiting = match waited {
            Ok((waiting, _)) => waiting,
            Err(poisoned) => poisoned.into_inner().0,
        };
        waiting.pop_front()
    }
}
