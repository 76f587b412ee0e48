//! What a journal has that the files have not, when the program starts.
//!
//! Nothing that was acknowledged is dropped because its database is not found: what it is on may not be mounted
//! yet. It waits in the journal until it can be opened or is [forgotten](Store::forget), unless it is sure that
//! the file was removed.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;

use foldhash::HashSet;
use kymo_io::reason;
use kymo_text::counted;

use super::upkeep::carry_over;
use super::{Record, Store, path_of, records};
use crate::journal::{self, Entry, Journal, replay};
use crate::log::Level;
use crate::sync::lock;

/// Why databases of the journal have no updates.
#[derive(Default)]
struct Missing {
    /// Those that may be there later, and why they cannot be opened.
    unopened: BTreeMap<Vec<u8>, String>,
    /// Those that were removed, and how many updates are lost.
    removed: BTreeMap<Vec<u8>, u64>,
}

/// Makes pending again what the journal has and the files do not, and begins a new journal.
///
/// # Errors
///
/// Where the files of the journal cannot be read or written; `NotFound` where the base is empty and the journal
/// has updates of databases in it, which then is as it was before.
pub(super) fn recover(store: &Store, left: &[PathBuf]) -> io::Result<()> {
    let damaged = find(store, left).inspect_err(|_| {
        // The file that was begun has nothing yet.
        let _ = store.journal().map(Journal::remove);
    })?;
    carry_over(store)?;
    left.iter()
        .try_for_each(|path| match damaged.contains(path) {
            true => journal::set_aside(path).map_err(journal::at(path)),
            false => std::fs::remove_file(path).map_err(journal::at(path)),
        })
}

/// Makes the updates in a journal pending again, and returns which of its files are damaged.
fn find<'a>(store: &Store, left: &'a [PathBuf]) -> io::Result<HashSet<&'a PathBuf>> {
    let mut missing = Missing::default();
    let mut damaged = Vec::new();
    for path in left {
        let bytes = journal::open_left(path)?;
        let reported = replay(&bytes, |entry| match entry {
            Entry::Forget(path) => {
                missing.unopened.remove(path);
                missing.removed.remove(path);
                store.forget_replayed(path);
            }
            Entry::Update(path, record) => missing.take(store, path, &record),
        });
        if let Err(problem) = reported {
            damaged.push((path, problem));
        }
    }
    refuse_empty_base(store)?;
    for (path, problem) in &damaged {
        let shown = path.display();
        (store.options.log)(
            Level::Warning,
            &format!(
                "{shown}: {problem}; what can be read is taken, and the file kept as {shown}.damaged"
            ),
        );
    }
    missing.report(store);
    let mut found = 0;
    for database in store.databases() {
        let mut state = database.state();
        let before = state.pending.len();
        state.sort();
        let doubled = before - state.pending.len();
        store.pending_bytes.fetch_sub(doubled, Relaxed);
        found += state.count;
        if state.count > 0 {
            store.schedule(&database, &mut state, store.timeout(&database));
        }
    }
    if found > 0 {
        (store.options.log)(
            Level::Info,
            &format!("found {} in the journal", counted(found as u64, "update")),
        );
    }
    if store.is_durable() {
        sync_files(store)?;
    }
    Ok(damaged.into_iter().map(|(path, _)| path).collect())
}

impl Missing {
    /// Makes an update pending, or finds out why that is not possible.
    fn take(&mut self, store: &Store, path: &[u8], record: &Record<'_>) {
        if let Some(lost) = self.removed.get_mut(path) {
            *lost += 1;
            return;
        }
        if !self.unopened.contains_key(path) {
            match store.database(path) {
                Ok(database) => {
                    let mut state = database.state();
                    // The last is that of the file until all are there.
                    if record.time.to_micros() > state.last.to_micros() {
                        state.push(record);
                        store.pending_bytes.fetch_add(record.bytes.len(), Relaxed);
                    }
                    return;
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound && is_removed(path) => {
                    self.removed.insert(path.to_vec(), 1);
                    return;
                }
                Err(error) => drop(self.unopened.insert(path.to_vec(), reason(&error))),
            }
        }
        let mut unopened = lock(&store.unopened);
        let waiting = unopened.entry(path.into()).or_default();
        waiting.extend_from_slice(record.bytes);
    }

    /// Reports what it has found, and counts what is lost.
    fn report(&self, store: &Store) {
        for (path, reason) in &self.unopened {
            let path = String::from_utf8_lossy(path);
            (store.options.log)(
                Level::Warning,
                &format!(
                    "{path}: is in the journal, but cannot be opened: {reason}; its updates stay there"
                ),
            );
        }
        for (path, lost) in &self.removed {
            let path = String::from_utf8_lossy(path);
            (store.options.log)(
                Level::Error,
                &format!("{path}: is in the journal, but was removed: {lost} updates are lost"),
            );
            store.counters.dropped.fetch_add(*lost, Relaxed);
        }
    }
}

/// Whether it is sure that a file which is not found was removed: its directory is there, and has other
/// things. One that is empty, or not there, may be what a disk is mounted at, or lie below that; and a link that leads
/// nowhere may lead to a disk.
fn is_removed(path: &[u8]) -> bool {
    let path = path_of(path);
    let has_others = |directory: &Path| {
        let mut entries = std::fs::read_dir(directory).ok()?;
        entries.next()
    };
    let is_link = path.symlink_metadata().is_ok();
    !is_link && path.parent().and_then(has_others).is_some()
}

/// Refuses to begin where the base has nothing and databases in it have updates: new ones would be made where a
/// disk is to be mounted, and take the place of those.
fn refuse_empty_base(store: &Store) -> io::Result<()> {
    let base = &store.options.base;
    if std::fs::read_dir(base)?.next().is_some() {
        return Ok(());
    }
    let unopened = lock(&store.unopened);
    let below = unopened.iter().filter(|(path, _)| store.is_below(path));
    let count: usize = below.map(|(_, waiting)| records(waiting).count()).sum();
    let Some(journal) = store.journal().filter(|_| count > 0) else {
        return Ok(());
    };
    let text = nothing_there(base, &journal.options().directory, count);
    Err(io::Error::new(io::ErrorKind::NotFound, text))
}

/// That a journal has updates of databases in a directory that is empty.
pub(crate) fn nothing_there(base: &Path, journal: &Path, count: usize) -> String {
    format!(
        "`{}`: there is nothing, but the journal has {} of databases there: mount what they \
         are on, or, where they are gone for good, remove the files of `{}`",
        base.display(),
        counted(count as u64, "update"),
        journal.display()
    )
}

/// Sees that the disk has of databases what the journal is about to lose: the program before may have been
/// killed when it had written it, and before it had waited for the disk.
fn sync_files(store: &Store) -> io::Result<()> {
    store.databases().iter().try_for_each(|database| {
        let synced = File::open(path_of(database.path())).and_then(|file| file.sync_data());
        match synced {
            // It was removed just now, and no other process will find it either.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            synced => synced,
        }
    })
}
