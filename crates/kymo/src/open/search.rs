//! What is at or below paths.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use kymo_ctf::trace::{Directory, OpenError, PacketSource, Trace};
use kymo_io::{Access, Bytes, EntryKind, STANDARD_INPUT, Tree, without_compression};

use super::error::Error;
use super::files::{FileFormat, Opened as OpenedFile, UNSURE};
use super::{Options, files, foreign, packet_key};
use crate::AnyRecording;

/// What a search has found, and which of the paths led to it.
#[derive(Debug)]
pub(super) struct Finding {
    pub(super) input: usize,
    pub(super) found: Found,
}

#[derive(Debug)]
pub(super) enum Found {
    Trace(Group),
    /// A file of the file system that is opened when all are found.
    File(&'static FileFormat, PathBuf),
    Other(Box<AnyRecording>),
}

impl Found {
    /// Opens it. What of it is lost is added to the errors.
    pub(super) fn open(
        self,
        options: &Options,
        errors: &mut Vec<Error>,
    ) -> Result<AnyRecording, Error> {
        match self {
            Self::Other(recording) => Ok(*recording),
            Self::File(format, path) => {
                match format.open_file.map(|open| open(&path, options)) {
                    Some(Ok(recording)) => Ok(recording),
                    // Few are compressed although their names do not say so: only these are looked at twice.
                    Some(Err(error)) if !Tree::is_wrapped(&path).unwrap_or(false) => Err(error),
                    _ => content(&Tree::Disk, &path, errors)
                        .and_then(|bytes| (format.open)(&path, bytes, options)),
                }
            }
            Self::Trace(group) => group
                .open(options)
                .map(AnyRecording::Ctf)
                .map_err(Error::Trace),
        }
    }
}

/// What a file of a tree holds. What of it is lost is added to the errors.
fn content(tree: &Tree, path: &Path, errors: &mut Vec<Error>) -> Result<Bytes, Error> {
    let content = tree.content(path, Access::Sequential);
    let content = content.map_err(|error| Error::Unreadable {
        path: path.to_path_buf(),
        error,
    })?;
    errors.extend(damaged(path, content.damage));
    Ok(content.bytes)
}

/// What is lost of an archive or a compressed file.
fn damaged(path: &Path, damage: impl IntoIterator<Item = String>) -> impl Iterator<Item = Error> {
    damage.into_iter().map(|message| Error::Damaged {
        path: path.to_path_buf(),
        message,
    })
}

/// Directories that are one trace.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) directories: Vec<Directory>,
    /// The way from the path that was searched to the first directory, unless it is the same.
    place: Option<String>,
}

impl Group {
    pub(super) fn open(self, options: &Options) -> Result<Trace, OpenError> {
        // As in babeltrace2, the place of a trace counts only if it has a single one.
        let place = (self.directories.len() == 1).then_some(self.place);
        let cache = options.cache.as_ref();
        let known = |source: &PacketSource| cache?.note(&packet_key(source));
        let known = cache.is_some().then_some(&known as _);
        let mut trace = Trace::new_with_packets(self.directories, &options.trace, known)?;
        if let Some(place) = place.flatten() {
            trace.set_place(&place);
        }
        Ok(trace)
    }
}

/// What makes traces the same: name space, name, unique identifier.
type Identity = (Option<String>, Option<String>, String);

/// A search for traces.
#[derive(Debug, Default)]
pub(super) struct Search {
    pub(super) found: Vec<Finding>,
    /// The place of the path that is searched.
    pub(super) input: usize,
    /// Where it leads to.
    pub(super) tree: Tree,
    /// How what it leads to is opened.
    pub(super) options: Options,
    /// Position in `found` of the traces that have an identity.
    pub(super) by_identity: HashMap<Identity, usize>,
    /// Directories that were opened or searched, and files that are recordings, by their real paths.
    pub(super) seen: HashSet<PathBuf>,
    pub(super) errors: Vec<Error>,
}

impl Search {
    pub(super) fn path(&mut self, path: &Path) -> Result<(), Error> {
        let unreadable = |error| Error::Unreadable {
            path: path.to_path_buf(),
            error,
        };
        let damage;
        (self.tree, damage) = Tree::at(path).map_err(unreadable)?;
        self.errors.extend(damaged(path, damage));
        let kind = self.tree.kind(path).map_err(unreadable)?;
        if kind == EntryKind::Directory {
            return self.directory(path);
        }
        // Opening a pipe would wait for a writer.
        if kind == EntryKind::Other {
            return self.part_of_trace(path).unwrap_or_else(|| {
                Err(Error::NotRecording {
                    path: path.to_path_buf(),
                    foreign: foreign::special(),
                })
            });
        }
        let bytes = self.content(path)?;
        let (sure, unsure) = match files::by_content(&bytes, path, &self.options) {
            Some((score, format)) if score > UNSURE => (Some(format), None),
            found => (None, found.map(|(_, format)| format)),
        };
        if let Some(format) = sure {
            self.first_file(format, path, bytes);
            return Ok(());
        }
        if let Some(result) = self.part_of_trace(path) {
            return result;
        }
        match unsure {
            Some(format) => {
                self.first_file(format, path, bytes);
                Ok(())
            }
            None => Err(Error::NotRecording {
                path: path.to_path_buf(),
                foreign: foreign::recognize(&bytes, path),
            }),
        }
    }

    /// What a file holds. What of it is lost is reported.
    fn content(&mut self, path: &Path) -> Result<Bytes, Error> {
        content(&self.tree, path, &mut self.errors)
    }

    /// Whether a path is the first that leads to a file.
    fn is_new(&mut self, path: &Path) -> bool {
        self.seen.insert(self.tree.real(path))
    }

    /// Opens a trace with one of its files alone; `None` if the file is not a part of a trace.
    fn part_of_trace(&mut self, path: &Path) -> Option<Result<(), Error>> {
        let directory = match path.parent() {
            _ if path.as_os_str() == STANDARD_INPUT => return None,
            Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
            Some(parent) => parent,
            None => return None,
        };
        // Its compressed content is not the tree that it lies in.
        self.tree = match Tree::at(directory) {
            Ok((tree @ Tree::Remote(_), _)) => tree,
            _ => Tree::Disk,
        };
        let metadata = Directory::metadata_path_in(&self.tree, directory)?;
        if path.file_name() == metadata.file_name() {
            return Some(self.directory(directory));
        }
        let opened = Directory::open_in(&self.tree, directory, &self.options.trace);
        let mut directory = match opened {
            Ok(directory) => directory,
            Err(error) => return Some(Err(Error::Trace(error))),
        };
        directory
            .files
            .retain(|file| file.path.file_name() == path.file_name());
        directory.is_whole = false;
        if directory.files.is_empty() {
            return None;
        }
        self.add_found(Found::Trace(Group {
            directories: vec![directory],
            place: None,
        }));
        Some(Ok(()))
    }

    /// Opens a trace, or searches a directory for traces.
    pub(super) fn directory(&mut self, root: &Path) -> Result<(), Error> {
        let mut found = false;
        // Depth first, in the order of names: the last one is the next.
        let mut ahead = vec![root.to_path_buf()];
        while let Some(path) = ahead.pop() {
            let is_trace = Directory::metadata_path_in(&self.tree, &path).is_some();
            found |= is_trace;
            // A link may lead to where the search has been already.
            let real = self.tree.real(&path);
            if !self.seen.insert(real.clone()) {
                found |= path == root;
            } else if is_trace {
                match Directory::open_in(&self.tree, &path, &self.options.trace) {
                    Ok(directory) => self.add(root, directory),
                    Err(error) => self.errors.push(Error::Trace(error)),
                }
            } else if let Some(opened) = self.added_directory(&path) {
                found = true;
                for opened in opened {
                    self.add_opened(opened);
                }
            } else {
                match self.tree.list(&path) {
                    Ok(entries) => {
                        let of_kind = |kind| entries.iter().filter(move |entry| entry.kind == kind);
                        for entry in of_kind(EntryKind::File) {
                            if let Some(format) = files::by_name(&entry.path, &self.options) {
                                found = true;
                                // Where a link leads is to be asked; other entries are where they are listed.
                                let is_new = match (entry.is_link, &self.tree) {
                                    (false, Tree::Disk) => self.seen.insert(real.join(&entry.name)),
                                    _ => self.is_new(&entry.path),
                                };
                                if is_new {
                                    self.file(format, &entry.path, None);
                                }
                            }
                        }
                        // A directory that is being written, or was when a program was killed, is not a recording yet.
                        let directories = of_kind(EntryKind::Directory)
                            .filter(|entry| !kymo_io::is_beside(&entry.name));
                        ahead.extend(directories.map(|entry| entry.path.clone()).rev());
                    }
                    Err(error) => self.errors.push(Error::Unreadable { path, error }),
                }
            }
        }
        match found {
            true => Ok(()),
            false => Err(Error::NothingFound {
                path: root.to_path_buf(),
                is_empty: self.tree.list(root).is_ok_and(|entries| entries.is_empty()),
                likely: match self.tree {
                    Tree::Disk => foreign::records_below(root).map(Box::new),
                    _ => None,
                },
            }),
        }
    }

    /// Opens a file that holds something, unless a link has led to it before.
    fn first_file(&mut self, format: &'static FileFormat, path: &Path, content: Bytes) {
        if self.is_new(path) {
            self.file(format, path, Some(content));
        }
    }

    /// Opens a file. Its content is what it holds, where that is known.
    fn file(&mut self, format: &'static FileFormat, path: &Path, content: Option<Bytes>) {
        let is_plain = matches!(self.tree, Tree::Disk) && without_compression(path) == path;
        let opened = match (format.open_file, content) {
            (Some(_), _) if is_plain => {
                self.add_found(Found::File(format, path.to_path_buf()));
                return;
            }
            (_, Some(bytes)) => (format.open)(path, bytes, &self.options),
            (_, None) => self
                .content(path)
                .and_then(|bytes| (format.open)(path, bytes, &self.options)),
        };
        self.add_opened(opened);
    }

    /// Opens a directory of a format that was added.
    fn added_directory(&self, path: &Path) -> Option<Vec<OpenedFile>> {
        let open = |format: &FileFormat| format.open_directory?(&self.tree, path, &self.options);
        self.options.formats.iter().find_map(open)
    }

    fn add_opened(&mut self, opened: OpenedFile) {
        match opened {
            Ok(recording) => self.add_found(Found::Other(Box::new(recording))),
            Err(error) => self.errors.push(error),
        }
    }

    fn add_found(&mut self, found: Found) {
        let input = self.input;
        self.found.push(Finding { input, found });
    }

    /// Adds a directory to the group it belongs to.
    fn add(&mut self, root: &Path, directory: Directory) {
        let class = &directory.metadata.class;
        let identity = class
            .uid
            .clone()
            .map(|uid| (class.namespace.clone(), class.name.clone(), uid));
        let known = identity
            .as_ref()
            .and_then(|identity| self.by_identity.get(identity));
        let known = known.and_then(|&position| self.found.get_mut(position));
        if let Some(Found::Trace(group)) = known.map(|finding| &mut finding.found) {
            group.directories.push(directory);
            return;
        }
        if let Some(identity) = identity {
            self.by_identity.insert(identity, self.found.len());
        }
        let place = directory.path.strip_prefix(root).ok().map(|place| {
            let parts: Vec<_> = place
                .components()
                .map(|part| part.as_os_str().to_string_lossy())
                .collect();
            parts.join("/")
        });
        self.add_found(Found::Trace(Group {
            directories: vec![directory],
            place: place.filter(|place| !place.is_empty()),
        }));
    }
}
