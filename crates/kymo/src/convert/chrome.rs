//! The JSON of Chrome's tracing, which Perfetto and others open, too: one object with an array of
//! events, each on a line.
//!
//! ```json
//! {"ph":"i","s":"t","ts":1.5,"pid":1,"tid":1,"name":"EVENT","args":{"payload":{}}}
//! ```
//!
//! * Times are microseconds with the nanoseconds behind the point, exactly. Readers that take them
//!   for doubles see times since 1970 a quarter of a microsecond apart.
//! * A recording is a process, a [track](super::TrackOptions::track) one of its threads; both are
//!   named by events of phase `M`.
//! * `args` has the scopes with their fields as [JSON lines](crate::show::json) have them.
//! * Slices are phases `B` and `E`, of which the latter has the name of its event as `end` among the
//!   `args`; counters are phase `C`; a [flow](super::TrackOptions::flows) is a
//!   `bind_id` that goes in and out.

use std::sync::Arc;

use kymo_model::{Chunk, Event, Fault, Recording, Value};
use kymo_perfetto::{
    ChromeEvent, ChromeName, ChromePhase, ChromeThread, ChromeValue, ChromeWriter,
};
use kymo_text::Line;
use kymo_time::Timestamp;

use super::binding::{SourceNames, TrackBinding, entry_kind};
use super::flow_id;
use super::losses::{Loss, Losses, Times};
use super::timeline::{Phase, Timeline};
use crate::filter::name_of;
use crate::pipeline::{Row, RowBuffers};
use crate::show::json::{FieldRenderer, FlatFieldRenderer, Plan};
use crate::show::packet::PacketFields;
use crate::show::table::Table;
use crate::show::{LossReporter, Renderer, Sink, WallOptions};
use crate::timeline::Filler;
use crate::{AnyRecording, EntryKind};

/// Puts a file together. Losses are reported as warnings.
#[derive(Debug)]
pub struct Chrome<'m> {
    binding: &'m TrackBinding,
    losses: Arc<Losses>,
    loss_reporter: LossReporter,
    timeline: Timeline<'m>,
    /// The processes of recordings that have one.
    processes: Vec<Option<ChromeThread>>,
    /// The threads of the tracks of the time line.
    threads: Vec<ChromeThread>,
    /// By recording and class, the name of its events.
    names: Table<ChromeName>,
    sources: SourceNames,
    writer: ChromeWriter,
    times: Times,
}

impl<'m> Chrome<'m> {
    /// A file of some recordings; `wall` is how times are shown in warnings.
    pub fn new(recordings: &[AnyRecording], binding: &'m TrackBinding, wall: WallOptions) -> Self {
        let losses = Arc::new(Losses::default());
        Self {
            timeline: Timeline::new(recordings, binding, Arc::clone(&losses)),
            times: Times::new(Arc::clone(&losses)),
            binding,
            losses,
            loss_reporter: LossReporter::new(wall),
            processes: vec![None; recordings.len()],
            threads: Vec::new(),
            names: Table::default(),
            sources: SourceNames::default(),
            writer: ChromeWriter::new(),
        }
    }

    /// What the file cannot hold.
    pub fn losses(&self) -> &Arc<Losses> {
        &self.losses
    }

    /// The process of a recording.
    fn process(
        &mut self,
        recording: usize,
        recordings: &[AnyRecording],
        out: &mut Line,
    ) -> ChromeThread {
        if let Some(process) = &self.processes[recording] {
            return process.clone();
        }
        let process = ChromeThread::new(recording as u64 + 1, 0);
        let name = recordings[recording].path().as_os_str().as_encoded_bytes();
        self.writer
            .name("process", &process, name, recording as i64, out);
        self.processes[recording] = Some(process.clone());
        process
    }

    /// Writes an event on its track.
    fn draw(&mut self, row: &Row<'_>, recordings: &[AnyRecording], out: &mut Line) {
        let message = &row.message;
        let (recording, class) = (message.recording, message.class);
        let time = self.times.next(message.time.map(Timestamp::as_nanos));
        let place = self.timeline.place(row, recordings);
        if place.is_new {
            self.process(recording, recordings, out);
            let track = self.timeline.track(place.track);
            // The thread without a number is the process's own.
            let thread = ChromeThread::new(recording as u64 + 1, place.track as u64 + 1);
            let (name, rank) = (track.name.as_bytes(), track.rank.into());
            self.writer.name("thread", &thread, name, rank, out);
            self.threads.push(thread);
        }
        let thread = &self.threads[place.track];
        for _ in 0..place.closes {
            self.writer.end(time, thread, out);
        }
        let event_name = || name_of(&recordings[recording].event_classes()[class]);
        let binding = self.binding.class(recording, class);
        for (counter, columns) in binding.map_or(&[][..], |binding| &binding.counters) {
            let Some(value) = counter_value(row.values.first(&columns[0])) else {
                self.losses.add(Loss::NoCounter, 1);
                continue;
            };
            let name = format!("{} {}", event_name(), self.binding.counter_name(*counter));
            let name = ChromeName::new(name.as_bytes());
            if let Some(process) = &self.processes[recording] {
                self.writer
                    .count(time, (process, thread), &name, value, out);
            }
        }
        let phase = match place.phase {
            Phase::Instant => ChromePhase::Instant,
            Phase::Begin => ChromePhase::Begin,
            Phase::End => ChromePhase::End,
        };
        let mut flows = binding.map_or(&[][..], |binding| &binding.flows).iter();
        let flow = flows.find_map(|(flow, columns)| flow_id(*flow, row.values.first(&columns[0])));
        let make = || ChromeName::new(event_name().as_bytes());
        let name = self.names.get(recording, class, make);
        let event = ChromeEvent {
            phase,
            time,
            thread,
            name,
            flow,
            args: row.text,
        };
        self.writer.event(&event, out);
    }

    fn samples(&mut self, row: &Row<'_>, recordings: &[AnyRecording], out: &mut Line) {
        let message = &row.message;
        let time = self.times.next(message.time.map(Timestamp::as_nanos));
        let recording = message.recording;
        let process = self.process(recording, recordings, out);
        let names = self
            .sources
            .of_archive(recordings, recording, message.stream);
        let first = self.binding.plan().first_added(recording, message.class);
        for (source, name) in names.iter().enumerate() {
            let value = match row.values.get(first + source) {
                Value::Missing => {
                    self.losses.add(Loss::UnknownSample, 1);
                    continue;
                }
                value => counter_value(value),
            };
            let Some(value) = value else {
                self.losses.add(Loss::NoCounter, 1);
                continue;
            };
            let name = ChromeName::new(name.as_bytes());
            self.writer
                .count(time, (&process, &process), &name, value, out);
        }
    }
}

/// A value as that of a counter.
fn counter_value(value: Value<'_>) -> Option<ChromeValue> {
    Some(match value {
        Value::Uint(value) | Value::Bits(value) => ChromeValue::Uint(value),
        Value::Sint(value) => ChromeValue::Sint(value),
        Value::Bool(value) => ChromeValue::Uint(value.into()),
        Value::Float(value) if value.is_finite() => ChromeValue::Float(value),
        _ => return None,
    })
}

impl<'m> Sink for Chrome<'m> {
    type Renderer = ChromeRenderer<'m>;

    fn renderer(&self) -> ChromeRenderer<'m> {
        ChromeRenderer {
            filler: Filler::with_raw_texts(self.binding.plan()),
            classes: Table::default(),
            streams: Table::default(),
            recording: 0,
            kind: EntryKind::Event,
            is_log: false,
            packet: Line::new(),
            stack: Vec::new(),
        }
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

    fn finish(&mut self, out: &mut Line, _warnings: &mut Vec<u8>) {
        self.timeline.finish();
        self.writer.finish(out);
    }
}

/// Writes the scopes of an event; the values that decide on its place are columns.
#[derive(Debug)]
pub struct ChromeRenderer<'m> {
    filler: Filler<'m>,
    classes: Table<Plan>,
    streams: Table<StreamPlan>,
    recording: usize,
    kind: EntryKind,
    is_log: bool,
    /// The packet context.
    packet: Line,
    stack: Vec<bool>,
}

#[derive(Debug)]
struct StreamPlan {
    fields: PacketFields,
    plan: Plan,
}

impl Renderer for ChromeRenderer<'_> {
    fn chunk(
        &mut self,
        recording: usize,
        source: &AnyRecording,
        chunk: &Chunk,
    ) -> Result<(), Fault> {
        self.recording = recording;
        self.kind = entry_kind(source);
        self.is_log = source.is_log();
        self.filler.chunk(recording, source, chunk)?;
        self.packet.clear();
        self.stack.clear();
        let stream = self.streams.get(recording, chunk.stream, || {
            let fields = PacketFields::of(source, chunk.stream);
            let plan = Plan::new(&fields.schema, &fields.hidden);
            StreamPlan { fields, plan }
        });
        let mut field_renderer = FieldRenderer {
            line: &mut self.packet,
            plan: &stream.plan,
            stack: &mut self.stack,
        };
        let fields = &stream.fields;
        fields.visit(&mut field_renderer, |visitor| {
            source.visit_packet(chunk, visitor)
        })
    }

    #[inline]
    fn event<E: Event>(&mut self, event: &E, out: &mut Line) -> Result<(), Fault> {
        if self.kind == EntryKind::Sample {
            return self.filler.event(event);
        }
        let is_log = self.is_log;
        let plan = self.classes.get(self.recording, event.class_index(), || {
            let class = event.class();
            match is_log {
                true => {
                    let number = format!(",\"event_class\":{}", class.id);
                    Plan::flat(&class.schema, number.as_bytes())
                }
                false => Plan::new(&class.schema, &[]),
            }
        });
        self.stack.clear();
        out.push(self.packet.as_bytes());
        let mut field_renderer = FieldRenderer {
            line: out,
            plan,
            stack: &mut self.stack,
        };
        match is_log {
            true => self
                .filler
                .event_with(event, &mut FlatFieldRenderer(field_renderer)),
            false => self.filler.event_with(event, &mut field_renderer),
        }
    }

    fn take_rows(&mut self) -> RowBuffers {
        self.filler.take()
    }

    fn row_bytes(&self) -> usize {
        self.filler.byte_size()
    }
}
