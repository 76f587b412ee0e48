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
mod error;
mod estimate;
mod files;
mod foreign;
mod search;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use kymo_collectd::network::Keys;
use kymo_cpel::elog::Recording as Elog;
use kymo_cpel::points::PointDefinitions;
use kymo_ctf::trace::{Directory, PacketSource, Trace};
use kymo_index::{Cache, Key};
use kymo_io::in_threads;
use kymo_machine::Machine;
use kymo_model::{Drift, Recording as _, Shift};

pub use align::{AlignError, Alignment, apart, are_relative, open_aligned, parse_aligned};
pub use clocks::clocks_apart;
pub use correct::{Correction, Corrections};
pub use files::{FileFormat, OpenDirectory, OpenFile, Opened as OpenedFile, Score};
pub use foreign::Foreign;

pub use kymo_cpel::clock::ClockChoice;
pub use kymo_ctf::trace::{OpenError, Options as TraceOptions};

use crate::AnyRecording;
use crate::filter::Glob;
use crate::pipeline::Window;

pub use error::Error;
use search::{Finding, Found, Search};

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
    /// Where packets of traces are kept that were [indexed](crate::timeline::IndexOptions::cache) before: these need not
    /// be found again.
    pub cache: Option<Cache>,
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
        let databases = recordings.iter().filter_map(|recording| match recording {
            AnyRecording::Rrd(database) => Some((recording.path().to_path_buf(), database.clone())),
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

/// What distinguishes the packets of a trace from others in the cache.
pub(crate) fn packet_key(source: &PacketSource) -> Key {
    Key::of_numbers(&source.files, source.how.clone())
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
    for (input, opened, damage) in open_found(found, options) {
        errors.extend(damage);
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
fn open_found(
    found: Vec<Finding>,
    options: &Options,
) -> Vec<(usize, Result<AnyRecording, Error>, Vec<Error>)> {
    let is_file = |finding: &&Finding| matches!(finding.found, Found::File(..));
    let threads = match found.iter().filter(is_file).count() {
        0..FEW_FILES => 1,
        _ => std::thread::available_parallelism().map_or(1, |threads| threads.get()),
    };
    let found: Vec<Mutex<Option<Finding>>> = found
        .into_iter()
        .map(|finding| Mutex::new(Some(finding)))
        .collect();
    let parts = in_threads(found.len(), threads, Vec::new, |part, at| {
        let mut taken = found[at].lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(Finding { input, found }) = taken.take() {
            let mut damage = Vec::new();
            let opened = found.open(options, &mut damage);
            part.push((at, (input, opened, damage)));
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
    for recording in known {
        let path = search.tree.real(recording.path());
        search.seen.insert(path);
        for directory in recording.as_ctf().into_iter().flat_map(Trace::directories) {
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
                let opened = found.open(options, &mut Vec::new()).ok();
                appeared
                    .recordings
                    .extend(opened.map(|recording| (recording, input)));
            }
            Found::Trace(group) => {
                let is_part = |recording: &AnyRecording| {
                    let first = group.directories.first();
                    first.is_some_and(|first| {
                        recording
                            .as_ctf()
                            .is_some_and(|trace| trace.has_identity_of(first))
                    })
                };
                match known.iter().position(is_part) {
                    Some(trace) => {
                        let parts = group.directories.into_iter();
                        appeared.directories.extend(parts.map(|part| (trace, part)));
                    }
                    None => {
                        let opened = group.open(options).ok().map(AnyRecording::Ctf);
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
