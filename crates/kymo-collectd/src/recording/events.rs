//! Lists and messages as events.

use std::ops::Range;

use kymo_model::{Cursor, Event, EventClass, Fault, FieldId, Visitor};
use kymo_time::{CdTime, Timestamp};

use super::{List, Message, Recording, VALUES, list_field, message_field};
use crate::Value;

/// Walks the lists or the messages of a chunk.
#[derive(Debug)]
pub struct SampleCursor<'a> {
    recording: &'a Recording,
    stream: usize,
    first: usize,
    rest: Range<usize>,
}

impl<'a> SampleCursor<'a> {
    pub(super) fn new(recording: &'a Recording, stream: usize, range: Range<usize>) -> Self {
        Self {
            recording,
            stream,
            first: range.start,
            rest: range,
        }
    }
}

impl<'c> Cursor for SampleCursor<'c> {
    type Event<'a>
        = SampleEvent<'c>
    where
        Self: 'a;

    fn next_event(&mut self) -> Result<Option<SampleEvent<'c>>, Fault> {
        let content = &self.recording.content;
        let Some(number) = self.rest.next() else {
            return Ok(None);
        };
        let entry = match self.stream {
            VALUES => content.lists.get(number).map(Entry::List),
            _ => content.messages.get(number).map(Entry::Message),
        };
        let begin = self
            .recording
            .place(self.stream, self.first)
            .map_or(0, |place| place.1);
        Ok(entry.map(|entry| SampleEvent {
            recording: self.recording,
            entry,
            number: (number - self.first) as u64,
            begin,
        }))
    }
}

#[derive(Clone, Copy, Debug)]
enum Entry<'a> {
    List(&'a List),
    Message(&'a Message),
}

/// A list of values or a message as an event.
#[derive(Debug)]
pub struct SampleEvent<'a> {
    recording: &'a Recording,
    entry: Entry<'a>,
    number: u64,
    /// The position at which the chunk begins.
    begin: u64,
}

impl SampleEvent<'_> {
    fn time(&self) -> CdTime {
        match self.entry {
            Entry::List(list) => list.time,
            Entry::Message(message) => message.time,
        }
    }
}

impl Event for SampleEvent<'_> {
    fn class(&self) -> &EventClass {
        &self.recording.classes[self.class_index()]
    }

    fn class_index(&self) -> usize {
        match self.entry {
            Entry::List(_) => 0,
            Entry::Message(_) => 1,
        }
    }

    fn timestamp(&self) -> Option<Timestamp> {
        self.recording.timestamp(self.time())
    }

    fn ticks(&self) -> Option<u64> {
        Some(self.time().ticks())
    }

    fn number(&self) -> u64 {
        self.number
    }

    fn begin_bit(&self) -> u64 {
        let position = match self.entry {
            Entry::List(list) => list.position,
            Entry::Message(message) => message.position,
        };
        position.saturating_sub(self.begin).saturating_mul(8)
    }

    fn visit<V: Visitor>(&self, visitor: &mut V) -> Result<(), Fault> {
        let bit = self.begin_bit();
        visitor.at(bit);
        visitor.begin_struct(FieldId(0));
        match self.entry {
            Entry::List(list) => self.visit_list(list, bit, visitor),
            Entry::Message(message) => self.visit_message(message, bit, visitor),
        }
        visitor.at(bit);
        visitor.end_struct(FieldId(0));
        Ok(())
    }
}

impl SampleEvent<'_> {
    fn visit_list<V: Visitor>(&self, list: &List, bit: u64, visitor: &mut V) {
        let content = &self.recording.content;
        uint(list_field::TIME, list.time.ticks(), bit, visitor);
        uint(list_field::INTERVAL, list.interval.ticks(), bit, visitor);
        let id = content.id(list.names).canonical();
        text(list_field::ID, &id, bit, visitor);
        visitor.at(bit);
        visitor.begin_array(list_field::VALUES, list.count.into());
        let end = list.first + usize::from(list.count);
        for value in content.values.get(list.first..end).unwrap_or_default() {
            let code = value.to_wire().0;
            let option = FieldId(list_field::FIRST_KIND + u32::from(code));
            visitor.at(bit);
            visitor.begin_variant(list_field::VALUE, code.into(), code.into());
            visitor.at(bit);
            match *value {
                Value::Counter(value) | Value::Absolute(value) => visitor.uint(option, value),
                Value::Gauge(value) => visitor.float(option, value),
                Value::Derive(value) => visitor.sint(option, value),
            }
            visitor.after(bit);
            visitor.at(bit);
            visitor.end_variant(list_field::VALUE);
        }
        visitor.at(bit);
        visitor.end_array(list_field::VALUES);
        text(list_field::SECURITY, list.security.as_str(), bit, visitor);
    }

    fn visit_message<V: Visitor>(&self, message: &Message, bit: u64, visitor: &mut V) {
        let content = &self.recording.content;
        uint(message_field::TIME, message.time.ticks(), bit, visitor);
        text(
            message_field::SEVERITY,
            message.severity.as_str(),
            bit,
            visitor,
        );
        let id = content.id(message.names).canonical();
        text(message_field::ID, &id, bit, visitor);
        text(
            message_field::MESSAGE,
            content.text(message.text),
            bit,
            visitor,
        );
        text(
            message_field::SECURITY,
            message.security.as_str(),
            bit,
            visitor,
        );
    }
}

fn uint<V: Visitor>(field: FieldId, value: u64, bit: u64, visitor: &mut V) {
    visitor.at(bit);
    visitor.uint(field, value);
    visitor.after(bit);
}

fn text<V: Visitor>(field: FieldId, text: &str, bit: u64, visitor: &mut V) {
    visitor.at(bit);
    visitor.text(field, text.as_bytes());
    visitor.after(bit);
}
