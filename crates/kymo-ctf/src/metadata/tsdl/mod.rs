//! TSDL, the metadata language of CTF 1.8.3 (§7, appendix C).
//!
//! [`parser`] makes a tree of the text, [`declare`] looks up what the tree names,
//! [`build`] makes field classes of types wherever they are used, and [`blocks`] puts
//! the trace, its streams and its events together. [`write`] goes the other way.

mod ast;
mod attributes;
mod blocks;
mod build;
mod declare;
mod leaves;
pub(super) mod names;
mod parser;
mod references;
mod resolve;
mod types;
pub(super) mod write;

#[cfg(test)]
mod tests;

use kymo_text::diagnostic::Diagnostic;

use crate::class::TraceClass;
use crate::metadata::limits::Warnings;

/// Reads metadata; also returns the warnings.
pub(super) fn parse(text: &str) -> Result<(TraceClass, Vec<Diagnostic>), Diagnostic> {
    let mut warnings = Warnings::default();
    let root = parser::parse(text, &mut warnings)?;
    blocks::lower(&root, text.len(), warnings)
}
