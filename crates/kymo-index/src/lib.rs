//! Summaries of recordings: what happened on each track, at any resolution.
//!
//! A [`Bin`] says what happened in a span of time; bins add up, in any grouping. A [`TreeBuilder`] takes the
//! rows of a track in order of time and makes the cells of a tree, which divides time by four until a cell has
//! at most [`LEAF`] rows. A [`Writer`] keeps the trees of all tracks of a recording in a file, of which
//! [`docs/formats/index.md`](https://docs.rs/kymo) describes every byte, and an [`Index`] answers from it: in
//! time that depends on the number of bins, not on that of rows. A [`Cache`] is a directory of such files.
//!
//! ```
//! use kymo_index::{Answer, Grid, Index, Meta, Row, Writer};
//! use kymo_model::{EntryKind, Track, TrackPart, TrackPath};
//!
//! let track = Track::new(TrackPath::new([TrackPart::Cpu(0)]), "CPU 0", EntryKind::Event);
//! let mut writer = Writer::new(Vec::new())?;
//! let number = writer.add_track(track);
//! for time in 0..10_000 {
//!     writer.push(number, Row::new(time * 1000, 0));
//! }
//! let file = writer.finish(&Meta::default())?;
//! let index = Index::open(file.into())?;
//! let grid = Grid::new(0, 10_000_000, 100);
//! let mut answer = Answer::new(&grid);
//! index.fill(number, &grid, &mut answer)?;
//! let rows: u64 = answer.bins().map(|(_, bin)| bin.count).sum();
//! assert_eq!(rows, 10_000);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod bin;
mod block;
mod cache;
mod contents;
mod file;
mod meta;
mod pack;
mod query;
mod tree;

#[cfg(test)]
mod tests;

pub use bin::{Bin, Row, Slices, Values};
pub use block::unpack;
pub use cache::{Cache, Cached, Key, default_directory, note_file, note_range};
pub use file::{Damaged, Index, Writer, seal};
pub use meta::{ChunkCounts, Meta, OpenAt, OpenSlice};
pub use query::{Answer, Grid, Missing};
pub use tree::{LEAF, Node, TreeBuilder, are_sorted};
