//! What cannot be written, and why.

use std::fmt;
use std::io;

use kymo_model::{FieldId, Schema};

use crate::decode::CompileError;
use crate::trace::report;

/// Why something is not written. What was written before stays as it is.
#[derive(Debug)]
#[non_exhaustive]
pub enum WriteError {
    /// The classes cannot be compiled.
    Classes(CompileError),
    /// A value does not fit its field, is of another kind, or is missing.
    Field {
        /// Scope and names of the field, such as `payload.list[].len`.
        field: String,
        /// What is wrong, and what there should be.
        problem: String,
    },
    /// The stream class, event class or place asked for does not exist, the time goes back, and
    /// the like: described in words.
    Misuse(String),
    /// Events at the end of a packet are taken back: the last of them ends within a byte, and packets
    /// do not state the size of their content, so that readers would look for another one behind it.
    LeftOut {
        /// How many.
        events: u64,
    },
    /// The packet could not be handed on.
    Output(io::Error),
}

impl WriteError {
    pub(super) fn field(schema: &Schema, field: FieldId, problem: impl Into<String>) -> Self {
        Self::Field {
            field: report::field_path(schema, field).unwrap_or_default(),
            problem: problem.into(),
        }
    }

    pub(super) fn misuse<T>(problem: impl Into<String>) -> Result<T, Self> {
        Err(Self::Misuse(problem.into()))
    }
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Classes(error) => write!(f, "{error}"),
            Self::Field { field, problem } => write!(f, "field `{field}`: {problem}"),
            Self::Misuse(problem) => f.write_str(problem),
            Self::LeftOut { events } => write!(
                f,
                "the packet cannot end within a byte, as packets do not have the size of their \
                 content: left out of its last events: {events}"
            ),
            Self::Output(error) => f.write_str(&kymo_io::reason(error)),
        }
    }
}

impl std::error::Error for WriteError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Classes(error) => Some(error),
            Self::Output(error) => Some(error),
            _ => None,
        }
    }
}

impl From<io::Error> for WriteError {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

impl From<CompileError> for WriteError {
    fn from(error: CompileError) -> Self {
        Self::Classes(error)
    }
}
