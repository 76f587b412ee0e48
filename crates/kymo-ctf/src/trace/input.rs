//! The files of a trace: metadata, data streams and their indexes.

use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kymo_io::{Access, Bytes, Content, Entry, EntryKind, Tree, without_compression};
use kymo_model::{Fault, FaultCode, FaultReport};

use super::{Options, Section};
use crate::class::Dialect;
use crate::decode::{CompileError, Decoder, PacketHead};
use crate::metadata::{self, Metadata, MetadataError};

/// The name of the file that makes a directory a trace.
pub const METADATA_NAME: &str = "metadata";

/// A directory that is a trace, or a part of one: its metadata understood, its data
/// stream files mapped, nothing of them read yet.
#[derive(Debug)]
pub struct Directory {
    /// The directory.
    pub path: PathBuf,
    /// What its metadata says.
    pub metadata: Metadata,
    /// Where that is, and its bytes.
    pub metadata_file: (PathBuf, Bytes),
    /// Its data stream files, ordered by name. Empty files are left out.
    pub files: Vec<StreamFile>,
    /// Files that could not be read.
    pub faults: Vec<FaultReport>,
    /// Whether files that appear in the directory later belong to the trace.
    pub is_whole: bool,
}

/// A data stream file.
#[derive(Debug)]
pub struct StreamFile {
    /// Where it is.
    pub path: Arc<PathBuf>,
    /// What is in it.
    pub bytes: Bytes,
    /// What is in the index that LTTng wrote beside it, and where that is. RFC v1.1 has none; of a
    /// file of an open [`Trace`](super::Trace), it is there only if it is right.
    pub index: Option<(Arc<PathBuf>, Bytes)>,
    /// What its name states in RFC v1.1; found when the file becomes part of a trace.
    pub section: Option<Section>,
}

/// Bytes at the beginning of a packet in which its header and context are, as a rule.
const HEAD_BYTES: usize = 64 << 10;

impl StreamFile {
    /// Sees to it that bytes of the file can be read.
    pub(super) fn fetch(&self, begin: usize, end: usize) -> Result<(), Fault> {
        let fetched = self.bytes.fetch(begin as u64..end as u64);
        fetched.map_err(|_| Fault::new(FaultCode::Unreadable, 0, 0))
    }

    /// Reads the head of the packet that begins at a byte, of which `read` gets the bytes from there on: of a file that is
    /// far away no more than that needs.
    pub(super) fn head_at(
        &self,
        offset: usize,
        read: impl Fn(&[u8]) -> Result<PacketHead, Fault>,
    ) -> Result<PacketHead, Fault> {
        let rest = self.bytes.get(offset..).unwrap_or_default();
        let mut most = match self.bytes.is_fetched() {
            true => HEAD_BYTES,
            false => usize::MAX,
        };
        loop {
            self.fetch(offset, offset.saturating_add(most))?;
            let begin = &rest[..most.min(rest.len())];
            match read(begin) {
                Err(_) if begin.len() < rest.len() => most = most.saturating_mul(16),
                result => return result,
            }
        }
    }

    /// What the packet that begins with `data`, bytes of this file, says of itself, and what
    /// the file says of it.
    pub(super) fn head(&self, decoder: &Decoder, data: &[u8]) -> Result<PacketHead, Fault> {
        let mut head = decoder.packet_head(data)?;
        if let Some(section) = self.section {
            head.stream_class = section.stream_class;
            head.stream_id = section.cpu;
        }
        Ok(head)
    }
}

impl Directory {
    /// The metadata file of a directory, if it has one: `metadata`, or, named as RFC v1.1 names
    /// the files of every section, the first `metadata_<cpu>`; or one of these compressed.
    pub fn metadata_path(path: &Path) -> Option<PathBuf> {
        Self::metadata_path_in(&Tree::Disk, path)
    }

    /// The same of a directory that may be in an archive.
    pub fn metadata_path_in(tree: &Tree, path: &Path) -> Option<PathBuf> {
        let usual = path.join(METADATA_NAME);
        if tree.is_file(&usual) {
            return Some(usual);
        }
        let rest = |entry: &Entry| {
            let name = without_compression(Path::new(&entry.name));
            let rest = name.to_str()?.strip_prefix(METADATA_NAME)?.to_owned();
            (entry.kind == EntryKind::File).then_some(rest)
        };
        let is_numbered = |rest: &str| {
            rest.strip_prefix('_')
                .is_some_and(|cpu| !cpu.is_empty() && cpu.bytes().all(|byte| byte.is_ascii_digit()))
        };
        let entries = tree.list(path).ok()?;
        let mut entries = entries.into_iter();
        let found = entries
            .find(|entry| rest(entry).is_some_and(|rest| rest.is_empty() || is_numbered(&rest)));
        Some(found?.path)
    }

    /// Whether a directory holds metadata.
    pub fn is_trace(path: &Path) -> bool {
        Self::metadata_path(path).is_some()
    }

    /// Reads the metadata of a directory and maps its data stream files: every other regular
    /// file whose name does not begin with a dot.
    ///
    /// # Errors
    ///
    /// If the directory or its metadata cannot be read or understood. A data stream file
    /// that cannot be read is one of [`Directory::faults`], as is a pipe, a device or a link to
    /// nothing: it is not opened.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        Self::open_with(path, &Options::default())
    }

    /// The same with options: the packets of the metadata may be encrypted with one of some keys,
    /// and it may be cut.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub fn open_with(path: &Path, options: &Options) -> Result<Self, OpenError> {
        Self::open_in(&Tree::Disk, path, options)
    }

    /// The same with a directory that may be in an archive.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub fn open_in(tree: &Tree, path: &Path, options: &Options) -> Result<Self, OpenError> {
        let metadata_path =
            Self::metadata_path_in(tree, path).unwrap_or_else(|| path.join(METADATA_NAME));
        let unreadable = |path: &Path| {
            let path = path.to_path_buf();
            move |error| OpenError::Unreadable { path, error }
        };
        let text = content(tree, &metadata_path).map_err(unreadable(&metadata_path))?;
        let entries: Vec<Entry> = tree
            .list(path)
            .map_err(unreadable(path))?
            .into_iter()
            .filter(|entry| {
                let hidden = entry.name.as_encoded_bytes().starts_with(b".");
                // What is neither file nor directory cannot be read, and that is reported below.
                entry.kind != EntryKind::Directory && !hidden && entry.path != metadata_path
            })
            .collect();
        let native = || {
            let magic = |entry: &Entry| {
                let content = stream_content(tree, &entry.path).ok()?;
                content.bytes.fetch(0..HEAD_BYTES as u64).ok()?;
                metadata::byte_order_of_packets(&content.bytes)
            };
            entries.iter().find_map(magic)
        };
        let name = metadata_path.to_string_lossy();
        let mut faults = Vec::new();
        let text = whole(text, &metadata_path, &mut faults);
        let metadata = match metadata::parse_secured(&text, &name, native, &options.keys) {
            Ok(metadata) => metadata,
            Err(error) => {
                let cut = metadata::before_cut(&error).filter(|_| options.allows_cut_metadata);
                let Some((metadata, end)) = cut else {
                    return Err(OpenError::Metadata {
                        path: metadata_path.clone(),
                        error: Box::new(error),
                    });
                };
                faults.push(FaultReport::new(
                    FaultCode::Truncated,
                    Arc::new(metadata_path.clone()),
                    end as u64,
                    "the last fragment of the metadata cannot be read, it may be cut; \
                              those before it are taken"
                        .to_owned(),
                ));
                metadata
            }
        };
        let mut directory = Self {
            path: path.to_path_buf(),
            metadata,
            metadata_file: (metadata_path, text),
            files: Vec::new(),
            faults,
            is_whole: true,
        };
        let dialect = directory.metadata.class.dialect;
        for entry in entries {
            let file = stream_file(tree, &entry, dialect, &mut directory.faults);
            directory.files.extend(file);
        }
        Ok(directory)
    }

    /// Stream and event classes: of several directories that are one trace, the one with
    /// the most knows all that the others know.
    pub(super) fn class_count(&self) -> usize {
        let streams = &self.metadata.class.streams;
        streams.iter().map(|stream| 1 + stream.events.len()).sum()
    }
}

/// A data stream file of a directory, unless it is empty.
pub(super) fn stream_file(
    tree: &Tree,
    entry: &Entry,
    dialect: Dialect,
    faults: &mut Vec<FaultReport>,
) -> Option<StreamFile> {
    let path = Arc::new(entry.path.clone());
    match stream_content(tree, &path) {
        Ok(content) if content.bytes.is_empty() => None,
        Ok(content) => Some(StreamFile {
            bytes: whole(content, &path, faults),
            index: entry
                .path
                .parent()
                .filter(|_| dialect != Dialect::Rfc11)
                .and_then(|directory| index_of(tree, directory, &entry.name)),
            path,
            section: None,
        }),
        Err(error) => {
            faults.push(FaultReport::new(
                FaultCode::Unreadable,
                path,
                0,
                format!("the file cannot be read: {error}"),
            ));
            None
        }
    }
}

/// What a file of a trace holds. Streams may be any bytes, so only a file is decompressed of which the name says
/// that it is compressed, too.
fn content(tree: &Tree, path: &Path) -> io::Result<Content> {
    let bytes = tree.open(path, Access::Sequential)?;
    if without_compression(path) != path {
        return kymo_io::content(bytes);
    }
    Ok(Content {
        bytes,
        compression: None,
        damage: None,
    })
}

/// The same of a data stream file: if it is far away and not compressed, it has to be fetched before it is read.
fn stream_content(tree: &Tree, path: &Path) -> io::Result<Content> {
    if without_compression(path) != path {
        return content(tree, path);
    }
    Ok(Content {
        bytes: tree.open_to_fetch(path, Access::Sequential)?,
        compression: None,
        damage: None,
    })
}

/// The bytes of content; what of it is lost is a fault.
fn whole(content: Content, path: &Path, faults: &mut Vec<FaultReport>) -> Bytes {
    faults.extend(content.damage.map(|message| {
        FaultReport::new(
            FaultCode::Compression,
            Arc::new(path.to_path_buf()),
            content.bytes.len() as u64,
            message,
        )
    }));
    content.bytes
}

/// The index of a data stream file: the two need not be compressed both.
fn index_of(tree: &Tree, directory: &Path, name: &OsStr) -> Option<(Arc<PathBuf>, Bytes)> {
    let plain = without_compression(Path::new(name)).into_os_string();
    let directory = directory.join("index");
    [".idx", ".idx.gz", ".idx.zst"].iter().find_map(|ending| {
        let mut name = plain.clone();
        name.push(ending);
        let path = directory.join(name);
        // A plain file is asked for like any other: most directories have none that is compressed.
        let content = content(tree, &path).ok()?;
        Some((Arc::new(path), content.bytes))
    })
}

/// Why a trace cannot be opened.
#[derive(Debug)]
pub enum OpenError {
    /// The directory or its metadata cannot be read.
    Unreadable {
        /// What cannot be read.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The metadata cannot be understood.
    Metadata {
        /// The metadata file.
        path: PathBuf,
        /// Where and why.
        error: Box<MetadataError>,
    },
    /// The metadata is understood, but kymo cannot decode what it describes.
    Classes {
        /// The metadata file.
        path: PathBuf,
        /// Why.
        error: CompileError,
    },
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable { path, error } => write!(f, "{}: {error}", path.display()),
            // It names the file and draws the place.
            Self::Metadata { error, .. } => write!(f, "{error}"),
            Self::Classes { path, error } => write!(f, "{}: {error}", path.display()),
        }
    }
}

impl std::error::Error for OpenError {}
