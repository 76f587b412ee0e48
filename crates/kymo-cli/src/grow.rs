//! Recordings as they grow: which files have changed, what was added, what was truncated.

use std::collections::{HashMap, HashSet};
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use kymo::timeline::{Changes, Timeline};
use kymo_ctf::trace::Directory;

use crate::terminal::{Outcome, Terminal};
#[cfg(feature = "draw")]
use crate::view::remote;

/// How often files are looked at.
pub(crate) const PERIOD: Duration = Duration::from_millis(200);
/// What is just being written may not make sense for so long.
const PATIENCE: Duration = Duration::from_secs(2);

/// Watches the files below some paths.
pub(crate) struct Watcher<'t> {
    terminal: &'t Terminal,
    paths: Vec<PathBuf>,
    states: FileStates,
    files: HashMap<PathBuf, Known>,
    /// Since when something cannot be read.
    unsure_since: Option<Instant>,
    reported: HashSet<String>,
    has_news: bool,
    /// Whether something was lost.
    pub(crate) outcome: Outcome,
}

/// What is known of a file.
struct Known {
    id: Option<(u64, u64)>,
    length: u64,
    /// Whether it was shorter when it was last looked at: a program may be rewriting it.
    is_shorter: bool,
}

impl<'t> Watcher<'t> {
    pub(crate) fn new(paths: &[PathBuf], terminal: &'t Terminal) -> Self {
        let mut watcher = Self {
            terminal,
            paths: paths.to_vec(),
            states: FileStates::default(),
            files: HashMap::new(),
            unsure_since: None,
            reported: HashSet::new(),
            has_news: false,
            outcome: Outcome::Good,
        };
        watcher.states = watcher.look();
        watcher
    }

    /// Reads what was added, if files have changed. What was truncated, and what cannot be read for long, is reported.
    pub(crate) fn refresh(&mut self, timeline: &mut Timeline) -> Option<Changes> {
        if self.terminal.report_truncated() {
            self.lose();
        }
        let now = self.look();
        if now == self.states && self.unsure_since.is_none() {
            return None;
        }
        self.states = now;
        // The timeline has no other users.
        let changes = timeline.refresh().ok()?;
        if changes.errors.is_empty() {
            self.unsure_since = None;
            return Some(changes);
        }
        let since = *self.unsure_since.get_or_insert_with(Instant::now);
        if since.elapsed() > PATIENCE {
            for error in &changes.errors {
                let error = error.to_string();
                if !self.reported.contains(&error) {
                    self.terminal.error(&error);
                    self.reported.insert(error);
                    self.lose();
                }
            }
        }
        Some(changes)
    }

    /// Whether something was lost since this was last asked.
    pub(crate) fn has_news(&mut self) -> bool {
        std::mem::take(&mut self.has_news)
    }

    fn lose(&mut self) {
        self.has_news = true;
        self.outcome = Outcome::Damage;
    }

    /// The files as they are now. Those that have become shorter are reported.
    fn look(&mut self) -> FileStates {
        let mut states = FileStates::default();
        let mut truncated = Vec::new();
        let files = &mut self.files;
        each_file(&self.paths, &mut |path, metadata| {
            states.add(path, metadata);
            let (id, length) = (kymo_io::file_id(metadata), metadata.len());
            let new = || Known {
                id,
                length,
                is_shorter: false,
            };
            let Some(known) = files.get_mut(path) else {
                files.insert(path.to_owned(), new());
                return;
            };
            let is_shorter = known.id == id && length < known.length;
            if is_shorter && !known.is_shorter {
                known.is_shorter = true;
                return;
            }
            if is_shorter {
                truncated.push((path.to_owned(), known.length, length));
            }
            *known = new();
        });
        for (path, before, after) in truncated {
            self.terminal.error(format_args!(
                "`{}` was truncated from {before} to {after} bytes: what was cut off before kymo read it is missing",
                path.display()
            ));
            self.lose();
        }
        states
    }
}

/// The files below some paths, in the order in which they are found, each with what changes when it does: its size and
/// when it was written, or of files of a server, their version.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct FileStates(Vec<(PathBuf, (u64, Option<SystemTime>))>);

impl FileStates {
    fn add(&mut self, path: &Path, metadata: &Metadata) {
        let state = (metadata.len(), metadata.modified().ok());
        self.0.push((path.to_path_buf(), state));
    }

    /// As they are now.
    #[cfg(feature = "draw")]
    pub(crate) fn of(paths: &[PathBuf]) -> Self {
        let mut states = Self::default();
        let (far, near): (Vec<PathBuf>, Vec<PathBuf>) =
            paths.iter().cloned().partition(|path| remote::is_url(path));
        each_file(&near, &mut |path, metadata| states.add(path, metadata));
        for (path, version) in far.iter().flat_map(|path| remote::versions(path)) {
            states.0.push((path, (version, None)));
        }
        states
    }

    /// Those that have changed since, if they are the same files.
    #[cfg(feature = "draw")]
    pub(crate) fn changed_since(&self, before: &Self) -> Option<Vec<&Path>> {
        let pairs = || self.0.iter().zip(&before.0);
        let are_same = self.0.len() == before.0.len() && pairs().all(|(now, old)| now.0 == old.0);
        let changed = pairs().filter(|(now, old)| now.1 != old.1);
        are_same.then(|| changed.map(|(now, _)| now.0.as_path()).collect())
    }
}

/// Calls `visit` with each file below the paths.
fn each_file(paths: &[PathBuf], visit: &mut impl FnMut(&Path, &Metadata)) {
    let mut looked_into = HashSet::new();
    for path in paths {
        if !path.is_file() {
            each_below(path, &mut looked_into, visit);
            continue;
        }
        visit_file(path, visit);
        // It may be a stream of the trace that it lies beside.
        let directory = path.parent();
        if let Some(metadata) = directory.and_then(Directory::metadata_path) {
            visit_file(&metadata, visit);
        }
    }
}

fn visit_file(path: &Path, visit: &mut impl FnMut(&Path, &Metadata)) {
    if let Ok(metadata) = std::fs::metadata(path) {
        visit(path, &metadata);
    }
}

/// Each directory is looked into once, however many links lead to it.
fn each_below(
    directory: &Path,
    looked_into: &mut HashSet<PathBuf>,
    visit: &mut impl FnMut(&Path, &Metadata),
) {
    let real = std::fs::canonicalize(directory);
    if !real.is_ok_and(|real| looked_into.insert(real)) {
        return;
    }
    let Ok(entries) = std::fs::read_dir(directory) else {
        return;
    };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    // All of one directory: their names differ alone.
    paths.sort_unstable_by(|one, other| one.as_os_str().cmp(other.as_os_str()));
    for path in paths {
        match std::fs::metadata(&path) {
            Ok(metadata) if metadata.is_dir() => each_below(&path, looked_into, visit),
            Ok(metadata) => visit(&path, &metadata),
            Err(_) => {}
        }
    }
}

#[cfg(all(test, feature = "draw"))]
mod tests {
    use super::*;

    #[test]
    fn of_many_files_those_that_changed_are_known() {
        let directory = tempfile::tempdir().unwrap();
        let paths = [directory.path().to_path_buf()];
        let file = |name: &str| directory.path().join(name);
        for name in ["a", "b", "c"] {
            std::fs::write(file(name), "x").unwrap();
        }
        let before = FileStates::of(&paths);
        assert_eq!(FileStates::of(&paths), before);
        assert_eq!(before.changed_since(&before), Some(Vec::new()));
        std::fs::write(file("b"), "xy").unwrap();
        let now = FileStates::of(&paths);
        assert_eq!(now.changed_since(&before), Some(vec![&*file("b")]));
        // Others are there: all are opened again.
        std::fs::write(file("d"), "x").unwrap();
        assert_eq!(FileStates::of(&paths).changed_since(&now), None);
        std::fs::remove_file(file("d")).unwrap();
        std::fs::rename(file("c"), file("e")).unwrap();
        assert_eq!(FileStates::of(&paths).changed_since(&now), None);
    }
}
