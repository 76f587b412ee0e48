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
//! ```
//! use kymo_rrd::engine::{Definition, Smoothing, create};
//! use kymo_rrd::file::portable;
//! use kymo_rrd::{Source, Time};
//!
//! let texts = ["DS:load:GAUGE:600:U:U", "RRA:AVERAGE:0.5:1:10"];
//! let start = Time::from_seconds(999_999_900);
//! let definition = Definition::parse(start, 300, &texts, &Smoothing::default())?;
//! let database = create(&definition, |_, _| 0)?;
//! let file = portable::create(&database, None, &Default::default(), Vec::new())?.into_storage();
//!
//! let source = Source::open(&file, None)?;
//! assert_eq!(source.database.sources[0].name.to_string(), "load");
//! assert_eq!(source.database.archives[0].rows, 10);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
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
