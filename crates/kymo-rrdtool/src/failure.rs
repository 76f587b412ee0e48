//! Why a command did not do its work.

use std::fmt;
use std::io;

/// Why a command did not do its work. Its exit status is 1.
#[derive(Debug)]
pub enum Failure {
    /// What rrdtool would print behind `ERROR: `.
    Message(String),
    /// Standard output could not be written. If it was closed, nobody needs to be told.
    Output(io::Error),
}

impl Failure {
    /// A failure that is told with these words.
    pub fn new(message: impl Into<String>) -> Self {
        Self::Message(message.into())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Message(message) => f.write_str(message),
            Self::Output(error) => write!(f, "writing the output: {error}"),
        }
    }
}

impl std::error::Error for Failure {}

/// The message of the operating system, without the number that Rust puts behind it.
pub fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    match (error.raw_os_error(), text.rfind(" (os error ")) {
        (Some(_), Some(end)) => text[..end].to_owned(),
        _ => text,
    }
}
