//! Values of chosen fields, told by their names as conditions tell them.

use std::fmt;

use kymo_model::{Chunk, Event, Fault, Pick, Recording, Selection, Value};

use super::error::FilterError;
use super::eval::Source;
use super::names::{Surroundings, fields, known_names, property};
use super::parser::{FieldName, Step, parse_names};
use super::selections::Selections;
use super::suggest::nearest;
use super::surround::{Packets, Surround};

/// Names of fields of events, in the language of [conditions](super): `cpu_id`,
/// `payload.list[2]`, `event.name`.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldNames {
    source: String,
    names: Vec<FieldName>,
}

impl FieldNames {
    /// Reads names, with commas between them.
    ///
    /// # Errors
    ///
    /// Something else stands there.
    pub fn parse(source: &str) -> Result<Self, FilterError> {
        let pairs = parse_names(source)?;
        if let Some(other) = pairs.iter().find_map(|(_, other)| other.as_ref()) {
            let message = "one field has one name here";
            return Err(FilterError::new(source, other.range.clone(), message));
        }
        Ok(Self {
            source: source.to_string(),
            names: pairs.into_iter().map(|(name, _)| name).collect(),
        })
    }

    /// Reads one name.
    ///
    /// # Errors
    ///
    /// Something else stands there.
    pub fn parse_one(source: &str) -> Result<Self, FilterError> {
        let names = Self::parse(source)?;
        match names.names.get(1) {
            None => Ok(names),
            Some(second) => {
                let message = "expected one field";
                Err(FilterError::new(source, second.range.clone(), message))
            }
        }
    }

    /// Reads names of fields that one kind of events calls so, and another kind perhaps
    /// otherwise: `tid` or `tid=next_tid`, with commas between them.
    ///
    /// # Errors
    ///
    /// Something else stands there.
    pub fn parse_pairs(source: &str) -> Result<(Self, Self), FilterError> {
        let of = |names| Self {
            source: source.to_string(),
            names,
        };
        let (left, right) = parse_names(source)?
            .into_iter()
            .map(|(name, other)| (name.clone(), other.unwrap_or(name)))
            .unzip();
        Ok((of(left), of(right)))
    }

    /// The fields at these paths: names with dots between them.
    pub(crate) fn at(paths: &[&str]) -> Self {
        let mut source = String::new();
        let mut names = Vec::new();
        for path in paths {
            if !source.is_empty() {
                source += ",";
            }
            let begin = source.len();
            source += path;
            names.push(FieldName {
                steps: path
                    .split('.')
                    .map(|step| Step::Name(step.to_string()))
                    .collect(),
                range: begin..source.len(),
            });
        }
        Self { source, names }
    }

    /// Takes a word out that is no field here; tells whether it was there. Between back quotes
    /// the word is a field all the same.
    pub(crate) fn take(&mut self, word: &str) -> bool {
        let before = self.names.len();
        let source = &self.source;
        self.names
            .retain(|name| source.get(name.range.clone()) != Some(word));
        self.names.len() < before
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }
}

impl fmt::Display for FieldNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, name) in self.names.iter().enumerate() {
            let separator = if position > 0 { ", " } else { "" };
            let name = self.source.get(name.range.clone()).unwrap_or_default();
            write!(f, "{separator}{name}")?;
        }
        Ok(())
    }
}

/// Names of fields that some event classes are asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wish<'n> {
    pub(crate) names: &'n FieldNames,
    /// Whether it is an error that no class has one of them.
    pub(crate) required: bool,
}

/// Fields of event classes, looked up once for some recordings.
#[derive(Debug)]
pub(crate) struct Fields {
    recordings: Vec<RecordingFields>,
}

#[derive(Debug)]
struct RecordingFields {
    /// By position among the recording's event classes; `None` where nothing is asked for.
    classes: Vec<Option<ClassFields>>,
    packets: Packets,
}

#[derive(Debug)]
struct ClassFields {
    /// For each name where its value may be: in several places where a variant has several
    /// options.
    values: Vec<Vec<Source>>,
    picks: Vec<Pick>,
}

impl Fields {
    /// Looks the names up in all classes of which `asked` tells positions of wishes: the values
    /// of a class are those of its wishes, in that order.
    ///
    /// # Errors
    ///
    /// No class that is asked has a field of a required wish; with the position of that wish.
    pub(crate) fn new<R: Recording>(
        recordings: &[R],
        wishes: &[Wish<'_>],
        asked: impl Fn(usize, usize) -> Option<Vec<usize>>,
    ) -> Result<Self, (usize, FilterError)> {
        let mut found: Vec<Vec<bool>> = wishes
            .iter()
            .map(|wish| vec![false; wish.names.len()])
            .collect();
        let mut array = None;
        let mut all = Vec::with_capacity(recordings.len());
        for (recording, of) in recordings.iter().enumerate() {
            let (packets, classes) = Packets::of_classes(of, |position, around, picks| {
                let mut values = Vec::new();
                for wish in asked(recording, position)? {
                    for (number, name) in wishes[wish].names.names.iter().enumerate() {
                        let bound = property(name, around)
                            .unwrap_or_else(|| fields(name, around, picks, &mut array));
                        found[wish][number] |= !bound.is_empty();
                        let sources = bound.into_iter().flatten().map(|bound| bound.source);
                        values.push(sources.collect());
                    }
                }
                Some(ClassFields {
                    values,
                    picks: std::mem::take(&mut picks.event),
                })
            });
            all.push(RecordingFields { classes, packets });
        }
        for (position, (wish, found)) in wishes.iter().zip(found).enumerate() {
            let missing = found.iter().position(|&found| !found);
            if let Some(missing) = missing.filter(|_| wish.required) {
                let of = recordings.iter().zip(&all).flat_map(|(of, fields)| {
                    let classes = of.event_classes().iter().zip(&fields.classes);
                    let asked = classes.filter(|(_, fields)| fields.is_some());
                    asked.map(|(class, _)| fields.packets.around(of, class))
                });
                return Err((position, unknown(wish.names, missing, of, array)));
            }
        }
        Ok(Self { recordings: all })
    }

    /// What one thread needs to capture the values.
    pub(crate) fn capture(&self) -> Capture<'_> {
        let classes = self.recordings.iter().map(|fields| fields.classes.len());
        Capture {
            fields: self,
            selections: Selections::new(classes),
            surround: Surround::default(),
            recording: 0,
            class: 0,
            time: None,
        }
    }

    /// Whether the events of a class may have value number `index`.
    pub(crate) fn has(&self, recording: usize, class: usize, index: usize) -> bool {
        let values = self.class(recording, class).map(|fields| &fields.values);
        values
            .and_then(|values| values.get(index))
            .is_some_and(|places| !places.is_empty())
    }

    fn class(&self, recording: usize, class: usize) -> Option<&ClassFields> {
        self.recordings.get(recording)?.classes.get(class)?.as_ref()
    }
}

/// The error that no class has a field.
fn unknown<'a>(
    names: &FieldNames,
    missing: usize,
    classes: impl Iterator<Item = Surroundings<'a>>,
    array: Option<String>,
) -> FilterError {
    let range = names.names[missing].range.clone();
    let name = names.source.get(range.clone()).unwrap_or_default();
    let message = format!("no event that is looked at has a field `{name}`");
    let error = FilterError::new(&names.source, range, message).label("unknown field");
    let help = array.or_else(|| {
        let known = known_names(classes);
        nearest(name, known.iter().map(String::as_str))
            .map(|known| format!("there is a field `{known}`"))
    });
    match help {
        Some(help) => error.help(help),
        None => error,
    }
}

/// Captures the values of [`Fields`], event by event.
#[derive(Debug)]
pub(crate) struct Capture<'f> {
    fields: &'f Fields,
    selections: Selections,
    surround: Surround,
    recording: usize,
    class: usize,
    time: Option<i64>,
}

impl Capture<'_> {
    /// A chunk begins: the events that follow are of it.
    ///
    /// # Errors
    ///
    /// A fault in the packet header or context.
    pub(crate) fn begin_chunk<R: Recording>(
        &mut self,
        recording: usize,
        of: &R,
        chunk: &Chunk,
    ) -> Result<(), Fault> {
        self.recording = recording;
        let packets = &self.fields.recordings[recording].packets;
        self.surround.begin_chunk(packets, (recording, of), chunk)
    }

    /// Captures the values of an event.
    ///
    /// # Errors
    ///
    /// The fault at which decoding of the event stopped.
    #[inline]
    pub(crate) fn event<E: Event>(&mut self, event: &E) -> Result<(), Fault> {
        self.class = event.class_index();
        self.time = event.timestamp().map(kymo_time::Timestamp::as_nanos);
        let Some(fields) = self.fields.class(self.recording, self.class) else {
            return Ok(());
        };
        if fields.picks.is_empty() {
            return Ok(());
        }
        let selection = self.selections.clear(self.recording, self.class, || {
            Selection::new(&event.class().schema, fields.picks.iter().cloned())
        });
        event.visit(selection)
    }

    /// Hands over the values of the event, in the order of the wishes of its class.
    #[inline]
    pub(crate) fn each(&self, mut take: impl FnMut(Value<'_>)) {
        let Some(fields) = self.fields.class(self.recording, self.class) else {
            return;
        };
        let selection = self.selections.get(self.recording, self.class);
        'values: for places in &fields.values {
            for place in places {
                match self.surround.value(place, selection, self.time) {
                    Value::Missing => {}
                    value => {
                        take(value);
                        continue 'values;
                    }
                }
            }
            take(Value::Missing);
        }
    }
}
