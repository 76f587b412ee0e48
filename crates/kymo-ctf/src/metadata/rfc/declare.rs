//! Which types there are: declared ones by name, their parents, and those that need no
//! declaration.
//!
//! A type may be declared after it is used. Types declared within a section belong to it,
//! so that two sections can each have a `per_section_event_ctx`.

use std::collections::HashMap;

use kymo_text::diagnostic::Diagnostic;

use super::ast::{Block, BlockKind, Value};
use super::attributes;
use crate::metadata::lexer::Span;
use crate::metadata::tokens::Spanned;

/// How many ancestors a type may have.
const MAX_ANCESTORS: usize = 64;

/// What types derive from in the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Base {
    Integer,
    GccBitfield,
    Enum,
    Struct,
    Array,
    Sequence,
    Text,
    /// `uintN_t`, `intN_t`, `uint` or `int`, which the RFC uses without declaring them.
    Predefined {
        bits: u32,
        signed: bool,
    },
}

impl Base {
    /// The abstract type of the RFC, or predefined one, with a name.
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "integer" => Self::Integer,
            "gcc_bitfield" => Self::GccBitfield,
            "enum" => Self::Enum,
            "struct" => Self::Struct,
            "array" => Self::Array,
            "sequence" => Self::Sequence,
            "string" => Self::Text,
            "uint" | "int" => Self::Predefined {
                bits: 32,
                signed: name == "int",
            },
            _ => {
                let (digits, signed) = match name.strip_prefix("uint") {
                    Some(digits) => (digits, false),
                    None => (name.strip_prefix("int")?, true),
                };
                let digits = digits.strip_suffix("_t")?;
                let bits = digits.parse().ok().filter(|bits| (1..=64).contains(bits))?;
                // A number can be written in only one way.
                (!digits.starts_with('0')).then_some(Self::Predefined { bits, signed })?
            }
        })
    }

    /// What errors call a type of it.
    pub(super) fn description(self) -> &'static str {
        match self {
            Self::Integer | Self::Predefined { .. } => "an integer",
            Self::GccBitfield => "a bit field",
            Self::Enum => "an enumeration",
            Self::Struct => "a structure",
            Self::Array => "an array",
            Self::Sequence => "a sequence",
            Self::Text => "a string",
        }
    }

    /// The attributes that a type of it has. An integer with a map is an enumeration.
    pub(super) fn attributes(self) -> &'static [&'static str] {
        match self {
            Self::Integer | Self::Enum | Self::Predefined { .. } => {
                &["parent", "signed", "byte_order", "size", "align", "map"]
            }
            Self::GccBitfield => &[
                "parent",
                "signed",
                "byte_order",
                "size",
                "align",
                "map",
                "unit_size",
            ],
            Self::Struct => &["parent", "fields"],
            Self::Array => &["parent", "length", "elem_type"],
            Self::Sequence => &["parent", "length_type", "elem_type"],
            Self::Text => &["parent", "encoding"],
        }
    }
}

/// What a name stands for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Found {
    /// Position of a declaration.
    Declared(usize),
    Base(Base),
}

/// A type and its ancestors.
#[derive(Debug)]
pub(super) struct Lineage<'a> {
    /// The bodies, from the type's own on, each with the scope in which it was written.
    bodies: Vec<(&'a Block, usize)>,
    pub(super) base: Base,
}

impl<'a> Lineage<'a> {
    /// A lineage that ends in `base`. Bit fields and enumerations whose abstract types are
    /// written out derive from `integer`, and still are what those say.
    fn new(bodies: Vec<(&'a Block, usize)>, base: Base) -> Self {
        let is_integer = matches!(base, Base::Integer | Base::Predefined { .. });
        let own = bodies.iter().find_map(|(body, _)| {
            let own = Base::named(&body.name.as_ref()?.value)?;
            (is_integer && matches!(own, Base::GccBitfield | Base::Enum)).then_some(own)
        });
        Self {
            bodies,
            base: own.unwrap_or(base),
        }
    }

    /// The value of an attribute, the type's own or inherited, and the body that gives it with
    /// its scope.
    pub(super) fn get(&self, key: &str) -> Option<(&'a Spanned<Value>, &'a Block, usize)> {
        let mut bodies = self.bodies.iter();
        bodies.find_map(|&(body, scope)| Some((attributes::get(body, key)?, body, scope)))
    }

    /// The value of an attribute, read by a function of [`attributes`].
    pub(super) fn read<T>(
        &self,
        key: &str,
        reader: impl FnOnce(&'a Spanned<Value>) -> Result<T, Diagnostic>,
    ) -> Result<Option<T>, Diagnostic> {
        self.get(key).map(|(value, ..)| reader(value)).transpose()
    }
}

/// A declared type.
#[derive(Clone, Copy, Debug)]
pub(super) struct Declaration<'a> {
    pub(super) body: &'a Block,
    /// Place of its name.
    pub(super) span: Span,
    pub(super) scope: usize,
}

/// The declared types of the trace (scope 0) and of each section.
#[derive(Debug)]
pub(super) struct Declarations<'a> {
    all: Vec<Declaration<'a>>,
    /// Positions in `all` by scope and name.
    scopes: Vec<HashMap<&'a str, usize>>,
}

impl<'a> Declarations<'a> {
    pub(super) fn new() -> Self {
        Self {
            all: Vec::new(),
            scopes: vec![HashMap::new()],
        }
    }

    /// A new scope within that of the trace.
    pub(super) fn scope(&mut self) -> usize {
        self.scopes.push(HashMap::new());
        self.scopes.len() - 1
    }

    /// Declares a type, if it has a name.
    pub(super) fn declare(&mut self, body: &'a Block, scope: usize) -> Result<(), Diagnostic> {
        let Some(name) = &body.name else {
            return Ok(());
        };
        let previous = self.scopes[scope].insert(&name.value, self.all.len());
        if let Some(first) = previous {
            return Err(
                Diagnostic::error(format!("type `{}` is declared twice", name.value))
                    .at(name.span, "declared again in the same scope")
                    .because(self.all[first].span, "first declared here"),
            );
        }
        self.all.push(Declaration {
            body,
            span: name.span,
            scope,
        });
        Ok(())
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn get(&self, at: usize) -> Declaration<'a> {
        self.all[at]
    }

    /// The declaration of a name in the scope of the trace.
    pub(super) fn of_trace(&self, name: &str) -> Option<usize> {
        self.scopes[0].get(name).copied()
    }

    /// What a name stands for in a scope.
    pub(super) fn find(&self, name: &str, scope: usize, span: Span) -> Result<Found, Diagnostic> {
        self.find_but(None, name, scope).ok_or_else(|| {
            Diagnostic::error(format!("unknown type `{name}`"))
                .at(span, "expected the name of a type that is declared")
        })
    }

    /// The same for others than one: what derives from its own name derives from what the
    /// name stands for elsewhere.
    fn find_but(&self, other: Option<&Block>, name: &str, scope: usize) -> Option<Found> {
        let is_other = |at: &usize| !other.is_some_and(|b| std::ptr::eq(b, self.all[*at].body));
        let declared = [scope, 0].into_iter().find_map(|scope| {
            let at = self.scopes[scope].get(name).copied();
            at.filter(is_other)
        });
        declared
            .map(Found::Declared)
            .or_else(|| Base::named(name).map(Found::Base))
    }

    /// A type and its ancestors (§4.1.1).
    pub(super) fn lineage(&self, body: &'a Block, scope: usize) -> Result<Lineage<'a>, Diagnostic> {
        let mut bodies = vec![(body, scope)];
        let (mut body, mut scope) = (body, scope);
        loop {
            let Some(parent) = attributes::get(body, "parent") else {
                // The RFC's abstract types, written out, have none.
                let own = body.name.as_ref().and_then(|name| Base::named(&name.value));
                let base = own.filter(|base| !matches!(base, Base::Predefined { .. }));
                let base =
                    base.ok_or_else(|| attributes::missing("this type", "parent", body.span))?;
                return Ok(Lineage::new(bodies, base));
            };
            let name = attributes::name(parent)?;
            match self.find_but(Some(body), name, scope) {
                Some(Found::Base(base)) => return Ok(Lineage::new(bodies, base)),
                Some(Found::Declared(at)) => {
                    let known = self.all[at];
                    if bodies.iter().any(|(b, _)| std::ptr::eq(*b, known.body)) {
                        return Err(circle(name, parent.span, known.span));
                    }
                    if bodies.len() >= MAX_ANCESTORS {
                        return Err(Diagnostic::error("a type with too many ancestors").at(
                            parent.span,
                            format!("expected at most {MAX_ANCESTORS} of them"),
                        ));
                    }
                    (body, scope) = (known.body, known.scope);
                    bodies.push((body, scope));
                }
                None => {
                    return Err(match self.find(name, scope, parent.span)? {
                        Found::Declared(at) => circle(name, parent.span, self.all[at].span),
                        Found::Base(_) => attributes::missing("this type", "parent", body.span),
                    });
                }
            }
        }
    }

    /// The alignment that a type of the trace declares or inherits from another one that is
    /// declared; `None` where none does.
    pub(super) fn declared_align(&self, name: &str) -> Result<Option<u32>, Diagnostic> {
        let Some(at) = self.of_trace(name) else {
            return Ok(None);
        };
        let Declaration { body, scope, .. } = self.all[at];
        self.lineage(body, scope)?.read("align", align)
    }

    /// Whether a declaration is of an abstract type.
    pub(super) fn is_abstract(&self, at: usize) -> bool {
        self.all[at].body.kind == BlockKind::AbstractType
    }
}

pub(super) fn align(value: &Spanned<Value>) -> Result<u32, Diagnostic> {
    attributes::power(value, "an alignment")
}

fn circle(name: &str, span: Span, declared: Span) -> Diagnostic {
    Diagnostic::error(format!("type `{name}` is its own ancestor"))
        .at(span, "expected another type")
        .because(declared, "declared here")
}
