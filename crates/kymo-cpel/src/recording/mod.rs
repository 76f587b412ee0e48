//! CPEL and Gist files as recordings.
//!
//! Each section of events is a stream, with the clock and the strings of its own. Its events are
//! cut into chunks as they lie in the file, so that chunks are read in parallel and nothing but
//! definitions is kept. A section whose events are not in order of time is read in that
//! order, for which it costs four bytes for each of its events.
//!
//! An event class is a definition of an event, or a code that has none: such an event is called
//! `E` and its code. Each event has the fields `track` and `track_name` (in the common context),
//! `datum` and `text`: what the format of the definition makes of the datum (in the payload).

mod block;
pub(crate) mod classes;
mod cursor;
mod refresh;
mod scan;
mod tally;

use std::fmt;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kymo_io::{Bytes, Watch};
use kymo_machine::ByteOrder;
use kymo_model::batch::{self, Layout, Number};
use kymo_model::{
    Chunk, EventClass, Fault, FaultCode, FaultReport, FieldId, Format, RefreshError, Refreshed,
    Schema, Shift, ShiftError, StreamInfo, Tally,
};
use kymo_text::Line;
use kymo_time::{Clock, NANOS_PER_SECOND, Origin, Timestamp};

use self::classes::{DatumText, event_class};
pub(crate) use self::classes::{field, schema};
pub use self::cursor::{LogCursor, LogEvent};
use self::tally::Counts;
use crate::clock::{ClockChoice, Place, Rate};
use crate::definitions::{Definitions, EventDefinition, EventSection, InFile, Reference};
use crate::entries::{ENTRY_SIZE, Entries, Entry};
use crate::file::{self, File, Finding, Header, Section};
use crate::format::{MOST_TEXT, string_of};
use crate::points::PointDefinitions;
use crate::probe::is_gist;

/// Number of events of a chunk, which is processed in one go.
const CHUNK: usize = 1 << 16;
/// Bits of an event.
const ENTRY_BITS: u64 = ENTRY_SIZE as u64 * 8;
/// Bytes of an event's name.
const MOST_NAME: usize = 1024;
/// How logs are opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// What the clock of CPEL and Gist files is.
    pub clock: ClockChoice,
    /// Names of the events of Gist files.
    pub points: Option<Arc<PointDefinitions>>,
}

/// Why a file cannot be opened.
#[derive(Debug)]
pub struct OpenError {
    /// Where it is.
    pub path: PathBuf,
    /// What is wrong.
    pub message: String,
}

impl OpenError {
    /// What is wrong with a file.
    pub fn wrong(path: &Path, error: &impl ToString) -> Self {
        Self {
            path: path.to_path_buf(),
            message: error.to_string(),
        }
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.message)
    }
}

impl std::error::Error for OpenError {}

/// How the datum of an event is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Datum<'a> {
    /// It is not.
    None,
    /// By a format.
    Format(&'a [u8]),
    /// By a format at an offset that leads beyond its string table.
    Bad(u32),
}

/// A section of events as a stream.
#[derive(Debug)]
struct Log {
    section: EventSection,
    place: Place,
    /// The first and the last event, in the order of time.
    ends: Option<(Entry, Entry)>,
    /// The positions of events in the order of time, where the file has another order.
    order: Option<Box<[u32]>>,
    /// The events of each chunk by their classes, where that was counted when the file was opened.
    counts: Box<[Option<Counts>]>,
}

/// A file that is open.
#[derive(Debug)]
pub struct Recording {
    path: PathBuf,
    name: Option<String>,
    bytes: Bytes,
    watch: Watch,
    options: Options,
    shifted: Shift,
    /// `None` of a Gist file.
    header: Option<Header>,
    sections: Vec<Section>,
    definitions: Definitions,
    logs: Vec<Log>,
    streams: Vec<StreamInfo>,
    classes: Vec<EventClass>,
    datums: Vec<DatumText>,
    faults: Vec<FaultReport>,
    notes: Vec<String>,
}

impl Recording {
    /// The log in the bytes of a CPEL file.
    ///
    /// # Errors
    ///
    /// When the header says nothing known.
    pub fn new(path: &Path, bytes: Bytes, options: &Options) -> Result<Self, file::Error> {
        let mut file = File::open(&bytes)?;
        let definitions = Definitions::read(&mut file);
        let (header, sections, findings) = (file.header, file.sections, file.findings);
        let mut recording = Self::empty(path, bytes);
        recording.header = Some(header);
        recording.sections = sections;
        recording.definitions = definitions;
        recording.build(findings, options);
        Ok(recording)
    }

    /// The log in the bytes of a Gist file.
    ///
    /// # Errors
    ///
    /// If the number of events is not what the file says.
    pub fn gist(path: &Path, bytes: Bytes, options: &Options) -> Result<Self, file::Error> {
        if !is_gist(&bytes) {
            return Err(file::Error::Gist { len: bytes.len() });
        }
        let entries = 4..bytes.len();
        let mut named = Vec::new();
        let watch = Watch::new(path, &bytes);
        // Definitions are places in the bytes: names stand behind the events.
        let (bytes, strings) = match &options.points {
            Some(points) => {
                let mut all = bytes.to_vec();
                let begin = all.len();
                named = points.append(&mut all);
                let end = all.len();
                (Bytes::from(all), begin..end)
            }
            None => (bytes, 0..0),
        };
        let mut recording = Self::empty(path, bytes);
        recording.watch = watch;
        for (code, name, datum) in named {
            let position = recording.definitions.events.len() as u32;
            if recording.definitions.event_at.insert(code, position) {
                let datum = match datum.len() {
                    1 => Reference::None,
                    _ => Reference::At(datum.start..strings.end),
                };
                recording.definitions.events.push(EventDefinition {
                    code,
                    name: Reference::At(name.start..strings.end),
                    datum,
                    strings: 0..0,
                });
            }
        }
        recording.definitions.sections.push(EventSection {
            section: 0,
            entries,
            strings: 0..0,
            clock: None,
        });
        recording.build(Vec::new(), options);
        Ok(recording)
    }

    fn empty(path: &Path, bytes: Bytes) -> Self {
        Self {
            path: path.to_path_buf(),
            name: kymo_io::stem(path),
            watch: Watch::new(path, &bytes),
            options: Options::default(),
            shifted: Shift::default(),
            bytes,
            header: None,
            sections: Vec::new(),
            definitions: Definitions::default(),
            logs: Vec::new(),
            streams: Vec::new(),
            classes: Vec::new(),
            datums: Vec::new(),
            faults: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Makes classes of definitions and streams of sections.
    fn build(&mut self, mut findings: Vec<Finding>, options: &Options) {
        self.options = options.clone();
        let zeros = self.sections.iter().filter(|section| section.kind == 0);
        let zeros = zeros.count();
        if zeros > 0 {
            let note =
                format!("{zeros} sections of type 0, which no file should have, are skipped");
            self.notes.push(note);
        }
        self.define_classes();
        let order = self.byte_order();
        let packet_schema = Arc::new(Schema::new());
        for section in std::mem::take(&mut self.definitions.sections) {
            let number = self.logs.len();
            let (rate, doubt) = Rate::new(section.clock, options.clock);
            if let Some(doubt) = doubt {
                let note = match self.header {
                    Some(_) => format!("section {}: {doubt}", section.section),
                    None => doubt.to_string(),
                };
                self.notes.push(note);
            }
            let place = Place {
                rate,
                offset_nanos: 0,
            };
            let scan = self.scan(&section, &mut findings);
            let entries = Entries::new(&self.bytes[section.entries.clone()], order);
            let mut log = Log {
                place,
                ends: None,
                order: (!scan.is_sorted).then(|| by_time(entries)),
                counts: scan.counts,
                section,
            };
            let end = |place| log.entry(entries, place);
            log.ends = end(0).zip(entries.len().checked_sub(1).and_then(end));
            findings.extend(log.late(entries));
            self.logs.push(log);
            self.streams.push(StreamInfo {
                class: 0,
                id: Some(number as u64),
                name: format!("events {number}").into(),
                clock: Some(Arc::new(clock(place, false))),
                packet_schema: Arc::clone(&packet_schema),
            });
        }
        self.add_faults(findings);
    }

    fn add_faults(&mut self, findings: Vec<Finding>) {
        let file = Arc::new(self.path.clone());
        let report = |found: Finding| {
            FaultReport::new(
                found.code,
                Arc::clone(&file),
                found.offset,
                match found.section {
                    Some(section) => format!("section {section}: {}", found.message),
                    None => found.message,
                },
            )
        };
        self.faults.extend(findings.into_iter().map(report));
    }

    fn define_classes(&mut self) {
        let mut name = Line::new();
        for definition in &self.definitions.events {
            let names = self.names(&definition.strings);
            name.clear();
            names.write_name(
                &definition.name,
                b"E%d",
                definition.code,
                &mut name,
                MOST_NAME,
            );
            self.datums.push(DatumText::new(&definition.datum, &names));
            let name = String::from_utf8_lossy(name.as_bytes());
            self.classes
                .push(event_class(definition.code.into(), name.into()));
        }
    }

    /// The byte order of the file.
    pub fn byte_order(&self) -> ByteOrder {
        self.header.map_or(ByteOrder::Big, |header| header.order)
    }

    /// What a CPEL file says of itself.
    pub fn header(&self) -> Option<&Header> {
        self.header.as_ref()
    }

    /// The sections of a CPEL file.
    pub fn sections(&self) -> &[Section] {
        &self.sections
    }

    /// Tracks, symbols and events that are defined.
    pub fn definitions(&self) -> &Definitions {
        &self.definitions
    }

    /// Whether its clocks mean what the file says of them, so that a copy is read with the same
    /// times: not so where another [choice](Options::clock) has changed them.
    pub fn has_own_clocks(&self) -> bool {
        let own = |log: &Log| Rate::new(log.section.clock, ClockChoice::Auto).0 == log.place.rate;
        self.logs.iter().all(own)
    }

    /// Whether the file defines the events of a code.
    pub fn defines(&self, code: u32) -> bool {
        let definitions = &self.definitions;
        // Codes without a definition come after those that have one.
        let position = definitions.event(code);
        position.is_some_and(|position| position < definitions.events.len())
    }

    /// All bytes of the file.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The section of the file that a stream is.
    pub fn section(&self, stream: usize) -> usize {
        self.logs.get(stream).map_or(0, |log| log.section.section)
    }

    /// The section of events that a stream is.
    pub fn event_section(&self, stream: usize) -> Option<&EventSection> {
        Some(&self.logs.get(stream)?.section)
    }

    /// The events of a stream, in the order of the file.
    pub fn entries_of(&self, stream: usize) -> Entries<'_> {
        match self.logs.get(stream) {
            Some(log) => self.entries(log),
            None => Entries::new(&[], self.byte_order()),
        }
    }

    /// Where an event lies in its section, from its number within a chunk of a stream.
    pub fn position(&self, stream: usize, chunk: usize, number: u64) -> Option<usize> {
        let number = usize::try_from(number).ok()?;
        let place = chunk.checked_mul(CHUNK)?.checked_add(number)?;
        self.logs.get(stream)?.position(place)
    }

    /// Writes a Gist file, which this is, with some of its events: those at these positions, in order.
    ///
    /// # Errors
    ///
    /// Those of the output; that it is not a Gist file, or holds no such events.
    pub fn write_gist(&self, positions: &[usize], out: &mut impl io::Write) -> io::Result<()> {
        if self.header().is_some() {
            return Err(io::Error::other("it is not a Gist file"));
        }
        let (entries, _) = self.entries_of(0).bytes().as_chunks::<ENTRY_SIZE>();
        let count = u32::try_from(positions.len()).map_err(io::Error::other)?;
        out.write_all(&count.to_be_bytes())?;
        for &position in positions {
            let entry = entries.get(position);
            out.write_all(entry.ok_or(io::ErrorKind::InvalidInput)?)?;
        }
        Ok(())
    }

    /// The time that ticks of a stream are; `None` beyond what a timestamp holds.
    pub fn timestamp(&self, stream: usize, ticks: u64) -> Option<Timestamp> {
        self.logs.get(stream)?.place.timestamp(ticks)
    }

    /// What the datum of the events of a class is.
    pub fn datum(&self, class: usize) -> Datum<'_> {
        let definition = self.definitions.events.get(class);
        match definition.map(|definition| &definition.datum) {
            None | Some(Reference::None) => Datum::None,
            Some(Reference::Bad(offset)) => Datum::Bad(*offset),
            Some(Reference::At(place)) => {
                Datum::Format(string_of(self.bytes.get(place.clone()).unwrap_or_default()))
            }
        }
    }

    /// Where the events of a chunk lie in their section, where that is in another order than that
    /// of time.
    pub fn positions(&self, chunk: &Chunk) -> Option<&[u32]> {
        let order = self.logs.get(chunk.stream)?.order.as_ref()?;
        let first = chunk.number.checked_mul(CHUNK)?;
        let rest = order.get(first..)?;
        Some(&rest[..rest.len().min(CHUNK)])
    }

    /// Number of bytes of the file.
    pub fn size(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Number of events.
    pub fn events(&self) -> u64 {
        let entries = |log: &Log| (log.section.entries.len() / ENTRY_SIZE) as u64;
        self.logs.iter().map(entries).sum()
    }

    /// Whether the events of a stream lie in the order of time.
    pub fn is_sorted(&self, stream: usize) -> bool {
        self.logs.get(stream).is_none_or(|log| log.order.is_none())
    }

    /// What is odd about it, and no damage.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// What formats refer to, with a string table of the file.
    pub fn names(&self, strings: &Range<usize>) -> InFile<'_> {
        InFile {
            bytes: &self.bytes,
            strings: self.bytes.get(strings.clone()).unwrap_or_default(),
            symbols: &self.definitions.symbols,
        }
    }

    /// Appends the name of a track, which shows its number if it has no other.
    fn write_track_name(&self, track: u32, out: &mut Line) {
        let known = self.definitions.track(track);
        let strings = known.map_or(&(0..0), |track| &track.strings);
        let name = known.map_or(&Reference::None, |track| &track.name);
        self.names(strings)
            .write_name(name, b"%d", track, out, MOST_TEXT);
    }

    fn entries(&self, log: &Log) -> Entries<'_> {
        let bytes = self.bytes.get(log.section.entries.clone());
        Entries::new(bytes.unwrap_or_default(), self.byte_order())
    }
}

/// The positions of events in the order of time; those of the same time in the order of the file.
fn by_time(entries: Entries<'_>) -> Box<[u32]> {
    // Files count their events with 32 bits.
    let mut order: Vec<u32> = (0..entries.len() as u32).collect();
    order.sort_by_key(|&position| entries.get(position as usize).map(|entry| entry.time));
    order.into()
}

/// The clock of a stream.
fn clock(place: Place, from_unix_epoch: bool) -> Clock {
    let (seconds, nanos) = Timestamp::from_nanos(place.offset_nanos).split();
    let frequency = place.rate.per_second();
    let cycles =
        u128::from(nanos) * u128::from(frequency) / NANOS_PER_SECOND.unsigned_abs() as u128;
    Clock {
        frequency,
        offset_seconds: seconds,
        offset_cycles: u64::try_from(cycles).unwrap_or(u64::MAX),
        origin: match from_unix_epoch {
            true => Origin::UnixEpoch,
            false => Origin::Unknown,
        },
        ..Clock::default()
    }
}

impl kymo_model::Recording for Recording {
    type Cursor<'a> = LogCursor<'a>;

    fn path(&self) -> &Path {
        &self.path
    }

    fn format(&self) -> Format {
        match self.header {
            Some(_) => Format {
                name: "cpel",
                version: "1",
            },
            None => Format {
                name: "gist",
                version: "",
            },
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
        classes::TRACKS
    }

    fn track_name(&self, number: u64) -> Option<String> {
        // Numbers of tracks have 32 bits.
        let mut name = Line::new();
        self.write_track_name(number as u32, &mut name);
        Some(String::from_utf8_lossy(name.as_bytes()).into_owned())
    }

    fn place(&self, _class: usize, field: FieldId) -> Option<batch::Place> {
        let offset = match field {
            field::TRACK => 8,
            field::CODE => 12,
            field::DATUM => 16,
            _ => return None,
        };
        let number = match self.byte_order() {
            ByteOrder::Big => Number::U32Be,
            ByteOrder::Little => Number::U32Le,
        };
        Some(batch::Place {
            base: 0,
            mask: 0,
            offset,
            layout: Layout::Number(number),
        })
    }

    fn shift(&mut self, shift: Shift) -> Result<(), ShiftError> {
        let places = self.logs.iter().map(|log| {
            let offset_nanos = shift.apply(log.place.offset_nanos)?;
            Ok(Place {
                offset_nanos,
                ..log.place
            })
        });
        let places: Vec<Place> = places.collect::<Result<_, _>>()?;
        self.shifted = self.shifted.and(shift);
        let order = self.byte_order();
        let mut findings = Vec::new();
        for ((log, stream), place) in self.logs.iter_mut().zip(&mut self.streams).zip(places) {
            let entries = Entries::new(&self.bytes[log.section.entries.clone()], order);
            let was_late = log.late(entries).is_some();
            log.place = place;
            findings.extend(log.late(entries).filter(|_| !was_late));
            let known = stream.clock.as_ref();
            let is_known = known.is_some_and(|clock| clock.origin == Origin::UnixEpoch);
            let clock = clock(place, shift.from_unix_epoch || is_known);
            stream.clock = Some(Arc::new(clock));
        }
        self.add_faults(findings);
        Ok(())
    }

    fn refresh(&mut self) -> Result<Refreshed, RefreshError> {
        self.read_again()
    }

    fn chunk_count(&self, stream: usize) -> usize {
        let entries = |log: &Log| log.section.entries.len() / ENTRY_SIZE;
        self.logs.get(stream).map_or(0, entries).div_ceil(CHUNK)
    }

    fn chunk(&self, stream: usize, number: usize) -> Option<Chunk> {
        let log = self.logs.get(stream)?;
        let entries = self.entries(log);
        let first = number.checked_mul(CHUNK)?;
        let count = entries.len().checked_sub(first)?.min(CHUNK);
        let time = |position| Some(log.entry(entries, position)?.time);
        let begin = time(first)?;
        let end = time(first + count - 1)?;
        Some(Chunk {
            stream,
            number,
            bytes: (count * ENTRY_SIZE) as u64,
            begin: Some(begin),
            end: Some(end),
            begin_time: log.place.timestamp(begin),
            end_time: log.place.timestamp(end),
            lost_events: None,
            lost_chunks: None,
        })
    }

    fn cursor(&self, chunk: &Chunk) -> LogCursor<'_> {
        LogCursor::new(self, chunk)
    }

    fn tally(&self, chunk: &Chunk) -> Option<Vec<Tally>> {
        self.count(chunk)
    }

    fn faults(&self) -> &[FaultReport] {
        &self.faults
    }

    fn report(&self, chunk: &Chunk, event: Option<(u64, usize)>, fault: Fault) -> FaultReport {
        let log = &self.logs[chunk.stream];
        let position = (fault.bit / ENTRY_BITS) as usize + chunk.number * CHUNK;
        let position = log.position(position).unwrap_or(position);
        let offset = (log.section.entries.start + position * ENTRY_SIZE) as u64;
        fault.report(&self.path, offset, event.map(|(number, _)| number))
    }
}

impl Log {
    /// What is wrong where the last time is later than can be shown.
    fn late(&self, entries: Entries<'_>) -> Option<Finding> {
        let last = self.entry(entries, entries.len().checked_sub(1)?)?;
        if self.place.timestamp(last.time).is_some() {
            return None;
        }
        Some(Finding {
            code: FaultCode::TimeRange,
            offset: self.section.entries.start as u64,
            section: Some(self.section.section as u64),
            message: format!(
                "the last time, {}, is more nanoseconds than 64 bits hold",
                last.time
            ),
        })
    }

    /// Where the event at a position in the order of time lies.
    #[inline(always)]
    fn position(&self, place: usize) -> Option<usize> {
        match &self.order {
            None => Some(place),
            Some(order) => order.get(place).map(|&position| position as usize),
        }
    }

    #[inline(always)]
    fn entry(&self, entries: Entries<'_>, place: usize) -> Option<Entry> {
        entries.get(self.position(place)?)
    }
}
