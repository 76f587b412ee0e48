//! How a recording looks: the class model that its metadata describes.
//!
//! All numbers have their least significant byte first and begin at multiples of 32 bits; texts begin
//! where they come. Each stream is what one thread wrote, or several one after the other.
//!
//! ```text
//! packet header    magic, uuid, stream_id, stream_instance_id
//! packet context   timestamp_begin, timestamp_end, content_size, packet_size, events_discarded,
//!                  packet_seq_num, tid, thread_name
//! event header     id (16 bits), timestamp (48 bits)
//! event context    span
//! payload          the fields
//! ```

use std::sync::Arc;

use kymo_ctf::class::{
    BitLayout, Dialect, Encoding, EnvironmentValue, EventRecordClass, FieldClass, IntegerStyle,
    Length, Member, Role, StreamClass, TraceClass,
};
use kymo_ctf::metadata::uuid_text;
use kymo_machine::ByteOrder;
use kymo_model::{Base, Labels, Mapping};
use tracing_core::{Level, Metadata};

use crate::classes::{Action, Kind, Signature};
use crate::clock::Clock;

/// Everything but the classes of events.
pub(crate) fn trace(dialect: Dialect, uuid: [u8; 16], clock: &Clock) -> TraceClass {
    let context = [
        Member::new("timestamp_begin", integer(64, Role::DefaultClockTimestamp)),
        Member::new("timestamp_end", integer(64, Role::PacketEndTimestamp)),
        Member::new("content_size", integer(64, Role::PacketContentLength)),
        Member::new("packet_size", integer(64, Role::PacketTotalLength)),
        Member::new("events_discarded", integer(64, Role::DiscardedEvents)),
        Member::new("packet_seq_num", integer(64, Role::PacketSequenceNumber)),
        Member::new("tid", number(64, false)),
        Member::new("thread_name", text()),
    ];
    let header = [
        Member::new("magic", integer(32, Role::PacketMagic)),
        Member::new("uuid", identity(dialect)),
        Member::new("stream_id", integer(32, Role::StreamClassId)),
        Member::new("stream_instance_id", integer(64, Role::StreamId)),
    ];
    let event_header = [
        Member::new("id", integer(16, Role::EventClassId)),
        Member::new(
            "timestamp",
            FieldClass::Integer {
                // It goes on where the class ends, in the same word.
                layout: layout(48, 8),
                style: style(Role::DefaultClockTimestamp),
            },
        ),
    ];
    let stream = StreamClass {
        clock: Some(0),
        packet_context: Some(FieldClass::structure(context.into())),
        event_header: Some(FieldClass::structure(event_header.into())),
        common_context: Some(FieldClass::structure(vec![Member::new(
            "span",
            number(64, false),
        )])),
        ..StreamClass::default()
    };
    TraceClass {
        uid: match dialect {
            Dialect::Ctf2 => None,
            _ => Some(uuid_text(uuid)),
        },
        uuid: Some(uuid),
        byte_order: (dialect != Dialect::Ctf2).then_some(ByteOrder::Little),
        environment: environment(),
        packet_header: Some(FieldClass::structure(header.into())),
        clocks: vec![Arc::new(clock.description())],
        streams: vec![stream],
        ..TraceClass::new(dialect)
    }
}

/// The class of what a call site does.
pub(crate) fn event(
    dialect: Dialect,
    id: u16,
    site: &Metadata<'_>,
    action: Action,
    signature: Signature,
) -> EventRecordClass {
    let has_fields = matches!(action, Action::Event | Action::New | Action::Record);
    let mut payload: Vec<Member> = Vec::new();
    for (index, field) in site.fields().iter().enumerate().filter(|_| has_fields) {
        if let Some(kind) = signature.kind(index) {
            let name = free_name(&payload, field.name());
            payload.push(Member::new(name, class_of(dialect, kind)));
        }
    }
    let context = match action {
        Action::New => Some("parent"),
        Action::Follows => Some("cause"),
        _ => None,
    };
    EventRecordClass {
        log_level: Some(log_level(*site.level())),
        emf_uri: Some(place(site).into()),
        specific_context: context
            .map(|context| FieldClass::structure(vec![Member::new(context, number(64, false))])),
        payload: Some(FieldClass::structure(payload)),
        ..EventRecordClass::new(id.into(), Some(name(site, action).into()))
    }
}

/// What events of a call site are called: where they come from, and of spans what happens to them.
fn name(site: &Metadata<'_>, action: Action) -> String {
    let target = site.target();
    let of_site = match (action, site.line()) {
        // The site has no name of its own: the default name of the macros contains the path of the file.
        (Action::Event, Some(line)) if site.name().starts_with("event ") => {
            return format!("{target}:{line}");
        }
        _ => format!("{target}::{}", site.name()),
    };
    let happens = match action {
        Action::Event => return of_site,
        Action::New => "new",
        Action::Record => "record",
        Action::Follows => "follows_from",
        Action::Enter => "enter",
        Action::Exit => "exit",
        Action::Close => "close",
    };
    format!("{of_site}.{happens}")
}

/// Where a call site is, as a relative URI: its file, module, target, and line.
fn place(site: &Metadata<'_>) -> String {
    let mut uri = escaped(site.file().unwrap_or_default());
    uri += "?target=";
    uri += &escaped(site.target());
    if let Some(module) = site.module_path() {
        uri += "&module=";
        uri += &escaped(module);
    }
    if let Some(line) = site.line() {
        uri += &format!("#L{line}");
    }
    uri
}

/// A text as a part of a URI (RFC 3986 §2.1); what needs no escape in paths and queries stays.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' | b':' => {
                escaped.push(byte.into());
            }
            _ => escaped += &format!("%{byte:02X}"),
        }
    }
    escaped
}

/// Levels on the scale of syslog, which LTTng has, too; what is finer than debugging is LTTng's last.
fn log_level(level: Level) -> i64 {
    match level {
        Level::ERROR => 3,
        Level::WARN => 4,
        Level::INFO => 6,
        Level::DEBUG => 7,
        Level::TRACE => 14,
    }
}

/// A name that no member has yet: macros take a field twice.
fn free_name(members: &[Member], name: &str) -> String {
    let is_free = |name: &str| members.iter().all(|member| *member.name != *name);
    // A field without a name is one in `tracing` only.
    let name = if name.is_empty() { "field" } else { name };
    let numbered = (2..).map(|number| format!("{name}_{number}"));
    let mut names = std::iter::once(name.to_owned()).chain(numbered);
    names.find(|name| is_free(name)).unwrap_or_default()
}

fn class_of(dialect: Dialect, kind: Kind) -> FieldClass {
    match kind {
        Kind::Signed => number(64, true),
        Kind::Unsigned => number(64, false),
        Kind::Float => FieldClass::Float(layout(64, 32)),
        Kind::Bool if dialect == Dialect::Ctf2 => FieldClass::Bool(layout(8, 8)),
        Kind::Bool => {
            let label = |label: &str, value| Mapping {
                label: label.into(),
                ranges: vec![(value, value)],
            };
            FieldClass::Integer {
                layout: layout(8, 8),
                style: IntegerStyle {
                    labels: Some(Arc::new(Labels::new(
                        false,
                        vec![label("false", 0), label("true", 1)],
                    ))),
                    ..IntegerStyle::default()
                },
            }
        }
        Kind::Text => text(),
    }
}

fn identity(dialect: Dialect) -> FieldClass {
    let roles = vec![Role::MetadataUuid];
    let length = Length::Static(16);
    match dialect {
        Dialect::Ctf2 => FieldClass::Blob {
            length,
            media_type: "application/octet-stream".to_owned(),
            roles,
        },
        _ => FieldClass::Array {
            element: Box::new(FieldClass::Integer {
                layout: layout(8, 8),
                style: IntegerStyle::default(),
            }),
            length,
            min_align: 1,
            roles,
        },
    }
}

fn text() -> FieldClass {
    FieldClass::Text {
        encoding: Encoding::Utf8,
        align: 8,
    }
}

fn number(bits: u32, signed: bool) -> FieldClass {
    FieldClass::Integer {
        layout: layout(bits, 32),
        style: IntegerStyle {
            signed,
            ..IntegerStyle::default()
        },
    }
}

fn integer(bits: u32, role: Role) -> FieldClass {
    FieldClass::unsigned(layout(bits, 32), &[role])
}

fn style(role: Role) -> IntegerStyle {
    IntegerStyle {
        base: Base::Decimal,
        roles: vec![role],
        ..IntegerStyle::default()
    }
}

fn layout(bits: u32, align: u32) -> BitLayout {
    BitLayout::new(bits, align, ByteOrder::Little)
}

/// Who records, for people and for programs that show it.
fn environment() -> Vec<(String, EnvironmentValue)> {
    let mut entries = vec![
        ("domain", EnvironmentValue::Text("tracing".to_owned())),
        (
            "tracer_name",
            EnvironmentValue::Text("kymo-tracing".to_owned()),
        ),
        ("vpid", EnvironmentValue::Integer(std::process::id().into())),
    ];
    let program = std::env::current_exe().ok();
    let program = program.as_ref().and_then(|path| path.file_name());
    if let Some(name) = program {
        let name = name.to_string_lossy().into_owned();
        entries.push(("procname", EnvironmentValue::Text(name)));
    }
    // Without such a file, the host has no name here.
    if let Ok(host) = std::fs::read_to_string("/proc/sys/kernel/hostname") {
        let host = host.trim().to_owned();
        entries.push(("hostname", EnvironmentValue::Text(host)));
    }
    entries
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}
