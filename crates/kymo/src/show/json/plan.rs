//! What is written around the values of a class, worked out once.

use kymo_model::{FieldId, Flag, Kind, Schema, Scope};
use kymo_text::{Line, Stamp};

use crate::show::labels::{LabelText, Render};
use crate::show::packet::leading;

/// How the fields of a schema are written, by [`FieldId`].
#[derive(Debug)]
pub(crate) struct Plan {
    pub(super) fields: Vec<FieldPlan>,
}

/// How a field is written.
#[derive(Debug)]
pub(super) struct FieldPlan {
    /// What comes before the value: comma, key, opening brace.
    pub(super) before: Stamp,
    /// Whether it is an element, which has a comma before it unless it is the first.
    pub(super) element: bool,
    pub(super) value: Value,
}

/// How a value is written.
#[derive(Debug)]
pub(super) enum Value {
    Usual,
    /// A floating point number of that many bits.
    Float(u32),
    /// An object with the value and its labels.
    Labeled(Box<LabelText<Labels>>),
    /// An object with the value and the names of the bits that are set.
    Flags(Box<[(u64, Stamp)]>),
}

/// Writes labels as what follows the value: `,"labels":["LABEL"]}`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Labels;

impl Render for Labels {
    fn render(&self, labels: &[&str], line: &mut Line) {
        line.push(b",\"labels\":[");
        for (position, label) in labels.iter().enumerate() {
            if position > 0 {
                line.push_byte(b',');
            }
            line.json_string(label.as_bytes());
        }
        line.push(b"]}");
    }
}

impl Plan {
    /// Plans all fields; `hidden` ones are never visited.
    pub(crate) fn new(schema: &Schema, hidden: &[bool]) -> Self {
        let leads = leading(schema, hidden);
        let plan = |(position, field): (usize, &kymo_model::Field)| {
            let mut before = Line::new();
            let mut element = false;
            match field.parent.map(|parent| schema.field(parent)) {
                None => {
                    before.push_byte(b',');
                    let scope = schema.scope_of(FieldId(position as u32));
                    key(scope.name(), &mut before);
                }
                Some(above) => match above.kind {
                    Kind::Array { .. } => element = true,
                    Kind::Struct => {
                        if !leads[position] {
                            before.push_byte(b',');
                        }
                        key(field.name.as_deref().unwrap_or_default(), &mut before);
                    }
                    _ => {}
                },
            }
            let value = value(&field.kind);
            before.push(match (&field.kind, &value) {
                (Kind::Struct, _) => b"{",
                (Kind::Array { .. }, _) => b"[",
                (_, Value::Labeled(_) | Value::Flags(_)) => b"{\"value\":",
                _ => b"",
            });
            FieldPlan {
                before: Stamp::new(before.as_bytes()),
                element,
                value,
            }
        };
        Self {
            fields: schema.fields().iter().enumerate().map(plan).collect(),
        }
    }

    /// Plans the fields of an event that are shown without scopes; what `payload` says comes
    /// before those of the payload. What a variant holds is a pair of the option's name and it.
    pub(crate) fn flat(schema: &Schema, payload: &[u8]) -> Self {
        let root = schema.root(Scope::Payload);
        let plan = |(position, field): (usize, &kymo_model::Field)| {
            let mut before = Line::new();
            if Some(FieldId(position as u32)) == root {
                before.push(payload);
            }
            let above = field.parent.map(|parent| &schema.field(parent).kind);
            match (&field.name, above) {
                (Some(name), Some(Kind::Variant)) => {
                    before.push_byte(b'[');
                    before.json_string(name.as_bytes());
                    before.push_byte(b',');
                }
                (Some(name), _) => {
                    before.push_byte(b',');
                    key(name, &mut before);
                }
                (None, _) => {}
            }
            let value = value(&field.kind);
            before.push(match (&field.kind, &value) {
                (Kind::Array { .. }, _) => b"[",
                (_, Value::Labeled(_)) => b"{\"value\":",
                _ => b"",
            });
            FieldPlan {
                before: Stamp::new(before.as_bytes()),
                element: matches!(above, Some(Kind::Array { .. })),
                value,
            }
        };
        Self {
            fields: schema.fields().iter().enumerate().map(plan).collect(),
        }
    }

    /// Size of a floating point number.
    #[inline]
    pub(crate) fn float_bits(&self, field: FieldId) -> u32 {
        match self.fields[field.index()].value {
            Value::Float(bits) => bits,
            _ => 64,
        }
    }

    /// Lets a field be written without anything before it but its opening brace.
    pub(crate) fn detach(&mut self, field: FieldId, kind: &Kind) {
        let before: &[u8] = match kind {
            Kind::Struct => b"{",
            Kind::Array { .. } => b"[",
            _ => b"",
        };
        self.fields[field.index()].before = Stamp::new(before);
    }
}

fn value(kind: &Kind) -> Value {
    match kind {
        Kind::Uint {
            labels: Some(labels),
            ..
        }
        | Kind::Sint {
            labels: Some(labels),
            ..
        } => Value::Labeled(Box::new(LabelText::new(labels, Labels))),
        Kind::BitMap { flags, .. } => Value::Flags(flags.iter().map(flag).collect()),
        Kind::Float { bits } => Value::Float(*bits),
        _ => Value::Usual,
    }
}

fn flag(flag: &Flag) -> (u64, Stamp) {
    let mut text = Line::new();
    text.json_string(flag.name.as_bytes());
    (flag.bits(), Stamp::new(text.as_bytes()))
}

/// Appends `"KEY":`.
pub(super) fn key(text: &str, line: &mut Line) {
    line.json_string(text.as_bytes());
    line.push_byte(b':');
}
