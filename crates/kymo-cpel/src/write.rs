//! Making CPEL files.
//!
//! A [`Builder`] takes definitions and events in any order and writes one string table, sorted
//! definitions, and the events in the order of time, in as many sections as they need. Events beyond some
//! megabytes are in temporary storage until then.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::io::{self, Write};
use std::num::NonZeroU32;

use kymo_io::{Sorter, Split};
use kymo_machine::ByteOrder;

use crate::definitions;
use crate::elog;
use crate::entries::{ENTRY_SIZE, Entry};
use crate::file::{Header, TABLE_NAME_SIZE, kind};
use crate::strings::{StringError, Strings};
use crate::u32_bytes;

/// Name of the string table, as other programs call theirs.
const TABLE: &[u8] = b"FileStrtab";
/// What the table begins with.
const TABLE_HEAD: &[u8] = b"FileStrtab\0";
/// Events of a section: more would need a longer length than 32 bits hold.
pub const MOST_EVENTS: usize = (u32::MAX as usize - TABLE_NAME_SIZE - 8) / ENTRY_SIZE;

/// Bytes of strings: a section has at most 4 GiB, and there must be room for padding.
const MOST_STRINGS: u32 = u32::MAX - 8;

/// How files are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The order of the bytes of all numbers. Other programs read big-endian files only.
    pub order: ByteOrder,
    /// When the file is written, in seconds since 1970.
    pub date: u32,
    /// What the length of the string table is a multiple of.
    pub padding: Padding,
    /// Ticks in a second.
    pub clock: NonZeroU32,
    /// Events of a section; at most [`MOST_EVENTS`] whatever is asked for.
    pub section_events: usize,
    /// Bytes that all strings may take; the 4 GiB of a section at most whatever is asked for.
    pub most_strings: u32,
}

impl Default for Options {
    /// Big-endian, padded to 4 bytes, in nanoseconds, of 1970, as large as can be.
    fn default() -> Self {
        Self {
            order: ByteOrder::Big,
            date: 0,
            padding: Padding::Four,
            clock: NonZeroU32::new(1_000_000_000).expect("it is not zero"),
            section_events: MOST_EVENTS,
            most_strings: MOST_STRINGS,
        }
    }
}

/// What the length of the string table is a multiple of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Padding {
    /// 4 bytes, which all files must have.
    #[default]
    Four,
    /// 8 bytes, as VPP writes them.
    Eight,
}

/// Why a file cannot be written.
#[derive(Debug)]
pub enum Error {
    /// A string cannot be in the table.
    String(StringError),
    /// Something has more definitions than a section can have.
    Definitions,
    /// There are more kinds of events than a file can define, or than are read.
    Kinds {
        /// How many there can be.
        most: usize,
    },
    /// There are more tracks than an elog file can define.
    Tracks,
    /// There are more events than an elog file can count.
    Events,
    /// A type of an elog file has more arguments than are read, or an event is of a type or a track that was not
    /// added, or its values are not those of its type.
    Values {
        /// The type, by its number.
        kind: usize,
    },
    /// The events need more sections than a file can have.
    Sections {
        /// How many events there are.
        events: usize,
    },
    /// The output cannot be written.
    Output(io::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::String(error) => error.fmt(f),
            Self::Definitions => {
                f.write_str("the definitions take more than the 4 GiB of a section")
            }
            Self::Kinds { most } => write!(
                f,
                "the events are of more than {most} kinds, which is what a file may define; hint: \
                 choose some of them"
            ),
            Self::Tracks => write!(
                f,
                "the events are on more than {} tracks; hint: choose some of them, or another field for tracks",
                elog::MOST_NUMBERS
            ),
            Self::Events => write!(
                f,
                "there are more than {} events; hint: choose some of them",
                u32::MAX
            ),
            Self::Values { kind } => write!(
                f,
                "an event of type {kind} does not have the type, the track or the values that were declared"
            ),
            Self::Sections { events } => write!(
                f,
                "{events} events take more sections than the {} of a file",
                u16::MAX
            ),
            Self::Output(error) => f.write_str(&kymo_io::reason(error)),
        }
    }
}

impl std::error::Error for Error {}

impl From<StringError> for Error {
    fn from(error: StringError) -> Self {
        Self::String(error)
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

/// A file in the making.
#[derive(Debug)]
pub struct Builder {
    options: Options,
    strings: Strings,
    symbols: BTreeMap<u32, u32>,
    events: BTreeMap<u32, [u32; 2]>,
    tracks: BTreeMap<u32, u32>,
    entries: Sorter<u64>,
    entry_count: usize,
    /// The numbers that tracks of events get when they are written, where they differ.
    track_numbers: Option<HashMap<u32, u32>>,
}

/// How events in a byte order are split, by time.
fn split_entry(order: ByteOrder) -> Split<u64> {
    fn split(bytes: &[u8], order: ByteOrder) -> Option<(u64, usize)> {
        let entry = Entry::read(bytes.first_chunk()?, order);
        Some((entry.time, ENTRY_SIZE))
    }
    match order {
        ByteOrder::Big => |bytes| split(bytes, ByteOrder::Big),
        ByteOrder::Little => |bytes| split(bytes, ByteOrder::Little),
    }
}

impl Builder {
    /// A file with nothing in it.
    pub fn new(options: Options) -> Self {
        Self {
            options,
            // Offset zero, which means that there is no string, is the offset of the table's own name.
            strings: Strings::new(TABLE_HEAD, options.most_strings.min(MOST_STRINGS)),
            symbols: BTreeMap::new(),
            events: BTreeMap::new(),
            tracks: BTreeMap::new(),
            entries: Sorter::new(split_entry(options.order)),
            entry_count: 0,
            track_numbers: None,
        }
    }

    /// Sets when the file is written, in seconds since 1970.
    pub fn set_date(&mut self, date: u32) {
        self.options.date = date;
    }

    /// The offset of a string, which is added unless it is there. It is never zero.
    ///
    /// # Errors
    ///
    /// When it has a zero in it, or does not fit.
    pub fn string(&mut self, text: &[u8]) -> Result<u32, Error> {
        Ok(self.strings.add(text)?)
    }

    fn format(&mut self, text: Option<&[u8]>) -> Result<u32, Error> {
        text.map_or(Ok(0), |text| self.string(text))
    }

    /// Defines an event by the formats of its name and of its datum. Without the first it goes by
    /// `E` and its code, without the second its datum is not shown. `false` where the code has a
    /// definition, which stays.
    ///
    /// # Errors
    ///
    /// Those of [`Builder::string`]; that there are too many definitions.
    pub fn event(
        &mut self,
        code: u32,
        name: Option<&[u8]>,
        datum: Option<&[u8]>,
    ) -> Result<bool, Error> {
        if self.events.contains_key(&code) {
            return Ok(false);
        }
        if self.events.len() == definitions::MOST_EVENTS {
            let most = definitions::MOST_EVENTS;
            return Err(Error::Kinds { most });
        }
        let definition = [self.format(name)?, self.format(datum)?];
        self.events.insert(code, definition);
        Ok(true)
    }

    /// Defines a track by the format of its name. Without one it goes by its number. `false`
    /// where the track has a definition, which stays.
    ///
    /// # Errors
    ///
    /// Those of [`Builder::string`].
    pub fn track(&mut self, track: u32, name: Option<&[u8]>) -> Result<bool, Error> {
        if self.tracks.contains_key(&track) {
            return Ok(false);
        }
        let name = self.format(name)?;
        self.tracks.insert(track, name);
        Ok(true)
    }

    /// Gives a value a name. `false` where it has one, which stays.
    ///
    /// # Errors
    ///
    /// Those of [`Builder::string`].
    pub fn symbol(&mut self, value: u32, name: &[u8]) -> Result<bool, Error> {
        if self.symbols.contains_key(&value) {
            return Ok(false);
        }
        let name = self.string(name)?;
        self.symbols.insert(value, name);
        Ok(true)
    }

    /// Adds an event.
    ///
    /// # Errors
    ///
    /// Those of temporary storage.
    #[inline]
    pub fn push(&mut self, entry: Entry) -> Result<(), Error> {
        self.entry_count += 1;
        let bytes = entry.to_bytes(self.options.order);
        Ok(self.entries.push(|rows| rows.extend_from_slice(&bytes))?)
    }

    /// Gives the tracks of the events that were added other numbers.
    pub(crate) fn number_tracks(&mut self, numbers: HashMap<u32, u32>) {
        self.track_numbers = Some(numbers);
    }

    /// Writes the file. Events of the same time stay in the order in which they came.
    ///
    /// # Errors
    ///
    /// When there is too much of something, and those of the output.
    pub fn write(self, out: &mut impl Write) -> Result<(), Error> {
        let per_section = self.options.section_events.clamp(1, MOST_EVENTS);
        // A file without events has a section without events, which states its clock.
        let event_sections = self.entry_count.div_ceil(per_section).max(1);
        let symbol_sections = usize::from(!self.symbols.is_empty());
        let too_many = Error::Sections {
            events: self.entry_count,
        };
        let sections = u16::try_from(3 + symbol_sections + event_sections).map_err(|_| too_many)?;
        let order = self.options.order;
        let header = Header {
            order,
            unused: 0,
            sections,
            date: self.options.date,
        };
        out.write_all(&header.to_bytes())?;
        let multiple = match self.options.padding {
            Padding::Four => 4,
            Padding::Eight => 8,
        };
        let mut strings = self.strings.into_bytes();
        strings.resize(strings.len().next_multiple_of(multiple), 0);
        section(out, order, kind::STRINGS, strings.len())?;
        out.write_all(&strings)?;
        if !self.symbols.is_empty() {
            let symbols = self.symbols.iter().map(|(&value, &name)| [value, name]);
            table(out, order, kind::SYMBOLS, symbols)?;
        }
        let events = self.events.iter();
        let events = events.map(|(&code, &[name, datum])| [code, name, datum]);
        table(out, order, kind::EVENT_DEFINITIONS, events)?;
        let tracks = self.tracks.iter().map(|(&track, &name)| [track, name]);
        table(out, order, kind::TRACK_DEFINITIONS, tracks)?;
        let clock = self.options.clock.get();
        let mut left = self.entry_count;
        let mut left_of_section = 0;
        if left == 0 {
            begin_events(out, order, clock, 0)?;
        }
        self.entries.finish(|_, row| {
            if left_of_section == 0 {
                left_of_section = left.min(per_section);
                left -= left_of_section;
                begin_events(out, order, clock, left_of_section)?;
            }
            left_of_section -= 1;
            match (&self.track_numbers, row.first_chunk()) {
                (Some(numbers), Some(row)) => {
                    let mut entry = Entry::read(row, order);
                    entry.track = *numbers.get(&entry.track).unwrap_or(&entry.track);
                    out.write_all(&entry.to_bytes(order))
                }
                _ => out.write_all(row),
            }
        })?;
        Ok(())
    }
}

/// Writes the head of a section.
pub(crate) fn section(
    out: &mut impl Write,
    order: ByteOrder,
    kind: u32,
    length: usize,
) -> io::Result<()> {
    let length = u32::try_from(length)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "a section of more than 4 GiB"))?;
    out.write_all(&u32_bytes(kind, order))?;
    out.write_all(&u32_bytes(length, order))
}

/// Writes what is before the events of a section.
fn begin_events(
    out: &mut impl Write,
    order: ByteOrder,
    clock: u32,
    count: usize,
) -> io::Result<()> {
    let size = TABLE_NAME_SIZE + 8 + count * ENTRY_SIZE;
    section(out, order, kind::EVENTS, size)?;
    out.write_all(&table_name())?;
    for word in [count as u32, clock] {
        out.write_all(&u32_bytes(word, order))?;
    }
    Ok(())
}

/// Writes a section of definitions.
fn table<const N: usize>(
    out: &mut impl Write,
    order: ByteOrder,
    kind: u32,
    entries: impl ExactSizeIterator<Item = [u32; N]>,
) -> Result<(), Error> {
    let count = entries.len() as u64;
    let size = TABLE_NAME_SIZE as u64 + 4 + count * N as u64 * 4;
    let size = u32::try_from(size).map_err(|_| Error::Definitions)?;
    section(out, order, kind, size as usize)?;
    out.write_all(&table_name())?;
    out.write_all(&u32_bytes(count as u32, order))?;
    for word in entries.flatten() {
        out.write_all(&u32_bytes(word, order))?;
    }
    Ok(())
}

/// The name of the string table as sections that refer to it have it.
fn table_name() -> [u8; TABLE_NAME_SIZE] {
    let mut name = [0; TABLE_NAME_SIZE];
    name[..TABLE.len()].copy_from_slice(TABLE);
    name
}
