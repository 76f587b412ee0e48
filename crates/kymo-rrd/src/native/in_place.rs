//! A native file that is updated in place.

use std::io;

use kymo_io::Storage;
use kymo_machine::float::is_nan;
use kymo_machine::{ByteOrder, FloatOrder, Machine, Width, integer};

use super::Header;
use super::detect::locate;
use super::layout::Layout;
use super::read::{self, Beginning};
use super::structs::{LAST_READING, SLOT, SLOTS};
use crate::engine::{Change, StoreError};
use crate::fault::{Error, Findings};
use crate::judge::judge;
use crate::model::{Archive, Database, Scratch, Slot, State};
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
    /// Of each archive the slots of its preparations that are used.
    used: Vec<Used>,
    /// The bytes of all but the values.
    image: Vec<u8>,
    /// Those that others may have left in the file.
    seen: Vec<u8>,
    /// A row or several, before they are written.
    rows: Vec<u8>,
    /// Whether something failed, so that the file may hold another state.
    stale: bool,
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
        let length = storage.length()?;
        let (header, image) = examine(&storage, machine)?;
        let machine = header.detection.machine;
        Ok(Self {
            storage,
            length,
            machine,
            layout: header.layout,
            used: used(&header.database),
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
        let (header, image) = examine(&self.storage, Some(self.machine))?;
        self.layout = header.layout;
        self.used = used(&header.database);
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
        self.seen.resize(self.image.len(), 0);
        self.storage.read_at(0, &mut self.seen)?;
        if self.seen == self.image {
            return Ok(false);
        }
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
        coding.integer(image, self.layout.live(), coding.time, seconds as u64);
        if let Some(at) = self.layout.micros() {
            let micros = state.stray_micros.unwrap_or(i64::from(micros));
            coding.integer(image, at, coding.long, micros as u64);
        }
        let structs = self.layout.structs().source_state;
        let states = image[self.layout.source_state(0)..].chunks_exact_mut(structs.size);
        for (source, bytes) in state.sources.iter().zip(states) {
            let reading = source.last_reading.as_bytes();
            let length = reading.len().min(LAST_READING - 1);
            let (text, rest) = bytes.split_at_mut(LAST_READING);
            text.fill(0);
            text[..length].copy_from_slice(&reading[..length]);
            let slots = &mut rest[structs.slots - LAST_READING..];
            if let ([unknown, value, ..], _) = slots.as_chunks_mut() {
                coding.slot(unknown, Slot::Counter, source.unknown_seconds);
                coding.slot(value, Slot::Value, source.value.to_bits());
            }
        }
    }

    fn encode_archives(&mut self) {
        let Self { coding, image, .. } = self;
        let structs = self.layout.structs().archive_state;
        let archives = self.database.state.archives.iter();
        for (index, (state, used)) in archives.zip(&self.used).enumerate() {
            let mut at = self.layout.archive_state(index, 0) + structs.slots;
            for scratch in &state.scratch {
                let bytes = image[at..].first_chunk_mut::<{ SLOTS * SLOT }>();
                let slots = bytes.map(|bytes| bytes.as_chunks_mut().0);
                if let Some(slots) = slots.and_then(<[_]>::first_chunk_mut) {
                    match used {
                        Used::Consolidation => coding.slots(slots, scratch, &CONSOLIDATION),
                        Used::Other(used) => coding.slots(slots, scratch, used),
                    }
                }
                at += structs.size;
            }
            let pointer = self.layout.pointer(index);
            coding.integer(image, pointer, coding.long, state.current_row);
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
        if count == 0 {
            return Ok(());
        }
        let row_size = self.row_size().max(1);
        let at_once = count.min((AT_ONCE / row_size).max(1) as u64);
        self.rows.clear();
        for _ in 0..at_once {
            let doubles = values
                .iter()
                .map(|value| self.coding.value(value.to_bits()));
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
    machine: Option<&'static Machine>,
) -> Result<(Header, Vec<u8>), StoreError> {
    let (header, mut bytes) = Header::read(storage, machine)?;
    if let Some(damage) = header.findings.damage() {
        return Err(damage.clone().into());
    }
    bytes.truncate(header.layout.header_end());
    Ok((header, bytes))
}

/// Which slots of an archive's preparations are used, and what they hold.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Used {
    /// [`CONSOLIDATION`], for which the compiler makes a loop of its own.
    Consolidation,
    Other(Vec<(usize, Slot)>),
}

/// The slots that consolidation uses.
const CONSOLIDATION: [(usize, Slot); 4] = [
    (Scratch::VALUE, Slot::Value),
    (Scratch::UNKNOWN_POINTS, Slot::Counter),
    (Scratch::PRIMARY, Slot::Value),
    (Scratch::SECONDARY, Slot::Value),
];

/// Which slots the archives use.
fn used(database: &Database) -> Vec<Used> {
    let used = |archive: &Archive| {
        let slots = (0..SLOTS).map(|slot| (slot, archive.kind.slot(slot)));
        let used: Vec<_> = slots.filter(|(_, kind)| *kind != Slot::Unused).collect();
        match used == CONSOLIDATION {
            true => Used::Consolidation,
            false => Used::Other(used),
        }
    };
    database.archives.iter().map(used).collect()
}

/// How a machine writes numbers.
#[derive(Clone, Copy, Debug)]
struct Coding {
    order: ByteOrder,
    floats: FloatOrder,
    long: Width,
    time: Width,
    nan: u64,
    /// Whether everything in a slot is a little-endian number of 64 bits, as on most machines.
    plain: bool,
}

impl Coding {
    fn of(machine: &Machine) -> Self {
        let (order, floats) = (machine.byte_order(), machine.float_order());
        let little = order == ByteOrder::Little && floats == FloatOrder::Little;
        Self {
            order,
            floats,
            long: machine.long(),
            time: machine.time(),
            nan: machine.file_nan(),
            plain: little && machine.long() == Width::W64,
        }
    }

    /// The bytes of a value.
    #[inline]
    fn value(&self, bits: u64) -> [u8; SLOT] {
        self.floats
            .write(if is_nan(bits) { self.nan } else { bits })
    }

    /// Writes the slots that are used.
    #[inline]
    fn slots(&self, bytes: &mut [[u8; SLOT]; SLOTS], scratch: &Scratch, used: &[(usize, Slot)]) {
        for &(slot, kind) in used {
            self.slot(&mut bytes[slot], kind, scratch.0[slot]);
        }
    }

    /// Writes a slot. What an integer leaves of it stays.
    #[inline]
    fn slot(&self, bytes: &mut [u8; SLOT], kind: Slot, bits: u64) {
        match kind {
            Slot::Value if self.plain => {
                *bytes = if is_nan(bits) { self.nan } else { bits }.to_le_bytes();
            }
            Slot::Value => *bytes = self.value(bits),
            Slot::Counter if self.plain => *bytes = bits.to_le_bytes(),
            Slot::Counter => self.integer(bytes, 0, self.long, bits),
            Slot::History => *bytes = bits.to_le_bytes(),
            Slot::Unused => {}
        }
    }

    /// Writes the low bits of an integer, as C programs of the machine do.
    #[inline]
    fn integer(&self, image: &mut [u8], at: usize, width: Width, value: u64) {
        if self.plain && width == Width::W64 {
            if let Some(bytes) = image.get_mut(at..).and_then(<[u8]>::first_chunk_mut) {
                *bytes = value.to_le_bytes();
            }
            return;
        }
        let written = integer::write(image, at, width, self.order, value);
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
        if let (1, [value]) = (count, values) {
            let offset = self.offset(archive, first);
            let bytes = self.coding.value(value.to_bits());
            self.storage.write_at(offset, &bytes)?;
        } else {
            let before_end = count.min(rows - first);
            self.fill(archive, first, before_end, values)?;
            self.fill(archive, 0, count - before_end, values)?;
        }
        self.database.state.archives[archive].current_row = (current + count) % rows;
        Ok(())
    }

    fn values(&mut self, archive: usize) -> Result<Vec<Value>, StoreError> {
        let rows = self.database.archives[archive].rows;
        let mut values = Vec::new();
        self.read(archive, 0, rows, &mut values)?;
        Ok(values)
    }

    fn rewrite(&mut self, archive: usize, values: Vec<Value>) -> Result<(), StoreError> {
        let doubles = values
            .iter()
            .map(|value| self.coding.value(value.to_bits()));
        self.rows.clear();
        self.rows.extend(doubles.flatten());
        let offset = self.layout.values(archive);
        Ok(self.storage.write_at(offset, &self.rows)?)
    }
}
