//! The names and labels of databases whose paths do not contain them.
//!
//! A file in the data directory has a line for each: the path relative to the directory, the name, and labels with their
//! values, separated by tabs. None of these has a control character. Lines are appended before a database is created,
//! and of two lines with the same path the later counts.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, RwLock};

use foldhash::{HashMap, HashMapExt};
use kymo_metrics::Key;

use crate::sync::lock;

/// The name of the file in the data directory.
pub const FILE: &str = ".kymo-series";

/// The series of paths.
#[derive(Debug)]
pub struct SeriesIndex {
    path: PathBuf,
    is_durable: bool,
    series: RwLock<HashMap<Box<[u8]>, Arc<Key>>>,
    file: Mutex<Option<File>>,
}

/// Whether a series has a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claim {
    /// It has it, and had it before.
    Known,
    /// It has it from now on.
    New,
    /// Another series has it.
    Taken(Arc<Key>),
}

impl SeriesIndex {
    /// Reads the file of a data directory, if there is one. A line that was cut off by the end of the machine is
    /// removed. With `is_durable` new lines are on the disk before a database is created.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub fn open(directory: &Path, is_durable: bool) -> io::Result<Self> {
        let path = directory.join(FILE);
        let mut series = HashMap::new();
        match OpenOptions::new().read(true).write(true).open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                read(&std::fs::read(&path)?, &mut series);
            }
            Err(error) => return Err(error),
            Ok(mut file) => {
                let mut bytes = Vec::new();
                file.read_to_end(&mut bytes)?;
                let whole = read(&bytes, &mut series);
                if whole < bytes.len() {
                    file.set_len(whole as u64)?;
                }
            }
        }
        Ok(Self {
            path,
            is_durable,
            series: RwLock::new(series),
            file: Mutex::default(),
        })
    }

    /// The series of a path relative to the data directory.
    pub fn get(&self, path: &[u8]) -> Option<Arc<Key>> {
        self.read().get(path).cloned()
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, HashMap<Box<[u8]>, Arc<Key>>> {
        self.series
            .read()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Gives a path to a series. `is_free` says whether the path of another series may be taken, such as when its
    /// database was removed.
    ///
    /// # Errors
    ///
    /// If the line cannot be written: then nothing has changed.
    pub fn claim(
        &self,
        path: &[u8],
        key: &Key,
        is_free: impl FnOnce() -> bool,
    ) -> io::Result<Claim> {
        // Others wait, so that a path is not given twice.
        let mut file = lock(&self.file);
        if let Some(known) = self.get(path) {
            if known.bytes() == key.bytes() {
                return Ok(Claim::Known);
            }
            if !is_free() {
                return Ok(Claim::Taken(known));
            }
        }
        let file = match &mut *file {
            Some(file) => file,
            none => {
                let mut options = OpenOptions::new();
                none.insert(options.append(true).create(true).open(&self.path)?)
            }
        };
        let before = file.metadata()?.len();
        let written = file.write_all(&line(path, key));
        let written = written.and_then(|()| match self.is_durable {
            true => file.sync_data(),
            false => Ok(()),
        });
        if let Err(error) = written {
            // A part of a line would be taken for one.
            let _ = file.set_len(before);
            return Err(error);
        }
        self.series
            .write()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .insert(path.into(), Arc::new(key.clone()));
        Ok(Claim::New)
    }
}

fn line(path: &[u8], key: &Key) -> Vec<u8> {
    let mut line = path.to_vec();
    line.push(b'\t');
    line.extend_from_slice(key.name().as_bytes());
    for (name, value) in key.labels() {
        for part in [name, value] {
            line.push(b'\t');
            line.extend_from_slice(part.as_bytes());
        }
    }
    line.push(b'\n');
    line
}

/// Reads lines, and returns how many bytes they have. What cannot be a line is passed over.
fn read(bytes: &[u8], series: &mut HashMap<Box<[u8]>, Arc<Key>>) -> usize {
    let mut length = 0;
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        let Some(text) = line.strip_suffix(b"\n") else {
            break;
        };
        length += line.len();
        let mut parts = text.split(|byte| *byte == b'\t');
        let (Some(path), Some(name)) = (parts.next(), parts.next()) else {
            continue;
        };
        let mut key = Key::new();
        key.begin(name);
        while let Some(label) = parts.next() {
            key.label(label, parts.next().unwrap_or_default());
        }
        if !path.is_empty() && key.finish().is_ok() {
            series.insert(path.into(), Arc::new(key));
        }
    }
    length
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str, value: &str) -> Key {
        let mut key = Key::new();
        key.begin(name.as_bytes());
        key.label(b"a", value.as_bytes());
        key.finish().unwrap();
        key
    }

    #[test]
    fn series_are_there_again() {
        let directory = tempfile::tempdir().unwrap();
        let open = || SeriesIndex::open(directory.path(), false).unwrap();
        let (one, other) = (key("one", "ä 1"), key("other", ""));
        let index = open();
        assert_eq!(index.get(b"x"), None);
        let claim =
            |index: &SeriesIndex, path: &[u8], key: &Key| index.claim(path, key, || false).unwrap();
        assert_eq!(claim(&index, b"x", &one), Claim::New);
        assert_eq!(claim(&index, b"x", &one), Claim::Known);
        assert_eq!(
            claim(&index, b"x", &other),
            Claim::Taken(Arc::new(one.clone()))
        );
        assert_eq!(claim(&index, b"y", &other), Claim::New);
        // The machine has stopped while a line was written.
        let file = directory.path().join(FILE);
        let mut bytes = std::fs::read(&file).unwrap();
        let whole = bytes.len();
        bytes.extend_from_slice(b"z\tcut\tlab");
        std::fs::write(&file, bytes).unwrap();
        let index = open();
        assert_eq!(file.metadata().unwrap().len(), whole as u64);
        assert_eq!(index.get(b"x").as_deref(), Some(&one));
        assert_eq!(index.get(b"z"), None);
        // Its database was removed.
        assert_eq!(index.claim(b"x", &other, || true).unwrap(), Claim::New);
        assert_eq!(open().get(b"x").as_deref(), Some(&other));
    }
}
