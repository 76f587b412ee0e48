//! PromQL over any source of series: no sockets, no files, no clock.
//!
//! [`Expression::parse`] reads a query, within bounds of length and depth; [`evaluate`] computes it over a
//! [`SeriesSource`]. The semantics are those of Prometheus 2.42:
//! windows of ranges are closed at both ends, a sample counts for five minutes, the last millisecond included.
//!
//! Values are computed for all steps of a query together: a vector is a list of columns, one value for each
//! step, of which some are absent. So each series is read once, whatever the number of steps.

mod aggregate;
mod answer;
mod ast;
mod binary;
mod compose;
mod error;
mod eval;
mod functions;
mod grammar;
mod labels;
mod number;
mod over_time;
mod parse;
mod regexes;
mod select;
mod source;
mod tokens;

pub use answer::{Answer, Evaluated};
pub use error::QueryError;
pub use eval::{Limits, QueryTime, evaluate};
pub use labels::{Labels, NAME};
pub use number::number;
pub use parse::{Expression, Matchers, parse_duration};
pub use source::{Request, Sample, Series, SeriesSource};
