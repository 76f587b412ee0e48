//! The databases that a client has named, by the words it named them with.

use std::io;
use std::sync::Arc;

use crate::sequence_cache::SequenceCache;
use crate::store::{Database, Store};

/// Number of words that are kept beyond two for each database: a client may name one in many
/// ways.
const ROOM: usize = 32;

/// Databases by words as they came, so that no path is made of a word that came before.
#[derive(Debug)]
pub(super) struct Databases(SequenceCache<Arc<Database>>);

impl Databases {
    pub(super) fn new() -> Self {
        Self(SequenceCache::new())
    }

    /// The database of a word that came before, or else that which it means now. It may have been forgotten
    /// meanwhile.
    ///
    /// # Errors
    ///
    /// Why there is none, in the words of rrdcached.
    #[inline]
    pub(super) fn get(&mut self, word: &[u8], store: &Store) -> Result<&Arc<Database>, String> {
        let next = self.0.next_if(|name| name == word);
        match next.or_else(|| self.0.find(word)) {
            Some(place) => Ok(self.0.at(place)),
            None => self.find(word, store),
        }
    }

    /// The database that a word means now.
    ///
    /// # Errors
    ///
    /// Why there is none, in the words of rrdcached.
    pub(super) fn find(&mut self, word: &[u8], store: &Store) -> Result<&Arc<Database>, String> {
        let path = store.path(word);
        let found = store.database(&path);
        let found = found.map_err(|error| {
            let shown = String::from_utf8_lossy(&path);
            match error.kind() {
                io::ErrorKind::PermissionDenied => format!("{shown}: Permission denied"),
                io::ErrorKind::NotFound => format!("No such file: {shown}"),
                io::ErrorKind::InvalidInput => format!("Not a regular file: {shown}"),
                _ => {
                    let reason = kymo_io::reason(&error);
                    format!("RRD Error: '{shown}': {reason}")
                }
            }
        });
        let found = match found {
            Ok(found) => found,
            Err(problem) => {
                // One that no longer exists is not kept.
                self.0.remove(word);
                return Err(problem);
            }
        };
        if self.0.len() > 2 * store.count() + ROOM {
            self.0.clear();
        }
        let place = self.0.insert(word, found);
        Ok(self.0.at(place))
    }
}
