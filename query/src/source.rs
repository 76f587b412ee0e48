//! The recordings that are asked, and the tables of their events.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};

use datafusion::arrow::array::{ArrayRef, StringArray};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::{DataFusionError, Result};
use kymo::AnyRecording;
use kymo::filter::{Filter, Glob};
use kymo::pipeline::Window;
use kymo::timeline::{Batch, Columns, NoticeKind, Query, Timeline};
use kymo_arrow::{class_name, data_type, time_type};
use kymo_model::batch::{DataType as ColumnDataType, all_columns};
use kymo_model::{EntryKind, EventClass, FaultCode, FaultReport, Recording, Scope, TrackRule};

/// The queried recordings. Those of samples are separate: their rows are not events.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) events: Timeline,
    pub(crate) samples: Timeline,
    /// Threads to work with.
    pub(crate) threads: usize,
    /// Damage that was met while rows were read.
    pub(crate) damage: Arc<Damage>,
    /// Which events are wanted at all.
    pub(crate) wanted: kymo::filter::Query,
    /// From when to when rows are wanted at all.
    pub(crate) range: Window,
    /// Whether losses count as damage.
    pub(crate) is_strict: bool,
}

/// Damage that was met; each is kept once.
#[derive(Debug, Default)]
pub(crate) struct Damage(Mutex<DamageTexts>);

#[derive(Debug, Default)]
struct DamageTexts {
    known: HashSet<String>,
    new: Vec<String>,
    /// What cannot be read.
    unreadable: Option<String>,
}

impl Damage {
    /// Keeps a fault, to be reported later.
    pub(crate) fn fault(&self, fault: &FaultReport) {
        let text = fault.to_string();
        match fault.code {
            FaultCode::Unreadable => self.unreadable(text),
            _ => self.met(text),
        }
    }

    /// Keeps that something cannot be read: then an answer is not one.
    pub(crate) fn unreadable(&self, text: String) {
        if let Ok(mut damage) = self.0.lock() {
            damage.unreadable.get_or_insert(text);
        }
    }

    /// What could not be read first since this was asked the last time.
    pub(crate) fn take_unreadable(&self) -> Option<String> {
        self.0.lock().ok()?.unreadable.take()
    }

    /// Keeps damage, to be reported later.
    pub(crate) fn met(&self, text: String) {
        if let Ok(mut damage) = self.0.lock()
            && damage.known.len() < 10_000
            && damage.known.insert(text.clone())
        {
            damage.new.push(text);
        }
    }

    /// The damage that was met since it was asked the last time.
    pub(crate) fn take(&self) -> Vec<String> {
        let damage = self.0.lock();
        damage.map_or_else(|_| Vec::new(), |mut damage| std::mem::take(&mut damage.new))
    }
}

impl Source {
    pub(crate) fn new(recordings: Vec<AnyRecording>, threads: usize) -> Self {
        let has_samples = |recording: &AnyRecording| {
            (0..recording.streams().len())
                .any(|stream| recording.entry_kind(stream) == EntryKind::Sample)
        };
        let (samples, events) = recordings.into_iter().partition(has_samples);
        Self {
            events: Timeline::new(events),
            samples: Timeline::new(samples),
            threads,
            damage: Arc::default(),
            wanted: kymo::filter::Query::default(),
            range: Window::ALL,
            is_strict: false,
        }
    }

    /// The same with events that are wanted alone; whether losses count as damage.
    pub(crate) fn with_selection(
        self,
        wanted: kymo::filter::Query,
        range: Window,
        is_strict: bool,
    ) -> Self {
        Self {
            wanted,
            range,
            is_strict,
            ..self
        }
    }

    /// Keeps the damage that was met before the rows of a batch.
    pub(crate) fn met(&self, batch: &Batch) {
        for notice in batch.notices() {
            if let NoticeKind::Fault(fault) = &notice.kind {
                self.damage.fault(fault);
            }
        }
    }

    /// The names of the event classes, in the order in which they are first met.
    pub(crate) fn class_names(&self) -> Vec<Arc<str>> {
        let mut known = HashSet::new();
        let recordings = self.events.recordings().iter();
        let classes = recordings.flat_map(|recording| recording.event_classes());
        let names = classes
            .filter(|class| self.wanted.names_class(class))
            .map(class_name);
        names
            .filter(|name| known.insert(Arc::clone(name)))
            .collect()
    }
}

/// A column that every event has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Own {
    Timestamp,
    Ticks,
    Stream,
    Track,
    Recording,
    Event,
}

/// A column of a table of events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum EventColumn {
    Own(Own),
    /// One with this name in batches.
    Field(Arc<str>),
    /// A field of packets.
    Packet(Arc<str>),
}

/// The events of one class, or of all.
#[derive(Debug)]
pub(crate) struct EventTable {
    pub(crate) source: Arc<Source>,
    /// The name of the class; `None` for all.
    pub(crate) class: Option<Arc<str>>,
    pub(crate) columns: Vec<EventColumn>,
    pub(crate) schema: SchemaRef,
    /// By recording and class, the position of its name among `names`; `None` for classes of other tables.
    pub(crate) classes: Vec<Vec<Option<u32>>>,
    pub(crate) names: ArrayRef,
    pub(crate) paths: ArrayRef,
    /// By recording, the position of its first stream's name among `tracks`.
    pub(crate) first_tracks: Vec<u32>,
    pub(crate) tracks: ArrayRef,
    /// Whether each stream is one track.
    pub(crate) is_plain: bool,
    /// Whether rows of each stream have times.
    pub(crate) has_clocks: bool,
    /// Whether a class has no name, by which it could be chosen.
    pub(crate) has_nameless: bool,
    /// Whether none of these events can meet what is asked of all events.
    pub(crate) is_empty: bool,
    /// What the values of a field are in all classes that have it.
    pub(crate) kinds: HashMap<Arc<str>, FieldKind>,
}

/// What values are, as far as conditions care.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldKind {
    Integer,
    Text,
    Other,
}

impl FieldKind {
    fn new(data_type: &ColumnDataType) -> Self {
        use ColumnDataType::{Int8, Int16, Int32, Int64, Text, Uint8, Uint16, Uint32, Uint64};
        match data_type {
            Int8 | Int16 | Int32 | Int64 | Uint8 | Uint16 | Uint32 | Uint64 => Self::Integer,
            Text => Self::Text,
            _ => Self::Other,
        }
    }
}

impl EventTable {
    /// # Errors
    ///
    /// The columns of packets cannot be found.
    pub(crate) fn new(source: &Arc<Source>, class: Option<Arc<str>>) -> Result<Self> {
        let recordings = source.events.recordings();
        let mut names: Vec<Arc<str>> = Vec::new();
        let mut numbers: HashMap<Arc<str>, u32> = HashMap::new();
        let mut has_nameless = false;
        let mut fields = Vec::new();
        let mut kinds = HashMap::new();
        let mut packet_fields = Vec::new();
        let mut streams_of_class = Vec::new();
        let mut is_plain = true;
        let mut number = |info: &EventClass| {
            let name = class_name(info);
            if !source.wanted.names_class(info) {
                return None;
            }
            if class.as_ref().is_some_and(|wanted| *wanted != name) {
                return None;
            }
            let next = names.len() as u32;
            Some(*numbers.entry(Arc::clone(&name)).or_insert_with(|| {
                names.push(name);
                next
            }))
        };
        let mut classes = Vec::new();
        for recording in recordings {
            let mut of_recording = Vec::new();
            for (position, info) in recording.event_classes().iter().enumerate() {
                let number = number(info);
                of_recording.push(number);
                if number.is_none() {
                    continue;
                }
                has_nameless |= info.name.is_none();
                is_plain &= recording.track_rule(position) == TrackRule::Stream;
                for column in all_columns(&info.schema) {
                    let name = column.column.name;
                    let kind = FieldKind::new(&column.column.data_type);
                    match kinds.get_mut(&name) {
                        Some(known) if *known != kind => *known = FieldKind::Other,
                        Some(_) => {}
                        None => {
                            kinds.insert(Arc::clone(&name), kind);
                            fields.push(name);
                        }
                    }
                }
            }
            let has_any = of_recording.iter().any(Option::is_some);
            classes.push(of_recording);
            for (stream, info) in recording.streams().iter().enumerate().filter(|_| has_any) {
                streams_of_class.push(info.clock.is_some());
                let schema = &info.packet_schema;
                let Some(root) = schema.root(Scope::PacketContext) else {
                    continue;
                };
                for &field in &schema.field(root).children {
                    if let Some(name) = &schema.field(field).name
                        && !recording.is_packet_bookkeeping(stream, field)
                        && !name.contains('`')
                        && schema.field(field).children.is_empty()
                    {
                        packet_fields.push(Arc::<str>::from(&**name));
                    }
                }
            }
        }
        let mut packets: Vec<Arc<str>> = Vec::new();
        for name in packet_fields {
            if !kinds.contains_key(&name) && !packets.contains(&name) {
                packets.push(name);
            }
        }
        let (mut tracks, mut first_tracks) = (Vec::new(), Vec::new());
        for recording in recordings {
            first_tracks.push(tracks.len() as u32);
            for (position, info) in recording.streams().iter().enumerate() {
                let id = info.id.unwrap_or(position as u64);
                tracks.push(format!("stream {}.{id}", info.class));
            }
        }
        let paths = recordings
            .iter()
            .map(|recording| recording.path().to_string_lossy().into_owned());
        let paths: StringArray = paths.map(Some).collect();
        let mut table = Self {
            source: Arc::clone(source),
            class,
            columns: Vec::new(),
            schema: Arc::new(Schema::empty()),
            classes,
            names: Arc::new(
                names
                    .iter()
                    .map(|name| Some(&**name))
                    .collect::<StringArray>(),
            ),
            paths: Arc::new(paths),
            first_tracks,
            tracks: Arc::new(tracks.into_iter().map(Some).collect::<StringArray>()),
            is_plain,
            has_clocks: streams_of_class.iter().all(|has_clock| *has_clock),
            has_nameless,
            is_empty: false,
            kinds,
        };
        // A field that other classes have alone.
        let filter = table.query(&[], &[]).filter;
        if filter.condition.is_some() && Filter::new(&filter, &[], recordings).is_err() {
            table.is_empty = true;
        }
        table.add_columns(fields, packets)?;
        Ok(table)
    }

    fn add_columns(&mut self, fields: Vec<Arc<str>>, packets: Vec<Arc<str>>) -> Result<()> {
        let mut own = vec![
            (
                "timestamp",
                Own::Timestamp,
                time_type(self.source.events.recordings()),
            ),
            ("ticks", Own::Ticks, DataType::UInt64),
            ("stream", Own::Stream, DataType::UInt32),
            ("track", Own::Track, dictionary()),
            ("recording", Own::Recording, dictionary()),
        ];
        if self.class.is_none() {
            own.push(("event", Own::Event, dictionary()));
        }
        let mut schema = Vec::new();
        for (name, column, data_type) in own {
            let mut name = name.to_owned();
            while fields.iter().chain(&packets).any(|field| **field == *name) {
                name.insert(0, '_');
            }
            // Rows without a time are put last, so that order is what SQL takes it for.
            schema.push(Field::new(name, data_type, true));
            self.columns.push(EventColumn::Own(column));
        }
        let query = self.query(&fields, &packets);
        let types = self.source.events.schema(&query).map_err(external)?;
        let packets = packets.into_iter().collect::<HashSet<_>>();
        for column in types.iter() {
            schema.push(Field::new(
                &*column.name,
                data_type(&column.data_type),
                true,
            ));
            let name = Arc::clone(&column.name);
            self.columns.push(match packets.contains(&name) {
                true => EventColumn::Packet(name),
                false => EventColumn::Field(name),
            });
        }
        self.schema = Arc::new(Schema::new(schema));
        Ok(())
    }

    /// Asks for columns of this table.
    pub(crate) fn query(&self, fields: &[Arc<str>], packets: &[Arc<str>]) -> Query {
        let mut query = Query::default();
        query.columns = match fields.is_empty() && packets.is_empty() {
            true => Columns::None,
            false => Columns::Chosen {
                columns: Arc::new(fields.iter().cloned().collect()),
                packet_fields: packets.into(),
            },
        };
        query.range = self.source.range;
        query.filter = self.source.wanted.clone();
        if let Some(class) = &self.class {
            query.filter.events = vec![Glob::new(&literal(class))];
            // Classes without a name are called by their numbers here.
            if self.has_nameless {
                query.filter.events.push(Glob::new("<unknown>"));
            }
        }
        query
    }

    /// The name of the table.
    pub(crate) fn name(&self) -> &str {
        self.class.as_deref().unwrap_or("events")
    }
}

/// A pattern that only this name matches.
fn literal(name: &str) -> String {
    let mut pattern = String::new();
    for letter in name.chars() {
        if matches!(letter, '*' | '?' | '[' | ']' | '\\') {
            pattern.push('\\');
        }
        pattern.push(letter);
    }
    pattern
}

/// The type of texts of which there are few.
pub(crate) fn dictionary() -> DataType {
    DataType::Dictionary(Box::new(DataType::UInt32), Box::new(DataType::Utf8))
}

/// An error that did not come from DataFusion.
pub(crate) fn external(error: impl std::error::Error + Send + Sync + 'static) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}
