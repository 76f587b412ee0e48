//! A filter that tells how far the work is.

use std::sync::atomic::{AtomicUsize, Ordering};

use kymo::AnyRecording;
use kymo::filter::{Filter, Worker};
use kymo::pipeline::{Predicate, Select, Window};
use kymo_model::{Chunk, Event, Fault, FieldId, Recording};

use crate::terminal::Terminal;

/// A filter that advances the progress with each chunk that is begun.
pub(crate) struct Progressing<'f> {
    filter: &'f Filter,
    terminal: &'f Terminal,
    /// By recording and stream, how many chunks are begun: a chunk may be begun several
    /// times, when it is done in parts.
    begun: Vec<Vec<AtomicUsize>>,
}

impl<'f> Progressing<'f> {
    pub(crate) fn new(
        filter: &'f Filter,
        terminal: &'f Terminal,
        recordings: &[AnyRecording],
    ) -> Self {
        let streams =
            |of: &AnyRecording| of.streams().iter().map(|_| AtomicUsize::new(0)).collect();
        Self {
            filter,
            terminal,
            begun: recordings.iter().map(streams).collect(),
        }
    }
}

impl<'f> Select for &'f Progressing<'_> {
    type Predicate = ProgressingPredicate<'f>;

    fn predicate(&self) -> ProgressingPredicate<'f> {
        ProgressingPredicate {
            of: self,
            worker: self.filter.predicate(),
        }
    }

    fn window(&self, recording: usize) -> Window {
        self.filter.window(recording)
    }

    fn wants_class(&self, recording: usize, of: &AnyRecording, class: usize) -> bool {
        self.filter.wants_class(recording, of, class)
    }

    fn looks_at(&self, recording: usize, class: usize, field: FieldId) -> bool {
        self.filter.looks_at(recording, class, field)
    }
}

/// Decides in one thread.
pub(crate) struct ProgressingPredicate<'f> {
    of: &'f Progressing<'f>,
    worker: Worker<'f>,
}

impl Predicate for ProgressingPredicate<'_> {
    fn chunk(&mut self, recording: usize, of: &AnyRecording, chunk: &Chunk) -> Result<(), Fault> {
        let begun = &self.of.begun[recording][chunk.stream];
        if begun.fetch_max(chunk.number + 1, Ordering::Relaxed) <= chunk.number {
            self.of.terminal.advance(chunk.bytes);
        }
        self.worker.chunk(recording, of, chunk)
    }

    #[inline]
    fn wants<E: Event>(&mut self, event: &E) -> Result<bool, Fault> {
        self.worker.wants(event)
    }
}
