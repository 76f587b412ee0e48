//! What kymo needs of an operating system: the bytes of files, files that are written in
//! place or as a whole, and what is in directories.
//!
//! On targets without files (wasm32) everything here builds and reports that files are
//! not supported; [`Bytes`] made from memory work everywhere.

mod bytes;
#[cfg(feature = "faults")]
pub mod faults;
mod lock;
#[cfg(not(target_family = "wasm"))]
mod map;
mod process;
mod replace;
mod shared;
mod storage;
mod walk;

pub use bytes::{Access, Bytes, MAX_READ};
pub use lock::{Locking, lock, unlock};
pub use process::{cpu_times, most_open_files};
pub use replace::{Replace, is_beside, replace};
pub use shared::Shared;
pub use storage::{Source, Storage};
pub use walk::{Entry, EntryKind, absolute, list};
