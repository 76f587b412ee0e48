//! What events mean on a time line beside having happened: their track, slices between two of
//! them, counters, flows.

use std::fmt;

use kymo_model::{FieldId, Recording, Value};

use crate::filter::{FieldNames, FilterError, Glob, name_of};
use crate::pipeline::Row;
use crate::show::table::Table;
use crate::timeline::{RowPlan, named_fields};
pub use crate::tracks::UnknownField;
use crate::tracks::{ClassQuery, ClassTracks, Fields, SliceKeys, TrackPlan, TrackQuery};
use crate::{AnyRecording, EntryKind};

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
pub enum TrackOptionError {
    /// It has not the parts that were expected.
    Parts {
        /// What was expected.
        expected: &'static str,
    },
    /// A field's name is none.
    Field(FilterError),
}

impl fmt::Display for TrackOptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Parts { expected } => write!(f, "expected {expected}"),
            Self::Field(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for TrackOptionError {}

impl Slice {
    /// Reads `BEGIN:END` or `BEGIN:END:FIELD`: two patterns of events' names, in which `\:` is a
    /// colon, and perhaps the name of a field.
    ///
    /// # Errors
    ///
    /// What is wrong in it.
    pub fn parse(text: &str) -> Result<Self, TrackOptionError> {
        let expected =
            "BEGIN:END or BEGIN:END:FIELD, with `\\:` for a colon within the name of an event";
        let (begin, rest) = split(text).ok_or(TrackOptionError::Parts { expected })?;
        let (end, key) = match split(rest) {
            Some((end, key)) => (end, Some(key)),
            None => (rest, None),
        };
        if begin.is_empty() || end.is_empty() || key.is_some_and(|key| split(key).is_some()) {
            return Err(TrackOptionError::Parts { expected });
        }
        Ok(Self {
            begin: Glob::new(begin),
            end: Glob::new(end),
            key: key
                .map(FieldNames::parse_one)
                .transpose()
                .map_err(TrackOptionError::Field)?,
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
    pub fn parse(text: &str) -> Result<Self, TrackOptionError> {
        let expected = "EVENT:FIELD";
        // Only a name between back quotes can have a colon.
        let end = match text.strip_suffix('`') {
            Some(quoted) => quoted.rfind('`').unwrap_or(0),
            None => text.len(),
        };
        match text[..end].rfind(':') {
            None | Some(0) => Err(TrackOptionError::Parts { expected }),
            Some(colon) => Ok(Self {
                event: Glob::new(&text[..colon]),
                field: FieldNames::parse_one(&text[colon + 1..])
                    .map_err(TrackOptionError::Field)?,
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
pub struct TrackOptions {
    /// The field whose values are tracks; without it, tracks are those that the events name, as
    /// in event logs, and otherwise streams.
    pub track: Option<FieldNames>,
    /// Slices.
    pub slices: Vec<Slice>,
    /// Counters.
    pub counters: Vec<Counter>,
    /// Fields whose values are the same in events that belong together.
    pub flows: Vec<FieldNames>,
}

impl TrackOptions {
    /// All patterns of names of events.
    pub fn patterns(&self) -> Vec<Glob> {
        let slices = self.slices.iter();
        let slices = slices.flat_map(|slice| [slice.begin.clone(), slice.end.clone()]);
        let counters = self.counters.iter().map(|counter| counter.event.clone());
        slices.chain(counters).collect()
    }
}

/// [`TrackOptions`], bound to recordings.
#[derive(Debug)]
pub struct TrackBinding {
    options: TrackOptions,
    tracks: TrackPlan,
}

impl TrackBinding {
    /// Binds options.
    ///
    /// # Errors
    ///
    /// A field that no event has.
    pub fn new(options: TrackOptions, recordings: &[AnyRecording]) -> Result<Self, UnknownField> {
        let binding = Self::bind(options, false, recordings)?;
        Ok(binding.with_fields(recordings, |recording, class| {
            let recording = &recordings[recording];
            match entry_kind(recording) {
                EntryKind::Sample => named_fields(&recording.event_classes()[class]).collect(),
                EntryKind::Event => Vec::new(),
            }
        }))
    }

    /// The same without the values of samples; `without_own` without tracks of recordings' own, too.
    fn bind(
        options: TrackOptions,
        without_own: bool,
        recordings: &[AnyRecording],
    ) -> Result<Self, UnknownField> {
        let fields = |option, names| Fields {
            option,
            names,
            required: true,
        };
        let slices = options.slices.iter().map(|slice| {
            let key = slice.key.as_ref().map(|key| fields("--slice", key));
            SliceKeys {
                begin: key,
                end: key,
            }
        });
        let counters = options.counters.iter();
        let flows = options.flows.iter();
        let query = TrackQuery {
            tracks: options.track.as_ref().map(|track| fields("--track", track)),
            without_own,
            slices: slices.collect(),
            counters: counters
                .map(|counter| fields("--counter", &counter.field))
                .collect(),
            flows: flows.map(|flow| fields("--flow", flow)).collect(),
        };
        let asked = |recording: usize, class: usize| {
            let recording: &AnyRecording = &recordings[recording];
            let name = name_of(&recording.event_classes()[class]).as_bytes();
            let slice = |pattern: fn(&Slice) -> &Glob| {
                let mut slices = options.slices.iter();
                slices.position(|slice| pattern(slice).matches(name))
            };
            let counters = options.counters.iter().enumerate();
            let counters = counters.filter(|(_, counter)| counter.event.matches(name));
            Some(ClassQuery {
                begins: slice(|slice| &slice.begin),
                ends: slice(|slice| &slice.end),
                counters: counters.map(|(position, _)| position).collect(),
                flows: (0..options.flows.len()).collect(),
                ..ClassQuery::default()
            })
        };
        Ok(Self {
            tracks: TrackPlan::new(recordings, &query, asked)?,
            options,
        })
    }

    /// The values of one field of all events that have it, as a counter, and the tracks.
    pub(super) fn of_value(
        option: &'static str,
        track: Option<&FieldNames>,
        without_own: bool,
        value: Option<&FieldNames>,
        recordings: &[AnyRecording],
    ) -> Result<Self, UnknownField> {
        let counter = |field: &FieldNames| Counter {
            event: Glob::new("*"),
            field: field.clone(),
        };
        let options = TrackOptions {
            track: track.cloned(),
            counters: value.map(counter).into_iter().collect(),
            ..TrackOptions::default()
        };
        Self::bind(options, without_own, recordings).map_err(|unknown| match unknown.option {
            "--counter" => UnknownField { option, ..unknown },
            _ => unknown,
        })
    }

    /// Asks for the values of more fields of each class.
    pub(super) fn with_fields(
        mut self,
        recordings: &[AnyRecording],
        fields: impl Fn(usize, usize) -> Vec<FieldId>,
    ) -> Self {
        let rows = std::mem::take(&mut self.tracks.rows);
        self.tracks.rows = rows.with_fields(recordings, fields);
        self
    }

    /// What the events of a class mean.
    #[inline]
    pub(super) fn class(&self, recording: usize, class: usize) -> Option<&ClassTracks> {
        self.tracks.classes(recording)[class].as_ref()
    }

    /// The value of the first counter that a class has; `None` if it has none.
    #[inline]
    pub(super) fn value<'v>(&self, row: &Row<'v>) -> Option<Value<'v>> {
        let class = self.class(row.message.recording, row.message.class)?;
        let (_, columns) = class.counters.first()?;
        Some(row.values.first(&columns[0]))
    }

    /// The columns of all values.
    pub(super) fn plan(&self) -> &RowPlan {
        &self.tracks.rows
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
}

/// What the entries of a recording are drawn as: rows of databases as numbers, everything else, the values of
/// collectd too, as events with fields.
pub(super) fn entry_kind(recording: &AnyRecording) -> EntryKind {
    match recording {
        AnyRecording::Rrd(_) => EntryKind::Sample,
        _ => EntryKind::Event,
    }
}

/// What the data sources of archives are called, made when an archive is first met.
#[derive(Debug, Default)]
pub(super) struct SourceNames(Table<Vec<String>>);

impl SourceNames {
    /// The names of the data sources of an archive, in their order.
    pub(super) fn of_archive(
        &mut self,
        recordings: &[AnyRecording],
        recording: usize,
        archive: usize,
    ) -> &[String] {
        self.0.get(recording, archive, || {
            let source = &recordings[recording];
            let stream = &source.streams()[archive].name;
            let fields = source.event_classes()[archive].schema.fields().iter();
            let names = fields.filter_map(|field| field.name.as_deref());
            names.map(|name| format!("{name} {stream}")).collect()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_are_split_at_colons_that_are_not_escaped() {
        let slice = Slice::parse(r"a\:b*:c\\:`x:y`");
        assert!(matches!(slice, Err(TrackOptionError::Parts { .. })));
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
