//! Event logs of VPP and of the tools around it.
//!
//! * **CPEL** ([`mod@file`], [`definitions`], [`recording`]): sections with strings, symbols,
//!   definitions of events and tracks, and events of 20 bytes, in either byte order.
//! * **Gist**, which came before it: a count and the same events, without anything else.
//! * **elog** ([`elog`]): what VPP's `event-logger save` writes: events of several arguments.
//!
//! [`recording`] and [`elog`] offer them as recordings of `kymo-model`. [`write`](mod@write) makes
//! CPEL files, [`elog::write`] elog files, [`rewrite`] copies a CPEL file with everything in it that
//! is unknown, [`convert`] makes one from an elog file, [`json`] from JSON lines, into which it turns
//! others.
//!
//! ```
//! use std::path::Path;
//!
//! use kymo_cpel::entries::Entry;
//! use kymo_cpel::recording::Recording;
//! use kymo_cpel::write::Builder;
//! use kymo_model::Recording as _;
//!
//! let mut file = Builder::new(Default::default());
//! file.track(1, Some(b"worker"))?;
//! file.event(2, Some(b"batch"), Some(b"%d packets"))?;
//! file.push(Entry { time: 1_000, track: 1, code: 2, datum: 32 })?;
//! let mut bytes = Vec::new();
//! file.write(&mut bytes)?;
//!
//! let log = Recording::new(Path::new("x.cpel"), bytes.into(), &Default::default())?;
//! assert_eq!(log.event_classes()[0].name.as_deref(), Some("batch"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Everything here works on byte slices: files are opened by the caller. Nothing is global,
//! and nothing depends on the machine that runs it.

pub mod clock;
pub mod convert;
pub mod definitions;
pub mod elog;
pub mod entries;
pub mod file;
pub mod format;
pub mod json;
mod lookup;
pub mod points;
pub mod probe;
pub mod recording;
pub mod rewrite;
mod strings;
pub mod write;

pub use clock::ClockChoice;
pub use probe::{Kind, probe};
pub use strings::StringError;

use kymo_machine::ByteOrder;

/// The integer of 4 bytes at a position.
fn u32_at(bytes: &[u8], at: usize, order: ByteOrder) -> Option<u32> {
    let bytes = *bytes.get(at..)?.first_chunk()?;
    Some(match order {
        ByteOrder::Big => u32::from_be_bytes(bytes),
        ByteOrder::Little => u32::from_le_bytes(bytes),
    })
}

/// An integer as 4 bytes.
fn u32_bytes(value: u32, order: ByteOrder) -> [u8; 4] {
    match order {
        ByteOrder::Big => value.to_be_bytes(),
        ByteOrder::Little => value.to_le_bytes(),
    }
}
