//! From field classes to types with the names that are declared.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use kymo_model::{Base, Labels};

use super::super::names;
use super::super::types::{Class, Enumeration, Fields, Integer, Length, Type, compound, leaf};
use super::Classes;
use crate::class::{BitLayout, FieldClass, FieldRef, Selector, VariantOption};
use crate::metadata::lexer::Span;
use crate::metadata::tokens::Spanned;
use crate::metadata::write::WriteError;

/// The type of a field class. `classes` are the structures of the scopes, in which selectors are
/// looked up. Its references have no names yet, since these depend on the types.
pub(super) fn raise(class: &FieldClass, classes: &Classes<'_>) -> Result<Rc<Type>, WriteError> {
    Ok(match class {
        FieldClass::Integer { layout, style } => leaf(Class::Integer(Integer {
            layout: *layout,
            signed: style.signed,
            base: style.base,
            text: false,
            clock: None,
            labels: style.labels.as_ref().map(|labels| {
                Rc::new(Enumeration {
                    labels: labels.clone(),
                    positions: HashMap::new(),
                })
            }),
        })),
        FieldClass::Float(layout) => leaf(Class::Float(*layout)),
        FieldClass::Text { .. } => leaf(Class::Text),
        FieldClass::SizedText { .. } => array(leaf(Class::Integer(character())))?,
        FieldClass::Array { element, .. } => array(raise(element, classes)?)?,
        FieldClass::Struct { members, min_align } => {
            let members = members.iter().map(|member| {
                let declared = names::declared(&member.name);
                Ok((declared, raise(&member.class, classes)?))
            });
            let (fields, height) = fields(members)?;
            let align = *min_align;
            whole(Class::Struct { fields, align }, height)?
        }
        FieldClass::Variant { options, selector } => {
            let labels = ByLabel::new(labels(selector, classes));
            let names: HashSet<_> = options.iter().filter_map(|o| o.name.as_deref()).collect();
            let parts = options.iter().map(|option| {
                let declared = declared_option(option, &names, &labels);
                Ok((declared, raise(&option.class, classes)?))
            });
            let (fields, height) = fields(parts)?;
            let options = Rc::new(fields);
            whole(Class::Variant { options, tag: None }, height)?
        }
        FieldClass::BitArray(_)
        | FieldClass::BitMap { .. }
        | FieldClass::Bool(_)
        | FieldClass::VarInteger(_)
        | FieldClass::Blob { .. }
        | FieldClass::Optional { .. } => {
            return Err(WriteError(
                "no class of CTF 1.8: TSDL has no such type".to_owned(),
            ));
        }
    })
}

/// The integer of which text of a known length is an array.
pub(super) fn character() -> Integer {
    Integer {
        layout: BitLayout {
            bits: 8,
            align: 8,
            order: kymo_machine::ByteOrder::Little,
            reversed: false,
            unit: None,
        },
        signed: false,
        base: Base::Decimal,
        text: true,
        clock: None,
        labels: None,
    }
}

fn array(element: Rc<Type>) -> Result<Rc<Type>, WriteError> {
    let height = element.height;
    let length = Length::Static(0);
    whole(Class::Array { element, length }, height)
}

/// A type with parts, of which the highest has a height.
fn whole(class: Class, height: usize) -> Result<Rc<Type>, WriteError> {
    compound(class, height + 1, Span::default()).map_err(|error| WriteError(error.message))
}

/// Members or options by their declared names, and the height of the highest.
fn fields(
    parts: impl Iterator<Item = Result<(String, Rc<Type>), WriteError>>,
) -> Result<(Fields, usize), WriteError> {
    let mut fields = Fields::default();
    let mut height = 0;
    for part in parts {
        let (value, class) = part?;
        height = height.max(class.height);
        let span = Span::default();
        fields
            .push(Spanned { value, span }, class, "a structure or variant")
            .map_err(|error| WriteError(error.message))?;
    }
    Ok((fields, height))
}

/// The labels of a selector; where there are several, all have the same.
fn labels<'a>(selector: &FieldRef, classes: &Classes<'a>) -> Option<&'a Labels> {
    let target = selector.targets.first()?;
    let class = classes[target.scope as usize]?.at(&target.steps)?;
    match class {
        FieldClass::Integer { style, .. } => style.labels.as_deref(),
        _ => None,
    }
}

/// What is declared for an option: its label says when it is selected.
fn declared_option(option: &VariantOption, names: &HashSet<&str>, labels: &ByLabel<'_>) -> String {
    let name = option.name.as_deref().unwrap_or_default();
    names::declared_options(name, |other| names.contains(other))
        .into_iter()
        .find(|candidate| labels.select(candidate, &option.when))
        .unwrap_or_else(|| names::declared(name))
}

/// What the labels of a selector stand for.
struct ByLabel<'l>(HashMap<&'l str, &'l [(u64, u64)]>);

impl<'l> ByLabel<'l> {
    fn new(labels: Option<&'l Labels>) -> Self {
        let mappings = labels.into_iter().flat_map(Labels::mappings);
        Self(mappings.map(|m| (&*m.label, &m.ranges[..])).collect())
    }

    /// Whether a label stands for the same values as a selector; of no values, whether there is no
    /// such label.
    fn select(&self, label: &str, when: &Selector) -> bool {
        let ranges = self.0.get(label).copied().unwrap_or_default();
        is_same(ranges, when)
    }
}

/// Whether the ranges of a label are those of a selector.
pub(in crate::metadata) fn is_same(ranges: &[(u64, u64)], when: &Selector) -> bool {
    match when {
        Selector::True => false,
        Selector::Unsigned(when) => ranges == when,
        Selector::Signed(when) => ranges
            .iter()
            .map(|&(low, high)| (low as i64, high as i64))
            .eq(when.iter().copied()),
    }
}
