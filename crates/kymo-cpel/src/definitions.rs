//! What the sections of a file define: strings, symbols, events, tracks.

use std::collections::HashMap;
use std::ops::Range;

use kymo_model::FaultCode;
use kymo_text::Line;

use crate::file::{File, Table, kind};
use crate::format::{Names, bad_offset, string_of, write};
use crate::lookup::Lookup;
use crate::u32_at;

/// Definitions of events that are kept: each of them becomes an event class.
pub const MOST_EVENTS: usize = 1 << 16;
/// Bytes that are searched for the end of the name of a track when it is defined.
const MOST_CONSTANT: usize = 256;
/// Bytes of a symbol, and of the definition of a track.
const PAIR_SIZE: usize = 8;
/// Bytes of the definition of an event.
const TRIPLE_SIZE: usize = 12;
/// Bytes of an event.
const EVENT_SIZE: usize = crate::entries::ENTRY_SIZE;

/// A text that something refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reference {
    /// The offset is zero: there is none.
    None,
    /// From where it begins to the end of its string table.
    At(Range<usize>),
    /// The offset leads beyond its string table, or the table is missing.
    Bad(u32),
}

/// What an event is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventDefinition {
    /// Its code.
    pub code: u32,
    /// The format of its name, which shows the code.
    pub name: Reference,
    /// The format of its datum.
    pub datum: Reference,
    /// Where the strings are that the name may refer to.
    pub strings: Range<usize>,
}

/// What a track is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrackDefinition {
    /// Its number.
    pub track: u32,
    /// The format of its name, which shows the number.
    pub name: Reference,
    /// Where the strings are that the name may refer to.
    pub strings: Range<usize>,
    /// The length of its name, where that is short and has no conversions.
    constant: Option<u8>,
}

impl TrackDefinition {
    fn new(bytes: &[u8], track: u32, name: Reference, strings: Range<usize>) -> Self {
        let constant = match &name {
            Reference::At(place) => {
                let text = bytes.get(place.clone()).unwrap_or_default();
                let text = &text[..text.len().min(MOST_CONSTANT)];
                let end = memchr::memchr2(0, b'%', text);
                end.filter(|&end| text[end] == 0).map(|end| end as u8)
            }
            Reference::None | Reference::Bad(_) => None,
        };
        Self {
            track,
            name,
            strings,
            constant,
        }
    }

    /// Its name, where that is short and has no conversions.
    #[inline]
    pub fn constant<'a>(&self, bytes: &'a [u8]) -> Option<&'a [u8]> {
        match (&self.name, self.constant) {
            (Reference::At(place), Some(len)) => {
                bytes.get(place.start..place.start + usize::from(len))
            }
            _ => None,
        }
    }
}

/// A value with a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// The value.
    pub value: u32,
    /// Its name.
    pub name: Reference,
}

/// A section of events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventSection {
    /// Position among the sections of the file.
    pub section: usize,
    /// Where its events are.
    pub entries: Range<usize>,
    /// Where the strings are that its events refer to.
    pub strings: Range<usize>,
    /// The clock field; `None` where the format has none.
    pub clock: Option<u32>,
}

/// Everything that a file defines, and where its events are.
#[derive(Debug, Default)]
pub struct Definitions {
    /// Events, in the order of the file.
    pub events: Vec<EventDefinition>,
    /// Tracks, in the order of the file.
    pub tracks: Vec<TrackDefinition>,
    /// Symbols, sorted by their values, each value once.
    pub symbols: Vec<Symbol>,
    /// Sections of events, in the order of the file.
    pub sections: Vec<EventSection>,
    pub(crate) event_at: Lookup,
    pub(crate) track_at: Lookup,
}

impl Definitions {
    /// Reads the definitions of a file. What is wrong with them is added to
    /// [`File::findings`].
    pub fn read(file: &mut File<'_>) -> Self {
        let tables = string_tables(file);
        let mut definitions = Self::default();
        for number in 0..file.sections.len() {
            match file.sections[number].kind {
                kind::SYMBOLS => definitions.read_symbols(file, number, &tables),
                kind::EVENT_DEFINITIONS => definitions.read_events(file, number, &tables),
                kind::TRACK_DEFINITIONS => definitions.read_tracks(file, number, &tables),
                kind::EVENTS => definitions.read_section(file, number, &tables),
                _ => {}
            }
        }
        // The page says that they are sorted; several sections may interleave.
        let symbols = &mut definitions.symbols;
        symbols.sort_by_key(|symbol| symbol.value);
        symbols.dedup_by_key(|symbol| symbol.value);
        definitions
    }

    /// Where the definition of an event is in [`Definitions::events`].
    pub fn event(&self, code: u32) -> Option<usize> {
        self.event_at.get(code).map(|position| position as usize)
    }

    /// The definition of a track.
    #[inline]
    pub fn track(&self, track: u32) -> Option<&TrackDefinition> {
        self.tracks.get(self.track_at.get(track)? as usize)
    }

    fn read_symbols(&mut self, file: &mut File<'_>, number: usize, tables: &Tables<'_>) {
        let Some((table, strings)) = tables.of(file, number, PAIR_SIZE) else {
            return;
        };
        let before = self.symbols.len();
        let mut last = 0;
        let mut is_sorted = true;
        for (value, offset) in pairs(file, &table) {
            is_sorted &= last <= value;
            last = value;
            let name = reference(&strings, offset);
            // Nothing stands for the name of a symbol: it is what lies at the beginning.
            let name = match (name, strings.is_empty()) {
                (Reference::None, false) => Reference::At(strings.clone()),
                (name, _) => name,
            };
            self.symbols.push(Symbol { value, name });
        }
        if !is_sorted {
            let offset = file.sections[number].offset;
            let message = "the symbols are not sorted by their values".to_string();
            file.find(FaultCode::NotSorted, offset, Some(number), message);
        }
        let bad = |symbol: &Symbol| matches!(symbol.name, Reference::Bad(_));
        let bad = self.symbols[before..].iter().filter(|one| bad(one)).count();
        report_bad(file, number, bad, "symbols");
    }

    fn read_events(&mut self, file: &mut File<'_>, number: usize, tables: &Tables<'_>) {
        let Some((table, strings)) = tables.of(file, number, TRIPLE_SIZE) else {
            return;
        };
        let (mut bad, mut again, mut more) = (0, None, 0);
        let order = file.header.order;
        for entry in (0..table.count).map(|entry| table.offset + entry * TRIPLE_SIZE) {
            let word = |at: usize| u32_at(file.bytes, entry + at, order).unwrap_or(0);
            let definition = EventDefinition {
                code: word(0),
                name: reference(&strings, word(4)),
                datum: reference(&strings, word(8)),
                strings: strings.clone(),
            };
            let position = self.events.len();
            if position == MOST_EVENTS {
                more += 1;
            } else if self.event_at.insert(definition.code, position as u32) {
                let refs = [&definition.name, &definition.datum];
                bad += usize::from(refs.iter().any(|one| matches!(one, Reference::Bad(_))));
                self.events.push(definition);
            } else {
                again.get_or_insert((definition.code, entry));
            }
        }
        report_bad(file, number, bad, "events");
        report_again(file, number, again, "event");
        if more > 0 {
            let message = format!(
                "{more} definitions are not read: a file may have {MOST_EVENTS} definitions of events"
            );
            let offset = file.sections[number].offset;
            file.find(FaultCode::LengthLimit, offset, Some(number), message);
        }
    }

    fn read_tracks(&mut self, file: &mut File<'_>, number: usize, tables: &Tables<'_>) {
        let Some((table, strings)) = tables.of(file, number, PAIR_SIZE) else {
            return;
        };
        let (mut bad, mut again) = (0, None);
        for (entry, (track, offset)) in pairs(file, &table).enumerate() {
            let name = reference(&strings, offset);
            if self.track_at.insert(track, self.tracks.len() as u32) {
                bad += usize::from(matches!(name, Reference::Bad(_)));
                let definition = TrackDefinition::new(file.bytes, track, name, strings.clone());
                self.tracks.push(definition);
            } else {
                again.get_or_insert((track, table.offset + entry * PAIR_SIZE));
            }
        }
        report_bad(file, number, bad, "tracks");
        report_again(file, number, again, "track");
    }

    fn read_section(&mut self, file: &mut File<'_>, number: usize, tables: &Tables<'_>) {
        if let Some((table, strings)) = tables.of(file, number, EVENT_SIZE) {
            self.sections.push(EventSection {
                section: number,
                entries: table.offset..table.offset + table.count * EVENT_SIZE,
                strings,
                clock: table.clock,
            });
        }
    }
}

/// The pairs of numbers that a table consists of.
fn pairs<'a>(file: &File<'a>, table: &Table<'a>) -> impl Iterator<Item = (u32, u32)> + use<'a> {
    let (bytes, order) = (file.bytes, file.header.order);
    let begin = table.offset;
    (0..table.count).map_while(move |entry| {
        let at = begin + entry * PAIR_SIZE;
        Some((u32_at(bytes, at, order)?, u32_at(bytes, at + 4, order)?))
    })
}

/// What an offset in a string table refers to.
fn reference(strings: &Range<usize>, offset: u32) -> Reference {
    match usize::try_from(offset) {
        Ok(0) => Reference::None,
        Ok(at) if at < strings.len() => Reference::At(strings.start + at..strings.end),
        _ => Reference::Bad(offset),
    }
}

fn report_bad(file: &mut File<'_>, number: usize, bad: usize, what: &str) {
    if bad > 0 {
        let message = format!("{bad} {what} have offsets beyond the end of their string table");
        let offset = file.sections[number].offset;
        file.find(FaultCode::StringOffset, offset, Some(number), message);
    }
}

fn report_again(file: &mut File<'_>, number: usize, again: Option<(u32, usize)>, what: &str) {
    if let Some((id, offset)) = again {
        let message = format!("{what} {id} is defined again: its first definition counts");
        file.find(FaultCode::Redefined, offset, Some(number), message);
    }
}

/// The string tables of a file, by their names.
struct Tables<'a>(HashMap<&'a [u8], Range<usize>>);

impl Tables<'_> {
    /// What a section begins with that refers to a string table, and where that table is. A
    /// table that does not exist is an empty one.
    fn of<'f>(
        &self,
        file: &mut File<'f>,
        number: usize,
        entry: usize,
    ) -> Option<(Table<'f>, Range<usize>)> {
        let table = file.table(number, entry)?;
        let strings = self.0.get(table.strings).cloned().unwrap_or_else(|| {
            let name = String::from_utf8_lossy(table.strings);
            let message = format!("there is no string table `{name}`");
            let offset = file.sections[number].offset;
            file.find(FaultCode::StringTable, offset, Some(number), message);
            0..0
        });
        Some((table, strings))
    }
}

fn string_tables<'a>(file: &mut File<'a>) -> Tables<'a> {
    let mut tables = HashMap::new();
    for number in 0..file.sections.len() {
        let section = file.sections[number].clone();
        if section.kind != kind::STRINGS {
            continue;
        }
        let name = string_of(file.data(&section));
        if tables.contains_key(name) {
            let name = String::from_utf8_lossy(name);
            let message =
                format!("there is another string table `{name}`, before this one: that one counts");
            file.find(
                FaultCode::StringTable,
                section.offset,
                Some(number),
                message,
            );
        } else {
            tables.insert(name, section.data);
        }
    }
    Tables(tables)
}

/// Strings and symbols as formats need them.
#[derive(Clone, Copy, Debug)]
pub struct InFile<'a> {
    /// The bytes of the file.
    pub bytes: &'a [u8],
    /// The string table.
    pub strings: &'a [u8],
    /// The symbols.
    pub symbols: &'a [Symbol],
}

impl<'a> InFile<'a> {
    /// The string at an offset; `None` beyond the end of the table.
    #[inline]
    pub fn string(&self, offset: u32) -> Option<&'a [u8]> {
        let rest = self.strings.get(usize::try_from(offset).ok()?..)?;
        (!rest.is_empty()).then(|| string_of(rest))
    }

    /// A part of the file.
    #[inline]
    pub fn slice(&self, place: &Range<usize>) -> &'a [u8] {
        self.bytes.get(place.clone()).unwrap_or_default()
    }

    /// The text of a reference.
    #[inline]
    pub fn text(&self, place: &Range<usize>) -> &'a [u8] {
        string_of(self.slice(place))
    }

    /// Appends a name whose format is referred to: `default` if there is no name.
    pub fn write_name(
        &self,
        name: &Reference,
        default: &[u8],
        value: u32,
        out: &mut Line,
        most: usize,
    ) {
        match name {
            Reference::None => write(default, value, self, out, most),
            Reference::At(place) => write(self.text(place), value, self, out, most),
            Reference::Bad(offset) => bad_offset(*offset, out),
        }
    }
}

impl Names for InFile<'_> {
    fn string(&self, offset: u32) -> Option<&[u8]> {
        InFile::string(self, offset)
    }

    fn symbol(&self, value: u32) -> Option<(&[u8], u32)> {
        let after = self.symbols.partition_point(|one| one.value <= value);
        let symbol = self.symbols.get(after.checked_sub(1)?)?;
        let name: &[u8] = match &symbol.name {
            Reference::At(place) => self.text(place),
            Reference::None | Reference::Bad(_) => b"<bad symbol>",
        };
        Some((name, value - symbol.value))
    }
}
