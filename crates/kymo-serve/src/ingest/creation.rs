//! Databases of names that datagrams have brought, created by a thread of its own: to create one takes a thousand times
//! as long as to decode a list, and a sender of many new names would hold up all others.

use std::collections::VecDeque;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use super::{IngestState, Series};
use crate::sync::lock;

/// Bytes of updates that wait for databases of one name, and of all.
pub(super) const MOST_OF_ONE: usize = 1 << 14;
pub(super) const MOST_OF_ALL: usize = 32 << 20;
/// How often it is looked whether to end.
const PATIENCE: Duration = Duration::from_millis(500);

/// Names that wait for their databases.
#[derive(Debug, Default)]
pub(super) struct Creation {
    waiting: Mutex<VecDeque<Arc<Series>>>,
    changed: Condvar,
}

impl Creation {
    /// Has the database of a name created.
    pub(super) fn push(&self, series: Arc<Series>) {
        lock(&self.waiting).push_back(series);
        self.changed.notify_one();
    }

    /// How many wait.
    pub(super) fn len(&self) -> usize {
        lock(&self.waiting).len()
    }

    /// The next name. `None` if there is none for a while.
    fn next(&self) -> Option<Arc<Series>> {
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

impl IngestState {
    /// Creates databases until nothing more comes.
    pub(super) fn create_databases(self: &Arc<Self>) {
        loop {
            match self.creation.next() {
                Some(series) => series.create_database(&self.latest()),
                None if self.ends.load(Relaxed) => return,
                None => {}
            }
        }
    }
}
