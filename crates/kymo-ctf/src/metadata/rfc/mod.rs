//! The metadata language of RFC v1.1, "Common Trace Format for Linux", of November 2010 (§4, §7).
//!
//! It became TSDL, has the same tokens, and is another language: types have parents from which
//! they inherit, packet headers and event headers are fixed, and streams come in sections.
//!
//! [`parser`] makes a tree of the text, [`declare`] looks up what the tree names, [`types`] makes
//! field classes, [`layout`] has the headers, and [`blocks`] puts the trace together. [`write`] goes the other way. Metadata
//! in [`packets`] is joined before. What the RFC leaves open, or says in two ways, is decided in
//! `docs/formats/ctf-rfc-v1.1.md`.

mod ast;
mod attributes;
mod blocks;
mod declare;
mod layout;
pub(crate) mod packets;
mod parser;
mod types;
pub(super) mod write;

#[cfg(test)]
mod tests;

use kymo_machine::ByteOrder;
use kymo_text::diagnostic::Diagnostic;

pub(super) use self::layout::{Alignment, Fixed};
pub(crate) use self::layout::{HEADER_BYTES, PacketHeader, byte_order};

use super::lexer::{Kind, Lexer, Mark};
use super::limits::Warnings;
use crate::class::TraceClass;

/// Reads metadata of a trace of a native byte order; also returns the warnings.
pub(super) fn parse(
    text: &str,
    order: ByteOrder,
) -> Result<(TraceClass, Vec<Diagnostic>), Diagnostic> {
    let mut warnings = Warnings::default();
    let root = parser::parse(text, &mut warnings)?;
    blocks::lower(&root, text.len(), order, warnings)
}

/// Whether a text is in this language, and not in TSDL: the first declaration decides that only
/// one of the two knows.
pub(super) fn is_language_of(text: &str) -> bool {
    let mut lexer = Lexer::new(text);
    // The first tokens since the last brace or semicolon.
    let mut start: Vec<&str> = Vec::new();
    let mut depth = 0usize;
    let mut in_trace = false;
    while let Ok(token) = lexer.next() {
        match token.kind {
            Kind::End => return false,
            Kind::Mark(Mark::BraceOpen) => {
                if depth == 0 {
                    match start[..] {
                        ["section" | "type"] | ["type" | "abstract_type", _] => return true,
                        _ => in_trace = start == ["trace"],
                    }
                }
                depth += 1;
                start.clear();
            }
            Kind::Mark(Mark::BraceClose) => {
                depth = depth.saturating_sub(1);
                start.clear();
            }
            Kind::Mark(Mark::Semicolon) => {
                if in_trace && depth == 1 {
                    match start[..] {
                        // TSDL, or of no version that there is.
                        ["major", "=", major] if major != "1" => return false,
                        ["minor", "=", minor] => return minor == "1",
                        _ => {}
                    }
                }
                start.clear();
            }
            _ if start.len() < 4 => start.push(&text[token.span.start..token.span.end]),
            _ => {}
        }
    }
    false
}
