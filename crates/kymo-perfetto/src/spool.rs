//! Temporary files: written once, then read as memory, gone when they are closed.

use std::io;
#[cfg(not(target_family = "wasm"))]
use std::{
    fs::{File, OpenOptions},
    io::{BufWriter, Write},
    path::PathBuf,
};

use kymo_io::Bytes;
#[cfg(not(target_family = "wasm"))]
use kymo_io::{Access, random};

/// Bytes in memory, or in a file that only this process knows.
#[derive(Debug)]
pub(crate) struct Spool {
    bytes: Bytes,
    /// The file that could not be removed while it is mapped, as on Windows.
    #[cfg(not(target_family = "wasm"))]
    _file: Option<Temporary>,
}

impl Spool {
    /// Bytes in memory.
    pub(crate) fn memory(bytes: Vec<u8>) -> Self {
        Self {
            bytes: Bytes::from(bytes),
            #[cfg(not(target_family = "wasm"))]
            _file: None,
        }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// A spool in the making.
#[cfg(not(target_family = "wasm"))]
#[derive(Debug)]
pub(crate) struct SpoolWriter {
    file: BufWriter<File>,
    path: Temporary,
    len: u64,
}

#[cfg(not(target_family = "wasm"))]
impl SpoolWriter {
    pub(crate) fn new() -> io::Result<Self> {
        let (file, path) = create()?;
        Ok(Self {
            file: BufWriter::with_capacity(1 << 18, file),
            path: Temporary(path),
            len: 0,
        })
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.len += bytes.len() as u64;
        Ok(())
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    pub(crate) fn finish(mut self) -> io::Result<Spool> {
        self.file.flush()?;
        let bytes = Bytes::open(&self.path.0, Access::Sequential)?;
        // Where the file can be removed now, a program that is killed leaves nothing behind.
        let is_removed = std::fs::remove_file(&self.path.0).is_ok();
        if is_removed {
            self.path.0 = PathBuf::new();
        }
        Ok(Spool {
            bytes,
            _file: (!is_removed).then_some(self.path),
        })
    }
}

/// The path of a file that is removed at the end; an empty one of a file that was.
#[cfg(not(target_family = "wasm"))]
#[derive(Debug)]
struct Temporary(PathBuf);

#[cfg(not(target_family = "wasm"))]
impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.0.as_os_str().is_empty() {
            // It may be gone already, and no other error can be handled here.
            let _ = std::fs::remove_file(&self.0);
        }
    }
}

/// Creates a file that did not exist, for this user alone.
#[cfg(not(target_family = "wasm"))]
fn create() -> io::Result<(File, PathBuf)> {
    let directory = std::env::temp_dir();
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    for attempt in 0..100_u32 {
        // Where the system has no random bytes, the names of one process still differ.
        let random = random().map_or(u64::from(attempt), u64::from_le_bytes);
        let name = format!("kymo-{}-{random:016x}.spool", std::process::id());
        let path = directory.join(name);
        match options.open(&path) {
            Ok(file) => return Ok((file, path)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => {
                let message = format!("cannot create `{}`: {error}", path.display());
                return Err(io::Error::new(error.kind(), message));
            }
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Without files, what does not fit in memory cannot be read.
#[cfg(target_family = "wasm")]
#[derive(Debug)]
pub(crate) struct SpoolWriter;

#[cfg(target_family = "wasm")]
impl SpoolWriter {
    pub(crate) fn new() -> io::Result<Self> {
        Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "too large to sort in memory, and this system has no temporary files",
        ))
    }

    pub(crate) fn write(&mut self, _bytes: &[u8]) -> io::Result<()> {
        Ok(())
    }

    pub(crate) fn len(&self) -> u64 {
        0
    }

    pub(crate) fn finish(self) -> io::Result<Spool> {
        Ok(Spool::memory(Vec::new()))
    }
}
