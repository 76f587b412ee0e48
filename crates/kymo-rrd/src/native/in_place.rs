//! A native file that is updated in place.

use std::io;

use kymo_io::Storage;
use kymo_machine::{Machine, Width, integer};

use super::layout::Layout;
use super::structs::{LAST_READING, SLOT};
use super::write::stored;
use super::{File, Header};
use crate::engine::{Change, StoreError};
use crate::fault::Error;
use crate::model::{Database, Slot, State};
use crate::{Time, Value};

/// A native file that is updated in place: rows at once, the state by [`InPlace::commit`], in which
/// only what an update changes is written. Trailing bytes, padding and what integers leave of their
/// slots stay as they are.
///
/// As with rrdtool, a program that is stopped within an update leaves part of it in the file.
#[derive(Debug)]
pub struct InPlace<S> {
    storage: S,
    machine: &'static Machine,
    layout: Layout,
    database: Database,
    /// The bytes of the state: from the time of the last update to the values.
    bytes: Vec<u8>,
    /// A row or several, before they are written.
    rows: Vec<u8>,
    /// Whether something failed, so that the file may hold another state.
    stale: bool,
}

/// Bytes of rows that are written at once, unless a row is larger.
const AT_ONCE: usize = 1 << 16;

impl<S: Storage> InPlace<S> {
    /// Opens a file. All of it is read once. The machine that wrote it is found where none is told.
    ///
    /// # Errors
    ///
    /// Where it is no native file or a damaged one, and those of reading.
    pub fn open(storage: S, machine: Option<&'static Machine>) -> Result<Self, StoreError> {
        let (header, bytes) = examine(&storage, machine)?;
        Ok(Self {
            machine: header.detection.machine,
            layout: header.layout,
            database: header.database,
            bytes,
            rows: Vec::new(),
            stale: false,
            storage,
        })
    }

    /// Reads the file again, which is of the same machine.
    ///
    /// # Errors
    ///
    /// Those of [`InPlace::open`].
    pub fn reload(&mut self) -> Result<(), StoreError> {
        let (header, bytes) = examine(&self.storage, Some(self.machine))?;
        self.layout = header.layout;
        self.database = header.database;
        self.bytes = bytes;
        self.stale = false;
        Ok(())
    }

    /// Definitions and state.
    pub fn database(&self) -> &Database {
        &self.database
    }

    /// Checks that the machine can hold a time, and that the state is that of the file: after an
    /// error it is read again.
    pub(crate) fn fits(&mut self, time: Time) -> Result<(), StoreError> {
        if self.stale {
            self.reload()?;
        }
        let (seconds, _) = time.to_micros();
        if integer::fits_sint(seconds, self.machine.time()) {
            return Ok(());
        }
        let found = format!("{seconds} s after 1970");
        let expected = format!(
            "at most {}, in January 2038: its time_t has 32 bits",
            i32::MAX
        );
        Err(Error::new("last update", None, found, expected).into())
    }

    /// Marks the state as one that may not be that of the file.
    pub(crate) fn forget(&mut self) {
        self.stale = true;
    }

    /// Writes the state; that of the archives only where they have changed.
    ///
    /// # Errors
    ///
    /// Those of writing.
    pub fn commit(&mut self, archives: bool) -> io::Result<()> {
        self.encode_sources();
        if archives {
            self.encode_archives();
        }
        let begin = self.layout.live();
        let end = match archives {
            true => self.layout.header_end(),
            false => self.layout.archive_state(0, 0),
        };
        let written = self
            .storage
            .write_at(begin as u64, &self.bytes[..end - begin]);
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

    /// Where the file is, when it is not needed any more.
    pub fn into_storage(self) -> S {
        self.storage
    }

    fn encode_sources(&mut self) {
        let mut image = Image {
            begin: self.layout.live(),
            machine: self.machine,
            bytes: &mut self.bytes,
        };
        let state = &self.database.state;
        let long = self.machine.long();
        let (seconds, micros) = state.last_update.to_micros();
        image.integer(self.layout.live(), self.machine.time(), seconds as u64);
        if let Some(at) = self.layout.micros() {
            let micros = state.stray_micros.unwrap_or(i64::from(micros));
            image.integer(at, long, micros as u64);
        }
        let slots = self.layout.structs().source_state.slots;
        for (index, source) in state.sources.iter().enumerate() {
            let at = self.layout.source_state(index);
            let reading = source.last_reading.as_bytes();
            let mut text = [0; LAST_READING];
            let length = reading.len().min(LAST_READING - 1);
            text[..length].copy_from_slice(&reading[..length]);
            image.put(at, &text);
            image.integer(at + slots, long, source.unknown_seconds);
            image.put(at + slots + SLOT, &stored(self.machine, source.value));
        }
    }

    fn encode_archives(&mut self) {
        let mut image = Image {
            begin: self.layout.live(),
            machine: self.machine,
            bytes: &mut self.bytes,
        };
        let long = self.machine.long();
        let slots = self.layout.structs().archive_state.slots;
        let states = self.database.archives.iter();
        for (index, (archive, state)) in states.zip(&self.database.state.archives).enumerate() {
            for (source, scratch) in state.scratch.iter().enumerate() {
                let at = self.layout.archive_state(index, source) + slots;
                for (slot, &bits) in scratch.0.iter().enumerate() {
                    let at = at + slot * SLOT;
                    match archive.kind.slot(slot) {
                        Slot::Value => image.put(at, &stored(self.machine, scratch.value(slot))),
                        Slot::Counter => image.integer(at, long, bits),
                        Slot::History => image.put(at, &bits.to_le_bytes()),
                        Slot::Unused => {}
                    }
                }
            }
            image.integer(self.layout.pointer(index), long, state.current_row);
        }
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
        let row_size = self.row_size().max(1);
        let at_once = count.min((AT_ONCE / row_size).max(1) as u64);
        self.rows.clear();
        for _ in 0..at_once {
            let doubles = values.iter().map(|value| stored(self.machine, *value));
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

/// Reads a file: its definitions, and the bytes of its state.
fn examine<S: Storage>(
    storage: &S,
    machine: Option<&'static Machine>,
) -> Result<(Header, Vec<u8>), StoreError> {
    let length = usize::try_from(storage.length()?).map_err(|_| io::ErrorKind::FileTooLarge);
    let mut bytes = vec![0; length.map_err(io::Error::from)?];
    storage.read_at(0, &mut bytes)?;
    let header = File::open(&bytes, machine)?.header;
    let state = bytes
        .get(header.layout.live()..header.layout.header_end())
        .unwrap_or_default()
        .to_vec();
    Ok((header, state))
}

/// The bytes of a state, which are told by their places in the file.
struct Image<'a> {
    begin: usize,
    machine: &'static Machine,
    bytes: &'a mut [u8],
}

impl Image<'_> {
    fn put(&mut self, at: usize, bytes: &[u8]) {
        let at = at - self.begin;
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// Writes the low bits of an integer, as C programs of the machine do.
    fn integer(&mut self, at: usize, width: Width, value: u64) {
        let order = self.machine.byte_order();
        let written = integer::write(self.bytes, at - self.begin, width, order, value);
        debug_assert!(written.is_some(), "the layout has room for its members");
    }
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
        let state = &mut self.database.state.archives[archive];
        state.current_row = (current + count) % rows;
        Ok(())
    }

    fn values(&mut self, archive: usize) -> Result<Vec<Value>, StoreError> {
        let rows = self.database.archives[archive].rows;
        let mut values = Vec::new();
        self.read(archive, 0, rows, &mut values)?;
        Ok(values)
    }

    fn rewrite(&mut self, archive: usize, values: Vec<Value>) -> Result<(), StoreError> {
        let doubles = values.iter().map(|value| stored(self.machine, *value));
        self.rows.clear();
        self.rows.extend(doubles.flatten());
        let offset = self.layout.values(archive);
        Ok(self.storage.write_at(offset, &self.rows)?)
    }
}
