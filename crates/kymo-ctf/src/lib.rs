//! Reader for the Common Trace Format.
//!
//! [`metadata`] turns what a trace says of itself into one [class model](class),
//! whatever language it is written in; [`decode`] compiles that into flat programs and
//! runs them; [`trace`] finds the files, packets and streams of a trace.

pub mod class;
pub mod decode;
pub mod metadata;
pub mod trace;
