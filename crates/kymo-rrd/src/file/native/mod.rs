//! Native files: C structs as they lay in the memory of the machine that wrote them.
//!
//! One code path reads and writes the files of all machines: [`structs`] computes where a
//! machine puts each member, [`Detection`] identifies the machine of a file, [`Header`] and [`File`]
//! read, [`Image`] and [`write()`] write. `docs/formats/rrd.md` describes the format.

mod coding;
mod definitions;
mod detect;
mod foreign;
mod in_place;
mod layout;
mod parameters;
mod patch;
mod read;
pub mod structs;
mod write;

use std::io;

use kymo_io::ReadAt;
use kymo_machine::Machine;

pub(crate) use coding::{Coding, CodingKind, Numbers};
pub(crate) use definitions::Definitions;
pub use detect::{Confidence, Detection};
pub use in_place::InPlace;
pub(crate) use in_place::Parts;
pub use layout::Layout;
pub use patch::Patch;
pub use write::{Image, WriteError, write};

use read::Beginning;

use crate::engine::StoreError;
use crate::fault::{Error, Findings};
use crate::model::rows::Grid;
use crate::{Database, Rows};

/// Bytes that few headers exceed.
pub(crate) const MOST_HEADERS: u64 = 4096;

/// The first bytes of a file, at most `most`.
pub(crate) fn read_beginning<S: ReadAt + ?Sized>(source: &S, most: u64) -> io::Result<Vec<u8>> {
    let size = usize::try_from(most.min(source.length()?));
    let mut bytes = vec![0; size.map_err(|_| io::ErrorKind::FileTooLarge)?];
    source.read_at(0, &mut bytes)?;
    Ok(bytes)
}

/// All of a native file but the values.
#[derive(Clone, Debug)]
pub struct Header {
    /// Which machine wrote the file.
    pub detection: Detection,
    /// What the file says.
    pub database: Database,
    /// Where in the file it says that.
    pub layout: Layout,
    /// What is unusual or wrong.
    pub findings: Findings,
}

/// A native file.
#[derive(Clone)]
pub struct File<'a> {
    /// All but the values.
    pub header: Header,
    /// The values.
    pub rows: Rows<'a>,
}

impl Header {
    /// Reads a file that may be damaged: what is wrong, and does not keep the rest from being
    /// read, is among the findings. The machine is detected if none is specified.
    ///
    /// # Errors
    ///
    /// When the file is not a native one, or so damaged that its definitions cannot be determined.
    pub fn examine(bytes: &[u8], machine: Option<&'static Machine>) -> Result<Self, Error> {
        detect::header(Beginning::whole(bytes), machine)
    }

    /// Reads a file that is long: its beginning, with the first values where only they identify the
    /// machine. Gives the bytes that were read too, which are those of the header and maybe more.
    ///
    /// # Errors
    ///
    /// Those of [`examine`](Self::examine) and of reading.
    pub fn read<S: ReadAt + ?Sized>(
        source: &S,
        machine: Option<&'static Machine>,
    ) -> Result<(Self, Vec<u8>), StoreError> {
        let bytes = read_beginning(source, MOST_HEADERS)?;
        Self::read_from(source, bytes, machine)
    }

    /// The same, if some bytes of the beginning are known: as many as [`read_beginning`] returns for
    /// [`MOST_HEADERS`].
    pub(crate) fn read_from<S: ReadAt + ?Sized>(
        source: &S,
        mut bytes: Vec<u8>,
        machine: Option<&'static Machine>,
    ) -> Result<(Self, Vec<u8>), StoreError> {
        let length = source.length()?;
        let read = |size: u64| read_beginning(source, size);
        let size = detect::header_size(Beginning::new(&bytes, length));
        if size > bytes.len() as u64 {
            bytes = read(size)?;
        }
        let header = detect::header(Beginning::new(&bytes, length), machine)?;
        let Some(size) = detect::size_with_nans(Beginning::new(&bytes, length), &header) else {
            return Ok((header, bytes));
        };
        let bytes = read(size)?;
        Ok((detect::with_nans(header, &bytes), bytes))
    }

    /// The values, in the bytes of the file.
    ///
    /// # Errors
    ///
    /// When the file is too short, or a current row is not in its archive.
    pub fn rows<'a>(&self, bytes: &'a [u8]) -> Result<Rows<'a>, Error> {
        let length = bytes.len() as u64;
        let database = &self.database;
        let grids: Option<Vec<Grid>> = database
            .archives
            .iter()
            .zip(&database.state.archives)
            .enumerate()
            .map(|(index, (archive, state))| {
                self.layout.grid(index, archive.rows, state.current_row)
            })
            .collect();
        let order = self.detection.machine.float_order();
        let rows =
            grids.and_then(|grids| Rows::new(bytes, order, database.sources.len(), grids).ok());
        rows.ok_or_else(|| {
            let found = format!("{length} bytes");
            Error::new(
                "values",
                length,
                found,
                format_args!("{} bytes", self.layout.end()),
            )
        })
    }
}

impl<'a> File<'a> {
    /// Opens a file that is whole. The machine is detected if none is specified.
    ///
    /// # Errors
    ///
    /// If the file is not a native one, or is damaged: the first damage that was found.
    pub fn open(bytes: &'a [u8], machine: Option<&'static Machine>) -> Result<Self, Error> {
        let header = Header::examine(bytes, machine)?;
        if let Some(damage) = header.findings.damage() {
            return Err(damage.clone());
        }
        let rows = header.rows(bytes)?;
        Ok(Self { header, rows })
    }
}
