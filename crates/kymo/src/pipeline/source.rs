//! Streams of recordings, and which of their chunks are wanted.

use std::ops::Range;
use std::sync::Arc;

use kymo_model::{Chunk, Lost, Narrowed, Recording};

use super::{Select, Window};
use crate::AnyRecording;
use crate::show::MessageKind;

/// A stream of a recording.
pub(super) struct SourceInfo<'r> {
    pub recording: usize,
    pub stream: usize,
    pub input: &'r AnyRecording,
    pub window: Window,
    /// For each event class of the recording, whether it may be wanted.
    pub classes: Arc<[bool]>,
    /// The fields that are wanted.
    pub narrowed: Narrowed,
    /// By number, whether a chunk is known to hold no wanted event.
    pub idle: Option<Arc<[bool]>>,
}

impl SourceInfo<'_> {
    pub(super) fn chunk_count(&self) -> usize {
        self.input.chunk_count(self.stream)
    }

    pub(super) fn chunk(&self, number: usize) -> Option<Chunk> {
        self.input.chunk(self.stream, number)
    }

    /// Whether a chunk need not be read, as it holds no wanted event.
    pub(super) fn is_idle(&self, number: usize) -> bool {
        let idle = self.idle.as_ref().and_then(|idle| idle.get(number));
        idle.is_some_and(|idle| *idle)
    }

    /// The chunks that may hold events of the window, of those that are selected.
    pub(super) fn wanted_chunks(&self, select: &dyn Select) -> Range<usize> {
        let wanted = self.chunks_in_window();
        let bound = |chunk: usize| chunk.clamp(wanted.start, wanted.end);
        let first = bound(select.first_chunk(self.recording, self.stream));
        first..bound(select.end_chunk(self.recording, self.stream)).max(first)
    }

    pub(super) fn chunks_in_window(&self) -> Range<usize> {
        let Window { begin, end } = self.window;
        let before = |chunk: &Chunk| chunk.end_time.is_some_and(|last| last < begin);
        let after = |chunk: &Chunk| chunk.begin_time.is_some_and(|first| first > end);
        let begin = (self.input.first_chunk(self.stream)..self.chunk_count())
            .find(|&number| self.chunk(number).is_some_and(|chunk| !before(&chunk)))
            .unwrap_or(self.chunk_count());
        let end = (begin..self.chunk_count())
            .rfind(|&number| self.chunk(number).is_some_and(|chunk| !after(&chunk)))
            .map_or(begin, |last| last + 1);
        begin..end
    }

    /// What was lost before a chunk, as far as that is in the window, and since when.
    pub(super) fn losses(&self, chunk: &Chunk) -> impl Iterator<Item = (MessageKind, Option<u64>)> {
        let clock = self.input.streams()[self.stream].clock.clone();
        let window = self.window;
        let in_window = move |lost: &Lost| {
            let time =
                |ticks: Option<u64>| ticks.and_then(|ticks| clock.as_ref()?.timestamp(ticks));
            time(lost.end).is_none_or(|end| end >= window.begin)
                && time(lost.begin).is_none_or(|begin| begin <= window.end)
        };
        let losses = [
            chunk
                .lost_events
                .map(|lost| (MessageKind::LostEvents(lost), lost)),
            chunk
                .lost_chunks
                .map(|lost| (MessageKind::LostChunks(lost), lost)),
        ];
        let losses = losses.into_iter().flatten();
        let losses = losses.filter(move |(_, lost)| in_window(lost));
        losses.map(|(kind, lost)| (kind, lost.begin))
    }
}
