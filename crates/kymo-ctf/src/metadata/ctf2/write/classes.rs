//! Field classes that are being written.

use kymo_machine::ByteOrder;
use kymo_model::{Base, Labels, Scope};

use super::super::classes::{ANY_MEDIA, ENCODINGS, ROLES, UUID_ROLE};
use super::super::location::ORIGINS;
use super::json::Json;
use crate::class::{BitLayout, FieldClass, FieldRef, IntegerStyle, Length, Selector, Step};
use crate::metadata::write::WriteError;

/// The structures of the scopes.
pub(super) type Roots<'a> = [Option<&'a FieldClass>; 6];

/// The field class of a scope, where there is one, as a property.
pub(super) fn scope(
    json: &mut Json,
    name: &str,
    scope: Scope,
    roots: &Roots<'_>,
) -> Result<(), WriteError> {
    match roots[scope as usize] {
        Some(class) => {
            json.key(name);
            field_class(json, class, roots)
        }
        None => Ok(()),
    }
}

fn field_class(json: &mut Json, class: &FieldClass, roots: &Roots<'_>) -> Result<(), WriteError> {
    json.open('{');
    let static_or = |length: &Length| match length {
        Length::Static(_) => "static",
        _ => "dynamic",
    };
    match class {
        FieldClass::BitArray(bits) => layout(json, "bit-array", bits),
        FieldClass::BitMap {
            layout: bits,
            flags,
        } => {
            layout(json, "bit-map", bits);
            json.key("flags");
            json.open('{');
            for flag in flags.iter() {
                json.key(&flag.name);
                json.ranges(flag.ranges.iter().map(|&range| wide(range, false)));
            }
            json.close('}');
        }
        FieldClass::Bool(bits) => layout(json, "boolean", bits),
        FieldClass::Integer {
            layout: bits,
            style,
        } => {
            layout(json, integer_type(style), bits);
            integer(json, style);
        }
        FieldClass::VarInteger(style) => {
            json.property("type", &format!("variable-length-{}", integer_type(style)));
            integer(json, style);
        }
        FieldClass::Float(bits) => layout(json, "floating-point-number", bits),
        FieldClass::Text { encoding, .. } => {
            json.property("type", "null-terminated-string");
            word(json, "encoding", &ENCODINGS, *encoding);
        }
        FieldClass::SizedText {
            length, encoding, ..
        } => {
            json.property("type", &format!("{}-length-string", static_or(length)));
            word(json, "encoding", &ENCODINGS, *encoding);
            self::length(json, length, roots)?;
        }
        FieldClass::Blob {
            length,
            media_type,
            roles,
        } => {
            json.property("type", &format!("{}-length-blob", static_or(length)));
            self::length(json, length, roots)?;
            if media_type != ANY_MEDIA {
                json.property("media-type", media_type);
            }
            if !roles.is_empty() {
                json.key("roles");
                json.open('[');
                json.string(UUID_ROLE);
                json.close(']');
            }
        }
        FieldClass::Struct { members, min_align } => {
            json.property("type", "structure");
            if *min_align != 1 {
                json.number_property("minimum-alignment", *min_align);
            }
            json.key("member-classes");
            json.open('[');
            for member in members {
                json.open('{');
                json.property("name", &member.name);
                json.key("field-class");
                field_class(json, &member.class, roots)?;
                json.attributes(&member.attributes)?;
                json.close('}');
            }
            json.close(']');
        }
        FieldClass::Array {
            element,
            length,
            min_align,
            ..
        } => {
            json.property("type", &format!("{}-length-array", static_or(length)));
            self::length(json, length, roots)?;
            if *min_align != 1 {
                json.number_property("minimum-alignment", *min_align);
            }
            json.key("element-field-class");
            field_class(json, element, roots)?;
        }
        FieldClass::Optional {
            content,
            selector,
            when,
        } => {
            json.property("type", "optional");
            location(json, "selector-field-location", selector, roots)?;
            selector_ranges(json, when);
            json.key("field-class");
            field_class(json, content, roots)?;
        }
        FieldClass::Variant { options, selector } => {
            json.property("type", "variant");
            location(json, "selector-field-location", selector, roots)?;
            json.key("options");
            json.open('[');
            for option in options {
                json.open('{');
                json.optional("name", option.name.as_deref());
                selector_ranges(json, &option.when);
                json.key("field-class");
                field_class(json, &option.class, roots)?;
                json.close('}');
            }
            json.close(']');
        }
    }
    json.close('}');
    Ok(())
}

fn layout(json: &mut Json, kind: &str, layout: &BitLayout) {
    json.property("type", &format!("fixed-length-{kind}"));
    json.number_property("length", layout.bits);
    let (order, other) = match layout.order {
        ByteOrder::Little => ("little-endian", "last-to-first"),
        ByteOrder::Big => ("big-endian", "first-to-last"),
    };
    json.property("byte-order", order);
    if layout.reversed {
        json.property("bit-order", other);
    }
    if layout.align != 1 {
        json.number_property("alignment", layout.align);
    }
}

fn integer_type(style: &IntegerStyle) -> &'static str {
    match style.signed {
        true => "signed-integer",
        false => "unsigned-integer",
    }
}

fn integer(json: &mut Json, style: &IntegerStyle) {
    let base: u8 = match style.base {
        Base::Binary => 2,
        Base::Octal => 8,
        Base::Decimal => 10,
        Base::Hexadecimal => 16,
    };
    if base != 10 {
        json.number_property("preferred-display-base", base);
    }
    if let Some(labels) = &style.labels {
        mappings(json, labels);
    }
    if !style.roles.is_empty() {
        json.key("roles");
        json.open('[');
        for role in &style.roles {
            if let Some((name, _)) = ROLES.iter().find(|(_, known)| known == role) {
                json.string(name);
            }
        }
        json.close(']');
    }
}

fn mappings(json: &mut Json, labels: &Labels) {
    json.key("mappings");
    json.open('{');
    for mapping in labels.mappings() {
        json.key(&mapping.label);
        let ranges = mapping.ranges.iter();
        json.ranges(ranges.map(|&range| wide(range, labels.is_signed())));
    }
    json.close('}');
}

/// A range of bits as numbers.
fn wide((low, high): (u64, u64), signed: bool) -> (i128, i128) {
    match signed {
        true => ((low as i64).into(), (high as i64).into()),
        false => (low.into(), high.into()),
    }
}

/// The word that stands for a value other than the default.
fn word<T: PartialEq + Default>(json: &mut Json, name: &str, words: &[(&str, T)], value: T) {
    if value != T::default()
        && let Some((word, _)) = words.iter().find(|(_, known)| *known == value)
    {
        json.property(name, word);
    }
}

fn length(json: &mut Json, length: &Length, roots: &Roots<'_>) -> Result<(), WriteError> {
    match length {
        Length::Static(length) => json.number_property("length", *length),
        Length::Dynamic(field) => location(json, "length-field-location", field, roots)?,
        // Refused before.
        Length::Inline(_) => {}
    }
    Ok(())
}

fn selector_ranges(json: &mut Json, selector: &Selector) {
    let name = "selector-field-ranges";
    match selector {
        Selector::True => {}
        Selector::Unsigned(ranges) => {
            json.key(name);
            json.ranges(ranges.iter().map(|&range| wide(range, false)));
        }
        Selector::Signed(ranges) => {
            json.key(name);
            let wide = |&(low, high): &(i64, i64)| (low.into(), high.into());
            json.ranges(ranges.iter().map(wide));
        }
    }
}

/// The location of a field: its scope, and the names on the way.
fn location(
    json: &mut Json,
    name: &str,
    field: &FieldRef,
    roots: &Roots<'_>,
) -> Result<(), WriteError> {
    let unknown = || WriteError("a length or selector refers to no field".to_owned());
    let mut way: Option<(Scope, Vec<&str>)> = None;
    for target in &field.targets {
        let mut names = Vec::new();
        let mut class = roots[target.scope as usize].ok_or_else(unknown)?;
        for step in &target.steps {
            class = match (class, *step) {
                (FieldClass::Struct { members, .. }, Step::Child(at)) => {
                    let member = members.get(at).ok_or_else(unknown)?;
                    names.push(&*member.name);
                    &member.class
                }
                (FieldClass::Variant { options, .. }, Step::Child(at)) => {
                    &options.get(at).ok_or_else(unknown)?.class
                }
                (FieldClass::Array { element, .. }, Step::Element) => element,
                (FieldClass::Optional { content, .. }, Step::Content) => content,
                _ => return Err(unknown()),
            };
        }
        let this = (target.scope, names);
        if way.as_ref().is_some_and(|way| *way != this) {
            return Err(WriteError(format!(
                "a length or selector refers to both `{}` and `{}`, which have no common location",
                way.map(|(_, names)| names.join(".")).unwrap_or_default(),
                this.1.join(".")
            )));
        }
        way = Some(this);
    }
    let (scope, names) = way.ok_or_else(unknown)?;
    json.key(name);
    json.open('{');
    if let Some((origin, _)) = ORIGINS.iter().find(|(_, known)| *known == scope) {
        json.property("origin", origin);
    }
    json.key("path");
    json.open('[');
    for name in names {
        json.string(name);
    }
    json.close(']');
    json.close('}');
    Ok(())
}
