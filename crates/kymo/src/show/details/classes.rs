//! Writes the classes of fields.

use kymo_ctf::class::{
    FieldClass, FieldPath, FieldRef, IntegerStyle, Length, Member, Selector, Step, StreamClass,
    TraceClass, VariantOption,
};
use kymo_model::{Base, Flag, Labels, Scope};

use super::attributes;
use super::text::Text;

/// What field references are looked up in.
#[derive(Clone, Copy)]
pub(super) struct Around<'a> {
    pub(super) trace: &'a TraceClass,
    pub(super) stream: &'a StreamClass,
    pub(super) event: Option<&'a kymo_ctf::class::EventRecordClass>,
}

/// Writes the class of a scope as a line of its own, and what is below it.
pub(super) fn root(name: &str, class: &FieldClass, around: Around<'_>, text: &mut Text) {
    text.property(name, |text| field(class, around, text));
}

/// The same of a packet context: without the members that have roles, and not at all where
/// nothing remains.
pub(super) fn packet_context(class: &FieldClass, around: Around<'_>, text: &mut Text) {
    let (Some(shown), FieldClass::Struct { members, .. }) = (without_roles(class), class) else {
        return;
    };
    let nothing = matches!(&shown, FieldClass::Struct { members, .. } if members.is_empty());
    if !nothing || members.is_empty() {
        root("Packet context field class", &shown, around, text);
    }
}

/// A class without the members of structures that have roles; `None` where it has one itself.
fn without_roles(class: &FieldClass) -> Option<FieldClass> {
    match class {
        _ if !class.roles().is_empty() => None,
        FieldClass::Struct { members, min_align } => {
            let shown = members.iter().filter_map(|member| {
                Some(Member {
                    class: without_roles(&member.class)?,
                    ..member.clone()
                })
            });
            Some(FieldClass::Struct {
                members: shown.collect(),
                min_align: *min_align,
            })
        }
        class => Some(class.clone()),
    }
}

/// Writes a class: its name and properties, and indented lines with its parts.
fn field(class: &FieldClass, around: Around<'_>, text: &mut Text) {
    match class {
        FieldClass::Bool(_) => text.kind("Boolean"),
        // The opening parenthesis is missing, as in babeltrace2.
        FieldClass::BitArray(_) => {
            text.kind("Bit array");
            text.push(" ");
            text.count(0, "flag");
            text.push(")");
        }
        FieldClass::BitMap { flags, .. } => bit_map(flags, text),
        FieldClass::Integer { layout, style } => integer(style, layout.bits, false, text),
        FieldClass::VarInteger(style) => integer(style, 64, true, text),
        FieldClass::Float(layout) => text.kind(match layout.bits {
            16 => "Half-precision real",
            32 => "Single-precision real",
            64 => "Double-precision real",
            _ => "Quadruple-precision real",
        }),
        FieldClass::Text { .. } | FieldClass::SizedText { .. } => text.kind("String"),
        FieldClass::Blob {
            length, media_type, ..
        } => {
            match length {
                Length::Static(length) => {
                    text.kind("Static BLOB");
                    text.push(" (Length ");
                    text.number(*length);
                    text.push(", ");
                }
                length => match location_of(length) {
                    Some(path) => {
                        text.kind("Dynamic BLOB (with length field)");
                        text.push(" (Length field location ");
                        location(path, around, text);
                        text.push(", ");
                    }
                    None => {
                        text.kind("Dynamic BLOB (no length field)");
                        text.push(" (");
                    }
                },
            }
            text.push("Media type `");
            text.value(media_type);
            text.push("`)");
        }
        FieldClass::Struct { members, .. } => structure(members, around, text),
        FieldClass::Array {
            element, length, ..
        } => {
            match length {
                Length::Static(length) => {
                    text.kind("Static array");
                    text.push(" (Length ");
                    text.number(*length);
                    text.push(")");
                }
                length => match location_of(length) {
                    Some(path) => {
                        text.kind("Dynamic array (with length field)");
                        text.push(" (Length field location ");
                        location(path, around, text);
                        text.push(")");
                    }
                    None => text.kind("Dynamic array (no length field)"),
                },
            }
            text.push(":\n");
            text.indented(|text| {
                text.margin();
                text.said("Element");
                text.push(": ");
                field(element, around, text);
            });
        }
        FieldClass::Optional {
            content,
            selector,
            when,
        } => optional(content, selector, when, around, text),
        FieldClass::Variant { options, selector } => variant(options, selector, around, text),
    }
}

fn bit_map(flags: &[Flag], text: &mut Text) {
    text.kind("Bit array");
    text.push(" ");
    text.count(flags.len(), "flag");
    text.push(")");
    if flags.is_empty() {
        return;
    }
    text.push(":");
    let mut sorted: Vec<&Flag> = flags.iter().collect();
    sorted.sort_by(|left, right| left.name.cmp(&right.name));
    text.indented(|text| {
        for flag in sorted {
            text.newline();
            text.margin();
            text.said(&flag.name);
            text.push(":");
            ranges(&flag.ranges, false, text);
        }
    });
}

fn integer(style: &IntegerStyle, bits: u32, small: bool, text: &mut Text) {
    text.kind(match (style.signed, &style.labels) {
        (true, Some(_)) => "Signed enumeration",
        (true, None) => "Signed integer",
        (false, Some(_)) => "Unsigned enumeration",
        (false, None) => "Unsigned integer",
    });
    text.push(" (");
    text.value(&format!("{bits}-bit"));
    text.push(", Base ");
    text.value(match style.base {
        Base::Binary => "2",
        Base::Octal => "8",
        Base::Decimal => "10",
        Base::Hexadecimal => "16",
    });
    if small {
        text.push(", Expect small values");
    }
    if let Some(labels) = &style.labels {
        text.push(", ");
        text.count(labels.mappings().len(), "mapping");
    }
    text.push(")");
    if let Some(labels) = &style.labels {
        mappings(labels, text);
    }
}

fn mappings(labels: &Labels, text: &mut Text) {
    let mut sorted: Vec<_> = labels.mappings().iter().collect();
    if !sorted.is_empty() {
        text.push(":");
    }
    sorted.sort_by(|left, right| left.label.cmp(&right.label));
    text.indented(|text| {
        for mapping in sorted {
            text.newline();
            text.margin();
            text.said(&mapping.label);
            text.push(":");
            ranges(&mapping.ranges, labels.is_signed(), text);
        }
    });
}

/// Writes ranges as ` [LOW, HIGH]`, or ` [VALUE]`, in their order.
fn ranges(ranges: &[(u64, u64)], signed: bool, text: &mut Text) {
    let mut sorted = ranges.to_vec();
    let flip = u64::from(signed) << 63;
    sorted.sort_by_key(|&(low, high)| (low ^ flip, high ^ flip));
    let bound = |value: u64, text: &mut Text| {
        if signed {
            text.signed(value as i64);
        } else {
            text.number(value);
        }
    };
    for (low, high) in sorted {
        text.push(" [");
        bound(low, text);
        if high != low {
            text.push(", ");
            bound(high, text);
        }
        text.push("]");
    }
}

fn selector_ranges(selector: &Selector, text: &mut Text) {
    match selector {
        Selector::True => {}
        Selector::Unsigned(values) => ranges(values, false, text),
        Selector::Signed(values) => {
            let bits: Vec<_> = values
                .iter()
                .map(|&(low, high)| (low as u64, high as u64))
                .collect();
            ranges(&bits, true, text);
        }
    }
}

fn structure(members: &[Member], around: Around<'_>, text: &mut Text) {
    text.kind("Structure");
    text.push(" (");
    text.count(members.len(), "member");
    text.push(")");
    if !members.is_empty() {
        text.push(":");
    }
    text.indented(|text| {
        for member in members {
            text.newline();
            text.margin();
            text.field(&member.name);
            text.push(":");
            if member.attributes.is_empty() {
                text.push(" ");
                field(&member.class, around, text);
                continue;
            }
            text.newline();
            text.indented(|text| {
                text.property("Field class", |text| field(&member.class, around, text));
                attributes::write(&member.attributes, text);
            });
        }
    });
}

fn optional(
    content: &FieldClass,
    selector: &FieldRef,
    when: &Selector,
    around: Around<'_>,
    text: &mut Text,
) {
    let path = expressible(selector);
    text.kind(match (path, when) {
        (None, _) => "Option (no selector)",
        (_, Selector::True) => "Option (boolean selector)",
        (_, Selector::Unsigned(_)) => "Option (unsigned integer selector)",
        (_, Selector::Signed(_)) => "Option (signed integer selector)",
    });
    if let Some(path) = path {
        text.push(" (Selector field location ");
        location(path, around, text);
        text.push(")");
    }
    text.push(":\n");
    text.indented(|text| {
        match (path, when) {
            (None, _) => {}
            (_, Selector::True) => text.yes_or_no("Selector is reversed", false),
            (_, when) => {
                text.margin();
                text.said("Selector ranges");
                text.push(":");
                selector_ranges(when, text);
                text.newline();
            }
        }
        text.margin();
        text.said("Content");
        text.push(": ");
        field(content, around, text);
    });
}

fn variant(options: &[VariantOption], selector: &FieldRef, around: Around<'_>, text: &mut Text) {
    let path = expressible(selector);
    let signed = options
        .iter()
        .any(|option| matches!(option.when, Selector::Signed(_)));
    text.kind(match (path, signed) {
        (None, _) => "Variant (no selector)",
        (_, false) => "Variant (unsigned integer selector)",
        (_, true) => "Variant (signed integer selector)",
    });
    text.push(" (");
    text.count(options.len(), "option");
    if let Some(path) = path {
        text.push(", Selector field location ");
        location(path, around, text);
    }
    text.push(")");
    if !options.is_empty() {
        text.push(":");
    }
    text.indented(|text| {
        for option in options {
            text.newline();
            text.margin();
            text.field(option.name.as_deref().unwrap_or("Unnamed"));
            text.push(":");
            if path.is_some() {
                selector_ranges(&option.when, text);
                text.push(":");
            }
            text.push(" ");
            field(&option.class, around, text);
        }
    });
}

fn location_of(length: &Length) -> Option<&FieldPath> {
    match length {
        Length::Dynamic(reference) => expressible(reference),
        _ => None,
    }
}

/// The place of a field, if babeltrace2 prints it.
fn expressible(reference: &FieldRef) -> Option<&FieldPath> {
    let first = reference.targets.first()?;
    let reported = |path: &FieldPath| scope_name(path.scope).is_some();
    reference.targets.iter().all(reported).then_some(first)
}

/// What places of fields begin with. Those in packets and event headers are not printed.
const fn scope_name(scope: Scope) -> Option<&'static str> {
    match scope {
        Scope::PacketHeader | Scope::PacketContext | Scope::EventHeader => None,
        Scope::CommonContext => Some("Event common context"),
        Scope::SpecificContext => Some("Event specific context"),
        Scope::Payload => Some("Event payload"),
    }
}

impl<'a> Around<'a> {
    fn scope(&self, scope: Scope) -> Option<&'a FieldClass> {
        match scope {
            Scope::PacketHeader => self.trace.packet_header.as_ref(),
            Scope::PacketContext => self.stream.packet_context.as_ref(),
            Scope::EventHeader => self.stream.event_header.as_ref(),
            Scope::CommonContext => self.stream.common_context.as_ref(),
            Scope::SpecificContext => self.event?.specific_context.as_ref(),
            Scope::Payload => self.event?.payload.as_ref(),
        }
    }
}

/// Writes a place as `[SCOPE: NAME, NAME]`.
fn location(path: &FieldPath, around: Around<'_>, text: &mut Text) {
    text.push("[");
    text.value(scope_name(path.scope).unwrap_or_default());
    text.push(": ");
    let mut at = around.scope(path.scope);
    let mut first = true;
    for step in &path.steps {
        let mut name = None;
        at = match (at, *step) {
            (Some(FieldClass::Struct { members, .. }), Step::Child(position)) => {
                members.get(position).map(|member| {
                    name = Some(&*member.name);
                    &member.class
                })
            }
            (Some(FieldClass::Variant { options, .. }), Step::Child(position)) => {
                options.get(position).map(|option| &option.class)
            }
            (Some(FieldClass::Array { element, .. }), Step::Element) => Some(&**element),
            (Some(FieldClass::Optional { content, .. }), Step::Content) => Some(&**content),
            _ => None,
        };
        if let Some(name) = name {
            if !std::mem::take(&mut first) {
                text.push(", ");
            }
            text.value(name);
        }
    }
    text.push("]");
}
