//! From types to field classes: locations resolved, roles checked.
//!
//! An alias may be used in many places, and its locations mean something else in each of
//! them; so every use makes field classes of its own. How many there may be in all is limited,
//! since aliases that use each other twice could make any number out of little text.

use std::rc::Rc;

use kymo_model::Scope;
use kymo_text::diagnostic::Diagnostic;

use super::classes::ROLES;
use super::json::Span;
use super::location::{Frame, Resolver, Target};
use super::ranges::too_large;
use super::types::{Class, Integer, Length, Location, Range, Type};
use crate::class::{
    BitLayout, FieldClass, FieldRef, IntegerStyle, Length as ClassLength, Member, Role, Selector,
    Step, VariantOption,
};
use crate::metadata::limits::{SPARE_CLASSES, weight};

/// The structures of the scopes, as far as they are known.
pub(super) type Roots = [Option<Rc<Type>>; 6];

/// What is shared by all field classes of a trace.
pub(super) struct Shared {
    /// How many more field classes there may be.
    budget: usize,
}

impl Shared {
    /// The limits of a trace whose metadata has `text_length` bytes.
    pub(super) fn new(text_length: usize) -> Self {
        Self {
            budget: text_length.saturating_add(SPARE_CLASSES),
        }
    }

    /// Counts what is about to be made.
    pub(super) fn spend(&mut self, amount: usize, span: Span) -> Result<(), Diagnostic> {
        match self.budget.checked_sub(amount) {
            Some(rest) => {
                self.budget = rest;
                Ok(())
            }
            None => Err(
                Diagnostic::error("more field classes than a trace may have")
                    .at(span, "this one is too much")
                    .with_help("aliases are used too often within each other"),
            ),
        }
    }
}

/// What the roles of fields may refer to.
#[derive(Clone, Copy)]
pub(super) struct Surroundings {
    /// Whether the metadata has a UUID.
    pub(super) has_uuid: bool,
    /// Whether the stream class has a default clock.
    pub(super) has_clock: bool,
}

/// Makes the field class of one scope.
pub(super) struct Builder<'a> {
    shared: &'a mut Shared,
    roots: &'a Roots,
    scope: Scope,
    surroundings: Surroundings,
    frames: Vec<Frame<'a>>,
}

/// What kind of value selects.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Key {
    Bool,
    Unsigned,
    Signed,
}

impl<'a> Builder<'a> {
    /// Makes the field class of a scope, where `roots` has a structure for it.
    pub(super) fn scope(
        shared: &'a mut Shared,
        roots: &'a Roots,
        scope: Scope,
        surroundings: Surroundings,
    ) -> Result<Option<FieldClass>, Diagnostic> {
        let mut builder = Builder {
            shared,
            roots,
            scope,
            surroundings,
            frames: Vec::new(),
        };
        let root = roots[scope as usize].as_ref();
        root.map(|root| builder.class(root)).transpose()
    }

    fn class(&mut self, class: &'a Type) -> Result<FieldClass, Diagnostic> {
        self.shared.spend(weight(self.frames.len()), class.span)?;
        Ok(match &class.class {
            Class::BitArray(layout) => FieldClass::BitArray(*layout),
            Class::BitMap { layout, flags } => FieldClass::BitMap {
                layout: *layout,
                flags: flags.clone(),
            },
            Class::Bool(layout) => FieldClass::Bool(*layout),
            Class::Integer(integer) => self.integer(integer)?,
            Class::Float(layout) => FieldClass::Float(*layout),
            Class::Text(encoding) => FieldClass::Text {
                encoding: *encoding,
                align: 8,
            },
            Class::SizedText { length, encoding } => FieldClass::SizedText {
                length: self.length(length)?,
                encoding: *encoding,
                align: 8,
            },
            Class::Blob {
                length,
                media_type,
                uuid,
            } => {
                if let Some(role) = uuid {
                    self.check_uuid(length, *role)?;
                }
                FieldClass::Blob {
                    length: self.length(length)?,
                    media_type: media_type.clone(),
                    roles: uuid.iter().map(|_| Role::MetadataUuid).collect(),
                }
            }
            Class::Struct { fields, min_align } => {
                let mut members = Vec::new();
                for (at, field) in fields.iter().enumerate() {
                    members.push(Member {
                        name: field.name.clone(),
                        class: self.child(class, Step::Child(at), &field.class)?,
                        attributes: field.attributes.clone(),
                    });
                }
                FieldClass::Struct {
                    members,
                    min_align: *min_align,
                }
            }
            Class::Array {
                element,
                length,
                min_align,
            } => FieldClass::Array {
                length: self.length(length)?,
                element: Box::new(self.child(class, Step::Element, element)?),
                min_align: *min_align,
                roles: Vec::new(),
            },
            Class::Optional {
                content,
                selector,
                when,
            } => {
                let (key, field) = self.key(selector)?;
                FieldClass::Optional {
                    when: self.when(key, when.as_deref(), selector)?,
                    content: Box::new(self.child(class, Step::Content, content)?),
                    selector: field,
                }
            }
            Class::Variant { options, selector } => {
                let (key, field) = self.key(selector)?;
                let mut classes = Vec::new();
                for (at, option) in options.iter().enumerate() {
                    classes.push(VariantOption {
                        name: option.name.clone(),
                        when: self.when(key, Some(&option.when), selector)?,
                        class: self.child(class, Step::Child(at), &option.class)?,
                    });
                }
                FieldClass::Variant {
                    options: classes,
                    selector: field,
                }
            }
        })
    }

    fn child(
        &mut self,
        parent: &'a Type,
        step: Step,
        class: &'a Type,
    ) -> Result<FieldClass, Diagnostic> {
        self.frames.push(Frame {
            class: parent,
            step,
        });
        let class = self.class(class);
        self.frames.pop();
        class
    }

    // References.

    fn resolve(&mut self, location: &Location) -> Result<Vec<Target<'a>>, Diagnostic> {
        let mut resolver = Resolver {
            roots: self.roots,
            scope: self.scope,
            frames: &self.frames,
            shared: self.shared,
        };
        resolver.resolve(location)
    }

    fn length(&mut self, length: &Length) -> Result<ClassLength, Diagnostic> {
        let location = match length {
            Length::Static(length) => return Ok(ClassLength::Static(*length)),
            Length::Field(location) => location,
        };
        let targets = self.resolve(location)?;
        for target in &targets {
            narrow(target, location, "length")?;
            if key(target.class) != Some(Key::Unsigned) {
                return Err(
                    Diagnostic::error("a length that is not an unsigned integer")
                        .at(
                            location.span,
                            "expected the location of an unsigned integer",
                        )
                        .because(target.span, "this is the field"),
                );
            }
        }
        Ok(ClassLength::Dynamic(field_ref(targets)))
    }

    /// The field that selects, and what kind of value it has.
    fn key(&mut self, location: &Location) -> Result<(Key, FieldRef), Diagnostic> {
        let targets = self.resolve(location)?;
        let mut known: Option<(Key, Span)> = None;
        for target in &targets {
            narrow(target, location, "selector")?;
            let Some(key) = key(target.class) else {
                return Err(
                    Diagnostic::error("a selector that is neither integer nor boolean")
                        .at(location.span, "expected the location of such a field")
                        .because(target.span, "this is the field"),
                );
            };
            match known {
                Some((other, first)) if other != key => {
                    return Err(Diagnostic::error("a selector of different types")
                        .at(
                            location.span,
                            "expected fields that are all unsigned, all signed or all boolean",
                        )
                        .because(first, "this is one")
                        .because(target.span, "this is another"));
                }
                _ => known = Some((key, target.span)),
            }
        }
        // A location that means nothing is an error already.
        let key = known.map_or(Key::Unsigned, |(key, _)| key);
        Ok((key, field_ref(targets)))
    }

    /// The values of a selector that select something.
    fn when(
        &mut self,
        key: Key,
        ranges: Option<&[Range]>,
        location: &Location,
    ) -> Result<Selector, Diagnostic> {
        let ranges = match (key, ranges) {
            (Key::Bool, None) => return Ok(Selector::True),
            (Key::Bool, Some(ranges)) => {
                let span = ranges.first().map_or(location.span, |range| range.span);
                return Err(Diagnostic::error("ranges of a boolean selector")
                    .at(span, "expected no ranges")
                    .because(location.span, "this field is a boolean"));
            }
            (_, None) => {
                return Err(Diagnostic::error("an integer selector without ranges")
                    .at(location.span, "this field is an integer")
                    .with_help("expected a property `\"selector-field-ranges\"`"));
            }
            (_, Some(ranges)) => ranges,
        };
        self.shared.spend(ranges.len(), location.span)?;
        if key == Key::Signed {
            let signed = |range: &Range| match (i64::try_from(range.low), range.high.try_into()) {
                (Ok(low), Ok(high)) => Ok((low, high)),
                _ => Err(too_large(range)),
            };
            return Ok(Selector::Signed(
                ranges.iter().map(signed).collect::<Result<_, _>>()?,
            ));
        }
        let unsigned = |range: &Range| match (u64::try_from(range.low), range.high.try_into()) {
            (Ok(low), Ok(high)) => Ok((low, high)),
            _ => Err(
                Diagnostic::error("a negative range of an unsigned selector")
                    .at(range.span, "expected numbers from 0 on")
                    .because(location.span, "this field is an unsigned integer"),
            ),
        };
        Ok(Selector::Unsigned(
            ranges.iter().map(unsigned).collect::<Result<_, _>>()?,
        ))
    }

    // Roles (CTF2-SPEC-2.0 §5.6.1, §5.8.1).

    fn integer(&mut self, integer: &Integer) -> Result<FieldClass, Diagnostic> {
        for &(role, span) in &integer.roles {
            self.check_role(role, integer.layout.as_ref(), span)?;
        }
        let style = IntegerStyle {
            signed: integer.signed,
            base: integer.base,
            labels: integer.labels.clone(),
            roles: integer.roles.iter().map(|&(role, _)| role).collect(),
        };
        Ok(match integer.layout {
            Some(layout) => FieldClass::Integer { layout, style },
            None => FieldClass::VarInteger(style),
        })
    }

    fn check_role(
        &self,
        role: Role,
        layout: Option<&BitLayout>,
        span: Span,
    ) -> Result<(), Diagnostic> {
        let name = ROLES.iter().find(|(_, known)| *known == role);
        let name = name.map_or("", |(name, _)| *name);
        let error = |what: &str, label: &str| {
            Err(Diagnostic::error(format!("the role `{name}` {what}")).at(span, label))
        };
        let (scopes, place) = scopes_of(role);
        if !scopes.contains(&self.scope) {
            return error("has no place here", &format!("expected in {place} only"));
        }
        match role {
            Role::PacketMagic => {
                let is_first = matches!(
                    &self.frames[..],
                    [Frame {
                        step: Step::Child(0),
                        ..
                    }]
                );
                if !is_first {
                    return error(
                        "is not that of the first field",
                        "expected in the first member of the packet header",
                    );
                }
                if layout.is_none_or(|layout| layout.bits != 32) {
                    return error(
                        "is that of an integer of another size",
                        "expected in a field of a fixed length of 32 bits",
                    );
                }
            }
            Role::DefaultClockTimestamp | Role::PacketEndTimestamp
                if !self.surroundings.has_clock =>
            {
                return error(
                    "needs a clock",
                    "expected `\"default-clock-class-id\"` in the data stream class",
                );
            }
            _ => {}
        }
        Ok(())
    }

    fn check_uuid(&self, length: &Length, role: Span) -> Result<(), Diagnostic> {
        let error = |what: &str, label: &str| {
            Err(
                Diagnostic::error(format!("the role `{}` {what}", super::classes::UUID_ROLE))
                    .at(role, label),
            )
        };
        if self.scope != Scope::PacketHeader {
            return error("has no place here", "expected in a packet header only");
        }
        if !matches!(length, Length::Static(16)) {
            return error(
                "is that of a BLOB of another size",
                "expected in a BLOB of 16 bytes",
            );
        }
        if !self.surroundings.has_uuid {
            return error(
                "needs a UUID",
                "expected `\"uuid\"` in the preamble of the metadata",
            );
        }
        Ok(())
    }
}

/// The scopes whose fields may have a role, and their name in errors.
fn scopes_of(role: Role) -> (&'static [Scope], &'static str) {
    match role {
        Role::PacketMagic | Role::MetadataUuid | Role::StreamClassId | Role::StreamId => {
            (&[Scope::PacketHeader], "a packet header")
        }
        Role::PacketTotalLength
        | Role::PacketContentLength
        | Role::PacketEndTimestamp
        | Role::DiscardedEvents
        | Role::PacketSequenceNumber => (&[Scope::PacketContext], "a packet context"),
        Role::DefaultClockTimestamp => (
            &[Scope::PacketContext, Scope::EventHeader],
            "a packet context or an event record header",
        ),
        Role::EventClassId => (&[Scope::EventHeader], "an event record header"),
    }
}

/// What kind of value a field has, if it can select.
fn key(class: &Type) -> Option<Key> {
    match &class.class {
        Class::Bool(_) => Some(Key::Bool),
        Class::Integer(Integer { signed: false, .. }) => Some(Key::Unsigned),
        Class::Integer(_) => Some(Key::Signed),
        _ => None,
    }
}

/// Refuses a length or selector of more than 64 bits.
fn narrow(target: &Target<'_>, location: &Location, what: &str) -> Result<(), Diagnostic> {
    match &target.class.class {
        Class::Integer(Integer {
            layout: Some(layout),
            ..
        }) if layout.bits > 64 => Err(Diagnostic::error(format!(
            "a {what} of {} bits",
            layout.bits
        ))
        .at(
            location.span,
            "expected the location of a field of at most 64 bits",
        )
        .because(target.span, "this is the field")),
        _ => Ok(()),
    }
}

fn field_ref(targets: Vec<Target<'_>>) -> FieldRef {
    FieldRef {
        targets: targets.into_iter().map(|target| target.path).collect(),
    }
}
