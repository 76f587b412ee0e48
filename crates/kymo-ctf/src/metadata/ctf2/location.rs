//! Which field a location means (CTF2-SPEC-2.0, "field location").
//!
//! A location is a way from the structure of a scope, or from the structure in which it
//! is given, along the names of members. Arrays, optionals and variants on the way have no name:
//! of an array the element is meant that is being decoded, of a variant any option that
//! has such a field.

use kymo_model::Scope;
use kymo_text::diagnostic::Diagnostic;

use super::build::{Roots, Shared};
use super::json::{Kind, Span, Value};
use super::properties::Properties;
use super::types::{Class, Location, Type};
use crate::class::{FieldPath, Step};
use crate::metadata::limits::Warnings;

/// The names of the scopes.
pub(super) const ORIGINS: [(&str, Scope); 6] = [
    ("packet-header", Scope::PacketHeader),
    ("packet-context", Scope::PacketContext),
    ("event-record-header", Scope::EventHeader),
    ("event-record-common-context", Scope::CommonContext),
    ("event-record-specific-context", Scope::SpecificContext),
    ("event-record-payload", Scope::Payload),
];

/// Reads a location.
pub(super) fn read(value: &Value<'_>, warnings: &mut Warnings) -> Result<Location, Diagnostic> {
    let (origin, path) = if let Kind::Array(values) = &value.kind {
        let Some((origin, path)) = values.split_first() else {
            return value.expected("a field location");
        };
        warnings.push(
            Diagnostic::warning("a field location as an array is of a draft of CTF 2")
                .at(value.span, "read as `origin` and `path`"),
        );
        (Some(origin.one_of(&ORIGINS)?), path)
    } else {
        let known = ["origin", "path"];
        let location = Properties::new(value, "a field location", &known, warnings)?;
        let origin = location.read("origin", |origin| origin.one_of(&ORIGINS))?;
        let path = location.require("path", |path| path.array("an array of names"))?;
        (origin, path)
    };
    match path.last().map(|last| &last.kind) {
        None => return value.expected("at least one name"),
        Some(Kind::Null) => return path[path.len() - 1].expected("the name of a field"),
        Some(_) => {}
    }
    let mut location = Location {
        origin,
        parents: 0,
        names: Vec::new(),
        span: value.span,
    };
    for step in path {
        match &step.kind {
            // Back from where the name before has led.
            Kind::Null if location.names.pop().is_some() => {}
            Kind::Null if origin.is_some() => {
                return Err(Diagnostic::error("a way out of the scope")
                    .at(step.span, "there is no structure around that of the scope"));
            }
            Kind::Null => location.parents += 1,
            _ => location.names.push(step.string()?),
        }
    }
    Ok(location)
}

impl Location {
    /// The names as they are shown in errors.
    fn path(&self) -> String {
        self.names.join(".")
    }
}

/// A type within which a place lies, and the way on to that place.
#[derive(Clone, Copy)]
pub(super) struct Frame<'a> {
    pub(super) class: &'a Type,
    pub(super) step: Step,
}

/// A field that was found.
pub(super) struct Target<'a> {
    pub(super) path: FieldPath,
    pub(super) class: &'a Type,
    /// Place of its name, or of its class where it has none.
    pub(super) span: Span,
}

/// Looks up locations from one place.
pub(super) struct Resolver<'r, 'a> {
    pub(super) roots: &'a Roots,
    /// The scope of the place.
    pub(super) scope: Scope,
    /// The way from the scope's structure to the place.
    pub(super) frames: &'r [Frame<'a>],
    pub(super) shared: &'r mut Shared,
}

impl<'a> Resolver<'_, 'a> {
    /// The fields that a location means: one, or several in a variant's options. All come
    /// before the place.
    pub(super) fn resolve(&mut self, location: &Location) -> Result<Vec<Target<'a>>, Diagnostic> {
        let (root, path) = self.start(location)?;
        let mut found = Vec::new();
        self.descend(root, location, 0, path, root.span, &mut found)?;
        // An option beside that in which the place lies is never there with it.
        found.retain(|target| !self.is_alternative(target));
        if found.is_empty() {
            return Err(Diagnostic::error(format!("no field `{}`", location.path()))
                .at(location.span, "expected the location of a field")
                .because(root.span, "looked for in this structure"));
        }
        // Ways are kept.
        let steps: usize = found.iter().map(|target| target.path.steps.len()).sum();
        self.shared.spend(steps / 8, location.span)?;
        for target in &found {
            if !self.comes_before(target) {
                return Err(Diagnostic::error(format!(
                    "`{}` does not come before this",
                    location.path()
                ))
                .at(location.span, "expected a field that is decoded before")
                .because(target.span, "this is the field"));
            }
        }
        Ok(found)
    }

    /// The structure at which the names of a location begin, and the way there.
    fn start(&self, location: &Location) -> Result<(&'a Type, FieldPath), Diagnostic> {
        if let Some(scope) = location.origin {
            let path = FieldPath {
                scope,
                steps: Vec::new(),
            };
            if scope > self.scope {
                return Err(Diagnostic::error(format!(
                    "`{}` does not come before this",
                    location.path()
                ))
                .at(location.span, "this scope is decoded later"));
            }
            return match &self.roots[scope as usize] {
                Some(root) => Ok((root, path)),
                None => Err(Diagnostic::error("a location in a scope that is not there")
                    .at(location.span, "this scope has no field class")),
            };
        }
        let mut structures = self
            .frames
            .iter()
            .enumerate()
            .rev()
            .filter(|(_, frame)| matches!(frame.class.class, Class::Struct { .. }));
        match structures.nth(location.parents) {
            Some((depth, frame)) => Ok((
                frame.class,
                FieldPath {
                    scope: self.scope,
                    steps: self.frames[..depth]
                        .iter()
                        .map(|frame| frame.step)
                        .collect(),
                },
            )),
            None => Err(Diagnostic::error("a way out of the scope").at(
                location.span,
                "there are not as many structures around this",
            )),
        }
    }

    /// Collects what the names of a location from `name` on mean within `class`.
    fn descend(
        &mut self,
        class: &'a Type,
        location: &Location,
        name: usize,
        mut path: FieldPath,
        span: Span,
        found: &mut Vec<Target<'a>>,
    ) -> Result<(), Diagnostic> {
        // Classes that use each other may offer any number of ways.
        self.shared.spend(1, location.span)?;
        match &class.class {
            Class::Optional { content, .. } => {
                path.steps.push(Step::Content);
                self.descend(content, location, name, path, span, found)
            }
            Class::Variant { options, .. } => {
                for (at, option) in options.iter().enumerate() {
                    let mut path = path.clone();
                    path.steps.push(Step::Child(at));
                    self.descend(&option.class, location, name, path, span, found)?;
                }
                Ok(())
            }
            _ if name == location.names.len() => {
                found.push(Target { path, class, span });
                Ok(())
            }
            Class::Struct { fields, .. } => {
                let Some((at, field)) = fields.find(&location.names[name]) else {
                    return Ok(());
                };
                path.steps.push(Step::Child(at));
                self.descend(&field.class, location, name + 1, path, field.span, found)
            }
            Class::Array { element, .. } => {
                path.steps.push(Step::Element);
                if !self.is_around(&path) {
                    return Err(Diagnostic::error(format!(
                        "`{}` lies in an array that is not being decoded here",
                        location.path()
                    ))
                    .at(location.span, "expected a field that there is once")
                    .because(span, "this is the array"));
                }
                self.descend(element, location, name, path, span, found)
            }
            _ => Ok(()),
        }
    }

    /// Whether the place lies on a way.
    fn is_around(&self, path: &FieldPath) -> bool {
        let steps = self.frames.iter().map(|frame| frame.step);
        path.scope == self.scope
            && path.steps.len() <= self.frames.len()
            && path.steps.iter().copied().eq(steps.take(path.steps.len()))
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
