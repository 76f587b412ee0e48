//! Traces of Perfetto: protocol buffers that ui.perfetto.dev and trace_processor open.
//!
//! * Each recording is a track, and in it each stream, or each value of the field that
//!   [distinguishes tracks](super::TrackOptions::track), one of its own.
//! * Each event is an instant, or the begin or the end of a slice, with the event's name and an
//!   annotation for each field; one that ends a slice has its name as the annotation `end`. Members of the payload go by their names; those of packet context,
//!   common context and specific context have the scope before them, as `common_context.vpid`.
//! * Structures, arrays, variants and optionals are as in [JSON](crate::show::json): an absent
//!   optional, and a structure or array without parts, is an annotation without a value.
//!   Enumerations have entries `value` and `labels`, bit maps `value` and `flags`. BLOBs are
//!   hexadecimal digits, floating point numbers of 128 bits their decimal ones.
//! * Each data source of each archive of a round-robin database is a counter, and so are
//!   [fields](super::TrackOptions::counters) of events.
//! * Events of which a [field](super::TrackOptions::flows) has the same value are joined by a flow,
//!   whose number is made from that value.

#[cfg(test)]
pub(super) mod decode;
mod field_renderer;
mod names;
mod renderer;

use std::collections::HashMap;
use std::sync::Arc;

use kymo_model::{Recording, Value};
use kymo_perfetto::{CounterValue, NewTrack, PerfettoWriter, TrackContent, TrackEvent};
use kymo_text::Line;
use kymo_time::Timestamp;

use self::names::{Announced, FieldNames};
pub use self::renderer::PerfettoRenderer;
use super::binding::{SourceNames, TrackBinding, entry_kind};
use super::flow_id;
use super::losses::{Loss, Losses, Times};
use super::timeline::{Phase, Timeline};
use crate::filter::name_of;
use crate::pipeline::Row;
use crate::show::{LossReporter, Message, Sink, WallOptions};
use crate::timeline::Filler;
use crate::{AnyRecording, EntryKind};

/// At most this many counters are distinguished: a little data may define one for each track and field.
const MOST_COUNTERS: usize = 1 << 20;

/// What a counter is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum CounterOf {
    /// A data source of a database's archive: recording, archive, source.
    Source(usize, usize, usize),
    /// A field of an event class: track, recording, class, counter among those asked for.
    Field(usize, usize, usize, usize),
}

/// Puts a trace together. Losses are reported as warnings.
#[derive(Debug)]
pub struct Perfetto<'m> {
    binding: &'m TrackBinding,
    names: Arc<FieldNames>,
    losses: Arc<Losses>,
    loss_reporter: LossReporter,
    timeline: Timeline<'m>,
    announced: Announced,
    writer: PerfettoWriter,
    /// Numbers of the tracks of recordings, where they have one.
    recordings: Vec<Option<u64>>,
    /// Numbers of the tracks of the time line.
    tracks: Vec<u64>,
    sources: SourceNames,
    counters: HashMap<CounterOf, u64>,
    /// How many there may be.
    most_counters: usize,
    times: Times,
}

impl<'m> Perfetto<'m> {
    /// A trace of some recordings; `wall` is how times are shown in warnings.
    pub fn new(recordings: &[AnyRecording], binding: &'m TrackBinding, wall: WallOptions) -> Self {
        let losses = Arc::new(Losses::default());
        let names = Arc::new(FieldNames::new(recordings));
        Self {
            timeline: Timeline::new(recordings, binding, Arc::clone(&losses)),
            times: Times::new(Arc::clone(&losses)),
            announced: Announced::new(Arc::clone(&names)),
            writer: PerfettoWriter::new(Arc::clone(&names.names)),
            binding,
            names,
            losses,
            loss_reporter: LossReporter::new(wall),
            recordings: vec![None; recordings.len()],
            tracks: Vec::new(),
            sources: SourceNames::default(),
            counters: HashMap::new(),
            most_counters: MOST_COUNTERS,
        }
    }

    /// Sets the maximum number of counters that are distinguished.
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

    /// The track of a recording.
    fn recording(&mut self, recording: usize, recordings: &[AnyRecording], out: &mut Line) -> u64 {
        if let Some(uuid) = self.recordings[recording] {
            return uuid;
        }
        let name = recordings[recording].path().to_string_lossy();
        let track = NewTrack {
            name: &name,
            parent: None,
            rank: None,
            content: TrackContent::Tracks,
        };
        let uuid = self.writer.track(&track, out);
        self.recordings[recording] = Some(uuid);
        uuid
    }

    /// The track of a counter, below `parent`; `None` if there are too many to distinguish.
    fn counter(
        &mut self,
        key: CounterOf,
        parent: u64,
        name: impl FnOnce() -> String,
        out: &mut Line,
    ) -> Option<u64> {
        if let Some(&uuid) = self.counters.get(&key) {
            return Some(uuid);
        }
        if self.counters.len() >= self.most_counters {
            self.losses.add(Loss::MoreCounters, 1);
            return None;
        }
        let track = NewTrack {
            name: &name(),
            parent: Some(parent),
            rank: None,
            content: TrackContent::Counter,
        };
        let uuid = self.writer.track(&track, out);
        self.counters.insert(key, uuid);
        Some(uuid)
    }

    /// Writes an event on its track.
    fn draw(&mut self, row: &Row<'_>, recordings: &[AnyRecording], out: &mut Line) {
        let message = &row.message;
        let time = self.time(message);
        let place = self.timeline.place(row, recordings);
        if place.is_new {
            let parent = self.recording(message.recording, recordings, out);
            let track = self.timeline.track(place.track);
            let track = NewTrack {
                name: &track.name,
                parent: Some(parent),
                rank: Some(track.rank),
                content: TrackContent::Events,
            };
            self.tracks.push(self.writer.track(&track, out));
        }
        let track = self.tracks[place.track];
        for _ in 0..place.closes {
            let end = TrackEvent::End(None);
            self.writer
                .event(time, track, end, std::iter::empty(), &[], out);
        }
        let binding = self.binding;
        let class = binding.class(message.recording, message.class);
        for (counter, columns) in class.map_or(&[][..], |class| &class.counters) {
            let counter = *counter;
            let of_field = CounterOf::Field(place.track, message.recording, message.class, counter);
            let name = || {
                let class = &recordings[message.recording].event_classes()[message.class];
                format!("{} {}", name_of(class), binding.counter_name(counter))
            };
            let Some(number) = counter_value(row.values.first(&columns[0])) else {
                self.losses.add(Loss::NoCounter, 1);
                continue;
            };
            if let Some(counter) = self.counter(of_field, track, name, out) {
                self.writer.count(time, counter, number, out);
            }
        }
        let name = self.names.event(message.recording, message.class);
        let event = match place.phase {
            Phase::Instant => TrackEvent::Instant(name),
            Phase::Begin => TrackEvent::Begin(name),
            Phase::End => {
                let class = &recordings[message.recording].event_classes()[message.class];
                TrackEvent::End(Some((self.names.end, name_of(class))))
            }
        };
        let flows = class.map_or(&[][..], |class| &class.flows).iter();
        let flows =
            flows.filter_map(|(flow, columns)| flow_id(*flow, row.values.first(&columns[0])));
        self.announced.before(message, &mut self.writer);
        self.writer.event(time, track, event, flows, row.text, out);
    }

    /// Writes the samples of a row.
    fn samples(&mut self, row: &Row<'_>, recordings: &[AnyRecording], out: &mut Line) {
        let message = &row.message;
        let time = self.time(message);
        let (recording, archive) = (message.recording, message.stream);
        let parent = self.recording(recording, recordings, out);
        let mut sources = std::mem::take(&mut self.sources);
        let names = sources.of_archive(recordings, recording, archive);
        let first = self.binding.plan().first_added(recording, message.class);
        for (source, name) in names.iter().enumerate() {
            let Value::Float(value) = row.values.get(first + source) else {
                self.losses.add(Loss::UnknownSample, 1);
                continue;
            };
            let of_source = CounterOf::Source(recording, archive, source);
            if let Some(counter) = self.counter(of_source, parent, || name.clone(), out) {
                let value = CounterValue::Float(value);
                self.writer.count(time, counter, value, out);
            }
        }
        self.sources = sources;
    }
}

/// A value as that of a counter.
fn counter_value(value: Value<'_>) -> Option<CounterValue> {
    match value {
        Value::Uint(value) | Value::Bits(value) => Some(match i64::try_from(value) {
            Ok(value) => CounterValue::Integer(value),
            Err(_) => CounterValue::Float(value as f64),
        }),
        Value::Sint(value) => Some(CounterValue::Integer(value)),
        Value::Bool(value) => Some(CounterValue::Integer(value.into())),
        Value::Float(value) => (!value.is_nan()).then_some(CounterValue::Float(value)),
        _ => None,
    }
}

impl<'m> Sink for Perfetto<'m> {
    type Renderer = PerfettoRenderer<'m>;

    fn renderer(&self) -> PerfettoRenderer<'m> {
        PerfettoRenderer::new(
            Filler::with_raw_texts(self.binding.plan()),
            Arc::clone(&self.names),
            Arc::clone(&self.losses),
        )
    }

    fn takes_rows(&self) -> bool {
        true
    }

    fn row(
        &mut self,
        row: &Row<'_>,
        recordings: &[AnyRecording],
        out: &mut Line,
        _warnings: &mut Vec<u8>,
    ) -> bool {
        match entry_kind(&recordings[row.message.recording]) {
            EntryKind::Event => self.draw(row, recordings, out),
            EntryKind::Sample => self.samples(row, recordings, out),
        }
        true
    }

    fn loss_reporter(&mut self) -> Option<&mut LossReporter> {
        Some(&mut self.loss_reporter)
    }

    fn finish(&mut self, _out: &mut Line, _warnings: &mut Vec<u8>) {
        self.timeline.finish();
    }
}
