//! A file that several programs change in place, one after the other.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::path::Path;
#[cfg(target_os = "linux")]
use std::time::{SystemTime, UNIX_EPOCH};

#[cfg(target_os = "linux")]
use crate::map::WritableMap;
#[cfg(target_os = "linux")]
use crate::places::may_move;
use crate::{Locking, ReadAt, Storage, lock, unlock};

/// A file that several programs, or threads, change in place, one after the other: each locks it,
/// looks and writes, and unlocks it.
///
/// A file that is locked again and again is mapped on Linux, so that an update costs two system
/// calls for the lock, one to see that the file is still the one of its path, and none to read and
/// write. A mapping costs as much as two or three updates without one, so none is made for the first.
/// It is mapped only where the disk has room for each of its bytes, since a mapping cannot report that a
/// disk is full; and not on file systems that find a new place for what is written (btrfs, ZFS, bcachefs,
/// NILFS2), or may do so (XFS and OCFS2, where copies share places), nor where it cannot be known (overlayfs):
/// there the file is read and written by calls. A file that others cut off while it is locked here ends the process (SIGBUS), as with
/// [`Bytes`](crate::Bytes); none that take the lock do that.
#[derive(Debug)]
pub struct Shared {
    /// The open file. No other code has access to it, or to the lock that belongs to it.
    file: File,
    identity: Option<Identity>,
    /// Whether the lock is held, so that no other code in this process uses mapped bytes.
    locked: bool,
    /// Whether the file has been locked before.
    again: bool,
    /// The length that was seen behind the lock, which those who take it do not change.
    length: Option<u64>,
    #[cfg(target_os = "linux")]
    map: Option<WritableMap>,
    /// Whether its bytes stay where they are on the disk; asked when it is first to be mapped.
    #[cfg(target_os = "linux")]
    stays: Option<bool>,
    /// Whether the mapping was written to since the lock was taken.
    #[cfg(target_os = "linux")]
    written: bool,
    /// The second in which the system was last notified that the file has changed.
    #[cfg(target_os = "linux")]
    reported: u64,
}

/// Device and number of a file.
type Identity = (u64, u64);

impl Shared {
    /// Opens a file to read and write.
    ///
    /// # Errors
    ///
    /// Those of opening; `Unsupported` if the path is not a regular file, but a pipe or a device.
    pub fn open(path: &Path) -> io::Result<Self> {
        let mut shared = Self::opened(path)?;
        let metadata = shared.file.metadata()?;
        shared.identify(&metadata)?;
        Ok(shared)
    }

    /// Opens a file of which nothing is known yet.
    fn opened(path: &Path) -> io::Result<Self> {
        Ok(Self {
            file: OpenOptions::new().read(true).write(true).open(path)?,
            identity: None,
            locked: false,
            again: false,
            length: None,
            #[cfg(target_os = "linux")]
            map: None,
            #[cfg(target_os = "linux")]
            stays: None,
            #[cfg(target_os = "linux")]
            written: false,
            #[cfg(target_os = "linux")]
            reported: 0,
        })
    }

    /// Keeps in mind which file it is.
    fn identify(&mut self, metadata: &Metadata) -> io::Result<()> {
        if !metadata.is_file() {
            let error = io::Error::new(io::ErrorKind::Unsupported, "not a regular file");
            return Err(error);
        }
        self.identity = identity(metadata);
        Ok(())
    }

    /// Opens the file at a path and locks it: the one that is there when there is the lock, or one that has
    /// been moved since it was opened.
    ///
    /// # Errors
    ///
    /// Those of opening, and of [`lock()`].
    pub fn open_locked(path: &Path, how: Locking) -> io::Result<Self> {
        loop {
            let mut shared = Self::opened(path)?;
            let again = shared.take(how)?;
            let now = shared.file.metadata()?;
            shared.identify(&now)?;
            // A file that was replaced or removed has lost its name. A system that cannot distinguish files is
            // believed.
            let is_there = || {
                let there = std::fs::metadata(path);
                there.is_ok_and(|there| identity(&there) == shared.identity)
            };
            if shared.identity.is_none() || has_one_name(&now) || is_there() {
                shared.see(&now, again);
                return Ok(shared);
            }
            shared.unlock()?;
        }
    }

    /// Locks the file.
    ///
    /// # Errors
    ///
    /// Those of [`lock()`].
    pub fn lock(&mut self, how: Locking) -> io::Result<()> {
        let again = self.take(how)?;
        let now = self.file.metadata()?;
        self.see(&now, again);
        Ok(())
    }

    /// Locks the file if it is still the one at a path, and returns whether it is. A file that was
    /// replaced or removed is not locked, nor is one of a system that cannot determine this.
    ///
    /// # Errors
    ///
    /// Those of [`lock()`], and of looking at the path.
    pub fn lock_at(&mut self, path: &Path, how: Locking) -> io::Result<bool> {
        let again = self.take(how)?;
        // Not before there is the lock, for which others may have been waited.
        let there = std::fs::metadata(path);
        match there {
            Ok(there) if self.identity.is_some() && self.identity == identity(&there) => {
                self.see(&there, again);
                Ok(true)
            }
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                self.unlock()?;
                Err(error)
            }
            _ => {
                self.unlock()?;
                Ok(false)
            }
        }
    }

    /// Takes the lock. Returns whether the file is worth mapping: not for one update.
    fn take(&mut self, how: Locking) -> io::Result<bool> {
        lock(&self.file, how)?;
        self.locked = how != Locking::None;
        Ok(std::mem::replace(&mut self.again, true) && self.locked)
    }

    /// Keeps in mind what the file is now, and maps it if that is worth it.
    fn see(&mut self, now: &Metadata, again: bool) {
        self.length = self.locked.then_some(now.len());
        if again {
            self.map(now);
        }
    }

    /// Maps the file, which is locked, where much is to be written to it at once. Without the lock
    /// nothing is done.
    ///
    /// # Errors
    ///
    /// Those of looking at the file.
    pub fn map_now(&mut self) -> io::Result<()> {
        if self.locked {
            let now = self.file.metadata()?;
            self.map(&now);
        }
        Ok(())
    }

    /// Ends the lock.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub fn unlock(&mut self) -> io::Result<()> {
        self.length = None;
        if !std::mem::take(&mut self.locked) {
            return Ok(());
        }
        #[cfg(target_os = "linux")]
        if std::mem::take(&mut self.written) {
            self.report_time();
        }
        unlock(&self.file)
    }

    /// Sees that the file's time of modification is of this second: what is written through a mapping
    /// changes it when the system likes, and programs that copy what is new go by it.
    #[cfg(target_os = "linux")]
    fn report_time(&mut self) {
        let second = second();
        if self.reported == second {
            return;
        }
        let mut first = [0];
        if self.map.as_ref().is_some_and(|map| map.read(0, &mut first)) {
            // What was asked for is done, whether this works or not.
            let _ = self.file.write_at(0, &first);
            self.reported = second;
        }
    }

    /// Sees that the file, which is locked, is mapped as it is now, if it can be.
    #[cfg(target_os = "linux")]
    fn map(&mut self, now: &Metadata) {
        use std::os::unix::fs::MetadataExt;

        // Blocks of 512 bytes, whatever the file system has.
        let has_room = now.blocks().saturating_mul(512) >= now.len()
            && *self.stays.get_or_insert_with(|| !may_move(&self.file));
        let length = usize::try_from(now.len()).ok();
        let Some(length) = length.filter(|&length| has_room && length > 0) else {
            self.map = None;
            return;
        };
        if self.map.as_ref().is_none_or(|map| map.len() != length) {
            // What cannot be mapped is read and written as other files are.
            self.map = WritableMap::new(&self.file, length).ok();
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn map(&mut self, _now: &Metadata) {}

    /// Writes without a mapping, or beyond it.
    #[inline(never)]
    fn write_to_file(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        // What is written behind the end of a mapping makes the file longer than that.
        #[cfg(target_os = "linux")]
        drop(self.map.take());
        let end = offset.saturating_add(bytes.len() as u64);
        // Where it fails, part of it may have been done.
        self.length = self.length.filter(|&length| end <= length);
        self.file.write_at(offset, bytes)?;
        #[cfg(target_os = "linux")]
        (self.reported = second());
        Ok(())
    }

    /// The mapping, where it may be used.
    #[cfg(target_os = "linux")]
    fn mapped(&self) -> Option<&WritableMap> {
        self.map.as_ref().filter(|_| self.locked)
    }
}

/// The second that it is, counted from 1970.
#[cfg(target_os = "linux")]
fn second() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default().as_secs()
}

/// Whether a file has exactly one name in its file system.
#[cfg(unix)]
fn has_one_name(file: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    file.nlink() == 1
}

#[cfg(not(unix))]
fn has_one_name(_file: &Metadata) -> bool {
    false
}

#[cfg(unix)]
fn identity(file: &Metadata) -> Option<Identity> {
    use std::os::unix::fs::MetadataExt;
    Some((file.dev(), file.ino()))
}

#[cfg(not(unix))]
fn identity(_file: &Metadata) -> Option<Identity> {
    None
}

impl ReadAt for Shared {
    fn length(&self) -> io::Result<u64> {
        match self.length {
            Some(length) => Ok(length),
            None => self.file.length(),
        }
    }

    #[inline]
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        #[cfg(target_os = "linux")]
        if self.mapped().is_some_and(|map| map.read(offset, buffer)) {
            return Ok(());
        }
        self.file.read_at(offset, buffer)
    }

    fn holds(&self, offset: u64, parts: &[&[u8]]) -> io::Result<bool> {
        #[cfg(target_os = "linux")]
        if let Some(same) = self.mapped().and_then(|map| map.holds(offset, parts)) {
            return Ok(same);
        }
        self.file.holds(offset, parts)
    }
}

impl Storage for Shared {
    #[inline(always)]
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        #[cfg(target_os = "linux")]
        if self.mapped().is_some_and(|map| map.write(offset, bytes)) {
            self.written = true;
            return Ok(());
        }
        self.write_to_file(offset, bytes)
    }

    fn set_length(&mut self, length: u64) -> io::Result<()> {
        // No mapping may reach beyond the end.
        #[cfg(target_os = "linux")]
        drop(self.map.take());
        self.length = None;
        self.file.set_length(length)
    }

    /// Mapped bytes are synced with the file they are of.
    fn sync(&mut self) -> io::Result<()> {
        self.file.sync()
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn file(bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, bytes).unwrap();
        // Some file systems find places for bytes only when they write them.
        File::open(&path).unwrap().sync_all().unwrap();
        (folder, path)
    }

    /// Locked for the second time.
    fn mapped(path: &Path) -> Shared {
        let mut shared = Shared::open(path).unwrap();
        shared.lock(Locking::Try).unwrap();
        shared.unlock().unwrap();
        assert!(shared.lock_at(path, Locking::Try).unwrap());
        shared
    }

    #[test]
    fn the_time_of_a_file_follows_what_is_written() {
        let (_folder, path) = file(b"0123456789");
        let mut shared = mapped(&path);
        shared.write_at(3, b"abc").unwrap();
        shared.unlock().unwrap();
        let long_ago = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1);
        let modified = || path.metadata().unwrap().modified().unwrap();
        File::open(&path).unwrap().set_modified(long_ago).unwrap();
        // As if a second had gone.
        #[cfg(target_os = "linux")]
        (shared.reported = 0);
        assert!(shared.lock_at(&path, Locking::Try).unwrap());
        shared.unlock().unwrap();
        assert_eq!(modified(), long_ago, "nothing was written");
        assert!(shared.lock_at(&path, Locking::Try).unwrap());
        shared.write_at(3, b"def").unwrap();
        shared.unlock().unwrap();
        assert!(modified() > long_ago);
        assert_eq!(std::fs::read(&path).unwrap(), b"012def6789");
    }

    #[test]
    fn what_is_written_is_in_the_file() {
        let (_folder, path) = file(b"0123456789");
        let mut shared = mapped(&path);
        #[cfg(target_os = "linux")]
        assert_eq!(shared.mapped().is_some(), !may_move(&shared.file));
        shared.write_at(3, b"abc").unwrap();
        let mut bytes = [0; 4];
        shared.read_at(2, &mut bytes).unwrap();
        assert_eq!(&bytes, b"2abc");
        assert!(shared.holds(2, &[b"2abc67"]).unwrap());
        assert!(!shared.holds(2, &[b"2a", b"bc76"]).unwrap());
        assert!(shared.holds(7, &[b"789", b"x"]).is_err());
        assert_eq!(std::fs::read(&path).unwrap(), b"012abc6789");
        for offset in [7, 10, u64::MAX - 2] {
            assert!(shared.read_at(offset, &mut bytes).is_err(), "{offset}");
        }
        assert_eq!(shared.length().unwrap(), 10);
        shared.sync().unwrap();

        // Without the lock, others may use the mapping.
        shared.unlock().unwrap();
        shared.write_at(0, b"x").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"x12abc6789");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn files_that_are_locked_are_mapped_when_it_is_asked_for() {
        let (_folder, path) = file(b"0123456789");
        let mut shared = Shared::open(&path).unwrap();
        shared.map_now().unwrap();
        assert!(shared.map.is_none());
        shared.lock(Locking::Try).unwrap();
        assert!(shared.mapped().is_none());
        shared.map_now().unwrap();
        assert_eq!(shared.mapped().is_some(), !may_move(&shared.file));
        shared.write_at(3, b"abc").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"012abc6789");
    }

    #[test]
    fn files_may_change_their_length() {
        let (_folder, path) = file(b"0123456789");
        let mut shared = mapped(&path);
        shared.write_at(9, b"ab").unwrap();
        assert_eq!(shared.length().unwrap(), 11);
        shared.write_at(11, b"c").unwrap();
        assert_eq!(shared.length().unwrap(), 12);
        shared.unlock().unwrap();
        std::fs::write(&path, b"01234").unwrap();
        File::open(&path).unwrap().sync_all().unwrap();
        assert!(shared.lock_at(&path, Locking::Try).unwrap());
        let mut bytes = [0; 4];
        let error = shared.read_at(3, &mut bytes).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        shared.set_length(7).unwrap();
        assert_eq!(shared.length().unwrap(), 7);
        shared.read_at(3, &mut bytes).unwrap();
        assert_eq!(&bytes, b"34\0\0");
    }

    /// What is compared is longer than what is copied at once.
    #[test]
    fn each_byte_is_compared() {
        let mut bytes: Vec<u8> = (0..2500u32).map(|at| (at % 251) as u8).collect();
        let (_folder, path) = file(&bytes);
        let shared = mapped(&path);
        assert!(shared.holds(0, &[&bytes]).unwrap());
        assert!(
            shared
                .holds(100, &[&bytes[100..131], &bytes[131..]])
                .unwrap()
        );
        for at in [0, 1023, 1024, 2047, 2048, 2499] {
            bytes[at] ^= 1;
            assert!(!shared.holds(0, &[&bytes]).unwrap(), "{at}");
            bytes[at] ^= 1;
        }
    }

    #[test]
    fn files_with_holes_are_not_mapped() {
        let (_folder, path) = file(b"x");
        let mut shared = Shared::open(&path).unwrap();
        shared.set_length(1 << 20).unwrap();
        shared.unlock().unwrap();
        for _ in 0..2 {
            shared.lock(Locking::Try).unwrap();
        }
        #[cfg(target_os = "linux")]
        assert!(shared.mapped().is_none());
        shared.write_at(1 << 19, b"abc").unwrap();
        assert_eq!(std::fs::read(&path).unwrap()[1 << 19..][..3], *b"abc");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn files_whose_bytes_move_are_not_mapped() {
        let (_folder, path) = file(b"0123456789");
        let mut shared = Shared::open(&path).unwrap();
        // As on a file system that finds a new place for what is written.
        shared.stays = Some(false);
        for _ in 0..2 {
            assert!(shared.lock_at(&path, Locking::Try).unwrap());
            shared.map_now().unwrap();
            assert!(shared.mapped().is_none());
            shared.write_at(3, b"abc").unwrap();
            shared.unlock().unwrap();
        }
        assert_eq!(std::fs::read(&path).unwrap(), b"012abc6789");
    }

    #[cfg(unix)]
    #[test]
    fn devices_are_not_opened() {
        let error = Shared::open(Path::new("/dev/null")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::Unsupported);
    }

    #[test]
    fn replaced_files_are_not_locked() {
        let (folder, path) = file(b"old");
        let mut shared = mapped(&path);
        shared.unlock().unwrap();
        let new = folder.path().join("new");
        std::fs::write(&new, b"new").unwrap();
        std::fs::rename(&new, &path).unwrap();
        assert!(!shared.lock_at(&path, Locking::Try).unwrap());
        std::fs::remove_file(&path).unwrap();
        assert!(!shared.lock_at(&path, Locking::Try).unwrap());
        assert!(Shared::open(&path).is_err());
    }

    #[test]
    fn the_file_that_is_locked_is_the_one_at_the_path() {
        let (folder, path) = file(b"old");
        let mut old = Shared::open_locked(&path, Locking::Try).unwrap();
        let waiting = std::thread::spawn({
            let path = path.clone();
            move || Shared::open_locked(&path, Locking::Wait).unwrap()
        });
        let new = folder.path().join("new");
        std::fs::write(&new, b"newer").unwrap();
        std::fs::rename(&new, &path).unwrap();
        old.unlock().unwrap();
        assert_eq!(waiting.join().unwrap().length().unwrap(), 5);
    }

    #[test]
    fn threads_take_turns() {
        let (_folder, path) = file(&[0; 8]);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let mut shared = Shared::open(&path).unwrap();
                    for _ in 0..500 {
                        assert!(shared.lock_at(&path, Locking::Wait).unwrap());
                        let mut count = [0; 8];
                        shared.read_at(0, &mut count).unwrap();
                        let next = u64::from_le_bytes(count) + 1;
                        shared.write_at(0, &next.to_le_bytes()).unwrap();
                        shared.unlock().unwrap();
                    }
                });
            }
        });
        assert_eq!(std::fs::read(&path).unwrap(), 4000u64.to_le_bytes());
    }
}
