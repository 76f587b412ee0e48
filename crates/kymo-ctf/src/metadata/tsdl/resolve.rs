//! Which field a name refers to (CTF 1.8.3 §7.3).
//!
//! A relative name is looked for among the fields that come before in the same
//! structure, then outwards in those around it. An absolute one begins with a scope.
//! Arrays on the way are their element, and a variant need not be named: all its options
//! that have such a field are meant.

use kymo_model::Scope;
use kymo_text::diagnostic::Diagnostic;

use super::build::{Roots, Shared};
use super::types::{Class, Enumeration, Type};
use crate::class::{FieldPath, Step};
use crate::metadata::lexer::Span;
use crate::metadata::tokens::Name;

/// The absolute names of the scopes.
pub(super) const SCOPES: [(&str, Scope); 6] = [
    ("trace.packet.header.", Scope::PacketHeader),
    ("stream.packet.context.", Scope::PacketContext),
    ("stream.event.header.", Scope::EventHeader),
    ("stream.event.context.", Scope::CommonContext),
    ("event.context.", Scope::SpecificContext),
    ("event.fields.", Scope::Payload),
];

/// A type within which the place lies, and the way on to that place.
#[derive(Clone, Copy)]
pub(super) struct Frame<'a> {
    pub(super) class: &'a Type,
    pub(super) step: Step,
}

/// A field that was found.
pub(super) struct Target<'a> {
    pub(super) path: FieldPath,
    pub(super) class: &'a Type,
    /// Where it is declared.
    pub(super) span: Span,
}

/// Looks up names from one place.
pub(super) struct Resolver<'r, 'a> {
    pub(super) roots: &'a Roots,
    /// The scope of the place.
    pub(super) scope: Scope,
    /// The way from the scope's structure to the place.
    pub(super) frames: &'r [Frame<'a>],
    pub(super) shared: &'r mut Shared,
}

impl Type {
    /// The labels of an enumeration.
    pub(super) fn labels(&self) -> Option<&Enumeration> {
        match &self.class {
            Class::Integer(integer) => integer.labels.as_deref(),
            _ => None,
        }
    }
}

/// That there is no such field.
pub(super) fn unknown(name: &Name) -> Diagnostic {
    Diagnostic::error(format!("unknown field `{}`", name.value))
        .at(name.span, "expected a field that comes before this one")
}

impl<'a> Resolver<'_, 'a> {
    /// The fields that a name refers to: one, or several in a variant's options. All
    /// come before the place.
    pub(super) fn resolve(&mut self, name: &Name) -> Result<Vec<Target<'a>>, Diagnostic> {
        let absolute = SCOPES
            .iter()
            .find_map(|(prefix, scope)| Some((*scope, name.value.strip_prefix(prefix)?)));
        let found = match absolute {
            Some((scope, rest)) => self.absolute(scope, rest, name)?,
            None if name.value.starts_with("env.") => {
                return Err(Diagnostic::error("the environment cannot select an option")
                    .at(name.span, "expected the name of an enumeration field"));
            }
            None => self.relative(name)?,
        };
        // An option beside that in which the place lies is never there with it.
        let found: Vec<_> = found
            .into_iter()
            .filter(|target| !self.is_alternative(target))
            .collect();
        if found.is_empty() {
            return Err(unknown(name));
        }
        for target in &found {
            if !self.comes_before(target) {
                return Err(Diagnostic::error(format!(
                    "`{}` does not come before this",
                    name.value
                ))
                .at(name.span, "expected a field that comes before this one")
                .because(target.span, "this is the field"));
            }
        }
        Ok(found)
    }

    fn absolute(
        &mut self,
        scope: Scope,
        rest: &str,
        name: &Name,
    ) -> Result<Vec<Target<'a>>, Diagnostic> {
        if scope > self.scope {
            return Err(
                Diagnostic::error(format!("`{}` does not come before this", name.value))
                    .at(name.span, "this part of an event is decoded later"),
            );
        }
        let roots = self.roots;
        let Some(root) = &roots[scope as usize] else {
            return Err(unknown(name));
        };
        let mut found = Vec::new();
        let parts: Vec<_> = rest.split('.').collect();
        let path = FieldPath {
            scope,
            steps: Vec::new(),
        };
        self.descend(root, &parts, path, name.span, name, &mut found)?;
        Ok(found)
    }

    fn relative(&mut self, name: &Name) -> Result<Vec<Target<'a>>, Diagnostic> {
        let parts: Vec<_> = name.value.split('.').collect();
        let mut later = None;
        for depth in (0..self.frames.len()).rev() {
            let Frame { class, step } = self.frames[depth];
            let (Class::Struct { fields, .. }, Step::Child(current)) = (&class.class, step) else {
                continue;
            };
            let Some((at, field)) = fields.find(parts[0]) else {
                continue;
            };
            if at > current || at == current && parts.len() == 1 {
                later = later.or(Some(field.declared.span));
                continue;
            }
            let path = FieldPath {
                scope: self.scope,
                steps: self.frames[..depth]
                    .iter()
                    .map(|frame| frame.step)
                    .collect(),
            };
            let mut found = Vec::new();
            self.descend(class, &parts, path, name.span, name, &mut found)?;
            if !found.is_empty() {
                return Ok(found);
            }
        }
        let error = unknown(name);
        Err(match later {
            Some(later) => error.because(later, "this field does not come before"),
            None => error,
        })
    }

    /// Collects what `parts` mean within `class`.
    fn descend(
        &mut self,
        class: &'a Type,
        parts: &[&str],
        mut path: FieldPath,
        span: Span,
        name: &Name,
        found: &mut Vec<Target<'a>>,
    ) -> Result<(), Diagnostic> {
        // Types that use each other may offer any number of ways.
        self.shared.spend(1, name.span)?;
        let [first, rest @ ..] = parts else {
            found.push(Target { path, class, span });
            return Ok(());
        };
        match &class.class {
            Class::Array { element, .. } => {
                path.steps.push(Step::Element);
                self.descend(element, parts, path, span, name, found)
            }
            Class::Struct { fields, .. } => {
                let Some((at, field)) = fields.find(first) else {
                    return Ok(());
                };
                path.steps.push(Step::Child(at));
                self.descend(&field.class, rest, path, field.declared.span, name, found)
            }
            Class::Variant { options, .. } => {
                let before = found.len();
                if let Some((at, option)) = options.find(first) {
                    let mut path = path.clone();
                    path.steps.push(Step::Child(at));
                    let span = option.declared.span;
                    self.descend(&option.class, rest, path, span, name, found)?;
                }
                if found.len() > before {
                    return Ok(());
                }
                for (at, option) in options.iter().enumerate() {
                    let mut path = path.clone();
                    path.steps.push(Step::Child(at));
                    let span = option.declared.span;
                    self.descend(&option.class, parts, path, span, name, found)?;
                }
                Ok(())
            }
            Class::Integer(_) | Class::Float(_) | Class::Text => Ok(()),
        }
    }

    /// Where the ways to the target and to the place part: the type, and the two steps.
    /// `None` where they do not.
    fn fork(&self, target: &Target<'a>) -> Option<(&'a Type, Step, Step)> {
        if target.path.scope != self.scope {
            return None;
        }
        self.frames
            .iter()
            .zip(&target.path.steps)
            .find(|(frame, step)| frame.step != **step)
            .map(|(frame, step)| (frame.class, *step, frame.step))
    }

    fn is_alternative(&self, target: &Target<'a>) -> bool {
        self.fork(target)
            .is_some_and(|(class, ..)| matches!(class.class, Class::Variant { .. }))
    }

    fn comes_before(&self, target: &Target<'a>) -> bool {
        if target.path.scope != self.scope {
            return target.path.scope < self.scope;
        }
        matches!(self.fork(target),
            Some((_, Step::Child(target), Step::Child(place))) if target < place)
    }
}
