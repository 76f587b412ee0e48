//! From events to bytes: what [`decode`](crate::decode) and [`trace`](crate::trace) do, the other
//! way.
//!
//! An [`Encoder`] is compiled once for a class model; it has the programs of the
//! [`Decoder`](crate::decode::Decoder), which [`Encode`] runs the other way. A [`StreamWriter`]
//! makes packets of events and hands them to a [`PacketSink`]; a [`TraceWriter`] makes a directory
//! of metadata and stream files.
//!
//! Nothing is written that a reader would not read back: numbers that do not fit, lengths that
//! contradict, times that go back are errors, after which everything is as it was before.

mod agree;
mod buffer;
mod encode;
mod encoder;
mod error;
mod fields;
mod head;
pub mod index;
pub mod layout;
mod seal;
mod sink;
mod stream;
#[cfg(test)]
mod tests;
mod text;
mod trace;
mod values;

pub use self::agree::Agreement;
pub use self::encode::Encode;
pub use self::encoder::{Encoder, EventId};
pub use self::error::WriteError;
pub use self::fields::Fields;
pub use self::head::Members;
pub use self::seal::Sealing;
pub use self::sink::{PacketInfo, PacketSink, StreamSink};
pub use self::stream::{PacketStart, RawEvent, StreamOptions, StreamWriter};
pub use self::trace::{FileStream, StreamFile, TraceOptions, TraceWriter};
pub use self::values::{Token, Values};
