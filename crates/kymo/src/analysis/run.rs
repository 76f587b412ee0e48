//! Goes through the events of recordings in order of time, and hands those that an analysis
//! looks at to it, with their tracks and keys.
//!
//! Threads decode and capture; what they find travels as bytes through the
//! [pipeline](crate::pipeline), which merges the recordings.

use std::io;
use std::ops::ControlFlow;

use kymo_model::{Chunk, Event, Fault, FaultReport, Recording};
use kymo_text::Line;

use super::events::Error;
use super::key;
use super::tracks::{TrackBy, Tracks, has_own, own_fields};
use crate::AnyRecording;
use crate::carried::Carried;
use crate::filter::{Capture, FieldNames, Fields, Wish};
use crate::pipeline::{self, Output, Select, Window};
use crate::report::MOST_FAULTS;
use crate::show::{Assembler, Message, MessageKind, Painter};

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
    /// Events that the recorders discarded, as far as their number is known: what lies around
    /// them may be measured wrong.
    pub discarded_events: u64,
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
    pub(super) begin_key: &'k [u8],
    /// The same for its end; empty unless it ends something.
    pub(super) end_key: &'k [u8],
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
    /// Fields of events that begin something, and what they are for.
    pub(super) begin_key: Option<(&'q FieldNames, &'static str)>,
    /// Fields of events that end something.
    pub(super) end_key: Option<EndKey<'q>>,
}

/// Fields of events that end something.
pub(super) struct EndKey<'q> {
    pub(super) names: &'q FieldNames,
    pub(super) purpose: &'static str,
    /// Whether it is an error that no such event has them.
    pub(super) required: bool,
}

/// How many values make the parts of what is captured of a class.
#[derive(Clone, Copy, Debug, Default)]
struct Parts {
    role: Role,
    /// Whether the track is the recording's own.
    own: bool,
    /// Values of the track; with none it is the stream.
    track: usize,
    begin: usize,
    end: usize,
}

/// What to do with the events of each class.
struct Plan {
    /// By recording and class.
    parts: Vec<Vec<Option<Parts>>>,
    fields: Fields,
}

impl Plan {
    fn new(recordings: &[AnyRecording], question: &Question<'_>) -> Result<Self, Error> {
        let own = own_fields();
        let none = FieldNames::at(&[]);
        let (track, track_required) = match question.tracks {
            TrackBy::Recording => (&none, false),
            TrackBy::Fields(names) => (names, true),
        };
        let (begin, begin_purpose) = question.begin_key.unwrap_or((&none, ""));
        let (end, end_purpose, end_required) = match &question.end_key {
            None => (&none, "", false),
            Some(end) => (end.names, end.purpose, end.required),
        };
        let wish = |names, required| Wish { names, required };
        // Positions in this list are used below.
        let wishes = [
            wish(&own, false),
            wish(track, track_required),
            wish(begin, true),
            wish(end, end_required),
        ];
        let purposes = ["track", "track", begin_purpose, end_purpose];
        let mut parts = Vec::with_capacity(recordings.len());
        for (of, roles) in recordings.iter().zip(&question.roles) {
            let classes = of.event_classes().iter().zip(roles);
            let classes = classes.map(|(class, role)| {
                let role = (*role)?;
                let own_track = *question.tracks == TrackBy::Recording && has_own(class);
                Some(Parts {
                    role,
                    own: own_track,
                    track: if own_track { own.len() } else { track.len() },
                    begin: if role & BEGINS != 0 { begin.len() } else { 0 },
                    end: if role & ENDS != 0 { end.len() } else { 0 },
                })
            });
            parts.push(classes.collect::<Vec<_>>());
        }
        let asked = |recording: usize, class: usize| {
            let parts: Parts = parts[recording][class]?;
            let mut wishes = vec![if parts.own { 0 } else { 1 }];
            wishes.extend((parts.role & BEGINS != 0).then_some(2));
            wishes.extend((parts.role & ENDS != 0).then_some(3));
            Some(wishes)
        };
        let fields =
            Fields::new(recordings, &wishes, asked).map_err(|(wish, error)| Error::Field {
                purpose: purposes[wish],
                error: Box::new(error),
            })?;
        Ok(Self { parts, fields })
    }
}

/// Makes an analysis of the events that `select` wants.
pub(super) fn run<S: Select>(
    recordings: &[AnyRecording],
    select: &S,
    question: &Question<'_>,
    options: &Options,
    analysis: &mut impl Analysis,
) -> Result<(Coverage, Tracks), Error> {
    let plan = Plan::new(recordings, question)?;
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
        tracks: Tracks::new(recordings),
        analysis,
        resolution: i64::from(options.resolution.max(1)),
        events: 0,
        untimed: 0,
        discarded: 0,
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
    coverage.discarded_events = sequencer.discarded;
    Ok((coverage, sequencer.tracks))
}

/// Wants what another one wants, of the classes that are looked at.
struct Narrowed<'a, S> {
    select: &'a S,
    plan: &'a Plan,
}

impl<S: Select> Select for Narrowed<'_, S> {
    type Judge = S::Judge;

    fn judge(&self) -> S::Judge {
        self.select.judge()
    }

    fn window(&self, recording: usize) -> Window {
        self.select.window(recording)
    }

    fn wants_class(&self, recording: usize, of: &AnyRecording, class: usize) -> bool {
        self.plan.parts[recording][class].is_some() && self.select.wants_class(recording, of, class)
    }

    fn first_chunk(&self, recording: usize, stream: usize) -> usize {
        self.select.first_chunk(recording, stream)
    }
}

/// Captures tracks and keys of events, in any thread.
struct Capturer<'a> {
    plan: &'a Plan,
    capture: Capture<'a>,
    recording: usize,
}

impl Painter for Capturer<'_> {
    fn chunk(&mut self, recording: usize, of: &AnyRecording, chunk: &Chunk) -> Result<(), Fault> {
        self.recording = recording;
        self.capture.begin_chunk(recording, of, chunk)
    }

    #[inline]
    fn event<E: Event>(&mut self, event: &E, out: &mut Line) -> Result<(), Fault> {
        let Some(parts) = self.plan.parts[self.recording][event.class_index()] else {
            return Ok(());
        };
        if parts.track + parts.begin + parts.end == 0 {
            return Ok(());
        }
        self.capture.event(event)?;
        self.capture.each(|value| key::write(value, out));
        Ok(())
    }
}

/// Hands the events to the analysis.
struct Sequencer<'a, A> {
    plan: &'a Plan,
    tracks: Tracks,
    analysis: &'a mut A,
    resolution: i64,
    events: u64,
    untimed: u64,
    discarded: u64,
}

impl<'a, A: Analysis> Assembler for Sequencer<'a, A> {
    type Painter = Capturer<'a>;

    fn painter(&self) -> Capturer<'a> {
        Capturer {
            plan: self.plan,
            capture: self.plan.fields.capture(),
            recording: 0,
        }
    }

    #[inline]
    fn message(
        &mut self,
        message: &Message,
        of: &[AnyRecording],
        text: &[u8],
        out: &mut Line,
        warnings: &mut Vec<u8>,
    ) {
        match message.kind {
            MessageKind::Event => self.event(message, of, text, out, warnings),
            MessageKind::LostEvents(lost) => {
                self.discarded = self.discarded.saturating_add(lost.count.unwrap_or(0));
            }
            _ => {}
        }
    }

    #[inline]
    fn event(
        &mut self,
        message: &Message,
        _of: &[AnyRecording],
        text: &[u8],
        _out: &mut Line,
        _warnings: &mut Vec<u8>,
    ) {
        let (recording, class) = (message.recording, message.class);
        let Some(parts) = self.plan.parts[recording][class] else {
            return;
        };
        self.events += 1;
        let Some(time) = message.time else {
            self.untimed += 1;
            return;
        };
        let time = time.as_nanos();
        let mut carried = Carried::new(text);
        let track = carried.several(parts.track);
        let begin_key = carried.several(parts.begin);
        let end_key = carried.rest();
        let track = match parts.track {
            0 => self.tracks.of_stream((recording, message.stream)),
            _ => {
                let own = parts.own.then_some(recording);
                self.tracks
                    .of_values(own, track, (recording, message.stream))
            }
        };
        self.analysis.event(&Occurrence {
            recording,
            class,
            role: parts.role,
            time: match self.resolution {
                1 => time,
                // Not below the earliest time there is.
                step => time.checked_sub(time.rem_euclid(step)).unwrap_or(i64::MIN),
            },
            track,
            begin_key,
            end_key,
        });
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
