//! Names that are told once and then called by number.

use std::collections::HashMap;
use std::sync::Arc;

use kymo_model::{FieldId, Kind, Recording, Schema, Scope};
use kymo_text::Line;

use super::{message, proto};
use crate::AnyRecording;
use crate::filter::name_of;
use crate::show::packet::PacketFields;

/// Numbers of names, from 1 on; 0 is that of none.
#[derive(Debug, Default)]
struct Numbers {
    of: HashMap<Arc<str>, u64>,
    names: Vec<Arc<str>>,
}

impl Numbers {
    fn number(&mut self, name: &str) -> u64 {
        if let Some(&number) = self.of.get(name) {
            return number;
        }
        let name: Arc<str> = name.into();
        self.names.push(Arc::clone(&name));
        let number = self.names.len() as u64;
        self.of.insert(name, number);
        number
    }
}

/// The names of all events and fields of some recordings.
#[derive(Debug)]
pub(super) struct Names {
    events: Numbers,
    fields: Numbers,
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

impl Names {
    pub(super) fn new(of: &[AnyRecording]) -> Self {
        let (mut events, mut fields) = (Numbers::default(), Numbers::default());
        let mut classes = Vec::with_capacity(of.len());
        let mut packets: Vec<Vec<Arc<[u64]>>> = Vec::with_capacity(of.len());
        for recording in of {
            let known = recording.event_classes().iter();
            let known = known.map(|class| {
                let scopes = !recording.is_log();
                let of_fields = numbers(&class.schema, scopes, |_| false, &mut fields);
                (events.number(name_of(class)), of_fields)
            });
            classes.push(known.collect());
            // The streams of a class have the same fields.
            let mut shared: HashMap<u64, Arc<[u64]>> = HashMap::new();
            let streams = recording.streams().iter().enumerate();
            let streams = streams.map(|(position, stream)| {
                let of_fields = shared.entry(stream.class).or_insert_with(|| {
                    let PacketFields { schema, hidden, .. } = PacketFields::of(recording, position);
                    numbers(&schema, true, |field| hidden[field], &mut fields)
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
            events,
            fields,
            classes,
            packets,
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
    names: &mut Numbers,
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

/// Which names have been told.
#[derive(Debug)]
pub(super) struct Told {
    names: Arc<Names>,
    events: Vec<bool>,
    fields: Vec<bool>,
    /// By recording, for each class and each stream whether all its names have been.
    classes: Vec<Vec<bool>>,
    streams: Vec<Vec<bool>>,
    interned: Line,
}

impl Told {
    pub(super) fn new(names: Arc<Names>) -> Self {
        let told = |count: usize| vec![false; count];
        let classes = names.classes.iter();
        let streams = names.packets.iter();
        Self {
            events: told(names.events.names.len()),
            fields: told(names.fields.names.len()),
            classes: classes.map(|classes| told(classes.len())).collect(),
            streams: streams.map(|streams| told(streams.len())).collect(),
            names,
            interned: Line::new(),
        }
    }

    /// Gets ready what an event needs [interned](Self::interned): mostly nothing.
    #[inline]
    pub(super) fn before(&mut self, recording: usize, stream: usize, class: usize) {
        self.interned.clear();
        let class_told = std::mem::replace(&mut self.classes[recording][class], true);
        let stream_told = std::mem::replace(&mut self.streams[recording][stream], true);
        if !class_told || !stream_told {
            self.tell(recording, stream, class);
        }
    }

    /// The interned data that the event needs before it.
    pub(super) fn interned(&self) -> &[u8] {
        self.interned.as_bytes()
    }

    #[cold]
    fn tell(&mut self, recording: usize, stream: usize, class: usize) {
        let names = &self.names;
        let out = &mut self.interned;
        let event = names.event(recording, class);
        let fields = names.fields(recording, class).iter();
        let fields = fields.chain(names.packet_fields(recording, stream));
        let of_all = [
            &names.value,
            &names.labels,
            &names.flags,
            &names.event_class,
            &names.end,
        ];
        let fields = fields.chain(of_all);
        intern(
            message::EVENT_NAMES,
            event,
            &names.events,
            &mut self.events,
            out,
        );
        for &number in fields {
            let told = &mut self.fields;
            intern(message::ANNOTATION_NAMES, number, &names.fields, told, out);
        }
    }
}

/// Appends a name unless it has been told.
fn intern(field: u32, number: u64, names: &Numbers, told: &mut [bool], out: &mut Line) {
    let Some(place) = (number as usize).checked_sub(1) else {
        return;
    };
    if std::mem::replace(&mut told[place], true) {
        return;
    }
    let at = proto::begin(field, out);
    proto::uint(message::IID, number, out);
    proto::bytes(message::INTERNED_NAME, names.names[place].as_bytes(), out);
    proto::end(at, out);
}
