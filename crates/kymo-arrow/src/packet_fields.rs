//! What packets say beside their times and sizes, as a text of JSON, and the values of such a text.

use kymo::AnyRecording;
use kymo_ctf::write::{Token, Values};
use kymo_model::{Chunk, FaultReport, FieldId, Kind, Recording, Schema, Scope, Visitor, Wide};
use serde_json::{Map, Number, Value};

/// Where fields of packets are.
const SCOPES: [Scope; 2] = [Scope::PacketHeader, Scope::PacketContext];

/// The fields of a packet that are not bookkeeping, by scope; `None` if there are none. Damage is handed to `fault`.
pub(crate) fn fields(
    recording: &AnyRecording,
    chunk: &Chunk,
    fault: &mut dyn FnMut(&FaultReport),
) -> Option<String> {
    let schema = &recording.streams()[chunk.stream].packet_schema;
    let mut values = Values::default();
    // What it says before damage counts.
    if let Err(found) = recording.visit_packet(chunk, &mut values) {
        fault(&recording.report(chunk, None, found));
    }
    let is_hidden = |field: FieldId| recording.is_packet_bookkeeping(chunk.stream, field);
    let mut tokens = Tokens {
        all: values.tokens(),
        at: 0,
    };
    let mut scopes = Map::new();
    while let Some((root, _)) = tokens.all.get(tokens.at) {
        let scope = SCOPES
            .into_iter()
            .find(|&scope| schema.root(scope) == Some(*root));
        let Some(value) = tokens.value(schema, &is_hidden) else {
            break;
        };
        let is_empty = value.as_object().is_none_or(Map::is_empty);
        if let Some(scope) = scope.filter(|_| !is_empty) {
            scopes.insert(scope.name().to_owned(), value);
        }
    }
    (!scopes.is_empty()).then(|| Value::Object(scopes).to_string())
}

/// Values that were kept, one after the other.
struct Tokens<'v> {
    all: &'v [(FieldId, Token)],
    at: usize,
}

impl Tokens<'_> {
    /// The next value, whole; `None` where they end.
    fn value(&mut self, schema: &Schema, is_hidden: &dyn Fn(FieldId) -> bool) -> Option<Value> {
        let (field, token) = self.all.get(self.at)?;
        self.at += 1;
        Some(match token {
            Token::Uint(value) | Token::Bits(value) => (*value).into(),
            Token::Sint(value) => (*value).into(),
            Token::Bool(value) => (*value).into(),
            Token::Float(value) => match Number::from_f64(*value) {
                Some(number) => number.into(),
                None => value.to_string().into(),
            },
            Token::Float128(bits) => hex(&bits.to_be_bytes()).into(),
            Token::Wide { bytes, .. } | Token::Blob(bytes) => hex(bytes).into(),
            Token::Text(text) => String::from_utf8_lossy(text).into(),
            Token::BeginStruct => {
                let mut members = Map::new();
                while let Some((member, token)) = self.all.get(self.at) {
                    if *token == Token::EndStruct && member == field {
                        self.at += 1;
                        break;
                    }
                    let name = schema.field(*member).name.as_deref().unwrap_or_default();
                    let is_hidden_one = is_hidden(*member);
                    let value = self.value(schema, is_hidden)?;
                    if !is_hidden_one {
                        members.insert(name.to_owned(), value);
                    }
                }
                members.into()
            }
            Token::BeginArray(_) => {
                let mut items = Vec::new();
                while let Some((_, token)) = self.all.get(self.at) {
                    if *token == Token::EndArray {
                        self.at += 1;
                        break;
                    }
                    items.push(self.value(schema, is_hidden)?);
                }
                items.into()
            }
            Token::BeginOptional(is_there, _) => {
                let value = match is_there {
                    true => self.value(schema, is_hidden)?,
                    false => Value::Null,
                };
                self.at += 1;
                value
            }
            Token::BeginVariant(option, _) => {
                // By its position: options need not have names.
                let value = self.value(schema, is_hidden)?;
                self.at += 1;
                Map::from_iter([(option.to_string(), value)]).into()
            }
            Token::EndStruct | Token::EndArray | Token::EndOptional | Token::EndVariant => {
                return None;
            }
        })
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn bytes(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    let pairs = digits.chunks(2).map(|pair| {
        let pair = std::str::from_utf8(pair).ok()?;
        u8::from_str_radix(pair, 16).ok()
    });
    digits.len().is_multiple_of(2).then(|| pairs.collect())?
}

/// Gives the values of a text to a visitor of the fields of a packet with this schema. What the text does not have is not
/// given; `None` if it is not such a text.
pub(crate) fn give(text: &str, schema: &Schema, to: &mut impl Visitor) -> Option<()> {
    let scopes: Value = serde_json::from_str(text).ok()?;
    for scope in SCOPES {
        if let (Some(value), Some(root)) = (scopes.get(scope.name()), schema.root(scope)) {
            value_to(value, schema, root, to)?;
        }
    }
    Some(())
}

fn value_to(value: &Value, schema: &Schema, field: FieldId, to: &mut impl Visitor) -> Option<()> {
    let info = schema.field(field);
    match &info.kind {
        Kind::Uint { .. } => to.uint(field, value.as_u64()?),
        Kind::Sint { .. } => to.sint(field, value.as_i64()?),
        Kind::BitArray { .. } | Kind::BitMap { .. } => to.bits(field, value.as_u64()?),
        Kind::Bool { .. } => to.boolean(field, value.as_bool()?),
        Kind::Wide { bits, signed } => {
            let bytes = bytes(value.as_str()?)?;
            if bytes.len() != bits.div_ceil(8) as usize {
                return None;
            }
            to.wide(field, Wide::new(&bytes, *bits, *signed));
        }
        Kind::Float { bits: 128 } => {
            let bytes: [u8; 16] = bytes(value.as_str()?)?.try_into().ok()?;
            to.float128(field, u128::from_be_bytes(bytes));
        }
        Kind::Float { .. } => {
            let number = match value {
                Value::String(text) => text.parse().ok()?,
                value => value.as_f64()?,
            };
            to.float(field, number);
        }
        Kind::Text => to.text(field, value.as_str()?.as_bytes()),
        Kind::Blob => to.blob(field, &bytes(value.as_str()?)?),
        Kind::Struct => {
            to.begin_struct(field);
            for &member in &info.children {
                let name = schema.field(member).name.as_deref().unwrap_or_default();
                if let Some(value) = value.get(name) {
                    value_to(value, schema, member, to)?;
                }
            }
            to.end_struct(field);
        }
        Kind::Array { .. } => {
            let items = value.as_array()?;
            to.begin_array(field, items.len() as u64);
            for item in items {
                value_to(item, schema, *info.children.first()?, to)?;
            }
            to.end_array(field);
        }
        Kind::Optional => {
            let is_there = !value.is_null();
            to.begin_optional(field, is_there, is_there.into());
            if is_there {
                value_to(value, schema, *info.children.first()?, to)?;
            }
            to.end_optional(field);
        }
        Kind::Variant => {
            let (option, value) = value.as_object()?.iter().next()?;
            let option: u32 = option.parse().ok()?;
            to.begin_variant(field, option, option.into());
            value_to(value, schema, *info.children.get(option as usize)?, to)?;
            to.end_variant(field);
        }
    }
    Some(())
}
