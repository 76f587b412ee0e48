//! From which rows of each stream to which.

use kymo_model::RowPlace;

use super::predicate::{Layer, Part};
use super::{Predicate, Select};

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
#[derive(Clone, Copy)]
pub struct Span<'a> {
    /// The other one.
    pub select: &'a dyn Select,
    /// The first row of each stream; `None` for the first that there is.
    pub from: Option<&'a Places>,
    /// The row of each stream to end before; `None` for the end.
    pub to: Option<&'a Places>,
}

impl Span<'_> {
    pub(super) fn from(&self, recording: usize, stream: usize) -> RowPlace {
        let from = self.from.map(|from| from.get(recording, stream));
        from.unwrap_or_default()
    }

    pub(super) fn to(&self, recording: usize, stream: usize) -> RowPlace {
        self.to.map_or(END, |to| to.get(recording, stream))
    }
}

impl Select for Span<'_> {
    fn inner(&self) -> &dyn Select {
        self.select
    }

    fn predicate(&self) -> Predicate<'_> {
        self.select
            .predicate()
            .within(Layer::Part(Part::new(*self)))
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
