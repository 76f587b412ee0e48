//! The bytes of a file.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::ops::Deref;
use std::path::Path;

/// The largest file, in bytes, that is read into memory where it cannot be mapped.
pub const MAX_READ: u64 = 1 << 30;

/// How a file will be read. Advice: any way of reading works whatever was said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// From the beginning to the end, more or less.
    Sequential,
    /// Here and there.
    Random,
}

/// The bytes of a file, mapped where that is possible, else in memory.
///
/// A mapped file should not be cut off by others while it is open: reading what is gone
/// ends the process (SIGBUS on Unix). Files that grow or are removed are no problem: the
/// bytes stay those that were there when it was opened.
pub struct Bytes(Inner);

enum Inner {
    #[cfg(not(target_family = "wasm"))]
    Mapped(memmap2::Mmap),
    Owned(Vec<u8>),
}

impl Bytes {
    /// Opens a file.
    ///
    /// What cannot be mapped is read into memory up to [`MAX_READ`] bytes. A file that says
    /// it is empty is: those that the system makes up when they are read (in `/proc`) may
    /// never end.
    ///
    /// # Errors
    ///
    /// Those of opening and reading; `FileTooLarge` above the limit; `IsADirectory` for
    /// a directory, `Unsupported` for a pipe or device.
    pub fn open(path: &Path, access: Access) -> io::Result<Self> {
        let kind = std::fs::metadata(path)?;
        if kind.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        if !kind.is_file() {
            // Opening a pipe would wait for somebody to write into it.
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "not a regular file",
            ));
        }
        let file = File::open(path)?;
        let len = file.metadata()?.len();
        if len == 0 {
            return Ok(Self::from(Vec::new()));
        }
        #[cfg(not(target_family = "wasm"))]
        if let Ok(len) = usize::try_from(len)
            && let Ok(map) = crate::map::map(&file, len, access)
        {
            return Ok(Self(Inner::Mapped(map)));
        }
        #[cfg(target_family = "wasm")]
        let _ = access;
        if len > MAX_READ {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        read(file, MAX_READ).map(Self::from)
    }
}

/// Reads a file to its end, if that is within `limit` bytes.
fn read(file: File, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(bytes)
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            #[cfg(not(target_family = "wasm"))]
            Inner::Mapped(map) => map,
            Inner::Owned(bytes) => bytes,
        }
    }
}

impl From<Vec<u8>> for Bytes {
    fn from(bytes: Vec<u8>) -> Self {
        Self(Inner::Owned(bytes))
    }
}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bytes({})", self.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_what_was_written() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        for content in [&b""[..], b"x", &[7; 100_000]] {
            std::fs::write(&path, content).unwrap();
            assert_eq!(&*Bytes::open(&path, Access::Sequential).unwrap(), content);
            assert_eq!(&*Bytes::open(&path, Access::Random).unwrap(), content);
        }
        assert_eq!(&*Bytes::from(vec![1, 2]), [1, 2]);
    }

    #[test]
    fn a_removed_file_stays_readable() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        std::fs::write(&path, [3; 5000]).unwrap();
        let bytes = Bytes::open(&path, Access::Sequential).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(&*bytes, [3; 5000]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_file_that_says_it_is_empty_is_not_read() {
        // As files of /proc do, most of which can give anything when they are read.
        let bytes = Bytes::open(Path::new("/proc/version"), Access::Sequential).unwrap();
        assert!(bytes.is_empty());
    }

    #[test]
    fn what_cannot_be_read_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        assert!(Bytes::open(&directory.path().join("none"), Access::Random).is_err());
        let error = Bytes::open(directory.path(), Access::Random).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::IsADirectory);

        let path = directory.path().join("file");
        std::fs::write(&path, [0; 10]).unwrap();
        assert_eq!(read(File::open(&path).unwrap(), 10).unwrap().len(), 10);
        let error = read(File::open(&path).unwrap(), 9).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
    }
}
