//! Where files of a traced system, and their debug information, are on this one.

use std::path::{Component, Path, PathBuf};

use crate::DebugLink;

/// Where debug information is by default.
const DEBUG_DIRECTORY: &str = "/usr/lib/debug";

/// What is known of a file that was mapped, beside its path.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Identity {
    /// Its build ID; empty if none is known.
    pub build_id: Vec<u8>,
    /// The file with its debug information.
    pub debug_link: Option<DebugLink>,
}

/// Where files are looked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchPaths {
    /// Where the root of the traced system is, such as a mounted image; `None` for `/`.
    pub root: Option<PathBuf>,
    /// Directories with separate debug information; if there is none, `/usr/lib/debug` below the root.
    pub directories: Vec<PathBuf>,
}

impl SearchPaths {
    /// Where a file of the traced system is. With a root, no path leads out of it but by links.
    pub fn place(&self, path: &Path) -> PathBuf {
        match &self.root {
            None => path.to_owned(),
            Some(root) => {
                let mut place = root.clone();
                for component in path.components() {
                    match component {
                        Component::Normal(name) => place.push(name),
                        Component::ParentDir
                            if place.as_os_str().len() > root.as_os_str().len() =>
                        {
                            place.pop();
                        }
                        _ => {}
                    }
                }
                place
            }
        }
    }

    fn directories(&self) -> Vec<PathBuf> {
        match self.directories.is_empty() {
            true => vec![self.place(Path::new(DEBUG_DIRECTORY))],
            false => self.directories.clone(),
        }
    }

    /// Where the file with a build ID may be.
    pub(crate) fn of_build_id(&self, build_id: &[u8]) -> Vec<PathBuf> {
        let [first, rest @ ..] = build_id else {
            return Vec::new();
        };
        if rest.is_empty() || rest.len() > 64 {
            return Vec::new();
        }
        let rest: String = rest.iter().map(|byte| format!("{byte:02x}")).collect();
        let directories = self.directories().into_iter();
        directories
            .map(|directory| {
                let directory = directory.join(".build-id").join(format!("{first:02x}"));
                directory.join(format!("{rest}.debug"))
            })
            .collect()
    }

    /// Where the debug file that a file links to may be: beside it, in `.debug` beside it, and in the debug
    /// directories at the same path. `path` is that on the traced system.
    pub(crate) fn of_link(&self, path: &Path, name: &str) -> Vec<PathBuf> {
        // It is a name and not a path.
        if name.is_empty() || name.contains('/') || name == ".." || name == "." {
            return Vec::new();
        }
        let beside = path.parent().unwrap_or(Path::new("/"));
        let place = self.place(beside);
        let mut places = vec![place.join(name), place.join(".debug").join(name)];
        for directory in self.directories() {
            let below = |path: &Path| {
                let inner = SearchPaths {
                    root: Some(directory.clone()),
                    directories: Vec::new(),
                };
                inner.place(path).join(name)
            };
            places.push(below(beside));
            if place != beside {
                places.push(below(&place));
            }
        }
        places
    }

    /// Where the file may be that several debug files have parts in, which one of them names.
    pub(crate) fn of_supplement(&self, debug_file: &Path, name: &str) -> Vec<PathBuf> {
        let name = Path::new(name);
        if name.is_absolute() {
            return vec![self.place(name)];
        }
        let beside = debug_file.parent().unwrap_or(Path::new("/"));
        vec![beside.join(name)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_below_the_root() {
        let search = SearchPaths {
            root: Some("/image".into()),
            directories: Vec::new(),
        };
        let place = |path: &str| search.place(Path::new(path));
        assert_eq!(place("/usr/bin/a"), Path::new("/image/usr/bin/a"));
        assert_eq!(place("/usr/../../../etc/b"), Path::new("/image/etc/b"));
        let link = search.of_link(Path::new("/usr/bin/a"), "a.debug");
        assert_eq!(
            link,
            [
                "/image/usr/bin/a.debug",
                "/image/usr/bin/.debug/a.debug",
                "/image/usr/lib/debug/usr/bin/a.debug",
                "/image/usr/lib/debug/image/usr/bin/a.debug",
            ]
            .map(PathBuf::from)
        );
        assert!(search.of_link(Path::new("/usr/bin/a"), "../x").is_empty());
        assert_eq!(
            search.of_build_id(&[0xab, 0xcd, 0x01]),
            [PathBuf::from(
                "/image/usr/lib/debug/.build-id/ab/cd01.debug"
            )]
        );
        assert!(search.of_build_id(&[1]).is_empty());
    }
}
