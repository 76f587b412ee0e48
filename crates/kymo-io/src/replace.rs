//! Writing a file as a whole: beside the old one, which it then replaces in one step.

use std::ffi::{OsStr, OsString};
#[cfg(unix)]
use std::fs::TryLockError;
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use crate::Temporaries;
#[cfg(unix)]
use crate::file_id;

/// Maximum number of files being written by others that are skipped in search of a free name.
const MAX_NAMES: u32 = 1000;

/// What the names end with under which new files are written, after a number.
const BESIDE: &str = ".new";

/// Maximum number of links behind each other, as Linux has it.
const MAX_LINKS: u32 = 40;

/// How a file is written as a whole.
#[derive(Clone, Copy, Debug)]
pub struct Replace<'a> {
    /// The file whose mode, owner and times the new file gets, as selected
    /// below.
    pub like: Option<&'a Path>,
    /// Whether it gets the mode (who may read and write it).
    pub mode: bool,
    /// Whether it gets the owner and the group. Unix only.
    pub owner: bool,
    /// Whether it gets the time of the last change.
    pub modified: bool,
    /// Whether a path that is a symbolic link stands for the file it leads to, also if that does not exist yet;
    /// otherwise the link is replaced.
    pub follow: bool,
    /// Whether to wait until the new file, and its name, are on the disk. Without, a machine
    /// that stops may leave an empty file under the name.
    pub sync: bool,
    /// Whether a file that is there stays, and the new one is refused with `AlreadyExists`.
    pub keep: bool,
}

impl Replace<'_> {
    /// A new file on the disk, which is like no other.
    pub const NEW: Self = Self {
        like: None,
        mode: true,
        owner: true,
        modified: true,
        follow: true,
        sync: true,
        keep: false,
    };
}

/// Writes a file as a whole: whoever opens the path finds the file that was there before, or
/// none, or all of the new one.
///
/// The new file is written under another name in the same directory. If anything fails it is
/// removed, and the path is what it was. What a program left under such a name that was killed is
/// removed by the next that writes the same file.
///
/// # Errors
///
/// Those of [`NewFile::write`], and of [`NewFile::put`].
pub fn replace<T, E: From<io::Error>>(
    path: &Path,
    how: Replace<'_>,
    write: impl FnOnce(&mut File) -> Result<T, E>,
) -> Result<T, E> {
    let (new, result) = NewFile::write(path, how, write)?;
    new.put()?;
    Ok(result)
}

/// A file that is written as a whole and does not have its name yet: the first half of
/// [`replace`], for those who have something else to do just before the file gets its name.
///
/// It is removed where it never does, and by [`remove_temporaries`](crate::remove_temporaries).
#[derive(Debug)]
pub struct NewFile {
    /// Open while the file has a temporary name, so that it stays locked: others do not take it for one that
    /// was left behind.
    file: Option<File>,
    beside: PathBuf,
    path: PathBuf,
    sync: bool,
    keep: bool,
    /// Whether the other name no longer exists.
    is_put: bool,
}

impl NewFile {
    /// Writes a file beside its final path.
    ///
    /// # Errors
    ///
    /// `Unsupported` if there is something at the path that is not a regular file, such as a pipe or a
    /// device. Those of `write`; those of making and syncing files, of reading what the file
    /// is to be like, and of giving it away (to another owner only a privileged user may).
    pub fn write<T, E: From<io::Error>>(
        path: &Path,
        how: Replace<'_>,
        write: impl FnOnce(&mut File) -> Result<T, E>,
    ) -> Result<(Self, T), E> {
        let path = match how.follow {
            true => followed(path, how.keep)?,
            false => path.to_path_buf(),
        };
        let there = std::fs::symlink_metadata(&path);
        if there.is_ok_and(|there| !there.is_file() && !there.is_symlink()) {
            // A rename would put the file in the place of a pipe or a device, such as /dev/null.
            return Err(io::Error::new(io::ErrorKind::Unsupported, "not a regular file").into());
        }
        let like = how.like.map(std::fs::metadata).transpose()?;
        let (mut file, beside) = create_beside(&path)?;
        // From here on it is removed where something fails.
        let mut new = Self {
            file: None,
            beside,
            path,
            sync: how.sync,
            keep: how.keep,
            is_put: false,
        };
        let result = write(&mut file)?;
        if let Some(like) = like {
            make_like(&file, &like, how)?;
        }
        if how.sync {
            file.sync_all()?;
        }
        new.file = Some(file);
        Ok((new, result))
    }

    /// Gives the file its name, and waits until that is on the disk, where this was asked for.
    ///
    /// # Errors
    ///
    /// Those of [`rename`](Self::rename), and of [`sync_name`](Self::sync_name).
    pub fn put(mut self) -> io::Result<()> {
        self.rename()?;
        self.sync_name()
    }

    /// Gives the file its name: whoever opens the path from now on finds it.
    ///
    /// # Errors
    ///
    /// `AlreadyExists` where there is a file that [stays](Replace::keep); those of renaming. Then the path
    /// is what it was.
    pub fn rename(&mut self) -> io::Result<()> {
        // Some systems do not rename files that are open.
        #[cfg(not(unix))]
        drop(self.file.take());
        let temporaries = Temporaries::hold();
        match self.keep {
            true => rename_to_free(&self.beside, &self.path)?,
            false => std::fs::rename(&self.beside, &self.path)?,
        }
        temporaries.forget(&self.beside);
        self.is_put = true;
        drop(self.file.take());
        Ok(())
    }

    /// Waits until the name of a file that has it is on the disk, where [that](Replace::sync) was asked for.
    ///
    /// # Errors
    ///
    /// Those of syncing the directory.
    pub fn sync_name(&self) -> io::Result<()> {
        match self.sync {
            true => sync_directory(&self.path),
            false => Ok(()),
        }
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if !self.is_put {
            let temporaries = Temporaries::hold();
            temporaries.forget(&self.beside);
            // A failure is ignored: the next writer of the same file removes it, too.
            let _ = std::fs::remove_file(&self.beside);
        }
    }
}

/// What a path leads to. A link to a file that does not exist leads to where that file would be, except if what is there
/// stays: then the link is there.
fn followed(path: &Path, keep: bool) -> io::Result<PathBuf> {
    let error = match std::fs::canonicalize(path) {
        Ok(real) => return Ok(real),
        Err(error) => error,
    };
    let mut path = path.to_path_buf();
    if keep {
        return Ok(path);
    }
    for _ in 0..MAX_LINKS {
        let Ok(to) = std::fs::read_link(&path) else {
            return Ok(path);
        };
        path.pop();
        path.push(to);
    }
    // The links lead in a circle.
    Err(error)
}

/// Renames a file to a path that does not exist.
fn rename_to_free(from: &Path, to: &Path) -> io::Result<()> {
    // Of all ways to give a file a name that is free, this is the one that most systems have.
    match std::fs::hard_link(from, to) {
        Ok(()) => {
            // Two names do no harm where this fails: the next who writes the file removes this one.
            let _ = std::fs::remove_file(from);
            Ok(())
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
        // A file system without links. A file that is created there at the same time is replaced.
        Err(_) => match to.symlink_metadata() {
            Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
            Err(_) => std::fs::rename(from, to),
        },
    }
}

/// Makes a directory and those above it that are not there. With `sync`, their names are on the
/// disk when this returns.
///
/// # Errors
///
/// Those of the system.
pub fn create_directories(path: &Path, sync: bool) -> io::Result<()> {
    let is_new = |path: &&Path| !path.as_os_str().is_empty() && !path.exists();
    let new: Vec<_> = match sync {
        true => path.ancestors().take_while(is_new).collect(),
        false => Vec::new(),
    };
    {
        // A temporary directory that is removed is not created again.
        let _temporaries = Temporaries::hold();
        std::fs::create_dir_all(path)?;
    }
    new.iter().try_for_each(|made| sync_directory(made))
}

/// The temporary names of a path.
pub(crate) fn beside(path: &Path) -> io::Result<impl Iterator<Item = PathBuf>> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidFilename)?;
    Ok((0..MAX_NAMES).map(move |number| {
        let mut beside = OsString::from(".");
        beside.push(name);
        beside.push(format!(".{number}{BESIDE}"));
        path.with_file_name(beside)
    }))
}

/// Makes a file of a name that is free, in the same directory, and locks it as long as it is open.
fn create_beside(path: &Path) -> io::Result<(File, PathBuf)> {
    let temporaries = Temporaries::hold();
    for beside in beside(path)? {
        let create = || {
            let mut options = OpenOptions::new();
            options.read(true).write(true).create_new(true);
            options.open(&beside)
        };
        let file = match create() {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                match remove_left_behind(&beside) {
                    true => create(),
                    false => continue,
                }
            }
            file => file,
        };
        match file {
            // Another process has just taken it for a leftover, and removes it.
            Ok(file) if !holds(&file, &beside) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            file => {
                let file = file?;
                temporaries.add(&beside);
                return Ok((file, beside));
            }
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Locks a file, and returns whether it is then still the one at a path: nobody else removes or renames it
/// as long as it is open.
#[cfg(unix)]
fn holds(file: &File, path: &Path) -> bool {
    // Where a file system knows no locks, nothing is removed.
    let locked = !matches!(file.try_lock(), Err(TryLockError::WouldBlock));
    let own = file.metadata().map(|own| file_id(&own));
    let there = std::fs::symlink_metadata(path).map(|there| file_id(&there));
    locked && own.is_ok_and(|own| there.is_ok_and(|there| own == there))
}

/// Where files are closed before they are renamed, locks show nothing.
#[cfg(not(unix))]
fn holds(_file: &File, _path: &Path) -> bool {
    true
}

/// Removes a file that a program was writing when it was killed: one that is not locked. Returns whether
/// that is done.
#[cfg(unix)]
fn remove_left_behind(beside: &Path) -> bool {
    if !std::fs::symlink_metadata(beside).is_ok_and(|there| there.is_file()) {
        return false;
    }
    let file = OpenOptions::new().read(true).write(true).open(beside);
    file.is_ok_and(|file| {
        let locked = file.try_lock().is_ok();
        locked && holds(&file, beside) && std::fs::remove_file(beside).is_ok()
    })
}

#[cfg(not(unix))]
fn remove_left_behind(_beside: &Path) -> bool {
    false
}

/// Whether a name is one under which [`replace`] writes a new file. Where a program is killed
/// meanwhile, the file stays, whole or not.
pub fn is_beside(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    let number = name
        .strip_prefix(b".")
        .and_then(|rest| rest.strip_suffix(BESIDE.as_bytes()))
        .and_then(|rest| rest.rsplit(|&byte| byte == b'.').next());
    // Of all that is stripped, the dot before the number must be left.
    number.is_some_and(|number| {
        let digits = !number.is_empty() && number.iter().all(u8::is_ascii_digit);
        digits && name.len() > 1 + 1 + number.len() + BESIDE.len()
    })
}

fn make_like(file: &File, like: &Metadata, how: Replace<'_>) -> io::Result<()> {
    // Changing the owner may take bits of the mode away, so the mode comes after it.
    #[cfg(unix)]
    if how.owner {
        use std::os::unix::fs::{MetadataExt, fchown};
        let own = file.metadata()?;
        let uid = (own.uid() != like.uid()).then_some(like.uid());
        let gid = (own.gid() != like.gid()).then_some(like.gid());
        if uid.is_some() || gid.is_some() {
            fchown(file, uid, gid)?;
        }
    }
    if how.mode {
        file.set_permissions(like.permissions())?;
    }
    if how.modified {
        file.set_modified(like.modified()?)?;
    }
    Ok(())
}

/// Waits until the names in the directory of a path are on the disk.
#[cfg(unix)]
pub(crate) fn sync_directory(path: &Path) -> io::Result<()> {
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    File::open(directory)?.sync_all()
}

/// Where directories cannot be opened, names are left to the system.
#[cfg(not(unix))]
pub(crate) fn sync_directory(_path: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::time::{Duration, SystemTime};

    use super::*;

    fn write(path: &Path, how: Replace<'_>, content: &[u8]) -> io::Result<()> {
        replace(path, how, |file| file.write_all(content))
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_or_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let (file, link) = (directory.path().join("file"), directory.path().join("link"));
        std::fs::write(&file, "old").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        write(&link, Replace::NEW, b"new").unwrap();
        assert_eq!(std::fs::read(&file).unwrap(), b"new");
        assert!(link.is_symlink());
        let how = Replace {
            follow: false,
            ..Replace::NEW
        };
        write(&link, how, b"other").unwrap();
        assert_eq!(std::fs::read(&file).unwrap(), b"new");
        assert_eq!(std::fs::read(&link).unwrap(), b"other");
        assert!(!link.is_symlink());
    }

    #[cfg(unix)]
    #[test]
    fn links_to_no_file_lead_to_the_new_one() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        std::fs::create_dir(at("sub")).unwrap();
        for (to, link) in [
            ("sub/new", "first"),
            ("first", "second"),
            ("circle", "circle"),
        ] {
            std::os::unix::fs::symlink(to, at(link)).unwrap();
        }
        let keep = Replace {
            keep: true,
            ..Replace::NEW
        };
        let kept = write(&at("second"), keep, b"new").unwrap_err();
        assert_eq!(kept.kind(), io::ErrorKind::AlreadyExists);
        write(&at("second"), Replace::NEW, b"new").unwrap();
        assert_eq!(std::fs::read(at("sub/new")).unwrap(), b"new");
        write(&at("circle"), Replace::NEW, b"new").unwrap_err();
        for link in ["first", "second", "circle"] {
            assert!(at(link).is_symlink(), "{link}");
        }
        std::os::unix::fs::symlink("gone/new", at("no-directory")).unwrap();
        write(&at("no-directory"), Replace::NEW, b"new").unwrap_err();
        assert!(at("no-directory").is_symlink());
    }

    #[test]
    fn the_new_file_is_there_and_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        for content in [&b"first"[..], b"second"] {
            write(&path, Replace::NEW, content).unwrap();
            assert_eq!(std::fs::read(&path).unwrap(), content);
        }
        assert_eq!(crate::list(directory.path()).unwrap().len(), 1);
    }

    #[test]
    fn a_file_that_is_there_may_stay() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let how = Replace {
            keep: true,
            ..Replace::NEW
        };
        // Both are written before one of them gets the name.
        let content = |text: &'static [u8]| move |file: &mut File| file.write_all(text);
        let (one, ()) = NewFile::write(&path, how, content(b"one")).unwrap();
        let (other, ()) = NewFile::write(&path, how, content(b"other")).unwrap();
        assert!(!path.exists());
        one.put().unwrap();
        let error = other.put().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read(&path).unwrap(), b"one");
        assert_eq!(crate::list(directory.path()).unwrap().len(), 1);
    }

    #[test]
    fn a_file_that_gets_no_name_is_removed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let written = NewFile::write(&path, Replace::NEW, |file| file.write_all(b"new"));
        drop(written.unwrap());
        assert_eq!(crate::list(directory.path()).unwrap().len(), 0);
    }

    #[test]
    fn directories_are_made_with_those_above() {
        let directory = tempfile::tempdir().unwrap();
        for sync in [false, true] {
            let path = directory.path().join(format!("{sync}/a/b"));
            create_directories(&path, sync).unwrap();
            create_directories(&path, sync).unwrap();
            assert!(path.is_dir());
        }
        std::fs::write(directory.path().join("file"), "").unwrap();
        assert!(create_directories(&directory.path().join("file/a"), true).is_err());
    }

    #[test]
    fn a_failure_leaves_the_old_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        std::fs::write(&path, "old").unwrap();
        let error = replace(&path, Replace::NEW, |file| {
            file.write_all(b"ne")?;
            Err::<(), _>(io::Error::from(io::ErrorKind::StorageFull))
        });
        assert_eq!(error.unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
        assert_eq!(crate::list(directory.path()).unwrap().len(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn what_was_left_behind_is_removed() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join(".file.0.new"), "left").unwrap();
        let path = directory.path().join("file");
        write(&path, Replace::NEW, b"new").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
        assert_eq!(crate::list(directory.path()).unwrap().len(), 1);
    }

    #[test]
    fn what_others_write_is_not_touched() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let (mut other, beside) = create_beside(&path).unwrap();
        other.write_all(b"other").unwrap();
        // Nor is what looks like it.
        let folder = directory.path().join(".file.1.new");
        std::fs::create_dir(&folder).unwrap();
        write(&path, Replace::NEW, b"new").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
        assert!(folder.is_dir());
        drop(other);
        assert_eq!(std::fs::read(&beside).unwrap(), b"other");
    }

    #[test]
    fn many_write_the_same_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        std::thread::scope(|scope| {
            for writer in 0..4 {
                let content = vec![b'a' + writer; 10_000];
                let path = &path;
                scope.spawn(move || {
                    for _ in 0..50 {
                        let how = Replace {
                            sync: false,
                            ..Replace::NEW
                        };
                        write(path, how, &content).unwrap();
                    }
                });
            }
        });
        let content = std::fs::read(&path).unwrap();
        assert!(content.len() == 10_000 && content.iter().all(|&byte| byte == content[0]));
        assert_eq!(crate::list(directory.path()).unwrap().len(), 1);
    }

    #[test]
    fn names_of_new_files_are_known() {
        let directory = tempfile::tempdir().unwrap();
        let (_, beside) = create_beside(&directory.path().join("a.rrd")).unwrap();
        assert!(is_beside(beside.file_name().unwrap()));
        assert!(is_beside(OsStr::new(".a.12.new")));
        for name in [
            "a.rrd", ".new", ".0.new", ".a.new", "a.0.new", ".a..new", ".a.x.new",
        ] {
            assert!(!is_beside(OsStr::new(name)), "{name}");
        }
    }

    #[test]
    fn a_directory_is_not_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let error = write(directory.path(), Replace::NEW, b"new").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::Unsupported);
    }

    #[cfg(unix)]
    #[test]
    fn mode_and_time_are_kept_where_asked_for() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        std::fs::write(&path, "old").unwrap();
        let then = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_007);
        let old = File::options().write(true).open(&path).unwrap();
        old.set_permissions(PermissionsExt::from_mode(0o640))
            .unwrap();
        old.set_modified(then).unwrap();

        let keep = Replace {
            like: Some(&path),
            ..Replace::NEW
        };
        write(&path, keep, b"new").unwrap();
        let metadata = std::fs::metadata(&path).unwrap();
        assert_eq!(metadata.permissions().mode() & 0o777, 0o640);
        assert_eq!(metadata.modified().unwrap(), then);

        let change = Replace {
            modified: false,
            ..keep
        };
        write(&path, change, b"newer").unwrap();
        assert_ne!(std::fs::metadata(&path).unwrap().modified().unwrap(), then);
        assert_eq!(std::fs::read(&path).unwrap(), b"newer");
    }

    #[cfg(unix)]
    #[test]
    fn links_stay_links() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        std::fs::write(&path, "old").unwrap();
        let link = directory.path().join("link");
        std::os::unix::fs::symlink("file", &link).unwrap();
        write(&link, Replace::NEW, b"new").unwrap();
        assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
    }
}
