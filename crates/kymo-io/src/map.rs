//! Mapped files: the only module of kymo that may use `unsafe`.
//!
//! # Why it is sound
//!
//! `memmap2::Mmap::map` is unsafe because another program may change a file while it is
//! mapped here. What then happens, and why it is borne:
//!
//! * Bytes that change under a reader: kymo maps read-only and private, hands the bytes
//!   out as `&[u8]`, and trusts none of them. What it decides by them is decided on values
//!   it has copied out (numbers, lengths checked against the length of the slice), so a
//!   file that changes gives wrong events or faults; it does not lead outside the mapping.
//! * Pages that are gone because the file was cut off after it was mapped: touching them
//!   raises SIGBUS, which ends the process. No memory is corrupted. A tracer does not do
//!   that: it appends, or writes new files and removes old ones, and a removed file stays
//!   readable while it is mapped. Bytes appended after the file was mapped are not seen
//!   until it is opened again.
//!
//! Whoever must read files that others may cut off reads them into memory instead:
//! [`Bytes::from`](crate::Bytes) takes what they have read.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;

use memmap2::Mmap;

use crate::Access;

/// Maps the first `len` bytes of a file; `len` is above zero.
pub(crate) fn map(file: &File, len: usize, access: Access) -> io::Result<Mmap> {
    // SAFETY: the mapping is read-only and private, and its bytes are only ever handed out
    // as `&[u8]`; the documentation of this module says what happens if the file changes.
    let map = unsafe { memmap2::MmapOptions::new().len(len).map(file)? };
    advise(&map, access);
    Ok(map)
}

/// Advice makes reading faster or slower, never wrong: that it is refused is no error.
#[cfg(unix)]
fn advise(map: &Mmap, access: Access) {
    let advice = match access {
        Access::Sequential => memmap2::Advice::Sequential,
        Access::Random => memmap2::Advice::Random,
    };
    let _ = map.advise(advice);
}

#[cfg(not(unix))]
fn advise(_map: &Mmap, _access: Access) {}
