//! Packets over UDP: an envelope of kymo's own around the packets of traces.
//!
//! A [`Sender`] makes datagrams of the files of a trace, a [`Receiver`] makes packets of datagrams,
//! whatever was lost, doubled or put in another order on the way, and asks again for what is missing. Both know
//! neither sockets nor clocks: the caller brings datagrams, carries them away, and passes the time,
//! counted from any origin. `docs/formats/ctf-udp.md` has the bytes.
//!
//! What travels are *streams* of numbered packets: each file of a trace is one. The packets of stream 0, the
//! *directory*, say what the others are, and at the end how many packets each has; so everything a receiver has to
//! know is asked for again in the same way.

mod assembly;
mod envelope;
mod raw;
mod receiver;
mod sender;
#[cfg(test)]
mod tests;

pub use self::envelope::{LARGEST_DATAGRAM, SMALLEST_DATAGRAM, session_of};
pub use self::raw::{Raw, recognize};
pub use self::receiver::{Event, Receiver, ReceiverLimits, ReceiverOptions, Refusal, Resume};
pub use self::sender::{PushError, Sender, SenderOptions, State, Undelivered};

/// What a stream holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// The metadata of a trace, cut into pieces anywhere.
    Metadata,
    /// The packets of a data stream file.
    Packets,
}

/// The stream that describes the others.
const DIRECTORY: u32 = 0;

/// Maximum number of streams of a session.
const MOST_STREAMS: u32 = 1 << 16;

/// The longest name of a stream, in bytes.
pub const LONGEST_NAME: usize = 1024;
