//! What events mean on a time line beside having happened: their track, slices between two of
//! them, counters, flows.

use std::fmt;
use std::ops::Range;
use std::sync::LazyLock;

use kymo_model::{Chunk, Event, Fault, Recording};
use kymo_text::Line;

use crate::AnyRecording;
use crate::analysis::tracks::{has_own, own_fields};
use crate::carried;
use crate::filter::{Capture, FieldNames, Fields, FilterError, Glob, Wish, name_of};

/// Events that begin and end slices of time: `BEGIN:END` or `BEGIN:END:FIELD`.
#[derive(Clone, Debug)]
pub struct Slice {
    begin: Glob,
    end: Glob,
    /// Begin and end belong together only where this field has the same value.
    key: Option<FieldNames>,
}

/// A field whose values are drawn as a counter: `EVENT:FIELD`.
#[derive(Clone, Debug)]
pub struct Counter {
    event: Glob,
    field: FieldNames,
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
            Self::Parts { expected } => write!(f, "expected {expected}"),
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
        let expected =
            "BEGIN:END or BEGIN:END:FIELD, with `\\:` for a colon within the name of an event";
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
                .map(FieldNames::parse_one)
                .transpose()
                .map_err(MarkError::Field)?,
        })
    }
}

impl Counter {
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
                field: FieldNames::parse_one(&text[colon + 1..]).map_err(MarkError::Field)?,
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
    /// The field whose values are tracks; without, tracks are those that events tell themselves, as
    /// in event logs, and otherwise streams.
    pub track: Option<FieldNames>,
    /// Slices.
    pub slices: Vec<Slice>,
    /// Counters.
    pub counters: Vec<Counter>,
    /// Fields whose values are the same in events that belong together.
    pub flows: Vec<FieldNames>,
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
    fields: Fields,
    /// By recording and class.
    classes: Vec<Vec<ClassMarks>>,
}

/// What the events of a class mean. Their values are carried in this order: track, key of the
/// slice that ends, key of the slice that begins, counters, flows.
#[derive(Debug, Default)]
pub(super) struct ClassMarks {
    /// Of each field that the class is asked for, whether it is carried; empty where none is.
    carried: Vec<bool>,
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
    /// The event tells its own: the number and the name come first.
    Own,
}

impl Marks {
    /// Binds options.
    ///
    /// # Errors
    ///
    /// A field that no event has.
    pub fn new(options: MarkOptions, recordings: &[AnyRecording]) -> Result<Self, UnknownField> {
        let wishes = Wishes::new(&options);
        let asked = |recording: usize, class: usize| {
            let of: &AnyRecording = &recordings[recording];
            Some(wishes.of_class(&options, of, class).asked())
        };
        let fields = Fields::new(recordings, &wishes.wishes, asked).map_err(|(wish, error)| {
            UnknownField {
                option: wishes.options[wish],
                error: Box::new(error),
            }
        })?;
        let class_marks = |(recording, of): (usize, &AnyRecording)| {
            let classes = 0..of.event_classes().len();
            let marks = classes.map(|class| {
                let has = |field: usize| fields.has(recording, class, field);
                wishes.of_class(&options, of, class).marks(has)
            });
            marks.collect()
        };
        Ok(Self {
            classes: recordings.iter().enumerate().map(class_marks).collect(),
            fields,
            options,
        })
    }

    /// The values of one field of all events that have it, as a counter, and the tracks.
    pub(super) fn of_value(
        option: &'static str,
        track: Option<&FieldNames>,
        value: Option<&FieldNames>,
        recordings: &[AnyRecording],
    ) -> Result<Self, UnknownField> {
        let counter = |field: &FieldNames| Counter {
            event: Glob::new("*"),
            field: field.clone(),
        };
        let options = MarkOptions {
            track: track.cloned(),
            counters: value.map(counter).into_iter().collect(),
            ..MarkOptions::default()
        };
        Self::new(options, recordings).map_err(|unknown| match unknown.option {
            "--counter" => UnknownField { option, ..unknown },
            _ => unknown,
        })
    }

    pub(super) fn class(&self, recording: usize, class: usize) -> &ClassMarks {
        &self.classes[recording][class]
    }

    /// The name of the field whose values are tracks.
    pub(super) fn track_name(&self) -> String {
        let track = self.options.track.as_ref();
        track.map_or_else(String::new, FieldNames::to_string)
    }

    /// The name of the field that a counter is of.
    pub(super) fn counter_name(&self, counter: usize) -> String {
        self.options.counters[counter].field.to_string()
    }

    /// What one thread needs to carry values.
    pub(super) fn porter(&self) -> Porter<'_> {
        Porter {
            marks: self,
            capture: self.fields.capture(),
            recording: 0,
        }
    }
}

/// The fields that options want.
struct Wishes<'o> {
    wishes: Vec<Wish<'o>>,
    /// The option each comes from.
    options: Vec<&'static str>,
    /// Of the tracks that a field makes, and of those that events tell themselves.
    track: Option<usize>,
    own: Option<usize>,
    /// Of the key of each slice.
    keys: Vec<Option<usize>>,
    counters: Range<usize>,
    flows: Range<usize>,
}

/// The number and the name of the tracks that events tell themselves.
static OWN_TRACK: LazyLock<FieldNames> = LazyLock::new(own_fields);

/// What a class is asked for: positions of wishes, in the order in which values are carried.
struct OfClass {
    track: Option<(TrackFrom, usize)>,
    ends: Option<(usize, Option<usize>)>,
    begins: Option<(usize, Option<usize>)>,
    /// Each with its position among the counters.
    counters: Vec<(usize, usize)>,
    flows: Range<usize>,
}

impl<'o> Wishes<'o> {
    fn new(options: &'o MarkOptions) -> Self {
        let mut wishes = Self {
            wishes: Vec::new(),
            options: Vec::new(),
            track: None,
            own: None,
            keys: Vec::new(),
            counters: 0..0,
            flows: 0..0,
        };
        match &options.track {
            Some(track) => wishes.track = Some(wishes.add("--track", track, true)),
            None => wishes.own = Some(wishes.add("--track", &OWN_TRACK, false)),
        }
        for slice in &options.slices {
            let key = slice.key.as_ref();
            let key = key.map(|key| wishes.add("--slice", key, true));
            wishes.keys.push(key);
        }
        let begin = wishes.wishes.len();
        for counter in &options.counters {
            wishes.add("--counter", &counter.field, true);
        }
        let end = wishes.wishes.len();
        for flow in &options.flows {
            wishes.add("--flow", flow, true);
        }
        wishes.counters = begin..end;
        wishes.flows = end..wishes.wishes.len();
        wishes
    }

    /// Adds a wish and tells its position.
    fn add(&mut self, option: &'static str, names: &'o FieldNames, required: bool) -> usize {
        self.options.push(option);
        self.wishes.push(Wish { names, required });
        self.wishes.len() - 1
    }

    fn of_class(&self, options: &MarkOptions, of: &AnyRecording, class: usize) -> OfClass {
        let class = &of.event_classes()[class];
        let name = name_of(class).as_bytes();
        let own = self.own.filter(|_| has_own(class));
        let slice = |pattern: fn(&Slice) -> &Glob| {
            let mut slices = options.slices.iter();
            let slice = slices.position(|slice| pattern(slice).matches(name))?;
            Some((slice, self.keys[slice]))
        };
        let counters = options.counters.iter().zip(self.counters.clone());
        let counters = counters.enumerate();
        let counters = counters.filter(|(_, (counter, _))| counter.event.matches(name));
        OfClass {
            track: match self.track {
                Some(field) => Some((TrackFrom::Field, field)),
                None => own.map(|own| (TrackFrom::Own, own)),
            },
            ends: slice(|slice| &slice.end),
            begins: slice(|slice| &slice.begin),
            counters: counters.map(|(place, (_, wish))| (wish, place)).collect(),
            flows: self.flows.clone(),
        }
    }
}

impl OfClass {
    /// The wishes, in order.
    fn asked(&self) -> Vec<usize> {
        let key = |slice: Option<(usize, Option<usize>)>| slice.and_then(|(_, key)| key);
        let track = self.track.map(|(_, wish)| wish);
        let keys = key(self.ends).into_iter().chain(key(self.begins));
        let counters = self.counters.iter().map(|&(wish, _)| wish);
        let marks = track.into_iter().chain(keys).chain(counters);
        marks.chain(self.flows.clone()).collect()
    }

    /// What is carried of the events of the class, which has only some of the fields: `has` tells
    /// of their positions, of which each wish has one but that of an event's own track, which has
    /// two.
    fn marks(&self, has: impl Fn(usize) -> bool) -> ClassMarks {
        let mut marks = ClassMarks::default();
        let mut next = 0;
        let mut take = |carried: &mut Vec<bool>, always: bool| {
            let taken = always || has(next);
            next += 1;
            carried.push(taken);
            taken
        };
        match self.track {
            Some((TrackFrom::Own, _)) => {
                take(&mut marks.carried, true);
                take(&mut marks.carried, true);
                marks.track = TrackFrom::Own;
            }
            Some((from, _)) if take(&mut marks.carried, false) => marks.track = from,
            _ => {}
        }
        let mut pair = |slice: Option<(usize, Option<usize>)>| {
            let (slice, key) = slice?;
            Some((slice, key.is_some() && take(&mut marks.carried, true)))
        };
        marks.ends = pair(self.ends);
        marks.begins = pair(self.begins);
        for &(_, counter) in &self.counters {
            if take(&mut marks.carried, false) {
                marks.counters.push(counter);
            }
        }
        for _ in self.flows.clone() {
            marks.flows += usize::from(take(&mut marks.carried, false));
        }
        if !marks.carried.contains(&true) {
            marks.carried.clear();
        }
        marks
    }
}

/// Carries the values that marks need, in one thread.
#[derive(Debug)]
pub(super) struct Porter<'m> {
    marks: &'m Marks,
    capture: Capture<'m>,
    recording: usize,
}

impl Porter<'_> {
    pub(super) fn chunk(
        &mut self,
        recording: usize,
        of: &AnyRecording,
        chunk: &Chunk,
    ) -> Result<(), Fault> {
        self.recording = recording;
        self.capture.begin_chunk(recording, of, chunk)
    }

    /// Appends the values of an event.
    #[inline]
    pub(super) fn carry<E: Event>(&mut self, event: &E, out: &mut Line) -> Result<(), Fault> {
        let marks = self.marks.class(self.recording, event.class_index());
        if marks.carried.is_empty() {
            return Ok(());
        }
        self.capture.event(event)?;
        let mut carried = marks.carried.iter();
        self.capture.each(|value| {
            if carried.next() == Some(&true) {
                carried::put(value, usize::MAX, out);
            }
        });
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
        assert_eq!(slice.key.unwrap().to_string(), "ctx.id[1]");
        assert!(Slice::parse("in:out").unwrap().key.is_none());
        for wrong in ["", "a", "a:", ":b", "a:b:", "a:b:c:d", "a:b:1"] {
            assert!(Slice::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn counters_are_split_at_the_last_colon() {
        let counter = Counter::parse("lttng_ust:load:size").unwrap();
        assert!(counter.event.matches(b"lttng_ust:load"));
        assert_eq!(counter.field.to_string(), "size");
        let counter = Counter::parse("a:`b:c`").unwrap();
        assert!(counter.event.matches(b"a"));
        assert_eq!(counter.field.to_string(), "`b:c`");
        for wrong in ["", "a", "a:", ":b", "`", "a:b c"] {
            assert!(Counter::parse(wrong).is_err(), "{wrong}");
        }
    }
}
