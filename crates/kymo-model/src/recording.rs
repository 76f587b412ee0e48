//! Recordings: what a format's reader offers.

use std::any::Any;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use kymo_time::{Clock, Timestamp};

use crate::batch::Place;
use crate::{
    Cursor, EntryKind, EventClass, FaultReport, FieldId, RefreshError, Refreshed, Roles, Schema,
    Track, TrackRule, Visitor, Walk,
};

/// A format and its version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Format {
    /// Short name, such as `ctf`.
    pub name: &'static str,
    /// Version or dialect, such as `1.8`.
    pub version: &'static str,
}

/// A sequence of chunks in time order, written by one source (a CPU, a thread, a track).
#[derive(Clone, Debug)]
pub struct StreamInfo {
    /// Number of the stream's class in the recording (0 where the format has none).
    pub class: u64,
    /// Number of the stream, where the recording gives one.
    pub id: Option<u64>,
    /// What people call it: where it comes from a file of its own, that file's path.
    pub name: Arc<str>,
    /// The clock of its ticks.
    pub clock: Option<Arc<Clock>>,
    /// Fields of its packets (packet header and packet context).
    pub packet_schema: Arc<Schema>,
}

/// What a recorder could not keep between two times of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    /// How many; `None` where only that some were lost is known.
    pub count: Option<u64>,
    /// From when, in ticks of the stream's clock.
    pub begin: Option<u64>,
    /// Until when, in ticks of the stream's clock.
    pub end: Option<u64>,
}

/// The events of one class in a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tally {
    /// Position of the class in [`Recording::event_classes`].
    pub class: usize,
    /// How many there are.
    pub events: u64,
    /// The space they take, headers included, in bits.
    pub bits: u64,
    /// When the first one happened.
    pub first: Option<Timestamp>,
    /// When the last one happened.
    pub last: Option<Timestamp>,
}

/// The unit of parallel work: it can be decoded with nothing but itself.
///
/// A recording may have millions of them and need not keep them as they are here: it makes
/// one when it is [asked for](Recording::chunk).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Position of its stream in [`Recording::streams`].
    pub stream: usize,
    /// Position among the stream's chunks.
    pub number: usize,
    /// Size in bytes.
    pub bytes: u64,
    /// Ticks at its beginning, where known without decoding.
    pub begin: Option<u64>,
    /// Ticks at its end, where known without decoding.
    pub end: Option<u64>,
    /// No event in it is earlier than this, where known without decoding.
    pub begin_time: Option<Timestamp>,
    /// No event in it is later than this, where known without decoding.
    pub end_time: Option<Timestamp>,
    /// Events lost before its end and after the chunk before it.
    pub lost_events: Option<Lost>,
    /// Chunks lost between the chunk before it and this one.
    pub lost_chunks: Option<Lost>,
}

/// What a recording has prepared for cursors that report only some fields; nothing for one that always
/// reports all.
#[derive(Clone, Debug, Default)]
pub struct Narrowed(Option<Arc<dyn Any + Send + Sync>>);

impl Narrowed {
    /// Something prepared, of a type that only the recording knows.
    pub fn new<T: Any + Send + Sync>(prepared: Arc<T>) -> Self {
        Self(Some(prepared))
    }

    /// What was prepared, if it is of this type.
    pub fn get<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        Arc::clone(self.0.as_ref()?).downcast().ok()
    }
}

/// A change of the times of a recording that is open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shift {
    /// Nanoseconds that are added to all times. Offsets that cancel out may each be large.
    pub nanos: i128,
    /// Whether times count from 1970 then, whatever the clocks say.
    pub from_unix_epoch: bool,
}

impl Shift {
    /// This shift, and another one after it.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            nanos: self.nanos.saturating_add(other.nanos),
            from_unix_epoch: self.from_unix_epoch || other.from_unix_epoch,
        }
    }

    /// An offset after this shift.
    ///
    /// # Errors
    ///
    /// It does not fit.
    pub fn apply(&self, offset_nanos: i64) -> Result<i64, ShiftError> {
        let shifted = i128::from(offset_nanos).saturating_add(self.nanos);
        i64::try_from(shifted).map_err(|_| ShiftError)
    }
}

/// That a clock runs too slow or too fast: a time `t` of it is `pivot + (t - pivot) * (1 + parts / 10^12)`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drift {
    /// A time that stays as it is, in nanoseconds.
    pub pivot: i64,
    /// What is added to each second, in picoseconds; at most half a second.
    pub parts: i64,
}

/// The times of a recording would be beyond 64 bits of nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShiftError;

impl fmt::Display for ShiftError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the shifted times do not fit in 64 bits of nanoseconds")
    }
}

impl std::error::Error for ShiftError {}

/// A recording that is open for reading.
pub trait Recording: Send + Sync {
    /// Walks the events of one chunk.
    type Cursor<'a>: Cursor
    where
        Self: 'a;

    /// What was opened.
    fn path(&self) -> &Path;

    /// Format and version.
    fn format(&self) -> Format;

    /// What people call it, where it has a name. Together with [`uid`](Self::uid) it decides
    /// the order of events of the same time.
    fn name(&self) -> Option<&str>;

    /// Its unique identifier, where it has one.
    fn uid(&self) -> Option<&str> {
        None
    }

    /// The streams of events.
    fn streams(&self) -> &[StreamInfo];

    /// The classes of all events.
    fn event_classes(&self) -> &[EventClass];

    /// The tracks that are known from the metadata. Rows may be on others, which their
    /// [rules](Self::track_rule) make.
    fn tracks(&self) -> &[Track] {
        &[]
    }

    /// The name of the track with a number, which is the value of the key of a [`TrackRule::Field`]; `None` unless the
    /// metadata have a name for every number. Then names in rows need not be looked at.
    fn track_name(&self, _number: u64) -> Option<String> {
        None
    }

    /// How the tracks of the rows of an event class are found.
    fn track_rule(&self, _class: usize) -> TrackRule {
        TrackRule::default()
    }

    /// What the rows of an event class do on their tracks.
    fn roles(&self, _class: usize) -> Roles {
        Roles::default()
    }

    /// The field that has the name of the address that a field of an event class holds: rows are grouped by that, and
    /// not by the number. If the field is an array, so is that one.
    fn symbol_field(&self, _class: usize, _field: FieldId) -> Option<FieldId> {
        None
    }

    /// What the rows of a stream are.
    fn entry_kind(&self, _stream: usize) -> EntryKind {
        EntryKind::Event
    }

    /// Shifts all times. Shifts add up; ticks stay as they are.
    ///
    /// # Errors
    ///
    /// The sum of all shifts does not fit; nothing has changed.
    fn shift(&mut self, shift: Shift) -> Result<(), ShiftError>;

    /// Corrects the drift of its clocks, in times as they are shown now. What stays uncorrected, in picoseconds per
    /// second; `None` where the format's times cannot be corrected, and nothing has changed.
    ///
    /// # Errors
    ///
    /// The corrected times do not fit; nothing has changed.
    fn correct_drift(&mut self, _drift: Drift) -> Result<Option<u64>, ShiftError> {
        Ok(None)
    }

    /// Reads what has changed since it was opened or refreshed, and nothing else. Without it, nothing ever does.
    ///
    /// # Errors
    ///
    /// What has changed cannot be read; the recording is as it was.
    fn refresh(&mut self) -> Result<Refreshed, RefreshError> {
        Ok(Refreshed::default())
    }

    /// The first chunk of a stream that is left: those before it have vanished at a
    /// [refresh](Self::refresh).
    fn first_chunk(&self, _stream: usize) -> usize {
        0
    }

    /// How many chunks a stream has, those that have vanished included.
    fn chunk_count(&self, stream: usize) -> usize;

    /// A chunk of a stream, by its position in time order; `None` if there is none.
    fn chunk(&self, stream: usize, number: usize) -> Option<Chunk>;

    /// The chunks of a stream, in time order.
    fn chunks(&self, stream: usize) -> impl Iterator<Item = Chunk> {
        (self.first_chunk(stream)..self.chunk_count(stream))
            .filter_map(move |number| self.chunk(stream, number))
    }

    /// Where the events of a chunk end, in bits from its beginning: what follows is padding.
    fn content_bits(&self, chunk: &Chunk) -> u64 {
        chunk.bytes.saturating_mul(8)
    }

    /// Walks the events of a chunk.
    fn cursor(&self, chunk: &Chunk) -> Self::Cursor<'_>;

    /// Prepares cursors for some fields of events: `wanted` is asked for the fields of each event class, by its
    /// position.
    fn narrow(&self, _wanted: &dyn Fn(usize, FieldId) -> bool) -> Narrowed {
        Narrowed::default()
    }

    /// Walks the events of a chunk as [`cursor`](Self::cursor) does, but visitors need not receive the
    /// fields that were not [wanted](Self::narrow).
    fn narrow_cursor(&self, chunk: &Chunk, _narrowed: &Narrowed) -> Self::Cursor<'_> {
        self.cursor(chunk)
    }

    /// Where the number that a field holds is in every event of a class; `None` if that differs between events,
    /// or the format does not know.
    fn place(&self, _class: usize, _field: FieldId) -> Option<Place> {
        None
    }

    /// Works on the events of a chunk. A recording that can be of several formats finds out
    /// once which it is, and not again for each event as its [`cursor`](Self::cursor) does.
    fn walk<W: Walk>(&self, chunk: &Chunk, work: W) -> W::Output {
        work.walk(self.cursor(chunk))
    }

    /// Counts the events of a chunk by their classes, each class once, as going through them would.
    /// `None` if there is no faster way.
    fn tally(&self, _chunk: &Chunk) -> Option<Vec<Tally>> {
        None
    }

    /// Decodes the packet header and context of a chunk.
    ///
    /// # Errors
    ///
    /// The fault at which decoding stopped.
    fn visit_packet<V: Visitor>(
        &self,
        _chunk: &Chunk,
        _visitor: &mut V,
    ) -> Result<(), crate::Fault> {
        Ok(())
    }

    /// Faults found while opening: in indexes, in packet headers, between packets.
    fn faults(&self) -> &[FaultReport] {
        &[]
    }

    /// A fault of a chunk with everything a person needs to find it. Without it, that is the file and the event.
    fn report(
        &self,
        _chunk: &Chunk,
        event: Option<(u64, usize)>,
        fault: crate::Fault,
    ) -> FaultReport {
        fault.report(self.path(), 0, event.map(|(number, _)| number))
    }

    /// Packet fields that only matter to readers (sizes, times, counters), which are left
    /// out where packet contexts are shown.
    fn is_packet_bookkeeping(&self, _stream: usize, _field: FieldId) -> bool {
        false
    }
}
