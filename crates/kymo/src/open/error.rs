//! Why something could not be opened.

use std::path::PathBuf;
use std::{fmt, io};

use kymo_collectd::recording::OpenError as MetricsError;
use kymo_cpel::recording::OpenError as LogError;
use kymo_ctf::trace::{METADATA_NAME, OpenError};
use kymo_rrd::recording::OpenError as DatabaseError;

use super::files;
use super::foreign::Foreign;
use crate::explain;

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
        /// A file in it with records that kymo does not read as they are.
        likely: Option<Box<(PathBuf, Foreign)>>,
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
    /// A recording of a format that was [added](super::Options::formats).
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
            Self::NothingFound { path, is_empty, .. } => {
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
            Self::NothingFound {
                likely: Some(likely),
                ..
            } => {
                let (path, Foreign { what, hint }) = &**likely;
                let what = what.unwrap_or_default();
                Some(format!("`{}` is {what}: {hint}", path.display()))
            }
            Self::NothingFound { .. } => Some(format!(
                "in directories, kymo looks for CTF traces (a file named `{METADATA_NAME}`) and for files named {}; \
                 specify other files one by one",
                files::endings()
            )),
            Self::NotRecording { foreign, .. } => Some(foreign.hint.clone()),
            Self::Database(DatabaseError::Wrong { path, .. }) => {
                Some(explain::damaged_database(path))
            }
            Self::Added { hint, .. } => hint.clone(),
            Self::TooFar { .. } => Some("check --offset, --align and --clock-offset".to_string()),
            _ => None,
        }
    }
}
