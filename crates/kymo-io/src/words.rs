//! Files that are written while others read them: mapped, and accessed word by word.
//!
//! # Why it is sound
//!
//! What is handed out are words that are [atomic](AtomicU32), which may change at any time, and which
//! promise a program nothing that may turn out false: whatever others write into the file,
//! each word that is loaded is some number.
//!
//! * The mapping is made of a whole number of words, begins at a page, and stays where it is as long
//!   as [`SharedWords`] lives, from which the words are borrowed.
//! * Other processes that have the file mapped or read it see what is stored. On the machines that there are,
//!   an aligned store of 32 bits is seen as a whole.
//! * This process must not look at the same file through [`Bytes`](crate::Bytes) meanwhile, as with any
//!   file that changes; the module `map` explains what would come of it.
//! * Pages that are gone because the file was truncated raise SIGBUS, which ends the process; no
//!   memory is corrupted. The same holds for a page that has no place on a full disk: that is why
//!   a file is mapped only after each of its bytes was written. On file systems that find a new place for
//!   what is written (btrfs, ZFS, bcachefs; XFS for files that share places with a copy) this does not help:
//!   there, a disk that is full ends the process.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::ops::Deref;
use std::sync::atomic::AtomicU32;

use memmap2::MmapRaw;

/// The bytes of a file as words that may be written while other programs read them. The mapping
/// outlives the program: what was stored is in the file, also after the program was killed.
///
/// The bytes of a word are in the order of the machine: a program that cares uses
/// [`u32::to_le`] and [`u32::from_le`].
#[derive(Debug)]
pub struct SharedWords(MmapRaw);

impl SharedWords {
    /// Maps the first `words` words of a file that is open to read and write. Each of these
    /// bytes has been written before, so that the disk has room for them; but where the file system copies
    /// on write, storing a word on a full disk ends the process (SIGBUS).
    ///
    /// # Errors
    ///
    /// `InvalidInput` for no words, or more than the file has; those of the system.
    pub fn map(file: &File, words: usize) -> io::Result<Self> {
        let length = words.checked_mul(size_of::<AtomicU32>());
        let length = length
            .filter(|&length| length > 0)
            .ok_or(io::ErrorKind::InvalidInput)?;
        if file.metadata()?.len() < length as u64 {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let map = memmap2::MmapOptions::new().len(length).map_raw(file)?;
        // Else each page costs a fault when it is first written. Where that is refused, it does.
        #[cfg(target_os = "linux")]
        let _ = map.advise(memmap2::Advice::PopulateWrite);
        Ok(Self(map))
    }
}

impl Deref for SharedWords {
    type Target = [AtomicU32];

    #[inline]
    fn deref(&self) -> &[AtomicU32] {
        let count = self.0.len() / size_of::<AtomicU32>();
        // SAFETY: the mapping has `count` words, begins at a page and lives as long as
        // what is borrowed here; any bytes are words, and atomic ones may change.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr().cast::<AtomicU32>(), count) }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::Relaxed;

    use super::*;

    #[test]
    fn what_is_stored_is_in_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, [0; 20]).unwrap();
        let file = File::options().read(true).write(true).open(&path).unwrap();
        for words in [0, 6, usize::MAX, usize::MAX / 4 + 2] {
            assert!(SharedWords::map(&file, words).is_err(), "{words}");
        }
        let words = SharedWords::map(&file, 4).unwrap();
        assert_eq!(words.len(), 4);
        words[1].store(0x0403_0201u32.to_le(), Relaxed);
        drop(file);
        words[3].store(0xff, Relaxed);
        drop(words);
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(bytes[..8], [0, 0, 0, 0, 1, 2, 3, 4]);
        assert_eq!(
            bytes[12..16].iter().map(|&b| u32::from(b)).sum::<u32>(),
            0xff
        );
    }
}
