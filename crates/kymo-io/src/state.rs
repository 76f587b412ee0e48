//! Whether a file has changed.

use std::fs::Metadata;
use std::io;
use std::path::Path;
use std::time::SystemTime;

use crate::{Access, Bytes};

/// What shows that a file has changed, without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileState {
    /// Its device and number there, where the system has such.
    id: Option<(u64, u64)>,
    /// Its size in bytes.
    length: u64,
    /// When it was changed, in nanoseconds from 1970.
    modified: Option<i64>,
}

impl FileState {
    /// The state of the regular file at a path.
    ///
    /// # Errors
    ///
    /// There is none, or it cannot be looked at.
    pub fn of(path: &Path) -> io::Result<Self> {
        let metadata = std::fs::metadata(path)?;
        if !metadata.is_file() {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "not a regular file",
            ));
        }
        Ok(Self::of_metadata(&metadata))
    }

    pub(crate) fn of_metadata(metadata: &Metadata) -> Self {
        Self {
            id: crate::file_id(metadata),
            length: metadata.len(),
            modified: metadata.modified().ok().and_then(nanos),
        }
    }

    /// Device, number there, size in bytes, and the nanoseconds from 1970 to its last change (the bits of a signed
    /// number); `None` if the system does not know all four.
    pub fn to_numbers(&self) -> Option<[u64; 4]> {
        let (device, inode) = self.id?;
        Some([device, inode, self.length, self.modified? as u64])
    }

    /// Its size in bytes.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// The same, for a file of which only `length` bytes are known.
    #[must_use]
    pub fn with_length(self, length: u64) -> Self {
        Self { length, ..self }
    }

    /// Whether it can be the same file at another time. What cannot be known is believed.
    pub fn is_same_file(&self, other: &Self) -> bool {
        self.id == other.id
    }

    /// Whether it is known to be the same file, whatever its path.
    pub fn is_moved_from(&self, other: &Self) -> bool {
        self.id.is_some() && self.id == other.id
    }
}

fn nanos(time: SystemTime) -> Option<i64> {
    let nanos = match time.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(since) => i128::try_from(since.as_nanos()).ok()?,
        Err(before) => -i128::try_from(before.duration().as_nanos()).ok()?,
    };
    i64::try_from(nanos).ok()
}

/// Bytes by which content is recognised: what was decompressed begins with others than its file.
const BEGIN: usize = 8;

/// The file that some content is of, to read it again when it has changed. Content that is not what a file
/// holds, such as a member of an archive, never changes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Watch(Option<FileState>);

/// A file that has changed.
#[derive(Debug)]
pub struct Changed {
    /// What it holds now.
    pub bytes: Bytes,
    /// Whether it is the same file, no shorter than it was: then it may have been changed in place, and bytes
    /// that were mapped before show that, too. Else these are what they were, or may not be touched.
    pub is_in_place: bool,
    /// Whether it is shorter than it was: bytes that were mapped before may be gone.
    pub is_cut: bool,
    /// What to ask for the next change.
    pub watch: Watch,
}

impl Watch {
    /// Watches the file at a path that holds these bytes.
    pub fn new(path: &Path, bytes: &[u8]) -> Self {
        let begin = &bytes[..bytes.len().min(BEGIN)];
        let mut found = [0; BEGIN];
        let found = &mut found[..begin.len()];
        let is_it = std::fs::File::open(path)
            .and_then(|mut file| io::Read::read_exact(&mut file, found))
            .is_ok();
        let state = FileState::of(path).ok();
        let state = state.filter(|_| is_it && found == begin);
        // It may have grown since it was read.
        Self(state.map(|state| state.with_length(bytes.len() as u64)))
    }

    /// What the file holds now, if that has changed.
    ///
    /// # Errors
    ///
    /// Those of looking at the file and opening it.
    pub fn changed(&self, path: &Path) -> io::Result<Option<Changed>> {
        let Some(known) = self.0 else {
            return Ok(None);
        };
        let now = FileState::of(path)?;
        if now == known {
            return Ok(None);
        }
        let bytes = Bytes::open(path, Access::Sequential)?;
        let length = bytes.len() as u64;
        let is_same = now.is_same_file(&known);
        Ok(Some(Changed {
            is_in_place: is_same && length >= known.length,
            is_cut: is_same && length < known.length,
            bytes,
            watch: Self(Some(now.with_length(length))),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_of_a_file_is_read_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        std::fs::write(&path, "one").unwrap();
        assert!(!matches!(
            Watch::new(&path, b"two").changed(&path),
            Ok(Some(_))
        ));
        let watch = Watch::new(&path, b"one");
        assert!(watch.changed(&path).unwrap().is_none());
        std::fs::write(&path, "one more").unwrap();
        let changed = watch.changed(&path).unwrap().unwrap();
        assert_eq!(&*changed.bytes, b"one more");
        assert!(changed.is_in_place && !changed.is_cut);
        let watch = changed.watch;
        assert!(watch.changed(&path).unwrap().is_none());
        std::fs::write(&path, "").unwrap();
        assert!(watch.changed(&path).unwrap().unwrap().is_cut);
        std::fs::remove_file(&path).unwrap();
        assert!(watch.changed(&path).is_err());
    }

    #[test]
    fn growth_and_replacement_show() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        std::fs::write(&path, "1").unwrap();
        let before = FileState::of(&path).unwrap();
        assert_eq!(FileState::of(&path).unwrap(), before);
        std::fs::write(&path, "12").unwrap();
        let after = FileState::of(&path).unwrap();
        assert!(after != before && after.is_same_file(&before));
        let moved = directory.path().join("moved");
        std::fs::rename(&path, &moved).unwrap();
        assert_eq!(FileState::of(&moved).unwrap(), after);
        std::fs::write(&path, "12").unwrap();
        assert_ne!(FileState::of(&path).unwrap(), after);
        assert!(FileState::of(directory.path()).is_err());
    }
}
