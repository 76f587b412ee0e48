//! A file as a recording.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kymo_model::{
    Chunk, EventClass, FaultReport, Format, Roles, Schema, Shift, ShiftError, StreamInfo, Track,
    TrackRule,
};
use kymo_time::{Clock, Origin, Timestamp};

use crate::builder::Builder;
use crate::classes::{Plan, field};
use crate::cursor::RowCursor;
use crate::probe::{Form, probe};
use crate::sort::Sorted;
use crate::{chrome, perfetto};

/// Why a file cannot be opened.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// It is of neither format.
    NoTrace {
        /// Where it is.
        path: PathBuf,
    },
    /// Its events cannot be sorted.
    Sort {
        /// Where it is.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoTrace { path } => write!(
                f,
                "{}: neither a trace of Perfetto nor one of Chrome's JSON",
                path.display()
            ),
            Self::Sort { path, error } => write!(
                f,
                "{}: cannot sort its events: {error}; \
                 hint: TMPDIR names the directory of temporary files",
                path.display()
            ),
        }
    }
}

impl std::error::Error for OpenError {}

/// What reading finds beside rows.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Times {
    /// Nanoseconds from 1970 to time zero, where the file says it.
    pub(crate) from_unix_epoch: Option<i64>,
}

/// Reads the bytes of a file.
pub(crate) fn read(bytes: &[u8], form: Form, builder: &mut Builder) -> io::Result<Times> {
    match form {
        Form::Perfetto => perfetto::read(bytes, builder),
        Form::Chrome => chrome::read(bytes, builder),
    }
}

/// A trace that is open.
///
/// ```
/// use std::path::Path;
///
/// use kymo_model::{Cursor, Event, Recording as _};
/// use kymo_perfetto::Recording;
///
/// let json = br#"[{"ph":"X","ts":1.5,"dur":2,"pid":7,"tid":8,"name":"work"}]"#;
/// let trace = Recording::from_bytes(Path::new("x.json"), json)?;
/// assert_eq!(trace.tracks()[0].path.to_string(), "process 7");
/// for chunk in trace.chunks(0) {
///     let mut cursor = trace.cursor(&chunk);
///     while let Ok(Some(event)) = cursor.next_event() {
///         assert_eq!(event.ticks(), Some(1500));
///         assert_eq!(event.class().name.as_deref(), Some("work"));
///     }
/// }
/// # Ok::<(), kymo_perfetto::OpenError>(())
/// ```
#[derive(Debug)]
pub struct Recording {
    path: PathBuf,
    name: Option<String>,
    form: Form,
    size: u64,
    streams: Vec<StreamInfo>,
    classes: Vec<EventClass>,
    plans: Vec<Plan>,
    tracks: Vec<Track>,
    /// By the number of a track in rows, its position.
    positions: Vec<u32>,
    categories: Vec<Arc<[u8]>>,
    texts: Vec<Arc<[u8]>>,
    sorted: Sorted,
    /// The time at which ticks are 0.
    base: i64,
    /// Added to times to get to the common line.
    shift: i64,
    faults: Vec<FaultReport>,
    notes: Vec<String>,
}

impl Recording {
    /// Opens the bytes of a file. They are no longer needed when it is open.
    ///
    /// # Errors
    ///
    /// When they are of neither format, or cannot be sorted. Damage is among the faults.
    pub fn from_bytes(path: &Path, bytes: &[u8]) -> Result<Self, OpenError> {
        match probe(bytes, path) {
            Some(found) => Self::from_form(path, bytes, found.form),
            None => Err(OpenError::NoTrace {
                path: path.to_path_buf(),
            }),
        }
    }

    /// Opens the bytes of a file that is known to be of a format.
    ///
    /// # Errors
    ///
    /// When its events cannot be sorted.
    pub fn from_form(path: &Path, bytes: &[u8], form: Form) -> Result<Self, OpenError> {
        let mut builder = Builder::new(path.to_path_buf(), bytes.len() as u64);
        let read = read(bytes, form, &mut builder);
        let failed = |error| OpenError::Sort {
            path: path.to_path_buf(),
            error,
        };
        let times = read.map_err(failed)?;
        let (tracks, positions) = builder.tracks.finish();
        builder.conclude();
        let base = builder.earliest;
        let shift = times.from_unix_epoch.unwrap_or(0);
        let clock = Clock {
            origin: match times.from_unix_epoch.is_some() {
                true => Origin::UnixEpoch,
                false => Origin::Unknown,
            },
            ..Clock::default()
        };
        let stream = StreamInfo {
            class: 0,
            id: Some(0),
            name: "events".into(),
            clock: Some(Arc::new(
                clock.shifted(i128::from(base) + i128::from(shift)),
            )),
            packet_schema: Arc::new(Schema::new()),
        };
        let (classes, plans) = builder.classes.finish();
        let name = path.file_stem().map(|name| name.to_string_lossy());
        Ok(Self {
            path: path.to_path_buf(),
            name: name.map(std::borrow::Cow::into_owned),
            form,
            size: bytes.len() as u64,
            streams: vec![stream],
            classes,
            plans,
            tracks,
            positions,
            categories: builder.categories.texts,
            texts: builder.texts.texts,
            sorted: builder.sorter.finish().map_err(failed)?,
            base,
            shift,
            faults: builder.faults,
            notes: builder.notes,
        })
    }

    /// The format of the file.
    pub fn form(&self) -> Form {
        self.form
    }

    /// Number of bytes of the file.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Number of events.
    pub fn events(&self) -> u64 {
        self.sorted.rows
    }

    /// What is odd about it, or not read, and no damage.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The rows of a chunk.
    pub(crate) fn rows(&self, chunk: usize) -> &[u8] {
        let rows = self.sorted.parts.get(chunk).and_then(|part| {
            let begin = usize::try_from(part.offset).ok()?;
            let end = begin.checked_add(usize::try_from(part.bytes).ok()?)?;
            self.sorted.bytes.get(begin..end)
        });
        rows.unwrap_or_default()
    }

    pub(crate) fn plan(&self, class: usize) -> Option<&Plan> {
        self.plans.get(class)
    }

    pub(crate) fn class(&self, class: usize) -> &EventClass {
        &self.classes[class]
    }

    pub(crate) fn texts(&self) -> &[Arc<[u8]>] {
        &self.texts
    }

    pub(crate) fn categories(&self) -> &[Arc<[u8]>] {
        &self.categories
    }

    pub(crate) fn track_position(&self, number: u64) -> u64 {
        let position = self.positions.get(number as usize);
        position.map_or(0, |&position| position.into())
    }

    pub(crate) fn track_name(&self, position: u64) -> &[u8] {
        let track = self.tracks.get(position as usize);
        track.map_or(b"", |track| track.name.as_bytes())
    }

    pub(crate) fn timestamp(&self, time: i64) -> Option<Timestamp> {
        time.checked_add(self.shift).map(Timestamp::from_nanos)
    }

    pub(crate) fn ticks(&self, time: i64) -> Option<u64> {
        u64::try_from(i128::from(time) - i128::from(self.base)).ok()
    }
}

impl kymo_model::Recording for Recording {
    type Cursor<'a> = RowCursor<'a>;

    fn path(&self) -> &Path {
        &self.path
    }

    fn format(&self) -> Format {
        Format {
            name: match self.form {
                Form::Perfetto => "perfetto",
                Form::Chrome => "chrome",
            },
            version: "",
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

    fn tracks(&self) -> &[Track] {
        &self.tracks
    }

    fn track_rule(&self, _class: usize) -> TrackRule {
        TrackRule::Position(field::TRACK)
    }

    fn roles(&self, class: usize) -> Roles {
        let plan = self.plans.get(class);
        plan.map_or_else(Roles::default, |plan| plan.roles.clone())
    }

    fn shift(&mut self, shift: Shift) -> Result<(), ShiftError> {
        self.shift = shift.apply(self.shift)?;
        for stream in &mut self.streams {
            let clock = stream.clock.take().unwrap_or_default();
            let mut clock = clock.shifted(shift.nanos);
            if shift.from_unix_epoch {
                clock.origin = Origin::UnixEpoch;
            }
            stream.clock = Some(Arc::new(clock));
        }
        Ok(())
    }

    fn chunk_count(&self, stream: usize) -> usize {
        match stream {
            0 => self.sorted.parts.len(),
            _ => 0,
        }
    }

    fn chunk(&self, stream: usize, number: usize) -> Option<Chunk> {
        let part = self.sorted.parts.get(number).filter(|_| stream == 0)?;
        Some(Chunk {
            stream,
            number,
            bytes: part.bytes,
            begin: part.begin.and_then(|time| self.ticks(time)),
            end: part.end.and_then(|time| self.ticks(time)),
            begin_time: part.begin.and_then(|time| self.timestamp(time)),
            end_time: part.end.and_then(|time| self.timestamp(time)),
            lost_events: None,
            lost_chunks: None,
        })
    }

    fn cursor(&self, chunk: &Chunk) -> RowCursor<'_> {
        RowCursor::new(self, chunk)
    }

    fn faults(&self) -> &[FaultReport] {
        &self.faults
    }
}
