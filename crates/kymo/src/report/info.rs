//! What is known of recordings without decoding their events.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use kymo_ctf::class::EnvironmentValue;
use kymo_ctf::trace::Trace;
use kymo_machine::ByteOrder;
use kymo_model::{FaultReport, FieldId, Format, Kind, Lost, Recording, Schema, Scope};
use kymo_text::visible;
use kymo_time::{Clock, Origin, Timestamp};

use super::database::DatabaseInfo;
use super::json::Json;
use super::text::{Style, Table, within};
use super::{faults_text, write_faults};
use crate::AnyRecording;

/// What is known of recordings without decoding their events.
#[derive(Clone, Debug, Default)]
pub struct Info {
    /// One entry for each recording.
    pub recordings: Vec<RecordingInfo>,
}

/// What is known of a recording without decoding its events.
#[derive(Clone, Debug)]
pub enum RecordingInfo {
    /// Of a trace.
    Trace(TraceInfo),
    /// Of a round-robin database.
    Database(DatabaseInfo),
}

/// What is known of a trace without decoding its events.
#[derive(Clone, Debug)]
pub struct TraceInfo {
    /// What was opened.
    pub path: PathBuf,
    /// Format and version.
    pub format: Format,
    /// What people call it.
    pub name: Option<String>,
    /// Its unique identifier.
    pub uid: Option<String>,
    /// Byte order, where the whole recording has one.
    pub byte_order: Option<ByteOrder>,
    /// Name and version of the program that wrote it.
    pub producer: Option<String>,
    /// What the recorder tells of its environment.
    pub environment: Vec<(String, EnvironmentValue)>,
    /// Clocks.
    pub clocks: Vec<ClockInfo>,
    /// Event classes.
    pub event_classes: Vec<ClassInfo>,
    /// Streams.
    pub streams: Vec<StreamSummary>,
    /// Damage found while opening.
    pub faults: Vec<FaultReport>,
}

/// A clock.
#[derive(Clone, Debug)]
pub struct ClockInfo(Arc<Clock>);

/// A class of events.
#[derive(Clone, Debug)]
pub struct ClassInfo {
    /// Number of the stream class.
    pub stream_class: u64,
    /// Number of the class.
    pub id: u64,
    /// Name.
    pub name: Option<String>,
    /// Log level, as a number of the recorder's scale.
    pub log_level: Option<i64>,
    /// Its fields: scope, path, kind, each named field of contexts and payload that holds
    /// values.
    pub fields: Vec<FieldInfo>,
}

/// A field of an event class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldInfo {
    /// The path by which filters know it, with its scope.
    pub path: String,
    /// What it holds, such as `u32` or `text`.
    pub kind: String,
}

/// A stream, summed up.
#[derive(Clone, Debug, Default)]
pub struct StreamSummary {
    /// Name.
    pub name: Arc<str>,
    /// Number of its class.
    pub class: u64,
    /// Number of the stream, where it has one.
    pub id: Option<u64>,
    /// Name of its clock, where it has one.
    pub clock: Option<String>,
    /// Packets (chunks).
    pub packets: u64,
    /// Their size, padding included.
    pub bytes: u64,
    /// When its first packet begins.
    pub begin: Option<Timestamp>,
    /// When its last packet ends.
    pub end: Option<Timestamp>,
    /// Events discarded, as far as their number is known.
    pub discarded_events: u64,
    /// Packets discarded, as far as their number is known.
    pub discarded_packets: u64,
}

impl StreamSummary {
    fn new(of: &Trace, stream: usize) -> Self {
        let info = &of.streams()[stream];
        let count = of.chunk_count(stream);
        let (mut bytes, mut discarded_events, mut discarded_packets) = (0, 0u64, 0u64);
        for chunk in of.chunks(stream) {
            bytes += chunk.bytes;
            let counted = |lost: Option<Lost>| lost.and_then(|lost| lost.count).unwrap_or(0);
            discarded_events = discarded_events.saturating_add(counted(chunk.lost_events));
            discarded_packets = discarded_packets.saturating_add(counted(chunk.lost_chunks));
        }
        let last = count.checked_sub(1);
        Self {
            name: Arc::clone(&info.name),
            class: info.class,
            id: info.id,
            clock: info
                .clock
                .as_ref()
                .map(|clock| clock_name(clock).to_string()),
            packets: count as u64,
            bytes,
            begin: of.chunk(stream, 0).and_then(|chunk| chunk.begin_time),
            end: last.and_then(|last| of.chunk(stream, last)?.end_time),
            discarded_events,
            discarded_packets,
        }
    }
}

fn clock_name(clock: &Clock) -> &str {
    clock.name.as_deref().unwrap_or("(no name)")
}

impl RecordingInfo {
    fn new(of: &AnyRecording) -> Self {
        match of {
            AnyRecording::Ctf(of) => Self::Trace(TraceInfo::new(of)),
            AnyRecording::Rrd(of) => Self::Database(DatabaseInfo::new(of)),
        }
    }

    fn write_json(&self, json: &mut Json) {
        match self {
            Self::Trace(info) => info.write_json(json),
            Self::Database(info) => info.write_json(json),
        }
    }

    fn to_text(&self, style: &Style, fields: bool) -> String {
        match self {
            Self::Trace(info) => info.to_text(style, fields),
            Self::Database(info) => info.to_text(style),
        }
    }
}

impl TraceInfo {
    fn new(of: &Trace) -> Self {
        let class = of.class();
        Self {
            path: of.path().to_path_buf(),
            format: of.format(),
            name: of.name().map(str::to_string),
            uid: of.uid().map(str::to_string),
            byte_order: class.byte_order,
            producer: producer(&class.environment),
            environment: class.environment.clone(),
            clocks: class.clocks.iter().cloned().map(ClockInfo).collect(),
            event_classes: of
                .event_classes()
                .iter()
                .map(|class| ClassInfo {
                    stream_class: class.stream_class,
                    id: class.id,
                    name: class.name.as_deref().map(str::to_string),
                    log_level: class.log_level,
                    fields: fields(&class.schema),
                })
                .collect(),
            streams: (0..of.streams().len())
                .map(|stream| StreamSummary::new(of, stream))
                .collect(),
            faults: of.faults().to_vec(),
        }
    }

    /// The sum of all streams: the earliest beginning, the latest end.
    fn total(&self) -> StreamSummary {
        let streams = || self.streams.iter();
        // What counters say of losses may be anything.
        let discarded =
            |count: fn(&StreamSummary) -> u64| streams().map(count).fold(0, u64::saturating_add);
        StreamSummary {
            packets: streams().map(|stream| stream.packets).sum(),
            bytes: streams().map(|stream| stream.bytes).sum(),
            begin: streams().filter_map(|stream| stream.begin).min(),
            end: streams().filter_map(|stream| stream.end).max(),
            discarded_events: discarded(|stream| stream.discarded_events),
            discarded_packets: discarded(|stream| stream.discarded_packets),
            ..StreamSummary::default()
        }
    }
}

/// The tracer's name and version, as LTTng, barectf and others tell them.
fn producer(environment: &[(String, EnvironmentValue)]) -> Option<String> {
    let get = |key: &str| environment.iter().find(|(name, _)| name == key);
    let (_, EnvironmentValue::Text(name)) = get("tracer_name")? else {
        return None;
    };
    let version: Vec<String> = [
        "tracer_major",
        "tracer_minor",
        "tracer_patch",
        "tracer_patchlevel",
    ]
    .into_iter()
    .filter_map(get)
    .map(|(_, value)| environment_text(value))
    .collect();
    Some(if version.is_empty() {
        name.clone()
    } else {
        format!("{name} {}", version.join("."))
    })
}

fn environment_text(value: &EnvironmentValue) -> String {
    match value {
        EnvironmentValue::Integer(number) => number.to_string(),
        EnvironmentValue::Text(text) => text.clone(),
    }
}

/// The fields of contexts and payload that hold values, in the order of decoding.
fn fields(schema: &Schema) -> Vec<FieldInfo> {
    let scopes = [Scope::CommonContext, Scope::SpecificContext, Scope::Payload];
    let mut fields = Vec::new();
    for scope in scopes {
        for id in (0..schema.fields().len() as u32).map(FieldId) {
            if schema.scope_of(id) != scope || schema.root(scope) == Some(id) {
                continue;
            }
            if let Some(kind) = kind_name(schema, id) {
                fields.push(FieldInfo {
                    path: format!("{}.{}", scope.name(), schema.path(id)),
                    kind,
                });
            }
        }
    }
    fields
}

/// What a field holds; `None` for a compound, whose parts tell.
fn kind_name(schema: &Schema, id: FieldId) -> Option<String> {
    let labelled = |number: String, is_labelled: bool| match is_labelled {
        true => format!("enum {number}"),
        false => number,
    };
    Some(match &schema.field(id).kind {
        Kind::Uint { bits, labels, .. } => labelled(format!("u{bits}"), labels.is_some()),
        Kind::Sint { bits, labels, .. } => labelled(format!("i{bits}"), labels.is_some()),
        Kind::Float { bits } => format!("f{bits}"),
        Kind::Bool { .. } => "bool".to_string(),
        Kind::BitArray { bits } => format!("bits {bits}"),
        Kind::BitMap { bits, .. } => format!("flags {bits}"),
        Kind::Text => "text".to_string(),
        Kind::Blob => "blob".to_string(),
        Kind::Struct | Kind::Array { .. } | Kind::Optional | Kind::Variant => return None,
    })
}

impl fmt::Display for ClockInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let clock = &self.0;
        write!(f, "{}: {} Hz, ", clock_name(clock), clock.frequency)?;
        match &clock.origin {
            Origin::UnixEpoch => f.write_str("from the Unix epoch")?,
            Origin::Unknown => f.write_str("origin unknown")?,
            Origin::Named { name, .. } => write!(f, "from {name}")?,
        }
        write!(
            f,
            ", offset {} s and {} cycles",
            clock.offset_seconds, clock.offset_cycles
        )?;
        match &clock.description {
            Some(description) => write!(f, " ({description})"),
            None => Ok(()),
        }
    }
}

pub(super) fn byte_order_name(order: ByteOrder) -> &'static str {
    match order {
        ByteOrder::Little => "little-endian",
        ByteOrder::Big => "big-endian",
    }
}

impl Info {
    /// What is known of some recordings.
    pub fn new(recordings: &[AnyRecording]) -> Self {
        Self {
            recordings: recordings.iter().map(RecordingInfo::new).collect(),
        }
    }

    /// Whether opening has shown no damage.
    pub fn is_good(&self) -> bool {
        self.recordings.iter().all(|of| match of {
            RecordingInfo::Trace(info) => info.faults.is_empty(),
            // Damage keeps one from being opened.
            RecordingInfo::Database(_) => true,
        })
    }

    /// `{"recordings":[...]}` with all that is known; times in nanoseconds, what is not
    /// known as null.
    pub fn to_json(&self) -> Vec<u8> {
        let mut json = Json::default();
        json.begin_object();
        json.key("recordings");
        json.begin_array();
        for recording in &self.recordings {
            recording.write_json(&mut json);
        }
        json.end_array();
        json.end_object();
        json.finish()
    }

    /// A paragraph for each recording. With `fields` the fields of each event class are
    /// listed.
    pub fn to_text(&self, style: &Style, fields: bool) -> Vec<u8> {
        let recordings: Vec<String> = self
            .recordings
            .iter()
            .map(|recording| recording.to_text(style, fields))
            .collect();
        recordings.join("\n").into_bytes()
    }
}

impl TraceInfo {
    fn write_json(&self, json: &mut Json) {
        json.begin_object();
        json.key("path");
        json.text(self.path.as_os_str().as_encoded_bytes());
        json.key("format");
        json.text(self.format.name.as_bytes());
        json.key("version");
        json.text(self.format.version.as_bytes());
        json.key("name");
        json.optional_text(self.name.as_deref());
        json.key("uid");
        json.optional_text(self.uid.as_deref());
        json.key("byte_order");
        json.optional_text(self.byte_order.map(byte_order_name));
        json.key("producer");
        json.optional_text(self.producer.as_deref());
        json.key("environment");
        json.begin_object();
        for (name, value) in &self.environment {
            json.key(name);
            match value {
                EnvironmentValue::Integer(number) => json.signed(*number),
                EnvironmentValue::Text(text) => json.text(text.as_bytes()),
            }
        }
        json.end_object();
        write_summary(json, &self.total());
        json.key("clocks");
        json.begin_array();
        for ClockInfo(clock) in &self.clocks {
            write_clock(json, clock);
        }
        json.end_array();
        json.key("streams");
        json.begin_array();
        for stream in &self.streams {
            json.begin_object();
            json.key("name");
            json.text(stream.name.as_bytes());
            json.key("stream_class");
            json.number(stream.class);
            json.key("stream");
            json.optional_number(stream.id);
            json.key("clock");
            json.optional_text(stream.clock.as_deref());
            write_summary(json, stream);
            json.end_object();
        }
        json.end_array();
        json.key("event_classes");
        json.begin_array();
        for class in &self.event_classes {
            json.begin_object();
            json.key("stream_class");
            json.number(class.stream_class);
            json.key("event_class");
            json.number(class.id);
            json.key("event");
            json.optional_text(class.name.as_deref());
            json.key("log_level");
            json.optional_signed(class.log_level);
            json.key("fields");
            json.begin_array();
            for field in &class.fields {
                json.begin_object();
                json.key("path");
                json.text(field.path.as_bytes());
                json.key("kind");
                json.text(field.kind.as_bytes());
                json.end_object();
            }
            json.end_array();
            json.end_object();
        }
        json.end_array();
        write_faults(json, &self.faults);
        json.end_object();
    }

    fn to_text(&self, style: &Style, fields: bool) -> String {
        let total = self.total();
        let mut text = format!("{}\n", visible(&self.path.to_string_lossy()));
        let mut table = Table::default();
        let mut line = |key: &str, value: String| table.row([format!("  {key}"), value]);
        line(
            "format",
            format!(
                "{} {}",
                self.format.name.to_uppercase(),
                self.format.version
            ),
        );
        if let Some(name) = &self.name {
            line("name", name.clone());
        }
        if let Some(uid) = &self.uid {
            line("identifier", uid.clone());
        }
        if let Some(order) = self.byte_order {
            line("byte order", byte_order_name(order).to_string());
        }
        if let Some(producer) = &self.producer {
            line("producer", producer.clone());
        }
        line("begins", style.optional_time(total.begin));
        line("ends", style.optional_time(total.end));
        if let (Some(begin), Some(end)) = (total.begin, total.end) {
            let nanos = end.as_nanos().abs_diff(begin.as_nanos());
            line("duration", style.duration(nanos));
        }
        line("bytes", style.count(total.bytes));
        line("packets", style.count(total.packets));
        line("discarded events", style.count(total.discarded_events));
        line("discarded packets", style.count(total.discarded_packets));
        line(
            "event classes",
            style.count(self.event_classes.len() as u64),
        );
        line("streams", style.count(self.streams.len() as u64));
        line("faults", style.count(self.faults.len() as u64));
        for clock in &self.clocks {
            line("clock", clock.to_string());
        }
        for (name, value) in &self.environment {
            line(
                "environment",
                format!("{name} = {}", environment_text(value)),
            );
        }
        text += &table.align(&[false, false]);
        text += &self.streams_text(style);
        text += &self.classes_text(fields);
        if !self.faults.is_empty() {
            text.push('\n');
            text += &faults_text(&self.faults);
        }
        text
    }

    fn streams_text(&self, style: &Style) -> String {
        let mut table = Table::default();
        table.header(&[
            "  stream",
            "packets",
            "bytes",
            "discarded",
            "begins",
            "ends",
        ]);
        for stream in &self.streams {
            table.row([
                format!("  {}", within(&self.path, &stream.name)),
                style.count(stream.packets),
                style.count(stream.bytes),
                style.count(stream.discarded_events),
                style.optional_time(stream.begin),
                style.optional_time(stream.end),
            ]);
        }
        format!(
            "\n{}",
            table.align(&[false, true, true, true, false, false])
        )
    }

    fn classes_text(&self, fields: bool) -> String {
        let mut table = Table::default();
        table.header(&["  event class", "stream class", "id", "log level"]);
        let mut lines = Vec::new();
        for class in &self.event_classes {
            let name = class.name.as_deref().unwrap_or("<unknown>");
            table.row([
                format!("  {name}"),
                class.stream_class.to_string(),
                class.id.to_string(),
                class
                    .log_level
                    .map_or_else(|| "-".to_string(), |level| level.to_string()),
            ]);
            lines.push(&class.fields);
        }
        let table = table.align(&[false, true, true, true]);
        let mut text = "\n".to_string();
        // The first line is the header, which has no class.
        for (position, line) in table.lines().enumerate() {
            text += line;
            text.push('\n');
            let class = position.checked_sub(1).and_then(|class| lines.get(class));
            for field in class.into_iter().copied().flatten().filter(|_| fields) {
                text += &format!("      {}: {}\n", field.path, field.kind);
            }
        }
        text
    }
}

fn write_clock(json: &mut Json, clock: &Clock) {
    json.begin_object();
    json.key("name");
    json.optional_text(clock.name.as_deref());
    json.key("uid");
    json.optional_text(clock.uid.as_deref());
    json.key("description");
    json.optional_text(clock.description.as_deref());
    json.key("frequency");
    json.number(clock.frequency);
    json.key("offset_seconds");
    json.signed(clock.offset_seconds);
    json.key("offset_cycles");
    json.number(clock.offset_cycles);
    json.key("precision");
    json.optional_number(clock.precision);
    json.key("origin");
    match &clock.origin {
        Origin::UnixEpoch => json.text(b"unix-epoch"),
        Origin::Unknown => json.null(),
        Origin::Named { name, .. } => json.text(name.as_bytes()),
    }
    json.end_object();
}

fn write_summary(json: &mut Json, summary: &StreamSummary) {
    json.key("begin");
    json.optional_signed(summary.begin.map(Timestamp::as_nanos));
    json.key("end");
    json.optional_signed(summary.end.map(Timestamp::as_nanos));
    for (key, number) in [
        ("packets", summary.packets),
        ("bytes", summary.bytes),
        ("discarded_events", summary.discarded_events),
        ("discarded_packets", summary.discarded_packets),
    ] {
        json.key(key);
        json.number(number);
    }
}
