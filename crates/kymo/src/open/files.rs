//! The table of formats of which each file is a recording.
//!
//! A file is opened by the format that is surest of it. A data stream file of a CTF trace says nothing of
//! its format: it is one if the metadata is beside it, unless a format of this table is surer than
//! [`UNSURE`].

use std::path::Path;

use kymo_collectd::recording::{Options as MetricsOptions, Recording as Metrics, is_recording};
use kymo_cpel::elog::Recording as Elog;
use kymo_cpel::json;
use kymo_cpel::probe::{Kind, Likeness};
use kymo_cpel::recording::{OpenError as LogError, Options as LogOptions, Recording as Cpel};
use kymo_io::{Bytes, Tree, without_compression};
use kymo_maps::MapExport;
use kymo_rrd::recording::{OpenError as DatabaseError, Recording as Database};

use super::{Error, Options};
use crate::AnyRecording;

/// How sure a format is of a file, from 1 to 100.
pub type Score = u8;

/// Formats with at most this score come after the traces whose metadata is beside a file.
pub(super) const UNSURE: Score = 35;

/// What opening a file gives.
pub type Opened = Result<AnyRecording, Error>;

/// A format of which each file is a recording. Programs [add](Options::formats) those that this crate does not know.
#[derive(Clone, Copy, Debug)]
pub struct FileFormat {
    /// The endings of the names of its files, for which directories are searched.
    pub endings: &'static [&'static str],
    /// How sure it is that content is of this format. The path is asked for its ending only.
    pub probe: fn(&[u8], &Path) -> Option<Score>,
    /// Opens the content of a file.
    pub open: fn(&Path, Bytes, &Options) -> Opened,
    /// Opens a file itself, where others may change it meanwhile.
    pub open_file: Option<OpenFile>,
    /// Opens a directory whose files belong together; `None` if it is not of this format, and is searched.
    pub open_directory: Option<OpenDirectory>,
}

/// Opens a file of a format.
pub type OpenFile = fn(&Path, &Options) -> Opened;

/// Opens a directory of a format.
pub type OpenDirectory = fn(&Tree, &Path, &Options) -> Option<Vec<Opened>>;

/// All formats. If several are equally sure, the first one is taken.
pub(super) static FORMATS: [FileFormat; 5] = [
    FileFormat {
        endings: &["rrd"],
        probe: |bytes, _| kymo_rrd::is_database(bytes).then_some(100),
        open: |path, bytes, options| {
            let opened = Database::new(path, bytes, options.machine);
            opened.map(AnyRecording::Rrd).map_err(|error| {
                Error::Database(DatabaseError::Wrong {
                    path: path.to_path_buf(),
                    error: Box::new(error),
                })
            })
        },
        open_directory: None,
        open_file: Some(|path, options| {
            if let Some(known) = options.known.database(path) {
                return Ok(known);
            }
            let opened = Database::open(path, options.machine);
            opened.map(AnyRecording::Rrd).map_err(Error::Database)
        }),
    },
    FileFormat {
        endings: &["pftrace", "perfetto-trace"],
        probe: |bytes, path| kymo_perfetto::probe(bytes, path).map(|found| found.score),
        open: |path, bytes, _| {
            let opened = kymo_perfetto::Recording::from_bytes(path, &bytes);
            opened.map(AnyRecording::Perfetto).map_err(Error::Perfetto)
        },
        open_file: None,
        open_directory: None,
    },
    FileFormat {
        endings: &["cpel", "elog", "gist"],
        probe: |bytes, path| match kymo_cpel::probe::probe(bytes) {
            Some(Likeness::Whole(_)) => Some(90),
            _ if json::is_log(bytes) => Some(90),
            // It may be damaged where its name says what it is: else it could be taken for datagrams.
            _ if kind_by_name(path).is_some() => Some(40),
            Some(Likeness::Beginning(_)) => Some(10),
            None => None,
        },
        open: open_log,
        open_file: None,
        open_directory: None,
    },
    FileFormat {
        endings: &[],
        probe: |bytes, _| kymo_maps::is_export(bytes).then_some(95),
        open: |path, bytes, _| Ok(AnyRecording::Maps(MapExport::new(path, &bytes))),
        open_file: None,
        open_directory: None,
    },
    FileFormat {
        endings: &[],
        probe: |bytes, _| is_recording(bytes).then_some(20),
        open: |path, bytes, options| {
            let options = MetricsOptions {
                keys: options.keys.clone(),
            };
            let opened = Metrics::new(path, &bytes, &options);
            opened.map(AnyRecording::Metrics).map_err(Error::Metrics)
        },
        open_file: None,
        open_directory: None,
    },
];

/// These, and those that a program has added.
fn with_added(options: &Options) -> impl Iterator<Item = &'static FileFormat> {
    FORMATS.iter().chain(options.formats)
}

/// The format of which the ending of a file's name is, compressed or not.
pub(super) fn by_name(path: &Path, options: &Options) -> Option<&'static FileFormat> {
    let plain = without_compression(path);
    let ending = plain.extension()?.to_str()?;
    with_added(options).find(|format| format.endings.contains(&ending))
}

/// How the names of files end that are looked for in directories, for people.
pub(super) fn endings() -> String {
    let endings = FORMATS.iter().flat_map(|format| format.endings);
    let endings: Vec<_> = endings.map(|ending| format!("`*.{ending}`")).collect();
    endings.join(", ")
}

/// The format that is surest of a file, and how sure it is.
pub(super) fn by_content(
    bytes: &[u8],
    path: &Path,
    options: &Options,
) -> Option<(Score, &'static FileFormat)> {
    let mut surest: Option<(Score, &'static FileFormat)> = None;
    for format in with_added(options) {
        if let Some(score) = (format.probe)(bytes, path)
            && surest.is_none_or(|(known, _)| known < score)
        {
            surest = Some((score, format));
        }
    }
    surest
}

/// The kind of event log that the name of a file says.
fn kind_by_name(path: &Path) -> Option<Kind> {
    match without_compression(path).extension()?.to_str()? {
        "cpel" => Some(Kind::Cpel),
        "elog" => Some(Kind::Elog),
        "gist" => Some(Kind::Gist),
        _ => None,
    }
}

/// Opens an event log, or the JSON lines that one was converted to.
fn open_log(path: &Path, bytes: Bytes, options: &Options) -> Opened {
    let wrong = |error: &dyn ToString| Error::Log(LogError::wrong(path, &error.to_string()));
    let (bytes, kind) = match kymo_cpel::probe::probe(&bytes) {
        _ if json::is_log(&bytes) => {
            let log = json::read(&bytes).map_err(|error| wrong(&error))?;
            (log, Kind::Cpel)
        }
        Some(Likeness::Whole(kind) | Likeness::Beginning(kind)) => (bytes, kind),
        None => (bytes, kind_by_name(path).unwrap_or(Kind::Cpel)),
    };
    let options = LogOptions {
        clock: options.clock,
        points: options.points.clone(),
    };
    match kind {
        Kind::Cpel => Cpel::new(path, bytes, &options)
            .map(AnyRecording::Cpel)
            .map_err(|error| wrong(&error)),
        Kind::Gist => Cpel::gist(path, bytes, &options)
            .map(AnyRecording::Cpel)
            .map_err(|error| wrong(&error)),
        Kind::Elog => Elog::new(path, bytes)
            .map(AnyRecording::Elog)
            .map_err(|error| wrong(&error)),
    }
}
