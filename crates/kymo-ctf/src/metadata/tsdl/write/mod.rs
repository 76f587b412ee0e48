//! The class model as TSDL.
//!
//! [`raise`] makes types of field classes, with the names that are declared, and [`print`] writes
//! them. How a length or selector names its field, the reader's own search decides: what it
//! finds by a name must be the field that is meant.

mod print;
mod raise;

use kymo_machine::ByteOrder;
use kymo_model::Scope;
use kymo_time::{Clock, Origin};

pub(in crate::metadata) use self::raise::is_same;

use self::print::Printer;
use super::build::Roots;
use crate::class::{Dialect, EnvironmentValue, FieldClass, Role, StreamClass, TraceClass};
use crate::metadata::text::{self, Text, quoted};
use crate::metadata::uuid_text;
use crate::metadata::write::WriteError;

/// The structures of the scopes.
pub(super) type Classes<'a> = [Option<&'a FieldClass>; 6];

/// The TSDL that says what a class model says.
pub(in crate::metadata) fn write(trace: &TraceClass) -> Result<String, WriteError> {
    let text = text_of(trace)?;
    let (read, _) = super::parse(&text)
        .map_err(|error| WriteError(format!("no class of CTF 1.8: {}", error.message)))?;
    match read == *trace {
        true => Ok(text),
        false => Err(WriteError(
            "no class of CTF 1.8: TSDL cannot say all of it".to_owned(),
        )),
    }
}

fn text_of(trace: &TraceClass) -> Result<String, WriteError> {
    let (Dialect::Ctf18, Some(order)) = (trace.dialect, trace.byte_order) else {
        return Err(WriteError(
            "no class of CTF 1.8: it has no native byte order".to_owned(),
        ));
    };
    let mut writer = Writer {
        text: Text::default(),
        order,
        clocks: trace.clocks.iter().map(|clock| &**clock).collect(),
        clock: None,
        // Other readers refuse numbers that packets do not contain, so these are written only if needed.
        reports_streams: trace.streams.len() > 1
            || (trace.packet_header.as_ref()).is_some_and(|h| h.has_role(Role::StreamClassId)),
        classes: [None; 6],
        roots: Roots::default(),
    };
    writer.text.line("/* CTF 1.8 */");
    writer.trace(trace)?;
    writer.environment(&trace.environment);
    for clock in &trace.clocks {
        writer.clock(clock);
    }
    for stream in &trace.streams {
        writer.stream(stream)?;
    }
    Ok(writer.text.into_string())
}

struct Writer<'a> {
    text: Text,
    /// The native byte order.
    order: ByteOrder,
    clocks: Vec<&'a Clock>,
    /// The clock of the stream class in hand.
    clock: Option<&'a Clock>,
    /// Whether stream classes have numbers.
    reports_streams: bool,
    /// What is known of the scopes at this place, as field classes and as types.
    classes: Classes<'a>,
    roots: Roots,
}

impl<'a> Writer<'a> {
    fn begin(&mut self, block: &str) {
        self.text.line("");
        self.text.open(&format!("{block} {{"));
    }

    fn trace(&mut self, trace: &'a TraceClass) -> Result<(), WriteError> {
        self.begin("trace");
        self.text.line("major = 1;");
        self.text.line("minor = 8;");
        if let Some(uuid) = trace.uuid {
            self.text.line(&format!("uuid = \"{}\";", uuid_text(uuid)));
        }
        let order = text::order(self.order);
        self.text.line(&format!("byte_order = {order};"));
        let header = trace.packet_header.as_ref();
        self.scope("packet.header", Scope::PacketHeader, header)?;
        self.text.close("};");
        Ok(())
    }

    fn environment(&mut self, environment: &[(String, EnvironmentValue)]) {
        if environment.is_empty() {
            return;
        }
        self.begin("env");
        for (name, value) in environment {
            let value = match value {
                EnvironmentValue::Integer(number) => number.to_string(),
                EnvironmentValue::Text(text) => quoted(text),
            };
            self.text.line(&format!("{name} = {value};"));
        }
        self.text.close("};");
    }

    fn clock(&mut self, clock: &Clock) {
        self.begin("clock");
        let name = clock.name.as_deref().unwrap_or_default();
        let mut attribute = |key: &str, value: String| {
            self.text.line(&format!("{key} = {value};"));
        };
        attribute("name", quoted(name));
        if let Some(uid) = &clock.uid {
            attribute("uuid", quoted(uid));
        }
        if let Some(description) = &clock.description {
            attribute("description", quoted(description));
        }
        attribute("freq", clock.frequency.to_string());
        if let Some(precision) = clock.precision.filter(|precision| *precision != 0) {
            attribute("precision", precision.to_string());
        }
        if clock.offset_seconds != 0 {
            attribute("offset_s", clock.offset_seconds.to_string());
        }
        attribute("offset", clock.offset_cycles.to_string());
        if clock.origin == Origin::UnixEpoch {
            attribute("absolute", "true".to_owned());
        }
        self.text.close("};");
    }

    fn stream(&mut self, stream: &'a StreamClass) -> Result<(), WriteError> {
        self.clock = stream
            .clock
            .and_then(|clock| self.clocks.get(clock).copied());
        self.begin("stream");
        if self.reports_streams || stream.id != 0 {
            self.text.line(&format!("id = {};", stream.id));
        }
        for (key, scope, class) in [
            (
                "packet.context",
                Scope::PacketContext,
                &stream.packet_context,
            ),
            ("event.header", Scope::EventHeader, &stream.event_header),
            (
                "event.context",
                Scope::CommonContext,
                &stream.common_context,
            ),
        ] {
            self.scope(key, scope, class.as_ref())?;
        }
        self.text.close("};");
        let reports_events = stream.events.len() > 1
            || (stream.event_header.as_ref()).is_some_and(|h| h.has_role(Role::EventClassId));
        for event in &stream.events {
            self.begin("event");
            if let Some(name) = &event.name {
                self.text.line(&format!("name = {};", quoted(name)));
            }
            if reports_events || event.id != 0 {
                self.text.line(&format!("id = {};", event.id));
            }
            if self.reports_streams {
                self.text.line(&format!("stream_id = {};", stream.id));
            }
            if let Some(level) = event.log_level {
                self.text.line(&format!("loglevel = {level};"));
            }
            if let Some(uri) = &event.emf_uri {
                self.text.line(&format!("model.emf.uri = {};", quoted(uri)));
            }
            let context = event.specific_context.as_ref();
            self.scope("context", Scope::SpecificContext, context)?;
            self.scope("fields", Scope::Payload, event.payload.as_ref())?;
            self.text.close("};");
        }
        Ok(())
    }

    /// The structure of a scope, where there is one.
    fn scope(
        &mut self,
        key: &str,
        scope: Scope,
        class: Option<&'a FieldClass>,
    ) -> Result<(), WriteError> {
        self.classes[scope as usize] = class;
        self.roots[scope as usize] = match class {
            Some(class) => Some(raise::raise(class, &self.classes)?),
            None => None,
        };
        let (Some(class), Some(root)) = (class, &self.roots[scope as usize]) else {
            return Ok(());
        };
        let mut printer = Printer::new(&mut self.text, self.order, self.clock, &self.roots, scope);
        printer.assign(key, class, root)
    }
}
