//! Field classes as the metadata gives them: a tree that shares what aliases name.
//!
//! Locations are still names, since they mean something else wherever an alias is used;
//! [`super::build`] makes field classes of it.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use kymo_model::{Base, Flag, Labels, Scope};
use kymo_text::diagnostic::Diagnostic;

use super::json::Span;
use crate::class::{BitLayout, Encoding, Role};

/// A field class.
#[derive(Debug)]
pub(super) struct Type {
    pub(super) class: Class,
    pub(super) span: Span,
    /// How many field classes lie within each other; never more than the stack [has room
    /// for](crate::deep::has_room), so that recursion over them is safe.
    pub(super) height: usize,
}

/// What a field class is.
#[derive(Debug)]
pub(super) enum Class {
    BitArray(BitLayout),
    BitMap {
        layout: BitLayout,
        flags: Arc<[Flag]>,
    },
    Bool(BitLayout),
    Integer(Integer),
    Float(BitLayout),
    Text(Encoding),
    SizedText {
        length: Length,
        encoding: Encoding,
    },
    Blob {
        length: Length,
        media_type: String,
        /// Where it is said to be the UUID of the metadata.
        uuid: Option<Span>,
    },
    Struct {
        fields: Fields,
        min_align: u32,
    },
    Array {
        element: Rc<Type>,
        length: Length,
        min_align: u32,
    },
    Optional {
        content: Rc<Type>,
        selector: Location,
        /// The values of an integer for which there is something.
        when: Option<Vec<Range>>,
    },
    Variant {
        options: Vec<Choice>,
        selector: Location,
    },
}

/// An integer.
#[derive(Debug)]
pub(super) struct Integer {
    /// Its layout in a packet; `None` if its length varies.
    pub(super) layout: Option<BitLayout>,
    pub(super) signed: bool,
    pub(super) base: Base,
    pub(super) labels: Option<Arc<Labels>>,
    pub(super) roles: Vec<(Role, Span)>,
}

/// A length in elements or bytes.
#[derive(Debug)]
pub(super) enum Length {
    Static(u64),
    Field(Location),
}

/// Integers from `low` to `high`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Range {
    pub(super) low: i128,
    pub(super) high: i128,
    pub(super) span: Span,
}

/// Where the field is that gives a length or selects (CTF2-SPEC-2.0, "field location").
#[derive(Debug)]
pub(super) struct Location {
    /// The scope at whose structure the path begins; `None` if it begins at the
    /// structure around.
    pub(super) origin: Option<Scope>,
    /// How many structures to go out before.
    pub(super) parents: usize,
    /// The names on the way.
    pub(super) names: Vec<String>,
    pub(super) span: Span,
}

/// An option of a variant.
#[derive(Debug)]
pub(super) struct Choice {
    pub(super) name: Option<Arc<str>>,
    pub(super) class: Rc<Type>,
    pub(super) when: Vec<Range>,
}

/// A member of a structure.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: Arc<str>,
    /// Place of the name.
    pub(super) span: Span,
    pub(super) class: Rc<Type>,
    pub(super) attributes: Vec<(String, String)>,
}

/// The members of a structure.
#[derive(Debug, Default)]
pub(super) struct Fields {
    fields: Vec<Field>,
    positions: HashMap<Arc<str>, usize>,
}

impl Fields {
    pub(super) fn iter(&self) -> std::slice::Iter<'_, Field> {
        self.fields.iter()
    }

    /// The member with a name, and its position.
    pub(super) fn find(&self, name: &str) -> Option<(usize, &Field)> {
        let at = *self.positions.get(name)?;
        Some((at, &self.fields[at]))
    }

    /// Adds a member.
    pub(super) fn push(&mut self, field: Field) -> Result<(), Diagnostic> {
        if let Some((_, first)) = self.find(&field.name) {
            return Err(Diagnostic::error(format!(
                "a structure with two members `{}`",
                field.name
            ))
            .at(field.span, "named again")
            .because(first.span, "first named here"));
        }
        self.positions.insert(field.name.clone(), self.fields.len());
        self.fields.push(field);
        Ok(())
    }

    /// How many field classes lie within each other in the deepest member.
    pub(super) fn height(&self) -> usize {
        self.iter()
            .map(|field| field.class.height)
            .max()
            .unwrap_or(0)
    }
}
