//! Writes what the metadata of a trace says.

use kymo_ctf::class::{Dialect, EnvironmentValue, EventRecordClass, Role, StreamClass, TraceClass};
use kymo_ctf::deep;
use kymo_text::Line;
use kymo_time::{Clock, Origin};

use super::text::Text;
use super::{attributes, classes};

/// Writes a trace class and all that is in it.
pub(super) fn trace_class(class: &TraceClass, text: &mut Text) {
    let (indent, options) = (text.indent, text.options);
    let written = deep::with_room(&[class], || {
        let line = Line::new();
        let mut text = Text {
            line,
            indent,
            options,
        };
        all_of_trace_class(class, &mut text);
        text.line.as_bytes().to_vec()
    });
    text.line.push(&written.unwrap_or_default());
}

fn all_of_trace_class(class: &TraceClass, text: &mut Text) {
    text.object("Trace class");
    if class.streams.is_empty() && class.attributes.is_empty() {
        return text.newline();
    }
    text.push(":\n");
    text.indented(|text| {
        user_attributes(&class.attributes, text);
        let mut streams: Vec<&StreamClass> = class.streams.iter().collect();
        streams.sort_by_key(|stream| stream.id);
        for stream in streams {
            stream_class(class, stream, text);
        }
    });
}

fn user_attributes(attributes: &[(String, String)], text: &mut Text) {
    if attributes::write(attributes, text) {
        text.newline();
    }
}

/// Writes ` ` and the name of an object between backquotes, if it has one, as `write` does.
pub(super) fn object_name(name: Option<&str>, write: fn(&mut Text, &str), text: &mut Text) {
    if let Some(name) = name {
        text.push(" `");
        write(text, name);
        text.push("`");
    }
}

/// Writes the name of an object, and its name space, unique identifier and number between
/// parentheses.
fn identity(
    name: Option<&str>,
    namespace: Option<&str>,
    uid: Option<&str>,
    id: u64,
    text: &mut Text,
) {
    object_name(name, Text::class, text);
    text.push(" (");
    for (what, value) in [("Namespace `", namespace), ("UID `", uid)] {
        if let Some(value) = value {
            text.push(what);
            text.value(value);
            text.push("`, ");
        }
    }
    text.push("ID ");
    text.number(id);
    text.push("):\n");
}

/// Which times the messages of a stream class have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Times {
    /// Packet beginnings.
    pub(super) begin: bool,
    /// Packet ends.
    pub(super) end: bool,
}

impl Times {
    pub(super) fn of(trace: &TraceClass, stream: &StreamClass) -> Self {
        let has = |role| stream.clock.is_some() && packets_have(trace, stream, role);
        Self {
            begin: has(Role::DefaultClockTimestamp),
            end: has(Role::PacketEndTimestamp),
        }
    }

    /// Whether messages of what was lost have times.
    pub(super) const fn both(self) -> bool {
        self.begin && self.end
    }
}

/// Whether a field of packets has a role: in their context, or in RFC v1.1 in their header.
fn packets_have(trace: &TraceClass, stream: &StreamClass, role: Role) -> bool {
    [&stream.packet_context, &trace.packet_header]
        .into_iter()
        .flatten()
        .any(|class| class.has_role(role))
}

fn stream_class(trace: &TraceClass, stream: &StreamClass, text: &mut Text) {
    text.margin();
    text.object("Stream class");
    let name = stream.name.as_deref();
    let name = name.filter(|_| !text.options.no_stream_class_name);
    let namespace = stream.namespace.as_deref();
    identity(name, namespace, stream.uid.as_deref(), stream.id, text);
    text.indented(|text| {
        user_attributes(&stream.attributes, text);
        configuration(trace, stream, text);
        if let Some(clock) = stream.clock.and_then(|clock| trace.clocks.get(clock)) {
            text.margin();
            text.said("Default clock class");
            text.push(":\n");
            text.indented(|text| clock_class(clock, trace.dialect, text));
        }
        let mut around = classes::Around {
            trace,
            stream,
            event: None,
        };
        if let Some(class) = &stream.packet_context {
            classes::packet_context(class, around, text);
        }
        if let Some(class) = &stream.common_context {
            classes::root("Event common context field class", class, around, text);
        }
        let mut events: Vec<&EventRecordClass> = stream.events.iter().collect();
        events.sort_by_key(|event| event.id);
        for event in events {
            around.event = Some(event);
            event_class(event, around, text);
        }
    });
}

fn configuration(trace: &TraceClass, stream: &StreamClass, text: &mut Text) {
    let has = |role| packets_have(trace, stream, role);
    let times = Times::of(trace, stream);
    text.yes_or_no("Supports packets", true);
    text.yes_or_no("Packets have beginning default clock snapshot", times.begin);
    text.yes_or_no("Packets have end default clock snapshot", times.end);
    for (what, role) in [
        ("events", Role::DiscardedEvents),
        ("packets", Role::PacketSequenceNumber),
    ] {
        text.yes_or_no(&format!("Supports discarded {what}"), has(role));
        if has(role) {
            let name = format!("Discarded {what} have default clock snapshots");
            text.yes_or_no(&name, times.both());
        }
    }
}

fn clock_class(clock: &Clock, dialect: Dialect, text: &mut Text) {
    for (name, value) in [
        ("Namespace", &clock.namespace),
        ("Name", &clock.name),
        ("UID", &clock.uid),
        ("Description", &clock.description),
    ] {
        let is_hidden = name == "UID" && text.options.no_uid;
        if let Some(value) = value.as_ref().filter(|_| !is_hidden) {
            text.text_property(name, value);
        }
    }
    text.property("Frequency (Hz)", |text| text.number(clock.frequency));
    // The older languages have a precision of 0 where they give none.
    let precision = match dialect {
        Dialect::Ctf2 => clock.precision,
        Dialect::Rfc11 | Dialect::Ctf18 => Some(clock.precision.unwrap_or(0)),
    };
    if let Some(precision) = precision {
        text.property("Precision (cycles)", |text| text.number(precision));
    }
    if let Some(accuracy) = clock.accuracy {
        text.property("Accuracy (cycles)", |text| text.number(accuracy));
    }
    text.property("Offset from origin (s)", |text| {
        text.signed(clock.offset_seconds);
    });
    text.property("Offset from origin (cycles)", |text| {
        text.number(clock.offset_cycles);
    });
    match &clock.origin {
        Origin::Unknown => {}
        Origin::UnixEpoch => text.text_property("Origin", "Unix epoch"),
        Origin::Named {
            namespace,
            name,
            uid,
        } => {
            text.margin();
            text.said("Origin");
            text.push(":\n");
            text.indented(|text| {
                if let Some(namespace) = namespace {
                    text.text_property("Namespace", namespace);
                }
                text.text_property("Name", name);
                text.text_property("UID", uid);
            });
        }
    }
}

fn event_class(event: &EventRecordClass, around: classes::Around<'_>, text: &mut Text) {
    text.margin();
    text.object("Event class");
    let (name, namespace) = (event.name.as_deref(), event.namespace.as_deref());
    identity(name, namespace, event.uid.as_deref(), event.id, text);
    text.indented(|text| {
        user_attributes(&event.attributes, text);
        if let Some(level) = event.log_level {
            text.property("Log level", |text| log_level(level, text));
        }
        if let Some(uri) = &event.emf_uri {
            text.text_property("EMF URI", uri);
        }
        if let Some(class) = &event.specific_context {
            classes::root("Specific context field class", class, around, text);
        }
        if let Some(class) = &event.payload {
            classes::root("Payload field class", class, around, text);
        }
    });
}

fn log_level(level: i64, text: &mut Text) {
    const NAMES: [&str; 15] = [
        "Emergency",
        "Alert",
        "Critical",
        "Error",
        "Warning",
        "Notice",
        "Info",
        "Debug (system)",
        "Debug (program)",
        "Debug (process)",
        "Debug (module)",
        "Debug (unit)",
        "Debug (function)",
        "Debug (line)",
        "Debug",
    ];
    match usize::try_from(level).ok().and_then(|at| NAMES.get(at)) {
        Some(name) => text.value(name),
        None => text.signed(level),
    }
}

/// Writes what belongs to a trace and not to its class: identity, environment, and its
/// streams as `(NUMBER, NUMBER OF THE CLASS)`.
pub(super) fn trace(
    class: &TraceClass,
    name: Option<&str>,
    streams: &[(u64, u64)],
    text: &mut Text,
) {
    text.margin();
    text.object("Trace");
    object_name(name, Text::value, text);
    let mut separator = " (";
    for (what, value) in [
        ("Namespace", class.namespace.as_deref()),
        ("UID", class.uid.as_deref().filter(|_| !text.options.no_uid)),
    ] {
        if let Some(value) = value {
            text.push(separator);
            text.push(what);
            object_name(Some(value), Text::value, text);
            separator = ", ";
        }
    }
    if separator == ", " {
        text.push(")");
    }
    if class.environment.is_empty() && streams.is_empty() {
        return text.newline();
    }
    text.push(":\n");
    text.indented(|text| {
        environment(&class.environment, text);
        let mut sorted = streams.to_vec();
        sorted.sort_unstable();
        for (id, class) in sorted {
            text.margin();
            text.object("Stream");
            text.push(" (ID ");
            text.number(id);
            text.push(", Class ID ");
            text.number(class);
            text.push(")\n");
        }
    });
}

fn environment(entries: &[(String, EnvironmentValue)], text: &mut Text) {
    if entries.is_empty() {
        return;
    }
    text.margin();
    text.said("Environment");
    text.push(" (");
    text.number(entries.len() as u64);
    text.push(if entries.len() == 1 {
        " entry):\n"
    } else {
        " entries):\n"
    });
    let mut sorted: Vec<_> = entries.iter().collect();
    sorted.sort_by(|left, right| left.0.cmp(&right.0));
    text.indented(|text| {
        for (name, value) in sorted {
            text.margin();
            text.field(name);
            text.push(":");
            match value {
                EnvironmentValue::Integer(value) => {
                    text.push(" ");
                    text.signed(*value);
                }
                EnvironmentValue::Text(value) if value.is_empty() => {}
                EnvironmentValue::Text(value) => {
                    text.push(" ");
                    text.value(value);
                }
            }
            text.newline();
        }
    });
}
