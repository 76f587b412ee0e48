//! Faults and fields in words.

use kymo_model::{Fault, FaultCode, FieldId, Schema, Scope};

use super::StreamFile;
use crate::class::{FieldClass, Role, TraceClass};
use crate::decode::Decoder;
use crate::secure::OpenError;

/// The fault of a packet that cannot be opened. It is one of the packet as a whole.
pub(super) fn closed(error: &OpenError) -> Fault {
    let (code, found) = match *error {
        OpenError::Size => (FaultCode::Truncated, 0),
        OpenError::Scheme { scheme, .. } => (FaultCode::Scheme, scheme.into()),
        OpenError::Checksum { found, expected } => (
            FaultCode::Checksum,
            u64::from(found) << 32 | u64::from(expected),
        ),
        OpenError::KeyNeeded => (FaultCode::KeyNeeded, 0),
        OpenError::Encryption => (FaultCode::Encryption, 0),
        OpenError::Compression => (FaultCode::Compression, 0),
        OpenError::Limit(most) => (FaultCode::PacketLimit, most as u64),
        OpenError::NotBuilt => (FaultCode::NotBuilt, 0),
    };
    Fault::new(code, 0, found)
}

/// Why bytes of a file cannot be read.
pub(super) fn unreadable(file: &StreamFile) -> String {
    let reason = file.bytes.failure().unwrap_or_default();
    format!("the file cannot be read: {reason}")
}

/// What a fault is, with what was found and what was expected.
pub(super) fn message(fault: &Fault) -> String {
    let Fault { bit, found, .. } = *fault;
    match fault.code {
        FaultCode::BeyondContent => {
            format!(
                "what begins at bit {bit} of the packet goes beyond the packet's content, which ends at bit {found}"
            )
        }
        FaultCode::UnknownStreamClass => {
            format!("the packet is of stream class {found}, which the metadata has not")
        }
        FaultCode::UnknownEventClass => {
            format!(
                "the event is of class {found}, which the metadata has not for this stream class"
            )
        }
        // A selector beyond the largest signed number is a negative one, read as bits.
        FaultCode::NoVariantOption => format!(
            "the variant has no option for the selector {}",
            found as i64
        ),
        FaultCode::ByteOrderChange => {
            format!(
                "the field begins {found} bits into a byte whose first bits were read in the other byte order"
            )
        }
        FaultCode::IntegerTooLong => {
            format!("the variable-length integer has more than 64 bits, or more than {found} bytes")
        }
        FaultCode::LengthLimit => {
            format!("{found} elements that take no space are more than kymo decodes")
        }
        FaultCode::TextLimit => {
            format!("the event would be shown as a text of more than {found} bytes")
        }
        FaultCode::EmptyEvent => {
            format!("event {found} takes no space, so there is no end to their number")
        }
        FaultCode::NotMonotonic => format!("the time goes back to {found} ticks"),
        FaultCode::TimeRange => {
            format!("{found} ticks are more nanoseconds than 64 bits can hold")
        }
        FaultCode::Index => {
            "the packet says something else of itself than the index does".to_string()
        }
        FaultCode::Scheme => format!("the packet has scheme {found}, which kymo does not read"),
        FaultCode::Checksum => {
            let (found, expected) = ((found >> 32) as u32, found as u32);
            OpenError::Checksum { found, expected }.to_string()
        }
        FaultCode::KeyNeeded => OpenError::KeyNeeded.to_string(),
        FaultCode::Encryption => OpenError::Encryption.to_string(),
        FaultCode::Compression => OpenError::Compression.to_string(),
        FaultCode::NotBuilt => OpenError::NotBuilt.to_string(),
        FaultCode::PacketLimit => {
            let most = usize::try_from(found).unwrap_or(usize::MAX);
            OpenError::Limit(most).to_string()
        }
        FaultCode::Truncated => "the file ends before the packet does".to_string(),
        FaultCode::PacketSize => format!("the packet cannot have a size of {found}"),
        FaultCode::Magic => format!("the packet begins with the magic number {found:#x}"),
        FaultCode::TraceId => "the packet belongs to another trace".to_string(),
        FaultCode::TrailingData => format!("{found} bytes follow the last packet"),
        code => format!("{code}: found {found}"),
    }
}

/// Scope and names of a field, such as `payload.list[].len`; `None` where the schema has
/// no such field.
pub(crate) fn field_path(schema: &Schema, field: FieldId) -> Option<String> {
    schema.fields().get(field.index())?;
    let scope = schema.scope_of(field).name();
    let path = schema.path(field);
    Some(match path.as_str() {
        "" => scope.to_string(),
        path if path.starts_with('[') => format!("{scope}{path}"),
        path => format!("{scope}.{path}"),
    })
}

/// Scope and names of the field of a stream class's packets that has a role.
pub(super) fn role_path(
    class: &TraceClass,
    decoder: &Decoder,
    stream_class: usize,
    role: Role,
) -> Option<String> {
    let mut path = None;
    let schema = decoder.packet_schema(stream_class);
    packet_roles(class, schema, stream_class, &mut |id, found| {
        if found == role {
            path = field_path(schema, id);
        }
    });
    path
}

/// Reports each field of a stream class's packets that has a role.
pub(super) fn packet_roles(
    class: &TraceClass,
    schema: &Schema,
    stream_class: usize,
    report: &mut impl FnMut(FieldId, Role),
) {
    let context = class
        .streams
        .get(stream_class)
        .and_then(|stream| stream.packet_context.as_ref());
    for (scope, class) in [
        (Scope::PacketHeader, class.packet_header.as_ref()),
        (Scope::PacketContext, context),
    ] {
        if let (Some(class), Some(root)) = (class, schema.root(scope)) {
            roles(class, schema, root, report);
        }
    }
}

/// Reports each field that has a role within `class`, whose place in the schema is `id`.
fn roles(class: &FieldClass, schema: &Schema, id: FieldId, report: &mut impl FnMut(FieldId, Role)) {
    let mut left = vec![(class, id)];
    while let Some((class, id)) = left.pop() {
        class.roles().iter().for_each(|&role| report(id, role));
        let children = schema
            .fields()
            .get(id.index())
            .map_or(&[][..], |field| &field.children);
        let parts = class.parts().into_iter().zip(children.iter().copied());
        let first = left.len();
        left.extend(parts);
        left[first..].reverse();
    }
}

/// Whether the events of a stream class carry only a part of their clock's bits, so that their
/// time depends on what came before.
pub(crate) fn has_narrow_event_clock(class: &FieldClass) -> bool {
    class.walk().any(|(_, class)| {
        let is_wide = matches!(class, FieldClass::Integer { layout, .. } if layout.bits >= 64);
        let is_clock = class.roles().contains(&Role::DefaultClockTimestamp);
        is_clock && !is_wide
    })
}
