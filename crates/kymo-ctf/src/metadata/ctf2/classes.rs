//! Field classes (CTF2-SPEC-2.0 §5.3): from JSON to a tree of types.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;

use kymo_machine::ByteOrder;
use kymo_model::Base;
use kymo_text::diagnostic::Diagnostic;

use super::json::{Kind, Span, Value, alternatives};
use super::location;
use super::properties::Properties;
use super::ranges::{different_ranges, flags, mappings, ranges};
use super::types::{Choice, Class, Field, Fields, Integer, Length, Type};
use crate::class::{BitLayout, Encoding, Role};
use crate::deep::{MAX_LEVELS, has_room};
use crate::metadata::limits::{MAX_INTEGER_BITS, Warnings};

/// The largest alignment, in bits: more than any packet needs.
const MAX_ALIGN: u64 = 1 << 31;

/// What a field class may be, by the value of its `type`.
const TYPES: [(&str, Is); 18] = [
    ("fixed-length-bit-array", Is::BitArray),
    ("fixed-length-bit-map", Is::BitMap),
    ("fixed-length-boolean", Is::Bool),
    ("fixed-length-unsigned-integer", Is::Unsigned),
    ("fixed-length-signed-integer", Is::Signed),
    ("fixed-length-floating-point-number", Is::Float),
    ("variable-length-unsigned-integer", Is::VarUnsigned),
    ("variable-length-signed-integer", Is::VarSigned),
    ("null-terminated-string", Is::Text),
    ("static-length-string", Is::StaticText),
    ("dynamic-length-string", Is::DynamicText),
    ("static-length-blob", Is::StaticBlob),
    ("dynamic-length-blob", Is::DynamicBlob),
    ("structure", Is::Struct),
    ("static-length-array", Is::StaticArray),
    ("dynamic-length-array", Is::DynamicArray),
    ("optional", Is::Optional),
    ("variant", Is::Variant),
];

/// The types of drafts of CTF 2 that traces still have.
const DRAFT_TYPES: [(&str, Is); 2] = [
    ("fixed-length-unsigned-enumeration", Is::Unsigned),
    ("fixed-length-signed-enumeration", Is::Signed),
];

#[derive(Clone, Copy)]
enum Is {
    BitArray,
    BitMap,
    Bool,
    Unsigned,
    Signed,
    Float,
    VarUnsigned,
    VarSigned,
    Text,
    StaticText,
    DynamicText,
    StaticBlob,
    DynamicBlob,
    Struct,
    StaticArray,
    DynamicArray,
    Optional,
    Variant,
}

/// The roles of unsigned integers.
pub(super) const ROLES: [(&str, Role); 10] = [
    ("packet-magic-number", Role::PacketMagic),
    ("data-stream-class-id", Role::StreamClassId),
    ("data-stream-id", Role::StreamId),
    ("packet-total-length", Role::PacketTotalLength),
    ("packet-content-length", Role::PacketContentLength),
    ("default-clock-timestamp", Role::DefaultClockTimestamp),
    (
        "packet-end-default-clock-timestamp",
        Role::PacketEndTimestamp,
    ),
    (
        "discarded-event-record-counter-snapshot",
        Role::DiscardedEvents,
    ),
    ("packet-sequence-number", Role::PacketSequenceNumber),
    ("event-record-class-id", Role::EventClassId),
];

/// The role of BLOBs.
pub(super) const UUID_ROLE: &str = "metadata-stream-uuid";

/// The encodings of strings.
pub(super) const ENCODINGS: [(&str, Encoding); 5] = [
    ("utf-8", Encoding::Utf8),
    ("utf-16le", Encoding::Utf16Le),
    ("utf-16be", Encoding::Utf16Be),
    ("utf-32le", Encoding::Utf32Le),
    ("utf-32be", Encoding::Utf32Be),
];

/// The media type of a BLOB that does not say.
pub(in crate::metadata) const ANY_MEDIA: &str = "application/octet-stream";

/// The properties that describe how a fixed number of bits lies in a packet.
macro_rules! fixed {
    ($($more:literal),*) => {
        &["type", "length", "byte-order", "bit-order", "alignment", $($more),*]
    };
}

/// Reads field classes, which may name those that were given a name before.
#[derive(Default)]
pub(super) struct Classes {
    aliases: HashMap<String, (Rc<Type>, Span)>,
}

impl Classes {
    /// A `field-class-alias` fragment.
    pub(super) fn alias(
        &mut self,
        fragment: &Value<'_>,
        warnings: &mut Warnings,
    ) -> Result<(), Diagnostic> {
        let known = ["type", "name", "field-class"];
        let alias = Properties::new(fragment, "a field class alias", &known, warnings)?;
        alias.attributes()?;
        let name = alias.require("name", Value::string)?;
        let span = alias.span_of("name");
        let class = alias.require("field-class", |class| self.class(class, 0, warnings))?;
        if let Some((_, first)) = self.aliases.get(&name) {
            return Err(
                Diagnostic::error(format!("two field class aliases `{name}`"))
                    .at(span, "named again")
                    .because(*first, "first named here"),
            );
        }
        self.aliases.insert(name, (class, span));
        Ok(())
    }

    /// The field class of a scope: a structure.
    pub(super) fn structure(
        &self,
        value: &Value<'_>,
        warnings: &mut Warnings,
    ) -> Result<Rc<Type>, Diagnostic> {
        let class = self.class(value, 0, warnings)?;
        match class.class {
            Class::Struct { .. } => Ok(class),
            _ => Err(
                Diagnostic::error("the field class of a scope is not a structure")
                    .at(value.span, "expected a structure"),
            ),
        }
    }

    /// A field class, or the name of one; `depth` counts those around it.
    fn class(
        &self,
        value: &Value<'_>,
        depth: usize,
        warnings: &mut Warnings,
    ) -> Result<Rc<Type>, Diagnostic> {
        let span = value.span;
        if let Kind::Text(name) = &value.kind {
            return match self.aliases.get(&**name) {
                Some((class, _)) => checked(class.clone(), span, depth),
                None => Err(
                    Diagnostic::error(format!("unknown field class alias `{name}`"))
                        .at(span, "expected the name of an alias that comes before this"),
                ),
            };
        }
        let (class, height) = self.new_class(value, depth, warnings)?;
        let class = Type {
            class,
            span,
            height: height + 1,
        };
        checked(Rc::new(class), span, depth)
    }

    /// A field class that is given here, and the height of what it holds.
    fn new_class(
        &self,
        value: &Value<'_>,
        depth: usize,
        warnings: &mut Warnings,
    ) -> Result<(Class, usize), Diagnostic> {
        let is = type_of(value, warnings)?;
        let mut properties = |owner, known: &[&'static str]| {
            let properties = Properties::new(value, owner, known, warnings)?;
            properties.attributes()?;
            Ok(properties)
        };
        let class = match is {
            Is::BitArray => {
                let bits = properties("a bit array", fixed!())?;
                Class::BitArray(layout(&bits, integer_size)?)
            }
            Is::BitMap => {
                let bits = properties("a bit map", fixed!("flags"))?;
                Class::BitMap {
                    layout: layout(&bits, integer_size)?,
                    flags: bits.require("flags", flags)?,
                }
            }
            Is::Bool => {
                let boolean = properties("a boolean", fixed!())?;
                Class::Bool(layout(&boolean, integer_size)?)
            }
            Is::Unsigned | Is::Signed => {
                let owner = "an integer";
                let signed = matches!(is, Is::Signed);
                let known: &[_] = match signed {
                    true => fixed!("preferred-display-base", "mappings"),
                    false => fixed!("preferred-display-base", "mappings", "roles"),
                };
                let integer = properties(owner, known)?;
                let layout = layout(&integer, wide_size)?;
                if layout.bits > 64 {
                    narrow(&integer)?;
                }
                Class::Integer(self::integer(&integer, Some(layout), signed, warnings)?)
            }
            Is::VarUnsigned | Is::VarSigned => {
                let signed = matches!(is, Is::VarSigned);
                let known: &[_] = match signed {
                    true => &["type", "preferred-display-base", "mappings"],
                    false => &["type", "preferred-display-base", "mappings", "roles"],
                };
                let integer = properties("an integer of variable length", known)?;
                Class::Integer(self::integer(&integer, None, signed, warnings)?)
            }
            Is::Float => {
                let float = properties("a floating point number", fixed!())?;
                Class::Float(layout(&float, float_size)?)
            }
            Is::Text => Class::Text(encoding(&properties("a string", &["type", "encoding"])?)?),
            Is::StaticText | Is::DynamicText => {
                let (name, length) = length_of(matches!(is, Is::StaticText));
                let text = properties("a string", &["type", "encoding", name])?;
                Class::SizedText {
                    encoding: encoding(&text)?,
                    length: text.require(name, |value| length(value, warnings))?,
                }
            }
            Is::StaticBlob | Is::DynamicBlob => {
                let is_static = matches!(is, Is::StaticBlob);
                let (name, length) = length_of(is_static);
                let known: &[_] = match is_static {
                    true => &["type", "length", "media-type", "roles"],
                    false => &["type", "length-field-location", "media-type"],
                };
                let blob = properties("a BLOB", known)?;
                let media_type = blob.read("media-type", Value::string)?;
                let roles = blob.read("roles", |value| roles(value, &[(UUID_ROLE, ())]))?;
                Class::Blob {
                    length: blob.require(name, |value| length(value, warnings))?,
                    media_type: media_type.unwrap_or_else(|| ANY_MEDIA.to_owned()),
                    uuid: roles.and_then(|roles| roles.first().map(|&((), span)| span)),
                }
            }
            Is::Struct => {
                let known = ["type", "member-classes", "minimum-alignment"];
                let structure = properties("a structure", &known)?;
                let min_align = alignment(&structure, "minimum-alignment")?;
                let mut fields = Fields::default();
                if let Some(members) = structure.get("member-classes") {
                    for member in members.array("an array of members")? {
                        fields.push(self.member(member, depth, warnings)?)?;
                    }
                }
                let height = fields.height();
                return Ok((Class::Struct { fields, min_align }, height));
            }
            Is::StaticArray | Is::DynamicArray => {
                let (name, length) = length_of(matches!(is, Is::StaticArray));
                let known = ["type", "element-field-class", "minimum-alignment", name];
                let array = properties("an array", &known)?;
                let element = array.require("element-field-class", |element| {
                    self.class(element, depth + 1, warnings)
                })?;
                let height = element.height;
                let class = Class::Array {
                    element,
                    length: array.require(name, |value| length(value, warnings))?,
                    min_align: alignment(&array, "minimum-alignment")?,
                };
                return Ok((class, height));
            }
            Is::Optional => {
                let known = [
                    "type",
                    "field-class",
                    "selector-field-location",
                    "selector-field-ranges",
                ];
                let optional = properties("an optional", &known)?;
                let content = optional.require("field-class", |content| {
                    self.class(content, depth + 1, warnings)
                })?;
                let height = content.height;
                let class = Class::Optional {
                    content,
                    selector: optional.require("selector-field-location", |location| {
                        location::read(location, warnings)
                    })?,
                    when: optional.read("selector-field-ranges", ranges)?,
                };
                return Ok((class, height));
            }
            Is::Variant => {
                let known = ["type", "options", "selector-field-location"];
                let variant = properties("a variant", &known)?;
                let selector = variant.require("selector-field-location", |location| {
                    location::read(location, warnings)
                })?;
                let options =
                    variant.require("options", |options| self.options(options, depth, warnings))?;
                let heights = options.iter().map(|option| option.class.height);
                let height = heights.max().unwrap_or(0);
                return Ok((Class::Variant { options, selector }, height));
            }
        };
        Ok((class, 0))
    }

    fn member(
        &self,
        member: &Value<'_>,
        depth: usize,
        warnings: &mut Warnings,
    ) -> Result<Field, Diagnostic> {
        let known = ["name", "field-class"];
        let member = Properties::new(member, "a member", &known, warnings)?;
        Ok(Field {
            name: member.require("name", Value::text)?.into(),
            span: member.span_of("name"),
            class: member.require("field-class", |class| {
                self.class(class, depth + 1, warnings)
            })?,
            attributes: member.attributes()?,
        })
    }

    fn options(
        &self,
        options: &Value<'_>,
        depth: usize,
        warnings: &mut Warnings,
    ) -> Result<Vec<Choice>, Diagnostic> {
        let known = ["name", "field-class", "selector-field-ranges"];
        let values = options.array("an array of options")?;
        if values.is_empty() {
            return options.expected("at least one option");
        }
        let mut names: HashMap<Arc<str>, Span> = HashMap::new();
        let mut choices = Vec::new();
        for value in values {
            let option = Properties::new(value, "an option", &known, warnings)?;
            option.attributes()?;
            let name: Option<Arc<str>> = option.read("name", Value::text)?.map(Arc::from);
            let span = option.span_of("name");
            let first = name.clone().and_then(|name| names.insert(name, span));
            if let (Some(name), Some(first)) = (&name, first) {
                return Err(
                    Diagnostic::error(format!("a variant with two options `{name}`"))
                        .at(span, "named again")
                        .because(first, "first named here"),
                );
            }
            choices.push(Choice {
                name,
                class: option.require("field-class", |class| {
                    self.class(class, depth + 1, warnings)
                })?,
                when: option.require("selector-field-ranges", ranges)?,
            });
        }
        different_ranges(&choices)?;
        Ok(choices)
    }
}

/// A field class that does not lie too deep; `depth` counts those around it.
fn checked(class: Rc<Type>, span: Span, depth: usize) -> Result<Rc<Type>, Diagnostic> {
    if !has_room(depth + class.height) {
        return Err(
            Diagnostic::error("field classes lie too deep within each other")
                .at(span, format!("expected at most {MAX_LEVELS} levels")),
        );
    }
    Ok(class)
}

/// What a field class is, by its `type`.
fn type_of(value: &Value<'_>, warnings: &mut Warnings) -> Result<Is, Diagnostic> {
    const WHAT: &str = "a field class or the name of an alias";
    let members = value.object(WHAT)?;
    let Some(member) = members.iter().find(|member| member.name == "type") else {
        return Err(Diagnostic::error("a field class has no `type`")
            .at(value.span, "expected a property `\"type\"` in this"));
    };
    let name = member.value.text()?;
    let named = |(known, _): &&(&str, Is)| *known == name;
    if let Some(&(_, is)) = TYPES.iter().find(named) {
        return Ok(is);
    }
    match DRAFT_TYPES.iter().find(named) {
        Some(&(_, is)) => {
            warnings.push(
                Diagnostic::warning(format!("`{name}` is of a draft of CTF 2"))
                    .at(member.value.span, "read as an integer with mappings"),
            );
            Ok(is)
        }
        None => Err(
            Diagnostic::error(format!("unknown type of field classes `{name}`"))
                .at(member.value.span, "not a type of CTF 2")
                .with_help(format!(
                    "known are {}",
                    alternatives(TYPES.iter().map(|(known, _)| *known))
                )),
        ),
    }
}

type LengthReader = fn(&Value<'_>, &mut Warnings) -> Result<Length, Diagnostic>;

/// The property that gives a length, and what reads it.
fn length_of(is_static: bool) -> (&'static str, LengthReader) {
    match is_static {
        true => ("length", |value, _| value.unsigned().map(Length::Static)),
        false => ("length-field-location", |value, warnings| {
            location::read(value, warnings).map(Length::Field)
        }),
    }
}

/// How a fixed number of bits lies in a packet; `size` reads how many.
fn layout(
    properties: &Properties<'_, '_>,
    size: impl FnOnce(&Value<'_>) -> Result<u32, Diagnostic>,
) -> Result<BitLayout, Diagnostic> {
    let bits = properties.require("length", size)?;
    let order = properties.require("byte-order", |order| {
        order.one_of(&[
            ("little-endian", ByteOrder::Little),
            ("big-endian", ByteOrder::Big),
        ])
    })?;
    // The first bit in a packet is the least significant one of its byte in one order, the
    // most significant one in the other.
    let bit_order = properties.read("bit-order", |order| {
        order.one_of(&[
            ("first-to-last", ByteOrder::Little),
            ("last-to-first", ByteOrder::Big),
        ])
    })?;
    Ok(BitLayout {
        bits,
        align: alignment(properties, "alignment")?,
        order,
        reversed: bit_order.is_some_and(|bit_order| bit_order != order),
        unit: None,
    })
}

fn alignment(properties: &Properties<'_, '_>, name: &str) -> Result<u32, Diagnostic> {
    let align = properties.read(name, |align| match align.unsigned()? {
        bits if bits.is_power_of_two() && bits <= MAX_ALIGN => Ok(bits as u32),
        _ => align.expected("a power of two up to 2^31"),
    })?;
    Ok(align.unwrap_or(1))
}

fn integer_size(size: &Value<'_>) -> Result<u32, Diagnostic> {
    match size.unsigned()? {
        bits @ 1..=64 => Ok(bits as u32),
        0 => size.expected("at least 1 bit"),
        _ => size.expected("at most 64 bits, which is what is supported"),
    }
}

fn wide_size(size: &Value<'_>) -> Result<u32, Diagnostic> {
    match size.unsigned()? {
        bits @ 1..=MAX_INTEGER_BITS => Ok(bits as u32),
        0 => size.expected("at least 1 bit"),
        _ => size.expected(&format!(
            "at most {MAX_INTEGER_BITS} bits, which is what is supported"
        )),
    }
}

/// Refuses what integers of more than 64 bits cannot have.
fn narrow(properties: &Properties<'_, '_>) -> Result<(), Diagnostic> {
    for name in ["mappings", "roles"] {
        let refuse = |value: &Value<'_>| {
            value.expected::<()>(&format!("no `{name}` of an integer of more than 64 bits"))
        };
        properties.read(name, refuse)?;
    }
    Ok(())
}

fn float_size(size: &Value<'_>) -> Result<u32, Diagnostic> {
    match size.unsigned()? {
        bits @ (16 | 32 | 64 | 128) => Ok(bits as u32),
        bits if bits > 128 && bits % 32 == 0 => {
            size.expected("at most 128 bits, which is what is supported")
        }
        _ => size.expected("16, 32, 64 or 128 bits"),
    }
}

fn integer(
    properties: &Properties<'_, '_>,
    layout: Option<BitLayout>,
    signed: bool,
    warnings: &mut Warnings,
) -> Result<Integer, Diagnostic> {
    let base = properties.read("preferred-display-base", |base| match base.unsigned()? {
        2 => Ok(Base::Binary),
        8 => Ok(Base::Octal),
        10 => Ok(Base::Decimal),
        16 => Ok(Base::Hexadecimal),
        _ => base.expected("2, 8, 10 or 16"),
    })?;
    let labels = properties.read("mappings", |value| mappings(value, signed, warnings))?;
    let roles = properties.read("roles", |value| roles(value, &ROLES))?;
    Ok(Integer {
        layout,
        signed,
        base: base.unwrap_or_default(),
        labels: labels.map(Arc::new),
        roles: roles.unwrap_or_default(),
    })
}

/// Roles and their places, each once.
fn roles<R: Copy>(value: &Value<'_>, known: &[(&str, R)]) -> Result<Vec<(R, Span)>, Diagnostic> {
    let mut given = HashSet::new();
    let mut roles = Vec::new();
    for role in value.array("an array of roles")? {
        let meaning = role.one_of(known)?;
        if given.insert(role.text()?) {
            roles.push((meaning, role.span));
        }
    }
    Ok(roles)
}

fn encoding(properties: &Properties<'_, '_>) -> Result<Encoding, Diagnostic> {
    let encoding = properties.read("encoding", |encoding| encoding.one_of(&ENCODINGS))?;
    Ok(encoding.unwrap_or_default())
}
