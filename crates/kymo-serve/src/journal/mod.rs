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
//! acknowledged where [`Options::durable`] is set; the checksum reveals it. Where the disk cannot take a
//! file, nothing that is not known to be there is acknowledged, and a new file is begun: what a file has
//! after that is unknown.

mod replay;

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use crc32c::crc32c;
use kymo_io::{Access, Bytes, Locking, create_directories, reason};

use crate::sync::{lock, wait};
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
/// Size in bytes above which a new file is begun, unless the configuration sets another.
const MOST_BYTES: u64 = 64 << 20;
/// Nothing is appended to a file longer than this multiple of the configured size, beside what was carried
/// over.
const MOST_TIMES: u64 = 8;

/// Where the journal is, and what it must survive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The directory.
    pub directory: PathBuf,
    /// Number of bytes, besides those carried over from the previous file, above which everything is written,
    /// and a new file begun.
    pub most_bytes: u64,
    /// Whether what is acknowledged survives that the machine stops, and not the program only.
    pub durable: bool,
    /// Whether it also has datagrams, which are not acknowledged.
    pub datagrams: bool,
}

impl Options {
    /// A journal in a directory with the usual limits.
    pub fn new(directory: PathBuf) -> Self {
        Self {
            directory,
            most_bytes: MOST_BYTES,
            durable: false,
            datagrams: true,
        }
    }
}

/// A journal that is open.
#[derive(Debug)]
pub struct Journal {
    options: Options,
    active: Mutex<Active>,
    /// Signals that [`Active::synced`] has grown, or that nobody syncs now.
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
    /// Bytes of what was carried over: they grow with what is pending, and not with what comes.
    carried: u64,
    /// Groups that were written, those of them that are on the disk, and those of which that can be said no
    /// more, since the disk did not take their file. Counted from the first file on.
    written: u64,
    synced_groups: u64,
    failed_groups: u64,
    syncing: bool,
    /// Whether nothing may stand behind what it has: half a group stands at its end, or there may be holes.
    torn: bool,
}

/// Where a group comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    /// It is to be acknowledged.
    New,
    /// It is not acknowledged.
    Unacknowledged,
    /// It is in an earlier file, and was acknowledged.
    Before,
}

impl Journal {
    /// Opens a journal, and returns the files that were left there.
    ///
    /// # Errors
    ///
    /// `WouldBlock` where another program has it open; those of the system, with their paths.
    pub(crate) fn open(options: Options) -> io::Result<(Self, Vec<PathBuf>)> {
        let directory = &options.directory;
        create_directories(directory, options.durable).map_err(at(directory))?;
        let lock = directory.join(LOCK);
        let locked = File::create(&lock).map_err(at(&lock))?;
        lock_directory(&locked, directory)?;
        let left = files(directory, "").map_err(at(directory))?;
        let damaged = files(directory, DAMAGED).map_err(at(directory))?;
        let used = left.last().max(damaged.last());
        let number = used.map_or(1, |(number, _)| number + 1);
        let active = Active::begin(directory, number).map_err(at(directory))?;
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
    /// `StorageFull` where the file has become far longer than configured; those of the system. Then the group
    /// is not in the journal.
    pub(crate) fn append(&self, group: &mut [u8]) -> io::Result<()> {
        self.write(group, Origin::New)
    }

    /// Appends a group that is not acknowledged, without waiting for the disk.
    ///
    /// # Errors
    ///
    /// Those of [`append`](Self::append).
    pub(crate) fn append_unacknowledged(&self, group: &mut [u8]) -> io::Result<()> {
        self.write(group, Origin::Unacknowledged)
    }

    /// Appends a group of what an earlier file has. There is room for it, however long the file is: it was
    /// acknowledged.
    ///
    /// # Errors
    ///
    /// Those of the system. Then the group is not in the journal.
    pub(crate) fn carry(&self, group: &mut [u8]) -> io::Result<()> {
        self.write(group, Origin::Before)
    }

    fn write(&self, group: &mut [u8], origin: Origin) -> io::Result<()> {
        seal(group).ok_or(io::ErrorKind::InvalidInput)?;
        let done = self.write_sealed(group, origin);
        if done.is_err() {
            self.errors.fetch_add(1, Relaxed);
        }
        done
    }

    fn write_sealed(&self, group: &[u8], origin: Origin) -> io::Result<()> {
        let mut active = self.active();
        let most = self.options.most_bytes;
        let new = active.length - active.carried;
        if origin != Origin::Before && new > most.saturating_mul(MOST_TIMES) {
            return Err(io::Error::new(
                io::ErrorKind::StorageFull,
                "the journal is too long",
            ));
        }
        if active.torn {
            return Err(io::Error::other(
                "its file is damaged, and waits for a new one",
            ));
        }
        if let Err(error) = (&*active.file).write_all(group) {
            // What was written of it must not stand before the next.
            active.torn = active.file.set_len(active.length).is_err();
            if active.torn {
                self.long.store(true, Relaxed);
            }
            return Err(error);
        }
        let length = group.len() as u64;
        active.length += length;
        if origin == Origin::Before {
            active.carried += length;
        }
        active.written += 1;
        self.bytes.fetch_add(length, Relaxed);
        if active.length - active.carried > most {
            self.long.store(true, Relaxed);
        }
        match self.options.durable && origin != Origin::Unacknowledged {
            true => self.sync(active),
            false => Ok(()),
        }
    }

    /// Waits until all that was written is on the disk: one thread syncs for all that have
    /// written before it began.
    ///
    /// A file that could not be synced is not tried again: systems report an error once and then take what was
    /// not written for written. So all who wait for the file get the error.
    fn sync<'a>(&'a self, mut active: MutexGuard<'a, Active>) -> io::Result<()> {
        let wanted = active.written;
        loop {
            // First: a new file counts those of the one before as synced.
            if active.failed_groups >= wanted {
                return Err(io::Error::other("the disk did not take it"));
            }
            if active.synced_groups >= wanted {
                return Ok(());
            }
            if active.syncing {
                active = wait(&self.synced, active);
                continue;
            }
            active.syncing = true;
            let (file, all) = (Arc::clone(&active.file), active.written);
            drop(active);
            let done = file.sync_data();
            active = self.active();
            active.syncing = false;
            match &done {
                Ok(()) => active.synced_groups = active.synced_groups.max(all),
                // What came meanwhile stands behind what the disk may not have.
                Err(_) => self.give_up(&mut active),
            }
            self.synced.notify_all();
            done?;
        }
    }

    /// Has nothing more appended to a file that the disk did not take, and a new one begun.
    fn give_up(&self, active: &mut Active) {
        active.failed_groups = active.written;
        active.torn = true;
        self.long.store(true, Relaxed);
    }

    /// Whether a new file is to be begun: this one is longer than configured, or torn.
    pub(crate) fn is_long(&self) -> bool {
        self.long.load(Relaxed)
    }

    /// Begins a new file, and returns those before it. They are removed when all that they have is in the
    /// files of databases, or in the new one.
    ///
    /// # Errors
    ///
    /// Those of making a file; then the old one is appended to.
    pub(crate) fn rotate(&self) -> io::Result<Vec<PathBuf>> {
        let mut active = self.active();
        let directory = &self.options.directory;
        // A system reports an error to only one of those who sync.
        while active.syncing {
            active = wait(&self.synced, active);
        }
        let is_waited_for = self.options.durable && active.failed_groups < active.written;
        if is_waited_for && active.file.sync_data().is_err() {
            // Those who wait for it get the error. What was acknowledged is pending, and is carried over.
            self.errors.fetch_add(1, Relaxed);
            self.give_up(&mut active);
        }
        let next = Active::begin(directory, active.number + 1)?;
        *active = Active {
            written: active.written,
            synced_groups: active.written,
            failed_groups: active.failed_groups,
            ..next
        };
        self.synced.notify_all();
        self.long.store(false, Relaxed);
        self.rotations.fetch_add(1, Relaxed);
        let number = active.number;
        drop(active);
        let mut before = files(directory, "")?;
        before.retain(|(found, _)| *found < number);
        Ok(before.into_iter().map(|(_, path)| path).collect())
    }

    /// Removes the file that is appended to: nothing is pending, and nothing more is accepted.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub(crate) fn remove(&self) -> io::Result<()> {
        let number = self.active().number;
        std::fs::remove_file(path(&self.options.directory, number))
    }

    /// The bytes of the file that is appended to.
    pub fn size(&self) -> u64 {
        self.active().length
    }

    /// Number of files that were not read to their ends, and are kept for inspection.
    pub fn damaged(&self) -> usize {
        files(&self.options.directory, DAMAGED).map_or(0, |files| files.len())
    }

    /// What was asked for.
    pub fn options(&self) -> &Options {
        &self.options
    }

    fn active(&self) -> MutexGuard<'_, Active> {
        lock(&self.active)
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
            carried: 0,
            written: 0,
            synced_groups: 0,
            failed_groups: 0,
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

/// The file that is locked as long as a journal is open.
const LOCK: &str = "lock";

/// Locks a directory against other programs.
fn lock_directory(locked: &File, directory: &Path) -> io::Result<()> {
    kymo_io::lock(locked, Locking::Try).map_err(|error| {
        let shown = directory.display();
        let text = format!("`{shown}`: another program uses it: {}", reason(&error));
        io::Error::new(error.kind(), text)
    })
}

/// How many updates a journal has of databases for which `is_one` is true. Nothing is changed.
///
/// # Errors
///
/// `WouldBlock` where another program has it open; files that cannot be read, with their paths.
pub(crate) fn count_updates(directory: &Path, is_one: impl Fn(&[u8]) -> bool) -> io::Result<usize> {
    if !directory.is_dir() {
        return Ok(0);
    }
    let lock = directory.join(LOCK);
    match File::options().read(true).write(true).open(&lock) {
        Ok(locked) => lock_directory(&locked, directory)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(at(&lock)(error)),
    }
    let mut count = 0;
    for (_, path) in files(directory, "").map_err(at(directory))? {
        let bytes = open_left(&path)?;
        // One that is damaged is reported and kept when it is read.
        let _ = replay(&bytes, |entry| {
            count += usize::from(matches!(entry, Entry::Update(path, _) if is_one(path)));
        });
    }
    Ok(count)
}

/// Opens a file that was left.
///
/// # Errors
///
/// Those of the system, with its path.
pub(crate) fn open_left(path: &Path) -> io::Result<Bytes> {
    Bytes::open(path, Access::Sequential).map_err(at(path))
}

/// An error of the system, with the path where it happened.
pub(crate) fn at(path: &Path) -> impl Fn(io::Error) -> io::Error {
    move |error| {
        let text = format!("`{}`: {}", path.display(), reason(&error));
        io::Error::new(error.kind(), text)
    }
}

/// The files of a directory whose names are a number and `end`, in the order of their numbers.
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

/// Writes the head of a group, whose entries are there: their length and checksum. `None` if there is
/// no room for a head, or there are more bytes than it can specify.
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

#[cfg(test)]
mod tests {
    use std::os::fd::OwnedFd;
    use std::time::Duration;

    use super::*;

    fn open(directory: &Path, most_bytes: u64, durable: bool) -> Journal {
        let options = Options {
            directory: directory.into(),
            most_bytes,
            durable,
            datagrams: true,
        };
        Journal::open(options).unwrap().0
    }

    /// A group that forgets a path.
    fn group() -> Vec<u8> {
        let mut group = Vec::new();
        forget(b"/a.rrd", &mut group);
        group
    }

    /// A disk that has failed once may say that all is well the next time.
    #[test]
    fn what_the_disk_did_not_take_is_not_acknowledged() {
        let directory = tempfile::tempdir().unwrap();
        let journal = open(directory.path(), 1 << 20, true);
        journal.append(&mut group()).unwrap();
        // A pipe takes bytes, and cannot be synced.
        let (_reader, writer) = io::pipe().unwrap();
        let good = {
            let mut active = journal.active();
            active.syncing = true;
            std::mem::replace(
                &mut active.file,
                Arc::new(File::from(OwnedFd::from(writer))),
            )
        };
        std::thread::scope(|scope| {
            // It waits for who seems to sync.
            let waiting = scope.spawn(|| journal.append(&mut group()));
            while journal.active().written < 2 {
                std::thread::sleep(Duration::from_millis(1));
            }
            let mut active = journal.active();
            active.syncing = false;
            drop(active);
            journal.append(&mut group()).unwrap_err();
            journal.active().file = good;
            waiting.join().unwrap().unwrap_err();
        });
        // Nothing stands behind it, though the file could be synced now.
        assert!(journal.is_long());
        journal.append(&mut group()).unwrap_err();
        assert_eq!(journal.errors.load(Relaxed), 3);
        assert_eq!(journal.rotate().unwrap().len(), 1);
        journal.append(&mut group()).unwrap();
        assert!(!journal.is_long());
    }

    /// A new file does not say that the one before was synced.
    #[test]
    fn a_new_file_is_begun_where_the_disk_does_not_take_the_one_before() {
        let directory = tempfile::tempdir().unwrap();
        let journal = open(directory.path(), 1 << 20, true);
        let (_reader, writer) = io::pipe().unwrap();
        {
            let mut active = journal.active();
            active.file = Arc::new(File::from(OwnedFd::from(writer)));
            active.written += 1;
        }
        journal.rotate().unwrap();
        let active = journal.active();
        assert_eq!((active.failed_groups, active.torn), (1, false));
        drop(active);
        journal.append(&mut group()).unwrap();
    }

    #[test]
    fn what_is_carried_over_has_room() {
        let directory = tempfile::tempdir().unwrap();
        let most = 2 * group().len() as u64;
        let journal = open(directory.path(), most, false);
        for _ in 0..2 * MOST_TIMES * most {
            journal.carry(&mut group()).unwrap();
        }
        assert!(!journal.is_long());
        let mut taken = 0;
        while journal.append(&mut group()).is_ok() {
            taken += 1;
        }
        assert!(journal.is_long());
        assert!(
            (2 * MOST_TIMES - 1..=2 * MOST_TIMES + 1).contains(&taken),
            "{taken}"
        );
    }

    #[test]
    fn zeros_are_no_groups() {
        let mut whole = group();
        seal(&mut whole).unwrap();
        for zeros in [8, 12, 4096] {
            let bytes = [MAGIC.as_slice(), &whole, &vec![0; zeros]].concat();
            let mut count = 0;
            let reported = replay(&bytes, |_| count += 1);
            let offset = MAGIC.len() + whole.len();
            let expected = format!("offset {offset}: found a group of no bytes, expected an entry");
            assert_eq!((reported, count), (Err(expected), 1));
        }
    }
}
