//! From one form of file to another.
//!
//! Every value keeps its bits, but that NaNs become the one of the target. Converting there
//! and back gives the identical file where the target can hold everything, with these
//! exceptions:
//!
//! * bytes that nothing reads become zero: padding, unused parameters, what an integer of
//!   four bytes leaves of its slot, what follows the NUL of a text (files of RRDtool have zeros
//!   there anyway);
//! * trailing bytes, which RRDtool left at the end of new files from 2008 to 2011, are
//!   dropped: they make a file look like one of another machine, and no version reads them.
//!
//! Both are noted. The version stays: a file of version 1 or 2 has a last update of whole
//! seconds in any native form.

use std::io;

use kymo_machine::Machine;

use crate::Time;
use crate::fault::{Finding, Severity};
use crate::file::native::{Image, WriteError};
use crate::file::portable;
use crate::file::source::Source;

/// What a database is converted to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The file of a machine.
    Native(&'static Machine),
    /// The form that is the same on every machine.
    Portable,
}

/// The name of the portable form.
const PORTABLE: &str = "portable";

/// A converted file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Converted {
    /// The bytes of the file.
    pub bytes: Vec<u8>,
    /// What was not carried over, for people.
    pub notes: Vec<String>,
}

/// Converts a database.
///
/// # Errors
///
/// Those of [`Conversion::new`], and when there is not enough memory.
pub fn convert(source: &Source<'_>, target: Target) -> Result<Converted, WriteError> {
    let conversion = Conversion::new(source, target)?;
    let bytes = match conversion.content {
        Content::Native(image) => image.to_bytes()?,
        Content::Portable(bytes) => bytes,
    };
    Ok(Converted {
        bytes,
        notes: conversion.notes,
    })
}

/// A file that can be written: only writing itself can still fail.
///
/// It does not hold the values of a native file, which are converted while they are
/// written, some at a time. This is the fastest way to convert.
#[derive(Clone)]
pub struct Conversion<'a> {
    content: Content<'a>,
    /// What is not carried over, for people.
    pub notes: Vec<String>,
}

#[derive(Clone)]
enum Content<'a> {
    Native(Image<'a>),
    Portable(Vec<u8>),
}

impl<'a> Conversion<'a> {
    /// Finds out whether a database can be converted.
    ///
    /// # Errors
    ///
    /// When the target cannot hold all of it, such as a last update after January 2038 where
    /// times have 32 bits: everything that it cannot hold is reported. When there is damage among the
    /// findings, as there may be in a [restored](crate::text::xml::Restored::source) database.
    pub fn new(source: &Source<'a>, target: Target) -> Result<Self, WriteError> {
        if let Some(damage) = source.findings.damage() {
            // No program would open a file of it.
            return Err(WriteError {
                target: match target {
                    Target::Native(machine) => machine.name().to_owned(),
                    Target::Portable => PORTABLE.to_owned(),
                },
                problems: vec![damage.clone()],
            });
        }
        let mut notes: Vec<String> = source
            .findings
            .iter()
            .filter(|finding| finding.severity == Severity::Note)
            .map(|Finding { error, .. }| format!("not carried over: {error}"))
            .collect();
        notes.extend(source.form.doubt());
        let content = match target {
            Target::Native(machine) => {
                notes.extend(native_notes(source));
                Content::Native(Image::new(&source.database, &source.rows, machine)?)
            }
            Target::Portable => Content::Portable(portable(source)?),
        };
        Ok(Self { content, notes })
    }

    /// Bytes of the file.
    pub fn length(&self) -> u64 {
        match &self.content {
            Content::Native(image) => image.length(),
            Content::Portable(bytes) => bytes.len() as u64,
        }
    }

    /// Whether the file would be these bytes.
    pub fn is(&self, bytes: &[u8]) -> bool {
        let mut same = Same { rest: bytes };
        self.write_to(&mut same).is_ok() && same.rest.is_empty()
    }

    /// Writes the file, in pieces of some 64 KiB: `out` needs no buffer.
    ///
    /// # Errors
    ///
    /// Those of writing.
    pub fn write_to(&self, out: &mut impl io::Write) -> io::Result<()> {
        match &self.content {
            Content::Native(image) => image.write_to(out),
            Content::Portable(bytes) => out.write_all(bytes),
        }
    }
}

/// Takes what is written as long as it is what was expected.
struct Same<'a> {
    /// What is expected next.
    rest: &'a [u8],
}

impl io::Write for Same<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let rest = self.rest.strip_prefix(bytes);
        self.rest = rest.ok_or(io::ErrorKind::InvalidData)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What native files hold otherwise.
fn native_notes(source: &Source<'_>) -> Vec<String> {
    let mut notes = Vec::new();
    let time = source.database.state.last_update;
    let (seconds, micros) = time.to_micros();
    if Time::from_micros(seconds, micros) != Some(time) {
        notes.push(format!(
            "the fraction of the last update is rounded to {micros} microseconds"
        ));
    }
    if !source.records.is_empty() {
        let count = source.records.len();
        notes.push(format!(
            "not carried over: {count} records of unknown kinds"
        ));
    }
    let version = source.database.version;
    if micros != 0 && version < 3 {
        notes.push(format!(
            "the version becomes 3: version {version} has no microseconds"
        ));
    }
    notes
}

fn portable(source: &Source<'_>) -> Result<Vec<u8>, WriteError> {
    let options = portable::Options {
        records: source.records.clone(),
        ..portable::Options::default()
    };
    let rows = Some(&source.rows);
    match portable::create(&source.database, rows, &options, Vec::new()) {
        Ok(file) => Ok(file.into_storage()),
        Err(error) => Err(WriteError {
            target: PORTABLE.to_owned(),
            problems: vec![error.into()],
        }),
    }
}
