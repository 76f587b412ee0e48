//! Recordings turned into files of other formats.
//!
//! Each target is an [`Sink`](crate::show::Sink) for the [pipeline](crate::pipeline), so
//! that filters, windows of time and the merging of several recordings are the same for all of
//! them. JSON lines and CSV are what is [shown](crate::show) in these formats; JSON lines have beside
//! that what makes the same CPEL file of them again.
//!
//! Traces are written by their [streams](ctf), not through the merge.
//!
//! What a target cannot hold is decided by the options of that target, or counted in [`Losses`].

mod binding;
pub mod chrome;
pub mod cpel;
pub mod ctf;
pub mod elog;
pub mod jsonl;
mod losses;
pub mod perfetto;
mod pieces;
pub mod rrd;
#[cfg(test)]
mod tests;
mod text;
mod timeline;

use kymo_model::Value;

pub use binding::{Counter, Slice, TrackBinding, TrackOptionError, TrackOptions, UnknownField};
pub use losses::Losses;
pub use pieces::Pieces;

/// Whether there is a number, a text or bytes.
fn is_plain(value: Value<'_>) -> bool {
    !matches!(value, Value::Missing | Value::Array(_) | Value::Compound)
}

/// The number of the flow of all events with a value in the field at a position among those that are asked
/// for; `None` if the value is not plain.
fn flow_id(position: usize, value: Value<'_>) -> Option<u64> {
    let (kind, bits, bytes): (u8, u64, &[u8]) = match value {
        Value::Uint(value) | Value::Bits(value) => (1, value, &[]),
        Value::Sint(value) => (if value < 0 { 2 } else { 1 }, value as u64, &[]),
        Value::Float(value) => (3, value.to_bits(), &[]),
        Value::Bool(value) => (4, value.into(), &[]),
        Value::Text(text) => (5, text.len() as u64, text),
        Value::Blob(bytes) => (6, bytes.len() as u64, bytes),
        Value::Missing | Value::Array(_) | Value::Compound => return None,
    };
    // A truth value is a byte.
    let size = if kind == 4 { 1 } else { 8 };
    let (position, bits) = ((position as u64).to_le_bytes(), bits.to_le_bytes());
    let parts = [&position, &[kind][..], &bits[..size], bytes];
    // FNV-1a, and a last step so that all bits depend on the last byte.
    let hash = parts.iter().copied().flatten();
    let hash = hash.fold(0xcbf2_9ce4_8422_2325, |hash: u64, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    Some((hash ^ hash >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}
