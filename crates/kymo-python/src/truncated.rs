//! Files that others truncate while they are read: what is gone reads as zeros, which must not pass for data.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use kymo::AnyRecording;
use kymo_model::Recording;

/// The files that were found truncated in this process, each with the number of its last finding.
static FOUND: Mutex<(u64, BTreeMap<PathBuf, u64>)> = Mutex::new((0, BTreeMap::new()));

/// What is found about the files of some recordings from when they were opened.
#[derive(Clone, Debug, Default)]
pub(crate) struct Truncations {
    since: u64,
    /// Paths in which the files are; none for all files.
    roots: Option<Arc<[PathBuf]>>,
}

impl Truncations {
    /// From now on, this process survives that files are truncated which it then reads.
    pub(crate) fn watch() -> Self {
        #[cfg(target_os = "linux")]
        kymo_io::survive_truncation();
        let found = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
        Self {
            since: found.0,
            roots: None,
        }
    }

    /// The same, of the files of some recordings alone.
    pub(crate) fn within(self, recordings: &[AnyRecording]) -> Self {
        let roots = recordings
            .iter()
            .filter_map(|recording| existing(recording.path()));
        Self {
            roots: Some(roots.collect()),
            ..self
        }
    }

    /// What is to be reported: every reading of a truncated file lacks what was cut off.
    pub(crate) fn reports(&self) -> Vec<String> {
        let mut found = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
        #[cfg(target_os = "linux")]
        for path in kymo_io::take_truncated() {
            found.0 += 1;
            let number = found.0;
            found.1.insert(path, number);
        }
        let is_of_these = |path: &Path| match &self.roots {
            Some(roots) => roots.iter().any(|root| path.starts_with(root)),
            None => true,
        };
        let files = found.1.iter();
        files
            .filter(|(path, number)| **number > self.since && is_of_these(path))
            .map(|(path, _)| {
                format!(
                    "`{}` was truncated while it was read: what was cut off is missing, or was read as zeros",
                    path.display()
                )
            })
            .collect()
    }
}

/// The path as the system names it; of a path within an archive, the archive.
fn existing(path: &Path) -> Option<PathBuf> {
    let mut paths = path.ancestors();
    paths.find_map(|path| path.canonicalize().ok())
}
