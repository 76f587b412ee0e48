//! What is known of recordings without decoding their events.

mod json;
mod text;

pub(super) use json::{write_classes, write_clocks, write_streams, write_summary};
pub(super) use text::{classes_text, streams_text};

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use kymo_ctf::class::{Dialect, EnvironmentValue, EventRecordClass, TraceClass};
use kymo_ctf::trace::Trace;
use kymo_machine::ByteOrder;
use kymo_model::{EventClass, FaultReport, FieldId, Format, Kind, Lost, Recording, Schema, Scope};
use kymo_time::{Clock, Timestamp};

use super::database::DatabaseInfo;
use super::log::LogInfo;
use super::metrics::MetricsInfo;
use super::spark::Spread;
use super::text::Style;
use super::{Json, begin_report};
use crate::AnyRecording;
use crate::timeline::KnownCounts;

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
    Trace(Box<TraceInfo>),
    /// Of a round-robin database.
    Database(DatabaseInfo),
    /// Of an event log.
    Log(LogInfo),
    /// Of datagrams of collectd.
    Metrics(MetricsInfo),
}

/// What is known of a trace without decoding its events.
#[derive(Clone, Debug)]
pub struct TraceInfo {
    /// What was opened.
    pub path: PathBuf,
    /// Format and version.
    pub format: Format,
    /// The metadata language.
    pub dialect: Dialect,
    /// What people call it.
    pub name: Option<String>,
    /// Its identity: its unique identifier, and what it is called in its metadata.
    pub identity: Identity,
    /// Number of the session, if packets of RFC v1.1 contain it.
    pub session: Option<u32>,
    /// Byte order, where the whole recording has one.
    pub byte_order: Option<ByteOrder>,
    /// Name and version of the program that wrote it.
    pub producer: Option<String>,
    /// What the recorder reports about its environment.
    pub environment: Vec<(String, EnvironmentValue)>,
    /// Clocks.
    pub clocks: Vec<ClockInfo>,
    /// Attributes of the trace.
    pub attributes: Attributes,
    /// Stream classes; in RFC v1.1 the sections.
    pub stream_classes: Vec<StreamClassInfo>,
    /// Event classes.
    pub event_classes: Vec<ClassInfo>,
    /// Streams.
    pub streams: Vec<StreamSummary>,
    /// Discarded events over time, as far as their number is known.
    pub losses: Spread,
    /// Damage found while opening.
    pub faults: Vec<FaultReport>,
}

/// Attributes as `(name space, JSON text)`.
pub type Attributes = Vec<(String, String)>;

/// What identifies something, as far as it is specified.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// Name space of the name.
    pub namespace: Option<String>,
    /// Name.
    pub name: Option<String>,
    /// Unique identifier.
    pub uid: Option<String>,
}

/// A clock.
#[derive(Clone, Debug)]
pub struct ClockInfo(pub(super) Arc<Clock>);

/// A class of streams.
#[derive(Clone, Debug)]
pub struct StreamClassInfo {
    /// Number of the class.
    pub id: u64,
    /// What identifies it.
    pub identity: Identity,
    /// Name of its clock, where it has one.
    pub clock: Option<String>,
    /// How many event classes it has.
    pub event_classes: u64,
    /// Attributes.
    pub attributes: Attributes,
}

/// A class of events.
#[derive(Clone, Debug)]
pub struct ClassInfo {
    /// Number of the stream class.
    pub stream_class: u64,
    /// Number of the class.
    pub id: u64,
    /// What identifies it.
    pub identity: Identity,
    /// Log level, as a number of the recorder's scale.
    pub log_level: Option<i64>,
    /// Identifier of the model element behind it (Eclipse Modeling Framework).
    pub emf_uri: Option<String>,
    /// Attributes.
    pub attributes: Attributes,
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
    /// Number of events, if an index has counted all of them.
    pub events: Option<u64>,
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
    pub(super) fn new<R: Recording>(recording: &R, stream: usize) -> Self {
        let info = &recording.streams()[stream];
        let count = recording.chunk_count(stream);
        let (mut bytes, mut discarded_events, mut discarded_packets) = (0, 0u64, 0u64);
        for chunk in recording.chunks(stream) {
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
            events: None,
            begin: recording
                .chunk(stream, 0)
                .and_then(|chunk| chunk.begin_time),
            end: last.and_then(|last| recording.chunk(stream, last)?.end_time),
            discarded_events,
            discarded_packets,
        }
    }
}

fn clock_name(clock: &Clock) -> &str {
    clock.name.as_deref().unwrap_or("(no name)")
}

impl RecordingInfo {
    fn new(recording: &AnyRecording) -> Self {
        match recording {
            AnyRecording::Ctf(trace) => Self::Trace(Box::new(TraceInfo::new(trace))),
            AnyRecording::Symbolized(trace) => Self::Trace(Box::new(TraceInfo::new(trace.trace()))),
            AnyRecording::Rrd(database) => Self::Database(DatabaseInfo::new(database)),
            AnyRecording::Cpel(log) => Self::Log(LogInfo::of_cpel(log)),
            AnyRecording::Elog(log) => Self::Log(LogInfo::of_elog(log)),
            AnyRecording::Metrics(metrics) => Self::Metrics(MetricsInfo::new(metrics)),
            AnyRecording::Perfetto(trace) => Self::Log(LogInfo::of_perfetto(trace)),
            AnyRecording::Maps(export) => Self::Log(LogInfo::of_maps(export)),
        }
    }

    fn write_json(&self, json: &mut Json) {
        match self {
            Self::Trace(info) => info.write_json(json),
            Self::Database(info) => info.write_json(json),
            Self::Log(info) => info.write_json(json),
            Self::Metrics(info) => info.write_json(json),
        }
    }

    fn to_text(&self, style: &Style, fields: bool) -> String {
        match self {
            Self::Trace(info) => info.to_text(style, fields),
            Self::Database(info) => info.to_text(style),
            Self::Log(info) => info.to_text(style, fields),
            Self::Metrics(info) => info.to_text(style, fields),
        }
    }
}

impl TraceInfo {
    fn new(trace: &Trace) -> Self {
        let class = trace.class();
        let streams: Vec<_> = (0..trace.streams().len())
            .map(|stream| StreamSummary::new(trace, stream))
            .collect();
        Self {
            path: trace.path().to_path_buf(),
            format: trace.format(),
            dialect: class.dialect,
            name: trace.name().map(str::to_string),
            identity: Identity {
                namespace: class.namespace.clone(),
                name: class.name.clone(),
                uid: trace.uid().map(str::to_string),
            },
            session: trace.metadata().session_id,
            byte_order: class.byte_order,
            producer: producer(&class.environment),
            environment: class.environment.clone(),
            clocks: class.clocks.iter().cloned().map(ClockInfo).collect(),
            attributes: compact(&class.attributes),
            stream_classes: stream_classes(class),
            event_classes: event_classes(trace),
            losses: losses(trace, &streams),
            streams,
            faults: trace.faults().to_vec(),
        }
    }

    fn total(&self) -> StreamSummary {
        StreamSummary::total(&self.streams)
    }
}

impl StreamSummary {
    /// The sum of streams: the earliest beginning, the latest end.
    pub(super) fn total(streams: &[Self]) -> Self {
        let streams = || streams.iter();
        // What counters say of losses may be anything.
        let discarded =
            |count: fn(&StreamSummary) -> u64| streams().map(count).fold(0, u64::saturating_add);
        StreamSummary {
            packets: streams().map(|stream| stream.packets).sum(),
            bytes: streams().map(|stream| stream.bytes).sum(),
            events: streams()
                .map(|stream| stream.events)
                .reduce(|all, events| Some(all?.saturating_add(events?)))
                .flatten(),
            begin: streams().filter_map(|stream| stream.begin).min(),
            end: streams().filter_map(|stream| stream.end).max(),
            discarded_events: discarded(|stream| stream.discarded_events),
            discarded_packets: discarded(|stream| stream.discarded_packets),
            ..StreamSummary::default()
        }
    }
}

/// The discarded events of a trace over its time.
fn losses(trace: &Trace, streams: &[StreamSummary]) -> Spread {
    /// As many as fit on a line of 80 characters.
    const STRETCHES: usize = 56;
    let total = StreamSummary::total(streams);
    if total.discarded_events == 0 {
        return Spread::default();
    }
    let mut losses = Spread::new(total.begin.zip(total.end), STRETCHES);
    for stream in 0..streams.len() {
        for chunk in trace.chunks(stream) {
            losses.add_losses(trace, &chunk);
        }
    }
    losses
}

fn stream_classes(class: &TraceClass) -> Vec<StreamClassInfo> {
    let streams = class.streams.iter().map(|stream| StreamClassInfo {
        id: stream.id,
        identity: Identity {
            namespace: stream.namespace.clone(),
            name: stream.name.clone(),
            uid: stream.uid.clone(),
        },
        clock: stream
            .clock
            .and_then(|clock| class.clocks.get(clock))
            .map(|clock| clock_name(clock).to_string()),
        event_classes: stream.events.len() as u64,
        attributes: compact(&stream.attributes),
    });
    streams.collect()
}

/// What classes of events say of themselves, and nothing else knows of them.
pub(super) fn plain_classes(classes: &[EventClass]) -> Vec<ClassInfo> {
    let info = |class: &EventClass| ClassInfo {
        stream_class: class.stream_class,
        id: class.id,
        identity: Identity {
            name: class.name.as_deref().map(str::to_string),
            ..Identity::default()
        },
        log_level: class.log_level,
        emf_uri: class.emf_uri.as_deref().map(str::to_string),
        attributes: Vec::new(),
        fields: fields(&class.schema),
    };
    classes.iter().map(info).collect()
}

fn event_classes(trace: &Trace) -> Vec<ClassInfo> {
    let streams = trace.class().streams.iter();
    let declared: HashMap<(u64, u64), &EventRecordClass> = streams
        .flat_map(|stream| stream.events.iter().map(move |event| (stream.id, event)))
        .map(|(stream, event)| ((stream, event.id), event))
        .collect();
    let classes = trace.event_classes().iter().map(|class| {
        let declared = declared.get(&(class.stream_class, class.id));
        ClassInfo {
            stream_class: class.stream_class,
            id: class.id,
            identity: Identity {
                namespace: declared.and_then(|event| event.namespace.clone()),
                name: class.name.as_deref().map(str::to_string),
                uid: declared.and_then(|event| event.uid.clone()),
            },
            log_level: class.log_level,
            emf_uri: class.emf_uri.as_deref().map(str::to_string),
            attributes: declared.map_or_else(Vec::new, |event| compact(&event.attributes)),
            fields: fields(&class.schema),
        }
    });
    classes.collect()
}

/// Attributes as JSON without blanks and newlines between its tokens, so that each is one line.
fn compact(attributes: &[(String, String)]) -> Attributes {
    let without_blanks = |json: &str| {
        let (mut in_text, mut escaped) = (false, false);
        let mut keep = |c: char| {
            let blank = !in_text && c.is_ascii_whitespace();
            in_text ^= c == '"' && !escaped;
            escaped = in_text && c == '\\' && !escaped;
            !blank
        };
        json.chars().filter(|&c| keep(c)).collect()
    };
    attributes
        .iter()
        .map(|(namespace, json)| (namespace.clone(), without_blanks(json)))
        .collect()
}

/// The tracer's name and version, as LTTng, barectf and others record them.
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

pub(super) fn byte_order_name(order: ByteOrder) -> &'static str {
    match order {
        ByteOrder::Little => "little-endian",
        ByteOrder::Big => "big-endian",
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

/// What a field holds; `None` for a compound, which its parts describe.
fn kind_name(schema: &Schema, id: FieldId) -> Option<String> {
    let labelled = |number: String, is_labelled: bool| match is_labelled {
        true => format!("enum {number}"),
        false => number,
    };
    Some(match &schema.field(id).kind {
        Kind::Uint { bits, labels, .. } => labelled(format!("u{bits}"), labels.is_some()),
        Kind::Sint { bits, labels, .. } => labelled(format!("i{bits}"), labels.is_some()),
        Kind::Wide { bits, signed } => format!("{}{bits}", if *signed { 'i' } else { 'u' }),
        Kind::Float { bits } => format!("f{bits}"),
        Kind::Bool { .. } => "bool".to_string(),
        Kind::BitArray { bits } => format!("bits {bits}"),
        Kind::BitMap { bits, .. } => format!("flags {bits}"),
        Kind::Text => "text".to_string(),
        Kind::Blob => "blob".to_string(),
        Kind::Struct | Kind::Array { .. } | Kind::Optional | Kind::Variant => return None,
    })
}

impl Info {
    /// What is known of some recordings.
    pub fn new(recordings: &[AnyRecording]) -> Self {
        Self {
            recordings: recordings.iter().map(RecordingInfo::new).collect(),
        }
    }

    /// The same, with the numbers of events that are known of traces.
    pub fn with_counts(recordings: &[AnyRecording], known: &KnownCounts) -> Self {
        let mut info = Self::new(recordings);
        for (recording, details) in info.recordings.iter_mut().enumerate() {
            if let RecordingInfo::Trace(trace) = details {
                for (stream, summary) in trace.streams.iter_mut().enumerate() {
                    summary.events = known.events_of_stream(recording, stream, summary.packets);
                }
            }
        }
        info
    }

    /// Whether opening has shown no damage.
    pub fn is_good(&self) -> bool {
        self.recordings.iter().all(|recording| match recording {
            RecordingInfo::Trace(info) => info.faults.is_empty(),
            // Damage keeps one from being opened.
            RecordingInfo::Database(_) => true,
            RecordingInfo::Log(info) => info.faults.is_empty(),
            RecordingInfo::Metrics(info) => info.faults.is_empty(),
        })
    }

    /// `{"recordings":[...]}` with all that is known; times in nanoseconds, what is not
    /// known as null.
    pub fn to_json(&self) -> Vec<u8> {
        let mut json = begin_report();
        json.begin_list("recordings");
        for recording in &self.recordings {
            recording.write_json(&mut json);
        }
        json.end_list();
        json.end_object();
        json.finish()
    }

    /// How many databases there are.
    pub fn databases(&self) -> usize {
        let is_database =
            |recording: &&RecordingInfo| matches!(recording, RecordingInfo::Database(_));
        self.recordings.iter().filter(is_database).count()
    }

    /// The same as [`to_text`](Self::to_text), but the databases together: how many there are by machine, step and age.
    /// `damaged` is the number of recordings that could not be opened.
    pub fn to_summary(&self, style: &Style, fields: bool, damaged: usize) -> Vec<u8> {
        let mut databases = Vec::new();
        let mut parts = Vec::new();
        for recording in &self.recordings {
            match recording {
                RecordingInfo::Database(info) => databases.push(info),
                other => parts.push(other.to_text(style, fields)),
            }
        }
        parts.push(super::summary::summary(&databases, damaged, style));
        parts.join("\n").into_bytes()
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
