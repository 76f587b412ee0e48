//! Traces of Perfetto: protocol buffers that ui.perfetto.dev and trace_processor open.
//!
//! * Each recording is a track, and in it each stream, or each value of the field that
//!   [tells tracks apart](super::MarkOptions::track), one of its own.
//! * Each event is an instant, or the begin or the end of a slice, with the event's name and an
//!   annotation for each field; one that ends a slice has its name as the annotation `end`. Members of the payload go by their names; those of packet context,
//!   common context and specific context have the scope before them, as `common_context.vpid`.
//! * Structures, arrays, variants and optionals are as in [JSON](crate::show::json): an absent
//!   optional, and a structure or array without parts, is an annotation without a value.
//!   Enumerations have entries `value` and `labels`, bit maps `value` and `flags`. BLOBs are
//!   hexadecimal digits, floating point numbers of 128 bits their decimal ones.
//! * Each data source of each archive of a round-robin database is a counter, and so are
//!   [fields](super::MarkOptions::counters) of events.
//! * Events of which a [field](super::MarkOptions::flows) has the same value are joined by a flow,
//!   whose number is made from that value.

#[cfg(test)]
pub(super) mod decode;
mod message;
mod names;
mod painter;
mod pen;
mod proto;

use std::collections::HashMap;
use std::sync::Arc;

use kymo_model::{Recording, Value};
use kymo_text::Line;
use kymo_time::Timestamp;

use self::names::{Names, Told};
pub use self::painter::PerfettoPainter;
use super::losses::{Loss, Losses, Times};
use super::marks::Marks;
use super::timeline::{Phase, Timeline};
use crate::carried::{self, Carried};
use crate::filter::name_of;
use crate::samples::{self, Samples, SourceNames};
use crate::show::{Assembler, Message, Teller, WallOptions};
use crate::{AnyRecording, EntryKind};

/// The sequence that all packets are of.
const SEQUENCE: u64 = 1;
/// So many counters are told apart: a little data may tell one for each track and field.
const MOST_COUNTERS: usize = 1 << 20;

/// What a counter is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum CounterOf {
    /// A data source of a database's archive: recording, archive, source.
    Source(usize, usize, usize),
    /// A field of an event class: track, recording, class, counter among those asked for.
    Field(usize, usize, usize, usize),
}

/// Puts a trace together. What was lost is told as warnings.
#[derive(Debug)]
pub struct Perfetto<'m> {
    marks: &'m Marks,
    names: Arc<Names>,
    losses: Arc<Losses>,
    teller: Teller,
    timeline: Timeline<'m>,
    told: Told,
    /// Numbers of the tracks of recordings, where they have one.
    recordings: Vec<Option<u64>>,
    /// Numbers of the tracks of the time line.
    tracks: Vec<u64>,
    sources: SourceNames,
    counters: HashMap<CounterOf, u64>,
    /// How many there may be.
    most_counters: usize,
    next_uuid: u64,
    /// Whether a packet was written.
    begun: bool,
    times: Times,
    /// Memory for what is in a packet before the event, and for the beginning of the event.
    body: Line,
    head: Line,
}

impl<'m> Perfetto<'m> {
    /// A trace of some recordings; `wall` is how times are shown in warnings.
    pub fn new(of: &[AnyRecording], marks: &'m Marks, wall: WallOptions) -> Self {
        let losses = Arc::new(Losses::default());
        let names = Arc::new(Names::new(of));
        Self {
            timeline: Timeline::new(marks, Arc::clone(&losses)),
            times: Times::new(Arc::clone(&losses)),
            told: Told::new(Arc::clone(&names)),
            marks,
            names,
            losses,
            teller: Teller::new(wall),
            recordings: vec![None; of.len()],
            tracks: Vec::new(),
            sources: SourceNames::default(),
            counters: HashMap::new(),
            most_counters: MOST_COUNTERS,
            next_uuid: 1,
            begun: false,
            body: Line::new(),
            head: Line::new(),
        }
    }

    /// Tells so many counters apart, and no more.
    #[cfg(test)]
    pub(super) fn with_counters(self, most_counters: usize) -> Self {
        Self {
            most_counters,
            ..self
        }
    }

    /// What the trace cannot hold.
    pub fn losses(&self) -> &Arc<Losses> {
        &self.losses
    }

    /// The time of a packet, in nanoseconds since 1970 or the origin of the clock.
    fn time(&mut self, message: &Message) -> u64 {
        let nanos = message.time.map(Timestamp::as_nanos);
        self.times.next_from_zero(nanos)
    }

    /// Appends what all packets have beside their content.
    fn sequence(&mut self, body: &mut Line) {
        proto::uint(message::SEQUENCE, SEQUENCE, body);
        let first = !std::mem::replace(&mut self.begun, true);
        let flags = if first {
            message::CLEARED
        } else {
            message::NEEDS_STATE
        };
        proto::uint(message::SEQUENCE_FLAGS, flags, body);
        if first {
            proto::uint(message::FIRST_ON_SEQUENCE, 1, body);
        }
    }

    /// Writes the packet that tells of a track, and gives the track its number.
    fn tell_track(&mut self, track: &Descriptor<'_>, out: &mut Line) -> u64 {
        let uuid = self.next_uuid;
        self.next_uuid += 1;
        let mut inner = Line::new();
        proto::uint(message::UUID, uuid, &mut inner);
        proto::bytes(message::NAME, track.name.as_bytes(), &mut inner);
        if let Some(parent) = track.parent {
            proto::uint(message::PARENT_UUID, parent, &mut inner);
        }
        match track.content {
            Content::Counter => proto::length(message::COUNTER, 0, &mut inner),
            Content::Tracks => proto::uint(message::CHILD_ORDERING, message::EXPLICIT, &mut inner),
            Content::Events => {}
        }
        if let Some(rank) = track.rank {
            proto::int(message::RANK, rank.into(), &mut inner);
        }
        proto::uint(message::SIBLING_MERGE, message::NO_MERGE, &mut inner);
        let mut body = Line::new();
        self.sequence(&mut body);
        proto::bytes(message::TRACK_DESCRIPTOR, inner.as_bytes(), &mut body);
        proto::bytes(message::PACKET, body.as_bytes(), out);
        uuid
    }

    /// The track of a recording.
    fn recording(&mut self, recording: usize, of: &[AnyRecording], out: &mut Line) -> u64 {
        if let Some(uuid) = self.recordings[recording] {
            return uuid;
        }
        let name = of[recording].path().to_string_lossy();
        let descriptor = Descriptor {
            name: &name,
            parent: None,
            rank: None,
            content: Content::Tracks,
        };
        let uuid = self.tell_track(&descriptor, out);
        self.recordings[recording] = Some(uuid);
        uuid
    }

    /// The track of a counter, below `parent`; none of one more than can be told apart.
    fn counter(
        &mut self,
        of: CounterOf,
        parent: u64,
        name: impl FnOnce() -> String,
        out: &mut Line,
    ) -> Option<u64> {
        if let Some(&uuid) = self.counters.get(&of) {
            return Some(uuid);
        }
        if self.counters.len() >= self.most_counters {
            self.losses.add(Loss::MoreCounters, 1);
            return None;
        }
        let descriptor = Descriptor {
            name: &name(),
            parent: Some(parent),
            rank: None,
            content: Content::Counter,
        };
        let uuid = self.tell_track(&descriptor, out);
        self.counters.insert(of, uuid);
        Some(uuid)
    }

    /// Writes a packet with an event: what it needs interned, its type, its track, and what else is
    /// in it, of which `rest` comes last.
    fn packet(&mut self, time: u64, interned: bool, event: &[u8], rest: &[u8], out: &mut Line) {
        let mut body = std::mem::take(&mut self.body);
        body.clear();
        proto::uint(message::TIMESTAMP, time, &mut body);
        self.sequence(&mut body);
        if interned {
            let names = self.told.interned();
            if !names.is_empty() {
                proto::bytes(message::INTERNED_DATA, names, &mut body);
            }
        }
        let size = event.len() + rest.len();
        proto::length(message::TRACK_EVENT, size, &mut body);
        proto::length(message::PACKET, body.len() + size, out);
        out.push(body.as_bytes());
        out.push(event);
        out.push(rest);
        self.body = body;
    }

    /// Writes an event on its track.
    fn draw(&mut self, message: &Message, of: &[AnyRecording], text: &[u8], out: &mut Line) {
        let time = self.time(message);
        let mut carried = Carried::new(text);
        let place = self.timeline.place(message, of, &mut carried);
        if place.is_new {
            let parent = self.recording(message.recording, of, out);
            let track = self.timeline.track(place.track).clone();
            let descriptor = Descriptor {
                name: &track.name,
                parent: Some(parent),
                rank: Some(track.rank),
                content: Content::Events,
            };
            let uuid = self.tell_track(&descriptor, out);
            self.tracks.push(uuid);
        }
        let track = self.tracks[place.track];
        let mut event = std::mem::take(&mut self.head);
        event.clear();
        for _ in 0..place.closes {
            event.clear();
            proto::uint(message::TYPE, message::SLICE_END, &mut event);
            proto::uint(message::TRACK_UUID, track, &mut event);
            self.packet(time, false, event.as_bytes(), &[], out);
        }
        let marks = self.marks;
        let class = marks.class(message.recording, message.class);
        for &counter in &class.counters {
            let of_field = CounterOf::Field(place.track, message.recording, message.class, counter);
            let name = || {
                let class = &of[message.recording].event_classes()[message.class];
                format!("{} {}", name_of(class), marks.counter_name(counter))
            };
            let value = carried.next();
            let Some(number) = Number::of(value) else {
                self.losses.add(Loss::NoCounter, 1);
                continue;
            };
            if let Some(counter) = self.counter(of_field, track, name, out) {
                self.count(time, counter, number, out);
            }
        }
        event.clear();
        let kind = match place.phase {
            Phase::Instant => message::INSTANT,
            Phase::Begin => message::SLICE_BEGIN,
            Phase::End => message::SLICE_END,
        };
        let (recording, stream) = (message.recording, message.stream);
        proto::uint(message::TYPE, kind, &mut event);
        proto::uint(message::TRACK_UUID, track, &mut event);
        if place.phase == Phase::End {
            // An end that has a name ends only a slice of the same name.
            let class = &of[recording].event_classes()[message.class];
            let annotation = proto::begin(message::ANNOTATIONS, &mut event);
            proto::uint(message::NAME_IID, self.names.end, &mut event);
            let name = name_of(class).as_bytes();
            proto::bytes(message::STRING_VALUE, name, &mut event);
            proto::end(annotation, &mut event);
        } else {
            let name = self.names.event(recording, message.class);
            proto::uint(message::EVENT_NAME_IID, name, &mut event);
        }
        for flow in 0..class.flows {
            let (value, bytes) = carried.next_with_bytes();
            if carried::is_plain(value) {
                proto::fixed64(message::FLOW_IDS, super::flow_id(flow, bytes), &mut event);
            }
        }
        self.told.before(recording, stream, message.class);
        self.packet(time, true, event.as_bytes(), carried.rest(), out);
        self.head = event;
    }

    /// Writes a value of a counter.
    fn count(&mut self, time: u64, counter: u64, value: Number, out: &mut Line) {
        let mut event = std::mem::take(&mut self.head);
        event.clear();
        proto::uint(message::TYPE, message::COUNT, &mut event);
        proto::uint(message::TRACK_UUID, counter, &mut event);
        match value {
            Number::Integer(value) => proto::int(message::COUNTER_VALUE, value, &mut event),
            Number::Float(value) => {
                proto::double(message::DOUBLE_COUNTER_VALUE, value, &mut event);
            }
        }
        self.packet(time, false, event.as_bytes(), &[], out);
        self.head = event;
    }

    /// Writes the samples of a row.
    fn samples(&mut self, message: &Message, of: &[AnyRecording], text: &[u8], out: &mut Line) {
        let time = self.time(message);
        let (recording, archive) = (message.recording, message.stream);
        let parent = self.recording(recording, of, out);
        let mut sources = std::mem::take(&mut self.sources);
        let names = sources.of_archive(of, recording, archive);
        for (source, (name, value)) in names.iter().zip(Samples::new(text)).enumerate() {
            let Some(value) = value else {
                self.losses.add(Loss::UnknownSample, 1);
                continue;
            };
            let of_source = CounterOf::Source(recording, archive, source);
            if let Some(counter) = self.counter(of_source, parent, || name.clone(), out) {
                self.count(time, counter, Number::Float(value), out);
            }
        }
        self.sources = sources;
    }
}

/// What is told of a track.
struct Descriptor<'a> {
    name: &'a str,
    parent: Option<u64>,
    rank: Option<i32>,
    content: Content,
}

#[derive(Clone, Copy)]
enum Content {
    Tracks,
    Events,
    Counter,
}

/// A value of a counter.
#[derive(Clone, Copy, Debug)]
enum Number {
    Integer(i64),
    Float(f64),
}

impl Number {
    fn of(value: Value<'_>) -> Option<Self> {
        match value {
            Value::Uint(value) | Value::Bits(value) => Some(match i64::try_from(value) {
                Ok(value) => Self::Integer(value),
                Err(_) => Self::Float(value as f64),
            }),
            Value::Sint(value) => Some(Self::Integer(value)),
            Value::Bool(value) => Some(Self::Integer(value.into())),
            Value::Float(value) => (!value.is_nan()).then_some(Self::Float(value)),
            _ => None,
        }
    }
}

impl<'m> Assembler for Perfetto<'m> {
    type Painter = PerfettoPainter<'m>;

    fn painter(&self) -> PerfettoPainter<'m> {
        PerfettoPainter::new(
            self.marks.porter(),
            Arc::clone(&self.names),
            Arc::clone(&self.losses),
        )
    }

    #[inline]
    fn event(
        &mut self,
        message: &Message,
        of: &[AnyRecording],
        text: &[u8],
        out: &mut Line,
        _warnings: &mut Vec<u8>,
    ) {
        match samples::kind(&of[message.recording]) {
            EntryKind::Event => self.draw(message, of, text, out),
            EntryKind::Sample => self.samples(message, of, text, out),
        }
    }

    fn teller(&mut self) -> Option<&mut Teller> {
        Some(&mut self.teller)
    }

    fn finish(&mut self, _out: &mut Line, _warnings: &mut Vec<u8>) {
        self.timeline.finish();
    }
}
