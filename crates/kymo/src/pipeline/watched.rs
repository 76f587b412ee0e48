//! A choice of events that reports its progress and can be stopped.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use kymo_model::{Chunk, Event, Fault, Recording};

use super::{Predicate, Select};
use crate::AnyRecording;

/// Selects the same events as another choice, and counts its chunks.
pub struct Watched<'a, S> {
    select: &'a S,
    progress: &'a (dyn Fn(u64) + Sync),
    stop: Option<&'a AtomicBool>,
    /// By recording and stream, how many chunks have begun. A chunk that is read in parts begins several times.
    begun: Vec<Vec<AtomicUsize>>,
}

impl<'a, S: Select> Watched<'a, S> {
    /// `progress` gets the size in bytes of each chunk when it begins, in any thread. No event is wanted once `stop` is
    /// true.
    pub fn new(
        recordings: &[AnyRecording],
        select: &'a S,
        progress: &'a (dyn Fn(u64) + Sync),
        stop: Option<&'a AtomicBool>,
    ) -> Self {
        let streams = |recording: &AnyRecording| {
            recording
                .streams()
                .iter()
                .map(|_| AtomicUsize::new(0))
                .collect()
        };
        Self {
            select,
            progress,
            stop,
            begun: recordings.iter().map(streams).collect(),
        }
    }
}

impl<'a, S: Select> Select for &'a Watched<'_, S> {
    type Predicate = WatchedPredicate<'a, S>;
    type Inner = S;

    fn inner(&self) -> &S {
        self.select
    }

    fn predicate(&self) -> Self::Predicate {
        WatchedPredicate {
            progress: self.progress,
            stop: self.stop,
            begun: &self.begun,
            predicate: self.select.predicate(),
        }
    }

    fn end_chunk(&self, recording: usize, stream: usize) -> usize {
        match self.is_stopped() {
            true => 0,
            false => self.select.end_chunk(recording, stream),
        }
    }

    fn is_stopped(&self) -> bool {
        let is_set = self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed));
        is_set || self.select.is_stopped()
    }
}

/// Decides in one thread.
pub struct WatchedPredicate<'a, S: Select> {
    progress: &'a (dyn Fn(u64) + Sync),
    stop: Option<&'a AtomicBool>,
    begun: &'a [Vec<AtomicUsize>],
    predicate: S::Predicate,
}

impl<S: Select> WatchedPredicate<'_, S> {
    fn is_stopped(&self) -> bool {
        self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed))
    }
}

impl<S: Select> Predicate for WatchedPredicate<'_, S> {
    fn chunk(
        &mut self,
        recording: usize,
        source: &AnyRecording,
        chunk: &Chunk,
    ) -> Result<(), Fault> {
        let begun = &self.begun[recording][chunk.stream];
        if begun.fetch_max(chunk.number + 1, Ordering::Relaxed) <= chunk.number {
            (self.progress)(chunk.bytes);
        }
        self.predicate.chunk(recording, source, chunk)
    }

    fn numbers(&self) -> Option<Range<u64>> {
        match self.is_stopped() {
            true => Some(0..0),
            false => self.predicate.numbers(),
        }
    }

    #[inline]
    fn wants<E: Event>(&mut self, event: &E) -> Result<bool, Fault> {
        Ok(!self.is_stopped() && self.predicate.wants(event)?)
    }
}
