//! Paths that lead to another file from some time on, or are to be looked up again.
//!
//! Updates must neither go to a file that they were not meant for, nor be judged by the last time of one that
//! is there no more. So whoever opens, forgets or makes the database of a path is [alone](PathLock) with it
//! meanwhile; a database that is known is taken out of the table and [held](Place::Held): it takes no
//! updates, and no writer touches its file, until that is done or has failed.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use foldhash::HashMap;
use kymo_io::NewFile;
use kymo_io::reason;
use kymo_text::counted;

use super::database::Place;
use super::{Database, Group, Store, path_of, records};
use crate::expire::remove_empty;
use crate::journal;
use crate::log::Level;
use crate::sync::{lock, wait};

/// While this exists, no other thread opens, forgets or makes the database of a path.
#[derive(Debug)]
pub(super) struct PathLock<'a> {
    store: &'a Store,
    path: Box<[u8]>,
}

impl Drop for PathLock<'_> {
    fn drop(&mut self) {
        lock(&self.store.busy).remove(&self.path);
        self.store.free.notify_all();
    }
}

impl Store {
    /// Waits until no other thread works on a path.
    ///
    /// It comes before all locks: who has it may take any of them.
    pub(super) fn lock_path(&self, path: &[u8]) -> PathLock<'_> {
        let mut busy = lock(&self.busy);
        while busy.contains(path) {
            busy = wait(&self.free, busy);
        }
        busy.insert(path.into());
        PathLock {
            store: self,
            path: path.into(),
        }
    }

    /// Forgets what is known of a path; what is pending is lost, in the journal too. Returns whether something
    /// was known.
    ///
    /// # Errors
    ///
    /// Where the journal cannot be written: then nothing is forgotten.
    pub fn forget(&self, path: &[u8]) -> io::Result<bool> {
        self.displace(path, || Ok(()))
    }

    /// Removes a database whose newest update, in memory or in the file, is before a time in seconds since 1970. Returns
    /// whether it was so. A database whose path has a link below the base stays.
    ///
    /// # Errors
    ///
    /// A file that cannot be read or removed; where the journal cannot be written.
    pub(crate) fn expire(&self, path: &[u8], before: i64) -> io::Result<bool> {
        let file = path_of(path);
        let Ok(below) = file.strip_prefix(&self.options.base) else {
            return Ok(false);
        };
        // What a link leads to may be outside of the base, or have updates that are in memory by another path.
        let is_itself = file.canonicalize()? == self.options.base.canonicalize()?.join(below);
        if !is_itself || !file.symlink_metadata()?.is_file() {
            return Ok(false);
        }
        let database = self.database(path)?;
        let is_old = || database.last().seconds() < before && database.pending_count() == 0;
        if !is_old() {
            return Ok(false);
        }
        let removed = self.displace(path, || match is_old() {
            true => std::fs::remove_file(path_of(path)),
            // Something has come meanwhile.
            false => Err(io::ErrorKind::WouldBlock.into()),
        });
        match removed {
            Ok(_) => {
                remove_empty(path_of(path), &self.options.base);
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Gives the new file of a database its name, in place of the one that is there. What is pending was meant
    /// for that one, and is forgotten.
    ///
    /// # Errors
    ///
    /// `AlreadyExists` where there is one that [stays](kymo_io::Replace::keep); where the journal cannot be
    /// written; those of renaming. Then nothing is forgotten. Those of syncing its name, which it has then.
    pub fn put(&self, path: &[u8], mut new: NewFile) -> io::Result<()> {
        self.displace(path, || new.rename())?;
        new.sync_name()
    }

    /// Changes the file of a database while no update of it is written. What is pending then is written to what the file
    /// has become; if nothing is, the database is forgotten, since it may have become another.
    pub(crate) fn change<T>(&self, path: &[u8], change: impl FnOnce() -> T) -> T {
        let _alone = self.lock_path(path);
        let held = self.hold(path);
        let changed = change();
        match held {
            Some(database) if database.pending_count() == 0 => self.drop_pending(&database),
            Some(database) => self.release(database),
            None => {}
        }
        changed
    }

    /// Forgets a path, and does what belongs to it.
    fn displace(&self, path: &[u8], act: impl FnOnce() -> io::Result<()>) -> io::Result<bool> {
        let _alone = self.lock_path(path);
        // Nothing is carried over to a new journal meanwhile.
        let mut unopened = lock(&self.unopened);
        let held = self.hold(path);
        // The journal is updated first. Killed between the two, the program finds the file before without
        // what was pending, which was no longer wanted; the other way round it would find the new one, and
        // give it what was meant for the other.
        let done = self.journal_forgets(path).and_then(|()| {
            act().inspect_err(|_| self.journal_again(path, held.as_deref(), &unopened))
        });
        match done {
            Ok(()) => {
                let waited = unopened.remove(path).is_some();
                if let Some(database) = &held {
                    self.drop_pending(database);
                }
                Ok(waited || held.is_some())
            }
            Err(error) => {
                if let Some(database) = held {
                    self.release(database);
                }
                Err(error)
            }
        }
    }

    /// Whether something waits for a path, in memory or in the journal, or it is known.
    pub fn has(&self, path: &[u8]) -> bool {
        self.known(path).is_some() || lock(&self.unopened).contains_key(path)
    }

    /// Forgets a path, of which the journal says so.
    pub(super) fn forget_replayed(&self, path: &[u8]) {
        lock(&self.unopened).remove(path);
        if let Some(database) = self.hold(path) {
            self.drop_pending(&database);
        }
    }

    /// Takes a database out of the table, and waits for the writer that may be at work on its file.
    fn hold(&self, path: &[u8]) -> Option<Arc<Database>> {
        let database = self.shard(path).remove(path)?;
        let mut state = database.state();
        state.place = Place::Held;
        while state.writing {
            state = wait(&database.served, state);
        }
        // The writer may have found that the file no longer exists.
        let is_held = state.place == Place::Held;
        drop(state);
        is_held.then_some(database)
    }

    /// Goes on with a database that was held.
    fn release(&self, database: Arc<Database>) {
        let mut state = database.state();
        state.place = Place::Known;
        if state.count > 0 && state.suspended.is_none() {
            // A writer that came meanwhile has passed it over.
            self.schedule(&database, &mut state, self.timeout(&database));
        }
        drop(state);
        self.shard(database.path())
            .insert(database.path().into(), database);
    }

    /// Drops what is pending of a database that was held.
    fn drop_pending(&self, database: &Database) {
        let mut state = database.state();
        state.place = Place::Forgotten;
        state.count = 0;
        let lost = std::mem::take(&mut state.pending);
        self.pending_bytes.fetch_sub(lost.len(), Relaxed);
    }

    fn journal_forgets(&self, path: &[u8]) -> io::Result<()> {
        let Some(journal) = &self.journal else {
            return Ok(());
        };
        let mut group = Group::new();
        journal::forget(path, &mut group.bytes);
        journal.append(&mut group.bytes).map_err(|error| {
            let text = format!("the journal cannot be written: {}", reason(&error));
            io::Error::new(error.kind(), text)
        })
    }

    /// Puts back into the journal what it was made to forget.
    fn journal_again(
        &self,
        path: &[u8],
        database: Option<&Database>,
        unopened: &HashMap<Box<[u8]>, Vec<u8>>,
    ) {
        let Some(journal) = &self.journal else {
            return;
        };
        let mut group = Group::new();
        let mut add = |bytes: &[u8]| {
            for record in records(bytes) {
                journal::update(path, record.bytes, &mut group.bytes);
            }
        };
        unopened.get(path).into_iter().for_each(|bytes| add(bytes));
        if let Some(database) = database {
            add(&database.state().pending);
        }
        if !group.is_empty()
            && let Err(error) = journal.carry(&mut group.bytes)
        {
            // It is in memory still, and so in the next file of the journal.
            self.log_limiter.report(format_args!(
                "the journal cannot be written: {}",
                reason(&error)
            ));
        }
    }

    /// Makes pending what the journal has for a database, which is opened now and was not to be before.
    /// Nothing is pending of it yet.
    pub(super) fn adopt(&self, database: &Arc<Database>, waiting: &[u8]) {
        let mut state = database.state();
        for record in records(waiting) {
            if record.time.to_micros() > state.last.to_micros() {
                state.push(&record);
            }
        }
        state.sort();
        self.pending_bytes.fetch_add(state.pending.len(), Relaxed);
        if state.count > 0 {
            let path = String::from_utf8_lossy(database.path());
            let count = counted(state.count as u64, "update");
            (self.options.log)(
                Level::Info,
                &format!("{path}: found {count} in the journal"),
            );
            self.schedule(database, &mut state, self.timeout(database));
        }
    }
}
