//! Giving parts of files back to the file system.

use std::io;
use std::path::Path;

/// Gives bytes of a file back to the file system; its size stays, and they read as 0 from then on. Returns how many
/// were given back: only whole blocks are, and none where the system cannot.
///
/// # Errors
///
/// The file cannot be opened to write, or the file system reports a failure.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub fn punch(path: &Path, range: std::ops::Range<u64>) -> io::Result<u64> {
    use nix::errno::Errno;
    use nix::fcntl::{FallocateFlags, fallocate};

    const BLOCK: u64 = 4096;
    let begin = range.start.next_multiple_of(BLOCK);
    let end = range.end - range.end % BLOCK;
    let Some(length @ 1..) = end.checked_sub(begin) else {
        return Ok(0);
    };
    // The system's offsets have 32 bits on some machines.
    let (Ok(offset), Ok(count)) = (begin.try_into(), length.try_into()) else {
        return Ok(0);
    };
    let file = std::fs::OpenOptions::new().write(true).open(path)?;
    let flags = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
    match fallocate(&file, flags, offset, count) {
        Ok(()) => Ok(length),
        Err(Errno::EOPNOTSUPP | Errno::ENOSYS) => Ok(0),
        Err(error) => Err(error.into()),
    }
}

/// Gives nothing back: the system has no call for it that is known here.
///
/// # Errors
///
/// There are none.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub fn punch(_path: &Path, _range: std::ops::Range<u64>) -> io::Result<u64> {
    Ok(0)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_back_reads_as_zeros() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let bytes = vec![7; 20_000];
        std::fs::write(file.path(), &bytes).unwrap();
        let freed = punch(file.path(), 100..13_000).unwrap();
        let now = std::fs::read(file.path()).unwrap();
        assert_eq!(now.len(), bytes.len());
        if freed > 0 {
            assert_eq!(freed, 8192);
            assert!(now[4096..12_288].iter().all(|&byte| byte == 0));
        }
        assert!(
            now[..4096]
                .iter()
                .chain(&now[12_288..])
                .all(|&byte| byte == 7)
        );
        assert_eq!(punch(file.path(), 5000..6000).unwrap(), 0);
    }
}
