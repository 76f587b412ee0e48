//! Updates, which happen as a whole or not at all.

use kymo_io::Storage;

use super::Error;
use super::file::File;
use super::journal::{self, Run, Runs};
use super::slot::{Slot, journal_size};
use crate::Value;
use crate::model::{ShapeError, State};

/// What an update must survive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// That the machine stops: when the update is done it is on the disk, and until then the
    /// state before or after it is.
    Synced,
    /// That the program stops or the disk is full. If the machine stops, the file may hold the
    /// state of any buffered update or of the two before, with rows of other times, or no
    /// state. [`File::sync`] ends that.
    Buffered,
}

/// An update that is being put together: a state, and rows. Nothing is written before
/// [`Update::commit`].
#[derive(Debug)]
pub struct Update<'f, S> {
    file: &'f mut File<S>,
    state: State,
    runs: Runs,
    /// The values of archives that are written as a whole.
    rewritten: Vec<Option<Vec<Value>>>,
}

impl<'f, S: Storage> Update<'f, S> {
    pub(super) fn new(file: &'f mut File<S>) -> Self {
        Self {
            state: file.database.state.clone(),
            runs: Runs::default(),
            rewritten: vec![None; file.places.len()],
            file,
        }
    }

    /// The file, in the state before.
    pub fn file(&self) -> &File<S> {
        self.file
    }

    /// The state after the update.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The state after the update, to be changed. Its rows are written by the other functions,
    /// which also move the current row; to move it alone skips rows.
    pub fn state_mut(&mut self) -> &mut State {
        &mut self.state
    }

    /// Writes the row after the current one of an archive, which is then the current one.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`] if the archive does not exist, or there is not one value for each data source.
    pub fn write_row(&mut self, archive: usize, values: &[Value]) -> Result<(), Error> {
        self.write_rows(archive, 1, values)
    }

    /// Writes `count` rows after the current one, all with the same values. The last of them is
    /// then the current one. There may be more than the archive has: it goes round.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`] if the archive does not exist, or there is not one value for each data source.
    pub fn write_rows(
        &mut self,
        archive: usize,
        count: u64,
        values: &[Value],
    ) -> Result<(), Error> {
        let rows = self.check(archive, values.len(), 1)?;
        let state = &mut self.state.archives[archive];
        let written = count.min(rows.into());
        if written == 0 {
            return Ok(());
        }
        let size = u64::from(rows);
        let current = (state.current_row % size + count % size) % size;
        let first = (current + 1 + (size - written)) % size;
        state.current_row = current;
        if let Some(all) = &mut self.rewritten[archive] {
            for distance in 0..written {
                let begin = ((first + distance) % size) as usize * values.len();
                all[begin..begin + values.len()].copy_from_slice(values);
            }
            return Ok(());
        }
        let run = Run {
            archive,
            row: first as u32,
            count: written as u32,
            values: values.to_vec(),
        };
        self.runs.insert(run, rows);
        Ok(())
    }

    /// Writes all values of an archive, row by row as they lie in the file: smoothing of
    /// seasons. The current row stays.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`] if the archive does not exist, or there is not one value for each row and data
    /// source; [`Error::CannotHold`] for archives that are not of seasons.
    pub fn rewrite(&mut self, archive: usize, values: Vec<Value>) -> Result<(), Error> {
        let rows = self.rows(archive)?;
        self.check(archive, values.len(), rows)?;
        if self.file.definitions.layout.archives[archive].places < 2 {
            let found = self.file.database.archives[archive].kind.name();
            let what = format!("archive {archive} that is written as a whole");
            return Err(Error::cannot_hold(what, found, "seasonal ones"));
        }
        self.runs.remove(archive);
        self.rewritten[archive] = Some(values);
        Ok(())
    }

    /// The values of a row as they are after this update; `None` if the row does not exist.
    ///
    /// # Errors
    ///
    /// Those of [`File::row`].
    pub fn row(&self, archive: usize, row: u64) -> Result<Option<Vec<Value>>, Error> {
        let Ok(rows) = self.rows(archive) else {
            return Ok(None);
        };
        if row >= rows.into() {
            return Ok(None);
        }
        if let Some(all) = &self.rewritten[archive] {
            let sources = self.file.database.sources.len();
            let begin = row as usize * sources;
            return Ok(Some(all[begin..begin + sources].to_vec()));
        }
        match self.runs.find(archive, row as u32, rows) {
            Some(values) => Ok(Some(values.to_vec())),
            None => self.file.row(archive, row),
        }
    }

    /// All values of an archive as they are after this update; `None` if it does not
    /// exist.
    ///
    /// # Errors
    ///
    /// Those of [`File::values`].
    pub fn values(&self, archive: usize) -> Result<Option<Vec<Value>>, Error> {
        if let Some(Some(all)) = self.rewritten.get(archive) {
            return Ok(Some(all.clone()));
        }
        let Some(mut all) = self.file.values(archive)? else {
            return Ok(None);
        };
        let sources = self.file.database.sources.len();
        for run in self.runs.as_slice() {
            if run.archive != archive {
                continue;
            }
            for (first, count) in run.parts(self.rows(archive)?) {
                let begin = first as usize * sources;
                let end = begin + count as usize * sources;
                for row in all[begin..end].chunks_exact_mut(sources) {
                    row.copy_from_slice(&run.values);
                }
            }
        }
        Ok(Some(all))
    }

    /// Whether the journal has room for the rows so far. It has for those of any single update, so
    /// this is asked where several are made one.
    pub fn fits(&self) -> bool {
        let layout = &self.file.definitions.layout;
        let state = layout.state_size();
        let room = state.and_then(|state| layout.slot_size.checked_sub(state));
        let needed = journal_size(layout, &self.state, self.runs.as_slice());
        room.is_some_and(|room| needed <= room)
    }

    /// Makes the update happen.
    ///
    /// # Errors
    ///
    /// What the file cannot hold ([`Error::Shape`], [`Error::CannotHold`], [`Error::JournalFull`]):
    /// then nothing was written. Those of the storage: then the state is that before or after the
    /// update, which is found out when the file is read again.
    pub fn commit(self, durability: Durability) -> Result<(), Error> {
        let Self {
            file,
            state,
            runs,
            rewritten,
        } = self;
        let sync_before = durability == Durability::Synced && file.unsynced;
        let mut places = file.places.clone();
        for (place, rewritten) in places.iter_mut().zip(&rewritten) {
            if rewritten.is_some() {
                *place = 1 - *place;
            }
        }
        let number = file.number.checked_add(1).ok_or_else(|| {
            let what = "number of the update";
            Error::cannot_hold(what, "2^64", "less than that")
        })?;
        let slot = Slot {
            number,
            synced: match durability {
                Durability::Synced => file.number,
                Durability::Buffered => file.synced,
            },
            state,
            places,
            runs: runs.into_vec(),
        };
        let bytes = slot.write(&file.definitions.layout)?;
        file.stale = true;
        if sync_before {
            file.storage.sync()?;
        }
        write(file, &slot, &bytes, &rewritten, durability)?;
        if let (Some(heads), Some(head)) = (&mut file.heads, bytes.first_chunk()) {
            heads[usize::from(slot.number % 2 == 1)] = *head;
        }
        file.database.state = slot.state;
        file.number = slot.number;
        file.places = slot.places;
        match durability {
            Durability::Synced => {
                file.synced = slot.number;
                file.unsynced = false;
            }
            Durability::Buffered => file.unsynced = true,
        }
        file.stale = false;
        Ok(())
    }

    /// The number of rows of an archive.
    fn rows(&self, archive: usize) -> Result<u32, Error> {
        let archives = &self.file.definitions.layout.archives;
        let ring = archives.get(archive).ok_or_else(|| ShapeError {
            what: "number of an archive".to_owned(),
            found: archive as u64,
            expected: format!("less than {}", archives.len()),
        })?;
        Ok(ring.rows)
    }

    /// Checks that there is an archive, with a state, and that there are as many values as its data
    /// sources need for `count` rows. Returns its number of rows.
    fn check(&self, archive: usize, values: usize, count: u32) -> Result<u32, Error> {
        let rows = self.rows(archive)?;
        let sources = self.file.definitions.layout.sources;
        let expected = sources * u64::from(count);
        if values as u64 != expected || self.state.archives.len() != self.file.places.len() {
            return Err(Error::Shape(ShapeError {
                what: format!("values for archive {archive}"),
                found: values as u64,
                expected: expected.to_string(),
            }));
        }
        Ok(rows)
    }
}

/// Writes an update, step by step as `docs/formats/portable-rrd.md` describes.
fn write<S: Storage>(
    file: &mut File<S>,
    slot: &Slot,
    bytes: &[u8],
    rewritten: &[Option<Vec<Value>>],
    durability: Durability,
) -> Result<(), Error> {
    let layout = &file.definitions.layout;
    let storage = &mut file.storage;
    let synced = durability == Durability::Synced;
    let mut any = false;
    for (archive, values) in rewritten.iter().enumerate() {
        let Some(values) = values else { continue };
        let bytes: Vec<u8> = values
            .iter()
            .flat_map(|value| value.to_bits().to_le_bytes())
            .collect();
        storage.write_at(layout.row_offset(archive, slot.places[archive], 0), &bytes)?;
        any = true;
    }
    if any && synced {
        storage.sync()?;
    }
    storage.write_at(layout.slot_offset(slot.number), bytes)?;
    if synced {
        storage.sync()?;
    }
    journal::write(storage, layout, &slot.places, &slot.runs)
}
