//! What can be wrong with a portable file, or with what is to become one.

use std::fmt;
use std::io;

use crate::fault;
use crate::model::ShapeError;

/// Why a portable file cannot be read, made or updated.
#[derive(Debug)]
pub enum Error {
    /// Reading or writing failed.
    Io(io::Error),
    /// The file does not begin as portable files do.
    NotPortable {
        /// The bytes it begins with, at most eight.
        found: Vec<u8>,
    },
    /// Something in the file is not what it must be.
    Wrong {
        /// What it is, such as `heartbeat of data source 3`.
        what: String,
        /// Where it is, in bytes from the beginning of the file.
        offset: u64,
        /// What was found.
        found: String,
        /// What was expected.
        expected: String,
    },
    /// Neither state slot is whole: the machine stopped during updates that were not synced, or
    /// the file was damaged.
    NoState {
        /// Where the slots are.
        offset: u64,
    },
    /// The parts of what the file is to hold do not fit together.
    Shape(ShapeError),
    /// A value that the file cannot hold.
    CannotHold {
        /// What it is, such as `last update`.
        what: String,
        /// The value that was given.
        found: String,
        /// What it can be.
        expected: String,
    },
    /// An update has more rows with values of their own than the journal has room for.
    JournalFull {
        /// Bytes that the rows need.
        needed: u64,
        /// Bytes that there are.
        room: u64,
    },
    /// An update failed, and the file has not been read again since.
    Stale,
}

impl Error {
    pub(super) fn wrong(
        what: impl Into<String>,
        offset: u64,
        found: impl fmt::Display,
        expected: impl Into<String>,
    ) -> Self {
        Self::Wrong {
            what: what.into(),
            offset,
            found: found.to_string(),
            expected: expected.into(),
        }
    }

    pub(super) fn cannot_hold(
        what: impl Into<String>,
        found: impl fmt::Display,
        expected: impl Into<String>,
    ) -> Self {
        Self::CannotHold {
            what: what.into(),
            found: found.to_string(),
            expected: expected.into(),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => f.write_str(&kymo_io::reason(error)),
            Self::NotPortable { found } => write!(
                f,
                "offset 0: found `{}`, expected the beginning of a portable RRD `{}`",
                found.escape_ascii(),
                super::MAGIC.escape_ascii()
            ),
            Self::Wrong {
                what,
                offset,
                found,
                expected,
            } => write!(
                f,
                "offset {offset}: {what}: found {found}, expected {expected}"
            ),
            Self::NoState { offset } => write!(
                f,
                "offset {offset}: neither state slot is whole: updates that were not synced when the \
                 machine stopped, or damage"
            ),
            Self::Shape(error) => error.fmt(f),
            Self::CannotHold {
                what,
                found,
                expected,
            } => write!(
                f,
                "{what}: found {found}, but a portable file holds {expected}"
            ),
            Self::JournalFull { needed, room } => write!(
                f,
                "the rows of the update need {needed} bytes of journal, the file has room for {room}"
            ),
            Self::Stale => f.write_str("an update failed, and the file was not read again since"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            Self::Shape(error) => Some(error),
            _ => None,
        }
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<ShapeError> for Error {
    fn from(error: ShapeError) -> Self {
        Self::Shape(error)
    }
}

impl From<Error> for fault::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::Wrong {
                what,
                offset,
                found,
                expected,
            } => Self::new(what, offset, found, expected),
            Error::CannotHold {
                what,
                found,
                expected,
            } => Self::new(what, None, found, expected),
            Error::Shape(error) => Self::new(error.what, None, error.found, error.expected),
            Error::NoState { offset } => {
                let expected = "one that is whole";
                Self::new("state slots", offset, "neither of them whole", expected)
                    .because("updates were not synced when the machine stopped, or it is damaged")
            }
            other => Self::new("file", None, other, "a portable RRD"),
        }
    }
}
