//! Writes the fields of events as annotations.

use kymo_model::{FieldId, Flag, Kind, Schema, Visitor};
use kymo_text::{Line, Stamp};

use super::names::Names;
use super::{message, proto};
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
    /// The field of the message around it: of an event, a structure, an array.
    place: u32,
    /// Its name, as a field of the annotation; empty of elements.
    name: Stamp,
    name_size: usize,
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
        texts(self.name, labels.iter().copied(), line);
    }
}

/// Appends an entry that is an array of texts.
fn texts<'a>(name: u64, texts: impl Iterator<Item = &'a str>, line: &mut Line) {
    let entry = proto::begin(message::DICT_ENTRIES, line);
    proto::uint(message::NAME_IID, name, line);
    for text in texts {
        let size = proto::bytes_size(message::STRING_VALUE, text.len());
        proto::length(message::ARRAY_VALUES, size, line);
        proto::bytes(message::STRING_VALUE, text.as_bytes(), line);
    }
    proto::end(entry, line);
}

impl Plan {
    /// Plans all fields; `numbers` are those of their names.
    pub(super) fn new(schema: &Schema, numbers: &[u64], names: &Names) -> Self {
        let mut fields: Vec<FieldPlan> = Vec::with_capacity(schema.fields().len());
        for (field, &number) in schema.fields().iter().zip(numbers) {
            let place = match field.parent {
                None => message::ANNOTATIONS,
                Some(parent) => match schema.field(parent).kind {
                    Kind::Array { .. } => message::ARRAY_VALUES,
                    Kind::Struct if !matches!(fields[parent.index()].value, Value::Root) => {
                        message::DICT_ENTRIES
                    }
                    Kind::Struct => message::ANNOTATIONS,
                    // What an optional or a variant holds takes its place.
                    _ => fields[parent.index()].place,
                },
            };
            let mut name = Line::new();
            if number > 0 {
                proto::uint(message::NAME_IID, number, &mut name);
            }
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
            fields.push(FieldPlan {
                place,
                name: Stamp::new(name.as_bytes()),
                name_size: name.len(),
                value,
            });
        }
        Self { fields }
    }
}

/// Writes the annotations of an event.
pub(super) struct Pen<'a> {
    pub(super) line: &'a mut Line,
    pub(super) plan: &'a Plan,
    /// Where the compound values begin that are open.
    pub(super) open: &'a mut Vec<usize>,
    pub(super) names: &'a Names,
    pub(super) losses: &'a Losses,
}

impl<'a> Pen<'a> {
    /// Writes what comes before a value of so many bytes.
    #[inline]
    fn start(&mut self, field: FieldId, size: usize) {
        let plan = &self.plan.fields[field.index()];
        proto::length(plan.place, plan.name_size + size, self.line);
        self.line.stamp(&plan.name);
    }

    /// Begins a value of parts.
    fn open(&mut self, field: FieldId) -> &'a FieldPlan {
        let plan = &self.plan.fields[field.index()];
        self.open.push(proto::begin(plan.place, self.line));
        self.line.stamp(&plan.name);
        plan
    }

    fn close(&mut self) {
        if let Some(begin) = self.open.pop() {
            proto::end(begin, self.line);
        }
    }

    /// Writes a number, signed or not, as one or as a message with its labels or flags.
    #[inline]
    fn number(&mut self, field: FieldId, kind: u32, bits: u64) {
        let size = 1 + proto::varint_size(bits);
        match self.plan.fields[field.index()].value {
            Value::Usual | Value::Root => {
                self.start(field, size);
                proto::uint(kind, bits, self.line);
            }
            Value::Labeled(_) | Value::Flags(_) => self.named_number(field, kind, bits),
        }
    }

    fn named_number(&mut self, field: FieldId, kind: u32, bits: u64) {
        let plan = self.open(field);
        let entry = proto::begin(message::DICT_ENTRIES, self.line);
        proto::uint(message::NAME_IID, self.names.value, self.line);
        proto::uint(kind, bits, self.line);
        proto::end(entry, self.line);
        match &plan.value {
            Value::Labeled(labels) => labels.write(bits, self.line),
            Value::Flags(flags) => {
                let set = flags.iter().filter(|flag| flag.bits() & bits != 0);
                texts(self.names.flags, set.map(|flag| &*flag.name), self.line);
            }
            Value::Usual | Value::Root => {}
        }
        self.close();
    }

    fn text_value(&mut self, field: FieldId, text: &[u8]) {
        self.start(field, proto::bytes_size(message::STRING_VALUE, text.len()));
        proto::bytes(message::STRING_VALUE, text, self.line);
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

impl Visitor for Pen<'_> {
    #[inline]
    fn uint(&mut self, field: FieldId, value: u64) {
        self.number(field, message::UINT_VALUE, value);
    }

    #[inline]
    fn sint(&mut self, field: FieldId, value: i64) {
        self.number(field, message::INT_VALUE, value as u64);
    }

    #[inline]
    fn float(&mut self, field: FieldId, value: f64) {
        self.start(field, 9);
        proto::double(message::DOUBLE_VALUE, value, self.line);
    }

    /// As its digits: a double cannot hold it.
    fn float128(&mut self, field: FieldId, bits: u128) {
        let mut text = Line::new();
        json::float128(bits, false, &mut text);
        self.text_value(field, text.as_bytes());
    }

    #[inline]
    fn boolean(&mut self, field: FieldId, value: bool) {
        self.start(field, 2);
        proto::uint(message::BOOL_VALUE, value.into(), self.line);
    }

    #[inline]
    fn bits(&mut self, field: FieldId, value: u64) {
        self.number(field, message::UINT_VALUE, value);
    }

    #[inline]
    fn text(&mut self, field: FieldId, text: &[u8]) {
        if std::str::from_utf8(text).is_ok() {
            self.text_value(field, text);
        } else {
            self.losses.add(Loss::NotUtf8, 1);
            self.text_value(field, &corrected(text));
        }
    }

    fn blob(&mut self, field: FieldId, bytes: &[u8]) {
        let size = bytes.len().saturating_mul(2);
        self.start(field, proto::bytes_size(message::STRING_VALUE, size));
        proto::length(message::STRING_VALUE, size, self.line);
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
            self.start(field, 0);
        }
    }
}
