//! Making elog files, which VPP's programs read.
//!
//! A [`Builder`] takes types of events, tracks, strings and events, and writes the events in the
//! order of time. Events beyond some megabytes are in temporary storage until then.

use std::collections::HashMap;
use std::io::Write;

use kymo_io::Sorter;
use kymo_time::NANOS_PER_SECOND;

use super::{Argument, ArgumentKind, MAGIC, MOST_ARGUMENTS, MOST_NUMBERS, Moment, Value};
use crate::strings::{StringError, Strings};
use crate::write::Error;

/// Bytes of arguments that an event may have in the memory of VPP's programs.
pub const MOST_BYTES: u8 = 20;
/// Nanoseconds since recording began that are stored exactly, some 26 days. Times are doubles of
/// seconds: later ones are up to a nanosecond off, and from 52 days on two.
pub const EXACT_NANOS: u64 = 1 << 51;

const TOO_MANY_TYPES: Error = Error::Kinds { most: MOST_NUMBERS };

/// A type of events.
#[derive(Debug)]
struct Kind {
    arguments: Vec<Argument>,
    /// Its format, arguments and labels, as the file has them before and behind its number.
    head: Vec<u8>,
    tail: Vec<u8>,
}

/// Bytes of an event before its type, track and values: its nanoseconds, and its length.
const ROW_HEAD: usize = 12;

fn split_event(bytes: &[u8]) -> Option<(u64, usize)> {
    let nanos = u64::from_be_bytes(*bytes.first_chunk()?);
    let length = u32::from_be_bytes(*bytes.get(8..)?.first_chunk()?);
    Some((nanos, length as usize))
}

/// A file in the making.
#[derive(Debug)]
pub struct Builder {
    kinds: Vec<Kind>,
    /// The numbers of types, by everything that describes them.
    numbers: HashMap<Vec<u8>, u16>,
    /// The names of tracks as the file has them, and how many there are.
    tracks: Vec<u8>,
    track_count: usize,
    strings: Strings,
    /// By nanoseconds since recording began.
    events: Sorter<u64>,
    event_count: usize,
    /// Nanoseconds of the last one.
    last: u64,
    /// The event that is added.
    row: Vec<u8>,
}

impl Builder {
    /// An empty file, whose string table takes at most `most_strings` bytes.
    pub fn new(most_strings: u32) -> Self {
        Self {
            kinds: Vec::new(),
            numbers: HashMap::new(),
            tracks: Vec::new(),
            track_count: 0,
            strings: Strings::new(&[], most_strings),
            events: Sorter::new(split_event),
            event_count: 0,
            last: 0,
            row: Vec::new(),
        }
    }

    /// The number of a type of events, which is added unless it is there: its format, what it shows
    /// one after the other, and the labels that its arguments have.
    ///
    /// # Errors
    ///
    /// When there are too many types or arguments.
    pub fn event_type(
        &mut self,
        format: &[u8],
        arguments: &[Argument],
        labels: &[&[u8]],
    ) -> Result<u16, Error> {
        let number = self.kinds.len();
        if arguments.len() > MOST_ARGUMENTS {
            return Err(Error::Values { kind: number });
        }
        let mut head = Vec::new();
        string(format, &mut head);
        string(&words(arguments), &mut head);
        let mut tail = u32_of(labels.len(), TOO_MANY_TYPES)?.to_vec();
        labels.iter().for_each(|label| string(label, &mut tail));
        let key = [&head[..], &tail].concat();
        if let Some(&number) = self.numbers.get(&key) {
            return Ok(number);
        }
        let taken = u16::try_from(number).map_err(|_| TOO_MANY_TYPES)?;
        self.numbers.insert(key, taken);
        self.kinds.push(Kind {
            arguments: arguments.to_vec(),
            head,
            tail,
        });
        Ok(taken)
    }

    /// Adds a track, and returns its number.
    ///
    /// # Errors
    ///
    /// When there are too many.
    pub fn track(&mut self, name: &[u8]) -> Result<u16, Error> {
        let number = u16::try_from(self.track_count).map_err(|_| Error::Tracks)?;
        self.track_count += 1;
        string(name, &mut self.tracks);
        Ok(number)
    }

    /// The offset of a string, which is added unless it is there: the value of an argument of
    /// [the table](ArgumentKind::Table).
    ///
    /// # Errors
    ///
    /// When it has a zero in it, or does not fit.
    pub fn string(&mut self, text: &[u8]) -> Result<u32, Error> {
        Ok(self.strings.add(text)?)
    }

    /// Adds an event of an existing type and track at a number of nanoseconds after recording
    /// began; of integers the lower bits that their arguments have are kept.
    ///
    /// # Errors
    ///
    /// When its values are not those of its type; those of temporary storage.
    pub fn push(
        &mut self,
        kind: u16,
        track: u16,
        nanos: u64,
        values: &[Value<'_>],
    ) -> Result<(), Error> {
        let wrong = || Error::Values { kind: kind.into() };
        let known = self.kinds.get(usize::from(kind)).ok_or_else(wrong)?;
        if values.len() != known.arguments.len() || usize::from(track) >= self.track_count {
            return Err(wrong());
        }
        let row = &mut self.row;
        row.clear();
        row.extend(nanos.to_be_bytes());
        row.extend([0; 4]);
        row.extend(kind.to_be_bytes());
        row.extend(track.to_be_bytes());
        for (argument, &one) in known.arguments.iter().zip(values) {
            if !value(*argument, one, row) {
                return Err(wrong());
            }
        }
        let length = u32::try_from(row.len()).map_err(|_| wrong())?;
        row[8..ROW_HEAD].copy_from_slice(&length.to_be_bytes());
        self.event_count += 1;
        self.last = self.last.max(nanos);
        self.events.push(|rows| rows.extend_from_slice(row))?;
        Ok(())
    }

    /// Writes a file whose recording began at a given time. Events of the same time stay in the order
    /// in which they came.
    ///
    /// # Errors
    ///
    /// When there are too many events, and those of the output.
    pub fn write(self, begin: Moment, out: &mut impl Write) -> Result<(), Error> {
        let count = u32_of(self.event_count, Error::Events)?;
        // A tick of the processor is a nanosecond.
        let saved = Moment {
            os_nanos: begin.os_nanos.saturating_add(self.last),
            cpu: begin.cpu.saturating_add(self.last),
        };
        out.write_all(MAGIC)?;
        // The recorder keeps what there is.
        out.write_all(&count)?;
        for moment in [saved, begin] {
            out.write_all(&halves(moment.os_nanos))?;
            out.write_all(&halves(moment.cpu))?;
        }
        out.write_all(&u32_of(self.kinds.len(), TOO_MANY_TYPES)?)?;
        for (number, kind) in (1u32..).zip(&self.kinds) {
            out.write_all(&kind.head)?;
            out.write_all(&number.to_be_bytes())?;
            out.write_all(&kind.tail)?;
        }
        out.write_all(&u32_of(self.track_count, Error::Tracks)?)?;
        out.write_all(&self.tracks)?;
        let strings = self.strings.into_bytes();
        let most = u32::MAX;
        out.write_all(&u32_of(strings.len(), StringError::Full { most }.into())?)?;
        out.write_all(&strings)?;
        out.write_all(&count)?;
        self.events.finish(|nanos, row| {
            let (head, values) = row[ROW_HEAD..].split_at(4);
            out.write_all(head)?;
            let seconds = nanos as f64 / NANOS_PER_SECOND as f64;
            out.write_all(&halves(seconds.to_bits()))?;
            out.write_all(values)
        })?;
        Ok(())
    }
}

/// How arguments are described: each by a letter and its size.
fn words(arguments: &[Argument]) -> Vec<u8> {
    let mut words = Vec::new();
    for argument in arguments {
        words.push(match argument.kind {
            ArgumentKind::Integer => b'i',
            ArgumentKind::Label => b't',
            ArgumentKind::Table => b'T',
            ArgumentKind::Float => b'f',
            ArgumentKind::String => b's',
        });
        if argument.size > 0 {
            words.extend(argument.size.to_string().bytes());
        }
    }
    words
}

/// Appends a value; `false` if it does not match its argument.
fn value(argument: Argument, value: Value<'_>, out: &mut Vec<u8>) -> bool {
    match (argument.kind, argument.size, value) {
        (ArgumentKind::String, _, Value::Text(text)) => string(text, out),
        (ArgumentKind::Float, 4, Value::Float(value)) => {
            out.extend((value as f32).to_bits().to_be_bytes());
        }
        (ArgumentKind::Float, 8, Value::Float(value)) => out.extend(halves(value.to_bits())),
        (ArgumentKind::Float | ArgumentKind::String, ..) => return false,
        (_, 8, Value::Integer(value)) => out.extend(halves(value)),
        (_, size @ (1 | 2 | 4), Value::Integer(value)) => {
            out.extend(&value.to_be_bytes()[8 - usize::from(size)..]);
        }
        _ => return false,
    }
    true
}

/// Appends a string with its length before it.
fn string(text: &[u8], out: &mut Vec<u8>) {
    varlen(text.len() as u64, out);
    out.extend(text);
}

/// Appends a number in as few bytes as it needs.
fn varlen(number: u64, out: &mut Vec<u8>) {
    const TWO: u64 = 128;
    const FOUR: u64 = TWO + (1 << 14);
    const NINE: u64 = FOUR + (1 << 29);
    match number {
        ..TWO => out.push(number as u8 * 2 + 1),
        TWO..FOUR => out.extend(((number - TWO) as u16 * 4 + 2).to_le_bytes()),
        FOUR..NINE => out.extend(((number - FOUR) as u32 * 8 + 4).to_le_bytes()),
        NINE.. => {
            out.push(0);
            out.extend(number.to_le_bytes());
        }
    }
}

/// The two halves of a number, the lower one first.
fn halves(number: u64) -> [u8; 8] {
    let [a, b, c, d, e, f, g, h] = number.to_be_bytes();
    [e, f, g, h, a, b, c, d]
}

fn u32_of(count: usize, error: Error) -> Result<[u8; 4], Error> {
    Ok(u32::try_from(count).map_err(|_| error)?.to_be_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elog::{Log, Reader};

    #[test]
    fn numbers_are_read_again() {
        for number in [
            0,
            127,
            128,
            129,
            16_511,
            16_512,
            536_887_423,
            536_887_424,
            u64::MAX,
        ] {
            let mut bytes = Vec::new();
            varlen(number, &mut bytes);
            let mut reader = Reader::new(&bytes, 0);
            assert_eq!((reader.varlen(), reader.at), (Some(number), bytes.len()));
        }
    }

    #[test]
    fn a_file_is_read_again() {
        let mut builder = Builder::new(1 << 20);
        let argument = |kind, size| Argument { kind, size };
        let arguments = [
            argument(ArgumentKind::Integer, 1),
            argument(ArgumentKind::Integer, 8),
            argument(ArgumentKind::Table, 4),
            argument(ArgumentKind::Label, 2),
            argument(ArgumentKind::Float, 4),
            argument(ArgumentKind::Float, 8),
            argument(ArgumentKind::String, 12),
        ];
        let labels: [&[u8]; 2] = [b"no", b"yes"];
        let kind = builder.event_type(b"e %d", &arguments, &labels).unwrap();
        assert_eq!(
            builder.event_type(b"e %d", &arguments, &labels).unwrap(),
            kind
        );
        let other = builder.event_type(b"e %d", &[], &[]).unwrap();
        let track = builder.track(b"cpu 0").unwrap();
        let text = builder.string(b"text").unwrap();
        let values = [
            Value::Integer(0x1ff),
            Value::Integer(u64::MAX - 1),
            Value::Integer(text.into()),
            Value::Integer(1),
            Value::Float(0.25),
            Value::Float(-1e300),
            Value::Text(b"here"),
        ];
        builder.push(kind, track, 1_500_000_001, &values).unwrap();
        builder.push(other, track, 7, &[]).unwrap();
        assert!(builder.push(kind, track, 0, &values[..6]).is_err());
        assert!(builder.push(2, track, 0, &[]).is_err());
        assert!(builder.push(other, 1, 0, &[]).is_err());
        let mut bytes = Vec::new();
        let begin = Moment::of_unix_nanos(1_700_000_000_000_000_000);
        builder.write(begin, &mut bytes).unwrap();
        let log = Log::read(&bytes).unwrap();
        assert_eq!(log.begin.unix_nanos(), 1_700_000_000_000_000_000);
        assert_eq!(log.saved.unix_nanos(), 1_700_000_001_500_000_001);
        assert_eq!((log.types.len(), log.tracks.len(), log.events), (2, 1, 2));
        assert_eq!(log.types[0].arguments, arguments);
        assert_eq!(&bytes[log.types[0].labels[1].clone()], b"yes");
        let mut reader = Reader::new(&bytes, log.offset);
        let head = reader.head().unwrap();
        assert_eq!((head.kind, head.track, head.seconds), (other, track, 7e-9));
        let head = reader.head().unwrap();
        assert_eq!((head.kind, head.seconds), (kind, 1.500_000_001));
        let read = arguments.map(|argument| reader.value(argument).unwrap());
        assert_eq!(read[0], Value::Integer(0xff));
        assert_eq!(read[1..], values[1..]);
        assert_eq!(reader.at, bytes.len());
    }

    #[test]
    fn moments_are_reported_as_they_are_read() {
        for nanos in [
            1_000_000_000_000_000_000,
            1_490_885_107_999_999_999,
            1_490_885_108_000_000_000,
            2_490_885_107_999_999_999,
            2_490_885_108_000_000_000,
            u64::MAX >> 1,
        ] {
            assert_eq!(Moment::of_unix_nanos(nanos).unix_nanos(), nanos);
        }
    }
}
