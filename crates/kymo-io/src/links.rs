//! Hard links: the names that one file has.

use std::fs::Metadata;
use std::io;
use std::path::{Path, PathBuf};

use crate::Temporaries;
use crate::replace::{beside, sync_directory};

/// What identifies a file among all others at a time: the numbers of its device and of itself. `None` where
/// the system is not asked for them.
pub fn file_id(metadata: &Metadata) -> Option<(u64, u64)> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        Some((metadata.dev(), metadata.ino()))
    }
    #[cfg(not(unix))]
    {
        let _ = metadata;
        None
    }
}

/// How many names a regular file has beside the one by which it was found, as far as the system knows.
pub fn other_names(metadata: &Metadata) -> u64 {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        match metadata.is_file() {
            true => metadata.nlink().saturating_sub(1),
            false => 0,
        }
    }
    #[cfg(not(unix))]
    {
        let _ = metadata;
        0
    }
}

/// Whether two paths lead to the same file, by whatever links.
pub fn is_same_file(one: &Path, other: &Path) -> bool {
    let id = |path: &Path| path.metadata().ok().and_then(|there| file_id(&there));
    match (id(one), id(other)) {
        (Some(one), Some(other)) => one == other,
        _ => {
            let real = |path: &Path| path.canonicalize();
            matches!((real(one), real(other)), (Ok(one), Ok(other)) if one == other)
        }
    }
}

/// Gives a file another name, in one step where a file has that name already. Symbolic links are
/// followed. With `sync`, the name is on the disk when this returns. `false` if it has that name already.
///
/// # Errors
///
/// Those of the system: most file systems have hard links, and none leads to another file system. Then the name is
/// what it was.
pub fn link(file: &Path, name: &Path, sync: bool) -> io::Result<bool> {
    let file = file.canonicalize()?;
    let name = name.canonicalize().unwrap_or_else(|_| name.to_path_buf());
    // A rename would do nothing.
    if is_same_file(&file, &name) {
        return Ok(false);
    }
    // The signal that ends the program waits until the temporary name is gone.
    let temporaries = Temporaries::hold();
    let temporary = link_beside(&file, &name)?;
    if let Err(error) = std::fs::rename(&temporary, &name) {
        let _ = std::fs::remove_file(&temporary);
        return Err(error);
    }
    drop(temporaries);
    if sync {
        sync_directory(&name)?;
    }
    Ok(true)
}

/// Gives a file a temporary name beside another one.
fn link_beside(file: &Path, name: &Path) -> io::Result<PathBuf> {
    for temporary in beside(name)? {
        match std::fs::hard_link(file, &temporary) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            linked => return linked.map(|()| temporary),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_file_gets_another_name() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        std::fs::write(path("file"), "new").unwrap();
        std::fs::write(path("old"), "old").unwrap();
        std::fs::write(path(".old.0.new"), "of another program").unwrap();
        std::os::unix::fs::symlink("old", path("symbolic")).unwrap();
        for (name, is_new) in [
            ("old", true),
            ("old", false),
            ("symbolic", false),
            ("free", true),
        ] {
            let linked = link(&path("file"), &path(name), true).unwrap();
            assert_eq!(linked, is_new, "{name}");
            assert!(is_same_file(&path("file"), &path(name)));
        }
        assert_eq!(other_names(&path("file").metadata().unwrap()), 2);
        assert!(path("symbolic").is_symlink());
        assert_eq!(crate::list(directory.path()).unwrap().len(), 5);
        assert!(link(&path("gone"), &path("old"), false).is_err());
        assert!(link(&path("file"), &path("no/where"), false).is_err());
        // The name of a directory stays one.
        std::fs::create_dir(path("folder")).unwrap();
        assert!(link(&path("file"), &path("folder"), false).is_err());
        assert_eq!(crate::list(directory.path()).unwrap().len(), 6);
    }
}
