//! Fields of events by their names, for whoever wants values and no condition.
//!
//! A [`FieldName`] is written as in a [condition](super): `len`, `a.b[2]`,
//! `packet_context.cpu_id`, `event.name`. [`Fields`] binds names to the event classes of
//! recordings once; each thread has a [`FieldReader`] to read the values of events.

use std::sync::Arc;

use kymo_model::{Chunk, Event, EventClass, Fault, Recording, Schema, Selection, Value};

use super::error::FilterError;
use super::eval::{Facts, Source};
use super::glob::Glob;
use super::names::{Picks, Surroundings, fields, known_names, property};
use super::parser;
use super::suggest::nearest;
use super::{PacketPlan, name_of, packet_plans};

/// The name of a field.
#[derive(Clone, Debug)]
pub struct FieldName {
    text: String,
    parsed: parser::FieldName,
}

impl FieldName {
    /// Reads a name.
    ///
    /// # Errors
    ///
    /// What is wrong in it.
    pub fn parse(text: &str) -> Result<Self, FilterError> {
        Ok(Self {
            parsed: parser::field_name(text)?,
            text: text.to_string(),
        })
    }

    /// The name of a member that has no odd characters.
    pub(crate) fn of_member(name: &str) -> Self {
        Self {
            text: name.to_string(),
            parsed: parser::FieldName {
                steps: vec![parser::Step::Name(name.to_string())],
                range: 0..name.len(),
            },
        }
    }

    /// The name as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// A field that is wanted.
#[derive(Clone, Debug)]
pub struct WantedField {
    /// Its name.
    pub name: FieldName,
    /// Of which events: those whose name matches one of these patterns; of all, if there is none.
    pub events: Vec<Glob>,
}

impl WantedField {
    fn wants(&self, class: &EventClass) -> bool {
        let name = name_of(class).as_bytes();
        self.events.is_empty() || self.events.iter().any(|glob| glob.matches(name))
    }
}

/// Fields, bound to the event classes of some recordings.
#[derive(Debug)]
pub struct Fields {
    recordings: Vec<RecordingPlan>,
}

#[derive(Debug)]
struct RecordingPlan {
    classes: Vec<ClassPlan>,
    packets: Vec<PacketPlan>,
    /// For each stream the position of its plan in `packets`.
    packet_of_stream: Vec<usize>,
}

/// What is read of the events of one class.
#[derive(Debug)]
struct ClassPlan {
    /// Of each field that is wanted where it may be: in several places if it is within the
    /// options of a variant, in none if the class has no such field.
    sources: Vec<Vec<Source>>,
    picks: Vec<kymo_model::Pick>,
}

impl Fields {
    /// Binds fields.
    ///
    /// # Errors
    ///
    /// The position of a field that none of its events has, and what may have been meant.
    pub fn new<R: Recording>(
        wanted: &[WantedField],
        recordings: &[R],
    ) -> Result<Self, (usize, FilterError)> {
        let nothing = Schema::new();
        let mut found = vec![false; wanted.len()];
        let mut arrays = vec![None; wanted.len()];
        let mut plans = Vec::with_capacity(recordings.len());
        for recording in recordings {
            let (mut packets, packet_of_stream) = packet_plans(recording);
            let classes = recording.event_classes().iter().map(|class| {
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
                let bind = |(position, field): (usize, &WantedField)| {
                    if !field.wants(class) {
                        return Vec::new();
                    }
                    let name = &field.name.parsed;
                    let bound = property(name, of)
                        .unwrap_or_else(|| fields(name, of, &mut picks, &mut arrays[position]));
                    found[position] |= !bound.is_empty();
                    bound
                        .into_iter()
                        .flatten()
                        .map(|bound| bound.source)
                        .collect()
                };
                let sources = wanted.iter().enumerate().map(bind).collect();
                if let Some(packet) = packet {
                    packet.picks = picks.packet;
                }
                ClassPlan {
                    sources,
                    picks: picks.event,
                }
            });
            plans.push(RecordingPlan {
                classes: classes.collect(),
                packets,
                packet_of_stream,
            });
        }
        let Some(missing) = found.iter().position(|found| !found) else {
            return Ok(Self { recordings: plans });
        };
        let help = arrays.swap_remove(missing);
        let error = not_found(&wanted[missing], &plans, recordings, help);
        Err((missing, error))
    }

    /// Whether the events of a class may have a field.
    pub fn has(&self, recording: usize, class: usize, field: usize) -> bool {
        let class = self
            .recordings
            .get(recording)
            .and_then(|plan| plan.classes.get(class));
        class.is_some_and(|class| !class.sources[field].is_empty())
    }

    /// What one thread needs to read them.
    pub fn reader(self: &Arc<Self>) -> FieldReader {
        let selections = self.recordings.iter();
        FieldReader {
            selections: selections
                .map(|plan| vec![None; plan.classes.len()])
                .collect(),
            of: Arc::clone(self),
            recording: 0,
            class: 0,
            packet: Selection::default(),
            packet_of: None,
            time: None,
            stream_id: None,
            stream_name: Arc::from(""),
        }
    }
}

/// The error that no event has a field.
fn not_found<R: Recording>(
    field: &WantedField,
    plans: &[RecordingPlan],
    recordings: &[R],
    help: Option<String>,
) -> FilterError {
    let nothing = Schema::new();
    let nobody = match field.events.as_slice() {
        [] => "no event has".to_string(),
        events => {
            let patterns: Vec<_> = events.iter().map(Glob::pattern).collect();
            format!("no event `{}` has", patterns.join("` or `"))
        }
    };
    let name = field.name.text();
    let message = format!("{nobody} a field `{name}`");
    let error = FilterError::new(name, 0..name.len(), message).label("unknown field");
    let classes = plans.iter().zip(recordings).flat_map(|(plan, recording)| {
        let classes = recording.event_classes().iter();
        let classes = classes.filter(|class| field.wants(class));
        let nothing = &nothing;
        classes.map(move |class| Surroundings {
            class,
            packet: plan
                .packets
                .iter()
                .find(|packet| packet.stream_class == class.stream_class)
                .map_or(nothing, |packet| &*packet.schema),
            trace: recording.name(),
        })
    });
    let help = help.or_else(|| {
        let known = known_names(classes);
        nearest(name, known.iter().map(String::as_str))
            .map(|known| format!("there is a field `{known}`"))
    });
    match help {
        Some(help) => error.help(help),
        None => error,
    }
}

/// Reads [`Fields`] in one thread, chunk by chunk.
#[derive(Debug)]
pub struct FieldReader {
    of: Arc<Fields>,
    /// By recording and event class, made when first needed.
    selections: Vec<Vec<Option<Selection>>>,
    recording: usize,
    class: usize,
    packet: Selection,
    /// Recording and packet plan that `packet` is of.
    packet_of: Option<(usize, usize)>,
    time: Option<i64>,
    stream_id: Option<u64>,
    stream_name: Arc<str>,
}

impl FieldReader {
    /// A chunk begins: the events that follow are of it.
    ///
    /// # Errors
    ///
    /// A fault in the packet header or context.
    pub fn chunk<R: Recording>(
        &mut self,
        recording: usize,
        of: &R,
        chunk: &Chunk,
    ) -> Result<(), Fault> {
        let stream = &of.streams()[chunk.stream];
        self.recording = recording;
        self.stream_id = stream.id;
        self.stream_name = Arc::clone(&stream.name);
        let Some(plan) = self.of.recordings.get(recording) else {
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

    /// Reads the fields of an event of the chunk.
    ///
    /// # Errors
    ///
    /// The fault at which decoding of the event stopped.
    #[inline]
    pub fn event<E: Event>(&mut self, event: &E) -> Result<(), Fault> {
        self.class = event.class_index();
        self.time = event.timestamp().map(kymo_time::Timestamp::as_nanos);
        let plan = &self.of.recordings[self.recording].classes[self.class];
        let selection = self.selections[self.recording][self.class].get_or_insert_with(|| {
            Selection::new(&event.class().schema, plan.picks.iter().cloned())
        });
        selection.clear();
        match selection.is_empty() {
            true => Ok(()),
            false => event.visit(selection),
        }
    }

    /// The value of a field, by its position among those that are wanted, in the event that was
    /// read last.
    pub fn value(&self, field: usize) -> Value<'_> {
        let plan = &self.of.recordings[self.recording].classes[self.class];
        let Some(selection) = &self.selections[self.recording][self.class] else {
            return Value::Missing;
        };
        let facts = Facts {
            event: selection,
            packet: &self.packet,
            time: self.time,
            stream_id: self.stream_id,
            stream_name: &self.stream_name,
        };
        let values = plan.sources[field].iter().map(|source| facts.value(source));
        let mut there = values.filter(|value| *value != Value::Missing);
        there.next().unwrap_or(Value::Missing)
    }
}
