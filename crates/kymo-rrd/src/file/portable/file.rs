//! A portable file that is read and updated in place.

use std::io;

use kymo_io::{ReadAt, Storage};

use super::definitions::{self, Definitions, HEADER};
use super::journal::{self, Run};
use super::slot::Slot;
use super::update::Update;
use super::{Error, Record};
use crate::Value;
use crate::model::Database;

/// What a file holds, but for its values.
#[derive(Debug)]
pub(super) struct Loaded {
    pub(super) definitions: Definitions,
    /// The state slot that counts.
    pub(super) newest: Slot,
    /// The rows of the last updates that may not be where they belong.
    runs: Vec<Run>,
}

impl Loaded {
    /// Reads definitions and state.
    pub(super) fn read<S: ReadAt + ?Sized>(source: &S) -> Result<Self, Error> {
        let length = source.length()?;
        let mut head = vec![0; length.min(HEADER) as usize];
        source.read_at(0, &mut head)?;
        let head = definitions::read_head(&head)?;
        if head.definitions > length {
            let what = "end of definitions";
            let expected = format!("at most {length}, where the file ends");
            return Err(Error::wrong(what, 16, head.definitions, expected));
        }
        let bytes = read(source, 0, head.definitions)?;
        let definitions = Definitions::read(&head, &bytes)?;
        let layout = &definitions.layout;
        if layout.file_size > length {
            let expected = format!(
                "{} bytes, which the file has by its header",
                layout.file_size
            );
            return Err(Error::wrong("length of the file", length, length, expected));
        }
        let mut slots = [None, None];
        for (place, slot) in slots.iter_mut().enumerate() {
            let place = place as u64;
            let bytes = read(source, layout.slot_offset(place), layout.slot_size)?;
            *slot = Slot::read(layout, &bytes, place);
        }
        let [even, odd] = slots;
        let (newest, other) = match (even, odd) {
            (Some(even), Some(odd)) if even.number > odd.number => (even, Some(odd)),
            (Some(even), Some(odd)) => (odd, Some(even)),
            (Some(slot), None) | (None, Some(slot)) => (slot, None),
            (None, None) => {
                let offset = layout.slots;
                return Err(Error::NoState { offset });
            }
        };
        let before = other.filter(|other| newest.number.checked_sub(1) == Some(other.number));
        let mut runs = before.map_or(Vec::new(), |before| {
            journal::left_of(before, &newest, layout)
        });
        runs.extend_from_slice(&newest.runs);
        Ok(Self {
            definitions,
            newest,
            runs,
        })
    }

    /// Whether all rows of the last updates are where they belong.
    pub(super) fn is_complete<S: ReadAt + ?Sized>(&self, source: &S) -> Result<bool, Error> {
        let layout = &self.definitions.layout;
        journal::is_written(source, layout, &self.newest.places, &self.runs)
    }

    /// Writes the rows of the last updates to where they belong, if they are not there.
    pub(super) fn replay<S: Storage + ?Sized>(&self, storage: &mut S) -> Result<(), Error> {
        if self.is_complete(storage)? {
            return Ok(());
        }
        // The slot may not be on the disk yet, and rows overwrite those of the state before.
        storage.sync()?;
        let layout = &self.definitions.layout;
        journal::write(storage, layout, &self.newest.places, &self.runs)
    }
}

/// Reads a part of the source, which it was checked to have.
fn read<S: ReadAt + ?Sized>(source: &S, offset: u64, size: u64) -> Result<Vec<u8>, Error> {
    let size = usize::try_from(size).map_err(|_| io::Error::from(io::ErrorKind::FileTooLarge))?;
    let mut bytes = vec![0; size];
    source.read_at(offset, &mut bytes)?;
    Ok(bytes)
}

/// A portable file that is read and updated in place.
///
/// One program updates a file at a time: whoever opens the storage locks it.
#[derive(Debug)]
pub struct File<S> {
    pub(super) storage: S,
    pub(super) database: Database,
    pub(super) definitions: Definitions,
    /// The number of the last update.
    pub(super) number: u64,
    /// The number of the last update that is known to be on the disk.
    pub(super) synced: u64,
    /// Which place of each archive counts.
    pub(super) places: Vec<u32>,
    /// Whether something was written that neither is known to be on the disk nor in the journal
    /// of the last update, which is on the disk.
    pub(super) unsynced: bool,
    /// Whether an update failed, so that the storage may hold another state.
    pub(super) stale: bool,
    /// How the state slots begin, if known: with a checksum of the whole slot.
    pub(super) heads: Option<[SlotHead; 2]>,
}

/// Checksum, size and number of a state slot.
pub(super) type SlotHead = [u8; 16];

impl<S: Storage> File<S> {
    /// A file that holds this and that all of was written.
    pub(super) fn new(storage: S, definitions: Definitions, slot: Slot) -> Self {
        let database = Database {
            version: definitions.version,
            step: definitions.step,
            sources: definitions.sources.clone(),
            archives: definitions.archives.clone(),
            state: slot.state,
        };
        Self {
            storage,
            database,
            definitions,
            number: slot.number,
            synced: slot.synced,
            places: slot.places,
            unsynced: true,
            stale: false,
            heads: None,
        }
    }

    /// Opens a file. What the last updates could not complete is completed.
    ///
    /// # Errors
    ///
    /// What is wrong with the file; those of reading, and of writing what was not complete.
    pub fn open(mut storage: S) -> Result<Self, Error> {
        let loaded = Loaded::read(&storage)?;
        loaded.replay(&mut storage)?;
        let mut file = Self::new(storage, loaded.definitions, loaded.newest);
        file.heads = Some(file.read_heads()?);
        Ok(file)
    }

    /// Reads the storage again, as [`File::open`] does.
    ///
    /// # Errors
    ///
    /// Those of [`File::open`].
    pub fn reload(&mut self) -> Result<(), Error> {
        let loaded = Loaded::read(&self.storage)?;
        loaded.replay(&mut self.storage)?;
        let slot = loaded.newest;
        self.database.state = slot.state;
        self.number = slot.number;
        self.synced = slot.synced;
        self.places = slot.places;
        self.unsynced = true;
        self.stale = false;
        self.heads = Some(self.read_heads()?);
        Ok(())
    }

    /// Sees whether others have updated the file, and reads it again if they have.
    ///
    /// # Errors
    ///
    /// Those of [`File::open`].
    pub fn refresh(&mut self) -> Result<(), Error> {
        // Definitions never change, and each update changes the beginning of a slot.
        if !self.stale && self.heads == Some(self.read_heads()?) {
            return Ok(());
        }
        self.reload()
    }

    fn read_heads(&self) -> Result<[SlotHead; 2], Error> {
        let layout = &self.definitions.layout;
        let mut heads = [[0; _]; 2];
        for (place, head) in heads.iter_mut().enumerate() {
            self.storage
                .read_at(layout.slot_offset(place as u64), head)?;
        }
        Ok(heads)
    }

    /// Definitions and state. After an update that failed, the state before it, until the file is
    /// read again.
    pub fn database(&self) -> &Database {
        &self.database
    }

    /// Records of kinds that are not known here; whoever rewrites the file keeps them.
    pub fn records(&self) -> &[Record] {
        &self.definitions.others
    }

    /// How many updates there were since the file was made.
    pub fn updates(&self) -> u64 {
        self.number
    }

    /// The longest text of a last reading that the file has room for, in bytes.
    pub fn reading_size(&self) -> u32 {
        self.definitions.layout.reading_size
    }

    /// The values of a row, by its place in the file; `None` if the row does not exist.
    ///
    /// # Errors
    ///
    /// Those of reading; [`Error::Stale`] after an update that failed.
    pub fn row(&self, archive: usize, row: u64) -> Result<Option<Vec<Value>>, Error> {
        let rows = self.definitions.layout.archives.get(archive);
        if rows.is_none_or(|ring| row >= ring.rows.into()) {
            return Ok(None);
        }
        let row_size = self.definitions.layout.row_size();
        self.read_values(archive, row as u32, row_size).map(Some)
    }

    /// All values of an archive, row by row as they lie in the file; `None` if it does not
    /// exist.
    ///
    /// # Errors
    ///
    /// Those of reading; [`Error::Stale`] after an update that failed.
    pub fn values(&self, archive: usize) -> Result<Option<Vec<Value>>, Error> {
        if archive >= self.definitions.layout.archives.len() {
            return Ok(None);
        }
        let size = self.definitions.layout.place_size(archive);
        self.read_values(archive, 0, size).map(Some)
    }

    fn read_values(&self, archive: usize, row: u32, size: u64) -> Result<Vec<Value>, Error> {
        if self.stale {
            return Err(Error::Stale);
        }
        let layout = &self.definitions.layout;
        let offset = layout.row_offset(archive, self.places[archive], row);
        let bytes = read(&self.storage, offset, size)?;
        let (values, _) = bytes.as_chunks();
        let values = values.iter().map(|bytes| u64::from_le_bytes(*bytes));
        Ok(values.map(Value::from_bits).collect())
    }

    /// Begins an update. Nothing is written before [`Update::commit`]. If the update before
    /// failed, the storage is read again.
    ///
    /// # Errors
    ///
    /// Those of [`File::reload`], if that is needed.
    pub fn begin(&mut self) -> Result<Update<'_, S>, Error> {
        if self.stale {
            self.reload()?;
        }
        Ok(Update::new(self))
    }

    /// Waits until all updates are on the disk.
    ///
    /// # Errors
    ///
    /// Those of the storage; the file must then be read again.
    pub fn sync(&mut self) -> Result<(), Error> {
        if let Err(error) = self.storage.sync() {
            self.stale = true;
            return Err(error.into());
        }
        self.synced = self.number;
        self.unsynced = false;
        Ok(())
    }

    /// Where the file is.
    pub fn storage(&self) -> &S {
        &self.storage
    }

    /// Where the file is, to be locked and unlocked. What is written there is not known here.
    pub fn storage_mut(&mut self) -> &mut S {
        &mut self.storage
    }

    /// Where the file is, when it is no longer needed.
    pub fn into_storage(self) -> S {
        self.storage
    }
}
