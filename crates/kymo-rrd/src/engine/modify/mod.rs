//! Databases that are made of others: with other sizes, other definitions, values of other files.
//!
//! * [`Filling`] makes a new database with values of others, as `rrdtool create --source`;
//! * [`Setting`] changes parameters and leaves everything where it is, as most options of
//!   `rrdtool tune`;
//! * [`Reshaping`] adds and removes data sources and archives, as `rrdtool tune` too;
//! * [`resize`] makes an archive longer or shorter.
//!
//! All but settings make a [`Changed`] database, which is yet to be written.

mod fill;
mod reshape;
mod resize;
mod series;
mod settings;

use std::fmt;

pub use fill::{Filling, Giver};
pub use reshape::{Length, Reshaping};
pub use resize::{Resize, resize};
pub use settings::{Parameter, Setting};

use crate::fault::Findings;
use crate::file::portable::Record;
use crate::model::rows::{FloatOrder, Grid};
use crate::model::{ArchiveKind, Database};
use crate::{Form, Rows, Source, Value};

/// Why a database cannot be changed so, in rrdtool's words where it has some.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModifyError(String);

impl ModifyError {
    pub(crate) fn new(problem: impl fmt::Display) -> Self {
        Self(problem.to_string())
    }
}

impl fmt::Display for ModifyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ModifyError {}

/// A database that is not a file yet, with its values.
#[derive(Clone, Debug)]
pub struct Changed {
    /// Definitions and state.
    pub database: Database,
    /// The values of all archives, as they lie in native files of little-endian machines.
    bytes: Vec<u8>,
    grids: Vec<Grid>,
}

/// Bytes of a value.
const VALUE: usize = 8;

impl Changed {
    /// A database of unknown values.
    ///
    /// # Errors
    ///
    /// If it is not a database, or there is not enough memory.
    pub fn new(database: Database) -> Result<Self, ModifyError> {
        database.check_shape().map_err(ModifyError::new)?;
        let no_memory = || ModifyError::new("cannot allocate memory");
        let sources = database.sources.len();
        let mut end = 0;
        let mut grids = Vec::with_capacity(database.archives.len());
        for (archive, state) in database.archives.iter().zip(&database.state.archives) {
            let grid = Grid::dense(end, archive.rows, state.current_row, sources);
            let grid = grid.ok_or_else(no_memory)?;
            end = archive
                .rows
                .checked_mul(grid.row_stride)
                .and_then(|size| size.checked_add(end))
                .ok_or_else(no_memory)?;
            grids.push(grid);
        }
        let count = usize::try_from(end / VALUE as u64).map_err(|_| no_memory())?;
        let mut bytes = Vec::new();
        let size = count.checked_mul(VALUE).ok_or_else(no_memory)?;
        bytes.try_reserve_exact(size).map_err(|_| no_memory())?;
        let unknown = Value::UNKNOWN.to_bits().to_le_bytes();
        bytes.extend(std::iter::repeat_n(unknown, count).flatten());
        Ok(Self {
            database,
            bytes,
            grids,
        })
    }

    /// A database with these values.
    ///
    /// # Errors
    ///
    /// Where they are not the values of such a database, and as [`Changed::new`].
    pub fn of(database: Database, rows: &Rows<'_>) -> Result<Self, ModifyError> {
        let mut changed = Self::new(database)?;
        let database = &changed.database;
        let counts = database.archives.iter().enumerate();
        let same = rows.sources() == database.sources.len()
            && rows.archives() == database.archives.len()
            && counts
                .map(|(index, archive)| (rows.grid(index), archive.rows))
                .all(|(grid, count)| grid.is_some_and(|grid| grid.rows == count));
        if !same {
            return Err(ModifyError::new("the values are those of another database"));
        }
        for archive in 0..rows.archives() {
            resize::copy(&mut changed, rows, (archive, archive), 0, 0, Some);
        }
        Ok(changed)
    }

    /// Makes the seasons of a data source unknown, and those of its deviations.
    pub fn forget_seasons(&mut self, source: usize) {
        for archive in 0..self.database.archives.len() {
            let definition = &self.database.archives[archive];
            if matches!(definition.kind, ArchiveKind::Seasonal { .. }) {
                for row in 0..definition.rows {
                    self.set(archive, row, source, Value::UNKNOWN);
                }
            }
        }
    }

    /// The values.
    pub fn rows(&self) -> Rows<'_> {
        let sources = self.database.sources.len();
        Rows::new(&self.bytes, FloatOrder::Little, sources, self.grids.clone())
            .expect("`new` has made room for all values")
    }

    /// The database as if it had been read from a file of a form.
    pub fn source(&self, form: Form, records: Vec<Record>) -> Source<'_> {
        Source {
            form,
            database: self.database.clone(),
            rows: self.rows(),
            records,
            findings: Findings::default(),
        }
    }

    /// Sets a value; rows count from the oldest.
    pub(crate) fn set(&mut self, archive: usize, row: u64, source: usize, value: Value) {
        let grid = self.grids[archive];
        // The ring has been checked to be in the memory.
        let place = (grid.oldest + row) % grid.places;
        let at = (grid.offset + place * grid.row_stride) as usize + source * VALUE;
        self.bytes[at..at + VALUE].copy_from_slice(&value.to_bits().to_le_bytes());
    }
}
