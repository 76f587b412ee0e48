//! Content that has no file of its own: what is decompressed, and standard input.
//!
//! Small content stays in memory. The rest goes to a temporary file without a name, which is mapped:
//! memory does not grow with it, and the system removes it however the process ends.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use crate::{Access, Bytes, MAX_READ};

/// The variable of the environment with the number of bytes that temporary files may have altogether.
pub const SPOOL_LIMIT: &str = "KYMO_SPOOL_LIMIT";

/// Whether there are temporary files.
const HAS_FILES: bool = cfg!(not(target_family = "wasm"));

/// Maximum bytes of content that stays in memory.
const SMALL: u64 = if HAS_FILES { 8 << 20 } else { MAX_READ };

/// The bytes of all small content together; where that is used up, small content goes to a file, too.
const MOST_MEMORY: u64 = if HAS_FILES { 64 << 20 } else { MAX_READ };

/// Maximum bytes of all temporary files together, if no limit is set.
const USUAL_LIMIT: u64 = 64 << 30;

/// The temporary storage of the process that is in use.
static USED: Mutex<Used> = Mutex::new(Used { memory: 0, disk: 0 });

struct Used {
    memory: u64,
    disk: u64,
}

/// Temporary storage that is in use as long as this exists.
#[derive(Debug, Default)]
pub(crate) struct Claim {
    memory: u64,
    disk: u64,
}

impl Claim {
    /// Claims memory, if there is enough left.
    fn memory(&mut self, bytes: u64, most: u64) -> bool {
        let mut used = USED.lock().unwrap_or_else(PoisonError::into_inner);
        if used.memory + bytes > most {
            return false;
        }
        used.memory += bytes;
        self.memory += bytes;
        true
    }

    /// Claims a part of the temporary files.
    pub(crate) fn disk(&mut self, bytes: u64, limit: &Limit) -> io::Result<()> {
        let mut used = USED.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = |used: u64, most: u64| used.checked_add(bytes).is_some_and(|all| all <= most);
        if !fits(used.disk, limit.all) || !fits(self.disk, limit.free) {
            return Err(limit.error());
        }
        used.disk += bytes;
        self.disk += bytes;
        Ok(())
    }

    /// Gives the memory back.
    fn release_memory(&mut self) {
        let mut used = USED.lock().unwrap_or_else(PoisonError::into_inner);
        used.memory -= std::mem::take(&mut self.memory);
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.release_memory();
        let mut used = USED.lock().unwrap_or_else(PoisonError::into_inner);
        used.disk -= self.disk;
    }
}

/// How large temporary files may be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limit {
    /// All together.
    all: u64,
    /// One of them: what is free, less a reserve.
    free: u64,
}

impl Limit {
    /// The limit that is set, or else what the file system has room for.
    pub(crate) fn of(file: &File) -> io::Result<Self> {
        match std::env::var(SPOOL_LIMIT) {
            Ok(text) => Ok(Self {
                all: size(&text).ok_or_else(|| {
                    let message = format!(
                        "the value `{text}` of {SPOOL_LIMIT} is not a size: write a number of bytes, \
                         or one with K, M, G or T"
                    );
                    io::Error::new(io::ErrorKind::InvalidInput, message)
                })?,
                free: u64::MAX,
            }),
            Err(_) => Ok(Self {
                all: USUAL_LIMIT,
                free: free(file).map_or(u64::MAX, |free| free - free / 16),
            }),
        }
    }

    fn error(&self) -> io::Error {
        let directory = std::env::temp_dir();
        let message = if self.free < self.all {
            format!(
                "the content does not fit into the temporary directory `{}` ({}); \
                 set TMPDIR to a directory with more free space",
                directory.display(),
                shown(self.free)
            )
        } else {
            format!(
                "the content is larger than the limit for temporary files ({}); \
                 set {SPOOL_LIMIT} to raise it",
                shown(self.all)
            )
        };
        io::Error::new(io::ErrorKind::FileTooLarge, message)
    }
}

/// The bytes that files in the temporary directory may have altogether: what [`SPOOL_LIMIT`] sets, or else what
/// there is room for.
///
/// # Errors
///
/// The directory cannot be looked at, or the limit that is set is not one.
pub fn spool_limit() -> io::Result<u64> {
    let limit = Limit::of(&File::open(std::env::temp_dir())?)?;
    Ok(limit.all.min(limit.free))
}

/// The bytes that temporary files of this process have now.
pub fn spool_used() -> u64 {
    USED.lock().unwrap_or_else(PoisonError::into_inner).disk
}

/// A number of bytes: digits, and `K`, `M`, `G` or `T` for powers of 1024.
fn size(text: &str) -> Option<u64> {
    let number = text.trim_end_matches(|unit: char| unit.is_ascii_alphabetic());
    let shift = match text[number.len()..].to_ascii_uppercase().as_str() {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        "T" => 40,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// A number of bytes for people.
fn shown(bytes: u64) -> String {
    match bytes {
        0..0x10_0000 => format!("{bytes} bytes"),
        0x10_0000..0x4000_0000 => format!("{} MiB", bytes >> 20),
        _ => format!("{} GiB", bytes >> 30),
    }
}

/// Bytes that the file system of a file has room for.
#[cfg(unix)]
fn free(file: &File) -> Option<u64> {
    let state = nix::sys::statvfs::fstatvfs(file).ok()?;
    // What these numbers are differs from system to system.
    #[allow(clippy::unnecessary_cast)]
    let (blocks, size) = (
        state.blocks_available() as u64,
        state.fragment_size() as u64,
    );
    blocks.checked_mul(size)
}

#[cfg(not(unix))]
fn free(_file: &File) -> Option<u64> {
    None
}

/// A file without a name in the directory for temporary files, which is gone when it is closed.
///
/// # Errors
///
/// Why there is none.
pub fn temporary_file() -> io::Result<File> {
    let directory = std::env::temp_dir();
    temporary(&directory).map_err(|error| {
        let message = format!(
            "cannot create a temporary file in `{}`: {error}; set TMPDIR to another directory",
            directory.display()
        );
        io::Error::new(error.kind(), message)
    })
}

/// A temporary file that is gone when it is closed.
fn temporary(directory: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    #[cfg(target_os = "linux")]
    {
        use std::os::unix::fs::OpenOptionsExt;
        let mut nameless = options.clone();
        nameless.mode(0o600);
        nameless.custom_flags(nix::fcntl::OFlag::O_TMPFILE.bits());
        // Not every file system has files without a name.
        if let Ok(file) = nameless.open(directory) {
            return Ok(file);
        }
    }
    options.create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    // FILE_FLAG_DELETE_ON_CLOSE
    #[cfg(windows)]
    std::os::windows::fs::OpenOptionsExt::custom_flags(&mut options, 0x0400_0000);
    for attempt in 0..1000_u32 {
        let path = directory.join(format!(".kymo-{}-{attempt}", std::process::id()));
        match options.open(&path) {
            Ok(file) => {
                #[cfg(not(windows))]
                std::fs::remove_file(&path)?;
                return Ok(file);
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Content that is being written, of which the size is not known before: small content stays in memory, the
/// rest goes to a temporary file.
#[derive(Debug)]
pub struct Spool {
    most: u64,
    memory: Vec<u8>,
    file: Option<(File, Limit)>,
    length: u64,
    claim: Claim,
}

impl Spool {
    /// Content of at most `most` bytes, if there is storage for them.
    pub fn within(most: u64) -> Self {
        Self {
            most,
            memory: Vec::new(),
            file: None,
            length: 0,
            claim: Claim::default(),
        }
    }

    /// Number of bytes that were written.
    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// The content.
    ///
    /// # Errors
    ///
    /// Those of mapping or reading the temporary file.
    pub fn finish(self) -> io::Result<Bytes> {
        let bytes = match &self.file {
            Some((file, _)) => Bytes::of(file, Access::Sequential)?,
            None => Bytes::from(self.memory),
        };
        Ok(bytes.claiming(self.claim))
    }

    /// Writes the bytes of a reader to its end.
    pub(crate) fn take(&mut self, mut reader: impl io::Read) -> io::Result<()> {
        let mut buffer = vec![0; 1 << 16];
        loop {
            match reader.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(count) => self.write_all(&buffer[..count])?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Moves what is in memory to a file.
    fn spill(&mut self) -> io::Result<()> {
        if !HAS_FILES {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let file = temporary_file()?;
        let limit = Limit::of(&file)?;
        self.claim.disk(self.memory.len() as u64, &limit)?;
        write_temporary(&file, &self.memory)?;
        self.memory = Vec::new();
        self.claim.release_memory();
        self.file = Some((file, limit));
        Ok(())
    }
}

impl Write for Spool {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = bytes.len() as u64;
        if self.most - self.length < count {
            let message = format!("the content is larger than {}", shown(self.most));
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
        }
        if self.file.is_none() {
            let small = self.length + count <= SMALL;
            if small && self.claim.memory(count, MOST_MEMORY) {
                self.memory.extend_from_slice(bytes);
                self.length += count;
                return Ok(bytes.len());
            }
            self.spill()?;
        }
        if let Some((file, limit)) = &mut self.file {
            self.claim.disk(count, limit)?;
            write_temporary(file, bytes)?;
        }
        self.length += count;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes to a temporary file.
///
/// # Errors
///
/// Those of writing; of a full disk, with what to do.
pub fn write_temporary(file: &File, bytes: &[u8]) -> io::Result<()> {
    let mut file = file;
    file.write_all(bytes).map_err(|error| match error.kind() {
        kind @ (io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) => {
            let message = format!(
                "the temporary directory `{}` is full; set TMPDIR to a directory with more free space",
                std::env::temp_dir().display()
            );
            io::Error::new(kind, message)
        }
        _ => error,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Content that does not repeat early.
    fn content(length: usize) -> Vec<u8> {
        (0..length).map(|at| (at % 251) as u8).collect()
    }

    #[test]
    fn what_is_written_comes_back() {
        for length in [0, 1, 100_000, SMALL as usize, SMALL as usize + 1, 20 << 20] {
            let mut spool = Spool::within(u64::MAX);
            spool.take(&content(length)[..]).unwrap();
            assert_eq!(spool.length(), length as u64);
            assert_eq!(spool.file.is_some(), length as u64 > SMALL, "{length}");
            assert_eq!(&*spool.finish().unwrap(), content(length));
        }
    }

    #[test]
    fn claims_end_with_what_has_them() {
        let limit = Limit {
            all: u64::MAX,
            free: 100,
        };
        let mut claim = Claim::default();
        claim.disk(60, &limit).unwrap();
        let error = claim.disk(41, &limit).unwrap_err();
        assert!(error.to_string().contains("set TMPDIR"), "{error}");
        claim.disk(40, &limit).unwrap();
        let limit = Limit {
            all: 0,
            free: u64::MAX,
        };
        let error = claim.disk(1, &limit).unwrap_err();
        assert!(error.to_string().contains("KYMO_SPOOL_LIMIT"), "{error}");
        assert!(!claim.memory(1, 0));
    }

    #[test]
    fn sizes_have_units() {
        for (text, bytes) in [
            ("0", 0),
            ("17", 17),
            ("2K", 2048),
            ("3g", 3 << 30),
            ("1T", 1 << 40),
        ] {
            assert_eq!(size(text), Some(bytes));
        }
        for text in ["", "K", "1KB", "-1", "1.5G", "99999999T"] {
            assert_eq!(size(text), None, "{text}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_temporary_file_has_no_name() {
        let directory = tempfile::tempdir().unwrap();
        let mut file = temporary(directory.path()).unwrap();
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
        file.write_all(b"there").unwrap();
        assert_eq!(&*Bytes::of(&file, Access::Random).unwrap(), b"there");
        assert!(temporary(&directory.path().join("none")).is_err());
    }
}
