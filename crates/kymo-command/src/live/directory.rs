//! The directory of temporary storage, which is gone however the program ends.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::{fs, io};

/// Names that are tried.
const MOST_NAMES: u32 = 1000;

/// A directory that is removed when this is dropped, and when a signal ends the program.
#[derive(Debug)]
pub(super) struct SpoolDirectory {
    path: PathBuf,
    /// Whether the first signal ends the program.
    ends: Arc<AtomicBool>,
}

impl SpoolDirectory {
    /// A new one. The first signal that would end the program sets `interrupted`; the next one ends it.
    pub(super) fn new(interrupted: Arc<AtomicBool>) -> io::Result<Self> {
        let parent = std::env::temp_dir();
        let process = std::process::id();
        let ends: Arc<AtomicBool> = Arc::default();
        let mut builder = fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        for number in 0..MOST_NAMES {
            let path = parent.join(format!("kymo-live-{process}-{number}"));
            match builder.create(&path) {
                Ok(()) => {
                    #[cfg(unix)]
                    crate::signals::interrupt(interrupted, Arc::clone(&ends), Some(path.clone()));
                    #[cfg(not(unix))]
                    drop(interrupted);
                    return Ok(Self { path, ends });
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => {
                    let message = format!(
                        "cannot create a directory in `{}`: {}; set TMPDIR to another directory",
                        parent.display(),
                        kymo_io::reason(&error)
                    );
                    return Err(io::Error::new(error.kind(), message));
                }
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Has the first signal end the program.
    pub(super) fn end_at_signal(&self) {
        self.ends.store(true, Ordering::Relaxed);
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for SpoolDirectory {
    fn drop(&mut self) {
        // What cannot be removed stays: there is nobody to report it to.
        let _ = fs::remove_dir_all(&self.path);
    }
}
