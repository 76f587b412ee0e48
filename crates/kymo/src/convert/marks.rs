//! What events mean on a time line beside having happened: their track, slices between two of
//! them, counters, flows.

use std::fmt;
use std::sync::Arc;

use kymo_model::{Chunk, Event, EventClass, Fault, Recording};
use kymo_text::Line;

use super::carry;
use crate::AnyRecording;
use crate::filter::{FieldName, FieldReader, Fields, FilterError, Glob, WantedField, name_of};

/// Events that begin and end slices of time: `BEGIN:END` or `BEGIN:END:FIELD`.
#[derive(Clone, Debug)]
pub struct Slice {
    begin: Glob,
    end: Glob,
    /// Begin and end belong together only where this field has the same value.
    key: Option<FieldName>,
}

/// A field whose values are drawn as a counter: `EVENT:FIELD`.
#[derive(Clone, Debug)]
pub struct Counter {
    event: Glob,
    field: FieldName,
}

/// Why a text is no [`Slice`] or [`Counter`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MarkError {
    /// It has not the parts that were expected.
    Parts {
        /// What was expected.
        expected: &'static str,
    },
    /// A field's name is none.
    Field(FilterError),
}

impl fmt::Display for MarkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Parts { expected } => write!(
                f,
                "expected {expected}; a colon within the name of an event is written `\\:`"
            ),
            Self::Field(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for MarkError {}

/// An option names a field that no event has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownField {
    /// The option.
    pub option: &'static str,
    /// What is wrong, shown under the name.
    pub error: Box<FilterError>,
}

impl fmt::Display for UnknownField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.option, self.error)
    }
}

impl std::error::Error for UnknownField {}

impl Slice {
    /// Reads `BEGIN:END` or `BEGIN:END:FIELD`: two patterns of events' names, in which `\:` is a
    /// colon, and perhaps the name of a field.
    ///
    /// # Errors
    ///
    /// What is wrong in it.
    pub fn parse(text: &str) -> Result<Self, MarkError> {
        let expected = "BEGIN:END or BEGIN:END:FIELD";
        let (begin, rest) = split(text).ok_or(MarkError::Parts { expected })?;
        let (end, key) = match split(rest) {
            Some((end, key)) => (end, Some(key)),
            None => (rest, None),
        };
        if begin.is_empty() || end.is_empty() || key.is_some_and(|key| split(key).is_some()) {
            return Err(MarkError::Parts { expected });
        }
        Ok(Self {
            begin: Glob::new(begin),
            end: Glob::new(end),
            key: key
                .map(FieldName::parse)
                .transpose()
                .map_err(MarkError::Field)?,
        })
    }
}

impl Counter {
    /// A field of all events that have it.
    pub(super) fn of_all(field: FieldName) -> Self {
        Self {
            event: Glob::new("*"),
            field,
        }
    }

    /// Reads `EVENT:FIELD`: a pattern of events' names, and the name of a field after the last
    /// colon.
    ///
    /// # Errors
    ///
    /// What is wrong in it.
    pub fn parse(text: &str) -> Result<Self, MarkError> {
        let expected = "EVENT:FIELD";
        // Only a name between back quotes can have a colon.
        let end = match text.strip_suffix('`') {
            Some(quoted) => quoted.rfind('`').unwrap_or(0),
            None => text.len(),
        };
        match text[..end].rfind(':') {
            None | Some(0) => Err(MarkError::Parts { expected }),
            Some(colon) => Ok(Self {
                event: Glob::new(&text[..colon]),
                field: FieldName::parse(&text[colon + 1..]).map_err(MarkError::Field)?,
            }),
        }
    }
}

/// Splits at the first colon that has no backslash before it.
fn split(text: &str) -> Option<(&str, &str)> {
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            ':' if !escaped => return Some((&text[..at], &text[at + 1..])),
            _ => escaped = c == '\\' && !escaped,
        }
    }
    None
}

/// What is wanted of a time line.
#[derive(Clone, Debug, Default)]
pub struct MarkOptions {
    /// The field whose values are tracks; without, tracks are those of an event log, and otherwise
    /// streams.
    pub track: Option<FieldName>,
    /// Slices.
    pub slices: Vec<Slice>,
    /// Counters.
    pub counters: Vec<Counter>,
    /// Fields whose values are the same in events that belong together.
    pub flows: Vec<FieldName>,
}

impl MarkOptions {
    /// All patterns of names of events.
    pub fn patterns(&self) -> Vec<Glob> {
        let slices = self.slices.iter();
        let slices = slices.flat_map(|slice| [slice.begin.clone(), slice.end.clone()]);
        let counters = self.counters.iter().map(|counter| counter.event.clone());
        slices.chain(counters).collect()
    }
}

/// [`MarkOptions`], bound to recordings.
#[derive(Debug)]
pub struct Marks {
    options: MarkOptions,
    fields: Arc<Fields>,
    /// By recording and class.
    classes: Vec<Vec<ClassMarks>>,
}

/// What the events of a class mean. Their values are carried in this order: track, key of the
/// slice that ends, key of the slice that begins, counters, flows.
#[derive(Debug, Default)]
pub(super) struct ClassMarks {
    /// Positions among the wanted fields of what is carried.
    carried: Vec<usize>,
    /// Where the track comes from.
    pub(super) track: TrackFrom,
    /// The slices that are ended, and whether its key is carried.
    pub(super) ends: Option<(usize, bool)>,
    /// The same for those that are begun.
    pub(super) begins: Option<(usize, bool)>,
    /// Positions among the counters of those that are carried.
    pub(super) counters: Vec<usize>,
    /// Number of flows that are carried.
    pub(super) flows: usize,
}

/// Where the track of an event comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum TrackFrom {
    /// It is the stream's.
    #[default]
    Stream,
    /// A field, whose value comes first.
    Field,
    /// An event log: the number and the name come first.
    Log,
}

impl Marks {
    /// Binds options.
    ///
    /// # Errors
    ///
    /// A field that no event has.
    pub fn new(options: MarkOptions, recordings: &[AnyRecording]) -> Result<Self, UnknownField> {
        let mut logs = recordings.iter().filter(|of| of.is_log());
        let has_logs = logs.any(|of| !of.event_classes().is_empty());
        let wanted = Wanted::new(&options, has_logs);
        let fields =
            Fields::new(&wanted.fields, recordings).map_err(|(position, error)| UnknownField {
                option: wanted.options[position],
                error: Box::new(error),
            })?;
        let class_marks = |recording: usize, of: &AnyRecording| {
            let classes = of.event_classes().iter().enumerate();
            let marks = classes.map(|(position, class)| {
                let has = |field: usize| fields.has(recording, position, field);
                wanted.of_class(&options, class, of.is_log(), has)
            });
            marks.collect()
        };
        let classes = recordings.iter().enumerate();
        Ok(Self {
            classes: classes.map(|(place, of)| class_marks(place, of)).collect(),
            fields: Arc::new(fields),
            options,
        })
    }

    pub(super) fn class(&self, recording: usize, class: usize) -> &ClassMarks {
        &self.classes[recording][class]
    }

    /// The name of the field whose values are tracks.
    pub(super) fn track_name(&self) -> &str {
        self.options.track.as_ref().map_or("", FieldName::text)
    }

    /// The name of the field that a counter is of.
    pub(super) fn counter_name(&self, counter: usize) -> &str {
        self.options.counters[counter].field.text()
    }

    /// What one thread needs to carry values.
    pub(super) fn porter(self: &Arc<Self>) -> Porter {
        Porter {
            marks: Arc::clone(self),
            reader: self.fields.reader(),
            recording: 0,
        }
    }
}

/// The fields that options want, in order: the track (of event logs its number and name), keys of
/// slices, counters, flows.
struct Wanted {
    fields: Vec<WantedField>,
    /// The option each comes from.
    options: Vec<&'static str>,
    keys: Vec<Option<usize>>,
    counters: std::ops::Range<usize>,
}

impl Wanted {
    fn new(options: &MarkOptions, has_logs: bool) -> Self {
        let mut wanted = Self {
            fields: Vec::new(),
            options: Vec::new(),
            keys: Vec::new(),
            counters: 0..0,
        };
        let all = Vec::new;
        if let Some(track) = &options.track {
            wanted.add("--track", track, all());
        } else if has_logs {
            for name in ["track", "track_name"] {
                wanted.add("--track", &FieldName::of_member(name), all());
            }
        }
        for slice in &options.slices {
            let events = || vec![slice.begin.clone(), slice.end.clone()];
            let key = slice.key.as_ref();
            let key = key.map(|key| wanted.add("--slice", key, events()));
            wanted.keys.push(key);
        }
        let begin = wanted.fields.len();
        for counter in &options.counters {
            wanted.add("--counter", &counter.field, vec![counter.event.clone()]);
        }
        wanted.counters = begin..wanted.fields.len();
        for flow in &options.flows {
            wanted.add("--flow", flow, all());
        }
        wanted
    }

    /// Adds a field and tells its position.
    fn add(&mut self, option: &'static str, name: &FieldName, events: Vec<Glob>) -> usize {
        self.options.push(option);
        self.fields.push(WantedField {
            name: name.clone(),
            events,
        });
        self.fields.len() - 1
    }

    fn of_class(
        &self,
        options: &MarkOptions,
        class: &EventClass,
        is_log: bool,
        has: impl Fn(usize) -> bool,
    ) -> ClassMarks {
        let name = name_of(class).as_bytes();
        let mut marks = ClassMarks::default();
        if options.track.is_none() && is_log {
            marks.track = TrackFrom::Log;
            marks.carried.extend([0, 1]);
        } else if options.track.is_some() && has(0) {
            marks.track = TrackFrom::Field;
            marks.carried.push(0);
        }
        let mut pair = |of: fn(&Slice) -> &Glob| {
            let slice = options
                .slices
                .iter()
                .position(|slice| of(slice).matches(name))?;
            marks.carried.extend(self.keys[slice]);
            Some((slice, self.keys[slice].is_some()))
        };
        marks.ends = pair(|slice| &slice.end);
        marks.begins = pair(|slice| &slice.begin);
        for (counter, spec) in options.counters.iter().enumerate() {
            let field = self.counters.start + counter;
            if spec.event.matches(name) && has(field) {
                marks.counters.push(counter);
                marks.carried.push(field);
            }
        }
        let flows = (self.counters.end..self.fields.len()).filter(|&field| has(field));
        let before = marks.carried.len();
        marks.carried.extend(flows);
        marks.flows = marks.carried.len() - before;
        marks
    }
}

/// Carries the values that marks need, in one thread.
#[derive(Debug)]
pub(super) struct Porter {
    marks: Arc<Marks>,
    reader: FieldReader,
    recording: usize,
}

impl Porter {
    pub(super) fn chunk(
        &mut self,
        recording: usize,
        of: &AnyRecording,
        chunk: &Chunk,
    ) -> Result<(), Fault> {
        self.recording = recording;
        self.reader.chunk(recording, of, chunk)
    }

    /// Appends the values of an event.
    #[inline]
    pub(super) fn carry<E: Event>(&mut self, event: &E, out: &mut Line) -> Result<(), Fault> {
        let marks = self.marks.class(self.recording, event.class_index());
        if marks.carried.is_empty() {
            return Ok(());
        }
        self.reader.event(event)?;
        for &field in &marks.carried {
            carry::put(self.reader.value(field), out);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_are_split_at_colons_that_are_not_escaped() {
        let slice = Slice::parse(r"a\:b*:c\\:`x:y`");
        assert!(matches!(slice, Err(MarkError::Parts { .. })));
        let slice = Slice::parse(r"a\:b*:c\::ctx.id[1]").unwrap();
        assert!(slice.begin.matches(b"a:bc") && slice.end.matches(b"c:"));
        assert_eq!(slice.key.unwrap().text(), "ctx.id[1]");
        assert!(Slice::parse("in:out").unwrap().key.is_none());
        for wrong in ["", "a", "a:", ":b", "a:b:", "a:b:c:d", "a:b:1"] {
            assert!(Slice::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn counters_are_split_at_the_last_colon() {
        let counter = Counter::parse("lttng_ust:load:size").unwrap();
        assert!(counter.event.matches(b"lttng_ust:load"));
        assert_eq!(counter.field.text(), "size");
        let counter = Counter::parse("a:`b:c`").unwrap();
        assert!(counter.event.matches(b"a"));
        assert_eq!(counter.field.text(), "`b:c`");
        for wrong in ["", "a", "a:", ":b", "`", "a:b c"] {
            assert!(Counter::parse(wrong).is_err(), "{wrong}");
        }
    }
}
