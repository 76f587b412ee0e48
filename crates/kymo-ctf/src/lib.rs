//! Reader and writer for the Common Trace Format.
//!
//! [`metadata`] turns what a trace says of itself into one [class model](class),
//! whatever language it is written in; [`decode`] compiles that into flat programs and
//! runs them; [`trace`] finds the files, packets and streams of a trace; [`secure`] opens and
//! seals packets that are compressed, encrypted or have a checksum; `wire` carries packets over
//! UDP. [`write`](mod@write) goes the other way: from events to packets and traces, and [`repair`]
//! decides what damaged packets should say.
//!
//! Two features are on by default: `secure` brings ciphers, compression and digests for secured packets, `wire` the
//! transport. Without them the crate needs no cryptography, and reads and writes all other traces.

#[cfg(test)]
mod any;
pub mod class;
pub mod decode;
pub mod deep;
pub mod describe;
pub mod metadata;
pub mod repair;
#[cfg_attr(
    not(feature = "secure"),
    allow(
        dead_code,
        reason = "schemes and limits are used by ciphers and compression alone"
    )
)]
pub mod secure;
pub mod trace;
mod units;
#[cfg(feature = "wire")]
pub mod wire;
pub mod write;
