//! What is in directories, in an order that does not depend on the file system.

use std::ffi::OsString;
use std::io;
use std::path::{Component, Path, PathBuf};

/// What a directory entry is, symbolic links followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// Something else: a pipe, a socket, a device, a link to nothing.
    Other,
}

/// An entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name.
    pub name: OsString,
    /// The directory's path and its name.
    pub path: PathBuf,
    /// What it is.
    pub kind: EntryKind,
    /// Whether it is a symbolic link of the file system.
    pub is_link: bool,
}

/// The entries of a directory, ordered by the bytes of their names.
///
/// # Errors
///
/// Those of reading the directory. An entry that cannot be examined is not an error: it is
/// [`EntryKind::Other`].
pub fn list(directory: &Path) -> io::Result<Vec<Entry>> {
    let mut entries = std::fs::read_dir(directory)?
        .map(|entry| {
            let entry = entry?;
            let path = entry.path();
            // Most systems report with the name what it is: links alone need a look.
            let own = entry.file_type().ok();
            let is_known = own.filter(|kind| kind.is_file() || kind.is_dir());
            let kind = is_known.or_else(|| Some(std::fs::metadata(&path).ok()?.file_type()));
            Ok(Entry {
                name: entry.file_name(),
                path,
                kind: match kind {
                    Some(kind) if kind.is_file() => EntryKind::File,
                    Some(kind) if kind.is_dir() => EntryKind::Directory,
                    _ => EntryKind::Other,
                },
                is_link: own.is_none_or(|kind| kind.is_symlink()),
            })
        })
        .collect::<io::Result<Vec<_>>>()?;
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(entries)
}

/// The path from the root of the file system, without `.` and `..`. Symbolic links stay as
/// they are. Where the current directory is not known, relative paths stay relative.
pub fn absolute(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    let mut result = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                result.pop();
            }
            _ => result.push(part),
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_come_sorted_and_distinguished() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("b"), "").unwrap();
        std::fs::create_dir(directory.path().join("a")).unwrap();
        std::fs::write(directory.path().join("B"), "").unwrap();
        let found: Vec<_> = list(directory.path())
            .unwrap()
            .into_iter()
            .map(|entry| (entry.name.into_string().unwrap(), entry.kind))
            .collect();
        assert_eq!(
            found,
            [
                ("B".to_string(), EntryKind::File),
                ("a".to_string(), EntryKind::Directory),
                ("b".to_string(), EntryKind::File),
            ]
        );
        assert!(list(&directory.path().join("b")).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn absolute_paths_have_no_dots() {
        assert_eq!(absolute(Path::new("/a/./b/../../c/")), Path::new("/c"));
        assert_eq!(absolute(Path::new("/..")), Path::new("/"));
        let here = std::env::current_dir().unwrap();
        assert_eq!(absolute(Path::new("x/..")), here);
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("file"), "").unwrap();
        std::os::unix::fs::symlink("file", directory.path().join("link")).unwrap();
        std::os::unix::fs::symlink("gone", directory.path().join("loose")).unwrap();
        let kinds: Vec<_> = list(directory.path())
            .unwrap()
            .into_iter()
            .map(|entry| entry.kind)
            .collect();
        assert_eq!(kinds, [EntryKind::File, EntryKind::File, EntryKind::Other]);
    }
}
