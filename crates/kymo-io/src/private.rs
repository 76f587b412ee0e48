//! Directories and files that only this user writes.

use std::io;
use std::path::Path;

/// Makes sure that a directory belongs to this user and is not writable by others. If it does not exist,
/// it is made with `create`, for this user alone.
///
/// # Errors
///
/// `PermissionDenied` where it belongs to another user, or others can write in it; `NotADirectory` where
/// something else is there, a symbolic link too; those of the system.
pub fn private_directory(path: &Path, create: bool) -> io::Result<()> {
    let found = match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && create => {
            if let Some(parent) = path.parent() {
                crate::create_directories(parent, false)?;
            }
            make(path).or_else(|error| match error.kind() {
                // Another program was faster.
                io::ErrorKind::AlreadyExists => Ok(()),
                _ => Err(error),
            })?;
            std::fs::symlink_metadata(path)?
        }
        found => found?,
    };
    if !found.is_dir() {
        return Err(io::ErrorKind::NotADirectory.into());
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let is_own = found.uid() == nix::unistd::geteuid().as_raw();
        if !is_own || found.mode() & 0o022 != 0 {
            let message = "others can write in this directory";
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
        }
    }
    Ok(())
}

#[cfg(unix)]
fn make(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new().mode(0o700).create(path)
}

#[cfg(not(unix))]
fn make(path: &Path) -> io::Result<()> {
    std::fs::create_dir(path)
}

/// Whether a path is a regular file of this user; a symbolic link is not.
pub fn is_own_file(path: &Path) -> bool {
    let Ok(found) = std::fs::symlink_metadata(path) else {
        return false;
    };
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        found.is_file() && found.uid() == nix::unistd::geteuid().as_raw()
    }
    #[cfg(not(unix))]
    found.is_file()
}
