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
//! | `FIELD =~ "REGEX"` | the regular expression matches a part of the text (syntax of the crate `regex`) |
//! | `FIELD contains "TEXT"` | the text is a part of it |
//! | `FIELD in [1, 4..7, "x"]`, `not in` | it is one of these; `4..7` are 4, 5, 6, 7 |
//!
//! In place of a field, `len(FIELD)` is the bytes of a text or BLOB or the elements of an array, `lower(FIELD)` a text
//! in lower case, and `hex(FIELD)` a text: `0x1f` of a number, the digits of a text or BLOB.
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
//! `event.name`, `event.id`, `event.kind`, `event.level`, `event.time` (nanoseconds), `stream.class`,
//! `stream.id`, `stream.name`, `trace.name` and `recording.path` are of the event itself. The keys of
//! the [JSON](crate::show::json) stand for them where an event has no field of that name: `timestamp`,
//! `recording`, `kind`, `trace`, `stream_class`, `stream`, `event` and `event_class`.
//!
//! If an event has no such field, any test of it is false: `x != 1`
//! holds only of events that have an `x`, `not x == 1` also of those without. A field that
//! no event class has is an error, and so is a test that fits none. A test of a value that no event can
//! have, such as 300 in 8 bits, brings a [warning](Filter::warnings).

mod bind;
mod check;
mod error;
mod eval;
mod expr;
mod fields;
mod glob;
mod lexer;
mod names;
mod parser;
mod selections;
mod surround;
mod time;

#[cfg(test)]
mod tests;

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kymo_model::{Chunk, Event, EventClass, Fault, FieldId, Pick, Recording, Selection};
use kymo_time::Timestamp;

use crate::AnyRecording;
use crate::pipeline::{Everything, Predicate, Select, Window};
use crate::timeline::KnownCounts;

pub use kymo_text::nearest;

use bind::Binder;
pub use error::FilterError;
pub(crate) use eval::Source;
use eval::{Facts, Program};
pub use fields::FieldNames;
pub(crate) use fields::{Fields, Wish};
pub use glob::Glob;
use selections::Selections;
use surround::Packets;
pub(crate) use surround::Surround;
pub use time::{Moment, TimeError, TimeQuery, first_event_time, parse_range};
pub(crate) use time::{first_time, has_origin, is_date, last_time, zone};

/// Which events are wanted, beside their time.
#[derive(Clone, Debug, Default)]
pub struct Query {
    /// Patterns of event names, of which one must match; with none, all events.
    pub events: Vec<Glob>,
    /// A condition, see the [module](self).
    pub condition: Option<String>,
}

impl Query {
    /// Whether the name of a class is one of those that are asked for.
    pub fn names_class(&self, class: &EventClass) -> bool {
        let name = name_of(class).as_bytes();
        self.events.is_empty() || self.events.iter().any(|glob| glob.matches(name))
    }

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

/// Whether a pattern looks like a regular expression, and not like a glob.
pub fn looks_like_regex(pattern: &str) -> bool {
    const SIGNS: [&str; 10] = [".*", ".+", "|", "^", "$", "\\d", "\\w", "(?", "]+", "]*"];
    SIGNS.iter().any(|sign| pattern.contains(sign))
}

/// The name by which events of a class are chosen: as it is printed.
pub(crate) fn name_of(class: &EventClass) -> &str {
    class.name.as_deref().unwrap_or("<unknown>")
}

/// A compiled filter for some recordings.
///
/// ```
/// use kymo::filter::{Filter, Query};
/// use kymo::report::{Options, Stats};
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/lttng-small");
///
/// let opened = kymo::open::open(&[path.into()], &Default::default());
/// let query = Query {
///     condition: Some("u8 >= 128".to_string()),
///     ..Query::default()
/// };
/// let filter = Filter::new(&query, &[], &opened.recordings)?;
/// let stats = Stats::new(&opened.recordings, &filter, &Options::default());
/// assert_eq!(stats.total.events, 148);
/// # Ok::<(), kymo::filter::FilterError>(())
/// ```
#[derive(Debug, Default)]
pub struct Filter {
    recordings: Vec<RecordingPlan>,
    warnings: Vec<FilterError>,
    /// By recording and stream, which chunks hold no wanted event, as far as that is known.
    idle: Vec<Vec<Arc<[bool]>>>,
    /// Set by whoever wants no more events.
    stop: Option<Arc<AtomicBool>>,
}

#[derive(Debug)]
struct RecordingPlan {
    window: Window,
    /// By position among the recording's event classes; `None` for one of which no event
    /// is wanted.
    classes: Vec<Option<ClassPlan>>,
    packets: Packets,
    /// Whether every event is wanted, whatever its fields say.
    wants_all: bool,
    /// Whether every event is wanted of the classes of which any is.
    wants_by_class: bool,
}

/// What to do with the events of one class.
#[derive(Debug)]
struct ClassPlan {
    program: Program,
    picks: Vec<Pick>,
    /// The fields of the picks, and those that specify which of their elements are meant; sorted.
    fields: Vec<FieldId>,
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
        let chosen = |class: &EventClass| query.names_class(class);
        for (position, recording) in recordings.iter().enumerate() {
            let (packets, classes) = Packets::of_classes(recording, |_, surroundings, picks| {
                if !chosen(surroundings.class) {
                    return None;
                }
                let program = Program::new(binder.bind(&condition, surroundings, picks));
                let picks = std::mem::take(&mut picks.event);
                (program.constant() != Some(false)).then(|| ClassPlan {
                    program,
                    fields: Selection::new(&surroundings.class.schema, picks.iter().cloned())
                        .fields(),
                    picks,
                })
            });
            let always = |class: &Option<ClassPlan>| {
                class.as_ref().and_then(|class| class.program.constant()) == Some(true)
            };
            plans.push(RecordingPlan {
                wants_by_class: classes.iter().all(|class| class.is_none() || always(class)),
                window: windows.get(position).copied().unwrap_or(Window::ALL),
                wants_all: classes.iter().all(always),
                classes,
                packets,
            });
        }
        let chosen = plans.iter().zip(recordings).flat_map(|(plan, recording)| {
            let classes = recording.event_classes().iter();
            let chosen = classes.filter(|class| chosen(class));
            chosen.map(|class| plan.packets.around(recording, class))
        });
        let is_any_chosen = chosen.clone().next().is_some();
        let mut warnings = binder.finish(chosen)?;
        let is_idle = plans
            .iter()
            .all(|plan| plan.classes.iter().all(Option::is_none));
        if warnings.is_empty() && is_any_chosen && is_idle {
            let whole = 0..source.len();
            let warning = FilterError::new(source, whole, "this condition can never be true")
                .label("true of no class of events");
            let warning =
                match looks_like_regex(source) && source.contains('~') && !source.contains("=~") {
                    true => warning
                        .help("`~` takes a glob; a regular expression is written behind `=~`"),
                    false => warning.help("`kymo info --schema` lists events and fields"),
                };
            warnings.push(warning.into_warning());
        }
        Ok(Self {
            recordings: plans,
            warnings,
            idle: Vec::new(),
            stop: None,
        })
    }

    /// For each recording, the filter for it alone.
    pub fn split(self) -> Vec<Self> {
        let alone = |plan| Self {
            recordings: vec![plan],
            warnings: Vec::new(),
            idle: Vec::new(),
            stop: self.stop.clone(),
        };
        self.recordings.into_iter().map(alone).collect()
    }

    /// The same filter for runs that end soon after `stop` is set.
    pub(crate) fn with_stop(self, stop: Option<Arc<AtomicBool>>) -> Self {
        Self { stop, ..self }
    }

    /// The same filter for runs that leave out the chunks of which it is known that they have no wanted event.
    pub(crate) fn with_counts(self, recordings: &[AnyRecording], known: &KnownCounts) -> Self {
        let of_recording = |(recording, source): (usize, &AnyRecording)| {
            let wants = |class: usize| self.plan(recording, class).is_some();
            // If all classes are wanted, hardly any chunk has no event of them.
            if (0..source.event_classes().len()).all(wants) {
                return Vec::new();
            }
            let streams = 0..source.streams().len();
            streams
                .map(|stream| known.without(recording, stream, source.chunk_count(stream), wants))
                .collect()
        };
        let idle = recordings.iter().enumerate().map(of_recording).collect();
        Self { idle, ..self }
    }

    /// What is odd in the condition: tests that no event can pass.
    pub fn warnings(&self) -> &[FilterError] {
        &self.warnings
    }

    /// Whether a chunk may hold events of the window. Where it does not say when it begins
    /// or ends, it may.
    pub(crate) fn overlaps(&self, recording: usize, chunk: &Chunk) -> bool {
        let window = self.window(recording);
        chunk.begin_time.is_none_or(|begin| begin <= window.end)
            && chunk.end_time.is_none_or(|end| window.begin <= end)
    }

    /// Whether every event of a recording is wanted.
    pub(crate) fn wants_all(&self, recording: usize) -> bool {
        let plan = self.recordings.get(recording);
        self.window(recording) == Window::ALL && plan.is_some_and(|plan| plan.wants_all)
    }

    /// Whether every event of a chunk is wanted, which is known without decoding it.
    pub(crate) fn wants_whole(&self, recording: usize, chunk: &Chunk) -> bool {
        let window = self.window(recording);
        let contains = |time: Option<Timestamp>| time.is_some_and(|time| window.contains(time));
        let is_inside =
            window == Window::ALL || (contains(chunk.begin_time) && contains(chunk.end_time));
        let plan = self.recordings.get(recording);
        is_inside && plan.is_some_and(|plan| plan.wants_all)
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
            surround: Surround::default(),
            recording: 0,
            wants_all: false,
        }
    }
}

impl Select for Filter {
    fn inner(&self) -> &dyn Select {
        &Everything
    }

    fn predicate(&self) -> Predicate<'_> {
        Predicate::of_filter(self.worker())
    }

    fn window(&self, recording: usize) -> Window {
        self.recordings
            .get(recording)
            .map_or(Window::ALL, |plan| plan.window)
    }

    fn wants_class(&self, recording: usize, _of: &AnyRecording, class: usize) -> bool {
        self.plan(recording, class).is_some()
    }

    fn idle_chunks(&self, recording: usize, stream: usize) -> Option<Arc<[bool]>> {
        self.idle.get(recording)?.get(stream).cloned()
    }

    fn is_stopped(&self) -> bool {
        let stop = self.stop.as_ref();
        stop.is_some_and(|stop| stop.load(Ordering::Relaxed))
    }

    fn looks_at(&self, recording: usize, class: usize, field: FieldId) -> bool {
        let plan = self.plan(recording, class);
        plan.is_some_and(|plan| plan.fields.binary_search(&field).is_ok())
    }
}

/// Runs a [`Filter`] in one thread, chunk by chunk.
#[derive(Debug)]
pub struct Worker<'f> {
    filter: &'f Filter,
    selections: Selections,
    surround: Surround,
    /// Position of the recording that the chunk belongs to.
    recording: usize,
    /// Whether every event of the recording is wanted.
    wants_all: bool,
}

impl Worker<'_> {
    /// A chunk begins: the events that follow are of it.
    pub(crate) fn begin_chunk<R: Recording>(
        &mut self,
        recording: usize,
        source: &R,
        chunk: &Chunk,
    ) -> Result<(), Fault> {
        self.recording = recording;
        let plan = self.filter.recordings.get(recording);
        self.wants_all = plan.is_some_and(|plan| plan.wants_all);
        match plan {
            Some(plan) => self
                .surround
                .begin_chunk(&plan.packets, (recording, source), chunk),
            None => Ok(()),
        }
    }

    /// Whether an event is wanted in every respect, time included.
    pub(crate) fn accepts<E: Event>(&mut self, event: &E) -> Result<bool, Fault> {
        let window = self.filter.window(self.recording);
        let in_window = event.timestamp().is_none_or(|time| window.contains(time));
        Ok(in_window && self.wants(event)?)
    }
}

impl Worker<'_> {
    /// The events of the chunk that are wanted, by their numbers, where their class decides.
    pub(crate) fn numbers(&self) -> Option<Range<u64>> {
        let plan = self.filter.recordings.get(self.recording)?;
        plan.wants_by_class.then_some(0..u64::MAX)
    }

    /// Whether an event of the window is wanted.
    #[inline(always)]
    pub(crate) fn wants<E: Event>(&mut self, event: &E) -> Result<bool, Fault> {
        match self.wants_all {
            true => Ok(true),
            false => self.decide(event),
        }
    }

    /// Whether an event is wanted, of a recording of which not all are.
    fn decide<E: Event>(&mut self, event: &E) -> Result<bool, Fault> {
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
            time: event.timestamp().map(Timestamp::as_nanos),
            surround: &self.surround,
        }))
    }
}
