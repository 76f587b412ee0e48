//! Reader and writer for the Common Trace Format.
//!
//! [`metadata`] turns what a trace says of itself into one [class model](class),
//! whatever language it is written in; [`decode`] compiles that into flat programs and
//! runs them; [`trace`] finds the files, packets and streams of a trace; [`secure`] opens and
//! seals packets that are compressed, encrypted or have a checksum; [`wire`] carries packets over
//! UDP. [`write`](mod@write) goes the other way: from events to packets and traces, and [`repair`]
//! decides what damaged packets should say.

#[cfg(test)]
mod any;
pub mod class;
pub mod decode;
pub mod deep;
pub mod describe;
pub mod metadata;
pub mod repair;
pub mod secure;
pub mod trace;
mod units;
pub mod wire;
pub mod write;
