//! Merges the batches of all sources into one sequence.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::io;
use std::sync::Arc;

use kymo_model::batch::{MergedRows, SourceRun};
use kymo_model::{Narrowed, Recording, RowPlace};
use kymo_text::Line;
use kymo_time::Timestamp;

use super::entries::NO_TIME;
use super::head::{Head, Key};
use super::job::{Jobs, StopOnDrop, Worker};
use super::source::SourceInfo;
use super::window::{MergeWindow, renew_keys};
use super::{Options, Output, Select, Summary};
use crate::AnyRecording;
use crate::show::{Message, MessageKind, Sink};

/// Maximum number of runs of rows that are handed over at once.
const MOST_RUNS: usize = 256;

/// Text is handed over in parts of about this size.
const OUTPUT_PART: usize = 64 << 10;

/// For each event class of each recording whether it may be wanted.
pub(super) fn wanted_classes(recordings: &[AnyRecording], select: &dyn Select) -> Vec<Arc<[bool]>> {
    let of_recording = |(recording, source): (usize, &AnyRecording)| {
        let classes = 0..source.event_classes().len();
        classes
            .map(|class| select.wants_class(recording, source, class))
            .collect()
    };
    recordings.iter().enumerate().map(of_recording).collect()
}

/// Merges the batches of all sources.
pub(super) struct Merger<'r> {
    recordings: &'r [AnyRecording],
    select: &'r dyn Select,
    options: &'r Options,
    sink: &'r mut dyn Sink,
    /// Whether the sink takes rows, not text.
    takes_rows: bool,
    output: &'r mut dyn Output,
    summary: Summary,
    text: Line,
    warnings: Vec<u8>,
    /// Rows that were merged, but not handed over yet; empty unless many runs are handed over at once.
    runs: Vec<SourceRun>,
}

impl<'r> Merger<'r> {
    pub(super) fn new(
        recordings: &'r [AnyRecording],
        select: &'r dyn Select,
        options: &'r Options,
        sink: &'r mut dyn Sink,
        output: &'r mut dyn Output,
    ) -> Self {
        Self {
            recordings,
            select,
            options,
            takes_rows: sink.takes_rows(),
            sink,
            output,
            summary: Summary::default(),
            text: Line::new(),
            warnings: Vec::new(),
            runs: Vec::new(),
        }
    }

    /// One thread for each worker, of which there is at least one: the first is this thread's.
    pub(super) fn run(mut self, mut workers: Vec<Box<dyn Worker<'r> + 'r>>) -> io::Result<Summary> {
        let recordings = self.recordings;
        let wanted = wanted_classes(recordings, self.select);
        let threads = workers.len();
        let mut worker = workers.swap_remove(0);
        let mut sources = Vec::new();
        for (recording, source) in recordings.iter().enumerate() {
            let narrowed = match self.takes_rows {
                true => source.narrow(&|class, field| {
                    worker.looks_at(recording, source, class, field)
                        || self.select.looks_at(recording, class, field)
                }),
                false => Narrowed::default(),
            };
            for stream in 0..source.streams().len() {
                sources.push(SourceInfo {
                    recording,
                    stream,
                    input: source,
                    window: self.select.window(recording),
                    classes: Arc::clone(&wanted[recording]),
                    narrowed: narrowed.clone(),
                    idle: self.select.idle_chunks(recording, stream),
                });
            }
        }
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
            for mut worker in workers {
                let jobs = &jobs;
                let spawned = std::thread::Builder::new()
                    .spawn_scoped(scope, move || jobs.work(&mut *worker));
                if spawned.is_err() {
                    // The system has no more threads: those that there are do the work.
                    break;
                }
            }
            self.merge(&jobs, &mut *worker)
        });
        result.map(|()| self.summary)
    }

    fn merge(&mut self, jobs: &Jobs<'r>, worker: &mut dyn Worker<'r>) -> io::Result<()> {
        let by_stream = self.sink.is_by_stream();
        let ranks = match by_stream {
            true => (0..).take(jobs.sources().len()).collect(),
            false => ranks(jobs.sources()),
        };
        let mut window = MergeWindow::new(&ranks, by_stream);
        let mut heads: Vec<Head<'r>> = Vec::with_capacity(ranks.len());
        let mut heap = BinaryHeap::with_capacity(ranks.len());
        let output = &mut *self.output;
        self.sink
            .begin(self.recordings, &mut |text| output.text(text))?;
        let mut going = self.options.limit != Some(0);
        for (source, (info, rank)) in jobs.sources().iter().zip(ranks).enumerate() {
            let mut head = Head::new(info, rank, by_stream, self.takes_rows);
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
                    going = going && self.refill(jobs, source, &mut head, worker)?;
                    heap.extend(head.key(source).map(Reverse));
                }
            }
            heads.push(head);
        }
        let takes_runs = self.takes_rows && self.sink.takes_runs();
        while going {
            if window.is_due() {
                (going, heap) = self.hand_over_window(&mut window, &mut heads, heap)?;
                if !going {
                    break;
                }
            }
            let Some(Reverse(mut key)) = heap.pop() else {
                break;
            };
            while going {
                let source = key.source;
                if heads[source].is_empty() {
                    going = self.hand_over_runs(&heads)
                        && self.refill(jobs, source, &mut heads[source], worker)?;
                    let Some(next) = heads[source].key(source) else {
                        break;
                    };
                    key = next;
                    continue;
                }
                // It is the key of what comes next: one that was made before that was known is of an empty source.
                let end = match heap.peek() {
                    // Another source comes first: it changes places with this one.
                    Some(Reverse(first)) if *first < key => {
                        if let Some(mut first) = heap.peek_mut() {
                            key = std::mem::replace(&mut first.0, key);
                        }
                        continue;
                    }
                    Some(Reverse(first)) if !by_stream => first.time,
                    _ => i64::MAX,
                };
                let head = &mut heads[source];
                let (first, is_at_event) = (head.next, head.is_at_event());
                going = match takes_runs && is_at_event {
                    true => self.add_run(source, head, end),
                    false => {
                        self.hand_over_runs(&heads) && self.hand_over(&mut heads[source], end)?
                    }
                };
                if self.takes_rows && is_at_event {
                    window.run_taken(heads[source].next - first);
                }
                if self.runs.len() >= MOST_RUNS {
                    going = self.hand_over_runs(&heads) && going;
                }
                if let Some(next) = heads[source].key(source) {
                    key = next;
                }
                if window.is_due() {
                    heap.push(Reverse(key));
                    break;
                }
            }
        }
        self.hand_over_runs(&heads);
        self.sink.finish(&mut self.text, &mut self.warnings);
        self.flush()
    }

    /// Makes a source's next message known, if there is one. `false` ends the run.
    fn refill(
        &mut self,
        jobs: &Jobs<'r>,
        source: usize,
        head: &mut Head<'r>,
        worker: &mut dyn Worker<'r>,
    ) -> io::Result<bool> {
        while head.is_empty() && !head.ended {
            if self.select.is_stopped() {
                return Ok(false);
            }
            jobs.reuse(std::mem::take(&mut head.batch));
            head.next = 0;
            let structure = self.sink.wants_structure();
            let Some(batch) = jobs.next_batch(source, worker) else {
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

    /// Hands over the first message of a source, and all events right after it that are
    /// earlier than `end`. `false` ends the run.
    fn hand_over(&mut self, head: &mut Head<'r>, end: i64) -> io::Result<bool> {
        if !head.is_at_event() {
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
        if self.takes_rows {
            let count = self.run_length(head, end);
            return self.hand_over_rows(head, count);
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

    /// Hands over the next rows of a source. `false` ends the run.
    fn hand_over_rows(&mut self, head: &mut Head<'r>, count: usize) -> io::Result<bool> {
        let (out, warnings) = (&mut self.text, &mut self.warnings);
        let going = (self.sink).rows(head.run(count), self.recordings, out, warnings);
        head.pass(count);
        self.summary.events += count as u64;
        if self.text.len() >= OUTPUT_PART || !self.warnings.is_empty() {
            self.flush()?;
        }
        Ok(going && self.options.limit != Some(self.summary.events))
    }

    /// Takes the next row of a source, and all right after it that are earlier than `end`, as a run that is
    /// handed over with others. `false` ends the run of all.
    fn add_run(&mut self, source: usize, head: &mut Head<'r>, end: i64) -> bool {
        let first = head.next;
        let rows = self.run_length(head, end);
        head.next += rows;
        self.summary.events += rows as u64;
        match self.runs.last_mut() {
            Some(last) if last.source == source => last.rows += rows,
            _ => self.runs.push(SourceRun {
                source,
                first,
                rows,
            }),
        }
        self.options.limit != Some(self.summary.events)
    }

    /// The number of rows from the next one of a source on that are handed over together: those earlier than `end`.
    #[inline]
    fn run_length(&self, head: &Head<'r>, end: i64) -> usize {
        let left = &head.batch.entries.times()[head.next..];
        let limit = self.options.limit;
        let most = limit.map_or(u64::MAX, |limit| limit - self.summary.events);
        let later = left.iter().skip(1).position(|&time| time >= end);
        let rows = later.map_or(left.len(), |later| later + 1);
        rows.min(usize::try_from(most).unwrap_or(usize::MAX))
    }

    /// Hands over the runs of rows that were taken. `false` ends the run of all.
    fn hand_over_runs(&mut self, heads: &[Head<'r>]) -> bool {
        if self.runs.is_empty() {
            return true;
        }
        let sources: Vec<_> = heads.iter().map(Head::rows).collect();
        let going = self.sink.runs(&sources, &self.runs);
        self.runs.clear();
        going
    }

    /// Hands over rows of which the order is found at once, if there are any. `false` ends the run of all.
    fn hand_over_window(
        &mut self,
        window: &mut MergeWindow,
        heads: &mut [Head<'r>],
        heap: BinaryHeap<Reverse<Key>>,
    ) -> io::Result<(bool, BinaryHeap<Reverse<Key>>)> {
        let limit = self.options.limit;
        let most = limit.map_or(u64::MAX, |limit| limit - self.summary.events);
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let keys = heap.iter().map(|Reverse(key)| key);
        let Some(merged) = window.find(heads, keys, most) else {
            return Ok((true, heap));
        };
        let mut going = self.hand_over_runs(heads);
        if !going {
            return Ok((false, heap));
        }
        if self.sink.takes_runs() {
            let sources: Vec<_> = heads.iter().map(Head::rows).collect();
            going = self.sink.merged(&sources, merged);
            self.summary.events += merged.order.len() as u64;
            for part in merged.parts {
                heads[part.source].next += part.rows;
            }
            going = going && limit != Some(self.summary.events);
        } else if let Some(goes_on) = self.hand_over_mixed(heads, merged) {
            going = goes_on;
        } else {
            for run in merged.runs() {
                going = self.hand_over_rows(&mut heads[run.source], run.rows)?;
                if !going {
                    break;
                }
            }
        }
        Ok((going, renew_keys(heap, heads)))
    }

    /// Hands over rows of several sources at once, if the sink takes them so. `false` ends the run.
    fn hand_over_mixed(&mut self, heads: &mut [Head<'r>], merged: MergedRows<'_>) -> Option<bool> {
        let place = |source| merged.parts.iter().position(|part| part.source == source);
        let runs = heads.iter_mut().enumerate().filter_map(|(source, head)| {
            let place = place(source)?;
            Some((place, head.run(merged.parts[place].rows)))
        });
        let mut runs: Vec<_> = runs.collect();
        runs.sort_unstable_by_key(|(place, _)| *place);
        let mut runs: Vec<_> = runs.into_iter().map(|(_, run)| run).collect();
        let going = (self.sink).mixed_rows(&mut runs, merged.order, self.recordings)?;
        for part in merged.parts {
            heads[part.source].pass(part.rows);
        }
        self.summary.events += merged.order.len() as u64;
        Some(going && self.options.limit != Some(self.summary.events))
    }

    /// Hands over the text of all events of a batch that are left, as it is. `false` ends the run.
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

/// The place of each source among all: by the identity of its recording, then by the
/// numbers of its stream class and stream.
pub(super) fn ranks(sources: &[SourceInfo<'_>]) -> Vec<u32> {
    let mut order: Vec<usize> = (0..sources.len()).collect();
    let compare = |&left: &usize, &right: &usize| -> Ordering {
        let (left, right) = (&sources[left], &sources[right]);
        let identity = |source: &SourceInfo<'_>| {
            let stream = &source.input.streams()[source.stream];
            (stream.class, stream.id.unwrap_or(source.stream as u64))
        };
        compare_recordings(left.input, right.input)
            .then_with(|| identity(left).cmp(&identity(right)))
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

/// Recordings with an identifier come before those without, and so do those with a name.
pub(crate) fn compare_recordings(left: &AnyRecording, right: &AnyRecording) -> Ordering {
    let some_first = |option: Option<&str>| (option.is_none(), option.map(str::to_owned));
    some_first(left.uid())
        .cmp(&some_first(right.uid()))
        .then_with(|| some_first(left.name()).cmp(&some_first(right.name())))
}
