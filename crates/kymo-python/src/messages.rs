//! The iterator over events, and over what else recordings report between them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::ThreadId;

use kymo::filter::Filter;
use kymo::pipeline::{self, Watched};
use kymo::timeline::Timeline;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;

use crate::errors::{self, Error};
use crate::events::{Batch, Message};
use crate::forks::{self, Ahead, forked};
use crate::frames::{Frames, Part, Sender};
use crate::truncated::Truncations;

/// Events one by one, in the order of time.
#[pyclass(frozen, module = "kymo._kymo")]
pub(crate) struct Messages {
    strict: bool,
    truncations: Truncations,
    forks: u32,
    /// The thread that waits for the next part: a warning or a signal may run code that asks for the next event.
    waits: Mutex<Option<ThreadId>>,
    source: Mutex<MessageSource>,
}

struct MessageSource {
    parts: Ahead<Part>,
    /// The messages in hand, and where the next one begins.
    batch: Arc<Batch>,
    next: usize,
    is_at_end: bool,
}

impl MessageSource {
    /// The next message in hand.
    #[inline]
    fn in_hand(&mut self) -> Option<Message> {
        let (message, next) = self.batch.message(self.next)?;
        self.next = next;
        Some(message)
    }
}

impl Messages {
    pub(crate) fn new(
        timeline: Timeline,
        filter: Filter,
        threads: usize,
        limit: Option<u64>,
        (has_structure, strict): (bool, bool),
        truncations: Truncations,
    ) -> PyResult<Self> {
        let batch = Arc::new(Batch::new(timeline.clone()));
        let options = pipeline::Options {
            threads: threads.max(1),
            limit,
            ..pipeline::Options::default()
        };
        let parts = Ahead::spawn(move |parts, stopped| {
            let filter = &filter;
            let recordings = timeline.recordings();
            let select = &Watched::new(recordings, &filter, &|_| {}, Some(stopped));
            let (frames, sender) = (&mut Frames { has_structure }, &mut Sender(parts));
            // If it fails, nothing receives the parts any longer.
            let _ = pipeline::run(recordings, &select, &options, frames, sender);
        })?;
        Ok(Self {
            strict,
            truncations,
            forks: forks::count(),
            waits: Mutex::default(),
            source: Mutex::new(MessageSource {
                parts,
                batch,
                next: 0,
                is_at_end: false,
            }),
        })
    }
}

#[pymethods]
impl Messages {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Message>> {
        if self.forks != forks::count() {
            return Err(forked());
        }
        let mut source = match self.source.try_lock() {
            Ok(source) => source,
            Err(TryLockError::Poisoned(source)) => source.into_inner(),
            Err(TryLockError::WouldBlock) => {
                if *self.waits() == Some(std::thread::current().id()) {
                    return Err(PyRuntimeError::new_err(
                        "the iterator is asked for an event while it reads one",
                    ));
                }
                let source = self.source.lock_py_attached(py);
                source.unwrap_or_else(PoisonError::into_inner)
            }
        };
        if let Some(message) = source.in_hand() {
            return Ok(Some(message));
        }
        *self.waits() = Some(std::thread::current().id());
        let message = self.read(py, &mut source);
        *self.waits() = None;
        message
    }
}

impl Messages {
    fn waits(&self) -> MutexGuard<'_, Option<ThreadId>> {
        self.waits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The first message of the next part that has one.
    fn read(&self, py: Python<'_>, source: &mut MessageSource) -> PyResult<Option<Message>> {
        loop {
            match source.parts.next(py)? {
                None => {
                    if !std::mem::replace(&mut source.is_at_end, true) {
                        for report in self.truncations.reports() {
                            self.damaged(py, report)?;
                        }
                    }
                    return Ok(None);
                }
                Some(Part::Frames(frames)) => {
                    py.check_signals()?;
                    (source.batch, source.next) = (Arc::new(source.batch.with(frames)), 0);
                    if let Some(message) = source.in_hand() {
                        return Ok(Some(message));
                    }
                }
                Some(Part::Fault(fault)) => self.damaged(py, fault.to_string())?,
            }
        }
    }

    /// Warns of damage, or raises it.
    fn damaged(&self, py: Python<'_>, report: String) -> PyResult<()> {
        match self.strict {
            true => Err(Error::new_err(report)),
            false => errors::warn(py, &report),
        }
    }
}
