//! The bytes of a file.

use std::borrow::Cow;
use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::ops::{Deref, Range};
use std::path::Path;
use std::sync::Arc;

#[cfg(not(target_family = "wasm"))]
use crate::fetched::Fetched;
use crate::spool::Claim;
use crate::{FileState, Locking, ReadAt, SharedSource, lock_to_read, unlock};

/// The largest file, in bytes, that is read into memory where it cannot be mapped.
pub const MAX_READ: u64 = 1 << 30;

/// How a file will be read. Advice: any way of reading works whatever was said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// From the beginning to the end, more or less.
    Sequential,
    /// Here and there.
    Random,
    /// All of it, and soon: a small file is read into memory, which takes less time than mapping it.
    Whole,
}

/// The largest file, in bytes, that is not mapped if it is wanted [whole](Access::Whole).
const MOST_WHOLE: u64 = 256 << 10;

/// The bytes of a file, mapped where that is possible, else in memory; or a part of them.
///
/// A mapped file should not be truncated by others while it is open: reading what is gone
/// ends the process (SIGBUS on Unix), unless the program called `survive_truncation` (on Linux). Files that grow or are removed are not a problem: the
/// bytes stay those that were there when it was opened.
pub struct Bytes {
    inner: Inner,
    /// The file that is locked as long as its bytes are there.
    locked: Option<File>,
    /// The temporary storage that they take, which is free again after them.
    _claim: Option<Claim>,
}

enum Inner {
    #[cfg(not(target_family = "wasm"))]
    Mapped(Mapped),
    /// Not all of them need be there yet.
    #[cfg(not(target_family = "wasm"))]
    Fetched(Fetched),
    Owned(Vec<u8>),
    /// A range that is within the bytes of all.
    Part(Arc<Bytes>, Range<usize>),
}

/// A mapping. What is registered of it goes first when it is dropped.
#[cfg(not(target_family = "wasm"))]
struct Mapped {
    #[cfg(target_os = "linux")]
    _registered: Option<crate::truncated::Registered>,
    map: memmap2::Mmap,
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
        Self::of(&open(path)?, access)
    }

    /// Opens a file that others change in place, and locks it against them as long as there are these
    /// bytes, or until [`unlock`](Self::unlock). A file that cannot be locked, since its
    /// file system knows no locks, is read all the same.
    ///
    /// # Errors
    ///
    /// As of [`open`](Self::open); `WouldBlock` where another program writes it and does not end in the
    /// specified time.
    pub fn open_locked(path: &Path, access: Access, how: Locking) -> io::Result<Self> {
        Self::open_watched(path, access, how).map(|(bytes, _)| bytes)
    }

    /// The same, with the state that the file had before it was read.
    ///
    /// # Errors
    ///
    /// As of [`open_locked`](Self::open_locked).
    pub fn open_watched(
        path: &Path,
        access: Access,
        how: Locking,
    ) -> io::Result<(Self, FileState)> {
        let is_held = |error: &io::Error| error.kind() == io::ErrorKind::WouldBlock;
        let (at_once, waits) = match how {
            Locking::None | Locking::Try => (how, false),
            Locking::Briefly | Locking::Wait => (Locking::Try, true),
        };
        loop {
            let file = open(path)?;
            let mut locked = lock_to_read(&file, at_once);
            if waits && locked.as_ref().is_err_and(is_held) {
                locked = lock_to_read(&file, how);
                // Whoever was waited for may have put another file in its place.
                if locked.is_ok() && !is_still_at(&file, path) {
                    continue;
                }
            }
            let is_locked = match locked {
                Err(error) if is_held(&error) => return Err(error),
                locked => locked.is_ok(),
            };
            let metadata = file.metadata()?;
            let mut bytes = Self::of_length(&file, metadata.len(), access)?;
            bytes.locked = is_locked.then_some(file);
            return Ok((bytes, FileState::of_metadata(&metadata)));
        }
    }

    /// The bytes of a source that may be far away, which are not read before somebody [fetches](Self::fetch) them: as a
    /// slice, they are zeros until then. Where a temporary file cannot be mapped, all of them are read now.
    ///
    /// # Errors
    ///
    /// Those of the source, and of temporary storage.
    pub fn fetched(source: SharedSource) -> io::Result<Self> {
        let length = source.length()?;
        if length == 0 {
            return Ok(Self::from(Vec::new()));
        }
        #[cfg(not(target_family = "wasm"))]
        if let Ok(fetched) = Fetched::new(Arc::clone(&source)) {
            return Ok(Self::new(Inner::Fetched(fetched)));
        }
        if length > MAX_READ {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        source
            .read_range(0..length)
            .map(|bytes| Self::from(bytes.into_owned()))
    }

    /// Sees to it that the bytes of a range are there to be read as a slice. Only those that were
    /// [made so](Self::fetched) may not be.
    ///
    /// # Errors
    ///
    /// Those of the source and of temporary storage. After one, fetching what is missing fails at once.
    #[inline]
    pub fn fetch(&self, range: Range<u64>) -> io::Result<()> {
        match &self.inner {
            #[cfg(not(target_family = "wasm"))]
            Inner::Fetched(fetched) => fetched.fetch(range),
            Inner::Part(whole, part) => {
                let place = |at: u64| at.saturating_add(part.start as u64).min(part.end as u64);
                whole.fetch(place(range.start)..place(range.end))
            }
            _ => Ok(()),
        }
    }

    /// Whether bytes may have to be [fetched](Self::fetch).
    #[inline]
    pub fn is_fetched(&self) -> bool {
        match &self.inner {
            #[cfg(not(target_family = "wasm"))]
            Inner::Fetched(_) => true,
            Inner::Part(whole, _) => whole.is_fetched(),
            _ => false,
        }
    }

    /// Why bytes could not be fetched, if so.
    pub fn failure(&self) -> Option<String> {
        match &self.inner {
            #[cfg(not(target_family = "wasm"))]
            Inner::Fetched(fetched) => fetched.failure(),
            Inner::Part(whole, _) => whole.failure(),
            _ => None,
        }
    }

    /// The same bytes in memory: others may change the file then, or cut it off.
    #[must_use]
    pub fn into_memory(self) -> Self {
        match self.inner {
            Inner::Owned(bytes) => Self::from(bytes),
            // Nobody else knows the file.
            #[cfg(not(target_family = "wasm"))]
            Inner::Fetched(_) => self,
            #[cfg(not(target_family = "wasm"))]
            Inner::Mapped(mapped) => Self::from(mapped.map.to_vec()),
            Inner::Part(whole, range) => Self::from(whole[range].to_vec()),
        }
    }

    /// A part of some bytes, which stay as long as one of their parts does. `None` if the range does not
    /// lie within them.
    pub fn part(whole: &Arc<Self>, range: Range<u64>) -> Option<Self> {
        let range = usize::try_from(range.start).ok()?..usize::try_from(range.end).ok()?;
        whole.get(range.clone())?;
        Some(Self::new(Inner::Part(Arc::clone(whole), range)))
    }

    /// The same bytes, which count as temporary storage.
    pub(crate) fn claiming(mut self, claim: Claim) -> Self {
        self._claim = Some(claim);
        self
    }

    fn new(inner: Inner) -> Self {
        Self {
            inner,
            locked: None,
            _claim: None,
        }
    }

    /// Ends the lock, if there is one.
    pub fn unlock(&mut self) {
        if let Some(file) = self.locked.take() {
            // A mapping keeps what was opened, and its lock with it. That it cannot be ended never happens
            // to a lock that was taken, and nothing that was read is wrong then.
            let _ = unlock(&file);
        }
    }

    /// The bytes of a file that is open.
    pub(crate) fn of(file: &File, access: Access) -> io::Result<Self> {
        Self::of_length(file, file.metadata()?.len(), access)
    }

    fn of_length(file: &File, len: u64, access: Access) -> io::Result<Self> {
        if len == 0 {
            return Ok(Self::from(Vec::new()));
        }
        if access == Access::Whole && len <= MOST_WHOLE {
            let mut bytes = vec![0; usize::try_from(len).unwrap_or(0)];
            // A file that has become shorter is read to its end.
            return match file.read_at(0, &mut bytes) {
                Ok(()) => Ok(Self::from(bytes)),
                Err(_) => read(file, len, MAX_READ).map(Self::from),
            };
        }
        #[cfg(not(target_family = "wasm"))]
        if let Ok(len) = usize::try_from(len)
            && let Ok(map) = crate::map::map(file, len, access)
        {
            #[cfg(target_os = "linux")]
            let _registered =
                crate::truncated::Registered::new(&map, std::os::fd::AsFd::as_fd(file));
            return Ok(Self::new(Inner::Mapped(Mapped {
                #[cfg(target_os = "linux")]
                _registered,
                map,
            })));
        }
        if len > MAX_READ {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        read(file, len, MAX_READ).map(Self::from)
    }
}

/// Opens a regular file.
fn open(path: &Path) -> io::Result<File> {
    let kind = std::fs::metadata(path)?;
    if kind.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if !kind.is_file() {
        // Opening a pipe would wait for a writer.
        return Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "not a regular file",
        ));
    }
    File::open(path)
}

/// Whether a path leads to a file that is open; assumed if the system cannot determine it.
fn is_still_at(file: &File, path: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let number = |there: io::Result<std::fs::Metadata>| {
            there.map(|there| (there.dev(), there.ino())).ok()
        };
        // A file that was removed is read as it was last.
        number(std::fs::metadata(path)).is_none_or(|there| number(file.metadata()) == Some(there))
    }
    #[cfg(not(unix))]
    {
        let _ = (file, path);
        true
    }
}

/// Reads a file of about `len` bytes to its end, if that is within `limit` bytes.
fn read(file: &File, len: u64, limit: u64) -> io::Result<Vec<u8>> {
    // One byte more, so that its end is met without growing.
    let room = len.min(MOST_WHOLE) + 1;
    let mut bytes = Vec::with_capacity(usize::try_from(room).unwrap_or(0));
    let mut file = file;
    // It may just have been written.
    file.rewind()?;
    file.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(bytes)
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.inner {
            #[cfg(not(target_family = "wasm"))]
            Inner::Mapped(mapped) => &mapped.map,
            #[cfg(not(target_family = "wasm"))]
            Inner::Fetched(fetched) => fetched.bytes(),
            Inner::Owned(bytes) => bytes,
            Inner::Part(whole, range) => &whole[range.clone()],
        }
    }
}

impl ReadAt for Bytes {
    fn length(&self) -> io::Result<u64> {
        Ok(self.len() as u64)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.fetch(offset..offset.saturating_add(buffer.len() as u64))?;
        (**self).read_at(offset, buffer)
    }

    fn read_range(&self, range: Range<u64>) -> io::Result<Cow<'_, [u8]>> {
        self.fetch(range.clone())?;
        (**self).read_range(range)
    }
}

impl From<Vec<u8>> for Bytes {
    fn from(bytes: Vec<u8>) -> Self {
        Self::new(Inner::Owned(bytes))
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

    #[test]
    fn parts_lie_within_the_whole() {
        let whole = Arc::new(Bytes::from(b"0123456789".to_vec()));
        let part = |range| Bytes::part(&whole, range).map(|part| part.to_vec());
        assert_eq!(part(2..5).unwrap(), b"234");
        assert_eq!(part(10..10).unwrap(), b"");
        for range in [9..11, 11..11, u64::MAX - 1..u64::MAX] {
            assert_eq!(part(range), None);
        }
        let kept = Bytes::part(&whole, 8..10).unwrap();
        drop(whole);
        assert_eq!(&*kept.into_memory(), b"89");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_file_is_locked_as_long_as_its_bytes_are_there() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        std::fs::write(&path, [3; 5000]).unwrap();
        let open = |how| Bytes::open_locked(&path, Access::Random, how);
        let (one, mut other) = (open(Locking::Try).unwrap(), open(Locking::Try).unwrap());
        let writer = || crate::Shared::open_locked(&path, Locking::Try);
        let is_locked = || writer().is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock);
        assert!(is_locked());
        assert_eq!(&*one.into_memory(), [3; 5000]);
        assert!(is_locked());
        other.unlock();
        assert_eq!(&*other, [3; 5000]);
        let held = writer().unwrap();
        let error = open(Locking::Try).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        assert_eq!(open(Locking::None).unwrap().len(), 5000);
        drop(held);
        assert!(open(Locking::Try).is_ok());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_file_that_is_waited_for_is_the_one_at_the_path() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        std::fs::write(&path, b"old").unwrap();
        let held = crate::Shared::open_locked(&path, Locking::Try).unwrap();
        let waiting = std::thread::spawn({
            let path = path.clone();
            move || Bytes::open_locked(&path, Access::Random, Locking::Wait).unwrap()
        });
        let new = directory.path().join("new");
        std::fs::write(&new, b"newer").unwrap();
        std::fs::rename(&new, &path).unwrap();
        drop(held);
        assert_eq!(&*waiting.join().unwrap(), b"newer");
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
        assert_eq!(read(&File::open(&path).unwrap(), 10, 10).unwrap().len(), 10);
        let mut written = tempfile::tempfile().unwrap();
        io::Write::write_all(&mut written, b"before").unwrap();
        assert_eq!(read(&written, 0, 10).unwrap(), b"before");
        let error = read(&File::open(&path).unwrap(), 10, 9).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
    }
}
