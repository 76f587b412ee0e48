//! Directories of traces as output: writing them as a whole.

mod overwrite;
mod places;

use std::ffi::OsStr;
use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use kymo::AnyRecording;
use kymo::explain::path_text;
use kymo_io::Temporaries;
use kymo_model::Recording;

use crate::ctf::Stop;
use crate::terminal::{Failure, Outcome};
use overwrite::{is_empty, overwritten};
pub(crate) use places::places;

/// Maximum number of names to skip, in search of a free one, because other processes are writing those directories.
const MAX_NAMES: u32 = 1000;

/// Refuses a place where something else is.
pub(crate) fn refuse_there(output: &Path, force: bool) -> Result<(), Failure> {
    let problem = match output.symlink_metadata() {
        Err(_) => return Ok(()),
        Ok(there) if !there.is_dir() => {
            "it is a file, and the output is a directory\nhint: choose another output".to_owned()
        }
        Ok(_) if is_empty(output) => return Ok(()),
        Ok(_) => match overwritten(output) {
            Ok(_) if force => return Ok(()),
            Ok(what) => format!("{what} already exist there\nhint: `--force` overwrites them"),
            // What is not a recording is nothing that this program should remove.
            Err(found) => {
                format!(
                    "the directory is not empty, and not a trace: {found}\n\
                     hint: choose another output; only traces, tables and event logs are overwritten"
                )
            }
        },
    };
    let path = path_text(output);
    Err(Failure::Usage(format!("error: {path}: {problem}")))
}

/// Rejects an output that would replace an input or a directory that contains one.
pub(crate) fn refuse_inputs(output: &Path, recordings: &[AnyRecording]) -> Result<(), Failure> {
    // What is not there holds nothing.
    let Ok(real) = std::fs::canonicalize(output) else {
        return Ok(());
    };
    for recording in recordings {
        let files = recording.as_ctf().map_or(&[][..], |trace| trace.files());
        let files = files.iter().map(|file| file.path.as_path());
        // Of what is in an archive, the archive is what is there.
        let is_within = |path: &Path| {
            let there = path
                .ancestors()
                .find_map(|path| std::fs::canonicalize(path).ok());
            there.is_some_and(|path| path.starts_with(&real))
        };
        if let Some(input) = std::iter::once(recording.path())
            .chain(files)
            .find(|it| is_within(it))
        {
            return Err(Failure::Usage(format!(
                "error: {}: the input `{}` is in it\nhint: choose another output",
                path_text(output),
                path_text(input)
            )));
        }
    }
    Ok(())
}

/// Writes a directory as a whole: beside, and then renamed.
///
/// What fails, or panics, leaves nothing; what was killed is removed by the next that writes the same.
pub(crate) fn whole_directory(
    output: &Path,
    force: bool,
    write: impl FnOnce(&Path) -> Result<Outcome, Stop>,
) -> Result<Outcome, Failure> {
    refuse_there(output, force)?;
    let name = output
        .file_name()
        .ok_or_else(|| Failure::Usage(format!("error: {}: it has no name", path_text(output))))?;
    remove_left_behind(output, name);
    let mut beside =
        Beside::new(output, name).map_err(|error| Failure::at(output.display(), &error))?;
    let written = write(&beside.path).and_then(|outcome| {
        put(&mut beside, output, name, force)?;
        Ok(outcome)
    });
    match written {
        Ok(outcome) => Ok(outcome),
        Err(Stop::Damage) => Ok(Outcome::Damage),
        Err(Stop::Failure(Failure::Output(error))) => Err(Failure::at(output.display(), &error)),
        Err(Stop::Failure(failure)) => Err(failure),
    }
}

/// Gives a directory its name, and removes what had it.
fn put(beside: &mut Beside, output: &Path, name: &OsStr, force: bool) -> Result<(), Stop> {
    if output.symlink_metadata().is_err() {
        return Ok(beside.rename(output)?);
    }
    // Something else may have come there meanwhile.
    refuse_there(output, force).map_err(Stop::Failure)?;
    // Whoever looks for what was left behind must not take the old one until the new one is there.
    let _lock = lock(output);
    let mut old = Beside::new(output, name)?;
    old.exchange(beside, output)?;
    match old.remove() {
        // Another program has taken it for one that was left behind.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => Ok(removed?),
    }
}

/// A temporary directory beside another one, locked while it is written, and removed in the end unless
/// it was renamed.
struct Beside {
    path: PathBuf,
    /// Whether its name is free for others.
    is_renamed: bool,
    _lock: Option<File>,
}

impl Beside {
    /// Makes an empty one.
    fn new(output: &Path, name: &OsStr) -> io::Result<Self> {
        if let Some(parent) = output
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty())
        {
            kymo_io::create_directories(parent, false)?;
        }
        let temporaries = Temporaries::hold();
        for number in 0..MAX_NAMES {
            let mut beside = prefix(name);
            beside.push(format!("{number}.new"));
            let path = output.with_file_name(beside);
            match std::fs::create_dir(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                made => made?,
            }
            // Another process may just have taken it for a leftover.
            let lock = match lock(&path) {
                Lock::Taken => continue,
                Lock::Held(file) => Some(file),
                Lock::Unknown => None,
            };
            temporaries.add(&path);
            return Ok(Self {
                path,
                is_renamed: false,
                _lock: lock,
            });
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Gives it its name.
    fn rename(&mut self, output: &Path) -> io::Result<()> {
        let temporaries = Temporaries::hold();
        std::fs::rename(&self.path, output)?;
        temporaries.forget(&self.path);
        self.is_renamed = true;
        Ok(())
    }

    /// Gives another one its name, and takes the place of what had it, which from then on is temporary.
    fn exchange(&mut self, new: &mut Self, output: &Path) -> io::Result<()> {
        // No signal ends the program between the two renames.
        let temporaries = Temporaries::hold();
        // Where a rename replaces an empty directory, no other process can take the name in between.
        #[cfg(not(unix))]
        std::fs::remove_dir(&self.path)?;
        std::fs::rename(output, &self.path)?;
        if let Err(error) = std::fs::rename(&new.path, output) {
            // Whether it gets its name back or not: it is not to be removed.
            self.is_renamed = true;
            temporaries.forget(&self.path);
            // The error that is returned is the one that led here.
            let _ = std::fs::rename(&self.path, output);
            return Err(error);
        }
        temporaries.forget(&new.path);
        new.is_renamed = true;
        Ok(())
    }

    /// Removes it with all that is in it.
    fn remove(&mut self) -> io::Result<()> {
        let temporaries = Temporaries::hold();
        temporaries.forget(&self.path);
        self.is_renamed = true;
        std::fs::remove_dir_all(&self.path)
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        if !self.is_renamed {
            // What cannot be removed is left to the next run.
            let _ = self.remove();
        }
    }
}

/// Whether a directory is locked.
enum Lock {
    /// By this program, as long as the file is open.
    Held(File),
    /// By another one; or it no longer exists.
    Taken,
    /// The system, or the file system, has no locks of directories.
    Unknown,
}

fn lock(path: &Path) -> Lock {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Lock::Taken,
        Err(_) => return Lock::Unknown,
    };
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => Lock::Taken,
        Err(TryLockError::Error(_)) => Lock::Unknown,
        Ok(()) if is_at(&file, path) => Lock::Held(file),
        Ok(()) => Lock::Taken,
    }
}

/// Whether a directory that is open is still the one at a path.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    let there = path
        .symlink_metadata()
        .map(|there| kymo_io::file_id(&there));
    let own = file.metadata().map(|own| kymo_io::file_id(&own));
    own.is_ok_and(|own| there.is_ok_and(|there| own == there))
}

#[cfg(not(unix))]
fn is_at(_file: &File, _path: &Path) -> bool {
    true
}

/// What names beside begin with; a number and `.new` follow, as for files that are replaced.
fn prefix(name: &OsStr) -> std::ffi::OsString {
    let mut prefix = std::ffi::OsString::from(".");
    prefix.push(name);
    prefix.push(".");
    prefix
}

/// Removes what programs were writing here when they were killed: directories that are not locked.
fn remove_left_behind(output: &Path, name: &OsStr) {
    let parent = output.parent().filter(|it| !it.as_os_str().is_empty());
    let Ok(entries) = std::fs::read_dir(parent.unwrap_or(Path::new("."))) else {
        return;
    };
    let prefix = prefix(name);
    for entry in entries.flatten() {
        let entry_name = entry.file_name();
        let rest = entry_name
            .as_encoded_bytes()
            .strip_prefix(prefix.as_encoded_bytes());
        // Nothing but the number may be between: `.a.b.0.new` is of `a.b`, not of `a`.
        let is_of_it = kymo_io::is_beside(&entry_name)
            && rest.is_some_and(|rest| rest.iter().filter(|&&byte| byte == b'.').count() == 1);
        if is_of_it
            && entry.file_type().is_ok_and(|kind| kind.is_dir())
            && let Lock::Held(_lock) = lock(&entry.path())
        {
            // What cannot be removed keeps its name, and another one is taken.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}
