//! What a recording is, holds, and lacks: the answers of `info`, `stats` and `check`.
//!
//! Each is a plain structure, with a rendering as text and one as JSON. [`Info`] is known
//! without decoding events; [`Stats`] and [`Check`] decode chunks in all threads and put
//! the parts together in the order of the chunks, so that the result does not depend on
//! the number of threads.

mod check;
mod database;
mod info;
mod log;
mod metrics;
mod scan;
mod spark;
mod stats;
mod summary;
mod text;

pub use check::Check;
pub use database::{ArchiveInfo, DatabaseInfo, SourceInfo};
pub use info::{
    Attributes, ClassInfo, ClockInfo, FieldInfo, Identity, Info, RecordingInfo, StreamClassInfo,
    StreamSummary, TraceInfo,
};
pub(crate) use kymo_text::json::Writer as Json;
pub use log::{LogInfo, SectionInfo};
pub use metrics::MetricsInfo;
pub use scan::Options;
pub use spark::Spread;
pub use stats::{Count, Stats};
pub use text::Style;
pub(crate) use text::{Table, within};

#[cfg(test)]
mod tests;

use std::path::Path;

use kymo_model::{FaultReport, Format};
use kymo_text::visible;

/// Faults that are listed; what is beyond is only counted.
pub const MOST_FAULTS: usize = 10_000;

/// A line for each fault, and how many there are beyond them, as every report ends with them.
fn faults_text(faults: &[FaultReport], more: u64, style: &Style) -> String {
    let line = |fault: &FaultReport| {
        let severity = if fault.code.is_warning() {
            "warning"
        } else {
            "error"
        };
        let text = fault.to_string();
        format!("{severity}[{}]: {}\n", fault.code, visible(&text))
    };
    let mut text: String = faults.iter().map(line).collect();
    if more > 0 {
        text += &format!("and {} faults more\n", style.count(more));
    }
    text
}

/// The same below something else: nothing where there are none.
pub(crate) fn faults_below(faults: &[FaultReport], more: u64, style: &Style) -> String {
    match faults.is_empty() {
        true => String::new(),
        false => format!("\n{}", faults_text(faults, more, style)),
    }
}

/// When the streams of a recording begin and end, as rows of a table.
fn span_rows(total: &StreamSummary, style: &Style) -> Vec<(&'static str, String)> {
    let mut rows = vec![
        ("begins", style.optional_time(total.begin)),
        ("ends", style.optional_time(total.end)),
    ];
    if let (Some(begin), Some(end)) = (total.begin, total.end) {
        let nanos = end.as_nanos().abs_diff(begin.as_nanos());
        rows.push(("duration", style.duration(nanos)));
    }
    rows
}

/// Begins a report: its first key is the version of its schema, which changes when a key is removed or changes its
/// meaning.
pub(crate) fn begin_report() -> Json {
    let mut json = Json::default();
    json.begin_object();
    json.entry("schema", 1_u64);
    json
}

/// Begins the object of a recording: with where it is and what it is.
fn begin_recording(json: &mut Json, path: &Path, format: Format) {
    json.begin_object();
    json.entry("path", path.as_os_str().as_encoded_bytes());
    json.entry("format", format.name.as_bytes());
    json.entry("version", format.version.as_bytes());
}

/// Writes the list of what is odd in a recording.
fn write_notes(json: &mut Json, notes: &[String]) {
    json.begin_list("notes");
    for note in notes {
        json.value(note.as_bytes());
    }
    json.end_list();
}

/// Writes the list of faults as every report has it; where not all are listed, `more_faults` says
/// how many are not.
pub(crate) fn write_faults(json: &mut Json, faults: &[FaultReport], more: u64) {
    json.begin_list("faults");
    for fault in faults {
        json.begin_object();
        json.entry("file", fault.file.as_os_str().as_encoded_bytes());
        json.entry("offset", fault.offset);
        json.entry("packet", fault.packet);
        json.entry("event", fault.event);
        json.entry("field", fault.field.as_deref());
        json.entry("code", fault.code.as_str().as_bytes());
        json.entry("message", fault.message.as_bytes());
        json.end_object();
    }
    json.end_list();
    if more > 0 {
        json.entry("more_faults", more);
    }
}
