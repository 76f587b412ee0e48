//! The metadata language of CTF 2 (CTF2-SPEC-2.0 §5): a sequence of JSON fragments.
//!
//! To read it, `sequence` cuts the text into fragments, `json` reads them, `classes` makes
//! a tree of field classes in which aliases are looked up, `build` makes field classes of it
//! wherever they are used, and `fragments` puts the trace together. To write it, there is
//! [`write()`].

mod build;
mod classes;
mod fragments;
mod json;
mod location;
mod log;
mod properties;
mod ranges;
mod sequence;
mod types;
mod write;

#[cfg(test)]
mod tests;

use kymo_text::diagnostic::Diagnostic;

use crate::class::TraceClass;

pub(super) use self::classes::ANY_MEDIA;
#[cfg(test)]
pub(crate) use self::log::{LEVELS, SPACES};
pub(super) use self::log::{report as report_log, reports_only as is_log};
pub(super) use self::write::exact;
pub use self::write::write;
pub use crate::metadata::write::WriteError;

/// Reads metadata; also returns the warnings.
pub(super) fn parse(text: &str) -> Result<(TraceClass, Vec<Diagnostic>), Diagnostic> {
    fragments::read(text)
}
