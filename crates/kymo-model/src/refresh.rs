//! What has changed in a recording since it was opened.

use std::fmt;
use std::path::{Path, PathBuf};

/// A place among the rows of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowPlace {
    /// Position of the chunk in its stream.
    pub chunk: usize,
    /// Position in the chunk.
    pub number: u64,
}

/// What happened to the rows of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// Rows were added.
    Appended {
        /// The first of them.
        from: RowPlace,
    },
    /// Rows have other content than before.
    Replaced {
        /// The first of them; all behind it are other rows, too.
        from: RowPlace,
    },
    /// The oldest rows no longer exist.
    Vanished {
        /// The first row that is left.
        before: RowPlace,
    },
}

/// A change of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamChange {
    /// Position of the stream in its recording.
    pub stream: usize,
    /// What happened.
    pub change: Change,
}

/// What a refresh has found, by stream: what vanished first, then what was replaced, then what was appended.
///
/// Streams and event classes that are new come behind the others, and each row that has not changed keeps its
/// stream, chunk and number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refreshed {
    /// The changes of streams.
    pub changes: Vec<StreamChange>,
    /// Whether there are other event classes than before.
    pub has_other_classes: bool,
}

impl RowPlace {
    /// The place of a row that is counted through its stream, in chunks of `rows_of_chunk` rows.
    pub fn of_row(row: usize, rows_of_chunk: usize) -> Self {
        Self {
            chunk: row / rows_of_chunk.max(1),
            number: (row % rows_of_chunk.max(1)) as u64,
        }
    }
}

impl Refreshed {
    /// Whether nothing has changed.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty() && !self.has_other_classes
    }

    /// Adds a change.
    pub fn push(&mut self, stream: usize, change: Change) {
        self.changes.push(StreamChange { stream, change });
    }
}

/// Why a recording cannot be refreshed now. It is as it was, and may be asked again: a file that is being
/// written may not make sense yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefreshError {
    /// What cannot be read.
    pub path: PathBuf,
    /// Why.
    pub message: String,
}

impl RefreshError {
    /// What cannot be read, and why.
    pub fn new(path: &Path, error: &impl ToString) -> Self {
        Self {
            path: path.to_path_buf(),
            message: error.to_string(),
        }
    }
}

impl fmt::Display for RefreshError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "cannot refresh `{}`: {}",
            self.path.display(),
            self.message
        )
    }
}

impl std::error::Error for RefreshError {}
