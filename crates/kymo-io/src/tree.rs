//! Directories, wherever they are: in the file system, or in an archive.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use crate::decompress::{Compression, LONGEST_MAGIC};
use crate::spool::Spool;
use crate::{
    Access, Archive, Bytes, Content, Entry, EntryKind, ReadAt, SharedSource, content, is_tar,
};

/// The path that stands for standard input.
pub const STANDARD_INPUT: &str = "-";

/// Files and directories that are neither on this machine nor in an archive.
pub trait RemoteTree: std::fmt::Debug + Send + Sync {
    /// What is at a path.
    ///
    /// # Errors
    ///
    /// If there is nothing, or it cannot be looked at.
    fn kind(&self, path: &Path) -> io::Result<EntryKind>;

    /// The entries of a directory, ordered by the bytes of their names.
    ///
    /// # Errors
    ///
    /// `NotFound`, `NotADirectory`, and those of asking.
    fn list(&self, path: &Path) -> io::Result<Vec<Entry>>;

    /// The bytes of a file.
    ///
    /// # Errors
    ///
    /// `NotFound`, `IsADirectory`, and those of asking.
    fn source(&self, path: &Path) -> io::Result<SharedSource>;
}

/// Looks at what a path leads to if it is of a scheme that is known, such as `s3://`.
pub type OpenRemote = fn(&Path) -> Option<io::Result<Arc<dyn RemoteTree>>>;

static REMOTE: OnceLock<OpenRemote> = OnceLock::new();

/// Lets paths lead to what a program knows to reach by a network, everywhere in the process. Only the first call counts.
pub fn set_remote(open: OpenRemote) {
    let _ = REMOTE.set(open);
}

/// Where paths lead to files and directories.
///
/// A path within an archive begins with that of the archive: `trace.tar.zst/ust/metadata`.
#[derive(Clone, Debug, Default)]
pub enum Tree {
    /// The file system.
    #[default]
    Disk,
    /// The members of an archive, or the content of one compressed file.
    Archive(Arc<Archive>),
    /// What is reached [by a network](set_remote).
    Remote(Arc<dyn RemoteTree>),
}

impl Tree {
    /// The tree in which a path is to be looked up: that of the archive or compressed file that it leads to, that of
    /// standard input for [`STANDARD_INPUT`], and else the file system. What is damaged comes with it.
    ///
    /// # Errors
    ///
    /// Those of reading; see [`content`] and [`Archive::new`].
    pub fn at(path: &Path) -> io::Result<(Self, Vec<String>)> {
        if let Some(remote) = REMOTE.get().and_then(|open| open(path)) {
            return Self::Remote(remote?).unwrapped(path);
        }
        let is_input = path.as_os_str() == STANDARD_INPUT;
        if !is_input && !Self::is_wrapped(path)? {
            return Ok((Self::Disk, Vec::new()));
        }
        let bytes = match is_input {
            true => standard_input()?,
            false => Bytes::open(path, Access::Sequential)?,
        };
        Self::within(path, bytes)
    }

    /// This tree, or that of the archive or compressed file to which a path leads in it.
    fn unwrapped(self, path: &Path) -> io::Result<(Self, Vec<String>)> {
        if self.kind(path)? == EntryKind::File {
            let bytes = self.open_to_fetch(path, Access::Sequential)?;
            let mut begin = [0; LONGEST_MAGIC];
            let is_compressed =
                bytes.read_at(0, &mut begin).is_ok() && Compression::detect(&begin).is_some();
            if is_compressed || is_tar(&bytes) {
                bytes.fetch(0..bytes.len() as u64)?;
                return Self::within(path, bytes);
            }
        }
        Ok((self, Vec::new()))
    }

    /// The tree of the archive or compressed file that has these bytes.
    fn within(path: &Path, bytes: Bytes) -> io::Result<(Self, Vec<String>)> {
        let Content { bytes, damage, .. } = content(bytes)?;
        let mut damage: Vec<String> = damage.into_iter().collect();
        let archive = match is_tar(&bytes) {
            true => Archive::new(path, Arc::new(bytes))?,
            false => Archive::single(path, bytes),
        };
        damage.extend_from_slice(archive.damage());
        Ok((Self::Archive(Arc::new(archive)), damage))
    }

    /// Whether a path leads to a file that is compressed or an archive, or is that of standard input. A file's
    /// name does not matter.
    ///
    /// # Errors
    ///
    /// Those of reading the file.
    pub fn is_wrapped(path: &Path) -> io::Result<bool> {
        if path.as_os_str() == STANDARD_INPUT {
            return Ok(true);
        }
        if !std::fs::metadata(path)?.is_file() {
            return Ok(false);
        }
        let file = std::fs::File::open(path)?;
        Ok(begins_compressed(&file) || is_tar(&file))
    }

    /// What is at a path, links followed.
    ///
    /// # Errors
    ///
    /// If there is nothing, or it cannot be looked at.
    pub fn kind(&self, path: &Path) -> io::Result<EntryKind> {
        match self {
            Self::Disk => {
                let metadata = std::fs::metadata(path)?;
                Ok(match metadata.is_dir() {
                    true => EntryKind::Directory,
                    false if metadata.is_file() => EntryKind::File,
                    false => EntryKind::Other,
                })
            }
            Self::Archive(archive) => archive.kind(path),
            Self::Remote(remote) => remote.kind(path),
        }
    }

    /// Whether there is a regular file at a path.
    pub fn is_file(&self, path: &Path) -> bool {
        self.kind(path).is_ok_and(|kind| kind == EntryKind::File)
    }

    /// The entries of a directory, ordered by the bytes of their names.
    ///
    /// # Errors
    ///
    /// Those of reading the directory.
    pub fn list(&self, path: &Path) -> io::Result<Vec<Entry>> {
        match self {
            Self::Disk => crate::list(path),
            Self::Archive(archive) => archive.list(path),
            Self::Remote(remote) => remote.list(path),
        }
    }

    /// The bytes of a file as they are.
    ///
    /// # Errors
    ///
    /// Those of opening and reading it.
    pub fn open(&self, path: &Path, access: Access) -> io::Result<Bytes> {
        match self {
            Self::Disk => Bytes::open(path, access),
            Self::Archive(archive) => archive.open(path),
            Self::Remote(_) => {
                let bytes = self.open_to_fetch(path, access)?;
                bytes.fetch(0..bytes.len() as u64)?;
                Ok(bytes)
            }
        }
    }

    /// The same, of which those that are far away have to be [fetched](Bytes::fetch) before they are read.
    ///
    /// # Errors
    ///
    /// Those of opening and reading it.
    pub fn open_to_fetch(&self, path: &Path, access: Access) -> io::Result<Bytes> {
        match self {
            Self::Remote(remote) => Bytes::fetched(remote.source(path)?),
            _ => self.open(path, access),
        }
    }

    /// What a file holds, decompressed if it is compressed.
    ///
    /// # Errors
    ///
    /// Those of opening and reading it; see [`content`].
    pub fn content(&self, path: &Path, access: Access) -> io::Result<Content> {
        content(self.open(path, access)?)
    }

    /// What a path leads to without links, so that two paths to the same are equal.
    pub fn real(&self, path: &Path) -> PathBuf {
        let real = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
        match self {
            Self::Disk => real(path),
            Self::Archive(archive) => {
                let inner = archive.real(path);
                match inner.strip_prefix(archive.path()) {
                    Ok(inner) if inner.as_os_str().is_empty() => real(archive.path()),
                    Ok(inner) => real(archive.path()).join(inner),
                    Err(_) => inner,
                }
            }
            Self::Remote(_) => path.to_path_buf(),
        }
    }
}

/// Whether a file begins as compressed ones do.
fn begins_compressed(mut file: &std::fs::File) -> bool {
    let mut begin = [0; LONGEST_MAGIC];
    io::Read::read_exact(&mut file, &mut begin).is_ok() && Compression::detect(&begin).is_some()
}

/// All of standard input. It can be read only once, so what was read stays for whoever asks again.
fn standard_input() -> io::Result<Bytes> {
    static INPUT: OnceLock<Result<Arc<Bytes>, (io::ErrorKind, String)>> = OnceLock::new();
    let input = INPUT.get_or_init(|| {
        let read = mapped_input().map_or_else(read_input, Ok);
        read.map(Arc::new)
            .map_err(|error| (error.kind(), error.to_string()))
    });
    match input {
        Ok(bytes) => {
            Bytes::part(bytes, 0..bytes.len() as u64).ok_or(io::ErrorKind::UnexpectedEof.into())
        }
        Err((kind, message)) => Err(io::Error::new(*kind, message.clone())),
    }
}

fn read_input() -> io::Result<Bytes> {
    let mut spool = Spool::within(u64::MAX);
    spool.take(io::stdin().lock())?;
    spool.finish()
}

/// Standard input that is a file, read from its beginning.
#[cfg(unix)]
fn mapped_input() -> Option<Bytes> {
    use std::os::fd::AsFd;
    let mut file = std::fs::File::from(io::stdin().as_fd().try_clone_to_owned().ok()?);
    let is_file = file.metadata().ok()?.is_file();
    let at_begin = io::Seek::stream_position(&mut file).ok()? == 0;
    let bytes = (is_file && at_begin).then(|| Bytes::of(&file, Access::Sequential).ok());
    // Files of /proc say that they are empty.
    bytes.flatten().filter(|bytes| !bytes.is_empty())
}

#[cfg(not(unix))]
fn mapped_input() -> Option<Bytes> {
    None
}
