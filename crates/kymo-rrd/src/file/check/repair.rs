//! Keeping what can be kept of a damaged native file.

use kymo_machine::Machine;

use crate::fault::{Error, Severity};
use crate::file::native::structs::{LAST_READING, NAME};
use crate::file::native::{self, File, Header};
use crate::model::rows::Grid;
use crate::model::{Archive, ArchiveKind, ArchiveLink, Scratch};
use crate::{Database, Rows, Text, Value};

/// A repaired file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repaired {
    /// The machine that the file is written for, as before.
    pub machine: &'static Machine,
    /// The bytes of the file.
    pub bytes: Vec<u8>,
    /// What was done, for people. Nothing where the file was whole.
    pub done: Vec<String>,
}

/// Maximum growth factor of the repaired file: a count that is damaged must not
/// make a file of gigabytes.
const LARGEST_GROWTH: u64 = 16;

/// Repairs a file. The machine is detected if none is specified.
///
/// * Values that are missing become unknown.
/// * A current row that is none is looked for by the values of the last update; where it
///   cannot be found, no row of the archive has a time, and all become unknown.
/// * Texts without an end, links to archives that are not there and impossible microseconds are
///   replaced by what new files have.
/// * Trailing bytes and what lies in unused places are left out.
///
/// Everything else stays as it is, also where a [check](super::check) warns.
///
/// # Errors
///
/// When the definitions cannot be read, or nothing shows what the damaged part contained.
pub fn repair(bytes: &[u8], machine: Option<&'static Machine>) -> Result<Repaired, Error> {
    let header = Header::examine(bytes, machine)?;
    let machine = header.detection.machine;
    let mut done = Vec::new();
    for finding in &header.findings {
        if finding.severity == Severity::Note {
            done.push(format!("left out: {}", finding.error));
        }
    }
    let whole = complete(bytes, &header, &mut done)?;
    let mut database = header.database.clone();
    texts(&mut database, &mut done);
    links(&mut database, &mut done);
    if let Some(micros) = database.state.stray_micros
        && header.findings.damage().is_some()
        && micros != i64::from(i32::MAX)
    {
        done.push(format!("the last update loses its {micros} microseconds"));
        database.state.stray_micros = None;
    }
    let lost = current_rows(&mut database, &header, &whole, &mut done)?;

    let grids = |database: &Database| -> Option<Vec<Grid>> {
        let archives = database.archives.iter().zip(&database.state.archives);
        archives
            .enumerate()
            .map(|(index, (archive, state))| {
                header.layout.grid(index, archive.rows, state.current_row)
            })
            .collect()
    };
    let sources = database.sources.len();
    let rows = grids(&database)
        .and_then(|grids| Rows::new(&whole, machine.float_order(), sources, grids).ok());
    let Some(rows) = rows else {
        let found = format!("{} bytes", bytes.len());
        return Err(Error::new(
            "values",
            header.layout.end(),
            found,
            "the values",
        ));
    };
    let written = native::write(&database, &rows, machine).map_err(|error| {
        let found = error.to_string();
        Error::new("the repaired file", None, found, "one that can be written")
    })?;
    let mut repaired = Repaired {
        machine,
        bytes: written,
        done,
    };
    forget(&mut repaired, &header, &lost);
    // What is still wrong cannot be repaired.
    File::open(&repaired.bytes, Some(machine))?;
    Ok(repaired)
}

/// The bytes up to the end of the values; those that are missing are unknown values.
fn complete(bytes: &[u8], header: &Header, done: &mut Vec<String>) -> Result<Vec<u8>, Error> {
    let (length, end) = (bytes.len() as u64, header.layout.end());
    if end <= length {
        return Ok(bytes[..end as usize].to_vec());
    }
    if end > length.saturating_mul(LARGEST_GROWTH) {
        let found = format!("{length} bytes of {end}");
        let expected = format!("at least one of {LARGEST_GROWTH}");
        return Err(Error::new("values", length, found, expected));
    }
    // A value that is cut in two is lost.
    let begin = header.layout.header_end();
    let kept = begin + (bytes.len() - begin) / 8 * 8;
    let unknown = unknown(header.detection.machine);
    let mut whole = bytes[..kept].to_vec();
    let missing = (end as usize - kept) / 8;
    whole.extend((0..missing).flat_map(|_| unknown));
    done.push(format!(
        "the last {} bytes of {end} are missing: {missing} values become unknown",
        end - length
    ));
    Ok(whole)
}

fn unknown(machine: &Machine) -> [u8; 8] {
    machine.double_to_bytes(machine.file_nan())
}

fn texts(database: &mut Database, done: &mut Vec<String>) {
    for (index, source) in database.sources.iter_mut().enumerate() {
        if source.name.as_bytes().len() >= NAME {
            source.name = Text::new(&source.name.as_bytes()[..NAME - 1]);
            done.push(format!("the name of data source {index} is cut off"));
        }
    }
    for (index, state) in database.state.sources.iter_mut().enumerate() {
        let reading = &state.last_reading;
        let length = reading.as_bytes().len();
        if length == 0 || length >= LAST_READING || !reading.is_printable() {
            done.push(format!(
                "the last reading of data source {index} was \"{reading}\" and becomes unknown"
            ));
            state.last_reading = Text::from("U");
        }
    }
}

fn links(database: &mut Database, done: &mut Vec<String>) {
    let count = database.archives.len();
    for (index, archive) in database.archives.iter_mut().enumerate() {
        let link = match &mut archive.kind {
            ArchiveKind::Consolidated { .. } => continue,
            ArchiveKind::HwPredict { seasonal: link, .. }
            | ArchiveKind::Seasonal {
                predictions: link, ..
            }
            | ArchiveKind::DevPredict { deviations: link }
            | ArchiveKind::Failures {
                deviations: link, ..
            } => link,
        };
        if link.index().is_some_and(|other| other >= count) {
            done.push(format!(
                "archive {index} depends on archive {}, which is not there, and now on none",
                link.0
            ));
            *link = ArchiveLink::NONE;
        }
    }
}

/// Finds current rows that are not rows of their archives; returns the archives in which they
/// cannot be found.
fn current_rows(
    database: &mut Database,
    header: &Header,
    whole: &[u8],
    done: &mut Vec<String>,
) -> Result<Vec<usize>, Error> {
    let mut lost = Vec::new();
    let version = database.version;
    for (index, archive) in database.archives.iter().enumerate() {
        let state = &mut database.state.archives[index];
        if state.current_row < archive.rows {
            continue;
        }
        let was = state.current_row;
        let prepared: Vec<[Value; 2]> = state
            .scratch
            .iter()
            .map(|scratch| {
                [
                    scratch.value(Scratch::PRIMARY),
                    scratch.value(Scratch::SECONDARY),
                ]
            })
            .collect();
        let found = if version < 3 {
            None
        } else {
            only_row(archive, index, header, whole, &prepared)
        };
        if let Some(row) = found {
            state.current_row = row;
            done.push(format!(
                "the current row of archive {index} was {was} and becomes {row}, the only row \
                 with the values of the last update"
            ));
        } else {
            state.current_row = archive.rows - 1;
            lost.push(index);
            done.push(format!(
                "the current row of archive {index} was {was}, and which row is the newest is \
                 unknown: all become unknown"
            ));
        }
    }
    Ok(lost)
}

/// The only row whose values are those that the last update prepared, if they are
/// known.
fn only_row(
    archive: &Archive,
    index: usize,
    header: &Header,
    whole: &[u8],
    prepared: &[[Value; 2]],
) -> Option<u64> {
    if prepared.iter().all(|values| {
        values
            .iter()
            .all(|value| value.get().is_none_or(|v| v == 0.0))
    }) {
        return None;
    }
    // With the last row as the newest, rows count from the first.
    let grid = header.layout.grid(index, archive.rows, archive.rows - 1)?;
    let order = header.detection.machine.float_order();
    let rows = Rows::new(whole, order, prepared.len(), vec![grid]).ok()?;
    let mut same = (0..).zip(rows.iter(0)).filter(|(_, row)| {
        row.values()
            .zip(prepared)
            .all(|(value, prepared)| prepared.contains(&value))
    });
    let (row, _) = same.next()?;
    same.next().is_none().then_some(row)
}

/// Makes all values of some archives unknown.
fn forget(repaired: &mut Repaired, header: &Header, archives: &[usize]) {
    let unknown = unknown(repaired.machine);
    for &index in archives {
        let begin = header.layout.values(index) as usize;
        let end = header.layout.values(index + 1) as usize;
        for value in repaired.bytes[begin..end].chunks_exact_mut(8) {
            value.copy_from_slice(&unknown);
        }
    }
}
