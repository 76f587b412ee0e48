//! Names that refer to fields, where they are written: which fields each of them can see, and
//! whether it means one although nothing uses its type.

use std::cell::Cell;
use std::rc::Rc;
use std::{iter, mem};

use kymo_model::Scope;
use kymo_text::diagnostic::Diagnostic;

use super::build::{Roots, Shared};
use super::declare::Types;
use super::resolve::{Resolver, absolute, check_length, check_tag, in_array, unknown};
use super::types::{Class, Fields, Found, Reference, Type, Visible};
use crate::metadata::lexer::Span;
use crate::metadata::limits::{too_many_fields, weight};
use crate::metadata::tokens::Name;

/// A pair of braces whose fields are being declared.
#[derive(Default)]
pub(super) struct Body {
    pub(super) fields: Fields,
    is_structure: bool,
    /// What the units of bit fields are aligned to.
    pub(super) unit_align: u32,
    /// What is visible where the body begins.
    visible: Option<Rc<Visible>>,
}

/// What a reference is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    Length,
    Tag,
}

/// Names that may refer to fields which only the use of a type shows.
#[derive(Default)]
pub(super) struct References {
    /// The body in hand; outside of all bodies, one that stays empty.
    pub(super) body: Body,
    /// Those around it.
    around: Vec<Body>,
    /// How many bodies there were.
    count: usize,
    /// What is absolute, or unknown where it is written.
    open: Vec<Rc<Reference>>,
}

impl References {
    /// What is visible in this place.
    fn visible(&self) -> Option<Rc<Visible>> {
        (!self.around.is_empty()).then(|| {
            Rc::new(Visible {
                body: self.body.fields.body,
                before: self.body.fields.len(),
                around: self.body.visible.clone(),
            })
        })
    }

    /// Goes into a body.
    pub(super) fn enter(&mut self, is_structure: bool) {
        self.count += 1;
        let inner = Body {
            fields: Fields::new(self.count),
            is_structure,
            unit_align: 1,
            visible: self.visible(),
        };
        self.around.push(mem::replace(&mut self.body, inner));
    }

    /// Goes out of the body in hand.
    pub(super) fn leave(&mut self) -> Body {
        let around = self.around.pop().unwrap_or_default();
        mem::replace(&mut self.body, around)
    }

    /// How many references are open.
    pub(super) fn open(&self) -> usize {
        self.open.len()
    }
}

impl Types<'_> {
    /// A reference that is written in this place.
    pub(super) fn reference(
        &mut self,
        name: &Name,
        purpose: Purpose,
    ) -> Result<Rc<Reference>, Diagnostic> {
        if purpose == Purpose::Tag && name.value.starts_with("env.") {
            return Err(Diagnostic::error("the environment cannot select an option")
                .at(name.span, "expected the name of an enumeration field"));
        }
        let is_found = absolute(&name.value).is_none() && self.is_visible(name, purpose)?;
        let reference = Rc::new(Reference {
            name: name.clone(),
            visible: self.references.visible(),
            found: Cell::new(Found::No),
        });
        if !is_found {
            self.references.open.push(Rc::clone(&reference));
        }
        Ok(reference)
    }

    /// Whether a relative name means fields that precede it; they must serve the purpose.
    fn is_visible(&mut self, name: &Name, purpose: Purpose) -> Result<bool, Diagnostic> {
        let parts: Vec<_> = name.value.split('.').collect();
        let References { body, around, .. } = &self.references;
        spend(&mut self.budget, weight(around.len()), name)?;
        for body in iter::once(body).chain(around.iter().rev()) {
            let Some((_, field)) = body.fields.find(parts[0]).filter(|_| body.is_structure) else {
                continue;
            };
            let mut found = Vec::new();
            let mut search = Search {
                name,
                budget: &mut self.budget,
                found: &mut found,
            };
            search.descend(&field.class, &parts[1..], field.declared.span)?;
            for (class, span) in &found {
                match purpose {
                    Purpose::Length => check_length(name, class, *span)?,
                    Purpose::Tag => drop(check_tag(name, class, *span)?),
                }
            }
            if !found.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Refuses the references, from the one at `mark` on, that mean nothing and are in types that
    /// nothing uses; warns of those that mean something only where they are used. `roots` are the
    /// structures that absolute names can refer to, up to `last`.
    pub(super) fn close_references(
        &mut self,
        mark: usize,
        roots: &Roots,
        last: Scope,
        shared: &mut Shared,
    ) -> Result<(), Diagnostic> {
        for reference in self.references.open.drain(mark..) {
            let name = &reference.name;
            match (reference.found.get(), absolute(&name.value)) {
                (Found::There, _) => {}
                (Found::AtUse, _) => self.warnings.push(
                    Diagnostic::warning(format!("unknown field `{}`", name.value))
                        .at(name.span, "found only where the type is used")
                        .with_help("declare the type behind the field, in the same structure"),
                ),
                (Found::No, None) => return Err(unknown(name)),
                // What comes later is not known yet, and another block may have it.
                (Found::No, Some((scope, _))) if scope > last => {}
                (Found::No, Some(_)) => {
                    let mut resolver = Resolver {
                        roots,
                        scope: last,
                        frames: &[],
                        shared: &mut *shared,
                    };
                    resolver.exists(name)?;
                }
            }
        }
        Ok(())
    }
}

/// Counts what is looked at in search of fields.
fn spend(budget: &mut usize, amount: usize, name: &Name) -> Result<(), Diagnostic> {
    *budget = (budget.checked_sub(amount)).ok_or_else(|| too_many_fields(name.span))?;
    Ok(())
}

/// Looks for fields in types.
struct Search<'s, 't> {
    name: &'s Name,
    budget: &'s mut usize,
    found: &'s mut Vec<(&'t Type, Span)>,
}

impl<'t> Search<'_, 't> {
    fn descend(&mut self, class: &'t Type, parts: &[&str], span: Span) -> Result<(), Diagnostic> {
        // Types that use each other may offer any number of ways.
        spend(self.budget, 1, self.name)?;
        let [first, rest @ ..] = parts else {
            self.found.push((class, span));
            return Ok(());
        };
        match &class.class {
            Class::Array { element, .. } => {
                let before = self.found.len();
                self.descend(element, parts, span)?;
                match self.found.get(before) {
                    Some((_, declared)) => Err(in_array(self.name, *declared)),
                    None => Ok(()),
                }
            }
            Class::Struct { fields, .. } => match fields.find(first) {
                Some((_, field)) => self.descend(&field.class, rest, field.declared.span),
                None => Ok(()),
            },
            Class::Variant { options, .. } => {
                let before = self.found.len();
                if let Some((_, option)) = options.find(first) {
                    self.descend(&option.class, rest, option.declared.span)?;
                }
                if self.found.len() > before {
                    return Ok(());
                }
                for option in options.iter() {
                    self.descend(&option.class, parts, option.declared.span)?;
                }
                Ok(())
            }
            Class::Integer(_) | Class::Float(_) | Class::Text => Ok(()),
        }
    }
}
