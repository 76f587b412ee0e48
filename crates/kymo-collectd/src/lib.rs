//! collectd's names, protocols and configuration: bytes in, values out, and back.
//!
//! * [`Identifier`]: `host/plugin-instance/type-instance`, and when it may be a path;
//! * [`Value`]: what is measured, on the wire and in text; [`TypesDb`]: what types there are;
//! * [`network`]: the binary protocol, with signatures and encryption, both ways;
//! * [`plain`]: the protocol of text lines, both ways;
//! * [`config`]: the grammar of `collectd.conf`;
//! * [`capture`]: datagrams in files of network captures;
//! * [`recording`]: datagrams as a recording.
//!
//! Times are [`CdTime`](kymo_time::CdTime) from end to end. Nothing here opens a socket or knows
//! what time it is.
//!
//! ```
//! use kymo_collectd::network::{Decoder, Item, Packer, PackerOptions};
//! use kymo_collectd::{Identifier, Value};
//! use kymo_time::CdTime;
//!
//! let id = Identifier::parse("vm/load/load").unwrap();
//! let time = CdTime::from_millis(1_700_000_000_250).unwrap();
//! let mut packer = Packer::new(PackerOptions::default()).unwrap();
//! packer.values(&id, time, CdTime::from_seconds(10).unwrap(), &[Value::Gauge(0.5)]).unwrap();
//! let datagram = packer.flush().unwrap();
//!
//! Decoder::default().decode(&datagram, &mut (), &mut |item| {
//!     let Item::Values(list) = item else { panic!("{item:?}") };
//!     assert_eq!((list.id, list.time), (id, time));
//!     assert_eq!(list.values.iter().collect::<Vec<_>>(), [Value::Gauge(0.5)]);
//! });
//! ```

pub mod capture;
pub mod config;
mod identifier;
pub mod network;
mod notification;
pub mod plain;
pub mod recording;
mod types;
mod value;

pub use identifier::{Identifier, NameError};
pub use notification::{Notification, Severity};
pub use types::{DataSource, TypesDb, TypesError, TypesMismatch};
pub use value::{Kind, Value, ValueError};
