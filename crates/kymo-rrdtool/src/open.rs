//! Files that are read.

use std::io;

use kymo_io::{Access, Bytes, Locking};
use kymo_machine::Machine;
use kymo_rrd::Source;
use kymo_rrd::fault::Error;

use crate::failure::reason;
use crate::path::{path, shown};
use crate::{Failure, Session};

/// Opens a database for reading, and keeps it locked meanwhile, so that it does not change.
///
/// # Errors
///
/// rrdtool's words where the file does not exist or cannot be opened or locked; kymo's, which name the
/// place, if it is not a database or is damaged.
pub(crate) fn with_source<T>(
    session: &mut Session<'_>,
    word: &[u8],
    machine: Option<&'static Machine>,
    work: impl FnOnce(&mut Session<'_>, &Source<'_>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let bytes = locked(word, session.locking)?;
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
    let locking = session.locking;
    let files = words.iter().map(|word| locked(word, locking));
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

/// The bytes of a database, which is locked against those that write it as long as they are there.
pub(crate) fn locked(word: &[u8], locking: Locking) -> Result<Bytes, Failure> {
    let opened = Bytes::open_locked(&path(word), Access::Sequential, locking);
    let opened = opened.map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => Failure::new("could not lock RRD"),
        _ => cannot_open(word, &error),
    })?;
    whole(word, opened)
}

/// The bytes of a file that is not a database.
pub(crate) fn bytes(word: &[u8]) -> Result<Bytes, Failure> {
    let opened = Bytes::open(&path(word), Access::Sequential);
    whole(word, opened.map_err(|error| cannot_open(word, &error))?)
}

/// What a file holds, decompressed if it is compressed. Half of it is of no use.
fn whole(word: &[u8], bytes: Bytes) -> Result<Bytes, Failure> {
    let content = kymo_io::content(bytes).map_err(|error| cannot_open(word, &error))?;
    match content.damage {
        Some(damage) => Err(Failure::new(format!("'{}': {damage}", shown(word)))),
        None => Ok(content.bytes),
    }
}

/// What rrdtool says of a file that cannot be opened.
pub(crate) fn cannot_open(word: &[u8], error: &io::Error) -> Failure {
    Failure::new(format!("opening '{}': {}", shown(word), reason(error)))
}
