//! What is known of datagrams of collectd without showing their values.

use std::path::PathBuf;

use kymo_collectd::recording::Recording as Metrics;
use kymo_model::{FaultReport, Format, Recording};
use kymo_text::visible;

use super::info::{
    ClassInfo, StreamSummary, classes_text, plain_classes, streams_text, write_classes,
    write_streams, write_summary,
};
use super::text::{Style, Table};
use super::{Json, begin_recording, faults_below, span_rows, write_faults, write_notes};

/// What is known of datagrams of collectd without showing their values.
#[derive(Clone, Debug)]
pub struct MetricsInfo {
    /// What was opened.
    pub path: PathBuf,
    /// Format and version: a capture, or one datagram.
    pub format: Format,
    /// Size of the file in bytes.
    pub size: u64,
    /// Number of datagrams.
    pub datagrams: u64,
    /// Number of lists of values.
    pub lists: u64,
    /// Number of messages.
    pub messages: u64,
    /// Streams: of lists, and of messages.
    pub streams: Vec<StreamSummary>,
    /// Event classes.
    pub event_classes: Vec<ClassInfo>,
    /// What is odd, and no damage.
    pub notes: Vec<String>,
    /// Damage found while opening.
    pub faults: Vec<FaultReport>,
}

impl MetricsInfo {
    pub(super) fn new(metrics: &Metrics) -> Self {
        Self {
            path: metrics.path().to_path_buf(),
            format: metrics.format(),
            size: metrics.size(),
            datagrams: metrics.datagrams(),
            lists: metrics.lists(),
            messages: metrics.messages(),
            streams: (0..metrics.streams().len())
                .map(|stream| StreamSummary::new(metrics, stream))
                .collect(),
            event_classes: plain_classes(metrics.event_classes()),
            notes: metrics.notes().to_vec(),
            faults: metrics.faults().to_vec(),
        }
    }

    pub(super) fn write_json(&self, json: &mut Json) {
        begin_recording(json, &self.path, self.format);
        write_summary(json, &StreamSummary::total(&self.streams));
        for (key, number) in [
            ("file_bytes", self.size),
            ("datagrams", self.datagrams),
            ("value_lists", self.lists),
            ("notifications", self.messages),
        ] {
            json.entry(key, number);
        }
        write_streams(json, &self.streams);
        write_classes(json, &self.event_classes);
        write_notes(json, &self.notes);
        write_faults(json, &self.faults, 0);
        json.end_object();
    }

    pub(super) fn to_text(&self, style: &Style, fields: bool) -> String {
        let total = StreamSummary::total(&self.streams);
        let mut text = format!("{}\n", visible(&self.path.to_string_lossy()));
        let mut table = Table::default();
        let mut line = |key: &str, value: String| table.row([format!("  {key}"), value]);
        let Format { name, version } = self.format;
        line("format", format!("{name} {version}"));
        for (key, value) in span_rows(&total, style) {
            line(key, value);
        }
        for (key, count) in [
            ("bytes", self.size),
            ("datagrams", self.datagrams),
            ("value lists", self.lists),
            ("notifications", self.messages),
            ("faults", self.faults.len() as u64),
        ] {
            line(key, style.count(count));
        }
        for note in &self.notes {
            line("note", note.clone());
        }
        text += &table.align(&[false, false]);
        text += &streams_text(&self.path, &self.streams, style);
        text += &classes_text(&self.event_classes, fields);
        text + &faults_below(&self.faults, 0, style)
    }
}
