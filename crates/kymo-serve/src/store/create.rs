//! New databases.

use std::collections::hash_map::RandomState;
use std::fs::File;
use std::hash::BuildHasher;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use kymo_io::{NewFile, Replace, create_directories};
use kymo_rrd::engine::modify::Changed;
use kymo_rrd::engine::{Definition, create};
use kymo_rrd::file::convert::Conversion;
use kymo_rrd::{Form, Time};
use nix::sys::statvfs::statvfs;

use super::{Store, path_of, records};
use crate::sync::lock;

/// The bytes that the disk of a directory has free, if the system says that.
#[allow(
    clippy::useless_conversion,
    reason = "they are narrower on other systems"
)]
pub(super) fn free_bytes(directory: &Path) -> Option<u64> {
    let disk = statvfs(directory).ok()?;
    let blocks = u64::from(disk.blocks_available());
    Some(blocks.saturating_mul(u64::from(disk.fragment_size())))
}

impl Store {
    /// Makes a database at an absolute path, and the directories above it. Where there is one, it is
    /// replaced, and what is pending of it [forgotten](Self::forget).
    ///
    /// # Errors
    ///
    /// `PermissionDenied` where the path may not be used, `InvalidInput` for definitions that cannot be
    /// followed; those of writing, and of the journal.
    pub fn create(&self, path: &[u8], definition: &Definition) -> io::Result<()> {
        self.put(path, self.write_new(path, definition, false)?)
    }

    /// Creates a database if there is none. What the journal has for a previous one is given to it when it is
    /// opened, as far as it is [after its last time](Self::waits_since).
    ///
    /// # Errors
    ///
    /// Those of [`create`](Self::create); `AlreadyExists` where there is one.
    pub fn create_new(&self, path: &[u8], definition: &Definition) -> io::Result<()> {
        let new = self.write_new(path, definition, true)?;
        let _alone = self.lock_path(path);
        match self.known(path) {
            // Its file was removed, and it has updates for it still.
            Some(_) => Err(io::ErrorKind::AlreadyExists.into()),
            None => new.put(),
        }
    }

    /// The time of the first update that the journal has for a database which could not be opened, if it has any.
    pub fn waits_since(&self, path: &[u8]) -> Option<Time> {
        let unopened = lock(&self.unopened);
        let waiting = unopened.get(path)?;
        records(waiting).map(|record| record.time).min()
    }

    /// Writes a new database beside its place.
    fn write_new(&self, path: &[u8], definition: &Definition, keep: bool) -> io::Result<NewFile> {
        if !self.allows(path) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        self.make_directories(path)?;
        self.check_free(path)?;
        let wrong = |text: String| io::Error::new(io::ErrorKind::InvalidInput, text);
        // Not all files go round at the same time.
        let random = RandomState::new();
        let row = |archive, rows: u64| random.hash_one(archive) % rows.max(1);
        let database = create(definition, row).map_err(|error| wrong(error.to_string()))?;
        let made = Changed::new(database).map_err(|error| wrong(error.to_string()))?;
        let source = made.source(Form::Xml, Vec::new());
        let conversion = Conversion::new(&source, self.options.target)
            .map_err(|error| wrong(error.to_string()))?;
        let how = Replace {
            follow: false,
            // Of a new file nothing is lost that was there before; but what is acknowledged goes to it.
            sync: self.is_durable(),
            keep,
            ..Replace::NEW
        };
        let (new, ()) = NewFile::write(path_of(path), how, |file: &mut File| {
            conversion.write_to(file)?;
            // As rrdtool gives it to new databases.
            file.set_permissions(PermissionsExt::from_mode(0o644))
        })?;
        Ok(new)
    }

    /// Refuses to create a file if its disk is nearly full: databases that are there need the rest.
    ///
    /// # Errors
    ///
    /// `StorageFull` if it is.
    pub(crate) fn check_free(&self, path: &[u8]) -> io::Result<()> {
        let Some(directory) = path_of(path).parent() else {
            return Ok(());
        };
        let Some(free) = free_bytes(directory) else {
            return Ok(());
        };
        if free >= self.options.least_free {
            return Ok(());
        }
        let text = format!(
            "the disk of `{}` has {} MiB free, and no databases are created below {} (`write.least-free-mib`)",
            directory.display(),
            free >> 20,
            self.options.least_free >> 20
        );
        Err(io::Error::new(io::ErrorKind::StorageFull, text))
    }

    /// Makes the directories above a path.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub(crate) fn make_directories(&self, path: &[u8]) -> io::Result<()> {
        match path_of(path).parent() {
            Some(directory) => create_directories(directory, self.is_durable()),
            None => Ok(()),
        }
    }
}
