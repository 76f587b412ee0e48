//! Files that are read.

use std::io;

use kymo_io::{Access, Bytes};
use kymo_machine::Machine;
use kymo_rrd::Source;
use kymo_rrd::fault::Error;

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

/// Opens several databases to look at them together.
///
/// # Errors
///
/// As [`with_source`], of the first that cannot be opened.
pub(crate) fn with_sources<T>(
    session: &mut Session<'_>,
    words: &[&[u8]],
    machine: Option<&'static Machine>,
    work: impl FnOnce(&mut Session<'_>, &[Source<'_>]) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let files = words.iter().map(|word| bytes(word));
    let files = files.collect::<Result<Vec<_>, _>>()?;
    let damaged = |word: &[u8], error: &Error| Failure::new(format!("'{}': {error}", shown(word)));
    let mut whole = Vec::with_capacity(files.len());
    for (word, file) in words.iter().zip(&files) {
        whole.push(Source::complete(file).map_err(|error| damaged(word, &error))?);
    }
    let mut sources = Vec::with_capacity(files.len());
    for (word, bytes) in words.iter().zip(&whole) {
        let source = Source::open(bytes, machine).map_err(|error| damaged(word, &error))?;
        if let Some(doubt) = source.form.doubt() {
            session.warn(format_args!("{}: {doubt}", shown(word)));
        }
        sources.push(source);
    }
    work(session, &sources)
}

/// The bytes of a file.
pub(crate) fn bytes(word: &[u8]) -> Result<Bytes, Failure> {
    Bytes::open(&path(word), Access::Sequential).map_err(|error| cannot_open(word, &error))
}

/// What rrdtool says of a file that cannot be opened.
pub(crate) fn cannot_open(word: &[u8], error: &io::Error) -> Failure {
    Failure::new(format!("opening '{}': {}", shown(word), reason(error)))
}
