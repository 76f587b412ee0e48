//! What decides on single events: one type for every choice, so that what decodes and renders events is compiled once
//! for all of them.

use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use kymo_model::{Chunk, Event, Fault};
use kymo_time::Timestamp;

use super::Span;
use super::until::Bound;
use crate::AnyRecording;
use crate::filter::Worker;

/// Decides on single events of wanted classes, within the window, in one thread.
#[derive(Debug)]
pub struct Predicate<'a> {
    /// `None` wants every event.
    worker: Option<Worker<'a>>,
    /// What narrows it, the innermost first.
    layers: Vec<Layer<'a>>,
}

impl<'a> Predicate<'a> {
    /// Wants every event.
    pub(crate) fn everything() -> Self {
        Self {
            worker: None,
            layers: Vec::new(),
        }
    }

    /// Wants what a filter wants.
    pub(crate) fn of_filter(worker: Worker<'a>) -> Self {
        Self {
            worker: Some(worker),
            layers: Vec::new(),
        }
    }

    /// The same, narrowed.
    pub(crate) fn within(mut self, layer: Layer<'a>) -> Self {
        self.layers.push(layer);
        self
    }

    /// A chunk begins: the events that follow are of it.
    ///
    /// # Errors
    ///
    /// A fault in the packet header or context.
    pub(crate) fn chunk(
        &mut self,
        recording: usize,
        source: &AnyRecording,
        chunk: &Chunk,
    ) -> Result<(), Fault> {
        for layer in &mut self.layers {
            layer.begin_chunk(recording, chunk);
        }
        match &mut self.worker {
            Some(worker) => worker.begin_chunk(recording, source, chunk),
            None => Ok(()),
        }
    }

    /// The events of the chunk that are wanted, by their numbers, if nothing else of them matters: all
    /// [others](super::Select::wants_class) need not be asked about.
    pub(crate) fn numbers(&self) -> Option<Range<u64>> {
        let all = match &self.worker {
            Some(worker) => worker.numbers(),
            None => Some(0..u64::MAX),
        };
        let narrow = |numbers, layer: &Layer<'_>| layer.numbers(numbers);
        self.layers.iter().fold(all, narrow)
    }

    /// Whether an event is wanted.
    ///
    /// # Errors
    ///
    /// The fault at which decoding of the event stopped.
    #[inline]
    pub(crate) fn wants<E: Event>(&mut self, event: &E) -> Result<bool, Fault> {
        for layer in self.layers.iter().rev() {
            if let Some(answer) = layer.decide(event) {
                return Ok(answer);
            }
        }
        match &mut self.worker {
            Some(worker) => worker.wants(event),
            None => Ok(true),
        }
    }
}

/// One way to narrow a choice.
#[derive(Debug)]
pub(crate) enum Layer<'a> {
    Part(Part<'a>),
    Unread(Unread<'a>),
    Watch(Watch<'a>),
    Forced(Forced<'a>),
    /// Narrows nothing, but each event is asked about.
    #[cfg(test)]
    OneByOne,
}

impl Layer<'_> {
    fn begin_chunk(&mut self, recording: usize, chunk: &Chunk) {
        match self {
            Self::Part(part) => part.begin_chunk(recording, chunk),
            Self::Unread(unread) => unread.begin_chunk(recording, chunk),
            Self::Watch(watch) => watch.begin_chunk(recording, chunk),
            Self::Forced(forced) => forced.recording = recording,
            #[cfg(test)]
            Self::OneByOne => {}
        }
    }

    fn numbers(&self, inner: Option<Range<u64>>) -> Option<Range<u64>> {
        match self {
            Self::Part(part) => {
                let Range { start, end } = inner?;
                Some(start.max(part.from)..end.min(part.to))
            }
            Self::Unread(unread) => {
                if unread.met.is_some() || unread.since.is_some() {
                    return None;
                }
                let Range { start, end } = inner?;
                Some(start.max(unread.from)..end)
            }
            Self::Watch(watch) => match watch.is_stopped() {
                true => Some(0..0),
                false => inner,
            },
            Self::Forced(_) => inner,
            #[cfg(test)]
            Self::OneByOne => None,
        }
    }

    /// The answer for an event, unless those within decide.
    #[inline]
    fn decide<E: Event>(&self, event: &E) -> Option<bool> {
        match self {
            Self::Part(part) => {
                let is_within = (part.from..part.to).contains(&event.number());
                (!is_within).then_some(false)
            }
            Self::Unread(unread) => {
                (!unread.wants(event.number(), event.timestamp())).then_some(false)
            }
            Self::Watch(watch) => watch.is_stopped().then_some(false),
            Self::Forced(forced) => {
                forced.classes[forced.recording][event.class_index()].then_some(true)
            }
            #[cfg(test)]
            Self::OneByOne => None,
        }
    }
}

/// Wants the rows between two places.
pub(crate) struct Part<'a> {
    span: Span<'a>,
    /// Of the chunk, the first event that is wanted, and the one to end before.
    from: u64,
    to: u64,
}

impl<'a> Part<'a> {
    pub(super) fn new(span: Span<'a>) -> Self {
        Self {
            span,
            from: 0,
            to: u64::MAX,
        }
    }

    fn begin_chunk(&mut self, recording: usize, chunk: &Chunk) {
        let from = self.span.from(recording, chunk.stream);
        let to = self.span.to(recording, chunk.stream);
        self.from = match from.chunk == chunk.number {
            true => from.number,
            false => 0,
        };
        self.to = match to.chunk == chunk.number {
            true => to.number,
            false => u64::MAX,
        };
    }
}

impl fmt::Debug for Part<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers = self.from..self.to;
        formatter.debug_tuple("Part").field(&numbers).finish()
    }
}

/// Wants what was not read yet, up to a time.
#[derive(Debug)]
pub(crate) struct Unread<'a> {
    bounds: &'a [Vec<Bound>],
    before: Timestamp,
    /// Of the chunk, the first event that is wanted.
    from: u64,
    since: Option<Timestamp>,
    /// Where it is noted which events of a chunk were met that is read in part.
    met: Option<&'a AtomicU64>,
}

impl<'a> Unread<'a> {
    pub(super) fn new(bounds: &'a [Vec<Bound>], before: Timestamp) -> Self {
        Self {
            bounds,
            before,
            from: 0,
            since: None,
            met: None,
        }
    }

    fn begin_chunk(&mut self, recording: usize, chunk: &Chunk) {
        let streams = self.bounds.get(recording);
        self.from = 0;
        self.since = None;
        self.met = None;
        let Some(bound) = streams.and_then(|streams| streams.get(chunk.stream)) else {
            return;
        };
        self.since = bound.place.since;
        if bound.place.next.chunk == chunk.number {
            self.from = bound.place.next.number;
        }
        if bound.open == Some(chunk.number) {
            self.met = Some(&bound.met);
        }
    }

    fn wants(&self, number: u64, time: Option<Timestamp>) -> bool {
        if let Some(met) = self.met {
            if time.is_some_and(|time| time >= self.before) {
                return false;
            }
            met.fetch_max(number + 1, Ordering::Relaxed);
        }
        let is_late = |since| time.is_some_and(|time| time < since);
        number >= self.from && !self.since.is_some_and(is_late)
    }
}

/// Counts chunks, and wants nothing once it is stopped.
pub(crate) struct Watch<'a> {
    pub(super) progress: &'a (dyn Fn(u64) + Sync),
    pub(super) stop: Option<&'a AtomicBool>,
    pub(super) begun: &'a [Vec<AtomicUsize>],
}

impl Watch<'_> {
    fn begin_chunk(&self, recording: usize, chunk: &Chunk) {
        let begun = &self.begun[recording][chunk.stream];
        if begun.fetch_max(chunk.number + 1, Ordering::Relaxed) <= chunk.number {
            (self.progress)(chunk.bytes);
        }
    }

    #[inline]
    fn is_stopped(&self) -> bool {
        self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed))
    }
}

impl fmt::Debug for Watch<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_tuple("Watch")
            .field(&self.is_stopped())
            .finish()
    }
}

/// Wants all events of some classes, whatever the choice within says of them.
#[derive(Debug)]
pub(crate) struct Forced<'a> {
    /// By recording and class.
    classes: &'a [Vec<bool>],
    recording: usize,
}

impl<'a> Forced<'a> {
    pub(crate) fn new(classes: &'a [Vec<bool>]) -> Self {
        Self {
            classes,
            recording: 0,
        }
    }
}
