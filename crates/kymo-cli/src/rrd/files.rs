//! Files below directories, and work on many of them.

use std::collections::{BTreeMap, HashSet};
use std::num::NonZeroU16;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use kymo_io::{EntryKind, is_beside, list};

use super::tell;
use crate::terminal::{Failure, Terminal};

/// Directories that were searched, by their real paths: links may lead there again.
#[derive(Debug, Default)]
pub(super) struct Searched(HashSet<PathBuf>);

impl Searched {
    /// Passes over a directory from now on.
    pub(super) fn pass_over(&mut self, directory: PathBuf) {
        self.0.insert(directory);
    }

    /// The files in a directory and all below it, in the order of names, and how many directories could not
    /// be read, which is told.
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
                tell(&directory, error, terminal);
                failed += 1;
                Vec::new()
            });
            let mut below = Vec::new();
            for entry in entries {
                match entry.kind {
                    EntryKind::Directory => below.push(entry.path),
                    // What another run writes, or one that was killed has left, is no input.
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

/// The path without links, of what exists.
pub(super) fn real(path: &Path) -> Option<PathBuf> {
    std::fs::canonicalize(path).ok()
}

/// Works on jobs in several threads, and takes what became of them in the order of the jobs.
///
/// # Errors
///
/// Those of taking, which end the work.
pub(super) fn in_order<J: Sync, D: Send>(
    jobs: &[J],
    threads: Option<NonZeroU16>,
    work: impl Fn(&J) -> D + Sync,
    mut take: impl FnMut(usize, D) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let threads = match threads {
        Some(threads) => u16::from(threads).into(),
        None => std::thread::available_parallelism().map_or(1, usize::from),
    };
    let next = AtomicUsize::new(0);
    let (sender, receiver) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..threads.min(jobs.len()) {
            let sender = sender.clone();
            let (next, work) = (&next, &work);
            scope.spawn(move || {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(job) = jobs.get(number) else { break };
                    if sender.send((number, work(job))).is_err() {
                        break;
                    }
                }
            });
        }
        drop(sender);
        let mut waiting = BTreeMap::new();
        let mut taken = 0;
        for (number, done) in receiver {
            waiting.insert(number, done);
            while let Some(done) = waiting.remove(&taken) {
                take(taken, done)?;
                taken += 1;
            }
        }
        Ok(())
    })
}
