//! What kymo needs of an operating system: the bytes of files, and what is in directories.
//!
//! On targets without files (wasm32) everything here builds and reports that files are
//! not supported; [`Bytes`] made from memory work everywhere.

mod bytes;
#[cfg(not(target_family = "wasm"))]
mod map;
mod walk;

pub use bytes::{Access, Bytes, MAX_READ};
pub use walk::{Entry, EntryKind, absolute, list};
