//! What a store is to be like, and which paths it knows.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kymo_machine::Machine;
use kymo_rrd::file::convert::Target;

use crate::journal;
use crate::log::Log;

/// The options of a store.
#[derive(Clone)]
pub struct Options {
    /// The directory that paths are relative to.
    pub base: PathBuf,
    /// Whether paths may lead outside of it.
    pub anywhere: bool,
    /// When updates are written.
    pub timing: Timing,
    /// The number of threads that write, at least one.
    pub writers: usize,
    /// How many files a writer keeps open.
    pub open_files: usize,
    /// How many bytes of updates may be kept.
    pub most_pending: usize,
    /// Maximum time that updates may be ahead of this machine's clock: a database that took a later one would take
    /// none until then.
    pub future_limit: Duration,
    /// How long a database may be [suspended](super::Store::suspend).
    pub suspend_limit: Duration,
    /// No databases are created if their disk has fewer bytes free.
    pub least_free: u64,
    /// The form of new databases.
    pub target: Target,
    /// Where what is acknowledged is written at once; nowhere, if there is none.
    pub journal: Option<journal::Options>,
    /// Where messages go.
    pub log: Log,
}

/// When updates are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// How long they are kept before.
    pub write_timeout: Duration,
    /// Maximum additional time, so that not all files are written at the same time.
    pub jitter: Duration,
    /// How often everything is written, and a new journal is begun.
    pub flush_interval: Duration,
}

impl Options {
    /// One with the usual limits, for databases in a directory, without a journal.
    pub fn new(base: PathBuf, log: Log) -> Self {
        let write = crate::config::Write::default();
        Self {
            base,
            anywhere: false,
            timing: write.timing(),
            writers: write.threads,
            open_files: write.open_files,
            most_pending: write.most_pending,
            future_limit: write.future_limit,
            suspend_limit: write.suspend_limit,
            least_free: write.least_free,
            target: Target::Native(Machine::native()),
            journal: None,
            log,
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("base", &self.base)
            .field("journal", &self.journal)
            .finish_non_exhaustive()
    }
}

impl Options {
    /// The absolute path that a word means: one that is not absolute is below the base. Where it can be
    /// written in several ways, by `//` and `/./`, this is the shortest.
    pub fn path(&self, word: &[u8]) -> Vec<u8> {
        let base = match word {
            [b'/', ..] => b"",
            _ => self.base(),
        };
        let mut path = Vec::with_capacity(base.len() + 1 + word.len());
        path.extend_from_slice(base);
        for name in word.split(|byte| *byte == b'/') {
            if !name.is_empty() && name != b"." {
                path.push(b'/');
                path.extend_from_slice(name);
            }
        }
        path
    }

    /// What paths in the base begin with, before a `/`.
    fn base(&self) -> &[u8] {
        let base = bytes_of(&self.base);
        base.strip_suffix(b"/").unwrap_or(base)
    }

    /// Whether a path may be used: below the base and without `..`, or any.
    pub fn allows(&self, path: &[u8]) -> bool {
        !path.contains(&0) && (self.anywhere || self.is_below(path))
    }

    /// Whether a path is below the base and has no `..`.
    pub(crate) fn is_below(&self, path: &[u8]) -> bool {
        let rest = path.strip_prefix(self.base());
        rest.is_some_and(|rest| {
            let mut names = rest.split(|byte| *byte == b'/');
            (rest.is_empty() || rest.starts_with(b"/")) && !names.any(|name| name == b"..")
        })
    }
}

pub(crate) fn bytes_of(path: &Path) -> &[u8] {
    use std::os::unix::ffi::OsStrExt;
    path.as_os_str().as_bytes()
}

pub(crate) fn path_of(path: &[u8]) -> &Path {
    use std::os::unix::ffi::OsStrExt;
    Path::new(std::ffi::OsStr::from_bytes(path))
}
