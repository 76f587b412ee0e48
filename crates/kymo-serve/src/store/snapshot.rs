//! A database as it would be if all were written that waits in memory.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::time::{Duration, Instant};

use kymo_io::{Access, Bytes, is_locked_to_write};
use kymo_rrd::engine::{Rrd, Sample};

use super::update::records;
use super::{Flushed, Store, path_of};
use crate::sync::wait_until;

/// Files that are longer, in bytes, are not copied: they are written, and read where they lie.
const LONGEST_COPY: u64 = 1 << 26;
/// Number of bytes at the beginning of a file that change with each update.
const HEAD: usize = 1 << 15;
/// How long it is waited for those who write the file.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long it is slept before a file is looked at again.
const SLEEP: Duration = Duration::from_micros(200);

impl Store {
    /// The bytes that the file at an absolute path would have if all were written that has been accepted.
    ///
    /// Writers are not held up: the file is not locked, but read again if it was written
    /// meanwhile.
    ///
    /// # Errors
    ///
    /// Those of reading; `WouldBlock` if others write the file all the time, `InvalidData` if it is not a database that
    /// takes updates, and there are some.
    pub fn snapshot(&self, path: &[u8]) -> io::Result<Bytes> {
        let end = Instant::now() + PATIENCE;
        let file = path_of(path);
        if file.metadata()?.len() > LONGEST_COPY {
            if let Some(database) = self.known(path)
                && let Flushed::Failed(reason) = self.flush(&database)
            {
                return Err(io::Error::other(reason));
            }
            return Bytes::open(file, Access::Random);
        }
        // What is taken here and written before the file is read is in it then, and passed over below.
        let pending = match self.known(path) {
            None => Vec::new(),
            Some(database) => {
                let mut state = database.state();
                while state.writing {
                    state = wait_until(&database.served, state, end)
                        .ok_or_else(|| io::Error::from(io::ErrorKind::WouldBlock))?;
                }
                state.pending.clone()
            }
        };
        let bytes = read_settled(file, end)?;
        match pending.is_empty() {
            true => Ok(bytes.into()),
            false => with_updates(bytes, &pending).map(Bytes::from),
        }
    }
}

/// The bytes of a file between two updates of it.
fn read_settled(path: &Path, end: Instant) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    loop {
        // On a file system without locks, no file is locked.
        let is_locked = |file: &File| is_locked_to_write(file).unwrap_or(false);
        if !is_locked(&file) {
            let before = file.metadata()?;
            let mut bytes = Vec::with_capacity(usize::try_from(before.len()).unwrap_or(0));
            file.seek(SeekFrom::Start(0))?;
            // It may have grown.
            (&file).take(LONGEST_COPY + 1).read_to_end(&mut bytes)?;
            if bytes.len() as u64 > LONGEST_COPY {
                return Err(io::ErrorKind::FileTooLarge.into());
            }
            let mut head = vec![0; bytes.len().min(HEAD)];
            file.seek(SeekFrom::Start(0))?;
            let is_whole = match file.read_exact(&mut head) {
                Ok(()) => true,
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => false,
                Err(error) => return Err(error),
            };
            let after = file.metadata()?;
            let is_same = before.len() == after.len()
                && before.modified().ok() == after.modified().ok()
                && is_whole
                && bytes.starts_with(&head);
            if is_same && !is_locked(&file) {
                return Ok(bytes);
            }
        }
        if Instant::now() >= end {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        std::thread::sleep(SLEEP);
    }
}

/// The bytes of a database after some updates; those that it refuses are passed over.
fn with_updates(bytes: Vec<u8>, pending: &[u8]) -> io::Result<Vec<u8>> {
    let invalid = |error| io::Error::new(io::ErrorKind::InvalidData, format!("{error}"));
    let mut rrd = Rrd::open(bytes).map_err(invalid)?;
    let mut values = Vec::new();
    for record in records(pending) {
        values.clear();
        record.measure(&mut values);
        let sample = Sample {
            time: record.time,
            values: &values,
        };
        // The writer counts and logs what is refused.
        let _ = rrd.update(&sample);
    }
    Ok(rrd.into_storage())
}
