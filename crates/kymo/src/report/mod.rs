//! What a recording is, holds, and lacks: the answers of `info`, `stats` and `check`.
//!
//! Each is a plain structure, with a rendering as text and one as JSON. [`Info`] is known
//! without decoding events; [`Stats`] and [`Check`] decode chunks in all threads and put
//! the parts together in the order of the chunks, so that the result does not depend on
//! the number of threads.

mod check;
mod database;
mod info;
mod json;
mod log;
mod metrics;
mod scan;
mod stats;
mod text;

pub use check::Check;
pub use database::{ArchiveInfo, DatabaseInfo, SourceInfo};
pub use info::{
    Attributes, ClassInfo, ClockInfo, FieldInfo, Identity, Info, RecordingInfo, StreamClassInfo,
    StreamSummary, TraceInfo,
};
pub(crate) use json::Json;
pub use log::{LogInfo, SectionInfo};
pub use metrics::MetricsInfo;
pub use scan::Options;
pub use stats::{Count, Stats};
pub use text::Style;
pub(crate) use text::{Table, within};

#[cfg(test)]
mod tests;

use kymo_model::FaultReport;
use kymo_text::visible;

/// Faults that are listed; what is beyond is only counted.
pub const MOST_FAULTS: usize = 10_000;

/// A line for each fault, as every report ends with them.
pub(crate) fn faults_text(faults: &[FaultReport]) -> String {
    let line = |fault: &FaultReport| {
        let severity = if fault.code.is_warning() {
            "warning"
        } else {
            "error"
        };
        let text = fault.to_string();
        format!("{severity}[{}]: {}\n", fault.code, visible(&text))
    };
    faults.iter().map(line).collect()
}

/// Writes the list of faults as every report has it.
pub(crate) fn write_faults(json: &mut Json, faults: &[FaultReport]) {
    json.key("faults");
    json.begin_array();
    for fault in faults {
        json.begin_object();
        json.key("file");
        json.text(fault.file.as_os_str().as_encoded_bytes());
        json.key("offset");
        json.number(fault.offset);
        json.key("packet");
        json.optional_number(fault.packet);
        json.key("event");
        json.optional_number(fault.event);
        json.key("field");
        json.optional_text(fault.field.as_deref());
        json.key("code");
        json.text(fault.code.as_str().as_bytes());
        json.key("message");
        json.text(fault.message.as_bytes());
        json.end_object();
    }
    json.end_array();
}
