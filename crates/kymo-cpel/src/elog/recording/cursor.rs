//! The events of a chunk, one after the other.

use std::cell::RefCell;

use kymo_model::{Cursor, Event, EventClass, Fault, FaultCode, FieldId, Kind, Visitor};
use kymo_text::Line;
use kymo_time::Timestamp;

use super::{Recording, ticks};
use crate::elog::text::{signed, write};
use crate::elog::{
    Argument, ArgumentKind, EVENT_HEAD, EventType, Head, MOST_NUMBERS, Reader, Value,
};
use crate::recording::field;

/// Walks the events of a chunk.
pub struct ElogCursor<'a> {
    pub(super) recording: &'a Recording,
    /// Where the chunk begins.
    pub(super) begin: usize,
    pub(super) next: usize,
    pub(super) number: u32,
    pub(super) events: u32,
    /// Texts are made here: the whole, and a piece of it.
    pub(super) room: RefCell<(Line, Line)>,
}

impl<'c> Cursor for ElogCursor<'c> {
    type Event<'a>
        = ElogEvent<'a, 'c>
    where
        Self: 'a;

    fn next_event(&mut self) -> Result<Option<ElogEvent<'_, 'c>>, Fault> {
        if self.number >= self.events {
            return Ok(None);
        }
        let (begin, number) = (self.next, self.number);
        self.number += 1;
        // All of this was there when the file was opened.
        let mut reader = Reader::new(&self.recording.bytes, begin);
        let cut = Fault::new(FaultCode::Truncated, (begin - self.begin) as u64 * 8, 0);
        let head = reader.head().ok_or(cut)?;
        let kind = self
            .recording
            .log
            .types
            .get(usize::from(head.kind))
            .ok_or(cut)?;
        reader.skip(&kind.arguments).ok_or(cut)?;
        self.next = reader.at;
        let end = reader.at;
        Ok(Some(ElogEvent {
            cursor: self,
            kind,
            head,
            begin,
            end,
            number,
        }))
    }
}

/// An event of an elog file.
pub struct ElogEvent<'a, 'c> {
    cursor: &'a ElogCursor<'c>,
    kind: &'c EventType,
    head: Head,
    begin: usize,
    end: usize,
    number: u32,
}

impl ElogEvent<'_, '_> {
    fn bit(&self, at: usize) -> u64 {
        (at - self.cursor.begin) as u64 * 8
    }

    fn argument<V: Visitor>(
        &self,
        field: FieldId,
        argument: Argument,
        value: Value<'_>,
        visitor: &mut V,
    ) {
        let recording = self.cursor.recording;
        match (argument.kind, value) {
            (ArgumentKind::Table, Value::Integer(offset)) => {
                match recording.log.string(&recording.bytes, offset) {
                    Some(text) => visitor.text(field, text),
                    None => {
                        let (room, _) = &mut *self.cursor.room.borrow_mut();
                        room.clear();
                        crate::format::bad_offset(u32::try_from(offset).unwrap_or(u32::MAX), room);
                        visitor.text(field, room.as_bytes());
                    }
                }
            }
            (_, Value::Integer(number)) => {
                let kind = &self.class().schema.field(field).kind;
                match kind {
                    Kind::Sint { .. } => visitor.sint(field, signed(number, argument.size)),
                    _ => visitor.uint(field, number),
                }
            }
            (_, Value::Float(number)) => visitor.float(field, number),
            (_, Value::Text(text)) => visitor.text(field, text),
        }
    }
}

impl Event for ElogEvent<'_, '_> {
    fn class(&self) -> &EventClass {
        &self.cursor.recording.classes[self.class_index()]
    }

    fn class_index(&self) -> usize {
        // There are as many classes as types, at most as many as this number can express.
        const { assert!(MOST_NUMBERS == u16::MAX as usize + 1) };
        self.head.kind.into()
    }

    fn timestamp(&self) -> Option<Timestamp> {
        self.cursor.recording.place.timestamp(self.ticks()?)
    }

    fn ticks(&self) -> Option<u64> {
        ticks(self.head.seconds, self.cursor.recording.early)
    }

    fn number(&self) -> u64 {
        self.number.into()
    }

    fn begin_bit(&self) -> u64 {
        self.bit(self.begin)
    }

    fn visit<V: Visitor>(&self, visitor: &mut V) -> Result<(), Fault> {
        let recording = self.cursor.recording;
        let track = self.bit(self.begin + 2);
        visitor.at(track);
        visitor.begin_struct(field::CONTEXT);
        visitor.at(track);
        visitor.uint(field::TRACK, self.head.track.into());
        visitor.after(track + 16);
        visitor.at(track);
        match recording.log.tracks.get(usize::from(self.head.track)) {
            Some(name) => visitor.text(field::TRACK_NAME, &recording.bytes[name.clone()]),
            None => {
                let (room, _) = &mut *self.cursor.room.borrow_mut();
                room.clear();
                room.decimal(self.head.track.into());
                visitor.text(field::TRACK_NAME, room.as_bytes());
            }
        }
        visitor.after(track + 16);
        visitor.at(track + 16);
        visitor.end_struct(field::CONTEXT);
        let arguments = self.begin + EVENT_HEAD;
        visitor.at(self.bit(arguments));
        visitor.begin_struct(field::PAYLOAD);
        let mut reader = Reader::new(&recording.bytes, arguments);
        let mut next = field::PAYLOAD.0 + 1;
        for &argument in &self.kind.arguments {
            visitor.at(self.bit(reader.at));
            let Some(value) = reader.value(argument) else {
                return Err(Fault::new(FaultCode::Truncated, self.bit(reader.at), 0));
            };
            self.argument(FieldId(next), argument, value, visitor);
            visitor.after(self.bit(reader.at));
            next += 1;
        }
        if visitor.wants(FieldId(next)) {
            let (room, piece) = &mut *self.cursor.room.borrow_mut();
            room.clear();
            let mut reader = Reader::new(&recording.bytes, arguments);
            let text = write(&recording.log, self.kind, &mut reader, room, piece);
            text.ok_or(Fault::new(FaultCode::Truncated, self.bit(arguments), 0))?;
            visitor.at(self.bit(arguments));
            visitor.text(FieldId(next), room.as_bytes());
            visitor.after(self.bit(self.end));
        }
        visitor.at(self.bit(self.end));
        visitor.end_struct(field::PAYLOAD);
        Ok(())
    }
}
