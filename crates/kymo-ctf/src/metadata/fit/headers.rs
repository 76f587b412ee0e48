//! The packet headers of RFC v1.1, which say what packet contexts say in other dialects.

use kymo_model::Scope;

use super::log::{Log, Rule};
use crate::class::{BitLayout, FieldClass, Member, Role, TraceClass};

/// How many members at the beginning of the RFC's packet headers describe a packet itself:
/// `magic` and `session_id`.
const OF_HEADER: usize = 2;

/// The model with packet headers and packet contexts. Each packet states the number of its stream, and
/// where there are several stream classes its own, in 64 bits each, so that what follows is as
/// aligned as before.
pub(super) fn split(model: &TraceClass, log: &mut Log) -> TraceClass {
    let mut trace = model.clone();
    let Some(FieldClass::Struct { members, min_align }) = &model.packet_header else {
        return trace;
    };
    log.place.scope = Some(Scope::PacketHeader);
    log.note(Rule::Headers);
    log.place.scope = None;
    let (header, context) = members.split_at(members.len().min(OF_HEADER));
    let mut header = header.to_vec();
    if let Some(layout) = header.last().and_then(|last| last.class.layout()) {
        let layout = BitLayout {
            bits: 64,
            ..*layout
        };
        let mut number = |name, role| {
            let class = FieldClass::unsigned(layout, &[role]);
            header.push(Member::new(name, class));
        };
        if model.streams.len() > 1 {
            number("stream_id", Role::StreamClassId);
        }
        // In RFC v1.1, the name of the file states it.
        number("stream_instance_id", Role::StreamId);
    }
    let structure = |members: Vec<Member>| {
        Some(FieldClass::Struct {
            members,
            min_align: *min_align,
        })
    };
    trace.packet_header = structure(header);
    for stream in &mut trace.streams {
        stream.packet_context = structure(context.to_vec());
    }
    trace
}
