//! A database as a recording: its rows as samples in time order.
//!
//! Each archive is a stream, and each of its rows an event at the end of the interval that the
//! row stands for. An archive's event class is named after its kind and the seconds between two
//! rows, such as `AVERAGE/300`, and has one optional number for each data source, which is absent
//! where it is unknown.

mod cut;

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use kymo_io::{Access, Bytes, FileState, Locking};
use kymo_machine::Machine;
use kymo_model::{
    Change, Chunk, Cursor, EntryKind, Event, EventClass, Fault, FaultReport, FieldId, Format, Kind,
    RefreshError, Refreshed, RowPlace, Schema, Scope, Shift, ShiftError, StreamInfo, Track,
    TrackPart, TrackPath, TrackRule, Visitor,
};
use kymo_time::{Clock, NANOS_PER_SECOND, Origin, Timestamp};

use crate::model::rows::{FloatOrder, Grid, Row};
use crate::{Database, Form, Rows, Source, fault};

/// Number of rows of a chunk, which are processed together.
const CHUNK: u64 = 4096;
/// Bits of a value.
const VALUE_BITS: u64 = 64;

/// A file that is open. What was read of it is shared by all clones.
#[derive(Clone, Debug)]
pub struct Recording {
    contents: Arc<Contents>,
    /// How it was moved in time, with the clock and the streams that have it.
    moved: Option<(Shift, Arc<Clock>, Vec<StreamInfo>)>,
}

/// What is read of a file: the same for all that show this state of it.
#[derive(Debug)]
struct Contents {
    path: PathBuf,
    name: Option<String>,
    bytes: Bytes,
    /// What is counted of them.
    copied: Option<Copied>,
    form: Form,
    database: Database,
    order: FloatOrder,
    grids: Vec<Grid>,
    /// Of each archive the number of rows that have vanished before its oldest one.
    vanished: Vec<u64>,
    /// The file, if it is read again when it changes, and the machine that was specified.
    watched: Option<(FileState, Option<&'static Machine>)>,
    layout: Arc<Layout>,
}

/// What databases with the same sources and archives have in common: of thousands, most do.
#[derive(Debug)]
struct Layout {
    streams: Vec<StreamInfo>,
    tracks: Vec<Track>,
    classes: Vec<EventClass>,
    clock: Arc<Clock>,
}

/// The layouts that are in use, by what makes them.
static LAYOUTS: Mutex<BTreeMap<Vec<u8>, Weak<Layout>>> = Mutex::new(BTreeMap::new());

/// Maximum number of layouts that are shared. Further databases have a layout of their own.
const MOST_LAYOUTS: usize = 1024;

impl Layout {
    /// The layout of a database.
    fn of(database: &Database) -> Arc<Self> {
        let mut key = (database.sources.len() as u64).to_le_bytes().to_vec();
        for source in &database.sources {
            key.extend((source.name.as_bytes().len() as u64).to_le_bytes());
            key.extend(source.name.as_bytes());
        }
        for (archive, of) in database.archives.iter().enumerate() {
            key.extend(of.kind.name().as_bytes());
            key.push(0);
            key.extend(
                database
                    .row_seconds(archive)
                    .unwrap_or(u64::MAX)
                    .to_le_bytes(),
            );
        }
        let mut layouts = LAYOUTS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = layouts.get(&key).and_then(Weak::upgrade) {
            return known;
        }
        let new = Arc::new(Self::new(database));
        if layouts.len() >= MOST_LAYOUTS {
            layouts.retain(|_, of| of.strong_count() > 0);
        }
        if layouts.len() < MOST_LAYOUTS {
            layouts.insert(key, Arc::downgrade(&new));
        }
        new
    }

    fn new(database: &Database) -> Self {
        let clock = Arc::new(clock());
        let packet_schema = Arc::new(Schema::new());
        let classes: Vec<EventClass> = (0..database.archives.len())
            .map(|archive| event_class(database, archive))
            .collect();
        let streams = classes
            .iter()
            .map(|class| StreamInfo {
                class: class.id,
                id: Some(0),
                name: class.name.clone().unwrap_or_default(),
                clock: Some(Arc::clone(&clock)),
                packet_schema: Arc::clone(&packet_schema),
            })
            .collect();
        Self {
            streams,
            tracks: tracks_of(&classes),
            classes,
            clock,
        }
    }
}

/// Why a file cannot be opened.
#[derive(Debug)]
pub enum OpenError {
    /// It cannot be read.
    Unreadable {
        /// Where it is.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// It is not a database, or is damaged.
    Wrong {
        /// Where it is.
        path: PathBuf,
        /// What is wrong.
        error: Box<fault::Error>,
    },
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable { path, error } if error.kind() == io::ErrorKind::WouldBlock => {
                write!(f, "{}: another program writes it", path.display())
            }
            Self::Unreadable { path, error } => write!(f, "{}: {error}", path.display()),
            Self::Wrong { path, error } => write!(f, "{}: {error}", path.display()),
        }
    }
}

impl std::error::Error for OpenError {}

/// Copies of the files that are open may be this large altogether, in bytes.
pub const MOST_COPIED: usize = 1 << 28;

/// What they are.
static COPIED: AtomicUsize = AtomicUsize::new(0);

/// Bytes of a copy, which are counted as long as there is the recording.
#[derive(Debug)]
struct Copied(usize);

impl Copied {
    /// Counts `bytes` bytes; `None` if that is too many.
    fn count(bytes: usize) -> Option<Self> {
        let more = |before: usize| before.checked_add(bytes).filter(|all| *all <= MOST_COPIED);
        let counted = COPIED.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        counted.ok().map(|_| Self(bytes))
    }
}

impl Drop for Copied {
    fn drop(&mut self) {
        COPIED.fetch_sub(self.0, Ordering::Relaxed);
    }
}

impl Contents {
    fn new(
        path: &Path,
        bytes: Bytes,
        machine: Option<&'static Machine>,
    ) -> Result<Self, fault::Error> {
        let completed = match Source::complete(&bytes)? {
            std::borrow::Cow::Borrowed(_) => None,
            std::borrow::Cow::Owned(bytes) => Some(Bytes::from(bytes)),
        };
        let bytes = completed.unwrap_or(bytes);
        let source = Source::open(&bytes, machine)?;
        let grids: Vec<Grid> = (0..source.database.archives.len())
            .filter_map(|archive| source.rows.grid(archive).copied())
            .collect();
        let (order, form, database) = (source.rows.order(), source.form, source.database);
        Ok(Self {
            name: kymo_io::stem(path),
            path: path.to_path_buf(),
            bytes,
            copied: None,
            form,
            order,
            vanished: vec![0; grids.len()],
            grids,
            watched: None,
            layout: Layout::of(&database),
            database,
        })
    }
}

impl From<Contents> for Recording {
    fn from(contents: Contents) -> Self {
        Self {
            contents: Arc::new(contents),
            moved: None,
        }
    }
}

impl Recording {
    /// Opens a file. The machine of a native one is detected if none is specified. Others may change it
    /// then: what is reported is its state when it was opened. Of files that together are more than
    /// [`MOST_COPIED`] bytes, rows are read where they are, and so may be newer.
    ///
    /// # Errors
    ///
    /// If it cannot be read, is not a database, or is damaged.
    pub fn open(path: &Path, machine: Option<&'static Machine>) -> Result<Self, OpenError> {
        Self::contents_of(path, machine).map(Self::from)
    }

    fn contents_of(path: &Path, machine: Option<&'static Machine>) -> Result<Contents, OpenError> {
        let unreadable = |error| OpenError::Unreadable {
            path: path.to_path_buf(),
            error,
        };
        let state = FileState::of(path).ok();
        let mut bytes =
            Bytes::open_locked(path, Access::Random, Locking::Briefly).map_err(unreadable)?;
        let copied = Copied::count(bytes.len());
        if copied.is_some() {
            bytes = bytes.into_memory();
        }
        let opened = Contents::new(path, bytes, machine);
        let mut contents = opened.map_err(|error| OpenError::Wrong {
            path: path.to_path_buf(),
            error: Box::new(error),
        })?;
        contents.bytes.unlock();
        contents.copied = copied;
        contents.watched = state.map(|state| (state, machine));
        Ok(contents)
    }

    /// The database in the bytes of a file.
    ///
    /// # Errors
    ///
    /// If it is not a database, or is damaged.
    pub fn new(
        path: &Path,
        bytes: Bytes,
        machine: Option<&'static Machine>,
    ) -> Result<Self, fault::Error> {
        Contents::new(path, bytes, machine).map(Self::from)
    }

    /// The same recording again, as it was before it was [shifted](kymo_model::Recording::shift), if its file has not
    /// changed since it was opened; `None` where that is not known.
    pub fn unchanged(&self) -> Option<Self> {
        let (state, _) = self.contents.watched?;
        let is_same = FileState::of(&self.contents.path).is_ok_and(|now| now == state);
        is_same.then(|| Self {
            contents: Arc::clone(&self.contents),
            moved: None,
        })
    }

    /// The form of the file.
    pub fn form(&self) -> &Form {
        &self.contents.form
    }

    /// Definitions and state.
    pub fn database(&self) -> &Database {
        &self.contents.database
    }

    /// Number of bytes of the file.
    pub fn size(&self) -> u64 {
        self.contents.bytes.len() as u64
    }

    /// The values.
    pub fn rows(&self) -> Rows<'_> {
        let sources = self.contents.database.sources.len();
        Rows::new(
            &self.contents.bytes,
            self.contents.order,
            sources,
            self.contents.grids.clone(),
        )
        .expect("the grids were checked when the file was opened")
    }

    /// The ticks of a row's time; `None` before 1970 and beyond the clock.
    fn ticks(&self, archive: usize, row: u64) -> Option<u64> {
        let seconds = u64::try_from(self.contents.database.row_time(archive, row)?).ok()?;
        seconds.checked_mul(NANOS_PER_SECOND.unsigned_abs())
    }

    fn rows_of(&self, archive: usize) -> u64 {
        self.contents.grids.get(archive).map_or(0, |grid| grid.rows)
    }

    fn vanished(&self, archive: usize) -> u64 {
        self.contents.vanished.get(archive).copied().unwrap_or(0)
    }

    /// The rows of a chunk, as they are counted through their stream from the first one that there was.
    fn chunk_rows(&self, archive: usize, chunk: usize) -> Option<Range<u64>> {
        let begin = (chunk as u64).checked_mul(CHUNK)?;
        let first = self.vanished(archive);
        let end = begin.checked_add(CHUNK)?.min(first + self.rows_of(archive));
        let begin = begin.max(first);
        (begin < end).then_some(begin..end)
    }

    /// Takes the state that the file has now. A row keeps its number: archives are rings, in which the oldest
    /// rows vanish as others come.
    fn take(&mut self, mut now: Contents) -> Refreshed {
        let mut refreshed = Refreshed::default();
        let before = Arc::clone(&self.contents);
        let is_same = {
            let definitions =
                |of: &Contents| (of.database.sources.clone(), of.database.archives.clone());
            before.database.step == now.database.step && definitions(&before) == definitions(&now)
        };
        if !is_same {
            refreshed.has_other_classes = true;
            for stream in 0..now.grids.len() {
                let from = RowPlace::default();
                refreshed.push(stream, Change::Replaced { from });
            }
            let shift = self.moved.take().map(|of| of.0);
            self.contents = Arc::new(now);
            if let Some(shift) = shift {
                // It fitted before, and clocks begin where they did.
                let _ = kymo_model::Recording::shift(self, shift);
            }
            return refreshed;
        }
        now.vanished.clone_from(&before.vanished);
        for archive in 0..before.grids.len() {
            let rows = self.rows_of(archive);
            let newest = |of: &Contents| of.database.row_time(archive, rows.checked_sub(1)?);
            let seconds = before.database.row_seconds(archive).unwrap_or(1).max(1);
            let later = newest(&now).zip(newest(&before));
            let Some(later) = later.and_then(|(now, before)| now.checked_sub(before)) else {
                continue;
            };
            let Ok(later) = u64::try_from(later) else {
                let from = place(self.vanished(archive));
                refreshed.push(archive, Change::Replaced { from });
                continue;
            };
            let added = (later / seconds).min(rows);
            if added == 0 {
                continue;
            }
            let end = self.vanished(archive) + rows;
            now.vanished[archive] += added;
            let first = place(now.vanished[archive]);
            refreshed.push(archive, Change::Vanished { before: first });
            let from = place(end);
            refreshed.push(archive, Change::Appended { from });
        }
        self.contents = Arc::new(now);
        refreshed
    }

    fn clock(&self) -> &Arc<Clock> {
        match &self.moved {
            Some((_, clock, _)) => clock,
            None => &self.contents.layout.clock,
        }
    }
}

/// The place of a row that is counted through its stream.
fn place(row: u64) -> RowPlace {
    RowPlace {
        chunk: usize::try_from(row / CHUNK).unwrap_or(usize::MAX),
        number: row % CHUNK,
    }
}

/// Nanoseconds since 1970, which are exact on the common line.
fn clock() -> Clock {
    Clock {
        frequency: NANOS_PER_SECOND.unsigned_abs(),
        origin: Origin::UnixEpoch,
        ..Clock::default()
    }
}

/// A name as it is; of what is not UTF-8 each wrong byte NN is `\xNN`.
fn name_of(bytes: &[u8]) -> String {
    let mut name = String::with_capacity(bytes.len());
    for piece in bytes.utf8_chunks() {
        name.push_str(piece.valid());
        for byte in piece.invalid() {
            name.push_str(&format!("\\x{byte:02x}"));
        }
    }
    name
}

fn event_class(database: &Database, archive: usize) -> EventClass {
    let mut schema = Schema::new();
    let root = schema.push_root(Scope::Payload, Kind::Struct);
    for source in &database.sources {
        let name = name_of(source.name.as_bytes());
        let value = schema.push_child(root, Some(name.into()), Kind::Optional);
        schema.push_child(value, None, Kind::Float { bits: 64 });
    }
    let kind = database.archives[archive].kind.name();
    let seconds = database.row_seconds(archive).unwrap_or(u64::MAX);
    EventClass {
        id: archive as u64,
        stream_class: archive as u64,
        name: Some(format!("{kind}/{seconds}").into()),
        log_level: None,
        emf_uri: None,
        schema,
    }
}

/// A track for each data source of each archive.
fn tracks_of(classes: &[EventClass]) -> Vec<Track> {
    let mut tracks = Vec::new();
    for (archive, class) in classes.iter().enumerate() {
        for name in class
            .schema
            .fields()
            .iter()
            .filter_map(|field| field.name.clone())
        {
            let archive = TrackPart::Archive(archive as u32);
            let path = TrackPath::new([archive, TrackPart::Source(name.clone())]);
            let title = format!("{name} {}", class.name.as_deref().unwrap_or_default());
            tracks.push(Track::new(path, title, EntryKind::Sample));
        }
    }
    tracks
}

impl kymo_model::Recording for Recording {
    type Cursor<'a> = RowCursor<'a>;

    fn path(&self) -> &Path {
        &self.contents.path
    }

    fn format(&self) -> Format {
        Format {
            name: "rrd",
            version: match (&self.contents.form, self.contents.database.version) {
                (Form::Portable, _) => "portable",
                (Form::Rrd4j { version: 1 }, _) => "RRD4J 0.1",
                (Form::Rrd4j { .. }, _) => "RRD4J 0.2",
                (_, 1) => "0001",
                (_, 2) => "0002",
                (_, 3) => "0003",
                (_, 4) => "0004",
                _ => "0005",
            },
        }
    }

    fn name(&self) -> Option<&str> {
        self.contents.name.as_deref()
    }

    fn streams(&self) -> &[StreamInfo] {
        match &self.moved {
            Some((_, _, streams)) => streams,
            None => &self.contents.layout.streams,
        }
    }

    fn event_classes(&self) -> &[EventClass] {
        &self.contents.layout.classes
    }

    fn tracks(&self) -> &[Track] {
        &self.contents.layout.tracks
    }

    fn track_rule(&self, class: usize) -> TrackRule {
        let sources = self.contents.database.sources.len();
        // Below the root there are an optional and the value in it for each source.
        let values = (0..sources).map(|source| FieldId(2 + 2 * source as u32));
        TrackRule::Series {
            first: class * sources,
            values: values.collect(),
        }
    }

    fn entry_kind(&self, _stream: usize) -> EntryKind {
        EntryKind::Sample
    }

    fn shift(&mut self, shift: Shift) -> Result<(), ShiftError> {
        let before = self.moved.take().map_or(Shift::default(), |of| of.0);
        let shift = before.and(shift);
        let clock = Arc::new(clock().shifted(shift.nanos));
        let mut streams = self.contents.layout.streams.clone();
        for stream in &mut streams {
            stream.clock = Some(Arc::clone(&clock));
        }
        self.moved = Some((shift, clock, streams));
        Ok(())
    }

    fn refresh(&mut self) -> Result<Refreshed, RefreshError> {
        let path = &self.contents.path;
        let error = |error: &dyn fmt::Display| RefreshError::new(path, &error);
        let Some((state, machine)) = self.contents.watched else {
            return Ok(Refreshed::default());
        };
        if FileState::of(path).map_err(|it| error(&it))? == state {
            return Ok(Refreshed::default());
        }
        let opened = Self::contents_of(path, machine);
        let opened = opened.map_err(|it| error(&it))?;
        Ok(self.take(opened))
    }

    fn first_chunk(&self, stream: usize) -> usize {
        usize::try_from(self.vanished(stream) / CHUNK).unwrap_or(usize::MAX)
    }

    fn chunk_count(&self, stream: usize) -> usize {
        let rows = self.vanished(stream).saturating_add(self.rows_of(stream));
        usize::try_from(rows.div_ceil(CHUNK)).unwrap_or(usize::MAX)
    }

    fn chunk(&self, stream: usize, number: usize) -> Option<Chunk> {
        let rows = self.chunk_rows(stream, number)?;
        let vanished = self.vanished(stream);
        let (begin, end) = (
            self.ticks(stream, rows.start - vanished),
            self.ticks(stream, rows.end - 1 - vanished),
        );
        let time = |ticks: Option<u64>| self.clock().timestamp(ticks?);
        let sources = self.contents.database.sources.len() as u64;
        Some(Chunk {
            stream,
            number,
            bytes: (rows.end - rows.start) * sources * VALUE_BITS / 8,
            begin,
            end,
            begin_time: time(begin),
            end_time: time(end),
            lost_events: None,
            lost_chunks: None,
        })
    }

    fn cursor(&self, chunk: &Chunk) -> RowCursor<'_> {
        let rows = self.chunk_rows(chunk.stream, chunk.number);
        let rows = rows.unwrap_or_default();
        RowCursor {
            of: self,
            rows: self.rows(),
            archive: chunk.stream,
            first: (chunk.number as u64).saturating_mul(CHUNK),
            next: rows.start,
            end: rows.end,
        }
    }

    fn report(&self, chunk: &Chunk, event: Option<(u64, usize)>, fault: Fault) -> FaultReport {
        let grid = self.contents.grids.get(chunk.stream);
        FaultReport {
            code: fault.code,
            file: Arc::new(self.contents.path.clone()),
            offset: grid.map_or(0, |grid| grid.offset),
            packet: None,
            event: event.map(|(number, _)| number),
            field: None,
            message: format!("{}: {}", fault.code, fault.found),
        }
    }
}

/// Walks the rows of a chunk.
pub struct RowCursor<'a> {
    of: &'a Recording,
    rows: Rows<'a>,
    archive: usize,
    /// The first row of the chunk; rows are counted through their stream.
    first: u64,
    next: u64,
    end: u64,
}

impl<'c> Cursor for RowCursor<'c> {
    type Event<'a>
        = RowEvent<'c>
    where
        Self: 'a;

    fn next_event(&mut self) -> Result<Option<RowEvent<'c>>, Fault> {
        if self.next >= self.end {
            return Ok(None);
        }
        let number = self.next;
        self.next += 1;
        let place = number - self.of.vanished(self.archive);
        let Some(row) = self.rows.row(self.archive, place) else {
            return Ok(None);
        };
        Ok(Some(RowEvent {
            of: self.of,
            class: &self.of.contents.layout.classes[self.archive],
            row,
            archive: self.archive,
            number: number - self.first,
            ticks: self.of.ticks(self.archive, place),
        }))
    }
}

/// A row as an event.
pub struct RowEvent<'a> {
    of: &'a Recording,
    class: &'a EventClass,
    row: Row<'a>,
    archive: usize,
    number: u64,
    ticks: Option<u64>,
}

impl Event for RowEvent<'_> {
    fn class(&self) -> &EventClass {
        self.class
    }

    fn class_index(&self) -> usize {
        self.archive
    }

    fn timestamp(&self) -> Option<Timestamp> {
        self.of.clock().timestamp(self.ticks?)
    }

    fn ticks(&self) -> Option<u64> {
        self.ticks
    }

    fn number(&self) -> u64 {
        self.number
    }

    fn begin_bit(&self) -> u64 {
        self.number * self.of.contents.database.sources.len() as u64 * VALUE_BITS
    }

    fn visit<V: Visitor>(&self, visitor: &mut V) -> Result<(), Fault> {
        let root = FieldId(0);
        let mut bit = self.begin_bit();
        visitor.at(bit);
        visitor.begin_struct(root);
        // Each data source has two fields in the schema: the optional, and what it holds.
        for (value, field) in self.row.values().zip((1..).step_by(2)) {
            visitor.at(bit);
            let known = !value.is_unknown();
            visitor.begin_optional(FieldId(field), known, known.into());
            if let Some(number) = value.get() {
                visitor.at(bit);
                visitor.float(FieldId(field + 1), number);
                visitor.after(bit + VALUE_BITS);
            }
            bit += VALUE_BITS;
            visitor.at(bit);
            visitor.end_optional(FieldId(field));
        }
        visitor.at(bit);
        visitor.end_struct(root);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use kymo_model::Recording as _;

    use super::*;

    const FILE: &[u8] = include_bytes!("../tests/data/dump/holt-winters.amd64.rrd");

    fn open() -> Recording {
        let bytes = Bytes::from(FILE.to_vec());
        Recording::new(Path::new("dir/load.rrd"), bytes, None).unwrap()
    }

    /// Gets the values of a row.
    #[derive(Default)]
    struct Values(Vec<Option<f64>>);

    impl Visitor for Values {
        fn begin_optional(&mut self, _field: FieldId, _present: bool, _selector: u64) {
            self.0.push(None);
        }

        fn float(&mut self, _field: FieldId, value: f64) {
            *self.0.last_mut().unwrap() = Some(value);
        }
    }

    #[test]
    fn archives_are_streams_of_rows() {
        let of = open();
        assert_eq!(of.name(), Some("load"));
        assert_eq!((of.format().name, of.format().version), ("rrd", "0004"));
        let names: Vec<_> = of.streams().iter().map(|stream| &*stream.name).collect();
        assert_eq!(
            names,
            [
                "AVERAGE/300",
                "MHWPREDICT/300",
                "SEASONAL/300",
                "DEVSEASONAL/300",
                "DEVPREDICT/300",
                "FAILURES/300"
            ]
        );
        let chunk = of.chunk(0, 0).unwrap();
        assert_eq!((of.chunk_count(0), of.chunk(0, 1)), (1, None));
        assert_eq!(chunk.bytes, 10 * 2 * 8);
        let mut cursor = of.cursor(&chunk);
        let mut rows = Vec::new();
        while let Some(event) = cursor.next_event().unwrap() {
            let mut values = Values::default();
            event.visit(&mut values).unwrap();
            rows.push((event.timestamp().unwrap().as_nanos(), values.0));
        }
        assert_eq!(rows.len(), 10);
        assert_eq!(rows[0].1, [Some(1.0), Some(2.0)]);
        assert_eq!(
            rows[9],
            (1_700_008_800_000_000_000, vec![Some(0.0), Some(0.0)])
        );
        assert_eq!(chunk.begin_time.unwrap().as_nanos(), rows[0].0);
        assert_eq!(chunk.end_time.unwrap().as_nanos(), rows[9].0);
    }

    #[test]
    fn shifts_move_times() {
        let mut of = open();
        for (nanos, expected) in [
            (7_000_000_000, 1_700_008_807_000_000_000),
            (-7_000_000_001, 1_700_008_799_999_999_999),
        ] {
            let shift = Shift {
                nanos,
                from_unix_epoch: false,
            };
            of.shift(shift).unwrap();
            let end = of.chunk(0, 0).unwrap().end_time.unwrap();
            assert_eq!(end.as_nanos(), expected);
        }
    }

    #[test]
    fn what_has_not_changed_is_shared() {
        let name = format!("kymo-rrd-unchanged-{}.rrd", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, FILE).unwrap();
        let mut of = Recording::open(&path, None).unwrap();
        let other = Recording::open(&path, None).unwrap();
        assert!(Arc::ptr_eq(&of.contents.layout, &other.contents.layout));
        let unmoved = of.chunk(0, 0).unwrap();
        let shift = Shift {
            nanos: 5,
            from_unix_epoch: false,
        };
        of.shift(shift).unwrap();
        let again = of.unchanged().expect("the file is the same");
        assert!(Arc::ptr_eq(&of.contents, &again.contents));
        assert_eq!(again.chunk(0, 0).unwrap(), unmoved);
        assert_eq!(again.streams()[0].clock.as_deref(), Some(&clock()));
        std::fs::write(&path, &FILE[..FILE.len() - 8]).unwrap();
        assert!(of.unchanged().is_none());
        std::fs::remove_file(&path).unwrap();
        assert!(open().unchanged().is_none(), "it has no file");
    }

    #[test]
    fn names_are_not_escaped() {
        for (bytes, name) in [
            (&b"a\"b\n\x1b[31m,\\"[..], "a\"b\n\u{1b}[31m,\\"),
            ("Gr\u{f6}\u{df}e".as_bytes(), "Gr\u{f6}\u{df}e"),
            (b"a\xffb\xc3", "a\\xffb\\xc3"),
        ] {
            assert_eq!(name_of(bytes), name);
        }
    }

    #[test]
    fn damage_is_an_error() {
        let bytes = Bytes::from(FILE[..1000].to_vec());
        assert!(Recording::new(Path::new("x"), bytes, None).is_err());
        let error = Recording::open(Path::new("none.rrd"), None).unwrap_err();
        assert!(error.to_string().starts_with("none.rrd: "));
    }
}
