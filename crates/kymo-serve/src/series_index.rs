//! The names and labels of databases whose paths do not contain them.
//!
//! A file in the data directory has a line for each: the path relative to the directory, the name, and labels with their
//! values, separated by tabs. None of these has a control character. Lines are appended before a database is created,
//! and of two lines with the same path the later counts. A line with a path alone says that its database was removed.
//! When most lines are cancelled, the file is rewritten without them.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, RwLock};

use foldhash::{HashMap, HashMapExt};
use kymo_io::{Replace, replace};
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
    file: Mutex<IndexFile>,
}

#[derive(Debug, Default)]
struct IndexFile {
    /// Open since the first line was appended.
    open: Option<File>,
    /// How many lines it has.
    lines: usize,
}

/// A file with no more lines than this, and twice those that count, is not rewritten.
const FEW_LINES: usize = 1000;

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
        let (mut series, mut lines) = (HashMap::new(), 0);
        match OpenOptions::new().read(true).write(true).open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                (_, lines) = read(&std::fs::read(&path)?, &mut series);
            }
            Err(error) => return Err(error),
            Ok(mut file) => {
                let mut bytes = Vec::new();
                file.read_to_end(&mut bytes)?;
                let whole;
                (whole, lines) = read(&bytes, &mut series);
                if whole < bytes.len() {
                    file.set_len(whole as u64)?;
                }
            }
        }
        Ok(Self {
            path,
            is_durable,
            series: RwLock::new(series),
            file: Mutex::new(IndexFile { open: None, lines }),
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
        self.append(&mut file, &line(path, key), 1)?;
        self.write().insert(path.into(), Arc::new(key.clone()));
        Ok(Claim::New)
    }

    /// Forgets paths whose databases were removed. `is_free` says whether that is still so.
    ///
    /// # Errors
    ///
    /// If the file cannot be written: then the names may be there again after the next start.
    pub fn remove(
        &self,
        paths: impl Iterator<Item = Vec<u8>>,
        is_free: impl Fn(&[u8]) -> bool,
    ) -> io::Result<()> {
        // Nobody claims one of them meanwhile.
        let mut file = lock(&self.file);
        let (mut removed, mut lines) = (Vec::new(), 0);
        for path in paths {
            if self.get(&path).is_some() && is_free(&path) {
                self.write().remove(path.as_slice());
                removed.extend_from_slice(&path);
                removed.push(b'\n');
                lines += 1;
            }
        }
        if lines == 0 {
            return Ok(());
        }
        self.append(&mut file, &removed, lines)?;
        match file.lines > FEW_LINES.max(2 * self.read().len()) {
            true => self.rewrite(&mut file),
            false => Ok(()),
        }
    }

    /// Adds lines to the file.
    fn append(&self, file: &mut IndexFile, bytes: &[u8], lines: usize) -> io::Result<()> {
        let open = match &mut file.open {
            Some(open) => open,
            none => {
                let mut options = OpenOptions::new();
                none.insert(options.append(true).create(true).open(&self.path)?)
            }
        };
        let before = open.metadata()?.len();
        let written = open.write_all(bytes);
        let written = written.and_then(|()| match self.is_durable {
            true => open.sync_data(),
            false => Ok(()),
        });
        if let Err(error) = written {
            // A part of a line would be taken for one.
            let _ = open.set_len(before);
            return Err(error);
        }
        file.lines += lines;
        Ok(())
    }

    /// Rewrites the file without cancelled lines.
    fn rewrite(&self, file: &mut IndexFile) -> io::Result<()> {
        let series = self.read();
        let mut paths: Vec<_> = series.iter().collect();
        paths.sort_unstable_by_key(|(path, _)| *path);
        let how = Replace {
            like: Some(&self.path),
            modified: false,
            sync: self.is_durable,
            ..Replace::NEW
        };
        replace(&self.path, how, |to: &mut File| {
            let mut to = io::BufWriter::new(to);
            for (path, key) in &paths {
                to.write_all(&line(path, key))?;
            }
            to.flush()
        })?;
        // The one that is open has lost its name.
        *file = IndexFile {
            open: None,
            lines: paths.len(),
        };
        Ok(())
    }

    fn write(&self) -> std::sync::RwLockWriteGuard<'_, HashMap<Box<[u8]>, Arc<Key>>> {
        self.series
            .write()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
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

/// Reads lines, and returns how many bytes they have and how many they are. What cannot be a line is passed over.
fn read(bytes: &[u8], series: &mut HashMap<Box<[u8]>, Arc<Key>>) -> (usize, usize) {
    let (mut length, mut lines) = (0, 0);
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        let Some(text) = line.strip_suffix(b"\n") else {
            break;
        };
        length += line.len();
        lines += 1;
        let mut parts = text.split(|byte| *byte == b'\t');
        let path = parts.next().unwrap_or_default();
        let Some(name) = parts.next() else {
            series.remove(path);
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
    (length, lines)
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

    #[test]
    fn names_of_removed_databases_leave_the_file() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join(FILE);
        let open = || SeriesIndex::open(directory.path(), false).unwrap();
        let index = open();
        let path = |number: usize| format!("{number}").into_bytes();
        let claim = |index: &SeriesIndex, number: usize| {
            let key = key("a", &format!("{number}"));
            index.claim(&path(number), &key, || false).unwrap()
        };
        for number in 0..FEW_LINES {
            assert_eq!(claim(&index, number), Claim::New);
        }
        let before = file.metadata().unwrap().len();
        // One was created again meanwhile, one never was.
        let gone = (1..FEW_LINES).chain([FEW_LINES + 1]).map(path);
        index.remove(gone, |it| it != b"2").unwrap();
        let after = std::fs::read_to_string(&file).unwrap();
        assert_eq!(after, "0\ta\ta\t0\n2\ta\ta\t2\n");
        assert!(before > 100 * after.len() as u64);
        // Fewer stay as lines that say so.
        index.remove([path(2)].into_iter(), |_| true).unwrap();
        assert_eq!(
            std::fs::read_to_string(&file).unwrap(),
            format!("{after}2\n")
        );
        for index in [index, open()] {
            assert!(index.get(b"0").is_some());
            assert!(index.get(b"1").is_none() && index.get(b"2").is_none());
        }
        assert_eq!(claim(&open(), 2), Claim::New);
        assert!(open().get(b"2").is_some());
    }
}
