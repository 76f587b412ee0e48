//! Files below directories, and work on many of them.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use kymo_io::{EntryKind, is_beside, list};

use super::report;
use crate::terminal::Terminal;

/// Directories that were searched, by their real paths: links may lead there again.
#[derive(Debug, Default)]
pub(super) struct Searched(HashSet<PathBuf>);

impl Searched {
    /// Passes over a directory from now on.
    pub(super) fn pass_over(&mut self, directory: PathBuf) {
        self.0.insert(directory);
    }

    /// The files in a directory and all below it, in the order of names, and how many directories could not
    /// be read, which is reported.
    pub(super) fn files(&mut self, root: &Path, terminal: &Terminal) -> (Vec<PathBuf>, usize) {
        let mut files = Vec::new();
        let mut failed = 0;
        let mut ahead = vec![root.to_path_buf()];
        while let Some(directory) = ahead.pop() {
            if !self
                .0
                .insert(real(&directory).unwrap_or_else(|| directory.clone()))
            {
                continue;
            }
            let entries = list(&directory).unwrap_or_else(|error| {
                report(&directory, error, terminal);
                failed += 1;
                Vec::new()
            });
            let mut below = Vec::new();
            for entry in entries {
                match entry.kind {
                    EntryKind::Directory => below.push(entry.path),
                    // Files that another run is writing, or that a killed run has left, are not inputs.
                    EntryKind::File if is_beside(&entry.name) => {}
                    EntryKind::File => files.push(entry.path),
                    EntryKind::Other => {}
                }
            }
            ahead.extend(below.into_iter().rev());
        }
        (files, failed)
    }
}

/// Whether a file is to be a database by its name: one that is empty now, say, was one.
pub(super) fn is_called_database(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "rrd")
}

/// The path without links, of what exists.
pub(super) fn real(path: &Path) -> Option<PathBuf> {
    std::fs::canonicalize(path).ok()
}
