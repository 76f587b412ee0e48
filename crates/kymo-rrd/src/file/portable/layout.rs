//! Where the parts of a portable file are.

use super::Error;
use crate::model::{ArchiveKind, Scratch, Slot};

/// Bytes of a state slot before the state.
pub(super) const SLOT_HEADER: u64 = 48;
/// Bytes of a journal entry without values.
pub(super) const ENTRY: u64 = 16;
/// Bytes of a data source's state without the text of its last reading.
const SOURCE_STATE: u64 = 16;
/// Bytes of an archive's state without scratch.
const ARCHIVE_STATE: u64 = 8;
/// Bytes of a value.
pub(super) const VALUE: u64 = 8;

/// Where the parts of a file are. What [`Layout::check`] accepts lies within the file and can be
/// counted in 64 bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// Where the definitions end.
    pub(super) definitions: u64,
    /// Where the first state slot begins.
    pub(super) slots: u64,
    /// Bytes of a slot.
    pub(super) slot_size: u64,
    /// Room for the text of a last reading.
    pub(super) reading_size: u32,
    /// Where the file ends.
    pub(super) file_size: u64,
    /// Number of data sources.
    pub(super) sources: u64,
    /// The archives.
    pub(super) archives: Vec<Ring>,
}

/// Where the values of an archive are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ring {
    /// Offset of the first place.
    pub(super) offset: u64,
    /// How often there is room for the values.
    pub(super) places: u8,
    /// The scratch slots that the state holds, a bit each.
    pub(super) scratch: u16,
    /// Those of them that hold values, of which a NaN has one form.
    pub(super) values: u16,
    /// Number of rows.
    pub(super) rows: u32,
}

/// The scratch slots that archives of a kind use, a bit each.
pub(super) fn used_scratch(kind: &ArchiveKind) -> u16 {
    scratch_slots(kind, |slot| slot != Slot::Unused)
}

/// The scratch slots of archives of a kind that hold values, a bit each.
pub(super) fn value_scratch(kind: &ArchiveKind) -> u16 {
    scratch_slots(kind, |slot| slot == Slot::Value)
}

fn scratch_slots(kind: &ArchiveKind, wanted: impl Fn(Slot) -> bool) -> u16 {
    (0..Scratch::SLOTS)
        .filter(|&slot| wanted(kind.slot(slot)))
        .fold(0, |bits, slot| bits | 1 << slot)
}

/// How often there is room for the values of an archive of a kind: seasons are smoothed as a
/// whole, in the place that does not count until it is done.
pub(super) fn places(kind: &ArchiveKind) -> u8 {
    if matches!(kind, ArchiveKind::Seasonal { .. }) {
        2
    } else {
        1
    }
}

impl Layout {
    /// Bytes of a row. Every row has values, so this fits where the layout was checked.
    pub(super) fn row_size(&self) -> u64 {
        self.sources * VALUE
    }

    /// Bytes of all rows of an archive, in one place.
    pub(super) fn place_size(&self, archive: usize) -> u64 {
        u64::from(self.archives[archive].rows) * self.row_size()
    }

    /// Where a row is.
    pub(super) fn row_offset(&self, archive: usize, place: u32, row: u32) -> u64 {
        self.archives[archive].offset
            + u64::from(place) * self.place_size(archive)
            + u64::from(row) * self.row_size()
    }

    /// Where the slot of an update is.
    pub(super) fn slot_offset(&self, number: u64) -> u64 {
        self.slots + number % 2 * self.slot_size
    }

    /// Bytes of a slot's header and state; `None` where that cannot be counted.
    pub(super) fn state_size(&self) -> Option<u64> {
        let source = SOURCE_STATE + u64::from(self.reading_size);
        let mut size = self.sources.checked_mul(source)?.checked_add(SLOT_HEADER)?;
        for ring in &self.archives {
            let scratch = self
                .row_size_checked()?
                .checked_mul(ring.scratch.count_ones().into())?;
            size = size.checked_add(scratch)?.checked_add(ARCHIVE_STATE)?;
        }
        Some(size)
    }

    /// Room in a slot that takes the journal of any single update.
    pub(super) fn journal_size(&self) -> Option<u64> {
        let archive = self.row_size_checked()?.checked_add(3 * ENTRY)?;
        archive.checked_mul(self.archives.len() as u64)
    }

    fn row_size_checked(&self) -> Option<u64> {
        self.sources.checked_mul(VALUE)
    }

    /// Where the values of an archive end; `None` where that cannot be counted.
    pub(super) fn ring_end(&self, ring: &Ring) -> Option<u64> {
        self.row_size_checked()?
            .checked_mul(ring.rows.into())?
            .checked_mul(ring.places.into())?
            .checked_add(ring.offset)
    }

    /// Where the slots end; `None` where that cannot be counted.
    pub(super) fn slots_end(&self) -> Option<u64> {
        self.slot_size.checked_mul(2)?.checked_add(self.slots)
    }

    /// Checks that the parts follow each other within the file and have room for what they hold.
    pub(super) fn check(&self) -> Result<(), Error> {
        use super::definitions::{SLOT_SIZE_AT, SLOTS_AT};
        let aligned = |what: &str, at: u64, found: u64| {
            if found.is_multiple_of(VALUE) {
                return Ok(());
            }
            Err(Error::wrong(what, at, found, "a multiple of 8"))
        };
        aligned("state slots", SLOTS_AT, self.slots)?;
        aligned("slot size", SLOT_SIZE_AT, self.slot_size)?;
        if self.slots < self.definitions {
            return Err(Error::wrong(
                "state slots",
                SLOTS_AT,
                self.slots,
                format!("at least {}, where the definitions end", self.definitions),
            ));
        }
        let needed = self.state_size();
        if needed.is_none_or(|needed| needed > self.slot_size) {
            return Err(Error::wrong(
                "slot size",
                SLOT_SIZE_AT,
                self.slot_size,
                match needed {
                    Some(needed) => format!("at least {needed}, for the state"),
                    None => "a state of less than 2^64 bytes".to_owned(),
                },
            ));
        }
        let end = self.slots_end();
        let Some(mut free) = end.filter(|&end| end <= self.file_size) else {
            return Err(Error::wrong(
                "slot size",
                SLOT_SIZE_AT,
                self.slot_size,
                format!("two slots within the file size of {}", self.file_size),
            ));
        };
        for (index, ring) in self.archives.iter().enumerate() {
            let what = format!("values of archive {index}");
            let at = ring.offset;
            aligned(&what, at, ring.offset)?;
            if ring.offset < free {
                let expected = format!("at least {free}, where what is before them ends");
                return Err(Error::wrong(what, at, ring.offset, expected));
            }
            let end = self.ring_end(ring);
            let Some(end) = end.filter(|&end| end <= self.file_size) else {
                let found = format!("{} rows", ring.rows);
                let expected = format!("their end within the file size of {}", self.file_size);
                return Err(Error::wrong(what, at, found, expected));
            };
            free = end;
        }
        Ok(())
    }
}
