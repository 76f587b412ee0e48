//! Datagrams as a recording: a capture of a network, or a file that is one datagram.
//!
//! Its first stream has the lists of values, its second one the messages, in the order of time:
//! so all of it is read when it is opened, and kept in the memory in some 60 bytes for each list
//! and 16 for each value. Ticks are collectd's own count of 2^-30 seconds.

mod events;
mod load;
mod refresh;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kymo_io::{Access, Bytes, Watch};
use kymo_model::{
    Chunk, EventClass, FaultReport, Format, Kind as FieldKind, RefreshError, Refreshed, Schema,
    Scope, Shift, ShiftError, StreamInfo,
};
use kymo_time::{CdTime, Clock, NANOS_PER_SECOND, Origin, Timestamp};

use crate::capture::{Form, Position};
use crate::network::{Keys, PORT, Security};
use crate::{Identifier, Severity, Value};

pub use events::{SampleCursor, SampleEvent};

/// Number of lists and messages of a chunk, which is processed in one go.
const CHUNK: usize = 4096;
/// The stream of lists of values.
pub const VALUES: usize = 0;
/// The stream of messages.
pub const MESSAGES: usize = 1;

/// How a recording is opened.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Accepted users of signatures and encrypted parts.
    pub keys: Option<Keys>,
}

/// Datagrams that were read.
#[derive(Debug)]
pub struct Recording {
    path: PathBuf,
    name: Option<String>,
    form: Option<Form>,
    size: u64,
    datagrams: u64,
    offset_nanos: i64,
    keys: Option<Keys>,
    watch: Watch,
    /// Up to where it was read.
    position: Position,
    /// Of each stream the entries that are earlier than the one before: what was added later is behind what
    /// was there.
    backwards: [Vec<usize>; 2],
    streams: Vec<StreamInfo>,
    classes: Vec<EventClass>,
    content: Content,
    faults: Vec<FaultReport>,
    notes: Vec<String>,
}

/// Lists, messages, and what they refer to.
#[derive(Debug, Default)]
struct Content {
    texts: Vec<Arc<str>>,
    values: Vec<Value>,
    lists: Vec<List>,
    messages: Vec<Message>,
    /// Bytes of all parts with values, and of all with messages.
    sizes: [u64; 2],
}

/// The five names, as positions among the texts.
type Names = [u32; 5];

/// Values of one name and time.
#[derive(Clone, Copy, Debug)]
struct List {
    time: CdTime,
    interval: CdTime,
    names: Names,
    security: Security,
    /// The number of its datagram.
    datagram: u32,
    /// How many values there are, from which one on.
    count: u16,
    first: usize,
    /// Bytes of the parts with values before it, in the order of time.
    position: u64,
}

/// A message.
#[derive(Clone, Copy, Debug)]
struct Message {
    time: CdTime,
    severity: Severity,
    names: Names,
    text: u32,
    security: Security,
    /// The number of its datagram.
    datagram: u32,
    /// Bytes of the parts with messages before it, in the order of time.
    position: u64,
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
    /// It is neither a capture nor a datagram.
    NoDatagram {
        /// Where it is.
        path: PathBuf,
    },
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable { path, error } => write!(f, "{}: {error}", path.display()),
            Self::NoDatagram { path } => write!(
                f,
                "{}: neither a capture (pcap, pcapng) nor a datagram of collectd",
                path.display()
            ),
        }
    }
}

impl std::error::Error for OpenError {}

/// Whether bytes are a capture of a network, or look like a datagram of collectd.
pub fn is_recording(bytes: &[u8]) -> bool {
    Form::detect(bytes).is_some() || load::looks_like_datagram(bytes)
}

impl Recording {
    /// Opens a capture, or a file that is a datagram.
    ///
    /// # Errors
    ///
    /// When it cannot be read, or is neither. What is wrong in it is among the faults.
    pub fn open(path: &Path, options: &Options) -> Result<Self, OpenError> {
        let path = path.to_path_buf();
        match Bytes::open(&path, Access::Sequential) {
            Ok(bytes) => Self::new(&path, &bytes, options),
            Err(error) => Err(OpenError::Unreadable { path, error }),
        }
    }

    /// What the bytes of a file hold.
    ///
    /// # Errors
    ///
    /// When they are neither a capture nor a datagram.
    pub fn new(path: &Path, bytes: &[u8], options: &Options) -> Result<Self, OpenError> {
        if !is_recording(bytes) {
            let path = path.to_path_buf();
            return Err(OpenError::NoDatagram { path });
        }
        let mut position = Position::default();
        let keys = options.keys.as_ref();
        let loaded = load::load(path, bytes, keys, Content::default(), 0, &mut position);
        let clock = Arc::new(clock(0));
        let packet_schema = Arc::new(Schema::new());
        let stream = |class, name: &str| StreamInfo {
            class,
            id: Some(0),
            name: name.into(),
            clock: Some(Arc::clone(&clock)),
            packet_schema: Arc::clone(&packet_schema),
        };
        Ok(Self {
            path: path.to_path_buf(),
            name: kymo_io::stem(path),
            form: Form::detect(bytes),
            size: bytes.len() as u64,
            datagrams: loaded.datagrams,
            offset_nanos: 0,
            keys: options.keys.clone(),
            watch: Watch::new(path, bytes),
            position,
            backwards: [Vec::new(), Vec::new()],
            streams: vec![stream(0, "values"), stream(1, "notifications")],
            classes: vec![values_class(), messages_class()],
            content: loaded.content,
            faults: loaded.faults,
            notes: loaded.notes,
        })
    }

    /// Number of bytes of the file.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Number of datagrams.
    pub fn datagrams(&self) -> u64 {
        self.datagrams
    }

    /// The datagram that an event is of, by its number.
    pub fn datagram_of(&self, stream: usize, chunk: usize, number: u64) -> Option<u64> {
        let place = chunk
            .checked_mul(CHUNK)?
            .checked_add(usize::try_from(number).ok()?)?;
        let datagram = match stream {
            VALUES => self.content.lists.get(place)?.datagram,
            _ => self.content.messages.get(place)?.datagram,
        };
        Some(datagram.into())
    }

    /// Writes the file, whose bytes these are, without the datagrams that are not to stay, by their numbers, and
    /// without the packets of a capture that are none of collectd's.
    ///
    /// # Errors
    ///
    /// Those of the output.
    pub fn write_cut(
        &self,
        bytes: &[u8],
        stays: impl Fn(u64) -> bool,
        out: &mut impl io::Write,
    ) -> io::Result<()> {
        match Form::detect(bytes) {
            Some(form) => crate::capture::cut(bytes, form, PORT, stays, out),
            None if stays(0) => out.write_all(bytes),
            None => Ok(()),
        }
    }

    /// Number of lists of values.
    pub fn lists(&self) -> u64 {
        self.content.lists.len() as u64
    }

    /// Number of messages.
    pub fn messages(&self) -> u64 {
        self.content.messages.len() as u64
    }

    /// What is odd, and no damage.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The time on the common time line, to the nearest nanosecond.
    fn timestamp(&self, time: CdTime) -> Option<Timestamp> {
        let nanos = i64::try_from(i128::from(time.to_nanos()) + i128::from(self.offset_nanos));
        nanos.ok().map(Timestamp::from_nanos)
    }

    fn count(&self, stream: usize) -> usize {
        match stream {
            VALUES => self.content.lists.len(),
            MESSAGES => self.content.messages.len(),
            _ => 0,
        }
    }

    /// Time and position of an entry.
    fn place(&self, stream: usize, number: usize) -> Option<(CdTime, u64)> {
        match stream {
            VALUES => {
                let list = self.content.lists.get(number)?;
                Some((list.time, list.position))
            }
            _ => {
                let message = self.content.messages.get(number)?;
                Some((message.time, message.position))
            }
        }
    }
}

impl Content {
    fn text(&self, number: u32) -> &str {
        let text = usize::try_from(number)
            .ok()
            .and_then(|at| self.texts.get(at));
        text.map_or("", |text| text)
    }

    fn id(&self, names: Names) -> Identifier<'_> {
        let [host, plugin, plugin_instance, type_name, type_instance] =
            names.map(|number| self.text(number));
        Identifier {
            host,
            plugin,
            plugin_instance,
            type_name,
            type_instance,
        }
    }
}

/// collectd's count, and an offset.
fn clock(offset_nanos: i64) -> Clock {
    let cycles = i128::from(offset_nanos.rem_euclid(NANOS_PER_SECOND)) << 30;
    Clock {
        name: Some("cdtime".to_string()),
        frequency: CdTime::TICKS_PER_SECOND,
        offset_seconds: offset_nanos.div_euclid(NANOS_PER_SECOND),
        offset_cycles: (cycles / i128::from(NANOS_PER_SECOND)) as u64,
        origin: Origin::UnixEpoch,
        ..Clock::default()
    }
}

const UINT: FieldKind = FieldKind::Uint {
    bits: 64,
    base: kymo_model::Base::Decimal,
    labels: None,
};

/// Fields of lists of values; what follows the values comes behind their four kinds.
pub mod list_field {
    use kymo_model::FieldId;
    /// The time as collectd counts it.
    pub const TIME: FieldId = FieldId(1);
    /// From one list to the next, likewise; 0 if it was not given.
    pub const INTERVAL: FieldId = FieldId(2);
    /// The name as text.
    pub const ID: FieldId = FieldId(3);
    /// The values.
    pub const VALUES: FieldId = FieldId(4);
    /// One of them: a variant, of which each option is a kind.
    pub const VALUE: FieldId = FieldId(5);
    /// The number of the first option's field; those of the others follow, in the order of the
    /// numbers of kinds on the wire.
    pub const FIRST_KIND: u32 = 6;
    /// How it was protected.
    pub const SECURITY: FieldId = FieldId(10);
}

/// Fields of messages.
pub mod message_field {
    use kymo_model::FieldId;
    /// The time as collectd counts it.
    pub const TIME: FieldId = FieldId(1);
    /// How bad it is, by its name.
    pub const SEVERITY: FieldId = FieldId(2);
    /// What it is about, as text.
    pub const ID: FieldId = FieldId(3);
    /// What people read.
    pub const MESSAGE: FieldId = FieldId(4);
    /// How it was protected.
    pub const SECURITY: FieldId = FieldId(5);
}

fn class(id: u64, name: &str, schema: Schema) -> EventClass {
    EventClass {
        id,
        stream_class: id,
        name: Some(name.into()),
        log_level: None,
        emf_uri: None,
        schema,
    }
}

fn values_class() -> EventClass {
    let mut schema = Schema::new();
    let root = schema.push_root(Scope::Payload, FieldKind::Struct);
    let mut member = |name: &str, kind| schema.push_child(root, Some(name.into()), kind);
    member("cdtime", UINT);
    member("interval", UINT);
    member("id", FieldKind::Text);
    let values = member("values", FieldKind::Array { length: None });
    let value = schema.push_child(values, None, FieldKind::Variant);
    let sint = FieldKind::Sint {
        bits: 64,
        base: kymo_model::Base::Decimal,
        labels: None,
    };
    // In the order of their numbers on the wire.
    for (name, kind) in [
        ("COUNTER", UINT),
        ("GAUGE", FieldKind::Float { bits: 64 }),
        ("DERIVE", sint),
        ("ABSOLUTE", UINT),
    ] {
        schema.push_child(value, Some(name.into()), kind);
    }
    schema.push_child(root, Some("security".into()), FieldKind::Text);
    class(0, "values", schema)
}

fn messages_class() -> EventClass {
    let mut schema = Schema::new();
    let root = schema.push_root(Scope::Payload, FieldKind::Struct);
    for (name, kind) in [
        ("cdtime", UINT),
        ("severity", FieldKind::Text),
        ("id", FieldKind::Text),
        ("message", FieldKind::Text),
        ("security", FieldKind::Text),
    ] {
        schema.push_child(root, Some(name.into()), kind);
    }
    class(1, "notification", schema)
}

impl kymo_model::Recording for Recording {
    type Cursor<'a> = SampleCursor<'a>;

    fn path(&self) -> &Path {
        &self.path
    }

    fn format(&self) -> Format {
        Format {
            name: "collectd",
            version: self.form.map_or("datagram", Form::as_str),
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

    fn track_rule(&self, class: usize) -> kymo_model::TrackRule {
        match class {
            VALUES => kymo_model::TrackRule::Field {
                key: list_field::ID,
                name: None,
            },
            _ => kymo_model::TrackRule::Stream,
        }
    }

    fn roles(&self, class: usize) -> kymo_model::Roles {
        let mut roles = kymo_model::Roles::default();
        if class == VALUES {
            roles.counters.push(list_field::VALUES);
        }
        roles
    }

    fn entry_kind(&self, stream: usize) -> kymo_model::EntryKind {
        match stream {
            VALUES => kymo_model::EntryKind::Sample,
            _ => kymo_model::EntryKind::Event,
        }
    }

    fn shift(&mut self, shift: Shift) -> Result<(), ShiftError> {
        self.offset_nanos = shift.apply(self.offset_nanos)?;
        let clock = Arc::new(clock(self.offset_nanos));
        for stream in &mut self.streams {
            stream.clock = Some(Arc::clone(&clock));
        }
        Ok(())
    }

    fn refresh(&mut self) -> Result<Refreshed, RefreshError> {
        self.read_again()
    }

    fn chunk_count(&self, stream: usize) -> usize {
        self.count(stream).div_ceil(CHUNK)
    }

    fn chunk(&self, stream: usize, number: usize) -> Option<Chunk> {
        let first = number.checked_mul(CHUNK)?;
        let end = first.checked_add(CHUNK)?.min(self.count(stream));
        let (_, begin) = self.place(stream, first)?;
        let (begin_time, end_time) = self.times(stream, first..end)?;
        let end = match self.place(stream, end) {
            Some((_, position)) => position,
            None => self.content.sizes.get(stream).copied().unwrap_or(begin),
        };
        Some(Chunk {
            stream,
            number,
            bytes: end.saturating_sub(begin),
            begin: Some(begin_time.ticks()),
            end: Some(end_time.ticks()),
            begin_time: self.timestamp(begin_time),
            end_time: self.timestamp(end_time),
            lost_events: None,
            lost_chunks: None,
        })
    }

    fn cursor(&self, chunk: &Chunk) -> SampleCursor<'_> {
        let first = chunk.number.saturating_mul(CHUNK);
        let end = self.count(chunk.stream).min(first.saturating_add(CHUNK));
        SampleCursor::new(self, chunk.stream, first..end)
    }

    fn faults(&self) -> &[FaultReport] {
        &self.faults
    }
}
