//! Which field a name refers to (CTF 1.8.3 §7.3).
//!
//! A relative name is looked for among the fields that precede it in the structure in which it
//! is written, then outwards in those around that: a type keeps its fields wherever it is used
//! (§4.2.2). Only a name that means nothing there is looked for where the type is used. An
//! absolute one begins with a scope. An array on the way must hold the place, too: it is the
//! element in hand. A variant need not be named: all its options that have such a field are meant.

use kymo_model::Scope;
use kymo_text::diagnostic::Diagnostic;

use super::build::{Roots, Shared};
use super::types::{Class, Enumeration, Found, Integer, Reference, Type, Visible};
use crate::class::{FieldPath, Step};
use crate::metadata::lexer::Span;
use crate::metadata::limits::weight;
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

impl Frame<'_> {
    /// Whether the place lies in a structure of a body.
    fn is_in(&self, body: usize) -> bool {
        matches!(&self.class.class, Class::Struct { fields, .. } if fields.body == body)
    }
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

/// Reports an unknown field.
pub(super) fn unknown(name: &Name) -> Diagnostic {
    Diagnostic::error(format!("unknown field `{}`", name.value))
        .at(name.span, "expected a field that comes before this one")
}

/// That a field is in an array, of which no element is meant.
pub(super) fn in_array(name: &Name, declared: Span) -> Diagnostic {
    Diagnostic::error(format!("`{}` is in an array", name.value))
        .at(name.span, "expected a field that there is once")
        .because(declared, "this is the field")
}

/// The scope with which an absolute name begins, and the rest of the name.
pub(super) fn absolute(name: &str) -> Option<(Scope, &str)> {
    SCOPES
        .iter()
        .find_map(|(prefix, scope)| Some((*scope, name.strip_prefix(prefix)?)))
}

/// Checks that a field, declared at `span`, can be a length.
pub(super) fn check_length(name: &Name, class: &Type, span: Span) -> Result<(), Diagnostic> {
    match &class.class {
        Class::Integer(integer) if !integer.signed && integer.layout.bits <= 64 => Ok(()),
        Class::Integer(integer) if !integer.signed => Err(Diagnostic::error(format!(
            "a length of {} bits",
            integer.layout.bits
        ))
        .at(
            name.span,
            "expected the name of an integer of at most 64 bits",
        )
        .because(span, "this is the field")),
        _ => Err(
            Diagnostic::error(format!("`{}` is not an unsigned integer", name.value))
                .at(name.span, "expected the name of an unsigned integer field")
                .because(span, "this is the field"),
        ),
    }
}

/// Checks that a field, declared at `span`, can select a variant's option.
pub(super) fn check_tag<'t>(
    name: &Name,
    class: &'t Type,
    span: Span,
) -> Result<(&'t Integer, &'t Enumeration), Diagnostic> {
    match (&class.class, class.labels()) {
        (Class::Integer(integer), Some(labels)) => Ok((integer, labels)),
        _ => Err(
            Diagnostic::error(format!("`{}` is not an enumeration", name.value))
                .at(name.span, "expected the name of an enumeration field")
                .because(span, "this is the field"),
        ),
    }
}

impl<'a> Resolver<'_, 'a> {
    /// The fields that a reference means: one, or several in a variant's options. All come
    /// before the place.
    pub(super) fn refer(&mut self, reference: &Reference) -> Result<Vec<Target<'a>>, Diagnostic> {
        let name = &reference.name;
        self.shared.spend(weight(self.frames.len()), name.span)?;
        let (found, how) = match (absolute(&name.value), &reference.visible) {
            (None, Some(visible)) => match self.visible(name, visible)? {
                found if found.is_empty() => (self.resolve(name)?, Found::AtUse),
                found => (self.preceding(name, found)?, Found::There),
            },
            (None, None) => (self.resolve(name)?, Found::AtUse),
            (Some(_), _) => (self.resolve(name)?, Found::There),
        };
        if reference.found.get() != Found::AtUse {
            reference.found.set(how);
        }
        // Ways are kept.
        let steps: usize = found.iter().map(|target| target.path.steps.len()).sum();
        self.shared.spend(steps / 8, name.span)?;
        Ok(found)
    }

    /// The fields that a name means to a type that is written in this place.
    pub(super) fn resolve(&mut self, name: &Name) -> Result<Vec<Target<'a>>, Diagnostic> {
        let found = match absolute(&name.value) {
            Some((scope, rest)) => self.absolute(scope, rest, name)?,
            None => self.relative(name)?,
        };
        self.preceding(name, found)
    }

    /// The fields among those found that can be there with the place; checks that they come
    /// before it.
    fn preceding(
        &self,
        name: &Name,
        found: Vec<Target<'a>>,
    ) -> Result<Vec<Target<'a>>, Diagnostic> {
        // An option beside that in which the place lies is never there with it.
        let found: Vec<_> = found
            .into_iter()
            .filter(|target| !self.is_alternative(target))
            .collect();
        if found.is_empty() {
            return Err(unknown(name));
        }
        for target in &found {
            if target.path.steps[self.shared_steps(target)..].contains(&Step::Element) {
                return Err(in_array(name, target.span));
            }
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

    /// What a name means among the fields that precede the place where it is written.
    fn visible(&mut self, name: &Name, visible: &Visible) -> Result<Vec<Target<'a>>, Diagnostic> {
        let parts: Vec<_> = name.value.split('.').collect();
        let mut next = Some(visible);
        let mut depth = self.frames.len();
        while let Some(Visible {
            body,
            before,
            around,
        }) = next
        {
            // A type is used only within the bodies around it, so they are on the way, in order.
            depth = match self.frames[..depth]
                .iter()
                .rposition(|frame| frame.is_in(*body))
            {
                Some(depth) => depth,
                None => break,
            };
            let found = self.among(name, &parts, depth, *before)?.0;
            if !found.is_empty() {
                return Ok(found);
            }
            next = around.as_deref();
        }
        Ok(Vec::new())
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

    /// Checks that there is a field of an absolute name, wherever the place is.
    pub(super) fn exists(&mut self, name: &Name) -> Result<(), Diagnostic> {
        match absolute(&name.value) {
            Some((scope, rest)) if self.absolute(scope, rest, name)?.is_empty() => {
                Err(unknown(name))
            }
            _ => Ok(()),
        }
    }

    fn relative(&mut self, name: &Name) -> Result<Vec<Target<'a>>, Diagnostic> {
        let parts: Vec<_> = name.value.split('.').collect();
        let mut later = None;
        for depth in (0..self.frames.len()).rev() {
            let (found, hidden) = self.among(name, &parts, depth, usize::MAX)?;
            if !found.is_empty() {
                return Ok(found);
            }
            later = later.or(hidden);
        }
        let error = unknown(name);
        Err(match later {
            Some(later) => error.because(later, "this field does not come before"),
            None => error,
        })
    }

    /// What a name means in a structure on the way, of which only the first few fields are visible;
    /// and the field of that name that does not come before the place.
    fn among(
        &mut self,
        name: &Name,
        parts: &[&str],
        depth: usize,
        visible: usize,
    ) -> Result<(Vec<Target<'a>>, Option<Span>), Diagnostic> {
        let mut found = Vec::new();
        let Frame { class, step } = self.frames[depth];
        let (Class::Struct { fields, .. }, Step::Child(current)) = (&class.class, step) else {
            return Ok((found, None));
        };
        let Some((at, field)) = fields.find(parts[0]) else {
            return Ok((found, None));
        };
        let is_around = at == current && parts.len() > 1;
        if at >= current.min(visible) && !is_around {
            return Ok((found, Some(field.declared.span)));
        }
        let path = FieldPath {
            scope: self.scope,
            steps: self.frames[..depth]
                .iter()
                .map(|frame| frame.step)
                .collect(),
        };
        self.descend(class, parts, path, name.span, name, &mut found)?;
        Ok((found, None))
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

    /// How many steps the ways to the target and to the place have in common.
    fn shared_steps(&self, target: &Target<'a>) -> usize {
        if target.path.scope != self.scope {
            return 0;
        }
        (self.frames.iter().zip(&target.path.steps))
            .take_while(|(frame, step)| frame.step == **step)
            .count()
    }

    /// Where the ways to the target and to the place part: the type, and the two steps.
    /// `None` where they do not.
    fn fork(&self, target: &Target<'a>) -> Option<(&'a Type, Step, Step)> {
        if target.path.scope != self.scope {
            return None;
        }
        let at = self.shared_steps(target);
        let (frame, step) = (self.frames.get(at)?, target.path.steps.get(at)?);
        Some((frame.class, *step, frame.step))
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
