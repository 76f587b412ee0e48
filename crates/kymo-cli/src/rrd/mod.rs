//! `kymo rrd`.

mod check;
mod convert;
#[cfg(feature = "draw")]
pub(crate) mod export;
mod files;
#[cfg(feature = "draw")]
mod hints;
mod plan;
#[cfg(feature = "draw")]
pub(crate) mod rrdtool;

use std::fmt::Display;
use std::fs::File;
use std::io;
use std::path::Path;

use kymo::explain;
use kymo_io::{Access, Bytes, Locking, Replace, replace};
use kymo_machine::Machine;
use kymo_rrd::file::convert::Target;

use crate::args::rrd::{Command, target};
use crate::config;
use crate::links::split;
use crate::terminal::{Failure, Outcome, Terminal};

/// Works on round-robin databases. As with rrdtool, whatever fails is exit status 1.
pub(crate) fn run(command: &Command, terminal: &Terminal) -> Result<Outcome, Failure> {
    match command {
        Command::Convert(args) => convert::run(args, terminal),
        Command::Check(args) => check::check(args, terminal),
        Command::Repair(args) => check::repair(args, terminal),
    }
}

/// The format of new databases if no command specifies it: that of the environment, of the configuration, or of this
/// machine.
pub(crate) fn default_format() -> Result<Target, String> {
    let variable = std::env::var("KYMO_RRD_FORMAT").ok();
    let format = match variable.filter(|value| !value.is_empty()) {
        Some(format) => Some(("KYMO_RRD_FORMAT".to_owned(), format)),
        None => config::rrd_format()?,
    };
    match format {
        None => Ok(Target::Native(Machine::native())),
        Some((place, format)) => {
            target(&format).map_err(|error| format!("{place}: `{format}`: {error}"))
        }
    }
}

/// Opens a file to be read from beginning to end; the error is reported.
fn open(path: &Path, terminal: &Terminal) -> Option<Bytes> {
    let bytes = read(path).and_then(whole);
    bytes
        .map_err(|error| report_unread(path, &error, terminal))
        .ok()
}

/// Opens a file to be read from beginning to end, and locks it as long as there are its bytes, since others
/// may update it.
fn read(path: &Path) -> io::Result<Bytes> {
    let opened = Bytes::open_locked(path, Access::Sequential, Locking::Briefly);
    opened.map_err(|error| match error.kind() {
        kind @ io::ErrorKind::WouldBlock => io::Error::new(kind, "another program writes it"),
        _ => error,
    })
}

/// What a file holds, decompressed if it is compressed. Half of a database is of no use.
fn whole(bytes: Bytes) -> io::Result<Bytes> {
    let content = kymo_io::content(bytes)?;
    match content.damage {
        Some(damage) => Err(io::Error::new(io::ErrorKind::InvalidData, damage)),
        None => Ok(content.bytes),
    }
}

/// Reports an error of a file.
fn report(path: &Path, error: impl Display, terminal: &Terminal) {
    terminal.error(format_args!("{}: {error}", path.display()));
}

/// Reports why a file cannot be read.
fn report_unread(path: &Path, error: &io::Error, terminal: &Terminal) {
    terminal.explained(&explain::reading(path, error));
}

/// Reports why a file cannot be written.
fn report_unwritten(path: &Path, error: &io::Error, terminal: &Terminal) {
    match error.kind() {
        io::ErrorKind::AlreadyExists => {
            terminal.error(format_args!("`{}` already exists", path.display()));
            terminal.hint("`--force` overwrites it");
        }
        _ => terminal.explained(&explain::writing(path, error)),
    }
}

/// Writes a new file as a whole. One that is there already is overwritten only with `force`.
fn write_new(
    path: &Path,
    force: bool,
    terminal: &Terminal,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<()> {
    if !force && path.symlink_metadata().is_ok() {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    let like = path.metadata().is_ok().then_some(path);
    let how = Replace {
        like,
        modified: false,
        ..Replace::NEW
    };
    let split = split(path);
    replace(path, how, write)?;
    if let Some(split) = split {
        terminal.warning(split);
    }
    Ok(())
}
