//! Temporary files and directories: which ones exist, so that a program that is asked to end can
//! remove them first.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, Once, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// How often a directory is removed again, into which other threads still write.
const MAX_ATTEMPTS: u32 = 100;

type Paths = Mutex<BTreeSet<PathBuf>>;

/// Whoever creates, renames or removes one of these paths reads the lock meanwhile;
/// [`remove_temporaries`] writes it.
static TEMPORARIES: RwLock<Paths> = RwLock::new(Mutex::new(BTreeSet::new()));

static PREPARE: OnceLock<fn()> = OnceLock::new();
static PREPARED: Once = Once::new();

/// The temporary files and directories of this process. [`remove_temporaries`] waits as long as this
/// lives: what happens to a path and what is known of it go together.
///
/// A thread must not have two of these at once.
#[derive(Debug)]
pub struct Temporaries(RwLockReadGuard<'static, Paths>);

impl Temporaries {
    /// Waits while [`remove_temporaries`] is at work.
    pub fn hold() -> Self {
        if let Some(prepare) = PREPARE.get() {
            PREPARED.call_once(prepare);
        }
        Self(TEMPORARIES.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Adds a file or directory that this process has created and that nothing else removes.
    pub fn add(&self, path: &Path) {
        self.paths(|paths| paths.insert(path.to_path_buf()));
    }

    /// Forgets a file or directory, which was renamed or removed.
    pub fn forget(&self, path: &Path) {
        self.paths(|paths| paths.remove(path));
    }

    fn paths(&self, change: impl FnOnce(&mut BTreeSet<PathBuf>) -> bool) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// Sets what is called once, before the first temporary file is created: it may prepare for signals.
/// The first function that is set stays.
pub fn before_temporaries(prepare: fn()) {
    let _ = PREPARE.set(prepare);
}

/// Removes all temporary files and directories of this process. As long as the result lives, threads
/// that would create one, or give one its name, wait: a program that ends meanwhile leaves none.
///
/// What cannot be removed stays, and is removed by the next program that writes the same file.
#[must_use = "other threads go on when it is dropped"]
pub fn remove_temporaries() -> RemovedTemporaries {
    let held = TEMPORARIES.write().unwrap_or_else(PoisonError::into_inner);
    let paths = std::mem::take(&mut *held.lock().unwrap_or_else(PoisonError::into_inner));
    for path in paths {
        let _ = remove(&path);
    }
    RemovedTemporaries(held)
}

/// Guarantees that there are no temporary files and none are created: see [`remove_temporaries`].
#[derive(Debug)]
pub struct RemovedTemporaries(#[expect(dead_code, reason = "it is held")] Held);

type Held = RwLockWriteGuard<'static, Paths>;

fn remove(path: &Path) -> io::Result<()> {
    if !path.symlink_metadata()?.is_dir() {
        return std::fs::remove_file(path);
    }
    // Threads that go on to write find nothing at its name.
    let away = away(path).filter(|away| std::fs::rename(path, away).is_ok());
    let path = away.as_deref().unwrap_or(path);
    // A file may appear in a directory that was just emptied.
    for _ in 1..MAX_ATTEMPTS {
        if std::fs::remove_dir_all(path).is_ok() {
            return Ok(());
        }
    }
    std::fs::remove_dir_all(path)
}

/// Another name for a directory `.NAME.NUMBER.new`, which is removed as one that was left behind, too.
fn away(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?;
    let (name, _) = name.strip_suffix(".new")?.rsplit_once('.')?;
    let number = (1_u64 << 32) + u64::from(std::process::id());
    Some(path.with_file_name(format!("{name}.{number}.new")))
}
