//! New databases.

use std::collections::hash_map::RandomState;
use std::fs::File;
use std::hash::BuildHasher;
use std::io;
use std::os::unix::fs::PermissionsExt;

use kymo_io::{Replace, replace};
use kymo_rrd::Form;
use kymo_rrd::convert::Conversion;
use kymo_rrd::engine::{Definition, create};
use kymo_rrd::modify::Changed;

use super::{Group, Store, path_of};

impl Store {
    /// Makes a database at an absolute path, and the directories above it. Where there is one, it is
    /// replaced, and forgotten.
    ///
    /// # Errors
    ///
    /// `PermissionDenied` where the path may not be used, `InvalidInput` for definitions that cannot be
    /// followed; those of writing.
    pub fn create(&self, path: &[u8], definition: &Definition) -> io::Result<()> {
        if !self.allows(path) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        self.make_directories(path)?;
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
            // Of a new file nothing is lost that was there before.
            sync: false,
            ..Replace::NEW
        };
        replace(path_of(path), how, |file: &mut File| {
            conversion.write_to(file)?;
            // As rrdtool gives it to new databases.
            file.set_permissions(PermissionsExt::from_mode(0o644))
        })?;
        let mut group = Group::new();
        self.forget(path, Some(&mut group));
        self.commit(&mut group)
    }

    /// Makes the directories above a path.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub(crate) fn make_directories(&self, path: &[u8]) -> io::Result<()> {
        match path_of(path).parent() {
            Some(directory) => std::fs::create_dir_all(directory),
            None => Ok(()),
        }
    }
}
