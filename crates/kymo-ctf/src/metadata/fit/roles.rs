//! What fields are for: TSDL expresses it by their names, CTF 2 in some scopes only.

use std::sync::Arc;

use kymo_model::Scope;

use super::log::{FitError, Log, Rule};
use super::names::Names;
use crate::class::{FieldClass, Member, Role, StreamClass};
use crate::metadata::tsdl::names;

/// Whether a field of a stream class is a time, so that TSDL can specify the class's clock.
pub(super) fn has_time(stream: &StreamClass) -> bool {
    [&stream.packet_context, &stream.event_header]
        .into_iter()
        .flatten()
        .any(|class| {
            class.has_role(Role::DefaultClockTimestamp) || class.has_role(Role::PacketEndTimestamp)
        })
}

/// The roles that CTF 2 knows in a scope.
fn known(scope: Scope) -> &'static [Role] {
    match scope {
        Scope::PacketHeader => &[
            Role::PacketMagic,
            Role::MetadataUuid,
            Role::StreamClassId,
            Role::StreamId,
        ],
        Scope::PacketContext => &[
            Role::PacketTotalLength,
            Role::PacketContentLength,
            Role::DefaultClockTimestamp,
            Role::PacketEndTimestamp,
            Role::DiscardedEvents,
            Role::PacketSequenceNumber,
        ],
        Scope::EventHeader => &[Role::EventClassId, Role::DefaultClockTimestamp],
        _ => &[],
    }
}

/// Leaves the roles that CTF 2 knows in a scope.
pub(super) fn keep_known(
    class: &mut FieldClass,
    scope: Scope,
    has_clock: bool,
    log: &mut Log,
) -> Result<(), FitError> {
    if let Some(roles) = roles_mut(class) {
        let mut lost = Vec::new();
        roles.retain(|role| {
            // A time without a clock is a number for every reader.
            let is_time = matches!(role, Role::DefaultClockTimestamp | Role::PacketEndTimestamp);
            let is_known = known(scope).contains(role);
            if !is_known {
                lost.push(*role);
            }
            is_known && (has_clock || !is_time)
        });
        for role in lost {
            log.note(Rule::RoleLost(role));
        }
    }
    refuse_signed(class, log)?;
    for (name, part) in parts_mut(class) {
        let before = name.map(|name| log.enter(&name));
        keep_known(part, scope, has_clock, log)?;
        if let Some(before) = before {
            log.leave(before);
        }
    }
    Ok(())
}

/// Roles are of unsigned integers only, in all dialects.
fn refuse_signed(class: &FieldClass, log: &Log) -> Result<(), FitError> {
    match class {
        FieldClass::Integer { style, .. } | FieldClass::VarInteger(style)
            if style.signed && !style.roles.is_empty() =>
        {
            Err(log.error(
                "a signed integer with a role",
                "make it an unsigned one: CTF has roles for no others",
            ))
        }
        _ => Ok(()),
    }
}

fn roles_mut(class: &mut FieldClass) -> Option<&mut Vec<Role>> {
    match class {
        FieldClass::Integer { style, .. } | FieldClass::VarInteger(style) => Some(&mut style.roles),
        FieldClass::Blob { roles, .. } | FieldClass::Array { roles, .. } => Some(roles),
        _ => None,
    }
}

/// The parts of a compound, with their names.
pub(super) fn parts_mut(class: &mut FieldClass) -> Vec<(Option<Arc<str>>, &mut FieldClass)> {
    match class {
        FieldClass::Struct { members, .. } => members
            .iter_mut()
            .map(|member| (Some(member.name.clone()), &mut member.class))
            .collect(),
        FieldClass::Variant { options, .. } => options
            .iter_mut()
            .map(|option| (option.name.clone(), &mut option.class))
            .collect(),
        FieldClass::Array { element, .. } => vec![(None, element)],
        FieldClass::Optional { content, .. } => vec![(None, content)],
        _ => Vec::new(),
    }
}

/// Gives the names by which TSDL identifies roles to the fields of one scope that have them, and to no others.
pub(super) struct Named<'l> {
    pub(super) scope: Scope,
    /// Whether the fields have names of TSDL already.
    pub(super) is_named: bool,
    /// Whether the stream class has a clock.
    pub(super) has_clock: bool,
    /// How many clocks the trace has: where there are several, no name alone makes a time.
    pub(super) clocks: usize,
    pub(super) log: &'l mut Log,
}

/// Where a field is a part.
#[derive(Clone, Copy)]
enum Part {
    /// A member of a structure: of the scope's own, the first one.
    Member { is_top: bool, is_first: bool },
    /// An option of a variant, or the element of an array.
    Other,
}

impl Named<'_> {
    /// Names the fields in a scope's structure.
    pub(super) fn root(&mut self, class: &mut FieldClass) -> Result<(), FitError> {
        self.compound(class, true)
    }

    fn compound(&mut self, class: &mut FieldClass, is_top: bool) -> Result<(), FitError> {
        match class {
            FieldClass::Struct { members, .. } => self.members(members, is_top)?,
            FieldClass::Variant { options, .. } => {
                let mut names = Names::new(options.iter().filter_map(|o| o.name.as_deref()));
                for option in options {
                    let Some(name) = option.name.clone() else {
                        continue;
                    };
                    let before = self.log.enter(&name);
                    self.keep(&mut option.class, Part::Other)?;
                    self.log.leave(before);
                    if self.is_taken_for_time(&name, &option.class) {
                        option.name = Some(self.rename(&name, &names.free(&away(&name))));
                    }
                }
            }
            FieldClass::Array { element, .. } => self.keep(element, Part::Other)?,
            _ => {}
        }
        for (name, part) in parts_mut(class) {
            let before = name.map(|name| self.log.enter(&name));
            self.compound(part, false)?;
            if let Some(before) = before {
                self.log.leave(before);
            }
        }
        Ok(())
    }

    fn members(&mut self, members: &mut [Member], is_top: bool) -> Result<(), FitError> {
        for (position, member) in members.iter_mut().enumerate() {
            let before = self.log.enter(&member.name);
            let is_first = position == 0;
            self.keep(&mut member.class, Part::Member { is_top, is_first })?;
            self.log.leave(before);
        }
        // Of several fields of a role the last one counts; only one can have the name.
        let mut holders: Vec<(&'static str, usize)> = Vec::new();
        for position in 0..members.len() {
            let Some(name) = self.wanted(&members[position].class) else {
                continue;
            };
            match holders.iter_mut().find(|(known, _)| *known == name) {
                Some((_, holder)) => {
                    let earlier = &mut members[std::mem::replace(holder, position)];
                    if let Some(roles) = roles_mut(&mut earlier.class) {
                        let role = roles.remove(0);
                        self.log.note_at(&earlier.name, Rule::RoleLost(role));
                    }
                }
                None => holders.push((name, position)),
            }
        }
        self.name_begin(members, is_top, &mut holders);
        let mut taken = Names::new(members.iter().map(|member| &*member.name));
        for (position, member) in members.iter_mut().enumerate() {
            let holds = holders.iter().find(|(_, holder)| *holder == position);
            let is_other = match holds {
                Some(_) => false,
                None => {
                    holders.iter().any(|(name, _)| *name == &*member.name)
                        || self.is_taken_for_role(member, is_top, position == 0)
                        || self.is_taken_for_time(&member.name, &member.class)
                }
            };
            if is_other {
                member.name = self.rename(&member.name, &taken.free(&away(&member.name)));
            }
        }
        for (name, holder) in holders {
            if *members[holder].name != *name {
                members[holder].name = self.rename(&members[holder].name, name);
            }
        }
        Ok(())
    }

    /// The first time in a packet context is the packet's beginning; other readers look for its
    /// name.
    fn name_begin(
        &self,
        members: &[Member],
        is_top: bool,
        holders: &mut Vec<(&'static str, usize)>,
    ) {
        if self.is_named || self.scope != Scope::PacketContext || !is_top {
            return;
        }
        let mut times = members.iter().enumerate().filter(|(position, member)| {
            member.class.roles() == [Role::DefaultClockTimestamp]
                && !holders.iter().any(|(_, holder)| holder == position)
        });
        let first = times.next();
        let named = first
            .into_iter()
            .chain(times)
            .find(|(_, member)| &*member.name == names::BEGIN);
        if let Some((position, _)) = named.or(first) {
            holders.push((names::BEGIN, position));
        }
    }

    /// Leaves the roles that a part can have by a name, the one with a name first.
    fn keep(&mut self, class: &mut FieldClass, part: Part) -> Result<(), FitError> {
        let (scope, has_clock, clocks) = (self.scope, self.has_clock, self.clocks);
        let bits = class.layout().map(|layout| layout.bits);
        let is_uuid = is_uuid(class);
        let Some(roles) = roles_mut(class) else {
            return Ok(());
        };
        let mut named = None;
        let mut is_time = false;
        let mut lost = Vec::new();
        for &role in &*roles {
            let can_have = match (role, part) {
                (Role::DefaultClockTimestamp, _) => {
                    let in_scope = matches!(scope, Scope::PacketContext | Scope::EventHeader);
                    is_time |= in_scope && has_clock;
                    // Without a clock it is a number for every reader.
                    if in_scope && !has_clock {
                        continue;
                    }
                    in_scope
                }
                (Role::PacketEndTimestamp, _) if !has_clock && clocks <= 1 => continue,
                (Role::MetadataUuid, Part::Member { is_top, .. }) => {
                    let can_have = scope == Scope::PacketHeader && is_top && is_uuid;
                    named = named.or(can_have.then_some(role));
                    can_have
                }
                (_, Part::Member { is_top, is_first }) if named.is_none() => {
                    let name = names::of_role(scope, role);
                    let place = name.map(|name| names::Place {
                        scope,
                        name,
                        is_top,
                        is_first,
                    });
                    let has = place.and_then(|place| names::role(place, bits?));
                    named = has;
                    has == Some(role)
                }
                _ => false,
            };
            if !can_have {
                lost.push(role);
            }
        }
        // A packet's end is identified by its name alone.
        if named == Some(Role::PacketEndTimestamp) && std::mem::take(&mut is_time) {
            lost.push(Role::DefaultClockTimestamp);
        }
        *roles = named.into_iter().collect();
        if is_time {
            roles.push(Role::DefaultClockTimestamp);
        }
        for role in lost {
            self.lose(role, named)?;
        }
        refuse_signed(class, self.log)
    }

    /// Reports that a field has lost a role; `other` is the one that it has.
    fn lose(&mut self, role: Role, other: Option<Role>) -> Result<(), FitError> {
        let is_needed = matches!(
            (self.scope, role),
            (Scope::PacketHeader, Role::StreamClassId)
                | (Scope::PacketContext, Role::PacketTotalLength)
                | (Scope::PacketContext, Role::PacketContentLength)
                | (Scope::EventHeader, Role::EventClassId)
        );
        // Packets that state only their size are full.
        let is_reported =
            role == Role::PacketContentLength && other == Some(Role::PacketTotalLength);
        if is_needed && !is_reported {
            return Err(self.log.error(
                "a field with the size of a packet or the number of a class, where no name can \
                 express that",
                "make it a member of the scope's own structure, with this meaning alone",
            ));
        }
        self.log.note(Rule::RoleLost(role));
        Ok(())
    }

    /// The name that a field must have for its role.
    fn wanted(&self, class: &FieldClass) -> Option<&'static str> {
        match *class.roles().first()? {
            Role::MetadataUuid => Some(names::UUID),
            role => names::of_role(self.scope, role),
        }
    }

    /// Whether a member without a role would have one by its name. In a model that had no such
    /// names, a member of another type does not have one either, because other readers reject it.
    fn is_taken_for_role(&self, member: &Member, is_top: bool, is_first: bool) -> bool {
        let place = names::Place {
            scope: self.scope,
            name: &member.name,
            is_top,
            is_first,
        };
        let is_uuid_place =
            self.scope == Scope::PacketHeader && is_top && &*member.name == names::UUID;
        match &member.class {
            _ if !self.is_named => is_uuid_place || names::is_known(place),
            FieldClass::Integer { layout, .. } => names::role(place, layout.bits).is_some(),
            class => is_uuid_place && is_uuid(class),
        }
    }

    /// Whether an integer that is not a time would be one by its name.
    fn is_taken_for_time(&self, name: &str, class: &FieldClass) -> bool {
        let roles = class.roles();
        let is_unsigned = matches!(class, FieldClass::Integer { style, .. } if !style.signed);
        (!self.is_named || is_unsigned && self.clocks <= 1)
            && names::is_time(self.scope, name)
            && !roles.contains(&Role::DefaultClockTimestamp)
            && !roles.contains(&Role::PacketEndTimestamp)
    }

    fn rename(&mut self, from: &str, to: &str) -> Arc<str> {
        let (from, to) = (from.to_owned(), to.to_owned());
        let renamed = to.as_str().into();
        self.log.note_at(&from.clone(), Rule::Renamed { from, to });
        renamed
    }
}

/// The name for a field that has another's.
fn away(name: &str) -> String {
    format!("{name}_field")
}

fn is_uuid(class: &FieldClass) -> bool {
    let FieldClass::Array {
        element,
        length: crate::class::Length::Static(16),
        ..
    } = class
    else {
        return false;
    };
    matches!(&**element, FieldClass::Integer { layout, style }
        if layout.bits == 8 && !style.signed)
}
