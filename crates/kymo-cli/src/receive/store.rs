//! The directory that is received.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Component, Path, PathBuf};

use super::state::{State, StreamState};
use crate::terminal::{Failure, error_at};

/// Files that are open at the same time.
const MOST_OPEN: usize = 200;
/// Ranges of lost packets that are recorded for a stream; the last one takes all that follow.
const MOST_LOST: usize = 1000;
/// Names that are tried for a stream.
const MOST_NAMES: usize = 1000;
/// Bytes between two `/`, as file systems have them.
const LONGEST_PART: usize = 255;

/// What is known of a stream.
#[derive(Default)]
struct Stream {
    /// Its name, once that is known.
    name: Option<PathBuf>,
    has_file: bool,
    /// The number of the packet that comes next, and the bytes of those that have come.
    next: u32,
    bytes: u64,
    lost: Vec<(u64, u64)>,
}

/// Streams as files of a directory.
pub(super) struct Store {
    directory: PathBuf,
    streams: BTreeMap<u32, Stream>,
    /// Names that are taken.
    names: BTreeSet<PathBuf>,
    open: BTreeMap<u32, Open>,
    moved: Vec<(PathBuf, PathBuf)>,
}

/// A file that is written.
struct Open {
    path: PathBuf,
    /// It holds back whole packets only.
    file: BufWriter<File>,
}

impl Open {
    fn flush(&mut self) -> io::Result<()> {
        self.file
            .flush()
            .map_err(|error| error_at(self.path.display(), &error))
    }
}

impl Store {
    /// Makes the directory, or takes an empty one.
    pub(super) fn new(directory: &Path) -> Result<Self, Failure> {
        let shown = directory.display();
        match fs::read_dir(directory) {
            Ok(mut entries) => {
                if entries.next().is_some() {
                    return Err(Failure::Usage(format!(
                        "error: `{shown}` is not empty\nhint: `-o` names a new directory, or an empty one"
                    )));
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
                return Err(Failure::Usage(format!(
                    "error: `{shown}` is not a directory\nhint: `-o` names a new directory, or an empty one"
                )));
            }
            Err(_) => {}
        }
        Self::beside(directory)
    }

    /// Takes a directory with what is in it, or makes it: files that are there are left alone.
    pub(super) fn beside(directory: &Path) -> Result<Self, Failure> {
        fs::create_dir_all(directory).map_err(|error| Failure::at(directory.display(), &error))?;
        Ok(Self {
            directory: directory.to_path_buf(),
            streams: BTreeMap::new(),
            names: BTreeSet::new(),
            open: BTreeMap::new(),
            moved: Vec::new(),
        })
    }

    /// The directory.
    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Goes on with files as an earlier run has left them: what they have beyond the state comes again.
    pub(super) fn resume(&mut self, state: &State) -> Result<(), Failure> {
        for known in &state.streams {
            let name = match &known.name {
                Some(name) => safe(name).filter(|name| !self.names.contains(name)),
                None => Some(Self::unnamed(known.stream)),
            };
            let shown = known.name.clone().unwrap_or_default();
            let cannot = |why: &str| {
                let directory = self.directory.display();
                Failure::Usage(format!(
                    "error: {directory}: cannot resume: `{shown}` {why}\nhint: receive to a new directory"
                ))
            };
            let name = name.ok_or_else(|| cannot("is not a name that `kymo receive` gives"))?;
            let path = self.directory.join(&name);
            if known.has_file {
                let there = fs::symlink_metadata(&path).ok();
                let length = there.filter(fs::Metadata::is_file).map(|there| there.len());
                match length {
                    Some(length) if length >= known.bytes => {}
                    Some(_) => return Err(cannot("is shorter than it was")),
                    None => return Err(cannot("is not a file that is there")),
                }
                let file = OpenOptions::new().write(true).open(&path);
                file.and_then(|file| file.set_len(known.bytes))
                    .map_err(|error| Failure::at(path.display(), &error))?;
            }
            if known.name.is_some() {
                // Streams without packets were empty files at the end.
                let there = fs::symlink_metadata(&path).ok();
                if !known.has_file && there.is_some_and(|there| there.is_file() && there.len() == 0)
                {
                    fs::remove_file(&path).map_err(|error| Failure::at(path.display(), &error))?;
                }
                self.names.insert(name.clone());
            }
            let stream = Stream {
                name: known.name.is_some().then_some(name),
                has_file: known.has_file,
                next: known.next,
                bytes: known.bytes,
                lost: known.lost.clone(),
            };
            self.streams.insert(known.stream, stream);
        }
        Ok(())
    }

    /// How far each stream has come, once all is [flushed](Self::flush).
    pub(super) fn states(&self) -> Vec<StreamState> {
        let streams = self.streams.iter();
        streams
            .map(|(&stream, known)| StreamState {
                stream,
                name: known
                    .name
                    .as_ref()
                    .map(|name| name.to_string_lossy().into_owned()),
                is_metadata: false,
                has_file: known.has_file,
                next: known.next,
                bytes: known.bytes,
                lost: known.lost.clone(),
            })
            .collect()
    }

    /// Where a stream is that has no name yet.
    fn unnamed(stream: u32) -> PathBuf {
        format!(".stream_{stream}").into()
    }

    /// Gives a stream its name; `false` where that leads elsewhere than below the directory, cannot be
    /// that of a file, or is in the way of another stream's, so that it gets another one.
    pub(super) fn name(&mut self, stream: u32, name: &str) -> io::Result<bool> {
        if self
            .streams
            .get(&stream)
            .is_some_and(|known| known.name.is_some())
        {
            return Ok(true);
        }
        if let Some(name) = safe(name)
            && self.place(stream, name)?
        {
            return Ok(true);
        }
        let mut path = self.directory.clone();
        for number in 0..MOST_NAMES {
            let name = PathBuf::from(match number {
                0 => format!("stream_{stream}"),
                number => format!("stream_{stream}_{number}"),
            });
            path = self.directory.join(&name);
            if self.place(stream, name)? {
                return Ok(false);
            }
        }
        Err(error_at(
            path.display(),
            &io::ErrorKind::AlreadyExists.into(),
        ))
    }

    /// Gives a stream a name that leads below the directory; `false` if that is taken or cannot be.
    fn place(&mut self, stream: u32, name: PathBuf) -> io::Result<bool> {
        let below = self.names.range(name.clone()..).next();
        let is_taken = below.is_some_and(|taken| taken.starts_with(&name))
            || name
                .ancestors()
                .any(|directory| self.names.contains(directory));
        if is_taken {
            return Ok(false);
        }
        let path = self.directory.join(&name);
        let parent = path.parent().unwrap_or(&self.directory);
        let made = fs::create_dir_all(parent).and_then(|()| match fs::symlink_metadata(&path) {
            Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        });
        match made {
            Ok(()) => {}
            Err(error) if is_of_name(&error) => return Ok(false),
            Err(error) => return Err(error_at(path.display(), &error)),
        }
        let known = self.streams.entry(stream).or_default();
        if known.has_file {
            // What is open stays so under its new name.
            fs::rename(self.directory.join(Self::unnamed(stream)), &path)
                .map_err(|error| error_at(path.display(), &error))?;
            if let Some(open) = self.open.get_mut(&stream) {
                open.path = path;
            }
        }
        known.name = Some(name.clone());
        self.names.insert(name);
        Ok(true)
    }

    /// Adds a packet to the file of its stream.
    pub(super) fn append(&mut self, stream: u32, packet: &[u8]) -> io::Result<()> {
        if !self.open.contains_key(&stream) {
            self.open_file(stream)?;
        }
        match self.open.get_mut(&stream) {
            Some(open) => {
                let written = open.file.write_all(packet);
                written.map_err(|error| error_at(open.path.display(), &error))?;
                if let Some(known) = self.streams.get_mut(&stream) {
                    known.bytes += packet.len() as u64;
                }
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Notes the number of a packet that was added.
    pub(super) fn came(&mut self, stream: u32, packet: u32) {
        if let Some(known) = self.streams.get_mut(&stream) {
            known.next = packet.saturating_add(1);
        }
    }

    /// Adds a packet of metadata, which is written at once: without it the other packets cannot be read.
    pub(super) fn append_metadata(&mut self, stream: u32, packet: &[u8]) -> io::Result<()> {
        self.append(stream, packet)?;
        self.open.get_mut(&stream).map_or(Ok(()), Open::flush)
    }

    /// Opens the file of a stream, which the first time must not be there.
    fn open_file(&mut self, stream: u32) -> io::Result<()> {
        if self.open.len() >= MOST_OPEN {
            self.flush()?;
            self.open.clear();
        }
        let mut options = OpenOptions::new();
        for _ in 0..MOST_NAMES {
            let known = self.streams.entry(stream).or_default();
            let name = known.name.clone();
            let name = name.unwrap_or_else(|| Self::unnamed(stream));
            let path = self.directory.join(&name);
            options.append(true).create_new(!known.has_file);
            match options.open(&path) {
                Ok(file) => {
                    known.has_file = true;
                    let file = BufWriter::new(file);
                    self.open.insert(stream, Open { path, file });
                    return Ok(());
                }
                // Another process has created the file, or the file system treats the name as that of another file.
                Err(error) if !known.has_file && is_of_name(&error) => {
                    known.name = None;
                    self.name(stream, "")?;
                    let known = self.streams.entry(stream).or_default();
                    let other = known.name.clone().unwrap_or_default();
                    self.moved.push((name, other));
                }
                Err(error) => return Err(error_at(path.display(), &error)),
            }
        }
        let path = self.directory.join(Self::unnamed(stream));
        Err(error_at(
            path.display(),
            &io::ErrorKind::AlreadyExists.into(),
        ))
    }

    /// Writes what is held back, so that whoever reads the files has all that has come.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.open.values_mut().try_for_each(Open::flush)
    }

    /// Notes packets that never came.
    pub(super) fn lose(&mut self, stream: u32, first: u64, last: u64) {
        let known = self.streams.entry(stream).or_default();
        known.next = u32::try_from(last.saturating_add(1)).unwrap_or(u32::MAX);
        add_lost(&mut known.lost, first, last);
    }

    /// Writes what is not written yet. Files get their names even if that fails.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        let flushed = self.flush();
        self.open.clear();
        let named = self.name_all();
        flushed.and(named)
    }

    /// Gives each stream its name and its file.
    fn name_all(&mut self) -> io::Result<()> {
        let unnamed: Vec<u32> = self
            .streams
            .iter()
            .filter(|(_, known)| known.name.is_none() && known.has_file)
            .map(|(&stream, _)| stream)
            .collect();
        for stream in unnamed {
            self.name(stream, "")?;
        }
        // A stream without packets is an empty file.
        let empty: Vec<u32> = self
            .streams
            .iter()
            .filter(|(_, known)| known.name.is_some() && !known.has_file)
            .map(|(&stream, _)| stream)
            .collect();
        empty
            .into_iter()
            .try_for_each(|stream| self.open_file(stream))
    }

    /// How many files there are.
    pub(super) fn files(&self) -> u64 {
        let files = self.streams.values().filter(|known| known.has_file);
        files.count() as u64
    }

    /// Names that were not free when their files were made, and those that the files have.
    pub(super) fn moved(&self) -> &[(PathBuf, PathBuf)] {
        &self.moved
    }

    /// The name of a stream, as far as that is known.
    pub(super) fn called(&self, stream: u32) -> PathBuf {
        let known = self.streams.get(&stream);
        let name = known.and_then(|known| known.name.clone());
        name.unwrap_or_else(|| format!("stream_{stream}").into())
    }

    /// Names, and the first and last of packets that never came.
    pub(super) fn lost(&self) -> impl Iterator<Item = (PathBuf, u64, u64)> {
        self.streams.iter().flat_map(|(&stream, known)| {
            let name = self.called(stream);
            let lost = known.lost.iter();
            lost.map(move |&(first, last)| (name.clone(), first, last))
        })
    }
}

/// Adds a range of packets that never came.
pub(super) fn add_lost(lost: &mut Vec<(u64, u64)>, first: u64, last: u64) {
    let is_full = lost.len() >= MOST_LOST;
    match lost.last_mut() {
        Some(before) if before.1 + 1 == first || is_full => before.1 = last,
        _ => lost.push((first, last)),
    }
}

/// Whether a file may have another name, but not this one.
fn is_of_name(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::AlreadyExists
            | io::ErrorKind::IsADirectory
            | io::ErrorKind::NotADirectory
            | io::ErrorKind::InvalidFilename
    )
}

/// A name as a path that leads to a file below a directory, and to none that is hidden.
fn safe(name: &str) -> Option<PathBuf> {
    let is_plain = |component: Component<'_>| match component {
        Component::Normal(part) => {
            let bytes = part.as_encoded_bytes();
            !bytes.starts_with(b".") && !bytes.contains(&0) && bytes.len() <= LONGEST_PART
        }
        _ => false,
    };
    let path = Path::new(name);
    let is_safe = !name.is_empty()
        && path.components().count() <= 16
        && path.components().all(is_plain)
        && !name.ends_with('/')
        && !name.contains("//");
    is_safe.then(|| path.to_path_buf())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_nowhere_else() {
        for name in ["metadata", "a/b/c", "stream_0"] {
            assert_eq!(safe(name), Some(PathBuf::from(name)));
        }
        for name in [
            "",
            ".",
            "..",
            "/etc/passwd",
            "../x",
            "a/../../x",
            "a/",
            "a//b",
            ".hidden",
            "a/.b",
            "a\0b",
        ] {
            assert_eq!(safe(name), None, "{name}");
        }
    }

    #[test]
    fn no_name_is_in_the_way_of_another() {
        let home = tempfile::TempDir::new().unwrap();
        let path = home.path().join("new");
        let mut store = Store::new(&path).unwrap();
        let long = "x".repeat(300);
        let names = [
            ("a", true),
            ("a/b", false),
            ("c/d", true),
            ("c", false),
            (&long, false),
            ("stream_7", true),
            ("../x", false),
            ("stream_7", false),
            ("c/e", true),
        ];
        for (stream, (name, is_taken)) in (1..).zip(names) {
            // Some streams have packets before their names.
            if stream % 2 == 0 {
                store.append(stream, &[stream as u8]).unwrap();
            }
            assert_eq!(store.name(stream, name).unwrap(), is_taken, "{name}");
            store.append(stream, &[stream as u8]).unwrap();
        }
        store.finish().unwrap();
        assert_eq!(store.files(), 9);
        for (name, expected) in [
            ("a", &[1][..]),
            ("stream_2", &[2, 2]),
            ("c/d", &[3]),
            ("stream_4", &[4, 4]),
            ("stream_5", &[5]),
            ("stream_7", &[6, 6]),
            ("stream_7_1", &[7]),
            ("stream_8", &[8, 8]),
            ("c/e", &[9]),
        ] {
            assert_eq!(fs::read(path.join(name)).unwrap(), expected, "{name}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn what_somebody_else_puts_there_is_left_alone() {
        let home = tempfile::TempDir::new().unwrap();
        let path = home.path().join("new");
        let victim = home.path().join("victim");
        fs::write(&victim, "mine").unwrap();
        let mut store = Store::new(&path).unwrap();
        for (stream, link) in [(1, "one"), (2, "two"), (3, ".stream_3")] {
            if stream == 1 {
                store.name(stream, "one").unwrap();
            }
            std::os::unix::fs::symlink(&victim, path.join(link)).unwrap();
            if stream == 2 {
                assert!(!store.name(stream, "two").unwrap());
            }
            store.append(stream, b"packet").unwrap();
        }
        store.finish().unwrap();
        assert_eq!(fs::read_to_string(&victim).unwrap(), "mine");
        for name in ["stream_1", "stream_2", "stream_3"] {
            assert_eq!(fs::read(path.join(name)).unwrap(), b"packet");
        }
        let moved = ("one".into(), "stream_1".into());
        assert!(store.moved().contains(&moved));
    }

    #[test]
    fn streams_get_their_names_before_and_after_their_packets() {
        let home = tempfile::TempDir::new().unwrap();
        let path = home.path().join("new");
        let mut store = Store::new(&path).unwrap();
        store.append(1, b"one ").unwrap();
        assert!(store.name(1, "t/one").unwrap());
        store.append(1, b"more").unwrap();
        assert!(!store.name(2, "t/one").unwrap());
        store.append(2, b"two").unwrap();
        store.append(3, b"three").unwrap();
        assert!(store.name(4, "empty").unwrap());
        store.lose(1, 3, 4);
        store.lose(1, 5, 5);
        store.lose(1, 8, 8);
        store.finish().unwrap();
        assert_eq!(store.files(), 4);
        let lost: Vec<_> = store.lost().map(|(_, first, last)| (first, last)).collect();
        assert_eq!(lost, [(3, 5), (8, 8)]);
        for (name, expected) in [
            ("t/one", "one more"),
            ("stream_2", "two"),
            ("stream_3", "three"),
            ("empty", ""),
        ] {
            assert_eq!(fs::read_to_string(path.join(name)).unwrap(), expected);
        }
        assert!(matches!(Store::new(&path), Err(Failure::Usage(_))));
    }
}
