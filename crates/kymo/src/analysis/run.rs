//! Goes through the events of recordings in order of time, and hands those that an analysis
//! looks at to it, with their tracks and keys.
//!
//! Threads decode the columns that tracks and keys need; the [pipeline](crate::pipeline) merges the
//! rows.

use std::io;
use std::ops::ControlFlow;

use kymo_model::{FaultReport, FieldId, Recording, SliceRole, Value};
use kymo_text::Line;

use super::events::Error;
use super::tracks::TrackBy;
use crate::AnyRecording;
use crate::Discarded;
use crate::pipeline::{self, Output, RowRun, Select, Window};
use crate::report::MOST_FAULTS;
use crate::show::{Message, MessageKind, Sink};
use crate::timeline::Filler;
use crate::tracks::{
    ClassQuery, Edge, Fields, RowKey, SliceKeys, TrackPlan, TrackQuery, TrackTable,
};

/// How an analysis is made.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Threads to work with, the caller's included; at least 1. The result does not depend on it.
    pub threads: usize,
    /// Whether the first fault ends the work.
    pub strict: bool,
    /// Times are cut down to multiples of so many nanoseconds first; at least 1.
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
    /// Damage met; at most [`MOST_FAULTS`].
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
    /// What tells it from others of its kind at its beginning; empty unless it begins something.
    pub(super) begin_key: RowKey<'k>,
    /// The same for its end; empty unless it ends something.
    pub(super) end_key: RowKey<'k>,
    /// How long it lasts, in nanoseconds, if it is a slice of its own.
    pub(super) duration: Option<u64>,
}

/// Gets the events in order of time.
pub(super) trait Analysis {
    fn event(&mut self, event: &Occurrence<'_>);
}

/// What is looked at, and how it is told apart.
pub(super) struct Question<'q> {
    /// By recording and class; `None` for classes that are not looked at.
    pub(super) roles: Vec<Vec<Option<Role>>>,
    pub(super) tracks: &'q TrackBy,
    /// Fields of events that begin and end something.
    pub(super) keys: SliceKeys<'q>,
}

impl Question<'_> {
    /// Finds the fields in the recordings.
    fn plan(&self, recordings: &[AnyRecording]) -> Result<TrackPlan, Error> {
        let query = TrackQuery {
            tracks: match self.tracks {
                TrackBy::Recording => None,
                TrackBy::Fields(names) => Some(Fields {
                    option: "track",
                    names,
                    required: true,
                }),
            },
            slices: vec![self.keys],
            ..TrackQuery::default()
        };
        let asked = |recording: usize, class: usize| {
            let role = self.roles[recording][class]?;
            let duration = match recordings[recording].roles(class).slice {
                SliceRole::Whole(duration) if role & WHOLE != 0 => Some(duration),
                _ => None,
            };
            Some(ClassQuery {
                duration,
                begins: (role & BEGINS != 0).then_some(0),
                ends: (role & ENDS != 0).then_some(0),
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
pub(super) fn run<S: Select>(
    recordings: &[AnyRecording],
    select: &S,
    question: &Question<'_>,
    options: &Options,
    analysis: &mut impl Analysis,
) -> Result<(Coverage, TrackTable), Error> {
    let plan = question.plan(recordings)?;
    let mut output = Faults {
        strict: options.strict,
        coverage: Coverage::default(),
    };
    for fault in recordings.iter().flat_map(Recording::faults) {
        if output.fault(fault).is_break() {
            break;
        }
    }
    let mut sequencer = Sequencer {
        plan: &plan,
        tracks: TrackTable::new(recordings),
        analysis,
        resolution: i64::from(options.resolution.max(1)),
        events: 0,
        untimed: 0,
        discarded: Discarded::default(),
    };
    if !options.strict || output.coverage.faults.is_empty() {
        let narrowed = Narrowed {
            select,
            plan: &plan,
        };
        let run = pipeline::Options {
            threads: options.threads,
            ..pipeline::Options::default()
        };
        // What takes the output takes all of it.
        let _ = pipeline::run(recordings, &narrowed, &run, &mut sequencer, &mut output);
    }
    let mut coverage = output.coverage;
    coverage.events = sequencer.events;
    coverage.untimed = sequencer.untimed;
    coverage.discarded = sequencer.discarded;
    Ok((coverage, sequencer.tracks))
}

/// Wants what another one wants, of the classes that are looked at.
struct Narrowed<'a, S> {
    select: &'a S,
    plan: &'a TrackPlan,
}

impl<S: Select> Select for Narrowed<'_, S> {
    type Predicate = S::Predicate;

    fn predicate(&self) -> S::Predicate {
        self.select.predicate()
    }

    fn window(&self, recording: usize) -> Window {
        self.select.window(recording)
    }

    fn wants_class(&self, recording: usize, of: &AnyRecording, class: usize) -> bool {
        self.plan.classes(recording)[class].is_some()
            && self.select.wants_class(recording, of, class)
    }

    fn looks_at(&self, recording: usize, class: usize, field: FieldId) -> bool {
        self.select.looks_at(recording, class, field)
    }

    fn first_chunk(&self, recording: usize, stream: usize) -> usize {
        self.select.first_chunk(recording, stream)
    }
}

/// Hands the events to the analysis.
struct Sequencer<'a, A> {
    plan: &'a TrackPlan,
    tracks: TrackTable,
    analysis: &'a mut A,
    resolution: i64,
    events: u64,
    untimed: u64,
    discarded: Discarded,
}

impl<'a, A: Analysis> Sink for Sequencer<'a, A> {
    type Renderer = Filler<'a>;

    const ROWS: bool = true;

    fn renderer(&self) -> Filler<'a> {
        Filler::with_raw_texts(&self.plan.rows)
    }

    fn looks_at(&self, recording: usize, of: &AnyRecording, class: usize, field: FieldId) -> bool {
        self.plan.rows.looks_at(recording, of, class, field)
    }

    fn message(
        &mut self,
        message: &Message,
        _of: &[AnyRecording],
        _text: &[u8],
        _out: &mut Line,
        _warnings: &mut Vec<u8>,
    ) {
        match message.kind {
            MessageKind::LostEvents(lost) => self.discarded.add_events(&lost),
            MessageKind::LostChunks(lost) => self.discarded.add_packets(&lost),
            _ => {}
        }
    }

    fn rows(
        &mut self,
        run: RowRun<'_>,
        _of: &[AnyRecording],
        _out: &mut Line,
        _warnings: &mut Vec<u8>,
    ) -> bool {
        let recording = run.recording;
        let classes = self.plan.classes(recording);
        let mut tracks = self.tracks.of_stream(recording, run.stream);
        self.events += run.entries.len() as u64;
        for row in run {
            let class = row.message.class;
            // Events of other classes were not wanted.
            let Some(meaning) = &classes[class] else {
                continue;
            };
            let Some(time) = row.message.time else {
                self.untimed += 1;
                continue;
            };
            let cut = |time: i64| match self.resolution {
                1 => time,
                // Not below the earliest time there is.
                step => time.checked_sub(time.rem_euclid(step)).unwrap_or(i64::MIN),
            };
            let nanos = time.as_nanos();
            let time = cut(nanos);
            let values = row.values;
            let duration = meaning
                .duration
                .and_then(|column| match values.get(column) {
                    Value::Uint(duration) => {
                        let end = i64::try_from(duration)
                            .ok()
                            .and_then(|it| nanos.checked_add(it));
                        Some(cut(end.unwrap_or(i64::MAX)).abs_diff(time))
                    }
                    _ => None,
                });
            let edge = |edge: &'a Option<Edge>, role: Role| {
                let fields = edge.as_ref().map_or(&[][..], |edge| &edge.key);
                let role = if edge.is_some() { role } else { SEEN };
                (role, RowKey { values, fields })
            };
            let (begins, begin_key) = edge(&meaning.begins, BEGINS);
            let (ends, end_key) = edge(&meaning.ends, ENDS);
            self.analysis.event(&Occurrence {
                recording,
                class,
                role: begins | ends,
                time,
                track: tracks.number(&meaning.track, values),
                begin_key,
                end_key,
                duration,
            });
        }
        true
    }
}

/// Keeps the faults.
struct Faults {
    strict: bool,
    coverage: Coverage,
}

impl Output for Faults {
    fn text(&mut self, _text: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn warning(&mut self, _lines: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn fault(&mut self, fault: &FaultReport) -> ControlFlow<()> {
        if self.coverage.faults.len() < MOST_FAULTS {
            self.coverage.faults.push(fault.clone());
        } else {
            self.coverage.more_faults += 1;
        }
        match self.strict {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}
