//! Everything a recording holds, as babeltrace2's `sink.text.details` shows it: a block of
//! lines for each message, and the metadata of each trace before its first one.

mod attributes;
mod classes;
mod fields;
mod metadata;
mod text;

use kymo_ctf::trace::Trace;
use kymo_model::{Chunk, Event, EventClass, Fault, Lost, Recording, StreamInfo};
use kymo_text::Line;

use self::fields::{FieldRenderer, Plan};
use self::metadata::Times;
use self::text::Text;
use super::color::Palette;
use super::facts::stream_id;
use super::packet::PacketFields;
use super::table::Table;
use super::{Message, MessageKind, Renderer, Sink};
use crate::AnyRecording;

/// What of the text is left out, as by the parameters of babeltrace2's component.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DetailsOptions {
    /// Write a line for each message, without what it holds.
    pub compact: bool,
    /// Leave out the metadata of traces.
    pub no_metadata: bool,
    /// Leave out names of stream classes.
    pub no_stream_class_name: bool,
    /// Leave out names of streams.
    pub no_stream_name: bool,
    /// Leave out times.
    pub no_time: bool,
    /// Leave out names of traces.
    pub no_trace_name: bool,
    /// Leave out unique identifiers of traces and clocks.
    pub no_uid: bool,
    /// Colours; `None` without.
    pub colors: Option<Palette>,
}

/// Puts blocks together.
#[derive(Debug, Default)]
pub struct Details {
    /// The recordings that were met, in that order: their positions here are the numbers
    /// that are shown.
    met: Vec<usize>,
    text: Text,
    packets: Table<(PacketFields, Plan)>,
}

impl Details {
    /// Blocks of lines, or lines.
    pub fn new(options: DetailsOptions) -> Self {
        Self {
            text: Text {
                options,
                ..Text::default()
            },
            ..Self::default()
        }
    }

    /// The number of a recording; when it is met first, writes its metadata.
    fn meet(&mut self, recording: usize, trace: &Trace) -> usize {
        if let Some(number) = self.met.iter().position(|&met| met == recording) {
            return number;
        }
        let is_first = self.met.is_empty();
        self.met.push(recording);
        if self.text.options.no_metadata {
            return self.met.len() - 1;
        }
        if !is_first {
            self.text.newline();
        }
        metadata::trace_class(trace.class(), &mut self.text);
        self.met.len() - 1
    }

    /// Writes a line with a time.
    fn time(&mut self, stream: &StreamInfo, ticks: Option<u64>) {
        let options = self.text.options;
        if options.no_time {
            return;
        }
        let (cycles, between, nanos, end) = match options.compact {
            true => ("", " ", "", "] "),
            false => (" cycles", ", ", " ns from origin", "]\n"),
        };
        let (Some(clock), Some(ticks)) = (&stream.clock, ticks) else {
            self.text.push("[");
            self.text.stamp(|text| text.push("Unknown"));
            return self.text.push(end);
        };
        self.text.push("[");
        self.text.stamp(|text| text.line.grouped(ticks));
        self.text.push(cycles);
        if let Some(time) = clock.timestamp(ticks) {
            self.text.push(between);
            self.text.stamp(|text| text.plain_signed(time.as_nanos()));
            self.text.push(nanos);
        }
        self.text.push(end);
    }

    /// Writes the line that says which stream a message belongs to.
    fn tag(&mut self, number: usize, trace: &Trace, stream: usize) {
        let class = trace.streams()[stream].class;
        let id = stream_id(trace.streams(), stream);
        let Palette {
            field,
            reset,
            details,
            ..
        } = self.text.palette();
        let bright = details.number;
        let shown = |value: u64| format!("{bright}{value}{reset}{field}");
        let (number, class, id) = (shown(number as u64), shown(class), shown(id));
        let tag = match self.text.options.compact {
            true => format!("{field}{{{number} {class} {id}}}{reset} "),
            false => format!(
                "{field}{{Trace {number}, Stream class ID {class}, Stream ID {id}}}{reset}\n"
            ),
        };
        self.text.push(&tag);
    }

    fn stream_begin(&mut self, trace: &Trace, stream: usize) {
        let streams = trace.streams();
        let numbers = (0..streams.len()).map(|at| (stream_id(streams, at), streams[at].class));
        let numbers: Vec<_> = numbers.collect();
        let class = &trace.class().streams[trace.stream_class(stream)];
        if self.text.options.compact {
            self.text.object("Stream beginning");
            return self.text.newline();
        }
        self.text.object("Stream beginning");
        self.text.push(":\n");
        self.text.indented(|text| {
            let options = text.options;
            if !options.no_stream_name {
                text.text_property("Name", &streams[stream].name);
            }
            if let Some(name) = class
                .name
                .as_ref()
                .filter(|_| !options.no_stream_class_name)
            {
                text.text_property("Class name", name);
            }
            let name = trace.name().unwrap_or_default();
            metadata::trace(
                trace.class(),
                (!options.no_trace_name).then_some(name),
                &numbers,
                text,
            );
        });
    }

    fn chunk_begin(&mut self, message: &Message, trace: &Trace) {
        self.text.object("Packet beginning");
        if self.text.options.compact {
            return self.text.newline();
        }
        let palette = self.text.palette();
        let (fields, plan) = self.packets.get(message.recording, message.stream, || {
            let fields = PacketFields::of(trace, message.stream);
            let plan = Plan::new(&fields.schema, &fields.hidden, palette);
            (fields, plan)
        });
        if !fields.shown {
            return self.text.newline();
        }
        self.text.push(":\n");
        let Some(chunk) = trace.chunk(message.stream, message.chunk) else {
            return;
        };
        let mut field_renderer = FieldRenderer {
            line: &mut self.text.line,
            plan,
            counters: &mut Vec::new(),
        };
        let shown = fields.visit(&mut field_renderer, |visitor| {
            trace.visit_packet(&chunk, visitor)
        });
        if shown.is_err() {
            // The pipeline reports it; what was read before it is shown.
            self.text.newline();
        }
    }

    fn lost(&mut self, what: &str, lost: Lost) {
        self.text.object("Discarded ");
        self.text.object(what);
        if let Some(count) = lost.count {
            self.text.push(" (");
            self.text.number(count);
            self.text.push(" ");
            self.text.push(what);
            self.text.push(")");
        }
        self.text.newline();
    }
}

impl Sink for Details {
    type Renderer = DetailsRenderer;

    fn renderer(&self) -> DetailsRenderer {
        DetailsRenderer {
            options: self.text.options,
            ..DetailsRenderer::default()
        }
    }

    fn wants_structure(&self) -> bool {
        true
    }

    fn event(
        &mut self,
        message: &Message,
        recordings: &[AnyRecording],
        text: &[u8],
        out: &mut Line,
        warnings: &mut Vec<u8>,
    ) {
        self.message(message, recordings, text, out, warnings);
    }

    /// All messages are written the same way.
    fn message(
        &mut self,
        message: &Message,
        recordings: &[AnyRecording],
        text: &[u8],
        out: &mut Line,
        _warnings: &mut Vec<u8>,
    ) {
        self.text.line.clear();
        let all = !self.met.is_empty();
        // A database has nothing that babeltrace2 prints.
        let Some(recording) = recordings[message.recording].as_ctf() else {
            return;
        };
        let stream = &recording.streams()[message.stream];
        let class = recording.class();
        let times = Times::of(
            class,
            &class.streams[recording.stream_class(message.stream)],
        );
        let number = self.meet(message.recording, recording);
        let has_metadata = !self.text.line.is_empty();
        if has_metadata || (all && !self.text.options.compact) {
            self.text.newline();
        }
        match message.kind {
            MessageKind::StreamBegin | MessageKind::StreamEnd if stream.clock.is_some() => {
                self.time(stream, None);
            }
            MessageKind::Event if message.ticks.is_some() => self.time(stream, message.ticks),
            MessageKind::ChunkBegin if times.begin => self.time(stream, message.ticks),
            MessageKind::ChunkEnd if times.end => self.time(stream, message.ticks),
            MessageKind::LostEvents(lost) | MessageKind::LostChunks(lost) if times.both() => {
                self.time(stream, lost.begin);
                self.time(stream, lost.end);
            }
            _ => {}
        }
        self.tag(number, recording, message.stream);
        match message.kind {
            MessageKind::StreamBegin => self.stream_begin(recording, message.stream),
            MessageKind::StreamEnd => self.text.object("Stream end\n"),
            MessageKind::ChunkBegin => self.chunk_begin(message, recording),
            MessageKind::ChunkEnd => {
                self.text.object("Packet end");
                self.text.newline();
            }
            MessageKind::LostEvents(lost) => self.lost("events", lost),
            MessageKind::LostChunks(lost) => self.lost("packets", lost),
            MessageKind::Event => {}
        }
        out.push(self.text.line.as_bytes());
        out.push(text);
    }
}

/// Writes events: what comes after the line with their stream.
#[derive(Debug, Default)]
pub struct DetailsRenderer {
    recording: usize,
    classes: Table<ClassPlan>,
    counters: Vec<u64>,
    options: DetailsOptions,
}

#[derive(Debug)]
struct ClassPlan {
    /// The line with the name and number.
    header: Vec<u8>,
    plan: Plan,
}

impl ClassPlan {
    fn new(class: &EventClass, options: DetailsOptions) -> Self {
        let mut text = Text {
            options,
            ..Text::default()
        };
        text.object("Event");
        metadata::object_name(class.name.as_deref(), Text::class, &mut text);
        let (before, after) = match options.compact {
            true => (" (", ")\n"),
            false => (" (Class ID ", "):\n"),
        };
        text.push(before);
        text.number(class.id);
        text.push(after);
        Self {
            header: text.line.as_bytes().to_vec(),
            plan: Plan::new(&class.schema, &[], text.palette()),
        }
    }
}

impl Renderer for DetailsRenderer {
    fn chunk(&mut self, recording: usize, _of: &AnyRecording, _chunk: &Chunk) -> Result<(), Fault> {
        self.recording = recording;
        Ok(())
    }

    fn event<E: Event>(&mut self, event: &E, out: &mut Line) -> Result<(), Fault> {
        let options = self.options;
        let make = || ClassPlan::new(event.class(), options);
        let class = self.classes.get(self.recording, event.class_index(), make);
        self.counters.clear();
        out.push(&class.header);
        if options.compact {
            return Ok(());
        }
        event.visit(&mut FieldRenderer {
            line: out,
            plan: &class.plan,
            counters: &mut self.counters,
        })
    }
}
