//! The answer to a query.

use crate::{Labels, Sample};

/// Series with their samples.
pub(crate) type Matrix = Vec<(Labels, Vec<Sample>)>;

/// The answer to a query.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// A number without labels.
    Scalar(Sample),
    /// A text, and its time in milliseconds since 1970.
    Text(i64, String),
    /// Series with one value each.
    Vector(Vec<(Labels, Sample)>),
    /// Series with several values each.
    Matrix(Vec<(Labels, Vec<Sample>)>),
}

/// The answer, and what users should know about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Evaluated {
    /// The answer.
    pub answer: Answer,
    /// Warnings, each once.
    pub warnings: Vec<String>,
}
