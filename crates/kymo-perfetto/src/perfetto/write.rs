//! Writing of Perfetto's traces.
//!
//! A [`PerfettoWriter`] appends packets to a line. Names of events and annotations are numbers of
//! [`Names`], which a packet has with it where they come first. Annotations are written apart, by any
//! thread, with an [`Annotation`] for each field.

use std::sync::Arc;

use foldhash::HashMap;
use kymo_text::{Line, Room, Stamp};

use crate::message::{annotation, event, interned, packet, trace, track};
use crate::proto::write::{self as proto, varint, varint_size};

/// The sequence that all packets are of.
const SEQUENCE: u64 = 1;

/// Names, each with a number from 1 on.
#[derive(Debug, Default)]
pub struct NameTable {
    numbers: HashMap<Arc<str>, u64>,
    names: Vec<Arc<str>>,
}

impl NameTable {
    /// The number of a name, which is added unless it is there.
    pub fn number(&mut self, name: &str) -> u64 {
        if let Some(&number) = self.numbers.get(name) {
            return number;
        }
        let name: Arc<str> = name.into();
        self.names.push(Arc::clone(&name));
        let number = self.names.len() as u64;
        self.numbers.insert(name, number);
        number
    }
}

/// The names of a trace.
#[derive(Debug, Default)]
pub struct Names {
    /// Those of events.
    pub events: NameTable,
    /// Those of annotations.
    pub annotations: NameTable,
}

/// What is on a track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrackContent {
    /// Other tracks, in the order of their ranks.
    Tracks,
    /// Slices and instants.
    Events,
    /// Values of a counter.
    Counter,
}

/// A track that begins.
#[derive(Clone, Copy, Debug)]
pub struct NewTrack<'a> {
    /// Its name.
    pub name: &'a str,
    /// The track that it is on.
    pub parent: Option<u64>,
    /// Its place there.
    pub rank: Option<i32>,
    /// What is on it.
    pub content: TrackContent,
}

/// What an event is.
#[derive(Clone, Copy, Debug)]
pub enum TrackEvent<'a> {
    /// An instant with the number of its name.
    Instant(u64),
    /// The beginning of a slice with the number of its name.
    Begin(u64),
    /// The end of the innermost slice. What ends it may be a text, with the number of its name as an
    /// annotation: an end with a name of its own ends only slices of that name.
    End(Option<(u64, &'a str)>),
}

/// A value of a counter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CounterValue {
    /// An integer.
    Integer(i64),
    /// A floating point number.
    Float(f64),
}

/// Writes packets, one after the other.
///
/// ```
/// use std::path::Path;
///
/// use kymo_model::Recording as _;
/// use kymo_perfetto::{Names, NewTrack, PerfettoWriter, Recording, TrackContent, TrackEvent};
/// use kymo_text::Line;
///
/// let mut names = Names::default();
/// let work = names.events.number("work");
/// let mut writer = PerfettoWriter::new(names.into());
/// let mut out = Line::new();
/// let new = NewTrack { name: "main", parent: None, rank: None, content: TrackContent::Events };
/// let track = writer.track(&new, &mut out);
/// writer.announce_event(work);
/// for (time, event) in [(1_000, TrackEvent::Begin(work)), (3_000, TrackEvent::End(None))] {
///     writer.event(time, track, event, std::iter::empty(), &[], &mut out);
/// }
/// let trace = Recording::from_bytes(Path::new("x.pftrace"), out.as_bytes())?;
/// assert_eq!(&*trace.tracks()[0].name, "main");
/// # Ok::<(), kymo_perfetto::OpenError>(())
/// ```
#[derive(Debug)]
pub struct PerfettoWriter {
    names: Arc<Names>,
    /// Which names were written.
    events: Vec<bool>,
    annotations: Vec<bool>,
    next_track: u64,
    has_packets: bool,
    /// The names that the next event has with it.
    interned: Line,
    /// Memory for an event.
    event: Line,
}

impl PerfettoWriter {
    /// A trace with these names.
    pub fn new(names: Arc<Names>) -> Self {
        Self {
            events: vec![false; names.events.names.len()],
            annotations: vec![false; names.annotations.names.len()],
            names,
            next_track: 1,
            has_packets: false,
            interned: Line::new(),
            event: Line::new(),
        }
    }

    /// Appends what all packets have beside their content.
    fn sequence(&mut self, out: &mut Line) {
        proto::uint(packet::SEQUENCE, SEQUENCE, out);
        let is_first = !std::mem::replace(&mut self.has_packets, true);
        let flags = match is_first {
            true => packet::CLEARED,
            false => packet::NEEDS_STATE,
        };
        proto::uint(packet::SEQUENCE_FLAGS, flags, out);
        if is_first {
            proto::uint(packet::FIRST_ON_SEQUENCE, 1, out);
        }
    }

    /// Writes a track, and returns its number.
    pub fn track(&mut self, new: &NewTrack<'_>, out: &mut Line) -> u64 {
        let number = self.next_track;
        self.next_track += 1;
        let mut inner = Line::new();
        proto::uint(track::UUID, number, &mut inner);
        proto::bytes(track::NAME, new.name.as_bytes(), &mut inner);
        if let Some(parent) = new.parent {
            proto::uint(track::PARENT_UUID, parent, &mut inner);
        }
        match new.content {
            TrackContent::Counter => proto::length(track::COUNTER, 0, &mut inner),
            TrackContent::Tracks => {
                proto::uint(track::CHILD_ORDERING, track::EXPLICIT, &mut inner);
            }
            TrackContent::Events => {}
        }
        if let Some(rank) = new.rank {
            proto::int(track::RANK, rank.into(), &mut inner);
        }
        proto::uint(track::SIBLING_MERGE, track::NO_MERGE, &mut inner);
        let mut body = Line::new();
        self.sequence(&mut body);
        proto::bytes(packet::TRACK_DESCRIPTOR, inner.as_bytes(), &mut body);
        proto::bytes(trace::PACKET, body.as_bytes(), out);
        number
    }

    /// Lets the next event have the name of an event with it, unless an event before it had it.
    pub fn announce_event(&mut self, number: u64) {
        let names = &self.names.events;
        let field = interned::EVENT_NAMES;
        announce(field, number, names, &mut self.events, &mut self.interned);
    }

    /// The same with the name of an annotation; 0 is that of none.
    pub fn announce_annotation(&mut self, number: u64) {
        let names = &self.names.annotations;
        let field = interned::ANNOTATION_NAMES;
        let written = &mut self.annotations;
        announce(field, number, names, written, &mut self.interned);
    }

    /// Writes an event on a track, at a time in nanoseconds. `annotations` were written with
    /// [`Annotation`]s.
    #[inline]
    pub fn event(
        &mut self,
        time: u64,
        track: u64,
        kind: TrackEvent<'_>,
        flows: impl Iterator<Item = u64>,
        annotations: &[u8],
        out: &mut Line,
    ) {
        let mut line = std::mem::take(&mut self.event);
        line.clear();
        let (number, name) = match kind {
            TrackEvent::Instant(name) => (event::INSTANT, Some(name)),
            TrackEvent::Begin(name) => (event::SLICE_BEGIN, Some(name)),
            TrackEvent::End(_) => (event::SLICE_END, None),
        };
        line.compose(|room| {
            proto::put_uint(event::TYPE, number, room);
            proto::put_uint(event::TRACK_UUID, track, room);
            if let Some(name) = name {
                proto::put_uint(event::NAME_IID, name, room);
            }
        });
        if let TrackEvent::End(Some((name, text))) = kind {
            let begin = proto::begin(event::ANNOTATIONS, &mut line);
            proto::uint(annotation::NAME_IID, name, &mut line);
            proto::bytes(annotation::STRING_VALUE, text.as_bytes(), &mut line);
            proto::end(begin, &mut line);
        }
        for flow in flows {
            proto::fixed64(event::FLOW_IDS, flow, &mut line);
        }
        self.packet(time, line.as_bytes(), annotations, out);
        self.event = line;
    }

    /// Writes a value of a counter on its track.
    pub fn count(&mut self, time: u64, track: u64, value: CounterValue, out: &mut Line) {
        let mut line = std::mem::take(&mut self.event);
        line.clear();
        proto::uint(event::TYPE, event::COUNT, &mut line);
        proto::uint(event::TRACK_UUID, track, &mut line);
        match value {
            CounterValue::Integer(value) => proto::int(event::COUNTER_VALUE, value, &mut line),
            CounterValue::Float(value) => {
                proto::double(event::DOUBLE_COUNTER_VALUE, value, &mut line);
            }
        }
        self.packet(time, line.as_bytes(), &[], out);
        self.event = line;
    }

    /// Writes the packet of an event, which has two parts.
    #[inline]
    fn packet(&mut self, time: u64, event: &[u8], rest: &[u8], out: &mut Line) {
        let size = event.len() + rest.len();
        if !self.has_packets || !self.interned.is_empty() {
            return self.packet_with_names(time, event, rest, out);
        }
        let head = proto::uint_size(packet::TIMESTAMP, time)
            + proto::uint_size(packet::SEQUENCE, SEQUENCE)
            + proto::uint_size(packet::SEQUENCE_FLAGS, packet::NEEDS_STATE);
        let inner = proto::bytes_size(packet::TRACK_EVENT, size);
        out.compose(|room| {
            proto::put_length(trace::PACKET, head + inner, room);
            proto::put_uint(packet::TIMESTAMP, time, room);
            proto::put_uint(packet::SEQUENCE, SEQUENCE, room);
            proto::put_uint(packet::SEQUENCE_FLAGS, packet::NEEDS_STATE, room);
            proto::put_length(packet::TRACK_EVENT, size, room);
        });
        out.push(event);
        out.push(rest);
    }

    #[cold]
    fn packet_with_names(&mut self, time: u64, event: &[u8], rest: &[u8], out: &mut Line) {
        let mut body = Line::new();
        proto::uint(packet::TIMESTAMP, time, &mut body);
        self.sequence(&mut body);
        if !self.interned.is_empty() {
            proto::bytes(packet::INTERNED_DATA, self.interned.as_bytes(), &mut body);
            self.interned.clear();
        }
        proto::length(packet::TRACK_EVENT, event.len() + rest.len(), &mut body);
        body.push(event);
        body.push(rest);
        proto::bytes(trace::PACKET, body.as_bytes(), out);
    }
}

/// Appends a name unless it was written.
fn announce(field: u32, number: u64, names: &NameTable, written: &mut [bool], out: &mut Line) {
    let Some(position) = (number as usize).checked_sub(1) else {
        return;
    };
    if std::mem::replace(&mut written[position], true) {
        return;
    }
    let at = proto::begin(field, out);
    proto::uint(interned::IID, number, out);
    proto::bytes(interned::TEXT, names.names[position].as_bytes(), out);
    proto::end(at, out);
}

/// What an annotation is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnnotationOf {
    /// An event.
    Event,
    /// A dictionary.
    Dictionary,
    /// An array.
    Array,
}

/// The kind of the values of an annotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnnotationKind {
    /// Truth values.
    Bool,
    /// Unsigned integers.
    Uint,
    /// Signed integers.
    Int,
    /// Floating point numbers.
    Double,
    /// Texts.
    Text,
}

impl AnnotationKind {
    /// The field of the value, and its type on the wire.
    fn field(self) -> (u32, u32) {
        match self {
            Self::Bool => (annotation::BOOL_VALUE, 0),
            Self::Uint => (annotation::UINT_VALUE, 0),
            Self::Int => (annotation::INT_VALUE, 0),
            Self::Double => (annotation::DOUBLE_VALUE, 1),
            Self::Text => (annotation::STRING_VALUE, 2),
        }
    }
}

/// Writes the values of an annotation, which has a name and a kind.
#[derive(Clone, Debug)]
pub struct Annotation {
    /// What it is in, as a field.
    container: u32,
    /// All that comes before a value of less than 128 bytes altogether, and how many bytes that is; the second one is
    /// the length.
    short: [u8; 16],
    short_size: usize,
    /// What comes before a value, without the length and what is before it.
    head: Stamp,
    head_size: usize,
    /// The same without the kind.
    name: Stamp,
    name_size: usize,
    kind: u32,
}

impl Annotation {
    /// An annotation that has the name with this number; 0 is that of none.
    pub fn new(container: AnnotationOf, name: u64, kind: AnnotationKind) -> Self {
        let container = match container {
            AnnotationOf::Event => event::ANNOTATIONS,
            AnnotationOf::Dictionary => annotation::DICT_ENTRIES,
            AnnotationOf::Array => annotation::ARRAY_VALUES,
        };
        let (kind, wire) = kind.field();
        let mut line = Line::new();
        if name > 0 {
            proto::uint(annotation::NAME_IID, name, &mut line);
        }
        let (name, name_size) = (Stamp::new(line.as_bytes()), line.len());
        varint(u64::from(kind << 3 | wire), &mut line);
        // Two bytes, 11 for the name, and two for the kind at most.
        let mut short = [0; 16];
        short[0] = (container << 3 | 2) as u8;
        short[2..2 + line.len()].copy_from_slice(line.as_bytes());
        Self {
            container,
            short,
            short_size: 2 + line.len(),
            head: Stamp::new(line.as_bytes()),
            head_size: line.len(),
            name,
            name_size,
            kind,
        }
    }

    /// Writes what comes before the bytes of a value, of less than 128 bytes with the name.
    #[inline(always)]
    fn put_start(&self, size: usize, room: &mut Room<'_>) {
        let mut short = self.short;
        short[1] = (self.head_size + size) as u8;
        room.piece(&short, self.short_size);
    }

    /// Writes an integer as its bits, or a truth value.
    #[inline]
    pub fn number(&self, bits: u64, out: &mut Line) {
        out.compose(|room| {
            self.put_start(varint_size(bits), room);
            proto::put(bits, room);
        });
    }

    /// Writes a floating point number.
    #[inline]
    pub fn double(&self, value: f64, out: &mut Line) {
        out.compose(|room| {
            self.put_start(8, room);
            room.text(&value.to_bits().to_le_bytes());
        });
    }

    /// Writes a text.
    #[inline]
    pub fn text(&self, text: &[u8], out: &mut Line) {
        self.text_of(text.len(), out);
        out.push(text);
    }

    /// Writes what comes before a text of this number of bytes.
    #[inline]
    pub fn text_of(&self, length: usize, out: &mut Line) {
        let size = varint_size(length as u64) + length;
        if self.head_size + size < 0x80 {
            out.compose(|room| {
                self.put_start(size, room);
                proto::put(length as u64, room);
            });
        } else {
            proto::length(self.container, self.head_size + size, out);
            out.stamp(&self.head);
            varint(length as u64, out);
        }
    }

    /// Writes it without a value.
    pub fn nothing(&self, out: &mut Line) {
        proto::length(self.container, self.name_size, out);
        out.stamp(&self.name);
    }

    /// Begins a value with parts, which are annotations; returns what [`end`](Self::end) takes.
    #[inline]
    pub fn begin(&self, out: &mut Line) -> usize {
        let begin = proto::begin(self.container, out);
        out.stamp(&self.name);
        begin
    }

    /// Ends a value with parts.
    #[inline]
    pub fn end(begin: usize, out: &mut Line) {
        proto::end(begin, out);
    }

    /// Writes a dictionary that has a number of the annotation's kind, by the name `number`, and what
    /// `more` writes.
    pub fn named_number(
        &self,
        number: u64,
        bits: u64,
        out: &mut Line,
        more: impl FnOnce(&mut Line),
    ) {
        let begin = self.begin(out);
        let entry = proto::begin(annotation::DICT_ENTRIES, out);
        proto::uint(annotation::NAME_IID, number, out);
        proto::uint(self.kind, bits, out);
        proto::end(entry, out);
        more(out);
        proto::end(begin, out);
    }

    /// Writes an integer as the value of the annotation that was begun.
    pub fn value(kind: AnnotationKind, bits: u64, out: &mut Line) {
        proto::uint(kind.field().0, bits, out);
    }

    /// Writes an entry of a dictionary that is an array of texts; `name` is the number of its name.
    pub fn texts<'a>(name: u64, texts: impl Iterator<Item = &'a str>, out: &mut Line) {
        let entry = proto::begin(annotation::DICT_ENTRIES, out);
        proto::uint(annotation::NAME_IID, name, out);
        for text in texts {
            let size = proto::bytes_size(annotation::STRING_VALUE, text.len());
            proto::length(annotation::ARRAY_VALUES, size, out);
            proto::bytes(annotation::STRING_VALUE, text.as_bytes(), out);
        }
        proto::end(entry, out);
    }
}
