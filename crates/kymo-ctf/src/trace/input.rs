//! The files of a trace: metadata, data streams and their indexes.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kymo_io::{Access, Bytes, Entry, EntryKind};
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
    /// Its data stream files, ordered by name. Empty files are left out.
    pub files: Vec<StreamFile>,
    /// Files that could not be read.
    pub faults: Vec<FaultReport>,
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
    /// What its name tells in RFC v1.1; found when the file becomes part of a trace.
    pub section: Option<Section>,
}

impl StreamFile {
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
    /// the files of every section, the first `metadata_<cpu>`.
    pub fn metadata_path(path: &Path) -> Option<PathBuf> {
        let usual = path.join(METADATA_NAME);
        if usual.is_file() {
            return Some(usual);
        }
        let is_metadata = |entry: &Entry| {
            let cpu = entry.name.to_str().and_then(|name| {
                let rest = name.strip_prefix(METADATA_NAME)?;
                rest.strip_prefix('_')
            });
            entry.kind == EntryKind::File
                && cpu.is_some_and(|cpu| {
                    !cpu.is_empty() && cpu.bytes().all(|byte| byte.is_ascii_digit())
                })
        };
        let entries = kymo_io::list(path).ok()?;
        Some(entries.into_iter().find(is_metadata)?.path)
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
        let metadata_path = Self::metadata_path(path).unwrap_or_else(|| path.join(METADATA_NAME));
        let unreadable = |path: &Path| {
            let path = path.to_path_buf();
            move |error| OpenError::Unreadable { path, error }
        };
        let text =
            Bytes::open(&metadata_path, Access::Sequential).map_err(unreadable(&metadata_path))?;
        let entries: Vec<Entry> = kymo_io::list(path)
            .map_err(unreadable(path))?
            .into_iter()
            .filter(|entry| {
                let hidden = entry.name.as_encoded_bytes().starts_with(b".");
                // What is neither file nor directory cannot be read, and that is told below.
                entry.kind != EntryKind::Directory && !hidden && entry.path != metadata_path
            })
            .collect();
        let native = || {
            let magic = |entry: &Entry| {
                let bytes = Bytes::open(&entry.path, Access::Sequential).ok()?;
                metadata::byte_order_of_packets(&bytes)
            };
            entries.iter().find_map(magic)
        };
        let name = metadata_path.to_string_lossy();
        let mut faults = Vec::new();
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
                faults.push(FaultReport {
                    code: FaultCode::Truncated,
                    file: Arc::new(metadata_path.clone()),
                    offset: end as u64,
                    packet: None,
                    event: None,
                    field: None,
                    message: "the last fragment of the metadata cannot be read, it may be cut; \
                              those before it are taken"
                        .to_owned(),
                });
                metadata
            }
        };
        let mut directory = Self {
            path: path.to_path_buf(),
            metadata,
            files: Vec::new(),
            faults,
        };
        for entry in entries {
            let file_path = Arc::new(entry.path);
            match Bytes::open(&file_path, Access::Sequential) {
                Ok(bytes) if bytes.is_empty() => {}
                Ok(bytes) => {
                    let mut index = entry.name;
                    index.push(".idx");
                    let index = path.join("index").join(index);
                    let index = (directory.metadata.class.dialect != Dialect::Rfc11)
                        .then(|| Bytes::open(&index, Access::Sequential).ok())
                        .flatten()
                        .map(|bytes| (Arc::new(index), bytes));
                    directory.files.push(StreamFile {
                        path: file_path,
                        bytes,
                        index,
                        section: None,
                    });
                }
                Err(error) => directory.faults.push(FaultReport {
                    code: FaultCode::Unreadable,
                    file: file_path,
                    offset: 0,
                    packet: None,
                    event: None,
                    field: None,
                    message: format!("the file cannot be read: {error}"),
                }),
            }
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
