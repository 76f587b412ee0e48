//! The rows of a chunk, one after the other.

use std::cell::RefCell;

use kymo_model::{Chunk, Cursor, Event, EventClass, Fault, FaultCode, FieldId, Visitor};
use kymo_text::Line;
use kymo_time::Timestamp;

use crate::builder::{float, has, json, shared_text};
use crate::classes::{KeyPlan, Plan, Type, field};
use crate::recording::Recording;
use crate::row::{self, Body, NO_TIME, Order, Value};

/// Walks the rows of a chunk.
pub struct RowCursor<'a> {
    recording: &'a Recording,
    bytes: &'a [u8],
    at: usize,
    number: u64,
    /// Texts are made here.
    room: RefCell<Line>,
}

impl<'a> RowCursor<'a> {
    pub(crate) fn new(recording: &'a Recording, chunk: &Chunk) -> Self {
        Self {
            recording,
            bytes: recording.rows(chunk.number),
            at: 0,
            number: 0,
            room: RefCell::new(Line::new()),
        }
    }
}

impl<'c> Cursor for RowCursor<'c> {
    type Event<'a>
        = RowEvent<'a, 'c>
    where
        Self: 'a;

    #[inline]
    fn next_event(&mut self) -> Result<Option<RowEvent<'_, 'c>>, Fault> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let Some((order, row)) = row::split(rest) else {
            return Ok(None);
        };
        let begin = self.at;
        self.at += row.len();
        let mut body = Body::new(row);
        let cut = Fault::new(FaultCode::Truncated, begin as u64 * 8, 0);
        let class = body.varint().ok_or(cut)? as usize;
        let track = body.varint().ok_or(cut)?;
        let plan = self.recording.plan(class).ok_or(cut)?;
        let number = self.number;
        self.number += 1;
        Ok(Some(RowEvent {
            cursor: self,
            plan,
            class,
            track: self.recording.track_position(track),
            order,
            body,
            begin,
            end: begin + row.len(),
            number,
        }))
    }
}

/// A row.
pub struct RowEvent<'a, 'c> {
    cursor: &'a RowCursor<'c>,
    plan: &'c Plan,
    class: usize,
    track: u64,
    order: Order,
    body: Body<'c>,
    begin: usize,
    end: usize,
    number: u64,
}

impl RowEvent<'_, '_> {
    fn time(&self) -> Option<i64> {
        (self.order.time != NO_TIME).then_some(self.order.time)
    }

    /// Shows an argument as what all of its class are.
    fn argument<V: Visitor>(&self, key: &KeyPlan, value: Value<'_>, visitor: &mut V) {
        let field = key.field;
        match (key.shown, value) {
            (Type::Uint | Type::Pointer, Value::Uint(value) | Value::Pointer(value)) => {
                visitor.uint(field, value);
            }
            (Type::Sint, Value::Sint(value)) => visitor.sint(field, value),
            (Type::Sint, Value::Uint(value) | Value::Pointer(value)) => {
                visitor.sint(field, value as i64);
            }
            (Type::Float, Value::Float(value)) => visitor.float(field, value),
            (Type::Float, Value::Uint(value) | Value::Pointer(value)) => {
                visitor.float(field, value as f64);
            }
            (Type::Float, Value::Sint(value)) => visitor.float(field, value as f64),
            (Type::Bool, Value::Bool(value)) => visitor.boolean(field, value),
            (_, Value::Text(text) | Value::Json(text)) => visitor.text(field, text),
            (_, Value::Shared(number)) => {
                visitor.text(field, shared_text(number, self.cursor.recording.texts()));
            }
            (_, value) => {
                if visitor.wants(field) {
                    let mut room = self.cursor.room.borrow_mut();
                    room.clear();
                    match value {
                        Value::Float(value) => float(value, false, &mut room),
                        value => json(value, &[], &mut room),
                    }
                    visitor.text(field, room.as_bytes());
                }
            }
        }
    }

    fn visit_fields<V: Visitor>(&self, visitor: &mut V) -> Option<()> {
        let (recording, plan) = (self.cursor.recording, self.plan);
        let mut body = self.body;
        let end = self.end as u64 * 8;
        let position = |body: &Body<'_>| end - body.left() as u64 * 8;

        let at = position(&body);
        let flags = body.varint()?;
        let name = match flags & has::NAME {
            0 => &[],
            _ => body.text()?,
        };
        let category = match flags & (has::CATEGORY | has::SHARED_CATEGORY) {
            0 => &[],
            has::CATEGORY => body.text()?,
            _ => shared_text(body.varint()?.try_into().ok()?, recording.categories()),
        };
        let after = position(&body);
        visitor.at(at);
        visitor.begin_struct(field::CONTEXT);
        visitor.at(at);
        visitor.uint(field::TRACK, self.track);
        visitor.after(after);
        let mut text = |field: FieldId, text: &[u8]| {
            visitor.at(at);
            visitor.text(field, text);
            visitor.after(after);
        };
        text(field::TRACK_NAME, recording.track_name(self.track));
        if let Some(field) = plan.category {
            text(field, category);
        }
        if let Some((field, phase)) = plan.phase {
            text(field, phase.as_bytes());
        }
        visitor.at(after);
        visitor.end_struct(field::CONTEXT);

        visitor.at(after);
        visitor.begin_struct(plan.payload);
        if let Some(field) = plan.name {
            visitor.at(at);
            visitor.text(field, name);
            visitor.after(after);
        }
        if let Some(field) = plan.duration {
            visitor.at(at);
            visitor.uint(field, self.order.duration().unwrap_or(0));
            visitor.after(after);
        }
        for list in [plan.flows, plan.ended_flows] {
            let count = match flags & has::FLOWS {
                0 => 0,
                _ => body.varint()?,
            };
            let Some((list, element)) = list else {
                continue;
            };
            visitor.at(position(&body));
            visitor.begin_array(list, count);
            for _ in 0..count {
                visitor.at(position(&body));
                visitor.uint(element, body.varint()?);
                visitor.after(position(&body));
            }
            visitor.at(position(&body));
            visitor.end_array(list);
        }
        self.visit_arguments(&mut body, visitor)?;
        if let Some(field) = plan.other {
            let other = match flags & has::OTHER {
                0 => &[],
                _ => body.text()?,
            };
            visitor.at(position(&body));
            visitor.text(field, other);
            visitor.after(end);
        }
        visitor.at(end);
        visitor.end_struct(plan.payload);
        Some(())
    }

    fn visit_arguments<V: Visitor>(&self, body: &mut Body<'_>, visitor: &mut V) -> Option<()> {
        let end = self.end as u64 * 8;
        let position = |body: &Body<'_>| end - body.left() as u64 * 8;
        let mut count = body.varint()?;
        let mut next = |body: &mut Body<'_>| -> Option<Option<usize>> {
            if count == 0 {
                return Some(None);
            }
            count -= 1;
            Some(Some(body.varint()? as usize))
        };
        let mut there = next(body)?;
        for (number, key) in self.plan.keys.iter().enumerate() {
            let is_there = there == Some(number);
            visitor.at(position(body));
            if let Some(optional) = key.optional {
                visitor.begin_optional(optional, is_there, is_there.into());
                if is_there {
                    visitor.at(position(body));
                }
            }
            if is_there {
                let value = body.value()?;
                self.argument(key, value, visitor);
                visitor.after(position(body));
                there = next(body)?;
            }
            if let Some(optional) = key.optional {
                visitor.at(position(body));
                visitor.end_optional(optional);
            }
        }
        Some(())
    }
}

impl Event for RowEvent<'_, '_> {
    #[inline]
    fn class(&self) -> &EventClass {
        self.cursor.recording.class(self.class)
    }

    #[inline]
    fn class_index(&self) -> usize {
        self.class
    }

    #[inline]
    fn timestamp(&self) -> Option<Timestamp> {
        self.cursor.recording.timestamp(self.time()?)
    }

    #[inline]
    fn ticks(&self) -> Option<u64> {
        self.cursor.recording.ticks(self.time()?)
    }

    #[inline]
    fn number(&self) -> u64 {
        self.number
    }

    #[inline]
    fn begin_bit(&self) -> u64 {
        self.begin as u64 * 8
    }

    fn visit<V: Visitor>(&self, visitor: &mut V) -> Result<(), Fault> {
        // A row that was written whole is read whole.
        let cut = Fault::new(FaultCode::Truncated, self.begin_bit(), 0);
        self.visit_fields(visitor).ok_or(cut)
    }
}
