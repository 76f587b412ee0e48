//! Classes of events: their fields, and how their texts are made.

use std::ops::Range;
use std::sync::Arc;

use kymo_model::{Base, EventClass, Kind, Schema, Scope, TrackRule};

use crate::definitions::{InFile, Reference};
use crate::format::{Program, Shape};

/// Number of the class of codes without a class of their own: no code has this number.
pub(super) const OTHER_CODES: u64 = 1 << 32;

/// The fields of the events of all classes.
pub(crate) mod field {
    use kymo_model::FieldId;

    /// The common context.
    pub(crate) const CONTEXT: FieldId = FieldId(0);
    pub(crate) const TRACK: FieldId = FieldId(1);
    pub(crate) const TRACK_NAME: FieldId = FieldId(2);
    pub(crate) const PAYLOAD: FieldId = FieldId(3);
    pub(in crate::recording) const DATUM: FieldId = FieldId(4);
    pub(in crate::recording) const TEXT: FieldId = FieldId(5);
    pub(in crate::recording) const CODE: FieldId = FieldId(6);
}

/// How the tracks of all events are found.
pub(crate) const TRACKS: TrackRule = TrackRule::Field {
    key: field::TRACK,
    name: Some(field::TRACK_NAME),
};

const WORD: Kind = Kind::Uint {
    bits: 32,
    base: Base::Decimal,
    labels: None,
};

/// A schema with what the events of all classes have: the track, and an empty payload.
pub(crate) fn schema() -> Schema {
    let mut schema = Schema::new();
    let context = schema.push_root(Scope::CommonContext, Kind::Struct);
    schema.push_child(context, Some("track".into()), WORD);
    schema.push_child(context, Some("track_name".into()), Kind::Text);
    schema.push_root(Scope::Payload, Kind::Struct);
    schema
}

/// The class of the events with a code.
pub(super) fn event_class(code: u64, name: Arc<str>) -> EventClass {
    let mut schema = schema();
    schema.push_child(field::PAYLOAD, Some("datum".into()), WORD);
    schema.push_child(field::PAYLOAD, Some("text".into()), Kind::Text);
    if code == OTHER_CODES {
        schema.push_child(field::PAYLOAD, Some("code".into()), WORD);
    }
    EventClass {
        id: code,
        stream_class: 0,
        name: Some(name),
        log_level: None,
        emf_uri: None,
        schema,
    }
}

/// How the datum of a class becomes text.
#[derive(Clone, Debug)]
pub(super) enum DatumText {
    /// There is none.
    Empty,
    /// Always the same, which is here.
    Constant(Range<usize>),
    /// The string that the datum refers to.
    String,
    /// By a format, which is here.
    Made {
        format: Range<usize>,
        program: Option<Program>,
        strings: bool,
    },
    /// The format cannot be found.
    Bad(u32),
}

impl DatumText {
    pub(super) fn new(datum: &Reference, names: &InFile<'_>) -> Self {
        match datum {
            Reference::None => Self::Empty,
            Reference::Bad(offset) => Self::Bad(*offset),
            Reference::At(place) => {
                let text = names.text(place);
                let place = place.start..place.start + text.len();
                match Shape::of(text) {
                    Shape::Constant => Self::Constant(place),
                    Shape::String => Self::String,
                    Shape::Made { strings } => Self::Made {
                        format: place,
                        program: Program::new(text),
                        strings,
                    },
                }
            }
        }
    }

    /// Whether it shows strings of the table.
    pub(super) fn has_strings(&self) -> bool {
        matches!(self, Self::String | Self::Made { strings: true, .. })
    }
}
