//! Files that are read.

use std::io;

use kymo_io::{Access, Bytes};
use kymo_machine::Machine;
use kymo_rrd::Source;

use crate::failure::reason;
use crate::path::{path, shown};
use crate::{Failure, Session};

/// Opens a database to look at it.
///
/// # Errors
///
/// rrdtool's words where there is no such file or it cannot be opened; kymo's, which tell the
/// place, where it is no database or a damaged one.
pub(crate) fn with_source<T>(
    session: &mut Session<'_>,
    word: &[u8],
    machine: Option<&'static Machine>,
    work: impl FnOnce(&mut Session<'_>, &Source<'_>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let bytes = bytes(word)?;
    let damaged = |error| Failure::new(format!("'{}': {error}", shown(word)));
    let whole = Source::complete(&bytes).map_err(damaged)?;
    let source = Source::open(&whole, machine).map_err(damaged)?;
    if let Some(doubt) = source.form.doubt() {
        session.warn(format_args!("{}: {doubt}", shown(word)));
    }
    work(session, &source)
}

/// Opens databases to take something of them: of each is told what it is, in one word.
///
/// # Errors
///
/// The first that cannot be opened, or is no database or a damaged one.
pub(crate) fn with_sources<T>(
    files: &[(&str, &[u8])],
    machine: Option<&'static Machine>,
    work: impl FnOnce(&[Source<'_>]) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let failure = |(what, word): (&str, &[u8]), error: &dyn std::fmt::Display| {
        Failure::new(format!("Cannot open {what} RRD {}: {error}", shown(word)))
    };
    let mut bytes = Vec::with_capacity(files.len());
    for &file in files {
        let opened = Bytes::open(&path(file.1), Access::Random);
        bytes.push(opened.map_err(|error| failure(file, &reason(&error)))?);
    }
    let mut wholes = Vec::with_capacity(files.len());
    for (bytes, &file) in bytes.iter().zip(files) {
        wholes.push(Source::complete(bytes).map_err(|error| failure(file, &error))?);
    }
    let mut sources = Vec::with_capacity(files.len());
    for (whole, &file) in wholes.iter().zip(files) {
        sources.push(Source::open(whole, machine).map_err(|error| failure(file, &error))?);
    }
    work(&sources)
}

/// The bytes of a file.
pub(crate) fn bytes(word: &[u8]) -> Result<Bytes, Failure> {
    Bytes::open(&path(word), Access::Sequential).map_err(|error| cannot_open(word, &error))
}

/// What rrdtool says of a file that cannot be opened.
pub(crate) fn cannot_open(word: &[u8], error: &io::Error) -> Failure {
    Failure::new(format!("opening '{}': {}", shown(word), reason(error)))
}
