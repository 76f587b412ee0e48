//! The journal: what was acknowledged and is not yet in the files of its databases.
//!
//! It is a directory of files with ascending numbers. One is appended to; when
//! [everything is written](crate::store::Timing::flush_interval), a new one takes its place and the
//! others are removed. A file begins with `KYMOJRN1`; then come groups: the length of what follows the
//! head (4 bytes), its CRC-32C (4), and entries. An entry is a kind (1), the length of a path (2), the
//! path, and of updates a [record](crate::store). All numbers are little-endian.
//!
//! A group is written by one call of the system before anything in it is acknowledged, so that a
//! program that is killed loses none. What a machine that stops leaves half-written was not
//! acknowledged where [`Options::durable`] is set; the checksum tells it.

mod replay;

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crc32c::crc32c;
use kymo_io::{Locking, lock};

pub use replay::{Entry, replay};

/// What a file begins with.
pub const MAGIC: &[u8; 8] = b"KYMOJRN1";
/// The length and the checksum of a group.
const HEAD: usize = 8;
const UPDATE: u8 = 1;
const FORGET: u8 = 2;
/// The names of files, before their numbers.
const NAME: &str = "kymo.journal.";
/// What the name of a file ends with that was not read to its end.
const DAMAGED: &str = ".damaged";
/// A file is not longer than so many times what is told, even if what it has cannot be written.
const MOST_TIMES: u64 = 8;

/// Where the journal is, and what it must survive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The directory.
    pub directory: PathBuf,
    /// Above so many bytes everything is written, and a new file begun.
    pub most_bytes: u64,
    /// Whether what is acknowledged survives that the machine stops, and not the program only.
    pub durable: bool,
}

/// A journal that is open.
#[derive(Debug)]
pub struct Journal {
    options: Options,
    active: Mutex<Active>,
    /// Tells that [`Active::synced`] has grown, or nobody syncs any more.
    synced: Condvar,
    long: AtomicBool,
    /// Bytes that were written since it was opened.
    pub bytes: AtomicU64,
    /// How often a new file was begun.
    pub rotations: AtomicU64,
    /// How often it could not be written.
    pub errors: AtomicU64,
    /// Held as long as the journal is open.
    _lock: File,
}

/// The file that is appended to.
#[derive(Debug)]
struct Active {
    file: Arc<File>,
    number: u64,
    length: u64,
    /// Groups that were written, and those of them that are on the disk.
    written: u64,
    synced_groups: u64,
    syncing: bool,
    /// Whether half a group stands at its end, so that nothing may stand behind.
    torn: bool,
}

impl Journal {
    /// Opens a journal, and tells the files that were left there.
    ///
    /// # Errors
    ///
    /// `WouldBlock` where another program has it open; those of the system.
    pub(crate) fn open(options: Options) -> io::Result<(Self, Vec<PathBuf>)> {
        let directory = &options.directory;
        std::fs::create_dir_all(directory)?;
        let locked = File::create(directory.join("lock"))?;
        lock(&locked, Locking::Try).map_err(|error| {
            let text = format!(
                "'{}': another program uses it: {error}",
                directory.display()
            );
            io::Error::new(error.kind(), text)
        })?;
        let left = files(directory, "")?;
        let damaged = files(directory, DAMAGED)?;
        let used = left.last().max(damaged.last());
        let number = used.map_or(1, |(number, _)| number + 1);
        let active = Active::begin(directory, number)?;
        let journal = Self {
            active: Mutex::new(active),
            synced: Condvar::new(),
            long: AtomicBool::new(false),
            bytes: AtomicU64::new(0),
            rotations: AtomicU64::new(0),
            errors: AtomicU64::new(0),
            _lock: locked,
            options,
        };
        Ok((journal, left.into_iter().map(|(_, path)| path).collect()))
    }

    /// Appends a group: when this returns, it is acknowledged.
    ///
    /// # Errors
    ///
    /// `StorageFull` where the file has become far longer than was told; those of the system. Then the group
    /// is not in the journal.
    pub(crate) fn append(&self, group: &mut [u8]) -> io::Result<()> {
        seal(group).ok_or(io::ErrorKind::InvalidInput)?;
        let done = self.write(group);
        if done.is_err() {
            self.errors.fetch_add(1, Relaxed);
        }
        done
    }

    fn write(&self, group: &[u8]) -> io::Result<()> {
        let mut active = self.active();
        let most = self.options.most_bytes;
        if active.length > most.saturating_mul(MOST_TIMES) {
            return Err(io::Error::new(
                io::ErrorKind::StorageFull,
                "the journal is too long",
            ));
        }
        if active.torn {
            let text = "the journal has half a group, and waits for a new file";
            return Err(io::Error::other(text));
        }
        if let Err(error) = (&*active.file).write_all(group) {
            // What was written of it must not stand before the next.
            active.torn = active.file.set_len(active.length).is_err();
            if active.torn {
                self.long.store(true, Relaxed);
            }
            return Err(error);
        }
        active.length += group.len() as u64;
        active.written += 1;
        self.bytes.fetch_add(group.len() as u64, Relaxed);
        if active.length > most {
            self.long.store(true, Relaxed);
        }
        match self.options.durable {
            true => self.sync(active),
            false => Ok(()),
        }
    }

    /// Waits until all that was written is on the disk: one thread syncs for all that have
    /// written before it began.
    fn sync<'a>(&'a self, mut active: MutexGuard<'a, Active>) -> io::Result<()> {
        let wanted = active.written;
        while active.synced_groups < wanted {
            if active.syncing {
                active = self
                    .synced
                    .wait(active)
                    .unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            active.syncing = true;
            let (file, all) = (Arc::clone(&active.file), active.written);
            drop(active);
            let done = file.sync_data();
            active = self.active();
            active.syncing = false;
            if done.is_ok() {
                active.synced_groups = active.synced_groups.max(all);
            }
            self.synced.notify_all();
            done?;
        }
        Ok(())
    }

    /// Whether a new file is to be begun: this one is longer than was told, or torn.
    pub(crate) fn is_long(&self) -> bool {
        self.long.load(Relaxed)
    }

    /// Begins a new file, and tells those before it. They are removed when all that they have is in the
    /// files of databases, or in the new one.
    ///
    /// # Errors
    ///
    /// Those of the system; then the old one is appended to.
    pub(crate) fn rotate(&self) -> io::Result<Vec<PathBuf>> {
        let mut active = self.active();
        let directory = &self.options.directory;
        if self.options.durable {
            active.file.sync_data()?;
        }
        let next = Active::begin(directory, active.number + 1)?;
        let (written, syncing) = (active.written, active.syncing);
        *active = Active {
            written,
            synced_groups: written,
            syncing,
            ..next
        };
        self.long.store(false, Relaxed);
        self.rotations.fetch_add(1, Relaxed);
        let number = active.number;
        drop(active);
        let mut before = files(directory, "")?;
        before.retain(|(found, _)| *found < number);
        Ok(before.into_iter().map(|(_, path)| path).collect())
    }

    /// Removes the file that is appended to: nothing is pending, and nothing is accepted any more.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub(crate) fn remove(&self) -> io::Result<()> {
        let number = self.active().number;
        std::fs::remove_file(path(&self.options.directory, number))
    }

    /// What was asked for.
    pub fn options(&self) -> &Options {
        &self.options
    }

    fn active(&self) -> MutexGuard<'_, Active> {
        self.active.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Active {
    fn begin(directory: &Path, number: u64) -> io::Result<Self> {
        let path = path(directory, number);
        let mut file = OpenOptions::new()
            .append(true)
            .create_new(true)
            .open(&path)?;
        let begun = file
            .write_all(MAGIC)
            .and_then(|()| File::open(directory)?.sync_all());
        if let Err(error) = begun {
            // The next try has the same number.
            std::fs::remove_file(&path)?;
            return Err(error);
        }
        Ok(Self {
            file: Arc::new(file),
            number,
            length: MAGIC.len() as u64,
            written: 0,
            synced_groups: 0,
            syncing: false,
            torn: false,
        })
    }
}

fn path(directory: &Path, number: u64) -> PathBuf {
    directory.join(format!("{NAME}{number:012}"))
}

/// Keeps a file that was not read to its end under another name.
///
/// # Errors
///
/// Those of the system.
pub(crate) fn set_aside(path: &Path) -> io::Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(DAMAGED);
    std::fs::rename(path, name)
}

/// The files of a directory whose names end so behind their numbers, in their order.
fn files(directory: &Path, end: &str) -> io::Result<Vec<(u64, PathBuf)>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| {
            let name = name.strip_prefix(NAME)?;
            name.strip_suffix(end)
        });
        if let Some(number) = number.and_then(|number| number.parse().ok()) {
            files.push((number, entry.path()));
        }
    }
    files.sort_unstable();
    Ok(files)
}

/// Writes the head of a group, whose entries are there: their length and checksum. `None` where there is
/// no room for a head, or there are more bytes than it can tell.
pub fn seal(group: &mut [u8]) -> Option<()> {
    let (head, body) = group.split_first_chunk_mut::<HEAD>()?;
    head[..4].copy_from_slice(&u32::try_from(body.len()).ok()?.to_le_bytes());
    head[4..].copy_from_slice(&crc32c(body).to_le_bytes());
    Some(())
}

/// Appends an update of a path, which is a record, to a group.
pub fn update(path: &[u8], record: &[u8], group: &mut Vec<u8>) {
    group.reserve(HEAD + 3 + path.len() + record.len());
    entry(UPDATE, path, group);
    group.extend_from_slice(record);
}

/// Appends that a path is forgotten.
pub fn forget(path: &[u8], group: &mut Vec<u8>) {
    entry(FORGET, path, group);
}

fn entry(kind: u8, path: &[u8], group: &mut Vec<u8>) {
    if group.is_empty() {
        // The head is known when all of it is there.
        group.extend([0; HEAD]);
    }
    // No system has files with longer paths.
    let length = u16::try_from(path.len()).unwrap_or(u16::MAX);
    let [low, high] = length.to_le_bytes();
    group.extend_from_slice(&[kind, low, high]);
    group.extend_from_slice(&path[..usize::from(length)]);
}
