//! What has to be done from time to time: everything is written, and the journal begins anew.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Instant;

use foldhash::{HashSet, HashSetExt};
use kymo_io::{Access, Bytes};
use kymo_rrdtool::reason;

use super::{Group, Store, lock, records};
use crate::journal::{self, Entry, replay};

/// A group that is carried over to a new journal is written when it has so many bytes.
const PIECE: usize = 1 << 20;

/// When there is something to do.
#[derive(Debug, Default)]
pub(super) struct Upkeep {
    state: Mutex<Wish>,
    changed: Condvar,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Wish {
    #[default]
    Nothing,
    /// Everything is to be written now.
    Write,
    Stop,
}

impl Upkeep {
    /// Has everything written soon.
    pub(super) fn press(&self) {
        let mut state = lock(&self.state);
        if *state == Wish::Nothing {
            *state = Wish::Write;
            self.changed.notify_one();
        }
    }

    pub(super) fn stop(&self) {
        *lock(&self.state) = Wish::Stop;
        self.changed.notify_one();
    }
}

/// Does it until the store is closed.
pub(super) fn run(store: &Store) {
    let upkeep = &store.upkeep;
    loop {
        let end = Instant::now() + store.timing().flush_interval;
        let mut state = lock(&upkeep.state);
        loop {
            let wait = end.saturating_duration_since(Instant::now());
            match *state {
                Wish::Stop => return,
                Wish::Nothing if !wait.is_zero() => {}
                _ => break,
            }
            state = match upkeep.changed.wait_timeout(state, wait) {
                Ok((state, _)) => state,
                Err(poisoned) => PoisonError::into_inner(poisoned).0,
            };
        }
        drop(state);
        if let Err(error) = write_all(store) {
            (store.options.log)(&format!("the journal cannot begin anew: {error}"));
        }
        let mut state = lock(&upkeep.state);
        if *state == Wish::Write {
            *state = Wish::Nothing;
        }
    }
}

/// Writes everything; the journal before is not needed any more then.
fn write_all(store: &Store) -> io::Result<()> {
    let before = match store.journal() {
        Some(journal) => journal.rotate()?,
        None => Vec::new(),
    };
    store.flush_all_and_wait();
    carry_over(store)?;
    before.iter().try_for_each(std::fs::remove_file)
}

/// Puts what is pending in the journal: the files before it are not needed any more then.
fn carry_over(store: &Store) -> io::Result<()> {
    let Some(journal) = store.journal() else {
        return Ok(());
    };
    let mut group = Group::new();
    let unopened = lock(&store.unopened);
    for (path, pending) in unopened.iter() {
        for record in records(pending) {
            journal::update(path, record.bytes, &mut group.bytes);
        }
        if group.len() > PIECE {
            store.commit(&mut group)?;
        }
    }
    for database in store.databases() {
        let state = database.state();
        for record in records(&state.pending) {
            journal::update(database.path(), record.bytes, &mut group.bytes);
        }
        drop(state);
        if group.len() > PIECE {
            store.commit(&mut group)?;
        }
    }
    store.commit(&mut group)?;
    drop(unopened);
    if journal.options().durable {
        sync_files(store)?;
    }
    Ok(())
}

/// Sees that what was written to databases is on the disk.
fn sync_files(store: &Store) -> io::Result<()> {
    let base = std::fs::File::open(&store.options.base)?;
    Ok(nix::unistd::syncfs(&base)?)
}

/// Makes pending again what a journal has and the files have not.
pub(super) fn recover(store: &Store, left: &[PathBuf]) -> io::Result<()> {
    let mut missing = HashSet::new();
    let mut damaged = HashSet::new();
    for path in left {
        let bytes = Bytes::open(path, Access::Sequential).map_err(|error| {
            let text = format!("'{}': {}", path.display(), reason(&error));
            io::Error::new(error.kind(), text)
        })?;
        let told = replay(&bytes, |entry| match entry {
            Entry::Forget(path) => {
                lock(&store.unopened).remove(path);
                store.forget_in_memory(path);
            }
            Entry::Update(path, record) => match store.database(path) {
                Ok(database) => {
                    let mut state = database.state();
                    // The last is that of the file until all are there.
                    if record.time.to_micros() > state.last.to_micros() {
                        state.push(&record);
                        store.pending_bytes.fetch_add(record.bytes.len(), Relaxed);
                    }
                }
                Err(error) => {
                    if error.kind() == io::ErrorKind::NotFound {
                        store.counters.dropped.fetch_add(1, Relaxed);
                    } else {
                        // It may be mended before the next start.
                        let mut unopened = lock(&store.unopened);
                        let records = unopened.entry(path.into()).or_default();
                        records.extend_from_slice(record.bytes);
                    }
                    if missing.insert(path.to_vec()) {
                        let path = String::from_utf8_lossy(path);
                        (store.options.log)(&format!(
                            "{path}: is in the journal, but cannot be opened: {error}"
                        ));
                    }
                }
            },
        });
        if let Err(problem) = told {
            let shown = path.display();
            (store.options.log)(&format!(
                "{shown}: {problem}; what can be read is taken, and the file kept as \
                 {shown}.damaged"
            ));
            damaged.insert(path);
        }
    }
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
        (store.options.log)(&format!("{found} updates were found in the journal"));
    }
    carry_over(store)?;
    left.iter()
        .try_for_each(|path| match damaged.contains(path) {
            true => journal::set_aside(path),
            false => std::fs::remove_file(path),
        })
}

/// Ends the journal when all threads have ended. Where something could not be written, it stays.
pub(super) fn end(store: &Store) -> io::Result<()> {
    let Some(journal) = store.journal() else {
        return Ok(());
    };
    let before = journal.rotate()?;
    carry_over(store)?;
    before.iter().try_for_each(std::fs::remove_file)?;
    match store.pending_bytes() == 0 && lock(&store.unopened).is_empty() {
        true => journal.remove(),
        false => Ok(()),
    }
}
