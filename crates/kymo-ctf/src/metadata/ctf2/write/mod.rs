//! The class model as metadata of CTF 2.
//!
//! [`fragments`] and [`classes`] write it. What was written is read again: it is handed out only if
//! it means the same.

mod classes;
mod fragments;
mod json;

pub(super) use self::json::Json;

use crate::class::{Dialect, TraceClass};
use crate::metadata::fit::{Rule, fit};
use crate::metadata::write::WriteError;

/// The metadata of CTF 2 that says what a class model says: a JSON text sequence.
///
/// The layout of fields stays as it is, so that the data streams of a trace of CTF 1.8
/// can be read with it. [`fit`] reports what has another form in CTF 2:
///
/// * the native byte order is left out: each field has its own;
/// * a UUID in packet headers, in CTF 1.8 an array of integers, is a BLOB;
/// * log level and identifier of the model element are attributes;
/// * times without a clock are ordinary numbers.
///
/// # Errors
///
/// Where CTF 2 cannot hold what the model says with the same layout: a bit field that must not
/// cross a unit, text aligned to more than bytes, two environment entries of one name, and the
/// like.
pub fn write(trace: &TraceClass) -> Result<String, WriteError> {
    let fitted = fit(trace, Dialect::Ctf2).map_err(|error| WriteError(error.to_string()))?;
    let other = |change: &&_| is_of_layout(change);
    if let Some(change) = fitted.changes.iter().find(other) {
        return Err(WriteError(format!("with the same layout: {change}")));
    }
    exact(&fitted.model)
}

fn is_of_layout(change: &crate::metadata::fit::Change) -> bool {
    change.rule.recodes() || change.rule == Rule::Headers
}

/// The metadata of a model of CTF 2.
pub(in crate::metadata) fn exact(trace: &TraceClass) -> Result<String, WriteError> {
    let text = fragments::text_of(trace)?;
    let (read, _) = super::parse(&text)
        .map_err(|error| WriteError(format!("no class of CTF 2: {}", error.message)))?;
    if read != *trace {
        return Err(WriteError(
            "CTF 2 cannot describe the class: a length or selector refers to fields that have the \
             same location, or attributes contradict a log level"
                .to_owned(),
        ));
    }
    Ok(text)
}
