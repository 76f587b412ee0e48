//! What is known, as JSON.

use kymo_ctf::class::EnvironmentValue;
use kymo_time::{Clock, Origin, Timestamp};

use super::{ClassInfo, ClockInfo, StreamSummary, TraceInfo, byte_order_name};
use crate::report::{Json, begin_recording, write_faults};

impl TraceInfo {
    pub(super) fn write_json(&self, json: &mut Json) {
        begin_recording(json, &self.path, self.format);
        json.entry("name", self.name.as_deref());
        json.entry("uid", self.identity.uid.as_deref());
        json.entry("namespace", self.identity.namespace.as_deref());
        json.entry("trace_name", self.identity.name.as_deref());
        json.entry("session", self.session.map(u64::from));
        json.entry("byte_order", self.byte_order.map(byte_order_name));
        json.entry("producer", self.producer.as_deref());
        json.key("environment");
        json.begin_object();
        for (name, value) in &self.environment {
            json.key(name);
            match value {
                EnvironmentValue::Integer(number) => json.value(*number),
                EnvironmentValue::Text(text) => json.value(text.as_bytes()),
            }
        }
        json.end_object();
        write_attributes(json, &self.attributes);
        write_summary(json, &self.total());
        write_clocks(json, &self.clocks);
        json.begin_list("stream_classes");
        for class in &self.stream_classes {
            json.begin_object();
            json.entry("stream_class", class.id);
            json.entry("name", class.identity.name.as_deref());
            json.entry("namespace", class.identity.namespace.as_deref());
            json.entry("uid", class.identity.uid.as_deref());
            json.entry("clock", class.clock.as_deref());
            json.entry("event_classes", class.event_classes);
            write_attributes(json, &class.attributes);
            json.end_object();
        }
        json.end_list();
        write_streams(json, &self.streams);
        write_classes(json, &self.event_classes);
        write_faults(json, &self.faults, 0);
        json.end_object();
    }
}

/// Writes the list of clocks.
pub(in crate::report) fn write_clocks(json: &mut Json, clocks: &[ClockInfo]) {
    json.begin_list("clocks");
    for ClockInfo(clock) in clocks {
        write_clock(json, clock);
    }
    json.end_list();
}

/// Writes the list of streams.
pub(in crate::report) fn write_streams(json: &mut Json, streams: &[StreamSummary]) {
    json.begin_list("streams");
    for stream in streams {
        json.begin_object();
        json.entry("name", stream.name.as_bytes());
        json.entry("stream_class", stream.class);
        json.entry("stream", stream.id);
        json.entry("clock", stream.clock.as_deref());
        write_summary(json, stream);
        json.end_object();
    }
    json.end_list();
}

/// Writes the list of event classes.
pub(in crate::report) fn write_classes(json: &mut Json, classes: &[ClassInfo]) {
    json.begin_list("event_classes");
    for class in classes {
        json.begin_object();
        json.entry("stream_class", class.stream_class);
        json.entry("event_class", class.id);
        json.entry("event", class.identity.name.as_deref());
        json.entry("namespace", class.identity.namespace.as_deref());
        json.entry("uid", class.identity.uid.as_deref());
        json.entry("log_level", class.log_level);
        json.entry("emf_uri", class.emf_uri.as_deref());
        write_attributes(json, &class.attributes);
        json.begin_list("fields");
        for field in &class.fields {
            json.begin_object();
            json.entry("path", field.path.as_bytes());
            json.entry("kind", field.kind.as_bytes());
            json.end_object();
        }
        json.end_list();
        json.end_object();
    }
    json.end_list();
}

fn write_clock(json: &mut Json, clock: &Clock) {
    json.begin_object();
    json.entry("name", clock.name.as_deref());
    json.entry("namespace", clock.namespace.as_deref());
    json.entry("uid", clock.uid.as_deref());
    json.entry("description", clock.description.as_deref());
    json.entry("frequency", clock.frequency);
    json.entry("offset_seconds", clock.offset_seconds);
    json.entry("offset_cycles", clock.offset_cycles);
    json.entry("precision", clock.precision);
    json.entry("accuracy", clock.accuracy);
    json.key("origin");
    match &clock.origin {
        Origin::UnixEpoch => json.value("unix-epoch"),
        Origin::Unknown => json.null(),
        Origin::Named {
            namespace,
            name,
            uid,
        } => {
            json.begin_object();
            json.entry("namespace", namespace.as_deref());
            json.entry("name", name.as_bytes());
            json.entry("uid", uid.as_bytes());
            json.end_object();
        }
    }
    json.end_object();
}

fn write_attributes(json: &mut Json, attributes: &[(String, String)]) {
    json.key("attributes");
    json.begin_object();
    for (namespace, value) in attributes {
        json.key(namespace);
        json.raw(value);
    }
    json.end_object();
}

/// Writes the times and sizes of a stream, or of all.
pub(in crate::report) fn write_summary(json: &mut Json, summary: &StreamSummary) {
    json.entry("begin", summary.begin.map(Timestamp::as_nanos));
    json.entry("end", summary.end.map(Timestamp::as_nanos));
    for (key, number) in [
        ("packets", summary.packets),
        ("bytes", summary.bytes),
        ("discarded_events", summary.discarded_events),
        ("discarded_packets", summary.discarded_packets),
    ] {
        json.entry(key, number);
    }
    if let Some(events) = summary.events {
        json.entry("events", events);
    }
}
