//! A directory with the indexes of recordings.

use std::ffi::OsStr;
use std::io::{self, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use kymo_io::{Access, Bytes, FileState, Replace};

use crate::Index;
use crate::pack::{Reader, put_number};

/// Maximum bytes of all indexes together.
const MOST_BYTES: u64 = 10 << 30;

/// What the names of indexes end with, and of what else is known of recordings.
const ENDING: &str = "kymoidx";
const NOTE_ENDING: &str = "kymonote";

/// What a note begins with; the last byte is the version.
const NOTE_MAGIC: [u8; 8] = *b"KYMONOT\x01";

/// Bytes of the checksum that ends a note.
const CHECKSUM: usize = 4;

/// Age at which unfinished files are considered abandoned.
const ABANDONED: Duration = Duration::from_secs(3600);

/// What an index is of: the files that were read, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// Device, inode, size and time of the last change of each file.
    files: Vec<[u64; 4]>,
    /// Whatever else decides what is read from them.
    options: Vec<u8>,
}

impl Key {
    /// The key of a recording in some files, in any order that is always the same. `None` if one of them is not a
    /// regular file, or the system does not number files.
    pub fn new<'p>(files: impl IntoIterator<Item = &'p Path>, options: Vec<u8>) -> Option<Self> {
        let files = files.into_iter();
        let files = files.map(|path| FileState::of(path).ok()?.to_numbers());
        Some(Self {
            files: files.collect::<Option<_>>()?,
            options,
        })
    }

    /// The key of something in files with these [numbers](FileState::to_numbers).
    pub fn of_numbers(files: &[[u64; 4]], options: Vec<u8>) -> Self {
        Self {
            files: files.to_vec(),
            options,
        }
    }

    /// The key as it stands in [`Meta::key`](crate::Meta::key).
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        put_number(&mut bytes, self.options.len() as u64);
        bytes.extend(&self.options);
        for number in self.files.iter().flatten() {
            put_number(&mut bytes, *number);
        }
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader(bytes);
        let length = reader.number().ok()?;
        let options = reader.bytes(length).ok()?.to_vec();
        let mut files = Vec::new();
        while !reader.0.is_empty() {
            let mut file = [0; 4];
            for number in &mut file {
                *number = reader.number().ok()?;
            }
            files.push(file);
        }
        Some(Self { files, options })
    }

    /// Whether this key may become another one when files grow.
    fn may_grow_to(&self, now: &Self) -> bool {
        let mut pairs = self.files.iter().zip(&now.files);
        let may_grow = |(old, new): (&[u64; 4], &[u64; 4])| {
            old[..2] == new[..2] && (new[2] > old[2] || old == new)
        };
        self.options == now.options && self.files.len() == now.files.len() && pairs.all(may_grow)
    }

    /// The name of its index or note: the same while the files are the same, whatever is in them.
    fn file_name(&self, ending: &str) -> String {
        let mut bytes = self.options.clone();
        for file in &self.files {
            bytes.extend(file[0].to_le_bytes());
            bytes.extend(file[1].to_le_bytes());
        }
        // FNV-1a. Two recordings with one name take turns, since the whole key is compared.
        let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
        });
        format!("{hash:016x}.{ending}")
    }
}

/// What a cache has of a recording.
#[derive(Debug)]
pub enum Cached {
    /// Its index.
    Whole(Index),
    /// The index of what its files were before they grew, if they did no more than that.
    Older(Index),
}

/// A directory of indexes. It may be used by several programs at once, and whatever is in it, nothing fails:
/// what cannot be used is as good as absent.
#[derive(Clone, Debug)]
pub struct Cache {
    directory: PathBuf,
    most: u64,
}

/// Where indexes are kept if nothing else is said: `kymo/index` in the user's directory of caches
/// (`XDG_CACHE_HOME`, or else `.cache` in `HOME`).
pub fn default_directory() -> Option<PathBuf> {
    let absolute = |name: &str| {
        let path = PathBuf::from(std::env::var_os(name)?);
        path.is_absolute().then_some(path)
    };
    let caches = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
    Some(caches.join("kymo/index"))
}

impl Cache {
    /// A cache in a directory, which need not be there.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
            most: MOST_BYTES,
        }
    }

    /// The same with another limit than 10 GB of all indexes together.
    #[must_use]
    pub fn with_limit(self, most: u64) -> Self {
        Self { most, ..self }
    }

    /// Whether there is an index of any recording.
    pub fn has_summaries(&self) -> bool {
        let entries = std::fs::read_dir(&self.directory);
        let mut paths = entries.into_iter().flatten().flatten().map(|it| it.path());
        paths.any(|path| path.extension() == Some(OsStr::new(ENDING)))
    }

    /// Where it is.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Where the index of a recording is, if it has one.
    pub fn path(&self, key: &Key) -> PathBuf {
        self.directory.join(key.file_name(ENDING))
    }

    /// What it has of a recording.
    pub fn get(&self, key: &Key) -> Option<Cached> {
        let path = self.path(key);
        let index = Index::open(self.open(&path)?).ok()?;
        // A damaged one is rebuilt, and never extended.
        index.check().ok()?;
        let known = Key::from_bytes(&index.meta().key)?;
        let found = match (known == *key, known.may_grow_to(key)) {
            (true, _) => Cached::Whole(index),
            (false, true) => Cached::Older(index),
            (false, false) => return None,
        };
        use_now(&path);
        Some(found)
    }

    /// What was [noted](Self::put_note) of files that have not changed since.
    pub fn note(&self, key: &Key) -> Option<Bytes> {
        let path = self.directory.join(key.file_name(NOTE_ENDING));
        let bytes = Arc::new(self.open(&path)?);
        let range = note_range(&bytes, key)?;
        use_now(&path);
        Bytes::part(&bytes, range)
    }

    /// Keeps what is known of files, in the place of what was noted of them before.
    ///
    /// # Errors
    ///
    /// As [`put`](Self::put).
    pub fn put_note(&self, key: &Key, note: &[u8]) -> io::Result<()> {
        self.write(key, NOTE_ENDING, &note_file(key, note))?;
        Ok(())
    }

    /// The bytes of a file of this user.
    fn open(&self, path: &Path) -> Option<Bytes> {
        kymo_io::private_directory(&self.directory, false).ok()?;
        kymo_io::is_own_file(path).then_some(())?;
        Bytes::open(path, Access::Random).ok()
    }

    /// Keeps the index of a recording, and returns where. Those that were not used for the longest time are
    /// removed for it.
    ///
    /// # Errors
    ///
    /// If the directory cannot be created or belongs to another user, or the index exceeds the total limit; those of
    /// writing.
    pub fn put(&self, key: &Key, index: &[u8]) -> io::Result<PathBuf> {
        self.write(key, ENDING, index)
    }

    fn write(&self, key: &Key, ending: &str, bytes: &[u8]) -> io::Result<PathBuf> {
        let length = bytes.len() as u64;
        if length > self.most {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        kymo_io::private_directory(&self.directory, true)?;
        let name = key.file_name(ending);
        self.make_room(length, &name);
        let path = self.directory.join(name);
        let how = Replace {
            follow: false,
            // Half of a file is found by its checksums.
            sync: false,
            ..Replace::NEW
        };
        kymo_io::replace(&path, how, |file| file.write_all(bytes))?;
        Ok(path)
    }

    /// Removes files until `length` more bytes fit. What cannot be removed stays.
    fn make_room(&self, length: u64, new: &str) {
        let Ok(entries) = std::fs::read_dir(&self.directory) else {
            return;
        };
        let now = SystemTime::now();
        let mut all = Vec::new();
        let mut used = length;
        for entry in entries.flatten() {
            let (path, name) = (entry.path(), entry.file_name());
            let Ok(metadata) = entry.metadata() else {
                continue;
            };
            let used_at = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            let age = now.duration_since(used_at).unwrap_or_default();
            if kymo_io::is_beside(&name) && metadata.is_file() && age > ABANDONED {
                let _ = std::fs::remove_file(&path);
            } else if [ENDING, NOTE_ENDING]
                .map(OsStr::new)
                .map(Some)
                .contains(&path.extension())
                && name != new
            {
                used = used.saturating_add(metadata.len());
                all.push((used_at, path, metadata.len()));
            }
        }
        all.sort();
        for (_, path, length) in all {
            if used <= self.most {
                return;
            }
            if std::fs::remove_file(&path).is_ok() {
                used = used.saturating_sub(length);
            }
        }
    }
}

/// Makes others go first, when there is no room for all. Where that cannot be noted, it goes earlier.
fn use_now(path: &Path) {
    if let Ok(file) = std::fs::File::options().write(true).open(path) {
        let _ = file.set_modified(SystemTime::now());
    }
}

/// The file of a note.
#[doc(hidden)]
pub fn note_file(key: &Key, note: &[u8]) -> Vec<u8> {
    let mut file = NOTE_MAGIC.to_vec();
    let key = key.to_bytes();
    put_number(&mut file, key.len() as u64);
    file.extend(key);
    file.extend(note);
    file.extend(crc32c::crc32c(&file).to_le_bytes());
    file
}

/// Where a note is in its file; `None` if that is damaged, or of something else.
#[doc(hidden)]
pub fn note_range(file: &[u8], key: &Key) -> Option<Range<u64>> {
    let end = file.len().checked_sub(CHECKSUM)?;
    let (content, checksum) = file.split_at(end);
    if crc32c::crc32c(content).to_le_bytes() != checksum {
        return None;
    }
    let mut reader = Reader(content.strip_prefix(&NOTE_MAGIC)?);
    let length = reader.number().ok()?;
    let known = reader.bytes(length).ok()?;
    let begin = (end - reader.0.len()) as u64;
    (known == key.to_bytes()).then_some(begin..end as u64)
}
