//! Reads, filters, merges and shows performance records, whatever wrote them.
//!
//! [`open`](open::open) finds the recordings below a path; the [`pipeline`]
//! decodes their chunks on all cores, merges the results by time, and hands them to
//! what [shows](show) them.

pub mod analysis;
pub mod any;
mod carried;
pub mod convert;
pub mod filter;
mod hand_on;
pub mod open;
mod order;
pub mod pipeline;
pub mod report;
mod samples;
pub mod send;
pub mod show;
#[cfg(test)]
mod testing;
mod threads;

pub use any::{AnyRecording, EntryKind};
