//! elog files as recordings.
//!
//! A file is one stream. Where an event begins is known when the one before it has been read, so
//! that opening a file reads all events and records where each chunk begins. Each type of
//! events is a class, which goes by the first word of its format. Its events have the fields
//! `track` and `track_name` (in the common context), the arguments, which the file does not name,
//! as `arg0`, `arg1` and so on, and `text`: what the format makes of them.

mod cursor;

use std::cell::RefCell;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kymo_io::{Bytes, Changed, Watch};
use kymo_model::{
    Base, Change, Chunk, EventClass, Fault, FaultCode, FaultReport, Format, Kind, Labels, Mapping,
    RefreshError, Refreshed, RowPlace, Schema, Shift, ShiftError, StreamInfo,
};
use kymo_text::Line;
use kymo_time::{Clock, NANOS_PER_SECOND, Origin, Timestamp};

use super::text::{event_name, next_conversion};
use super::{Argument, ArgumentKind, BEGIN_AT, Error, EventType, Log, Reader};
use crate::clock::{Place, Rate};
use crate::recording::{field, schema};

pub use cursor::{ElogCursor, ElogEvent};

/// Number of events of a chunk, which is processed in one go.
const CHUNK: u32 = 1 << 14;
/// Bytes of an event's name.
const MOST_NAME: usize = 1024;

/// A chunk of events.
#[derive(Clone, Copy, Debug)]
struct Part {
    /// Where its first event begins.
    offset: usize,
    events: u32,
    /// In ticks.
    begin: Option<u64>,
    end: Option<u64>,
    /// Whether its times determine where it is among others.
    is_sorted: bool,
}

/// A file that is open.
#[derive(Debug)]
pub struct Recording {
    path: PathBuf,
    name: Option<String>,
    bytes: Bytes,
    watch: Watch,
    shifted: Shift,
    log: Log,
    parts: Vec<Part>,
    /// Where the last event ends.
    end: usize,
    /// Nanoseconds from the earliest event to the beginning of recording, if there are such; ticks count
    /// from there.
    early: u64,
    place: Place,
    streams: Vec<StreamInfo>,
    classes: Vec<EventClass>,
    faults: Vec<FaultReport>,
}

impl Recording {
    /// The log in the bytes of a file.
    ///
    /// # Errors
    ///
    /// When it is none, or ends before its events begin.
    pub fn new(path: &Path, bytes: Bytes) -> Result<Self, Error> {
        let log = Log::read(&bytes)?;
        let begin = i64::try_from(log.begin.unix_nanos()).unwrap_or(i64::MAX);
        let place = Place {
            rate: Rate::NANOSECONDS,
            offset_nanos: begin,
        };
        let classes = log.types.iter().enumerate();
        let classes = classes
            .map(|(number, kind)| event_class(number, kind, &bytes))
            .collect();
        let mut recording = Self {
            path: path.to_path_buf(),
            name: kymo_io::stem(path),
            watch: Watch::new(path, &bytes),
            shifted: Shift::default(),
            bytes,
            log,
            parts: Vec::new(),
            end: 0,
            early: 0,
            place,
            streams: vec![StreamInfo {
                class: 0,
                id: Some(0),
                name: "events".into(),
                clock: Some(Arc::new(clock(place))),
                packet_schema: Arc::new(Schema::new()),
            }],
            classes,
            faults: Vec::new(),
        };
        let early = recording.scan();
        if early > 0 {
            recording.early = early;
            recording.parts.clear();
            recording.faults.clear();
            // The beginning is not before 1970, so subtracting this many nanoseconds never overflows.
            recording.set_offset(recording.place.offset_nanos.saturating_sub_unsigned(early));
            recording.scan();
        }
        for Error { offset, message } in recording.log.passed_over.clone() {
            recording.find(FaultCode::LengthLimit, offset, message);
        }
        let nanos = recording.log.begin.unix_nanos();
        if i64::try_from(nanos).is_err() {
            let message = format!(
                "recording began {nanos} ns after 1970, which is later than 63 bits can hold: the \
                 times of its events are wrong"
            );
            recording.find(FaultCode::TimeRange, BEGIN_AT, message);
        }
        Ok(recording)
    }

    fn set_offset(&mut self, nanos: i64) {
        self.place.offset_nanos = nanos;
        for stream in &mut self.streams {
            stream.clock = Some(Arc::new(clock(self.place)));
        }
    }

    /// Goes through all events that are not known: finds where chunks begin, and what is wrong. Returns how many
    /// nanoseconds before tick zero there are events.
    fn scan(&mut self) -> u64 {
        let mut early = 0;
        let known = self.parts.iter().map(|part| part.events).sum();
        let begin = if known == 0 {
            self.log.offset
        } else {
            self.end
        };
        let mut reader = Reader::new(&self.bytes, begin);
        let mut without_time = None;
        let mut without_track = None;
        let mut damage = None;
        for number in known..self.log.events {
            let offset = reader.at;
            let Some(head) = reader.head() else {
                damage = Some((FaultCode::Truncated, offset, "the file ends".to_string()));
                break;
            };
            let Some(kind) = self.log.types.get(usize::from(head.kind)) else {
                let message = format!("there is no type {} of events", head.kind);
                damage = Some((FaultCode::UnknownEventClass, offset, message));
                break;
            };
            if reader.skip(&kind.arguments).is_none() {
                let message = "the file ends within its arguments".to_string();
                damage = Some((FaultCode::Truncated, offset, message));
                break;
            }
            if let Some(nanos) = nanos(head.seconds) {
                early = early.max(nanos.saturating_neg().saturating_sub_unsigned(self.early));
            }
            let ticks = ticks(head.seconds, self.early);
            let time = ticks.and_then(|ticks| self.place.timestamp(ticks));
            if time.is_none() {
                without_time.get_or_insert((number, offset));
            }
            if usize::from(head.track) >= self.log.tracks.len() {
                without_track.get_or_insert((number, offset, head.track));
            }
            if number % CHUNK == 0 {
                self.parts.push(Part {
                    offset,
                    events: 0,
                    begin: ticks,
                    end: ticks,
                    is_sorted: true,
                });
            }
            if let Some(part) = self.parts.last_mut() {
                part.events += 1;
                part.is_sorted &= part.end <= ticks && ticks.is_some();
                part.end = ticks;
            }
            self.end = reader.at;
        }
        self.end = self.end.max(self.log.offset);
        let (end, whole) = (self.end, damage.is_none());
        if let Some((code, offset, message)) = damage {
            let read: u32 = self.parts.iter().map(|part| part.events).sum();
            let events = self.log.events;
            self.find(
                code,
                offset,
                format!("event {read} of {events}: {message}; it and all after it are lost"),
            );
        }
        if let Some((number, offset)) = without_time {
            let message = format!("the time of event {number} is none");
            self.find(FaultCode::TimeRange, offset, message);
        }
        if let Some((number, offset, track)) = without_track {
            let message = format!("event {number} is on track {track}, which has no name");
            self.find(FaultCode::StringOffset, offset, message);
        }
        if whole && end < self.bytes.len() {
            let count = self.bytes.len() - end;
            let message = format!("{count} bytes after the last event");
            self.find(FaultCode::TrailingData, end, message);
        }
        u64::try_from(early).unwrap_or(0)
    }

    fn find(&mut self, code: FaultCode, offset: usize, message: String) {
        self.faults.push(FaultReport::new(
            code,
            Arc::new(self.path.clone()),
            offset as u64,
            message,
        ));
    }

    /// What the file holds before its events.
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// All bytes of the file.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// When recording began, on the common line.
    pub fn begin(&self) -> Timestamp {
        Timestamp::from_nanos(self.place.offset_nanos)
    }

    /// Number of bytes of the file.
    pub fn size(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Number of events that can be read.
    pub fn events(&self) -> u64 {
        self.parts.iter().map(|part| u64::from(part.events)).sum()
    }
}

impl Recording {
    /// Reads a file that has changed: what was added, where it has grown at its end.
    fn read_again(&mut self, changed: Changed) -> Result<Refreshed, RefreshError> {
        let path = self.path.clone();
        let error = |error: Error| RefreshError::new(&path, &error);
        let log = Log::read(&changed.bytes).map_err(error)?;
        let known = self.events() as usize;
        let has_grown = log.events >= self.log.events
            && (Log {
                events: self.log.events,
                ring_size: self.log.ring_size,
                saved: self.log.saved,
                ..log.clone()
            }) == self.log;
        let mut is_same = changed.is_in_place && has_grown;
        if is_same {
            self.log = log;
            self.bytes = changed.bytes;
            let end = self.end as u64;
            let of_end = [FaultCode::Truncated, FaultCode::TrailingData];
            let is_past = |fault: &FaultReport| fault.offset >= end && of_end.contains(&fault.code);
            self.faults.retain(|fault| !is_past(fault));
            self.watch = changed.watch;
            if self.scan() == 0 {
                return Ok(self.refreshed(known, is_same, false));
            }
            // Ticks count from another time now.
            let bytes = std::mem::replace(&mut self.bytes, Bytes::from(Vec::new()));
            *self = self.again(bytes)?;
            return Ok(self.refreshed(known, is_same, false));
        }
        let other = self.again(changed.bytes)?;
        let has_other_classes = self.formats() != other.formats();
        is_same = other.begins_as(self, !changed.is_in_place && !changed.is_cut);
        *self = Self {
            watch: changed.watch,
            ..other
        };
        Ok(self.refreshed(known, is_same, has_other_classes))
    }

    /// The same file with other bytes, with the times shifted as before.
    fn again(&self, bytes: Bytes) -> Result<Self, RefreshError> {
        let error = |error: &dyn std::fmt::Display| RefreshError::new(&self.path, &error);
        let mut again = Self::new(&self.path, bytes).map_err(|it| error(&it))?;
        kymo_model::Recording::shift(&mut again, self.shifted).map_err(|it| error(&it))?;
        Ok(again)
    }

    /// What has changed since `known` events were known.
    fn refreshed(&self, known: usize, is_same: bool, has_other_classes: bool) -> Refreshed {
        let mut refreshed = Refreshed {
            has_other_classes,
            ..Refreshed::default()
        };
        if !is_same {
            let from = RowPlace::default();
            refreshed.push(0, Change::Replaced { from });
        } else if self.events() as usize > known {
            let from = RowPlace::of_row(known, CHUNK as usize);
            refreshed.push(0, Change::Appended { from });
        }
        refreshed
    }

    /// Names and kinds of fields of all classes.
    fn formats(&self) -> Vec<(Option<&str>, &[Argument])> {
        let classes = self.classes.iter().zip(&self.log.types);
        classes
            .map(|(class, kind)| (class.name.as_deref(), &*kind.arguments))
            .collect()
    }

    /// Whether its first events are those of another one. The bytes of the other can be looked at only where
    /// they are what they were.
    fn begins_as(&self, other: &Self, with_bytes: bool) -> bool {
        let ends = |recording: &Self| {
            (
                recording.log.begin,
                recording.parts.first().map(|part| part.begin),
            )
        };
        if self.events() < other.events() || (other.events() > 0 && ends(self) != ends(other)) {
            return false;
        }
        let whole = |recording: &Self, count: usize| -> Vec<_> {
            let parts = recording.parts.iter().take(count);
            parts.map(|part| (part.events, part.end)).collect()
        };
        let count = other.parts.len().saturating_sub(1);
        if whole(self, count) != whole(other, count)
            || !self.formats().starts_with(&other.formats())
        {
            return false;
        }
        let events = |recording: &Self| recording.log.offset..recording.end;
        !with_bytes
            || self
                .bytes
                .get(events(self))
                .zip(other.bytes.get(events(other)))
                .is_some_and(|(own, others)| own.starts_with(others))
    }
}

/// The clock of the events.
fn clock(place: Place) -> Clock {
    let (seconds, nanos) = Timestamp::from_nanos(place.offset_nanos).split();
    Clock {
        offset_seconds: seconds,
        offset_cycles: nanos.into(),
        origin: Origin::UnixEpoch,
        ..Clock::default()
    }
}

/// Nanoseconds since recording began; `None` if the value is not a time.
fn nanos(seconds: f64) -> Option<i64> {
    let nanos = (seconds * NANOS_PER_SECOND as f64).round();
    (nanos.abs() < i64::MAX as f64).then_some(nanos as i64)
}

/// Nanoseconds since `early` nanoseconds before recording began; `None` if that is negative or not a time.
fn ticks(seconds: f64, early: u64) -> Option<u64> {
    early.checked_add_signed(nanos(seconds)?)
}

fn event_class(number: usize, kind: &EventType, bytes: &[u8]) -> EventClass {
    let format = &bytes[kind.format.clone()];
    let mut schema = schema();
    let mut labels = None;
    let mut at = 0;
    for (position, argument) in kind.arguments.iter().enumerate() {
        // A conversion knows whether its number is signed.
        let conversion = next_conversion(format, at);
        at = conversion.map_or(format.len(), |conversion| conversion.end());
        let is_signed =
            conversion.is_some_and(|conversion| matches!(conversion.letter, b'd' | b'i'));
        let bits = u32::from(argument.size) * 8;
        let base = match conversion.map(|conversion| conversion.letter) {
            Some(b'x' | b'X' | b'p') => Base::Hexadecimal,
            Some(b'o') => Base::Octal,
            _ => Base::Decimal,
        };
        let field = match argument.kind {
            ArgumentKind::Integer if is_signed => Kind::Sint {
                bits,
                base,
                labels: None,
            },
            ArgumentKind::Integer => Kind::Uint {
                bits,
                base,
                labels: None,
            },
            ArgumentKind::Label => Kind::Uint {
                bits,
                base: Base::Decimal,
                labels: Some(Arc::clone(
                    labels.get_or_insert_with(|| Arc::new(label_names(kind, bytes))),
                )),
            },
            ArgumentKind::Float => Kind::Float { bits },
            ArgumentKind::Table | ArgumentKind::String => Kind::Text,
        };
        schema.push_child(field::PAYLOAD, Some(format!("arg{position}").into()), field);
    }
    schema.push_child(field::PAYLOAD, Some("text".into()), Kind::Text);
    let (name, _) = event_name(format);
    let name = if name.is_empty() { format } else { name };
    let name = String::from_utf8_lossy(&name[..name.len().min(MOST_NAME)]);
    EventClass {
        id: number as u64,
        stream_class: 0,
        name: Some(name.into()),
        log_level: None,
        emf_uri: None,
        schema,
    }
}

fn label_names(kind: &EventType, bytes: &[u8]) -> Labels {
    let mapping = |(number, place): (usize, &Range<usize>)| Mapping {
        label: String::from_utf8_lossy(&bytes[place.clone()]).into(),
        ranges: vec![(number as u64, number as u64)],
    };
    Labels::new(false, kind.labels.iter().enumerate().map(mapping).collect())
}

impl kymo_model::Recording for Recording {
    type Cursor<'a> = ElogCursor<'a>;

    fn path(&self) -> &Path {
        &self.path
    }

    fn format(&self) -> Format {
        Format {
            name: "elog",
            version: "v0",
        }
    }

    fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    fn streams(&self) -> &[StreamInfo] {
        &self.streams
    }

    fn event_classes(&self) -> &[EventClass] {
        &self.classes
    }

    fn track_rule(&self, _class: usize) -> kymo_model::TrackRule {
        crate::recording::classes::TRACKS
    }

    fn shift(&mut self, shift: Shift) -> Result<(), ShiftError> {
        self.set_offset(shift.apply(self.place.offset_nanos)?);
        self.shifted = self.shifted.and(shift);
        Ok(())
    }

    fn refresh(&mut self) -> Result<Refreshed, RefreshError> {
        let error = |error| RefreshError::new(&self.path, &error);
        match self.watch.changed(&self.path).map_err(error)? {
            Some(changed) => self.read_again(changed),
            None => Ok(Refreshed::default()),
        }
    }

    fn chunk_count(&self, stream: usize) -> usize {
        match stream {
            0 => self.parts.len(),
            _ => 0,
        }
    }

    fn chunk(&self, stream: usize, number: usize) -> Option<Chunk> {
        let part = self.parts.get(number).filter(|_| stream == 0)?;
        let end = self
            .parts
            .get(number + 1)
            .map_or(self.end, |next| next.offset);
        let time = |ticks: Option<u64>| self.place.timestamp(ticks.filter(|_| part.is_sorted)?);
        Some(Chunk {
            stream,
            number,
            bytes: (end - part.offset) as u64,
            begin: part.begin,
            end: part.end,
            begin_time: time(part.begin),
            end_time: time(part.end),
            lost_events: None,
            lost_chunks: None,
        })
    }

    fn cursor(&self, chunk: &Chunk) -> ElogCursor<'_> {
        let part = self.parts[chunk.number];
        ElogCursor {
            recording: self,
            begin: part.offset,
            next: part.offset,
            number: 0,
            events: part.events,
            room: RefCell::new((Line::new(), Line::new())),
        }
    }

    fn faults(&self) -> &[FaultReport] {
        &self.faults
    }

    fn report(&self, chunk: &Chunk, event: Option<(u64, usize)>, fault: Fault) -> FaultReport {
        let offset = self.parts.get(chunk.number).map_or(0, |part| part.offset);
        let offset = offset as u64 + fault.bit / 8;
        fault.report(&self.path, offset, event.map(|(number, _)| number))
    }
}
