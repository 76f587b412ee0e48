//! Which events are wanted: by name, by time, by the values of their fields.
//!
//! A [`Filter`] is compiled once for the recordings it is used on: for each event class
//! the fields it looks at become slots of a [`Selection`], and the condition a flat
//! program over them. Classes of which no event can be wanted are known beforehand, so
//! that their events are skipped without decoding. Threads share the filter and have a
//! [`Worker`] each.
//!
//! # The language of conditions
//!
//! A condition is made of tests, `not` (or `!`), `and` (`&&`), `or` (`||`) and
//! parentheses; `not` binds strongest, `or` weakest.
//!
//! | test | true where |
//! |---|---|
//! | `FIELD` | it is true, or a number that is not 0 |
//! | `A == B` (or `=`), `!=`, `<`, `<=`, `>`, `>=` | the values compare so; either may be a field |
//! | `FIELD ~ "PATTERN"`, `!~` | the whole text matches, or does not; patterns as of shells, see [`Glob`] |
//! | `FIELD contains "TEXT"` | the text is a part of it |
//! | `FIELD in [1, 4..7, "x"]`, `not in` | it is one of these; `4..7` are 4, 5, 6, 7 |
//!
//! Values are numbers (`12`, `-3`, `0xff`, `0o17`, `0b101`, `1_000`, `2.5e-3`), texts
//! (`"..."` or `'...'`, with `\n \t \r \0 \\ \" \' \xHH \u{HHHH}`), `true` and `false`.
//! Integers and floating point numbers are compared exactly. An enumeration compares as
//! its number, and with `==`, `!=`, `in`, `~` and `contains` also by its labels. A bit map
//! `contains "FLAG"`.
//!
//! `a.b[2]` is element 2 (from 0) of member `b` of field `a`. A name is looked for in the
//! payload, the specific context, the common context, the packet context and the packet
//! header, and the first that has it counts; `payload.a`, `specific_context.a`,
//! `common_context.a`, `packet_context.a` and `packet_header.a` say where. The options of
//! a variant are found as if they were in its place. A name that is none, or is a word of
//! this language, is written between back quotes.
//!
//! `event.name`, `event.id`, `event.level`, `event.time` (nanoseconds), `stream.class`,
//! `stream.id`, `stream.name` and `trace.name` are of the event itself.
//!
//! Where an event has no such field, a test of it is false, whatever it asks: `x != 1`
//! holds only of events that have an `x`, `not x == 1` also of those without. A field that
//! no event class has is an error, and so is a test that fits none.

mod bind;
mod check;
mod error;
mod eval;
mod fields;
mod glob;
mod lexer;
mod names;
mod parser;
mod selections;
mod suggest;
mod time;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use kymo_model::{Chunk, Event, EventClass, Fault, Pick, Recording, Schema, Selection};
use kymo_time::Timestamp;

use crate::AnyRecording;
use crate::pipeline::{Judge, Select, Window};

use bind::Binder;
pub use error::FilterError;
use eval::{Facts, Program};
pub use fields::FieldNames;
pub(crate) use fields::{Capture, Fields, Wish};
pub use glob::Glob;
use names::{Picks, Surroundings};
use selections::Selections;
pub use suggest::nearest;
pub use time::{Moment, TimeError, TimeQuery, parse_range};
pub(crate) use time::{first_time, zone};

/// Which events are wanted, beside their time.
#[derive(Clone, Debug, Default)]
pub struct Query {
    /// Patterns of event names, of which one must match; with none, all events.
    pub events: Vec<Glob>,
    /// A condition, see the [module](self).
    pub condition: Option<String>,
}

impl Query {
    /// The patterns that match no event class of these recordings, each with the name
    /// that may have been meant.
    pub fn idle_patterns<'a, R: Recording>(
        &'a self,
        recordings: &'a [R],
    ) -> Vec<(&'a Glob, Option<&'a str>)> {
        let names = || {
            recordings
                .iter()
                .flat_map(Recording::event_classes)
                .map(name_of)
        };
        self.events
            .iter()
            .filter(|glob| !names().any(|name| glob.matches(name.as_bytes())))
            .map(|glob| (glob, nearest(glob.pattern(), names())))
            .collect()
    }
}

/// The name by which events of a class are chosen: as it is printed.
pub(crate) fn name_of(class: &EventClass) -> &str {
    class.name.as_deref().unwrap_or("<unknown>")
}

/// A compiled filter for some recordings.
#[derive(Debug)]
pub struct Filter {
    recordings: Vec<RecordingPlan>,
}

#[derive(Debug)]
struct RecordingPlan {
    window: Window,
    /// By position among the recording's event classes; `None` for one of which no event
    /// is wanted.
    classes: Vec<Option<ClassPlan>>,
    packets: Vec<PacketPlan>,
    /// For each stream the position of its plan in `packets`.
    packet_of_stream: Vec<usize>,
}

/// What to do with the events of one class.
#[derive(Debug)]
struct ClassPlan {
    program: Program,
    picks: Vec<Pick>,
}

/// What to do with the packets of the streams of one class.
#[derive(Debug)]
struct PacketPlan {
    stream_class: u64,
    schema: Arc<Schema>,
    picks: Vec<Pick>,
}

impl Filter {
    /// Compiles a filter for recordings, of which each has its window of time: recordings
    /// beyond the last window have that of [`Window::ALL`].
    ///
    /// # Errors
    ///
    /// The condition is not of the language, names a field that no chosen event class
    /// has, or holds a test that makes sense for none.
    pub fn new<R: Recording>(
        query: &Query,
        windows: &[Window],
        recordings: &[R],
    ) -> Result<Self, FilterError> {
        let source = query.condition.as_deref().unwrap_or("true");
        let condition = parser::parse(source)?;
        let mut binder = Binder::new(source);
        let mut plans = Vec::with_capacity(recordings.len());
        let nothing = Schema::new();
        let chosen = |class: &EventClass| {
            let name = name_of(class).as_bytes();
            query.events.is_empty() || query.events.iter().any(|glob| glob.matches(name))
        };
        for (position, recording) in recordings.iter().enumerate() {
            let (mut packets, packet_of_stream) = packet_plans(recording);
            let classes = recording.event_classes().iter().map(|class| {
                if !chosen(class) {
                    return None;
                }
                let mut packet = packets
                    .iter_mut()
                    .find(|packet| packet.stream_class == class.stream_class);
                let mut picks = Picks::default();
                if let Some(packet) = &mut packet {
                    picks.packet = std::mem::take(&mut packet.picks);
                }
                let of = Surroundings {
                    class,
                    packet: packet.as_ref().map_or(&nothing, |packet| &*packet.schema),
                    trace: recording.name(),
                };
                let condition = binder.bind(&condition, of, &mut picks);
                if let Some(packet) = packet {
                    packet.picks = picks.packet;
                }
                let program = Program::new(condition);
                (program.constant() != Some(false)).then_some(ClassPlan {
                    program,
                    picks: picks.event,
                })
            });
            let classes = classes.collect();
            plans.push(RecordingPlan {
                window: windows.get(position).copied().unwrap_or(Window::ALL),
                classes,
                packets,
                packet_of_stream,
            });
        }
        let chosen = plans.iter().zip(recordings).flat_map(|(plan, recording)| {
            let classes = recording.event_classes().iter();
            classes.filter(|class| chosen(class)).map(|class| {
                let mut packets = plan.packets.iter();
                Surroundings {
                    class,
                    packet: packets
                        .find(|packet| packet.stream_class == class.stream_class)
                        .map_or(&nothing, |packet| &*packet.schema),
                    trace: recording.name(),
                }
            })
        });
        binder.finish(chosen)?;
        Ok(Self { recordings: plans })
    }

    /// Whether a chunk may hold events of the window. Where it does not say when it begins
    /// or ends, it may.
    pub(crate) fn overlaps(&self, recording: usize, chunk: &Chunk) -> bool {
        let window = self.window(recording);
        chunk.begin_time.is_none_or(|begin| begin <= window.end)
            && chunk.end_time.is_none_or(|end| window.begin <= end)
    }

    /// Whether every event of a chunk is wanted, which is known without decoding it.
    pub(crate) fn wants_whole(&self, recording: usize, chunk: &Chunk) -> bool {
        let window = self.window(recording);
        let contains = |time: Option<Timestamp>| time.is_some_and(|time| window.contains(time));
        let is_inside =
            window == Window::ALL || (contains(chunk.begin_time) && contains(chunk.end_time));
        is_inside && self.wants_all(recording)
    }

    fn plan(&self, recording: usize, class: usize) -> Option<&ClassPlan> {
        self.recordings.get(recording)?.classes.get(class)?.as_ref()
    }

    /// What one thread needs to run the filter.
    pub(crate) fn worker(&self) -> Worker<'_> {
        let classes = self.recordings.iter().map(|plan| plan.classes.len());
        Worker {
            filter: self,
            selections: Selections::new(classes),
            recording: 0,
            packet: Selection::default(),
            packet_of: None,
            wants_all: false,
            stream_id: None,
            stream_name: Arc::from(""),
        }
    }
}

impl<'f> Select for &'f Filter {
    type Judge = Worker<'f>;

    fn judge(&self) -> Worker<'f> {
        self.worker()
    }

    fn window(&self, recording: usize) -> Window {
        self.recordings
            .get(recording)
            .map_or(Window::ALL, |plan| plan.window)
    }

    fn wants_class(&self, recording: usize, _of: &AnyRecording, class: usize) -> bool {
        self.plan(recording, class).is_some()
    }
}

/// A plan for the packets of each class of streams, and for each stream which one is its.
fn packet_plans<R: Recording>(recording: &R) -> (Vec<PacketPlan>, Vec<usize>) {
    let mut packets: Vec<PacketPlan> = Vec::new();
    let of_stream = recording
        .streams()
        .iter()
        .map(|stream| {
            let known = packets
                .iter()
                .position(|packet| packet.stream_class == stream.class);
            known.unwrap_or_else(|| {
                packets.push(PacketPlan {
                    stream_class: stream.class,
                    schema: Arc::clone(&stream.packet_schema),
                    picks: Vec::new(),
                });
                packets.len() - 1
            })
        })
        .collect();
    (packets, of_stream)
}

/// Runs a [`Filter`] in one thread, chunk by chunk.
#[derive(Debug)]
pub struct Worker<'f> {
    filter: &'f Filter,
    selections: Selections,
    /// Position of the recording whose chunk this is.
    recording: usize,
    packet: Selection,
    /// Recording and packet plan that `packet` is of.
    packet_of: Option<(usize, usize)>,
    /// Whether every event of the recording is wanted.
    wants_all: bool,
    stream_id: Option<u64>,
    stream_name: Arc<str>,
}

impl Filter {
    /// Whether every event of a recording is wanted, whatever its fields say.
    fn wants_all(&self, recording: usize) -> bool {
        self.recordings.get(recording).is_some_and(|plan| {
            let always = |class: &Option<ClassPlan>| {
                class.as_ref().and_then(|class| class.program.constant()) == Some(true)
            };
            plan.classes.iter().all(always)
        })
    }
}

impl Worker<'_> {
    /// A chunk begins: the events that follow are of it.
    pub(crate) fn begin_chunk<R: Recording>(
        &mut self,
        recording: usize,
        of: &R,
        chunk: &Chunk,
    ) -> Result<(), Fault> {
        let stream = &of.streams()[chunk.stream];
        self.recording = recording;
        self.wants_all = self.filter.wants_all(recording);
        self.stream_id = stream.id;
        self.stream_name = Arc::clone(&stream.name);
        let Some(plan) = self.filter.recordings.get(recording) else {
            return Ok(());
        };
        let Some(&packet) = plan.packet_of_stream.get(chunk.stream) else {
            return Ok(());
        };
        if self.packet_of != Some((recording, packet)) {
            let plan = &plan.packets[packet];
            self.packet = Selection::new(&plan.schema, plan.picks.iter().cloned());
            self.packet_of = Some((recording, packet));
        }
        self.packet.clear();
        if self.packet.is_empty() {
            return Ok(());
        }
        of.visit_packet(chunk, &mut self.packet)
    }

    /// Whether an event is wanted in every respect, time included.
    pub(crate) fn accepts<E: Event>(&mut self, event: &E) -> Result<bool, Fault> {
        let window = self.filter.window(self.recording);
        let in_window = event.timestamp().is_none_or(|time| window.contains(time));
        Ok(in_window && self.wants(event)?)
    }
}

impl Judge for Worker<'_> {
    fn chunk(&mut self, recording: usize, of: &AnyRecording, chunk: &Chunk) -> Result<(), Fault> {
        self.begin_chunk(recording, of, chunk)
    }

    #[inline]
    fn wants<E: Event>(&mut self, event: &E) -> Result<bool, Fault> {
        if self.wants_all {
            return Ok(true);
        }
        let class = event.class_index();
        let Some(plan) = self.filter.plan(self.recording, class) else {
            return Ok(false);
        };
        if let Some(answer) = plan.program.constant() {
            return Ok(answer);
        }
        let selection = self.selections.clear(self.recording, class, || {
            Selection::new(&event.class().schema, plan.picks.iter().cloned())
        });
        if !selection.is_empty() {
            event.visit(selection)?;
        }
        Ok(plan.program.run(&Facts {
            event: selection,
            packet: &self.packet,
            time: event.timestamp().map(kymo_time::Timestamp::as_nanos),
            stream_id: self.stream_id,
            stream_name: &self.stream_name,
        }))
    }
}
