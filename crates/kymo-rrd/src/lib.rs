//! Round-robin databases (RRD): files of every machine, and their conversion.
//!
//! An RRD file is a row of C structs, written as they lay in the memory of the machine that
//! made it. [`model`] says what such a file means, whatever the machine.
//!
//! [`file::native`] reads and writes these files, [`text::xml`] what rrdtool dumps, [`recording`] shows the rows
//! of a database as samples in time order.
//!
//! [`file::portable`] is the form of file that is the same everywhere and survives a crash.
//!
//! Everything here works on byte slices: files are opened by the caller. Nothing is global,
//! and nothing depends on the machine that runs it.

pub mod engine;
pub mod fault;
pub mod file;
pub mod model;
pub mod recording;
pub mod rpn;
pub mod text;

pub use file::{Form, Source, is_database};
pub use model::Database;
pub use model::rows::Rows;
pub use model::value::{Text, Time, Value};
pub use rpn::ExpressionError;
