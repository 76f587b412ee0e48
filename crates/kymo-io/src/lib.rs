//! What kymo needs of an operating system: the bytes of files, compressed ones and those of archives too,
//! files that are written in place or as a whole, what is in directories, and addresses of networks.
//!
//! On targets without files (wasm32) everything here builds and reports that files are
//! not supported; [`Bytes`] made from memory work everywhere.

mod bytes;
mod decompress;
#[cfg(feature = "faults")]
pub mod faults;
#[cfg(not(target_family = "wasm"))]
mod fetched;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod forks;
mod links;
mod lock;
#[cfg(not(target_family = "wasm"))]
mod map;
pub mod net;
pub mod path;
#[cfg(target_os = "linux")]
mod places;
mod private;
mod process;
mod punch;
mod random;
mod reason;
mod replace;
mod shared;
mod small;
mod sort;
mod spool;
mod state;
mod storage;
mod tar;
mod temporary;
mod threads;
mod tree;
#[cfg(target_os = "linux")]
mod truncated;
mod walk;
#[cfg(not(target_family = "wasm"))]
mod words;

pub use bytes::{Access, Bytes, MAX_READ};
pub use decompress::{
    Compression, Content, LONGEST_MAGIC, content, content_within, stem, without_compression,
};
pub use links::{file_id, is_same_file, link, other_names};
pub use lock::{Locking, is_locked_to_write, lock, lock_to_read, unlock};
pub use private::{is_own_file, private_directory};
#[cfg(not(target_family = "wasm"))]
pub use process::monotonic_nanos;
pub use process::{Process, cpu_times, most_open_files, thread_id};
pub use punch::punch;
pub use random::random;
pub use reason::reason;
pub use replace::{NewFile, Replace, create_directories, is_beside, replace};
pub use shared::Shared;
pub use small::{read_small, read_small_text, take_small_text};
pub use sort::{Sorter, Split};
pub use spool::{SPOOL_LIMIT, Spool, spool_limit, spool_used, temporary_file, write_temporary};
pub use state::{Changed, FileState, Watch};
pub use storage::{ReadAt, SharedSource, Storage, Window};
pub use tar::{Archive, MOST_MEMBERS, is_tar, write_directory as write_tar};
pub use temporary::{RemovedTemporaries, Temporaries, before_temporaries, remove_temporaries};
pub use threads::{in_order, in_threads};
pub use tree::{OpenRemote, RemoteTree, STANDARD_INPUT, Tree, set_remote};
#[cfg(target_os = "linux")]
pub use truncated::{is_cut_off, survive_truncation, take_truncated};
pub use walk::{Entry, EntryKind, absolute, list};
#[cfg(not(target_family = "wasm"))]
pub use words::SharedWords;

/// Whether some of these bytes were cut off from their file: on this system, the process ends then.
#[cfg(not(target_os = "linux"))]
pub fn is_cut_off(_bytes: &[u8]) -> bool {
    false
}
