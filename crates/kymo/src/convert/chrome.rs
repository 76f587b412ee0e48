//! The JSON of Chrome's tracing, which Perfetto and others open, too: one object with an array of
//! events, each on a line.
//!
//! ```json
//! {"ph":"i","s":"t","ts":1.5,"pid":1,"tid":1,"name":"EVENT","args":{"payload":{}}}
//! ```
//!
//! * Times are microseconds with the nanoseconds behind the point, exactly. Readers that take them
//!   for doubles see times since 1970 a quarter of a microsecond apart.
//! * A recording is a process, a [track](super::MarkOptions::track) one of its threads; both are
//!   named by events of phase `M`.
//! * `args` has the scopes with their fields as [JSON lines](crate::show::json) have them.
//! * Slices are phases `B` and `E`, of which the latter has the name of its event as `end` among the
//!   `args`; counters are phase `C`; a [flow](super::MarkOptions::flows) is a
//!   `bind_id` that goes in and out.

use std::sync::Arc;

use kymo_model::{Chunk, Event, Fault, Recording, Value};
use kymo_text::Line;
use kymo_time::Timestamp;

use super::losses::{Loss, Losses, Times};
use super::marks::{Marks, Porter};
use super::timeline::{Phase, Timeline};
use crate::carried::{self, Carried};
use crate::filter::name_of;
use crate::samples::{self, Samples, SamplesPen, SourceNames};
use crate::show::json::{FlatPen, Pen, Plan, float};
use crate::show::packet::PacketFields;
use crate::show::table::Table;
use crate::show::{Assembler, Message, Painter, Teller, WallOptions};
use crate::{AnyRecording, EntryKind};

/// Puts a file together. What was lost is told as warnings.
#[derive(Debug)]
pub struct Chrome<'m> {
    marks: &'m Marks,
    losses: Arc<Losses>,
    teller: Teller,
    timeline: Timeline<'m>,
    /// Of each recording whether it has been named.
    named: Vec<bool>,
    sources: SourceNames,
    begun: bool,
    times: Times,
}

impl<'m> Chrome<'m> {
    /// A file of some recordings; `wall` is how times are shown in warnings.
    pub fn new(of: &[AnyRecording], marks: &'m Marks, wall: WallOptions) -> Self {
        let losses = Arc::new(Losses::default());
        Self {
            timeline: Timeline::new(marks, Arc::clone(&losses)),
            times: Times::new(Arc::clone(&losses)),
            marks,
            losses,
            teller: Teller::new(wall),
            named: vec![false; of.len()],
            sources: SourceNames::default(),
            begun: false,
        }
    }

    /// What the file cannot hold.
    pub fn losses(&self) -> &Arc<Losses> {
        &self.losses
    }

    /// Begins an event: what comes before its time.
    fn begin(&mut self, phase: &str, out: &mut Line) {
        match std::mem::replace(&mut self.begun, true) {
            true => out.push(b",\n{\"ph\":\""),
            false => out.push(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n{\"ph\":\""),
        }
        out.push(phase.as_bytes());
        out.push_byte(b'"');
    }

    /// Begins an event at a time and a place.
    fn begin_at(&mut self, phase: &str, time: i64, place: (usize, usize), out: &mut Line) {
        self.begin(phase, out);
        out.push(b",\"ts\":");
        micros(time, out);
        ids(place, out);
    }

    /// Names a process or a thread, and tells its place among the others.
    fn name(&mut self, what: &str, place: (usize, usize), name: &[u8], rank: i64, out: &mut Line) {
        self.begin("M", out);
        ids(place, out);
        out.push(format!(",\"name\":\"{what}_name\",\"args\":{{\"name\":").as_bytes());
        out.json_string(name);
        out.push(b"}}");
        self.begin("M", out);
        ids(place, out);
        let sort = format!(",\"name\":\"{what}_sort_index\",\"args\":{{\"sort_index\":{rank}}}}}");
        out.push(sort.as_bytes());
    }

    fn name_recording(&mut self, recording: usize, of: &[AnyRecording], out: &mut Line) {
        if !std::mem::replace(&mut self.named[recording], true) {
            let name = of[recording].path().as_os_str().as_encoded_bytes();
            self.name("process", (recording, 0), name, recording as i64, out);
        }
    }

    /// Writes an event on its track.
    fn draw(&mut self, message: &Message, of: &[AnyRecording], text: &[u8], out: &mut Line) {
        let time = self.times.next(message.time.map(Timestamp::as_nanos));
        let mut carried = Carried::new(text);
        let place = self.timeline.place(message, of, &mut carried);
        // The thread without a number is the process's own.
        let thread = (message.recording, place.track + 1);
        if place.is_new {
            self.name_recording(message.recording, of, out);
            let track = self.timeline.track(place.track).clone();
            let (name, rank) = (track.name.as_bytes(), track.rank.into());
            self.name("thread", thread, name, rank, out);
        }
        for _ in 0..place.closes {
            self.begin_at("E", time, thread, out);
            out.push_byte(b'}');
        }
        let marks = self.marks;
        let marks_of_class = marks.class(message.recording, message.class);
        let name = name_of(&of[message.recording].event_classes()[message.class]);
        for &counter in &marks_of_class.counters {
            let name = format!("{name} {}", marks.counter_name(counter));
            self.count(time, thread, &name, carried.next(), out);
        }
        match place.phase {
            Phase::Instant => {
                self.begin_at("i", time, thread, out);
                out.push(b",\"s\":\"t\"");
            }
            Phase::Begin => self.begin_at("B", time, thread, out),
            Phase::End => self.begin_at("E", time, thread, out),
        }
        if place.phase != Phase::End {
            out.push(b",\"name\":");
            out.json_string(name.as_bytes());
        }
        for flow in 0..marks_of_class.flows {
            let (value, bytes) = carried.next_with_bytes();
            if carried::is_plain(value) {
                let id = super::flow_id(flow, bytes);
                let flow = format!(",\"bind_id\":\"0x{id:x}\",\"flow_in\":true,\"flow_out\":true");
                out.push(flow.as_bytes());
            }
        }
        out.push(b",\"args\":{");
        let args = carried.rest();
        if place.phase == Phase::End {
            // An end that has a name ends only a slice of the same name.
            out.push(b"\"end\":");
            out.json_string(name.as_bytes());
            out.push(args);
        } else {
            out.push(args.strip_prefix(b",").unwrap_or(args));
        }
        out.push(b"}}");
    }

    /// Writes a value of a counter.
    fn count(
        &mut self,
        time: i64,
        (recording, thread): (usize, usize),
        name: &str,
        value: Value<'_>,
        out: &mut Line,
    ) {
        let mut number = Line::new();
        match value {
            Value::Uint(value) | Value::Bits(value) => number.decimal(value),
            Value::Sint(value) => number.signed(value),
            Value::Bool(value) => number.decimal(value.into()),
            Value::Float(value) if value.is_finite() => float(value, 64, false, &mut number),
            _ => return self.losses.add(Loss::NoCounter, 1),
        }
        self.begin_at("C", time, (recording, 0), out);
        out.push(b",\"name\":");
        out.json_string(name.as_bytes());
        if thread > 0 {
            out.push(format!(",\"id\":{thread}").as_bytes());
        }
        out.push(b",\"args\":{\"value\":");
        out.push(number.as_bytes());
        out.push(b"}}");
    }

    fn samples(&mut self, message: &Message, of: &[AnyRecording], text: &[u8], out: &mut Line) {
        let time = self.times.next(message.time.map(Timestamp::as_nanos));
        let recording = message.recording;
        self.name_recording(recording, of, out);
        let mut sources = std::mem::take(&mut self.sources);
        let names = sources.of_archive(of, recording, message.stream);
        for (name, value) in names.iter().zip(Samples::new(text)) {
            match value {
                None => self.losses.add(Loss::UnknownSample, 1),
                Some(value) => self.count(time, (recording, 0), name, Value::Float(value), out),
            }
        }
        self.sources = sources;
    }
}

/// Appends the numbers of a process and a thread.
fn ids((recording, thread): (usize, usize), out: &mut Line) {
    out.push(b",\"pid\":");
    out.decimal(recording as u64 + 1);
    out.push(b",\"tid\":");
    out.decimal(thread as u64);
}

/// Appends nanoseconds as microseconds.
fn micros(nanos: i64, out: &mut Line) {
    if nanos < 0 {
        out.push_byte(b'-');
    }
    let nanos = nanos.unsigned_abs();
    out.decimal(nanos / 1000);
    out.push_byte(b'.');
    out.padded(nanos % 1000, 3);
}

impl<'m> Assembler for Chrome<'m> {
    type Painter = ChromePainter<'m>;

    fn painter(&self) -> ChromePainter<'m> {
        ChromePainter {
            porter: self.marks.porter(),
            classes: Table::default(),
            streams: Table::default(),
            recording: 0,
            kind: EntryKind::Event,
            is_log: false,
            packet: Line::new(),
            stack: Vec::new(),
        }
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

    fn finish(&mut self, out: &mut Line, _warnings: &mut Vec<u8>) {
        self.timeline.finish();
        out.push(match self.begun {
            true => b"\n]}\n",
            false => b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[]}\n",
        });
    }
}

/// Writes the scopes of an event, and before them the values that decide on its place.
#[derive(Debug)]
pub struct ChromePainter<'m> {
    porter: Porter<'m>,
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

impl Painter for ChromePainter<'_> {
    fn chunk(&mut self, recording: usize, of: &AnyRecording, chunk: &Chunk) -> Result<(), Fault> {
        self.recording = recording;
        self.kind = samples::kind(of);
        self.is_log = of.is_log();
        self.porter.chunk(recording, of, chunk)?;
        self.packet.clear();
        self.stack.clear();
        let stream = self.streams.get(recording, chunk.stream, || {
            let fields = PacketFields::of(of, chunk.stream);
            let plan = Plan::new(&fields.schema, &fields.hidden);
            StreamPlan { fields, plan }
        });
        let mut pen = Pen {
            line: &mut self.packet,
            plan: &stream.plan,
            stack: &mut self.stack,
        };
        let fields = &stream.fields;
        fields.visit(&mut pen, |visitor| of.visit_packet(chunk, visitor))
    }

    #[inline]
    fn event<E: Event>(&mut self, event: &E, out: &mut Line) -> Result<(), Fault> {
        if self.kind == EntryKind::Sample {
            return event.visit(&mut SamplesPen { line: out });
        }
        self.porter.carry(event, out)?;
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
        let mut pen = Pen {
            line: out,
            plan,
            stack: &mut self.stack,
        };
        match is_log {
            true => event.visit(&mut FlatPen(pen)),
            false => event.visit(&mut pen),
        }
    }
}
