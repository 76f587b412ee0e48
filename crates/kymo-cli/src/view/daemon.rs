//! A daemon that holds updates of the databases that are shown: it is asked to write them.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use kymo::AnyRecording;
use kymo_model::Recording;
use kymo_rrdtool::{Defaults, Session, run};

use crate::terminal::Terminal;

/// How often it is asked.
const PERIOD: Duration = Duration::from_secs(1);

/// Databases that it is asked to write: each one is a request.
const MOST_DATABASES: usize = 1000;

/// A daemon that speaks rrdcached's protocol.
pub(super) struct Daemon {
    address: String,
    databases: Vec<PathBuf>,
    asked: Option<Instant>,
    /// What was reported last: the same is not reported again.
    reported: Option<String>,
}

impl Daemon {
    /// A daemon at an address, as `kymo rrd --daemon` takes it.
    pub(super) fn new(address: String) -> Self {
        Self {
            address,
            databases: Vec::new(),
            asked: None,
            reported: None,
        }
    }

    /// Takes what is shown from now on.
    pub(super) fn show(&mut self, recordings: &[AnyRecording]) {
        let databases = recordings
            .iter()
            .filter(|recording| recording.format().name == "rrd");
        self.databases = databases
            .map(|database| database.path().to_path_buf())
            .collect();
        if self.databases.len() > MOST_DATABASES {
            let message = format!(
                "the daemon is asked to write {MOST_DATABASES} of {} databases; the others are shown as they are written",
                self.databases.len()
            );
            self.report(message);
            self.databases.truncate(MOST_DATABASES);
        }
    }

    /// Has the daemon write what it holds of the databases, if it was not asked just now.
    pub(super) fn flush(&mut self) {
        if self.databases.is_empty() || self.asked.is_some_and(|asked| asked.elapsed() < PERIOD) {
            return;
        }
        let failed = flushed(&self.address, &self.databases).err();
        self.asked = Some(Instant::now());
        match failed {
            Some(message) => self.report(message),
            None => self.reported = None,
        }
    }

    fn report(&mut self, message: String) {
        if self.reported.as_ref() != Some(&message) {
            Terminal::new().warning(format_args!("daemon `{}`: {message}", self.address));
            self.reported = Some(message);
        }
    }
}

/// Does what `kymo rrd flushcached --daemon ADDRESS DATABASE...` does.
fn flushed(address: &str, databases: &[PathBuf]) -> Result<(), String> {
    let (mut out, mut warnings) = (io::sink(), io::sink());
    let defaults = Defaults {
        strip_path: std::env::var("RRDCACHED_STRIPPATH").ok(),
        ..Defaults::default()
    };
    let mut session = Session::new(&mut out, &mut warnings, defaults);
    let paths = databases.iter().map(PathBuf::as_path);
    let words = ["flushcached", "--daemon", address, "--"].map(Path::new);
    let words = words.into_iter().chain(paths);
    let words: Vec<&[u8]> = words
        .map(|word| word.as_os_str().as_encoded_bytes())
        .collect();
    match run(&mut session, &words) {
        Some(done) => done.map_err(|failure| failure.to_string()),
        None => Ok(()),
    }
}
