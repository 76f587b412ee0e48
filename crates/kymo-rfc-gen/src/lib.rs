//! Makes traces of the first draft of the Common Trace Format, RFC v1.1 of November 2010, and states
//! what a reader must find in them.
//!
//! It shares nothing with the reader: both were written from the draft, so that each checks the
//! other. Everything here is slow and plain. Where the draft leaves room, this is what it does:
//!
//! - A trace is aligned naturally if its metadata declares `uint32_t` with `align = 32`, on 64-bit
//!   words unless it declares `uint64_t` with `align = 32` too; else basic types lie on bytes.
//! - A stream is what one processor wrote of a section, in the file `SECTION_CPU`. Counters of
//!   packets and of discarded events count for a stream, or for all streams of a section together.
//! - Sizes in the packet header are bytes from the beginning of the packet.
//! - Extended event headers are 96 bits without padding inside, as their text says.
//! - An array begins at the alignment of its elements even if it has none.
//! - A GNU/C bit field aligns the structure around it on its unit.
//! - `event_size = true` puts a `uint16_t` named `payload_size` into the context: the bytes of the
//!   payload, from its beginning to its end.

mod bits;
mod files;
mod metadata;
mod random;
mod rng;
mod small;
#[cfg(test)]
mod tests;
mod trace;
mod types;

pub use files::{
    Expected, ExpectedEvent, ExpectedPacket, ExpectedStream, File, PACKET_HEADER_SIZE, write,
};
pub use random::Options;
pub use trace::{
    Checksum, Context, Counters, Declaration, Event, EventClass, HeaderType, MetadataForm, Packet,
    Section, Stream, Style, Trace,
};
pub use types::{Alignment, Encoding, Endian, Field, Integer, Order, Type, Value};
