//! One type for the recordings of all formats.

/// A recording of any format.
///
/// With one format this is that format's recording; a second one makes it an
/// enumeration that implements [`Recording`](kymo_model::Recording) by delegation.
pub type AnyRecording = kymo_ctf::trace::Trace;
