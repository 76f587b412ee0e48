//! The tracks of rows: numbers for tracks, and what a row adds to which of them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kymo::AnyRecording;
use kymo_model::batch::{Batch, Column, ColumnData, ColumnSource, all_columns};
use kymo_model::{
    EntryKind, FieldId, Recording, Roles, Schema, Track, TrackPart, TrackPath, TrackRule, Value,
};

/// Tracks that have numbers at most; rows of others are not shown one by one.
const MOST_TRACKS: usize = 1 << 20;

/// The numbers of tracks, which are the same as long as the program runs.
#[derive(Debug, Default)]
pub(crate) struct Tracks(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    numbers: HashMap<(usize, TrackPath), u32>,
    tracks: Vec<(usize, Track)>,
}

impl Tracks {
    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of a track, which it gets if it has none.
    pub(crate) fn number(&self, recording: usize, track: &Track) -> Option<u32> {
        let mut known = self.lock();
        let key = (recording, track.path.clone());
        if let Some(&number) = known.numbers.get(&key) {
            return Some(number);
        }
        let number = known.tracks.len();
        if number >= MOST_TRACKS {
            return None;
        }
        known.numbers.insert(key, number as u32);
        known.tracks.push((recording, track.clone()));
        Some(number as u32)
    }

    /// A track and the position of its recording.
    pub(crate) fn get(&self, number: u32) -> Option<(usize, Track)> {
        self.lock().tracks.get(number as usize).cloned()
    }
}

/// What identifies a track in a form that is quickly compared.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Key {
    Stream(usize),
    Position(usize),
    Number(u64),
    Name(String),
    /// A series of a track: class, counter, element.
    Series(Option<u32>, usize, usize, Option<usize>),
}

/// What the rows of a class are: columns by their positions.
#[derive(Debug)]
struct Meaning {
    rule: TrackRule,
    roles: Roles,
    /// The fields that are needed, and the columns that hold them.
    columns: HashMap<FieldId, usize>,
}

/// Finds the tracks of rows in batches of [one class](kymo::timeline::Shape::ByClass) with
/// [all columns](kymo::timeline::Columns::All).
#[derive(Debug)]
pub(crate) struct Classifier<'s> {
    recordings: &'s [AnyRecording],
    tracks: &'s Tracks,
    meanings: HashMap<(usize, usize), Meaning>,
    numbers: HashMap<(usize, Key), Option<u32>>,
}

/// What a row adds to a track.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Part {
    /// The track.
    pub(crate) track: u32,
    /// The value of a series; `None` of an event and of what is not known.
    pub(crate) value: Option<f64>,
}

impl<'s> Classifier<'s> {
    pub(crate) fn new(recordings: &'s [AnyRecording], tracks: &'s Tracks) -> Self {
        Self {
            recordings,
            tracks,
            meanings: HashMap::new(),
            numbers: HashMap::new(),
        }
    }

    /// The parts of a row.
    pub(crate) fn parts(&mut self, batch: &Batch, row: usize) -> Vec<Part> {
        let head = batch.head(row);
        let (recording, stream) = (head.id.recording as usize, head.id.stream as usize);
        let class = head.class as usize;
        let of = &self.recordings[recording];
        let meaning = self
            .meanings
            .entry((recording, class))
            .or_insert_with(|| Meaning::new(of, class));
        let column = |field: &FieldId| meaning.columns.get(field).map(|&at| &batch.columns()[at]);
        let mut finder = Finder {
            of,
            recording,
            tracks: self.tracks,
            numbers: &mut self.numbers,
        };
        if let TrackRule::Series { first, values } = &meaning.rule {
            let parts = values.iter().enumerate().filter_map(|(at, field)| {
                let track = finder.known(first + at)?;
                let value = column(field).and_then(|column| number_in(column, row));
                Some(Part { track, value })
            });
            return parts.collect();
        }
        let kind = of.entry_kind(stream);
        let own = match &meaning.rule {
            TrackRule::Position(field) => {
                let at = column(field).map(|column| column.value(row));
                match at {
                    Some(Value::Uint(at)) if at < of.tracks().len() as u64 => {
                        finder.known(at as usize)
                    }
                    _ => finder.find(Key::Name(String::new()), || {
                        let path = TrackPath::new([TrackPart::Name("other".into())]);
                        Track::new(path, "other", kind)
                    }),
                }
            }
            TrackRule::Field { key, name } => {
                let value = column(key).map_or(Value::Missing, |column| column.value(row));
                let name = name.as_ref().and_then(column);
                let (key, part) = match value {
                    Value::Uint(number) => (Key::Number(number), TrackPart::Number(number)),
                    value => {
                        let text = text_of(value);
                        (Key::Name(text.clone()), TrackPart::Name(text.into()))
                    }
                };
                finder.find(key, || {
                    let title = name.map(|column| text_of(column.value(row)));
                    let title = title.filter(|title| !title.is_empty());
                    let title = title.unwrap_or_else(|| part.to_string());
                    Track::new(TrackPath::new([part.clone()]), title, kind)
                })
            }
            _ => finder.find(Key::Stream(stream), || {
                let info = &of.streams()[stream];
                let part = TrackPart::Stream {
                    class: info.class,
                    id: info.id.unwrap_or(stream as u64),
                };
                Track::new(TrackPath::new([part]), Arc::clone(&info.name), kind)
            }),
        };
        let mut parts = Vec::new();
        for (counter, field) in meaning.roles.counters.iter().enumerate() {
            let Some(column) = column(field) else {
                continue;
            };
            let (items, range) = match &column.data {
                ColumnData::List { offsets, items } => {
                    (&**items, offsets[row] as usize..offsets[row + 1] as usize)
                }
                _ => (column, row..row + 1),
            };
            let is_list = range.len() > 1;
            for (element, item) in range.enumerate() {
                let element = is_list.then_some(element);
                let path = of.event_classes()[class].schema.path(*field);
                let series = finder.find(Key::Series(own, class, counter, element), || {
                    let name = match element {
                        Some(element) => format!("{path}[{element}]"),
                        None => path.clone(),
                    };
                    let own = own.and_then(|own| self.tracks.get(own));
                    let (outer, title) = match &own {
                        Some((_, track)) => (track.path.parts(), &*track.name),
                        None => (&[][..], ""),
                    };
                    let source = TrackPart::Source(name.as_str().into());
                    let path = TrackPath::new(outer.iter().cloned().chain([source]));
                    Track::new(path, format!("{title} {name}"), EntryKind::Sample)
                });
                parts.extend(series.map(|track| Part {
                    track,
                    value: number_in(items, item),
                }));
            }
        }
        let is_event = own
            .and_then(|own| self.tracks.get(own))
            .is_none_or(|(_, track)| track.kind == EntryKind::Event);
        if is_event || parts.is_empty() {
            let own = own.map(|track| Part { track, value: None });
            parts.splice(0..0, own);
        }
        parts
    }
}

/// Finds tracks of a recording.
struct Finder<'a> {
    of: &'a AnyRecording,
    recording: usize,
    tracks: &'a Tracks,
    numbers: &'a mut HashMap<(usize, Key), Option<u32>>,
}

impl Finder<'_> {
    fn find(&mut self, key: Key, make: impl FnOnce() -> Track) -> Option<u32> {
        if self.numbers.len() >= 2 * MOST_TRACKS {
            self.numbers.clear();
        }
        let (tracks, recording) = (self.tracks, self.recording);
        let numbers = self.numbers.entry((recording, key));
        *numbers.or_insert_with(|| tracks.number(recording, &make()))
    }

    /// A track that the metadata knows.
    fn known(&mut self, at: usize) -> Option<u32> {
        let track = self.of.tracks().get(at)?;
        self.find(Key::Position(at), || track.clone())
    }
}

impl Meaning {
    fn new(of: &AnyRecording, class: usize) -> Self {
        let schema = &of.event_classes()[class].schema;
        let rule = of.track_rule(class);
        let roles = of.roles(class);
        let mut fields = roles.counters.clone();
        match &rule {
            TrackRule::Position(field) => fields.push(*field),
            TrackRule::Field { key, name } => fields.extend([*key].into_iter().chain(*name)),
            TrackRule::Series { values, .. } => fields.extend(values.iter().copied()),
            TrackRule::Stream => {}
            _ => {}
        }
        let wanted = all_columns(schema);
        let position = |field: FieldId| {
            let field = member_of(schema, field);
            wanted.iter().position(|column| match &column.source {
                ColumnSource::Fields(picks) => {
                    picks.first().is_some_and(|pick| pick.field == field)
                }
                _ => false,
            })
        };
        let columns = fields
            .into_iter()
            .filter_map(|field| position(field).map(|at| (field, at)));
        Self {
            rule,
            columns: columns.collect(),
            roles,
        }
    }
}

/// The member of a scope that a field lies in, which is the column that holds it.
fn member_of(schema: &Schema, field: FieldId) -> FieldId {
    let mut at = field;
    while let Some(parent) = schema.field(at).parent {
        if schema.field(parent).parent.is_none() {
            break;
        }
        at = parent;
    }
    at
}

/// A row's value of a series: of a structure, as variants are, the member that is there.
fn number_in(column: &Column, row: usize) -> Option<f64> {
    match &column.data {
        ColumnData::Struct { members, .. } => {
            members.iter().find_map(|member| number_in(member, row))
        }
        _ => number_of(column.value(row)).filter(|value| !value.is_nan()),
    }
}

/// A value as a number, if it is one.
pub(crate) fn number_of(value: Value<'_>) -> Option<f64> {
    match value {
        Value::Uint(value) | Value::Bits(value) => Some(value as f64),
        Value::Sint(value) => Some(value as f64),
        Value::Float(value) => Some(value),
        Value::Bool(value) => Some(f64::from(u8::from(value))),
        _ => None,
    }
}

/// A value as text, for names and labels; empty of what has none.
pub(crate) fn text_of(value: Value<'_>) -> String {
    match value {
        Value::Uint(value) | Value::Bits(value) => value.to_string(),
        Value::Sint(value) => value.to_string(),
        Value::Bool(value) => value.to_string(),
        Value::Float(value) => value.to_string(),
        Value::Text(text) => String::from_utf8_lossy(text).into_owned(),
        Value::Blob(bytes) => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
        Value::Missing | Value::Array(_) | Value::Compound => String::new(),
    }
}
