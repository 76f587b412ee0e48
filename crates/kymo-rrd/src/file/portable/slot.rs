//! State slots: what updates change, and the journal of the rows they write.

use crc32c::crc32c;

use super::Error;
use super::fields::{Fields, PutFields};
use super::journal::Run;
use super::layout::{ENTRY, Layout, Ring, VALUE};
use crate::model::{ArchiveState, Scratch, ShapeError, SourceState, State};
use crate::{Text, Time, Value};

/// The flag that says that the stray microseconds count.
const STRAY: u32 = 1;
/// Where the values of a journal entry are: in it, or in the scratch of the same slot.
const EXPLICIT: u32 = 0;
const PRIMARY: u32 = 1;
const SECONDARY: u32 = 2;

/// What a slot holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Slot {
    /// The number of the update.
    pub(super) number: u64,
    /// The number of the last update that was on the disk.
    pub(super) synced: u64,
    /// The state after the update.
    pub(super) state: State,
    /// Which place of each archive counts.
    pub(super) places: Vec<u32>,
    /// The rows that the update writes.
    pub(super) runs: Vec<Run>,
}

impl Slot {
    /// Reads a slot. `None` where it is not whole.
    pub(super) fn read(layout: &Layout, bytes: &[u8], place: u64) -> Option<Self> {
        let (checksum, rest) = bytes.split_first_chunk()?;
        let used = u32::from_le_bytes(*rest.first_chunk()?) as usize;
        let summed = bytes.get(..used)?.get(4..)?;
        if crc32c(summed) != u32::from_le_bytes(*checksum) {
            return None;
        }
        // A slot with a correct checksum but impossible content is not a state either.
        let slot = Self::read_fields(layout, Fields::new(summed.get(4..)?, 8)).ok()??;
        (slot.number % 2 == place).then_some(slot)
    }

    fn read_fields(layout: &Layout, mut fields: Fields<'_>) -> Result<Option<Self>, Error> {
        let number = fields.u64()?;
        let synced = fields.u64()?;
        let last_update = Time::from_cdtime(fields.u64()?);
        let flags = fields.u32()?;
        let entries = fields.u32()?;
        let stray = fields.i64()?;
        if flags & !STRAY != 0 || synced > number {
            return Ok(None);
        }
        let mut state = State {
            last_update,
            stray_micros: (flags & STRAY != 0).then_some(stray),
            sources: Vec::new(),
            archives: Vec::new(),
        };
        for _ in 0..layout.sources {
            let unknown_seconds = fields.u64()?;
            let value = fields.value()?;
            let last_reading = Text::new(fields.take(layout.reading_size as usize)?);
            state.sources.push(SourceState {
                last_reading,
                unknown_seconds,
                value,
            });
        }
        let mut places = Vec::new();
        for ring in &layout.archives {
            let current_row = fields.u32()?;
            let place = fields.u32()?;
            if current_row >= ring.rows || place >= ring.places.into() {
                return Ok(None);
            }
            state.archives.push(ArchiveState {
                current_row: current_row.into(),
                scratch: Vec::new(),
            });
            places.push(place);
        }
        for (ring, archive) in layout.archives.iter().zip(&mut state.archives) {
            for _ in 0..layout.sources {
                let mut scratch = Scratch::default();
                for slot in slots(ring.scratch) {
                    scratch.0[slot] = canonical(ring, slot, fields.u64()?);
                }
                archive.scratch.push(scratch);
            }
        }
        let mut left: Vec<_> = layout.archives.iter().map(|ring| ring.rows).collect();
        let mut runs = Vec::new();
        for _ in 0..entries {
            let Some(run) = read_entry(layout, &state, &mut left, &mut fields)? else {
                return Ok(None);
            };
            runs.push(run);
        }
        let slot = Self {
            number,
            synced,
            state,
            places,
            runs,
        };
        Ok((fields.left() == 0).then_some(slot))
    }

    /// The slot as bytes: its used part.
    pub(super) fn write(&self, layout: &Layout) -> Result<Vec<u8>, Error> {
        check_shape(layout, &self.state)?;
        let state = &self.state;
        let last_update = state.last_update.to_cdtime().ok_or_else(|| {
            let found = format!("{} s since 1970", state.last_update.seconds());
            Error::cannot_hold("last update", found, "times from 1970 to 2514")
        })?;
        let mut bytes = Vec::with_capacity(layout.slot_size.min(1 << 20) as usize);
        bytes.put_u64(0);
        bytes.put_u64(self.number);
        bytes.put_u64(self.synced);
        bytes.put_u64(last_update);
        bytes.put_u32(state.stray_micros.map_or(0, |_| STRAY));
        bytes.put_u32(self.runs.len() as u32);
        bytes.put_i64(state.stray_micros.unwrap_or(0));
        for (index, source) in state.sources.iter().enumerate() {
            let reading = source.last_reading.as_bytes();
            if reading.len() > layout.reading_size as usize {
                return Err(Error::cannot_hold(
                    format!("last reading of data source {index}"),
                    format!("{} bytes", reading.len()),
                    format!("at most {}, in this file", layout.reading_size),
                ));
            }
            bytes.put_u64(source.unknown_seconds);
            bytes.put_value(source.value);
            bytes.put_padded(reading, layout.reading_size as usize);
        }
        for (archive, place) in state.archives.iter().zip(&self.places) {
            // Below the number of rows, as was checked.
            bytes.put_u32(archive.current_row as u32);
            bytes.put_u32(*place);
        }
        for (index, (ring, archive)) in layout.archives.iter().zip(&state.archives).enumerate() {
            for scratch in &archive.scratch {
                put_scratch(&mut bytes, index, ring, scratch)?;
            }
        }
        let room = layout.slot_size - bytes.len() as u64;
        let needed = journal_size(layout, state, &self.runs);
        if needed > room {
            return Err(Error::JournalFull { needed, room });
        }
        for run in &self.runs {
            put_entry(&mut bytes, state, run);
        }
        let used = u32::try_from(bytes.len()).map_err(|_| {
            let found = format!("{} bytes", bytes.len());
            Error::cannot_hold("state", found, "less than 2^32")
        })?;
        bytes[4..8].copy_from_slice(&used.to_le_bytes());
        let checksum = crc32c(&bytes[4..]);
        bytes[..4].copy_from_slice(&checksum.to_le_bytes());
        Ok(bytes)
    }
}

/// Bytes of the journal of these runs, in the slot of this state.
pub(super) fn journal_size(layout: &Layout, state: &State, runs: &[Run]) -> u64 {
    runs.iter()
        .map(|run| match values_source(state, run) {
            EXPLICIT => ENTRY + layout.row_size(),
            _ => ENTRY,
        })
        .sum()
}

/// The numbers of the bits that are set.
fn slots(bits: u16) -> impl Iterator<Item = usize> {
    (0..Scratch::SLOTS).filter(move |slot| bits >> slot & 1 == 1)
}

/// What a scratch slot holds; of a slot that holds values, every NaN is the same.
fn canonical(ring: &Ring, slot: usize, bits: u64) -> u64 {
    if ring.values >> slot & 1 == 1 {
        Value::from_bits(bits).to_bits()
    } else {
        bits
    }
}

fn put_scratch(
    bytes: &mut Vec<u8>,
    archive: usize,
    ring: &Ring,
    scratch: &Scratch,
) -> Result<(), Error> {
    for (slot, &number) in scratch.0.iter().enumerate() {
        if ring.scratch >> slot & 1 == 1 {
            bytes.put_u64(canonical(ring, slot, number));
        } else if number != 0 {
            return Err(Error::cannot_hold(
                format!("scratch slot {slot} of archive {archive}"),
                format!("{number:#x}"),
                "zero there, in this file",
            ));
        }
    }
    Ok(())
}

/// Checks that the state is one of this file.
fn check_shape(layout: &Layout, state: &State) -> Result<(), Error> {
    // Texts are made only of what is wrong, since each update comes by here.
    let wrong = |what: String, found: u64, expected: u64| {
        Err(Error::Shape(ShapeError {
            what,
            found,
            expected: expected.to_string(),
        }))
    };
    let sources = state.sources.len() as u64;
    if sources != layout.sources {
        return wrong("states of data sources".to_owned(), sources, layout.sources);
    }
    let (archives, expected) = (state.archives.len() as u64, layout.archives.len() as u64);
    if archives != expected {
        return wrong("states of archives".to_owned(), archives, expected);
    }
    for (index, (ring, archive)) in layout.archives.iter().zip(&state.archives).enumerate() {
        let prepared = archive.scratch.len() as u64;
        if prepared != layout.sources {
            let what = format!("preparations of archive {index}");
            return wrong(what, prepared, layout.sources);
        }
        let last = u64::from(ring.rows) - 1;
        if archive.current_row > last {
            let what = format!("current row of archive {index}, at most the last");
            return wrong(what, archive.current_row, last);
        }
    }
    Ok(())
}

/// Where a journal entry has its values: in the scratch of the state, if they are there too.
fn values_source(state: &State, run: &Run) -> u32 {
    let archive = state.archives.get(run.archive);
    let scratch = archive.map_or(&[][..], |archive| &archive.scratch);
    [(PRIMARY, Scratch::PRIMARY), (SECONDARY, Scratch::SECONDARY)]
        .into_iter()
        .find(|&(_, slot)| {
            let values = scratch.iter().map(|scratch| scratch.value(slot));
            values.eq(run.values.iter().copied())
        })
        .map_or(EXPLICIT, |(source, _)| source)
}

fn put_entry(bytes: &mut Vec<u8>, state: &State, run: &Run) {
    let source = values_source(state, run);
    bytes.put_u32(run.archive as u32);
    bytes.put_u32(source);
    bytes.put_u32(run.row);
    bytes.put_u32(run.count);
    if source == EXPLICIT {
        for value in &run.values {
            bytes.put_value(*value);
        }
    }
}

/// Reads a journal entry. `left` counts how many rows of each archive are in no entry yet.
fn read_entry(
    layout: &Layout,
    state: &State,
    left: &mut [u32],
    fields: &mut Fields<'_>,
) -> Result<Option<Run>, Error> {
    let archive = fields.u32()? as usize;
    let source = fields.u32()?;
    let row = fields.u32()?;
    let count = fields.u32()?;
    let (Some(ring), Some(left)) = (layout.archives.get(archive), left.get_mut(archive)) else {
        return Ok(None);
    };
    if row >= ring.rows || count == 0 || count > *left {
        return Ok(None);
    }
    *left -= count;
    let scratch = |slot| {
        let scratch = state.archives[archive].scratch.iter();
        scratch
            .map(|scratch: &Scratch| scratch.value(slot))
            .collect()
    };
    let values: Vec<Value> = match source {
        EXPLICIT => {
            let bytes = fields.take((layout.sources * VALUE) as usize)?;
            let (values, _) = bytes.as_chunks();
            values
                .iter()
                .map(|bytes| Value::from_bits(u64::from_le_bytes(*bytes)))
                .collect()
        }
        PRIMARY => scratch(Scratch::PRIMARY),
        SECONDARY => scratch(Scratch::SECONDARY),
        _ => return Ok(None),
    };
    Ok(Some(Run {
        archive,
        row,
        count,
        values,
    }))
}
