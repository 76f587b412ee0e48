//! The class model as metadata of CTF 2.
//!
//! [`fit`] brings the model to what CTF 2 can hold, or refuses it; [`fragments`] and [`classes`]
//! write it. What was written is read again: it is handed out only if it means the same.

mod classes;
mod fit;
mod fragments;
mod json;

use std::fmt;

use crate::class::TraceClass;

/// Why a class model cannot be written as metadata of CTF 2.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteError(String);

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for WriteError {}

/// The metadata of CTF 2 that says what a class model says: a JSON text sequence.
///
/// The layout of fields stays as it is, so that the data streams of a trace of CTF 1.8
/// can be read with it. These have another form in CTF 2:
///
/// * the native byte order is left out: each field has its own;
/// * a UUID in packet headers, in CTF 1.8 an array of integers, is a BLOB;
/// * log level and identifier of the model element are attributes;
/// * times without a clock are ordinary numbers.
///
/// # Errors
///
/// Where CTF 2 cannot hold what the model says: a bit field that must not cross a unit, a length
/// that lies within its array, text aligned to more than bytes, a role that CTF 2 does not have
/// in that place, two environment entries of one name, and the like.
pub fn write(trace: &TraceClass) -> Result<String, WriteError> {
    let trace = fit::fitted(trace)?;
    let text = fragments::text_of(&trace)?;
    let (read, _) = super::parse(&text)
        .map_err(|error| WriteError(format!("no class of CTF 2: {}", error.message)))?;
    if read != trace {
        return Err(WriteError(
            "no class of CTF 2: a length or selector refers to fields that no location tells \
             apart, or attributes contradict a log level"
                .to_owned(),
        ));
    }
    Ok(text)
}
