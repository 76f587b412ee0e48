//! What is known, as JSON.

use kymo_ctf::class::EnvironmentValue;
use kymo_time::{Clock, Origin, Timestamp};

use super::{ClassInfo, ClockInfo, StreamSummary, TraceInfo, byte_order_name};
use crate::report::json::Json;
use crate::report::{begin_recording, write_faults};

impl TraceInfo {
    pub(super) fn write_json(&self, json: &mut Json) {
        begin_recording(json, &self.path, self.format);
        json.key("name");
        json.optional_text(self.name.as_deref());
        json.key("uid");
        json.optional_text(self.identity.uid.as_deref());
        json.key("namespace");
        json.optional_text(self.identity.namespace.as_deref());
        json.key("trace_name");
        json.optional_text(self.identity.name.as_deref());
        json.key("session");
        json.optional_number(self.session.map(u64::from));
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
        write_attributes(json, &self.attributes);
        write_summary(json, &self.total());
        write_clocks(json, &self.clocks);
        json.key("stream_classes");
        json.begin_array();
        for class in &self.stream_classes {
            json.begin_object();
            json.key("stream_class");
            json.number(class.id);
            json.key("name");
            json.optional_text(class.identity.name.as_deref());
            json.key("namespace");
            json.optional_text(class.identity.namespace.as_deref());
            json.key("uid");
            json.optional_text(class.identity.uid.as_deref());
            json.key("clock");
            json.optional_text(class.clock.as_deref());
            json.key("event_classes");
            json.number(class.event_classes);
            write_attributes(json, &class.attributes);
            json.end_object();
        }
        json.end_array();
        write_streams(json, &self.streams);
        write_classes(json, &self.event_classes);
        write_faults(json, &self.faults, 0);
        json.end_object();
    }
}

/// Writes the list of clocks.
pub(in crate::report) fn write_clocks(json: &mut Json, clocks: &[ClockInfo]) {
    json.key("clocks");
    json.begin_array();
    for ClockInfo(clock) in clocks {
        write_clock(json, clock);
    }
    json.end_array();
}

/// Writes the list of streams.
pub(in crate::report) fn write_streams(json: &mut Json, streams: &[StreamSummary]) {
    json.key("streams");
    json.begin_array();
    for stream in streams {
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
}

/// Writes the list of event classes.
pub(in crate::report) fn write_classes(json: &mut Json, classes: &[ClassInfo]) {
    json.key("event_classes");
    json.begin_array();
    for class in classes {
        json.begin_object();
        json.key("stream_class");
        json.number(class.stream_class);
        json.key("event_class");
        json.number(class.id);
        json.key("event");
        json.optional_text(class.identity.name.as_deref());
        json.key("namespace");
        json.optional_text(class.identity.namespace.as_deref());
        json.key("uid");
        json.optional_text(class.identity.uid.as_deref());
        json.key("log_level");
        json.optional_signed(class.log_level);
        json.key("emf_uri");
        json.optional_text(class.emf_uri.as_deref());
        write_attributes(json, &class.attributes);
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
}

fn write_clock(json: &mut Json, clock: &Clock) {
    json.begin_object();
    json.key("name");
    json.optional_text(clock.name.as_deref());
    json.key("namespace");
    json.optional_text(clock.namespace.as_deref());
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
    json.key("accuracy");
    json.optional_number(clock.accuracy);
    json.key("origin");
    match &clock.origin {
        Origin::UnixEpoch => json.text(b"unix-epoch"),
        Origin::Unknown => json.null(),
        Origin::Named {
            namespace,
            name,
            uid,
        } => {
            json.begin_object();
            json.key("namespace");
            json.optional_text(namespace.as_deref());
            json.key("name");
            json.text(name.as_bytes());
            json.key("uid");
            json.text(uid.as_bytes());
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
        json.value(value);
    }
    json.end_object();
}

/// Writes the times and sizes of a stream, or of all.
pub(in crate::report) fn write_summary(json: &mut Json, summary: &StreamSummary) {
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
    if let Some(events) = summary.events {
        json.key("events");
        json.number(events);
    }
}
