//! From one form of file to another.
//!
//! Every value keeps its bits, but that NaNs become the one of the target. Converting there and back gives
//! the identical file where the target can hold everything, with these exceptions:
//!
//! * bytes that nothing reads become zero: padding, unused parameters, what an integer of
//!   four bytes leaves of its slot, what follows the NUL of a text (files of RRDtool have zeros
//!   there anyway);
//! * trailing bytes, which RRDtool left at the end of new files from 2008 to 2011, are
//!   dropped: they make a file look like one of another machine, and no version reads them.
//!
//! Both are noted. The version stays: a file of version 1 or 2 has a last update of whole
//! seconds in any native form.

use kymo_machine::Machine;

use crate::fault::{Finding, Severity};
use crate::native::{self, WriteError};
use crate::portable;
use crate::source::Source;

/// What a database is converted to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The file of a machine.
    Native(&'static Machine),
    /// The form that is the same on every machine.
    Portable,
}

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
/// When the target cannot hold all of it, such as a last update after January 2038 where times have
/// 32 bits: everything that it cannot hold is told.
pub fn convert(source: &Source<'_>, target: Target) -> Result<Converted, WriteError> {
    let bytes = match target {
        Target::Native(machine) => native::write(&source.database, &source.rows, machine)?,
        Target::Portable => portable(source)?,
    };
    let mut notes: Vec<String> = source
        .findings
        .iter()
        .filter(|finding| finding.severity == Severity::Note)
        .map(|Finding { error, .. }| format!("not carried over: {error}"))
        .collect();
    if target == Target::Portable {
        return Ok(Converted { bytes, notes });
    }
    let time = source.database.state.last_update;
    let (seconds, micros) = time.to_micros();
    if crate::Time::from_micros(seconds, micros) != Some(time) {
        notes.push(format!(
            "the fraction of the last update is rounded to {micros} microseconds"
        ));
    }
    if micros != 0 && source.database.version < 3 {
        let version = source.database.version;
        notes.push(format!(
            "the version becomes 3: version {version} has no microseconds"
        ));
    }
    Ok(Converted { bytes, notes })
}

fn portable(source: &Source<'_>) -> Result<Vec<u8>, WriteError> {
    let options = portable::Options::default();
    let rows = Some(&source.rows);
    match portable::create(&source.database, rows, &options, Vec::new()) {
        Ok(file) => Ok(file.into_storage()),
        Err(error) => Err(WriteError {
            target: "portable".to_owned(),
            problems: vec![error.into()],
        }),
    }
}
