//! Values of chosen fields, specified by their names as in conditions.

use std::fmt;

use kymo_model::batch::column_type;
use kymo_model::{DataType, Pick, Recording};

use super::error::FilterError;
use super::eval::{Constant, Number, Source};
use super::expr::FieldName;
use super::names::{Surroundings, suggestion, values as values_of};
use super::parser::parse_names;
use super::surround::Packets;

/// Names of fields of events, in the language of [conditions](super): `cpu_id`,
/// `payload.list[2]`, `event.name`.
#[derive(Clone, Debug, Default, PartialEq)]
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
        let with_names = |names| Self {
            source: source.to_string(),
            names,
        };
        let (left, right) = parse_names(source)?
            .into_iter()
            .map(|(name, other)| (name.clone(), other.unwrap_or(name)))
            .unzip();
        Ok((with_names(left), with_names(right)))
    }

    /// Removes a word that is not a field here; returns whether it was there. Between back quotes
    /// the word is a field all the same.
    pub(crate) fn take(&mut self, word: &str) -> bool {
        let before = self.names.len();
        let source = &self.source;
        self.names
            .retain(|name| source.get(name.range.clone()) != Some(word));
        self.names.len() < before
    }

    /// Each as it was written.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        let names = self.names.iter();
        names.map(|name| self.source.get(name.range.clone()).unwrap_or_default())
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
    /// Looks the names up in all classes for which `asked` gives positions of wishes: the values
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
        // Without any class, such as in a file that is cut off early, nothing is looked at.
        let has_classes = recordings.iter().any(|it| !it.event_classes().is_empty());
        let mut array = None;
        let mut all = Vec::with_capacity(recordings.len());
        for (recording, source) in recordings.iter().enumerate() {
            let (packets, classes) = Packets::of_classes(source, |position, around, picks| {
                let mut values = Vec::new();
                for wish in asked(recording, position)? {
                    for (number, name) in wishes[wish].names.names.iter().enumerate() {
                        let bound = values_of(name, around, picks, &mut array);
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
            if let Some(missing) = missing.filter(|_| wish.required && has_classes) {
                let surroundings = recordings.iter().zip(&all).flat_map(|(recording, fields)| {
                    let classes = recording.event_classes().iter().zip(&fields.classes);
                    let asked = classes.filter(|(_, fields)| fields.is_some());
                    asked.map(|(class, _)| fields.packets.around(recording, class))
                });
                return Err((position, unknown(wish.names, missing, surroundings, array)));
            }
        }
        Ok(Self { recordings: all })
    }

    /// Value number `index` of the events of a class as a column: its type, the fields that it may come
    /// from, and where else. With its own types it is a column of each type that it may have, integers over 64
    /// bits as text.
    pub(crate) fn columns<R: Recording>(
        &self,
        (recording, opened): (usize, &R),
        class: usize,
        index: usize,
        own_types: bool,
    ) -> Vec<(DataType, Vec<Pick>, Vec<Source>)> {
        let fields = self.class(recording, class);
        let sources = fields.and_then(|fields| fields.values.get(index).zip(Some(&fields.picks)));
        let Some((sources, all_picks)) = sources else {
            return Vec::new();
        };
        let event = &opened.event_classes()[class];
        // An address stands for its name, if it has one.
        let named = |field| opened.symbol_field(class, field).unwrap_or(field);
        let mut columns: Vec<(DataType, Vec<Pick>, Vec<Source>)> = Vec::new();
        for source in sources {
            let data_type = match source {
                Source::Event(slot) => column_type(&event.schema, named(all_picks[*slot].field)),
                Source::Packet(slot) => {
                    let packets = &self.recordings[recording].packets;
                    match packets.pick(event, *slot) {
                        Some((schema, pick)) => column_type(schema, pick.field),
                        None => continue,
                    }
                }
                Source::Time => DataType::Int64,
                Source::StreamId => DataType::Uint64,
                Source::StreamName | Source::Constant(Constant::Text(_)) => DataType::Text,
                Source::Constant(Constant::Bool(_)) => DataType::Bool,
                Source::Constant(Constant::Number(Number::Float(_))) => DataType::Float64,
                Source::Constant(Constant::Number(Number::Integer(value))) => match *value < 0 {
                    true => DataType::Int64,
                    false => DataType::Uint64,
                },
            };
            let data_type = match data_type {
                DataType::FixedBinary(_) if own_types => DataType::Text,
                data_type => data_type,
            };
            match columns.last_mut() {
                Some(column) if !own_types || column.0 == data_type => {
                    column.0 = column.0.widest(&data_type);
                }
                _ => columns.push((data_type, Vec::new(), Vec::new())),
            }
            let Some((_, picks, others)) = columns.last_mut() else {
                continue;
            };
            match source {
                Source::Event(slot) => picks.push(Pick {
                    field: named(all_picks[*slot].field),
                    ..all_picks[*slot].clone()
                }),
                other => others.push(other.clone()),
            }
        }
        columns
    }

    /// What one thread needs to know of what surrounds events.
    pub(crate) fn packets(&self, recording: usize) -> &Packets {
        &self.recordings[recording].packets
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
    let help = array.or_else(|| suggestion(name, classes));
    match help {
        Some(help) => error.help(help),
        None => error.help("`kymo info --schema` lists the fields of all events"),
    }
}
