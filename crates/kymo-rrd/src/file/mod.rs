//! Files: those of every machine, the portable one, what they are converted to, and what is wrong with
//! them.

pub mod check;
pub mod convert;
pub mod native;
pub mod portable;
pub mod rrd4j;
mod source;
pub mod whisper;

pub use source::{Form, Source, is_database};
