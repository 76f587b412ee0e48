//! Paths to recordings.
//!
//! A path is what is wanted itself (a trace's directory), a directory in which it is looked
//! for, or a file of it:
//!
//! * A directory with a file named `metadata` is a CTF trace, and is not searched further.
//! * A directory of a format that a program has [added](Options::formats), such as tables, is that recording.
//! * Any other directory is searched, with all below it, in the order of names; symbolic
//!   links are followed, each directory is looked into once.
//! * A file that begins as round-robin databases do is one. In directories that are searched, files
//!   are examined if their names end in `.rrd`.
//! * A file that is what a CPEL, elog or Gist file is, is an event log. In directories that are
//!   searched, files are examined if their names end in `.cpel`, `.elog` or `.gist`.
//! * A file of JSON lines that a CPEL file was converted to is that event log again. It is read whole.
//! * A file that is a capture of a network (pcap, pcapng), or begins as datagrams of collectd do, is
//!   a recording of those. Directories are not searched for them.
//! * A trace's `metadata` file stands for its directory; another file beside it is the trace
//!   with this one data stream file.
//!
//! * A script that `lttng export-maps` wrote is counters of LTTng's maps. Directories are not searched for them.
//! * A tar archive is the directory that it was made of, a compressed file (gzip, Zstandard) what was compressed,
//!   `-` standard input, which is any of these. Nothing is extracted. In directories that are searched, compressed
//!   files are looked at by the names that they had before, and archives are not.
//!
//! Directories whose metadata has the same identity (in CTF 1.8 the UUID; in CTF 2 name space, name
//! and unique identifier; RFC v1.1 has none) are one trace, whatever path led to them.

mod align;
mod clocks;
mod correct;
mod estimate;
mod files;
mod foreign;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use kymo_collectd::network::Keys;
use kymo_collectd::recording::OpenError as MetricsError;
use kymo_cpel::elog::Recording as Elog;
use kymo_cpel::points::PointDefinitions;
use kymo_cpel::recording::OpenError as LogError;
use kymo_ctf::trace::{Directory, METADATA_NAME, Trace};
use kymo_io::{Access, Bytes, EntryKind, STANDARD_INPUT, Tree, in_threads};
use kymo_machine::Machine;
use kymo_model::{Drift, Recording as _, Shift};
use kymo_rrd::recording::OpenError as DatabaseError;

pub use align::{
    AlignError, Alignment, Duration, apart, are_relative, open_aligned, parse_aligned,
};
pub use clocks::clocks_apart;
pub use correct::{Correction, Corrections};
use files::UNSURE;
pub use files::{FileFormat, OpenDirectory, OpenFile, Opened as OpenedFile, Score};
pub use foreign::Foreign;

pub use kymo_cpel::clock::ClockChoice;
pub use kymo_ctf::trace::{OpenError, Options as TraceOptions};

use crate::filter::Glob;
use crate::pipeline::Window;
use crate::{AnyRecording, explain};

/// Fewer files are opened by one thread.
const FEW_FILES: usize = 64;

/// How recordings are opened.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// How traces are opened.
    pub trace: TraceOptions,
    /// How the times of all recordings are shifted.
    pub shift: Shift,
    /// The machine that wrote the databases, where it is not found or found wrong.
    pub machine: Option<&'static Machine>,
    /// What the clock of event logs is, where it is not found or found wrong.
    pub clock: ClockChoice,
    /// Names of the events of Gist logs.
    pub points: Option<Arc<PointDefinitions>>,
    /// Users from whom signed and encrypted datagrams of collectd are accepted, with their keys.
    pub keys: Option<Keys>,
    /// What was open before: of thousands of files few change, and the others need not be read again.
    pub known: Known,
    /// Formats that this crate does not know, such as tables.
    pub formats: &'static [FileFormat],
    /// What of the recordings is going to be read.
    pub hint: Hint,
}

/// What of recordings is going to be read. Formats that make a recording when they are opened, such as tables, may leave
/// out the rest; others give all of it.
#[derive(Clone, Debug)]
pub struct Hint {
    /// Events with a time outside of it may be left out.
    pub window: Window,
    /// Events whose names match none of these may be left out, unless there is no pattern.
    pub events: Vec<Glob>,
}

impl Default for Hint {
    fn default() -> Self {
        Self {
            window: Window::ALL,
            events: Vec::new(),
        }
    }
}

impl Hint {
    /// Whether events of a name are going to be read.
    pub fn has_event(&self, name: &str) -> bool {
        self.events.is_empty() || self.events.iter().any(|glob| glob.matches(name.as_bytes()))
    }
}

/// Recordings that are open, for opening them again: those that have not changed share what was read of them. So far
/// are databases; others are opened again.
#[derive(Clone, Debug, Default)]
pub struct Known(Arc<HashMap<PathBuf, kymo_rrd::recording::Recording>>);

impl Known {
    /// These.
    pub fn new(recordings: &[AnyRecording]) -> Self {
        let databases = recordings.iter().filter_map(|of| match of {
            AnyRecording::Rrd(database) => Some((of.path().to_path_buf(), database.clone())),
            _ => None,
        });
        Self(Arc::new(databases.collect()))
    }

    /// The database at a path, if it was open and has not changed.
    fn database(&self, path: &Path) -> Option<AnyRecording> {
        let known = self.0.get(path)?.unchanged();
        known.map(AnyRecording::Rrd)
    }
}

impl Options {
    /// What distinguishes indexes of recordings that are opened this way from others, for
    /// [`IndexOptions`](crate::timeline::IndexOptions); `None` where they are not to be kept, since only who has
    /// a key may see what is in the recordings.
    pub fn index_key(&self) -> Option<Vec<u8>> {
        let trace = &self.trace;
        let is_secret = self.keys.is_some() || !trace.keys.is_empty();
        let machine = self.machine.map(|machine| machine.name());
        let points = self.points.as_deref().map(PointDefinitions::events);
        let reported = (trace.sorts_packets, machine, self.clock);
        (!is_secret).then(|| {
            let mut key = format!("{reported:?}");
            // Names of events are names of classes, which are counted.
            if let Some(points) = points {
                key.push_str(&format!("{points:?}"));
            }
            key.into_bytes()
        })
    }
}

/// What [`open`] found, and what was in its way.
#[derive(Debug)]
pub struct Opened {
    /// The recordings, in the order they were found.
    pub recordings: Vec<AnyRecording>,
    /// Of each recording the place of the path that led to it.
    pub inputs: Vec<usize>,
    /// What could not be opened.
    pub errors: Vec<Error>,
    /// What was added to the times of the recordings of each path.
    pub shifts: Vec<Shift>,
    /// How the clocks of each path were corrected for drift, before they were shifted.
    pub drifts: Vec<Option<Drift>>,
    /// Paths that are not placed as the others are, and why; for people.
    pub warnings: Vec<String>,
    /// How paths were aligned by messages; for people.
    pub notes: Vec<String>,
    /// The same, to be kept.
    pub corrections: Corrections,
}

/// Why something could not be opened.
#[derive(Debug)]
pub enum Error {
    /// A file or directory that cannot be read.
    Unreadable {
        /// Where it is.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A directory without a recording in it or below it.
    NothingFound {
        /// The path.
        path: PathBuf,
        /// Whether nothing at all is in it.
        is_empty: bool,
    },
    /// A file that is not a recording.
    NotRecording {
        /// The path.
        path: PathBuf,
        /// What it is.
        foreign: Foreign,
    },
    /// An event log or datagrams would have to be moved farther than 64 bits of
    /// nanoseconds reach.
    TooFar {
        /// Where it is.
        path: PathBuf,
    },
    /// A compressed file or an archive of which a part is lost. The rest is opened.
    Damaged {
        /// Where it is.
        path: PathBuf,
        /// What is lost.
        message: String,
    },
    /// A trace that cannot be opened.
    Trace(OpenError),
    /// A round-robin database that cannot be opened.
    Database(DatabaseError),
    /// An event log that cannot be opened.
    Log(LogError),
    /// Datagrams of collectd that cannot be opened.
    Metrics(MetricsError),
    /// A trace of Perfetto or Chrome.
    Perfetto(kymo_perfetto::OpenError),
    /// A recording of a format that was [added](Options::formats).
    Added {
        /// Where it is.
        path: PathBuf,
        /// What is wrong with it.
        message: String,
        /// What to do about it, if that is known.
        hint: Option<String>,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable { path, error } => write!(f, "{}", explain::reading(path, error)),
            Self::NothingFound { path, is_empty } => {
                let why = match is_empty {
                    true => ": the directory is empty",
                    false => ", and neither do the directories below it",
                };
                write!(f, "`{}` contains no recording{why}", path.display())
            }
            Self::NotRecording { path, foreign } => {
                write!(f, "`{}` is not a recording", path.display())?;
                match foreign.what {
                    Some(what) => write!(f, ": it is {what}"),
                    None => Ok(()),
                }
            }
            Self::Damaged { path, message } => write!(f, "{}: {message}", path.display()),
            Self::TooFar { path } => write!(
                f,
                "the recordings of `{}` cannot be aligned: their times would not fit in 64 bits of nanoseconds",
                path.display()
            ),
            Self::Trace(error) => write!(f, "{error}"),
            Self::Database(error) => write!(f, "{error}"),
            Self::Log(error) => write!(f, "{error}"),
            Self::Metrics(error) => write!(f, "{error}"),
            Self::Perfetto(error) => write!(f, "{error}"),
            Self::Added { path, message, .. } => write!(f, "{}: {message}", path.display()),
        }
    }
}

impl std::error::Error for Error {}

impl Error {
    /// What to do about it, if that is known.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Unreadable { path, error } => explain::reading(path, error).hint,
            Self::NothingFound { .. } => Some(format!(
                "in directories, kymo looks for CTF traces (a file named `{METADATA_NAME}`) and for files named {}; \
                 specify other files one by one",
                files::endings()
            )),
            Self::NotRecording { foreign, .. } => Some(foreign.hint.clone()),
            Self::Database(DatabaseError::Wrong { path, .. }) => {
                let path = path.display();
                Some(format!(
                    "`kymo rrd check {path}` lists all damage, `kymo rrd repair {path} -o NEW.rrd` saves the rest"
                ))
            }
            Self::Added { hint, .. } => hint.clone(),
            Self::TooFar { .. } => Some("check --offset, --align and --clock-offset".to_string()),
            _ => None,
        }
    }
}

/// Opens everything that is at or below some paths.
///
/// What cannot be opened does not hide the rest: [`Opened::errors`] reports it.
pub fn open(paths: &[PathBuf], options: &Options) -> Opened {
    let mut search = Search {
        options: options.clone(),
        ..Search::default()
    };
    for (input, path) in paths.iter().enumerate() {
        search.input = input;
        if let Err(error) = search.path(path) {
            search.errors.push(error);
        }
    }
    let Search {
        found, mut errors, ..
    } = search;
    let mut recordings = Vec::new();
    let mut inputs = Vec::new();
    for (input, opened) in open_found(found, options) {
        match opened {
            Ok(recording) => {
                recordings.push(recording);
                inputs.push(input);
            }
            Err(error) => errors.push(error),
        }
    }
    put_elogs_together(&mut recordings);
    if options.shift != Shift::default() {
        let (mut shifted, mut of_shifted) = (Vec::new(), Vec::new());
        for (mut recording, input) in recordings.into_iter().zip(inputs) {
            match recording.shift(options.shift) {
                Ok(()) => {
                    shifted.push(recording);
                    of_shifted.push(input);
                }
                Err(_) => errors.push(Error::TooFar {
                    path: recording.path().to_path_buf(),
                }),
            }
        }
        (recordings, inputs) = (shifted, of_shifted);
    }
    Opened {
        recordings,
        inputs,
        errors,
        shifts: vec![Shift::default(); paths.len()],
        drifts: vec![None; paths.len()],
        warnings: Vec::new(),
        notes: Vec::new(),
        corrections: Corrections::default(),
    }
}

/// Opens what a search has found, in its order: many files in several threads.
fn open_found(found: Vec<Finding>, options: &Options) -> Vec<(usize, Result<AnyRecording, Error>)> {
    let is_file = |of: &&Finding| matches!(of.found, Found::File(..));
    let threads = match found.iter().filter(is_file).count() {
        0..FEW_FILES => 1,
        _ => std::thread::available_parallelism().map_or(1, |threads| threads.get()),
    };
    let found: Vec<Mutex<Option<Finding>>> =
        found.into_iter().map(|of| Mutex::new(Some(of))).collect();
    let parts = in_threads(found.len(), threads, Vec::new, |part, at| {
        let mut taken = found[at].lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(Finding { input, found }) = taken.take() {
            part.push((at, (input, found.open(options))));
        }
        true
    });
    let mut opened: Vec<_> = parts.into_iter().flatten().collect();
    opened.sort_by_key(|(at, _)| *at);
    opened.into_iter().map(|(_, opened)| opened).collect()
}

/// What has appeared at or below paths.
#[derive(Debug, Default)]
pub(crate) struct Appeared {
    /// Recordings, and the place of the path that led to each.
    pub(crate) recordings: Vec<(AnyRecording, usize)>,
    /// Directories that became a part of a trace, by its position.
    pub(crate) directories: Vec<(usize, Directory)>,
}

/// Looks for recordings below directories that are not among those that are known. What cannot be opened is
/// not there yet: it may be in the making.
pub(crate) fn appeared(paths: &[PathBuf], options: &Options, known: &[AnyRecording]) -> Appeared {
    let mut search = Search {
        options: options.clone(),
        ..Search::default()
    };
    for of in known {
        let path = search.tree.real(of.path());
        search.seen.insert(path);
        for directory in of.as_ctf().into_iter().flat_map(Trace::directories) {
            let path = search.tree.real(directory);
            search.seen.insert(path);
        }
    }
    for (input, path) in paths.iter().enumerate() {
        search.input = input;
        if path.is_dir() {
            // Finding nothing is not an error here.
            let _ = search.directory(path);
        }
    }
    let mut appeared = Appeared::default();
    for Finding { input, found } in search.found {
        match found {
            found @ (Found::Other(_) | Found::File(..)) => {
                let opened = found.open(options).ok();
                appeared.recordings.extend(opened.map(|of| (of, input)));
            }
            Found::Trace(group) => {
                let is_part = |of: &AnyRecording| {
                    let first = group.directories.first();
                    first.is_some_and(|first| {
                        of.as_ctf().is_some_and(|of| of.has_identity_of(first))
                    })
                };
                match known.iter().position(is_part) {
                    Some(trace) => {
                        let parts = group.directories.into_iter();
                        appeared.directories.extend(parts.map(|part| (trace, part)));
                    }
                    None => {
                        let opened = group.open().ok().map(AnyRecording::Ctf);
                        let opened = opened.map(|opened| (opened, input));
                        appeared.recordings.extend(opened);
                    }
                }
            }
        }
    }
    appeared
}

/// Puts elog files at the distance from the first of them that VPP's rule gives. Where one
/// processor has counted the time of two, that is within 100 ns of what the system's clock says, and
/// more exact.
fn put_elogs_together(recordings: &mut [AnyRecording]) {
    let mut logs = recordings
        .iter_mut()
        .filter_map(|recording| match recording {
            AnyRecording::Elog(log) => Some(log),
            _ => None,
        });
    let Some(first) = logs.next() else {
        return;
    };
    let begin = |log: &Elog| i64::try_from(log.log().begin.unix_nanos()).unwrap_or(i64::MAX);
    for log in logs {
        let by_system = begin(log).saturating_sub(begin(first));
        let distance = log.log().distance_from(first.log());
        // What does not fit stays where the system's clock says.
        let _ = log.shift(Shift {
            nanos: distance.saturating_sub(by_system).into(),
            from_unix_epoch: false,
        });
    }
}

/// What a search has found, and which of the paths led to it.
#[derive(Debug)]
struct Finding {
    input: usize,
    found: Found,
}

#[derive(Debug)]
enum Found {
    Trace(Group),
    /// A file that is opened when all are found.
    File(OpenFile, PathBuf),
    Other(Box<AnyRecording>),
}

impl Found {
    fn open(self, options: &Options) -> Result<AnyRecording, Error> {
        match self {
            Self::Other(recording) => Ok(*recording),
            Self::File(open, path) => open(&path, options),
            Self::Trace(group) => group.open().map(AnyRecording::Ctf).map_err(Error::Trace),
        }
    }
}

/// Directories that are one trace.
#[derive(Debug)]
struct Group {
    directories: Vec<Directory>,
    /// The way from the path that was searched to the first directory, unless it is the same.
    place: Option<String>,
    options: TraceOptions,
}

impl Group {
    fn open(self) -> Result<Trace, OpenError> {
        // As in babeltrace2, the place of a trace counts only if it has a single one.
        let place = (self.directories.len() == 1).then_some(self.place);
        let mut trace = Trace::new(self.directories, &self.options)?;
        if let Some(place) = place.flatten() {
            trace.set_place(&place);
        }
        Ok(trace)
    }
}

/// What makes traces the same: name space, name, unique identifier.
type Identity = (Option<String>, Option<String>, String);

/// A search for traces.
#[derive(Debug, Default)]
struct Search {
    found: Vec<Finding>,
    /// The place of the path that is searched.
    input: usize,
    /// Where it leads to.
    tree: Tree,
    /// How what it leads to is opened.
    options: Options,
    /// Position in `found` of the traces that have an identity.
    by_identity: HashMap<Identity, usize>,
    /// Directories that were opened or searched, and files that are recordings, by their real paths.
    seen: HashSet<PathBuf>,
    errors: Vec<Error>,
}

impl Search {
    fn path(&mut self, path: &Path) -> Result<(), Error> {
        let unreadable = |error| Error::Unreadable {
            path: path.to_path_buf(),
            error,
        };
        let damage;
        (self.tree, damage) = Tree::at(path).map_err(unreadable)?;
        self.damaged(path, damage);
        let kind = self.tree.kind(path).map_err(unreadable)?;
        if kind == EntryKind::Directory {
            return self.directory(path);
        }
        // Opening a pipe would wait for a writer.
        if kind == EntryKind::Other {
            return self.part_of_trace(path).unwrap_or_else(|| {
                Err(Error::NotRecording {
                    path: path.to_path_buf(),
                    foreign: foreign::special(),
                })
            });
        }
        let bytes = self.content(path)?;
        let (sure, unsure) = match files::by_content(&bytes, path, &self.options) {
            Some((score, format)) if score > UNSURE => (Some(format), None),
            found => (None, found.map(|(_, format)| format)),
        };
        if let Some(format) = sure {
            self.file(format, path, Some(bytes));
            return Ok(());
        }
        if let Some(result) = self.part_of_trace(path) {
            return result;
        }
        match unsure {
            Some(format) => {
                self.file(format, path, Some(bytes));
                Ok(())
            }
            None => Err(Error::NotRecording {
                path: path.to_path_buf(),
                foreign: foreign::recognize(&bytes, path),
            }),
        }
    }

    /// What a file holds. What of it is lost is reported.
    fn content(&mut self, path: &Path) -> Result<Bytes, Error> {
        let content = self.tree.content(path, Access::Sequential);
        let content = content.map_err(|error| Error::Unreadable {
            path: path.to_path_buf(),
            error,
        })?;
        self.damaged(path, content.damage);
        Ok(content.bytes)
    }

    /// Reports what is lost of an archive or a compressed file.
    fn damaged(&mut self, path: &Path, damage: impl IntoIterator<Item = String>) {
        let reported = damage.into_iter().map(|message| Error::Damaged {
            path: path.to_path_buf(),
            message,
        });
        self.errors.extend(reported);
    }

    /// Whether a path is the first that leads to a file.
    fn is_new(&mut self, path: &Path) -> bool {
        self.seen.insert(self.tree.real(path))
    }

    /// Opens a trace with one of its files alone; `None` if the file is not a part of a trace.
    fn part_of_trace(&mut self, path: &Path) -> Option<Result<(), Error>> {
        let directory = match path.parent() {
            _ if path.as_os_str() == STANDARD_INPUT => return None,
            Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
            Some(parent) => parent,
            None => return None,
        };
        // Its compressed content is not the tree that it lies in.
        self.tree = match Tree::at(directory) {
            Ok((tree @ Tree::Remote(_), _)) => tree,
            _ => Tree::Disk,
        };
        let metadata = Directory::metadata_path_in(&self.tree, directory)?;
        if path.file_name() == metadata.file_name() {
            return Some(self.directory(directory));
        }
        let opened = Directory::open_in(&self.tree, directory, &self.options.trace);
        let mut directory = match opened {
            Ok(directory) => directory,
            Err(error) => return Some(Err(Error::Trace(error))),
        };
        directory
            .files
            .retain(|file| file.path.file_name() == path.file_name());
        directory.is_whole = false;
        if directory.files.is_empty() {
            return None;
        }
        self.add_found(Found::Trace(Group {
            directories: vec![directory],
            place: None,
            options: self.options.trace.clone(),
        }));
        Some(Ok(()))
    }

    /// Opens a trace, or searches a directory for traces.
    fn directory(&mut self, root: &Path) -> Result<(), Error> {
        let mut found = false;
        // Depth first, in the order of names: the last one is the next.
        let mut ahead = vec![root.to_path_buf()];
        while let Some(path) = ahead.pop() {
            let is_trace = Directory::metadata_path_in(&self.tree, &path).is_some();
            found |= is_trace;
            // A link may lead to where the search has been already.
            if !self.is_new(&path) {
                found |= path == root;
            } else if is_trace {
                match Directory::open_in(&self.tree, &path, &self.options.trace) {
                    Ok(directory) => self.add(root, directory),
                    Err(error) => self.errors.push(Error::Trace(error)),
                }
            } else if let Some(opened) = self.added_directory(&path) {
                found = true;
                for opened in opened {
                    self.add_opened(opened);
                }
            } else {
                match self.tree.list(&path) {
                    Ok(entries) => {
                        let of = |kind| entries.iter().filter(move |entry| entry.kind == kind);
                        for entry in of(EntryKind::File) {
                            if let Some(format) = files::by_name(&entry.path, &self.options) {
                                found = true;
                                self.file(format, &entry.path, None);
                            }
                        }
                        // A directory that is being written, or was when a program was killed, is not a recording yet.
                        let directories = of(EntryKind::Directory)
                            .filter(|entry| !kymo_io::is_beside(&entry.name));
                        ahead.extend(directories.map(|entry| entry.path.clone()).rev());
                    }
                    Err(error) => self.errors.push(Error::Unreadable { path, error }),
                }
            }
        }
        match found {
            true => Ok(()),
            false => Err(Error::NothingFound {
                path: root.to_path_buf(),
                is_empty: self.tree.list(root).is_ok_and(|entries| entries.is_empty()),
            }),
        }
    }

    /// Opens a file, unless a link has led to it before. Its content is what it holds, where that is known.
    fn file(&mut self, format: &FileFormat, path: &Path, content: Option<Bytes>) {
        if !self.is_new(path) {
            return;
        }
        let is_plain = matches!(self.tree, Tree::Disk) && !Tree::is_wrapped(path).unwrap_or(false);
        let opened = match (format.open_file, content) {
            (Some(open), _) if is_plain => {
                self.add_found(Found::File(open, path.to_path_buf()));
                return;
            }
            (_, Some(bytes)) => (format.open)(path, bytes, &self.options),
            (_, None) => self
                .content(path)
                .and_then(|bytes| (format.open)(path, bytes, &self.options)),
        };
        self.add_opened(opened);
    }

    /// Opens a directory of a format that was added.
    fn added_directory(&self, path: &Path) -> Option<Vec<OpenedFile>> {
        let open = |format: &FileFormat| format.open_directory?(&self.tree, path, &self.options);
        self.options.formats.iter().find_map(open)
    }

    fn add_opened(&mut self, opened: OpenedFile) {
        match opened {
            Ok(recording) => self.add_found(Found::Other(Box::new(recording))),
            Err(error) => self.errors.push(error),
        }
    }

    fn add_found(&mut self, found: Found) {
        let input = self.input;
        self.found.push(Finding { input, found });
    }

    /// Adds a directory to the group it belongs to.
    fn add(&mut self, root: &Path, directory: Directory) {
        let class = &directory.metadata.class;
        let identity = class
            .uid
            .clone()
            .map(|uid| (class.namespace.clone(), class.name.clone(), uid));
        let known = identity
            .as_ref()
            .and_then(|identity| self.by_identity.get(identity));
        let known = known.and_then(|&position| self.found.get_mut(position));
        if let Some(Found::Trace(group)) = known.map(|finding| &mut finding.found) {
            group.directories.push(directory);
            return;
        }
        if let Some(identity) = identity {
            self.by_identity.insert(identity, self.found.len());
        }
        let place = directory.path.strip_prefix(root).ok().map(|place| {
            let parts: Vec<_> = place
                .components()
                .map(|part| part.as_os_str().to_string_lossy())
                .collect();
            parts.join("/")
        });
        self.add_found(Found::Trace(Group {
            directories: vec![directory],
            place: place.filter(|place| !place.is_empty()),
            options: self.options.trace.clone(),
        }));
    }
}
