//! From the class model to metadata: text in the language of the model's dialect.
//!
//! The languages are written beside where they are read. What is written is read again, and
//! handed out only if it means the same: a model that a language cannot hold is an error, never
//! wrong text. [`fit`](super::fit::fit) makes a model that it can hold.

use std::fmt;

use super::{ctf2, rfc, tsdl};
use crate::class::{Dialect, TraceClass};
use crate::deep;

/// Why a class model cannot be written as metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteError(pub(super) String);

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for WriteError {}

/// The metadata that says what a class model says, in the language of its dialect: plain text, or
/// of CTF 2 a JSON text sequence. That of RFC v1.1 does not state the native byte order, which
/// packets do.
///
/// # Errors
///
/// Where the dialect cannot hold the model as it is.
pub fn write(model: &TraceClass) -> Result<String, WriteError> {
    let written = deep::with_room(&[model], || match model.dialect {
        Dialect::Ctf18 => tsdl::write::write(model),
        Dialect::Ctf2 => ctf2::exact(model),
        Dialect::Rfc11 => rfc::write::write(model),
    });
    written.unwrap_or_else(|| {
        Err(WriteError(format!(
            "field classes lie too deep within each other: use at most {} levels",
            deep::MAX_LEVELS
        )))
    })
}
