//! A portable file that is looked at.

use std::borrow::Cow;

use super::file::Loaded;
use super::{Error, Record};
use crate::Rows;
use crate::model::Database;
use crate::model::rows::{FloatOrder, Grid};

/// A portable file that is looked at, in bytes that may be mapped.
#[derive(Debug)]
pub struct View<'a> {
    bytes: Cow<'a, [u8]>,
    database: Database,
    records: Vec<Record>,
    grids: Vec<Grid>,
}

/// Looks at the bytes of a portable file. They are used where they are, unless an update was not
/// completed: then a copy is, in which it is.
///
/// # Errors
///
/// What is wrong with the file.
pub fn read(bytes: &[u8]) -> Result<View<'_>, Error> {
    let loaded = Loaded::read(bytes)?;
    let layout = &loaded.definitions.layout;
    let bytes = if loaded.is_complete(bytes)? {
        Cow::Borrowed(bytes)
    } else {
        let mut copy = bytes.to_vec();
        loaded.replay(&mut copy)?;
        Cow::Owned(copy)
    };
    let sources = loaded.definitions.sources.len();
    let mut grids = Vec::with_capacity(layout.archives.len());
    for (index, ring) in layout.archives.iter().enumerate() {
        let offset = layout.row_offset(index, loaded.newest.places[index], 0);
        let current_row = loaded.newest.state.archives[index].current_row;
        let grid = Grid::dense(offset, ring.rows.into(), current_row, sources);
        let expected = "rows that can be counted";
        grids.push(grid.ok_or_else(|| Error::wrong("values", offset, "too many", expected))?);
    }
    Ok(View {
        bytes,
        database: Database {
            version: loaded.definitions.version,
            step: loaded.definitions.step,
            sources: loaded.definitions.sources,
            archives: loaded.definitions.archives,
            state: loaded.newest.state,
        },
        records: loaded.definitions.others,
        grids,
    })
}

impl<'a> View<'a> {
    /// Definitions and state.
    pub fn database(&self) -> &Database {
        &self.database
    }

    /// The values of the archives.
    ///
    /// # Errors
    ///
    /// [`Error::Wrong`] if they are not within the bytes.
    pub fn rows(&self) -> Result<Rows<'_>, Error> {
        self.rows_of(&self.bytes)
    }

    /// The values, in the bytes that were given; `None` where a copy had to be made of them.
    ///
    /// # Errors
    ///
    /// As [`rows`](Self::rows).
    pub fn rows_in_place(&self) -> Result<Option<Rows<'a>>, Error> {
        match self.bytes {
            Cow::Borrowed(bytes) => self.rows_of(bytes).map(Some),
            Cow::Owned(_) => Ok(None),
        }
    }

    fn rows_of<'b>(&self, bytes: &'b [u8]) -> Result<Rows<'b>, Error> {
        let sources = self.database.sources.len();
        let grids = self.grids.clone();
        Rows::new(bytes, FloatOrder::Little, sources, grids).map_err(|error| {
            let offset = self.grids[error.archive].offset;
            Error::wrong("values", offset, error, "values within the file")
        })
    }

    /// Records of kinds that are not known here.
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// Whether an update was not completed when the file was last written. It is, here.
    pub fn was_cut_off(&self) -> bool {
        matches!(self.bytes, Cow::Owned(_))
    }

    /// The bytes of the file, with the update that was not completed.
    pub fn into_bytes(self) -> Cow<'a, [u8]> {
        self.bytes
    }
}
