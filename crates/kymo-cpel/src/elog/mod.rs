//! Event logs as VPP's `event-logger save` writes them.
//!
//! A file holds the timestamps that place it in time, the types of events with their formats and
//! arguments, the names of tracks, a table of strings, and the events one after the other, each as
//! long as its arguments are. Integers are big-endian; of those of 64 bits, and of doubles, the
//! lower half comes first.

mod recording;
mod text;
pub mod write;

use std::fmt;
use std::ops::Range;

use kymo_time::NANOS_PER_SECOND;

pub use recording::{ElogCursor, ElogEvent, Recording};
pub use text::event_name;
pub(crate) use text::write as write_text;

/// What files begin with, after the length of it.
const MAGIC: &[u8] = b"\0\0\0\x07elog v0";
/// Types that events can be of, and tracks that they can be on: both numbers have 16 bits.
pub(crate) const MOST_NUMBERS: usize = 1 << 16;
/// Arguments of a type. An event has at most 20 bytes of them, and each takes one or more.
const MOST_ARGUMENTS: usize = 64;
/// Labels of all types together. One takes a byte of the file, and a hundred of the memory.
const MOST_LABELS: usize = 1 << 18;
/// Bytes of an event before its arguments: type, track, time.
pub(crate) const EVENT_HEAD: usize = 12;
/// From this number on, nanoseconds of the operating system count from 1970.
const UNIX_NANOS: u64 = 1_000_000_000_000_000_000;
/// Where they count from otherwise: 2017-03-30, in nanoseconds since 1970.
const LATER_EPOCH: u64 = 1_490_885_108_000_000_000;

/// Where a file states when recording began.
pub(crate) const BEGIN_AT: usize = MAGIC.len() + 4 + 16;
/// How far the processors of two logs may be from the same frequency, in nanoseconds of a tick.
const SAME_FREQUENCY: f64 = 1e-2;
/// Maximum difference between two clocks over the distance of two timestamps, in nanoseconds.
const SAME_DISTANCE: f64 = 100.0;

/// Whether some bytes begin as elog files do.
pub fn begins(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

/// Whether seconds are a time at all: not NaN, and no more nanoseconds than 64 bits hold.
pub(crate) fn is_time(seconds: f64) -> bool {
    (seconds * NANOS_PER_SECOND as f64).abs() < i64::MAX as f64
}

/// A reading of two clocks at the same time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// Nanoseconds of the operating system, as the file has them.
    pub os_nanos: u64,
    /// Ticks of the processor.
    pub cpu: u64,
}

impl Moment {
    /// Some nanoseconds since 1970, with as many ticks of a processor. Times before 2001-09-09 cannot
    /// be stored: they are read as that much after 2017-03-30, the epoch of today's VPP.
    pub const fn of_unix_nanos(nanos: u64) -> Self {
        let os_nanos = match nanos.checked_sub(LATER_EPOCH) {
            Some(since @ ..UNIX_NANOS) => since,
            _ => nanos,
        };
        Self {
            os_nanos,
            cpu: os_nanos,
        }
    }

    /// Nanoseconds since 1970. Files of 2017 and later count from a day of that year.
    pub const fn unix_nanos(&self) -> u64 {
        match self.os_nanos {
            UNIX_NANOS.. => self.os_nanos,
            nanos => nanos + LATER_EPOCH,
        }
    }
}

/// What an argument is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgumentKind {
    /// A number.
    Integer,
    /// The position of one of the strings of its type.
    Label,
    /// The offset of a string in the string table.
    Table,
    /// A floating point number.
    Float,
    /// A string within the event.
    String,
}

/// An argument of a type of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Argument {
    /// What it is.
    pub kind: ArgumentKind,
    /// Its size in bytes: 1, 2, 4 or 8. Of a string those that the recorder keeps, or 0; it has any
    /// length in a file.
    pub size: u8,
}

/// A value of an argument.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// An integer of any meaning.
    Integer(u64),
    /// A floating point number.
    Float(f64),
    /// A string.
    Text(&'a [u8]),
}

/// A type of events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventType {
    /// Where its format is.
    pub format: Range<usize>,
    /// Its arguments.
    pub arguments: Vec<Argument>,
    /// Where its strings are.
    pub labels: Vec<Range<usize>>,
}

/// What an elog file holds before its events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    /// How many events the recorder keeps.
    pub ring_size: u32,
    /// When it was saved.
    pub saved: Moment,
    /// When recording began: times of events count from it.
    pub begin: Moment,
    /// Types of events: the first 65,536, as no event can be of another.
    pub types: Vec<EventType>,
    /// Where the names of tracks are: those of the first 65,536, as no event can be on another.
    pub tracks: Vec<Range<usize>>,
    /// Where the string table is.
    pub strings: Range<usize>,
    /// How many events there are.
    pub events: u32,
    /// Where the first one begins.
    pub offset: usize,
    /// What is passed over: types and tracks that no event can name.
    pub passed_over: Vec<Error>,
}

/// What is wrong with an elog file: mostly why it cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// Where in the file.
    pub offset: usize,
    /// What was found and what was expected.
    pub message: String,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "offset {}: {}", self.offset, self.message)
    }
}

impl std::error::Error for Error {}

/// The head of an event: what all events have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Head {
    /// Position of its type.
    pub kind: u16,
    /// Position of its track.
    pub track: u16,
    /// When, in seconds since recording began.
    pub seconds: f64,
}

/// Reads a file from its beginning.
pub(crate) struct Reader<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) at: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8], at: usize) -> Self {
        Self { bytes, at }
    }

    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let bytes = *self.bytes.get(self.at..)?.first_chunk()?;
        self.at += N;
        Some(bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_be_bytes)
    }

    fn u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_be_bytes)
    }

    /// Of 64 bits, the lower half comes first.
    fn u64(&mut self) -> Option<u64> {
        let [low, high] = [self.u32()?, self.u32()?];
        Some(u64::from(high) << 32 | u64::from(low))
    }

    fn moment(&mut self) -> Option<Moment> {
        Some(Moment {
            os_nanos: self.u64()?,
            cpu: self.u64()?,
        })
    }

    /// A number in as few bytes as it needs: those of less than 128 in one.
    fn varlen(&mut self) -> Option<u64> {
        let [first] = self.take()?;
        let number = match first {
            _ if first & 1 == 1 => u64::from(first) >> 1,
            _ if first & 2 == 2 => {
                let [second] = self.take()?;
                128 + (u64::from(second) << 8 | u64::from(first)) / 4
            }
            _ if first & 4 == 4 => {
                let [b, c, d] = self.take()?;
                128 + (1 << 14) + u64::from(u32::from_le_bytes([first, b, c, d]) / 8)
            }
            0 => u64::from_le_bytes(self.take()?),
            _ => return None,
        };
        Some(number)
    }

    /// A string with its length before it: where it is.
    fn string(&mut self) -> Option<Range<usize>> {
        let length = usize::try_from(self.varlen()?).ok()?;
        let begin = self.at;
        let end = begin.checked_add(length)?;
        self.bytes.get(begin..end)?;
        self.at = end;
        Some(begin..end)
    }

    /// The head of an event.
    #[inline]
    pub(crate) fn head(&mut self) -> Option<Head> {
        Some(Head {
            kind: self.u16()?,
            track: self.u16()?,
            seconds: f64::from_bits(self.u64()?),
        })
    }

    /// The value of an argument.
    #[inline]
    pub(crate) fn value(&mut self, argument: Argument) -> Option<Value<'a>> {
        let bits = match (argument.kind, argument.size) {
            (ArgumentKind::String, _) => {
                let place = self.string()?;
                return Some(Value::Text(&self.bytes[place]));
            }
            (_, 1) => self.take::<1>()?[0].into(),
            (_, 2) => self.u16()?.into(),
            (ArgumentKind::Float, 4) => {
                return Some(Value::Float(f32::from_bits(self.u32()?).into()));
            }
            (_, 4) => self.u32()?.into(),
            (ArgumentKind::Float, _) => return Some(Value::Float(f64::from_bits(self.u64()?))),
            _ => self.u64()?,
        };
        Some(Value::Integer(bits))
    }

    /// Skips the arguments of an event.
    #[inline]
    pub(crate) fn skip(&mut self, arguments: &[Argument]) -> Option<()> {
        for argument in arguments {
            match argument.kind {
                ArgumentKind::String => {
                    self.string()?;
                }
                _ => {
                    let end = self.at + usize::from(argument.size);
                    self.bytes.get(self.at..end)?;
                    self.at = end;
                }
            }
        }
        Some(())
    }
}

impl Log {
    /// Reads what comes before the events.
    ///
    /// # Errors
    ///
    /// If the input is not an elog file, or ends before its events begin.
    pub fn read(bytes: &[u8]) -> Result<Self, Error> {
        if !begins(bytes) {
            return Err(Error {
                offset: 0,
                message: "the file does not begin as an elog file does".to_string(),
            });
        }
        let mut reader = Reader::new(bytes, MAGIC.len());
        let (ring_size, saved, begin) = reported("the times", &mut reader, |reader| {
            Some((reader.u32()?, reader.moment()?, reader.moment()?))
        })?;
        let mut passed_over = Vec::new();
        let offset = reader.at;
        let count = reported("the number of types", &mut reader, Reader::u32)?;
        passed_over.extend(excess(offset, count, "types"));
        let mut types = Vec::new();
        let mut room = MOST_LABELS;
        for number in 0..count {
            let one = event_type(number, &mut reader, &mut room)?;
            if types.len() < MOST_NUMBERS {
                types.push(one);
            }
        }
        let offset = reader.at;
        let count = reported("the number of tracks", &mut reader, Reader::u32)?;
        passed_over.extend(excess(offset, count, "tracks"));
        let mut tracks = Vec::new();
        for number in 0..count {
            let what = format_args!("track {number}");
            let one = reported(what, &mut reader, Reader::string)?;
            // An empty name has one byte in the file, and many in memory.
            if tracks.len() < MOST_NUMBERS {
                tracks.push(one);
            }
        }
        let strings = reported("the string table", &mut reader, |reader| {
            let length = usize::try_from(reader.u32()?).ok()?;
            let begin = reader.at;
            reader.at = begin.checked_add(length)?;
            bytes.get(begin..reader.at)?;
            Some(begin..reader.at)
        })?;
        let events = reported("the number of events", &mut reader, Reader::u32)?;
        Ok(Self {
            ring_size,
            saved,
            begin,
            types,
            tracks,
            strings,
            events,
            offset: reader.at,
            passed_over,
        })
    }

    /// The string at an offset of the string table; `None` beyond its end.
    pub fn string<'a>(&self, bytes: &'a [u8], offset: u64) -> Option<&'a [u8]> {
        let strings = bytes.get(self.strings.clone())?;
        let rest = strings.get(usize::try_from(offset).ok()?..)?;
        (!rest.is_empty()).then(|| crate::format::string_of(rest))
    }
}

impl Log {
    /// The nanoseconds of a tick of the processor; `None` where its clock did not go on.
    fn nanos_per_tick(&self) -> Option<f64> {
        let ticks = self.saved.cpu.wrapping_sub(self.begin.cpu) as i64;
        let nanos = self.saved.os_nanos.wrapping_sub(self.begin.os_nanos) as i64;
        (ticks != 0).then(|| nanos as f64 / ticks as f64)
    }

    /// The nanoseconds from when the recording of another log began to when this one did, by VPP's
    /// rule: by the clock of the processor if both seem to have the same one, and otherwise by that of the
    /// system.
    pub fn distance_from(&self, other: &Self) -> i64 {
        let begin = |log: &Self| i64::try_from(log.begin.unix_nanos()).unwrap_or(i64::MAX);
        let by_system = begin(self).saturating_sub(begin(other));
        let (Some(own), Some(others)) = (self.nanos_per_tick(), other.nanos_per_tick()) else {
            return by_system;
        };
        let ticks = self.begin.cpu.wrapping_sub(other.begin.cpu) as i64;
        let by_processor = ticks as f64 * (own + others) / 2.0;
        let is_same = (own - others).abs() < SAME_FREQUENCY
            && (by_system as f64 - by_processor).abs() < SAME_DISTANCE;
        match is_same {
            true => by_processor.round() as i64,
            false => by_system,
        }
    }
}

/// Returns an error if there are more types or tracks than events can name.
fn excess(offset: usize, count: u32, what: &str) -> Option<Error> {
    (count as usize > MOST_NUMBERS).then(|| Error {
        offset,
        message: format!("{count} {what}, of which events can name the first {MOST_NUMBERS} only"),
    })
}

/// Reads something, or reports that the file ends in it.
fn reported<'a, T>(
    what: impl fmt::Display,
    reader: &mut Reader<'a>,
    read: impl FnOnce(&mut Reader<'a>) -> Option<T>,
) -> Result<T, Error> {
    let offset = reader.at;
    read(reader).ok_or_else(|| Error {
        offset,
        message: format!("the file ends within {what}, which begins here"),
    })
}

/// Reads a type of events; `room` is the number of labels that it may still have.
fn event_type(number: u32, reader: &mut Reader<'_>, room: &mut usize) -> Result<EventType, Error> {
    let offset = reader.at;
    let what = format_args!("type {number}");
    let (format, words) = reported(what, reader, |reader| {
        Some((reader.string()?, reader.string()?))
    })?;
    let arguments = arguments(&reader.bytes[words]).map_err(|message| Error {
        offset,
        message: format!("type {number}: {message}"),
    })?;
    let count = reported(what, reader, |reader| {
        // Its own number, and how many strings it has.
        reader.u32()?;
        reader.u32()
    })?;
    *room = usize::try_from(count)
        .ok()
        .and_then(|count| room.checked_sub(count))
        .ok_or_else(|| Error {
            offset,
            message: format!("type {number}: more than {MOST_LABELS} labels of all types"),
        })?;
    let labels = reported(what, reader, |reader| {
        (0..count).map(|_| reader.string()).collect()
    })?;
    Ok(EventType {
        format,
        arguments,
        labels,
    })
}

/// Reads how arguments are described: each by a letter and its size.
fn arguments(words: &[u8]) -> Result<Vec<Argument>, String> {
    let mut arguments = Vec::new();
    let mut rest = words;
    while let Some((&letter, after)) = rest.split_first() {
        let count = after
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        let (digits, after) = after.split_at(count);
        rest = after;
        let kind = match letter {
            b'i' => ArgumentKind::Integer,
            b't' => ArgumentKind::Label,
            b'T' => ArgumentKind::Table,
            b'f' => ArgumentKind::Float,
            b's' => ArgumentKind::String,
            // What comes after a format's own end.
            0 => break,
            _ => {
                let letter = letter.escape_ascii();
                return Err(format!(
                    "there is no argument `{letter}`: expected i, t, T, f or s"
                ));
            }
        };
        let size = match (kind, digits) {
            (ArgumentKind::String, digits) => std::str::from_utf8(digits)
                .ok()
                .and_then(|digits| digits.parse().ok())
                .unwrap_or(0),
            (ArgumentKind::Float, b"4" | b"8") => digits[0] - b'0',
            (ArgumentKind::Float, _) => 0,
            (_, b"1" | b"2" | b"4" | b"8") => digits[0] - b'0',
            _ => 0,
        };
        if size == 0 && kind != ArgumentKind::String {
            let (letter, digits) = (letter.escape_ascii(), digits.escape_ascii());
            return Err(format!("there is no argument `{letter}` of {digits} bytes"));
        }
        if arguments.len() == MOST_ARGUMENTS {
            return Err(format!("more than {MOST_ARGUMENTS} arguments"));
        }
        arguments.push(Argument { kind, size });
    }
    Ok(arguments)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_any_length() {
        for (bytes, number) in [
            (&[1][..], 0),
            (&[255], 127),
            (&[2, 0], 128),
            (&[6, 0], 129),
            (&[0xfe, 0xff], 128 + (1 << 14) - 1),
            (&[4, 0, 0, 0], 128 + (1 << 14)),
            (&[0xfc, 0xff, 0xff, 0xff], 128 + (1 << 14) + (1 << 29) - 1),
            (&[0, 1, 0, 0, 0, 0, 0, 0, 2], 1 | 2 << 56),
        ] {
            let mut reader = Reader::new(bytes, 0);
            assert_eq!((reader.varlen(), reader.at), (Some(number), bytes.len()));
            let mut short = Reader::new(&bytes[..bytes.len() - 1], 0);
            assert_eq!(short.varlen(), None);
        }
        assert_eq!(Reader::new(&[8; 9], 0).varlen(), None);
    }

    #[test]
    fn epochs() {
        let nanos = |os_nanos| Moment { os_nanos, cpu: 0 }.unix_nanos();
        assert_eq!(nanos(1_454_621_020_000_000_000), 1_454_621_020_000_000_000);
        assert_eq!(nanos(5), 1_490_885_108_000_000_005);
        assert_eq!(nanos(UNIX_NANOS - 1), LATER_EPOCH + UNIX_NANOS - 1);
    }

    #[test]
    fn the_clock_of_the_same_processor_reports_the_distance() {
        // Four ticks are a nanosecond.
        let log = |os_nanos, cpu, ticks_later| Log {
            ring_size: 0,
            begin: Moment { os_nanos, cpu },
            saved: Moment {
                os_nanos: os_nanos + 1_000_000,
                cpu: cpu + ticks_later,
            },
            types: Vec::new(),
            tracks: Vec::new(),
            strings: 0..0,
            events: 0,
            offset: 0,
            passed_over: Vec::new(),
        };
        let first = log(1_000, 0, 4_000_000);
        let distance = |later: &Log| (later.distance_from(&first), first.distance_from(later));
        // The clocks agree within 100 ns, or they do not.
        assert_eq!(
            distance(&log(51_000, 200_200, 4_000_000)),
            (50_050, -50_050)
        );
        assert_eq!(
            distance(&log(51_000, 200_400, 4_000_000)),
            (50_000, -50_000)
        );
        // Another frequency, and none.
        assert_eq!(
            distance(&log(51_000, 200_200, 2_000_000)),
            (50_000, -50_000)
        );
        assert_eq!(distance(&log(51_000, 200_200, 0)), (50_000, -50_000));
    }

    #[test]
    fn labels_have_a_bound() {
        let file = |labels: usize| {
            let mut bytes = MAGIC.to_vec();
            bytes.extend([0; 36]);
            // Two types, each without format and arguments and with as many empty labels.
            bytes.extend(2u32.to_be_bytes());
            for number in 1..=2u32 {
                bytes.extend([1, 1]);
                bytes.extend(number.to_be_bytes());
                bytes.extend((labels as u32).to_be_bytes());
                bytes.resize(bytes.len() + labels, 1);
            }
            bytes.extend([0; 12]);
            Log::read(&bytes)
        };
        let log = file(MOST_LABELS / 2).unwrap();
        assert_eq!(log.types[1].labels.len(), MOST_LABELS / 2);
        let error = file(MOST_LABELS / 2 + 1).unwrap_err();
        assert_eq!(
            error.message,
            "type 1: more than 262144 labels of all types"
        );
    }

    #[test]
    fn no_more_types_and_tracks_are_kept_than_events_can_name() {
        let most = MOST_NUMBERS as u32;
        let file = |types: u32, tracks: u32| {
            let mut bytes = MAGIC.to_vec();
            bytes.extend([0; 36]);
            bytes.extend(types.to_be_bytes());
            for number in 1..=types {
                bytes.extend([1, 1]);
                bytes.extend(number.to_be_bytes());
                bytes.extend([0; 4]);
            }
            bytes.extend(tracks.to_be_bytes());
            bytes.resize(bytes.len() + tracks as usize, 1);
            bytes.extend([0; 8]);
            let log = Log::read(&bytes).unwrap();
            assert_eq!(log.offset, bytes.len());
            log
        };
        let log = file(0, most);
        assert_eq!((log.tracks.len(), log.passed_over), (MOST_NUMBERS, vec![]));
        let log = file(most + 1, most + 2);
        assert_eq!(log.types.len(), MOST_NUMBERS);
        assert_eq!(log.tracks.len(), MOST_NUMBERS);
        let reported: Vec<_> = log.passed_over.iter().map(Error::to_string).collect();
        assert_eq!(
            reported,
            [
                "offset 47: 65537 types, of which events can name the first 65536 only",
                "offset 655421: 65538 tracks, of which events can name the first 65536 only",
            ]
        );
    }

    #[test]
    fn arguments_are_letters_and_sizes() {
        let found = arguments(b"i4t1T4f8s20sf4").unwrap();
        let found: Vec<_> = found.iter().map(|one| (one.kind, one.size)).collect();
        assert_eq!(
            found,
            [
                (ArgumentKind::Integer, 4),
                (ArgumentKind::Label, 1),
                (ArgumentKind::Table, 4),
                (ArgumentKind::Float, 8),
                (ArgumentKind::String, 20),
                (ArgumentKind::String, 0),
                (ArgumentKind::Float, 4),
            ]
        );
        for wrong in [&b"x4"[..], b"i", b"i3", b"f2", b"i44", &b"i1".repeat(65)] {
            assert!(arguments(wrong).is_err());
        }
    }
}
