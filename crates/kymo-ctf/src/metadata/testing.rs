//! What tests of several languages need: field classes in short, and that all that is read can be
//! written.

use kymo_model::Base;

use super::fit::fit;
use super::parse_with;
use super::write::write;
use crate::class::{FieldClass, FieldRef, Length, Selector, Step, TraceClass};

/// Checks that a class model fits its own dialect as it is, and is read as it is written.
pub(super) fn is_written(class: &TraceClass) {
    let fitted = fit(class, class.dialect).unwrap();
    assert!(fitted.changes.is_empty(), "{:?}", fitted.changes);
    assert_eq!(fitted.model, *class);
    let text = write(class).unwrap();
    let read = parse_with(text.as_bytes(), "metadata", || class.byte_order);
    assert_eq!(read.unwrap().class, *class, "{text}");
}

pub(super) fn show(class: &FieldClass) -> String {
    match class {
        FieldClass::Integer { layout, style } => {
            let sign = if style.signed { 'i' } else { 'u' };
            let order = match layout.order {
                kymo_machine::ByteOrder::Little => "le",
                kymo_machine::ByteOrder::Big => "be",
            };
            let mut text = format!("{sign}{}{order}@{}", layout.bits, layout.align);
            if let Some(unit) = layout.unit {
                text += &format!("/{unit}");
            }
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
        }
        FieldClass::Float(layout) => format!("f{}@{}", layout.bits, layout.align),
        FieldClass::Text { .. } => "text".to_owned(),
        FieldClass::SizedText { length, .. } => format!("text[{}]", show_length(length)),
        FieldClass::Struct { members, min_align } => {
            let members: Vec<_> = members
                .iter()
                .map(|member| format!("{}: {}", member.name, show(&member.class)))
                .collect();
            let align = if *min_align > 1 {
                format!("@{min_align}")
            } else {
                String::new()
            };
            format!("{{{}}}{align}", members.join(", "))
        }
        FieldClass::Array {
            element,
            length,
            roles,
            ..
        } => {
            let roles: Vec<_> = roles.iter().map(|role| format!(" {role:?}")).collect();
            let length = show_length(length);
            format!("[{}; {length}]{}", show(element), roles.concat())
        }
        FieldClass::Variant { options, selector } => {
            let options: Vec<_> = options
                .iter()
                .map(|option| {
                    let when = show_when(&option.when);
                    let name = option.name.as_deref().unwrap_or_default();
                    format!("{name}{when}: {}", show(&option.class))
                })
                .collect();
            format!("<{}>({})", show_ref(selector), options.join(", "))
        }
        FieldClass::Optional {
            content,
            selector,
            when,
        } => {
            let when = show_when(when);
            format!("<{}>{when}: {}", show_ref(selector), show(content))
        }
        other => format!("{other:?}"),
    }
}

fn show_when(when: &Selector) -> String {
    match when {
        Selector::True => "true".to_owned(),
        Selector::Unsigned(ranges) => format!("{ranges:?}"),
        Selector::Signed(ranges) => format!("{ranges:?}"),
    }
}

fn show_length(length: &Length) -> String {
    match length {
        Length::Static(length) => length.to_string(),
        Length::Dynamic(reference) => show_ref(reference),
        Length::Inline(class) => show(class),
    }
}

/// The way to the fields that a reference means.
pub(super) fn show_ref(reference: &FieldRef) -> String {
    let targets: Vec<_> = reference
        .targets
        .iter()
        .map(|target| {
            let mut text = format!("{:?}", target.scope);
            for step in &target.steps {
                text += &match step {
                    Step::Child(at) => format!(".{at}"),
                    Step::Element => ".*".to_owned(),
                    Step::Content => ".?".to_owned(),
                };
            }
            text
        })
        .collect();
    targets.join("|")
}
