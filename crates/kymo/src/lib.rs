//! Reads, filters, merges and shows performance records, whatever wrote them.
//!
//! A [`Timeline`] is recordings that are asked together: its rows are merged by time.
//!
//! [`open`](open::open) finds the recordings below a path; the [`pipeline`]
//! decodes their chunks on all cores, merges the results by time, and hands them to
//! what [shows](show) them.

pub mod analysis;
pub mod any;
pub mod convert;
mod discarded;
pub mod explain;
pub mod filter;
mod hand_on;
pub mod open;
mod order;
pub mod pipeline;
pub mod report;
pub mod send;
pub mod show;
pub mod symbols;
#[cfg(test)]
mod testing;
pub mod timeline;
mod tracks;

pub use any::AnyRecording;
pub use discarded::Discarded;
pub use kymo_model::EntryKind;
pub use timeline::{Query, Timeline};
