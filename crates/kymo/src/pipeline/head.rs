//! What the merger holds of a source: its batch, and the messages around it.

use std::collections::VecDeque;

use kymo_model::batch::{RowId, SourceRows};
use kymo_model::{EventClass, FaultReport, Recording};
use kymo_time::Timestamp;

use super::entries::{Batch, NO_TIME};
use super::source::SourceInfo;
use super::{ClassRows, RowRun};
use crate::AnyRecording;
use crate::order;
use crate::show::{Message, MessageKind};

/// What decides which of two messages comes first: the smaller one does. Messages without
/// a time come before all others: only behind them can a time be seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) time: i64,
    /// Place of the stream among all streams.
    pub(super) rank: u32,
    pub(super) kind: u8,
    pub(super) class: u64,
    pub(super) source: usize,
}

/// What the merger holds of a source.
pub(super) struct Head<'r> {
    pub(super) info: SourceView<'r>,
    /// Messages to hand over before the next event.
    pub(super) waiting: VecDeque<Message>,
    pub(super) batch: Batch,
    /// Ticks of the last event that was met.
    pub(super) last_ticks: Option<u64>,
    /// The last chunk for which it was reported that time goes back in it.
    pub(super) backwards: Option<usize>,
    /// The next entry of the batch, and where its text begins.
    pub(super) next: usize,
    pub(super) text_begin: usize,
    /// For each event class, where its rows are in the batch; empty if rows are not taken.
    pub(super) classes: Vec<ClassRows>,
    pub(super) ended: bool,
}

/// What the merger needs to know of a source.
#[derive(Clone, Copy)]
pub(super) struct SourceView<'r> {
    pub(super) recording: usize,
    pub(super) stream: usize,
    pub(super) input: &'r AnyRecording,
    pub(super) event_classes: &'r [EventClass],
    pub(super) has_clock: bool,
    pub(super) rank: u32,
    /// Whether only the rank counts, and no time.
    pub(super) by_stream: bool,
}

impl SourceView<'_> {
    /// The time by which a message is merged.
    #[inline]
    pub(super) fn key_time(&self, time: i64) -> i64 {
        if self.by_stream { NO_TIME } else { time }
    }
}

impl<'r> Head<'r> {
    pub(super) fn new(source: &SourceInfo<'r>, rank: u32, by_stream: bool, rows: bool) -> Self {
        let info = SourceView {
            recording: source.recording,
            stream: source.stream,
            input: source.input,
            event_classes: source.input.event_classes(),
            has_clock: source.input.streams()[source.stream].clock.is_some(),
            rank,
            by_stream,
        };
        Self {
            info,
            waiting: VecDeque::new(),
            batch: Batch::default(),
            last_ticks: None,
            backwards: None,
            next: 0,
            text_begin: 0,
            classes: match rows {
                true => vec![ClassRows::default(); source.input.event_classes().len()],
                false => Vec::new(),
            },
            ended: false,
        }
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.next == self.batch.entries.len() && self.waiting.is_empty()
    }

    /// Whether an event comes next, and no other message.
    #[inline]
    pub(super) fn is_at_event(&self) -> bool {
        self.leading() == 0 && self.next < self.batch.entries.len()
    }

    /// The rows of its batch, of recordings whose events fill the same columns.
    pub(super) fn rows(&self) -> SourceRows<'_> {
        let batch = &self.batch;
        let entries = batch.entries.slice(0..batch.entries.len());
        SourceRows {
            id: RowId {
                recording: self.info.recording as u32,
                stream: self.info.stream as u32,
                chunk: batch.chunk as u64,
                number: 0,
            },
            numbers: &batch.rows.numbers,
            classes: entries.classes,
            times: entries.times,
            ticks: self.info.has_clock.then_some(entries.ticks),
            columns: batch
                .rows
                .columns
                .first()
                .map_or(&[][..], |(_, columns)| columns),
            replaced: batch.rows.replaced,
        }
    }

    /// Its next rows.
    #[inline]
    pub(super) fn run(&mut self, rows: usize) -> RowRun<'_> {
        RowRun {
            recording: self.info.recording,
            stream: self.info.stream,
            chunk: self.batch.chunk,
            has_clock: self.info.has_clock,
            entries: self.batch.entries.slice(self.next..self.next + rows),
            taken: 0,
            first: self.next,
            text: self.batch.text.as_bytes(),
            text_begin: self.text_begin,
            buffers: &self.batch.rows,
            classes: &mut self.classes,
        }
    }

    /// Passes over rows that were handed over.
    #[inline]
    pub(super) fn pass(&mut self, rows: usize) {
        let last = self.batch.entries.get(self.next + rows - 1);
        self.text_begin = last.map_or(self.text_begin, |entry| entry.text_end);
        self.next += rows;
    }

    /// How many of the waiting messages come before the next entry: all but the chunk's
    /// (or stream's) end.
    #[inline]
    pub(super) fn leading(&self) -> usize {
        if self.waiting.is_empty() {
            return 0;
        }
        let ends = matches!(
            self.waiting.back(),
            Some(Message {
                kind: MessageKind::ChunkEnd | MessageKind::StreamEnd,
                ..
            })
        );
        self.waiting.len() - usize::from(ends)
    }

    /// Adds a message that is not an event.
    pub(super) fn wait(&mut self, kind: MessageKind, chunk: usize, ticks: Option<u64>) {
        let clock = self.info.input.streams()[self.info.stream].clock.as_ref();
        self.waiting.push_back(Message {
            kind,
            recording: self.info.recording,
            stream: self.info.stream,
            chunk,
            class: 0,
            time: ticks.and_then(|ticks| clock?.timestamp(ticks)),
            ticks,
        });
    }

    /// The fault that time goes back in a batch, reported once for its chunk.
    pub(super) fn goes_backwards(
        &mut self,
        batch: &Batch,
        source: &SourceInfo<'r>,
    ) -> Option<FaultReport> {
        let before = self.last_ticks;
        self.last_ticks = batch.order.last_ticks().or(before);
        let mark = batch.order.backwards(before)?;
        if self.backwards.replace(batch.chunk) == Some(batch.chunk) {
            return None;
        }
        order::report(&mark, source.input, &source.chunk(batch.chunk)?)
    }

    /// Takes a batch, and the messages around it.
    pub(super) fn take(
        &mut self,
        batch: Batch,
        source: &SourceInfo<'r>,
        structure: bool,
        is_begun: bool,
    ) {
        let number = batch.chunk;
        let chunk = match batch.first || batch.last {
            true => source.chunk(number),
            false => None,
        };
        if batch.first
            && let Some(chunk) = chunk
        {
            if !is_begun {
                for (kind, ticks) in source.losses(&chunk) {
                    self.wait(kind, number, ticks);
                }
            }
            if structure {
                self.wait(MessageKind::ChunkBegin, number, chunk.begin);
            }
        }
        if batch.last
            && structure
            && let Some(chunk) = chunk
        {
            // Tracers are known to write events that are later than the end of their packet.
            let last = batch.entries.last().map_or(0, |entry| entry.ticks);
            self.wait(
                MessageKind::ChunkEnd,
                number,
                chunk.end.map(|end| end.max(last)),
            );
        }
        self.batch = batch;
        self.next = 0;
        self.text_begin = 0;
        ClassRows::begin(&mut self.classes, &self.batch.rows);
    }

    /// The key of the next message.
    #[inline]
    pub(super) fn key(&self, source: usize) -> Option<Key> {
        let event = self
            .batch
            .entries
            .get(self.next)
            .filter(|_| self.leading() == 0);
        if let Some(entry) = event {
            // Only where two streams have the same rank can the class matter.
            let class = self.info.event_classes[entry.class as usize].id;
            return Some(Key {
                time: self.info.key_time(entry.time),
                rank: self.info.rank,
                kind: 2,
                class,
                source,
            });
        }
        self.message_key(source)
    }

    /// The key of the next message that is not an event.
    #[cold]
    pub(super) fn message_key(&self, source: usize) -> Option<Key> {
        let message = self.waiting.front()?;
        let time = message.time.map_or(NO_TIME, Timestamp::as_nanos);
        Some(Key {
            time: self.info.key_time(time),
            rank: self.info.rank,
            kind: weight(&message.kind),
            class: 0,
            source,
        })
    }

    /// A key before which nothing of this source can come.
    pub(super) fn early_key(&self, source: usize, begin: Timestamp) -> Key {
        Key {
            time: self.info.key_time(begin.as_nanos()),
            rank: if self.info.by_stream {
                self.info.rank
            } else {
                0
            },
            kind: 0,
            class: 0,
            source,
        }
    }
}

/// Of messages at the same time, those of a smaller weight come first.
pub(super) fn weight(kind: &MessageKind) -> u8 {
    match kind {
        MessageKind::StreamBegin => 0,
        MessageKind::ChunkBegin => 1,
        MessageKind::Event => 2,
        MessageKind::LostEvents(_) => 3,
        MessageKind::ChunkEnd => 4,
        MessageKind::LostChunks(_) => 5,
        MessageKind::StreamEnd => 6,
    }
}
