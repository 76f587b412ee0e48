//! Where an event lies in its file, and the schema of its fields.

use std::ops::ControlFlow;

use kymo::timeline::QueryError;
use kymo_model::{Event, EventClass, Fault, FaultCode, FieldId, Kind, Recording, Scope, Walk};
use serde_json::{Value, json};

use crate::api::{Api, number};
use crate::events::{Cursor, MOST_SAME};
use crate::scene::Scene;

/// Fields that are described at most.
const MOST_FIELDS: usize = 2000;

/// Classes and fields of a recording that are listed at most.
const MOST_LISTED: usize = 20_000;

/// Finds where an event of a chunk begins and ends, in bits, and its ticks.
struct Locate(u64);

impl Walk for Locate {
    type Output = Option<(u64, Option<u64>, Option<u64>)>;

    fn walk<C: kymo_model::Cursor>(self, mut cursor: C) -> Self::Output {
        let mut found = None;
        while let Ok(Some(event)) = cursor.next_event() {
            match found {
                Some((begin, ticks)) => return Some((begin, Some(event.begin_bit()), ticks)),
                None if event.number() == self.0 => {
                    found = Some((event.begin_bit(), event.ticks()));
                }
                None => {}
            }
        }
        found.map(|(begin, ticks)| (begin, None, ticks))
    }
}

/// The fields of a class that have a name: paths, where they are, and types.
fn fields(class: &EventClass) -> impl Iterator<Item = (String, &'static str, String)> {
    let fields = class.schema.fields().iter().enumerate();
    fields.filter_map(|(at, field)| {
        field.name.as_ref()?;
        let id = FieldId(u32::try_from(at).ok()?);
        let scope = match class.schema.scope_of(id) {
            Scope::CommonContext => "common context",
            Scope::SpecificContext => "specific context",
            Scope::Payload => "payload",
            _ => "header",
        };
        Some((class.schema.path(id), scope, type_of(&field.kind)))
    })
}

impl Api {
    /// The event classes of a recording with their fields, as far as there is room for them.
    pub(crate) fn schema(&self, request: &Value) -> Result<Value, String> {
        let at = usize::try_from(number(request, "recording")?).unwrap_or(usize::MAX);
        let recording = self.scene.recordings().get(at);
        let recording = recording.ok_or("the recording does not exist")?;
        let mut room = MOST_LISTED;
        let mut classes = Vec::new();
        for class in recording.event_classes() {
            let listed: Vec<Value> = fields(class)
                .take(MOST_FIELDS.min(room))
                .map(|(path, scope, kind)| json!([path, scope, kind]))
                .collect();
            room = room.saturating_sub(listed.len() + 1);
            classes.push(json!({
                "id": class.id, "name": class.name.as_deref(),
                "level": class.log_level.map(|level| level.to_string()), "fields": listed,
            }));
            if room == 0 {
                break;
            }
        }
        let is_cut = classes.len() < recording.event_classes().len();
        Ok(json!({"classes": classes, "cut": is_cut}))
    }
}

impl Scene {
    /// Where an event is, and what its fields are.
    pub(crate) fn describe(&self, at: Cursor) -> Result<Option<Value>, QueryError> {
        let mut query = self.within((at.time, at.time), None);
        query.limit = Some(MOST_SAME);
        let mut rest = at.skip;
        let mut found = None;
        self.timeline.for_each_batch(&query, |batch| {
            for (row, id, _) in self.timed(&batch) {
                if rest == 0 {
                    found = Some((id, batch.classes()[row]));
                    return ControlFlow::Break(());
                }
                rest -= 1;
            }
            ControlFlow::Continue(())
        })?;
        let Some((id, class)) = found else {
            return Ok(None);
        };
        let recording = &self.recordings()[id.recording as usize];
        let class = &recording.event_classes()[class as usize];
        let fields = fields(class)
            .take(MOST_FIELDS)
            .map(|(path, scope, kind)| json!({"path": path, "scope": scope, "type": kind}));
        let fields: Vec<Value> = fields.collect();
        // Of other formats, rows are not in the file as they are.
        let is_placed = matches!(recording.format().name, "ctf" | "cpel" | "elog");
        let chunk = recording.chunk(id.stream as usize, id.chunk as usize);
        let place = chunk.filter(|_| is_placed).and_then(|chunk| {
            let (begin, end, ticks) = recording.walk(&chunk, Locate(id.number))?;
            let end = end.unwrap_or_else(|| recording.content_bits(&chunk));
            // What says where a fault is, says where anything is.
            let fault = Fault::new(FaultCode::Index, begin, 0);
            let report = recording.report(&chunk, None, fault);
            Some(json!({
                "file": report.file.display().to_string(),
                "offset": report.offset.to_string(),
                "bits": end.saturating_sub(begin),
                "bit": begin % 8,
                "packet": report.packet,
                "ticks": ticks.map(|ticks| ticks.to_string()),
            }))
        });
        let stream = recording.streams().get(id.stream as usize);
        Ok(Some(json!({
            "place": place,
            "stream": stream.map(|stream| stream.name.to_string()),
            "chunk": id.chunk, "number": id.number,
            "class": {"id": class.id, "name": class.name.as_deref(), "level": class.log_level.map(|level| level.to_string())},
            "fields": fields,
        })))
    }
}

/// A kind of field in words.
fn type_of(kind: &Kind) -> String {
    match kind {
        Kind::Uint { bits, labels, .. } => match labels {
            Some(_) => format!("enumeration, unsigned, {bits} bits"),
            None => format!("unsigned integer, {bits} bits"),
        },
        Kind::Sint { bits, labels, .. } => match labels {
            Some(_) => format!("enumeration, signed, {bits} bits"),
            None => format!("signed integer, {bits} bits"),
        },
        Kind::Wide { bits, .. } => format!("integer, {bits} bits"),
        Kind::Float { bits } => format!("floating point, {bits} bits"),
        Kind::Bool { bits } => format!("boolean, {bits} bits"),
        Kind::BitArray { bits } => format!("bit array, {bits} bits"),
        Kind::BitMap { bits, .. } => format!("bit map, {bits} bits"),
        Kind::Text => "text".into(),
        Kind::Blob => "bytes".into(),
        Kind::Struct => "structure".into(),
        Kind::Array {
            length: Some(length),
        } => format!("array of {length}"),
        Kind::Array { .. } => "array".into(),
        _ => "variant or optional".into(),
    }
}
