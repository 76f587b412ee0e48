//! Writes the fields of events as annotations.

use kymo_model::{FieldId, Flag, Kind, Schema, Visitor, Wide};
use kymo_perfetto::{Annotation, AnnotationKind, AnnotationOf};
use kymo_text::Line;

use super::names::FieldNames;
use crate::convert::losses::{Loss, Losses};
use crate::show::json;
use crate::show::labels::{LabelText, Render};

/// How the fields of a schema are written, by [`FieldId`].
#[derive(Debug)]
pub(super) struct Plan {
    fields: Vec<FieldPlan>,
}

#[derive(Debug)]
struct FieldPlan {
    annotation: Annotation,
    /// What it is in.
    container: AnnotationOf,
    value: Value,
}

/// How a value is written.
#[derive(Debug)]
enum Value {
    Usual,
    /// The root of a scope, whose members are written as if they were the event's.
    Root,
    /// A message with the value and its labels.
    Labeled(Box<LabelText<Labels>>),
    /// A message with the value and the names of the bits that are set.
    Flags(Box<[Flag]>),
}

/// Writes labels as an entry of the message that holds the value.
#[derive(Clone, Copy, Debug)]
struct Labels {
    name: u64,
}

impl Render for Labels {
    fn render(&self, labels: &[&str], line: &mut Line) {
        Annotation::texts(self.name, labels.iter().copied(), line);
    }
}

impl Plan {
    /// Plans all fields; `numbers` are those of their names.
    pub(super) fn new(schema: &Schema, numbers: &[u64], names: &FieldNames) -> Self {
        let mut fields: Vec<FieldPlan> = Vec::with_capacity(schema.fields().len());
        for (field, &number) in schema.fields().iter().zip(numbers) {
            let container = match field.parent {
                None => AnnotationOf::Event,
                Some(parent) => match schema.field(parent).kind {
                    Kind::Array { .. } => AnnotationOf::Array,
                    Kind::Struct if !matches!(fields[parent.index()].value, Value::Root) => {
                        AnnotationOf::Dictionary
                    }
                    Kind::Struct => AnnotationOf::Event,
                    // What an optional or a variant holds takes its place.
                    _ => fields[parent.index()].container,
                },
            };
            let is_root = field.parent.is_none();
            let value = match &field.kind {
                Kind::Struct if is_root => Value::Root,
                Kind::Uint {
                    labels: Some(labels),
                    ..
                }
                | Kind::Sint {
                    labels: Some(labels),
                    ..
                } => {
                    let render = Labels { name: names.labels };
                    Value::Labeled(Box::new(LabelText::new(labels, render)))
                }
                Kind::BitMap { flags, .. } => Value::Flags(flags.to_vec().into()),
                _ => Value::Usual,
            };
            let kind = match field.kind {
                Kind::Bool { .. } => AnnotationKind::Bool,
                Kind::Sint { .. } => AnnotationKind::Int,
                Kind::Float { bits: ..=64 } => AnnotationKind::Double,
                Kind::Uint { .. } | Kind::BitArray { .. } | Kind::BitMap { .. } => {
                    AnnotationKind::Uint
                }
                // Very large numbers are texts.
                _ => AnnotationKind::Text,
            };
            fields.push(FieldPlan {
                annotation: Annotation::new(container, number, kind),
                container,
                value,
            });
        }
        Self { fields }
    }
}

/// Writes the annotations of an event.
pub(super) struct FieldRenderer<'a> {
    pub(super) line: &'a mut Line,
    pub(super) plan: &'a Plan,
    /// Where the compound values begin that are open.
    pub(super) open: &'a mut Vec<usize>,
    pub(super) names: &'a FieldNames,
    pub(super) losses: &'a Losses,
}

impl FieldRenderer<'_> {
    /// Begins a value of parts.
    fn open(&mut self, field: FieldId) {
        let annotation = &self.plan.fields[field.index()].annotation;
        self.open.push(annotation.begin(self.line));
    }

    fn close(&mut self) {
        if let Some(begin) = self.open.pop() {
            Annotation::end(begin, self.line);
        }
    }

    /// Writes a number, signed or not, as one or as a message with its labels or flags.
    #[inline]
    fn number(&mut self, field: FieldId, bits: u64) {
        let plan = &self.plan.fields[field.index()];
        match plan.value {
            Value::Usual | Value::Root => plan.annotation.number(bits, self.line),
            Value::Labeled(_) | Value::Flags(_) => self.named_number(field, bits),
        }
    }

    fn named_number(&mut self, field: FieldId, bits: u64) {
        let plan = &self.plan.fields[field.index()];
        let (value, flags) = (self.names.value, self.names.flags);
        let more = |line: &mut Line| match &plan.value {
            Value::Labeled(labels) => labels.write(bits, line),
            Value::Flags(named) => {
                let set = named.iter().filter(|flag| flag.bits() & bits != 0);
                Annotation::texts(flags, set.map(|flag| &*flag.name), line);
            }
            Value::Usual | Value::Root => {}
        };
        plan.annotation.named_number(value, bits, self.line, more);
    }

    #[inline]
    fn text_value(&mut self, field: FieldId, text: &[u8]) {
        let annotation = &self.plan.fields[field.index()].annotation;
        annotation.text(text, self.line);
    }

    fn is_root(&self, field: FieldId) -> bool {
        matches!(self.plan.fields[field.index()].value, Value::Root)
    }
}

/// Text as UTF-8: each wrong byte `NN` is `\xNN`.
#[cold]
fn corrected(text: &[u8]) -> Vec<u8> {
    let mut result = Vec::with_capacity(text.len() + 16);
    for part in text.utf8_chunks() {
        result.extend_from_slice(part.valid().as_bytes());
        for byte in part.invalid() {
            result.extend_from_slice(format!("\\x{byte:02x}").as_bytes());
        }
    }
    result
}

impl Visitor for FieldRenderer<'_> {
    #[inline]
    fn uint(&mut self, field: FieldId, value: u64) {
        self.number(field, value);
    }

    #[inline]
    fn sint(&mut self, field: FieldId, value: i64) {
        self.number(field, value as u64);
    }

    #[inline]
    fn float(&mut self, field: FieldId, value: f64) {
        let annotation = &self.plan.fields[field.index()].annotation;
        annotation.double(value, self.line);
    }

    /// As its digits: no number of Perfetto's can hold it.
    fn wide(&mut self, field: FieldId, value: Wide<'_>) {
        let mut text = Line::new();
        json::wide(value, &mut text);
        self.text_value(field, text.as_bytes());
    }

    /// As its digits: a double cannot hold it.
    fn float128(&mut self, field: FieldId, bits: u128) {
        let mut text = Line::new();
        json::float128(bits, false, &mut text);
        self.text_value(field, text.as_bytes());
    }

    #[inline]
    fn boolean(&mut self, field: FieldId, value: bool) {
        self.number(field, value.into());
    }

    #[inline]
    fn bits(&mut self, field: FieldId, value: u64) {
        self.number(field, value);
    }

    #[inline]
    fn text(&mut self, field: FieldId, text: &[u8]) {
        if text.is_ascii() || std::str::from_utf8(text).is_ok() {
            self.text_value(field, text);
        } else {
            self.losses.add(Loss::NotUtf8, 1);
            self.text_value(field, &corrected(text));
        }
    }

    fn blob(&mut self, field: FieldId, bytes: &[u8]) {
        let annotation = &self.plan.fields[field.index()].annotation;
        annotation.text_of(bytes.len().saturating_mul(2), self.line);
        bytes.iter().for_each(|&byte| self.line.hex_byte(byte));
    }

    #[inline]
    fn begin_struct(&mut self, field: FieldId) {
        if !self.is_root(field) {
            self.open(field);
        }
    }

    #[inline]
    fn end_struct(&mut self, field: FieldId) {
        if !self.is_root(field) {
            self.close();
        }
    }

    fn begin_array(&mut self, field: FieldId, _length: u64) {
        self.open(field);
    }

    fn end_array(&mut self, _field: FieldId) {
        self.close();
    }

    fn begin_optional(&mut self, field: FieldId, present: bool, _selector: u64) {
        if !present {
            let annotation = &self.plan.fields[field.index()].annotation;
            annotation.nothing(self.line);
        }
    }
}
