//! A database of any form.

use kymo_machine::Machine;

use crate::fault::{Error, Findings};
use crate::native::{self, Detection};
use crate::{Database, Rows, rrd4j};

/// A database, read from a file of whatever form.
#[derive(Clone)]
pub struct Source<'a> {
    /// The form of the file.
    pub form: Form,
    /// What it says.
    pub database: Database,
    /// The values.
    pub rows: Rows<'a>,
    /// What is unusual; there is no damage.
    pub findings: Findings,
}

/// The form of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Form {
    /// As some machine writes it.
    Native(Detection),
    /// As RRD4J or JRobin writes it.
    Rrd4j {
        /// 1 or 2: the digit after the point.
        version: u8,
    },
}

impl<'a> Source<'a> {
    /// Opens a file. The machine of a native one is found where none is told.
    ///
    /// # Errors
    ///
    /// When it is no database, or damaged: the first damage that was found.
    pub fn open(bytes: &'a [u8], machine: Option<&'static Machine>) -> Result<Self, Error> {
        if rrd4j::is_rrd4j(bytes) {
            let file = rrd4j::read(bytes)?;
            return Ok(Self {
                form: Form::Rrd4j {
                    version: file.version,
                },
                database: file.database,
                rows: file.rows,
                findings: file.findings,
            });
        }
        let file = native::File::open(bytes, machine)?;
        Ok(Self {
            form: Form::Native(file.header.detection),
            database: file.header.database,
            rows: file.rows,
            findings: file.header.findings,
        })
    }
}
