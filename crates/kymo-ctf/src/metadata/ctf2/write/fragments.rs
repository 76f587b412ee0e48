//! Fragments that are being written.

use kymo_model::Scope;
use kymo_time::{Clock, Origin};

use super::classes::{Roots, scope};
use super::json::Json;
use crate::class::{EnvironmentValue, EventRecordClass, StreamClass, TraceClass};
use crate::metadata::write::WriteError;

/// The fragments of a class model that CTF 2 can hold.
pub(super) fn text_of(trace: &TraceClass) -> Result<String, WriteError> {
    let mut json = Json::default();
    begin(&mut json, "preamble");
    json.number_property("version", 2);
    if let Some(uuid) = trace.uuid {
        json.key("uuid");
        json.numbers(uuid);
    }
    end(&mut json);
    trace_class(&mut json, trace)?;
    for (position, clock) in trace.clocks.iter().enumerate() {
        clock_class(&mut json, position, clock);
    }
    for stream in &trace.streams {
        let mut roots = [None; 6];
        roots[Scope::PacketHeader as usize] = trace.packet_header.as_ref();
        roots[Scope::PacketContext as usize] = stream.packet_context.as_ref();
        roots[Scope::EventHeader as usize] = stream.event_header.as_ref();
        roots[Scope::CommonContext as usize] = stream.common_context.as_ref();
        stream_class(&mut json, stream, &roots)?;
        for event in &stream.events {
            roots[Scope::SpecificContext as usize] = event.specific_context.as_ref();
            roots[Scope::Payload as usize] = event.payload.as_ref();
            event_class(&mut json, stream.id, event, &roots)?;
        }
    }
    Ok(json.text)
}

fn begin(json: &mut Json, kind: &str) {
    json.text.push('\u{1e}');
    json.open('{');
    json.property("type", kind);
}

fn end(json: &mut Json) {
    json.close('}');
    json.text.push('\n');
}

/// Name space, name and unique identifier.
fn identity(json: &mut Json, namespace: &Option<String>, name: Option<&str>, uid: &Option<String>) {
    json.optional("namespace", namespace.as_deref());
    json.optional("name", name);
    json.optional("uid", uid.as_deref());
}

fn trace_class(json: &mut Json, trace: &TraceClass) -> Result<(), WriteError> {
    begin(json, "trace-class");
    identity(json, &trace.namespace, trace.name.as_deref(), &trace.uid);
    if !trace.environment.is_empty() {
        json.key("environment");
        json.open('{');
        for (name, value) in &trace.environment {
            match value {
                EnvironmentValue::Integer(number) => json.number_property(name, *number),
                EnvironmentValue::Text(text) => json.property(name, text),
            }
        }
        json.close('}');
    }
    let mut roots = [None; 6];
    roots[Scope::PacketHeader as usize] = trace.packet_header.as_ref();
    scope(
        json,
        "packet-header-field-class",
        Scope::PacketHeader,
        &roots,
    )?;
    json.attributes(&trace.attributes)?;
    end(json);
    Ok(())
}

fn clock_id(position: usize) -> String {
    format!("clock-{position}")
}

fn clock_class(json: &mut Json, position: usize, clock: &Clock) {
    begin(json, "clock-class");
    json.property("id", &clock_id(position));
    identity(json, &clock.namespace, clock.name.as_deref(), &clock.uid);
    json.optional("description", clock.description.as_deref());
    json.number_property("frequency", clock.frequency);
    match &clock.origin {
        Origin::UnixEpoch => json.property("origin", "unix-epoch"),
        Origin::Named {
            namespace,
            name,
            uid,
        } => {
            json.key("origin");
            json.open('{');
            json.optional("namespace", namespace.as_deref());
            json.property("name", name);
            json.property("uid", uid);
            json.close('}');
        }
        Origin::Unknown => {}
    }
    if (clock.offset_seconds, clock.offset_cycles) != (0, 0) {
        json.key("offset-from-origin");
        json.open('{');
        json.number_property("seconds", clock.offset_seconds);
        json.number_property("cycles", clock.offset_cycles);
        json.close('}');
    }
    for (name, cycles) in [("precision", clock.precision), ("accuracy", clock.accuracy)] {
        if let Some(cycles) = cycles {
            json.number_property(name, cycles);
        }
    }
    end(json);
}

fn stream_class(
    json: &mut Json,
    stream: &StreamClass,
    roots: &Roots<'_>,
) -> Result<(), WriteError> {
    begin(json, "data-stream-class");
    json.number_property("id", stream.id);
    identity(json, &stream.namespace, stream.name.as_deref(), &stream.uid);
    if let Some(clock) = stream.clock {
        json.property("default-clock-class-id", &clock_id(clock));
    }
    for (name, part) in [
        ("packet-context-field-class", Scope::PacketContext),
        ("event-record-header-field-class", Scope::EventHeader),
        (
            "event-record-common-context-field-class",
            Scope::CommonContext,
        ),
    ] {
        scope(json, name, part, roots)?;
    }
    json.attributes(&stream.attributes)?;
    end(json);
    Ok(())
}

fn event_class(
    json: &mut Json,
    stream_id: u64,
    event: &EventRecordClass,
    roots: &Roots<'_>,
) -> Result<(), WriteError> {
    begin(json, "event-record-class");
    json.number_property("data-stream-class-id", stream_id);
    json.number_property("id", event.id);
    identity(json, &event.namespace, event.name.as_deref(), &event.uid);
    let context = "specific-context-field-class";
    scope(json, context, Scope::SpecificContext, roots)?;
    scope(json, "payload-field-class", Scope::Payload, roots)?;
    json.attributes(&event.attributes)?;
    end(json);
    Ok(())
}
