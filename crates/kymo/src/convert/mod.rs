//! Recordings turned into files of other formats.
//!
//! Each target is an [`Assembler`](crate::show::Assembler) for the [pipeline](crate::pipeline), so
//! that filters, windows of time and the merging of several recordings are the same for all of
//! them. JSON lines and CSV are what is [shown](crate::show) in these formats; JSON lines have beside
//! that what makes the same CPEL file of them again.
//!
//! Traces are written by their [streams](ctf), not through the merge.
//!
//! What a target cannot hold is decided by the options of that target, or counted in [`Losses`].

pub mod chrome;
pub mod cpel;
pub mod ctf;
pub mod elog;
pub mod jsonl;
mod losses;
mod marks;
pub mod perfetto;
pub mod rrd;
#[cfg(test)]
mod tests;
mod text;
mod timeline;

pub use losses::Losses;
pub use marks::{Counter, MarkError, MarkOptions, Marks, Slice, UnknownField};

/// The number of the flow of all events with a value, of which these are the bytes, in the field at
/// a position among those that are asked for.
fn flow_id(position: usize, value: &[u8]) -> u64 {
    // FNV-1a, and a last step so that all bits depend on the last byte.
    let bytes = (position as u64).to_le_bytes().into_iter();
    let hash = bytes
        .chain(value.iter().copied())
        .fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
    (hash ^ hash >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}
