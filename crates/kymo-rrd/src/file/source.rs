//! A database of any form.

use std::borrow::Cow;

use kymo_machine::Machine;

use crate::fault::{Error, Findings};
use crate::file::native::{self, Confidence, Detection};
use crate::model::validate::validate;
use crate::{Database, Rows, file::portable, file::rrd4j};

/// A database, read from a file of whatever form.
#[derive(Clone)]
pub struct Source<'a> {
    /// The form of the file.
    pub form: Form,
    /// What it says.
    pub database: Database,
    /// The values.
    pub rows: Rows<'a>,
    /// What a portable file holds in records of kinds that are not known here.
    pub records: Vec<portable::Record>,
    /// What is unusual; an opened file has no damage.
    pub findings: Findings,
}

/// The form of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Form {
    /// As some machine writes it.
    Native(Detection),
    /// The same on every machine.
    Portable,
    /// As RRD4J or JRobin writes it.
    Rrd4j {
        /// 1 or 2: the digit after the point.
        version: u8,
    },
    /// As XML.
    Xml,
}

impl Form {
    /// What else the file may be, for people; `None` if there is no doubt.
    pub fn doubt(&self) -> Option<String> {
        let Self::Native(detection) = self else {
            return None;
        };
        let Confidence::Likely { alternative } = detection.confidence else {
            return None;
        };
        Some(format!(
            "it is taken for a file of {}, but may be one of {}, whose values lie elsewhere",
            detection.machine.name(),
            alternative.name()
        ))
    }
}

/// Whether a file begins as one that [`Source::open`] reads.
pub fn is_database(bytes: &[u8]) -> bool {
    bytes.starts_with(b"RRD\0") || portable::is_portable(bytes) || rrd4j::is_rrd4j(bytes)
}

impl<'a> Source<'a> {
    /// The bytes of a file in which no update is incomplete: those of a portable file that a
    /// crash has left so are copied, and the update completed.
    ///
    /// # Errors
    ///
    /// When it is a portable file that is damaged.
    pub fn complete(bytes: &'a [u8]) -> Result<Cow<'a, [u8]>, Error> {
        if portable::is_portable(bytes) {
            Ok(portable::read(bytes)?.into_bytes())
        } else {
            Ok(Cow::Borrowed(bytes))
        }
    }

    /// Opens a file. The machine of a native one is detected if none is specified. No update must be
    /// incomplete: see [`complete`](Self::complete).
    ///
    /// # Errors
    ///
    /// If it is not a database, or is damaged: the first damage that was found.
    pub fn open(bytes: &'a [u8], machine: Option<&'static Machine>) -> Result<Self, Error> {
        if portable::is_portable(bytes) {
            return Self::portable(bytes);
        }
        if rrd4j::is_rrd4j(bytes) {
            let file = rrd4j::read(bytes)?;
            return Ok(Self {
                form: Form::Rrd4j {
                    version: file.version,
                },
                database: file.database,
                rows: file.rows,
                records: Vec::new(),
                findings: file.findings,
            });
        }
        let file = native::File::open(bytes, machine)?;
        Ok(Self {
            form: Form::Native(file.header.detection),
            database: file.header.database,
            rows: file.rows,
            records: Vec::new(),
            findings: file.header.findings,
        })
    }

    fn portable(bytes: &'a [u8]) -> Result<Self, Error> {
        let view = portable::read(bytes)?;
        let database = view.database().clone();
        let Some(rows) = view.rows_in_place()? else {
            let (found, expected) = ("an update that is not complete", "complete ones");
            return Err(Error::new("updates", None, found, expected));
        };
        let mut findings = Findings::default();
        validate(&database, |_| None, &mut findings);
        match findings.damage() {
            Some(damage) => Err(damage.clone()),
            None => Ok(Self {
                form: Form::Portable,
                database,
                rows,
                records: view.records().to_vec(),
                findings,
            }),
        }
    }
}
