//! Other options, while lists come.
//!
//! What is known exists only once, and each thread takes new options before its next list: a list waits for
//! no lock that there would not be without this.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use super::{Databases, Ingest, Options, Series};
use crate::expire::ExpiredPaths;
use crate::store::{self, Store, path_of};
use crate::sync::lock;

/// The place of the type among the parts of a name's [bytes](super::key_of).
const TYPE_PART: usize = 3;

impl Databases {
    /// Refuses a directory that a store does not allow.
    ///
    /// # Errors
    ///
    /// `PermissionDenied`, with the directory.
    pub fn check(&self, store: &store::Options) -> io::Result<()> {
        let path = store.path(self.directory.join("x").as_os_str().as_bytes());
        if store.allows(&path) {
            return Ok(());
        }
        let directory = self.directory.display();
        let base = store.base.display();
        let problem = format!("{directory}: databases must be below {base}");
        Err(io::Error::new(io::ErrorKind::PermissionDenied, problem))
    }
}

impl Options {
    /// Refuses a directory of databases that a store does not allow.
    ///
    /// # Errors
    ///
    /// `PermissionDenied`, with the directory.
    pub fn check(&self, store: &Store) -> io::Result<()> {
        let databases = self.databases.as_ref();
        databases.map_or(Ok(()), |it| it.check(store.options()))
    }
}

impl Ingest {
    /// Has other options from now on, which a [check](Options::check) let pass. What is known stays known, but
    /// for names whose type has changed.
    pub fn change(&self, options: Options) {
        let before = self.state.latest();
        {
            let mut latest = lock(&self.latest);
            *latest = Arc::new(options);
            self.state.generation.fetch_add(1, Relaxed);
        }
        let now = self.state.latest();
        if before.options.csv != now.options.csv {
            before.write_lines();
        }
        let directory = |it: &Self| Some(it.options.databases.as_ref()?.directory.clone());
        let has_moved = directory(&before) != directory(&now);
        if !has_moved && before.options.types == now.options.types {
            return;
        }
        for shard in &self.shards {
            let mut shard = lock(shard);
            let there = shard.len();
            shard.retain(|key, series| {
                if has_moved {
                    series.leave_database();
                }
                let stays = now.has_sources(key, series);
                if !stays {
                    series.retire();
                    self.forget_of_sender(series);
                }
                stays
            });
            self.known.fetch_sub(there - shard.len(), Relaxed);
        }
    }

    /// Gives back what databases count that were removed, and forgets their names.
    pub(crate) fn expired(&self, paths: &ExpiredPaths) {
        // One that was created again meanwhile counts.
        let is_gone = |path: &[u8]| !path_of(path).exists();
        {
            let mut senders = lock(&self.senders);
            for path in paths.iter().filter(|path| is_gone(path)) {
                senders.remove_database(path);
            }
        }
        let options = self.options();
        let Some(databases) = &options.databases else {
            return;
        };
        self.forget_those(|series| {
            let path = series.path(databases, &self.store);
            paths.contains(path.as_slice()) && is_gone(&path) && series.end()
        });
    }

    /// Whether the type of a name, which has these [bytes](super::key_of), is what it was when its first list came.
    fn has_sources(&self, key: &[u8], series: &Series) -> bool {
        let Some(types) = &self.options.types else {
            return true;
        };
        let name = key.split(|byte| *byte == 0).nth(TYPE_PART);
        let name = name.and_then(|name| std::str::from_utf8(name).ok());
        name.and_then(|name| types.get(name)) == Some(series.sources())
    }
}
