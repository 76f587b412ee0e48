//! The files of a trace: metadata, data streams and their indexes.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kymo_io::{Access, Bytes, EntryKind};
use kymo_model::{FaultCode, FaultReport};

use crate::decode::CompileError;
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
    /// What is in the index that LTTng wrote beside it, and where that is.
    pub index: Option<(Arc<PathBuf>, Bytes)>,
}

impl Directory {
    /// Whether a directory holds metadata.
    pub fn is_trace(path: &Path) -> bool {
        path.join(METADATA_NAME).is_file()
    }

    /// Reads the metadata of a directory and maps its data stream files: every regular file
    /// that is not `metadata` and whose name does not begin with a dot.
    ///
    /// # Errors
    ///
    /// If the directory or its metadata cannot be read or understood. A data stream file
    /// that cannot be read is one of [`Directory::faults`].
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        let metadata_path = path.join(METADATA_NAME);
        let unreadable = |path: &Path| {
            let path = path.to_path_buf();
            move |error| OpenError::Unreadable { path, error }
        };
        let text =
            Bytes::open(&metadata_path, Access::Sequential).map_err(unreadable(&metadata_path))?;
        let metadata =
            metadata::parse(&text, &metadata_path.to_string_lossy()).map_err(|error| {
                OpenError::Metadata {
                    path: metadata_path,
                    error: Box::new(error),
                }
            })?;
        let mut directory = Self {
            path: path.to_path_buf(),
            metadata,
            files: Vec::new(),
            faults: Vec::new(),
        };
        for entry in kymo_io::list(path).map_err(unreadable(path))? {
            let hidden = entry.name.as_encoded_bytes().starts_with(b".");
            if entry.kind != EntryKind::File || hidden || entry.name == METADATA_NAME {
                continue;
            }
            let file_path = Arc::new(entry.path);
            match Bytes::open(&file_path, Access::Sequential) {
                Ok(bytes) if bytes.is_empty() => {}
                Ok(bytes) => {
                    let mut index = entry.name;
                    index.push(".idx");
                    let index = path.join("index").join(index);
                    directory.files.push(StreamFile {
                        path: file_path,
                        bytes,
                        index: Bytes::open(&index, Access::Sequential)
                            .ok()
                            .map(|bytes| (Arc::new(index), bytes)),
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
