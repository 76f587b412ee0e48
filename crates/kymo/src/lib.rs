//! Reads, filters, merges and shows performance records, whatever wrote them.
//!
//! A [`Timeline`] is recordings that are asked together: its rows are merged by time.
//!
//! [`open`](open::open) finds the recordings below a path; the [`pipeline`]
//! decodes their chunks on all cores, merges the results by time, and hands them to
//! what [shows](show) them.
//!
//! ```
//! use kymo::timeline::Columns;
//! use kymo::{Query, Timeline};
//! # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/lttng-small");
//!
//! let opened = kymo::open::open(&[path.into()], &Default::default());
//! let timeline = Timeline::new(opened.recordings);
//! let mut query = Query::default();
//! query.filter.condition = Some("next_prio = 1".to_string());
//! query.columns = Columns::named("cpu_id, next_tid")?;
//! let rows: usize = timeline.rows(&query)?.map(|batch| batch.len()).sum();
//! assert_eq!(rows, 300);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

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
