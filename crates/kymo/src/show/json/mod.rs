//! Events as JSON, one object a line.
//!
//! ```json
//! {"timestamp":NS,"recording":"PATH","kind":"event","schema":1,"trace":"NAME","stream_class":0,
//!  "stream":0,"event":"NAME","event_class":0,"packet_context":{},"common_context":{},
//!  "specific_context":{},"payload":{}}
//! ```
//!
//! A sample, which is a row of an archive of a round-robin database, is
//!
//! ```json
//! {"timestamp":NS,"recording":"PATH","kind":"sample","schema":1,"archive":"AVERAGE/300","archive_index":0,
//!  "payload":{"SOURCE":1.5}}
//! ```
//!
//! with a number for each data source, which is `null` where it is unknown.
//!
//! An event of an event log (CPEL, elog, Gist) has no scopes:
//!
//! ```json
//! {"timestamp":NS,"recording":"PATH","kind":"event","schema":1,"track":0,"track_name":"NAME",
//!  "event":"NAME","event_class":0,"datum":5,"text":"TEXT"}
//! ```
//!
//! Those of elog have, in place of the datum, their arguments as `arg0`, `arg1` and so on.
//!
//! A list of values of collectd is
//!
//! ```json
//! {"timestamp":NS,"recording":"PATH","kind":"sample","schema":1,"cdtime":N,
//!  "interval":N,"id":"host/plugin-instance/type-instance","values":[["GAUGE",1.5]],"security":"none"}
//! ```
//!
//! and a message, which is an `event`, has `severity` and `message` in place of interval and values.
//!
//! `schema` changes when keys get another meaning or place, or go; new keys may be added without. Lines always
//! begin with `timestamp`, `recording` and `kind`. [`Times`] says what a timestamp is.
//!
//! * A scope that an event does not have is left out. What is not known is `null`: the
//!   time of an event without a clock, the name of a trace or event, the number of a stream.
//! * Integers are exact, also above 2^53; their base does not matter here.
//! * Floating point numbers have as few digits as distinguish them from their neighbours (those of
//!   their own size); NaNs and infinities are `"NaN"`, `"Infinity"` or `"-Infinity"`.
//! * Enumerations, and integers with labels, are `{"value":N,"labels":[...]}`; bit maps
//!   `{"value":N,"flags":[...]}`, in the order of declaration; bit arrays unsigned integers.
//! * A variant is the value of its selected option, an absent optional is `null`.
//! * BLOBs are strings of lower-case hexadecimal digits.
//! * Of text that is not UTF-8, each wrong byte `NN` is `\udcNN` (as Python's
//!   `surrogateescape`), so that nothing is lost.

mod field_renderer;
mod plan;

use kymo_model::{Chunk, Event, EventClass, Fault, Recording};
use kymo_text::Line;

pub(crate) use self::field_renderer::{FieldRenderer, FlatFieldRenderer, float, float128, wide};
pub(crate) use self::plan::Plan;
use self::plan::key;
use super::packet::{PacketFields, Visible};
use super::table::Table;
use super::times::TimeText;
use super::{LossReporter, Message, Renderer, Sink, Times, WallOptions};
use crate::{AnyRecording, EntryKind};

/// The version of the keys.
const SCHEMA: &[u8] = b",\"schema\":1";

/// Puts lines together. Losses are reported as warnings.
#[derive(Debug)]
pub struct Json {
    loss_reporter: LossReporter,
    times: TimeText,
}

impl Json {
    /// Lines of JSON with times as numbers; `wall` is how times are shown in warnings.
    pub fn new(wall: WallOptions) -> Self {
        Self::with_times(Times::Number, wall)
    }

    /// The same with times of another kind, which are in the time zone of `wall`.
    pub fn with_times(times: Times, wall: WallOptions) -> Self {
        Self {
            loss_reporter: LossReporter::new(wall),
            times: TimeText::new(times, wall),
        }
    }
}

impl Sink for Json {
    type Renderer = JsonRenderer;

    fn renderer(&self) -> JsonRenderer {
        JsonRenderer::new()
    }

    #[inline]
    fn event(
        &mut self,
        message: &Message,
        _of: &[AnyRecording],
        text: &[u8],
        out: &mut Line,
        _warnings: &mut Vec<u8>,
    ) {
        out.push(b"{\"timestamp\":");
        match message.time {
            Some(time) if self.times.is_text() => {
                out.push_byte(b'"');
                self.times.write(time, out);
                out.push_byte(b'"');
            }
            Some(time) => out.signed(time.as_nanos()),
            None => out.push(b"null"),
        }
        out.push(text);
    }

    fn loss_reporter(&mut self) -> Option<&mut LossReporter> {
        Some(&mut self.loss_reporter)
    }
}

/// Writes what comes after the time.
#[derive(Debug)]
pub struct JsonRenderer {
    classes: Table<ClassPlan>,
    streams: Table<StreamPlan>,
    recording: usize,
    form: Form,
    /// From the recording to the stream.
    head: Line,
    /// The packet context.
    packet: Line,
    stack: Vec<bool>,
    /// Whether only what follows the schema is written.
    is_cell: bool,
}

/// How the entries of a recording are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// An event with its scopes.
    Event,
    /// A row of values.
    Sample,
    /// An event without scopes.
    Flat,
    /// Metrics: the same without name and class.
    Metrics,
}

impl Form {
    fn of(recording: &AnyRecording, stream: usize) -> Self {
        match recording.entry_kind(stream) {
            _ if matches!(recording, AnyRecording::Metrics(_)) => Self::Metrics,
            EntryKind::Sample => Self::Sample,
            EntryKind::Event if recording.is_log() => Self::Flat,
            EntryKind::Event => Self::Event,
        }
    }
}

/// What the events of a stream have in common.
#[derive(Debug)]
struct StreamPlan {
    /// From the recording to the stream.
    header: Vec<u8>,
    fields: PacketFields,
    plan: Plan,
}

/// What the events of a class have in common.
#[derive(Debug)]
struct ClassPlan {
    /// Its name and number.
    header: Vec<u8>,
    plan: Plan,
}

impl JsonRenderer {
    /// What lines end with.
    pub(crate) const END: &[u8] = b"}\n";

    fn new() -> Self {
        Self {
            classes: Table::default(),
            streams: Table::default(),
            recording: 0,
            form: Form::Event,
            head: Line::new(),
            packet: Line::new(),
            stack: Vec::new(),
            is_cell: false,
        }
    }

    /// One that writes what follows the schema, as an object beginning with a comma: `,"event":"NAME"}`.
    pub(crate) fn cell() -> Self {
        Self {
            is_cell: true,
            ..Self::new()
        }
    }

    fn start(
        &mut self,
        recording: usize,
        stream: usize,
        plan: impl FnOnce() -> StreamPlan,
        visit: impl FnOnce(&mut Visible<'_, FieldRenderer<'_>>) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        self.recording = recording;
        self.head.clear();
        self.packet.clear();
        self.stack.clear();
        let plan = self.streams.get(recording, stream, plan);
        self.head.push(&plan.header);
        let mut field_renderer = FieldRenderer {
            line: &mut self.packet,
            plan: &plan.plan,
            stack: &mut self.stack,
        };
        plan.fields.visit(&mut field_renderer, visit)
    }
}

impl StreamPlan {
    fn new(recording: &AnyRecording, stream: usize, is_cell: bool) -> Self {
        let info = &recording.streams()[stream];
        let mut line = Line::new();
        if !is_cell {
            line.push(b",");
            key("recording", &mut line);
            line.json_string(recording.path().as_os_str().as_encoded_bytes());
            line.push(b",");
            key("kind", &mut line);
            line.json_string(recording.entry_kind(stream).as_str().as_bytes());
            line.push(SCHEMA);
        }
        match Form::of(recording, stream) {
            Form::Flat | Form::Metrics => {}
            Form::Sample => {
                line.push(b",\"archive\":");
                line.json_string(info.name.as_bytes());
                line.push(b",\"archive_index\":");
                line.decimal(info.class);
            }
            Form::Event => {
                line.push(b",\"trace\":");
                text_or_null(recording.name(), &mut line);
                line.push(b",\"stream_class\":");
                line.decimal(info.class);
                line.push(b",\"stream\":");
                match info.id {
                    Some(id) => line.decimal(id),
                    None => line.push(b"null"),
                }
            }
        }
        Self::with_header(line.as_bytes(), PacketFields::of(recording, stream))
    }

    fn with_header(header: &[u8], fields: PacketFields) -> Self {
        Self {
            header: header.to_vec(),
            plan: Plan::new(&fields.schema, &fields.hidden),
            fields,
        }
    }
}

impl ClassPlan {
    fn new(class: &EventClass, form: Form) -> Self {
        let mut line = Line::new();
        // What the samples of a class have in common, those of their stream have.
        if matches!(form, Form::Event | Form::Flat) {
            line.push(b",\"event\":");
            text_or_null(class.name.as_deref(), &mut line);
            line.push(b",\"event_class\":");
            line.decimal(class.id);
        }
        if matches!(form, Form::Flat | Form::Metrics) {
            return Self {
                header: Vec::new(),
                plan: Plan::flat(&class.schema, line.as_bytes()),
            };
        }
        Self {
            header: line.as_bytes().to_vec(),
            plan: Plan::new(&class.schema, &[]),
        }
    }
}

fn text_or_null(text: Option<&str>, line: &mut Line) {
    match text {
        Some(text) => line.json_string(text.as_bytes()),
        None => line.push(b"null"),
    }
}

impl Renderer for JsonRenderer {
    fn chunk(
        &mut self,
        recording: usize,
        source: &AnyRecording,
        chunk: &Chunk,
    ) -> Result<(), Fault> {
        self.form = Form::of(source, chunk.stream);
        let is_cell = self.is_cell;
        self.start(
            recording,
            chunk.stream,
            || StreamPlan::new(source, chunk.stream, is_cell),
            |visitor| source.visit_packet(chunk, visitor),
        )
    }

    #[inline]
    fn event<E: Event>(&mut self, event: &E, out: &mut Line) -> Result<(), Fault> {
        let form = self.form;
        let make = || ClassPlan::new(event.class(), form);
        let class = self.classes.get(self.recording, event.class_index(), make);
        self.stack.clear();
        out.push(self.head.as_bytes());
        out.push(&class.header);
        out.push(self.packet.as_bytes());
        let mut field_renderer = FieldRenderer {
            line: out,
            plan: &class.plan,
            stack: &mut self.stack,
        };
        match form {
            Form::Flat | Form::Metrics => event.visit(&mut FlatFieldRenderer(field_renderer))?,
            Form::Event | Form::Sample => event.visit(&mut field_renderer)?,
        }
        out.push(Self::END);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::show::{MessageKind, testing};

    #[test]
    fn every_kind_of_field() {
        let mut renderer = JsonRenderer::new();
        let (schema, calls) = testing::packet();
        let fields = PacketFields::new(schema, |field| field == testing::SIZE_FIELD);
        let plan = || StreamPlan::with_header(b",\"kind\":\"event\"", fields);
        let visit = |visitor: &mut Visible<'_, FieldRenderer<'_>>| {
            testing::play(&calls, visitor);
            Ok(())
        };
        renderer.start(0, 0, plan, visit).unwrap();
        let mut text = Line::new();
        renderer.event(&testing::every_kind(), &mut text).unwrap();
        let mut out = Line::new();
        let message = Message {
            kind: MessageKind::Event,
            recording: 0,
            stream: 0,
            chunk: 0,
            class: 0,
            time: None,
            ticks: None,
        };
        let mut json = Json::new(WallOptions::default());
        json.message(&message, &[], text.as_bytes(), &mut out, &mut Vec::new());
        let expected = json!({
            "timestamp": null, "kind": "event", "event": "app:every", "event_class": 5,
            "packet_context": {"cpu_id": 3},
            "common_context": {"vpid": -7},
            "payload": {
                "hex": -1, "oct": -1, "bin": 5, "f": -99.63, "q": 1.0, "b": true,
                "bits": 0xe9ab, "map": {"value": 0x11, "flags": ["Z", "A"]},
                "s": "a\"b\n", "blob": "00ff", "empty": "",
                "one": {"value": 0, "labels": ["RED"]},
                "two": {"value": 0, "labels": ["B", "A"]},
                "none": {"value": 9, "labels": []},
                "arr": [[1], [2]], "no": [], "var": {"in": 4},
                "some": "x", "nothing": null, "hollow": {},
            },
        });
        let found: serde_json::Value = serde_json::from_slice(out.as_bytes()).unwrap();
        assert_eq!(found, expected);
        assert!(
            out.as_bytes()
                .starts_with(b"{\"timestamp\":null,\"kind\":\"event\",\"event\":\"app:every\"")
        );
    }

    #[test]
    fn what_is_no_number() {
        let mut line = Line::new();
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            float(value, 64, true, &mut line);
        }
        float128(0xffff << 112, true, &mut line);
        let expected = br#""NaN""Infinity""-Infinity""-Infinity""#;
        assert_eq!(line.as_bytes(), expected);
    }
}
