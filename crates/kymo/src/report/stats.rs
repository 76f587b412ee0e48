//! How many events there are, of what, where and when.

mod show;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use kymo_model::{Cursor, Event, Fault, FaultReport, Nothing, Recording, Tally, Walk};
use kymo_time::Timestamp;

use super::MOST_FAULTS;
use super::scan::{Options, Unit, Units, scan};
use super::spark::Spread;
use crate::Discarded;
use crate::filter::{Filter, Worker, first_time, last_time};
use crate::pipeline::Select as _;
use crate::timeline::KnownCounts;

/// Events of one class, of one stream, or all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// How many.
    pub events: u64,
    /// The space they take, headers included, in bits.
    pub bits: u64,
    /// When the first one happened.
    pub first: Option<Timestamp>,
    /// When the last one happened.
    pub last: Option<Timestamp>,
}

impl Count {
    #[inline]
    pub(crate) fn add_event(&mut self, time: Option<Timestamp>, bits: u64) {
        self.events += 1;
        self.bits += bits;
        if time.is_some() {
            if self.first.is_none() || time < self.first {
                self.first = time;
            }
            if time > self.last {
                self.last = time;
            }
        }
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.events = self.events.saturating_add(other.events);
        self.bits = self.bits.saturating_add(other.bits);
        self.first = [self.first, other.first].into_iter().flatten().min();
        self.last = self.last.max(other.last);
    }

    /// Nanoseconds from the first to the last event.
    pub fn duration(&self) -> Option<u64> {
        Some(self.last?.as_nanos().abs_diff(self.first?.as_nanos()))
    }

    /// Events per second over a duration in nanoseconds; `None` if there is none.
    pub(crate) fn rate(&self, duration: Option<u64>) -> Option<f64> {
        let duration = duration.filter(|&nanos| nanos > 0)?;
        Some(self.events as f64 / (duration as f64 / 1e9))
    }
}

/// Counts of the events of recordings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Paths of the recordings.
    pub recordings: Vec<PathBuf>,
    /// All events.
    pub total: Count,
    /// What the recorders discarded.
    pub discarded: Discarded,
    /// By event class, most events first; classes without events are left out.
    pub classes: Vec<ClassCount>,
    /// By stream, in the order of the recordings.
    pub streams: Vec<StreamCount>,
    /// Damage met, in the order of the recordings, their streams and packets; at most
    /// [`MOST_FAULTS`].
    pub faults: Vec<FaultReport>,
    /// How many faults there are beyond those listed.
    pub more_faults: u64,
    /// Whether the counts of all recordings are put together.
    is_merged: bool,
    /// All events over time; empty unless asked for.
    pub spread: Spread,
    /// Discarded events over time, as far as their number is known; empty unless asked for.
    pub losses: Spread,
}

/// Events of one class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassCount {
    /// Position of the recording.
    pub recording: usize,
    /// Number of the stream class.
    pub stream_class: u64,
    /// Number of the class.
    pub id: u64,
    /// Its name.
    pub name: Option<Arc<str>>,
    /// Its events.
    pub count: Count,
}

impl ClassCount {
    /// What people identify it by.
    fn key(&self) -> (usize, Option<&str>) {
        (self.recording, self.name.as_deref())
    }
}

/// Events of one stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamCount {
    /// Position of the recording.
    pub recording: usize,
    /// Name of the stream.
    pub name: Arc<str>,
    /// Its events.
    pub count: Count,
}

/// A fault that ended a chunk.
struct Ended {
    ordinal: usize,
    /// The event in hand: number and class.
    event: Option<(u64, usize)>,
    fault: Fault,
}

/// What one thread has counted.
struct Part<'f> {
    /// By recording and class.
    classes: Vec<Vec<Count>>,
    /// By recording and stream.
    streams: Vec<Vec<Count>>,
    discarded: Discarded,
    spread: Spread,
    losses: Spread,
    faults: Vec<Ended>,
    more_faults: u64,
    worker: Worker<'f>,
}

impl Part<'_> {
    fn add<R: Recording>(&mut self, unit: &Unit<'_, R>, tally: &Tally) {
        let count = Count {
            events: tally.events,
            bits: tally.bits,
            first: tally.first,
            last: tally.last,
        };
        if let Some(class) = self.classes[unit.recording].get_mut(tally.class) {
            class.add(&count);
            self.streams[unit.recording][unit.chunk.stream].add(&count);
            self.spread.add_many(count.events, count.first, count.last);
        }
    }
}

impl Stats {
    /// Counts the events that a filter wants. With [`Options::strict`] it ends at the first fault,
    /// and counts what came before it and the chunk that it is in.
    pub fn new<R: Recording>(recordings: &[R], filter: &Filter, options: &Options<'_>) -> Self {
        Self::with_counts(recordings, filter, options, &KnownCounts::default())
    }

    /// The same: chunks of which all events are wanted are not decoded if their counts are known.
    pub fn with_counts<R: Recording>(
        recordings: &[R],
        filter: &Filter,
        options: &Options<'_>,
        known: &KnownCounts,
    ) -> Self {
        Self::with_spread(recordings, filter, options, known, 0)
    }

    /// The same, with the events over time in `stretches` stretches.
    pub fn with_spread<R: Recording>(
        recordings: &[R],
        filter: &Filter,
        options: &Options<'_>,
        known: &KnownCounts,
        stretches: usize,
    ) -> Self {
        let spread = Spread::new(span(recordings, filter), stretches);
        let mut units = Units::new(recordings);
        let opening = recordings.iter().flat_map(Recording::faults);
        if options.strict && opening.clone().next().is_some() {
            units.truncate(0);
        }
        let mut parts = count(&units, recordings, filter, options, known, &spread);
        let faults = parts.iter().flat_map(|part| &part.faults);
        if options.strict
            && let Some(first) = faults.map(|ended| ended.ordinal).min()
            && options.threads > 1
        {
            // Other threads have counted an unknown number of chunks behind it.
            units.truncate(first + 1);
            let again = Options {
                progress: None,
                ..*options
            };
            parts = count(&units, recordings, filter, &again, known, &spread);
        }
        let mut stats = Self::sum(recordings, &parts);
        stats.losses = spread.clone();
        stats.spread = spread;
        for part in &parts {
            stats.spread.merge(&part.spread);
            stats.losses.merge(&part.losses);
        }
        let mut met = opening.clone().count() as u64;
        met += parts
            .iter()
            .map(|part| part.faults.len() as u64 + part.more_faults)
            .sum::<u64>();
        let mut faults: Vec<_> = parts.into_iter().flat_map(|part| part.faults).collect();
        faults.sort_unstable_by_key(|ended| ended.ordinal);
        let decoding = faults.into_iter().filter_map(|ended| {
            let unit = units.get(ended.ordinal)?;
            Some(unit.source.report(&unit.chunk, ended.event, ended.fault))
        });
        let most = match options.strict {
            true => 1,
            false => MOST_FAULTS,
        };
        stats.faults = opening.cloned().chain(decoding).take(most).collect();
        if !options.strict {
            stats.more_faults = met - stats.faults.len() as u64;
        }
        stats
    }

    /// The counts of all threads together.
    fn sum<R: Recording>(recordings: &[R], parts: &[Part<'_>]) -> Self {
        let mut stats = Self {
            recordings: recordings
                .iter()
                .map(|recording| recording.path().to_path_buf())
                .collect(),
            ..Self::default()
        };
        let discarded = parts.iter().map(|part| &part.discarded);
        discarded.for_each(|discarded| stats.discarded.add(discarded));
        for (recording, source) in recordings.iter().enumerate() {
            for (position, class) in source.event_classes().iter().enumerate() {
                let count = sum(parts.iter().map(|part| &part.classes[recording][position]));
                if count.events > 0 {
                    stats.classes.push(ClassCount {
                        recording,
                        stream_class: class.stream_class,
                        id: class.id,
                        name: class.name.clone(),
                        count,
                    });
                }
            }
            for (position, stream) in source.streams().iter().enumerate() {
                let count = sum(parts.iter().map(|part| &part.streams[recording][position]));
                stats.total.add(&count);
                stats.streams.push(StreamCount {
                    recording,
                    name: Arc::clone(&stream.name),
                    count,
                });
            }
        }
        // The sort is stable: of classes with as many events the earlier declared comes first.
        stats
            .classes
            .sort_by_key(|class| std::cmp::Reverse(class.count.events));
        stats
    }

    /// Leaves only the classes with the most events.
    pub fn keep_top(&mut self, classes: usize) {
        self.classes.truncate(classes);
    }

    /// Puts the event classes of all recordings together by name, and drops the streams: of many recordings these
    /// would be very long tables.
    pub fn merge_recordings(&mut self) {
        let mut by_name: HashMap<Option<Arc<str>>, usize> = HashMap::new();
        let mut merged: Vec<ClassCount> = Vec::new();
        for class in std::mem::take(&mut self.classes) {
            let at = *by_name.entry(class.name.clone()).or_insert(merged.len());
            match merged.get_mut(at) {
                Some(known) => known.count.add(&class.count),
                None => merged.push(ClassCount {
                    recording: 0,
                    ..class
                }),
            }
        }
        merged.sort_by_key(|class| std::cmp::Reverse(class.count.events));
        self.classes = merged;
        self.streams.clear();
        self.is_merged = true;
    }
}

/// From when to when there may be events that a filter wants.
fn span<R: Recording>(recordings: &[R], filter: &Filter) -> Option<(Timestamp, Timestamp)> {
    let spans = recordings
        .iter()
        .enumerate()
        .filter_map(|(number, recording)| {
            let window = filter.window(number);
            let first = first_time(recording)?.max(window.begin);
            let last = last_time(recording)?.min(window.end);
            (first <= last).then_some((first, last))
        });
    spans.reduce(|(begin, end), (first, last)| (begin.min(first), end.max(last)))
}

/// Counts the events of chunks, in several threads.
fn count<'f, R: Recording>(
    units: &Units<'_, R>,
    recordings: &[R],
    filter: &'f Filter,
    options: &Options<'_>,
    known: &KnownCounts,
    spread: &Spread,
) -> Vec<Part<'f>> {
    let new_part = || Part {
        classes: recordings
            .iter()
            .map(|recording| vec![Count::default(); recording.event_classes().len()])
            .collect(),
        streams: recordings
            .iter()
            .map(|recording| vec![Count::default(); recording.streams().len()])
            .collect(),
        discarded: Discarded::default(),
        spread: spread.clone(),
        losses: spread.clone(),
        faults: Vec::new(),
        more_faults: 0,
        worker: filter.worker(),
    };
    scan(units, options, new_part, |part, ordinal, unit| {
        if !filter.overlaps(unit.recording, &unit.chunk) {
            return true;
        }
        part.discarded.add_chunk(&unit.chunk);
        part.losses.add_losses(unit.source, &unit.chunk);
        if count_whole(part, unit, filter) || count_known(part, unit, filter, known) {
            return true;
        }
        let mut event = None;
        let Err(fault) = count_chunk(part, unit, &mut event) else {
            return true;
        };
        // A thread meets its chunks in order: of more faults none is listed.
        match part.faults.len() < MOST_FAULTS {
            true => part.faults.push(Ended {
                ordinal,
                event,
                fault,
            }),
            false => part.more_faults += 1,
        }
        !options.strict
    })
}

fn sum<'a>(counts: impl Iterator<Item = &'a Count>) -> Count {
    counts.fold(Count::default(), |mut sum, count| {
        sum.add(count);
        sum
    })
}

/// An event whose end is not known yet.
#[derive(Clone, Copy)]
struct Open {
    number: u64,
    class: usize,
    begin: u64,
    time: Option<Timestamp>,
}

/// Counts the events of a chunk without decoding them, where all are wanted and its recording
/// knows how. `false` where it does not.
fn count_whole<R: Recording>(part: &mut Part<'_>, unit: &Unit<'_, R>, filter: &Filter) -> bool {
    if !filter.wants_whole(unit.recording, &unit.chunk) {
        return false;
    }
    let Some(tallies) = unit.source.tally(&unit.chunk) else {
        return false;
    };
    tallies.iter().for_each(|tally| part.add(unit, tally));
    true
}

/// Counts the events of a chunk, and of those that were counted together with it, if all are wanted and their number
/// is known.
fn count_known<R: Recording>(
    part: &mut Part<'_>,
    unit: &Unit<'_, R>,
    filter: &Filter,
    known: &KnownCounts,
) -> bool {
    let (recording, chunk) = (unit.recording, &unit.chunk);
    let Some(counts) = known.of_chunk(recording, chunk.stream, chunk.number) else {
        return false;
    };
    let first = counts.first as usize;
    let mut chunks = (first..).take(counts.chunks as usize);
    let is_wanted = |number| {
        let chunk = unit.source.chunk(chunk.stream, number);
        chunk.is_some_and(|chunk| filter.wants_whole(recording, &chunk))
    };
    if !chunks.all(is_wanted) {
        return false;
    }
    // With the first one all are counted.
    if chunk.number == first {
        let tallies = counts.classes.iter();
        tallies.for_each(|tally| part.add(unit, &known.on_time_line(recording, tally)));
    }
    true
}

/// Counts the events of a chunk. `at` is the event in hand.
fn count_chunk<R: Recording>(
    part: &mut Part<'_>,
    unit: &Unit<'_, R>,
    at: &mut Option<(u64, usize)>,
) -> Result<(), Fault> {
    part.worker
        .begin_chunk(unit.recording, unit.source, &unit.chunk)?;
    unit.source.walk(&unit.chunk, CountChunk { part, unit, at })
}

struct CountChunk<'c, 'p, 'r, R> {
    part: &'c mut Part<'p>,
    unit: &'c Unit<'r, R>,
    at: &'c mut Option<(u64, usize)>,
}

impl<R: Recording> Walk for CountChunk<'_, '_, '_, R> {
    type Output = Result<(), Fault>;

    fn walk<C: Cursor>(self, mut cursor: C) -> Result<(), Fault> {
        let Self { part, unit, at } = self;
        let chunk = &unit.chunk;
        let mut open: Option<Open> = None;
        let close = |part: &mut Part<'_>, open: Option<Open>, end: u64| {
            if let Some(event) = open {
                let bits = end.saturating_sub(event.begin);
                part.classes[unit.recording][event.class].add_event(event.time, bits);
                part.streams[unit.recording][chunk.stream].add_event(event.time, bits);
                part.spread.add(event.time);
            }
        };
        let result = loop {
            *at = None;
            let event = match cursor.next_event() {
                Ok(Some(event)) => event,
                Ok(None) => break Ok(()),
                Err(fault) => break Err(fault),
            };
            let (number, class) = (event.number(), event.class_index());
            *at = Some((number, class));
            close(part, open.take(), event.begin_bit());
            match part.worker.accepts(&event) {
                Ok(false) => {}
                Ok(true) => {
                    open = Some(Open {
                        number,
                        class,
                        begin: event.begin_bit(),
                        time: event.timestamp(),
                    });
                }
                Err(fault) => break Err(fault),
            }
        };
        match &result {
            Ok(()) => close(part, open, unit.source.content_bits(chunk)),
            // Either the open event is broken, or what follows it.
            Err(fault) => {
                let open = open.filter(|event| is_whole(unit, event.number));
                close(part, open, fault.bit);
            }
        }
        result
    }
}

/// Whether an event of a chunk can be decoded as a whole.
fn is_whole<R: Recording>(unit: &Unit<'_, R>, number: u64) -> bool {
    let mut cursor = unit.source.cursor(&unit.chunk);
    while let Ok(Some(event)) = cursor.next_event() {
        if event.number() == number {
            return event.visit(&mut Nothing).is_ok();
        }
    }
    false
}
