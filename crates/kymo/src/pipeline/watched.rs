//! A choice of events that reports its progress and can be stopped.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use kymo_model::Recording;

use super::predicate::{Layer, Watch};
use super::{Predicate, Select};
use crate::AnyRecording;

/// Selects the same events as another choice, and counts its chunks.
pub struct Watched<'a> {
    select: &'a dyn Select,
    progress: &'a (dyn Fn(u64) + Sync),
    stop: Option<&'a AtomicBool>,
    /// By recording and stream, how many chunks have begun. A chunk that is read in parts begins several times.
    begun: Vec<Vec<AtomicUsize>>,
}

impl<'a> Watched<'a> {
    /// `progress` gets the size in bytes of each chunk when it begins, in any thread. No event is wanted once `stop` is
    /// true.
    pub fn new(
        recordings: &[AnyRecording],
        select: &'a dyn Select,
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

impl Select for Watched<'_> {
    fn inner(&self) -> &dyn Select {
        self.select
    }

    fn predicate(&self) -> Predicate<'_> {
        self.select.predicate().within(Layer::Watch(Watch {
            progress: self.progress,
            stop: self.stop,
            begun: &self.begun,
        }))
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
