//! rrdtool's commands: words in, rrdtool's own text and exit status out, on databases of any machine.
//!
//! [`COMMANDS`] says what there is; [`run`] does what one command line asks. Nothing here is
//! global: a [`Session`] holds what commands write to and what they keep between lines.
//!
//! * [`options`]: what can be written on a command line, and how it is read;
//! * `session`: output, time, zone, defaults;
//! * [`times`]: times and durations as they are written;
//! * `open`: files that are read; `files`: those that stay open for updates;
//! * `daemon`: a client of daemons that hold updates back;
//! * `graph`: series of values from files and expressions;
//! * `commands`: a module for each command;
//! * [`answers`]: what commands answer, as values instead of text;
//! * `cgi`: rrdcgi's language.
//!
//! [`pipe()`] does what many command lines ask, one after the other.
//!
//! What a command computes is in `kymo-rrd`; here are its words.

pub mod answers;
mod cgi;
mod commands;
mod csv;
mod daemon;
mod failure;
mod graph;
mod make;
mod open;
pub mod options;
mod pipe;
mod session;
pub mod times;
mod usage;
mod zone;

pub use cgi::{cgi, expanded_for_tests};
pub use commands::{
    COMMANDS, TableExport, find, knows, locking_named, makes_databases, run, table_export, target,
    tune, with_place,
};
pub use daemon::{Client as DaemonClient, PORT as DAEMON_PORT};
pub use failure::Failure;
use kymo_io::path;
pub use pipe::pipe;
pub use session::{Defaults, Fetcher, Kept, Place, Session};
pub use usage::usage;
pub use zone::LocalZone;
