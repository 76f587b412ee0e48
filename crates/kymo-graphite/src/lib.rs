//! Graphite's targets over any source of series: no sockets, no files, no clock.
//!
//! [`Target::parse`] reads a target such as `aliasByNode(perSecond(web*.if.rx), 0)`; [`render`] computes it over a
//! [`SeriesSource`]. A value stands at the beginning of its step, as Graphite has it.

mod functions;
mod pattern;
mod seconds;
mod series;
mod target;

pub use functions::{NAMES, render};
pub use pattern::Pattern;
pub use seconds::seconds;
pub use series::{Series, SeriesSource, Window};
pub use target::{Argument, Target};

use std::fmt;

/// Why a target has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TargetError {
    /// It is not a target, or names a function that does not exist here.
    Target(String),
    /// It would take more values than this limit.
    TooManyValues(u64),
    /// It took longer than it may.
    Timeout,
}

impl fmt::Display for TargetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Target(text) => f.write_str(text),
            Self::TooManyValues(limit) => write!(f, "the target takes more than {limit} values"),
            Self::Timeout => f.write_str("the target takes too long"),
        }
    }
}

impl std::error::Error for TargetError {}
