//! Types, as they are declared: a tree that shares what is used several times.
//!
//! References to fields are still names, each with the fields that it can see where it is
//! written; [`super::build`] makes field classes of it.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;

use kymo_model::{Base, Labels};
use kymo_text::diagnostic::Diagnostic;

use crate::class::BitLayout;
use crate::deep::has_room;
use crate::metadata::lexer::Span;
use crate::metadata::limits::too_deep;
use crate::metadata::tokens::Name;

/// A type.
#[derive(Debug)]
pub(super) struct Type {
    pub(super) class: Class,
    /// How many types lie within each other; never more than the stack [has room for](has_room), so
    /// that recursion over types is safe.
    pub(super) height: usize,
}

/// What a type is.
#[derive(Debug)]
pub(super) enum Class {
    Integer(Integer),
    Float(BitLayout),
    Text,
    Struct {
        fields: Fields,
        align: u32,
    },
    Array {
        element: Rc<Type>,
        length: Length,
    },
    Variant {
        options: Rc<Fields>,
        tag: Option<Rc<Reference>>,
    },
}

/// An integer or enumeration.
#[derive(Clone, Debug)]
pub(super) struct Integer {
    pub(super) layout: BitLayout,
    pub(super) signed: bool,
    pub(super) base: Base,
    /// Whether arrays of it are text.
    pub(super) text: bool,
    /// Position of the clock of which it is a value, and where that is said.
    pub(super) clock: Option<(usize, Span)>,
    pub(super) labels: Option<Rc<Enumeration>>,
}

/// The labels of an enumeration.
#[derive(Debug)]
pub(super) struct Enumeration {
    pub(super) labels: Arc<Labels>,
    pub(super) positions: HashMap<Arc<str>, usize>,
}

impl Enumeration {
    /// The ranges of a label, as bits; empty if the label does not exist.
    pub(super) fn ranges(&self, label: &str) -> &[(u64, u64)] {
        self.positions
            .get(label)
            .map_or(&[], |&at| &self.labels.mappings()[at].ranges)
    }
}

/// The length of an array.
#[derive(Debug)]
pub(super) enum Length {
    Static(u64),
    Field(Rc<Reference>),
}

/// A name that refers to a field.
#[derive(Debug)]
pub(super) struct Reference {
    pub(super) name: Name,
    /// The fields that precede the place where the name is written.
    pub(super) visible: Option<Rc<Visible>>,
    /// How the field was found, as far as the type was used.
    pub(super) found: Cell<Found>,
}

/// How the field of a reference was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// Not looked for yet: nothing uses the type.
    No,
    /// Where the name is written, or by its scope.
    There,
    /// Only where the type is used.
    AtUse,
}

/// The fields that precede a place, in a body and in those around it.
#[derive(Debug)]
pub(super) struct Visible {
    /// [`Fields::body`] of the structure or variant.
    pub(super) body: usize,
    /// How many of its fields precede the place.
    pub(super) before: usize,
    pub(super) around: Option<Rc<Visible>>,
}

/// The members of a structure or the options of a variant.
#[derive(Debug, Default)]
pub(super) struct Fields {
    /// Distinguishes the pairs of braces of a text.
    pub(super) body: usize,
    fields: Vec<Field>,
    positions: HashMap<String, usize>,
}

/// A member or option.
#[derive(Debug)]
pub(super) struct Field {
    /// The name as people see it.
    pub(super) name: Arc<str>,
    /// The name as it was declared, to which references and labels refer.
    pub(super) declared: Name,
    pub(super) class: Rc<Type>,
}

impl Fields {
    /// No fields yet, of a body of their own.
    pub(super) fn new(body: usize) -> Self {
        Self {
            body,
            ..Self::default()
        }
    }

    pub(super) fn len(&self) -> usize {
        self.fields.len()
    }

    pub(super) fn iter(&self) -> std::slice::Iter<'_, Field> {
        self.fields.iter()
    }

    /// The field with a declared name, and its position.
    pub(super) fn find(&self, declared: &str) -> Option<(usize, &Field)> {
        let at = *self.positions.get(declared)?;
        Some((at, &self.fields[at]))
    }

    /// Adds a field; `owner` is what errors call the whole.
    pub(super) fn push(
        &mut self,
        declared: Name,
        class: Rc<Type>,
        owner: &str,
    ) -> Result<(), Diagnostic> {
        if let Some((_, first)) = self.find(&declared.value) {
            let message = format!("{owner} has two fields `{}`", declared.value);
            return Err(Diagnostic::error(message)
                .at(declared.span, "declared again")
                .because(first.declared.span, "first declared here"));
        }
        self.positions
            .insert(declared.value.clone(), self.fields.len());
        self.fields.push(Field {
            name: declared.value.as_str().into(),
            declared,
            class,
        });
        Ok(())
    }

    /// Removes one leading underscore from each name (§4.1.8, §7), except where two
    /// fields would then have the same name.
    pub(super) fn remove_underscores(&mut self) {
        let mut taken: HashSet<Arc<str>> = self
            .iter()
            .filter(|field| !field.name.starts_with('_') || &*field.name == "_")
            .map(|field| field.name.clone())
            .collect();
        for field in &mut self.fields {
            let Some(shorter) = field.name.strip_prefix('_').filter(|name| !name.is_empty()) else {
                continue;
            };
            let shorter: Arc<str> = shorter.into();
            if taken.insert(shorter.clone()) {
                field.name = shorter;
            } else {
                taken.insert(field.name.clone());
            }
        }
    }
}

/// A type without parts.
pub(super) fn leaf(class: Class) -> Rc<Type> {
    Rc::new(Type { class, height: 1 })
}

/// A type with parts; `height` counts it and what lies within.
pub(super) fn compound(class: Class, height: usize, span: Span) -> Result<Rc<Type>, Diagnostic> {
    if !has_room(height) {
        return Err(too_deep(span));
    }
    Ok(Rc::new(Type { class, height }))
}
