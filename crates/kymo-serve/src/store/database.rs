//! A database: what is known of it, and the updates that are not yet in its file.

use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Instant;

use kymo_rrd::Time;
use kymo_rrd::model::Reading;
use kymo_time::CdTime;

use super::update::{Record, records};
use crate::sync::lock;

/// A database of a [`Store`](super::Store). Sources keep it, so that they look for it once.
#[derive(Debug)]
pub struct Database {
    path: Box<[u8]>,
    /// The writer that its updates go to.
    pub(super) writer: usize,
    /// What its values are, if it has one data source alone, which is measured.
    reading: Option<Reading>,
    pub(super) state: Mutex<State>,
    /// Signals that [`State::served`] has grown.
    pub(super) served: Condvar,
}

/// What changes.
#[derive(Debug)]
pub(super) struct State {
    /// Records, the oldest first.
    pub(super) pending: Vec<u8>,
    /// How many.
    pub(super) count: usize,
    /// When the oldest of them came.
    pub(super) since: Option<Instant>,
    /// The newest time.
    pub(super) last: Time,
    pub(super) interval: Option<CdTime>,
    /// Whether the writer will look at it when its time has come.
    pub(super) scheduled: bool,
    /// Whether the writer is asked to write them now.
    pub(super) urgent: bool,
    /// Whether the writer has taken updates and is not done with them.
    pub(super) writing: bool,
    /// Since when updates are kept in memory, if a client has asked for that.
    pub(super) suspended: Option<Instant>,
    /// Updates that were accepted and then lost to those of another program.
    pub(super) overtaken: u64,
    /// Whether it is the database of its path.
    pub(super) place: Place,
    /// How often the file was to be written, and how often it was or failed to be.
    pub(super) wanted: u64,
    pub(super) served: u64,
    /// Why it could not be written the last time.
    pub(super) failed: Option<String>,
}

/// Whether a database is that of its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// It is in the table: it takes updates, and they are written.
    Known,
    /// It may not be for long: it takes none, and none are written, until that is known.
    Held,
    /// It is not: those who keep it have to look for it again.
    Forgotten,
}

impl Database {
    pub(super) fn new(path: &[u8], writer: usize, last: Time, reading: Option<Reading>) -> Self {
        Self {
            path: path.into(),
            writer,
            reading,
            state: Mutex::new(State {
                pending: Vec::new(),
                count: 0,
                since: None,
                last,
                interval: None,
                scheduled: false,
                urgent: false,
                writing: false,
                suspended: None,
                overtaken: 0,
                place: Place::Known,
                wanted: 0,
                served: 0,
                failed: None,
            }),
            served: Condvar::new(),
        }
    }

    /// The path of its file, absolute.
    pub fn path(&self) -> &[u8] {
        &self.path
    }

    /// What its values are, if it has one data source alone, which is measured.
    pub fn reading(&self) -> Option<Reading> {
        self.reading
    }

    /// The newest time that was accepted, or else that of the file.
    pub fn last(&self) -> Time {
        self.state().last
    }

    /// The interval until the next update is expected, if a source has specified it.
    pub fn interval(&self) -> Option<CdTime> {
        self.state().interval
    }

    /// How many updates were accepted and then lost, since another program had written later ones to the file.
    pub fn overtaken(&self) -> u64 {
        self.state().overtaken
    }

    /// The updates that are not yet in the file, as `TIME:VALUE[:VALUE...]`.
    pub fn pending(&self) -> Vec<Vec<u8>> {
        let state = self.state();
        records(&state.pending)
            .map(|record| record.text())
            .collect()
    }

    /// How many they are.
    pub fn pending_count(&self) -> usize {
        self.state().count
    }

    /// When the oldest of them came.
    pub fn pending_since(&self) -> Option<Instant> {
        let state = self.state();
        state.since.filter(|_| state.count > 0)
    }

    /// Their bytes in memory.
    pub fn pending_bytes(&self) -> usize {
        self.state().pending.len()
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

impl State {
    /// Appends a record of a journal. They come in any order until they are [sorted](Self::sort).
    pub(super) fn push(&mut self, record: &Record<'_>) {
        self.pending.extend_from_slice(record.bytes);
        self.count += 1;
        self.since.get_or_insert_with(Instant::now);
    }

    /// Brings the records of a journal in order. What was carried over stands behind newer ones there,
    /// and may be there twice.
    pub(super) fn sort(&mut self) {
        let mut all: Vec<_> = records(&self.pending).collect();
        // Of the same microsecond the one that came last holds: one before it was refused.
        all.reverse();
        all.sort_by_key(|record| record.time.to_micros());
        all.dedup_by_key(|record| record.time.to_micros());
        let mut sorted = Vec::with_capacity(self.pending.len());
        for record in &all {
            sorted.extend_from_slice(record.bytes);
            self.last = record.time;
            self.interval = record.interval.or(self.interval);
        }
        self.count = all.len();
        self.pending = sorted;
    }
}
