//! Why a command did not do its work.

use std::fmt;
use std::io;

use kymo_io::path::shown;
pub(crate) use kymo_io::reason;
use kymo_rrd::engine::FileError;

use crate::open::cannot_open;

/// Why a command did not do its work. Its exit status is 1.
#[derive(Debug)]
pub enum Failure {
    /// What rrdtool would print behind `ERROR: `.
    Message(String),
    /// Standard output could not be written. If it was closed, no message is needed.
    Output(io::Error),
}

impl Failure {
    /// A failure that is reported with these words.
    pub fn new(message: impl Into<String>) -> Self {
        Self::Message(message.into())
    }
}

/// What rrdtool says of a file that cannot be worked on, where it says something.
pub(crate) fn of_file(name: &[u8], error: &FileError) -> Failure {
    match error {
        FileError::Open(error) => match error.kind() {
            io::ErrorKind::WouldBlock => Failure::new("could not lock RRD"),
            _ => cannot_open(name, error),
        },
        FileError::Database(error) => Failure::new(format!("'{}': {error}", shown(name))),
        FileError::Unlock(error) => Failure::new(format!("'{}': {}", shown(name), reason(error))),
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Message(message) => f.write_str(message),
            Self::Output(error) => write!(f, "writing the output: {}", reason(error)),
        }
    }
}

impl std::error::Error for Failure {}
