//! Making a portable file.

use kymo_io::Storage;

use super::definitions::{Definitions, HEADER};
use super::file::File;
use super::layout::{Layout, Ring, places, used_scratch, value_scratch};
use super::slot::Slot;
use super::{Error, Record};
use crate::model::rows::FloatOrder;
use crate::model::{Archive, ArchiveState, Database};
use crate::{Rows, Value};

/// How many doubles are converted at once.
const CHUNK: usize = 1 << 13;

/// What can be chosen when a file is made. The default serves all databases.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The longest text of a last reading, in bytes: 40, and what the first ones need, if this is
    /// less.
    pub reading_size: u32,
    /// Room for the journal, in bytes: what any single update needs, if this is less. Larger
    /// journals let several updates be made in one.
    pub journal_size: u64,
    /// Records of kinds that are not known here, from the file that is rewritten.
    pub records: Vec<Record>,
}

/// The length of last readings that every file has room for.
const READING_SIZE: u32 = 40;

/// Makes a portable file that holds a database, with the values in `rows`, or else with unknown
/// ones. The storage gets its final length; it is not synced.
///
/// # Errors
///
/// What cannot be held ([`Error::Shape`], [`Error::CannotHold`]), before anything is written; those
/// of writing.
pub fn create<S: Storage>(
    database: &Database,
    rows: Option<&Rows<'_>>,
    options: &Options,
    mut storage: S,
) -> Result<File<S>, Error> {
    database.check_shape()?;
    if !(1..=5).contains(&database.version) {
        let expected = "versions 1 to 5";
        return Err(Error::cannot_hold(
            "native version",
            database.version,
            expected,
        ));
    }
    if let Some(rows) = rows {
        check_rows(database, rows)?;
    }
    let mut definitions = Definitions {
        version: database.version,
        step: database.step,
        sources: database.sources.clone(),
        archives: database.archives.clone(),
        others: options.records.clone(),
        layout: plan(database, options)?,
    };
    // The size of the definitions determines where all else is, and is known when they are written.
    let size = definitions.write()?.len() as u64;
    place(&mut definitions.layout, size)?;
    let bytes = definitions.write()?;
    let slot = Slot {
        number: 0,
        synced: 0,
        state: database.state.clone(),
        places: vec![0; database.archives.len()],
        runs: Vec::new(),
    };
    let state = slot.write(&definitions.layout)?;

    let layout = &definitions.layout;
    storage.set_length(layout.file_size)?;
    storage.write_at(0, &bytes)?;
    storage.write_at(layout.slot_offset(0), &state)?;
    // All of the slots is written, so that the disk has room for them.
    for (number, written) in [(0, state.len() as u64), (1, 0)] {
        fill(
            &mut storage,
            layout.slot_offset(number) + written,
            layout.slot_size - written,
            0,
        )?;
    }
    for archive in 0..layout.archives.len() {
        let ring = layout.archives[archive];
        let size = layout.place_size(archive);
        let mut unknown = (ring.offset, size * u64::from(ring.places));
        if let Some(rows) = rows {
            copy(&mut storage, layout, archive, database, rows)?;
            unknown = (ring.offset + size, unknown.1 - size);
        }
        fill(&mut storage, unknown.0, unknown.1, Value::UNKNOWN.to_bits())?;
    }
    Ok(File::new(storage, definitions, slot))
}

fn check_rows(database: &Database, rows: &Rows<'_>) -> Result<(), Error> {
    let equal = |what: &str, found: u64, expected: u64| {
        if found == expected {
            return Ok(());
        }
        Err(Error::Shape(crate::model::ShapeError {
            what: what.to_owned(),
            found,
            expected: expected.to_string(),
        }))
    };
    let (sources, archives) = (database.sources.len(), database.archives.len());
    equal(
        "data sources of the rows",
        rows.sources() as u64,
        sources as u64,
    )?;
    equal(
        "archives of the rows",
        rows.archives() as u64,
        archives as u64,
    )?;
    for (index, archive) in database.archives.iter().enumerate() {
        let found = rows.grid(index).map_or(0, |grid| grid.rows);
        equal(&format!("rows of archive {index}"), found, archive.rows)?;
    }
    Ok(())
}

/// The layout, but for what depends on where the definitions end.
fn plan(database: &Database, options: &Options) -> Result<Layout, Error> {
    let readings = database.state.sources.iter();
    let longest = readings.map(|source| source.last_reading.as_bytes().len());
    let longest = u32::try_from(longest.max().unwrap_or(0)).unwrap_or(u32::MAX);
    let reading_size = longest
        .max(options.reading_size)
        .max(READING_SIZE)
        .checked_next_multiple_of(8)
        .ok_or_else(|| {
            let found = format!("{longest} bytes");
            Error::cannot_hold("last reading", found, "less than 2^32")
        })?;
    let archives = database.archives.iter().zip(&database.state.archives);
    let archives = archives
        .enumerate()
        .map(|(index, (archive, state))| ring(index, archive, state))
        .collect::<Result<_, _>>()?;
    Ok(Layout {
        definitions: HEADER,
        slots: HEADER,
        slot_size: options.journal_size,
        reading_size,
        file_size: 0,
        sources: database.sources.len() as u64,
        archives,
    })
}

fn ring(index: usize, archive: &Archive, state: &ArchiveState) -> Result<Ring, Error> {
    let rows = u32::try_from(archive.rows).map_err(|_| {
        let what = format!("rows of archive {index}");
        Error::cannot_hold(what, archive.rows, "less than 2^32")
    })?;
    // Slots that the kind does not use, but a native file has something in.
    let strays = state
        .scratch
        .iter()
        .flat_map(|scratch| scratch.0.iter().enumerate())
        .filter(|&(_, &number)| number != 0)
        .fold(0, |bits, (slot, _)| bits | 1 << slot);
    Ok(Ring {
        offset: 0,
        places: places(&archive.kind),
        scratch: used_scratch(&archive.kind) | strays,
        values: value_scratch(&archive.kind),
        rows,
    })
}

/// Puts slots and values behind the definitions.
fn place(layout: &mut Layout, definitions: u64) -> Result<(), Error> {
    let too_large = || Error::cannot_hold("database", "its size", "less than 2^63 bytes");
    layout.definitions = definitions;
    layout.slots = definitions;
    let journal = layout.journal_size().ok_or_else(too_large)?;
    layout.slot_size = layout
        .state_size()
        .and_then(|size| size.checked_add(layout.slot_size.max(journal)))
        .and_then(|size| size.checked_next_multiple_of(8))
        .filter(|&size| size <= u32::MAX.into())
        .ok_or_else(|| {
            Error::cannot_hold("state and journal", "their size", "less than 2^32 bytes")
        })?;
    let mut free = layout.slots_end().ok_or_else(too_large)?;
    for archive in 0..layout.archives.len() {
        layout.archives[archive].offset = free;
        free = layout
            .ring_end(&layout.archives[archive])
            .filter(|&end| end < 1 << 63)
            .ok_or_else(too_large)?;
    }
    layout.file_size = free;
    layout.check()
}

/// Writes the same double or zeros again and again.
fn fill<S: Storage>(
    storage: &mut S,
    mut offset: u64,
    mut size: u64,
    bits: u64,
) -> Result<(), Error> {
    let count = size.div_ceil(8).min(CHUNK as u64);
    let bytes = bits.to_le_bytes().repeat(count as usize);
    while size > 0 {
        let part = size.min(bytes.len() as u64);
        storage.write_at(offset, &bytes[..part as usize])?;
        offset += part;
        size -= part;
    }
    Ok(())
}

/// Writes the values of an archive to its first place: each row where it was.
fn copy<S: Storage>(
    storage: &mut S,
    layout: &Layout,
    archive: usize,
    database: &Database,
    rows: &Rows<'_>,
) -> Result<(), Error> {
    let ring = layout.archives[archive];
    let current = database.state.archives[archive].current_row as u32;
    let oldest = if current == ring.rows - 1 {
        0
    } else {
        current + 1
    };
    if let Some(runs) = rows.runs(archive) {
        // The ring is read from its oldest row on, and so it is written.
        let to_end = u64::from(ring.rows - oldest) * layout.row_size();
        let mut at = 0;
        for bytes in runs {
            for bytes in bytes.chunks(CHUNK * 8) {
                let mut converted = canonical(bytes, rows.order());
                let before = to_end.saturating_sub(at).min(converted.len() as u64);
                let rest = converted.split_off(before as usize);
                let offset = layout.row_offset(archive, 0, oldest) + at;
                storage.write_at(offset, &converted)?;
                let round = (at + before).saturating_sub(to_end);
                if !rest.is_empty() {
                    storage.write_at(ring.offset + round, &rest)?;
                }
                at += bytes.len() as u64;
            }
        }
        return Ok(());
    }
    for (age, row) in rows.iter(archive).enumerate() {
        let place = (u64::from(oldest) + age as u64) % u64::from(ring.rows);
        let bytes: Vec<_> = row
            .values()
            .flat_map(|value| value.to_bits().to_le_bytes())
            .collect();
        storage.write_at(layout.row_offset(archive, 0, place as u32), &bytes)?;
    }
    Ok(())
}

/// Doubles in the order of portable files, every NaN the same.
fn canonical(bytes: &[u8], order: FloatOrder) -> Vec<u8> {
    fn convert(bytes: &[u8], bits: impl Fn([u8; 8]) -> u64) -> Vec<u8> {
        let mut converted = vec![0; bytes.len()];
        let (from, _) = bytes.as_chunks::<8>();
        let (to, _) = converted.as_chunks_mut::<8>();
        for (from, to) in from.iter().zip(to) {
            *to = Value::from_bits(bits(*from)).to_bits().to_le_bytes();
        }
        converted
    }
    // A loop for each order, which the compiler makes wide.
    match order {
        FloatOrder::Little => convert(bytes, |bytes| FloatOrder::Little.read(bytes)),
        FloatOrder::Big => convert(bytes, |bytes| FloatOrder::Big.read(bytes)),
        FloatOrder::SwappedWords => convert(bytes, |bytes| FloatOrder::SwappedWords.read(bytes)),
    }
}
