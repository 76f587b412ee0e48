//! Faults of streams whose events are not in the order of time.

use kymo_model::{Chunk, EventMark, Fault, FaultCode, FaultReport, Recording};

/// The fault that an event goes back in time; `None` where the times of its packet have
/// shown it when the recording was opened: once is enough.
pub(crate) fn report<R: Recording>(
    mark: &EventMark,
    recording: &R,
    chunk: &Chunk,
) -> Option<FaultReport> {
    // What was added to a capture while it was open is behind what was there.
    if recording.format().name == "collectd" {
        return None;
    }
    let fault = Fault::new(FaultCode::NotMonotonic, mark.bit, mark.ticks);
    let report = recording.report(chunk, Some((mark.number, mark.class)), fault);
    let is_known = recording.faults().iter().any(|known| {
        known.code == report.code && known.file == report.file && known.packet == report.packet
    });
    (!is_known).then_some(report)
}
