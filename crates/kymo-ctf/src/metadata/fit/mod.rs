//! What a dialect can hold of a class model, and what becomes of the rest.
//!
//! [`fit`] makes of a model one that [`write`](super::write::write) can write in a dialect, and
//! reports what differs. Where the dialect can describe the bits as they are, they stay as they are;
//! else the same values get another encoding; what has no equal is an error. docs/ctf-dialects.md
//! has the rules as people read them.
//!
//! `fields` makes the field classes, with `leaves` and `selectors`; `roles` sees to it that
//! fields are taken for what they are by their names, `choices` gives selectors the labels of
//! options, and `identity` takes care of names, clocks and the environment. RFC v1.1 has packet
//! headers of its own: `headers` makes those of CTF of them, and `rfc` goes the other way.
//!
//! # What a writer finds changed
//!
//! The tree of fields stays as it is, member by member, but for these changes, which [`Rule`]s name:
//!
//! | in the model | fitted |
//! |---|---|
//! | an optional | a variant of an empty structure and the content, in this order |
//! | a BLOB | an array of its bytes |
//! | an array of 16 bytes that is the UUID | a BLOB |
//! | a bit array, bit map or truth value | an integer of the same bits |
//! | a length within an array, text or BLOB | a member just before it, where that is the member of a structure; else a structure of both |
//! | packet headers of RFC v1.1 | a packet header (two members, or three) and a packet context |
//! | packet headers, packet contexts and event headers, to RFC v1.1 | those of the RFC: values go by their roles |
//! | the context of an event class, to RFC v1.1 | the first member of its payload |
//! | an array, text or BLOB with the length of another field, to RFC v1.1 | the same with a length within, and text without any |
//! | a floating point number, to RFC v1.1 | an integer of its bits |
//! | an optional, to RFC v1.1 | a sequence with a length within, of one element or none |
//! | a variant, to RFC v1.1 | a structure of such sequences, one for each option |

mod choices;
mod fields;
mod headers;
mod identity;
mod labels;
mod layout;
mod leaves;
mod log;
mod names;
mod rfc;
mod roles;
mod selectors;

#[cfg(test)]
mod tests;

use kymo_machine::ByteOrder;
use kymo_model::Scope;

pub use self::log::{Change, FitError, Place, Rule};

use self::fields::Fields;
use self::log::Log;
use crate::class::{Dialect, FieldClass, Role, StreamClass, TraceClass};
use crate::deep;

/// A class model that a dialect can hold.
#[derive(Clone, Debug, PartialEq)]
pub struct Fitted {
    /// The model; its dialect is the one that was asked for.
    pub model: TraceClass,
    /// What differs, in the order of the model.
    pub changes: Vec<Change>,
}

/// The structures of the scopes, and those before they were fitted.
#[derive(Default)]
struct Scopes<'a> {
    old: [Option<&'a FieldClass>; 6],
    new: [Option<FieldClass>; 6],
}

/// Brings a class model to what a dialect can hold.
///
/// What fits already stays equal, but for what the dialect has no words for.
///
/// # Errors
///
/// Where the dialect has no equal for something: the error names the field and says what to do.
pub fn fit(model: &TraceClass, dialect: Dialect) -> Result<Fitted, FitError> {
    deep::with_room(&[model], || fit_here(model, dialect)).unwrap_or_else(|| {
        Err(Log::default().error(
            "field classes lie too deep within each other",
            &format!("use at most {} levels", deep::MAX_LEVELS),
        ))
    })
}

fn fit_here(model: &TraceClass, dialect: Dialect) -> Result<Fitted, FitError> {
    let mut log = Log::default();
    let split;
    let model = match (model.dialect, dialect) {
        (Dialect::Rfc11, Dialect::Ctf18 | Dialect::Ctf2) => {
            split = headers::split(model, &mut log);
            &split
        }
        _ => model,
    };
    let model = match dialect {
        Dialect::Rfc11 => rfc::trace(model, &mut log)?,
        Dialect::Ctf18 | Dialect::Ctf2 => Fit::new(model, dialect, &mut log).trace()?,
    };
    let changes = log.changes;
    Ok(Fitted { model, changes })
}

/// Fits a model to CTF 1.8 or CTF 2.
struct Fit<'a> {
    model: &'a TraceClass,
    dialect: Dialect,
    native: ByteOrder,
    /// Whether any length lies within its array, text or BLOB.
    has_inline: bool,
    scopes: Scopes<'a>,
    log: &'a mut Log,
}

impl<'a> Fit<'a> {
    fn new(model: &'a TraceClass, dialect: Dialect, log: &'a mut Log) -> Self {
        Self {
            model,
            dialect,
            native: model.native_order(),
            has_inline: model.structures().any(has_inline),
            scopes: Scopes::default(),
            log,
        }
    }

    fn trace(mut self) -> Result<TraceClass, FitError> {
        let model = self.model;
        let mut trace = TraceClass {
            dialect: self.dialect,
            byte_order: (self.dialect == Dialect::Ctf18).then_some(self.native),
            streams: Vec::with_capacity(model.streams.len()),
            ..model.clone()
        };
        identity::trace(&mut trace, model, self.log);
        let header = model.packet_header.as_ref();
        self.scope(Scope::PacketHeader, header, None)?;
        for stream in &model.streams {
            let stream = self.stream(stream)?;
            trace.streams.push(stream);
        }
        trace.packet_header = self.scopes.new[Scope::PacketHeader as usize].take();
        self.log.place = Place::default();
        let reports =
            (trace.packet_header.as_ref()).is_some_and(|h| h.has_role(Role::StreamClassId));
        if trace.streams.len() > 1 && !reports && self.dialect == Dialect::Ctf18 {
            return Err(self.log.error(
                "several stream classes, and packets do not have the number of theirs",
                "give the packet header an integer with the role of a stream class's number, or \
                 convert one stream class alone",
            ));
        }
        // Packets without a stream class have headers at most, and nothing beside them.
        let is_empty = trace.streams.is_empty() && trace.packet_header.is_none();
        if is_empty && self.dialect == Dialect::Ctf2 {
            return Err(self.log.error(
                "no stream class, and CTF 2 has at least one",
                "give the trace a stream class, or convert to CTF 1.8",
            ));
        }
        Ok(trace)
    }

    fn stream(&mut self, model: &'a StreamClass) -> Result<StreamClass, FitError> {
        self.log.place = Place {
            stream: Some(model.id),
            ..Place::default()
        };
        let mut stream = StreamClass {
            events: Vec::with_capacity(model.events.len()),
            ..model.clone()
        };
        identity::stream(&mut stream, self.dialect, self.log);
        for (scope, class) in [
            (Scope::PacketContext, &model.packet_context),
            (Scope::EventHeader, &model.event_header),
            (Scope::CommonContext, &model.common_context),
        ] {
            self.scope(scope, class.as_ref(), model.clock)?;
        }
        for event in &model.events {
            self.log.place = Place {
                stream: Some(model.id),
                event: Some((event.id, event.name.clone())),
                ..Place::default()
            };
            let mut fitted = event.clone();
            let is_tsdl = self.model.dialect == Dialect::Ctf18;
            identity::event(&mut fitted, self.dialect, is_tsdl, self.log)?;
            let context = event.specific_context.as_ref();
            self.scope(Scope::SpecificContext, context, None)?;
            self.scope(Scope::Payload, event.payload.as_ref(), None)?;
            let [.., context, payload] = &mut self.scopes.new;
            fitted.specific_context = context.take();
            fitted.payload = payload.take();
            stream.events.push(fitted);
        }
        let [_, context, header, common, ..] = &mut self.scopes.new;
        stream.packet_context = context.take();
        stream.event_header = header.take();
        stream.common_context = common.take();
        self.log.place = Place {
            stream: Some(model.id),
            ..Place::default()
        };
        if self.dialect == Dialect::Ctf18 && stream.clock.is_some() && !roles::has_time(&stream) {
            self.log.note(Rule::Clock);
            stream.clock = None;
        }
        Ok(stream)
    }

    /// Fits the structure of a scope. `clock` is the stream class's.
    fn scope(
        &mut self,
        scope: Scope,
        class: Option<&'a FieldClass>,
        clock: Option<usize>,
    ) -> Result<(), FitError> {
        self.scopes.old[scope as usize] = class;
        self.scopes.new[scope as usize] = None;
        let Some(class) = class else {
            return Ok(());
        };
        self.log.place.scope = Some(scope);
        let fields = Fields {
            from: self.model.dialect,
            to: self.dialect,
            native: self.native,
            has_uuid: self.model.uuid.is_some(),
            has_inline: self.has_inline,
            old: &self.scopes.old,
            scope,
            steps: Vec::new(),
            log: self.log,
        };
        let mut fitted = fields.root(class)?;
        let clocks = self.model.clocks.len();
        let clock = clock.filter(|&clock| clock < clocks);
        match self.dialect {
            Dialect::Ctf18 => {
                let mut roles = roles::Named {
                    scope,
                    is_named: self.model.dialect == Dialect::Ctf18,
                    has_clock: clock.is_some(),
                    clocks,
                    log: self.log,
                };
                roles.root(&mut fitted)?;
                self.scopes.new[scope as usize] = Some(fitted);
                choices::settle(&mut self.scopes.new, scope, self.log)?;
            }
            Dialect::Ctf2 | Dialect::Rfc11 => {
                roles::keep_known(&mut fitted, scope, clock.is_some(), self.log)?;
                self.scopes.new[scope as usize] = Some(fitted);
            }
        }
        self.log.place.scope = None;
        Ok(())
    }
}

fn has_inline(class: &FieldClass) -> bool {
    let mut classes = class.walk();
    classes.any(|(_, class)| fields::inline(class).is_some())
}
