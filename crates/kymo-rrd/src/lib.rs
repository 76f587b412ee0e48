//! Round-robin databases (RRD): files of every machine, and their conversion.
//!
//! An RRD file is a row of C structs, written as they lay in the memory of the machine that
//! made it. [`model`] says what such a file means, whatever the machine.
//!
//! [`native`] reads and writes these files, [`xml`] what rrdtool dumps, [`recording`] shows the rows
//! of a database as samples in time order.
//!
//! [`portable`] is the form of file that is the same everywhere and survives a crash.
//!
//! Everything here works on byte slices: files are opened by the caller. Nothing is global,
//! and nothing depends on the machine that runs it.

pub mod check;
pub mod convert;
pub mod duration;
pub mod engine;
pub mod fault;
pub mod info;
pub mod judge;
pub mod model;
pub mod modify;
pub mod native;
pub mod numbers;
pub mod portable;
pub mod recording;
pub mod rows;
pub mod rpn;
pub mod rrd4j;
mod source;
pub mod value;
pub mod xml;

pub use model::Database;
pub use rows::Rows;
pub use rpn::ExpressionError;
pub use source::{Form, Source, is_database};
pub use value::{Text, Time, Value};
