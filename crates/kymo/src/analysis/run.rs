//! Goes through the events of recordings in order of time, and hands those that an analysis
//! looks at to it, with their tracks and keys.
//!
//! Threads decode the columns that tracks and keys need; the [pipeline](crate::pipeline) merges the
//! rows.

mod plain;
mod sequencer;

use std::ops::Range;

use kymo_model::{FaultReport, Recording, SliceRole, Value};
use kymo_time::Timestamp;

use super::events::Error;
use super::feed::{Feed, Taker};
use super::switch::Running;
use super::tracks::TrackBy;
use crate::AnyRecording;
use crate::Discarded;
use crate::filter::FieldNames;
use crate::pipeline::{self, Output, Select};
use crate::tracks::{
    ClassQuery, ClassTracks, FieldColumns, Fields, RowKey, SliceKeys, TrackPlan, TrackQuery,
    TrackTable,
};

pub(super) use plain::PlainEvent;
use sequencer::{Faults, Narrowed, Sequencer};

/// How an analysis is made.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Threads to work with, the caller's included; at least 1. The result does not depend on it.
    pub threads: usize,
    /// Whether the first fault ends the work.
    pub strict: bool,
    /// Times are first rounded down to multiples of this number of nanoseconds; at least 1.
    pub resolution: u32,
}

impl Default for Options {
    /// As many threads as there are processors, faults are skipped, times are as they are.
    fn default() -> Self {
        Self {
            threads: pipeline::Options::default().threads,
            strict: false,
            resolution: 1,
        }
    }
}

/// What an analysis saw, and what it could not use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Events that it looked at.
    pub events: u64,
    /// Those of them that have no time, and are left out.
    pub untimed: u64,
    /// What the recorders discarded: what lies around it may be measured wrong.
    pub discarded: Discarded,
    /// Damage met; at most [`MOST_FAULTS`](crate::report::MOST_FAULTS).
    pub faults: Vec<FaultReport>,
    /// How many faults there are beyond those listed.
    pub more_faults: u64,
}

/// What an event is to an analysis, as a set of bits.
pub(super) type Role = u8;
/// Its track is all that matters.
pub(super) const SEEN: Role = 0;
/// It begins something.
pub(super) const BEGINS: Role = 1;
/// It ends something.
pub(super) const ENDS: Role = 2;
/// It is a slice of its own, with a duration.
pub(super) const WHOLE: Role = 4;

/// An event, as an analysis sees it.
pub(super) struct Occurrence<'k> {
    pub(super) recording: usize,
    pub(super) class: usize,
    pub(super) role: Role,
    /// Nanoseconds on the common line.
    pub(super) time: i64,
    /// Number of its track.
    pub(super) track: u32,
    /// What distinguishes it from others of its kind at its beginning; empty unless it begins something.
    pub(super) begin_key: RowKey<'k>,
    /// The same for its end; empty unless it ends something.
    pub(super) end_key: RowKey<'k>,
    /// How long it lasts, in nanoseconds, if it is a slice of its own.
    pub(super) duration: Option<u64>,
    /// The values of [`Extra::by`]; empty of events that only end something.
    pub(super) by: RowKey<'k>,
    /// The value of [`Extra::value`].
    pub(super) value: Value<'k>,
    /// The columns of all further fields.
    pub(super) flows: &'k [(usize, FieldColumns)],
}

impl<'k> Occurrence<'k> {
    /// The columns of a field of [`Extra::more`]; `None` if the event has none.
    pub(super) fn more(&self, field: usize) -> Option<&'k [Range<usize>]> {
        let wanted = MORE + field;
        let found = self.flows.iter().find(|(flow, _)| *flow == wanted);
        found.map(|(_, columns)| &**columns)
    }
}

/// Gets the events in order of time.
pub(super) trait Analysis {
    fn event(&mut self, event: &Occurrence<'_>);

    /// Whether events may be [plain](Self::plain).
    fn takes_plain(&self) -> bool {
        false
    }

    /// An event of which times, tracks and keys are all that matters, in place of [`event`](Self::event).
    fn plain(&mut self, _event: &PlainEvent<'_>) {}

    /// All events before this time have come.
    fn reached(&mut self, _time: i64) {}

    /// After some events, with all tracks that were met. `false` ends the run.
    fn after(&mut self, _tracks: &TrackTable, _recordings: &[AnyRecording]) -> bool {
        true
    }
}

/// What an analysis looks at, and how it distinguishes events.
pub(super) struct Question<'q> {
    /// By recording and class; `None` for classes that are not looked at.
    pub(super) roles: Vec<Vec<Option<Role>>>,
    pub(super) tracks: &'q TrackBy,
    /// Fields of events that begin and end something.
    pub(super) keys: SliceKeys<'q>,
}

/// Fields that an analysis wants beside tracks and keys.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Extra<'q> {
    /// Those by which events are grouped.
    pub(super) by: Option<&'q FieldNames>,
    /// The field whose values are measured.
    pub(super) value: Option<&'q FieldNames>,
    /// Further ones, one in each.
    pub(super) more: &'q [&'q FieldNames],
}

/// The flow from which on further fields come; before it are what groups, the processor and the thread of a switch.
const MORE: usize = 3;

/// Where the extra fields of an event class are.
#[derive(Clone, Debug, Default)]
struct ClassExtra {
    by: Box<[Range<usize>]>,
    value: Range<usize>,
}

impl ClassExtra {
    fn new(extra: &Extra<'_>, class: &ClassTracks, role: Role) -> Self {
        let columns = |fields: &[(usize, FieldColumns)], names: Option<&FieldNames>| {
            let names = names.map_or(0, FieldNames::len);
            let found = fields.iter().find(|(position, _)| *position == 0);
            // Without any of the fields, all values are missing.
            found.map_or_else(|| vec![0..0; names].into(), |(_, columns)| columns.clone())
        };
        let value = columns(&class.counters, extra.value);
        Self {
            by: match role == ENDS {
                true => Box::default(),
                false => columns(&class.flows, extra.by),
            },
            value: value.first().cloned().unwrap_or_default(),
        }
    }
}

impl<'q> Question<'q> {
    /// Looks at the tracks of all events.
    pub(super) fn of_all(recordings: &[AnyRecording], tracks: &'q TrackBy) -> Self {
        let seen = |recording: &AnyRecording| vec![Some(SEEN); recording.event_classes().len()];
        Self {
            roles: recordings.iter().map(seen).collect(),
            tracks,
            keys: SliceKeys::default(),
        }
    }

    /// Finds the fields in the recordings.
    fn plan(
        &self,
        recordings: &[AnyRecording],
        extra: &Extra<'_>,
        running: Option<&Running>,
    ) -> Result<TrackPlan, Error> {
        let fields = |option, names| Fields {
            option,
            names,
            required: true,
        };
        let switch = match self.tracks {
            TrackBy::Running(switch) => Some(switch),
            _ => None,
        };
        // What is grouped by counts as a flow, what is measured as a counter: columns that some
        // classes have.
        let nothing = FieldNames::default();
        let mut flows = vec![
            fields("by", extra.by.unwrap_or(&nothing)),
            fields(
                "switch",
                switch.map_or(&nothing, |switch| &switch.processor),
            ),
            fields("switch", switch.map_or(&nothing, |switch| &switch.thread)),
        ];
        flows.extend(extra.more.iter().map(|&names| fields("transition", names)));
        let query = TrackQuery {
            tracks: match self.tracks {
                TrackBy::Fields(names) => Some(fields("track", names)),
                TrackBy::Recording | TrackBy::Running(_) => None,
            },
            without_own: switch.is_some(),
            slices: vec![self.keys],
            counters: extra
                .value
                .map(|names| fields("field", names))
                .into_iter()
                .collect(),
            flows,
        };
        let asked = |recording: usize, class: usize| {
            let is_switch = running.is_some_and(|running| running.is_switch(recording, class));
            let role = self.roles[recording][class];
            if role.is_none() && !is_switch {
                return None;
            }
            let role = role.unwrap_or(ENDS);
            let duration = match recordings[recording].roles(class).slice {
                SliceRole::Whole(duration) if role & WHOLE != 0 => Some(duration),
                _ => None,
            };
            let mut flows = Vec::new();
            if role != ENDS {
                flows.push(0);
            }
            if switch.is_some() {
                flows.push(1);
            }
            if is_switch {
                flows.push(2);
            }
            let is_looked_at = self.roles[recording][class].is_some();
            if is_looked_at {
                flows.extend(MORE..MORE + extra.more.len());
            }
            Some(ClassQuery {
                duration,
                begins: (is_looked_at && role & (BEGINS | WHOLE) != 0).then_some(0),
                ends: (is_looked_at && role & ENDS != 0).then_some(0),
                counters: (0..query.counters.len()).collect(),
                flows,
                ..ClassQuery::default()
            })
        };
        TrackPlan::new(recordings, &query, asked).map_err(|unknown| Error::Field {
            purpose: unknown.option,
            error: unknown.error,
        })
    }
}

/// Makes an analysis of the events that `select` wants.
pub(super) fn run(
    recordings: &[AnyRecording],
    select: &dyn Select,
    question: &Question<'_>,
    options: &Options,
    analysis: &mut impl Analysis,
) -> Result<(Coverage, TrackTable), Error> {
    let extra = Extra::default();
    run_with(recordings, select, question, &extra, options, analysis)
}

/// The same, with more fields.
pub(super) fn run_with(
    recordings: &[AnyRecording],
    select: &dyn Select,
    question: &Question<'_>,
    extra: &Extra<'_>,
    options: &Options,
    analysis: &mut impl Analysis,
) -> Result<(Coverage, TrackTable), Error> {
    let mut progress = Progress::default();
    progress.part(
        recordings, select, question, extra, options, analysis, false,
    )?;
    Ok(progress.end(recordings))
}

/// The same of all that a feed has. `ask` says what is looked at, whenever recordings have changed; the positions of
/// those that were there before stay.
pub(super) fn run_feed<'q, A: Analysis>(
    feed: &mut dyn Feed,
    ask: impl FnMut(&[AnyRecording], &mut A) -> Result<Question<'q>, Error>,
    extra: &Extra<'_>,
    options: &Options,
    analysis: &mut A,
) -> Result<(Coverage, TrackTable), Error> {
    let mut parts = Parts {
        ask,
        extra,
        options,
        analysis,
        progress: Progress::default(),
    };
    feed.each(&mut parts)?;
    Ok(parts.progress.end(feed.recordings()))
}

/// Hands the parts of a feed to an analysis.
struct Parts<'p, 'e, A, Q> {
    ask: Q,
    extra: &'p Extra<'e>,
    options: &'p Options,
    analysis: &'p mut A,
    progress: Progress,
}

impl<'q, A, Q> Taker for Parts<'_, '_, A, Q>
where
    A: Analysis,
    Q: FnMut(&[AnyRecording], &mut A) -> Result<Question<'q>, Error>,
{
    fn take(
        &mut self,
        recordings: &[AnyRecording],
        select: &dyn Select,
        known: Option<Timestamp>,
    ) -> Result<bool, Error> {
        let question = (self.ask)(recordings, self.analysis)?;
        let (extra, options) = (self.extra, self.options);
        let progress = &mut self.progress;
        let grows = known.is_some();
        progress.part(
            recordings,
            select,
            &question,
            extra,
            options,
            self.analysis,
            grows,
        )?;
        let is_bad = options.strict && !progress.coverage.faults.is_empty();
        let Some(known) = known.filter(|known| *known != Timestamp::MIN) else {
            return Ok(!is_bad);
        };
        self.analysis
            .reached(cut(known.as_nanos(), resolution(options)));
        let tracks = progress.tracks.as_ref();
        let goes_on = tracks.is_none_or(|tracks| self.analysis.after(tracks, recordings));
        Ok(goes_on && !is_bad)
    }
}

/// To what times are cut, in nanoseconds.
fn resolution(options: &Options) -> i64 {
    i64::from(options.resolution.max(1))
}

/// A time cut down to a multiple of `step`, but not below the earliest time there is.
#[inline]
fn cut(time: i64, step: i64) -> i64 {
    match step {
        1 => time,
        step => time.checked_sub(time.rem_euclid(step)).unwrap_or(i64::MIN),
    }
}

/// What is kept from one part of the events to the next.
#[derive(Default)]
struct Progress {
    running: Option<Running>,
    tracks: Option<TrackTable>,
    coverage: Coverage,
}

impl Progress {
    fn end(self, recordings: &[AnyRecording]) -> (Coverage, TrackTable) {
        let none = || TrackTable::new(recordings);
        (self.coverage, self.tracks.unwrap_or_else(none))
    }

    /// Hands events to an analysis. With `grows`, what looks damaged may just be incomplete.
    #[expect(clippy::too_many_arguments, reason = "all of them are needed")]
    fn part(
        &mut self,
        recordings: &[AnyRecording],
        select: &dyn Select,
        question: &Question<'_>,
        extra: &Extra<'_>,
        options: &Options,
        analysis: &mut impl Analysis,
        grows: bool,
    ) -> Result<(), Error> {
        match (question.tracks, &mut self.running) {
            (TrackBy::Running(switch), Some(running)) => running.renew(switch, recordings)?,
            (TrackBy::Running(switch), running) => {
                *running = Some(Running::new(switch, recordings)?);
            }
            _ => {}
        }
        // Switches are looked at even if they are not wanted, but not handed over then.
        let mut roles = question.roles.clone();
        let mut forced: Vec<Vec<bool>> = Vec::new();
        for (number, recording) in recordings.iter().enumerate() {
            let classes = roles[number].iter_mut().enumerate();
            let classes = classes.map(|(class, role)| {
                let running = self.running.as_ref();
                let is_switch = running.is_some_and(|it| it.is_switch(number, class));
                let is_forced = is_switch && !select.wants_class(number, recording, class);
                if is_forced {
                    *role = None;
                }
                is_forced
            });
            forced.push(classes.collect());
        }
        let question = &Question { roles, ..*question };
        let plan = question.plan(recordings, extra, self.running.as_ref())?;
        if let Some(running) = &mut self.running {
            running.bind(&plan, recordings);
        }
        let mut output = Faults {
            strict: options.strict,
            grows,
            coverage: &mut self.coverage,
        };
        let is_later = self.tracks.is_some();
        for fault in recordings.iter().flat_map(Recording::faults) {
            let is_known = is_later && output.coverage.faults.contains(fault);
            if !is_known && output.fault(fault).is_break() {
                break;
            }
        }
        if options.strict && !output.coverage.faults.is_empty() {
            return Ok(());
        }
        let extras = (0..recordings.len()).map(|recording| {
            let classes = plan
                .classes(recording)
                .iter()
                .zip(&question.roles[recording]);
            let extras = classes
                .map(|(class, role)| Some(ClassExtra::new(extra, class.as_ref()?, (*role)?)));
            extras.collect()
        });
        let extras: Vec<Vec<_>> = extras.collect();
        let tracks = match &mut self.tracks {
            Some(tracks) => {
                tracks.grow(recordings);
                tracks
            }
            none => none.insert(TrackTable::new(recordings)),
        };
        let mut sequencer = Sequencer {
            plan: &plan,
            extras: &extras,
            running: self.running.as_mut(),
            tracks,
            analysis,
            resolution: resolution(options),
            events: 0,
            untimed: 0,
            discarded: output.coverage.discarded,
        };
        let narrowed = Narrowed {
            select,
            plan: &plan,
            forced: &forced,
        };
        let run = pipeline::Options {
            threads: options.threads,
            ..pipeline::Options::default()
        };
        // What takes the output takes all of it.
        let _ = pipeline::run(recordings, &narrowed, &run, &mut sequencer, &mut output);
        let (events, untimed) = (sequencer.events, sequencer.untimed);
        let discarded = sequencer.discarded;
        self.coverage.events += events;
        self.coverage.untimed += untimed;
        self.coverage.discarded = discarded;
        Ok(())
    }
}
