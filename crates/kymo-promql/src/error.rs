//! Why a query has no answer.

use std::fmt;

/// Why a query has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueryError {
    /// The text is not a query, or asks for what does not exist here.
    Parse(String),
    /// It cannot be computed, such as a match that is not unique.
    Execution(String),
    /// It would take more samples than this limit.
    TooManySamples(u64),
    /// It took longer than it may.
    Timeout,
}

impl QueryError {
    pub(crate) fn execution(text: impl Into<String>) -> Self {
        Self::Execution(text.into())
    }
}

impl fmt::Display for QueryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Parse(text) | Self::Execution(text) => f.write_str(text),
            Self::TooManySamples(limit) => write!(
                f,
                "query processing would load too many samples into memory: the limit is {limit}"
            ),
            Self::Timeout => f.write_str("query timed out in expression evaluation"),
        }
    }
}

impl std::error::Error for QueryError {}
