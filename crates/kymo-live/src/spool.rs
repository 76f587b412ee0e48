//! Files of what comes.
//!
//! Each session has a directory, and below it each trace has one, as the relay daemon stores it: a file
//! `metadata`, and a file for each stream.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The longest part of a path that file systems have room for, less a number behind it.
const LONGEST_PART: usize = 200;
/// Parts of a path.
const MOST_PARTS: usize = 16;
/// The file of a trace's metadata.
const METADATA: &str = "metadata";

/// What a stream is called, whatever its number.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamName {
    /// The host that is traced.
    pub host: String,
    /// The name of the session.
    pub session: String,
    /// The directory of its trace.
    pub path: String,
    /// The channel, and the processor.
    pub channel: String,
}

/// A file of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpoolFile {
    /// The directory of its trace.
    pub trace: PathBuf,
    /// Where it is.
    pub path: PathBuf,
}

/// The files of sessions, below a directory.
#[derive(Debug)]
pub struct Spool {
    directory: PathBuf,
    /// Directories of traces, by host, session and path.
    traces: BTreeMap<(String, String, String), PathBuf>,
    files: BTreeMap<StreamName, SpoolFile>,
    /// Paths that are taken.
    taken: BTreeSet<PathBuf>,
    open: BTreeMap<PathBuf, File>,
}

/// Files that are open at the same time.
const MOST_OPEN: usize = 200;

impl Spool {
    /// Files below a directory, which exists and is empty.
    pub fn new(directory: &Path) -> Self {
        Self {
            directory: directory.to_path_buf(),
            traces: BTreeMap::new(),
            files: BTreeMap::new(),
            taken: BTreeSet::new(),
            open: BTreeMap::new(),
        }
    }

    /// The file of a stream, which has a name of its own below the directory, whatever it is called.
    ///
    /// # Errors
    ///
    /// The directory of its trace cannot be made.
    pub fn file(&mut self, name: &StreamName, is_metadata: bool) -> io::Result<SpoolFile> {
        if let Some(file) = self.files.get(name) {
            return Ok(file.clone());
        }
        let key = (name.host.clone(), name.session.clone(), name.path.clone());
        let trace = match self.traces.get(&key) {
            Some(trace) => trace.clone(),
            None => {
                let session = part(&format!("{}-{}", name.host, name.session));
                let below = name.path.split('/').filter(|part| !part.is_empty());
                let below: PathBuf = below.take(MOST_PARTS).map(part).collect();
                let trace = self.free(&self.directory.join(session).join(below));
                self.traces.insert(key, trace.clone());
                self.taken.insert(trace.clone());
                trace
            }
        };
        fs::create_dir_all(&trace).map_err(|error| at(&trace, &error))?;
        let path = match is_metadata {
            true => trace.join(METADATA),
            false => match part(&name.channel) {
                // Readers take these for something else.
                channel if channel == METADATA || channel == "index" => trace.join("stream"),
                channel => trace.join(channel),
            },
        };
        let path = self.free(&path);
        self.taken.insert(path.clone());
        let file = SpoolFile { trace, path };
        self.files.insert(name.clone(), file.clone());
        Ok(file)
    }

    /// A path that is not taken.
    fn free(&self, path: &Path) -> PathBuf {
        let mut free = path.to_path_buf();
        let mut number = 1_u32;
        // There are fewer paths than numbers.
        while self.taken.contains(&free) {
            number += 1;
            let mut name = path.file_name().unwrap_or_default().to_os_string();
            name.push(format!("-{number}"));
            free = path.with_file_name(name);
        }
        free
    }

    /// Adds bytes to the end of a file.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    pub fn append(&mut self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut file = match self.open.get(path) {
            Some(file) => file,
            None => {
                if self.open.len() >= MOST_OPEN {
                    self.open.clear();
                }
                let file = OpenOptions::new().append(true).create(true).open(path);
                let file = file.map_err(|error| at(path, &error))?;
                self.open.entry(path.to_path_buf()).or_insert(file)
            }
        };
        file.write_all(bytes).map_err(|error| at(path, &error))
    }

    /// Replaces another file, whose readers keep what they have.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    pub fn replace(&mut self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        self.open.remove(path);
        let new = self.directory.join(".new");
        fs::write(&new, bytes).map_err(|error| at(&new, &error))?;
        fs::rename(&new, path).map_err(|error| at(path, &error))
    }
}

/// A name that is safe as a part of a path.
fn part(name: &str) -> String {
    let safe = |character: char| match character {
        '/' | '\\' | '\0' => '_',
        control if control.is_control() => '_',
        other => other,
    };
    let mut part: String = name.chars().map(safe).collect();
    while part.len() > LONGEST_PART {
        part.pop();
    }
    match part.starts_with('.') || part.is_empty() {
        true => format!("_{part}"),
        false => part,
    }
}

fn at(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(path: &str, channel: &str) -> StreamName {
        StreamName {
            host: "vm".into(),
            session: "s".into(),
            path: path.into(),
            channel: channel.into(),
        }
    }

    #[test]
    fn names_stay_below_the_directory_and_apart() {
        let home = tempfile::TempDir::new().unwrap();
        let mut spool = Spool::new(home.path());
        let long = "x".repeat(4000);
        let mut seen = BTreeSet::new();
        for (path, channel) in [
            ("ust/uid/0/64-bit", "main_0"),
            ("ust/uid/0/64-bit", "main_1"),
            ("../../etc", "passwd"),
            ("/etc", "../passwd"),
            ("/etc", ".._passwd"),
            ("", ""),
            (".", "metadata"),
            ("./.", "index"),
            (&long, &long),
            ("a\0b", "c\nd"),
        ] {
            let file = spool.file(&name(path, channel), false).unwrap();
            assert!(file.path.starts_with(&file.trace), "{path}");
            assert!(file.trace.starts_with(home.path().join("vm-s")), "{path}");
            assert!(file.path.components().all(|part| part.as_os_str() != ".."));
            assert!(seen.insert(file.path.clone()), "{path}");
            spool.append(&file.path, b"a").unwrap();
            spool.append(&file.path, b"b").unwrap();
            assert_eq!(fs::read(&file.path).unwrap(), b"ab");
            assert_eq!(spool.file(&name(path, channel), false).unwrap(), file);
        }
        let metadata = spool
            .file(&name("ust/uid/0/64-bit", "metadata"), true)
            .unwrap();
        assert_eq!(metadata.path.file_name().unwrap(), METADATA);
        spool.append(&metadata.path, b"old").unwrap();
        spool.replace(&metadata.path, b"new").unwrap();
        spool.append(&metadata.path, b"er").unwrap();
        assert_eq!(fs::read(&metadata.path).unwrap(), b"newer");
    }
}
