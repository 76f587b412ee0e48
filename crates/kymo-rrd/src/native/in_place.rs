//! A native file that is updated in place.

use std::io;

use kymo_io::Storage;
use kymo_machine::{Machine, integer};

use super::detect::locate;
use super::layout::Layout;
use super::read::{self, Beginning};
use super::structs::{LAST_READING, SLOT};
use super::{Coding, Header, MOST_HEADERS, Numbers, read_beginning};
use crate::engine::{Change, StoreError};
use crate::fault::{Error, Findings};
use crate::judge::judge;
use crate::model::{Database, Scratch, State};
use crate::{Time, Value};

/// A native file that is updated in place: rows at once, the state by [`InPlace::commit`], in which
/// only what an update changes is written. Trailing bytes, padding and what integers leave of their
/// slots stay as they are.
///
/// As with rrdtool, a program that is stopped within an update leaves part of it in the file.
#[derive(Debug)]
pub struct InPlace<S> {
    storage: S,
    length: u64,
    machine: &'static Machine,
    layout: Layout,
    database: Database,
    coding: Coding,
    /// The bytes of all but the values.
    image: Vec<u8>,
    /// Those that others may have left in the file.
    seen: Vec<u8>,
    /// A row or several, before they are written.
    rows: Vec<u8>,
    /// Whether something failed, so that the file may hold another state.
    stale: bool,
}

/// What an update changes.
pub(crate) struct Parts<'a, S> {
    pub(crate) storage: &'a mut S,
    pub(crate) coding: &'a Coding,
    pub(crate) state: &'a mut State,
    /// The bytes of all but the values, as they are in the file too when an update is done.
    pub(crate) image: &'a mut [u8],
}

/// Bytes of rows that are written at once, unless a row is larger.
const AT_ONCE: usize = 1 << 16;

impl<S: Storage> InPlace<S> {
    /// Opens a file. Its values are not read. The machine that wrote it is found where none is told.
    ///
    /// # Errors
    ///
    /// Where it is no native file or a damaged one, and those of reading.
    pub fn open(storage: S, machine: Option<&'static Machine>) -> Result<Self, StoreError> {
        let beginning = read_beginning(&storage, MOST_HEADERS)?;
        Self::open_from(storage, beginning, machine)
    }

    /// The same, where the first [`MOST_HEADERS`] bytes are known, or all if there are less.
    pub(crate) fn open_from(
        storage: S,
        beginning: Vec<u8>,
        machine: Option<&'static Machine>,
    ) -> Result<Self, StoreError> {
        let length = storage.length()?;
        let (header, image) = examine(&storage, beginning, machine)?;
        let machine = header.detection.machine;
        Ok(Self {
            storage,
            length,
            machine,
            layout: header.layout,
            database: header.database,
            coding: Coding::of(machine),
            seen: Vec::new(),
            image,
            rows: Vec::new(),
            stale: false,
        })
    }

    /// Reads the file again, which is of the same machine.
    ///
    /// # Errors
    ///
    /// Those of [`InPlace::open`].
    pub fn reload(&mut self) -> Result<(), StoreError> {
        // Until it is done, nothing is known.
        self.stale = true;
        self.length = self.storage.length()?;
        let beginning = read_beginning(&self.storage, MOST_HEADERS)?;
        let (header, image) = examine(&self.storage, beginning, Some(self.machine))?;
        self.layout = header.layout;
        self.database = header.database;
        self.image = image;
        self.stale = false;
        Ok(())
    }

    /// Sees whether others have changed the file, and reads what they have changed. Tells whether
    /// definitions are among that.
    ///
    /// # Errors
    ///
    /// Those of [`InPlace::open`].
    pub fn refresh(&mut self) -> Result<bool, StoreError> {
        if self.stale || self.storage.length()? != self.length {
            self.reload()?;
            return Ok(true);
        }
        if self.storage.holds(0, &self.image)? {
            return Ok(false);
        }
        self.seen.resize(self.image.len(), 0);
        self.storage.read_at(0, &mut self.seen)?;
        let definitions = ..self.layout.live();
        if self.seen[definitions] != self.image[definitions] {
            self.reload()?;
            return Ok(true);
        }
        self.stale = true;
        let mut findings = Findings::default();
        let beginning = Beginning::new(&self.seen, self.length);
        let archives = &self.database.archives;
        self.database.state = read::state(beginning, &self.layout, archives, &mut findings);
        let locate = |place| Some(locate(&self.layout, place));
        judge(&self.database, locate, &mut findings);
        if let Some(damage) = findings.damage() {
            return Err(damage.clone().into());
        }
        std::mem::swap(&mut self.image, &mut self.seen);
        self.stale = false;
        Ok(false)
    }

    /// Definitions and state.
    pub fn database(&self) -> &Database {
        &self.database
    }

    /// Where everything is.
    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    /// How numbers are written.
    pub(crate) fn coding(&self) -> &Coding {
        &self.coding
    }

    /// What an update changes, unless it is not known what is in the file.
    #[inline]
    pub(crate) fn parts(&mut self) -> Option<Parts<'_, S>> {
        (!self.stale).then_some(Parts {
            storage: &mut self.storage,
            coding: &self.coding,
            state: &mut self.database.state,
            image: &mut self.image,
        })
    }

    /// Whether something failed, so that the file is to be read again.
    pub(crate) fn is_stale(&self) -> bool {
        self.stale
    }

    /// Checks that the machine can hold a time.
    pub(crate) fn fits(&self, time: Time) -> Result<(), StoreError> {
        let (seconds, _) = time.to_micros();
        match integer::fits_sint(seconds, self.coding.time) {
            true => Ok(()),
            false => Err(Self::too_late(seconds)),
        }
    }

    #[cold]
    fn too_late(seconds: i64) -> StoreError {
        let found = format!("{seconds} s after 1970");
        let expected = format!(
            "at most {}, in January 2038: its time_t has 32 bits",
            i32::MAX
        );
        Error::new("last update", None, found, expected).into()
    }

    /// Marks the state as one that may not be that of the file.
    pub(crate) fn forget(&mut self) {
        self.stale = true;
    }

    /// Writes the state; that of the archives only where they have changed, which
    /// [`Change::prepared`] has told of each.
    ///
    /// # Errors
    ///
    /// Those of writing.
    pub fn commit(&mut self, archives: bool) -> io::Result<()> {
        self.encode_sources();
        let begin = self.layout.live();
        let end = match archives {
            true => self.layout.header_end(),
            false => self.layout.archive_state(0, 0),
        };
        let written = self.storage.write_at(begin as u64, &self.image[begin..end]);
        self.stale |= written.is_err();
        written
    }

    /// Waits until all updates are on the disk.
    ///
    /// # Errors
    ///
    /// Those of the storage.
    pub fn sync(&mut self) -> io::Result<()> {
        self.storage.sync()
    }

    /// Where the file is, to be locked and unlocked. What is written there is not known here.
    pub fn storage_mut(&mut self) -> &mut S {
        &mut self.storage
    }

    /// Where the file is, when it is not needed any more.
    pub fn into_storage(self) -> S {
        self.storage
    }

    fn encode_sources(&mut self) {
        let Self { coding, image, .. } = self;
        let state = &self.database.state;
        let (seconds, micros) = state.last_update.to_micros();
        coding.time(image, self.layout.live(), seconds);
        if let Some(at) = self.layout.micros() {
            let micros = state.stray_micros.unwrap_or(i64::from(micros));
            coding.long(image, at, micros as u64);
        }
        let structs = self.layout.structs().source_state;
        let mut at = self.layout.source_state(0);
        for source in &state.sources {
            if let Some(text) = image[at..].first_chunk_mut::<LAST_READING>() {
                let reading = source.last_reading.as_bytes();
                let length = reading.len().min(LAST_READING - 1);
                *text = [0; LAST_READING];
                text[..length].copy_from_slice(&reading[..length]);
            }
            if let ([unknown, value, ..], _) = image[at + structs.slots..].as_chunks_mut() {
                coding.count(unknown, source.unknown_seconds);
                *value = coding.value(source.value);
            }
            at += structs.size;
        }
    }

    /// Puts what an archive prepares into the image: all of it where a row has ended.
    fn encode(&mut self, archive: usize, ended: bool) {
        let Self { coding, image, .. } = self;
        let kind = &self.database.archives[archive].kind;
        let state = &self.database.state.archives[archive];
        let under_way = Scratch::VALUE..=Scratch::UNKNOWN_POINTS;
        let structs = self.layout.structs().archive_state;
        for (source, scratch) in state.scratch.iter().enumerate() {
            let at = self.layout.archive_state(archive, source) + structs.slots;
            let slots = image[at..].as_chunks_mut().0;
            for (slot, (bytes, &bits)) in slots.iter_mut().zip(&scratch.0).enumerate() {
                if ended || under_way.contains(&slot) {
                    coding.slot(bytes, kind.slot(slot), bits);
                }
            }
        }
        let pointer = self.layout.pointer(archive);
        coding.long(image, pointer, state.current_row);
    }

    /// Bytes of a row.
    fn row_size(&self) -> usize {
        self.layout.sources() * SLOT
    }

    /// Where a row is.
    fn offset(&self, archive: usize, row: u64) -> u64 {
        self.layout.values(archive) + row * self.row_size() as u64
    }

    /// Reads so many rows.
    fn read(
        &mut self,
        archive: usize,
        row: u64,
        rows: u64,
        values: &mut Vec<Value>,
    ) -> io::Result<()> {
        let size = usize::try_from(rows)
            .ok()
            .and_then(|rows| rows.checked_mul(self.row_size()))
            .ok_or(io::ErrorKind::FileTooLarge)?;
        self.rows.resize(size, 0);
        let offset = self.offset(archive, row);
        self.storage.read_at(offset, &mut self.rows)?;
        let (doubles, _) = self.rows.as_chunks::<SLOT>();
        let bits = doubles
            .iter()
            .map(|double| self.machine.double_from_bytes(*double));
        values.clear();
        values.extend(bits.map(Value::from_bits));
        Ok(())
    }

    /// Writes the same row so many times, up to the end of the ring at most.
    fn fill(&mut self, archive: usize, row: u64, count: u64, values: &[Value]) -> io::Result<()> {
        if count == 0 {
            return Ok(());
        }
        let row_size = self.row_size().max(1);
        let at_once = count.min((AT_ONCE / row_size).max(1) as u64);
        self.rows.clear();
        for _ in 0..at_once {
            let doubles = values.iter().map(|value| self.coding.value(*value));
            self.rows.extend(doubles.flatten());
        }
        let mut done = 0;
        while done < count {
            let now = (count - done).min(at_once);
            let offset = self.offset(archive, row + done);
            self.storage
                .write_at(offset, &self.rows[..now as usize * row_size])?;
            done += now;
        }
        Ok(())
    }
}

/// Reads all but the values, and gives the bytes of that.
fn examine<S: Storage>(
    storage: &S,
    beginning: Vec<u8>,
    machine: Option<&'static Machine>,
) -> Result<(Header, Vec<u8>), StoreError> {
    let (header, mut bytes) = Header::read_from(storage, beginning, machine)?;
    if let Some(damage) = header.findings.damage() {
        return Err(damage.clone().into());
    }
    bytes.truncate(header.layout.header_end());
    bytes.shrink_to_fit();
    Ok((header, bytes))
}

impl<S: Storage> Change for InPlace<S> {
    fn state(&mut self) -> &mut State {
        &mut self.database.state
    }

    fn row(&mut self, archive: usize, row: u64, values: &mut Vec<Value>) -> Result<(), StoreError> {
        Ok(self.read(archive, row, 1, values)?)
    }

    fn write_rows(
        &mut self,
        archive: usize,
        count: u64,
        values: &[Value],
    ) -> Result<(), StoreError> {
        let rows = self.database.archives[archive].rows;
        let current = self.database.state.archives[archive].current_row;
        let first = (current + 1) % rows;
        let before_end = count.min(rows - first);
        self.fill(archive, first, before_end, values)?;
        self.fill(archive, 0, count - before_end, values)?;
        self.database.state.archives[archive].current_row = (current + count) % rows;
        Ok(())
    }

    fn prepared(&mut self, archive: usize, ended: bool) {
        self.encode(archive, ended);
    }

    fn values(&mut self, archive: usize) -> Result<Vec<Value>, StoreError> {
        let rows = self.database.archives[archive].rows;
        let mut values = Vec::new();
        self.read(archive, 0, rows, &mut values)?;
        Ok(values)
    }

    fn rewrite(&mut self, archive: usize, values: Vec<Value>) -> Result<(), StoreError> {
        let doubles = values.iter().map(|value| self.coding.value(*value));
        self.rows.clear();
        self.rows.extend(doubles.flatten());
        let offset = self.layout.values(archive);
        Ok(self.storage.write_at(offset, &self.rows)?)
    }
}
