//! Databases that stay open for the next update.

use std::fmt;
use std::io;

use foldhash::{HashMap, HashMapExt};
use kymo_io::path::path;
use kymo_io::{Access, Bytes, Compression, Locking, Shared, reason};
use kymo_machine::Machine;

use super::{Kinds, Rrd, StoreError};

/// Why a file cannot be worked on.
#[derive(Debug)]
pub enum FileError {
    /// It cannot be opened, or not be locked: `WouldBlock` where another program writes it.
    Open(io::Error),
    /// It is not a database, or is damaged.
    Database(StoreError),
    /// Its lock cannot be ended.
    Unlock(io::Error),
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open(error) if error.kind() == io::ErrorKind::WouldBlock => {
                f.write_str("another program writes it")
            }
            Self::Open(error) | Self::Unlock(error) => f.write_str(&reason(error)),
            Self::Database(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for FileError {}

/// Databases that stay open for the next update, by the names that they were given. Nothing is locked
/// between updates, and what others have done meanwhile is seen: that they have changed a file, or
/// put another in its place.
#[derive(Debug)]
pub struct Files {
    places: HashMap<Vec<u8>, usize>,
    files: Vec<Open>,
    /// What files have in common that are or were open.
    kinds: Kinds,
    /// How many may stay open; 0 where none does.
    most: usize,
    random: u64,
}

/// A file that is open.
#[derive(Debug)]
struct Open {
    name: Vec<u8>,
    /// The machine that was specified.
    machine: Option<&'static Machine>,
    rrd: Rrd<Shared>,
}

impl Files {
    /// No files, of which none stays open: for programs that do not own all files of their process. What they
    /// have in common is kept.
    pub fn closed() -> Self {
        Self {
            most: 0,
            ..Self::new(1)
        }
    }

    /// No files, and room for `most` files, at least one.
    pub fn new(most: usize) -> Self {
        Self {
            places: HashMap::new(),
            files: Vec::new(),
            kinds: Kinds::new(),
            most: most.max(1),
            random: 1,
        }
    }

    /// Sets the room to `most` files, at least one.
    pub fn set_room(&mut self, most: usize) {
        self.most = most.max(1);
    }

    /// Closes all.
    pub fn clear(&mut self) {
        self.places.clear();
        self.files.clear();
    }

    /// Locks a database, works on it as it is now, and unlocks it.
    ///
    /// # Errors
    ///
    /// If it cannot be opened or locked, is not a database, or is damaged.
    pub fn with<T>(
        &mut self,
        name: &[u8],
        machine: Option<&'static Machine>,
        locking: Locking,
        work: impl FnOnce(&mut Rrd<Shared>) -> T,
    ) -> Result<T, FileError> {
        if self.most == 0 {
            let mut rrd = self.opened(name, machine, locking)?;
            let done = work(&mut rrd);
            // A process that was forked meanwhile would keep the lock of a file that is only closed.
            let unlocked = rrd.storage_mut().unlock();
            self.kinds.close(rrd);
            return unlocked.map(|()| done).map_err(FileError::Unlock);
        }
        let place = match self.places.get(name).copied() {
            Some(place) if self.renew(place, name, machine, locking)? => place,
            Some(place) => {
                self.remove(place);
                self.open(name, machine, locking)?
            }
            None => self.open(name, machine, locking)?,
        };
        let rrd = &mut self.files[place].rrd;
        let done = work(rrd);
        let unlocked = rrd.storage_mut().unlock();
        if unlocked.is_err() {
            self.remove(place);
        }
        unlocked.map(|()| done).map_err(FileError::Unlock)
    }

    /// Locks a file that is open, and reads what others have changed. Returns whether that is done: not
    /// where another file has taken its place, or it was opened as another machine's.
    fn renew(
        &mut self,
        place: usize,
        name: &[u8],
        machine: Option<&'static Machine>,
        locking: Locking,
    ) -> Result<bool, FileError> {
        let open = &mut self.files[place];
        if open.machine != machine {
            return Ok(false);
        }
        let locked = open.rrd.storage_mut().lock_at(&path(name), locking);
        if !locked.map_err(FileError::Open)? {
            return Ok(false);
        }
        // What can no longer be read is opened again, which reports what is wrong with it.
        Ok(open.rrd.refresh().is_ok())
    }

    /// Opens and locks a file, and returns its place.
    fn open(
        &mut self,
        name: &[u8],
        machine: Option<&'static Machine>,
        locking: Locking,
    ) -> Result<usize, FileError> {
        if self.files.len() >= self.most {
            // Who goes round more files than there is room for needs next what was not needed for
            // the longest time: any other is a better one to close.
            self.random = self.random.wrapping_mul(6_364_136_223_846_793_005) + 1;
            let place = (self.random >> 33) as usize % self.files.len();
            self.remove(place);
        }
        let rrd = self.opened(name, machine, locking)?;
        let place = self.files.len();
        self.places.insert(name.to_vec(), place);
        self.files.push(Open {
            name: name.to_vec(),
            machine,
            rrd,
        });
        Ok(place)
    }

    /// Opens and locks a file.
    fn opened(
        &mut self,
        name: &[u8],
        machine: Option<&'static Machine>,
        locking: Locking,
    ) -> Result<Rrd<Shared>, FileError> {
        let file = Shared::open_locked(&path(name), locking);
        let file = file.map_err(FileError::Open)?;
        Rrd::open_among(file, machine, &mut self.kinds).map_err(|error| {
            match is_compressed(&path(name)) {
                true => FileError::Open(no_update()),
                false => FileError::Database(error),
            }
        })
    }

    fn remove(&mut self, place: usize) {
        let closed = self.files.swap_remove(place);
        self.places.remove(&closed.name);
        if let Some(moved) = self.files.get(place)
            && let Some(its) = self.places.get_mut(&moved.name)
        {
            *its = place;
        }
    }
}

/// Whether a file is compressed, and so can be read, but not updated.
fn is_compressed(path: &std::path::Path) -> bool {
    let begin = Bytes::open(path, Access::Random);
    begin.is_ok_and(|bytes| Compression::detect(&bytes).is_some())
}

/// Why a compressed file is not updated.
pub fn no_update() -> io::Error {
    io::Error::new(
        io::ErrorKind::Unsupported,
        "a compressed file cannot be updated: decompress it first",
    )
}
