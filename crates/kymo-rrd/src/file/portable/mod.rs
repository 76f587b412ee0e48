//! The portable form of a round-robin database: the same bytes on every machine, and an update
//! that happens as a whole or not at all.
//!
//! `docs/formats/portable-rrd.md` describes what is where, and why nothing is lost when a program or
//! a machine stops. [`create`] makes a file, [`read`] looks at the bytes of one, and [`File`]
//! updates one in place:
//!
//! ```
//! use kymo_rrd::file::portable::{self, Durability};
//! # use kymo_rrd::model::*;
//! # use kymo_rrd::{Time, Value};
//! # let database = Database {
//! #     version: 3,
//! #     step: 300,
//! #     sources: vec![DataSource {
//! #         name: "load".into(),
//! #         kind: SourceKind::Measured {
//! #             reading: Reading::Gauge,
//! #             heartbeat: 600,
//! #             min: Value::UNKNOWN,
//! #             max: Value::UNKNOWN,
//! #         },
//! #     }],
//! #     archives: vec![Archive {
//! #         kind: ArchiveKind::Consolidated {
//! #             function: Consolidation::Average,
//! #             xff: Value::from(0.5),
//! #         },
//! #         rows: 288,
//! #         points_per_row: 1,
//! #     }],
//! #     state: State {
//! #         last_update: Time::from_seconds(1_000_000_000),
//! #         stray_micros: None,
//! #         sources: vec![SourceState {
//! #             last_reading: "U".into(),
//! #             unknown_seconds: 0,
//! #             value: Value::UNKNOWN,
//! #         }],
//! #         archives: vec![ArchiveState { current_row: 0, scratch: vec![Scratch::default()] }],
//! #     },
//! # };
//! let mut file = portable::create(&database, None, &Default::default(), Vec::new())?;
//!
//! let mut update = file.begin()?;
//! update.write_row(0, &[Value::from(1.5)])?;
//! update.state_mut().last_update = Time::from_seconds(1_000_000_300);
//! update.commit(Durability::Synced)?;
//!
//! let bytes = file.into_storage();
//! let view = portable::read(&bytes)?;
//! assert_eq!(view.rows()?.value(0, 287, 0), Some(Value::from(1.5)));
//! # Ok::<(), portable::Error>(())
//! ```

mod create;
mod definitions;
mod error;
mod fields;
mod file;
mod journal;
mod layout;
mod slot;
#[cfg(test)]
mod tests;
mod update;
mod view;

pub use create::{Options, create};
pub use definitions::Record;
pub use error::Error;
pub use file::File;
pub use update::{Durability, Update};
pub use view::{View, read};

/// What portable files begin with.
pub const MAGIC: [u8; 8] = *b"\x8dPRRD\r\n\x1a";

/// Whether a file is, or was, a portable one.
pub fn is_portable(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC)
}

/// The version of the format that is read and written here.
pub const VERSION: u16 = 1;
