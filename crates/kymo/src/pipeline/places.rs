//! From which rows of each stream to which.

use std::ops::Range;

use kymo_model::{Chunk, Event, Fault, RowPlace};

use super::{Predicate, Select};
use crate::AnyRecording;

/// A place in each stream of each recording. Streams that none is set for are at their end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places {
    recordings: Vec<Vec<RowPlace>>,
}

/// Behind all rows.
const END: RowPlace = RowPlace {
    chunk: usize::MAX,
    number: u64::MAX,
};

impl Places {
    /// At the end of all streams.
    pub fn at_end() -> Self {
        Self::default()
    }

    /// The place in a stream.
    pub fn get(&self, recording: usize, stream: usize) -> RowPlace {
        let streams = self.recordings.get(recording);
        let place = streams.and_then(|streams| streams.get(stream));
        place.copied().unwrap_or(END)
    }

    /// Sets the place in a stream.
    pub fn set(&mut self, recording: usize, stream: usize, place: RowPlace) {
        if self.recordings.len() <= recording {
            self.recordings.resize(recording + 1, Vec::new());
        }
        let streams = &mut self.recordings[recording];
        if streams.len() <= stream {
            streams.resize(stream + 1, END);
        }
        streams[stream] = place;
    }
}

/// What another selection wants, between two places of each stream.
#[derive(Clone, Copy, Debug)]
pub struct Span<'a, S> {
    /// The other one.
    pub select: &'a S,
    /// The first row of each stream; `None` for the first that there is.
    pub from: Option<&'a Places>,
    /// The row of each stream to end before; `None` for the end.
    pub to: Option<&'a Places>,
}

impl<S> Span<'_, S> {
    fn from(&self, recording: usize, stream: usize) -> RowPlace {
        let from = self.from.map(|from| from.get(recording, stream));
        from.unwrap_or_default()
    }

    fn to(&self, recording: usize, stream: usize) -> RowPlace {
        self.to.map_or(END, |to| to.get(recording, stream))
    }
}

impl<'a, S: Select> Select for Span<'a, S> {
    type Predicate = SpanPredicate<'a, S>;
    type Inner = S;

    fn inner(&self) -> &S {
        self.select
    }

    fn predicate(&self) -> SpanPredicate<'a, S> {
        SpanPredicate {
            span: Span {
                select: self.select,
                from: self.from,
                to: self.to,
            },
            predicate: self.select.predicate(),
            from: 0,
            to: u64::MAX,
        }
    }

    fn first_chunk(&self, recording: usize, stream: usize) -> usize {
        let inner = self.select.first_chunk(recording, stream);
        self.from(recording, stream).chunk.max(inner)
    }

    fn first_row(&self, recording: usize, stream: usize) -> RowPlace {
        let inner = self.select.first_row(recording, stream);
        self.from(recording, stream).max(inner)
    }

    fn end_chunk(&self, recording: usize, stream: usize) -> usize {
        let to = self.to(recording, stream);
        let end = to.chunk.saturating_add(usize::from(to.number > 0));
        self.select.end_chunk(recording, stream).min(end)
    }

    fn begins_within(&self, recording: usize, stream: usize, chunk: usize) -> bool {
        let from = self.from(recording, stream);
        (from.chunk == chunk && from.number > 0)
            || self.select.begins_within(recording, stream, chunk)
    }
}

/// Decides in one thread.
pub struct SpanPredicate<'a, S: Select> {
    span: Span<'a, S>,
    predicate: S::Predicate,
    /// Of the chunk, the first event that is wanted, and the one to end before.
    from: u64,
    to: u64,
}

impl<S: Select> Predicate for SpanPredicate<'_, S> {
    fn chunk(
        &mut self,
        recording: usize,
        source: &AnyRecording,
        chunk: &Chunk,
    ) -> Result<(), Fault> {
        let from = self.span.from(recording, chunk.stream);
        let to = self.span.to(recording, chunk.stream);
        self.from = if from.chunk == chunk.number {
            from.number
        } else {
            0
        };
        self.to = if to.chunk == chunk.number {
            to.number
        } else {
            u64::MAX
        };
        self.predicate.chunk(recording, source, chunk)
    }

    fn numbers(&self) -> Option<Range<u64>> {
        let Range { start, end } = self.predicate.numbers()?;
        Some(start.max(self.from)..end.min(self.to))
    }

    #[inline]
    fn wants<E: Event>(&mut self, event: &E) -> Result<bool, Fault> {
        let is_within = (self.from..self.to).contains(&event.number());
        Ok(is_within && self.predicate.wants(event)?)
    }
}
