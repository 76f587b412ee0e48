//! tar archives as directories in memory: nothing is extracted, members are windows of the archive.
//!
//! The reader is ours, since members must be found at their offsets in any [`ReadAt`], without reading
//! what is between the headers, and because every name is an input that must not lead out of the archive.

mod header;
#[cfg(test)]
mod tests;
mod write;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use header::{BLOCK, Header, Kind, Member, Members};

pub use write::write_directory;

use crate::{Bytes, Entry, EntryKind, ReadAt};

/// Maximum number of members and directories of an archive.
pub const MOST_MEMBERS: usize = 1 << 20;

/// Directories are nested up to so deep.
const MOST_DEPTH: usize = 64;

/// Maximum number of links that are followed to find one member.
const MOST_LINKS: usize = 40;

/// The number of members whose damage is reported individually.
const MOST_DAMAGE: usize = 100;

/// Whether a file begins as a tar archive does: with the header of a member, of which the checksum is right.
pub fn is_tar(source: &dyn ReadAt) -> bool {
    let mut block = [0; BLOCK];
    source.read_at(0, &mut block).is_ok() && Header::new(&block).is_some()
}

/// A file that holds others, or one alone: a tar archive, or the content of a compressed file.
///
/// ```
/// use std::{path::Path, sync::Arc};
///
/// use kymo_io::{Archive, Bytes};
///
/// let directory = tempfile::tempdir()?;
/// std::fs::write(directory.path().join("metadata"), "/* CTF 1.8 */")?;
/// let mut tar = Vec::new();
/// kymo_io::write_tar(directory.path(), "trace", &mut tar)?;
/// // The path of a member begins with that of the archive.
/// let archive = Archive::new(Path::new("x.tar"), Arc::new(Bytes::from(tar)))?;
/// let metadata = archive.open(Path::new("x.tar/trace/metadata"))?;
/// assert_eq!(metadata[..], *b"/* CTF 1.8 */");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Archive {
    path: PathBuf,
    bytes: Arc<Bytes>,
    nodes: Vec<Node>,
    damage: Vec<String>,
}

#[derive(Debug)]
struct Node {
    /// The directory that it is in; the root is in itself.
    parent: usize,
    /// What it is called there.
    name: OsString,
    content: NodeContent,
}

#[derive(Debug)]
enum NodeContent {
    Directory(BTreeMap<OsString, usize>),
    File { offset: u64, length: u64 },
    Link(PathBuf),
    Other,
}

/// Where the root of an archive is in its nodes.
const ROOT: usize = 0;

impl Archive {
    /// The archive in some bytes. `path` is the way to it, with which the paths of its members begin.
    ///
    /// What is damaged, or cannot be shown as a file, is left out, and reported by [`Archive::damage`].
    ///
    /// # Errors
    ///
    /// If the archive has more than [`MOST_MEMBERS`] members.
    pub fn new(path: &Path, bytes: Arc<Bytes>) -> io::Result<Self> {
        let mut archive = Self::with_root(path, &bytes, NodeContent::Directory(BTreeMap::new()));
        let mut members = Members::new(&*bytes);
        while let Some(member) = members.next()? {
            if let Err(why) = archive.add(&member)? {
                let name = member.path.display();
                archive.report(format!("the member `{name}` is left out: {why}"));
            } else if let Some(lost) = member.lost() {
                let name = member.path.display();
                archive.report(format!(
                    "the archive is cut off: the last {lost} bytes of its member `{name}` are missing"
                ));
            }
        }
        archive.damage.extend(members.damage);
        Ok(archive)
    }

    /// Bytes that are a file at a path, alone.
    pub fn single(path: &Path, bytes: Bytes) -> Self {
        let length = bytes.len() as u64;
        let content = NodeContent::File { offset: 0, length };
        Self::with_root(path, &Arc::new(bytes), content)
    }

    fn with_root(path: &Path, bytes: &Arc<Bytes>, content: NodeContent) -> Self {
        Self {
            path: path.to_path_buf(),
            bytes: Arc::clone(bytes),
            nodes: vec![Node {
                parent: ROOT,
                name: OsString::new(),
                content,
            }],
            damage: Vec::new(),
        }
    }

    /// The way to the archive itself.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What was left out or is cut off, and why.
    pub fn damage(&self) -> &[String] {
        &self.damage
    }

    /// What is at a path, links followed.
    ///
    /// # Errors
    ///
    /// `NotFound`, also for what would lie outside of the archive.
    pub fn kind(&self, path: &Path) -> io::Result<EntryKind> {
        Ok(self.kind_of(self.find(path)?))
    }

    /// The entries of a directory, ordered by the bytes of their names.
    ///
    /// # Errors
    ///
    /// `NotFound`, `NotADirectory`.
    pub fn list(&self, path: &Path) -> io::Result<Vec<Entry>> {
        let at = self.find(path)?;
        let NodeContent::Directory(entries) = &self.nodes[at].content else {
            return Err(io::ErrorKind::NotADirectory.into());
        };
        let entry = |(name, &node): (&OsString, &usize)| Entry {
            name: name.clone(),
            path: path.join(name),
            kind: self
                .follow(node, 0)
                .map_or(EntryKind::Other, |node| self.kind_of(node)),
            is_link: false,
        };
        Ok(entries.iter().map(entry).collect())
    }

    /// The bytes of a file.
    ///
    /// # Errors
    ///
    /// `NotFound`, `IsADirectory`, `Unsupported` for what is neither.
    pub fn open(&self, path: &Path) -> io::Result<Bytes> {
        match self.nodes[self.find(path)?].content {
            NodeContent::File { offset, length } => {
                let end = offset.saturating_add(length);
                Bytes::part(&self.bytes, offset..end).ok_or(io::ErrorKind::UnexpectedEof.into())
            }
            NodeContent::Directory(_) => Err(io::ErrorKind::IsADirectory.into()),
            _ => Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "not a regular file",
            )),
        }
    }

    /// The path of what a path leads to, without links.
    pub fn real(&self, path: &Path) -> PathBuf {
        let mut names = Vec::new();
        let Ok(mut at) = self.find(path) else {
            return path.to_path_buf();
        };
        while at != ROOT {
            names.push(&self.nodes[at].name);
            at = self.nodes[at].parent;
        }
        let mut real = self.path.clone();
        real.extend(names.into_iter().rev());
        real
    }

    fn kind_of(&self, node: usize) -> EntryKind {
        match self.nodes[node].content {
            NodeContent::Directory(_) => EntryKind::Directory,
            NodeContent::File { .. } => EntryKind::File,
            NodeContent::Link(_) | NodeContent::Other => EntryKind::Other,
        }
    }

    /// The node that a path leads to, links followed.
    fn find(&self, path: &Path) -> io::Result<usize> {
        let inner = path.strip_prefix(&self.path);
        let inner = inner.map_err(|_| io::ErrorKind::NotFound)?;
        let found = self.walk(ROOT, inner, 0);
        found.ok_or(io::ErrorKind::NotFound.into())
    }

    /// The node at a path from a directory. Nothing leads out of the archive.
    fn walk(&self, from: usize, path: &Path, links: usize) -> Option<usize> {
        let mut at = from;
        for part in path.components() {
            at = match part {
                Component::CurDir => at,
                Component::ParentDir if at != ROOT => self.nodes[at].parent,
                Component::Normal(name) => match &self.nodes[at].content {
                    NodeContent::Directory(entries) => self.follow(*entries.get(name)?, links)?,
                    _ => return None,
                },
                _ => return None,
            };
        }
        Some(at)
    }

    /// What a node is, or leads to if it is a link.
    fn follow(&self, node: usize, links: usize) -> Option<usize> {
        match &self.nodes[node].content {
            NodeContent::Link(_) if links >= MOST_LINKS => None,
            NodeContent::Link(to) => self.walk(self.nodes[node].parent, to, links + 1),
            _ => Some(node),
        }
    }

    fn report(&mut self, damage: String) {
        match self.damage.len() {
            ..MOST_DAMAGE => self.damage.push(damage),
            MOST_DAMAGE => self
                .damage
                .push("more members are left out, or cut off".to_owned()),
            _ => {}
        }
    }

    /// Adds a member, or says why it is left out.
    fn add(&mut self, member: &Member) -> io::Result<Result<(), &'static str>> {
        let mut names = Vec::new();
        for part in member.path.components() {
            match part {
                Component::Normal(name) => names.push(name),
                // As every program does that extracts archives.
                Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
                Component::ParentDir => return Ok(Err("its name leads out of the archive")),
            }
        }
        if names.len() > MOST_DEPTH {
            return Ok(Err("its directories are nested too deep"));
        }
        let content = match &member.kind {
            Kind::Directory => None,
            Kind::File => Some(NodeContent::File {
                offset: member.offset,
                length: member.present,
            }),
            Kind::SymbolicLink(to) => Some(NodeContent::Link(to.clone())),
            Kind::HardLink(to) => {
                // It is the file that has the name at this point of the archive.
                let to = to.strip_prefix("/").unwrap_or(to);
                match self.walk(ROOT, to, 0).map(|node| &self.nodes[node].content) {
                    Some(&NodeContent::File { offset, length }) => {
                        Some(NodeContent::File { offset, length })
                    }
                    _ => return Ok(Err("it is a hard link to what is not in the archive")),
                }
            }
            Kind::Other => Some(NodeContent::Other),
            Kind::Unsupported(why) => return Ok(Err(why)),
        };
        let Some((name, directories)) = names.split_last() else {
            return Ok(match content {
                None => Ok(()),
                Some(_) => Err("it has no name"),
            });
        };
        let mut at = ROOT;
        for name in directories {
            let Some(below) = self.directory(at, name)? else {
                return Ok(Err("what its path says is a directory is none"));
            };
            at = below;
        }
        match content {
            None => match self.directory(at, name)? {
                Some(_) => Ok(Ok(())),
                None => Ok(Err("there is a file of its name")),
            },
            Some(content) => self.put(at, name, content),
        }
    }

    /// The directory of a name in another, which is made if there is nothing yet. Links are not followed.
    fn directory(&mut self, parent: usize, name: &OsStr) -> io::Result<Option<usize>> {
        match &self.nodes[parent].content {
            NodeContent::Directory(entries) => {
                if let Some(&node) = entries.get(name) {
                    let is_directory =
                        matches!(self.nodes[node].content, NodeContent::Directory(_));
                    return Ok(is_directory.then_some(node));
                }
            }
            _ => return Ok(None),
        }
        let content = NodeContent::Directory(BTreeMap::new());
        self.push(parent, name, content).map(Some)
    }

    /// Puts something at a name. What came last is what an archive has.
    fn put(
        &mut self,
        parent: usize,
        name: &OsStr,
        content: NodeContent,
    ) -> io::Result<Result<(), &'static str>> {
        let there = match &self.nodes[parent].content {
            NodeContent::Directory(entries) => entries.get(name).copied(),
            _ => None,
        };
        match there {
            Some(node) if matches!(self.nodes[node].content, NodeContent::Directory(_)) => {
                Ok(Err("there is a directory of its name"))
            }
            Some(node) => {
                self.nodes[node].content = content;
                Ok(Ok(()))
            }
            None => self.push(parent, name, content).map(|_| Ok(())),
        }
    }

    fn push(&mut self, parent: usize, name: &OsStr, content: NodeContent) -> io::Result<usize> {
        let node = self.nodes.len();
        if node > MOST_MEMBERS {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!("the archive has more than {MOST_MEMBERS} members; extract it first"),
            ));
        }
        self.nodes.push(Node {
            parent,
            name: name.to_owned(),
            content,
        });
        if let NodeContent::Directory(entries) = &mut self.nodes[parent].content {
            entries.insert(name.to_owned(), node);
        }
        Ok(node)
    }
}
