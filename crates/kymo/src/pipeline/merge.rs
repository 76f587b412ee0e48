//! Merges the batches of all sources into one sequence.

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, VecDeque};
use std::io;
use std::sync::Arc;

use kymo_model::{Chunk, EventBlock, EventClass, FaultReport, Lost, Narrowed, Recording, RowPlace};
use kymo_text::Line;
use kymo_time::Timestamp;

use super::job::{Batch, Jobs, NO_TIME, SourceInfo, StopOnDrop, WorkerState};
use super::{ClassRows, Options, Output, RowRun, Select, Summary};
use crate::AnyRecording;
use crate::order;
use crate::show::{Message, MessageKind, Sink};

/// Text is handed over in parts of about this size.
const OUTPUT_PART: usize = 64 << 10;

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

/// For each event class of each recording whether it may be wanted.
pub(super) fn wanted_classes(
    recordings: &[AnyRecording],
    select: &impl Select,
) -> Vec<Arc<[bool]>> {
    let of_recording = |(recording, of): (usize, &AnyRecording)| {
        let classes = 0..of.event_classes().len();
        classes
            .map(|class| select.wants_class(recording, of, class))
            .collect()
    };
    recordings.iter().enumerate().map(of_recording).collect()
}

/// Merges the batches of all sources.
pub(super) struct Merger<'r, 'o, A, S> {
    recordings: &'r [AnyRecording],
    select: &'r S,
    options: &'r Options,
    sink: &'o mut A,
    output: &'o mut dyn Output,
    summary: Summary,
    text: Line,
    warnings: Vec<u8>,
}

/// What the merger holds of a source.
struct Head<'r> {
    info: SourceView<'r>,
    /// Messages to hand over before the next event.
    waiting: VecDeque<Message>,
    batch: Batch,
    /// Ticks of the last event that was met.
    last_ticks: Option<u64>,
    /// The last chunk of which it was told that time goes back in it.
    backwards: Option<usize>,
    /// The next entry of the batch, and where its text begins.
    next: usize,
    text_begin: usize,
    /// Of each event class, where its rows are in the batch; empty where nobody takes rows.
    classes: Vec<ClassRows>,
    ended: bool,
}

/// What the merger needs to know of a source.
#[derive(Clone, Copy)]
struct SourceView<'r> {
    recording: usize,
    stream: usize,
    of: &'r AnyRecording,
    event_classes: &'r [EventClass],
    has_clock: bool,
    rank: u32,
    /// Whether only the rank counts, and no time.
    by_stream: bool,
}

impl<'r, 'o, A: Sink, S: Select> Merger<'r, 'o, A, S> {
    pub(super) fn new(
        recordings: &'r [AnyRecording],
        select: &'r S,
        options: &'r Options,
        sink: &'o mut A,
        output: &'o mut dyn Output,
    ) -> Self {
        Self {
            recordings,
            select,
            options,
            sink,
            output,
            summary: Summary::default(),
            text: Line::new(),
            warnings: Vec::new(),
        }
    }

    pub(super) fn run(mut self) -> io::Result<Summary> {
        let recordings = self.recordings;
        let wanted = wanted_classes(recordings, self.select);
        let mut sources = Vec::new();
        for (recording, of) in recordings.iter().enumerate() {
            let narrowed = match A::ROWS {
                true => of.narrow(&|class, field| {
                    self.sink.looks_at(recording, of, class, field)
                        || self.select.looks_at(recording, class, field)
                }),
                false => Narrowed::default(),
            };
            for stream in 0..of.streams().len() {
                sources.push(SourceInfo {
                    recording,
                    stream,
                    of,
                    window: self.select.window(recording),
                    classes: Arc::clone(&wanted[recording]),
                    narrowed: narrowed.clone(),
                });
            }
        }
        let chunks = sources
            .iter()
            .map(|source| source.of.chunk_count(source.stream))
            .sum::<usize>();
        let threads = self.options.threads.clamp(1, chunks.max(1));
        let by_stream = self.sink.is_by_stream();
        let jobs = Jobs::new(
            sources,
            self.select,
            threads,
            self.options.buffer,
            by_stream,
        );
        let result = std::thread::scope(|scope| {
            // However this ends, the threads must not wait for more.
            let _stop = StopOnDrop(&jobs);
            for _ in 1..threads {
                let worker_state = self.worker_state();
                let jobs = &jobs;
                let spawned = std::thread::Builder::new()
                    .spawn_scoped(scope, move || jobs.work(worker_state));
                if spawned.is_err() {
                    // The system has no more threads: those that there are do the work.
                    break;
                }
            }
            self.merge(&jobs)
        });
        result.map(|()| self.summary)
    }

    fn worker_state(&self) -> WorkerState<A::Renderer, S::Predicate> {
        WorkerState {
            renderer: self.sink.renderer(),
            predicate: self.select.predicate(),
            block: EventBlock::default(),
        }
    }

    fn merge(&mut self, jobs: &Jobs<'r>) -> io::Result<()> {
        let mut worker_state = self.worker_state();
        let by_stream = self.sink.is_by_stream();
        let ranks = match by_stream {
            true => (0..).take(jobs.sources().len()).collect(),
            false => ranks(jobs.sources()),
        };
        let mut heads: Vec<Head<'r>> = Vec::with_capacity(ranks.len());
        let mut heap = BinaryHeap::with_capacity(ranks.len());
        let output = &mut *self.output;
        self.sink
            .begin(self.recordings, &mut |text| output.text(text))?;
        let mut going = self.options.limit != Some(0);
        for (source, (info, rank)) in jobs.sources().iter().zip(ranks).enumerate() {
            let mut head = Head::new(info, rank, by_stream, A::ROWS);
            if self.sink.wants_structure() {
                head.wait(
                    MessageKind::StreamBegin,
                    jobs.front(source).unwrap_or(0),
                    None,
                );
            }
            // A stream that begins later is not worked on before its time has come; one of which the
            // beginning was read before goes on with what is next.
            let begin = jobs
                .front(source)
                .and_then(|chunk| info.chunk(chunk)?.begin_time);
            let first = self.select.first_row(info.recording, info.stream);
            let goes_on = first != RowPlace::default()
                && (first.number > 0 || first.chunk > info.chunks_in_window().start);
            match begin {
                Some(begin) if head.waiting.is_empty() && !goes_on => {
                    heap.push(Reverse(head.early_key(source, begin)))
                }
                _ => {
                    going = going && self.refill(jobs, source, &mut head, &mut worker_state)?;
                    heap.extend(head.key(source).map(Reverse));
                }
            }
            heads.push(head);
        }
        while going {
            let Some(Reverse(mut key)) = heap.pop() else {
                break;
            };
            loop {
                let source = key.source;
                let head = &mut heads[source];
                if going && head.is_empty() {
                    going = self.refill(jobs, source, head, &mut worker_state)?;
                }
                let (true, Some(next)) = (going, head.key(source)) else {
                    break;
                };
                match heap.peek_mut() {
                    // Another source comes first: it changes places with this one.
                    Some(mut first) if first.0 < next => {
                        key = std::mem::replace(&mut first.0, next);
                    }
                    first => {
                        let end = match first {
                            Some(first) if !by_stream => first.0.time,
                            _ => i64::MAX,
                        };
                        going = self.hand_over(head, end)?;
                    }
                }
            }
        }
        self.sink.finish(&mut self.text, &mut self.warnings);
        self.flush()
    }

    /// Makes a source's next message known, if there is one. `false` ends the run.
    fn refill(
        &mut self,
        jobs: &Jobs<'r>,
        source: usize,
        head: &mut Head<'r>,
        worker_state: &mut WorkerState<A::Renderer, S::Predicate>,
    ) -> io::Result<bool> {
        while head.is_empty() && !head.ended {
            if self.select.is_stopped() {
                return Ok(false);
            }
            jobs.reuse(std::mem::take(&mut head.batch));
            head.next = 0;
            let structure = self.sink.wants_structure();
            let Some(batch) = jobs.next_batch(source, worker_state) else {
                head.ended = true;
                if structure {
                    let end = jobs.sources()[source].chunk_count();
                    head.wait(MessageKind::StreamEnd, end, None);
                }
                break;
            };
            let info = &jobs.sources()[source];
            let backwards = head.goes_backwards(&batch, info);
            let mut going = true;
            for fault in backwards.iter().chain(&batch.fault) {
                self.summary.faults += 1;
                self.flush()?;
                going = going && self.output.fault(fault).is_continue();
            }
            let is_begun = batch.first
                && self
                    .select
                    .begins_within(info.recording, info.stream, batch.chunk);
            head.take(batch, info, structure, is_begun);
            if !going {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// WorkerState over the first message of a source, and all events right after it that are
    /// earlier than `end`. `false` ends the run.
    fn hand_over(&mut self, head: &mut Head<'r>, end: i64) -> io::Result<bool> {
        if head.leading() > 0 || head.next == head.batch.entries.len() {
            if let Some(message) = head.waiting.pop_front() {
                match &message.kind {
                    MessageKind::LostEvents(lost) => self.summary.discarded.add_events(lost),
                    MessageKind::LostChunks(lost) => self.summary.discarded.add_packets(lost),
                    _ => {}
                }
                self.message(&message, &[])?;
            }
            return Ok(true);
        }
        if A::ROWS {
            return self.hand_over_rows(head, end);
        }
        if head.info.by_stream {
            return self.hand_over_batch(head);
        }
        while let Some(entry) = head.batch.entries.get(head.next) {
            let message = Message {
                kind: MessageKind::Event,
                recording: head.info.recording,
                stream: head.info.stream,
                chunk: head.batch.chunk,
                class: entry.class as usize,
                time: (entry.time != NO_TIME).then_some(Timestamp::from_nanos(entry.time)),
                ticks: head.info.has_clock.then_some(entry.ticks),
            };
            let text = &head.batch.text.as_bytes()[head.text_begin..entry.text_end];
            self.message(&message, text)?;
            head.text_begin = entry.text_end;
            head.next += 1;
            self.summary.events += 1;
            if self.options.limit == Some(self.summary.events) {
                return Ok(false);
            }
            let next = head.batch.entries.get(head.next);
            if next.is_none_or(|next| next.time >= end) {
                break;
            }
        }
        Ok(true)
    }

    /// WorkerState over the next row of a source, and all right after it that are earlier than `end`. `false` ends
    /// the run.
    fn hand_over_rows(&mut self, head: &mut Head<'r>, end: i64) -> io::Result<bool> {
        let entries = &head.batch.entries;
        let left = entries.slice(head.next..entries.len());
        let most = self
            .options
            .limit
            .map_or(u64::MAX, |limit| limit - self.summary.events);
        let later = left.times.iter().skip(1).position(|&time| time >= end);
        let count = later.map_or(left.len(), |later| later + 1);
        let count = count.min(usize::try_from(most).unwrap_or(usize::MAX));
        let run = RowRun {
            recording: head.info.recording,
            stream: head.info.stream,
            chunk: head.batch.chunk,
            has_clock: head.info.has_clock,
            entries: entries.slice(head.next..head.next + count),
            taken: 0,
            first: head.next,
            text: head.batch.text.as_bytes(),
            text_begin: head.text_begin,
            buffers: &head.batch.rows,
            classes: &mut head.classes,
        };
        let (out, warnings) = (&mut self.text, &mut self.warnings);
        let going = self.sink.rows(run, self.recordings, out, warnings);
        let last = entries.get(head.next + count - 1);
        head.text_begin = last.map_or(head.text_begin, |entry| entry.text_end);
        head.next += count;
        self.summary.events += count as u64;
        if self.text.len() >= OUTPUT_PART || !self.warnings.is_empty() {
            self.flush()?;
        }
        Ok(going && self.options.limit != Some(self.summary.events))
    }

    /// WorkerState over the text of all events of a batch that are left, as it is. `false` ends the run.
    fn hand_over_batch(&mut self, head: &mut Head<'r>) -> io::Result<bool> {
        let left = (head.batch.entries.len() - head.next) as u64;
        let limit = self.options.limit.unwrap_or(u64::MAX);
        let events = left.min(limit - self.summary.events);
        head.next += events as usize;
        self.summary.events += events;
        let last = head.batch.entries.get(head.next - 1);
        let end = last.map_or(head.text_begin, |entry| entry.text_end);
        let begin = std::mem::replace(&mut head.text_begin, end);
        self.flush()?;
        self.output.text(&head.batch.text.as_bytes()[begin..end])?;
        Ok(self.summary.events < limit)
    }

    #[inline]
    fn message(&mut self, message: &Message, text: &[u8]) -> io::Result<()> {
        let (out, warnings) = (&mut self.text, &mut self.warnings);
        self.sink
            .message(message, self.recordings, text, out, warnings);
        if self.text.len() >= OUTPUT_PART || !self.warnings.is_empty() {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        if !self.text.is_empty() {
            self.output.text(self.text.as_bytes())?;
            self.text.clear();
        }
        if !self.warnings.is_empty() {
            self.output.warning(&self.warnings)?;
            self.warnings.clear();
        }
        Ok(())
    }
}

impl SourceView<'_> {
    /// The time by which a message is merged.
    #[inline]
    fn key_time(&self, time: i64) -> i64 {
        if self.by_stream { NO_TIME } else { time }
    }
}

impl<'r> Head<'r> {
    fn new(source: &SourceInfo<'r>, rank: u32, by_stream: bool, rows: bool) -> Self {
        let info = SourceView {
            recording: source.recording,
            stream: source.stream,
            of: source.of,
            event_classes: source.of.event_classes(),
            has_clock: source.of.streams()[source.stream].clock.is_some(),
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
                true => vec![ClassRows::default(); source.of.event_classes().len()],
                false => Vec::new(),
            },
            ended: false,
        }
    }

    #[inline]
    fn is_empty(&self) -> bool {
        self.next == self.batch.entries.len() && self.waiting.is_empty()
    }

    /// How many of the waiting messages come before the next entry: all but the chunk's
    /// (or stream's) end.
    #[inline]
    fn leading(&self) -> usize {
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

    /// Adds a message that is no event.
    fn wait(&mut self, kind: MessageKind, chunk: usize, ticks: Option<u64>) {
        let clock = self.info.of.streams()[self.info.stream].clock.as_ref();
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

    /// The fault that time goes back in a batch, told once for its chunk.
    fn goes_backwards(&mut self, batch: &Batch, source: &SourceInfo<'r>) -> Option<FaultReport> {
        let before = self.last_ticks;
        self.last_ticks = batch.order.last_ticks().or(before);
        let mark = batch.order.backwards(before)?;
        if self.backwards.replace(batch.chunk) == Some(batch.chunk) {
            return None;
        }
        order::report(&mark, source.of, &source.chunk(batch.chunk)?)
    }

    /// Takes a batch, and the messages around it.
    fn take(&mut self, batch: Batch, source: &SourceInfo<'r>, structure: bool, is_begun: bool) {
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
    fn key(&self, source: usize) -> Option<Key> {
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

    /// The key of the next message that is no event.
    #[cold]
    fn message_key(&self, source: usize) -> Option<Key> {
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
    fn early_key(&self, source: usize, begin: Timestamp) -> Key {
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

impl SourceInfo<'_> {
    /// What was lost before a chunk, as far as that is in the window, and since when.
    pub(super) fn losses(&self, chunk: &Chunk) -> impl Iterator<Item = (MessageKind, Option<u64>)> {
        let clock = self.of.streams()[self.stream].clock.clone();
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

/// The place of each source among all: by the identity of its recording, then by the
/// numbers of its stream class and stream.
pub(super) fn ranks(sources: &[SourceInfo<'_>]) -> Vec<u32> {
    let mut order: Vec<usize> = (0..sources.len()).collect();
    let compare = |&left: &usize, &right: &usize| -> Ordering {
        let (left, right) = (&sources[left], &sources[right]);
        let identity = |source: &SourceInfo<'_>| {
            let stream = &source.of.streams()[source.stream];
            (stream.class, stream.id.unwrap_or(source.stream as u64))
        };
        compare_recordings(left.of, right.of).then_with(|| identity(left).cmp(&identity(right)))
    };
    order.sort_by(compare);
    let mut ranks = vec![0; sources.len()];
    let mut rank = 0;
    for (position, &source) in order.iter().enumerate() {
        if position > 0 && compare(&order[position - 1], &source).is_ne() {
            rank += 1;
        }
        ranks[source] = rank;
    }
    ranks
}

/// Recordings with an identifier come before those without, those with a name likewise.
pub(crate) fn compare_recordings(left: &AnyRecording, right: &AnyRecording) -> Ordering {
    let some_first = |option: Option<&str>| (option.is_none(), option.map(str::to_owned));
    some_first(left.uid())
        .cmp(&some_first(right.uid()))
        .then_with(|| some_first(left.name()).cmp(&some_first(right.name())))
}
