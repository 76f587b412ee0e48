//! Latencies: how long it takes from a start to its end.

mod show;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use kymo_model::Recording;
use kymo_time::Timestamp;

use super::breakdown::{Breakdown, GroupTable, Span};
use super::calls::MOST_DEPTH;
use super::events::{Error, EventPattern};
use super::feed::{Feed, Whole};
use super::histogram::Histogram;
use super::measured::{Measured, MeasuredQuestion, run_measured};
use super::moments::Moments;
use super::pending::Pending;
use super::run::{Analysis, BEGINS, Coverage, ENDS, Occurrence, Options, PlainEvent};
use super::tracks::{Track, TrackBy, track};
use crate::AnyRecording;
use crate::filter::{FieldNames, FilterError, name_of};
use crate::pipeline::Select;
use crate::tracks::{Ended, Fields, Key, OpenSlices, SliceKeys, TrackTable};

/// Starts that may wait for their ends at the same time.
const MOST_OPEN: usize = 1 << 20;

/// The percentiles that are reported: their keys, and thousandths.
const PERCENTILES: [(&str, u32); 4] = [("p50", 500), ("p90", 900), ("p99", 990), ("p99.9", 999)];

/// Which events belong together.
#[derive(Clone, Debug)]
pub struct LatencyQuery {
    /// The events that start something, and those that end it; without them those that begin and end slices, as the
    /// recordings say.
    pub events: Option<(EventPattern, EventPattern)>,
    /// What a start and its end have in common.
    pub pair_by: PairBy,
    /// What a track is.
    pub tracks: TrackBy,
    /// How many of the longest latencies are kept with their times.
    pub worst: usize,
}

/// What a start and its end have in common.
#[derive(Clone, Debug)]
pub struct PairBy {
    /// The track.
    track: bool,
    /// Fields of the start, and in the same order those of the end.
    fields: Option<(FieldNames, FieldNames)>,
}

impl Default for PairBy {
    /// The track.
    fn default() -> Self {
        Self {
            track: true,
            fields: None,
        }
    }
}

impl PairBy {
    /// Reads a list of `track` and of fields, with commas between them. A field that the end
    /// calls otherwise is `FIELD=FIELD_OF_END`.
    ///
    /// # Errors
    ///
    /// Something else stands there.
    pub fn parse(source: &str) -> Result<Self, FilterError> {
        let (mut start, mut end) = FieldNames::parse_pairs(source)?;
        let track = start.take("track");
        end.take("track");
        Ok(Self {
            track,
            fields: (!start.is_empty()).then_some((start, end)),
        })
    }
}

/// Latencies of recordings.
#[derive(Clone, Debug)]
pub struct Latency {
    /// Starts that were met.
    pub starts: u64,
    /// Ends that were met.
    pub ends: u64,
    /// Starts and ends that have no partner.
    pub unmatched: Unmatched,
    /// Pairs that are not counted, since their end is earlier than their start.
    pub backwards: u64,
    /// The latencies: number, mean, deviation, extremes.
    pub times: Moments,
    /// How many of what length.
    pub histogram: Histogram,
    /// The longest ones, longest first; of equal ones the earlier first.
    pub worst: Vec<Slow>,
    /// The latencies by group, where that was asked for.
    pub groups: Option<GroupTable>,
    /// What was seen.
    pub coverage: Coverage,
    title: String,
    several: bool,
    has_key: bool,
}

/// Starts and ends that have no partner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unmatched {
    /// Starts after which another one like them came first.
    pub replaced: u64,
    /// Starts that had no end when the recordings ended.
    pub open: u64,
    /// Starts that were given up, since too many were open: some may have had an end.
    pub dropped: u64,
    /// Ends without a start.
    pub ends: u64,
}

impl Unmatched {
    /// All starts among them.
    pub fn starts(&self) -> u64 {
        self.replaced + self.open + self.dropped
    }
}

/// A long latency.
#[derive(Clone, Debug, PartialEq)]
pub struct Slow {
    /// How long, in nanoseconds.
    pub nanos: u64,
    /// When it started.
    pub start: Timestamp,
    /// When it ended.
    pub end: Timestamp,
    /// Where it started.
    pub start_track: Track,
    /// Where it ended.
    pub end_track: Track,
    /// The values of the fields that the start and the end have in common; of a slice that the recording says to
    /// begin and end, the name of the event.
    pub key: String,
}

/// A long latency, in the order in which they are given up.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Candidate {
    pub(super) nanos: u64,
    /// Of equal ones the later is given up first.
    pub(super) start: Reverse<i64>,
    pub(super) end: Reverse<i64>,
    tracks: (u32, u32),
    key: Key,
    /// Recording and event class of the start.
    class: (usize, usize),
}

/// A start that waits for its end.
#[derive(Clone, Copy, Debug)]
struct Start {
    time: i64,
    track: u32,
    group: u32,
    class: (usize, usize),
}

impl Start {
    #[inline]
    fn of(event: &Occurrence<'_>, group: u32) -> Self {
        Self {
            time: event.time,
            track: event.track,
            group,
            class: (event.recording, event.class),
        }
    }
}

/// What a start and its end have in common.
type Shared = (u32, Key);

/// So many tracks are found in an array.
const MOST_TRACKS: usize = 1 << 12;

/// Gets the start and the end of each pair, in nanoseconds, in the order of the ends.
pub type EachPair<'f> = &'f mut dyn FnMut(i64, i64);

/// The latencies so far.
pub(super) struct Work<'w, 'f> {
    each: Option<EachPair<'f>>,
    by_track: bool,
    breakdown: Breakdown<'w>,
    most_worst: usize,
    open: Pending<Shared, Start>,
    /// The same of the first tracks, by number, if nothing else distinguishes them.
    of_tracks: Vec<Option<Start>>,
    most_tracks: u32,
    /// The same of slices that nest, where recordings say what begins and ends them.
    slices: Option<OpenSlices<Start>>,
    /// Slices that were dropped, since too many were open.
    dropped: u64,
    pub(super) starts: u64,
    pub(super) ends: u64,
    pub(super) pairs: u64,
    pub(super) replaced: u64,
    pub(super) unmatched_ends: u64,
    pub(super) backwards: u64,
    pub(super) times: Moments,
    pub(super) histogram: Histogram,
    pub(super) worst: BinaryHeap<Reverse<Candidate>>,
}

impl<'w, 'f> Work<'w, 'f> {
    pub(super) fn new(by_track: bool, worst: usize, most_open: usize) -> Self {
        let most_tracks = (most_open / 2).min(MOST_TRACKS);
        Self {
            each: None,
            by_track,
            breakdown: Breakdown::default(),
            most_worst: worst,
            open: Pending::new(most_open - most_tracks),
            of_tracks: Vec::new(),
            most_tracks: most_tracks as u32,
            slices: None,
            dropped: 0,
            starts: 0,
            ends: 0,
            pairs: 0,
            replaced: 0,
            unmatched_ends: 0,
            backwards: 0,
            times: Moments::default(),
            histogram: Histogram::default(),
            worst: BinaryHeap::new(),
        }
    }

    pub(super) fn unmatched(&self) -> Unmatched {
        let slices = self.slices.as_ref().map_or(0, OpenSlices::len);
        let of_tracks = self.of_tracks.iter().flatten().count();
        Unmatched {
            replaced: self.replaced,
            open: self.open.len() + (of_tracks + slices) as u64,
            dropped: self.open.dropped() + self.dropped,
            ends: self.unmatched_ends,
        }
    }

    #[inline]
    fn shared(&self, track: u32, key: Key) -> Shared {
        let track = if self.by_track { track } else { 0 };
        (track, key)
    }

    /// What is open on one of the first tracks, if nothing else distinguishes it.
    #[inline]
    fn of_track(&mut self, track: u32) -> &mut Option<Start> {
        let place = track as usize;
        if place >= self.of_tracks.len() {
            self.of_tracks.resize(place + 1, None);
        }
        &mut self.of_tracks[place]
    }

    fn end(&mut self, time: i64, track: u32, key: Key) {
        self.ends += 1;
        if let Some(slices) = &mut self.slices {
            match slices.end(track) {
                Ended::Slice(start) => self.pair(start, time, track, Key::None),
                Ended::Dropped => {}
                Ended::Nothing => self.unmatched_ends += 1,
            }
            return;
        }
        let shared = self.shared(track, key);
        let start = match shared {
            (track, Key::None) if track < self.most_tracks => self.of_track(track).take(),
            _ => self.open.remove(&shared),
        };
        match start {
            Some(start) => self.pair(start, time, track, shared.1),
            None => self.unmatched_ends += 1,
        }
    }

    #[inline]
    fn pair(&mut self, start: Start, end: i64, end_track: u32, key: Key) {
        if end < start.time {
            self.backwards += 1;
            return;
        }
        let nanos = end.abs_diff(start.time);
        if let Some(each) = &mut self.each {
            each(start.time, end);
        }
        self.pairs += 1;
        match self.breakdown.is_on() {
            true => self.breakdown.add(Span {
                group: start.group,
                nanos,
                begin: start.time,
                end,
                track: start.track,
            }),
            false => {
                self.times.add(nanos);
                self.histogram.add(nanos);
            }
        }
        // Where a clock goes back, what ends later may have started before.
        let rank = (nanos, Reverse(start.time));
        let least = self
            .worst
            .peek()
            .map(|least| (least.0.nanos, least.0.start));
        if self.worst.len() < self.most_worst || least.is_some_and(|least| rank > least) {
            self.worst.push(Reverse(Candidate {
                nanos,
                start: Reverse(start.time),
                end: Reverse(end),
                tracks: (start.track, end_track),
                key,
                class: start.class,
            }));
            if self.worst.len() > self.most_worst {
                self.worst.pop();
            }
        }
    }

    fn start(&mut self, start: Start, key: Key) {
        self.starts += 1;
        if let Some(slices) = &mut self.slices {
            let is_kept = slices.begin(start.track, start);
            self.dropped += u64::from(!is_kept);
            return;
        }
        let replaced = match self.shared(start.track, key) {
            (track, Key::None) if track < self.most_tracks => self.of_track(track).replace(start),
            shared => self.open.insert(shared, start),
        };
        self.replaced += u64::from(replaced.is_some());
    }
}

impl<'w> Measured<'w> for Work<'w, '_> {
    fn breakdown(&mut self) -> &mut Breakdown<'w> {
        &mut self.breakdown
    }
}

impl Analysis for Work<'_, '_> {
    #[inline]
    fn event(&mut self, event: &Occurrence<'_>) {
        self.breakdown.now(event.time);
        // What is both ends what began before it.
        if event.role & ENDS != 0 {
            self.breakdown.ending(event);
            self.end(event.time, event.track, event.end_key.key());
        }
        if event.role & BEGINS != 0 {
            let start = Start::of(event, self.breakdown.group(event));
            self.start(start, event.begin_key.key());
        }
        if let Some(nanos) = event.duration {
            (self.starts, self.ends) = (self.starts + 1, self.ends + 1);
            let end = event.time.saturating_add_unsigned(nanos);
            let start = Start::of(event, self.breakdown.group(event));
            self.pair(start, end, event.track, Key::None);
        }
    }

    fn takes_plain(&self) -> bool {
        !self.breakdown.is_on()
    }

    #[inline]
    fn plain(&mut self, event: &PlainEvent<'_>) {
        let &PlainEvent { time, track, .. } = event;
        let key = event.number.map_or(Key::None, Key::Uint);
        let class = (event.recording, event.class);
        match event.role {
            BEGINS => {
                let start = Start {
                    time,
                    track,
                    group: 0,
                    class,
                };
                self.start(start, key);
            }
            ENDS => self.end(time, track, key),
            _ => {}
        }
    }

    fn reached(&mut self, time: i64) {
        self.breakdown.now(time);
    }

    fn after(&mut self, tracks: &TrackTable, recordings: &[AnyRecording]) -> bool {
        self.breakdown.after(tracks, recordings)
    }
}

impl Latency {
    /// Measures the latencies of all events that `select` wants.
    ///
    /// A start has no end if another start like it comes first: the end is that
    /// of the later one. Slices of a track that recordings say to begin and end nest: an end is that of the
    /// slice that was begun last.
    ///
    /// # Errors
    ///
    /// No recording has such events or such fields.
    pub fn new(
        recordings: &[AnyRecording],
        select: &dyn Select,
        query: &LatencyQuery,
        options: &Options,
    ) -> Result<Self, Error> {
        let feed = &mut Whole { recordings, select };
        Self::of_feed(feed, query, options, &mut Breakdown::default())
    }

    /// The same, and hands over each pair.
    ///
    /// # Errors
    ///
    /// No recording has such events or such fields.
    pub fn with_pairs(
        recordings: &[AnyRecording],
        select: &dyn Select,
        query: &LatencyQuery,
        options: &Options,
        each: EachPair<'_>,
    ) -> Result<Self, Error> {
        let breakdown = &mut Breakdown::default();
        let feed = &mut Whole { recordings, select };
        Self::measure(feed, query, options, breakdown, Some(each))
    }

    /// The same of all that a feed has; `breakdown` gets each latency, for example to group them.
    ///
    /// # Errors
    ///
    /// No recording has such events or such fields.
    pub fn of_feed<'w>(
        feed: &mut dyn Feed,
        query: &LatencyQuery,
        options: &Options,
        breakdown: &mut Breakdown<'w>,
    ) -> Result<Self, Error> {
        Self::measure(feed, query, options, breakdown, None)
    }

    fn measure<'w>(
        feed: &mut dyn Feed,
        query: &LatencyQuery,
        options: &Options,
        breakdown: &mut Breakdown<'w>,
        each: Option<EachPair<'_>>,
    ) -> Result<Self, Error> {
        let roles = |recordings: &[AnyRecording]| match &query.events {
            Some((start, end)) => {
                let starts = start.classes(recordings).map_err(Error::Event)?;
                let ends = end.classes(recordings).map_err(Error::Event)?;
                Ok(super::roles(starts, ends))
            }
            None => super::own_roles(recordings, "--start and --end"),
        };
        let fields = query.pair_by.fields.as_ref();
        let of_fields = |names| Fields {
            option: "pair-by",
            names,
            required: true,
        };
        let keys = SliceKeys {
            begin: fields.map(|(start, _)| of_fields(start)),
            end: fields.map(|(_, end)| of_fields(end)),
        };
        let mut work = Work::new(query.pair_by.track, query.worst, MOST_OPEN);
        work.each = each;
        let is_nested = query.events.is_none() && fields.is_none();
        work.slices = is_nested.then(|| OpenSlices::new(MOST_OPEN, MOST_DEPTH));
        let question = MeasuredQuestion {
            roles,
            pattern: query.events.as_ref().map(|(start, _)| start),
            tracks: &query.tracks,
            keys,
        };
        let (coverage, known, groups) =
            run_measured(feed, &question, options, breakdown, &mut work)?;
        let recordings = feed.recordings();
        if groups.is_some() {
            let sum = breakdown.sum();
            (work.times, work.histogram) = (sum.times, sum.histogram);
        }
        let unmatched = work.unmatched();
        let worst = work.worst.into_sorted_vec().into_iter();
        let worst = worst.map(|Reverse(slow)| Slow {
            nanos: slow.nanos,
            start: Timestamp::from_nanos(slow.start.0),
            end: Timestamp::from_nanos(slow.end.0),
            start_track: track(recordings, &known, slow.tracks.0),
            end_track: track(recordings, &known, slow.tracks.1),
            key: match is_nested {
                true => {
                    name_of(&recordings[slow.class.0].event_classes()[slow.class.1]).to_string()
                }
                false => slow.key.text(),
            },
        });
        Ok(Self {
            starts: work.starts,
            ends: work.ends,
            unmatched,
            backwards: work.backwards,
            times: work.times,
            worst: worst.collect(),
            histogram: work.histogram,
            groups,
            coverage,
            title: query.tracks.title(),
            several: recordings.len() > 1,
            has_key: fields.is_some() || is_nested,
        })
    }

    /// Percentiles in nanoseconds, with their names.
    pub fn percentiles(&self) -> impl Iterator<Item = (&'static str, Option<u64>)> {
        let reported = PERCENTILES.into_iter();
        reported.map(|(name, thousandths)| (name, self.histogram.percentile(thousandths)))
    }
}
