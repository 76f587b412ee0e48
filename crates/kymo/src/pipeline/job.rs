//! Jobs: chunks being decoded and rendered, and the threads that do it.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use kymo_model::{Chunk, Cursor, Event, EventBlock, Fault, FaultCode, FieldId, Recording};
use kymo_text::Line;
use kymo_time::Timestamp;

use super::entries::{Batch, Entries, Entry, NO_TIME};
use super::source::SourceInfo;
use super::{BlockWish, Predicate, Select, Window};
use crate::AnyRecording;
use crate::any::{AnyCursor, each_cursor};
use crate::show::Renderer;

/// Number of batches of a chunk that are made before one is asked for.
const BATCHES_AHEAD: usize = 2;

/// Rows that are taken at once: their columns stay in the processor's cache.
const BLOCK_ROWS: usize = 1024;

/// A chunk to work on.
pub(super) struct Job<'r> {
    /// When its events are needed, roughly.
    time: i64,
    source: usize,
    chunk: usize,
    /// `None` before its first batch.
    cursor: Option<AnyCursor<'r>>,
}

impl Job<'_> {
    /// The earliest first: that one is needed next.
    fn key(&self) -> impl Ord + use<> {
        (
            std::cmp::Reverse(self.time),
            std::cmp::Reverse((self.chunk, self.source)),
        )
    }
}

impl PartialEq for Job<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}
impl Eq for Job<'_> {}
impl PartialOrd for Job<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Job<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

/// A chunk that is being worked on.
#[derive(Default)]
struct Slot<'r> {
    ready: VecDeque<Batch>,
    /// Where to continue, while no thread does because enough batches are ready.
    parked: Option<AnyCursor<'r>>,
}

/// The chunks of a source that are being worked on: the first is the one needed next.
struct SourceQueue<'r> {
    slots: VecDeque<Slot<'r>>,
    /// The chunk of the first slot.
    front: usize,
    /// The chunk to queue next.
    next: usize,
    end: usize,
}

struct State<'r> {
    queue: BinaryHeap<Job<'r>>,
    source_queues: Vec<SourceQueue<'r>>,
    /// Memory of batches that have been merged.
    spare: Vec<(Entries, Line)>,
    stop: bool,
}

/// The work of all threads.
pub(super) struct Jobs<'r> {
    sources: Vec<SourceInfo<'r>>,
    state: Mutex<State<'r>>,
    queued: Condvar,
    ready: Condvar,
    /// Chunks of a source that are worked on at the same time.
    lookahead: usize,
    /// Bytes of text at which a batch is full.
    batch_text: usize,
}

/// What a thread needs to work.
pub(super) struct WorkerState<'r, P> {
    pub renderer: P,
    pub predicate: Predicate<'r>,
    /// What [marks](Select::mark) events.
    pub mark: Option<Predicate<'r>>,
    pub block: EventBlock,
}

impl<'r, P: Renderer> WorkerState<'r, P> {
    pub(super) fn new(renderer: P, select: &'r dyn Select) -> Self {
        Self {
            renderer,
            predicate: select.predicate(),
            mark: select.mark(),
            block: EventBlock::default(),
        }
    }
}

/// What a thread works with, whatever its renderer: merging and sharing out the work are compiled once.
pub(super) trait Worker<'r>: Send {
    /// Decodes and renders a batch of events; the cursor is `None` at the end of the chunk.
    fn do_job(&mut self, jobs: &Jobs<'r>, job: Job<'r>) -> (Batch, Option<AnyCursor<'r>>);

    /// As [`Renderer::looks_at`].
    fn looks_at(
        &self,
        recording: usize,
        source: &AnyRecording,
        class: usize,
        field: FieldId,
    ) -> bool;
}

impl<'r, P: Renderer> Worker<'r> for WorkerState<'r, P> {
    fn do_job(&mut self, jobs: &Jobs<'r>, job: Job<'r>) -> (Batch, Option<AnyCursor<'r>>) {
        jobs.do_job(job, self)
    }

    fn looks_at(
        &self,
        recording: usize,
        source: &AnyRecording,
        class: usize,
        field: FieldId,
    ) -> bool {
        self.renderer.looks_at(recording, source, class, field)
    }
}

impl<'r> Jobs<'r> {
    pub(super) fn new(
        sources: Vec<SourceInfo<'r>>,
        select: &dyn Select,
        threads: usize,
        buffer: usize,
        by_stream: bool,
    ) -> Self {
        // Few sources at once: several chunks of each, or the threads would starve.
        let lookahead = if by_stream || sources.len() < 2 * threads {
            1 + threads
        } else {
            1
        };
        // Batches of this size mostly stay in the processor's cache until they are merged, and
        // threads seldom have to wake each other; but where one source has to keep several
        // threads busy, a batch should hold a whole chunk.
        let largest = if sources.len() < threads {
            4 << 20
        } else {
            1 << 20
        };
        let batches = (sources.len() * (BATCHES_AHEAD * lookahead + 1)).max(1);
        let source_queues = sources
            .iter()
            .map(|source| {
                let wanted = source.wanted_chunks(select);
                SourceQueue {
                    slots: VecDeque::new(),
                    front: wanted.start,
                    next: wanted.start,
                    end: wanted.end,
                }
            })
            .collect();
        Self {
            sources,
            state: Mutex::new(State {
                queue: BinaryHeap::new(),
                source_queues,
                spare: Vec::new(),
                stop: false,
            }),
            queued: Condvar::new(),
            ready: Condvar::new(),
            lookahead,
            batch_text: (buffer / batches).clamp(4 << 10, largest),
        }
    }

    pub(super) fn sources(&self) -> &[SourceInfo<'r>] {
        &self.sources
    }

    fn lock(&self) -> MutexGuard<'_, State<'r>> {
        // A thread that panicked has left no half-done state: slots change in one step.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the threads end.
    pub(super) fn stop(&self) {
        self.lock().stop = true;
        self.queued.notify_all();
        self.ready.notify_all();
    }

    /// Works until `stop` is set.
    pub(super) fn work(&self, worker: &mut dyn Worker<'r>) {
        // Should this thread panic, the others must not wait for it.
        let _stop = StopOnDrop(self);
        let mut state = self.lock();
        while !state.stop {
            match state.queue.pop() {
                Some(job) => {
                    drop(state);
                    self.finish(job, worker);
                    state = self.lock();
                }
                None => {
                    state = self
                        .queued
                        .wait(state)
                        .unwrap_or_else(PoisonError::into_inner)
                }
            }
        }
    }

    /// The chunk from which on the chunks of a source are wanted.
    pub(super) fn front(&self, source: usize) -> Option<usize> {
        let source_queue = &self.lock().source_queues[source];
        (source_queue.front < source_queue.end).then_some(source_queue.front)
    }

    /// Takes back the memory of a batch that has been merged.
    pub(super) fn reuse(&self, mut batch: Batch) {
        batch.entries.clear();
        batch.text.clear();
        // What one large event has blown up is better given back.
        let is_usual = batch.text.capacity() <= 2 * self.batch_text;
        if is_usual && batch.entries.times.capacity() > 0 {
            self.lock().spare.push((batch.entries, batch.text));
        }
    }

    /// The next batch of a source; `None` when there are no more. Works on other jobs
    /// while it is not ready.
    pub(super) fn next_batch(&self, source: usize, worker: &mut dyn Worker<'r>) -> Option<Batch> {
        let mut state = self.lock();
        loop {
            assert!(!state.stop, "a thread of the pipeline panicked");
            self.fill(&mut state, source);
            let source_queue = &mut state.source_queues[source];
            let slot = source_queue.slots.front_mut()?;
            if let Some(batch) = slot.ready.pop_front() {
                if batch.last {
                    source_queue.slots.pop_front();
                    source_queue.front += 1;
                    self.fill(&mut state, source);
                } else if let Some(cursor) = slot.parked.take() {
                    let chunk = source_queue.front;
                    state.queue.push(Job {
                        time: batch.time(),
                        source,
                        chunk,
                        cursor: Some(cursor),
                    });
                    self.queued.notify_one();
                }
                return Some(batch);
            }
            match state.queue.pop() {
                Some(job) => {
                    drop(state);
                    self.finish(job, worker);
                    state = self.lock();
                }
                None => {
                    state = self
                        .ready
                        .wait(state)
                        .unwrap_or_else(PoisonError::into_inner)
                }
            }
        }
    }

    /// Queues chunks of a source as far ahead as it may.
    fn fill(&self, state: &mut State<'r>, source: usize) {
        let source_queue = &mut state.source_queues[source];
        while source_queue.slots.len() < self.lookahead && source_queue.next < source_queue.end {
            let chunk = source_queue.next;
            source_queue.next += 1;
            source_queue.slots.push_back(Slot::default());
            let time = self.sources[source]
                .chunk(chunk)
                .and_then(|chunk| chunk.begin_time)
                .map_or(NO_TIME, Timestamp::as_nanos);
            state.queue.push(Job {
                time,
                source,
                chunk,
                cursor: None,
            });
            self.queued.notify_one();
        }
    }

    /// Does a job, puts its batch where it is looked for, and queues what follows unless
    /// enough is ready.
    fn finish(&self, job: Job<'r>, worker: &mut dyn Worker<'r>) {
        let (source, chunk) = (job.source, job.chunk);
        let (batch, cursor) = worker.do_job(self, job);
        let time = batch.time();
        let mut state = self.lock();
        let source_queue = &mut state.source_queues[source];
        let slot = &mut source_queue.slots[chunk - source_queue.front];
        slot.ready.push_back(batch);
        if slot.ready.len() >= BATCHES_AHEAD {
            slot.parked = cursor;
        } else if cursor.is_some() {
            state.queue.push(Job {
                time,
                source,
                chunk,
                cursor,
            });
            self.queued.notify_one();
        }
        drop(state);
        self.ready.notify_one();
    }

    pub(super) fn do_job<P: Renderer>(
        &self,
        job: Job<'r>,
        worker_state: &mut WorkerState<'r, P>,
    ) -> (Batch, Option<AnyCursor<'r>>) {
        let source = &self.sources[job.source];
        let (entries, text) = self.lock().spare.pop().unwrap_or_default();
        let mut batch = Batch {
            chunk: job.chunk,
            entries,
            text,
            first: job.cursor.is_none(),
            ..Batch::default()
        };
        let chunk = source.chunk(job.chunk);
        let Some(chunk) = chunk.filter(|_| !source.is_idle(job.chunk)) else {
            batch.last = true;
            return (batch, None);
        };
        let mut cursor = job
            .cursor
            .unwrap_or_else(|| source.input.narrow_cursor(&chunk, &source.narrowed));
        let mut at = None;
        let filled = each_cursor!(&mut cursor, cursor => {
            self.fill_batch(source, &chunk, cursor, &mut batch, worker_state, &mut at)
        });
        batch.rows = worker_state.renderer.take_rows();
        let block = &mut worker_state.block;
        if each_cursor!(&cursor, cursor => kymo_io::is_cut_off(cursor.bytes())) {
            // What was decoded may be of zeros. The program reports the file.
            block.clear();
            return (
                Batch {
                    chunk: job.chunk,
                    first: batch.first,
                    last: true,
                    ..Batch::default()
                },
                None,
            );
        }
        if !block.is_empty() {
            batch.rows.numbers = std::mem::take(&mut block.numbers);
        }
        batch.take_block(block);
        match filled {
            Ok(true) => return (batch, Some(cursor)),
            Ok(false) => {}
            Err(fault) => {
                batch
                    .text
                    .truncate(batch.entries.last().map_or(0, |entry| entry.text_end));
                batch.fault = Some(source.input.report(&chunk, at, fault));
            }
        }
        batch.last = true;
        (batch, None)
    }

    /// Decodes and renders until the batch is full (`true`) or the chunk ends. `at` is the
    /// event in hand.
    fn fill_batch<C: Cursor, P: Renderer>(
        &self,
        source: &SourceInfo<'r>,
        chunk: &Chunk,
        cursor: &mut C,
        batch: &mut Batch,
        worker_state: &mut WorkerState<'r, P>,
        at: &mut Option<(u64, usize)>,
    ) -> Result<bool, Fault> {
        worker_state
            .renderer
            .chunk(source.recording, source.input, chunk)?;
        worker_state
            .predicate
            .chunk(source.recording, source.input, chunk)?;
        if let Some(mark) = &mut worker_state.mark {
            mark.chunk(source.recording, source.input, chunk)?;
        }
        if let Some(numbers) = worker_state.predicate.numbers()
            && worker_state.renderer.takes_blocks()
        {
            let wish = BlockWish {
                classes: &source.classes,
                numbers,
                window: source.window,
            };
            batch.lend_to(&mut worker_state.block);
            return self.fill_blocks(source.input, cursor, &wish, worker_state, at);
        }
        let Window { begin, end } = source.window;
        let (begin, end) = (begin.as_nanos(), end.as_nanos());
        let most_text = most_text(chunk.bytes);
        loop {
            *at = None;
            let Some(event) = cursor.next_event()? else {
                return Ok(false);
            };
            *at = Some((event.number(), event.class_index()));
            batch.order.add(&event);
            let time = event.timestamp().map_or(NO_TIME, Timestamp::as_nanos);
            if time != NO_TIME && !(begin <= time && time <= end) {
                continue;
            }
            let class = event.class_index();
            if !source.classes[class] || !worker_state.predicate.wants(&event)? {
                continue;
            }
            batch.text.bound(most_text);
            worker_state.renderer.event(&event, &mut batch.text)?;
            if let Some(mark) = &mut worker_state.mark {
                batch.text.push_byte(mark.wants(&event)?.into());
            }
            if batch.text.is_cut() {
                let bit = event.begin_bit();
                return Err(Fault::new(FaultCode::TextLimit, bit, most_text as u64));
            }
            batch.entries.push(Entry {
                time,
                ticks: event.ticks().unwrap_or(0),
                text_end: batch.text.len(),
                class: class as u32,
            });
            let bytes = batch.text.len() + worker_state.renderer.row_bytes();
            if bytes >= self.batch_text || batch.entries.len() >= self.batch_text / 16 {
                return Ok(true);
            }
        }
    }
}

impl<'r> Jobs<'r> {
    /// The same for rows without text, many at once.
    fn fill_blocks<C: Cursor, P: Renderer>(
        &self,
        recording: &AnyRecording,
        cursor: &mut C,
        wish: &BlockWish<'_>,
        worker_state: &mut WorkerState<'r, P>,
        at: &mut Option<(u64, usize)>,
    ) -> Result<bool, Fault> {
        let WorkerState {
            renderer, block, ..
        } = worker_state;
        let most_rows = self.batch_text / 16;
        loop {
            let most = (most_rows - block.len()).min(BLOCK_ROWS);
            let going = renderer.block(recording, cursor, wish, most, self.batch_text, block);
            *at = block.at;
            if !going? {
                return Ok(false);
            }
            let bytes = renderer.row_bytes() + size_of_val(&block.numbers[..]);
            if bytes >= self.batch_text || block.len() >= most_rows {
                return Ok(true);
            }
        }
    }
}

/// How long the text of an event may be, in a chunk of `bytes` bytes. Long names of small fields
/// could make any amount of text of little data, and all of it is in memory.
fn most_text(bytes: u64) -> usize {
    let most = (64 << 20) + bytes.saturating_mul(256);
    most.min(512 << 20) as usize
}

/// Lets all threads end when one does.
pub(super) struct StopOnDrop<'j, 'r>(pub(super) &'j Jobs<'r>);

impl Drop for StopOnDrop<'_, '_> {
    fn drop(&mut self) {
        self.0.stop();
    }
}
