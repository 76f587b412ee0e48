//! Mapped files. This module may use `unsafe`; so may `words`, which maps files whose words others read,
//! `truncated` and `forks`, and no other of kymo.
//!
//! # Why it is sound
//!
//! `memmap2::Mmap::map` is unsafe because another program may change a file while it is
//! mapped here. What then happens, and why it is borne:
//!
//! * Bytes that change under a reader: kymo maps read-only and private, hands the bytes
//!   out as `&[u8]`, and does not trust them. What it decides by them is decided on values
//!   it has copied out (numbers, lengths checked against the length of the slice), so a
//!   file that changes gives wrong events or faults; it does not lead outside the mapping.
//! * Pages that are gone because the file was cut off after it was mapped: touching them
//!   raises SIGBUS, which ends the process, or is survived (`truncated`). No memory is corrupted. A tracer does not do
//!   that: it appends, or writes new files and removes old ones, and a removed file stays
//!   readable while it is mapped. Bytes appended after the file was mapped are not seen
//!   until it is opened again.
//!
//! * Blocks of a temporary file of our own that are written while it is mapped (`fetched`): nobody is given a block to
//!   read before it is written, and none is written twice.
//!
//! Whoever must read files that others may cut off reads them into memory instead:
//! [`Bytes::from`](crate::Bytes) takes what they have read.
//!
//! # Files that are written
//!
//! A mapping that is written is shared with everybody who has the file open, so no reference to its
//! bytes is ever made: they are copied from it and to it through raw pointers, within its bounds.
//!
//! * Programs that change the bytes meanwhile are other processes: what is copied may then be of
//!   two states, as it may be when a file is read. Nothing is decided by bytes in the mapping.
//! * Threads of this process that have mapped the same file would be a data race. [`Shared`]
//!   (crate::Shared) alone makes such mappings, and touches them only while it holds a lock of
//!   its open file, which excludes every other open file; that is why it maps on Linux only, where
//!   there are such locks. The lock also orders what one thread writes before what the next reads.
//! * Pages that are gone are as above. [`Shared`](crate::Shared) compares the length of the file
//!   with that of the mapping each time that it has taken the lock.
//! * A full disk shows as SIGBUS where a mapped page has no place on it: files with holes are
//!   not mapped, nor are those of file systems that find a new place for what is written (`places`).
#![allow(unsafe_code)]

use std::fs::File;
use std::io;

use memmap2::Mmap;
#[cfg(target_os = "linux")]
use memmap2::MmapRaw;

use crate::Access;

/// Maps the first `len` bytes of a file; `len` is above zero.
pub(crate) fn map(file: &File, len: usize, access: Access) -> io::Result<Mmap> {
    // SAFETY: the mapping is read-only and private, and its bytes are only ever handed out
    // as `&[u8]`; the documentation of this module says what happens if the file changes.
    let map = unsafe { memmap2::MmapOptions::new().len(len).map(file)? };
    advise(&map, access);
    Ok(map)
}

/// Advice makes reading faster or slower, never wrong, so a refusal is not an error.
#[cfg(unix)]
fn advise(map: &Mmap, access: Access) {
    let advice = match access {
        Access::Sequential => memmap2::Advice::Sequential,
        Access::Random | Access::Whole => memmap2::Advice::Random,
    };
    let _ = map.advise(advice);
}

#[cfg(not(unix))]
fn advise(_map: &Mmap, _access: Access) {}

/// Bytes around the requested ones that are read from a disk without advice: as much as
/// a small file has.
#[cfg(target_os = "linux")]
const READ_AHEAD: usize = 1 << 17;

/// The bytes of a file, to be changed in place.
#[cfg(target_os = "linux")]
#[derive(Debug)]
pub(crate) struct WritableMap(MmapRaw);

#[cfg(target_os = "linux")]
impl WritableMap {
    /// Maps the first `len` bytes of a file, which it has; `len` is above zero.
    pub(crate) fn new(file: &File, len: usize) -> io::Result<Self> {
        let map = memmap2::MmapOptions::new().len(len).map_raw(file)?;
        if len > READ_AHEAD {
            // Updates touch a page here and there.
            let _ = map.advise(memmap2::Advice::Random);
        }
        // The beginning will be read and written. A page that is read first costs a fault for each,
        // and the system makes all of a small file ready to be written at once, but not to be read.
        let _ = map.advise_range(memmap2::Advice::PopulateWrite, 0, 1);
        Ok(Self(map))
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Copies the bytes at an offset. Returns whether there are enough. The caller holds the lock
    /// of the file.
    #[inline]
    pub(crate) fn read(&self, offset: u64, buffer: &mut [u8]) -> bool {
        let Some(offset) = self.place(offset, buffer.len()) else {
            return false;
        };
        // SAFETY: `place` has checked that all bytes are in the mapping; memory that is borrowed
        // mutably is not part of it, since no reference to it is ever made. No thread of this
        // process writes meanwhile, as the documentation of this module explains.
        unsafe {
            let from = self.0.as_ptr().add(offset);
            std::ptr::copy_nonoverlapping(from, buffer.as_mut_ptr(), buffer.len());
        }
        true
    }

    /// Whether these bytes are at an offset, one part after the other; `None` if there are not that many.
    /// The caller holds the lock of the file.
    pub(crate) fn holds(&self, offset: u64, parts: &[&[u8]]) -> Option<bool> {
        let mut at = offset;
        for part in parts {
            self.place(at, part.len())?;
            if !self.has(at, part) {
                return Some(false);
            }
            at += part.len() as u64;
        }
        Some(true)
    }

    /// Whether these bytes, which are within the mapping, are at an offset.
    fn has(&self, offset: u64, bytes: &[u8]) -> bool {
        /// Bytes that are copied at once, to where they stay in the cache.
        const AT_ONCE: usize = 256;
        let (chunks, rest) = bytes.as_chunks::<AT_ONCE>();
        let mut at = offset;
        for expected in chunks {
            let mut there = [0; AT_ONCE];
            if !self.read(at, &mut there) || there != *expected {
                return false;
            }
            at += AT_ONCE as u64;
        }
        let mut there = [0; AT_ONCE];
        let there = &mut there[..rest.len()];
        self.read(at, there) && *there == *rest
    }

    /// Copies bytes to an offset. Returns whether there is room. The caller holds the lock of the
    /// file.
    #[inline]
    pub(crate) fn write(&self, offset: u64, bytes: &[u8]) -> bool {
        let Some(offset) = self.place(offset, bytes.len()) else {
            return false;
        };
        // SAFETY: as in `read`; the mapping is writable, and no thread of this process reads or
        // writes meanwhile.
        unsafe {
            let to = self.0.as_mut_ptr().add(offset);
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len());
        }
        true
    }

    /// The offset, if `count` bytes from there on are in the mapping.
    #[inline]
    fn place(&self, offset: u64, count: usize) -> Option<usize> {
        let offset = usize::try_from(offset).ok()?;
        let end = offset.checked_add(count)?;
        (end <= self.0.len()).then_some(offset)
    }
}
