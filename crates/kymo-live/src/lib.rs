//! Traces that an LTTng relay daemon (`lttng-relayd`) sends while they are recorded: the viewer's side of its
//! live protocol, versions 2.4 to 2.15.
//!
//! * [`Url`] names a relay daemon, and a session on it.
//! * [`Viewer`] is the protocol as a state machine: bytes and the time in, requests and events out. It knows no
//!   sockets.
//! * [`Reader`] connects to a relay daemon, keeps asking in a thread, and writes what comes to the files of a
//!   directory ([`Spool`]), which then is like any directory of traces that grow.
//!
//! A relay daemon does not authenticate or encrypt, and what it sends is trusted no more than any file:
//! counts, lengths and waits have [limits](Limits).
//!
//! The layout of the messages is described in `docs/formats/lttng-live.md`.

mod message;
mod reader;
mod spool;
mod url;
mod viewer;

pub use message::{Index, ProtocolError, Request, Seek, Session};
pub use reader::{Error, Reader, ReaderOptions, Status, StreamStatus, list_sessions};
pub use spool::{Spool, SpoolFile, StreamName};
pub use url::{DEFAULT_PORT, Target, Url, UrlError};
pub use viewer::{Limits, Position, StreamInfo, Viewer, ViewerEvent, ViewerOptions};
