//! What RFC v1.1 can hold of a class model: its headers are fixed, and it has little to say of a
//! trace beside its sections, events and fields.

use std::sync::Arc;

use kymo_machine::ByteOrder;
use kymo_model::Scope;
use kymo_time::{Clock, Origin};

use super::fields::Fields;
use super::identity;
use super::log::{FitError, Log, Place, Rule};
use super::names::Names;
use crate::class::{Dialect, EventRecordClass, FieldClass, Member, Role, StreamClass, TraceClass};
use crate::metadata::rfc::{Alignment, Fixed, write};
use crate::metadata::tsdl::names;

/// The largest event number that short event headers of type 1 can hold.
const FEW: u64 = 30;
/// The most bytes of a section's name that are taken over: file systems have names of 255 bytes,
/// and numbers come behind it.
const MOST_NAME: usize = 200;

/// Fits a model to RFC v1.1.
pub(super) fn trace(model: &TraceClass, log: &mut Log) -> Result<TraceClass, FitError> {
    let is_rfc = model.dialect == Dialect::Rfc11;
    let order = model.native_order();
    let alignment = match is_rfc {
        true => write::alignment(model),
        // Fields are aligned as they say, whatever headers are.
        false => Alignment::Packed,
    };
    let fixed = Fixed { order, alignment };
    lost(model, log);
    let header = model.packet_header.as_ref();
    if !is_rfc {
        lost_fields(Scope::PacketHeader, header, log);
    }
    let mut names = Names::new(std::iter::empty());
    let mut streams = Vec::with_capacity(model.streams.len());
    for (position, stream) in model.streams.iter().enumerate() {
        let mut section = Section {
            model,
            order,
            old: [None; 6],
            log: &mut *log,
        };
        streams.push(section.stream(stream, position as u64, &fixed, &mut names)?);
    }
    log.place = Place::default();
    Ok(TraceClass {
        byte_order: Some(order),
        packet_header: Some(fixed.packet_header()),
        clocks: vec![Arc::new(clock())],
        streams,
        ..TraceClass::new(Dialect::Rfc11)
    })
}

/// The clock of every trace.
fn clock() -> Clock {
    Clock {
        name: Some("default".to_owned()),
        ..Clock::default()
    }
}

/// Logs the parts of the trace that have no place.
fn lost(model: &TraceClass, log: &mut Log) {
    for (is_lost, what) in [
        (model.namespace.is_some(), "the name space"),
        (model.name.is_some(), "the name"),
        (
            model.uid.is_some() || model.uuid.is_some(),
            "the unique identifier",
        ),
        (!model.environment.is_empty(), "the environment"),
        (!model.attributes.is_empty(), "what attributes say"),
    ] {
        if is_lost {
            log.note(Rule::Lost(what));
        }
    }
}

/// Logs the fields of a header or packet context that have no place: all that have no role, and
/// those that state what the names of files state.
fn lost_fields(scope: Scope, class: Option<&FieldClass>, log: &mut Log) {
    fn visit(class: &FieldClass, log: &mut Log) {
        match class {
            FieldClass::Struct { members, .. } => {
                for member in members {
                    let before = log.enter(&member.name);
                    visit(&member.class, log);
                    log.leave(before);
                }
            }
            FieldClass::Variant { options, .. } => {
                for option in options {
                    visit(&option.class, log);
                }
            }
            FieldClass::Optional { content, .. } => visit(content, log),
            _ if class.roles().is_empty() => log.note(Rule::Lost("the field")),
            _ => {}
        }
    }
    log.place.scope = Some(scope);
    if let Some(class) = class {
        visit(class, log);
    }
    log.place.scope = None;
}

/// Makes sections of stream classes.
struct Section<'f, 'a> {
    model: &'a TraceClass,
    order: ByteOrder,
    /// The structures of the scopes, in which lengths are looked up.
    old: [Option<&'a FieldClass>; 6],
    log: &'f mut Log,
}

impl<'a> Section<'_, 'a> {
    fn stream(
        &mut self,
        stream: &'a StreamClass,
        position: u64,
        fixed: &Fixed,
        names: &mut Names,
    ) -> Result<StreamClass, FitError> {
        let is_rfc = self.model.dialect == Dialect::Rfc11;
        let place = Place {
            stream: Some(stream.id),
            ..Place::default()
        };
        self.log.place = place.clone();
        if stream.id != position {
            let (from, to) = (stream.id, position);
            self.log.note(Rule::Renumbered { from, to });
        }
        let name = match &stream.name {
            Some(name) if is_rfc => name.clone(),
            name => self.name(name.as_deref(), position, names),
        };
        for (is_lost, what) in [
            (stream.namespace.is_some(), "the name space"),
            (stream.uid.is_some(), "the unique identifier"),
            (!stream.attributes.is_empty(), "what attributes say"),
        ] {
            if is_lost {
                self.log.note(Rule::Lost(what));
            }
        }
        self.times(stream);
        if !is_rfc {
            let context = stream.packet_context.as_ref();
            lost_fields(Scope::PacketContext, context, self.log);
            lost_fields(Scope::EventHeader, stream.event_header.as_ref(), self.log);
        }
        for (scope, class) in [
            (Scope::PacketHeader, &self.model.packet_header),
            (Scope::PacketContext, &stream.packet_context),
            (Scope::EventHeader, &stream.event_header),
            (Scope::CommonContext, &stream.common_context),
        ] {
            self.old[scope as usize] = class.as_ref();
        }
        let common_context = self.scope(Scope::CommonContext, stream.common_context.as_ref())?;
        let few = fixed.event_header(1);
        let is_few = match is_rfc {
            true => stream.event_header.as_ref() == Some(&few),
            false => stream.events.iter().all(|event| event.id <= FEW),
        };
        let mut events = Vec::with_capacity(stream.events.len());
        for event in &stream.events {
            self.log.place = Place {
                event: Some((event.id, event.name.clone())),
                ..place.clone()
            };
            events.push(self.event(event)?);
        }
        Ok(StreamClass {
            id: position,
            name: Some(name),
            clock: Some(0),
            event_header: Some(match is_few {
                true => few,
                false => fixed.event_header(2),
            }),
            common_context,
            events,
            ..StreamClass::default()
        })
    }

    /// A name with which those of files can begin: `NAME_0` must be of no other section.
    fn name(&mut self, name: Option<&str>, position: u64, names: &mut Names) -> String {
        let mut wish = match name {
            Some(name) if !name.is_empty() => names::cleaned(name),
            _ => format!("stream{position}"),
        };
        // Each of its characters is a byte.
        wish.truncate(MOST_NAME);
        let plain = wish.trim_end_matches(|c: char| c.is_ascii_digit());
        let is_numbered = plain.len() < wish.len() && plain.ends_with('_');
        let wish = match is_numbered || wish == "metadata" || wish == "index" {
            true => format!("{wish}_section"),
            false => wish,
        };
        let free = names.free_with(&wish, "x");
        let from = name.unwrap_or_default().to_owned();
        if from != free {
            let to = free.clone();
            self.log.note(Rule::Renamed { from, to });
        }
        free
    }

    /// Logs what becomes of the times of a stream class.
    fn times(&mut self, stream: &StreamClass) {
        let clock = stream.clock.and_then(|clock| self.model.clocks.get(clock));
        let has_times = (stream.event_header.as_ref())
            .is_some_and(|header| header.has_role(Role::DefaultClockTimestamp));
        let Some(clock) = clock.filter(|_| has_times) else {
            self.log.note(Rule::Untimed);
            return;
        };
        let plain = Clock::default();
        let counts = |clock: &Clock| (clock.frequency, clock.offset_seconds, clock.offset_cycles);
        if counts(clock) != counts(&plain) {
            self.log.note(Rule::Nanoseconds);
        }
        let is_reported = clock.origin != Origin::Unknown
            || clock.name.as_deref() != Some("default")
            || clock.uid.is_some()
            || clock.description.is_some();
        if is_reported {
            self.log.note(Rule::Lost("what is said of the clock"));
        }
    }

    fn event(&mut self, event: &'a EventRecordClass) -> Result<EventRecordClass, FitError> {
        if event.id > u32::MAX.into() {
            return Err(self.log.error(
                "the number of the event class has more than 32 bits",
                "give it a smaller one, or convert to CTF 1.8 or CTF 2",
            ));
        }
        for (is_lost, what) in [
            (event.namespace.is_some(), "the name space"),
            (event.uid.is_some(), "the unique identifier"),
            (event.log_level.is_some(), "the log level"),
            (
                event.emf_uri.is_some(),
                "the identifier of the model element",
            ),
            (!event.attributes.is_empty(), "what attributes say"),
        ] {
            if is_lost {
                self.log.note(Rule::Lost(what));
            }
        }
        let mut named = event.clone();
        if named.name.is_none() {
            identity::name_unknown(&mut named, self.log);
        }
        let before = named.name.unwrap_or_default();
        let name = names::without_zeros(&before);
        if *before != name {
            let (from, to) = (before.to_string(), name.clone());
            self.log.note(Rule::Renamed { from, to });
        }
        self.old[Scope::SpecificContext as usize] = event.specific_context.as_ref();
        self.old[Scope::Payload as usize] = event.payload.as_ref();
        let context = self.scope(Scope::SpecificContext, event.specific_context.as_ref())?;
        let mut payload = self.scope(Scope::Payload, event.payload.as_ref())?;
        if let Some(context) = context {
            self.log.note(Rule::ContextAsMember);
            payload = Some(with_context(context, payload));
        }
        Ok(EventRecordClass {
            payload,
            ..EventRecordClass::new(event.id, Some(name.into()))
        })
    }

    fn scope(
        &mut self,
        scope: Scope,
        class: Option<&FieldClass>,
    ) -> Result<Option<FieldClass>, FitError> {
        let Some(class) = class else {
            return Ok(None);
        };
        self.log.place.scope = Some(scope);
        let fields = Fields {
            from: self.model.dialect,
            to: Dialect::Rfc11,
            native: self.order,
            has_uuid: false,
            has_inline: false,
            old: &self.old,
            scope,
            steps: Vec::new(),
            log: self.log,
        };
        let fitted = fields.root(class)?;
        self.log.place.scope = None;
        Ok(Some(fitted))
    }
}

/// A payload that begins with the context of its event class.
fn with_context(context: FieldClass, payload: Option<FieldClass>) -> FieldClass {
    let (mut members, min_align) = match payload {
        Some(FieldClass::Struct { members, min_align }) => (members, min_align),
        _ => (Vec::new(), 1),
    };
    let mut names = Names::new(members.iter().map(|member| &*member.name));
    let context = Member::new(names.free("specific_context"), context);
    members.insert(0, context);
    FieldClass::Struct { members, min_align }
}
