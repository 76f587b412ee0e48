//! What CTF 2 can hold of a class model.

use kymo_model::Scope;

use super::super::classes::ANY_MEDIA;
use super::super::log;
use super::WriteError;
use super::json::Json;
use crate::class::{
    BitLayout, Dialect, EventRecordClass, FieldClass, IntegerStyle, Length, Role, TraceClass,
};
use crate::metadata::limits::MAX_DEPTH;

/// The model without what has no place in CTF 2, in the form that it has there.
pub(super) fn fitted(trace: &TraceClass) -> Result<TraceClass, WriteError> {
    let mut trace = trace.clone();
    trace.dialect = Dialect::Ctf2;
    trace.byte_order = None;
    let has_uuid = trace.uuid.is_some();
    let fit = |class: &mut Option<FieldClass>, scope: Scope, owner: &str, has_clock| {
        let mut fit = Fit {
            has_uuid,
            has_clock,
            path: format!("{owner}, `{}", scope.name()),
        };
        class.as_mut().map_or(Ok(()), |class| fit.class(class, 1))
    };
    fit(
        &mut trace.packet_header,
        Scope::PacketHeader,
        "trace",
        false,
    )?;
    for stream in &mut trace.streams {
        let clock = stream.clock.is_some();
        let owner = format!("data stream class {}", stream.id);
        fit(
            &mut stream.packet_context,
            Scope::PacketContext,
            &owner,
            clock,
        )?;
        fit(&mut stream.event_header, Scope::EventHeader, &owner, clock)?;
        fit(
            &mut stream.common_context,
            Scope::CommonContext,
            &owner,
            clock,
        )?;
        for event in &mut stream.events {
            let owner = match &event.name {
                Some(name) => format!("event record class `{name}`"),
                None => format!("event record class {}", event.id),
            };
            let context = Scope::SpecificContext;
            fit(&mut event.specific_context, context, &owner, clock)?;
            fit(&mut event.payload, Scope::Payload, &owner, clock)?;
            log_attributes(event, &owner)?;
        }
    }
    Ok(trace)
}

/// Adds the attributes of the log level and of the model element where they are not there.
fn log_attributes(event: &mut EventRecordClass, owner: &str) -> Result<(), WriteError> {
    let is_untold = |name| !log::tells(&event.attributes, name);
    let level = event.log_level.filter(|_| is_untold(log::LEVEL));
    let uri = event.emf_uri.clone().filter(|_| is_untold(log::EMF_URI));
    if level.is_none() && uri.is_none() {
        return Ok(());
    }
    let is_free = |space: &&str| !event.attributes.iter().any(|(known, _)| known == space);
    let Some(space) = log::SPACES.into_iter().find(is_free) else {
        return Err(WriteError(format!(
            "{owner}: its attributes leave no name space for the log level"
        )));
    };
    let mut json = Json::default();
    json.open('{');
    if let Some(level) = level {
        json.key(log::LEVEL);
        match usize::try_from(level)
            .ok()
            .and_then(|level| log::LEVELS.get(level))
        {
            Some(name) => json.string(name),
            None => json.number(level),
        }
    }
    json.optional(log::EMF_URI, uri.as_deref());
    json.close('}');
    event.attributes.push((space.to_owned(), json.text));
    Ok(())
}

/// Brings the field classes of one scope to what CTF 2 can hold.
struct Fit {
    has_uuid: bool,
    has_clock: bool,
    /// Whose field, and the way to it, for errors.
    path: String,
}

impl Fit {
    fn error<T>(&self, what: &str) -> Result<T, WriteError> {
        Err(WriteError(format!("{}`: {what}", self.path)))
    }

    fn class(&mut self, class: &mut FieldClass, depth: usize) -> Result<(), WriteError> {
        if depth > MAX_DEPTH {
            return self.error("field classes lie too deep within each other");
        }
        if let Some(length) = uuid_length(class)
            && length == Length::Static(16)
        {
            *class = FieldClass::Blob {
                length,
                media_type: ANY_MEDIA.to_owned(),
                roles: vec![Role::MetadataUuid],
            };
        }
        match class {
            FieldClass::BitArray(layout)
            | FieldClass::BitMap { layout, .. }
            | FieldClass::Bool(layout)
            | FieldClass::Float(layout) => self.layout(layout),
            FieldClass::Integer { layout, style } => {
                self.layout(layout)?;
                self.style(style)
            }
            FieldClass::VarInteger(style) => self.style(style),
            FieldClass::Text { align, .. } => self.text_align(*align),
            FieldClass::SizedText { align, length, .. } => {
                self.text_align(*align)?;
                self.length(length)
            }
            FieldClass::Blob { length, roles, .. } => {
                roles.retain(|role| *role != Role::MetadataUuid || self.has_uuid);
                self.length(length)
            }
            FieldClass::Struct { members, .. } => {
                for member in members {
                    self.part(Some(&member.name), &mut member.class, depth)?;
                }
                Ok(())
            }
            FieldClass::Array {
                element,
                length,
                roles,
                ..
            } => {
                if !roles.is_empty() {
                    return self.error("an array with a role");
                }
                self.length(length)?;
                self.part(None, element, depth)
            }
            FieldClass::Optional { content, .. } => self.part(None, content, depth),
            FieldClass::Variant { options, .. } => {
                for option in options {
                    self.part(option.name.as_deref(), &mut option.class, depth)?;
                }
                Ok(())
            }
        }
    }

    fn part(
        &mut self,
        name: Option<&str>,
        class: &mut FieldClass,
        depth: usize,
    ) -> Result<(), WriteError> {
        let before = self.path.len();
        if let Some(name) = name {
            self.path += ".";
            self.path += name;
        }
        let result = self.class(class, depth + 1);
        // The path to an error is told from outside.
        if result.is_ok() {
            self.path.truncate(before);
        }
        result
    }

    fn layout(&self, layout: &BitLayout) -> Result<(), WriteError> {
        match layout.unit {
            Some(unit) => self.error(&format!("a bit field that must not cross {unit} bits")),
            None => Ok(()),
        }
    }

    fn text_align(&self, align: u32) -> Result<(), WriteError> {
        match align {
            8 => Ok(()),
            _ => self.error(&format!("text aligned to {align} bits instead of 8")),
        }
    }

    fn length(&self, length: &Length) -> Result<(), WriteError> {
        match length {
            Length::Inline(_) => self.error("a length that lies within the field itself"),
            _ => Ok(()),
        }
    }

    fn style(&self, style: &mut IntegerStyle) -> Result<(), WriteError> {
        if !self.has_clock {
            style.roles.retain(|role| {
                !matches!(role, Role::DefaultClockTimestamp | Role::PacketEndTimestamp)
            });
        }
        match style.signed && !style.roles.is_empty() {
            true => self.error("a signed integer with a role"),
            false => Ok(()),
        }
    }
}

/// The length of an array of bytes that is the UUID of the metadata.
fn uuid_length(class: &FieldClass) -> Option<Length> {
    let FieldClass::Array {
        element,
        length,
        min_align: 1 | 2 | 4 | 8,
        roles,
    } = class
    else {
        return None;
    };
    let is_byte = matches!(&**element,
        FieldClass::Integer { layout, .. } if layout.bits == 8 && layout.align == 8 && !layout.reversed);
    (is_byte && roles[..] == [Role::MetadataUuid]).then(|| length.clone())
}
