//! From types to field classes: references to fields resolved, roles given.
//!
//! A type may be used in many places, and means something else in each of them: its `len`
//! lies elsewhere, `timestamp` is the time in an event's header only. So every use
//! makes field classes of its own. How many there may be in all is limited, since types
//! that use each other twice could make any number out of little text.

use std::rc::Rc;

use kymo_model::Scope;
use kymo_text::diagnostic::Diagnostic;

use super::names;
use super::resolve::{Frame, Resolver, Target, check_length, check_tag};
use super::types::{Class, Field, Integer, Length, Reference, Type};
use crate::class::{
    Encoding, FieldClass, FieldRef, IntegerStyle, Length as ClassLength, Member, Role, Selector,
    Step, VariantOption,
};
use crate::metadata::lexer::Span;
use crate::metadata::limits::{Warnings, too_many_fields, weight};

/// The structures of the scopes, as far as they are known.
pub(super) type Roots = [Option<Rc<Type>>; 6];

/// What is shared by all field classes of a trace.
pub(super) struct Shared {
    /// How many more field classes there may be.
    pub(super) budget: usize,
    /// How many clocks there are.
    pub(super) clocks: usize,
    pub(super) warnings: Warnings,
}

impl Shared {
    /// Counts what is about to be made.
    pub(super) fn spend(&mut self, amount: usize, span: Span) -> Result<(), Diagnostic> {
        match self.budget.checked_sub(amount) {
            Some(rest) => {
                self.budget = rest;
                Ok(())
            }
            None => Err(too_many_fields(span)),
        }
    }
}

/// Makes the field class of one scope.
pub(super) struct Builder<'a> {
    shared: &'a mut Shared,
    roots: &'a Roots,
    scope: Scope,
    frames: Vec<Frame<'a>>,
    /// The clock of the stream class, as found so far, and where it is mapped.
    clock: &'a mut Option<(usize, Span)>,
}

/// What is known of the place of a type.
#[derive(Clone, Copy)]
struct Place<'a> {
    /// Name of the member or option.
    name: Option<&'a str>,
    /// Whether it is an option of a variant.
    is_option: bool,
    /// Where errors point.
    span: Span,
}

impl<'a> Builder<'a> {
    /// Builds the field class of a scope, whose structure `roots` must already hold.
    pub(super) fn scope(
        shared: &'a mut Shared,
        roots: &'a Roots,
        clock: &'a mut Option<(usize, Span)>,
        scope: Scope,
        span: Span,
    ) -> Result<Option<FieldClass>, Diagnostic> {
        let Some(root) = &roots[scope as usize] else {
            return Ok(None);
        };
        let mut builder = Builder {
            shared,
            roots,
            scope,
            frames: Vec::new(),
            clock,
        };
        let place = Place {
            name: None,
            is_option: false,
            span,
        };
        let class = builder.class(root, place)?;
        builder.warn_of_names(root, &class);
        Ok(Some(class))
    }

    /// Warns of fields that have the name of something without being it.
    fn warn_of_names(&mut self, root: &Type, class: &FieldClass) {
        let names: &[&str] = match self.scope {
            Scope::PacketHeader => &["magic", "uuid", "stream_id", "stream_instance_id"],
            Scope::PacketContext => &[
                "packet_size",
                "content_size",
                "timestamp_begin",
                "timestamp_end",
                "events_discarded",
                "packet_seq_num",
            ],
            Scope::EventHeader => &["id"],
            _ => return,
        };
        let (Class::Struct { fields, .. }, FieldClass::Struct { members, .. }) =
            (&root.class, class)
        else {
            return;
        };
        for (field, member) in fields.iter().zip(members) {
            let is_usual = match &member.class {
                // Of a time, it may be unknown of which clock.
                FieldClass::Integer { style, .. } => {
                    &*field.name != "magic" || !style.roles.is_empty()
                }
                FieldClass::Array { roles, .. } => !roles.is_empty(),
                _ => false,
            };
            if names.contains(&&*field.name) && !is_usual {
                self.shared.warnings.push(
                    Diagnostic::warning(format!("`{}` is of an unusual type", field.name))
                        .at(field.declared.span, "used as an ordinary field"),
                );
            }
        }
    }

    fn class(&mut self, class: &'a Type, place: Place<'_>) -> Result<FieldClass, Diagnostic> {
        self.shared.spend(weight(self.frames.len()), place.span)?;
        match &class.class {
            Class::Integer(integer) => self.integer(integer, place),
            Class::Float(layout) => Ok(FieldClass::Float(*layout)),
            Class::Text => Ok(FieldClass::Text {
                encoding: Encoding::Utf8,
                align: 8,
            }),
            Class::Struct { fields, align } => {
                let mut members = Vec::new();
                for (at, field) in fields.iter().enumerate() {
                    members.push(Member {
                        name: field.name.clone(),
                        class: self.child(class, Step::Child(at), &field.class, place_of(field))?,
                        attributes: Vec::new(),
                    });
                }
                Ok(FieldClass::Struct {
                    members,
                    min_align: *align,
                })
            }
            Class::Array { element, length } => self.array(class, element, length, place),
            Class::Variant { options, tag } => {
                let Some(tag) = tag else {
                    return Err(super::declare::untagged(place.span));
                };
                let (selector, tag) = self.selector(tag)?;
                let mut classes = Vec::new();
                for (at, field) in options.iter().enumerate() {
                    let place = Place {
                        is_option: true,
                        ..place_of(field)
                    };
                    classes.push(VariantOption {
                        name: Some(field.name.clone()),
                        class: self.child(class, Step::Child(at), &field.class, place)?,
                        when: self.when(tag, field)?,
                    });
                }
                Ok(FieldClass::Variant {
                    options: classes,
                    selector,
                })
            }
        }
    }

    fn child(
        &mut self,
        parent: &'a Type,
        step: Step,
        class: &'a Type,
        place: Place<'_>,
    ) -> Result<FieldClass, Diagnostic> {
        self.frames.push(Frame {
            class: parent,
            step,
        });
        let class = self.class(class, place);
        self.frames.pop();
        class
    }

    fn array(
        &mut self,
        class: &'a Type,
        element: &'a Type,
        length: &'a Length,
        place: Place<'_>,
    ) -> Result<FieldClass, Diagnostic> {
        let length = match length {
            Length::Static(length) => ClassLength::Static(*length),
            Length::Field(path) => ClassLength::Dynamic(self.length(path)?),
        };
        if let Class::Integer(integer) = &element.class {
            let layout = &integer.layout;
            if integer.text && layout.bits == 8 && layout.align == 8 {
                return Ok(FieldClass::SizedText {
                    length,
                    encoding: Encoding::Utf8,
                    align: 8,
                });
            }
        }
        let anonymous = Place {
            name: None,
            is_option: false,
            ..place
        };
        let roles = match (self.scope, self.frames.len(), place.name) {
            (Scope::PacketHeader, 1, Some(names::UUID)) if is_uuid(element, &length) => {
                vec![Role::MetadataUuid]
            }
            _ => Vec::new(),
        };
        Ok(FieldClass::Array {
            element: Box::new(self.child(class, Step::Element, element, anonymous)?),
            length,
            min_align: 1,
            roles,
        })
    }

    // References.

    fn resolver(&mut self) -> Resolver<'_, 'a> {
        Resolver {
            roots: self.roots,
            scope: self.scope,
            frames: &self.frames,
            shared: self.shared,
        }
    }

    fn length(&mut self, reference: &Reference) -> Result<FieldRef, Diagnostic> {
        let targets = self.resolver().refer(reference)?;
        for target in &targets {
            check_length(&reference.name, target.class, target.span)?;
        }
        Ok(field_ref(targets))
    }

    /// The field that selects a variant's option, and its labels.
    fn selector(&mut self, reference: &Reference) -> Result<(FieldRef, &'a Integer), Diagnostic> {
        let name = &reference.name;
        let targets = self.resolver().refer(reference)?;
        let mut tag: Option<&Integer> = None;
        for target in &targets {
            let (integer, labels) = check_tag(name, target.class, target.span)?;
            let differs = tag
                .and_then(|tag| tag.labels.as_ref())
                .is_some_and(|known| known.labels != labels.labels);
            if differs {
                return Err(Diagnostic::error(format!(
                    "`{}` may be one of several enumerations",
                    name.value
                ))
                .at(name.span, "expected enumerations with the same labels")
                .because(target.span, "this one differs"));
            }
            tag = Some(integer);
        }
        match tag {
            Some(tag) => Ok((field_ref(targets), tag)),
            None => Err(super::resolve::unknown(name)),
        }
    }

    /// The values of the tag that select an option.
    fn when(&mut self, tag: &Integer, option: &Field) -> Result<Selector, Diagnostic> {
        let ranges = tag
            .labels
            .as_ref()
            .map_or(&[][..], |labels| labels.ranges(&option.declared.value));
        self.shared.spend(ranges.len(), option.declared.span)?;
        Ok(if tag.signed {
            let signed = |&(low, high): &(u64, u64)| (low as i64, high as i64);
            Selector::Signed(ranges.iter().map(signed).collect())
        } else {
            Selector::Unsigned(ranges.to_vec())
        })
    }

    // Roles.

    fn integer(&mut self, integer: &Integer, place: Place<'_>) -> Result<FieldClass, Diagnostic> {
        let mut roles = Vec::new();
        roles.extend(self.named_role(integer, place));
        let is_begin = self.is_begin(place);
        let bits = integer.layout.bits;
        if bits > 64
            && let Some(role) = (roles.first().copied()).or_else(|| {
                let is_time = is_begin || self.clock_of(integer, place).is_some();
                is_time.then_some(Role::DefaultClockTimestamp)
            })
        {
            let name = place.name.unwrap_or_default();
            return Err(
                Diagnostic::error(format!("`{name}` is an integer of {bits} bits"))
                    .at(place.span, "expected at most 64 bits")
                    .with_help(format!("the field is {}", describe(role))),
            );
        }
        if integer.signed
            && let Some(role) =
                (roles.first().copied()).or(is_begin.then_some(Role::DefaultClockTimestamp))
        {
            return Err(signed_role(role, place));
        }
        let is_end = roles.contains(&Role::PacketEndTimestamp);
        if let Some(clock) = self.clock_of(integer, place) {
            if integer.signed {
                self.shared.warnings.push(
                    Diagnostic::warning("a signed integer is not a time")
                        .at(place.span, "used as an ordinary field")
                        .with_help("times are unsigned integers: remove `signed` or `map`"),
                );
            } else {
                self.use_clock(clock)?;
                if !is_end {
                    roles.push(Role::DefaultClockTimestamp);
                }
            }
        }
        Ok(FieldClass::Integer {
            layout: integer.layout,
            style: IntegerStyle {
                signed: integer.signed,
                base: integer.base,
                labels: integer.labels.as_ref().map(|e| e.labels.clone()),
                roles,
            },
        })
    }

    /// Whether a field is the time at its packet's beginning.
    fn is_begin(&self, place: Place<'_>) -> bool {
        self.scope == Scope::PacketContext
            && self.frames.len() == 1
            && place.name == Some(names::BEGIN)
    }

    /// The role that a field has by its name.
    fn named_role(&self, integer: &Integer, place: Place<'_>) -> Option<Role> {
        let name = place.name.filter(|_| !place.is_option)?;
        let place = names::Place {
            scope: self.scope,
            name,
            is_top: self.frames.len() == 1,
            is_first: matches!(self.frames.last()?.step, Step::Child(0)),
        };
        names::role(place, integer.layout.bits)
    }

    /// The clock that a field shows: the one that its type is mapped to, else of the
    /// fields which are always times the only one there is.
    fn clock_of(&mut self, integer: &Integer, place: Place<'_>) -> Option<(usize, Span)> {
        if !matches!(self.scope, Scope::PacketContext | Scope::EventHeader) {
            return None;
        }
        let is_time = (place.name).is_some_and(|name| names::is_time(self.scope, name));
        if integer.clock.is_some() || !is_time {
            return integer.clock;
        }
        if self.shared.clocks > 1 {
            self.shared.warnings.push(
                Diagnostic::warning("a time of which clock?")
                    .at(place.span, "not used as a time")
                    .with_help("map its type to one of the clocks: `map = clock.NAME.value;`"),
            );
            return None;
        }
        // Without any clock, the caller adds one.
        Some((0, place.span))
    }

    fn use_clock(&mut self, clock: (usize, Span)) -> Result<(), Diagnostic> {
        match *self.clock {
            Some((known, first)) if known != clock.0 => {
                Err(Diagnostic::error("a stream class with several clocks")
                    .at(clock.1, "this is another clock...")
                    .because(first, "... than this"))
            }
            _ => {
                *self.clock = Some(clock);
                Ok(())
            }
        }
    }
}

fn place_of(field: &Field) -> Place<'_> {
    Place {
        name: Some(&field.name),
        is_option: false,
        span: field.declared.span,
    }
}

fn field_ref(targets: Vec<Target<'_>>) -> FieldRef {
    FieldRef {
        targets: targets.into_iter().map(|target| target.path).collect(),
    }
}

fn is_uuid(element: &Type, length: &ClassLength) -> bool {
    matches!(&element.class, Class::Integer(integer)
        if integer.layout.bits == 8 && !integer.signed && *length == ClassLength::Static(16))
}

/// Roles are of unsigned integers only, in all dialects.
fn signed_role(role: Role, place: Place<'_>) -> Diagnostic {
    let name = place.name.unwrap_or_default();
    Diagnostic::error(format!("`{name}` is a signed integer"))
        .at(place.span, "expected an unsigned integer")
        .with_help(format!("by its name, the field is {}", describe(role)))
}

/// What a role says of a field, in an error's help.
fn describe(role: Role) -> &'static str {
    match role {
        Role::PacketMagic => "the magic number",
        Role::MetadataUuid => "the UUID of the metadata",
        Role::StreamClassId => "the number of a stream class",
        Role::StreamId => "the number of a stream",
        Role::PacketTotalLength | Role::PacketContentLength => "a size in bits",
        Role::PacketEndTimestamp | Role::DefaultClockTimestamp => "a time",
        Role::DiscardedEvents => "a number of events",
        Role::PacketSequenceNumber => "the number of a packet",
        Role::EventClassId => "the number of an event class",
    }
}
