//! What only one daemon may have: a directory of databases, and a pid file.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

use kymo_io::reason;
use nix::errno::Errno;
use nix::sys::signal::kill;
use nix::unistd::Pid;

/// Locks a directory of databases: another daemon would not know of updates in the memory of this one. `None` if it
/// cannot be opened.
///
/// # Errors
///
/// If another daemon has locked it, as a message.
pub(crate) fn lock_data(directory: &Path) -> Result<Option<File>, String> {
    let Ok(file) = File::open(directory) else {
        return Ok(None);
    };
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Err(format!(
            "`{}`: another kymo serve uses this directory\nhint: stop it, or give each a directory of its own with `--data`",
            directory.display()
        )),
        Err(TryLockError::Error(_)) => Ok(None),
    }
}

const PID_FILE_HINT: &str = "hint: stop it, or give each a file of its own with `--pid-file`";

/// A file with the number of this process, which is removed at the end.
#[derive(Debug)]
pub(crate) struct PidFile {
    path: PathBuf,
    /// Locked as long as the daemon runs.
    _file: File,
}

impl PidFile {
    /// Writes a file, unless it is that of another daemon that runs.
    ///
    /// # Errors
    ///
    /// If it is, or cannot be written, as a message.
    pub(crate) fn write(path: &Path) -> Result<Self, String> {
        let shown = path.display();
        let failed = |error: io::Error| format!("`{shown}`: {}", reason(&error));
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let mut file = options.open(path).map_err(failed)?;
        lock_pid_file(&file, path)?;
        file.set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| file.write_all(text_of_this().as_bytes()))
            .map_err(failed)?;
        Ok(Self {
            path: path.to_owned(),
            _file: file,
        })
    }
}

/// Finds out whether a pid file could be written. Nothing is created.
///
/// # Errors
///
/// If it is that of another daemon that runs, or cannot be opened, as a message.
pub(crate) fn check_pid_file(path: &Path) -> Result<(), String> {
    match OpenOptions::new().read(true).write(true).open(path) {
        Ok(file) => lock_pid_file(&file, path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(format!("`{}`: {}", path.display(), reason(&error))),
    }
}

/// Locks a pid file, unless it is that of another daemon that runs.
fn lock_pid_file(file: &File, path: &Path) -> Result<(), String> {
    let shown = path.display();
    if let Err(TryLockError::WouldBlock) = file.try_lock() {
        return Err(format!(
            "`{shown}`: another kymo serve runs with this pid file\n{PID_FILE_HINT}"
        ));
    }
    let mut text = String::new();
    // What is not text is not a number either.
    let _ = file.take(32).read_to_string(&mut text);
    match text.trim().parse().ok().filter(|it| is_daemon(*it)) {
        Some(process) => Err(format!(
            "`{shown}`: process {process}, of which this is the pid file, is running\n{PID_FILE_HINT}"
        )),
        None => Ok(()),
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        // Another process may have written or removed it.
        if std::fs::read(&self.path).is_ok_and(|text| text == text_of_this().as_bytes()) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn text_of_this() -> String {
    format!("{}\n", std::process::id())
}

/// Whether a number is that of another process which runs and may be a daemon: after a machine has stopped, any other
/// process may have the number.
fn is_daemon(process: i32) -> bool {
    if process <= 0 || process.unsigned_abs() == std::process::id() {
        return false;
    }
    let is_there = !matches!(kill(Pid::from_raw(process), None), Err(Errno::ESRCH));
    let name = std::fs::read_to_string(format!("/proc/{process}/comm"));
    let is_daemon = |name: String| ["kymo", "rrdcached", "collectd"].contains(&name.trim());
    is_there && name.map_or(true, is_daemon)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pid_file_has_one_daemon() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("kymo.pid");
        // Of a process that has ended.
        std::fs::write(&path, "999999999\n").unwrap();
        let file = PidFile::write(&path).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text_of_this());
        let problem = PidFile::write(&path).unwrap_err();
        let shown = path.display();
        assert!(
            problem.starts_with(&format!(
                "`{shown}`: another kymo serve runs with this pid file\nhint: "
            )),
            "{problem}"
        );
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text_of_this());
        drop(file);
        assert!(!path.exists());
    }

    #[test]
    fn a_pid_file_of_somebody_else_stays() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("kymo.pid");
        let file = PidFile::write(&path).unwrap();
        std::fs::write(&path, "1\n").unwrap();
        drop(file);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "1\n");
    }

    #[test]
    fn a_directory_has_one_daemon() {
        let directory = tempfile::tempdir().unwrap();
        let lock = lock_data(directory.path()).unwrap();
        assert!(lock.is_some());
        let problem = lock_data(directory.path()).unwrap_err();
        let shown = directory.path().display();
        assert!(
            problem.starts_with(&format!(
                "`{shown}`: another kymo serve uses this directory\nhint: "
            )),
            "{problem}"
        );
        drop(lock);
        assert!(lock_data(directory.path()).unwrap().is_some());
        assert!(lock_data(&directory.path().join("none")).unwrap().is_none());
    }
}
