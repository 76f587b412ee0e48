//! Goes through the rows of a recording, in any number of threads, and hands on what they add.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

use kymo_index::{ChunkCounts, Row};
use kymo_model::{
    BlockQuery, Cursor, EventBlock, Fault, FaultReport, FieldId, Interest, Nothing, Recording,
    Tally, Track, Walk,
};
use kymo_text::Line;
use kymo_time::Timestamp;

use super::Filler;
use super::RowPlan;
use super::contributions::{ContributionSink, Contributions, own_begin, own_time};
use crate::AnyRecording;
use crate::pipeline::{self, NO_TIME, Output, RowRun, Select};
use crate::report::MOST_FAULTS;
use crate::show::Sink;
use crate::tracks::TrackPlan;
use kymo_io::in_threads;

/// The size of a chunk that is decoded as a whole.
const MOST_PLAIN: u64 = 4 << 20;

/// Neighbouring chunks are counted together up to this number of events, and this number of chunks.
const MOST_TOGETHER: u64 = 1 << 14;
const MOST_CHUNKS: u64 = 64;

/// What was met beside rows.
#[derive(Debug, Default)]
pub(super) struct Met {
    /// Faults within chunks; at most [`MOST_FAULTS`].
    pub(super) faults: Vec<FaultReport>,
    /// How many faults there are beyond those.
    pub(super) more_faults: u64,
    /// The events of chunks, at the recording's own times, if they were counted.
    pub(super) counts: Vec<ChunkCounts>,
}

impl Met {
    fn fault(&mut self, fault: FaultReport) {
        match self.faults.len() < MOST_FAULTS {
            true => self.faults.push(fault),
            false => self.more_faults += 1,
        }
    }

    /// Adds the counts of the chunk behind those that were added before.
    fn chunk(&mut self, stream: usize, chunk: usize, tallies: &[Tally]) {
        let (stream, chunk) = (stream as u32, chunk as u64);
        let is_next = |of: &&mut ChunkCounts| {
            let is_next = of.stream == stream && of.first + of.chunks == chunk;
            is_next && of.chunks < MOST_CHUNKS && of.events() < MOST_TOGETHER
        };
        let mut known = self.counts.last_mut().filter(is_next);
        let counts = match known.take() {
            Some(counts) => counts,
            None => {
                self.counts.push(ChunkCounts {
                    stream,
                    first: chunk,
                    chunks: 0,
                    classes: Vec::new(),
                });
                let last = self.counts.len() - 1;
                &mut self.counts[last]
            }
        };
        counts.chunks += 1;
        tallies.iter().for_each(|tally| counts.add(tally));
    }
}

/// Goes through rows of a recording in the order of the merge, and hands on what they add.
pub(super) fn run<S: Select>(
    of: &AnyRecording,
    contributions: &mut Contributions<'_>,
    select: &S,
    sink: &mut impl ContributionSink,
) -> Met {
    let of = std::slice::from_ref(of);
    let plan = TrackPlan::of_rules(of, RowPlan::without_columns(of), false);
    run_plan(
        of,
        &plan,
        select,
        &pipeline::Options::default(),
        &mut (contributions, sink),
    )
}

/// Takes the rows of a recording with the columns of a plan.
pub(super) trait TakeRows {
    /// Whether the order of rows of several streams does not matter.
    fn is_by_stream(&self) -> bool {
        false
    }

    /// Takes some rows. `false` ends the run.
    fn rows(&mut self, run: RowRun<'_>, plan: &TrackPlan) -> bool;
}

/// Hands over the rows of a recording in the order of the merge.
pub(super) fn run_plan<S: Select>(
    of: &[AnyRecording],
    plan: &TrackPlan,
    select: &S,
    options: &pipeline::Options,
    take: &mut impl TakeRows,
) -> Met {
    let mut met = Met::default();
    // Its output takes everything.
    let _ = pipeline::run(of, select, options, &mut Gather { plan, take }, &mut met);
    met
}

impl Output for Met {
    fn fault(&mut self, fault: &FaultReport) -> ControlFlow<()> {
        self.fault(fault.clone());
        ControlFlow::Continue(())
    }
}

/// Whether all chunks are so small that each can be decoded as a whole.
pub(super) fn has_small_chunks(of: &AnyRecording) -> bool {
    let fits = |chunk: kymo_model::Chunk| chunk.bytes <= MOST_PLAIN;
    (0..of.streams().len()).all(|stream| of.chunks(stream).all(fits))
}

/// The same as [`run`] for all rows from some chunk of each stream on, one stream after the other, of a recording
/// whose rows are [plain](Contributions::is_plain) and whose chunks are [small](has_small_chunks): so little is asked
/// of each row that the pipeline would take most of the time. Events are counted, too.
pub(super) fn run_plain(
    of: &AnyRecording,
    contributions: &mut Contributions<'_>,
    first_chunks: &[usize],
    sink: &mut (impl ContributionSink + Send),
) -> Met {
    walk_chunks::<true>(of, contributions, first_chunks, sink)
}

/// Counts the events of chunks, from some chunk of each stream on, without looking at more of them.
pub(super) fn count_chunks(
    of: &AnyRecording,
    first_chunks: &[usize],
    stop: &AtomicBool,
) -> Vec<ChunkCounts> {
    walk_chunks::<false>(
        of,
        &mut Contributions::new(of),
        first_chunks,
        &mut Until(stop),
    )
    .counts
}

/// Gets nothing, until it is stopped.
struct Until<'a>(&'a AtomicBool);

impl ContributionSink for Until<'_> {
    fn track(&mut self, _track: &Track) {}

    fn row(&mut self, _track: u32, _row: Row) {}

    fn goes_on(&self) -> bool {
        !self.0.load(Ordering::Relaxed)
    }
}

/// Goes through chunks in all threads. Their rows are handed on if `ROWS` says so.
fn walk_chunks<const ROWS: bool>(
    of: &AnyRecording,
    contributions: &mut Contributions<'_>,
    first_chunks: &[usize],
    sink: &mut (impl ContributionSink + Send),
) -> Met {
    let threads = pipeline::Options::default().threads;
    let own_begin = own_begin(of);
    // Of each stream, the number of chunks before it, and its first chunk.
    let mut streams = Vec::new();
    let mut count = 0;
    for stream in 0..of.streams().len() {
        let all = of.chunk_count(stream);
        let first = first_chunks.get(stream).map_or(0, |&first| first.min(all));
        streams.push((count, first));
        count += all - first;
    }
    let state = Mutex::new(InOrder {
        contributions,
        sink,
        met: Met::default(),
        next: 0,
        waiting: BTreeMap::new(),
        spare: Vec::new(),
    });
    let changed = Condvar::new();
    let lock = || state.lock().unwrap_or_else(PoisonError::into_inner);
    let classes = of.event_classes().len();
    in_threads(
        count,
        threads,
        || Tallies::new(own_begin, classes),
        |tallies, number| {
            let stream = streams.partition_point(|&(before, _)| before <= number) - 1;
            let (before, first) = streams[stream];
            let mut plain = PlainChunk {
                stream,
                number: first + number - before,
                ..lock().spare.pop().unwrap_or_default()
            };
            if let Some(chunk) = of.chunk(stream, plain.number) {
                let content_bits = of.content_bits(&chunk);
                let walked = of.walk(
                    &chunk,
                    WalkPlain::<ROWS> {
                        rows: &mut plain.rows,
                        tallies,
                        content_bits,
                    },
                );
                tallies.take(&mut plain.tallies);
                // Events are not decoded: it is between two of them.
                plain.fault = walked.err().map(|fault| of.report(&chunk, None, fault));
                if !ROWS {
                    plain.rows.clear();
                }
            }
            let mut state = lock();
            // Who works on the next one never waits.
            while number > state.next + 4 * threads {
                state = changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            state.add(number, plain);
            changed.notify_all();
            state.sink.goes_on()
        },
    );
    let state = state.into_inner().unwrap_or_else(PoisonError::into_inner);
    state.met
}

/// The events of a chunk.
#[derive(Default)]
struct PlainChunk {
    stream: usize,
    number: usize,
    /// When they were, at the recording's own times, and their classes; none if rows are not handed on.
    rows: EventBlock,
    /// At the recording's own times.
    tallies: Vec<Tally>,
    fault: Option<FaultReport>,
}

/// The events of a class in a chunk, in the making.
#[derive(Clone, Copy)]
struct ClassTally {
    events: u64,
    bits: u64,
    /// When the first and the last one were, if the last one is not [`NO_TIME`].
    first: i64,
    last: i64,
}

impl ClassTally {
    const NONE: Self = Self {
        events: 0,
        bits: 0,
        first: i64::MAX,
        last: NO_TIME,
    };
}

/// The events of a chunk by class.
struct Tallies {
    own_begin: i64,
    /// By class.
    classes: Vec<ClassTally>,
    /// Those of which there are events.
    met: Vec<u32>,
    /// Where the event before begins, and its class.
    before: Option<(u64, u32)>,
}

impl Tallies {
    fn new(own_begin: i64, classes: usize) -> Self {
        Self {
            own_begin,
            classes: vec![ClassTally::NONE; classes],
            met: Vec::new(),
            before: None,
        }
    }

    /// Adds the events of a walk, which are those behind the first ones; their times become the recording's own.
    fn add(&mut self, rows: &mut EventBlock, first: usize) {
        let times = &mut rows.times[first..];
        let classes = &rows.classes[first..];
        let (Some(&begin), Some(&class)) = (rows.begins.first(), classes.first()) else {
            return;
        };
        let (mut begin_before, mut class_before) = self.before.unwrap_or((begin, class));
        for ((time, &class), &begin) in times.iter_mut().zip(classes).zip(&rows.begins) {
            // Where one begins, the one before ends.
            self.classes[class_before as usize].bits += begin.saturating_sub(begin_before);
            (begin_before, class_before) = (begin, class);
            let tally = &mut self.classes[class as usize];
            if tally.events == 0 {
                self.met.push(class);
            }
            tally.events += 1;
            if *time != NO_TIME {
                *time = own_time(*time, self.own_begin);
                tally.first = tally.first.min(*time);
            }
            tally.last = tally.last.max(*time);
        }
        self.before = Some((begin_before, class_before));
    }

    /// The chunk ends at a bit.
    fn end(&mut self, bit: u64) {
        if let Some((begin, class)) = self.before {
            self.classes[class as usize].bits += bit.saturating_sub(begin);
        }
    }

    /// Hands out what was added, and starts over.
    fn take(&mut self, tallies: &mut Vec<Tally>) {
        self.before = None;
        for class in self.met.drain(..) {
            let class = class as usize;
            let of = std::mem::replace(&mut self.classes[class], ClassTally::NONE);
            let time = |time| (of.last != NO_TIME).then_some(Timestamp::from_nanos(time));
            tallies.push(Tally {
                class,
                events: of.events,
                bits: of.bits,
                first: time(of.first),
                last: time(of.last),
            });
        }
    }
}

struct WalkPlain<'a, const ROWS: bool> {
    rows: &'a mut EventBlock,
    tallies: &'a mut Tallies,
    content_bits: u64,
}

/// Number of events that are tallied at once.
const TALLIED_AT_ONCE: usize = 1024;

impl<const ROWS: bool> Walk for WalkPlain<'_, ROWS> {
    type Output = Result<(), Fault>;

    fn walk<C: Cursor>(self, mut cursor: C) -> Result<(), Fault> {
        let interest = Interest {
            is_wanted: true,
            ..Interest::default()
        };
        let interests = vec![interest; self.tallies.classes.len()];
        let query = BlockQuery {
            wants_begins: true,
            ..BlockQuery::all(&interests)
        };
        let rows = self.rows;
        loop {
            if !ROWS {
                rows.clear();
            }
            let first = rows.len();
            let walked = cursor.walk_block(&query, TALLIED_AT_ONCE, rows, &mut Nothing);
            self.tallies.add(rows, first);
            if !walked? {
                self.tallies.end(self.content_bits);
                return Ok(());
            }
        }
    }
}

/// Takes the rows of chunks in the order of the chunks.
struct InOrder<'a, 'r, S> {
    contributions: &'a mut Contributions<'r>,
    sink: &'a mut S,
    met: Met,
    next: usize,
    waiting: BTreeMap<usize, PlainChunk>,
    /// Memory of chunks that were taken.
    spare: Vec<PlainChunk>,
}

impl<S: ContributionSink> InOrder<'_, '_, S> {
    fn add(&mut self, number: usize, chunk: PlainChunk) {
        self.waiting.insert(number, chunk);
        while let Some(mut chunk) = self.waiting.remove(&self.next) {
            self.next += 1;
            self.sink.run(chunk.stream, chunk.number, chunk.rows.len());
            let rows = (&chunk.rows.times[..], &chunk.rows.classes[..]);
            self.contributions.plain_rows(chunk.stream, rows, self.sink);
            match chunk.fault.take() {
                Some(fault) => self.met.fault(fault),
                None => self.met.chunk(chunk.stream, chunk.number, &chunk.tallies),
            }
            chunk.rows.clear();
            chunk.tallies.clear();
            self.spare.push(chunk);
        }
    }
}

struct Gather<'a, T> {
    plan: &'a TrackPlan,
    take: &'a mut T,
}

impl<'a, T: TakeRows> Sink for Gather<'a, T> {
    type Renderer = Filler<'a>;

    const ROWS: bool = true;

    fn renderer(&self) -> Filler<'a> {
        Filler::new(&self.plan.rows)
    }

    fn is_by_stream(&self) -> bool {
        self.take.is_by_stream()
    }

    fn looks_at(&self, recording: usize, of: &AnyRecording, class: usize, field: FieldId) -> bool {
        self.plan.rows.looks_at(recording, of, class, field)
    }

    fn rows(
        &mut self,
        run: RowRun<'_>,
        _of: &[AnyRecording],
        _out: &mut Line,
        _warnings: &mut Vec<u8>,
    ) -> bool {
        self.take.rows(run, self.plan)
    }
}
