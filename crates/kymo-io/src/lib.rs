//! What kymo needs of an operating system: the bytes of files, files that are written in
//! place or as a whole, what is in directories, and addresses of networks.
//!
//! On targets without files (wasm32) everything here builds and reports that files are
//! not supported; [`Bytes`] made from memory work everywhere.

mod bytes;
#[cfg(feature = "faults")]
pub mod faults;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod forks;
mod lock;
#[cfg(not(target_family = "wasm"))]
mod map;
pub mod net;
#[cfg(target_os = "linux")]
mod places;
mod process;
mod random;
mod replace;
mod shared;
mod storage;
mod walk;
#[cfg(not(target_family = "wasm"))]
mod words;

pub use bytes::{Access, Bytes, MAX_READ};
pub use lock::{Locking, lock, lock_to_read, unlock};
#[cfg(not(target_family = "wasm"))]
pub use process::monotonic_nanos;
pub use process::{Process, cpu_times, most_open_files, thread_id};
pub use random::random;
pub use replace::{NewFile, Replace, create_directories, is_beside, replace};
pub use shared::Shared;
pub use storage::{Source, Storage};
pub use walk::{Entry, EntryKind, absolute, list};
#[cfg(not(target_family = "wasm"))]
pub use words::SharedWords;
