//! Annotations of track events as arguments; nested ones become JSON.

use kymo_text::Line;

use super::sequence::{Interned, Sequence};
use crate::builder::{Args, Builder, json};
use crate::message::{annotation, nested};
use crate::proto::{Wire, fields};
use crate::row::Value;

/// How deep values may lie within each other; what is deeper is `null`.
const MOST_DEPTH: u32 = 32;
/// Bytes of a nested value, more or less; what follows is left out.
const MOST_JSON: usize = 1 << 18;

/// Makes arguments of annotations.
#[derive(Debug, Default)]
pub(super) struct Annotations {
    line: Line,
    is_cut: bool,
}

/// An annotation as it is found: what nests in it lies in its message.
struct Found<'a> {
    name: &'a [u8],
    value: Option<Simple<'a>>,
}

#[derive(Clone, Copy)]
enum Simple<'a> {
    Value(Value<'a>),
    /// A text that many events may have.
    Interned(&'a [u8]),
    Dict,
    Array,
    /// The old form of nested values.
    Nested(&'a [u8]),
}

fn look_up(names: &Interned, iid: u64) -> &[u8] {
    names.get(&iid).map_or(&[], |text| text)
}

fn found<'a>(message: &'a [u8], sequence: &'a Sequence) -> Found<'a> {
    let mut found = Found {
        name: &[],
        value: None,
    };
    for field in fields(message) {
        let wire = field.wire;
        let value = match field.number {
            annotation::NAME_IID => {
                found.name = look_up(&sequence.annotation_names, wire.uint());
                continue;
            }
            annotation::NAME => {
                found.name = wire.bytes();
                continue;
            }
            annotation::BOOL_VALUE => Simple::Value(Value::Bool(wire.uint() != 0)),
            annotation::UINT_VALUE => Simple::Value(Value::Uint(wire.uint())),
            annotation::INT_VALUE => Simple::Value(Value::Sint(wire.int())),
            annotation::DOUBLE_VALUE => Simple::Value(Value::Float(wire.double())),
            annotation::STRING_VALUE => Simple::Value(Value::Text(wire.bytes())),
            annotation::POINTER_VALUE => Simple::Value(Value::Pointer(wire.uint())),
            // It is not known whether it is correct.
            annotation::LEGACY_JSON => Simple::Value(Value::Text(wire.bytes())),
            annotation::STRING_IID => Simple::Interned(look_up(&sequence.texts, wire.uint())),
            annotation::NESTED_VALUE => Simple::Nested(wire.bytes()),
            annotation::DICT_ENTRIES => Simple::Dict,
            annotation::ARRAY_VALUES => Simple::Array,
            _ => continue,
        };
        found.value = Some(value);
    }
    found
}

impl Annotations {
    /// Adds an annotation as an argument.
    pub(super) fn add(
        &mut self,
        message: &[u8],
        sequence: &Sequence,
        builder: &mut Builder,
        args: &mut Args,
    ) {
        let Found { name, value } = found(message, sequence);
        // What would be dropped is not made.
        let value = if args.is_full() {
            value.map(|_| Simple::Value(Value::Bool(false)))
        } else {
            value
        };
        let value = match value {
            // Without a value there is nothing to show: kymo writes absent ones so.
            None => return,
            Some(Simple::Value(value)) => value,
            Some(Simple::Interned(text)) => builder.shared(text),
            Some(Simple::Dict | Simple::Array | Simple::Nested(_)) => {
                self.line.clear();
                self.is_cut = false;
                self.write(message, sequence, 0);
                if self.is_cut {
                    builder.count("nested annotations that are too large or too deep, cut");
                }
                Value::Json(self.line.as_bytes())
            }
        };
        args.push(name, value);
    }

    fn has_room(&mut self, depth: u32) -> bool {
        let has_room = depth < MOST_DEPTH && self.line.len() < MOST_JSON;
        self.is_cut |= !has_room;
        has_room
    }

    /// Writes the value of an annotation.
    fn write(&mut self, message: &[u8], sequence: &Sequence, depth: u32) {
        if !self.has_room(depth) {
            return self.line.push(b"null");
        }
        match found(message, sequence).value {
            None => self.line.push(b"null"),
            Some(Simple::Value(value)) => json(value, &[], &mut self.line),
            Some(Simple::Interned(text)) => self.line.json_string(text),
            Some(Simple::Dict) => {
                let names = |part| found(part, sequence).name;
                self.parts(
                    message,
                    annotation::DICT_ENTRIES,
                    names,
                    b"{}",
                    |this, part| {
                        this.write(part, sequence, depth + 1);
                    },
                );
            }
            Some(Simple::Array) => {
                let names = |_| &[][..];
                self.parts(
                    message,
                    annotation::ARRAY_VALUES,
                    names,
                    b"[]",
                    |this, part| {
                        this.write(part, sequence, depth + 1);
                    },
                );
            }
            Some(Simple::Nested(value)) => self.nested(value, depth + 1),
        }
    }

    /// Writes the parts of a value, the messages of a field, each behind its name.
    fn parts<'a>(
        &mut self,
        message: &'a [u8],
        number: u32,
        name: impl Fn(&'a [u8]) -> &'a [u8],
        &[open, close]: &[u8; 2],
        mut write: impl FnMut(&mut Self, &'a [u8]),
    ) {
        self.line.push_byte(open);
        let parts = fields(message).filter(|field| field.number == number);
        for (position, part) in parts.enumerate() {
            if !self.has_room(0) {
                break;
            }
            if position > 0 {
                self.line.push_byte(b',');
            }
            if open == b'{' {
                self.line.json_string(name(part.wire.bytes()));
                self.line.push_byte(b':');
            }
            write(self, part.wire.bytes());
        }
        self.line.push_byte(close);
    }

    /// Writes a value of the old form.
    fn nested(&mut self, message: &[u8], depth: u32) {
        if !self.has_room(depth) {
            return self.line.push(b"null");
        }
        let kind = crate::proto::first(message, nested::TYPE).map_or(0, Wire::uint);
        match kind {
            nested::DICT => {
                let mut keys = fields(message).filter(|field| field.number == nested::DICT_KEYS);
                self.line.push_byte(b'{');
                let values = fields(message).filter(|field| field.number == nested::DICT_VALUES);
                for (position, value) in values.enumerate() {
                    if !self.has_room(0) {
                        break;
                    }
                    if position > 0 {
                        self.line.push_byte(b',');
                    }
                    let key = keys.next().map_or(&[][..], |key| key.wire.bytes());
                    self.line.json_string(key);
                    self.line.push_byte(b':');
                    self.nested(value.wire.bytes(), depth + 1);
                }
                self.line.push_byte(b'}');
            }
            nested::ARRAY => {
                let (values, names) = (nested::ARRAY_VALUES, |_| &[][..]);
                self.parts(message, values, names, b"[]", |this, part| {
                    this.nested(part, depth + 1);
                });
            }
            _ => {
                let value = fields(message).find_map(|field| match field.number {
                    nested::INT_VALUE => Some(Value::Sint(field.wire.int())),
                    nested::DOUBLE_VALUE => Some(Value::Float(field.wire.double())),
                    nested::BOOL_VALUE => Some(Value::Bool(field.wire.uint() != 0)),
                    nested::STRING_VALUE => Some(Value::Text(field.wire.bytes())),
                    _ => None,
                });
                match value {
                    Some(value) => json(value, &[], &mut self.line),
                    None => self.line.push(b"null"),
                }
            }
        }
    }
}
