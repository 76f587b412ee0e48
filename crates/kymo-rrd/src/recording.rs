//! A database as a recording: its rows as samples in time order.
//!
//! Each archive is a stream, and each of its rows an event at the end of the interval that the
//! row stands for. An archive's event class is named after its kind and the seconds between two
//! rows, such as `AVERAGE/300`, and has one optional number for each data source, which is absent
//! where it is unknown.

mod cursor;
mod cut;
mod layout;
#[cfg(test)]
mod tests;

use std::fmt;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use kymo_io::{Access, Bytes, FileState, Locking};
use kymo_machine::Machine;
use kymo_model::{
    Change, Chunk, EntryKind, EventClass, Fault, FaultReport, FieldId, Format, RefreshError,
    Refreshed, RowPlace, Shift, ShiftError, StreamInfo, Track, TrackRule,
};
use kymo_time::{Clock, NANOS_PER_SECOND};

use crate::model::rows::{FloatOrder, Grid};
use crate::{Database, Form, Rows, Source, fault};

pub use cursor::{RowCursor, RowEvent};
use layout::{Layout, clock};

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
        let opened = Bytes::open_watched(path, Access::Whole, Locking::Briefly);
        let (mut bytes, state) = opened.map_err(unreadable)?;
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
        contents.watched = Some((state, machine));
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
            let definitions = |contents: &Contents| {
                (
                    contents.database.sources.clone(),
                    contents.database.archives.clone(),
                )
            };
            before.database.step == now.database.step && definitions(&before) == definitions(&now)
        };
        if !is_same {
            refreshed.has_other_classes = true;
            for stream in 0..now.grids.len() {
                let from = RowPlace::default();
                refreshed.push(stream, Change::Replaced { from });
            }
            let shift = self.moved.take().map(|moved| moved.0);
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
            let newest =
                |contents: &Contents| contents.database.row_time(archive, rows.checked_sub(1)?);
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
        let before = self.moved.take().map_or(Shift::default(), |moved| moved.0);
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
            recording: self,
            rows: self.rows(),
            archive: chunk.stream,
            first: (chunk.number as u64).saturating_mul(CHUNK),
            next: rows.start,
            end: rows.end,
        }
    }

    fn report(&self, chunk: &Chunk, event: Option<(u64, usize)>, fault: Fault) -> FaultReport {
        let grid = self.contents.grids.get(chunk.stream);
        let offset = grid.map_or(0, |grid| grid.offset);
        fault.report(&self.contents.path, offset, event.map(|(number, _)| number))
    }
}
