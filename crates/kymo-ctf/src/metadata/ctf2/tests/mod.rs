//! What metadata of CTF 2 means, construct by construct.

mod classes;
mod errors;
mod field_errors;
mod fragments;
mod hostile;
mod locations;
mod round_trip;

use kymo_model::Base;
use kymo_time::{Clock, Origin};

use crate::class::{Encoding, EnvironmentValue, FieldClass, Length, Role, Selector, TraceClass};
use crate::metadata::testing::show_ref;

/// Fragments, each after a record separator.
fn sequence(fragments: &[&str]) -> String {
    fragments
        .iter()
        .map(|fragment| format!("\u{1e}{fragment}\n"))
        .collect()
}

const PREAMBLE: &str = r#"{"type": "preamble", "version": 2}"#;
const STREAM: &str = r#"{"type": "data-stream-class"}"#;

/// An unsigned integer of 8 bits.
const U8: &str =
    r#"{"type": "fixed-length-unsigned-integer", "length": 8, "byte-order": "little-endian"}"#;
/// A signed integer of 8 bits.
const I8: &str =
    r#"{"type": "fixed-length-signed-integer", "length": 8, "byte-order": "little-endian"}"#;
const BOOL: &str =
    r#"{"type": "fixed-length-boolean", "length": 8, "byte-order": "little-endian"}"#;

fn trace(text: &str) -> TraceClass {
    match super::parse(text) {
        Ok((class, _)) => class,
        Err(error) => panic!("{}", error.render("metadata", text, false)),
    }
}

fn warnings(text: &str) -> Vec<String> {
    let (_, warnings) = super::parse(text).unwrap();
    warnings
        .into_iter()
        .map(|warning| warning.message)
        .collect()
}

/// A structure with members `NAME CLASS`.
fn structure(members: &[(&str, &str)]) -> String {
    let members: Vec<_> = members
        .iter()
        .map(|(name, class)| format!(r#"{{"name": "{name}", "field-class": {class}}}"#))
        .collect();
    format!(
        r#"{{"type": "structure", "member-classes": [{}]}}"#,
        members.join(", ")
    )
}

/// A fragment with a payload, after fragments of aliases and such.
fn event(before: &[&str], payload: &str) -> String {
    let event = format!(r#"{{"type": "event-record-class", "payload-field-class": {payload}}}"#);
    let mut fragments = vec![PREAMBLE];
    fragments.extend(before);
    fragments.extend([STREAM, &event]);
    sequence(&fragments)
}

/// The field class of a payload's only member, in short.
fn class(class: &str) -> String {
    let trace = trace(&event(&[], &structure(&[("x", class)])));
    let shown = show(trace.streams[0].events[0].payload.as_ref().unwrap());
    let inner = shown.strip_prefix("{x: ").and_then(|s| s.strip_suffix('}'));
    inner.unwrap().to_owned()
}

/// The field classes of a payload, in short.
fn payload(before: &[&str], members: &[(&str, &str)]) -> String {
    let trace = trace(&event(before, &structure(members)));
    show(trace.streams[0].events[0].payload.as_ref().unwrap())
}

fn show(class: &FieldClass) -> String {
    let layout = |layout: &crate::class::BitLayout| {
        let order = match layout.order {
            kymo_machine::ByteOrder::Little => "le",
            kymo_machine::ByteOrder::Big => "be",
        };
        let reversed = if layout.reversed { " reversed" } else { "" };
        format!("{}{order}@{}{reversed}", layout.bits, layout.align)
    };
    let style = |style: &crate::class::IntegerStyle| {
        let mut text = String::new();
        match style.base {
            Base::Decimal => {}
            base => text += &format!(" {base:?}"),
        }
        for mapping in style.labels.iter().flat_map(|labels| labels.mappings()) {
            text += &format!(" {}={:?}", mapping.label, mapping.ranges);
        }
        for role in &style.roles {
            text += &format!(" {role:?}");
        }
        text
    };
    let sign = |signed| if signed { 'i' } else { 'u' };
    let min = |align: u32| match align {
        1 => String::new(),
        align => format!("@{align}"),
    };
    match class {
        FieldClass::BitArray(bits) => format!("bits{}", layout(bits)),
        FieldClass::BitMap {
            layout: bits,
            flags,
        } => {
            let flags: Vec<_> = flags
                .iter()
                .map(|flag| format!(" {}={:?}", flag.name, flag.ranges))
                .collect();
            format!("map{}{}", layout(bits), flags.concat())
        }
        FieldClass::Bool(bits) => format!("bool{}", layout(bits)),
        FieldClass::Integer {
            layout: bits,
            style: s,
        } => format!("{}{}{}", sign(s.signed), layout(bits), style(s)),
        FieldClass::VarInteger(s) => format!("{}var{}", sign(s.signed), style(s)),
        FieldClass::Float(bits) => format!("f{}", layout(bits)),
        FieldClass::Text { encoding, align } => format!("text {encoding:?}@{align}"),
        FieldClass::SizedText {
            length,
            encoding,
            align,
        } => format!("text[{}] {encoding:?}@{align}", show_length(length)),
        FieldClass::Blob {
            length,
            media_type,
            roles,
        } => {
            let roles: Vec<_> = roles.iter().map(|role| format!(" {role:?}")).collect();
            let length = show_length(length);
            format!("blob[{length}] {media_type}{}", roles.concat())
        }
        FieldClass::Struct { members, min_align } => {
            let members: Vec<_> = members
                .iter()
                .map(|member| format!("{}: {}", member.name, show(&member.class)))
                .collect();
            format!("{{{}}}{}", members.join(", "), min(*min_align))
        }
        FieldClass::Array {
            element,
            length,
            min_align,
            ..
        } => format!(
            "[{}; {}]{}",
            show(element),
            show_length(length),
            min(*min_align)
        ),
        FieldClass::Optional {
            content,
            selector,
            when,
        } => {
            let when = show_when(when);
            format!("<{}>({when}: {})?", show_ref(selector), show(content))
        }
        FieldClass::Variant { options, selector } => {
            let options: Vec<_> = options
                .iter()
                .map(|option| {
                    let name = option.name.as_deref().unwrap_or_default();
                    format!("{name}{}: {}", show_when(&option.when), show(&option.class))
                })
                .collect();
            format!("<{}>({})", show_ref(selector), options.join(", "))
        }
    }
}

fn show_when(when: &Selector) -> String {
    match when {
        Selector::True => "true".to_owned(),
        Selector::Unsigned(ranges) => format!("u{ranges:?}"),
        Selector::Signed(ranges) => format!("i{ranges:?}"),
    }
}

fn show_length(length: &Length) -> String {
    match length {
        Length::Static(length) => length.to_string(),
        Length::Dynamic(reference) => show_ref(reference),
        Length::Inline(class) => show(class),
    }
}

/// A variant with a selector's location, and ranges and classes of options.
fn variant(selector: &str, options: &[(&str, &str)]) -> String {
    let options: Vec<_> = options
        .iter()
        .map(|(ranges, class)| {
            format!(r#"{{"selector-field-ranges": {ranges}, "field-class": {class}}}"#)
        })
        .collect();
    format!(
        r#"{{"type": "variant", "selector-field-location": {selector}, "options": [{}]}}"#,
        options.join(", ")
    )
}
