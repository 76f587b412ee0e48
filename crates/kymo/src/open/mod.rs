//! Paths to recordings.
//!
//! A path is what is wanted itself (a trace's directory), a directory in which it is looked
//! for, or a file of it:
//!
//! * A directory with a file named `metadata` is a CTF trace, and is not searched further.
//! * Any other directory is searched, with all below it, in the order of names; symbolic
//!   links are followed, each directory is looked into once.
//! * A file that begins as round-robin databases do is one. In directories that are searched, files
//!   are looked at whose names end in `.rrd`.
//! * A file that is what a CPEL, elog or Gist file is, is an event log. In directories that are
//!   searched, files are looked at whose names end in `.cpel`, `.elog` or `.gist`.
//! * A file of JSON lines that a CPEL file was converted to is that event log again. It is read whole.
//! * A file that is a capture of a network (pcap, pcapng), or begins as datagrams of collectd do, is
//!   a recording of those. Directories are not searched for them.
//! * A trace's `metadata` file stands for its directory; another file beside it is the trace
//!   with this one data stream file.
//!
//! Directories whose metadata has the same identity (in CTF 1.8 the UUID; in CTF 2 name space, name
//! and unique identifier; RFC v1.1 has none) are one trace, whatever path led to them.

mod place;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use kymo_collectd::network::Keys;
use kymo_collectd::recording::{
    OpenError as MetricsError, Options as MetricsOptions, Recording as Metrics, is_recording,
};
use kymo_cpel::elog::Recording as Elog;
use kymo_cpel::json;
use kymo_cpel::probe::{Kind, Likeness, probe};
use kymo_cpel::recording::{OpenError as LogError, Options as LogOptions, Recording as Cpel};
use kymo_ctf::trace::{Directory, METADATA_NAME, Trace};
use kymo_io::{Access, Bytes, EntryKind};
use kymo_machine::Machine;
use kymo_rrd::recording::{ClockOffset, OpenError as DatabaseError, Recording as Database};
use kymo_rrd::{LONGEST_BEGINNING, is_database};
use kymo_time::NANOS_PER_SECOND;

pub use place::{Duration, PlaceError, Placing, open_placed, parse_placed};

pub use kymo_cpel::clock::ClockChoice;
pub use kymo_ctf::trace::{OpenError, Options as TraceOptions};

use crate::AnyRecording;

/// How recordings are opened.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// How traces are opened. What is added to their clocks is added to the times of
    /// databases and event logs, too.
    pub trace: TraceOptions,
    /// The machine that wrote the databases, where it is not found or found wrong.
    pub machine: Option<&'static Machine>,
    /// What the clock of event logs is, where it is not found or found wrong.
    pub clock: ClockChoice,
    /// Whom signed and encrypted datagrams of collectd may be from.
    pub keys: Option<Keys>,
}

impl Options {
    /// The same, with so much added to all times.
    fn shifted(&self, nanos: i64) -> Self {
        let mut shifted = self.clone();
        let trace = &mut shifted.trace;
        // Whole seconds apart, so that what fits at the end may be large on the way.
        trace.clock_offset_seconds = trace
            .clock_offset_seconds
            .saturating_add(nanos / NANOS_PER_SECOND);
        trace.clock_offset_nanos = trace
            .clock_offset_nanos
            .saturating_add(nanos % NANOS_PER_SECOND);
        shifted
    }

    fn offset(&self) -> ClockOffset {
        ClockOffset {
            seconds: self.trace.clock_offset_seconds,
            nanos: self.trace.clock_offset_nanos,
        }
    }

    /// What is added to the times of the event log or the datagrams at a path.
    fn offset_nanos(&self, path: &Path) -> Result<i64, Error> {
        let seconds = i128::from(self.trace.clock_offset_seconds);
        let nanos = seconds * i128::from(NANOS_PER_SECOND);
        let nanos = nanos + i128::from(self.trace.clock_offset_nanos);
        i64::try_from(nanos).map_err(|_| Error::TooFar {
            path: path.to_path_buf(),
        })
    }

    fn logs(&self, path: &Path) -> Result<LogOptions, Error> {
        Ok(LogOptions {
            clock: self.clock,
            offset_nanos: self.offset_nanos(path)?,
            from_unix_epoch: self.trace.clocks_from_unix_epoch,
        })
    }

    fn metrics(&self, path: &Path) -> Result<MetricsOptions, Error> {
        Ok(MetricsOptions {
            keys: self.keys.clone(),
            offset_nanos: self.offset_nanos(path)?,
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
    /// Paths that are not placed as the others are, and why; for people.
    pub warnings: Vec<String>,
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
    /// There is no recording at a path or below it.
    NothingFound {
        /// The path.
        path: PathBuf,
        /// Whether it is a directory.
        is_directory: bool,
    },
    /// An event log or datagrams that shall lie farther from where they are than 64 bits of
    /// nanoseconds reach.
    TooFar {
        /// Where it is.
        path: PathBuf,
    },
    /// A trace that cannot be opened.
    Trace(OpenError),
    /// A round-robin database that cannot be opened.
    Database(DatabaseError),
    /// An event log that cannot be opened.
    Log(LogError),
    /// Datagrams of collectd that cannot be opened.
    Metrics(MetricsError),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable { path, error } => write!(f, "{}: {error}", path.display()),
            Self::NothingFound {
                path,
                is_directory: true,
            } => write!(
                f,
                "{}: no recording found: neither here nor below is a directory with a file named `{METADATA_NAME}`, \
                 which makes it a CTF trace, or a database whose name ends in `.rrd`, \
                 or an event log whose name ends in `.cpel`, `.elog` or `.gist`",
                path.display()
            ),
            Self::NothingFound {
                path,
                is_directory: false,
            } => write!(
                f,
                "{}: not a recording: it is no round-robin database, no event log, no capture (pcap, pcapng) and no \
                 datagram of collectd, and there is no file named `{METADATA_NAME}` beside it, which would make it a part of a CTF trace",
                path.display()
            ),
            Self::TooFar { path } => write!(
                f,
                "the recordings of `{}` cannot be placed: the moment is too far away",
                path.display()
            ),
            Self::Trace(error) => write!(f, "{error}"),
            Self::Database(error) => write!(f, "{error}"),
            Self::Log(error) => write!(f, "{error}"),
            Self::Metrics(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for Error {}

/// Opens everything that is at or below some paths.
///
/// What cannot be opened does not hide the rest: it is told by [`Opened::errors`].
pub fn open(paths: &[PathBuf], options: &Options) -> Opened {
    open_shifted(paths, &vec![0; paths.len()], options)
}

/// The same; so many nanoseconds are added to the times of each path.
fn open_shifted(paths: &[PathBuf], shifts: &[i64], options: &Options) -> Opened {
    let mut search = Search::default();
    for (input, (path, shift)) in paths.iter().zip(shifts).enumerate() {
        search.input = input;
        search.options = options.shifted(*shift);
        if let Err(error) = search.path(path) {
            search.errors.push(error);
        }
    }
    let Search {
        found, mut errors, ..
    } = search;
    let mut recordings = Vec::new();
    let mut inputs = Vec::new();
    for Finding { input, found } in found {
        let recording = match found {
            Found::Other(recording) => *recording,
            Found::Trace(group) => match group.open() {
                Ok(trace) => AnyRecording::Ctf(trace),
                Err(error) => {
                    errors.push(Error::Trace(error));
                    continue;
                }
            },
        };
        recordings.push(recording);
        inputs.push(input);
    }
    put_elogs_together(&mut recordings);
    Opened {
        recordings,
        inputs,
        errors,
        warnings: Vec::new(),
    }
}

/// Puts elog files at the distance from the first of them that VPP's rule tells. Where one
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
        log.shift(distance.saturating_sub(by_system));
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
    Other(Box<AnyRecording>),
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
    /// How what it leads to is opened.
    options: Options,
    /// Position in `found` of the traces that have an identity.
    by_identity: HashMap<Identity, usize>,
    /// Directories that were opened or searched, and databases, by their real paths.
    seen: HashSet<PathBuf>,
    errors: Vec<Error>,
}

impl Search {
    fn path(&mut self, path: &Path) -> Result<(), Error> {
        let unreadable = |error| Error::Unreadable {
            path: path.to_path_buf(),
            error,
        };
        let metadata = std::fs::metadata(path).map_err(unreadable)?;
        if metadata.is_dir() {
            return self.directory(path);
        }
        // Opening a pipe would wait for somebody to write into it.
        if metadata.is_file() && begins_as_database(path).map_err(unreadable)? {
            self.database(path);
            return Ok(());
        }
        // A log may be damaged where its name says what it is: else it could be taken for datagrams.
        if metadata.is_file() && self.log(path, log_name(path).is_some()) {
            return Ok(());
        }
        match self.part_of_trace(path) {
            Err(Error::NothingFound { .. }) if metadata.is_file() && self.metrics(path) => Ok(()),
            // What looks like a log may be a damaged one.
            Err(Error::NothingFound { .. }) if metadata.is_file() && self.log(path, true) => Ok(()),
            result => result,
        }
    }

    /// Opens a trace with one of its files alone.
    fn part_of_trace(&mut self, path: &Path) -> Result<(), Error> {
        let nothing = || Error::NothingFound {
            path: path.to_path_buf(),
            is_directory: false,
        };
        let directory = match path.parent() {
            Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
            Some(parent) => parent,
            None => return Err(nothing()),
        };
        let metadata = Directory::metadata_path(directory).ok_or_else(nothing)?;
        if path.file_name() == metadata.file_name() {
            return self.directory(directory);
        }
        let mut directory =
            Directory::open_with(directory, &self.options.trace).map_err(Error::Trace)?;
        directory
            .files
            .retain(|file| file.path.file_name() == path.file_name());
        if directory.files.is_empty() {
            return Err(nothing());
        }
        self.add_found(Found::Trace(Group {
            directories: vec![directory],
            place: None,
            options: self.options.trace.clone(),
        }));
        Ok(())
    }

    /// Opens a trace, or searches a directory for traces.
    fn directory(&mut self, root: &Path) -> Result<(), Error> {
        let mut found = false;
        // Depth first, in the order of names: the last one is the next.
        let mut ahead = vec![root.to_path_buf()];
        while let Some(path) = ahead.pop() {
            let is_trace = Directory::is_trace(&path);
            found |= is_trace;
            // A link may lead to where the search has been already.
            let real = std::fs::canonicalize(&path).unwrap_or_else(|_| path.clone());
            if !self.seen.insert(real) {
                found |= path == root;
            } else if is_trace {
                match Directory::open_with(&path, &self.options.trace) {
                    Ok(directory) => self.add(root, directory),
                    Err(error) => self.errors.push(Error::Trace(error)),
                }
            } else {
                match kymo_io::list(&path) {
                    Ok(entries) => {
                        let of = |kind| entries.iter().filter(move |entry| entry.kind == kind);
                        for entry in of(EntryKind::File) {
                            if entry.path.extension().is_some_and(|name| name == "rrd") {
                                found = true;
                                self.database(&entry.path);
                            } else if log_name(&entry.path).is_some() {
                                found = true;
                                self.log(&entry.path, true);
                            }
                        }
                        // What is being written, or was when a program was killed, is no recording yet.
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
                is_directory: true,
            }),
        }
    }

    /// Opens a database, unless a link has led to it before.
    fn database(&mut self, path: &Path) {
        let real = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
        if !self.seen.insert(real) {
            return;
        }
        match Database::open(path, self.options.machine, self.options.offset()) {
            Ok(database) => self.add_other(AnyRecording::Rrd(database)),
            Err(error) => self.errors.push(Error::Database(error)),
        }
    }

    /// Opens an event log, unless a link has led to it before. Without `damaged` only what is a
    /// log for certain, else also what begins as one or is called so. `false` where it is none.
    fn log(&mut self, path: &Path, damaged: bool) -> bool {
        let bytes = match Bytes::open(path, Access::Sequential) {
            Ok(bytes) => bytes,
            Err(error) => {
                let path = path.to_path_buf();
                self.errors.push(Error::Unreadable { path, error });
                return true;
            }
        };
        if json::begins(&bytes) {
            self.lines(path, &bytes);
            return true;
        }
        let kind = match probe(&bytes) {
            Some(Likeness::Whole(kind)) => Some(kind),
            Some(Likeness::Beginning(kind)) if damaged => Some(kind),
            _ if damaged => log_name(path),
            _ => None,
        };
        let Some(kind) = kind else {
            return false;
        };
        let real = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
        if !self.seen.insert(real) {
            return true;
        }
        self.open_log(path, bytes, kind);
        true
    }

    fn open_log(&mut self, path: &Path, bytes: Bytes, kind: Kind) {
        let log = self.options.logs(path);
        match log.and_then(|options| open_log(path, bytes, kind, &options).map_err(Error::Log)) {
            Ok(recording) => self.add_other(recording),
            Err(error) => self.errors.push(error),
        }
    }

    /// Opens the event log that JSON lines tell of, unless a link has led to them before.
    fn lines(&mut self, path: &Path, text: &[u8]) {
        let real = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
        if !self.seen.insert(real) {
            return;
        }
        match json::read(text) {
            Ok(log) => self.open_log(path, log.into(), Kind::Cpel),
            Err(error) => self.errors.push(Error::Log(LogError::wrong(path, &error))),
        }
    }

    /// Opens datagrams of collectd, unless a link has led to them before. `false` where there are
    /// none.
    fn metrics(&mut self, path: &Path) -> bool {
        let Ok(bytes) = Bytes::open(path, Access::Sequential) else {
            return false;
        };
        if !is_recording(&bytes) {
            return false;
        }
        let real = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
        if !self.seen.insert(real) {
            return true;
        }
        let metrics = self.options.metrics(path);
        let open = |options| Metrics::new(path, &bytes, &options).map_err(Error::Metrics);
        match metrics.and_then(open) {
            Ok(metrics) => self.add_other(AnyRecording::Metrics(metrics)),
            Err(error) => self.errors.push(error),
        }
        true
    }

    fn add_other(&mut self, recording: AnyRecording) {
        self.add_found(Found::Other(Box::new(recording)));
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

/// The format that the name of a file tells.
fn log_name(path: &Path) -> Option<Kind> {
    match path.extension()?.to_str()? {
        "cpel" => Some(Kind::Cpel),
        "elog" => Some(Kind::Elog),
        "gist" => Some(Kind::Gist),
        _ => None,
    }
}

fn open_log(
    path: &Path,
    bytes: Bytes,
    kind: Kind,
    options: &LogOptions,
) -> Result<AnyRecording, LogError> {
    match kind {
        Kind::Cpel => Cpel::new(path, bytes, options)
            .map(AnyRecording::Cpel)
            .map_err(|error| LogError::wrong(path, &error)),
        Kind::Gist => Cpel::gist(path, bytes, options)
            .map(AnyRecording::Cpel)
            .map_err(|error| LogError::wrong(path, &error)),
        Kind::Elog => Elog::new(path, bytes, options)
            .map(AnyRecording::Elog)
            .map_err(|error| LogError::wrong(path, &error)),
    }
}

/// Whether a file begins as round-robin databases do.
fn begins_as_database(path: &Path) -> io::Result<bool> {
    let mut begin = Vec::new();
    let file = std::fs::File::open(path)?;
    file.take(LONGEST_BEGINNING).read_to_end(&mut begin)?;
    Ok(is_database(&begin))
}
