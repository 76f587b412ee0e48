//! A native file that is updated in place.

use std::io;
use std::sync::Arc;

use kymo_io::Storage;
use kymo_machine::{Machine, integer};

use super::definitions::Definitions;
use super::detect::locate;
use super::read::{self, Beginning};
use super::structs::{LAST_READING, SLOT};
use super::{Header, MOST_HEADERS, Numbers, read_beginning};
use crate::engine::{Change, StoreError};
use crate::fault::{Error, Findings};
use crate::model::validate::validate;
use crate::model::{Database, Scratch, State};
use crate::{Time, Value};

/// A native file that is updated in place: rows at once, the state by [`InPlace::commit`], in which
/// only what an update changes is written. Trailing bytes, padding and what integers leave of their
/// slots stay as they are.
///
/// Opening a file and updates of the direct way know the state by its bytes alone (`InPlace::parts`): it
/// is read from them on demand.
///
/// As with rrdtool, a program that is stopped within an update leaves part of it in the file.
#[derive(Debug)]
pub struct InPlace<S> {
    storage: S,
    definitions: Arc<Definitions>,
    /// The bytes of the state: all between the definitions and the values.
    image: Vec<u8>,
    /// Definitions and state, once they have been requested.
    database: Option<Box<Database>>,
    /// Whether the state in `image` is newer than that of `database`.
    ahead: bool,
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
    /// The bytes of the state, as they are in the file too when an update is done.
    pub(crate) state: &'a mut [u8],
    /// To be set where the state in these bytes is changed.
    pub(crate) ahead: &'a mut bool,
    /// To be set where it is not known what the file has.
    pub(crate) stale: &'a mut bool,
}

/// Bytes of rows that are written at once, unless a row is larger.
const AT_ONCE: usize = 1 << 16;

impl<S: Storage> InPlace<S> {
    /// Opens a file. Its values are not read. The machine that wrote it is detected if none is specified.
    ///
    /// # Errors
    ///
    /// If it is not a native file or is damaged, and those of reading.
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
        let (definitions, image) = examine(&storage, beginning, machine)?;
        Ok(Self::new(storage, Arc::new(definitions), image))
    }

    /// A file with these definitions, and a state in which nothing is wrong.
    pub(crate) fn new(storage: S, definitions: Arc<Definitions>, image: Vec<u8>) -> Self {
        Self {
            storage,
            definitions,
            image,
            database: None,
            ahead: true,
            seen: Vec::new(),
            rows: Vec::new(),
            stale: false,
        }
    }

    /// Reads the file again, which is of the same machine.
    ///
    /// # Errors
    ///
    /// Those of [`InPlace::open`].
    pub fn reload(&mut self) -> Result<(), StoreError> {
        // Until it is done, nothing is known.
        self.stale = true;
        let beginning = read_beginning(&self.storage, MOST_HEADERS)?;
        let machine = self.definitions.machine();
        let (definitions, image) = examine(&self.storage, beginning, Some(machine))?;
        self.definitions = Arc::new(definitions);
        self.image = image;
        self.database = None;
        self.ahead = true;
        self.stale = false;
        Ok(())
    }

    /// Checks whether others have changed the file, and reads what they have changed. Returns whether
    /// definitions are among that.
    ///
    /// # Errors
    ///
    /// Those of [`InPlace::open`].
    pub fn refresh(&mut self) -> Result<bool, StoreError> {
        let definitions = &*self.definitions;
        if self.stale || self.storage.length()? != definitions.length {
            self.reload()?;
            return Ok(true);
        }
        let live = definitions.bytes.len();
        if self.storage.holds(0, &[&definitions.bytes, &self.image])? {
            return Ok(false);
        }
        self.seen.resize(live + self.image.len(), 0);
        self.storage.read_at(0, &mut self.seen)?;
        if self.seen[..live] != *definitions.bytes {
            self.reload()?;
            return Ok(true);
        }
        if !definitions.sees_no_damage(&self.seen[live..]) {
            self.stale = true;
            let mut findings = Findings::default();
            let layout = &definitions.layout;
            let beginning = Beginning::new(&self.seen, definitions.length);
            let database = Database {
                state: read::state(
                    beginning,
                    layout,
                    &definitions.database.archives,
                    &mut findings,
                ),
                ..definitions.database.clone()
            };
            validate(
                &database,
                |place| Some(locate(layout, place)),
                &mut findings,
            );
            if let Some(damage) = findings.damage() {
                return Err(damage.clone().into());
            }
        }
        self.image.copy_from_slice(&self.seen[live..]);
        self.ahead = true;
        self.stale = false;
        Ok(false)
    }

    /// Definitions and state.
    pub fn database(&mut self) -> &Database {
        self.settled().0
    }

    /// What does not change while the file is open, unless others change it.
    pub(crate) fn definitions(&self) -> &Arc<Definitions> {
        &self.definitions
    }

    /// The time of the last update.
    pub fn last_update(&self) -> Time {
        let Definitions { layout, coding, .. } = &*self.definitions;
        let seconds = coding.time_at(&self.image, 0);
        let micros = layout.micros().map(|at| at - layout.live());
        let micros = micros.map_or(0, |at| coding.long_at(&self.image, at));
        let time = u32::try_from(micros).ok();
        let time = time.and_then(|micros| Time::from_micros(seconds, micros));
        time.unwrap_or(Time::from_seconds(seconds))
    }

    /// Definitions and state as they are now, the bytes of that state, and where it lies in them.
    fn settled(&mut self) -> (&mut Database, &mut [u8], &Definitions) {
        let definitions = &*self.definitions;
        let new = || Box::new(definitions.database.clone());
        let database = self.database.get_or_insert_with(new);
        if std::mem::take(&mut self.ahead) {
            let bytes = [&*definitions.bytes, &self.image].concat();
            let beginning = Beginning::new(&bytes, definitions.length);
            // What is unusual was found when the file was opened.
            let mut findings = Findings::default();
            let archives = &definitions.database.archives;
            database.state = read::state(beginning, &definitions.layout, archives, &mut findings);
        }
        (database, &mut self.image, definitions)
    }

    /// What an update changes, unless it is not known what is in the file.
    #[inline]
    pub(crate) fn parts(&mut self) -> Option<Parts<'_, S>> {
        (!self.stale).then_some(Parts {
            storage: &mut self.storage,
            state: &mut self.image,
            ahead: &mut self.ahead,
            stale: &mut self.stale,
        })
    }

    /// Whether something failed, so that the file is to be read again.
    pub(crate) fn is_stale(&self) -> bool {
        self.stale
    }

    /// Checks that the machine can hold a time.
    pub(crate) fn fits(&self, time: Time) -> Result<(), StoreError> {
        let (seconds, _) = time.to_micros();
        match integer::fits_sint(seconds, self.definitions.coding.time) {
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
    /// [`Change::prepared`] has announced for each.
    ///
    /// # Errors
    ///
    /// Those of writing.
    pub fn commit(&mut self, archives: bool) -> io::Result<()> {
        self.encode_sources();
        let layout = &self.definitions.layout;
        let changed = match archives {
            true => &self.image,
            false => &self.image[..layout.archive_state(0, 0) - layout.live()],
        };
        let written = self.storage.write_at(layout.live() as u64, changed);
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

    /// Where the file is, when it is no longer needed.
    pub fn into_storage(self) -> S {
        self.storage
    }

    /// The definitions and the bytes of the state. The file is closed.
    pub(crate) fn into_parts(self) -> (Arc<Definitions>, Vec<u8>) {
        (self.definitions, self.image)
    }

    fn encode_sources(&mut self) {
        let (database, image, Definitions { layout, coding, .. }) = self.settled();
        let state = &database.state;
        let (seconds, micros) = state.last_update.to_micros();
        coding.time(image, 0, seconds);
        if let Some(at) = layout.micros() {
            let micros = state.stray_micros.unwrap_or(i64::from(micros));
            coding.long(image, at - layout.live(), micros as u64);
        }
        let structs = layout.structs().source_state;
        let mut at = layout.source_state(0) - layout.live();
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
        let (database, image, Definitions { layout, coding, .. }) = self.settled();
        let kind = &database.archives[archive].kind;
        let state = &database.state.archives[archive];
        let under_way = Scratch::VALUE..=Scratch::UNKNOWN_POINTS;
        let structs = layout.structs().archive_state;
        for (source, scratch) in state.scratch.iter().enumerate() {
            let at = layout.archive_state(archive, source) + structs.slots - layout.live();
            let slots = image[at..].as_chunks_mut().0;
            for (slot, (bytes, &bits)) in slots.iter_mut().zip(&scratch.0).enumerate() {
                if ended || under_way.contains(&slot) {
                    coding.slot(bytes, kind.slot(slot), bits);
                }
            }
        }
        let pointer = layout.pointer(archive) - layout.live();
        coding.long(image, pointer, state.current_row);
    }

    /// Bytes of a row.
    fn row_size(&self) -> usize {
        self.definitions.layout.sources() * SLOT
    }

    /// Where a row is.
    fn offset(&self, archive: usize, row: u64) -> u64 {
        self.definitions.layout.values(archive) + row * self.row_size() as u64
    }

    /// Reads `rows` rows.
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
        let machine = self.definitions.machine();
        let bits = doubles
            .iter()
            .map(|double| machine.double_from_bytes(*double));
        values.clear();
        values.extend(bits.map(Value::from_bits));
        Ok(())
    }

    /// Writes the same row `count` times, at most up to the end of the ring.
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
                .map(|value| self.definitions.coding.value(*value));
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

/// Reads all but the values, and gives the bytes of the state.
fn examine<S: Storage>(
    storage: &S,
    beginning: Vec<u8>,
    machine: Option<&'static Machine>,
) -> Result<(Definitions, Vec<u8>), StoreError> {
    let length = storage.length()?;
    let (header, bytes) = Header::read_from(storage, beginning, machine)?;
    if let Some(damage) = header.findings.damage() {
        return Err(damage.clone().into());
    }
    let (live, end) = (header.layout.live(), header.layout.header_end());
    // A copy is as long as it must be, and what was read makes room for what is read next. A file may
    // become shorter while it is read.
    let image = bytes.get(live..end);
    let image = image.ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))?;
    let image = image.to_vec();
    let definitions = Definitions::new(header, Beginning::new(&bytes, length), machine);
    Ok((definitions, image))
}

impl<S: Storage> Change for InPlace<S> {
    fn state(&mut self) -> &mut State {
        &mut self.settled().0.state
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
        let (database, ..) = self.settled();
        let rows = database.archives[archive].rows;
        let current = database.state.archives[archive].current_row;
        let first = (current + 1) % rows;
        let before_end = count.min(rows - first);
        self.fill(archive, first, before_end, values)?;
        self.fill(archive, 0, count - before_end, values)?;
        self.settled().0.state.archives[archive].current_row = (current + count) % rows;
        Ok(())
    }

    fn prepared(&mut self, archive: usize, ended: bool) {
        self.encode(archive, ended);
    }

    fn values(&mut self, archive: usize) -> Result<Vec<Value>, StoreError> {
        let rows = self.definitions.database.archives[archive].rows;
        let mut values = Vec::new();
        self.read(archive, 0, rows, &mut values)?;
        Ok(values)
    }

    fn rewrite(&mut self, archive: usize, values: Vec<Value>) -> Result<(), StoreError> {
        let doubles = values
            .iter()
            .map(|value| self.definitions.coding.value(*value));
        self.rows.clear();
        self.rows.extend(doubles.flatten());
        let offset = self.definitions.layout.values(archive);
        Ok(self.storage.write_at(offset, &self.rows)?)
    }
}
