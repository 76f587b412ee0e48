//! Exports of LTTng's maps, counters by key, as recordings: what `lttng export-maps` of LTTng 2.16 writes for SQLite.
//!
//! Each counter is a sample of the time at which the file was written, since the export has none; several exports of
//! a session are series. docs/formats/lttng-maps.md describes the file.

mod load;
mod statements;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kymo_io::{Bytes, Watch};
use kymo_model::{
    Base, Change, Chunk, Cursor, EntryKind, Event, EventClass, Fault, FaultReport, FieldId, Format,
    Kind, Recording, RefreshError, Refreshed, Roles, RowPlace, Schema, Scope, Shift, ShiftError,
    StreamInfo, TrackRule, Visitor,
};
use kymo_time::{Clock, NANOS_PER_SECOND, Origin, Timestamp};

use load::{Counter, load};

/// Counters of a chunk.
const CHUNK: usize = 4096;
/// Bytes in which the first table is created.
const BEGIN: usize = 4096;

/// Whether bytes begin as an export does.
pub fn is_export(bytes: &[u8]) -> bool {
    let begin = &bytes[..bytes.len().min(BEGIN)];
    let first = begin.iter().find(|byte| !byte.is_ascii_whitespace());
    let table = b"CREATE TABLE channels (";
    first.is_some_and(|first| matches!(first, b'C' | b'P' | b'B'))
        && begin.windows(table.len()).any(|part| part == table)
}

/// An export that was read.
#[derive(Debug)]
pub struct MapExport {
    path: PathBuf,
    name: Option<String>,
    size: u64,
    watch: Watch,
    /// When the file was written, in nanoseconds since 1970.
    written: Option<i64>,
    offset_nanos: i64,
    streams: Vec<StreamInfo>,
    classes: Vec<EventClass>,
    counters: Vec<Counter>,
    faults: Vec<FaultReport>,
    notes: Vec<String>,
}

/// Fields of counters.
mod field {
    use kymo_model::FieldId;

    pub(super) const COUNTER: FieldId = FieldId(1);
    pub(super) const CHANNEL: FieldId = FieldId(2);
    pub(super) const DOMAIN: FieldId = FieldId(3);
    pub(super) const GROUP: FieldId = FieldId(4);
    pub(super) const OWNER: FieldId = FieldId(5);
    pub(super) const OWNER_ID: FieldId = FieldId(6);
    pub(super) const OWNER_NAME: FieldId = FieldId(7);
    pub(super) const CPU: FieldId = FieldId(8);
    pub(super) const CPU_ID: FieldId = FieldId(9);
    pub(super) const KEY: FieldId = FieldId(10);
    pub(super) const VALUE: FieldId = FieldId(11);
    pub(super) const OVERFLOW: FieldId = FieldId(12);
}

fn class() -> EventClass {
    const SINT: Kind = Kind::Sint {
        bits: 64,
        base: Base::Decimal,
        labels: None,
    };
    let mut schema = Schema::new();
    let root = schema.push_root(Scope::Payload, Kind::Struct);
    for (name, kind) in [
        ("counter", Kind::Text),
        ("channel", Kind::Text),
        ("domain", Kind::Text),
        ("group", Kind::Text),
    ] {
        schema.push_child(root, Some(name.into()), kind);
    }
    let owner = schema.push_child(root, Some("owner_id".into()), Kind::Optional);
    schema.push_child(owner, None, SINT);
    schema.push_child(root, Some("owner_name".into()), Kind::Text);
    let cpu = schema.push_child(root, Some("cpu_id".into()), Kind::Optional);
    schema.push_child(cpu, None, SINT);
    schema.push_child(root, Some("key".into()), Kind::Text);
    schema.push_child(root, Some("value".into()), SINT);
    schema.push_child(root, Some("overflow".into()), Kind::Bool { bits: 8 });
    EventClass {
        id: 0,
        stream_class: 0,
        name: Some("counter".into()),
        log_level: None,
        emf_uri: None,
        schema,
    }
}

/// Nanoseconds since 1970, and an offset.
fn clock(offset_nanos: i64) -> Clock {
    Clock {
        name: Some("written".to_owned()),
        offset_seconds: offset_nanos.div_euclid(NANOS_PER_SECOND),
        offset_cycles: offset_nanos.rem_euclid(NANOS_PER_SECOND) as u64,
        origin: Origin::UnixEpoch,
        ..Clock::default()
    }
}

/// When a file was written; `None` of what is not one, such as standard input.
fn written(path: &Path) -> Option<i64> {
    let modified = std::fs::metadata(path)
        .and_then(|file| file.modified())
        .ok()?;
    let since = modified.duration_since(std::time::SystemTime::UNIX_EPOCH);
    i64::try_from(since.ok()?.as_nanos()).ok()
}

impl MapExport {
    /// What the bytes of a file hold. What is wrong in them is among the faults.
    pub fn new(path: &Path, bytes: &Bytes) -> Self {
        let loaded = load(path, bytes);
        let written = written(path);
        let overflows = loaded
            .counters
            .iter()
            .filter(|counter| counter.has_overflowed)
            .count();
        let mut notes = Vec::new();
        if overflows > 0 {
            notes.push(format!(
                "{overflows} counters have overflowed: their values are too small"
            ));
        }
        if written.is_none() && !loaded.counters.is_empty() {
            notes.push("an export has no time, and this one no file that has one".to_owned());
        }
        let stream = StreamInfo {
            class: 0,
            id: Some(0),
            name: "counters".into(),
            clock: written.map(|_| Arc::new(clock(0))),
            packet_schema: Arc::new(Schema::new()),
        };
        Self {
            path: path.to_path_buf(),
            name: kymo_io::stem(path),
            size: bytes.len() as u64,
            watch: Watch::new(path, bytes),
            written,
            offset_nanos: 0,
            streams: vec![stream],
            classes: vec![class()],
            counters: loaded.counters,
            faults: loaded.faults,
            notes,
        }
    }

    /// Bytes of the file.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Number of counters.
    pub fn counters(&self) -> u64 {
        self.counters.len() as u64
    }

    /// Where the row of a counter is, in bytes.
    pub fn offset_of(&self, chunk: usize, number: u64) -> Option<usize> {
        let place = chunk
            .checked_mul(CHUNK)?
            .checked_add(usize::try_from(number).ok()?)?;
        Some(self.counters.get(place)?.offset)
    }

    /// Where the rows of all counters are, in no order.
    pub fn offsets(&self) -> impl Iterator<Item = usize> {
        self.counters.iter().map(|counter| counter.offset)
    }

    /// Writes the file, whose bytes these are, without the rows of counters that are not to stay, by their
    /// [offsets](Self::offset_of).
    ///
    /// # Errors
    ///
    /// Those of the output.
    pub fn write_cut(
        &self,
        bytes: &[u8],
        stays: impl Fn(usize) -> bool,
        out: &mut impl io::Write,
    ) -> io::Result<()> {
        load::cut(bytes, stays, out)
    }

    /// What is odd, and no damage.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    fn ticks(&self) -> Option<u64> {
        u64::try_from(self.written?).ok()
    }

    fn timestamp(&self) -> Option<Timestamp> {
        let nanos = self.written?.checked_add(self.offset_nanos);
        nanos.map(Timestamp::from_nanos)
    }
}

impl Recording for MapExport {
    type Cursor<'a> = CounterCursor<'a>;

    fn path(&self) -> &Path {
        &self.path
    }

    fn format(&self) -> Format {
        Format {
            name: "lttng-maps",
            version: "sqlite",
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

    fn track_rule(&self, _class: usize) -> TrackRule {
        TrackRule::Field {
            key: field::COUNTER,
            name: None,
        }
    }

    fn roles(&self, _class: usize) -> Roles {
        let mut roles = Roles::default();
        roles.counters.push(field::VALUE);
        roles
    }

    fn entry_kind(&self, _stream: usize) -> EntryKind {
        EntryKind::Sample
    }

    fn shift(&mut self, shift: Shift) -> Result<(), ShiftError> {
        self.offset_nanos = shift.apply(self.offset_nanos)?;
        for stream in &mut self.streams {
            if stream.clock.is_some() {
                stream.clock = Some(Arc::new(clock(self.offset_nanos)));
            }
        }
        Ok(())
    }

    fn refresh(&mut self) -> Result<Refreshed, RefreshError> {
        let mut refreshed = Refreshed::default();
        let changed = self.watch.changed(&self.path);
        let changed = changed.map_err(|error| RefreshError::new(&self.path, &error))?;
        let Some(changed) = changed else {
            return Ok(refreshed);
        };
        let mut opened = Self::new(&self.path, &changed.bytes);
        opened.watch = changed.watch;
        let shift = Shift {
            nanos: self.offset_nanos.into(),
            from_unix_epoch: false,
        };
        let shifted = opened.shift(shift);
        shifted.map_err(|error| RefreshError::new(&self.path, &error))?;
        *self = opened;
        let from = RowPlace::default();
        refreshed.push(0, Change::Replaced { from });
        Ok(refreshed)
    }

    fn chunk_count(&self, stream: usize) -> usize {
        match stream {
            0 => self.counters.len().div_ceil(CHUNK),
            _ => 0,
        }
    }

    fn chunk(&self, stream: usize, number: usize) -> Option<Chunk> {
        let first = number.checked_mul(CHUNK)?;
        let count = self.counters.len().saturating_sub(first).min(CHUNK);
        if stream != 0 || count == 0 {
            return None;
        }
        let share = self.size / self.counters.len() as u64;
        Some(Chunk {
            stream,
            number,
            bytes: share.saturating_mul(count as u64),
            begin: self.ticks(),
            end: self.ticks(),
            begin_time: self.timestamp(),
            end_time: self.timestamp(),
            lost_events: None,
            lost_chunks: None,
        })
    }

    fn cursor(&self, chunk: &Chunk) -> CounterCursor<'_> {
        let first = chunk.number.saturating_mul(CHUNK).min(self.counters.len());
        let end = first.saturating_add(CHUNK).min(self.counters.len());
        CounterCursor {
            export: self,
            counters: &self.counters[first..end],
            next: 0,
        }
    }

    fn faults(&self) -> &[FaultReport] {
        &self.faults
    }
}

/// Walks the counters of a chunk.
#[derive(Debug)]
pub struct CounterCursor<'a> {
    export: &'a MapExport,
    counters: &'a [Counter],
    next: usize,
}

impl<'c> Cursor for CounterCursor<'c> {
    type Event<'a>
        = CounterSample<'c>
    where
        Self: 'a;

    fn next_event(&mut self) -> Result<Option<CounterSample<'c>>, Fault> {
        let number = self.next;
        self.next += 1;
        Ok(self.counters.get(number).map(|counter| CounterSample {
            export: self.export,
            counter,
            number: number as u64,
        }))
    }
}

/// A counter as a sample.
#[derive(Debug)]
pub struct CounterSample<'a> {
    export: &'a MapExport,
    counter: &'a Counter,
    number: u64,
}

impl CounterSample<'_> {
    fn bit(&self) -> u64 {
        (self.counter.offset as u64).saturating_mul(8)
    }

    fn text<V: Visitor>(&self, visitor: &mut V, field: FieldId, text: &str) {
        visitor.at(self.bit());
        visitor.text(field, text.as_bytes());
        visitor.after(self.bit());
    }

    fn optional<V: Visitor>(
        &self,
        visitor: &mut V,
        field: FieldId,
        inner: FieldId,
        number: Option<i64>,
    ) {
        visitor.at(self.bit());
        visitor.begin_optional(field, number.is_some(), number.is_some().into());
        if let Some(number) = number {
            visitor.at(self.bit());
            visitor.sint(inner, number);
            visitor.after(self.bit());
        }
        visitor.at(self.bit());
        visitor.end_optional(field);
    }
}

impl Event for CounterSample<'_> {
    fn class(&self) -> &EventClass {
        &self.export.classes[0]
    }

    fn class_index(&self) -> usize {
        0
    }

    fn timestamp(&self) -> Option<Timestamp> {
        self.export.timestamp()
    }

    fn ticks(&self) -> Option<u64> {
        self.export.ticks()
    }

    fn number(&self) -> u64 {
        self.number
    }

    fn begin_bit(&self) -> u64 {
        self.bit()
    }

    fn visit<V: Visitor>(&self, visitor: &mut V) -> Result<(), Fault> {
        let Counter {
            group,
            key,
            cpu,
            value,
            has_overflowed,
            ..
        } = self.counter;
        let bit = self.bit();
        visitor.at(bit);
        visitor.begin_struct(FieldId(0));
        if visitor.wants(field::COUNTER) {
            self.text(visitor, field::COUNTER, &self.counter.name());
        }
        self.text(visitor, field::CHANNEL, &group.channel);
        self.text(visitor, field::DOMAIN, &group.domain);
        self.text(visitor, field::GROUP, &group.kind);
        self.optional(visitor, field::OWNER, field::OWNER_ID, group.owner);
        let owner_name = group.owner_name.as_deref().unwrap_or_default();
        self.text(visitor, field::OWNER_NAME, owner_name);
        self.optional(visitor, field::CPU, field::CPU_ID, *cpu);
        self.text(visitor, field::KEY, key);
        visitor.at(bit);
        visitor.sint(field::VALUE, *value);
        visitor.after(bit);
        visitor.at(bit);
        visitor.boolean(field::OVERFLOW, *has_overflowed);
        visitor.after(bit);
        visitor.at(bit);
        visitor.end_struct(FieldId(0));
        Ok(())
    }
}

#[cfg(test)]
mod tests;
