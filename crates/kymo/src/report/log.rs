//! What is known of an event log without showing its events.

use std::path::PathBuf;

use kymo_cpel::elog::Recording as Elog;
use kymo_cpel::file::kind;
use kymo_cpel::recording::Recording as Cpel;
use kymo_machine::ByteOrder;
use kymo_maps::MapExport;
use kymo_model::{FaultReport, Format, Recording};
use kymo_perfetto::Recording as Perfetto;
use kymo_text::visible;
use kymo_time::Timestamp;

use super::info::{
    ClassInfo, ClockInfo, StreamSummary, byte_order_name, classes_text, plain_classes,
    streams_text, write_classes, write_clocks, write_streams, write_summary,
};
use super::text::{Style, Table};
use super::{Json, begin_recording, faults_below, span_rows, write_faults, write_notes};

/// What is known of an event log without showing its events.
#[derive(Clone, Debug)]
pub struct LogInfo {
    /// What was opened.
    pub path: PathBuf,
    /// Format and version.
    pub format: Format,
    /// What people call it.
    pub name: Option<String>,
    /// The order of the bytes of its numbers.
    pub byte_order: ByteOrder,
    /// When the file was written; of CPEL.
    pub date: Option<Timestamp>,
    /// Size of the file in bytes.
    pub size: u64,
    /// Number of events.
    pub events: u64,
    /// Number of tracks with a name.
    pub tracks: u64,
    /// Number of symbols; of CPEL.
    pub symbols: u64,
    /// Sections; of CPEL.
    pub sections: Vec<SectionInfo>,
    /// Clocks, one for each stream.
    pub clocks: Vec<ClockInfo>,
    /// Streams: sections of events.
    pub streams: Vec<StreamSummary>,
    /// Streams whose events are not in the order of time, by their positions.
    pub unsorted: Vec<usize>,
    /// Event classes.
    pub event_classes: Vec<ClassInfo>,
    /// What is odd, and no damage.
    pub notes: Vec<String>,
    /// Damage found while opening.
    pub faults: Vec<FaultReport>,
}

/// A section of a CPEL file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SectionInfo {
    /// Its type.
    pub kind: u32,
    /// Where it begins, in bytes from the beginning of the file.
    pub offset: u64,
    /// Size of its data in bytes.
    pub size: u64,
}

impl SectionInfo {
    /// What sections of its type are called.
    fn name(&self) -> &'static str {
        kind::name(self.kind).unwrap_or("unknown")
    }
}

impl LogInfo {
    /// What all kinds of logs contain.
    fn new<R: Recording>(recording: &R) -> Self {
        let streams = recording.streams().iter();
        Self {
            path: recording.path().to_path_buf(),
            format: recording.format(),
            name: recording.name().map(str::to_string),
            byte_order: ByteOrder::Big,
            date: None,
            size: 0,
            events: 0,
            tracks: 0,
            symbols: 0,
            sections: Vec::new(),
            clocks: streams
                .filter_map(|stream| stream.clock.clone().map(ClockInfo))
                .collect(),
            streams: (0..recording.streams().len())
                .map(|stream| StreamSummary::new(recording, stream))
                .collect(),
            unsorted: Vec::new(),
            event_classes: plain_classes(recording.event_classes()),
            notes: Vec::new(),
            faults: recording.faults().to_vec(),
        }
    }

    pub(super) fn of_cpel(log: &Cpel) -> Self {
        let sections = log.sections().iter().map(|section| SectionInfo {
            kind: section.kind,
            offset: section.offset as u64,
            size: section.data.len() as u64,
        });
        let date = log.header().map(|header| i64::from(header.date));
        Self {
            byte_order: log.byte_order(),
            date: date.map(|seconds| Timestamp::from_nanos(seconds * 1_000_000_000)),
            size: log.size(),
            events: log.events(),
            tracks: log.definitions().tracks.len() as u64,
            symbols: log.definitions().symbols.len() as u64,
            sections: sections.collect(),
            unsorted: (0..log.streams().len())
                .filter(|&stream| !log.is_sorted(stream))
                .collect(),
            notes: log.notes().to_vec(),
            ..Self::new(log)
        }
    }

    pub(super) fn of_elog(log: &Elog) -> Self {
        Self {
            size: log.size(),
            events: log.events(),
            tracks: log.log().tracks.len() as u64,
            ..Self::new(log)
        }
    }

    pub(super) fn of_perfetto(trace: &Perfetto) -> Self {
        Self {
            byte_order: ByteOrder::Little,
            size: trace.size(),
            events: trace.events(),
            tracks: trace.tracks().len() as u64,
            notes: trace.notes().to_vec(),
            ..Self::new(trace)
        }
    }

    pub(super) fn of_maps(export: &MapExport) -> Self {
        Self {
            byte_order: ByteOrder::Little,
            size: export.size(),
            events: export.counters(),
            notes: export.notes().to_vec(),
            ..Self::new(export)
        }
    }

    pub(super) fn write_json(&self, json: &mut Json) {
        begin_recording(json, &self.path, self.format);
        json.entry("name", self.name.as_deref());
        json.entry("byte_order", byte_order_name(self.byte_order).as_bytes());
        json.entry("date", self.date.map(Timestamp::as_nanos));
        write_summary(json, &StreamSummary::total(&self.streams));
        for (key, number) in [
            ("file_bytes", self.size),
            ("events", self.events),
            ("tracks", self.tracks),
            ("symbols", self.symbols),
        ] {
            json.entry(key, number);
        }
        json.begin_list("sections");
        for section in &self.sections {
            json.begin_object();
            json.entry("type", u64::from(section.kind));
            json.entry("name", section.name().as_bytes());
            json.entry("offset", section.offset);
            json.entry("bytes", section.size);
            json.end_object();
        }
        json.end_list();
        write_clocks(json, &self.clocks);
        write_streams(json, &self.streams);
        json.begin_list("unsorted_streams");
        for &stream in &self.unsorted {
            json.value(stream as u64);
        }
        json.end_list();
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
        let format = &self.format;
        let format = format!("{} {}", format.name.to_uppercase(), format.version);
        line("format", format.trim_end().to_string());
        line("byte order", byte_order_name(self.byte_order).to_string());
        if let Some(date) = self.date {
            line("written", style.date(date));
        }
        for (key, value) in span_rows(&total, style) {
            line(key, value);
        }
        line("bytes", style.count(self.size));
        line("events", style.count(self.events));
        line(
            "event classes",
            style.count(self.event_classes.len() as u64),
        );
        line("named tracks", style.count(self.tracks));
        if self.symbols > 0 {
            line("symbols", style.count(self.symbols));
        }
        line("faults", style.count(self.faults.len() as u64));
        let mut before = None;
        for clock in &self.clocks {
            // Sections mostly have the same.
            let clock = clock.lines();
            if before.as_ref() != Some(&clock) {
                for (label, text) in &clock {
                    line(label, text.clone());
                }
            }
            before = Some(clock);
        }
        for &stream in &self.unsorted {
            let name = &self.streams[stream].name;
            line("not in order", format!("{name}: shown sorted by time"));
        }
        for note in &self.notes {
            line("note", note.clone());
        }
        text += &table.align(&[false, false]);
        text += &self.sections_text(style);
        text += &streams_text(&self.path, &self.streams, style);
        text += &classes_text(&self.event_classes, fields);
        text + &faults_below(&self.faults, 0, style)
    }

    fn sections_text(&self, style: &Style) -> String {
        if self.sections.is_empty() {
            return String::new();
        }
        let mut table = Table::default();
        table.header(&["  section", "type", "offset", "bytes"]);
        for section in &self.sections {
            table.row([
                format!("  {}", section.name()),
                section.kind.to_string(),
                style.count(section.offset),
                style.count(section.size),
            ]);
        }
        format!("\n{}", table.align(&[false, true, true, true]))
    }
}
