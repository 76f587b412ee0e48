//! Changes of a native file in place, which leave everything else as it is.

use super::write::{Image, WriteError, stored};
use crate::model::{ArchiveKind, Database};
use crate::{Form, Source, Value};

/// What is to be written over a native file, so that its definitions and state become others. All
/// other bytes stay what they are: values, padding, what integers leave of their slots, and what
/// trails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patch {
    parts: Vec<(u64, Vec<u8>)>,
}

impl Patch {
    /// The patch that makes a database of a file. The seasons of some data sources are forgotten.
    /// `None` if the file is not a native one, or nothing is where it was: its database
    /// has other counts, or a version with another layout.
    ///
    /// # Errors
    ///
    /// Where the machine cannot hold the new database.
    pub fn new(
        source: &Source<'_>,
        database: &Database,
        forgotten: &[usize],
    ) -> Result<Option<Self>, WriteError> {
        let Form::Native(detection) = &source.form else {
            return Ok(None);
        };
        let (before, rows) = (&source.database, &source.rows);
        let counts = |database: &Database| {
            let archives = database.archives.iter().map(|archive| archive.rows);
            (database.sources.len(), archives.collect::<Vec<_>>())
        };
        let live = |database: &Database| database.version.clamp(2, 3);
        if counts(before) != counts(database) || live(before) != live(database) {
            return Ok(None);
        }
        let machine = detection.machine;
        let old = Image::new(before, rows, machine)?;
        let new = Image::new(database, rows, machine)?;
        let mut parts: Vec<(u64, Vec<u8>)> = Vec::new();
        let pairs = old.header().iter().zip(new.header()).enumerate();
        for (offset, (_, byte)) in pairs.filter(|(_, (old, new))| old != new) {
            match parts.last_mut() {
                Some((begin, bytes)) if *begin + bytes_of(bytes) == offset as u64 => {
                    bytes.push(*byte);
                }
                _ => parts.push((offset as u64, vec![*byte])),
            }
        }
        let unknown = stored(machine, Value::UNKNOWN);
        for (index, archive) in database.archives.iter().enumerate() {
            let (ArchiveKind::Seasonal { .. }, Some(grid)) = (&archive.kind, rows.grid(index))
            else {
                continue;
            };
            for &source in forgotten {
                // The rows were checked to lie in the file.
                let first = grid.offset + source as u64 * grid.source_stride;
                let places = (0..grid.places).map(|place| first + place * grid.row_stride);
                parts.extend(places.map(|offset| (offset, unknown.to_vec())));
            }
        }
        Ok(Some(Self { parts }))
    }

    /// What is written, and where: offsets in bytes from the beginning of the file.
    pub fn parts(&self) -> &[(u64, Vec<u8>)] {
        &self.parts
    }
}

fn bytes_of(bytes: &[u8]) -> u64 {
    bytes.len() as u64
}
