//! A recorder for Rust programs: spans and events of [`tracing`](https://docs.rs/tracing) as a trace
//! of the Common Trace Format.
//!
//! A [`Layer`] of [`tracing_subscriber`] writes each event into a packet of its thread: typed values, no text where
//! there was none, no lock, no allocation. What is done with full packets, [`Options`] say: they go to
//! [files](Options::files), over [UDP](Options::udp), to a custom [sink](Options::sink), stay in memory until a
//! [snapshot](FlightRecorder::snapshot), or are in a [mapped](Options::mapped) file from the beginning, which is
//! a readable trace also after the program was killed. `kymo`, babeltrace2 and others read them.
//!
//! ```
//! use tracing_subscriber::prelude::*;
//!
//! # let folder = tempfile::tempdir()?;
//! # let directory = folder.path().join("trace");
//! let (layer, guard) = kymo_tracing::Options::new().files(&directory)?;
//! let subscriber = tracing_subscriber::registry().with(layer);
//! tracing::subscriber::with_default(subscriber, || {
//!     let _request = tracing::info_span!("request", id = 7).entered();
//!     tracing::info!(bytes = 512, cached = true, "answered");
//! });
//! guard.finish()?;
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! # What is recorded
//!
//! | what happens | name of the event | fields |
//! |---|---|---|
//! | an event | `TARGET:LINE`, or `TARGET::NAME` if it has a name | its own |
//! | a span opens | `TARGET::NAME.new` | its own; `parent` in its context, 0 without one |
//! | fields of a span get values | `TARGET::NAME.record` | these |
//! | a thread enters and exits a span | `TARGET::NAME.enter`, `TARGET::NAME.exit` | none |
//! | a span follows from another | `TARGET::NAME.follows_from` | `cause` in its context |
//! | a span closes | `TARGET::NAME.close` | none |
//!
//! The context of each event has the number of its `span`, or 0 if there is none; the context of its packet has
//! the thread: `tid` and `thread_name`. Numbers of spans are those of `tracing`: two spans that are open at a time
//! have different ones. The level is the log level, on the scale of syslog (`TRACE` is 14); the identifier of the model
//! element is the place in the source: `FILE?target=TARGET&module=MODULE#LLINE`.
//!
//! Values are signed and unsigned numbers of 64 bits, doubles, truth values and text. What is neither (`Debug`, `Display`, errors,
//! numbers of 128 bits, bytes) is text as it formats itself. A zero in a text becomes `␀`; of an event that is
//! larger than a packet, texts are cut off, and end with `…`.
//!
//! # What is lost
//!
//! An event is discarded, and counted in its packet, where there is no room for it
//! ([`WhenFull`]), where it is recorded by what formats a value of another event, and where a program has more than 65,535
//! classes of events.

mod classes;
mod clock;
mod encode;
mod flight;
mod layer;
mod mapped;
mod model;
mod packet;
mod pool;
mod recorder;
mod sink;
mod spare;
mod thread;
mod udp;

pub use kymo_ctf::class::Dialect;
pub use kymo_ctf::secure::Key;

pub use crate::flight::{FlightRecorder, Snapshot};
pub use crate::layer::Layer;
pub use crate::pool::WhenFull;
pub use crate::recorder::{Guard, Options};
pub use crate::sink::Sink;
