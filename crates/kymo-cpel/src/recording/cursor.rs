//! The events of a chunk, one after the other.

use std::cell::RefCell;

use kymo_model::{
    BlockQuery, Chunk, Cursor, Event, EventBlock, EventClass, EventVisitor, Fault, Visitor,
};
use kymo_text::Line;
use kymo_time::Timestamp;

use super::classes::{DatumText, OTHER_CODES, field};
use super::{CHUNK, ENTRY_BITS, Log, Recording};
use crate::definitions::InFile;
use crate::entries::{Entries, Entry};
use crate::format::{MOST_TEXT, bad_offset, write};

/// Walks the events of a chunk.
pub struct LogCursor<'a> {
    pub(super) recording: &'a Recording,
    pub(super) log: &'a Log,
    pub(super) entries: Entries<'a>,
    names: InFile<'a>,
    /// The bytes in which fields have places: those of the chunk, or of all events if they are not in the order of time.
    places: &'a [u8],
    /// The position of the first event in them.
    pub(super) first_position: usize,
    /// The first event of the chunk.
    pub(super) first: usize,
    pub(super) next: usize,
    pub(super) end: usize,
    /// Texts are made here.
    room: RefCell<Line>,
}

impl<'a> LogCursor<'a> {
    pub(super) fn new(recording: &'a Recording, chunk: &Chunk) -> Self {
        let log = &recording.logs[chunk.stream];
        let entries = recording.entries(log);
        let first = chunk.number.saturating_mul(CHUNK);
        let (places, first_position) = match log.order {
            None => (entries.slice(first, CHUNK).bytes(), first),
            Some(_) => (entries.bytes(), 0),
        };
        Self {
            places,
            first_position,
            recording,
            log,
            entries,
            names: recording.names(&log.section.strings),
            first,
            next: first,
            end: entries.len().min(first.saturating_add(CHUNK)),
            room: RefCell::new(Line::new()),
        }
    }

    /// The class of a code. Codes beyond those that have classes are of the last one.
    #[inline]
    pub(super) fn class_of(&self, code: u32) -> usize {
        let class = self.recording.definitions.event_at.get(code);
        class.map_or(self.recording.classes.len().saturating_sub(1), |class| {
            class as usize
        })
    }

    /// The event at a place in the order of time.
    #[inline]
    pub(super) fn event(&self, place: usize, entry: Entry) -> LogEvent<'_, 'a> {
        LogEvent {
            cursor: self,
            entry,
            class: self.class_of(entry.code),
            number: (place - self.first) as u64,
        }
    }
}

impl<'c> Cursor for LogCursor<'c> {
    type Event<'a>
        = LogEvent<'a, 'c>
    where
        Self: 'a;

    #[inline]
    fn next_event(&mut self) -> Result<Option<LogEvent<'_, 'c>>, Fault> {
        if self.next >= self.end {
            return Ok(None);
        }
        let place = self.next;
        self.next += 1;
        let Some(entry) = self.log.entry(self.entries, place) else {
            return Ok(None);
        };
        Ok(Some(self.event(place, entry)))
    }

    fn walk_block<V: EventVisitor>(
        &mut self,
        query: &BlockQuery<'_>,
        most: usize,
        block: &mut EventBlock,
        visitor: &mut V,
    ) -> Result<bool, Fault> {
        self.walk(query, most, block, visitor)
    }

    fn bytes(&self) -> &[u8] {
        self.places
    }
}

/// An event of a log.
pub struct LogEvent<'a, 'c> {
    cursor: &'a LogCursor<'c>,
    entry: Entry,
    class: usize,
    number: u64,
}

impl LogEvent<'_, '_> {
    /// The event as it lies in the file.
    pub fn entry(&self) -> Entry {
        self.entry
    }

    fn track_name<V: Visitor>(&self, visitor: &mut V) {
        let recording = self.cursor.recording;
        let known = recording.definitions.track(self.entry.track);
        if let Some(text) = known.and_then(|track| track.constant(&recording.bytes)) {
            return visitor.text(field::TRACK_NAME, text);
        }
        let mut room = self.cursor.room.borrow_mut();
        room.clear();
        recording.write_track_name(self.entry.track, &mut room);
        visitor.text(field::TRACK_NAME, room.as_bytes());
    }

    fn text<V: Visitor>(&self, visitor: &mut V) {
        let (names, datum) = (&self.cursor.names, self.entry.datum);
        match &self.cursor.recording.datums[self.class] {
            DatumText::Empty => visitor.text(field::TEXT, b""),
            DatumText::Constant(text) => visitor.text(field::TEXT, names.slice(text)),
            DatumText::String => match names.string(datum) {
                Some(text) => visitor.text(field::TEXT, text),
                None => self.made(visitor, |room| bad_offset(datum, room)),
            },
            DatumText::Made {
                format, program, ..
            } => {
                self.made(visitor, |room| match program {
                    Some(program) => program.write(datum, names, room, MOST_TEXT),
                    None => write(names.slice(format), datum, names, room, MOST_TEXT),
                });
            }
            DatumText::Bad(offset) => self.made(visitor, |room| bad_offset(*offset, room)),
        }
    }

    /// Shows a text that is made for it.
    fn made<V: Visitor>(&self, visitor: &mut V, make: impl FnOnce(&mut Line)) {
        let mut room = self.cursor.room.borrow_mut();
        room.clear();
        make(&mut room);
        visitor.text(field::TEXT, room.as_bytes());
    }
}

impl Event for LogEvent<'_, '_> {
    #[inline]
    fn class(&self) -> &EventClass {
        &self.cursor.recording.classes[self.class]
    }

    #[inline]
    fn class_index(&self) -> usize {
        self.class
    }

    #[inline]
    fn timestamp(&self) -> Option<Timestamp> {
        self.cursor.log.place.timestamp(self.entry.time)
    }

    #[inline]
    fn ticks(&self) -> Option<u64> {
        Some(self.entry.time)
    }

    #[inline]
    fn number(&self) -> u64 {
        self.number
    }

    #[inline]
    fn begin_bit(&self) -> u64 {
        self.number * ENTRY_BITS
    }

    fn visit<V: Visitor>(&self, visitor: &mut V) -> Result<(), Fault> {
        // Of the five words of an event, the third is the track and the last the datum.
        let bit = self.begin_bit();
        let (track, datum, end) = (bit + 64, bit + 128, bit + ENTRY_BITS);
        visitor.at(track);
        visitor.begin_struct(field::CONTEXT);
        visitor.at(track);
        visitor.uint(field::TRACK, self.entry.track.into());
        visitor.after(track + 32);
        visitor.at(track);
        if visitor.wants(field::TRACK_NAME) {
            self.track_name(visitor);
        }
        visitor.after(track + 32);
        visitor.at(track + 32);
        visitor.end_struct(field::CONTEXT);
        visitor.at(datum);
        visitor.begin_struct(field::PAYLOAD);
        visitor.at(datum);
        visitor.uint(field::DATUM, self.entry.datum.into());
        visitor.after(end);
        visitor.at(datum);
        if visitor.wants(field::TEXT) {
            self.text(visitor);
        }
        visitor.after(end);
        if self.class().id == OTHER_CODES {
            visitor.at(track + 32);
            visitor.uint(field::CODE, self.entry.code.into());
            visitor.after(datum);
        }
        visitor.at(end);
        visitor.end_struct(field::PAYLOAD);
        Ok(())
    }
}
