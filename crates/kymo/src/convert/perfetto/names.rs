//! The names of events and fields.

use std::collections::HashMap;
use std::sync::Arc;

use kymo_model::{FieldId, Kind, Recording, Schema, Scope};
use kymo_perfetto::{NameTable, Names, PerfettoWriter};

use crate::AnyRecording;
use crate::filter::name_of;
use crate::show::Message;
use crate::show::packet::PacketFields;

/// The names of all events and fields of some recordings.
#[derive(Debug)]
pub(super) struct FieldNames {
    /// Those that are written.
    pub(super) names: Arc<Names>,
    /// By recording and class, the number of its name and those of its fields.
    classes: Vec<Vec<(u64, Arc<[u64]>)>>,
    /// By recording and stream, the numbers of the packets' fields.
    packets: Vec<Vec<Arc<[u64]>>>,
    /// Numbers of the members of what an enumeration or a bit map is written as.
    pub(super) value: u64,
    pub(super) labels: u64,
    pub(super) flags: u64,
    /// That of the number of an event class, which events of logs have.
    pub(super) event_class: u64,
    /// That of the name of an event that ends a slice.
    pub(super) end: u64,
}

impl FieldNames {
    pub(super) fn new(recordings: &[AnyRecording]) -> Self {
        let mut names = Names::default();
        let (events, fields) = (&mut names.events, &mut names.annotations);
        let mut classes = Vec::with_capacity(recordings.len());
        let mut packets: Vec<Vec<Arc<[u64]>>> = Vec::with_capacity(recordings.len());
        for recording in recordings {
            let known = recording.event_classes().iter();
            let known = known.map(|class| {
                let scopes = !recording.is_log();
                let of_fields = numbers(&class.schema, scopes, |_| false, fields);
                (events.number(name_of(class)), of_fields)
            });
            classes.push(known.collect());
            // The streams of a class have the same fields.
            let mut shared: HashMap<u64, Arc<[u64]>> = HashMap::new();
            let streams = recording.streams().iter().enumerate();
            let streams = streams.map(|(position, stream)| {
                let of_fields = shared.entry(stream.class).or_insert_with(|| {
                    let PacketFields { schema, hidden, .. } = PacketFields::of(recording, position);
                    numbers(&schema, true, |field| hidden[field], fields)
                });
                Arc::clone(of_fields)
            });
            packets.push(streams.collect());
        }
        Self {
            value: fields.number("value"),
            labels: fields.number("labels"),
            flags: fields.number("flags"),
            event_class: fields.number("event_class"),
            end: fields.number("end"),
            classes,
            packets,
            names: Arc::new(names),
        }
    }

    /// The number of the name of an event class.
    pub(super) fn event(&self, recording: usize, class: usize) -> u64 {
        self.classes[recording][class].0
    }

    /// The numbers of the names of its fields.
    pub(super) fn fields(&self, recording: usize, class: usize) -> &[u64] {
        &self.classes[recording][class].1
    }

    /// The numbers of the names of the fields of a stream's packets.
    pub(super) fn packet_fields(&self, recording: usize, stream: usize) -> &[u64] {
        &self.packets[recording][stream]
    }
}

/// The number of the name under which each field is written; 0 of what is written under none: the
/// roots that are structures, elements, and what is not written at all, headers of events above
/// all. Without `scopes`, these are not written before names.
fn numbers(
    schema: &Schema,
    scopes: bool,
    is_hidden: impl Fn(usize) -> bool,
    names: &mut NameTable,
) -> Arc<[u64]> {
    let mut numbers: Vec<u64> = Vec::with_capacity(schema.fields().len());
    for (position, field) in schema.fields().iter().enumerate() {
        let id = FieldId(position as u32);
        let in_header = schema.scope_of(id) == Scope::EventHeader;
        let number = match field.parent {
            _ if in_header || is_hidden(position) => 0,
            None if field.kind == Kind::Struct => 0,
            None => names.number(schema.scope_of(id).name()),
            Some(parent) => match schema.field(parent).kind {
                Kind::Array { .. } => 0,
                // What they hold takes their place.
                Kind::Optional | Kind::Variant => numbers[parent.index()],
                _ => {
                    let name = field.name.as_deref().unwrap_or_default();
                    match scope_before(schema, parent).filter(|_| scopes) {
                        Some(scope) => names.number(&format!("{}.{name}", scope.name())),
                        None => names.number(name),
                    }
                }
            },
        };
        numbers.push(number);
    }
    numbers.into()
}

/// The scope that is written before the names of a field's members: where it is the root of another
/// scope than the payload.
fn scope_before(schema: &Schema, field: FieldId) -> Option<Scope> {
    let is_root = schema.field(field).parent.is_none();
    let scope = is_root.then(|| schema.scope_of(field))?;
    (scope != Scope::Payload).then_some(scope)
}

/// Which names events have had with them.
#[derive(Debug)]
pub(super) struct Announced {
    names: Arc<FieldNames>,
    /// By recording, for each class and each stream whether all its names were.
    classes: Vec<Vec<bool>>,
    streams: Vec<Vec<bool>>,
}

impl Announced {
    pub(super) fn new(names: Arc<FieldNames>) -> Self {
        let none = |count: usize| vec![false; count];
        let classes = names.classes.iter();
        let streams = names.packets.iter();
        Self {
            classes: classes.map(|classes| none(classes.len())).collect(),
            streams: streams.map(|streams| none(streams.len())).collect(),
            names,
        }
    }

    /// Lets the next event have the names with it that it needs: mostly none.
    #[inline]
    pub(super) fn before(&mut self, message: &Message, writer: &mut PerfettoWriter) {
        let (recording, stream, class) = (message.recording, message.stream, message.class);
        let class_done = std::mem::replace(&mut self.classes[recording][class], true);
        let stream_done = std::mem::replace(&mut self.streams[recording][stream], true);
        if class_done && stream_done {
            return;
        }
        let names = &self.names;
        writer.announce_event(names.event(recording, class));
        let fields = names.fields(recording, class).iter();
        let fields = fields.chain(names.packet_fields(recording, stream));
        let of_all = [
            &names.value,
            &names.labels,
            &names.flags,
            &names.event_class,
            &names.end,
        ];
        for &number in fields.chain(of_all) {
            writer.announce_annotation(number);
        }
    }
}
