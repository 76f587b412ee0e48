//! Writing before the time has come, and not at all for a while.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use super::database::State;
use super::{Database, Flushed, Store};
use crate::sync::wait;

impl Store {
    /// Writes what is pending of a database, and waits for it.
    pub fn flush(&self, database: &Arc<Database>) -> Flushed {
        self.counters.flushes.fetch_add(1, Relaxed);
        let mut state = database.state();
        if state.suspended.is_some() || (state.count == 0 && !state.writing) {
            return Flushed::Nothing;
        }
        state.wanted += 1;
        let wanted = state.wanted;
        if !state.urgent {
            state.urgent = true;
            self.queues[database.writer].write(database, true);
        }
        while state.served < wanted {
            state = wait(&database.served, state);
        }
        match &state.failed {
            Some(reason) => Flushed::Failed(reason.clone()),
            None => Flushed::Written,
        }
    }

    /// Has everything written that is pending, and does not wait for it.
    pub fn flush_all(&self) {
        for database in self.databases() {
            let mut state = database.state();
            if state.count > 0 && state.suspended.is_none() && !state.urgent {
                state.urgent = true;
                self.queues[database.writer].write(&database, false);
            }
        }
    }

    /// The same, and waits until each was written or could not be.
    pub fn flush_all_and_wait(&self) {
        self.flush_all();
        let (report, reported) = channel();
        self.queues
            .iter()
            .for_each(|queue| queue.report(report.clone()));
        drop(report);
        // Each writer reports once.
        reported.iter().for_each(drop);
    }

    /// Keeps the updates of a database in memory until it is [resumed](Self::resume), or a limit is reached: of
    /// [time](super::Options::suspend_limit), or of memory. Returns whether it was not suspended before.
    pub fn suspend(&self, database: &Arc<Database>) -> bool {
        let mut state = database.state();
        let is_new = state.suspended.is_none();
        if is_new {
            let now = Instant::now();
            state.suspended = Some(now);
            // The writer looks at it then.
            self.queues[database.writer].schedule(database, now + self.options.suspend_limit);
        }
        is_new
    }

    /// Has the updates of a database written again. Returns whether it was suspended.
    pub fn resume(&self, database: &Arc<Database>) -> bool {
        let mut state = database.state();
        let was = state.suspended.take().is_some();
        if was && state.count > 0 && !state.scheduled {
            self.schedule(database, &mut state, self.timeout(database));
        }
        was
    }

    /// Ends a suspension that no client has ended.
    pub(super) fn end_suspension(&self, database: &Arc<Database>, state: &mut State, reason: &str) {
        state.suspended = None;
        self.counters.suspensions_ended.fetch_add(1, Relaxed);
        let path = String::from_utf8_lossy(database.path());
        self.log_limiter
            .report(format_args!("{path}: suspended no longer: {reason}"));
        if state.count > 0 && !state.scheduled {
            self.schedule(database, state, Duration::ZERO);
        }
    }

    /// Writes everything because memory is short; what is suspended, too.
    pub(super) fn relieve(&self) {
        for database in self.databases() {
            let mut state = database.state();
            if state.suspended.is_some() && state.count > 0 {
                self.end_suspension(&database, &mut state, "memory is short");
            }
        }
        self.flush_all();
    }

    /// Suspends all known databases, and returns how many were not suspended before.
    pub fn suspend_all(&self) -> usize {
        let databases = self.databases().into_iter();
        databases.filter(|database| self.suspend(database)).count()
    }

    /// Resumes writing the updates of all databases, and returns how many were suspended.
    pub fn resume_all(&self) -> usize {
        let databases = self.databases().into_iter();
        databases.filter(|database| self.resume(database)).count()
    }
}
