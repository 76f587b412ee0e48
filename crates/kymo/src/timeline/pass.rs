//! Goes through the rows of a recording, in any number of threads, and hands on what they add.

use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

use kymo_index::{ChunkCounts, Row, are_sorted};
use kymo_model::{Cursor, EventHeaders, Fault, FaultReport, Recording, Tally, Track, Walk};
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

/// Neighbouring chunks are read at once up to this size together.
const READ_AT_ONCE: u64 = 256 << 10;

/// Neighbouring chunks are counted together up to this number of events, and this number of chunks.
const MOST_TOGETHER: u64 = 1 << 14;
const MOST_CHUNKS: u64 = 64;

/// What a pass found beside rows.
#[derive(Debug, Default)]
pub(super) struct PassResult {
    /// Faults within chunks; at most [`MOST_FAULTS`].
    pub(super) faults: Vec<FaultReport>,
    /// How many faults there are beyond those.
    pub(super) more_faults: u64,
    /// The events of chunks, at the recording's own times, if they were counted.
    pub(super) counts: Vec<ChunkCounts>,
}

impl PassResult {
    fn fault(&mut self, fault: FaultReport) {
        match self.faults.len() < MOST_FAULTS {
            true => self.faults.push(fault),
            false => self.more_faults += 1,
        }
    }

    /// Adds counts of chunks.
    fn count(&mut self, counts: ChunkCounts) {
        let is_next = |last: &&mut ChunkCounts| {
            let is_next = last.stream == counts.stream && last.first + last.chunks == counts.first;
            is_next && last.chunks + counts.chunks <= MOST_CHUNKS && last.events() < MOST_TOGETHER
        };
        match self.counts.last_mut().filter(is_next) {
            Some(known) => {
                known.chunks += counts.chunks;
                counts.classes.iter().for_each(|tally| known.add(tally));
            }
            None => self.counts.push(counts),
        }
    }
}

/// Goes through rows of a recording in the order of the merge, and hands on what they add.
pub(super) fn run(
    recording: &AnyRecording,
    contributions: &mut Contributions<'_>,
    select: &dyn Select,
    sink: &mut impl ContributionSink,
) -> PassResult {
    let recordings = std::slice::from_ref(recording);
    let plan = TrackPlan::of_rules(recordings, RowPlan::without_columns(recordings), false);
    run_plan(
        recordings,
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
pub(super) fn run_plan(
    recordings: &[AnyRecording],
    plan: &TrackPlan,
    select: &dyn Select,
    options: &pipeline::Options,
    take: &mut impl TakeRows,
) -> PassResult {
    let mut result = PassResult::default();
    // Its output takes everything.
    let _ = pipeline::run(
        recordings,
        select,
        options,
        &mut Gather { plan, take },
        &mut result,
    );
    result
}

impl Output for PassResult {
    fn fault(&mut self, fault: &FaultReport) -> ControlFlow<()> {
        self.fault(fault.clone());
        ControlFlow::Continue(())
    }
}

/// Chunks of a recording, from some chunk of each stream on, and which of them are read at once.
pub(super) struct Chunks {
    streams: Vec<StreamChunks>,
    /// How many times some are read at once.
    count: usize,
    largest: u64,
}

struct StreamChunks {
    /// How many times some are read of the streams before this one.
    before: usize,
    range: Range<usize>,
    at_once: usize,
}

impl Chunks {
    pub(super) fn new(recording: &AnyRecording, first_chunks: &[usize]) -> Self {
        let mut chunks = Self {
            streams: Vec::new(),
            count: 0,
            largest: 0,
        };
        for stream in 0..recording.streams().len() {
            let all = recording.chunk_count(stream);
            let first = first_chunks.get(stream).map_or(0, |&first| first.min(all));
            let largest = recording.chunks(stream).map(|chunk| chunk.bytes).max();
            let largest = largest.unwrap_or(0);
            let at_once = (READ_AT_ONCE / largest.max(1)).clamp(1, MOST_CHUNKS) as usize;
            chunks.streams.push(StreamChunks {
                before: chunks.count,
                range: first..all,
                at_once,
            });
            chunks.count += (all - first).div_ceil(at_once);
            chunks.largest = chunks.largest.max(largest);
        }
        chunks
    }

    /// Whether each can be decoded as a whole.
    pub(super) fn are_small(&self) -> bool {
        self.largest <= MOST_PLAIN
    }

    /// The stream and the chunks that are read the `number`th time.
    fn at(&self, number: usize) -> (usize, Range<usize>) {
        let stream = self
            .streams
            .partition_point(|stream| stream.before <= number)
            - 1;
        let chunks = &self.streams[stream];
        let first = chunks.range.start + (number - chunks.before) * chunks.at_once;
        (stream, first..chunks.range.end.min(first + chunks.at_once))
    }
}

/// The same as [`run`] for all rows of some chunks, one stream after the other, of a recording whose rows are
/// [plain](Contributions::is_plain) and whose chunks are [small](Chunks::are_small): so little is asked of each row
/// that the pipeline would take most of the time. Events are counted, too.
pub(super) fn run_plain(
    recording: &AnyRecording,
    contributions: &mut Contributions<'_>,
    chunks: &Chunks,
    sink: &mut (impl ContributionSink + Send),
) -> PassResult {
    walk_chunks::<true>(recording, contributions, chunks, sink)
}

/// Counts the events of chunks without looking at more of them.
pub(super) fn count_chunks(
    recording: &AnyRecording,
    chunks: &Chunks,
    stop: &AtomicBool,
) -> Vec<ChunkCounts> {
    let contributions = &mut Contributions::new(recording);
    walk_chunks::<false>(recording, contributions, chunks, &mut Until(stop)).counts
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
    recording: &AnyRecording,
    contributions: &mut Contributions<'_>,
    chunks: &Chunks,
    sink: &mut (impl ContributionSink + Send),
) -> PassResult {
    let threads = pipeline::Options::default().threads;
    let own_begin = own_begin(recording);
    let state = Mutex::new(InOrder {
        contributions,
        sink,
        result: PassResult::default(),
        next: 0,
        waiting: BTreeMap::new(),
        spare: Vec::new(),
    });
    let changed = Condvar::new();
    let lock = || state.lock().unwrap_or_else(PoisonError::into_inner);
    let classes = recording.event_classes().len();
    in_threads(
        chunks.count,
        threads,
        || Tallies::new(own_begin, classes),
        |tallies, number| {
            let mut plain = lock().spare.pop().unwrap_or_default();
            plain.read::<ROWS>(recording, chunks.at(number), tallies);
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
    state.result
}

/// The events of neighbouring chunks of a stream.
#[derive(Default)]
struct PlainChunks {
    stream: usize,
    first: usize,
    /// Of each chunk the number of its rows, and what ended it early.
    chunks: Vec<(usize, Option<FaultReport>)>,
    /// All rows, at the recording's own times; none if rows are not handed on.
    rows: EventHeaders,
    /// The events of chunks without a fault, at the recording's own times.
    counts: Vec<ChunkCounts>,
}

impl PlainChunks {
    /// Reads chunks of a stream; nothing is in it yet.
    fn read<const ROWS: bool>(
        &mut self,
        recording: &AnyRecording,
        (stream, numbers): (usize, Range<usize>),
        tallies: &mut Tallies,
    ) {
        (self.stream, self.first) = (stream, numbers.start);
        // The chunks that are counted together, and their first row.
        let mut counted = numbers.start..numbers.start;
        let mut first = 0;
        for number in numbers {
            let before = self.rows.len();
            let mut fault = None;
            if let Some(chunk) = recording.chunk(stream, number) {
                let walked = recording.walk(&chunk, WalkPlain(&mut self.rows));
                // Fields are not decoded: it is between two events.
                fault = walked
                    .err()
                    .map(|fault| recording.report(&chunk, None, fault));
                if fault.is_none() {
                    tallies.add(&self.rows, before, recording.content_bits(&chunk));
                }
            }
            if fault.is_some() {
                self.count(counted, first..before, tallies);
                counted = number + 1..number + 1;
                first = self.rows.len();
            } else {
                counted.end = number + 1;
            }
            self.chunks.push((self.rows.len() - before, fault));
        }
        self.count(counted, first..self.rows.len(), tallies);
        match ROWS {
            true => make_own(&mut self.rows.times, tallies.own_begin),
            false => self.rows.clear(),
        }
    }

    /// Adds what was tallied of some chunks, which have these rows.
    fn count(&mut self, chunks: Range<usize>, rows: Range<usize>, tallies: &mut Tallies) {
        if !chunks.is_empty() {
            let times = &self.rows.times[rows.clone()];
            tallies.add_times(times, &self.rows.classes[rows]);
            self.counts.push(ChunkCounts {
                stream: self.stream as u32,
                first: chunks.start as u64,
                chunks: chunks.len() as u64,
                classes: tallies.take(),
            });
        }
    }
}

/// Turns times into the recording's own.
fn make_own(times: &mut [i64], own_begin: i64) {
    // Cheaper to find than the least time.
    let all = times.iter().fold(own_begin, |all, time| all | time);
    if all >= 0 {
        // The usual ones: differences of such numbers fit.
        times
            .iter_mut()
            .for_each(|time| *time = time.wrapping_sub(own_begin));
        return;
    }
    for time in times.iter_mut().filter(|time| **time != NO_TIME) {
        *time = own_time(*time, own_begin);
    }
}

/// The events of a class in some chunks, in the making.
#[derive(Clone, Copy)]
struct ClassTally {
    // Not beside the bits: both would be added to as a vector, which takes longer.
    events: u64,
    /// When the first one with a time was, less one: so [`NO_TIME`] is later than all.
    before_first: i64,
    bits: u64,
    /// When the last one was.
    last: i64,
}

impl ClassTally {
    const NONE: Self = Self {
        events: 0,
        before_first: i64::MAX,
        bits: 0,
        last: NO_TIME,
    };
}

/// The events of some chunks by class.
struct Tallies {
    own_begin: i64,
    /// By class.
    classes: Vec<ClassTally>,
}

impl Tallies {
    fn new(own_begin: i64, classes: usize) -> Self {
        Self {
            own_begin,
            classes: vec![ClassTally::NONE; classes],
        }
    }

    /// Adds the events of a chunk, which are those behind the first ones, without their times; the chunk ends at a bit.
    fn add(&mut self, rows: &EventHeaders, first: usize, end: u64) {
        let classes = &rows.classes[first..];
        let Some((&first, begins)) = rows.begins[first..].split_first() else {
            return;
        };
        let tallies = &mut self.classes[..];
        // Where one begins, the one before ends.
        let mut begin = first;
        let mut add = |class: u32, end: u64| {
            let tally = &mut tallies[class as usize];
            tally.events += 1;
            tally.bits += end.saturating_sub(begin);
            begin = end;
        };
        for (&class, &next) in classes.iter().zip(begins) {
            add(class, next);
        }
        if let Some(&class) = classes.last() {
            add(class, end);
        }
    }

    /// Adds when all events were that have been added.
    fn add_times(&mut self, times: &[i64], classes: &[u32]) {
        let events = || times.iter().zip(classes);
        let has_order = times.first().is_none_or(|&time| time != NO_TIME) && are_sorted(times);
        if !has_order {
            for (&time, &class) in events() {
                let tally = &mut self.classes[class as usize];
                tally.before_first = tally.before_first.min(time.wrapping_sub(1));
                tally.last = tally.last.max(time);
            }
            return;
        }
        // The first and the last event of each class are soon found.
        let met = self.classes.iter().filter(|tally| tally.events > 0).count();
        let (mut firsts, mut lasts) = (met, met);
        for (&time, &class) in events() {
            let tally = &mut self.classes[class as usize];
            if tally.before_first == i64::MAX {
                tally.before_first = time.wrapping_sub(1);
                firsts -= 1;
                if firsts == 0 {
                    break;
                }
            }
        }
        for (&time, &class) in events().rev() {
            let tally = &mut self.classes[class as usize];
            if tally.last == NO_TIME {
                tally.last = time;
                lasts -= 1;
                if lasts == 0 {
                    break;
                }
            }
        }
    }

    /// Hands out what was added, in the order of classes and at the recording's own times, and starts over.
    fn take(&mut self) -> Vec<Tally> {
        let own = |time| Timestamp::from_nanos(own_time(time, self.own_begin));
        let tally = |(class, tally): (usize, &mut ClassTally)| {
            let tally = std::mem::replace(tally, ClassTally::NONE);
            let time = |time| (tally.last != NO_TIME).then(|| own(time));
            (tally.events > 0).then(|| Tally {
                class,
                events: tally.events,
                bits: tally.bits,
                first: time(tally.before_first.wrapping_add(1)),
                last: time(tally.last),
            })
        };
        self.classes
            .iter_mut()
            .enumerate()
            .filter_map(tally)
            .collect()
    }
}

/// Reads the headers of the events of a chunk.
struct WalkPlain<'a>(&'a mut EventHeaders);

impl Walk for WalkPlain<'_> {
    type Output = Result<(), Fault>;

    fn walk<C: Cursor>(self, mut cursor: C) -> Result<(), Fault> {
        cursor.walk_headers(self.0)
    }
}

/// Takes the rows of chunks in the order of the chunks.
struct InOrder<'a, 'r, S> {
    contributions: &'a mut Contributions<'r>,
    sink: &'a mut S,
    result: PassResult,
    next: usize,
    waiting: BTreeMap<usize, PlainChunks>,
    /// Memory of chunks that were taken.
    spare: Vec<PlainChunks>,
}

impl<S: ContributionSink> InOrder<'_, '_, S> {
    fn add(&mut self, number: usize, chunks: PlainChunks) {
        self.waiting.insert(number, chunks);
        while let Some(mut chunks) = self.waiting.remove(&self.next) {
            self.next += 1;
            for ((rows, fault), chunk) in chunks.chunks.drain(..).zip(chunks.first..) {
                self.sink.run(chunks.stream, chunk, rows);
                if let Some(fault) = fault {
                    self.result.fault(fault);
                }
            }
            chunks
                .counts
                .drain(..)
                .for_each(|counts| self.result.count(counts));
            let rows = (&chunks.rows.times[..], &chunks.rows.classes[..]);
            self.contributions
                .plain_rows(chunks.stream, rows, self.sink);
            chunks.rows.clear();
            self.spare.push(chunks);
        }
    }
}

struct Gather<'a, T> {
    plan: &'a TrackPlan,
    take: &'a mut T,
}

impl<'a, T: TakeRows> Sink for Gather<'a, T> {
    type Renderer = Filler<'a>;

    fn renderer(&self) -> Filler<'a> {
        Filler::new(&self.plan.rows)
    }

    fn takes_rows(&self) -> bool {
        true
    }

    fn is_by_stream(&self) -> bool {
        self.take.is_by_stream()
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// In whatever order events come, with times or without.
        #[test]
        fn tallies_count_each_event(
            chunks in prop::collection::vec(
                prop::collection::vec((prop_oneof![Just(NO_TIME), -3i64..20], 0u32..4, 0u64..9), 0..12),
                0..4,
            ),
            in_order: bool,
            own_begin in 0i64..3,
        ) {
            let mut chunks = chunks;
            if in_order {
                let mut times: Vec<i64> = chunks.iter().flatten().map(|(time, ..)| *time).collect();
                times.sort_unstable();
                let events = chunks.iter_mut().flatten();
                events.zip(times).for_each(|(event, time)| event.0 = time);
            }
            let mut tallies = Tallies::new(own_begin, 4);
            let mut rows = EventHeaders::default();
            let mut expected: [Option<Tally>; 4] = Default::default();
            for chunk in &chunks {
                let (first, mut end) = (rows.len(), 0);
                for &(time, class, bits) in chunk {
                    rows.times.push(time);
                    rows.classes.push(class);
                    rows.begins.push(end);
                    end += bits;
                    let time = (time != NO_TIME).then(|| Timestamp::from_nanos(time - own_begin));
                    let class = class as usize;
                    let tally = expected[class].get_or_insert(Tally {
                        class,
                        events: 0,
                        bits: 0,
                        first: None,
                        last: None,
                    });
                    tally.events += 1;
                    tally.bits += bits;
                    tally.first = tally.first.into_iter().chain(time).min();
                    tally.last = tally.last.into_iter().chain(time).max();
                }
                tallies.add(&rows, first, end);
            }
            tallies.add_times(&rows.times, &rows.classes);
            let expected: Vec<Tally> = expected.into_iter().flatten().collect();
            prop_assert_eq!(tallies.take(), expected);
            prop_assert!(tallies.take().is_empty());
        }
    }
}
